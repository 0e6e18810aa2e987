//! A run as verdicts look at it: cells with the visits that count, and their rates.
//!
//! Two ways to look, and every verdict takes the one that fits its question. What the devices did
//! is of a cell as a whole ([`View::cells`]): caches, queues, times in which nothing came back.
//! How fast something was is of a row ([`View::rows`]): a cell of one stream, or one stream of a
//! cell of several. The sum of a log and of page reads is the page reads with a little noise.

use std::borrow::Cow;
use std::sync::OnceLock;

use finding::Subject;
use record::{
    Bitmap, CellRecord, OpRecord, Purpose, Run, StreamPlan, StreamRecord, VisitEnd, VisitRecord,
};
use suite::model::{Class, Pacing, Stream, Suite};
use units::Nanos;

use crate::own_names::{Grid, grids};

/// A run, cell by cell.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// All of it.
    pub run: &'a Run,
    /// In the suite's order, the fill and cells without a visit included; all streams of each
    /// together.
    pub cells: Vec<CellView<'a>>,
    /// The same, those of several streams taken apart: what one line of a table is about.
    pub rows: Vec<CellView<'a>>,
    /// Read when it is first asked for.
    suite: OnceLock<Option<Suite>>,
}

/// A cell, or one of its streams, with the visits that count.
#[derive(Clone, Debug)]
pub struct CellView<'a> {
    /// The cell.
    pub cell: &'a CellRecord,
    /// Which of its several streams this is about, from 0; `None` for all of them.
    pub stream: Option<usize>,
    /// Which requests of each of the cell's streams are operations.
    pub counts: Vec<Counts>,
    /// Of each of the cell's streams that pauses by plan (`think`) what each request in flight
    /// stands for: how many come between two pauses. `None` of others, or where no plan says.
    pub bursts: Vec<Option<u32>>,
    /// Visits that ended by their stop rule and were made to be counted, in the order made.
    pub visits: Vec<VisitView<'a>>,
    /// The grid that it is of, where its phase does not tell.
    pub(crate) grid: Option<Grid<'a>>,
}

/// A visit with its rate.
#[derive(Clone, Copy, Debug)]
pub struct VisitView<'a> {
    /// The visit.
    pub visit: &'a VisitRecord,
    /// Which of its several streams this is about; `None` for all of them.
    pub stream: Option<usize>,
    /// Requests completed per second of measured time: data operations of its streams; all
    /// operations where none of them has other ones. 0 when nothing completed. An update or a copy
    /// counts once, with its bytes: see [`Counts`].
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
    matches!(op, "read" | "write" | "trim" | "copy-range" | "create" | "stat" | "delete" | "commit")
}

/// Which data requests of a stream are operations by themselves.
///
/// An update or a copy is one operation and two requests, a read and then a write, which are
/// recorded by those names: a rate that took both would be twice what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// Every one. Also where updates stand beside reads and beside writes: the record does not
    /// tell which of those are halves.
    #[default]
    All,
    /// The writes are second halves: updates among reads.
    NotWrites,
    /// The reads are first halves: updates or copies alone, or among writes.
    NotReads,
}

impl Counts {
    /// Whether a data operation counts.
    pub fn takes(self, op: &str) -> bool {
        match self {
            Self::All => true,
            Self::NotWrites => op != "write",
            Self::NotReads => op != "read",
        }
    }

    /// Whether operations are two requests, at least some of them.
    pub fn has_pairs(self) -> bool {
        matches!(self, Self::NotWrites | Self::NotReads)
    }

    /// Of a stream that plays this mix.
    pub fn of_classes(classes: &[Class]) -> Self {
        use suite::model::Operation::{Read, Write};
        let any = |op| classes.iter().any(|class| class.op == op);
        match (classes.iter().any(|class| class.op.is_pair()), any(Read), any(Write)) {
            (false, ..) | (true, true, true) => Self::All,
            (true, true, false) => Self::NotWrites,
            (true, false, _) => Self::NotReads,
        }
    }
}

