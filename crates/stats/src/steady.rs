//! Whether a series of rounds is steady.
//!
//! Two tests that see different things. [`snia`] looks at five rounds, as the SNIA's Performance
//! Test Specification does: it is quick, and blind to what is slower than five rounds.
//! [`last_half`] looks at half of all there is, so what it cannot see shrinks as the run grows.
//! Neither sees a cliff that has not come yet: only a volume rule does ([`Volume`]).

use serde::Serialize;
use units::Bytes;

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
}
