//! Rows in which a side was not on one level: its rate is a mixture, whatever its interval says.

use std::collections::BTreeMap;

use record::VisitRecord;
use schemars::JsonSchema;
use serde::Serialize;
use stats::history::history;
use stats::outlier::median;

use super::pairs::{CellOf, Matched, Pair};
use super::{CellComparison, Design, Row, row_of};
use crate::drift::{self, Step};
use crate::steady::{self, WriteCliff};
use crate::view::{CellView, View};

/// So much of the way the difference of two sides goes at least with a change of one: the other may
/// have changed as well.
const WITH: f64 = 1.0 / 3.0;
/// Of so many visits one at either end may be odd, and says nothing of levels.
const ODD_OF: usize = 10;
/// A change of the differences' level is one where chance makes it this rarely.
const LEVEL_CHANCE: f64 = 0.003;
/// Fewest blocks of a level.
const LEVEL_BLOCKS: usize = 2;
/// The search takes the square of the blocks.
const BLOCKS_MAX: usize = 300;

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
            own.extend(cliffs.filter_map(|cliff| of_cliff(view, row, cliff)));
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

/// A fall of writes, between the visits in which as much was written.
fn of_cliff(view: &View<'_>, row: &CellView<'_>, cliff: &WriteCliff) -> Option<LevelChange> {
    let mut written = 0_u64;
    let series = row.visits.iter().map(|v| v.visit).filter(|v| v.order >= cliff.order_first);
    let until: Vec<(u64, &VisitRecord)> = series
        .map(|visit| {
            written = written.saturating_add(drift::written_bytes(visit));
            (written, visit)
        })
        .collect();
    let when = |bytes: u64| until.iter().find(|(written, _)| *written >= bytes).or(until.last());
    let from = when(cliff.at_bytes_low)?.1.started_unix_ns;
    let at = when(cliff.at_bytes_high)?.1;
    let at = at.started_unix_ns.saturating_add_unsigned(at.elapsed_ns);
    let [from_ns, at_ns] = [from, at].map(|ns| since_start(view, ns));
    Some(LevelChange { ratio: cliff.after / cliff.before, from_ns, at_ns })
}

fn since_start(view: &View<'_>, unix_ns: i64) -> u64 {
    u64::try_from(unix_ns.saturating_sub(view.run.header.started_unix_ns)).unwrap_or(0)
}

fn writes(row: &CellView<'_>) -> bool {
    row.visits.iter().flat_map(|visit| visit.counted()).any(|op| op.op == "write" && op.bytes > 0)
}

/// How far apart the levels of a side lie in a row that has changes, in logarithms: what they are told as,
/// and its visits, since a change between two others is told too small. Of many visits the odd one at
/// either end tells nothing. 0 of a row that stayed on one level.
fn span(changes: &[LevelChange], row: &CellView<'_>) -> f64 {
    if changes.is_empty() {
        return 0.0;
    }
    let (mut level, mut least, mut most) = (0.0_f64, 0.0_f64, 0.0_f64);
    for change in changes.iter().filter(|change| change.ratio > 0.0) {
        level += change.ratio.ln();
        (least, most) = (least.min(level), most.max(level));
    }
    let mut visits = row.ln_rates();
    visits.sort_unstable_by(f64::total_cmp);
    let left_out = visits.len() / ODD_OF;
    let ends = visits.get(left_out).zip(visits.iter().rev().nth(left_out));
    ends.map_or(0.0, |(low, high)| high - low).max(most - least)
}

/// By how much the ratio of each row may be off, in logarithms, since a side was not on one level: for how
/// long a device stays on which is not known from one run, so the rate of either side may be anywhere
/// between them. A side in which no change was seen may have been on one of the other's throughout.
pub(super) fn reaches(matched: &Matched<'_>, rows: &[CellComparison]) -> Vec<f64> {
    if matched.design == Design::Blocks {
        return reaches_of_blocks(matched);
    }
    let side = |of: fn(&CellComparison) -> &[LevelChange], row: CellOf| {
        let spans = rows.iter().zip(&matched.pairs).map(|(told, pair)| span(of(told), row(pair)));
        with_usual(spans.collect())
    };
    let a = side(|row| &row.reference_changes, |pair| &pair.a);
    let b = side(|row| &row.other_changes, |pair| &pair.b);
    a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect()
}

/// Where most rows changed, one cause moved all, and a row in which too few visits show it changed as far
/// as is usual among the others.
fn with_usual(spans: Vec<f64>) -> Vec<f64> {
    let usual = median(&spans).unwrap_or(0.0);
    spans.into_iter().map(|span| if span > 0.0 { span } else { usual }).collect()
}

