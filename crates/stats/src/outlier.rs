//! Odd repeats: against the noise of a grid, or alone.
//!
//! A flag is a reason to look and to repeat, never to drop: what is odd in a storage benchmark
//! is often the finding. Textbook cuts (3.5 robust sigmas, 3 sigmas) are for large samples: of
//! five clean values they flag one set in five, or none ever. The cuts here were calibrated
//! for each count of values. All on natural logarithms of rates.

use crate::interval::student_quantile;

/// Distance from a cell's median, in the grid's usual scatter, beyond which a value is odd.
pub const GRID_SCORE: f64 = 5.0;
/// And as a share of the median, up or down: what is nearer does not matter.
pub const GRID_SHARE: f64 = 0.10;
/// Fewest cells with two visits or more whose usual scatter may judge a cell's values; with fewer,
/// [`alone`] is the rule.
pub const GRID_CELLS_MIN: usize = 12;
/// Fewest values that can be told apart into usual and odd.
pub const VALUES_MIN: usize = 3;

/// The median absolute deviation of normal noise, in standard deviations.
pub(crate) const MAD_OF_NORMAL: f64 = 0.6745;

/// What repeats say of themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None is odd.
    Clean,
    /// Some are.
    Flagged {
        /// Positions of the odd ones, rising.
        indices: Vec<usize>,
        /// Clean repeats look like this in one set of 50 to 100, not only in one of 25 to 40.
        strong: bool,
    },
    /// Too few to tell: three or less. That is no clean bill: of three values, one that is 22
    /// standard deviations off is found in one case of five.
    TooFew,
}

/// Odd values of one cell, by the noise that is usual in its grid.
///
/// * `ln_rates`: of the cell's visits; `s0`: [`crate::interval::pooled_scale`] of its grid.
/// * Positions, rising; none for fewer than [`VALUES_MIN`] finite values or an unknown scale.
///
/// Flagged is what is more than [`GRID_SCORE`] scales *and* [`GRID_SHARE`] from the median. So a
/// grid without any noise, as on a simulator's clock, flags by the share alone.
pub fn in_grid(ln_rates: &[f64], s0: f64) -> Vec<usize> {
    far_in_grid(ln_rates, s0, GRID_SHARE)
}

/// The same with another share instead of [`GRID_SHARE`].
pub(crate) fn far_in_grid(ln_rates: &[f64], s0: f64, share: f64) -> Vec<usize> {
    let finite: Vec<f64> = ln_rates.iter().copied().filter(|value| value.is_finite()).collect();
    if finite.len() < VALUES_MIN {
        return Vec::new();
    }
    let is_odd = |value: f64, middle: f64| {
        let far = value - middle;
        let beyond = far > share.ln_1p() || far < (-share).ln_1p();
        beyond && far.abs() > GRID_SCORE * s0
    };
    // Between two halves that lie apart is nothing to be odd to: one of them is usual, that of the first
    // value where nothing else decides.
    let [lower, upper] = middles(&finite);
    let middle = match is_odd(upper, lower) {
        false => f64::midpoint(lower, upper),
        true => {
            let odd = |middle: f64| finite.iter().filter(|value| is_odd(**value, middle)).count();
            let first = (finite[0] - lower).abs() > (finite[0] - upper).abs();
            match odd(lower).cmp(&odd(upper)) {
                std::cmp::Ordering::Less => lower,
                std::cmp::Ordering::Greater => upper,
                std::cmp::Ordering::Equal if first => upper,
                std::cmp::Ordering::Equal => lower,
            }
        }
    };
    let is_odd = |value: f64| is_odd(value, middle);
    positions(ln_rates, |value| value.is_finite() && is_odd(value))
}

/// Odd values of one configuration that has no grid around it.
///
/// * `ln_rates`: one for each repeat. Values that are not finite do not count.
/// * `resolution`: smallest scatter that means anything, in ln units: 1 by the number of
///   completions behind a value; 0 if there is no such limit. Scatter below it is taken for it,
///   so that the last digit of a counter is not called odd.
///
/// Two tests, each at its 97.5 % value for this count, so that clean normal values are flagged in
/// 2.5 to 4.3 % of sets: distance from the median in median absolute deviations (Iglewicz and
/// Hoaglin 1993), which two odd ones cannot hide from so easily, and Grubbs' distance from the
/// mean in standard deviations, which finds a single one more often. Where more than half of
/// the values are equal the first is undefined and the second is used alone.
///
/// Cut-offs: 200,000 normal samples for each count from 3 to 20 and some beyond; between those
/// the nearest below. Grubbs' above 10 by his formula.
pub fn alone(ln_rates: &[f64], resolution: f64) -> Verdict {
    let finite: Vec<f64> = ln_rates.iter().copied().filter(|value| value.is_finite()).collect();
    let n = finite.len();
    let (Some(scores), Some(cut)) = (Scores::of(&finite, resolution), Cut::of(n)) else {
        return Verdict::TooFew;
    };
    let usual = positions(ln_rates, |value| scores.is_beyond(value, cut.odd));
    let strong = ln_rates.iter().any(|&value| scores.is_beyond(value, cut.strong));
    match (usual.is_empty(), n) {
        (false, _) => Verdict::Flagged { indices: usual, strong },
        (true, VALUES_MIN) => Verdict::TooFew,
        (true, _) => Verdict::Clean,
    }
}

