//! The I/O buffers of a back end: one mapping, one page-aligned stretch per slot.

use std::fmt;
use std::ptr::NonNull;

use device::{Errno, Slot};
use units::Bytes;

/// What the buffers hold at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Bytes that no storage can compress or deduplicate, from this seed.
    Incompressible {
        /// Same seed, same bytes.
        seed: u64,
    },
    /// As the kernel gives them: zeroes, not yet backed by memory. For buffers that are only
    /// read into.
    Untouched,
}

/// Memory for `slots` buffers. Page aligned: unaligned buffers cost some targets half their rate
/// and direct I/O refuses them.
pub(crate) struct Buffers {
    base: NonNull<u8>,
    /// From one slot to the next: whole pages.
    stride: usize,
    /// Of one slot, as asked for.
    length: usize,
    slots: usize,
}

// SAFETY: it is memory and nothing thread-bound. Who may touch which slot when is decided by the
// back ends: a slot in flight belongs to the request, any other to the device's owner.
unsafe impl Send for Buffers {}
// SAFETY: as above; shared references only hand out raw pointers.
unsafe impl Sync for Buffers {}

/// Size of a huge page on the machines that matter; only decides whether to advise.
const HUGE: usize = 2 << 20;

impl Buffers {
    /// Maps and fills. Fails with the errno of `mmap`, `EINVAL` when the sizes overflow.
    pub(crate) fn new(slots: u32, length: Bytes, fill: Fill) -> Result<Self, Errno> {
        let page = rustix::param::page_size();
        let slots = slots as usize;
        let length = usize::try_from(length.get()).map_err(|_| Errno::EINVAL)?;
        let stride = length.max(1).checked_next_multiple_of(page).ok_or(Errno::EINVAL)?;
        let total = stride.checked_mul(slots.max(1)).ok_or(Errno::EINVAL)?;
        let prot = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                total,
                prot,
                rustix::mm::MapFlags::PRIVATE,
            )
        }
        .map_err(|e| Errno(e.raw_os_error()))?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno(libc::ENOMEM))?;
        if total >= HUGE {
            // SAFETY: the range is the mapping just made. Advice that is refused costs nothing.
            let _ = unsafe {
                rustix::mm::madvise(base.as_ptr().cast(), total, rustix::mm::Advice::LinuxHugepage)
            };
        }
        let mut buffers = Self { base, stride, length, slots };
        if let Fill::Incompressible { seed } = fill {
            buffers.fill(seed);
        }
        Ok(buffers)
    }

    /// Overwrites all slots with the stream of `seed`.
    fn fill(&mut self, seed: u64) {
        let words = self.total() / 8;
        // SAFETY: the mapping is page aligned, so aligned for u64; it is `total` bytes long,
        // readable, writable, and borrowed mutably through `self`.
        let words = unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().cast(), words) };
        let mut state = seed;
        for word in words {
            *word = splitmix64(&mut state);
        }
    }

    pub(crate) fn total(&self) -> usize {
        self.stride * self.slots.max(1)
    }

    /// Of one slot, as asked for.
    #[inline]
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Where the buffer of `slot` starts; `slot` must be one of the slots.
    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> *mut u8 {
        debug_assert!((slot.0 as usize) < self.slots);
        self.base.as_ptr().wrapping_add(slot.0 as usize * self.stride)
    }

    /// The bytes of `slot`, or none if there is no such slot.
    ///
    /// # Safety
    /// No request on this slot is in flight while the slice lives.
    pub(crate) unsafe fn slice(&mut self, slot: Slot) -> &mut [u8] {
        if slot.0 as usize >= self.slots {
            return &mut [];
        }
        // SAFETY: inside the mapping, `length <= stride`; the caller says nobody else uses it.
        unsafe { std::slice::from_raw_parts_mut(self.at(slot), self.length) }
    }

    /// One kernel vector per slot, for registration.
    pub(crate) fn iovecs(&self) -> Vec<libc::iovec> {
        (0..self.slots as u32)
            .map(|slot| libc::iovec { iov_base: self.at(Slot(slot)).cast(), iov_len: self.length })
            .collect()
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, made in `new` with this length; nothing points into it
        // any more (back ends leak buffers with requests still in flight).
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.total()) };
    }
}

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffers({} x {} bytes)", self.slots, self.length)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014, with Stafford's mix 13): enough to defeat compression and
/// deduplication, and faster than memory.
pub(crate) const fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_distinct_and_replay_from_the_seed() {
        let fill = Fill::Incompressible { seed: 7 };
        let mut a = Buffers::new(3, Bytes::new(5000), fill).unwrap();
        let mut b = Buffers::new(3, Bytes::new(5000), fill).unwrap();
        for slot in (0..3).map(Slot) {
            assert_eq!(a.at(slot) as usize % 4096, 0);
            // SAFETY: nothing is in flight.
            let (x, y) = unsafe { (a.slice(slot).to_vec(), b.slice(slot).to_vec()) };
            assert_eq!(x.len(), 5000);
            assert_eq!(x, y, "seed 7");
            let distinct = x.iter().collect::<std::collections::HashSet<_>>().len();
            assert!(distinct > 200, "{distinct} different bytes: seed 7");
        }
        // SAFETY: nothing is in flight.
        let (first, second) = unsafe { (a.slice(Slot(0)).to_vec(), a.slice(Slot(1)).to_vec()) };
        assert_ne!(first, second, "seed 7");
        // SAFETY: nothing is in flight.
        assert!(unsafe { a.slice(Slot(3)) }.is_empty());
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(Buffers::new(u32::MAX, Bytes::new(u64::MAX), Fill::Untouched).is_err());
    }
}
