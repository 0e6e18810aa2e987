//! Everything that follows from a stack, on one sheet.

use schemars::JsonSchema;
use serde::Serialize;
use units::{ByteOffset, Bytes, Nanos};

use crate::array::{Array, Geometry, Level, Tolerance};
use crate::capacity;
use crate::lvm;
use crate::mkfs;
use crate::names::Names;
use crate::rebuild::{Estimate, Pace};
use crate::stack::{Maker, StackError, StackSpec};
use crate::steps::{self, DeviceFacts, Step, StepsError, Undo};
use crate::whole::{self, MeanCost, Whole};

/// Name and version of the document.
pub const SCHEMA: &str = "plimsoll.layout/1";

/// A stack, what it is worth, what it costs, and how it is built.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "plimsoll.layout/1")]
pub struct Sheet {
    /// Name and version of this document.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// What it is about.
    pub stack: StackSpec,
    /// Bytes of the smallest member.
    #[schemars(with = "u64")]
    pub member_size: Bytes,
    /// Bytes of each member that hold data or redundancy.
    #[schemars(with = "u64")]
    pub member_used: Bytes,
    /// Members of all legs, without spares.
    pub members: u32,
    /// Bytes that can be stored on the topmost device.
    #[schemars(with = "u64")]
    pub capacity: Bytes,
    /// How many members may be lost.
    pub tolerance: Tolerance,
    /// Of one leg; none for a device as it is.
    pub leg: Option<Stripes>,
    /// Over the legs; none for one leg, a mirror of legs and a pool.
    pub top: Option<Stripes>,
    /// Where things begin.
    pub alignment: Alignment,
    /// What the file system is told about stripes; none where it takes nothing, or there are none.
    pub told: Option<Geometry>,
    /// What writes cost; none for btrfs and zfs, which write elsewhere.
    pub writes: Vec<MeanCost>,
    /// Filling what the loss of a member takes: the member; all of the half or leg that it was in
    /// where that cannot lose one and is mirrored.
    pub rebuild: Option<Estimate>,
    /// The first pass over a new array: one leg.
    pub first_sync: Option<Estimate>,
    /// The first pass over a mirror of legs, when they are there.
    pub mirror_sync: Option<Estimate>,
    /// What to know about it before it is built.
    pub remarks: Vec<String>,
    /// What builds it.
    pub steps: Vec<Step>,
    /// What takes it down again.
    pub teardown: Vec<Undo>,
}

/// One array in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stripes {
    /// How data is spread.
    pub level: Level,
    /// Devices or legs in it.
    pub members: u32,
    /// Bytes on one before the next.
    #[schemars(with = "Option<u64>")]
    pub chunk: Option<Bytes>,
    /// Chunks of data in a full stripe.
    pub data_chunks: u32,
    /// Bytes of data in a full stripe: chunk x data chunks.
    #[schemars(with = "Option<u64>")]
    pub data_width: Option<Bytes>,
    /// Bytes written for a full stripe, redundancy included.
    #[schemars(with = "Option<u64>")]
    pub full_stripe: Option<Bytes>,
}

/// Where data begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Alignment {
    /// Partitions of the topmost device should begin at multiples of this.
    #[schemars(with = "u64")]
    pub partition: Bytes,
    /// LVM: data on each physical volume begins at a multiple of this.
    #[schemars(with = "Option<u64>")]
    pub volume_data: Option<Bytes>,
    /// LVM: the first byte of data on each physical volume.
    #[schemars(with = "Option<u64>")]
    pub volume_start: Option<Bytes>,
    /// LVM: size of an extent.
    #[schemars(with = "Option<u64>")]
    pub extent: Option<Bytes>,
}

/// What a sheet is made from, beside the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Sizes of writes to cost; empty: 512 B to 4 MiB by doubling, as far as there is room.
    pub writes: Vec<Bytes>,
    /// How far behind a full stripe of a leg data begins: 0 where all is aligned.
    pub misaligned_by: ByteOffset,
    /// What members and kernel give to a rebuild.
    pub pace: Pace,
}

impl Default for Question {
    /// The usual sizes, aligned, at the kernel's pace.
    fn default() -> Self {
        Self { writes: Vec::new(), misaligned_by: ByteOffset::ZERO, pace: Pace::default() }
    }
}

