//! Opening targets: files, block devices, readable character devices, and what is known of them.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use device::{Errno, FileIndex, Slot};
use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, StatxFlags, XattrFlags};
use units::Bytes;

use crate::buffers::{Buffers, Fill};
use crate::copy::Sharing;
use crate::directory::Directory;

/// Whether to go around the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectWish {
    /// Through the page cache.
    #[default]
    No,
    /// Around it if the file system lets us; else through it, with the reason in
    /// [`OpenFile::direct`].
    Prefer,
    /// Around it, or an error.
    Require,
}

/// Open flags for synchronous writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteThrough {
    /// None.
    #[default]
    No,
    /// `O_DSYNC`.
    Data,
    /// `O_SYNC`.
    DataAndMeta,
}

/// What to do about a file that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Create {
    /// An error.
    #[default]
    No,
    /// Make it, empty.
    IfMissing,
    /// Make it, empty; an error if something is there already.
    New,
}

/// What to open and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSpec {
    /// The files, in the order of their [`FileIndex`].
    pub files: Vec<PathBuf>,
    /// For reads.
    pub read: bool,
    /// For writes, syncs and trims.
    pub write: bool,
    /// Around the page cache.
    pub direct: DirectWish,
    /// Synchronous writes.
    pub write_through: WriteThrough,
    /// Block devices only: `O_EXCL`, refused with `EBUSY` while mounted or held by another driver.
    pub exclusive: bool,
    /// What to do about files that are not there.
    pub create: Create,
}

/// Why a file set could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Nothing was named.
    #[error("no file named, at least one wanted")]
    Empty,
    /// `open` refused.
    #[error("cannot open {}: {errno}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// It is there but one cannot ask about it.
    #[error("cannot examine {}: {call}: {errno}", path.display())]
    Examine {
        /// Which.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// Why.
        errno: Errno,
    },
    /// A directory, a pipe, a socket.
    #[error(
        "{} is a {found}, wanted a file, a block device or a character device", path.display()
    )]
    Kind {
        /// Which.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// Direct I/O was required and is not to be had.
    #[error("no direct I/O on {}: {reason}", path.display())]
    NoDirect {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl OpenError {
    /// What the user may do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Open { errno, .. } if errno.0 == libc::EBUSY => {
                Some("it is mounted, swap, or held by md, dm, LVM or another program".into())
            }
            Self::Open { errno, .. } if errno.0 == libc::EMFILE => {
                Some("raise the limit of open files: ulimit -n".into())
            }
            Self::NoDirect { .. } => Some("ask for buffered I/O: direct = false".into()),
            _ => None,
        }
    }
}

/// What a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    Regular,
    /// A block device.
    Block,
    /// A character device such as `/dev/zero`: no size, no cache, no alignment.
    Character,
}

/// Who says what alignment direct I/O needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignmentSource {
    /// The kernel (`statx`, `STATX_DIOALIGN`, Linux 6.1).
    Kernel,
    /// The logical sector of the device below; a file system may need more.
    Sector,
    /// Nobody: 4096, which everything takes.
    Assumed,
}

/// Whether reads and writes go around the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direct {
    /// They go through it, as asked.
    NotAsked,
    /// There is no page cache to go around (character devices).
    NotApplicable,
    /// They go around it.
    InForce {
        /// Addresses of buffers are multiples of this.
        memory: Bytes,
        /// Offsets and lengths are multiples of this.
        offset: Bytes,
        /// Who says so.
        source: AlignmentSource,
    },
    /// Asked for and not had: they go through the page cache.
    Refused {
        /// In words for the user.
        reason: String,
    },
}

impl Direct {
    /// Whether the page cache is gone around, as far as the kernel tells.
    pub const fn in_force(&self) -> bool {
        matches!(self, Self::InForce { .. })
    }
}

