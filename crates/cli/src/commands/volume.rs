//! `plimsoll layer create|serve|status|check|destroy`: volumes of the layer that stay.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use layer::{LayerError, LiveShare, LogVolume, Untouched, VolumeId};
use runner::TargetName;
use serde::Serialize;
use stack::Consent;
use units::Bytes;
use volume::{MountedVolume, ServedVolume, VolumeError, VolumeFile, VolumeOrder, VolumePlan};

use crate::commands::sequence::drawn;
use crate::confirm::confirmed;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::Exception;
use crate::output::{Output, json};
use crate::signals;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll layer create /ssd/v --size 10GiB             # a file that takes 1.7 times that
  plimsoll layer create /dev/sdx --destroy /dev/sdx     # a whole device, whose content is lost
  plimsoll layer serve /ssd/v --socket /run/v.sock      # as a block device (NBD), until Ctrl-C
  plimsoll layer serve /ssd/v --mount /mnt/v            # as the file /mnt/v/volume, for a loop device
  plimsoll layer status /ssd/v                          # how full, and whether it was closed
  plimsoll layer check /ssd/v                           # is all as it was written
  plimsoll layer destroy /ssd/v";

/// The name of the contract of `--json`.
const SCHEMA: &str = "plimsoll.volume/1";
/// Damaged blocks that are told one by one.
const TOLD_MAX: usize = 10;
/// How often a scrub says how far it is.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Make a volume in a new file or on a device
///
/// The file gets all its room at once. Of a device the content is lost, so that `--destroy` must name it;
/// what is mounted, in use or bears a file system is refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CreateArgs {
    /// A file that is not there yet, or a block device
    #[arg(value_name = "FILE|DEVICE")]
    path: PathBuf,
    /// What the volume offers; of a device, if not said, as much as it holds at this fill
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// How full the log is once all of the volume holds data: the fuller, the slower
    #[arg(long, value_name = "SHARE", default_value = "60%")]
    fill: LiveShare,
    /// Say what would be made, and stop
    #[arg(long)]
    dry_run: bool,
    /// This block device's content may be lost
    #[arg(long, value_name = "DEVICE")]
    destroy: Option<PathBuf>,
    /// Write the device although one check failed, or could not be made
    #[arg(long, value_name = "WHAT", value_enum)]
    even_though: Vec<Exception>,
}

/// Serve a volume as a block device (NBD) on a Unix socket, or as a file, until Ctrl-C
///
/// Clients are `nbd-client -unix SOCKET /dev/nbd0`, `qemu-nbd`, `nbdfuse`, `nbdcopy` and others. What a client
/// flushed is durable; what it did not is written within a second. Ctrl-C makes all durable and ends.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("where").args(["socket", "mount"]).required(true).multiple(true)))]
pub struct ServeVolumeArgs {
    /// The file or device of the volume
    #[arg(value_name = "FILE|DEVICE")]
    path: PathBuf,
    /// Where clients of the NBD protocol connect; one that a killed server left is replaced
    #[arg(long, value_name = "SOCKET")]
    socket: Option<PathBuf>,
    /// Show the volume as the file `volume` in this empty directory: for `losetup --direct-io=on -f FILE`
    #[arg(long, value_name = "DIRECTORY")]
    mount: Option<PathBuf>,
}

/// Which volume is looked at.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LookArgs {
    /// The file or device of the volume
    #[arg(value_name = "FILE|DEVICE")]
    path: PathBuf,
    /// Print one JSON document (plimsoll.volume/1)
    #[arg(long)]
    json: bool,
}

/// Remove a volume and all that is in it, for good
///
/// A file is removed; a device only forgets that there is a volume.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DestroyArgs {
    /// The file or device of the volume
    #[arg(value_name = "FILE|DEVICE")]
    path: PathBuf,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// What is known of a volume.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    path: PathBuf,
    /// What it offers.
    size_bytes: u64,
    /// Of these, what holds data.
    live_bytes: u64,
    /// Share of the log's room that holds data.
    fill: f64,
    /// Whether nothing has to be recovered.
    closed: bool,
    /// What recovery found behind the last checkpoint: groups of writes.
    recovered_groups: u64,
    /// Where data are not what was written; `null` if that was not asked.
    damaged: Option<Vec<u64>>,
    /// What else does not agree; `null` if that was not asked.
    faults: Option<Vec<String>>,
}

