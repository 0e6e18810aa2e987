//! The rules that forbid, each with what to do about it.

use std::fmt;

use units::Bytes;

/// One rule that forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// Reading wanted, nothing there.
    #[error("{path} does not exist, so there is nothing to read")]
    NothingToRead {
        /// The target.
        path: String,
    },
    /// Pipe, socket.
    #[error("{path} is a {kind}; wanted a regular file, a directory, or a device")]
    WrongKind {
        /// The target.
        path: String,
        /// What it is.
        kind: String,
    },
    /// Character devices are read only.
    #[error("{path} is a character device, which is only ever read")]
    CharacterDevice {
        /// The target.
        path: String,
    },
    /// Without mark, unnamed.
    #[error("{path} exists ({size}) and was not created by plimsoll: {mark}")]
    NotOurs {
        /// The target.
        path: String,
        /// Its length.
        size: Bytes,
        /// What was seen of a mark.
        mark: String,
    },
    /// Named, but not this.
    #[error("{path} is the target, but {flag} names {named}")]
    NamedOther {
        /// The target.
        path: String,
        /// The flag.
        flag: &'static str,
        /// What it names.
        named: String,
    },
    /// More than one name.
    #[error("{path} has {links} hard links, wanted 1: writing it changes the other names too")]
    HardLinks {
        /// The target.
        path: String,
        /// How many.
        links: u64,
    },
    /// Open elsewhere: a device for writing, a file in any way.
    #[error("{path} is in use by {by}")]
    InUse {
        /// The target.
        path: String,
        /// Which.
        by: String,
    },
    /// Swap file or device.
    #[error("{path} is in use as swap ({device})")]
    Swap {
        /// The target.
        path: String,
        /// Which file or device.
        device: String,
    },
    /// Under a loop device.
    #[error("{path} is the file of the loop device {device}")]
    LoopFile {
        /// The target.
        path: String,
        /// Which.
        device: String,
    },
    /// The program or the store.
    #[error("{path} is {what}")]
    Own {
        /// The target.
        path: String,
        /// What of ours.
        what: String,
    },
    /// No place for data.
    #[error("{path} is in {place}, which is no storage")]
    NotStorage {
        /// The target.
        path: String,
        /// Where.
        place: String,
    },
    /// A device's name, and no device.
    #[error("{path} does not exist: there is no such device, and no file is made in /dev")]
    NoSuchDevice {
        /// The target.
        path: String,
    },
    /// Mounted or set read-only.
    #[error("{path} is on a read-only {what}")]
    ReadOnly {
        /// The target.
        path: String,
        /// File system or device.
        what: &'static str,
    },
    /// It would fill up.
    #[error(
        "{path}: {needed} more would leave {left} free of {total}; at least {reserve} must stay \
         free (5 %, at least 1 GiB, at most 8 GiB)"
    )]
    NoSpace {
        /// The target.
        path: String,
        /// What the run takes.
        needed: Bytes,
        /// What would be left.
        left: Bytes,
        /// What must be left.
        reserve: Bytes,
        /// The file system's size.
        total: Bytes,
        /// A size that would fit, if any.
        fits: Option<Bytes>,
    },
    /// A device that nobody named.
    #[error("{path} is a block device: writing it destroys what it holds ({summary})")]
    NotNamed {
        /// The target.
        path: String,
        /// Which device.
        summary: String,
    },
    /// More is to be written than it holds.
    #[error("{path} has {size}, wanted {wanted}")]
    TooSmall {
        /// The target.
        path: String,
        /// Its size.
        size: Bytes,
        /// What is wanted.
        wanted: Bytes,
    },
    /// The system is on it.
    #[error("{path} is never written: {device} is under {what}")]
    System {
        /// The target.
        path: String,
        /// The shared device.
        device: String,
        /// What of the system.
        what: String,
    },
    /// The system may be on it.
    #[error("{path} is not blank, and whether the system is on it cannot be seen: {unseen}")]
    SystemUnseen {
        /// The target.
        path: String,
        /// What could not be seen.
        unseen: String,
    },
    /// Mounted.
    #[error("{path} is in use: {device} is mounted at {at}")]
    Mounted {
        /// The target.
        path: String,
        /// What is mounted.
        device: String,
        /// Where.
        at: String,
    },
    /// Held.
    #[error("{path} is in use: {device} is held by {by}")]
    Held {
        /// The target.
        path: String,
        /// What is held.
        device: String,
        /// By what.
        by: String,
    },
    /// Bears something.
    #[error("{path} is not blank: {found}")]
    Signature {
        /// The target.
        path: String,
        /// What and where.
        found: String,
    },
    /// Its users cannot be found out.
    #[error("{path} may be in use by others: cannot check {what}")]
    Unchecked {
        /// The target.
        path: String,
        /// What.
        what: String,
    },
    /// What it bears is not known.
    #[error("{path} could not be examined, so its contents are unknown: {why}")]
    CannotProbe {
        /// The target.
        path: String,
        /// The kernel's words.
        why: String,
    },
}

