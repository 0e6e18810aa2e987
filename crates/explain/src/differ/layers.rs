//! What differs between two stacks, layer by layer.
//!
//! Layers are paired by what they are for, not by their names: the disks of one with the disks of
//! the other. What only one of them could see is no difference.

use std::collections::{BTreeMap, BTreeSet};

use record::stack::{Layer, Setting, StackHost, StackTree, Throttle, What};
use serde_json::Value;
use units::{Bytes, Nanos};

use super::{Factor, Kind, factor, only_in_one, option};

/// Fields that are told elsewhere, that follow from others, or that are names of parts.
const SKIPPED: [&str; 16] = [
    "is",
    "kind",
    "point",
    "source",
    "options",
    "name",
    "on",
    "layer",
    "members",
    "segments",
    "start_bytes",
    "known_limits",
    "capable",
    "bytes_per_second",
    "missing",
    "sync",
];
/// Of arrays `clean` and `active` follow each other all the time: how they stand is told apart.
const SKIPPED_OF_ARRAYS: [&str; 2] = ["state", "health"];
/// Of queues above the disks, what is set there; the rest follows from what is below.
const SET_ABOVE_DISKS: [&str; 4] = ["scheduler", "requests", "read_ahead_bytes", "write_cache"];
/// More values of one field are counted, not listed.
const VALUES_MAX: usize = 3;

/// What differs between two stacks.
pub(super) fn layers(a: &StackTree, b: &StackTree) -> Vec<Factor> {
    let (left, right) = (roles(a), roles(b));
    let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let none = Role::default();
    let of = |roles: &BTreeMap<String, Role>, name: &String| roles.get(name).cloned();
    let mut out = Vec::new();
    for name in names {
        match (of(&left, name), of(&right, name)) {
            (Some(left), Some(right)) => out.extend(of_role(name, &left, &right)),
            (left, right) => {
                // A layer that one of them lacks is told once, not field by field.
                let one = left.as_ref().or(right.as_ref()).unwrap_or(&none);
                if one.counts {
                    let text = |role: Option<Role>| role.map(|role| role.summary());
                    out.extend(option(Kind::Stack, name, text(left), text(right)));
                }
            }
        }
    }
    out.extend(factor(Kind::Stack, "state of arrays", &state(a), &state(b)));
    out.extend(limits(&a.throttles, &b.throttles));
    out.extend(host(&a.host, &b.host));
    out
}

