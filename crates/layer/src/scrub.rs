//! Whether a volume is what it should be, without a change to its device.

use std::collections::HashMap;

use units::{ByteOffset, Bytes};

use crate::device::{BlockDevice, BlockError};
use crate::error::LayerError;
use crate::shape::{Logical, Physical};
use crate::volume::LogVolume;
use crate::{BLOCK, BLOCK_LEN};

/// Blocks that are read at once.
const CHUNK: usize = 256;

/// A device whose writes stay in memory: a volume opens on it as on the device, recovery included.
#[derive(Debug)]
pub struct Untouched<D> {
    device: D,
    written: HashMap<u64, Box<[u8]>>,
}

impl<D> Untouched<D> {
    /// * `device`: is only read.
    pub fn new(device: D) -> Self {
        Self { device, written: HashMap::new() }
    }
}

impl<D: BlockDevice> BlockDevice for Untouched<D> {
    fn size(&self) -> Bytes {
        self.device.size()
    }

    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError> {
        self.device.read(at, into)?;
        for (block, bytes) in (at.get() / BLOCK.get()..).zip(into.chunks_mut(BLOCK_LEN)) {
            if let Some(written) = self.written.get(&block) {
                bytes.copy_from_slice(written);
            }
        }
        Ok(())
    }

    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError> {
        let blocks = (at.get() / BLOCK.get()..).zip(from.chunks(BLOCK_LEN));
        self.written.extend(blocks.map(|(block, bytes)| (block, bytes.into())));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    fn trim(&mut self, _: ByteOffset, _: Bytes) -> Result<(), BlockError> {
        Ok(())
    }
}

/// What a look at all of a volume found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Blocks that hold data.
    pub live: u64,
    /// Of these, where the data are not what was written, or cannot be read.
    pub damaged: Vec<ByteOffset>,
    /// Where the map and the table of segments do not agree.
    pub faults: Vec<String>,
}

impl<D: BlockDevice> LogVolume<D> {
    /// Blocks that hold data.
    pub fn live(&self) -> Bytes {
        let live = self.map.iter().filter(|place| place.block != Physical::NONE).count() as u64;
        Bytes::new(live * BLOCK.get())
    }

    /// Share of the room for data that holds some, of the segments that are not kept free.
    pub fn fill(&self) -> f64 {
        self.live().get() as f64 / (self.shape.room() * BLOCK.get()).max(1) as f64
    }

    /// Reads all that is there and holds it against its checksums, in the order of the device. What is
    /// written must be flushed before.
    ///
    /// * `tell`: is told how many blocks were read, and of how many; false ends it.
    pub fn scrub(
        &mut self,
        tell: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Scrubbed, LayerError> {
        self.barrier()?;
        let places = (0..).map(Logical).zip(self.map.iter());
        let there = places.filter(|(_, place)| place.block != Physical::NONE);
        let mut live: Vec<(Physical, Logical)> =
            there.map(|(at, place)| (place.block, at)).collect();
        live.sort_unstable();
        let faults = self.audit();
        let mut found = Scrubbed { live: live.len() as u64, damaged: Vec::new(), faults };
        let mut bytes = vec![0; CHUNK * BLOCK_LEN];
        let mut done = 0;
        for run in live.chunk_by(|a, b| a.0.0 + 1 == b.0.0).flat_map(|run| run.chunks(CHUNK)) {
            let Some(&(first, _)) = run.first() else { continue };
            let bytes = &mut bytes[..run.len() * BLOCK_LEN];
            let is_read = self.device.read(first.offset(), bytes).is_ok();
            for (&(_, at), block) in run.iter().zip(bytes.chunks(BLOCK_LEN)) {
                if !is_read || crc32fast::hash(block) != self.map.get(at).crc {
                    found.damaged.push(at.offset());
                }
            }
            done += run.len() as u64;
            if !tell(done, found.live) {
                break;
            }
        }
        Ok(found)
    }
}
