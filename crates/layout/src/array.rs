//! One array: its level, members and chunk, and what follows from them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Bytes;

/// Sectors, blocks and stripes all come in at least this: a chunk is a multiple of it.
const PAGE: Bytes = Bytes::kib(4);

/// The largest chunk that any maker takes. The limit is ours: md would take 2 GiB.
const CHUNK_MAX: Bytes = Bytes::gib(1);

/// More members than any driver takes; keeps the arithmetic far from its limits.
const MEMBERS_MAX: u32 = 384;

/// How an array spreads its data over its members.
///
/// Btrfs profiles and zfs vdevs map on these: `raidz1` is [`Level::Raid5`], a zfs mirror
/// [`Level::Raid1`], btrfs `single` [`Level::Linear`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// One member after the other.
    Linear,
    /// Chunks in turn, nothing kept twice.
    Raid0,
    /// Every member has everything.
    Raid1,
    /// Every chunk on two members, chunks in turn: a stripe of mirrors.
    Raid10,
    /// A mirror of two stripes.
    Raid01,
    /// One chunk of parity in each stripe.
    Raid5,
    /// Two chunks of parity in each stripe.
    Raid6,
}

impl Level {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Linear,
        Self::Raid0,
        Self::Raid1,
        Self::Raid10,
        Self::Raid01,
        Self::Raid5,
        Self::Raid6,
    ];

    /// As it is written in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Raid0 => "raid0",
            Self::Raid1 => "raid1",
            Self::Raid10 => "raid10",
            Self::Raid01 => "raid01",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
        }
    }

    /// Chunks of parity in each stripe.
    pub const fn parity(self) -> u32 {
        match self {
            Self::Raid5 => 1,
            Self::Raid6 => 2,
            _ => 0,
        }
    }

    /// Chunks of data in a full stripe over so many members; see [`Array::data_chunks`]. 0 where
    /// there are no more members than parity.
    pub const fn data_chunks(self, members: u32) -> u32 {
        match self {
            Self::Linear | Self::Raid1 => 1,
            Self::Raid0 => members,
            Self::Raid10 if !members.is_multiple_of(2) => members,
            Self::Raid10 | Self::Raid01 => members / 2,
            Self::Raid5 | Self::Raid6 => members.saturating_sub(self.parity()),
        }
    }

    /// Whether data goes over the members chunk by chunk.
    pub const fn has_chunk(self) -> bool {
        !matches!(self, Self::Linear | Self::Raid1)
    }

    /// Whether any member may be lost.
    pub const fn is_redundant(self) -> bool {
        !matches!(self, Self::Linear | Self::Raid0)
    }

    /// The fewest members that make sense.
    pub const fn members_min(self) -> u32 {
        match self {
            Self::Linear | Self::Raid0 => 1,
            Self::Raid1 | Self::Raid10 => 2,
            Self::Raid5 => 3,
            Self::Raid6 | Self::Raid01 => 4,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that is no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an array level")]
pub struct ParseLevelError(String);

impl ParseLevelError {
    /// What would be one.
    pub fn hint(&self) -> Option<String> {
        let names: Vec<_> = Level::ALL.iter().map(|level| level.name()).collect();
        Some(format!("levels are {}", names.join(", ")))
    }
}

impl FromStr for Level {
    type Err = ParseLevelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let short = text.trim().to_ascii_lowercase().replace(['-', '_', ' '], "");
        Ok(match short.as_str() {
            "linear" | "jbod" | "single" => Self::Linear,
            "raid0" | "0" | "stripe" => Self::Raid0,
            "raid1" | "1" | "mirror" => Self::Raid1,
            "raid10" | "10" | "raid1+0" | "1+0" => Self::Raid10,
            "raid01" | "01" | "raid0+1" | "0+1" => Self::Raid01,
            "raid5" | "5" | "raidz" | "raidz1" => Self::Raid5,
            "raid6" | "6" | "raidz2" => Self::Raid6,
            _ => return Err(ParseLevelError(text.to_owned())),
        })
    }
}

/// Why there is no such array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The level cannot work with so few.
    #[error("{level} needs {needed} members or more, found {found}")]
    TooFewMembers {
        /// Of the array asked for.
        level: Level,
        /// The fewest it takes.
        needed: u32,
        /// As asked for.
        found: u32,
    },
    /// More than we reckon with.
    #[error("an array of {found} members is more than the {MEMBERS_MAX} that are reckoned with")]
    TooManyMembers {
        /// As asked for.
        found: u32,
    },
    /// Two halves must be equal.
    #[error(
        "{level} is two stripes of equal size: it needs an even number of members, found {found}"
    )]
    OddMembers {
        /// Of the array asked for.
        level: Level,
        /// As asked for.
        found: u32,
    },
    /// A striped level without the length of its stripes.
    #[error("{0} needs a chunk size")]
    ChunkMissing(Level),
    /// A chunk that nothing would be cut into.
    #[error("{0} has no chunks, so a chunk size has no meaning")]
    ChunkWithoutStripes(Level),
    /// Chunks that no driver takes.
    #[error("chunk {} of {level} is not {wanted}", .chunk.exact())]
    ChunkOdd {
        /// Of the array asked for.
        level: Level,
        /// As asked for.
        chunk: Bytes,
        /// What it must be.
        wanted: &'static str,
    },
}

