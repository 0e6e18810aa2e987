//! A suite with its overrides as text again, every default filled in.

use crate::error::SuiteError;
use crate::layer;
use crate::node::{At, Entry, Node, Table, Value, inline_key, quoted};
use crate::phase;
use crate::raw::{self, Size, Time};
use crate::resolve::{Layered, fill_details, read, to_table, varies_kind};
use crate::rounds;
use crate::source::{Located, SuiteSource, check_length};

/// What a stream has where nobody said otherwise, as people would write it. The checker knows
/// the same values; the law that resolved text means the same holds the two together.
const STREAM_DEFAULTS: [(&str, &str); 29] = [
    ("access", r#"{ kind = "uniform" }"#),
    ("operation", r#""read""#),
    ("copy_to", r#""none""#),
    ("directory", r#""none""#),
    ("transactions", r#""none""#),
    ("choice", r#""dice""#),
    ("block_size", r#""4KiB""#),
    ("align", r#""block-size""#),
    ("region", r#"{ start = "0B", length = "rest" }"#),
    ("spread", r#""concatenated""#),
    ("sync", r#""none""#),
    ("threads", "1"),
    ("queue_depth", "1"),
    ("rate", r#""none""#),
    ("arrivals", r#""fixed""#),
    ("think", r#""0s""#),
    ("burst", "1"),
    ("duty", r#""none""#),
    ("direct", "true"),
    ("write_through", r#""no""#),
    ("commit_writes", "1"),
    ("backend", r#""auto""#),
    ("ramp", r#""0s""#),
    ("time", r#""none""#),
    ("bytes", r#""none""#),
    ("operations", r#""none""#),
    ("stop", r#""all""#),
    ("last", r#""whole""#),
    ("start_file", r#""keep""#),
];

/// Whether a field is set to what it would have if it were left out.
pub(crate) fn is_default(field: &str, value: &Node) -> bool {
    let default = STREAM_DEFAULTS.iter().find(|(name, _)| *name == field);
    let default = default.and_then(|(_, text)| crate::node::parse_value(text, value.at));
    default.is_some_and(|node| node.inline() == value.inline())
}

/// The suite as it will be played: TOML with overrides worked in and every default filled in.
///
/// Parsing and checking it gives the same [`crate::model::Suite`], in this version and in later
/// ones with other defaults. It has no `[quick]` table: it may be the quick form already.
pub fn resolved_text(source: &SuiteSource) -> Result<String, SuiteError> {
    written(source).map_err(|(at, problem)| source.error(at, problem))
}

fn written(source: &SuiteSource) -> Located<String> {
    let mut text = head(source)?;
    for (phase, layered) in source.phases.iter().zip(source.layered()?) {
        text.push_str("\n[[phase]]\n");
        line(&mut text, "name", &quoted(&layered.name));
        lines(&mut text, &phase::own_text(&layered)?);
        let implicit = phase.streams.is_empty();
        if let (true, [only]) = (implicit, layered.streams.as_slice()) {
            let varied = |field: &str| layered.varies(field);
            fields(&mut text, &only.fields, only.at, &varied, &layered)?;
        }
        if let Some(before) = &layered.before {
            text.push_str("\n[phase.before]\n");
            let varied = |field: &str| before.is_varied(&layered.axes, field);
            fields(&mut text, &before.written(&layered.axes), before.at, &varied, &layered)?;
        }
        grid(&mut text, &layered);
        for stream in layered.streams.iter().filter(|_| !implicit) {
            text.push_str("\n[[phase.stream]]\n");
            line(&mut text, "name", &quoted(&stream.name));
            let varied = |field: &str| layered.varies(field);
            fields(&mut text, &stream.fields, stream.at, &varied, &layered)?;
        }
    }
    // What is stored is read again.
    check_length(&text)?;
    Ok(text)
}

fn line(text: &mut String, key: &str, value: &str) {
    text.push_str(key);
    text.push_str(" = ");
    text.push_str(value);
    text.push('\n');
}

fn head(source: &SuiteSource) -> Located<String> {
    let mut full = source.raw_head.clone();
    full.title.get_or_insert_default();
    full.description.get_or_insert_default();
    full.file_count.get_or_insert(1);
    full.fill.get_or_insert(true);
    let data = full.data.get_or_insert_default();
    data.kind.get_or_insert(raw::DataKind::Incompressible);
    phase::fill_passes(full.precondition.get_or_insert_default());
    let checked = crate::check::checked(source, &crate::CheckContext::default())?;
    // As it is played.
    full.file_size = Some(Size(checked.files.size));
    full.method.get_or_insert(checked.method);
    full.rounds = Some(rounds::rounds_whole(&checked.rounds));
    full.repeats.get_or_insert(1);
    full.order.get_or_insert(crate::model::Order::AsWritten);
    full.settle.get_or_insert(Time(units::Nanos::ZERO));
    full.caches.get_or_insert_default();
    full.table.get_or_insert(crate::model::TableLayout::Plain);
    let at = At::Text(0);
    let value = toml::Value::try_from(&full).map_err(|error| {
        (at, crate::error::Problem::Syntax(format!("cannot be written as TOML: {error}")))
    })?;
    let mut text = String::new();
    if let Value::Table(mut table) = Node::from_toml(value, at).value {
        let order = raw::head_fields();
        table.entries.sort_by_key(|e| order.iter().position(|field| *field == e.key));
        // A table of many lines reads better under a heading of its own, which must come last.
        let rounds = table.remove("rounds");
        lines(&mut text, &table);
        if let Some(Value::Table(rounds)) = rounds.map(|entry| entry.node.value) {
            text.push_str("\n[rounds]\n");
            lines(&mut text, &rounds);
        }
    }
    Ok(text)
}

fn lines(text: &mut String, table: &Table) {
    for entry in &table.entries {
        line(text, &inline_key(&entry.key), &entry.node.inline());
    }
}

/// The fields of a stream, all of them.
///
/// * `varied`: which of them the grid varies.
fn fields(
    text: &mut String,
    fields: &Table,
    at: At,
    varied: &dyn Fn(&str) -> bool,
    phase: &Layered,
) -> Located<()> {
    let mut set = fields.clone();
    layer::drop_unset(&mut set);
    let mut raw = read(&set, at)?;
    if !varies_kind(&phase.axes, Some(&"access".to_owned())) {
        fill_details(&mut raw);
    }
    let mut table = to_table(&raw, at)?;
    fill_defaults(&mut table, at, varied);
    lines(text, &table);
    Ok(())
}

/// Adds the defaults of fields that are not set, neither they nor what takes their place.
pub(crate) fn fill_defaults(table: &mut Table, at: At, varied: &dyn Fn(&str) -> bool) {
    for (field, default) in STREAM_DEFAULTS {
        let taken = |name: &str| table.contains(name) || varied(name);
        let alternatives = raw::alternatives(field);
        if taken(field) || alternatives.iter().any(|name| taken(name)) {
            continue;
        }
        if let Some(node) = crate::node::parse_value(default, at) {
            table.insert(Entry { key: field.to_owned(), at, node });
        }
    }
    let order = raw::stream_fields();
    table.entries.sort_by_key(|e| order.iter().position(|field| *field == e.key));
}

fn grid(text: &mut String, phase: &Layered) {
    if phase.axes.is_empty() {
        return;
    }
    text.push_str("\n[phase.grid]\n");
    for axis in &phase.axes {
        let values: Vec<String> = axis.values.iter().map(Node::inline).collect();
        // Dots stay inside quotes: dotted keys of a field that is an axis itself would clash.
        line(text, &inline_key(&phase.field_text(axis)), &format!("[{}]", values.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_default_or_stands_for_one_that_has() {
        let has = |name: &str| STREAM_DEFAULTS.iter().any(|(field, _)| *field == name);
        for field in raw::stream_fields() {
            let known = has(field) || raw::alternatives(field).iter().any(|other| has(other));
            assert!(known, "`{field}` would be left to the reading version's default");
        }
    }

    #[test]
    fn every_default_is_toml() {
        for (field, default) in STREAM_DEFAULTS {
            assert!(crate::node::parse_value(default, At::Text(0)).is_some(), "{field}");
        }
    }
}
