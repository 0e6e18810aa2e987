//! What is said: results on stdout, everything else on stderr.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use clap::ValueEnum;
use console::Term;

use crate::exit::ExitCode;
use crate::failure::Failure;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWish {
    /// On a terminal, unless NO_COLOR is set or TERM is `dumb`.
    #[default]
    Auto,
    /// Also in pipes and files.
    Always,
    /// Nowhere.
    Never,
}

/// The two streams and what may be done on them.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    out_color: bool,
    err_color: bool,
    quiet: bool,
}

const BOLD_RED: &str = "\x1b[1;31m";
const BOLD_YELLOW: &str = "\x1b[1;33m";
const CYAN: &str = "\x1b[36m";
const RESET: &str = "\x1b[0m";

impl Output {
    /// Has tables and texts fit a terminal, if stdout is one.
    pub fn new(wish: ColorWish) -> Self {
        if let Some((_, columns)) = Term::stdout().size_checked() {
            report::fit_lines_of(columns);
        }
        let color = |is_terminal: bool| match wish {
            ColorWish::Always => true,
            ColorWish::Never => false,
            ColorWish::Auto => is_terminal && !is_set("NO_COLOR") && !is_dumb(),
        };
        Self {
            out_color: color(io::stdout().is_terminal()),
            err_color: color(io::stderr().is_terminal()),
            quiet: false,
        }
    }

    /// With notes and warnings left out.
    pub fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    pub const fn is_quiet(&self) -> bool {
        self.quiet
    }

    pub const fn out_color(&self) -> bool {
        self.out_color
    }

    /// Whether stderr can show lines that change.
    pub fn is_live(&self) -> bool {
        !self.quiet && io::stderr().is_terminal() && !is_dumb()
    }

    /// A result, without what a terminal would obey: names of suites, files and runs are others'.
    /// Nobody listening any more is no failure: `plimsoll list | head -1`.
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        self.print_bytes(lines(text).as_bytes())
    }

    /// As [`Self::print`], for what need not be text, and for what is coloured by ourselves.
    pub fn print_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        printed(stdout().and_then(|mut out| out.write_all(bytes)))
    }

    /// As [`json`], piece by piece, for what would take much room as a whole.
    pub fn print_json(&self, value: &impl serde::Serialize) -> Result<(), Failure> {
        printed(stdout().and_then(|out| {
            let mut out = Escaped(io::BufWriter::new(out));
            serde_json::to_writer_pretty(&mut out, value)?;
            out.write_all(b"\n")?;
            out.flush()
        }))
    }

    /// Something worth knowing, in one line.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            tell(&report::plain(text));
        }
    }

    /// As [`Self::note`], in several lines.
    pub fn notes(&self, text: &str) {
        if !self.quiet {
            tell(&lines(text));
        }
    }

    /// A doubt.
    pub fn warning(&self, text: &str) {
        if !self.quiet {
            self.labelled(BOLD_YELLOW, "warning", text);
        }
    }

    /// Why the command failed.
    pub fn error(&self, text: &str) {
        self.labelled(BOLD_RED, "error", text);
    }

    /// As [`Self::error`], where the first line is followed by others.
    pub fn errors<'a>(&self, mut lines: impl Iterator<Item = &'a str>) {
        self.error(lines.next().unwrap_or_default());
        lines.for_each(|line| tell(&report::plain(line)));
    }

    /// Why that.
    pub fn cause(&self, text: &str) {
        self.labelled(BOLD_RED, "cause", text);
    }

    /// What to do about it.
    pub fn hint(&self, text: &str) {
        self.labelled(CYAN, "hint", text);
    }

    fn labelled(&self, color: &str, label: &str, text: &str) {
        // One line each: a line break can only come from somebody's name for something.
        let text = report::plain(text);
        if self.err_color {
            tell(&format!("{color}{label}:{RESET} {text}"));
        } else {
            tell(&format!("{label}: {text}"));
        }
    }
}

/// Standard output, with all its errors: [`io::stdout`] takes one that cannot be written for one that
/// takes everything. Nothing else writes to it.
fn stdout() -> io::Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Nobody listening any more is no failure.
fn printed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::caused(ExitCode::Unexpected, "cannot write to standard output", error))
        }
        _ => Ok(()),
    }
}

/// A line on stderr. That stderr is gone is nothing that anybody could be told.
fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// [`report::plain`] that leaves line ends and tabs alone.
pub fn lines(text: &str) -> String {
    let parts = text
        .split('\n')
        .map(|line| line.split('\t').map(report::plain).collect::<Vec<_>>().join("\t"));
    parts.collect::<Vec<_>>().join("\n")
}

/// JSON on its way to what may be a terminal. The writer has escaped the first 32 control
/// characters; terminals obey some of the others too, and hide more. Outside of strings JSON has none
/// but line ends.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Failure::caused(ExitCode::Unexpected, "cannot write JSON", e))?;
    Ok(escaped(&text) + "\n")
}

/// Characters that nobody sees as JSON writes them, line ends aside.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if c != '\n' && units::is_unseen(c) {
            let mut halves = [0; 2];
            for unit in c.encode_utf16(&mut halves) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// JSON that is escaped as it is written. Its writer gives whole characters.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            // Of the ASCII before it JSON has nothing unseen but line ends.
            Ok(text) if text.bytes().any(|byte| byte >= 0x7f) => {
                self.0.write_all(escaped(text).as_bytes())?
            }
            _ => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_not_given_orders() {
        assert_eq!(lines("a\n\tb\x1b[2J\u{9b}"), "a\n\tb\\u{1b}[2J\\u{9b}");
        let odd = "a\x1b\u{9b}\u{202e}\u{200f}\u{e0041}é";
        let text = json(&[odd]).unwrap();
        assert_eq!(text, "[\n  \"a\\u001b\\u009b\\u202e\\u200f\\udb40\\udc41é\"\n]\n");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [odd]);
    }
}
