//! Rates that fall, or rise, by the clock: every 2.5 s, whichever cell is measured.
//!
//! The series of all visits are folded by many periods. What comes by chance, and what each visit does by
//! itself (a slow start, a step, noise with a memory), has another phase in each visit; what comes by the
//! clock has one phase in all. So for each frequency the amplitudes of the pieces are added with their
//! phases: the square of the sum, by the sum of the squares, is exponential with mean 1 where phases are
//! random, and as large as the number of pieces where they agree. Pulses that are short for their period
//! have as much in their harmonics, which are added (as in the Z² test of Buccheri et al. 1983).
//!
//! Blind spots: what waits a fixed time after its last end is no clock, and loses its phase; periods that the
//! intervals of the series cannot show; visits that themselves begin by a clock and start slowly.

use std::f64::consts::TAU;

/// Periods that are looked for, in seconds.
pub const SHORTEST: f64 = 0.3;
/// The longest one.
pub const LONGEST: f64 = 10.0;

/// Rows of a piece at most: longer series are cut. A slope within a piece is taken off.
const PIECE_ROWS: usize = 50;
/// Fewer pieces agree by chance.
const PIECES_MIN: usize = 8;
/// What lies later is not looked at: a frequency is known to the inverse of the time.
const SECONDS_MAX: f64 = 3_600.0;
/// How many harmonics are added; each is tried.
const HARMONICS: [usize; 3] = [1, 3, 8];
/// Trials between two frequencies that are independent.
const OVERSAMPLING: f64 = 4.0;
/// So rarely chance alone makes one. Noise with a memory does so more often.
const CHANCE: f64 = 1e-5;
/// Phases of a period that are told apart.
const PHASES: usize = 20;
/// Series with so many visits have the mean of all at each row taken off: what every visit does.
const VISITS_OF_A_PROFILE: usize = 6;
/// Fewer requests in a row say little.
const REQUESTS_MIN: f64 = 2.0;

/// The series of a visit.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Its cell: rates are compared with those of the same cell.
    pub cell: u32,
    /// When it began, in seconds.
    pub start: f64,
    /// Requests in each interval, all whole.
    pub counts: Vec<f64>,
}

/// What comes by the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// In seconds.
    pub seconds: f64,
    /// How likely one that strong would come about in a run like this without any.
    pub chance: f64,
    /// The part of each period in which the rate is another: 0.05 to 0.5.
    pub share: f64,
    /// The rate in that part by the rate in the rest.
    pub ratio: f64,
    /// Pieces of visits that it was seen over.
    pub pieces: usize,
}

/// A part of a visit, less what is its own.
struct Piece {
    /// Of its middle.
    at: f64,
    values: Vec<f64>,
}

/// Finds the strongest period.
///
/// * `step`: length of an interval of the series, in seconds.
/// * `None` where none is so strong that chance makes it in one of 100,000 such runs, or where the visits are too
///   few or too short to tell.
pub fn find(visits: &[Visit], step: f64) -> Option<Period> {
    if !(step > 0.0 && step < 0.34 * SHORTEST) || visits.iter().any(|v| !v.start.is_finite()) {
        return None;
    }
    let visits = &early(visits, step);
    let relative = relative(visits);
    let pieces = pieces(visits, &relative, step);
    if pieces.len() < PIECES_MIN {
        return None;
    }
    let (frequency, chance) = strongest(&pieces, step)?;
    let folded = Folded { visits, relative: &relative, step };
    let seconds = folded.fundamental(1.0 / frequency);
    let pulse = folded.pulse(seconds)?;
    Some(Period { seconds, chance, share: pulse.share, ratio: pulse.ratio, pieces: pieces.len() })
}

/// What was measured in the first hour.
fn early(visits: &[Visit], step: f64) -> Vec<Visit> {
    let first = visits.iter().map(|visit| visit.start).fold(f64::INFINITY, f64::min);
    let rows = |visit: &Visit| ((SECONDS_MAX - (visit.start - first)) / step).max(0.0) as usize;
    let part = |visit: &Visit| {
        let counts = visit.counts.iter().take(rows(visit)).copied().collect();
        Visit { start: visit.start - first, counts, ..*visit }
    };
    visits.iter().map(part).filter(|visit: &Visit| !visit.counts.is_empty()).collect()
}

