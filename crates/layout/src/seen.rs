//! Arrays that are there already, by the words that the kernel has for them.
//!
//! [`Array`] refuses what nobody should build; whoever looks at what others built has to take it
//! as it is.

use units::{ByteOffset, Bytes};

use crate::array::{Array, Geometry, Level};
use crate::whole::{MeanCost, Whole};

/// Copies that a raid10 keeps where the kernel does not say.
const COPIES_USUAL: u32 = 2;

/// An array with stripes, as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    level: Level,
    geometry: Geometry,
    members: u32,
}

/// The level that the kernel means by a word: those of md, and the targets of device mapper.
///
/// `raid4` keeps its parity on one member alone; for all that is reckoned here it is `raid5`.
pub fn level(word: &str) -> Option<Level> {
    Some(match word {
        "linear" => Level::Linear,
        "raid0" | "striped" => Level::Raid0,
        "raid1" | "mirror" => Level::Raid1,
        "raid10" => Level::Raid10,
        "raid4" | "raid5" => Level::Raid5,
        "raid6" => Level::Raid6,
        _ => return None,
    })
}

/// Copies that md's number of a layout of raid10 stands for: near copies times far copies.
pub const fn copies(md_layout: u64) -> u32 {
    let near = (md_layout & 0xff) as u32;
    let far = ((md_layout >> 8) & 0xff) as u32;
    let (near, far) = (if near == 0 { 1 } else { near }, if far == 0 { 1 } else { far });
    near * far
}

impl Seen {
    /// What is seen of an array.
    ///
    /// * `word`: its level, as the kernel calls it.
    /// * `chunk`: bytes on one member before the next.
    /// * `copies`: of raid10, see [`copies`]; 2 where that is not known.
    /// * `None` for what has no stripe of whole members: linear, mirrors, a raid10 over members
    ///   that its copies do not divide, too few members, a chunk of 0.
    pub fn new(word: &str, members: u32, chunk: Bytes, copies: Option<u32>) -> Option<Self> {
        let level = level(word).filter(|level| level.has_chunk())?;
        let copies = copies.unwrap_or(COPIES_USUAL).max(1);
        let count = match level {
            Level::Raid10 => Some(members / copies).filter(|_| members.is_multiple_of(copies))?,
            _ => level.data_chunks(members),
        };
        let geometry = Geometry { unit: chunk, count };
        // A width past 64 bits is none.
        chunk.get().checked_mul(u64::from(count)).filter(|&width| width > 0)?;
        Some(Self { level, geometry, members })
    }

    /// How data is spread.
    pub const fn level(self) -> Level {
        self.level
    }

    /// Its stripes.
    pub const fn geometry(self) -> Geometry {
        self.geometry
    }

    /// The same over the same members with another chunk.
    pub fn with_chunk(self, chunk: Bytes) -> Option<Self> {
        let geometry = Geometry { unit: chunk, ..self.geometry };
        chunk.get().checked_mul(u64::from(geometry.count)).filter(|&width| width > 0)?;
        Some(Self { geometry, ..self })
    }

    /// What writes of a size cost its members, wherever they are, at multiples of their size.
    ///
    /// * `start`: where the data that is written to begins on it.
    /// * `None` where no such array could be built here, and for a raid10 that keeps other than
    ///   two copies.
    pub fn mean_write_cost(self, start: ByteOffset, size: Bytes) -> Option<MeanCost> {
        let array = Array::new(self.level, self.members, Some(self.geometry.unit)).ok()?;
        let is_it = array.geometry() == Some(self.geometry);
        is_it.then(|| Whole::of_array(array, start).mean_write_cost(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(word: &str, members: u32, copies: Option<u32>) -> Option<u32> {
        Seen::new(word, members, Bytes::kib(64), copies).map(|seen| seen.geometry().count)
    }

    #[test]
    fn what_can_be_built_is_seen_as_it_was_planned() {
        for kind in Level::ALL.into_iter().filter(|kind| kind.has_chunk()) {
            // The kernel has no word for it: it is two arrays.
            if kind == Level::Raid01 {
                continue;
            }
            for members in kind.members_min()..20 {
                let planned = Array::new(kind, members, Some(Bytes::kib(64))).unwrap();
                let seen = Seen::new(kind.name(), members, Bytes::kib(64), None);
                if kind == Level::Raid10 && members % 2 == 1 {
                    assert_eq!(seen, None);
                } else {
                    assert_eq!(seen.map(Seen::geometry), planned.geometry(), "{kind} {members}");
                }
            }
        }
    }

    #[test]
    fn the_kernels_words_and_numbers_are_understood() {
        assert_eq!(count("striped", 3, None), Some(3));
        assert_eq!(count("raid4", 4, None), Some(3));
        assert_eq!(count("raid10", 4, Some(copies(0x102))), Some(2));
        assert_eq!(count("raid10", 6, Some(copies(0x103))), Some(2));
        assert_eq!(count("raid10", 4, Some(copies(0x201))), Some(2));
        assert_eq!(count("raid10", 3, Some(2)), None);
        assert_eq!(count("raid10", 4, Some(copies(u64::MAX))), None);
        for (word, members) in
            [("raid1", 2), ("linear", 2), ("crypt", 1), ("raid6", 1), ("raid5", 0)]
        {
            assert_eq!(count(word, members, None), None, "{word}");
        }
        let of = |chunk| Seen::new("raid0", u32::MAX, Bytes::new(chunk), None);
        assert_eq!((of(0), of(u64::MAX)), (None, None));
    }

    #[test]
    fn a_write_costs_what_the_same_array_costs_when_it_is_planned() {
        let seen = Seen::new("raid5", 4, Bytes::kib(64), None).unwrap();
        let cost = |start| seen.mean_write_cost(start, Bytes::kib(192)).unwrap();
        assert_eq!(cost(ByteOffset::ZERO).read_bytes, 0.0);
        // Half a chunk off: of one stripe half a chunk is left, of the next it has half a chunk.
        assert_eq!(cost(ByteOffset::new(32 << 10)).read_bytes, f64::from(96 << 10));
        let odd = Seen::new("raid5", 4, Bytes::new(1000), None).unwrap();
        assert_eq!(odd.mean_write_cost(ByteOffset::ZERO, Bytes::kib(4)), None);
        let three = Seen::new("raid10", 6, Bytes::kib(64), Some(3)).unwrap();
        assert_eq!(three.mean_write_cost(ByteOffset::ZERO, Bytes::kib(4)), None);
    }
}
