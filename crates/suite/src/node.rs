//! TOML as a tree that remembers where each value stood.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use units::{Bytes, is_unseen};

use crate::error::Problem;
use crate::syntax;

/// Where a value came from. Small, since every value carries one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum At {
    /// Byte offset in the text.
    Text(usize),
    /// Number of the override.
    Override(usize),
}

/// A value and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub at: At,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A date or time, which no field takes.
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Entries in the order written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    /// Where the key stood.
    pub at: At,
    pub node: Node,
}

/// Keys that come first in a table on one line; the others follow by the alphabet.
const LEADING: [&str; 5] = ["kind", "op", "weight", "start", "space_share"];

/// Leading keys, then sizes by size, then the alphabet.
fn key_order(key: &str) -> (usize, Option<Bytes>, &str) {
    let rank = LEADING.iter().position(|leading| *leading == key).unwrap_or(LEADING.len());
    (rank, key.parse().ok(), key)
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|e| e.key == key).map(|e| &e.node)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|e| e.key == key).map(|e| &mut e.node)
    }

    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|e| e.key == key)?;
        Some(self.entries.remove(index))
    }

    /// Replaces the entry of that key in its place, or appends it.
    pub fn insert(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|e| e.key == entry.key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }
}

impl Node {
    pub fn new(at: At, value: Value) -> Self {
        Self { at, value }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// `{ key = value }`, all at the value's place.
    pub fn wrapped(self, key: &str) -> Self {
        let at = self.at;
        let entry = Entry { key: key.to_owned(), at, node: self };
        Self::new(at, Value::Table(Table { entries: vec![entry] }))
    }

    /// What it is, for messages: `the string "four"`.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::String(text) => format!("the string \"{text}\""),
            Value::Integer(n) => format!("the number {n}"),
            Value::Float(x) => format!("the number {x}"),
            Value::Bool(b) => format!("{b}"),
            Value::Datetime(text) => format!("the date {text}"),
            Value::Array(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// As TOML on one line.
    pub fn inline(&self) -> String {
        match &self.value {
            Value::String(text) => quoted(text),
            Value::Integer(n) => n.to_string(),
            Value::Float(x) => toml::Value::Float(*x).to_string(),
            Value::Bool(b) => b.to_string(),
            Value::Datetime(text) => text.clone(),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(Self::inline).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(table) if table.entries.is_empty() => "{}".to_owned(),
            Value::Table(table) => {
                let pairs: Vec<String> = table
                    .entries
                    .iter()
                    .map(|e| format!("{} = {}", inline_key(&e.key), e.node.inline()))
                    .collect();
                format!("{{ {} }}", pairs.join(", "))
            }
        }
    }

    /// From a value that serde made, all at one place, keys in the order people write them.
    pub fn from_toml(value: toml::Value, at: At) -> Self {
        let value = match value {
            toml::Value::String(text) => Value::String(text),
            toml::Value::Integer(n) => Value::Integer(n),
            toml::Value::Float(x) => Value::Float(x),
            toml::Value::Boolean(b) => Value::Bool(b),
            toml::Value::Datetime(date) => Value::Datetime(date.to_string()),
            toml::Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| Self::from_toml(item, at)).collect())
            }
            toml::Value::Table(map) => {
                let mut entries: Vec<Entry> = map
                    .into_iter()
                    .map(|(key, value)| Entry { key, at, node: Self::from_toml(value, at) })
                    .collect();
                entries.sort_by(|a, b| key_order(&a.key).cmp(&key_order(&b.key)));
                Value::Table(Table { entries })
            }
        };
        Self::new(at, value)
    }
}

/// A text as TOML wants it, and so that a terminal takes no orders from it: TOML itself asks only
/// for the first 32 control characters to be escaped.
pub(crate) fn quoted(text: &str) -> String {
    if !text.chars().any(|c| c >= '\x7f' && is_unseen(c)) {
        return toml::Value::String(text.to_owned()).to_string();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_unseen(c) && c <= '\u{ffff}' => {
                out.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c if is_unseen(c) => out.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key as TOML wants it: bare where it can be.
pub(crate) fn inline_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quoted(key) }
}

/// Reads TOML. On error: where, and what the parser says.
pub(crate) fn parse(text: &str) -> Result<Table, (usize, Problem)> {
    let root = DeTable::parse(text).map_err(|error| syntax::problem(text, &error))?;
    table(root.into_inner(), &At::Text)
}

/// Reads one TOML value of an override, if it is one.
pub(crate) fn parse_value(text: &str, at: At) -> Option<Node> {
    // A line break would let further keys in.
    if text.contains(['\n', '\r']) {
        return None;
    }
    let line = format!("v = {text}");
    let root = DeTable::parse(&line).ok()?;
    let mut table = table(root.into_inner(), &|_| at).ok()?;
    match table.entries.as_slice() {
        [entry] if entry.key == "v" => table.entries.pop().map(|entry| entry.node),
        _ => None,
    }
}

fn table(map: DeTable<'_>, at: &dyn Fn(usize) -> At) -> Result<Table, (usize, Problem)> {
    let mut pairs: Vec<_> = map.into_iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    let mut entries = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let key_at = at(key.span().start);
        let node = node(value, key_at, at)?;
        entries.push(Entry { key: key.into_inner().into_owned(), at: key_at, node });
    }
    Ok(Table { entries })
}

fn node(
    value: Spanned<DeValue<'_>>,
    key_at: At,
    at: &dyn Fn(usize) -> At,
) -> Result<Node, (usize, Problem)> {
    let start = value.span().start;
    let place = at(start);
    let too_large = |seen: &str| {
        let message = format!("the number `{seen}` is too large");
        (start, Problem::Syntax(message))
    };
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(n) => Value::Integer(
            i64::from_str_radix(n.as_str(), n.radix()).map_err(|_| too_large(n.as_str()))?,
        ),
        DeValue::Float(x) => Value::Float(x.as_str().parse().map_err(|_| too_large(x.as_str()))?),
        DeValue::Boolean(b) => Value::Bool(b),
        DeValue::Datetime(date) => Value::Datetime(date.to_string()),
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| {
                let item_at = at(item.span().start);
                node(item, item_at, at)
            });
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        // A table made by dotted keys or headers has no start of its own worth naming.
        DeValue::Table(map) => return Ok(Node::new(key_at, Value::Table(table(map, at)?))),
    };
    Ok(Node::new(place, value))
}
