//! Where a series changes its level.
//!
//! Penalized least squares: of all ways to cut the series, the one with the least squared
//! distance to the segments' means plus a penalty per cut. The penalty is what keeps noise from
//! being cut, and the noise of a storage device is correlated: neighbouring seconds are alike.
//! So spread and correlation are estimated from the series' differences, which a change of
//! level hardly touches, and the penalty grows with the correlation.

use std::f64::consts::SQRT_2;

/// Penalty by `g s^2 ln n`: s the spread, g what the correlation makes of it, n the length.
pub const PENALTY: f64 = 4.0;
/// Levels closer than this ratio are one.
pub const RATIO_MIN: f64 = 1.03;
/// What another place may fit worse by, in squares of the noise, and still be possible: 97.5 %, as
/// Hawkins 1977 and Yao 1987 have it.
const PLACE_LOSS: f64 = 8.8;
/// A value differs from its level by so many deviations at most, and no level is known to 1 %.
const DEVIATIONS: f64 = 3.0;
const NOISE_MIN: f64 = 0.01;
/// Fewest values of a level: those next to a change may have had it in them. At an end of the series
/// one of two is next to none.
const INNER_MIN: usize = 3;
const OUTER_MIN: usize = 2;
/// Differences beyond this many robust deviations are cut to it before their correlation is
/// taken: a single step would otherwise read as correlation, and hide behind the penalty for it.
const DIFFERENCE_MAX: f64 = 2.5;
/// Beyond this many they are no noise and left out. A step that came within a value shows as two of one
/// direction, and these would read as correlation however short they were cut.
const DIFFERENCE_OUT: f64 = 5.0;
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

/// A series as levels, with what lies between two of them left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// At least one, in order. A value in which a change came is in none.
    pub segments: Vec<Segment>,
    /// The changes between them, one fewer.
    pub steps: Vec<Step>,
}

/// How far a value may lie from its level, as a difference of logarithms, before it counts as one in
/// which the level changed: a change in so small a part of a value's time is not seen.
pub fn unseen(sigma: f64) -> f64 {
    DEVIATIONS * sigma.max(NOISE_MIN)
}

