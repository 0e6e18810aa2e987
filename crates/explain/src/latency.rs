//! What a request that arrives at a random moment waits for.
//!
//! Percentiles count requests, and a freeze is few of those; people count moments.

use schemars::JsonSchema;
use serde::Serialize;
use stats::{LatencyHistogram, exposure};
use units::Nanos;

use crate::places::Told;
use crate::view::{CellView, Offered, View, VisitView};
use crate::words;

/// Waits that are asked about.
const LIMITS: [Nanos; 4] =
    [Nanos::millis(1), Nanos::millis(10), Nanos::millis(100), Nanos::secs(1)];
/// Below this nobody plans for it.
const SHARE_MIN: f64 = 1e-6;

/// Waits of all cells.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latencies {
    /// Cells with at least one visit, in the suite's order; of a cell of several streams one
    /// element for each stream.
    pub cells: Vec<CellLatency>,
}

/// Waits of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellLatency {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it, and its stream if it has several.
    pub cell_name: String,
    /// The stream, of a cell that has several.
    pub stream: Option<String>,
    /// The chance of waiting longer, for 1 ms, 10 ms, 100 ms and 1 s.
    pub exposure: Vec<Exposure>,
    /// Wait that one random moment in a hundred exceeds.
    pub one_in_hundred_ns: Option<u64>,
    /// More was offered than was taken: what the visits' warnings say of it, or else what was left.
    pub overloaded: Vec<String>,
    /// Another tool printed bins of its own.
    #[serde(skip)]
    pub has_foreign_bins: bool,
}

/// The chance of a long wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Exposure {
    /// Longer than this.
    pub wait_ns: u64,
    /// Probability, in `0.0..=1.0`, for a request that arrives at a random moment where a worker
    /// is busy.
    pub share: f64,
}

/// Waits of a run's cells.
pub fn latencies(view: &View<'_>) -> Latencies {
    let told = Told::new(view.run);
    let cells = view.rows.iter().filter(|cell| !cell.visits.is_empty());
    Latencies { cells: cells.map(|cell| cell_latency(cell, &told)).collect() }
}

/// Visits in which more was offered than was taken, a text for each.
pub(crate) fn overloads(cell: &CellView<'_>, told: &Told<'_>) -> Vec<String> {
    let overloaded = cell.is_overloaded();
    let visits = cell.visits.iter().filter_map(|visit| {
        let own = cell.warned_of_overload(visit).map(str::to_owned);
        let offered = Offered::of(visit);
        own.or_else(|| {
            (overloaded && offered.is_much()).then(|| not_taken(cell, told, visit, offered))
        })
    });
    visits.collect()
}

/// The rate offered, if the plan tells it, against what was taken.
fn not_taken(
    cell: &CellView<'_>,
    told: &Told<'_>,
    visit: &VisitView<'_>,
    offered: Offered,
) -> String {
    let left = words::percent(offered.left as f64 / offered.due.max(1) as f64);
    let taken = visit.requests_per_second;
    let late = format!("{left} of what was due had not been issued by the visit's end");
    match offered_rate(cell, told) {
        Some(rate) => {
            format!("{rate:.0} requests a second were offered, {taken:.0} came back; {late}")
        }
        None => format!("{taken:.0} requests a second came back; {late}"),
    }
}

/// Requests a second that the plan offers to all streams of the row together.
fn offered_rate(cell: &CellView<'_>, told: &Told<'_>) -> Option<f64> {
    let streams = &told.asked(cell.cell)?.streams;
    let own = streams.iter().filter(|stream| cell.has_stream(&stream.name));
    // A stream without a rate of its own takes what it gets.
    let rates = own.map(|stream| stream.value("rate")?.parse::<f64>().ok());
    rates.sum::<Option<f64>>().filter(|rate| *rate > 0.0)
}

fn cell_latency(cell: &CellView<'_>, asked: &Told<'_>) -> CellLatency {
    let mut all = LatencyHistogram::new();
    for op in cell.visits.iter().flat_map(|visit| visit.counted()) {
        all.merge(&op.latency);
    }
    let share = |wait: Nanos| {
        exposure::from_histogram(&all, wait).map(|share| Exposure { wait_ns: wait.get(), share })
    };
    let ops = || cell.visits.iter().flat_map(|visit| visit.streams()).flat_map(|s| &s.ops);
    let told = || ops().filter_map(|op| op.reported.as_ref());
    CellLatency {
        has_foreign_bins: told().any(|told| !told.latency.buckets.is_empty()),
        cell: cell.cell.index,
        cell_name: cell.name(),
        stream: cell.stream_name().map(str::to_owned),
        exposure: LIMITS.into_iter().filter_map(share).collect(),
        one_in_hundred_ns: exposure::quantile(&all, 0.01).map(Nanos::get),
        overloaded: overloads(cell, asked),
    }
}

impl Latencies {
    /// One or two sentences a cell.
    pub fn sentences(&self) -> Vec<String> {
        self.cells.iter().flat_map(CellLatency::sentences).collect()
    }
}

impl CellLatency {
    /// The chances that are worth a word, and whether more was asked for than could be done.
    pub fn sentences(&self) -> Vec<String> {
        let name = &self.cell_name;
        let mut lines = Vec::new();
        let told: Vec<String> = self
            .exposure
            .iter()
            .filter(|e| e.share >= SHARE_MIN && e.share < 0.9995)
            .map(|e| format!("{} for more than {}", chance(e.share), Nanos::new(e.wait_ns)))
            .collect();
        lines.push(match (self.one_in_hundred_ns, told.is_empty()) {
            (None, _) if self.has_foreign_bins => format!(
                "`{name}`: how long requests wait is unknown: it is worked out from our own \
                 histograms, not from bins that another tool printed, which `export --format hlog` \
                 writes."
            ),
            (None, _) => format!(
                "`{name}`: how long requests wait is unknown: there is no histogram of latencies."
            ),
            (Some(ns), true) => format!(
                "`{name}`: of requests arriving at random moments, 1 % wait longer than {}.",
                Nanos::new(ns)
            ),
            (Some(ns), false) => format!(
                "`{name}`: of requests arriving at random moments, 1 % wait longer than {}; {}.",
                Nanos::new(ns),
                words::list(&told)
            ),
        });
        if let Some(text) = self.overloaded.first() {
            lines.push(format!(
                "`{name}` was overloaded in {}: {text}. Its latencies are those of a queue that \
                 grows; measure at 50, 70 and 90 % of the rate it reached.",
                words::count(self.overloaded.len() as u64, "visit")
            ));
        }
        lines
    }
}

fn chance(share: f64) -> String {
    match share {
        x if x >= 0.000_5 => words::percent(x),
        x => format!("1 in {:.0}", 1.0 / x),
    }
}
