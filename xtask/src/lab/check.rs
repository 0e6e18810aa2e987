//! What must be true after a scenario: one value, found in a document or a note, and held against
//! what was planted.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that must be true.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What it says of the product, in a sentence.
    pub what: String,
    /// Words for `plimsoll`, `--json` is added; `@name` is the run of that name.
    #[serde(default)]
    pub command: Option<String>,
    /// Instead of a command: a document that the script brought out under this name.
    #[serde(default)]
    pub file: Option<String>,
    /// Where in its document: `runs[0].sections[question=stalls].findings[*].code`.
    #[serde(default)]
    pub at: Option<String>,
    /// Instead of a command: what the script noted under this name.
    #[serde(default)]
    pub note: Option<String>,
    /// One of the values is this.
    #[serde(default)]
    pub is: Option<Value>,
    /// One of the values lies between these, both included.
    #[serde(default)]
    pub between: Option<[f64; 2]>,
    /// One of the values is near this note, within `within`; with `of`, near what stands at this
    /// place in that document.
    #[serde(default)]
    pub near: Option<String>,
    /// A document that the script brought out, in which `near` is a place.
    #[serde(default)]
    pub of: Option<String>,
    /// How far from `near`.
    #[serde(default)]
    pub within: f64,
    /// One of the texts has this in it.
    #[serde(default)]
    pub contains: Option<String>,
    /// None of the texts has this in it.
    #[serde(default)]
    pub lacks: Option<String>,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The check's sentence.
    pub what: String,
    /// Whether it is true.
    pub passed: bool,
    /// What was wanted.
    pub wanted: String,
    /// What was found.
    pub seen: String,
}

/// What a scenario left behind.
#[derive(Debug)]
pub struct Harvest<'a> {
    /// The program that reads the store.
    pub plimsoll: &'a Path,
    /// Where what was brought out is: the store, documents.
    pub folder: &'a Path,
    /// What the script noted.
    pub notes: &'a BTreeMap<String, String>,
    documents: BTreeMap<String, Value>,
}

impl Check {
    /// Whether it says what is looked at and what for.
    pub fn is_sound(&self) -> Result<()> {
        let asked = [
            self.is.is_some(),
            self.between.is_some(),
            self.near.is_some(),
            self.contains.is_some(),
            self.lacks.is_some(),
        ];
        if asked.iter().filter(|one| **one).count() != 1 {
            bail!("one of `is`, `between`, `near`, `contains`, `lacks` must be there, and no more");
        }
        match (&self.near, &self.of) {
            (Some(place), Some(_)) => parse(place).map(|_| ())?,
            (None, Some(_)) => bail!("`of` says where `near` is looked up, and there is none"),
            _ => {}
        }
        match (&self.command, &self.file, &self.at, &self.note) {
            (Some(_), None, Some(path), None) | (None, Some(_), Some(path), None) => {
                parse(path).map(|_| ())
            }
            (None, None, None, Some(_)) => Ok(()),
            _ => bail!("wanted `command` and `at`, `file` and `at`, or `note`"),
        }
    }

    fn wanted(&self) -> String {
        match self {
            Self { is: Some(value), .. } => value.to_string(),
            Self { between: Some([low, high]), .. } => format!("{low} to {high}"),
            Self { near: Some(place), of: Some(file), within, .. } => {
                format!("{file}: {place} +- {within}")
            }
            Self { near: Some(note), within, .. } => format!("{note} +- {within}"),
            Self { contains: Some(text), .. } => format!("a text with `{text}`"),
            Self { lacks: Some(text), .. } => format!("no text with `{text}`"),
            _ => String::new(),
        }
    }

    /// * `near`: what stands where `near` and `of` say.
    fn holds(
        &self,
        values: &[Value],
        near: Option<&Value>,
        notes: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let number = |value: &Value| match value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_f64(),
        };
        let mut numbers = values.iter().filter_map(number);
        let mut texts = values.iter().filter_map(Value::as_str);
        if let Some(wanted) = &self.is {
            let same = |value: &Value| match (number(value), number(wanted)) {
                (Some(seen), Some(wanted)) => seen == wanted,
                _ => value == wanted,
            };
            return Ok(values.iter().any(same));
        }
        if let Some([low, high]) = self.between {
            return Ok(numbers.any(|x| (low..=high).contains(&x)));
        }
        if self.of.is_some() {
            let wanted =
                near.and_then(Value::as_f64).context("there is no number to be near to")?;
            return Ok(numbers.any(|x| (x - wanted).abs() <= self.within));
        }
        if let Some(name) = &self.near {
            let note = notes.get(name).with_context(|| format!("there is no note `{name}`"))?;
            let near = note.trim();
            // Nanoseconds since 1970 have more digits than a double: whole numbers stay whole.
            if let Ok(wanted) = near.parse::<i128>() {
                let whole = values.iter().filter_map(Value::as_i64).map(i128::from);
                let far = |x: i128| (x - wanted).unsigned_abs() as f64;
                return Ok(whole.map(far).any(|far| far <= self.within));
            }
            let wanted: f64 = near.parse().with_context(|| format!("note `{name}`: {near}"))?;
            return Ok(numbers.any(|x| (x - wanted).abs() <= self.within));
        }
        if let Some(text) = &self.contains {
            return Ok(texts.any(|seen| seen.contains(text.as_str())));
        }
        Ok(self.lacks.as_ref().is_some_and(|text| !texts.any(|seen| seen.contains(text.as_str()))))
    }
}

