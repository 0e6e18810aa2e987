//! Behaviour of the twins.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail by panic"
)]

mod drive;
mod faulty;
mod memory;
mod model;
mod recording;
mod twin;
