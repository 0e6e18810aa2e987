//! First touch against re-read: a region in a random order, then the same again.

use record::{OpRecord, SeriesRow, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::interval::student_quantile;
use suite::model::{Access, Operation, Stream};

use super::plan::Plan;
use crate::view::{CellView, View};

/// The first pass must be so many times slower...
pub const RATIO_MIN: f64 = 1.3;
/// ...and its interval above this.
pub const LOW_MIN: f64 = 1.1;
/// Parts that a pass is cut into for its own scatter.
const PARTS: usize = 10;
/// Fewest intervals of the series for that.
const ROWS_MIN: usize = 5;

/// Two passes over one region.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reread {
    /// Cell that touched it first.
    pub first: u32,
    /// Cell that read it again.
    pub second: u32,
    /// As people say them.
    pub names: (String, String),
    /// Bytes that both passes read.
    pub bytes: u64,
    /// Mean latency of the first by that of the second; `None` if either was too short.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub low: Option<f64>,
    /// As above.
    pub high: Option<f64>,
    /// Whether a cache of at least `bytes` answered the second.
    pub found: bool,
    /// Whether the page cache was in use, so that it may be the machine's memory.
    pub buffered: bool,
}

/// Pairs of cells of one load that read without repetition, in the order of the run: each but
/// the first against the first.
pub(super) fn rereads(view: &View<'_>, plan: &Plan) -> Vec<Reread> {
    let mut passes: Vec<(Stream, &CellView<'_>, &VisitRecord)> = view
        .grid()
        .filter_map(|cell| {
            let [stream] = plan.cell(cell.cell)?.streams.as_slice() else { return None };
            let reads = stream.mix.classes.iter().all(|class| class.op == Operation::Read);
            let once = matches!(stream.access, Access::Permutation | Access::UniformOnce);
            let visit = cell.visits.iter().min_by_key(|v| v.visit.order)?;
            // A stream is called as its phase, and the passes are phases.
            let stream = Stream { name: String::new(), ..stream.clone() };
            (reads && once).then_some((stream, cell, visit.visit))
        })
        .collect();
    passes.sort_by_key(|(_, _, visit)| visit.order);
    let mut found = Vec::new();
    for (at, (stream, cell, visit)) in passes.iter().enumerate() {
        let earlier = passes[..at].iter().find(|(other, _, _)| other == stream);
        if let Some((_, first_cell, first)) = earlier {
            let pair = compare(stream, (first_cell, first), (cell, visit));
            found.extend(pair.map(|pair| Reread {
                buffered: pair.buffered && super::has_page_cache(view),
                ..pair
            }));
        }
    }
    found
}

fn compare(
    stream: &Stream,
    first: (&CellView<'_>, &VisitRecord),
    second: (&CellView<'_>, &VisitRecord),
) -> Option<Reread> {
    let bytes = |visit: &VisitRecord| {
        let ops = visit.streams.iter().flat_map(|s| &s.ops).filter(|op| op.op == "read");
        ops.map(|op| op.bytes).fold(0u64, u64::saturating_add)
    };
    let (read, again) = (bytes(first.1), bytes(second.1));
    // Further round, the first pass would have met its own blocks.
    let wrapped = read > stream.region.length.get();
    if read == 0 || again == 0 || wrapped {
        return None;
    }
    let ratio = ratio(first.1, second.1);
    let granted = |visit: &VisitRecord| visit.streams.iter().all(|s| s.backend.direct);
    Some(Reread {
        first: first.0.cell.index,
        second: second.0.cell.index,
        names: (first.0.name(), second.0.name()),
        bytes: read.min(again),
        ratio: ratio.map(|r| r.0),
        low: ratio.map(|r| r.1),
        high: ratio.map(|r| r.2),
        found: ratio.is_some_and(|(ratio, low, _)| ratio > RATIO_MIN && low > LOW_MIN),
        buffered: !(granted(first.1) && granted(second.1)),
    })
}

/// Mean latencies of the first by the second, with a 95 % interval from the scatter of the parts
/// of each pass; of each pass's own latencies where one was too short to have parts.
fn ratio(first: &VisitRecord, second: &VisitRecord) -> Option<(f64, f64, f64)> {
    let (first, second) = (read_op(first)?, read_op(second)?);
    let (a, b) = match (parts(first), parts(second)) {
        (Some(a), Some(b)) => (a, b),
        _ => (trimmed(first)?, trimmed(second)?),
    };
    let ratio = a.mean / b.mean;
    let error = a.variance + b.variance;
    // Satterthwaite.
    let df = if error > 0.0 {
        error.powi(2) / (a.variance.powi(2) / a.df + b.variance.powi(2) / b.df)
    } else {
        a.df
    };
    let half = student_quantile(0.975, df.max(1.0))? * error.sqrt();
    Some((ratio, ratio * (-half).exp(), ratio * half.exp()))
}

fn read_op(visit: &VisitRecord) -> Option<&OpRecord> {
    visit.streams.iter().flat_map(|s| &s.ops).find(|op| op.op == "read" && op.requests > 0)
}

/// A pass: mean latency, the variance of its logarithm, and what that is worth.
struct Pass {
    mean: f64,
    variance: f64,
    df: f64,
}

/// From ten parts in time: of as many as there are intervals in a short pass. `None` below
/// five intervals of the series.
fn parts(op: &OpRecord) -> Option<Pass> {
    // The last interval is cut short by the end.
    let rows = op.series.rows.split_last().map_or(&[][..], |(_, rows)| rows);
    if rows.len() < ROWS_MIN {
        return None;
    }
    let parts: Vec<f64> = rows
        .chunks(rows.len().div_ceil(PARTS))
        .map(|part| requests(part) / part.len() as f64)
        .filter(|&rate| rate > 0.0)
        .map(f64::ln)
        .collect();
    let n = parts.len() as f64;
    if n < 3.0 {
        return None;
    }
    let mean = parts.iter().sum::<f64>() / n;
    let variance = parts.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let latency = op.latency_ns_mean().filter(|&mean| mean > 0.0)?;
    Some(Pass { mean: latency, variance: variance / n, df: n - 1.0 })
}

/// From the latencies themselves without the slowest hundredth: a few ms in which the process did
/// not run are most of the mean of a pass of some ms. Ten of them are worth one, for their
/// dependence.
fn trimmed(op: &OpRecord) -> Option<Pass> {
    let keep = (op.latency.count() as f64 * 0.99).floor();
    if keep < 100.0 {
        return None;
    }
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (bucket, count) in op.latency.sparse() {
        let (low, high) = stats::histogram::bucket_bounds(bucket as usize);
        let middle = (low as f64 + high as f64) / 2.0;
        let taken = (count as f64).min(keep - n);
        n += taken;
        sum += taken * middle;
        squares += taken * middle * middle;
        if n >= keep {
            break;
        }
    }
    let mean = sum / n;
    let variance = (squares / n - mean * mean).max(0.0) / (mean * mean);
    (mean > 0.0).then(|| Pass { mean, variance: 10.0 * variance / n, df: n / 10.0 })
}

fn requests(rows: &[SeriesRow]) -> f64 {
    rows.iter().map(|row| row.requests as f64).sum()
}
