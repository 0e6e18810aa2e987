//! A volume of the layer behind the seam.

use std::collections::VecDeque;

use device::{Completion, Device, DeviceError, Errno, Full, Op, Request, Slot};
use layer::{LayerError, LogVolume};
use suite::model::{Stream, WriteThrough};
use units::{ByteOffset, Bytes, Instant};

use super::blocks::{PIECE, SeamBlocks};
use crate::rigs::files::twin_buffer;

/// The suite's files lie one behind the other in the volume. Reads are in flight together, as far as what they
/// ask for lies on the device in one piece; all else is done one after the other.
pub(super) struct VolumeDevice<'a> {
    volume: LogVolume<SeamBlocks<'a>>,
    file_size: Bytes,
    buffers: Vec<Vec<u8>>,
    queued: VecDeque<Request>,
    /// By slot: reads in flight, and where on the device.
    reading: Vec<Option<(Request, ByteOffset)>>,
    in_flight: usize,
    /// Writes are durable when they are done.
    through: bool,
}

impl<'a> VolumeDevice<'a> {
    /// * `shape`: the length of each file, requests in flight.
    pub fn new(
        volume: LogVolume<SeamBlocks<'a>>,
        (file_size, slots): (Bytes, u32),
        streams: &[Stream],
    ) -> Self {
        let slots = slots as usize;
        let length = twin_buffer(streams).get() as usize;
        Self {
            volume,
            file_size,
            buffers: vec![vec![0; length]; slots],
            queued: VecDeque::with_capacity(slots),
            reading: vec![None; slots],
            in_flight: 0,
            through: streams.iter().any(|stream| stream.write_through != WriteThrough::No),
        }
    }

    pub fn into_volume(self) -> LogVolume<SeamBlocks<'a>> {
        self.volume
    }

    fn start(&self, request: &Request) -> ByteOffset {
        let file = u64::from(request.file.0) * self.file_size.get();
        ByteOffset::new(file + request.offset.get())
    }

    /// Begins the reads at the head of the queue that can be in flight.
    fn begin_reads(&mut self) {
        while let Some(&request) = self.queued.front() {
            let (start, length) = (self.start(&request), request.length);
            let is_short = request.op == Op::Read && length as usize <= PIECE;
            let place = self.volume.place_of(start, Bytes::new(length.into())).filter(|_| is_short);
            let Some(place) = place else { return };
            if self.volume.device_mut().begin_read(request.slot, place, length).is_err() {
                return;
            }
            self.queued.pop_front();
            self.reading[request.slot.0 as usize] = Some((request, place));
            self.in_flight += 1;
        }
    }

    /// Appends the reads that are done.
    fn end_reads(&mut self, done: &mut Vec<Completion>) {
        while done.len() < done.capacity() {
            let Some((slot, answer)) = self.volume.device_mut().next_done() else { return };
            let Some((request, place)) = self.reading[slot.0 as usize].take() else { continue };
            self.in_flight -= 1;
            done.push(
                match answer.result().and_then(|moved| self.end_read(request, place, moved)) {
                    Ok(bytes) => Completion::moved(slot, bytes),
                    Err(errno) => Completion::failed(slot, errno),
                },
            );
        }
    }

    fn end_read(&mut self, request: Request, at: ByteOffset, moved: u32) -> Result<u32, Errno> {
        let start = self.start(&request);
        let buffer = self.buffers.get_mut(request.slot.0 as usize).ok_or(Errno::EINVAL)?;
        let into = buffer.get_mut(..request.length as usize).ok_or(Errno::EINVAL)?;
        if moved == request.length {
            into.copy_from_slice(self.volume.device_mut().data(request.slot, at, into.len()));
            if self.volume.is_as_written(start, into) {
                return Ok(moved);
            }
        }
        // Written anew meanwhile, or damaged.
        self.volume.read(start, into).map_err(|error| errno(&error))?;
        Ok(request.length)
    }

    fn perform(&mut self, request: Request) -> Result<u32, Errno> {
        let start = self.start(&request);
        let length = request.length as usize;
        let volume = &mut self.volume;
        let buffer = self.buffers.get_mut(request.slot.0 as usize).ok_or(Errno::EINVAL)?;
        match request.op {
            Op::Read | Op::Write => {
                let data = buffer.get_mut(..length).ok_or(Errno::EINVAL)?;
                let moved = match request.op {
                    Op::Read => volume.read_bytes(start, data),
                    _ => volume.write_bytes(start, data),
                };
                moved.map_err(|error| errno(&error))?;
                if request.op == Op::Write && self.through {
                    volume.flush().map_err(|error| errno(&error))?;
                }
                return Ok(request.length);
            }
            Op::Fsync | Op::Fdatasync | Op::SyncRange => volume.flush(),
            Op::Trim => volume.trim_within(start, Bytes::new(request.length.into())),
            Op::Create | Op::Stat | Op::Delete | Op::CopyRange | Op::Commit => {
                return Err(Errno::EOPNOTSUPP);
            }
        }
        .map(|()| 0)
        .map_err(|error| errno(&error))
    }
}

fn errno(error: &LayerError) -> Errno {
    match error {
        LayerError::ReadOnly { .. } => Errno::EROFS,
        LayerError::NoRoom => Errno::ENOSPC,
        LayerError::Unaligned { .. } | LayerError::OutOfRange { .. } => Errno::EINVAL,
        _ => Errno::EIO,
    }
}

impl Device for VolumeDevice<'_> {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        if self.queued.len() + self.in_flight == self.reading.len() {
            return Err(Full);
        }
        self.queued.push_back(request);
        Ok(())
    }

    /// Returns after each request that is not a read in flight, so that each is timed when it is done.
    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let wanted = done.len() + min.min(done.capacity() - done.len());
        loop {
            self.begin_reads();
            let now = self.now();
            self.volume.device_mut().wait(0, now)?;
            self.end_reads(done);
            let is_enough = done.len() >= wanted && (min > 0 || self.queued.is_empty());
            if is_enough || done.len() == done.capacity() {
                return Ok(());
            }
            if let Some(request) = self.queued.pop_front() {
                done.push(match self.perform(request) {
                    Ok(bytes) => Completion::moved(request.slot, bytes),
                    Err(errno) => Completion::failed(request.slot, errno),
                });
            } else if self.in_flight == 0 && until == Instant::MAX {
                return Ok(());
            } else {
                self.volume.device_mut().wait(usize::from(min > 0), until)?;
                self.end_reads(done);
            }
            if done.len() >= wanted || self.now() >= until {
                return Ok(());
            }
        }
    }

    fn now(&self) -> Instant {
        self.volume.device().now()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get_mut(slot.0 as usize).map_or(&mut [], Vec::as_mut_slice)
    }
}
