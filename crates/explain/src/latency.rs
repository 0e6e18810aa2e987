//! What a request that arrives at a random moment waits for.
//!
//! Percentiles count requests, and a freeze is few of those; people count moments.

use finding::{Code, Finding, Number, Subject, Value};
use schemars::JsonSchema;
use serde::Serialize;
use stats::{LatencyHistogram, exposure};
use units::Nanos;

use crate::places::Told;
use crate::view::{CellView, Offered, View, VisitView, is_preparation};
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
    /// Its position in the cell; 0 of the cell as a whole.
    #[serde(skip)]
    pub position: u32,
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
        position: cell.stream.unwrap_or(0) as u32,
        exposure: LIMITS.into_iter().filter_map(share).collect(),
        one_in_hundred_ns: exposure::quantile(&all, 0.01).map(Nanos::get),
        overloaded: overloads(cell, asked),
    }
}

impl Latencies {
    /// All cells of a few; of many the three with the longest waits, and those that were overloaded.
    pub fn findings(&self) -> Vec<Finding> {
        const FEW: usize = 6;
        const NAMED: usize = 3;
        // Nobody waits for what only prepares.
        let measured = self.cells.iter().filter(|cell| !is_preparation(&cell.cell_name));
        let cells: Vec<&CellLatency> = measured.collect();
        let is_unknown =
            |cell: &&CellLatency| cell.one_in_hundred_ns.is_none() && cell.overloaded.is_empty();
        if cells.len() > 1 && cells.iter().all(is_unknown) {
            return vec![Finding::new(Code::WaitsUnknownAll)];
        }
        if cells.len() <= FEW {
            return cells.into_iter().flat_map(CellLatency::findings).collect();
        }
        let mut longest = cells.clone();
        longest.sort_by_key(|cell| std::cmp::Reverse(cell.one_in_hundred_ns));
        let least = longest.get(NAMED - 1).and_then(|cell| cell.one_in_hundred_ns);
        let mut left = NAMED;
        let mut found = Vec::new();
        for cell in cells {
            let is_long = left > 0 && cell.one_in_hundred_ns >= least;
            left -= usize::from(is_long);
            if is_long || !cell.overloaded.is_empty() {
                found.extend(cell.findings());
            }
        }
        found.push(Finding::new(Code::WaitsShorter));
        found
    }
}

impl CellLatency {
    /// The chances that are worth a word, and whether more was asked for than could be done.
    pub fn findings(&self) -> Vec<Finding> {
        let of = |code| Finding::new(code).on(self.subject());
        let told: Vec<String> = self
            .exposure
            .iter()
            .filter(|e| e.share >= SHARE_MIN && e.share < 0.9995)
            .map(|e| format!("{} for more than {}", chance(e.share), Nanos::new(e.wait_ns)))
            .collect();
        let chances = (!told.is_empty()).then(|| Value::words(words::list(&told)));
        let mut found = vec![match self.one_in_hundred_ns {
            None => of(Code::WaitsUnknown).with("foreign_bins", self.has_foreign_bins),
            Some(ns) => of(Code::WaitsOfCell)
                .with("one_in_hundred", Number::ns(ns))
                .with_some("chances", chances),
        }];
        if let Some(how) = self.overloaded.first() {
            let visits = self.overloaded.len();
            found.push(
                of(Code::OverloadedCell).with("visits", visits).with("how", Value::words(how)),
            );
        }
        found
    }

    fn subject(&self) -> Subject {
        Subject::new(self.cell, Some(self.position as usize), &self.cell_name)
    }
}

fn chance(share: f64) -> String {
    match share {
        x if x >= 0.000_5 => words::percent(x),
        x => format!("1 in {:.0}", 1.0 / x),
    }
}