impl RefusalReason {
    /// What the user can do; `None` where nothing helps.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NothingToRead { .. } => "name an existing file or device".to_owned(),
            Self::WrongKind { .. } | Self::CharacterDevice { .. } | Self::NotStorage { .. } => {
                "name a file or directory on the storage that is to be measured".to_owned()
            }
            Self::NoSuchDevice { .. } => "`lsblk` lists the devices there are".to_owned(),
            Self::NotOurs { path, .. } => {
                format!("if its contents may be lost, add --overwrite {path}; else name a new file")
            }
            Self::NamedOther { path, flag, .. } => {
                format!("check which one is meant; {flag} must name {path}")
            }
            Self::HardLinks { .. } => "name a file that has no other name".to_owned(),
            Self::InUse { .. } => {
                "wait for that process or end it first, or name another file".to_owned()
            }
            Self::Swap { device, .. } => format!("`swapoff {device}` first, if that is meant"),
            Self::LoopFile { device, .. } => format!("`losetup -d {device}` first"),
            Self::Own { .. } => "name another file".to_owned(),
            Self::ReadOnly { .. } => "only reads can be measured here".to_owned(),
            Self::NoSpace { fits: Some(fits), .. } => format!("--size {} would fit", fits.exact()),
            Self::NoSpace { fits: None, .. } => "make room first, or measure elsewhere".to_owned(),
            Self::NotNamed { path, .. } => {
                format!("if everything on it may be lost, add --destroy {path}")
            }
            Self::TooSmall { size, .. } => format!("--size {} at most", size.exact()),
            Self::System { .. } => "name a file on it instead".to_owned(),
            Self::SystemUnseen { .. } => {
                "erase the device from the machine's own system first (`wipefs -a`)".to_owned()
            }
            Self::Mounted { at, .. } => {
                format!("name a file in {at} instead, or unmount it if that is meant")
            }
            Self::Held { by, .. } if by.contains(' ') => "end what uses it first".to_owned(),
            Self::Held { by, .. } => format!("name {by} itself, or take it apart first"),
            Self::Signature { .. } => "if it may be lost, add --even-though signature".to_owned(),
            Self::Unchecked { what, .. } => {
                let how = if what.contains("no procfs") || what.contains("no sysfs") {
                    "mount procfs at /proc and sysfs at /sys"
                } else {
                    "run as root with all rights, outside of containers"
                };
                format!("{how}; if nobody can be using it, add --even-though unchecked")
            }
            Self::CannotProbe { .. } => "run as a user who may read the device".to_owned(),
        })
    }
}

/// Why a target may not be used: every rule that forbids, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    first: RefusalReason,
    others: Vec<RefusalReason>,
}

impl From<RefusalReason> for Refusal {
    fn from(first: RefusalReason) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl Refusal {
    pub(super) fn new(reasons: Vec<RefusalReason>) -> Option<Self> {
        let mut reasons = reasons.into_iter();
        Some(Self { first: reasons.next()?, others: reasons.collect() })
    }

    /// Every rule that forbids, the gravest first.
    pub fn reasons(&self) -> impl Iterator<Item = &RefusalReason> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// What the user can do about the gravest. The others' hints would be idle: a mounted
    /// device does not become writable by `--destroy`.
    pub fn hint(&self) -> Option<String> {
        self.first.hint()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.others.iter().try_for_each(|reason| write!(f, "; {reason}"))
    }
}

impl std::error::Error for Refusal {}
