//! Single requests that took far longer than all others of their kind, where nothing else tells of
//! them.
//!
//! Where many requests are in flight one of them can wait for seconds and no gap shows: the others
//! go on. No percentile shows it either, and for who waited it was the whole story.

use finding::{Code, Finding, Number, Subject, Value};
use record::{OpRecord, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::LatencyHistogram;
use stats::histogram::bucket_bounds;

use crate::closing::load_ns;
use crate::freeze::{Freezes, HICCUP};
use crate::halt::Halts;
use crate::view::{CellView, View, is_preparation};

/// Far out is beyond so many times the 99th percentile of all that took less than half of it.
const TIMES_USUAL: u64 = 10;
/// If more than this share takes at least half as long, that is how long such requests take.
const SHARE_MAX: f64 = 0.01;
/// Fewer say nothing of what is usual.
const REQUESTS_MIN: u64 = 20;
/// Lists longer than this are not read.
const LINES_MAX: usize = 6;

/// The longest waits of a run that stand apart and that no gap covers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Longest {
    /// In the order of the visits and of time.
    pub found: Vec<LongWait>,
}

/// Requests of one operation, at one time in one visit, that took far longer than all others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LongWait {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it, and its stream if it has several.
    pub cell_name: String,
    /// The stream.
    pub stream: String,
    /// Its position in the cell, of a cell that has several.
    #[serde(skip)]
    pub position: Option<usize>,
    /// `read`, `write`, `fdatasync`, ...
    pub operation: String,
    /// Which visit of the cell, from 0.
    pub repeat: u32,
    /// Which visit of the run, from 0.
    pub order: u32,
    /// How many requests: they waited at the same time.
    pub requests: u32,
    /// The longest latency of these.
    pub latency_ns: u64,
    /// Byte offset of that request.
    pub offset: u64,
    /// When the last of them completed, since the start of the visit's measured part.
    pub at_ns: u64,
    /// The same since the start of the run.
    pub at_in_run_ns: u64,
    /// What 99 of 100 of the others do not exceed.
    pub usual_ns: u64,
}

/// The longest waits that neither a gap of the device nor one of a stream covers.
pub fn longest(view: &View<'_>, freezes: &Freezes, halts: &Halts) -> Longest {
    let mut found = Vec::new();
    let covered = Covered::of(freezes, halts);
    for row in view.rows.iter().filter(|row| !is_preparation(&row.cell.phase)) {
        for position in 0..row.cell.streams.len() {
            if row.stream.is_none_or(|own| own == position) && !row.is_overloaded() {
                of_stream(view, row, position, &covered, &mut found);
            }
        }
    }
    found.sort_by_key(|wait| (wait.order, wait.at_ns));
    Longest { found }
}

/// Times within visits that are told of already: order, start, end.
struct Covered(Vec<(u32, u64, u64)>);

impl Covered {
    fn of(freezes: &Freezes, halts: &Halts) -> Self {
        let gap = |order, start: u64, length| (order, start, start.saturating_add(length));
        // What began in the ramp was out for longer than the part of it that was seen.
        let of_device = freezes.events.iter().map(|e| gap(e.order, e.start_ns, e.length_ns));
        let of_workers = freezes.stuck.iter().map(|e| gap(e.order, e.start_ns, e.length_ns));
        let of_streams = halts.events.iter().map(|e| gap(e.order, e.start_ns, e.length_ns));
        Self(of_device.chain(of_workers).chain(of_streams).collect())
    }

    /// Whether a gap accounts for most of a wait, as far as it lies within the measured part.
    fn has(&self, order: u32, from: u64, to: u64) -> bool {
        self.0.iter().any(|&(of, start, end)| {
            let common = end.min(to).saturating_sub(start.max(from));
            of == order && common >= to.saturating_sub(from) / 2
        })
    }
}

