//! Many tests at once: Holm.
