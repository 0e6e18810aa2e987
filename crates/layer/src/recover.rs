//! Opening a volume: the newest checkpoint, then the log behind it up to the first hole.

use units::Bytes;

use crate::checkpoint::{SUPERBLOCKS, read_map};
use crate::checksum::{Checksum, Difference};
use crate::device::BlockDevice;
use crate::error::LayerError;
use crate::format::{GroupHeader, LogEntry, LogPosition, Superblock, VERSION};
use crate::map::BlockPlace;
use crate::planted::{PlantedBug, planted};
use crate::shape::{Logical, Physical, SegmentNumber, Within};
use crate::volume::LogVolume;
use crate::{BLOCK, BLOCK_LEN};

/// A group of the log.
struct FoundGroup {
    header: GroupHeader,
    /// Its first data block.
    data: Physical,
    /// Where the log goes on.
    after: LogPosition,
}

impl<D: BlockDevice> LogVolume<D> {
    /// Opens the volume on a device, after a crash too.
    ///
    /// * Errors: [`LayerError::LogDamaged`] and [`LayerError::CheckpointDamaged`] if something that
    ///   was flushed cannot be read. Nothing is written then.
    pub fn open(mut device: D) -> Result<Self, LayerError> {
        let superblock = newest(&mut device)?;
        let shape = superblock.shape;
        if device.size() < shape.device_size() {
            let (seen, wanted) = (device.size(), shape.device_size());
            return Err(LayerError::DeviceTooSmall { seen, wanted });
        }
        let map = read_map(&mut device, &superblock)?;
        let mut volume = Self::with_map(device, &superblock, map)?;
        volume.roll_forward()?;
        volume.repair(&superblock)?;
        volume.start()?;
        Ok(volume)
    }

    /// Writes the superblock where it is not: a checkpoint that was cut short leaves an older one, and
    /// the next checkpoint may tear either.
    fn repair(&mut self, superblock: &Superblock) -> Result<(), LayerError> {
        let mut wanted = [0; BLOCK_LEN];
        superblock.encode(&mut wanted);
        for at in SUPERBLOCKS {
            let mut seen = [0; BLOCK_LEN];
            self.device.read(at, &mut seen)?;
            if seen != wanted && !planted(PlantedBug::LaggingSuperblock) {
                self.device.write(at, &wanted)?;
                self.device.flush()?;
            }
        }
        Ok(())
    }

    /// Applies the groups behind the checkpoint in their order, up to the first that is not whole.
    fn roll_forward(&mut self) -> Result<(), LayerError> {
        // First only headers: each tells how far the log was flushed when it was written. Up to there
        // the data need no check, and an error in them is one of reading, not the end of the log.
        let mut position = self.position;
        let mut durable = position.sequence;
        while let Some(group) = self.group_at(position)? {
            durable = durable.max(group.header.durable);
            position = group.after;
        }
        self.refuse_damage(position)?;
        while let Some(group) = self.group_at(self.position)? {
            let is_whole = group.header.sequence <= durable || self.is_whole(&group)?;
            if is_whole || planted(PlantedBug::NoDataCheck) {
                self.apply(&group);
            } else if !planted(PlantedBug::AcceptHole) {
                break;
            }
            self.position = group.after;
        }
        Ok(())
    }

    /// Where the group after this position begins.
    fn group_place(&self, position: LogPosition) -> (SegmentNumber, Within) {
        match self.shape.segment - position.within.0 {
            0 | 1 => (position.next, Within(0)),
            _ => (position.segment, position.within),
        }
    }

    /// The group that follows a position, if its header is whole. Its data may not be.
    fn group_at(&mut self, position: LogPosition) -> Result<Option<FoundGroup>, LayerError> {
        let (segment, within) = self.group_place(position);
        let mut block = [0; BLOCK_LEN];
        self.device.read(self.shape.block(segment, within).offset(), &mut block)?;
        let Some((header, chain)) = GroupHeader::decode(&mut block, self.id) else {
            return Ok(None);
        };
        let is_chained = header.chain == position.chain || planted(PlantedBug::NoChain);
        let sequence = position.sequence + 1;
        let end = within.0 + 1 + header.data();
        if !is_chained || header.sequence != sequence || !header.fits(self.shape, within) {
            return Ok(None);
        }
        let within = Within(within.0 + 1);
        let data = self.shape.block(segment, within);
        let after =
            LogPosition { segment, within: Within(end), next: header.next, sequence, chain };
        Ok(Some(FoundGroup { header, data, after }))
    }

    /// The log seems to end here. It does not if a group further on, in this segment or the next, says
    /// that the one which should be here was flushed.
    fn refuse_damage(&mut self, end: LogPosition) -> Result<(), LayerError> {
        let missing = end.sequence + 1;
        let (segment, within) = self.group_place(end);
        let here = (within.0 + 1..self.shape.segment).map(|within| (segment, Within(within)));
        let next = (0..self.shape.segment).map(|within| (end.next, Within(within)));
        let mut block = [0; BLOCK_LEN];
        for (segment, within) in here.chain(next) {
            self.device.read(self.shape.block(segment, within).offset(), &mut block)?;
            if !GroupHeader::seems_in(&block, self.id) {
                continue;
            }
            match GroupHeader::decode(&mut block, self.id) {
                Some((header, _)) if header.durable >= missing => {
                    return Err(LayerError::LogDamaged { sequence: missing });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the data of a group are on the device, but for a bit that flipped: a read reports that.
    fn is_whole(&mut self, group: &FoundGroup) -> Result<bool, LayerError> {
        let mut block = [0; BLOCK_LEN];
        for (at, (_, sum)) in (group.data.0..).map(Physical).zip(writes(&group.header)) {
            self.device.read(at.offset(), &mut block)?;
            if sum.difference(&block) == Difference::Other {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn apply(&mut self, group: &FoundGroup) {
        let mut block = group.data;
        for entry in &group.header.entries {
            match *entry {
                LogEntry::Write(at, sum) => {
                    self.place(at, BlockPlace { block, crc: sum.crc });
                    block.0 += 1;
                }
                LogEntry::Trim(first, run) => {
                    for at in (first.0..first.0 + run).map(Logical) {
                        self.place(at, BlockPlace::default());
                    }
                }
            }
        }
        self.recovered.groups += 1;
        self.recovered.changes += group.header.entries.len() as u64;
    }
}

/// The blocks that a group writes.
pub(crate) fn writes(header: &GroupHeader) -> impl Iterator<Item = (Logical, Checksum)> {
    header.entries.iter().filter_map(|entry| match *entry {
        LogEntry::Write(at, sum) => Some((at, sum)),
        LogEntry::Trim(..) => None,
    })
}

/// The superblock of the newest checkpoint.
fn newest<D: BlockDevice>(device: &mut D) -> Result<Superblock, LayerError> {
    if device.size() < Bytes::new(2 * BLOCK.get()) {
        return Err(LayerError::NoVolume);
    }
    let mut found: Vec<Superblock> = Vec::new();
    for at in SUPERBLOCKS {
        let mut block = [0; BLOCK_LEN];
        device.read(at, &mut block)?;
        match Superblock::decode(&mut block) {
            None => {}
            Some(Ok(superblock)) => found.push(superblock),
            Some(Err(seen)) => return Err(LayerError::Version { seen, wanted: VERSION }),
        }
    }
    found.into_iter().max_by_key(|superblock| superblock.generation).ok_or(LayerError::NoVolume)
}
