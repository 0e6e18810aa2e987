//! Legs or members whose ways to the processor are not alike: the slowest sets the pace of all.

use finding::{Code, Number, Value};
use record::stack::{Layer, StackTree, What};

use super::geometry::narrowest;
use super::{Advice, Use};

/// Links this near to each other are alike.
const SLACK: f64 = 0.95;

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    tree.layers.iter().filter_map(|layer| of_layer(tree, layer)).collect()
}

fn of_layer(tree: &StackTree, layer: &Layer) -> Option<Advice> {
    let spreads = match &layer.what {
        What::Md(_) | What::Mapper(_) => true,
        What::FileSystem(found) => found.pool.is_some(),
        _ => false,
    };
    if !spreads || layer.below.len() < 2 {
        return None;
    }
    let legs: Vec<_> = tree
        .below(layer)
        .filter_map(|leg| narrowest(tree, leg).map(|(at, link)| (leg, at, link)))
        .collect();
    let slowest = legs.iter().map(|(_, _, link)| link.bytes_per_second).min()?;
    let fastest = legs.iter().map(|(_, _, link)| link.bytes_per_second).max()?;
    if slowest as f64 >= fastest as f64 * SLACK {
        return None;
    }
    let slow =
        legs.iter().filter(|(_, _, link)| (link.bytes_per_second as f64) < fastest as f64 * SLACK);
    let slow: Vec<String> = slow.map(|(leg, _, _)| leg.id.clone()).collect();
    let legs = legs.iter().map(|(leg, at, link)| {
        let (leg, link) = (&leg.id, &link.name);
        Value::record([("leg", leg.into()), ("link", link.into()), ("at", (*at).into())])
    });
    let advice = Advice::new(Code::UnequalLegs, &layer.id)
        .with("several", slow.len() > 1)
        .with("slow", slow.as_slice())
        .with("slowest", Number::bandwidth(slowest as f64))
        .with("fastest", Number::bandwidth(fastest as f64));
    Some(advice.with("legs", legs.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::super::example::{controller, disk, md, tree, volume, wire};
    use super::*;

    fn two_legs(first: u64, second: u64) -> Vec<Advice> {
        let layers = vec![
            volume("dm-0", Some(512), &[("md0", 0), ("md1", 0)]),
            md("md0", "raid5", 128, &["sda", "sdb", "sdc"]),
            md("md1", "raid5", 128, &["sdd", "sde", "sdf"]),
            disk("sda", "01:00.0"),
            disk("sdb", "01:00.0"),
            disk("sdc", "01:00.0"),
            disk("sdd", "02:00.0"),
            disk("sde", "02:00.0"),
            disk("sdf", "02:00.0"),
            controller("01:00.0", &[], Some(wire(first, first))),
            controller("02:00.0", &[], Some(wire(second, second))),
        ];
        look(&tree(layers), Use::default())
    }

    #[test]
    fn the_leg_with_fewer_lanes_is_named() {
        let found = two_legs(500, 250);
        assert_eq!(found.len(), 1);
        let slow = Value::List(vec!["md1".into()]);
        assert_eq!(found[0].finding.value("slow"), Some(&slow), "{found:?}");
    }

    #[test]
    fn equal_legs_are_left_alone() {
        assert!(two_legs(500, 500).is_empty());
    }
}
