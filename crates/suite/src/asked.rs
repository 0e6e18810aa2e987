//! What each cell of a suite asks for, field by field, however the suite says it: what an axis
//! gives, what was set and what is so by default are told alike, and what changes nothing is not
//! told at all. Two cells that are told alike ask for the same.

use std::collections::BTreeMap;

use crate::check::{CheckContext, before_at, coordinates, looked_at, streams_at};
use crate::effect::idle;
use crate::emit::fill_defaults;
use crate::error::SuiteError;
use crate::model::{Stop, Stream};
use crate::node::{At, Entry, Node, Table, Value};
use crate::raw::RawStream;
use crate::resolve::{fill_details, lookup, to_table, value_text};
use crate::source::{Located, SuiteSource};
use crate::stream::Space;

/// What a cell asks for.
#[derive(Clone, Debug)]
pub struct AskedCell {
    /// Its phase.
    pub phase: String,
    /// Its place on the grid: axis and value, as stored runs tell them.
    pub coordinates: Vec<(String, String)>,
    /// What runs in it.
    pub streams: Vec<AskedStream>,
    /// What is played before each visit.
    pub before: Option<AskedStream>,
}

/// What a stream of a cell asks for.
#[derive(Clone, Debug)]
pub struct AskedStream {
    /// Its name.
    pub name: String,
    fields: Table,
}

impl AskedStream {
    /// Every field that has an effect, by its dotted path: `access.kind` is `zipf`.
    pub fn fields(&self) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        flatten("", &self.fields, &mut out);
        out
    }

    /// A field as axes tell it: `16KiB`, `zipf theta=0.99`.
    ///
    /// * `path`: of a field or of a detail of one: `access.theta`.
    pub fn value(&self, path: &str) -> Option<String> {
        let steps: Vec<String> = path.split('.').map(str::to_owned).collect();
        let found = lookup(&self.fields, &steps).map(value_text);
        // The ends of a share of reads are operations.
        found.or_else(|| match (path, self.fields.get("operation")?.as_str()?) {
            ("read_share", "read") => Some("1".to_owned()),
            ("read_share", "write") => Some("0".to_owned()),
            _ => None,
        })
    }
}

fn flatten(path: &str, table: &Table, out: &mut BTreeMap<String, String>) {
    for entry in &table.entries {
        let key = entry.key.as_str();
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match &entry.node.value {
            Value::Table(table) => flatten(&path, table, out),
            _ => drop(out.insert(path, value_text(&entry.node))),
        }
    }
}

/// What each cell of a suite asks for, in the suite's order.
///
/// Times are those that a visit takes by the suite's method.
pub fn asked(source: &SuiteSource) -> Result<Vec<AskedCell>, SuiteError> {
    asked_at(source).map_err(|(at, problem)| source.error(at, problem))
}

fn asked_at(source: &SuiteSource) -> Located<Vec<AskedCell>> {
    let context = CheckContext::default();
    let found = looked_at(source, &context)?;
    let space = Space { files: &found.suite.files, sector: context.sector };
    let mut played = found.suite.cells_as_played().into_iter();
    let mut out = Vec::new();
    for (phase, checked) in found.phases.iter().zip(&found.suite.phases) {
        let lengths: Vec<usize> = phase.axes.iter().map(|axis| axis.values.len()).collect();
        for index in 0..checked.cells.len() {
            let at = coordinates(index, &lengths);
            let stops = played.next().map(|cell| cell.streams).unwrap_or_default();
            let drawn = streams_at(phase, &at, &space)?;
            let streams = drawn.iter().enumerate().map(|(place, drawn)| {
                let stop = stops.get(place).map_or(drawn.stream.stop, |stream| stream.stop);
                of_stream(&drawn.raw, &drawn.stream, &stop)
            });
            let before = before_at(phase, &at, &space)?;
            let before = before.map(|(raw, stream)| of_stream(&raw, &stream, &stream.stop));
            let axes = checked.axes.iter().zip(&at);
            let place = axes.map(|(axis, &at)| {
                (axis.field.clone(), axis.values.get(at).cloned().unwrap_or_default())
            });
            out.push(AskedCell {
                phase: phase.name.clone(),
                coordinates: place.collect(),
                streams: streams.collect::<Located<_>>()?,
                before: before.transpose()?,
            });
        }
    }
    Ok(out)
}

