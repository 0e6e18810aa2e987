//! What a model is fed with. Every field may stand in a TOML file; unknown keys are refused.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::text::exact;

/// Stages a request may pass at most.
pub const STAGES_MAX: usize = 8;

/// One simulated device. See [`super::Model`] for what each part does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Size it presents itself with, which files must fit in. Requests are not checked against it.
    #[serde(default = "size", serialize_with = "exact")]
    pub size: Bytes,
    /// Time of a sync (`fsync`, `fdatasync`, `sync_file_range`).
    #[serde(default = "sync_time", serialize_with = "exact")]
    pub sync_time: Nanos,
    /// Time of a discard.
    #[serde(default = "trim_time", serialize_with = "exact")]
    pub trim_time: Nanos,
    /// Law of reads.
    pub read: Law,
    /// Law of writes; that of reads if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Law>,
    /// Layers from the host down. One, called `device`, if empty.
    #[serde(default, rename = "stage", skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageSpec>,
    /// What varies by chance.
    #[serde(default)]
    pub noise: NoiseSpec,
    /// Two speeds between which it switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<RegimeSpec>,
    /// Slowing down with the bytes written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftSpec>,
    /// A sudden fall after so many bytes written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cliff: Option<CliffSpec>,
    /// Cache of what was read (and written).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheSpec>,
    /// Cache that takes writes at its own speed until it is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCacheSpec>,
    /// Budgets that let it work faster until they are spent.
    #[serde(default, rename = "bucket", skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<BucketSpec>,
    /// Freezes at known times.
    #[serde(default, rename = "freeze", skip_serializing_if = "Vec::is_empty")]
    pub freezes: Vec<FreezeSpec>,
    /// Freezes at random times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_freezes: Option<RandomFreezeSpec>,
}

impl ModelSpec {
    /// Whether what was written changes how it answers afterwards: it slows down with the bytes
    /// written, falls at a cliff, spends a budget, or keeps what was written in a cache.
    /// Where not, preconditioning changes nothing.
    pub fn remembers_writes(&self) -> bool {
        let drifts = self.drift.as_ref().is_some_and(|drift| drift.per_gib > 0.0);
        let keeps = self.cache.as_ref().is_some_and(|cache| cache.writes);
        drifts || keeps || !self.buckets.is_empty() || self.write_cliff.is_some()
    }

    /// One stage with these laws and nothing else: no noise, no caches, no freezes.
    pub fn from_law(read: Law, write: Option<Law>) -> Self {
        Self {
            size: size(),
            sync_time: sync_time(),
            trim_time: trim_time(),
            read,
            write,
            stages: Vec::new(),
            noise: NoiseSpec::default(),
            regime: None,
            drift: None,
            write_cliff: None,
            cache: None,
            write_cache: None,
            buckets: Vec::new(),
            freezes: Vec::new(),
            random_freezes: None,
        }
    }
}

/// Throughput of `n` requests of `b` bytes in flight:
/// `X = [A^-p + (W/b)^-p + (n / (t0 + b/w))^-p]^(-1/p)` requests a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// `A`: no more requests a second than this. Belongs to the last stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// `W`: no more bytes a second than this. Belongs to the last stage.
    #[serde(default, serialize_with = "exact", skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bytes>,
    /// `t0`: the fixed part of one request's time.
    #[serde(serialize_with = "exact")]
    pub latency: Nanos,
    /// `w`: bytes a second of one request alone; no such part if absent.
    #[serde(default, serialize_with = "exact", skip_serializing_if = "Option::is_none")]
    pub request_bandwidth: Option<Bytes>,
    /// `p`, at least 1: how sharp the knee between the limits is.
    #[serde(default = "sharpness")]
    pub sharpness: f64,
}

impl Law {
    /// Requests a second by the formula, for the law alone (no stages, no noise).
    ///
    /// * `length`: bytes per request.
    /// * `in_flight`: requests in flight, at least 1.
    pub fn requests_per_second(&self, length: Bytes, in_flight: u32) -> f64 {
        let alone = self.latency.as_secs_f64() + per_second(length, self.request_bandwidth);
        let terms = [
            self.iops.map_or(0.0, |iops| 1.0 / iops),
            per_second(length, self.bandwidth),
            alone / f64::from(in_flight.max(1)),
        ];
        1.0 / norm(&terms, self.sharpness)
    }
}

fn per_second(length: Bytes, bandwidth: Option<Bytes>) -> f64 {
    bandwidth.map_or(0.0, |bandwidth| length.get() as f64 / bandwidth.get() as f64)
}

