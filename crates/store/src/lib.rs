//! Runs in SQLite. Alone knows result SQL.
//!
//! One file holds many runs. A visit is written in one transaction as soon as it was made, so
//! whatever ends the process, at most the visit under way is lost. What was stored is never
//! rewritten (triggers in the schema refuse it); a run's state may change, and whole runs may be
//! removed.

mod beside;
mod blob;
mod calibration;
mod claim;
mod error;
mod expected;
mod held;
mod kept;
mod log;
mod look;
mod mark;
mod migrate;
mod moved;
mod names;
mod outside;
mod read;
mod resolve;
mod seal;
mod write;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::log::Verdict;

pub use crate::blob::BlobError;
pub use crate::calibration::StoredCalibration;
pub use crate::claim::Claim;
pub use crate::error::StoreError;
pub use crate::log::doubt;
pub use crate::names::{Taken, stores_of, taken};
pub use crate::outside::{Outside, is_live};
pub use crate::read::{DamagedRun, Line};

/// How long a statement waits for another process to finish writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The same of one who only wants it for himself.
const ALONE_TIMEOUT: Duration = Duration::from_millis(500);

/// How a store is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// With others, who may write.
    Shared,
    /// With nobody else.
    Alone,
    /// As if the file were the whole store, and nobody changed it.
    FileAlone,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Which file it was when it was opened; `None` before that is known.
    file: Option<FileId>,
    /// Nothing is ever added to it: what was there for others to find is there in any case.
    reads_only: bool,
    /// There was no such file before.
    is_new: bool,
    /// The log stays as it is, whatever is in it: something may be wrong with it.
    keeps_log: bool,
    /// The log and its index, and which files they were when it was opened for writing.
    sides: Vec<(PathBuf, FileId)>,
    /// File and log, to find them when they have other names.
    opened: Option<moved::Opened>,
    /// What the file may begin with.
    expected: expected::Expected,
    /// How long the log was when it was last tried to put it into the file.
    tried: Cell<u64>,
    /// When the file was written as this process put the log into it.
    put: Cell<Option<SystemTime>>,
    /// The file as it was when its log was last seen to be its own.
    seen: Cell<Option<log::Stamp>>,
    /// SQLite found pages that contradict each other: log and file may not fit each other.
    is_hurt: Cell<bool>,
    /// How it shows that its log is not the one that was opened, and whether all is in the file
    /// nevertheless.
    lost: RefCell<Option<(String, bool)>>,
    /// What was not beside it before, and is removed again: SQLite does not.
    made: Vec<PathBuf>,
    _user: held::User,
}

/// Device and inode.
type FileId = (u64, u64);

fn file_id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// So much more in the log, and it is put into the file.
const LOG_MAX: u64 = 4 << 20;

impl Drop for Store {
    fn drop(&mut self) {
        self.remove_made();
        if self.is_there().is_err() || self.kept(true).is_err() || self.is_there().is_err() {
            self.leave();
            return;
        }
        // Who only reads tidies up as well: the log's index that it made is of use to nobody. SQLite
        // does so only where nobody else has the store open.
        if self.is_new && self.is_unused() && self.is_alone() {
            // Nothing came of what it was made for: nothing is left behind.
            // `is_alone` has seen that the name is still this file's.
            let _ = std::fs::remove_file(&self.path);
            return;
        }
        // Others that have it open keep SQLite from doing so, but need not have anything of the log.
        self.empty_log();
        let keep_log = self.keeps_log
            || self.is_hurt.get()
            || !(self.is_log_sound() || self.save())
            || self.log_length() > 0 && self.is_being_written();
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep_log);
    }
}

