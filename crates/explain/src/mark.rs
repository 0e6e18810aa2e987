//! Marks: reasons to look twice, each with a sentence and its evidence.

use schemars::JsonSchema;
use serde::Serialize;

/// A reason to look twice at a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mark {
    /// For programs: `stalled`. [`meaning`] says what each stands for.
    pub code: String,
    /// Index of the cell.
    pub cell: u32,
    /// The stream of the cell that it is about; null for the cell as a whole.
    pub stream: Option<String>,
    /// What was seen, with its numbers: `2.1 s without a completion in visit 3`.
    pub evidence: String,
}

impl Mark {
    /// A mark from its parts.
    pub fn new(code: &str, cell: u32, evidence: impl Into<String>) -> Self {
        Self { code: code.to_owned(), cell, stream: None, evidence: evidence.into() }
    }

    /// The same about one of the cell's streams, if there is one.
    #[must_use]
    pub fn of_stream(self, stream: Option<&str>) -> Self {
        Self { stream: stream.map(str::to_owned), ..self }
    }
}

/// Every code with what it stands for, in the order in which tables explain them.
pub const MEANINGS: &[(&str, &str)] = &[
    ("stalled", "nothing came back for a while, and the host was not seen to stand still"),
    ("host-stalled", "the process or its workers did not run for a while: not the device's doing"),
    (
        "gap",
        "far below the rate predicted from neighbouring cells, or at some time below its other visits",
    ),
    ("outlier", "one visit is an outlier; it is included in the mean"),
    ("mixture", "several visits are outliers: two rates, not one"),
    ("drifting", "the rate changed over the visits or within one: it holds for a moment only"),
    ("cached", "what was measured is a cache, or faster than the link to the device"),
    ("partly-cached", "a cache above the device answered in part"),
    ("write-lag", "part of what was written had not reached the device"),
    ("not-cold", "the files were in the page cache before"),
    ("too-small", "the files fit too well into the caches that are known"),
    ("at-link", "as fast as the link to the device: this is the link's rate"),
    ("cache-unknown", "unknown whether a cache answered"),
    ("foreign-traffic", "the device moved far more than was asked for"),
    ("generator-limited", "a CPU of the load generator was the bottleneck, perhaps not the target"),
    ("not-steady", "not shown to be steady by the rounds that there were"),
    ("backlog", "open loop: some of what was due had not been issued when the visits ended"),
    ("overloaded", "more was offered than the target takes: latencies are of a queue that grows"),
    (
        "few-requests",
        "few requests for so many in flight: the rate depends on a visit's start and end",
    ),
    ("not-converged", "the interval is wider than was asked for"),
    ("within-one-visit", "one visit: what differs from visit to visit is not in the interval"),
];

/// The same of what visits say of themselves, in tables and exports beside the others.
const OF_VISITS: &[(&str, &str)] = &[
    ("not-measured", "not visited yet"),
    ("interrupted", "cut short by the user; no whole visit to show instead"),
    ("failed", "ended by an error; the figures are of the time before it"),
    ("hanging", "requests never came back; they are in no latency"),
    ("nothing-completed", "no request completed within the visits"),
    ("errors", "requests failed; they are not in IOPS and in no latency"),
    ("io-error", "the system refused a request with an error; its text is among the warnings"),
    ("short", "requests moved fewer bytes than asked; they are not in IOPS"),
    ("short-transfer", "a request moved fewer bytes than asked: see the warnings"),
    ("verify-mismatch", "what was read is not what was written"),
    ("before-failed", "what is played before it did not come to its end"),
    ("buffered-fallback", "direct I/O was asked but the page cache served it"),
    ("reflinked", "a copy moved no data: both files share it"),
];

/// What a code stands for.
pub fn meaning(code: &str) -> Option<&'static str> {
    let mut known = MEANINGS.iter().chain(OF_VISITS);
    known.find(|(known, _)| *known == code).map(|(_, text)| *text)
}
