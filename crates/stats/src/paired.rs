//! Comparing two configurations.
//!
//! Best measured in blocks: A and B once each, close in time, in random order. What drifts from
//! block to block falls on both sides and out of the differences. The caller hands in one
//! difference per block, of logarithms where a ratio is meant: `ln(b) - ln(a)`;
//! [`Estimate::exp`] then gives the ratio of B to A. Two estimates belong side by side: the
//! median of the Walsh averages, which a few bad blocks cannot carry, and the mean with Student's
//! t, which they can. Where the two disagree, that is the finding.
//!
//! What was measured one after the other has no blocks: [`welch`] compares two means, and takes
//! all drift between them for a difference.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::interval::{Interval, student_quantile};

/// Fewest blocks: with five, no signed-rank interval reaches 95 %.
pub const BLOCKS_MIN: usize = 6;
/// Most blocks.
pub const BLOCKS_MAX: usize = 60;
/// Blocks after which a comparison that may be looked at twice is looked at.
pub const LOOKS: [usize; 2] = [10, 20];
/// More blocks than this nobody measures: [`blocks_needed`] says "never" then.
pub const BLOCKS_SENSIBLE: usize = 10_000;

/// An estimate with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate.
    pub middle: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Level that the interval really has, in `0.0..1.0`: at least the one asked for, and more
    /// where the distribution is discrete.
    pub confidence: f64,
}

impl Estimate {
    /// The estimate of a ratio, from one of a difference of natural logarithms.
    pub fn exp(self) -> Self {
        Self { middle: self.middle.exp(), low: self.low.exp(), high: self.high.exp(), ..self }
    }

    /// The interval with what may move its middle beside chance: see [`Contrast::offset`].
    pub fn off_by(self, offset: f64) -> Self {
        let reach = |far: f64| far.hypot(offset);
        let (low, high) = (reach(self.middle - self.low), reach(self.high - self.middle));
        Self { low: self.middle - low, high: self.middle + high, ..self }
    }

    /// Half the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether the whole interval lies within `margin` of zero.
    pub fn is_within(&self, margin: f64) -> bool {
        -margin <= self.low && self.high <= margin
    }

    /// Whether the whole interval lies beyond `margin` of zero, on one side.
    pub fn is_beyond(&self, margin: f64) -> bool {
        self.low > margin || self.high < -margin
    }
}

/// Hodges-Lehmann estimate of the differences' centre: the median of all Walsh averages
/// `(d[i] + d[j]) / 2`, `i <= j`, with the exact interval of the signed-rank test.
///
/// * `differences[block]`: finite, [`BLOCKS_MIN`] to [`BLOCKS_MAX`] of them; assumed symmetric
///   about their centre, nothing more.
/// * `confidence`: wanted level, `0.95` for instance.
/// * `None` when there are too few or too many, one is not finite, or the level is out of reach.
///
/// The interval goes from the (w+1)-th smallest to the (w+1)-th largest average, w being
/// [`signed_rank_limit`]. With ties the level holds at least.
///
/// Method: Hodges and Lehmann 1963; interval after Tukey 1949.
pub fn hodges_lehmann(differences: &[f64], confidence: f64) -> Option<Estimate> {
    check(differences)?;
    let (limit, confidence) = signed_rank_limit(differences.len(), confidence)?;
    let averages = walsh_averages(differences);
    let last = averages.len() - 1;
    let middle = f64::midpoint(averages[last / 2], averages[last.div_ceil(2)]);
    Some(Estimate { middle, low: averages[limit], high: averages[last - limit], confidence })
}

/// Mean of the differences with the interval of Student's t.
///
/// * `differences[block]` and `confidence` as in [`hodges_lehmann`]; assumed normal.
///
/// Method: Student 1908; `mean +- t(n - 1) s / sqrt(n)`.
pub fn paired_t(differences: &[f64], confidence: f64) -> Option<Estimate> {
    check(differences)?;
    let mean = crate::interval::plain(differences, 0.95)?;
    Contrast::of_mean(&mean).interval(confidence)
}

