//! How much of a file system stays free.

use units::Bytes;

use crate::target::Space;

/// What must stay free on a file system of that size: 5 %, but at least 1 GiB and at most 8 GiB. 5 % of a large
/// file system would refuse a small file where terabytes are used and hundreds of gigabytes free.
pub fn space_reserve(total: Bytes) -> Bytes {
    // Rounded up: a reserve is a promise.
    Bytes::new(total.get().div_ceil(20)).clamp(Bytes::gib(1), Bytes::gib(8))
}

/// Of a file system of our own this part stays free.
pub(super) const OWN_RESERVE: u64 = 50;

/// Scratch files are cut to whole MiB.
const SCRATCH_UNIT: u64 = 1 << 20;

/// The largest scratch file up to `wanted` that leaves the reserve free: `wanted` itself, or
/// less in whole MiB; `None` if not even one MiB fits.
pub fn suggest_scratch_size(space: Space, wanted: Bytes) -> Option<Bytes> {
    let usable = space.free.get().saturating_sub(space_reserve(space.total).get());
    if usable >= wanted.get() {
        return Some(wanted);
    }
    let whole = usable / SCRATCH_UNIT * SCRATCH_UNIT;
    (whole > 0).then_some(Bytes::new(whole))
}
