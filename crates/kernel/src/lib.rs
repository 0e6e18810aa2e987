//! System calls that no safe library wraps, each behind a safe function: what a loop device lies
//! on, whether anybody has a file open for writing, and which threads have one table of open files.
//! And which parts of a file are shared, and the kernel's list of locks.

mod extents;
mod locks;

pub use extents::shared_bytes;
pub use locks::{Lock, LockAccess, LockKind, locks, others_lock};

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// What a loop device shows, by numbers that are the same under every name and in every mount
/// namespace. See `loop(4)`, `LOOP_GET_STATUS64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopStatus {
    /// `st_dev` of the file behind it.
    pub device: u64,
    /// `st_ino` of the file behind it.
    pub inode: u64,
    /// `st_rdev`: not 0 if a block device is behind it.
    pub special: u64,
    /// First byte shown.
    pub offset: u64,
    /// Bytes shown; 0 for all up to the end.
    pub size_limit: u64,
}

/// `struct loop_info64` of `<linux/loop.h>`.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    special: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

const LOOP_GET_STATUS64: u32 = 0x4C05;
/// `fcntl(2)`: which signal says that a lease is broken.
const F_SETSIG: libc::c_int = 10;

/// What an open loop device shows; an error of kind `ENXIO` if nothing is attached.
pub fn loop_status(device: &File) -> io::Result<LoopStatus> {
    let mut info = MaybeUninit::<LoopInfo64>::zeroed();
    // SAFETY: the kernel writes at most one `loop_info64` through the pointer, which is valid for
    // that long. Another kind of device answers with an error and writes nothing.
    let answer =
        unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all fields are plain integers, for which zeros are valid, and the whole was zeroed.
    let info = unsafe { info.assume_init() };
    Ok(LoopStatus {
        device: decoded(info.device),
        inode: info.inode,
        special: decoded(info.special),
        offset: info.offset,
        size_limit: info.size_limit,
    })
}

/// The kernel's own encoding of a device number (`huge_encode_dev`) as `stat` has it.
fn decoded(kernel: u64) -> u64 {
    let major = (kernel >> 8) & 0xfff;
    let minor = (kernel & 0xff) | ((kernel >> 12) & 0xf_ff00);
    libc::makedev(major as libc::c_uint, minor as libc::c_uint)
}

/// Whether two threads have one table of open files. A thread that has ended has none. An error where
/// the kernel does not say: without the right to look into both, and in sandboxes.
///
/// * `one`, `other`: their numbers in the PID namespace of this process.
pub fn share_open_files(one: u32, other: u32) -> io::Result<bool> {
    /// `KCMP_FILES` of `<linux/kcmp.h>`.
    const FILES: libc::c_long = 2;
    let (one, other) = (libc::c_long::from(one), libc::c_long::from(other));
    // SAFETY: this command takes integers and touches no memory of ours.
    let answer = unsafe { libc::syscall(libc::SYS_kcmp, one, other, FILES, 0, 0) };
    match answer {
        0 => Ok(true),
        1.. => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether anybody has the file open for writing, or mapped for it: this process, another in any
/// namespace, or the kernel (a loop device, a file server).
///
/// Asks for a read lease, which the kernel grants only where there is no writer, and gives it
/// back. An error where leases are not to be had: another user's file, network and FUSE file
/// systems.
///
/// * `file`: open for reading only.
pub fn has_writer(file: &File) -> io::Result<bool> {
    let descriptor = file.as_raw_fd();
    // Whoever opens the file for writing at this moment has a signal sent to us. The default one
    // ends the process; this one is ignored unless somebody asks for it.
    // SAFETY: these commands take integers and touch no memory of ours.
    let lease = |command: libc::c_int, argument: libc::c_int| unsafe {
        libc::fcntl(descriptor, command, argument)
    };
    if lease(F_SETSIG, libc::SIGURG) != 0 {
        return Err(io::Error::last_os_error());
    }
    if lease(libc::F_SETLEASE, libc::F_RDLCK as libc::c_int) != 0 {
        let error = io::Error::last_os_error();
        let is_taken = error.raw_os_error() == Some(libc::EAGAIN);
        return if is_taken { Ok(true) } else { Err(error) };
    }
    if lease(libc::F_SETLEASE, libc::F_UNLCK as libc::c_int) != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn device_numbers_are_as_stat_has_them() {
        // 253:300 in the kernel's encoding: minor 0x12c is split around the major.
        assert_eq!(
            decoded((300 & 0xff) | (253 << 8) | ((300 & !0xff) << 12)),
            libc::makedev(253, 300)
        );
        assert_eq!(decoded(0), 0);
    }

    #[test]
    fn a_writer_is_seen_and_a_reader_is_none() {
        let path = std::env::temp_dir().join(format!("plimsoll-lease-{}", std::process::id()));
        let writer = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
        let reader = File::open(&path).unwrap();
        let other = File::open(&path).unwrap();
        match has_writer(&reader) {
            Err(error) => println!("skipped: no leases here: {error}"),
            Ok(seen) => {
                assert!(seen);
                drop(writer);
                assert!(!has_writer(&reader).unwrap());
                assert!(!has_writer(&other).unwrap(), "the first lease was given back");
            }
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn threads_share_their_open_files_and_processes_do_not() {
        let (ours, parent) = (std::process::id(), std::os::unix::process::parent_id());
        match share_open_files(ours, ours) {
            Err(error) => println!("skipped: no kcmp here: {error}"),
            Ok(same) => {
                assert!(same);
                assert!(!share_open_files(ours, parent).unwrap_or(false));
            }
        }
        assert!(share_open_files(ours, u32::MAX).is_err());
    }

    #[test]
    fn what_is_no_loop_device_says_so() {
        let file = File::open("/proc/self/exe").unwrap();
        assert!(loop_status(&file).is_err());
    }
}
