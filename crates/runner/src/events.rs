//! What a run says while it runs.

use plan::{Left, Round};
use record::{CellRecord, RunHeader, VisitRecord, Warning};
use units::{Bytes, Nanos};

/// Something worth showing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run has an id and is about to start (or to go on: `done` visits are stored).
    Begins {
        /// Its header.
        header: &'a RunHeader,
        /// Its cells, the impossible included.
        cells: &'a [CellRecord],
        /// Visits already made, on a resume.
        done: usize,
        /// What is left to do, fill and preconditioning excluded.
        left: Left,
    },
    /// A round begins, of the visits of one phase.
    Round {
        /// The phase's name.
        phase: &'a str,
        /// Which, and how many cells are open.
        round: Round,
    },
    /// A step without measurement: `flushing`, `dropping caches`, `settling`.
    Step(&'a str),
    /// A visit begins.
    VisitBegins {
        /// Which cell.
        cell: &'a CellRecord,
        /// How many visits of the run came before.
        order: u32,
        /// How long it takes at least, ramp included; `None` if that depends on the device.
        planned: Option<Nanos>,
        /// How many bytes it moves, if it stops by them.
        bytes: Option<Bytes>,
    },
    /// Ten times a second during a visit.
    Tick(Tick<'a>),
    /// A visit is over and stored.
    VisitEnds {
        /// Which cell.
        cell: &'a CellRecord,
        /// What it yielded.
        visit: &'a VisitRecord,
        /// Half-width of its cell's interval in ln rate so far; `None` before two visits.
        half_width: Option<f64>,
        /// What is left to do after it.
        left: Left,
    },
    /// A doubt about the run as a whole, stored.
    Warning(&'a Warning),
}

/// How a visit stands.
#[derive(Clone, Debug)]
pub struct Tick<'a> {
    /// Which cell.
    pub cell: &'a CellRecord,
    /// Since its start, ramp included.
    pub elapsed: Nanos,
    /// Operations completed since its start, of those that the tables count: flushes beside data are
    /// none, and an update or a copy is one.
    pub operations: u64,
    /// Bytes moved by them.
    pub bytes: Bytes,
    /// The same operations per second since the last tick.
    pub iops: f64,
    /// Requests that have been out for more than a second, longest first.
    pub waiting: Vec<Waiting>,
}

/// An operation that does not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Of which worker: stream's name and number.
    pub worker: String,
    /// What it is to do, and where: `read at byte 4096`.
    pub what: String,
    /// How long it has been out.
    pub age: Nanos,
}

/// Who listens.
pub trait Watcher {
    /// Called on the runner's thread; must not take long.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Watcher for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}
