//! What a controller's cache has still to write.

use super::page_set::PageSet;

/// What is dirty at a time, in bytes.
const PAGE: u64 = 4096;

/// More pages than this are not told apart; of larger arrays they are larger.
const PAGES_MAX: u64 = 1 << 31;

/// Of a full cache, what is free: room for writes of the kind that comes in, which keep the drives at
/// work. The rest is never written.
const FREE_SHARE: u64 = 1024;

/// Where dirty data may lie, and what of it is written together.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtySpace {
    /// Bytes of all places.
    pub(super) bytes: u64,
    /// Bytes of data in a full stripe.
    pub(super) stripe: u64,
    /// Bytes that are written together at most: full stripes.
    pub(super) together: u64,
}

/// Dirty data. A page that is written again before it was destaged takes no more room, and pages
/// are destaged in the order of their places, round and round: what lies near together, together.
#[derive(Debug)]
pub(super) struct DirtyCache {
    pages: PageSet,
    /// Bytes.
    page: u64,
    space: DirtySpace,
    size: u64,
    /// Page from which on the next is looked for.
    hand: u64,
    /// Where the latest write ended, and whether it went on where another had.
    end: u64,
    is_sequence: bool,
    /// Bytes of the cache that writes have asked for, and that destaging has given back, ever.
    asked: u64,
    freed: u64,
}

impl DirtyCache {
    pub(super) fn new(size: u64, is_full: bool, space: DirtySpace) -> Self {
        let page = PAGE.max(space.bytes.div_ceil(PAGES_MAX).next_power_of_two());
        let pages = if size > 0 { space.bytes.div_ceil(page) } else { 0 };
        Self {
            pages: PageSet::new(pages),
            page,
            space,
            size,
            hand: 0,
            end: u64::MAX,
            is_sequence: false,
            asked: if is_full { size - size / FREE_SHARE } else { 0 },
            freed: 0,
        }
    }

    /// Takes a write; returns its ticket: see [`DirtyCache::has_room`].
    pub(super) fn push(&mut self, start: u64, length: u64) -> u64 {
        self.is_sequence = std::mem::replace(&mut self.end, start + length) == start;
        let added = self.pages.insert(start / self.page, (start + length).div_ceil(self.page));
        self.asked += added * self.page;
        self.asked
    }

    /// Whether the write with this ticket is in the cache.
    pub(super) fn has_room(&self, ticket: u64) -> bool {
        ticket <= self.freed + self.size
    }

    /// Takes out what to write next; returns the bytes that it gives back when it is written.
    ///
    /// Of a sequence that still grows these are whole stripes, unless `is_idle`: the rest of the last
    /// may follow.
    ///
    /// * `write`: is given the bytes, from the first to before the last.
    pub(super) fn take(&mut self, is_idle: bool, mut write: impl FnMut(u64, u64)) -> Option<u64> {
        let mut from = self.first_from(self.hand)?;
        let mut to = self.stop(from, is_idle);
        if to <= from {
            // Only what still grows: is there anything else?
            from = self.first_from(self.end.div_ceil(self.page))?;
            to = self.stop(from, is_idle);
            if to <= from {
                return None;
            }
        }
        self.hand = to;
        let mut room = 0;
        while from < to {
            let end = self.pages.end(from, to);
            self.pages.remove(from, end);
            room += (end - from) * self.page;
            write(from * self.page, self.space.bytes.min(end * self.page));
            from = self.pages.next(end).unwrap_or(to);
        }
        Some(room)
    }

    /// The first dirty page from `page` on, else the first of all.
    fn first_from(&self, page: u64) -> Option<u64> {
        self.pages.next(page).or_else(|| self.pages.next(0))
    }

    /// Before which page what is written together with `from` ends.
    fn stop(&self, from: u64, is_idle: bool) -> u64 {
        let DirtySpace { stripe, together, .. } = self.space;
        let start = from * self.page;
        let mut stop = start / stripe * stripe + together;
        if !is_idle && self.is_sequence && (start..=stop).contains(&self.end) {
            stop = self.end / stripe * stripe;
        }
        stop.div_ceil(self.page)
    }

