//! Volumes of the write-optimising layer that stay: made in a file or on a device, served to clients of the
//! NBD protocol on a Unix socket, looked at without a change, removed; and writes that show what a crash left.
//!
//! One process at a time has a volume: it holds the lock of the file, and of a device the kernel's claim.

mod error;
mod file;
mod make;
mod mount;
mod serve;
mod stamped;

use std::path::Path;

use layer::{LogVolume, Untouched};

pub use error::VolumeError;
pub use file::VolumeFile;
pub use make::{VolumeOrder, VolumePlan, destroy};
pub use mount::MountedVolume;
pub use serve::{ServedVolume, Tell, listen};
pub use stamped::StampedWrites;

/// Opens a volume to read and write it; recovers it first, if it was not closed.
pub fn open(path: &Path) -> Result<LogVolume<VolumeFile>, VolumeError> {
    opened(path, VolumeFile::open(path, true)?)
}

/// Opens a volume to look at it: what recovery would write stays in memory.
pub fn look(path: &Path) -> Result<LogVolume<Untouched<VolumeFile>>, VolumeError> {
    opened(path, Untouched::new(VolumeFile::open(path, false)?))
}

fn opened<D: layer::BlockDevice>(path: &Path, device: D) -> Result<LogVolume<D>, VolumeError> {
    LogVolume::open(device).map_err(|error| VolumeError::Layer { path: path.to_path_buf(), error })
}
