//! The program as a person meets it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panic")]

mod answer;
mod calibrate;
mod compare;
mod export;
mod gate;
mod golden;
mod help;
mod import;
mod input;
mod known;
mod layer;
mod layout;
mod line;
mod live;
#[path = "../../../stack/tests/it/common.rs"]
#[expect(dead_code, reason = "the tests of `stack` need more of it")]
mod machine;
mod odd;
mod parts;
mod predict;
mod probe;
mod refused;
mod report;
mod run;
mod serve;
mod signals;
mod study;
mod suites;
mod unwritable;
mod volume;
mod which;
mod world;
mod written;
