//! A checked suite to ordered visits.
//!
//! A [`Plan`] is a function of the suite and the run's seed alone, so a resumed run makes the
//! same plan again and goes on with what is left of it.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use stats::Random;
use stats::random::derive_seed;
use suite::model::{Order, Suite};
use units::Nanos;

/// Keeps seeds of visits and of permutations apart.
const VISIT: u64 = 1;
const PERMUTATION: u64 = 2;

/// What a run will do, visit by visit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The run's seed.
    pub seed: u64,
    /// In the order in which they are to be made.
    pub visits: Vec<PlannedVisit>,
}

/// One visit of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlannedVisit {
    /// How many visits of the plan come before.
    pub order: u32,
    /// Index of the cell, from 0 over all phases.
    pub cell: u32,
    /// How many visits of this cell come before.
    pub repeat: u32,
    /// Where all randomness of the visit comes from.
    ///
    /// The run's seed, the cell and the repeat mixed by splitmix64's finaliser: independent of
    /// the order, so that a visit replays the same streams in a resumed run and under another
    /// order.
    pub seed: u64,
}

/// Which visit: unique in a run.
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

impl Plan {
    /// Orders a suite's visits.
    ///
    /// Phase after phase; in a phase repeat after repeat, so that what drifts drifts over all
    /// cells alike; in a repeat cell after cell, as written or in a permutation of its own.
    pub fn new(suite: &Suite, seed: u64) -> Self {
        let mut visits = Vec::new();
        let mut first = 0u32;
        for (phase, label) in suite.phases.iter().zip(0u64..) {
            let count = u32::try_from(phase.cells.len()).unwrap_or(u32::MAX);
            for repeat in 0..suite.repeats {
                let mut cells: Vec<u32> = (first..first.saturating_add(count)).collect();
                if suite.order == Order::Shuffled {
                    let labels = [PERMUTATION, label, u64::from(repeat)];
                    Random::new(derive_seed(seed, &labels)).shuffle(&mut cells);
                }
                visits.extend(cells.into_iter().map(|cell| VisitKey { cell, repeat }));
            }
            first = first.saturating_add(count);
        }
        Self { seed, visits: numbered(visits, seed) }
    }

    /// The plan without cells that cannot be measured here, numbered anew.
    pub fn without_cells(&self, cells: &BTreeSet<u32>) -> Self {
        let left = self.visits.iter().filter(|visit| !cells.contains(&visit.cell));
        let left = left.map(PlannedVisit::key).collect();
        Self { seed: self.seed, visits: numbered(left, self.seed) }
    }

    /// The visits that are not among `done`, in the plan's order and with its numbers.
    pub fn remaining(&self, done: &HashSet<VisitKey>) -> Vec<PlannedVisit> {
        self.visits.iter().filter(|visit| !done.contains(&visit.key())).copied().collect()
    }
}

fn numbered(keys: Vec<VisitKey>, seed: u64) -> Vec<PlannedVisit> {
    let visit = |(key, order): (VisitKey, u32)| PlannedVisit {
        order,
        cell: key.cell,
        repeat: key.repeat,
        seed: derive_seed(seed, &[VISIT, u64::from(key.cell), u64::from(key.repeat)]),
    };
    keys.into_iter().zip(0u32..).map(visit).collect()
}

/// Time that `visits` take at least: what their cells ask for, and the pause before each.
pub fn least_duration(suite: &Suite, visits: &[PlannedVisit]) -> Nanos {
    let cells: Vec<Nanos> = suite.cells().map(suite::model::Cell::least_duration).collect();
    visits.iter().fold(Nanos::ZERO, |sum, visit| {
        let cell = cells.get(visit.cell as usize).copied().unwrap_or(Nanos::ZERO);
        sum + cell + suite.settle
    })
}

/// What is known about the pace of a run when its end is to be foretold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Visits made since this process began to make them.
    pub visits: u32,
    /// What they asked for at least: [`least_duration`] of them.
    pub least: Nanos,
    /// What they took.
    pub elapsed: Nanos,
}

impl Progress {
    /// Time until `left` is done: what it asks for, and for each visit what the visits so far
    /// took beyond what they asked for (cache handling, opening, storing; all of a visit that
    /// ends by bytes or requests). Before the first visit ends, only what is asked for.
    pub fn time_left(&self, suite: &Suite, left: &[PlannedVisit]) -> Nanos {
        let beyond = self.elapsed.saturating_sub(self.least).get();
        let each = beyond.checked_div(u64::from(self.visits)).unwrap_or(0);
        least_duration(suite, left) + Nanos::new(each.saturating_mul(left.len() as u64))
    }
}
