//! Records to tables, CSV, JSON, Parquet and histogram logs. Opens nothing; the same samples give
//! the same bytes.

mod csv;
pub mod figures;
mod hlog;
pub mod json;
pub mod page;
mod parquet;
mod rows;
pub mod stack;
pub mod table;
mod text;

pub use crate::csv::{COLUMNS as CSV_COLUMNS, csv};
pub use crate::hlog::{HlogError, hlog};
pub use crate::json::{Document, SCHEMA, document, schema};
pub use crate::parquet::{ParquetFailed, parquet};
pub use crate::rows::{COLUMNS, Column, Kind};
pub use crate::text::{Columns, fit_lines_of, plain, three_digits, wrapped};
