use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::blob::BlobError;

/// `SQLITE_IOERR_SHORT_READ`.
const SHORT_READ: i32 = 522;
/// `SQLITE_IOERR_WRITE`.
const WRITE: i32 = 778;
/// `SQLITE_READONLY_ROLLBACK`.
const HOT: i32 = 776;
/// `SQLITE_CONSTRAINT_FOREIGNKEY`.
const NO_PARENT: i32 = 787;

fn extended(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No file of that name, or not to be reached.
    #[error("cannot open the store {}", path.display())]
    CannotOpen {
        /// The store.
        path: PathBuf,
        /// What SQLite or the system said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file, but of someone else.
    #[error("{} is not a plimsoll store", .0.display())]
    NotAStore(PathBuf),
    /// A directory, where a file is wanted.
    #[error("{} is a directory, wanted a file", .0.display())]
    IsDirectory(PathBuf),
    /// No store can have that name.
    #[error("{} cannot be the name of a store: {why}", path.display())]
    BadName {
        /// The name.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Renamed, removed or exchanged while it was open.
    #[error("the store {} {}", path.display(), went(to.as_deref()))]
    Gone {
        /// The store.
        path: PathBuf,
        /// The name that its file has now, if it has one.
        to: Option<PathBuf>,
    },
    /// What lies beside the store under a name of SQLite's or of ours is not what that would make.
    #[error("{} is not used: {why}, wanted a regular file of the store's", path.display())]
    NotBeside {
        /// Which.
        path: PathBuf,
        /// What was seen.
        why: String,
    },
    /// Made, but nothing is in it: the first run is making it just now, or was killed doing so.
    #[error("the store {} is empty", .0.display())]
    Empty(PathBuf),
    /// Written by a later version of this program.
    #[error("the store {} has schema {found}, this program knows up to {known}", path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// Opened for reading, and its schema is older than what this program reads.
    #[error("the store {} has schema {found}, this program reads {known}", path.display())]
    Older {
        /// The store.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The schema this program reads.
        known: i64,
    },
    /// No space on its file system.
    #[error("no space left to write to the store {}", path.display())]
    DiskFull {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// Another process wrote to it for longer than we wait.
    #[error("the store {} is locked by another process", path.display())]
    Locked {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// It may be read but not written.
    #[error("the store {} may not be written", path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// Its pages contradict each other.
    #[error("the store {} is damaged", path.display())]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// A value in it that this program never writes.
    #[error("the store {} is damaged: {what} of {of} cannot be read: {why}", path.display())]
    BadValue {
        /// The store.
        path: PathBuf,
        /// The column.
        what: &'static str,
        /// The run, and which of its visits if it is of one.
        of: String,
        /// What is wrong with it.
        why: String,
    },
    /// Reading or writing the file failed.
    #[error("reading or writing the store {} failed", path.display())]
    Io {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// Anything else SQLite refuses: a bug here.
    #[error("the store {} refused a statement", path.display())]
    Refused {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// No such run.
    #[error("no run `{wanted}` in the store {}", path.display())]
    NoSuchRun {
        /// The store.
        path: PathBuf,
        /// As it was named.
        wanted: String,
        /// What there is instead.
        suggestion: Option<String>,
    },
    /// A name that fits several runs.
    #[error("`{wanted}` fits {} runs", found.len())]
    Ambiguous {
        /// As it was named.
        wanted: String,
        /// Those it fits, newest last.
        found: Vec<String>,
    },
    /// No cell of that index in the run.
    #[error("run {run} has no cell {cell} that is still open")]
    NoSuchCell {
        /// The run.
        run: String,
        /// The index asked for.
        cell: u32,
    },
    /// Another process removed the run meanwhile.
    #[error("a run that is stored in {} just now is no longer there: another process removed it", path.display())]
    RunRemoved {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// The run has a visit of that order already.
    #[error("run {run} has a visit {order} already")]
    VisitExists {
        /// The run.
        run: String,
        /// [`record::VisitRecord::order`].
        order: u32,
    },
    /// Another process works on the run.
    #[error("run {run} is under way in another process{}", holder.as_ref().map(|h| format!(": {h}")).unwrap_or_default())]
    Claimed {
        /// The run.
        run: String,
        /// What that process said about itself.
        holder: Option<String>,
    },
    /// The file that marks a run as under way cannot be made.
    #[error("cannot lock {}", path.display())]
    CannotClaim {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

fn went(to: Option<&Path>) -> String {
    match to {
        Some(to) => format!("was moved to {} while it was in use", to.display()),
        None => "went away: it was removed or exchanged while it was in use".to_owned(),
    }
}

impl StoreError {
    /// What the user could do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::CannotOpen { .. } => {
                "check the path and its permissions, or name another store with `--store FILE`"
            }
            Self::NotAStore(_) => {
                "nothing was changed in it; name another file with `--store FILE`"
            }
            Self::IsDirectory(path) => {
                let file = path.join("plimsoll.db");
                return Some(format!("name a file in it: `--store {}`", file.display()));
            }
            Self::BadName { .. } => "name another file with `--store FILE`",
            Self::Gone { to: None, .. } => {
                "what was measured since then is lost, and what was before unless there is a copy; \
                 measure again"
            }
            Self::Gone { to: Some(to), .. } => {
                return Some(format!(
                    "all that was stored is in {to}; `plimsoll resume RUN --store {to}` goes on with a run",
                    to = to.display()
                ));
            }
            Self::Empty(_) => "`plimsoll run` puts something in",
            Self::Newer { .. } => {
                "use the newer plimsoll that wrote it, or another store with `--store FILE`"
            }
            Self::Older { .. } => "open it once for writing: `plimsoll list` with write permission",
            Self::DiskFull { .. } => {
                "visits stored before are safe; free some space, or raise the limit of file sizes (`ulimit -f`), then \
                 `plimsoll resume`"
            }
            Self::Locked { .. } => {
                "try again when that process is done, or end it if it is stopped (`fuser FILE` finds it)"
            }
            Self::ReadOnly { source, .. } if extended(source) == Some(HOT) => {
                "a process was killed while it stored something: open it once with write permission, by \
                 `plimsoll list`"
            }
            Self::ReadOnly { .. } => {
                "check the permissions of the file and of its directory, and that it is not mounted read-only"
            }
            Self::Damaged { .. } => {
                "copy the file away before anything else; `sqlite3 FILE .recover` saves what can be saved"
            }
            Self::BadValue { .. } => {
                "these are not the bytes that were stored: the disk or the memory changed them, or \
                 somebody did. Copy the file away; take it from a backup, or remove that run with \
                 `plimsoll rm` and measure it again: other runs can be read as before"
            }
            Self::RunRemoved { .. } => {
                "what was measured of that run is lost; `plimsoll list` shows what there is, and `plimsoll run` \
                 measures again"
            }
            Self::Io { path, source } if extended(source) == Some(SHORT_READ) => {
                return Some(format!(
                    "522: a file of the store is shorter than it was written. Somebody cut {}, or copied \
                     another file over it; `plimsoll list` shows what can still be read",
                    path.display()
                ));
            }
            Self::Io { path, source } if extended(source) == Some(WRITE) => {
                return Some(format!(
                    "778: the system refused to write. The file may be as long as it may be: `ulimit -f`, or the \
                     largest file of the file system that {} is on. Else look at the kernel log for errors of \
                     the device",
                    path.display()
                ));
            }
            Self::Io { .. } => "look at the kernel log for errors of the device the store is on",
            Self::Refused { .. } | Self::VisitExists { .. } | Self::NoSuchCell { .. } => {
                return None;
            }
            Self::NoSuchRun { suggestion, .. } => return suggestion.clone(),
            Self::Ambiguous { found, .. } => return Some(format!("one of {}", found.join(", "))),
            Self::Claimed { .. } => "wait for it, or end that process first",
            Self::NotBeside { .. } => {
                "nothing was written to it; look at who put it there, and move it away, or name \
                 a store in a directory of your own with `--store FILE`"
            }
            Self::CannotClaim { .. } => "the lock lies beside the store; check its directory",
        };
        Some(hint.to_owned())
    }

    pub(crate) fn sql(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let code = error.sqlite_error_code();
        if code == Some(ErrorCode::NotADatabase) {
            return Self::NotAStore(path);
        }
        if code == Some(ErrorCode::CannotOpen) {
            return Self::CannotOpen { path, source: Box::new(error) };
        }
        // The statement is nothing for people.
        let error = match error {
            rusqlite::Error::SqlInputError { error, msg, .. } => {
                rusqlite::Error::SqliteFailure(error, Some(msg))
            }
            other => other,
        };
        // What a store lacks is not found before a statement asks for it.
        if let rusqlite::Error::SqliteFailure(_, Some(said)) = &error
            && (said.starts_with("no such table") || said.starts_with("no such column"))
        {
            return Self::Damaged { path, source: Box::new(error) };
        }
        // All that refers to something refers to a run, or to a part of one.
        if extended(&error) == Some(NO_PARENT) {
            return Self::RunRemoved { path, source: Box::new(error) };
        }
        let source = Box::new(error);
        match code {
            Some(ErrorCode::DiskFull) => Self::DiskFull { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Locked { path, source }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::ReadOnly { path, source }
            }
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, source },
            Some(ErrorCode::SystemIoFailure) => Self::Io { path, source },
            _ => Self::Refused { path, source },
        }
    }

    /// The same, and which visit of the run it is of, counted from 0 in the order of its making.
    pub(crate) fn of_visit(self, order: u32) -> Self {
        match self {
            Self::BadValue { path, what, of, why } => {
                Self::BadValue { path, what, of: format!("visit {order} of {of}"), why }
            }
            other => other,
        }
    }

    pub(crate) fn blob(path: &Path, what: &'static str, of: &str, error: BlobError) -> Self {
        Self::bad(path, what, of, error.to_string())
    }

    pub(crate) fn bad(path: &Path, what: &'static str, of: &str, why: String) -> Self {
        Self::BadValue { path: path.to_owned(), what, of: of.to_owned(), why }
    }
}
