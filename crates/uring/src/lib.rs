//! Kernel back ends behind the seam: io_uring, libaio, blocking calls, mmap; and what a runner
//! needs of real files and threads. The only room with `unsafe`.
//!
//! [`FileSet::open`] opens targets; [`open`] makes a back end on the thread that will use it;
//! [`AnyBackend::visit`] hands it to generic code, so that the measuring loop is compiled once per
//! back end and no call per request is dynamic. Design and figures: `docs/back-ends.md`.

#[cfg(not(target_os = "linux"))]
compile_error!("the back ends are Linux system calls");

mod aio;
mod blocking;
mod buffers;
mod cache;
mod clock;
mod copy;
mod directory;
mod files;
mod host;
mod lease;
mod mapped;
mod ops;
mod ring;

use std::path::PathBuf;
use std::sync::Arc;

use device::{Device, Errno, FileIndex};
use units::Bytes;

pub use aio::Aio;
pub use blocking::{Pool, Single};
pub use buffers::Fill;
pub use cache::{CacheError, Residency, ResidencyMethod, drop_caches, purge, residency};
pub use clock::MonotonicClock;
pub use copy::{CopyError, Sharing, Spot};
pub use directory::{Directory, FileName, FileNames};
pub use files::{
    AlignmentSource, Allocation, Create, Direct, DirectWish, FileError, FileSet, Kind, OpenError,
    OpenFile, OpenSpec, WriteThrough, allocate, block_device_size, discard, mark, set_mark,
    sync_file_system,
};
pub use host::{Cpu, ThreadUsage, affinity, process_usage, set_affinity, thread_id, thread_usage};
pub use lease::nobody_else_has_open;
pub use mapped::Mapped;
pub use ring::Ring;

/// Which back end to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// What costs least here: blocking calls at depth 1; else io_uring, or libaio on targets
    /// that a ring could only serve through worker threads; where io_uring is refused, libaio
    /// for direct I/O, else blocking calls on threads.
    #[default]
    Auto,
    /// A ring.
    IoUring,
    /// A ring with a kernel thread that takes submissions.
    IoUringSqpoll,
    /// A ring whose waits poll the device's queue.
    IoUringIopoll,
    /// `io_submit`.
    Libaio,
    /// `pread` and `pwrite`, on threads where the depth is above 1.
    Blocking,
    /// Loads and stores through `mmap`.
    Mmap,
}

/// Facilities of the kernel that may be used, all by default. Taking some away shows what each
/// is worth, and what happens where it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allow {
    /// Rings at all; without, as if a filter refused `io_uring_setup` with `EPERM`.
    pub io_uring: bool,
    /// `io_setup`; without, as if refused with `ENOSYS`.
    pub libaio: bool,
    /// Registered files.
    pub registered_files: bool,
    /// Registered buffers.
    pub registered_buffers: bool,
    /// The registered descriptor of the ring.
    pub registered_ring: bool,
    /// Deferred task work.
    pub defer_taskrun: bool,
    /// Cooperative task work.
    pub coop_taskrun: bool,
    /// Rings without the indirection array.
    pub no_sqarray: bool,
    /// Waits not counted as waiting for I/O.
    pub no_iowait: bool,
    /// Timeouts in `io_uring_enter`.
    pub timed_wait: bool,
}

impl Default for Allow {
    fn default() -> Self {
        Self {
            io_uring: true,
            libaio: true,
            registered_files: true,
            registered_buffers: true,
            registered_ring: true,
            defer_taskrun: true,
            coop_taskrun: true,
            no_sqarray: true,
            no_iowait: true,
            timed_wait: true,
        }
    }
}

/// What back end to open and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested {
    /// Which.
    pub choice: Choice,
    /// The most requests in flight; slots are below it. At least 1.
    pub depth: u32,
    /// Of each slot's buffer: the longest transfer.
    pub buffer_len: Bytes,
    /// What the buffers hold at first.
    pub fill: Fill,
    /// What may be used.
    pub allow: Allow,
}

impl Requested {
    fn buffers(&self) -> Result<buffers::Buffers, BackendError> {
        buffers::Buffers::new(self.depth, self.buffer_len, self.fill).map_err(|errno| {
            BackendError::Buffers { depth: self.depth, length: self.buffer_len, errno }
        })
    }
}

/// The back end in force, what of it, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendReport {
    /// `io_uring`, `libaio`, `blocking`, `mmap`.
    pub name: String,
    /// What of it is in force: `registered-buffers`, `defer-taskrun`, ...
    pub flags: Vec<String>,
    /// Why this one and why not more.
    pub reasons: Vec<String>,
    /// Whether the page cache is gone around, as far as the kernel tells.
    pub direct: bool,
}

