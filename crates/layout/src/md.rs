//! What mdadm keeps for itself on each member.

use units::{ByteOffset, Bytes};

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
        let least = chunk.map_or(0, |chunk| chunk.get().saturating_mul(2));
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
    pub fn usable(self, member: Bytes, chunk: Option<Bytes>) -> Bytes {
        let left = match self {
            Self::V0_90 => (member.get() & !((64 << 10) - 1)).saturating_sub(64 << 10),
            Self::V1_2 => member.get().saturating_sub(self.data_start(member, chunk).get()) & !1023,
        };
        let unit = chunk.map_or(1, Bytes::get).max(1);
        Bytes::new(left / unit * unit)
    }
}
