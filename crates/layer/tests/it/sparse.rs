//! A large device that takes little memory, and counts.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use layer::{BlockDevice, BlockError};
use units::{ByteOffset, Bytes};

use crate::BLOCK;

/// Requests of one kind, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transfers {
    pub requests: u64,
    pub bytes: u64,
}

impl Transfers {
    fn add(&mut self, bytes: usize) {
        self.requests += 1;
        self.bytes += bytes as u64;
    }
}

/// A device that keeps only blocks with something in them: where data are zeroes, headers and maps.
#[derive(Clone)]
pub struct SparseDevice {
    size: Bytes,
    blocks: HashMap<u64, Box<[u8]>>,
    pub reads: Transfers,
    /// Those that begin in front of `maps_end`.
    pub map_writes: Transfers,
    pub maps_end: u64,
    /// What it took itself.
    pub busy: Duration,
}

impl SparseDevice {
    pub fn new(size: Bytes) -> Self {
        let (reads, map_writes) = (Transfers::default(), Transfers::default());
        let (blocks, busy) = (HashMap::new(), Duration::ZERO);
        Self { size, blocks, reads, map_writes, maps_end: 0, busy }
    }
}

impl BlockDevice for SparseDevice {
    fn size(&self) -> Bytes {
        self.size
    }

    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError> {
        let begun = Instant::now();
        self.reads.add(into.len());
        for (block, bytes) in (at.get() / BLOCK..).zip(into.chunks_mut(BLOCK as usize)) {
            match self.blocks.get(&block) {
                Some(kept) => bytes.copy_from_slice(kept),
                None => bytes.fill(0),
            }
        }
        self.busy += begun.elapsed();
        Ok(())
    }

    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError> {
        let begun = Instant::now();
        if at.get() < self.maps_end {
            self.map_writes.add(from.len());
        }
        for (block, bytes) in (at.get() / BLOCK..).zip(from.chunks(BLOCK as usize)) {
            match bytes.iter().all(|&byte| byte == 0) {
                true => drop(self.blocks.remove(&block)),
                false => drop(self.blocks.insert(block, bytes.into())),
            }
        }
        self.busy += begun.elapsed();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    fn trim(&mut self, _: ByteOffset, _: Bytes) -> Result<(), BlockError> {
        Ok(())
    }
}