/// `(sum of x^p)^(1/p)`, without overflow for any `p`.
pub(super) fn norm(terms: &[f64], p: f64) -> f64 {
    let largest = terms.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    largest * terms.iter().map(|x| (x / largest).powf(p)).sum::<f64>().powf(1.0 / p)
}

/// One layer: its own limits, and how much of a request's fixed time is spent in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// Such as `host`, `controller`, `disks`.
    pub name: String,
    /// Limits of reads.
    #[serde(default)]
    pub read: Caps,
    /// Limits of writes.
    #[serde(default)]
    pub write: Caps,
    /// Weight of this stage in sharing out `t0 + b/w`. If no stage has any, all of it is spent in
    /// the last.
    #[serde(default)]
    pub latency_share: f64,
}

/// Limits of a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// Requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// Bytes a second.
    #[serde(default, serialize_with = "exact", skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bytes>,
}

/// What varies by chance. All zero: nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoiseSpec {
    /// Coefficient of variation of the rate from one 100 ms step to another.
    pub cv: f64,
    /// Correlation of the log rate between neighbouring steps, in `0.0..1.0`.
    pub rho: f64,
    /// Log standard deviation of each request's time (lognormal with mean 1, so that the mean
    /// rate stays the law's).
    pub jitter: f64,
    /// Log standard deviation of the rate from one visit to another (median 1).
    pub visit_shift: f64,
}

/// Two regimes with exponential dwell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegimeSpec {
    /// Rate in the second regime over that in the first.
    pub ratio: f64,
    /// Mean dwell in the first.
    #[serde(serialize_with = "exact")]
    pub dwell: Nanos,
    /// Mean dwell in the second; that of the first if absent.
    #[serde(default, serialize_with = "exact", skip_serializing_if = "Option::is_none")]
    pub dwell_second: Option<Nanos>,
}

/// The rate falls by a share with each GiB written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftSpec {
    /// Share lost per GiB, in `0.0..1.0`: after `x` GiB the rate is `(1 - share)^x`.
    pub per_gib: f64,
    /// Whether reads slow down too.
    #[serde(default)]
    pub reads: bool,
}

/// The rate falls at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CliffSpec {
    /// Requests submitted when so many bytes or more have been submitted for writing are slow.
    #[serde(serialize_with = "exact")]
    pub after: Bytes,
    /// Rate after over rate before.
    pub factor: f64,
    /// Whether reads fall too.
    #[serde(default)]
    pub reads: bool,
    /// Counting begins anew after so long without any request; never if absent.
    #[serde(default, serialize_with = "exact", skip_serializing_if = "Option::is_none")]
    pub refill: Option<Nanos>,
}

/// A token bucket over reads and writes, full at the beginning: it is filled at the rate `base`, and
/// what is in it may be spent at the rate `burst`. At a rate `r` above the base it lasts
/// `size / (r - base)`. A `base` that equals `burst` is a limit without credit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BucketSpec {
    /// Of requests.
    Ops {
        /// Requests a second.
        base: f64,
        /// Requests a second.
        burst: f64,
        /// Requests.
        size: f64,
    },
    /// Of bytes.
    Bytes {
        /// Bytes a second.
        #[serde(serialize_with = "exact")]
        base: Bytes,
        /// Bytes a second.
        #[serde(serialize_with = "exact")]
        burst: Bytes,
        /// Bytes.
        #[serde(serialize_with = "exact")]
        size: Bytes,
    },
}

/// Least-recently-used cache in front of a stage. A read hits if all it touches is there; a
/// miss brings in all it touches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// How much it holds.
    #[serde(serialize_with = "exact")]
    pub size: Bytes,
    /// Unit it is kept in.
    #[serde(default = "chunk", serialize_with = "exact")]
    pub chunk: Bytes,
    /// Time of a hit, in place of the law's `t0`.
    #[serde(serialize_with = "exact")]
    pub latency: Nanos,
    /// In place of the law's `w`.
    #[serde(default, serialize_with = "exact", skip_serializing_if = "Option::is_none")]
    pub request_bandwidth: Option<Bytes>,
    /// Whether what is written is kept too.
    #[serde(default = "yes")]
    pub writes: bool,
    /// Stage it spares; the last if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// Write-back cache in front of a stage, drained all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheSpec {
    /// How much it holds. Larger writes pass it by.
    #[serde(serialize_with = "exact")]
    pub size: Bytes,
    /// Time of a write it takes, in place of the law's `t0`.
    #[serde(serialize_with = "exact")]
    pub latency: Nanos,
    /// In place of the law's `w`.
    #[serde(default, serialize_with = "exact", skip_serializing_if = "Option::is_none")]
    pub request_bandwidth: Option<Bytes>,
    /// Bytes a second that leave it.
    #[serde(serialize_with = "exact")]
    pub drain: Bytes,
    /// What it does when full.
    #[serde(default)]
    pub when_full: WhenFull,
    /// Stage it spares; the last if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// What a full write cache does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum WhenFull {
    /// Each write waits for its own room: writes go on at the drain's rate.
    #[default]
    Throttle,
    /// The whole device freezes until only this share of the cache is dirty.
    StallUntil(f64),
}

