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
/// Drives of a simulation share one. How often pages move depends on how full the flash is, and on how unequal pages are
/// used, not on how many there are.
#[derive(Debug)]
pub(super) struct PageMap {
    /// Place of each page of data.
    places: Vec<u32>,
    /// Page of data at each place; `NOWHERE` if it is dead.
    pages: Vec<u32>,
    /// Live pages of each unit.
    live: Vec<u16>,
    /// Where the next page goes.
    next: usize,
    /// Erased units; the open one is none of them.
    erased: Vec<u32>,
}

impl PageMap {
    /// As full as it says, after uniform writes for so long that nothing changes any more.
    ///
    /// * `live_share`: share of the flash that holds data; more than 0.99 is that.
    /// * `pages`: of the flash, at least [`PAGES_MIN`].
    pub(super) fn new(live_share: f64, pages: u32, seed: u64) -> Self {
        let units = pages as usize / UNIT;
        // The open unit and the erased one are, together, half empty on average.
        let count = ((units - 1) * UNIT) as f64 * live_share.min(0.99);
        let count = (count as usize).max(1);
        let mut map = Self {
            places: vec![NOWHERE; count],
            pages: vec![NOWHERE; units * UNIT],
            live: vec![0; units],
            next: 0,
            erased: (1..units as u32).rev().collect(),
        };
        (0..count as u64).for_each(|page| _ = map.write(page));
        let mut random = Random::new(seed);
        // Each page three times: from then on units are as full as they ever are.
        (0..3 * count).for_each(|_| _ = map.write(random.below(count as u64)));
        map
    }

    /// Writes a page, which may be any number; returns how many pages are programmed for it.
    pub(super) fn write(&mut self, page: u64) -> u64 {
        self.put((page % self.places.len() as u64) as u32);
        // The open unit is a new one then, with room for all that is live in another.
        if self.erased.is_empty() { 1 + self.clean() } else { 1 }
    }

    /// The page goes to the open unit; where it was is dead.
    fn put(&mut self, page: u32) {
        let old = std::mem::replace(&mut self.places[page as usize], self.next as u32);
        if old != NOWHERE {
            self.pages[old as usize] = NOWHERE;
            self.live[old as usize / UNIT] -= 1;
        }
        self.pages[self.next] = page;
        self.live[self.next / UNIT] += 1;
        self.next += 1;
        if self.next.is_multiple_of(UNIT) {
            // After each write there is at least one.
            let unit = self.erased.pop().unwrap_or(0);
            self.next = unit as usize * UNIT;
        }
    }

    /// Empties the unit with the fewest live pages; returns how many these were.
    fn clean(&mut self) -> u64 {
        let open = self.next / UNIT;
        let (mut victim, mut least) = (open, u16::MAX);
        for (unit, &live) in self.live.iter().enumerate() {
            if live < least && unit != open {
                (victim, least) = (unit, live);
            }
        }
        for place in victim * UNIT..(victim + 1) * UNIT {
            let page = self.pages[place];
            if page != NOWHERE {
                self.put(page);
            }
        }
        self.erased.push(victim as u32);
        u64::from(least)
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
        let programmed: u64 = (0..count).map(|_| map.write(random.bits() >> 8)).sum();
        programmed as f64 / f64::from(count)
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
        let mut map = PageMap::new(0.8, PAGES_MIN, 1);
        let count = map.places.len() as u64;
        let pass = |map: &mut PageMap| (0..count).map(|page| map.write(page)).sum::<u64>();
        (0..3).for_each(|_| _ = pass(&mut map));
        assert_eq!(pass(&mut map), count);
    }
}
