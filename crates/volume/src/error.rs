//! Why a volume cannot be made, opened or removed.

use std::io;
use std::path::PathBuf;

use layer::LayerError;

/// Why a volume cannot be made, opened or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// The operating system refused.
    #[error("cannot {what} {path}")]
    File {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// Neither a file nor a block device.
    #[error("{path} is neither a file nor a block device")]
    Kind {
        /// What it is about.
        path: PathBuf,
    },
    /// A volume is made in a file of its own.
    #[error("{path} is there already")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else has it.
    #[error("{path} is in use{}", .holder.as_deref().map(|by| format!(" by {by}")).unwrap_or_default())]
    InUse {
        /// The file or device.
        path: PathBuf,
        /// Who, where that can be seen.
        holder: Option<String>,
    },
    /// No volume can be that small or that large, or the device cannot hold it.
    #[error("{path}: no volume of that size fits there at this fill")]
    NoFit {
        /// The file or device.
        path: PathBuf,
    },
    /// It may not be written.
    #[error(transparent)]
    Refused(#[from] stack::Refusal),
    /// It cannot be looked at.
    #[error(transparent)]
    Target(#[from] stack::TargetError),
    /// It was exchanged between the check and the opening.
    #[error(transparent)]
    Exchanged(#[from] stack::ConfirmError),
    /// The volume itself.
    #[error("volume {path}")]
    Layer {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        #[source]
        error: LayerError,
    },
}

impl VolumeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Exists { .. } => {
                "name a new file; `plimsoll layer destroy` removes a volume".to_owned()
            }
            Self::InUse { .. } => {
                "a volume is served by one process at a time; what is mounted is refused".to_owned()
            }
            Self::NoFit { .. } => {
                "a volume has 4 KiB to 8 TiB, and takes 28 MiB at least".to_owned()
            }
            Self::File { what: "listen on", .. } => "name a path that is free".to_owned(),
            Self::File { what: "mount on", path, source } => match source.kind() {
                io::ErrorKind::NotConnected => {
                    format!("a killed server left it: `umount -l {}` first", path.display())
                }
                io::ErrorKind::PermissionDenied => {
                    "run it as root, or install `fusermount3` (package fuse3)".to_owned()
                }
                _ => "name an empty directory".to_owned(),
            },
            // What is refused is what lies below, which is longer than the volume.
            Self::Refused(refusal) => match refusal.hint()? {
                hint if hint.contains("--size") => {
                    "name another place, or less with `--size`".to_owned()
                }
                hint => hint,
            },
            Self::Target(error) => return error.hint(),
            Self::Layer { error: LayerError::NoVolume, .. } => {
                "`plimsoll layer create` makes one".to_owned()
            }
            Self::Layer { error: LayerError::Version { .. }, .. } => {
                "open it with the version of plimsoll that made it".to_owned()
            }
            _ => return None,
        })
    }
}
