//! From a [`Node`] to typed values through serde, so that the types are the grammar. Errors
//! carry the innermost place and field.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};

use crate::error::Problem;
use crate::node::{At, Entry, Node, Table, Value};

/// What went wrong, and where once a level that knows has seen it.
#[derive(Debug)]
pub(crate) struct ReadError {
    pub at: Option<At>,
    pub problem: Problem,
}

impl ReadError {
    /// Calls a field by the name under which it was written.
    fn rename(&mut self, inner: Option<&str>, written: &str) {
        let (Problem::WrongType { field, .. }
        | Problem::Unreadable { field, .. }
        | Problem::UnknownWord { field, .. }) = &mut self.problem
        else {
            return;
        };
        if inner == Some(field.as_str()) {
            *field = written.to_owned();
        }
    }

    /// With its place, which is `at` where no level knew a nearer one.
    pub(crate) fn located(self, at: At) -> (At, Problem) {
        (self.at.unwrap_or(at), self.problem)
    }

    /// Fills in what the innermost level could not know. Outer levels change nothing.
    fn within(mut self, at: At, name: &str) -> Self {
        self.at.get_or_insert(at);
        match &mut self.problem {
            Problem::WrongType { field, .. }
            | Problem::Unreadable { field, .. }
            | Problem::UnknownWord { field, .. }
            | Problem::OutOfRange { field, .. }
                if field.is_empty() =>
            {
                *field = name.to_owned();
            }
            Problem::Missing { of, .. } if of.is_empty() => *of = format!("`{name}`"),
            _ => {}
        }
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let problem = Problem::Unreadable { field: String::new(), message: message.to_string() };
        Self { at: None, problem }
    }

    fn invalid_type(seen: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let problem = Problem::WrongType {
            field: String::new(),
            seen: describe(seen),
            wanted: in_words(&wanted.to_string()),
        };
        Self { at: None, problem }
    }

    fn invalid_value(seen: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::invalid_type(seen, wanted)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let problem = Problem::UnknownWord {
            field: String::new(),
            seen: variant.to_owned(),
            known: owned(expected),
        };
        Self { at: None, problem }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let problem = Problem::UnknownKey { key: field.to_owned(), known: owned(expected) };
        Self { at: None, problem }
    }

    fn missing_field(field: &'static str) -> Self {
        let problem = Problem::Missing { field: field.to_owned(), of: String::new() };
        Self { at: None, problem }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn is_too_large(text: &str) -> bool {
    text.len() > 18 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn describe(seen: Unexpected<'_>) -> String {
    match seen {
        // An override that is no number for us is a text: one of digits alone is still meant as one.
        Unexpected::Str(text) if is_too_large(text) => format!("the number {text}, too large"),
        Unexpected::Str(text) => format!("the string \"{text}\""),
        Unexpected::Signed(n) => format!("the number {n}"),
        Unexpected::Unsigned(n) => format!("the number {n}"),
        Unexpected::Float(x) => format!("the number {x}"),
        Unexpected::Bool(b) => b.to_string(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// serde names Rust's types; people who write suites need not know them.
fn in_words(wanted: &str) -> String {
    match wanted {
        "u8" => "a whole number from 0 to 255",
        "u32" | "u64" => "a whole number, not negative",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        other => return other.to_owned(),
    }
    .to_owned()
}

/// Reads a table called `name` that stands at `at`.
pub(crate) fn read_table<T: DeserializeOwned>(
    table: &Table,
    at: At,
    name: &str,
) -> Result<T, ReadError> {
    T::deserialize(TableReader(table)).map_err(|e| e.within(at, name))
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(n) => match u64::try_from(*n) {
                Ok(n) => visitor.visit_u64(n),
                Err(_) => visitor.visit_i64(*n),
            },
            Value::Float(x) => visitor.visit_f64(*x),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Datetime(_) => {
                Err(de::Error::invalid_type(Unexpected::Other(&self.describe()), &visitor))
            }
            Value::Array(items) => visitor.visit_seq(Items { items: items.iter(), at: self.at }),
            Value::Table(table) => visitor.visit_map(Fields::new(table)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.value {
            Value::String(text) => {
                let word: StrDeserializer<'_, ReadError> = text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => Err(ReadError {
                at: None,
                problem: Problem::WrongType {
                    field: String::new(),
                    seen: self.describe(),
                    wanted: "a word in quotes".to_owned(),
                },
            }),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A table without a node of its own.
struct TableReader<'de>(&'de Table);

impl<'de> Deserializer<'de> for TableReader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_map(Fields::new(self.0))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any option newtype_struct
        enum
    }
}

struct Items<'de> {
    items: std::slice::Iter<'de, Node>,
    at: At,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some(item) = self.items.next() else { return Ok(None) };
        self.at = item.at;
        seed.deserialize(item).map(Some).map_err(|mut e| {
            e.at.get_or_insert(item.at);
            e
        })
    }
}

/// The key that a word stands under after it was spelled out (`access = "zipf"` becomes
/// `{ kind = "zipf" }`), if it was: key and table then have one place.
fn shorthand(node: &Node) -> Option<&str> {
    let first = node.as_table()?.entries.first()?;
    let spelled_out = matches!(first.key.as_str(), "kind" | "op" | "length");
    (spelled_out && first.at == node.at).then_some(&first.key)
}

struct Fields<'de> {
    entries: std::slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
}

impl<'de> Fields<'de> {
    fn new(table: &'de Table) -> Self {
        Self { entries: table.entries.iter(), current: None }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.current = Some(entry);
        let key: StrDeserializer<'_, ReadError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|e| e.within(entry.at, &entry.key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some(entry) = self.current else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        let shorthand = shorthand(&entry.node);
        seed.deserialize(&entry.node).map_err(|mut e| {
            e.rename(shorthand, &entry.key);
            e.within(entry.node.at, &entry.key)
        })
    }
}

/// The names of a struct's fields, as its derived reader states them.
pub(crate) fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // The capture always ends in an error: it has no values to give.
    let _ = T::deserialize(Capture(&mut names));
    names
}

struct Capture<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Capture<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, ReadError> {
        Err(de::Error::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any option newtype_struct enum
    }
}