/// Exact two-sided p of the signed-rank test: how often fair coins for signs give rank sums at
/// least as far from the middle as those seen.
///
/// * `differences[block]`: finite, at most [`BLOCKS_MAX`]. Differences of exactly zero are left
///   out, equal sizes share the mean of their ranks, and the count is over the ranks as they are.
/// * `None` for an empty slice, too many or one that is not finite. 1 when all are zero.
///
/// The smallest p that `n` blocks can give is `2 / 2^n`.
///
/// Method: Wilcoxon 1945; ties by mean ranks, exact given the ties (Pratt and Gibbons 1981).
pub fn signed_rank_p(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() || differences.len() > BLOCKS_MAX {
        return None;
    }
    if !differences.iter().all(|d| d.is_finite()) {
        return None;
    }
    let mut sizes: Vec<(f64, bool)> =
        differences.iter().filter(|d| **d != 0.0).map(|d| (d.abs(), *d > 0.0)).collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ranks = doubled_ranks(&sizes);
    let ways = ways_to_sums(&ranks);
    let positive: usize =
        ranks.iter().zip(&sizes).filter(|(_, (_, up))| *up).map(|(rank, _)| rank).sum();
    let nearer_end = positive.min(ways.len() - 1 - positive);
    let tail = ways[..=nearer_end].iter().sum::<u64>() as f64 / (1u64 << sizes.len()) as f64;
    Some((2.0 * tail).min(1.0))
}

/// Twice the mean rank of each, so that it is whole; `sizes` sorted.
fn doubled_ranks(sizes: &[(f64, bool)]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sizes.len());
    for tied in sizes.chunk_by(|a, b| a.0 == b.0) {
        let before = ranks.len();
        // Ranks before + 1 ..= before + n: twice their mean.
        ranks.resize(before + tied.len(), 2 * before + tied.len() + 1);
    }
    ranks
}

/// Level of each of two looks, after [`LOOKS`] blocks, that together keep `1 - confidence`.
///
/// * `confidence`: `0.95` gives 0.0294.
/// * `None` outside `0.5..1.0`.
/// * Absolute error below 1e-5.
///
/// Method: Pocock 1977. The second look's sum holds the first's, so the two normal scores
/// correlate by `sqrt(1/2)`; the chance that either is beyond is integrated over the first.
pub fn level_of_two_looks(confidence: f64) -> Option<f64> {
    if !(0.5..1.0).contains(&confidence) {
        return None;
    }
    let normal = Normal::new(0.0, 1.0).ok()?;
    let error = |level: f64| {
        let z = normal.inverse_cdf(1.0 - level / 2.0);
        // Neither is beyond: the first score is x, the second (x + y) / sqrt(2), y another score.
        const STEPS: usize = 400;
        let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let inside = |x: f64| {
            let reach = std::f64::consts::SQRT_2 * z;
            density(x) * (normal.cdf(reach - x) - normal.cdf(-reach - x))
        };
        let step = 2.0 * z / STEPS as f64;
        let weight = |k: usize| match k {
            0 | STEPS => 1.0,
            k if k % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let sum: f64 = (0..=STEPS).map(|k| weight(k) * inside(-z + k as f64 * step)).sum();
        1.0 - sum * step / 3.0
    };
    let (mut low, mut high) = ((1.0 - confidence) / 2.0, 1.0 - confidence);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if error(middle) > 1.0 - confidence { high = middle } else { low = middle }
    }
    Some(f64::midpoint(low, high))
}

/// Confidence of the interval that must lie inside the margin for two to be called the same:
/// two one-sided tests at `1 - confidence` each. 0.95 gives 0.90.
///
/// Method: Schuirmann 1987.
pub fn equivalence_confidence(confidence: f64) -> f64 {
    2.0 * confidence - 1.0
}

/// A difference of means, its standard error and the degrees of freedom of that: what Student's
/// t needs, however the variance was come by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// The difference.
    pub middle: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// How far it may be off beside that, in either direction, however often it was measured: 0 where
    /// only chance moves it. What is known of neither's sign adds up by the squares.
    pub offset: f64,
}

impl Contrast {
    /// Of the mean of differences, whose variance may be moderated across cells
    /// ([`crate::interval::moderated`]).
    pub fn of_mean(mean: &Interval) -> Self {
        let error = (mean.variance / mean.visits as f64).sqrt();
        Self { middle: mean.mean, error, df: mean.df, offset: 0.0 }
    }

    /// The same where something that repeating does not show may move it by so much.
    pub fn off_by(self, offset: f64) -> Self {
        Self { offset, ..self }
    }