impl<'a> Harvest<'a> {
    pub fn new(plimsoll: &'a Path, folder: &'a Path, notes: &'a BTreeMap<String, String>) -> Self {
        Self { plimsoll, folder, notes, documents: BTreeMap::new() }
    }

    /// Whether it is true; what cannot be looked at is not.
    pub fn check(&mut self, check: &Check) -> Checked {
        let (passed, seen) = match self.values(check) {
            Err(error) => (false, format!("{error:#}")),
            Ok(values) => match self.near(check).and_then(|near| {
                let holds = check.holds(&values, near.as_ref(), self.notes)?;
                Ok((holds, near))
            }) {
                Err(error) => (false, format!("{error:#}")),
                Ok((holds, Some(near))) => (holds, format!("{}, near {near}", shown(&values))),
                Ok((holds, None)) => (holds, shown(&values)),
            },
        };
        Checked { what: check.what.clone(), passed, wanted: check.wanted(), seen }
    }

    /// What `near` means where it is a place in a document.
    fn near(&mut self, check: &Check) -> Result<Option<Value>> {
        let (Some(place), Some(file)) = (&check.near, &check.of) else { return Ok(None) };
        let steps = parse(place)?;
        Ok(select(self.brought(file)?, &steps).first().map(|value| (*value).clone()))
    }

    fn values(&mut self, check: &Check) -> Result<Vec<Value>> {
        if let Some(name) = &check.note {
            let note = self.notes.get(name);
            let note = note.with_context(|| format!("there is no note `{name}`"))?;
            return Ok(vec![Value::String(note.clone())]);
        }
        let steps = parse(check.at.as_deref().unwrap_or_default())?;
        if let Some(file) = &check.file {
            return Ok(select(self.brought(file)?, &steps).into_iter().cloned().collect());
        }
        let command = check.command.as_deref().unwrap_or_default();
        Ok(select(self.document(command)?, &steps).into_iter().cloned().collect())
    }

    /// A document that the script brought out.
    fn brought(&mut self, name: &str) -> Result<&Value> {
        let key = format!("file {name}");
        if !self.documents.contains_key(&key) {
            let path = self.folder.join(name);
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("reading {}", path.display()))?;
            let document = serde_json::from_str(&text)
                .with_context(|| format!("reading {}", path.display()))?;
            self.documents.insert(key.clone(), document);
        }
        self.documents.get(&key).context("it was just put in")
    }

    fn document(&mut self, command: &str) -> Result<&Value> {
        if !self.documents.contains_key(command) {
            let document = self.ask(command)?;
            self.documents.insert(command.to_owned(), document);
        }
        self.documents.get(command).context("it was just put in")
    }

    fn ask(&self, command: &str) -> Result<Value> {
        let word = |word: &str| match word.strip_prefix('@') {
            None => Ok(word.to_owned()),
            Some(name) => {
                let run = self.notes.get(&format!("run.{name}"));
                run.cloned().with_context(|| format!("no run was called `{name}`"))
            }
        };
        let words = command.split_whitespace().map(word).collect::<Result<Vec<String>>>()?;
        let output = Command::new(self.plimsoll)
            .arg("--store")
            .arg(self.folder.join("lab.db"))
            .args(words)
            .arg("--json")
            .output()
            .with_context(|| format!("starting {}", self.plimsoll.display()))?;
        if output.stdout.is_empty() {
            bail!("plimsoll {command}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("reading what plimsoll {command} printed"))
    }
}

/// Few enough words for a table.
fn shown(values: &[Value]) -> String {
    const LENGTH_MAX: usize = 400;
    let text = match values {
        [] => return "nothing there".to_owned(),
        [Value::String(text)] => text.clone(),
        many => many.iter().map(Value::to_string).collect::<Vec<_>>().join("; "),
    };
    if text.chars().count() <= LENGTH_MAX {
        return text;
    }
    let mut short: String = text.chars().take(LENGTH_MAX).collect();
    short.push_str("...");
    short
}

/// A step into a document.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    /// Elements in which this field is this.
    Where(String, String),
}

