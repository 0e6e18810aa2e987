//! The one way in which files for the user are written: exports, reports, captures, man pages,
//! generated pages.
//!
//! A file has its name only when it is complete and on the disk, so a kill at any moment leaves the old
//! one or the new one. What is there already is replaced only by `--force`, and then by name:
//! nothing is ever written into a file that was there, or through a link.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use store::Taken;

use crate::exit::ExitCode;
use crate::failure::Failure;

/// Writes a whole file or none.
pub fn put(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    may_be_put(path, force)?;
    place(path, bytes, force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists if !force => exists(path),
        _ => failed(path, error),
    })
}

/// Refuses a name at which [`put`] would fail, before the work whose result it is for.
pub fn check(path: &Path, force: bool) -> Result<(), Failure> {
    may_be_put(path, force)?;
    let made = tempfile::tempfile_in(directory_of(path));
    made.map(drop).map_err(|error| failed(path, error))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// Writes several files into a directory, which is made if it is not there. What refuses one refuses
/// all, before the first is written.
pub fn put_all(dir: &Path, files: &[(String, Vec<u8>)], force: bool) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    files.iter().try_for_each(|(name, _)| may_be_put(&dir.join(name), force))?;
    files.iter().try_for_each(|(name, bytes)| put(&dir.join(name), bytes, force))
}

fn refused(path: &Path, what: &str, hint: &str) -> Failure {
    Failure::new(ExitCode::Refused, format!("{} {what}", path.display())).hint(hint)
}

fn exists(path: &Path) -> Failure {
    refused(path, "exists", "`--force` replaces it")
}

fn failed(path: &Path, error: io::Error) -> Failure {
    let message = format!("cannot write {}", path.display());
    Failure::caused(ExitCode::Unexpected, message, error)
}

/// Refuses a name that is taken by what may not be replaced. Replacing by name would put a file in
/// the place of a device or of a link.
fn may_be_put(path: &Path, force: bool) -> Result<(), Failure> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            let hint = "name the file itself, or remove the link";
            Err(refused(path, "is a symbolic link, and files are not written through links", hint))
        }
        Ok(found) if !found.is_file() => {
            let what = if found.is_dir() { "is a directory" } else { "is not a regular file" };
            let hint = "name another file, or leave `-o` out and redirect standard output";
            Err(refused(path, what, hint))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, error)),
        found => {
            spare_stores(path, None)?;
            if found.is_ok() && !force { Err(exists(path)) } else { Ok(()) }
        }
    }
}

/// Refuses stores and the names of what lies beside them, also where nothing is there yet: what has
/// such a name when a store is opened is taken for a part of it. `--force` is about an older result.
///
/// * `in_use`: the store that the result is from.
pub fn spare_stores(path: &Path, in_use: Option<&Path>) -> Result<(), Failure> {
    match store::taken(path, in_use) {
        Some(Taken::Store) => Err(refused(path, "is a store of results", "name another file")),
        Some(Taken::Beside(store)) => {
            let what = format!("is a name of the store of results {}", store.display());
            let hint = "name another file: what has this name is taken for a part of that store";
            Err(refused(path, &what, hint))
        }
        None if is_database(path) => {
            let hint = "name another file, or remove that one yourself";
            Err(refused(path, "is a database, possibly another store of results", hint))
        }
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

fn place(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    // Whoever could not read the file that is replaced can not read the new one, at no moment.
    // Programs with the rights of their owner are not made.
    let old = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
    let old = old.map(|old| Permissions::from_mode(old.permissions().mode() & 0o777));
    let first = if old.is_some() { 0o600 } else { 0o666 };
    let mut new = tempfile::Builder::new();
    new.prefix(".plimsoll-").suffix(".tmp").permissions(Permissions::from_mode(first));
    let mut file = new.tempfile_in(directory_of(path))?;
    file.write_all(bytes)?;
    old.map_or(Ok(()), |old| file.as_file().set_permissions(old))?;
    file.as_file().sync_all()?;
    if force {
        file.persist(path)?
    } else {
        file.persist_noclobber(path)?
    };
    Ok(())
}
