//! Which parts of a file are shared with other files.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `struct fiemap_extent` of `<linux/fiemap.h>`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// `struct fiemap` without its extents: the request's number has the size of this part.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

#[repr(C)]
struct Map {
    head: Head,
    extents: [Extent; AT_ONCE],
}

/// So many extents are asked for with one call.
const AT_ONCE: usize = 256;
const FIEMAP: libc::Ioctl = libc::_IOWR::<Head>(b'f' as u32, 11);
const LAST: u32 = 0x1;
const SHARED: u32 = 0x2000;

/// How much of the first `length` bytes of a file lies in extents that other files have as well: of
/// a snapshot, a copy by `cp --reflink`. A write to these takes new space.
///
/// An error of kind `Unsupported` where the file system has no `FIEMAP`.
pub fn shared_bytes(file: &File, length: u64) -> io::Result<u64> {
    let mut map = Box::new(Map { head: Head::default(), extents: [Extent::default(); AT_ONCE] });
    let (mut start, mut shared) = (0, 0_u64);
    while start < length {
        map.head =
            Head { start, length: length - start, extent_count: AT_ONCE as u32, ..Head::default() };
        // SAFETY: the kernel reads the head and writes at most `extent_count` extents behind it,
        // which is what `Map` has room for; it is valid and ours alone for that long.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP, &raw mut *map) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = map.extents.iter().take(map.head.mapped_extents as usize);
        let mut next = start;
        let mut is_last = true;
        for extent in found {
            let end = extent.logical.saturating_add(extent.length);
            if extent.flags & SHARED != 0 {
                let from = extent.logical.max(start);
                shared = shared.saturating_add(end.min(length).saturating_sub(from));
            }
            next = next.max(end);
            is_last = extent.flags & LAST != 0;
        }
        if is_last || next <= start {
            break;
        }
        start = next;
    }
    Ok(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_as_long_as_the_kernel_has_them() {
        assert_eq!((size_of::<Head>(), size_of::<Extent>()), (32, 56));
    }

    #[test]
    fn a_file_of_its_own_shares_nothing() {
        let path = std::env::temp_dir().join(format!("plimsoll-extents-{}", std::process::id()));
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        match shared_bytes(&File::open(&path).unwrap(), 1 << 20) {
            Err(error) => println!("skipped: no FIEMAP here: {error}"),
            Ok(shared) => assert_eq!(shared, 0),
        }
        std::fs::remove_file(&path).unwrap();
    }
}
