//! `plimsoll rm`

use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use store::Store;

use crate::args::Common;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::order;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  plimsoll rm r17
  plimsoll rm r3 r4 last --yes";

/// Remove runs from the store, for good
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RmArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn rm(args: &RmArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let ids = {
        let store = order::store_to_read(common)?;
        let ids: Result<Vec<_>, _> = args.runs.iter().map(|run| store.resolve(run)).collect();
        let ids = ids?;
        if !args.yes && !agrees(&store, &ids, output)? {
            output.note("nothing was removed");
            return Ok(());
        }
        ids
    };
    let mut store = Store::open(&order::store_path(common)?)?;
    let headers: Result<Vec<_>, _> = ids.iter().map(|id| store.load(id)).collect();
    let headers = headers?;
    store.remove(&ids)?;
    for run in &headers {
        // What is not ours, or cannot be removed, is left and told; the run is removed all the same.
        match runner::remove_left_behind(&run.header) {
            Ok(false) => {}
            Ok(true) => output.note(&format!("removed the files that {} left", run.header.id)),
            Err(error) => output.warning(&error.to_string()),
        }
    }
    output.note(&format!("removed {}", ids.join(", ")));
    Ok(())
}

fn agrees(store: &Store, ids: &[String], output: &Output) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = format!("removing {} needs a yes", ids.join(", "));
        return Err(Failure::new(ExitCode::Refused, message).hint("say it with `--yes`"));
    }
    let runs = store.list()?;
    let doomed: Vec<_> = runs.into_iter().filter(|run| ids.contains(&run.id)).collect();
    output.note(&report::table::list(&doomed));
    output.note("remove for good? [y/N]");
    let mut answer = String::new();
    // What cannot be read is no yes.
    let _ = io::stdin().lock().read_line(&mut answer);
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
