//! A database's log on the devices of its data.

use finding::Code;
use record::stack::{StackTarget, StackTree};

use super::geometry::disks;
use super::{Advice, Use, Weight};

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let of = |role: &str| tree.targets.iter().find(|target| target.role.as_deref() == Some(role));
    let (Some(data), Some(log)) = (of("data"), of("log")) else { return Vec::new() };
    let (of_data, of_log) = (bottoms(tree, data), bottoms(tree, log));
    let shared: Vec<String> = of_data.iter().filter(|id| of_log.contains(id)).cloned().collect();
    if shared.is_empty() {
        return Vec::new();
    }
    let turns = shared.iter().filter_map(|id| tree.layer(id)?.queue.as_ref()?.rotational);
    let weight = if turns.into_iter().any(|turns| turns) { Weight::Warning } else { Weight::Hint };
    vec![
        Advice::new(Code::LogBesideData, &shared[0])
            .weighing(weight)
            .with("data", &data.resolved)
            .with("log", &log.resolved)
            .with("devices", shared.as_slice()),
    ]
}

fn bottoms(tree: &StackTree, target: &StackTarget) -> Vec<String> {
    let tops = target.on.iter().filter_map(|id| tree.layer(id));
    let mut ids: Vec<String> =
        tops.flat_map(|top| disks(tree, top)).map(|disk| disk.id.clone()).collect();
    ids.sort();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, partition, tree};
    use super::*;

    fn with(log_on: &str) -> Vec<Advice> {
        let mut tree =
            tree(vec![partition("sda1", "sda", 1 << 20), disk("sda", ""), disk("sdb", "")]);
        let target = |role: &str, on: &str| StackTarget {
            given: role.into(),
            resolved: format!("/{role}"),
            role: Some(role.into()),
            on: vec![on.into()],
        };
        tree.targets = vec![target("data", "sda1"), target("log", log_on)];
        look(&tree, Use::default())
    }

    #[test]
    fn a_log_on_another_partition_of_the_same_disk_is_found() {
        let found = with("sda");
        assert_eq!((found.len(), found[0].weight()), (1, Weight::Hint));
    }

    #[test]
    fn a_log_on_its_own_disk_is_left_alone() {
        assert!(with("sdb").is_empty());
    }
}
