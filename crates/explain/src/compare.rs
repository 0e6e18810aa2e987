//! Comparing runs: is there a difference, how large, and can it be told at all.
//!
//! One run is the reference, A; each of the others is held against it, cell by cell and over
//! all. Runs whose header names one block group were measured together, and every block gives one
//! difference; others were measured one after the other, and all drift between them is in the
//! result. See `docs/compare.md`.

mod blocks;
mod control;
mod failing;
mod judge;
mod levels;
mod pairs;
mod stalls;
mod tail;
mod words;

use std::collections::BTreeMap;

use record::Blocks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrays::{self, Arrays};
use crate::differ::{Differences, differences};
use crate::drift::{Step, shared_steps};
use crate::view::{CellView, Load, View};
use crate::whole::Whole;
use control::Checked;
use judge::{Evidence, judge};
use pairs::{Matched, Pair, matched};

pub use blocks::{compare_blocks, compare_grid};
pub use control::{Control, ControlCell, Finding, LEVEL as CONTROL_LEVEL};
pub use levels::LevelChange;
pub use stalls::Stalls;
pub use tail::PercentileRatio;
pub(crate) use tail::percentile;

/// The name of the contract that [`Comparison`] is written by.
pub const SCHEMA: &str = "plimsoll.comparison/1";
/// Difference that does not matter, where nobody said otherwise: 3 %.
pub const MARGIN: f64 = 0.03;
/// Confidence of intervals, where nobody said otherwise.
pub const CONFIDENCE: f64 = 0.95;

/// What is asked of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Differences up to this share do not matter: 0.03 is 3 %.
    pub margin: f64,
    /// The machine's own noise, if it was measured.
    pub floor: Option<Floor>,
    /// Of the intervals, in `0.5..1.0`; tests are at one minus this.
    pub confidence: f64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { margin: MARGIN, floor: None, confidence: CONFIDENCE }
    }
}

/// How far two measurements of the same configuration lie apart on a machine: found by measuring
/// it against itself. Shares: 0.03 is 3 %.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Floor {
    /// For cells of a class.
    pub classes: Vec<(ClassName, f64)>,
    /// For cells of no class above, and for a whole comparison.
    pub overall: f64,
    /// Blocks that each value it is from is the mean of; 0 where that is not known.
    pub blocks: u32,
    /// Where it is from, for people: `calibrate of 21 November 2026 on db1`.
    pub from: String,
}

impl Floor {
    /// The share for a cell of this load.
    pub fn of(&self, load: Option<&Load>) -> f64 {
        let class = load.map(ClassName::of);
        let found = self.classes.iter().find(|(name, _)| Some(name) == class.as_ref());
        found.map_or(self.overall, |(_, share)| *share)
    }

    /// The same for a cell of so many visits to either side: means of fewer than [`Self::blocks`]
    /// lie further apart, by the square root. Of more visits no less is promised, since what is
    /// slower than a visit does not average out.
    pub fn of_visits(&self, load: Option<&Load>, visits: usize) -> f64 {
        let share = self.of(load);
        if visits == 0 || visits >= self.blocks as usize {
            return share;
        }
        let wider = (f64::from(self.blocks) / visits as f64).sqrt();
        (share.ln_1p() * wider).exp_m1()
    }
}

/// Cells that are expected to be equally noisy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ClassName {
    /// `read`, `write`, `mixed`, ...
    pub op: String,
    /// By the size of a request.
    pub block: BlockClass,
    /// By requests in flight.
    pub in_flight: InFlightClass,
}

/// By the size of a request.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum BlockClass {
    /// Up to 16 KiB: a database's page.
    Page,
    /// Larger.
    Large,
}

/// By requests in flight.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum InFlightClass {
    /// One: latency decides.
    One,
    /// 2 to 16.
    Few,
    /// More than 16: the ceiling decides.
    Many,
}

impl ClassName {
    /// The class of a load.
    pub fn of(load: &Load) -> Self {
        Self {
            op: load.op.clone(),
            block: if load.block_bytes <= 16 << 10 { BlockClass::Page } else { BlockClass::Large },
            in_flight: match load.in_flight {
                0..=1 => InFlightClass::One,
                2..=16 => InFlightClass::Few,
                _ => InFlightClass::Many,
            },
        }
    }
}

