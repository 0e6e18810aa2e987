//! The kernel's io_uring interface: numbers and layouts from `include/uapi/linux/io_uring.h`.
//!
//! Not through the `io-uring` crate: its rings hide their pointers, so that every submission
//! loads and stores the shared head and tail and copies the entry, and its registered ring
//! descriptor lives in a borrowed value that cannot be kept beside the ring.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use device::Errno;

pub(crate) const SETUP_IOPOLL: u32 = 1 << 0;
pub(crate) const SETUP_SQPOLL: u32 = 1 << 1;
pub(crate) const SETUP_SUBMIT_ALL: u32 = 1 << 7;
pub(crate) const SETUP_COOP_TASKRUN: u32 = 1 << 8;
pub(crate) const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
pub(crate) const SETUP_DEFER_TASKRUN: u32 = 1 << 13;
pub(crate) const SETUP_NO_SQARRAY: u32 = 1 << 16;

pub(crate) const FEAT_SINGLE_MMAP: u32 = 1 << 0;
pub(crate) const FEAT_EXT_ARG: u32 = 1 << 8;
pub(crate) const FEAT_SQPOLL_NONFIXED: u32 = 1 << 7;
pub(crate) const FEAT_MIN_TIMEOUT: u32 = 1 << 15;
pub(crate) const FEAT_NO_IOWAIT: u32 = 1 << 17;

pub(crate) const ENTER_GETEVENTS: u32 = 1 << 0;
pub(crate) const ENTER_SQ_WAKEUP: u32 = 1 << 1;
pub(crate) const ENTER_EXT_ARG: u32 = 1 << 3;
pub(crate) const ENTER_REGISTERED_RING: u32 = 1 << 4;
pub(crate) const ENTER_ABS_TIMER: u32 = 1 << 5;
pub(crate) const ENTER_NO_IOWAIT: u32 = 1 << 7;

pub(crate) const SQ_NEED_WAKEUP: u32 = 1 << 0;

pub(crate) const OP_READV: u8 = 1;
pub(crate) const OP_WRITEV: u8 = 2;
pub(crate) const OP_FSYNC: u8 = 3;
pub(crate) const OP_READ_FIXED: u8 = 4;
pub(crate) const OP_WRITE_FIXED: u8 = 5;
pub(crate) const OP_SYNC_FILE_RANGE: u8 = 8;
pub(crate) const OP_ASYNC_CANCEL: u8 = 14;
pub(crate) const OP_FALLOCATE: u8 = 17;
pub(crate) const OP_READ: u8 = 22;
pub(crate) const OP_WRITE: u8 = 23;
pub(crate) const OP_URING_CMD: u8 = 46;

pub(crate) const FSYNC_DATASYNC: u32 = 1;
/// Cancel everything, whatever its file and user data (Linux 5.19).
pub(crate) const ASYNC_CANCEL_ALL_ANY: u32 = 1 << 0 | 1 << 2;
/// `_IO(0x12, 0)`: discard as a ring command (Linux 6.12).
pub(crate) const BLOCK_URING_CMD_DISCARD: u64 = 0x1200;

pub(crate) const SQE_FIXED_FILE: u8 = 1 << 0;
pub(crate) const SQE_ASYNC: u8 = 1 << 4;

const REGISTER_BUFFERS: u32 = 0;
const REGISTER_FILES: u32 = 2;
const UNREGISTER_FILES: u32 = 3;
const REGISTER_PROBE: u32 = 8;
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

const OFF_SQ_RING: u64 = 0;
const OFF_CQ_RING: u64 = 0x800_0000;
const OFF_SQES: u64 = 0x1000_0000;

/// A submission queue entry with the unions flattened to what we use.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Sqe {
    pub(crate) opcode: u8,
    pub(crate) flags: u8,
    pub(crate) ioprio: u16,
    pub(crate) fd: i32,
    /// Offset; the command's number for ring commands.
    pub(crate) off: u64,
    /// Address; the length for `fallocate`; the start for discards.
    pub(crate) addr: u64,
    /// Bytes; vectors for vectored operations; the mode for `fallocate`.
    pub(crate) len: u32,
    /// Flags of the operation.
    pub(crate) op_flags: u32,
    pub(crate) user_data: u64,
    pub(crate) buf_index: u16,
    pub(crate) personality: u16,
    pub(crate) file_index: u32,
    /// The length of discards.
    pub(crate) addr3: u64,
    pub(crate) pad: u64,
}

