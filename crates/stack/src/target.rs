use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, IFlags, StatxFlags};
use rustix::io::Errno;
use serde::Serialize;
use units::Bytes;

use crate::alignment::Alignment;
use crate::block::{self, BlockDevice, BlockKind};
use crate::held::{Handle, Held};
use crate::host::Host;
use crate::mark::{self, Mark, mark_of_held};
use crate::mounts::{DeviceNumber, Mount, mount_of, mounts};

/// Which file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct FileId {
    /// Of its file system.
    pub device: DeviceNumber,
    /// Within it.
    pub inode: u64,
}

impl FileId {
    /// From `stat`.
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        Self { device: DeviceNumber::from_dev(metadata.dev()), inode: metadata.ino() }
    }
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum PathKind {
    /// A regular file.
    File {
        /// Which.
        id: FileId,
        /// Names that it has.
        links: u64,
        /// What it takes of the file system.
        allocated: Bytes,
    },
    /// A directory.
    Directory,
    /// A block device.
    BlockDevice {
        /// Its number.
        number: DeviceNumber,
    },
    /// A character device.
    CharacterDevice {
        /// Its number.
        number: DeviceNumber,
    },
    /// Nothing yet; its directory is there.
    Missing,
    /// A pipe, a socket.
    Other {
        /// What.
        name: String,
    },
}

/// How full a file system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Space {
    /// What this user may still take.
    pub free: Bytes,
    /// All of it.
    pub total: Bytes,
}

/// What was learnt about a path itself, before anything is looked up in sysfs and procfs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathFacts {
    /// As the user named it.
    pub given: PathBuf,
    /// Absolute, links resolved.
    pub resolved: PathBuf,
    /// What it is.
    pub kind: PathKind,
    /// Length of a file; of a block device sysfs tells.
    pub size: Bytes,
    /// The kernel's number of the mount that it is in, from Linux 5.8 on.
    pub mount_id: Option<u64>,
    /// Of its file system.
    pub space: Option<Space>,
    /// `chattr +c`; `None` where it cannot be read.
    pub compressed: Option<bool>,
    /// `chattr +C`: not copied on write.
    pub no_cow: Option<bool>,
    /// The path itself, or its directory when it is missing: all of this was read from it.
    #[serde(skip)]
    pub held: Held,
}

impl PathFacts {
    /// A path that stands for what was looked at, whatever its names stand for by now.
    pub(crate) fn stable(&self) -> PathBuf {
        self.held.get().map_or_else(|| self.resolved.clone(), |held| held.stable_path())
    }

    /// What its mark says.
    pub(crate) fn mark(&self) -> Mark {
        self.held.get().map_or_else(|| mark::mark_of(&self.resolved), |held| mark_of_held(&held))
    }
}

/// What is special about the place of a target: what a reader of its numbers must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
#[non_exhaustive]
pub enum Nature {
    /// tmpfs, ramfs, brd, zram: no device.
    Memory {
        /// Which.
        name: String,
    },
    /// The device is on another machine.
    Network {
        /// File system type.
        name: String,
        /// `server:/export`.
        source: String,
    },
    /// Writes go to another directory, after a copy of the whole file if it came from below.
    Overlay {
        /// The directory written to, as the kernel names it (perhaps outside this container).
        upper: Option<PathBuf>,
        /// Type of the file system that holds it, if it is visible here.
        upper_file_system: Option<String>,
    },
    /// Blocks are not written in place.
    CopyOnWrite {
        /// File system type.
        name: String,
    },
    /// Blocks are compressed, so that compressible data measures the processor.
    Compressed {
        /// By what that was seen.
        how: String,
    },
    /// It may be compressed and the kernel does not say.
    PerhapsCompressed {
        /// File system type.
        name: String,
    },
    /// Blocks are encrypted by the kernel.
    Encrypted {
        /// The device that does it.
        device: String,
    },
    /// A process stands between the kernel and the data.
    Fuse {
        /// `fuse.ntfs-3g`.
        name: String,
    },
}

