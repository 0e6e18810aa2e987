//! The user's wish to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts how often the user asked to stop: once ends the visit in an orderly way and stores it,
/// twice leaves at once. Cloned into a signal handler; nothing but an atomic.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicU32>);

impl Interrupt {
    /// One more wish. Safe in a signal handler.
    pub fn press(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn stops(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 1
    }

    /// Whether to stop without waiting for anything.
    pub fn now(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 2
    }
}
