//! Budgets of a volume: a burst rate until a bucket is empty, then the base rate at which it is filled.
//!
//! A quota lets requests pass as evenly as a clock, which devices do not. So a bucket is one step down
//! between two rates that are even by the second, and what follows keeps to its law: no more passes than
//! the base allows, and what rests is fast again for as long as the rest paid for. A write cliff may be as
//! even: for writes alone, a rest has to show it.

use finding::{Code, Finding, Number};
use record::VisitRecord;
use schemars::JsonSchema;
use serde::Serialize;

use crate::closing::load_ns;
use crate::interference::keeps_its_rate;
use crate::places::Told;
use crate::view::{CellView, View, counted, is_data, is_preparation};

/// Seconds of one level differ from it by no more than this share, or one request.
const EVEN: f64 = 0.005;
/// But for so many of them, and one in any case: that of the step.
const ASTRAY: f64 = 0.05;
/// Nobody holds a load for eleven days; a damaged record may claim so.
const SECONDS_MAX: usize = 1_000_000;
/// A level lasts so many seconds, and has so many requests in each that one is no matter.
const SECONDS_MIN: usize = 10;
const REQUESTS_MIN: f64 = 50.0;
/// A step takes off at least a tenth.
const STEP: f64 = 0.9;
/// What the law may be missed by: clocks of two sides, and a queue that empties.
const SLACK: f64 = 1.05;
/// A rest tells something if it pays for so many seconds.
const TELLING: f64 = 2.0;

/// A bucket that became empty in the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TokenBucket {
    /// Index of the cell that shows it.
    pub cell: u32,
    /// The visit in which it became empty, as the run counts them.
    pub order: u32,
    /// Requests a second until then.
    pub burst: f64,
    /// Requests a second from then on.
    pub base: f64,
    /// Requests above the base since the run began: it holds so many if it was full then.
    pub size: f64,
    /// Bytes of a request: with these all rates may be limits of bytes as well.
    pub request_bytes: f64,
    /// Rests after which it was as full as the law says.
    pub refills: u32,
}

/// A second of a cell: when it began, and how much came back in it.
#[derive(Clone, Copy)]
struct OneSecond {
    at: f64,
    order: u32,
    count: f64,
}

/// The buckets that became empty, one a cell at most.
pub fn buckets(view: &View<'_>) -> Vec<TokenBucket> {
    // When imported visits were is not known.
    if view.run.header.imported.is_some() {
        return Vec::new();
    }
    let told = Told::new(view.run);
    let cells = view.cells.iter();
    let free = cells.filter(|c| !is_preparation(&c.cell.phase) && !keeps_its_rate(&told, c));
    free.filter_map(|cell| bucket(view, cell)).collect()
}

fn bucket(view: &View<'_>, cell: &CellView<'_>) -> Option<TokenBucket> {
    // The first second of a visit is that of a queue which fills.
    let visits = cell.visits.iter();
    let seconds: Vec<OneSecond> =
        visits.flat_map(|visit| by_second(visit.visit).into_iter().skip(1)).collect();
    let (before, after, last) = step(&seconds)?;
    let all = || cell.visits.iter().flat_map(|visit| counted(visit.visit, None));
    let bytes = all().map(|op| op.bytes as f64).sum::<f64>();
    let requests = all().map(|op| op.requests as f64).sum::<f64>();
    let size = spent(view, last.at, after, before);
    let mut found = TokenBucket {
        cell: cell.cell.index,
        order: last.order,
        burst: before,
        base: after,
        size,
        request_bytes: bytes / requests.max(1.0),
        refills: 0,
    };
    found.refills = found.obeyed(view, cell, last)?;
    (all().any(|op| op.op == "read") || found.refills > 0).then_some(found)
}