/// The suite that a stored text is, if this version can read it.
pub(crate) fn checked(text: &str) -> Option<Suite> {
    let source = suite::parse(text, "the run's suite").ok()?;
    suite::check(&source, &suite::CheckContext::default()).ok()
}

/// What counts in each stream of a run.
#[derive(Clone, Debug)]
pub struct Counting {
    /// Where a mix has to be looked at.
    suite: Option<Suite>,
}

impl Counting {
    /// Of a run.
    pub fn of(run: &Run) -> Self {
        Self::of_suite(&run.header.suite_text)
    }

    /// Of a run that played this text.
    pub fn of_suite(text: &str) -> Self {
        // Most have none, and reading a suite takes longer than looking.
        let may_have = ["update", "copy", "think"].iter().any(|op| text.contains(op));
        Self { suite: may_have.then(|| checked(text)).flatten() }
    }

    /// Of all streams of a cell, in their order.
    pub fn in_cell(&self, cell: &CellRecord) -> Vec<Counts> {
        (0..cell.streams.len()).map(|position| self.in_stream(cell, position)).collect()
    }

    /// Of the stream at a position in a cell.
    pub fn in_stream(&self, cell: &CellRecord, position: usize) -> Counts {
        let Some(plan) = cell.streams.get(position) else { return Counts::All };
        match plan.op.as_str() {
            "update" | "copy" => Counts::NotReads,
            "mixed" => {
                let planned = self.planned(cell, position);
                planned.map_or(Counts::All, |stream| Counts::of_classes(&stream.mix.classes))
            }
            _ => Counts::All,
        }
    }

    /// How many requests of the stream at a position in a cell come between two pauses, for each
    /// one in flight; `None` where the plan has no pauses.
    pub fn burst(&self, cell: &CellRecord, position: usize) -> Option<u32> {
        let stream = self.planned(cell, position)?;
        let of_stream = match stream.pacing {
            Pacing::Closed { think, burst } if think > Nanos::ZERO => Some(burst),
            _ => None,
        };
        let lines = stream.mix.classes.iter().filter_map(|class| class.line);
        let paused = lines.filter(|line| line.think > Nanos::ZERO).map(|line| line.burst);
        paused.chain(of_stream).max()
    }

    fn planned(&self, cell: &CellRecord, position: usize) -> Option<&Stream> {
        let planned = self.suite.as_ref()?.cells().nth(cell.index as usize)?;
        let stream = planned.streams.get(position)?;
        (stream.name == cell.streams.get(position)?.name).then_some(stream)
    }
}

impl<'a> View<'a> {
    /// The view of a run.
    pub fn new(run: &'a Run) -> Self {
        let counting = Counting::of(run);
        let mut grids = grids(run);
        let cell = |cell: &'a CellRecord| {
            let counts = counting.in_cell(cell);
            let bursts = (0..cell.streams.len()).map(|k| counting.burst(cell, k)).collect();
            let visits = run.visits.iter().filter(|v| v.cell == cell.index);
            let visits = visits.filter_map(|visit| view(visit, &cell.streams, None, &counts));
            CellView {
                cell,
                stream: None,
                visits: visits.collect(),
                counts,
                bursts,
                grid: grids.remove(&cell.index),
            }
        };
        let cells: Vec<CellView<'a>> = run.cells.iter().map(cell).collect();
        let rows = cells.iter().flat_map(CellView::by_stream).collect();
        let suite = counting.suite.map(Some).map_or_else(OnceLock::new, OnceLock::from);
        Self { run, cells, rows, suite }
    }

    /// The suite that the run played, as it was stored; `None` where this version cannot read it.
    pub fn suite(&self) -> Option<&Suite> {
        self.suite.get_or_init(|| checked(&self.run.header.suite_text)).as_ref()
    }

    /// The cells of the grid: without the fill and preconditioning.
    pub fn grid(&self) -> impl Iterator<Item = &CellView<'a>> {
        self.cells.iter().filter(|cell| !is_preparation(&cell.cell.phase))
    }

    /// The rows of the grid, likewise.
    pub fn grid_rows(&self) -> impl Iterator<Item = &CellView<'a>> {
        self.rows.iter().filter(|row| !is_preparation(&row.cell.phase))
    }

    /// Whether a cell has several streams: then there are more rows than cells.
    pub fn is_of_streams(&self) -> bool {
        self.rows.len() > self.cells.len()
    }
}

