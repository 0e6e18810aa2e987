//! A suite's text, read but not yet checked, and overrides on top of it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use units::{Bytes, Nanos};

use crate::check::VISIT_TIME_MAX;
use crate::error::{Place, Problem, SuiteError};
use crate::hint;
use crate::layer;
use crate::model::Method;
use crate::node::{self, At, Entry, Node, Table, Value};
use crate::parts::placed;
use crate::phase::{self, Own, STREAMS};
use crate::raw::{self, IDENTITY, RawHead, RawStream, Time};
use crate::reader::{ReadError, field_names, read_table};

/// Longest text of a suite, in bytes, as written and with every default: some 370,000 requests in lists. Read it takes some fifty times as
/// much.
pub const TEXT_BYTES_MAX: usize = 20 << 20;

/// A suite as written, with the overrides that were set.
#[derive(Clone, Debug)]
pub struct SuiteSource {
    file: String,
    text: String,
    /// Texts of the overrides, for messages.
    pub(crate) overrides_given: Vec<String>,
    pub(crate) head: Table,
    pub(crate) raw_head: RawHead,
    pub(crate) defaults: Table,
    pub(crate) phases: Vec<PhaseSource>,
    quick: Option<Table>,
    pub(crate) overrides: Vec<Override>,
}

/// A phase as written.
#[derive(Clone, Debug)]
pub(crate) struct PhaseSource {
    pub at: At,
    pub name: String,
    pub fields: Table,
    pub axes: Vec<AxisSource>,
    /// Empty: one stream, made of the phase's own fields.
    pub streams: Vec<StreamSource>,
    pub own: Own,
}

/// A stream as written.
#[derive(Clone, Debug)]
pub(crate) struct StreamSource {
    pub at: At,
    pub name: String,
    pub fields: Table,
}

/// An axis as written.
#[derive(Clone, Debug)]
pub(crate) struct AxisSource {
    pub at: At,
    /// Only this stream of the phase.
    pub stream: Option<usize>,
    /// `["access", "theta"]`.
    pub path: Vec<String>,
    pub values: Vec<Node>,
}

/// A stream's field set from outside.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    /// Only this phase.
    pub phase: Option<String>,
    /// Only streams of this name.
    pub stream: Option<String>,
    pub path: Vec<String>,
    pub at: At,
    pub value: Setting,
}

/// What an override sets.
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    /// One value: takes the place of an axis too.
    Value(Node),
    /// An axis.
    Axis(Vec<Node>),
}

/// Reads a suite's text. `file_name` is only for messages.
///
/// Finds what is wrong with the text itself: syntax, unknown keys, wrong types, missing or
/// doubled names, empty axes. Whether the values make sense together is for [`crate::check`],
/// after overrides.
pub fn parse(text: &str, file_name: &str) -> Result<SuiteSource, SuiteError> {
    let mut source = SuiteSource {
        file: file_name.to_owned(),
        text: text.to_owned(),
        overrides_given: Vec::new(),
        head: Table::default(),
        raw_head: RawHead::default(),
        defaults: Table::default(),
        phases: Vec::new(),
        quick: None,
        overrides: Vec::new(),
    };
    source.read().map_err(|(at, problem)| source.error(at, problem))?;
    Ok(source)
}

/// Whether a text is no longer than is read.
pub(crate) fn check_length(text: &str) -> Located<()> {
    let [seen, limit] = [text.len(), TEXT_BYTES_MAX].map(|bytes| Bytes::new(bytes as u64));
    if seen > limit { Err((At::Text(0), Problem::TooLong { seen, limit })) } else { Ok(()) }
}

/// The time that an assignment gives to every visit, if it is one such.
fn time_of_all(assignment: &str) -> Option<Nanos> {
    let (key, value) = assignment.split_once('=')?;
    let is_time = key.trim() == "time" && !value.chars().any(char::is_control);
    is_time.then(|| time_in(&typed_value(value.trim(), At::Override(0))))?
}

/// The time that a value gives to every visit, if it does.
fn time_in(node: &Node) -> Option<Nanos> {
    Time::deserialize(node).ok().map(|time| time.0).filter(|&time| time > Nanos::ZERO)
}

/// An error inside this room, before its place has a name.
pub(crate) type Located<T> = Result<T, (At, Problem)>;

