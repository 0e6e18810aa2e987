//! Arithmetic of arrays, and the commands that build a stack of them.
//!
//! Everything here is a function of its arguments: nothing is opened, run or asked. [`array`] and
//! [`cost`] say what an array is worth and what a write costs its members; [`stack`] is the value
//! that a study builds; [`steps`] turns it into commands, what they destroy, and how to undo them.

pub mod array;
pub mod capacity;
mod check;
pub mod cost;
pub mod lvm;
pub mod md;
pub mod mkfs;
pub mod names;
pub mod rebuild;
mod remarks;
pub mod seen;
pub mod sheet;
mod shell;
pub mod stack;
pub mod steps;
pub mod whole;

pub use array::{Array, ArrayError, Geometry, Level, Tolerance};
pub use cost::{Cost, Ways};
pub use names::{Names, NamesError};
pub use rebuild::{Estimate, Pace};
pub use remarks::spaced;
pub use seen::Seen;
pub use sheet::{Sheet, SheetError};
pub use shell::shell_word;
pub use stack::{
    ArrayState, DeviceId, FileSystem, FileSystemKind, Leg, Maker, Settings, StackError, StackSpec,
    Stripe,
};
pub use steps::{
    Action, DeviceFact, DeviceFacts, Expectation, Made, Stage, Step, StepsError, Undo, Wait,
};
pub use whole::{MeanCost, Whole};
