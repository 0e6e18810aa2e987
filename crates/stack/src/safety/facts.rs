//! What a decision rests on: what is wanted, what the operator said, what was found.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use units::Bytes;

use crate::mark::Mark;
use crate::mounts::DeviceNumber;
use crate::signature::Signature;
use crate::target::{FileId, Space};

/// What a run wants with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Access {
    /// To read what is there.
    Read,
    /// To write it, or to make a file of it.
    Write {
        /// How long the file is to be; of a block device how much of it is written.
        size: Bytes,
        /// What other files of the same run will take of the same file system besides.
        also: Bytes,
    },
}

/// What the operator said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// Each `--overwrite FILE`.
    pub overwrite: Vec<PathBuf>,
    /// Each `--destroy DEVICE`.
    pub destroy: Vec<PathBuf>,
    /// `--even-though signature`.
    pub even_though_signature: bool,
    /// `--even-though unchecked`.
    pub even_though_unchecked: bool,
    /// Mount points of file systems that were made for this run and hold nothing else: they may be
    /// filled further than others' may.
    pub own_mounts: Vec<PathBuf>,
}

/// A process that uses the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Its name, as the kernel keeps it (15 bytes).
    pub name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.id)
    }
}

/// What the kernel answers who asks it for a lease, which it grants only where nobody else has the
/// file open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lease {
    /// Nothing: there are no leases on devices and on some file systems, nor on other users' files.
    #[default]
    Unknown,
    /// That nobody else has it open.
    Free,
    /// That somebody has.
    Taken,
}

/// Which processes were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Users {
    /// That have it open: for writing, or in any way where the kernel says that somebody has.
    pub by: Vec<Process>,
    /// How many processes could not be looked into, for want of rights.
    pub unseen: usize,
    /// There may be processes that `/proc` does not show: those outside of a PID namespace, and those of
    /// others where it hides them.
    pub may_be_hidden: bool,
    /// What the kernel says of users, whoever they are.
    pub lease: Lease,
}

/// The file system that a file is in or would be made in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its type; empty if not known.
    pub file_system: String,
    /// Mounted read-only.
    pub read_only: bool,
    /// Its space; of file systems in memory at most what memory is available.
    pub space: Option<Space>,
    /// Why it is no place for data: `/dev`, `proc`.
    pub not_storage: Option<String>,
    /// It was made for this run and holds nothing else.
    pub is_own: bool,
}

/// What was found of an existing regular file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileFacts {
    /// Where it is.
    pub place: Place,
    /// Which file.
    pub id: FileId,
    /// Its length.
    pub size: Bytes,
    /// What it takes.
    pub allocated: Bytes,
    /// Of what is to be written, what takes new space all the same.
    pub shared: Bytes,
    /// Names that it has.
    pub links: u64,
    /// Whether Plimsoll made it.
    pub mark: Mark,
    /// Whether an `--overwrite` names it.
    pub named: bool,
    /// What each `--overwrite` that names another file resolves to.
    pub named_others: Vec<String>,
    /// What of Plimsoll's own it is: the program, a file of the store.
    pub own: Option<String>,
    /// Whether the kernel swaps to it.
    pub swap: bool,
    /// Loop devices over it.
    pub loops: Vec<String>,
    /// Processes that use it.
    pub users: Users,
    /// What cannot be found out about its users.
    pub unchecked: Vec<String>,
    /// `--even-though unchecked`.
    pub even_though_unchecked: bool,
}

/// A use of a device, or of something made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceUse {
    /// Kernel name of what is used.
    pub device: String,
    /// By what: a mount point, a holder's name.
    pub by: String,
}

/// What was found of a block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockFacts {
    /// Kernel name.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// How long.
    pub size: Bytes,
    /// One line for people.
    pub summary: String,
    /// Whether it refuses writes.
    pub read_only: bool,
    /// Whether a `--destroy` names it.
    pub named: bool,
    /// What each `--destroy` that names something else resolves to.
    pub named_others: Vec<String>,
    /// `--even-though signature`.
    pub even_though_signature: bool,
    /// Mounts of it, its disk, its partitions, and what is built on these.
    pub mounts: Vec<DeviceUse>,
    /// Swap on any of those, by kernel name.
    pub swaps: Vec<String>,
    /// What holds it, its disk or its partitions: md, device mapper, bcache, btrfs, a loop
    /// device over it.
    pub holders: Vec<DeviceUse>,
    /// What the system needs that is on the same disk: `/`, the program, the store.
    pub system: Vec<DeviceUse>,
    /// What could not be seen of the system's own disks.
    pub system_unseen: Vec<String>,
    /// Whether zfs pools are imported: which devices they hold is not shown by the kernel.
    pub zfs_pools: bool,
    /// What is written on it, or why that could not be read.
    pub signatures: Result<Vec<Signature>, String>,
    /// Partitions of it that the kernel knows.
    pub partitions: Vec<String>,
    /// Processes that use it.
    pub users: Users,
    /// What cannot be found out about its users.
    pub unchecked: Vec<String>,
    /// `--even-though unchecked`.
    pub even_though_unchecked: bool,
}

/// What kind of thing is to be used, with all that was found of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Subject {
    /// An existing regular file.
    File(Box<FileFacts>),
    /// A file that does not exist yet.
    NewFile(Place),
    /// A directory, for a scratch file inside.
    Directory(Place),
    /// A block device.
    Block(Box<BlockFacts>),
    /// A character device.
    Character,
    /// A pipe, a socket.
    Other {
        /// Which.
        name: String,
    },
}

/// All that a decision needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// The target as the user named it.
    pub given: PathBuf,
    /// Links resolved.
    pub resolved: PathBuf,
    /// What is wanted.
    pub access: Access,
    /// What it is.
    pub subject: Subject,
}
