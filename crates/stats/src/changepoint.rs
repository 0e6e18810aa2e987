//! Where a series changes its level.
//!
//! Penalized least squares: of all ways to cut the series, the one with the least squared
//! distance to the segments' means plus a penalty per cut. The penalty is what keeps noise from
//! being cut, and the noise of a storage device is correlated: neighbouring seconds are alike.
//! So spread and correlation are estimated from the series' differences, which a change of
//! level hardly touches, and the penalty grows with the correlation.

/// Penalty by `g s^2 ln n`: s the spread, g what the correlation makes of it, n the length.
pub const PENALTY: f64 = 4.0;
/// Levels closer than this ratio are one.
pub const RATIO_MIN: f64 = 1.03;
/// Differences beyond this many robust deviations are cut to it before their correlation is
/// taken: a single step would otherwise read as correlation, and hide behind the penalty for it.
const DIFFERENCE_MAX: f64 = 2.5;
/// No series is quieter: a constant one would have a penalty of nothing.
const SIGMA_MIN: f64 = 1e-4;
const RHO_MAX: f64 = 0.95;

/// A series cut where its level changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// At least one, in order, covering the series.
    pub segments: Vec<Segment>,
    /// What the penalty was made from.
    pub noise: Noise,
}

/// A part of a series with one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Its first value.
    pub start: usize,
    /// One past its last.
    pub end: usize,
    /// Mean of its values.
    pub mean: f64,
}

/// Noise about a level that may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation.
    pub sigma: f64,
    /// Correlation of neighbours, in `0.0..=0.95`.
    pub rho: f64,
}

impl Noise {
    /// How many correlated values are worth one: `(1 + rho) / (1 - rho)`.
    pub fn inflation(&self) -> f64 {
        (1.0 + self.rho) / (1.0 - self.rho)
    }

    /// What a cut of a series of so many values must gain in squares to be made.
    pub fn penalty(&self, length: usize) -> f64 {
        PENALTY * self.inflation() * self.sigma.powi(2) * (length.max(1) as f64).ln()
    }
}

impl Changes {
    /// Squared distance of a series to its levels, with the penalties of the cuts.
    pub fn cost(&self, series: &[f64]) -> f64 {
        let part = |segment: &Segment| -> f64 {
            let values = series.get(segment.start..segment.end).unwrap_or_default();
            values.iter().map(|value| (value - segment.mean).powi(2)).sum()
        };
        let cuts = self.segments.len().saturating_sub(1) as f64;
        self.segments.iter().map(part).sum::<f64>() + cuts * self.noise.penalty(series.len())
    }

    /// Where the level changes: the first value of each segment but the first.
    pub fn points(&self) -> impl Iterator<Item = usize> {
        self.segments.iter().skip(1).map(|segment| segment.start)
    }
}

/// Cuts a series of logarithms where its level changes.
///
/// * `series`: natural logarithms at even steps of time or work; seconds of a stall left out.
/// * `segment_min`: fewest values of a segment; 5 for seconds.
/// * `None` when a value is not finite or the series is shorter than two.
///
/// Levels closer than 3 % are one. A series shorter than two segments is never cut.
///
/// Method: optimal partition (Jackson 2005) with the pruning of Killick, Fearnhead and Eckley
/// 2012, penalty `4 g s^2 ln n`.
pub fn changes(series: &[f64], segment_min: usize) -> Option<Changes> {
    changes_given(series, segment_min, noise(series)?)
}

/// The same with a noise that is known from elsewhere: a series of a few values cannot tell
/// its own.
pub fn changes_given(series: &[f64], segment_min: usize, noise: Noise) -> Option<Changes> {
    if series.is_empty() || series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let cuts = partition(series, segment_min, noise.penalty(series.len()));
    Some(Changes { segments: merged(series, &cuts), noise })
}

/// Spread and correlation of the noise in a series, from the differences of neighbours.
///
/// `sigma = 1.4826 MAD(differences) / sqrt(2 (1 - rho))`, `rho = 1 + 2 c` with `c` the
/// correlation of neighbouring differences. `None` as in [`changes`].
pub fn noise(series: &[f64]) -> Option<Noise> {
    if series.len() < 2 || series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let differences: Vec<f64> = series.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let centre = median(differences.clone());
    let deviations = differences.iter().map(|d| (d - centre).abs()).collect();
    let spread = 1.4826 * median(deviations);
    let limit = DIFFERENCE_MAX * spread;
    let tame: Vec<f64> = differences.iter().map(|d| (d - centre).clamp(-limit, limit)).collect();
    let squares: f64 = tame.iter().map(|d| d * d).sum();
    let products: f64 = tame.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let rho = if squares > 0.0 { 1.0 + 2.0 * products / squares } else { 0.0 };
    let rho = rho.clamp(0.0, RHO_MAX);
    let sigma = (spread / (2.0 * (1.0 - rho)).sqrt()).max(SIGMA_MIN);
    Some(Noise { sigma, rho })
}