/// Rates before and after the only step of even levels, and when it came.
fn step(seconds: &[OneSecond]) -> Option<(f64, f64, OneSecond)> {
    let falls = (SECONDS_MIN..seconds.len().saturating_sub(SECONDS_MIN)).filter(|&at| {
        // The second of the step itself is a mixture.
        seconds[at].count < STEP * seconds[at - 1].count
            && seconds[at + 1].count < STEP * seconds[at - 1].count
    });
    falls.take(SECONDS_MIN).find_map(|at| {
        let before = even(seconds[..at].iter().map(|second| second.count))?;
        let later = seconds[at + 1..].iter().map(|second| second.count);
        // Rests make some as fast again as before: whether they may is for the law to say.
        let after = even(later.filter(|&count| !is_near(count, before)))?;
        let (last, own) = (seconds[at - 1], seconds[at]);
        let fast = ((own.count - after) / (before - after)).clamp(0.0, 1.0);
        // Between visits it came while the queue filled, or just before.
        let fast = if last.order == own.order { fast } else { -0.5 };
        (after < STEP * before).then_some((before, after, OneSecond { at: own.at + fast, ..own }))
    })
}

fn is_near(count: f64, level: f64) -> bool {
    (count - level).abs() <= (EVEN * level).max(1.0)
}

/// The median, if nearly all are as good as it.
fn even(counts: impl Iterator<Item = f64>) -> Option<f64> {
    let mut counts: Vec<f64> = counts.collect();
    counts.sort_unstable_by(f64::total_cmp);
    let median = *counts.get(counts.len() / 2)?;
    let astray = counts.iter().filter(|&&count| !is_near(count, median)).count();
    let few = astray as f64 <= (ASTRAY * counts.len() as f64).max(1.0);
    (few && counts.len() >= SECONDS_MIN && median >= REQUESTS_MIN).then_some(median)
}

/// Whole seconds of a visit's load.
fn by_second(visit: &VisitRecord) -> Vec<OneSecond> {
    let start = visit.started_unix_ns as f64 / 1e9;
    let number = usize::try_from(load_ns(visit) / 1_000_000_000).unwrap_or(usize::MAX);
    if number > SECONDS_MAX {
        return Vec::new();
    }
    let mut counts = vec![0.0; number];
    for series in counted(visit, None).map(|op| &op.series) {
        for (row, place) in series.rows.iter().zip(0_u64..) {
            let second = place.saturating_mul(series.interval_ns) / 1_000_000_000;
            let count = usize::try_from(second).ok().and_then(|second| counts.get_mut(second));
            count.into_iter().for_each(|count| *count += row.requests as f64);
        }
    }
    let second =
        |(k, count): (usize, f64)| OneSecond { at: start + k as f64, order: visit.order, count };
    counts.into_iter().enumerate().map(second).collect()
}

/// All data requests of a visit by operations, those of its ramp too.
fn requests(visit: &VisitRecord) -> f64 {
    let ops = visit.streams.iter().flat_map(|s| &s.ops).filter(|op| is_data(&op.op));
    let ramps = visit.streams.iter().map(|stream| stream.ramp_requests as f64);
    ops.map(|op| op.requests as f64).sum::<f64>() + ramps.sum::<f64>()
}

/// Start and end of a visit, s since 1970, its ramp included.
fn span(visit: &VisitRecord) -> (f64, f64) {
    let start = visit.started_unix_ns as f64 / 1e9;
    (start - visit.ramp_ns as f64 / 1e9, start + visit.elapsed_ns as f64 / 1e9)
}

/// Requests beyond the base that all visits made until `end`, rests filling up again.
fn spent(view: &View<'_>, end: f64, base: f64, rate: f64) -> f64 {
    let mut visits: Vec<&VisitRecord> = view.run.visits.iter().collect();
    visits.sort_by_key(|visit| visit.order);
    let (mut spent, mut until) = (0.0_f64, f64::NEG_INFINITY);
    for visit in visits.into_iter().filter(|visit| span(visit).0 < end) {
        let (from, to) = span(visit);
        spent = (spent - (from - until).max(0.0) * base).max(0.0);
        let made = if to <= end { requests(visit) } else { rate * (end - from) };
        spent = (spent + made - base * (to.min(end) - from)).max(0.0);
        until = to;
    }
    spent
}

