//! One request as one blocking system call: what all back ends fall back to.

use std::os::fd::BorrowedFd;

use device::{Op, Request};
use rustix::io::Errno;

use crate::files::Kind;

/// Carries `request` out on `fd` and answers as the kernel does: bytes or minus an errno.
/// Interrupted calls are repeated, everything else is passed on.
///
/// # Safety
/// `buffer` is valid for reads and writes of `request.length` bytes and nobody else touches them
/// meanwhile.
#[inline]
pub(crate) unsafe fn perform(
    fd: BorrowedFd<'_>,
    kind: Kind,
    request: &Request,
    buffer: *mut u8,
) -> i32 {
    let length = request.length as usize;
    let offset = request.offset.get();
    match request.op {
        Op::Read => {
            // SAFETY: the caller's promise.
            let into = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
            count(|| rustix::io::pread(fd, &mut *into, offset))
        }
        Op::Write => {
            // SAFETY: the caller's promise.
            let from = unsafe { std::slice::from_raw_parts(buffer, length) };
            count(|| rustix::io::pwrite(fd, from, offset))
        }
        Op::Fsync => count(|| rustix::fs::fsync(fd).map(|()| 0)),
        Op::Fdatasync => count(|| rustix::fs::fdatasync(fd).map(|()| 0)),
        Op::SyncRange => count(|| sync_range(fd, offset, u64::from(request.length))),
        Op::Trim => count(|| trim(fd, kind, offset, u64::from(request.length))),
        // Of a directory, which no file is.
        Op::Create | Op::Stat | Op::Delete => -Errno::NOTDIR.raw_os_error(),
        // Of two files; of two calls.
        Op::CopyRange | Op::Commit => -Errno::OPNOTSUPP.raw_os_error(),
    }
}

#[inline]
fn count(mut call: impl FnMut() -> Result<usize, Errno>) -> i32 {
    loop {
        match call() {
            Ok(moved) => return i32::try_from(moved).unwrap_or(i32::MAX),
            Err(Errno::INTR) => {}
            Err(error) => return -error.raw_os_error(),
        }
    }
}

/// Write what is dirty in the range and wait for it, also for what was under way before: what
/// makes the range's data reach the device (but neither metadata nor the device's cache).
pub(crate) const SYNC_RANGE_FLAGS: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE
    | libc::SYNC_FILE_RANGE_WRITE
    | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Give the blocks back, keep the length.
pub(crate) const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// `_IO(0x12, 119)` on all architectures we build for.
const BLKDISCARD: libc::Ioctl = 0x1277;

fn last_error() -> Errno {
    let raw = std::io::Error::last_os_error().raw_os_error();
    Errno::from_raw_os_error(raw.unwrap_or(libc::EIO))
}

pub(crate) fn sync_range(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<usize, Errno> {
    use std::os::fd::AsRawFd;
    let (offset, length) = (signed(offset)?, signed(length)?);
    // SAFETY: no memory is passed; the descriptor is borrowed and so open.
    match unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, length, SYNC_RANGE_FLAGS) } {
        0 => Ok(0),
        _ => Err(last_error()),
    }
}

/// Discards a range. A hole in a file, `BLKDISCARD` on a block device.
pub(crate) fn trim(
    fd: BorrowedFd<'_>,
    kind: Kind,
    offset: u64,
    length: u64,
) -> Result<usize, Errno> {
    use std::os::fd::AsRawFd;
    if kind == Kind::Block {
        let range = [offset, length];
        // SAFETY: the ioctl reads two u64 from the pointer and only that.
        return match unsafe { libc::ioctl(fd.as_raw_fd(), BLKDISCARD, range.as_ptr()) } {
            0 => Ok(0),
            _ => Err(last_error()),
        };
    }
    let flags = rustix::fs::FallocateFlags::from_bits_retain(PUNCH_HOLE as u32);
    rustix::fs::fallocate(fd, flags, offset, length).map(|()| 0)
}

fn signed(value: u64) -> Result<i64, Errno> {
    i64::try_from(value).map_err(|_| Errno::INVAL)
}
