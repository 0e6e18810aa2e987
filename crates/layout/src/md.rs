//! What mdadm keeps for itself on each member.

use units::{ByteOffset, Bytes};

use crate::array::{Array, Level};

/// Which of its formats an array is marked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// The old one: 64 KiB at the end. Data begins where the member does.
    V0_90,
    /// The usual one: at the beginning, with room for a bitmap and for reshaping.
    V1_2,
}

const SECTOR: u64 = 512;
const MEBI: u64 = 1 << 20;

impl Metadata {
    /// Where data begins on members of that size, as mdadm 4 chooses it.
    ///
    /// Room for a bitmap, which grows with the member, and about a thousandth of the member, at
    /// most 128 MiB, for reshaping; rounded up to whole MiB.
    pub fn data_start(self, member: Bytes, chunk: Option<Bytes>) -> ByteOffset {
        if self == Self::V0_90 {
            return ByteOffset::ZERO;
        }
        let mut headroom = 128 * MEBI;
        // Seen of chunks that are no power of two: it stops at twice the next one.
        let above = |chunk: Bytes| chunk.get().checked_next_power_of_two().unwrap_or(u64::MAX);
        let least = chunk.map_or(0, |chunk| above(chunk).saturating_mul(2));
        while headroom.saturating_mul(1024) > member.get() && headroom > least.max(SECTOR) {
            headroom /= 2;
        }
        let bitmap = match member.get().saturating_sub(64 << 10) {
            0 => 0,
            size if size >= 200 << 30 => 128 << 10,
            _ if member.get().saturating_sub(4 << 10) > 8 << 30 => 64 << 10,
            _ => 4 << 10,
        };
        ByteOffset::new(((12 << 10) + bitmap + headroom).next_multiple_of(MEBI))
    }

    /// Bytes that a member of that size gives to an array.
    ///
    /// * Zero where the member is too small.
    pub fn usable(self, member: Bytes, array: &Array) -> Bytes {
        let left = match self {
            Self::V0_90 => (member.get() & !((64 << 10) - 1)).saturating_sub(64 << 10),
            Self::V1_2 => {
                member.get().saturating_sub(self.data_start(member, array.chunk()).get()) & !1023
            }
        };
        let unit = match (array.chunk(), array.level()) {
            (Some(chunk), _) => chunk.get(),
            // A mirror is cut as if it had chunks of that size.
            (None, Level::Raid1) => 64 << 10,
            (None, _) => 1,
        };
        Bytes::new(whole_chunks(left, unit))
    }
}

/// Chunks of an odd size lose a little more: the kernel's raid0 then masks as if they were a power
/// of two.
const fn whole_chunks(bytes: u64, chunk: u64) -> u64 {
    let whole = bytes / chunk * chunk;
    if chunk < SECTOR { whole } else { ((whole / SECTOR) & !(chunk / SECTOR - 1)) * SECTOR }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(level: Level, chunk_kib: u64) -> Array {
        let chunk = (chunk_kib > 0).then_some(Bytes::kib(chunk_kib));
        Array::new(level, 2, chunk).unwrap()
    }

    /// As mdadm 4.2 made them: size of a member, chunk in KiB, and in sectors where data begins
    /// and what a member gives.
    #[test]
    fn data_begins_where_mdadm_puts_it() {
        let small = Bytes::mib(64);
        let middle = Bytes::gib(9);
        let large = Bytes::new(160_000_000_000);
        let huge = Bytes::gib(1500);
        // Legs of raid5 over three drives of 700 and 1100 MiB, in an array over them.
        let (leg, second) = (Bytes::new(1_465_909_248), Bytes::new(2_302_672_896));
        for (member, level, chunk, start, gives) in [
            (small, Level::Raid0, 4, 2048, 129_024),
            (small, Level::Raid0, 512, 4096, 126_976),
            (small, Level::Raid0, 16_384, 67_584, 32_768),
            (small, Level::Raid1, 0, 2048, 129_024),
            (middle, Level::Raid0, 64, 18_432, 18_855_936),
            (middle, Level::Raid0, 16_384, 67_584, 18_776_064),
            (large, Level::Linear, 0, 264_192, 312_235_808),
            (large, Level::Raid0, 64, 264_192, 312_235_776),
            (large, Level::Raid0, 512, 264_192, 312_235_008),
            (large, Level::Raid1, 0, 264_192, 312_235_776),
            (large, Level::Raid10, 64, 264_192, 312_235_776),
            (leg, Level::Raid0, 512, 4096, 2_859_008),
            (leg, Level::Raid0, 640, 6144, 2_856_960),
            (leg, Level::Raid0, 768, 6144, 2_856_960),
            (leg, Level::Raid0, 1536, 10_240, 2_850_816),
            (second, Level::Raid0, 640, 6144, 4_489_216),
            (second, Level::Raid0, 1536, 10_240, 4_485_120),
            (huge, Level::Raid0, 512, 264_192, 3_145_463_808),
            (huge, Level::Raid1, 0, 264_192, 3_145_463_808),
        ] {
            let array = array(level, chunk);
            let found = (
                Metadata::V1_2.data_start(member, array.chunk()).get() / SECTOR,
                Metadata::V1_2.usable(member, &array).get() / SECTOR,
            );
            assert_eq!(found, (start, gives), "{member} {level} {chunk}");
        }
    }

    #[test]
    fn odd_chunks_are_masked_as_the_kernel_does() {
        // Seen on Linux 6.1: two members that give 2037504 sectors each, chunk 192 KiB.
        assert_eq!(whole_chunks(2_037_504 * SECTOR, 192 << 10), 2_037_248 * SECTOR);
        assert_eq!(whole_chunks(2_037_504 * SECTOR, 128 << 10), 2_037_504 * SECTOR);
        assert_eq!(whole_chunks(1000, 1), 1000);
    }

    #[test]
    fn members_without_room_give_nothing() {
        for size in [0, 1, 4096, 65_536, 1 << 20] {
            let member = Bytes::new(size);
            assert_eq!(Metadata::V1_2.usable(member, &array(Level::Raid0, 512)), Bytes::ZERO);
        }
        Metadata::V1_2.usable(Bytes::new(u64::MAX), &array(Level::Raid0, 4));
        Metadata::V0_90.usable(Bytes::new(u64::MAX), &array(Level::Raid1, 0));
    }
}
