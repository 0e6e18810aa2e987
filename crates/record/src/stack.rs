//! The whole of a stack: every layer between a path and the bus, as far as it can be seen.
//!
//! Layers are a list, and name those that they stand on by id, since two of them may stand on the
//! same one: two partitions of a disk, two legs behind a controller. What is not known is `None`
//! or empty, never a guess.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Link;

/// The version of everything in this module. Raised when a field changes its meaning.
pub const STACK_VERSION: u32 = 1;

/// A stack, from paths down to the bus, and what around it bears on its speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackTree {
    /// [`STACK_VERSION`] when it was written.
    pub version: u32,
    /// What was asked for.
    pub targets: Vec<StackTarget>,
    /// Every layer once, each before those that it stands on.
    pub layers: Vec<Layer>,
    /// The machine around.
    pub host: StackHost,
    /// Limits that the system sets to this process or to the devices.
    pub throttles: Vec<Throttle>,
    /// What could not be seen, and why.
    pub unseen: Vec<Unseen>,
}

/// A path or device that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackTarget {
    /// As the user named it.
    pub given: String,
    /// Absolute, links resolved.
    pub resolved: String,
    /// What it is to a database, where that is known: `data`, `log`.
    pub role: Option<String>,
    /// Ids of the layers that it is on.
    pub on: Vec<String>,
}

/// What could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    /// What: `how volume dm-0 is laid out`.
    pub what: String,
    /// Why, and what would show it.
    pub why: String,
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// Unique in the tree: the mount point of a file system, the kernel's name of a block device,
    /// the address of a controller.
    pub id: String,
    /// Ids of the layers that it stands on, in their order where they have one.
    pub below: Vec<String>,
    /// Bytes, of what has a length.
    pub size_bytes: Option<u64>,
    /// What it is.
    pub what: What,
    /// Limits and settings of its queue, if it is a block device.
    pub queue: Option<Queue>,
}

/// What a layer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "is")]
#[non_exhaustive]
pub enum What {
    /// A mounted file system.
    FileSystem(FileSystem),
    /// A device-mapper device: LVM, encryption, multipath.
    Mapper(Mapper),
    /// An md array.
    Md(Md),
    /// A partition.
    Partition(Partition),
    /// A file as a device.
    Loop(LoopDevice),
    /// A disk, or what presents itself as one.
    Disk(Disk),
    /// A controller, port or bridge between disk and processor.
    Controller(Controller),
    /// Memory of this machine: zram, brd.
    Memory {
        /// Which.
        name: String,
    },
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystem {
    /// `xfs`, `ext4`, `btrfs`, `zfs`, `fuse.sshfs`.
    pub kind: String,
    /// Where it is mounted.
    pub point: String,
    /// What was mounted.
    pub source: String,
    /// Options of mount and file system, as the kernel lists them.
    pub options: Vec<String>,
    /// Its block size.
    pub block_bytes: Option<u64>,
    /// What it takes for the bytes on one member before the next (`sunit`, `stride`); 0 if it was
    /// told that there is no stripe.
    pub stripe_unit_bytes: Option<u64>,
    /// What it takes for a full stripe (`swidth`, `stripe-width`).
    pub stripe_width_bytes: Option<u64>,
    /// What it was made with: `reflink`, `metadata_csum`.
    pub features: Vec<String>,
    /// The device of an external journal, if it has one.
    pub journal: Option<String>,
    /// Its pool, if it keeps several devices itself.
    pub pool: Option<Pool>,
}

/// Devices that a file system keeps together itself: btrfs, zfs, bcachefs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pool {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// `ONLINE`, `DEGRADED`; btrfs: `missing devices`.
    pub state: Option<String>,
    /// How data lies: `raid1`, `raidz2 x 6`.
    pub data: Vec<String>,
    /// How metadata lies, where that can differ.
    pub metadata: Vec<String>,
    /// Devices beside the data: log, cache, spares.
    pub beside: Vec<String>,
    /// Settings that bear on speed, in the pool's own words: `recordsize`.
    pub settings: Vec<Setting>,
}

/// A device-mapper device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mapper {
    /// Name as in `/dev/mapper`.
    pub name: String,
    /// Who made it, by its uuid: `LVM`, `CRYPT`, `mpath`.
    pub maker: Option<String>,
    /// How it is laid out, part after part; `None` where the table cannot be read.
    pub segments: Option<Vec<Segment>>,
}

