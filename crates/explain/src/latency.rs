//! What a request that arrives at a random moment waits for.
//!
//! Percentiles count requests, and a freeze is few of those; people count moments.

use schemars::JsonSchema;
use serde::Serialize;
use stats::{LatencyHistogram, exposure};
use units::Nanos;

use crate::view::{CellView, View};
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
    /// More was asked for than came back, as the visits' warnings say it.
    pub overloaded: Vec<String>,
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
    let cells = view.rows.iter().filter(|cell| !cell.visits.is_empty());
    Latencies { cells: cells.map(cell_latency).collect() }
}

fn cell_latency(cell: &CellView<'_>) -> CellLatency {
    let mut all = LatencyHistogram::new();
    for op in cell.visits.iter().flat_map(|visit| visit.counted()) {
        all.merge(&op.latency);
    }
    let share = |wait: Nanos| {
        exposure::from_histogram(&all, wait).map(|share| Exposure { wait_ns: wait.get(), share })
    };
    let warnings = cell.visits.iter().flat_map(|visit| &visit.visit.warnings);
    CellLatency {
        cell: cell.cell.index,
        cell_name: cell.name(),
        stream: cell.stream_name().map(str::to_owned),
        exposure: LIMITS.into_iter().filter_map(share).collect(),
        one_in_hundred_ns: exposure::quantile(&all, 0.01).map(Nanos::get),
        overloaded: warnings
            .filter(|warning| warning.code == "overloaded")
            .filter(|warning| warning.stream().is_none_or(|stream| cell.has_stream(stream)))
            .map(|warning| warning.text.clone())
            .collect(),
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
