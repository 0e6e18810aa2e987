//! The same measurement over days or commits: at which run did the level change?

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use stats::history::history as changes_of;

use crate::differ::{Differences, differences};
use crate::places::{Place, Told, places};
use crate::view::View;
use crate::words::{count, iops, list, ratio};

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
    /// Verdict, evidence, what next.
    pub fn sentences(&self) -> Vec<String> {
        let runs = count(self.runs.len() as u64, "run");
        let cells = count(u64::from(self.cells), "cell");
        let shared: Vec<&Change> = self.changes.iter().filter(|c| c.cell.is_none()).collect();
        let alone: Vec<&Change> = self.changes.iter().filter(|c| c.cell.is_some()).collect();
        if self.changes.is_empty() {
            return vec![format!(
                "No change of level over {runs}: neither in the mean over {cells} nor in one of \
                 them. A level needs {RUNS_MIN} runs to be one, so the newest two cannot be told \
                 from chance yet."
            )];
        }
        let mut said: Vec<String> = Vec::new();
        for change in shared {
            said.push(format!("The level over {cells} changed at {}", change.text()));
            said.push(change.cause());
        }
        for change in alone {
            let name = change.cell.as_deref().unwrap_or_default();
            said.push(format!("{name} changed at {}", change.text()));
        }
        said.push(
            "Next: measure once more as before the change and as after it, in turn (`plimsoll \
             compare --live`), before anybody is alarmed: runs apart in time differ in more than \
             is recorded."
                .to_owned(),
        );
        said
    }
}

impl Change {
    fn text(&self) -> String {
        format!(
            "{}, after {}: from {} to {} IOPS, {}, over {} (p {}).",
            self.first_after,
            self.last_before,
            iops(self.before),
            iops(self.after),
            ratio(self.after / self.before, None),
            count(u64::from(self.runs_after), "run"),
            if self.p < 1e-4 { "<0.0001".to_owned() } else { format!("{:.4}", self.p) },
        )
    }

    fn cause(&self) -> String {
        let differences = &self.differences;
        if differences.is_none() {
            return format!(
                "Nothing that is recorded changed between {} and {}.",
                self.last_before, self.first_after
            );
        }
        let names: Vec<String> = differences.factors.iter().map(|f| f.name.clone()).collect();
        format!(
            "Between {} and {} this changed: {}.",
            self.last_before,
            self.first_after,
            list(&names)
        )
    }
}
