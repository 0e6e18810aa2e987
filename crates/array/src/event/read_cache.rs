//! Which blocks a controller's cache keeps.

/// Blocks that may take each other's place.
const WAYS: usize = 16;

/// More than 64 GiB of the smallest blocks; larger caches have larger blocks.
const BLOCKS_MAX: u64 = 1 << 24;

/// No block.
const EMPTY: u32 = u32::MAX;

/// Labels of 16 blocks, the latest first: one line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Set([u32; WAYS]);

/// A cache that forgets what was not used for longest, of 16 blocks at a time: 4 bytes for each
/// block, and one access to memory.
///
/// Addresses in a row go to sets in a row, so any run as long as the cache fits. Uniform addresses
/// are found as often as in a cache that takes any block for any other.
#[derive(Debug)]
pub(super) struct ReadCache {
    sets: Vec<Set>,
    /// Bytes.
    block: u64,
}

impl ReadCache {
    /// Begins with the first `size` bytes of what it caches: uniform reads of more than that find
    /// their share from the first request on.
    pub(super) fn new(size: u64) -> Self {
        let block = 4096.max((size / BLOCKS_MAX).next_power_of_two());
        let count = (size / block / WAYS as u64).max(u64::from(size > 0)) as usize;
        // The run before the last is older.
        let labels = std::array::from_fn(|way| (WAYS - 1 - way) as u32);
        Self { sets: vec![Set(labels); count], block }
    }

    /// Whether all of it is there; from now on it is.
    pub(super) fn touch(&mut self, offset: u64, length: u64) -> bool {
        if self.sets.is_empty() {
            return false;
        }
        let blocks = offset / self.block..(offset + length).div_ceil(self.block);
        blocks.fold(true, |all, block| self.touch_block(block) & all)
    }

    fn touch_block(&mut self, block: u64) -> bool {
        let count = self.sets.len() as u64;
        let label = block / count;
        // Each run over all sets begins elsewhere: strides do not meet in one set.
        let set = (block % count + label * 0x9e37_79b1) % count;
        let Set(ways) = &mut self.sets[set as usize];
        let label = label.min(u64::from(EMPTY - 1)) as u32;
        let found = ways.iter().position(|way| *way == label);
        ways[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        ways[0] = label;
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Random;

    fn share(size: u64, addressed: u64) -> f64 {
        let mut cache = ReadCache::new(size);
        let mut random = Random::new(3);
        let hits = (0..200_000)
            .filter(|_| cache.touch(random.below(addressed / 4096) * 4096, 4096))
            .count();
        hits as f64 / 2e5
    }

    #[test]
    fn uniform_reads_find_their_share_and_a_run_that_fits_all() {
        assert_eq!(share(64 << 20, 64 << 20), 1.0);
        for times in [2, 3, 8] {
            let found = share(64 << 20, times * (64 << 20));
            assert!((found * times as f64 - 1.0).abs() < 0.02, "{times}: {found}");
        }
        assert_eq!(share(0, 1 << 20), 0.0);
    }

    #[test]
    fn a_run_longer_than_the_cache_finds_nothing_the_second_time() {
        let mut cache = ReadCache::new(1 << 20);
        let mut pass = || (0..512).filter(|at| cache.touch(at * 4096, 4096)).count();
        assert_eq!((pass(), pass(), pass()), (256, 0, 0));
    }

    #[test]
    fn what_is_used_stays() {
        let mut cache = ReadCache::new(1 << 20);
        for at in 0..2000 {
            cache.touch(at * 4096, 4096);
            assert!(at % 64 > 0 || cache.touch(0, 4096), "{at}");
        }
    }

    #[test]
    fn strides_use_all_of_it() {
        let mut cache = ReadCache::new(1 << 20);
        // One block of sixteen, as many as there is room for: most stay.
        let mut pass = || (0..256).filter(|at| cache.touch(at * 65_536, 4096)).count();
        pass();
        assert!(pass() > 200);
    }
}
