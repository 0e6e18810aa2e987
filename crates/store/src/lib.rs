//! Runs in SQLite. Alone knows result SQL.
//!
//! One file holds many runs. A visit is written in one transaction as soon as it was made, so
//! whatever ends the process, at most the visit under way is lost. What was stored is never
//! rewritten (triggers in the schema refuse it); a run's state may change, and whole runs may be
//! removed.
//!
//! The file alone is the whole store between two transactions (`journal_mode=DELETE`).

mod beside;
mod blob;
mod calibration;
mod claim;
mod error;
mod head;
mod migrate;
mod names;
mod outside;
mod read;
mod resolve;
mod seal;
mod write;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

pub use crate::blob::BlobError;
pub use crate::calibration::StoredCalibration;
pub use crate::claim::Claim;
pub use crate::error::StoreError;
pub use crate::names::{Taken, stores_of, taken};
pub use crate::outside::{Outside, is_live};
pub use crate::read::{DamagedRun, Line};
pub use crate::write::Change;

/// How long a statement waits for another process to finish reading or writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// There was no such file before.
    is_new: bool,
    /// Which file it is; dropped after the connection.
    file: head::Opened,
}

/// Device and inode.
type FileId = (u64, u64);

fn file_id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

impl Drop for Store {
    fn drop(&mut self) {
        // Nothing came of what it was made for: nothing is left behind.
        if self.is_new && self.file.is_only() && self.is_there().is_ok() && self.is_unused() {
            let _ = std::fs::remove_file(&self.path);
        }
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

impl Store {
    /// Opens a store for reading and writing; makes it, and the directories above it, if there
    /// is none; brings an older schema up to date. A file that is not a store is left untouched.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        head::look(path)?;
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(|source| StoreError::CannotOpen {
                path: path.to_owned(),
                source: Box::new(source),
            })?;
        }
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        // Before any pragma that writes: the file may be someone else's, and so may its log.
        let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        store.connection.set_db_config(keep_log, true).map_err(|e| store.sql(e))?;
        let found = store.schema()?;
        if store.connection.is_readonly("main").unwrap_or(false) {
            let source =
                rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY), None);
            return Err(StoreError::sql(path, source));
        }
        store.connection.set_db_config(keep_log, false).map_err(|e| store.sql(e))?;
        store.settle_modes().map_err(|e| store.sql(e))?;
        store.migrate(found)?;
        Ok(store)
    }

    /// Opens a store for reading only, also where its directory may not be written. Nothing is
    /// created or migrated.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        head::look_to_read(path)?;
        // Who may only read cannot roll back what a killed process left half written. Where the file
        // may not be written SQLite opens it for reading by itself.
        let store = Self::connect(path, OpenFlags::empty())?;
        store.connection.pragma_update(None, "query_only", true).map_err(|e| store.sql(e))?;
        let known = migrate::KNOWN;
        match store.schema()? {
            found if found == known => Ok(store),
            0 => Err(StoreError::Empty(path.to_owned())),
            found => Err(StoreError::Older { path: path.to_owned(), found, known }),
        }
    }

    fn connect(path: &Path, more: OpenFlags) -> Result<Self, StoreError> {
        let failed = |error| StoreError::sql(path, error);
        let is_new = !path.exists();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let connection = Connection::open_with_flags(no_uri(path), flags).map_err(failed)?;
        // SQLite takes its first lock with its first statement.
        let file = file_id(path).ok_or_else(|| StoreError::Gone { path: path.into(), to: None })?;
        let file = head::Opened::of(file);
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        Ok(Self { connection, path: path.to_owned(), is_new, file })
    }

    fn settle_modes(&self) -> rusqlite::Result<()> {
        // Takes a log of an earlier program into the file, which nobody else may have open then.
        let told = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        let mode = self.connection.query_row("PRAGMA journal_mode = DELETE", [], told)?;
        if mode != "delete" {
            let busy = ffi::Error::new(ffi::SQLITE_BUSY);
            return Err(rusqlite::Error::SqliteFailure(busy, None));
        }
        // A drive under load sometimes takes the machine down with it, and then the visits before
        // are the evidence. With FULL the removal of the journal would not be on the disk: a journal
        // that is back after a power cut takes the last visit with it.
        self.connection.pragma_update(None, "synchronous", "EXTRA")?;
        // Only takes before the first page, and lets `remove` give space back.
        self.connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")
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
        if file_id(&self.path) == Some(self.file.0) {
            return Ok(());
        }
        Err(StoreError::Gone { path: self.path.clone(), to: self.name_now() })
    }

    /// The name that the file has now, by a descriptor of SQLite's.
    fn name_now(&self) -> Option<PathBuf> {
        let mut open = std::fs::read_dir("/proc/self/fd").ok()?.flatten().map(|fd| fd.path());
        let fd = open.find(|fd| file_id(fd) == Some(self.file.0))?;
        // Of a removed file the kernel has a name that leads nowhere.
        std::fs::read_link(fd).ok().filter(|name| file_id(name) == Some(self.file.0))
    }

    /// Whether nothing was ever put into it, and nobody puts something into it now.
    fn is_unused(&self) -> bool {
        let query = "SELECT NOT EXISTS (SELECT 1 FROM run)
                     AND NOT EXISTS (SELECT 1 FROM calibration)";
        self.connection.busy_timeout(Duration::ZERO).is_ok()
            && self.connection.execute_batch("BEGIN EXCLUSIVE").is_ok()
            && self.connection.query_row(query, [], |row| row.get(0)).unwrap_or(false)
    }

    fn sql(&self, error: rusqlite::Error) -> StoreError {
        StoreError::sql(&self.path, error)
    }
}

/// A path that SQLite takes for the name of a file, whatever it is.
fn no_uri(path: &Path) -> PathBuf {
    // It takes `:memory:`, `file:...` and the empty name for something else than a file, the second
    // also where nobody asked for URIs. Nothing that begins with a dot or a slash is special.
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
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
        assert_eq!(ask("journal_mode"), "delete");
        assert_eq!(ask("synchronous"), "3"); // EXTRA
        assert_eq!(ask("foreign_keys"), "1");
        assert_eq!(ask("auto_vacuum"), "2"); // INCREMENTAL
        assert_eq!(ask("user_version"), migrate::KNOWN.to_string());
        discard(store);
    }
}
