//! What is to be done, before anything was.

use std::collections::BTreeSet;

use record::Blocks;
use stats::Random;
use stats::random::derive_seed;
use suite::model::{Cell, Method, Rounds, Steady, Suite};
use units::{Bytes, Nanos};

use crate::classic::orders;
use crate::{CellStanding, Course, Left, Made, PlannedVisit, VisitKey};

/// Keeps seeds of visits, pilots and permutations apart.
const VISIT: u64 = 1;
const PILOT: u64 = 3;
const ROUND: u64 = 4;
const JITTER: u64 = 5;

/// Ramps are longer by up to this share of a visit, so that visits do not keep step with a device
/// that pauses as regularly as they begin.
const JITTER_SHARE: u64 = 5;

/// What a run is to do: phases in order, each played in its own way.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub(crate) seed: u64,
    pub(crate) rounds: Rounds,
    pub(crate) phases: Vec<PhaseSchedule>,
    /// Least time of a visit to each cell of the suite, the pause before it included.
    pub(crate) least: Vec<Nanos>,
    /// Of that, the measured time that may be shortened.
    pub(crate) timed: Vec<Nanos>,
    /// The ramp of each cell whose visits begin at random moments; zero for the others.
    pub(crate) ramps: Vec<Nanos>,
    /// What the measured time of a visit to a slow device may be longer than that.
    pub(crate) extra: Vec<Nanos>,
    /// Names of the streams of each cell of the suite.
    pub(crate) streams: Vec<Vec<String>>,
    /// Which blocks are its own, where it is one side of a comparison.
    pub(crate) blocks: Option<Blocks>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PhaseSchedule {
    /// Those that are possible, in the suite's order.
    pub cells: Vec<u32>,
    pub way: Way,
}

/// How a phase is played.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Way {
    Classic(Vec<VisitKey>),
    Rounds {
        /// Cells that pilots watch.
        pilots: Vec<u32>,
    },
    Steady {
        steady: Steady,
        /// The cell that decides; `None` if it cannot be measured here.
        tracked: Option<u32>,
        /// Bytes to be written before it can be steady.
        volume: Bytes,
    },
}

impl Schedule {
    /// Of a suite, without the cells that cannot be measured here.
    pub fn new(suite: &Suite, seed: u64, impossible: &BTreeSet<u32>) -> Self {
        let mut classic = orders(suite, seed, impossible);
        let mut first = 0u32;
        let mut phases = Vec::with_capacity(suite.phases.len());
        for (phase, order) in suite.phases.iter().zip(&mut classic) {
            let count = u32::try_from(phase.cells.len()).unwrap_or(u32::MAX);
            let possible = |cell: &u32| !impossible.contains(cell);
            let way = match (phase.steady, suite.method) {
                (Some(steady), _) => {
                    let active = phase.active_range();
                    // `as` saturates, which is all that is asked of a bound this large.
                    let volume = Bytes::new((active.get() as f64 * steady.volume) as u64);
                    let tracked =
                        u32::try_from(steady.track).ok().and_then(|i| first.checked_add(i));
                    Way::Steady { steady, tracked: tracked.filter(possible), volume }
                }
                (None, Method::Rounds) => {
                    let pilots = suite.pilots(phase).into_iter();
                    let pilots = pilots.filter_map(|i| Some(first + u32::try_from(i).ok()?));
                    Way::Rounds { pilots: pilots.filter(possible).collect() }
                }
                (None, Method::Classic) => Way::Classic(std::mem::take(order)),
            };
            let cells = (first..first.saturating_add(count)).filter(possible).collect();
            phases.push(PhaseSchedule { cells, way });
            first = first.saturating_add(count);
        }
        let settles = suite.phases.iter();
        let settles = settles.flat_map(|p| std::iter::repeat_n(p.settle, p.cells.len()));
        let played = suite.cells_as_played();
        let timed: Vec<Nanos> = played.iter().map(timed).collect();
        let mut ramps: Vec<Nanos> = played.iter().map(ramp).collect();
        for (index, ramp) in (0u32..).zip(&mut ramps) {
            let in_rounds = |phase: &PhaseSchedule| {
                matches!(phase.way, Way::Rounds { .. }) && phase.cells.contains(&index)
            };
            if !phases.iter().any(in_rounds) {
                *ramp = Nanos::ZERO;
            }
        }
        let least = played.iter().zip(settles).zip(ramps.iter().zip(&timed));
        let least = least.map(|((cell, settle), (&ramp, &timed))| {
            cell.least_duration() + settle + Nanos::new(jitter_most(ramp, timed).get() / 2)
        });
        let least = least.collect();
        let extra = played.iter().zip(&timed).map(|(cell, &timed)| extra(cell, timed)).collect();
        let names = |cell: &Cell| cell.streams.iter().map(|stream| stream.name.clone()).collect();
        let streams = suite.cells().map(names).collect();
        let rounds = suite.rounds;
        Self { seed, rounds, phases, least, timed, ramps, extra, streams, blocks: None }
    }

