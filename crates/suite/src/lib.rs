//! Suite text to checked workloads.

pub mod model;
