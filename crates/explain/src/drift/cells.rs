//! Levels of single cells over their visits.
//!
//! A cell has few visits, and a change that lasts for one or two of them is no level that could be told:
//! a mean over visits of both is a rate that never was. So a level is what most of its visits agree
//! on, and what is of no level is passed over.

use std::collections::BTreeMap;

use stats::changepoint::{Changes, Noise, RATIO_MIN, changes_given, noise, unseen};
use stats::interval::student_quantile;
use stats::outlier::median;
use stats::trend::least_squares;

use super::{CellDrift, Point, Step, by_cell, is_at_break};
use crate::ends::ends;
use crate::view::View;

/// Fewest visits of a level over a cell's visits.
const SEGMENT_VISITS: usize = 3;
/// Fewest visits that agree on a level, and which share of those it is made of.
const AGREE_MIN: usize = 2;
const AGREE_SHARE: f64 = 2.0 / 3.0;
/// What the other cells say of a cell's noise weighs as much as so many visits of its own.
const VISITS_OF_OTHERS: f64 = 2.0;
/// Of cells without a change one in a hundred is said to have one.
const STEP_CHANCE: f64 = 0.01;

/// Cells whose visits are on different levels.
///
/// * `points`: of the rows.
/// * `hourly`: by how much all cells of a row's phase drift, as ln for each hour, where they do.
pub(super) fn cell_drifts(
    view: &View<'_>,
    points: &[Point],
    hourly: &dyn Fn(usize) -> f64,
) -> Vec<CellDrift> {
    let cells = by_cell(points);
    let Some(usual) = usual(&cells) else { return Vec::new() };
    let mut found = Vec::new();
    for (place, own) in &cells {
        let Some(cell) = view.rows.get(*place).filter(|row| ends(row).is_none()) else { continue };
        let steps = steps(own, usual, hourly(*place));
        if !steps.is_empty() {
            let stream = cell.stream_name().map(str::to_owned);
            let position = cell.stream.unwrap_or(0) as u32;
            let (cell, cell_name) = (cell.cell.index, cell.name());
            found.push(CellDrift { cell, cell_name, stream, position, steps });
        }
    }
    found
}

/// A cell's noise is taken from all cells as well: the usual difference between one visit and the next.
fn usual(cells: &BTreeMap<usize, Vec<Point>>) -> Option<f64> {
    let pairs = cells.values().flat_map(|own| own.windows(2));
    let mut differences: Vec<f64> =
        pairs.map(|pair| (pair[1].ln_rate - pair[0].ln_rate).abs()).collect();
    differences.sort_unstable_by(f64::total_cmp);
    let middle = differences.get(differences.len() / 2)?;
    Some(1.4826 * middle / std::f64::consts::SQRT_2)
}

/// * `hourly`: what drifts with all cells is no change of one: what is left without it has to show it too.
fn steps(own: &[Point], usual: f64, hourly: f64) -> Vec<Step> {
    let ln_rates: Vec<f64> = own.iter().map(|point| point.ln_rate).collect();
    let hours: Vec<f64> = own.iter().map(|point| point.hours).collect();
    let of = |ln_rates: &[f64]| levels(ln_rates, &hours, usual).unwrap_or_default();
    let found = of(&ln_rates);
    if found.len() < 2 {
        return Vec::new();
    }
    if hourly != 0.0 {
        let rest: Vec<f64> = ln_rates.iter().zip(&hours).map(|(y, x)| y - hourly * x).collect();
        if of(&rest).len() < 2 {
            return Vec::new();
        }
    }
    found.windows(2).filter_map(|pair| step(own, &pair[0], &pair[1])).collect()
}

/// A level and the visits that are on it.
#[derive(Clone, Debug)]
struct Level {
    visits: Vec<usize>,
    mean: f64,
    /// A visit may lie so far from it.
    limit: f64,
}

