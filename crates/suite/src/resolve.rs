//! Layers and overrides worked into one table per stream and one list of axes per phase.

use crate::error::Problem;
use crate::layer;
use crate::node::{At, Node, Table, Value};
use crate::phase::{Before, Own, STREAMS, selection};
use units::Bytes;

use crate::raw::{self, AccessKind, Extent, RawAccess, RawStream, RawSync, SyncOp};
use crate::reader::read_table;
use crate::source::{AxisSource, Located, Override, PhaseSource, Setting, SuiteSource, duplicate};

/// The exponent of YCSB's zipfian, which most people mean by "zipf".
pub(crate) const THETA: f64 = 0.99;

/// A phase after layering: what its streams are before the grid varies them.
#[derive(Clone, Debug)]
pub(crate) struct Layered {
    pub name: String,
    pub at: At,
    pub streams: Vec<LayeredStream>,
    pub axes: Vec<AxisSource>,
    pub own: Own,
    pub before: Option<Before>,
}

#[derive(Clone, Debug)]
pub(crate) struct LayeredStream {
    pub name: String,
    pub at: At,
    /// Spelled out, without the grid.
    pub fields: Table,
}

impl SuiteSource {
    /// Works layers and overrides into the phases.
    pub(crate) fn layered(&self) -> Located<Vec<Layered>> {
        self.phases.iter().map(|phase| self.layered_phase(phase)).collect()
    }

    fn layered_phase(&self, phase: &PhaseSource) -> Located<Layered> {
        let mut base = Table::default();
        layer::apply(&mut base, &self.defaults);
        layer::apply(&mut base, &phase.fields);
        let mut layered = Layered {
            name: phase.name.clone(),
            at: phase.at,
            before: Before::of(&phase.own, &base),
            streams: layered_streams(phase, base),
            axes: phase.axes.clone(),
            own: phase.own.clone(),
        };
        let mixed = self.has_times();
        let overrides = self.overrides.iter();
        for over in overrides.filter(|o| o.phase.as_ref().is_none_or(|name| *name == phase.name)) {
            let of_streams = over.path.first().is_some_and(|field| field == STREAMS);
            if of_streams
                && over.phase.is_none()
                && !layered.axes.iter().any(AxisSource::is_of_streams)
            {
                continue;
            }
            match &over.stream {
                None if mixed && is_time_of_all(over) => layered.apply_time(over)?,
                None => layered.apply(over, None)?,
                Some(name) => {
                    if let Some(index) = layered.streams.iter().position(|s| s.name == *name) {
                        layered.apply(over, Some(index))?;
                    }
                }
            }
        }
        layered.settle_axes()?;
        Ok(layered)
    }

    /// Whether the text gives some stream a time.
    fn has_times(&self) -> bool {
        self.phases.iter().any(|phase| {
            let mut base = Table::default();
            layer::apply(&mut base, &self.defaults);
            layer::apply(&mut base, &phase.fields);
            let by_axis =
                phase.axes.iter().any(|axis| axis.path.first().is_some_and(|f| f == TIME));
            by_axis
                || layered_streams(phase, base).iter().any(|stream| is_set(&stream.fields, TIME))
        })
    }
}

const TIME: &str = "time";

/// Whether an override gives one time to all streams of all phases.
fn is_time_of_all(over: &Override) -> bool {
    let timed = |node: &Node| !matches!(&node.value, Value::String(word) if word == "none");
    over.phase.is_none()
        && over.stream.is_none()
        && matches!(over.path.as_slice(), [field] if field == TIME)
        && matches!(&over.value, Setting::Value(node) if timed(node))
}

fn is_set(fields: &Table, field: &str) -> bool {
    let off = |node: &Node| matches!(&node.value, Value::String(word) if raw::unset_word(field) == Some(word.as_str()));
    fields.get(field).is_some_and(|node| !off(node))
}

/// * `base`: the fields of the phase and what lies below.
fn layered_streams(phase: &PhaseSource, base: Table) -> Vec<LayeredStream> {
    if phase.streams.is_empty() {
        return vec![LayeredStream { name: phase.name.clone(), at: phase.at, fields: base }];
    }
    let streams = phase.streams.iter().map(|stream| {
        let mut fields = base.clone();
        layer::apply(&mut fields, &stream.fields);
        LayeredStream { name: stream.name.clone(), at: stream.at, fields }
    });
    streams.collect()
}