impl Nature {
    /// One sentence for people, without a full stop.
    pub fn remark(&self) -> String {
        match self {
            Self::Memory { name } => format!("{name}: memory, no device"),
            Self::Network { name, source } => {
                format!("{name}: on another machine ({source}); this measures the network too")
            }
            Self::Overlay { upper, upper_file_system } => {
                let place = upper.as_ref().map_or_else(
                    || "it has no upper directory: read-only".to_owned(),
                    |upper| format!("writes go to {}", upper.display()),
                );
                let on = upper_file_system
                    .as_ref()
                    .map_or_else(|| ", not visible from here".to_owned(), |t| format!(" on {t}"));
                format!("overlay: {place}{}", if upper.is_some() { on.as_str() } else { "" })
            }
            Self::CopyOnWrite { name } => {
                format!("{name}: copy on write, blocks are not written in place")
            }
            Self::Compressed { how } => {
                format!("compressed ({how}): compressible data measures the processor")
            }
            Self::PerhapsCompressed { name } => {
                format!("{name}: may be compressed, the kernel does not say")
            }
            Self::Encrypted { device } => format!("{device}: encrypted by dm-crypt"),
            Self::Fuse { name } => format!("{name}: served by a process (FUSE)"),
        }
    }
}

/// All that is known about a path and what lies below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The path itself.
    pub path: PathFacts,
    /// The mount that it is in; `None` for devices and where no mount table can be read.
    pub mount: Option<Mount>,
    /// Block devices below, top first; the target itself if it is one.
    pub devices: Vec<BlockDevice>,
    /// What is special about it.
    pub natures: Vec<Nature>,
    /// What could not be seen.
    pub unseen: Vec<String>,
}

/// Why a path cannot be a target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Neither it nor its directory is there.
    #[error("{given} cannot be created: its directory {parent} does not exist")]
    NoParent {
        /// As named.
        given: String,
        /// The directory that would hold it.
        parent: String,
    },
    /// A device's name whose directory is not there either: nothing is created in `/dev`.
    #[error("there is no device {given}")]
    NoDevice {
        /// As named.
        given: String,
    },
    /// A directory by its name, which ends with a slash, and not there.
    #[error("{given} names a directory that does not exist")]
    NoDirectory {
        /// As named.
        given: String,
    },
    /// No words at all.
    #[error("the target's path is empty; wanted a file, a directory or a device")]
    Empty,
    /// A symbolic link to nothing.
    #[error("{given} is a symbolic link to {to}, which does not exist")]
    DanglingLink {
        /// As named.
        given: String,
        /// What the link says.
        to: String,
    },
    /// Such links stand for open files, whatever their text says.
    #[error("{given} leads through a link in /proc to an open file, or its links run in a circle")]
    Elsewhere {
        /// As named.
        given: String,
    },
    /// The kernel refused to say.
    #[error("{what} of {given} failed: {source}")]
    Look {
        /// Which step.
        what: &'static str,
        /// As named.
        given: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl TargetError {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoParent { parent, .. } => Some(format!("create {parent} first")),
            Self::NoDevice { .. } => Some("`lsblk` lists the devices there are".to_owned()),
            Self::NoDirectory { given } => Some(format!(
                "create it first (`mkdir {given}`), or leave out the slash to name a file"
            )),
            Self::DanglingLink { to, .. } => {
                Some(format!("name {to} itself if it is to be created"))
            }
            Self::Elsewhere { .. } => Some(
                "name the file itself, or run where it is seen: `nsenter --target PID --mount`"
                    .to_owned(),
            ),
            Self::Look { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("run as a user who may read the directory".to_owned())
            }
            Self::Look { source, .. }
                if source.raw_os_error() == Some(Errno::MFILE.raw_os_error()) =>
            {
                Some("raise the limit of open files: ulimit -n".to_owned())
            }
            Self::Look { .. } | Self::Empty => None,
        }
    }
}

/// What a path is and what lies below it.
///
/// Symbolic links are resolved. A path that does not exist is [`PathKind::Missing`] if its
/// directory does. Reads only; makes no I/O on a device.
pub fn inspect(host: &Host, path: &Path) -> Result<Target, TargetError> {
    Ok(Target::from_facts(host, look(path)?))
}

/// The facts about a path on this machine, all of one descriptor: what the kernel finds by the name as
/// it was given, under the name that the kernel has for it.
pub fn look(path: &Path) -> Result<PathFacts, TargetError> {
    if path.as_os_str().is_empty() {
        return Err(TargetError::Empty);
    }
    let failed =
        |what| move |source| TargetError::Look { what, given: path.display().to_string(), source };
    match Handle::look(path) {
        Ok(handle) => look_at(path, Arc::new(handle)).map_err(failed("stat")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => missing(path),
        Err(error) => Err(not_held(path, error, "opening")),
    }
}

fn not_held(path: &Path, source: io::Error, what: &'static str) -> TargetError {
    let given = path.display().to_string();
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP) => TargetError::Elsewhere { given },
        _ => TargetError::Look { what, given, source },
    }
}

