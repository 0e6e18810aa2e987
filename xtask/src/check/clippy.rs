//! No lint speaks up.

use anyhow::{Context, Result};

use super::{Verdict, tail};
use crate::repo::Repo;

pub fn look(repo: &Repo) -> Result<Verdict> {
    let output = repo
        .cargo()
        .args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
        .output()
        .context("starting cargo clippy")?;
    if output.status.success() {
        return Ok(Verdict::default());
    }
    Ok(Verdict::faults(vec![tail(&output, 120)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::scratch::Scratch;

    #[test]
    fn a_needless_return_is_found() {
        let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
        let scratch = Scratch::with(&[
            ("Cargo.toml", manifest),
            ("src/lib.rs", "pub fn a() -> u8 {\n    return 1;\n}\n"),
        ]);
        let verdict = look(&scratch.repo).unwrap();
        assert!(verdict.faults.join("").contains("needless_return"), "{verdict:?}");
    }
}
