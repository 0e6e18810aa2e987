//! A volume: reads, writes, and the log that they become.

use units::{ByteOffset, Bytes};

use crate::checksum::Checksum;
use crate::device::{BlockDevice, BlockError};
use crate::error::LayerError;
use crate::format::{GroupHeader, GroupPart, Head, LogEntry, LogPosition};
use crate::map::{BlockMap, BlockPlace};
use crate::planted::{PlantedBug, planted};
use crate::segments::{Batch, SafeUpTo, SegmentTable, SegmentUse};
use crate::shape::{
    GROUP_ENTRIES, LogStream, Logical, Physical, STREAMS, SegmentNumber, VolumeId, VolumeShape,
    Within,
};
use crate::underway::Underway;
use crate::worth::LiveShare;
use crate::{BLOCK, BLOCK_LEN};

/// Length of a segment that flash of every kind likes to have written at once.
pub const SEGMENT: Bytes = Bytes::mib(2);

/// How a volume is made.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// What it offers.
    pub logical: Bytes,
    /// Length of a segment: a multiple of what the device likes to have written at once.
    pub segment: Bytes,
    /// Drawn at random by the caller.
    pub id: VolumeId,
}

impl CreateOptions {
    /// The smallest device on which the volume fills this share of what the collector can choose from.
    /// A share of 0 counts as one that is hardly above.
    pub fn device_size(&self, live: LiveShare) -> Bytes {
        VolumeShape::for_share(self.logical, self.segment, live).device_size()
    }

    /// The most that a volume can offer on a device of this size at this fill, to a MiB.
    pub fn largest(there: Bytes, live: LiveShare) -> Bytes {
        let of = |logical| Self { logical, segment: SEGMENT, id: VolumeId(0) };
        let (mut low, mut high) = (0, there.get() >> 20);
        while low < high {
            let middle = (low + high).div_ceil(2);
            match of(Bytes::mib(middle)).device_size(live) <= there {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        Bytes::mib(low)
    }
}

/// What a volume has written since it was opened, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// By the caller.
    pub written: u64,
    /// By the collector: live blocks of victims.
    pub copied: u64,
    /// Group headers.
    pub headers: u64,
    /// Checkpoints, in number.
    pub checkpoints: u64,
}

/// What opening a volume brought to light.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Groups of the log that were newer than the checkpoint.
    pub groups: u64,
    /// Their writes and trims.
    pub changes: u64,
}

/// A volume of 4 KiB blocks on a device. See the crate for what it guarantees.
#[derive(Debug)]
pub struct LogVolume<D> {
    pub(crate) device: D,
    pub(crate) id: VolumeId,
    pub(crate) shape: VolumeShape,
    pub(crate) generation: u64,
    pub(crate) map: BlockMap,
    pub(crate) segments: SegmentTable,
    pub(crate) position: LogPosition,
    pub(crate) group: OpenGroup,
    pub(crate) safe: SafeUpTo,
    pub(crate) underway: Option<Underway>,
    /// The last group before which the log says that all is durable, and which holds nothing itself.
    pub(crate) settled: u64,
    /// Segments that the log has entered since the checkpoint in force began.
    pub(crate) log_segments: u32,
    pub(crate) failure: Option<BlockError>,
    pub(crate) counts: LogCounts,
    pub(crate) recovered: Recovered,
    /// Room for the live blocks of a victim's group.
    pub(crate) copies: Vec<u8>,
    pub(crate) batch: Batch,
}

/// The group that is not on the device yet. Its blocks have their places already: the map needs
/// no second kind of place, and a read looks here first.
///
/// It has a part in each stream, and is written as a whole: so its entries are in the order of the
/// writes, and a write in one stream cannot outlive an earlier one in another.
#[derive(Debug)]
pub(crate) struct OpenGroup {
    parts: [OpenPart; STREAMS],
    entries: Vec<LogEntry>,
}

