//! The seam between deciding and doing: a [`Device`] takes block requests, finishes them later,
//! and owns the clock by which they are timed.
//!
//! The measuring loop is generic over it and cannot tell a kernel ring from a twin in memory on
//! a virtual clock. So every statistic can be tested on planted truth, and one loop measures,
//! simulates and predicts.
//!
//! The device also owns the I/O buffers, one per [`Slot`]: kernel back ends register them once,
//! twins without data have none.

use std::fmt;

use units::{ByteOffset, Instant};

/// What a request asks for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Op {
    /// Bytes from the device into the slot's buffer.
    Read,
    /// Bytes from the slot's buffer to the device.
    Write,
    /// `fsync` of the request's file; offset and length do not count.
    Fsync,
    /// `fdatasync` of the request's file; offset and length do not count.
    Fdatasync,
    /// `sync_file_range` (write and wait) of the request's range.
    SyncRange,
    /// Discard: `fallocate` punch hole on a file, `BLKDISCARD` on a block device.
    Trim,
    /// Makes a file of `length` bytes in [`FileIndex::DIRECTORY`] and closes it; the offset is its
    /// number there.
    Create,
    /// Asks what file number `offset` of the directory is; one that holds something is read, up
    /// to `length` bytes.
    Stat,
    /// Removes file number `offset` of the directory.
    Delete,
    /// The kernel copies the request's range to where [`Device::aim`] said.
    CopyRange,
    /// What a session waits for: its bytes written and flushed, together with those of all who
    /// wait. No device gets one: the measuring loop plays it as a write and a flush.
    Commit,
}

impl Op {
    /// Every operation, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Read,
        Self::Write,
        Self::Fsync,
        Self::Fdatasync,
        Self::SyncRange,
        Self::Trim,
        Self::Create,
        Self::Stat,
        Self::Delete,
        Self::CopyRange,
        Self::Commit,
    ];

    /// The name used in suites, stores and exports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::SyncRange => "sync-range",
            Self::Trim => "trim",
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Delete => "delete",
            Self::CopyRange => "copy-range",
            Self::Commit => "commit",
        }
    }

    /// Whether a completion of it moves `length` bytes, so that fewer is a short transfer.
    pub const fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::CopyRange | Self::Commit)
    }

    /// Whether it stores what is in the slot's buffer.
    pub const fn stores(self) -> bool {
        matches!(self, Self::Write | Self::Create)
    }

    /// Whether it can change what is stored.
    pub const fn modifies(self) -> bool {
        use Op::{Commit, CopyRange, Create, Delete, Trim, Write};
        matches!(self, Write | Trim | Create | Delete | CopyRange | Commit)
    }

    /// Whether it is about a file as a whole in [`FileIndex::DIRECTORY`], its offset a number.
    pub const fn in_directory(self) -> bool {
        matches!(self, Self::Create | Self::Stat | Self::Delete)
    }

    /// For people: `read at byte 4096`, `create of file 17`.
    pub fn at(self, offset: u64) -> String {
        if self.in_directory() {
            return format!("{self} of file {offset}");
        }
        format!("{self} at byte {offset}")
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A place for one request in flight, and the I/O buffer that goes with it. The caller hands a
/// slot out to at most one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// A file of the device's file set, from 0. A block device is a set of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIndex(pub u32);

impl FileIndex {
    /// In place of a file: the directory in which files are made, looked at and removed. Of what
    /// is done to files it takes flushes.
    pub const DIRECTORY: Self = Self(u32::MAX);
}

/// One block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where in the file.
    pub offset: ByteOffset,
    /// How many bytes; at most 1 GiB. `u32`, not `Bytes`, since this struct is the hot path's.
    pub length: u32,
    /// Unique among the requests in flight on this device.
    pub slot: Slot,
    /// Which file.
    pub file: FileIndex,
    /// What to do.
    pub op: Op,
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot of the request that finished.
    pub slot: Slot,
    /// As the kernel has it: bytes moved (0 for operations that move none), or minus an errno.
    result: i32,
}

