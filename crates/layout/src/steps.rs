//! From a stack to what has to be done for it, and to undo it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::array::Level;
use crate::capacity;
use crate::mkfs;
use crate::names::Names;
use crate::stack::{ArrayState, DeviceId, FileSystemKind, Leg, Maker, StackError, StackSpec};

mod btrfs;
mod file_system;
mod lvm;
mod md;
mod settings;
mod states;
mod words;
mod zfs;

pub use states::{degrade, rebuild, refill};

/// One thing to do.
///
/// Everything in it is plain and stored in a journal before it is done, so that a later program
/// can undo it without knowing how it was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// A sentence for people.
    pub what: String,
    /// Which part of the stack it belongs to.
    pub stage: Stage,
    /// What to do.
    pub action: Action,
    /// The operator's devices whose content it changes, named as in the stack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes_to: Vec<DeviceId>,
    /// What is there afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makes: Vec<Made>,
    /// How to take it back, in this order. Right also after a crash in the middle: what is not
    /// there any more (or not yet) is passed over, see [`Undo::only_if`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<Undo>,
    /// What goes on after the action has returned, and has to end before the next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Wait>,
    /// What must be found when everything is built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expectation>,
}

/// Part of a stack, in the order of building.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Queues of the members.
    Settings,
    /// Arrays and volumes.
    Arrays,
    /// File system and mount.
    FileSystem,
    /// The same of the write-ahead log, all of it.
    Wal,
    /// A member fails or is replaced. Files may be made before this.
    State,
}

/// What a step does to the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// Start a program; the words go to it as they are, without a shell.
    Run {
        /// The program, and its arguments.
        argv: Vec<String>,
    },
    /// Write a setting, after what was there was noted in the journal.
    WriteFile {
        /// Below /sys.
        path: String,
        /// Without a line end.
        value: String,
    },
    /// Write what was there before the [`Action::WriteFile`] of the same path. A file that lists
    /// choices, `[none] bfq`, had the one in brackets.
    PutBack {
        /// Below /sys.
        path: String,
    },
    /// Make a directory, and those above it.
    MakeDirectory {
        /// From the root.
        path: String,
    },
    /// Remove a directory if it is empty; not being there is as good.
    RemoveDirectory {
        /// From the root.
        path: String,
    },
}

/// One thing to do in order to take a step back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// What to do.
    pub action: Action,
    /// Only where this is there; otherwise there is nothing to take back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<Made>,
}

/// Something of ours on the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Made {
    /// A running md array.
    Array {
        /// Below /dev/md.
        path: String,
    },
    /// An LVM volume group.
    Group {
        /// Its name.
        name: String,
    },
    /// A logical volume.
    Volume {
        /// `/dev/GROUP/VOLUME`.
        path: String,
    },
    /// An imported zfs pool.
    Pool {
        /// Its name.
        name: String,
    },
    /// Something on a device by which it is known.
    Signature {
        /// The operator's, or one made by an earlier step.
        device: DeviceId,
        /// As `blkid` names it: `linux_raid_member`, `LVM2_member`, `xfs`.
        kind: String,
        /// What it says it belongs to: the array's name, the file system's label. Another name
        /// means it is not ours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A mounted file system.
    Mount {
        /// Where.
        path: String,
    },
    /// A directory.
    Directory {
        /// From the root.
        path: String,
    },
}

/// What goes on by itself after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Wait {
    /// `sync_action` of an md array becomes `idle`.
    MdSync {
        /// Below /dev/md.
        path: String,
    },
    /// `lvs -o sync_percent` of a volume becomes 100.
    LvmSync {
        /// Its group.
        group: String,
        /// Its name.
        volume: String,
    },
    /// `btrfs replace status` says that it is finished.
    BtrfsReplace {
        /// Where it is mounted.
        path: String,
    },
    /// `zpool status` tells of no resilver under way.
    ZfsResilver {
        /// Its name.
        pool: String,
    },
}

