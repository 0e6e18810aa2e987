//! A suite that is a list of suites: the measurements of a study, one after the other.

use serde::Deserialize;
use units::Nanos;

use crate::check::{TIME_MAX, in_range};
use crate::error::{Place, Problem, SuiteError};
use crate::node::{self, At, Node, Table, Value};
use crate::reader::read_table;
use crate::source::{
    Located, SuiteSource, TEXT_BYTES_MAX, check_name, duplicate, missing, out_of_range, parse,
    table_of, tables_of, with_keys,
};
use crate::values::Time;

const REPEATS_MAX: u32 = 1000;
/// Parts of a list.
const PARTS_MAX: usize = 1000;
/// Parts with their repeats.
const PLAYED_MAX: u32 = 10_000;
/// What stands at the top of a list.
const HEAD: [&str; 5] = ["schema", "name", "title", "description", "part"];

/// What a suite's text turns out to be.
#[derive(Clone, Debug)]
pub enum Found {
    /// A suite that can be played.
    Suite(Box<SuiteSource>),
    /// A list of such.
    Parts(Parts),
}

/// Reads a text that may be a suite or a list of suites. `file_name` is only for messages.
pub fn read(text: &str, file_name: &str) -> Result<Found, SuiteError> {
    let lists = text.len() <= TEXT_BYTES_MAX
        && node::parse(text).is_ok_and(|root| root.contains("part") && !root.contains("phase"));
    if lists {
        return Parts::read(text, file_name).map(Found::Parts);
    }
    parse(text, file_name).map(|source| Found::Suite(Box::new(source)))
}

/// A list of suites, as written.
#[derive(Clone, Debug)]
pub struct Parts {
    file: String,
    text: String,
    head: Head,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    schema: Option<u32>,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
}

/// One suite of the list.
#[derive(Clone, Debug)]
pub struct Part {
    /// Name of a suite that comes with the program, or path of a file: from the directory of the
    /// list's own.
    pub suite: String,
    /// How often it is played, each time a run of its own.
    pub repeats: u32,
    /// Before each time it is played, but for the first of the whole list.
    pub pause: Nanos,
    /// Those of its phases that are played; empty: all.
    phases: Vec<(At, String)>,
    at: At,
    set: Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    suite: Option<String>,
    repeats: Option<u32>,
    pause: Option<Time>,
    phases: Option<Vec<String>>,
}

impl Parts {
    fn read(text: &str, file_name: &str) -> Result<Self, SuiteError> {
        let mut parts = Self {
            file: file_name.to_owned(),
            text: text.to_owned(),
            head: Head::default(),
            parts: Vec::new(),
        };
        parts.fill().map_err(|(at, problem)| SuiteError::new(parts.place(at), problem))?;
        Ok(parts)
    }

    fn fill(&mut self) -> Located<()> {
        let mut root = node::parse(&self.text).map_err(|(at, problem)| (At::Text(at), problem))?;
        let entry =
            root.remove("part").ok_or_else(|| missing(At::Text(0), "[[part]]", "a list"))?;
        if let Some(other) = root.entries.iter().find(|entry| is_of_a_suite(&entry.key)) {
            let belongs = "in the suites that the parts name, or in a part's `set`";
            return Err((other.at, Problem::Misplaced { key: other.key.clone(), belongs }));
        }
        self.head = read_table(&root, At::Text(0), "suite")
            .map_err(|error| with_keys::<Head>(error, At::Text(0), &["part"]))?;
        let at = |field: &str| root.get(field).map_or(At::Text(0), |node| node.at);
        match self.head.schema {
            Some(1) => {}
            Some(other) => {
                let wanted = "`1`, all that this version knows";
                return Err((at("schema"), out_of_range("schema", other, wanted)));
            }
            None => return Err(missing(At::Text(0), "schema = 1", "the suite")),
        }
        match &self.head.name {
            Some(name) => check_name(name, "suite", at("name"))?,
            None => return Err(missing(At::Text(0), "name", "the suite")),
        }
        let tables = tables_of(&entry, "part")?;
        // Each is a suite that is read and checked before the first is played.
        if tables.len() > PARTS_MAX {
            let wanted = format!("at most {PARTS_MAX}");
            return Err((entry.at, out_of_range("[[part]]", tables.len(), &wanted)));
        }
        for (at, table) in tables {
            self.parts.push(part(at, table)?);
        }
        if self.parts.is_empty() {
            return Err(missing(entry.at, "[[part]]", "a list"));
        }
        let played = self.parts.iter().fold(0u32, |sum, part| sum.saturating_add(part.repeats));
        in_range("repeats of all parts", played, 1, PLAYED_MAX, entry.at).map(|_| ())
    }

    fn place(&self, at: At) -> Place {
        Place::of(&self.file, &self.text, &[], at)
    }

    /// The list's name.
    pub fn name(&self) -> &str {
        self.head.name.as_deref().unwrap_or_default()
    }