/// In blocks what falls on both sides alike is in no ratio. But where the difference of the two changed its
/// level, one of them did, and the blocks are not so many independent values as they seem.
fn reaches_of_blocks(matched: &Matched<'_>) -> Vec<f64> {
    let of_all = span_of_differences(&matched.overall().blocks);
    let own = matched.pairs.iter().map(|pair| {
        span_of_differences(&pair.differences().map(|(_, far)| far).collect::<Vec<_>>())
    });
    own.map(|own| own.max(of_all)).collect()
}

/// How far apart the levels of differences lie that were made one after the other; 0 on one level.
fn span_of_differences(differences: &[f64]) -> f64 {
    if differences.len() > BLOCKS_MAX {
        return 0.0;
    }
    let changes = history(differences, LEVEL_CHANCE, LEVEL_BLOCKS);
    let levels = changes.iter().flat_map(|change| [change.before, change.after]);
    let (least, most) = levels.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), level| {
        (least.min(level), most.max(level))
    });
    (most - least).max(0.0)
}

/// The same of the mean over the rows that `counts` names. One cause moves all of them, so their
/// reaches do not average out.
pub(super) fn reach_of_mean(reaches: &[f64], counts: &dyn Fn(usize) -> bool) -> f64 {
    let each = reaches.iter().enumerate().filter(|(row, _)| counts(*row));
    let each: Vec<f64> = each.map(|(_, reach)| *reach).collect();
    each.iter().sum::<f64>() / each.len().max(1) as f64
}

/// Of a pair: the reference's changes and the other side's. In blocks only those with which the
/// difference of the two changed: what falls on both alike is in no ratio.
pub(super) fn of_pair(
    pair: &Pair<'_>,
    design: Design,
    views: [&View<'_>; 2],
    levels: [&Levels; 2],
) -> [Vec<LevelChange>; 2] {
    let rows = [&pair.a, &pair.b];
    let all = [0, 1].map(|side| levels[side].get(&row_of(rows[side])).cloned().unwrap_or_default());
    if design == Design::Apart {
        return all;
    }
    let begun = rows.map(|row| {
        let visits = row.visits.iter().map(|v| (v.visit.repeat, v.visit.started_unix_ns));
        visits.collect::<BTreeMap<u32, i64>>()
    });
    let block = |(number, difference)| {
        let begun = [*begun[0].get(&number)?, *begun[1].get(&number)?];
        Some(Block { begun, difference })
    };
    let blocks: Vec<Block> = pair.differences().filter_map(block).collect();
    let moments = [0, 1].map(|side| {
        let moment = |change| Moment::of(side, views[side], change);
        all[side].iter().map(moment).collect::<Vec<_>>()
    });
    let told = |side: usize| {
        let others = || moments.iter().flatten();
        let own = all[side].iter().zip(&moments[side]);
        own.filter(|(_, moment)| moment.is_in(&blocks, others)).map(|(change, _)| *change).collect()
    };
    [told(0), told(1)]
}

/// A block of a pair.
struct Block {
    /// When the visit of each side began, ns since 1970.
    begun: [i64; 2],
    /// ln of the other's rate by the reference's.
    difference: f64,
}

/// A side's change by the clock that both have.
struct Moment {
    side: usize,
    /// Not sooner, ns since 1970.
    from: i64,
    /// Nor later.
    at: i64,
    /// What it alone does to the difference.
    effect: f64,
}

impl Moment {
    fn of(side: usize, view: &View<'_>, change: &LevelChange) -> Self {
        let start = view.run.header.started_unix_ns;
        let effect = change.ratio.ln();
        Self {
            side,
            from: start.saturating_add_unsigned(change.from_ns),
            at: start.saturating_add_unsigned(change.at_ns),
            effect: if side == 0 { -effect } else { effect },
        }
    }

    /// Whether the difference of the two went with it, from the blocks between it and the change
    /// before to those between it and the next. How noisy it is need not be known: that the side
    /// changed is. True where there are no such blocks.
    fn is_in<'a, I>(&self, blocks: &[Block], all: impl Fn() -> I) -> bool
    where
        I: Iterator<Item = &'a Self>,
    {
        let middle = |is_of_level: &dyn Fn(&&Block) -> bool| {
            let of_level = blocks.iter().filter(is_of_level);
            median(&of_level.map(|block| block.difference).collect::<Vec<_>>())
        };
        let before = middle(&|block| {
            let mut sooner = all().filter(|o| o.at <= self.from && o.from < self.from);
            block.begun[self.side] < self.from && sooner.all(|o| block.begun[o.side] >= o.at)
        });
        let after = middle(&|block| {
            let mut later = all().filter(|o| o.from >= self.at && o.at > self.at);
            block.begun[self.side] >= self.at && later.all(|o| block.begun[o.side] < o.from)
        });
        let moved = before.zip(after).map(|(before, after)| after - before);
        moved.is_none_or(|moved| moved * self.effect.signum() >= WITH * self.effect.abs())
    }
}
