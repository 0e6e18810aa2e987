//! Times in which a device did nothing, and whose they were.

mod detect;

use record::VisitRecord;

use self::detect::Usual;
pub use self::detect::{DeviceGap, FREEZE, HICCUP, STALL, Tier};

/// Gaps of the whole device in a visit that are out of the ordinary in it: [`HICCUP`] and more,
/// and ten times its median time between completions and its 99th percentile of latency. In
/// order of time; none when the record cannot tell.
pub fn gaps(visit: &VisitRecord) -> Vec<DeviceGap> {
    detect::device_gaps(visit, &Usual::of(visit)).unwrap_or_default()
}

/// Whether the whole device paused in a visit, for however short: then the visit's rate says
/// less about the cell than its place in time does, and the cell may not be ended early.
pub fn stalled(visit: &VisitRecord) -> bool {
    !gaps(visit).is_empty()
}
