//! The collector: copies what is live out of the segments that are worth it most.
//!
//! Copies go to the end of the log like writes, so their order needs no thought. They have streams of
//! their own: what has outlived others is not mixed with what is written now.

use crate::checksum::Checksum;
use crate::device::{BlockDevice, ReadPart};
use crate::error::LayerError;
use crate::format::GroupHeader;
use crate::planted::{PlantedBug, planted};
use crate::shape::{LogStream, Logical, Physical, SegmentNumber, Within};
use crate::volume::LogVolume;
use crate::{BLOCK_LEN, GAP, shape};

impl<D: BlockDevice> LogVolume<D> {
    /// Empties one segment, if one is worth it; for idle time. Returns whether it did.
    pub fn collect(&mut self) -> Result<bool, LayerError> {
        self.make_room()?;
        let live_max = self.shape.victim_live_max();
        let victims = self.segments.victims(1, live_max, self.safe.checkpoint);
        for &victim in &victims {
            self.evacuate(victim)?;
        }
        self.barrier()?;
        Ok(!victims.is_empty())
    }

    /// Makes sure that a write finds room and leaves enough for the collector.
    ///
    /// It cannot come to a stop: the logical size is such that a victim always exists once a
    /// checkpoint covers all segments, and the copies of a batch fit into the reserve.
    pub(crate) fn make_room(&mut self) -> Result<(), LayerError> {
        self.writable()?;
        if self.log_segments >= self.shape.log_max() {
            self.checkpoint()?;
        }
        let low = if planted(PlantedBug::NoReserve) { 0 } else { self.shape.low() };
        while self.segments.clean() < low {
            if self.segments.waits_for_flush(self.safe.checkpoint) {
                match planted(PlantedBug::FreeBeforeFlush) {
                    true => self.release()?,
                    false => self.barrier()?,
                }
                continue;
            }
            let (count, live_max) = (self.shape.batch(), self.shape.victim_live_max());
            let victims = self.segments.victims(count, live_max, self.safe.checkpoint);
            if victims.is_empty() {
                if self.safe.checkpoint == self.position.sequence {
                    return Err(LayerError::NoRoom);
                }
                self.checkpoint()?;
            }
            for victim in victims {
                self.evacuate(victim)?;
            }
        }
        Ok(())
    }

    /// Copies the live blocks of a segment to the end of the log. One that cannot be read stays as it
    /// is: its blocks may still be read one by one, and the error belongs to who reads them.
    fn evacuate(&mut self, victim: SegmentNumber) -> Result<(), LayerError> {
        let mut within = Within(0);
        while self.segments.live(victim) > 0 && self.shape.segment - within.0 >= 2 {
            let Some((header, stream)) = self.header_at(victim, within) else { break };
            let data = self.shape.block(victim, Within(within.0 + 1));
            if !self.copy_live(&header, stream, data)? {
                break;
            }
            within.0 += 1 + header.data(stream);
        }
        if self.segments.live(victim) > 0 {
            self.segments.set_unreadable(victim);
        }
        Ok(())
    }

    /// The group that has a part here, and in which stream.
    pub(crate) fn header_at(
        &mut self,
        segment: SegmentNumber,
        within: Within,
    ) -> Option<(GroupHeader, LogStream)> {
        let mut bytes = [0; BLOCK_LEN];
        let block = self.shape.block(segment, within);
        self.device.read(block.offset(), &mut bytes).ok()?;
        let (header, _) = GroupHeader::decode(&mut bytes, self.id)?;
        let (stream, _) = header.parts().find(|(_, part)| part.block == block)?;
        header.fits(self.shape).then_some((header, stream))
    }

    /// Copies those blocks of a group that the map still names. `false` if one cannot be read.
    fn copy_live(
        &mut self,
        header: &GroupHeader,
        stream: LogStream,
        data: Physical,
    ) -> Result<bool, LayerError> {
        let live: Vec<(Physical, Logical)> = (data.0..)
            .map(Physical)
            .zip(header.writes(stream).map(|(at, _)| at))
            .filter(|&(block, at)| {
                self.map.get(at).block == block || planted(PlantedBug::CopyOfDead)
            })
            .collect();
        // Each block at its place in the group.
        let mut bytes = std::mem::take(&mut self.copies);
        bytes.resize(shape::GROUP_ENTRIES * BLOCK_LEN, 0);
        let (mut left, mut next) = (bytes.as_mut_slice(), data.0);
        let mut parts = Vec::new();
        for span in live.chunk_by(|a, b| b.0.0 - a.0.0 <= 1 + GAP) {
            let (Some(&(first, _)), Some(&(last, _))) = (span.first(), span.last()) else {
                continue;
            };
            let behind = left.split_at_mut((first.0 - next) as usize * BLOCK_LEN).1;
            let (into, behind) = behind.split_at_mut((last.0 + 1 - first.0) as usize * BLOCK_LEN);
            parts.push(ReadPart { at: first.offset(), into });
            (left, next) = (behind, last.0 + 1);
        }
        let into = self.segments.stream_of_copies(stream);
        let mut is_read = true;
        if self.device.read_each(&mut parts).is_err() {
            // What can be read is copied nevertheless.
            for part in &mut parts {
                if self.device.read(part.at, part.into).is_err() {
                    is_read = false;
                    part.into.fill(0);
                }
            }
        }
        for &(block, at) in &live {
            let start = (block.0 - data.0) as usize * BLOCK_LEN;
            let block = &bytes[start..start + BLOCK_LEN];
            let sum = Checksum::of(block);
            let is_right = sum.crc == self.map.get(at).crc;
            if is_right || planted(PlantedBug::CopyOfDead) {
                self.append(into, at, block, sum)?;
                self.counts.copied += 1;
            }
            is_read &= is_right;
        }
        self.copies = bytes;
        Ok(is_read)
    }
}