/// A comparison of runs with a reference. Unknown is null, never missing; fields may be added
/// within version 1. Ratios are of rates, the other side's by the reference's: above 1 is faster
/// than the reference. Rates are requests per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "plimsoll.comparison/1")]
pub struct Comparison {
    /// Always `plimsoll.comparison/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Of all intervals but the sides' own, which are of 95 %.
    pub confidence: f64,
    /// The margin asked for, as a share.
    pub margin: f64,
    /// The machine's own noise, if it was measured.
    pub floor: Option<Floor>,
    /// The reference first.
    pub sides: Vec<Side>,
    /// One for each side but the first.
    pub against: Vec<Against>,
}

/// A run in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// `A` is the reference; `B`, `C`, ...
    pub label: String,
    /// The run's id.
    pub run: String,
    /// Its suite's name.
    pub suite: String,
    /// Its target as the user named it.
    pub target: String,
    /// Wall clock at its start, ns since 1970.
    pub started_unix_ns: i64,
    /// The state of the arrays that it was measured on; null where nothing is known of them.
    pub arrays: Option<Arrays>,
    /// Changes of level within the run that its cells share.
    pub steps: Vec<Step>,
}

/// A side held against the reference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Against {
    /// The side's label.
    pub label: String,
    /// What differs between the two.
    pub differences: Differences,
    /// How they were measured.
    pub design: Design,
    /// How often it was to be looked at, by plan.
    pub looks: u32,
    /// Whether it is the reference's configuration once more, after another: what it differs by
    /// is drift.
    pub bracket: bool,
    /// How far such a bracket lies from the reference, or an earlier run of either configuration from
    /// it, as a share, where there is one: no smaller difference is claimed.
    pub drift: Option<f64>,
    /// What blocks of the first side against itself say, where such were planned.
    pub control: Option<Control>,
    /// What may be said of the two: different where the ratio over all is, where any cell of those
    /// in it is, however little that moves the ratio over all, and where more requests of one fail
    /// than chance explains; else as `overall`.
    pub verdict: Verdict,
    /// Cells in the ratio over all in which this side is different and faster, after Holm.
    pub faster: u32,
    /// The same, slower.
    pub slower: u32,
    /// Geometric mean over those of `cells` that count; where streams are unlike, of the stream that
    /// decides. Its verdict is of the mean alone: what some cells lose or win can be lost in it.
    pub overall: Outcome,
    /// The same of each stream by itself, the one that decides first, where there are several: a
    /// mean of a log and of page reads is a figure of nothing. Empty otherwise.
    pub streams: Vec<StreamComparison>,
    /// Cells that both have, in the suite's order, those of several streams stream by stream.
    pub cells: Vec<CellComparison>,
    /// Cells that only the reference has.
    pub only_reference: Vec<String>,
    /// Cells that only this side has.
    pub only_other: Vec<String>,
    /// Whether a stream's rate was set by a schedule: such rates compare schedules.
    pub scheduled: bool,
    /// What the reference lacks: visits that failed, are missing, or hold numbers that cannot be.
    pub reference_whole: Whole,
    /// The same of this side.
    pub other_whole: Whole,
    /// What is to be said of the state of the arrays below, where one was not whole and at rest.
    pub arrays: Option<String>,
}

/// A stream over all cells that have it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StreamComparison {
    /// Its name.
    pub stream: String,
    /// Cells.
    pub cells: u32,
    /// Ratio and verdict, over the streams together.
    pub outcome: Outcome,
}

/// How two runs were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// In blocks of both sides, in random order: what drifts falls out.
    Blocks,
    /// One after the other: drift between them cannot be told from a difference.
    Apart,
}

/// A cell of both sides; of a cell of several streams one of these for each stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellComparison {
    /// Phase and place in the grid, and the stream among several: `server all · log`.
    pub cell: String,
    /// The stream, of a cell that has several.
    pub stream: Option<String>,
    /// Whether the two asked for the same: false where only phase and place are alike.
    pub same_load: bool,
    /// Whether the suite sets its rate: where both reached it, that compares schedules.
    pub scheduled: bool,
    /// Whether the reference was offered more than it took: its rate is then what the storage did.
    pub reference_fell_behind: bool,
    /// The same of the other side.
    pub other_fell_behind: bool,
    /// Whether it is in the ratio over all: not where the suite sets its rate and both reached it, nor
    /// where a single request or burst more or less would be a good part of its rate; unless nothing
    /// else was measured.
    pub counts: bool,
    /// On the reference.
    pub reference: Rate,
    /// On the other side.
    pub other: Rate,
    /// Share of the reference's requests that a cache answered, where one did. There is a ratio only where
    /// both sides have the same: it compares caches.
    pub reference_cached: Option<f64>,
    /// The same of the other side.
    pub other_cached: Option<f64>,
    /// Changes of level within the reference's run here: its rate is a mixture. Of runs in blocks none where
    /// the difference of the two stayed what it was.
    pub reference_changes: Vec<LevelChange>,
    /// The same of the other side.
    pub other_changes: Vec<LevelChange>,
    /// Ratio and verdict.
    pub outcome: Outcome,
    /// The same requests' latency.
    pub latency: Option<LatencyRatio>,
}

