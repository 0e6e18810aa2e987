//! Checksums that tell a flipped bit from a torn write.

/// CRC-32 and the sum of the 32-bit words.
///
/// Why both: recovery must tell a group that was torn by a crash (the log ends before it) from one
/// that was flushed and has decayed since (an error). One flipped bit leaves a difference of CRCs
/// that names its place, and a difference of sums that must agree. A torn write does so by chance
/// once in 2^49, the CRC alone would be fooled once in 2^17.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub crc: u32,
    pub sum: u32,
}

/// What is wrong with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Nothing.
    None,
    /// The checksum itself has one flipped bit.
    InChecksum,
    /// This bit of the bytes is flipped, counted from bit 0 of byte 0.
    Bit(usize),
    /// More than one bit.
    Other,
}

/// Polynomial of CRC-32 (ISO-HDLC), bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;

impl Checksum {
    /// Of a multiple of four bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { crc: crc32fast::hash(bytes), sum: sum(bytes) }
    }

    pub fn difference(self, bytes: &[u8]) -> Difference {
        let seen = Self::of(bytes);
        let (crc, sum) = (seen.crc ^ self.crc, seen.sum.wrapping_sub(self.sum));
        if crc == 0 && sum == 0 {
            return Difference::None;
        }
        if crc.count_ones() + (seen.sum ^ self.sum).count_ones() == 1 {
            return Difference::InChecksum;
        }
        if !sum.is_power_of_two() && !sum.wrapping_neg().is_power_of_two() {
            return Difference::Other;
        }
        let flipped = bit_of(crc, bytes.len() * 8).filter(|&bit| {
            // A bit that is set now has added its value to the sum.
            let value = 1_u32 << (bit % 32);
            let is_set = bytes[bit / 8] >> (bit % 8) & 1 == 1;
            sum == if is_set { value } else { value.wrapping_neg() }
        });
        flipped.map_or(Difference::Other, Difference::Bit)
    }
}

/// The only bit of `bits` whose change gives this difference of CRCs. A CRC is linear: the bit
/// enters the register as 1 and is then shifted once for each bit behind it; here backwards.
fn bit_of(mut difference: u32, bits: usize) -> Option<usize> {
    (0..bits).rev().find(|_| {
        let carry = difference >> 31;
        difference = ((difference ^ (POLYNOMIAL * carry)) << 1) | carry;
        difference == 1
    })
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.as_chunks::<4>().0;
    words.iter().fold(0, |sum, &word| sum.wrapping_add(u32::from_le_bytes(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::random::Random;

    #[test]
    fn every_flipped_bit_is_named() {
        let mut bytes = vec![0; 4096];
        Random::new(1).fill(&mut bytes);
        let good = Checksum::of(&bytes);
        assert_eq!(good.difference(&bytes), Difference::None);
        for bit in 0..bytes.len() * 8 {
            if bit % 7 != 0 && bit > 64 && bit < 32_700 {
                continue;
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(good.difference(&bytes), Difference::Bit(bit));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for bit in 0..32 {
            let crc = Checksum { crc: good.crc ^ 1 << bit, ..good };
            let sum = Checksum { sum: good.sum ^ 1 << bit, ..good };
            assert_eq!(crc.difference(&bytes), Difference::InChecksum);
            assert_eq!(sum.difference(&bytes), Difference::InChecksum);
        }
    }

    #[test]
    fn a_torn_block_is_no_flipped_bit() {
        let mut random = Random::new(2);
        let (mut old, mut new) = (vec![0; 4096], vec![0; 4096]);
        for _ in 0..2000 {
            random.fill(&mut old);
            random.fill(&mut new);
            let good = Checksum::of(&new);
            let edge = 512 * (1 + random.below(7) as usize);
            new[edge..].copy_from_slice(&old[edge..]);
            assert_eq!(good.difference(&new), Difference::Other);
        }
    }
}
