//! What was found, as values: a code, the cells it is about, numbers with their intervals and
//! units. Text is made of it in one place, [`text`], from the templates in `codes/`.
//!
//! A code is declared once, in `codes/`: its question, severity, the figures that show it, its sentence,
//! what to do next, and what it means as a mark in a table. The build makes [`Code`] of these files.
//!
//! ```
//! use finding::{Code, Finding};
//!
//! let found = Finding::new(Code::GapsNone).with("judged", 84_u64);
//! assert!(found.text().contains("none of 84 cells is far below"));
//! ```

mod code;
mod found;
pub mod numbers;
mod section;
pub mod text;
mod value;

pub use code::{About, Code, Question, Severity};
pub use found::{Finding, Subject};
pub use section::{Section, sentences, shortened, texts};
pub use text::{Span, quoted};
pub use value::{Number, Quantity, Value};
