//! What an overlay passes on of the file that holds the bytes: when it was made, and its length.
//! It tells whether two names are of one file where no path leads from one to the other.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, Statx, StatxFlags};

/// Seconds and nanoseconds.
type Timestamp = (i64, u32);

/// When a file was made, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Born {
    /// Not all file systems keep it.
    pub at: Option<Timestamp>,
    pub length: u64,
}

/// Whether two names are of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    No,
    /// By their lengths they may be.
    Unknown,
    Yes,
}

impl Born {
    /// What `statx(2)` has to be asked for.
    pub const MASK: StatxFlags = StatxFlags::BTIME.union(StatxFlags::SIZE);

    pub fn of(path: &Path) -> Option<Self> {
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        Some(Self::seen(&rustix::fs::statx(CWD, path, flags, Self::MASK).ok()?))
    }

    /// * `found`: asked for `MASK`.
    pub fn seen(found: &Statx) -> Self {
        let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let time = found.stx_btime;
        Self { at: has_birth.then_some((time.tv_sec, time.tv_nsec)), length: found.stx_size }
    }

    /// One file keeps its birth under all names.
    pub fn has_birth_of(&self, other: &Self) -> bool {
        self.at == other.at
    }

    pub fn like(&self, other: &Self) -> Likeness {
        match (self.at, other.at) {
            _ if self.length != other.length => Likeness::No,
            (Some(one), Some(other)) if one == other => Likeness::Yes,
            (None, None) => Likeness::Unknown,
            _ => Likeness::No,
        }
    }
}

/// Whether an overlay may give a file that number. It puts the number of a directory into the highest
/// bits, if there are several file systems.
pub(crate) fn may_have_number(shown: u64, real: u64) -> bool {
    const BITS: u64 = (1 << 48) - 1;
    shown & BITS == real & BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_alike_by_birth_and_length() {
        let born = |at, length| Born { at, length };
        let (early, late) = (Some((7, 1)), Some((7, 2)));
        assert_eq!(born(early, 5).like(&born(early, 5)), Likeness::Yes);
        assert_eq!(born(early, 5).like(&born(late, 5)), Likeness::No);
        assert_eq!(born(early, 5).like(&born(early, 6)), Likeness::No);
        assert_eq!(born(None, 5).like(&born(None, 5)), Likeness::Unknown);
        assert_eq!(born(None, 5).like(&born(None, 6)), Likeness::No);
        assert_eq!(born(None, 5).like(&born(early, 5)), Likeness::No);
        assert!(Likeness::No < Likeness::Unknown && Likeness::Unknown < Likeness::Yes);
    }

    #[test]
    fn overlays_may_put_a_directory_into_the_number() {
        assert!(may_have_number(77, 77) && may_have_number(1 << 63 | 77, 77));
        assert!(!may_have_number(78, 77));
    }
}
