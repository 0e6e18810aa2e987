//! What is under a path, and what may be written to it: reads sysfs and procfs, judges, and
//! itself writes nothing to any target.

mod alignment;
mod block;
pub mod build;
mod gather;
mod held;
mod host;
mod input;
mod ledger;
mod link;
mod machine;
mod mark;
mod mounts;
mod probe;
mod safety;
mod shared;
mod signature;
mod target;
mod users;

pub use alignment::{
    Alignment, AlignmentSource, DirectAlignment, direct_alignment, direct_alignment_of,
};
pub use block::{BlockDevice, BlockKind};
pub use gather::{Own, gather};
pub use held::{Handle, Held, Imprint, lease, patiently};
pub use host::Host;
pub use input::open_regular;
pub use ledger::{
    Counters, DeviceCounters, Difference, Ledger, UnknownCounters, difference, read_ms,
};
pub use link::slowest_link;
pub use machine::machine;
pub use mark::{
    MARK_NAME, Mark, keeps_marks, mark_of, mark_of_held, mark_of_open, mark_of_scratch, mark_value,
    mark_value_growing, mark_value_released, scratch_owner, scratch_owner_of_open,
};
pub use mounts::{DeviceNumber, Mount, is_in_devtmpfs, mount_of, mounts};
pub use probe::{CaptureError, Serials, capture, database_log, stack_tree};
pub use safety::{
    Access, Action, BlockFacts, ConfirmError, Consent, DeviceUse, Facts, FileFacts, Lease, Permit,
    Place, Process, Refusal, RefusalReason, Subject, Users, decide, describe_all, row_of,
    space_reserve, suggest_scratch_size,
};
pub use shared::{share_bytes, targets_that_share_bytes};
pub use signature::{Family, ReadAt, Signature, probe};
pub use target::{
    FileId, Nature, PathFacts, PathKind, Space, Target, TargetError, inspect, is_unmounted, look,
    look_again,
};
pub use users::{confirm_alone, is_of_this_program, lock_holder, openers};
