//! The same measurement over days or commits: at which run did the level change?

use std::collections::BTreeMap;

use finding::{Code, Finding, Number, Value};
use schemars::JsonSchema;
use serde::Serialize;
use stats::history::history as changes_of;

use crate::differ::{Differences, differences};
use crate::places::{Place, Told, places};
use crate::view::View;

/// A change with this p or more is none. Over many cells each has its share of it.
const P_MAX: f64 = 0.001;
/// Fewest runs of a level.
const RUNS_MIN: usize = 3;

/// What runs of one suite on one target say in the order of time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// The runs, oldest first.
    pub runs: Vec<String>,
    /// Cells that all of them have.
    pub cells: u32,
    /// Changes of the geometric mean over those cells, and of single cells.
    pub changes: Vec<Change>,
}

/// A change of level between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The cell; null for the mean over all.
    pub cell: Option<String>,
    /// Last run of the level before.
    pub last_before: String,
    /// First run of the new level.
    pub first_after: String,
    /// Runs of the new level, up to the next change.
    pub runs_after: u32,
    /// Requests per second before: geometric mean over the level's runs.
    pub before: f64,
    /// Requests per second after.
    pub after: f64,
    /// Of Welch's t test between the levels.
    pub p: f64,
    /// What is recorded as different between the last run before and the first after.
    pub differences: Differences,
}

/// The history that runs are, if they are one: six or more of one suite on one target.
pub fn history(views: &[&View<'_>]) -> Option<History> {
    let first = views.first()?;
    let same = |view: &&View<'_>| {
        let (a, b) = (&first.run.header, &view.run.header);
        a.suite == b.suite && a.target.given == b.target.given
    };
    if views.len() < 2 * RUNS_MIN || !views.iter().all(same) {
        return None;
    }
    let mut views = views.to_vec();
    views.sort_by_key(|view| view.run.header.started_unix_ns);
    let told: Vec<Told<'_>> = views.iter().map(|view| Told::new(view.run)).collect();
    let places = places(&told.iter().collect::<Vec<_>>());
    let rates: Vec<BTreeMap<(&Place, Option<&str>), f64>> =
        views.iter().zip(&places).map(|(view, places)| means(view, places)).collect();
    let (oldest, of_oldest) = (views.first()?, places.first()?);
    let rows = oldest.grid_rows().filter_map(|row| {
        let key = (of_oldest.get(&row.cell.index)?, row.stream_name());
        rates.iter().all(|run| run.contains_key(&key)).then(|| (key, row.name()))
    });
    let common: Vec<((&Place, Option<&str>), String)> = rows.collect();
    if common.is_empty() {
        return None;
    }
    let series: Vec<Vec<f64>> = common
        .iter()
        .map(|(key, _)| rates.iter().filter_map(|run| run.get(key).copied()).collect())
        .collect();
    let mut changes = Vec::new();
    if let [only] = series.as_slice() {
        changes.extend(found(&views, None, only, P_MAX));
    } else {
        changes.extend(found(&views, None, &overall(&series, views.len()), P_MAX));
        let p_max = P_MAX / series.len() as f64;
        for ((_, name), series) in common.iter().zip(&series) {
            changes.extend(found(&views, Some(name), series, p_max));
        }
    }
    Some(History {
        runs: views.iter().map(|view| view.run.header.id.clone()).collect(),
        cells: u32::try_from(common.len()).unwrap_or(u32::MAX),
        changes,
    })
}

/// By place and stream, the mean of ln rate over its visits.
fn means<'r>(
    view: &'r View<'_>,
    places: &'r BTreeMap<u32, Place>,
) -> BTreeMap<(&'r Place, Option<&'r str>), f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let rows = view.grid_rows().filter_map(|row| {
        let (place, rates) = (places.get(&row.cell.index)?, row.ln_rates());
        (!rates.is_empty()).then(|| ((place, row.stream_name()), mean(&rates)))
    });
    rows.collect()
}

fn overall(series: &[Vec<f64>], runs: usize) -> Vec<f64> {
    let mean = |run: usize| {
        let values = series.iter().filter_map(|values| values.get(run));
        values.sum::<f64>() / series.len() as f64
    };
    (0..runs).map(mean).collect()
}

fn found(views: &[&View<'_>], cell: Option<&str>, series: &[f64], p_max: f64) -> Vec<Change> {
    let changes = changes_of(series, p_max, RUNS_MIN);
    let ends = changes.iter().skip(1).map(|next| next.at).chain([series.len()]);
    let id = |at: usize| views[at].run.header.id.clone();
    let change = |(change, end): (&stats::history::Change, usize)| Change {
        cell: cell.map(str::to_owned),
        last_before: id(change.at - 1),
        first_after: id(change.at),
        runs_after: (end - change.at) as u32,
        before: change.before.exp(),
        after: change.after.exp(),
        p: change.p,
        differences: differences(views[change.at - 1].run, views[change.at].run),
    };
    changes.iter().zip(ends).map(change).collect()
}

impl History {
    /// Each change and what changed with it, the mean over all cells first.
    pub fn findings(&self) -> Vec<Finding> {
        if self.changes.is_empty() {
            let found = Finding::new(Code::HistoryUnchanged).with("runs", self.runs.len());
            return vec![found.with("common", self.cells).with("least", RUNS_MIN)];
        }
        let shared = self.changes.iter().filter(|change| change.cell.is_none());
        let alone = self.changes.iter().filter(|change| change.cell.is_some());
        let shared = shared.flat_map(|change| [change.finding(self.cells), change.cause()]);
        shared.chain(alone.map(|change| change.finding(self.cells))).collect()
    }
}

impl Change {
    fn finding(&self, common: u32) -> Finding {
        let found = match &self.cell {
            Some(cell) => Finding::new(Code::LevelOfCellChanged).with("cell", Value::name(cell)),
            None => Finding::new(Code::LevelChanged).with("common", common),
        };
        self.between(found)
            .with("before", Number::iops(self.before))
            .with("after", Number::iops(self.after))
            .with("ratio", Number::ratio(self.after / self.before))
            .with("runs", self.runs_after)
            .with("p", Number::chance(self.p))
    }

    fn cause(&self) -> Finding {
        if self.differences.is_none() {
            return self.between(Finding::new(Code::LevelChangedAlone));
        }
        let names = self.differences.factors.iter().map(|factor| Value::from(&factor.name));
        let names: Vec<Value> = names.collect();
        self.between(Finding::new(Code::LevelChangedWith)).with("names", names)
    }

    fn between(&self, found: Finding) -> Finding {
        found.with("last_before", &self.last_before).with("first_after", &self.first_after)
    }
}
