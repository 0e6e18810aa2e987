//! What the documentation shows works.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use suite::{CheckContext, Found, SuiteSource, check, find_builtin, parse, read, resolved_text};

const WRITE_A_SUITE: &str = include_str!("../../../docs/write-a-suite.md");
/// What is in docs/suites, by name.
fn pages() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/suites");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The fenced blocks of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(fence.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

fn examples() -> Vec<SuiteSource> {
    let found = blocks(WRITE_A_SUITE, "toml").into_iter().map(|text| read(text, "example.toml"));
    let suites = found.filter_map(|found| match found.unwrap() {
        Found::Suite(source) => Some(*source),
        Found::Parts(_) => None,
    });
    suites.collect()
}

#[test]
fn every_list_shown_names_suites_that_take_what_it_sets() {
    let mut lists = 0;
    for text in blocks(WRITE_A_SUITE, "toml") {
        let Found::Parts(list) = read(text, "example.toml").unwrap() else { continue };
        lists += 1;
        for part in list.parts() {
            let shown = examples().into_iter().find(|source| part.suite.contains(source.name()));
            let mut source = match find_builtin(&part.suite) {
                Some(found) => parse(found.text, found.file).unwrap(),
                None => shown.unwrap_or_else(|| panic!("{} is nowhere", part.suite)),
            };
            list.set(part, &mut source).unwrap();
            list.keep_phases(part, &mut source).unwrap();
            check(&source, &CheckContext::default()).unwrap();
        }
    }
    assert!(lists > 0);
}

#[test]
fn every_suite_shown_is_sound() {
    let examples = examples();
    assert!(examples.len() >= 4, "{} examples", examples.len());
    for mut source in examples {
        check(&source, &CheckContext::default()).unwrap();
        resolved_text(&source).unwrap();
        if source.has_quick() {
            source.quick().unwrap();
            check(&source, &CheckContext::default()).unwrap();
        }
    }
}

#[test]
fn every_override_shown_is_taken() {
    let examples = examples();
    let mut commands = 0;
    let pages = pages();
    let all = pages.iter().map(String::as_str).chain([WRITE_A_SUITE]);
    let lines = all.flat_map(|page| blocks(page, "sh")).flat_map(str::lines);
    for line in lines.filter(|line| line.contains("--set ")) {
        let name = line.split_whitespace().nth(2).unwrap();
        let mut source = match find_builtin(name) {
            Some(found) => parse(found.text, found.file).unwrap(),
            None => {
                let name = name.trim_end_matches(".toml");
                examples.iter().find(|source| source.name() == name).unwrap().clone()
            }
        };
        for set in line.split("--set ").skip(1) {
            let set = set.split_whitespace().next().unwrap();
            source.set(set).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        check(&source, &CheckContext::default()).unwrap_or_else(|error| panic!("{line}: {error}"));
        commands += 1;
    }
    assert!(commands >= 45, "only {commands} commands were found");
}

#[test]
fn every_field_is_documented() {
    for field in SuiteSource::settable() {
        assert!(WRITE_A_SUITE.contains(&format!("`{field}`")), "no `{field}` in the tables");
    }
}
