//! A limit that a control group sets to a device of the stack.

use record::stack::{StackTree, Throttle};

use super::{Advice, Use, Weight, quoted};
use crate::words::{bandwidth, count};

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let mut found: Vec<&Throttle> = Vec::new();
    for throttle in &tree.throttles {
        // Of several groups one in the other the lowest limit counts.
        let same =
            |other: &&mut &Throttle| (&other.device, &other.of) == (&throttle.device, &throttle.of);
        match found.iter_mut().find(same) {
            Some(known) if known.per_second > throttle.per_second => *known = throttle,
            Some(_) => {}
            None => found.push(throttle),
        }
    }
    found.into_iter().filter_map(|throttle| of_throttle(tree, throttle)).collect()
}

fn of_throttle(tree: &StackTree, throttle: &Throttle) -> Option<Advice> {
    let device = tree.layer(&throttle.device)?;
    let rate = match throttle.of.as_str() {
        "bytes read" => format!("{} read", bandwidth(throttle.per_second as f64)),
        "bytes written" => format!("{} written", bandwidth(throttle.per_second as f64)),
        "reads" => format!("{} a second", count(throttle.per_second, "read")),
        "writes" => format!("{} a second", count(throttle.per_second, "write")),
        other => format!("{} {other} a second", throttle.per_second),
    };
    // What stands on it has its limit as well.
    let above = tree.above(device).any(|_| true);
    let what = if above { "everything on it" } else { "it" };
    let group = throttle.group.trim_start_matches('/');
    let limits = format!("/sys/fs/cgroup/{group}/io.max").replace("//", "/");
    Some(
        Advice::new(
            Weight::Warning,
            "throttled",
            &throttle.device,
            format!("a control group limits {what} to {rate}"),
        )
        .because(
            "whoever is in that group gets no more, whatever the device can do: what is measured \
             here is the limit, in bursts of some tenths of a second",
        )
        .seen(format!(
            "the group {} has a limit of {} {} a second on {}",
            throttle.group, throttle.per_second, throttle.of, throttle.device
        ))
        .command(format!("cat {}", quoted(&limits)))
        .mind(
            "who set it may have had a reason; systemd sets it by IOReadIOPSMax and its like, \
             containers by their own settings, and older systems keep it in blkio.throttle.*",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, md, tree};
    use super::*;

    fn with(throttles: &[(&str, &str, &str, u64)]) -> Vec<Advice> {
        let mut tree = tree(vec![md("md0", "raid0", 64, &["sda"]), disk("sda", "")]);
        let made = |&(group, device, of, per_second): &(&str, &str, &str, u64)| Throttle {
            group: group.into(),
            device: device.into(),
            of: of.into(),
            per_second,
        };
        tree.throttles = throttles.iter().map(made).collect();
        look(&tree, Use::default())
    }

    #[test]
    fn a_limit_of_a_group_is_found_and_named() {
        let found =
            with(&[("/db", "md0", "reads", 600), ("/db", "sda", "bytes written", 10_000_000)]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].finding, "a control group limits it to 600 reads a second");
        assert!(found[1].finding.starts_with("a control group limits everything on it to "));
        assert_eq!(found[0].commands, ["cat /sys/fs/cgroup/db/io.max"]);
    }

    #[test]
    fn of_groups_in_each_other_the_lowest_counts() {
        let found = with(&[("/a/b", "md0", "reads", 900), ("/a", "md0", "reads", 600)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].evidence[0].contains("the group /a has a limit of 600"), "{found:?}");
    }

    #[test]
    fn without_limits_on_the_stack_nothing_is_said() {
        assert!(with(&[]).is_empty() && with(&[("/", "sdz", "reads", 5)]).is_empty());
    }
}
