//! The shape of the code: modules that need each other, functions that are too long, names with several
//! meanings. What there is already is in [`KNOWN`]; it may only become less.

mod cycles;
mod length;
mod names;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Verdict;
use crate::repo::Repo;

/// What each rule still finds, by crate or by function. Lower it when there is less.
const KNOWN: &str = "xtask/known.toml";

/// A source file of a crate, read.
struct Source {
    /// The crate's directory name.
    room: String,
    /// Its module, from the crate's root: empty for `lib.rs` and `main.rs`.
    module: Vec<String>,
    path: PathBuf,
    file: syn::File,
}

/// Numbers that may only go down.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// Groups of modules that need each other, by crate.
    cycles: BTreeMap<String, usize>,
    /// Functions of more lines than one should have, by crate.
    long_functions: BTreeMap<String, usize>,
    /// Names of types with three meanings or more, in all crates.
    crowded_names: BTreeMap<String, usize>,
    /// Lines of each crate's `src` and `tests`. A new crate enters with its budget.
    lines: BTreeMap<String, usize>,
}

/// So many lines less need not be told.
const LINES_SLACK: usize = 100;

pub fn look(repo: &Repo) -> Result<Verdict> {
    let known: Known = toml::from_str(&repo.read(Path::new(KNOWN))?)
        .with_context(|| format!("reading {KNOWN}"))?;
    let sources = sources(repo)?;
    let mut faults = Vec::new();
    let rules: [(&str, Found, &BTreeMap<String, usize>); 3] = [
        ("cycles", cycles::find(&sources), &known.cycles),
        ("long_functions", length::find(&sources), &known.long_functions),
        ("crowded_names", names::find(&sources), &known.crowded_names),
    ];
    for (rule, found, known) in rules {
        faults.extend(compare(rule, &found, known));
    }
    for (name, lines) in crate::lines::count(repo)? {
        for (place, found) in [("src", lines.source), ("tests", lines.tests)] {
            let key = format!("{name}/{place}");
            faults.extend(too_many(&key, found, known.lines.get(&key).copied().unwrap_or(0)));
        }
    }
    Ok(Verdict::faults(faults))
}

/// What a rule found, in words, by what [`KNOWN`] counts it under.
type Found = BTreeMap<String, Vec<String>>;

fn compare(rule: &str, found: &Found, known: &BTreeMap<String, usize>) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, what) in found {
        let limit = known.get(key).copied().unwrap_or(0);
        if what.len() > limit {
            faults.push(format!(
                "{rule}: {key} has {}, and {limit} at most are known ({KNOWN}): {}",
                what.len(),
                what.join("; ")
            ));
        }
    }
    for (key, limit) in known {
        let left = found.get(key).map_or(0, Vec::len);
        if left < *limit {
            faults.push(format!(
                "{rule}: {key} has {left} only: say so in {KNOWN}, instead of {limit}"
            ));
        }
    }
    faults
}

/// What is wrong with a number of lines.
fn too_many(key: &str, found: usize, limit: usize) -> Option<String> {
    if found > limit {
        return Some(format!("lines: {key} has {found}, and {limit} at most are known ({KNOWN})"));
    }
    let is_less = limit - found > LINES_SLACK;
    is_less.then(|| format!("lines: {key} has {found} only: say so in {KNOWN}, instead of {limit}"))
}

/// Every source file of every crate, tests and what only tests use left out.
fn sources(repo: &Repo) -> Result<Vec<Source>> {
    let mut all = Vec::new();
    for path in repo.files(&["rs"])? {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let Some(source) = parts.iter().position(|part| *part == "src") else { continue };
        let Some(room) = source.checked_sub(1).and_then(|at| parts.get(at)) else { continue };
        let module = module_of(parts.get(source + 1..).unwrap_or_default());
        let text = repo.read(&path)?;
        let file = syn::parse_file(&text).with_context(|| format!("reading {}", path.display()))?;
        all.push(Source { room: (*room).to_owned(), module, path, file });
    }
    Ok(all)
}

/// `["a", "mod.rs"]` and `["a.rs"]` are `a`, `["a", "b.rs"]` is `a::b`.
fn module_of(parts: &[&str]) -> Vec<String> {
    let mut module: Vec<String> =
        parts.iter().map(|part| part.trim_end_matches(".rs").to_owned()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// Whether it is compiled for tests only.
fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |path: &syn::Path| path.is_ident("test");
        let is_cfg_test = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| is_test(&path));
        is_test(attribute.path()) || is_cfg_test
    })
}

#[cfg(test)]
fn source(room: &str, module: &[&str], text: &str) -> Source {
    Source {
        room: room.to_owned(),
        module: module.iter().map(|part| (*part).to_owned()).collect(),
        path: PathBuf::from(format!("crates/{room}/src/{}.rs", module.join("/"))),
        file: syn::parse_file(text).unwrap(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_only_go_down() {
        let found = Found::from([("a".to_owned(), vec!["x".to_owned(), "y".to_owned()])]);
        let known = |n: usize| BTreeMap::from([("a".to_owned(), n)]);
        assert_eq!(compare("r", &found, &known(2)), Vec::<String>::new());
        assert!(compare("r", &found, &known(1))[0].contains("a has 2, and 1 at most"));
        assert!(compare("r", &found, &known(3))[0].contains("a has 2 only"));
        assert!(compare("r", &Found::new(), &known(1))[0].contains("a has 0 only"));
    }

    #[test]
    fn lines_only_get_less() {
        assert_eq!(too_many("a/src", 1000, 1000), None);
        assert_eq!(too_many("a/src", 900, 1000), None);
        assert!(too_many("a/src", 1001, 1000).unwrap().contains("1000 at most"));
        assert!(too_many("a/src", 899, 1000).unwrap().contains("899 only"));
        assert!(too_many("new/src", 1, 0).unwrap().contains("0 at most"));
    }

    #[test]
    fn files_are_modules() {
        assert_eq!(module_of(&["lib.rs"]), [""; 0]);
        assert_eq!(module_of(&["a", "mod.rs"]), ["a"]);
        assert_eq!(module_of(&["a", "b.rs"]), ["a", "b"]);
    }
}
