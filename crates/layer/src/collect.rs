//! The collector: copies what is live out of the emptiest segments.
//!
//! Greedy: the victim with the fewest live blocks first, which is the best choice for writes that
//! have no memory. Copies go to the end of the log like writes, so their order needs no thought.

use crate::checksum::Checksum;
use crate::device::BlockDevice;
use crate::error::LayerError;
use crate::format::GroupHeader;
use crate::planted::{PlantedBug, planted};
use crate::recover::writes;
use crate::shape::{Logical, Physical, SegmentNumber, Within};
use crate::volume::LogVolume;
use crate::{BLOCK_LEN, shape};

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
            let Some(header) = self.header_at(victim, within) else { break };
            let data = self.shape.block(victim, Within(within.0 + 1));
            if !self.copy_live(&header, data)? {
                break;
            }
            within.0 += 1 + header.data();
        }
        if self.segments.live(victim) > 0 {
            self.segments.set_unreadable(victim);
        }
        Ok(())
    }

    fn header_at(&mut self, segment: SegmentNumber, within: Within) -> Option<GroupHeader> {
        let mut bytes = [0; BLOCK_LEN];
        self.device.read(self.shape.block(segment, within).offset(), &mut bytes).ok()?;
        let (header, _) = GroupHeader::decode(&mut bytes, self.id)?;
        header.fits(self.shape, within).then_some(header)
    }

    /// Copies those blocks of a group that the map still names. `false` if one cannot be read.
    fn copy_live(&mut self, header: &GroupHeader, data: Physical) -> Result<bool, LayerError> {
        let live: Vec<(Physical, Logical)> = (data.0..)
            .map(Physical)
            .zip(writes(header).map(|(at, _)| at))
            .filter(|&(block, at)| {
                self.map.get(at).block == block || planted(PlantedBug::CopyOfDead)
            })
            .collect();
        let mut bytes = std::mem::take(&mut self.copies);
        bytes.resize(shape::GROUP_ENTRIES * BLOCK_LEN, 0);
        let mut is_read = true;
        for run in live.chunk_by(|a, b| a.0.0 + 1 == b.0.0) {
            let bytes = &mut bytes[..run.len() * BLOCK_LEN];
            is_read &= self.copy_run(run, bytes)?;
        }
        self.copies = bytes;
        Ok(is_read)
    }

    fn copy_run(
        &mut self,
        run: &[(Physical, Logical)],
        bytes: &mut [u8],
    ) -> Result<bool, LayerError> {
        let Some(&(first, _)) = run.first() else { return Ok(true) };
        if self.device.read(first.offset(), bytes).is_err() {
            return Ok(false);
        }
        let mut is_read = true;
        for (&(_, at), block) in run.iter().zip(bytes.chunks(BLOCK_LEN)) {
            let sum = Checksum::of(block);
            let is_right = sum.crc == self.map.get(at).crc;
            if is_right || planted(PlantedBug::CopyOfDead) {
                self.append(at, block, sum)?;
                self.counts.copied += 1;
            }
            is_read &= is_right;
        }
        Ok(is_read)
    }
}
