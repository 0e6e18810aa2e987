//! A server that the operator names: asked in a database that is made on it, and dropped at the end.

use units::Bytes;

use crate::error::with_causes;
use crate::{DbError, Engine, ServerCounter};

/// The variables that have the password, as of `psql` and `mysql`.
pub(crate) const PGPASSWORD: &str = "PGPASSWORD";
pub(crate) const MYSQL_PWD: &str = "MYSQL_PWD";

/// The database's name for a key.
pub(crate) fn name_of(key: u64) -> String {
    format!("plimsoll_{key:016x}")
}

/// Where a server is and who asks it. The password is not in it, so that it is neither stored nor in a list
/// of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Which protocol.
    pub engine: Engine,
    rest: String,
}

impl ServerUrl {
    /// From `//user@host:port/database`, as it stands behind `postgres:` or `mariadb:`.
    pub fn parse(engine: Engine, rest: &str) -> Result<Self, String> {
        let url = Self { engine, rest: rest.to_owned() };
        let (has_password, variable) = match engine {
            Engine::Postgres => {
                let config = url.text().parse::<postgres::Config>();
                let config = config.map_err(|error| with_causes(&error))?;
                (config.get_password().is_some(), PGPASSWORD)
            }
            Engine::Mariadb => {
                let options = mysql::Opts::from_url(&url.text());
                let options = options.map_err(|error| with_causes(&error))?;
                (options.get_pass().is_some(), MYSQL_PWD)
            }
            Engine::Sqlite => return Err("sqlite has no server: name a directory".to_owned()),
        };
        match has_password {
            true => Err(format!("leave the password out of it, and set the variable {variable}")),
            false => Ok(url),
        }
    }

    /// Behind `postgres:` or `mariadb:`.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// As the client libraries want it.
    pub fn text(&self) -> String {
        let scheme = if self.engine == Engine::Postgres { "postgres" } else { "mysql" };
        format!("{scheme}:{}", self.rest)
    }
}

/// A server in use: what it has asked of its storage since it was started. Nothing is changed on it.
pub struct ServedLoad {
    /// `PostgreSQL 15.18`.
    pub program: String,
    /// Of its pages.
    pub page: Bytes,
    /// Of all databases that the user may see.
    pub size: Bytes,
    pub(crate) read: Box<dyn FnMut() -> Result<Vec<ServerCounter>, DbError> + Send>,
}

impl ServedLoad {
    /// `commits` that wrote something, `log bytes`, `pages read` and `pages written`.
    pub fn counters(&mut self) -> Result<Vec<ServerCounter>, DbError> {
        (self.read)()
    }
}

/// A server that was looked at.
pub(crate) struct Looked {
    /// `PostgreSQL 15.18`.
    pub program: String,
    /// Settings with which a commit is not durable: `fsync=off`.
    pub undurable: Vec<String>,
    /// Databases with names as ours have: runs that were killed left them, or are under way.
    pub left: Vec<String>,
}

/// A database that is dropped with this.
pub(crate) struct OwnDatabase {
    pub name: String,
    drop: Option<Dropping>,
}

/// Drops a database.
type Dropping = Box<dyn FnOnce() -> Result<(), DbError> + Send + Sync>;

impl OwnDatabase {
    pub fn new(name: String, drop: Dropping) -> Self {
        Self { name, drop: Some(drop) }
    }

    pub fn remove(mut self) -> Result<(), DbError> {
        self.drop.take().map_or(Ok(()), |drop| drop())
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        // Whoever wants to know calls `remove`.
        let _ = self.drop.take().map(|drop| drop());
    }
}
