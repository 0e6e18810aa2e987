//! `plimsoll export`

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use record::Run;
use report::HlogError;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat_with};

use crate::args::Common;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};

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
            put(path, &bytes, args.force)?;
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

/// Writes a whole file or none.
pub fn put(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    let exists = || {
        Failure::new(ExitCode::Refused, format!("{} exists", path.display()))
            .hint("`--force` replaces it")
    };
    let failed = |error: io::Error| {
        let message = format!("cannot write {}", path.display());
        Failure::caused(ExitCode::Unexpected, message, error)
    };
    // Replacing by name would put a file in the place of a device.
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let message = format!("{} is not a regular file", path.display());
            return Err(Failure::new(ExitCode::Refused, message)
                .hint("leave `-o` out and redirect standard output"));
        }
        Ok(_) if !force => return Err(exists()),
        _ => {}
    }
    // Through a symbolic link, to what it names.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    remove_leftovers(path);
    place(path, bytes, force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists if !force => exists(),
        _ => failed(error),
    })
}

fn place(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    let Some(mut file) = unnamed(path) else {
        return place_named(path, bytes, force);
    };
    fill(&mut file, bytes)?;
    if !force {
        return match give_name(&file, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                place_named(path, bytes, force)
            }
            done => done,
        };
    }
    // No file can be linked over another, so it has a name of its own for a moment.
    let temporary = temporary(path)?;
    let _ = file.try_lock();
    if give_name(&file, &temporary).is_err() {
        return place_named(path, bytes, force);
    }
    fs::rename(&temporary, path).inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// A file without a name in the directory of `path`: it is gone with this process, however that
/// ends. `None` where the file system has none such.
fn unnamed(path: &Path) -> Option<File> {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    openat(CWD, directory.unwrap_or(Path::new(".")), flags, mode).ok().map(File::from)
}

fn give_name(file: &File, path: &Path) -> io::Result<()> {
    let held = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, held, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// By way of a file that has a name of its own until it is complete and on the disk.
fn place_named(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    let temporary = temporary(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    // While it is locked nobody takes it for a leftover.
    let _ = file.try_lock();
    let placed = fill(&mut file, bytes).and_then(|()| match force {
        true => fs::rename(&temporary, path),
        false => place_new(&temporary, path),
    });
    placed.inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

const MARK: &str = ".plimsoll-";
const END: &str = ".tmp";

/// `.run.json.plimsoll-123.tmp`
fn temporary(path: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!("{MARK}{}{END}", std::process::id()));
    Ok(path.with_file_name(name))
}

/// Removes what exports to `path` left that were killed where there are no files without names.
///
/// Whoever writes one holds its lock. Process ids would not do: another container, or another host
/// of a shared directory, has its own.
fn remove_leftovers(path: &Path) {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let Ok(entries) = fs::read_dir(directory.unwrap_or(Path::new("."))) else { return };
    let target = path.file_name().unwrap_or_default();
    for entry in entries.flatten().filter(|entry| is_temporary(&entry.file_name(), target)) {
        let _ = remove_leftover(&entry.path());
    }
}

fn is_temporary(name: &OsStr, of: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(b".").and_then(|n| n.strip_prefix(of.as_bytes()));
    let id = rest.and_then(|rest| rest.strip_prefix(MARK.as_bytes())?.strip_suffix(END.as_bytes()));
    id.is_some_and(|id| !id.is_empty() && id.iter().all(u8::is_ascii_digit))
}

fn remove_leftover(path: &Path) -> io::Result<()> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let held = file.metadata()?;
    let ours = held.is_file() && held.uid() == rustix::process::geteuid().as_raw();
    if ours && file.try_lock().is_ok() {
        let named = fs::symlink_metadata(path)?;
        if (named.dev(), named.ino()) == (held.dev(), held.ino()) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn fill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Renames unless the name is taken by now.
fn place_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can; then someone may have come between.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(from, to),
        done => Ok(done?),
    }
}
