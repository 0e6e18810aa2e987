//! The one way in which files for the user are written: exports, reports, captures, man pages,
//! generated pages.
//!
//! A file has its name only when it is complete and on the disk, so a kill at any moment leaves the old
//! one or the new one. What is there already is replaced only by `--force`, and then by name:
//! nothing is ever written into a file that was there, or through a link.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat_with};
use rustix::io::Errno;
use store::Taken;

use crate::exit::ExitCode;
use crate::failure::Failure;

/// Writes a whole file or none.
pub fn put(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    may_be_put(path, force)?;
    remove_leftovers(path);
    place(path, bytes, force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists if !force => exists(path),
        _ => failed(path, error),
    })
}

/// Writes several files into a directory, which is made if it is not there. What refuses one refuses
/// all, before the first is written.
pub fn put_all(dir: &Path, files: &[(String, Vec<u8>)], force: bool) -> Result<(), Failure> {
    if is_in_dev(dir) {
        return Err(in_dev(dir));
    }
    fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    files.iter().try_for_each(|(name, _)| may_be_put(&dir.join(name), force))?;
    files.iter().try_for_each(|(name, bytes)| put(&dir.join(name), bytes, force))
}

fn exists(path: &Path) -> Failure {
    Failure::new(ExitCode::Refused, format!("{} exists", path.display()))
        .hint("`--force` replaces it")
}

/// Whether a file of that name would lie in the memory of `/dev`, as one of a mistyped device does.
pub fn is_in_dev(path: &Path) -> bool {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find_map(|path| path.canonicalize().ok());
    there.is_some_and(|there| match there.starts_with("/dev") {
        true => !there.starts_with("/dev/shm"),
        // The same directory mounted elsewhere, as in a rescue system.
        false => stack::is_in_devtmpfs(&there),
    })
}

fn in_dev(path: &Path) -> Failure {
    let message = format!("{} is not written: files in /dev are in memory", path.display());
    Failure::new(ExitCode::Refused, message)
        .hint("a mistyped device? Name a file in another directory; /dev/shm may be used")
}

fn failed(path: &Path, error: io::Error) -> Failure {
    let message = format!("cannot write {}", path.display());
    Failure::caused(ExitCode::Unexpected, message, error)
}

/// Refuses a name that is taken by what may not be replaced. Replacing by name would put a file in
/// the place of a device, and following a link would replace a file that nobody named.
fn may_be_put(path: &Path, force: bool) -> Result<(), Failure> {
    let refused = |what: String, hint: &str| {
        Err(Failure::new(ExitCode::Refused, format!("{} {what}", path.display())).hint(hint))
    };
    let found = fs::symlink_metadata(path);
    if !found.as_ref().is_ok_and(Metadata::is_symlink) {
        spare_stores(path, None)?;
    }
    match found {
        Ok(found) if found.is_symlink() => refused(
            "is a symbolic link, and files are not written through links".to_owned(),
            "name the file itself, or remove the link",
        ),
        Ok(found) if !found.is_file() => refused(
            format!("is {}, not a regular file", kind(&found)),
            "name another file, or leave `-o` out and redirect standard output",
        ),
        Ok(_) | Err(_) if is_in_dev(path) => Err(in_dev(path)),
        Ok(_) if !force => Err(exists(path)),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(path, error)),
    }
}

/// Refuses stores and the names of what lies beside them, also where nothing is there yet: what has
/// such a name when a store is opened is taken for its log. `--force` is about an older result.
///
/// * `in_use`: the store that the result is from.
pub fn spare_stores(path: &Path, in_use: Option<&Path>) -> Result<(), Failure> {
    let refused = |what: String, hint: &str| {
        Err(Failure::new(ExitCode::Refused, format!("{} {what}", path.display())).hint(hint))
    };
    // Before anything of it is looked at.
    if let Some(holder) = stack::write_lease_of(path) {
        let what = format!(
            "is in use: another process has a lease on it: {} (pid {})",
            holder.name, holder.id
        );
        return refused(what, "name another file, or wait until that process ends");
    }
    match store::taken(path, in_use) {
        Some(Taken::Store) => refused("is a store of results".to_owned(), "name another file"),
        Some(Taken::Beside(store)) => refused(
            format!("is a name of the store of results {}", store.display()),
            "name another file: what has this name is taken for a part of that store",
        ),
        None if is_database(path) => refused(
            "is a database, possibly another store of results".to_owned(),
            "name another file, or remove that one yourself",
        ),
        None => Ok(()),
    }
}

