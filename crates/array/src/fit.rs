//! Values of parameters from measured cells.

use serde::Serialize;
use stats::Random;
use stats::interval::student_quantile;

use crate::design::ArrayDesign;
use crate::error::{FitError, LoadError};
use crate::load::Load;
use crate::model::rate;
use crate::parameter::ParameterName;
use crate::path::Footprint;

/// Rounds after which nothing is expected any more; ten are usual.
const ROUNDS_MAX: usize = 60;

/// Step of a derivative, as a share of the value: above the rounding of the shortest times.
const STEP: f64 = 0.05;

/// By how much a cell would have to be off, as a share, to weigh as much as a value that is e
/// times what it was: small enough to move no value that the cells tell.
const PULL: f64 = 0.01;

/// Places where the search for a drive begins, beside the drive as it is.
const STARTS: usize = 24;

/// How many times more or less than it was a value is there at most.
const FAR: f64 = 30.0;

/// A vague value without which cells are off by this share more is kept.
const NEEDED: f64 = 0.1;

/// Ends of an interval that are further apart say nothing.
const WIDEST: f64 = 3.0;

/// No time or rate.
const SIZE: &str = "size";

/// Of an interval for each value.
const CONFIDENCE: f64 = 0.95;

/// What was measured under a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Once it was steady.
    pub load: Load,
    /// Requests per second, more than none.
    pub rate: f64,
}

/// A design that agrees with what was measured as well as it can.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedDesign {
    /// With the values that were found.
    pub design: ArrayDesign,
    /// How they were found, in the order that was asked for.
    pub values: Vec<FittedValue>,
    /// Relative error of a cell that is left, as a standard deviation.
    pub error: f64,
}

/// One value, as a multiple of what it was before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedValue {
    /// Which one.
    pub name: ParameterName,
    /// The best.
    pub factor: f64,
    /// Ends of the interval of 95 %: Student's t, for errors of cells that do not depend on each other.
    pub factor_low: f64,
    /// The other end.
    pub factor_high: f64,
}

impl FittedValue {
    /// Whether the cells say little of it.
    pub fn is_vague(&self) -> bool {
        self.factor_high / self.factor_low > WIDEST
    }
}

/// Parameters tried, as logarithms of factors, and how far each cell is off.
struct Trial {
    logs: Vec<f64>,
    design: ArrayDesign,
    errors: Vec<f64>,
}

/// Cells with what does not depend on parameters.
struct Cells<'a> {
    names: &'a [ParameterName],
    start: &'a ArrayDesign,
    cells: Vec<(&'a Measured, Footprint)>,
    /// How strongly each value is held at its start.
    pull: f64,
}

/// Changes `names` of a design until its rates are as near to the measured ones as they get: least
/// squares of the logarithms, Levenberg and Marquardt's way. What is found is near the start, if
/// there are several answers.
///
/// # Errors
///
/// No more cells than parameters; a parameter that is not there or is no quantity; one on which no
/// cell depends, or two that do the same; a load that is not reckoned with.
pub fn fit(
    design: &ArrayDesign,
    names: &[ParameterName],
    measured: &[Measured],
) -> Result<FittedDesign, FitError> {
    search(design, names, measured, 0.0, &[])
}

/// * `pull`: see [`PULL`]; 0 leaves all values free.
/// * `further`: logarithms of factors to begin with, beside the design as it is.
fn search(
    design: &ArrayDesign,
    names: &[ParameterName],
    measured: &[Measured],
    pull: f64,
    further: &[Vec<f64>],
) -> Result<FittedDesign, FitError> {
    if measured.len() <= names.len() || names.is_empty() {
        return Err(FitError::TooFew { cells: measured.len(), parameters: names.len() });
    }
    let mut cells = Vec::new();
    for one in measured {
        one.load.check()?;
        if one.rate.is_nan() || one.rate <= 0.0 {
            let seen = one.rate.to_string();
            return Err(LoadError::Outside { key: "rate", seen, wanted: "more than none" }.into());
        }
        cells.push((one, Footprint::of(design, &one.load)));
    }
    let cells = Cells { names, start: design, cells, pull };
    let mut best: Option<Trial> = None;
    let starts = std::iter::once(vec![0.0; names.len()]).chain(further.iter().cloned());
    for start in starts {
        let found = cells.descend(start)?;
        if best.as_ref().is_none_or(|best| found.squares() < best.squares()) {
            best = Some(found);
        }
    }
    best.ok_or(FitError::Undetermined).and_then(|best| cells.result(best))
}