/// `whole`; `degraded`, `rebuilding` where several arrays stand so or otherwise.
fn state(tree: &StackTree) -> String {
    let words: BTreeSet<&str> = tree.unwell().iter().map(|one| one.condition.word()).collect();
    if words.is_empty() {
        return "whole".to_owned();
    }
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// All layers that do the same for a stack.
#[derive(Clone, Debug, Default)]
struct Role {
    layers: usize,
    /// Whether it matters that it is there at all, and how often.
    counts: bool,
    /// Short words for its layers, each once.
    words: BTreeSet<String>,
    /// Values of a field, with how many layers have each.
    fields: BTreeMap<String, BTreeMap<String, usize>>,
    /// Words of fields that are sets.
    sets: BTreeMap<String, BTreeSet<String>>,
}

fn roles(tree: &StackTree) -> BTreeMap<String, Role> {
    let mut roles: BTreeMap<String, Role> = BTreeMap::new();
    for layer in &tree.layers {
        let role = roles.entry(role_of(tree, layer)).or_default();
        role.layers += 1;
        role.counts = !matches!(layer.what, What::Controller(_) | What::FileSystem(_));
        role.words.insert(word(layer));
        let mut values = Vec::new();
        if let Ok(mut what) = serde_json::to_value(&layer.what) {
            if let (What::Md(_) | What::Mapper(_), Some(fields)) =
                (&layer.what, what.as_object_mut())
            {
                fields.retain(|name, _| !SKIPPED_OF_ARRAYS.contains(&name.as_str()));
            }
            flatten("", &what, &mut values, role);
        }
        if let What::Mapper(mapper) = &layer.what {
            for segment in mapper.segments.iter().flatten() {
                let layout = segment.level.clone().unwrap_or_else(|| segment.target.clone());
                values.push(("layout".to_owned(), format!("{layout} over {}", segment.on.len())));
                values.extend(
                    segment.chunk_bytes.map(|n| ("chunk".to_owned(), Bytes::new(n).exact())),
                );
            }
            values.dedup();
        }
        if let Some(Ok(Value::Object(mut queue))) = layer.queue.as_ref().map(serde_json::to_value) {
            if !matches!(layer.what, What::Disk(_)) {
                queue.retain(|name, _| SET_ABOVE_DISKS.contains(&name.as_str()));
            }
            flatten("", &Value::Object(queue), &mut values, role);
        }
        for (name, value) in values {
            *role.fields.entry(name).or_default().entry(value).or_default() += 1;
        }
    }
    roles
}

/// What a layer is for: its kind, and which of its kind from the top.
fn role_of(tree: &StackTree, layer: &Layer) -> String {
    let kind = match &layer.what {
        What::Mapper(mapper) => match mapper.maker.as_deref() {
            Some("LVM") => "volume",
            Some("CRYPT") => "encryption",
            _ => "device mapper",
        },
        What::Controller(_) if tree.above(layer).any(|l| matches!(l.what, What::Controller(_))) => {
            "port"
        }
        _ => layer.kind(),
    };
    let is_like = |other: &&Layer| other.kind() == layer.kind();
    let mut above = 0;
    let mut here = layer;
    // Layers in a circle end it.
    for _ in 0..tree.layers.len() {
        let Some(next) = tree.above(here).next() else { break };
        above += usize::from(is_like(&next));
        here = next;
    }
    match (kind, above) {
        ("port", _) | (_, 0) => kind.to_owned(),
        (_, n) => format!("{kind} {}", n + 1),
    }
}

fn word(layer: &Layer) -> String {
    match &layer.what {
        What::Md(md) => md.level.clone(),
        What::Disk(disk) => {
            disk.model.clone().or_else(|| disk.known_as.clone()).unwrap_or_default()
        }
        What::Loop(found) => {
            if found.direct == Some(true) { "direct" } else { "buffered" }.to_owned()
        }
        _ => String::new(),
    }
}

impl Role {
    fn summary(&self) -> String {
        let words: Vec<&str> =
            self.words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        match (self.layers, words.is_empty()) {
            (1, true) => "yes".to_owned(),
            (1, false) => words.join(", "),
            (n, true) => n.to_string(),
            (n, false) => format!("{n} ({})", words.join(", ")),
        }
    }
}

/// Every single value below, with the way to it as its name.
fn flatten(way: &str, value: &Value, out: &mut Vec<(String, String)>, role: &mut Role) {
    let name = |key: &str| if way.is_empty() { key.to_owned() } else { format!("{way} {key}") };
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| {
                !SKIPPED.contains(&key.as_str()) || key.as_str() == "name" && way.ends_with("now")
            });
            for (key, value) in kept {
                let key =
                    if key == "now" || key == "name" { way.to_owned() + " now" } else { name(key) };
                flatten(key.trim_start(), value, out, role);
            }
        }
        Value::Array(items) => {
            let words = items.iter().filter_map(|item| match item {
                Value::String(text) => Some(text.clone()),
                Value::Object(set) => {
                    let of = |key: &str| set.get(key).and_then(Value::as_str);
                    Some(format!("{}={}", of("name")?, of("value")?))
                }
                _ => None,
            });
            role.sets.entry(way.to_owned()).or_default().extend(words);
        }
        Value::Null => {}
        Value::String(text) => out.push((way.to_owned(), text.clone())),
        Value::Bool(is) => out.push((way.to_owned(), if *is { "yes" } else { "no" }.to_owned())),
        Value::Number(number) => {
            let (label, text) = match number.as_u64() {
                Some(n) if way.ends_with("_bytes") || way.contains("_bytes_") => {
                    (way.replace("_bytes", ""), Bytes::new(n).exact())
                }
                Some(n) if way.ends_with("_ns") => {
                    (way.replace("_ns", ""), Nanos::new(n).to_string())
                }
                _ => (way.to_owned(), number.to_string()),
            };
            out.push((label, text));
        }
    }
}

