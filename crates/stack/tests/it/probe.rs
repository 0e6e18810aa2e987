//! Whole stacks of machines that are not here.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use record::StackTree;
use record::stack::{Layer, What};
use stack::{Serials, stack_tree};

use crate::common::Machine;

fn tree(machine: &Machine, path: &str) -> StackTree {
    stack_tree(&machine.host, &[machine.file(path)], Serials::Hashed)
}

fn ids(tree: &StackTree) -> Vec<&str> {
    tree.layers.iter().map(|layer| layer.id.as_str()).collect()
}

fn layer<'a>(tree: &'a StackTree, id: &str) -> &'a Layer {
    tree.layer(id).unwrap_or_else(|| panic!("no layer {id} in {:?}", ids(tree)))
}

/// Every layer comes before those that it stands on, and stands on layers of the tree.
fn is_in_order(tree: &StackTree) {
    for (position, layer) in tree.layers.iter().enumerate() {
        for below in &layer.below {
            let found = tree.layers.iter().position(|other| other.id == *below);
            assert!(found.is_some_and(|found| found > position), "{} over {below}", layer.id);
        }
    }
}

#[test]
fn xfs_on_lvm_on_raid_is_a_tree() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let tree = tree(&machine, "/srv/my db/test.dat");
    is_in_order(&tree);
    assert_eq!(ids(&tree), ["/srv/my db", "dm-0", "md127", "sdb", "sdc"]);
    let What::FileSystem(found) = &layer(&tree, "/srv/my db").what else { panic!() };
    // xfs lists its stripe where it has one.
    assert_eq!((found.stripe_unit_bytes, found.stripe_width_bytes), (Some(0), Some(0)));
    let What::Mapper(found) = &layer(&tree, "dm-0").what else { panic!() };
    assert_eq!((found.maker.as_deref(), &found.segments), (Some("LVM"), &None));
    // The table of device mapper was not captured there.
    assert!(tree.unseen.iter().any(|one| one.what.contains("dm-0")), "{:?}", tree.unseen);
}

#[test]
fn a_drive_in_a_slot_that_is_too_narrow_is_seen() {
    let machine = Machine::unpack("links");
    let tree =
        stack_tree(&machine.host, &[machine.device("/dev/nvme0n1p1", "259:1")], Serials::Hashed);
    is_in_order(&tree);
    assert_eq!(ids(&tree), ["nvme0n1p1", "nvme0n1", "0000:01:00.0", "0000:00:01.0"]);
    let What::Controller(found) = &layer(&tree, "0000:01:00.0").what else { panic!() };
    assert_eq!(found.wire.as_ref().unwrap().now.name, "PCIe 3.0 x4");
}

#[test]
fn all_targets_share_one_tree() {
    let machine = Machine::unpack("links");
    let targets = [machine.device("/dev/md0", "9:0"), machine.device("/dev/dm-0", "253:0")];
    let tree = stack_tree(&machine.host, &targets, Serials::Hashed);
    is_in_order(&tree);
    assert_eq!(tree.targets[0].on, ["md0"]);
    assert_eq!(tree.targets[1].on, ["dm-0"]);
    assert_eq!(ids(&tree).iter().filter(|id| **id == "sda").count(), 1);
    let What::Disk(sdb) = &layer(&tree, "sdb").what else { panic!() };
    assert_eq!(sdb.wire.as_ref().unwrap().now.name, "SATA 3.0 Gb/s");
}

#[test]
fn a_loop_device_stands_on_the_file_system_of_its_file() {
    let machine = Machine::unpack("btrfs-zram-loop");
    let tree = tree(&machine, "/inner/x");
    is_in_order(&tree);
    assert_eq!(ids(&tree)[..5], ["/inner", "loop0", "/pool", "vda", "vdb"]);
}

#[test]
fn what_is_read_is_never_trusted() {
    let machine = Machine::unpack("links");
    let at = |path: &str| machine.host.path(path);
    machine.write("/sys/class/block/sda/device/model", "\u{1b}[2J");
    machine.write("/sys/class/block/sda/queue/scheduler", "");
    fs::write(at("/sys/class/block/sda/queue/scheduler"), vec![b'x'; 8 << 20]).unwrap();
    fs::write(at("/sys/class/block/sda/queue/nr_requests"), "99999999999999999999").unwrap();
    machine.write("/sys/class/block/md0/md/raid_disks", "-1");
    machine.write("/sys/class/block/md0/md/chunk_size", "18446744073709551615");
    // Arrays of each other.
    machine.link("/sys/class/block/md1/slaves/md0", "../../md0");
    machine.link("/sys/class/block/md0/slaves/md1", "../../md1");
    let pipe = at("/sys/class/block/sda/queue/rotational");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let since = Instant::now();
    let found = stack_tree(&machine.host, &[machine.device("/dev/md0", "9:0")], Serials::Hashed);
    assert!(since.elapsed() < Duration::from_secs(5), "it waited");
    let queue = layer(&found, "sda").queue.as_ref().unwrap();
    assert_eq!((queue.rotational, queue.requests), (None, None));
    assert!(queue.scheduler.as_ref().is_none_or(|name| name.len() <= 400));
    assert!(found.layers.len() < 20);
}

#[test]
fn links_of_a_captured_tree_stay_in_it() {
    let machine = Machine::unpack("links");
    machine.link("/sys/class/block/sda/device/model", "/etc/passwd");
    let found = stack_tree(&machine.host, &[machine.device("/dev/sda", "8:0")], Serials::Hashed);
    let What::Disk(disk) = &layer(&found, "sda").what else { panic!() };
    assert_eq!(disk.model, None);
}
