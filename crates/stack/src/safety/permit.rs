//! Leave to go on: how to open the target, and that it is still the one that was judged.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde::Serialize;
use units::Bytes;

use super::describe::REMOVES_NOTHING;
use crate::held::Held;
use crate::mounts::DeviceNumber;
use crate::signature::{Signature, probe};
use crate::target::{FileId, PathFacts, Space};

/// How the target must be opened, so that what was decided is what is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Action {
    /// For reading only.
    Read,
    /// `O_CREAT | O_EXCL`: it must still not exist.
    Create,
    /// For writing, without `O_CREAT` and `O_TRUNC`; then [`Permit::confirm`].
    Overwrite,
    /// A new file inside, `O_CREAT | O_EXCL`, removed afterwards.
    ScratchInside,
    /// For writing with `O_EXCL`, which fails if the kernel has it in any use; then
    /// [`Permit::confirm`].
    Destroy,
}

/// Leave to go on, and what going on means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Permit {
    /// Links resolved: the path to open.
    pub path: PathBuf,
    /// How to open it.
    pub action: Action,
    /// What will be read, written, created and removed: one sentence each, for `--dry-run`.
    pub sentences: Vec<String>,
    pub(super) identity: Option<Identity>,
    #[serde(skip)]
    pub(super) told: Told,
    /// What was judged, or the directory in which it is to be made.
    #[serde(skip)]
    pub(super) held: Held,
    /// What was found on a device.
    #[serde(skip)]
    pub(super) contents: Option<Vec<Signature>>,
}

/// What sentences about several files at once are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The link that leads there, as a sentence.
    pub link: Option<String>,
    /// Wanted.
    pub size: Bytes,
    /// An existing one is shorter than that.
    pub grows: bool,
    /// An existing one is longer and is cut to that.
    pub shrinks: bool,
    /// Why an existing one may be written.
    pub why: &'static str,
    /// Of the file system in which it is made.
    pub space: Option<Space>,
    /// What could not be seen of its users, as a sentence.
    pub blind: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Identity {
    File(FileId),
    Device(DeviceNumber),
}

/// What was opened is not what was judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// It was exchanged meanwhile.
    #[error("{path} was exchanged between the check and the opening: seen {seen}, wanted {wanted}")]
    Exchanged {
        /// The target.
        path: String,
        /// What was opened.
        seen: String,
        /// What was judged.
        wanted: String,
    },
    /// Something was put on it meanwhile.
    #[error("{path} was changed between the check and the opening: seen {seen}, wanted {wanted}")]
    Changed {
        /// The target.
        path: String,
        /// What is on it now.
        seen: String,
        /// What was judged.
        wanted: String,
    },
    /// `fstat` failed.
    #[error("stat of the open {path} failed: {source}")]
    Stat {
        /// The target.
        path: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl Permit {
    /// The same, with the descriptor that the judged facts were read from.
    #[must_use]
    pub fn holding(mut self, facts: &PathFacts) -> Self {
        self.held = facts.held.clone();
        self
    }

    /// The same for a file that is removed after the run.
    #[must_use]
    pub fn removed_afterwards(mut self) -> Self {
        self.sentences.retain(|sentence| sentence != REMOVES_NOTHING);
        self
    }

    /// What was judged, held open; of what is to be made, its directory.
    pub const fn held(&self) -> &Held {
        &self.held
    }

    /// What will be read, written, created and removed: one sentence each, for `--dry-run`.
    pub fn describe(&self) -> &[String] {
        &self.sentences
    }

    /// Whether an existing file is cut to a smaller length.
    pub const fn cuts(&self) -> bool {
        self.told.shrinks
    }

    /// Checks that an opened file or device is the one that was judged: paths can change their
    /// meaning between the check and the opening. To be called before the first write.
    pub fn confirm(&self, file: &File) -> Result<(), ConfirmError> {
        let path = self.path.display().to_string();
        let metadata = match file.metadata() {
            Ok(metadata) => metadata,
            Err(source) => return Err(ConfirmError::Stat { path, source }),
        };
        let (seen, wanted) = match self.identity {
            None => return Ok(()),
            Some(Identity::File(wanted)) => {
                let show = |id: FileId| format!("inode {} on {}", id.inode, id.device);
                (show(FileId::of(&metadata)), show(wanted))
            }
            Some(Identity::Device(wanted)) => {
                (DeviceNumber::from_dev(metadata.rdev()).to_string(), wanted.to_string())
            }
        };
        if seen == wanted { Ok(()) } else { Err(ConfirmError::Exchanged { path, seen, wanted }) }
    }

    /// Checks that on an open device is what was judged, and nothing that came since.
    pub fn confirm_contents(&self, device: &File) -> Result<(), ConfirmError> {
        let Some(wanted) = &self.contents else { return Ok(()) };
        let path = self.path.display().to_string();
        let seen = match probe(device) {
            Ok(seen) => seen,
            Err(source) => return Err(ConfirmError::Stat { path, source }),
        };
        if seen == *wanted {
            return Ok(());
        }
        let words = |all: &[Signature]| match all {
            [] => "nothing".to_owned(),
            all => all.iter().map(Signature::to_string).collect::<Vec<_>>().join(", "),
        };
        Err(ConfirmError::Changed { path, seen: words(&seen), wanted: words(wanted) })
    }

    /// What does not stand for the judged target any more, in words for the user.
    pub fn exchanged(&self) -> ConfirmError {
        let path = self.path.display().to_string();
        let wanted = match self.identity {
            None => "its directory as it was judged".to_owned(),
            Some(Identity::File(id)) => format!("inode {} on {}", id.inode, id.device),
            Some(Identity::Device(number)) => number.to_string(),
        };
        let seen = match std::fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "nothing".to_owned(),
            Err(error) => error.to_string(),
            Ok(found) if found.is_symlink() => "a symbolic link".to_owned(),
            Ok(found) => {
                let id = FileId::of(&found);
                format!("inode {} on {}", id.inode, id.device)
            }
        };
        ConfirmError::Exchanged { path, seen, wanted }
    }
}