impl SuiteSource {
    /// The suite's name.
    pub fn name(&self) -> &str {
        self.raw_head.name.as_deref().unwrap_or_default()
    }

    /// One line for lists.
    pub fn title(&self) -> &str {
        self.raw_head.title.as_deref().unwrap_or_default()
    }

    /// What the method is for.
    pub fn description(&self) -> &str {
        self.raw_head.description.as_deref().unwrap_or_default().trim()
    }

    /// The text as it was read, without overrides.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name the text was given.
    pub fn file_name(&self) -> &str {
        &self.file
    }

    /// Whether there is a `[quick]` table.
    pub fn has_quick(&self) -> bool {
        self.quick.is_some()
    }

    /// Sets a field: `key=value` as typed after `--set`.
    ///
    /// * The key is a field's name, with dots for details (`access.theta`) and, in front, the
    ///   name of a phase, of a stream or of both (`read.time`, `mixed.writer.rate`).
    /// * The value is TOML if it reads as such, else a string. A list, or a comma between
    ///   values, makes the field an axis of the grid; one value takes an axis's place.
    /// * A later override wins over an earlier one.
    /// * One `time` for all streams is [`set_time`](Self::set_time): visits in rounds take it too.
    pub fn set(&mut self, assignment: &str) -> Result<(), SuiteError> {
        if let Some(time) = time_of_all(assignment) {
            return self.set_visit_time("--set", assignment.trim(), time);
        }
        let number = self.overrides_given.len();
        self.overrides_given.push(format!("--set {}", assignment.escape_debug()));
        self.assign(assignment, At::Override(number))
            .map_err(|(at, problem)| self.error(at, problem))
    }

    /// Sets the size of each file, as `--size` does.
    pub fn set_size(&mut self, size: Bytes) -> Result<(), SuiteError> {
        let text = size.exact();
        self.set_typed("--size", &text, [("file_size".to_owned(), text.clone())])
    }

    /// Sets the file size to what a target has, or has room for; messages name it as asked for where
    /// somebody did.
    pub fn fit_size(&mut self, size: Bytes) -> Result<(), SuiteError> {
        let text = size.exact();
        let asked = self.overrides_given.iter().any(|given| given.starts_with("--size "));
        let by = if asked { "--size" } else { "target size" };
        self.set_typed(by, &text, [("file_size".to_owned(), text.clone())])
    }

    /// Sets the service level, as `--level` does.
    pub fn set_level(&mut self, level: &crate::Level) -> Result<(), SuiteError> {
        let text = level.to_string();
        self.set_typed("--level", &text, [("level".to_owned(), text.clone())])
    }

    /// Sets the measured time of every visit, as `--time` does: of streams, and of visits in
    /// rounds, whose ramp is then no more than a quarter of it.
    pub fn set_time(&mut self, time: Nanos) -> Result<(), SuiteError> {
        self.set_visit_time("--time", &time.exact(), time)
    }

    /// * `flag`, `shown`: as typed, for messages.
    fn set_visit_time(&mut self, flag: &str, shown: &str, time: Nanos) -> Result<(), SuiteError> {
        let ramp = Nanos::new(time.get() / 4).min(Nanos::millis(500));
        let longest = self.raw_head.rounds.as_ref().and_then(|rounds| rounds.visit_time_max);
        let longest = longest.map_or(VISIT_TIME_MAX, |longest| longest.0).max(time);
        let rounds = [("visit_time", time), ("ramp", ramp), ("visit_time_max", longest)];
        let paths = rounds.map(|(field, time)| (format!("rounds.{field}"), time.exact()));
        let time = ("time".to_owned(), time.exact());
        self.set_typed(flag, shown, [time].into_iter().chain(paths))
    }

    /// Sets the precision at which a cell ends, as `--precision` does.
    ///
    /// * `share`: of the rate, half the interval's width.
    pub fn set_precision(&mut self, share: f64) -> Result<(), SuiteError> {
        let at = At::Override(self.overrides_given.len());
        self.overrides_given.push(format!("--precision {share}"));
        let path = ["rounds".to_owned(), "precision".to_owned()];
        self.assign_path(&path, Node::new(at, Value::Float(share)))
            .map_err(|(at, problem)| self.error(at, problem))
    }