/// Whether a phase only prepares what is measured.
pub fn is_preparation(phase: &str) -> bool {
    phase == "fill" || phase.starts_with("precondition")
}

impl<'a> CellView<'a> {
    /// Of a cell without its visits: what it asks for.
    pub fn bare(cell: &'a CellRecord) -> Self {
        let (counts, bursts, visits) = (Vec::new(), Vec::new(), Vec::new());
        Self { cell, stream: None, counts, bursts, visits, grid: None }
    }

    /// Each of its streams by itself, if it has several; itself otherwise.
    pub fn by_stream(&self) -> Vec<Self> {
        if self.cell.streams.len() < 2 || self.stream.is_some() {
            return vec![self.clone()];
        }
        let of = |position: usize| Self {
            cell: self.cell,
            stream: Some(position),
            grid: None,
            counts: self.counts.clone(),
            bursts: self.bursts.clone(),
            visits: self
                .visits
                .iter()
                .filter_map(|v| view(v.visit, &self.cell.streams, Some(position), &self.counts))
                .collect(),
        };
        (0..self.cell.streams.len()).map(of).collect()
    }

    /// What its streams ask for.
    pub fn plans(&self) -> &'a [StreamPlan] {
        match self.stream {
            None => &self.cell.streams,
            Some(position) => self.cell.streams.get(position..=position).unwrap_or_default(),
        }
    }

    /// What its streams ask for, each with [`Self::bursts`].
    pub(crate) fn plans_with_bursts(
        &self,
    ) -> impl Iterator<Item = (usize, &'a StreamPlan, Option<u32>)> {
        let all = self.cell.streams.iter().enumerate();
        let own = all.filter(|(k, _)| self.stream.is_none_or(|only| only == *k));
        own.map(|(k, plan)| (k, plan, self.bursts.get(k).copied().flatten()))
    }

    /// Whether the suite asks for pauses in any of its streams.
    pub fn has_pauses(&self) -> bool {
        self.plans_with_bursts().any(|(.., burst)| burst.is_some())
    }

    /// The name of the stream it is about, where the cell has several.
    pub fn stream_name(&self) -> Option<&'a str> {
        self.stream.and_then(|k| self.cell.streams.get(k)).map(|plan| plan.name.as_str())
    }

    /// Whether it is about a stream of this name, alone or among others.
    pub fn has_stream(&self, name: &str) -> bool {
        self.plans().iter().any(|plan| plan.name == name)
    }

    /// Rows that are expected to be equally noisy: of one phase, and of streams of the same names; or
    /// of one grid, whatever its cells are called.
    pub(crate) fn alike(&self) -> (&'a str, Vec<&'a str>) {
        if let Some(grid) = &self.grid {
            let names = grid.first.streams.iter().map(|plan| plan.name.as_str()).collect();
            return (grid.first.phase.as_str(), names);
        }
        let names = self.plans().iter().map(|plan| plan.name.as_str()).collect();
        (self.cell.phase.as_str(), names)
    }

    /// Whether it was offered more than it took: a visit says that it was overloaded, or more than
    /// [`LEFT_MAX`] of what was due, and more than chance leaves, had not been issued by the visits'
    /// ends. Its rates are then what the storage did, below what the suite asked for.
    pub fn fell_behind(&self) -> bool {
        let overloaded = |visit: &VisitView<'_>| self.warned_of_overload(visit).is_some();
        let all = self.visits.iter().map(Offered::of);
        let all = all.fold(Offered::default(), |sum, one| Offered {
            left: sum.left.saturating_add(one.left),
            due: sum.due.saturating_add(one.due),
        });
        let visits = self.visits.len().max(1) as f64;
        // Arrivals by chance come and go by the square root of their number. Even where exactly as
        // much is taken as is offered, four fifths of that are left on average, give or take three
        // fifths; this is three of these above.
        let chance = (1.0 + 2.0 / visits.sqrt()) * (all.due as f64 / visits).sqrt();
        let too_many = all.is_much() && all.left as f64 / visits > chance;
        too_many || self.visits.iter().any(overloaded)
    }

    /// Whether that was so throughout: in half of the visits at least, so that no single stall is
    /// taken for it.
    pub fn is_overloaded(&self) -> bool {
        let behind = self.visits.iter().filter(|visit| Offered::of(visit).is_much()).count();
        self.fell_behind() && behind > 0 && 2 * behind >= self.visits.len()
    }

    /// What a visit says of a stream of these that fell so far behind that it ended the visit.
    pub(crate) fn warned_of_overload<'b>(&self, visit: &'b VisitView<'_>) -> Option<&'b str> {
        let mut warnings = visit.visit.warnings.iter().filter(|warning| {
            warning.code == "overloaded"
                && warning.stream().is_none_or(|stream| self.has_stream(stream))
        });
        warnings.next().map(|warning| warning.text.as_str())
    }

    /// Natural logarithms of the visits' rates in requests per second, those of visits in which
    /// nothing completed left out.
    pub fn ln_rates(&self) -> Vec<f64> {
        let rates = self.visits.iter().map(|v| v.requests_per_second);
        rates.filter(|&rate| rate > 0.0).map(f64::ln).collect()
    }

    /// Its load, if all the cell's requests are of one kind and size. A stream beside others has
    /// none: what it does is theirs as well.
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

    /// It as what a finding is about.
    pub fn subject(&self) -> Subject {
        Subject::new(self.cell.index, self.stream, self.name())
    }

    /// Its place in the grid as people say it: `read 4KiB 10`: phase and values in the order of
    /// the axes; of one stream among several `oltp 8KiB · log`.
    pub fn name(&self) -> String {
        let values = self.cell.coordinates.iter().map(|(_, value)| value.as_str());
        let place: Vec<&str> = std::iter::once(self.cell.phase.as_str()).chain(values).collect();
        match self.stream_name() {
            None => place.join(" "),
            Some(stream) => format!("{} · {stream}", place.join(" ")),
        }
    }
}