    /// What was taken out has been written.
    pub(super) fn free(&mut self, room: u64) {
        self.freed += room;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    const SPACE: DirtySpace = DirtySpace { bytes: 1 << 30, stripe: 64 * KIB, together: 128 * KIB };

    /// What is taken, in KiB.
    fn take(cache: &mut DirtyCache, is_idle: bool) -> Option<Vec<(u64, u64)>> {
        let mut runs = Vec::new();
        let room = cache.take(is_idle, |from, to| runs.push((from / KIB, (to - from) / KIB)))?;
        assert_eq!(room, runs.iter().map(|run| run.1 * KIB).sum::<u64>());
        Some(runs)
    }

    #[test]
    fn writes_wait_for_as_much_as_is_too_much() {
        let mut cache = DirtyCache::new(8 * KIB, false, SPACE);
        let tickets = [0, 200, 400, 600].map(|start| cache.push(start * KIB, 4 * KIB));
        assert_eq!(tickets.map(|one| cache.has_room(one)), [true, true, false, false]);
        let room = cache.take(false, |from, _| assert_eq!(from, 0)).unwrap();
        assert!(!cache.has_room(tickets[2]), "it is not written yet");
        cache.free(room);
        assert_eq!(tickets.map(|one| cache.has_room(one)), [true, true, true, false]);
    }

    #[test]
    fn what_is_written_again_takes_no_more_room_and_leaves_once() {
        let mut cache = DirtyCache::new(12 * KIB, false, SPACE);
        // Sectors share a page.
        let tickets = [8, 4, 9, 300, 8].map(|start| cache.push(start * KIB, 512));
        assert_eq!(tickets.map(|one| one / KIB), [4, 8, 8, 12, 12]);
        assert_eq!(take(&mut cache, false), Some(vec![(4, 8)]));
        // While it is on its way it may become dirty anew.
        assert_eq!(cache.push(8 * KIB, 512) / KIB, 16);
        let rest = [(); 3].map(|()| take(&mut cache, false));
        assert_eq!(rest, [Some(vec![(300, 4)]), Some(vec![(8, 4)]), None]);
    }

    #[test]
    fn what_lies_near_leaves_together_in_order() {
        let mut cache = DirtyCache::new(1 << 20, false, SPACE);
        for at in [500, 100, 800, 20, 600, 124] {
            cache.push(at * KIB, 8 * KIB);
        }
        let taken = [(); 4].map(|()| take(&mut cache, false));
        // Up to where a stripe ends: 128 and 576.
        let wanted =
            [vec![(20, 8), (100, 8), (124, 4)], vec![(128, 4)], vec![(500, 8)], vec![(600, 8)]];
        assert_eq!(taken, wanted.map(Some));
        // Behind the hand, and before it.
        cache.push(0, 4 * KIB);
        let taken = [(); 3].map(|()| take(&mut cache, false));
        assert_eq!(taken, [Some(vec![(800, 8)]), Some(vec![(0, 4)]), None]);
    }

    #[test]
    fn sequences_leave_as_full_stripes() {
        let mut cache = DirtyCache::new(1 << 20, false, SPACE);
        for at in 15..65 {
            cache.push(at * 4 * KIB, 4 * KIB);
        }
        let taken = [(); 3].map(|()| take(&mut cache, false));
        assert_eq!(taken, [Some(vec![(60, 68)]), Some(vec![(128, 128)]), None]);
        // Something else goes on meanwhile.
        cache.push(999 * KIB, 4 * KIB);
        cache.push(1003 * KIB, 4 * KIB);
        assert_eq!(take(&mut cache, false), Some(vec![(256, 4)]));
        assert_eq!(take(&mut cache, false), None);
        assert_eq!(take(&mut cache, true), Some(vec![(996, 12)]));
    }

    #[test]
    fn a_full_cache_takes_as_much_as_is_written() {
        let mut cache = DirtyCache::new(4 << 20, true, SPACE);
        let tickets = [0, 200].map(|at| cache.push(at * KIB, 4 * KIB));
        assert_eq!(tickets.map(|one| cache.has_room(one)), [true, false]);
        let room = cache.take(true, |_, _| {}).unwrap();
        cache.free(room);
        assert_eq!(tickets.map(|one| cache.has_room(one)), [true, true]);
    }
}
