//! Whether a series of rounds is steady.
//!
//! Two tests that see different things. [`snia`] looks at five rounds, as the SNIA's Performance
//! Test Specification does: it is quick, and blind to what is slower than five rounds.
//! [`last_half`] looks at half of all there is, so what it cannot see shrinks as the run grows.
//! Neither sees a cliff that has not come yet: only a volume rule does ([`Volume`]).

use serde::Serialize;
use units::Bytes;

use crate::changepoint::{Noise, Segment, changes_given, median, noise};
use crate::trend::least_squares;

/// Rounds that [`snia`] looks at.
pub const SNIA_ROUNDS: usize = 5;
/// Largest minus smallest of them, by their mean, at most.
pub const SNIA_RANGE_MAX: f64 = 0.20;
/// Rise of their fit line from the first to the last, by their mean, at most.
pub const SNIA_RISE_MAX: f64 = 0.10;
/// Fewest rounds for [`last_half`].
pub const LAST_HALF_ROUNDS_MIN: usize = 10;
/// Rise of the fit line over the last half, by its mean, at most.
pub const LAST_HALF_RISE_MAX: f64 = 0.05;

/// A bound that is met exactly must not be lost to rounding.
const ROUNDING: f64 = 1e-9;

/// What the last five rounds are like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Snia {
    /// Their mean, in the unit of the rounds.
    pub mean: f64,
    /// Largest minus smallest, by the mean.
    pub range: f64,
    /// Rise of the least-squares line over the window (four steps), by the mean. Signed.
    pub rise: f64,
}

impl Snia {
    /// Whether both bounds are kept.
    pub fn holds(&self) -> bool {
        self.range <= SNIA_RANGE_MAX + ROUNDING && self.rise.abs() <= SNIA_RISE_MAX + ROUNDING
    }
}

/// SNIA's test on the last [`SNIA_ROUNDS`] of `rounds`.
///
/// * `rounds[round]`: rate of each round, in any unit, in the order of time.
/// * `None` with fewer rounds, one that is not finite, or a mean that is not above 0.
///
/// Method: SNIA Solid State Storage Performance Test Specification 2.0.1, definition 2.1.24.
pub fn snia(rounds: &[f64]) -> Option<Snia> {
    let window = rounds.get(rounds.len().checked_sub(SNIA_ROUNDS)?..)?;
    let (mean, rise) = mean_and_rise(window)?;
    let high = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let low = window.iter().copied().fold(f64::INFINITY, f64::min);
    Some(Snia { mean, range: (high - low) / mean, rise })
}

/// What the last half of all rounds is like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LastHalf {
    /// How many rounds that is.
    pub rounds: usize,
    /// Their mean, in the unit of the rounds.
    pub mean: f64,
    /// Rise of the least-squares line from the first of them to the last, by the mean. Signed.
    pub rise: f64,
}

impl LastHalf {
    /// Whether the bound is kept.
    pub fn holds(&self) -> bool {
        self.rise.abs() <= LAST_HALF_RISE_MAX + ROUNDING
    }
}

/// The slope test on the last half of `rounds`, the smaller half if their number is odd.
///
/// * `rounds` as in [`snia`].
/// * `None` with fewer than [`LAST_HALF_ROUNDS_MIN`], or as in [`snia`].
pub fn last_half(rounds: &[f64]) -> Option<LastHalf> {
    if rounds.len() < LAST_HALF_ROUNDS_MIN {
        return None;
    }
    let window = rounds.get(rounds.len() - rounds.len() / 2..)?;
    let (mean, rise) = mean_and_rise(window)?;
    Some(LastHalf { rounds: window.len(), mean, rise })
}

fn mean_and_rise(window: &[f64]) -> Option<(f64, f64)> {
    let times: Vec<f64> = (0u32..).map(f64::from).take(window.len()).collect();
    let line = least_squares(&times, window)?;
    let mean = window.iter().sum::<f64>() / window.len() as f64;
    (mean > 0.0).then(|| (mean, line.slope * (window.len() - 1) as f64 / mean))
}

/// How much was written, and how much must be before a rate of writes can be called steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Written to the device since it was last known empty, preconditioning included.
    pub written: Bytes,
    /// The part of the device that the test writes to.
    pub active: Bytes,
}

impl Volume {
    /// Whether twice the active range was written: a drive that is written over once can still
    /// have clean blocks that it does not tell of, and falls when they are used up.
    pub fn holds(&self) -> bool {
        self.written.get() >= self.active.get().saturating_mul(2)
    }
}

