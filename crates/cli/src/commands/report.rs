//! `plimsoll report`

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use record::Run;
use report::page::{self, Page, Terms};
use store::Store;

use crate::args::Common;
use crate::commands::{calibrate, explain, table};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::Share;
use crate::order;
use crate::output::{Output, json};
use crate::result_file;

const EXAMPLES: &str = "\
Examples:
  plimsoll report -o report.html               # the newest run: figures, verdicts, tables
  plimsoll report r17 r18 r19 -o report.html   # several, compared with the first
  plimsoll report r17 r18 --baseline r18 -o report.html
  plimsoll report --group last -o report.html  # the runs of the newest list of suites
  plimsoll report r17 --json                   # what is drawn (plimsoll.page/1)";

/// The program that draws, where it was built: one HTML file with a place for the data.
#[cfg(page)]
pub const TEMPLATE: Option<&str> = Some(include_str!(env!("PLIMSOLL_PAGE")));
#[cfg(not(page))]
pub const TEMPLATE: Option<&str> = None;

/// Differences up to this do not matter, unless somebody says otherwise.
pub const MARGIN: f64 = 0.03;

/// Draw runs: one HTML file with figures, verdicts and tables, which opens anywhere
///
/// The file needs no network and no other file: it can be mailed, printed, and read in ten years.
/// What the runs mean comes first, each verdict with the figure that shows it. Several runs are
/// drawn side by side, each compared with the first of its suite; another baseline can be chosen on the
/// page.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    #[arg(default_value = "last", value_name = "RUN")]
    runs: Vec<String>,
    /// All runs of a list of suites: the group as `plimsoll list` shows it, or `last`
    #[arg(long, value_name = "GROUP", conflicts_with = "runs")]
    group: Option<String>,
    /// The run that the others are compared with; the first if not given
    #[arg(long, value_name = "RUN")]
    baseline: Option<String>,
    /// Differences up to this do not matter; where the machine's own A/A floor is larger, that
    #[arg(long, value_name = "SHARE", default_value = "3%", allow_hyphen_values = true)]
    margin: Share,
    /// Where to; standard output if not given
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    /// Print one JSON document with what is drawn (plimsoll.page/1)
    #[arg(long, conflicts_with_all = ["output", "force"])]
    json: bool,
}

pub fn report(args: &ReportArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let store = order::store_to_read(common)?;
    let runs = load(args, &store, output)?;
    if args.json {
        return output.print(&json(&draw(args, &store, &runs, output)?)?);
    }
    let place = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if place.is_none() && io::stdout().is_terminal() {
        let message = "a page is nothing for a terminal";
        return Err(Failure::new(ExitCode::Usage, message)
            .hint("name a file with `-o report.html`; `plimsoll table` and `explain` print"));
    }
    if let Some(path) = place {
        result_file::spare_stores(path, Some(store.path()))?;
    }
    let html = html(args, &store, &runs, output)?;
    match place {
        None => output.print_bytes(html.as_bytes()),
        Some(path) => {
            result_file::put(path, html.as_bytes(), args.force)?;
            let ids: Vec<&str> = runs.iter().map(|run| run.header.id.as_str()).collect();
            output.note(&format!("{} in {}", counted(&ids), path.display()));
            Ok(())
        }
    }
}

fn counted(ids: &[&str]) -> String {
    match ids {
        [one] => format!("{one} is"),
        _ if ids.len() <= 6 => format!("{} are", ids.join(", ")),
        _ => format!("{} runs are", ids.len()),
    }
}

/// The runs, the baseline first.
fn load(args: &ReportArgs, store: &Store, output: &Output) -> Result<Vec<Run>, Failure> {
    let mut ids = match &args.group {
        Some(group) => explain::of_group(store, group, output)?,
        None => explain::named(store, &args.runs, output)?,
    };
    if let Some(word) = &args.baseline {
        let baseline = order::resolve(store, word, output)?;
        let Some(at) = ids.iter().position(|id| *id == baseline) else {
            let message = format!("the baseline {baseline} is none of the runs");
            return Err(Failure::new(ExitCode::Usage, message).hint("name it among the runs, too"));
        };
        ids[..=at].rotate_right(1);
    }
    Ok(match args.group {
        Some(_) => order::load_group(store, &ids, output)?,
        None => ids.iter().map(|id| store.load(id)).collect::<Result<Vec<Run>, _>>()?,
    })
}

fn draw(args: &ReportArgs, store: &Store, runs: &[Run], output: &Output) -> Result<Page, Failure> {
    let terms = Terms { group: args.group.is_some(), ..terms(store, runs, args.margin.0, output)? };
    Ok(page::page(runs, &terms))
}

/// The terms of a page: what calibrations of the runs' machines found, and what differences matter.
pub fn terms(store: &Store, runs: &[Run], margin: f64, output: &Output) -> Result<Terms, Failure> {
    let floor = calibrate::floor_of(store, runs, output)?;
    let compare = ::explain::compare::Terms { margin, floor, ..Default::default() };
    Ok(Terms { context: explain::context(store, runs, output)?, compare, group: false })
}

fn html(
    args: &ReportArgs,
    store: &Store,
    runs: &[Run],
    output: &Output,
) -> Result<String, Failure> {
    let Some(template) = TEMPLATE else {
        tell_tables_only(output);
        return Ok(page::tables_only(&tables(runs)));
    };
    let page = draw(args, store, runs, output)?;
    page::html(template, &page)
        .map_err(|error| Failure::caused(ExitCode::Unexpected, "cannot write the page", error))
}

/// Says why there are no figures, and how to get them.
pub fn tell_tables_only(output: &Output) {
    output.warning("this program was built without the page's figures: tables only");
    output.hint("`make build` builds it with them where Node.js 20 and npm are installed");
}

/// A title and its tables for each run.
fn tables(runs: &[Run]) -> Vec<(String, String)> {
    let one = |run: &Run| {
        let header = &run.header;
        let title = format!("{} {}", header.id, order::on(&header.suite, &header.target.given));
        (title, table::both(run))
    };
    runs.iter().map(one).collect()
}
