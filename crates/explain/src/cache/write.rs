//! A write cache: writes are taken fast until it is full.

use record::{SeriesRow, VisitEnd, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::changepoint::changes;

use crate::closing::load_ns;
use crate::drift::written_bytes;
use crate::view::{CellView, View};

/// The rate must fall below this share of what it was.
pub const DROP: f64 = 0.7;
/// Fewest intervals of a level.
const SEGMENT_MIN: usize = 5;
/// Two drops are one cache if the larger is less than so many times the smaller.
const SAME: f64 = 1.3;

/// Writes became slower once so much had been written.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WriteCache {
    /// Index of the cell, that of the fill included.
    pub cell: u32,
    /// Its phase.
    pub phase: String,
    /// Its name.
    pub name: String,
    /// Which visit of it.
    pub repeat: u32,
    /// Which visit of the run.
    pub order: u32,
    /// Bytes written since the devices were idle, or since the visit began, about in the middle of the
    /// bounds.
    pub at_bytes: u64,
    /// It was not sooner than this.
    pub at_bytes_low: u64,
    /// Nor later.
    pub at_bytes_high: u64,
    /// Bytes a second before, up to the interval in which the rate fell or may have fallen.
    pub before: f64,
    /// No interval ended before the rate fell: it was `before` or more.
    pub before_is_least: bool,
    /// Bytes a second after.
    pub after: f64,
    /// What has filled and drains at `after` holds so much: what was written by a moment, less what
    /// had drained.
    pub size_bytes: u64,
    /// Whether the page cache was in use: then it is the machine's memory that filled.
    pub buffered: bool,
    /// Whether another visit that began idle met a drop near the same place: it refills.
    pub refills: bool,
    /// Later visits to the cell that wrote as much and were as slow throughout: it did not.
    pub stayed: u32,
    /// Later visits to the cell that were as slow, however much they wrote: it did not come back by
    /// itself. Without a pause a cache would not either.
    pub slow_after: u32,
    /// The writes of the cell are told to have fallen for good: that tells of this drop as well.
    #[serde(skip)]
    pub is_cliff: bool,
}

/// The first drop of every visit that writes, the fill included.
///
/// Visits that did not find the devices idle are left out: nobody knows how full the cache was.
/// A visit that nobody looked before counts as idle if it is the run's first. Where the suite asks for
/// pauses writes come and go by its plan.
pub(crate) fn write_caches(view: &View<'_>) -> Vec<WriteCache> {
    let pauses = |visit: &VisitRecord| {
        view.cells.iter().any(|cell| cell.cell.index == visit.cell && cell.has_pauses())
    };
    let visits = view.run.visits.iter().filter(|visit| !pauses(visit)).filter(|visit| {
        let ended = matches!(visit.end, VisitEnd::Complete | VisitEnd::Hanging);
        ended && (visit.quiet == Some(true) || (visit.quiet.is_none() && visit.order == 0))
    });
    let mut found: Vec<WriteCache> = visits.filter_map(|visit| of_visit(view, visit)).collect();
    let places: Vec<u64> = found.iter().map(|cache| cache.at_bytes).collect();
    for (at, cache) in found.iter_mut().enumerate() {
        cache.refills = places.iter().enumerate().any(|(other, &place)| {
            let (small, large) = (place.min(cache.at_bytes), place.max(cache.at_bytes));
            other != at && small > 0 && large as f64 <= SAME * small as f64
        });
        let slow = |visit: &&VisitRecord| {
            let written = written_bytes(visit);
            let rate = written as f64 / (visit.elapsed_ns as f64 / 1e9);
            let later = visit.cell == cache.cell && visit.order > cache.order;
            let nearer = rate < (cache.before * cache.after).sqrt();
            later && visit.end == VisitEnd::Complete && written > 0 && nearer
        };
        let as_much = |visit: &&VisitRecord| written_bytes(visit) >= cache.at_bytes_high;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let stayed = view.run.visits.iter().filter(slow).filter(as_much).count();
        let slow_after = view.run.visits.iter().filter(slow).count();
        (cache.stayed, cache.slow_after) = (count(stayed), count(slow_after));
    }
    found
}

