//! The tools whose output can be read.

use std::fmt;
use std::str::FromStr;

use crate::draft::Draft;
use crate::text::{self, Found, Text};
use crate::{
    bm_flash, bonnie, fio, fio_terse, iometer, ioping, iozone, oltp, orion, pg_test_fsync, pgbench,
    sysbench, xdd,
};

/// A tool whose output can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// fio's JSON, also json+ and behind its normal output.
    Fio,
    /// fio's terse lines.
    FioTerse,
    /// sysbench fileio, 0.4 to 1.x.
    SysbenchFileio,
    /// sysbench OLTP, 0.4 to 1.x.
    SysbenchOltp,
    /// bonnie++'s table or CSV, 1.03 to 2.00.
    Bonnie,
    /// bm-flash's tables.
    BmFlash,
    /// IOZone's grid or throughput mode.
    Iozone,
    /// Orion's summary or one of its CSV files.
    Orion,
    /// xdd's result lines.
    Xdd,
    /// ioping's statistics or batch line.
    Ioping,
    /// IOMeter's results file.
    Iometer,
    /// pg_test_fsync's tables.
    PgTestFsync,
    /// pgbench's report.
    Pgbench,
}

impl Tool {
    /// All, in the order in which they are looked for.
    pub const ALL: [Self; 13] = [
        Self::Fio,
        Self::FioTerse,
        Self::SysbenchFileio,
        Self::SysbenchOltp,
        Self::PgTestFsync,
        Self::Pgbench,
        Self::Ioping,
        Self::Iozone,
        Self::Iometer,
        Self::Orion,
        Self::Xdd,
        Self::BmFlash,
        Self::Bonnie,
    ];

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::FioTerse => "fio-terse",
            Self::SysbenchFileio => "sysbench-fileio",
            Self::SysbenchOltp => "sysbench-oltp",
            Self::Bonnie => "bonnie",
            Self::BmFlash => "bm-flash",
            Self::Iozone => "iozone",
            Self::Orion => "orion",
            Self::Xdd => "xdd",
            Self::Ioping => "ioping",
            Self::Iometer => "iometer",
            Self::PgTestFsync => "pg-test-fsync",
            Self::Pgbench => "pgbench",
        }
    }

    /// The name in sentences.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fio => "fio JSON",
            Self::FioTerse => "fio terse",
            Self::SysbenchFileio => "sysbench fileio",
            Self::SysbenchOltp => "sysbench OLTP",
            Self::Bonnie => "bonnie++",
            Self::BmFlash => "bm-flash",
            Self::Iozone => "IOZone",
            Self::Orion => "Orion",
            Self::Xdd => "xdd",
            Self::Ioping => "ioping",
            Self::Iometer => "IOMeter",
            Self::PgTestFsync => "pg_test_fsync",
            Self::Pgbench => "pgbench",
        }
    }

    /// Whether a text looks like the tool's, whole or not.
    pub(crate) fn knows(self, text: &str) -> bool {
        let has = |mark: &str| text.contains(mark);
        match self {
            Self::Fio => has("\"fio version\"") || has("\"jobs\"") && has("\"jobname\""),
            Self::FioTerse => text.lines().any(fio_terse::is_line),
            Self::SysbenchFileio => {
                has("sysbench") && has("total file size")
                    || has("Requests/sec executed")
                    || has("File operations:") && has("reads/s:")
            }
            Self::SysbenchOltp => {
                has("OLTP test statistics:") || has("SQL statistics:") && has("transactions:")
            }
            Self::PgTestFsync => has("Compare file sync methods"),
            Self::Pgbench => {
                has("number of transactions actually processed:") || has("transaction type: ")
            }
            Self::Ioping => has("ioping statistics ---") || ioping::is_batch(text),
            Self::Iozone => {
                has("Children see throughput for")
                    || has("iozone test complete.")
                    || has("Iozone: Performance Test")
                    || has("reclen") && has("rewrite") && has("reread")
            }
            Self::Iometer => has("'Target Type,Target Name,") || has("'Test Type,Test Description"),
            Self::Orion => {
                has("ORION VERSION")
                    || has("Maximum Small IOPS=")
                    || has("Maximum Large MBPS=")
                    || orion::is_csv(text)
            }
            Self::Xdd => {
                has("COMBINED ") || has("TARGET_PASS ") || has("What") && has("Bytes_Xfered")
            }
            Self::BmFlash => has("Read Tests:") || has("Write Tests:"),
            Self::Bonnie => bonnie::is_it(text),
        }
    }

    /// Another tool whose output the text looks like, too. fio prints one result in several forms.
    pub(crate) fn besides(self, text: &str) -> Option<Self> {
        let same = |other: Self| self == other || self == Self::Fio && other == Self::FioTerse;
        let has_batch = self != Self::Ioping && ioping::has_batch_line(text);
        let knows = |other: Self| other.knows(text) || other == Self::Ioping && has_batch;
        Self::ALL.into_iter().find(|other| !same(*other) && knows(*other))
    }

    /// Runs of the text; `name` is the file's, which tells what Orion's matrices hold.
    ///
    /// * `alone`: nothing but what this tool prints is to be read, whatever stands beside it.
    pub(crate) fn parse(self, name: &str, raw: &str, alone: bool) -> Found<Vec<Draft>> {
        if self == Self::Fio {
            return fio::read(raw, alone);
        }
        let text = &Text::new(name, raw)?;
        match self {
            Self::Fio => fio::read(raw, alone),
            Self::FioTerse => fio_terse::read(text),
            Self::SysbenchFileio => sysbench::read(text),
            Self::SysbenchOltp => oltp::read(text),
            Self::Bonnie => bonnie::read(text),
            Self::BmFlash => bm_flash::read(text),
            Self::Iozone => iozone::read(text),
            Self::Orion => orion::read(text),
            Self::Xdd => xdd::read(text),
            Self::Ioping => ioping::read(text),
            Self::Iometer => iometer::read(text),
            Self::PgTestFsync => pg_test_fsync::read(text),
            Self::Pgbench => pgbench::read(text),
        }
    }

    /// Whether the end of the last line is there, once its parser found that no line is missing.
    ///
    /// Every tool ends its last line. Where that end was lost, as in what was pasted, the line is
    /// whole only if it ends with what no shorter one does: `130us` may have been `130us,69us`, and
    /// `0.4` may have been `0.41`. Where it is words behind an empty line, and as much is read without
    /// it, it is of the page around.
    pub(crate) fn is_whole(self, name: &str, raw: &str, drafts: &[Draft]) -> bool {
        let last = raw.trim_end();
        let before = raw.rfind('\n').map_or("", |end| &raw[..=end]);
        let ends = |marks: &[&str]| marks.iter().any(|mark| last.ends_with(mark));
        raw.ends_with('\n')
            || text::is_page(raw) && last.ends_with('>')
            || match self {
                // The bracket that closes it was found.
                Self::Fio => true,
                Self::Iozone => ends(&["iozone test complete."]),
                Self::PgTestFsync => ends(&[" usecs/op"]),
                Self::Pgbench => ends(&[")"]),
                Self::BmFlash => {
                    let last = drafts.last().and_then(|draft| draft.cells.last());
                    ends(&["K", "M"]) && last.is_some_and(|cell| !cell.blank)
                }
                Self::Ioping => ends(&[" ns", " us", " ms", " s"]),
                _ => false,
            }
            || before.ends_with("\n\n")
                && is_prose(raw.get(before.len()..).unwrap_or_default())
                && self.parse(name, before, true).is_ok_and(|found| found == drafts)
    }
}

/// Whether a line is words and no more: the beginning of a row of figures is none.
fn is_prose(line: &str) -> bool {
    let is_word = |word: &str| word.chars().filter(|c| c.is_alphabetic()).count() >= 2;
    line.split_whitespace().filter(|word| is_word(word)).count() >= 2
        && !line.contains(|c: char| c.is_ascii_digit())
}

/// The tool whose output a text looks like, whole or not.
pub fn recognise(text: &str) -> Option<Tool> {
    Tool::ALL.into_iter().find(|tool| tool.knows(text))
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tool {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|tool| tool.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|tool| tool.name()).collect();
            format!("no tool `{name}`; known are {}", names.join(", "))
        })
    }
}