impl<'a> VisitView<'a> {
    /// The records of its streams.
    pub fn streams(&self) -> &'a [StreamRecord] {
        streams_of(self.visit, self.stream)
    }

    /// The operations that its rate is about: those that move data, all where none does.
    pub fn counted(&self) -> impl Iterator<Item = &'a OpRecord> + use<'a> {
        counted(self.visit, self.stream)
    }

    /// In which milliseconds something of its streams completed.
    pub fn completions(&self) -> Cow<'a, Bitmap> {
        completions(self.visit, self.stream)
    }
}

/// The records of a visit's streams, or of one of them.
pub(crate) fn streams_of(visit: &VisitRecord, stream: Option<usize>) -> &[StreamRecord] {
    match stream {
        None => &visit.streams,
        Some(position) => visit.streams.get(position..=position).unwrap_or_default(),
    }
}

/// The operations that the rate of a visit, or of one of its streams, is about: those that move
/// data, all where none does.
pub fn counted(
    visit: &VisitRecord,
    stream: Option<usize>,
) -> impl Iterator<Item = &OpRecord> + use<'_> {
    let ops = move || streams_of(visit, stream).iter().flat_map(|stream| whole(&stream.ops));
    let has_data = ops().any(|op| is_data(&op.op));
    ops().filter(move |op| !has_data || is_data(&op.op))
}