/// Bytes written one after the other in some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// How many.
    pub bytes: f64,
    /// Seconds that they took, pauses and stalls left out; 0 where nobody knows, as of a ramp: then
    /// the bytes count for the place of what comes after and say nothing of a rate.
    pub seconds: f64,
}

/// A fall of the rate at a place in what is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cliff {
    /// Bytes written before it, as near as can be told.
    pub at_bytes: f64,
    /// Not before so many: the last observation before it had begun.
    pub low_bytes: f64,
    /// Not after so many: the first observation after it had ended.
    pub high_bytes: f64,
    /// Bytes per second before.
    pub before: f64,
    /// Bytes per second after.
    pub after: f64,
}

/// Largest rate after by rate before that is a cliff.
pub const CLIFF_RATIO_MAX: f64 = 0.8;
/// Fewest pieces of the first level: a cache of a few tens of MiB is full after two tenths of a second.
const CLIFF_SEGMENT: usize = 2;
/// Fewest pieces of a level that is not the first: less may be a stutter.
const AFTER_MIN: usize = 5;
/// So large a share of the pieces before may be slower than the middle between both levels, and as
/// large a share of those after faster: more of them, and the rate goes to and fro.
const ASTRAY_MAX: f64 = 0.2;
/// So many pieces on each side must show the whole fall: a slope has it between far ends only.
const NEAR: usize = 5;
/// Looked for in so many pieces, then in all those near what was found.
const PIECES_MAX: usize = 2_000;
/// What another place may fit worse by, in squares of the noise, and still be possible: 97.5 %.
///
/// The distance of the true place to the best one is at most `x` with `(1 - exp(-x / 2))^2`:
/// Hawkins 1977, Yao 1987.
const PLACE_LOSS: f64 = 8.8;
/// A score of pieces may look more correlated than noise is, and the price of a cut would hide a fall
/// to a third. What else makes a cliff keeps noise that lasts from being one.
const RHO_MAX: f64 = 0.8;
/// A rate differs from its level by so many of its deviations at most, and nobody knows it to 1 %.
const DEVIATIONS: f64 = 3.0;
const NOISE_MIN: f64 = 0.01;

/// Cliffs in a series of writes, in bytes and not in time: after one, the same bytes take longer,
/// and time would put it where the slow part happens to end.
///
/// * `pieces`: one after the other, of about the same time each; those that are not finite or
///   negative are passed over, those without bytes too.
/// * The place has the bounds of what was observed: the last piece of the old rate and the first
///   of the new one, as far as noise lets tell which those are.
/// * A fall counts that stays: pieces before are faster and pieces after slower, but for a fifth
///   of each; that is seen in at least 2 pieces before it and 5 after, and for longer than the rate
///   was ever as low before; and that comes at once, not along a slope.
pub fn cliffs(pieces: &[Piece]) -> Vec<Cliff> {
    let seen = observed(pieces);
    let size = seen.len().div_ceil(PIECES_MAX).max(1);
    let coarse: Vec<Observed> = seen.chunks(size).map(Observed::of_all).collect();
    let ln_rates: Vec<f64> = coarse.iter().map(Observed::ln_rate).collect();
    let Some(mut noise) = noise(&ln_rates) else { return Vec::new() };
    let spread = noise.sigma * (1.0 - noise.rho).sqrt();
    noise.rho = noise.rho.min(RHO_MAX);
    noise.sigma = spread / (1.0 - noise.rho).sqrt();
    let Some(changes) = changes_given(&ln_rates, CLIFF_SEGMENT, noise) else { return Vec::new() };
    let inflation = changes.noise.inflation();
    // A piece that the fall came in makes a short segment of its own: no level, a way between two.
    let is_level = |(k, part): &(usize, &Segment)| *k == 0 || part.end - part.start >= AFTER_MIN;
    let levels: Vec<Segment> =
        changes.segments.iter().enumerate().filter(is_level).map(|(_, part)| *part).collect();
    let falls = levels.windows(2).filter_map(|pair| {
        let (early, late) = (pair.first()?, pair.last()?);
        let rates = (early_level(&ln_rates, early, &changes.noise), level(&ln_rates, late));
        let at_once = late.start - early.end <= NEAR && is_steep(&ln_rates, early, late, rates.0);
        let falls = at_once && !is_slope(&ln_rates, early, late);
        if !falls || !stays(&ln_rates, (early.end, late.start), rates) {
            return None;
        }
        let from = early.end.saturating_sub(NEAR).max(early.start) * size;
        let to = ((late.start + NEAR).min(late.end) * size).min(seen.len());
        place(seen.get(from..to)?, rates, inflation)
    });
    falls.collect()
}

