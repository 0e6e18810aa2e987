//! A link that runs below what it is made for.

use finding::{Code, Number};
use record::stack::{Layer, StackTree, What, Wire};

use super::{Advice, Use, quoted};

/// Losses below this are rounding of ours.
const SLACK: f64 = 0.95;

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    tree.layers.iter().filter_map(|layer| of_layer(tree, layer)).collect()
}

fn is_below(now: u64, could: u64) -> bool {
    (now as f64) < could as f64 * SLACK
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
            look(&tree(vec![slow]), Use::default()).len()
        };
        assert_eq!((with(300), with(600)), (1, 0));
    }

    #[test]
    fn of_a_drive_only_what_its_port_can_do_is_claimed() {
        let slow = disk_with("sda", |disk, _| disk.wire = Some(wire(300, 600)));
        let found = look(&tree(vec![slow]), Use::default());
        let said = found[0].finding.text();
        assert_eq!(said, "sda: the link runs as link of 300, and its port supports link of 600.");
        assert!(found[0].sentences().iter().all(|text| !text.contains("device")), "{found:?}");
    }
}
