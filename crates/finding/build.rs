//! Makes the enum of codes from the files in `codes/`: a code is declared once, with everything that
//! is said of it.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a build that cannot go on ends with the reason"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

/// One question's codes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    /// What its codes answer, unless one says otherwise.
    question: String,
    /// What several of its templates share, by name: `{@name}` in them.
    #[serde(default)]
    parts: BTreeMap<String, String>,
    code: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    question: Option<String>,
    severity: String,
    text: String,
    /// For codes that tables show at a cell.
    #[serde(default)]
    mark: Option<String>,
    #[serde(default)]
    next: Option<String>,
    /// Of advice: why, what was read, what to mind.
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    caution: Option<String>,
    /// Other than those of the question.
    #[serde(default)]
    figures: Option<Vec<String>>,
}

fn main() {
    println!("cargo::rerun-if-changed=codes");
    let mut names: Vec<_> = std::fs::read_dir("codes")
        .expect("the folder of codes")
        .map(|entry| entry.expect("an entry of the folder of codes").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    names.sort();
    let topics: Vec<Topic> = names.iter().map(|path| topic(path)).collect();
    let out = std::env::var_os("OUT_DIR").expect("cargo names a folder for what is made");
    std::fs::write(Path::new(&out).join("codes.rs"), source(&topics)).expect("room for the enum");
}

fn topic(path: &Path) -> Topic {
    let text = std::fs::read_to_string(path).expect("a file of codes can be read");
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn source(topics: &[Topic]) -> String {
    let mut variants = String::new();
    let mut all = String::new();
    let mut arms = String::new();
    let mut seen = BTreeSet::new();
    for topic in topics {
        for entry in &topic.code {
            assert!(seen.insert(entry.name.clone()), "two codes are called {}", entry.name);
            let variant = camel(&entry.name);
            let text = with_parts(&entry.text, &topic.parts);
            let with = |template: &Option<String>| {
                template.as_deref().map(|text| with_parts(text.trim(), &topic.parts))
            };
            let meaning = entry.mark.as_deref().unwrap_or(&text);
            let question = camel(entry.question.as_ref().unwrap_or(&topic.question));
            let figures = match &entry.figures {
                Some(own) => format!("Some(&{own:?})"),
                None => "None".to_owned(),
            };
            write!(variants, "#[doc = {:?}]\n{variant},\n", meaning.trim()).expect("in memory");
            write!(all, "Code::{variant}, ").expect("in memory");
            writeln!(
                arms,
                "Code::{variant} => &About {{ name: {:?}, question: Question::{question}, severity: Severity::{}, \
                 text: {:?}, mark: {:?}, next: {:?}, why: {:?}, evidence: &{:?}, caution: {:?}, \
                 own_figures: {figures} }},",
                entry.name,
                camel(&entry.severity),
                text.trim(),
                entry.mark.as_deref().map(str::trim),
                with(&entry.next),
                with(&entry.why),
                entry.evidence.iter().map(|text| with_parts(text, &topic.parts)).collect::<Vec<_>>(),
                with(&entry.caution),
            )
            .expect("in memory");
        }
    }
    format!(
        "/// What can be found. The names are kebab-case in stores, JSON and tables.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]\n\
         #[serde(rename_all = \"kebab-case\")]\n\
         pub enum Code {{\n{variants}}}\n\
         impl Code {{\n\
         /// All, in the order in which tables explain them.\n\
         pub const ALL: &'static [Code] = &[{all}];\n\
         /// What is declared of it.\n\
         pub const fn about(self) -> &'static About {{ match self {{\n{arms}}} }}\n\
         }}\n"
    )
}

/// A template with the parts that it names.
fn with_parts(text: &str, parts: &BTreeMap<String, String>) -> String {
    let with_each = |text: String| {
        parts.iter().fold(text, |text, (name, part)| text.replace(&format!("{{@{name}}}"), part))
    };
    // A part may name others.
    let whole = (0..parts.len()).fold(text.to_owned(), |text, _| with_each(text));
    assert!(!whole.contains("{@"), "no such part: {whole}");
    whole
}

/// `gap-reproducible` as `GapReproducible`.
fn camel(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    name.split('-').filter_map(part).collect()
}
