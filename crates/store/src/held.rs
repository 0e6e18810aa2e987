//! Files of a store, opened to be looked at.
//!
//! Closing any descriptor of a file ends every lock that the process has on it (POSIX), whoever in the
//! process took it. SQLite's locks keep other processes from removing a log that is in use. So what
//! was opened here stays open as long as this process has a store open.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::FileId;

struct Held {
    /// Open stores, and files that are looked at just now.
    users: usize,
    files: Vec<(FileId, Arc<File>)>,
}

static HELD: Mutex<Held> = Mutex::new(Held { users: 0, files: Vec::new() });

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as there is one, nothing is closed.
#[derive(Debug)]
pub(crate) struct User(());

impl User {
    pub(crate) fn new() -> Self {
        held().users += 1;
        Self(())
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut held = held();
        held.users = held.users.saturating_sub(1);
        if held.users == 0 {
            held.files.clear();
        }
    }
}

pub(crate) fn id(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

/// Whether another process has a lock of SQLite's on that file. `false` where that cannot be known.
pub(crate) fn others_have(file: FileId) -> bool {
    let own = i64::from(std::process::id());
    let is_one = |lock: &kernel::Lock| {
        lock.kind == kernel::LockKind::Posix
            && (lock.device, lock.inode) == file
            && lock.process != own
    };
    kernel::locks().is_ok_and(|locks| locks.iter().any(is_one))
}

/// The process that has a lease of that file, and would get a signal that ends it, unless it expects one.
///
/// * `to_write`: if it is opened for writing, too.
pub(crate) fn leased(file: FileId, to_write: bool) -> Option<i64> {
    let own = i64::from(std::process::id());
    let is_one = |lock: &&kernel::Lock| {
        lock.kind == kernel::LockKind::Lease
            && (lock.device, lock.inode) == file
            && (to_write || lock.exclusive || lock.ending)
            && lock.process != own
    };
    kernel::locks().ok()?.iter().find(is_one).map(|lock| lock.process)
}

/// Whether another process has that file open and not that index, so that its log is another one. `None`
/// where locks cannot be seen: this process has some.
pub(crate) fn has_other_log(file: FileId, index: FileId) -> Option<bool> {
    let own = i64::from(std::process::id());
    let locks = kernel::locks().ok()?;
    let holders = |of: FileId| -> BTreeSet<i64> {
        let is_one = |lock: &&kernel::Lock| {
            lock.kind == kernel::LockKind::Posix && (lock.device, lock.inode) == of
        };
        locks.iter().filter(is_one).map(|lock| lock.process).collect()
    };
    let (of_file, of_index) = (holders(file), holders(index));
    of_file.contains(&own).then(|| of_file.difference(&of_index).any(|process| *process != own))
}

/// SQLite's lock of everybody who has a database open, and that of everybody who uses the index of its log.
const OPEN: (i64, i64) = (0x4000_0002, 510);
const INDEXED: (i64, i64) = (128, 1);

/// Whether another process uses an index.
pub(crate) fn is_used(index: &Looked) -> bool {
    kernel::others_lock(&index.file, 0, 0).map_or(true, |lock| lock.is_some())
}

/// Whether a file begins as the index of a log does, or as one that was only made.
pub(crate) fn is_index(file: &Looked) -> bool {
    let mut first = [0; 4];
    match file.read_at(&mut first, 0) {
        Ok(()) => [0, crate::look::INDEX].contains(&u32::from_ne_bytes(first)),
        Err(_) => file.metadata().is_ok_and(|found| found.len() < 4),
    }
}

/// Whether another process has that file open with another index than that, as somebody does who opened it
/// under another name.
pub(crate) fn is_open_otherwise(file: &Looked, index: Option<&Looked>) -> bool {
    let lock = |of: &Looked, (start, length)| {
        kernel::others_lock(&of.file, start, length).unwrap_or_default()
    };
    // Whoever has the file for itself has no index: SQLite says then that the store is locked.
    if lock(file, OPEN) != Some(kernel::LockAccess::Shared) {
        return false;
    }
    if index.is_none_or(|index| lock(index, INDEXED).is_none()) {
        return true;
    }
    // Somebody has it under this name. Whether somebody else has it under another one shows only where
    // the list has them.
    let id_of = |of: &Looked| of.metadata().ok().map(|found| id(&found));
    let (Some(file), Some(index), Ok(locks)) =
        (id_of(file), index.and_then(id_of), kernel::locks())
    else {
        return false;
    };
    let holders = |of: FileId| -> BTreeSet<i64> {
        let is_one = |lock: &&kernel::Lock| {
            lock.kind == kernel::LockKind::Posix && (lock.device, lock.inode) == of
        };
        locks
            .iter()
            .filter(is_one)
            .map(|lock| lock.process)
            .filter(|process| *process > 0)
            .collect()
    };
    let own = i64::from(std::process::id());
    holders(file).difference(&holders(index)).any(|process| *process != own)
}

/// An open file, read from its beginning.
#[derive(Debug)]
pub(crate) struct Looked {
    file: Arc<File>,
    at: u64,
    _user: User,
}

impl Looked {
    /// * `found`: of the name, to find what is open already.
    pub(crate) fn open(
        found: &Metadata,
        open: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<Self> {
        let user = User::new();
        let known = held().files.iter().find(|(known, _)| *known == id(found)).cloned();
        let file = match known {
            Some((_, file)) => file,
            None => Arc::new(open()?),
        };
        Ok(Self { file, at: 0, _user: user })
    }

    /// Keeps it open: it may be one that SQLite has locks on.
    pub(crate) fn hold(self) -> io::Result<Self> {
        let id = id(&self.metadata()?);
        let mut held = held();
        if !held.files.iter().any(|(_, known)| Arc::ptr_eq(known, &self.file)) {
            held.files.push((id, Arc::clone(&self.file)));
        }
        drop(held);
        Ok(self)
    }

    /// The same file, from its beginning.
    pub(crate) fn again(&self) -> Self {
        Self { file: Arc::clone(&self.file), at: 0, _user: User::new() }
    }

    /// The name that it has now. `None` if it has none, or the one that the kernel knows leads to
    /// another file.
    pub(crate) fn name(&self) -> Option<PathBuf> {
        let name = std::fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd())).ok()?;
        let (own, named) = (self.metadata().ok()?, std::fs::symlink_metadata(&name).ok()?);
        (id(&own) == id(&named)).then_some(name)
    }

    pub(crate) fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}

impl Read for Looked {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(bytes, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}
