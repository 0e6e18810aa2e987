//! Tables for people.

mod bm_flash;
mod grid;
mod list;

pub use bm_flash::{bandwidth, bm_flash, iops};
pub use grid::{grid, matrix};
pub use list::list;
