//! A set of pages, in order.

/// Bits of a word.
const BITS: u64 = u64::BITS as u64;

/// Pages as bits, and above them levels of which each bit says whether a word below has any.
///
/// The next page from any place on is found in as many steps as there are levels: six at most.
/// Memory that no page ever fell into is never touched.
#[derive(Debug)]
pub(super) struct PageSet {
    levels: Vec<Vec<u64>>,
}

impl PageSet {
    pub(super) fn new(pages: u64) -> Self {
        let mut levels = Vec::new();
        let mut words = pages;
        while words > 1 || levels.is_empty() {
            words = words.div_ceil(BITS).max(1);
            levels.push(vec![0; words as usize]);
        }
        Self { levels }
    }

    /// Adds those from `from` to before `to`. Returns how many are new.
    pub(super) fn insert(&mut self, from: u64, to: u64) -> u64 {
        let mut added = 0;
        for at in from / BITS..to.div_ceil(BITS) {
            let bits = within(at, from, to);
            let word = &mut self.levels[0][at as usize];
            let before = std::mem::replace(word, *word | bits);
            added += u64::from((bits & !before).count_ones());
            self.mark(at, before == 0, |word, bit| *word |= bit);
        }
        added
    }

    /// Takes those from `from` to before `to` out, all of which are in it.
    pub(super) fn remove(&mut self, from: u64, to: u64) {
        for at in from / BITS..to.div_ceil(BITS) {
            let word = &mut self.levels[0][at as usize];
            *word &= !within(at, from, to);
            let is_empty = *word == 0;
            self.mark(at, is_empty, |word, bit| *word &= !bit);
        }
    }

    /// Tells the levels above that a word began or ceased to be empty.
    fn mark(&mut self, mut at: u64, mut goes_on: bool, change: impl Fn(&mut u64, u64)) {
        for level in &mut self.levels[1..] {
            if !goes_on {
                return;
            }
            let word = &mut level[(at / BITS) as usize];
            let before = *word;
            change(word, 1 << (at % BITS));
            goes_on = before == 0 || *word == 0;
            at /= BITS;
        }
    }

    /// The first from `from` on.
    pub(super) fn next(&self, from: u64) -> Option<u64> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let bits = level.get((at / BITS) as usize)? & (u64::MAX << (at % BITS));
            if bits != 0 {
                let found = at / BITS * BITS + u64::from(bits.trailing_zeros());
                let below = self.levels[..height].iter().rev();
                return Some(below.fold(found, |found, level| {
                    found * BITS + u64::from(level[found as usize].trailing_zeros())
                }));
            }
            at = at / BITS + 1;
        }
        None
    }

    /// The first from `from` to before `to` that is not in it; else `to`.
    pub(super) fn end(&self, from: u64, to: u64) -> u64 {
        let mut at = from;
        while at < to {
            let missing = !self.levels[0][(at / BITS) as usize] >> (at % BITS);
            if missing != 0 {
                return to.min(at + u64::from(missing.trailing_zeros()));
            }
            at = (at / BITS + 1) * BITS;
        }
        to
    }
}

/// The bits of a word that lie from `from` to before `to`.
fn within(word: u64, from: u64, to: u64) -> u64 {
    let low = from.saturating_sub(word * BITS);
    let high = BITS - (to - word * BITS).min(BITS);
    (u64::MAX << low) & (u64::MAX >> high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_is_a_set(
            pages in prop::sample::select(vec![1u64, 64, 65, 4096, 4097, 300_000]),
            changes in prop::collection::vec((any::<bool>(), any::<u64>(), 1u64..200), 1..60),
        ) {
            let (mut set, mut wanted) = (PageSet::new(pages), BTreeSet::new());
            for (is_added, from, length) in changes {
                let from = from % pages;
                let to = pages.min(from + length);
                let next = wanted.range(from..).next().copied();
                prop_assert_eq!(set.next(from), next);
                let end = (from..to).find(|at| !wanted.contains(at)).unwrap_or(to);
                prop_assert_eq!(set.end(from, to), end);
                if is_added {
                    let new = (from..to).filter(|at| wanted.insert(*at)).count() as u64;
                    prop_assert_eq!(set.insert(from, to), new);
                } else if end > from {
                    set.remove(from, end);
                    (from..end).for_each(|at| { wanted.remove(&at); });
                }
            }
            prop_assert_eq!(set.next(pages), None);
        }
    }
}