#[derive(Debug)]
struct OpenPart {
    /// A block for the header, then the data.
    buffer: Vec<u8>,
    data: u32,
}

impl OpenGroup {
    pub fn new(shape: VolumeShape) -> Self {
        let blocks = GROUP_ENTRIES.min(shape.segment as usize - 1) + 1;
        let part = |_| OpenPart { buffer: vec![0; blocks * BLOCK_LEN], data: 0 };
        Self { parts: std::array::from_fn(part), entries: Vec::new() }
    }

    fn data(&self, stream: LogStream) -> u32 {
        self.parts[stream.index()].data
    }

    /// Whether it has a part in a stream. Trims alone have one in the first.
    fn is_in(&self, stream: LogStream) -> bool {
        let is_bare = || self.parts.iter().all(|part| part.data == 0);
        self.data(stream) > 0 || stream == LogStream::SHORT && is_bare()
    }
}

impl<D> LogVolume<D> {
    /// The same volume by way of another handle of its device.
    pub fn on<E>(self, device: E) -> LogVolume<E> {
        LogVolume {
            device,
            id: self.id,
            shape: self.shape,
            generation: self.generation,
            map: self.map,
            segments: self.segments,
            position: self.position,
            group: self.group,
            safe: self.safe,
            underway: self.underway,
            settled: self.settled,
            log_segments: self.log_segments,
            failure: self.failure,
            counts: self.counts,
            recovered: self.recovered,
            copies: self.copies,
            batch: self.batch,
        }
    }
}

