//! Runs the proofs and prints what they counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use clap::Parser;
use proof::{Bound, Claim, Effort, Proof};

/// Above the tables.
const PAGE: &str = "\
# What the methods must achieve

Made by `make proof`; do not edit. Each method of [method.md](method.md) is applied to simulated devices and series whose
true values are known, from fixed seeds, as often as the column *of* says, and must achieve what *wanted* says. Some claims
are about methods that are known to be broken. Those must fail: otherwise the test would prove nothing. `make test` runs a
shorter form of the same.
";

const HEAD: &str = "| claim | wanted | seen | of | |\n|---|---|---|---|---|\n";

/// Runs the proofs of the statistics and prints what they counted.
#[derive(Debug, Parser)]
struct Arguments {
    /// The whole count, not the tests' short form.
    #[arg(long)]
    full: bool,
    /// Only proofs whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Write the results to this page too. Results of proofs that are not run stay in it.
    #[arg(long)]
    write: Option<std::path::PathBuf>,
}

#[expect(clippy::print_stdout, reason = "a program's output")]
fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let effort = if arguments.full { Effort::Full } else { Effort::Short };
    let all = proof::proofs();
    let mut wrong = 0;
    for proof in all.iter().filter(|proof| proof.name.contains(&arguments.only)) {
        let start = Instant::now();
        println!("{}: {}", proof.name, proof.about);
        let mut section = format!("{}\n\n{HEAD}", proof.about);
        for claim in proof::run(proof, effort) {
            let right = claim.is_right(effort);
            wrong += usize::from(!right);
            let (wanted, seen) = text(&claim);
            let verdict = match (right, claim.broken) {
                (true, false) => "holds",
                (true, true) => "fails, as a broken method must",
                (false, false) => "MISSED",
                (false, true) => "HOLDS, though the method is broken",
            };
            let trials = if claim.trials > 0 { claim.trials.to_string() } else { String::new() };
            println!("  {}: {seen} (wanted {wanted}): {verdict}", claim.what);
            section.push_str(&format!(
                "| {} | {wanted} | {seen} | {trials} | {verdict} |\n",
                claim.what
            ));
        }
        println!("  {:.1} s", start.elapsed().as_secs_f64());
        if let Some(path) = &arguments.write {
            // Full proofs take minutes each: what is done is kept.
            put(path, &all, proof.name, section)?;
        }
    }
    anyhow::ensure!(wrong == 0, "{wrong} claims are not as they must be");
    Ok(())
}

/// Puts one section into the page, in the order of the proofs. Sections of proofs that are no more go.
fn put(path: &Path, all: &[Proof], name: &str, section: String) -> anyhow::Result<()> {
    let before = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let mut sections: BTreeMap<&str, &str> =
        before.split("\n## ").skip(1).filter_map(|part| part.split_once("\n\n")).collect();
    sections.insert(name, &section);
    let mut page = PAGE.to_owned();
    for proof in all {
        if let Some(section) = sections.get(proof.name) {
            page.push_str(&format!("\n## {}\n\n{}\n", proof.name, section.trim_end()));
        }
    }
    Ok(std::fs::write(path, page)?)
}

fn text(claim: &Claim) -> (String, String) {
    let number = |value: f64| match claim.trials {
        0 => format!("{value:.4}"),
        _ => format!("{:.2} %", value * 100.0),
    };
    let wanted = match claim.wanted {
        Bound::AtLeast(low) => format!("at least {}", number(low)),
        Bound::AtMost(high) => format!("at most {}", number(high)),
        Bound::Within(low, high) => format!("{} to {}", number(low), number(high)),
    };
    (wanted, number(claim.seen))
}
