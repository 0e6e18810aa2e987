//! What can be wrong with the text of a part or an array, with a load, or with what was measured.

use crate::parameter::ParameterName;

/// Why a text was refused: where, and what was seen and wanted there.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}{}: {problem}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct TextError {
    /// The name that was given with the text.
    pub file: String,
    /// From 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Box<TextProblem>,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TextProblem {
    /// Not TOML, or not what belongs here.
    #[error("`{seen}`: {wanted}")]
    Value {
        /// The line as it stands.
        seen: String,
        /// What the reader says.
        wanted: String,
    },
    /// A parameter without what is known of it.
    #[error("`{key}` has {seen}, wanted {wanted}")]
    Parameter {
        /// Of the parameter.
        key: &'static str,
        /// What it has.
        seen: String,
        /// What it should have.
        wanted: &'static str,
    },
    /// A version or a kind that we do not know, or a count that cannot be.
    #[error("`{key}` is `{seen}`, wanted {wanted}")]
    Known {
        /// Of the file.
        key: &'static str,
        /// As written.
        seen: String,
        /// What could stand there.
        wanted: String,
    },
    /// There is no such array.
    #[error(transparent)]
    Array(#[from] layout::ArrayError),
}

impl TextError {
    /// What to do about it, if that can be told.
    pub fn hint(&self) -> Option<String> {
        match &*self.problem {
            TextProblem::Array(error) => error.hint(),
            _ => None,
        }
    }

    pub(crate) fn whole(file: &str, problem: TextProblem) -> Self {
        Self { file: file.to_owned(), line: None, problem: Box::new(problem) }
    }

    pub(crate) fn known(file: &str, key: &'static str, seen: impl ToString, wanted: &str) -> Self {
        let (seen, wanted) = (seen.to_string(), wanted.to_owned());
        Self::whole(file, TextProblem::Known { key, seen, wanted })
    }

    pub(crate) fn toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map(|span| span.start.min(text.len()));
        let line = start.map(|at| text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count());
        let seen = line.and_then(|line| text.lines().nth(line)).unwrap_or_default();
        let wanted = error.message().to_owned();
        let problem = TextProblem::Value { seen: seen.trim().to_owned(), wanted };
        Self { line: line.map(|line| line + 1), ..Self::whole(file, problem) }
    }
}

/// Why a load cannot be predicted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The model knows nothing of members that are lost.
    #[error("the array lacks a member, and only whole ones are predicted")]
    NotWhole,
    /// A count or size outside of what is reckoned with.
    #[error("load: `{key}` is {seen}, wanted {wanted}")]
    Outside {
        /// Field of the load.
        key: &'static str,
        /// Its value.
        seen: String,
        /// What it may be.
        wanted: &'static str,
    },
}

/// Why parameters cannot be had from measured cells.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Every line through one point is right.
    #[error(
        "fit: {cells} cells for {parameters} parameters, wanted at least one parameter and more cells"
    )]
    TooFew {
        /// Measured.
        cells: usize,
        /// Asked for.
        parameters: usize,
    },
    /// There is nothing to multiply.
    #[error("fit: `{}.{}` is no quantity of the design", .0.part, .0.key)]
    NoQuantity(ParameterName),
    /// The cells do not tell the parameters apart.
    #[error("fit: a parameter changes no cell, or two of them change all cells alike")]
    Undetermined,
    /// Of a measured cell.
    #[error(transparent)]
    Load(#[from] LoadError),
}
