//! What leaves a worker, and what a visit yields of it.

use device::{Errno, FileIndex, Op};
use meter::{Load, OpId};
use record::Warning;
use suite::model::Stream;
use units::Nanos;

use crate::source::seam_op;
use crate::verify::Mismatch;
use crate::{Visit, VisitResult};

/// The names of all operations, in the order of their ids.
pub const NAMES: [&str; Op::ALL.len()] = {
    let mut names = [""; Op::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Op::ALL[at].name();
        at += 1;
    }
    names
};

const _: () = assert!(NAMES.len() <= meter::OPS_MAX);

/// The id of an operation: its number.
#[inline]
pub(crate) const fn id(op: Op) -> OpId {
    OpId(op as u8)
}

/// For people, what an operation of that name is doing: `read at byte 4096`.
pub fn described(name: &str, place: u64) -> String {
    let op = Op::ALL.into_iter().find(|op| op.name() == name);
    op.map_or_else(|| name.to_owned(), |op| op.at(place))
}

/// What one worker measured, and what became of its requests.
#[derive(Clone, Debug)]
pub struct WorkerResult {
    /// What is measured of any kind of operation.
    pub metered: meter::WorkerResult,
    /// Requests that never came back.
    pub hanging: Vec<Hanging>,
    /// The first that failed, to name it.
    pub first_failure: Option<Failure>,
    /// Blocks that were not what was written.
    pub mismatches: Vec<Mismatch>,
    /// How many more of those there were.
    pub mismatches_dropped: u64,
}

/// A request that had not come back when its drive gave up on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hanging {
    /// What it was to do.
    pub op: Op,
    /// In which file.
    pub file: u32,
    /// Where.
    pub offset: u64,
    /// How long it had been out; it may take longer still.
    pub age: Nanos,
}

/// A request that did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it was to do.
    pub op: Op,
    /// In which file.
    pub file: u32,
    /// Where.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// What it did instead.
    pub outcome: Outcome,
}

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With an error.
    Error(Errno),
    /// With fewer bytes.
    Short(u32),
}

impl From<WorkerResult> for meter::WorkerResult {
    fn from(mut result: WorkerResult) -> Self {
        let hanging = result.hanging.iter().map(|hang| {
            let place = in_file(hang.op, hang.offset, hang.file);
            Warning::new("hanging", format!("{place} had not come back after {}", hang.age))
        });
        let mismatch = |text: String| Warning::new("verify-mismatch", text);
        let mismatches = result.mismatches.iter().map(|found| mismatch(found.to_string()));
        let dropped = Some(result.mismatches_dropped).filter(|&more| more > 0);
        let dropped = dropped.map(|more| mismatch(format!("{more} more sectors did not match")));
        let failures = result.first_failure.map(failed).into_iter();
        let troubles = failures.chain(hanging).chain(mismatches).chain(dropped).collect();
        result.metered.troubles = troubles;
        result.metered.hangs = !result.hanging.is_empty();
        result.metered
    }
}

/// Merges the results of all drives of a visit, in any order.
pub fn merge<R: Into<meter::WorkerResult>>(visit: &Visit, results: Vec<R>) -> VisitResult {
    meter::merge(&loads(visit), &NAMES, results.into_iter().map(Into::into).collect())
}

/// What is asked of the workers of each stream.
pub fn loads(visit: &Visit) -> Vec<Load<'_>> {
    visit.streams.iter().map(load).collect()
}

/// What is asked of the workers of a stream.
pub fn load(stream: &Stream) -> Load<'_> {
    // All requests of a kind are flushes of the stream's policy.
    let policy = stream.sync.map(|policy| seam_op(policy.op));
    let is_asked = |op: &Op| stream.mix.classes.iter().any(|class| seam_op(class.op) == *op);
    Load {
        name: &stream.name,
        threads: stream.threads,
        depth: stream.requests_max(),
        pacing: stream.pacing,
        duty: stream.duty,
        stop: stream.stop,
        unasked: policy.filter(|op| !is_asked(op)).map(id).into_iter().collect(),
    }
}

fn failed(failure: Failure) -> Warning {
    let Failure { op, file, offset, length, outcome } = failure;
    let (code, what) = match outcome {
        Outcome::Error(errno) => ("io-error", format!("failed: {errno}")),
        Outcome::Short(bytes) => ("short-transfer", format!("moved {bytes} bytes only")),
    };
    let place = if op.in_directory() || file == FileIndex::DIRECTORY.0 {
        in_file(op, offset, file)
    } else if op.moves_data() || length > 0 {
        format!("{op} of {length} bytes at byte {offset} of file {file}")
    } else {
        format!("{op} of file {file}")
    };
    let why = match outcome {
        // Which of the two it was the kernel does not tell.
        Outcome::Error(Errno::ENOSPC) if op == Op::Create => ": no space, or no inodes, are left",
        _ => "",
    };
    Warning::new(code, format!("{place} {what}{why}"))
}

/// What a request does, and where.
fn in_file(op: Op, offset: u64, file: u32) -> String {
    let place = op.at(offset);
    match (file == FileIndex::DIRECTORY.0, op.in_directory()) {
        (true, true) => format!("{place} in the directory"),
        (true, false) => format!("{op} of the directory"),
        (false, _) => format!("{place} of file {file}"),
    }
}