/// Where one level goes over into the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// All values before this one may be of the level before: it did not come sooner.
    pub low: usize,
    /// This value is of the level after: it did not come later. The same where noise and values leave
    /// no other place.
    pub high: usize,
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

    /// The same cuts where the series has them. A segment has a shortest length so that noise is not
    /// cut; once it is, a change nearer to another or to an end is where it fits best.
    #[must_use]
    pub fn settled(mut self, series: &[f64]) -> Self {
        let sums = Sums::new(series);
        // Each move lessens the squares, so this ends; it hardly ever takes three rounds.
        for _ in 0..self.segments.len() {
            let mut moved = false;
            for place in 1..self.segments.len() {
                let (start, cut) = (self.segments[place - 1].start, self.segments[place].start);
                let end = self.segments[place].end;
                let cost = |cut: usize| sums.cost(start, cut) + sums.cost(cut, end);
                let best = (start + 1..end).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
                if let Some(best) = best.filter(|&best| cost(best) < cost(cut)) {
                    self.segments[place - 1] = segment(series, start, best);
                    self.segments[place] = segment(series, best, end);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        self
    }

    /// The same with the noise between neighbours of one level, where that is less: of a few values the
    /// change itself is a good part of what all their differences say.
    #[must_use]
    pub fn quiet(&self, series: &[f64]) -> Self {
        let parts = self.segments.iter().filter_map(|part| series.get(part.start..part.end));
        let differences: Vec<f64> =
            parts.flat_map(|part| part.windows(2).map(|pair| (pair[1] - pair[0]).abs())).collect();
        let mut noise = self.noise;
        if !differences.is_empty() {
            noise.sigma = noise.sigma.min(1.4826 * median(differences) / SQRT_2);
        }
        Self { segments: self.segments.clone(), noise }
    }

    /// Its levels, each by values that are of it alone. A value is a mean over its time: one in which
    /// the level changed lies between both, and is of neither. What is too short to have a value of
    /// its own is no level, and what lies on both sides of it is one change.
    ///
    /// * `series`: what it was made of.
    pub fn levels(&self, series: &[f64]) -> Levels {
        let last = self.segments.len().saturating_sub(1);
        let long = self.segments.iter().enumerate().filter(|(place, part)| {
            let least = if *place == 0 || *place == last { OUTER_MIN } else { INNER_MIN };
            last == 0 || part.end - part.start >= least
        });
        let mut segments = one_where_alike(series, long.map(|(_, part)| *part));
        // Short ones all through: nothing is known.
        if segments.is_empty() {
            segments.push(segment(series, 0, series.len()));
        }
        let limit = unseen(self.noise.sigma);
        let untrimmed = segments.clone();
        for (place, part) in segments.iter_mut().enumerate() {
            let before = place.checked_sub(1).and_then(|before| untrimmed.get(before));
            let after = untrimmed.get(place + 1);
            // Against the part's other values: of two, one in which the change came moves their middle
            // half of the way to itself.
            let between = |at: usize, other: &Segment, part: &Segment| {
                let own = (part.start..part.end).filter(|k| *k != at).map(|k| series[k]).collect();
                let (middle, value) = (median(own), series[at]);
                let limit = if part.end - part.start == 2 { limit * SQRT_2 } else { limit };
                (value - middle).abs() > limit && (value - middle) * (other.mean - middle) > 0.0
            };
            if part.end - part.start > 1 && before.is_some_and(|b| between(part.start, b, part)) {
                part.start += 1;
            }
            if part.end - part.start > 1 && after.is_some_and(|a| between(part.end - 1, a, part)) {
                part.end -= 1;
            }
            *part = segment(series, part.start, part.end);
        }
        // What set two apart may have been the value between: then they are one.
        let segments = one_where_alike(series, segments.into_iter());
        let steps = segments.windows(2).map(|pair| self.step(series, &pair[0], &pair[1]));
        Levels { steps: steps.collect(), segments }
    }

    /// Where it may have come, as far as the noise lets tell.
    fn step(&self, series: &[f64], early: &Segment, late: &Segment) -> Step {
        let possible = PLACE_LOSS * self.noise.inflation() * self.noise.sigma.powi(2);
        let loss = |value: &f64| (value - early.mean).powi(2) - (value - late.mean).powi(2);
        let far = |values: &mut dyn Iterator<Item = f64>| {
            let mut sum = 0.0;
            let sums = values.map(|value| {
                sum += value;
                sum
            });
            // The farthest place that is hardly worse; the best one may be a little off.
            let sums: Vec<f64> = sums.collect();
            sums.iter().rposition(|sum| *sum <= possible).map_or(0, |place| place + 1)
        };
        let back = far(&mut series[early.start + 1..early.end].iter().rev().map(|x| -loss(x)));
        let on = far(&mut series[late.start..late.end - 1].iter().map(loss));
        Step { low: early.end - back, high: late.start + on }
    }

    /// The smallest change of level that would hardly be missed, as a difference: in one as far from
    /// both ends as a segment is long at least.
    pub fn seen_from(&self, length: usize, segment_min: usize) -> f64 {
        let (n, short) = (length as f64, segment_min.max(1) as f64);
        let chance = DEVIATIONS * self.noise.sigma * self.noise.inflation().sqrt();
        let gain = self.noise.penalty(length).sqrt() + chance;
        match n > 2.0 * short {
            true => (gain * (n / (short * (n - short))).sqrt()).max(RATIO_MIN.ln()),
            false => f64::INFINITY,
        }
    }

    /// Where the level changes: the first value of each segment but the first.
    pub fn points(&self) -> impl Iterator<Item = usize> {
        self.segments.iter().skip(1).map(|segment| segment.start)
    }
}

/// Neighbours that are closer than [`RATIO_MIN`] taken together.
fn one_where_alike(series: &[f64], parts: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let mut apart: Vec<Segment> = Vec::new();
    for part in parts {
        match apart.last_mut() {
            Some(before) if (part.mean - before.mean).abs() < RATIO_MIN.ln() => {
                *before = segment(series, before.start, part.end);
            }
            _ => apart.push(part),
        }
    }
    apart
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
    let tame = |difference: &f64| {
        let own = difference - centre;
        (own.abs() <= DIFFERENCE_OUT * spread).then(|| own.clamp(-limit, limit))
    };
    let tame: Vec<Option<f64>> = differences.iter().map(tame).collect();
    let squares: f64 = tame.iter().flatten().map(|d| d * d).sum();
    let product = |pair: &[Option<f64>]| Some(pair[0]? * pair[1]?);
    let products: f64 = tame.windows(2).filter_map(product).sum();
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

    /// Seconds of a rate that falls from 50 to 30 at a time, each a mean over its second.
    fn falls_at(at: f64, seconds: usize, sigma: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let second = |k: usize| {
            let early = (at - k as f64).clamp(0.0, 1.0);
            (50.0 * early + 30.0 * (1.0 - early)).ln() + sigma * random.normal()
        };
        (0..seconds).map(second).collect()
    }

    #[test]
    fn a_step_near_an_end_or_within_a_value_has_true_levels() {
        let mut missed = 0;
        for (at, sigma) in [3.0, 57.0, 12.5, 20.5, 6.0, 30.0, 2.3, 57.6]
            .into_iter()
            .flat_map(|at| [(at, 0.0), (at, 0.03)])
        {
            for seed in 0..8 {
                let series = falls_at(at, 60, sigma, seed);
                let levels = changes(&series, 5).unwrap().settled(&series).levels(&series);
                // Noise may look so correlated that nothing is cut, or be cut itself.
                if sigma > 0.0 && levels.steps.len() != 1 {
                    missed += 1;
                    continue;
                }
                let [early, late] = levels.segments[..] else {
                    panic!("{at} {sigma} {seed}: {levels:?}")
                };
                let near = |level: f64, rate: f64| (level.exp() / rate - 1.0).abs() < 0.05;
                assert!(
                    near(early.mean, 50.0) && near(late.mean, 30.0),
                    "{at} {sigma}: {levels:?}"
                );
                let [step] = levels.steps[..] else { panic!("{levels:?}") };
                let (low, high) = (step.low as f64 - 0.5, step.high as f64 + 0.5);
                assert!(low <= at && at <= high && high - low < 4.0, "{at} {sigma}: {levels:?}");
            }
        }
        assert!(missed <= 6, "{missed} of 64");
    }

    #[test]
    fn a_change_within_a_value_of_a_short_series_is_no_correlation() {
        // Its two differences of one direction are not of the noise.
        let found = |seed: &u64| {
            let series = falls_at(10.5, 20, 0.02, *seed);
            changes(&series, 5).unwrap().segments.len() > 1
        };
        let times = (0..50).filter(found).count();
        assert!(times >= 40, "{times} of 50");
        let quiet = |seed: &u64| {
            let series = noisy(&[(0.0, 20)], 0.02, *seed);
            changes(&series, 5).unwrap().segments.len() > 1
        };
        assert!((0..200).filter(quiet).count() <= 4);
    }

    #[test]
    fn what_has_no_value_of_its_own_is_no_level() {
        // Half of a second at the start was faster, and who knows by how much.
        for at in [0.5, 59.5] {
            let series = falls_at(at, 60, 0.0, 1);
            let levels = changes(&series, 5).unwrap().settled(&series).levels(&series);
            assert_eq!(levels.steps, [], "{at}: {levels:?}");
        }
        // A hair of noise, or a constant is cut at will: a second of nothing between two.
        let mut dip = falls_at(60.0, 60, 0.0, 1);
        (dip[20], dip[21]) = (3.0, 3.2);
        let levels = changes(&dip, 5).unwrap().settled(&dip).levels(&dip);
        assert_eq!(levels.steps, [], "{levels:?}");
        dip[22] = 3.0;
        let levels = changes(&dip, 5).unwrap().settled(&dip).levels(&dip);
        assert_eq!(levels.steps, [Step { low: 20, high: 20 }, Step { low: 23, high: 23 }]);
    }

    #[test]
    fn a_small_step_in_much_noise_has_wide_bounds() {
        let (mut within, mut found) = (0, 0);
        for seed in 0..100 {
            let series = noisy(&[(0.0, 60), (-0.06, 60)], 0.05, seed);
            let levels = changes(&series, 5).unwrap().settled(&series).levels(&series);
            let [step] = levels.steps[..] else { continue };
            found += 1;
            within += usize::from(step.low <= 60 && 60 <= step.high);
        }
        assert!(found > 60 && within * 100 >= found * 95, "{within} of {found}");
    }

    #[test]
    fn what_would_be_seen_is_seen() {
        let mut found = 0;
        for seed in 0..200 {
            let flat = noisy(&[(0.0, 60)], 0.03, seed);
            let step = changes(&flat, 5).unwrap().seen_from(60, 5);
            let series = noisy(&[(0.0, 5), (step, 55)], 0.03, seed);
            found += usize::from(changes(&series, 5).unwrap().segments.len() > 1);
        }
        assert!(found >= 180, "{found} of 200");
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
        let found = changes(&huge, 1).unwrap();
        assert!(!found.settled(&huge).levels(&huge).segments.is_empty());
    }
}
