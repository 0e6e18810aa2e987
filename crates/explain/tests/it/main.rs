//! Verdicts on stored runs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests; the lints only know functions marked as such"
)]

mod grids;
mod published;
