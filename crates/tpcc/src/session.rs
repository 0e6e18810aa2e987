//! The seam to a database: one trait that a driver implements, and what passes through it.

use crate::dialect::Statement;
use crate::value::{Datum, Fields};

/// One connection to a database, with its prepared statements.
pub trait Session {
    /// Prepares the statements that flights name by their place in this list.
    fn prepare(&mut self, statements: &[Statement]) -> Result<(), SessionError>;

    /// Begins a transaction. A driver may send this along with the first flight.
    fn begin(&mut self, intent: Intent) -> Result<(), SessionError>;

    /// Executes the calls of a flight in their order, up to the first that fails, and appends a reply for
    /// each. No call depends on another's reply, so a driver may send them together or one by one.
    fn fly(&mut self, flight: &Flight, replies: &mut Vec<Reply>) -> Result<(), SessionError>;

    /// Commits. When this returns, what the engine's settings promise is done.
    fn commit(&mut self) -> Result<(), SessionError>;

    /// Rolls back. Without an open transaction it does nothing.
    fn rollback(&mut self) -> Result<(), SessionError>;
}

/// What a transaction will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Only read.
    Read,
    /// Also write. SQLite takes its write lock now: asking for it later fails whenever others write.
    Write,
}

/// What a statement did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Its rows, `rows[row][column]`, of the kinds that the statement declares.
    pub rows: Vec<Fields>,
    /// How many rows it inserted, deleted, or found to update, whether or not a value changed.
    pub affected: u64,
}

/// Why a driver could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SessionError {
    /// What follows from it.
    pub class: ErrorClass,
    /// What the engine said.
    pub message: String,
}

/// What follows from an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The engine ended a circle of lock waits: repeat with the same input.
    Deadlock,
    /// The transaction does not fit into any order with the others: repeat.
    Serialization,
    /// Another writer was in the way for longer than the engine waits: repeat.
    Busy,
    /// The connection is gone. Whether a commit under way was done is unknown.
    Gone,
    /// Anything else, which repeating does not mend.
    Other,
}

impl ErrorClass {
    /// Whether the same input may succeed when repeated.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Deadlock | Self::Serialization | Self::Busy)
    }
}

/// Calls of prepared statements that may travel together.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    /// Statement, and where its parameters end.
    calls: Vec<(usize, usize)>,
    fields: Fields,
}

impl Flight {
    pub(crate) fn add<const N: usize>(&mut self, statement: usize, parameters: [Datum; N]) {
        self.fields.extend(parameters);
        self.calls.push((statement, self.fields.len()));
    }

    pub(crate) fn add_all(&mut self, statement: usize, parameters: &[Datum]) {
        self.fields.extend_from_slice(parameters);
        self.calls.push((statement, self.fields.len()));
    }

    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        self.fields.clear();
    }

    /// Each call: the place of its statement in the prepared list, and its parameters.
    pub fn calls(&self) -> impl Iterator<Item = (usize, &[Datum])> {
        let mut start = 0;
        self.calls.iter().map(move |&(statement, end)| {
            let parameters = &self.fields[start..end];
            start = end;
            (statement, parameters)
        })
    }
}