/// `runs[0].sections[question=stalls].findings[*].code`; fields of an empty path are the whole document.
fn parse(path: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (inside, after) =
                inner.split_once(']').with_context(|| format!("no `]` in `{path}`"))?;
            steps.push(match (inside, inside.split_once('=')) {
                ("*", _) => Step::All,
                (_, Some((field, value))) => Step::Where(field.to_owned(), value.to_owned()),
                _ => Step::Index(inside.parse().with_context(|| format!("`{inside}`"))?),
            });
            rest = after;
        } else {
            let start = rest.strip_prefix('.').unwrap_or(rest);
            let end = start.find(['.', '[']).unwrap_or(start.len());
            let (name, after) = start.split_at(end);
            if name.is_empty() {
                bail!("an empty name in `{path}`");
            }
            steps.push(Step::Field(name.to_owned()));
            rest = after;
        }
    }
    Ok(steps)
}

fn select<'v>(document: &'v Value, steps: &[Step]) -> Vec<&'v Value> {
    steps.iter().fold(vec![document], |found, step| {
        found.into_iter().flat_map(|value| one(value, step)).collect()
    })
}

fn one<'v>(value: &'v Value, step: &Step) -> Vec<&'v Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(at) => value.get(at).into_iter().collect(),
        Step::All => value.as_array().into_iter().flatten().collect(),
        Step::Where(field, wanted) => {
            let text = |field: &Value| match field {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let is = |element: &&Value| element.get(field).map(text).as_ref() == Some(wanted);
            value.as_array().into_iter().flatten().filter(is).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(path: &str) -> Vec<Value> {
        let document = json!({
            "runs": [
                { "id": "r1", "rate": 10.5, "said": ["one", "two"] },
                { "id": "r2", "rate": 20, "said": ["three"] },
            ],
        });
        select(&document, &parse(path).unwrap()).into_iter().cloned().collect()
    }

    #[test]
    fn paths_lead_to_values() {
        assert_eq!(found("runs[1].id"), [json!("r2")]);
        assert_eq!(found("runs[*].rate"), [json!(10.5), json!(20)]);
        assert_eq!(found("runs[id=r2].said[*]"), [json!("three")]);
        assert_eq!(found("runs[rate=20].said[0]"), [json!("three")]);
        assert!(found("runs[7].id").is_empty());
        assert!(found("nothing.there").is_empty());
        for bad in ["runs[", "runs[x]", "a..b"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    fn check(text: &str) -> Check {
        toml::from_str(&format!("what = 'w'\nnote = 'n'\n{text}")).unwrap()
    }

    #[test]
    fn values_are_held_against_what_was_planted() {
        let notes = BTreeMap::from([("t".to_owned(), "1795303790828827086".to_owned())]);
        let holds = |text: &str, values: &[Value]| check(text).holds(values, None, &notes).unwrap();
        assert!(holds("is = 0", &[json!("0")]));
        assert!(!holds("is = 0", &[json!("4")]));
        assert!(holds("is = { in = 'members' }", &[json!({"in": "members"})]));
        assert!(holds("between = [1, 2]", &[json!(5), json!(1.5)]));
        assert!(!holds("between = [1, 2]", &[json!(5)]));
        assert!(holds("near = 't'\nwithin = 50e6", &[json!(1_795_303_790_868_827_086_i64)]));
        assert!(!holds("near = 't'\nwithin = 50e6", &[json!(1_795_303_790_888_827_086_i64)]));
        assert!(holds("contains = 'hr'", &[json!("one"), json!("three")]));
        assert!(!holds("lacks = 'hr'", &[json!("one"), json!("three")]));
        assert!(holds("lacks = 'xx'", &[]));
        // Nothing there is never what was wanted.
        for text in ["is = 0", "between = [0, 9]", "contains = ''", "near = 't'\nwithin = 1e30"] {
            assert!(!holds(text, &[]), "{text}");
        }
    }

    #[test]
    fn what_was_measured_is_held_against_what_was_foretold() {
        let folder =
            std::env::temp_dir().join(format!("plimsoll-lab-check-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("p.json"), r#"{"advice":[{"name":"x","read":0.5}],"seen":0.4}"#)
            .unwrap();
        let notes = BTreeMap::new();
        let mut harvest = Harvest::new(Path::new("/nonexistent"), &folder, &notes);
        let mut passes = |at: &str, near: &str| {
            let text = format!(
                "what='w'\nfile='p.json'\nat='{at}'\nnear='{near}'\nof='p.json'\nwithin=0.2"
            );
            let check: Check = toml::from_str(&text).unwrap();
            check.is_sound().unwrap();
            harvest.check(&check).passed
        };
        assert!(passes("seen", "advice[name=x].read"));
        // Nothing there, on either side, is not near.
        assert!(!passes("seen", "advice[name=y].read") && !passes("sen", "advice[name=x].read"));
        let without: Check = toml::from_str("what='w'\nnote='n'\nis=0\nof='p.json'").unwrap();
        assert!(without.is_sound().is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_cannot_be_looked_at_has_not_passed() {
        let notes = BTreeMap::new();
        let nowhere = Path::new("/nonexistent");
        let mut harvest = Harvest::new(nowhere, nowhere, &notes);
        let checked = harvest.check(&check("is = 0"));
        assert!(!checked.passed);
        assert_eq!(checked.seen, "there is no note `n`");
    }
}
