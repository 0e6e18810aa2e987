//! Whether a series of rounds is steady.
//!
//! Two tests that see different things. [`snia`] looks at five rounds, as the SNIA's Performance
//! Test Specification does: it is quick, and blind to what is slower than five rounds.
//! [`last_half`] looks at half of all there is, so what it cannot see shrinks as the run grows.
//! Neither sees a cliff that has not come yet: only a volume rule does ([`Volume`]).

use serde::Serialize;
use units::Bytes;

use crate::changepoint::{Segment, changes, median};
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

/// A fall of the rate at a place in what is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cliff {
    /// Bytes written before it.
    pub at_bytes: f64,
    /// Bytes per second before.
    pub before: f64,
    /// Bytes per second after.
    pub after: f64,
}

/// Largest rate after by rate before that is a cliff.
pub const CLIFF_RATIO_MAX: f64 = 0.8;
/// Fewest pieces of a level.
const CLIFF_SEGMENT: usize = 5;
/// More pieces than this place a cliff no better.
const PIECES_MAX: usize = 2_000;

/// Cliffs in a series of writes, against bytes and not against time: after one, the same bytes
/// take longer, and time would put it where the slow part happens to end.
///
/// * `pieces[k]`: bytes written and seconds they took, one after the other, pauses and stalls
///   left out; those without bytes or time are passed over.
/// * A cliff is placed to one part in the number of pieces, 2,000 at most.
pub fn cliffs(pieces: &[(f64, f64)]) -> Vec<Cliff> {
    let good = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite() && p.0 > 0.0 && p.1 > 0.0;
    let pieces: Vec<(f64, f64)> = pieces.iter().filter(good).copied().collect();
    let total: f64 = pieces.iter().map(|piece| piece.0).sum();
    let bins = pieces.len().min(PIECES_MAX);
    let step = total / bins as f64;
    if bins < 2 * CLIFF_SEGMENT || !step.is_finite() {
        return Vec::new();
    }
    let ln_rates: Vec<f64> =
        even_steps(&pieces, bins, step).iter().map(|seconds| (step / seconds).ln()).collect();
    let Some(changes) = changes(&ln_rates, CLIFF_SEGMENT) else { return Vec::new() };
    // Of the piece that a cliff falls into, a part is on either side: a median minds less.
    let level = |part: &Segment| median(ln_rates[part.start..part.end].to_vec()).exp();
    let pairs = changes.segments.windows(2);
    pairs
        .map(|pair| Cliff {
            at_bytes: pair[1].start as f64 * step,
            before: level(&pair[0]),
            after: level(&pair[1]),
        })
        .filter(|cliff| cliff.after < CLIFF_RATIO_MAX * cliff.before)
        .collect()
}

/// Seconds that each of `bins` steps of `step` bytes took: differences of the time at which
/// each step's end was reached, evenly within a piece.
fn even_steps(pieces: &[(f64, f64)], bins: usize, step: f64) -> Vec<f64> {
    let mut seconds = Vec::with_capacity(bins);
    let (mut place, mut written, mut time, mut before) = (0, 0.0, 0.0, 0.0);
    for bin in 1..=bins {
        let edge = bin as f64 * step;
        while let Some(piece) = pieces.get(place).filter(|piece| written + piece.0 <= edge) {
            written += piece.0;
            time += piece.1;
            place += 1;
        }
        let part = pieces.get(place).map_or(0.0, |piece| piece.1 * (edge - written) / piece.0);
        seconds.push(time + part - before);
        before = time + part;
    }
    seconds
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

    #[test]
    fn a_cliff_is_placed_by_bytes() {
        // 100 s at 4 GiB/s, then 150 s at 1: three quarters of the bytes in two fifths of time.
        let gib = 1_073_741_824.0;
        let mut pieces = vec![(4.0 * gib, 1.0); 100];
        pieces.extend(vec![(gib, 1.0); 150]);
        let found = cliffs(&pieces);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].at_bytes / gib - 400.0).abs() < 3.0, "{found:?}");
        assert!((found[0].before / found[0].after - 4.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn a_rise_is_no_cliff_and_odd_pieces_do_not_crash() {
        let mut pieces = vec![(1.0, 1.0); 20];
        pieces.extend(vec![(2.0, 1.0); 20]);
        assert_eq!(cliffs(&pieces), []);
        assert_eq!(cliffs(&[]), []);
        let odd = [(f64::NAN, 1.0), (0.0, 1.0), (1.0, 0.0), (1.0, f64::INFINITY), (-1.0, 1.0)];
        assert_eq!(cliffs(&odd.repeat(20)), []);
        assert_eq!(cliffs(&vec![(f64::MAX / 2.0, 1.0); 40]), []);
        assert_eq!(cliffs(&vec![(1e300, 1e-300); 40]).len(), 0);
    }
}
