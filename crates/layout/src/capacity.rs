//! What is left of the devices when everything that makes the arrays has taken its share.

use units::Bytes;

use crate::array::{Array, Level};
use crate::lvm;
use crate::md::Metadata;
use crate::stack::{DeviceId, Leg, Maker, StackSpec};
use crate::steps::DeviceFacts;
use crate::whole;

/// The member or spare with the fewest bytes; `None` where nothing is known of any.
pub fn smallest_member(stack: &StackSpec, facts: &DeviceFacts) -> Option<(DeviceId, Bytes)> {
    let all = stack.legs.iter().flat_map(Leg::devices);
    let sizes = all.filter_map(|device| Some((device, facts.get(device)?.size)));
    sizes.min_by_key(|(_, size)| *size).map(|(device, size)| (device.clone(), size))
}

/// Bytes of each member that hold data or redundancy; zero where a member is too small.
///
/// * `member`: bytes of the smallest.
pub fn used_of_member(stack: &StackSpec, member: Bytes) -> Bytes {
    let Some(leg) = stack.legs.first() else { return Bytes::ZERO };
    let Ok(Some(array)) = leg.array() else { return member };
    match leg.maker {
        Maker::Md => {
            // Each half of a mirror of stripes is an array of its own.
            let inner = match array.level() {
                Level::Raid01 => half(&array).unwrap_or(array),
                _ => array,
            };
            Metadata::V1_2.usable(member, &inner)
        }
        Maker::Lvm => in_volume(member, &array),
        Maker::Device | Maker::Btrfs | Maker::Zfs => array.used(member),
    }
}

/// Bytes on a leg; on the device itself where it is one.
///
/// * `member`: bytes of the smallest.
pub fn of_leg(stack: &StackSpec, member: Bytes) -> Bytes {
    let used = used_of_member(stack, member);
    let leg = stack.legs.first().and_then(|leg| Some((leg, leg.array().ok()??)));
    match leg {
        Some((leg, array)) if leg.maker == Maker::Md && array.level() == Level::Raid01 => {
            let stripe = half(&array).map_or(used, |half| half.capacity(used));
            Array::new(Level::Raid1, 2, None)
                .map_or(stripe, |mirror| Metadata::V1_2.usable(stripe, &mirror))
        }
        Some((_, array)) => array.capacity(used),
        None => used,
    }
}

/// Bytes on the topmost device, or in the pool.
///
/// * `member`: bytes of the smallest.
/// * Exact for md and for volumes without redundancy; btrfs and zfs need some of it themselves.
/// * More than 2^64 - 1 are as many.
pub fn of_stack(stack: &StackSpec, member: Bytes) -> Bytes {
    let on_leg = of_leg(stack, member);
    let Some(top) = whole::top_array(stack) else {
        return Bytes::new(on_leg.get().saturating_mul(stack.legs.len() as u64));
    };
    let given = match stack.stripe.as_ref().map(|stripe| stripe.maker) {
        Some(Maker::Lvm) => {
            let alignment = lvm::alignment_of_legs(stack);
            in_extents(on_leg, alignment, &top)
        }
        Some(Maker::Md) => Metadata::V1_2.usable(on_leg, &top),
        _ => on_leg,
    };
    top.capacity(given)
}

fn half(array: &Array) -> Option<Array> {
    Array::new(Level::Raid0, array.members() / 2, array.chunk()).ok()
}

fn in_volume(device: Bytes, array: &Array) -> Bytes {
    in_extents(device, lvm::alignment_of_leg(array), array)
}

/// Whole extents behind LVM's header; a volume that can lose a member keeps one extent of each
/// for its own notes.
fn in_extents(device: Bytes, alignment: Bytes, array: &Array) -> Bytes {
    let extent = lvm::extent_size(alignment, array.chunk()).get().max(1);
    let left = device.get().saturating_sub(lvm::data_start(alignment).get()) / extent;
    let notes = u64::from(array.level().is_redundant());
    Bytes::new(left.saturating_sub(notes) * extent)
}
