//! `plimsoll layer crash-test`: a process that writes a volume is killed again and again.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use layer::{LayerError, LiveShare, VolumeId};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Serialize;
use stack::Consent;
use stats::random::derive_seed;
use units::{ByteOffset, Bytes};
use volume::{StampedWrites, VolumeError, VolumeOrder, VolumePlan};

use crate::commands::sequence::drawn;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::{Output, json};
use crate::signals::SignalWatch;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll layer crash-test /ssd                # ten kills, some seconds
  plimsoll layer crash-test /ssd --kills 200";

/// The name of the contract of `--json`.
const SCHEMA: &str = "plimsoll.crash-test/1";
const FILE: &str = "plimsoll-crash-test";
const SIZE: Bytes = Bytes::mib(32);
/// A process writes at least so long, and up to twice as long.
const LIFE: Duration = Duration::from_millis(200);
/// Writes between two flushes.
const FLUSH_EVERY: u64 = 20;
const LOOK: Duration = Duration::from_millis(10);
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Kill a process that writes a volume, again and again, and look for what was lost
///
/// Makes a small volume in a file of its own, which is removed at the end. Blocks are written at random, with a
/// flush now and then, and say who they are. After each kill all that was flushed must be there, and no write
/// without those before it; exit code 7 if not. A killed process is no power cut: what it wrote is in the
/// kernel's cache.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CrashTestArgs {
    /// Where the file is made
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// How often to kill
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    kills: u64,
    /// Print one JSON document (plimsoll.crash-test/1)
    #[arg(long)]
    json: bool,
}

/// What is killed.
#[derive(Debug, Args)]
pub struct CrashWriterArgs {
    volume: PathBuf,
    seed: u64,
    first: u64,
}

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    kills: u64,
    /// That are there after the last kill.
    writes: u64,
    /// Writes that were flushed, and are not there.
    lost: u64,
    /// Places that hold anything else than the state after these writes.
    wrong: Vec<ByteOffset>,
}

/// Writes until it is killed, and says what was flushed.
pub fn write(args: &CrashWriterArgs) -> Result<ExitCode, Failure> {
    // It overwrites the volume: only one that was made for that.
    if !args.volume.ends_with(FILE) {
        let message = format!("{} was not made by `crash-test`", args.volume.display());
        return Err(Failure::new(ExitCode::Refused, message));
    }
    let failed = |error| Failure::caused(ExitCode::Target, "the writer failed", error);
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| failed(errno.into()))?;
    let layer = |error| VolumeError::Layer { path: args.volume.clone(), error };
    let mut volume = volume::open(&args.volume)?;
    let stamped = StampedWrites::new(args.seed, SIZE);
    for number in args.first.. {
        let (at, data) = stamped.write(number);
        volume.write(at, &data).map_err(layer)?;
        if number % FLUSH_EVERY == 0 {
            volume.flush().map_err(layer)?;
            // A line each, which is whole or not there.
            std::io::stdout().write_all(format!("{number}\n").as_bytes()).map_err(failed)?;
        }
    }
    Ok(ExitCode::Ok)
}

/// A file that goes with this.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever removed it already did no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn made(directory: &Path) -> Result<Scratch, VolumeError> {
    let (path, fill) = (directory.join(FILE), LiveShare::ADVISED);
    let order =
        VolumeOrder { path: path.clone(), size: Some(SIZE), fill, consent: Consent::default() };
    VolumePlan::new(&order, VolumeId(drawn()))?.make()?;
    Ok(Scratch(path))
}

/// Starts a writer and kills it; what it said it had flushed last.
fn killed(path: &Path, stamped: &StampedWrites, life: Duration) -> std::io::Result<u64> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["layer", "crash-writer"]).arg(path);
    command.args([stamped.seed(), stamped.last() + 1].map(|number| number.to_string()));
    // Ctrl-C is for this process alone, which then says how far it is.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut writer: Child = command.spawn()?;
    let flushed = Arc::new(AtomicU64::new(0));
    let said = writer.stdout.take().map(BufReader::new);
    let kept = Arc::clone(&flushed);
    let listen = move || {
        for line in said.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            if let Ok(number) = line.parse() {
                kept.store(number, Ordering::Relaxed);
            }
        }
    };
    let listener = thread::Builder::new().name("writer".to_owned()).spawn(listen)?;
    let begun = Instant::now();
    // Where flushes are slow, until there was one.
    while writer.try_wait()?.is_none()
        && (begun.elapsed() < life || flushed.load(Ordering::Relaxed) == 0)
    {
        thread::sleep(LOOK);
    }
    // One that ended by itself has said why, and proves nothing.
    let ended = writer.try_wait()?;
    writer.kill()?;
    writer.wait()?;
    let _ = listener.join();
    if let Some(status) = ended {
        return Err(std::io::Error::other(format!("it ended by itself: {status}")));
    }
    Ok(flushed.load(Ordering::Relaxed))
}

pub fn test(args: &CrashTestArgs, output: &Output) -> Result<ExitCode, Failure> {
    let watch = SignalWatch::start()?;
    let scratch = made(&args.directory)?;
    let mut stamped = StampedWrites::new(drawn(), SIZE);
    let mut document = Document { schema: SCHEMA, kills: 0, writes: 0, lost: 0, wrong: Vec::new() };
    let (begun, mut told) = (Instant::now(), Instant::now());
    while document.kills < args.kills && !watch.interrupt().stops() && document.wrong.is_empty() {
        let life = LIFE.mul_f64(
            1.0 + (derive_seed(stamped.seed(), &[0, document.kills]) % 100) as f64 / 100.0,
        );
        let failed = |error| Failure::caused(ExitCode::Unexpected, "the writer failed", error);
        let flushed = killed(&scratch.0, &stamped, life).map_err(failed)?;
        let layer = |error| VolumeError::Layer { path: scratch.0.clone(), error };
        let mut volume = volume::open(&scratch.0)?;
        let read = |at, into: &mut [u8]| match volume.read(at, into) {
            Err(LayerError::BlockDamaged { .. }) => Ok(false),
            read => read.map(|()| true),
        };
        document.wrong = stamped.judge(read).map_err(layer)?;
        volume.close().map_err(layer)?;
        document.kills += 1;
        document.writes = stamped.last();
        document.lost += flushed.saturating_sub(stamped.last());
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let left = begun.elapsed().as_secs_f64() / document.kills as f64
                * (args.kills - document.kills) as f64;
            output.note(&format!(
                "{} kills of {}, about {left:.0} s left",
                document.kills, args.kills
            ));
        }
    }
    let is_good = document.wrong.is_empty() && document.lost == 0;
    output.print(&if args.json { json(&document)? } else { text(&document, &args.directory) })?;
    Ok(match watch.code() {
        _ if !is_good => ExitCode::Mismatch,
        Some(code) => code,
        None => ExitCode::Ok,
    })
}

fn text(document: &Document, directory: &Path) -> String {
    let Document { kills, writes, lost, wrong, .. } = document;
    let place = directory.display();
    match (lost, wrong.as_slice()) {
        (0, []) => format!(
            "A volume in {place} survived {kills} kills: of {writes} writes none that was flushed is lost, and \
             after each kill it was as it had been at one moment.\n"
        ),
        (lost, wrong) => format!(
            "A volume in {place} is damaged after {kills} kills: {lost} writes that were flushed are lost, \
             {} blocks are not what was written.\n",
            wrong.len()
        ),
    }
}
