//! The service law as the time of one request among `n`.
//!
//! In a closed loop of `n` requests Little's law gives each the time `n / X(b, n)`, which is
//! `[(n/A)^p + (n b/W)^p + (t0 + b/w)^p]^(1/p)`. Giving each request that time, with `n` as it
//! finds it, makes the closed loop's rate the law's, at a cost that does not grow with `n`.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use super::spec::{Caps, Law, ModelSpec, STAGES_MAX, norm};
use crate::hash::FastHash;

/// Costs kept, over all lengths: 6 MiB. What finds no room is worked out each time; after so many of
/// those all are forgotten, since they may be of lengths that are no longer asked for.
const KEPT_MAX: usize = 1 << 17;

/// Which way a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Read,
    ReadHit,
    Write,
    WriteCached,
}

/// What a request costs on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Work in ns.
    pub(super) work: f64,
    /// Share of it done when the request leaves each stage; 1 in the last it passes.
    pub(super) leaves: [f32; STAGES_MAX],
}

#[derive(Clone, Debug)]
pub(super) struct Route {
    fixed: f64,
    per_byte: f64,
    sharpness: f64,
    /// Ns a request and ns a byte at each stage.
    stages: Vec<(f64, f64)>,
    /// Share of the time alone spent in each stage.
    shares: Vec<f64>,
    /// Stages passed.
    pub(super) passed: u8,
}

impl Route {
    fn cost(&self, length: u32, in_flight: u32) -> Cost {
        let length = f64::from(length);
        let n = f64::from(in_flight);
        let alone = self.fixed + self.per_byte * length;
        let mut terms = [0.0; 2 * STAGES_MAX + 1];
        for (pair, stage) in terms.chunks_exact_mut(2).zip(&self.stages) {
            pair[0] = n * stage.0;
            pair[1] = n * stage.1 * length;
        }
        terms[2 * STAGES_MAX] = alone;
        // No request in no time: a closed loop would never end.
        let work = norm(&terms, self.sharpness).max(1.0);
        Cost { work, leaves: self.leaves(&terms, alone.min(work), work) }
    }

    /// Queueing (what is beyond the time alone) belongs to the stages by their part in the law.
    fn leaves(&self, terms: &[f64], alone: f64, work: f64) -> [f32; STAGES_MAX] {
        let largest = terms[..2 * STAGES_MAX].iter().copied().fold(0.0, f64::max);
        let part = |k: usize| {
            let part =
                |x: f64| if largest > 0.0 { (x / largest).powf(self.sharpness) } else { 0.0 };
            part(terms[2 * k]) + part(terms[2 * k + 1])
        };
        let total: f64 = (0..self.stages.len()).map(part).sum();
        let mut done = 0.0;
        let mut leaves = [1.0; STAGES_MAX];
        for (k, leave) in leaves.iter_mut().enumerate().take(self.stages.len()) {
            let queueing = if total > 0.0 { (work - alone) * part(k) / total } else { 0.0 };
            done += self.shares[k] * alone + queueing;
            *leave = (done / work).min(1.0) as f32;
        }
        leaves[usize::from(self.passed) - 1] = 1.0;
        leaves
    }
}

/// Every route, and the costs worked out so far.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    routes: [Route; 4],
    /// By route and length: place in `kept`.
    index: HashMap<(u8, u32), u32, FastHash>,
    /// Costs by requests in flight less 1.
    kept: Vec<Vec<Option<Cost>>>,
    kept_count: usize,
    /// How many found no room since all were forgotten.
    no_room: usize,
    last: [(u32, u32); 4],
}

impl Costs {
    pub(super) fn new(spec: &ModelSpec, cache_before: usize, write_before: usize) -> Self {
        let write = spec.write.as_ref().unwrap_or(&spec.read);
        let hit = spec.cache.as_ref().map_or_else(
            || spec.read.clone(),
            |cache| cached(&spec.read, cache.latency, cache.request_bandwidth),
        );
        let taken = spec.write_cache.as_ref().map_or_else(
            || write.clone(),
            |cache| cached(write, cache.latency, cache.request_bandwidth),
        );
        let whole = spec.stages.len().max(1);
        let routes = [
            route(spec, &spec.read, false, whole),
            route(spec, &hit, false, cache_before),
            route(spec, write, true, whole),
            route(spec, &taken, true, write_before),
        ];
        Self {
            routes,
            index: HashMap::default(),
            kept: Vec::new(),
            kept_count: 0,
            no_room: 0,
            last: [(0, u32::MAX); 4],
        }
    }

