//! A limit that a control group sets to a device of the stack.

use finding::{Code, Number};
use record::stack::{StackTree, Throttle};

use super::{Advice, Use, quoted};

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
    let is_bytes = matches!(throttle.of.as_str(), "bytes read" | "bytes written");
    let bandwidth = is_bytes.then_some(Number::bandwidth(throttle.per_second as f64));
    // What stands on it has its limit as well.
    let above = tree.above(device).any(|_| true);
    let group = throttle.group.trim_start_matches('/');
    let limits = format!("/sys/fs/cgroup/{group}/io.max").replace("//", "/");
    Some(
        Advice::new(Code::Throttled, &throttle.device)
            .with("above", above)
            .with("group", &throttle.group)
            .with("of", &throttle.of)
            .with("per_second", throttle.per_second)
            .with_some("bandwidth", bandwidth)
            .command(format!("cat {}", quoted(&limits))),
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
        let said = found[0].finding.text();
        assert_eq!(said, "md0: a control group limits it to 600 reads a second.");
        assert_eq!(found[1].finding.value("above"), Some(&true.into()));
        assert_eq!(found[0].commands, ["cat /sys/fs/cgroup/db/io.max"]);
    }

    #[test]
    fn of_groups_in_each_other_the_lowest_counts() {
        let found = with(&[("/a/b", "md0", "reads", 900), ("/a", "md0", "reads", 600)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].finding.value("group"), Some(&"/a".into()));
        assert_eq!(found[0].finding.value("per_second"), Some(&600_u64.into()));
    }

    #[test]
    fn without_limits_on_the_stack_nothing_is_said() {
        assert!(with(&[]).is_empty() && with(&[("/", "sdz", "reads", 5)]).is_empty());
    }
}