fn level(ln_rates: &[f64], part: &Segment) -> f64 {
    median(ln_rates[part.start..part.end].to_vec())
}

/// Of two pieces that are apart the second had the fall in it.
fn early_level(ln_rates: &[f64], part: &Segment, noise: &Noise) -> f64 {
    match ln_rates[part.start..part.end] {
        [first, second] if first - second > DEVIATIONS * noise.sigma.max(NOISE_MIN) => first,
        _ => level(ln_rates, part),
    }
}

/// A piece with its place.
#[derive(Clone, Copy, Debug)]
struct Observed {
    start: f64,
    /// One past its last byte.
    end: f64,
    bytes: f64,
    seconds: f64,
}

impl Observed {
    fn ln_rate(&self) -> f64 {
        (self.bytes / self.seconds).ln()
    }

    /// Of a list that is not empty.
    fn of_all(parts: &[Self]) -> Self {
        Self {
            start: parts.first().map_or(0.0, |part| part.start),
            end: parts.last().map_or(0.0, |part| part.end),
            bytes: parts.iter().map(|part| part.bytes).sum(),
            seconds: parts.iter().map(|part| part.seconds).sum(),
        }
    }
}

fn observed(pieces: &[Piece]) -> Vec<Observed> {
    let mut seen = Vec::new();
    let mut written = 0.0;
    for piece in pieces.iter().filter(|p| p.bytes.is_finite() && p.bytes > 0.0) {
        let end = written + piece.bytes;
        let Piece { bytes, seconds } = *piece;
        if seconds.is_finite() && seconds > 0.0 && (bytes / seconds).ln().is_finite() {
            seen.push(Observed { start: written, end, bytes, seconds });
        }
        written = end;
    }
    if written.is_finite() { seen } else { Vec::new() }
}

/// Whether the rate was higher before, all but always, and lower after, for longer than it was before
/// and came back: a drive that tidies up now and then may do so when the writes end.
fn stays(ln_rates: &[f64], (end, start): (usize, usize), (before, after): (f64, f64)) -> bool {
    let middle = f64::midpoint(before, after);
    let (early, late) = (&ln_rates[..end], &ln_rates[start..]);
    let few = |astray: usize, all: usize| astray as f64 <= ASTRAY_MAX * all as f64;
    let came_back = early.split(|rate| *rate >= middle).map(<[f64]>::len).max().unwrap_or(0);
    after - before < CLIFF_RATIO_MAX.ln()
        && late.len() > came_back
        && few(early.iter().filter(|rate| **rate < middle).count(), early.len())
        && few(late.iter().filter(|rate| **rate > middle).count(), late.len())
}

/// Whether the pieces next to a fall are apart already. The one on each side that the fall may have
/// come in is left out where there are others.
fn is_steep(ln_rates: &[f64], early: &Segment, late: &Segment, before: f64) -> bool {
    let near = &ln_rates[early.end.saturating_sub(NEAR + 1).max(early.start)..early.end];
    let before = if near.len() > 2 { median(near[..near.len() - 1].to_vec()) } else { before };
    let near = &ln_rates[late.start..(late.start + NEAR + 1).min(late.end)];
    let after = median(near[1..].to_vec());
    // Along a slope the level falls as fast within the sides as between them.
    let own = &ln_rates[early.start.max(early.end.saturating_sub(NEAR + 1))..early.end];
    let fall = |rates: &[f64]| match rates {
        [first, .., last] => (first - last).max(0.0),
        _ => 0.0,
    };
    let sides = if own.len() > 2 { fall(&own[..own.len() - 1]) + fall(&near[1..]) } else { 0.0 };
    after - before < CLIFF_RATIO_MAX.ln() && before - after > 2.0 * sides
}