/// A rate with the interval of its own run, of 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rate {
    /// Requests per second: geometric mean over the visits. Null when nothing completed.
    pub per_second: Option<f64>,
    /// Lower end; null with fewer than two visits.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Visits that counted.
    pub visits: u32,
    /// Times in which nothing completed.
    pub stalls: Stalls,
}

/// Latency of two sides. In a closed loop the mean follows from the rate, so there is no verdict on it;
/// the tail does not.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyRatio {
    /// Mean of the reference, ns.
    pub reference_mean_ns: f64,
    /// Mean of the other side, ns.
    pub other_mean_ns: f64,
    /// The other side's mean by the reference's: above 1 is slower.
    pub mean_ratio: f64,
    /// Of the 50th, 99th and 99.9th percentile those that three visits of each side have: ten values of
    /// each visit lie above it.
    pub percentiles: Vec<PercentileRatio>,
}

/// A ratio, and what may be said about it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    /// What decided.
    pub method: Method,
    /// Blocks, or visits of the side with fewer.
    pub count: u32,
    /// By the method that decided.
    pub ratio: Option<Ratio>,
    /// The same with the narrower interval that decides whether two are the same: that of two
    /// one-sided tests.
    pub same_ratio: Option<Ratio>,
    /// How often such a narrower interval holds the ratio: 0.9 where others are of 0.95.
    pub same_confidence: f64,
    /// In blocks, by the other method: the mean where the ranks decide, and the reverse.
    pub twin: Option<Ratio>,
    /// Differences up to this share count for nothing here.
    pub margin: f64,
    /// Where that is from.
    pub margin_from: MarginFrom,
    /// How likely a difference as large is if there is none; over several cells after Holm.
    pub p: Option<f64>,
    /// How likely it is if the difference is no more than the margin; likewise.
    pub p_beyond: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Which way, where there is a difference, even one that the margin may hold.
    pub direction: Option<Direction>,
    /// About how many more blocks, or visits on each side, an inconclusive one needs; null when
    /// that is not known or more than is sensible.
    pub more: Option<u32>,
    /// Why to look twice.
    pub doubts: Vec<Doubt>,
}

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The other side's rate by the reference's.
    pub ratio: f64,
    /// Lower end of the interval; null when there is none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Hodges and Lehmann's estimate, exact signed ranks.
    SignedRank,
    /// Mean of the blocks' differences, Student's t.
    PairedT,
    /// Means of visits, Welch's t.
    Welch,
    /// Nothing: only the ratio of what there is.
    None,
}

/// What may be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval lies beyond the margin.
    Different,
    /// The whole interval of two one-sided tests (of 90 %, where others are of 95 %) lies within
    /// the margin.
    Same,
    /// Neither.
    Inconclusive,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Faster than the reference.
    Faster,
    /// Slower.
    Slower,
}

/// Where a margin is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarginFrom {
    /// As asked for.
    Asked,
    /// The machine's own floor is larger.
    Floor,
    /// The reference's second run, or an earlier one of either configuration, lies further away.
    Drift,
    /// The reference lies further from itself, in blocks made to check the comparison.
    Control,
}

/// Why to look twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// A cache answered on one side, or a larger share of requests than on the other: there is no ratio.
    Cached,
    /// Nothing completed on a side.
    NothingCompleted,
    /// A side stood still for a good part of a visit, and how often it does is not known from so
    /// few visits: the other's rate lies within what that leaves open.
    Standstills,
    /// A side changed its level within its run, and for how long it has which level is not known: the
    /// other's rate lies within what that leaves open.
    Levels,
    /// So few requests that the start and the end of visits may make the difference, or hide one:
    /// longer visits would tell, more of them do not.
    FewRequests,
    /// Only one visit on a side, or one block: no interval.
    Single,
    /// Fewer than six blocks: an interval, but no claim.
    FewBlocks,
    /// Mean and median of the blocks disagree: a few odd runs carry the difference, or hide it.
    FewBadRuns,
    /// A block's difference is odd among the others.
    OddBlock,
    /// The reference measured again, or an earlier run of either configuration, lies as far away: drift
    /// can have made the difference, or hidden one.
    WithinDrift,
    /// The reference lies as far from itself in blocks made to check the comparison.
    WithinControl,
    /// The estimate lies so near the margin that no sensible count settles it.
    AtTheMargin,
    /// At 95 % so many or a sensible number more would settle it: it is the confidence asked for
    /// that so few cannot give.
    FewForConfidence,
}

