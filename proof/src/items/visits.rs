//! Visits, rounds and stopping.

use crate::Proof;

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[];
