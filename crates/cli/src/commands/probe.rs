//! `plimsoll probe`

use std::path::{Path, PathBuf};

use clap::Args;
use explain::advice::{Advice, Use, advise};
use record::StackTree;
use runner::RunError;
use stack::{Host, Serials, Target};
use units::Bytes;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::{Output, json};

const EXAMPLES: &str = "\
Examples:
  plimsoll probe /srv/db                    # what is under this directory, and what is wrong with it
  plimsoll probe /dev/md0 --json            # the same of a device, as one document
  plimsoll probe /var/lib/pg --wal /wal/pg  # whether the log has devices of its own
  plimsoll probe /srv --capture srv.tree    # all that was read, for a report of what it gets wrong";

/// Show what is under a path, from file system to bus, and what is wrong with it
///
/// Reads only, and needs no rights; what it could not see without them is listed at the end.
/// Nothing is ever changed: the commands of its advice are for you to judge and to run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ProbeArgs {
    /// A file, a directory or a block device
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Where the log of the database in PATH is, if it is not within
    #[arg(long, value_name = "PATH")]
    wal: Option<PathBuf>,
    /// Bytes of a request that matters: a page of the database
    #[arg(long, value_name = "SIZE", default_value = "16KiB")]
    request_size: Bytes,
    /// Print one JSON document (plimsoll.probe/1)
    #[arg(long)]
    json: bool,
    /// Print serial numbers as they are, not hashed
    #[arg(long)]
    serials: bool,
    /// Write down all that was read of the kernel, serial numbers hashed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "serials", "wal"])]
    capture: Option<PathBuf>,
}

pub fn probe(args: &ProbeArgs, output: &Output) -> Result<(), Failure> {
    if let Some(file) = &args.capture {
        return capture(&args.path, file, output);
    }
    let tree = tree(args)?;
    let found = advise(&tree, Use { request_bytes: args.request_size.get() });
    if args.json {
        return output.print(&json(&report::stack::document(tree, found))?);
    }
    let mut text = report::stack::stack(&tree, report::stack::Detail::Full);
    for advice in &found {
        text.push_str(&told(advice));
    }
    if found.is_empty() {
        text.push_str("\nno advice: of what could be seen nothing is known to be wrong\n");
    }
    output.print(&text)
}

fn tree(args: &ProbeArgs) -> Result<StackTree, Failure> {
    let host = Host::this();
    let inspect = |path: &Path| -> Result<Target, Failure> {
        stack::inspect(&host, path).map_err(|error| RunError::from(error).into())
    };
    let data = inspect(&args.path)?;
    let log = args.wal.clone().or_else(|| stack::database_log(&data.path.resolved));
    let mut targets = vec![data];
    targets.extend(log.map(|log| inspect(&log)).transpose()?);
    let serials = if args.serials { Serials::Plain } else { Serials::Hashed };
    let mut tree = stack::stack_tree(&host, &targets, serials);
    if let [data, log] = tree.targets.as_mut_slice() {
        data.role = Some("data".to_owned());
        log.role = Some("log".to_owned());
    }
    Ok(tree)
}

fn capture(path: &Path, file: &Path, output: &Output) -> Result<(), Failure> {
    let text = stack::capture(path).map_err(|error| match error {
        stack::CaptureError::Target(error) => Failure::from(RunError::from(error)),
        error => Failure::caused(ExitCode::Unexpected, "cannot capture", error),
    })?;
    std::fs::write(file, text).map_err(|error| {
        let message = format!("cannot write {}", file.display());
        Failure::caused(ExitCode::Unexpected, message, error)
    })?;
    let file = file.display();
    output.note(&format!(
        "wrote {file}; read it before you send it: mount points and names are in it"
    ));
    Ok(())
}

/// A piece of advice, folded to the width of a page.
fn told(advice: &Advice) -> String {
    let mut out = format!("\n{} ({})\n", advice.weight.word(), advice.name);
    for sentence in advice.sentences() {
        out.push_str(&report::wrapped("   ", &report::plain(&sentence)));
    }
    for command in &advice.commands {
        // A command is one line, however long: it is there to be copied.
        out.push_str(&format!("   $ {}\n", report::plain(command)));
    }
    out
}
