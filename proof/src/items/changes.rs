//! Change points and drift.

use crate::Proof;

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[];
