//! Comparing two configurations measured in blocks: A and B once each, close in time, in random
//! order. What drifts from block to block falls on both sides and out of the differences.
//!
//! The caller hands in one difference per block, of logarithms where a ratio is meant:
//! `ln(b) - ln(a)`; [`Estimate::exp`] then gives the ratio of B to A. Two estimates belong side
//! by side: the median of the Walsh averages, which a few bad blocks cannot carry, and the mean
//! with Student's t, which they can. Where the two disagree, that is the finding.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest blocks: with five, no signed-rank interval reaches 95 %.
pub const BLOCKS_MIN: usize = 6;
/// Most blocks.
pub const BLOCKS_MAX: usize = 20;

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
    if !(0.0..1.0).contains(&confidence) {
        return None;
    }
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let reach = student.inverse_cdf(f64::midpoint(1.0, confidence)) * error;
    Some(Estimate { middle: mean, low: mean - reach, high: mean + reach, confidence })
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
    let sum_max = blocks * (blocks + 1) / 2;
    let mut ways = vec![0; sum_max + 1];
    ways[0] = 1;
    for rank in 1..=blocks {
        for sum in (rank..=sum_max).rev() {
            ways[sum] += ways[sum - rank];
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
    fn what_cannot_be_judged_is_not() {
        for differences in [vec![0.1; 5], vec![0.1; 21], vec![f64::NAN; 8], vec![]] {
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
