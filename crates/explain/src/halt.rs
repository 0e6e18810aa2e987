//! Streams that stalled while others of their cell went on.
//!
//! What the whole device does not show: page reads go on for the two seconds in which no session
//! could commit. A stream's own workers tell, since each notes when it waits in vain.

use finding::{Code, Finding, Number, Subject};
use record::VisitRecord;
use schemars::JsonSchema;
use serde::Serialize;
use stats::LatencyHistogram;
use units::Nanos;

use crate::ends::is_few;
use crate::freeze::{self, DeviceGap, Tier};
use crate::view::{View, as_if_alone};

/// Lists longer than this are not read.
const LINES_MAX: usize = 8;
/// A gap is out of the ordinary beyond so many times what is usual in the stream.
const TIMES_USUAL: u64 = 10;

/// Streams that stood still beside others that did not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Halts {
    /// In the order of the visits and of time.
    pub events: Vec<Halt>,
}

/// A time in which nothing of a stream came back although it waited for something, and others
/// went on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Halt {
    /// Index of the cell.
    pub cell: u32,
    /// The stream.
    pub stream: String,
    /// Its position in the cell.
    pub position: u32,
    /// The cell and the stream as people say it.
    pub name: String,
    /// Which visit of the cell, from 0.
    pub repeat: u32,
    /// Which visit of the run, from 0.
    pub order: u32,
    /// How bad it was: measured by what is usual in the stream itself.
    pub tier: Tier,
    /// Since the start of the visit's measured part; to 1 ms.
    pub start_ns: u64,
    /// How long; to 1 ms.
    pub length_ns: u64,
    /// It had one request in flight meanwhile: that one was late.
    pub one_at_a_time: bool,
}

/// Streams of a run that stood still beside others that did not.
pub fn halts(view: &View<'_>) -> Halts {
    let mut events = Vec::new();
    for row in &view.rows {
        let (Some(position), Some(stream)) = (row.stream, row.stream_name()) else { continue };
        // Of one to which everything came back late nobody knows what is usual, so few it had.
        let moved = row.visits.iter().any(|visit| visit.requests_per_second > 0.0);
        let few = is_few(row) || !moved;
        for visit in &row.visits {
            let visit = visit.visit;
            let told = |gap: &DeviceGap| !few || gap.tier == Tier::Freeze;
            let alone = as_if_alone(visit, position);
            events.extend(gaps(visit, position).into_iter().filter(told).map(|gap| Halt {
                cell: row.cell.index,
                stream: stream.to_owned(),
                position: position as u32,
                name: row.name(),
                repeat: visit.repeat,
                order: visit.order,
                tier: gap.tier,
                start_ns: gap.start_ns,
                length_ns: gap.length_ns,
                one_at_a_time: freeze::is_of_one(&alone, gap),
            }));
        }
    }
    events.sort_by_key(|event| (event.order, event.start_ns));
    Halts { events }
}

/// Whether one of a visit's several streams stood still while others went on.
pub fn any(visit: &VisitRecord) -> bool {
    visit.streams.len() > 1 && (0..visit.streams.len()).any(|k| !gaps(visit, k).is_empty())
}

/// A stream's gaps, by what is usual in it, without those that were the whole device's.
fn gaps(visit: &VisitRecord, position: usize) -> Vec<DeviceGap> {
    let of_all = freeze::gaps(visit);
    let common = |own: &DeviceGap| {
        let parts = of_all.iter().map(|gap| {
            gap.end_ns().min(own.end_ns()).saturating_sub(gap.start_ns.max(own.start_ns))
        });
        parts.fold(0, u64::saturating_add)
    };
    let alone = as_if_alone(visit, position);
    let latency = usual_latency(&alone);
    let mut own = freeze::gaps(&alone);
    own.retain(|gap| {
        let usual = usual_gap(&alone, gap.length_ns).max(latency);
        // Once the load is over the others do not go on either.
        let in_load = visit.rated_ns().saturating_sub(gap.start_ns).min(gap.length_ns);
        common(gap) < gap.length_ns / 2 && in_load >= usual.saturating_mul(TIMES_USUAL)
    });
    own
}

/// Mean time between a stream's completions outside a gap of its. The map of milliseconds does
/// not tell: workers note only where they waited for 50 ms and more.
fn usual_gap(alone: &VisitRecord, length_ns: u64) -> u64 {
    let ops = alone.streams.iter().flat_map(|stream| &stream.ops);
    let requests = ops.fold(0, |sum: u64, op| sum.saturating_add(op.requests_rated()));
    alone.rated_ns().saturating_sub(length_ns) / requests.max(1)
}

/// Median latency of a stream's requests.
fn usual_latency(alone: &VisitRecord) -> u64 {
    let mut all = LatencyHistogram::new();
    for op in alone.streams.iter().flat_map(|stream| &stream.ops) {
        all.merge(&op.latency);
    }
    all.quantile(0.5).map_or(0, Nanos::get)
}

impl Halts {
    /// Each of a few, the longest of many.
    pub fn findings(&self) -> Vec<Finding> {
        let mut longest: Vec<&Halt> = self.events.iter().collect();
        longest.sort_by_key(|event| (std::cmp::Reverse(event.length_ns), event.order));
        longest.truncate(LINES_MAX);
        longest.sort_by_key(|event| (event.order, event.start_ns));
        let mut found: Vec<Finding> = longest.into_iter().map(Halt::finding).collect();
        if let Some(more @ 1..) = self.events.len().checked_sub(LINES_MAX) {
            found.push(Finding::new(Code::StreamsStalledMore).with("times", more));
        }
        found
    }
}

impl Halt {
    fn finding(&self) -> Finding {
        Finding::new(Code::StreamStalled)
            .on(Subject::new(self.cell, Some(self.position as usize), &self.name))
            .with("length", Number::ns(self.length_ns))
            .with("visit", u64::from(self.repeat) + 1)
            .with("at", Number::ns(self.start_ns))
            .with("one_at_a_time", self.one_at_a_time)
    }
}
