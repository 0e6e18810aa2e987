//! What a phase has besides the fields of its streams: what is done before it and before each of
//! its visits, when it ends, and which of its streams run where.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::check::{TIME_MAX, check_block, needs};
use crate::error::Problem;
use crate::layer;
use crate::model::{CacheStep, Cell, Precondition, Steady, Stream};
use crate::node::{At, Node, Table, Value};
use crate::raw::{
    self, RawPrecondition, RawSteady, RawStream, Size, Time, word_or_list, word_or_table,
};
use crate::reader::{field_names, read_table};
use crate::resolve::{Layered, lookup, read, value_text};
use crate::rounds;
use crate::source::{AxisSource, Located, check_fields, not_a_table, out_of_range};
use crate::stream::{Space, stream};

/// The axis that varies which streams run.
pub(crate) const STREAMS: &str = "streams";
const BEFORE: &str = "before";
const STEADY: &str = "steady";
/// The value of the axis [`STREAMS`] that is every stream.
const ALL: &str = "all";
const VOLUME_MAX: f64 = 1000.0;

/// Fields of a stream that the one before each visit has for itself: what ends the phase's streams
/// is no end for it, and it begins no file anew.
const NOT_INHERITED: [&str; 7] =
    ["ramp", "time", "bytes", "operations", "stop", "last", "start_file"];

/// What a phase has besides the fields of its streams.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPhase {
    /// The phase's cells are visited in rounds, one right after the other, until one is steady.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<RawSteady>,
    /// Pause before each visit of the phase. The suite's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle: Option<Time>,
    /// What to do to caches before each visit of the phase, as at the top. The suite's if left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_list::<Vec<CacheStep>>")]
    pub caches: Option<Vec<CacheStep>>,
    /// Passes over the files before the first visit of the phase. None if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Vec<RawPrecondition>>,
    /// A stream that is played before each visit and not counted. What it leaves out it has from
    /// the phase and its grid, but for what ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_table::<RawStream>")]
    pub before: Option<RawStream>,
}

/// Names of the fields that a phase has besides those of its streams.
pub(crate) fn own_fields() -> &'static [&'static str] {
    field_names::<RawPhase>()
}

/// Whether a name is one of a phase's own, the axis of streams among them.
pub(crate) fn is_own_field(name: &str) -> bool {
    own_fields().contains(&name) || name == STREAMS
}

/// A phase's own fields, as written and overridden.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    at: At,
    table: Table,
}

impl Own {
    /// Takes them out of a phase's table.
    pub(crate) fn take(fields: &mut Table, at: At) -> Located<Self> {
        let mut own = Self { at, table: Table::default() };
        for name in own_fields() {
            let Some(entry) = fields.remove(name) else { continue };
            check_table(name, &entry.node)?;
            if let (BEFORE, Some(table)) = (*name, entry.node.as_table()) {
                check_fields(table, entry.at, BEFORE, &[])?;
            }
            layer::apply_entry(&mut own.table, &entry);
        }
        own.raw()?;
        Ok(own)
    }

    /// Sets a field, or a detail of one.
    pub(crate) fn assign(&mut self, path: &[String], value: &Node) -> Located<()> {
        if let [field] = path {
            check_table(field, value)?;
        }
        layer::apply_path(&mut self.table, path, value);
        self.raw().map(drop)
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.table.contains(field)
    }

    /// The fields with their types.
    pub(crate) fn raw(&self) -> Located<RawPhase> {
        let mut table = self.table.clone();
        layer::drop_unset(&mut table);
        if let Some(Node { value: Value::Table(before), .. }) = table.get_mut(BEFORE) {
            layer::drop_unset(before);
        }
        read_table(&table, self.at, "phase").map_err(|e| e.located(self.at))
    }

    /// What was set for the stream before each visit.
    pub(crate) fn before_mut(&mut self) -> Option<&mut Table> {
        match &mut self.table.get_mut(BEFORE)?.value {
            Value::Table(before) => Some(before),
            _ => None,
        }
    }

