//! `plimsoll list`

use clap::Args;
use record::RunSummary;
use report::table::Listed;
use serde::Serialize;
use store::Store;

use crate::args::Common;
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
}

pub fn list(args: &ListArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    // Before the first run there is no store, and that is no error. A name given is meant.
    let is_new = common.store.is_none() && !order::store_path(common)?.exists();
    let runs = if is_new { Vec::new() } else { listed(&order::store_to_read(common)?)? };
    if args.json {
        output.print(&json(&Runs { schema: "plimsoll.runs/1", runs: &runs })?)
    } else {
        output.print(&report::table::list(&runs))
    }
}

/// Every run of a store, as listings tell of it.
pub fn listed(store: &Store) -> Result<Vec<Listed>, Failure> {
    let told = |run: RunSummary| -> Result<Listed, Failure> {
        let outline = store.outline(&run.id)?;
        Ok(Listed::new(run, &outline))
    };
    store.list()?.into_iter().map(told).collect()
}