/// Each row's rate by the median of its cell, less 1, and at most 1: a single outlier is no period.
fn relative(visits: &[Visit]) -> Vec<Vec<f64>> {
    let mut cells: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for visit in visits {
        cells.entry(visit.cell).or_default().extend(&visit.counts);
    }
    let medians: std::collections::BTreeMap<u32, f64> = cells
        .into_iter()
        .filter_map(|(cell, mut counts)| {
            counts.sort_unstable_by(f64::total_cmp);
            let median = *counts.get(counts.len() / 2)?;
            (median >= REQUESTS_MIN).then_some((cell, median))
        })
        .collect();
    let of_visit = |visit: &Visit| {
        let median = medians.get(&visit.cell);
        let of = |median: &f64| {
            visit.counts.iter().map(|n| (n / median - 1.0).clamp(-1.0, 1.0)).collect()
        };
        median.map(of).unwrap_or_default()
    };
    visits.iter().map(of_visit).collect()
}

fn pieces(visits: &[Visit], relative: &[Vec<f64>], step: f64) -> Vec<Piece> {
    let profile = profile(relative);
    let mut pieces = Vec::new();
    for (visit, values) in visits.iter().zip(relative) {
        let parts = values.len().div_ceil(PIECE_ROWS).max(1);
        let rows = values.len() / parts;
        if rows < 5 {
            continue;
        }
        for part in 0..parts {
            let from = part * rows;
            let own = |row: usize| values[row] - profile.get(row).copied().unwrap_or(0.0);
            let values = without_slope((from..from + rows).map(own).collect());
            let at = visit.start + (from as f64 + rows as f64 / 2.0) * step;
            pieces.push(Piece { at, values });
        }
    }
    pieces
}

/// What all visits do alike after their start.
fn profile(relative: &[Vec<f64>]) -> Vec<f64> {
    let longest = relative.iter().map(Vec::len).max().unwrap_or(0).min(PIECE_ROWS);
    let mean = |row: usize| {
        let (mut sum, mut count) = (0.0, 0usize);
        for value in relative.iter().filter_map(|values| values.get(row)) {
            sum += value;
            count += 1;
        }
        if count < VISITS_OF_A_PROFILE { 0.0 } else { sum / count as f64 }
    };
    (0..longest).map(mean).collect()
}

fn without_slope(mut values: Vec<f64>) -> Vec<f64> {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (mut products, mut squares) = (0.0, 0.0);
    for (row, value) in values.iter().enumerate() {
        let x = row as f64 - middle;
        products += x * value;
        squares += x * x;
    }
    let slope = products / squares;
    for (row, value) in values.iter_mut().enumerate() {
        *value -= mean + slope * (row as f64 - middle);
    }
    values
}

/// The frequency whose phases agree most, and how likely that is by chance.
fn strongest(pieces: &[Piece], step: f64) -> Option<(f64, f64)> {
    let first = pieces.iter().map(|piece| piece.at).fold(f64::INFINITY, f64::min);
    let last = pieces.iter().map(|piece| piece.at).fold(f64::NEG_INFINITY, f64::max);
    let longest = pieces.iter().map(|piece| piece.values.len()).max()? as f64 * step;
    let span = last - first + longest;
    let apart = 1.0 / (OVERSAMPLING * span);
    let trials = (1.0 / SHORTEST / apart) as usize;
    let agreement = agreement(pieces, step, apart, trials, first);
    let lowest = (1.0 / LONGEST / apart).ceil() as usize;
    let independent = trials as f64 / OVERSAMPLING * 2.0 * HARMONICS.len() as f64;
    // ln of the chance of the best number of harmonics at a frequency.
    let chance = |at: usize| {
        let of = |harmonics: usize| {
            let terms = (1..=harmonics).filter_map(|h| agreement.get(at * h));
            let (sum, count) = terms.fold((0.0, 0), |(sum, count), z| (sum + z, count + 1));
            ln_gamma_tail(count, sum)
        };
        HARMONICS.into_iter().map(of).fold(0.0, f64::min)
    };
    let best = (lowest..trials).min_by(|&a, &b| chance(a).total_cmp(&chance(b)))?;
    let by_chance = (chance(best).exp() * independent).min(1.0);
    (by_chance <= CHANCE).then_some((best as f64 * apart, by_chance))
}