impl<D: BlockDevice> LogVolume<D> {
    /// Reads blocks. What was never written, or trimmed, reads as zeroes.
    ///
    /// * Errors: a block whose data are not what was written is [`LayerError::BlockDamaged`].
    pub fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), LayerError> {
        let mut next = self.first_block(at, Bytes::new(into.len() as u64))?;
        let mut rest = into;
        while !rest.is_empty() {
            let run = self.run_at(next, rest.len() / BLOCK_LEN);
            let (bytes, behind) = rest.split_at_mut(run * BLOCK_LEN);
            self.read_run(next, bytes)?;
            (rest, next) = (behind, Logical(next.0 + run as u32));
        }
        Ok(())
    }

    /// How many blocks from `first` on lie one behind the other on the device, at most `most`.
    fn run_at(&self, first: Logical, most: usize) -> usize {
        let start = self.map.get(first).block;
        if start == Physical::NONE || self.buffered(start).is_some() {
            return 1;
        }
        let follows = |&n: &usize| {
            let block = self.map.get(Logical(first.0 + n as u32)).block;
            block.0 == start.0 + n as u32 && self.buffered(block).is_none()
        };
        1 + (1..most).take_while(follows).count()
    }

    fn read_run(&mut self, first: Logical, into: &mut [u8]) -> Result<(), LayerError> {
        let start = self.map.get(first).block;
        if start == Physical::NONE {
            into.fill(0);
            return Ok(());
        }
        match self.buffered(start) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => self.device.read(start.offset(), into)?,
        }
        for (at, block) in (first.0..).map(Logical).zip(into.chunks(BLOCK_LEN)) {
            let is_right = crc32fast::hash(block) == self.map.get(at).crc;
            if !is_right && !planted(PlantedBug::NoReadCheck) {
                return Err(LayerError::BlockDamaged { at: at.offset() });
            }
        }
        Ok(())
    }

    /// The data of a block that is still in the open group.
    pub(crate) fn buffered(&self, block: Physical) -> Option<&[u8]> {
        LogStream::all().zip(&self.group.parts).find_map(|(stream, part)| {
            let slot = block.0.checked_sub(self.slot_block(stream).0 - part.data)?;
            let start = (slot as usize + 1) * BLOCK_LEN;
            (slot < part.data).then(|| &part.buffer[start..start + BLOCK_LEN])
        })
    }

    /// Where the next data block of the open group in a stream goes.
    fn slot_block(&self, stream: LogStream) -> Physical {
        Physical(self.part_block(stream).0 + 1 + self.group.data(stream))
    }

    /// Where the header of the open group in a stream goes.
    fn part_block(&self, stream: LogStream) -> Physical {
        let head = self.position.heads[stream.index()];
        self.shape.block(head.segment, head.within)
    }

    /// Where on the device the blocks of a request lie, if they lie there one behind the other: for who
    /// reads them there himself. Until they have been held against [`Self::is_as_written`], a write may
    /// move them and something else be written there.
    pub fn place_of(&self, at: ByteOffset, length: Bytes) -> Option<ByteOffset> {
        let first = self.first_block(at, length).ok()?;
        let blocks = (length.get() / BLOCK.get()) as usize;
        if blocks == 0 {
            return None;
        }
        let start = self.map.get(first).block;
        let is_there = start != Physical::NONE && self.buffered(start).is_none();
        (is_there && self.run_at(first, blocks) == blocks).then(|| start.offset())
    }

    /// Whether these are the data of the blocks from `at` on.
    pub fn is_as_written(&self, at: ByteOffset, data: &[u8]) -> bool {
        let Ok(first) = self.first_block(at, Bytes::new(data.len() as u64)) else { return false };
        let blocks = (first.0..).map(Logical).zip(data.chunks(BLOCK_LEN));
        blocks.into_iter().all(|(at, block)| crc32fast::hash(block) == self.map.get(at).crc)
    }

    /// Writes blocks. They are safe once [`Self::flush`] has returned; until then a crash may lose
    /// them, the last first.
    pub fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), LayerError> {
        let first = self.first_block(at, Bytes::new(from.len() as u64))?;
        for (at, block) in (first.0..).map(Logical).zip(from.chunks(BLOCK_LEN)) {
            self.make_room()?;
            let stream = self.segments.stream_over(self.map.get(at).block);
            self.append(stream, at, block, Checksum::of(block))?;
            self.counts.written += 1;
        }
        Ok(())
    }

    /// Lets blocks read as zeroes, and frees their room.
    pub fn trim(&mut self, at: ByteOffset, length: Bytes) -> Result<(), LayerError> {
        let first = self.first_block(at, length)?;
        let run = (length.get() / BLOCK.get()) as u32;
        if run == 0 {
            return self.writable();
        }
        self.make_room()?;
        self.prepare(LogStream::SHORT)?;
        if !planted(PlantedBug::TrimInMemory) {
            self.group.entries.push(LogEntry::Trim(first, run));
        }
        for at in (first.0..first.0 + run).map(Logical) {
            self.place(at, BlockPlace::default());
        }
        Ok(())
    }

    /// Makes durable all that was written and trimmed before.
    ///
    /// * Errors: after a failed flush the volume only reads. What is durable is then unknown, and
    ///   a second flush that succeeds would say nothing about it.
    pub fn flush(&mut self) -> Result<(), LayerError> {
        self.writable()?;
        self.barrier()
    }

    /// Makes all durable, and has the log itself say so. Until it does, the groups that were flushed last look
    /// like torn ones if more than a bit of them decays. For when nobody writes: does nothing the second time.
    pub fn settle(&mut self) -> Result<(), LayerError> {
        self.flush()?;
        if self.settled < self.position.sequence {
            self.make_room()?;
            self.prepare(LogStream::SHORT)?;
            // A group that changes nothing, for the sake of its header.
            self.group.entries.push(LogEntry::Trim(Logical(0), 0));
            self.barrier()?;
            self.settled = self.position.sequence;
        }
        Ok(())
    }

    /// Writes a checkpoint, so that the next opening has nothing to recover, and returns the device.
    pub fn close(mut self) -> Result<D, LayerError> {
        self.writable()?;
        self.checkpoint()?;
        Ok(self.device)
    }

    /// The length that it offers.
    pub fn size(&self) -> Bytes {
        self.shape.size()
    }

    /// What was written since it was opened.
    pub fn counts(&self) -> LogCounts {
        self.counts
    }

    /// What opening it brought to light.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// The device below.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device below, to read from where [`Self::place_of`] says.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Memory for its map, tables and buffers; the device's own not counted.
    pub fn memory(&self) -> Bytes {
        let parts: usize = self.group.parts.iter().map(|part| part.buffer.capacity()).sum();
        let buffers = parts + self.copies.capacity();
        Bytes::new((self.map.memory() + self.segments.memory() + buffers) as u64)
    }

    /// The first block of a request that is made of whole blocks within the volume.
    fn first_block(&self, at: ByteOffset, length: Bytes) -> Result<Logical, LayerError> {
        if !Bytes::new(at.get() | length.get()).is_multiple_of(BLOCK) {
            return Err(LayerError::Unaligned { at, length });
        }
        let size = self.size();
        match at.get().checked_add(length.get()) {
            Some(end) if end <= size.get() => Ok(Logical((at.get() / BLOCK.get()) as u32)),
            _ => Err(LayerError::OutOfRange { at, length, size }),
        }
    }

    pub(crate) fn writable(&self) -> Result<(), LayerError> {
        match self.failure.clone() {
            Some(cause) => Err(LayerError::ReadOnly { cause }),
            None => Ok(()),
        }
    }

    /// Remembers a failure for ever: nothing is written after it.
    pub(crate) fn stick<T>(&mut self, result: Result<T, BlockError>) -> Result<T, LayerError> {
        result.map_err(|cause| {
            if !planted(PlantedBug::FailureForgotten) {
                self.failure = Some(cause.clone());
            }
            LayerError::Device(cause)
        })
    }

    /// Puts a block at the end of the log. [`Self::make_room`] comes first, unless it is a copy.
    pub(crate) fn append(
        &mut self,
        stream: LogStream,
        at: Logical,
        data: &[u8],
        sum: Checksum,
    ) -> Result<(), LayerError> {
        self.prepare(stream)?;
        let place = BlockPlace { block: self.slot_block(stream), crc: sum.crc };
        let part = &mut self.group.parts[stream.index()];
        let start = (part.data as usize + 1) * BLOCK_LEN;
        part.buffer[start..start + BLOCK_LEN].copy_from_slice(data);
        part.data += 1;
        self.group.entries.push(LogEntry::Write(at, sum, stream));
        self.place(at, place);
        Ok(())
    }

    /// Moves a block in the map; the open group holds the change.
    pub(crate) fn place(&mut self, at: Logical, place: BlockPlace) {
        let before = self.map.set(at, place);
        self.segments.add(place.block);
        self.segments.remove(before.block, self.position.sequence + 1);
    }

    /// Makes room for one more entry with data in a stream of the open group.
    fn prepare(&mut self, stream: LogStream) -> Result<(), LayerError> {
        let left = self.shape.segment - self.position.heads[stream.index()].within.0;
        let is_full = self.group.data(stream) + 1 >= left;
        if is_full || self.group.entries.len() >= GROUP_ENTRIES {
            self.write_group()?;
        }
        // A group needs two blocks. Recovery goes by the same rule.
        if self.shape.segment - self.position.heads[stream.index()].within.0 < 2 {
            self.next_segment(stream)?;
        }
        Ok(())
    }

    /// Lets a stream go on in its next segment. Nothing may be in the open group: what died in the
    /// segment that it leaves must have died by a group with a number.
    fn next_segment(&mut self, stream: LogStream) -> Result<(), LayerError> {
        let next = self.segments.open().ok_or(LayerError::NoRoom)?;
        let head = &mut self.position.heads[stream.index()];
        self.segments.fill(head.segment, self.position.sequence);
        *head = Head { segment: head.next, within: Within(0), next };
        self.segments.enter(head.segment, stream);
        self.log_segments += 1;
        Ok(())
    }

    /// Writes the open group, if there is anything in it, and what of a checkpoint follows it.
    pub(crate) fn write_group(&mut self) -> Result<(), LayerError> {
        if self.group.entries.is_empty() {
            return Ok(());
        }
        let mut parts = [GroupPart { block: Physical::NONE, next: SegmentNumber(0) }; STREAMS];
        for stream in LogStream::all().filter(|&stream| self.group.is_in(stream)) {
            let next = self.position.heads[stream.index()].next;
            parts[stream.index()] = GroupPart { block: self.part_block(stream), next };
        }
        let is_early = planted(PlantedBug::DurableTooEarly);
        let header = GroupHeader {
            volume: self.id,
            sequence: self.position.sequence + 1,
            durable: self.safe.durable + u64::from(is_early),
            chain: self.position.chain,
            parts,
            entries: std::mem::take(&mut self.group.entries),
        };
        let mut block = [0; BLOCK_LEN];
        let chain = header.encode(&mut block);
        let mut written = Ok(());
        for (stream, place) in header.parts() {
            let part = &mut self.group.parts[stream.index()];
            part.buffer[..BLOCK_LEN].copy_from_slice(&block);
            let bytes = &part.buffer[..(part.data as usize + 1) * BLOCK_LEN];
            written = written.and_then(|()| self.device.write(place.block.offset(), bytes));
        }
        self.group.entries = header.entries;
        self.stick(written)?;
        // Only now, all at once: after a failure the blocks are read from memory.
        let parts = self.group.parts.iter_mut().zip(header.parts);
        for (head, (part, place)) in self.position.heads.iter_mut().zip(parts) {
            if place.block != Physical::NONE {
                head.within.0 += 1 + std::mem::take(&mut part.data);
                self.counts.headers += 1;
            }
        }
        self.group.entries.clear();
        self.position.sequence += 1;
        self.position.chain = chain;
        self.pace_checkpoint()
    }

    /// Makes the log durable, and clean what that frees.
    pub(crate) fn barrier(&mut self) -> Result<(), LayerError> {
        if !planted(PlantedBug::FlushWithoutGroup) {
            self.write_group()?;
        }
        if self.safe.durable < self.position.sequence {
            if !planted(PlantedBug::FlushWithoutDevice) {
                let flushed = self.device.flush();
                self.stick(flushed)?;
            }
            self.safe.durable = self.position.sequence;
        }
        self.release()
    }

    pub(crate) fn release(&mut self) -> Result<(), LayerError> {
        let length = Bytes::new(u64::from(self.shape.segment) * BLOCK.get());
        for segment in self.segments.release(self.safe) {
            let at = self.shape.block(segment, Within(0)).offset();
            let trimmed = self.device.trim(at, length);
            self.stick(trimmed)?;
        }
        Ok(())
    }

    /// Compares the map with the table of segments: each block has a place of its own in a segment
    /// in use, and live blocks are counted right. Returns what does not agree.
    pub fn audit(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut blocks: Vec<Physical> =
            self.map.iter().map(|place| place.block).filter(|&b| b != Physical::NONE).collect();
        blocks.sort_unstable();
        for pair in blocks.windows(2).filter(|pair| pair[0] == pair[1]) {
            faults.push(format!("two logical blocks are at {:?}", pair[0]));
        }
        for segment in (0..self.shape.segments).map(SegmentNumber) {
            let first = self.shape.block(segment, Within(0));
            let end = Physical(first.0 + self.shape.segment);
            let live =
                blocks.partition_point(|&b| b < end) - blocks.partition_point(|&b| b < first);
            let counted = self.segments.live(segment);
            if live != counted as usize {
                faults.push(format!("{segment:?} has {live} live blocks, counted {counted}"));
            }
            let used = self.segments.used(segment);
            if live > 0 && matches!(used, SegmentUse::Clean | SegmentUse::Dead) {
                faults.push(format!("{segment:?} has {live} live blocks and is {used:?}"));
            }
        }
        faults
    }
}