    /// Sets the longest time of all visits together, as `--max-time` does.
    pub fn set_time_max(&mut self, time: Nanos) -> Result<(), SuiteError> {
        let text = time.exact();
        self.set_typed("--max-time", &text, [("rounds.time_max".to_owned(), text.clone())])
    }

    /// Takes the suite's own order, times and repeats, as `--classic` does.
    pub fn set_classic(&mut self) -> Result<(), SuiteError> {
        self.set_typed("--classic", "", [("method".to_owned(), "classic".to_owned())])
    }

    /// Whether visits are chosen in rounds, as it stands.
    pub fn in_rounds(&self) -> bool {
        self.raw_head.method.unwrap_or(Method::Rounds) == Method::Rounds
    }

    /// * `fields`: (path, value).
    fn set_typed(
        &mut self,
        flag: &str,
        shown: &str,
        fields: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), SuiteError> {
        let at = At::Override(self.overrides_given.len());
        self.overrides_given.push(format!("{flag} {shown}").trim_end().to_owned());
        for (path, value) in fields {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            self.assign_path(&path, Node::new(at, Value::String(value)))
                .map_err(|(at, problem)| self.error(at, problem))?;
        }
        Ok(())
    }

    /// Sets what a table says: names as in `[quick]`, and a `time` as in [`set`](Self::set).
    ///
    /// * `place`: where the table stands, for messages.
    pub(crate) fn set_table(&mut self, place: &str, table: &Table) -> Result<(), SuiteError> {
        let mut table = table.clone();
        if let Some(time) = table.get("time").and_then(time_in) {
            table.remove("time");
            self.set_visit_time(place, "", time)?;
        }
        let at = At::Override(self.overrides_given.len());
        self.overrides_given.push(place.to_owned());
        self.apply_nested(&mut Vec::new(), &placed(&table, at))
            .map_err(|(at, problem)| self.error(at, problem))
    }

    /// Applies the suite's `[quick]` table.
    pub fn quick(&mut self) -> Result<(), SuiteError> {
        let Some(table) = self.quick.clone() else {
            return Err(self.error(At::Text(0), Problem::NoQuick));
        };
        self.apply_quick(&table).map_err(|(at, problem)| self.error(at, problem))
    }