fn of_stream(
    view: &View<'_>,
    row: &CellView<'_>,
    position: usize,
    covered: &Covered,
    found: &mut Vec<LongWait>,
) {
    let mut names: Vec<&str> = Vec::new();
    for visit in &row.visits {
        for op in visit.visit.streams.get(position).iter().flat_map(|stream| &stream.ops) {
            if !names.contains(&op.op.as_str()) {
                names.push(&op.op);
            }
        }
    }
    for name in names {
        let ops = || row.visits.iter().filter_map(|visit| op(visit.visit, position, name));
        let mut all = LatencyHistogram::new();
        ops().for_each(|op| all.merge(&op.latency));
        let slowest = ops().map(|op| op.latency_ns_max);
        // Most have none, and need not be looked at any closer.
        if slowest.max().is_none_or(|max| max < HICCUP.get()) {
            continue;
        }
        let all = Kind::of(&all);
        for visit in &row.visits {
            let Some(op) = op(visit.visit, position, name) else { continue };
            let load = load_ns(visit.visit);
            let order = visit.visit.order;
            let far = op.slow.iter().filter(|request| {
                let from = request.at_ns.saturating_sub(request.latency_ns);
                // What began later is a flush at the end.
                from < load
                    && is_far(&all, request.latency_ns)
                    && !covered.has(order, from, request.at_ns)
            });
            let mut groups: Vec<LongWait> = Vec::new();
            for request in far {
                let from = request.at_ns.saturating_sub(request.latency_ns);
                match groups.last_mut().filter(|group| from < group.at_ns) {
                    Some(group) => {
                        group.requests = group.requests.saturating_add(1);
                        group.at_ns = request.at_ns;
                        if request.latency_ns > group.latency_ns {
                            (group.latency_ns, group.offset) = (request.latency_ns, request.offset);
                        }
                    }
                    None => groups.push(LongWait {
                        cell: row.cell.index,
                        cell_name: row.name(),
                        stream: row.cell.streams[position].name.clone(),
                        position: row.stream,
                        operation: name.to_owned(),
                        repeat: visit.visit.repeat,
                        order,
                        requests: 1,
                        latency_ns: request.latency_ns,
                        offset: request.offset,
                        at_ns: request.at_ns,
                        at_in_run_ns: 0,
                        usual_ns: 0,
                    }),
                }
            }
            for group in &mut groups {
                let start = visit.visit.started_unix_ns;
                let since = start.saturating_sub(view.run.header.started_unix_ns);
                let since = u64::try_from(since).unwrap_or(0);
                group.at_in_run_ns = since.saturating_add(group.at_ns);
                group.usual_ns = usual(&all, group.latency_ns).map_or(0, |(usual, _)| usual);
            }
            found.extend(groups);
        }
    }
}

fn op<'v>(visit: &'v VisitRecord, position: usize, name: &str) -> Option<&'v OpRecord> {
    visit.streams.get(position)?.ops.iter().find(|op| op.op == name)
}

/// How long all requests of a kind took: it is asked for each that took long, and they may be many.
struct Kind {
    /// (longest latency of a bucket that is not empty, how many), rising.
    buckets: Vec<(u64, u64)>,
    count: u64,
}

impl Kind {
    fn of(all: &LatencyHistogram) -> Self {
        let upper = |(index, n): (u32, u64)| (bucket_bounds(index as usize).1, n);
        Self { buckets: all.sparse().map(upper).collect(), count: all.count() }
    }
}

/// The 99th percentile of those that took less than half of a latency, and how many did not.
fn usual(all: &Kind, latency_ns: u64) -> Option<(u64, u64)> {
    let below = || all.buckets.iter().take_while(|&&(upper, _)| upper < latency_ns / 2);
    let count: u64 = below().fold(0, |sum, &(_, n)| sum.saturating_add(n));
    let others = all.count.saturating_sub(count);
    let rank = ((count as f64 * 0.99).ceil() as u64).max(1);
    let mut seen = 0u64;
    let found = below().find_map(|&(upper, n)| {
        seen = seen.saturating_add(n);
        (seen >= rank).then_some(upper)
    });
    found.filter(|_| count >= REQUESTS_MIN).map(|usual| (usual, others))
}

