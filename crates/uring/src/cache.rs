//! The page cache: emptying it of a file, and seeing how much of a file is in it.

use std::fs;
use std::os::fd::{AsFd, AsRawFd};

use device::Errno;
use rustix::fs::Advice;
use units::{ByteOffset, Bytes};

use crate::files::{FileSet, Kind, OpenFile};

/// Why the cache could not be handled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {errno}")]
pub struct CacheError {
    /// The system call or step.
    pub call: &'static str,
    /// Why.
    pub errno: Errno,
}

impl CacheError {
    fn of(call: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |e| Self { call, errno: Errno(e.raw_os_error()) }
    }

    /// What the user may do about it.
    pub fn hint(&self) -> Option<String> {
        (self.call == "drop_caches").then(|| "it needs root: run as root or use purge".into())
    }
}

/// Throws the clean pages of all files of the set out of the cache, after writing the dirty ones
/// (`fdatasync` where the set is writable, then `posix_fadvise(DONTNEED)`). Pages that are mapped
/// or in use stay; [`residency`] tells.
pub fn purge(files: &FileSet) -> Result<(), CacheError> {
    for file in files.files().iter().filter(|file| file.kind != Kind::Character) {
        // A set opened for reading may be dirty all the same: from whoever wrote it. Linux lets
        // one sync any descriptor.
        rustix::io::retry_on_intr(|| rustix::fs::fdatasync(file.as_fd()))
            .map_err(CacheError::of("fdatasync"))?;
        rustix::fs::fadvise(file.as_fd(), 0, None, Advice::DontNeed)
            .map_err(CacheError::of("fadvise"))?;
    }
    Ok(())
}

/// Throws all clean pages, directory entries and inodes of the machine out (`drop_caches` = 3),
/// after `sync`. Needs root.
pub fn drop_caches() -> Result<(), CacheError> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| CacheError {
        call: "drop_caches",
        errno: Errno(error.raw_os_error().unwrap_or(libc::EIO)),
    })
}

/// How [`residency`] was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidencyMethod {
    /// `cachestat`, Linux 6.5: exact.
    Cachestat,
    /// `mincore` on a mapping: exact, but all "resident" for files that the user neither owns nor
    /// may write.
    Mincore,
}

/// How much of a range is in the page cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residency {
    /// Share of the range's pages that are cached, in `0.0..=1.0`.
    pub cached: f64,
    /// Cached pages that are dirty or under writeback; `None` where the kernel does not say.
    pub dirty_pages: Option<u64>,
    /// Who says so.
    pub method: ResidencyMethod,
}

/// How much of `length` bytes from `offset` of `file` is in the page cache. Does not change it.
/// Nothing (an empty range, a character device) is not cached.
pub fn residency(
    file: &OpenFile,
    offset: ByteOffset,
    length: Bytes,
) -> Result<Residency, CacheError> {
    let page = rustix::param::page_size() as u64;
    let start = offset.get() / page * page;
    let end = offset.get().saturating_add(length.get());
    let pages = end.saturating_sub(start).div_ceil(page);
    if pages == 0 || file.kind == Kind::Character {
        return Ok(Residency {
            cached: 0.0,
            dirty_pages: None,
            method: ResidencyMethod::Cachestat,
        });
    }
    match cachestat(file, start, pages * page) {
        Ok(stat) => Ok(Residency {
            cached: (stat.cached as f64 / pages as f64).min(1.0),
            dirty_pages: Some(stat.dirty + stat.writeback),
            method: ResidencyMethod::Cachestat,
        }),
        // Not there before 6.5; hidden by filters that answer EPERM; not for all files.
        Err(_) => Ok(Residency {
            cached: mincore(file, start, pages, page)? as f64 / pages as f64,
            dirty_pages: None,
            method: ResidencyMethod::Mincore,
        }),
    }
}

#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The same number on every architecture (calls since 5.x share one table).
const SYS_CACHESTAT: libc::c_long = 451;

fn cachestat(file: &OpenFile, start: u64, length: u64) -> Result<CacheStat, ()> {
    let range = [start, length];
    let mut stat = CacheStat::default();
    // SAFETY: the kernel reads two u64 from `range` and writes one struct of five u64 to `stat`.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_fd().as_raw_fd(),
            range.as_ptr(),
            &raw mut stat,
            0 as libc::c_uint,
        )
    };
    if result == 0 { Ok(stat) } else { Err(()) }
}

/// Mapped and asked about piece by piece, so that a terabyte needs neither address space nor a
/// gigabyte of answers at once.
const PIECE_PAGES: u64 = 1 << 18;

fn mincore(file: &OpenFile, start: u64, pages: u64, page: u64) -> Result<u64, CacheError> {
    let mut resident = 0;
    let mut answer = vec![0_u8; pages.min(PIECE_PAGES) as usize];
    let mut done = 0;
    while done < pages {
        let piece = (pages - done).min(PIECE_PAGES);
        let length = (piece * page) as usize;
        // SAFETY: a new mapping at an address of the kernel's choice; it is never accessed.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::SHARED,
                file.as_fd(),
                start + done * page,
            )
        }
        .map_err(CacheError::of("mmap"))?;
        // SAFETY: `base` and `length` are the mapping just made, `answer` has a byte per page.
        let result = unsafe { libc::mincore(base, length, answer.as_mut_ptr().cast()) };
        let failed = (result != 0).then(std::io::Error::last_os_error);
        // SAFETY: the mapping just made, not used afterwards.
        let _ = unsafe { rustix::mm::munmap(base, length) };
        if let Some(error) = failed {
            let errno = Errno(error.raw_os_error().unwrap_or(libc::EIO));
            return Err(CacheError { call: "mincore", errno });
        }
        resident += answer[..piece as usize].iter().filter(|&&byte| byte & 1 != 0).count() as u64;
        done += piece;
    }
    Ok(resident)
}
