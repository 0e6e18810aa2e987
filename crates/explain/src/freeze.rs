//! Times in which a device did nothing, and whose they were.
//!
//! A gap of ten seconds is one request a worker: no percentile shows it, and a mean only shrinks.
//! So gaps are looked for where they can be seen, in the map of milliseconds with a completion.
//! They are facts with a start, a length and evidence, not outliers to be left out.

mod detect;
mod source;
#[cfg(test)]
pub(crate) mod tests;
mod text;

use record::{OpRecord, RunHeader, TargetKind, VisitEnd, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::histogram::bucket_bounds;
use stats::poisson;

use self::detect::Usual;
pub use self::detect::{DeviceGap, FREEZE, HICCUP, STALL, Tier};
pub use self::source::Source;
use crate::closing::closing_ns;
use crate::ends::is_few;
use crate::view::{CellView, View, VisitView};

const CONFIDENCE: f64 = 0.95;
const HOUR_NS: f64 = 3.6e12;

/// What stood still in a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Freezes {
    /// Over all visits that count.
    pub all: Tally,
    /// Cells with at least one visit, in the suite's order.
    pub cells: Vec<CellFreezes>,
    /// Gaps of the whole device, in the order of the visits and of time.
    pub events: Vec<Freeze>,
    /// Times in which some workers stood still and others went on.
    pub stuck: Vec<StuckWorkers>,
    /// Visits of cells with few requests for each one in flight, in which only freezes are looked
    /// for: those without one are in no count above.
    pub few_requests_visits: u32,
    /// Visits whose records cannot tell: they are in no count above.
    pub unknown_visits: u32,
    /// Visits whose workers are still in the kernel with a request that never came back: what they
    /// had measured is lost, so they are in no count above.
    pub lost_visits: u32,
}

/// A gap of the whole device.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Freeze {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it.
    pub cell_name: String,
    /// Which visit of the cell, from 0.
    pub repeat: u32,
    /// Which visit of the run, from 0.
    pub order: u32,
    /// How bad it was.
    pub tier: Tier,
    /// Since the start of the visit's measured part; to 1 ms.
    pub start_ns: u64,
    /// Since the start of the run.
    pub start_in_run_ns: u64,
    /// Wall clock, ns since 1970; by a simulated device's own clock, which began with the run,
    /// where `simulated_clock` says so.
    pub start_unix_ns: i64,
    /// Times are those of a simulated device: nothing else happened at this moment of the day.
    pub simulated_clock: bool,
    /// How long; to 1 ms.
    pub length_ns: u64,
    /// It had not ended when the visit did: it was longer.
    pub at_least: bool,
    /// Workers it held up.
    pub workers: u32,
    /// Of so many; 0 when the record does not say.
    pub workers_all: u32,
    /// One request was in flight, since the cell has no more at a time or the others of a burst were back:
    /// nobody can tell whether the device stood still or that request was late.
    pub one_at_a_time: bool,
    /// Since the end of the last visit that wrote, fill and ramps included; 0 in a visit that
    /// writes, `None` when nothing had been written.
    pub since_write_ns: Option<u64>,
    /// Its visit read, too.
    #[serde(skip)]
    pub reads: bool,
    /// Whose it was.
    pub source: Source,
    /// Why that is said.
    pub evidence: String,
}

/// Some workers stood still, the device did not.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StuckWorkers {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it.
    pub cell_name: String,
    /// Which visit of the run, from 0.
    pub order: u32,
    /// Since the start of the visit's measured part.
    pub start_ns: u64,
    /// How long, from the first worker's stop to the last one's going on.
    pub length_ns: u64,
    /// How many.
    pub workers: u32,
    /// Of so many.
    pub workers_all: u32,
}

/// What stood still in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellFreezes {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it.
    pub cell_name: String,
    /// The figure that tables have of it, requests per second: the geometric mean over all its visits
    /// in which anything completed. Null where none has any.
    pub mean: Option<f64>,
    /// Over its visits.
    pub tally: Tally,
}

