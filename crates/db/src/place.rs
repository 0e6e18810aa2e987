//! Directories of our own: made, marked, found again, removed.
//!
//! A server has one, besides one for its log where that lies elsewhere, and one for its socket where
//! the path would be too long. All have the same name and the same mark. The directory itself is
//! ours, and the server's user may only pass it: so it cannot exchange the mark, which says what is
//! removed. The process that uses it holds the mark under a lock.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::DbError;
use crate::process::{Stat, User, is_served};

const PREFIX: &str = "plimsoll-db-";
const MARK: &str = "plimsoll.toml";
const VERSION: u32 = 1;
/// No mark of ours is longer.
const MARK_BYTES_MAX: u64 = 64 << 10;

/// The directory's name for a key.
pub(crate) fn name_of(key: u64) -> String {
    format!("{PREFIX}{key:016x}")
}

fn key_of(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let key = u64::from_str_radix(digits, 16).ok()?;
    (path.file_name()?.to_str()? == name_of(key)).then_some(key)
}

/// What the mark says.
#[derive(Debug, Serialize, Deserialize)]
struct Marked {
    version: u32,
    /// In hexadecimal digits, as in the directory's name.
    key: String,
    engine: String,
    /// Numbers of processes mean nothing after a restart of the machine.
    boot: String,
    /// All directories of this server.
    places: Vec<PathBuf>,
    plimsoll: OneProcess,
    /// Added when there is one.
    #[serde(skip_serializing)]
    server: Option<OneProcess>,
}

/// One process, also when its number is given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OneProcess {
    pid: i32,
    start: u64,
}

impl OneProcess {
    fn of(pid: Pid) -> Option<Self> {
        let pid = pid.as_raw_nonzero().get();
        Stat::of(pid).map(|stat| Self { pid, start: stat.start })
    }

    fn is_alive(self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.start == self.start)
    }
}

fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}

/// The directories of a living server. Dropping it removes them.
#[derive(Debug)]
pub(crate) struct Place {
    /// The main one first.
    made: Vec<(PathBuf, Held)>,
    key: u64,
}

/// An open directory and its mark, under our lock.
#[derive(Debug)]
struct Held {
    directory: File,
    mark: File,
}

/// What all below a directory takes; what cannot be looked at takes nothing.
fn size(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        // Links are not followed.
        let about = entry.metadata().ok()?;
        Some(if about.is_dir() { size(&entry.path()) } else { about.blocks() * 512 })
    });
    sizes.sum()
}

impl Place {
    /// What its files take.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.made.iter().map(|(path, _)| size(path)).sum())
    }

    /// Makes the directories; none of them may be there. `user` may pass them.
    pub fn make(
        engine: &str,
        key: u64,
        paths: &[PathBuf],
        user: Option<&User>,
    ) -> Result<Self, DbError> {
        let us =
            OneProcess::of(rustix::process::getpid()).unwrap_or(OneProcess { pid: 0, start: 0 });
        let mark = Marked {
            version: VERSION,
            key: format!("{key:016x}"),
            engine: engine.to_owned(),
            boot: boot(),
            places: paths.to_vec(),
            plimsoll: us,
            server: None,
        };
        let text = toml::to_string(&mark).map_err(DbError::query("write the mark"))?;
        let mut place = Self { made: Vec::new(), key };
        for path in paths {
            let held = Held::make(path, &text, user)?;
            place.made.push((path.clone(), held));
        }
        Ok(place)
    }

    pub fn path(&self) -> &Path {
        self.made.first().map_or(Path::new(""), |(path, _)| path)
    }

    /// A directory for `user` alone in the `which`-th of the directories.
    pub fn room(&self, which: usize, name: &str, user: Option<&User>) -> Result<PathBuf, DbError> {
        let found = self.made.get(which);
        let Some((path, held)) = found else { return Err(not_ours(Path::new(name), "no place")) };
        let room = path.join(name);
        rustix::fs::mkdirat(&held.directory, name, Mode::RWXU)
            .map_err(DbError::file("make", &room))?;
        if let Some(user) = user {
            let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(&held.directory, name, Some(uid), Some(gid), flags)
                .map_err(DbError::file("give away", &room))?;
        }
        Ok(room)
    }

    /// Writes into the marks which process the server is.
    pub fn serves(&self, pid: Pid) -> Result<(), DbError> {
        // Gone already: whoever waits for it will see that.
        let Some(named) = OneProcess::of(pid) else { return Ok(()) };
        let text = format!("\n[server]\npid = {}\nstart = {}\n", named.pid, named.start);
        for (path, held) in &self.made {
            // In one piece: a kill leaves all of it or nothing.
            (&held.mark).write_all(text.as_bytes()).map_err(DbError::file("mark", path))?;
        }
        Ok(())
    }

    /// What was written so far goes to the device: it is not to disturb what is measured.
    pub fn sync(&self) -> Result<(), DbError> {
        for (path, held) in &self.made {
            rustix::fs::syncfs(&held.directory).map_err(DbError::file("sync", path))?;
        }
        Ok(())
    }

    pub fn remove(mut self) -> Result<(), DbError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), DbError> {
        let key = self.key;
        let made = std::mem::take(&mut self.made);
        // The main one last: it knows the others.
        made.into_iter().rev().map(|(path, held)| held.clear(&path, key)).fold(Ok(()), Result::and)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nobody is there to be told; what stays is found by its mark.
        let _ = self.clear();
    }
}

