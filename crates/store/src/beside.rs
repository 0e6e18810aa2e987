//! What lies beside a store under names that follow from its own: SQLite's journal, and locks of runs.
//!
//! Whoever may write to the directory can put something there beforehand. Through a link, or into a
//! file with a second name, nothing is written: the file behind it is somebody's.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Of Linux, on all architectures that Plimsoll is built for but arm, whose own `O_NOFOLLOW` differs.
#[cfg(not(any(target_arch = "arm", target_arch = "aarch64")))]
const O_NOFOLLOW: i32 = 0o400_000;
#[cfg(any(target_arch = "arm", target_arch = "aarch64"))]
const O_NOFOLLOW: i32 = 0o100_000;
const O_NONBLOCK: i32 = 0o4_000;

/// What SQLite puts beside a file; the first two beside stores of earlier programs.
pub(crate) const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// So often a lock is opened that others make and remove meanwhile.
const LOOKS: u32 = 10;

/// A name beside a store.
pub(crate) fn side(store: &Path, end: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Refuses a store beside which SQLite would write to what is not its own.
///
/// * `store`: without links.
pub(crate) fn check(store: &Path) -> Result<(), StoreError> {
    for path in SIDES.map(|end| side(store, end)) {
        // What cannot be looked at SQLite cannot open either, and says so.
        if let Ok(found) = std::fs::symlink_metadata(&path) {
            refuse(&found, &path, store)?;
        }
    }
    Ok(())
}

/// Opens a lock for reading and writing; makes it if it is not there. Nothing in it is changed.
pub(crate) fn open(path: &Path, store: &Path) -> Result<File, StoreError> {
    let failed = |source| StoreError::CannotClaim { path: path.to_owned(), source };
    let open = |is_new: bool| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(is_new);
        options.custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)
    };
    let mut file = Err(io::Error::from(ErrorKind::NotFound));
    for _ in 0..LOOKS {
        // Looked at first: what is no file does something when it is opened.
        let found = std::fs::symlink_metadata(path).ok();
        found.as_ref().map_or(Ok(()), |found| refuse(found, path, store))?;
        file = open(found.is_none());
        // Another process made or removed it just now.
        let is_raced = |error: &io::Error| {
            matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound)
        };
        if !file.as_ref().is_err_and(is_raced) {
            break;
        }
    }
    let file = file.map_err(failed)?;
    refuse(&file.metadata().map_err(failed)?, path, store)?;
    Ok(file)
}

/// Opens a lock for reading, and only if it is a file.
pub(crate) fn read(path: &Path) -> io::Result<File> {
    match std::fs::symlink_metadata(path)?.is_file() {
        true => OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path),
        false => Err(io::Error::from(ErrorKind::InvalidInput)),
    }
}

/// Whether the name is still that of an open file, and of no link to it.
pub(crate) fn is_still(path: &Path, file: &File) -> bool {
    let id = |found: io::Result<Metadata>| found.map(|found| (found.dev(), found.ino())).ok();
    let held = id(file.metadata());
    held.is_some() && held == id(std::fs::symlink_metadata(path))
}

fn refuse(found: &Metadata, path: &Path, store: &Path) -> Result<(), StoreError> {
    let why = if found.is_symlink() {
        "it is a symbolic link".to_owned()
    } else if !found.is_file() {
        "it is no regular file".to_owned()
    } else if found.nlink() > 1 {
        format!("it has {} names (hard links)", found.nlink())
    } else if is_open_to_all(path) && is_strange(found, store) {
        let user = found.uid();
        format!("it belongs to user {user}, in a directory that everybody may write to")
    } else {
        return Ok(());
    };
    Err(not_beside(path.to_owned(), why))
}

pub(crate) const fn not_beside(path: PathBuf, why: String) -> StoreError {
    StoreError::NotBeside { path, why }
}

/// Whether it is neither root's, nor this user's, nor the store's owner's.
fn is_strange(found: &Metadata, store: &Path) -> bool {
    let owner = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid());
    ![Some(0), owner(store), owner(Path::new("/proc/self"))].contains(&Some(found.uid()))
}

/// In a directory of a group its members trust each other; in one that everybody may write to nobody
/// can be trusted, whether or not it is sticky.
fn is_open_to_all(path: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let found = std::fs::metadata(parent.unwrap_or(Path::new(".")));
    found.is_ok_and(|found| found.mode() & 0o002 != 0)
}
