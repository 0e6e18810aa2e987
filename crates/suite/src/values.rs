//! Values as people write them: sizes, times, parts of the files, mixes of sizes, ways to spread
//! them. Each reads from text, serialises to text that reads back, and has a schema.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::{Bytes, Nanos};

/// A size as people write it. Serialises to text that reads back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Size(pub Bytes);

/// A span of time as people write it. Serialises to text that reads back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub Nanos);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl Visitor<'_> for TimeVisitor {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"10s\", \"500ms\", \"20us\", or a number of seconds")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Time, E> {
                Nanos::deserialize(n.into_deserializer()).map(Time)
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Time, E> {
                Nanos::deserialize(n.into_deserializer()).map(Time)
            }
            fn visit_f64<E: de::Error>(self, n: f64) -> Result<Time, E> {
                Nanos::deserialize(n.into_deserializer()).map(Time)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                let time = text.parse().map_err(E::custom)?;
                // In quotes nobody sees whether seconds were meant, or a unit was forgotten.
                match text.trim().ends_with(char::is_alphabetic) {
                    true => Ok(Time(time)),
                    false => Err(E::custom(format!(
                        "`{text}` has no unit: wanted ns, us, ms, s, min or h, or seconds without quotes"
                    ))),
                }
            }
        }
        deserializer.deserialize_any(TimeVisitor)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.exact())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.exact())
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size: bytes as a number, or text with a unit. K, M, G, T and KiB, \
                            MiB, GiB, TiB are powers of 1024; kB, MB, GB, TB powers of 1000.",
            "type": ["integer", "string"],
            "minimum": 0
        })
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A span of time: seconds as a number, or text with one of the units \
                            ns, us, ms, s, min, h.",
            "type": ["number", "string"],
            "minimum": 0
        })
    }
}

/// A length of the space that a stream addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Extent {
    /// So many bytes.
    Bytes(Bytes),
    /// A part of the space in percent, kept so since it must read back exactly.
    Percent(f64),
    /// What is left.
    Rest,
}

impl FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "rest" {
            return Ok(Self::Rest);
        }
        let Some(percent) = text.strip_suffix('%') else {
            return text
                .parse()
                .map(Self::Bytes)
                .map_err(|e: units::ParseBytesError| e.to_string());
        };
        match percent.trim().parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Percent(percent)),
            _ => Err(format!("`{text}` is not a share from 0% to 100%")),
        }
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ExtentVisitor;
        impl Visitor<'_> for ExtentVisitor {
            type Value = Extent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size, a share such as \"25%\", or \"rest\"")
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Extent, E> {
                Ok(Extent::Bytes(Bytes::new(n)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Extent, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(ExtentVisitor)
    }
}

impl Serialize for Extent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bytes(bytes) => serializer.serialize_str(&bytes.exact()),
            Self::Percent(percent) => serializer.serialize_str(&format!("{percent}%")),
            Self::Rest => serializer.serialize_str("rest"),
        }
    }
}

impl JsonSchema for Extent {
    fn schema_name() -> Cow<'static, str> {
        "Extent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size, a share of the space such as \"25%\", or \"rest\".",
            "type": ["integer", "string"],
            "minimum": 0
        })
    }
}

/// Block sizes with their weights: a list for equal ones, else a table `{ "4KiB" = 60 }`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SizeMix(pub Vec<(Bytes, f64)>);

impl<'de> Deserialize<'de> for SizeMix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MixVisitor;
        impl<'de> Visitor<'de> for MixVisitor {
            type Value = SizeMix;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of sizes or a table such as { \"4KiB\" = 60, \"64KiB\" = 40 }")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<SizeMix, A::Error> {
                let mut sizes = Vec::new();
                while let Some(Size(size)) = items.next_element()? {
                    sizes.push((size, 1.0));
                }
                Ok(SizeMix(sizes))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SizeMix, A::Error> {
                let mut sizes = Vec::new();
                while let Some((Size(size), weight)) = map.next_entry()? {
                    sizes.push((size, weight));
                }
                // A table has no order of its own, so the classes' must not hang on one.
                sizes.sort_by_key(|(size, _)| *size);
                Ok(SizeMix(sizes))
            }
        }
        deserializer.deserialize_any(MixVisitor)
    }
}

impl Serialize for SizeMix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.iter().all(|(_, weight)| *weight == 1.0) {
            return serializer.collect_seq(self.0.iter().map(|(size, _)| size.exact()));
        }
        serializer.collect_map(self.0.iter().map(|(size, weight)| (size.exact(), weight)))
    }
}

impl JsonSchema for SizeMix {
    fn schema_name() -> Cow<'static, str> {
        "SizeMix".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<Size>();
        json_schema!({
            "description": "Block sizes: a list of equally frequent ones, or a table from size to weight.",
            "anyOf": [
                { "type": "array", "items": size, "minItems": 1 },
                { "type": "object", "additionalProperties": { "type": "number" } }
            ]
        })
    }
}

/// How the files make one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawSpread {
    Concatenated,
    FilePerWorker,
    Striped(Bytes),
}

/// The words of [`RawSpread`]; a stripe is a table.
const SPREADS: &[&str] = &["concatenated", "file-per-worker"];

/// A stripe.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { stripe = \"1MiB\" }")]
struct RawStripe {
    stripe: Size,
}

impl<'de> Deserialize<'de> for RawSpread {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SpreadVisitor;
        impl<'de> Visitor<'de> for SpreadVisitor {
            type Value = RawSpread;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"concatenated\", \"file-per-worker\" or { stripe = \"1MiB\" }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawSpread, E> {
                match text {
                    "concatenated" => Ok(RawSpread::Concatenated),
                    "file-per-worker" => Ok(RawSpread::FilePerWorker),
                    _ => Err(E::unknown_variant(text, SPREADS)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawSpread, A::Error> {
                let table = RawStripe::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(RawSpread::Striped(table.stripe.0))
            }
        }
        deserializer.deserialize_any(SpreadVisitor)
    }
}

impl Serialize for RawSpread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Concatenated => serializer.serialize_str("concatenated"),
            Self::FilePerWorker => serializer.serialize_str("file-per-worker"),
            Self::Striped(stripe) => RawStripe { stripe: Size(*stripe) }.serialize(serializer),
        }
    }
}

impl JsonSchema for RawSpread {
    fn schema_name() -> Cow<'static, str> {
        "Spread".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<Size>();
        json_schema!({
            "description": "How the files make one address space.",
            "anyOf": [
                { "type": "string", "enum": SPREADS },
                {
                    "type": "object",
                    "properties": { "stripe": size },
                    "required": ["stripe"],
                    "additionalProperties": false
                }
            ]
        })
    }
}
