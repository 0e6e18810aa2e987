//! The whole path on real files, loop devices and twins, and every fault that can be had without
//! a broken machine. What needs root or a tool says `skipped: ...` and passes without it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panic")]
#![expect(clippy::print_stderr, reason = "tests say what they skip and what they found")]

mod back_ends;
mod clocks;
mod copies;
mod databases;
mod every_suite;
mod exchanged;
mod faults;
mod hangs;
mod lab;
mod left_behind;
mod limits;
mod live;
mod order;
mod path;
mod places;
mod plumbing;
mod refusals;
mod room;
mod schema;
mod store_faults;
mod study;
mod study_guards;
mod study_left;
mod study_others;
mod study_steps;
mod verdicts;
mod verify;
mod volumes;
mod whole_files;