/// Whether the mount through which a file was opened is gone from the mount table (`umount --lazy`);
/// false where the kernel does not tell.
pub fn is_unmounted(open: impl AsFd) -> bool {
    let Ok((Some(mount), _)) = place_of(open) else { return false };
    let all = mounts(&Host::this()).unwrap_or_default();
    !all.is_empty() && all.iter().all(|one| one.id != mount)
}

/// Which file, and through which mount.
fn place_of(open: impl AsFd) -> io::Result<(Option<u64>, FileId)> {
    let mask = StatxFlags::INO | StatxFlags::MNT_ID;
    let found = rustix::fs::statx(&open, "", AtFlags::EMPTY_PATH, mask)?;
    let mount = (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id);
    let device = DeviceNumber { major: found.stx_dev_major, minor: found.stx_dev_minor };
    Ok((mount, FileId { device, inode: found.stx_ino }))
}

/// The facts about what is held, whatever has its name by now.
pub fn look_again(given: &Path, held: &Held) -> Result<PathFacts, TargetError> {
    let failed =
        |source| TargetError::Look { what: "stat", given: given.display().to_string(), source };
    let handle = held.get().ok_or_else(|| failed(Errno::BADF.into()))?;
    look_at(given, handle).map_err(failed)
}

fn look_at(given: &Path, handle: Arc<Handle>) -> io::Result<PathFacts> {
    let metadata = handle.metadata()?;
    let (kind, size) = (kind(&metadata), Bytes::new(metadata.len()));
    Ok(facts(given, handle.name().to_path_buf(), kind, size, handle))
}

fn missing(path: &Path) -> Result<PathFacts, TargetError> {
    let given = path.display().to_string();
    if names_directory(path) {
        return Err(TargetError::NoDirectory { given });
    }
    if let Ok(to) = std::fs::read_link(path) {
        return Err(TargetError::DanglingLink { given, to: to.display().to_string() });
    }
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    let no_parent = || match path.starts_with("/dev") && !path.starts_with("/dev/shm") {
        true => TargetError::NoDevice { given: given.clone() },
        false => {
            TargetError::NoParent { given: given.clone(), parent: parent.display().to_string() }
        }
    };
    // `x/..` has a parent and no name: there is nothing to create.
    let name = path.file_name().ok_or_else(no_parent)?;
    let handle = Handle::look(parent).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_parent(),
        _ => not_held(path, source, "opening the directory"),
    })?;
    if !handle.metadata().is_ok_and(|found| found.is_dir()) {
        return Err(no_parent());
    }
    let resolved = handle.name().join(name);
    Ok(facts(path, resolved, PathKind::Missing, Bytes::ZERO, Arc::new(handle)))
}

/// Whether only a directory can have that name: `x/`, `x/.`. The parts of a path do not have the
/// slash any more.
fn names_directory(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    name.ends_with(b"/") || name.ends_with(b"/.")
}

fn kind(metadata: &std::fs::Metadata) -> PathKind {
    let file_type = metadata.file_type();
    let number = DeviceNumber::from_dev(metadata.rdev());
    if file_type.is_file() {
        PathKind::File {
            id: FileId::of(metadata),
            links: metadata.nlink(),
            allocated: Bytes::new(metadata.blocks().saturating_mul(block::KERNEL_SECTOR)),
        }
    } else if file_type.is_dir() {
        PathKind::Directory
    } else if file_type.is_block_device() {
        PathKind::BlockDevice { number }
    } else if file_type.is_char_device() {
        PathKind::CharacterDevice { number }
    } else {
        let name = if file_type.is_fifo() { "pipe" } else { "socket" };
        PathKind::Other { name: name.to_owned() }
    }
}

/// `there`: the path itself, or its directory when it is missing.
fn facts(
    given: &Path,
    resolved: PathBuf,
    kind: PathKind,
    size: Bytes,
    there: Arc<Handle>,
) -> PathFacts {
    // Opening a device or a pipe can have effects or block; files and directories do neither.
    let flags = there.to_read().and_then(|file| rustix::fs::ioctl_getflags(&file).ok());
    PathFacts {
        given: given.to_owned(),
        mount_id: place_of(&there).ok().and_then(|(mount, _)| mount),
        space: space(&there),
        compressed: flags.map(|f| f.contains(IFlags::COMPRESSED)),
        no_cow: flags.map(|f| f.contains(IFlags::NOCOW)),
        resolved,
        kind,
        size,
        held: Held::new(there),
    }
}

fn space(there: &Handle) -> Option<Space> {
    let answer = rustix::fs::fstatvfs(there).ok()?;
    let bytes = |blocks: u64| Bytes::new(blocks.saturating_mul(answer.f_frsize));
    Some(Space { free: bytes(answer.f_bavail), total: bytes(answer.f_blocks) })
}