/// What standing still cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Tally {
    /// Visits looked at.
    pub visits: u32,
    /// Their measured time.
    pub watched_ns: u64,
    /// Of it, time in which nothing but flushes at a visit's end was under way: nobody could
    /// have seen the load stand still.
    pub closing_ns: u64,
    /// Completed in it: what tables count, so no flush beside data.
    pub requests: u64,
    /// Gaps of 100 ms to 1 s.
    pub hiccups: u32,
    /// Gaps of 1 s to 5 s.
    pub stalls: u32,
    /// Gaps of 5 s and more.
    pub freezes: u32,
    /// How many of all these were the host's own.
    pub of_host: u32,
    /// Time in gaps, the usual time between completions taken off.
    pub lost_ns: u64,
    /// Requests per second of all the measured time; of a cell all its visits', also those in which
    /// few requests let nobody look for gaps.
    pub rate: f64,
    /// Requests per second of that time less what was lost.
    pub rate_between: f64,
    /// `lost_ns` by that time.
    pub lost_share: f64,
    /// Gaps of any length in an hour of measuring, if they come independently.
    pub per_hour: Option<Frequency>,
}

/// How often, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Frequency {
    /// As counted.
    pub rate: f64,
    /// At least.
    pub low: f64,
    /// At most. When nothing was counted this is all that is known.
    pub high: f64,
}

impl Tally {
    /// Gaps of any length.
    pub fn events(&self) -> u32 {
        self.hiccups + self.stalls + self.freezes
    }

    /// Measured time in which a load was under way.
    pub fn load_ns(&self) -> u64 {
        self.watched_ns.saturating_sub(self.closing_ns)
    }

    fn add(&mut self, visit: &VisitView<'_>, gaps: &[DeviceGap], usual_gap_ns: u64) {
        self.visits += 1;
        self.watched_ns = self.watched_ns.saturating_add(visit.visit.rated_ns());
        self.closing_ns = self.closing_ns.saturating_add(closing_ns(visit.visit));
        let rated = visit.counted().map(OpRecord::requests_rated);
        self.requests = rated.fold(self.requests, u64::saturating_add);
        for gap in gaps {
            match gap.tier {
                Tier::Hiccup => self.hiccups += 1,
                Tier::Stall => self.stalls += 1,
                Tier::Freeze => self.freezes += 1,
            }
            let lost = gap.length_ns.saturating_sub(usual_gap_ns);
            self.lost_ns = self.lost_ns.saturating_add(lost);
        }
    }

    /// * `requests`, `measured_ns`: those of all visits that the rates are of.
    fn with_rates(mut self, requests: u64, measured_ns: u64) -> Self {
        let per_second = |ns: u64| match ns {
            0 => 0.0,
            ns => requests as f64 / (ns as f64 / 1e9),
        };
        self.rate = per_second(measured_ns);
        self.rate_between = per_second(measured_ns.saturating_sub(self.lost_ns));
        if measured_ns > 0 {
            self.lost_share = self.lost_ns as f64 / measured_ns as f64;
        }
        let hours = self.load_ns() as f64 / HOUR_NS;
        self.per_hour = poisson::rate(u64::from(self.events()), hours, CONFIDENCE)
            .map(|rate| Frequency { rate: rate.rate, low: rate.low, high: rate.high });
        self
    }
}

/// Gaps of the whole device in a visit that are out of the ordinary in it: [`HICCUP`] and more,
/// and ten times its median time between completions and its 99th percentile of latency. In
/// order of time; none when the record cannot tell.
pub fn gaps(visit: &VisitRecord) -> Vec<DeviceGap> {
    detect::device_gaps(visit, &Usual::of(visit)).unwrap_or_default()
}

/// As [`gaps`], at once where no request was out for so long.
pub(crate) fn gaps_if_any(visit: &VisitRecord) -> Vec<DeviceGap> {
    let ops = visit.streams.iter().flat_map(|stream| &stream.ops);
    let longest = ops.map(|op| op.latency_ns_max).max().unwrap_or(0);
    let none = longest < HICCUP.get() && visit.end != VisitEnd::Hanging;
    if none { Vec::new() } else { gaps(visit) }
}

/// For how long the whole device stood still in the time that a visit is rated by.
pub(crate) fn stood_ns(visit: &VisitRecord) -> u64 {
    let rated = visit.rated_ns();
    let within = |gap: &DeviceGap| gap.end_ns().min(rated).saturating_sub(gap.start_ns);
    gaps_if_any(visit).iter().map(within).fold(0, u64::saturating_add)
}

/// Whether the whole device paused in a visit, for however short: then the visit's rate says
/// less about the cell than its place in time does, and the cell may not be ended early.
pub fn stalled(visit: &VisitRecord) -> bool {
    !gaps(visit).is_empty()
}

