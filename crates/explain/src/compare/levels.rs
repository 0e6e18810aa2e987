//! Rows in which a side was not on one level: its rate is a mixture, whatever its interval says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use stats::changepoint;

use super::pairs::Pair;
use super::{Design, Row, row_of};
use crate::drift::{self, Step};
use crate::steady;
use crate::view::{CellView, View};

/// Fewest blocks of a level.
const SEGMENT_BLOCKS: usize = 3;

/// A change of level within a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelChange {
    /// Rate after by rate before.
    pub ratio: f64,
    /// It did not come sooner; since the start of the run.
    pub from_ns: u64,
    /// It did not come later.
    pub at_ns: u64,
}

/// Of a run, row by row: what `explain` tells of it.
pub(super) type Levels = BTreeMap<Row, Vec<LevelChange>>;

/// Changes of level of a row: its own over its visits and within them, else those that all cells
/// share, else where its writes fell for good.
pub(super) fn levels(view: &View<'_>) -> Levels {
    let found = drift::drift(view);
    let cliffs = steady::write_cliffs(view);
    let of_row = |row: &CellView<'_>| -> Vec<LevelChange> {
        let is_it =
            |cell: u32, stream: Option<&str>| cell == row.cell.index && stream == row.stream_name();
        let over = found.cells.iter().filter(|of| is_it(of.cell, of.stream.as_deref()));
        let mut own: Vec<LevelChange> = over.flat_map(|of| &of.steps).map(|s| of(s, 0)).collect();
        for within in found.visits.iter().filter(|of| is_it(of.cell, of.stream.as_deref())) {
            let begun = row.visits.iter().find(|visit| visit.visit.order == within.order);
            let begun = begun.map_or(0, |visit| since_start(view, visit.visit.started_unix_ns));
            own.extend(within.steps.iter().map(|step| of(step, begun)));
        }
        if own.is_empty() {
            let parts = found.parts.iter().filter(|part| part.phases.contains(&row.cell.phase));
            own.extend(parts.flat_map(|part| &part.steps).map(|step| of(step, 0)));
        }
        if own.is_empty() && writes(row) {
            let cliffs = cliffs.iter().filter(|cliff| cliff.cell == row.cell.index);
            own.extend(cliffs.filter_map(|cliff| {
                let from = row.visits.iter().find(|v| v.visit.order == cliff.order_first)?.visit;
                let last = row.visits.last()?.visit;
                let end = last.started_unix_ns.saturating_add_unsigned(last.elapsed_ns);
                let [from_ns, at_ns] = [from.started_unix_ns, end].map(|ns| since_start(view, ns));
                Some(LevelChange { ratio: cliff.after / cliff.before, from_ns, at_ns })
            }));
        }
        own.sort_by_key(|change| change.at_ns);
        own
    };
    view.rows
        .iter()
        .map(|row| (row_of(row), of_row(row)))
        .filter(|(_, own)| !own.is_empty())
        .collect()
}

fn of(step: &Step, begun_ns: u64) -> LevelChange {
    LevelChange {
        ratio: step.ratio(),
        from_ns: step.from_ns.saturating_add(begun_ns),
        at_ns: step.at_ns.saturating_add(begun_ns),
    }
}

fn since_start(view: &View<'_>, unix_ns: i64) -> u64 {
    u64::try_from(unix_ns.saturating_sub(view.run.header.started_unix_ns)).unwrap_or(0)
}

fn writes(row: &CellView<'_>) -> bool {
    row.visits.iter().flat_map(|visit| visit.counted()).any(|op| op.op == "write" && op.bytes > 0)
}

/// Of a pair: the reference's changes and the other side's. In blocks only where the difference of the
/// two changed with them: what falls on both alike is in no ratio.
pub(super) fn of_pair(
    pair: &Pair<'_>,
    design: Design,
    (reference, other): (&Levels, &Levels),
) -> [Vec<LevelChange>; 2] {
    let tells = match design {
        Design::Apart => true,
        Design::Blocks => {
            let differences = pair.differences();
            let changes = changepoint::changes(&differences, SEGMENT_BLOCKS);
            changes.is_some_and(|changes| changes.segments.len() > 1)
        }
    };
    let own = |levels: &Levels, row: &CellView<'_>| {
        levels.get(&row_of(row)).filter(|_| tells).cloned().unwrap_or_default()
    };
    [own(reference, &pair.a), own(other, &pair.b)]
}