    fn place(&self, field: &str) -> At {
        self.table.get(field).map_or(self.at, |node| node.at)
    }

    /// Of a field of `steady`, else of the whole table.
    pub(crate) fn place_of_steady(&self, field: &str) -> At {
        let detail = self.details(STEADY).and_then(|table| table.get(field));
        detail.map_or_else(|| self.place(STEADY), |node| node.at)
    }

    fn details(&self, field: &str) -> Option<&Table> {
        self.table.get(field)?.as_table()
    }
}

fn check_table(field: &str, node: &Node) -> Located<()> {
    let unset = raw::unset_word(field).is_some_and(|word| node.as_str() == Some(word));
    let wants_table = matches!(field, BEFORE | STEADY);
    if wants_table && !unset && node.as_table().is_none() {
        return Err((node.at, not_a_table(field, node)));
    }
    Ok(())
}

/// The stream before each visit, while overrides are worked in.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub at: At,
    /// What it has from the phase.
    base: Table,
    /// What was set for it.
    own: Table,
}

impl Before {
    /// * `base`: the fields of the phase and what lies below.
    pub(crate) fn of(own: &Own, base: &Table) -> Option<Self> {
        let table = own.details(BEFORE)?.clone();
        let mut base = base.clone();
        base.entries.retain(|entry| !NOT_INHERITED.contains(&entry.key.as_str()));
        Some(Self { at: own.place(BEFORE), base, own: table })
    }

    /// A field was set for all streams of the phase.
    pub(crate) fn set(&mut self, path: &[String], value: &Node) {
        if path.first().is_some_and(|field| !NOT_INHERITED.contains(&field.as_str())) {
            layer::apply_path(&mut self.base, path, value);
        }
    }

    /// Whether an axis of the phase says something about it too: one of a whole field, for all
    /// streams, that it does not set itself.
    fn takes(&self, axis: &AxisSource) -> bool {
        let [field] = axis.path.as_slice() else { return false };
        let own = |name: &str| self.own.contains(name);
        let inherited = !NOT_INHERITED.contains(&field.as_str()) && field != STREAMS;
        axis.stream.is_none()
            && inherited
            && !own(field)
            && !raw::alternatives(field).iter().any(|name| own(name))
    }

    pub(crate) fn is_varied(&self, axes: &[AxisSource], field: &str) -> bool {
        let varies = |axis: &AxisSource| axis.path.first().is_some_and(|first| first == field);
        axes.iter().any(|axis| self.takes(axis) && varies(axis))
    }

    /// Its fields but for those that the grid varies.
    pub(crate) fn written(&self, axes: &[AxisSource]) -> Table {
        let mut fields = self.base.clone();
        layer::apply(&mut fields, &self.own);
        fields.entries.retain(|entry| {
            let others = raw::alternatives(&entry.key);
            !self.is_varied(axes, &entry.key)
                && !others.iter().any(|other| self.is_varied(axes, other))
        });
        fields
    }

    /// The stream in a cell.
    ///
    /// * `chosen`: each axis with its value there.
    pub(crate) fn stream<'a>(
        &self,
        chosen: impl Iterator<Item = (&'a AxisSource, &'a Node)>,
        space: &Space<'_>,
    ) -> Located<(RawStream, Stream)> {
        let mut fields = self.base.clone();
        for (axis, value) in chosen.filter(|(axis, _)| self.takes(axis)) {
            layer::apply_path(&mut fields, &axis.path, value);
        }
        layer::apply(&mut fields, &self.own);
        layer::drop_unset(&mut fields);
        let raw = read(&fields, self.at)?;
        let stream = stream(BEFORE, &raw, &fields, self.at, space)?;
        Ok((raw, stream))
    }
}