/// A part of a device-mapper device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// Its first byte on the device.
    pub start_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
    /// What the kernel does with it: `linear`, `striped`, `raid`, `crypt`, `delay`.
    pub target: String,
    /// RAID level of a `raid` target.
    pub level: Option<String>,
    /// Bytes on one member before the next.
    pub chunk_bytes: Option<u64>,
    /// Where it lies, in order.
    pub on: Vec<Extent>,
}

/// A place on a device below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// Id of the layer.
    pub layer: String,
    /// First byte there; `None` where the target does not say one.
    pub offset_bytes: Option<u64>,
}

/// An md array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Md {
    /// `raid0`, `raid10`, `linear`; empty while it is not running.
    pub level: String,
    /// The kernel's number of the layout.
    pub layout: Option<u64>,
    /// Bytes on one member before the next.
    pub chunk_bytes: Option<u64>,
    /// Members that it should have, spares left out.
    pub wanted: Option<u32>,
    /// Members that are missing.
    pub missing: Option<u32>,
    /// Members, by their places; spares last.
    pub members: Vec<MdMember>,
    /// `clean`, `active`, `read-auto`, `inactive`.
    pub state: Option<String>,
    /// `idle`, `resync`, `recover`, `check`, `reshape`.
    pub sync: Option<String>,
    /// `1.2`, `0.90`, `external:imsm`.
    pub metadata: Option<String>,
    /// `none`, `internal`, `file`.
    pub bitmap: Option<String>,
    /// Bytes that one bit of it stands for.
    pub bitmap_chunk_bytes: Option<u64>,
    /// `resync`, `bitmap`, `journal`, `ppl`.
    pub consistency: Option<String>,
    /// RAID5 and 6: pages of cache per member.
    pub stripe_cache_pages: Option<u64>,
    /// RAID5 and 6: extra threads.
    pub threads: Option<u64>,
}

/// A member of an md array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MdMember {
    /// Id of its layer.
    pub layer: String,
    /// Its place; `None` for spares and what failed.
    pub slot: Option<u32>,
    /// `in_sync`, `spare`, `faulty`, `write_mostly`, as the kernel lists them.
    pub state: Option<String>,
    /// Where its data begins.
    pub offset_bytes: Option<u64>,
    /// Read errors that were corrected.
    pub errors: Option<u64>,
}

/// A partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Partition {
    /// Its number.
    pub number: Option<u32>,
    /// Where it begins on its disk.
    pub start_bytes: Option<u64>,
}

/// A file as a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopDevice {
    /// The file; `None` when nothing is attached.
    pub file: Option<String>,
    /// Whether it goes past the page cache of the file's file system.
    pub direct: Option<bool>,
    /// Where in the file it begins.
    pub offset_bytes: Option<u64>,
}

/// A disk, or what presents itself as one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Who made it, as it says.
    pub vendor: Option<String>,
    /// Which.
    pub model: Option<String>,
    /// Version of its firmware.
    pub firmware: Option<String>,
    /// Its number; `#` and 16 hex digits where it is hashed.
    pub serial: Option<String>,
    /// How it is reached: `nvme`, `sata`, `sas`, `usb`, `virtio`, `iscsi`, `fc`.
    pub transport: Option<String>,
    /// The kernel's driver.
    pub driver: Option<String>,
    /// What it is known as, where it is no drive: a cloud's volume, a hypervisor's disk.
    pub known_as: Option<String>,
    /// Limits that are known of such.
    pub known_limits: Vec<String>,
    /// Requests that it takes at a time, on SCSI.
    pub queue_depth: Option<u32>,
    /// Queues that it has.
    pub queues: Option<u32>,
    /// The drive's own word on its write cache, where it is not the kernel's: `write back`.
    pub cache: Option<String>,
    /// Which node of memory it hangs at.
    pub numa_node: Option<u32>,
    /// The last link to it.
    pub wire: Option<Wire>,
}

/// A link: what it does and what it could.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wire {
    /// As it runs.
    pub now: Link,
    /// The most that this end of it is made for; `None` where that is not told.
    pub capable: Option<Link>,
}

