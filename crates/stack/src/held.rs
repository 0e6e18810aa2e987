//! What is judged, held open: all facts of it come from one descriptor, whatever its names stand
//! for meanwhile, and that descriptor is what is opened for writing later.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::mark;
use crate::mounts::DeviceNumber;
use crate::safety::Lease;

/// Who only looks at a file or a device has done so after that long: `udev` and `blkid`, a look of
/// another run, a child that has our open files until its `exec`.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// File systems whose servers answer for leases, or nobody does: NFS, SMB, FUSE, 9p, Ceph, AFS,
/// Lustre, GFS2, OCFS2.
const NO_LEASES: [u64; 10] = [
    0x6969,
    0xFF53_4D42,
    0xFE53_4D42,
    0x6573_5546,
    0x0102_1997,
    0x00C3_6400,
    0x5346_414F,
    0x0BD0_0BD0,
    0x0116_1970,
    0x7461_636F,
];

/// Tries again what others keep from us for a moment.
///
/// * `busy`: the kernel's word for that.
pub fn patiently<T>(busy: Errno, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let late = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error)
                if error.raw_os_error() == Some(busy.raw_os_error()) && Instant::now() < late =>
            {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// What the kernel says of others that use an open file: see [`kernel::lease`].
pub fn lease(file: &File) -> Lease {
    answer(patiently(Errno::AGAIN, || alone(file)))
}

fn alone(file: &File) -> io::Result<()> {
    if rustix::fs::fstatfs(file).is_ok_and(|found| NO_LEASES.contains(&(found.f_type as u64))) {
        return Err(Errno::INVAL.into());
    }
    if kernel::lease(file)? { Ok(()) } else { Err(Errno::AGAIN.into()) }
}

fn answer(asked: io::Result<()>) -> Lease {
    match asked {
        Ok(()) => Lease::Free,
        Err(error) if error.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) => Lease::Taken,
        Err(_) => Lease::Unknown,
    }
}

/// A handle that goes with facts and permits until the run has taken the target. Let go once, it
/// is closed for all copies: an open file keeps its file system mounted.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<Mutex<Option<Arc<Handle>>>>);

/// What is held is the same in all copies and no fact of its own.
impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Held {}

impl Held {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self(Arc::new(Mutex::new(Some(handle))))
    }

    /// The handle; `None` of facts that were not gathered on this machine, and after it was let go.
    pub fn get(&self) -> Option<Arc<Handle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes it.
    pub fn let_go(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// What a later look is compared with: whether the rules could decide differently by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imprint {
    links: u64,
    size: u64,
    changed: (i64, i64),
    mark: Result<Vec<u8>, Errno>,
    /// What has the number of a block device: numbers are given anew, and a loop device is over
    /// another file within a moment.
    device: String,
}

impl Imprint {
    /// What had the number of a block device then, in words.
    pub fn device(&self) -> &str {
        &self.device
    }
}

/// A file, directory or device, held without being opened for anything (`O_PATH`).
#[derive(Debug)]
pub struct Handle {
    node: File,
    /// Links resolved, as the kernel had it when it was opened.
    name: PathBuf,
    first: Option<Imprint>,
    claimed: AtomicBool,
}

impl Handle {
    /// Holds what is at `name`, a canonical path: no link on the way is followed, so that the path
    /// and what is held belong together. Has no effect on pipes, tapes and other devices.
    pub fn open(name: &Path) -> io::Result<Self> {
        let handle = Self::resolve(name, ResolveFlags::NO_SYMLINKS)?;
        if handle.name == name { Ok(handle) } else { Err(Errno::LOOP.into()) }
    }

    /// Holds what a user named, through links of the file systems, but through none of `/proc`:
    /// those stand for open files, whatever their text says.
    pub(crate) fn look(given: &Path) -> io::Result<Self> {
        Self::resolve(given, ResolveFlags::NO_MAGICLINKS)
    }