/// Operations of a stream that are no parts of others: of a stream that commits the commits, since
/// its writes and flushes are parts of them.
pub fn whole(ops: &[OpRecord]) -> impl Iterator<Item = &OpRecord> + Clone {
    let commits = ops.iter().any(|op| op.op == "commit");
    ops.iter().filter(move |op| !commits || op.op == "commit")
}

/// Whether a rate is made of an operation: where there are data, flushes beside them are in none.
///
/// * `has_data`: whether any operation of the visit is one that [`is_data`].
/// * `counts`: of its stream.
pub fn is_rated(has_data: bool, counts: Counts, op: &str) -> bool {
    !has_data || (is_data(op) && counts.takes(op))
}

/// What the rate of a visit, or of one of its streams, is made of, added up: requests or bytes.
///
/// * `counts`: of each stream.
pub fn rated(
    visit: &VisitRecord,
    stream: Option<usize>,
    counts: &[Counts],
    of: fn(&OpRecord) -> u64,
) -> u64 {
    let streams = || {
        let all = visit.streams.iter().enumerate();
        all.filter(move |(k, _)| stream.is_none_or(|wanted| wanted == *k))
    };
    let ops = || streams().flat_map(|(k, stream)| whole(&stream.ops).map(move |op| (k, op)));
    let has_data = ops().any(|(_, op)| is_data(&op.op));
    let takes = |k: usize, op: &OpRecord| {
        is_rated(has_data, counts.get(k).copied().unwrap_or_default(), &op.op)
    };
    let counted = ops().filter(|&(k, op)| takes(k, op)).map(|(_, op)| of(op));
    counted.fold(0u64, u64::saturating_add)
}

/// In which milliseconds something of a visit completed; of one of its streams, in which it did
/// not stand still for 50 ms and more: when all its workers waited for requests.
pub(crate) fn completions(visit: &VisitRecord, stream: Option<usize>) -> Cow<'_, Bitmap> {
    let Some(position) = stream else { return Cow::Borrowed(&visit.completions) };
    let workers = visit.streams.get(position).map(|s| s.workers.as_slice()).unwrap_or_default();
    let bits = visit.completions.bits;
    let mut map = Bitmap::zeros(bits);
    map.bytes.fill(u8::MAX);
    // Bits past the end are none.
    if let (Some(last), rest @ 1..) = (map.bytes.last_mut(), bits % 8) {
        *last = (1 << rest) - 1;
    }
    // Without workers nobody knows.
    let Some((first, others)) = workers.split_first() else { return Cow::Owned(Bitmap::default()) };
    let spans = |gaps: &[record::Gap]| -> Vec<(u64, u64)> {
        gaps.iter().map(|gap| (gap.start_ns, gap.start_ns.saturating_add(gap.length_ns))).collect()
    };
    let all = others.iter().fold(spans(&first.gaps), |all, worker| {
        let own = spans(&worker.gaps);
        let both = |&(start, end): &(u64, u64)| {
            let parts = own.iter().map(move |&(a, b)| (a.max(start), b.min(end)));
            parts.filter(|(a, b)| a < b).collect::<Vec<_>>()
        };
        all.iter().flat_map(both).collect()
    });
    for (start, end) in all {
        let end = end.div_ceil(MILLISECOND).min(bits);
        (start / MILLISECOND..end).for_each(|bit| map.clear(bit));
    }
    Cow::Owned(map)
}

/// More than this share of what was due left over, and the offered rate was not reached: the
/// generator itself calls a stream overloaded that falls behind by as much.
const LEFT_MAX: f64 = 0.02;

/// Requests that a plan of arrivals made due, ramps included, and those of them never issued.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offered {
    pub left: u64,
    pub due: u64,
}

impl Offered {
    pub(crate) fn of(visit: &VisitView<'_>) -> Self {
        visit.streams().iter().fold(Self::default(), |sum, stream| {
            let counts = whole(&stream.ops).filter(|op| is_data(&op.op)).map(|op| op.requests);
            let done = counts.fold(stream.ramp_requests, u64::saturating_add);
            let left = sum.left.saturating_add(stream.backlog);
            Self { left, due: sum.due.saturating_add(done).saturating_add(stream.backlog) }
        })
    }

