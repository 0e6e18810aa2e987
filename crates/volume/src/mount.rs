//! A volume as a file, by way of FUSE: for a loop device, where the kernel has no network block devices.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use nbd::{Export, ExportError};
use rustix::fs::FallocateFlags;
use rustix::mount::UnmountFlags;
use rustix::process::{getgid, getuid};
use units::{ByteOffset, Bytes};

use crate::serve::SharedVolume;
use crate::{ServedVolume, VolumeError};

/// The only file.
const NAME: &str = "volume";
const FILE: INodeNo = INodeNo(2);
/// Nothing of what is told ever changes.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);
/// Requests that are answered at the same time.
const THREADS: usize = 4;

/// A directory in which a volume is a file. Dropped, it is unmounted.
#[derive(Debug)]
pub struct MountedVolume {
    session: BackgroundSession,
    directory: PathBuf,
    users: Arc<AtomicUsize>,
}

impl MountedVolume {
    /// Shows a volume as `volume` in a directory, which must be empty.
    pub fn new(served: &ServedVolume, directory: &Path) -> Result<Self, VolumeError> {
        let path = || directory.to_path_buf();
        let failed = |source| VolumeError::File { what: "mount on", path: path(), source };
        if std::fs::read_dir(directory).map_err(failed)?.next().is_some() {
            return Err(failed(io::ErrorKind::DirectoryNotEmpty.into()));
        }
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("plimsoll-layer".to_owned()),
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
        ];
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let users = Arc::new(AtomicUsize::new(0));
        let shown = VolumeDirectory { volume: served.shared(), users: Arc::clone(&users) };
        let session = fuser::spawn_mount(shown, directory, &config).map_err(failed)?;
        Ok(Self { session, directory: path(), users })
    }

    /// Whether somebody has the file open, such as a loop device.
    pub fn is_in_use(&self) -> bool {
        self.users.load(Ordering::Acquire) > 0
    }

    /// Unmounts it. Who still has the file open gets errors once this process has ended.
    pub fn leave(self) {
        // Also while it is in use, as root; else it is left to the session.
        let _ = rustix::mount::unmount(&self.directory, UnmountFlags::DETACH);
        drop(self.session);
    }
}

struct VolumeDirectory {
    volume: Arc<SharedVolume>,
    /// How often the file is open.
    users: Arc<AtomicUsize>,
}

impl VolumeDirectory {
    fn attributes(&self, number: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size, nlink) = match number {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0, 2),
            FILE => (FileType::RegularFile, 0o600, self.volume.size().get(), 1),
            _ => return None,
        };
        Some(FileAttr {
            ino: number,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink,
            uid: getuid().as_raw(),
            gid: getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// A range that lies within the volume, as far as it does.
    fn within(&self, offset: u64, length: u64) -> (ByteOffset, Bytes) {
        let length = length.min(self.volume.size().get().saturating_sub(offset));
        (ByteOffset::new(offset), Bytes::new(length))
    }
}

fn errno(error: ExportError) -> Errno {
    Errno::from_i32(error.code() as i32)
}

fn answer(reply: ReplyEmpty, done: Result<(), ExportError>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

impl Filesystem for VolumeDirectory {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let is_it = parent == INodeNo::ROOT && name == NAME;
        match self.attributes(FILE).filter(|_| is_it) {
            Some(found) => reply.entry(&FOR_EVER, &found, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(number) {
            Some(found) => reply.attr(&FOR_EVER, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let directory = (INodeNo::ROOT, FileType::Directory);
        let entries = [(directory, "."), (directory, ".."), ((FILE, FileType::RegularFile), NAME)];
        for (next, ((number, kind), name)) in (1..).zip(entries).skip(offset as usize) {
            if reply.add(number, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// Around the page cache: a file system above has one.
    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        self.users.fetch_add(1, Ordering::AcqRel);
        reply.opened(FileHandle(0), flags);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.users.fetch_sub(1, Ordering::AcqRel);
        reply.ok();
    }

    /// Who opens a device to write it anew may ask for this, and changes nothing by it.
    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(number) {
            Some(found) => reply.attr(&FOR_EVER, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let (at, length) = self.within(offset, size.into());
        if length == Bytes::ZERO {
            return reply.data(&[]);
        }
        let mut bytes = vec![0; length.get() as usize];
        match self.volume.read(at, &mut bytes) {
            Ok(()) => reply.data(&bytes),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (at, length) = self.within(offset, data.len() as u64);
        if length == Bytes::ZERO {
            return reply.error(Errno::ENOSPC);
        }
        match self.volume.write(at, &data[..length.get() as usize]) {
            Ok(()) => reply.written(length.get() as u32),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Closing makes nothing durable, as with any file.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.volume.flush());
    }

    /// How a loop device asks to discard and to zero.
    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let zeroes = FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        if !FallocateFlags::from_bits_retain(mode as u32).intersects(zeroes) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let (at, length) = self.within(offset, length);
        answer(reply, self.volume.zero(at, length));
    }
}