/// No completion in `[start, start + length)`; what is in flight goes on afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezeSpec {
    /// On the model's clock, from its opening.
    #[serde(serialize_with = "exact")]
    pub start: Nanos,
    /// How long.
    #[serde(serialize_with = "exact")]
    pub length: Nanos,
}

/// Freezes with exponential gaps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomFreezeSpec {
    /// Mean number in an hour without freezes.
    pub per_hour: f64,
    /// How long each.
    #[serde(serialize_with = "exact")]
    pub length: Nanos,
}

const fn size() -> Bytes {
    Bytes::gib(64)
}
const fn sync_time() -> Nanos {
    Nanos::millis(1)
}
const fn trim_time() -> Nanos {
    Nanos::micros(20)
}
const fn sharpness() -> f64 {
    5.0
}
const fn chunk() -> Bytes {
    Bytes::kib(64)
}
const fn yes() -> bool {
    true
}

/// Why a spec describes no device.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A number outside its range.
    #[error("{field} is {seen}, which is not {wanted}")]
    OutOfRange {
        /// Path of the field in the file.
        field: String,
        /// What stands there.
        seen: String,
        /// What may stand there.
        wanted: &'static str,
    },
    /// Too many layers.
    #[error("{seen} stages, at most {STAGES_MAX} are possible")]
    TooManyStages {
        /// How many were asked for.
        seen: usize,
    },
    /// Two layers of one name.
    #[error("two stages are called `{0}`")]
    DuplicateStage(String),
    /// A cache in front of nothing.
    #[error("{field} names the stage `{seen}`, which does not exist")]
    UnknownStage {
        /// Path of the field in the file.
        field: &'static str,
        /// What stands there.
        seen: String,
        /// The stages there are.
        known: Vec<String>,
    },
    /// A file of a later version.
    #[error("schema is {seen}, this version reads {wanted}")]
    Schema {
        /// What stands there.
        seen: u32,
        /// What we read.
        wanted: u32,
    },
}

impl ModelError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownStage { known, .. } => {
                Some(format!("the stages are: {}", known.join(", ")))
            }
            Self::TooManyStages { .. } => Some("merge layers that limit nothing".to_owned()),
            Self::DuplicateStage(_) => Some("give each stage its own name".to_owned()),
            Self::Schema { .. } => Some("take a newer plimsoll, or write schema = 1".to_owned()),
            Self::OutOfRange { .. } => None,
        }
    }
}

pub(crate) struct Check(Result<(), ModelError>);

impl Check {
    pub(crate) const fn new() -> Self {
        Self(Ok(()))
    }

    /// The first that does not hold is the one reported.
    pub(crate) fn that(
        mut self,
        holds: bool,
        field: impl Into<String>,
        seen: impl ToString,
        wanted: &'static str,
    ) -> Self {
        if self.0.is_ok() && !holds {
            self.0 =
                Err(ModelError::OutOfRange { field: field.into(), seen: seen.to_string(), wanted });
        }
        self
    }

    pub(crate) fn positive(self, field: String, seen: f64) -> Self {
        self.that(seen.is_finite() && seen > 0.0, field, seen, "a number above 0")
    }

    pub(crate) fn not_negative(self, field: impl Into<String>, seen: f64, most: f64) -> Self {
        self.that((0.0..=most).contains(&seen), field, seen, "a number from 0 to the sensible")
    }

    fn some_bytes(self, field: impl Into<String>, seen: Option<Bytes>) -> Self {
        self.that(seen != Some(Bytes::ZERO), field, "0", "at least 1 byte")
    }

    fn caps(self, path: &str, iops: Option<f64>, bandwidth: Option<Bytes>) -> Self {
        self.positive(format!("{path}.iops"), iops.unwrap_or(1.0))
            .some_bytes(format!("{path}.bandwidth"), bandwidth)
    }

    fn law(self, path: &str, law: &Law) -> Self {
        self.caps(path, law.iops, law.bandwidth)
            .some_bytes(format!("{path}.request_bandwidth"), law.request_bandwidth)
            .that(
                (1.0..=1000.0).contains(&law.sharpness),
                format!("{path}.sharpness"),
                law.sharpness,
                "a number from 1 to 1000",
            )
    }

    pub(crate) fn done(self) -> Result<(), ModelError> {
        self.0
    }
}

