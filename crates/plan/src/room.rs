//! Whether there is time for as many visits as an interval is made of, and what is shortened where
//! there is not.
//!
//! A visit is a wait for an idle device, a ramp and a measured part. Waits are the device's and
//! ramps the load's; the measured part alone may be shorter: no longer for slow requests first, then
//! down to a quarter. A visit of a quarter says less, but a cell with too few visits says nothing of how sure it is.

use units::Nanos;

use crate::{Course, Schedule};

/// Of a measured part, in thousandths.
pub(crate) const WHOLE: u32 = 1000;
pub(crate) const LEAST: u32 = 250;

/// What a visit to a cell takes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    /// The wait, the ramp, and what does not end by time.
    pub fixed: Nanos,
    /// The measured part, as long as it is meant to be.
    pub timed: Nanos,
    /// What it is longer on a slow device; shortened visits are not.
    pub extra: Nanos,
}

/// So many thousandths of it.
pub(crate) fn part(time: Nanos, permille: u32) -> Nanos {
    let part = u128::from(time.get()) * u128::from(permille) / u128::from(WHOLE);
    Nanos::new(u64::try_from(part).unwrap_or(u64::MAX))
}

impl Parts {
    /// With so many thousandths of its measured part.
    pub(crate) fn at(self, permille: u32) -> Nanos {
        let extra = if permille < WHOLE { Nanos::ZERO } else { self.extra };
        self.fixed + part(self.timed, permille) + extra
    }

    fn times(self, n: u32) -> Self {
        let times = |part: Nanos| Nanos::new(part.get().saturating_mul(n.into()));
        Self { fixed: times(self.fixed), timed: times(self.timed), extra: times(self.extra) }
    }

    fn plus(self, other: Self) -> Self {
        let sum = |a: Nanos, b: Nanos| Nanos::new(a.get().saturating_add(b.get()));
        Self {
            fixed: sum(self.fixed, other.fixed),
            timed: sum(self.timed, other.timed),
            extra: sum(self.extra, other.extra),
        }
    }

    /// The largest share of the measured part with which it takes no longer than `time`; all of it
    /// where there is nothing to shorten.
    fn permille_within(self, time: Nanos) -> u32 {
        if self.at(WHOLE) <= time {
            return WHOLE;
        }
        let left = u128::from(time.saturating_sub(self.fixed).get()) * u128::from(WHOLE);
        let permille = left.checked_div(u128::from(self.timed.get()));
        let cut = |permille| u32::try_from(permille).unwrap_or(WHOLE).clamp(LEAST, WHOLE - 1);
        permille.map_or(WHOLE, cut)
    }
}

/// A run that has not time enough for the visits that it is to make at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Visits of every cell that are wanted at least.
    pub wanted: u32,
    /// Measured parts are so many thousandths of what they were to be.
    pub time_permille: u32,
    /// Visits of every cell that there is time for all the same, if that is fewer than wanted.
    pub rounds: Option<u32>,
    /// What the visits that are wanted would take as they were meant.
    pub needed: Nanos,
}

impl Schedule {
    /// What the longest time leaves no room for, before anything is known of waits; `None` where it
    /// is enough.
    pub fn short(&self) -> Option<Short> {
        let course = self.begin();
        let wanted = self.rounds.visits_min;
        let pilots = course.pilots_from(0);
        let once = course.sum(self.in_rounds_from(0));
        let all = once.times(wanted);
        let time = self.rounds.time_max.saturating_sub(pilots);
        let time_permille = all.permille_within(time);
        if time_permille == WHOLE {
            return None;
        }
        let rounds = time.get().checked_div(once.at(time_permille).get()).unwrap_or(0);
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX).max(1);
        Some(Short {
            wanted,
            time_permille,
            rounds: Some(rounds).filter(|&rounds| rounds < wanted),
            needed: all.at(WHOLE) + pilots,
        })
    }
}