/// The cuts of least cost: the ends of the segments but the last, rising.
///
/// * `penalty`: per cut, in squares of the series' unit.
pub fn partition(series: &[f64], segment_min: usize, penalty: f64) -> Vec<usize> {
    let n = series.len();
    let segment_min = segment_min.max(1);
    let sums = Sums::new(series);
    // `best[end]`: cost of the best partition of all before `end`, a penalty for each segment.
    let mut best = vec![f64::INFINITY; n + 1];
    let mut cut_before = vec![0; n + 1];
    best[0] = -penalty;
    let mut starts = Vec::new();
    for end in segment_min..=n {
        starts.push(end - segment_min);
        // What `middle` beats now it beats for good, once a segment can start there.
        let middle = end - segment_min;
        if best[middle].is_finite() {
            starts.retain(|&start| {
                start + segment_min > middle
                    || best[start] + sums.cost(start, middle) < best[middle]
            });
        }
        for &start in &starts {
            let cost = best[start] + sums.cost(start, end) + penalty;
            if cost < best[end] {
                (best[end], cut_before[end]) = (cost, start);
            }
        }
    }
    let mut cuts = Vec::new();
    let mut end = n;
    while cut_before[end] > 0 {
        end = cut_before[end];
        cuts.push(end);
    }
    cuts.reverse();
    cuts
}

/// Sums of values and squares from the start, about the series' mean for the digits' sake.
struct Sums {
    values: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn new(series: &[f64]) -> Self {
        let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
        let (mut values, mut squares) = (vec![0.0], vec![0.0]);
        let (mut value, mut square) = (0.0, 0.0);
        for x in series {
            value += x - mean;
            square += (x - mean).powi(2);
            values.push(value);
            squares.push(square);
        }
        Self { values, squares }
    }

    /// Squared distance of `start..end` to its mean.
    fn cost(&self, start: usize, end: usize) -> f64 {
        let sum = self.values[end] - self.values[start];
        let squares = self.squares[end] - self.squares[start];
        (squares - sum * sum / (end - start) as f64).max(0.0)
    }
}

/// Segments between cuts, the closest neighbours made one until none are too close.
fn merged(series: &[f64], cuts: &[usize]) -> Vec<Segment> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([series.len()]);
    let mut segments: Vec<Segment> = starts.zip(ends).map(|(s, e)| segment(series, s, e)).collect();
    while let Some((at, distance)) = segments
        .windows(2)
        .map(|pair| (pair[1].mean - pair[0].mean).abs())
        .enumerate()
        .min_by(|a, b| a.1.total_cmp(&b.1))
        && distance < RATIO_MIN.ln()
    {
        let (start, end) = (segments[at].start, segments[at + 1].end);
        segments[at] = segment(series, start, end);
        segments.remove(at + 1);
    }
    segments
}

fn segment(series: &[f64], start: usize, end: usize) -> Segment {
    let values = &series[start..end];
    Segment { start, end, mean: values.iter().sum::<f64>() / values.len().max(1) as f64 }
}

/// Of a list that is not empty.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    f64::midpoint(values[last / 2], values[last.div_ceil(2)])
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

    #[test]
    fn a_step_is_found_where_it_is() {
        let series = noisy(&[(10.0, 40), (9.5, 80)], 0.05, 1);
        let found = changes(&series, 5).unwrap();
        assert_eq!(found.points().collect::<Vec<_>>(), [40]);
        assert!((found.noise.sigma - 0.05).abs() < 0.02, "{:?}", found.noise);
        assert!((found.segments[1].mean - 9.5).abs() < 0.02);
    }

    #[test]
    fn a_step_of_any_height_is_found() {
        for height in [0.3, 1.0, 3.0, 20.0] {
            let series = noisy(&[(0.0, 10), (height, 12)], 0.02, 2);
            let found = changes(&series, 5).unwrap();
            assert_eq!(found.points().collect::<Vec<_>>(), [10], "{height}");
        }
    }

    #[test]
    fn less_than_three_percent_is_no_change() {
        let series = noisy(&[(0.0, 200), (0.02, 200)], 0.001, 3);
        assert_eq!(changes(&series, 5).unwrap().segments.len(), 1);
        let series = noisy(&[(0.0, 200), (0.04, 200)], 0.001, 3);
        assert_eq!(changes(&series, 5).unwrap().points().collect::<Vec<_>>(), [200]);
    }

    #[test]
    fn pruning_changes_nothing() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let levels: Vec<(f64, usize)> =
                (0..5).map(|_| (random.normal(), 3 + random.below(20) as usize)).collect();
            let series = noisy(&levels, 0.5, seed);
            for segment_min in [1, 2, 5] {
                let all = exhaustive(&series, segment_min, 2.0);
                assert_eq!(partition(&series, segment_min, 2.0), all, "seed {seed}");
            }
        }
    }

    /// The same without pruning.
    fn exhaustive(series: &[f64], segment_min: usize, penalty: f64) -> Vec<usize> {
        let sums = Sums::new(series);
        let mut best = vec![(f64::INFINITY, Vec::new()); series.len() + 1];
        best[0].0 = -penalty;
        for end in segment_min..=series.len() {
            for start in 0..=end - segment_min {
                let cost = best[start].0 + sums.cost(start, end) + penalty;
                if cost < best[end].0 {
                    let mut cuts = best[start].1.clone();
                    if start > 0 {
                        cuts.push(start);
                    }
                    best[end] = (cost, cuts);
                }
            }
        }
        best[series.len()].1.clone()
    }

    #[test]
    fn odd_series_do_not_crash() {
        for series in [vec![], vec![1.0], vec![f64::NAN; 9], vec![f64::NEG_INFINITY; 9]] {
            assert_eq!(changes(&series, 5), None);
        }
        assert_eq!(changes(&[7.0; 50], 5).unwrap().segments.len(), 1);
        assert_eq!(changes(&[0.0; 3], 5).unwrap().segments.len(), 1);
        assert_eq!(changes(&[1.0, 9.0], 0).unwrap().segments.len(), 1 + 1);
        let huge = vec![f64::MAX / 4.0, -f64::MAX / 4.0, 0.0, 1.0, f64::MAX / 4.0];
        assert!(changes(&huge, 1).is_some());
    }
}
