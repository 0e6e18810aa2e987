//! Checkpoints: the whole map, then the superblocks that put it in force.
//!
//! A checkpoint begins at a place of the log, the *position*. From then on each group is followed by a
//! chunk of the map as it is by then. Once all chunks are written, all is flushed, and superblocks with the
//! position put the map in force.
//!
//! Such a map is of no one moment: each of its chunks knows all groups up to the one that it followed. The
//! log from the position on makes it whole. A block that it changes ends where its last change puts it,
//! wherever the map had it; any other has not moved since the position, so all chunks have it right. This
//! needs each group that a chunk may know of. So they are flushed before the superblocks, and these name the
//! last of them, the *end*: a log that ends before it is damaged. And the segments of groups behind the
//! position are not written again before the next checkpoint.
//!
//! A segment whose groups the checkpoint in force covers may be freed and written again meanwhile, as ever.
//! Then the map may name one place twice, for a block that was there and for one that is. What freed the
//! segment moved the former, in a group behind the chunk that still has it and not behind the end. So the
//! log puts it right, and the table of segments too: it counts what the map names, at every moment.

use units::ByteOffset;

use crate::device::BlockDevice;
use crate::error::LayerError;
use crate::format::{Head, LogPosition, Superblock};
use crate::map::BlockMap;
use crate::planted::{PlantedBug, planted};
use crate::segments::{Batch, SafeUpTo, SegmentTable};
use crate::shape::{MAP_ENTRY, STREAMS, SegmentNumber, VolumeId, VolumeShape, Within};
use crate::underway::Underway;
use crate::volume::{CreateOptions, LogCounts, LogVolume, OpenGroup, Recovered};
use crate::{BLOCK, BLOCK_LEN};

/// Entries of the map that are written with one group, or read at once: 256 KiB. A write waits for few of
/// them. In the crash proof, whose maps are less than a block, they are a part of it.
fn chunk_entries(shape: VolumeShape) -> usize {
    if cfg!(test) { (shape.logical as usize / 4).max(2) } else { 1 << 15 }
}

/// Where the two superblocks are.
pub(crate) const SUPERBLOCKS: [ByteOffset; 2] = [ByteOffset::ZERO, ByteOffset::new(BLOCK.get())];

impl<D: BlockDevice> LogVolume<D> {
    /// Makes a volume on a device; what was there is lost.
    pub fn create(mut device: D, options: &CreateOptions) -> Result<Self, LayerError> {
        let shape = VolumeShape::fit(device.size(), options.logical, options.segment)?;
        // An older volume must not come back when this is cut short.
        for at in SUPERBLOCKS {
            device.write(at, &[0; BLOCK_LEN])?;
        }
        device.flush()?;
        // The first segments are the streams', the next ones those after them.
        let head = |stream: usize| Head {
            segment: SegmentNumber(stream as u32),
            within: Within(0),
            next: SegmentNumber((STREAMS + stream) as u32),
        };
        let heads = std::array::from_fn(head);
        let superblock = Superblock {
            volume: options.id,
            shape,
            generation: 0,
            map_crc: 0,
            position: LogPosition { heads, sequence: 0, chain: 0 },
            end: 0,
        };
        let mut volume = Self::with_map(device, &superblock, BlockMap::new(shape))?;
        volume.start()?;
        Ok(volume)
    }

    /// The volume of a superblock as its checkpoint describes it.
    pub(crate) fn with_map(
        device: D,
        superblock: &Superblock,
        map: BlockMap,
    ) -> Result<Self, LayerError> {
        let shape = superblock.shape;
        let generation = superblock.generation;
        let segments = SegmentTable::of(shape, map.iter().map(|place| place.block))
            .ok_or(LayerError::CheckpointDamaged { generation })?;
        let sequence = superblock.position.sequence;
        Ok(Self {
            device,
            id: superblock.volume,
            shape,
            generation,
            map,
            segments,
            position: superblock.position,
            group: OpenGroup::new(shape),
            safe: SafeUpTo { durable: superblock.end.max(sequence), checkpoint: sequence },
            underway: None,
            settled: 0,
            log_segments: 0,
            failure: None,
            counts: LogCounts::default(),
            recovered: Recovered::default(),
            copies: Vec::new(),
            batch: Batch::default(),
        })
    }

    /// Begins to write: with a checkpoint, and a chain that no group on the device belongs to. Groups
    /// that recovery left out have the numbers that are given next.
    pub(crate) fn start(&mut self) -> Result<(), LayerError> {
        self.segments.sort(&self.position.heads);
        if !planted(PlantedBug::SameChainAfterRecovery) {
            self.position.chain = chain_start(self.id, self.generation + 1);
        }
        self.checkpoint()
    }

    /// Puts the map as it is now in force, and makes all before it durable.
    pub(crate) fn checkpoint(&mut self) -> Result<(), LayerError> {
        self.write_group()?;
        self.begin_checkpoint();
        self.finish_checkpoint()
    }

    /// Begins a checkpoint; one that was under way is forgotten. Nothing may be in the open group.
    pub(crate) fn begin_checkpoint(&mut self) {
        let (position, entered) = (self.position, self.log_segments);
        let crc = crc32fast::Hasher::new();
        self.underway = Some(Underway { position, entered, next: 0, crc });
        if planted(PlantedBug::FreeBeforeChunks) {
            self.safe.checkpoint = position.sequence;
        }
    }

