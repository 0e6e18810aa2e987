//! A link that runs below what it is made for.

use record::stack::{Layer, StackTree, What, Wire};

use super::{Advice, Use, Weight, quoted};
use crate::words::bandwidth;

/// Losses below this are rounding of ours.
const SLACK: f64 = 0.95;

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    tree.layers.iter().filter_map(|layer| of_layer(tree, layer)).collect()
}

fn is_below(now: u64, could: u64) -> bool {
    (now as f64) < could as f64 * SLACK
}

fn rate(bytes_per_second: u64) -> String {
    bandwidth(bytes_per_second as f64)
}

fn of_layer(tree: &StackTree, layer: &Layer) -> Option<Advice> {
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
    // Of SATA and SAS the kernel shows what the port can do, not what the drive can.
    let (made_for, evidence) = if is_pci {
        ("where it is made for", "its device is made for")
    } else {
        ("at a port made for", "the controller's port is made for")
    };
    let advice = Advice::new(
        Weight::Warning,
        "link-below-capability",
        &layer.id,
        format!("{} {made_for} {}", wire.now.name, capable.name),
    )
    .because(format!("at most {} get through in one direction, of {}", rate(now), rate(could)))
    .seen(format!("the link runs as {}, {evidence} {}", wire.now.name, capable.name));
    let advice = match slot {
        Some(end) => advice.seen(format!("the slot is made for {}", end.name)),
        None => advice,
    };
    Some(if is_pci {
        let what = if slot.is_some() {
            "it needs another slot; which slot has how many lanes stands in the board's manual"
        } else {
            "seat the card anew, look for lanes that the board shares with other slots, and at \
             the link speed in the firmware's set-up"
        };
        advice.command(format!("lspci -vv -s {}", quoted(&layer.id))).mind(what)
    } else {
        advice.command("dmesg | grep -iE 'link|speed'").mind(
            "an older drive is made for no more than that, and then nothing is wrong; else a worn \
             cable or backplane makes a link fall back",
        )
    })
}

fn port_wire(layer: &Layer) -> Option<&Wire> {
    match &layer.what {
        What::Controller(found) => found.wire.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{controller, disk, disk_with, tree, wire};
    use super::*;

    fn in_slot(device: (u64, u64), port: (u64, u64)) -> Vec<Advice> {
        let card = controller("01:00.0", &["00:01.0"], Some(wire(device.0, device.1)));
        let port = controller("00:01.0", &[], Some(wire(port.0, port.1)));
        look(&tree(vec![disk("nvme0n1", "01:00.0"), card, port]), Use::default())
    }

    #[test]
    fn a_card_that_trained_down_is_found_once() {
        let found = in_slot((2000, 8000), (2000, 8000));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].layer, "01:00.0");
        assert!(!found[0].evidence.iter().any(|text| text.contains("slot")));
    }

    #[test]
    fn a_slot_that_is_too_narrow_is_told() {
        let found = in_slot((4000, 8000), (4000, 4000));
        assert!(found[0].evidence[1].contains("the slot is made for link of 4000"), "{found:?}");
    }

    #[test]
    fn full_speed_is_left_alone() {
        assert!(in_slot((8000, 8000), (8000, 16000)).is_empty());
    }

    #[test]
    fn a_disk_at_half_speed_is_found() {
        let with = |now| {
            let slow = disk_with("sda", |disk, _| disk.wire = Some(wire(now, 600)));
            look(&tree(vec![slow]), Use::default()).len()
        };
        assert_eq!((with(300), with(600)), (1, 0));
    }

    #[test]
    fn of_a_drive_only_what_its_port_can_do_is_claimed() {
        let slow = disk_with("sda", |disk, _| disk.wire = Some(wire(300, 600)));
        let found = look(&tree(vec![slow]), Use::default());
        assert_eq!(found[0].finding, "link of 300 at a port made for link of 600");
        assert!(found[0].sentences().iter().all(|text| !text.contains("its device")), "{found:?}");
    }
}