    #[inline]
    pub(super) fn passed(&self, path: Path) -> u8 {
        self.routes[path as usize].passed
    }

    /// * `in_flight`: with the request itself.
    #[inline]
    pub(super) fn of(&mut self, path: Path, length: u32, in_flight: u32) -> Cost {
        let (last_length, last_at) = self.last[path as usize];
        let at = if last_length == length && last_at != u32::MAX {
            last_at
        } else {
            self.find(path, length)
        };
        if let Some(Some(Some(cost))) =
            self.kept.get(at as usize).map(|row| row.get(in_flight as usize - 1).copied())
        {
            return cost;
        }
        self.work_out(path, length, in_flight, at)
    }

    fn find(&mut self, path: Path, length: u32) -> u32 {
        let next = self.kept.len() as u32;
        let at = *self.index.entry((path as u8, length)).or_insert(next);
        if at == next {
            self.kept.push(Vec::new());
        }
        self.last[path as usize] = (length, at);
        at
    }

    #[cold]
    fn work_out(&mut self, path: Path, length: u32, in_flight: u32, at: u32) -> Cost {
        let cost = self.routes[path as usize].cost(length, in_flight);
        let row = &mut self.kept[at as usize];
        let more = (in_flight as usize).saturating_sub(row.len());
        if self.kept_count + more > KEPT_MAX {
            // Making room costs as much as all that is kept: never for one request.
            self.no_room += 1;
            if self.no_room == KEPT_MAX {
                self.index.clear();
                self.kept.clear();
                (self.kept_count, self.no_room) = (0, 0);
                self.last = [(0, u32::MAX); 4];
            }
            return cost;
        }
        if more > 0 {
            self.kept_count += more;
            row.resize(in_flight as usize, None);
        }
        row[in_flight as usize - 1] = Some(cost);
        cost
    }
}

/// The law of what a cache serves: its own times, and none of the last stage's limits.
fn cached(law: &Law, latency: Nanos, request_bandwidth: Option<Bytes>) -> Law {
    Law { iops: None, bandwidth: None, latency, request_bandwidth, sharpness: law.sharpness }
}

/// * `spared`: the first stage that is not passed.
fn route(spec: &ModelSpec, law: &Law, writes: bool, spared: usize) -> Route {
    // What a cache in front of everything serves is still served by the first stage.
    let passed = spared.clamp(1, spec.stages.len().max(1));
    let caps = |k: usize| -> Caps {
        spec.stages
            .get(k)
            .filter(|_| k < spared)
            .map(|stage| if writes { stage.write.clone() } else { stage.read.clone() })
            .unwrap_or_default()
    };
    let mut stages: Vec<(f64, f64)> = (0..passed)
        .map(|k| {
            let caps = caps(k);
            (caps.iops.map_or(0.0, |iops| 1e9 / iops), per_byte(caps.bandwidth))
        })
        .collect();
    // The law's own limits are the last stage's; the slower of two limits of one stage counts.
    if let Some(last) = stages.last_mut() {
        last.0 = last.0.max(law.iops.map_or(0.0, |iops| 1e9 / iops));
        last.1 = last.1.max(per_byte(law.bandwidth));
    }
    let mut shares: Vec<f64> =
        (0..passed).map(|k| spec.stages.get(k).map_or(0.0, |stage| stage.latency_share)).collect();
    let total: f64 = shares.iter().sum();
    if total > 0.0 {
        shares.iter_mut().for_each(|share| *share /= total);
    } else if let Some(last) = shares.last_mut() {
        *last = 1.0;
    }
    Route {
        fixed: law.latency.get() as f64,
        per_byte: per_byte(law.request_bandwidth),
        sharpness: law.sharpness,
        stages,
        shares,
        passed: passed as u8,
    }
}

/// Ns.
fn per_byte(bandwidth: Option<Bytes>) -> f64 {
    bandwidth.map_or(0.0, |bandwidth| 1e9 / bandwidth.get() as f64)
}
