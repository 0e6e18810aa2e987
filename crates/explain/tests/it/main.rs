//! Verdicts on stored runs.
#![expect(clippy::unwrap_used, reason = "tests; the lints only know functions marked as such")]

mod asked;
mod explained;
mod grids;
mod published;
mod streams;
