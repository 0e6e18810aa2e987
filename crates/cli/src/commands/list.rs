//! `plimsoll list`

use clap::Args;
use record::RunSummary;
use serde::Serialize;

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
    runs: &'a [RunSummary],
}

pub fn list(args: &ListArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    // Before the first run there is no store, and that is no error. A name given is meant.
    let is_new = common.store.is_none() && !order::store_path(common)?.exists();
    let runs = if is_new { Vec::new() } else { order::store_to_read(common)?.list()? };
    if args.json {
        output.print(&json(&Runs { schema: "plimsoll.runs/1", runs: &runs })?)
    } else {
        output.print(&report::table::list(&runs))
    }
}