/// What stood still in a run, where, for how long, and whose it was.
pub fn freezes(view: &View<'_>) -> Freezes {
    let mut found = Freezes {
        all: Tally::default(),
        cells: Vec::new(),
        events: Vec::new(),
        stuck: Vec::new(),
        few_requests_visits: 0,
        unknown_visits: 0,
        lost_visits: lost_visits(view),
    };
    for cell in view.cells.iter().filter(|cell| !cell.visits.is_empty()) {
        found.look_at(view, cell);
    }
    found.events.sort_by_key(|event| (event.order, event.start_ns));
    found.stuck.sort_by_key(|event| (event.order, event.start_ns));
    found.all = found.all.with_rates(found.all.requests, found.all.watched_ns);
    found
}

/// Visits that hung and of which nothing was measured: no cell has them.
fn lost_visits(view: &View<'_>) -> u32 {
    let visits = view.run.visits.iter();
    let lost = visits.filter(|visit| visit.end == VisitEnd::Hanging && visit.elapsed_ns == 0);
    u32::try_from(lost.count()).unwrap_or(u32::MAX)
}

impl Freezes {
    fn look_at(&mut self, view: &View<'_>, cell: &CellView<'_>) {
        let usuals: Vec<Usual> = cell.visits.iter().map(|v| Usual::of(v.visit)).collect();
        // Of few requests many gaps are long, and not the device's doing: only what programs give
        // up over is told, and what is far beyond everything else in the cell.
        let few = is_few(cell);
        let told = |gap: &DeviceGap| match gap.tier {
            Tier::Freeze => true,
            Tier::Stall => !few || is_beyond(cell, gap),
            Tier::Hiccup => !few,
        };
        let of_visit = |(visit, usual): (&VisitView<'_>, &Usual)| {
            let gaps = detect::device_gaps(visit.visit, usual)?;
            Some(gaps.into_iter().filter(told).collect())
        };
        let gaps: Vec<Option<Vec<DeviceGap>>> =
            cell.visits.iter().zip(&usuals).map(of_visit).collect();
        let quiet = cell.visits.iter().zip(&gaps);
        let quiet = quiet.filter(|(_, gaps)| gaps.as_ref().is_some_and(Vec::is_empty));
        let share = source::Usual::of(quiet.map(|(visit, _)| visit.visit));
        let mut tally = Tally::default();
        for ((visit, usual), gaps) in cell.visits.iter().zip(&usuals).zip(&gaps) {
            let Some(gaps) = gaps else {
                self.unknown_visits += 1;
                continue;
            };
            if few && gaps.is_empty() {
                self.few_requests_visits += 1;
                continue;
            }
            tally.add(visit, gaps, usual.gap_ns);
            self.all.add(visit, gaps, usual.gap_ns);
            for &gap in gaps {
                let event = event(view, cell, visit.visit, gap, gaps, share);
                let of_host = u32::from(event.source == Source::Host);
                tally.of_host += of_host;
                self.all.of_host += of_host;
                self.events.push(event);
            }
            if !few {
                self.stuck.extend(stuck(cell, visit.visit, usual, gaps));
            }
        }
        if tally.visits > 0 {
            let (index, cell_name) = (cell.cell.index, cell.name());
            let mut all = Tally::default();
            let visits = cell.visits.iter().zip(&gaps).filter(|(_, gaps)| gaps.is_some());
            visits.for_each(|(visit, _)| all.add(visit, &[], 0));
            let tally = tally.with_rates(all.requests, all.watched_ns);
            let logs = cell.ln_rates();
            let mean =
                (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp());
            self.cells.push(CellFreezes { cell: index, cell_name, mean, tally });
        }
    }
}

/// A gap is beyond its cell from so many times on what took longest there.
const TIMES_LONGEST: u64 = 5;