impl Schedule {
    /// How long a device that does not become idle may be waited for before each visit, so that there
    /// is time for all visits that are wanted at least: half of the time to spare, in equal parts. The
    /// other half is for what takes longer than planned.
    pub fn wait_most(&self) -> Nanos {
        let course = self.begin();
        let wanted = self.rounds.visits_min;
        let needed = course.sum(self.in_rounds_from(0)).times(wanted).at(WHOLE);
        let spare = self.rounds.time_max.saturating_sub(needed + course.pilots_from(0));
        let counts =
            course.in_rounds(0).map(|(cells, pilots)| (cells * u64::from(wanted)) + pilots);
        Nanos::new(spare.get() / 2 / counts.sum::<u64>().max(1))
    }
}

impl Course {
    /// Mean wait before a visit so far.
    pub fn mean_wait(&self) -> Nanos {
        mean(self.waits.0, self.waits.1).unwrap_or_default()
    }

    /// What a visit to a cell takes: as its visits so far; the first as it was meant, with the
    /// usual wait, and longer by as much as others were.
    pub(crate) fn parts(&self, index: u32) -> Parts {
        let meant = self.meant(index);
        let made = self.cells.get(&index).filter(|cell| cell.visits() > 0);
        let Some(cell) = made else {
            return Parts {
                fixed: meant.fixed + self.mean_wait(),
                extra: self.mean_extra().min(self.schedule.extra_of(index)),
                ..meant
            };
        };
        Parts {
            fixed: mean(cell.beside, cell.visits()).unwrap_or_default(),
            // Nobody knows how long it is where every visit was shortened.
            extra: mean(cell.extra.0, cell.extra.1).unwrap_or(self.schedule.extra_of(index)),
            ..meant
        }
    }

    /// As the suite says it.
    fn meant(&self, index: u32) -> Parts {
        let timed = self.schedule.timed_of(index);
        let fixed = self.schedule.least_of(index).saturating_sub(timed);
        Parts { fixed, timed, extra: Nanos::ZERO }
    }

    /// How much longer the measured parts were than they were meant to be: slow devices get more
    /// time for their requests.
    fn mean_extra(&self) -> Nanos {
        mean(self.extra.0, self.extra.1).unwrap_or_default()
    }

    fn sum(&self, cells: impl Iterator<Item = u32>) -> Parts {
        cells.fold(Parts::default(), |sum, cell| sum.plus(self.parts(cell)))
    }

    /// Time for so many rounds of the phases from `phase` on.
    pub(crate) fn kept(&self, phase: usize, rounds: u32, permille: u32) -> Nanos {
        self.sum(self.schedule.in_rounds_from(phase)).times(rounds).at(permille)
    }

    /// How much of the measured parts there is time for in the next round, if every cell that is
    /// open, and every one of the phases to come, is to have the least number of visits. All of it
    /// where no open cell wants any: what comes on top is not made shorter for it. Of a comparison
    /// too, whose sides are to measure alike, however long each is waited for.
    pub(crate) fn time_permille_for(&self, open: &[u32]) -> u32 {
        let rounds = &self.schedule.rounds;
        let owed = |cell: &u32| {
            let made = self.cells.get(cell).map_or(0, |cell| cell.visits());
            rounds.visits_min.saturating_sub(made)
        };
        if self.schedule.blocks.is_some() || open.iter().all(|cell| owed(cell) == 0) {
            return WHOLE;
        }
        // Ramps of visits that were made are in what those took.
        let longer = self.ramp.map_or(Nanos::ZERO, |ramp| ramp.saturating_sub(rounds.ramp));
        let here = open.iter().fold(Parts::default(), |sum, cell| {
            let mut parts = self.parts(*cell);
            if owed(cell) == rounds.visits_min {
                parts.fixed += longer;
            }
            sum.plus(parts.times(owed(cell)))
        });
        let later = self.schedule.in_rounds_from(self.phase + 1);
        let later = self.sum(later).times(rounds.visits_min);
        let left = rounds.time_max.saturating_sub(self.elapsed);
        let left = left.saturating_sub(self.pilots_after(self.phase));
        here.plus(later).permille_within(left)
    }
}

fn mean(sum: Nanos, of: u32) -> Option<Nanos> {
    sum.get().checked_div(of.into()).map(Nanos::new)
}
