//! What is found on machines that are not here: captured trees of procfs and sysfs.

use crate::common::Machine;
use stack::{
    Access, BlockFacts, BlockKind, Consent, DeviceUse, Ledger, Nature, Own, Place, Subject, Target,
    UnknownCounters, difference, gather,
};
use units::Bytes;

fn chain(target: &Target) -> Vec<(&str, u32)> {
    target.devices.iter().map(|d| (d.name.as_str(), d.depth)).collect()
}

const WRITE: Access = Access::Write { size: Bytes::mib(1), also: Bytes::ZERO };

fn block_facts(machine: &Machine, path: &str, number: &str, own: &Own) -> BlockFacts {
    let target = machine.device(path, number);
    let facts = gather(&machine.host, &target, WRITE, &Consent::default(), own);
    let Subject::Block(facts) = facts.subject else { panic!("{facts:?}") };
    *facts
}

fn uses(list: &[DeviceUse]) -> Vec<(&str, &str)> {
    list.iter().map(|u| (u.device.as_str(), u.by.as_str())).collect()
}

#[test]
fn xfs_on_lvm_on_raid_is_seen_down_to_the_disks() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let target = machine.file("/srv/my db/test.dat");
    assert_eq!(chain(&target), [("dm-0", 0), ("md127", 1), ("sdb", 2), ("sdc", 2)]);
    assert_eq!(target.mount.as_ref().unwrap().file_system, "xfs");
    assert!(target.natures.is_empty() && target.unseen.is_empty(), "{target:?}");
    let BlockKind::Mapper { name, uuid } = &target.devices[0].kind else { panic!() };
    assert!(name == "vg-my--db" && uuid.starts_with("LVM-"));
    assert_eq!(target.devices[1].kind, BlockKind::Md { level: "raid1".to_owned() });
    assert_eq!(target.devices[0].size, Bytes::new(2_097_152_000 * 512));
}

#[test]
fn a_partition_has_its_disk_below_and_its_disks_queue() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let target = machine.file("/home/x");
    assert_eq!(chain(&target), [("sda1", 0), ("sda", 1)]);
    let [partition, disk] = &target.devices[..] else { panic!() };
    assert_eq!(partition.kind, BlockKind::Partition { of: "sda".to_owned() });
    assert_eq!(disk.model.as_deref(), Some("WDC WD1003FBYX-0"));
    for device in [partition, disk] {
        assert_eq!(device.logical_sector, Some(Bytes::new(512)));
        assert_eq!(device.physical_sector, Some(Bytes::new(4096)));
        assert_eq!(device.rotational, Some(true));
        assert_eq!(device.queue_depth, Some(64));
        assert_eq!(device.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!(device.write_cache.as_deref(), Some("write back"));
        assert_eq!(device.io_poll, Some(false));
    }
}

#[test]
fn encryption_and_large_sectors_are_seen() {
    let machine = Machine::unpack("nvme-4k-crypt");
    let target = machine.file("/data/x");
    assert_eq!(chain(&target), [("dm-0", 0), ("nvme0n1p1", 1), ("nvme0n1", 2)]);
    assert_eq!(target.natures, [Nature::Encrypted { device: "dm-0".to_owned() }]);
    assert_eq!(target.devices[2].io_poll, Some(true));
    // The file is not there, so the kernel cannot be asked.
    let alignment = stack::direct_alignment(&target.path.resolved, &target.devices);
    assert_eq!(alignment.unit(), Some(Bytes::new(4096)));
}

#[test]
fn memory_network_overlay_and_fuse_are_named() {
    let machine = Machine::unpack("nvme-4k-crypt");
    let remarks = |path: &str| machine.file(path).remarks().join("; ");
    assert_eq!(remarks("/mem/x"), "tmpfs: memory, no device");
    assert!(remarks("/nfs/x").starts_with("nfs4: on another machine (filer:/vol/1)"));
    let sshfs = remarks("/sshfs/x");
    assert!(sshfs.contains("me@far:/home") && sshfs.contains("FUSE"), "{sshfs}");
    let merged = machine.file("/merged/x");
    assert_eq!(chain(&merged), [("dm-0", 0), ("nvme0n1p1", 1), ("nvme0n1", 2)]);
    assert!(merged.remarks().join("; ").contains("writes go to /data/up on ext4"));
    // The path of a container's own upper directory means something outside.
    let container = machine.file("/x");
    assert!(container.devices.is_empty());
    assert!(container.remarks().join("; ").contains("not seen: the device under the overlay"));
}

