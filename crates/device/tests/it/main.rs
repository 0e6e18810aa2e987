//! Behaviour of the twins.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by panic")]

mod drive;
mod memory;
mod model;