    /// Names of everything that [`set`](Self::set) takes, without details of tables.
    pub fn settable() -> Vec<&'static str> {
        let head = raw::head_fields().iter().copied().filter(|name| !IDENTITY.contains(name));
        let own = phase::own_fields().iter().copied().filter(|name| !raw::is_head_field(name));
        head.chain(own).chain([STREAMS]).chain(raw::stream_fields().iter().copied()).collect()
    }

    pub(crate) fn error(&self, at: At, problem: Problem) -> SuiteError {
        let place = Place::of(&self.file, &self.text, &self.overrides_given, at);
        SuiteError::new(place, problem)
    }

    fn read(&mut self) -> Located<()> {
        check_length(&self.text)?;
        let mut root =
            node::parse(&self.text).map_err(|(offset, problem)| (At::Text(offset), problem))?;
        if let Some(entry) = root.get("part").filter(|_| !root.contains("phase")) {
            let name = root.get("name").and_then(Node::as_str).unwrap_or_default().to_owned();
            return Err((entry.at, Problem::IsAList { name }));
        }
        let defaults = root.remove("defaults");
        let phases = root.remove("phase");
        let quick = root.remove("quick");
        self.read_head(root)?;
        if let Some(entry) = defaults {
            let table = table_of(&entry.node, "defaults")?.clone();
            check_fields(&table, entry.at, "defaults", &[])?;
            self.defaults = table;
        }
        self.read_phases(phases)?;
        if let Some(entry) = quick {
            let table = table_of(&entry.node, "quick")?.clone();
            // A suite whose short form does not work is wrong even when it is not asked for.
            self.clone().apply_quick(&table)?;
            self.quick = Some(table);
        }
        Ok(())
    }

    fn read_head(&mut self, root: Table) -> Located<()> {
        if let Some(entry) = root.entries.iter().find(|e| raw::is_stream_field(&e.key)) {
            let belongs = "in [defaults], a phase or a stream";
            return Err((entry.at, Problem::Misplaced { key: entry.key.clone(), belongs }));
        }
        let mut head = Table::default();
        layer::apply(&mut head, &root);
        let raw: RawHead = read_table(&head, At::Text(0), "suite")
            .map_err(|e| with_keys::<RawHead>(e, At::Text(0), &["defaults", "phase", "quick"]))?;
        match raw.schema {
            Some(1) => {}
            Some(other) => {
                let at = head.get("schema").map_or(At::Text(0), |node| node.at);
                return Err((
                    at,
                    out_of_range("schema", other, "`1`, all that this version knows"),
                ));
            }
            None => return Err(missing(At::Text(0), "schema = 1", "the suite")),
        }
        match (&raw.name, head.get("name")) {
            (Some(name), Some(node)) => check_name(name, "suite", node.at)?,
            _ => return Err(missing(At::Text(0), "name", "the suite")),
        }
        self.head = head;
        self.raw_head = raw;
        Ok(())
    }

    fn read_phases(&mut self, phases: Option<Entry>) -> Located<()> {
        let Some(entry) = phases else {
            return Err(missing(At::Text(0), "[[phase]]", "the suite"));
        };
        let items = tables_of(&entry, "phase")?;
        if items.is_empty() {
            return Err(missing(entry.at, "[[phase]]", "the suite"));
        }
        for (at, table) in items {
            let phase = read_phase(at, table)?;
            if self.phases.iter().any(|earlier| earlier.name == phase.name) {
                return Err((at, duplicate("phase", &phase.name)));
            }
            self.phases.push(phase);
        }
        Ok(())
    }

    fn assign(&mut self, assignment: &str, at: At) -> Located<()> {
        let malformed = || {
            let shown = assignment.escape_debug().to_string();
            (at, Problem::NotAnAssignment(shown))
        };
        if assignment.chars().any(char::is_control) {
            return Err(malformed());
        }
        let (key, value) = assignment.split_once('=').ok_or_else(malformed)?;
        let path: Vec<String> = key.trim().split('.').map(|step| step.trim().to_owned()).collect();
        if path.iter().any(String::is_empty) {
            return Err(malformed());
        }
        self.assign_path(&path, typed_value(value.trim(), at))
    }

    fn apply_quick(&mut self, table: &Table) -> Located<()> {
        self.apply_nested(&mut Vec::new(), table)
    }

    /// Tables under names of phases and streams are walked into; everything else is a value.
    fn apply_nested(&mut self, prefix: &mut Vec<String>, table: &Table) -> Located<()> {
        for entry in &table.entries {
            prefix.push(entry.key.clone());
            match &entry.node.value {
                Value::Table(inner) if !raw::is_field(&entry.key) => {
                    self.scope(&entry.key, entry.at)?;
                    self.apply_nested(prefix, inner)?;
                }
                _ => {
                    let node = Node::new(entry.node.at, entry.node.value.clone());
                    self.assign_path_at(prefix, node, entry.at)?;
                }
            }
            prefix.pop();
        }
        Ok(())
    }

    /// Refuses a prefix that is neither a phase nor a stream.
    fn scope(&self, name: &str, at: At) -> Located<()> {
        if self.has_phase(name) || self.has_stream(name) {
            return Ok(());
        }
        Err((at, Problem::UnknownKey { key: name.to_owned(), known: self.known_keys() }))
    }

    /// Of a key that is neither a field nor the name of a phase or stream.
    fn no_scope(&self, key: &str) -> Problem {
        let belongs = match key {
            _ if IDENTITY.contains(&key) => "in the suite's file alone, which it is about",
            "phase" | "stream" => "in a file; here its own name stands in front: `read.time=5s`",
            _ => return Problem::UnknownKey { key: key.to_owned(), known: self.known_keys() },
        };
        Problem::Misplaced { key: key.to_owned(), belongs }
    }

    fn assign_path(&mut self, path: &[String], value: Node) -> Located<()> {
        let at = value.at;
        self.assign_path_at(path, value, at)
    }

    fn assign_path_at(&mut self, path: &[String], value: Node, key_at: At) -> Located<()> {
        let mut path = path;
        let mut phase = None;
        let mut stream = None;
        while let [first, rest @ ..] = path {
            if raw::is_field(first) && !IDENTITY.contains(&first.as_str()) {
                break;
            }
            let scope = self.has_phase(first) || self.has_stream(first);
            if scope && rest.is_empty() {
                return Err((key_at, Problem::NotAField(first.clone())));
            }
            if !scope {
                return Err((key_at, self.no_scope(first)));
            }
            if phase.is_none() && stream.is_none() && self.has_phase(first) {
                phase = Some(first.clone());
            } else if stream.is_none() && self.has_stream(first) {
                stream = Some(first.clone());
            } else {
                let known = owned(raw::stream_fields());
                return Err((key_at, Problem::UnknownKey { key: first.clone(), known }));
            }
            path = rest;
        }
        let scoped = phase.is_some() || stream.is_some();
        match path {
            [field, ..] if raw::is_head_field(field) && !scoped => self.assign_head(path, &value),
            [field, ..] if phase::is_own_field(field) => {
                if stream.is_some() {
                    let belongs = "to a phase, not to a stream of it";
                    return Err((key_at, Problem::Misplaced { key: field.clone(), belongs }));
                }
                match field.as_str() {
                    STREAMS => self.assign_streams(phase, path, value, key_at),
                    _ => self.assign_own(phase.as_deref(), path, &value),
                }
            }
            [field, ..] if raw::is_head_field(field) => {
                let belongs = "at the top of the suite, without a phase or stream in front";
                Err((key_at, Problem::Misplaced { key: field.clone(), belongs }))
            }
            [field, ..] if raw::is_stream_field(field) => {
                let value = setting(path, value, key_at)?;
                let path = path.to_vec();
                self.overrides.push(Override { phase, stream, path, at: key_at, value });
                Ok(())
            }
            _ => {
                let key = path.first().cloned().unwrap_or_default();
                Err((key_at, Problem::UnknownKey { key, known: owned(raw::stream_fields()) }))
            }
        }
    }

    pub(crate) fn assign_head(&mut self, path: &[String], value: &Node) -> Located<()> {
        let mut head = self.head.clone();
        layer::apply_path(&mut head, path, value);
        self.raw_head = read_table(&head, value.at, "suite").map_err(|e| e.located(value.at))?;
        self.head = head;
        Ok(())
    }

    /// Of one phase, or of those that have such a field already.
    fn assign_own(&mut self, only: Option<&str>, path: &[String], value: &Node) -> Located<()> {
        let field = path.first().map_or("", String::as_str);
        let mut any = false;
        for phase in &mut self.phases {
            if only.map_or_else(|| phase.own.has(field), |name| phase.name == name) {
                phase.own.assign(path, value)?;
                any = true;
            }
        }
        if any { Ok(()) } else { Err((value.at, needs_a_phase(field))) }
    }

    /// Which streams run: always an axis, of one phase or of those that have it.
    fn assign_streams(
        &mut self,
        phase: Option<String>,
        path: &[String],
        value: Node,
        at: At,
    ) -> Located<()> {
        let varies = |phase: &PhaseSource| phase.axes.iter().any(AxisSource::is_of_streams);
        if phase.is_none() && !self.phases.iter().any(varies) {
            return Err((at, needs_a_phase(STREAMS)));
        }
        let values = match value.value {
            Value::Array(items) if items.is_empty() => {
                return Err((at, Problem::EmptyAxis { field: STREAMS.to_owned() }));
            }
            Value::Array(items) => items,
            one => vec![Node::new(value.at, one)],
        };
        let (path, value) = (path.to_vec(), Setting::Axis(values));
        self.overrides.push(Override { phase, stream: None, path, at, value });
        Ok(())
    }

    fn has_phase(&self, name: &str) -> bool {
        self.phases.iter().any(|phase| phase.name == name)
    }

    fn has_stream(&self, name: &str) -> bool {
        self.phases.iter().flat_map(|phase| &phase.streams).any(|stream| stream.name == name)
    }

    fn known_keys(&self) -> Vec<String> {
        let mut keys = owned(&Self::settable());
        for phase in &self.phases {
            keys.push(phase.name.clone());
            keys.extend(phase.streams.iter().map(|stream| stream.name.clone()));
        }
        keys.dedup();
        keys
    }
}