fn of_role(name: &str, left: &Role, right: &Role) -> Vec<Factor> {
    let mut out = Vec::new();
    if left.counts && left.layers != right.layers {
        let (a, b) = (left.layers.to_string(), right.layers.to_string());
        out.extend(factor(Kind::Stack, &format!("number of {name} layers"), &a, &b));
    }
    for (field, values) in &left.fields {
        // What one of them could not see is no difference.
        let Some(others) = right.fields.get(field) else { continue };
        if field == "serial" && !comparable(values, others) {
            continue;
        }
        if values.keys().eq(others.keys())
            && (values.len() == 1 || left.layers != right.layers || values == others)
        {
            continue;
        }
        let label = format!("{name} {}", words(field));
        out.extend(factor(Kind::Stack, &label, &listed(values), &listed(others)));
    }
    for (field, set) in &left.sets {
        let Some(others) = right.sets.get(field) else { continue };
        let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
        let label = format!("{name} {}", words(field));
        out.extend(only_in_one(Kind::Stack, &label, &list(set), &list(others), ","));
    }
    out
}

/// Serial numbers were hashed without a key once: the same drive has two texts then.
fn comparable(a: &BTreeMap<String, usize>, b: &BTreeMap<String, usize>) -> bool {
    let keyed =
        |values: &BTreeMap<String, usize>| values.keys().all(|text| text.starts_with("#1-"));
    keyed(a) == keyed(b)
}

fn words(field: &str) -> String {
    field.replace(" now", "").replace("wire", "link").replace('_', " ")
}

