use std::path::{Path, PathBuf};

use units::Bytes;

/// What a query was for, of a server that is there.
pub(crate) const CONNECT: &str = "connect to the server";

/// Why a throwaway server cannot be, or is no more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// A program is not installed.
    #[error("`{program}` is not here: looked in {}", list(looked))]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// Package of Debian and Ubuntu.
        debian: &'static str,
        /// Package of RHEL and Fedora.
        rhel: &'static str,
        /// Directories without it.
        looked: Vec<PathBuf>,
    },
    /// A server that is not the one wanted.
    #[error("{path} is not {wanted}: it says `{said}`")]
    OtherProgram {
        /// Where it is.
        path: PathBuf,
        /// `MariaDB`.
        wanted: &'static str,
        /// Its version, as it prints it.
        said: String,
    },
    /// Root must not run the server, and nobody else is there to do it.
    #[error("{program} does not run as root, and there is no user `{user}` to run it")]
    NoUser {
        /// `PostgreSQL 15.18`.
        program: String,
        /// Who is missing in `/etc/passwd`.
        user: &'static str,
    },
    /// The user of the server cannot get there.
    #[error(
        "user `{user}`, who runs the server, may not pass {directory}, which leads to {wanted}"
    )]
    Closed {
        /// The first directory that refuses.
        directory: PathBuf,
        /// Who is refused.
        user: String,
        /// Where the way goes.
        wanted: PathBuf,
    },
    /// Something else than a directory.
    #[error("{0} is not a directory: a throwaway server is made under one")]
    NotADirectory(PathBuf),
    /// SQLite has no log of its own place.
    #[error("sqlite keeps its log beside its data: it cannot lie on {0}")]
    LogOfSqlite(PathBuf),
    /// The log is to lie where the data lie.
    #[error("data and log are both to lie on {0}")]
    SameDirectory(PathBuf),
    /// A page cache of an impossible size.
    #[error("{memory} of memory for {engine}: wanted {least} to {most}")]
    Memory {
        /// As given.
        memory: Bytes,
        /// `postgres`.
        engine: &'static str,
        /// What the engine takes at least.
        least: Bytes,
        /// What the machine has.
        most: Bytes,
    },
    /// Not enough free bytes.
    #[error("no room on {path}: {free} are free, the server needs {needs}")]
    NoRoom {
        /// As given.
        path: PathBuf,
        /// What an ordinary user may still write.
        free: Bytes,
        /// What the server writes before it is ready, its log and room for rows.
        needs: Bytes,
    },
    /// The directory that was to be made is there.
    #[error("{0} is there already: nothing is made in it")]
    Exists(PathBuf),
    /// The system refused.
    #[error("cannot {what} {path}")]
    File {
        /// `make`, `remove`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// A program could not be started, failed or died.
    #[error("{program} {how}{}", after(said))]
    Failed {
        /// Its path.
        program: PathBuf,
        /// `ended with exit status: 1`.
        how: String,
        /// The last lines that it wrote.
        said: String,
    },
    /// A query that is part of making or reading a server failed.
    #[error("cannot {what}: {text}")]
    Query {
        /// `make the table`.
        what: &'static str,
        /// What the server or its client library says.
        text: String,
    },
    /// A directory that is not known as ours.
    #[error("{0} stays: {1}")]
    NotOurs(PathBuf, String),
    /// A process that the kernel does not let go: mostly it waits for a device.
    #[error("the server, process {0}, does not end, not even by force")]
    NotEnded(i32),
    /// A server that is there and that nothing can be made on.
    #[error("{0} {1}")]
    Unfit(String, &'static str),
    /// The database of ours on a server that was there.
    #[error("the database {0} is left on the server: {1}")]
    NotDropped(String, String),
    /// A living process holds the directory.
    #[error("{0} is in use by another run")]
    InUse(PathBuf),
}

impl DbError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoProgram { debian, rhel, .. } => {
                format!(
                    "install the package `{debian}` (Debian, Ubuntu) or `{rhel}` (RHEL, Fedora)"
                )
            }
            Self::OtherProgram { .. } => {
                "MySQL's own server is not supported: install the package `mariadb-server`"
                    .to_owned()
            }
            Self::NoUser { user, .. } => {
                format!(
                    "install the server by its package, which makes the user `{user}`, or do not run as root"
                )
            }
            Self::Closed { directory, user, .. } => format!(
                "name another directory, or let `{user}` pass: chmod o+x {}",
                directory.display()
            ),
            Self::LogOfSqlite(_) => "leave the directory of the log out".to_owned(),
            Self::SameDirectory(_) => {
                "leave the directory of the log out: it then lies beside the data".to_owned()
            }
            Self::NotDropped(name, _) => format!("`drop database {name}` removes it"),
            Self::Query { what: CONNECT, .. } => {
                "look at host and port; the password comes from PGPASSWORD or MYSQL_PWD; the connection is not \
                 encrypted"
                    .to_owned()
            }
            Self::NoRoom { .. } => "free some space, or name a directory elsewhere".to_owned(),
            Self::Exists(_) => {
                "another run uses it, or a killed one left it: remove it if it is of no use"
                    .to_owned()
            }
            _ => return None,
        })
    }

    /// For `map_err`: what was to be done to which file.
    pub(crate) fn file<E: Into<std::io::Error>>(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::File { what, path: path.to_path_buf(), source: source.into() }
    }

    /// For `map_err`: what a query was for.
    pub(crate) fn query<E: std::error::Error>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Query { what, text: with_causes(&error) }
    }
}

/// Why a commit failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} (error {number})")]
pub struct SessionError {
    /// The engine's own number: MariaDB's error, SQLite's extended code, PostgreSQL's SQLSTATE read
    /// as a number of base 36. -1 if the server gave no answer.
    pub number: i32,
    /// What it says, PostgreSQL's with the SQLSTATE.
    pub text: String,
}

/// Libraries print the kind of an error, and leave the reason to its source.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    // As MariaDB's prints what it has.
    for kind in ["MySqlError { ", "IoError { ", "DriverError { "] {
        let inner = text.strip_prefix(kind).and_then(|text| text.strip_suffix(" }"));
        if let Some(inner) = inner.map(str::to_owned) {
            text = inner;
        }
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn after(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; its last words:\n{said}") }
}