    fn resolve(given: &Path, how: ResolveFlags) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let node = match rustix::fs::openat2(CWD, given, flags, Mode::empty(), how) {
            // Before Linux 5.6, and in sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(given, flags, Mode::empty()),
            opened => opened,
        };
        let node = File::from(node?);
        // Without /proc existing targets are refused, unless the operator insists.
        let name = std::fs::read_link(by_number(&node)).or_else(|_| given.canonicalize())?;
        let mut handle = Self { node, name, first: None, claimed: AtomicBool::new(false) };
        handle.first = handle.imprint().ok();
        Ok(handle)
    }

    /// Where it was when it was opened.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Of what is held.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.node.metadata()
    }

    /// A name for it that cannot be given to anything else as long as it is held; its own where
    /// there is no `/proc`.
    pub fn stable_path(&self) -> PathBuf {
        let by_number = by_number(&self.node);
        let is_there = std::fs::symlink_metadata(&by_number).is_ok();
        if is_there { by_number } else { self.name.clone() }
    }

    /// Opens what is held. Never waits, nor for a process that has a lease of it.
    pub fn open_with(&self, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(rustix::fs::open(self.stable_path(), flags, Mode::empty())?);
        if self.is(&file.metadata()?) { Ok(file) } else { Err(Errno::STALE.into()) }
    }

    /// It, open for reading, if it is a file or a directory and may be read: opening has no effect
    /// on those. Not kept: the kernel says who uses a file only if we have it open once.
    pub fn to_read(&self) -> Option<File> {
        let metadata = self.metadata().ok()?;
        let calm = metadata.is_file() || metadata.is_dir();
        calm.then(|| self.open_with(OFlags::RDONLY).ok()).flatten()
    }

    /// What the kernel says of others that use the file.
    pub(crate) fn lease(&self) -> Lease {
        // Who has a lease of it keeps us from opening it: the error is the same.
        answer(patiently(Errno::AGAIN, || alone(&self.open_with(OFlags::RDONLY)?)))
    }

    /// Whether that is of the same file, or of a node of the same device.
    pub fn is(&self, other: &Metadata) -> bool {
        let Ok(own) = self.metadata() else { return false };
        let is_device =
            |m: &Metadata| m.file_type().is_block_device() || m.file_type().is_char_device();
        if is_device(&own) {
            return own.file_type() == other.file_type() && own.rdev() == other.rdev();
        }
        (own.dev(), own.ino()) == (other.dev(), other.ino())
    }

    /// Whether its name, without any link on the way, still stands for it.
    pub fn is_at_its_name(&self) -> bool {
        Self::open(&self.name).and_then(|found| found.metadata()).is_ok_and(|found| self.is(&found))
    }

    /// As it is now.
    pub fn imprint(&self) -> io::Result<Imprint> {
        let now = self.metadata()?;
        if !now.is_file() {
            // Whoever uses a device changes its node's times.
            let device =
                if now.file_type().is_block_device() { device(&now) } else { String::new() };
            let mark = Err(Errno::NODATA);
            return Ok(Imprint { links: 0, size: 0, changed: (0, 0), mark, device });
        }
        let mark = self.to_read().map_or(Err(Errno::ACCESS), |file| mark::value_of(&file));
        let changed = (now.ctime(), now.ctime_nsec());
        Ok(Imprint { links: now.nlink(), size: now.len(), changed, mark, device: String::new() })
    }

    /// Opens a device for this process alone, which the kernel refuses while anybody has it so.
    pub fn claim(&self) -> io::Result<File> {
        let claim = || self.open_with(OFlags::RDONLY | OFlags::EXCL);
        let device = patiently(Errno::BUSY, claim)?;
        self.claimed.store(true, Ordering::Relaxed);
        Ok(device)
    }

    /// Whether this process has it for itself: that is no use by others.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed)
    }

    /// As it was before any fact of it was gathered.
    pub fn first(&self) -> Option<&Imprint> {
        self.first.as_ref()
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.node.as_fd()
    }
}

fn device(node: &Metadata) -> String {
    let number = DeviceNumber::from_dev(node.rdev());
    let line = |file: &str| {
        let text = std::fs::read_to_string(format!("/sys/dev/block/{number}/{file}"));
        format!(", {file} {}", text.unwrap_or_default().trim_end())
    };
    // A partition has the sequence number of its disk. Kernels before 5.15 have none.
    let words = ["size", "diskseq", "../diskseq", "loop/backing_file"].map(line);
    format!("device {number}{}", words.concat())
}

fn by_number(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
