//! SQLite: no server, a file and connections in this process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use units::Bytes;

use crate::clients::{LoadClient, SqliteLoad};
use crate::row::Row;
use crate::server::{Base, Commits, ServerCounter};
use crate::turns::Turns;
use crate::{DbError, SessionError};

const TABLE: &str = "create table commits (id integer primary key, session integer not null, \
    n integer not null, pad text not null)";
const INSERT: &str = "insert into commits (session, n, pad) values (?1, ?2, ?3)";
const SETTINGS: &str = "journal_mode synchronous page_size cache_size wal_autocheckpoint mmap_size \
    locking_mode fullfsync";

pub(crate) fn program() -> String {
    format!("SQLite {}", rusqlite::version())
}

pub(crate) fn make(data: &Path, memory: Bytes) -> Result<Sqlite, DbError> {
    let path = data.join("commits.db");
    let database = open(&path, memory).map_err(DbError::query("make the database"))?;
    database.execute_batch(TABLE).map_err(DbError::query("make the table"))?;
    database.execute(INSERT, (0, 0, "")).map_err(DbError::query("insert a row"))?;
    Ok(Sqlite { path, memory, database: Mutex::new(database), turns: Arc::default() })
}

fn open(path: &Path, memory: Bytes) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    database.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    // In WAL mode NORMAL does not flush at a commit.
    database.pragma_update(None, "synchronous", "full")?;
    // Negative: kibibytes, not pages.
    database.pragma_update(None, "cache_size", -((memory.get() / 1024) as i64))?;
    Ok(database)
}

pub(crate) struct Sqlite {
    path: PathBuf,
    memory: Bytes,
    database: Mutex<Connection>,
    turns: Arc<Turns>,
}

impl Base for Sqlite {
    fn client(&self) -> Result<Box<dyn LoadClient>, DbError> {
        let database = open(&self.path, self.memory).map_err(DbError::query("open a session"))?;
        Ok(Box::new(SqliteLoad::new(database, Arc::clone(&self.turns))))
    }

    fn session(&self, _session: i32) -> Result<Box<dyn Commits>, DbError> {
        let database = open(&self.path, self.memory).map_err(DbError::query("open a session"))?;
        Ok(Box::new(SqliteClient { database, turns: Arc::clone(&self.turns) }))
    }

    /// It counts nothing that lasts, and its processor time is ours. Only who writes waits, for its turn.
    fn counters(&mut self) -> Result<Vec<ServerCounter>, DbError> {
        let value = u64::try_from(self.turns.waited().as_micros()).unwrap_or(u64::MAX);
        let own = ServerCounter { name: "server processor time", unit: "us", value: 0 };
        Ok(vec![ServerCounter { name: "lock wait time", unit: "us", value }, own])
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, DbError> {
        let database = self.database.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut found = vec![("version".to_owned(), rusqlite::version().to_owned())];
        for name in SETTINGS.split_whitespace() {
            let value = database.pragma_query_value(None, name, |row| row.get(0));
            let value: rusqlite::types::Value =
                value.map_err(DbError::query("read the settings"))?;
            found.push((name.to_owned(), shown(name, value)));
        }
        Ok(found)
    }
}

fn shown(name: &str, value: rusqlite::types::Value) -> String {
    use rusqlite::types::Value;
    match (name, value) {
        ("synchronous", Value::Integer(level)) => {
            let names = ["off", "normal", "full", "extra"];
            names.get(level as usize).map_or(level.to_string(), |name| (*name).to_owned())
        }
        (_, Value::Integer(number)) => number.to_string(),
        (_, Value::Text(text)) => text,
        (_, other) => format!("{other:?}"),
    }
}

struct SqliteClient {
    database: Connection,
    turns: Arc<Turns>,
}

impl Commits for SqliteClient {
    fn commit(&mut self, row: &Row) -> Result<(), SessionError> {
        let _turn = self.turns.wait();
        let run = || {
            let values = (row.session, row.n, row.pad.as_str());
            self.database.prepare_cached("begin immediate")?.execute(())?;
            let inserted = self.database.prepare_cached(INSERT)?.execute(values);
            let done = inserted.and_then(|_| self.database.prepare_cached("commit")?.execute(()));
            if done.is_err() && !self.database.is_autocommit() {
                // What is said is why it failed; that it is given up as well tells nobody anything.
                let _ = self.database.execute_batch("rollback");
            }
            done.map(drop)
        };
        run().map_err(|error: rusqlite::Error| SessionError {
            number: error.sqlite_error().map_or(-1, |error| error.extended_code),
            text: error.to_string(),
        })
    }
}