#[test]
fn copy_on_write_and_compression_are_named_and_all_members_seen() {
    let machine = Machine::unpack("btrfs-zram-loop");
    let pool = machine.file("/pool/x");
    assert_eq!(chain(&pool), [("vda", 0), ("vdb", 0)]);
    assert_eq!(
        pool.natures,
        [
            Nature::CopyOnWrite { name: "btrfs".to_owned() },
            Nature::Compressed { how: "mount option compress=zstd:3".to_owned() },
        ]
    );
    let other = machine.file("/other/x");
    assert_eq!(chain(&other), [("vdc", 0)]);
    assert_eq!(other.natures, [Nature::CopyOnWrite { name: "btrfs".to_owned() }]);
    assert!(other.unseen[0].contains("whether btrfs on vdc has other devices"));
    let tank = machine.file("/tank/x");
    assert!(tank.devices.is_empty() && tank.unseen[0].contains("zfs tank/db"));
    assert!(tank.natures.contains(&Nature::PerhapsCompressed { name: "zfs".to_owned() }));
    assert!(!machine.file("/lost/x").unseen.is_empty());
    assert_eq!(machine.file("/fat/x").natures, [Nature::Fuse { name: "fuseblk".to_owned() }]);
}

#[test]
fn loop_devices_are_followed_to_the_disks_of_their_file() {
    let machine = Machine::unpack("btrfs-zram-loop");
    let inner = machine.file("/inner/x");
    assert_eq!(chain(&inner), [("loop0", 0), ("vda", 1), ("vdb", 1)]);
    let under: Vec<bool> = inner.devices.iter().map(|d| d.under_file).collect();
    assert_eq!(under, [false, true, true]);
    let idle = machine.device("/dev/loop1", "7:1");
    assert_eq!(idle.devices[0].kind, BlockKind::Loop { file: None });
    assert_eq!(idle.path.size, Bytes::ZERO);
}

#[test]
fn zram_is_memory_and_compressed() {
    let machine = Machine::unpack("btrfs-zram-loop");
    let target = machine.file("/z/x");
    assert!(target.is_memory());
    assert!(target.natures.contains(&Nature::Compressed { how: "zram".to_owned() }));
}

#[test]
fn a_device_that_sysfs_does_not_show_is_not_seen_and_never_blank() {
    let machine = Machine::unpack("btrfs-zram-loop");
    let target = machine.device("/dev/odd", "99:9");
    assert!(target.unseen[0].contains("99:9"));
    let facts = block_facts(&machine, "/dev/odd", "99:9", &Own::default());
    assert!(facts.signatures.is_err());
}

#[test]
fn the_ledger_tells_what_it_does_not_know() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let target = machine.file("/srv/my db/x");
    let ledger = Ledger::new(&machine.host, &target.devices);
    let before = ledger.snapshot();
    machine.write("/sys/class/block/dm-0/stat", "3 0 24 0 1 0 8 0 0 0 0 0 0 0 0 0 0");
    machine.remove("/sys/class/block/sdc/stat");
    let found = difference(&before, &ledger.snapshot());
    let entries: Vec<_> =
        found.entries.iter().map(|e| (&e.device[..], e.depth, e.read_bytes)).collect();
    // md has no `iostats`: it always counts.
    assert_eq!(entries, [("dm-0", 0, 16 * 512), ("md127", 1, 0)]);
    assert_eq!(
        found.unknown,
        [
            ("sdb".to_owned(), UnknownCounters::NotCounted),
            ("sdc".to_owned(), UnknownCounters::Gone)
        ]
    );
}

