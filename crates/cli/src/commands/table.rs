//! `plimsoll table`

use clap::{Args, ValueEnum};
use explain::view::View;
use record::Run;
use store::Store;

use crate::args::Common;
use crate::commands::calibrate::floor_of;
use crate::commands::show;
use crate::failure::Failure;
use crate::order;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  plimsoll table                       # the newest run's tables
  plimsoll table r17 --layout classic  # the table as the suite's original prints it
  plimsoll table last-1 --layout grid  # every figure of the run before the newest";

/// Print the tables of a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TableArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    #[arg(default_value = "last")]
    run: String,
    /// Which table
    #[arg(long, value_enum, default_value_t)]
    layout: Layout,
}

/// Which table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// The suite's classic table if it has one, and ours
    #[default]
    Auto,
    /// The suite's classic table; the IOPS by two axes if it has none
    Classic,
    /// Ours: a line per cell, with latencies and marks
    Grid,
}

pub fn table(args: &TableArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let store = order::store_to_read(common)?;
    let run = store.load(&store.resolve(&args.run)?)?;
    output.print(&(text(&run, args.layout) + &noise(&store, &run)?))
}

/// What this machine's noise makes of the table's intervals; empty where it was not calibrated.
pub fn noise(store: &Store, run: &Run) -> Result<String, Failure> {
    let floor = floor_of(store, std::slice::from_ref(run))?;
    let said = floor.and_then(|floor| floor.beside(&View::new(run)));
    Ok(said.map(|said| format!("\n{}\n", report::plain(&said))).unwrap_or_default())
}

/// The tables of a run as text.
pub fn text(run: &Run, layout: Layout) -> String {
    let ours = || report::table::grid(run);
    match (layout, classic(run)) {
        (Layout::Grid, _) | (Layout::Auto, None) => ours(),
        (Layout::Auto, Some(classic)) => format!("{classic}\n{}", ours()),
        (Layout::Classic, Some(classic)) => classic,
        (Layout::Classic, None) => report::table::matrix(run).unwrap_or_else(ours),
    }
}

fn classic(run: &Run) -> Option<String> {
    let layout = show::plan(run).ok()?.table;
    match layout {
        suite::model::TableLayout::Plain => None,
        suite::model::TableLayout::BmFlash => Some(report::table::bm_flash(run)),
    }
}
