//! What ends a command early, and how that is told.

use std::fmt::Display;
use std::io::{self, ErrorKind as IoErrorKind};

use report::table::Misfit;
use runner::{ErrorKind, RunError};
use store::StoreError;
use suite::{FioNameError, SuiteError};

use crate::exit::ExitCode;
use crate::output::Output;

/// The end of a command that could not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    code: ExitCode,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// From words of our own.
    pub fn new(code: ExitCode, message: impl Display) -> Self {
        Self { code, error: anyhow::anyhow!("{message}"), hint: None }
    }

    /// From a cause and what it kept us from.
    pub fn caused(code: ExitCode, message: impl Display, cause: impl Into<anyhow::Error>) -> Self {
        let cause = cause.into();
        let hint = cause.chain().find_map(|cause| no_room(cause.downcast_ref()?));
        Self { code, error: cause.context(message.to_string()), hint: hint.map(str::to_owned) }
    }

    /// From an error that says it all.
    pub fn from_error(code: ExitCode, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into(), hint: None }
    }

    /// What is wrong, with its causes, and what to do about it.
    pub fn words(&self) -> (String, Option<String>) {
        (format!("{:#}", self.error), self.hint.clone())
    }

    /// What the user could do about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// What could not be done because of it.
    pub fn of(self, message: String) -> Self {
        Self { error: self.error.context(message), ..self }
    }

    /// Where it is wrong, in front of the message.
    pub fn at(self, place: impl Display) -> Self {
        let message = format!("{place}: {}", self.error);
        self.of(message)
    }

    /// The code that the program ends with.
    pub const fn code(&self) -> ExitCode {
        self.code
    }

    /// Whether its message, or that of a cause, has these words.
    pub fn says(&self, words: &str) -> bool {
        self.error.chain().any(|cause| cause.to_string().contains(words))
    }

    /// Whether a store has nothing in it: the first run is making it just now, or was killed doing so.
    pub fn is_of_empty_store(&self) -> bool {
        matches!(self.error.downcast_ref::<StoreError>(), Some(StoreError::Empty(_)))
    }

    /// Whether it tells the user about `what`.
    pub fn hints_at(&self, what: &str) -> bool {
        self.hint.as_ref().is_some_and(|hint| hint.contains(what))
    }

    /// Says it on stderr; the code to end with.
    pub fn tell(&self, output: &Output) -> ExitCode {
        let mut told = self.error.to_string();
        output.error(&told);
        for cause in self.error.chain().skip(1) {
            let cause = lower_case(&cause.to_string());
            // Many errors repeat their cause in their own message.
            if !told.to_lowercase().contains(&cause.to_lowercase()) {
                output.cause(&cause);
                told = cause;
            }
        }
        if let Some(hint) = &self.hint {
            output.hint(hint);
        }
        self.code
    }
}

/// What to do where a file system takes no more, whatever was written to it.
fn no_room(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        IoErrorKind::StorageFull => "make room on that file system, or name another place",
        IoErrorKind::QuotaExceeded => {
            "the quota there is used up: make room, or name another place"
        }
        IoErrorKind::ReadOnlyFilesystem => {
            "that file system is mounted read-only: name another place"
        }
        _ => return None,
    })
}

/// Our messages begin in lower case; the system's do not.
fn lower_case(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            let rest = text.get(first.len_utf8()..).unwrap_or_default();
            first.to_lowercase().collect::<String>() + rest
        }
        _ => text.to_owned(),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::NoSuchRun { .. } | StoreError::Ambiguous { .. } | StoreError::Empty(_) => {
                ExitCode::Usage
            }
            // The store is as it was: the run belongs to another process.
            StoreError::Claimed { .. } => ExitCode::Refused,
            _ => ExitCode::Store,
        };
        let hint = error.hint();
        Self { code, error: error.into(), hint }
    }
}

impl From<SuiteError> for Failure {
    fn from(error: SuiteError) -> Self {
        let hint = error.hint();
        Self { code: ExitCode::Usage, error: error.into(), hint }
    }
}

impl From<FioNameError> for Failure {
    fn from(error: FioNameError) -> Self {
        let hint = error.hint();
        Self::new(ExitCode::Usage, error).hint(hint)
    }
}

impl From<Misfit> for Failure {
    fn from(error: Misfit) -> Self {
        let hint = error.hint();
        Self { code: ExitCode::Usage, error: error.into(), hint }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let code = match error.kind() {
            ErrorKind::Usage => ExitCode::Usage,
            ErrorKind::Refused => ExitCode::Refused,
            ErrorKind::Target => ExitCode::Target,
            ErrorKind::Store => ExitCode::Store,
            ErrorKind::Interrupted => ExitCode::Interrupted,
        };
        let hint = error.hint();
        Self { code, error: error.into(), hint }
    }
}

#[cfg(test)]
mod tests {
    use super::lower_case;

    #[test]
    fn abbreviations_stay() {
        assert_eq!(
            lower_case("Permission denied (os error 13)"),
            "permission denied (os error 13)"
        );
        assert_eq!(lower_case("I/O error"), "I/O error");
        assert_eq!(lower_case(""), "");
        assert_eq!(lower_case("Éa"), "éa");
    }
}