impl BucketSpec {
    /// Requests or bytes: a second of base and of burst, and how many it holds.
    pub(super) const fn amounts(&self) -> (f64, f64, f64) {
        match *self {
            Self::Ops { base, burst, size } => (base, burst, size),
            Self::Bytes { base, burst, size } => {
                (base.get() as f64, burst.get() as f64, size.get() as f64)
            }
        }
    }

    fn check(&self, check: Check) -> Check {
        let (base, burst, size) = self.amounts();
        check.positive("bucket.base".into(), base).positive("bucket.size".into(), size).that(
            burst.is_finite() && burst >= base,
            "bucket.burst",
            burst,
            "at least the base",
        )
    }
}

const SHARE: &str = "a share from 0 to below 1";

impl ModelSpec {
    /// Whether it describes a device; [`super::Model::new`] asks too.
    pub fn check(&self) -> Result<(), ModelError> {
        let share = SHARE;
        let mut check = Check::new().law("read", &self.read);
        if let Some(law) = &self.write {
            check = check.law("write", law);
        }
        let noise = &self.noise;
        check = check
            .not_negative("noise.cv", noise.cv, 10.0)
            .that((0.0..1.0).contains(&noise.rho), "noise.rho", noise.rho, share)
            .not_negative("noise.jitter", noise.jitter, 5.0)
            .not_negative("noise.visit_shift", noise.visit_shift, 5.0);
        if let Some(regime) = &self.regime {
            check = check
                .positive("regime.ratio".into(), regime.ratio)
                .that(regime.dwell > Nanos::ZERO, "regime.dwell", 0, "a time above 0")
                .that(
                    regime.dwell_second != Some(Nanos::ZERO),
                    "regime.dwell_second",
                    0,
                    "a time above 0",
                );
        }
        if let Some(drift) = &self.drift {
            let seen = drift.per_gib;
            check = check.that((0.0..1.0).contains(&seen), "drift.per_gib", seen, share);
        }
        if let Some(cliff) = &self.write_cliff {
            check = check.positive("write_cliff.factor".into(), cliff.factor);
        }
        if let Some(cache) = &self.cache {
            check = check
                .some_bytes("cache.chunk", Some(cache.chunk))
                .that(cache.size >= cache.chunk, "cache.size", cache.size, "at least one chunk")
                .some_bytes("cache.request_bandwidth", cache.request_bandwidth);
        }
        if let Some(cache) = &self.write_cache {
            check = check
                .some_bytes("write_cache.drain", Some(cache.drain))
                .some_bytes("write_cache.request_bandwidth", cache.request_bandwidth);
            if let WhenFull::StallUntil(low) = cache.when_full {
                let field = "write_cache.when_full.stall-until";
                check = check.that((0.0..1.0).contains(&low), field, low, share);
            }
        }
        for bucket in &self.buckets {
            check = bucket.check(check);
        }
        if let Some(random) = &self.random_freezes {
            check = check.not_negative("random_freezes.per_hour", random.per_hour, 1e9);
        }
        for stage in &self.stages {
            check = check
                .caps(&format!("stage.{}.read", stage.name), stage.read.iops, stage.read.bandwidth)
                .caps(
                    &format!("stage.{}.write", stage.name),
                    stage.write.iops,
                    stage.write.bandwidth,
                )
                .not_negative(
                    format!("stage.{}.latency_share", stage.name),
                    stage.latency_share,
                    1e9,
                );
        }
        check.done()?;
        self.check_stages()
    }

    fn check_stages(&self) -> Result<(), ModelError> {
        if self.stages.len() > STAGES_MAX {
            return Err(ModelError::TooManyStages { seen: self.stages.len() });
        }
        for (i, stage) in self.stages.iter().enumerate() {
            if self.stages[..i].iter().any(|earlier| earlier.name == stage.name) {
                return Err(ModelError::DuplicateStage(stage.name.clone()));
            }
        }
        self.stage_before("cache.before", self.cache.as_ref().and_then(|c| c.before.as_deref()))?;
        let write = self.write_cache.as_ref().and_then(|c| c.before.as_deref());
        self.stage_before("write_cache.before", write).map(|_| ())
    }

    /// Number of the stage a cache spares.
    pub(super) fn stage_before(
        &self,
        field: &'static str,
        name: Option<&str>,
    ) -> Result<usize, ModelError> {
        let Some(name) = name else {
            return Ok(self.stages.len().saturating_sub(1));
        };
        self.stages.iter().position(|stage| stage.name == name).ok_or_else(|| {
            ModelError::UnknownStage {
                field,
                seen: name.to_owned(),
                known: self.stages.iter().map(|stage| stage.name.clone()).collect(),
            }
        })
    }
}
