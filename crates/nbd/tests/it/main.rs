//! The server as clients see it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are no tests to clippy")]

mod client;
mod commands;
mod handshake;
mod memory;
mod nonsense;
