//! What the start and the end of a visit can make of its rate.
//!
//! At a visit's start and at its end the requests in flight are filling up or running dry, and
//! those are as many as are in flight: of N requests with n in flight the rate can be wrong by
//! about n/N. Of one at a time it is known which way: the request that began in the ramp counts
//! whole, so the rate is too high. Repeating the visit does not help: every visit has the same ends.

use crate::view::{CellView, VisitView};

/// From this share on it is said.
pub const SHARE_MIN: f64 = 0.05;
/// From this share on it is taken into the interval.
pub const WIDENS_FROM: f64 = 0.01;

/// A cell with few requests for each one in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// Requests in flight.
    pub in_flight: f64,
    /// Requests that were completed in a visit, on average.
    pub requests: f64,
    /// The one by the other: how far the rate may be off, 1 at most.
    pub share: f64,
    /// It can only be too high: one request at a time, the first of a visit begun in its ramp.
    pub too_high: bool,
}

impl Ends {
    /// What was seen, and what helps.
    pub fn evidence(&self) -> String {
        format!(
            "a visit has {:.0} requests with {:.0} in flight: its start and end may make the rate \
             {} by up to {:.0} %; longer visits help (without --quick, or --set time=...)",
            self.requests.round(),
            self.in_flight.round().max(1.0),
            if self.too_high { "too high" } else { "wrong" },
            (self.share * 100.0).round()
        )
    }
}

/// Of a row; `None` where its visits are long enough, or nobody knows what was in flight.
pub fn ends(row: &CellView<'_>) -> Option<Ends> {
    of_share(row, SHARE_MIN)
}

/// By which share a row's interval is to be wider for it; `None` where that is next to nothing.
pub fn widens(row: &CellView<'_>) -> Option<f64> {
    of_share(row, WIDENS_FROM).map(|found| found.share)
}

fn of_share(row: &CellView<'_>, least: f64) -> Option<Ends> {
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
    let ramped = row.visits.iter().all(|visit| visit.visit.ramp_ns > 0);
    let too_high = asked == 1.0 && ramped;
    let found = Ends { in_flight, requests, share, too_high };
    (share.is_finite() && share >= least).then_some(found)
}

/// Requests in flight on average: the sum of all latencies by the time measured.
pub(crate) fn seen(visit: &VisitView<'_>) -> f64 {
    let ops = visit.streams().iter().flat_map(|stream| &stream.ops);
    ops.map(|op| op.latency_ns_sum as f64).sum::<f64>() / visit.visit.elapsed_ns as f64
}
