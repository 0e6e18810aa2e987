use std::fmt;

use crate::tool::Tool;

/// Why an output was refused: file, line if one is to blame, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ImportError {
    file: String,
    line: Option<usize>,
    problem: Problem,
}

/// What is wrong with an output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing in it.
    #[error("nothing in it, wanted the output of a tool")]
    Empty,
    /// Not UTF-8.
    #[error("this is not text")]
    NotText,
    /// More than is read of one output.
    #[error("{0}, which is more than is read of one output")]
    TooMuch(String),
    /// No tool known here prints this.
    #[error("no tool known here begins like this: seen {seen}")]
    Unknown {
        /// The first line with something on it.
        seen: String,
    },
    /// Not what the tool prints, or not all of it.
    #[error("read as {}: seen {seen}, wanted {wanted}", tool.title())]
    Unfit {
        /// How it was read.
        tool: Tool,
        /// What stands there.
        seen: String,
        /// What should.
        wanted: String,
    },
    /// The same where the output of another tool stands in the text, too.
    #[error(
        "read as {}: seen {seen}, wanted {wanted}; what {} prints stands beside it",
        tool.title(),
        other.title()
    )]
    Beside {
        /// How it was read.
        tool: Tool,
        /// What stands there.
        seen: String,
        /// What should.
        wanted: String,
        /// The other tool.
        other: Tool,
    },
    /// The last line can be read, but more may have stood on it.
    #[error(
        "read as {}: the last line ends with {seen} and without a line end, so some of it may be \
         missing",
        tool.title()
    )]
    NoLineEnd {
        /// How it was read.
        tool: Tool,
        /// What the line ends with.
        seen: String,
    },
    /// Not what the tool prints that it was said to be from; it looks like another's.
    #[error("read as {}: seen what {} prints", tool.title(), other.title())]
    Another {
        /// As it was named.
        tool: Tool,
        /// What it looks like.
        other: Tool,
    },
    /// Outputs of several tools: only one tool's would be read.
    #[error("seen what {} prints, and what {} prints, wanted outputs of one tool", tool.title(), other.title())]
    Several {
        /// The first that was found.
        tool: Tool,
        /// Another one.
        other: Tool,
    },
    /// Outputs of two runs in two forms of one tool: only one form's would be read.
    #[error("seen what {} prints of a job that what {} prints has not, wanted one of both", other.title(), tool.title())]
    OtherRun {
        /// The form that is read.
        tool: Tool,
        /// The form of the line.
        other: Tool,
    },
    /// Outputs that are no repeats of one test.
    #[error("{0}")]
    NoRepeat(String),
    /// Every line can be read, but together they are no run.
    #[error("{0}")]
    NoRun(String),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl ImportError {
    pub(crate) fn new(file: &str, line: Option<usize>, problem: Problem) -> Self {
        Self { file: file.to_owned(), line, problem }
    }

    /// Line of the file, from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What to do about it, if that can be told.
    pub fn hint(&self) -> Option<String> {
        match &self.problem {
            Problem::Unknown { .. } => {
                let names: Vec<_> = Tool::ALL.iter().map(|tool| tool.name()).collect();
                Some(format!("say with `--tool` which tool it is: {}", names.join(", ")))
            }
            Problem::Unfit { seen, .. } if seen == crate::text::END => {
                Some("the output was cut short: nothing of it was taken".to_owned())
            }
            Problem::NoLineEnd { .. } => {
                Some("add a line end if nothing is missing; nothing of it was taken".to_owned())
            }
            Problem::Another { .. } => Some("leave `--tool` out".to_owned()),
            Problem::Beside { .. } => Some("put them into files of their own".to_owned()),
            Problem::Several { .. } | Problem::OtherRun { .. } => Some(
                "put them into files of their own; with `--tool` that tool's alone is read"
                    .to_owned(),
            ),
            Problem::NoRepeat(_) => {
                Some("without `--together` each is a run of its own; nothing was stored".to_owned())
            }
            Problem::TooMuch(_) => Some("cut it into several".to_owned()),
            _ => None,
        }
    }
}
