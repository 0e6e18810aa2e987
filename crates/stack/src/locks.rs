//! Who holds the lock or a lease of a file, and who has a device open.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

use crate::mounts::DeviceNumber;
use crate::safety::Process;

/// The process that holds the `flock` lock of an open file, as far as the kernel tells: not where
/// the lock is another machine's, or this process sees another list of processes.
pub fn lock_holder(file: &File) -> Option<Process> {
    listed(file, "FLOCK")
}

/// The process that has a lease of an open file, and is asked before anybody opens it for writing.
pub fn lease_holder(file: &File) -> Option<Process> {
    listed(file, "LEASE")
}

fn listed(file: &File, kind: &str) -> Option<Process> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let id = holder(&std::fs::read_to_string("/proc/locks").ok()?, kind, &wanted)?;
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    Some(Process { id, name: name.trim_end().to_owned() })
}

/// * `wanted`: the kind of lock.
/// * `file`: device and inode, as the kernel writes them.
fn holder(locks: &str, wanted: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        // Who only waits has an arrow in front of the kind.
        let kind = words.next()?;
        let (id, of) = (words.nth(2)?, words.next()?);
        (kind == wanted && of == file).then(|| id.parse().ok())?
    })
}

/// The other processes that have a block device open in any way, as far as they can be seen.
pub fn openers(device: DeviceNumber) -> Vec<Process> {
    let own = std::fs::read_link("/proc/self").unwrap_or_default();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = entries.map(|entry| entry.path()).filter(|path| !path.ends_with(&own));
    let numbered = others.filter_map(|path| {
        let id = path.file_name()?.to_str()?.parse().ok()?;
        Some((id, path))
    });
    let process = |(id, path): (u32, std::path::PathBuf)| {
        let mut open = std::fs::read_dir(path.join("fd")).ok()?.flatten();
        open.any(|entry| is_open(&entry.path(), device)).then(|| {
            let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            Process { id, name: name.trim_end().to_owned() }
        })
    };
    numbered.filter_map(process).collect()
}

fn is_open(descriptor: &std::path::Path, device: DeviceNumber) -> bool {
    let found = rustix::fs::statx(CWD, descriptor, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE);
    found.is_ok_and(|found| {
        let number = DeviceNumber { major: found.stx_rdev_major, minor: found.stx_rdev_minor };
        let kind = FileType::from_raw_mode(u32::from(found.stx_mode));
        kind == FileType::BlockDevice && number == device
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_and_not_who_waits() {
        let locks = "1: FLOCK  ADVISORY  WRITE 708 00:17:1234 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 900 fd:00:77 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 901 fd:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 902 fd:00:77 0 EOF\n\
                     4: LEASE  ACTIVE    READ  903 fd:00:77 0 EOF\n";
        assert_eq!(holder(locks, "LEASE", "fd:00:77"), Some(903));
        assert_eq!(holder(locks, "FLOCK", "fd:00:77"), Some(902));
        assert_eq!(holder(locks, "FLOCK", "00:17:1234"), Some(708));
        assert_eq!(holder(locks, "FLOCK", "fd:00:7"), None);
        assert_eq!(holder("4: FLOCK\n\nodd", "FLOCK", "fd:00:77"), None);
    }

    #[test]
    fn a_lock_of_our_own_is_ours() {
        let path = std::env::temp_dir().join(format!("plimsoll-lock-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        assert_eq!(lock_holder(&file), None);
        file.lock().unwrap();
        // Containers may hide the list.
        if let Some(holder) = lock_holder(&file) {
            assert_eq!(holder.id, std::process::id());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
