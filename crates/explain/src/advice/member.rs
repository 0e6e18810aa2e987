//! A member that is not as fast as its siblings, or differs from them.

use std::collections::BTreeMap;

use finding::{Code, Value};
use record::stack::{Condition, Disk, Layer, Queue, StackTree, Unwell, What};

use super::geometry::disks;
use super::{Advice, Use, Weight, set_queue};

/// What siblings should have in common, and how much it matters where they do not.
type Trait = (&'static str, Weight, fn(&Disk, &Queue) -> Option<String>);

const TRAITS: [Trait; 5] = [
    ("medium", Weight::Warning, |_, queue| {
        Some(if queue.rotational? { "rotational" } else { "not rotational" }.to_owned())
    }),
    ("transport", Weight::Warning, |disk, _| disk.transport.clone()),
    ("write cache", Weight::Warning, |_, queue| queue.write_cache.clone()),
    ("model", Weight::Hint, |disk, _| disk.model.clone()),
    ("firmware", Weight::Hint, |disk, _| disk.firmware.clone()),
];

/// What siblings should be set to alike: its name, its file in sysfs, its value.
type Set = (&'static str, &'static str, fn(&Queue) -> Option<String>);

const SETTINGS: [Set; 2] = [
    ("scheduler", "scheduler", |queue| queue.scheduler.clone()),
    ("number of requests", "nr_requests", |queue| queue.requests.map(|n| n.to_string())),
];

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let arrays = tree.layers.iter().filter(|layer| spreads(layer));
    let found = arrays.flat_map(|array| of_array(tree, array));
    found.chain(others_unwell(tree)).collect()
}

fn spreads(layer: &Layer) -> bool {
    match &layer.what {
        What::Md(_) => layer.below.len() > 1,
        // Legs that are arrays themselves are looked at there.
        What::Mapper(found) => found.maker.as_deref() == Some("LVM") && layer.below.len() > 1,
        What::FileSystem(found) => found.pool.is_some() && layer.below.len() > 1,
        _ => false,
    }
}

fn of_array(tree: &StackTree, array: &Layer) -> Vec<Advice> {
    let mut found: Vec<Advice> = unwell(array).into_iter().collect();
    let members: Vec<(&Layer, &Disk, &Queue)> = disks(tree, array)
        .into_iter()
        .filter_map(|layer| match (&layer.what, &layer.queue) {
            (What::Disk(disk), Some(queue)) => Some((layer, disk, queue)),
            _ => None,
        })
        .collect();
    // What a difference of medium explains need not be told again.
    let differs = TRAITS.iter().find_map(|(name, weight, of)| {
        let values = members.iter().map(|(layer, disk, queue)| (*layer, of(disk, queue)));
        let odd = odd_ones(values)?;
        Some(differing(array, name, *weight, &odd))
    });
    found.extend(differs);
    for (name, file, of) in SETTINGS {
        let values = members.iter().map(|(layer, _, queue)| (*layer, of(queue)));
        if let Some(odd) = odd_ones(values) {
            let advice = differing(array, name, Weight::Hint, &odd);
            let commands = odd.odd.iter().map(|(id, _)| set_queue(id, file, &odd.usual));
            found.push(commands.fold(advice, Advice::command).with("setting", true));
        }
    }
    found
}

struct Odd {
    usual: String,
    /// Id and value.
    odd: Vec<(String, String)>,
}

/// Those that differ from what most have; `None` where all are alike or not known.
fn odd_ones<'a>(values: impl Iterator<Item = (&'a Layer, Option<String>)>) -> Option<Odd> {
    let values: Vec<(&str, String)> =
        values.filter_map(|(layer, value)| Some((layer.id.as_str(), value?))).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, value) in &values {
        *counts.entry(value).or_default() += 1;
    }
    if counts.len() < 2 {
        return None;
    }
    let usual = counts.iter().max_by_key(|(_, count)| **count).map(|(value, _)| *value)?.to_owned();
    let odd = values.iter().filter(|(_, value)| *value != usual);
    Some(Odd { odd: odd.map(|(id, value)| ((*id).to_owned(), value.clone())).collect(), usual })
}

fn differing(array: &Layer, name: &str, weight: Weight, odd: &Odd) -> Advice {
    let members: Vec<String> = odd.odd.iter().map(|(id, _)| id.clone()).collect();
    let each = odd.odd.iter();
    let each =
        each.map(|(id, value)| Value::record([("member", id.into()), ("value", value.into())]));
    Advice::new(Code::UnequalMembers, &array.id)
        .weighing(weight)
        .with("several", members.len() > 1)
        .with("members", members.as_slice())
        .with("trait", name)
        .with("usual", &odd.usual)
        .with("odd", each.collect::<Vec<_>>())
}

