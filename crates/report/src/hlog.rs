//! Latency histograms in HdrHistogram's log format, for its own tools and those made for it.
//!
//! Version 1.3 of the log with the compressed encoding V2: a line for each visit, stream and
//! operation, tagged with its cell. Ours are base-2 buckets of at most 0.8 %, HdrHistogram's here
//! have three digits: the middle of a bucket is at most 0.4 % off, and the shortest and longest are
//! as exact as three digits are.

use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use record::{OpRecord, Purpose, Run, VisitEnd, VisitRecord};
use stats::histogram::bucket_bounds;

use crate::figures::{self, StreamOfCell};

/// Digits that HdrHistogram keeps.
const DIGITS: u8 = 3;
/// The longest latency of a line is printed in ms.
const NS_PER_MS: f64 = 1e6;

/// Why a run has no histogram log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HlogError {
    /// No operation of it has a histogram: another tool made it and printed none, or nothing was
    /// measured.
    #[error("run {0} has no latency histogram")]
    None(String),
    /// HdrHistogram refused.
    #[error("cannot write the latencies of {of} as a histogram: {why}")]
    Refused {
        /// The tag.
        of: String,
        /// What it said.
        why: String,
    },
}

/// One line of the log.
struct Interval {
    tag: String,
    started_unix_ns: i64,
    elapsed_ns: u64,
    histogram: Histogram<u64>,
}

/// A histogram log of a run, in the order in which its visits were made.
///
/// Tags are `cell/phase/axis=value/.../stream/operation`, what does not count with why behind it:
/// `/pilot`, `/interrupted`, `/failed`. Values are ns.
pub fn hlog(run: &Run) -> Result<String, HlogError> {
    let mut intervals = Vec::new();
    let mut without = 0;
    let streams = figures::streams_of(run);
    let mut of_visits: Vec<_> =
        streams.iter().flat_map(|s| s.visits.iter().map(move |visit| (*visit, s))).collect();
    of_visits.sort_by_key(|(visit, stream)| (visit.order, stream.position));
    for (visit, stream) in of_visits {
        for op in stream.record(visit).into_iter().flat_map(|s| &s.ops) {
            match interval(stream, visit, op)? {
                Some(interval) => intervals.push(interval),
                None => without += 1,
            }
        }
    }
    if intervals.is_empty() {
        return Err(HlogError::None(run.header.id.clone()));
    }
    write(run, &intervals, without)
}

fn interval(
    stream: &StreamOfCell,
    visit: &VisitRecord,
    op: &OpRecord,
) -> Result<Option<Interval>, HlogError> {
    let counts = counts(op);
    let Some(&(longest, _)) = counts.last() else { return Ok(None) };
    let tag = tag(stream, visit, op);
    let refused = |why: String| HlogError::Refused { of: tag.clone(), why };
    let mut histogram = Histogram::new_with_bounds(1, longest.max(2), DIGITS)
        .map_err(|error| refused(error.to_string()))?;
    for (value, count) in counts {
        histogram.saturating_record_n(value, count);
    }
    let (started_unix_ns, elapsed_ns) = (visit.started_unix_ns, visit.elapsed_ns);
    Ok(Some(Interval { tag, started_unix_ns, elapsed_ns, histogram }))
}

/// Latency and how many had it, rising; empty where there is no histogram.
fn counts(op: &OpRecord) -> Vec<(u64, u64)> {
    if let Some(told) = &op.reported {
        return told.latency.buckets.iter().filter(|(_, n)| *n > 0).copied().collect();
    }
    let (shortest, longest) = (op.latency_ns_min, op.latency_ns_max.max(op.latency_ns_min));
    let mut counts: Vec<(u64, u64)> = op
        .latency
        .sparse()
        .filter(|(_, n)| *n > 0)
        .map(|(bucket, n)| {
            let (low, high) = bucket_bounds(bucket as usize);
            ((low + (high - low) / 2).clamp(shortest, longest), n)
        })
        .collect();
    // Both ends are known exactly.
    for (end, value) in [(0, shortest), (counts.len().saturating_sub(1), longest)] {
        if let Some(last) = counts.get_mut(end).filter(|(at, n)| *at != value && *n > 0) {
            last.1 -= 1;
            counts.push((value, 1));
        }
    }
    counts.retain(|(_, n)| *n > 0);
    counts.sort_unstable();
    counts
}

/// Without what ends a tag: commas, spaces and line ends.
fn tag(stream: &StreamOfCell, visit: &VisitRecord, op: &OpRecord) -> String {
    let cell = stream.cell;
    let mut parts = vec![cell.index.to_string(), cell.phase.clone()];
    parts.extend(cell.coordinates.iter().map(|(field, value)| format!("{field}={value}")));
    parts.extend([stream.plan.name.clone(), op.op.clone()]);
    let why = match (visit.purpose, visit.end) {
        (Purpose::Pilot, _) => Some("pilot"),
        (_, VisitEnd::Interrupted | VisitEnd::Failed) => Some(visit.end.name()),
        _ => None,
    };
    parts.extend(why.map(str::to_owned));
    let clean =
        |c: char| if c == ',' || c.is_whitespace() || units::is_unseen(c) { '_' } else { c };
    parts.join("/").chars().map(clean).collect()
}

fn write(run: &Run, intervals: &[Interval], without: usize) -> Result<String, HlogError> {
    let known = |ns: &i64| run.header.imported.is_none() || *ns != 0;
    let starts = intervals.iter().map(|i| i.started_unix_ns).filter(known);
    let first = starts.min();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    builder.add_comment(&format!(
        "[plimsoll {}, run {}: latencies in ns, longest of each line in ms]",
        run.header.program, run.header.id
    ));
    if without > 0 {
        builder.add_comment(&format!("[{without} without a histogram left out]"));
    }
    if first.is_none() {
        builder.add_comment("[when it was measured is not known]");
    }
    let from_epoch = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    if let Some(start) = first {
        builder.with_start_time(UNIX_EPOCH + from_epoch(start));
    }
    builder.with_max_value_divisor(NS_PER_MS);
    let mut out = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let whole = |why: String| HlogError::Refused { of: run.header.id.clone(), why };
    let mut log =
        builder.begin_log_with(&mut out, &mut serializer).map_err(|e| whole(e.to_string()))?;
    for interval in intervals {
        let since = interval.started_unix_ns.saturating_sub(first.unwrap_or(0));
        let since =
            if known(&interval.started_unix_ns) { from_epoch(since) } else { Duration::ZERO };
        let length = Duration::from_nanos(interval.elapsed_ns);
        let refused = |why: String| HlogError::Refused { of: interval.tag.clone(), why };
        log.write_histogram(&interval.histogram, since, length, Tag::new(&interval.tag))
            .map_err(|error| refused(error.to_string()))?;
    }
    drop(log);
    String::from_utf8(out).map_err(|error| whole(error.to_string()))
}
