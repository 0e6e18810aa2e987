//! Instructions per I/O of the measuring loop, counted by callgrind.
//!
//! Two runs on the null twin that differ only in how many I/Os they make: the difference has no
//! start, no end and no report in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::repo::{Repo, find_program, in_ci};

/// What is wanted at most.
pub const LIMIT: f64 = 250.0;

/// How far the count may rise above the accepted one, as a factor.
const SLACK: f64 = 1.05;

/// Looking at the machine before a run takes some million instructions more or less from one run
/// to the next; over this many I/Os that is one or two each.
const FEW: u64 = 100_000;
const MANY: u64 = 4_100_000;

/// `bench/instructions.json`.
#[derive(Debug, Deserialize, Serialize)]
struct Accepted {
    per_io: f64,
}

/// Counts, and compares or accepts; whether all is well.
pub fn run(repo: &Repo, check: bool, accept: bool) -> Result<bool> {
    if find_program("valgrind").is_none() {
        println!("instructions: skipped: no valgrind; package valgrind");
        return Ok(!in_ci());
    }
    let directory = repo.target_directory().join("bench");
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let count = count(&repo.release_binary("plimsoll"), &directory)?;
    println!("instructions: {count:.1} per I/O on the null twin");
    let file = repo.path("bench/instructions.json");
    if accept {
        let text =
            serde_json::to_string_pretty(&Accepted { per_io: (count * 10.0).round() / 10.0 })?;
        fs::write(&file, text + "\n").with_context(|| format!("writing {}", file.display()))?;
        return Ok(true);
    }
    if !check {
        return Ok(true);
    }
    let fault = fault(count, accepted(&file)?);
    if let Some(fault) = &fault {
        println!("instructions: {fault}");
    }
    Ok(fault.is_none())
}

fn accepted(file: &Path) -> Result<f64> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let accepted: Accepted =
        serde_json::from_str(&text).with_context(|| format!("reading {}", file.display()))?;
    Ok(accepted.per_io)
}

fn fault(count: f64, accepted: f64) -> Option<String> {
    let most = accepted.min(LIMIT) * SLACK;
    (count > most).then(|| {
        format!(
            "{count:.1} per I/O is more than {most:.1} (accepted {accepted:.1}, limit {LIMIT}, \
             5 % slack); mend it, or accept it with a reason: cargo xtask instructions --accept"
        )
    })
}

/// Instructions per I/O of this plimsoll.
pub fn count(plimsoll: &Path, directory: &Path) -> Result<f64> {
    if !plimsoll.is_file() {
        bail!("no {}; build it with cargo build --release --package plimsoll", plimsoll.display());
    }
    if find_program("valgrind").is_none() {
        bail!("no valgrind");
    }
    let few = collect(plimsoll, directory, FEW)?;
    let many = collect(plimsoll, directory, MANY)?;
    if many <= few {
        bail!("{MANY} I/Os took no more instructions ({many}) than {FEW} ({few})");
    }
    Ok((many - few) as f64 / (MANY - FEW) as f64)
}

fn collect(plimsoll: &Path, directory: &Path, operations: u64) -> Result<u64> {
    let store: PathBuf = directory.join("store-instructions");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(plimsoll)
        .args([
            "run",
            "random-read",
            "--classic",
            "--target",
            "null:",
            "--json",
            "--quiet",
            "--seed",
            "1",
            "--store",
        ])
        .arg(&store)
        .args(["--set", "block_size=4K", "--set", "queue_depth=32", "--set", "threads=1"])
        .args(["--set", "time=1h", "--set", &format!("operations={operations}")])
        .output()
        .context("starting valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("plimsoll under valgrind failed: {}", said.trim());
    }
    collected(&said).with_context(|| format!("no count in what valgrind said: {}", said.trim()))
}

/// `==123== Collected : 4711`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrinds_count_is_found() {
        let said = "==7== Events    : Ir\n==7== Collected : 151966\n==7==\n";
        assert_eq!(collected(said), Some(151_966));
        assert_eq!(collected("==7== no such thing"), None);
    }

    #[test]
    fn a_rise_of_more_than_a_twentieth_is_a_fault() {
        assert!(fault(104.9, 100.0).is_none());
        assert!(fault(105.1, 100.0).is_some());
        // A figure accepted beyond the limit does not move the limit.
        assert!(fault(270.0, 400.0).is_some());
    }
}
