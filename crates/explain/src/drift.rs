//! Slow changes and sudden ones over a run.

use record::{Series, VisitRecord};
use stats::changepoint::{Changes, changes};

use crate::freeze;
use crate::view::is_data;

/// Seconds a level must last to be one.
const SEGMENT_SECONDS: usize = 5;
const SECOND_NS: u64 = 1_000_000_000;

/// Whether the rate changed its level within a visit, seconds with a stall left out. Visits of
/// less than 10 s are too short to tell, and say no.
pub fn changed(visit: &VisitRecord) -> bool {
    Seconds::of(visit).and_then(|s| s.changes()).is_some_and(|c| c.segments.len() > 1)
}

/// Requests per second, second by second, those with a stall left out.
struct Seconds {
    /// Length of one, ns: a second, or what the series has if that is longer.
    step_ns: u64,
    /// Which second of the visit each value is.
    index: Vec<usize>,
    /// ln of (requests + 1) by the time.
    ln_rates: Vec<f64>,
}

impl Seconds {
    fn of(visit: &VisitRecord) -> Option<Self> {
        let ops = || visit.streams.iter().flat_map(|stream| &stream.ops);
        let has_data = ops().any(|op| is_data(&op.op));
        let series: Vec<&Series> =
            ops().filter(|op| !has_data || is_data(&op.op)).map(|op| &op.series).collect();
        let interval = series.iter().map(|s| s.interval_ns).max().filter(|&ns| ns > 0)?;
        let step_ns = interval.saturating_mul((SECOND_NS / interval).max(1));
        // The last one is whole only if the visit lasted that long.
        let steps = usize::try_from(visit.elapsed_ns / step_ns).ok()?;
        let longest = series.iter().map(|s| s.rows.len()).max().unwrap_or(0);
        let steps = steps.min(longest);
        let mut counts = vec![0u64; steps];
        for series in series {
            for (row, place) in series.rows.iter().zip(0u64..) {
                let step = place.saturating_mul(series.interval_ns) / step_ns;
                let count = usize::try_from(step).ok().and_then(|step| counts.get_mut(step));
                if let Some(count) = count {
                    *count = count.saturating_add(row.requests);
                }
            }
        }
        let gaps = freeze::gaps(visit);
        let quiet = |step: usize| {
            let start = (step as u64).saturating_mul(step_ns);
            let end = start.saturating_add(step_ns);
            !gaps.iter().any(|gap| gap.start_ns < end && gap.end_ns() > start)
        };
        let index: Vec<usize> = (0..steps).filter(|&step| quiet(step)).collect();
        let seconds = step_ns as f64 / 1e9;
        let ln_rates =
            index.iter().map(|&step| ((counts[step] as f64 + 1.0) / seconds).ln()).collect();
        Some(Self { step_ns, index, ln_rates })
    }

    fn changes(&self) -> Option<Changes> {
        let long = self.ln_rates.len() >= 2 * SEGMENT_SECONDS;
        long.then(|| changes(&self.ln_rates, SEGMENT_SECONDS)).flatten()
    }
}