fn of_visit(view: &View<'_>, visit: &VisitRecord) -> Option<WriteCache> {
    let [stream] = visit.streams.as_slice() else { return None };
    let op = stream.ops.iter().find(|op| op.op == "write")?;
    let only_writes = stream.ops.iter().all(|other| other.op != "read" || other.requests == 0);
    let rows = op.series.rows.split_last().map(|(_, rows)| rows)?;
    // While the flush at the end goes on nothing is written any more.
    let of_load = load_ns(visit).checked_div(op.series.interval_ns)?;
    let rows = rows.get(..usize::try_from(of_load).ok()?).unwrap_or(rows);
    let seconds = op.series.interval_ns as f64 / 1e9;
    if !only_writes || seconds <= 0.0 || rows.len() < 2 * SEGMENT_MIN {
        return None;
    }
    // An interval without a byte is as slow as one with a single request.
    let least = (op.bytes / op.requests.max(1)).max(1);
    let ln: Vec<f64> = rows.iter().map(|row| (row.bytes.max(least) as f64).ln()).collect();
    let found = changes(&ln, SEGMENT_MIN)?;
    let segments = &found.segments;
    let fall = segments.windows(2).position(|pair| pair[1].mean - pair[0].mean < DROP.ln())?;
    let settled = found.settled(&ln).segments;
    let (cut, end) = (settled.get(fall + 1)?.start, settled.get(fall + 1)?.end);
    let cell = view.run.cells.iter().find(|cell| cell.index == visit.cell)?;
    let ramp = stream.ramp_requests.saturating_mul(least);
    let of = |part: &[SeriesRow]| part.iter().map(|row| row.bytes).fold(0, u64::saturating_add);
    let rate = |part: &[SeriesRow]| of(part) as f64 / (part.len() as f64 * seconds);
    // A row is a mean over its time: the rate may have fallen within either of the two at the cut.
    let (early, late) = (cut.saturating_sub(1), (cut + 1).min(end - 1));
    let ramp_seconds = visit.ramp_ns as f64 / 1e9;
    let after = rate(&rows[late..end]);
    let (before, before_is_least) = match (early, ramp > 0 && visit.ramp_ns > 0) {
        (0, false) => (rate(&rows[..1]), true),
        (0, true) => (ramp as f64 / ramp_seconds, false),
        _ => (rate(&rows[settled[fall].start.min(early - 1)..early]), false),
    };
    let written = ramp.saturating_add(of(&rows[..late]));
    let time = |row: usize| ramp_seconds + row as f64 * seconds;
    // From when it is full as much comes in as goes out, wherever in its interval that was.
    let size = (written as f64 - after * time(late)).max(0.0);
    let at = |row: usize| ((size + after * time(row)) as u64).min(written);
    let high = at(late);
    let low = at(early).max(ramp.saturating_add(of(&rows[..early]))).min(high);
    Some(WriteCache {
        cell: visit.cell,
        phase: cell.phase.clone(),
        name: CellView::bare(cell).name(),
        repeat: visit.repeat,
        order: visit.order,
        at_bytes: low.midpoint(high),
        at_bytes_low: low,
        at_bytes_high: high,
        before,
        before_is_least,
        after,
        size_bytes: size as u64,
        buffered: !stream.backend.direct && super::has_page_cache(view),
        refills: false,
        stayed: 0,
        slow_after: 0,
        is_cliff: false,
    })
}

#[cfg(test)]
mod tests {
    use record::{Run, TargetKind};

    use super::*;
    use crate::freeze::tests::{MS, run, visit};

    /// Writes of 4 KiB, so many each 100 ms.
    fn writes(order: u32, rows: &[u64]) -> VisitRecord {
        let mut visit = visit(order, "write", &[]);
        let op = &mut visit.streams[0].ops[0];
        let row = |n: &u64| SeriesRow { requests: *n, bytes: n * 4096, tail: vec![] };
        op.series = record::Series { interval_ns: 100 * MS, rows: rows.iter().map(row).collect() };
        op.requests = rows.iter().sum();
        op.bytes = op.requests * 4096;
        visit.elapsed_ns = rows.len() as u64 * 100 * MS;
        visit
    }

    fn told(visits: Vec<VisitRecord>) -> (WriteCache, String) {
        let run: Run = run(TargetKind::File, visits);
        let mut found = write_caches(&View::new(&run));
        assert_eq!(found.len(), 1, "{found:?}");
        let cache = found.remove(0);
        let said = finding::texts(&cache.findings()).join("\n");
        (cache, said)
    }

    #[test]
    fn a_fall_that_later_visits_kept_is_not_called_a_cache() {
        let rows = |n: usize, of: u64| (0..n).map(|k| of + k as u64 % 3).collect::<Vec<u64>>();
        let falls = || writes(0, &[rows(40, 1000), rows(60, 200)].concat());
        let (cache, said) = told(vec![falls()]);
        assert_eq!((cache.slow_after, cache.refills), (0, false));
        assert!(
            said.contains("clean space or I/O credits used up, or wear")
                && said.contains("seen once"),
            "{said}"
        );
        // Rounds that wrote less than the cache would hold, each as slow.
        let (cache, said) =
            told(vec![falls(), writes(1, &rows(30, 200)), writes(2, &rows(30, 200))]);
        assert_eq!((cache.slow_after, cache.stayed), (2, 0), "{cache:?}");
        assert!(
            said.contains("no time to drain")
                && said.contains("2 later visits to the cell were as slow"),
            "{said}"
        );
        assert!(!said.contains("a write cache of about"), "{said}");
        // Fast again.
        let (cache, _) = told(vec![falls(), writes(1, &rows(30, 1000))]);
        assert_eq!(cache.slow_after, 0);
    }

    #[test]
    fn a_fall_for_good_is_told_once_as_a_cliff() {
        let rows = |n: usize, of: u64| (0..n).map(|k| of + k as u64 % 3).collect::<Vec<u64>>();
        let falls = |order| writes(order, &[rows(40, 1000), rows(60, 200)].concat());
        let told = |visits| {
            let run = run(TargetKind::File, visits);
            let view = View::new(&run);
            let said = finding::texts(&crate::cache::caches(&view).findings()).join("\n");
            (crate::steady::write_cliffs(&view).len(), said.contains("were written"))
        };
        assert_eq!(told(vec![falls(0)]), (1, false));
        let again = VisitRecord { quiet: Some(true), repeat: 1, ..falls(1) };
        assert_eq!(told(vec![falls(0), again]), (0, true), "a cache that refills");
    }
}
