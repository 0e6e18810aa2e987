//! What the start and the end of a visit can make of its rate.
//!
//! At a visit's start and at its end the requests in flight are filling up or running dry, and
//! those are as many as are in flight: of N requests with n in flight the rate can be wrong by
//! about n/N, mostly too low. Repeating the visit does not help: every visit has the same ends.

use crate::view::{CellView, VisitView};

/// From this share on it is said, and taken into the interval.
pub const SHARE_MIN: f64 = 0.05;

/// A cell with few requests for each one in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// Requests in flight.
    pub in_flight: f64,
    /// Requests that were completed in a visit, on average.
    pub requests: f64,
    /// The one by the other: how far the rate may be off, 1 at most.
    pub share: f64,
}

impl Ends {
    /// What was seen, and what helps.
    pub fn evidence(&self) -> String {
        format!(
            "a visit has {:.0} requests with {:.0} in flight: its start and end may make the rate \
             wrong by up to {:.0} %, mostly too low; longer visits help (without --quick, or \
             --set time=...)",
            self.requests.round(),
            self.in_flight.round().max(1.0),
            (self.share * 100.0).round()
        )
    }
}

/// Of a row; `None` where its visits are long enough, or nobody knows what was in flight.
pub fn ends(row: &CellView<'_>) -> Option<Ends> {
    let counted: Vec<(f64, f64)> = row
        .visits
        .iter()
        .filter(|visit| visit.requests_per_second > 0.0 && visit.visit.elapsed_ns > 0)
        .map(|visit| {
            let seconds = visit.visit.elapsed_ns as f64 / 1e9;
            (visit.requests_per_second * seconds, seen(visit))
        })
        .collect();
    if counted.is_empty() {
        return None;
    }
    let visits = counted.len() as f64;
    let requests = counted.iter().map(|(requests, _)| requests).sum::<f64>() / visits;
    let seen = counted.iter().map(|(_, seen)| seen).sum::<f64>() / visits;
    let asked =
        row.plans().iter().map(|plan| f64::from(plan.threads) * f64::from(plan.queue_depth));
    let asked: f64 = asked.sum();
    // With pauses or a planned rate far fewer may be in flight than there are slots.
    let in_flight = if asked > 0.0 && seen * 2.0 >= asked { asked } else { seen };
    let share = (in_flight / requests).min(1.0);
    (share.is_finite() && share >= SHARE_MIN).then_some(Ends { in_flight, requests, share })
}

/// Requests in flight on average: the sum of all latencies by the time measured.
pub(crate) fn seen(visit: &VisitView<'_>) -> f64 {
    let ops = visit.streams().iter().flat_map(|stream| &stream.ops);
    ops.map(|op| op.latency_ns_sum as f64).sum::<f64>() / visit.visit.elapsed_ns as f64
}
