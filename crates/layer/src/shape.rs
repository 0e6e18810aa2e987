//! Where things are: arithmetic of a volume's layout.
//!
//! ```text
//! block 0, 1      superblock, twice
//! 2, 2 + A        checkpoint areas: the map, 8 bytes per logical block
//! then            segments, the first on a multiple of their length
//! ```

use units::{ByteOffset, Bytes};

use crate::error::LayerError;
use crate::worth::LiveShare;
use crate::{BLOCK, BLOCK_LEN};

/// Bytes of one entry of the map.
pub(crate) const MAP_ENTRY: usize = 8;

/// Entries of one group; what a header has room for.
pub(crate) const GROUP_ENTRIES: usize = 250;

/// Streams of the log. Each fills segments of its own.
pub(crate) const STREAMS: usize = 4;

/// Lengths of a segment, in blocks.
pub(crate) const SEGMENT_BLOCKS: std::ops::RangeInclusive<u32> = 8..=1 << 16;

/// Tells volumes apart, so that no volume takes another one's groups for its own. The caller
/// draws it at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeId(pub u64);

/// A block of the volume, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Logical(pub u32);

/// A block of the device, from 0. Block 0 is a superblock, so 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Physical(pub u32);

/// A segment, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentNumber(pub u32);

/// A place in a segment, in blocks from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Within(pub u32);

/// Which blocks share segments: those that are expected to be written over at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogStream(pub u8);

impl LogStream {
    /// Writes over a block that was written not long ago.
    pub const SHORT: Self = Self(0);
    /// All other writes.
    pub const LONG: Self = Self(1);
    /// Blocks that the collector copied.
    pub const COPIES: Self = Self(2);
    /// Those that it copied more than once.
    pub const OLD: Self = Self(STREAMS as u8 - 1);

    pub fn all() -> impl Iterator<Item = Self> {
        (0..STREAMS as u8).map(Self)
    }

    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    pub fn is_copies(self) -> bool {
        self > Self::LONG
    }

    /// Where copies of its blocks go: those that outlive a segment are apart from those that outlive
    /// two.
    pub fn of_copies(self) -> Self {
        Self(self.0 + 1).clamp(Self::COPIES, Self::OLD)
    }
}

impl Physical {
    pub const NONE: Self = Self(0);

    pub fn offset(self) -> ByteOffset {
        ByteOffset::new(u64::from(self.0) * BLOCK.get())
    }
}

impl Logical {
    pub fn offset(self) -> ByteOffset {
        ByteOffset::new(u64::from(self.0) * BLOCK.get())
    }
}

/// The layout of a volume, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VolumeShape {
    pub logical: u32,
    /// Blocks of one segment.
    pub segment: u32,
    pub segments: u32,
}

impl VolumeShape {
    /// The volume of this logical size that fills a device.
    pub fn fit(device: Bytes, logical: Bytes, segment: Bytes) -> Result<Self, LayerError> {
        let fault = |what, seen, wanted| Err(LayerError::Shape { what, seen, wanted });
        let blocks = |bytes: Bytes| u32::try_from(bytes.get() / BLOCK.get()).ok();
        let segment_blocks = blocks(segment).unwrap_or(0);
        if !segment.is_multiple_of(BLOCK) || !SEGMENT_BLOCKS.contains(&segment_blocks) {
            return fault("segment", segment, format!("32 KiB to 256 MiB, a multiple of {BLOCK}"));
        }
        let Some(device_blocks) = blocks(device) else {
            return fault("device", device, "at most 16 TiB".to_owned());
        };
        let logical_blocks = blocks(logical).unwrap_or(u32::MAX);
        let mut shape = Self { logical: logical_blocks, segment: segment_blocks, segments: 0 };
        shape.segments = match u64::from(device_blocks).checked_sub(shape.first_block()) {
            Some(left) => (left / u64::from(shape.segment)) as u32,
            None => 0,
        };
        let most = BLOCK.get() * shape.logical_max();
        if !logical.is_multiple_of(BLOCK) || logical == Bytes::ZERO || logical.get() > most {
            let wanted = format!("a multiple of {BLOCK}, at most {most} bytes on this device");
            return fault("volume", logical, wanted);
        }
        Ok(shape)
    }