/// For each multiple of `apart`: how well the phases of the pieces agree.
fn agreement(pieces: &[Piece], step: f64, apart: f64, trials: usize, first: f64) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0, 0.0); trials];
    for piece in pieces {
        let rows = piece.values.len() as f64;
        // Within a piece the phase moves so slowly with the frequency that few are enough.
        let coarse = 1.0 / (16.0 * rows * step);
        let amplitudes: Vec<(f64, f64)> = (0..=(trials as f64 * apart / coarse) as usize + 1)
            .map(|k| amplitude(&piece.values, k as f64 * coarse * step))
            .collect();
        let turn = TAU * apart * (piece.at - first);
        let (turn_re, turn_im) = (turn.cos(), turn.sin());
        let (mut re, mut im) = (1.0, 0.0);
        for (k, sum) in sums.iter_mut().enumerate() {
            let place = (k as f64 * apart / coarse + 0.5) as usize;
            let (a, b) = amplitudes.get(place).copied().unwrap_or_default();
            sum.0 += a * re - b * im;
            sum.1 += a * im + b * re;
            sum.2 += a * a + b * b;
            (re, im) = (re * turn_re - im * turn_im, re * turn_im + im * turn_re);
            if k % 1024 == 1023 {
                let length = re.hypot(im);
                (re, im) = (re / length, im / length);
            }
        }
    }
    let of = |(re, im, squares): (f64, f64, f64)| {
        if squares > 0.0 { (re * re + im * im) / squares } else { 0.0 }
    };
    sums.into_iter().map(of).collect()
}

/// Of values about their middle, at so many turns from one to the next.
fn amplitude(values: &[f64], turns: f64) -> (f64, f64) {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (turn_re, turn_im) = ((TAU * turns).cos(), (TAU * turns).sin());
    let start = -TAU * turns * middle;
    let (mut re, mut im) = (start.cos(), start.sin());
    let mut sum = (0.0, 0.0);
    for value in values {
        sum.0 += value * re;
        sum.1 += value * im;
        (re, im) = (re * turn_re - im * turn_im, re * turn_im + im * turn_re);
    }
    sum
}

/// ln of the chance that `count` exponential values of mean 1 make `sum` or more.
fn ln_gamma_tail(count: usize, sum: f64) -> f64 {
    let (mut term, mut all) = (1.0, 0.0);
    for k in 0..count {
        all += term;
        term *= sum / (k as f64 + 1.0);
    }
    -sum + f64::ln(all)
}

/// Series to be folded by a period.
struct Folded<'a> {
    visits: &'a [Visit],
    relative: &'a [Vec<f64>],
    step: f64,
}

/// The part of a period in which the rate is another.
struct Pulse {
    share: f64,
    ratio: f64,
}

