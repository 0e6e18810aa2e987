//! Parameters: a value, where it comes from, and how sure it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};
use units::{Bytes, Nanos};

/// Bytes per second. Reads from text as [`Bytes`] with `/s`: `1735MiB/s`. Serialises as the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct PerSecond(pub Bytes);

impl PerSecond {
    /// How many of `size` go through in a second.
    pub fn over(self, size: Bytes) -> f64 {
        self.0.get() as f64 / size.get().max(1) as f64
    }
}

/// Rounded for people: `1.69 GiB/s`.
impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

impl FromStr for PerSecond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = text.strip_suffix("/s").ok_or_else(|| {
            format!("`{text}` is not a rate: wanted a size per second, such as `250MB/s`")
        })?;
        size.parse().map(Self).map_err(|error: units::ParseBytesError| error.to_string())
    }
}

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

/// Of a whole, 0 to 1. No quantity: who knows the drive says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub f64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.literal())
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// The maker says so.
    Datasheet,
    /// A standard, or the source of a program.
    Spec,
    /// Computed from other values.
    Derived,
    /// Made to agree with measurements, which `from` names: they prove nothing any more.
    Fitted,
    /// Nobody knows: somewhere in the range.
    Assumed,
}

impl Provenance {
    /// As texts have it.
    const fn name(self) -> &'static str {
        match self {
            Self::Datasheet => "datasheet",
            Self::Spec => "spec",
            Self::Derived => "derived",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
        }
    }
}

/// Which parameter of a design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParameterName {
    /// Name of the part's text.
    pub part: String,
    /// Of the parameter.
    pub key: &'static str,
}

/// One value of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter<T> {
    /// In the unit of its type.
    pub value: T,
    /// Where it comes from.
    pub origin: Provenance,
    /// Which datasheet, cells or reasoning.
    #[serde(default)]
    pub from: String,
    /// Least and most that it may be; only where it is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[T; 2]>,
}

/// An end of the range of an assumed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The least that it may be.
    Low,
    /// The most.
    High,
}

/// What values of a type may be.
pub(crate) trait Value: Copy + PartialOrd + fmt::Display {
    /// What is wrong with it, as what is wanted.
    fn wanted(self) -> Option<&'static str> {
        None
    }

    /// Times a factor; `None` for what is no quantity.
    fn scaled(self, _: f64) -> Option<Self> {
        None
    }

    /// Rounded for people.
    fn shown(self) -> String {
        self.to_string()
    }

    /// As a text of a part has it; it reads back to the same value, or to four digits of it.
    fn literal(self) -> String {
        self.to_string()
    }
}

impl Value for bool {}

impl Value for u32 {
    fn wanted(self) -> Option<&'static str> {
        (!(1..=1 << 20).contains(&self)).then_some("1 to 1048576")
    }
}

impl Value for f64 {
    fn literal(self) -> String {
        let text = format!("{self:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    fn shown(self) -> String {
        self.literal()
    }

    fn wanted(self) -> Option<&'static str> {
        (!(0.0..=65536.0).contains(&self)).then_some("0 to 65536")
    }

    fn scaled(self, factor: f64) -> Option<Self> {
        Some(self * factor)
    }
}

impl Value for Share {
    fn wanted(self) -> Option<&'static str> {
        (!(0.0..=1.0).contains(&self.0)).then_some("0 to 1")
    }
}

impl Value for Nanos {
    fn literal(self) -> String {
        format!("\"{}\"", self.exact())
    }

    fn scaled(self, factor: f64) -> Option<Self> {
        Some(Self::new((self.get() as f64 * factor).round() as u64))
    }
}

impl Value for Bytes {
    fn literal(self) -> String {
        format!("\"{}\"", self.exact())
    }

    fn scaled(self, factor: f64) -> Option<Self> {
        Some(Self::new((self.get() as f64 * factor).round() as u64))
    }
}

impl Value for PerSecond {
    fn wanted(self) -> Option<&'static str> {
        (self.0 == Bytes::ZERO).then_some("more than nothing")
    }

    fn literal(self) -> String {
        format!("\"{}\"", self.0.exact() + "/s")
    }

    fn scaled(self, factor: f64) -> Option<Self> {
        self.0.scaled(factor).map(Self)
    }
}

/// What is common to parameters of all types.
pub(crate) trait Adjustable {
    fn origin(&self) -> Provenance;
    /// Puts the value at an end of its range, if it has one.
    fn set(&mut self, end: End);
    /// Multiplies the value, which is a fitted one then; `None` where it is no quantity.
    fn scale(&mut self, factor: f64) -> Option<()>;
    /// Says where the value comes from.
    fn cite(&mut self, from: &str);
    /// What is wrong with it: what was seen, what was wanted.
    fn fault(&self) -> Option<(String, &'static str)>;
    /// Its value alone, rounded for people.
    fn shown(&self) -> String;
    /// As a text of a part has it, behind its key.
    fn text(&self) -> String;
}

impl<T: Value> Adjustable for Parameter<T> {
    fn shown(&self) -> String {
        self.value.shown()
    }

    fn text(&self) -> String {
        let origin = self.origin.name();
        let from = match self.from.is_empty() {
            true => String::new(),
            false => format!(", from = {:?}", self.from),
        };
        let range = self
            .range
            .map(|[low, high]| format!(", range = [{}, {}]", low.literal(), high.literal()));
        let range = range.unwrap_or_default();
        format!("{{ value = {}, origin = \"{origin}\"{from}{range} }}", self.value.literal())
    }

    fn origin(&self) -> Provenance {
        self.origin
    }

    fn set(&mut self, end: End) {
        if let Some([low, high]) = self.range {
            self.value = if end == End::Low { low } else { high };
        }
    }

    fn scale(&mut self, factor: f64) -> Option<()> {
        let value = self.value.scaled(factor)?;
        let from = "measured cells".to_owned();
        *self = Self { value, origin: Provenance::Fitted, from, range: None };
        Some(())
    }

    fn cite(&mut self, from: &str) {
        from.clone_into(&mut self.from);
    }

    fn fault(&self) -> Option<(String, &'static str)> {
        let ends = self.range.into_iter().flatten();
        for value in [self.value].into_iter().chain(ends) {
            if let Some(wanted) = value.wanted() {
                return Some((format!("`{value}`"), wanted));
            }
        }
        match (self.origin, self.range) {
            (Provenance::Assumed, None) => {
                Some(("`assumed` without `range`".to_owned(), "the least and the most it may be"))
            }
            (Provenance::Assumed, Some([low, high])) if low <= self.value && self.value <= high => {
                None
            }
            (Provenance::Assumed, Some([low, high])) => {
                let seen = format!("`{}` with the range {low} to {high}", self.value);
                Some((seen, "a value within it"))
            }
            (_, Some(_)) => Some(("a range".to_owned(), "one only where `origin` is `assumed`")),
            (_, None) if self.from.is_empty() => {
                Some(("no `from`".to_owned(), "the source of the value"))
            }
            (_, None) => None,
        }
    }
}
