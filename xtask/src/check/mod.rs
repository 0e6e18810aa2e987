//! What a change must pass beside the tests. One check per file; each says what is wrong, where,
//! and what is wanted.

mod arrows;
mod banned;
mod clippy;
mod cross;
mod features;
mod format;
mod generated;
mod licences;
mod links;
mod shape;
mod sizes;
mod suites;
mod unsafe_code;
mod words;

use anyhow::{Result, bail};

use crate::repo::{Repo, in_ci};

/// What a check found.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// Each fails the check.
    pub faults: Vec<String>,
    /// Printed only.
    pub warnings: Vec<String>,
    /// Why the check could not be made here; a fault where `CI=true`.
    pub skipped: Option<String>,
}

impl Verdict {
    pub fn faults(faults: Vec<String>) -> Self {
        Self { faults, ..Self::default() }
    }

    pub fn warnings(warnings: Vec<String>) -> Self {
        Self { warnings, ..Self::default() }
    }

    pub fn skipped(why: impl Into<String>) -> Self {
        Self { skipped: Some(why.into()), ..Self::default() }
    }

    fn passes(&self, in_ci: bool) -> bool {
        self.faults.is_empty() && !(in_ci && self.skipped.is_some())
    }
}

/// A check by name.
struct Check {
    name: &'static str,
    about: &'static str,
    look: fn(&Repo) -> Result<Verdict>,
}

/// Quick ones first.
const CHECKS: &[Check] = &[
    Check { name: "format", about: "rustfmt would change nothing", look: format::look },
    Check { name: "arrows", about: "rooms depend downwards only", look: arrows::look },
    Check {
        name: "banned",
        about: "pure rooms reach for no file, clock, process or terminal",
        look: banned::look,
    },
    Check { name: "unsafe", about: "unsafe code is where it may be", look: unsafe_code::look },
    Check { name: "words", about: "no marks of unfinished work", look: words::look },
    Check { name: "sizes", about: "no file grew too large (warns)", look: sizes::look },
    Check {
        name: "shape",
        about: "no more module cycles, long functions and crowded names than are known",
        look: shape::look,
    },
    Check { name: "links", about: "links in the pages lead to files", look: links::look },
    Check { name: "suites", about: "every suite has its page", look: suites::look },
    Check {
        name: "licences",
        about: "dependencies may be used as we use them",
        look: licences::look,
    },
    Check {
        name: "features",
        about: "a build of one crate uses what a build of all has compiled",
        look: features::look,
    },
    Check { name: "clippy", about: "no lint speaks up", look: clippy::look },
    Check { name: "cross", about: "everything compiles for aarch64", look: cross::look },
    Check {
        name: "generated",
        about: "pages made by the program are today's",
        look: generated::look,
    },
];

/// The names of all, in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.name)
}

/// Prints the names and what they are for.
pub fn list() {
    for check in CHECKS {
        println!("{:10} {}", check.name, check.about);
    }
}

/// Runs the named checks, or all; whether all passed.
pub fn run(repo: &Repo, names: &[String]) -> Result<bool> {
    if let Some(unknown) = names.iter().find(|name| CHECKS.iter().all(|check| check.name != **name))
    {
        let known: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        bail!("no check `{unknown}`; there are {}", known.join(", "));
    }
    let mut passed = true;
    for check in CHECKS.iter().filter(|c| names.is_empty() || names.iter().any(|n| n == c.name)) {
        // One check that cannot be made must not hide what the others find.
        let verdict =
            (check.look)(repo).unwrap_or_else(|error| Verdict::faults(vec![format!("{error:#}")]));
        passed &= verdict.passes(in_ci());
        print_verdict(check.name, &verdict);
    }
    Ok(passed)
}

fn print_verdict(name: &str, verdict: &Verdict) {
    let result = match (&verdict.skipped, verdict.faults.len()) {
        (Some(why), _) => format!("skipped: {why}"),
        (None, 0) => "ok".to_owned(),
        (None, count) => format!("failed ({count})"),
    };
    println!("check {name:10} {result}");
    for warning in &verdict.warnings {
        println!("  warning: {warning}");
    }
    for fault in &verdict.faults {
        println!("  {fault}");
    }
}

/// The last lines of a failed program's output, as one fault.
fn tail(output: &std::process::Output, lines: usize) -> String {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_fails_only_where_every_check_must_be_made() {
        let skip = Verdict::skipped("no compiler");
        assert!(skip.passes(false));
        assert!(!skip.passes(true));
        assert!(!Verdict::faults(vec!["x".into()]).passes(false));
        assert!(Verdict::warnings(vec!["x".into()]).passes(true));
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let error = run(&Repo::here(), &["nonsense".into()]).unwrap_err().to_string();
        assert!(error.contains("nonsense") && error.contains("arrows"), "{error}");
    }
}
