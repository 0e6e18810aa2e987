//! What lies beside a store under names that follow from its own: SQLite's log and its index, and
//! locks of runs.
//!
//! Whoever may write to the directory can put something there beforehand. Through a link, or into a
//! file with a second name, nothing is written: the file behind it is somebody's.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::StoreError;
use crate::held::{self, Looked};

/// Of Linux, on all architectures that Plimsoll is built for but arm, whose own `O_NOFOLLOW` differs.
#[cfg(not(any(target_arch = "arm", target_arch = "aarch64")))]
const O_NOFOLLOW: i32 = 0o400_000;
#[cfg(any(target_arch = "arm", target_arch = "aarch64"))]
const O_NOFOLLOW: i32 = 0o100_000;
const O_NONBLOCK: i32 = 0o4_000;

/// What SQLite puts beside a file.
pub(crate) const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What is wrong with a file of somebody who is neither root, nor this user, nor the store's owner.
pub(crate) const OF_USER: &str = "it belongs to user";

/// What is wrong with a file that has several.
pub(crate) const NAMES: &str = "names (hard links)";

/// A name beside a store.
pub(crate) fn side(store: &Path, end: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Refuses a store beside which SQLite would write to what is not its own.
pub(crate) fn check(store: &Path) -> Result<(), StoreError> {
    // SQLite goes through a link to the store itself, and puts its own beside what that leads to.
    let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    for path in SIDES.map(|end| side(&store, end)) {
        let why = match std::fs::symlink_metadata(&path) {
            Ok(found) => fault(&found, &path, &store),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            // What cannot be looked at SQLite cannot open either, and says so.
            Err(_) => None,
        };
        if let Some(why) = why {
            return Err(not_beside(path, why));
        }
    }
    Ok(())
}

/// Removes an empty log and an index that somebody left who may read the store and not write it: SQLite makes
/// both and cannot remove them then. Only for root and the store's owner, and only what nobody uses.
pub(crate) fn clear_left(store: &Path) {
    let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let owner = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid());
    let (Some(of_store), Some(own)) = (owner(&store), owner(Path::new("/proc/self"))) else {
        return;
    };
    let [log, index, _] = SIDES.map(|end| side(&store, end));
    if (own != 0 && own != of_store) || !is_open_to_all(&log) {
        return;
    }
    let is_left = |path: &Path| {
        let found = std::fs::symlink_metadata(path).ok()?;
        let is_strange = ![0, of_store, own].contains(&found.uid());
        (found.is_file() && found.nlink() == 1 && is_strange).then_some(found.len())
    };
    // An index, as SQLite begins one, says that the log is SQLite's too.
    let is_index = |file: Looked| held::is_index(&file) && !held::is_used(&file);
    if is_left(&index).is_none() || !look_at(&index).is_ok_and(is_index) {
        return;
    }
    let _ = std::fs::remove_file(&index);
    if is_left(&log) == Some(0) {
        let _ = std::fs::remove_file(&log);
    }
}

/// Refuses a store if another process has a lease on one of its files: SQLite opens them for writing.
pub(crate) fn ask_nobody(store: &Path) -> Result<(), StoreError> {
    let real = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    for file in [real.clone()].into_iter().chain(SIDES.map(|end| side(&real, end))) {
        let found = std::fs::metadata(&file).ok();
        if let Some(process) = found.and_then(|found| held::leased(held::id(&found), true)) {
            let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            let holder = format!("{} (pid {process})", name.trim_end());
            return Err(StoreError::Leased { path: store.to_owned(), file, holder });
        }
    }
    Ok(())
}

/// So often it is looked for another name: who opens a store has its file a moment before its index.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(10);