/// A file of an open set.
#[derive(Debug)]
pub struct OpenFile {
    path: PathBuf,
    fd: OwnedFd,
    /// What it is.
    pub kind: Kind,
    /// How long it was when opened; `None` for character devices.
    pub size: Option<Bytes>,
    /// The logical sector of the device it is or lies on, where the kernel tells.
    pub logical_sector: Option<Bytes>,
    /// Around the page cache or not, and why.
    pub direct: Direct,
    /// Whether it takes requests that must not wait (`RWF_NOWAIT`), which is how a ring submits
    /// first. `None` where that cannot be asked: buffered, not readable, or empty.
    pub nowait: Option<bool>,
    /// Major and minor number of the device that it is (block) or lies on (regular).
    pub device: (u32, u32),
}

impl OpenFile {
    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long it is now; `None` for character devices.
    pub fn current_size(&self) -> Result<Option<Bytes>, Errno> {
        size_of(self.fd.as_fd(), self.kind)
    }
}

impl AsFd for OpenFile {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opened files, shared by the workers through an `Arc`.
#[derive(Debug)]
pub struct FileSet {
    files: Vec<OpenFile>,
    directory: Option<Directory>,
    sharing: OnceLock<Sharing>,
    writable: bool,
}

impl FileSet {
    /// Opens all files of `spec`; the first that cannot be had is the error. Files made before
    /// it stay.
    pub fn open(spec: &OpenSpec) -> Result<Self, OpenError> {
        Self::open_held(spec, &[])
    }

    /// The same, where some of the files are held already: what is held is opened then, and not
    /// what has its name by now.
    ///
    /// * `held`: in the order of `spec.files`, opened in any way (`O_PATH` will do).
    pub fn open_held(spec: &OpenSpec, held: &[Option<OwnedFd>]) -> Result<Self, OpenError> {
        if spec.files.is_empty() {
            return Err(OpenError::Empty);
        }
        let held = held.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let files = spec.files.iter().zip(held);
        let files =
            files.map(|(path, held)| open_one(spec, path, held)).collect::<Result<_, _>>()?;
        Ok(Self { files, directory: None, sharing: OnceLock::new(), writable: spec.write })
    }

    /// No files but a directory to make them in. Only blocking calls can do that.
    pub fn of_directory(directory: Directory) -> Self {
        let (files, sharing) = (Vec::new(), OnceLock::new());
        Self { files, directory: Some(directory), sharing, writable: true }
    }

    /// Whether copies of the kernel's could share blocks, if that was asked.
    pub fn sharing(&self) -> Option<Sharing> {
        self.sharing.get().copied()
    }

    /// The first answer holds.
    pub(crate) fn set_sharing(&self, sharing: Sharing) -> Sharing {
        *self.sharing.get_or_init(|| sharing)
    }

    /// What [`FileIndex::DIRECTORY`] is.
    pub const fn directory(&self) -> Option<&Directory> {
        self.directory.as_ref()
    }

    /// In the order of their index; empty only for a directory.
    pub fn files(&self) -> &[OpenFile] {
        &self.files
    }

    /// The file of an index.
    #[inline]
    pub fn get(&self, index: FileIndex) -> Option<&OpenFile> {
        self.files.get(index.0 as usize)
    }

    /// Whether it was opened for writing.
    pub const fn writable(&self) -> bool {
        self.writable
    }

    /// Whether all of it goes around the page cache.
    pub fn direct_in_force(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|file| file.direct.in_force())
    }

    /// The multiple that offsets and lengths of direct I/O need on every file of the set; `None`
    /// without direct I/O.
    pub fn offset_alignment(&self) -> Option<Bytes> {
        self.files
            .iter()
            .filter_map(|file| match file.direct {
                Direct::InForce { offset, .. } => Some(offset),
                _ => None,
            })
            .max()
    }
}

/// A name for what is held that cannot be given to anything else meanwhile; `None` without
/// `/proc`.
fn stable(held: &OwnedFd) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    std::fs::symlink_metadata(&path).is_ok().then_some(path)
}

