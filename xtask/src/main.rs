//! Repository chores: `cargo xtask check`, `generate`, `bench`, `agree`, `instructions`, `lab`, `lines`, `test`.

mod agree;
mod bench;
mod check;
mod generate;
mod instructions;
mod lab;
mod lines;
mod repo;
mod source;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use repo::Repo;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of this repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything a change must pass, beside the tests; names choose some of the checks
    Check {
        /// Which checks; all when none is named
        names: Vec<String>,
        /// Names the checks and what each looks at
        #[arg(long)]
        list: bool,
    },
    /// Writes the pages under docs/ that the program itself knows best
    Generate {
        /// Changes nothing and fails when a page would change
        #[arg(long)]
        check: bool,
    },
    /// Measures Plimsoll, a bare loop and the peers found here, turn by turn on the same target
    Bench(bench::Options),
    /// Compares what Plimsoll and fio say of the same patterns on the same file
    Agree(agree::Options),
    /// Counts the instructions per I/O of the measuring loop on the null twin
    Instructions {
        /// Fails when the count is more than 5 % over the accepted one
        #[arg(long, conflicts_with = "accept")]
        check: bool,
        /// Makes today's count the accepted one
        #[arg(long)]
        accept: bool,
    },
    /// Checks and tests, in stages, and says how long each takes
    Test(test::Options),
    /// Counts the lines of source and tests of each crate
    Lines,
    /// Plays scenarios on real arrays in User-Mode Linux, and asks whether their truths were found
    Lab(lab::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Check { list: true, .. } => {
            check::list();
            Ok(true)
        }
        Chore::Check { names, .. } => check::run(&Repo::here(), &names),
        Chore::Generate { check } => generate::run(&Repo::here(), check),
        Chore::Bench(options) => bench::run(&Repo::here(), &options).map(|()| true),
        Chore::Agree(options) => agree::run(&Repo::here(), &options).map(|()| true),
        Chore::Instructions { check, accept } => instructions::run(&Repo::here(), check, accept),
        Chore::Test(options) => test::run(&Repo::here(), &options),
        Chore::Lines => lines::run(&Repo::here()).map(|()| true),
        Chore::Lab(options) => lab::run(&Repo::here(), &options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