/// Largest distance from the median of `values`, in median absolute deviations scaled to
/// standard deviations of normal noise. `None` when the deviation is zero or nothing is there.
pub fn robust_score(values: &[f64]) -> Option<f64> {
    let scores = Scores::of(values, 0.0)?;
    let scale = scores.robust_scale?;
    Some(values.iter().map(|v| (v - scores.median).abs() / scale).fold(0.0, f64::max))
}

/// Grubbs' G: largest distance from the mean of `values` in standard deviations (n - 1). `None`
/// when that is zero or nothing is there.
pub fn grubbs_score(values: &[f64]) -> Option<f64> {
    let scores = Scores::of(values, 0.0)?;
    let scale = scores.deviation?;
    Some(values.iter().map(|v| (v - scores.mean).abs() / scale).fold(0.0, f64::max))
}

/// The median; of two middle ones their mean. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        1 => Some(upper),
        _ => Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper)),
    }
}

/// The two values in the middle, or the same twice. At least one value is there.
fn middles(values: &[f64]) -> [f64; 2] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.len() / 2;
    [sorted[sorted.len().div_ceil(2).saturating_sub(1)], sorted[upper]]
}

fn positions(values: &[f64], is_odd: impl Fn(f64) -> bool) -> Vec<usize> {
    let odd = values.iter().enumerate().filter(|&(_, &value)| is_odd(value));
    odd.map(|(index, _)| index).collect()
}

/// Centres and scales of some values.
struct Scores {
    median: f64,
    robust_scale: Option<f64>,
    mean: f64,
    deviation: Option<f64>,
}

impl Scores {
    fn of(values: &[f64], resolution: f64) -> Option<Self> {
        let middle = median(values)?;
        let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let usable = |scale: f64| Some(scale.max(resolution)).filter(|&scale| scale > 0.0);
        Some(Self {
            median: middle,
            robust_scale: usable(median(&away)? / MAD_OF_NORMAL),
            mean,
            deviation: usable((squares / (n - 1.0)).sqrt()),
        })
    }

    fn is_beyond(&self, value: f64, (robust, grubbs): (f64, f64)) -> bool {
        let beyond = |centre: f64, scale: Option<f64>, limit: f64| {
            scale.is_some_and(|scale| (value - centre).abs() > limit * scale)
        };
        value.is_finite()
            && (beyond(self.median, self.robust_scale, robust)
                || beyond(self.mean, self.deviation, grubbs))
    }
}

/// Limits of both scores: (median absolute deviations, Grubbs).
struct Cut {
    odd: (f64, f64),
    strong: (f64, f64),
}

/// (count, robust score's 97.5 % value, its 99 % value).
const ROBUST: [(usize, f64, f64); 24] = [
    (3, 45.5, 109.0),
    (4, 10.0, 16.4),
    (5, 11.5, 18.5),
    (6, 7.2, 10.1),
    (7, 7.6, 10.8),
    (8, 6.1, 7.9),
    (9, 6.3, 8.2),
    (10, 5.52, 7.0),
    (11, 5.59, 7.02),
    (12, 5.16, 6.29),
    (13, 5.25, 6.40),
    (14, 4.90, 5.87),
    (15, 4.95, 5.90),
    (16, 4.73, 5.58),
    (17, 4.77, 5.64),
    (18, 4.61, 5.40),
    (19, 4.63, 5.42),
    (20, 4.52, 5.24),
    (25, 4.41, 5.04),
    (30, 4.24, 4.79),
    (40, 4.14, 4.60),
    (50, 4.06, 4.46),
    (100, 4.00, 4.30),
    (200, 4.03, 4.29),
];

/// Grubbs' 97.5 and 99 % values for 4 to 10; of three values his score says what the other does.
const GRUBBS: [(f64, f64); 7] = [
    (1.490, 1.496),
    (1.742, 1.763),
    (1.935, 1.973),
    (2.081, 2.142),
    (2.201, 2.274),
    (2.299, 2.386),
    (2.385, 2.482),
];

impl Cut {
    fn of(n: usize) -> Option<Self> {
        let &(_, odd, strong) = ROBUST.iter().rev().find(|&&(count, ..)| count <= n)?;
        let (grubbs_odd, grubbs_strong) = match n {
            VALUES_MIN => (f64::INFINITY, f64::INFINITY),
            4..=10 => GRUBBS[n - 4],
            _ => (grubbs_critical(n, 0.025)?, grubbs_critical(n, 0.01)?),
        };
        Some(Self { odd: (odd, grubbs_odd), strong: (strong, grubbs_strong) })
    }
}