fn needs_a_phase(field: &str) -> Problem {
    let needs = "the name of a phase in front".to_owned();
    Problem::Needs { what: format!("`{field}`"), needs }
}

pub(crate) fn not_a_table(field: &str, node: &Node) -> Problem {
    Problem::WrongType {
        field: field.to_owned(),
        seen: node.describe(),
        wanted: "a table".to_owned(),
    }
}

/// What was typed: TOML if it reads as such, a list if there is a comma, else a string.
fn typed_value(text: &str, at: At) -> Node {
    if let Some(node) = node::parse_value(text, at) {
        return node;
    }
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    if (bare.is_some() || text.contains(',')) && !text.contains(['{', '}']) {
        // Nothing between two commas is no value that was left out: its field will not take it.
        let items = bare.unwrap_or(text).split(',').map(str::trim).map(|item| {
            node::parse_value(item, at)
                .unwrap_or_else(|| Node::new(at, Value::String(item.to_owned())))
        });
        return Node::new(at, Value::Array(items.collect()));
    }
    Node::new(at, Value::String(text.to_owned()))
}

/// A value or an axis, each value of the right type.
fn setting(path: &[String], value: Node, key_at: At) -> Located<Setting> {
    let own_list = raw::takes_list(path);
    if raw::takes_weights(path) {
        check_mixes(path, &value)?;
    }
    let setting = match value.value {
        Value::Array(items) if !own_list || is_list_of_lists(path, &items) => {
            if items.is_empty() {
                return Err((key_at, Problem::EmptyAxis { field: path.join(".") }));
            }
            Setting::Axis(items)
        }
        scalar => Setting::Value(Node::new(value.at, scalar)),
    };
    match &setting {
        Setting::Value(node) => check_value(path, node)?,
        Setting::Axis(nodes) => nodes.iter().try_for_each(|node| check_value(path, node))?,
    }
    Ok(setting)
}

