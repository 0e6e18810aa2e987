//! First touch against re-read: a region in a random order, then the same again.

use record::{SeriesRow, VisitRecord};
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
            found.extend(compare(stream, (first_cell, first), (cell, visit)));
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
/// of each pass.
fn ratio(first: &VisitRecord, second: &VisitRecord) -> Option<(f64, f64, f64)> {
    let mean = |visit: &VisitRecord| {
        let mut ops = visit.streams.iter().flat_map(|s| &s.ops).filter(|op| op.op == "read");
        ops.next()?.latency_ns_mean().filter(|&mean| mean > 0.0)
    };
    let ratio = mean(first)? / mean(second)?;
    let (a, b) = (scatter(first)?, scatter(second)?);
    let error = a.0 + b.0;
    // Satterthwaite.
    let df = if error > 0.0 { error * error / (a.0 * a.0 / a.1 + b.0 * b.0 / b.1) } else { a.1 };
    let half = student_quantile(0.975, df.max(1.0))? * error.sqrt();
    Some((ratio, ratio * (-half).exp(), ratio * half.exp()))
}

/// Variance of the mean of ln rate over a pass, and its degrees of freedom.
///
/// From the means of ten parts in time; of as many as there are intervals in short passes. A fast
/// pass of less than five intervals of 100 ms has no parts: its latencies are taken to scatter as
/// its histogram does, ten of them worth one for their dependence.
fn scatter(visit: &VisitRecord) -> Option<(f64, f64)> {
    let op = visit.streams.iter().flat_map(|s| &s.ops).find(|op| op.op == "read")?;
    // The last interval is cut short by the end.
    let rows = op.series.rows.split_last().map_or(&[][..], |(_, rows)| rows);
    if rows.len() < ROWS_MIN {
        let n = op.requests as f64;
        let mean = op.latency_ns_mean()?;
        let squares = op.latency.sparse().map(|(bucket, count)| {
            let (low, high) = stats::histogram::bucket_bounds(bucket as usize);
            let middle = (low as f64 + high as f64) / 2.0;
            (middle - mean).powi(2) * count as f64
        });
        let variance = squares.sum::<f64>() / (n - 1.0);
        return (n >= 100.0).then(|| (10.0 * variance / (mean * mean) / n, n / 10.0));
    }
    let per_part = rows.len().div_ceil(PARTS);
    let parts: Vec<f64> = rows
        .chunks(per_part)
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
    Some((variance / n, n - 1.0))
}

fn requests(rows: &[SeriesRow]) -> f64 {
    rows.iter().map(|row| row.requests as f64).sum()
}
