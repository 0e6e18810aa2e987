//! From what workers measured to what a visit yields.

use std::collections::BTreeMap;

use record::{
    BackendRecord, Bitmap, OpRecord, Series, SeriesRow, StreamRecord, Warning, WorkerRecord,
};
use stats::LatencyHistogram;
use suite::model::Pacing;
use units::{Instant, Nanos};

use crate::op::OpId;
use crate::pace::Load;
use crate::recorder::Late;
use crate::recorder::OpRecorder;
use crate::result::WorkerResult;

/// Long lists help nobody; what was left out is counted.
const SLOW_MAX: usize = 1_000;

/// The measured part of a visit.
#[derive(Debug)]
pub struct VisitResult {
    /// In the order of the visit's streams. The back ends are left for the caller to fill in.
    pub streams: Vec<StreamRecord>,
    /// A bit per millisecond with a completion of any stream.
    pub completions: Bitmap,
    /// From the first start to the last completion.
    pub elapsed: Nanos,
    /// From the first start to the end of the load, where that ended by time: see
    /// [`record::VisitRecord::rated_ns`].
    pub load: Option<Nanos>,
    /// Start of the measured part on the device's clock.
    pub begin: Instant,
    /// Requests that never came back.
    pub hanging: bool,
    /// Others are still in flight, since the user wanted to leave at once.
    pub left: bool,
    /// Requests failed or came back short.
    pub failed: bool,
    /// What went wrong, in words.
    pub warnings: Vec<Warning>,
}