/// The pause before each visit, if the phase has one of its own.
pub(crate) fn settle(own: &Own, raw: &RawPhase) -> Located<Option<Nanos>> {
    match raw.settle {
        Some(Time(settle)) if settle > TIME_MAX => {
            let problem = out_of_range("settle", settle.exact(), "at most a year");
            Err((own.place("settle"), problem))
        }
        settle => Ok(settle.map(|time| time.0)),
    }
}

/// The phase's passes over the files.
pub(crate) fn passes(own: &Own, raw: &RawPhase, space: &Space<'_>) -> Located<Vec<Precondition>> {
    let at = own.place("precondition");
    let passes = raw.precondition.iter().flatten();
    passes.map(|raw| pass(raw, space.files.size, space.sector, at)).collect()
}

/// Checks a pass over the files.
pub(crate) fn pass(
    raw: &RawPrecondition,
    file: Bytes,
    sector: Bytes,
    at: At,
) -> Located<Precondition> {
    let details = [
        ("random", raw.random.is_some()),
        ("block_size", raw.block_size.is_some()),
        ("volume", raw.volume.is_some()),
    ];
    if raw.trim == Some(true) {
        return match details.iter().find(|(_, set)| *set) {
            Some((field, _)) => {
                let of = "a pass that trims: it gives everything back".to_owned();
                Err((at, Problem::Meaningless { field: (*field).to_owned(), of }))
            }
            None => Ok(Precondition::Trim),
        };
    }
    let block_size = raw.block_size.map_or(Bytes::kib(128), |size| size.0);
    check_block(block_size, file, Some(sector), at)?;
    let volume = raw.volume.unwrap_or(1.0);
    if !(volume > 0.0 && volume <= VOLUME_MAX) {
        return Err((at, out_of_range("volume", volume, "more than 0, at most 1000")));
    }
    Ok(Precondition::Write { random: raw.random.unwrap_or(false), block_size, volume })
}

/// Fills in what passes leave out.
pub(crate) fn fill_passes(passes: &mut [RawPrecondition]) {
    for pass in passes {
        if pass.trim == Some(true) {
            continue;
        }
        pass.trim = None;
        pass.random.get_or_insert(false);
        pass.block_size.get_or_insert(Size(Bytes::kib(128)));
        pass.volume.get_or_insert(1.0);
    }
}

/// How the phase ends, if it is played until it is steady.
pub(crate) fn steady(layered: &Layered, raw: &RawPhase, cells: &[Cell]) -> Located<Option<Steady>> {
    let Some(steady) = &raw.steady else { return Ok(None) };
    let at = layered.own.place(STEADY);
    let track = layered.own.details(STEADY).and_then(|table| table.get("track"));
    let track = match track.and_then(Node::as_table) {
        Some(table) => tracked(layered, table, at)?,
        None if cells.len() == 1 => 0,
        None => {
            let what = format!("`steady` in phase `{}`", layered.name);
            let cells = cells.len();
            let needs = format!("one cell, or `track` to say which of the {cells} decides");
            return Err((at, Problem::Needs { what, needs }));
        }
    };
    rounds::steady(steady, track, at).map(Some)
}

/// The cell that a table of coordinates names, as an index into the phase's cells.
fn tracked(layered: &Layered, track: &Table, at: At) -> Located<usize> {
    check_keys(layered, track)?;
    let mut index = 0;
    for axis in &layered.axes {
        let name = layered.field_text(axis);
        let path: Vec<String> = name.split('.').map(str::to_owned).collect();
        let place = match track.get(&name).or_else(|| lookup(track, &path)) {
            Some(node) => {
                let known = || axis.values.iter().map(value_text).collect::<Vec<_>>().join(", ");
                let place = layered.place_on(axis, node)?;
                let wanted = || format!("a value of the grid: {}", known());
                let field = format!("steady.track.{name}");
                place.ok_or_else(|| (node.at, out_of_range(&field, value_text(node), &wanted())))?
            }
            None if axis.values.len() == 1 => 0,
            None => return Err((at, needs("`steady.track`", &format!("a value for `{name}`")))),
        };
        index = index * axis.values.len() + place;
    }
    Ok(index)
}