impl Layered {
    /// A time for all: not for streams of a suite that measures others by time, which end by what they
    /// moved. They prepare what those measure, as by reading all of a region once, and cut short they
    /// would leave another state behind than the suite is about.
    fn apply_time(&mut self, over: &Override) -> Located<()> {
        let by_amount = |stream: &LayeredStream| {
            let amount = is_set(&stream.fields, "bytes") || is_set(&stream.fields, "operations");
            amount && !is_set(&stream.fields, TIME)
        };
        let timed: Vec<usize> = self
            .streams
            .iter()
            .enumerate()
            .filter(|(_, stream)| !by_amount(stream))
            .map(|(index, _)| index)
            .collect();
        if timed.len() == self.streams.len() {
            return self.apply(over, None);
        }
        timed.into_iter().try_for_each(|index| self.apply(over, Some(index)))
    }

    fn apply(&mut self, over: &Override, stream: Option<usize>) -> Located<()> {
        match &over.value {
            Setting::Value(node) => self.apply_value(over, stream, node),
            Setting::Axis(values) => self.apply_axis(over, stream, values),
        }
    }

    fn apply_value(&mut self, over: &Override, stream: Option<usize>, value: &Node) -> Located<()> {
        let path = &over.path;
        let varied = |axis: &AxisSource| displaces(path, &axis.path);
        self.is_not_varied_for_all(over, stream)?;
        self.axes.retain(|axis| !(varied(axis) && (stream.is_none() || axis.stream == stream)));
        // A detail of a field that the grid varies as a whole goes into each of its values.
        for axis in &mut self.axes {
            let same_stream = stream.is_none() || axis.stream.is_none() || axis.stream == stream;
            if same_stream && path.len() > axis.path.len() && path.starts_with(&axis.path) {
                for node in &mut axis.values {
                    refine(node, &axis.path, path, value);
                }
            }
        }
        for (index, target) in self.streams.iter_mut().enumerate() {
            if stream.is_none_or(|only| only == index) {
                layer::apply_path(&mut target.fields, path, value);
            }
        }
        if let (None, Some(before)) = (stream, &mut self.before) {
            before.set(path, value);
        }
        Ok(())
    }

    /// Two axes of one field would make cells that differ in name only.
    fn is_not_varied_for_all(&self, over: &Override, stream: Option<usize>) -> Located<()> {
        let varied = |axis: &AxisSource| axis.stream.is_none() && displaces(&over.path, &axis.path);
        if stream.is_none() || !self.axes.iter().any(varied) {
            return Ok(());
        }
        let (field, phase) = (over.path.join("."), self.name.clone());
        Err((over.at, Problem::VariedForAll { field, phase }))
    }

    fn apply_axis(
        &mut self,
        over: &Override,
        stream: Option<usize>,
        values: &[Node],
    ) -> Located<()> {
        self.is_not_varied_for_all(over, stream)?;
        let axis =
            AxisSource { at: over.at, stream, path: over.path.clone(), values: values.to_vec() };
        // It takes the place of the axis it replaces, or becomes the last and fastest.
        let replaced = |old: &AxisSource| {
            displaces(&axis.path, &old.path) && (stream.is_none() || old.stream == stream)
        };
        let position = self.axes.iter().position(replaced).unwrap_or(self.axes.len());
        self.axes.retain(|old| !replaced(old));
        self.axes.insert(position.min(self.axes.len()), axis);
        Ok(())
    }

    /// Gives every axis its values' final form and refuses doubles and empty ones.
    fn settle_axes(&mut self) -> Located<()> {
        self.no_axis_within_another()?;
        let axes = self.axes.clone();
        for axis in &mut self.axes {
            let mut texts: Vec<String> = Vec::with_capacity(axis.values.len());
            for value in &mut axis.values {
                *value = settled(&self.streams, &axes, (axis.stream, &axis.path), value)?;
                let text = value.inline();
                if texts.contains(&text) {
                    let what = format!("on the grid's axis `{}` the value", axis.path.join("."));
                    return Err((value.at, duplicate(&what, &value_text(value))));
                }
                texts.push(text);
            }
        }
        Ok(())
    }

