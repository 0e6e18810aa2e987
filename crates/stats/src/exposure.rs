//! What a request meets that arrives at a random moment.
//!
//! A worker that always has one request out is, at a random moment, inside some latency `v` with
//! a chance in proportion to `v`, and has what is left of it to wait. So the chance of waiting
//! longer than `x` is `R(x) = sum of max(0, v - x) / sum of v` over all latencies. Ten seconds
//! of freeze in a minute are one request of millions and no percentile; `R(1 s)` is 15 %.
//!
//! No intended rate is needed, and nothing is guessed.

use units::Nanos;

use crate::LatencyHistogram;
use crate::histogram::bucket_bounds;

/// R(x) from the latencies themselves; `None` when they sum to nothing.
pub fn from_values(latencies: &[Nanos], x: Nanos) -> Option<f64> {
    let sum = |of: &dyn Fn(Nanos) -> u64| latencies.iter().map(|&v| u128::from(of(v))).sum();
    let (all, beyond): (u128, u128) =
        (sum(&|v: Nanos| v.get()), sum(&|v: Nanos| v.get().saturating_sub(x.get())));
    (all > 0).then(|| beyond as f64 / all as f64)
}

/// R(x) from a histogram; `None` when it is empty or all in it are 0.
///
/// Latencies are taken as spread evenly over their bucket, so where many buckets lie beyond `x`
/// the result is right to a fraction of 1 %. Where only one does, `v - x` is known no better
/// than the bucket is wide: 0.8 % of `v`.
pub fn from_histogram(latencies: &LatencyHistogram, x: Nanos) -> Option<f64> {
    let x = x.get() as f64;
    let (mut all, mut beyond) = (0.0, 0.0);
    for (index, count) in latencies.sparse() {
        let (low, high) = bucket_bounds(index as usize);
        // Upper ends are the last ns that counts: a latency of it can be up to 1 ns more.
        let (low, high, count) = (low as f64, high as f64, count as f64);
        all += count * f64::midpoint(low, high);
        beyond += count * mean_beyond(low, high, x);
    }
    (all > 0.0).then(|| beyond / all)
}

/// Mean of `max(0, v - x)` for `v` uniform in `low..=high`.
fn mean_beyond(low: f64, high: f64, x: f64) -> f64 {
    if x <= low {
        f64::midpoint(low, high) - x
    } else if x >= high {
        0.0
    } else {
        (high - x).powi(2) / (2.0 * (high - low))
    }
}

/// The wait that a request arriving at a random moment exceeds with probability `share`, to 1 ns.
///
/// * `share`: in `0.0..=1.0`.
/// * `None` as in [`from_histogram`], or when `share` is not in its range.
pub fn quantile(latencies: &LatencyHistogram, share: f64) -> Option<Nanos> {
    from_histogram(latencies, Nanos::ZERO)?;
    if !(0.0..=1.0).contains(&share) {
        return None;
    }
    let (mut low, mut high) = (0u64, crate::histogram::VALUE_MAX);
    // R falls as x grows, from 1 at 0 to 0 at the end.
    while low < high {
        let middle = low + (high - low) / 2;
        if from_histogram(latencies, Nanos::new(middle))? > share {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(Nanos::new(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(u64, usize)]) -> (Vec<Nanos>, LatencyHistogram) {
        let values: Vec<Nanos> =
            values.iter().flat_map(|&(v, n)| std::iter::repeat_n(Nanos::new(v), n)).collect();
        let mut histogram = LatencyHistogram::new();
        values.iter().for_each(|&v| histogram.record(v));
        (values, histogram)
    }

    #[test]
    fn ten_seconds_of_sixty_are_met_by_a_sixth() {
        // 40 workers for a minute at 60 K requests a second, frozen for 10 s of it.
        let (values, histogram) = histogram(&[(10_000_000_000, 40), (666_667, 3_000_000)]);
        let second = Nanos::secs(1);
        let exact = from_values(&values, second).unwrap();
        assert!((exact - 9.0 / 60.0).abs() < 1e-4, "{exact}");
        let near = from_histogram(&histogram, second).unwrap();
        assert!((near / exact - 1.0).abs() < 0.01, "{near}");
        // No percentile sees it.
        assert!(histogram.quantile(0.9999).unwrap() < Nanos::millis(1));
        let wait = quantile(&histogram, 0.10).unwrap();
        assert!((wait.as_secs_f64() - 4.0).abs() < 0.05, "{wait}");
    }

    #[test]
    fn it_falls_from_one_to_nothing() {
        let (_, histogram) = histogram(&[(100, 3), (5_000, 2)]);
        assert_eq!(from_histogram(&histogram, Nanos::ZERO), Some(1.0));
        assert_eq!(from_histogram(&histogram, Nanos::secs(1)), Some(0.0));
        assert_eq!(quantile(&histogram, 1.0), Some(Nanos::ZERO));
        assert_eq!(quantile(&histogram, 1.5), None);
        assert_eq!(quantile(&histogram, f64::NAN), None);
    }

    #[test]
    fn nothing_has_no_exposure() {
        assert_eq!(from_values(&[], Nanos::ZERO), None);
        assert_eq!(from_values(&[Nanos::ZERO], Nanos::ZERO), None);
        assert_eq!(from_histogram(&LatencyHistogram::new(), Nanos::ZERO), None);
        assert_eq!(quantile(&LatencyHistogram::new(), 0.5), None);
        assert_eq!(from_values(&[Nanos::new(u64::MAX); 3], Nanos::new(u64::MAX)), Some(0.0));
    }
}