/// Refuses a list in which some items are values of their own and others parts of one.
fn check_mixes(path: &[String], value: &Node) -> Located<()> {
    let Value::Array(items) = &value.value else { return Ok(()) };
    let is_value = |item: &&Node| matches!(item.value, Value::Array(_) | Value::Table(_));
    match items.iter().find(|item| !is_value(item)) {
        Some(item) if items.iter().any(|item| is_value(&item)) => {
            let problem = Problem::WrongType {
                field: path.join("."),
                seen: item.describe(),
                wanted: "a list or a table, as another value of the axis is".to_owned(),
            };
            Err((item.at, problem))
        }
        _ => Ok(()),
    }
}

/// Whether each item is a value of a field that takes lists.
fn is_list_of_lists(path: &[String], items: &[Node]) -> bool {
    let is_value = |item: &Node| match item.value {
        Value::Array(_) => true,
        Value::Table(_) => raw::takes_weights(path),
        _ => false,
    };
    !items.is_empty() && items.iter().all(is_value)
}

/// Whether a value is of its field's type.
fn check_value(path: &[String], value: &Node) -> Located<()> {
    let mut table = Table::default();
    layer::apply_path(&mut table, path, value);
    layer::drop_unset(&mut table);
    read_table::<RawStream>(&table, value.at, "stream").map_err(|e| e.located(value.at))?;
    Ok(())
}

/// Whether a table has only fields of a stream, each of the right type, and `own` ones.
pub(crate) fn check_fields(table: &Table, at: At, name: &str, own: &[&str]) -> Located<()> {
    if let Some(entry) = table.entries.iter().find(|e| raw::is_head_field(&e.key)) {
        let belongs = hint::belongs(&entry.key).unwrap_or("at the top of the suite");
        return Err((entry.at, Problem::Misplaced { key: entry.key.clone(), belongs }));
    }
    for entry in &table.entries {
        let others = raw::alternatives(&entry.key);
        if let Some(other) = others.iter().find(|other| table.contains(other)) {
            let (first, second) = (other.to_string(), entry.key.clone());
            return Err((entry.at, Problem::Conflict { first, second, hint: None }));
        }
        if matches!(entry.node.value, Value::Array(_))
            && !raw::takes_list(std::slice::from_ref(&entry.key))
        {
            return Err((entry.node.at, list_where_value(entry)));
        }
    }
    let mut fields = Table::default();
    layer::apply(&mut fields, table);
    layer::drop_unset(&mut fields);
    read_table::<RawStream>(&fields, at, name).map_err(|e| with_keys::<RawStream>(e, at, own))?;
    Ok(())
}

