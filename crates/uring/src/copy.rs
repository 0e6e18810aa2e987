//! Copies that the kernel makes from file to file (`copy_file_range`), and whether it copies.
//!
//! A file system that can let two files share blocks (btrfs, XFS, OCFS2, bcachefs) answers such a
//! call by sharing, which copies nothing. It can only share whole blocks: what begins in the middle
//! of one it copies. So where sharing is possible the first byte of each request is copied by a call
//! of its own, and the rest, which then begins at an odd place, by another. File servers that copy
//! for their clients (NFS 4.2, SMB) are asked the same way and do as they like.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

use device::{Errno, FileIndex, Request};
use rustix::io::Errno as Raw;
use units::{ByteOffset, Bytes};

use crate::files::FileSet;

/// A place in one of a set's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Which file.
    pub file: FileIndex,
    /// Where in it.
    pub offset: ByteOffset,
}

/// Whether two files could share the blocks of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The file system cannot.
    Impossible,
    /// It could, and is asked in a way in which it does not.
    Refused,
}

/// Why the kernel does not copy there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel does not copy from {} to {}: {errno}", from.display(), to.display())]
pub struct CopyError {
    /// From this file...
    pub from: PathBuf,
    /// ...to that one.
    pub to: PathBuf,
    /// As the kernel has it.
    pub errno: Errno,
}

impl CopyError {
    /// What the user may do about it.
    pub fn hint(&self) -> Option<String> {
        let why = match self.errno.0 {
            libc::EXDEV => "both must lie on one file system; ",
            libc::EINVAL => "both must be files, opened without direct I/O; ",
            _ => "",
        };
        Some(format!("{why}operation = \"copy\" reads and writes instead"))
    }
}

impl FileSet {
    /// Asks the kernel whether it copies between two places of the set, and the file system whether
    /// it could share their blocks; [`Sharing::Refused`] holds for all copies of the set from then
    /// on. What is at `to` may be overwritten by a block of what is at `from`.
    pub fn prepare_copies(&self, from: Spot, to: Spot) -> Result<Sharing, CopyError> {
        let (Some(source), Some(target)) = (self.get(from.file), self.get(to.file)) else {
            let (from, to) = (PathBuf::new(), PathBuf::new());
            return Err(CopyError { from, to, errno: Errno(libc::EBADF) });
        };
        let (mut at, mut onto) = (from.offset.get(), to.offset.get());
        let (source_at, target_at) = (Some(&mut at), Some(&mut onto));
        // Of no length it is checked and not made.
        rustix::fs::copy_file_range(source, source_at, target, target_at, 0).map_err(|e| {
            let (from, to) = (source.path().to_path_buf(), target.path().to_path_buf());
            CopyError { from, to, errno: Errno(e.raw_os_error()) }
        })?;
        if let Some(known) = self.sharing() {
            return Ok(known);
        }
        let block = rustix::fs::fstatvfs(target).map_or(4096, |found| found.f_bsize.max(512));
        let up = |offset: ByteOffset| offset.get().next_multiple_of(block);
        let (at, onto) = (up(from.offset), up(to.offset));
        let could = share(source.as_fd(), at, target.as_fd(), onto, block).is_ok();
        let sharing = if could { Sharing::Refused } else { Sharing::Impossible };
        if could {
            // What the question shared is parted again, which is so once it is written back.
            let _ = copy(source.as_fd(), at, target.as_fd(), onto, block as usize, true);
            let _ = crate::ops::sync_range(target.as_fd(), onto, block);
        }
        Ok(self.set_sharing(sharing))
    }

    /// Carries out a copy.
    pub(crate) fn copy(&self, request: &Request, to: Option<Spot>) -> i32 {
        let Some(to) = to else { return -libc::EINVAL };
        let (Some(source), Some(target)) = (self.get(request.file), self.get(to.file)) else {
            return -libc::EBADF;
        };
        let apart = self.sharing() == Some(Sharing::Refused);
        let (at, onto) = (request.offset.get(), to.offset.get());
        let length = request.length as usize;
        match copy(source.as_fd(), at, target.as_fd(), onto, length, apart) {
            Ok(copied) => i32::try_from(copied).unwrap_or(i32::MAX),
            Err(error) => -error.raw_os_error(),
        }
    }

    /// Whether blocks near a place are shared with another file; `None` where the file system does
    /// not tell.
    pub fn is_shared(&self, at: Spot, length: Bytes) -> Option<bool> {
        let (file, start) = (self.get(at.file)?.as_fd(), at.offset.get());
        // Blocks written anew may be shared until they are written back.
        match shared(file, start, length.get(), 0)? {
            true => shared(file, start, length.get(), FLUSH_FIRST),
            false => Some(false),
        }
    }
}

/// Copies until all is copied or the source ends.
///
/// * `apart`: so that no block can be shared.
fn copy(
    source: BorrowedFd<'_>,
    mut at: u64,
    target: BorrowedFd<'_>,
    mut onto: u64,
    length: usize,
    apart: bool,
) -> Result<usize, Raw> {
    let mut copied = 0;
    while copied < length {
        let rest = length - copied;
        let piece = if apart && copied == 0 { 1 } else { rest };
        let moved = rustix::io::retry_on_intr(|| {
            let (mut from, mut to) = (at, onto);
            rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), piece)
        })?;
        if moved == 0 {
            break;
        }
        copied += moved;
        at += moved as u64;
        onto += moved as u64;
    }
    Ok(copied)
}

/// `FICLONERANGE`, `_IOW(0x94, 13, struct file_clone_range)`.
const FICLONERANGE: libc::Ioctl = 0x4020_940d_u32 as libc::Ioctl;
/// `FS_IOC_FIEMAP`, `_IOWR('f', 11, struct fiemap)`.
const FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;
/// `FIEMAP_FLAG_SYNC`.
const FLUSH_FIRST: u32 = 1;
/// `FIEMAP_EXTENT_SHARED`.
const SHARED: u32 = 0x2000;
/// Extents looked at.
const EXTENTS: usize = 64;

#[repr(C)]
struct CloneRange {
    source: i64,
    source_offset: u64,
    source_length: u64,
    target_offset: u64,
}

/// Has `target` share blocks of `source`.
fn share(
    source: BorrowedFd<'_>,
    at: u64,
    target: BorrowedFd<'_>,
    onto: u64,
    length: u64,
) -> Result<(), Errno> {
    let range = CloneRange {
        source: i64::from(source.as_raw_fd()),
        source_offset: at,
        source_length: length,
        target_offset: onto,
    };
    // SAFETY: the ioctl reads one such struct from the pointer; both descriptors are open.
    match unsafe { libc::ioctl(target.as_raw_fd(), FICLONERANGE, &raw const range) } {
        0 => Ok(()),
        _ => Err(Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))),
    }
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_more: [u32; 3],
}

#[repr(C)]
struct ExtentMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

fn shared(file: BorrowedFd<'_>, start: u64, length: u64, flags: u32) -> Option<bool> {
    let extents = [Extent::default(); EXTENTS];
    let (mapped, reserved, count) = (0, 0, EXTENTS as u32);
    let mut map = ExtentMap { start, length, flags, mapped, count, reserved, extents };
    // SAFETY: the ioctl reads and writes one such struct with room for `count` extents.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP, &raw mut map) };
    let found = map.extents.get(..map.mapped as usize).filter(|_| result == 0)?;
    Some(found.iter().any(|extent| extent.flags & SHARED != 0))
}
