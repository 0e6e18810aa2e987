//! The originals' own tables, by name.
//!
//! A layout prints a run as the tool whose method it is prints its results: with that tool's
//! units, rounding and truncation, so that an old number and a new one can be compared. What it
//! would print and the run does not know stays blank or is what the tool prints for it.

use std::fmt;

use record::Run;

use crate::figures::streams_of;

/// How a tool prints its results.
#[derive(Clone, Copy)]
pub struct Layout {
    /// The name in suites and on the command line.
    pub name: &'static str,
    /// What it is, for a list.
    pub about: &'static str,
    /// The name of the tool in imported runs; empty where there is no import.
    pub tool: &'static str,
    /// What its figures are of where a cell has several visits.
    figures: &'static str,
    of: fn(&Run) -> Result<String, Misfit>,
}

/// Why a run cannot be printed in a layout: it lacks what the layout is about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the layout {layout} does not fit {run}: {why}")]
pub struct Misfit {
    layout: &'static str,
    run: String,
    why: String,
}

impl Misfit {
    /// `why`: what the run has not, or has and should not.
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { layout: "", run: String::new(), why: why.into() }
    }

    /// What the user could do about it.
    pub fn hint(&self) -> Option<String> {
        Some("every run can be printed with --layout grid".to_owned())
    }
}

/// Of those that print rates alone.
const MEAN: &str = "rates are the geometric mean of a cell's visits, as in our table; the original makes \
                    one visit";
/// Of those that print counts and times as well.
const TOGETHER: &str = "rates are what completed in all visits of a cell by their time together; \
                        the original makes one visit";

/// All of them.
pub const LAYOUTS: [Layout; 12] = [
    Layout {
        name: "bm-flash",
        about: "bm-flash's two tables: IOPS and BW, block size by threads",
        tool: "bm-flash",
        figures: MEAN,
        of: super::bm_flash::print,
    },
    Layout {
        name: "iometer",
        about: "IOMeter's results: IOps, MiBps and MBps, response times, CPU",
        tool: "iometer",
        figures: MEAN,
        of: super::iometer::print,
    },
    Layout {
        name: "bonnie",
        about: "bonnie++'s wide line: K/sec, %CP and latency of each phase",
        tool: "bonnie",
        figures: MEAN,
        of: super::bonnie::print,
    },
    Layout {
        name: "iozone",
        about: "IOZone's grid in kBytes/sec: record sizes by operations",
        tool: "iozone",
        figures: MEAN,
        of: super::iozone::print,
    },
    Layout {
        name: "orion",
        about: "Orion's summary, iops, mbps, lat and hist: small by large load",
        tool: "orion",
        figures: MEAN,
        of: super::orion::print,
    },
    Layout {
        name: "xdd",
        about: "xdd's result lines: pass by pass, average, combined",
        tool: "xdd",
        figures: "each visit is a pass by itself; average and combined are all bytes and \
                  operations by all time",
        of: super::xdd::print,
    },
    Layout {
        name: "dd",
        about: "dd's three lines: records, bytes, seconds and MB/s",
        tool: "",
        figures: "each visit by itself",
        of: super::dd::print,
    },
    Layout {
        name: "sysbench",
        about: "sysbench fileio as 1.0 prints it",
        tool: "sysbench-fileio",
        figures: TOGETHER,
        of: super::sysbench::print,
    },
    Layout {
        name: "sysbench-0.4",
        about: "sysbench fileio as 0.4 printed it",
        tool: "",
        figures: TOGETHER,
        of: super::sysbench::print_old,
    },
    Layout {
        name: "pg-test-fsync",
        about: "pg_test_fsync's list: ops/sec and usecs/op by method",
        tool: "pg-test-fsync",
        figures: MEAN,
        of: super::pg_test_fsync::print,
    },
    Layout {
        name: "ioping",
        about: "ioping's statistics: requests, rates, min/avg/max/mdev",
        tool: "ioping",
        figures: TOGETHER,
        of: super::ioping::print,
    },
    Layout {
        name: "crystaldiskmark",
        about: "CrystalDiskMark's lines, as KDiskMark prints them",
        tool: "",
        figures: "rates are the geometric mean of the visits, as in our table, where the original takes the \
                  arithmetic one of its loops; latencies are that one",
        of: super::crystaldiskmark::print,
    },
];

/// The layout of a name.
pub fn layout(name: &str) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.name == name)
}

/// The layout of the tool that an imported run is from; `None` for our own and where there is
/// none.
pub fn layout_of_import(run: &Run) -> Option<&'static Layout> {
    let tool = &run.header.imported.as_ref()?.tool;
    LAYOUTS.iter().find(|layout| !layout.tool.is_empty() && layout.tool == tool)
}

impl Layout {
    /// A run as the original would print it, line ends included.
    pub fn print(&self, run: &Run) -> Result<String, Misfit> {
        let mut text = (self.of)(run).map_err(|misfit| Misfit {
            layout: self.name,
            run: name_of(run),
            ..misfit
        })?;
        let visits = streams_of(run).iter().map(|stream| stream.counted().len()).max();
        if let Some(most) = visits.filter(|&most| most > 1) {
            let told = format!("(Up to {most} visits to a cell: {}.)", self.figures);
            text.push_str(&crate::text::wrapped("", &told));
        }
        Ok(text)
    }
}

fn name_of(run: &Run) -> String {
    let header = &run.header;
    let id = if header.id.is_empty() { "the run" } else { header.id.as_str() };
    crate::text::plain(&format!("{id} of {}", header.suite))
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Layout {}
