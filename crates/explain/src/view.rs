//! A run as verdicts look at it: cells with the visits that count, and their rates.

use record::{CellRecord, OpRecord, Purpose, Run, StreamPlan, VisitEnd, VisitRecord};

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

/// Whether requests of this operation move data, or whole files: rates are about these.
pub fn is_data(op: &str) -> bool {
    matches!(op, "read" | "write" | "trim" | "copy-range" | "create" | "stat" | "delete")
}

impl<'a> View<'a> {
    /// The view of a run.
    pub fn new(run: &'a Run) -> Self {
        let cell = |cell: &'a CellRecord| CellView {
            cell,
            visits: run
                .visits
                .iter()
                .filter(|v| v.cell == cell.index)
                .filter_map(|visit| view(visit, &cell.streams))
                .collect(),
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
        let in_flight = u64::from(stream.threads).saturating_mul(u64::from(stream.queue_depth));
        // Imported runs need not tell.
        (in_flight > 0).then_some(())?;
        Some(Load {
            op: stream.op.clone(),
            block_bytes: stream.block_bytes?,
            in_flight,
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

/// What an operation did in a second; `None` where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpRate {
    /// Requests.
    pub requests: Option<f64>,
    /// Bytes.
    pub bytes: Option<f64>,
}

/// What an operation did in a second: counts by time; where another tool reported it, what that
/// tool says, and its counts by time or bytes by bytes per request where it does not.
pub fn rate_of(op: &OpRecord, visit: &VisitRecord, plan: Option<&StreamPlan>) -> OpRate {
    let seconds = visit.elapsed_ns as f64 / 1e9;
    let by_time = |n: u64| (seconds > 0.0).then(|| n as f64 / seconds);
    let Some(told) = &op.reported else {
        return OpRate { requests: by_time(op.requests), bytes: by_time(op.bytes) };
    };
    let block = plan.and_then(|plan| plan.block_bytes).filter(|&n| n > 0).map(|n| n as f64);
    let requests = told.iops.or_else(|| by_time(told.requests?));
    let bytes = told.bytes_per_s.or_else(|| by_time(told.bytes?));
    // Only data has a size: a transaction is no request of the block size.
    let block = block.filter(|_| is_data(&op.op) || told.bytes_per_s.is_some());
    OpRate {
        requests: requests.or_else(|| Some(bytes? / block?)),
        bytes: bytes.or_else(|| Some(requests? * block?)),
    }
}

/// A visit that another tool made: the sums of what it says. Not in view where it says nothing.
fn told<'a>(visit: &'a VisitRecord, plans: &[StreamPlan]) -> Option<VisitView<'a>> {
    let ops = || {
        let streams = visit.streams.iter().enumerate();
        streams.flat_map(|(k, stream)| stream.ops.iter().map(move |op| (op, plans.get(k))))
    };
    let has_data = ops().any(|(op, _)| is_data(&op.op));
    let counted = ops().filter(|(op, _)| !has_data || is_data(&op.op));
    let rates: Vec<OpRate> = counted.map(|(op, plan)| rate_of(op, visit, plan)).collect();
    let sane = |sum: f64| (sum.is_finite() && sum >= 0.0).then_some(sum);
    let all: Vec<f64> = rates.iter().filter_map(|rate| rate.requests).collect();
    if all.is_empty() {
        return None;
    }
    Some(VisitView {
        visit,
        requests_per_second: sane(all.iter().sum())?,
        bytes_per_second: sane(rates.iter().filter_map(|rate| rate.bytes).sum())?,
    })
}

fn view<'a>(visit: &'a VisitRecord, plans: &[StreamPlan]) -> Option<VisitView<'a>> {
    let counts = matches!(visit.end, VisitEnd::Complete | VisitEnd::Hanging)
        && visit.purpose == Purpose::Measure
        && is_sane(visit);
    if visit.streams.iter().flat_map(|s| &s.ops).any(|op| op.reported.is_some()) {
        return if counts { told(visit, plans) } else { None };
    }
    (counts && visit.elapsed_ns > 0).then(|| {
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