/// By the head of a SQLite file.
fn is_database(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut head = [0; MAGIC.len()];
    stack::open_regular(path).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && head == MAGIC
}

fn kind(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () => "something else",
    }
}

fn place(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    let Some(mut file) = unnamed(path) else {
        return place_named(path, bytes, force);
    };
    fill_like(&mut file, bytes, path)?;
    if !force {
        return match give_name(&file, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                place_named(path, bytes, force)
            }
            done => done,
        };
    }
    // No file can be linked over another, so it has a name of its own for a moment.
    let _ = file.try_lock();
    let named = temporaries(path)?.find(|temporary| give_name(&file, temporary).is_ok());
    let Some(temporary) = named else { return place_named(path, bytes, force) };
    fs::rename(&temporary, path).inspect_err(|_| {
        let _ = remove_own(&file, &temporary);
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
    let (mut file, temporary) = create_temporary(path)?;
    // While it is locked nobody takes it for a leftover.
    let _ = file.try_lock();
    let placed = fill_like(&mut file, bytes, path).and_then(|()| match force {
        true => fs::rename(&temporary, path),
        false => place_new(&temporary, path),
    });
    placed.inspect_err(|_| {
        let _ = remove_own(&file, &temporary);
    })
}

/// A new file: `O_EXCL` follows no link and opens nothing that somebody put there.
fn create_temporary(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut last = io::Error::from(io::ErrorKind::InvalidInput);
    for temporary in temporaries(path)? {
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let what = format!("{} is in the way", temporary.display());
                last = io::Error::other(what);
            }
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

const MARK: &str = ".plimsoll-";
const END: &str = ".tmp";

/// How many names are tried where somebody else has them already.
const NAMES: u32 = 8;

/// `.run.json.plimsoll-123.tmp`, and others for the case that this one is taken.
fn temporaries(path: &Path) -> io::Result<impl Iterator<Item = PathBuf>> {
    let file = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    let path = path.to_owned();
    let id = std::process::id();
    let ids = std::iter::once(id.to_string()).chain((1..NAMES).map(move |n| format!("{id}{n:03}")));
    Ok(ids.map(move |id| {
        let mut name = OsString::from(".");
        name.push(&file);
        name.push(format!("{MARK}{id}{END}"));
        path.with_file_name(name)
    }))
}

/// Removes what writers of `path` left that were killed where there are no files without names.
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
    if ours && file.try_lock().is_ok() { remove_own(&file, path) } else { Ok(()) }
}

/// Removes the name of an open file if it is still that file's: another may have taken it.
fn remove_own(file: &File, path: &Path) -> io::Result<()> {
    let (held, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    match (named.dev(), named.ino()) == (held.dev(), held.ino()) {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

/// Whoever could not read the file that is replaced can not read the new one, at no moment.
fn fill_like(file: &mut File, bytes: &[u8], replaced: &Path) -> io::Result<()> {
    let replaced = fs::symlink_metadata(replaced).ok().filter(Metadata::is_file);
    let Some(old) = replaced else { return fill(file, bytes) };
    // Programs with the rights of their owner are not made.
    let mode = old.mode() & 0o777;
    file.set_permissions(Permissions::from_mode(mode & !0o077))?;
    let own = file.metadata()?;
    let is_group = own.gid() == old.gid() || fchown(&*file, None, Some(old.gid())).is_ok();
    if own.uid() != old.uid() {
        // Only root may.
        let _ = fchown(&*file, Some(old.uid()), None);
    }
    // Another group may do what all others may.
    let of_group = if is_group { 0o070 } else { (mode & 0o007) << 3 };
    file.set_permissions(Permissions::from_mode(mode & (0o707 | of_group)))?;
    fill(file, bytes)
}

fn fill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Renames unless the name is taken by now.
fn place_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can. A second name is never given over another.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        done => Ok(done?),
    }
}
