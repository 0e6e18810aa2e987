//! How the program ends.

use std::fmt::Write;
use std::process;

/// What the exit code says. The only place where these numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    Ok = 0,
    Unexpected = 1,
    Usage = 2,
    Refused = 3,
    Incomplete = 4,
    Target = 5,
    Store = 6,
    Mismatch = 7,
    Slower = 8,
    NothingCompared = 9,
    CannotTell = 10,
    HungUp = 129,
    Interrupted = 130,
    Terminated = 143,
}

impl ExitCode {
    const ALL: [Self; 14] = [
        Self::Ok,
        Self::Unexpected,
        Self::Usage,
        Self::Refused,
        Self::Incomplete,
        Self::Target,
        Self::Store,
        Self::Mismatch,
        Self::Slower,
        Self::NothingCompared,
        Self::CannotTell,
        Self::HungUp,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// The number the shell sees.
    pub const fn number(self) -> u8 {
        self as u8
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "done",
            Self::Unexpected => "something unexpected, such as output that cannot be written",
            Self::Usage => "bad arguments, no such run, or a suite that makes no sense",
            Self::Refused => "refused because it would be unsafe; no other data was changed",
            Self::Incomplete => {
                "finished, but visits failed, requests never came back, or time ran out"
            }
            Self::Target => "the target cannot be used, or went away",
            Self::Store => "the store cannot be read or written",
            Self::Mismatch => "verification found data other than what was written",
            Self::Slower => {
                "compare --exit-code: slower than the first run, beyond the margin, or failing more; \
                 line --at: not carried"
            }
            Self::NothingCompared => {
                "compare --exit-code: a run has nothing that can be compared with the first"
            }
            Self::CannotTell => {
                "compare --exit-code=strict, line --at: cannot tell; measure or hold longer"
            }
            Self::HungUp => "ended by SIGHUP; what was measured is stored",
            Self::Interrupted => "ended by Ctrl-C (SIGINT); what was measured is stored",
            Self::Terminated => "ended by SIGTERM; what was measured is stored",
        }
    }

    /// All of them as lines for `--help`.
    pub fn table() -> String {
        let mut out = String::from("Exit codes:\n");
        for code in Self::ALL {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "  {:>3}  {}", code.number(), code.meaning());
        }
        out.truncate(out.trim_end().len());
        out
    }
}

impl From<ExitCode> for process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}
