//! Where flash keeps its pages, and the cleaner that makes room: the one with the fewest live pages goes.

use stats::Random;

/// Pages of an erase unit: enough that cleaning is like that of large units.
const UNIT: usize = 512;

/// The fewest units with which cleaning is like that of many.
pub(super) const PAGES_MIN: u32 = 64 * UNIT as u32;

/// No page.
const NOWHERE: u32 = u32::MAX;

/// A small drive: 8 bytes for each page of its flash, and 2 for each unit.
///
/// What is moved goes to other units than what is written: else what is written in sequence could be
/// moved once for ever, since no unit is dead before the next is needed.
///
/// How often pages move depends on how full the flash is, and on how unequal pages are
/// used, not on how many there are.
#[derive(Clone, Debug)]
pub(super) struct PageMap {
    /// Place of each page of data.
    places: Vec<u32>,
    /// Page of data at each place; `NOWHERE` if it is dead.
    pages: Vec<u32>,
    /// Live pages of each unit.
    live: Vec<u16>,
    /// Where the next page goes: one that is written, and one that is moved.
    next: [usize; 2],
    /// Erased units; those that pages go to are none of them.
    erased: Vec<u32>,
    /// Pages that are moved for each that is written.
    moved: f64,
}

impl PageMap {
    /// As full as it says, after uniform writes for so long that nothing changes any more.
    ///
    /// * `live_share`: share of the flash that holds data; more than 0.99 is that.
    /// * `pages`: of the flash, at least [`PAGES_MIN`].
    pub(super) fn new(live_share: f64, pages: u32, seed: u64) -> Self {
        let units = pages as usize / UNIT;
        // One is erased, and of the two that pages go to half is empty on average.
        let count = ((units - 2) * UNIT) as f64 * live_share.min(0.98);
        let count = (count as usize).max(1);
        let mut map = Self {
            places: vec![NOWHERE; count],
            pages: vec![NOWHERE; units * UNIT],
            live: vec![0; units],
            next: [0, UNIT],
            erased: (2..units as u32).rev().collect(),
            moved: 0.0,
        };
        (0..count as u64).for_each(|page| _ = map.write(page));
        let mut random = Random::new(seed);
        // Each page three times: from then on units are as full as they ever are.
        (0..3 * count).for_each(|_| _ = map.write(random.below(count as u64)));
        map
    }

    /// Writes a page, which may be any number; returns how many pages are programmed for it: what
    /// cleaning moves is spread over the writes that it makes room for.
    pub(super) fn write(&mut self, page: u64) -> f64 {
        self.put((page % self.places.len() as u64) as u32, 0);
        let (mut moved, mut cleaned) = (0, 0);
        // One is for what the next cleaning moves.
        while self.erased.len() < 2 {
            moved += self.clean();
            cleaned += UNIT;
        }
        if cleaned > 0 {
            self.moved = moved as f64 / (cleaned - moved).max(1) as f64;
        }
        1.0 + self.moved
    }

    /// The page goes to the open unit of its kind, see `next`; where it was is dead.
    fn put(&mut self, page: u32, kind: usize) {
        let next = self.next[kind];
        let old = std::mem::replace(&mut self.places[page as usize], next as u32);
        if old != NOWHERE {
            self.pages[old as usize] = NOWHERE;
            self.live[old as usize / UNIT] -= 1;
        }
        self.pages[next] = page;
        self.live[next / UNIT] += 1;
        self.next[kind] += 1;
        if self.next[kind].is_multiple_of(UNIT) {
            // After each write there are at least two.
            let unit = self.erased.pop().unwrap_or(0);
            self.next[kind] = unit as usize * UNIT;
        }
    }

    /// Empties the unit with the fewest live pages; returns how many these were.
    fn clean(&mut self) -> usize {
        let open = self.next.map(|next| next / UNIT);
        let (mut victim, mut least) = (open[0], u16::MAX);
        // What is erased has no live page, and is not to be erased.
        for (unit, &live) in self.live.iter().enumerate() {
            if live < least && !open.contains(&unit) && !self.erased.contains(&(unit as u32)) {
                (victim, least) = (unit, live);
            }
        }
        for place in victim * UNIT..(victim + 1) * UNIT {
            let page = self.pages[place];
            if page != NOWHERE {
                self.put(page, 1);
            }
        }
        self.erased.push(victim as u32);
        usize::from(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleaning::write_amplification;

    fn amplification(live_share: f64) -> f64 {
        let mut map = PageMap::new(live_share, 1 << 17, 1);
        let mut random = Random::new(2);
        let count = 400_000;
        let programmed: f64 = (0..count).map(|_| map.write(random.bits() >> 8)).sum();
        programmed / f64::from(count)
    }

    #[test]
    fn cleaning_costs_what_the_law_says() {
        for live_share in [0.5, 0.7, 0.8, 0.9] {
            let (found, wanted) = (amplification(live_share), write_amplification(live_share));
            assert!((found / wanted - 1.0).abs() < 0.02, "{live_share}: {found}, wanted {wanted}");
        }
    }

    #[test]
    fn pages_are_where_the_map_says() {
        for live_share in [0.0, 0.3, 0.9, 1.0] {
            let mut map = PageMap::new(live_share, PAGES_MIN, 1);
            let mut random = Random::new(2);
            for _ in 0..20_000 {
                map.write(random.bits());
            }
            assert!((0u32..).zip(&map.places).all(|(page, at)| map.pages[*at as usize] == page));
            let all: usize = map.live.iter().map(|live| usize::from(*live)).sum();
            assert_eq!(all, map.places.len());
        }
    }

    #[test]
    fn writes_in_sequence_move_nothing_once_all_was_written() {
        for streams in [1, 2, 4] {
            let mut map = PageMap::new(0.878, PAGES_MIN, 1);
            let each = map.places.len() as u64 / streams;
            let mut pass = || {
                let pages = (0..each).flat_map(|at| (0..streams).map(move |n| n * each + at));
                pages.map(|page| map.write(page)).sum::<f64>()
            };
            (0..4).for_each(|_| _ = pass());
            assert_eq!(pass(), (streams * each) as f64, "{streams}");
        }
    }
}
