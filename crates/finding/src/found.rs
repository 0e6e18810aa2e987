//! Findings.

use schemars::JsonSchema;
use serde::Serialize;

use crate::code::{Code, Severity};
use crate::value::Value;

/// One thing that was found. A value until somebody prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// That of the code, unless the case is another.
    pub severity: Severity,
    /// The cells that it is about.
    pub cells: Vec<Subject>,
    /// How many cells there are of which these are some; 0 where that says nothing.
    pub cells_all: u32,
    /// What its template shows, by name.
    pub values: Vec<(&'static str, Value)>,
}

/// A cell that a finding is about, or one stream of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Subject {
    /// Index of the cell.
    pub cell: u32,
    /// Position of the stream in it; 0 for the cell as a whole.
    pub stream: u32,
    /// What people call it.
    pub name: String,
    /// What was found of this one in particular.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

impl Subject {
    /// A cell, or a stream of it by position.
    pub fn new(cell: u32, stream: Option<usize>, name: impl Into<String>) -> Self {
        Self { cell, stream: stream.unwrap_or(0) as u32, name: name.into(), value: None }
    }

    /// The same with a value of its own.
    #[must_use]
    pub fn with(mut self, value: impl Into<Value>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// What the page calls it: `12.0`.
    pub fn key(&self) -> String {
        format!("{}.{}", self.cell, self.stream)
    }
}

impl Finding {
    /// A finding of that code, about nothing in particular yet.
    pub const fn new(code: Code) -> Self {
        Self {
            code,
            severity: code.about().severity,
            cells: Vec::new(),
            cells_all: 0,
            values: Vec::new(),
        }
    }

    /// One whose words the verdict makes itself.
    pub fn said(code: Code, text: impl Into<String>) -> Self {
        Self::new(code).with("text", Value::words(text))
    }

    /// The same about a cell more.
    #[must_use]
    pub fn on(mut self, cell: Subject) -> Self {
        self.cells.push(cell);
        self
    }

    /// The same about so many cells.
    ///
    /// * `all`: how many there are of which these are some.
    #[must_use]
    pub fn on_all(mut self, cells: impl IntoIterator<Item = Subject>, all: usize) -> Self {
        self.cells.extend(cells);
        self.cells_all = all as u32;
        self
    }

    /// The same with a value for its template.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.values.push((name, value.into()));
        self
    }

    /// The same with a value, if there is one.
    #[must_use]
    pub fn with_some(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The value of that name.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}