fn open_one(spec: &OpenSpec, path: &Path, held: Option<&OwnedFd>) -> Result<OpenFile, OpenError> {
    let stable = held.and_then(stable);
    let at = stable.as_deref().unwrap_or(path);
    let examine = |call| {
        move |e: rustix::io::Errno| OpenError::Examine {
            path: path.to_path_buf(),
            call,
            errno: Errno(e.raw_os_error()),
        }
    };
    let failed = |e: rustix::io::Errno| OpenError::Open {
        path: path.to_path_buf(),
        errno: Errno(e.raw_os_error()),
    };
    // Looked at before it is opened: the flags depend on the kind, and opening a pipe would hang.
    let seen = match rustix::fs::stat(at) {
        Ok(stat) => Some(kind_of(&stat, path)?),
        Err(rustix::io::Errno::NOENT) if spec.create != Create::No => None,
        Err(error) => return Err(failed(error)),
    };
    let base = flags(spec, seen.unwrap_or(Kind::Regular));
    let mode = Mode::from_raw_mode(0o644);
    let wants_direct = spec.direct != DirectWish::No && seen != Some(Kind::Character);
    let with = if wants_direct { base | OFlags::DIRECT } else { base };
    let (fd, refused) = match open_unseen(at, with, mode) {
        Ok(fd) => (fd, None),
        Err(rustix::io::Errno::INVAL) if wants_direct => {
            let reason = "open with O_DIRECT: EINVAL: the file system does not offer it";
            // A file that did not exist was made by the refused open: exclusive creation is done.
            let base = if seen.is_none() { base - OFlags::EXCL } else { base };
            (open_unseen(at, base, mode).map_err(failed)?, Some(reason.to_owned()))
        }
        Err(error) => return Err(failed(error)),
    };
    // Again, on the descriptor: the path may name something else by now.
    let stat = rustix::fs::fstat(&fd).map_err(examine("fstat"))?;
    let kind = kind_of(&stat, path)?;
    let number = if kind == Kind::Block { stat.st_rdev } else { stat.st_dev };
    let device = (rustix::fs::major(number), rustix::fs::minor(number));
    let size = size_of(fd.as_fd(), kind).map_err(|errno| OpenError::Examine {
        path: path.to_path_buf(),
        call: "lseek",
        errno,
    })?;
    let logical_sector = sector(fd.as_fd(), kind, device);
    let direct = match (spec.direct, kind, refused) {
        (DirectWish::No, ..) => Direct::NotAsked,
        (_, Kind::Character, _) => Direct::NotApplicable,
        (.., Some(reason)) => Direct::Refused { reason },
        (.., None) => alignment(fd.as_fd(), logical_sector),
    };
    if spec.direct == DirectWish::Require
        && let Direct::Refused { reason } = direct
    {
        return Err(OpenError::NoDirect { path: path.to_path_buf(), reason });
    }
    let nowait = takes_nowait(fd.as_fd(), spec, at, &direct, size);
    let path = path.to_path_buf();
    Ok(OpenFile { path, fd, kind, size, logical_sector, direct, nowait, device })
}

/// Opens without updates of the access time, where that is allowed (owner or root): reads are
/// to cause no writes, and every cached read would look at the clock.
fn open_unseen(path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::open(path, flags | OFlags::NOATIME, mode) {
        Err(rustix::io::Errno::PERM) => rustix::fs::open(path, flags, mode),
        result => result,
    }
}

/// Reads the first block directly without waiting. A driver that cannot promise not to wait
/// refuses with `EOPNOTSUPP`, anything else is a yes.
fn takes_nowait(
    fd: BorrowedFd<'_>,
    spec: &OpenSpec,
    path: &Path,
    direct: &Direct,
    size: Option<Bytes>,
) -> Option<bool> {
    let Direct::InForce { offset: block, .. } = *direct else { return None };
    if size? < block {
        return None;
    }
    // A set opened for writing only is asked through a descriptor of its own.
    let flags = OFlags::CLOEXEC | OFlags::RDONLY | OFlags::DIRECT;
    let own = if spec.read { None } else { Some(open_unseen(path, flags, Mode::empty()).ok()?) };
    let fd = own.as_ref().map_or(fd, AsFd::as_fd);
    let mut buffers = Buffers::new(1, block, Fill::Untouched).ok()?;
    // SAFETY: nothing is in flight on it.
    let buffer = unsafe { buffers.slice(Slot(0)) };
    let mut vectors = [std::io::IoSliceMut::new(buffer)];
    let result = rustix::io::preadv2(fd, &mut vectors, 0, rustix::io::ReadWriteFlags::NOWAIT);
    Some(result != Err(rustix::io::Errno::OPNOTSUPP))
}

