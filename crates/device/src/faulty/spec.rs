//! What a faulty device is fed with.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use units::{ByteOffset, Bytes, Instant, Nanos};

use crate::model::Check;
use crate::text::exact;
use crate::{Errno, FileIndex, ModelError, Op, Request};

/// What breaks, and when: a request that meets every condition given. A rule without conditions
/// breaks every request of its operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// What happens.
    pub what: Fault,
    /// Only these operations; all that the fault can happen to if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<Op>>,
    /// Only requests that touch this range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<FaultRange>,
    /// Only requests submitted from this moment on, on the device's clock.
    #[serde(default, serialize_with = "exact", skip_serializing_if = "Option::is_none")]
    pub since: Option<Nanos>,
    /// Only the n-th request, from 1, of those that meet the conditions above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<NonZeroU64>,
    /// Only this share of the requests that meet the conditions above, by dice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// A range of one file, or of every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRange {
    /// Number of the file; every file if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u32>,
    /// Where it begins, from the file's beginning.
    #[serde(serialize_with = "exact")]
    pub start: Bytes,
    /// How long it is.
    #[serde(serialize_with = "exact")]
    pub length: Bytes,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// The request fails and has no effect.
    Error(#[serde(with = "errno_text")] Errno),
    /// A transfer moves only so many bytes; shorter ones are not touched.
    Short(#[serde(serialize_with = "exact")] Bytes),
    /// Writes fail with `ENOSPC` once so many bytes have been submitted for writing (again over
    /// the same place counts again). The one that crosses the limit is short. `nth` and `rate` do
    /// not go with it.
    NoSpaceAfter(#[serde(serialize_with = "exact")] Bytes),
    /// The request is carried out but never completes.
    Lost,
    /// The request completes so much later.
    Late(#[serde(serialize_with = "exact")] Nanos),
    /// So many bits, anywhere in what is moved (and in `range`), are flipped: of a read in the
    /// slot's buffer, of a write in what is stored. Nothing happens on devices without data.
    CorruptBits(u32),
    /// The device is gone from then on, for what is in flight too. With `since` and no other
    /// condition: at that moment; else with the request that meets them.
    Vanish {
        /// `ENODEV` or `ENXIO`, usually.
        #[serde(with = "errno_text")]
        errno: Errno,
        /// Where it is seen.
        #[serde(default)]
        seen: VanishSeen,
    },
}

/// Where a vanished device is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VanishSeen {
    /// Each request fails.
    #[default]
    Requests,
    /// Each reap returns [`crate::DeviceError::Gone`].
    Device,
}

impl FaultRule {
    /// A rule without conditions.
    pub const fn new(what: Fault) -> Self {
        Self { what, ops: None, range: None, since: None, nth: None, rate: None }
    }

    /// Of one operation.
    pub fn on(mut self, op: Op) -> Self {
        self.ops.get_or_insert_default().push(op);
        self
    }

    /// On its n-th request, from 1; 0 is taken for 1.
    pub fn nth(mut self, n: u64) -> Self {
        self.nth = Some(NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN));
        self
    }

    /// On a share of its requests.
    pub const fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// In a range of every file.
    pub const fn range(mut self, start: ByteOffset, length: Bytes) -> Self {
        self.range = Some(FaultRange { file: None, start: Bytes::new(start.get()), length });
        self
    }

    /// From a moment on.
    pub const fn since(mut self, since: Nanos) -> Self {
        self.since = Some(since);
        self
    }

    pub(super) fn matches(&self, request: &Request, now: Instant) -> bool {
        let possible = match self.what {
            Fault::Short(_) => request.op.moves_data(),
            // What the kernel copies is not in the buffer.
            Fault::CorruptBits(_) => matches!(request.op, Op::Read | Op::Write),
            Fault::NoSpaceAfter(_) => request.op == Op::Write,
            _ => true,
        };
        possible
            && self.ops.as_ref().is_none_or(|ops| ops.contains(&request.op))
            && self.range.is_none_or(|range| range.touches(request))
            && self.since.is_none_or(|since| now.get() >= since.get())
    }

    /// For a device that vanishes by the clock alone.
    pub(super) fn vanishes_at(&self) -> Option<(Instant, Errno, VanishSeen)> {
        let Fault::Vanish { errno, seen } = self.what else { return None };
        let alone =
            self.ops.is_none() && self.range.is_none() && self.nth.is_none() && self.rate.is_none();
        let at = Instant::new(self.since.filter(|_| alone)?.get());
        Some((at, errno, seen))
    }

    /// The part of the request's first `moved` bytes that the rule is about: from and to, from
    /// the request's beginning.
    pub(super) fn covered(&self, request: &Request, moved: u32) -> (u64, u64) {
        let moved = u64::from(moved);
        let Some(range) = self.range else { return (0, moved) };
        let start = request.offset.get();
        let end = range.start.get().saturating_add(range.length.get());
        (range.start.get().saturating_sub(start).min(moved), end.saturating_sub(start).min(moved))
    }
}

impl FaultRange {
    /// Syncs of a whole file touch every range of it.
    fn touches(&self, request: &Request) -> bool {
        if self.file.is_some_and(|file| FileIndex(file) != request.file) {
            return false;
        }
        if matches!(request.op, Op::Fsync | Op::Fdatasync) {
            return true;
        }
        if request.op.in_directory() {
            return false;
        }
        let start = request.offset.get();
        let end = start.saturating_add(request.length.into());
        start < self.start.get().saturating_add(self.length.get()) && self.start.get() < end
    }
}

pub(crate) fn check(rules: &[FaultRule]) -> Result<(), ModelError> {
    rules
        .iter()
        .enumerate()
        .fold(Check::new(), |check, (number, rule)| {
            let path = format!("fault[{number}]");
            let rate = rule.rate.unwrap_or(0.0);
            let space = matches!(rule.what, Fault::NoSpaceAfter(_));
            check
                .that(
                    (0.0..=1.0).contains(&rate),
                    format!("{path}.rate"),
                    rate,
                    "a share from 0 to 1",
                )
                .that(
                    !matches!(rule.what, Fault::CorruptBits(4097..)),
                    format!("{path}.what.corrupt-bits"),
                    "more than 4096",
                    "at most 4096",
                )
                .that(
                    !space || (rule.nth.is_none() && rule.rate.is_none()),
                    format!("{path}.what"),
                    "no-space-after with nth or rate",
                    "a rule without them",
                )
        })
        .done()
}

/// By symbol (`EIO`) where there is one, else by number.
mod errno_text {
    use serde::de::{self, Deserializer};
    use serde::{Deserialize, Serializer};

    use crate::Errno;

    /// The largest that Linux returns.
    const LAST: i32 = 4095;

    pub(super) fn serialize<S: Serializer>(
        errno: &Errno,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match errno.name() {
            Some(name) => serializer.serialize_str(name),
            None => serializer.serialize_i32(errno.0),
        }
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        Number(i64),
        Name(String),
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Errno, D::Error> {
        match Text::deserialize(deserializer)? {
            Text::Number(n) => i32::try_from(n)
                .ok()
                .filter(|n| (1..=LAST).contains(n))
                .map(Errno)
                .ok_or_else(|| de::Error::custom(format!("`{n}` is not an error number"))),
            Text::Name(name) => (1..=LAST)
                .map(Errno)
                .find(|errno| errno.name() == Some(&name))
                .ok_or_else(|| de::Error::custom(format!("`{name}` is not a known error symbol"))),
        }
    }
}
