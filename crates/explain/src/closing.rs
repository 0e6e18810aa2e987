//! The flush that ends a stream. It is in the time of its visit where the suite says so, and so in
//! every rate; but nothing of the load waits for it, so it is no stall, no change and no drift.

use record::{StreamRecord, VisitRecord};

/// How long the load of a visit lasted: the time that it is rated by but for flushes at its end. All
/// of it where the record tells of no such flush.
pub fn load_ns(visit: &VisitRecord) -> u64 {
    let rated = visit.rated_ns();
    let mut workers = visit.streams.iter().flat_map(|stream| &stream.workers);
    if workers.all(|worker| worker.closing_sync.is_none()) {
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
