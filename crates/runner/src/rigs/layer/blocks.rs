//! What a volume lives on, by way of the seam: files behind a back end, or a simulated device.

use device::{Completion, Device, DeviceError, Errno, FileIndex, Full, Op, Request, Slot};
use layer::{BlockAction, BlockDevice, BlockError, ReadPart};
use units::{ByteOffset, Bytes, Instant};

/// What is read or written with one request at most: a whole group.
pub(super) const PIECE: usize = 1 << 20;
/// Slots of the volume's writes.
const WRITES: u32 = 4;
/// Slots of the volume's own reads, which are the collector's.
const READS: u32 = 8;
/// Slots before those of the user's reads.
pub(super) const OWN_SLOTS: u32 = WRITES + READS;

/// A device of blocks with a volatile cache: what is written is on its way when a write returns, and an error
/// of it is that of a later write or flush. The volume's reads wait, those of the user do not.
pub(super) struct SeamBlocks<'a> {
    device: &'a mut dyn Device,
    /// What is on a simulated device, which keeps no data itself.
    held: Option<&'a mut [u8]>,
    size: Bytes,
    /// By slot: writes in flight, from where to where; a flush is nowhere.
    writes: [Option<[u64; 2]>; WRITES as usize],
    /// Why a write failed.
    failed: Option<String>,
    /// By slot, of the reads that are done.
    moved: [Option<Result<u32, Errno>>; READS as usize],
    arrived: Vec<Completion>,
    /// Reads of the user that are done.
    done: Vec<Completion>,
}

impl<'a> SeamBlocks<'a> {
    /// * `slots`: reads of the user that are in flight together.
    pub fn new(
        device: &'a mut dyn Device,
        held: Option<&'a mut [u8]>,
        (size, slots): (Bytes, u32),
    ) -> Self {
        let room = (slots + OWN_SLOTS) as usize;
        Self {
            device,
            held,
            size,
            writes: [None; WRITES as usize],
            failed: None,
            moved: [None; READS as usize],
            arrived: Vec::with_capacity(room),
            done: Vec::with_capacity(room),
        }
    }

    pub fn now(&self) -> Instant {
        self.device.now()
    }

    /// Begins a read of the user, of at most [`PIECE`] bytes.
    pub fn begin_read(&mut self, slot: Slot, at: ByteOffset, length: u32) -> Result<(), Full> {
        self.submit(Op::Read, slot.0 + OWN_SLOTS, (at.get(), length))
    }

    /// Waits as [`Device::reap`] does, for reads of the user.
    pub fn wait(&mut self, min: usize, until: Instant) -> Result<(), DeviceError> {
        loop {
            self.device.reap(min, until, &mut self.arrived)?;
            let is_all = self.arrived.is_empty();
            self.sort_arrived();
            if is_all || self.done.len() >= min || self.device.now() >= until {
                return Ok(());
            }
        }
    }

    /// The next read that is done, by the user's slot.
    pub fn next_done(&mut self) -> Option<(Slot, Completion)> {
        let done = self.done.pop()?;
        Some((Slot(done.slot.0 - OWN_SLOTS), done))
    }

    /// What a read of the user brought.
    pub fn data(&mut self, slot: Slot, at: ByteOffset, length: usize) -> &[u8] {
        self.brought(Slot(slot.0 + OWN_SLOTS), at.get(), length)
    }

    fn brought(&mut self, slot: Slot, at: u64, length: usize) -> &[u8] {
        match &self.held {
            Some(held) => &held[at as usize..][..length],
            None => &self.device.buffer(slot)[..length],
        }
    }

