//! Everything that follows from a stack, on one sheet.

use schemars::JsonSchema;
use serde::Serialize;
use units::{ByteOffset, Bytes};

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
    /// Filling a new member.
    pub rebuild: Option<Estimate>,
    /// The first pass over a new array.
    pub first_sync: Option<Estimate>,
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
    /// Sizes of writes to cost.
    pub writes: Vec<Bytes>,
    /// How far behind a full stripe of a leg data begins: 0 where all is aligned.
    pub misaligned_by: ByteOffset,
    /// What members and kernel give to a rebuild.
    pub pace: Pace,
}

impl Default for Question {
    /// 512 B to 4 MiB by doubling, aligned, at the kernel's pace.
    fn default() -> Self {
        Self {
            writes: (9..=22).map(|power| Bytes::new(1 << power)).collect(),
            misaligned_by: ByteOffset::ZERO,
            pace: Pace::default(),
        }
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

impl Sheet {
    /// Works everything out.
    ///
    /// # Errors
    ///
    /// As [`steps::build`]; besides, members that are too small for what makes the array.
    pub fn of(
        stack: &StackSpec,
        names: &Names,
        facts: &DeviceFacts,
        question: &Question,
    ) -> Result<Self, StepsError> {
        let steps = steps::build(stack, names, facts)?;
        let (smallest, member_size) =
            capacity::smallest_member(stack, facts).ok_or(StackError::NoLegs)?;
        let whole = Whole::of(stack, question.misaligned_by);
        let leg = whole.leg();
        let member_used = capacity::used_of_member(stack, member_size);
        if member_used == Bytes::ZERO {
            let what = "what makes the array keeps for itself";
            return Err(StepsError::TooSmall { device: smallest, size: member_size, what });
        }
        let own = stack.legs.iter().any(|leg| matches!(leg.maker, Maker::Btrfs | Maker::Zfs));
        let costed = |size: &Bytes| whole.mean_write_cost(*size);
        let mut sheet = Self {
            schema: SCHEMA.to_owned(),
            stack: stack.clone(),
            member_size,
            member_used,
            members: members(stack),
            capacity: capacity::of_stack(stack, member_size),
            tolerance: whole.tolerance(),
            leg: leg.map(Stripes::from),
            top: whole.top().filter(|top| top.chunk().is_some()).map(Stripes::from),
            alignment: alignment(stack, &whole),
            told: told(stack),
            writes: if own { Vec::new() } else { question.writes.iter().map(costed).collect() },
            rebuild: leg.and_then(|leg| leg.rebuild(member_used, &question.pace)),
            first_sync: leg
                .filter(|_| !own)
                .and_then(|leg| leg.first_sync(member_used, &question.pace)),
            remarks: Vec::new(),
            teardown: steps::teardown(&steps),
            steps,
        };
        sheet.remarks = crate::remarks::of(&sheet, &whole, question);
        Ok(sheet)
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
