//! Where a ramp ends (MSER-5).
//!
//! Cutting the start away removes its bias but also samples; MSER cuts where the standard error
//! of what is left is smallest. On means of five samples, since single ones are too noisy
//! (White 1997; White, Cobb, Spratt 2000). It finds a transient that ends. What still moves at
//! the middle of the series is not one: [`Ramp::is_drift`]. Blind spot: a single step in the
//! second half moves no cut (Wang and Glynn 2016); that is a change point's matter.

/// Samples per batch.
pub const BATCH: usize = 5;

/// Fewest batches that are looked at: 5 s of 100 ms samples. Of fewer, noise alone puts the best
/// cut in the middle too often.
const BATCHES_MIN: usize = 10;
/// How near to the latest cut allowed counts as that: the minimum is flat, and noise moves it by
/// a batch or two. Found so are 99 to 81 % of transients of 6 s in 10 s (samples' scatter 5 %,
/// correlation 0 to 0.8) and not 88 to 63 %; 4 to 8 % of steady rates are called drift in 10 s,
/// under 1 % in 30 s.
const NEAR: usize = 8;

/// What to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Samples at the start that are no part of the steady rate: a multiple of [`BATCH`].
    pub cut: usize,
    /// The best cut is about as late as was allowed, half of the series: it moves all the time
    /// or for too long to tell. Then do not cut: report it, or look for longer.
    pub is_drift: bool,
}

/// Where the ramp of `samples`, rates of equal intervals in order of time, ends.
///
/// `None` for fewer than 50 samples or if one of them is not finite.
///
/// Method: cut `d` batches of `k`, `d <= k / 2`, where the sum of squares of the rest about its
/// mean, by `(k - d)^2`, is smallest; the first such `d`.
pub fn mser5(samples: &[f64]) -> Option<Ramp> {
    let batches: Vec<f64> =
        samples.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let last = batches.len() / 2;
    if batches.len() < BATCHES_MIN || batches.iter().any(|mean| !mean.is_finite()) {
        return None;
    }
    let mut best = (0, f64::INFINITY);
    for cut in 0..=last {
        let error = squared_error(&batches[cut..]);
        if error < best.1 {
            best = (cut, error);
        }
    }
    Some(Ramp { cut: best.0 * BATCH, is_drift: best.0 >= last - last / NEAR })
}

/// The MSER statistic of what is left: its mean's squared standard error.
fn squared_error(rest: &[f64]) -> f64 {
    let n = rest.len() as f64;
    let mean = rest.iter().sum::<f64>() / n;
    rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn noisy(n: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut random = Random::new(5);
        (0..n).map(|i| level(i) * (1.0 + 0.02 * random.normal())).collect()
    }

    #[test]
    fn a_transient_is_cut_where_it_ends() {
        let samples = noisy(100, |i| if i < 10 { 10.0 } else { 100.0 });
        assert_eq!(mser5(&samples), Some(Ramp { cut: 10, is_drift: false }));
    }

    #[test]
    fn what_never_settles_is_drift() {
        let samples = noisy(100, |i| 100.0 + i as f64);
        assert!(mser5(&samples).unwrap().is_drift);
        let slow = noisy(100, |i| 100.0 * (1.0 + (-(i as f64) / 60.0).exp()));
        assert!(mser5(&slow).unwrap().is_drift);
    }

    #[test]
    fn odd_input_is_no_ramp() {
        assert_eq!(mser5(&[1.0; 100]), Some(Ramp { cut: 0, is_drift: false }));
        assert_eq!(mser5(&[0.0; 50]), Some(Ramp { cut: 0, is_drift: false }));
        assert_eq!(mser5(&[1.0; 49]), None);
        assert_eq!(mser5(&[]), None);
        assert_eq!(mser5(&[f64::NAN; 60]), None);
        assert_eq!(mser5(&[f64::MAX; 60]), None);
    }
}
