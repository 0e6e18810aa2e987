//! A visit second by second.

use record::{Series, VisitRecord};
use stats::changepoint::{self, Changes, Levels, Noise, Segment, changes_given, noise};
use stats::trend::{Line, least_squares};

use super::{Slope, Step, block_slope};
use crate::closing::load_ns;
use crate::freeze;
use crate::view::{as_if_alone, counted, streams_of};

/// Seconds a level must last to be one.
const SEGMENT_SECONDS: usize = 5;
const SECOND_NS: u64 = 1_000_000_000;

/// Requests per second, second by second, those left out in which something stood still, there was
/// nothing to do, or a stream worked beside it that mostly does not.
pub(super) struct Seconds {
    /// Length of one, ns: a second, or what the series has if that is longer.
    step_ns: u64,
    /// Which second of the visit each value is.
    index: Vec<usize>,
    /// Requests of each.
    counts: Vec<u64>,
    /// ln of (requests + 1) by the time.
    ln_rates: Vec<f64>,
}

impl Seconds {
    /// Of all streams of a visit, or of one of its several.
    pub(super) fn of(visit: &VisitRecord, stream: Option<usize>) -> Option<Self> {
        let series: Vec<&Series> = counted(visit, stream).map(|op| &op.series).collect();
        let interval = series.iter().map(|s| s.interval_ns).max().filter(|&ns| ns > 0)?;
        let step_ns = interval.saturating_mul((SECOND_NS / interval).max(1));
        // The last one counts only if the visit lasted to its end.
        let steps = usize::try_from(load_ns(visit) / step_ns).ok()?;
        let rows_ns = |s: &&Series| (s.rows.len() as u64).saturating_mul(s.interval_ns);
        let covered = series.iter().map(rows_ns).max().unwrap_or(0).div_ceil(step_ns);
        let steps = steps.min(usize::try_from(covered).ok()?);
        let mut counts = vec![0u64; steps];
        for series in &series {
            for (row, place) in series.rows.iter().zip(0u64..) {
                let step = place.saturating_mul(series.interval_ns) / step_ns;
                let count = usize::try_from(step).ok().and_then(|step| counts.get_mut(step));
                if let Some(count) = count {
                    *count = count.saturating_add(row.requests);
                }
            }
        }
        let mut gaps = freeze::gaps(visit);
        gaps.extend(stream.iter().flat_map(|&k| freeze::gaps(&as_if_alone(visit, k))));
        let mut without: Vec<(u64, u64)> =
            gaps.iter().map(|gap| (gap.start_ns, gap.end_ns())).collect();
        without.extend(idle(visit, stream, &series));
        let beside = pauses_beside(visit, stream);
        let quiet = |step: usize| {
            let start = (step as u64).saturating_mul(step_ns);
            let end = start.saturating_add(step_ns);
            let rests = |pauses: &Vec<(u64, u64)>| {
                pauses.iter().any(|&(from, to)| from <= start && end <= to)
            };
            !without.iter().any(|&(from, to)| from < end && to > start) && beside.iter().all(rests)
        };
        let index: Vec<usize> = (0..steps).filter(|&step| quiet(step)).collect();
        let seconds = step_ns as f64 / 1e9;
        let counts: Vec<u64> = index.iter().map(|&step| counts[step]).collect();
        let ln_rates = counts.iter().map(|&n| ((n as f64 + 1.0) / seconds).ln()).collect();
        Some(Self { step_ns, index, counts, ln_rates })
    }

    /// Its levels; `None` when it is too short for two.
    pub(super) fn changes(&self) -> Option<Changes> {
        let long = self.ln_rates.len() >= 2 * SEGMENT_SECONDS;
        let noise = noise(&self.ln_rates).filter(|_| long)?;
        let sigma = noise.sigma.max(self.counting());
        let found = changes_given(&self.ln_rates, SEGMENT_SECONDS, Noise { sigma, ..noise })?;
        Some(found.settled(&self.ln_rates))
    }

    /// The spread that counting makes: of requests that come evenly a second has one more or one less
    /// by where it begins, and seconds that happen to have as many look like no noise at all.
    fn counting(&self) -> f64 {
        let mut counts = self.counts.clone();
        counts.sort_unstable();
        // A level that is low, if it lasts for a quarter of the time.
        let low = counts.get(counts.len() / 4).copied().unwrap_or(0);
        0.5 / (low as f64 + 1.0)
    }

    /// Requests per second of a part: what was counted by the time, no mean of logarithms.
    fn rate(&self, part: Segment) -> f64 {
        let counts = self.counts.get(part.start..part.end).unwrap_or_default();
        let requests = counts.iter().map(|&n| n as f64).sum::<f64>();
        requests / counts.len().max(1) as f64 / (self.step_ns as f64 / 1e9)
    }

    /// Whether it has more levels than one.
    pub(super) fn changed(&self) -> bool {
        self.changes().is_some_and(|changes| !changes.levels(&self.ln_rates).steps.is_empty())
    }

    /// The smallest change of level that would hardly be missed, as a difference of ln rates.
    pub(super) fn seen_from(&self, changes: &Changes) -> f64 {
        changes.seen_from(self.ln_rates.len(), SEGMENT_SECONDS)
    }