impl ArrayError {
    /// What would work instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooFewMembers { level: Level::Raid5, found: 2, .. } => {
                Some("with two members raid1 keeps the same amount without parity".to_owned())
            }
            Self::TooFewMembers { level: Level::Raid01, .. } => {
                Some("raid10 does the same from two members on".to_owned())
            }
            Self::OddMembers { .. } => Some("raid10 takes odd numbers".to_owned()),
            Self::ChunkMissing(_) => Some("128KiB is usual".to_owned()),
            Self::ChunkWithoutStripes(_) => Some("leave the chunk size out".to_owned()),
            Self::ChunkOdd { chunk, .. } => {
                let near = chunk.get().clamp(PAGE.get(), CHUNK_MAX.get());
                let below = Bytes::new(1 << near.ilog2());
                let above = Bytes::new(near.next_power_of_two());
                Some(if below == above {
                    format!("use {}", below.exact())
                } else {
                    format!("use {} or {}", below.exact(), above.exact())
                })
            }
            Self::TooFewMembers { .. } | Self::TooManyMembers { .. } => None,
        }
    }
}

/// An array that can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Array {
    level: Level,
    members: u32,
    chunk: Option<Bytes>,
}

/// How many members may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tolerance {
    /// Whichever they are.
    pub sure: u32,
    /// If they are the right ones.
    pub at_best: u32,
}

/// What a layer tells those above about its stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Geometry {
    /// Bytes that lie together on one member (or one leg): what file systems call stripe unit,
    /// `su`, or stride.
    #[schemars(with = "u64")]
    pub unit: Bytes,
    /// Units of data from which the pattern repeats: `sw`.
    pub count: u32,
}

impl Geometry {
    /// Bytes of data in a full stripe.
    pub const fn width(self) -> Bytes {
        Bytes::new(self.unit.get().saturating_mul(self.count as u64))
    }
}

impl Array {
    /// Checks that such an array can be.
    ///
    /// * `chunk`: bytes on one member before the next; needed by all levels but linear and raid1.
    ///
    /// # Errors
    ///
    /// Too few members for the level, an odd number for 0+1, a chunk missing or of a size that no
    /// driver takes: raid0 takes multiples of 4 KiB, the others powers of two from 4 KiB.
    pub fn new(level: Level, members: u32, chunk: Option<Bytes>) -> Result<Self, ArrayError> {
        let needed = level.members_min();
        if members < needed {
            return Err(ArrayError::TooFewMembers { level, needed, found: members });
        }
        if members > MEMBERS_MAX {
            return Err(ArrayError::TooManyMembers { found: members });
        }
        if level == Level::Raid01 && !members.is_multiple_of(2) {
            return Err(ArrayError::OddMembers { level, found: members });
        }
        match chunk {
            None if level.has_chunk() => return Err(ArrayError::ChunkMissing(level)),
            Some(_) if !level.has_chunk() => return Err(ArrayError::ChunkWithoutStripes(level)),
            Some(chunk) => check_chunk(level, chunk)?,
            None => {}
        }
        Ok(Self { level, members, chunk })
    }

