use std::collections::HashMap;
use std::collections::hash_map::Entry;

use units::{ByteOffset, Bytes, Instant, Nanos};

use crate::hash::FastHash;
use crate::{Clock, Completion, Device, DeviceError, Errno, FileIndex, Full, Op, Request, Slot};

const CHUNK: u64 = 64 << 10;
const ENOMEM: Errno = Errno(12);

/// What a [`Memory`] is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShape {
    /// Files in the set.
    pub files: u32,
    /// Size of each; it never changes.
    pub file_size: Bytes,
    /// Requests in flight, and buffers.
    pub slots: u32,
    /// Length of each slot's buffer.
    pub buffer: Bytes,
    /// How long each reap makes the clock wait: zero on a real clock. On a virtual one it lets
    /// loops stop that stop by time.
    pub tick: Nanos,
}

/// Holds data: for verification. Requests complete, and take effect, in the order of their
/// submission at the next reap.
///
/// Files are sparse (64 KiB are allocated by the first write to them) and read as zeros until
/// written. They have a fixed size, as a block device has: a transfer across the end is short; a
/// read from the end on moves 0 bytes and a write from the end on fails with `ENOSPC`.
/// It has no directory: files are made, looked at and removed there as if there were any.
/// Requests the caller cannot mean fail as the kernel would have it: an unknown file with
/// `EBADF`, a length beyond the buffer or an unknown slot with `EINVAL`.
pub struct Memory<C> {
    clock: C,
    shape: MemoryShape,
    // Each is as long as the requests through it have needed: a deep queue of long buffers is
    // more than most machines have.
    buffers: Vec<Vec<u8>>,
    chunks: HashMap<(FileIndex, u64), Box<[u8]>, FastHash>,
    queued: Vec<Request>,
    /// Where copies go.
    aims: HashMap<Slot, (FileIndex, ByteOffset), FastHash>,
}

impl<C> std::fmt::Debug for Memory<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("shape", &self.shape)
            .field("allocated", &self.allocated())
            .field("queued", &self.queued.len())
            .finish_non_exhaustive()
    }
}

impl<C: Clock> Memory<C> {
    /// An unwritten set of files, and zeroed buffers.
    pub fn new(clock: C, shape: MemoryShape) -> Self {
        Self {
            clock,
            shape,
            buffers: vec![Vec::new(); shape.slots as usize],
            chunks: HashMap::default(),
            queued: Vec::with_capacity(shape.slots as usize),
            aims: HashMap::default(),
        }
    }

    /// Gives the buffers another length, as the next load needs it: none is longer than its requests,
    /// and what longer ones took is given back. What was in them is gone.
    pub fn set_buffer(&mut self, length: Bytes) {
        if length != self.shape.buffer {
            self.shape.buffer = length;
            self.buffers.fill(Vec::new());
        }
    }

    /// Its shape.
    pub const fn shape(&self) -> MemoryShape {
        self.shape
    }
}

impl<C> Memory<C> {
    /// Memory taken by data, in whole chunks.
    pub fn allocated(&self) -> Bytes {
        Bytes::new(self.chunks.len() as u64 * CHUNK)
    }

