//! What differs between what two runs of ours were asked for: of the cells that both have what
//! is in force there, and of the suite around them what it says.

use std::collections::{BTreeMap, BTreeSet};

use suite::{AskedCell, AskedStream};

use super::{Factor, Kind, NONE, by_key, factor};
use crate::places::{Told, pairs};

/// Fields of a suite that are words about it, or say how often, not what.
const NO_FACTORS: [&str; 9] =
    ["schema", "name", "title", "description", "table", "seed", "repeats", "grid", "scaled"];
/// The same, by their paths.
const HOW_OFTEN: [&str; 4] =
    ["rounds.precision", "rounds.visits_min", "rounds.visits_max", "rounds.time_max"];
/// Of rounds: what the streams' own times have taken in.
const IN_STREAMS: [&str; 3] = ["visit_time", "ramp", "visit_time_max"];
/// Of a longer list of phases so many are named.
const NAMED_MAX: usize = 5;
/// Fields that a phase has besides those of its streams.
const OWN: [&str; 4] = ["steady", "settle", "caches", "precondition"];

pub(super) fn plan(left: &Told<'_>, right: &Told<'_>) -> Vec<Factor> {
    let (a, b) = (&left.run.header, &right.run.header);
    let mut out: Vec<Factor> =
        factor(Kind::Plan, "suite", &a.suite, &b.suite).into_iter().collect();
    if a.suite_text == b.suite_text {
        out.extend(not_shared(left, right));
        return out;
    }
    let (Some(ours), Some(theirs)) = (table(&a.suite_text), table(&b.suite_text)) else {
        let unreadable = "not readable, or other";
        out.push(Factor {
            kind: Kind::Plan,
            name: "suite text".to_owned(),
            left: unreadable.to_owned(),
            right: unreadable.to_owned(),
        });
        return out;
    };
    let both = pairs(left, right);
    let asked: Vec<(&AskedCell, &AskedCell)> =
        both.iter().filter_map(|(a, b)| left.asked(a).zip(right.asked(b))).collect();
    if asked.is_empty() || asked.len() < both.len() {
        let (ours, theirs) = (whole(&ours), whole(&theirs));
        out.extend(together(by_key(Kind::Plan, &ours, &theirs)));
        return out;
    }
    let phases: BTreeSet<&str> = asked.iter().map(|(a, _)| a.phase.as_str()).collect();
    let around = |table: &toml::Table| {
        let mut fields = head(table);
        fields.extend(own(table, &phases));
        fields
    };
    let mut found = by_key(Kind::Plan, &around(&ours), &around(&theirs));
    found.extend(of_cells(&asked));
    found.sort();
    out.extend(together(found));
    out.extend(not_shared(left, right));
    out
}

/// Phases that only one of two runs of one suite was asked for. They are excluded from all ratios, yet what runs
/// before a cell can affect it, so the two are no A/A. Places of a grid that only one visits in a
/// phase of both are none: a value set is the same value of an axis.
pub(super) fn not_shared(left: &Told<'_>, right: &Told<'_>) -> Option<Factor> {
    if left.run.header.suite != right.run.header.suite {
        return None;
    }
    let phases = |told: &Told<'_>| {
        let mut met: Vec<String> = Vec::new();
        for cell in told.grid().filter(|cell| !cell.phase.is_empty()) {
            if !met.contains(&cell.phase) {
                met.push(cell.phase.clone());
            }
        }
        met
    };
    let (ours, theirs) = (phases(left), phases(right));
    let imported = [left, right].iter().any(|told| told.run.header.imported.is_some());
    if imported && !ours.iter().any(|phase| theirs.contains(phase)) {
        // Jobs of other names are held against each other as they are.
        return None;
    }
    let only = |mine: &[String], others: &[String]| {
        let mine = mine.iter().filter(|phase| !others.contains(phase));
        let mut mine: Vec<String> = mine.cloned().collect();
        let more = mine.len().saturating_sub(NAMED_MAX);
        mine.truncate(NAMED_MAX);
        match mine.join(", ") {
            none if none.is_empty() => NONE.to_owned(),
            all if more == 0 => all,
            some => format!("{some}, and {more} more"),
        }
    };
    factor(Kind::Plan, "phases that one lacks", &only(&ours, &theirs), &only(&theirs, &ours))
}

fn table(text: &str) -> Option<toml::Table> {
    text.parse().ok()
}

/// Every field of a suite by its dotted path: elements of a list of tables by their name.
pub(super) fn fields(text: &str) -> Option<BTreeMap<String, String>> {
    Some(whole(&table(text)?))
}

fn whole(table: &toml::Table) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    flatten("", &toml::Value::Table(table.clone()), &mut out);
    out.retain(|path, _| !HOW_OFTEN.contains(&path.as_str()));
    out
}

