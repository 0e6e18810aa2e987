//! Which rows of a run are not known as well as was asked for, told alike wherever it is told: as a
//! mark, as a warning of the run, in its explanation.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use suite::model::{Method, Suite};
use units::Nanos;

use crate::interval::{self, Basis, CellInterval};
use crate::view::{CellView, View, is_preparation};
use crate::words::{count, percents_apart};

/// A row whose interval is wider than was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// Index of its cell.
    pub cell: u32,
    /// The stream, of a cell that has several.
    pub stream: Option<String>,
    /// How wide it is, and what was wanted.
    pub evidence: String,
    /// It had all the visits that it may have.
    pub at_cap: bool,
}

/// How much of a run is not known as well as was asked for. In a run of one stream a cell, rows are
/// its cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct NotConverged {
    /// Rows with a mark `not-converged`: cells, or streams of cells that have several.
    pub rows: u32,
    /// Rows that could have it: those of phases that end by how well they are known.
    pub of_rows: u32,
    /// Cells that these rows are of.
    pub cells: u32,
    /// And of those.
    pub of_cells: u32,
    /// Of `cells`, those that had all the visits they may have; there was no time for the others.
    pub at_cap: u32,
    /// What was asked for, as a share: 0.05 for 5 %. Null where nothing was.
    pub wanted: Option<f64>,
    /// Visits that a cell may have.
    pub visits_max: u32,
    /// Time that the visits may take together.
    pub time_max_ns: u64,
}

/// What a plan asks of its intervals.
pub(crate) struct Asked {
    plan: Suite,
}

impl Asked {
    /// `None` where the plan cannot be read, or has no intervals between visits: played in an order
    /// of its own, or with one visit to a cell.
    pub(crate) fn of(view: &View<'_>) -> Option<Self> {
        let plan = crate::findings::plan(view)?;
        let by_width = plan.method == Method::Rounds && plan.rounds.visits_max > 1;
        // A comparison in turns has as many visits as it has blocks.
        (by_width && view.run.header.blocks.is_none()).then_some(Self { plan })
    }

    /// Whether the width of its interval ends a row's visits; rounds of a steady phase end by
    /// another rule.
    fn is_about(&self, row: &CellView<'_>) -> bool {
        let phase = self.plan.phases.iter().find(|phase| phase.name == row.cell.phase);
        !is_preparation(&row.cell.phase) && phase.is_some_and(|phase| phase.steady.is_none())
    }

    /// A row that is not known so well. One that was never visited is another matter.
    pub(crate) fn open(&self, row: &CellView<'_>, found: Option<&CellInterval>) -> Option<Open> {
        let wanted = self.plan.rounds.precision;
        if !self.is_about(row) || row.visits.is_empty() {
            return None;
        }
        let visits = row.visits.len();
        let (seen, wanted) = match found.filter(|found| found.basis == Basis::Visits) {
            // Nothing is known of how visits differ.
            None => (None, crate::words::percent(wanted)),
            Some(found) => {
                // A hair wider is what the rule that ends a cell calls narrow enough. More visits
                // do nothing for what every visit's start and end do: another mark is of that.
                let by_visits =
                    (1.0 + found.half_width) / (1.0 + found.ends_share.unwrap_or(0.0)) - 1.0;
                if by_visits <= wanted * (1.0 + 1e-9) {
                    return None;
                }
                let (seen, wanted) = percents_apart(by_visits, wanted);
                (Some(seen), wanted)
            }
        };
        let visits_told = count(visits as u64, "visit");
        let evidence = match seen {
            Some(seen) => format!("+-{seen} after {visits_told}, wanted {wanted}"),
            None => format!("{visits_told} cannot tell how sure it is, wanted {wanted}"),
        };
        Some(Open {
            cell: row.cell.index,
            stream: row.stream_name().map(str::to_owned),
            evidence,
            at_cap: visits >= self.plan.rounds.visits_max as usize,
        })
    }
}