/// What is no axis may stand there, since an override may have taken its axis; what cannot be one
/// may not.
fn check_keys(layered: &Layered, track: &Table) -> Located<()> {
    for entry in &track.entries {
        let first = entry.key.split('.').next().unwrap_or_default();
        let is_stream = layered.streams.iter().any(|stream| stream.name == first);
        if !is_stream && first != STREAMS && !raw::is_stream_field(first) {
            let known = layered.axes.iter().map(|axis| layered.field_text(axis)).collect();
            return Err((entry.at, Problem::UnknownKey { key: entry.key.clone(), known }));
        }
    }
    Ok(())
}

impl AxisSource {
    /// Whether it varies which streams run.
    pub(crate) fn is_of_streams(&self) -> bool {
        self.stream.is_none() && self.path.first().is_some_and(|field| field == STREAMS)
    }
}

/// Whether the value of an axis of streams lets a stream run.
pub(crate) fn plays(value: &Node, stream: &str) -> bool {
    match &value.value {
        Value::Array(names) => names.iter().any(|name| name.as_str() == Some(stream)),
        _ => value.as_str().is_some_and(|name| name == ALL || name == stream),
    }
}

/// A value of an axis of streams in its one form: "all", a name, or names in the phase's order.
pub(crate) fn selection(value: &Node, streams: &[&str]) -> Located<Node> {
    let names: Vec<&Node> = match &value.value {
        Value::Array(names) => names.iter().collect(),
        _ => vec![value],
    };
    for name in &names {
        let Some(text) = name.as_str() else {
            let problem = Problem::WrongType {
                field: STREAMS.to_owned(),
                seen: name.describe(),
                wanted: "\"all\", a stream's name, or a list of names".to_owned(),
            };
            return Err((name.at, problem));
        };
        if text != ALL && !streams.contains(&text) {
            let known = streams.iter().copied().chain([ALL]).map(str::to_owned).collect();
            let (field, seen) = (STREAMS.to_owned(), text.to_owned());
            return Err((name.at, Problem::UnknownWord { field, seen, known }));
        }
    }
    let is_named = |stream: &&&str| names.iter().any(|name| plays(name, stream));
    let named: Vec<&str> = streams.iter().filter(is_named).copied().collect();
    let text = |name: &str| Node::new(value.at, Value::String(name.to_owned()));
    Ok(match named.as_slice() {
        [] => return Err((value.at, needs("a value of `streams`", "the name of a stream"))),
        all if all.len() == streams.len() => text(ALL),
        [one] => text(one),
        some => Node::new(value.at, Value::Array(some.iter().map(|name| text(name)).collect())),
    })
}

/// A value of an axis of streams for people: `log+reads`.
pub(crate) fn selection_text(value: &Node) -> String {
    match &value.value {
        Value::Array(names) => names.iter().filter_map(Node::as_str).collect::<Vec<_>>().join("+"),
        _ => value_text(value),
    }
}

/// The fields as they will be played, but for the stream before each visit.
pub(crate) fn own_text(layered: &Layered) -> Located<Table> {
    let mut whole = layered.own.raw()?;
    whole.before = None;
    whole.steady = whole.steady.as_ref().map(rounds::steady_whole);
    fill_passes(whole.precondition.as_deref_mut().unwrap_or_default());
    let at = layered.own.at;
    let value = toml::Value::try_from(&whole)
        .map_err(|error| (at, Problem::Syntax(format!("cannot be written as TOML: {error}"))))?;
    let Value::Table(mut table) = Node::from_toml(value, at).value else {
        return Ok(Table::default());
    };
    let order = own_fields();
    table.entries.sort_by_key(|e| order.iter().position(|field| *field == e.key));
    Ok(table)
}
