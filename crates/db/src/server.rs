//! A running server and its sessions, of whichever engine.

use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use tpcc::Workload;
use units::Bytes;

use crate::clients::{self, LoadClient, Violation};
use crate::named::OwnDatabase;
use crate::place::Place;
use crate::process::{Spawned, last_words, processor_us};
use crate::row::{ROW_BYTES, Row};
use crate::{DbError, SessionError};

/// A count that never falls, from the start of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCounter {
    /// In words: `log bytes`, `log syncs`.
    pub name: &'static str,
    /// `B`, `us`; empty for a plain number.
    pub unit: &'static str,
    /// Since the server was started.
    pub value: u64,
}

/// An engine behind its client library.
pub(crate) trait Base: Send + Sync {
    fn session(&self, session: i32) -> Result<Box<dyn Commits>, DbError>;
    fn client(&self) -> Result<Box<dyn LoadClient>, DbError>;
    fn counters(&mut self) -> Result<Vec<ServerCounter>, DbError>;
    fn settings(&mut self) -> Result<Vec<(String, String)>, DbError>;

    /// What the database takes, as the engine says; none if it is not asked for that.
    fn size(&mut self) -> Option<u64> {
        None
    }
}

/// Where a server is.
pub(crate) enum Home {
    /// In a directory of ours, as our process; SQLite has none.
    Made(Option<Spawned>, Place),
    /// Elsewhere: a database of ours is on it.
    Named(OwnDatabase),
}

/// One connection that commits.
pub(crate) trait Commits: Send {
    fn commit(&mut self, row: &Row) -> Result<(), SessionError>;

    fn settle(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
}

/// A throwaway server. Dropping it ends it and removes its directory, as [`Server::stop`] does.
pub struct Server {
    // In the order in which they are to be dropped: connection, then process and directory.
    base: Box<dyn Base>,
    home: Home,
    settings: Vec<(String, String)>,
    sessions: AtomicI32,
    key: u64,
}

impl Server {
    pub(crate) fn new(
        key: u64,
        base: Box<dyn Base>,
        settings: Vec<(String, String)>,
        home: Home,
    ) -> Self {
        Self { base, home, settings, sessions: AtomicI32::new(0), key }
    }

    fn process(&self) -> Option<&Spawned> {
        match &self.home {
            Home::Made(process, _) => process.as_ref(),
            Home::Named(_) => None,
        }
    }

    /// Opens a session. They are numbered from 1.
    pub fn session(&self) -> Result<DbSession, DbError> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(DbSession { inner: self.base.session(number)?, row: Row::new(self.key, number) })
    }

    /// Opens a connection for transactions.
    pub fn client(&self) -> Result<Box<dyn LoadClient>, DbError> {
        self.base.client()
    }

    /// Makes the tables of a load, fills them and has it all written; false if it was stopped.
    ///
    /// * `tell`: is given the rows that are in and those that there will be; false stops.
    pub fn load(
        &self,
        workload: &dyn Workload,
        tell: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool, DbError> {
        let done = clients::load(self.client()?.as_mut(), workload, tell)?;
        if let Home::Made(_, place) = &self.home {
            place.sync()?;
        }
        Ok(done)
    }

    /// The consistency conditions that do not hold; no transaction may be open.
    pub fn violations(&self, workload: &dyn Workload) -> Result<Vec<Violation>, DbError> {
        clients::violations(self.client()?.as_mut(), workload)
    }

    /// What its files take, log included; on a server that was there what the database takes.
    pub fn size(&mut self) -> Bytes {
        match &self.home {
            Home::Made(_, place) => place.size(),
            Home::Named(_) => Bytes::new(self.base.size().unwrap_or(0)),
        }
    }

    /// What the server has counted. What a PostgreSQL session did in its last second may be missing,
    /// unless it has ended or [`DbSession::settle`] was called.
    pub fn counters(&mut self) -> Result<Vec<ServerCounter>, DbError> {
        let mut counters = self.base.counters()?;
        if let Some(process) = self.process() {
            let value = processor_us(process.pid);
            counters.push(ServerCounter { name: "server processor time", unit: "us", value });
        }
        Ok(counters)
    }

    /// What it uses, as it says itself: names and values.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Whether its process runs.
    pub fn is_alive(&mut self) -> bool {
        self.process().is_none_or(Spawned::is_alive)
    }

    /// The last lines of its log.
    pub fn last_words(&self) -> String {
        self.process().map_or(String::new(), |_| last_words(&self.path().join("server.log")))
    }

    /// The directory that is its own; empty of a server that was there.
    pub fn path(&self) -> &Path {
        match &self.home {
            Home::Made(_, place) => place.path(),
            Home::Named(_) => Path::new(""),
        }
    }

    /// The database that was made on a server that was there; empty of a server of ours.
    pub fn database(&self) -> &str {
        match &self.home {
            Home::Made(..) => "",
            Home::Named(own) => &own.name,
        }
    }

    /// Number of its process, if that is ours.
    pub fn pid(&self) -> Option<i32> {
        self.process().map(|process| process.pid.as_raw_nonzero().get())
    }

    /// Ends the server, with force if it takes too long, and removes its directory; or drops the database.
    pub fn stop(self) -> Result<(), DbError> {
        let Self { base, home, .. } = self;
        drop(base);
        match home {
            Home::Made(process, place) => {
                if let Some(mut process) = process
                    && !process.end()
                {
                    return Err(DbError::NotEnded(process.pid.as_raw_nonzero().get()));
                }
                place.remove()
            }
            Home::Named(own) => own.remove(),
        }
    }
}

/// A connection that commits rows of its own.
pub struct DbSession {
    inner: Box<dyn Commits>,
    row: Row,
}

impl DbSession {
    /// As its rows have it, in `session`.
    pub fn number(&self) -> i32 {
        self.row.session
    }

    /// Inserts one row and commits it durably.
    ///
    /// * Returns the bytes of the row's own data, the same for every engine.
    pub fn commit(&mut self) -> Result<u32, SessionError> {
        self.row.advance();
        self.inner.commit(&self.row).map(|()| ROW_BYTES)
    }

    /// Has the server count what this session did until now; for use after what is measured. Does
    /// something with PostgreSQL only, whose sessions report once a second.
    pub fn settle(&mut self) -> Result<(), SessionError> {
        self.inner.settle()
    }
}