impl From<Array> for Stripes {
    fn from(array: Array) -> Self {
        Self {
            level: array.level(),
            members: array.members(),
            chunk: array.chunk(),
            data_chunks: array.data_chunks(),
            data_width: array.data_width(),
            full_stripe: array.full_stripe(),
        }
    }
}

/// Larger devices Linux cannot address: positions in them are signed.
const DEVICE_MAX: Bytes = Bytes::new(i64::MAX as u64);

/// Why there is no sheet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SheetError {
    /// There are no steps to build it.
    #[error(transparent)]
    Steps(#[from] StepsError),
    /// Members of a size that no device has.
    #[error("members of {0} are larger than any device that Linux takes")]
    MemberTooLarge(Bytes),
    /// Members that are too many or too large together.
    #[error("{members} members of {size} make more than Linux takes as one device")]
    TooLarge {
        /// Of all legs.
        members: u32,
        /// Of each.
        size: Bytes,
    },
    /// A rate at which nothing would ever be done.
    #[error("at {rate}/s a member, {bytes} are not filled in 500 years")]
    TooSlow {
        /// As asked for.
        rate: Bytes,
        /// What has to be filled.
        bytes: Bytes,
    },
    /// A write of nothing, or of more than there is.
    #[error("a write of {size} to a device of {capacity}")]
    WriteOdd {
        /// As asked for.
        size: Bytes,
        /// On the topmost device.
        capacity: Bytes,
    },
    /// Data that begins where nothing is any more.
    #[error("data that begins {by} behind a full stripe, on a leg of {leg}")]
    BeginsBehind {
        /// As asked for.
        by: Bytes,
        /// Bytes of a leg.
        leg: Bytes,
    },
}

impl SheetError {
    /// What would work instead.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Steps(error) => return error.hint(),
            Self::MemberTooLarge(_) | Self::TooLarge { .. } => "devices end at 8 EiB",
            Self::TooSlow { .. } => "a hard disk reads and writes about 150MB a second",
            Self::WriteOdd { .. } => "sizes are from 1 byte to what the device holds",
            Self::BeginsBehind { .. } => "it is less than what a leg holds",
        };
        Some(hint.to_owned())
    }
}

impl From<StackError> for SheetError {
    fn from(error: StackError) -> Self {
        Self::Steps(error.into())
    }
}

impl Sheet {
    /// Works everything out.
    ///
    /// # Errors
    ///
    /// As [`steps::build`]; besides, members that are too small for what makes the array, and all
    /// that is beyond what can be: sizes, places and rates are reckoned exactly or refused.
    pub fn of(
        stack: &StackSpec,
        names: &Names,
        facts: &DeviceFacts,
        question: &Question,
    ) -> Result<Self, SheetError> {
        let steps = steps::build(stack, names, facts)?;
        let (smallest, member_size) =
            capacity::smallest_member(stack, facts).ok_or(StackError::NoLegs)?;
        let (on_leg, capacity) = sizes(stack, member_size)?;
        let whole = Whole::of(stack, question.misaligned_by);
        let leg = whole.leg();
        let member_used = capacity::used_of_member(stack, member_size);
        if member_used == Bytes::ZERO {
            let what = "what makes the array keeps for itself";
            return Err(StepsError::TooSmall { device: smallest, size: member_size, what }.into());
        }
        let by = Bytes::new(question.misaligned_by.get());
        if by >= on_leg {
            return Err(SheetError::BeginsBehind { by, leg: on_leg });
        }
        let own = stack.legs.iter().any(|leg| matches!(leg.maker, Maker::Btrfs | Maker::Zfs));
        let costed = |size: &Bytes| whole.mean_write_cost(*size);
        let sizes = sizes_of_writes(question, capacity)?;
        let mirrored = whole.top().is_some_and(|top| top.level() == Level::Raid1);
        let mirror = mirrored.then(|| question.pace.mirror(leg, capacity));
        let mut sheet = Self {
            schema: SCHEMA.to_owned(),
            stack: stack.clone(),
            member_size,
            member_used,
            members: members(stack),
            capacity,
            tolerance: whole.tolerance(),
            leg: leg.map(Stripes::from),
            top: whole.top().filter(|top| top.chunk().is_some()).map(Stripes::from),
            alignment: alignment(stack, &whole),
            told: told(stack),
            writes: if own { Vec::new() } else { sizes.iter().map(costed).collect() },
            rebuild: leg.and_then(|leg| leg.rebuild(member_used, &question.pace)).or(mirror),
            first_sync: leg
                .filter(|_| !own)
                .and_then(|leg| leg.first_sync(member_used, &question.pace)),
            mirror_sync: mirror,
            remarks: Vec::new(),
            teardown: steps::teardown(&steps),
            steps,
        };
        sheet.check_rate(&question.pace)?;
        sheet.remarks = crate::remarks::of(&sheet, &whole, question);
        Ok(sheet)
    }

