//! Where a history changes its level: one value per run, over days or commits.
//!
//! A history is short and its values come from runs apart in time, so unlike the seconds of a run
//! they are taken as independent. Splits are found by the energy distance between what lies on both
//! sides, which needs no shape of the noise; whether a split stands is asked of a t test
//! between the two levels that it parts.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A split is kept for a second look up to this multiple of the wanted p: what looks weak
/// beside a third level is often strong once that is parted off.
const WEAK: f64 = 10.0;
/// Of more runs than this there are so many ways to part them that each must be less likely: by the
/// cube of how many times as many there are.
const RUNS: f64 = 24.0;
/// No history is quieter than this, in its own unit: equal values must not make a test certain.
const SIGMA_MIN: f64 = 1e-4;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// First value of the new level.
    pub at: usize,
    /// Mean of the level before.
    pub before: f64,
    /// Mean of the level from here on.
    pub after: f64,
    /// Of Welch's t test between the two.
    pub p: f64,
}

/// Changes of level in a history, in order.
///
/// * `values`: one per run, in order of time; logarithms of rates.
/// * `p_max`: a change with this p or more is none; 0.001. Of more than 24 runs less is asked.
/// * `segment_min`: fewest values of a level; 3. At least 2 are needed.
///
/// Empty when a value is not finite or there are fewer than two levels' worth.
///
/// Method: energy distances (Matteson and James 2014, E-divisive) with the significance test and the
/// second pass of Fleming and others 2023 (Hunter).
pub fn history(values: &[f64], p_max: f64, segment_min: usize) -> Vec<Change> {
    let segment_min = segment_min.max(2);
    if values.len() < 2 * segment_min || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let p_max = p_max * (RUNS / values.len() as f64).powi(3).min(1.0);
    let distances = Distances::new(values);
    let mut cuts = Vec::new();
    split(values, &distances, (0, values.len()), p_max * WEAK, segment_min, &mut cuts);
    cuts.sort_unstable();
    loop {
        let changes = changes(values, &cuts);
        let weakest = changes.iter().enumerate().max_by(|a, b| a.1.p.total_cmp(&b.1.p));
        match weakest {
            Some((index, change)) if change.p >= p_max => _ = cuts.remove(index),
            _ => return changes,
        }
    }
}

/// Cuts a part where its two sides are furthest apart, and each side again.
fn split(
    values: &[f64],
    distances: &Distances,
    (start, end): (usize, usize),
    p_max: f64,
    segment_min: usize,
    cuts: &mut Vec<usize>,
) {
    if end - start < 2 * segment_min {
        return;
    }
    // A third level must not blur the second: what is compared may end before the part does.
    let candidates = (start + segment_min..=end - segment_min).flat_map(|cut| {
        (cut + segment_min..=end)
            .map(move |until| (cut, until, distances.between(start, cut, until)))
    });
    let Some((cut, until, distance)) = candidates.max_by(|a, b| a.2.total_cmp(&b.2)) else {
        return;
    };
    if distance <= 0.0 || welch(&values[start..cut], &values[cut..until]) >= p_max {
        return;
    }
    cuts.push(cut);
    split(values, distances, (start, cut), p_max, segment_min, cuts);
    split(values, distances, (cut, end), p_max, segment_min, cuts);
}

fn changes(values: &[f64], cuts: &[usize]) -> Vec<Change> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().skip(1).chain([values.len()]);
    let parted = starts.zip(cuts).zip(ends);
    let change = |((start, &at), end): ((usize, &usize), usize)| {
        let (left, right) = (&values[start..at], &values[at..end]);
        Change { at, before: mean(left), after: mean(right), p: welch(left, right) }
    };
    parted.map(change).collect()
}

/// Sums of `|x_i - x_j|` over rectangles of pairs.
struct Distances {
    length: usize,
    sums: Vec<f64>,
}