/// * `stop`: as a visit plays it.
fn of_stream(raw: &RawStream, stream: &Stream, stop: &Stop) -> Located<AskedStream> {
    let at = At::Text(0);
    let mut whole = raw.clone();
    fill_details(&mut whole);
    let mut fields = to_table(&whole, at)?;
    fill_defaults(&mut fields, at, &|_| false);
    fields.entries.retain(|entry| idle(&entry.key, raw, stream).is_none());
    let mut set = |key: &str, value: Value| {
        fields.insert(Entry { key: key.to_owned(), at, node: Node::new(at, value) });
    };
    let text = |text: &str| Value::String(text.to_owned());
    set("ramp", Value::String(stop.ramp.exact()));
    if let Some(time) = stop.time {
        set("time", Value::String(time.exact()));
    }
    // One thing in one way, of those ways that there are to say it.
    if raw.align.is_some_and(|align| Some(align.0) == stream.mix.block_size()) {
        set("align", text("block-size"));
    }
    let share = fields.remove("read_share").and_then(|entry| number(&entry.node).zip(Some(entry)));
    match share {
        Some((1.0, _)) => set_in(&mut fields, "operation", text("read")),
        Some((0.0, _)) => set_in(&mut fields, "operation", text("write")),
        Some((_, entry)) => fields.insert(entry),
        None => {}
    }
    if let Some(entry) = fields.remove("random_share") {
        let mut access = Table::default();
        set_in(&mut access, "kind", text("mixed"));
        access.insert(entry);
        set_in(&mut fields, "access", Value::Table(access));
    }
    Ok(AskedStream { name: stream.name.clone(), fields })
}

fn set_in(table: &mut Table, key: &str, value: Value) {
    let at = At::Text(0);
    table.insert(Entry { key: key.to_owned(), at, node: Node::new(at, value) });
}

fn number(node: &Node) -> Option<f64> {
    match node.value {
        Value::Float(x) => Some(x),
        Value::Integer(n) => Some(n as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;
    use crate::parse;

    fn told(text: &str) -> Vec<AskedCell> {
        let text =
            format!("schema = 1\nname = \"t\"\n[[phase]]\nname = \"p\"\ntime = \"1s\"\n{text}");
        asked(&parse(&text, "t").unwrap()).unwrap()
    }

    fn fields(text: &str) -> Vec<BTreeMap<String, String>> {
        told(text).iter().flat_map(|cell| cell.streams.iter().map(AskedStream::fields)).collect()
    }

    #[test]
    fn an_axis_and_a_setting_are_told_alike() {
        let by_axis = fields("[phase.grid]\nqueue_depth = [1, 8]\nblock_size = [\"8K\"]\n");
        let set = fields("queue_depth = 8\nblock_size = \"8KiB\"\n");
        assert_eq!(by_axis[1], set[0]);
        assert_ne!(by_axis[0], set[0]);
        assert_eq!(set[0]["queue_depth"], "8");
        assert_eq!(set[0]["access.kind"], "uniform");
        let cell = &told("access = \"zipf\"\nread_share = 1\n")[0].streams[0];
        assert_eq!(cell.value("access").unwrap(), "zipf theta=0.99");
        assert_eq!(cell.value("access.theta").unwrap(), "0.99");
        assert_eq!(cell.value("read_share").unwrap(), "1");
        assert_eq!(cell.value("block_size").unwrap(), Bytes::kib(4).exact());
        assert_eq!(cell.value("nonsense"), None);
    }

    #[test]
    fn what_changes_nothing_is_not_told() {
        let classes = "classes = [{ operation = \"read\", block_size = \"8K\" }, { operation = \
                       \"write\", block_size = \"16K\" }]\n";
        assert_eq!(
            fields(classes),
            fields(&format!("{classes}block_size = \"64K\"\nburst = 4\ncopy_to = \"50%\"\n"))
        );
        for (one, other) in [
            ("read_share = 0", "operation = \"write\""),
            ("random_share = 0.5", "access = { kind = \"mixed\", random_share = 0.5 }"),
            ("align = \"4K\"", ""),
            ("sync = \"fsync\"", ""),
            ("choice = \"interleave\"", ""),
        ] {
            assert_eq!(fields(one), fields(other), "{one}: {other}");
        }
        // Visits in rounds take two seconds.
        let by_time = fields("[phase.grid]\ntime = [\"1s\", \"1min\", \"1h\"]\n");
        assert_ne!(by_time[0], by_time[1]);
        assert_eq!(by_time[1], by_time[2]);
        assert_ne!(fields("random_share = 0.5"), fields("random_share = 0.4"));
        assert_ne!(
            fields("sync = \"fsync\"\noperation = \"write\""),
            fields("operation = \"write\"")
        );
    }
}
