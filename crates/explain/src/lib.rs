//! Records to verdicts. Pure: what was stored goes in, findings come out, and the same records give the
//! same verdict.
//!
//! Every verdict has the same build: a typed value with the numbers, and a method `findings` that gives
//! codes with values: what it is, on what evidence, what to do next. The words are in `finding`. A verdict
//! says *unknown* where the evidence is missing; it never says *fine* for want of data.

pub mod advice;
mod answer;
mod arrays;
pub mod barrier;
pub mod bought;
pub mod bucket;
pub mod cache;
pub mod calibration;
pub mod closing;
pub mod compare;
pub mod converged;
mod credits;
pub mod database;
pub mod differ;
pub mod drift;
mod ends;
pub mod explanation;
pub mod factor;
pub mod findings;
pub mod floor;
pub mod freeze;
pub mod gap;
pub mod group;
pub mod halt;
mod history;
pub mod interference;
pub mod interval;
pub mod latency;
pub mod line;
mod longest;
pub mod mark;
mod members;
mod own_names;
mod places;
pub mod steady;
mod study;
pub mod transactions;
pub mod view;
pub mod visits;
pub mod which;
pub mod whole;
mod words;
pub mod worth;

pub use explanation::Explanation;
pub use findings::Findings;
pub use mark::Mark;
pub use view::{CellView, View, VisitView};
