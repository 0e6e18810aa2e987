//! Which factor matters.

use crate::Proof;

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[];
