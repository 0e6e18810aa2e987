//! Pure rooms reach for no file, clock, process, environment or terminal.

use std::path::Path;

use anyhow::Result;

use super::{Verdict, arrows};
use crate::repo::Repo;
use crate::source::{lines_with, shipped_code};

/// What pure rooms do not say, and what they do instead.
const BANNED: &[(&str, &str)] = &[
    ("std::fs", "the caller reads and hands in the text"),
    ("std::net", "an edge room talks to others"),
    ("std::process", "an edge room starts programs"),
    ("std::os", "an edge room knows the system"),
    ("std::env", "the caller hands the value in"),
    ("env::var", "the caller hands the value in"),
    ("env::args", "the caller hands the value in"),
    ("File::open", "the caller reads and hands in the text"),
    ("File::create", "the caller writes what is returned"),
    ("thread::sleep", "time passes in the device"),
    ("thread::spawn", "the runner owns the threads"),
    ("SystemTime", "time comes from the seam"),
    ("time::Instant", "time comes from the seam"),
    ("print!", "return the text"),
    ("println!", "return the text"),
    ("eprint!", "return the text"),
    ("eprintln!", "return the text"),
    ("stdout()", "return the text"),
    ("stderr()", "return the text"),
    ("stdin()", "the caller reads and hands in the text"),
];

/// Where one of them may stand all the same: file, word, why.
const ALLOWED: &[(&str, &str, &str)] = &[];

pub fn look(repo: &Repo) -> Result<Verdict> {
    let mut faults = Vec::new();
    for path in repo.files(&["rs"])? {
        if is_in_a_pure_room(&path) {
            faults.extend(faults_in(&path.to_string_lossy(), &repo.read(&path)?));
        }
    }
    Ok(Verdict::faults(faults))
}

fn is_in_a_pure_room(path: &Path) -> bool {
    arrows::pure_rooms().any(|room| path.starts_with(format!("crates/{room}/src")))
}

fn faults_in(path: &str, text: &str) -> Vec<String> {
    let code = shipped_code(text);
    let mut faults = Vec::new();
    for (word, instead) in BANNED {
        if ALLOWED.iter().any(|(file, allowed, _)| *file == path && allowed == word) {
            continue;
        }
        for line in lines_with(&code, word) {
            faults.push(format!("{path}:{line}: `{word}` in a pure room; {instead}"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::scratch::Scratch;

    #[test]
    fn a_clock_in_a_pure_room_is_found() {
        let scratch = Scratch::with(&[
            ("crates/engine/src/a.rs", "fn a() { let t = std::time::Instant::now(); }"),
            ("crates/engine/src/b.rs", "/// Not `std::fs`.\nfn b() { x(\"println!\") }"),
            ("crates/engine/tests/c.rs", "use std::fs;"),
            ("crates/runner/src/d.rs", "use std::fs;"),
        ]);
        let verdict = look(&scratch.repo).unwrap();
        assert_eq!(verdict.faults.len(), 1, "{verdict:?}");
        assert!(verdict.faults[0].starts_with("crates/engine/src/a.rs:1: `time::Instant`"));
    }

    #[test]
    fn tests_in_the_same_file_may() {
        assert_eq!(faults_in("x", "#[cfg(test)]\nmod tests { use std::fs; }"), [""; 0]);
        assert_eq!(faults_in("x", "use std::fs;").len(), 1);
    }
}
