//! What a study left on a device, so that it is known again: another's bytes are never taken for
//! the study's own.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// The blocks of 4 KiB at both ends of a device that are not all zero: number of the block, and a
/// sum over its bytes.
///
/// The sum tells bytes apart that differ by chance; it is no protection against somebody who makes
/// others of the same sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Marks {
    blocks: BTreeMap<u64, u64>,
}

impl Marks {
    /// Of blocks that are not all zero.
    pub fn new(blocks: BTreeMap<u64, u64>) -> Self {
        Self { blocks }
    }

    /// Whether both ends are all zero.
    pub fn is_blank(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether a device that bore these may bear `now` without anybody else's doing: every block is
    /// what it was, or zero, since zeros are all that is written when a device is made blank again;
    /// or one of `erased`, where a tool was taking a signature off.
    pub fn may_become(&self, now: &Self, erased: &[u64]) -> bool {
        now.blocks
            .iter()
            .all(|(block, sum)| self.blocks.get(block) == Some(sum) || erased.contains(block))
    }
}

impl From<Marks> for String {
    fn from(marks: Marks) -> Self {
        let mut text = Self::new();
        for (block, sum) in &marks.blocks {
            let apart = if text.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{apart}{block}:{sum:x}");
        }
        text
    }
}

/// What is not understood is a block that no device bears: nothing is taken for the study's then.
impl From<String> for Marks {
    fn from(text: String) -> Self {
        let pair = |word: &str| {
            let (block, sum) = word.split_once(':')?;
            Some((block.parse().ok()?, u64::from_str_radix(sum, 16).ok()?))
        };
        Self { blocks: text.split_whitespace().filter_map(pair).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(blocks: &[(u64, u64)]) -> Marks {
        Marks::new(blocks.iter().copied().collect())
    }

    #[test]
    fn only_what_was_there_or_zeros_are_the_studys() {
        let left = marks(&[(0, 7), (3, 9)]);
        for (now, wanted) in [
            (marks(&[(0, 7), (3, 9)]), true),
            (marks(&[(3, 9)]), true),
            (marks(&[]), true),
            (marks(&[(0, 7), (3, 8)]), false),
            (marks(&[(0, 7), (3, 9), (4, 1)]), false),
        ] {
            assert_eq!(left.may_become(&now, &[]), wanted, "{now:?}");
        }
        assert!(left.may_become(&marks(&[(0, 1), (3, 9)]), &[0]), "its signature was taken off");
        assert!(!left.may_become(&marks(&[(0, 7), (3, 1)]), &[0]));
        assert!(!marks(&[]).may_become(&marks(&[(0, 1)]), &[]), "it was blank");
    }

    #[test]
    fn they_are_kept_as_text() {
        let left = marks(&[(0, 7), (3, u64::MAX)]);
        let text = serde_json::to_string(&left).unwrap();
        assert_eq!(text, "\"0:7 3:ffffffffffffffff\"");
        assert_eq!(serde_json::from_str::<Marks>(&text).unwrap(), left);
        assert_eq!(serde_json::from_str::<Marks>("\"x 1: :2\"").unwrap(), marks(&[]));
    }
}