/// What must be found when a stack is built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Expectation {
    /// An md array.
    Array {
        /// Below /dev/md.
        path: String,
        /// As the kernel names it.
        level: Level,
        /// Without spares.
        members: u32,
        /// Where it has one.
        #[schemars(with = "Option<u64>")]
        chunk: Option<Bytes>,
        /// Whether all members are there.
        state: ArrayState,
    },
    /// A logical volume.
    Volume {
        /// `/dev/GROUP/VOLUME`.
        path: String,
        /// As `lvs -o segtype` names it: `striped`, `raid5`.
        segment: String,
        /// Stripes of data and parity.
        stripes: u32,
        /// Bytes on one member before the next.
        #[schemars(with = "Option<u64>")]
        chunk: Option<Bytes>,
        /// Where data begins on each member: a multiple of this.
        #[schemars(with = "u64")]
        aligned_to: Bytes,
    },
    /// A mounted file system.
    FileSystem {
        /// Where.
        path: String,
        /// Its kind.
        kind: FileSystemKind,
        /// The device, as it was given to `mount`; a pool's name for zfs.
        device: String,
        /// Options that must be among those in force.
        options: Vec<String>,
        /// The stripe unit it was told, where it takes one.
        #[schemars(with = "Option<u64>")]
        unit: Option<Bytes>,
        /// Units of data in a full stripe.
        count: Option<u32>,
    },
    /// The value of a setting.
    Setting {
        /// Below /sys.
        path: String,
        /// As written.
        value: String,
    },
    /// A pool or btrfs over several devices has these in it.
    Members {
        /// Its name or mount point.
        of: String,
        /// In order.
        devices: Vec<DeviceId>,
    },
}

/// What has to be known of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceFact {
    /// Bytes on it.
    #[schemars(with = "u64")]
    pub size: Bytes,
    /// The smallest request it takes.
    #[schemars(with = "u64")]
    pub logical_sector: Bytes,
    /// The smallest it writes without reading.
    #[schemars(with = "u64")]
    pub physical_sector: Bytes,
    /// The kernel's name of the disk that has the queue: `sda` also for `/dev/sda1`. `None` where
    /// it has none: its settings cannot be changed then.
    pub queue: Option<String>,
}

/// What has to be known of all devices of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DeviceFacts(BTreeMap<DeviceId, DeviceFact>);

impl DeviceFacts {
    /// Adds what is known of one device.
    pub fn insert(&mut self, device: DeviceId, fact: DeviceFact) {
        self.0.insert(device, fact);
    }

    /// What is known of one.
    pub fn get(&self, device: &DeviceId) -> Option<&DeviceFact> {
        self.0.get(device)
    }

    /// Devices of equal size that nobody has looked at, for sketches: queues are named by the
    /// path's last part.
    pub fn assumed<'a>(devices: impl IntoIterator<Item = &'a DeviceId>, size: Bytes) -> Self {
        let fact = |device: &DeviceId| DeviceFact {
            size,
            logical_sector: Bytes::new(512),
            physical_sector: Bytes::kib(4),
            queue: device.as_str().rsplit('/').next().map(ToOwned::to_owned),
        };
        Self(devices.into_iter().map(|device| (device.clone(), fact(device))).collect())
    }
}

impl FromIterator<(DeviceId, DeviceFact)> for DeviceFacts {
    fn from_iter<T: IntoIterator<Item = (DeviceId, DeviceFact)>>(facts: T) -> Self {
        Self(facts.into_iter().collect())
    }
}

/// Why a stack has no steps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepsError {
    /// There is no such stack.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A device that was not looked at.
    #[error("nothing is known of {0}")]
    Unknown(DeviceId),
    /// A setting of something without a queue.
    #[error("{device} has no queue of its own, so its {setting} cannot be set")]
    NoQueue {
        /// As named by the operator.
        device: DeviceId,
        /// Its name.
        setting: &'static str,
    },
    /// A state that its maker cannot be brought into.
    #[error("{maker} cannot be told to be {state}: {why}")]
    NoSuchState {
        /// What makes the first leg.
        maker: Maker,
        /// As asked for.
        state: ArrayState,
        /// The reason.
        why: &'static str,
    },
    /// Less than `mkfs` takes.
    #[error("{kind} needs {wanted} or more, found {found}")]
    NoRoom {
        /// As asked for.
        kind: FileSystemKind,
        /// On the topmost device.
        found: Bytes,
        /// The least.
        wanted: Bytes,
    },
    /// Members too small to be used.
    #[error("{device} of {} is too small for {what}", .size.exact())]
    TooSmall {
        /// As named by the operator.
        device: DeviceId,
        /// Its size.
        size: Bytes,
        /// What would not fit.
        what: &'static str,
    },
}

impl StepsError {
    /// Checks that a file system of that kind has room.
    fn check_room(stack: &StackSpec, facts: &DeviceFacts) -> Result<(), Self> {
        let Some(kind) = stack.file_system.as_ref().map(|fs| fs.kind) else { return Ok(()) };
        let Some((_, member)) = capacity::smallest_member(stack, facts) else { return Ok(()) };
        let found = capacity::of_stack(stack, member);
        let wanted = mkfs::size_min(kind);
        if found < wanted {
            return Err(Self::NoRoom { kind, found, wanted });
        }
        Ok(())
    }