    /// Times that are longer than can be reckoned are none.
    fn check_rate(&self, pace: &Pace) -> Result<(), SheetError> {
        let all = [self.first_sync, self.rebuild, self.mirror_sync];
        let endless = all.into_iter().flatten().find(|one| one.idle >= Nanos::MAX);
        match (pace.member, endless) {
            (Some(rate), _) if rate == Bytes::ZERO => {
                Err(SheetError::TooSlow { rate, bytes: self.member_used })
            }
            (Some(rate), Some(Estimate { bytes, .. })) => Err(SheetError::TooSlow { rate, bytes }),
            _ => Ok(()),
        }
    }
}

/// Bytes on a leg and on the topmost device, where they are ones that can be.
fn sizes(stack: &StackSpec, member: Bytes) -> Result<(Bytes, Bytes), SheetError> {
    if member > DEVICE_MAX {
        return Err(SheetError::MemberTooLarge(member));
    }
    let (on_leg, capacity) = (capacity::of_leg(stack, member), capacity::of_stack(stack, member));
    // Sums past 64 bits stop at the largest number, which is past this, too.
    if on_leg > DEVICE_MAX || capacity > DEVICE_MAX {
        return Err(SheetError::TooLarge { members: members(stack), size: member });
    }
    Ok((on_leg, capacity))
}

/// The sizes asked for, or the usual ones.
fn sizes_of_writes(question: &Question, capacity: Bytes) -> Result<Vec<Bytes>, SheetError> {
    if question.writes.is_empty() {
        let usual = (9..=22).map(|power| Bytes::new(1 << power));
        return Ok(usual.filter(|size| *size <= capacity).collect());
    }
    let odd = |size: &&Bytes| **size == Bytes::ZERO || **size > capacity;
    match question.writes.iter().find(odd) {
        Some(&size) => Err(SheetError::WriteOdd { size, capacity }),
        None => Ok(question.writes.clone()),
    }
}

/// The JSON schema of [`Sheet`], draft 2020-12.
pub fn schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Sheet>()
}

fn members(stack: &StackSpec) -> u32 {
    let count: usize = stack.legs.iter().map(|leg| leg.members.len()).sum();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn alignment(stack: &StackSpec, whole: &Whole) -> Alignment {
    let over = stack.stripe.as_ref().is_some_and(|stripe| stripe.maker == Maker::Lvm);
    let in_leg = stack.legs.first().is_some_and(|leg| leg.maker == Maker::Lvm);
    let leg = whole.leg().and_then(|leg| leg.chunk());
    let volumes = match (over, in_leg) {
        (true, _) => Some((lvm::alignment_of_legs(stack), whole.top().and_then(|top| top.chunk()))),
        (false, true) => Some((lvm::data_alignment(leg), leg)),
        (false, false) => None,
    };
    let width = whole.width().map_or(1, Bytes::get);
    Alignment {
        partition: Bytes::new(lvm::multiple_of_both(width, lvm::ALIGNMENT_DEFAULT.get())),
        volume_data: volumes.map(|(alignment, _)| alignment),
        volume_start: volumes.map(|(alignment, _)| lvm::data_start(alignment)),
        extent: volumes.map(|(alignment, chunk)| lvm::extent_size(alignment, chunk)),
    }
}

fn told(stack: &StackSpec) -> Option<Geometry> {
    let fs = stack.file_system.as_ref()?;
    mkfs::told(fs.kind, whole::geometry(stack), mkfs::block_size(&fs.options))
}
