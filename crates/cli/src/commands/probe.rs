//! `plimsoll probe`

use std::path::{Path, PathBuf};

use clap::Args;
use explain::advice::{Advice, Use, advise};
use record::StackTree;
use record::stack::{Layer, What};
use runner::RunError;
use stack::{Host, PathKind, Serials, Target, TargetError};
use units::Bytes;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::{Output, json};
use crate::result_file;

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
    if args.request_size == Bytes::ZERO {
        let message = "--request-size 0 is no request";
        return Err(
            Failure::new(ExitCode::Usage, message).hint("the page of a database: 8KiB, 16KiB")
        );
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
        text.push_str("\nno advice: ");
        text.push_str(nothing_wrong(&tree));
    }
    output.print(&text)
}

/// Why there is no advice.
fn nothing_wrong(tree: &StackTree) -> &'static str {
    let stores = |layer: &Layer| {
        let is_device = !matches!(layer.what, What::FileSystem(_) | What::Controller(_));
        is_device && layer.size_bytes.is_some_and(|size| size > 0)
    };
    if tree.layers.iter().any(stores) && tree.targets.iter().all(|target| !target.on.is_empty()) {
        "of what could be seen nothing is known to be wrong\n"
    } else {
        "no device below could be seen, so nothing is known of any\n"
    }
}

/// What is at a path, if it is there and stores something: nothing is said of anything else.
fn look(host: &Host, path: &Path) -> Result<Target, Failure> {
    let given = path.display();
    let target = match stack::inspect(host, path) {
        Ok(target) => target,
        Err(TargetError::NoParent { .. }) => return Err(missing(path)),
        // What is not there is never made by a probe.
        Err(error @ TargetError::DanglingLink { .. }) => {
            let hint = "what it led to was removed, or is not attached or mounted now: `lsblk` lists \
                        block devices, `findmnt` what is mounted where";
            return Err(Failure::new(ExitCode::Target, error).hint(hint));
        }
        Err(error) => return Err(RunError::from(error).into()),
    };
    let other = match &target.path.kind {
        PathKind::Missing => return Err(missing(path)),
        PathKind::CharacterDevice { .. } => "character device",
        PathKind::Other { name } => name.as_str(),
        _ => return Ok(target),
    };
    let message = format!("{given} is a {other}, wanted a file, a directory or a block device");
    let hint = "`lsblk` lists block devices, `findmnt` what is mounted where";
    Err(Failure::new(ExitCode::Target, message).hint(hint))
}

fn missing(path: &Path) -> Failure {
    let failure = Failure::new(ExitCode::Target, format!("{} does not exist", path.display()));
    let above = path.ancestors().skip(1).find(|above| above.exists());
    match above {
        Some(above) if !above.starts_with("/dev") && above.file_name().is_some() => {
            let above = layout::shell_word(&above.display().to_string());
            failure.hint(format!("`plimsoll probe {above}` shows what is under that"))
        }
        _ => failure.hint("`lsblk` lists block devices, `findmnt` what is mounted where"),
    }
}

fn tree(args: &ProbeArgs) -> Result<StackTree, Failure> {
    let host = Host::this();
    let data = look(&host, &args.path)?;
    let log = args.wal.clone().or_else(|| stack::database_log(&data.path.resolved));
    let mut targets = vec![data];
    targets.extend(log.map(|log| look(&host, &log)).transpose()?);
    let serials = if args.serials { Serials::Plain } else { Serials::Hashed };
    let mut tree = stack::stack_tree(&host, &targets, serials);
    if let [data, log] = tree.targets.as_mut_slice() {
        data.role = Some("data".to_owned());
        log.role = Some("log".to_owned());
    }
    Ok(tree)
}

fn capture(path: &Path, file: &Path, output: &Output) -> Result<(), Failure> {
    look(&Host::this(), path)?;
    let text = stack::capture(path).map_err(|error| match error {
        stack::CaptureError::Target(error) => Failure::from(RunError::from(error)),
        error => Failure::caused(ExitCode::Unexpected, "cannot capture", error),
    })?;
    result_file::put(file, text.as_bytes(), false).map_err(|failure| {
        // What replaces a file elsewhere is no option here.
        match failure.hints_at("`-") {
            true => failure.hint("name a file that is not there yet"),
            false => failure,
        }
    })?;
    let file = file.display();
    output.note(&format!(
        "wrote {file}; read it before you send it: mount points and names are in it"
    ));
    Ok(())
}

/// A piece of advice, folded to the width of a page.
fn told(advice: &Advice) -> String {
    let mut out = format!("\n{} ({})\n", advice.weight().word(), advice.finding.code.name());
    for sentence in advice.sentences() {
        out.push_str(&report::wrapped("   ", &report::plain(&sentence)));
    }
    for command in &advice.commands {
        // A command is one line, however long: it is there to be copied.
        out.push_str(&format!("   $ {}\n", report::plain(command)));
    }
    out
}
