//! A hash for keys of small integers that nobody chooses to our harm: one multiplication a word
//! instead of SipHash's twenty operations, and without a random seed, so that runs replay.

use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type FastHash = BuildHasherDefault<IntHasher>;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntHasher(u64);

impl Hasher for IntHasher {
    #[inline]
    fn finish(&self) -> u64 {
        // The table takes its bucket from the low bits and its tag from the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(26) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
