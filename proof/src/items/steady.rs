//! Steady state.

use crate::Proof;

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[];