    /// The volume of this logical size that fills such a share of its segments' data blocks, without those
    /// that are kept clean or open.
    pub fn for_share(logical: Bytes, segment: Bytes, live: LiveShare) -> Self {
        let blocks = |bytes: Bytes| bytes.get().div_ceil(BLOCK.get()) as u32;
        let (logical, segment) = (blocks(logical), blocks(segment).max(2));
        let mut shape = Self { logical, segment, segments: 0 };
        let wanted = f64::from(logical) / (live.get().max(0.01) * f64::from(shape.data()));
        // The batch grows with the segments, up to eight.
        shape.segments = wanted.ceil() as u32;
        for _ in 0..2 {
            shape.segments = wanted.ceil() as u32 + shape.kept();
        }
        while u64::from(logical) > shape.logical_max() {
            shape.segments += 1;
        }
        shape
    }

    /// Blocks for data of a segment.
    fn data(self) -> u32 {
        self.segment - self.segment.div_ceil(GROUP_ENTRIES as u32 + 1)
    }

    /// Segments that are kept clean or open.
    fn kept(self) -> u32 {
        (self.low() + 2 * STREAMS) as u32
    }

    /// Blocks for data of all segments but those that are kept.
    pub fn room(self) -> u64 {
        u64::from(self.data()) * u64::from(self.segments.saturating_sub(self.kept()))
    }

    /// Blocks of one checkpoint area.
    pub fn area(self) -> u64 {
        (u64::from(self.logical) * MAP_ENTRY as u64).div_ceil(BLOCK_LEN as u64)
    }

    /// Where the area starts that this checkpoint lies in.
    pub fn area_offset(self, generation: u64) -> ByteOffset {
        ByteOffset::new((2 + generation % 2 * self.area()) * BLOCK.get())
    }

    fn first_block(self) -> u64 {
        (2 + 2 * self.area()).next_multiple_of(u64::from(self.segment))
    }

    /// Bytes of the device that the volume needs.
    pub fn device_size(self) -> Bytes {
        let blocks = self.first_block() + u64::from(self.segment) * u64::from(self.segments);
        Bytes::new(blocks * BLOCK.get())
    }

    pub fn size(self) -> Bytes {
        Bytes::new(u64::from(self.logical) * BLOCK.get())
    }

    pub fn block(self, segment: SegmentNumber, within: Within) -> Physical {
        Physical(self.first_block() as u32 + segment.0 * self.segment + within.0)
    }

    /// The segment that holds a block; `None` outside of all.
    pub fn segment_of(self, block: Physical) -> Option<SegmentNumber> {
        let beyond = block.0.checked_sub(self.first_block() as u32)?;
        Some(SegmentNumber(beyond / self.segment)).filter(|segment| segment.0 < self.segments)
    }

    /// Blocks from this one to the end of its segment; 0 outside of all.
    pub fn left(self, block: Physical) -> u32 {
        let beyond = self.segment_of(block).map(|_| block.0 - self.first_block() as u32);
        beyond.map_or(0, |beyond| self.segment - beyond % self.segment)
    }

    /// Victims that are emptied between two flushes.
    pub fn batch(self) -> usize {
        (self.segments as usize / 32).clamp(1, 8)
    }

    /// Clean segments that user writes leave to the collector: one for each victim of a batch, one
    /// more since copies go into two streams, one that the write itself may take, one to spare.
    pub fn low(self) -> usize {
        self.batch() + 3
    }

    /// Age of a segment from which on what is written over in it did not live short, in segments that
    /// the log has entered since. Half and twice as many cost 2 % more at most.
    pub fn young(self) -> u32 {
        (self.segments / 24).max(STREAMS as u32)
    }

    /// Segments of log from the begin of one checkpoint to that of the next. With what is written while one
    /// is under way, a group for each 256 KiB of the map, it bounds the log that recovery reads, and the
    /// garbage that cannot be collected yet.
    ///
    /// It is 32 times the map, which then adds 3 % to the log; 256 at least, which recovery reads in no
    /// time; an eighth of all segments at most.
    pub fn log_max(self) -> u32 {
        let paid = (32 * self.area()).div_ceil(u64::from(self.segment)) as u32;
        paid.max(256).min(self.segments / 8).max(2)
    }

    /// Live blocks of a victim that still bring room: its copies need headers, a group that is cut
    /// short by the flush, and the last block of a segment may stay unused.
    pub fn victim_live_max(self) -> u32 {
        self.segment - 3 - self.segment.div_ceil(GROUP_ENTRIES as u32 + 1)
    }

    /// Logical blocks for which a victim can always be found: spread over all segments but the
    /// reserve, they leave one with at most nine tenths live.
    fn logical_max(self) -> u64 {
        // All but those kept are full once the dead are clean.
        let live = self.victim_live_max().min(self.segment * 9 / 10);
        u64::from(live) * u64::from(self.segments.saturating_sub(self.kept()))
    }
}