fn flags(spec: &OpenSpec, kind: Kind) -> OFlags {
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    flags |= match (spec.read, spec.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    flags |= match spec.write_through {
        WriteThrough::No => OFlags::empty(),
        WriteThrough::Data => OFlags::DSYNC,
        WriteThrough::DataAndMeta => OFlags::SYNC,
    };
    flags |= match (spec.create, kind) {
        (Create::IfMissing, Kind::Regular) => OFlags::CREATE,
        (Create::New, _) => OFlags::CREATE | OFlags::EXCL,
        _ => OFlags::empty(),
    };
    if spec.exclusive && kind == Kind::Block {
        flags |= OFlags::EXCL;
    }
    flags
}

fn kind_of(stat: &rustix::fs::Stat, path: &Path) -> Result<Kind, OpenError> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(Kind::Regular),
        FileType::BlockDevice => return Ok(Kind::Block),
        FileType::CharacterDevice => return Ok(Kind::Character),
        FileType::Directory => "directory",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        _ => "thing of unknown kind",
    };
    Err(OpenError::Kind { path: path.to_path_buf(), found })
}

fn size_of(fd: BorrowedFd<'_>, kind: Kind) -> Result<Option<Bytes>, Errno> {
    let size = match kind {
        Kind::Character => return Ok(None),
        Kind::Regular => rustix::fs::fstat(fd).map(|stat| stat.st_size as u64),
        Kind::Block => rustix::fs::seek(fd, rustix::fs::SeekFrom::End(0)),
    };
    size.map(|size| Some(Bytes::new(size))).map_err(|e| Errno(e.raw_os_error()))
}

fn sector(fd: BorrowedFd<'_>, kind: Kind, device: (u32, u32)) -> Option<Bytes> {
    match kind {
        Kind::Character => None,
        Kind::Block => {
            rustix::fs::ioctl_blksszget(fd).ok().map(|bytes| Bytes::new(u64::from(bytes)))
        }
        Kind::Regular => queue_attribute(device, "logical_block_size")
            .and_then(|text| text.parse().ok())
            .map(Bytes::new),
    }
}

/// A line of a block device's queue directory in sysfs. Partitions have none of their own: that
/// of the whole device counts. `None` for devices without a queue (network, memory, btrfs).
pub(crate) fn queue_attribute((major, minor): (u32, u32), name: &str) -> Option<String> {
    let base = format!("/sys/dev/block/{major}:{minor}");
    ["queue", "../queue"]
        .iter()
        .find_map(|queue| std::fs::read_to_string(format!("{base}/{queue}/{name}")).ok())
        .map(|text| text.trim().to_owned())
}

/// Asks the kernel; before Linux 6.1, and on file systems that do not say, the sector decides.
fn alignment(fd: BorrowedFd<'_>, sector: Option<Bytes>) -> Direct {
    let stat = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    if let Ok(stat) = stat
        && stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0
    {
        if stat.stx_dio_offset_align == 0 {
            // Accepted by open and then done through the cache: the silent fallback.
            let reason = "open takes O_DIRECT but statx says that this file has no direct I/O: \
                          it would silently go through the page cache";
            return Direct::Refused { reason: reason.to_owned() };
        }
        return Direct::InForce {
            memory: Bytes::new(u64::from(stat.stx_dio_mem_align)),
            offset: Bytes::new(u64::from(stat.stx_dio_offset_align)),
            source: AlignmentSource::Kernel,
        };
    }
    let (offset, source) = match sector {
        Some(sector) => (sector, AlignmentSource::Sector),
        None => (Bytes::kib(4), AlignmentSource::Assumed),
    };
    Direct::InForce { memory: offset, offset, source }
}