impl From<VolumeError> for Failure {
    fn from(error: VolumeError) -> Self {
        let code = match &error {
            VolumeError::Refused(_) | VolumeError::Exists { .. } | VolumeError::InUse { .. } => {
                ExitCode::Refused
            }
            VolumeError::Kind { .. } | VolumeError::NoFit { .. } => ExitCode::Usage,
            VolumeError::Layer {
                error: LayerError::CheckpointDamaged { .. } | LayerError::LogDamaged { .. },
                ..
            } => ExitCode::Mismatch,
            _ => ExitCode::Target,
        };
        let hint = error.hint();
        let failure = Self::from_error(code, error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

pub fn create(args: &CreateArgs, output: &Output) -> Result<ExitCode, Failure> {
    let fill = args.fill;
    let path = args.path.display();
    if matches!(TargetName::parse(args.path.as_os_str()), Ok(TargetName::Kind { .. })) {
        let message = format!("{path} names no file or device");
        return Err(
            Failure::new(ExitCode::Usage, message).hint("`layer:` as a target tries it there")
        );
    }
    if args.size.is_none() && !args.path.exists() {
        let message = format!("{path} is not there, and a volume in a new file needs its size");
        return Err(Failure::new(ExitCode::Usage, message).hint("add `--size 10GiB`"));
    }
    let order = VolumeOrder {
        path: args.path.clone(),
        size: args.size,
        fill,
        consent: Consent {
            destroy: args.destroy.iter().cloned().collect(),
            even_though_signature: args.even_though.contains(&Exception::Signature),
            even_though_unchecked: args.even_though.contains(&Exception::Unchecked),
            ..Consent::default()
        },
    };
    let plan = VolumePlan::new(&order, VolumeId(drawn()))?;
    let size = plan.size();
    let written = fill.write_amplification();
    let cost = format!(
        "once it is full, {written:.2} blocks are written for each that is written at random; \
         `plimsoll layer worth` says what that is worth here"
    );
    if args.dry_run {
        let said = plan.describe().iter().map(|line| format!("{line}\n")).collect::<String>();
        output.print(&format!("{said}Makes a volume of {size} there: {cost}.\n"))?;
        return Ok(ExitCode::Ok);
    }
    plan.make()?;
    output.print(&format!("made a volume of {size} in {path}; {cost}\n"))?;
    if fill > LiveShare::ADVISED {
        output.warning("filled beyond 60 %, a log gets slow: see docs/layer.md");
    }
    let name = args.path.file_name().unwrap_or_default().display();
    output.note(&format!("next: `plimsoll layer serve {path} --socket {name}.sock`"));
    Ok(ExitCode::Ok)
}

pub fn serve(args: &ServeVolumeArgs, output: &Output) -> Result<ExitCode, Failure> {
    let path = args.path.display();
    let volume = volume::open(&args.path)?;
    let recovered = volume.recovered();
    if recovered.groups > 0 {
        output.note(&format!(
            "it was not closed: recovered {} writes and trims of {} groups behind the last checkpoint",
            recovered.changes, recovered.groups
        ));
    }
    // From here on a signal is waited for, and none is lost.
    let mut signals = signals::Ends::watch()?;
    let size = volume.size();
    let failed = |error| Failure::caused(ExitCode::Unexpected, "cannot start a thread", error);
    let teller = *output;
    let tell = Box::new(move |line: &str| teller.warning(line));
    let served = ServedVolume::start(volume, tell).map_err(failed)?;
    let mounted = args.mount.as_deref().map(|at| MountedVolume::new(&served, at)).transpose()?;
    let listener = args.socket.as_deref().map(volume::listen).transpose()?;
    listener.map(|listener| served.listen(listener)).transpose().map_err(failed)?;
    let socket = args.socket.iter().map(|socket| socket.display().to_string());
    let file = args.mount.iter().map(|at| at.join("volume").display().to_string());
    let places: Vec<String> = socket.chain(file).collect();
    output.print(&format!("{path}: {size} on {}, until Ctrl-C\n", places.join(" and ")))?;
    if let Some(socket) = &args.socket {
        let socket = socket.display();
        output.note(&format!("a block device of it: `nbd-client -unix {socket} /dev/nbd0`"));
    }
    if let Some(at) = &args.mount {
        let file = at.join("volume");
        let file = file.display();
        output.note(&format!("a block device of it: `losetup --direct-io=on -f --show {file}`"));
    }
    let mut code = signals.wait();
    if let (Some(mounted), Some(at)) = (mounted, &args.mount) {
        let at = at.display();
        // What lies in the cache of a file system on it would be lost.
        if mounted.is_in_use() {
            output.warning(&format!(
                "{at}/volume is in use: unmount what is on it and detach its loop device, then \
                 press Ctrl-C again"
            ));
            code = signals.wait();
        }
        if mounted.is_in_use() {
            output.warning(&format!(
                "{at}/volume was in use to the end: what a file system on it had not written is lost; \
                 unmount it with `umount -l`, and detach its loop device with `losetup -d`"
            ));
        }
        mounted.leave();
    }
    if let Some(socket) = &args.socket {
        // Whoever removed it already did no harm.
        let _ = std::fs::remove_file(socket);
    }
    served.close().map_err(|error| {
        Failure::caused(ExitCode::Target, format!("{path} could not be closed"), error)
            .hint("what was flushed is there: the next start recovers it")
    })?;
    output.note("closed: all that was written to it is durable");
    Ok(code)
}

pub fn status(args: &LookArgs, output: &Output) -> Result<ExitCode, Failure> {
    let document = looked(&args.path, &volume::look(&args.path)?);
    output.print(&if args.json { json(&document)? } else { text(&document) })?;
    Ok(ExitCode::Ok)
}

pub fn check(args: &LookArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut volume = volume::look(&args.path)?;
    let mut document = looked(&args.path, &volume);
    let (begun, mut told) = (Instant::now(), Instant::now());
    let mut tell = |done: u64, all: u64| {
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let left = begun.elapsed().as_secs_f64() * (all - done) as f64 / done as f64;
            output.note(&format!(
                "{:.0} % read, about {left:.0} s left",
                100.0 * done as f64 / all as f64
            ));
        }
        true
    };
    let found = volume
        .scrub(&mut tell)
        .map_err(|error| VolumeError::Layer { path: args.path.clone(), error })?;
    let is_good = found.damaged.is_empty() && found.faults.is_empty();
    document.damaged = Some(found.damaged.iter().map(|at| at.get()).collect());
    document.faults = Some(found.faults);
    output.print(&if args.json { json(&document)? } else { text(&document) })?;
    Ok(if is_good { ExitCode::Ok } else { ExitCode::Mismatch })
}

pub fn destroy(args: &DestroyArgs, output: &Output) -> Result<ExitCode, Failure> {
    let path = args.path.display();
    let content = || Ok(format!("the volume {path} and all that is in it"));
    if !args.yes && !confirmed(&path.to_string(), content, output)? {
        return Ok(ExitCode::Ok);
    }
    volume::destroy(&args.path)?;
    output.note(&format!("removed the volume {path}"));
    Ok(ExitCode::Ok)
}

fn looked(path: &Path, volume: &LogVolume<Untouched<VolumeFile>>) -> Document {
    let recovered = volume.recovered();
    Document {
        schema: SCHEMA,
        path: path.to_path_buf(),
        size_bytes: volume.size().get(),
        live_bytes: volume.live().get(),
        fill: volume.fill(),
        closed: recovered.groups == 0,
        recovered_groups: recovered.groups,
        damaged: None,
        faults: None,
    }
}

fn text(document: &Document) -> String {
    let Document { live_bytes, size_bytes, damaged, faults, .. } = document;
    let (live, size) = (Bytes::new(*live_bytes), Bytes::new(*size_bytes));
    let path = document.path.display();
    let mut lines = Vec::new();
    match (damaged.as_deref(), faults.as_deref()) {
        (Some([]), Some([])) => lines.push(format!("{path} is whole: all {live} are as written.")),
        (Some(damaged), faults) => {
            let faults = faults.unwrap_or_default();
            let counts = format!("blocks of 4 KiB: {}, tables: {}", damaged.len(), faults.len());
            lines.push(format!("{path} is damaged ({counts}). Take a copy before anything else."));
            let places = damaged.iter().take(TOLD_MAX).map(|at| format!("  block at byte {at}"));
            lines.extend(
                places.chain(faults.iter().take(TOLD_MAX).map(|fault| format!("  {fault}"))),
            );
        }
        _ => {}
    }
    let fill = finding::numbers::percent(document.fill);
    lines.push(format!(
        "{path}: a volume of {size}; {live} hold data, which fills its log to {fill}."
    ));
    lines.push(match document.closed {
        true => "Nothing has to be recovered.".to_owned(),
        false => format!(
            "It was not closed. {} groups of writes lie behind its last checkpoint, and are there.",
            document.recovered_groups
        ),
    });
    lines.join("\n") + "\n"
}
