//! The whole of a stack: every layer between a path and the bus, as far as it can be seen.
//!
//! Layers are a list, and name those that they stand on by id, since two of them may stand on the
//! same one: two partitions of a disk, two legs behind a controller. What is not known is `None`
//! or empty, never a guess.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Bytes;

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

const NETWORK: [&str; 22] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "ceph",
    "9p",
    "afs",
    "coda",
    "ncpfs",
    "lustre",
    "gpfs",
    "beegfs",
    "pvfs2",
    "orangefs",
    "glusterfs",
    "virtiofs",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.ceph",
    "fuse.s3fs",
    "fuse.rclone",
];

/// Whether the data of a file system of that type are on other machines.
pub fn is_network(kind: &str) -> bool {
    NETWORK.contains(&kind)
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
    /// Of a `raid` target: a letter a member, `A` in step, `a` not yet, `D` failed, `-` missing.
    pub health: Option<String>,
    /// Of a `raid` target: `idle`, `resync`, `recover`, `check`, `reshape`.
    pub sync: Option<String>,
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

/// How an array stands that is not whole and at rest.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Members are missing, and nothing fills others in their place.
    Degraded,
    /// A member is being filled.
    Rebuilding,
    /// All members are there, and the array reads or writes all of them beside the load: a first
    /// resync, a check, a reshape.
    Busy,
}

impl Condition {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::Rebuilding => "rebuilding",
            Self::Busy => "busy with itself",
        }
    }
}

/// An array that is not whole and at rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unwell {
    /// Id of the layer.
    pub layer: String,
    /// How it stands.
    pub condition: Condition,
    /// In words, without the layer: `lacks 1 of 4 members`.
    pub how: String,
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

    /// Arrays that are not whole and at rest: what is measured then is the speed of that state.
    pub fn unwell(&self) -> Vec<Unwell> {
        let found = self.layers.iter().filter_map(|layer| {
            let (condition, how) = match &layer.what {
                What::Md(md) => md.unwell()?,
                What::Mapper(mapper) => mapper.unwell()?,
                What::FileSystem(FileSystem { pool: Some(pool), .. }) => pool.unwell()?,
                _ => return None,
            };
            Some(Unwell { layer: layer.id.clone(), condition, how })
        });
        found.collect()
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
    /// Its stripes; `None` where the level is not known or has no stripe.
    pub fn stripes(&self) -> Option<layout::Seen> {
        let copies = self.layout.map(layout::seen::copies);
        layout::Seen::new(&self.level, self.wanted?, Bytes::new(self.chunk_bytes?), copies)
    }

    /// Bytes of data in a full stripe.
    pub fn data_width_bytes(&self) -> Option<u64> {
        self.stripes().map(|seen| seen.geometry().width().get())
    }

    /// Whether a member is missing or being filled.
    pub fn is_degraded(&self) -> bool {
        self.missing.is_some_and(|missing| missing > 0)
    }

    fn unwell(&self) -> Option<(Condition, String)> {
        let missing = self.missing.unwrap_or(0);
        let of = self.wanted.map(|n| format!(" of {n}")).unwrap_or_default();
        under_way(self.sync.as_deref(), missing, &of)
    }
}

/// What is told of an array that misses some members and does something.
fn under_way(sync: Option<&str>, missing: u32, of: &str) -> Option<(Condition, String)> {
    // `frozen`: somebody holds it back; `none` is what device mapper has for nothing.
    let sync = sync.filter(|sync| !matches!(*sync, "idle" | "none" | "frozen" | "undef" | ""));
    match (missing, sync) {
        (0, None) => None,
        (0, Some(sync)) => {
            Some((Condition::Busy, format!("has all its members, and a {sync} is under way")))
        }
        (n, Some("recover")) => {
            Some((Condition::Rebuilding, format!("is filling {n}{of} members")))
        }
        (n, Some(sync)) => {
            Some((Condition::Degraded, format!("lacks {n}{of} members, and a {sync} is under way")))
        }
        (n, None) => Some((Condition::Degraded, format!("lacks {n}{of} members"))),
    }
}