impl Level {
    /// What most of these visits agree on; `None` where they do not.
    fn of(
        ln_rates: &[f64],
        visits: impl Iterator<Item = usize> + Clone,
        limit: f64,
    ) -> Option<Self> {
        let all = visits.clone().count();
        let middle = median(&visits.clone().map(|k| ln_rates[k]).collect::<Vec<_>>())?;
        let visits: Vec<usize> =
            visits.filter(|&k| (ln_rates[k] - middle).abs() <= limit).collect();
        let enough = visits.len() >= AGREE_MIN && visits.len() as f64 >= AGREE_SHARE * all as f64;
        enough.then(|| {
            let mean = visits.iter().map(|&k| ln_rates[k]).sum::<f64>() / visits.len() as f64;
            Self { visits, mean, limit }
        })
    }

    fn squares(&self, ln_rates: &[f64]) -> f64 {
        self.visits.iter().map(|&k| (ln_rates[k] - self.mean).powi(2)).sum()
    }

    fn has(&self, ln_rate: f64) -> bool {
        (ln_rate - self.mean).abs() <= self.limit
    }
}

/// Levels in the order of time, each clear of the next; `None` where visits are too few.
fn levels(ln_rates: &[f64], hours: &[f64], usual: f64) -> Option<Vec<Level>> {
    let sigma = noise(ln_rates)?.sigma.max(usual);
    let found =
        changes_given(ln_rates, SEGMENT_VISITS, Noise { sigma, rho: 0.0 })?.settled(ln_rates);
    if found.segments.len() < 2 || is_slow(&found, ln_rates, hours) {
        return Some(Vec::new());
    }
    let limit = unseen(found.quiet(ln_rates).noise.sigma);
    let parts = found.segments.iter();
    let mut levels: Vec<Level> =
        parts.filter_map(|part| Level::of(ln_rates, part.start..part.end, limit)).collect();
    // The two that are least apart first: what is taken for one then tells more of the noise.
    while let Some(at) = same(&levels, ln_rates, usual) {
        let after = levels.remove(at + 1);
        let both: Vec<usize> = levels[at].visits.iter().chain(&after.visits).copied().collect();
        let mean = both.iter().map(|&k| ln_rates[k]).sum::<f64>() / both.len().max(1) as f64;
        levels[at] = Level { visits: both, mean, limit };
    }
    Some(levels)
}

/// Neighbours that are not clearly apart, the least apart.
fn same(levels: &[Level], ln_rates: &[f64], usual: f64) -> Option<usize> {
    let visits: usize = levels.iter().map(|level| level.visits.len()).sum();
    let free = visits.saturating_sub(levels.len()) as f64 + VISITS_OF_OTHERS;
    let squares: f64 = levels.iter().map(|level| level.squares(ln_rates)).sum();
    let sigma = ((squares + VISITS_OF_OTHERS * usual * usual) / free).sqrt();
    // The best of all places is looked at.
    let places = ln_rates.len().saturating_sub(1).max(1) as f64;
    let limit = student_quantile(1.0 - STEP_CHANCE / 2.0 / places, free)?;
    let apart = |at: usize| {
        let (a, b) = (&levels[at], &levels[at + 1]);
        let each = 1.0 / a.visits.len() as f64 + 1.0 / b.visits.len() as f64;
        let least = (limit * sigma * each.sqrt()).max(RATIO_MIN.ln());
        (a.mean - b.mean).abs() / least
    };
    let pairs = 0..levels.len().saturating_sub(1);
    let least = pairs.min_by(|&a, &b| apart(a).total_cmp(&apart(b)))?;
    (apart(least) < 1.0).then_some(least)
}

/// Whether a straight line says as much with less: a slow drift is no stair.
fn is_slow(found: &Changes, ln_rates: &[f64], hours: &[f64]) -> bool {
    let Some(line) = least_squares(hours, ln_rates) else { return false };
    let pairs = hours.iter().zip(ln_rates);
    let rest: f64 = pairs.map(|(x, y)| (y - line.at(*x)).powi(2)).sum();
    rest + found.noise.penalty(ln_rates.len()) <= found.cost(ln_rates)
}

