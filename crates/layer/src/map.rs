//! Where each logical block is, and what it must read as.

use crate::shape::{Logical, MAP_ENTRY, Physical, VolumeShape};

/// Where a block is. The CRC beside it lets every read be checked, whatever the device returns:
/// decayed, stale or another block's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub block: Physical,
    pub crc: u32,
}

/// By logical block.
#[derive(Debug)]
pub(crate) struct BlockMap(Vec<BlockPlace>);

impl BlockMap {
    pub fn new(shape: VolumeShape) -> Self {
        Self(vec![BlockPlace::default(); shape.logical as usize])
    }

    pub fn get(&self, at: Logical) -> BlockPlace {
        self.0[at.0 as usize]
    }

    /// Returns where the block was.
    pub fn set(&mut self, at: Logical, place: BlockPlace) -> BlockPlace {
        std::mem::replace(&mut self.0[at.0 as usize], place)
    }

    pub fn iter(&self) -> impl Iterator<Item = BlockPlace> {
        self.0.iter().copied()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.0.capacity() * size_of::<BlockPlace>()
    }

    /// The entries from `start` on as they are stored, as many as fit; zeroes behind the last.
    pub fn encode(&self, start: usize, into: &mut [u8]) {
        into.fill(0);
        for (bytes, place) in into.as_chunks_mut::<MAP_ENTRY>().0.iter_mut().zip(&self.0[start..]) {
            let word = u64::from(place.crc) << 32 | u64::from(place.block.0);
            *bytes = word.to_le_bytes();
        }
    }

    pub fn decode(&mut self, start: usize, from: &[u8]) {
        for (bytes, place) in from.as_chunks::<MAP_ENTRY>().0.iter().zip(&mut self.0[start..]) {
            let word = u64::from_le_bytes(*bytes);
            *place = BlockPlace { block: Physical(word as u32), crc: (word >> 32) as u32 };
        }
    }
}
