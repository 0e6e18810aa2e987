//! Doing what was planned for a stack, and undoing it: the only part of this room that changes
//! anything, and only what [`Allowed`] names.

mod act;
mod allowed;
mod built;
mod ends;
mod identity;
mod lacks;
mod there;
mod verify;
mod wait;

pub use act::{ActError, Said, Way, act, missing_programs, put_back, setting};
pub use allowed::{Allowed, NotAllowed};
pub use built::Built;
pub use ends::{EndsError, are_remains, blank_ends, block_of, end_marks};
pub use identity::{DeviceIdentity, identity};
pub use lacks::lacks;
pub use there::{ThereError, array_named, is_there, members_among, uuid_on};
pub use verify::verify;
pub use wait::{Progress, progress};
