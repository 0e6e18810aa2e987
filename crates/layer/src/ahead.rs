//! Reading blocks of a segment in their order, several at once where they are near each other.

use crate::device::{BlockDevice, BlockError};
use crate::shape::Physical;
use crate::{BLOCK_LEN, GAP};

/// Blocks that are read at once.
const AHEAD: u32 = 256;

/// What was read last.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    first: Physical,
    bytes: Vec<u8>,
}

impl ReadAhead {
    /// One block. Those behind it are read along if it is near what was read last; where that fails, it
    /// alone counts.
    ///
    /// * `left`: blocks from it on that may be read.
    pub fn read<D: BlockDevice>(
        &mut self,
        device: &mut D,
        block: Physical,
        left: u32,
    ) -> Result<[u8; BLOCK_LEN], BlockError> {
        if let Some(bytes) = self.kept(block) {
            return Ok(bytes);
        }
        let end = self.first.0 + (self.bytes.len() / BLOCK_LEN) as u32;
        let is_near = (end..=end + GAP).contains(&block.0);
        let blocks = if is_near { left.clamp(1, AHEAD) } else { 1 };
        self.first = block;
        self.bytes.resize(blocks as usize * BLOCK_LEN, 0);
        if let Err(error) = device.read(block.offset(), &mut self.bytes) {
            self.bytes.truncate(BLOCK_LEN);
            if blocks == 1 || device.read(block.offset(), &mut self.bytes).is_err() {
                self.bytes.clear();
                return Err(error);
            }
        }
        Ok(self.kept(block).unwrap_or([0; BLOCK_LEN]))
    }

    fn kept(&self, block: Physical) -> Option<[u8; BLOCK_LEN]> {
        let blocks = self.bytes.as_chunks().0;
        blocks.get(block.0.checked_sub(self.first.0)? as usize).copied()
    }
}
