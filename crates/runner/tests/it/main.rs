//! Whole runs through the runner: on twins and on real files, all without root.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail by panic, and say on stdout what they skip"
)]

mod directories;
mod exchanged;
mod faults;
mod files;
mod help;
mod leased;
mod models;
mod phases;
mod resume;
mod rounds;
mod targets;
mod whole;
