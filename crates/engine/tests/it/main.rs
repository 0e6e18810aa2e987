//! What the engine promises, on twins whose truth is known.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod addresses;
mod commits;
mod counters;
mod errors;
mod help;
mod laws;
mod load;
mod mixes;
mod pacing;
mod pairs;
mod payload;
mod ramp;
mod recording;
mod seeds;
mod stretch;
mod syncs;
mod verification;