    pub(super) fn with(self) -> Option<(Self, Changes)> {
        let changes = self.changes()?;
        Some((self, changes))
    }

    /// The levels, or one for all if a straight line says as much with less: a slow drift is no
    /// stair.
    pub(super) fn levels(&self, changes: &Changes) -> Levels {
        let x: Vec<f64> = self.index.iter().map(|&step| step as f64).collect();
        let rest = |line: Line| -> f64 {
            let pairs = x.iter().zip(&self.ln_rates);
            pairs.map(|(x, y)| (y - line.at(*x)).powi(2)).sum()
        };
        let penalty = changes.noise.penalty(x.len());
        let line = least_squares(&x, &self.ln_rates).map(|line| rest(line) + penalty);
        if changes.segments.len() > 1 && line.is_some_and(|l| l <= changes.cost(&self.ln_rates)) {
            let mean = self.ln_rates.iter().sum::<f64>() / x.len() as f64;
            let all = Segment { start: 0, end: x.len(), mean };
            return Levels { segments: vec![all], steps: Vec::new() };
        }
        changes.levels(&self.ln_rates)
    }

    /// A change between two levels.
    pub(super) fn step(&self, step: changepoint::Step, before: Segment, after: Segment) -> Step {
        let start = |place: usize| {
            let step = self.index.get(place).copied().unwrap_or(0);
            (step as u64).saturating_mul(self.step_ns)
        };
        let last = step.low.saturating_sub(1);
        Step {
            from_ns: start(last).saturating_add(self.step_ns),
            at_ns: start(step.high),
            before: self.rate(before),
            after: self.rate(after),
            ratio_low: None,
            ratio_high: None,
            at_break: false,
        }
    }

    /// Drift within a part of it.
    pub(super) fn slope(&self, part: Segment, noise: Noise) -> Option<Slope> {
        let hours = |&step: &usize| step as f64 * self.step_ns as f64 / 3.6e12;
        let hours: Vec<f64> = self.index.iter().map(hours).collect();
        block_slope(&hours, &self.ln_rates, part, noise)
    }
}

/// Pauses of the visit's other streams, of each that works by turns: it has one that lasts as long as a
/// level. What such a stream does to its neighbours while it works, and as it begins and ends, is the
/// suite's doing and no change: its pauses are alike, so only they are held against each other.
fn pauses_beside(visit: &VisitRecord, stream: Option<usize>) -> Vec<Vec<(u64, u64)>> {
    let Some(own) = stream else { return Vec::new() };
    let others = (0..visit.streams.len()).filter(|&other| other != own);
    let pauses = others.map(|other| {
        let series: Vec<&Series> = counted(visit, Some(other)).map(|op| &op.series).collect();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in idle(visit, Some(other), &series) {
            match joined.last_mut().filter(|last| last.1 == from) {
                Some(last) => last.1 = to,
                None => joined.push((from, to)),
            }
        }
        joined
    });
    let least = SEGMENT_SECONDS as u64 * SECOND_NS;
    pauses.filter(|pauses| pauses.iter().any(|(from, to)| to - from >= least)).collect()
}

/// Intervals of the series in which nothing completed and no worker waited for anything: between
/// bursts, or before the next request was due. How often they come is the suite's doing.
fn idle(visit: &VisitRecord, stream: Option<usize>, series: &[&Series]) -> Vec<(u64, u64)> {
    let workers = || streams_of(visit, stream).iter().flat_map(|stream| &stream.workers);
    let interval = series.iter().map(|s| s.interval_ns).max().filter(|&ns| ns > 0);
    let (Some(interval), Some(_)) = (interval, workers().next()) else { return Vec::new() };
    let rows = series.iter().map(|s| s.rows.len()).max().unwrap_or(0);
    let mut waits: Vec<(u64, u64)> = workers()
        .flat_map(|worker| &worker.gaps)
        .map(|gap| (gap.start_ns, gap.start_ns.saturating_add(gap.length_ns)))
        .collect();
    waits.sort_unstable();
    let is_idle = |&(start, end): &(u64, u64)| {
        let early = waits.partition_point(|wait| wait.0 < end);
        !waits.iter().take(early).any(|wait| wait.1 > start)
    };
    let alike = series.iter().all(|s| s.rows.is_empty() || s.interval_ns == interval);
    let empty = (0..rows).filter(|&row| {
        alike && series.iter().all(|s| s.rows.get(row).is_none_or(|row| row.requests == 0))
    });
    let span = |row: usize| {
        let start = (row as u64).saturating_mul(interval);
        (start, start.saturating_add(interval))
    };
    let mut spans: Vec<(u64, u64)> = empty.map(span).filter(is_idle).collect();
    if alike {
        // The rows of a stream end with what came back last: the rest is one span but for the waits.
        let end = load_ns(visit) / interval * interval;
        let mut from = span(rows).0;
        for (start, until) in waits.into_iter().chain([(end, end)]) {
            if from < start.min(end) {
                spans.push((from, start.min(end)));
            }
            from = from.max(until);
        }
    }
    spans
}
