//! What may be written, decided on gathered facts alone.
//!
//! Nothing is written that the operator did not name. Every rule has its own
//! [`RefusalReason`]; all that apply are reported at once, so that nobody has to find them one
//! by one.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use units::Bytes;

use crate::mark::Mark;
use crate::mounts::DeviceNumber;
use crate::signature::{Family, Signature};
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

/// Which processes were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Users {
    /// That have it open for writing.
    pub writers: Vec<Process>,
    /// That have it mapped, running programs among them.
    pub mappers: Vec<Process>,
    /// How many processes could not be looked into, for want of rights.
    pub unseen: usize,
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
    #[error("{path} exists ({size}) and was not made by plimsoll: {mark}")]
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
    /// Open for writing elsewhere.
    #[error("{path} is open for writing by {by}")]
    OpenWriter {
        /// The target.
        path: String,
        /// Which.
        by: String,
    },
    /// Mapped or running.
    #[error("{path} is mapped into the memory of {by}, or is its program")]
    Mapped {
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
         free (5 % or 1 GiB, whichever is more)"
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
    /// What it bears is not known.
    #[error("{path} could not be looked at, so nobody knows what is on it: {why}")]
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
            Self::NotOurs { path, .. } => {
                format!("if its contents may be lost, add --overwrite {path}; else name a new file")
            }
            Self::NamedOther { path, flag, .. } => {
                format!("check which one is meant; {flag} must name {path}")
            }
            Self::HardLinks { .. } => "name a file that has no other name".to_owned(),
            Self::OpenWriter { .. } | Self::Mapped { .. } => "end that process first".to_owned(),
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
            Self::Held { by, .. } => format!("name {by} itself, or take it apart first"),
            Self::Signature { .. } => "if it may be lost, add --even-though signature".to_owned(),
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

impl Refusal {
    fn new(reasons: Vec<RefusalReason>) -> Option<Self> {
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
    identity: Option<Identity>,
    #[serde(skip)]
    told: Told,
}

/// What sentences about several files at once are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    /// The link that leads there, as a sentence.
    link: Option<String>,
    /// Wanted.
    size: Bytes,
    /// An existing one is shorter than that.
    grows: bool,
    /// Why an existing one may be written.
    why: &'static str,
    /// Of the file system in which it is made.
    space: Option<Space>,
    /// What could not be seen of its users, as a sentence.
    blind: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Identity {
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
    /// What will be read, written, created and removed: one sentence each, for `--dry-run`.
    pub fn describe(&self) -> &[String] {
        &self.sentences
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
}

/// What must stay free on a file system of that size: 5 % or 1 GiB, whichever is more.
pub fn space_reserve(total: Bytes) -> Bytes {
    // Rounded up: a reserve is a promise.
    Bytes::new(total.get().div_ceil(20)).max(Bytes::gib(1))
}

/// Of a file system of our own this part stays free.
const OWN_RESERVE: u64 = 50;

/// Scratch files are cut to whole MiB.
const SCRATCH_UNIT: u64 = 1 << 20;

/// The largest scratch file up to `wanted` that leaves the reserve free: `wanted` itself, or
/// less in whole MiB; `None` if not even one MiB fits.
pub fn suggest_scratch_size(space: Space, wanted: Bytes) -> Option<Bytes> {
    let usable = space.free.get().saturating_sub(space_reserve(space.total).get());
    if usable >= wanted.get() {
        return Some(wanted);
    }
    let whole = usable / SCRATCH_UNIT * SCRATCH_UNIT;
    (whole > 0).then_some(Bytes::new(whole))
}

/// Whether the target may be used as wanted. Pure: the same facts, the same answer.
pub fn decide(facts: &Facts) -> Result<Permit, Refusal> {
    let mut reasons = Vec::new();
    match facts.access {
        Access::Read => judge_read(facts, &mut reasons),
        Access::Write { size, also } => judge_write(facts, size, also, &mut reasons),
    }
    Refusal::new(reasons).map_or_else(|| Ok(permit(facts)), Err)
}

fn judge_read(facts: &Facts, reasons: &mut Vec<RefusalReason>) {
    let path = facts.resolved.display().to_string();
    match &facts.subject {
        Subject::File(_) | Subject::Block(_) | Subject::Character => {}
        Subject::NewFile(_) => reasons.push(RefusalReason::NothingToRead { path }),
        Subject::Directory(_) => {
            reasons.push(RefusalReason::WrongKind { path, kind: "directory".to_owned() });
        }
        Subject::Other { name } => {
            reasons.push(RefusalReason::WrongKind { path, kind: name.clone() });
        }
    }
}

fn judge_write(facts: &Facts, size: Bytes, also: Bytes, reasons: &mut Vec<RefusalReason>) {
    let path = facts.resolved.display().to_string();
    match &facts.subject {
        Subject::File(file) => judge_file(&path, file, size, also, reasons),
        Subject::NewFile(place) | Subject::Directory(place) => {
            judge_place(&path, place, reasons);
            judge_space(&path, place, size, also, Bytes::ZERO, reasons);
        }
        Subject::Block(block) => judge_block(&path, block, size, reasons),
        Subject::Character => reasons.push(RefusalReason::CharacterDevice { path }),
        Subject::Other { name } => {
            reasons.push(RefusalReason::WrongKind { path, kind: name.clone() });
        }
    }
}

fn judge_place(path: &str, place: &Place, reasons: &mut Vec<RefusalReason>) {
    let path = path.to_owned();
    if let Some(where_) = &place.not_storage {
        reasons.push(RefusalReason::NotStorage { path: path.clone(), place: where_.clone() });
    }
    if place.read_only {
        reasons.push(RefusalReason::ReadOnly { path, what: "file system" });
    }
}

fn judge_space(
    path: &str,
    place: &Place,
    size: Bytes,
    also: Bytes,
    taken: Bytes,
    reasons: &mut Vec<RefusalReason>,
) {
    // A total of 0 is a file system that does not tell (some FUSE).
    let Some(space) = place.space.filter(|s| s.total.get() > 0) else { return };
    let needed = size.get().saturating_sub(taken.get()).saturating_add(also.get());
    let reserve = match place.is_own {
        // Nobody else's data wait for room there; file systems want some for themselves.
        true => Bytes::new(space.total.get().div_ceil(OWN_RESERVE)),
        false => space_reserve(space.total),
    };
    let left = space.free.get().saturating_sub(needed);
    if needed > 0 && left < reserve.get() {
        let room =
            Space { free: Bytes::new(space.free.get().saturating_add(taken.get())), ..space };
        reasons.push(RefusalReason::NoSpace {
            path: path.to_owned(),
            needed: Bytes::new(needed),
            left: Bytes::new(left),
            reserve,
            total: space.total,
            fits: suggest_scratch_size(room, size).filter(|_| also == Bytes::ZERO),
        });
    }
}

fn judge_users(path: &str, users: &Users, reasons: &mut Vec<RefusalReason>) {
    let list = |all: &[Process]| all.iter().map(Process::to_string).collect::<Vec<_>>().join(", ");
    if !users.writers.is_empty() {
        let by = list(&users.writers);
        reasons.push(RefusalReason::OpenWriter { path: path.to_owned(), by });
    }
    if !users.mappers.is_empty() {
        let by = list(&users.mappers);
        reasons.push(RefusalReason::Mapped { path: path.to_owned(), by });
    }
}

fn judge_file(
    path: &str,
    file: &FileFacts,
    size: Bytes,
    also: Bytes,
    reasons: &mut Vec<RefusalReason>,
) {
    let owned = || path.to_owned();
    judge_place(path, &file.place, reasons);
    if let Some(what) = &file.own {
        reasons.push(RefusalReason::Own { path: owned(), what: what.clone() });
    }
    if file.swap {
        reasons.push(RefusalReason::Swap { path: owned(), device: owned() });
    }
    for device in &file.loops {
        let device = format!("/dev/{device}");
        reasons.push(RefusalReason::LoopFile { path: owned(), device });
    }
    judge_users(path, &file.users, reasons);
    if file.links > 1 {
        reasons.push(RefusalReason::HardLinks { path: owned(), links: file.links });
    }
    if !file.named
        && let Some(mark) = foreign(&file.mark)
    {
        if !file.named_others.is_empty() {
            let named = file.named_others.join(", ");
            reasons.push(RefusalReason::NamedOther { path: owned(), flag: "--overwrite", named });
        }
        reasons.push(RefusalReason::NotOurs { path: owned(), size: file.size, mark });
    }
    judge_space(path, &file.place, size, also, file.allocated.min(file.size), reasons);
}

/// Why a mark does not make the file ours; `None` if it does.
fn foreign(mark: &Mark) -> Option<String> {
    Some(match mark {
        Mark::Ours => return None,
        Mark::None => "it has no mark".to_owned(),
        Mark::Stale { why } => why.clone(),
        Mark::Unsupported => {
            "its file system keeps no extended attributes, so that no file on it has a mark"
                .to_owned()
        }
        Mark::Unreadable { why } => format!("its mark cannot be read ({why})"),
    })
}

fn judge_block(path: &str, block: &BlockFacts, size: Bytes, reasons: &mut Vec<RefusalReason>) {
    let owned = || path.to_owned();
    for DeviceUse { device, by } in &block.system {
        let (device, what) = (device.clone(), by.clone());
        reasons.push(RefusalReason::System { path: owned(), device, what });
    }
    for DeviceUse { device, by } in &block.mounts {
        let (device, at) = (device.clone(), by.clone());
        reasons.push(RefusalReason::Mounted { path: owned(), device, at });
    }
    for device in &block.swaps {
        let device = format!("/dev/{device}");
        reasons.push(RefusalReason::Swap { path: owned(), device });
    }
    for DeviceUse { device, by } in &block.holders {
        let (device, by) = (device.clone(), by.clone());
        reasons.push(RefusalReason::Held { path: owned(), device, by });
    }
    judge_users(path, &block.users, reasons);
    if block.read_only {
        reasons.push(RefusalReason::ReadOnly { path: owned(), what: "device" });
    }
    if !block.named {
        if block.named_others.is_empty() {
            let summary = block.summary.clone();
            reasons.push(RefusalReason::NotNamed { path: owned(), summary });
        } else {
            let named = block.named_others.join(", ");
            reasons.push(RefusalReason::NamedOther { path: owned(), flag: "--destroy", named });
        }
    }
    judge_contents(path, block, reasons);
    if size > block.size {
        reasons.push(RefusalReason::TooSmall { path: owned(), size: block.size, wanted: size });
    }
}

fn judge_contents(path: &str, block: &BlockFacts, reasons: &mut Vec<RefusalReason>) {
    let path = path.to_owned();
    let signatures = match &block.signatures {
        Ok(signatures) => signatures,
        Err(why) => {
            reasons.push(RefusalReason::CannotProbe { path, why: why.clone() });
            return;
        }
    };
    let mut found: Vec<String> = signatures.iter().map(Signature::to_string).collect();
    if !block.partitions.is_empty() {
        found.push(format!("partitions {}", block.partitions.join(", ")));
    }
    if found.is_empty() {
        return;
    }
    let zfs = signatures.iter().any(|s| s.family == Family::Member && s.name.starts_with("zfs"));
    if zfs && block.zfs_pools {
        let (device, by) = (block.name.clone(), "zfs, which has pools imported".to_owned());
        reasons.push(RefusalReason::Held { path: path.clone(), device, by });
    }
    if !block.system_unseen.is_empty() {
        let unseen = block.system_unseen.join("; ");
        reasons.push(RefusalReason::SystemUnseen { path: path.clone(), unseen });
    }
    if !block.even_though_signature {
        reasons.push(RefusalReason::Signature { path, found: found.join(", ") });
    }
}

fn permit(facts: &Facts) -> Permit {
    let mut sentences = Vec::new();
    if facts.given != facts.resolved {
        sentences.push(is_at(facts));
    }
    let (action, identity) = match (facts.access, &facts.subject) {
        (Access::Read, subject) => {
            sentences.push(format!("Reads {}.", facts.resolved.display()));
            sentences.push("Writes, creates and removes nothing there.".to_owned());
            (Action::Read, identity(subject))
        }
        (Access::Write { size, .. }, subject) => {
            let action = describe_write(facts, size, &mut sentences);
            (action, identity(subject))
        }
    };
    Permit { path: facts.resolved.clone(), action, sentences, identity, told: told(facts) }
}

fn told(facts: &Facts) -> Told {
    let link = (facts.given != facts.resolved).then(|| is_at(facts));
    let size = match facts.access {
        Access::Read => Bytes::ZERO,
        Access::Write { size, .. } => size,
    };
    let told = Told { link, size, ..Told::default() };
    match &facts.subject {
        Subject::NewFile(place) | Subject::Directory(place) => Told { space: place.space, ..told },
        Subject::File(file) => Told {
            grows: size > file.size,
            why: may_be_written(file),
            blind: blind(&file.users),
            ..told
        },
        _ => told,
    }
}

fn is_at(facts: &Facts) -> String {
    format!("{} is {}.", facts.given.display(), facts.resolved.display())
}

fn may_be_written(file: &FileFacts) -> &'static str {
    match file.mark {
        Mark::Ours => "which plimsoll made",
        _ => "as --overwrite says",
    }
}

/// What will be read, written, created and removed of the files of one target, which are numbered:
/// as [`Permit::describe`] where there is one; of those that are treated alike in a row together.
pub fn describe_all(permits: &[Permit]) -> Vec<String> {
    if let [one] = permits {
        return one.sentences.clone();
    }
    let mut said: Vec<String> = permits.iter().filter_map(|one| one.told.link.clone()).collect();
    let alike = |a: &Permit, b: &Permit| a.action == b.action && a.told.why == b.told.why;
    for row in permits.chunk_by(alike) {
        said.extend(describe_row(row));
    }
    let made: Vec<&Permit> = permits.iter().filter(|one| one.told.space.is_some()).collect();
    if let Some(space) = made.first().and_then(|one| one.told.space) {
        let all = made.iter().fold(0, |sum: u64, one| sum.saturating_add(one.told.size.get()));
        said.extend(room(Some(space), Bytes::new(all)));
    }
    said.extend(permits.iter().find_map(|one| one.told.blind.clone()));
    said
}

fn describe_row(row: &[Permit]) -> Vec<String> {
    let paths: Vec<&Path> = row.iter().map(|one| one.path.as_path()).collect();
    let (first, size) = (row.first(), row.first().map_or(Bytes::ZERO, |one| one.told.size));
    let why = first.map_or("", |one| one.told.why);
    let names = match row.len() {
        1 => format!("{} ({size})", row_of(&paths)),
        files => format!("{} ({files} files of {size})", row_of(&paths)),
    };
    match first.map(|one| &one.action) {
        None => Vec::new(),
        Some(Action::Read) => vec![
            format!("Reads {}.", row_of(&paths)),
            "Writes, creates and removes nothing there.".to_owned(),
        ],
        Some(Action::Create | Action::ScratchInside) => {
            vec![format!("Creates {names}, marks each as plimsoll's, and writes it.")]
        }
        Some(Action::Overwrite) => {
            let mut said = vec![format!("Overwrites {names}, {why}.")];
            if row.iter().any(|one| one.told.grows) {
                said.push(format!("Extends those that are shorter than {size}."));
            }
            said
        }
        // A device is one, whatever else there is.
        Some(Action::Destroy) => row.iter().flat_map(|one| one.sentences.clone()).collect(),
    }
}

/// Names of files in a row: `NAME.0 .. NAME.127`.
pub fn row_of(paths: &[&Path]) -> String {
    match paths {
        [] => String::new(),
        [one] => one.display().to_string(),
        [first, .., last] => format!("{} .. {}", first.display(), last.display()),
    }
}

fn identity(subject: &Subject) -> Option<Identity> {
    match subject {
        Subject::File(file) => Some(Identity::File(file.id)),
        Subject::Block(block) => Some(Identity::Device(block.number)),
        _ => None,
    }
}

fn describe_write(facts: &Facts, size: Bytes, sentences: &mut Vec<String>) -> Action {
    let path = facts.resolved.display();
    match &facts.subject {
        Subject::NewFile(place) => {
            sentences
                .push(format!("Creates {path} ({size}), marks it as plimsoll's, and writes it."));
            sentences.extend(room(place.space, size));
            Action::Create
        }
        Subject::Directory(place) => {
            sentences.push(format!(
                "Creates a scratch file of {size} in {path}, writes it, and removes it afterwards."
            ));
            sentences.extend(room(place.space, size));
            Action::ScratchInside
        }
        Subject::File(file) => {
            let why = may_be_written(file);
            sentences.push(format!("Overwrites {path} ({}), {why}.", file.size));
            if size > file.size {
                sentences.push(format!("Extends it to {size}."));
            }
            sentences.push("Creates and removes nothing.".to_owned());
            sentences.extend(blind(&file.users));
            Action::Overwrite
        }
        Subject::Block(block) => {
            sentences
                .push(format!("Destroys what {path} holds, as --destroy says: {}.", block.summary));
            if let Ok(signatures) = &block.signatures {
                let found: Vec<String> = signatures.iter().map(Signature::to_string).collect();
                sentences.push(if found.is_empty() && block.partitions.is_empty() {
                    "Found nothing in its first and last MiB.".to_owned()
                } else {
                    let parts = block.partitions.iter().map(|p| format!("partition {p}"));
                    let all: Vec<String> = found.into_iter().chain(parts).collect();
                    format!("On it there is: {}.", all.join(", "))
                });
            }
            sentences.extend(blind(&block.users));
            Action::Destroy
        }
        // Refused before.
        Subject::Character | Subject::Other { .. } => Action::Read,
    }
}

fn room(space: Option<Space>, size: Bytes) -> Option<String> {
    let Some(space) = space.filter(|s| s.total.get() > 0) else {
        return Some("How much is free there is not known.".to_owned());
    };
    let left = Bytes::new(space.free.get().saturating_sub(size.get()));
    Some(format!("Leaves {left} free of {}.", space.total))
}

fn blind(users: &Users) -> Option<String> {
    (users.unseen > 0).then(|| {
        format!(
            "Whether {} other processes have it open could not be seen (not root).",
            users.unseen
        )
    })
}