impl Target {
    /// Looks up in `host` what lies below a path.
    pub fn from_facts(host: &Host, path: PathFacts) -> Self {
        let mut unseen = Vec::new();
        let (mount, tops) = match &path.kind {
            PathKind::BlockDevice { number } => {
                let name = block::name_of(host, *number);
                if name.is_none() {
                    unseen.push(format!("sysfs does not show the block device {number}"));
                }
                (None, name.into_iter().collect())
            }
            PathKind::CharacterDevice { .. } | PathKind::Other { .. } => (None, Vec::new()),
            PathKind::File { .. } | PathKind::Directory | PathKind::Missing => {
                below_path(host, &path, &mut unseen)
            }
        };
        let devices = block::chain(host, &tops, true);
        let mut target = Self { path, mount, devices, natures: Vec::new(), unseen };
        if let (PathKind::BlockDevice { .. }, Some(top)) =
            (&target.path.kind, target.devices.first())
        {
            target.path.size = top.size;
        }
        target.natures = natures(host, &target);
        target
    }

    /// Whether the user's words went through a symbolic link or a relative path, so that both
    /// forms should be shown.
    pub fn is_renamed(&self) -> bool {
        self.path.given != self.path.resolved
    }

    /// The device right under the file system, or the target if it is one.
    pub fn top(&self) -> Option<&BlockDevice> {
        self.devices.first()
    }

    /// How much of the first `size` bytes of an existing file takes new space when it is written,
    /// although it is allocated: all of it where blocks are not written in place.
    pub fn shared_within(&self, size: Bytes) -> Bytes {
        let shares = |name: &str| COPY_ON_WRITE.contains(&name);
        let above = |nature: &Nature| match nature {
            Nature::Overlay { upper_file_system: Some(upper), .. } => shares(upper),
            _ => false,
        };
        let may_share = self.mount.as_ref().is_some_and(|mount| shares(&mount.file_system))
            || self.natures.iter().any(above);
        match self.path.kind {
            PathKind::File { .. } if may_share => size.min(self.path.size),
            _ => Bytes::ZERO,
        }
    }

    /// Whether its contents are in the memory of this machine.
    pub fn is_memory(&self) -> bool {
        self.natures.iter().any(|n| matches!(n, Nature::Memory { .. }))
    }

    /// All that a reader of its numbers must know, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let natures = self.natures.iter().map(Nature::remark);
        natures.chain(self.unseen.iter().map(|text| format!("not seen: {text}"))).collect()
    }

    /// What is stored with a run.
    ///
    /// * `size`: of one file of the set, or of the device.
    /// * `files`: how many.
    /// * `alignment`: from [`crate::direct_alignment`] once the target is there.
    pub fn record(&self, size: Bytes, files: u32, alignment: &Alignment) -> record::TargetRecord {
        record::TargetRecord {
            given: self.path.given.display().to_string(),
            resolved: self.path.resolved.display().to_string(),
            kind: match self.path.kind {
                PathKind::BlockDevice { .. } => record::TargetKind::BlockDevice,
                PathKind::CharacterDevice { .. } => record::TargetKind::CharacterDevice,
                _ => record::TargetKind::File,
            },
            size_bytes: size.get(),
            files,
            file_system: self.mount.as_ref().map(|m| m.file_system.clone()),
            mount: self.mount.as_ref().map(Mount::to_string),
            devices: self.devices.iter().map(|d| d.name.clone()).collect(),
            direct_alignment: alignment.unit().and_then(|b| u32::try_from(b.get()).ok()),
            link: None,
            cache_bytes: None,
            model: None,
            remarks: self.remarks(),
        }
    }
}

fn below_path(
    host: &Host,
    path: &PathFacts,
    unseen: &mut Vec<String>,
) -> (Option<Mount>, Vec<String>) {
    let all = match mounts(host) {
        Ok(all) => all,
        Err(error) => {
            unseen.push(format!("the mount table: {error}"));
            return (None, Vec::new());
        }
    };
    let Some(mount) = mount_of(&all, &path.resolved, path.mount_id) else {
        unseen.push("its mount: the mount table does not have it".to_owned());
        return (None, Vec::new());
    };
    let (tops, missing) = under(host, &all, mount);
    unseen.extend(missing);
    (Some(mount.clone()), tops)
}

/// The devices right under a mounted file system, through an overlay's upper directory, and
/// what could not be seen of them.
pub(crate) fn under(host: &Host, all: &[Mount], mount: &Mount) -> (Vec<String>, Option<String>) {
    if mount.file_system != "overlay" {
        return block::under_mount(host, mount);
    }
    let upper = mount.value("upperdir").and_then(|u| upper_mount(all, mount, Path::new(u)));
    upper.map_or_else(
        || (Vec::new(), Some("the device under the overlay's upper directory".to_owned())),
        |upper| block::under_mount(host, upper),
    )
}