/// A Linux error number, always positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// Interrupted.
    pub const EINTR: Self = Self(4);
    /// Input/output error.
    pub const EIO: Self = Self(5);
    /// No such device or address.
    pub const ENXIO: Self = Self(6);
    /// Try again.
    pub const EAGAIN: Self = Self(11);
    /// No such device.
    pub const ENODEV: Self = Self(19);
    /// Invalid argument.
    pub const EINVAL: Self = Self(22);
    /// No space left on device.
    pub const ENOSPC: Self = Self(28);
    /// Read-only file system.
    pub const EROFS: Self = Self(30);
    /// Operation not supported.
    pub const EOPNOTSUPP: Self = Self(95);
    /// Operation cancelled.
    pub const ECANCELED: Self = Self(125);

    /// The symbol of those met in storage work.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "EPERM",
            2 => "ENOENT",
            4 => "EINTR",
            5 => "EIO",
            6 => "ENXIO",
            9 => "EBADF",
            11 => "EAGAIN",
            12 => "ENOMEM",
            13 => "EACCES",
            14 => "EFAULT",
            16 => "EBUSY",
            17 => "EEXIST",
            18 => "EXDEV",
            19 => "ENODEV",
            20 => "ENOTDIR",
            22 => "EINVAL",
            24 => "EMFILE",
            27 => "EFBIG",
            28 => "ENOSPC",
            30 => "EROFS",
            38 => "ENOSYS",
            39 => "ENOTEMPTY",
            61 => "ENODATA",
            84 => "EILSEQ",
            95 => "EOPNOTSUPP",
            110 => "ETIMEDOUT",
            116 => "ESTALE",
            117 => "EUCLEAN",
            121 => "EREMOTEIO",
            122 => "EDQUOT",
            123 => "ENOMEDIUM",
            125 => "ECANCELED",
            _ => return None,
        })
    }
}

/// `EIO (Input/output error)`: the symbol for scripts, the system's words for people.
impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        let words = text.split(" (os error").next().unwrap_or(&text);
        match self.name() {
            Some(name) => write!(f, "{name} ({words})"),
            None => write!(f, "error {} ({words})", self.0),
        }
    }
}

impl Completion {
    /// A request that moved `bytes`.
    #[inline]
    pub const fn moved(slot: Slot, bytes: u32) -> Self {
        debug_assert!(bytes <= i32::MAX as u32);
        Self { slot, result: bytes as i32 }
    }

    /// A request that failed.
    #[inline]
    pub const fn failed(slot: Slot, errno: Errno) -> Self {
        Self { slot, result: -errno.0 }
    }

    /// From the kernel's own form: not negative is bytes, negative is minus an errno.
    #[inline]
    pub const fn from_raw(slot: Slot, result: i32) -> Self {
        Self { slot, result }
    }

    /// Bytes moved, or why not.
    #[inline]
    pub const fn result(self) -> Result<u32, Errno> {
        if self.result >= 0 {
            Ok(self.result as u32)
        } else {
            // No errno is i32::MIN; saturate instead of overflowing on a broken device.
            Err(Errno(self.result.saturating_neg()))
        }
    }
}

/// The device has no room for a request: reap first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The device as a whole failed; single requests fail in their [`Completion`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A call into the back end failed.
    #[error("{call} failed: {errno}")]
    Call {
        /// The system call or step.
        call: &'static str,
        /// Its error.
        errno: Errno,
    },
    /// It is not there any more.
    #[error("the device is gone: {errno}")]
    Gone {
        /// The error by which that was seen.
        errno: Errno,
    },
}

/// Something that takes block requests and finishes them later.
pub trait Device {
    /// Queues one request. `Err(Full)` hands it back: reap first. A queued request may start at
    /// once or only at the next [`Self::reap`].
    fn submit(&mut self, request: Request) -> Result<(), Full>;

    /// Where the next [`Op::CopyRange`] of `slot` goes; said before it is submitted. It is not in
    /// the request, which all others would have to carry. Devices that hold no data need not
    /// listen.
    fn aim(&mut self, _slot: Slot, _file: FileIndex, _offset: ByteOffset) {}

    /// Starts what is queued and appends finished requests to `done`: waits until at least `min`
    /// have been appended by this call or until the clock reaches `until`, whichever is first.
    /// Never waits when `min` is 0; never appends more than `done` has spare capacity, so that
    /// the caller's vector does not grow. With nothing in flight it returns at once, except that
    /// it waits for `until` if `min` is not 0 and `until` is not [`Instant::MAX`] (that is how
    /// the loop sleeps).
    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError>;

    /// Monotonic; virtual on simulators.
    fn now(&self) -> Instant;

    /// The I/O buffer of `slot`, as long as the device was opened with, or empty on devices
    /// that hold no data. Not to be touched while a request on the slot is in flight.
    fn buffer(&mut self, slot: Slot) -> &mut [u8];
}

/// Where a twin gets its time from.
pub trait Clock {
    /// Monotonic.
    fn now(&self) -> Instant;
    /// Lets time pass until `until` (at least). Returns at once if it is past.
    fn wait_until(&mut self, until: Instant);
}

/// Time that passes only when someone waits for it.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    now: Instant,
}

impl Clock for VirtualClock {
    #[inline]
    fn now(&self) -> Instant {
        self.now
    }
    #[inline]
    fn wait_until(&mut self, until: Instant) {
        self.now = self.now.max(until);
    }
}

mod faulty;
mod hash;
mod memory;
pub mod model;
mod null;
mod recording;
mod rng;
mod text;
mod twin;

pub use faulty::{Fault, FaultRange, FaultRule, Faulty, VanishSeen};
pub use memory::{Memory, MemoryShape};
pub use model::{Model, ModelError, ModelSpec};
pub use null::Null;
pub use recording::{RecordedRequest, Recording};
pub use twin::TwinSpec;
