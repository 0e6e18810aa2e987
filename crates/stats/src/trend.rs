//! How fast something rises or falls.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::student_quantile;
use crate::paired::Estimate;

/// A straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// In units of y by units of x.
    pub slope: f64,
    /// y where x is 0.
    pub intercept: f64,
}

impl Line {
    /// y at x.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// The line of least squares through `(x[i], y[i])`.
///
/// `None` with fewer than two points, lengths that differ, a value that is not finite, or all x
/// alike.
pub fn least_squares(x: &[f64], y: &[f64]) -> Option<Line> {
    check(x, y, 2)?;
    let n = x.len() as f64;
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let squares: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let products: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = products / squares;
    let line = Line { slope, intercept: mean_y - slope * mean_x };
    (squares > 0.0 && line.intercept.is_finite()).then_some(line)
}

/// Slope of the line of least squares with its interval by Student's t.
///
/// * `x`, `y`: of one length; points independent of each other, about the line by normal chance of
///   one spread. Of few points it knows more than [`theil_sen`], and one outlier makes it useless,
///   which its width shows.
/// * `None` as in [`least_squares`], and with fewer than three points.
pub fn student_slope(x: &[f64], y: &[f64], confidence: f64) -> Option<Estimate> {
    check(x, y, 3)?;
    let line = least_squares(x, y)?;
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let spread: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
    let rest: f64 = x.iter().zip(y).map(|(&x, y)| (y - line.at(x)).powi(2)).sum();
    let error = (rest / (n - 2.0) / spread).sqrt();
    let half = student_quantile(1.0 - (1.0 - confidence) / 2.0, n - 2.0)? * error;
    let (middle, low, high) = (line.slope, line.slope - half, line.slope + half);
    half.is_finite().then_some(Estimate { middle, low, high, confidence })
}

/// Up to so many points the interval of [`theil_sen`] is exact.
const EXACT_POINTS_MAX: usize = 40;

/// Slope of `y` on `x` as the median of the slopes of all pairs of points: up to 29 % of the
/// points may be anything.
///
/// * `x`, `y`: of one length; points independent of each other and of one spread. Of a
///   correlated series take means of blocks long enough to be independent.
/// * `confidence`: wanted level, `0.95` for instance.
/// * `None` as in [`least_squares`], and with so few points that no interval has the level
///   (fewer than 5 at 0.95).
///
/// The interval is Kendall's test turned over: exact up to 40 points, normal beyond. With ties
/// in y it is at least as wide as it has to be. Takes time and memory by the square of the
/// points.
///
/// Method: Theil 1950, Sen 1968.
pub fn theil_sen(x: &[f64], y: &[f64], confidence: f64) -> Option<Estimate> {
    check(x, y, 2)?;
    let mut slopes = Vec::with_capacity(x.len() * (x.len() - 1) / 2);
    for (i, (&x1, &y1)) in x.iter().zip(y).enumerate() {
        for (&x2, &y2) in x.iter().zip(y).skip(i + 1) {
            let slope = (y2 - y1) / (x2 - x1);
            if slope.is_finite() {
                slopes.push(slope);
            }
        }
    }
    // Pairs at one x say nothing, and the level below counts on all of them.
    let pairs = x.len() * (x.len() - 1) / 2;
    if slopes.is_empty() {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let (limit, confidence) = kendall_limit(x.len(), confidence)?;
    let cut = limit.saturating_sub((pairs - slopes.len()).div_ceil(2));
    let last = slopes.len() - 1;
    let middle = f64::midpoint(slopes[last / 2], slopes[last.div_ceil(2)]);
    let cut = cut.min(last / 2);
    Some(Estimate { middle, low: slopes[cut], high: slopes[last - cut], confidence })
}

/// How many of the smallest and of the largest slopes the interval leaves out, and its level.
fn kendall_limit(points: usize, confidence: f64) -> Option<(usize, f64)> {
    if !(0.0..1.0).contains(&confidence) {
        return None;
    }
    let tail_max = (1.0 - confidence) / 2.0 + 1e-12;
    if points > EXACT_POINTS_MAX {
        let n = points as f64;
        let z = Normal::standard().inverse_cdf(1.0 - tail_max);
        let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        let pairs = n * (n - 1.0) / 2.0;
        return Some((((pairs - z * deviation) / 2.0).max(0.0) as usize, confidence));
    }
    let mut reached = None;
    let mut below = 0.0;
    for (inversions, probability) in inversions(points).into_iter().enumerate() {
        below += probability;
        if below > tail_max {
            break;
        }
        reached = Some((inversions, 1.0 - 2.0 * below));
    }
    reached
}

/// `probabilities[k]`: of `k` pairs in the wrong order in a random permutation of `points`.
fn inversions(points: usize) -> Vec<f64> {
    let mut probabilities = vec![1.0];
    for placed in 1..points {
        let mut next = vec![0.0; probabilities.len() + placed];
        for (k, p) in probabilities.iter().enumerate() {
            for more in 0..=placed {
                next[k + more] += p / (placed + 1) as f64;
            }
        }
        probabilities = next;
    }
    probabilities
}

fn check(x: &[f64], y: &[f64], points_min: usize) -> Option<()> {
    let fits = x.len() == y.len() && x.len() >= points_min;
    (fits && x.iter().chain(y).all(|value| value.is_finite())).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn the_slope_of_few_points_has_students_interval() {
        // Residuals -0.1, 0.2, -0.1 about a slope of 2: s^2 = 0.06, spread 2, t(1) = 12.706.
        let found = student_slope(&[0.0, 1.0, 2.0], &[-0.1, 2.2, 3.9], 0.95).unwrap();
        assert!((found.middle - 2.0).abs() < 1e-12, "{found:?}");
        assert!((found.high - found.middle - 12.706 * (0.03f64).sqrt()).abs() < 1e-3, "{found:?}");
        assert!((found.middle - found.low - (found.high - found.middle)).abs() < 1e-9);
        assert_eq!(student_slope(&[0.0, 1.0], &[0.0, 1.0], 0.95), None);
        assert_eq!(student_slope(&[1.0; 4], &[0.0, 1.0, 2.0, 3.0], 0.95), None);
        let mut inside = 0;
        for seed in 0..2000 {
            let mut random = crate::Random::new(seed);
            let y: Vec<f64> = (0..5).map(|k| 0.3 * f64::from(k) + random.normal()).collect();
            let x = [0.0, 1.0, 2.0, 3.0, 4.0];
            let found = student_slope(&x, &y, 0.95).unwrap();
            inside += u32::from(found.low <= 0.3 && 0.3 <= found.high);
        }
        assert!((1870..=1930).contains(&inside), "{inside} of 2000");
    }

    #[test]
    fn a_line_is_found() {
        let x = [0.0, 1.0, 2.0, 5.0];
        let y: Vec<f64> = x.iter().map(|x| 3.0 - 2.0 * x).collect();
        let line = least_squares(&x, &y).unwrap();
        assert!((line.slope + 2.0).abs() < 1e-12 && (line.at(10.0) + 17.0).abs() < 1e-9);
        assert_eq!(least_squares(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(least_squares(&[1.0], &[1.0]), None);
        assert_eq!(least_squares(&[0.0, 1.0], &[f64::NAN, 1.0]), None);
        assert_eq!(least_squares(&[0.0, f64::MAX], &[0.0, f64::MAX]).map(|l| l.slope > 2.0), None);
    }

    #[test]
    fn a_fifth_of_wild_points_does_not_move_theil_sen() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let y: Vec<f64> =
            x.iter().map(|x| if x % 5.0 == 2.0 { 1e6 } else { 0.5 * x + 0.01 * x.sin() }).collect();
        let slope = theil_sen(&x, &y, 0.95).unwrap();
        assert!((slope.middle - 0.5).abs() < 0.01, "{slope:?}");
        assert!(slope.low < 0.5 && 0.5 < slope.high);
    }

    #[test]
    fn kendalls_table_is_reproduced() {
        // Largest S with P(|S| >= S) <= 5 %: 10 at n = 5 (1.67 %), 23 at n = 10 (4.66 %);
        // S = pairs - 2 * inversions. Kendall, Rank Correlation Methods, appendix table 1.
        let (limit, level) = kendall_limit(5, 0.95).unwrap();
        assert_eq!(10 - 2 * limit, 10);
        assert!((1.0 - level - 0.0167).abs() < 1e-3);
        let (limit, level) = kendall_limit(10, 0.95).unwrap();
        assert_eq!(45 - 2 * limit, 23);
        assert!((1.0 - level - 0.0466).abs() < 1e-3, "{level}");
        assert_eq!(kendall_limit(4, 0.95), None);
        // The normal form joins on.
        let pairs = |n: usize| n * (n - 1) / 2;
        let exact = kendall_limit(40, 0.95).unwrap().0 as f64 / pairs(40) as f64;
        let normal = kendall_limit(41, 0.95).unwrap().0 as f64 / pairs(41) as f64;
        assert!((exact - normal).abs() < 0.01, "{exact} {normal}");
    }

    #[test]
    fn the_interval_covers_the_slope_as_often_as_it_says() {
        let seed = 3;
        let mut random = Random::new(seed);
        for points in [6, 12, 60] {
            let x: Vec<f64> = (0..points).map(f64::from).collect();
            let mut covered = 0;
            for _ in 0..1_000 {
                let y: Vec<f64> = x.iter().map(|x| 0.1 * x + random.normal()).collect();
                let slope = theil_sen(&x, &y, 0.95).unwrap();
                covered += usize::from(slope.low <= 0.1 && 0.1 <= slope.high);
            }
            assert!(covered >= 930, "{points} points, seed {seed}: {covered} of 1000");
        }
    }

    #[test]
    fn points_at_one_x_do_not_crash() {
        assert_eq!(theil_sen(&[1.0; 8], &[2.0; 8], 0.95), None);
        let x = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        assert!(theil_sen(&x, &[0.0, 0.1, 0.0, 1.0, 1.1, 1.0], 0.95).is_some());
        assert_eq!(theil_sen(&[0.0, 1.0], &[0.0, 1.0], 1.0), None);
    }
}
