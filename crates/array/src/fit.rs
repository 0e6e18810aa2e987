//! Values of parameters from measured cells.

use serde::Serialize;
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
    let cells = Cells { names, start: design, cells };
    let mut best = cells.trial(vec![0.0; names.len()])?;
    let mut damping = 1e-3;
    for _ in 0..ROUNDS_MAX {
        let (normal, gradient) = cells.normal(&best)?;
        let mut damped = normal;
        for (at, row) in damped.iter_mut().enumerate() {
            row[at] *= 1.0 + damping;
        }
        let inverse = inverse(damped).ok_or(FitError::Undetermined)?;
        let step = inverse.iter().map(|row| -dot(row, &gradient));
        let next =
            cells.trial(best.logs.iter().zip(step).map(|(log, step)| log + step).collect())?;
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
    cells.result(best)
}

impl Trial {
    fn squares(&self) -> f64 {
        dot(&self.errors, &self.errors)
    }
}

impl Cells<'_> {
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
        Ok(Trial { errors: self.cells.iter().map(of).collect(), logs, design })
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