fn list_where_value(entry: &Entry) -> Problem {
    let wanted = if entry.key == "block_size" {
        "one size; a grid goes to [phase.grid], a mix to `block_sizes`"
    } else {
        "one value; a grid goes to [phase.grid]"
    };
    Problem::WrongType {
        field: entry.key.clone(),
        seen: "a list".to_owned(),
        wanted: wanted.to_owned(),
    }
}

fn read_phase(at: At, table: &Table) -> Located<PhaseSource> {
    let mut fields = table.clone();
    let grid = fields.remove("grid");
    let streams = fields.remove("stream");
    if let Some(entry) = fields.remove(STREAMS) {
        return Err((entry.at, not_in_the_grid(&entry)));
    }
    let own = Own::take(&mut fields, at)?;
    let name = take_name(&mut fields, at, "phase")?;
    let known = [&["name", "grid", "stream"], phase::own_fields()].concat();
    check_fields(&fields, at, "phase", &known)?;
    let mut phase = PhaseSource { at, name, fields, axes: Vec::new(), streams: Vec::new(), own };
    if let Some(entry) = streams {
        for (at, table) in tables_of(&entry, "phase.stream")? {
            let mut fields = table.clone();
            let name = take_name(&mut fields, at, "stream")?;
            check_fields(&fields, at, "stream", &["name"])?;
            if phase.streams.iter().any(|earlier| earlier.name == name) {
                return Err((at, duplicate("stream", &name)));
            }
            phase.streams.push(StreamSource { at, name, fields });
        }
    }
    if let Some(entry) = grid {
        let table = table_of(&entry.node, "grid")?;
        read_axes(table, &mut Vec::new(), &mut phase)?;
        // Dotted keys of one field stand together in the tree, wherever they were written.
        phase.axes.sort_by_key(|axis| axis.at);
    }
    Ok(phase)
}

/// The axis of streams in a phase itself; or the streams, by another name.
fn not_in_the_grid(entry: &Entry) -> Problem {
    let is_of_tables = match &entry.node.value {
        Value::Table(_) => true,
        Value::Array(items) => items.iter().any(|item| item.as_table().is_some()),
        _ => false,
    };
    let key = entry.key.clone();
    match is_of_tables {
        true => Problem::UnknownKey { key, known: owned(&["stream"]) },
        false => Problem::Misplaced { key, belongs: "in [phase.grid]" },
    }
}

fn read_axes(table: &Table, prefix: &mut Vec<String>, phase: &mut PhaseSource) -> Located<()> {
    for entry in &table.entries {
        let steps = entry.key.split('.').map(str::to_owned);
        let depth = prefix.len();
        prefix.extend(steps);
        match &entry.node.value {
            Value::Table(inner) if !raw::takes_weights(prefix) => read_axes(inner, prefix, phase)?,
            _ => {
                let axis = read_axis(prefix, entry, phase)?;
                phase.axes.push(axis);
            }
        }
        prefix.truncate(depth);
    }
    Ok(())
}

fn read_axis(path: &[String], entry: &Entry, phase: &PhaseSource) -> Located<AxisSource> {
    let mut path = path;
    let mut stream = None;
    if let [first, rest @ ..] = path
        && let Some(index) = phase.streams.iter().position(|s| s.name == *first)
    {
        stream = Some(index);
        path = rest;
    }
    let field = path.first().cloned().unwrap_or_default();
    if stream.is_none() && path == [STREAMS] {
        return read_streams(path, entry, phase);
    }
    if !raw::is_stream_field(&field) {
        let mut known = owned(raw::stream_fields());
        known.push(STREAMS.to_owned());
        known.extend(phase.streams.iter().map(|s| s.name.clone()));
        return Err((entry.at, Problem::UnknownKey { key: field, known }));
    }
    let values = match setting(path, entry.node.clone(), entry.at)? {
        Setting::Axis(values) => values,
        Setting::Value(node) => {
            let (seen, wanted) = one_value(path, &node);
            let wanted = format!("{wanted}; one value goes to the phase itself");
            return Err((node.at, Problem::WrongType { field: path.join("."), seen, wanted }));
        }
    };
    let path = path.to_vec();
    if phase.axes.iter().any(|axis| axis.stream == stream && axis.path == path) {
        return Err((entry.at, duplicate("axis", &path.join("."))));
    }
    Ok(AxisSource { at: entry.at, stream, path, values })
}