impl BackendReport {
    fn new(name: &str, files: &FileSet) -> Self {
        let reasons = files
            .files()
            .iter()
            .filter_map(|file| match &file.direct {
                Direct::Refused { reason } => {
                    Some(format!("no direct I/O on {}: {reason}", file.path().display()))
                }
                Direct::NotApplicable => Some(format!(
                    "{} is a character device: direct I/O does not apply",
                    file.path().display()
                )),
                Direct::NotAsked | Direct::InForce { .. } => None,
            })
            .collect();
        let direct = files.direct_in_force();
        let mut report = Self { name: name.to_owned(), flags: Vec::new(), reasons, direct };
        match files.sharing() {
            Some(Sharing::Refused) => {
                report.flag("reflink-refused");
                report.reason(
                    "the file system could share blocks instead of copying them: the first byte of \
                     each request is copied apart, which leaves nothing to share",
                );
            }
            Some(Sharing::Impossible) => report.reason("the file system cannot share blocks"),
            None => {}
        }
        report
    }

    fn flag(&mut self, flag: &str) {
        self.flags.push(flag.to_owned());
    }

    fn reason(&mut self, reason: impl Into<String>) {
        self.reasons.push(reason.into());
    }
}

/// Why a back end cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// More requests in flight than it can.
    #[error("queue depth {depth} is beyond the back end's limit of {limit}")]
    Depth {
        /// Wanted.
        depth: u32,
        /// The most.
        limit: u32,
    },
    /// No memory for the buffers.
    #[error("no memory for {depth} buffers of {length}: {errno}")]
    Buffers {
        /// How many.
        depth: u32,
        /// Of what size.
        length: Bytes,
        /// Why.
        errno: Errno,
    },
    /// The kernel does not let us have a ring.
    #[error("io_uring_setup failed: {errno}: {reason}")]
    IoUringDenied {
        /// As the kernel has it.
        errno: Errno,
        /// What that means.
        reason: &'static str,
    },
    /// The kernel does not let us have an aio context.
    #[error("io_setup for {depth} requests failed: {errno}")]
    LibaioDenied {
        /// How many were wanted.
        depth: u32,
        /// As the kernel has it.
        errno: Errno,
    },
    /// Polled completion was asked for where nothing polls.
    #[error("no polled completion on {}: {reason}", path.display())]
    NoPolling {
        /// Which file.
        file: FileIndex,
        /// Its path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file cannot be mapped.
    #[error("cannot map {}: {reason}", path.display())]
    NoMapping {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("cannot start {wanted} threads: {errno}")]
    Threads {
        /// How many were wanted.
        wanted: u32,
        /// Why.
        errno: Errno,
    },
}

impl BackendError {
    fn denied(errno: Errno) -> Self {
        let reason = match errno.0 {
            libc::ENOSYS => "the kernel has no io_uring, or a filter hides it",
            libc::EPERM => "forbidden by the sysctl kernel.io_uring_disabled or a seccomp filter",
            libc::ENOMEM => "no memory for the ring, or over the limit of locked memory",
            libc::EMFILE | libc::ENFILE => "too many open files",
            _ => "unexpected",
        };
        Self::IoUringDenied { errno, reason }
    }

    /// What the user may do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::IoUringDenied { errno, .. } if errno.0 == libc::EPERM => {
                "set kernel.io_uring_disabled to 0, relax the container's filter, or use \
                 backend = \"libaio\" or \"blocking\""
                    .into()
            }
            Self::IoUringDenied { errno, .. } if errno.0 == libc::ENOMEM => {
                "raise the limit of locked memory: ulimit -l".into()
            }
            Self::LibaioDenied { errno, .. } if errno.0 == libc::EAGAIN => {
                "raise fs.aio-max-nr".into()
            }
            Self::NoPolling { .. } => {
                "use backend = \"io-uring\"; NVMe polls with the module option poll_queues".into()
            }
            Self::Buffers { .. } => "lower the queue depth or the block size".into(),
            Self::Depth { limit, .. } => format!("at most {limit}"),
            _ => return None,
        })
    }
}

/// A back end of any kind, bound to the thread that opened it.
#[derive(Debug)]
pub enum AnyBackend {
    /// io_uring.
    Ring(Ring),
    /// `io_submit`.
    Aio(Aio),
    /// Blocking calls on this thread.
    Single(Single),
    /// Blocking calls on threads.
    Pool(Pool),
    /// A mapping.
    Mapped(Mapped),
}

/// Generic code that takes a back end of any kind: the body of a worker.
pub trait Visitor {
    /// What it gives back.
    type Output;
    /// Works with the back end.
    fn visit<D: Device>(self, device: &mut D) -> Self::Output;
}

