//! Where requests go: the suite's access patterns as generators of positions.
//!
//! A *position* counts units of the stream's alignment within its space. The space of a request
//! of `length` bytes has every position at which it still fits.

use stats::Random;
use stats::random::{Permutation, Zipf};
use suite::model::{Access, Zone};

use crate::shared::StreamShared;

/// One worker's generator of positions.
#[derive(Debug)]
pub(crate) enum Cursor {
    Sequential { next: u64 },
    SequentialShared { pass: u64 },
    Backward { next: u64 },
    BackwardShared { pass: u64 },
    Stride { step: u64, start: u64, next: u64 },
    Staggered { operations: u64 },
    Same,
    Uniform,
    Once { seed: u64, pass: u64, order: Permutation },
    Permutation { next: u64, order: Permutation },
    Zipf { law: Zipf, scatter: Permutation },
    Hot { zones: Box<[Zone]> },
    Mixed { random_share: f64, next: u64 },
}

impl Cursor {
    /// * `positions`: how many the longest request of the stream has; `units`: how long it is.
    /// * `worker` of `workers`; `seed` is the visit's, `run_seed` the run's.
    ///
    /// A replayed list has no cursor of its own: it gives `Same`.
    pub(crate) fn new(
        access: &Access,
        (positions, units): (u64, u64),
        (worker, workers): (u32, u32),
        seed: u64,
        run_seed: u64,
        operations: Option<u64>,
    ) -> Self {
        // Own cursors start at equal parts; in 128 bits since positions can be close to 2^64.
        let part = (u128::from(positions) * u128::from(worker) / u128::from(workers.max(1))) as u64;
        // Shared cursors only ever count up, so a pass must be whole blocks or the next one would
        // begin in the middle of one.
        let pass = positions.div_ceil(units.max(1)).saturating_mul(units).max(1);
        match access {
            Access::Sequential { shared: true } => Self::SequentialShared { pass },
            Access::Sequential { shared: false } => Self::Sequential { next: part },
            Access::Backward { shared: true } => Self::BackwardShared { pass },
            Access::Backward { shared: false } => Self::Backward { next: part },
            Access::Stride { step } => {
                let step = (*step).max(1);
                let start = u64::from(worker) % step.min(positions.max(1));
                Self::Stride { step, start, next: start }
            }
            Access::Staggered => Self::Staggered { operations: operations.unwrap_or(1).max(1) },
            Access::Same | Access::Replay { .. } => Self::Same,
            Access::Uniform => Self::Uniform,
            Access::UniformOnce => {
                Self::Once { seed, pass: 0, order: Permutation::new(positions, seed) }
            }
            Access::Permutation => {
                Self::Permutation { next: 0, order: Permutation::new(positions, run_seed) }
            }
            Access::Zipf { theta } => Self::Zipf {
                law: Zipf::new(positions, *theta),
                scatter: Permutation::new(positions, run_seed),
            },
            Access::Hot { zones } => Self::Hot { zones: zones.clone().into_boxed_slice() },
            Access::Mixed { random_share } => {
                Self::Mixed { random_share: *random_share, next: part }
            }
        }
    }

    /// The next position below `positions` for a request `units` long.
    #[inline]
    pub(crate) fn next(
        &mut self,
        random: &mut Random,
        shared: &StreamShared,
        positions: u64,
        units: u64,
    ) -> u64 {
        match self {
            Self::Uniform => random.below(positions),
            Self::Sequential { next } => step_forward(next, positions, units),
            Self::SequentialShared { pass } => step_shared(shared, *pass, positions, units),
            other => other.next_rare(random, shared, positions, units),
        }
    }

    /// The patterns whose own cost hides behind a division or a logarithm anyway.
    fn next_rare(
        &mut self,
        random: &mut Random,
        shared: &StreamShared,
        positions: u64,
        units: u64,
    ) -> u64 {
        match self {
            Self::Uniform
            | Self::Sequential { .. }
            | Self::SequentialShared { .. }
            | Self::Same => 0,
            Self::Backward { next } => positions - 1 - step_forward(next, positions, units),
            Self::BackwardShared { pass } => {
                positions - 1 - step_shared(shared, *pass, positions, units)
            }
            Self::Stride { step, start, next } => {
                if *next >= positions {
                    *start = (*start + 1) % (*step).min(positions);
                    *next = *start;
                }
                let position = *next;
                *next = position.saturating_add(*step);
                position
            }
            Self::Staggered { operations } => {
                let k = shared.take_sequence(1) % *operations;
                (u128::from(k) * u128::from(positions) / u128::from(*operations)) as u64
            }
            Self::Once { seed, pass, order } => {
                let index = shared.take_sequence(1);
                let this_pass = index / order.len().max(1);
                if this_pass != *pass {
                    *pass = this_pass;
                    *order = Permutation::new(
                        order.len(),
                        stats::random::derive_seed(*seed, &[this_pass]),
                    );
                }
                order.at(index).min(positions - 1)
            }
            Self::Permutation { next, order } => {
                let position = order.at(*next);
                *next += 1;
                position.min(positions - 1)
            }
            Self::Zipf { law, scatter } => scatter.at(law.sample(random) - 1).min(positions - 1),
            Self::Hot { zones } => hot(zones, random, positions),
            Self::Mixed { random_share, next } => {
                if random.unit() < *random_share {
                    *next = random.below(positions);
                }
                step_forward(next, positions, units)
            }
        }
    }
}

/// Takes the position at `next` and moves it `units` on, wrapping to 0 where the next request
/// would no longer fit.
#[inline]
fn step_forward(next: &mut u64, positions: u64, units: u64) -> u64 {
    let position = if *next >= positions { 0 } else { *next };
    *next = position + units;
    position
}

/// The same for a cursor that all workers move. Where requests of different lengths share one,
/// the last of a pass may have to move back to fit.
#[inline]
fn step_shared(shared: &StreamShared, pass: u64, positions: u64, units: u64) -> u64 {
    (shared.take_sequence(units) % pass).min(positions - 1)
}

fn hot(zones: &[Zone], random: &mut Random, positions: u64) -> u64 {
    let dice = random.unit();
    let (mut space, mut access) = (0.0, 0.0);
    for (index, zone) in zones.iter().enumerate() {
        access += zone.access_share;
        // The last zone takes what rounding left over.
        if dice < access || index + 1 == zones.len() {
            let first = (space * positions as f64).round() as u64;
            let end = (((space + zone.space_share) * positions as f64).round() as u64)
                .clamp(1, positions);
            let first = first.min(end - 1);
            return first + random.below(end - first);
        }
        space += zone.space_share;
    }
    0
}
