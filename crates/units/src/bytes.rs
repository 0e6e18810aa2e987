use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

/// A length. For a position see [`ByteOffset`].
///
/// Reads from text as people write sizes: a bare number is bytes, `K`, `M`, `G`, `T` and
/// `KiB`... are powers of 1024 (what storage tools mean by them), `kB`, `MB`, `GB`, `TB` powers
/// of 1000. Serialises as the integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bytes(u64);

/// A position in a file or on a device, in bytes from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ByteOffset(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `n` bytes.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// `n` x 1024.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// `n` x 1024².
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// `n` x 1024³.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// The number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether a whole number of `unit` fits. `false` for a unit of zero.
    pub const fn is_multiple_of(self, unit: Self) -> bool {
        unit.0 != 0 && self.0.is_multiple_of(unit.0)
    }

    /// As exact as it is short: `4KiB`, `512B`, `1536KiB`. Reads back to the same value.
    pub fn exact(self) -> String {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        for (name, shift) in units {
            if self.0 != 0 && self.0.is_multiple_of(1 << shift) {
                return format!("{}{name}", self.0 >> shift);
            }
        }
        format!("{}B", self.0)
    }
}

impl ByteOffset {
    /// The beginning.
    pub const ZERO: Self = Self(0);

    /// `n` bytes from the beginning.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The distance from the beginning in bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Rounded for people: three significant digits, binary units, `1.46 GiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        // 999.5 and more would print as four digits.
        while value >= 999.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let text = if unit == 0 || value >= 99.95 {
            format!("{value:.0}")
        } else if value >= 9.995 {
            format!("{value:.1}")
        } else {
            format!("{value:.2}")
        };
        let text = if unit > 0 && text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        };
        f.pad(&format!("{text} {}", UNITS[unit]))
    }
}

impl fmt::Display for ByteOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.0)
    }
}

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseBytesError {
    /// No digits in front.
    #[error("`{0}` is not a size: it does not begin with a number")]
    NoNumber(String),
    /// Letters that are no unit.
    #[error(
        "`{unit}` in `{text}` is not a unit of size: wanted B, KiB, MiB, GiB, TiB (K, M, G, T for \
         short) or kB, MB, GB, TB"
    )]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The part that was not understood.
        unit: String,
    },
    /// More than 2^64 - 1 bytes, or less than one.
    #[error("`{0}` is not a whole number of bytes from 0 to 2^64 - 1, just below 16 EiB")]
    OutOfRange(String),
}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let number = number.replace('_', "");
        if number.is_empty() {
            return Err(ParseBytesError::NoNumber(text.to_owned()));
        }
        let scale: u64 = match unit.trim() {
            "" | "B" => 1,
            "k" | "K" | "Ki" | "KiB" | "kiB" | "kib" => 1 << 10,
            "m" | "M" | "Mi" | "MiB" | "mib" => 1 << 20,
            "g" | "G" | "Gi" | "GiB" | "gib" => 1 << 30,
            "t" | "T" | "Ti" | "TiB" | "tib" => 1 << 40,
            "p" | "P" | "Pi" | "PiB" | "pib" => 1 << 50,
            "e" | "E" | "Ei" | "EiB" | "eib" => 1 << 60,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "PB" => 1_000_000_000_000_000,
            "EB" => 1_000_000_000_000_000_000,
            other => {
                return Err(ParseBytesError::UnknownUnit {
                    text: text.to_owned(),
                    unit: other.to_owned(),
                });
            }
        };
        scaled(&number, scale).map(Self).ok_or_else(|| ParseBytesError::OutOfRange(text.to_owned()))
    }
}

/// `number` (digits with at most one point) times `scale`, if that is a whole number below 2^64.
///
/// Integer arithmetic throughout: 0.1 TB in floating point would be a byte off.
pub(crate) fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return None;
    }
    let digits: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let divisor = 10u128.pow(fraction.len() as u32);
    let part = digits.checked_mul(u128::from(scale))?;
    if part % divisor != 0 {
        return None;
    }
    let total = whole.checked_mul(u128::from(scale))?.checked_add(part / divisor)?;
    u64::try_from(total).ok()
}

/// Bandwidth for people, in binary units: `1.46 GiB/s`.
pub fn bandwidth(bytes_per_second: f64) -> String {
    format!("{}/s", Bytes(bytes_per_second.max(0.0) as u64))
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 4096, \"4K\", \"4KiB\" or \"4kB\"")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Bytes, E> {
                Ok(Bytes(n))
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Bytes, E> {
                u64::try_from(n)
                    .map(Bytes)
                    .map_err(|_| E::custom(format!("`{n}` is not a size: it is negative")))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
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
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [
            ("512", 512),
            ("4K", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("4 KiB", 4096),
            ("4kB", 4000),
            ("1.5GiB", 3 << 29),
            ("0.1TB", 100_000_000_000),
            ("2T", 2 << 40),
            ("1_000", 1000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "K", "-1", "4X", "4KiBs", "1.0001K", "99999999999T", "1.2.3K", ".", "1e3"]
        {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn exact_reads_back() {
        for n in [0, 1, 512, 4096, 1536 << 10, 4 << 30, u64::MAX] {
            assert_eq!(Bytes(n).exact().parse(), Ok(Bytes(n)));
        }
    }

    #[test]
    fn display_has_three_digits() {
        for (n, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (4096, "4 KiB"),
            (4 << 30, "4 GiB"),
            (1_565_000_000, "1.46 GiB"),
        ] {
            assert_eq!(Bytes(n).to_string(), text);
        }
    }
}
