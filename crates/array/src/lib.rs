//! What a storage array would do, part by part, before it is built.
//!
//! A [`ArrayDesign`] names parts out of a catalogue of texts, every value of which says where it comes
//! from. [`Model::answer`] gives, for one [`Load`], the rate, how busy each part is, which one
//! binds, and which assumed values that rests on: mean value analysis of a closed network.
//! A [`Simulation`] plays the same design request by request.

mod background;
pub mod builtin;
mod cleaning;
mod design;
mod drive;
mod error;
mod event;
mod fit;
mod load;
mod model;
pub mod network;
mod parameter;
mod part;
mod path;

pub use cleaning::write_amplification;
pub use design::{ArrayDesign, ArrayState, LegStripe, LinkPer, Named};
pub use error::{FitError, LoadError, TextError, TextProblem};
pub use event::{
    ArrayOp, ArrayRequest, ComponentUse, Simulation, SimulationError, SimulationOptions, SlotsTaken,
};
pub use fit::{FittedDesign, FittedValue, Measured, fit, fit_drive};
pub use load::{Addressing, Fill, Load};
pub use model::{Answer, Dependence, Model, PartAnswer};
pub use parameter::{End, Parameter, ParameterName, PerSecond, Provenance, Share};
pub use part::{
    BlockMapped, Controller, Drive, FileSystem, Host, Link, LogLayer, Mechanical, PageMapped,
    Striping, Volume,
};
pub use path::Component;
