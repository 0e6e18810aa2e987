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
/// pgbench. What the tool did not say stays unknown. Files are read and stored one after the other,
/// each as a whole. A file that is truncated or of an unknown tool is refused with the number of the
/// line, nothing of it is stored, and the files after it are not read. With `--together`, all files
/// are stored or none.
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
    /// All of it, of one file or of several, are repeats of one test: make one run
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
struct Document {
    schema: &'static str,
    runs: Vec<Summary>,
}

/// A run that was read.
#[derive(Serialize)]
struct Summary {
    /// Its id; null where nothing was stored.
    run: Option<String>,
    suite: String,
    /// What was measured; null where nobody told.
    target: Option<String>,
    tool: String,
    version: Option<String>,
    file: String,
    cells: usize,
    visits: usize,
    warnings: usize,
}

pub fn import(args: &ImportArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    if args.files.iter().filter(|file| is_stdin(file)).count() > 1 {
        let message = "standard input can be read once, and is named more often";
        return Err(Failure::new(ExitCode::Usage, message));
    }
    let mut taker = Taker { args, common, output, store: None, met: Vec::new(), taken: Vec::new() };
    let outcome = if args.together { taker.all_as_one() } else { taker.each() };
    let Taker { taken, .. } = taker;
    if args.json && (outcome.is_ok() || !taken.is_empty()) {
        output.print(&json(&Document { schema: "plimsoll.imported/1", runs: taken })?)?;
    } else if args.dry_run && outcome.is_ok() {
        output.note("nothing was stored");
    }
    outcome
}

/// Takes one file after the other: of what was stored no more is kept than a line.
struct Taker<'a> {
    args: &'a ImportArgs,
    common: &'a Common,
    output: &'a Output,
    /// From the first run on.
    store: Option<Store>,
    /// Content of the files so far.
    met: Vec<(String, &'a Path)>,
    taken: Vec<Summary>,
}

impl<'a> Taker<'a> {
    fn each(&mut self) -> Result<(), Failure> {
        for (number, file) in self.args.files.iter().enumerate() {
            let taken = self.read(file).and_then(|(runs, is_copy)| {
                if let Some(told) = alike_told(file, &runs) {
                    self.output.warning(&told);
                }
                self.take(&runs, is_copy)
            });
            if let Err(failure) = taken {
                self.tell_of_others(number);
                return Err(failure);
            }
        }
        Ok(())
    }

    fn all_as_one(&mut self) -> Result<(), Failure> {
        let mut runs = Vec::new();
        for file in &self.args.files {
            runs.extend(self.read(file)?.0);
        }
        self.take(&[import::together(runs)?], false)
    }

    /// The runs of a file, and whether it is a copy of one before it.
    fn read(&mut self, file: &'a Path) -> Result<(Vec<Run>, bool), Failure> {
        let origin = Origin {
            file: if is_stdin(file) { "stdin".to_owned() } else { file.display().to_string() },
            target: self.args.label.clone(),
            command_line: order::command_line(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let runs = import::read(&bytes(file)?, self.args.tool, &origin)?;
        let content = runs.first().and_then(|run| run.header.imported.as_ref());
        let content = content.map(|imported| imported.xxh3.clone()).unwrap_or_default();
        let first = self.met.iter().find(|(known, _)| *known == content).map(|(_, first)| *first);
        match first {
            Some(first) => self.output.warning(&same_content(self.args, file, first)?),
            None => self.met.push((content, file)),
        }
        Ok((runs, first.is_some()))
    }

    /// Stores the runs of a file, all or none, and says so.
    fn take(&mut self, runs: &[Run], is_copy: bool) -> Result<(), Failure> {
        let mut ids = Vec::new();
        if !self.args.dry_run {
            let store = match &mut self.store {
                Some(store) => store,
                none => none.insert(Store::open(&order::store_path(self.common)?)?),
            };
            if !is_copy {
                said_before(store, runs, self.output)?;
            }
            ids = store.add_runs(runs)?;
        }
        for warning in runs.iter().flat_map(|run| &run.header.warnings) {
            self.output.warning(&warning.text);
        }
        for (k, run) in runs.iter().enumerate() {
            let summary = summary(ids.get(k).cloned(), run);
            if !self.args.json {
                self.output.print(&self.told(&summary, run))?;
            }
            self.taken.push(summary);
        }
        Ok(())
    }

    /// A run as it is told to people: its line, or its table if it is not stored.
    fn told(&self, summary: &Summary, run: &Run) -> String {
        match &summary.run {
            Some(id) => line(id, summary),
            None if self.taken.is_empty() => report::table::grid(run),
            None => format!("\n{}", report::table::grid(run)),
        }
    }

    /// What became of the other files, where one is refused.
    fn tell_of_others(&self, refused: usize) {
        let after = self.args.files.len().saturating_sub(refused + 1);
        let mut told = Vec::new();
        let ids: Vec<&str> = self.taken.iter().filter_map(|read| read.run.as_deref()).collect();
        match ids.as_slice() {
            [] => {}
            [only] => told.push(format!("{only} is stored, of the files before")),
            [first, .., last] => {
                told.push(format!("{first} to {last} are stored, of the files before"));
            }
        }
        if after > 0 {
            let files = counted(after as u64, "file");
            told.push(format!(
                "{files} after it {} not read",
                if after == 1 { "was" } else { "were" }
            ));
        }
        if !told.is_empty() {
            self.output.note(&told.join("; "));
        }
    }
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

/// What looks like repeats may be set-ups that differ in what the tool does not tell: an interval over
/// both would be of neither.
fn alike_told(file: &Path, runs: &[Run]) -> Option<String> {
    let alike = import::alike(runs);
    let file = if is_stdin(file) { "stdin".into() } else { file.display().to_string() };
    (alike > 0).then(|| {
        format!(
            "{file} holds {alike} outputs that differ in their figures alone: each is a run of its own, \
             since nothing in them tells whether the set-up was the same. If they are repeats of one \
             test, import the file with --together"
        )
    })
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
        let file = stack::open_regular(path).map_err(failed)?;
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

fn summary(id: Option<String>, run: &Run) -> Summary {
    let header = &run.header;
    let imported = header.imported.as_ref();
    let of_visits = run.visits.iter().map(|visit| visit.warnings.len()).sum::<usize>();
    Summary {
        run: id,
        suite: header.suite.clone(),
        target: Some(header.target.given.clone()).filter(|given| !given.is_empty()),
        tool: imported.map_or_else(String::new, |i| i.tool.clone()),
        version: imported.and_then(|i| i.version.clone()),
        file: imported.map_or_else(String::new, |i| i.file.clone()),
        cells: run.cells.len(),
        visits: run.visits.len(),
        warnings: header.warnings.len() + of_visits,
    }
}

fn line(id: &str, read: &Summary) -> String {
    let version = read.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
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
