//! How far apart the levels are that all cells share, given where they change.
//!
//! `ln rate = cell + level + noise`, fitted to all visits at once: what a change is worth is known only
//! when all changes are. A ratio of all before to all after one of them has the others in it.

use std::collections::{BTreeMap, BTreeSet};

use stats::interval::student_quantile;
use stats::paired::Estimate;

use super::{CONFIDENCE, Point};

/// Fewest visits of a level over the run.
pub(super) const SEGMENT_RUN: usize = 5;
/// Levels closer than this ratio are one.
const RATIO_MIN: f64 = 1.03;
/// So many of the cells must have moved the same way for a change to be the run's.
const SHARED_MIN: f64 = 0.8;
/// As many of a level's cells must have been visited on the level next to it.
const ON_BOTH_SIDES_MIN: f64 = 0.5;
/// And so many cells, or half of those that there are.
const CELLS_MIN: usize = 5;
/// No cell is quieter than this, as a share of its rate: its weight would be without end.
const SIGMA_MIN: f64 = 1e-4;
/// What the other cells say of a cell's noise weighs as much as so many visits of its own.
const VISITS_OF_OTHERS: f64 = 2.0;
/// Beyond so many deviations a visit weighs less.
const HUBER: f64 = 2.0;
/// Weights and levels need a few turns to agree.
const TURNS: usize = 8;
/// What another place may fit worse by, in squares of the noise, and still be possible: 97.5 %, as
/// Hawkins 1977 and Yao 1987 have it.
const PLACE_LOSS: f64 = 8.8;
/// No single visit says more than this of a place.
const VISIT_LOSS_MAX: f64 = 16.0;
/// Places and levels are fitted in turn, so often at most.
const MOVES_MAX: usize = 5;

/// Levels with all cells' rates about them.
pub(super) struct Fit {
    /// First visit of each level but the first.
    cuts: Vec<usize>,
    /// Each as ln, the first 0.
    levels: Vec<f64>,
    /// Of the levels but the first.
    covariance: Vec<Vec<f64>>,
    /// What a deviation is to be taken by for an interval.
    student: f64,
    /// ln rate of each visit less its cell's.
    common: Vec<f64>,
    /// 1 by the square of its cell's noise.
    weight: Vec<f64>,
}

/// How many cells have to be in what is said of all.
pub(super) fn cells_min(cells: usize) -> usize {
    CELLS_MIN.min(cells.div_ceil(2)).max(1)
}

/// Which level each visit is of.
fn segment_of(cuts: &[usize], visits: usize) -> Vec<usize> {
    (0..visits).map(|place| cuts.partition_point(|cut| *cut <= place)).collect()
}

/// A visit next to a change may have had it in it, and is of no level.
fn next_to_cut(cuts: &[usize], place: usize) -> bool {
    cuts.iter().any(|&cut| place == cut || place + 1 == cut)
}

impl Fit {
    /// With these cuts moved to where they fit best, and without those that are then no change of all
    /// cells; `None` where visits do not tell.
    pub(super) fn settled(points: &[Point], mut cuts: Vec<usize>) -> Option<Self> {
        cuts.sort_unstable();
        cuts.dedup();
        loop {
            let mut fit = Self::of(points, &cuts)?;
            for _ in 0..MOVES_MAX {
                let moved = fit.moved();
                if moved == fit.cuts {
                    break;
                }
                fit = Self::of(points, &moved)?;
            }
            let worst = (0..fit.cuts.len())
                .filter(|&at| !fit.is_change(points, at))
                .min_by(|&a, &b| fit.evidence(a).total_cmp(&fit.evidence(b)));
            let Some(worst) = worst else { return Some(fit) };
            cuts.clone_from(&fit.cuts);
            cuts.remove(worst);
        }
    }

