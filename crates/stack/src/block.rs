use std::path::{Path, PathBuf};

use serde::Serialize;
use units::Bytes;

use crate::host::Host;
use crate::mounts::{DeviceNumber, mount_of, mounts};

/// The kernel counts device sizes and traffic in sectors of 512 bytes, whatever the device has.
pub(crate) const KERNEL_SECTOR: u64 = 512;

/// A chain deeper than this is taken for a loop in the tree.
const DEPTH_MAX: u32 = 16;

/// A block device, as sysfs tells it. What sysfs does not tell is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    /// Kernel name: `sda1`, `dm-0`, `nvme0n1`.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Distance from the target: 0 is the device right under the file system, or the target.
    pub depth: u32,
    /// What kind of device.
    pub kind: BlockKind,
    /// How long.
    pub size: Bytes,
    /// Smallest unit that can be addressed.
    pub logical_sector: Option<Bytes>,
    /// Smallest unit written without reading first.
    pub physical_sector: Option<Bytes>,
    /// Whether it says that it has turning parts. Virtual disks and USB bridges often lie.
    pub rotational: Option<bool>,
    /// Vendor's name of it.
    pub model: Option<String>,
    /// Requests that its queue holds (`nr_requests`).
    pub queue_depth: Option<u32>,
    /// I/O scheduler in force.
    pub scheduler: Option<String>,
    /// Write cache as the kernel believes it to be: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether its queue can be polled for completions.
    pub io_poll: Option<bool>,
    /// Whether it refuses writes.
    pub read_only: bool,
    /// Whether it lies under a loop device's file (or a deeper one), so that it is another
    /// file system's disk.
    pub under_file: bool,
}

/// What kind of block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum BlockKind {
    /// A whole disk, or what presents itself as one.
    Disk,
    /// A partition of the disk `of`.
    Partition {
        /// Kernel name of the disk.
        of: String,
    },
    /// A device-mapper target.
    Mapper {
        /// Name as in `/dev/mapper`.
        name: String,
        /// With the subsystem in front: `LVM-...`, `CRYPT-LUKS2-...`, `mpath-...`.
        uuid: String,
    },
    /// An md array.
    Md {
        /// `raid1`, `raid10`, `raid5`, `linear`; empty when it is not running.
        level: String,
    },
    /// A file as a device.
    Loop {
        /// The file; `None` when nothing is attached.
        file: Option<PathBuf>,
    },
    /// Compressed memory.
    Zram,
    /// Memory.
    Ram,
}

impl BlockDevice {
    /// Whether it encrypts (dm-crypt).
    pub fn is_crypt(&self) -> bool {
        matches!(&self.kind, BlockKind::Mapper { uuid, .. } if uuid.starts_with("CRYPT-"))
    }

    /// One line for people: `dm-0: LVM logical volume vg-db, 1 TiB`.
    pub fn summary(&self) -> String {
        let kind = match &self.kind {
            BlockKind::Disk => "disk".to_owned(),
            BlockKind::Partition { of } => format!("partition of {of}"),
            BlockKind::Mapper { name, uuid } => {
                let what = match uuid.split('-').next() {
                    Some("LVM") => "LVM logical volume",
                    Some("CRYPT") => "dm-crypt (encrypted)",
                    Some("mpath") => "multipath",
                    _ => "device mapper",
                };
                format!("{what} {name}")
            }
            BlockKind::Md { level } => format!("md {level}"),
            BlockKind::Loop { file: Some(file) } => format!("loop over {}", file.display()),
            BlockKind::Loop { file: None } => "loop, unattached".to_owned(),
            BlockKind::Zram => "compressed memory (zram)".to_owned(),
            BlockKind::Ram => "memory (brd)".to_owned(),
        };
        let model = self.model.as_ref().map(|m| format!(", {m}")).unwrap_or_default();
        let turns = match self.rotational {
            Some(true) if self.kind == BlockKind::Disk => ", rotational",
            _ => "",
        };
        format!("{}: {kind}{model}{turns}, {}", self.name, self.size)
    }
}

pub(crate) fn class(name: &str) -> PathBuf {
    // sysfs writes the slashes of names such as `cciss/c0d0` as exclamation marks.
    Path::new("/sys/class/block").join(name.replace('/', "!"))
}

/// The kernel's name of a device number; `None` if it has no such block device.
pub(crate) fn name_of(host: &Host, number: DeviceNumber) -> Option<String> {
    let link = host.link(format!("/sys/dev/block/{number}"))?;
    Some(link.file_name()?.to_str()?.to_owned())
}

