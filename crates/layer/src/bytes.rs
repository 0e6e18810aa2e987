//! Requests that are not made of whole blocks, by way of the blocks that hold them.

use units::{ByteOffset, Bytes};

use crate::BLOCK;
use crate::device::BlockDevice;
use crate::error::LayerError;
use crate::volume::LogVolume;

fn is_whole(at: ByteOffset, length: u64) -> bool {
    Bytes::new(at.get() | length).is_multiple_of(BLOCK)
}

/// The blocks that hold a part of a range: where they begin, and their bytes.
fn around(at: ByteOffset, length: u64) -> (ByteOffset, Vec<u8>) {
    let first = at.get() / BLOCK.get() * BLOCK.get();
    let end = (at.get() + length).next_multiple_of(BLOCK.get());
    (ByteOffset::new(first), vec![0; (end - first) as usize])
}

impl<D: BlockDevice> LogVolume<D> {
    /// As [`Self::read`], from any byte to any.
    pub fn read_bytes(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), LayerError> {
        if is_whole(at, into.len() as u64) {
            return self.read(at, into);
        }
        let (first, mut blocks) = around(at, into.len() as u64);
        self.read(first, &mut blocks)?;
        let start = (at.get() - first.get()) as usize;
        into.copy_from_slice(&blocks[start..start + into.len()]);
        Ok(())
    }

    /// As [`Self::write`], from any byte to any. After a crash a block is as before or as after it.
    pub fn write_bytes(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), LayerError> {
        if is_whole(at, from.len() as u64) {
            return self.write(at, from);
        }
        let (first, mut blocks) = around(at, from.len() as u64);
        self.read(first, &mut blocks)?;
        let start = (at.get() - first.get()) as usize;
        blocks[start..start + from.len()].copy_from_slice(from);
        self.write(first, &blocks)
    }

    /// As [`Self::trim`], for the whole blocks within a range of bytes. What is left of it stays.
    pub fn trim_within(&mut self, at: ByteOffset, length: Bytes) -> Result<(), LayerError> {
        let (start, end) = inner(at, length);
        self.trim(ByteOffset::new(start), Bytes::new(end.saturating_sub(start)))
    }

    /// Lets a range of bytes read as zeroes.
    pub fn zero_bytes(&mut self, at: ByteOffset, length: Bytes) -> Result<(), LayerError> {
        let (start, end) = inner(at, length);
        let all = at.get() + length.get();
        let mut zero = |from: u64, to: u64| match from < to {
            true => self.write_bytes(ByteOffset::new(from), &vec![0; (to - from) as usize]),
            false => Ok(()),
        };
        if start >= end {
            return zero(at.get(), all);
        }
        zero(at.get(), start)?;
        zero(end, all)?;
        self.trim_within(at, length)
    }
}

/// The whole blocks within a range, from where to where; there are none if that is backwards.
fn inner(at: ByteOffset, length: Bytes) -> (u64, u64) {
    let end = at.get() + length.get();
    (at.get().next_multiple_of(BLOCK.get()), end / BLOCK.get() * BLOCK.get())
}