/// Grubbs' critical value (Grubbs 1969), two-sided; `alpha` false alarms.
fn grubbs_critical(n: usize, alpha: f64) -> Option<f64> {
    let n = n as f64;
    let t = student_quantile(1.0 - alpha / (2.0 * n), n - 2.0)?;
    Some((n - 1.0) / n.sqrt() * (t * t / (n - 2.0 + t * t)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_halves_one_is_usual() {
        let halves = |low_first: bool| {
            let value = |k: usize| if k.is_multiple_of(2) == low_first { 8.0 } else { 9.0 };
            (0..10).map(value).collect::<Vec<f64>>()
        };
        assert_eq!(in_grid(&halves(true), 0.01), [1, 3, 5, 7, 9]);
        assert_eq!(in_grid(&halves(false), 0.01), [1, 3, 5, 7, 9]);
        // As before where one half is larger, or near.
        assert_eq!(in_grid(&[8.0, 8.0, 9.0, 8.0], 0.01), [2]);
        assert_eq!(in_grid(&[8.0, 8.05, 8.0, 8.05], 0.01), [0; 0]);
    }

    /// Of the PostgreSQL disk study: fsyncs a second of the hardware array, in order.
    const FSYNCS: [f64; 5] = [3170.57, 7606.69, 8379.83, 7627.63, 7523.14];

    fn logs(values: &[f64]) -> Vec<f64> {
        values.iter().map(|value| value.ln()).collect()
    }

    #[test]
    fn of_the_five_fsync_values_exactly_the_first_is_odd() {
        let near = |seen: Option<f64>, wanted: f64| (seen.unwrap() / wanted - 1.0).abs() < 0.002;
        assert!(near(grubbs_score(&FSYNCS), 1.764));
        assert!(near(robust_score(&FSYNCS), 35.8));
        assert!(near(robust_score(&logs(&FSYNCS)), 53.4));
        assert!(near(grubbs_score(&logs(&FSYNCS)), 1.779));
        let verdict = alone(&logs(&FSYNCS), 0.0);
        assert_eq!(verdict, Verdict::Flagged { indices: vec![0], strong: true });
        // The textbook cut takes 8379.83 too.
        let scores = Scores::of(&FSYNCS, 0.0).unwrap();
        assert!((FSYNCS[2] - scores.median) / scores.robust_scale.unwrap() > 3.5);
    }

    #[test]
    fn three_values_get_no_clean_bill() {
        assert_eq!(alone(&logs(&[100.0, 101.0, 103.0]), 0.0), Verdict::TooFew);
        assert_eq!(alone(&[], 0.0), Verdict::TooFew);
        let wild = alone(&logs(&[100.0, 100.1, 900.0]), 0.0);
        assert_eq!(wild, Verdict::Flagged { indices: vec![2], strong: true });
    }

    #[test]
    fn ties_fall_back_to_grubbs() {
        let verdict = alone(&logs(&[100.0, 100.0, 100.0, 100.0, 50.0, 101.0]), 0.0);
        assert_eq!(verdict, Verdict::Flagged { indices: vec![4], strong: true });
        assert_eq!(alone(&[1.0; 6], 0.0), Verdict::Clean);
    }

    #[test]
    fn the_last_digit_of_a_counter_is_not_odd() {
        let values = logs(&[400.0, 400.0, 400.0, 400.0, 401.0]);
        assert_ne!(alone(&values, 0.0), Verdict::Clean);
        assert_eq!(alone(&values, 1.0 / 400.0), Verdict::Clean);
    }

    #[test]
    fn a_grid_lends_its_noise_to_three_values() {
        let values = logs(&[100.0, 42.0, 102.0]);
        assert_eq!(in_grid(&values, 0.04), [1]);
        assert_eq!(in_grid(&logs(&[100.0, 91.0, 102.0]), 0.001), [] as [usize; 0]);
        assert_eq!(in_grid(&logs(&[100.0, 89.0, 102.0]), 0.0), [1]);
        assert_eq!(in_grid(&logs(&[100.0, 111.0, 99.0]), 0.001), [1]);
        assert_eq!(in_grid(&values, f64::NAN), [] as [usize; 0]);
        assert_eq!(in_grid(&values[..2], 0.01), [] as [usize; 0]);
    }

    #[test]
    fn positions_count_the_values_that_are_not_finite() {
        let values = [f64::NAN, 0.0, 1.0, 0.001, f64::NEG_INFINITY];
        assert_eq!(in_grid(&values, 0.01), [2]);
        assert_eq!(alone(&values, 0.0), Verdict::Flagged { indices: vec![2], strong: true });
    }

    #[test]
    fn grubbs_formula_meets_the_calibrated_values() {
        // 200,000 samples each: 97.5 and 99 %.
        for (n, odd, strong) in [(10, 2.383, 2.482), (12, 2.520, 2.639), (20, 2.843, 2.999)] {
            assert!((grubbs_critical(n, 0.025).unwrap() / odd - 1.0).abs() < 0.005, "{n}");
            assert!((grubbs_critical(n, 0.01).unwrap() / strong - 1.0).abs() < 0.005, "{n}");
        }
    }
}
