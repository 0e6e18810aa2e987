//! What holds requests back, or slows them down, by what was done before: buckets, heat, sleep.

use super::spec::{BucketSpec, ModelSpec, ThermalSpec, WakeSpec};
use crate::Request;

#[derive(Clone, Debug)]
pub(super) struct Throttle {
    buckets: Vec<Bucket>,
    wake: Option<WakeSpec>,
    heat: Option<Heat>,
}

impl Throttle {
    pub(super) fn new(spec: &ModelSpec) -> Self {
        Self {
            buckets: spec.buckets.iter().map(Bucket::new).collect(),
            wake: spec.wake,
            heat: spec.thermal.map(|spec| Heat { spec, heat: 0.0, at: 0, slow: false }),
        }
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

    /// Work that waking up adds, ns.
    pub(super) fn wakes(&self, idle: Option<u64>) -> f64 {
        let asleep = |wake: &&WakeSpec| idle.is_some_and(|idle| idle >= wake.after.get());
        self.wake.as_ref().filter(asleep).map_or(0.0, |wake| wake.cost.get() as f64)
    }

    /// By how much longer a request takes, which heats it.
    #[inline]
    pub(super) fn slowness(&mut self, request: &Request, now: u64) -> f64 {
        let heats = request.op.moves_data();
        self.heat.as_mut().filter(|_| heats).map_or(1.0, |heat| heat.add(request.length, now))
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

/// Bytes moved and not cooled off yet.
#[derive(Clone, Debug)]
struct Heat {
    spec: ThermalSpec,
    heat: f64,
    at: u64,
    slow: bool,
}

impl Heat {
    fn add(&mut self, length: u32, now: u64) -> f64 {
        let cooled = now.saturating_sub(self.at) as f64 * self.spec.cool.get() as f64 / 1e9;
        self.heat = (self.heat - cooled).max(0.0) + f64::from(length);
        self.at = now;
        let limit = self.spec.limit.get() as f64;
        self.slow = self.heat > limit * if self.slow { self.spec.until } else { 1.0 };
        if self.slow { 1.0 / self.spec.factor } else { 1.0 }
    }
}
