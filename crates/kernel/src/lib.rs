//! System calls that no safe library wraps, each behind a safe function: what a loop device lies
//! on, whether anybody else has a file open, and that this process answers writes of the kernel.

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
/// `prctl(2)`.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

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

/// Whether nobody else has the file open, in whatever way: no process in any namespace, no memory map,
/// no running program, and not the kernel (swap, a loop device, a mounted image, an overlay above).
///
/// Asks for a write lease, which the kernel grants only if this is the only open file description
/// of the file, and gives it back at once. An error where leases are not to be had: another user's
/// file, devices, and file systems without leases.
pub fn lease(file: &File) -> io::Result<bool> {
    let descriptor = file.as_raw_fd();
    // SAFETY: these commands take integers and touch no memory of ours.
    let ask = |command: libc::c_int, argument: libc::c_int| match unsafe {
        libc::fcntl(descriptor, command, argument)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // Whoever opens the file at this moment has a signal sent to us. The default one ends the
    // process; this one is ignored unless somebody asks for it.
    ask(F_SETSIG, libc::SIGURG)?;
    match ask(libc::F_SETLEASE, libc::F_WRLCK as libc::c_int) {
        Ok(()) => ask(libc::F_SETLEASE, libc::F_UNLCK as libc::c_int).map(|()| true),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(false),
        Err(error) => Err(error),
    }
}

/// From now on this thread, and those that it starts, wait for no writes of others when the kernel is short of
/// memory: those may be the ones that this process is to answer. Needs the right `CAP_SYS_RESOURCE`.
pub fn answers_writes() -> io::Result<()> {
    // SAFETY: this command takes integers and touches no memory of ours.
    match unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_no_loop_device_says_so() {
        let file = File::open("/proc/self/exe").unwrap();
        assert!(loop_status(&file).is_err());
    }
}
