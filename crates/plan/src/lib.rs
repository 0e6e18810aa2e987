//! A checked suite to visits, one after the other.
//!
//! Which visit comes next is a function of the suite, the run's seed and the visits made so far
//! ([`Schedule::next`]), so a resumed run goes on as if it had never stopped. Three ways to play a
//! phase:
//!
//! - *classic*: the suite's own order and repeats;
//! - *rounds*: every cell that is open once a round, in a fresh random order, until the interval of
//!   its rate is narrow enough, of several streams that of each;
//! - *steady*: every cell once a round, as written, until the rate of the one that is tracked stays
//!   where it is.
//!
//! Phases are never interleaved.

mod classic;
mod course;
pub mod ladder;
mod room;
mod schedule;

pub use course::{Course, Round, RoundOf};
pub use room::Short;
pub use schedule::Schedule;

use record::Purpose;
use serde::{Deserialize, Serialize};
use stats::memory::Rows;
use units::{Bytes, Nanos};

/// One visit to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedVisit {
    /// How many visits of the schedule come before.
    pub order: u32,
    /// Index of the cell, from 0 over all phases.
    pub cell: u32,
    /// How many visits of this cell come before, those of its purpose.
    pub repeat: u32,
    /// To be counted, or to learn how long the ramp must be.
    pub purpose: Purpose,
    /// Where all randomness of the visit comes from.
    ///
    /// The run's seed, the cell and the repeat mixed by splitmix64's finaliser: independent of
    /// the order, so that a visit replays the same streams in a resumed run and under another
    /// order.
    pub seed: u64,
    /// Its ramp at least: what the pilots of its phase ask for, and a random time on top, so that visits do not
    /// stay in step with a device that pauses regularly; `None` where the cell's own is right.
    pub ramp: Option<Nanos>,
    /// Thousandths of its own measured time that there is time for, where not for all of it.
    pub time_permille: Option<u32>,
}

/// Which visit: unique among those of one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VisitKey {
    /// Index of the cell, from 0 over all phases.
    pub cell: u32,
    /// How many visits of this cell came before.
    pub repeat: u32,
}

impl PlannedVisit {
    /// Which visit it is.
    pub const fn key(&self) -> VisitKey {
        VisitKey { cell: self.cell, repeat: self.repeat }
    }
}

/// A visit that was made, as far as what comes next depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Which.
    pub key: VisitKey,
    /// What it was made for.
    pub purpose: Purpose,
    /// It ended by its stop rule. One that did not counts as made, and in no interval.
    pub ok: bool,
    /// For each stream of its cell the natural logarithm of its rate in requests per second;
    /// `None` if nothing completed.
    pub ln_rates: Vec<Option<f64>>,
    /// For each stream its rate over the visit: how much visits that follow each other closely have
    /// in common shows in it. Empty where that is not known.
    pub rows: Vec<Rows>,
    /// Why its cell may not end early, if so.
    pub veto: Option<Veto>,
    /// Time it took: the wait before it, its ramp and its measured part. On the device's clock,
    /// so that a resumed run counts the same.
    pub took: Nanos,
    /// Of that, the wait.
    pub waited: Nanos,
    /// Of that, the measured part.
    pub measured: Nanos,
    /// Bytes that reached the device.
    pub written: Bytes,
    /// What a pilot found that the ramp must be; `None` where it found no end to it, and in visits
    /// that are no pilots.
    pub ramp: Option<Nanos>,
}

/// Why a cell may not end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Veto {
    /// A visit in which nothing completed for a while.
    Stall,
    /// A visit far from the others of its cell.
    Outlier,
    /// A visit whose rate changed on the way.
    Change,
}

/// How a cell stands.
#[derive(Clone, Debug, PartialEq)]
pub struct CellStanding {
    /// Index of the cell.
    pub cell: u32,
    /// Whether it is done, and why.
    pub standing: Standing,
    /// Visits made to be counted.
    pub visits: u32,
    /// Half-width of its 95 % interval in ln rate, moderated over its phase; of several streams
    /// the widest. `None` with fewer than two visits in which something completed.
    pub half_width: Option<f64>,
    /// Why it was not let go early, if so.
    pub vetoes: Vec<Veto>,
}

/// Whether a cell is done, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// More visits are to come.
    Open,
    /// Its repeats were made, in the suite's own order.
    Made,
    /// Its interval is as narrow as was asked for; that of each of its streams.
    Converged,
    /// It is not.
    NotConverged(Why),
    /// Its rate stays where it is.
    Steady,
    /// So many rounds did not make it steady.
    NotSteady,
}

/// Why a cell ended without being known well enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It had as many visits as it may have.
    Cap,
    /// As many of its visits failed as would have been enough: another would too.
    Failed,
    /// Another round would have taken longer than the run may.
    Time,
    /// The run ended before its schedule did.
    Interrupted,
}

impl Standing {
    /// How it stands if nothing more comes.
    #[must_use]
    pub const fn ended(self) -> Self {
        match self {
            Self::Open => Self::NotConverged(Why::Interrupted),
            other => other,
        }
    }
}

/// What is left to do, as far as that can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Visits expected, pilots included: a cell's interval narrows with the root of its visits.
    pub visits: u32,
    /// There will be at most so many.
    pub visits_most: u32,
    /// Time that the expected ones take, by what those so far took.
    pub time: Nanos,
    /// That the time is what the longest time leaves, and visits end with it: more would be made
    /// if they could.
    pub ends_by_time: bool,
}

impl Left {
    fn add(&mut self, other: Self) {
        self.visits = self.visits.saturating_add(other.visits);
        self.visits_most = self.visits_most.saturating_add(other.visits_most);
        self.time += other.time;
        self.ends_by_time |= other.ends_by_time;
    }
}
