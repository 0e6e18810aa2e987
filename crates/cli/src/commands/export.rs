//! `plimsoll export`

use std::io::{self, IsTerminal};
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
    let run = store.load(&order::resolve(&store, &args.run, output)?)?;
    let bytes = bytes(&run, args.format)?;
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        None if args.format == Format::Parquet && io::stdout().is_terminal() => {
            let message = "Parquet is nothing for a terminal";
            Err(Failure::new(ExitCode::Usage, message).hint("name a file with `-o FILE`"))
        }
        None => output.print_bytes(&bytes),
        Some(path) => {
            result_file::spare_stores(path, Some(store.path()))?;
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