    /// Whether more was left than a stream that keeps up leaves.
    pub(crate) fn is_much(self) -> bool {
        self.left as f64 > LEFT_MAX * self.due as f64
    }
}

/// The grain of [`Bitmap`]s, ns.
const MILLISECOND: u64 = 1_000_000;

/// A visit as if one of its streams had been all there was: its records, and the milliseconds in
/// which it did not stand still.
pub(crate) fn as_if_alone(visit: &VisitRecord, position: usize) -> VisitRecord {
    VisitRecord {
        streams: streams_of(visit, Some(position)).to_vec(),
        completions: completions(visit, Some(position)).into_owned(),
        ..visit.clone()
    }
}

/// More than this is no time and no count that a visit can have: 146 years in ns. What is
/// negative in a damaged store reads as more.
const SANE_MAX: u64 = 1 << 62;

/// Whether a visit's time and counts can be.
pub fn is_sane(visit: &VisitRecord) -> bool {
    let ops = visit.streams.iter().flat_map(|stream| &stream.ops);
    let mut counts = ops.flat_map(|op| [op.requests, op.bytes]);
    visit.elapsed_ns.max(visit.rated_ns()) <= SANE_MAX && counts.all(|n| n <= SANE_MAX)
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
    let seconds = visit.rated_ns() as f64 / 1e9;
    let by_time = |n: u64| (seconds > 0.0).then(|| n as f64 / seconds);
    let Some(told) = &op.reported else {
        return OpRate { requests: by_time(op.requests_rated()), bytes: by_time(op.bytes_rated()) };
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
fn told<'a>(
    visit: &'a VisitRecord,
    plans: &[StreamPlan],
    stream: Option<usize>,
) -> Option<VisitView<'a>> {
    let ops = || {
        let streams = visit.streams.iter().enumerate();
        let wanted = streams.filter(|(k, _)| stream.is_none_or(|wanted| wanted == *k));
        wanted.flat_map(|(k, stream)| whole(&stream.ops).map(move |op| (op, plans.get(k))))
    };
    let has_data = ops().any(|(op, _)| is_data(&op.op));
    let counted = ops().filter(|(op, _)| !has_data || is_data(&op.op));
    let rates: Vec<OpRate> = counted.map(|(op, plan)| rate_of(op, visit, plan)).collect();
    let sane = |sum: f64| (sum.is_finite() && sum >= 0.0).then_some(sum);
    // Of a sum of which one part is not known nothing is.
    let all: Vec<f64> = rates.iter().map(|rate| rate.requests).collect::<Option<_>>()?;
    if all.is_empty() {
        return None;
    }
    Some(VisitView {
        visit,
        stream,
        requests_per_second: sane(all.iter().sum())?,
        bytes_per_second: sane(rates.iter().filter_map(|rate| rate.bytes).sum())?,
    })
}

fn view<'a>(
    visit: &'a VisitRecord,
    plans: &[StreamPlan],
    stream: Option<usize>,
    counts: &[Counts],
) -> Option<VisitView<'a>> {
    let whole = matches!(visit.end, VisitEnd::Complete | VisitEnd::Hanging)
        && visit.purpose == Purpose::Measure
        && is_sane(visit)
        && stream.is_none_or(|position| position < visit.streams.len());
    if visit.streams.iter().flat_map(|s| &s.ops).any(|op| op.reported.is_some()) {
        return if whole { told(visit, plans, stream) } else { None };
    }
    (whole && visit.elapsed_ns > 0 && visit.rated_ns() > 0).then(|| {
        let sum = |of| rated(visit, stream, counts, of) as f64;
        let seconds = visit.rated_ns() as f64 / 1e9;
        VisitView {
            visit,
            stream,
            requests_per_second: sum(OpRecord::requests_rated) / seconds,
            bytes_per_second: sum(OpRecord::bytes_rated) / seconds,
        }
    })
}
