//! Btrfs over several devices.

use crate::array::Level;
use crate::stack::{Leg, Maker, StackSpec};

/// Profiles of data and metadata; none for one device, which has its own defaults.
///
/// Metadata of parity levels is mirrored: btrfs warns of parity for it.
pub fn profiles(stack: &StackSpec) -> Vec<String> {
    let Some((leg, level)) = leg_of(stack) else { return Vec::new() };
    let copies = match leg.members.len() {
        0..=2 => "raid1",
        3 => "raid1c3",
        _ => "raid1c4",
    };
    let alone = leg.members.len() == 1;
    let (data, metadata) = match level {
        Level::Linear if alone => ("single", "dup"),
        Level::Raid0 if alone => ("raid0", "dup"),
        Level::Linear => ("single", "raid1"),
        Level::Raid0 => ("raid0", "raid1"),
        Level::Raid1 => (copies, copies),
        Level::Raid10 | Level::Raid01 => ("raid10", "raid10"),
        Level::Raid5 => ("raid5", "raid1"),
        Level::Raid6 => ("raid6", "raid1c3"),
    };
    ["-d", data, "-m", metadata].map(ToOwned::to_owned).to_vec()
}

fn leg_of(stack: &StackSpec) -> Option<(&Leg, Level)> {
    let leg = stack.legs.first().filter(|leg| leg.maker == Maker::Btrfs)?;
    Some((leg, leg.level?))
}
