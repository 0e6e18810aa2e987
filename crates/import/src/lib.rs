//! Outputs of other tools to records: what a tool printed becomes a run like our own.
//!
//! Nothing is made up. What the tool did not say is not known in the record either, and an
//! output that is cut short, or that is of no tool known here, is refused as a whole with the
//! line, what was seen there and what was wanted.
//!
//! One file per tool; [`Tool`] is the list of them. Text comes in and runs come out: this room
//! opens no file and asks no clock.

mod bm_flash;
mod bonnie;
mod csv;
mod draft;
mod error;
mod fio;
mod fio_json;
mod fio_terse;
mod iometer;
mod ioping;
mod iozone;
mod oltp;
mod orion;
mod pg_test_fsync;
mod pgbench;
mod run;
mod sysbench;
mod text;
mod tool;
mod xdd;

pub use error::{ImportError, Problem};
pub use run::{Origin, alike, together};
pub use tool::{Tool, recognise};

use record::Run;
use text::Fault;

/// Longest output that is read: some thousand fio jobs with all their bins.
pub const BYTES_MAX: u64 = 32 << 20;

/// Reads what a tool printed: the runs found in it, at least one, in the order of the text.
///
/// * `bytes`: all of the output; it has to be UTF-8.
/// * `tool`: which tool it is from; found out from the text if not given.
/// * `origin`: what is to stand in the runs about this import.
pub fn read(bytes: &[u8], tool: Option<Tool>, origin: &Origin) -> Result<Vec<Run>, ImportError> {
    let fail = |line, problem| ImportError::new(&origin.file, line, problem);
    if bytes.len() as u64 > BYTES_MAX {
        return Err(fail(None, Problem::TooMuch(format!("more than {} MiB", BYTES_MAX >> 20))));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        fail(Some(line), Problem::NotText)
    })?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(fail(None, Problem::Empty));
    }
    let tool_said = tool;
    let tool = match tool.or_else(|| recognise(text)) {
        Some(tool) => tool,
        None => return Err(fail(Some(1), Problem::Unknown { seen: text::first_line(text) })),
    };
    if tool_said.is_none()
        && let Some(other) = tool.besides(text)
    {
        return Err(fail(None, Problem::Several { tool, other }));
    }
    let drafts =
        tool.parse(&origin.file, text, tool_said.is_some()).map_err(|fault| match fault {
            // What is missing of one tool is nothing that another one forgot.
            Fault::Unfit { line, .. } if let Some(other) = another(tool_said, text) => {
                fail(line, Problem::Another { tool, other })
            }
            Fault::Unfit { line, seen, wanted } => fail(
                line,
                match tool_said.and_then(|said| said.besides(text)) {
                    Some(other) => Problem::Beside { tool, seen, wanted, other },
                    None => Problem::Unfit { tool, seen, wanted },
                },
            ),
            Fault::TooMuch { line, what } => fail(line, Problem::TooMuch(what)),
            Fault::OtherRun { line } => {
                fail(Some(line), Problem::OtherRun { tool, other: Tool::FioTerse })
            }
        })?;
    if !tool.is_whole(&origin.file, text, &drafts) {
        let line = text.lines().count();
        return Err(fail(Some(line), Problem::NoLineEnd { tool, seen: text::last_words(text) }));
    }
    run::limits(&drafts).map_err(|problem| fail(None, problem))?;
    drafts
        .into_iter()
        .map(|draft| run::from(draft, tool, bytes, origin).map_err(|problem| fail(None, problem)))
        .collect()
}

/// What a text looks like, where it was said to be something else.
fn another(said: Option<Tool>, text: &str) -> Option<Tool> {
    let said = said?;
    recognise(text).filter(|found| *found != said && !said.knows(text))
}