/// One value where an axis was to be: what it is, and what was wanted.
fn one_value(path: &[String], node: &Node) -> (String, &'static str) {
    match &node.value {
        _ if raw::takes_weights(path) => {
            let what = node.describe();
            (
                format!("{what}, which is one mix"),
                "a list of such lists or tables, one for each value",
            )
        }
        Value::Array(_) => {
            ("a list, which is one value".to_owned(), "a list of such lists, one for each value")
        }
        _ => (node.describe(), "a list of values"),
    }
}

/// The axis of streams. Its values are looked at when the streams are known.
fn read_streams(path: &[String], entry: &Entry, phase: &PhaseSource) -> Located<AxisSource> {
    let Value::Array(values) = &entry.node.value else {
        let problem = Problem::WrongType {
            field: STREAMS.to_owned(),
            seen: entry.node.describe(),
            wanted: "a list of names, of lists of names, and \"all\"".to_owned(),
        };
        return Err((entry.node.at, problem));
    };
    if values.is_empty() {
        return Err((entry.at, Problem::EmptyAxis { field: STREAMS.to_owned() }));
    }
    if phase.axes.iter().any(AxisSource::is_of_streams) {
        return Err((entry.at, duplicate("axis", STREAMS)));
    }
    Ok(AxisSource { at: entry.at, stream: None, path: path.to_vec(), values: values.clone() })
}

fn take_name(fields: &mut Table, at: At, of: &'static str) -> Located<String> {
    let Some(entry) = fields.remove("name") else {
        return Err(missing(at, "name", &format!("the {of}")));
    };
    match entry.node.as_str() {
        Some(name) => {
            check_name(name, of, entry.node.at)?;
            Ok(name.to_owned())
        }
        None => {
            let problem = Problem::WrongType {
                field: "name".to_owned(),
                seen: entry.node.describe(),
                wanted: "a string".to_owned(),
            };
            Err((entry.node.at, problem))
        }
    }
}

pub(crate) fn check_name(name: &str, of: &'static str, at: At) -> Located<()> {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = (1..=64).contains(&name.len())
        && name.starts_with(letters) && !name.starts_with('-')
        && name.chars().all(letters)
        // Overrides tell names, values and fields apart by the word alone; a suite's name is no
        // prefix of any.
        && (of == "suite" || (!name.starts_with(|c: char| c.is_ascii_digit()) && !raw::is_field(name)));
    if good { Ok(()) } else { Err((at, Problem::BadName { name: name.to_owned(), of })) }
}

pub(crate) fn table_of<'a>(node: &'a Node, name: &str) -> Located<&'a Table> {
    node.as_table().ok_or_else(|| (node.at, not_a_table(name, node)))
}

/// The tables of `[[name]]`, each with its place.
pub(crate) fn tables_of<'a>(entry: &'a Entry, name: &str) -> Located<Vec<(At, &'a Table)>> {
    let Value::Array(items) = &entry.node.value else {
        let problem = Problem::WrongType {
            field: name.to_owned(),
            seen: entry.node.describe(),
            wanted: format!("a list of tables, written `[[{name}]]`"),
        };
        return Err((entry.at, problem));
    };
    items.iter().map(|item| table_of(item, name).map(|table| (item.at, table))).collect()
}

/// What is wrong with a `T`, in which `more` could have stood besides its fields.
pub(crate) fn with_keys<T: DeserializeOwned>(
    error: ReadError,
    at: At,
    more: &[&str],
) -> (At, Problem) {
    let mut problem = error.problem;
    // In the tables within it nothing else can stand.
    if let Problem::UnknownKey { known, .. } = &mut problem
        && known.iter().eq(field_names::<T>())
    {
        known.extend(owned(more));
    }
    (error.at.unwrap_or(at), problem)
}

pub(crate) fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(crate) fn missing(at: At, field: &str, of: &str) -> (At, Problem) {
    (at, Problem::Missing { field: field.to_owned(), of: of.to_owned() })
}

pub(crate) fn duplicate(what: &str, name: &str) -> Problem {
    Problem::Duplicate { what: what.to_owned(), name: name.to_owned() }
}

pub(crate) fn out_of_range(field: &str, seen: impl ToString, wanted: &str) -> Problem {
    Problem::OutOfRange {
        field: field.to_owned(),
        seen: seen.to_string(),
        wanted: wanted.to_owned(),
    }
}
