//! What a controller's cache has still to write.

use std::collections::VecDeque;

/// The least that a write takes of the cache, in bytes.
const PAGE: u64 = 4096;

/// More runs than this are not kept apart; of larger caches the least is more.
const RUNS_MAX: u64 = 1 << 22;

/// Writes that lie one after the other become one, of up to so many bytes.
const RUN_MAX: u64 = 1 << 30;

/// Of a full cache, what is free: room for writes of the kind that comes in, which keep the drives at
/// work. The rest is never written.
const FREE_SHARE: u64 = 256;

/// Bytes in sequence that nobody has written to the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DirtyRun {
    pub(super) start: u64,
    pub(super) length: u64,
    /// Bytes of the cache that it takes.
    pub(super) room: u64,
    /// Whether it goes on where another write ended.
    is_sequence: bool,
}

/// Dirty data, oldest first.
#[derive(Debug)]
pub(super) struct DirtyCache {
    runs: VecDeque<DirtyRun>,
    runs_max: usize,
    size: u64,
    least: u64,
    /// Where the latest write ended.
    end: u64,
    /// Bytes of the cache that writes have asked for, and that destaging has given back, ever.
    asked: u64,
    freed: u64,
}

impl DirtyCache {
    /// * `slots`: writes that may wait for room.
    pub(super) fn new(size: u64, is_full: bool, slots: u32) -> Self {
        let least = PAGE.max(size / RUNS_MAX);
        let runs_max = (size / least) as usize + slots as usize + 1;
        let asked = if is_full { size - size / FREE_SHARE } else { 0 };
        let runs = VecDeque::with_capacity(runs_max);
        Self { runs, runs_max, size, least, end: u64::MAX, asked, freed: 0 }
    }

    /// Takes a write; returns its ticket: see [`DirtyCache::has_room`].
    pub(super) fn push(&mut self, start: u64, length: u64) -> u64 {
        let is_sequence = std::mem::replace(&mut self.end, start + length) == start;
        if let Some(last) = self.runs.back_mut().filter(|last| is_sequence && last.length < RUN_MAX)
        {
            last.is_sequence = true;
            last.length += length;
            // Parts of a page in sequence share it.
            let room = last.length.max(last.room);
            self.asked += room - last.room;
            last.room = room;
            return self.asked;
        }
        debug_assert!(self.runs.len() < self.runs_max, "the least room bounds the number of runs");
        let room = length.max(self.least);
        self.runs.push_back(DirtyRun { start, length, room, is_sequence });
        self.asked += room;
        self.asked
    }

    /// Whether the write with this ticket is in the cache.
    pub(super) fn has_room(&self, ticket: u64) -> bool {
        ticket <= self.freed + self.size
    }

    /// What to write next: the oldest run, up to `most` bytes that end with a stripe. Of a run that
    /// still grows only whole stripes, unless `is_idle`: the rest of the last may follow.
    ///
    /// * `width`: bytes of data in a full stripe, of which `most` is a multiple.
    pub(super) fn take(&mut self, width: u64, most: u64, is_idle: bool) -> Option<DirtyRun> {
        let is_last = self.runs.len() == 1;
        let first = self.runs.front_mut()?;
        let mut length = first.length.min(most - first.start % width);
        if is_last && first.is_sequence {
            let whole = (first.start + length) / width * width;
            match whole.checked_sub(first.start).filter(|whole| *whole > 0) {
                Some(whole) => length = whole,
                None if is_idle => {}
                None => return None,
            }
        }
        if first.length == length {
            return self.runs.pop_front();
        }
        let taken = DirtyRun { length, room: length, ..*first };
        first.start += length;
        first.length -= length;
        first.room -= length;
        Some(taken)
    }

    /// A run has been written.
    pub(super) fn free(&mut self, run_room: u64) {
        self.freed += run_room;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    #[test]
    fn writes_wait_for_as_much_as_is_too_much() {
        let mut cache = DirtyCache::new(8 * KIB, false, 4);
        let tickets = [0, 100, 200, 300].map(|start| cache.push(start * KIB, 4 * KIB));
        assert_eq!(tickets.map(|one| cache.has_room(one)), [true, true, false, false]);
        let first = cache.take(64 * KIB, 64 * KIB, true).unwrap();
        assert_eq!((first.start, first.room), (0, 4 * KIB));
        assert!(!cache.has_room(tickets[2]), "it is not written yet");
        cache.free(first.room);
        assert_eq!(tickets.map(|one| cache.has_room(one)), [true, true, true, false]);
    }

    #[test]
    fn sequences_leave_as_full_stripes() {
        let mut cache = DirtyCache::new(1 << 20, false, 4);
        for at in 15..65 {
            cache.push(at * 4 * KIB, 4 * KIB);
        }
        let mut take = |is_idle| {
            let run = cache.take(64 * KIB, 128 * KIB, is_idle);
            run.map(|run| (run.start / KIB, run.length / KIB, run.room / KIB))
        };
        assert_eq!(
            [(); 3].map(|()| take(false)),
            [Some((60, 68, 68)), Some((128, 128, 128)), None]
        );
        assert_eq!([(); 2].map(|()| take(true)), [Some((256, 4, 4)), None]);
        // Sectors share a page. What does not grow leaves as it is.
        for at in (0..8).chain([1000]) {
            cache.push(at * 512, 512);
        }
        let run = cache.take(64 * KIB, 128 * KIB, false).unwrap();
        assert_eq!((run.length, run.room), (4 * KIB, 4 * KIB));
    }

    #[test]
    fn a_full_cache_takes_as_much_as_is_written() {
        let mut cache = DirtyCache::new(1 << 20, true, 4);
        let tickets = [0, 9].map(|at| cache.push(at * 4 * KIB, 4 * KIB));
        assert_eq!(tickets.map(|one| cache.has_room(one)), [true, false]);
        let first = cache.take(64 * KIB, 64 * KIB, true).unwrap();
        cache.free(first.room);
        assert_eq!(tickets.map(|one| cache.has_room(one)), [true, true]);
    }
}
