//! Wires probe, plan, engine and store: runs a plan on a target.
//!
//! [`prepare`] decides everything and changes nothing: which target, which file, which cells are
//! possible, whether it may be written. [`Prepared::run`] then does what was said. All refusals
//! come from `prepare`, so that `--dry-run` is `prepare` and [`Prepared::describe`].

mod anew;
mod array_text;
mod clock;
mod directory;
mod doubts;
mod error;
mod events;
mod fill;
mod find;
mod interrupt;
mod layers;
mod left_behind;
mod made;
mod own;
mod prepare;
mod quiet;
mod resume;
mod rig;
mod rigs;
mod run;
mod several;
pub mod study;
mod taken;
mod target;
mod thread_limit;
mod turn;
mod visit;
mod watch;
mod watchdog;

pub use array_text::{ArrayText, array_hint};
pub use clock::TurnClock;
pub use error::{ErrorKind, RunError};
pub use events::{Event, Tick, Waiting, Watcher};
pub use interrupt::Interrupt;
pub use left_behind::{LeftBehind, remove_left_behind};
pub use plan::{Left, PlannedVisit, Round, RoundOf};
pub use prepare::{Prepared, prepare};
pub use resume::prepare_resume;
pub use rig::Kind;
pub use run::{LineGoal, Outcome, Running};
pub use target::TargetName;

use suite::SuiteSource;
use units::{Bytes, Nanos};

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Order {
    /// The suite, with every override set.
    pub source: SuiteSource,
    /// None: a scratch file in the current directory, sized to the free space, removed after. Each
    /// of several has the suite's files.
    pub targets: Vec<TargetName>,
    /// `None`: one is drawn, and stored.
    pub seed: Option<u64>,
    /// The target's size was given by the user: an existing file or device is not taken whole.
    pub size_given: bool,
    /// Everything else.
    pub settings: Settings,
}

/// How to run, apart from what.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What may be overwritten or destroyed.
    pub consent: stack::Consent,
    /// Writes describe themselves and reads check that.
    pub verify: bool,
    /// A file made by this run stays.
    pub keep: bool,
    /// Bind worker `w` to processor `cpus[w mod n]`; empty: wherever the kernel puts it.
    pub cpus: Vec<uring::Cpu>,
    /// How long requests that do not come back are waited for after the end of a visit.
    pub hang_limit: Nanos,
    /// Failed requests per worker and visit that are counted and passed over.
    pub failures: u64,
    /// Bytes of cache in controllers and drives, if the user knows.
    pub cache: Option<Bytes>,
    /// The words of the command, the program first.
    pub command_line: Vec<String>,
    /// Version of the program.
    pub program: String,
    /// Where the results go: the disk under it is never written by a run.
    pub store_path: std::path::PathBuf,
}
