//! Runs the proofs and prints what they counted.

use std::time::Instant;

use clap::Parser;
use proof::{Bound, Claim, Effort};

/// What stands above the tables.
const PAGE: &str = "\
# What the methods are held to

Made by `make proof`; do not edit. Each method of [method.md](method.md) is put before simulated devices and series whose
truth is known, from fixed seeds, as often as the column *of* says, and must do what *wanted* says. Some claims are about
methods known to be broken, put to the same test: those must fail, or the test has no teeth. `make test` runs a
shorter count of the same.
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
    /// Write the page of the results to this file too.
    #[arg(long)]
    write: Option<std::path::PathBuf>,
}

#[expect(clippy::print_stdout, reason = "a program's output")]
fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let effort = if arguments.full { Effort::Full } else { Effort::Short };
    let mut page = PAGE.to_owned();
    let mut wrong = 0;
    for proof in proof::proofs().iter().filter(|p| p.name.contains(&arguments.only)) {
        let start = Instant::now();
        println!("{}: {}", proof.name, proof.about);
        page.push_str(&format!("\n## {}\n\n{}\n\n{HEAD}", proof.name, proof.about));
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
            page.push_str(&format!(
                "| {} | {wanted} | {seen} | {trials} | {verdict} |\n",
                claim.what
            ));
        }
        println!("  {:.1} s", start.elapsed().as_secs_f64());
    }
    if let Some(path) = arguments.write {
        std::fs::write(path, page)?;
    }
    anyhow::ensure!(wrong == 0, "{wrong} claims are not as they must be");
    Ok(())
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
