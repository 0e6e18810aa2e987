//! The behaviour of `stack`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail by panic, and say on stdout what they skip"
)]

mod captured;
mod common;
mod decisions;
mod hidden_users;
mod lease_table;
mod links;
mod names;
mod probe;
mod same_bytes;
mod this_machine;
