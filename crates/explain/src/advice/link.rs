//! Links: one that runs below what it is made for, and legs or members whose ways to the processor are
//! not alike, so that the slowest sets the pace of all.

use finding::{Code, Number, Value};
use record::stack::{Layer, StackTree, What, Wire};

use super::geometry::narrowest;
use super::{Advice, quoted};

/// Links this near to each other are alike: what is less is rounding of ours.
const SLACK: f64 = 0.95;

fn is_below(now: u64, could: u64) -> bool {
    (now as f64) < could as f64 * SLACK
}

pub(super) fn trained_down(tree: &StackTree, layer: &Layer) -> Option<Advice> {
    let (wire, is_pci) = match &layer.what {
        What::Disk(disk) => (disk.wire.as_ref()?, false),
        What::Controller(found) => (found.wire.as_ref()?, true),
        _ => return None,
    };
    let capable = wire.capable.as_ref()?;
    let (now, could) = (wire.now.bytes_per_second, capable.bytes_per_second);
    if !is_below(now, could) {
        return None;
    }
    // The other end of a PCIe link is the port above. It has the same link.
    let port = if is_pci { tree.below(layer).find_map(port_wire) } else { None };
    let ends = port.and_then(|port| port.capable.as_ref());
    let slot = ends.filter(|end| is_below(end.bytes_per_second, could));
    // A port is seldom made for less than what is in it: then that one is told.
    if is_pci
        && tree.above(layer).any(|device| port_wire(device).is_some_and(|w| w.now == wire.now))
    {
        return None;
    }
    let advice = Advice::new(Code::LinkBelowCapability, &layer.id)
        // Of SATA and SAS the kernel shows what the port can do, not what the drive can.
        .with("pci", is_pci)
        .with("now", &wire.now.name)
        .with("capable", &capable.name)
        .with("rate", Number::bandwidth(now as f64))
        .with("could", Number::bandwidth(could as f64))
        .with_some("slot", slot.map(|end| &end.name));
    Some(advice.command(match is_pci {
        true => format!("lspci -vv -s {}", quoted(&layer.id)),
        false => "dmesg | grep -iE 'link|speed'".to_owned(),
    }))
}

fn port_wire(layer: &Layer) -> Option<&Wire> {
    match &layer.what {
        What::Controller(found) => found.wire.as_ref(),
        _ => None,
    }
}

pub(super) fn unequal_legs(tree: &StackTree, layer: &Layer) -> Option<Advice> {
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
    let speeds = || legs.iter().map(|(_, _, link)| link.bytes_per_second);
    let (slowest, fastest) = (speeds().min()?, speeds().max()?);
    let slow = legs.iter().filter(|(_, _, link)| is_below(link.bytes_per_second, fastest));
    let slow: Vec<String> = slow.map(|(leg, _, _)| leg.id.clone()).collect();
    let each = legs.iter().map(|(leg, at, link)| {
        let (leg, link) = (&leg.id, &link.name);
        Value::record([("leg", leg.into()), ("link", link.into()), ("at", (*at).into())])
    });
    (!slow.is_empty()).then(|| {
        Advice::new(Code::UnequalLegs, &layer.id)
            .with("several", slow.len() > 1)
            .with("slow", slow.as_slice())
            .with("slowest", Number::bandwidth(slowest as f64))
            .with("fastest", Number::bandwidth(fastest as f64))
            .with("legs", each.collect::<Vec<_>>())
    })
}

#[cfg(test)]
mod tests {
    use super::super::example::{controller, disk, disk_with, md, told, tree, volume, wire};
    use super::*;

    fn in_slot(device: (u64, u64), port: (u64, u64)) -> Vec<Advice> {
        let card = controller("01:00.0", &["00:01.0"], Some(wire(device.0, device.1)));
        let port = controller("00:01.0", &[], Some(wire(port.0, port.1)));
        told(Code::LinkBelowCapability, &tree(vec![disk("nvme0n1", "01:00.0"), card, port]))
    }

    #[test]
    fn a_card_that_trained_down_is_found_once() {
        let found = in_slot((2000, 8000), (2000, 8000));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].layer, "01:00.0");
        assert_eq!(found[0].finding.value("slot"), None);
    }

    #[test]
    fn a_slot_that_is_too_narrow_is_told() {
        let found = in_slot((4000, 8000), (4000, 4000));
        assert_eq!(found[0].finding.value("slot"), Some(&"link of 4000".into()), "{found:?}");
    }

    #[test]
    fn full_speed_is_left_alone() {
        assert!(in_slot((8000, 8000), (8000, 16000)).is_empty());
    }

    #[test]
    fn a_disk_at_half_speed_is_found() {
        let with = |now| {
            let slow = disk_with("sda", |disk, _| disk.wire = Some(wire(now, 600)));
            told(Code::LinkBelowCapability, &tree(vec![slow])).len()
        };
        assert_eq!((with(300), with(600)), (1, 0));
    }

    #[test]
    fn of_a_drive_only_what_its_port_can_do_is_claimed() {
        let slow = disk_with("sda", |disk, _| disk.wire = Some(wire(300, 600)));
        let found = told(Code::LinkBelowCapability, &tree(vec![slow]));
        assert!(found[0].sentences().iter().all(|text| !text.contains("device")), "{found:?}");
    }

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
        told(Code::UnequalLegs, &tree(layers))
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