/// Number of a kernel name.
pub(crate) fn number_of(host: &Host, name: &str) -> Option<DeviceNumber> {
    host.line(class(name).join("dev"))?.parse().ok()
}

/// The disk that a partition is on.
pub(crate) fn disk_of(host: &Host, name: &str) -> Option<String> {
    if !host.exists(class(name).join("partition")) {
        return None;
    }
    let link = host.link(class(name))?;
    Some(link.parent()?.file_name()?.to_str()?.to_owned())
}

/// The partitions of a disk that the kernel knows.
pub(crate) fn partitions_of(host: &Host, name: &str) -> Vec<String> {
    let directory = class(name);
    let mut found = host.names(&directory);
    found.retain(|entry| host.exists(directory.join(entry).join("partition")));
    found
}

/// What is built on a device: md, device mapper, bcache.
pub(crate) fn holders_of(host: &Host, name: &str) -> Vec<String> {
    host.names(class(name).join("holders"))
}

/// What a device is built on: its slaves, or its disk.
pub(crate) fn below(host: &Host, name: &str) -> Vec<String> {
    let mut found = host.names(class(name).join("slaves"));
    found.extend(disk_of(host, name));
    found
}

/// The file of a loop device, as the kernel has it.
pub(crate) fn loop_file(host: &Host, name: &str) -> Option<PathBuf> {
    let bytes = host.bytes(class(name).join("loop/backing_file")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end_matches('\n');
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// A device by its kernel name, with the given depth; `None` if sysfs has no such device.
pub(crate) fn device(host: &Host, name: &str, depth: u32, under_file: bool) -> Option<BlockDevice> {
    let directory = class(name);
    let number = number_of(host, name)?;
    let disk = disk_of(host, name);
    // A partition has no queue of its own.
    let queue = class(disk.as_deref().unwrap_or(name)).join("queue");
    let bytes = |attribute: &str| host.number(queue.join(attribute)).map(Bytes::new);
    Some(BlockDevice {
        number,
        depth,
        size: Bytes::new(
            host.number(directory.join("size")).unwrap_or(0).saturating_mul(KERNEL_SECTOR),
        ),
        logical_sector: bytes("logical_block_size"),
        physical_sector: bytes("physical_block_size"),
        rotational: host.number(queue.join("rotational")).map(|n| n != 0),
        model: host.line(directory.join("device/model")),
        queue_depth: host.number(queue.join("nr_requests")).and_then(|n| u32::try_from(n).ok()),
        scheduler: host.line(queue.join("scheduler")).map(|text| chosen(&text)),
        write_cache: host.line(queue.join("write_cache")),
        io_poll: host.number(queue.join("io_poll")).map(|n| n != 0),
        read_only: host.number(directory.join("ro")).is_some_and(|n| n != 0),
        under_file,
        kind: kind(host, name, disk),
        name: name.to_owned(),
    })
}

fn kind(host: &Host, name: &str, disk: Option<String>) -> BlockKind {
    let directory = class(name);
    if let Some(of) = disk {
        BlockKind::Partition { of }
    } else if host.exists(directory.join("dm")) {
        let attribute = |a: &str| host.line(directory.join("dm").join(a)).unwrap_or_default();
        BlockKind::Mapper { name: attribute("name"), uuid: attribute("uuid") }
    } else if host.exists(directory.join("md")) {
        BlockKind::Md { level: host.line(directory.join("md/level")).unwrap_or_default() }
    } else if numbered(name, "loop") {
        BlockKind::Loop { file: loop_file(host, name) }
    } else if numbered(name, "zram") {
        BlockKind::Zram
    } else if numbered(name, "ram") {
        BlockKind::Ram
    } else {
        BlockKind::Disk
    }
}

fn numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// `none [mq-deadline] kyber` is `mq-deadline`; a lone word is itself.
pub(crate) fn chosen(text: &str) -> String {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(text)
        .to_owned()
}

/// A device and all below it, each once, at its least depth: top first, by breadth.
///
/// * `through_files`: whether to go on from a loop device to the devices under its file.
pub(crate) fn chain(host: &Host, tops: &[String], through_files: bool) -> Vec<BlockDevice> {
    let mut found: Vec<BlockDevice> = Vec::new();
    let mut level: Vec<(String, bool)> = tops.iter().map(|name| (name.clone(), false)).collect();
    for depth in 0..DEPTH_MAX {
        let mut next = Vec::new();
        for (name, under_file) in level {
            if found.iter().any(|d| d.name == name) {
                continue;
            }
            let Some(device) = device(host, &name, depth, under_file) else { continue };
            next.extend(below(host, &name).into_iter().map(|n| (n, under_file)));
            if through_files && let BlockKind::Loop { file: Some(file) } = &device.kind {
                next.extend(under_path(host, file).into_iter().map(|n| (n, true)));
            }
            found.push(device);
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    found
}

/// The devices right under the file system that holds `path`; none if that cannot be told.
pub(crate) fn under_path(host: &Host, path: &Path) -> Vec<String> {
    let Ok(mounts) = mounts(host) else { return Vec::new() };
    mount_of(&mounts, path, None).map(|mount| under_mount(host, mount).0).unwrap_or_default()
}

/// The devices right under a mounted file system, and what could not be seen of them.
pub(crate) fn under_mount(
    host: &Host,
    mount: &crate::mounts::Mount,
) -> (Vec<String>, Option<String>) {
    if mount.device.major != 0 {
        return match name_of(host, mount.device) {
            Some(name) => (vec![name], None),
            None => {
                (Vec::new(), Some(format!("sysfs does not show the block device {}", mount.device)))
            }
        };
    }
    let Some(first) = named(host, &mount.source) else {
        let unseen = match mount.file_system.as_str() {
            "zfs" | "btrfs" | "bcachefs" => Some(format!(
                "the devices of {} {} are not shown by sysfs",
                mount.file_system, mount.source
            )),
            _ => None,
        };
        return (Vec::new(), unseen);
    };
    match mount.file_system.as_str() {
        "btrfs" => {
            let members = btrfs_members(host, &first);
            if members.is_empty() {
                let unseen = format!(
                    "whether btrfs on {first} has other devices: /sys/fs/btrfs does not show it"
                );
                (vec![first], Some(unseen))
            } else {
                (members, None)
            }
        }
        // The source of a bcachefs is a list: /dev/sda:/dev/sdb.
        "bcachefs" => {
            let all: Vec<String> =
                mount.source.split(':').filter_map(|part| named(host, part)).collect();
            (all, None)
        }
        _ => (vec![first], None),
    }
}

/// All members of the mounted btrfs that has the device `name`.
fn btrfs_members(host: &Host, name: &str) -> Vec<String> {
    btrfs_of(host, name)
        .map(|uuid| host.names(format!("/sys/fs/btrfs/{uuid}/devices")))
        .unwrap_or_default()
}

/// The uuid of the mounted btrfs that has the device `name`.
pub(crate) fn btrfs_of(host: &Host, name: &str) -> Option<String> {
    let has = |uuid: &String| {
        host.names(format!("/sys/fs/btrfs/{uuid}/devices")).iter().any(|member| member == name)
    };
    host.names("/sys/fs/btrfs").into_iter().find(has)
}

/// The kernel name of what `/dev/...` is called in mount tables.
pub(crate) fn named(host: &Host, source: &str) -> Option<String> {
    let source = source.split(':').next().unwrap_or(source);
    if !source.starts_with("/dev/") {
        return None;
    }
    let resolved = std::fs::canonicalize(host.path(source)).unwrap_or_default();
    let candidates = [resolved.as_path(), Path::new(source)];
    for name in candidates.iter().filter_map(|p| p.file_name()?.to_str()) {
        if number_of(host, name).is_some() {
            return Some(name.to_owned());
        }
    }
    let mapped = source.strip_prefix("/dev/mapper/")?;
    host.names("/sys/class/block")
        .into_iter()
        .find(|name| host.line(class(name).join("dm/name")).as_deref() == Some(mapped))
}

/// Everything that is made of a device: its partitions and holders, theirs, and so on, itself
/// first.
pub(crate) fn built_on(host: &Host, name: &str) -> Vec<String> {
    let mut found = vec![name.to_owned()];
    let mut next = 0;
    while let Some(name) = found.get(next).cloned() {
        next += 1;
        for above in partitions_of(host, &name).into_iter().chain(holders_of(host, &name)) {
            if !found.contains(&above) {
                found.push(above);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_is_the_word_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn only_numbered_names_are_memory() {
        assert!(numbered("ram0", "ram") && numbered("loop17", "loop"));
        assert!(!numbered("ramdisk", "ram") && !numbered("loop", "loop"));
    }
}
