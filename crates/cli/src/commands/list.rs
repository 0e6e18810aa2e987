//! `plimsoll list`

use clap::Args;
use report::table::Listed;
use serde::Serialize;
use store::{Store, StoreError};

use crate::args::Common;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};

const EXAMPLES: &str = "\
Examples:
  plimsoll list
  plimsoll list --json";

/// List the runs in the store, newest last
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// Print a JSON document (plimsoll.runs/1)
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Runs<'a> {
    schema: &'static str,
    runs: &'a [Listed],
    damaged: &'a [Damaged],
}

/// A run that cannot be read.
#[derive(Debug, Serialize)]
struct Damaged {
    id: String,
    why: String,
}

pub fn list(args: &ListArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    // Before the first run there is no store, and that is no error. A name given is meant.
    let is_new = common.store.is_none() && !order::store_path(common)?.exists();
    let (runs, damaged) =
        if is_new { Default::default() } else { listed(&order::store_to_read(common)?)? };
    if args.json {
        output.print(&json(&Runs {
            schema: "plimsoll.runs/1",
            runs: &runs,
            damaged: &damaged,
        })?)?;
    } else if damaged.is_empty() || !runs.is_empty() {
        output.print(&report::table::list(&runs))?;
    }
    match damaged.as_slice() {
        [] => Ok(()),
        found => Err(of_damaged(found, args.json, output)),
    }
}

/// One line for each, and what can be done about all of them.
fn of_damaged(found: &[Damaged], as_json: bool, output: &Output) -> Failure {
    if !as_json {
        found.iter().for_each(|run| output.warning(&format!("{}: {}", run.id, run.why)));
    }
    let ids: Vec<&str> = found.iter().map(|run| run.id.as_str()).collect();
    let which = if ids.len() == 1 { "run is" } else { "runs are" };
    let message = format!("{} {which} damaged: {}", ids.len(), ids.join(", "));
    Failure::new(ExitCode::Store, message).hint(format!(
        "copy the store away, or take it from a backup; `plimsoll rm {}` removes what is left of \
         what cannot be read, and then the others are as before",
        ids.join(" ")
    ))
}

/// Every run of a store, as listings tell of it; those that cannot be read hide no others.
fn listed(store: &Store) -> Result<(Vec<Listed>, Vec<Damaged>), Failure> {
    let (mut runs, mut damaged) = (Vec::new(), Vec::new());
    for (id, line) in store.lines()? {
        match line.and_then(|run| Ok(Listed::new(run, &store.outline(&id)?))) {
            Ok(listed) => runs.push(listed),
            // Removed since.
            Err(StoreError::NoSuchRun { .. }) => {}
            Err(error @ StoreError::BadValue { .. }) => {
                damaged.push(Damaged { id, why: error.to_string() });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((runs, damaged))
}

/// What a listing says of some runs, whether they can be read or not.
pub fn of(store: &Store, ids: &[String]) -> Result<String, Failure> {
    let (mut runs, damaged) = listed(store)?;
    runs.retain(|listed| ids.contains(&listed.run.id));
    let damaged = damaged.iter().filter(|run| ids.contains(&run.id));
    let lines: String = damaged.map(|run| format!("{}: {}\n", run.id, run.why)).collect();
    let table = if runs.is_empty() { String::new() } else { report::table::list(&runs) };
    Ok(table + &lines)
}