impl Folded<'_> {
    /// For each of so many phases the sum of its rows' rates, and how many they are.
    fn sums(&self, seconds: f64, phases: usize) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); phases];
        for (visit, values) in self.visits.iter().zip(self.relative) {
            for (row, value) in values.iter().enumerate() {
                let at = (visit.start + (row as f64 + 0.5) * self.step) / seconds;
                let phase = (at.rem_euclid(1.0) * phases as f64) as usize;
                if let Some(sum) = sums.get_mut(phase) {
                    *sum = (sum.0 + 1.0 + value, sum.1 + 1.0);
                }
            }
        }
        sums
    }

    fn pulse(&self, seconds: f64) -> Option<Pulse> {
        let sums = self.sums(seconds, PHASES);
        let rates: Vec<f64> =
            sums.iter().filter(|(_, rows)| *rows > 0.0).map(|(sum, rows)| sum / rows).collect();
        let mut sorted = rates.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&low, &usual, &high) =
            (sorted.first()?, sorted.get(sorted.len() / 2)?, sorted.last()?);
        let extreme = if usual - low >= high - usual { low } else { high };
        let (inside, outside): (Vec<f64>, Vec<f64>) =
            rates.iter().partition(|rate| (*rate - usual) / (extreme - usual) > 0.5);
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let ratio = mean(&inside) / mean(&outside);
        let share = inside.len() as f64 / rates.len() as f64;
        ratio.is_finite().then_some(Pulse { share, ratio })
    }

    /// The period of which the strongest one is a part or a multiple: the phases of all of these agree. A
    /// multiple explains as much as the true one, and its parts explain half of that or less: so it is the
    /// shortest that explains nearly as much as any.
    fn fundamental(&self, strongest: f64) -> f64 {
        const UP_TO: u32 = 10;
        const NEARLY: f64 = 0.75;
        let values = || self.relative.iter().flatten();
        let rows = values().count() as f64;
        let mean = values().sum::<f64>() / rows;
        let all: f64 = values().map(|value| (value - mean).powi(2)).sum();
        let explained = |seconds: f64| {
            let phases = ((2.0 * seconds / self.step).round() as usize).max(6);
            let of = |(sum, rows): &(f64, f64)| rows * (sum / rows - 1.0 - mean).powi(2);
            let sums = self.sums(seconds, phases);
            let sum: f64 = sums.iter().filter(|(_, rows)| *rows > 0.0).map(of).sum();
            // Chance explains as much for each phase as for each row of the rest.
            sum - phases as f64 * (all - sum) / (rows - phases as f64).max(1.0)
        };
        let periods = (1..=UP_TO).flat_map(|times| (1..=UP_TO).map(move |parts| (times, parts)));
        let mut periods: Vec<(f64, f64)> = periods
            .map(|(times, parts)| strongest * f64::from(times) / f64::from(parts))
            .filter(|seconds| (SHORTEST..=LONGEST).contains(seconds))
            .map(|seconds| (seconds, explained(seconds)))
            .collect();
        periods.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let most = periods.iter().map(|(_, explained)| *explained).fold(0.0, f64::max);
        let shortest = periods.iter().find(|(_, explained)| *explained >= NEARLY * most);
        shortest.map_or(strongest, |(seconds, _)| *seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    const STEP: f64 = 0.1;

    /// Visits of 2 s whose rate is less, or more, in the first tenth of each period.
    fn visits(count: usize, period: f64, ratio: f64) -> Vec<Visit> {
        let mut random = Random::new(7);
        let mut at = 0.0;
        let visit = |number: usize| {
            at += 0.5 + 0.5 * random.unit();
            let start = at;
            at += 2.0;
            let mut row = |row: usize| {
                let phase = ((start + row as f64 * STEP) / period).fract();
                let rate = if phase < 0.1 { ratio } else { 1.0 };
                100.0 * rate * (1.0 + 0.05 * random.normal())
            };
            Visit { cell: number as u32 % 3, start, counts: (0..20).map(&mut row).collect() }
        };
        (0..count).map(visit).collect()
    }

    #[test]
    fn what_comes_by_the_clock_is_found() {
        for (period, ratio) in [(2.5, 0.2), (0.9, 0.5), (7.0, 0.3), (3.0, 1.8)] {
            let found = find(&visits(60, period, ratio), STEP).unwrap();
            assert!((found.seconds / period - 1.0).abs() < 0.01, "{period}: {found:?}");
            assert!((found.ratio - ratio).abs() < 0.25, "{ratio}: {found:?}");
            assert!(found.share < 0.25 && found.chance < 1e-6 && found.pieces == 60, "{found:?}");
        }
    }

    #[test]
    fn what_does_not_is_not() {
        assert_eq!(find(&visits(60, 2.5, 1.0), STEP), None);
        // Each visit by itself, wherever it begins.
        let mut slow_starts = visits(60, 2.5, 1.0);
        slow_starts.iter_mut().for_each(|visit| visit.counts[..4].fill(10.0));
        assert_eq!(find(&slow_starts, STEP), None);
    }

    #[test]
    fn too_little_tells_nothing() {
        assert_eq!(find(&visits(7, 2.5, 0.2), STEP), None);
        assert_eq!(find(&visits(60, 2.5, 0.2), 0.2), None, "rows that are too long");
        assert_eq!(find(&[], STEP), None);
        let mut few = visits(60, 2.5, 0.2);
        few.iter_mut().flat_map(|visit| &mut visit.counts).for_each(|n| *n = (*n / 100.0).floor());
        assert_eq!(find(&few, STEP), None, "requests that are too few");
        let mut nowhere = visits(60, 2.5, 0.2);
        nowhere[3].start = f64::NAN;
        assert_eq!(find(&nowhere, STEP), None);
        // A run that was resumed years later has no more than its beginning to tell.
        let mut resumed = visits(60, 2.5, 0.2);
        resumed.iter_mut().skip(5).for_each(|visit| visit.start += 1e9);
        assert_eq!(find(&resumed, STEP), None);
        let mut both = visits(60, 2.5, 0.2);
        both.extend(resumed.drain(5..));
        assert!(find(&both, STEP).is_some_and(|found| (found.seconds - 2.5).abs() < 0.02));
    }
}
