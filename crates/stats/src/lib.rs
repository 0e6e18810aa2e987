//! Statistics: slices and a seed in, numbers out. No effects, no clock.

pub mod histogram;
pub mod paired;
pub mod random;

pub use crate::histogram::LatencyHistogram;
pub use crate::random::Random;