const _: () = assert!(size_of::<Sqe>() == 64);

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Cqe {
    pub(crate) user_data: u64,
    pub(crate) res: i32,
    pub(crate) flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SqOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    resv1: u32,
    user_addr: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CqOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    cqes: u32,
    flags: u32,
    resv1: u32,
    user_addr: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Params {
    sq_entries: u32,
    cq_entries: u32,
    pub(crate) flags: u32,
    sq_thread_cpu: u32,
    pub(crate) sq_thread_idle: u32,
    pub(crate) features: u32,
    wq_fd: u32,
    resv: [u32; 3],
    sq_off: SqOffsets,
    cq_off: CqOffsets,
}

const _: () = assert!(size_of::<Params>() == 120);

/// The extended argument of `io_uring_enter`.
#[repr(C)]
pub(crate) struct GetEvents {
    pub(crate) sigmask: u64,
    pub(crate) sigmask_size: u32,
    pub(crate) min_wait_us: u32,
    pub(crate) timeout: u64,
}

/// `__kernel_timespec`: 64 bits on every architecture.
#[repr(C)]
pub(crate) struct Timespec {
    pub(crate) seconds: i64,
    pub(crate) nanos: i64,
}

fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

fn mmap(fd: BorrowedFd<'_>, length: usize, offset: u64) -> Result<Mapping, Errno> {
    let prot = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
    let flags = rustix::mm::MapFlags::SHARED | rustix::mm::MapFlags::POPULATE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, prot, flags, fd, offset) }
        .map_err(|e| Errno(e.raw_os_error()))?;
    let base = NonNull::new(base.cast()).ok_or(Errno(libc::ENOMEM))?;
    Ok(Mapping { base, length })
}

struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// A place inside. The kernel gave `offset` for this mapping.
    fn at<T>(&self, offset: u32) -> NonNull<T> {
        debug_assert!(offset as usize + size_of::<T>() <= self.length);
        // SAFETY: inside the mapping: its length was computed from these very offsets.
        unsafe { self.base.add(offset as usize).cast() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and dropped last, with the ring that points into it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// An open ring: its descriptor and its shared memory.
pub(crate) struct RawRing {
    pub(crate) fd: OwnedFd,
    pub(crate) features: u32,
    pub(crate) sq_head: NonNull<AtomicU32>,
    pub(crate) sq_tail: NonNull<AtomicU32>,
    pub(crate) sq_flags: NonNull<AtomicU32>,
    pub(crate) sq_mask: u32,
    pub(crate) sqes: NonNull<Sqe>,
    pub(crate) cq_head: NonNull<AtomicU32>,
    pub(crate) cq_tail: NonNull<AtomicU32>,
    pub(crate) cq_mask: u32,
    pub(crate) cqes: NonNull<Cqe>,
    _maps: [Option<Mapping>; 3],
}

impl RawRing {
    /// `io_uring_setup` and the mappings.
    pub(crate) fn new(entries: u32, flags: u32, idle_ms: u32) -> Result<Self, Errno> {
        let mut params = Params { flags, sq_thread_idle: idle_ms, ..Params::default() };
        // SAFETY: `params` is what the kernel reads and writes; nothing else is passed.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &raw mut params) };
        if fd < 0 {
            return Err(last_errno());
        }
        // SAFETY: the kernel just gave us this descriptor (it has O_CLOEXEC already).
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        Self::map(fd, &params)
    }

    fn map(fd: OwnedFd, p: &Params) -> Result<Self, Errno> {
        use std::os::fd::AsFd;
        let sq_len = p.sq_off.array as usize + p.sq_entries as usize * size_of::<u32>();
        let cq_len = p.cq_off.cqes as usize + p.cq_entries as usize * size_of::<Cqe>();
        let single = p.features & FEAT_SINGLE_MMAP != 0;
        let length = if single { sq_len.max(cq_len) } else { sq_len };
        let sq = mmap(fd.as_fd(), length, OFF_SQ_RING)?;
        let cq = if single { None } else { Some(mmap(fd.as_fd(), cq_len, OFF_CQ_RING)?) };
        let sqes = mmap(fd.as_fd(), p.sq_entries as usize * size_of::<Sqe>(), OFF_SQES)?;
        if p.flags & SETUP_NO_SQARRAY == 0 {
            // Entry i of the indirection is submission entry i, for ever.
            let array = sq.at::<u32>(p.sq_off.array);
            for i in 0..p.sq_entries {
                // SAFETY: the array has `sq_entries` places, all inside the mapping.
                unsafe { array.add(i as usize).write(i) };
            }
        }
        let cq_map = cq.as_ref().unwrap_or(&sq);
        Ok(Self {
            features: p.features,
            sq_head: sq.at(p.sq_off.head),
            sq_tail: sq.at(p.sq_off.tail),
            sq_flags: sq.at(p.sq_off.flags),
            sq_mask: p.sq_entries - 1,
            sqes: sqes.base.cast(),
            cq_head: cq_map.at(p.cq_off.head),
            cq_tail: cq_map.at(p.cq_off.tail),
            cq_mask: p.cq_entries - 1,
            cqes: cq_map.at(p.cq_off.cqes),
            fd,
            _maps: [Some(sq), cq, Some(sqes)],
        })
    }

    /// `io_uring_register` with an array.
    ///
    /// # Safety
    /// `arg` and `count` are what the operation wants.
    unsafe fn register(
        &self,
        op: u32,
        arg: *const libc::c_void,
        count: usize,
    ) -> Result<i32, Errno> {
        let count = u32::try_from(count).map_err(|_| Errno::EINVAL)?;
        let fd = self.fd.as_raw_fd();
        // SAFETY: the caller's promise.
        let result = unsafe { libc::syscall(libc::SYS_io_uring_register, fd, op, arg, count) };
        if result < 0 { Err(last_errno()) } else { Ok(result as i32) }
    }

    pub(crate) fn register_files(&self, fds: &[i32]) -> Result<(), Errno> {
        // SAFETY: an array of descriptors and its length.
        unsafe { self.register(REGISTER_FILES, fds.as_ptr().cast(), fds.len()) }.map(drop)
    }

    /// Gives the files back now. Closing the ring does so too, but some time later: a block
    /// device opened exclusively would still be held.
    pub(crate) fn unregister_files(&self) {
        // SAFETY: it takes no argument. It fails where none are registered.
        let _ = unsafe { self.register(UNREGISTER_FILES, std::ptr::null(), 0) };
    }

    /// # Safety
    /// The memory stays mapped and is not used as Rust values while requests use it.
    pub(crate) unsafe fn register_buffers(&self, buffers: &[libc::iovec]) -> Result<(), Errno> {
        // SAFETY: an array of vectors and its length; the caller's promise for what they name.
        unsafe { self.register(REGISTER_BUFFERS, buffers.as_ptr().cast(), buffers.len()) }.map(drop)
    }

    /// Registers the ring's own descriptor for this thread; the answer is its index.
    pub(crate) fn register_ring(&self) -> Result<i32, Errno> {
        let mut update = RingUpdate { offset: u32::MAX, resv: 0, data: self.data() };
        // SAFETY: one update, which the kernel also writes to.
        unsafe { self.register(REGISTER_RING_FDS, (&raw mut update).cast(), 1) }?;
        Ok(update.offset as i32)
    }

    pub(crate) fn unregister_ring(&self, index: i32) {
        let update = RingUpdate { offset: index as u32, resv: 0, data: 0 };
        // SAFETY: one update. A failure leaves a place taken until the thread ends.
        let _ = unsafe { self.register(UNREGISTER_RING_FDS, (&raw const update).cast(), 1) };
    }

    fn data(&self) -> u64 {
        self.fd.as_raw_fd() as u64
    }

    /// Which operations the kernel has; `None` before Linux 5.6, which cannot be asked.
    pub(crate) fn probe(&self) -> Option<Operations> {
        let mut probe = Probe::default();
        // SAFETY: a probe with room for 256 operations.
        unsafe { self.register(REGISTER_PROBE, (&raw mut probe).cast(), 256) }.ok()?;
        let mut have = [false; 256];
        for op in probe.ops.iter().take(usize::from(probe.count)) {
            have[usize::from(op.op)] = op.flags & 1 != 0;
        }
        Some(Operations(have))
    }
}

/// The operations that a kernel has, by number.
pub(crate) struct Operations([bool; 256]);

impl Operations {
    pub(crate) const fn has(&self, op: u8) -> bool {
        self.0[op as usize]
    }
}

#[repr(C)]
struct RingUpdate {
    offset: u32,
    resv: u32,
    data: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ProbeOp {
    op: u8,
    resv: u8,
    flags: u16,
    resv2: u32,
}

#[repr(C)]
struct Probe {
    last_op: u8,
    count: u8,
    resv: u16,
    resv2: [u32; 3],
    ops: [ProbeOp; 256],
}

impl Default for Probe {
    fn default() -> Self {
        Self { last_op: 0, count: 0, resv: 0, resv2: [0; 3], ops: [ProbeOp::default(); 256] }
    }
}

/// `io_uring_enter`; the answer is how many entries it took.
///
/// # Safety
/// `fd` is a ring (or a registered ring's index, with that flag); the entries to submit name
/// memory that stays valid until they complete.
#[inline]
pub(crate) unsafe fn enter(
    fd: i32,
    submit: u32,
    wait_for: u32,
    flags: u32,
    arg: Option<&GetEvents>,
) -> Result<u32, Errno> {
    let (arg, size) = match arg {
        Some(arg) => (std::ptr::from_ref(arg), size_of::<GetEvents>()),
        None => (std::ptr::null(), 0),
    };
    // SAFETY: the caller's promise; `arg` is null or lives through the call.
    let result =
        unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, submit, wait_for, flags, arg, size) };
    if result < 0 { Err(last_errno()) } else { Ok(result as u32) }
}
