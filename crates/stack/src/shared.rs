//! Which devices are others by name and the same by their bytes: fills the table of
//! [`crate::safety::same`] from what the kernel shows.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::block::{self, KERNEL_SECTOR};
use crate::host::Host;
use crate::mounts::DeviceNumber;
use crate::probe::within;
use crate::safety::same::{Known, Part, Root, Table};
use crate::target::{FileId, PathKind, Target};

/// The kernel's number of loop devices.
const LOOP_MAJOR: u32 = 7;

/// A loop device.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub name: String,
    /// What it lies on; a name if the kernel could not be asked.
    pub on: Root,
    offset: u64,
}

/// Loop devices, with what each lies on.
///
/// * `all`: those over files as well. A file's server may answer no more, so that they are asked only
///   where it matters.
pub(crate) fn loops(host: &Host, all: bool) -> Vec<Loop> {
    let names = host.names("/sys/class/block").into_iter();
    names.filter_map(|name| loop_device(host, name, all)).collect()
}

/// All block devices of a machine, with what each lies on.
pub(crate) fn table(host: &Host, loops: &[Loop]) -> Table {
    let names = host.names("/sys/class/block");
    Table::new(names.iter().filter_map(|name| known(host, name, loops)).collect())
}

/// Whether two block devices, by the kernel's names, have bytes in common.
pub fn share_bytes(host: &Host, one: &str, other: &str) -> bool {
    table(host, &loops(host, true)).share(one, other)
}

/// The first two targets that have bytes in common: loop devices and their files, and what else is
/// one by other names.
pub fn targets_that_share_bytes(host: &Host, targets: &[Target]) -> Option<(usize, usize)> {
    let table = table(host, &loops(host, true));
    let name = |target: &Target| target.top().map(|top| top.name.clone()).unwrap_or_default();
    let share = |one: &Target, other: &Target| match (&one.path.kind, &other.path.kind) {
        (PathKind::File { id, .. }, PathKind::File { id: other, .. }) => id == other,
        (PathKind::File { id, .. }, PathKind::BlockDevice { .. }) => {
            table.below(&name(other)).contains(&Root::File(*id))
        }
        (PathKind::BlockDevice { .. }, PathKind::File { id, .. }) => {
            table.below(&name(one)).contains(&Root::File(*id))
        }
        (PathKind::BlockDevice { .. }, PathKind::BlockDevice { .. }) => {
            table.share(&name(one), &name(other))
        }
        _ => false,
    };
    let pairs = targets.iter().enumerate().flat_map(|(at, one)| {
        let others = targets.iter().enumerate().skip(at + 1);
        others.map(move |(other_at, other)| ((at, one), (other_at, other)))
    });
    pairs.into_iter().find(|((_, a), (_, b))| share(a, b)).map(|((a, _), (b, _))| (a, b))
}

fn known(host: &Host, name: &str, loops: &[Loop]) -> Option<Known> {
    let number = block::number_of(host, name)?;
    let size = size_of(host, name);
    let parts = match loops.iter().find(|known| known.name == name) {
        Some(one) => {
            vec![Part { on: one.on.clone(), from: one.offset, length: size, is_linear: true }]
        }
        None => parts(host, name, size),
    };
    Some(Known { name: name.to_owned(), number, size, wwid: wwid(host, name), parts })
}

fn size_of(host: &Host, name: &str) -> u64 {
    host.number(block::class(name).join("size")).unwrap_or(0).saturating_mul(KERNEL_SECTOR)
}

/// The name that a drive has on every path to it, from SCSI or NVMe.
fn wwid(host: &Host, name: &str) -> Option<String> {
    let directory = block::class(name);
    let found = ["device/wwid", "wwid"].iter().find_map(|file| host.line(directory.join(file)))?;
    let own = found.split_once('.').map_or(found.as_str(), |(_, own)| own);
    // Bridges and emulations without a number of their own give all zeros, or nothing.
    let is_telling = own.bytes().filter(u8::is_ascii_alphanumeric).any(|byte| byte != b'0');
    is_telling.then_some(found)
}

fn parts(host: &Host, name: &str, size: u64) -> Vec<Part> {
    let directory = block::class(name);
    let start = host.number(directory.join("start"));
    let on = |below: &str| block::number_of(host, below).map(Root::Device);
    if let (Some(disk), Some(start)) = (block::disk_of(host, name), start) {
        let part = |on| Part {
            on,
            from: start.saturating_mul(KERNEL_SECTOR),
            length: size,
            is_linear: true,
        };
        return on(&disk).map(part).into_iter().collect();
    }
    let member = |below: &String| {
        Some(Part { on: on(below)?, from: 0, length: size_of(host, below), is_linear: false })
    };
    block::below(host, name).iter().filter_map(member).collect()
}

/// `None` where nothing is attached, and of one over a file that does not matter.
fn loop_device(host: &Host, name: String, all: bool) -> Option<Loop> {
    let settings = block::class(&name).join("loop");
    let is_loop = name.starts_with("loop") && host.exists(&settings);
    if !is_loop || block::number_of(host, &name)?.major != LOOP_MAJOR {
        return None;
    }
    // Names of more than a page are not shown.
    let path = block::loop_file(host, &name).unwrap_or_else(|| PathBuf::from(&name));
    let device = path.to_str().and_then(|path| block::named(host, path));
    if !all && device.is_none() && !path.starts_with("/dev") {
        return None;
    }
    let asked = host.answer(&format!("loop-status.{name}"), || ask_loop(host, &name));
    if let Some([device, inode, special, offset, _]) = asked.ok().and_then(|text| numbers(&text)) {
        let on = match special {
            0 => Root::File(FileId { device: DeviceNumber::from_dev(device), inode }),
            special => Root::Device(DeviceNumber::from_dev(special)),
        };
        return Some(Loop { name, on, offset });
    }
    let offset = host.number(settings.join("offset")).unwrap_or(0);
    let number = device.and_then(|device| block::number_of(host, &device));
    let on = number.map_or(Root::Named(path), Root::Device);
    Some(Loop { name, on, offset })
}

fn numbers(text: &str) -> Option<[u64; 5]> {
    let words: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    words.try_into().ok()
}

fn ask_loop(host: &Host, name: &str) -> io::Result<String> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let device: File =
        OpenOptions::new().read(true).custom_flags(flags).open(Path::new("/dev").join(name))?;
    let opened = DeviceNumber::from_dev(device.metadata()?.rdev());
    if block::number_of(host, name) != Some(opened) {
        return Err(io::Error::other("another device has its name"));
    }
    // The kernel asks the file system of the file, which may be one that answers no more.
    let found = within(move || kernel::loop_status(&device))?;
    let kernel::LoopStatus { device, inode, special, offset, size_limit } = found;
    Ok(format!("{device} {inode} {special} {offset} {size_limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_loop_devices_are_five_numbers() {
        assert_eq!(numbers("1 2 3 4 5\n"), Some([1, 2, 3, 4, 5]));
        for odd in ["", "1 2 3 4", "1 2 3 4 5 6", "1 2 x 4 5"] {
            assert_eq!(numbers(odd), None, "{odd}");
        }
    }
}
