//! Opening a volume: the newest checkpoint, then the log behind it up to the first hole.

use std::collections::VecDeque;

use units::Bytes;

use crate::ahead::ReadAhead;
use crate::checkpoint::{SUPERBLOCKS, read_map};
use crate::checksum::Difference;
use crate::device::BlockDevice;
use crate::error::LayerError;
use crate::format::{GroupHeader, Head, LogEntry, LogPosition, Superblock, VERSION};
use crate::map::BlockPlace;
use crate::planted::{PlantedBug, planted};
use crate::shape::{LogStream, Logical, STREAMS, SegmentNumber, Within};
use crate::volume::LogVolume;
use crate::{BLOCK, BLOCK_LEN};

/// A group of the log.
struct FoundGroup {
    header: GroupHeader,
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
            let differs = self.device.read(at, &mut seen).is_err() || seen != wanted;
            if differs && !planted(PlantedBug::LaggingSuperblock) {
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
        let mut durable = self.safe.durable;
        let mut unsure = VecDeque::new();
        let mut ahead = Default::default();
        while let Some(group) = self.group_at(position, &mut ahead)? {
            durable = durable.max(group.header.durable);
            position = group.after;
            unsure.push_back(group);
            while let Some(group) = unsure.pop_front_if(|group| group.header.sequence <= durable) {
                self.apply(group);
            }
        }
        self.refuse_damage(position)?;
        for group in unsure {
            if self.is_whole(&group.header)? || planted(PlantedBug::NoDataCheck) {
                self.apply(group);
            } else if !planted(PlantedBug::AcceptHole) {
                break;
            } else {
                self.position = group.after;
            }
        }
        Ok(())
    }

    /// Where the next part of a stream begins.
    fn part_place(&self, head: Head) -> (SegmentNumber, Within) {
        match self.shape.segment - head.within.0 {
            0 | 1 => (head.next, Within(0)),
            _ => (head.segment, head.within),
        }
    }

    /// The group that follows a position, if one of its headers is whole. All else of it may not be.
    fn group_at(
        &mut self,
        position: LogPosition,
        ahead: &mut [ReadAhead; STREAMS],
    ) -> Result<Option<FoundGroup>, LayerError> {
        let streams = if planted(PlantedBug::OneStream) { 1 } else { position.heads.len() };
        for (head, ahead) in position.heads[..streams].iter().zip(ahead) {
            let (segment, within) = self.part_place(*head);
            let place = self.shape.block(segment, within);
            let mut block = ahead.read(&mut self.device, place, self.shape.left(place))?;
            let Some((header, chain)) = GroupHeader::decode(&mut block, self.id) else { continue };
            let is_chained = header.chain == position.chain || planted(PlantedBug::NoChain);
            let is_next = is_chained && header.sequence == position.sequence + 1;
            if is_next && header.fits(self.shape) {
                return Ok(self.found(header, position, chain));
            }
        }
        Ok(None)
    }

    /// The group of a header, if its parts are where the streams go on.
    fn found(&self, header: GroupHeader, position: LogPosition, chain: u32) -> Option<FoundGroup> {
        let mut after = LogPosition { sequence: header.sequence, chain, ..position };
        for (n, (stream, part)) in header.parts().enumerate() {
            let head = &mut after.heads[stream.index()];
            let (segment, within) = self.part_place(*head);
            if self.shape.block(segment, within) != part.block {
                return None;
            }
            let within = Within(within.0 + 1 + header.data(stream));
            if n == 0 || !planted(PlantedBug::OnePartGoesOn) {
                *head = Head { segment, within, next: part.next };
            }
        }
        Some(FoundGroup { header, after })
    }

