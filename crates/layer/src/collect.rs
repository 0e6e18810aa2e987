//! The collector: copies what is live out of the segments that are worth it most.
//!
//! Copies go to the end of the log like writes, so their order needs no thought. They have streams of
//! their own: what has outlived others is not mixed with what is written now.

use crate::checksum::Checksum;
use crate::device::{BlockDevice, ReadPart};
use crate::error::LayerError;
use crate::format::GroupHeader;
use crate::planted::{PlantedBug, planted};
use crate::segments::{Batch, SegmentUse, Victim};
use crate::shape::{LogStream, Logical, Physical, SegmentNumber, Within};
use crate::volume::LogVolume;
use crate::{BLOCK_LEN, GAP, shape};

/// Copying is ahead of what the room takes: the last victim is emptied before it is needed.
const AHEAD: f64 = 1.1;

impl<D: BlockDevice> LogVolume<D> {
    /// Empties one segment, if one is worth it; for idle time. Returns whether it did.
    pub fn collect(&mut self) -> Result<bool, LayerError> {
        self.make_room()?;
        self.end_batch()?;
        let live_max = self.shape.victim_live_max();
        let victims = self.segments.victims(1, live_max, self.safe.checkpoint);
        self.begin_batch(&victims);
        self.end_batch()?;
        self.barrier()?;
        Ok(!victims.is_empty())
    }

    /// Makes sure that a write finds room and leaves enough for the collector, which keeps pace with the
    /// writes: each waits for a part of a victim at most, and for a flush once in a batch.
    ///
    /// It cannot come to a stop: the logical size is such that a victim always exists once a
    /// checkpoint covers all segments, and the copies of a batch fit into the reserve.
    pub(crate) fn make_room(&mut self) -> Result<(), LayerError> {
        self.writable()?;
        let is_reserved = !planted(PlantedBug::NoReserve);
        let low = if is_reserved { self.shape.low() } else { 0 };
        let spare = low.saturating_sub(self.shape.batch());
        loop {
            let clean = self.segments.clean();
            if self.batch.victims.is_empty() {
                if clean >= low {
                    return Ok(());
                }
                self.fill_batch(clean.saturating_sub(spare))?;
            } else if clean < spare + self.batch.victims.len() {
                self.empty_part()?;
            } else {
                break;
            }
        }
        self.batch.owed += self.batch.pace;
        while self.batch.owed >= 1.0 && !self.batch.victims.is_empty() {
            self.empty_part()?;
        }
        Ok(())
    }

    /// Frees what a flush can free, else chooses victims.
    ///
    /// * `most`: for which there is room, one at least.
    fn fill_batch(&mut self, most: usize) -> Result<(), LayerError> {
        if self.segments.waits_for_flush(self.safe.checkpoint) {
            return match planted(PlantedBug::FreeBeforeFlush) {
                true => self.release(),
                false => self.barrier(),
            };
        }
        let count = most.clamp(1, self.shape.batch());
        let live_max = self.shape.victim_live_max();
        let victims = self.segments.victims(count, live_max, self.safe.checkpoint);
        if victims.is_empty() {
            return match self.underway {
                Some(_) => self.finish_checkpoint(),
                None if self.safe.checkpoint == self.position.sequence => Err(LayerError::NoRoom),
                None => self.checkpoint(),
            };
        }
        self.begin_batch(&victims);
        Ok(())
    }

    fn begin_batch(&mut self, victims: &[SegmentNumber]) {
        let segments = &self.segments;
        let live: u32 = victims.iter().map(|&segment| segments.live(segment)).sum();
        let room = self.shape.segment * victims.len() as u32;
        let victim =
            |&segment| Victim { segment, entered: segments.entered(segment), within: Within(0) };
        self.batch = Batch {
            victims: victims.iter().map(victim).collect(),
            pace: AHEAD * f64::from(live) / f64::from(room.saturating_sub(live).max(1)),
            owed: 0.0,
        };
    }

    fn end_batch(&mut self) -> Result<(), LayerError> {
        while !self.batch.victims.is_empty() {
            self.empty_part()?;
        }
        Ok(())
    }

    /// Copies the live blocks of a group's part in the first victim to the end of the log. A victim that
    /// cannot be read stays as it is: its blocks may still be read one by one, and the error belongs to who
    /// reads them.
    fn empty_part(&mut self) -> Result<(), LayerError> {
        let Some(victim) = self.batch.victims.pop_front() else { return Ok(()) };
        let Victim { segment, entered, within } = victim;
        let is_it = self.segments.used(segment) == SegmentUse::Full
            && self.segments.entered(segment) == entered;
        if !is_it {
            return Ok(());
        }
        let before = self.counts.copied;
        let mut copied = None;
        if self.shape.segment - within.0 >= 2
            && let Some((header, stream)) = self.header_at(segment, within)
        {
            let data = self.shape.block(segment, Within(within.0 + 1));
            let is_read = self.copy_live(&header, stream, data)?;
            copied = is_read.then(|| Within(within.0 + 1 + header.data(stream)));
        }
        self.batch.owed -= (self.counts.copied - before) as f64;
        match copied {
            _ if self.segments.live(segment) == 0 => {}
            Some(within) => self.batch.victims.push_front(Victim { within, ..victim }),
            None => self.segments.set_unreadable(segment),
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
