//! Suite text to checked workloads.
//!
//! A suite is TOML ([`parse`]); overrides go on top ([`SuiteSource::set`]); the checker
//! ([`check`]) fills in defaults, expands the grids and gives a [`model::Suite`], which is all
//! that later rooms see. [`resolved_text`] writes down what was checked, so that it can be played
//! again by any later version. A text may also be a list of suites ([`read`], [`Parts`]). Nothing
//! here reads a file.

mod access;
mod asked;
mod builtin;
mod check;
mod commit;
mod directory;
mod effect;
mod emit;
mod error;
mod estimate;
mod fio_job;
mod hint;
mod laps;
mod layer;
mod level;
pub mod model;
mod node;
mod parts;
mod phase;
mod raw;
mod reader;
mod resolve;
mod rounds;
mod scale;
mod source;
mod steady;
mod stream;
mod syntax;
mod transactions;
mod values;

pub use asked::{AskedCell, AskedStream, asked};
pub use builtin::{Builtin, builtin, builtin_lists, find_builtin, find_list};
pub use check::{CheckContext, check, doubts};
pub use emit::resolved_text;
pub use error::{Place, Problem, SuiteError};
pub use fio_job::{FioNameError, fio_job, fio_jobs};
pub use laps::laps;
pub use level::{Level, Limit};
pub use parts::{Found, Part, Parts, read};
pub use raw::json_schema;
pub use rounds::PILOT;
pub use source::{SuiteSource, TEXT_BYTES_MAX, parse};
