//! What operations and workers are called.

use serde::{Deserialize, Serialize};

/// So many operations may a load have.
pub const OPS_MAX: usize = 1 << OP_BITS;
pub(crate) const OP_BITS: u32 = 5;

/// An operation, interned: its place in the list of names that a loop hands to
/// [`crate::merge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OpId(pub u8);

impl OpId {
    /// Below [`OPS_MAX`], which spares the hot path a check.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize & (OPS_MAX - 1)
    }
}

/// A worker of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId {
    /// Index of its stream in the visit.
    pub stream: u32,
    /// Its number within the stream.
    pub worker: u32,
}
