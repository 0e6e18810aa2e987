//! The value that is built, measured and torn down: everything about a stack, said.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::array::{Array, ArrayError, Level};

/// A device as the operator named it: `/dev/disk/by-id/...`, `/dev/loop3`, `/dev/md0`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct DeviceId(String);

impl DeviceId {
    /// The device of that path.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A storage stack, from the devices to the mount point.
///
/// Legs lie over devices, one stripe (or mirror) over the legs, the file system over that. Left
/// out means not there, or as the tool that makes it does by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StackSpec {
    /// Arrays or plain devices side by side, one or more.
    pub legs: Vec<Leg>,
    /// What joins the legs. Needed where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe: Option<Stripe>,
    /// On top of all; without one the device itself is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystem>,
    /// For `mount -o`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount_options: Vec<String>,
    /// Of the devices' queues.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// Another stack for the write-ahead log, with devices of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal: Option<Box<StackSpec>>,
    /// The state to measure in.
    #[serde(default, skip_serializing_if = "ArrayState::is_healthy")]
    pub state: ArrayState,
}

/// One array, or one device as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Leg {
    /// What makes it.
    pub maker: Maker,
    /// Of the array; none for a device as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Bytes on one member before the next. Btrfs and zfs choose their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub chunk: Option<Bytes>,
    /// Devices in the array, in its order.
    pub members: Vec<DeviceId>,
    /// Devices that wait for a member to fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spares: Vec<DeviceId>,
}

/// What joins several legs into one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stripe {
    /// What makes it.
    pub maker: Maker,
    /// Raid0, or raid1 for a mirror of the legs.
    pub level: Level,
    /// Bytes on one leg before the next; without one, the data width of a leg, and 64 KiB over legs
    /// without stripes and over devices as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub chunk: Option<Bytes>,
}

/// Which part of the system makes an array.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Maker {
    /// Nobody: the device itself, or an array made elsewhere, such as in a controller.
    Device,
    /// The kernel's md driver, by `mdadm`.
    Md,
    /// LVM: the device mapper, with md's code for parity.
    Lvm,
    /// Btrfs over several devices.
    Btrfs,
    /// A zfs pool.
    Zfs,
}

impl Maker {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Device, Self::Md, Self::Lvm, Self::Btrfs, Self::Zfs];

    /// As it is written in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Md => "md",
            Self::Lvm => "lvm",
            Self::Btrfs => "btrfs",
            Self::Zfs => "zfs",
        }
    }
}

impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names nothing of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}")]
pub struct ParseNameError {
    text: String,
    what: &'static str,
    known: Vec<&'static str>,
}

impl ParseNameError {
    /// What would be one.
    pub fn hint(&self) -> Option<String> {
        Some(format!("known are {}", self.known.join(", ")))
    }
}

fn named<T: Copy>(
    text: &str,
    what: &'static str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, ParseNameError> {
    let found = all.iter().copied().find(|one| name(*one) == text.trim().to_ascii_lowercase());
    found.ok_or_else(|| ParseNameError {
        text: text.to_owned(),
        what,
        known: all.iter().map(|one| name(*one)).collect(),
    })
}

impl FromStr for Maker {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        named(text, "maker of arrays", &Self::ALL, Self::name)
    }
}

/// A file system, and what it is made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Which.
    pub kind: FileSystemKind,
    /// More words for its `mkfs`, or for `zpool create`, after ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// File systems that we can make.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "they are names")]
pub enum FileSystemKind {
    Ext2,
    Ext3,
    Ext4,
    Xfs,
    Jfs,
    Btrfs,
    Nilfs2,
    F2fs,
    Zfs,
}

impl FileSystemKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Ext2,
        Self::Ext3,
        Self::Ext4,
        Self::Xfs,
        Self::Jfs,
        Self::Btrfs,
        Self::Nilfs2,
        Self::F2fs,
        Self::Zfs,
    ];

    /// As the kernel, `blkid` and `mount -t` name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Jfs => "jfs",
            Self::Btrfs => "btrfs",
            Self::Nilfs2 => "nilfs2",
            Self::F2fs => "f2fs",
            Self::Zfs => "zfs",
        }
    }
}

impl fmt::Display for FileSystemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FileSystemKind {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        named(text, "file system that can be made", &Self::ALL, Self::name)
    }
}

/// Settings of the block layer; what is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Of the members: `none`, `mq-deadline`, `kyber`, `bfq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Of the topmost device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub read_ahead: Option<Bytes>,
    /// Of the members: requests that the scheduler may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
}

impl Settings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// In which state an array is measured.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ArrayState {
    /// All members there and in step.
    #[default]
    Healthy,
    /// The last member of the first leg has failed.
    Degraded,
    /// Its replacement is being filled.
    Rebuilding,
}

impl ArrayState {
    /// Whether nothing is to be broken.
    pub fn is_healthy(&self) -> bool {
        *self == Self::Healthy
    }

    /// As it is written in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Rebuilding => "rebuilding",
        }
    }
}