    /// One line for lists.
    pub fn title(&self) -> &str {
        self.head.title.as_deref().unwrap_or_default()
    }

    /// What was measured so, and by whom.
    pub fn description(&self) -> &str {
        self.head.description.as_deref().unwrap_or_default().trim()
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// In the order they are played.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Sets in `source`, which is the part's suite, what the part sets in it.
    pub fn set(&self, part: &Part, source: &mut SuiteSource) -> Result<(), SuiteError> {
        if part.set.entries.is_empty() {
            return Ok(());
        }
        let place = format!("{}, `set` of part `{}`", self.place(part.at), part.suite);
        source.set_table(&place, &part.set)
    }

    /// Leaves out of `source`, which is the part's suite, the phases that the part does not play. To
    /// be done last: options may still name them.
    pub fn keep_phases(&self, part: &Part, source: &mut SuiteSource) -> Result<(), SuiteError> {
        for (at, name) in &part.phases {
            if source.phases.iter().all(|phase| phase.name != *name) {
                let known = source.phases.iter().map(|phase| phase.name.clone()).collect();
                let problem =
                    Problem::UnknownWord { field: "phases".to_owned(), seen: name.clone(), known };
                return Err(SuiteError::new(self.place(*at), problem));
            }
        }
        if !part.phases.is_empty() {
            let kept = |name: &str| part.phases.iter().any(|(_, kept)| kept == name);
            source.phases.retain(|phase| kept(&phase.name));
            let gone = |name: &Option<String>| name.as_ref().is_some_and(|name| !kept(name));
            source.overrides.retain(|over| !gone(&over.phase));
        }
        Ok(())
    }

    /// That a part's suite is a list, too: such a list could name itself.
    pub fn nested(&self, part: &Part) -> SuiteError {
        SuiteError::new(self.place(part.at), Problem::Nested { suite: part.suite.clone() })
    }

    /// Where a part stands, for messages about the suite it names.
    pub fn place_of(&self, part: &Part) -> Place {
        self.place(part.at)
    }
}

/// Whether a key at the top of a list would be one at the top of a suite.
fn is_of_a_suite(key: &str) -> bool {
    let is_table = matches!(key, "phase" | "defaults" | "quick");
    is_table || (crate::raw::is_field(key) && !HEAD.contains(&key))
}

fn part(at: At, table: &Table) -> Located<Part> {
    let mut fields = table.clone();
    let set = fields.remove("set");
    let raw: RawPart = read_table(&fields, at, "part")
        .map_err(|error| with_keys::<RawPart>(error, at, &["set"]))?;
    let place = |field: &str| fields.get(field).map_or(at, |node| node.at);
    let suite = raw.suite.ok_or_else(|| missing(at, "suite", "the part"))?;
    if suite.is_empty() {
        let wanted = "the name of a suite or the path of one";
        return Err((place("suite"), out_of_range("suite", suite, wanted)));
    }
    let repeats = in_range("repeats", raw.repeats.unwrap_or(1), 1, REPEATS_MAX, place("repeats"))?;
    let pause = raw.pause.map_or(Nanos::ZERO, |time| time.0);
    if pause > TIME_MAX {
        return Err((place("pause"), out_of_range("pause", pause.exact(), "at most a year")));
    }
    let set = match &set {
        Some(entry) => table_of(&entry.node, "set")?.clone(),
        None => Table::default(),
    };
    let mut phases = Vec::new();
    for (index, name) in raw.phases.iter().flatten().enumerate() {
        let place = place("phases");
        if raw.phases.iter().flatten().take(index).any(|before| before == name) {
            return Err((place, duplicate("phase", name)));
        }
        phases.push((place, name.clone()));
    }
    if raw.phases.as_ref().is_some_and(Vec::is_empty) {
        return Err((place("phases"), out_of_range("phases", "[]", "at least one of the suite's")));
    }
    Ok(Part { suite, repeats, pause, phases, at, set })
}

/// A table with every value at one place.
pub(crate) fn placed(table: &Table, at: At) -> Table {
    let mut placed = table.clone();
    for entry in &mut placed.entries {
        entry.at = at;
        place(&mut entry.node, at);
    }
    placed
}

fn place(node: &mut Node, at: At) {
    node.at = at;
    match &mut node.value {
        Value::Table(table) => *table = placed(table, at),
        Value::Array(items) => items.iter_mut().for_each(|item| place(item, at)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckContext, check};

    const TOP: &str = "schema = 1\nname = \"t\"\n";

    fn list(text: &str) -> Result<Parts, String> {
        match read(&format!("{TOP}{text}"), "t.toml") {
            Ok(Found::Parts(parts)) => Ok(parts),
            Ok(Found::Suite(_)) => Err("a suite".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn source() -> SuiteSource {
        parse("schema = 1\nname = \"s\"\n[[phase]]\nname = \"p\"\ntime = \"3s\"\n", "s").unwrap()
    }

    #[test]
    fn parts_have_suites_repeats_and_pauses() {
        let text = "[[part]]\nsuite = \"bm-flash\"\n[[part]]\nsuite = \"./x.toml\"\nrepeats = 3\npause = \"10s\"\n";
        let list = list(text).unwrap();
        let parts = list.parts();
        assert_eq!((parts[0].suite.as_str(), parts[0].repeats), ("bm-flash", 1));
        assert_eq!((parts[1].suite.as_str(), parts[1].repeats), ("./x.toml", 3));
        assert_eq!(parts[1].pause, Nanos::secs(10));
    }

    #[test]
    fn what_a_part_sets_is_set() {
        let text = "[[part]]\nsuite = \"s\"\nset = { threads = 4, p = { queue_depth = [1, 8] }, rounds = { visits_max = 4 } }\n";
        let list = list(text).unwrap();
        let mut source = source();
        list.set(&list.parts()[0], &mut source).unwrap();
        let suite = check(&source, &CheckContext::default()).unwrap();
        assert_eq!(suite.cell_count(), 2);
        assert_eq!(suite.rounds.visits_max, 4);
        assert!(suite.cells().all(|cell| cell.streams[0].threads == 4));
    }

    #[test]
    fn a_time_is_that_of_visits_too() {
        let list = list("[[part]]\nsuite = \"s\"\nset = { time = \"7s\" }\n").unwrap();
        let mut source = source();
        list.set(&list.parts()[0], &mut source).unwrap();
        let suite = check(&source, &CheckContext::default()).unwrap();
        assert_eq!(suite.rounds.visit_time, Nanos::secs(7));
    }

    #[test]
    fn mistakes_have_their_place() {
        for (text, said) in [
            ("[[part]]\nrepeats = 2\n", "t.toml:3: the part has no `suite`"),
            (
                "[[part]]\nsuite = \"a\"\nrepeats = 0\n",
                "t.toml:5: `repeats` is `0`, wanted 1 to 1000",
            ),
            ("[[part]]\nsuite = \"a\"\ntimes = 2\n", "t.toml:5: unknown key `times`"),
            ("[[part]]\nsuite = 5\n", "t.toml:4: `suite` is the number 5, wanted a string"),
            ("[[part]]\nsuite = \"\"\n", "t.toml:4: `suite` is ``, wanted the name"),
            (
                "[[part]]\nsuite = \"a\"\nset = 3\n",
                "t.toml:5: `set` is the number 3, wanted a table",
            ),
            ("file_size = 5\n[[part]]\nsuite = \"a\"\n", "t.toml:3: `file_size` cannot stand here"),
            ("[[part]]\nsuite = \"a\"\n[quick]\ntime = 1\n", "t.toml:5: `quick` cannot stand here"),
            ("part = 3\n", "t.toml:3: `part` is the number 3, wanted a list of tables"),
            ("part = []\n", "t.toml:3: a list has no `[[part]]`"),
        ] {
            let error = list(text).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
        let list = list("[[part]]\nsuite = \"s\"\nset = { treads = 4 }\n").unwrap();
        let error = list.set(&list.parts()[0], &mut source()).unwrap_err();
        assert_eq!(error.to_string(), "t.toml:3, `set` of part `s`: unknown key `treads`");
    }

    #[test]
    fn phases_can_be_left_out() {
        let text = "schema = 1\nname = \"s\"\n[defaults]\ntime = \"3s\"\n[[phase]]\nname = \"p\"\n[[phase]]\nname = \"q\"\n";
        let source = parse(text, "s").unwrap();
        let play = |phases: &str| {
            let list = list(&format!("[[part]]\nsuite = \"s\"\nphases = {phases}\n"))?;
            let mut source = source.clone();
            source.set("p.threads=3").unwrap();
            list.keep_phases(&list.parts()[0], &mut source).map_err(|e| e.to_string())?;
            let suite = check(&source, &CheckContext::default()).unwrap();
            Ok::<_, String>(suite.phases.iter().map(|p| p.name.clone()).collect::<Vec<_>>())
        };
        assert_eq!(play("[\"q\"]").unwrap(), ["q"]);
        assert_eq!(play("[\"q\", \"p\"]").unwrap(), ["p", "q"], "in the suite's order");
        assert_eq!(play("[\"r\"]").unwrap_err(), "t.toml:5: `phases` is `r`, wanted `p` or `q`");
        assert_eq!(play("[\"p\", \"p\"]").unwrap_err(), "t.toml:5: phase `p` comes twice");
        assert!(play("[]").unwrap_err().contains("at least one"));
    }

    #[test]
    fn a_list_is_no_suite() {
        let text = format!("{TOP}[[part]]\nsuite = \"a\"\n");
        let error = parse(&text, "t.toml").unwrap_err();
        assert_eq!(error.to_string(), "t.toml:3: `t` is a list of suites, not one");
        assert!(error.hint().unwrap().contains("plimsoll run"));
    }
}
