//! What the file of an open store may begin with.
//!
//! Somebody may copy another file over it, byte by byte, while a process stores in it. SQLite does not
//! notice that: what it stores goes to the log. But every transaction writes page 1, so the file begins
//! with what one of them wrote.

use std::cell::{Cell, RefCell};

use rusqlite::Connection;

use crate::log::{START, TICK};
use crate::moved::Opened;

type First = [u8; START];

/// Beginnings of page 1, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// That of the file when it was last looked at, and what this process wrote since.
    firsts: RefCell<Vec<First>>,
    /// SQLite's count of what others did.
    version: Cell<Option<i64>>,
}

fn version(connection: &Connection) -> Option<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0)).ok()
}

impl Expected {
    /// As the file is, and whatever its log has.
    pub(crate) fn begin(&self, opened: &Opened, connection: &Connection) {
        // First of all: what others do after it counts as theirs.
        self.version.set(version(connection));
        let mut firsts = opened.logged();
        firsts.extend(opened.first());
        self.firsts.replace(firsts);
    }

    /// What a transaction of this process wrote.
    ///
    /// * `before`: how long the log was before it.
    pub(crate) fn add(&self, opened: &Opened, before: u64) {
        let new = opened.first_at(before).map_or_else(|| opened.logged(), |first| vec![first]);
        let mut firsts = self.firsts.borrow_mut();
        for first in new {
            firsts.retain(|known| *known != first);
            firsts.push(first);
        }
    }

    /// What the file begins with after this process put the whole log into it.
    pub(crate) fn put(&self, opened: &Opened, connection: &Connection) {
        // Emptying the log counts as what others did.
        self.version.set(version(connection));
        self.firsts.replace(opened.first().into_iter().collect());
    }

    /// Why the file is not the one that was opened, going by how it begins. What another process wrote
    /// cannot be known.
    pub(crate) fn fault(&self, opened: &Opened, connection: &Connection) -> Option<&'static str> {
        self.fault_now(opened, connection)?;
        // Another process may have put its log into the file between two of these looks.
        std::thread::sleep(TICK);
        self.fault_now(opened, connection)
    }

    fn fault_now(&self, opened: &Opened, connection: &Connection) -> Option<&'static str> {
        let now = version(connection);
        let Some(first) = opened.first() else { return Some("it is empty, or cannot be read") };
        let is_of_others = self.version.replace(now) != now;
        let mut firsts = self.firsts.borrow_mut();
        if let Some(at) = firsts.iter().position(|known| *known == first) {
            // Nothing older comes back.
            firsts.drain(..at);
            return None;
        }
        if is_of_others || opened.logged().contains(&first) {
            firsts.push(first);
            return None;
        }
        Some("its first page is not one that was written to it")
    }
}
