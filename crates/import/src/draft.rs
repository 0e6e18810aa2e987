//! What a parser found, before it becomes a record.

use std::collections::BTreeSet;
use std::fmt::{Debug, Write as _};

use xxhash_rust::xxh3::Xxh3;

/// Most cells, and most figures, of a file: each takes its room, here and in the store.
pub(crate) const CELLS_MAX: usize = 10_000;
/// How names of settings begin that are no settings: what was told of the result and has no other
/// place.
pub(crate) const RESULT: &str = "result ";
/// Most lines about settings of a run.
pub(crate) const SETTINGS_MAX: usize = 100_000;

/// Runs of one text, in its order. Two that look like repeats stay two: a text does not tell whether the
/// set-up between them was the same, so only the user can (`--together`).
///
/// What is beyond the limits is counted and not kept, so that it takes no room until it is
/// refused: [`crate::run::limits`].
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    all: Vec<Draft>,
    cells: usize,
    copies: Copies,
}

impl Drafts {
    /// Adds a run, unless it is a copy of one before it.
    pub(crate) fn push(&mut self, draft: Draft) {
        if !self.copies.have(&draft) && self.has_room_for(&draft) {
            self.all.push(draft);
        }
    }

    /// One more than may be is kept.
    fn has_room_for(&mut self, draft: &Draft) -> bool {
        let before = self.cells;
        self.cells = before.saturating_add(draft.cells.len().max(1));
        before <= CELLS_MAX
    }

    /// Whether there is none yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them; `None` if there is none.
    pub(crate) fn all(mut self) -> Option<Vec<Draft>> {
        if let Some(first) = self.all.first_mut() {
            first.warnings.extend(self.copies.warning());
        }
        (!self.all.is_empty()).then_some(self.all)
    }
}

/// Outputs of one text that were met: the same to every figure is one measurement that was pasted
/// twice. Copies scatter by nothing, so an interval made of them would promise what was never
/// measured.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    met: BTreeSet<u128>,
    left_out: usize,
}

impl Copies {
    /// Whether the same was met before; from now on it was.
    pub(crate) fn have(&mut self, output: &impl Debug) -> bool {
        let mut digest = Digest(Xxh3::new());
        // Writing to a digest cannot fail.
        let _ = write!(digest, "{output:?}");
        let is_copy = !self.met.insert(digest.0.digest128());
        self.left_out += usize::from(is_copy);
        is_copy
    }

    /// What to say if there was one.
    pub(crate) fn warning(&self) -> Option<(String, String)> {
        let (n, many) = match self.left_out {
            0 => return None,
            1 => ("One output".to_owned(), "is"),
            n => (format!("{n} outputs"), "are"),
        };
        let text = format!(
            "{n} of this file {many} left out: the same to every figure as another one in it, and so \
             a copy, no repeat."
        );
        Some(("copies".to_owned(), text))
    }
}

/// Takes what is written to it, and keeps nothing of it.
struct Digest(Xxh3);

impl std::fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
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

impl Draft {
    /// A run of a method of ours.
    pub(crate) fn of(suite: &str) -> Self {
        Self { suite: suite.to_owned(), ..Self::default() }
    }

    /// Adds a cell; of too many one is kept, so that they can be told.
    pub(crate) fn push(&mut self, cell: Cell) {
        if self.cells.len() <= CELLS_MAX {
            self.cells.push(cell);
        }
    }

    /// Adds a setting, likewise.
    pub(crate) fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        set(&mut self.settings, name, value);
    }

    /// Adds a remark.
    pub(crate) fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }
}

/// As [`Draft::set`].
pub(crate) fn set(
    settings: &mut Vec<(String, String)>,
    name: impl Into<String>,
    value: impl Into<String>,
) {
    if settings.len() <= SETTINGS_MAX {
        settings.push((name.into(), value.into()));
    }
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

/// The remark on formats whose pieces stand alone: what was cut off between two of them leaves no
/// trace.
pub(crate) fn no_end_mark(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!(
            "One {one} was read; there is no end mark, so whether there were more is not known."
        ),
        _ => format!(
            "{count} {many} were read; there is no end mark, so whether there were more is not known."
        ),
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
