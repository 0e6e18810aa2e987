//! `cargo xtask lines`: how much source there is, by kind and crate.

use anyhow::{Context, Result};

use crate::repo::Repo;
use crate::source::shipped_code;

/// Lines of one crate.
#[derive(Clone, Copy, Default)]
pub struct Lines {
    /// All of `src/`.
    pub source: usize,
    /// Of those, lines that ship and are neither blank nor comment.
    code: usize,
    /// All of `tests/` and `benches/`.
    pub tests: usize,
}

impl Lines {
    fn add(&mut self, other: Self) {
        self.source += other.source;
        self.code += other.code;
        self.tests += other.tests;
    }
}

/// Of each crate.
pub fn count(repo: &Repo) -> Result<Vec<(String, Lines)>> {
    let mut crates: Vec<(String, Lines)> = Vec::new();
    for path in repo.files(&["rs"])? {
        let Some((name, in_tests)) = path.to_str().and_then(place) else { continue };
        let text = std::fs::read_to_string(repo.path(&path))
            .with_context(|| format!("reading {}", path.display()))?;
        let all = text.lines().count();
        let lines = match in_tests {
            true => Lines { tests: all, ..Lines::default() },
            false => {
                let shipped = shipped_code(&text);
                let code = shipped.lines().filter(|line| !line.trim().is_empty()).count();
                Lines { source: all, code, tests: 0 }
            }
        };
        match crates.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => sum.add(lines),
            None => crates.push((name.to_owned(), lines)),
        }
    }
    Ok(crates)
}

/// Prints a line per crate, and their sums.
pub fn run(repo: &Repo) -> Result<()> {
    let mut crates = count(repo)?;
    println!("{:<12} {:>8} {:>8} {:>8}", "crate", "src", "of code", "tests");
    let row = |name: &str, lines: &Lines| {
        println!("{name:<12} {:>8} {:>8} {:>8}", lines.source, lines.code, lines.tests);
    };
    crates.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.source));
    let mut sum = Lines::default();
    for (name, lines) in &crates {
        row(name, lines);
        sum.add(*lines);
    }
    row("all", &sum);
    Ok(())
}

/// The crate of a file under `crates/`, and whether it is one of its tests.
fn place(path: &str) -> Option<(&str, bool)> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    if !rest.ends_with(".rs") {
        return None;
    }
    match rest.split('/').next()? {
        "src" => Some((name, false)),
        "tests" | "benches" | "examples" => Some((name, true)),
        _ => None,
    }
}
