//! What a parser found, before it becomes a record.

use std::collections::BTreeMap;

/// Runs of one text, in its order; repeats of one put together.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    all: Vec<Draft>,
    known: BTreeMap<String, usize>,
}

impl Drafts {
    /// Adds a run, or its cells to those of the run before it with the same `key`.
    pub(crate) fn add(&mut self, key: String, draft: Draft) {
        match self.known.get(&key).and_then(|&at| self.all.get_mut(at)) {
            Some(other) => other.cells.extend(draft.cells),
            None => {
                self.known.insert(key, self.all.len());
                self.all.push(draft);
            }
        }
    }

    /// All of them; `None` if there is none.
    pub(crate) fn all(self) -> Option<Vec<Draft>> {
        (!self.all.is_empty()).then_some(self.all)
    }
}

/// A run as a tool tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Draft {
    /// Name of our suite of this method.
    pub suite: String,
    /// The tool's version, as it says it.
    pub version: Option<String>,
    pub host: Option<String>,
    /// What was measured.
    pub target: Option<String>,
    /// Bytes of one file or of the device.
    pub size: Option<u64>,
    pub files: Option<u32>,
    pub file_system: Option<String>,
    /// Wall clock, ns since 1970.
    pub started_unix_ns: Option<i64>,
    /// In the order of the text. Cells alike but for their figures are repeats of one.
    pub cells: Vec<Cell>,
    /// How the tool says it was set: (name, value).
    pub settings: Vec<(String, String)>,
    /// What a reader of the figures has to know.
    pub remarks: Vec<String>,
    /// Doubts about the run: (code, text).
    pub warnings: Vec<(String, String)>,
}

/// A stay in a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    pub phase: String,
    pub coordinates: Vec<(String, String)>,
    pub streams: Vec<Stream>,
    pub elapsed_ns: Option<u64>,
    pub failed: bool,
    pub warnings: Vec<(String, String)>,
    /// The tool has the cell and says nothing about it.
    pub blank: bool,
}

/// A stream of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stream {
    pub name: String,
    /// `read`, `write`, `mixed`, ...
    pub op: String,
    /// Bytes per request, if all are alike.
    pub block: Option<u64>,
    pub threads: Option<u32>,
    pub queue_depth: Option<u32>,
    /// How requests were made.
    pub engine: Option<String>,
    pub direct: bool,
    pub ops: Vec<Figure>,
}

/// What the tool says about one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figure {
    pub op: String,
    pub requests: Option<u64>,
    pub bytes: Option<u64>,
    pub errors: u64,
    pub iops: Option<f64>,
    pub bytes_per_s: Option<f64>,
    /// CPU busy, in percent of one.
    pub cpu_percent: Option<f64>,
    pub latency: Latency,
}

/// Latency in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Latency {
    pub min: Option<u64>,
    pub mean: Option<f64>,
    pub max: Option<u64>,
    pub sd: Option<f64>,
    /// Share and value.
    pub quantiles: Vec<(f64, u64)>,
    /// Value and how many, as the tool binned them.
    pub buckets: Vec<(u64, u64)>,
}

impl Figure {
    pub(crate) fn of(op: &str) -> Self {
        Self { op: op.to_owned(), ..Self::default() }
    }
}

impl Stream {
    /// A stream of one name and operation.
    pub(crate) fn of(op: &str) -> Self {
        Self { name: op.to_owned(), op: op.to_owned(), ..Self::default() }
    }
}

/// A place on an axis that is a size: `("block_size", "4KiB")`, as suites write it.
pub(crate) fn size_axis(field: &str, bytes: u64) -> (String, String) {
    (field.to_owned(), units::Bytes::new(bytes).exact())
}

/// A place on an axis that is a number.
pub(crate) fn axis(field: &str, value: impl ToString) -> (String, String) {
    (field.to_owned(), value.to_string())
}
