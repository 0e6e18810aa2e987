//! fio's JSON as far as it is used. All else is passed over and takes no room: a file of some MiB
//! would be some hundred as a tree.
//!
//! A field may be missing or `null`: versions differ. One that is there and is not what fio writes there
//! (text for a number, a number below zero) is an error and never passed over, since a run without it
//! would look whole.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

use crate::draft::CELLS_MAX;
use crate::text;

/// fio has 1856 bins for a latency, and some twenty percentiles.
const PAIRS_MAX: usize = 1 << 16;
/// It knows some 250 options.
const OPTIONS_MAX: usize = 4096;

/// All of it; `J` is what is kept of a job.
#[derive(Deserialize)]
#[serde(bound = "J: From<Job>")]
pub(crate) struct Root<J> {
    #[serde(rename = "fio version", default)]
    pub version: Loose<String>,
    #[serde(default)]
    pub timestamp: Count,
    #[serde(default)]
    pub timestamp_ms: Count,
    #[serde(rename = "global options", default)]
    pub options: Loose<Options>,
    #[serde(default)]
    pub jobs: Jobs<J>,
}

/// One entry of `jobs`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Job {
    pub jobname: Loose<String>,
    pub groupid: Count,
    pub error: Count,
    #[serde(rename = "job options")]
    pub options: Loose<Options>,
    pub usr_cpu: Number,
    pub sys_cpu: Number,
    pub read: Loose<Direction>,
    pub write: Loose<Direction>,
    pub trim: Loose<Direction>,
    pub mixed: Loose<Direction>,
    pub sync: Loose<Direction>,
}

/// What was done in one direction.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Direction {
    pub iops: Number,
    pub runtime: Number,
    pub bw: Number,
    pub bw_bytes: Number,
    pub total_ios: Count,
    pub io_bytes: Count,
    /// There since 3, when `io_bytes` became bytes.
    pub io_kbytes: Number,
    pub lat_ns: Loose<Times>,
    pub lat: Loose<Times>,
    pub clat_ns: Loose<Times>,
    pub clat: Loose<Times>,
}

/// Latencies of one kind; where there are bins, they hold every request that was counted.
#[derive(Default, Deserialize)]
#[serde(try_from = "TimesAsTold")]
pub(crate) struct Times {
    pub min: Number,
    pub max: Number,
    pub mean: Number,
    pub stddev: Number,
    /// How many; since 2.21.
    pub count: Count,
    pub percentile: Pairs<Percent, Number>,
    pub bins: Pairs<At, Count>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TimesAsTold {
    min: Number,
    max: Number,
    mean: Number,
    stddev: Number,
    #[serde(rename = "N")]
    count: Count,
    percentile: Pairs<Percent, Number>,
    bins: Pairs<At, Count>,
}

impl TryFrom<TimesAsTold> for Times {
    type Error = String;

    fn try_from(told: TimesAsTold) -> Result<Self, String> {
        let TimesAsTold { min, max, mean, stddev, count, percentile, bins } = told;
        let binned: f64 = bins.all.iter().map(|(_, n)| n).sum();
        match count.0 {
            // A bin that was lost would shift what is made of the others.
            Some(n) if !bins.all.is_empty() && binned != n as f64 => {
                Err(format!("{binned} requests in the bins, expected the {n} of `N`"))
            }
            _ => Ok(Self { min, max, mean, stddev, count, percentile, bins }),
        }
    }
}

impl Times {
    /// False where nothing was timed: fio prints zeros then.
    pub(crate) fn any(&self) -> bool {
        let zero = |number: Number| number.0.unwrap_or(0.0) == 0.0;
        match self.count.0 {
            Some(n) => n > 0,
            None => !(zero(self.max) && zero(self.mean)),
        }
    }
}

/// A number from 0 on, and not beyond what tools count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Number(pub Option<f64>);

/// A whole one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count(pub Option<u64>);

/// Whole numbers up to here are exact as floats.
const EXACT_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// The name of a percentile: a share of 100.
pub(crate) struct Percent(f64);

/// The name of a bin: a latency.
pub(crate) struct At(f64);

/// Names and values, as fio was given them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options(pub BTreeMap<String, String>);

/// Names and numbers, of percentiles or bins, in the order of the text.
pub(crate) struct Pairs<K, V> {
    pub all: Vec<(f64, f64)>,
    kind: PhantomData<(K, V)>,
}

impl<K, V> Default for Pairs<K, V> {
    fn default() -> Self {
        Self { all: Vec::new(), kind: PhantomData }
    }
}

/// `T`, or nothing where `null` stands.
#[derive(Debug)]
pub(crate) struct Loose<T>(pub Option<T>);

impl<T> Default for Loose<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// The entries of `jobs`, and whether there is one that is `null`.
pub(crate) struct Jobs<J> {
    pub all: Vec<J>,
    pub odd: bool,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        Self { all: Vec::new(), odd: false }
    }
}