/// Merges the results of all workers of a visit, in any order.
///
/// * `loads`: of its streams, in their order.
/// * `names`: of the operations, in the order of their ids.
pub fn merge(loads: &[Load<'_>], names: &[&str], mut results: Vec<WorkerResult>) -> VisitResult {
    results.sort_by_key(|result| result.id);
    let begin = results.iter().map(|r| r.begin).min().unwrap_or_default();
    // A worker that never got to measure has no say in when the measured part ended.
    let last = results.iter().filter(|r| r.last > r.begin).map(|r| r.last).max();
    let last = last.unwrap_or(begin);
    let load_end = load_end(&results);
    for result in &mut results {
        result.count_from(begin);
    }
    let mut late: BTreeMap<(u32, OpId), (u64, u64)> = BTreeMap::new();
    for result in &results {
        let is_late = |late: &&Late| load_end.is_some_and(|end| late.at > end);
        for one in result.late.iter().filter(is_late) {
            let (requests, bytes) = late.entry((result.id.stream, one.op)).or_default();
            *requests += 1;
            *bytes += u64::from(one.bytes);
        }
    }
    let mut completions = Bitmap::default();
    for result in &results {
        completions.merge(&result.bitmap);
    }
    let mut warnings = warnings(loads, &results);
    warnings.extend(overloads(loads, &results, &late, load_end.unwrap_or(last).since(begin)));
    let hanging = results.iter().any(|r| r.hangs);
    let left = results.iter().any(|r| r.left);
    let failed = results.iter().any(|r| r.gave_up);
    let mut streams: Vec<StreamRecord> = loads
        .iter()
        .map(|load| StreamRecord {
            name: load.name.to_owned(),
            backend: BackendRecord::default(),
            ops: Vec::new(),
            workers: Vec::new(),
            ramp_requests: 0,
            backlog: 0,
        })
        .collect();
    let mut by_op: BTreeMap<(u32, OpId), Vec<OpRecorder>> = BTreeMap::new();
    for result in results {
        let stream = &mut streams[result.id.stream as usize];
        stream.ramp_requests += result.ramp_requests;
        stream.backlog += result.backlog;
        stream.workers.push(worker_record(&result));
        for (op, recorder) in result.ops {
            by_op.entry((result.id.stream, op)).or_default().push(recorder);
        }
    }
    for ((stream, op), parts) in by_op {
        let (late_requests, late_bytes) = late.get(&(stream, op)).copied().unwrap_or_default();
        let name = names.get(usize::from(op.0)).copied().unwrap_or_default();
        let record = OpRecord { late_requests, late_bytes, ..op_record(name, parts) };
        // A sync policy that never came due leaves no trace.
        if record.requests + record.short + record.errors_total() > 0 {
            streams[stream as usize].ops.push(record);
        }
    }
    VisitResult {
        streams,
        completions,
        elapsed: last.since(begin),
        load: load_end.map(|end| end.since(begin)),
        begin,
        hanging,
        left,
        failed,
        warnings,
    }
}

/// When the visit's load was over, if time ended it.
///
/// Workers whose time is over at one moment are one load: it is over when the first of them could
/// have gone on. Those that a count ended, and flushes that count, have their load until the last
/// completion.
fn load_end(results: &[WorkerResult]) -> Option<Instant> {
    let by_time = || results.iter().filter_map(|result| result.ended);
    let at = by_time().map(|ended| ended.at).max()?;
    let until = by_time().filter(|ended| ended.at == at).map(|ended| ended.until).min()?;
    let others = results.iter().filter(|r| r.ended.is_none() || r.closing_sync.is_some());
    let others = others.filter(|r| r.last > r.begin).map(|r| r.last).max();
    Some(others.map_or(until, |last| last.max(until)))
}

fn worker_record(result: &WorkerResult) -> WorkerRecord {
    WorkerRecord {
        requests: result.ops.iter().map(|(_, op)| op.requests).sum(),
        cpu_user_ns: result.cpu.map(|(user, _)| user),
        cpu_system_ns: result.cpu.map(|(_, system)| system),
        switches_voluntary: result.switches.map(|(voluntary, _)| voluntary),
        switches_involuntary: result.switches.map(|(_, involuntary)| involuntary),
        gaps: result.gaps.clone(),
        closing_sync: result.closing_sync,
        batch_max: result.batch_max,
        stamp_error_ns_max: result.stamp_error.get(),
    }
}

fn op_record(name: &str, parts: Vec<OpRecorder>) -> OpRecord {
    let mut latency = LatencyHistogram::new();
    let mut errors: BTreeMap<i32, u64> = BTreeMap::new();
    let mut slow = Vec::new();
    for part in &parts {
        latency.merge(&part.histogram);
        slow.extend_from_slice(&part.slow);
        for &(code, count) in &part.errors {
            *errors.entry(code).or_default() += count;
        }
    }
    slow.sort_by_key(|request| (request.at_ns, request.worker));
    let listed = slow.len().min(SLOW_MAX);
    let slow_dropped =
        parts.iter().map(|p| p.slow_dropped).sum::<u64>() + (slow.len() - listed) as u64;
    slow.truncate(listed);
    let requests = parts.iter().map(|p| p.requests).sum();
    OpRecord {
        op: name.to_owned(),
        requests,
        bytes: parts.iter().map(|p| p.bytes).sum(),
        errors: errors.into_iter().collect(),
        short: parts.iter().map(|p| p.short).sum(),
        latency,
        latency_ns_min: if requests == 0 {
            0
        } else {
            parts.iter().map(|p| p.latency_min).min().unwrap_or(0)
        },
        latency_ns_max: parts.iter().map(|p| p.latency_max).max().unwrap_or(0),
        latency_ns_sum: parts.iter().map(|p| u128::from(p.latency_sum)).sum(),
        series: series(&parts),
        slow,
        slow_dropped,
        late_requests: 0,
        late_bytes: 0,
        reported: None,
    }
}

/// Adds the workers' rows up; a worker that doubled its interval more often than others sets
/// the interval of all.
fn series(parts: &[OpRecorder]) -> Series {
    let interval = parts.iter().map(|p| p.interval.get()).max().unwrap_or(0);
    let mut rows: Vec<(SeriesRow, BTreeMap<u16, u64>)> = Vec::new();
    for part in parts {
        let factor = (interval / part.interval.get().max(1)).max(1) as usize;
        for (index, (row, tail)) in part.tail_slices().enumerate() {
            let place = index / factor;
            if rows.len() <= place {
                rows.resize_with(place + 1, Default::default);
            }
            let (sum, tails) = &mut rows[place];
            sum.requests += row.requests;
            sum.bytes += row.bytes;
            for &(bucket, count) in tail {
                *tails.entry(bucket).or_default() += u64::from(count);
            }
        }
    }
    let rows = rows
        .into_iter()
        .map(|(row, tail)| SeriesRow { tail: tail.into_iter().collect(), ..row })
        .collect();
    Series { interval_ns: interval, rows }
}

fn warnings(loads: &[Load<'_>], results: &[WorkerResult]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for result in results {
        let stream = loads[result.id.stream as usize].name;
        let who = format!("stream `{stream}`, worker {}", result.id.worker);
        let troubles = result.troubles.iter();
        warnings.extend(
            troubles.map(|trouble| Warning::new(&trouble.code, format!("{who}: {}", trouble.text))),
        );
        if result.backlog > 0 {
            let left = result.backlog;
            let text =
                format!("{who}: {left} requests that were due had not been issued at the end");
            warnings.push(Warning::new("backlog", text));
        }
    }
    warnings
}

/// A warning for each stream that was offered more than it could do.
fn overloads(
    loads: &[Load<'_>],
    results: &[WorkerResult],
    late: &BTreeMap<(u32, OpId), (u64, u64)>,
    lasted: Nanos,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (index, load) in (0u32..).zip(loads) {
        let Pacing::Open { rate, .. } = load.pacing else { continue };
        let own = || results.iter().filter(|result| result.id.stream == index);
        if !own().any(|result| result.overloaded) {
            continue;
        }
        let counts = |op: &OpId| !load.unasked.contains(op);
        let ops = own().flat_map(|result| &result.ops).filter(|(op, _)| counts(op));
        let done: u64 = ops.map(|(_, op)| op.requests).sum();
        let late = late.iter().filter(|((stream, op), _)| *stream == index && counts(op));
        let late: u64 = late.map(|(_, (requests, _))| requests).sum();
        let reached = done.saturating_sub(late) as f64 / lasted.as_secs_f64();
        warnings.push(Warning::new(
            "overloaded",
            format!(
                "stream `{}`: {rate:.0} requests a second were offered, {reached:.0} came back; \
                 more than a second behind and falling further, it ended the visit after {:.1} s",
                load.name,
                lasted.as_secs_f64()
            ),
        ));
    }
    warnings
}
