use std::path::PathBuf;

use crate::RunError;

/// Why a study cannot be played, or had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// Its file makes no sense.
    #[error(transparent)]
    Study(#[from] study::StudyError),
    /// Devices that may not be written.
    #[error("{}", .0.join("; "))]
    Refused(Vec<String>),
    /// An override that is none.
    #[error("`--override {text}` overrides nothing: {why}")]
    Override {
        /// As given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Programs that are needed.
    #[error("not installed: {}", .0.join(", "))]
    NotInstalled(Vec<String>),
    /// Only root builds.
    #[error("stacks are built by root, and this is user {0}")]
    NotRoot(u32),
    /// A stack that cannot be built of these devices.
    #[error("stack {number} ({title}) cannot be built: {source}")]
    Steps {
        /// Of the plan.
        number: u32,
        /// Its levels.
        title: String,
        /// Why.
        source: layout::StepsError,
    },
    /// The journal cannot be kept.
    #[error("cannot {what} the journal {path}: {source}")]
    Journal {
        /// `read`, `write`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// What is in the journal is none.
    #[error("{path} cannot be read as a journal: {source}")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why.
        source: study::journal::JournalError,
    },
    /// It may be anybody's.
    #[error("{path} is not taken for a journal: {why}")]
    Untrusted {
        /// Which.
        path: PathBuf,
        /// What is odd.
        why: String,
    },
    /// Programs that a killed study has started.
    #[error("what the study started when it was killed is still at work, and has {file} open")]
    ToolsAtWork {
        /// What they hold.
        file: PathBuf,
    },
    /// File systems where the study mounts that its journal does not know.
    #[error("something is mounted that the journal does not know of: {}", .things.join(", "))]
    StillThere {
        /// Mount points.
        things: Vec<String>,
    },
    /// Somebody put something into directories of the study.
    #[error("not all of its directories are gone: {}", .whys.join("; "))]
    DirectoriesStay {
        /// Which, and what is in them.
        whys: Vec<String>,
    },
    /// A command that is never done, whatever the study's file says.
    #[error("stack {number} ({title}): {why}")]
    Words {
        /// Of the plan.
        number: u32,
        /// Its levels.
        title: String,
        /// Which word, and why.
        why: String,
    },
    /// The files of its suites cannot fit.
    #[error(
        "stack {} ({}) holds {} at most, wanted {}, the `size` of `[measure]`",
        .0.stack, .0.title, .0.holds.exact(), .0.wanted.exact()
    )]
    TooSmall(study::TooSmall),
    /// Two targets that are one.
    #[error("the targets {one} and {other} are two names of one thing")]
    OneTarget {
        /// As the study names it.
        one: String,
        /// As well.
        other: String,
    },
    /// Another process is at it.
    #[error("the study {name} is being played by another process")]
    InUse {
        /// Its name.
        name: String,
    },
    /// There is one to go on with.
    #[error("{file} was begun and did not come to its end ({made} of {runs} runs made)")]
    Unfinished {
        /// The study's file.
        file: String,
        /// Runs that were made.
        made: usize,
        /// Runs in all.
        runs: u32,
    },
    /// There is none to go on with.
    #[error("{file} has nothing to resume")]
    NothingToResume {
        /// The study's file.
        file: String,
    },
    /// The file is not what it was.
    #[error("{file} was changed since the study began")]
    Changed {
        /// The study's file.
        file: String,
    },
    /// A device is not the one that it was.
    #[error("{device} is left alone: {why}")]
    Exchanged {
        /// As the study names it.
        device: String,
        /// How it differs.
        why: String,
    },
    /// Somebody else uses a device since the study began.
    #[error("stopped before \"{step}\": {}", .whys.join("; "))]
    InTheWay {
        /// What was not begun.
        step: String,
        /// Which device, and who uses it.
        whys: Vec<String>,
    },
    /// Something could not be undone.
    #[error("cannot take back \"{what}\": {why}")]
    Undo {
        /// The step.
        what: String,
        /// The program's words.
        why: String,
    },
    /// The store.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl PlayError {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Study(error) => return error.hint(),
            Self::Refused(_) => {
                "`docs/studies.md` says what each means; where only what is written on a device is \
                 in the way and may be lost, `--override signature:DEVICE` with its serial or path"
                    .to_owned()
            }
            Self::Override { .. } => {
                "one refusal of one device: `--override signature:/dev/disk/by-id/...`, or with \
                 the device's serial; known are signature, open and system-unseen"
                    .to_owned()
            }
            Self::NotInstalled(_) => {
                "install their packages, or take what needs them out of the study".to_owned()
            }
            Self::NotRoot(_) => "measuring paths that are there needs no root".to_owned(),
            Self::Steps { source, .. } => return source.hint(),
            Self::Journal { .. } => "it is beside the store: `plimsoll path` says where".to_owned(),
            Self::InUse { .. } => "wait for it, or end it with Ctrl-C in its terminal".to_owned(),
            Self::Unfinished { .. } => {
                "`--resume` goes on with it; `plimsoll study clean` takes back what it left, and \
                 then it can begin anew"
                    .to_owned()
            }
            Self::NothingToResume { .. } => "leave `--resume` out to begin it".to_owned(),
            Self::Changed { .. } => {
                "put the file back as it was to resume; or `plimsoll study clean` and begin anew"
                    .to_owned()
            }
            Self::Exchanged { .. } => {
                "attach the device that the study began with; nothing was written to what is there \
                 now. If that one is gone for good, `plimsoll study clean` takes back what is on the \
                 others; when nothing else is left, remove the study's journal beside the store"
                    .to_owned()
            }
            Self::InTheWay { .. } => {
                "nothing of that step was done; end what uses the device, then `--resume` goes on \
                 with the study, or `plimsoll study clean` takes back what it built"
                    .to_owned()
            }
            Self::Undo { .. } => {
                "`plimsoll study clean` tries again, once what is in the way is gone".to_owned()
            }
            Self::Run(error) => return error.hint(),
            Self::Damaged { source: study::journal::JournalError::Empty, path } => format!(
                "a machine that lost its power, or somebody else, left it so: see what `/run/plimsoll`, \
                 `/dev/md` and `vgs` have of the study's key, which is in its name, take that apart by \
                 hand, and `rm {}`",
                layout::shell_word(&path.display().to_string())
            ),
            Self::Damaged { .. } => {
                "nothing can be taken back by it: see what `/run/plimsoll` and `/dev/md` have of the \
                 study's key, which is in the journal's name, take that apart by hand, and remove \
                 the journal"
                    .to_owned()
            }
            Self::Untrusted { .. } => {
                "remove it, if it is not yours; a journal is its owner's, and nobody else may write \
                 to it"
                    .to_owned()
            }
            Self::ToolsAtWork { .. } => {
                "it writes to the study's devices: `fuser -v` of that file names it; wait for its \
                 end, and do this again"
                    .to_owned()
            }
            Self::StillThere { .. } => {
                "the journal was cut short: unmount these by hand, then `plimsoll study clean` again"
                    .to_owned()
            }
            Self::DirectoriesStay { .. } => {
                "that is not the study's: take it elsewhere, then `plimsoll study clean` again"
                    .to_owned()
            }
            Self::OneTarget { .. } => "name each thing once".to_owned(),
            Self::TooSmall(found) => format!(
                "a `size` below {}, of which the file system needs some itself; or larger devices",
                found.holds.exact()
            ),
            Self::Words { .. } => {
                "take the word out of `mkfs` or `mount` in the study's file".to_owned()
            }
        })
    }

    /// Whether it was refused because it would be unsafe.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused(_)
                | Self::Exchanged { .. }
                | Self::InTheWay { .. }
                | Self::NotRoot(_)
                | Self::InUse { .. }
                | Self::ToolsAtWork { .. }
                | Self::Untrusted { .. }
        )
    }

    /// Whether the order makes no sense.
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Study(_)
                | Self::Override { .. }
                | Self::Steps { .. }
                | Self::Words { .. }
                | Self::OneTarget { .. }
                | Self::TooSmall(_)
                | Self::Unfinished { .. }
                | Self::NothingToResume { .. }
                | Self::Changed { .. }
        )
    }
}
