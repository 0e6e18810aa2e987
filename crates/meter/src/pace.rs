//! When operations begin.

use stats::Random;
use suite::model::{Arrivals, Duty, Pacing, Stop};
use units::{Instant, Nanos};

use crate::OpId;

/// What is asked of the workers of a stream.
#[derive(Clone, Debug)]
pub struct Load<'a> {
    /// The stream's name.
    pub name: &'a str,
    /// How many workers it has.
    pub threads: u32,
    /// Operations that each has in flight at most.
    pub depth: u32,
    /// When they begin.
    pub pacing: Pacing,
    /// Work and rest by turns.
    pub duty: Option<Duty>,
    /// When the stream ends.
    pub stop: Stop,
    /// Operations that follow on others, which no rate asks for.
    pub unasked: Vec<OpId>,
}

/// When the operations of a worker begin.
#[derive(Debug)]
pub enum Pace {
    /// The next as soon as one ends.
    Closed,
    /// A pause of a lane after so many operations of it.
    Think {
        /// Its length.
        think: Nanos,
        /// After how many, at least 1.
        burst: u32,
        /// By lane, how many there were.
        ended: Vec<u32>,
    },
    /// At planned times.
    Open {
        /// When the next is planned.
        due: Instant,
        /// The part of a nanosecond that is left over.
        fraction: f64,
        /// From one to the next on average.
        gap_ns: f64,
        /// How they are spaced.
        arrivals: Arrivals,
    },
}

impl Pace {
    /// * `lanes`: places of the worker for an operation in flight.
    pub(crate) fn new(load: &Load<'_>, worker: u32, lanes: u32) -> Self {
        match load.pacing {
            Pacing::Closed { think, .. } if think == Nanos::ZERO => Self::Closed,
            Pacing::Closed { think, burst } => {
                Self::Think { think, burst: burst.max(1), ended: vec![0; lanes as usize] }
            }
            Pacing::Open { rate, arrivals } => {
                let threads = f64::from(load.threads);
                let gap_ns = threads * 1e9 / rate;
                // Fixed arrivals of different workers interleave evenly.
                let first = gap_ns * f64::from(worker) / threads;
                let due = Instant::new(first as u64);
                Self::Open { due, fraction: first.fract(), gap_ns, arrivals }
            }
        }
    }

    /// An operation of a lane ended: how long it pauses now, if it does.
    pub fn pause(&mut self, lane: u32) -> Option<Nanos> {
        let Self::Think { think, burst, ended } = self else { return None };
        let count = ended.get_mut(lane as usize)?;
        *count += 1;
        count.is_multiple_of(*burst).then_some(*think)
    }

    /// The next arrival is taken.
    pub(crate) fn advance(&mut self, random: &mut Random) {
        let Self::Open { due, fraction, gap_ns, arrivals } = self else { return };
        let gap = match arrivals {
            Arrivals::Fixed => *gap_ns,
            Arrivals::Poisson => *gap_ns * random.exponential(),
        };
        // Whole ns go to the clock, the rest is carried: the rate is exact in the long run.
        let exact = gap + *fraction;
        *due = *due + Nanos::new(exact as u64);
        *fraction = exact.fract();
    }

    /// Arrivals due before `at` that were not begun; of random ones, as many as there are on
    /// average. One due at the end itself is of the time after it.
    pub(crate) fn left(&self, at: Instant) -> u64 {
        match self {
            Self::Open { due, gap_ns, .. } if *due < at => {
                ((at.since(*due).get() - 1) as f64 / gap_ns) as u64 + 1
            }
            _ => 0,
        }
    }
}
