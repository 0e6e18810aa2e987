//! Records to tables, CSV and JSON. Opens nothing; the same samples give the same text, byte
//! for byte.

mod csv;
pub mod figures;
pub mod json;
pub mod table;
mod text;

pub use crate::csv::{COLUMNS as CSV_COLUMNS, csv};
pub use crate::json::{Document, SCHEMA, document, schema};
pub use crate::text::{plain, wrapped};