impl TokenBucket {
    /// How many rests the law foretold right after the step; `None` where something broke it.
    fn obeyed(&self, view: &View<'_>, cell: &CellView<'_>, step: OneSecond) -> Option<u32> {
        let (mut refills, mut until, mut made) = (0, f64::NAN, 0.0);
        let mut visits: Vec<&VisitRecord> = view.run.visits.iter().collect();
        visits.sort_by_key(|visit| visit.order);
        for visit in visits.into_iter().filter(|visit| visit.order >= step.order) {
            let (from, to) = span(visit);
            let seconds = by_second(visit);
            let is_first = visit.order == step.order;
            made += match is_first {
                true => seconds.iter().filter(|s| s.at > step.at).map(|s| s.count).sum(),
                false => requests(visit),
            };
            let most = (self.base * (to - step.at)).mul_add(SLACK, self.burst);
            let saved = (self.base * (from - until)).min(self.size);
            let fast = saved / (self.burst - self.base) - visit.ramp_ns as f64 / 1e9;
            if made > most {
                return None;
            }
            if !is_first && visit.cell == cell.cell.index && fast >= TELLING {
                let middle = (self.burst * self.base).sqrt();
                let at = |second: f64| seconds.get(second as usize).map(|s| s.count > middle);
                (at(0.0) == Some(true) && at(fast * SLACK + 2.0) != Some(true)).then_some(())?;
                refills += 1;
            }
            until = to;
        }
        Some(refills)
    }

    /// From what to what, and what it is.
    pub fn finding(&self, view: &View<'_>) -> Finding {
        let cell = view.cells.iter().find(|cell| cell.cell.index == self.cell);
        let found = Finding::new(Code::Bucket);
        let found = match cell {
            Some(cell) => found.on(cell.subject()),
            None => found,
        };
        found
            .with("burst", Number::iops(self.burst))
            .with("base", Number::iops(self.base))
            .with("lasts", Number::seconds(self.size / (self.burst - self.base)))
            .with("requests", finding::Value::words(finding::numbers::iops(self.size)))
            .with("bytes", Number::bytes((self.size * self.request_bytes) as u64))
            .with("refill", Number::seconds(self.size / self.base))
            .with("order", self.order)
            .with("rested", self.refills > 0)
    }
}

#[cfg(test)]
mod tests {
    use record::{Run, SeriesRow, TargetKind};

    use super::*;
    use crate::freeze::tests::{MS, run, visit};

    /// Visits of ten seconds one after the other, each of so many requests a second.
    fn rounds(op: &str, rates: &[u64]) -> Run {
        let round = |(order, &rate): (u32, &u64)| {
            let mut round = visit(order, op, &[]);
            round.started_unix_ns = i64::from(order) * 10_000_000_000;
            let op = &mut round.streams[0].ops[0];
            (op.requests, op.bytes) = (rate * 10, rate * 40_960);
            let row = SeriesRow { requests: rate / 10, bytes: rate * 409, tail: vec![] };
            op.series = record::Series { interval_ns: 100 * MS, rows: vec![row; 100] };
            round
        };
        run(TargetKind::File, (0u32..).zip(rates).map(round).collect())
    }

    fn of(op: &str, rates: &[u64]) -> Vec<TokenBucket> {
        buckets(&View::new(&rounds(op, rates)))
    }

    #[test]
    fn a_step_of_even_reads_is_a_bucket_of_what_was_beyond_the_base() {
        let run = rounds("read", &[3_000, 3_000, 3_000, 300, 300, 300]);
        let view = View::new(&run);
        let found = buckets(&view);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert!((one.size / 81_000.0 - 1.0).abs() < 0.02, "{one:?}");
        let said = one.finding(&view).text();
        assert!(said.contains("3 K requests/s until a bucket was empty, then 300"), "{said}");
    }

    #[test]
    fn what_rises_again_or_is_uneven_or_writes_alone_is_none() {
        assert_eq!(of("read", &[3_000, 3_000, 300, 300, 3_000]), []);
        assert_eq!(of("read", &[3_000, 2_900, 2_950, 300, 310, 330]), []);
        assert_eq!(of("read", &[3_000; 6]), []);
        assert_eq!(of("write", &[3_000, 3_000, 300, 300]), []);
    }
}
