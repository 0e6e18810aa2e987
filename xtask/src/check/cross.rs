//! Everything compiles for aarch64.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Verdict, tail};
use crate::repo::{Repo, find_program};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";

pub fn look(repo: &Repo) -> Result<Verdict> {
    if cfg!(target_arch = "aarch64") {
        return Ok(Verdict::default());
    }
    if let Some(why) = missing(has_rust_target()?, find_program(COMPILER).is_some()) {
        return Ok(Verdict::skipped(why));
    }
    check(repo, TARGET)
}

fn check(repo: &Repo, target: &str) -> Result<Verdict> {
    let output = repo
        .cargo()
        .args(["check", "--workspace", "--quiet", "--target", target])
        .output()
        .context("starting cargo check")?;
    if output.status.success() {
        return Ok(Verdict::default());
    }
    Ok(Verdict::faults(vec![tail(&output, 80)]))
}

/// Whether Rust's library for the target is installed, rustup or not.
fn has_rust_target() -> Result<bool> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .context("starting rustc")?;
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn missing(has_target: bool, has_compiler: bool) -> Option<String> {
    match (has_target, has_compiler) {
        (false, _) => Some(format!("no Rust target {TARGET}; rustup target add {TARGET}")),
        (_, false) => Some(format!(
            "no {COMPILER}, which SQLite is compiled with; package gcc-aarch64-linux-gnu"
        )),
        (true, true) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::scratch::Scratch;

    #[test]
    fn what_is_missing_is_named() {
        assert!(missing(false, true).is_some_and(|why| why.contains("rustup")));
        assert!(missing(true, false).is_some_and(|why| why.contains("gcc-aarch64")));
        assert_eq!(missing(true, true), None);
    }

    #[test]
    fn code_for_one_machine_only_is_found() {
        let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
        let code = "#[cfg(not(target_os = \"none\"))]\npub fn a() -> u8 { missing() }\n";
        let scratch = Scratch::with(&[("Cargo.toml", manifest), ("src/lib.rs", code)]);
        // With the host's own target, so that this runs everywhere.
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let verdict = check(&scratch.repo, &host).unwrap();
        assert!(verdict.faults.join("").contains("missing"), "{verdict:?}");
    }
}
