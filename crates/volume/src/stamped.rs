//! Writes that can be told apart, to see what of them is left after a crash.

use layer::BLOCK;
use stats::random::derive_seed;
use units::{ByteOffset, Bytes};

/// Writes of a block each, whose places follow from a seed, and whose data say their place and number.
#[derive(Debug)]
pub struct StampedWrites {
    seed: u64,
    /// Of each block the number of the write that it holds: 0 for none.
    blocks: Vec<u64>,
    last: u64,
}

impl StampedWrites {
    /// None yet, to a volume of this size that reads as zeroes.
    pub fn new(seed: u64, size: Bytes) -> Self {
        Self { seed, blocks: vec![0; (size.get() / BLOCK.get()) as usize], last: 0 }
    }

    /// What the places follow from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of the last write that [`Self::judge`] saw; they are counted from 1.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Where a write goes, and what it writes.
    pub fn write(&self, number: u64) -> (ByteOffset, Vec<u8>) {
        let block = self.block(number);
        (offset(block), data(block, number))
    }

    fn block(&self, number: u64) -> usize {
        (derive_seed(self.seed, &[number]) % self.blocks.len() as u64) as usize
    }

    /// Holds what is there against the state after as many writes as are there, and returns the places that
    /// differ. Writes behind the last that is there are forgotten.
    ///
    /// * `read`: fills a block, and says whether it could be read.
    pub fn judge<E>(
        &mut self,
        mut read: impl FnMut(ByteOffset, &mut [u8]) -> Result<bool, E>,
    ) -> Result<Vec<ByteOffset>, E> {
        let mut seen = Vec::with_capacity(self.blocks.len());
        let mut bytes = vec![0; BLOCK.get() as usize];
        for block in 0..self.blocks.len() {
            let is_read = read(offset(block), &mut bytes)?;
            let number = bytes.as_chunks().0.get(1).map_or(0, |word| u64::from_le_bytes(*word));
            let is_whole = number == 0 && bytes.iter().all(|&byte| byte == 0)
                || number > 0 && bytes == data(block, number);
            seen.push((is_read && is_whole).then_some(number));
        }
        let last = seen.iter().flatten().copied().max().unwrap_or(0);
        for number in self.last + 1..=last {
            let block = self.block(number);
            self.blocks[block] = number;
        }
        self.last = last;
        let pairs = seen.iter().zip(&self.blocks).enumerate();
        let differ = pairs.filter(|(_, (seen, wanted))| **seen != Some(**wanted));
        Ok(differ.map(|(block, _)| offset(block)).collect())
    }
}

fn offset(block: usize) -> ByteOffset {
    ByteOffset::new(block as u64 * BLOCK.get())
}

fn data(block: usize, number: u64) -> Vec<u8> {
    [(block as u64).to_le_bytes(), number.to_le_bytes()].concat().repeat(BLOCK.get() as usize / 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A volume in memory that holds some of the writes.
    struct Held(Vec<u8>);

    impl Held {
        fn of(stamped: &StampedWrites, numbers: impl IntoIterator<Item = u64>) -> Self {
            let mut held = Self(vec![0; stamped.blocks.len() * BLOCK.get() as usize]);
            for number in numbers {
                let (at, data) = stamped.write(number);
                held.0[at.get() as usize..][..data.len()].copy_from_slice(&data);
            }
            held
        }

        fn judged(&self, stamped: &mut StampedWrites) -> Vec<ByteOffset> {
            let read = |at: ByteOffset, into: &mut [u8]| {
                into.copy_from_slice(&self.0[at.get() as usize..][..into.len()]);
                Ok::<_, Infallible>(true)
            };
            stamped.judge(read).unwrap()
        }
    }

    #[test]
    fn the_state_after_some_writes_is_right_and_any_other_is_not() {
        let new = || StampedWrites::new(7, Bytes::kib(256));
        let mut stamped = new();
        for writes in [0, 1, 40, 300] {
            assert_eq!(Held::of(&stamped, 1..=writes).judged(&mut stamped), []);
            assert_eq!(stamped.last(), writes);
        }
        // A write that is lost, while a later one is there.
        let lost = new().write(299).0;
        assert_ne!(lost, new().write(300).0);
        let held = Held::of(&new(), (1..=300).filter(|&number| number != 299));
        assert_eq!(held.judged(&mut new()), [lost]);
        // One bit of another.
        let mut held = Held::of(&new(), 1..=300);
        held.0[lost.get() as usize + 4000] ^= 1;
        assert_eq!(held.judged(&mut new()), [lost]);
        // What was never written.
        let mut held = Held::of(&new(), []);
        held.0[BLOCK.get() as usize + 9] = 1;
        assert_eq!(held.judged(&mut new()).len(), 1);
    }
}
