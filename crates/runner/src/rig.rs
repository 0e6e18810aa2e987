//! What a run is played on. A kind of it is a file under `rigs` and a line in [`crate::rigs::KINDS`].
//!
//! A [`Site`] is decided and has changed nothing; [`Site::enter`] makes a [`Rig`] of it, which
//! gives out the [`Stage`] of each visit: a [`Seat`] for each thread that plays.

use std::sync::Arc;

use device::Device;
use record::{Counter, LedgerEntry, VisitRecord, Warning};
use stack::Target;
use suite::SuiteSource;
use suite::model::{CacheStep, Cell, StartFile, Stream, Suite};
use units::{Bytes, Nanos};
use uring::FileSet;

use crate::fill::Pass;
use crate::find::Found;
use crate::layers::Snapshot;
use crate::prepare::Paths;
use crate::quiet::Level;
use crate::turn::{Part, Turn};
use crate::{Order, RunError};

/// A kind of target that is named `NAME:REST`.
pub struct Kind {
    pub(crate) name: &'static str,
    /// The rest as it is stored, or what is wrong with it.
    pub(crate) rest: fn(&str) -> Result<String, String>,
    /// Looks at it; the suite may have to fit.
    pub(crate) find: fn(&str, &Order, &mut SuiteSource) -> Result<Found, RunError>,
    /// Its time is its own: however long a visit is, it is over when it has been played.
    pub(crate) own_clock: fn(&str) -> bool,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What a run is to be played on.
pub(crate) trait Site: std::fmt::Debug + Send {
    /// The files or the device, where it is such.
    fn paths(&self) -> Option<&Paths> {
        None
    }
    fn paths_mut(&mut self) -> Option<&mut Paths> {
        None
    }
    /// What the run is stored with as below it, where that is not files and devices themselves.
    fn targets(&self) -> &[Target] {
        &[]
    }
    /// What it will do, a sentence each; `None` where that is nothing, or what is done to [`Paths`].
    fn describe(&self) -> Option<Vec<String>> {
        None
    }
    /// Whether something must have been written before it can be read.
    fn holds_data(&self) -> bool {
        false
    }
    /// Whether what was written changes what follows.
    fn remembers_writes(&self) -> bool {
        false
    }
    /// Refuses what does not fit into memory.
    fn fits(
        &self,
        _suite: &Suite,
        _passes: &[Pass],
        _available: Option<Bytes>,
    ) -> Result<(), RunError> {
        Ok(())
    }
    /// Makes files, builds devices. From here on things outside change.
    fn enter(self: Box<Self>, entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError>;
}

/// With what a run begins.
pub(crate) struct Entering<'a> {
    pub suite: &'a Suite,
    /// All that will be played.
    pub cells: &'a [&'a Cell],
    pub seed: u64,
    /// Files stay.
    pub keep: bool,
    /// The run's own number, by which what it leaves is known.
    pub key: u64,
    /// Whether the user wants to stop.
    pub stops: &'a dyn Fn() -> bool,
}

/// What a run is played on while it runs. What is not overridden is of files alone.
pub(crate) trait Rig: std::fmt::Debug {
    /// The cell as it is played here.
    fn as_played(&self, cell: Cell) -> Cell {
        cell
    }
    /// The stage of a visit to `cell`; `None` if an earlier visit did not give back its seat.
    fn stage(&mut self, cell: &Cell, seed: u64) -> Result<Option<Stage>, RunError>;
    /// Names of the operations that it counts.
    fn operations(&self) -> &'static [&'static str] {
        &engine::NAMES
    }
    /// What a visit took comes back.
    fn give_back(&mut self, _seats: Vec<Box<dyn Seat>>) {}
    /// The device that is played on, between visits, where it is ours to exchange.
    fn device(&mut self) -> Option<&mut Box<dyn Seat>> {
        None
    }
    /// The device that is played on, for good.
    fn give_up(&mut self) -> Option<Box<dyn Seat>> {
        None
    }
    /// Whether it can play on.
    fn is_whole(&self) -> bool {
        true
    }
    /// Whether it is simulated.
    fn is_twin(&self) -> bool {
        true
    }
    /// Lets a pause pass on a clock of its own; false where that must be waited for.
    fn passes(&mut self, _pause: Nanos) -> bool {
        false
    }
    /// Reads the counters before a visit.
    fn mark_before(&mut self) {}
    /// What they counted since, and what is not known of them.
    fn ledger(&self) -> (Vec<LedgerEntry>, Vec<Warning>) {
        (Vec::new(), Vec::new())
    }
    /// What the server counted since then.
    fn counters(&mut self) -> Vec<Counter> {
        Vec::new()
    }
    /// Makes what a visit to `cell` finds in its directories or its database, before its time begins.
    /// False if the user wants to stop.
    ///
    /// * `tell`: is told how far it is.
    fn make_ready(
        &mut self,
        _cell: &Cell,
        _stops: &dyn Fn() -> bool,
        _tell: &mut dyn FnMut(&str),
    ) -> Result<bool, RunError> {
        Ok(true)
    }
    /// What a visit to `cell` made in its directories.
    fn made_files(&mut self, _cell: &Cell, _visit: &VisitRecord) {}
    /// What is to be doubted of the copies of a visit.
    fn doubts_of_copies(&mut self, _cell: &Cell) -> Vec<Warning> {
        Vec::new()
    }
    /// What others did since the last visit.
    fn changes(&mut self, _trims: bool) -> Vec<Warning> {
        Vec::new()
    }
    /// Lets the files begin empty, before a visit.
    ///
    /// * `size`: how long each is otherwise.
    fn begin_anew(&mut self, _how: StartFile, _size: Bytes) -> Result<(), RunError> {
        Ok(())
    }
    /// Gives files that began empty their length again, after the visit.
    fn end_anew(&mut self) -> Result<(), RunError> {
        Ok(())
    }
    /// Removes what goes with the run and lets go of the rest, before the run is said to be over:
    /// killed meanwhile it can be resumed. What could not be removed is a warning.
    fn leave(&mut self) -> Vec<Warning> {
        Vec::new()
    }
    /// Requests did not come back: nor may what else is asked of the same place.
    fn hangs(&mut self) {}
    /// The files as a stream would open them, for what is not played; `None` where there are none.
    fn opened(&mut self, _stream: &Stream) -> Result<Option<Arc<FileSet>>, RunError> {
        Ok(None)
    }
    /// The smallest unit of direct I/O as the opened files have it.
    fn direct_unit(&mut self, _cell: &Cell) -> Result<Option<Bytes>, RunError> {
        Ok(None)
    }
    /// The unit of direct I/O on files that are there now, for who reads the figures.
    fn alignment(&self) -> Option<u32> {
        None
    }
    /// Cache handling before a visit.
    fn caches(&mut self, _steps: &[CacheStep]) -> Result<(), RunError> {
        Ok(())
    }
    /// Whether there is a page cache that direct I/O could go around.
    fn has_page_cache(&self) -> bool {
        false
    }
    /// Share of the files' first 64 MiB that was in the page cache before the visit, and is now;
    /// `None` where there is no such cache or the kernel does not tell.
    fn cached_shares(&self) -> (Option<f64>, Option<f64>) {
        (None, None)
    }
    /// The counters of every device below, to see whether it is idle; `None` where one of them is
    /// not counted.
    fn levels(&self) -> Option<Vec<Level>> {
        None
    }
}