/// The JSON schema of [`Comparison`].
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Comparison)
}

/// Holds runs against the first of them.
///
/// * `sides`: the reference first; fewer than two give an empty comparison.
/// * Runs of one block group are compared by blocks: visits of one cell with the same `repeat`.
/// * Where a group was planned to be looked at twice, the confidence is that of each look.
/// * A side that does not differ from the reference, beside one that does, is a bracket: its
///   distance from the reference is drift, and the margin of the others is at least that.
pub fn compare(sides: &[View<'_>], terms: &Terms) -> Comparison {
    compare_beside(sides, None, &[], terms)
}

/// As [`compare`], beside what else was measured.
///
/// * `again`: the run that is the first side of the block group once more. Blocks that hold a side
///   against itself are in no ratio. Where it is further from itself than noise allows, the margins
///   reach as far.
/// * `earlier`: runs that may be of the configuration of a side. Where one is, and is further from it
///   than chance and the margin allow, the margin of sides measured apart reaches as far.
pub fn compare_beside(
    sides: &[View<'_>],
    again: Option<&View<'_>>,
    earlier: &[View<'_>],
    terms: &Terms,
) -> Comparison {
    let terms = &Terms { confidence: confidence(sides, terms.confidence), ..terms.clone() };
    let labelled = sides.iter().enumerate().map(|(k, view)| side(k, view)).collect();
    Comparison {
        schema: SCHEMA.to_owned(),
        confidence: terms.confidence,
        margin: terms.margin,
        floor: terms.floor.clone(),
        sides: labelled,
        against: against_all(sides, again, earlier, terms),
    }
}

/// What each look has to keep for all looks together to keep what was asked: where two were
/// planned, more. A look that was planned and never taken costs the same.
fn confidence(sides: &[View<'_>], asked: f64) -> f64 {
    let two = sides.iter().any(|side| looks(side) > 1);
    let level = stats::paired::level_of_two_looks(asked).filter(|_| two);
    level.map_or(asked, |level| 1.0 - level)
}

fn looks(side: &View<'_>) -> u32 {
    side.run.header.blocks.as_ref().map_or(1, |blocks| blocks.looks)
}

fn side(position: usize, view: &View<'_>) -> Side {
    let header = &view.run.header;
    Side {
        label: label(position),
        run: header.id.clone(),
        suite: header.suite.clone(),
        target: header.target.given.clone(),
        started_unix_ns: header.started_unix_ns,
        arrays: Arrays::of(view.run),
        steps: shared_steps(view),
    }
}

/// `A` to `Z`, then `S27` and on.
pub(crate) fn label(position: usize) -> String {
    match u8::try_from(position) {
        Ok(k) if k < 26 => char::from(b'A' + k).to_string(),
        _ => format!("S{}", position + 1),
    }
}

fn against_all(
    sides: &[View<'_>],
    again: Option<&View<'_>>,
    earlier: &[View<'_>],
    terms: &Terms,
) -> Vec<Against> {
    let Some((reference, others)) = sides.split_first() else { return Vec::new() };
    let differ: Vec<_> = others.iter().map(|o| differences(reference.run, o.run)).collect();
    let some_differ = differ.iter().any(|d| !d.is_none());
    let brackets: Vec<Matched<'_>> = others
        .iter()
        .zip(&differ)
        .filter(|(_, d)| some_differ && d.is_none())
        .map(|(other, _)| matched(reference, other))
        .collect();
    let drift = Drift::of(&brackets);
    let levels_of_reference = levels::levels(reference);
    let each = others.iter().zip(differ).enumerate().map(|(k, (other, differences))| {
        let bracket = some_differ && differences.is_none();
        let matched = matched(reference, other);
        let apart = matched.design == Design::Apart;
        let earlier = earlier.iter().filter(|_| apart);
        let drift = Drift::or_earlier(drift.as_ref(), [reference, other], earlier, terms);
        let drift = drift.as_ref().filter(|_| !bracket);
        let checked = checked(sides, other, again, &matched, terms);
        let control = checked.as_ref().and_then(|checked| checked.far.as_ref());
        let mut cells = cells(&matched, terms, drift, control);
        let scheduled = [scheduled(reference), scheduled(other)].concat();
        let levels = [&levels_of_reference, &levels::levels(other)];
        for (row, pair) in cells.iter_mut().zip(&matched.pairs) {
            [row.reference_changes, row.other_changes] =
                levels::of_pair(pair, matched.design, [reference, other], levels);
            let of = |(phase, stream): &(String, Option<String>)| {
                let own = stream.as_ref().is_none_or(|stream| pair.a.has_stream(stream));
                *phase == pair.a.cell.phase && own
            };
            row.scheduled = scheduled.iter().any(of);
        }
        let reaches = levels::reaches(&matched, &cells);
        for (row, reach) in cells.iter_mut().zip(&reaches) {
            row.widen_by_levels(*reach);
        }
        let all = cells.iter().map(|row| row.outcome.count as usize).sum();
        let margin = margin(terms, (None, all), drift.map(|d| d.overall));
        let margin = no_less(margin, control.map(|far| far.overall));
        // What was offered is no answer of the storage's, unless nothing else was asked.
        let all_set = !cells.iter().any(CellComparison::is_of_storage);
        let is_of_it = |row: &CellComparison| all_set || row.is_of_storage();
        let is_of_it = |row: &CellComparison| is_of_it(row) && !row.outcome.is_of_cache();
        let of_one: Vec<bool> = matched.pairs.iter().map(Pair::is_of_one_request).collect();
        let all_of_one = !cells.iter().zip(&of_one).any(|(row, of_one)| is_of_it(row) && !of_one);
        for (row, of_one) in cells.iter_mut().zip(of_one) {
            row.counts = is_of_it(row) && (all_of_one || !of_one);
        }
        let counts = |row: usize| cells.get(row).is_some_and(|row| row.counts);
        let different = |way| {
            let is_it = |&row: &usize| cells[row].outcome.is_different(way) && counts(row);
            // What a repeat of the reference differs by is drift, in a cell as over all.
            let all = (0..cells.len()).filter(is_it).filter(|_| !bracket);
            u32::try_from(all.count()).unwrap_or(u32::MAX)
        };
        let (faster, slower) = (different(Direction::Faster), different(Direction::Slower));
        let mut streams = by_stream(&matched, &cells, &reaches, (margin, terms.confidence));
        let overall = match streams.first() {
            Some(first) => first.outcome.clone(),
            None if cells.iter().any(|row| row.outcome.is_of_cache()) => {
                Outcome { doubts: vec![Doubt::Cached], ..Outcome::unknown() }
            }
            None => Outcome::unknown(),
        };
        if streams.len() == 1 {
            streams.clear();
        }
        let mut against = Against {
            label: label(k + 1),
            differences,
            verdict: if faster + slower > 0 { Verdict::Different } else { overall.verdict },
            faster,
            slower,
            design: matched.design,
            looks: looks(reference).max(looks(other)),
            bracket,
            drift: drift.map(|d| d.overall.exp_m1()),
            control: checked.map(|checked| checked.control),
            overall,
            streams,
            cells,
            only_reference: matched.only_reference.clone(),
            only_other: matched.only_other.clone(),
            scheduled: !scheduled.is_empty(),
            reference_whole: Whole::of(reference),
            other_whole: Whole::of(other),
            arrays: {
                let [a, b] = [reference, other].map(|side| Arrays::of(side.run));
                arrays::between(a.as_ref(), b.as_ref(), &label(k + 1))
            },
        };
        if against.fails_unlike() && !against.cells.is_empty() {
            against.verdict = Verdict::Different;
        }
        against
    });
    each.collect()
}

/// Each stream over the cells that count, the one that decides first: one that differs, and most;
/// else one that is open.
fn by_stream(
    matched: &Matched<'_>,
    cells: &[CellComparison],
    reaches: &[f64],
    (margin, confidence): ((f64, MarginFrom), f64),
) -> Vec<StreamComparison> {
    let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    // Elsewhere a stream has the name of its phase.
    let are_streams = matched.pairs.iter().any(|pair| pair.a.cell.streams.len() > 1);
    for (row, pair) in matched.pairs.iter().enumerate() {
        let counts = cells.get(row).is_some_and(|row| row.counts);
        let only = pair.a.plans().first().filter(|_| are_streams);
        let name = only.map_or("", |plan| plan.name.as_str());
        if counts {
            rows.entry(name).or_default().push(row);
        }
    }
    let of = |own: &Vec<usize>| matched.overall_of(&|row| own.contains(&row));
    let family: Vec<_> = rows.values().map(of).collect();
    let judged = judge(&family, &vec![margin; family.len()], confidence);
    let mut found: Vec<StreamComparison> = Vec::new();
    for ((stream, own), outcome) in rows.into_iter().zip(judged) {
        let is_own = |row: usize| own.contains(&row);
        let outcome = match own.as_slice() {
            // One row is all there is: one answer, not two ways to the same.
            [only] => cells.get(*only).map_or(outcome, |row| row.outcome.clone()),
            _ => {
                let of_levels = levels::reach_of_mean(reaches, &is_own);
                let outcome = outcome.reaching(matched.standstill_reach_of(&is_own));
                outcome.reaching_beyond(of_levels, Doubt::Levels)
            }
        };
        let cells = u32::try_from(own.len()).unwrap_or(u32::MAX);
        found.push(StreamComparison { stream: stream.to_owned(), cells, outcome });
    }
    let far = |outcome: &Outcome| outcome.ratio.map_or(0.0, |ratio| ratio.ratio.ln().abs());
    found.sort_by(|a, b| {
        let (a, b) = (&a.outcome, &b.outcome);
        let rank = a.verdict.decides().cmp(&b.verdict.decides());
        rank.then(far(b).total_cmp(&far(a)))
    });
    found
}

impl Verdict {
    /// Of several the least decides.
    const fn decides(self) -> u8 {
        match self {
            Self::Different => 0,
            Self::Inconclusive => 1,
            Self::Same => 2,
        }
    }
}

impl Against {
    /// Whether this side is different for the worse: over all, in any cell, or in what fails.
    pub fn is_worse(&self) -> bool {
        let slower = self.slower > 0 || self.overall.is_different(Direction::Slower);
        self.fails_more() || !self.bracket && slower
    }
}

impl Against {
    /// Whether there was anything to hold against each other: a cell of both with a ratio.
    pub fn is_compared(&self) -> bool {
        self.cells.iter().any(|cell| cell.outcome.ratio.is_some())
    }
}

impl Outcome {
    /// Without a claim, where a doubt takes it away.
    fn doubted(mut self, doubt: Doubt, applies: bool) -> Self {
        if applies && self.verdict == Verdict::Different {
            self.verdict = Verdict::Inconclusive;
            self.direction = None;
            self.doubts.push(doubt);
        }
        self
    }

    /// With intervals that reach so far at least, in logarithms, since standstills leave that open;
    /// without what that takes away.
    fn reaching(mut self, reach: f64) -> Self {
        let wider = |ratio: Ratio| {
            let (down, up) = (ratio.ratio * (-reach).exp(), ratio.ratio * reach.exp());
            let low = ratio.low.map(|low| low.min(down));
            Ratio { low, high: ratio.high.map(|high| high.max(up)), ..ratio }
        };
        self.widen(wider, Doubt::Standstills);
        self
    }

    /// With intervals that reach so much further, in logarithms; without what that takes away, for
    /// which this doubt is given.
    fn reaching_beyond(mut self, reach: f64, doubt: Doubt) -> Self {
        let wider = |ratio: Ratio| {
            let low = ratio.low.map(|low| low * (-reach).exp());
            Ratio { low, high: ratio.high.map(|high| high * reach.exp()), ..ratio }
        };
        let before = self.ratio;
        self.widen(wider, doubt);
        if self.ratio != before
            && !self.doubts.contains(&doubt)
            && self.verdict == Verdict::Inconclusive
        {
            // More visits do not settle it.
            self.more = None;
            self.doubts.push(doubt);
        }
        self
    }

    fn widen(&mut self, wider: impl Fn(Ratio) -> Ratio + Copy, doubt: Doubt) {
        let before = (self.ratio, self.same_ratio);
        self.ratio = self.ratio.map(wider);
        self.same_ratio = self.same_ratio.map(wider);
        self.twin = self.twin.map(wider);
        let (most, least) = (1.0 + self.margin, 1.0 / (1.0 + self.margin));
        let holds = match self.verdict {
            Verdict::Different => self.ratio.is_some_and(|ratio| {
                ratio.low.is_some_and(|low| low > most)
                    || ratio.high.is_some_and(|high| high < least)
            }),
            Verdict::Same => self.same_ratio.is_some_and(|ratio| {
                ratio.low.is_some_and(|low| low >= least)
                    && ratio.high.is_some_and(|high| high <= most)
            }),
            Verdict::Inconclusive => true,
        };
        if (self.ratio, self.same_ratio) != before && !holds {
            self.verdict = Verdict::Inconclusive;
            self.direction = None;
            self.more = None;
            self.doubts.push(doubt);
        }
    }

    /// Whether there is no ratio since a cache answered.
    pub fn is_of_cache(&self) -> bool {
        self.doubts.contains(&Doubt::Cached)
    }

    fn is_different(&self, way: Direction) -> bool {
        self.verdict == Verdict::Different && self.direction == Some(way)
    }
}

impl CellComparison {
    /// Lets the ratio reach as much further as levels leave open: see [`levels::reaches`].
    fn widen_by_levels(&mut self, reach: f64) {
        if reach > 0.0 {
            let outcome = std::mem::replace(&mut self.outcome, Outcome::unknown());
            self.outcome = outcome.reaching_beyond(reach, Doubt::Levels);
        }
    }

    /// Whether its rates say what the storage does: the suite sets none, or a side did not reach
    /// what was offered.
    pub fn is_of_storage(&self) -> bool {
        !self.scheduled || self.reference_fell_behind || self.other_fell_behind
    }
}

/// Index of a cell, and which of its several streams.
type Row = (u32, Option<usize>);

fn row_of(cell: &CellView<'_>) -> Row {
    (cell.cell.index, cell.stream)
}

/// What blocks of the group's first side against itself say about two sides of it, where such
/// blocks were planned.
fn checked(
    sides: &[View<'_>],
    other: &View<'_>,
    again: Option<&View<'_>>,
    matched: &Matched<'_>,
    terms: &Terms,
) -> Option<Checked> {
    let blocks = other.run.header.blocks.as_ref().filter(|blocks| !blocks.controls.is_empty())?;
    let is_first = |side: &&View<'_>| {
        let of = side.run.header.blocks.as_ref();
        of.is_some_and(|of| of.group == blocks.group && of.side == Blocks::REFERENCE)
    };
    let first = sides.iter().find(is_first).filter(|_| matched.design == Design::Blocks)?;
    Some(Checked::of(first, again, matched, terms.floor.as_ref()))
}

/// How far the reference lies from its own configuration measured again: logarithms, positive.
struct Drift {
    overall: f64,
    /// By cell of the reference, and stream.
    cells: Vec<(Row, f64)>,
}

impl Drift {
    fn of(brackets: &[Matched<'_>]) -> Option<Self> {
        let far = |evidence: &Evidence| evidence.middle().map(f64::abs);
        let overall = brackets.iter().filter_map(|m| far(&m.overall())).reduce(f64::max)?;
        let cells = brackets.iter().flat_map(|m| {
            let each = m.pairs.iter().zip(m.evidence());
            each.filter_map(|(pair, evidence)| Some((row_of(&pair.a), far(&evidence)?)))
        });
        Some(Self { overall, cells: cells.collect() })
    }

    /// No less than earlier runs of the configuration of either side are further from it than chance
    /// and the margin asked for allow.
    fn or_earlier<'a>(
        known: Option<&Self>,
        sides: [&View<'_>; 2],
        earlier: impl Iterator<Item = &'a View<'a>>,
        terms: &Terms,
    ) -> Option<Self> {
        let far = |run: &View<'_>| {
            let own = sides.iter().find(|side| differences(side.run, run.run).is_none())?;
            let found = matched(own, run).overall().contrast?.interval(terms.confidence)?;
            let reach = found.middle.abs() + found.half_width();
            found.is_beyond(terms.margin.max(0.0).ln_1p()).then_some(reach)
        };
        let far = earlier.filter_map(far).reduce(f64::max);
        let overall = far.into_iter().chain(known.map(|known| known.overall)).reduce(f64::max)?;
        Some(Self { overall, cells: known.map_or_else(Vec::new, |known| known.cells.clone()) })
    }

    /// Of a row: no less than over all, since one cell may have been lucky.
    fn of_row(&self, row: Row) -> f64 {
        let of = self.cells.iter().filter(|(known, _)| *known == row).map(|(_, far)| *far);
        of.fold(self.overall, f64::max)
    }
}

/// The margin as a logarithm, and where it is from.
///
/// * `of`: the load of a cell, and how many visits or blocks it is from on the side with fewer.
fn margin(terms: &Terms, of: (Option<&Load>, usize), drift: Option<f64>) -> (f64, MarginFrom) {
    let ln = |share: f64| if share > 0.0 { share.ln_1p() } else { 0.0 };
    let floor = terms.floor.as_ref().map(|floor| floor.of_visits(of.0, of.1));
    let all = [
        (ln(terms.margin), MarginFrom::Asked),
        (floor.map_or(0.0, ln), MarginFrom::Floor),
        (drift.unwrap_or(0.0), MarginFrom::Drift),
    ];
    all.into_iter().fold((0.0, MarginFrom::Asked), |best, next| match next.0 > best.0 {
        true => next,
        false => best,
    })
}

/// The margin, or how far the reference is from itself, if that is more.
fn no_less(margin: (f64, MarginFrom), control: Option<f64>) -> (f64, MarginFrom) {
    match control {
        Some(far) if far > margin.0 => (far, MarginFrom::Control),
        _ => margin,
    }
}

fn cells(
    matched: &Matched<'_>,
    terms: &Terms,
    drift: Option<&Drift>,
    control: Option<&Drift>,
) -> Vec<CellComparison> {
    let margins: Vec<_> = matched
        .pairs
        .iter()
        .map(|pair| {
            let row = row_of(&pair.a);
            let drift = drift.map(|drift| drift.of_row(row));
            let visits = pair.a.visits.len().min(pair.b.visits.len());
            let margin = margin(terms, (pair.a.load().as_ref(), visits), drift);
            no_less(margin, control.map(|far| far.of_row(row)))
        })
        .collect();
    let outcomes = judge(&matched.evidence(), &margins, terms.confidence);
    let percentiles = tail::percentiles(matched, &margins, terms.confidence);
    let (references, others) = (matched.rates_reference(), matched.rates_other());
    let sides = references.into_iter().zip(others);
    let each = matched.pairs.iter().zip(outcomes).zip(percentiles).zip(sides).map(
        |(((pair, outcome), tail), sides)| {
            let by_chance = pair.may_be_standstills(&sides.0, &sides.1);
            let outcome = outcome.doubted(Doubt::Standstills, by_chance);
            let outcome = outcome.reaching(pair.standstill_reach());
            let doubts = if pair.is_comparable() { outcome.doubts } else { vec![Doubt::Cached] };
            (pair, Outcome { doubts, ..outcome }, tail, sides)
        },
    );
    each.map(|(pair, outcome, tail, (reference, other))| CellComparison {
        cell: pair.a.name(),
        stream: pair.a.stream_name().map(str::to_owned),
        same_load: pair.a.plans() == pair.b.plans(),
        scheduled: false,
        reference_cached: pair.cached[0],
        other_cached: pair.cached[1],
        reference_changes: Vec::new(),
        other_changes: Vec::new(),
        reference_fell_behind: pair.a.fell_behind(),
        other_fell_behind: pair.b.fell_behind(),
        counts: true,
        reference,
        other,
        outcome,
        latency: latency(&pair.a, &pair.b, tail).filter(|_| pair.is_comparable()),
    })
    .collect()
}

fn latency(
    a: &CellView<'_>,
    b: &CellView<'_>,
    percentiles: Vec<PercentileRatio>,
) -> Option<LatencyRatio> {
    let (a, b) = (stalls::Latencies::of(a)?, stalls::Latencies::of(b)?);
    let ratio = |a: f64, b: f64| if a > 0.0 { b / a } else { 1.0 };
    Some(LatencyRatio {
        reference_mean_ns: a.mean_ns,
        other_mean_ns: b.mean_ns,
        mean_ratio: ratio(a.mean_ns, b.mean_ns),
        percentiles,
    })
}

/// Streams that are offered at a rate of the suite's choice: phase and name; all of the phase
/// without one.
fn scheduled(view: &View<'_>) -> Vec<(String, Option<String>)> {
    let table: Option<toml::Table> = view.run.header.suite_text.parse().ok();
    let rate = |value: &toml::Value| value.get("rate").is_some_and(|r| r.as_str() != Some("none"));
    let list = |value: &toml::Value, key: &str| {
        value.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default()
    };
    let name = |value: &toml::Value| value.get("name")?.as_str().map(str::to_owned);
    let phases = table.map(|t| list(&toml::Value::Table(t), "phase")).unwrap_or_default();
    let mut found = Vec::new();
    for phase in &phases {
        let of = name(phase).unwrap_or_default();
        found.extend(rate(phase).then(|| (of.clone(), None)));
        let streams = list(phase, "stream");
        found.extend(streams.iter().filter(|s| rate(s)).map(|s| (of.clone(), name(s))));
    }
    found
}
