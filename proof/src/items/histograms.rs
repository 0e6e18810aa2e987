//! Latency histograms.

use stats::histogram::{VALUE_MAX, bucket_bounds, bucket_of};
use stats::{LatencyHistogram, Random};
use units::Nanos;

use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[Proof {
    name: "histograms",
    about: "latencies from 1 ns to 1,000 s, uniform in their logarithm",
    run: histograms,
}];

/// Parts that are merged: workers of a visit.
const PARTS: usize = 40;

fn histograms(lot: &Lot) -> Vec<Claim> {
    let n = lot.effort.times(1_000_000, 200_000);
    let mut random = lot.random(&[1]);
    let values: Vec<u64> = (0..n).map(|_| latency(&mut random)).collect();
    let mut whole = LatencyHistogram::new();
    values.iter().for_each(|&value| whole.record(Nanos::new(value)));
    let mut claims = vec![widths(&values)];
    claims.extend(quantiles(&values, &whole));
    claims.push(merge(&values, &whole));
    claims.push(difference(&values));
    claims.extend(saturation(&mut random));
    claims
}

/// Uniform in its logarithm, 1 ns to 1,000 s.
fn latency(random: &mut Random) -> u64 {
    ((1e12f64).ln() * random.unit()).exp().round() as u64
}

fn widths(values: &[u64]) -> Claim {
    let width = |&value: &u64| {
        let (low, high) = bucket_bounds(bucket_of(Nanos::new(value)));
        // A bucket holds its value, and says nothing wrong by more than its width.
        let off = (value - low.min(value)).max(high.max(value) - value) as f64 / value as f64;
        if (low..=high).contains(&value) { off } else { f64::INFINITY }
    };
    let worst = values.iter().map(width).fold(0.0, f64::max);
    Claim::number("a bucket's bounds, off by a share of at most", AtMost(0.0079), worst)
}

/// Quantiles against the sorted values: within 0.4 % of the value at the same rank, one off.
fn quantiles(values: &[u64], whole: &LatencyHistogram) -> [Claim; 2] {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let n = sorted.len();
    let qs: Vec<f64> = (0..=1000).map(|i| f64::from(i) / 1000.0).chain([0.9999, 0.99999]).collect();
    let exact = |q: f64| (q * n as f64).ceil().max(1.0) as usize - 1;
    let near = |&&q: &&f64| {
        let Some(seen) = whole.quantile(q) else { return false };
        let (low, high) = (exact(q).saturating_sub(1), (exact(q) + 1).min(n - 1));
        let seen = seen.get() as f64;
        // Half a nanosecond for the middle of a bucket of two.
        seen >= sorted[low] as f64 * 0.996 - 0.5 && seen <= sorted[high] as f64 * 1.004 + 0.5
    };
    let held = qs.iter().filter(near).count();
    let good = Claim::share("quantiles within 0.4 % and a rank", AtLeast(1.0), held, qs.len());
    // Eight buckets an octave, as coarse histograms have.
    let coarse = |q: f64| {
        let value = sorted[exact(q)] as f64;
        let octave = value.log2().floor();
        let part = ((value / octave.exp2() - 1.0) * 8.0).floor();
        ((part + 0.5) / 8.0 + 1.0) * octave.exp2()
    };
    let held =
        qs.iter().filter(|&&q| (coarse(q) / sorted[exact(q)] as f64 - 1.0).abs() <= 0.004).count();
    let text = "eight buckets an octave: quantiles within 0.4 %";
    [good, Claim::share(text, AtLeast(1.0), held, qs.len()).of_broken()]
}

fn merge(values: &[u64], whole: &LatencyHistogram) -> Claim {
    let mut parts = vec![LatencyHistogram::new(); PARTS];
    for (i, &value) in values.iter().enumerate() {
        parts[i % PARTS].record(Nanos::new(value));
    }
    let mut merged = LatencyHistogram::new();
    parts.iter().for_each(|part| merged.merge(part));
    let same = usize::from(&merged == whole);
    Claim::share("40 parts merged are the whole, bit for bit", AtLeast(1.0), same, 1)
}

fn difference(values: &[u64]) -> Claim {
    let mut running = LatencyHistogram::new();
    let mut same = 0;
    let intervals = values.chunks(values.len() / 10);
    let trials = intervals.len();
    for interval in intervals {
        let before = running.clone();
        let mut direct = LatencyHistogram::new();
        for &value in interval {
            running.record(Nanos::new(value));
            direct.record(Nanos::new(value));
        }
        same += usize::from(running.since(&before) == direct);
    }
    Claim::share("differences of snapshots are the intervals", AtLeast(1.0), same, trials)
}

fn saturation(random: &mut Random) -> [Claim; 2] {
    let mut histogram = LatencyHistogram::new();
    let too_long = [Nanos::secs(20 * 60), Nanos::MAX, Nanos::new(VALUE_MAX + 1)];
    too_long.into_iter().for_each(|value| histogram.record(value));
    (0..997).for_each(|_| histogram.record(Nanos::new(latency(random))));
    let counted = histogram.count() == 1000 && histogram.saturated() == 3;
    let last = histogram.quantile(1.0).is_some_and(|longest| longest.get() > VALUE_MAX / 128 * 127);
    [
        Claim::share("20 minutes counted, as too long", AtLeast(1.0), usize::from(counted), 1),
        Claim::share("and are at the top", AtLeast(1.0), usize::from(last), 1),
    ]
}
