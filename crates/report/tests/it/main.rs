//! Reports of planted runs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests; the lints only know functions marked as such"
)]

mod bm_flash;
mod csv;
mod grid;
mod hlog;
mod json;
mod layouts;
mod metered;
mod page;
mod parquet;
mod sample;