/// The mount that holds the upper directory of an overlay, if it can be told.
///
/// The path is the one of whoever mounted: in a container it is the outside's, and what lies
/// at that path in here is something else. An overlay cannot be its own upper directory's
/// holder, so a path that leads back to an overlay is the outside's.
pub(crate) fn upper_mount<'a>(
    all: &'a [Mount],
    overlay: &Mount,
    upper: &Path,
) -> Option<&'a Mount> {
    let root_is_overlay =
        all.iter().any(|m| m.point == Path::new("/") && m.file_system == "overlay");
    if root_is_overlay && overlay.point == Path::new("/") {
        return None;
    }
    mount_of(all, upper, None).filter(|m| m.file_system != "overlay")
}

/// File systems that do not write blocks in place.
const COPY_ON_WRITE: [&str; 4] = ["btrfs", "zfs", "bcachefs", "nilfs2"];

const MEMORY: [&str; 5] = ["tmpfs", "ramfs", "devtmpfs", "rootfs", "hugetlbfs"];

/// Whether no disk of this machine is under a file system of that type.
pub(crate) fn is_memory_or_network(file_system: &str) -> bool {
    MEMORY.contains(&file_system) || record::stack::is_network(file_system)
}

fn natures(host: &Host, target: &Target) -> Vec<Nature> {
    let mut found = Vec::new();
    if let Some(mount) = &target.mount {
        file_system_natures(host, mount, &target.path, &mut found);
    }
    for device in &target.devices {
        if device.is_crypt() {
            found.push(Nature::Encrypted { device: device.name.clone() });
        }
        match device.kind {
            BlockKind::Ram => found.push(Nature::Memory { name: device.name.clone() }),
            BlockKind::Zram => {
                found.push(Nature::Memory { name: device.name.clone() });
                found.push(Nature::Compressed { how: "zram".to_owned() });
            }
            _ => {}
        }
    }
    found
}

fn file_system_natures(host: &Host, mount: &Mount, path: &PathFacts, found: &mut Vec<Nature>) {
    let name = mount.file_system.clone();
    match name.as_str() {
        memory if MEMORY.contains(&memory) => found.push(Nature::Memory { name: name.clone() }),
        "overlay" => {
            let upper = mount.value("upperdir").map(PathBuf::from);
            let all = mounts(host).unwrap_or_default();
            let upper_file_system = upper
                .as_ref()
                .and_then(|upper| upper_mount(&all, mount, upper))
                .map(|m| m.file_system.clone());
            found.push(Nature::Overlay { upper, upper_file_system });
        }
        "btrfs" if path.no_cow == Some(true) => {}
        cow if COPY_ON_WRITE.contains(&cow) => {
            found.push(Nature::CopyOnWrite { name: name.clone() });
        }
        _ => {}
    }
    // The type of sshfs is `fuse.sshfs`: both are worth saying.
    if record::stack::is_network(&name) {
        found.push(Nature::Network { name: name.clone(), source: mount.source.clone() });
    }
    if name == "fuseblk" || name == "fuse" || name.starts_with("fuse.") {
        found.push(Nature::Fuse { name: name.clone() });
    }
    if let Some(how) = compression(mount, path) {
        found.push(Nature::Compressed { how });
    } else if name == "zfs" {
        found.push(Nature::PerhapsCompressed { name });
    }
}

fn compression(mount: &Mount, path: &PathFacts) -> Option<String> {
    if path.compressed == Some(true) {
        return Some("chattr +c".to_owned());
    }
    let options: &[&str] = match mount.file_system.as_str() {
        // Not copied on write means not compressed either, on btrfs.
        "btrfs" if path.no_cow == Some(true) => &[],
        "btrfs" => &["compress-force", "compress"],
        // `compress_algorithm` is listed even where nothing is compressed.
        "f2fs" => &["compress_extension"],
        "bcachefs" => &["compression", "background_compression"],
        "ubifs" => &["compr"],
        "squashfs" | "erofs" => return Some(mount.file_system.clone()),
        _ => &[],
    };
    options.iter().find_map(|option| {
        let value = mount.value(option).or_else(|| mount.has(option).then_some(""))?;
        let off = matches!(value, "no" | "none");
        (!off).then(|| match value {
            "" => format!("mount option {option}"),
            value => format!("mount option {option}={value}"),
        })
    })
}