impl Held {
    fn make(path: &Path, text: &str, user: Option<&User>) -> Result<Self, DbError> {
        DirBuilder::new().mode(0o700).create(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => DbError::Exists(path.to_path_buf()),
            _ => DbError::file("make", path)(error),
        })?;
        Self::mark(path, text, user).inspect_err(|_| {
            // Without its mark it would be nobody's. Only what was just made: nothing else is in it.
            let _ = std::fs::remove_file(path.join(MARK));
            let _ = std::fs::remove_dir(path);
        })
    }

    fn mark(path: &Path, text: &str, user: Option<&User>) -> Result<Self, DbError> {
        let directory = open_directory(path)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mark = rustix::fs::openat(&directory, MARK, flags, Mode::RUSR | Mode::WUSR)
            .map_err(DbError::file("mark", path))?;
        let mut mark = File::from(mark);
        // Where there are no locks, the mark's process number must do.
        let _ = rustix::fs::flock(&mark, FlockOperation::LockExclusive);
        // Only now: an empty mark is nobody's, so nobody removes what is not yet locked.
        mark.write_all(text.as_bytes()).map_err(DbError::file("mark", path))?;
        if let Some(user) = user {
            let group = Some(Gid::from_raw(user.gid));
            rustix::fs::fchown(&directory, None, group).map_err(DbError::file("open", path))?;
            let mode = Mode::RWXU | Mode::XGRP;
            rustix::fs::fchmod(&directory, mode).map_err(DbError::file("open", path))?;
        }
        Ok(Self { directory, mark })
    }

    /// Opens one that is there, and locks it, if it is one of ours that nobody uses.
    fn open(path: &Path, key: u64) -> Result<(Self, Marked), DbError> {
        let refuse = |why: &str| Err(not_ours(path, why));
        if key_of(path) != Some(key) {
            return refuse("its name is not of that key");
        }
        let directory = open_directory(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mark = match rustix::fs::openat(&directory, MARK, flags, Mode::empty()) {
            Ok(mark) => File::from(mark),
            Err(Errno::NOENT | Errno::LOOP) => return refuse("it has no mark"),
            Err(errno) => return Err(DbError::file("read the mark of", path)(errno)),
        };
        let about = mark.metadata().map_err(DbError::file("read the mark of", path))?;
        let own = rustix::process::geteuid().as_raw();
        if !about.is_file() || about.uid() != own || about.nlink() != 1 {
            return refuse("its mark is not a file of ours alone");
        }
        let locked = rustix::fs::flock(&mark, FlockOperation::NonBlockingLockExclusive);
        let in_use = || Err(DbError::InUse(path.to_path_buf()));
        if locked == Err(Errno::WOULDBLOCK) {
            return in_use();
        }
        let mut text = String::new();
        let read = (&mark).take(MARK_BYTES_MAX).read_to_string(&mut text);
        read.map_err(DbError::file("read the mark of", path))?;
        let Ok(marked) = toml::from_str::<Marked>(&text) else {
            return refuse("its mark cannot be read");
        };
        if marked.version != VERSION || marked.key != format!("{key:016x}") {
            return refuse("its mark is of another version or key");
        }
        if locked.is_err() && marked.boot == boot() && marked.plimsoll.is_alive() {
            return in_use();
        }
        Ok((Self { directory, mark }, marked))
    }

    /// Removes the directory, the mark last: what a kill leaves half removed is still known as ours.
    fn clear(self, path: &Path, key: u64) -> Result<(), DbError> {
        if key_of(path) != Some(key) {
            return Err(not_ours(path, "its name is not of that key"));
        }
        // The open directory, whatever its path names by now. No link below is followed.
        let inside = PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()));
        let since = Instant::now();
        // Children of a server that was killed may still write their last.
        while let Err(error) = empty(&inside) {
            if since.elapsed() > Duration::from_secs(5) {
                return Err(DbError::file("empty", path)(error));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        rustix::fs::unlinkat(&self.directory, MARK, AtFlags::empty())
            .map_err(DbError::file("remove the mark of", path))?;
        drop(self.mark);
        // Not recursive: another's directory that has come to be there stays.
        std::fs::remove_dir(path).map_err(DbError::file("remove", path))
    }
}