impl fmt::Display for ArrayState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why there is no such stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// Nothing to build on.
    #[error("a stack without legs")]
    NoLegs,
    /// A device cannot be in two places.
    #[error("{0} is named twice in one stack")]
    NamedTwice(DeviceId),
    /// A name that tools would take for an option, or not find.
    #[error("`{0}` is not the path of a device")]
    OddPath(DeviceId),
    /// The arithmetic refuses it.
    #[error("leg {leg}: {source}")]
    Array {
        /// From 0.
        leg: usize,
        /// Why.
        source: ArrayError,
    },
    /// The maker cannot make that.
    #[error("leg {leg}: {maker} cannot make {what}")]
    CannotMake {
        /// From 0.
        leg: usize,
        /// As asked for.
        maker: Maker,
        /// What it cannot.
        what: String,
    },
    /// A device as it is has nothing to choose.
    #[error("leg {0} is a device as it is: it has one member, and neither level, chunk nor spare")]
    DeviceLeg(usize),
    /// An array says how it is spread.
    #[error("leg {leg}: an array by {maker} needs a level")]
    LevelMissing {
        /// From 0.
        leg: usize,
        /// What makes it.
        maker: Maker,
    },
    /// Legs side by side with nothing over them.
    #[error("{0} legs, and nothing joins them")]
    StripeMissing(usize),
    /// A stripe over one leg joins nothing.
    #[error("a stripe over one leg")]
    StripeOverOne,
    /// A stripe that its maker cannot make over these legs.
    #[error("{maker} cannot join legs by {by}: {why}")]
    StripeOdd {
        /// As asked for.
        maker: Maker,
        /// What makes the legs.
        by: Maker,
        /// The reason.
        why: String,
    },
    /// The stripe's chunk does not do.
    #[error("the stripe over the legs: {0}")]
    StripeArray(ArrayError),
    /// Btrfs and zfs are arrays and file systems in one.
    #[error("legs by {maker} need {maker} as file system, found {found}")]
    FileSystemOdd {
        /// What makes the legs.
        maker: Maker,
        /// As asked for.
        found: String,
    },
    /// Options for a mount that will not be.
    #[error("mount options without a file system")]
    NothingToMount,
    /// Only arrays with redundancy can lose a member.
    #[error("state {state} needs a first leg that can lose a member, found {found}")]
    CannotDegrade {
        /// As asked for.
        state: ArrayState,
        /// What the leg is.
        found: String,
    },
    /// A setting that has no effect here.
    #[error("{setting} has no effect on {what}")]
    NoEffect {
        /// Its name.
        setting: &'static str,
        /// What does not heed it.
        what: String,
    },
    /// A value that no kernel takes.
    #[error("{setting} `{value}` is not {wanted}")]
    SettingOdd {
        /// Its name.
        setting: &'static str,
        /// As asked for.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// The log's stack is wrong.
    #[error("write-ahead log: {0}")]
    Wal(Box<StackError>),
    /// A log of a log.
    #[error("a write-ahead log with a log of its own")]
    WalOfWal,
    /// A log is files.
    #[error("a write-ahead log without a file system")]
    WalWithoutFileSystem,
}

impl StackError {
    /// What would work instead.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Array { source, .. } | Self::StripeArray(source) => return source.hint(),
            Self::Wal(inner) => return inner.hint(),
            Self::NoLegs => "name at least one device",
            Self::OddPath(_) => "paths of devices begin with `/`",
            Self::DeviceLeg(_) => "name what makes the array: md, lvm, btrfs or zfs",
            Self::StripeMissing(_) => "join them by md or lvm",
            Self::StripeOverOne => "leave the stripe out, or add a leg",
            Self::FileSystemOdd { .. } => "other file systems want arrays by md or lvm under them",
            Self::NothingToMount => "name a file system, or leave the mount options out",
            Self::CannotDegrade { .. } => "raid1, raid10, raid5 and raid6 can",
            Self::WalWithoutFileSystem => "name one for it",
            Self::StripeOdd { maker: Maker::Lvm, by: Maker::Lvm, .. } => "join them by md",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl Leg {
    /// A device as it is.
    pub fn device(path: DeviceId) -> Self {
        Self {
            maker: Maker::Device,
            level: None,
            chunk: None,
            members: vec![path],
            spares: Vec::new(),
        }
    }

    /// Members and spares.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceId> {
        self.members.iter().chain(&self.spares)
    }

    /// The leg's arithmetic; `None` for a device as it is.
    ///
    /// Btrfs cuts its chunks in pieces of 64 KiB, which cannot be changed. Zfs cuts each record
    /// anew; the number given is for its smallest record over all members, 4 KiB.
    ///
    /// # Errors
    ///
    /// As [`Array::new`].
    pub fn array(&self) -> Result<Option<Array>, ArrayError> {
        let Some(level) = self.level else { return Ok(None) };
        let members = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        let chunk = match self.maker {
            Maker::Btrfs => level.has_chunk().then_some(Bytes::kib(64)),
            Maker::Zfs => level.has_chunk().then_some(Bytes::kib(4)),
            _ => self.chunk,
        };
        Array::new(level, members, chunk).map(Some)
    }
}

impl StackSpec {
    /// A stack of these legs and nothing else.
    pub fn of(legs: Vec<Leg>) -> Self {
        Self {
            legs,
            stripe: None,
            file_system: None,
            mount_options: Vec::new(),
            settings: Settings::default(),
            wal: None,
            state: ArrayState::Healthy,
        }
    }

    /// Every device that it is built on, those of the log too.
    pub fn devices(&self) -> Vec<&DeviceId> {
        let own = self.legs.iter().flat_map(Leg::devices);
        own.chain(self.wal.iter().flat_map(|wal| wal.devices())).collect()
    }

    /// Whether such a stack can be, as far as that can be told without looking at the machine.
    ///
    /// # Errors
    ///
    /// The first thing found that cannot be.
    pub fn check(&self) -> Result<(), StackError> {
        let mut seen = BTreeSet::new();
        for device in self.devices() {
            if !device.as_str().starts_with('/') || device.as_str().chars().any(char::is_control) {
                return Err(StackError::OddPath(device.clone()));
            }
            if !seen.insert(device) {
                return Err(StackError::NamedTwice(device.clone()));
            }
        }
        crate::check::stack(self)
    }
}
