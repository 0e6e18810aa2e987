//! Suite text to checked workloads.
//!
//! A suite is TOML ([`parse`]); overrides go on top ([`SuiteSource::set`]); the checker
//! ([`check`]) fills in defaults, expands the grids and gives a [`model::Suite`], which is all
//! that later rooms see. [`resolved_text`] writes down what was checked, so that it can be played
//! again by any later version. Nothing here reads a file.

mod access;
mod builtin;
mod check;
mod directory;
mod emit;
mod error;
mod estimate;
mod fio_job;
mod layer;
pub mod model;
mod node;
mod phase;
mod raw;
mod reader;
mod resolve;
mod rounds;
mod source;
mod stream;
mod values;

pub use builtin::{Builtin, builtin, find_builtin};
pub use check::{CheckContext, check};
pub use emit::resolved_text;
pub use error::{Place, Problem, SuiteError};
pub use fio_job::fio_job;
pub use raw::json_schema;
pub use rounds::PILOT;
pub use source::{SuiteSource, parse};
