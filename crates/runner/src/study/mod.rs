//! Plays a study: builds each stack, measures it, tears it down; goes on after a crash; cleans up.
//!
//! Nothing is written but devices that the study's file names, after each was judged; every action
//! is in the journal before it is done.

mod builder;
mod clean;
mod devices;
mod error;
mod file;
mod guard;
mod ours;
mod play;
mod states;

pub use clean::{Cleaned, Left, clean, put_settings_back, unfinished};
pub use devices::{Device, Known, Override, judge};
pub use error::PlayError;
pub use file::{JournalFile, Unfinished, directory, played};
pub use play::{Crew, Ended, Measured, Part, Play, steps_of, told};
pub use states::Moments;
