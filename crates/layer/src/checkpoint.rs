//! Checkpoints: the whole map, then the superblocks that put it in force.

use units::{ByteOffset, Bytes};

use crate::device::BlockDevice;
use crate::error::LayerError;
use crate::format::{Head, LogPosition, Superblock};
use crate::map::BlockMap;
use crate::planted::{PlantedBug, planted};
use crate::segments::{Batch, SafeUpTo, SegmentTable};
use crate::shape::{MAP_ENTRY, STREAMS, SegmentNumber, VolumeId, VolumeShape, Within};
use crate::volume::{CreateOptions, LogCounts, LogVolume, OpenGroup, Recovered};
use crate::{BLOCK, BLOCK_LEN};

/// Blocks of the map that are written or read at once.
const MAP_CHUNK: u64 = 256;

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
            safe: SafeUpTo { durable: sequence, checkpoint: sequence },
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
        let generation = self.generation + 1;
        let map_crc = self.write_map(generation)?;
        if !planted(PlantedBug::NoFlushBeforeSuperblock) {
            let flushed = self.device.flush();
            self.stick(flushed)?;
        }
        let sequence = self.position.sequence;
        let safe = SafeUpTo { durable: sequence, checkpoint: sequence };
        if planted(PlantedBug::FreeBeforeSuperblock) {
            self.safe = safe;
            self.release()?;
        }
        let (volume, shape, position) = (self.id, self.shape, self.position);
        let superblock = Superblock { volume, shape, generation, map_crc, position };
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
        self.log_segments = 0;
        self.counts.checkpoints += 1;
        self.release()
    }

    fn write_map(&mut self, generation: u64) -> Result<u32, LayerError> {
        let mut crc = crc32fast::Hasher::new();
        for (at, start, length) in chunks(self.shape, generation) {
            let mut bytes = vec![0; length];
            self.map.encode(start, &mut bytes);
            crc.update(&bytes);
            let written = self.device.write(at, &bytes);
            self.stick(written)?;
        }
        Ok(crc.finalize())
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
    for (at, start, length) in chunks(superblock.shape, generation) {
        let mut bytes = vec![0; length];
        device.read(at, &mut bytes)?;
        crc.update(&bytes);
        map.decode(start, &bytes);
    }
    if crc.finalize() != superblock.map_crc && !is_stale {
        return Err(LayerError::CheckpointDamaged { generation: superblock.generation });
    }
    Ok(map)
}

/// The parts of a checkpoint area: where on the device, from which entry of the map, how many bytes.
fn chunks(shape: VolumeShape, generation: u64) -> impl Iterator<Item = (ByteOffset, usize, usize)> {
    let generation = if planted(PlantedBug::OneArea) { 0 } else { generation };
    let start = shape.area_offset(generation);
    (0..shape.area()).step_by(MAP_CHUNK as usize).map(move |block| {
        let blocks = MAP_CHUNK.min(shape.area() - block);
        let skip = Bytes::new(block * BLOCK.get());
        let at = ByteOffset::new(start.get() + skip.get());
        (at, skip.get() as usize / MAP_ENTRY, blocks as usize * BLOCK_LEN)
    })
}

/// What the chain of a log begins with after checkpoint `generation` opened it.
fn chain_start(volume: VolumeId, generation: u64) -> u32 {
    crc32fast::hash(&[volume.0.to_le_bytes(), generation.to_le_bytes()].concat())
}