    /// What would work instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Stack(error) => error.hint(),
            Self::NoQueue { .. } => Some("leave the setting out".to_owned()),
            Self::NoSuchState { maker: Maker::Zfs, .. } => Some("give the leg a spare".to_owned()),
            Self::NoSuchState { .. } => {
                Some("md arrays can be brought into every state".to_owned())
            }
            Self::NoRoom { .. } | Self::TooSmall { .. } => Some("take larger devices".to_owned()),
            Self::Unknown(_) => None,
        }
    }
}

/// Everything that has to be done for a stack, in order, up to the state to measure in.
///
/// * The last steps are of [`Stage::State`] where the stack is to be measured degraded or
///   rebuilding: a caller that makes its files first does so before them.
///
/// # Errors
///
/// The stack cannot be ([`StackSpec::check`]), a device is not among the facts, or something
/// asked for cannot be done with it.
pub fn build(
    stack: &StackSpec,
    names: &Names,
    facts: &DeviceFacts,
) -> Result<Vec<Step>, StepsError> {
    stack.check()?;
    if let Some(unknown) = stack.devices().into_iter().find(|device| facts.get(device).is_none()) {
        return Err(StepsError::Unknown(unknown.clone()));
    }
    let mut steps = healthy(stack, names, facts)?;
    if let Some(wal) = &stack.wal {
        let of_log = healthy(wal, &names.wal(), facts)?;
        steps.extend(of_log.into_iter().map(|step| Step { stage: Stage::Wal, ..step }));
    }
    // LVM fills a member anew that never failed.
    let in_place = stack.legs.first().is_some_and(|leg| leg.maker == Maker::Lvm);
    match stack.state {
        ArrayState::Healthy => {}
        ArrayState::Rebuilding if in_place => steps.extend(rebuild(stack, names)?),
        ArrayState::Degraded => steps.extend(degrade(stack, names)?),
        ArrayState::Rebuilding => {
            steps.extend(degrade(stack, names)?);
            steps.extend(rebuild(stack, names)?);
        }
    }
    Ok(steps)
}

/// Whether of several actions that are alike the one at that place is the one that does something: what is
/// taken back is gone after the first, and a directory goes when the last that is in it is gone.
pub fn does_it(actions: &[&Action], at: usize) -> bool {
    let (before, after) = actions.split_at(at.min(actions.len()));
    let Some((action, after)) = after.split_first() else { return false };
    match action {
        Action::RemoveDirectory { .. } => !after.contains(action),
        _ => !before.contains(action),
    }
}

/// Everything that takes those steps back, in order.
pub fn teardown(steps: &[Step]) -> Vec<Undo> {
    steps.iter().rev().flat_map(|step| step.undo.iter().cloned()).collect()
}

fn healthy(stack: &StackSpec, names: &Names, facts: &DeviceFacts) -> Result<Vec<Step>, StepsError> {
    StepsError::check_room(stack, facts)?;
    let mut steps = settings::of_members(stack, facts)?;
    for (number, leg) in stack.legs.iter().enumerate() {
        steps.extend(leg_steps(number, leg, names, facts));
    }
    match stack.stripe.as_ref().map(|stripe| stripe.maker) {
        Some(Maker::Md) => steps.push(md::top(stack, names, facts)),
        Some(Maker::Lvm) => steps.extend(lvm::top(stack, names)),
        _ => {}
    }
    steps.extend(settings::of_top(stack, names, facts)?);
    steps.extend(file_system::steps(stack, names, facts));
    Ok(steps)
}

fn leg_steps(number: usize, leg: &Leg, names: &Names, facts: &DeviceFacts) -> Vec<Step> {
    match leg.maker {
        Maker::Md => md::leg(number, leg, names, facts),
        Maker::Lvm => lvm::leg(number, leg, names),
        // These come with the file system.
        Maker::Device | Maker::Btrfs | Maker::Zfs => Vec::new(),
    }
}

/// The device that a leg is for those above; `None` for btrfs and zfs, which have none.
pub fn device_of_leg(number: usize, leg: &Leg, names: &Names) -> Option<DeviceId> {
    Some(match leg.maker {
        Maker::Device => leg.members.first()?.clone(),
        Maker::Md => md::path(&names.md_leg(number)),
        Maker::Lvm => lvm::path(&names.group_of_leg(number), names),
        Maker::Btrfs | Maker::Zfs => return None,
    })
}

/// The topmost device of a stack, the one to measure where it has no file system; `None` for btrfs
/// and zfs over several devices.
pub fn top_device(stack: &StackSpec, names: &Names) -> Option<DeviceId> {
    match stack.stripe.as_ref().map(|stripe| stripe.maker) {
        Some(Maker::Md) => Some(md::path(&names.md_top())),
        Some(Maker::Lvm) => Some(lvm::path(&names.group(), names)),
        _ => device_of_leg(0, stack.legs.first()?, names),
    }
}