struct Anything<T>(PhantomData<T>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything::<Self>(PhantomData))
    }
}

impl<'de> Visitor<'de> for Anything<Number> {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 10^18")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Number, E> {
        self.visit_f64(n as f64)
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Number, E> {
        self.visit_f64(n as f64)
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<Number, E> {
        match (0.0..=text::NUMBER_MAX).contains(&x) {
            true => Ok(Number(Some(x))),
            false => Err(E::invalid_value(Unexpected::Float(x), &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Number, E> {
        Ok(Number(None))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything::<Self>(PhantomData))
    }
}

impl<'de> Visitor<'de> for Anything<Count> {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 10^18")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Count, E> {
        match n as f64 <= text::NUMBER_MAX {
            true => Ok(Count(Some(n))),
            false => Err(E::invalid_value(Unexpected::Unsigned(n), &self)),
        }
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Count, E> {
        match u64::try_from(n) {
            Ok(n) => self.visit_u64(n),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(n), &self)),
        }
    }

    /// As programs write it that know no whole numbers. Beyond 2^53 the last digits are gone.
    fn visit_f64<E: Error>(self, x: f64) -> Result<Count, E> {
        match x.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&x) {
            true => Ok(Count(Some(x as u64))),
            false => Err(E::invalid_value(Unexpected::Float(x), &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Count, E> {
        Ok(Count(None))
    }
}

impl<'de> Deserialize<'de> for Loose<String> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything::<String>(PhantomData))
    }
}

impl<'de> Visitor<'de> for Anything<String> {
    type Value = Loose<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Loose(Some(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Loose(None))
    }
}

/// Objects: `Loose` of what is read from one.
struct Object<T>(PhantomData<T>);

macro_rules! loose_object {
    ($($type:ty),*) => {
        $(impl<'de> Deserialize<'de> for Loose<$type> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(Object::<$type>(PhantomData))
            }
        })*
    };
}
loose_object!(Options, Direction, Times, Job);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = Loose<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Loose(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|found| Loose(Some(found)))
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Anything::<Self>(PhantomData))
    }
}

impl<'de> Visitor<'de> for Anything<Options> {
    type Value = Options;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Options, A::Error> {
        let mut options = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Loose<String>>()? {
            if options.len() == OPTIONS_MAX {
                return Err(A::Error::custom(format!("more than {OPTIONS_MAX} options")));
            }
            options.extend(value.0.map(|value| (name, value)));
        }
        Ok(Options(options))
    }
}

/// What stands behind a name, as a float.
pub(crate) trait Value {
    fn value(self) -> Option<f64>;
}

impl Value for Number {
    fn value(self) -> Option<f64> {
        self.0
    }
}

impl Value for Count {
    fn value(self) -> Option<f64> {
        self.0.map(|n| n as f64)
    }
}

impl<'de, K, V> Deserialize<'de> for Pairs<K, V>
where
    K: Deserialize<'de> + Into<f64>,
    V: Deserialize<'de> + Value,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything::<Self>(PhantomData))
    }
}

impl<'de, K, V> Visitor<'de> for Anything<Pairs<K, V>>
where
    K: Deserialize<'de> + Into<f64>,
    V: Deserialize<'de> + Value,
{
    type Value = Pairs<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values and numbers")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Pairs::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((at, value)) = map.next_entry::<K, V>()? {
            if pairs.len() == PAIRS_MAX {
                let what = format!("more than {PAIRS_MAX} bins of a latency");
                return Err(A::Error::custom(what));
            }
            let value = value.value().ok_or_else(|| A::Error::custom("null, expected a number"))?;
            pairs.push((at.into(), value));
        }
        Ok(Pairs { all: pairs, kind: PhantomData })
    }
}

macro_rules! name {
    ($type:ident, $most:expr, $expected:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Anything::<Self>(PhantomData))
            }
        }

        impl Visitor<'_> for Anything<$type> {
            type Value = $type;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expected)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                let found = text::number(text).filter(|&value| value <= $most);
                found.map($type).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        impl From<$type> for f64 {
            fn from($type(value): $type) -> Self {
                value
            }
        }
    };
}
name!(Percent, 100.0, "a number up to 100 in quotes");
name!(At, text::NUMBER_MAX, "a number in quotes");

impl<'de, J: From<Job>> Deserialize<'de> for Jobs<J> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(JobList(PhantomData))
    }
}

struct JobList<J>(PhantomData<J>);

impl<'de, J: From<Job>> Visitor<'de> for JobList<J> {
    type Value = Jobs<J>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Jobs::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut jobs = Jobs::default();
        while let Some(Loose(job)) = list.next_element::<Loose<Job>>()? {
            if jobs.all.len() == CELLS_MAX {
                return Err(A::Error::custom(format!("more than {CELLS_MAX} jobs")));
            }
            jobs.odd |= job.is_none();
            // At once, so that only what is used of it is kept.
            jobs.all.extend(job.map(J::from));
        }
        Ok(jobs)
    }
}
