//! Predictions beside what was measured.

use array::{ArrayDesign, Component, Fill, Load, LoadError, Measured, Model};
use explain::view::{CellView, View};
use finding::{Code, Finding, Number, Question, Section, Value};
use serde::Serialize;

use crate::failure::FitFailure;
use crate::left_out;
use crate::load::load;

/// A cell that is further off is named.
const MISSED: f64 = 0.2;

/// A design beside runs on an array that was built.
#[derive(Clone, Debug, Serialize)]
pub struct PredictionCheck {
    schema: &'static str,
    /// Its name.
    pub array: String,
    /// What was measured.
    pub runs: Vec<String>,
    /// In the order of the runs.
    pub cells: Vec<ComparedCell>,
    /// What half of the cells are off by at most, as a share of what was measured.
    pub median_error: f64,
    /// What nine of ten cells are off by at most.
    pub p90_error: f64,
    /// What there is to say.
    pub answer: Section,
}

/// A cell that was measured and predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCell {
    /// Run and cell.
    pub cell: String,
    /// What it asks for.
    pub load: Load,
    /// Requests per second: the geometric mean of its visits.
    pub measured: f64,
    /// Requests per second.
    pub predicted: f64,
    /// Predicted over measured, less 1.
    pub error: f64,
    /// The part that limits it, by the prediction.
    pub limited_by: Component,
}

/// A cell of a run, as the model takes it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Run and cell.
    pub name: String,
    pub measured: Measured,
}

/// Predicts the cells of runs and says how far off that is.
///
/// * `name`: the array's, as it was named.
/// * `cache`: whether there was room in the controllers' write caches.
///
/// # Errors
///
/// No cell can be reckoned with.
pub fn compare(
    name: &str,
    design: ArrayDesign,
    views: &[View<'_>],
    cache: Fill,
) -> Result<PredictionCheck, FitFailure> {
    let runs = ids(views);
    let (cells, left_out) = seen(views, cache)?;
    let cells = compared(&Model::new(design), cells)?;
    let [median_error, p90_error] = errors(&cells);
    let mut findings = vec![
        Finding::new(Code::PredictCompared)
            .with("array", Value::words(name))
            .with("measured", cells.len())
            .with("runs", Value::words(finding::numbers::list(&runs)))
            .with("median", Number::share(median_error))
            .with("most", Number::share(p90_error)),
    ];
    findings.extend(missed(&cells));
    findings.extend(left_out);
    let answer = Section { question: Question::Answer, findings };
    let array = name.to_owned();
    let schema = "plimsoll.prediction-check/1";
    Ok(PredictionCheck { schema, array, runs, cells, median_error, p90_error, answer })
}

pub(crate) fn ids(views: &[View<'_>]) -> Vec<String> {
    views.iter().map(|view| view.run.header.id.clone()).collect()
}

/// The cells of runs that can be reckoned with, and what is left out.
pub(crate) fn seen(
    views: &[View<'_>],
    cache: Fill,
) -> Result<(Vec<Seen>, Option<Finding>), FitFailure> {
    let (mut cells, mut reasons) = (Vec::new(), Vec::new());
    for view in views {
        for row in view.grid() {
            match seen_in(view, row, cache) {
                Ok(cell) => cells.push(cell),
                Err(why) => reasons.push(why),
            }
        }
    }
    let of = cells.len() + reasons.len();
    match (cells.is_empty(), reasons.first()) {
        (false, _) => Ok((cells, left_out(reasons, of))),
        (true, Some(why)) => Err(FitFailure::NoCells(why.clone())),
        (true, None) => Err(FitFailure::NoCells("they have none".to_owned())),
    }
}

fn seen_in(view: &View<'_>, row: &CellView<'_>, cache: Fill) -> Result<Seen, String> {
    let suite = view.suite().ok_or("the suite of the run cannot be read")?;
    let cell = suite.cells().nth(row.cell.index as usize).ok_or("the suite has no such cell")?;
    let load = load(suite, cell, cache)?;
    let rates = row.ln_rates();
    let rate = (rates.iter().sum::<f64>() / rates.len() as f64).exp();
    let name = format!("{} {}", view.run.header.id, row.name());
    match rate.is_finite() {
        true => Ok(Seen { name, measured: Measured { load, rate } }),
        false => Err("nothing was completed".to_owned()),
    }
}

pub(crate) fn compared(model: &Model, seen: Vec<Seen>) -> Result<Vec<ComparedCell>, LoadError> {
    let one = |Seen { name: cell, measured: Measured { load, rate } }| {
        let answer = model.answer(&load)?;
        let (predicted, limited_by) = (answer.rate, answer.binding);
        let error = predicted / rate - 1.0;
        Ok(ComparedCell { cell, load, measured: rate, predicted, error, limited_by })
    };
    seen.into_iter().map(one).collect()
}

/// Median and 90th percentile of what cells are off by, either way.
pub(crate) fn errors(cells: &[ComparedCell]) -> [f64; 2] {
    let mut off: Vec<f64> = cells.iter().map(|cell| cell.error.abs()).collect();
    off.sort_by(f64::total_cmp);
    [0.5, 0.9].map(|share| {
        let at = (share * off.len() as f64).ceil() as usize;
        off.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
    })
}

/// The cells that are far off, by the furthest.
pub(crate) fn missed(cells: &[ComparedCell]) -> Option<Finding> {
    let far = cells.iter().filter(|cell| cell.error.abs() > MISSED);
    let worst = far.clone().max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))?;
    Some(
        Finding::new(Code::PredictMissed)
            .with("count", far.count())
            .with("of", cells.len())
            .with("worst", Value::name(&worst.cell))
            .with("seen", Number::iops(worst.measured))
            .with("predicted", Number::iops(worst.predicted)),
    )
}
