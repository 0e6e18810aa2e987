//! fio's JSON as far as it is used. All else is passed over and takes no room: a file of some MiB
//! would be some hundred as a tree.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

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
    pub timestamp: Number,
    #[serde(default)]
    pub timestamp_ms: Number,
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
    pub groupid: Number,
    pub error: Number,
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
    pub total_ios: Number,
    pub io_bytes: Number,
    /// There since 3, when `io_bytes` became bytes.
    pub io_kbytes: Number,
    pub lat_ns: Loose<Times>,
    pub lat: Loose<Times>,
    pub clat_ns: Loose<Times>,
    pub clat: Loose<Times>,
}

/// Latencies of one kind.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Times {
    pub min: Number,
    pub max: Number,
    pub mean: Number,
    pub stddev: Number,
    pub percentile: Pairs,
    pub bins: Pairs,
}

/// A number, if it is one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Number {
    #[default]
    None,
    Whole(u64),
    Negative(i64),
    Real(f64),
}

impl Number {
    /// Not negative and not beyond what tools count.
    pub(crate) fn real(self) -> Option<f64> {
        let value = match self {
            Self::Whole(n) => n as f64,
            Self::Real(x) => x,
            Self::None | Self::Negative(_) => return None,
        };
        (0.0..=text::NUMBER_MAX).contains(&value).then_some(value)
    }

    pub(crate) fn whole(self) -> Option<u64> {
        if let Self::Whole(n) = self { Some(n) } else { None }
    }

    pub(crate) fn is_there(self) -> bool {
        self != Self::None
    }
}

/// Names and values, as fio was given them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options(pub BTreeMap<String, String>);

/// Value and number, of percentiles or bins, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Pairs(pub Vec<(f64, f64)>);

/// `T`, or nothing where something else stands.
#[derive(Debug)]
pub(crate) struct Loose<T>(pub Option<T>);

impl<T> Default for Loose<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// The entries of `jobs` that are objects, and whether there is another.
pub(crate) struct Jobs<J> {
    pub all: Vec<J>,
    pub odd: bool,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        Self { all: Vec::new(), odd: false }
    }
}

/// Everything that is not looked for.
macro_rules! pass_over {
    ($($name:ident: $type:ty),* => $value:expr) => {
        $(fn $name<E: Error>(self, _: $type) -> Result<Self::Value, E> { Ok($value) })*
    };
}

fn drain_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn drain_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
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
        f.write_str("a number")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Number, E> {
        Ok(Number::Whole(n))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Number, E> {
        Ok(u64::try_from(n).map_or(Number::Negative(n), Number::Whole))
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<Number, E> {
        Ok(Number::Real(x))
    }

    fn visit_unit<E: Error>(self) -> Result<Number, E> {
        Ok(Number::None)
    }

    pass_over!(visit_bool: bool, visit_str: &str => Number::None);

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Number, A::Error> {
        drain_list(list).map(|()| Number::None)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Number, A::Error> {
        drain_map(map).map(|()| Number::None)
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

    pass_over!(visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64 => Loose(None));

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        drain_list(list).map(|()| Loose(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        drain_map(map).map(|()| Loose(None))
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

    pass_over!(
        visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str
        => Loose(None)
    );

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        drain_list(list).map(|()| Loose(None))
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

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything::<Self>(PhantomData))
    }
}

impl<'de> Visitor<'de> for Anything<Pairs> {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values and numbers")
    }

    fn visit_unit<E: Error>(self) -> Result<Pairs, E> {
        Ok(Pairs::default())
    }

    pass_over!(
        visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str
        => Pairs::default()
    );

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Pairs, A::Error> {
        drain_list(list).map(|()| Pairs::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some((Key(at), value)) = map.next_entry::<Key, Number>()? {
            if pairs.len() == PAIRS_MAX {
                let what = format!("more than {PAIRS_MAX} bins of a latency");
                return Err(A::Error::custom(what));
            }
            pairs.extend(at.zip(value.real()));
        }
        Ok(Pairs(pairs))
    }
}

/// A number as the name of a value.
struct Key(Option<f64>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Anything::<Self>(PhantomData))
    }
}

impl Visitor<'_> for Anything<Key> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number in quotes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
        Ok(Key(text::number(text)))
    }
}

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

    pass_over!(
        visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str
        => Jobs::default()
    );

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        drain_map(map).map(|()| Jobs::default())
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