/// A controller, port or bridge between disk and processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Controller {
    /// `pci`, `usb`.
    pub bus: String,
    /// Its class: `nvme`, `sata`, `sas`, `raid`, `bridge`, `usb`.
    pub class: Option<String>,
    /// Numbers of maker and device: `144d:a80a`.
    pub device: Option<String>,
    /// The kernel's driver.
    pub driver: Option<String>,
    /// The slot that it is in, if the firmware numbers them.
    pub slot: Option<String>,
    /// Which node of memory it hangs at.
    pub numa_node: Option<u32>,
    /// Its link upwards.
    pub wire: Option<Wire>,
    /// Whether an emulator made it up.
    pub emulated: bool,
}

/// Limits and settings of a block device's queue. A partition has its disk's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// Smallest unit that can be addressed.
    pub logical_sector_bytes: Option<u64>,
    /// Smallest unit written without reading first.
    pub physical_sector_bytes: Option<u64>,
    /// Smallest request without a penalty: of an array, its chunk.
    pub minimum_io_bytes: Option<u64>,
    /// Best request; of an array, its full stripe. 0 where it names none.
    pub optimal_io_bytes: Option<u64>,
    /// How far its beginning is off from a physical sector of the disk; -1 where parts disagree.
    pub alignment_offset_bytes: Option<i64>,
    /// Whether it says that it has turning parts. Virtual disks and USB bridges often lie.
    pub rotational: Option<bool>,
    /// I/O scheduler in force.
    pub scheduler: Option<String>,
    /// Those that could be.
    pub schedulers: Vec<String>,
    /// Requests that the queue holds (`nr_requests`).
    pub requests: Option<u32>,
    /// What the kernel reads ahead.
    pub read_ahead_bytes: Option<u64>,
    /// Largest request that the kernel makes.
    pub request_bytes_max: Option<u64>,
    /// Largest that the device takes.
    pub request_bytes_hardware_max: Option<u64>,
    /// Write cache as the kernel believes it to be: `write back` (it sends flushes) or
    /// `write through` (it sends none).
    pub write_cache: Option<String>,
    /// Whether it takes writes that are on the medium when they are done.
    pub fua: Option<bool>,
    /// Largest discard; 0 where there is none.
    pub discard_bytes_max: Option<u64>,
    /// Unit of discards.
    pub discard_unit_bytes: Option<u64>,
    /// Whether completions can be polled for.
    pub io_poll: Option<bool>,
    /// Whether the kernel merges neighbours: 0 yes, 1 only simple ones, 2 no.
    pub no_merges: Option<u32>,
    /// Target of the kernel's brake on writes; 0 when it is off.
    pub write_brake_ns: Option<u64>,
    /// `none`, `host-aware`, `host-managed`.
    pub zoned: Option<String>,
    /// Whether it refuses writes.
    pub read_only: bool,
}

/// The machine around a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackHost {
    /// As `uname -r` says.
    pub kernel: Option<String>,
    /// Maker and product, as the firmware says.
    pub product: Option<String>,
    /// What it runs in, if it is no machine of its own: `KVM`, `User-Mode Linux`, `container`.
    pub within: Option<String>,
    /// Nodes of memory.
    pub numa_nodes: Option<u32>,
    /// How the processors' clock is set, each word once: `performance`, `powersave`.
    pub governors: Vec<String>,
    /// Words of the kernel's command line on mitigations: `mitigations=off`.
    pub mitigations: Vec<String>,
    /// Faults of the processor that are not mitigated, or are at a price.
    pub vulnerabilities: Vec<Setting>,
    /// Settings of the page cache: `vm.dirty_ratio`.
    pub settings: Vec<Setting>,
}

/// Something with a name and a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// What is set.
    pub name: String,
    /// To what.
    pub value: String,
}

/// A limit that the system sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Throttle {
    /// The control group, as a path from the top one.
    pub group: String,
    /// Id of the device, or its number where the tree does not have it.
    pub device: String,
    /// `reads`, `writes`, `bytes read`, `bytes written`.
    pub of: String,
    /// How many of them a second.
    pub per_second: u64,
}

