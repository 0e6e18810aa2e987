//! What is under a path, and what may be written to it: reads sysfs and procfs, judges, and
//! itself writes nothing to any target.

mod alignment;
mod block;
mod host;
mod ledger;
mod machine;
mod mounts;
mod target;

pub use alignment::{
    Alignment, AlignmentSource, DirectAlignment, direct_alignment, direct_alignment_of,
};
pub use block::{BlockDevice, BlockKind};
pub use host::Host;
pub use ledger::{Counters, DeviceCounters, Difference, Ledger, UnknownCounters, difference};
pub use machine::machine;
pub use mounts::{DeviceNumber, Mount, mount_of, mounts};
pub use target::{FileId, Nature, PathFacts, PathKind, Space, Target, TargetError, inspect, look};