/// Whether a straight line through both levels fits them better than two levels do: cut anywhere,
/// a rate that falls all the time is higher before than after.
fn is_slope(ln_rates: &[f64], early: &Segment, late: &Segment) -> bool {
    let squares = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
        part.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>()
    };
    let (before, after) = (&ln_rates[early.start..early.end], &ln_rates[late.start..late.end]);
    let both: Vec<f64> = [before, after].concat();
    let places: Vec<f64> =
        (early.start..early.end).chain(late.start..late.end).map(|k| k as f64).collect();
    let Some(line) = least_squares(&places, &both) else { return false };
    let off = |(x, y): (&f64, &f64)| (y - line.at(*x)).powi(2);
    let by_line: f64 = places.iter().zip(&both).map(off).sum();
    by_line < squares(before) + squares(after)
}

/// Where among `near` the rate falls from one level to the other, both as logarithms.
///
/// * `inflation`: how many correlated pieces are worth one.
fn place(near: &[Observed], (before, after): (f64, f64), inflation: f64) -> Option<Cliff> {
    let ln_rates: Vec<f64> = near.iter().map(Observed::ln_rate).collect();
    // Squares lost, less those of a fall before the first, at every cut between two pieces.
    let mut losses = Vec::with_capacity(near.len());
    let mut loss = 0.0;
    for rate in &ln_rates {
        loss += (rate - before).powi(2) - (rate - after).powi(2);
        losses.push(loss);
    }
    losses.pop();
    let (best, least) = losses.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let cut = best + 1;
    let off = |rates: &[f64], level: f64| rates.iter().map(|r| (r - level).abs()).collect();
    let mut off_both: Vec<f64> = off(&ln_rates[..cut], before);
    off_both.extend(off(&ln_rates[cut..], after) as Vec<f64>);
    let sigma = (1.4826 * median(off_both)).max(NOISE_MIN);
    let possible = |loss: &&f64| **loss - least <= PLACE_LOSS * inflation * sigma * sigma;
    let first = 1 + losses.iter().position(|loss| possible(&loss))?;
    let last = 1 + losses.iter().rposition(|loss| possible(&loss))?;
    // Of the piece that the fall came in the one part is of the old rate and the rest of the new.
    let (fast, slow) = (before.exp(), after.exp());
    let share = |piece: &Observed| (piece.bytes / piece.seconds - slow) / (fast - slow);
    // Levels of a few pieces have an error of their own.
    let fewer = cut.min(near.len() - cut).max(1) as f64;
    let deviations = DEVIATIONS * (1.0 + fewer.sqrt().recip());
    let error = |piece: &Observed| deviations * sigma * piece.bytes / piece.seconds / (fast - slow);
    let at = |piece: &Observed, share: f64| {
        let fast_bytes = share.clamp(0.0, 1.0) * fast * piece.seconds;
        piece.start + fast_bytes.min(piece.end - piece.start)
    };
    let (old, new) = (near.get(cut - 1)?, near.get(cut)?);
    let bounds = |piece| [share(piece) - error(piece), share(piece), share(piece) + error(piece)];
    let within = |piece| bounds(piece).map(|share| at(piece, share));
    let [low_bytes, at_bytes, high_bytes] = if bounds(old)[2] < 1.0 {
        within(old)
    } else if bounds(new)[0] > 0.0 {
        within(new)
    } else {
        [within(old)[0], f64::midpoint(old.end, new.start), within(new)[2]]
    };
    // Noise may leave more than one piece in which it can have come.
    let earlier = (first < cut).then(|| near.get(first - 1)).flatten();
    let later = (last > cut).then(|| near.get(last)).flatten();
    let low_bytes = earlier.map_or(low_bytes, |piece| within(piece)[0].min(low_bytes));
    let high_bytes = later.map_or(high_bytes, |piece| within(piece)[2].max(high_bytes));
    Some(Cliff { at_bytes, low_bytes, high_bytes, before: fast, after: slow })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One-minute IOPS of a random read, a job that fio's `iops_slope:0.1%` ended as steady:
    /// <https://github.com/axboe/fio/issues/687>, first log.
    const FIO_687: [f64; 26] = [
        79617.0, 79793.0, 79661.0, 79704.0, 79483.0, 79454.0, 79556.0, 79343.0, 79049.0, 78776.0,
        78029.0, 78023.0, 77554.0, 77225.0, 76945.0, 67886.0, 65353.0, 64239.0, 62856.0, 61628.0,
        60328.0, 58853.0, 72292.0, 79839.0, 79852.0, 79879.0,
    ];

    #[test]
    fn a_range_of_exactly_twenty_percent_is_steady() {
        // Mean 100, range 20, no slope.
        let exact = snia(&[100.0, 110.0, 100.0, 90.0, 100.0]).unwrap();
        assert!((exact.range - 0.2).abs() < 1e-12);
        // The slope of this order is -2 a round: a rise of 8 %.
        assert!(exact.holds(), "{exact:?}");
        let over = snia(&[100.0, 110.05, 100.0, 89.95, 100.0]).unwrap();
        assert!((over.range - 0.201).abs() < 1e-12);
        assert!(!over.holds(), "{over:?}");
    }

    #[test]
    fn a_rise_of_exactly_ten_percent_is_steady() {
        let line = |rise: f64| -> Vec<f64> {
            (0..5).map(|round| 1e4 * (1.0 + rise * (f64::from(round) - 2.0) / 4.0)).collect()
        };
        assert!(snia(&line(0.10)).unwrap().holds());
        assert!(snia(&line(-0.10)).unwrap().holds());
        assert!(!snia(&line(0.101)).unwrap().holds());
        assert!(!snia(&line(-0.101)).unwrap().holds());
    }

    #[test]
    fn only_the_last_five_rounds_count() {
        let mut rounds = vec![900.0, 5.0];
        rounds.extend([100.0; 5]);
        assert!(snia(&rounds).unwrap().holds());
        assert_eq!(snia(&rounds[..4]), None);
    }

    #[test]
    fn the_last_half_is_a_slope_over_half_of_all() {
        // The first half jumps about; the last five rise by 5 %, then by 5.1 %.
        let with = |rise: f64| -> Vec<f64> {
            let last = (0..5).map(|round| 100.0 * (1.0 + rise * (f64::from(round) - 2.0) / 4.0));
            [300.0, 20.0, 500.0, 70.0, 90.0].into_iter().chain(last).collect()
        };
        assert!(last_half(&with(0.05)).unwrap().holds());
        assert!(!last_half(&with(0.051)).unwrap().holds());
        assert_eq!(last_half(&with(0.0)[1..]), None);
        assert_eq!(last_half(&[100.0; 11]).unwrap().rounds, 5);
    }

    #[test]
    fn fios_issue_687_is_steady_for_a_sliding_five_and_not_as_a_whole() {
        let whole = {
            let (mean, rise) = mean_and_rise(&FIO_687).unwrap();
            let range = (79879.0 - 58853.0) / mean;
            Snia { mean, range, rise }
        };
        assert!((whole.range - 0.28).abs() < 0.005, "{whole:?}");
        assert!((whole.rise + 0.168).abs() < 0.001, "{whole:?}");
        assert!(!whole.holds());
        // The windows the study of this series names; every other one is in the list as well
        // while nothing moves, so the ones that fall are named too.
        let accepted: Vec<usize> =
            (5..=26).filter(|&end| snia(&FIO_687[..end]).unwrap().holds()).collect();
        for end in [5, 15, 20, 22] {
            assert!(accepted.contains(&end), "{end} not in {accepted:?}");
        }
        for end in [17, 18, 24, 25] {
            assert!(!accepted.contains(&end), "{end} in {accepted:?}");
        }
        // The last half sees the sag that the five do not.
        assert!(!last_half(&FIO_687[..20]).unwrap().holds());
        assert!(!last_half(&FIO_687[..22]).unwrap().holds());
    }

    #[test]
    fn what_is_no_rate_is_not_judged() {
        for rounds in [[0.0; 10], [f64::NAN; 10], [f64::INFINITY; 10], [-1.0; 10]] {
            assert_eq!(snia(&rounds), None);
            assert_eq!(last_half(&rounds), None);
        }
        assert_eq!(snia(&[]), None);
    }

    #[test]
    fn twice_the_range_is_enough() {
        let of = |written| Volume { written: Bytes::gib(written), active: Bytes::gib(4) };
        assert!(of(8).holds() && !of(7).holds());
        let all = Volume { written: Bytes::new(u64::MAX), active: Bytes::new(u64::MAX) };
        assert!(all.holds());
    }

    const MIB: f64 = 1_048_576.0;

    fn level(rate_mib: f64, pieces: usize) -> Vec<Piece> {
        vec![Piece { bytes: rate_mib * MIB, seconds: 1.0 }; pieces]
    }

    #[test]
    fn a_cliff_is_placed_by_bytes() {
        // 100 s at 4 GiB/s, then 150 s at 1: three quarters of the bytes in two fifths of time.
        let found = cliffs(&[level(4096.0, 100), level(1024.0, 150)].concat());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].at_bytes / MIB / 1024.0 - 400.0).abs() < 1.0, "{found:?}");
        assert!((found[0].before / found[0].after - 4.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn the_place_lies_between_two_observations() {
        for fast in 0..=10 {
            // The fall comes after so many tenths of the third piece.
            let share = f64::from(fast) / 10.0;
            let mixed = level(200.0 * share + 70.0 * (1.0 - share), 1);
            let found = cliffs(&[level(200.0, 2), mixed, level(70.0, 12)].concat());
            assert_eq!(found.len(), 1, "{share}: {found:?}");
            let [at, low, high] =
                [found[0].at_bytes, found[0].low_bytes, found[0].high_bytes].map(|b| b / MIB);
            let truth = 400.0 + 200.0 * share;
            assert!(low <= truth + 1e-6 && truth <= high + 1e-6, "{share}: {low} to {high}");
            assert!((at - truth).abs() < 10.0 && high - low < 30.0, "{share}: {at}, {low}, {high}");
            assert_eq!((found[0].before / MIB).round(), 200.0, "{found:?}");
            assert_eq!((found[0].after / MIB).round(), 70.0, "{found:?}");
        }
    }

    #[test]
    fn bytes_whose_rate_nobody_knows_move_the_place_and_no_level() {
        let ramp = Piece { bytes: 500.0 * MIB, seconds: 0.0 };
        let found = cliffs(&[vec![ramp], level(200.0, 3), vec![ramp], level(70.0, 9)].concat());
        assert_eq!(found.len(), 1, "{found:?}");
        let bounds = [found[0].low_bytes / MIB, found[0].high_bytes / MIB];
        assert!(bounds[0] >= 1080.0 && bounds[0] <= 1100.0, "{bounds:?}");
        assert!(bounds[1] >= 1600.0 && bounds[1] <= 1610.0, "{bounds:?}");
    }

    #[test]
    fn what_comes_back_or_goes_to_and_fro_or_slopes_is_no_cliff() {
        let back = [level(200.0, 20), level(70.0, 8), level(200.0, 20)].concat();
        assert_eq!(cliffs(&back), []);
        let two: Vec<Piece> =
            (0..40).flat_map(|k| level(if k % 2 == 0 { 200.0 } else { 70.0 }, 5)).collect();
        assert_eq!(cliffs(&two), []);
        let slope: Vec<Piece> = (0..60).flat_map(|k| level(200.0 * 0.97f64.powi(k), 1)).collect();
        assert_eq!(cliffs(&slope), []);
        // As slow for as long as before, when it came back.
        let again = [level(200.0, 20), level(70.0, 6), level(200.0, 40)].concat();
        assert_eq!(cliffs(&[again.clone(), level(70.0, 6)].concat()), []);
        assert_eq!(cliffs(&[again, level(70.0, 12)].concat()).len(), 1);
        // A stutter at the end is no level.
        assert_eq!(cliffs(&[level(200.0, 40), level(70.0, 4)].concat()), []);
        assert_eq!(cliffs(&[level(200.0, 40), level(70.0, 5)].concat()).len(), 1);
    }

    #[test]
    fn many_pieces_place_a_cliff_as_well_as_few() {
        let found = cliffs(&[level(200.0, 12_345), level(100.0, 30_000)].concat());
        assert_eq!(found.len(), 1, "{found:?}");
        let truth = 200.0 * 12_345.0;
        assert!((found[0].at_bytes / MIB - truth).abs() < 20.0, "{found:?}");
        assert!((found[0].high_bytes - found[0].low_bytes) / MIB < 60.0, "{found:?}");
    }

    #[test]
    fn a_rise_is_no_cliff_and_odd_pieces_do_not_crash() {
        assert_eq!(cliffs(&[level(1.0, 20), level(2.0, 20)].concat()), []);
        assert_eq!(cliffs(&[]), []);
        let of = |(bytes, seconds)| Piece { bytes, seconds };
        let odd = [(f64::NAN, 1.0), (0.0, 1.0), (1.0, 0.0), (1.0, f64::INFINITY), (-1.0, 1.0)];
        assert_eq!(cliffs(&odd.map(of).repeat(20)), []);
        assert_eq!(cliffs(&vec![of((f64::MAX / 2.0, 1.0)); 40]), []);
        assert_eq!(cliffs(&vec![of((1e300, 1e-300)); 40]), []);
        assert_eq!(cliffs(&vec![of((f64::MIN_POSITIVE, f64::MAX)); 40]), []);
    }
}