/// How much of a run is not known as well as was asked for.
pub fn not_converged(view: &View<'_>) -> NotConverged {
    let Some(asked) = Asked::of(view) else { return NotConverged::default() };
    let rows = view.rows.iter().zip(interval::rows(view));
    let rows = rows.filter(|(row, _)| asked.is_about(row) && row.cell.impossible.is_none());
    let rows: Vec<(u32, Option<Open>)> =
        rows.map(|(row, found)| (row.cell.index, asked.open(row, found.as_ref()))).collect();
    let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let cells = |of: &dyn Fn(&Option<Open>) -> bool| {
        let of = rows.iter().filter(|(_, open)| of(open)).map(|(cell, _)| cell);
        size(of.collect::<BTreeSet<_>>().len())
    };
    let rounds = &asked.plan.rounds;
    NotConverged {
        rows: size(rows.iter().filter(|(_, open)| open.is_some()).count()),
        of_rows: size(rows.len()),
        cells: cells(&|open| open.is_some()),
        of_cells: cells(&|_| true),
        at_cap: cells(&|open| open.as_ref().is_some_and(|open| open.at_cap)),
        wanted: Some(rounds.precision),
        visits_max: rounds.visits_max,
        time_max_ns: rounds.time_max.get(),
    }
}

impl NotConverged {
    /// How many and why, without a full stop; `None` where all are known as well as was asked for.
    pub fn text(&self) -> Option<String> {
        let wanted = self.wanted.filter(|_| self.rows > 0)?;
        let (visits, time) = (count(self.visits_max.into(), "visit"), Nanos::new(self.time_max_ns));
        let late = self.cells.saturating_sub(self.at_cap);
        let what = match self.of_rows > self.of_cells {
            true => format!(
                "{} of {} streams, in {} of {} cells,",
                self.rows, self.of_rows, self.cells, self.of_cells
            ),
            false => format!("{} of {}", self.cells, count(self.of_cells.into(), "cell")),
        };
        let are = if self.rows == 1 { "is" } else { "are" };
        let unknown = format!("{what} {are} not known to {} %", (wanted * 1e4).round() / 1e2);
        Some(match (late, self.at_cap) {
            (0, _) => format!("{unknown}, after the {visits} that a cell may have"),
            (_, 0) => format!("the time of {time} ran out: {unknown}"),
            (late, spent) => format!(
                "{unknown}: the time of {time} ran out for {late}, and {spent} had the {visits} \
                 that each may have"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Findings;

    #[test]
    fn marks_and_count_are_of_one_interval_a_row() {
        let mut run = crate::interference::tests::both(2_500, Nanos::millis(8));
        run.header.suite_text = r#"
schema = 1
name = "s"
file_size = "1GiB"
[defaults]
access = "uniform"
block_size = "4KiB"
operation = "read"
time = "1s"
[[phase]]
name = "p"
grid.streams = ["a", "b", "all"]
[[phase.stream]]
name = "a"
[[phase.stream]]
name = "b"
"#
        .to_owned();
        // Alone its visits differ much, beside the other little: what is usual is between.
        for visit in run.visits.iter_mut().filter(|visit| visit.cell == 0) {
            visit.streams[0].ops[0].requests += u64::from(visit.repeat) * 700;
        }
        let view = View::new(&run);
        let findings = Findings::of(&view);
        for (row, interval) in view.rows.iter().zip(interval::rows(&view)) {
            assert_eq!(findings.interval_of(&view, row), interval.as_ref(), "{}", row.name());
        }
        let marks = findings.marks(&view);
        let marked = marks.iter().filter(|mark| mark.code == "not-converged").count();
        let found = &findings.not_converged;
        assert_eq!((marked as u32, found.of_rows, found.of_cells), (found.rows, 4, 3));
        let text = found.text().unwrap_or_default();
        assert!(text.contains(&format!("{marked} of 4 streams, in ")), "{text}");
    }
}