impl StackTree {
    /// A layer by its id.
    pub fn layer(&self, id: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.id == id)
    }

    /// The layers that a layer stands on, as far as the tree has them.
    pub fn below<'a>(&'a self, layer: &'a Layer) -> impl Iterator<Item = &'a Layer> {
        layer.below.iter().filter_map(|id| self.layer(id))
    }

    /// The layers that stand on a layer.
    pub fn above<'a>(&'a self, layer: &'a Layer) -> impl Iterator<Item = &'a Layer> {
        self.layers.iter().filter(|other| other.below.contains(&layer.id))
    }

    /// A layer and all below it, each once, itself first. Ends also where layers stand on each
    /// other in a circle, which no kernel builds but a file may say.
    pub fn under<'a>(&'a self, layer: &'a Layer) -> Vec<&'a Layer> {
        let mut found = vec![layer];
        let mut next = 0;
        while let Some(&here) = found.get(next) {
            next += 1;
            for below in self.below(here) {
                if !found.iter().any(|known| known.id == below.id) {
                    found.push(below);
                }
            }
        }
        found
    }
}

impl Layer {
    /// One word for its kind: `file system`, `md`, `disk`.
    pub fn kind(&self) -> &'static str {
        match &self.what {
            What::FileSystem(_) => "file system",
            What::Mapper(_) => "device mapper",
            What::Md(_) => "md",
            What::Partition(_) => "partition",
            What::Loop(_) => "loop",
            What::Disk(_) => "disk",
            What::Controller(_) => "controller",
            What::Memory { .. } => "memory",
        }
    }
}

impl Md {
    /// Members that hold data of a stripe, parity and copies left out; `None` where the level is
    /// not known or has no stripe.
    pub fn data_members(&self) -> Option<u32> {
        let members = self.wanted?;
        match self.level.as_str() {
            "raid0" => Some(members),
            "raid4" | "raid5" => members.checked_sub(1),
            "raid6" => members.checked_sub(2),
            "raid10" => {
                // The lowest byte: near copies; the next: far copies.
                let layout = self.layout.unwrap_or(0x102);
                let copies = (layout & 0xff).max(1) * ((layout >> 8) & 0xff).max(1);
                // Three members with two copies have no stripe of whole members.
                let whole = u64::from(members).is_multiple_of(copies);
                u32::try_from(u64::from(members) / copies).ok().filter(|_| whole)
            }
            _ => None,
        }
        .filter(|&members| members > 0)
    }

    /// Bytes of data in a full stripe.
    pub fn data_width_bytes(&self) -> Option<u64> {
        self.chunk_bytes.filter(|&chunk| chunk > 0)?.checked_mul(self.data_members()?.into())
    }

    /// Whether a member is missing or being filled.
    pub fn is_degraded(&self) -> bool {
        self.missing.is_some_and(|missing| missing > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn md(level: &str, wanted: u32, layout: Option<u64>) -> Md {
        let chunk_bytes = Some(131_072);
        Md { level: level.into(), wanted: Some(wanted), layout, chunk_bytes, ..Md::default() }
    }

    #[test]
    fn data_width_is_chunk_times_data_members() {
        assert_eq!(md("raid6", 6, None).data_width_bytes(), Some(4 * 131_072));
        assert_eq!(md("raid5", 3, None).data_width_bytes(), Some(2 * 131_072));
        assert_eq!(md("raid0", 8, None).data_members(), Some(8));
        assert_eq!(md("raid10", 4, Some(0x102)).data_members(), Some(2));
        assert_eq!(md("raid10", 6, Some(0x103)).data_members(), Some(2));
        assert_eq!(md("raid10", 3, Some(0x102)).data_members(), None);
        assert_eq!(md("raid1", 2, None).data_members(), None);
        assert_eq!(md("raid6", 1, None).data_members(), None);
        let huge = Md { chunk_bytes: Some(u64::MAX), ..md("raid0", u32::MAX, None) };
        assert_eq!(huge.data_width_bytes(), None);
        assert_eq!(md("raid10", 4, Some(u64::MAX)).data_members(), None);
    }

    #[test]
    fn a_circle_ends() {
        let layer = |id: &str, below: &str| Layer {
            id: id.into(),
            below: vec![below.into()],
            size_bytes: None,
            what: What::Md(Md::default()),
            queue: None,
        };
        let tree = StackTree {
            version: STACK_VERSION,
            targets: vec![],
            layers: vec![layer("a", "b"), layer("b", "a")],
            host: StackHost::default(),
            throttles: vec![],
            unseen: vec![],
        };
        assert_eq!(tree.under(&tree.layers[0]).len(), 2);
    }
}