    /// The interval at a confidence in `0.0..1.0`.
    pub fn interval(&self, confidence: f64) -> Option<Estimate> {
        if !(0.0..1.0).contains(&confidence) {
            return None;
        }
        let reach = student_quantile(f64::midpoint(1.0, confidence), self.df)? * self.error;
        let middle = self.middle;
        let estimate = Estimate { middle, low: middle - reach, high: middle + reach, confidence };
        let estimate = estimate.off_by(self.offset);
        (estimate.half_width().is_finite() && middle.is_finite()).then_some(estimate)
    }

    /// Two-sided p of "it lies within `margin` of zero": below `1 - confidence` exactly when the
    /// interval of that confidence lies wholly beyond the margin. With margin 0 the usual p of
    /// Student's t.
    pub fn p_beyond(&self, margin: f64) -> f64 {
        let beyond = self.middle.abs() - margin;
        if beyond.is_nan() || beyond <= self.offset {
            return 1.0;
        }
        let beyond = (beyond * beyond - self.offset * self.offset).sqrt();
        if self.error == 0.0 {
            return 0.0;
        }
        let student = StudentsT::new(0.0, 1.0, self.df);
        student.map_or(1.0, |student| (2.0 * student.sf(beyond / self.error)).min(1.0))
    }
}

/// The difference `b - a` of two means measured one after the other.
///
/// * `a`, `b`: means of logarithms of rates, of two visits or more each; their variances may be
///   moderated across a grid, their degrees of freedom are taken as they are.
///
/// All drift between the two is in the difference, and not in the error.
///
/// Method: Welch 1947, degrees of freedom after Satterthwaite 1946.
pub fn welch(a: &Interval, b: &Interval) -> Contrast {
    let part = |side: &Interval| side.variance / side.visits as f64;
    let (part_a, part_b) = (part(a), part(b));
    let sum = part_a + part_b;
    let df = sum * sum / (part_a * part_a / a.df + part_b * part_b / b.df);
    // No spread at all on either side: any number of degrees will do.
    let df = if df.is_finite() { df } else { a.df.min(b.df) };
    Contrast { middle: b.mean - a.mean, error: sum.sqrt(), df, offset: 0.0 }
}

