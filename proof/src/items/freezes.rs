//! Freezes and honest latency.

use crate::Proof;

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[];
