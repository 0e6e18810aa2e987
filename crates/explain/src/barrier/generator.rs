//! Whether the load generator itself is the limit.

use schemars::JsonSchema;
use serde::Serialize;

use crate::view::View;

/// A null target has to be this many times faster.
const FASTER: f64 = 3.0;
/// A generator thread, or all processors, busy for more than this share is a limit.
const BUSY: f64 = 0.9;

/// Whether the load generator itself is the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// A null target on this machine is not even three times as fast.
    NearNull {
        /// Requests per second against a null target.
        null_rate: f64,
    },
    /// A worker, or all processors, had hardly any time left.
    Busy {
        /// The busiest worker's share of the time, or that of all processors if more.
        share: f64,
    },
    /// A null target is fast enough, and no worker was busy all the time.
    RuledOut {
        /// Requests per second against a null target.
        null_rate: f64,
    },
    /// No null target was measured, or there is no rate to hold against it.
    Unknown,
}

impl Generator {
    /// It is the limit.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::NearNull { .. } | Self::Busy { .. })
    }
}

/// Judges the generator for cells of one operation.
///
/// * `iops`: the cap found, requests per second.
/// * `null_rate`: requests per second against a null target.
pub fn generator(
    view: &View<'_>,
    op: &str,
    iops: Option<f64>,
    null_rate: Option<f64>,
) -> Generator {
    if let Some(share) = busiest(view, op, iops).filter(|&share| share > BUSY) {
        return Generator::Busy { share };
    }
    match (iops, null_rate) {
        (Some(iops), Some(null_rate)) if null_rate < FASTER * iops => {
            Generator::NearNull { null_rate }
        }
        (Some(_), Some(null_rate)) => Generator::RuledOut { null_rate },
        _ => Generator::Unknown,
    }
}

/// Over the cells near the cap: the middle visit's busiest worker.
fn busiest(view: &View<'_>, op: &str, iops: Option<f64>) -> Option<f64> {
    let near = 0.9 * iops?;
    let processors = f64::from(view.run.header.machine.processors.max(1));
    let cells = view.grid().filter(|cell| cell.load().is_some_and(|load| load.op == op));
    let of_cell = cells.filter_map(|cell| {
        let mut shares: Vec<f64> = cell
            .visits
            .iter()
            .filter(|visit| visit.requests_per_second >= near)
            .filter_map(|visit| {
                let rated = visit.visit.rated_ns() as f64;
                let workers = visit.visit.streams.iter().flat_map(|stream| &stream.workers);
                let shares: Vec<f64> = workers
                    .filter_map(|worker| {
                        let (user, system) = (worker.cpu_user_ns?, worker.cpu_system_ns?);
                        Some(user.saturating_add(system) as f64 / rated)
                    })
                    .collect();
                let all = shares.iter().sum::<f64>() / processors;
                shares.into_iter().reduce(f64::max).map(|one| one.max(all))
            })
            .collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied()
    });
    of_cell.reduce(f64::max)
}
