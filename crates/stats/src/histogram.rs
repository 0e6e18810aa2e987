//! The latency histogram: base-2 log-linear, 2^7 buckets an octave.
//!
//! Every bucket is at most 1/128 (0.78 %) of its lower bound wide; up to 2^40 ns (18 min) are
//! told apart, longer values go to the last bucket and are counted as saturated. Values below
//! 128 ns are exact.
//!
//! Method: H2 histograms as in the `histogram` crate, which is used for recording; its text and
//! its table disagree on the error of grouping power 7, the table (0.78 %) is right.

use ::histogram::{Config, Histogram};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::Nanos;

const GROUPING_POWER: u8 = 7;
const MAX_VALUE_POWER: u8 = 40;
/// Largest latency told apart.
pub const VALUE_MAX: u64 = (1 << MAX_VALUE_POWER) - 1;
/// How many buckets a histogram has.
pub const BUCKETS: usize =
    (MAX_VALUE_POWER as usize - GROUPING_POWER as usize + 1) << GROUPING_POWER;

/// Latencies of one kind of request.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    inner: Histogram,
    saturated: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for LatencyHistogram {
    fn eq(&self, other: &Self) -> bool {
        self.saturated == other.saturated && self.inner.as_slice() == other.inner.as_slice()
    }
}

impl Eq for LatencyHistogram {}

impl LatencyHistogram {
    /// An empty one: 34 KiB.
    pub fn new() -> Self {
        // The two powers are constants that a test checks, so this cannot fail.
        #[expect(clippy::expect_used, reason = "constant arguments, covered by a test")]
        let inner = Histogram::new(GROUPING_POWER, MAX_VALUE_POWER).expect("constant powers");
        Self { inner, saturated: 0 }
    }

    /// Counts one latency. Never fails: too long a value counts in the last bucket.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        if self.inner.increment(latency.get()).is_err() {
            self.saturated += 1;
            let _ = self.inner.increment(VALUE_MAX);
        }
    }

    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.inner.as_slice().iter().sum()
    }

    /// How many of them were longer than [`VALUE_MAX`].
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Adds all of `other`: the merge of parts is bit for bit the histogram of the whole.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.inner.as_mut_slice().iter_mut().zip(other.inner.as_slice()) {
            *mine += theirs;
        }
        self.saturated += other.saturated;
    }

    /// What was counted here and not yet in `earlier`, a snapshot of the same histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        for (mine, theirs) in
            difference.inner.as_mut_slice().iter_mut().zip(earlier.inner.as_slice())
        {
            *mine = mine.saturating_sub(*theirs);
        }
        difference.saturated = self.saturated.saturating_sub(earlier.saturated);
        difference
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.inner.reset();
        self.saturated = 0;
    }

    /// Latency that a share `q` of requests did not exceed.
    ///
    /// * `q`: quantile in `0.0..=1.0`, not a percentage.
    /// * Returns the middle of the bucket, so at most 0.4 % off.
    /// * `None` when nothing was recorded.
    ///
    /// Method: nearest rank, the `ceil(q n)`-th smallest.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        for (index, n) in self.inner.as_slice().iter().enumerate() {
            seen += n;
            if seen >= rank {
                let (low, high) = bucket_bounds(index);
                return Some(Nanos::new(low + (high - low) / 2));
            }
        }
        None
    }

    /// Like [`Self::quantile`], but only if at least `above` values lie above the rank:
    /// a percentile with nothing behind it is a guess.
    pub fn quantile_with(&self, q: f64, above: u64) -> Option<Nanos> {
        let count = self.count();
        let rank = (q.clamp(0.0, 1.0) * count as f64).ceil() as u64;
        if count.saturating_sub(rank) < above {
            return None;
        }
        self.quantile(q)
    }

    /// The buckets that are not empty, as (index, count), indices rising.
    pub fn sparse(&self) -> impl Iterator<Item = (u32, u64)> {
        (0u32..)
            .zip(self.inner.as_slice())
            .filter(|&(_, &count)| count > 0)
            .map(|(index, &count)| (index, count))
    }

    /// From (index, count) pairs as [`Self::sparse`] gives; `None` if an index is out of range.
    pub fn from_sparse(
        buckets: impl IntoIterator<Item = (u32, u64)>,
        saturated: u64,
    ) -> Option<Self> {
        let mut histogram = Self::new();
        for (index, count) in buckets {
            let bucket = histogram.inner.as_mut_slice().get_mut(index as usize)?;
            *bucket = bucket.checked_add(count)?;
        }
        histogram.saturated = saturated;
        Some(histogram)
    }

    /// All counts, for folding without allocation.
    pub fn buckets(&self) -> &[u64] {
        self.inner.as_slice()
    }
}