/// As [`fit`], of the drive's times and rates that the cells tell: first all of them, each held
/// weakly near its start, then without the vaguest one, until none is vague.
///
/// # Errors
///
/// As of [`fit`]; no value of the drive is told.
pub fn fit_drive(design: &ArrayDesign, measured: &[Measured]) -> Result<FittedDesign, FitError> {
    let keys = design.drive_keys().into_iter().filter(|key| *key != SIZE);
    let names = keys.map(|key| ParameterName { part: design.drive.name.clone(), key });
    let mut names: Vec<_> = names.filter(|name| design.scaled(name, 1.0).is_some()).collect();
    // Where another value limits a cell it says nothing of this one, and nothing leads there.
    let mut random = Random::new(1);
    let mut further: Vec<Vec<f64>> = (0..STARTS)
        .map(|_| names.iter().map(|_| (random.unit() * 2.0 - 1.0) * FAR.ln()).collect())
        .collect();
    let mut best: Option<FittedDesign> = None;
    while !names.is_empty() {
        let found = search(design, &names, measured, PULL, &further)?;
        match best {
            // The one that was left out was needed, vague as it is.
            Some(best) if found.error > best.error * (1.0 + NEEDED) => return Ok(best),
            _ => {}
        }
        let width = |one: &FittedValue| one.factor_high / one.factor_low;
        let vaguest = found.values.iter().max_by(|one, other| width(one).total_cmp(&width(other)));
        let Some(vague) = vaguest.filter(|one| one.is_vague()) else { return Ok(found) };
        names.retain(|name| *name != vague.name);
        let left = found.values.iter().filter(|value| value.name != vague.name);
        further = vec![left.map(|value| value.factor.ln()).collect()];
        best = Some(found);
    }
    Err(FitError::Undetermined)
}

impl Trial {
    fn squares(&self) -> f64 {
        dot(&self.errors, &self.errors)
    }
}

impl Cells<'_> {
    /// To the nearest place from where every step leads up.
    fn descend(&self, start: Vec<f64>) -> Result<Trial, FitError> {
        let mut best = self.trial(start)?;
        let mut damping = 1e-3;
        for _ in 0..ROUNDS_MAX {
            let (normal, gradient) = self.normal(&best)?;
            let mut damped = normal;
            for (at, row) in damped.iter_mut().enumerate() {
                row[at] *= 1.0 + damping;
            }
            let inverse = inverse(damped).ok_or(FitError::Undetermined)?;
            let step = inverse.iter().map(|row| -dot(row, &gradient));
            let next =
                self.trial(best.logs.iter().zip(step).map(|(log, step)| log + step).collect())?;
            if next.squares() < best.squares() {
                let is_done = best.squares() - next.squares() < 1e-9 * best.squares();
                best = next;
                damping /= 10.0;
                if is_done {
                    break;
                }
            } else if damping > 1e6 {
                break;
            } else {
                damping *= 10.0;
            }
        }
        Ok(best)
    }

    fn trial(&self, logs: Vec<f64>) -> Result<Trial, FitError> {
        let mut design = self.start.clone();
        for (name, log) in self.names.iter().zip(&logs) {
            // Nothing real is further off than a million times, and steps may be wild at first.
            design = design
                .scaled(name, log.clamp(-14.0, 14.0).exp())
                .ok_or_else(|| FitError::NoQuantity(name.clone()))?;
        }
        let of = |(one, footprint): &(&Measured, Footprint)| {
            (rate(&design, &one.load, footprint) / one.rate).ln()
        };
        let pulled = logs.iter().map(|log| self.pull * log);
        Ok(Trial { errors: self.cells.iter().map(of).chain(pulled).collect(), logs, design })
    }

    /// Of the normal equations: products of the derivatives of all cells, and these times the errors.
    fn normal(&self, at: &Trial) -> Result<(Vec<Vec<f64>>, Vec<f64>), FitError> {
        let mut columns = Vec::new();
        for parameter in 0..self.names.len() {
            let mut logs = at.logs.clone();
            logs[parameter] += STEP;
            let there = self.trial(logs)?;
            let slopes =
                there.errors.iter().zip(&at.errors).map(|(there, here)| (there - here) / STEP);
            columns.push(slopes.collect::<Vec<f64>>());
        }
        let products = columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect());
        let gradient = columns.iter().map(|column| dot(column, &at.errors)).collect();
        Ok((products.collect(), gradient))
    }

    fn result(&self, best: Trial) -> Result<FittedDesign, FitError> {
        let free = (self.cells.len() - self.names.len()) as f64;
        let variance = best.squares() / free;
        let covariance = inverse(self.normal(&best)?.0).ok_or(FitError::Undetermined)?;
        let t =
            student_quantile(f64::midpoint(1.0, CONFIDENCE), free).ok_or(FitError::Undetermined)?;
        let values = self.names.iter().zip(&best.logs).enumerate().map(|(at, (name, log))| {
            let half = t * (variance * covariance[at][at]).sqrt();
            FittedValue {
                name: name.clone(),
                factor: log.exp(),
                factor_low: (log - half).exp(),
                factor_high: (log + half).exp(),
            }
        });
        Ok(FittedDesign { values: values.collect(), error: variance.sqrt(), design: best.design })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gauss and Jordan's, with pivots; `None` for a matrix that has no inverse.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let largest = matrix.iter().flatten().fold(0.0, |most: f64, value| most.max(value.abs()));
    for (at, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|column| if column == at { 1.0 } else { 0.0 }));
    }
    for at in 0..n {
        let pivot = (at..n).max_by(|&a, &b| matrix[a][at].abs().total_cmp(&matrix[b][at].abs()))?;
        matrix.swap(at, pivot);
        let row = matrix[at].clone();
        if row[at].abs() <= 1e-12 * largest {
            return None;
        }
        for (other, target) in matrix.iter_mut().enumerate() {
            let factor = if other == at { 1.0 - 1.0 / row[at] } else { target[at] / row[at] };
            target.iter_mut().zip(&row).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    Some(matrix.into_iter().map(|row| row[n..].to_vec()).collect())
}
