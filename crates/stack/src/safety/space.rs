//! How much of a file system stays free.

use units::Bytes;

use super::refusal::{Refusal, RefusalReason};
use crate::mounts::DeviceNumber;
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

/// A file system that holds files of loop devices, and what a run may take of it.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    /// The first target above it.
    pub path: String,
    /// The loop devices.
    pub devices: Vec<String>,
    /// Where it is mounted.
    pub point: String,
    /// Which.
    pub number: DeviceNumber,
    /// Its space.
    pub space: Space,
    /// At most.
    pub takes: Bytes,
}

/// Pure: the same rule as for a file in that file system. A sentence for each.
pub(crate) fn judge_below(all: &[Below]) -> Result<Vec<String>, Refusal> {
    let (mut said, mut reasons) = (Vec::new(), Vec::new());
    for one in all.iter().filter(|one| one.takes > Bytes::ZERO) {
        let place = format!("{} below {}", one.point, one.devices.join(", "));
        let (needed, total, reserve) = (one.takes, one.space.total, space_reserve(one.space.total));
        let left = Bytes::new(one.space.free.get().saturating_sub(needed.get()));
        if left < reserve {
            let path = one.path.clone();
            let reason = RefusalReason::NoSpaceBelow { path, needed, place, left, total, reserve };
            reasons.push(reason);
        } else {
            said.push(format!(
                "May take {needed} more of {place}, which leaves {left} free of {total}."
            ));
        }
    }
    Refusal::new(reasons).map_or(Ok(said), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_loop_devices_leave_as_much_free_as_others() {
        let below = |free, takes| Below {
            path: "/dev/loop0".to_owned(),
            devices: vec!["/dev/loop0".to_owned(), "/dev/loop1".to_owned()],
            point: "/srv".to_owned(),
            number: DeviceNumber { major: 8, minor: 1 },
            space: Space { free: Bytes::gib(free), total: Bytes::gib(100) },
            takes: Bytes::gib(takes),
        };
        let said = judge_below(&[below(50, 45)]).unwrap();
        assert_eq!(
            said,
            [
                "May take 45 GiB more of /srv below /dev/loop0, /dev/loop1, which leaves 5 GiB free of \
                 100 GiB."
            ]
        );
        let refusal = judge_below(&[below(50, 46)]).unwrap_err();
        let text = refusal.to_string();
        assert!(text.starts_with("/dev/loop0 may take 46 GiB more of /srv"), "{text}");
        assert!(refusal.hint().unwrap().contains("make room there"), "{:?}", refusal.hint());
        assert!(judge_below(&[below(0, 0)]).unwrap().is_empty());
    }
}