    /// How data is spread.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Devices that take part, spares not counted.
    pub const fn members(&self) -> u32 {
        self.members
    }

    /// Bytes on one member before the next; `None` for linear and raid1.
    pub const fn chunk(&self) -> Option<Bytes> {
        self.chunk
    }

    /// Chunks of data in a full stripe.
    ///
    /// * 1 for linear and raid1, which have none.
    /// * Raid10 over an odd number of members repeats after two rows: then it is their number.
    pub const fn data_chunks(&self) -> u32 {
        self.level.data_chunks(self.members)
    }

    /// Bytes of data in a full stripe, the "data width": chunk x data chunks. `None` without chunks.
    pub fn data_width(&self) -> Option<Bytes> {
        self.geometry().map(Geometry::width)
    }

    /// What file systems above want to know. `None` without chunks.
    pub fn geometry(&self) -> Option<Geometry> {
        self.chunk.map(|unit| Geometry { unit, count: self.data_chunks() })
    }

    /// Bytes of data and redundancy in a full stripe: what all members get when it is written.
    pub fn full_stripe(&self) -> Option<Bytes> {
        let chunk = self.chunk?.get();
        let copies = match self.level {
            Level::Raid0 | Level::Raid5 | Level::Raid6 => self.members,
            _ => 2 * self.data_chunks(),
        };
        Some(Bytes::new(chunk * u64::from(copies)))
    }

    /// How many members' worth of data it streams: what it writes in sequence, by what one does.
    pub const fn streams(&self) -> u32 {
        match self.level {
            Level::Linear | Level::Raid1 => 1,
            Level::Raid0 => self.members,
            Level::Raid10 | Level::Raid01 => self.members / 2,
            Level::Raid5 | Level::Raid6 => self.members - self.level.parity(),
        }
    }

    /// Bytes that can be stored.
    ///
    /// * `member`: bytes that each member gives, without what the maker keeps for itself; what
    ///   does not fill a chunk is not used.
    /// * Saturates at 2^64 - 1.
    pub fn capacity(&self, member: Bytes) -> Bytes {
        let used = u128::from(self.used(member).get());
        let members = u128::from(self.members);
        let chunk = self.chunk.map_or(1, |chunk| u128::from(chunk.get()));
        let total = match self.level {
            Level::Linear | Level::Raid0 => used * members,
            Level::Raid1 => used,
            // An odd number of chunks is left over where both are odd.
            Level::Raid10 => used / chunk * members / 2 * chunk,
            Level::Raid01 => used * members / 2,
            Level::Raid5 | Level::Raid6 => used * (members - u128::from(self.level.parity())),
        };
        Bytes::new(u64::try_from(total).unwrap_or(u64::MAX))
    }

    /// Bytes of a member that the array uses: whole chunks.
    pub fn used(&self, member: Bytes) -> Bytes {
        match self.chunk {
            Some(chunk) => Bytes::new(member.get() / chunk.get() * chunk.get()),
            None => member,
        }
    }

    /// How many members may be lost before data is.
    pub const fn tolerance(&self) -> Tolerance {
        let (sure, at_best) = match self.level {
            Level::Linear | Level::Raid0 => (0, 0),
            Level::Raid1 => (self.members - 1, self.members - 1),
            Level::Raid10 | Level::Raid01 => (1, self.members / 2),
            Level::Raid5 => (1, 1),
            Level::Raid6 => (2, 2),
        };
        Tolerance { sure, at_best }
    }
}

fn check_chunk(level: Level, chunk: Bytes) -> Result<(), ArrayError> {
    let wrong = |wanted| Err(ArrayError::ChunkOdd { level, chunk, wanted });
    if chunk < PAGE || chunk > CHUNK_MAX {
        return wrong("between 4KiB and 1GiB");
    }
    if matches!(level, Level::Raid0 | Level::Raid01) {
        if !chunk.is_multiple_of(PAGE) {
            return wrong("a multiple of 4KiB");
        }
    } else if !chunk.get().is_power_of_two() {
        return wrong("a power of two");
    }
    Ok(())
}