fn is_far(all: &Kind, latency_ns: u64) -> bool {
    usual(all, latency_ns).is_some_and(|(usual, others)| {
        let few = others as f64 <= (all.count as f64 * SHARE_MAX).max(1.0);
        few && latency_ns >= HICCUP.get() && latency_ns >= usual.saturating_mul(TIMES_USUAL)
    })
}

impl Longest {
    /// The longest of them, in the order of time.
    pub fn findings(&self) -> Vec<Finding> {
        let mut told: Vec<&LongWait> = self.found.iter().collect();
        told.sort_by_key(|wait| (std::cmp::Reverse(wait.latency_ns), wait.order));
        told.truncate(LINES_MAX);
        told.sort_by_key(|wait| (wait.order, wait.at_ns));
        let mut found: Vec<Finding> = told.into_iter().map(LongWait::finding).collect();
        if let Some(more @ 1..) = self.found.len().checked_sub(LINES_MAX) {
            found.push(Finding::new(Code::RequestOutliersMore).with("times", more));
        }
        found
    }
}

impl LongWait {
    fn finding(&self) -> Finding {
        Finding::new(Code::RequestOutlier)
            .on(Subject::new(self.cell, self.position, &self.cell_name))
            .with("one", self.requests == 1)
            .with("requests", self.requests)
            .with("operation", Value::words(&self.operation))
            .with("latency", Number::ns(self.latency_ns))
            .with("visit", u64::from(self.repeat) + 1)
            .with("at", Number::ns(self.at_ns))
            .with("in_run", Number::ns(self.at_in_run_ns))
            .with("offset", self.offset)
            .with("usual", Number::ns(self.usual_ns))
    }
}

#[cfg(test)]
mod tests {
    use record::{Run, SlowRequest, TargetKind};
    use units::Nanos;

    use super::*;
    use crate::freeze::tests::{MS, run, visit};

    fn found(run: &Run) -> Longest {
        let view = View::new(run);
        longest(&view, &crate::freeze::freezes(&view), &crate::halt::halts(&view))
    }

    fn said(run: &Run) -> Vec<String> {
        finding::texts(&found(run).findings())
    }

    /// Ten seconds of which one request waits for three while others go on.
    fn one_waits(latency_ms: u64) -> Run {
        let mut visit = visit(0, "read", &[]);
        let op = &mut visit.streams[0].ops[0];
        op.latency.record(Nanos::millis(latency_ms));
        op.latency_ns_max = latency_ms * MS;
        op.slow = vec![SlowRequest {
            at_ns: 5_000 * MS,
            latency_ns: latency_ms * MS,
            worker: 0,
            offset: 7,
        }];
        run(TargetKind::File, vec![visit])
    }

    #[test]
    fn a_wait_that_no_gap_shows_is_told() {
        let said = said(&one_waits(3_000));
        let wanted =
            "`read`: one read took 3 s in visit 1, until 5 s (5 s into the run), at byte 7";
        assert!(said[0].starts_with(wanted), "{said:?}");
        let explanation = crate::Explanation::of(
            &[View::new(&one_waits(3_000))],
            &crate::explanation::Context::default(),
        );
        let all: Vec<String> =
            explanation.runs[0].sections.iter().flat_map(|s| s.sentences()).collect();
        assert!(all.iter().any(|said| said.starts_with(wanted)), "{all:?}");
        assert!(found(&one_waits(90)).found.is_empty(), "not long");
    }

    #[test]
    fn a_wait_that_a_gap_covers_is_told_once() {
        let frozen = run(TargetKind::File, vec![visit(0, "read", &[(2_000, 3_000)])]);
        assert!(!crate::freeze::freezes(&View::new(&frozen)).events.is_empty());
        assert!(found(&frozen).found.is_empty(), "{:?}", found(&frozen));
    }

    #[test]
    fn what_many_take_is_no_single_wait() {
        let mut slow = one_waits(3_000);
        let op = &mut slow.visits[0].streams[0].ops[0];
        (0..300).for_each(|_| op.latency.record(Nanos::millis(2_800)));
        assert!(found(&slow).found.is_empty(), "{:?}", found(&slow));
    }
}
