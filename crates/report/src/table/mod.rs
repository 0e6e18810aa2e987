//! Tables for people.

mod bm_flash;
mod bonnie;
mod crystaldiskmark;
mod dd;
mod grid;
mod interference;
mod iometer;
mod ioping;
mod iozone;
mod layout;
mod list;
mod orion;
mod pg_test_fsync;
mod shape;
mod sysbench;
mod xdd;

pub use bm_flash::{bandwidth, bm_flash, iops};
pub use grid::{grid, matrix};
pub use layout::{LAYOUTS, Layout, Misfit, layout, layout_of_import};
pub use list::{Listed, list};