/// Where a thread plays its workers.
pub(crate) trait Seat: std::fmt::Debug + Send {
    /// Plays them; `None` where the visit was called off before it began.
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError>;
    /// A device with a clock of its own, to ask it for something besides.
    fn as_device(&mut self) -> Option<&mut dyn Device> {
        None
    }
    /// A visit to `cell` is next.
    fn begin(&mut self, _cell: &Cell, _seed: u64) {}
    /// What its own clock says, from when it was made.
    fn simulated_now(&self) -> Option<Nanos> {
        None
    }
    /// Lets time pass on that; false where it is not in our hands.
    fn passes(&mut self, _span: Nanos) -> bool {
        false
    }
    /// What passed its layers so far.
    fn layers(&self) -> Option<Snapshot> {
        None
    }
}

/// What a visit is played on.
#[derive(Debug)]
pub(crate) enum Stage {
    /// A thread for each worker: stream after stream, worker after worker.
    Each(Vec<Box<dyn Seat>>),
    /// One thread for all.
    Whole(Box<dyn Seat>),
}

impl Stage {
    /// What the clock of a device that keeps its own says.
    pub(crate) fn simulated_now(&self) -> Option<Nanos> {
        match self {
            Self::Each(_) => None,
            Self::Whole(seat) => seat.simulated_now(),
        }
    }
}

/// A device of this process, on which all workers play: it is handed to the playing thread and
/// comes back.
#[derive(Debug)]
pub(crate) struct Twin {
    device: Option<Box<dyn Seat>>,
    before: Option<Snapshot>,
}

impl Twin {
    pub(crate) fn of(device: impl Seat + 'static) -> Box<dyn Rig> {
        Box::new(Self { device: Some(Box::new(device)), before: None })
    }
}

impl Rig for Twin {
    fn stage(&mut self, cell: &Cell, seed: u64) -> Result<Option<Stage>, RunError> {
        let Some(mut device) = self.device.take() else { return Ok(None) };
        device.begin(cell, seed);
        self.before = device.layers();
        Ok(Some(Stage::Whole(device)))
    }

    fn give_back(&mut self, mut seats: Vec<Box<dyn Seat>>) {
        self.device = seats.pop().or_else(|| self.device.take());
    }

    fn device(&mut self) -> Option<&mut Box<dyn Seat>> {
        self.device.as_mut().filter(|device| device.simulated_now().is_some())
    }

    fn give_up(&mut self) -> Option<Box<dyn Seat>> {
        self.device.take()
    }

    fn is_whole(&self) -> bool {
        self.device.is_some()
    }

    fn passes(&mut self, pause: Nanos) -> bool {
        self.device.as_mut().is_some_and(|device| device.passes(pause))
    }

    fn ledger(&self) -> (Vec<LedgerEntry>, Vec<Warning>) {
        let after = self.device.as_ref().and_then(|device| device.layers());
        let entries = self.before.as_ref().zip(after).map(|(before, after)| after.since(before));
        (entries.unwrap_or_default(), Vec::new())
    }
}

/// Has each play on the simulated device of the other from now on; nothing where either has none.
pub(crate) fn exchange(one: &mut dyn Rig, other: &mut dyn Rig) {
    if let (Some(ours), Some(theirs)) = (one.device(), other.device()) {
        std::mem::swap(ours, theirs);
    }
}