    fn of(points: &[Point], cuts: &[usize]) -> Option<Self> {
        let segment = segment_of(cuts, points.len());
        let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, point) in points.iter().enumerate() {
            places.entry(point.cell).or_default().push(place);
        }
        let places: Vec<Vec<usize>> = places.into_values().collect();
        let counts = |place: usize| f64::from(u8::from(!next_to_cut(cuts, place)));
        let mut weight: Vec<f64> = (0..points.len()).map(counts).collect();
        let mut of_noise = vec![1.0; points.len()];
        let mut solved = None;
        for _ in 0..TURNS {
            let (levels, inverse) = solve(points, &segment, &places, &weight, cuts.len() + 1)?;
            let common = common(points, &segment, &places, &weight, &levels);
            let rest: Vec<f64> =
                common.iter().zip(&segment).map(|(own, &of)| own - levels[of]).collect();
            of_noise = noise_weights(&rest, &places, &weight);
            let scale = scale(&rest, &of_noise, &weight, places.len(), cuts.len());
            for (place, weight) in weight.iter_mut().enumerate().filter(|(_, w)| **w > 0.0) {
                let deviations = rest[place].abs() * of_noise[place].sqrt();
                *weight = of_noise[place] * (HUBER / deviations.max(HUBER));
            }
            solved = Some((levels, inverse, common, scale));
        }
        let (levels, inverse, common, (scale, free)) = solved?;
        let covariance =
            inverse.into_iter().map(|row| row.into_iter().map(|x| x * scale).collect()).collect();
        let student = student_quantile(0.5 + CONFIDENCE / 2.0, free)?;
        Some(Self { cuts: cuts.to_vec(), levels, covariance, student, common, weight: of_noise })
    }

    /// First visit of each level but the first.
    pub(super) fn cuts(&self) -> &[usize] {
        &self.cuts
    }

    /// The common level of each visit, as ln.
    pub(super) fn stairs(&self) -> Vec<f64> {
        let segment = segment_of(&self.cuts, self.common.len());
        segment.into_iter().map(|of| self.levels[of]).collect()
    }

    /// ln of the level after a cut by the one before.
    pub(super) fn size(&self, at: usize) -> Estimate {
        let middle = self.levels[at + 1] - self.levels[at];
        let far = self.student * self.deviation(at);
        Estimate { middle, low: middle - far, high: middle + far, confidence: CONFIDENCE }
    }

    fn deviation(&self, at: usize) -> f64 {
        let of = |a: usize, b: usize| match (a.checked_sub(1), b.checked_sub(1)) {
            (Some(a), Some(b)) => self.covariance[a][b],
            _ => 0.0,
        };
        (of(at, at) + of(at + 1, at + 1) - 2.0 * of(at, at + 1)).max(0.0).sqrt()
    }

    fn evidence(&self, at: usize) -> f64 {
        self.size(at).middle.abs() / self.deviation(at).max(SIGMA_MIN)
    }

    /// Whether most cells that are on both sides of a cut moved the same way, and clearly.
    fn is_change(&self, points: &[Point], at: usize) -> bool {
        let size = self.size(at);
        let is_clear = size.low > 0.0 || size.high < 0.0;
        let cells = points.iter().map(|point| point.cell).collect::<BTreeSet<_>>().len();
        is_clear
            && size.middle.abs() >= RATIO_MIN.ln()
            && self.is_shared(points, at, size.middle, cells)
    }

    /// Whether most cells of the level next to a cut that has fewer of them are as far from what they are
    /// elsewhere, taken to the level on the other side of it.
    fn is_shared(&self, points: &[Point], at: usize, size: f64, cells: usize) -> bool {
        let segment = segment_of(&self.cuts, points.len());
        let in_level = |level: usize| {
            let own = points.iter().zip(&segment).filter(|(_, of)| **of == level);
            own.map(|(point, _)| point.cell).collect::<BTreeSet<_>>()
        };
        let (before, after) = (in_level(at), in_level(at + 1));
        let (own, other, sign) = match after.len() <= before.len() {
            true => (at + 1, at, size.signum()),
            false => (at, at + 1, -size.signum()),
        };
        let least = before.len().min(after.len());
        // For each cell: sum and number within, and of the others at the level on the other side.
        let mut sums: BTreeMap<usize, [(f64, f64); 2]> = BTreeMap::new();
        for (point, &level) in points.iter().zip(&segment) {
            let to = if level == own { 0.0 } else { self.levels[other] - self.levels[level] };
            let sum = &mut sums.entry(point.cell).or_default()[usize::from(level != own)];
            *sum = (sum.0 + point.ln_rate + to, sum.1 + 1.0);
        }
        let both = sums.values().filter(|sums| sums.iter().all(|sum| sum.1 > 0.0));
        let moved: Vec<f64> = both.map(|[own, rest]| own.0 / own.1 - rest.0 / rest.1).collect();
        let same = moved.iter().filter(|moved| moved.signum() == sign).count();
        // Phases that came one after the other have few cells on both sides of a moment.
        moved.len() >= cells_min(cells)
            && moved.len() as f64 >= ON_BOTH_SIDES_MIN * least as f64
            && same as f64 >= SHARED_MIN * moved.len() as f64
    }

    /// By how much the change comes later for a place, in squares of the noise, from one level's start
    /// to the next one's end.
    fn losses(&self, at: usize) -> (usize, Vec<f64>) {
        let from = at.checked_sub(1).map_or(0, |before| self.cuts[before]);
        let to = self.cuts.get(at + 1).copied().unwrap_or(self.common.len());
        let mut sum = 0.0;
        let mut losses = vec![0.0];
        for place in from..to {
            let loss = |level: f64| {
                (self.weight[place] * (self.common[place] - level).powi(2)).min(VISIT_LOSS_MAX)
            };
            sum += loss(self.levels[at]) - loss(self.levels[at + 1]);
            losses.push(sum);
        }
        (from, losses)
    }

    /// Each cut where it fits best between its neighbours.
    fn moved(&self) -> Vec<usize> {
        let mut cuts = self.cuts.clone();
        for at in 0..cuts.len() {
            let (from, losses) = self.losses(at);
            let to = from + losses.len() - 1;
            let low = at.checked_sub(1).map_or(0, |before| cuts[before]) + SEGMENT_RUN;
            let high = to.saturating_sub(SEGMENT_RUN);
            let best = (low.max(from)..=high)
                .min_by(|&a, &b| losses[a - from].total_cmp(&losses[b - from]));
            if let Some(best) = best {
                cuts[at] = best;
            }
        }
        cuts
    }

    /// Earliest and latest first visit of the level after a cut, as far as the noise lets tell.
    pub(super) fn bounds(&self, at: usize) -> (usize, usize) {
        let (from, losses) = self.losses(at);
        let cut = self.cuts[at];
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        let possible = |place: &usize| losses[place - from] <= least + PLACE_LOSS;
        let low = (from + 1..cut).find(possible).unwrap_or(cut);
        let high = (cut + 1..from + losses.len() - 1).rfind(possible).unwrap_or(cut);
        (low, high)
    }
}

