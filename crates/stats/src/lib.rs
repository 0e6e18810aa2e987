//! Statistics: slices and a seed in, numbers out. No effects, no clock.

pub mod changepoint;
pub mod control;
pub mod curve;
pub mod design;
pub mod exposure;
pub mod histogram;
pub mod history;
pub mod interval;
pub mod memory;
pub mod multiple;
pub mod outlier;
pub mod paired;
pub mod period;
pub mod poisson;
pub mod ramp;
pub mod random;
pub mod speeds;
pub mod steady;
pub mod trend;
pub mod within;

pub use crate::histogram::LatencyHistogram;
pub use crate::random::Random;
