//! A study: which stacks are built and measured, in which order, and what that will tell.
//!
//! Pure: text in, a checked [`Study`] out; the journal is a function of its lines. What acts on it
//! is elsewhere.

mod budget;
mod design;
mod factor;
pub mod journal;
mod marks;
mod stacks;
mod tells;
mod text;

pub use budget::{Assumed, Budget, SuiteTime, TooSmall};
pub use design::{Design, LeftOut, PlannedStack, Study};
pub use factor::Factor;
pub use marks::Marks;
pub use stacks::Stack;
pub use text::{Devices, Measure, On, StudyError, StudyText, SuiteRef, parse};
