//! rustfmt would change nothing.

use anyhow::{Context, Result};

use super::{Verdict, tail};
use crate::repo::Repo;

pub fn look(repo: &Repo) -> Result<Verdict> {
    let output =
        repo.cargo().args(["fmt", "--all", "--check"]).output().context("starting cargo fmt")?;
    if output.status.success() {
        return Ok(Verdict::default());
    }
    Ok(Verdict::faults(vec![tail(&output, 60), "cargo fmt --all mends it".into()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::scratch::Scratch;

    #[test]
    fn misplaced_braces_are_found() {
        let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
        let tidy = Scratch::with(&[("Cargo.toml", manifest), ("src/lib.rs", "fn a() {}\n")]);
        assert_eq!(look(&tidy.repo).unwrap(), Verdict::default());
        let untidy = Scratch::with(&[("Cargo.toml", manifest), ("src/lib.rs", "fn a( )\n{ }\n")]);
        assert!(!look(&untidy.repo).unwrap().faults.is_empty());
    }
}
