//! `plimsoll export`

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use record::Run;
use report::HlogError;

use crate::args::Common;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};
use crate::result_file;

const EXAMPLES: &str = "\
Examples:
  plimsoll export last --format json -o run.json
  plimsoll export r17 --format csv | head -3
  plimsoll export r17 --format parquet -o r17.parquet
  plimsoll export r17 --format hlog -o r17.hlog  # for HdrHistogram's tools";

/// Write a run out for other programs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    #[arg(default_value = "last")]
    run: String,
    /// In which form
    #[arg(long, value_enum)]
    format: Format,
    /// Where to; standard output if not given
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
}

/// In which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The document plimsoll.run/1, with every visit
    Json,
    /// One line per visit, stream and operation
    Csv,
    /// The rows of the CSV with types, and null for what is not known
    Parquet,
    /// Latency histograms in HdrHistogram's log format: a tagged interval per visit, stream and
    /// operation
    Hlog,
}

pub fn export(args: &ExportArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let store = order::store_to_read(common)?;
    let run = store.load(&store.resolve(&args.run)?)?;
    let bytes = bytes(&run, args.format)?;
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        None if args.format == Format::Parquet && io::stdout().is_terminal() => {
            let message = "Parquet is nothing for a terminal";
            Err(Failure::new(ExitCode::Usage, message).hint("name a file with `-o FILE`"))
        }
        None => output.print_bytes(&bytes),
        Some(path) => {
            spare_the_store(path, store.path())?;
            result_file::put(path, &bytes, args.force)?;
            output.note(&format!("{} is in {}", run.header.id, path.display()));
            Ok(())
        }
    }
}

fn bytes(run: &Run, format: Format) -> Result<Vec<u8>, Failure> {
    match format {
        Format::Json => json(&report::document(run)).map(String::into_bytes),
        Format::Csv => Ok(report::csv(run).into_bytes()),
        Format::Parquet => report::parquet(run)
            .map_err(|e| Failure::caused(ExitCode::Unexpected, "cannot export the run", e)),
        Format::Hlog => report::hlog(run).map(String::into_bytes).map_err(no_log),
    }
}

fn no_log(error: HlogError) -> Failure {
    match error {
        HlogError::None(_) => Failure::new(ExitCode::Usage, error)
            .hint("`--format csv` has what is known of its latencies"),
        other => Failure::caused(ExitCode::Unexpected, "cannot export the run", other),
    }
}

/// Refuses the store itself and what belongs to it: `--force` is about an older export.
pub fn spare_the_store(path: &Path, store: &Path) -> Result<(), Failure> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (path, store) = (real(path), real(store));
    let name = |path: &Path| path.file_name().unwrap_or_default().as_bytes().to_vec();
    let rest = name(&path).strip_prefix(&name(&store)[..]).map(<[u8]>::to_vec);
    let belongs = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-"));
    if belongs && path.exists() && path.parent() == store.parent() {
        let message = format!("{} is the store of results", path.display());
        return Err(Failure::new(ExitCode::Refused, message).hint("name another file"));
    }
    if is_database(&path) {
        let message = format!("{} is a database, another store of results maybe", path.display());
        return Err(Failure::new(ExitCode::Refused, message)
            .hint("name another file, or remove that one yourself"));
    }
    Ok(())
}

/// By the head of a SQLite file. What a store has of its own may still be in the log beside it.
fn is_database(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut head = [0; MAGIC.len()];
    fs::metadata(path).is_ok_and(|found| found.is_file())
        && File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && head == MAGIC
}
