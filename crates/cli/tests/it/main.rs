//! The program as a person meets it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panic")]

mod calibrate;
mod compare;
mod export;
mod help;
mod import;
mod input;
mod layout;
mod live;
mod odd;
mod parts;
mod refused;
mod run;
mod signals;
mod study;
mod suites;
mod world;
