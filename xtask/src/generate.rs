//! The pages under docs/ that the program itself knows best.
//!
//! `plimsoll __generate DIR` writes them into an empty directory: `cli.md`, from the very
//! definitions that give `--help`, and the schema of what `--json` prints. Here they are put in
//! place or compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::Repo;

/// Where they belong.
const DOCS: &str = "docs";

/// Writes the pages, or with `check` says which would change; whether all is well.
pub fn run(repo: &Repo, check: bool) -> Result<bool> {
    if check {
        let faults = drift(repo)?;
        for fault in &faults {
            println!("{fault}");
        }
        return Ok(faults.is_empty());
    }
    let fresh = fresh_directory(repo)?;
    for name in make(repo, &fresh)? {
        let page = repo.path(DOCS).join(&name);
        if let Some(directory) = page.parent() {
            fs::create_dir_all(directory)
                .with_context(|| format!("making {}", directory.display()))?;
        }
        fs::copy(fresh.join(&name), &page)
            .with_context(|| format!("writing {}", page.display()))?;
        println!("{DOCS}/{}", name.display());
    }
    Ok(true)
}

/// Which pages are not what the program would write today.
pub fn drift(repo: &Repo) -> Result<Vec<String>> {
    let fresh = fresh_directory(repo)?;
    compare(&make(repo, &fresh)?, &fresh, &repo.path(DOCS))
}

fn compare(names: &[PathBuf], fresh: &Path, kept: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for name in names {
        let path = fresh.join(name);
        let today = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let what = match fs::read(kept.join(name)) {
            Ok(old) if old == today => continue,
            Ok(_) => "out of date",
            Err(_) => "missing",
        };
        faults.push(format!("{DOCS}/{} is {what}; cargo xtask generate mends it", name.display()));
    }
    Ok(faults)
}

fn fresh_directory(repo: &Repo) -> Result<PathBuf> {
    let fresh = repo.target_directory().join("generated");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).with_context(|| format!("emptying {}", fresh.display()))?;
    }
    fs::create_dir_all(&fresh).with_context(|| format!("making {}", fresh.display()))?;
    Ok(fresh)
}

/// Lets the program write its pages into an empty directory; their names in it, sorted.
fn make(repo: &Repo, directory: &Path) -> Result<Vec<PathBuf>> {
    // The program that the tests have built: `cargo run` builds another, with fewer features.
    let built = repo
        .cargo()
        .args(["test", "--quiet", "--package", "plimsoll", "--test", "it", "--no-run"])
        .output()
        .context("starting cargo test")?;
    if !built.status.success() {
        bail!("plimsoll does not compile: {}", String::from_utf8_lossy(&built.stderr).trim());
    }
    let output = Command::new(repo.debug_binary("plimsoll"))
        .arg("__generate")
        .arg(directory)
        .output()
        .context("starting plimsoll __generate")?;
    if !output.status.success() {
        bail!("plimsoll __generate failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = Repo::at(directory).files(&["md", "json"])?;
    if names.is_empty() {
        bail!("plimsoll __generate wrote no page");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::scratch::Scratch;

    #[test]
    fn a_page_that_would_change_is_found() {
        let scratch = Scratch::with(&[
            ("fresh/same.md", "a"),
            ("fresh/changed.md", "b"),
            ("fresh/missing.md", "c"),
            ("docs/same.md", "a"),
            ("docs/changed.md", "old"),
        ]);
        let names = ["same.md", "changed.md", "missing.md"].map(PathBuf::from);
        let faults =
            compare(&names, &scratch.repo.path("fresh"), &scratch.repo.path("docs")).unwrap();
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
