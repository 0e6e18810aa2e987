//! Small stacks for the tests of advice.

use finding::Code;
use record::Link;
use record::stack::{
    Controller, Disk, Extent, FileSystem, Layer, Mapper, Md, MdMember, Partition, Queue,
    STACK_VERSION, Segment, StackHost, StackTarget, StackTree, What, Wire,
};

use super::{Advice, Use, advise};

/// The advice of one kind on a stack.
pub fn told(code: Code, tree: &StackTree) -> Vec<Advice> {
    let mut found = advise(tree, Use::default());
    found.retain(|advice| advice.finding.code == code);
    found
}

pub fn layer(id: &str, below: &[&str], what: What) -> Layer {
    let queue = match what {
        What::FileSystem(_) | What::Partition(_) | What::Controller(_) => None,
        _ => Some(queue()),
    };
    let below = below.iter().map(|&id| id.to_owned()).collect();
    Layer { id: id.into(), below, size_bytes: Some(1 << 40), what, queue }
}

pub fn queue() -> Queue {
    Queue {
        logical_sector_bytes: Some(512),
        physical_sector_bytes: Some(4096),
        rotational: Some(false),
        scheduler: Some("none".into()),
        schedulers: ["none", "mq-deadline", "bfq"].map(str::to_owned).to_vec(),
        requests: Some(256),
        read_ahead_bytes: Some(1 << 20),
        request_bytes_max: Some(1 << 20),
        request_bytes_hardware_max: Some(1 << 20),
        write_cache: Some("write back".into()),
        ..Queue::default()
    }
}

pub fn tree(layers: Vec<Layer>) -> StackTree {
    let on = layers.first().map(|layer| layer.id.clone()).into_iter().collect();
    let target = StackTarget { given: "/db".into(), resolved: "/db".into(), role: None, on };
    StackTree {
        version: STACK_VERSION,
        targets: vec![target],
        layers,
        host: StackHost::default(),
        throttles: vec![],
        unseen: vec![],
    }
}

pub fn fs(kind: &str, on: &str, options: &str) -> Layer {
    let found = FileSystem {
        kind: kind.into(),
        point: "/db".into(),
        source: format!("/dev/{on}"),
        options: options.split(',').map(str::to_owned).collect(),
        block_bytes: Some(4096),
        ..FileSystem::default()
    };
    layer("/db", &[on], What::FileSystem(found))
}

pub fn fs_with_stripe(kind: &str, on: &str, unit: Option<u64>, width: Option<u64>) -> Layer {
    let mut made = fs(kind, on, "rw,noatime");
    if let What::FileSystem(found) = &mut made.what {
        (found.stripe_unit_bytes, found.stripe_width_bytes) = (unit, width);
    }
    made
}

pub fn md(id: &str, level: &str, chunk_kib: u64, members: &[&str]) -> Layer {
    let member = |(slot, name): (usize, &&str)| MdMember {
        layer: (*name).to_owned(),
        slot: Some(slot as u32),
        state: Some("in_sync".into()),
        offset_bytes: Some(128 << 20),
        errors: Some(0),
    };
    let found = Md {
        level: level.into(),
        chunk_bytes: Some(chunk_kib << 10),
        wanted: Some(members.len() as u32),
        missing: Some(0),
        members: members.iter().enumerate().map(member).collect(),
        ..Md::default()
    };
    let mut made = layer(id, members, What::Md(found.clone()));
    if let Some(queue) = &mut made.queue {
        queue.minimum_io_bytes = Some(chunk_kib << 10);
        queue.optimal_io_bytes = found.data_width_bytes();
        queue.read_ahead_bytes = found.data_width_bytes().map(|width| width * 2);
    }
    made
}