    fn perform(&mut self, request: Request) -> Result<u32, Errno> {
        if request.op == Op::CopyRange {
            let &(file, offset) = self.aims.get(&request.slot).ok_or(Errno::EINVAL)?;
            let length = self.perform(Request { op: Op::Read, ..request })?;
            return self.perform(Request { op: Op::Write, file, offset, length, ..request });
        }
        let Some(buffer) = self.buffers.get_mut(request.slot.0 as usize) else {
            return Err(Errno::EINVAL);
        };
        if request.op.in_directory() || request.file == FileIndex::DIRECTORY {
            return Ok(0);
        }
        if request.file.0 >= self.shape.files {
            return Err(Errno(9)); // EBADF
        }
        if matches!(request.op, Op::Fsync | Op::Fdatasync) {
            return Ok(0);
        }
        let start = request.offset.get();
        let end = start.checked_add(request.length.into()).ok_or(Errno::EINVAL)?;
        let end = end.min(self.shape.file_size.get());
        if request.op.moves_data() {
            if u64::from(request.length) > self.shape.buffer.get() {
                return Err(Errno::EINVAL);
            }
            grow(buffer, request.length as usize)?;
        }
        if start >= end {
            let beyond = request.op == Op::Write && request.length > 0;
            return if beyond { Err(Errno::ENOSPC) } else { Ok(0) };
        }
        let mut at = start;
        while at < end {
            let piece = (CHUNK - at % CHUNK).min(end - at) as usize;
            let within = (at % CHUNK) as usize..(at % CHUNK) as usize + piece;
            self.chunks.try_reserve(1).map_err(|_| ENOMEM)?;
            let chunk = self.chunks.entry((request.file, at / CHUNK));
            let place = (at - start) as usize..(at - start) as usize + piece;
            match request.op {
                Op::Read => match chunk {
                    Entry::Occupied(chunk) => buffer[place].copy_from_slice(&chunk.get()[within]),
                    Entry::Vacant(_) => buffer[place].fill(0),
                },
                Op::Write => match chunk {
                    Entry::Occupied(mut chunk) => {
                        chunk.get_mut()[within].copy_from_slice(&buffer[place]);
                    }
                    Entry::Vacant(vacant) => {
                        let mut fresh = zeros(CHUNK as usize)?.into_boxed_slice();
                        fresh[within].copy_from_slice(&buffer[place]);
                        vacant.insert(fresh);
                    }
                },
                Op::Trim => {
                    if let Entry::Occupied(mut chunk) = chunk {
                        if piece as u64 == CHUNK {
                            chunk.remove();
                        } else {
                            chunk.get_mut()[within].fill(0);
                        }
                    }
                }
                // Of no range.
                Op::Fsync | Op::Fdatasync | Op::SyncRange => {}
                Op::Create | Op::Stat | Op::Delete | Op::CopyRange | Op::Commit => {}
            }
            at += piece as u64;
        }
        // At most the request's own length, so it fits.
        Ok(if request.op.moves_data() { (end - start) as u32 } else { 0 })
    }
}

impl<C: Clock> Device for Memory<C> {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        if self.queued.len() == self.shape.slots as usize {
            return Err(Full);
        }
        self.queued.push(request);
        Ok(())
    }

    fn aim(&mut self, slot: Slot, file: FileIndex, offset: ByteOffset) {
        self.aims.insert(slot, (file, offset));
    }

    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        if self.shape.tick != Nanos::ZERO {
            self.clock.wait_until(self.clock.now() + self.shape.tick);
        }
        let take = self.queued.len().min(done.capacity() - done.len());
        for i in 0..take {
            let request = self.queued[i];
            done.push(match self.perform(request) {
                Ok(bytes) => Completion::moved(request.slot, bytes),
                Err(errno) => Completion::failed(request.slot, errno),
            });
        }
        self.queued.drain(..take);
        if take < min && until != Instant::MAX {
            self.clock.wait_until(until);
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        let Some(buffer) = self.buffers.get_mut(slot.0 as usize) else { return &mut [] };
        // Where there is no memory for it, there is no buffer.
        match grow(buffer, usize::try_from(self.shape.buffer.get()).unwrap_or(usize::MAX)) {
            Ok(()) => buffer,
            Err(_) => &mut [],
        }
    }
}

/// Lengthens a buffer with zeros. Zeroed anew, for pages that nobody touches are then not taken.
fn grow(buffer: &mut Vec<u8>, length: usize) -> Result<(), Errno> {
    if buffer.len() < length {
        let mut longer = zeros(length)?;
        longer[..buffer.len()].copy_from_slice(buffer);
        *buffer = longer;
    }
    Ok(())
}

/// Zeros, where there is memory for them: an allocation that cannot fail ends the process instead.
fn zeros(length: usize) -> Result<Vec<u8>, Errno> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length).map_err(|_| ENOMEM)?;
    zeros.resize(length, 0);
    Ok(zeros)
}
