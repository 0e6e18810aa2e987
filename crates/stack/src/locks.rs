//! Who holds the lock or a lease of a file, and who has a device open.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

use crate::born::{Born, Likeness};
use crate::mounts::DeviceNumber;
use crate::safety::Process;
use crate::target::FileId;
use crate::users::{OVERLAY_MAGIC, file_at};

/// The process that holds the `flock` lock of an open file, as far as the kernel tells: not where
/// the lock is another machine's, or this process sees another list of processes.
pub fn lock_holder(file: &File) -> Option<Process> {
    listed(file, "FLOCK")
}

/// What an opening would do to a lease: the kernel sends its holder a signal, which by default ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Ends leases of writers only.
    ToRead,
    /// Ends all.
    ToWrite,
}

/// The process that has a lease of a file, and would be asked before it is opened for writing.
///
/// * `path`: of the file, which is not opened.
pub fn lease_of(path: &Path) -> Option<Process> {
    lease_holder(path, Opening::ToWrite)
}

/// The process that has a lease of a file, and is asked before anybody opens it so. This process has none
/// that matters.
///
/// * `path`: of the file, which is not opened. Opening what an overlay shows also opens the file in its
///   directory.
pub(crate) fn lease_holder(path: &Path, opening: Opening) -> Option<Process> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let mut found =
        leases(&locks, opening).filter(|lease| lease.id != std::process::id()).peekable();
    found.peek()?;
    let file = file_at(path)?;
    let is_overlay =
        rustix::fs::statfs(path).is_ok_and(|found| found.f_type as u64 == OVERLAY_MAGIC);
    let born = is_overlay.then(|| Born::of(path)).flatten();
    found.find_map(|lease| {
        // Subvolumes and files of overlays have other numbers there than by `stat`.
        let may_be = lease.device.major == 0 && file.device.major == 0 && lease.inode == file.inode;
        let is_it = (lease.device, lease.inode) == (file.device, file.inode)
            || may_be && has_open(lease.id, &|open| file_at(open) == Some(file))
            || born.is_some_and(|born| {
                let is_like = |open: &Path| Born::of(open).is_some_and(|it| is_shown(&it, &born));
                let is_leased = |open: &Path| file_at(open).is_some_and(|f| f.inode == lease.inode);
                has_open(lease.id, &|open| is_leased(open) && is_like(open))
            });
        is_it.then(|| process(lease.id))?
    })
}

/// The process that has a lease of a file with one of these numbers.
pub(crate) fn lease_holder_of(files: &[FileId]) -> Option<Process> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let own = std::process::id();
    let of_others = leases(&locks, Opening::ToWrite).filter(|lease| lease.id != own);
    let is_one = |lease: &Lease| {
        files.iter().any(|file| (file.device, file.inode) == (lease.device, lease.inode))
    };
    of_others.filter(is_one).find_map(|lease| process(lease.id))
}

fn is_shown(real: &Born, shown: &Born) -> bool {
    real.like(shown) != Likeness::No
}

/// A lease as the kernel lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    /// Of the process.
    id: u32,
    device: DeviceNumber,
    inode: u64,
}

/// The leases that an opening would end.
fn leases(locks: &str, opening: Opening) -> impl Iterator<Item = Lease> + '_ {
    locks.lines().filter_map(move |line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_lease = words.next()? == "LEASE";
        // A lease that is being ended says what it will be.
        let (state, kind) = (words.next()?, words.next()?);
        let is_ended = opening == Opening::ToWrite || kind == "WRITE" || state != "ACTIVE";
        let id = words.next()?.parse().ok()?;
        let mut of = words.next()?.split(':');
        let mut number = || u32::from_str_radix(of.next()?, 16).ok();
        let device = DeviceNumber { major: number()?, minor: number()? };
        let inode = of.next()?.parse().ok()?;
        (is_lease && is_ended).then_some(Lease { id, device, inode })
    })
}

/// Whether a process has such a file open.
fn has_open(id: u32, is_it: &dyn Fn(&Path) -> bool) -> bool {
    let open = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|entry| is_it(&entry.path()))
}

fn process(id: u32) -> Option<Process> {
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    Some(Process { id, name: name.trim_end().to_owned() })
}

fn listed(file: &File, kind: &str) -> Option<Process> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    process(holder(&std::fs::read_to_string("/proc/locks").ok()?, kind, &wanted)?)
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
    fn leases_are_found_that_an_opening_ends() {
        let locks = "1: FLOCK  ADVISORY  WRITE 708 fd:00:77 0 EOF\n\
                     2: LEASE  ACTIVE    READ  903 fd:0a:77 0 EOF\n\
                     3: LEASE  ACTIVE    WRITE 904 00:31:77 0 EOF\n\
                     4: LEASE  BREAKING  READ  905 fd:0a:78 0 EOF\n";
        let of = |opening| leases(locks, opening).map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(of(Opening::ToRead), [904, 905]);
        assert_eq!(of(Opening::ToWrite), [903, 904, 905]);
        let first = leases(locks, Opening::ToWrite).next();
        let device = DeviceNumber { major: 253, minor: 10 };
        assert_eq!(first, Some(Lease { id: 903, device, inode: 77 }));
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