/// As (index, count) of the buckets that are not empty, and how many are saturated.
impl Serialize for LatencyHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets: Vec<(u32, u64)> = self.sparse().collect();
        (buckets, self.saturated).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (buckets, saturated) = <(Vec<(u32, u64)>, u64)>::deserialize(deserializer)?;
        Self::from_sparse(buckets, saturated)
            .ok_or_else(|| de::Error::custom("a bucket of a histogram that has no such"))
    }
}

/// Which bucket counts `latency`.
#[inline]
pub fn bucket_of(latency: Nanos) -> usize {
    let value = latency.get().min(VALUE_MAX);
    let octave = 63 - (value | 1).leading_zeros();
    if octave < u32::from(GROUPING_POWER) {
        return value as usize;
    }
    let shift = octave - u32::from(GROUPING_POWER);
    ((shift as usize + 1) << GROUPING_POWER) + ((value >> shift) as usize - (1 << GROUPING_POWER))
}

/// Smallest and largest latency, in ns, that bucket `index` counts. Past the last bucket, as only
/// damaged records have it, those of the last.
pub fn bucket_bounds(index: usize) -> (u64, u64) {
    let index = index.min(BUCKETS - 1);
    let linear = 1usize << GROUPING_POWER;
    if index < linear {
        return (index as u64, index as u64);
    }
    let shift = (index >> GROUPING_POWER) - 1;
    let low = ((linear + (index & (linear - 1))) as u64) << shift;
    (low, low + (1 << shift) - 1)
}

/// The shape of every histogram, for those who store buckets.
pub fn config() -> Option<Config> {
    Config::new(GROUPING_POWER, MAX_VALUE_POWER).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_the_crate() {
        let config = config().unwrap();
        assert_eq!(config.total_buckets(), BUCKETS);
        let mut value = 1u64;
        while value < VALUE_MAX {
            for v in [value, value + 1, value * 3 / 2] {
                let index = bucket_of(Nanos::new(v));
                let mut h = LatencyHistogram::new();
                h.record(Nanos::new(v));
                assert_eq!(h.sparse().next(), Some((index as u32, 1)), "{v}");
                let (low, high) = bucket_bounds(index);
                assert!((low..=high).contains(&v.min(VALUE_MAX)), "{v} in {low}..={high}");
                assert!((high - low) as f64 <= low as f64 * 0.0079);
            }
            value = value * 2 + 1;
        }
    }

    #[test]
    fn twenty_minutes_saturate_and_are_counted() {
        let mut h = LatencyHistogram::new();
        h.record(Nanos::secs(1200));
        assert_eq!((h.count(), h.saturated()), (1, 1));
        assert!(h.quantile(1.0).unwrap() > Nanos::secs(1090));
    }

    #[test]
    fn percentiles_need_values_above_them() {
        let mut h = LatencyHistogram::new();
        for _ in 0..999 {
            h.record(Nanos::new(100));
        }
        assert_eq!(h.quantile_with(0.99, 10), None);
        h.record(Nanos::new(100));
        assert_eq!(h.quantile_with(0.99, 10), Some(Nanos::new(100)));
        assert_eq!(h.quantile_with(0.999, 10), None);
    }
}
