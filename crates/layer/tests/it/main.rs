//! The volume as its callers see it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are no tests to clippy")]

mod amplification;
mod checkpoints;
mod room;
mod shape;
mod sparse;
mod stored;

use layer::{BlockMemory, CreateOptions, LogVolume, VolumeId};
use units::{ByteOffset, Bytes};

const BLOCK: u64 = 4096;

fn at(block: u64) -> ByteOffset {
    ByteOffset::new(block * BLOCK)
}

/// A volume on a device of so many segments.
fn volume(segment: Bytes, segments: u64, logical: Bytes) -> LogVolume<BlockMemory> {
    let map = logical.get() / 256 + 2 * segment.get();
    let device = BlockMemory::new(Bytes::new(segment.get() * segments + map));
    LogVolume::create(device, &CreateOptions { logical, segment, id: VolumeId(7) }).unwrap()
}

/// A block that shows a number.
fn block(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK as usize / 8)
}