    /// Refuses an axis of a detail that the values of another axis say themselves: its cells
    /// would not be what their names say.
    fn no_axis_within_another(&self) -> Located<()> {
        for within in &self.axes {
            let wider = |axis: &&AxisSource| {
                let together = axis.stream.is_none()
                    || within.stream.is_none()
                    || axis.stream == within.stream;
                together
                    && within.path.len() > axis.path.len()
                    && within.path.starts_with(&axis.path)
            };
            for axis in self.axes.iter().filter(wider) {
                if axis.values.iter().any(|value| says(value, &axis.path, &within.path)) {
                    let (field, detail) = (axis.path.join("."), within.path.join("."));
                    return Err((within.at, Problem::VariedWithin { field, detail }));
                }
            }
        }
        Ok(())
    }

    /// Where a value stands on an axis, if it does.
    pub(crate) fn place_on(&self, axis: &AxisSource, value: &Node) -> Located<Option<usize>> {
        let value = settled(&self.streams, &self.axes, (axis.stream, &axis.path), value)?;
        let text = value.inline();
        Ok(axis.values.iter().position(|known| known.inline() == text))
    }

    /// Whether the grid varies a field, for whichever stream.
    pub(crate) fn varies(&self, field: &str) -> bool {
        self.axes.iter().any(|axis| axis.path.first().is_some_and(|first| first == field))
    }

    /// The axis's field as overrides name it.
    pub(crate) fn field_text(&self, axis: &AxisSource) -> String {
        let field = axis.path.join(".");
        match axis.stream.and_then(|index| self.streams.get(index)) {
            Some(stream) => format!("{}.{field}", stream.name),
            None => field,
        }
    }
}

/// The final form of a value of an axis: of one stream's field, or of all streams'.
fn settled(
    streams: &[LayeredStream],
    axes: &[AxisSource],
    (stream, path): (Option<usize>, &[String]),
    value: &Node,
) -> Located<Node> {
    if stream.is_none() && path.first().is_some_and(|field| field == STREAMS) {
        let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
        return selection(value, &names);
    }
    match stream.map_or(streams.first(), |index| streams.get(index)) {
        Some(stream) => canonical(&stream.fields, path, value, !varies_kind(axes, path.first())),
        None => Ok(value.clone()),
    }
}

/// Whether an axis varies only the kind of a field: one kind's details would contradict another.
pub(crate) fn varies_kind(axes: &[AxisSource], field: Option<&String>) -> bool {
    let kind = |axis: &AxisSource| axis.path.get(1).is_some_and(|key| key == "kind");
    axes.iter().any(|axis| axis.path.first() == field && kind(axis))
}

/// Whether setting `path` leaves nothing of what was set at `old`.
pub(crate) fn displaces(path: &[String], old: &[String]) -> bool {
    let alternative = match (path, old.first()) {
        ([field], Some(old)) => raw::alternatives(field).contains(&old.as_str()),
        _ => false,
    };
    old.starts_with(path) || alternative
}

/// Whether a value of an axis leaves no choice of a detail: it has it, or turns the field off.
fn says(value: &Node, axis: &[String], detail: &[String]) -> bool {
    let Some(field) = axis.first() else { return false };
    if axis.len() == 1 && value.as_str().is_some_and(|word| raw::unset_word(field) == Some(word)) {
        return true;
    }
    let mut table = Table::default();
    layer::apply_path(&mut table, axis, value);
    lookup(&table, detail).is_some()
}

/// Puts a detail into one value of an axis; what turns the field off stays off.
fn refine(node: &mut Node, axis: &[String], path: &[String], value: &Node) {
    let off = axis.first().and_then(|field| raw::unset_word(field));
    if axis.len() == 1 && off.is_some() && node.as_str() == off {
        return;
    }
    let mut table = Table::default();
    layer::apply_path(&mut table, axis, node);
    layer::apply_path(&mut table, path, value);
    if let Some(refined) = lookup(&table, axis) {
        *node = refined.clone();
    }
}

