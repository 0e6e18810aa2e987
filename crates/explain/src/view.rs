//! A run as verdicts look at it: cells with the visits that count, and their rates.

use record::{CellRecord, OpRecord, Purpose, Run, VisitEnd, VisitRecord};

/// A run, cell by cell.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// All of it.
    pub run: &'a Run,
    /// In the suite's order, the fill and cells without a visit included.
    pub cells: Vec<CellView<'a>>,
}

/// A cell with the visits that count.
#[derive(Clone, Debug)]
pub struct CellView<'a> {
    /// The cell.
    pub cell: &'a CellRecord,
    /// Visits that ended by their stop rule and were made to be counted, in the order made.
    pub visits: Vec<VisitView<'a>>,
}

/// A visit with its rate.
#[derive(Clone, Copy, Debug)]
pub struct VisitView<'a> {
    /// The visit.
    pub visit: &'a VisitRecord,
    /// Requests completed per second of measured time: data operations of all streams; all
    /// operations where no stream has other ones. 0 when nothing completed.
    pub requests_per_second: f64,
    /// Bytes per second of the same.
    pub bytes_per_second: f64,
}

/// What all requests of a cell are, where they are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load {
    /// `read`, `write`, `mixed`, ...
    pub op: String,
    /// Bytes per request.
    pub block_bytes: u64,
    /// Requests in flight: threads times queue depth.
    pub in_flight: u64,
    /// Workers.
    pub threads: u32,
}

/// Whether requests of this operation move data: rates are about these.
pub fn is_data(op: &str) -> bool {
    matches!(op, "read" | "write" | "trim")
}

impl<'a> View<'a> {
    /// The view of a run.
    pub fn new(run: &'a Run) -> Self {
        let cell = |cell: &'a CellRecord| CellView {
            cell,
            visits: run.visits.iter().filter(|v| v.cell == cell.index).filter_map(view).collect(),
        };
        Self { run, cells: run.cells.iter().map(cell).collect() }
    }

    /// The cells of the grid: without the fill and preconditioning.
    pub fn grid(&self) -> impl Iterator<Item = &CellView<'a>> {
        self.cells.iter().filter(|cell| !is_preparation(&cell.cell.phase))
    }
}

/// Whether a phase only prepares what is measured.
pub fn is_preparation(phase: &str) -> bool {
    phase == "fill" || phase.starts_with("precondition")
}

impl<'a> CellView<'a> {
    /// Natural logarithms of the visits' rates in requests per second, those of visits in which
    /// nothing completed left out.
    pub fn ln_rates(&self) -> Vec<f64> {
        let rates = self.visits.iter().map(|v| v.requests_per_second);
        rates.filter(|&rate| rate > 0.0).map(f64::ln).collect()
    }

    /// Its load, if all its streams' requests are of one kind and size.
    pub fn load(&self) -> Option<Load> {
        let [stream] = self.cell.streams.as_slice() else { return None };
        Some(Load {
            op: stream.op.clone(),
            block_bytes: stream.block_bytes?,
            in_flight: u64::from(stream.threads).saturating_mul(u64::from(stream.queue_depth)),
            threads: stream.threads,
        })
    }

    /// Its place in the grid as people say it: `read 4KiB 10`: phase and values in the order of
    /// the axes.
    pub fn name(&self) -> String {
        let values = self.cell.coordinates.iter().map(|(_, value)| value.as_str());
        std::iter::once(self.cell.phase.as_str()).chain(values).collect::<Vec<_>>().join(" ")
    }
}

/// More than this is no time and no count that a visit can have: 146 years in ns. What is
/// negative in a damaged store reads as more.
const SANE_MAX: u64 = 1 << 62;

/// Whether a visit's time and counts can be.
pub fn is_sane(visit: &VisitRecord) -> bool {
    let ops = visit.streams.iter().flat_map(|stream| &stream.ops);
    let mut counts = ops.flat_map(|op| [op.requests, op.bytes]);
    visit.elapsed_ns <= SANE_MAX && counts.all(|n| n <= SANE_MAX)
}

fn view(visit: &VisitRecord) -> Option<VisitView<'_>> {
    let counts = matches!(visit.end, VisitEnd::Complete | VisitEnd::Hanging)
        && visit.purpose == Purpose::Measure
        && visit.elapsed_ns > 0
        && is_sane(visit);
    counts.then(|| {
        let ops = || visit.streams.iter().flat_map(|stream| &stream.ops);
        let has_data = ops().any(|op| is_data(&op.op));
        let sum = |of: fn(&OpRecord) -> u64| {
            let counted = ops().filter(|op| !has_data || is_data(&op.op)).map(of);
            counted.fold(0u64, u64::saturating_add) as f64
        };
        let seconds = visit.elapsed_ns as f64 / 1e9;
        VisitView {
            visit,
            requests_per_second: sum(|op| op.requests) / seconds,
            bytes_per_second: sum(|op| op.bytes) / seconds,
        }
    })
}
