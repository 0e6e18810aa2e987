//! A service level as people write it: `reads p99<2ms, commits p99<5ms, p99.9<20ms`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::Nanos;

/// Percentiles beyond need more requests than an hour has.
const PERCENT: std::ops::RangeInclusive<f64> = 50.0..=99.99;

/// What responses have to keep: every limit, of every stream that it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// In the order written, at least one.
    pub limits: Vec<Limit>,
}

/// A time that only a share of requests may exceed.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Of this stream alone; `None`: of every stream of reads and of commits.
    pub stream: Option<String>,
    /// `99.0` for p99.
    pub percent: f64,
    /// The time, from the moment a request was due.
    pub within: Nanos,
}

impl Limit {
    /// Share of requests that may take longer, in `0.0..1.0`.
    pub fn allowance(&self) -> f64 {
        // To a millionth: 1 - 0.999 is no number that anybody meant.
        ((100.0 - self.percent) * 1e4).round() / 1e6
    }
}

/// `p99 5ms`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{} {}", self.percent, self.within)
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let limits = text.split(',').map(limit).collect::<Option<Vec<_>>>();
        let wrong = || {
            format!("`{text}` is no level: wanted limits such as `p99<10ms` or `reads p99.9<20ms`")
        };
        limits.map(|limits| Self { limits }).ok_or_else(wrong)
    }
}

fn limit(text: &str) -> Option<Limit> {
    let (left, time) = text.trim().split_once('<')?;
    let (stream, share) = match left.trim().rsplit_once(' ') {
        Some((stream, share)) => (Some(stream.trim().to_owned()), share),
        None => (None, left.trim()),
    };
    let percent = share.strip_prefix('p')?.parse().ok().filter(|p| PERCENT.contains(p))?;
    let time = time.trim();
    let within = time.parse().ok().filter(|&within| within > Nanos::ZERO)?;
    time.ends_with(char::is_alphabetic).then_some(Limit { stream, percent, within })
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, limit) in self.limits.iter().enumerate() {
            let comma = if k > 0 { ", " } else { "" };
            let stream = limit.stream.iter().map(|name| format!("{name} ")).collect::<String>();
            write!(f, "{comma}{stream}p{}<{}", limit.percent, limit.within.exact())?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Level {
    fn schema_name() -> Cow<'static, str> {
        "Level".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_reads_back_as_it_is_written() {
        let text = "reads p99<2ms, p99.9<20ms";
        let level: Level = text.parse().unwrap();
        assert_eq!(level.to_string(), text);
        assert_eq!(level.limits[0].stream.as_deref(), Some("reads"));
        assert_eq!(
            (level.limits[1].allowance(), level.limits[1].within),
            (0.001, Nanos::millis(20))
        );
        assert_eq!(" commits  p99 < 5ms".parse::<Level>().unwrap().to_string(), "commits p99<5ms");
        for wrong in
            ["", "p99", "p99<", "p99<5", "99<5ms", "p100<5ms", "p99<0ms", "p99<5ms,", "p10<1s"]
        {
            assert!(wrong.parse::<Level>().is_err(), "{wrong}");
        }
    }
}
