//! What the links on the way to a device can carry.

use crate::common::Machine;

fn link(machine: &Machine, number: &str) -> Option<(String, u64)> {
    let target = machine.device("/dev/x", number);
    let link = stack::slowest_link(&machine.host, &target)?;
    Some((link.name, link.bytes_per_second / 1_000_000))
}

fn is(found: Option<(String, u64)>, name: &str, megabytes: u64) {
    assert_eq!(found, Some((name.to_owned(), megabytes)));
}

#[test]
fn the_slowest_link_on_the_way_is_named() {
    let machine = Machine::unpack("links");
    // 8 GT/s, 128b/130b, four lanes: 3938 MB/s; packets take a twentieth of it.
    is(link(&machine, "259:0"), "PCIe 3.0 x4 of nvme0n1", 3762);
    is(link(&machine, "259:1"), "PCIe 3.0 x4 of nvme0n1", 3762);
    is(link(&machine, "259:2"), "PCIe 4.0 x4 of nvme1", 7524);
    is(link(&machine, "8:0"), "SATA 6.0 Gb/s of sda", 600);
    is(link(&machine, "8:16"), "SATA 3.0 Gb/s of sdb", 300);
    is(link(&machine, "8:32"), "SAS 6.0 Gb/s of sdc", 600);
    is(link(&machine, "8:64"), "USB 480 Mb/s of sde", 53);
}

#[test]
fn members_add_up_until_a_link_they_share_is_slower() {
    let machine = Machine::unpack("links");
    is(link(&machine, "9:0"), "SATA 6.0 Gb/s of sda and SATA 3.0 Gb/s of sdb", 900);
    // Two disks of 600 MB/s, a port of 1200, and a controller in an old slot of 955.
    is(link(&machine, "9:1"), "PCIe 1.0 x4 of 0000:04:00.0", 955);
    let slot = "/sys/devices/pci0000:00/0000:00:1c.0/0000:04:00.0/current_link_width";
    machine.write(slot, "8");
    is(link(&machine, "9:1"), "SAS 6.0 Gb/s of sdc and SAS 6.0 Gb/s of sdd", 1200);
    machine.remove(
        "/sys/devices/pci0000:00/0000:00:1c.0/0000:04:00.0/host2/port-2:0/phy-2:1/sas_phy/phy-2:1/negotiated_linkrate",
    );
    is(link(&machine, "9:1"), "SAS 6.0 Gb/s of port-2:0", 600);
}

#[test]
fn what_is_virtual_or_emulated_has_no_link() {
    let machine = Machine::unpack("links");
    for (number, what) in [
        ("252:0", "virtio"),
        ("259:3", "an emulated drive"),
        ("253:0", "a volume with a virtio member"),
        ("251:0", "zram"),
    ] {
        assert_eq!(link(&machine, number), None, "{what}");
    }
    assert_eq!(stack::slowest_link(&machine.host, &machine.file("/mem/x")), None);
    let file = stack::slowest_link(&machine.host, &machine.file("/srv/x"));
    assert_eq!(file.unwrap().name, "PCIe 3.0 x4 of nvme0n1");
}