    /// Writes all that the checkpoint under way is short of.
    pub(crate) fn finish_checkpoint(&mut self) -> Result<(), LayerError> {
        // The map already has the changes of the open group.
        if !planted(PlantedBug::ChunkBeforeGroup) {
            self.write_group()?;
        }
        while self.underway.is_some() {
            self.write_chunk()?;
        }
        Ok(())
    }

    /// What follows each group: a chunk of the checkpoint under way, or the begin of one that is due.
    pub(crate) fn pace_checkpoint(&mut self) -> Result<(), LayerError> {
        if self.underway.is_some() {
            return self.write_chunk();
        }
        if self.log_segments >= self.shape.log_max() {
            self.begin_checkpoint();
        }
        Ok(())
    }

    /// Writes the next chunk of the map, and behind the last one the superblocks.
    fn write_chunk(&mut self) -> Result<(), LayerError> {
        let Some(mut underway) = self.underway.take() else { return Ok(()) };
        let (at, length) = chunk(self.shape, self.generation + 1, underway.next);
        let mut bytes = vec![0; length];
        self.map.encode(underway.next, &mut bytes);
        underway.crc.update(&bytes);
        if underway.next == 0 || !planted(PlantedBug::ChunkSkipped) {
            let written = self.device.write(at, &bytes);
            self.stick(written)?;
        }
        underway.next += chunk_entries(self.shape);
        if underway.next >= self.shape.logical as usize {
            return self.put_in_force(underway);
        }
        self.underway = Some(underway);
        Ok(())
    }

    /// Flushes, and writes the superblocks of a checkpoint whose chunks are all written.
    fn put_in_force(&mut self, written: Underway) -> Result<(), LayerError> {
        let Underway { mut position, entered, crc, .. } = written;
        if !planted(PlantedBug::NoFlushBeforeSuperblock) {
            let flushed = self.device.flush();
            self.stick(flushed)?;
        }
        let end = self.position.sequence;
        let mut safe = SafeUpTo { durable: end, checkpoint: position.sequence };
        if planted(PlantedBug::EndCovered) {
            safe.checkpoint = end;
        }
        if planted(PlantedBug::PositionOfEnd) {
            position = self.position;
        }
        if planted(PlantedBug::FreeBeforeSuperblock) {
            self.safe = safe;
            self.release()?;
        }
        let generation = self.generation + 1;
        let (volume, shape, map_crc) = (self.id, self.shape, crc.finalize());
        let superblock = Superblock { volume, shape, generation, map_crc, position, end };
        let mut block = [0; BLOCK_LEN];
        superblock.encode(&mut block);
        // One after the other: one of the two is whole at any time. Both, before anything that the
        // older one needs is written over: a flipped bit in the first leaves the same checkpoint.
        for at in SUPERBLOCKS {
            if at != ByteOffset::ZERO && planted(PlantedBug::OneSuperblock) {
                continue;
            }
            let written = self.device.write(at, &block).and_then(|()| self.device.flush());
            self.stick(written)?;
        }
        self.generation = generation;
        self.safe = safe;
        self.settled = end;
        self.log_segments -= entered;
        self.counts.checkpoints += 1;
        self.release()
    }
}

/// The map that a superblock puts in force.
pub(crate) fn read_map<D: BlockDevice>(
    device: &mut D,
    superblock: &Superblock,
) -> Result<BlockMap, LayerError> {
    let mut map = BlockMap::new(superblock.shape);
    let mut crc = crc32fast::Hasher::new();
    let is_stale = planted(PlantedBug::StaleCheckpoint);
    let generation = superblock.generation - u64::from(is_stale);
    for first in (0..superblock.shape.logical as usize).step_by(chunk_entries(superblock.shape)) {
        let (at, length) = chunk(superblock.shape, generation, first);
        let mut bytes = vec![0; length];
        device.read(at, &mut bytes)?;
        crc.update(&bytes);
        map.decode(first, &bytes);
    }
    if crc.finalize() != superblock.map_crc && !is_stale {
        return Err(LayerError::CheckpointDamaged { generation: superblock.generation });
    }
    Ok(map)
}

/// The chunk of a checkpoint area that begins with this entry of the map: where on the device, how many
/// bytes. The last goes on to the end of the area.
fn chunk(shape: VolumeShape, generation: u64, first: usize) -> (ByteOffset, usize) {
    let generation = if planted(PlantedBug::OneArea) { 0 } else { generation };
    let skip = first * MAP_ENTRY;
    let behind = first + chunk_entries(shape);
    let end = match behind < shape.logical as usize {
        true => behind * MAP_ENTRY,
        false => shape.area() as usize * BLOCK_LEN,
    };
    let start = shape.area_offset(generation).get();
    (ByteOffset::new(start + skip as u64), end - skip)
}

/// What the chain of a log begins with after checkpoint `generation` opened it.
fn chain_start(volume: VolumeId, generation: u64) -> u32 {
    crc32fast::hash(&[volume.0.to_le_bytes(), generation.to_le_bytes()].concat())
}