fn step(own: &[Point], before: &Level, after: &Level) -> Option<Step> {
    // Where both are close together the last visits of one may be of the other.
    let sure =
        |of: &Level, other: &Level, k: usize| of.has(own[k].ln_rate) && !other.has(own[k].ln_rate);
    let (first, end) = (*before.visits.first()?, *after.visits.last()?);
    let begun = *after.visits.first()?;
    let last = before.visits.iter().rfind(|&&k| k < begun && sure(before, after, k));
    let next = after.visits.iter().find(|&&k| sure(after, before, k));
    let (last, next) = (*last.unwrap_or(&first), *next.unwrap_or(&end));
    let start = |point: &Point| (point.hours * 3.6e12) as u64;
    // So much of a visit may be of the other level without lying apart from its own.
    let share = (before.limit / (after.mean - before.mean).abs()).min(1.0);
    let of = |point: &Point| (share * point.elapsed_ns as f64) as u64;
    let at_ns = start(&own[next]).saturating_add(of(&own[next]));
    let ended = start(&own[last]).saturating_add(own[last].elapsed_ns);
    let from_ns = ended.saturating_sub(of(&own[last])).min(at_ns);
    let at_break = is_at_break(own, begun, 1);
    let (rate_before, rate_after) = (before.mean.exp(), after.mean.exp());
    Some(Step {
        from_ns,
        at_ns,
        before: rate_before,
        after: rate_after,
        ratio_low: None,
        ratio_high: None,
        at_break,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ln_rates: &[f64], hourly: f64) -> Vec<(f64, f64)> {
        let point = |(order, ln_rate): (u32, &f64)| Point {
            cell: 0,
            order,
            elapsed_ns: 1_000_000_000,
            hours: f64::from(order) / 100.0,
            gib: 0.0,
            ln_rate: *ln_rate,
            part: 0,
        };
        let points: Vec<Point> = (0..).zip(ln_rates).map(point).collect();
        let found = steps(&points, 0.02, hourly);
        found.iter().map(|step| (step.before.ln(), step.after.ln())).collect()
    }

    #[test]
    fn a_level_is_what_its_visits_agree_on() {
        // One visit in a fall that all cells had: no level, and no change to itself.
        assert_eq!(of(&[9.0, 9.01, 8.99, 7.95, 9.0, 9.01], 0.0), []);
        assert_eq!(of(&[9.0, 9.01, 7.95, 9.0, 8.99, 9.0, 9.01, 8.98], 0.0), []);
        assert_eq!(of(&[9.0, 9.01, 8.99, 9.0, 9.01, 7.95], 0.0), []);
        let [(before, after)] = of(&[9.0, 9.01, 8.99, 8.5, 7.95, 7.96, 7.94], 0.0)[..] else {
            panic!("a change that stays");
        };
        assert!((before - 9.0).abs() < 0.02 && (after - 7.95).abs() < 0.02, "{before} {after}");
        let both = of(&[9.0, 9.01, 8.99, 9.0, 8.0, 7.98, 8.01, 9.0, 9.01, 8.99], 0.0);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both.iter().all(|(a, b)| (a - b).abs() > 0.95), "{both:?}");
    }

    #[test]
    fn an_even_drift_is_no_level() {
        let drift: Vec<f64> = (0..12).map(|k| 9.0 + 0.05 * f64::from(k)).collect();
        assert_eq!(of(&drift, 0.0), []);
        // Six of a drift may look like two levels; all cells together know better.
        let stairs = [9.0, 9.01, 9.02, 9.13, 9.14, 9.15];
        assert_eq!(of(&stairs, 3.0), []);
    }
}