    /// The log seems to end here. It does not if a group further on, in the segments that the streams
    /// are in or go on in, says that the one which should be here was flushed, or the superblock does.
    fn refuse_damage(&mut self, end: LogPosition) -> Result<(), LayerError> {
        let missing = end.sequence + 1;
        if missing <= self.safe.durable && !planted(PlantedBug::EndForgotten) {
            return Err(LayerError::LogDamaged { sequence: missing });
        }
        let streams = if planted(PlantedBug::DamageInOneStream) { 1 } else { end.heads.len() };
        let mut ahead = ReadAhead::default();
        for head in &end.heads[..streams] {
            let (segment, within) = self.part_place(*head);
            let here = (within.0..self.shape.segment).map(|within| (segment, Within(within)));
            let next = (0..self.shape.segment).map(|within| (head.next, Within(within)));
            for (segment, within) in here.chain(next) {
                let place = self.shape.block(segment, within);
                let mut block = ahead.read(&mut self.device, place, self.shape.left(place))?;
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
        }
        Ok(())
    }

    /// Whether all parts of a group are on the device: their headers, and their data but for a bit that
    /// flipped, which a read reports.
    fn is_whole(&mut self, group: &GroupHeader) -> Result<bool, LayerError> {
        for (n, (stream, part)) in group.parts().enumerate() {
            let mut bytes = vec![0; (1 + group.data(stream) as usize) * BLOCK_LEN];
            self.device.read(part.block.offset(), &mut bytes)?;
            let (header, data) = bytes.split_at_mut(BLOCK_LEN);
            let header = GroupHeader::decode(header, self.id);
            let is_same = header.is_some_and(|(header, _)| header == *group);
            if !is_same && !planted(PlantedBug::PartWithoutHeader) {
                return Ok(false);
            }
            for (block, (_, sum)) in data.chunks(BLOCK_LEN).zip(group.writes(stream)) {
                let is_torn = sum.difference(block) == Difference::Other;
                if is_torn && (n == 0 || !planted(PlantedBug::OnePartChecked)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn apply(&mut self, FoundGroup { header: group, after }: FoundGroup) {
        let mut blocks = group.parts.map(|part| part.block);
        let mut entries = group.entries;
        self.recovered.groups += 1;
        self.recovered.changes += entries.len() as u64;
        if planted(PlantedBug::StreamByStream) {
            entries.sort_by_key(|entry| match *entry {
                LogEntry::Write(.., stream) => stream,
                LogEntry::Trim(..) => LogStream::SHORT,
            });
        }
        for entry in entries {
            match entry {
                LogEntry::Write(at, sum, stream) => {
                    let block = &mut blocks[stream.index()];
                    block.0 += 1;
                    self.place(at, BlockPlace { block: *block, crc: sum.crc });
                }
                LogEntry::Trim(first, run) => {
                    for at in (first.0..first.0 + run).map(Logical) {
                        self.place(at, BlockPlace::default());
                    }
                }
            }
        }
        self.position = after;
    }
}

/// Whether a volume of this version is on a device, as far as its superblocks tell.
pub fn is_volume<D: BlockDevice>(device: &mut D) -> Result<(), LayerError> {
    newest(device).map(drop)
}

/// The superblock of the newest checkpoint.
fn newest<D: BlockDevice>(device: &mut D) -> Result<Superblock, LayerError> {
    if device.size() < Bytes::new(2 * BLOCK.get()) {
        return Err(LayerError::NoVolume);
    }
    let (mut found, mut unread): (Vec<Superblock>, _) = (Vec::new(), None);
    for at in SUPERBLOCKS {
        let mut block = [0; BLOCK_LEN];
        // The other may be readable.
        if let Err(error) = device.read(at, &mut block) {
            unread = Some(error);
            continue;
        }
        match Superblock::decode(&mut block) {
            None => {}
            Some(Ok(superblock)) => found.push(superblock),
            Some(Err(seen)) => return Err(LayerError::Version { seen, wanted: VERSION }),
        }
    }
    let newest = found.into_iter().max_by_key(|superblock| superblock.generation);
    newest.ok_or(unread.map_or(LayerError::NoVolume, LayerError::Device))
}