impl Distances {
    fn new(values: &[f64]) -> Self {
        let length = values.len() + 1;
        let mut sums = vec![0.0; length * length];
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                let at = |i: usize, j: usize| i * length + j;
                sums[at(i + 1, j + 1)] =
                    (a - b).abs() + sums[at(i, j + 1)] + sums[at(i + 1, j)] - sums[at(i, j)];
            }
        }
        Self { length, sums }
    }

    fn sum(&self, rows: (usize, usize), columns: (usize, usize)) -> f64 {
        let at = |i: usize, j: usize| self.sums[i * self.length + j];
        at(rows.1, columns.1) - at(rows.0, columns.1) - at(rows.1, columns.0)
            + at(rows.0, columns.0)
    }

    /// Energy distance between `start..cut` and `cut..end`, by their sizes.
    fn between(&self, start: usize, cut: usize, end: usize) -> f64 {
        let (left, right) = ((start, cut), (cut, end));
        let (m, n) = ((cut - start) as f64, (end - cut) as f64);
        let across = 2.0 * self.sum(left, right) / (m * n);
        // The sums have each pair twice.
        let within = |part, k: f64| self.sum(part, part) / (k * (k - 1.0));
        (across - within(left, m) - within(right, n)) * m * n / (m + n)
    }
}

/// p of Welch's two-sided t test; 1 where it cannot be made.
fn welch(a: &[f64], b: &[f64]) -> f64 {
    let (error_a, error_b) = (squared_error(a), squared_error(b));
    let error = error_a + error_b;
    let part = |error: f64, n: usize| error * error / (n as f64 - 1.0);
    let df = error * error / (part(error_a, a.len()) + part(error_b, b.len()));
    let t = (mean(a) - mean(b)).abs() / error.sqrt();
    match StudentsT::new(0.0, 1.0, df) {
        Ok(distribution) if t.is_finite() => 2.0 * distribution.sf(t),
        _ => 1.0,
    }
}

fn squared_error(values: &[f64]) -> f64 {
    let (n, middle) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (squares / (n - 1.0)).max(SIGMA_MIN * SIGMA_MIN) / n
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn noisy(levels: &[(f64, usize)], sigma: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let level = levels.iter().flat_map(|&(level, n)| std::iter::repeat_n(level, n));
        level.map(|level| level + sigma * random.normal()).collect()
    }

    fn cuts(values: &[f64]) -> Vec<usize> {
        history(values, 0.001, 3).iter().map(|change| change.at).collect()
    }

    #[test]
    fn levels_are_parted_where_they_change() {
        let values = noisy(&[(11.0, 8), (10.8, 9), (11.1, 7)], 0.02, 1);
        assert_eq!(cuts(&values), [8, 17]);
        let found = history(&values, 0.001, 3);
        assert!((found[0].before - 11.0).abs() < 0.02 && (found[0].after - 10.8).abs() < 0.02);
        assert!(found.iter().all(|change| change.p < 0.001));
    }

    #[test]
    fn one_odd_run_and_equal_runs_are_no_change() {
        let mut values = noisy(&[(11.0, 20)], 0.01, 2);
        values[9] = 10.5;
        assert_eq!(cuts(&values), [0; 0]);
        assert_eq!(cuts(&[7.0; 30]), [0; 0]);
        assert_eq!(cuts(&[7.0, 7.0, 7.0, 8.0, 8.0, 8.0]), [3]);
    }

    #[test]
    fn the_distance_is_that_of_its_definition() {
        let values = noisy(&[(1.0, 4), (2.0, 5)], 0.3, 3);
        let (left, right) = values.split_at(4);
        let sum = |a: &[f64], b: &[f64]| -> f64 {
            a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum()
        };
        let wanted =
            (2.0 * sum(left, right) / 20.0 - sum(left, left) / 12.0 - sum(right, right) / 20.0)
                * 20.0
                / 9.0;
        let found = Distances::new(&values).between(0, 4, 9);
        assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
    }

    #[test]
    fn what_is_too_short_or_not_finite_has_none() {
        for values in [vec![], vec![1.0; 5], vec![f64::NAN; 9], vec![1.0, f64::INFINITY]] {
            assert_eq!(history(&values, 0.001, 3), []);
        }
        assert_eq!(history(&[1.0, 1.0, 5.0, 5.0], 0.001, 0).len(), 1);
    }
}