    /// Waits for all that is written.
    pub fn settle(&mut self) -> Result<(), String> {
        while self.writes.iter().any(Option::is_some) {
            self.take()?;
        }
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn submit(&mut self, op: Op, slot: u32, (at, length): (u64, u32)) -> Result<(), Full> {
        let (offset, slot, file) = (ByteOffset::new(at), Slot(slot), FileIndex(0));
        self.device.submit(Request { offset, length, slot, file, op })
    }

    /// Waits for an answer.
    fn take(&mut self) -> Result<(), String> {
        let reaped = self.device.reap(1, Instant::MAX, &mut self.arrived);
        reaped.map_err(|error| error.to_string())?;
        if self.arrived.is_empty() {
            return Err("it does not answer".to_owned());
        }
        self.sort_arrived();
        Ok(())
    }

    fn sort_arrived(&mut self) {
        for done in self.arrived.drain(..) {
            let slot = done.slot.0;
            if slot >= OWN_SLOTS {
                self.done.push(done);
            } else if slot >= WRITES {
                self.moved[(slot - WRITES) as usize] = Some(done.result());
            } else if let Some([start, end]) = self.writes[slot as usize].take()
                && let Err(why) = is_whole(done.result(), end - start)
            {
                self.failed.get_or_insert(why);
            }
        }
    }

    /// Begins a write or a flush, once a slot is free.
    fn begin(&mut self, op: Op, at: u64, from: &[u8]) -> Result<(), String> {
        let slot = loop {
            match self.writes.iter().position(Option::is_none) {
                Some(slot) => break slot,
                None => self.take()?,
            }
        };
        match &mut self.held {
            Some(held) => held[at as usize..][..from.len()].copy_from_slice(from),
            None if from.is_empty() => {}
            None => {
                self.device.buffer(Slot(slot as u32))[..from.len()].copy_from_slice(from);
            }
        }
        let length = from.len() as u32;
        self.submit(op, slot as u32, (at, length)).map_err(|Full| full())?;
        self.writes[slot] = Some([at, at + u64::from(length)]);
        Ok(())
    }

    fn write_pieces(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), String> {
        for (at, piece) in (at.get()..).step_by(PIECE).zip(from.chunks(PIECE)) {
            self.begin(Op::Write, at, piece)?;
        }
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Reads pieces, all in flight together.
    fn read_pieces(&mut self, pieces: &mut [ReadPart<'_>]) -> Result<(), String> {
        for (slot, piece) in (WRITES..).zip(&mut *pieces) {
            let (start, length) = (piece.at.get(), piece.into.len());
            let end = start + length as u64;
            if self.writes.iter().flatten().any(|[from, to]| *from < end && start < *to) {
                self.settle()?;
            }
            self.submit(Op::Read, slot, (start, length as u32)).map_err(|Full| full())?;
        }
        let mut result = Ok(());
        for (number, piece) in pieces.iter_mut().enumerate() {
            let moved = loop {
                match self.moved[number].take() {
                    Some(moved) => break moved,
                    None => self.take()?,
                }
            };
            result = result.and(is_whole(moved, piece.into.len() as u64));
            let slot = Slot(WRITES + number as u32);
            piece.into.copy_from_slice(self.brought(slot, piece.at.get(), piece.into.len()));
        }
        result
    }
}

fn full() -> String {
    "it takes no more requests".to_owned()
}

fn is_whole(moved: Result<u32, Errno>, wanted: u64) -> Result<(), String> {
    match moved {
        Ok(moved) if u64::from(moved) == wanted => Ok(()),
        Ok(moved) => Err(format!("{moved} bytes, wanted {wanted}")),
        Err(errno) => Err(errno.to_string()),
    }
}

impl BlockDevice for SeamBlocks<'_> {
    fn size(&self) -> Bytes {
        self.size
    }

    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError> {
        self.read_each(&mut [ReadPart { at, into }])
    }

    fn read_each(&mut self, parts: &mut [ReadPart<'_>]) -> Result<(), BlockError> {
        let mut pieces = Vec::with_capacity(READS as usize);
        let mut left = parts.iter_mut().flat_map(|part| {
            let places = (part.at.get()..).step_by(PIECE).map(ByteOffset::new);
            places.zip(part.into.chunks_mut(PIECE)).map(|(at, into)| ReadPart { at, into })
        });
        loop {
            pieces.extend(left.by_ref().take(READS as usize));
            let Some(first) = pieces.first() else { return Ok(()) };
            let (action, at) = (BlockAction::Read, first.at);
            let failed = |reason| BlockError { action, at, reason };
            self.read_pieces(&mut pieces).map_err(failed)?;
            pieces.clear();
        }
    }

    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError> {
        let failed = |reason| BlockError { action: BlockAction::Write, at, reason };
        self.write_pieces(at, from).map_err(failed)
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        let (action, at) = (BlockAction::Flush, ByteOffset::ZERO);
        let mut flush = || {
            self.settle()?;
            self.begin(Op::Fdatasync, 0, &[])?;
            self.settle()
        };
        flush().map_err(|reason| BlockError { action, at, reason })
    }

    /// Holes of a file would have to be filled again.
    fn trim(&mut self, _: ByteOffset, _: Bytes) -> Result<(), BlockError> {
        Ok(())
    }
}
