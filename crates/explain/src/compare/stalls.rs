//! What rates do not show: times in which nothing completed, and latencies.

use schemars::JsonSchema;
use serde::Serialize;

use crate::closing::load_ns;
use crate::view::CellView;

/// Shortest time without any completion that is called a stall.
const STALL_MS_MIN: u64 = 100;
/// And it must be this many times the usual time between completions.
const STALL_USUAL: f64 = 10.0;

/// Times of at least 100 ms, and of ten usual times between completions, in which nothing
/// completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stalls {
    /// How many.
    pub count: u32,
    /// The longest, ns, to a millisecond.
    pub longest_ns: u64,
    /// All of them together, ns.
    pub lost_ns: u64,
    /// Measured time that they are in, ns: of visits that know when something completed, which those
    /// of other tools do not.
    pub measured_ns: u64,
}

impl Stalls {
    /// In all visits of a cell, or of one of its streams, that count.
    pub(super) fn of(cell: &CellView<'_>) -> Self {
        let mut stalls = Self::default();
        for view in &cell.visits {
            let visit = view.visit;
            if visit.completions.bits == 0 {
                continue;
            }
            stalls.measured_ns = stalls.measured_ns.saturating_add(visit.rated_ns());
            let usual_ms = 1_000.0 / view.requests_per_second.max(1e-9);
            let least = STALL_MS_MIN.max((STALL_USUAL * usual_ms) as u64);
            // While a stream is flushed at the end no request waits, and nothing is asked for while
            // the last of a load that is over are waited for.
            let load_ms = load_ns(visit).div_ceil(1_000_000);
            let silences = view.completions().zero_runs(least).into_iter();
            let in_load = |(start, ms): &(u64, u64)| (start + ms).min(load_ms) >= start + least;
            for (_, ms) in silences.filter(in_load) {
                let ns = ms.saturating_mul(1_000_000);
                stalls.count = stalls.count.saturating_add(1);
                stalls.longest_ns = stalls.longest_ns.max(ns);
                stalls.lost_ns = stalls.lost_ns.saturating_add(ns);
            }
        }
        stalls
    }

    /// Two cells' together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            longest_ns: self.longest_ns.max(other.longest_ns),
            lost_ns: self.lost_ns.saturating_add(other.lost_ns),
            measured_ns: self.measured_ns.saturating_add(other.measured_ns),
        }
    }
}

/// Of a cell's data operations over all visits that count.
pub(super) struct Latencies {
    pub mean_ns: f64,
}

impl Latencies {
    /// `None` when nothing completed.
    pub fn of(cell: &CellView<'_>) -> Option<Self> {
        let (mut requests, mut sum) = (0u64, 0u128);
        for op in cell.visits.iter().flat_map(|visit| visit.counted()) {
            requests = requests.saturating_add(op.requests);
            sum = sum.saturating_add(op.latency_ns_sum);
        }
        (requests > 0).then(|| Self { mean_ns: sum as f64 / requests as f64 })
    }
}
