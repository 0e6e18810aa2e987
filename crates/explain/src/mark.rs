//! Marks: reasons to look twice, each with a sentence and its evidence.

use finding::Code;
use schemars::JsonSchema;
use serde::Serialize;

/// A reason to look twice at a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mark {
    /// For programs: `stalled`. [`Code::about`] has what each means.
    pub code: Code,
    /// Index of the cell.
    pub cell: u32,
    /// The stream of the cell that it is about; null for the cell as a whole.
    pub stream: Option<String>,
    /// What was seen, with its numbers: `2.1 s without a completion in visit 3`.
    pub evidence: String,
}

impl Mark {
    /// A mark from its parts.
    pub fn new(code: Code, cell: u32, evidence: impl Into<String>) -> Self {
        Self { code, cell, stream: None, evidence: evidence.into() }
    }

    /// The same about one of the cell's streams, if there is one.
    #[must_use]
    pub fn of_stream(self, stream: Option<&str>) -> Self {
        Self { stream: stream.map(str::to_owned), ..self }
    }
}

/// What a code stands for where a table shows it.
pub fn meaning(code: &str) -> Option<&'static str> {
    Code::parse(code)?.about().mark
}