/// Where the store is if nobody says otherwise: `$XDG_DATA_HOME/plimsoll/plimsoll.db`, else
/// `~/.local/share/plimsoll/plimsoll.db`.
///
/// * `lookup`: the value of an environment variable, so that no test needs to change its own.
/// * `None` when neither variable helps. A relative `XDG_DATA_HOME` does not count (XDG Base
///   Directory Specification, "all paths must be absolute").
pub fn default_path(lookup: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| lookup(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("share")))?;
    Some(data.join("plimsoll").join("plimsoll.db"))
}

/// Refuses pipes and devices before they are opened: opening a pipe waits for someone at its other
/// end, without a word. And names that no store can have.
fn never_a_store(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(StoreError::IsDirectory(path.to_owned())),
        Ok(found) if !found.is_file() => Err(StoreError::NotAStore(path.to_owned())),
        _ => {
            beside::ask_nobody(path).and_then(|()| names::check(path))?;
            beside::clear_left(path);
            Ok(())
        }
    }
}

impl Store {
    /// Opens a store for reading and writing; makes it, and the directories above it, if there
    /// is none; brings an older schema up to date. A file that is not a store is left untouched.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        never_a_store(path)?;
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(|source| StoreError::CannotOpen {
                path: path.to_owned(),
                source: Box::new(source),
            })?;
        }
        let verdict = look::look(path)?;
        let damage = match &verdict {
            Verdict::Damaged(why) => Some(why.clone()),
            Verdict::Behind => Some("the store has more than can be read of it".to_owned()),
            Verdict::Sound | Verdict::Doubt(_) => None,
        };
        if verdict == Verdict::Sound {
            beside::has_one_name(path)?;
        }
        if let Some(why) = damage {
            let log = log_path(&path.canonicalize().unwrap_or_else(|_| path.to_owned()));
            return Err(StoreError::LogDamaged { path: path.to_owned(), log, why });
        }
        let user = held::User::new();
        let is_new = !path.exists();
        let connection = Connection::open_with_flags(
            no_uri(path),
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(|error| StoreError::sql(path, error))?;
        let mut store = Self::of(connection, path, user);
        store.is_new = is_new;
        store.connection.busy_timeout(BUSY_TIMEOUT).map_err(|e| store.sql(e))?;
        // Before any pragma that writes: the file may be someone else's.
        let found = store.schema().map_err(|error| store.or_read_only(error))?;
        // Again, before the first write: SQLite has the log open by now, and keeps it.
        beside::check(&store.path)?;
        store.settle_modes_patiently(found).map_err(|e| store.sql(e))?;
        store.migrate(found)?;
        if (1..mark::MARKED).contains(&found) {
            // So that the file has a mark as soon as may be.
            store.empty_log();
        }
        if let Verdict::Doubt(_) = verdict {
            // What it has is put into the file, so that the doubt is about nothing that is there. Who
            // else has it open keeps that from being done, and then it is done another time.
            let done =
                store.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            drop(done);
        }
        store.file = file_id(&store.path);
        store.sides = sides_of(&store.path);
        store.opened = moved::Opened::of(&store.path);
        if let Some(opened) = &store.opened {
            store.expected.begin(opened, &store.connection);
        }
        store.put.set(store.last_written());
        Ok(store)
    }

    /// Opens a store for reading only, also where its directory may not be written. Nothing is
    /// created or migrated. Of a store whose log may be damaged no file is changed.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        never_a_store(path)?;
        let store = match look::look(path)? {
            Verdict::Sound => {
                beside::has_one_name(path)?;
                Self::read_soundly(path)?
            }
            Verdict::Doubt(_) | Verdict::Damaged(_) => Self::read_carefully(path)?,
            Verdict::Behind => Self::connect_read_only(path, Reading::FileAlone)?,
        };
        let known = migrate::KNOWN;
        match store.schema()? {
            found if found == known => Ok(store),
            0 => Err(StoreError::Empty(path.to_owned())),
            found => Err(StoreError::Older { path: path.to_owned(), found, known }),
        }
    }

    fn of(connection: Connection, path: &Path, user: held::User) -> Self {
        Self {
            connection,
            path: path.to_owned(),
            file: None,
            reads_only: false,
            is_new: false,
            keeps_log: false,
            sides: Vec::new(),
            opened: None,
            expected: expected::Expected::default(),
            tried: Cell::new(0),
            put: Cell::new(None),
            seen: Cell::new(None),
            is_hurt: Cell::new(false),
            lost: RefCell::new(None),
            made: Vec::new(),
            _user: user,
        }
    }

    /// Where the file can be read and not written, SQLite says that it cannot open the log's index.
    fn or_read_only(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::CannotOpen { path, source }
                if self.connection.is_readonly("main").unwrap_or(false) =>
            {
                match source.downcast() {
                    Ok(source) => StoreError::ReadOnly { path, source },
                    Err(source) => StoreError::CannotOpen { path, source },
                }
            }
            error => error,
        }
    }

    fn read_soundly(path: &Path) -> Result<Self, StoreError> {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let [log, index] = ["-wal", "-shm"].map(|end| beside::side(&real, end));
        let missing: Vec<_> = [&log, &index].into_iter().filter(|side| !side.exists()).collect();
        let made: Vec<_> = missing.into_iter().cloned().collect();
        let mut store = Self::connect_read_only(path, Reading::Shared)?;
        // SQLite makes both and cannot remove them then: whoever owns the store would be kept out.
        if store.connection.is_readonly("main").unwrap_or(false) {
            let is_empty = std::fs::metadata(&log).map_or(true, |log| log.len() == 0);
            let is_used = || beside::look_at(&index).is_ok_and(|index| held::is_used(&index));
            if is_empty && path.is_file() && !is_used() {
                return Self::connect_read_only(path, Reading::FileAlone);
            }
            store.made = made;
        }
        match store.schema() {
            // Reading a write-ahead log needs its index beside it. Where that cannot be made
            // and there is no log left over, the file alone is the whole store.
            // No room for it is one such case.
            Err(
                StoreError::CannotOpen { .. }
                | StoreError::ReadOnly { .. }
                | StoreError::Io { .. }
                | StoreError::DiskFull { .. },
            ) if path.is_file()
                && std::fs::metadata(log_path(path)).map_or(true, |log| log.len() == 0) =>
            {
                Self::connect_read_only(path, Reading::FileAlone)
            }
            _ => Ok(store),
        }
    }

    /// Leaves a log as it is, and makes no index beside it if nobody else has the store open.
    fn read_carefully(path: &Path) -> Result<Self, StoreError> {
        let alone = Self::connect_read_only(path, Reading::Alone)?;
        match alone.schema() {
            // Somebody else has it open, or it may not be written, which a lock needs.
            Err(
                StoreError::Locked { .. }
                | StoreError::Io { .. }
                | StoreError::CannotOpen { .. }
                | StoreError::ReadOnly { .. },
            ) => {
                drop(alone);
                let mut store = Self::connect_read_only(path, Reading::Shared)?;
                store.keeps_log = true;
                Ok(store)
            }
            _ => Ok(alone),
        }
    }

    fn connect_read_only(path: &Path, reading: Reading) -> Result<Self, StoreError> {
        let alone = reading == Reading::Alone;
        let user = held::User::new();
        // Who opens it for reading alone makes the log's index and may not remove it. Where the file
        // may not be written SQLite opens it for reading by itself.
        let connection = if reading == Reading::FileAlone {
            let uri = format!("file:{}?immutable=1", escaped(path));
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
        } else {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(no_uri(path), flags)
        };
        let connection = connection.map_err(|error| StoreError::sql(path, error))?;
        let mut store = Self::of(connection, path, user);
        (store.reads_only, store.keeps_log) = (true, alone);
        let set = |timeout: Duration| -> rusqlite::Result<()> {
            store.connection.busy_timeout(timeout)?;
            if alone {
                // Then SQLite keeps the log's index in memory.
                let mode = ("locking_mode", "EXCLUSIVE");
                store.connection.pragma_update_and_check(None, mode.0, mode.1, |_| Ok(()))?;
            }
            store.connection.pragma_update(None, "query_only", true)?;
            store.connection.pragma_update(None, "foreign_keys", true)
        };
        set(if alone { ALONE_TIMEOUT } else { BUSY_TIMEOUT }).map_err(|e| store.sql(e))?;
        Ok(store)
    }

    /// SQLite asks nobody to wait while it changes to WAL, which takes the whole file for a
    /// moment: with several processes on a new store, all but one would be sent away.
    fn settle_modes_patiently(&self, found: i64) -> rusqlite::Result<()> {
        let since = Instant::now();
        loop {
            match self.settle_modes(found) {
                Err(error)
                    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                        && since.elapsed() < BUSY_TIMEOUT =>
                {
                    std::thread::sleep(Duration::from_millis(2));
                }
                settled => return settled,
            }
        }
    }

    fn settle_modes(&self, found: i64) -> rusqlite::Result<()> {
        if found == 0 {
            // There is nothing to lose yet: these lines write one page, and a file that is empty
            // or has that page alone is taken for a new one.
            self.connection.pragma_update(None, "synchronous", "OFF")?;
            self.mark_as_ours()?;
        }
        self.connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        self.connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
        // In WAL mode NORMAL is enough against kill -9: what was committed is in the page cache,
        // which outlives the process. It syncs nothing at a commit, so starting and ending a run
        // costs no wait for the disk. `add_visit` asks for more.
        self.connection.pragma_update(None, "synchronous", "NORMAL")?;
        self.connection.pragma_update(None, "foreign_keys", true)
    }

    /// Writes the first page, unless another process has done so meanwhile: what is written after it has
    /// made the store would be in a log without a mark.
    fn mark_as_ours(&self) -> rusqlite::Result<()> {
        let asked = |what: &str| self.connection.query_row(what, [], |row| row.get::<_, i64>(0));
        if asked("PRAGMA page_count")? == 0 {
            // Only takes before the first page, and lets `remove` give space back.
            self.connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        }
        let first = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        if asked("PRAGMA application_id")? == 0 {
            // Before there is a log: by the file alone it is known whose it is.
            self.connection.pragma_update(None, "application_id", migrate::APPLICATION_ID)?;
        }
        first.commit()
    }

    /// The file it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the right to go on with a run, so that no two processes do. Let go by dropping
    /// what is returned, or by the kernel when the process ends.
    pub fn claim(&self, id: &str) -> Result<Claim, StoreError> {
        self.number(id)?;
        claim::claim(&self.path, id)
    }

    /// Whether a process holds the run now. A run that says running and is not held was killed.
    pub fn is_live(&self, id: &str) -> bool {
        claim::is_claimed(&self.path, id)
    }

    /// Whether the file of that name is still the one that was opened: SQLite goes on with one that
    /// nobody can open any more.
    pub(crate) fn is_there(&self) -> Result<(), StoreError> {
        let Some(file) = self.file else { return Ok(()) };
        if file_id(&self.path) != Some(file) {
            return Err(self.moved().unwrap_or_else(|| StoreError::Gone(self.path.clone())));
        }
        if let Some((why, is_saved)) = &*self.lost.borrow() {
            return Err(self.log_lost(why.clone(), *is_saved));
        }
        self.fault().map_or(Ok(()), |why| {
            // Nothing is put into it, whatever happens to it next.
            self.is_hurt.set(true);
            let log = log_path(&self.path.canonicalize().unwrap_or_else(|_| self.path.clone()));
            Err(StoreError::Overwritten { path: self.path.clone(), log, why })
        })
    }

    /// How it shows that somebody copied another file into it: the log is not its own any more, or it
    /// does not begin as this process, or another with the same log, wrote it.
    fn fault(&self) -> Option<String> {
        let found = std::fs::metadata(&self.path).ok();
        let now = found.as_ref().and_then(log::stamp);
        if now.is_some() && now == self.seen.get() {
            return None;
        }
        let fault = self.fault_inside(found.is_none_or(|found| found.len() == 0));
        self.seen.set(now.filter(|_| fault.is_none()));
        fault
    }

    fn fault_inside(&self, is_empty: bool) -> Option<String> {
        if is_empty {
            // It never was since it was opened.
            return Some("it is empty".to_owned());
        }
        let by_first = |opened| self.expected.fault(opened, &self.connection);
        if let Some(why) = self.opened.as_ref().and_then(by_first) {
            return Some(why.to_owned());
        }
        match look::look(&self.path) {
            Err(StoreError::OtherLog { why, .. } | StoreError::NotWhole { why, .. }) => Some(why),
            Err(error @ (StoreError::Lost { .. } | StoreError::NotAStore(_))) => {
                Some(error.to_string())
            }
            _ => None,
        }
    }

    /// Puts the log into the file, as far as nobody reads from it: so that the file alone, which is what
    /// people copy, has all that is stored. One that may be damaged stays as it is.
    pub(crate) fn empty_log(&self) {
        let length = self.log_length();
        let keeps = self.reads_only || self.keeps_log || self.is_hurt.get();
        if length == 0 || keeps || !self.is_log_sound() || self.is_being_written() {
            return;
        }
        // Nobody is waited for: who reads now, or whoever comes next, does it later.
        if self.connection.busy_timeout(Duration::ZERO).is_ok() {
            let empty = "PRAGMA wal_checkpoint(TRUNCATE)";
            let is_busy = self.connection.query_row(empty, [], |row| row.get::<_, bool>(0));
            if let (Ok(false), Some(opened)) = (is_busy, &self.opened) {
                self.expected.put(opened, &self.connection);
            }
        }
        let _ = self.connection.busy_timeout(BUSY_TIMEOUT);
        self.tried.set(self.log_length());
        self.put.set(self.last_written());
    }

    fn last_written(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.path).and_then(|found| found.modified()).ok()
    }

    /// Whether somebody else writes to the file just now: another process that puts the log into it, or
    /// one that copies something over it and has not reached what would show.
    fn is_being_written(&self) -> bool {
        let is_new = |written: SystemTime| written.elapsed().is_ok_and(|age| age < log::TICK);
        let last = self.last_written();
        if last == self.put.get() || !last.is_some_and(is_new) {
            return false;
        }
        std::thread::sleep(2 * log::TICK);
        self.last_written() != last || self.is_there().is_err()
    }

    /// The same during longer work, now and then. SQLite would do it by itself, and put damage into the
    /// file as well.
    pub(crate) fn limit_log(&self) {
        if self.log_length() >= self.tried.get().saturating_add(LOG_MAX) {
            self.empty_log();
        }
    }

    fn log_length(&self) -> u64 {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        std::fs::metadata(log_path(&real)).map_or(0, |found| found.len())
    }

    /// Whether what is in the log may be put into the file.
    fn is_log_sound(&self) -> bool {
        let is_whole = self.opened.as_ref().is_none_or(|opened| opened.lacks().is_none());
        is_whole && (self.log_length() == 0 || matches!(look::look(&self.path), Ok(Verdict::Sound)))
    }

    /// Takes the log and its index away from a name that is another file's by now, or nobody's: they
    /// would be put into whatever has that name next.
    fn leave(&mut self) {
        // SQLite would remove what has their names, whosever it is.
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        // A file that something was copied into keeps the log beside it: whoever opens it next gets an
        // error that names it. And who opened the file that has the name by now may have taken over what
        // is beside it.
        let is_same = self.file.is_some() && self.file == file_id(&self.path);
        let is_lost = self.opened.as_ref().is_some_and(moved::Opened::is_linked) && !self.save();
        if is_same || is_lost || self.sides.iter().any(|(_, side)| held::others_have(*side)) {
            return;
        }
        for (path, own) in &self.sides {
            let named = std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
            if named.is_ok_and(|named| named == *own) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Removes the index that reading made, and an empty log, unless another process uses them.
    fn remove_made(&self) {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let index = beside::look_at(&beside::side(&real, "-shm"));
        if self.made.is_empty() || index.is_ok_and(|index| held::is_used(&index)) {
            return;
        }
        for path in &self.made {
            let is_log = *path == log_path(&real);
            if !is_log || std::fs::metadata(path).is_ok_and(|log| log.len() == 0) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Whether nothing was ever put into it.
    fn is_unused(&self) -> bool {
        let query = "SELECT NOT EXISTS (SELECT 1 FROM run)
                     AND NOT EXISTS (SELECT 1 FROM calibration)";
        self.connection.query_row(query, [], |row| row.get(0)).unwrap_or(false)
    }

    /// Takes the log away, which SQLite grants only where nobody else has the store open; whether it
    /// did, and the file of that name is still this one.
    fn is_alone(&self) -> bool {
        let told = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        let mode = self.connection.query_row("PRAGMA journal_mode = DELETE", [], told);
        // What the file begins with is another by that.
        let is_named = || self.file.is_some() && self.file == file_id(&self.path);
        mode.is_ok_and(|mode| mode == "delete") && is_named()
    }

    fn sql(&self, error: rusqlite::Error) -> StoreError {
        self.is_hurt.set(self.is_hurt.get() || error::is_corrupt(&error));
        StoreError::sql(&self.path, error)
    }
}

/// What SQLite has beside a store that it has open.
fn sides_of(path: &Path) -> Vec<(PathBuf, FileId)> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let beside = ["-wal", "-shm"].map(|end| beside::side(&real, end));
    beside.into_iter().filter_map(|path| file_id(&path).map(|id| (path, id))).collect()
}

fn log_path(path: &Path) -> PathBuf {
    beside::side(path, "-wal")
}

/// A path that SQLite takes for the name of a file, whatever it is.
fn no_uri(path: &Path) -> PathBuf {
    // It takes `:memory:`, `file:...` and the empty name for something else than a file, the second
    // also where nobody asked for URIs. Nothing that begins with a dot or a slash is special.
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// A path as SQLite's URI wants it.
fn escaped(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut out = String::new();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                out.push(byte.into());
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_where_xdg_says() {
        let at = |vars: &'static [(&str, &str)]| {
            default_path(|name| {
                vars.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
            })
        };
        let path = |text| Some(PathBuf::from(text));
        assert_eq!(at(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")]), path("/d/plimsoll/plimsoll.db"));
        let home = path("/h/.local/share/plimsoll/plimsoll.db");
        assert_eq!(at(&[("HOME", "/h")]), home);
        assert_eq!(at(&[("XDG_DATA_HOME", "d"), ("HOME", "/h")]), home);
        assert_eq!(at(&[("XDG_DATA_HOME", ""), ("HOME", "/h")]), home);
        assert_eq!(at(&[]), None);
    }

    #[test]
    fn odd_paths_survive_the_uri() {
        assert_eq!(escaped(Path::new("/a b/c?d#e%f")), "/a%20b/c%3Fd%23e%25f");
    }

    #[test]
    fn no_name_is_special() {
        for name in [":memory:", "file:a.db?mode=memory", "file:a%20b.db", "a.db"] {
            let path = no_uri(Path::new(name));
            assert_eq!(path, Path::new(&format!("./{name}")));
        }
        assert_eq!(no_uri(Path::new("/file:a")), Path::new("/file:a"));
    }

    fn scratch(test: &str) -> Store {
        let folder = std::env::temp_dir().join(format!("plimsoll-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Store::open(&folder.join("plimsoll.db")).unwrap()
    }

    fn discard(store: Store) {
        let folder = store.path.parent().unwrap().to_owned();
        drop(store);
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn warning(text: &str) -> record::Warning {
        record::Warning::new("test", text)
    }

    fn add_run(store: &Store) {
        store
            .connection
            .execute_batch(
                "INSERT INTO run (record_version, suite, suite_text, target_given, target_resolved,
                     target_kind, target_size_bytes, target_files, target_devices, target_remarks,
                     seed, command_line, program, host, kernel, architecture, processor,
                     processors, memory_bytes, started_unix_ns, state, visits_planned)
                 VALUES (1, 's', '', 't', 't', 'file', 1, 1, '[]', '[]', '1', '[]', 'p', 'h', 'k',
                     'a', 'c', 1, 1, 0, 'running', 1)",
            )
            .unwrap();
        seal::seal_new(&store.connection, 1).unwrap();
    }

    #[test]
    fn a_full_disk_is_named_and_loses_nothing_stored() {
        let mut store = scratch("full");
        add_run(&store);
        store.add_warning("r1", &warning("first")).unwrap();
        let pages: i64 =
            store.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        store.connection.pragma_update(None, "max_page_count", pages + 2).unwrap();
        let error = store.add_warning("r1", &warning(&"x".repeat(1 << 20))).unwrap_err();
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("resume"));
        assert_eq!(store.load("r1").unwrap().header.warnings, [warning("first")]);
        store.connection.pragma_update(None, "max_page_count", pages + 2000).unwrap();
        store.add_warning("r1", &warning(&"x".repeat(1 << 20))).unwrap();
        discard(store);
    }

    #[test]
    fn a_run_that_was_removed_meanwhile_is_named() {
        let mut store = scratch("removed");
        add_run(&store);
        let visit = "INSERT INTO warning (run, code, text) VALUES (2, 'a', 'b')";
        let error = store.transaction(|t| t.execute(visit, []).map(drop)).unwrap_err();
        assert!(error.to_string().contains("is no longer there"), "{error}");
        assert!(matches!(error, StoreError::RunRemoved { .. }), "{error:?}");
        discard(store);
    }

    #[test]
    fn numbers_of_sqlite_are_explained() {
        let hint = |extended: i32| {
            let error = rusqlite::ffi::Error::new(extended);
            let error = rusqlite::Error::SqliteFailure(error, None);
            StoreError::sql(Path::new("s.db"), error).hint().unwrap()
        };
        assert!(hint(778).contains("ulimit -f") && hint(522).contains("shorter"));
        assert!(hint(10).contains("kernel log"));
    }

    #[test]
    fn a_writer_that_stays_is_named() {
        let mut store = scratch("locked");
        add_run(&store);
        store.connection.busy_timeout(Duration::from_millis(1)).unwrap();
        let other = Connection::open(&store.path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = store.add_warning("r1", &warning("w")).unwrap_err();
        assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
        assert!(store.load("r1").is_ok(), "readers are not kept out");
        other.execute_batch("ROLLBACK").unwrap();
        store.add_warning("r1", &warning("w")).unwrap();
        discard(store);
    }

    #[test]
    fn the_modes_are_as_promised() {
        let store = scratch("modes");
        let ask = |what: &str| -> String {
            store
                .connection
                .query_row(&format!("SELECT CAST({what} AS TEXT) FROM pragma_{what}"), [], |row| {
                    row.get(0)
                })
                .unwrap()
        };
        assert_eq!(ask("journal_mode"), "wal");
        assert_eq!(ask("synchronous"), "1"); // NORMAL
        assert_eq!(ask("foreign_keys"), "1");
        assert_eq!(ask("auto_vacuum"), "2"); // INCREMENTAL
        assert_eq!(ask("user_version"), migrate::KNOWN.to_string());
        discard(store);
    }
}
