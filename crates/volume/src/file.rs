//! A file or a device as the device of a volume.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use layer::{BlockAction, BlockDevice, BlockError};
use rustix::fs::{FlockOperation, OFlags};
use units::{ByteOffset, Bytes};

use crate::VolumeError;

/// A file or a device that this process has locked. What is written is durable once a flush has returned.
#[derive(Debug)]
pub struct VolumeFile {
    file: Arc<File>,
    size: Bytes,
}

impl VolumeFile {
    /// Opens what is there and takes it for this process alone; devices that are mounted or in other use are
    /// refused by the kernel.
    ///
    /// * `writes`: to write it; else others may read it as well.
    pub fn open(path: &Path, writes: bool) -> Result<Self, VolumeError> {
        let failed = |source| VolumeError::File { what: "open", path: path.to_path_buf(), source };
        let found = std::fs::metadata(path).map_err(failed)?;
        let is_device = found.file_type().is_block_device();
        if !(is_device || found.is_file()) {
            return Err(VolumeError::Kind { path: path.to_path_buf() });
        }
        let exclusive = if is_device && writes { OFlags::EXCL.bits() } else { 0 };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(writes).custom_flags(exclusive as i32).open(path);
        let file = file.map_err(|source| match source.kind() {
            std::io::ErrorKind::ResourceBusy => in_use(path, None),
            _ => failed(source),
        })?;
        Self::locked(file, path, writes)
    }

    /// Locks an open one.
    pub(crate) fn locked(mut file: File, path: &Path, writes: bool) -> Result<Self, VolumeError> {
        let failed = |source| VolumeError::File { what: "lock", path: path.to_path_buf(), source };
        let how = match writes {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        match rustix::fs::flock(&file, how) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(in_use(path, Some(&file))),
            Err(errno) => return Err(failed(errno.into())),
        }
        let size = Bytes::new(file.seek(SeekFrom::End(0)).map_err(failed)?);
        // What counts as written since a write failed is in the page cache alone: nobody may rely on it.
        let _ = rustix::fs::fdatasync(&file);
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(Self { file: Arc::new(file), size })
    }

    /// To read from while the volume is in other hands.
    pub(crate) fn shared(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Whether it is a block device.
    pub(crate) fn is_device(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.file_type().is_block_device())
    }
}

fn in_use(path: &Path, file: Option<&File>) -> VolumeError {
    let holder = file.and_then(stack::lock_holder);
    let holder = holder.map(|process| format!("process {} ({})", process.id, process.name));
    VolumeError::InUse { path: path.to_path_buf(), holder }
}

fn error(action: BlockAction, at: ByteOffset) -> impl Fn(std::io::Error) -> BlockError {
    move |error| BlockError { action, at, reason: error.to_string() }
}

impl BlockDevice for VolumeFile {
    fn size(&self) -> Bytes {
        self.size
    }

    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError> {
        self.file.read_exact_at(into, at.get()).map_err(error(BlockAction::Read, at))
    }

    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError> {
        self.file.write_all_at(from, at.get()).map_err(error(BlockAction::Write, at))
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        self.file.sync_data().map_err(error(BlockAction::Flush, ByteOffset::ZERO))
    }

    /// Room that a file gives back it might not get again.
    fn trim(&mut self, _: ByteOffset, _: Bytes) -> Result<(), BlockError> {
        Ok(())
    }
}
