//! Devices that are others by name and the same by their bytes: loop devices over one file, or over
//! another device.

use std::path::{Path, PathBuf};

use crate::block;
use crate::host::Host;
use crate::target::FileId;

/// What a loop device shows of its file.
#[derive(Clone, Debug)]
pub(crate) struct LoopSpan {
    /// As the kernel names it.
    pub path: PathBuf,
    /// Which file; `None` if it has no name any more, or none that can be seen from here.
    pub id: Option<FileId>,
    from: u64,
    to: u64,
}

impl LoopSpan {
    /// Of a loop device that has a file.
    pub fn of(host: &Host, name: &str) -> Option<Self> {
        let path = block::loop_file(host, name)?;
        let number = |file: &str| host.number(block::class(name).join("loop").join(file));
        let from = number("offset").unwrap_or(0);
        let to = match number("sizelimit").unwrap_or(0) {
            0 => u64::MAX,
            size => from.saturating_add(size),
        };
        let id = std::fs::metadata(host.path(&path)).ok().map(|metadata| FileId::of(&metadata));
        Some(Self { path, id, from, to })
    }

    /// Whether both show some of the same bytes. Files without a name are taken for the same if the
    /// kernel names them alike.
    fn shares(&self, other: &Self) -> bool {
        self.is_of_file(other) && self.from < other.to && other.from < self.to
    }

    /// Whether both show bytes of one file, and none of the same.
    fn is_beside(&self, other: &Self) -> bool {
        self.is_of_file(other) && !self.shares(other)
    }

    fn is_of_file(&self, other: &Self) -> bool {
        match (self.id, other.id) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => self.path == other.path,
        }
    }
}

/// The block device that a loop device lies on, where it does not lie on a file.
pub(crate) fn device_under(host: &Host, name: &str) -> Option<String> {
    block::named(host, block::loop_file(host, name)?.to_str()?)
}

/// Other loop devices over bytes of this one.
pub(crate) fn twins(host: &Host, name: &str) -> Vec<String> {
    let Some(mine) = LoopSpan::of(host, name) else { return Vec::new() };
    let mut all = host.names("/sys/class/block");
    all.retain(|other| {
        other != name && LoopSpan::of(host, other).is_some_and(|theirs| mine.shares(&theirs))
    });
    all
}

/// What else has the bytes of these devices: other loop devices over the same files, the devices
/// under loop devices with their disks, and all that is made of those.
pub(crate) fn also(host: &Host, names: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut next: Vec<String> = names.to_vec();
    while let Some(name) = next.pop() {
        // What shares bytes with a twin need not share any with this one.
        let twins = twins(host, &name);
        let under = device_under(host, &name);
        // Other partitions of a disk do not matter; that it is in use as a whole does.
        let disk = under.as_ref().and_then(|under| block::disk_of(host, under));
        next.extend(under.iter().filter(|under| !found.contains(under)).cloned());
        let beside = twins.into_iter().chain(under);
        for other in beside.flat_map(|other| block::built_on(host, &other)).chain(disk) {
            if !names.contains(&other) && !found.contains(&other) {
                found.push(other);
            }
        }
    }
    found
}

/// Whether two block devices, by the kernel's names, have bytes in common although neither is made
/// of the other as sysfs shows it: loop devices over one file, or a loop device and what it is over.
pub fn share_bytes(host: &Host, one: &str, other: &str) -> bool {
    let has = |one: &str, other: &str| {
        let disk = block::disk_of(host, one);
        let mine: Vec<String> = std::iter::once(one.to_owned()).chain(disk).collect();
        // Not the disk of the other: another partition of it has bytes of its own.
        also(host, &mine).iter().any(|name| name == other)
    };
    has(one, other) || has(other, one)
}

/// Whether two loop devices show different bytes of the same file or device.
pub(crate) fn are_apart(host: &Host, one: &str, other: &str) -> bool {
    let (one, other) = (LoopSpan::of(host, one), LoopSpan::of(host, other));
    one.zip(other).is_some_and(|(one, other)| one.is_beside(&other))
}

/// The file under a loop device, where it is one and can be seen.
pub(crate) fn file_under(host: &Host, name: &str) -> Option<(PathBuf, FileId)> {
    let span = LoopSpan::of(host, name)?;
    let is_file = |path: &Path| std::fs::metadata(host.path(path)).is_ok_and(|m| m.is_file());
    span.id.filter(|_| is_file(&span.path)).map(|id| (span.path, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(path: &str, inode: Option<u64>, from: u64, to: u64) -> LoopSpan {
        let id = inode.map(|inode| FileId { device: "8:1".parse().unwrap(), inode });
        LoopSpan { path: path.into(), id, from, to }
    }

    #[test]
    fn loop_devices_share_what_overlaps_in_one_file() {
        let whole = span("/a", Some(1), 0, u64::MAX);
        let (first, second) = (span("/a", Some(1), 0, 100), span("/a", Some(1), 100, 200));
        assert!(whole.shares(&first) && second.shares(&whole));
        assert!(!first.shares(&second) && !second.shares(&first));
        assert!(first.is_beside(&second) && !whole.is_beside(&first));
        assert!(!first.is_beside(&span("/a", Some(2), 100, 200)), "of another file");
        assert!(whole.shares(&span("/hard/link", Some(1), 0, u64::MAX)));
        assert!(!whole.shares(&span("/a", Some(2), 0, u64::MAX)), "another file of that name");
        assert!(whole.shares(&span("/a", None, 0, u64::MAX)), "it cannot be told apart");
        assert!(!whole.shares(&span("/b", None, 0, u64::MAX)));
    }
}