/// A striped or linear volume.
pub fn volume(id: &str, chunk_kib: Option<u64>, on: &[(&str, u64)]) -> Layer {
    let extent =
        |&(layer, offset): &(&str, u64)| Extent { layer: layer.into(), offset_bytes: Some(offset) };
    let segment = Segment {
        start_bytes: 0,
        length_bytes: 1 << 40,
        target: if chunk_kib.is_some() { "striped" } else { "linear" }.into(),
        level: None,
        chunk_bytes: chunk_kib.map(|kib| kib << 10),
        on: on.iter().map(extent).collect(),
        health: None,
        sync: None,
    };
    let below: Vec<&str> = on.iter().map(|(layer, _)| *layer).collect();
    let segments = Some(vec![segment]);
    let found = Mapper { name: "vg-db".into(), maker: Some("LVM".into()), segments };
    let mut made = layer(id, &below, What::Mapper(found));
    if let (Some(queue), Some(kib)) = (&mut made.queue, chunk_kib) {
        queue.optimal_io_bytes = Some((kib << 10) * on.len() as u64);
        queue.read_ahead_bytes = Some((kib << 10) * on.len() as u64 * 2);
    }
    made
}

pub fn partition(id: &str, on: &str, start: u64) -> Layer {
    let found = Partition { number: Some(1), start_bytes: Some(start) };
    layer(id, &[on], What::Partition(found))
}

pub fn disk(id: &str, at: &str) -> Layer {
    let found = Disk {
        model: Some("Fast 1".into()),
        firmware: Some("1.0".into()),
        transport: Some("sata".into()),
        queue_depth: Some(32),
        wire: Some(wire(600, 600)),
        ..Disk::default()
    };
    let below: &[&str] = if at.is_empty() { &[] } else { &[at] };
    layer(id, below, What::Disk(found))
}

pub fn disk_with(id: &str, change: impl FnOnce(&mut Disk, &mut Queue)) -> Layer {
    let mut made = disk(id, "");
    if let (What::Disk(found), Some(queue)) = (&mut made.what, &mut made.queue) {
        change(found, queue);
    }
    made
}

/// In MB/s.
pub fn wire(now: u64, capable: u64) -> Wire {
    let link = |mb: u64| Link { name: format!("link of {mb}"), bytes_per_second: mb * 1_000_000 };
    Wire { now: link(now), capable: Some(link(capable)) }
}

pub fn controller(id: &str, below: &[&str], found: Option<Wire>) -> Layer {
    let found = Controller { bus: "pci".into(), wire: found, ..Controller::default() };
    layer(id, below, What::Controller(found))
}

/// Two RAID5 legs under a stripe under xfs, everything as it should be.
pub fn sound() -> StackTree {
    let mut layers = vec![fs_with_stripe("xfs", "dm-0", Some(256 << 10), Some(512 << 10))];
    layers.push(volume("dm-0", Some(256), &[("md0", 1 << 20), ("md1", 1 << 20)]));
    layers.push(md("md0", "raid5", 128, &["sda", "sdb", "sdc"]));
    layers.push(md("md1", "raid5", 128, &["sdd", "sde", "sdf"]));
    layers.extend(["sda", "sdb", "sdc"].map(|id| disk(id, "01:00.0")));
    layers.extend(["sdd", "sde", "sdf"].map(|id| disk(id, "02:00.0")));
    layers.push(controller("01:00.0", &[], Some(wire(4000, 4000))));
    layers.push(controller("02:00.0", &[], Some(wire(4000, 4000))));
    tree(layers)
}

/// One fault of each kind.
pub fn everything_wrong() -> StackTree {
    let mut layers = vec![fs("jfs", "md0p1", "rw,nobarrier")];
    layers.push(partition("md0p1", "md0", 63 * 512));
    layers.push(md("md0", "raid5", 8, &["sda", "sdb", "sdc"]));
    layers.push(disk("sda", "01:00.0"));
    layers.push(disk_with("sdb", |disk, queue| {
        disk.wire = Some(wire(300, 600));
        disk.cache = Some("write back".into());
        disk.queue_depth = Some(1);
        queue.write_cache = Some("write through".into());
        queue.rotational = Some(true);
    }));
    layers.push(disk("sdc", "01:00.0"));
    layers.push(controller("01:00.0", &[], Some(wire(2000, 4000))));
    tree(layers)
}
