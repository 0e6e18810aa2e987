//! The block loop: addresses, submission, verification. Pacing, stop rules and accounting are those
//! of [`meter`].
//!
//! Makes no system call: requests go to a [`device::Device`], time comes from its clock. The
//! loop is one, generic over the device; access is a value in it.
//!
//! A *visit* is played by one or more [`Drive`]s: on kernel back ends each worker has a thread
//! and a device of its own and so a drive of its own; on a twin with a virtual clock one drive
//! plays all workers on the one device. What the drives share ([`Shared`]) is a few atomics.

mod access;
mod choice;
mod directory;
mod drive;
mod group;
mod lines;
mod payload;
mod result;
mod shared;
mod source;
pub mod verify;
mod worker;

pub use drive::{Drive, DriveError, Limits};
pub use meter::{Observer, Pulse, Tally, VisitResult, WorkerId};
pub use result::{Failure, Hanging, NAMES, Outcome, WorkerResult, described, load, loads, merge};
pub use shared::Shared;

use std::sync::Arc;

use units::Bytes;

/// What a visit plays: the cell's streams on the file set.
#[derive(Clone, Debug)]
pub struct Visit {
    /// At least one; all start together.
    pub streams: Vec<suite::model::Stream>,
    /// How many files.
    pub files: u32,
    /// Bytes of each.
    pub file_size: Bytes,
    /// What writes write.
    pub data: suite::model::Data,
    /// Of this visit: addresses, dice and arrivals follow from it.
    pub seed: u64,
    /// Of the run: fixed permutations follow from it.
    pub run_seed: u64,
    /// Writes describe themselves and reads check that, if set.
    pub verify: Option<Arc<verify::Verifier>>,
}

impl Visit {
    /// How many workers all streams have together.
    pub fn workers(&self) -> Vec<WorkerId> {
        (0u32..)
            .zip(&self.streams)
            .flat_map(|(stream, plan)| {
                (0..plan.threads).map(move |worker| WorkerId { stream, worker })
            })
            .collect()
    }
}
