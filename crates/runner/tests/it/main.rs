//! Whole runs through the runner: on twins and on real files, all without root.

#![expect(clippy::unwrap_used, reason = "a failed test is told by a panic")]

mod directories;
mod exchanged;
mod faults;
mod files;
mod help;
mod models;
mod phases;
mod resume;
mod rounds;
mod targets;
mod whole;
