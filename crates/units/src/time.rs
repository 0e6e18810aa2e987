use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

/// A span of time in nanoseconds. For a point in time see [`Instant`].
///
/// Reads from text as `10s`, `1.5s`, `500ms`, `20us`, `100ns`, `2m` or `2min`, `1h`; a bare
/// number is seconds, as in every classic tool. Serialises as the integer of ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Nanos(u64);

/// A point on a device's own monotonic clock, in ns since an origin of that clock's choosing.
/// Two instants compare only if they came from the same clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(u64);

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` ns.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// `n` us.
    pub const fn micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// `n` ms.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// `n` s.
    pub const fn secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// Seconds with a fraction; negative and not-a-number give zero, too large gives [`Self::MAX`].
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates and sends NaN to zero, which is what we promise.
        Self((seconds * 1e9) as u64)
    }

    /// The number of ns.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// In seconds, for rates and print.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// For the standard library's calls.
    pub const fn as_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }

    /// The longer of the time left over and nothing.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// As exact as it is short: `10s`, `1500ms`, `20us`. Reads back to the same value.
    pub fn exact(self) -> String {
        for (name, scale) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
            if self.0.is_multiple_of(scale) {
                return format!("{}{name}", self.0 / scale);
            }
        }
        format!("{}ns", self.0)
    }
}

impl Instant {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);
    /// Later than anything: "no deadline".
    pub const MAX: Self = Self(u64::MAX);

    /// `n` ns after the clock's origin.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// ns since the clock's origin.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    /// Saturates: [`Instant::MAX`] plus anything stays "no deadline".
    #[inline]
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub<Nanos> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// Rounded for people: three significant digits, `1.46 ms`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => (n, "ns"),
            1_000..1_000_000 => (n / 1e3, "us"),
            1_000_000..1_000_000_000 => (n / 1e6, "ms"),
            _ => (n / 1e9, "s"),
        };
        let text = if unit == "ns" || value >= 99.95 {
            format!("{value:.0}")
        } else if value >= 9.995 {
            format!("{value:.1}")
        } else {
            format!("{value:.2}")
        };
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        };
        f.pad(&format!("{text} {unit}"))
    }
}

/// Why a text is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseNanosError {
    /// No digits in front.
    #[error("`{0}` is not a time: it does not begin with a number")]
    NoNumber(String),
    /// Letters that are no unit.
    #[error("`{unit}` in `{text}` is not a unit of time: wanted ns, us, ms, s, min or h")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The part that was not understood.
        unit: String,
    },
    /// Not a whole number of ns, or more than 584 years.
    #[error("`{0}` is not a whole number of ns below 2^64")]
    OutOfRange(String),
}

impl FromStr for Nanos {
    type Err = ParseNanosError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let number = number.replace('_', "");
        if number.is_empty() {
            return Err(ParseNanosError::NoNumber(text.to_owned()));
        }
        let scale: u64 = match unit.trim() {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "" | "s" | "sec" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            other => {
                return Err(ParseNanosError::UnknownUnit {
                    text: text.to_owned(),
                    unit: other.to_owned(),
                });
            }
        };
        crate::bytes::scaled(&number, scale)
            .map(Self)
            .ok_or_else(|| ParseNanosError::OutOfRange(text.to_owned()))
    }
}

/// A string is read with its unit. A bare number is seconds, since it was written by a person:
/// stored results use their own integer fields, named `..._ns`.
impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Nanos;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"10s\", \"500ms\", \"20us\", or a number of seconds")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Nanos, E> {
                n.checked_mul(1_000_000_000)
                    .map(Nanos)
                    .ok_or_else(|| E::custom(format!("`{n}` s is too long")))
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Nanos, E> {
                u64::try_from(n)
                    .map_err(|_| E::custom(format!("`{n}` is not a time: it is negative")))
                    .and_then(|n| self.visit_u64(n))
            }
            fn visit_f64<E: de::Error>(self, n: f64) -> Result<Nanos, E> {
                if !(n.is_finite() && n >= 0.0) {
                    return Err(E::custom(format!("`{n}` is not a time")));
                }
                Ok(Nanos::from_secs_f64(n))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Nanos, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_write_them() {
        for (text, ns) in [
            ("10s", 10_000_000_000),
            ("10", 10_000_000_000),
            ("1.5s", 1_500_000_000),
            ("500ms", 500_000_000),
            ("20us", 20_000),
            ("20µs", 20_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0.1ns", u64::MAX), // not a whole ns
        ] {
            let parsed = text.parse::<Nanos>();
            if ns == u64::MAX {
                assert!(parsed.is_err(), "{text}");
            } else {
                assert_eq!(parsed, Ok(Nanos(ns)), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "s", "-1s", "10 parsecs", "1.2.3s", "99999999999h"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn exact_reads_back() {
        for n in [0, 1, 1_000, 1_500_000_000, 10_000_000_000, u64::MAX] {
            assert_eq!(Nanos(n).exact().parse(), Ok(Nanos(n)));
        }
    }
}