/// Removes all but the mark.
fn empty(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == MARK {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn open_directory(path: &Path) -> Result<File, DbError> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    opened.map(File::from).map_err(DbError::file("open", path))
}

fn not_ours(path: &Path, why: &str) -> DbError {
    DbError::NotOurs(path.to_path_buf(), why.to_owned())
}

/// A directory that a killed run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftDatabase {
    /// Where it is.
    pub path: PathBuf,
    /// The run's number.
    pub key: u64,
}

/// Directories directly under `on` that a killed run left: by name and mark ours, and held by no
/// living process. Sorted by path.
pub fn left_behind(on: &Path) -> Vec<LeftDatabase> {
    let entries = std::fs::read_dir(on).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let named = directories.filter_map(|entry| {
        let path = entry.path();
        key_of(&path).map(|key| LeftDatabase { path, key })
    });
    let mut left: Vec<_> = named.filter(|left| Held::open(&left.path, left.key).is_ok()).collect();
    left.sort_by(|one, other| one.path.cmp(&other.path));
    left
}

/// Removes what a killed run left, at all its places: ends its server if that still runs, then removes
/// the directories. Whatever is not by name and mark that run's stays.
pub fn remove(left: &LeftDatabase) -> Result<(), DbError> {
    let (held, marked) = Held::open(&left.path, left.key)?;
    if let Some(server) = marked.server.filter(|_| marked.boot == boot()) {
        end(server)?;
    }
    // What its server or its maker has started ends by itself. If its files went first, a PostgreSQL
    // would end in a panic and leave its shared memory.
    let since = Instant::now();
    while is_served(&left.path) && since.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50));
    }
    for path in marked.places.iter().filter(|path| **path != left.path) {
        match Held::open(path, left.key) {
            Ok((other, _)) => other.clear(path, left.key)?,
            // Removed before, or no longer ours: not a reason to leave the rest.
            Err(DbError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(DbError::NotOurs(..)) => {}
            Err(error) => return Err(error),
        }
    }
    held.clear(&left.path, left.key)
}

/// Ends a server whose parent is gone. QUIT has PostgreSQL give its shared memory back, and MariaDB
/// end as well.
fn end(server: OneProcess) -> Result<(), DbError> {
    for signal in [Signal::QUIT, Signal::KILL] {
        let since = Instant::now();
        while server.is_alive() {
            if since.elapsed() > Duration::from_secs(5) {
                break;
            }
            if let Some(pid) = Pid::from_raw(server.pid) {
                // A failure: it has just ended.
                let _ = rustix::process::kill_process(pid, signal);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    if server.is_alive() { Err(DbError::NotEnded(server.pid)) } else { Ok(()) }
}
