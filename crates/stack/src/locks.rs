//! Who holds the lock or a lease of a file, and who has a device open.

use std::fs::File;
use std::path::{Path, PathBuf};

use kernel::{Lock, LockKind};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

use crate::born::{Born, Likeness};
use crate::mounts::DeviceNumber;
use crate::safety::Process;
use crate::target::FileId;
use crate::users::{OVERLAY_MAGIC, file_at};

/// The process that holds the `flock` lock of an open file, as far as the kernel tells: not where
/// the lock is another machine's, or this process sees another list of processes.
pub fn lock_holder(file: &File) -> Option<Process> {
    let id = FileId::of(&file.metadata().ok()?);
    let is_it = |lock: &Lock| {
        let of = FileId { device: DeviceNumber::from_dev(lock.device), inode: lock.inode };
        lock.kind == LockKind::Flock && of == id
    };
    let listed = kernel::locks().ok()?.into_iter().find(is_it);
    let listed = listed.and_then(|lock| u32::try_from(lock.process).ok()).filter(|&id| id > 0);
    let has_it = |&process: &u32| has_open(process, &|open| file_at(open) == Some(id));
    // A lock is the open file's: the process that took it may have ended, and left it to others. And files of
    // btrfs and of overlays have other numbers in the kernel's list.
    let holder = listed.filter(has_it).or_else(|| {
        let mut all = others().into_iter().map(|(id, _)| id);
        all.find(|&process| has_it(&process) && has_locked(process, id))
    });
    process(holder.or(listed)?)
}

/// Whether one of the process's descriptors of a file has the lock of it.
fn has_locked(process: u32, file: FileId) -> bool {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let mut of_it = open.into_iter().filter(|entry| file_at(&entry.path()) == Some(file));
    of_it.any(|entry| {
        let name = entry.file_name();
        let about = Path::new("/proc").join(process.to_string()).join("fdinfo").join(name);
        let about = std::fs::read_to_string(about).unwrap_or_default();
        about.lines().any(|line| line.starts_with("lock:") && line.contains(" FLOCK "))
    })
}

/// Whether a process is one of this program.
pub fn is_of_this_program(process: &Process) -> bool {
    const NAME: &str = "plimsoll";
    let program = Path::new("/proc").join(process.id.to_string()).join("exe");
    let is_same = || {
        let own = file_at(Path::new("/proc/self/exe"));
        own.is_some() && file_at(&program) == own
    };
    // Another copy or version of it; another user's program is not shown.
    let named = std::fs::read_link(&program).ok();
    let is_named = named.is_some_and(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.trim_end_matches(" (deleted)") == NAME)
    });
    process.id == std::process::id() || is_same() || is_named || process.name == NAME
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
    let mut found = leases(opening)?.peekable();
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
    let is_one = |lease: &Lease| {
        files.iter().any(|file| (file.device, file.inode) == (lease.device, lease.inode))
    };
    leases(Opening::ToWrite)?.filter(is_one).find_map(|lease| process(lease.id))
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

impl Lease {
    /// * `opening`: that would end it.
    fn of(lock: Lock, opening: Opening) -> Option<Self> {
        // A lease that is being ended says what it will be.
        let is_ended = opening == Opening::ToWrite || lock.exclusive || lock.ending;
        (lock.kind == LockKind::Lease && is_ended).then_some(Self {
            id: u32::try_from(lock.process).ok()?,
            device: DeviceNumber::from_dev(lock.device),
            inode: lock.inode,
        })
    }
}

/// The leases of other processes that an opening would end.
fn leases(opening: Opening) -> Option<impl Iterator<Item = Lease>> {
    let of_others =
        move |lock| Lease::of(lock, opening).filter(|lease| lease.id != std::process::id());
    Some(kernel::locks().ok()?.into_iter().filter_map(of_others))
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

/// The other processes that have a block device open in any way, as far as they can be seen.
pub fn openers(device: DeviceNumber) -> Vec<Process> {
    let process = |(id, path): (u32, PathBuf)| {
        let mut open = std::fs::read_dir(path.join("fd")).ok()?.flatten();
        open.any(|entry| is_open(&entry.path(), device)).then(|| {
            let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            Process { id, name: name.trim_end().to_owned() }
        })
    };
    others().into_iter().filter_map(process).collect()
}

/// The directories of the other processes of this program.
pub(crate) fn programs() -> Vec<PathBuf> {
    let is_one = |(id, path): &(u32, PathBuf)| {
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        is_of_this_program(&Process { id: *id, name: name.trim_end().to_owned() })
    };
    others().into_iter().filter(is_one).map(|(_, path)| path).collect()
}

/// The other processes, each with its directory.
fn others() -> Vec<(u32, PathBuf)> {
    let own = std::fs::read_link("/proc/self").unwrap_or_default();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = entries.map(|entry| entry.path()).filter(|path| !path.ends_with(&own));
    let numbered = others.filter_map(|path| {
        let id = path.file_name()?.to_str()?.parse().ok()?;
        Some((id, path))
    });
    numbered.collect()
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
    fn leases_are_found_that_an_opening_ends() {
        let lock = |kind, exclusive, ending| Lock {
            kind,
            process: 903,
            device: 0xfd0a,
            inode: 77,
            exclusive,
            ending,
        };
        let ends = |lock: &Lock| {
            [Opening::ToRead, Opening::ToWrite].map(|how| Lease::of(lock.clone(), how).is_some())
        };
        assert_eq!(ends(&lock(LockKind::Flock, true, false)), [false, false]);
        assert_eq!(ends(&lock(LockKind::Lease, false, false)), [false, true]);
        assert_eq!(ends(&lock(LockKind::Lease, true, false)), [true, true]);
        assert_eq!(ends(&lock(LockKind::Lease, false, true)), [true, true]);
        let unseen = Lock { process: 0, ..lock(LockKind::Lease, true, false) };
        assert_eq!(Lease::of(unseen, Opening::ToWrite).map(|lease| lease.id), Some(0));
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