#[test]
fn the_machine_is_named() {
    let machine = stack::machine(&Machine::unpack("raid-lvm-xfs").host);
    assert_eq!((&machine.host[..], &machine.kernel[..]), ("db7", "6.1.0-18-amd64"));
    assert_eq!(machine.processor, "Intel(R) Xeon(R) E-2288G CPU @ 3.70GHz");
    assert_eq!((machine.processors, machine.memory_bytes), (9, 65_821_000 * 1024));
}

#[test]
fn a_raid_member_is_held_and_what_is_on_top_is_mounted() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let facts = block_facts(&machine, "/dev/sdb", "8:16", &Own::default());
    assert_eq!(uses(&facts.holders), [("sdb", "md127"), ("md127", "dm-0")]);
    assert_eq!(uses(&facts.mounts), [("dm-0", "/srv/my db")]);
    assert!(facts.system.is_empty() && facts.system_unseen.is_empty(), "{facts:?}");
}

#[test]
fn every_device_of_the_systems_disk_is_the_systems() {
    let machine = Machine::unpack("raid-lvm-xfs");
    for (path, number) in [("/dev/sda", "8:0"), ("/dev/sda1", "8:1")] {
        let facts = block_facts(&machine, path, number, &Own::default());
        assert_eq!(uses(&facts.system)[0], ("sda1", "/, /boot, /boot/efi, /usr, /var"), "{path}");
    }
    assert!(block_facts(&machine, "/dev/sdd", "8:48", &Own::default()).system.is_empty());
}

#[test]
fn the_disks_under_store_and_program_are_the_systems() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let store = Own { store: Some("/srv/my db/store.db".into()), program: None };
    let facts = block_facts(&machine, "/dev/sdc", "8:32", &store);
    assert_eq!(uses(&facts.system), [("dm-0", "the store of results (/srv/my db/store.db)")]);
    let program = Own { program: Some("/srv/my db/plimsoll".into()), store: None };
    assert_eq!(block_facts(&machine, "/dev/sdc", "8:32", &program).system.len(), 1);
}

#[test]
fn a_system_on_a_loop_file_owns_the_disk_under_the_file() {
    let machine = Machine::unpack("btrfs-zram-loop");
    let own = Own { store: Some("/inner/store.db".into()), program: None };
    assert_eq!(block_facts(&machine, "/dev/vdb", "252:16", &own).system.len(), 1);
    // The loop device itself does not make its file's disk a target.
    let loop0 = block_facts(&machine, "/dev/loop0", "7:0", &Own::default());
    assert!(loop0.system.is_empty(), "{loop0:?}");
}

#[test]
fn swap_on_a_partition_is_the_disks_and_that_partitions_only() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let swaps =
        |path: &str, number: &str| block_facts(&machine, path, number, &Own::default()).swaps;
    assert_eq!(swaps("/dev/sde", "8:64"), ["sde1"]);
    assert_eq!(swaps("/dev/sde1", "8:65"), ["sde1"]);
    assert_eq!(swaps("/dev/sde2", "8:66"), [""; 0]);
    let disk = block_facts(&machine, "/dev/sde", "8:64", &Own::default());
    assert_eq!(disk.partitions, ["sde1", "sde2"]);
}

#[test]
fn members_of_mounted_btrfs_are_held_and_zfs_pools_are_noticed() {
    let machine = Machine::unpack("btrfs-zram-loop");
    let facts = block_facts(&machine, "/dev/vdb", "252:16", &Own::default());
    assert!(uses(&facts.holders)[0].1.starts_with("the mounted btrfs 6f1b7e0c"), "{facts:?}");
    assert!(facts.zfs_pools);
    let facts = block_facts(&machine, "/dev/vda", "252:0", &Own::default());
    assert_eq!(uses(&facts.mounts), [("vda", "/pool")]);
}

#[test]
fn a_container_does_not_know_the_systems_disk() {
    let machine = Machine::unpack("nvme-4k-crypt");
    let facts = block_facts(&machine, "/dev/nvme0n1", "259:0", &Own::default());
    assert_eq!(facts.system_unseen.len(), 1, "{facts:?}");
    assert_eq!(uses(&facts.mounts), [("dm-0", "/data")]);
}

