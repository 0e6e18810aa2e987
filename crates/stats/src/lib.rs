//! Statistics: slices and a seed in, numbers out. No effects, no clock.

pub mod histogram;

pub use crate::histogram::LatencyHistogram;