/// Levels of least weighted squares, each cell about its own mean, and the inverse of their equations'
/// matrix.
fn solve(
    points: &[Point],
    segment: &[usize],
    places: &[Vec<usize>],
    weight: &[f64],
    levels: usize,
) -> Option<(Vec<f64>, Vec<Vec<f64>>)> {
    let mut matrix = vec![vec![0.0; levels]; levels];
    let mut right = vec![0.0; levels];
    for own in places {
        let (mut in_level, mut sums) = (vec![0.0; levels], vec![0.0; levels]);
        for &place in own {
            in_level[segment[place]] += weight[place];
            sums[segment[place]] += weight[place] * points[place].ln_rate;
        }
        let all: f64 = in_level.iter().sum();
        if all <= 0.0 {
            continue;
        }
        let mean = sums.iter().sum::<f64>() / all;
        for a in 0..levels {
            right[a] += sums[a] - in_level[a] * mean;
            matrix[a][a] += in_level[a];
            for b in 0..levels {
                matrix[a][b] -= in_level[a] * in_level[b] / all;
            }
        }
    }
    // The first level is 0.
    let inner: Vec<Vec<f64>> = matrix.iter().skip(1).map(|row| row[1..].to_vec()).collect();
    let inverse = inverse(inner)?;
    let product = |row: &Vec<f64>| row.iter().zip(&right[1..]).map(|(a, b)| a * b).sum();
    let found = std::iter::once(0.0).chain(inverse.iter().map(product)).collect();
    Some((found, inverse))
}

