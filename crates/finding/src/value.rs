//! Values of findings: numbers with unit and interval, names, counts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// What a finding's sentence can show.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// A number with its unit.
    Number(Number),
    /// So many.
    Count(u64),
    /// Whether something is so.
    Flag(bool),
    /// A name that somebody gave: of a stream, a file, a device. Shown as such.
    Name(String),
    /// Words of somebody else: an error of the system, another tool's remark.
    Words(String),
    /// Several.
    List(Vec<Value>),
    /// Values that belong together, by name: one of several that a template shows alike.
    Record(BTreeMap<String, Value>),
}

/// A number, perhaps with an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// In the unit's base: seconds, bytes, 1 for a share of all.
    pub value: f64,
    /// The lower end of its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// What it is in.
    pub unit: Quantity,
}

/// What a number is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    BytesPerSecond,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A share of all: 0.1 is 10 %.
    Share,
    /// The half-width of an interval, as a share of its middle.
    Reach,
    /// A ratio: `x1.92`.
    Ratio,
    /// By how much something changes, as a share: `+3.1 %`, `-12 %`.
    Change,
    /// How many times as much: `5.3 times`.
    Times,
    /// A p value: `0.013`, `<0.0001`.
    Chance,
    /// An exponent, such as an elasticity, with three decimals.
    Exponent,
    /// Without a unit.
    Plain,
}

impl Number {
    /// A number without an interval.
    pub const fn new(value: f64, unit: Quantity) -> Self {
        Self { value, low: None, high: None, unit }
    }

    /// Requests per second.
    pub const fn iops(value: f64) -> Self {
        Self::new(value, Quantity::Iops)
    }

    /// Bytes per second.
    pub const fn bandwidth(value: f64) -> Self {
        Self::new(value, Quantity::BytesPerSecond)
    }

    /// A size.
    pub const fn bytes(value: u64) -> Self {
        Self::new(value as f64, Quantity::Bytes)
    }

    /// A time.
    pub const fn seconds(value: f64) -> Self {
        Self::new(value, Quantity::Seconds)
    }

    /// A time.
    pub const fn ns(value: u64) -> Self {
        Self::new(value as f64 / 1e9, Quantity::Seconds)
    }

    /// A share of all.
    pub const fn share(value: f64) -> Self {
        Self::new(value, Quantity::Share)
    }

    /// A ratio.
    pub const fn ratio(value: f64) -> Self {
        Self::new(value, Quantity::Ratio)
    }

    /// By how much something changes, as a share.
    pub const fn change(value: f64) -> Self {
        Self::new(value, Quantity::Change)
    }

    /// How many times as much.
    pub const fn times(value: f64) -> Self {
        Self::new(value, Quantity::Times)
    }

    /// A p value.
    pub const fn chance(value: f64) -> Self {
        Self::new(value, Quantity::Chance)
    }

    /// An exponent.
    pub const fn exponent(value: f64) -> Self {
        Self::new(value, Quantity::Exponent)
    }

    /// A number without a unit.
    pub const fn plain(value: f64) -> Self {
        Self::new(value, Quantity::Plain)
    }

    /// With an interval.
    #[must_use]
    pub const fn within(mut self, low: f64, high: f64) -> Self {
        self.low = Some(low);
        self.high = Some(high);
        self
    }
}

impl Value {
    /// A name that somebody gave.
    pub fn name(text: impl Into<String>) -> Self {
        Self::Name(text.into())
    }

    /// Several names.
    pub fn names<T: Into<String>>(all: impl IntoIterator<Item = T>) -> Self {
        Self::List(all.into_iter().map(Self::name).collect())
    }

    /// Values that belong together.
    pub fn record<const N: usize>(values: [(&str, Value); N]) -> Self {
        Self::Record(values.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Words of somebody else.
    pub fn words(text: impl Into<String>) -> Self {
        Self::Words(text.into())
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(u64::from(count))
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for Value {
    fn from(words: &str) -> Self {
        Self::words(words)
    }
}

impl From<&String> for Value {
    fn from(words: &String) -> Self {
        Self::words(words)
    }
}

impl From<&[String]> for Value {
    fn from(words: &[String]) -> Self {
        Self::List(words.iter().map(Self::from).collect())
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(all: Vec<T>) -> Self {
        Self::List(all.into_iter().map(Into::into).collect())
    }
}