/// `128KiB`; `6.0 Gb/s (3), 3.0 Gb/s`.
fn listed(values: &BTreeMap<String, usize>) -> String {
    if values.len() > VALUES_MAX {
        return format!("{} different", values.len());
    }
    let several = values.len() > 1;
    let texts = values.iter().map(|(value, &count)| match count {
        count if several && count > 1 => format!("{value} ({count})"),
        _ => value.clone(),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The lowest limit of a kind over all devices: the others are never reached.
fn limits(a: &[Throttle], b: &[Throttle]) -> Vec<Factor> {
    let lowest = |throttles: &[Throttle], of: &str| {
        let rates = throttles.iter().filter(|throttle| throttle.of == of);
        rates.map(|throttle| throttle.per_second).min().map(|rate| format!("{rate} a second"))
    };
    let kinds: BTreeSet<&String> = a.iter().chain(b).map(|throttle| &throttle.of).collect();
    let found = kinds.into_iter().filter_map(|of| {
        option(Kind::Stack, &format!("limit of {of}"), lowest(a, of), lowest(b, of))
    });
    found.collect()
}

fn host(a: &StackHost, b: &StackHost) -> Vec<Factor> {
    let list = |name: &str, a: &[String], b: &[String]| {
        factor(Kind::Machine, name, &a.join(" "), &b.join(" "))
            .filter(|factor| !factor.left.is_empty() && !factor.right.is_empty())
    };
    let pairs = |pairs: &[Setting]| -> Vec<String> {
        pairs.iter().map(|set| format!("{}={}", set.name, set.value)).collect()
    };
    let settings =
        only_in_one(Kind::Machine, "page cache", &pairs(&a.settings), &pairs(&b.settings), ", ");
    let faults = only_in_one(
        Kind::Machine,
        "mitigations of the processor",
        &pairs(&a.vulnerabilities),
        &pairs(&b.vulnerabilities),
        ", ",
    );
    let found = [
        list("processor governor", &a.governors, &b.governors),
        only_in_one(Kind::Machine, "mitigations", &a.mitigations, &b.mitigations, " "),
        settings,
        faults,
    ];
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::example::{disk, fs_with_stripe, md, sound, tree, volume};

    fn told(a: &StackTree, b: &StackTree) -> Vec<String> {
        let mut out: Vec<String> = layers(a, b)
            .into_iter()
            .map(|f| format!("{}: {} > {}", f.name, f.left, f.right))
            .collect();
        out.sort();
        out
    }

    #[test]
    fn a_stack_differs_in_nothing_from_itself() {
        assert_eq!(told(&sound(), &sound()), [""; 0]);
    }

    #[test]
    fn the_layer_and_the_field_are_named() {
        let with = |level: &str, chunk: u64| {
            tree(vec![
                md("md0", level, chunk, &["sda", "sdb", "sdc"]),
                disk("sda", ""),
                disk("sdb", ""),
                disk("sdc", ""),
            ])
        };
        let mut other = with("raid0", 64);
        if let Some(queue) = &mut other.layers[1].queue {
            queue.scheduler = Some("bfq".to_owned());
        }
        let found = told(&with("raid5", 128), &other);
        assert!(found.contains(&"md level: raid5 > raid0".to_owned()), "{found:#?}");
        assert!(found.contains(&"md chunk: 128KiB > 64KiB".to_owned()), "{found:#?}");
        assert!(found.contains(&"disk scheduler: none > bfq, none (2)".to_owned()), "{found:#?}");
    }

    #[test]
    fn an_array_that_is_not_whole_is_another_and_one_that_writes_is_not() {
        let with = |missing: u32, sync: &str, state: &str| {
            let mut array = md("md0", "raid5", 64, &["sda"]);
            let What::Md(found) = &mut array.what else { unreachable!() };
            (found.missing, found.sync) = (Some(missing), Some(sync.to_owned()));
            found.state = Some(state.to_owned());
            tree(vec![array, disk("sda", "")])
        };
        let whole = with(0, "idle", "clean");
        assert_eq!(told(&whole, &with(0, "idle", "active")), [""; 0]);
        let found = told(&whole, &with(1, "idle", "clean"));
        assert_eq!(found, ["state of arrays: whole > degraded"]);
        let found = told(&with(1, "recover", "clean"), &with(1, "idle", "clean"));
        assert_eq!(found, ["state of arrays: rebuilding > degraded"]);
    }

    #[test]
    fn a_serial_that_was_hashed_otherwise_is_no_difference() {
        let with = |serial: &str| {
            let mut drive = disk("sda", "");
            let What::Disk(found) = &mut drive.what else { unreachable!() };
            found.serial = Some(serial.to_owned());
            tree(vec![drive])
        };
        let keyed = with("#1-0123456789abcdef");
        assert_eq!(told(&with("#0123456789abcdef"), &keyed), [""; 0]);
        assert_eq!(told(&with("#1-1123456789abcdef"), &keyed).len(), 1);
    }

    #[test]
    fn names_of_devices_do_not_matter() {
        let with = |md_name: &str, disk_name: &str| {
            tree(vec![md(md_name, "raid1", 64, &[disk_name]), disk(disk_name, "")])
        };
        assert_eq!(told(&with("md0", "sda"), &with("md127", "sdq")), [""; 0]);
    }

    #[test]
    fn a_layer_that_one_lacks_is_told_once() {
        let plain = tree(vec![fs_with_stripe("xfs", "sda", None, None), disk("sda", "")]);
        let on_volume = tree(vec![
            fs_with_stripe("xfs", "dm-0", None, None),
            volume("dm-0", None, &[("sda", 0)]),
            disk("sda", ""),
        ]);
        assert_eq!(told(&plain, &on_volume), ["volume: none > yes"]);
    }
}