#[test]
fn a_root_without_a_mount_or_a_device_is_an_unknown_root() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let unseen = |mounts: &str| {
        machine.write("/proc/self/mountinfo", mounts);
        block_facts(&machine, "/dev/sdd", "8:48", &Own::default()).system_unseen
    };
    // As a chroot sees it.
    assert_eq!(unseen("22 27 0:21 / /proc rw - proc proc rw")[0], "the mount of /");
    assert_eq!(unseen("")[0], "the mount table");
    let fuse = unseen("22 27 0:21 / / rw - fuse.fuse-overlayfs fuse-overlayfs rw");
    assert_eq!(fuse[0], "the device under fuse.fuse-overlayfs (/)");
    // Machines without a disk of their own.
    assert_eq!(unseen("22 27 0:21 / / rw - nfs4 filer:/roots/db7 rw"), [""; 0]);
    assert_eq!(unseen("22 27 0:21 / / rw - tmpfs tmpfs rw"), [""; 0]);
}

#[test]
fn swap_files_and_loop_files_are_known_by_their_names() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let file = |machine: &Machine, path: &str| {
        let target = machine.file(path);
        let facts = gather(&machine.host, &target, WRITE, &Consent::default(), &Own::default());
        let Subject::File(facts) = facts.subject else { panic!() };
        *facts
    };
    assert!(file(&machine, "/srv/my swap").swap);
    assert!(!file(&machine, "/srv/my").swap);
    let machine = Machine::unpack("btrfs-zram-loop");
    assert_eq!(file(&machine, "/pool/disk.img").loops, ["loop0"]);
}

fn place(machine: &Machine, target: &Target) -> Place {
    let facts = gather(&machine.host, target, WRITE, &Consent::default(), &Own::default());
    match facts.subject {
        Subject::File(file) => file.place,
        Subject::NewFile(place) | Subject::Directory(place) => place,
        other => panic!("{other:?}"),
    }
}

#[test]
fn kernel_file_systems_dev_and_read_only_mounts_are_no_places() {
    let machine = Machine::unpack("raid-lvm-xfs");
    let missing = |path: &str| machine.target(path, stack::PathKind::Missing);
    assert_eq!(place(&machine, &missing("/proc/x")).not_storage.as_deref(), Some("proc"));
    assert_eq!(place(&machine, &missing("/dev/sdz")).not_storage.as_deref(), Some("/dev"));
    assert_eq!(place(&machine, &missing("/device")).not_storage, None);
    let machine = Machine::unpack("nvme-4k-crypt");
    let nfs = place(&machine, &machine.target("/nfs/x", stack::PathKind::Missing));
    assert!(nfs.read_only);
}

#[test]
fn tmpfs_has_no_more_room_than_memory() {
    let machine = Machine::unpack("nvme-4k-crypt");
    machine.write("/proc/meminfo", "MemTotal: 4096 kB\nMemAvailable: 1024 kB");
    let target = machine.target("/mem/x", stack::PathKind::Missing);
    assert_eq!(place(&machine, &target).space.unwrap().free, Bytes::mib(1));
}

#[test]
fn parts_of_a_disk_that_do_not_overlap_share_nothing() {
    let machine = Machine::unpack("loops-over-partitions");
    for (one, other, wanted) in [
        ("loop1", "sda2", false),
        ("loop2", "sda2", false),
        ("loop2", "loop3", false),
        ("loop1", "loop2", true),
        ("loop1", "loop3", true),
        ("loop1", "sda1", true),
        ("loop1", "sda", true),
    ] {
        let seen =
            [(one, other), (other, one)].map(|(a, b)| stack::share_bytes(&machine.host, a, b));
        assert_eq!(seen, [wanted; 2], "{one} and {other}, both ways");
    }
    // That another has the other half is no use of this one; that somebody has all of it is.
    let facts = block_facts(&machine, "/dev/loop2", "7:2", &Own::default());
    assert_eq!(uses(&facts.holders), [("sda1", "loop1")]);
}
