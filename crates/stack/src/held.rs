//! What is judged, held open: all facts of it come from one descriptor, whatever its names stand
//! for meanwhile, and that descriptor is what is opened for writing later.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::locks::{Opening, lease_holder};
use crate::mark;
use crate::mounts::DeviceNumber;
use crate::patience;
use crate::safety::Process;

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
    mark: Result<Vec<u8>, i32>,
    /// Of a block device: what has its number.
    device: Option<String>,
}

impl Imprint {
    /// What had the number of a block device then, in words.
    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap_or("no block device")
    }
}

/// A file, directory or device, held without being opened for anything (`O_PATH`).
#[derive(Debug)]
pub struct Handle {
    node: File,
    /// Links resolved, when it was opened.
    name: PathBuf,
    read: OnceLock<Option<File>>,
    first: Option<Imprint>,
    claimed: AtomicBool,
}

impl Handle {
    /// Holds what is at `name`, a canonical path: no link on the way is followed, so that the path
    /// and what is held belong together. Has no effect on pipes, tapes and other devices.
    pub fn open(name: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened =
            rustix::fs::openat2(CWD, name, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let node = match opened {
            // Before Linux 5.6, and in sandboxes that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => open_and_compare(name)?,
            opened => File::from(opened?),
        };
        let metadata = node.metadata()?;
        if metadata.is_symlink() {
            return Err(Errno::LOOP.into());
        }
        let mut handle = Self {
            node,
            name: name.to_path_buf(),
            read: OnceLock::new(),
            first: None,
            claimed: AtomicBool::new(false),
        };
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
        let by_number = PathBuf::from(format!("/proc/self/fd/{}", self.node.as_raw_fd()));
        let is_there = std::fs::symlink_metadata(&by_number).is_ok();
        if is_there { by_number } else { self.name.clone() }
    }

    /// The process that has a lease of the file, and would have to give it back before it is written.
    pub fn lease_holder(&self) -> Option<Process> {
        self.metadata().ok().filter(Metadata::is_file)?;
        lease_holder(&self.stable_path(), Opening::ToWrite)
    }

    /// Opens what is held. Never waits, and does not ask others for a lease that they have of it: the
    /// signal for that ends who does not expect it.
    pub fn open_with(&self, flags: OFlags) -> io::Result<File> {
        let opening = match flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC) {
            true => Opening::ToWrite,
            false => Opening::ToRead,
        };
        let path = self.stable_path();
        if self.metadata()?.is_file() && lease_holder(&path, opening).is_some() {
            return Err(Errno::WOULDBLOCK.into());
        }
        // Of the descriptor's own link the last part has to be followed.
        let links = if path == self.name { OFlags::NOFOLLOW } else { OFlags::empty() };
        let flags = flags | links | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
        if self.is(&file.metadata()?) { Ok(file) } else { Err(Errno::STALE.into()) }
    }

    /// It, open for reading, if it is a file or a directory and may be read: opening has no effect
    /// on those.
    pub fn to_read(&self) -> Option<&File> {
        let open = || {
            let metadata = self.metadata().ok()?;
            let calm = metadata.is_file() || metadata.is_dir();
            calm.then(|| self.open_with(OFlags::RDONLY).ok()).flatten()
        };
        self.read.get_or_init(open).as_ref()
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
            let mark = Err(Errno::NODATA.raw_os_error());
            let device = now.file_type().is_block_device().then(|| self.device(&now));
            return Ok(Imprint { links: 0, size: 0, changed: (0, 0), mark, device });
        }
        let changed = (now.ctime(), now.ctime_nsec());
        let mark = match self.to_read() {
            Some(file) => mark::value_of(file),
            None => Err(Errno::ACCESS),
        };
        let mark = mark.map_err(Errno::raw_os_error);
        Ok(Imprint { links: now.nlink(), size: now.len(), changed, mark, device: None })
    }

    /// What has the number of a block device: numbers are given anew, and a loop device is over
    /// another file within a moment.
    fn device(&self, node: &Metadata) -> String {
        let number = DeviceNumber::from_dev(node.rdev());
        let place = std::fs::canonicalize(format!("/sys/dev/block/{number}")).unwrap_or_default();
        let line = |file: &str| std::fs::read_to_string(place.join(file)).ok();
        // A partition has the sequence number of its disk. Kernels before 5.15 have none.
        let sequence = line("diskseq").or_else(|| line("../diskseq"));
        let mut words = vec![format!("device {number}")];
        let known = [
            ("number in sequence", sequence.clone()),
            ("sectors", line("size")),
            ("start", line("start")),
            ("file", line("loop/backing_file")),
            ("offset", line("loop/offset")),
        ];
        let known = known.into_iter().filter_map(|(what, text)| Some((what, text?)));
        words.extend(known.map(|(what, text)| format!("{what} {}", text.trim_end())));
        if sequence.is_none() && line("loop/backing_file").is_some() {
            let asked = self.open_with(OFlags::RDONLY);
            let status = asked.and_then(|file| {
                patience::ask(&number.to_string(), move || kernel::loop_status(&file))
            });
            words.extend(status.ok().map(|found| format!("inode {}", found.inode)));
        }
        words.join(", ")
    }

    /// Opens a device for this process alone, which the kernel refuses while anybody has it so.
    pub fn claim(&self) -> io::Result<File> {
        let device = self.open_with(OFlags::RDONLY | OFlags::EXCL)?;
        self.set_claimed();
        Ok(device)
    }

    /// This process has the device for itself: that is no use by others.
    pub fn set_claimed(&self) {
        self.claimed.store(true, Ordering::Relaxed);
    }

    /// Whether this process has it for itself.
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

/// The same without `openat2`: what was opened must be what the canonical name stands for.
fn open_and_compare(name: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let node = File::from(rustix::fs::open(name, flags, Mode::empty())?);
    let (held, named) = (node.metadata()?, std::fs::symlink_metadata(name)?);
    let same = (held.dev(), held.ino()) == (named.dev(), named.ino());
    if same && std::fs::canonicalize(name)? == name { Ok(node) } else { Err(Errno::LOOP.into()) }
}