/// How many blocks make an interval reach no further than `distance` from its middle:
/// `n = (t s / distance)^2`, t being that of `n - 1`.
///
/// * `deviation`: standard deviation of one block's difference; of two sides measured apart
///   `sqrt(s_a^2 + s_b^2)` gives the visits on each side.
/// * `None` when that is more than [`BLOCKS_SENSIBLE`], or makes no sense.
pub fn blocks_needed(deviation: f64, distance: f64, confidence: f64) -> Option<usize> {
    if !(distance > 0.0 && deviation >= 0.0 && (0.0..1.0).contains(&confidence)) {
        return None;
    }
    let reaches = |n: usize| {
        let t = student_quantile(f64::midpoint(1.0, confidence), n as f64 - 1.0);
        t.is_some_and(|t| t * deviation / (n as f64).sqrt() <= distance)
    };
    // The reach falls with n, so halving finds the least.
    let (mut low, mut high) = (2, BLOCKS_SENSIBLE);
    if !reaches(high) {
        return None;
    }
    while low < high {
        let middle = usize::midpoint(low, high);
        if reaches(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// Largest w with `P(W+ <= w) <= (1 - confidence) / 2` when each of `blocks` signs is a fair
/// coin, and the level `1 - 2 P(W+ <= w)` that it gives; `None` when even 0 is too likely.
///
/// Exact: counts the sums of ranks by dynamic programming over the 2^n sign patterns.
pub fn signed_rank_limit(blocks: usize, confidence: f64) -> Option<(usize, f64)> {
    if !(BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks) || !(0.0..1.0).contains(&confidence) {
        return None;
    }
    let patterns = (1u64 << blocks) as f64;
    // Next to nothing, so that a level that is met exactly is not lost to rounding.
    let tail_max = (1.0 - confidence) / 2.0 + 1e-12;
    let mut reached = None;
    let mut below = 0;
    for (sum, ways) in ways_to_rank_sums(blocks).into_iter().enumerate() {
        below += ways;
        let tail = below as f64 / patterns;
        if tail > tail_max {
            break;
        }
        reached = Some((sum, 1.0 - 2.0 * tail));
    }
    reached
}

/// `ways[sum]`: how many subsets of the ranks `1..=blocks` have this sum.
fn ways_to_rank_sums(blocks: usize) -> Vec<u64> {
    ways_to_sums(&(1..=blocks).collect::<Vec<_>>())
}

/// `ways[sum]`: how many subsets of these have this sum; at most [`BLOCKS_MAX`] of them.
fn ways_to_sums(parts: &[usize]) -> Vec<u64> {
    let sum_max: usize = parts.iter().sum();
    let mut ways = vec![0; sum_max + 1];
    ways[0] = 1;
    let mut reached = 0;
    for &part in parts {
        reached += part;
        for sum in (part..=reached).rev() {
            ways[sum] += ways[sum - part];
        }
    }
    ways
}

fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = differences
        .iter()
        .enumerate()
        .flat_map(|(i, &a)| differences[i..].iter().map(move |&b| f64::midpoint(a, b)))
        .collect();
    averages.sort_by(f64::total_cmp);
    averages
}

fn check(differences: &[f64]) -> Option<()> {
    let counts = (BLOCKS_MIN..=BLOCKS_MAX).contains(&differences.len());
    (counts && differences.iter().all(|d| d.is_finite())).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn near(seen: f64, wanted: f64, within: f64) {
        assert!((seen - wanted).abs() <= within, "{seen} instead of {wanted}");
    }

    #[test]
    fn limits_and_levels_are_the_published_ones() {
        // Two-sided 5 %: any table of the signed-rank test.
        for (blocks, limit, error) in
            [(6, 0, 0.031), (8, 3, 0.039), (10, 8, 0.049), (12, 13, 0.043), (20, 52, 0.048)]
        {
            let (seen, level) = signed_rank_limit(blocks, 0.95).unwrap();
            assert_eq!(seen, limit, "{blocks} blocks");
            near(1.0 - level, error, 0.001);
        }
        // Two-sided 10 %.
        assert_eq!(signed_rank_limit(6, 0.90).unwrap().0, 2);
        assert_eq!(signed_rank_limit(10, 0.90).unwrap().0, 10);
        assert_eq!(signed_rank_limit(20, 0.90).unwrap().0, 60);
        // 2/64 is met exactly, and may not be exceeded.
        assert_eq!(signed_rank_limit(6, 1.0 - 2.0 / 64.0).unwrap().0, 0);
        assert_eq!(signed_rank_limit(6, 0.97), None);
    }

    #[test]
    fn every_pattern_of_signs_is_counted_once() {
        for blocks in BLOCKS_MIN..=BLOCKS_MAX {
            let ways = ways_to_rank_sums(blocks);
            assert_eq!(ways.iter().sum::<u64>(), 1 << blocks);
            assert!(ways.iter().eq(ways.iter().rev()), "{blocks}");
        }
        // 3, 1+2, then 4, 1+3, ...
        assert_eq!(ways_to_rank_sums(6)[..7], [1, 1, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn the_interval_is_the_ninth_from_either_end_at_ten_blocks() {
        let differences: Vec<f64> = [3, 1, 4, 15, 9, 2, 6, 5, 35, 8].map(f64::from).into();
        let averages = walsh_averages(&differences);
        assert_eq!(averages.len(), 55);
        let seen = hodges_lehmann(&differences, 0.95).unwrap();
        assert_eq!(seen.low, averages[8]);
        assert_eq!(seen.high, averages[46]);
        assert_eq!(seen.middle, averages[27]);
    }

    /// Darwin's maize pairs, eighths of an inch, as textbooks of the paired t test have them; the
    /// median and its ends by sorting the 120 averages.
    #[test]
    fn darwins_maize_gives_the_textbook_figures() {
        let differences: Vec<f64> =
            [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48].map(f64::from).into();
        let t = paired_t(&differences, 0.95).unwrap();
        near(t.middle, 20.933, 0.001);
        near(t.low, 0.03, 0.01);
        near(t.high, 41.84, 0.01);
        let rank = hodges_lehmann(&differences, 0.95).unwrap();
        assert_eq!((rank.middle, rank.low, rank.high), (25.0, 4.0, 41.5));
        near(rank.confidence, 0.952, 0.001);
    }

    #[test]
    fn one_bad_block_carries_the_mean_and_not_the_median() {
        let mut differences = vec![0.01, -0.01, 0.02, -0.02, 0.0, 0.005, -0.005, 0.01, -0.01, 0.0];
        differences[3] = -0.9;
        let rank = hodges_lehmann(&differences, 0.95).unwrap();
        let t = paired_t(&differences, 0.95).unwrap();
        assert!(rank.middle.abs() < 0.01, "{rank:?}");
        assert!(t.middle < -0.05, "{t:?}");
    }

    #[test]
    fn intervals_cover_a_planted_ratio() {
        let seed = 20_261_121;
        let mut random = Random::new(seed);
        let truth = 1.05_f64.ln();
        let mut covered = [0; 2];
        const SETS: usize = 4_000;
        for _ in 0..SETS {
            let differences: Vec<f64> = (0..10).map(|_| truth + 0.04 * random.normal()).collect();
            let both = [hodges_lehmann(&differences, 0.95), paired_t(&differences, 0.95)];
            for (count, estimate) in covered.iter_mut().zip(both) {
                let estimate = estimate.unwrap();
                *count += usize::from(estimate.low <= truth && truth <= estimate.high);
            }
        }
        // Four standard errors about 0.95.
        for count in covered {
            near(count as f64 / SETS as f64, 0.95, 0.014);
        }
    }

    #[test]
    fn margins_are_judged_by_the_whole_interval() {
        let of = |low, high| Estimate { middle: 0.0, low, high, confidence: 0.95 };
        assert!(of(-0.02, 0.03).is_within(0.03));
        assert!(!of(-0.02, 0.031).is_within(0.03));
        assert!(of(0.04, 0.05).is_beyond(0.03));
        assert!(of(-0.05, -0.04).is_beyond(0.03));
        assert!(!of(0.02, 0.05).is_beyond(0.03));
        near(of(0.0, 0.1).exp().high, 1.105_17, 0.000_01);
    }

    #[test]
    fn p_and_interval_of_the_signed_ranks_agree() {
        let seed = 4_701;
        let mut random = Random::new(seed);
        for _ in 0..400 {
            let differences: Vec<f64> = (0..10).map(|_| 0.6 + random.normal()).collect();
            let beyond = hodges_lehmann(&differences, 0.95).unwrap().is_beyond(0.0);
            let p = signed_rank_p(&differences).unwrap();
            assert_eq!(beyond, p <= 0.05, "seed {seed}: {differences:?} p {p}");
        }
    }

    #[test]
    fn p_of_the_signed_ranks_is_the_count() {
        // All up: 2 of 2^n patterns.
        near(signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap(), 2.0 / 64.0, 1e-12);
        // W- = 3: sums 0, 1, 2, 3 in 1 + 1 + 1 + 2 ways.
        near(signed_rank_p(&[1.0, 2.0, -3.0, 4.0, 5.0, 6.0]).unwrap(), 10.0 / 64.0, 1e-12);
        // Ties share a rank: ranks 1.5, 1.5, 3; W- = 1.5 in 1 + 2 ways of 8, doubled.
        near(signed_rank_p(&[-1.0, 1.0, 2.0]).unwrap(), 0.75, 1e-12);
        // Zeros are left out.
        near(signed_rank_p(&[0.0, 1.0, 2.0]).unwrap(), 0.5, 1e-12);
        assert_eq!(signed_rank_p(&[0.0; 4]), Some(1.0));
        assert_eq!(signed_rank_p(&[]), None);
        assert_eq!(signed_rank_p(&[f64::NAN]), None);
        // Darwin's maize: W- = 24 of 120; R's wilcox.test with exact = TRUE gives 0.04126.
        let maize = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48].map(f64::from);
        near(signed_rank_p(&maize).unwrap(), 0.041_26, 0.000_01);
        assert!(signed_rank_p(&[1.0; 60]).is_some_and(|p| p > 0.0 && p < 1e-17));
    }

    #[test]
    fn two_looks_cost_what_pocock_printed() {
        near(level_of_two_looks(0.95).unwrap(), 0.0294, 0.000_05);
        near(level_of_two_looks(0.99).unwrap(), 0.0056, 0.000_05);
        assert_eq!(level_of_two_looks(1.0), None);
        assert_eq!(level_of_two_looks(f64::NAN), None);
    }

    #[test]
    fn p_beyond_a_margin_and_the_interval_agree() {
        let contrast = Contrast { middle: 0.08, error: 0.02, df: 9.0, offset: 0.0 };
        let t = contrast.middle / contrast.error;
        // Student's t, 9 degrees: 4.0 is p 0.0031.
        near(t, 4.0, 1e-9);
        near(contrast.p_beyond(0.0), 0.0031, 0.000_05);
        for margin in [0.01, 0.03, 0.034, 0.035, 0.036, 0.05, 0.1] {
            let beyond = contrast.interval(0.95).unwrap().is_beyond(margin);
            assert_eq!(beyond, contrast.p_beyond(margin) < 0.05, "{margin}");
        }
        // What repeating does not show is beside chance: the interval reaches so much further, and
        // what it explains is no difference.
        let unsure = contrast.off_by(0.05);
        let reach = contrast.interval(0.95).unwrap().half_width();
        near(unsure.interval(0.95).unwrap().half_width(), reach.hypot(0.05), 1e-12);
        near(unsure.p_beyond(0.0), contrast.p_beyond(0.08 - 0.0039f64.sqrt()), 1e-12);
        for margin in [0.01, 0.012, 0.0125, 0.013, 0.02] {
            let beyond = unsure.interval(0.95).unwrap().is_beyond(margin);
            assert_eq!(beyond, unsure.p_beyond(margin) < 0.05, "{margin}");
        }
        assert_eq!(unsure.p_beyond(0.03), 1.0);
        let flat = Contrast { error: 0.0, ..unsure };
        assert_eq!((flat.p_beyond(0.0), flat.p_beyond(0.03)), (0.0, 1.0));
        assert_eq!(Contrast { error: 0.0, ..contrast }.p_beyond(0.03), 0.0);
        assert_eq!(Contrast { middle: f64::NAN, ..contrast }.p_beyond(0.03), 1.0);
    }

    #[test]
    fn welchs_figures_are_the_textbooks() {
        // The two samples of R's `t.test` on extra hours of sleep: t = -1.8608, df = 17.776.
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let side = |values: &[f64]| crate::interval::plain(values, 0.95).unwrap();
        let seen = welch(&side(&one), &side(&two));
        near(seen.middle / seen.error, 1.8608, 0.0001);
        near(seen.df, 17.776, 0.001);
        near(seen.p_beyond(0.0), 0.079_39, 0.000_01);
        let flat = side(&[1.0, 1.0]);
        assert!(welch(&flat, &flat).interval(0.95).is_some_and(|e| e.half_width() == 0.0));
    }

    #[test]
    fn blocks_needed_reach_and_one_less_does_not() {
        for (deviation, distance) in [(0.04, 0.03), (0.04, 0.01), (0.2, 0.013)] {
            let n = blocks_needed(deviation, distance, 0.95).unwrap();
            let reach = |n: usize| {
                student_quantile(0.975, n as f64 - 1.0).unwrap() * deviation / (n as f64).sqrt()
            };
            assert!(reach(n) <= distance && reach(n - 1) > distance, "{n}");
        }
        assert_eq!(blocks_needed(0.0, 0.01, 0.95), Some(2));
        assert_eq!(blocks_needed(1.0, 0.001, 0.95), None);
        assert_eq!(blocks_needed(1.0, 0.0, 0.95), None);
        assert_eq!(blocks_needed(f64::NAN, 0.1, 0.95), None);
    }

    #[test]
    fn what_cannot_be_judged_is_not() {
        for differences in [vec![0.1; 5], vec![0.1; 61], vec![f64::NAN; 8], vec![]] {
            assert_eq!(hodges_lehmann(&differences, 0.95), None);
            assert_eq!(paired_t(&differences, 0.95), None);
        }
        for confidence in [-0.1, 1.0, 1.5, f64::NAN] {
            assert_eq!(hodges_lehmann(&[0.1; 10], confidence), None);
            assert_eq!(paired_t(&[0.1; 10], confidence), None);
        }
        // No spread at all is a legal answer.
        assert_eq!(hodges_lehmann(&[0.1; 10], 0.95).map(|e| (e.low, e.high)), Some((0.1, 0.1)));
        assert!(paired_t(&[0.1; 10], 0.95).is_some_and(|e| e.half_width() < 1e-9));
    }
}