/// The value at a path of a table.
pub(crate) fn lookup<'a>(table: &'a Table, path: &[String]) -> Option<&'a Node> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(first)?, |node, key| node.as_table()?.get(key))
}

/// A value in its final form: units written one way, details filled in.
fn canonical(base: &Table, path: &[String], value: &Node, fill: bool) -> Located<Node> {
    let mut table = base.clone();
    layer::apply_path(&mut table, path, value);
    let unset = table.clone();
    layer::drop_unset(&mut table);
    let Some(field) = path.first() else { return Ok(value.clone()) };
    if !table.contains(field) {
        return Ok(lookup(&unset, path).unwrap_or(value).clone());
    }
    let mut raw: RawStream = read(&table, value.at)?;
    if fill && path.len() == 1 {
        fill_details(&mut raw);
    }
    let spelled = to_table(&raw, value.at)?;
    Ok(lookup(&spelled, path).unwrap_or(value).clone())
}

/// Reads a stream's table.
pub(crate) fn read(table: &Table, at: At) -> Located<RawStream> {
    read_table(table, at, "stream").map_err(|e| (e.at.unwrap_or(at), e.problem))
}

/// The fields that are set, as a table in the order of the grammar.
pub(crate) fn to_table(raw: &RawStream, at: At) -> Located<Table> {
    let value = toml::Value::try_from(raw)
        .map_err(|error| (at, Problem::Syntax(format!("cannot be written as TOML: {error}"))))?;
    let Value::Table(mut table) = Node::from_toml(value, at).value else {
        return Ok(Table::default());
    };
    let fields = raw::stream_fields();
    table.entries.sort_by_key(|e| fields.iter().position(|field| *field == e.key));
    Ok(table)
}

/// Fills in the details that a table may leave out.
pub(crate) fn fill_details(raw: &mut RawStream) {
    if let Some(access) = &mut raw.access {
        fill_access(access);
    }
    if let Some(sync) = &mut raw.sync {
        fill_sync(sync);
    }
    if let Some(region) = &mut raw.region {
        region.start.get_or_insert(Extent::Bytes(Bytes::ZERO));
        region.length.get_or_insert(Extent::Rest);
    }
    if let Some(directory) = &mut raw.directory {
        directory.fill();
    }
    if let Some(transactions) = &mut raw.transactions {
        transactions.scale.get_or_insert(1);
    }
}

fn fill_access(access: &mut RawAccess) {
    match access.kind {
        Some(AccessKind::Sequential | AccessKind::Backward) => {
            access.shared.get_or_insert(false);
        }
        Some(AccessKind::Zipf) => {
            access.theta.get_or_insert(THETA);
        }
        _ => {}
    }
}

fn fill_sync(sync: &mut RawSync) {
    sync.op.get_or_insert(SyncOp::Fsync);
    sync.shared.get_or_insert(false);
    sync.each_file.get_or_insert(false);
    sync.at_end.get_or_insert(crate::model::SyncAtEnd::No);
}

/// A value of an axis for people: `4KiB`, `zipf theta=0.99`. Details that are off are left out.
pub(crate) fn value_text(node: &Node) -> String {
    let table = match &node.value {
        Value::Table(table) => table,
        Value::String(text) => return text.clone(),
        // TOML would say `1.0`.
        Value::Float(x) => return x.to_string(),
        _ => return node.inline(),
    };
    if let (Some(start), Some(length)) = (table.get("start"), table.get("length")) {
        return region_text(&value_text(start), &value_text(length));
    }
    let Some(head) = table.entries.iter().find(|e| matches!(e.key.as_str(), "kind" | "op")) else {
        return node.inline();
    };
    let off = |node: &Node| matches!(node.value, Value::Bool(false)) || node.as_str() == Some("no");
    let details = table.entries.iter().filter(|e| e.key != head.key && !off(&e.node));
    let details = details.map(|e| format!(" {}={}", e.key, value_text(&e.node)));
    value_text(&head.node) + &details.collect::<String>()
}

fn region_text(start: &str, length: &str) -> String {
    match (start, length) {
        ("0B", length) => length.to_owned(),
        (start, length) => format!("{length} from {start}"),
    }
}
