//! `plimsoll table`

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use explain::view::View;
use record::Run;
use report::table::{LAYOUTS, Misfit};
use store::Store;

use crate::args::Common;
use crate::commands::calibrate::floor_of;
use crate::commands::{show, suites};
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};

const EXAMPLES: &str = "\
Examples:
  plimsoll table                       # the newest run's tables
  plimsoll table r17 --layout classic  # the table as the suite's original prints it
  plimsoll table r17 --layout dd       # the table as dd would print it, if the run is such
  plimsoll table last-1 --layout grid  # every figure of the run before the newest
  plimsoll table r17 --json            # the figures as one document, as of `plimsoll show r17 --json`";

/// Print the tables of a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TableArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    #[arg(default_value = "last")]
    run: String,
    /// Which table
    #[arg(long, value_parser = Layout::parser(), default_value = "auto")]
    layout: Layout,
    /// Print one JSON document (plimsoll.run/1)
    #[arg(long, conflicts_with = "layout")]
    json: bool,
}

/// Which table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The suite's classic table if it has one, and ours.
    #[default]
    Auto,
    /// The suite's classic table; the IOPS by two axes if it has none.
    Classic,
    /// Ours: a line per cell.
    Grid,
    /// As one of the originals prints it.
    Original(&'static report::table::Layout),
}

/// Those that are no original's: name, what it is, which.
const OWN: [(&str, &str, Layout); 3] = [
    ("auto", "The suite's classic table if it has one, and ours", Layout::Auto),
    ("classic", "The suite's classic table; the IOPS by two axes if it has none", Layout::Classic),
    ("grid", "Ours: a line per cell, with latencies and marks", Layout::Grid),
];

impl Layout {
    /// Of the names, which completions and help list.
    fn parser() -> impl TypedValueParser<Value = Self> {
        let own = OWN.into_iter().map(|(name, about, _)| PossibleValue::new(name).help(about));
        let originals =
            LAYOUTS.iter().map(|layout| PossibleValue::new(layout.name).help(layout.about));
        PossibleValuesParser::new(own.chain(originals)).map(|name| Self::of(&name))
    }

    fn of(name: &str) -> Self {
        let own = OWN.into_iter().find(|(known, ..)| *known == name).map(|(.., layout)| layout);
        let original = || report::table::layout(name).map(Self::Original);
        own.or_else(original).unwrap_or_default()
    }
}

pub fn table(args: &TableArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let store = order::store_to_read(common)?;
    let run = store.load(&order::resolve(&store, &args.run, output)?)?;
    if args.json {
        return output.print(&json(&report::document(&run))?);
    }
    output.print(&(text(&run, args.layout)? + &noise(&store, &run, output)?))
}

/// What this machine's noise makes of the table's intervals; empty where it was not calibrated.
pub fn noise(store: &Store, run: &Run, output: &Output) -> Result<String, Failure> {
    let floor = floor_of(store, std::slice::from_ref(run), output)?;
    let said = floor.and_then(|floor| explain::floor::beside(&floor, &View::new(run)));
    let said = said.map(|said| format!("\n{}\n", report::plain(&said.text())));
    Ok(said.unwrap_or_default())
}

/// The tables of a run as text: the original's beside ours. Where the original's does not fit,
/// because what it is about was changed or not measured, it is said.
pub fn both(run: &Run) -> String {
    scaled(run) + &beside(run)
}

/// What stands above the tables of a run whose suite was made smaller or larger.
fn scaled(run: &Run) -> String {
    let scaled = show::plan(run).ok().and_then(|plan| suites::scaled(&plan));
    scaled.map_or(String::new(), |scaled| format!("Scaled: {scaled}.\n\n"))
}

fn beside(run: &Run) -> String {
    let ours = report::table::grid(run);
    match classic(run).map(|layout| layout.print(run)) {
        None => ours,
        Some(Ok(classic)) => format!("{classic}\n{ours}"),
        Some(Err(misfit)) => format!("{misfit}\n\n{ours}"),
    }
}

fn text(run: &Run, layout: Layout) -> Result<String, Misfit> {
    let ours = || report::table::grid(run);
    let tables = match layout {
        Layout::Auto => beside(run),
        Layout::Grid => ours(),
        Layout::Original(layout) => layout.print(run)?,
        Layout::Classic => match classic(run) {
            Some(layout) => layout.print(run)?,
            None => report::table::matrix(run).unwrap_or_else(ours),
        },
    };
    Ok(scaled(run) + &tables)
}

/// The layout of the tool that made the run or whose method its suite is.
fn classic(run: &Run) -> Option<&'static report::table::Layout> {
    if run.header.imported.is_some() {
        return report::table::layout_of_import(run);
    }
    report::table::layout(show::plan(run).ok()?.table.name())
}

#[cfg(test)]
mod tests {
    use suite::model::TableLayout;

    use super::*;

    #[test]
    fn every_layout_that_a_suite_can_name_is_there() {
        for named in TableLayout::ALL {
            let found = report::table::layout(named.name()).is_some();
            assert_eq!(found, named != TableLayout::Plain, "{named:?}");
        }
        assert_eq!(LAYOUTS.len(), TableLayout::ALL.len() - 1);
        for layout in &LAYOUTS {
            assert_eq!(Layout::of(layout.name), Layout::Original(layout));
        }
    }
}