/// `None` where the levels are not connected by cells that were visited on several.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let large = matrix.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
    let unit = |row: usize| (0..n).map(|k| f64::from(u8::from(k == row))).collect::<Vec<f64>>();
    let mut found: Vec<Vec<f64>> = (0..n).map(unit).collect();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        if matrix[pivot][column].abs() <= 1e-9 * large {
            return None;
        }
        matrix.swap(column, pivot);
        found.swap(column, pivot);
        let by = matrix[column][column];
        matrix[column].iter_mut().chain(&mut found[column]).for_each(|x| *x /= by);
        let (row, own) = (matrix[column].clone(), found[column].clone());
        for other in (0..n).filter(|&other| other != column) {
            let times = matrix[other][column];
            matrix[other].iter_mut().zip(&row).for_each(|(x, y)| *x -= times * y);
            found[other].iter_mut().zip(&own).for_each(|(x, y)| *x -= times * y);
        }
    }
    Some(found)
}

/// ln rates less those of their cells.
fn common(
    points: &[Point],
    segment: &[usize],
    places: &[Vec<usize>],
    weight: &[f64],
    levels: &[f64],
) -> Vec<f64> {
    let mut found = vec![0.0; points.len()];
    for own in places {
        let (mut sum, mut all) = (0.0, 0.0);
        for &place in own {
            sum += weight[place] * (points[place].ln_rate - levels[segment[place]]);
            all += weight[place];
        }
        // Of visits next to a change only.
        let mean = if all > 0.0 {
            sum / all
        } else {
            let each = own.iter().map(|&k| points[k].ln_rate - levels[segment[k]]);
            each.sum::<f64>() / own.len().max(1) as f64
        };
        own.iter().for_each(|&place| found[place] = points[place].ln_rate - mean);
    }
    found
}

/// For each visit 1 by the square of its cell's noise.
fn noise_weights(rest: &[f64], places: &[Vec<usize>], weight: &[f64]) -> Vec<f64> {
    let counted = |own: &Vec<usize>| own.iter().filter(|&&k| weight[k] > 0.0).count();
    let most = |own: &Vec<usize>| own.iter().map(|&k| weight[k]).fold(0.0, f64::max);
    // Of one that lies far out as much as it weighs.
    let squares = |own: &Vec<usize>| {
        let most = most(own).max(f64::MIN_POSITIVE);
        own.iter().map(|&k| weight[k] / most * rest[k].powi(2)).sum::<f64>()
    };
    let several = places.iter().filter(|own| counted(own) > 1);
    let mut variances: Vec<f64> =
        several.map(|own| squares(own) / (counted(own) as f64 - 1.0)).collect();
    variances.sort_unstable_by(f64::total_cmp);
    let usual = variances.get(variances.len() / 2).copied().unwrap_or(0.0).max(SIGMA_MIN.powi(2));
    let mut found = vec![1.0 / usual; rest.len()];
    for own in places {
        let worth = (counted(own) as f64 - 1.0).max(0.0) + VISITS_OF_OTHERS;
        let weight = worth / (squares(own) + VISITS_OF_OTHERS * usual);
        own.iter().for_each(|&place| found[place] = weight);
    }
    found
}

/// What the weights leave of the noise, and how many visits tell it.
fn scale(rest: &[f64], of_noise: &[f64], weight: &[f64], cells: usize, cuts: usize) -> (f64, f64) {
    let counted = weight.iter().filter(|weight| **weight > 0.0).count();
    let free = counted.saturating_sub(cells + cuts).max(1) as f64;
    let each = rest.iter().zip(of_noise).zip(weight).filter(|(_, weight)| **weight > 0.0);
    let squares: f64 = each
        .map(|((rest, by), _)| {
            let deviations = rest.abs() * by.sqrt();
            deviations * deviations.min(HUBER)
        })
        .sum();
    ((squares / free).max(1.0), free)
}
