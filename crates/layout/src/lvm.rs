//! Where LVM puts data.

use units::Bytes;

use crate::array::Array;
use crate::stack::StackSpec;
use crate::whole;

/// Data begins at a multiple of this unless something else is asked for; so it has since 2.02.
pub const ALIGNMENT_DEFAULT: Bytes = Bytes::mib(1);

/// The size of an extent unless something else is asked for.
pub const EXTENT_DEFAULT: Bytes = Bytes::mib(4);

/// Data that is to begin at a full stripe of what lies below: a multiple of its data width.
///
/// * `width`: bytes of data in a full stripe below; `None` where nothing is striped.
/// * Returns what `pvcreate --dataalignment` is to be told: data begins at the first multiple of
///   it behind 1 MiB of metadata.
pub fn data_alignment(width: Option<Bytes>) -> Bytes {
    match width {
        // A divisor of what is usual changes nothing.
        Some(width) if !ALIGNMENT_DEFAULT.is_multiple_of(width) => width,
        _ => ALIGNMENT_DEFAULT,
    }
}

/// Where data begins on a member.
pub fn data_start(alignment: Bytes) -> Bytes {
    let unit = alignment.get().max(1);
    Bytes::new(ALIGNMENT_DEFAULT.get().div_ceil(unit).saturating_mul(unit))
}

/// Alignment of the members of a volume that is an array itself.
pub(crate) fn alignment_of_leg(array: &Array) -> Bytes {
    data_alignment(array.chunk())
}

/// Alignment of legs under a volume over them.
pub(crate) fn alignment_of_legs(stack: &StackSpec) -> Bytes {
    let leg = stack.legs.first().and_then(|leg| leg.array().ok().flatten());
    let width = leg.and_then(|array| array.data_width());
    // The legs may be arrays made elsewhere: then the stripe over them says what they like.
    let piece = whole::top_array(stack).and_then(|top| top.chunk());
    data_alignment(width.or(piece))
}

/// The smallest extent from 4 MiB that holds whole stripes.
///
/// * `alignment`: of the data; a full stripe below, or a multiple.
/// * `chunk`: of the volume itself, which has to fit.
pub fn extent_size(alignment: Bytes, chunk: Option<Bytes>) -> Bytes {
    let piece = chunk.map_or(1, Bytes::get);
    let unit = multiple_of_both(alignment.get().max(1), piece.max(1));
    // Sizes that are no power of two must be multiples of 128 KiB.
    let unit = if unit.is_power_of_two() { unit } else { multiple_of_both(unit, 128 << 10) };
    Bytes::new(EXTENT_DEFAULT.get().div_ceil(unit).saturating_mul(unit))
}

pub(crate) fn multiple_of_both(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).saturating_mul(b)
}