/// Refuses a store that another process has open under another name: each has a log of its own then.
pub(crate) fn has_one_name(store: &Path) -> Result<(), StoreError> {
    let real = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let is_another = || {
        let file = look_through(&real).and_then(Looked::hold).ok();
        let index = look_at(&side(&real, "-shm")).ok();
        file.is_some_and(|file| held::is_open_otherwise(&file, index.as_ref()))
    };
    for _ in 0..LOOKS {
        if !is_another() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    Err(StoreError::OtherName(store.to_owned()))
}

/// Opens a file beside a store for reading and writing; makes it if it is not there. Nothing in it
/// is changed.
pub(crate) fn open(path: &Path, store: &Path) -> Result<File, StoreError> {
    let failed = |source| StoreError::CannotClaim { path: path.to_owned(), source };
    // Looked at first: what is no file does something when it is opened.
    if let Ok(found) = std::fs::symlink_metadata(path) {
        refuse(&found, path, store)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path).map_err(failed)?;
    refuse(&file.metadata().map_err(failed)?, path, store)?;
    Ok(file)
}

/// Opens a lock for reading, and only if it is a file.
pub(crate) fn read(path: &Path) -> io::Result<File> {
    must_be_file(&std::fs::symlink_metadata(path)?)?;
    read_as(path, O_NOFOLLOW | O_NONBLOCK)
}

/// Opens a file of SQLite's beside a store for reading.
pub(crate) fn look_at(path: &Path) -> io::Result<Looked> {
    let found = std::fs::symlink_metadata(path)?;
    must_be_file(&found)?;
    Looked::open(&found, || read_as(path, O_NOFOLLOW | O_NONBLOCK))?.hold()
}

/// What may be a store, and whose name may be a link. Whoever finds that it is a database holds it.
pub(crate) fn look_through(path: &Path) -> io::Result<Looked> {
    let found = std::fs::metadata(path)?;
    must_be_file(&found)?;
    Looked::open(&found, || read_as(path, O_NONBLOCK))
}

fn read_as(path: &Path, flags: i32) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    must_be_file(&file.metadata()?)?;
    Ok(file)
}

fn must_be_file(found: &Metadata) -> io::Result<()> {
    match found.is_file() {
        true => Ok(()),
        false => Err(io::Error::from(ErrorKind::InvalidInput)),
    }
}

/// Whether the name is still that of an open file, and of no link to it.
pub(crate) fn is_still(path: &Path, file: &File) -> bool {
    let held = file.metadata().map(|found| held::id(&found));
    let named = std::fs::symlink_metadata(path).map(|found| held::id(&found));
    matches!((held, named), (Ok(held), Ok(named)) if held == named)
}

fn refuse(found: &Metadata, path: &Path, store: &Path) -> Result<(), StoreError> {
    match fault(found, path, store) {
        Some(why) => Err(not_beside(path.to_owned(), why)),
        None => Ok(()),
    }
}

pub(crate) const fn not_beside(path: PathBuf, why: String) -> StoreError {
    StoreError::NotBeside { path, why, wanted: "a regular file of the store's" }
}

fn fault(found: &Metadata, path: &Path, store: &Path) -> Option<String> {
    if found.is_symlink() {
        return Some("it is a symbolic link".to_owned());
    }
    if !found.is_file() {
        return Some("it is no regular file".to_owned());
    }
    // 0: its holder removed it just now.
    if found.nlink() > 1 {
        return Some(format!("it has {} {NAMES}", found.nlink()));
    }
    let is_known = || {
        let store = std::fs::metadata(store).ok().map(|store| store.uid());
        let own = std::fs::metadata("/proc/self").ok().map(|own| own.uid());
        [Some(0), store, own].contains(&Some(found.uid()))
    };
    if !is_open_to_all(path) || is_known() {
        return None;
    }
    Some(format!("{OF_USER} {}, in a directory that everybody may write to", found.uid()))
}

/// In a directory of a group its members trust each other; in one that everybody may write to nobody
/// can be trusted, whether or not it is sticky.
fn is_open_to_all(path: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let found = std::fs::metadata(parent.unwrap_or(Path::new(".")));
    found.is_ok_and(|found| found.mode() & 0o002 != 0)
}