impl AnyBackend {
    /// Hands the back end to generic code, which is compiled once per kind.
    pub fn visit<V: Visitor>(&mut self, visitor: V) -> V::Output {
        match self {
            Self::Ring(device) => visitor.visit(device),
            Self::Aio(device) => visitor.visit(device),
            Self::Single(device) => visitor.visit(device),
            Self::Pool(device) => visitor.visit(device),
            Self::Mapped(device) => visitor.visit(device),
        }
    }

    /// What is in force and why.
    pub const fn report(&self) -> &BackendReport {
        match self {
            Self::Ring(device) => device.report(),
            Self::Aio(device) => device.report(),
            Self::Single(device) => device.report(),
            Self::Pool(device) => device.report(),
            Self::Mapped(device) => device.report(),
        }
    }

    /// CPU time so far of threads that work for this back end beside the worker's own: pool
    /// threads, the kernel's submission thread, io-wq workers. In steps of 10 ms.
    pub fn helper_usage(&self) -> ThreadUsage {
        match self {
            Self::Ring(device) => device.helper_usage(),
            Self::Pool(device) => device.helper_usage(),
            Self::Aio(_) | Self::Single(_) | Self::Mapped(_) => ThreadUsage::default(),
        }
    }
}

/// Makes a back end on the calling thread, which is the one that must use it.
///
/// An explicit choice that cannot be had is an error; [`Choice::Auto`] goes on to the next and
/// says so in [`BackendReport::reasons`].
pub fn open(files: &Arc<FileSet>, requested: &Requested) -> Result<AnyBackend, BackendError> {
    if requested.depth == 0 {
        return Err(BackendError::Depth { depth: 0, limit: u32::MAX });
    }
    let ring = |mode| Ring::open(Arc::clone(files), requested, mode).map(AnyBackend::Ring);
    match requested.choice {
        Choice::Auto => auto(files, requested),
        Choice::IoUring => ring(ring::Mode::Plain),
        Choice::IoUringSqpoll => ring(ring::Mode::Sqpoll),
        Choice::IoUringIopoll => ring(ring::Mode::Iopoll),
        Choice::Libaio => aio(files, requested, Vec::new()),
        Choice::Blocking => blocking(files, requested, Vec::new()),
        Choice::Mmap => Mapped::open(Arc::clone(files), requested).map(AnyBackend::Mapped),
    }
}

fn auto(files: &Arc<FileSet>, requested: &Requested) -> Result<AnyBackend, BackendError> {
    if requested.depth == 1 {
        let why = "queue depth 1: one system call an I/O is least".to_owned();
        return blocking(files, requested, vec![why]);
    }
    let mut reasons = Vec::new();
    let waits = files.files().iter().any(|file| file.nowait == Some(false));
    if waits && requested.allow.libaio {
        // A ring would hand each request to a kernel worker thread: twice the cost, and no more
        // than four per processor in flight whatever the depth.
        let why = "the target takes no request without waiting: a ring would hand each to a \
                   kernel worker thread, libaio submits them itself";
        match aio(files, requested, vec![why.to_owned()]) {
            Err(error) => reasons.push(format!("no libaio: {error}")),
            found => return found,
        }
    }
    match Ring::open(Arc::clone(files), requested, ring::Mode::Plain) {
        Ok(mut ring) => {
            ring.add_reason("queue depth above 1: a batch is one system call");
            return Ok(AnyBackend::Ring(ring));
        }
        Err(error @ BackendError::Buffers { .. }) => return Err(error),
        Err(error) => reasons.push(format!("no io_uring: {error}")),
    }
    if files.direct_in_force() {
        match aio(files, requested, reasons.clone()) {
            Err(error) => reasons.push(format!("no libaio: {error}")),
            found => return found,
        }
    } else {
        reasons.push("no libaio: without direct I/O io_submit blocks".to_owned());
    }
    blocking(files, requested, reasons)
}

fn aio(
    files: &Arc<FileSet>,
    requested: &Requested,
    reasons: Vec<String>,
) -> Result<AnyBackend, BackendError> {
    Aio::open(Arc::clone(files), requested, reasons).map(AnyBackend::Aio)
}

fn blocking(
    files: &Arc<FileSet>,
    requested: &Requested,
    reasons: Vec<String>,
) -> Result<AnyBackend, BackendError> {
    let files = Arc::clone(files);
    if requested.depth == 1 {
        return Single::open(files, requested, reasons).map(AnyBackend::Single);
    }
    Pool::open(files, requested, reasons).map(AnyBackend::Pool)
}