/// Whether a gap is much longer than everything in its cell that it did not hold up: then it is a
/// standstill, however few requests there are.
fn is_beyond(cell: &CellView<'_>, gap: &DeviceGap) -> bool {
    let ops = || cell.visits.iter().flat_map(|visit| visit.counted());
    let below = |op: &OpRecord| {
        let ends = op.latency.sparse().map(|(bucket, _)| bucket_bounds(bucket as usize).1);
        ends.filter(|&end| end < gap.length_ns).max().unwrap_or(0)
    };
    let longest = ops().map(below).max().unwrap_or(0);
    // Half of the visits or more may not be such that their usual request takes that long.
    let mut means: Vec<u64> = cell.visits.iter().map(mean_latency_ns).collect();
    means.sort_unstable();
    let usual = means.get(means.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    let longest = longest.max(usual);
    longest > 0 && gap.length_ns >= longest.saturating_mul(TIMES_LONGEST)
}

fn mean_latency_ns(visit: &VisitView<'_>) -> u64 {
    let ops = || visit.counted();
    let requests: u128 = ops().map(|op| u128::from(op.requests)).sum();
    let sum: u128 = ops().map(|op| op.latency_ns_sum).sum();
    u64::try_from(sum.checked_div(requests).unwrap_or(0)).unwrap_or(u64::MAX)
}

fn event(
    view: &View<'_>,
    cell: &CellView<'_>,
    visit: &VisitRecord,
    gap: DeviceGap,
    all: &[DeviceGap],
    share: source::Usual,
) -> Freeze {
    let header = &view.run.header;
    let host = source::Host { kind: header.target.kind, processors: header.machine.processors };
    let (source, evidence) = source::source(visit, gap, all, host, share);
    let (workers, workers_all) = detect::affected(visit, gap);
    let start_unix_ns = visit.started_unix_ns.saturating_add_unsigned(gap.start_ns);
    let since_start = start_unix_ns.saturating_sub(view.run.header.started_unix_ns);
    Freeze {
        cell: cell.cell.index,
        cell_name: cell.name(),
        repeat: visit.repeat,
        order: visit.order,
        tier: gap.tier,
        start_ns: gap.start_ns,
        start_in_run_ns: u64::try_from(since_start).unwrap_or(0),
        start_unix_ns,
        simulated_clock: has_own_clock(header),
        length_ns: gap.length_ns,
        at_least: gap.open_end && visit.end == VisitEnd::Hanging,
        workers: u32::try_from(workers).unwrap_or(u32::MAX),
        workers_all: u32::try_from(workers_all).unwrap_or(u32::MAX),
        one_at_a_time: crate::ends::slots(cell) == 1.0 || is_of_one(visit, gap),
        since_write_ns: since_write(view, visit, start_unix_ns),
        reads: moved(visit, "read"),
        source,
        evidence,
    }
}

/// Whether a single request was in flight while a gap lasted, however many there may be.
pub(crate) fn is_of_one(visit: &VisitRecord, gap: DeviceGap) -> bool {
    detect::held(visit, gap) == Some(1)
}

/// How long before a moment of a visit the run last wrote.
fn since_write(view: &View<'_>, visit: &VisitRecord, unix_ns: i64) -> Option<u64> {
    let visits = view.run.visits.iter();
    let written = visits.filter(|at| at.order <= visit.order && moved(at, "write"));
    let last = written.max_by_key(|at| at.order)?;
    let end = last.started_unix_ns.saturating_add_unsigned(last.elapsed_ns);
    Some(u64::try_from(unix_ns.saturating_sub(end)).unwrap_or(0))
}

fn moved(visit: &VisitRecord, name: &str) -> bool {
    let mut ops = visit.streams.iter().flat_map(|stream| &stream.ops);
    ops.any(|op| op.op == name && op.bytes > 0)
}

/// Whether times within the run are those of a simulated device with a clock of its own. The null
/// twin and the memory twin keep ours.
pub(crate) fn has_own_clock(header: &RunHeader) -> bool {
    let given = header.target.given.as_str();
    let ours = given.starts_with("null:") || given.starts_with("memory:");
    header.target.kind == TargetKind::Twin && !ours
}

fn stuck<'a>(
    cell: &'a CellView<'_>,
    visit: &'a VisitRecord,
    usual: &Usual,
    gaps: &[DeviceGap],
) -> impl Iterator<Item = StuckWorkers> + 'a {
    let workers_all: usize = visit.streams.iter().map(|stream| stream.workers.len()).sum();
    detect::stuck(visit, usual, gaps).into_iter().map(move |event| StuckWorkers {
        cell: cell.cell.index,
        cell_name: cell.name(),
        order: visit.order,
        start_ns: event.start_ns,
        length_ns: event.end_ns.saturating_sub(event.start_ns),
        workers: event.workers,
        workers_all: u32::try_from(workers_all).unwrap_or(u32::MAX),
    })
}