impl Mapper {
    fn unwell(&self) -> Option<(Condition, String)> {
        let found = self.segments.iter().flatten().filter_map(|segment| {
            let health = segment.health.as_deref()?;
            let count = |wanted: &[char]| health.chars().filter(|c| wanted.contains(c)).count();
            let recovers = segment.sync.as_deref() == Some("recover");
            // Not yet in step are all members while an array is synchronised for the first time.
            let missing = count(&['D', '-']) + if recovers { count(&['a']) } else { 0 };
            let of = format!(" of {}", health.chars().count());
            under_way(segment.sync.as_deref(), u32::try_from(missing).unwrap_or(u32::MAX), &of)
        });
        found.min_by_key(|(condition, _)| *condition)
    }
}

impl Pool {
    fn unwell(&self) -> Option<(Condition, String)> {
        let state = self.state.as_deref().filter(|state| *state != "ONLINE")?;
        let fills = state.contains("resilver") || state.contains("replace");
        let condition = if fills {
            Condition::Rebuilding
        } else if state.contains("missing") || state.starts_with("DEGRADED") {
            Condition::Degraded
        } else {
            return None;
        };
        Some((condition, format!("is {state}")))
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
        assert_eq!(md("raid10", 6, Some(0x103)).data_width_bytes(), Some(2 * 131_072));
        assert_eq!(md("raid10", 3, Some(0x102)).data_width_bytes(), None);
        assert_eq!(md("raid1", 2, None).data_width_bytes(), None);
        let huge = Md { chunk_bytes: Some(u64::MAX), ..md("raid0", u32::MAX, None) };
        assert_eq!(huge.data_width_bytes(), None);
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

    fn with(what: What) -> Vec<Unwell> {
        let layer = Layer { id: "x".into(), below: vec![], size_bytes: None, what, queue: None };
        let tree = StackTree {
            version: STACK_VERSION,
            targets: vec![],
            layers: vec![layer],
            host: StackHost::default(),
            throttles: vec![],
            unseen: vec![],
        };
        tree.unwell()
    }

    #[test]
    fn arrays_that_are_not_whole_are_told() {
        let of = |missing: u32, sync: &str| {
            let found =
                Md { missing: Some(missing), sync: Some(sync.into()), ..md("raid5", 4, None) };
            with(What::Md(found)).pop().map(|one| (one.condition, one.how))
        };
        assert_eq!((of(0, "idle"), of(0, "none"), of(0, "frozen")), (None, None, None));
        let degraded = (Condition::Degraded, "lacks 1 of 4 members".to_owned());
        assert_eq!(of(1, "idle"), Some(degraded));
        assert_eq!(of(1, "recover").unwrap().0, Condition::Rebuilding);
        assert_eq!(of(0, "check").unwrap().0, Condition::Busy);
        // Levels that keep nothing twice say nothing.
        assert!(with(What::Md(md("raid0", 4, None))).is_empty());
    }

    #[test]
    fn so_are_volumes_and_pools() {
        let raid = |health: &str, sync: &str| {
            let segment = Segment {
                start_bytes: 0,
                length_bytes: 1,
                target: "raid".into(),
                level: Some("raid5".into()),
                chunk_bytes: None,
                on: vec![],
                health: Some(health.into()),
                sync: Some(sync.into()),
            };
            let found = Mapper { segments: Some(vec![segment]), ..Mapper::default() };
            with(What::Mapper(found)).pop().map(|one| one.condition)
        };
        assert_eq!((raid("AAA", "idle"), raid("AAD", "idle")), (None, Some(Condition::Degraded)));
        assert_eq!(raid("AAa", "recover"), Some(Condition::Rebuilding));
        assert_eq!(raid("aaa", "resync"), Some(Condition::Busy));
        let pool = |state: &str| {
            let pool = Some(Pool { state: Some(state.into()), ..Pool::default() });
            let found = with(What::FileSystem(FileSystem { pool, ..FileSystem::default() }));
            found.first().map(|one| one.condition)
        };
        assert_eq!((pool("ONLINE"), pool("1 missing")), (None, Some(Condition::Degraded)));
        assert_eq!(pool("DEGRADED, resilver in progress"), Some(Condition::Rebuilding));
    }
}
