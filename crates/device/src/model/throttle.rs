//! What holds requests back, or slows them down, by what was done before: buckets.

use super::spec::{BucketSpec, ModelSpec};
use crate::Request;

#[derive(Clone, Debug)]
pub(super) struct Throttle {
    buckets: Vec<Bucket>,
}

impl Throttle {
    pub(super) fn new(spec: &ModelSpec) -> Self {
        Self { buckets: spec.buckets.iter().map(Bucket::new).collect() }
    }

    /// When all buckets have let a request pass that comes at `now`.
    #[inline]
    pub(super) fn release(&mut self, request: &Request, now: u64) -> u64 {
        if !request.op.moves_data() {
            return now;
        }
        let length = request.length;
        self.buckets.iter_mut().fold(now, |latest, bucket| latest.max(bucket.take(length, now)))
    }
}

/// A fluid: what a request takes flows out at the burst rate while there is credit, then at the base
/// rate, one request after the other. So the credit and the time are exact at every request.
#[derive(Clone, Debug)]
struct Bucket {
    ops: bool,
    /// A ns.
    base: f64,
    burst: f64,
    size: f64,
    credit: f64,
    /// When the last one had passed, ns.
    free: f64,
}

impl Bucket {
    fn new(spec: &BucketSpec) -> Self {
        let (base, burst, size) = spec.amounts();
        let ops = matches!(spec, BucketSpec::Ops { .. });
        Self { ops, base: base / 1e9, burst: burst / 1e9, size, credit: size, free: 0.0 }
    }

    fn take(&mut self, length: u32, now: u64) -> u64 {
        let amount = if self.ops { 1.0 } else { f64::from(length) };
        let start = self.free.max(now as f64);
        self.credit = (self.credit + (start - self.free) * self.base).min(self.size);
        // Of the amount, what flows at the burst rate before the credit is spent.
        let net = self.burst - self.base;
        let fast = if net > 0.0 { (self.credit / net * self.burst).min(amount) } else { amount };
        self.credit = (self.credit - fast / self.burst * net).max(0.0);
        self.free = start + fast / self.burst + (amount - fast) / self.base;
        self.free as u64
    }
}
