//! The suite's own order.

use std::collections::BTreeSet;

use stats::Random;
use stats::random::derive_seed;
use suite::model::{Order, Suite};

use crate::VisitKey;

const PERMUTATION: u64 = 2;

/// The visits of each phase in the suite's own order: phase after phase; in a phase repeat after
/// repeat, so that what drifts drifts over all cells alike; in a repeat cell after cell, as written
/// or in a permutation of its own. Cells that are `impossible` are left out.
///
/// A function of the suite and the seed alone.
pub(crate) fn orders(suite: &Suite, seed: u64, impossible: &BTreeSet<u32>) -> Vec<Vec<VisitKey>> {
    let mut first = 0u32;
    let mut orders = Vec::with_capacity(suite.phases.len());
    for (phase, label) in suite.phases.iter().zip(0u64..) {
        let count = u32::try_from(phase.cells.len()).unwrap_or(u32::MAX);
        let mut keys = Vec::new();
        for repeat in 0..suite.repeats {
            let mut cells: Vec<u32> = (first..first.saturating_add(count)).collect();
            if suite.order == Order::Shuffled {
                let labels = [PERMUTATION, label, u64::from(repeat)];
                Random::new(derive_seed(seed, &labels)).shuffle(&mut cells);
            }
            cells.retain(|cell| !impossible.contains(cell));
            keys.extend(cells.into_iter().map(|cell| VisitKey { cell, repeat }));
        }
        first = first.saturating_add(count);
        orders.push(keys);
    }
    orders
}
