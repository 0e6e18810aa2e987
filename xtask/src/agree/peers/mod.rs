//! The programs that we are held against: how each is told what to do, and what it says then.

mod bonnie;
mod fio;
mod ioping;
mod pg_test_fsync;
mod sysbench;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

use super::figures::{Figure, Kind, Values};
use super::pattern::{Pattern, Setting};

pub use bonnie::Bonnie;
pub use fio::{BATCHED, Fio};
pub use ioping::Ioping;
pub use pg_test_fsync::PgTestFsync;
pub use sysbench::Sysbench;

/// A program with a method of its own that one of our suites plays, too.
pub trait Peer: fmt::Debug + Sync {
    /// As it is called.
    fn name(&self) -> &'static str;

    /// Where distributions have it.
    fn package(&self) -> &'static str;

    /// Directories besides those of PATH where it may be.
    fn places(&self) -> &'static [&'static str] {
        &[]
    }

    /// The word that has it print its version.
    fn version_word(&self) -> &'static str {
        "--version"
    }

    /// Names in the working directory that stand for the file, made anew before each visit: for
    /// programs that choose the name themselves, or remove what they used.
    fn links(&self) -> &'static [&'static str] {
        &[]
    }

    /// The words after its name.
    fn words(&self, words: &[&str], setting: &Setting, seed: u32) -> Vec<String>;

    /// What it printed, as the figures of the pattern.
    fn read(&self, pattern: &Pattern, text: &str) -> Result<Values>;
}

/// Where the program is.
pub fn find(peer: &dyn Peer) -> Option<std::path::PathBuf> {
    crate::repo::find_program(peer.name()).or_else(|| {
        let places = peer.places().iter().map(|place| Path::new(place).join(peer.name()));
        places.into_iter().find(|path| path.is_file())
    })
}

/// A rate that must be one.
pub fn rate(kind: Kind, operation: &'static str, value: f64) -> Result<(Figure, Option<f64>)> {
    anyhow::ensure!(value.is_finite() && value > 0.0, "nothing was completed");
    Ok((Figure { kind, operation }, Some(value)))
}

/// The number that follows `label` in the first line that begins with it.
pub fn number_after(text: &str, label: &str) -> Result<f64> {
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(label));
    let words = line.with_context(|| format!("no line `{label}`"))?;
    let word = words.split_whitespace().next().unwrap_or_default();
    word.parse().with_context(|| format!("no number after `{label}`: `{word}`"))
}
