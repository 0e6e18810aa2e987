//! Room that other runs have begun to take: the holes of the files that they are filling.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use units::Bytes;

use crate::block::KERNEL_SECTOR;
use crate::gather::place;
use crate::host::Host;
use crate::locks::programs;
use crate::mark::MARK_NAME;
use crate::mounts::{DeviceNumber, Mount, mounts};
use crate::safety::{Consent, Refusal, judge_room};
use crate::target::{FileId, PathKind, Target, inspect};

/// Files of runs that are under way in other processes, on the file system of `mount`: what they
/// have not taken yet. Runs of other PID namespaces are not seen.
pub(crate) fn unwritten(host: &Host, mount: &Mount) -> Bytes {
    let all = mounts(host).unwrap_or_default();
    let mut seen: Vec<FileId> = Vec::new();
    let mut sum = 0_u64;
    for process in programs() {
        let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        for path in open.map(|entry| entry.path()) {
            let Some((id, holes)) = holes_of(&path, mount, &all) else { continue };
            if !seen.contains(&id) {
                seen.push(id);
                sum = sum.saturating_add(holes);
            }
        }
    }
    Bytes::new(sum)
}

/// The holes of a file with a mark that somebody has open; `None` of what is elsewhere.
fn holes_of(path: &Path, mount: &Mount, all: &[Mount]) -> Option<(FileId, u64)> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), mask).ok()?;
    let device = DeviceNumber { major: found.stx_dev_major, minor: found.stx_dev_minor };
    // btrfs gives the files of each subvolume another number than the mount has.
    let through = all.iter().find(|one| one.id == found.stx_mnt_id);
    if device != mount.device && through.is_none_or(|one| one.device != mount.device) {
        return None;
    }
    let mut mark = [0; 16];
    let is_marked = match rustix::fs::getxattr(path, MARK_NAME, &mut mark) {
        Ok(_) | Err(rustix::io::Errno::RANGE) => true,
        Err(_) => false,
    };
    let holes = found.stx_size.saturating_sub(found.stx_blocks.saturating_mul(KERNEL_SECTOR));
    is_marked.then_some((FileId { device, inode: found.stx_ino }, holes))
}

/// Whether there is still room for files that this run has made or taken, which other runs see from
/// now on: of two that began at the same moment, each sees the other here.
pub fn confirm_room(host: &Host, files: &[PathBuf], consent: &Consent) -> Result<(), Refusal> {
    let targets: Vec<Target> = files.iter().filter_map(|path| inspect(host, path).ok()).collect();
    let takes = |target: &Target| match target.path.kind {
        PathKind::File { allocated, .. } => {
            let holes = target.path.size.get().saturating_sub(allocated.get());
            holes.saturating_add(target.shared_within(target.path.size).get())
        }
        _ => 0,
    };
    let on = |target: &Target| target.mount.as_ref().map(|mount| mount.device);
    let mut seen = Vec::new();
    for target in &targets {
        if seen.contains(&on(target)) {
            continue;
        }
        seen.push(on(target));
        let same = targets.iter().filter(|other| on(other) == on(target));
        let needed = same.fold(0, |sum: u64, one| sum.saturating_add(takes(one)));
        // What takes nothing more needs no look at what others do.
        if needed == 0 {
            continue;
        }
        let path = target.path.resolved.display().to_string();
        judge_room(&path, &place(host, target, consent), Bytes::new(needed))?;
    }
    Ok(())
}