/// Why preparing a file failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} on {} failed: {errno}", path.display())]
pub struct FileError {
    /// The system call.
    pub call: &'static str,
    /// On what.
    pub path: PathBuf,
    /// Why.
    pub errno: Errno,
}

impl FileError {
    /// What the user may do about it.
    pub fn hint(&self) -> Option<String> {
        match self.errno.0 {
            libc::ENOSPC => Some("free space or ask for a smaller file: --size".into()),
            libc::EOPNOTSUPP if self.call == "fallocate" => {
                Some("the file system cannot reserve space: write the file once instead".into())
            }
            _ => None,
        }
    }
}

fn file_error(call: &'static str, path: &Path) -> impl FnOnce(rustix::io::Errno) -> FileError {
    move |e| FileError { call, path: path.to_path_buf(), errno: Errno(e.raw_os_error()) }
}

/// How a file gets its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// `ftruncate`: a hole; reads of it never reach the device.
    Sparse,
    /// `fallocate`: space is reserved but unwritten; reads of it mostly do not reach the device.
    Reserved,
}

/// Sets the length of the file at `path`, making it if it is not there. When space runs out the
/// file is left as long as the file system got.
pub fn allocate(path: &Path, size: Bytes, how: Allocation) -> Result<(), FileError> {
    let flags = OFlags::CLOEXEC | OFlags::WRONLY | OFlags::CREATE;
    let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))
        .map_err(file_error("open", path))?;
    if how == Allocation::Reserved && size > Bytes::ZERO {
        rustix::io::retry_on_intr(|| {
            rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, size.get())
        })
        .map_err(file_error("fallocate", path))?;
    }
    rustix::fs::ftruncate(&fd, size.get()).map_err(file_error("ftruncate", path))?;
    Ok(())
}

/// Sets an extended attribute (`user.*`) on the file at `path`.
pub fn set_mark(path: &Path, name: &str, value: &[u8]) -> Result<(), FileError> {
    rustix::fs::setxattr(path, name, value, XattrFlags::empty())
        .map_err(file_error("setxattr", path))
}

/// Reads an extended attribute of the file at `path`; `None` if it has none of that name or its
/// file system knows none.
pub fn mark(path: &Path, name: &str) -> Result<Option<Vec<u8>>, FileError> {
    let mut value = vec![0; 4096];
    match rustix::fs::getxattr(path, name, &mut value[..]) {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(file_error("getxattr", path)(error)),
    }
}

/// How long the block device at `path` is.
pub fn block_device_size(path: &Path) -> Result<Bytes, FileError> {
    let fd = rustix::fs::open(path, OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty())
        .map_err(file_error("open", path))?;
    rustix::fs::seek(&fd, rustix::fs::SeekFrom::End(0))
        .map(Bytes::new)
        .map_err(file_error("lseek", path))
}

/// Discards the whole of `file`: `BLKDISCARD` on a block device, a hole in a file. Everything on
/// it is gone; the caller has asked the operator.
pub fn discard(file: &OpenFile) -> Result<(), FileError> {
    let size = file.current_size().map_err(|errno| FileError {
        call: "lseek",
        path: file.path.clone(),
        errno,
    })?;
    let Some(size) = size.filter(|&size| size > Bytes::ZERO) else { return Ok(()) };
    let call = if file.kind == Kind::Block { "BLKDISCARD" } else { "fallocate" };
    crate::ops::trim(file.as_fd(), file.kind, 0, size.get())
        .map(drop)
        .map_err(file_error(call, &file.path))
}

/// Flushes the file system that holds `path` (`syncfs`).
pub fn sync_file_system(path: &Path) -> Result<(), FileError> {
    let file = File::open(path).map_err(|error| FileError {
        call: "open",
        path: path.to_path_buf(),
        errno: Errno(error.raw_os_error().unwrap_or(libc::EIO)),
    })?;
    rustix::fs::syncfs(&file).map_err(file_error("syncfs", path))
}
