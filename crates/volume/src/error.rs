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
    /// The device is too small to hold anything.
    #[error("{path} is too small: no volume fits at this fill")]
    TooSmall {
        /// The device.
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
            Self::TooSmall { .. } => "a volume needs 28 MiB and more".to_owned(),
            Self::Refused(refusal) => return refusal.hint(),
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