    /// As one side of a comparison in blocks: rounds that are blocks of others are passed over, and
    /// keep their numbers.
    #[must_use]
    pub fn in_blocks(self, blocks: Option<&Blocks>) -> Self {
        Self { blocks: blocks.cloned(), ..self }
    }

    /// The first round from this number on that is visited; `None` where none is.
    pub(crate) fn round_from_number(&self, number: u32) -> Option<u32> {
        self.blocks.as_ref().map_or(Some(number), |blocks| blocks.next_block(number))
    }

    /// A course along it, nothing made yet.
    pub fn begin(&self) -> Course {
        Course::new(self.clone())
    }

    /// The course after these visits, in the order they were made.
    pub fn after(&self, made: &[Made]) -> Course {
        let mut course = self.begin();
        for made in made {
            course.add(made);
        }
        course
    }

    /// The visit that comes after these; `None` when all is done. Nothing but the schedule and
    /// the visits decides.
    pub fn next(&self, made: &[Made]) -> Option<PlannedVisit> {
        self.after(made).next()
    }

    /// How every possible cell stands after these visits.
    pub fn standing(&self, made: &[Made]) -> Vec<CellStanding> {
        self.after(made).standing()
    }

    /// What is left after these visits.
    pub fn left(&self, made: &[Made]) -> Left {
        self.after(made).left()
    }

    pub(crate) fn visit_seed(&self, key: VisitKey) -> u64 {
        derive_seed(self.seed, &[VISIT, u64::from(key.cell), u64::from(key.repeat)])
    }

    pub(crate) fn pilot_seed(&self, cell: u32) -> u64 {
        derive_seed(self.seed, &[PILOT, u64::from(cell)])
    }

    /// The ramp of a visit, longer by a random time; `None` if it is the cell's own.
    ///
    /// * `asked`: what the pilots ask for.
    pub(crate) fn ramp_of(&self, key: VisitKey, asked: Option<Nanos>) -> Option<Nanos> {
        let own = self.ramps.get(key.cell as usize).copied().unwrap_or(Nanos::ZERO);
        if own == Nanos::ZERO {
            return asked;
        }
        let ramp = own.max(asked.unwrap_or(Nanos::ZERO));
        let most = jitter_most(ramp, self.timed_of(key.cell)).get();
        let labels = [JITTER, u64::from(key.cell), u64::from(key.repeat)];
        Some(ramp + Nanos::new(Random::new(derive_seed(self.seed, &labels)).below(most.max(1))))
    }

    pub(crate) fn round_seed(&self, phase: usize, round: u32) -> u64 {
        derive_seed(self.seed, &[ROUND, phase as u64, u64::from(round)])
    }

    /// The cells of the phases from `phase` on that are played in rounds, since only they wait for
    /// their share.
    pub(crate) fn in_rounds_from(&self, phase: usize) -> impl Iterator<Item = u32> {
        let phases = self.phases.iter().skip(phase);
        let in_rounds = phases.filter(|phase| matches!(phase.way, Way::Rounds { .. }));
        in_rounds.flat_map(|phase| phase.cells.iter().copied())
    }

    /// What of a visit to a cell may be shortened; 0 where it does not end by time.
    pub(crate) fn timed_of(&self, cell: u32) -> Nanos {
        self.timed.get(cell as usize).copied().unwrap_or(Nanos::ZERO)
    }

    /// How much longer the measured part of a visit to a cell may get on a slow device.
    pub(crate) fn extra_of(&self, cell: u32) -> Nanos {
        self.extra.get(cell as usize).copied().unwrap_or(Nanos::ZERO)
    }

    pub(crate) fn least_of(&self, cell: u32) -> Nanos {
        self.least.get(cell as usize).copied().unwrap_or(Nanos::ZERO)
    }
}

/// Measured time of a cell whose every stream ends by time.
fn timed(cell: &Cell) -> Nanos {
    let times = cell.streams.iter().map(|s| s.stop.time.filter(|_| s.stop.by_time()));
    times.collect::<Option<Vec<_>>>().and_then(|times| times.into_iter().max()).unwrap_or_default()
}

/// The ramp of a cell all of whose streams have the same one and end by time.
fn ramp(cell: &Cell) -> Nanos {
    let mut ramps = cell.streams.iter().map(|s| Some(s.stop.ramp).filter(|_| s.stop.by_time()));
    let first = ramps.next().flatten().unwrap_or_default();
    // Cells that rest play whole turns.
    let is_one = !cell.rests() && ramps.all(|ramp| ramp == Some(first));
    if is_one { first } else { Nanos::ZERO }
}

/// The longest that a ramp is made longer by: what a pause can hide in is the ramp, so no longer than that.
fn jitter_most(ramp: Nanos, timed: Nanos) -> Nanos {
    ramp.min(Nanos::new((ramp + timed).get() / JITTER_SHARE))
}

/// What slow requests may add to the measured time of a cell.
fn extra(cell: &Cell, timed: Nanos) -> Nanos {
    let most = cell.streams.iter().filter_map(|s| Some(s.stop.extend?.time_max)).max();
    most.unwrap_or_default().saturating_sub(timed)
}
