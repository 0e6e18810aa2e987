//! A log-structured translation layer: random writes of 4 KiB become sequential appends.
//!
//! A [`LogVolume`] lives on a [`BlockDevice`]. Writes are gathered into *groups*: a header block that
//! names and checks the data blocks behind it. Groups fill *segments*, one after another. A map in
//! memory knows where each logical block is; a collector copies what is still live out of segments, so
//! that they can be written again.
//!
//! Blocks that die together belong together: a segment that is all garbage costs no copies. So the log
//! has four *streams* with segments of their own: writes over blocks that were young, other writes,
//! first copies, later copies. A group is one contiguous write in each stream that it has blocks for, and
//! counts only as a whole; its header is in each, and holds the order of all.
//!
//! What holds after any crash of the device, at any moment, that of recovery included:
//!
//! * The volume is the state after a prefix of the sequence of writes and trims, block by block,
//!   and the prefix contains all that [`LogVolume::flush`] has returned for.
//! * Torn writes are found by checksums; the device need not write more than single bits whole.
//! * One flipped bit anywhere gives the right data or an error, never other data.
//!
//! What does not hold: if more than one bit decays in a group that was written since the flush before the
//! last, or the last [`LogVolume::settle`], and the volume
//! was not closed, the group looks like a torn write and is lost without an error. Elsewhere such
//! damage is an error too.
//!
//! Limits: all calls are synchronous, and a caller uses a volume alone. The map takes 8 bytes of
//! memory per block (2 MiB per GiB), a group up to 1 MiB for each stream. Opening and closing a volume
//! write the whole map; while it is in use, the map is written little by little. Which segments are old is
//! forgotten when a volume is closed.

mod ahead;
mod bytes;
mod checkpoint;
mod checksum;
mod collect;
mod device;
mod error;
mod format;
mod map;
mod memory;
mod planted;
mod recover;
mod scrub;
mod segments;
mod shape;
mod underway;
mod volume;
mod worth;

pub use device::{BlockAction, BlockDevice, BlockError, ReadPart};
pub use error::LayerError;
pub use memory::{BlockMemory, CrashLoss};
pub use recover::is_volume;
pub use scrub::{Scrubbed, Untouched};
pub use shape::VolumeId;
pub use volume::{CreateOptions, LogCounts, LogVolume, Recovered, SEGMENT};
pub use worth::{DeviceCosts, LayerForecast, LiveShare};

/// What a volume reads and writes at once; offsets and lengths are multiples of it.
pub const BLOCK: units::Bytes = units::Bytes::kib(4);

/// [`BLOCK`] as a length of buffers.
const BLOCK_LEN: usize = 4096;

/// Dead blocks between live ones that are read along: a request of its own costs more on most devices.
const GAP: u32 = 4;

#[cfg(test)]
#[path = "../tests/crash/mod.rs"]
mod crash;
