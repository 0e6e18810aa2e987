//! The flush that ends a stream. It is in the time of its visit where the suite says so, and so in
//! every rate; but nothing of the load waits for it, so it is no stall, no change and no drift.

use finding::{Code, Finding, Number, Subject};
use record::{StreamRecord, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use units::Nanos;

use crate::view::{CellView, VisitView};

/// One that took less, and less than a hundredth of its visit, is not worth a word.
const TOLD: Nanos = Nanos::millis(100);
const TOLD_SHARE: f64 = 0.01;

/// The flushes that ended the visits of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClosingSync {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it.
    pub cell_name: String,
    /// Visits that ended by one.
    pub visits: u32,
    /// Median of what it took.
    pub median_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// All of them by the measured time of those visits.
    pub share: f64,
}

impl ClosingSync {
    /// Of a cell; `None` where no visit ended by one that counts.
    pub(crate) fn of(cell: &CellView<'_>) -> Option<Self> {
        let found: Vec<(u64, u64)> = cell
            .visits
            .iter()
            .filter_map(|view: &VisitView<'_>| Some((longest(view.visit)?, view.visit.rated_ns())))
            .collect();
        let mut lengths: Vec<u64> = found.iter().map(|(length, _)| *length).collect();
        lengths.sort_unstable();
        let sum = |of: fn(&(u64, u64)) -> u64| found.iter().map(of).fold(0, u64::saturating_add);
        Some(Self {
            cell: cell.cell.index,
            cell_name: cell.name(),
            visits: u32::try_from(found.len()).unwrap_or(u32::MAX),
            median_ns: *lengths.get(lengths.len().saturating_sub(1) / 2)?,
            longest_ns: *lengths.last()?,
            share: sum(|(length, _)| *length) as f64 / sum(|(_, of)| *of).max(1) as f64,
        })
    }

    /// What it took, if that is worth a word.
    pub fn finding(&self) -> Option<Finding> {
        let several = self.visits > 1;
        let is_told = self.longest_ns >= TOLD.get() || self.share >= TOLD_SHARE;
        is_told.then(|| {
            Finding::new(Code::ClosingFlush)
                .on(Subject::new(self.cell, None, &self.cell_name))
                .with("visits", self.visits)
                .with("median", Number::ns(self.median_ns))
                .with_some("longest", several.then(|| Number::ns(self.longest_ns)))
                .with("share", Number::share(self.share))
        })
    }
}

/// The longest flush that ended a stream of a visit.
fn longest(visit: &VisitRecord) -> Option<u64> {
    let workers = visit.streams.iter().flat_map(|stream| &stream.workers);
    workers.filter_map(|worker| Some(worker.closing_sync?.length_ns)).max()
}

/// How long the load of a visit lasted: the time that it is rated by but for flushes at its end. All
/// of it where the record tells of no such flush.
pub fn load_ns(visit: &VisitRecord) -> u64 {
    let rated = visit.rated_ns();
    if longest(visit).is_none() {
        return rated;
    }
    let ends = visit.streams.iter().map(|stream| end_of_load(stream, rated));
    ends.max().unwrap_or(rated).min(rated)
}

/// When the last request of a stream's load had come back; of a stream without a flush at its end
/// the end of the last interval in which anything did.
fn end_of_load(stream: &StreamRecord, rated_ns: u64) -> u64 {
    let closing = stream.workers.iter().filter_map(|worker| worker.closing_sync);
    if let Some(start) = closing.map(|sync| sync.start_ns).min() {
        return start;
    }
    let ends = stream.ops.iter().map(|op| {
        let rows = op.series.rows.iter().rposition(|row| row.requests > 0).map_or(0, |at| at + 1);
        (rows as u64).saturating_mul(op.series.interval_ns)
    });
    ends.max().filter(|end| *end > 0).unwrap_or(rated_ns)
}

/// Of the time that a visit is rated by, that in which nothing but flushes at its end was under way.
pub(crate) fn closing_ns(visit: &VisitRecord) -> u64 {
    visit.rated_ns().saturating_sub(load_ns(visit))
}
