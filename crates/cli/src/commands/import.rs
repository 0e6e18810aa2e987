//! `plimsoll import`

use std::fmt::Write;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use import::{ImportError, Origin, Tool};
use record::Run;
use serde::Serialize;
use store::Store;

use crate::args::Common;
use crate::commands::suites::counted;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::input;
use crate::order;
use crate::output::{Output, json};

const EXAMPLES: &str = "\
Examples:
  plimsoll import randread.json                # of fio --output-format=json+
  plimsoll import db01.bonnie --label /mnt/wal # bonnie++ does not say what it measured
  plimsoll import --together seek.1 seek.2 seek.3
                                               # three repeats of one test: one run
  plimsoll import old/*.txt --dry-run          # what would be read, and nothing stored";

/// Read what another tool printed, and keep it as a run
///
/// Knows fio, sysbench, bonnie++, bm-flash, IOZone, Orion, xdd, ioping, IOMeter, pg_test_fsync and
/// pgbench. What the tool did not say stays unknown. All files are read before anything is stored:
/// one that was cut short, or that is of no tool known here, is refused with its line, and then
/// nothing of any is stored.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// What a tool printed; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Which tool printed it, instead of finding out
    #[arg(long, value_name = "NAME", value_parser = tools())]
    tool: Option<Tool>,
    /// What was measured, as listings shall name it, instead of what the tool says
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// All of it are repeats of one test: make one run
    #[arg(long)]
    together: bool,
    /// Show what was read, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Print a JSON document (plimsoll.imported/1)
    #[arg(long)]
    json: bool,
}

fn tools() -> impl TypedValueParser<Value = Tool> {
    PossibleValuesParser::new(Tool::ALL.map(Tool::name)).try_map(|name| name.parse::<Tool>())
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    runs: Vec<Summary<'a>>,
}

/// A run that was read.
#[derive(Serialize)]
struct Summary<'a> {
    /// Its id; null where nothing was stored.
    run: Option<&'a str>,
    suite: &'a str,
    /// What was measured; null where nobody told.
    target: Option<&'a str>,
    tool: &'a str,
    version: Option<&'a str>,
    file: &'a str,
    cells: usize,
    visits: usize,
    warnings: usize,
}

pub fn import(args: &ImportArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let (runs, copies) = read_all(args)?;
    let mut ids = Vec::new();
    if !args.dry_run {
        let mut store = Store::open(&order::store_path(common)?)?;
        said_before(&store, &runs, output)?;
        ids = store.add_runs(&runs)?;
    }
    copies.iter().for_each(|copy| output.warning(copy));
    for warning in runs.iter().flat_map(|run| &run.header.warnings) {
        output.warning(&warning.text);
    }
    if args.json {
        let all = runs.iter().enumerate();
        let runs = all.map(|(k, run)| summary(ids.get(k).map(String::as_str), run)).collect();
        return output.print(&json(&Document { schema: "plimsoll.imported/1", runs })?);
    }
    if args.dry_run {
        let tables: Vec<_> = runs.iter().map(report::table::grid).collect();
        output.print(&tables.join("\n"))?;
        output.note("nothing was stored");
        return Ok(());
    }
    let lines: String = ids.iter().zip(&runs).map(|(id, run)| line(id, run)).collect();
    output.print(&lines)
}

/// Every file, before anything is stored, and a sentence for each that another one is a copy of.
fn read_all(args: &ImportArgs) -> Result<(Vec<Run>, Vec<String>), Failure> {
    if args.files.iter().filter(|file| is_stdin(file)).count() > 1 {
        let message = "standard input can be read once, and is named more often";
        return Err(Failure::new(ExitCode::Usage, message));
    }
    let mut runs = Vec::new();
    let mut met: Vec<(String, &Path)> = Vec::new();
    let mut copies = Vec::new();
    for file in &args.files {
        let origin = Origin {
            file: if is_stdin(file) { "stdin".to_owned() } else { file.display().to_string() },
            target: args.label.clone(),
            command_line: order::command_line(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let read = import::read(&bytes(file)?, args.tool, &origin)?;
        let content = read.first().and_then(|run| run.header.imported.as_ref());
        let content = content.map(|imported| imported.xxh3.clone()).unwrap_or_default();
        match met.iter().find(|(known, _)| *known == content) {
            Some((_, first)) => copies.push(same_content(args, file, first)?),
            None => met.push((content, file)),
        }
        runs.extend(read);
    }
    if args.together { Ok((vec![import::together(runs)?], copies)) } else { Ok((runs, copies)) }
}

/// Copies scatter by nothing: an interval made of them would promise what was never measured.
fn same_content(args: &ImportArgs, file: &Path, first: &Path) -> Result<String, Failure> {
    let (file, first) = (file.display(), first.display());
    if args.together {
        let message = format!("{file} is no repeat: it holds the same bytes as {first}");
        let hint = "repeats are outputs of several executions; nothing was stored";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    Ok(format!("{file} holds the same bytes as {first}: the two are one measurement"))
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| {
        let about_kind = input::is_about_kind(&error);
        let message = format!("cannot read {}", path.display());
        let failure = Failure::caused(ExitCode::Usage, message, error);
        if about_kind { failure.hint("`plimsoll import -` reads standard input") } else { failure }
    };
    let mut bytes = Vec::new();
    // One more than may be, so that more can be told from all.
    let most = import::BYTES_MAX + 1;
    if is_stdin(path) {
        io::stdin().lock().take(most).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = input::open(path).map_err(failed)?;
        let expected = file.metadata().map_err(failed)?.len().min(most);
        bytes.reserve_exact(usize::try_from(expected).unwrap_or(0));
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 == most {
        let mib = import::BYTES_MAX >> 20;
        let message = format!("{} is longer than {mib} MiB", path.display());
        return Err(Failure::new(ExitCode::Usage, message)
            .hint("no tool known here prints so much; cut it into several"));
    }
    Ok(bytes)
}

/// That a file was imported already: it is taken again, but hardly on purpose.
fn said_before(store: &Store, runs: &[Run], output: &Output) -> Result<(), Failure> {
    for imported in runs.iter().filter_map(|run| run.header.imported.as_ref()) {
        let before = store.imported_from(&imported.xxh3)?;
        if !before.is_empty() {
            let before = before.join(", ");
            output.warning(&format!("{} was imported before: {before}", imported.file));
        }
    }
    Ok(())
}

fn summary<'a>(id: Option<&'a str>, run: &'a Run) -> Summary<'a> {
    let header = &run.header;
    let imported = header.imported.as_ref();
    let of_visits = run.visits.iter().map(|visit| visit.warnings.len()).sum::<usize>();
    Summary {
        run: id,
        suite: &header.suite,
        target: Some(header.target.given.as_str()).filter(|given| !given.is_empty()),
        tool: imported.map_or("", |i| i.tool.as_str()),
        version: imported.and_then(|i| i.version.as_deref()),
        file: imported.map_or("", |i| i.file.as_str()),
        cells: run.cells.len(),
        visits: run.visits.len(),
        warnings: header.warnings.len() + of_visits,
    }
}

fn line(id: &str, run: &Run) -> String {
    let read = summary(Some(id), run);
    let version = read.version.map(|version| format!(" {version}")).unwrap_or_default();
    let mut out = format!("{id}  {}{version}: ", read.tool);
    // Writing to a string cannot fail.
    let cells = counted(read.cells as u64, "cell");
    let visits = counted(read.visits as u64, "visit");
    let _ = write!(out, "{cells}, {visits} from {}", read.file);
    report::plain(&out) + "\n"
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        let hint = error.hint();
        let failure = Self::new(ExitCode::Usage, error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