/// Arrays of other makers that lack members or fill them.
fn others_unwell(tree: &StackTree) -> Vec<Advice> {
    let of = |one: &Unwell| {
        let layer = tree.layer(&one.layer)?;
        let command = match &layer.what {
            What::FileSystem(found) if found.kind == "btrfs" => {
                format!("btrfs filesystem show {}", super::quoted(&found.point))
            }
            What::FileSystem(found) => {
                let pool = found.source.split('/').next().unwrap_or_default();
                format!("zpool status {}", super::quoted(pool))
            }
            What::Mapper(_) => "lvs --all --options +lv_health_status".to_owned(),
            // Of md the members tell more.
            _ => return None,
        };
        let weight = match one.condition {
            Condition::Degraded => Weight::Danger,
            Condition::Rebuilding | Condition::Busy => Weight::Warning,
        };
        Some(not_whole(layer, weight).command(command).with("how", &one.how))
    };
    tree.unwell().iter().filter_map(of).collect()
}

fn not_whole(array: &Layer, weight: Weight) -> Advice {
    Advice::new(Code::ArrayUnwell, &array.id).weighing(weight)
}

/// Members of md that failed, are being filled, or had to be corrected.
fn unwell(array: &Layer) -> Option<Advice> {
    let What::Md(md) = &array.what else { return None };
    let errors = md.members.iter().filter_map(|member| {
        let errors = member.errors.filter(|&errors| errors > 0)?;
        Some(Value::record([("member", (&member.layer).into()), ("n", errors.into())]))
    });
    let states = md.members.iter().filter_map(|member| {
        let state = member.state.as_deref()?;
        // Spares stand by.
        let well = state.split(',').any(|word| word == "in_sync")
            || state == "spare" && md.sync.as_deref() == Some("idle");
        let found = [("member", (&member.layer).into()), ("state", state.into())];
        (!well).then(|| Value::record(found))
    });
    let some = |all: Vec<Value>| (!all.is_empty()).then_some(all);
    let (errors, states) = (some(errors.collect()), some(states.collect()));
    let missing = md.missing.filter(|&missing| missing > 0);
    let sync = md.sync.as_deref().filter(|sync| !matches!(*sync, "idle" | "none" | "frozen"));
    if errors.is_none() && states.is_none() && missing.is_none() && sync.is_none() {
        return None;
    }
    let weight = if md.is_degraded() { Weight::Danger } else { Weight::Warning };
    let device = super::quoted(&format!("/dev/{}", array.id));
    let advice = not_whole(array, weight)
        .with_some("missing", missing)
        .with("missing_one", missing == Some(1))
        .with_some("wanted", md.wanted.or(missing))
        .with_some("states", states)
        .with_some("errors", errors)
        .with_some("sync", sync);
    Some(advice.command(format!("mdadm --detail {device}")))
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, disk_with, md, tree};
    use super::*;

    fn with(change: impl FnOnce(&mut Disk, &mut Queue)) -> Vec<Advice> {
        let array = md("md0", "raid5", 64, &["sda", "sdb", "sdc"]);
        let layers = vec![array, disk("sda", ""), disk_with("sdb", change), disk("sdc", "")];
        look(&tree(layers), Use::default())
    }

    #[test]
    fn the_odd_one_is_named() {
        let found = with(|_, queue| queue.rotational = Some(true));
        assert_eq!(found[0].finding.value("trait"), Some(&"medium".into()));
        assert_eq!(found[0].finding.value("members"), Some(&Value::List(vec!["sdb".into()])));
        assert_eq!(found[0].weight(), Weight::Warning);
        let found = with(|disk, _| disk.firmware = Some("0.9".into()));
        assert_eq!(found[0].weight(), Weight::Hint);
        let found = with(|_, queue| queue.requests = Some(64));
        assert_eq!(found[0].commands, ["echo 256 > /sys/block/sdb/queue/nr_requests"]);
    }

    #[test]
    fn arrays_of_other_makers_that_are_not_whole_are_told() {
        use record::stack::{FileSystem, Pool};
        let of = |state: &str| {
            let pool = Pool { state: Some(state.to_owned()), ..Pool::default() };
            let what = What::FileSystem(FileSystem {
                kind: "btrfs".to_owned(),
                point: "/srv/my data".to_owned(),
                pool: Some(pool),
                ..FileSystem::default()
            });
            // The member that is missing is not in the tree.
            let mut layer = md("/srv/my data", "raid1", 64, &["sda"]);
            layer.what = what;
            look(&tree(vec![layer, disk("sda", "")]), Use::default())
        };
        assert_eq!(of("ONLINE"), []);
        let found = of("1 missing");
        assert_eq!((found[0].finding.code, found[0].weight()), (Code::ArrayUnwell, Weight::Danger));
        assert_eq!(found[0].commands, ["btrfs filesystem show '/srv/my data'"]);
        assert_eq!(of("replace")[0].weight(), Weight::Warning);
    }

    #[test]
    fn siblings_that_are_alike_are_left_alone() {
        assert!(with(|_, _| {}).is_empty());
        assert!(with(|disk, _| disk.firmware = None).is_empty());
    }

    #[test]
    fn an_array_that_is_not_whole_is_found() {
        let mut array = md("md0", "raid5", 64, &["sda", "sdb", "sdc"]);
        let What::Md(md) = &mut array.what else { unreachable!() };
        md.missing = Some(1);
        md.sync = Some("recover".into());
        md.members[1].errors = Some(3);
        let found = look(&tree(vec![array]), Use::default());
        assert_eq!(found[0].weight(), Weight::Danger);
        assert_eq!(found[0].finding.evidence().len(), 3, "{found:?}");
    }
}