/// What stands at the top of a suite, as far as its method minds it.
fn head(table: &toml::Table) -> BTreeMap<String, String> {
    let mut head = table.clone();
    for below in ["phase", "defaults", "quick"] {
        head.remove(below);
    }
    let in_rounds = head.get("method").and_then(toml::Value::as_str) != Some("classic");
    if in_rounds {
        head.remove("order");
    }
    match head.get_mut("rounds") {
        Some(toml::Value::Table(rounds)) if in_rounds => {
            rounds.retain(|key, _| !IN_STREAMS.contains(&key));
        }
        _ => drop(head.remove("rounds")),
    }
    whole(&head)
}

/// What is done before phases and between their visits.
fn own(table: &toml::Table, phases: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let all = table.get("phase").and_then(toml::Value::as_array);
    for phase in all.into_iter().flatten().filter_map(toml::Value::as_table) {
        let name = phase.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        for field in OWN.iter().filter(|_| phases.contains(name)) {
            if let Some(value) = phase.get(*field) {
                flatten(&format!("phase.{name}.{field}"), value, &mut out);
            }
        }
    }
    out
}

fn flatten(path: &str, value: &toml::Value, out: &mut BTreeMap<String, String>) {
    let below = |key: &str| {
        if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
    };
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table.iter().filter(|(k, _)| !NO_FACTORS.contains(&k.as_str())) {
                flatten(&below(key), value, out);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for (k, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(toml::Value::as_str);
                flatten(&below(name.unwrap_or(&k.to_string())), item, out);
            }
        }
        toml::Value::String(text) => {
            out.insert(path.to_owned(), text.clone());
        }
        other => {
            out.insert(path.to_owned(), other.to_string());
        }
    }
}

/// What differs in cells that both have.
#[derive(Default)]
struct Found(BTreeMap<String, Vec<(String, String)>>);

fn of_cells(asked: &[(&AskedCell, &AskedCell)]) -> Vec<Factor> {
    let mut found = Found::default();
    for (left, right) in asked {
        found.cell(left, right);
    }
    let distinct = |values: &mut dyn Iterator<Item = &String>| {
        let mut out: Vec<String> = Vec::new();
        values.for_each(|value| {
            if !out.contains(value) {
                out.push(value.clone());
            }
        });
        out.join(", ")
    };
    let factor = |(name, values): (String, Vec<(String, String)>)| Factor {
        kind: Kind::Plan,
        name,
        left: distinct(&mut values.iter().map(|(left, _)| left)),
        right: distinct(&mut values.iter().map(|(_, right)| right)),
    };
    found.0.into_iter().map(factor).collect()
}

impl Found {
    fn cell(&mut self, left: &AskedCell, right: &AskedCell) {
        let phase = format!("phase.{}", left.phase);
        let names = |cell: &AskedCell| -> Vec<String> {
            cell.streams.iter().map(|stream| stream.name.clone()).collect()
        };
        if left.streams.len() != right.streams.len() {
            let (left, right) = (names(left).join("+"), names(right).join("+"));
            self.differs(format!("{phase}.streams"), &left, &right);
            return;
        }
        let same_names = names(left).iter().all(|name| names(right).contains(name));
        for (k, stream) in left.streams.iter().enumerate() {
            let other = match same_names {
                true => right.streams.iter().find(|other| other.name == stream.name),
                false => right.streams.get(k),
            };
            // A phase without streams of its own has one of its own name.
            let path = match stream.name == left.phase {
                true => phase.clone(),
                false => format!("{phase}.stream.{}", stream.name),
            };
            self.stream(&path, Some(stream), other);
        }
        self.stream(&format!("{phase}.before"), left.before.as_ref(), right.before.as_ref());
    }

    fn stream(&mut self, path: &str, left: Option<&AskedStream>, right: Option<&AskedStream>) {
        let fields = |stream: Option<&AskedStream>| stream.map(AskedStream::fields);
        let (left, right) = (fields(left).unwrap_or_default(), fields(right).unwrap_or_default());
        let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        for key in keys {
            let value = |of: &BTreeMap<String, String>| {
                of.get(key).cloned().unwrap_or_else(|| NONE.to_owned())
            };
            self.differs(format!("{path}.{key}"), &value(&left), &value(&right));
        }
    }

    fn differs(&mut self, name: String, left: &str, right: &str) {
        let pair = (left.to_owned(), right.to_owned());
        if left != right {
            let known = self.0.entry(name).or_default();
            if !known.contains(&pair) {
                known.push(pair);
            }
        }
    }
}

/// A field that changed alike in several phases is one factor: who changed it did so once.
fn together(factors: Vec<Factor>) -> Vec<Factor> {
    let mut out: Vec<Factor> = Vec::new();
    for factor in factors {
        let general = match factor.name.strip_prefix("phase.").and_then(|r| r.split_once('.')) {
            Some((_, field)) => format!("phase.*.{field}"),
            None => factor.name.clone(),
        };
        let alike = |known: &&mut Factor| {
            let name = known.name.strip_prefix("phase.").and_then(|r| r.split_once('.'));
            name.is_some_and(|(_, field)| format!("phase.*.{field}") == general)
                && (&known.left, &known.right) == (&factor.left, &factor.right)
        };
        match out.iter_mut().find(alike) {
            Some(known) => known.name = general,
            None => out.push(factor),
        }
    }
    out
}
