//! Slow changes and sudden ones: within a long visit, over a cell's visits, over the whole run.
//!
//! Everything is judged on logarithms of rates, so effects are ratios. A change that all cells
//! share is of the device or of what surrounds it; one that a single cell has is of that cell.

mod cells;
mod clock;
mod edges;
mod levels;
mod run;
mod seconds;
mod text;

pub use self::clock::Clock;
pub use self::edges::{Edge, End};
pub(crate) use self::text::some_steps;

use std::collections::{BTreeMap, BTreeSet};

use finding::Subject;
use record::VisitRecord;
use schemars::JsonSchema;
use serde::Serialize;
use stats::changepoint::{Changes, Noise, Segment};
use stats::paired::Estimate;
use stats::trend::theil_sen;

use self::cells::cell_drifts;
use self::run::run_drifts;
use self::seconds::Seconds;
use crate::ends::is_few;
use crate::interference::keeps_its_rate;
use crate::places::Told;
use crate::view::{CellView, View, VisitView, is_preparation};

const CONFIDENCE: f64 = 0.95;
/// A slope through fewer points is a guess.
const POINTS_MIN: usize = 5;
/// Pairs of points grow with their square; beyond this neighbours are averaged.
const POINTS_MAX: usize = 400;
const GIB: f64 = 1_073_741_824.0;

/// How rates changed in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Drifts {
    /// Visits of 10 s and more whose rate changed its level or drifted.
    pub visits: Vec<VisitDrift>,
    /// Cells whose visits are on different levels.
    pub cells: Vec<CellDrift>,
    /// What all cells share, for each part of the run; none when no cell was visited twice.
    pub parts: Vec<RunDrift>,
    /// First visits that are faster than others of their cells, and last ones that are slower; without those
    /// that a change of level that all cells share explains.
    pub edges: Vec<Edge>,
    /// What comes back after the same time, whichever cell is measured; null where nothing does, or too few
    /// visits were made to tell.
    pub clock: Option<Clock>,
    /// Cells in which writes fell for good after so much was written.
    pub cliffs: u32,
    /// Visits long enough to be looked at by the second.
    pub long_visits: u32,
    /// Of these, those in which a change would have been seen, and none was, nor a fall of its writes: `null`
    /// where there are none.
    pub kept: Option<Kept>,
}

/// Long visits whose rate kept its level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Kept {
    /// How many.
    pub visits: u32,
    /// A change of less, as a share, would not have shown in each of them; nor one in their first or
    /// last five seconds.
    pub seen_from: f64,
}

/// A long visit that was not on one level.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VisitDrift {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it, and its stream if it has several.
    pub cell_name: String,
    /// The stream, of a cell that has several.
    pub stream: Option<String>,
    /// Its position in the cell; 0 of the cell as a whole.
    #[serde(skip)]
    pub position: u32,
    /// Which visit of the cell, from 0.
    pub repeat: u32,
    /// Which visit of the run, from 0.
    pub order: u32,
    /// Changes of level, in order of time.
    pub steps: Vec<Step>,
    /// After the last of them, if that part is long enough.
    pub per_hour: Option<Slope>,
}

/// A cell whose visits are not on one level.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellDrift {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it, and its stream if it has several.
    pub cell_name: String,
    /// The stream, of a cell that has several.
    pub stream: Option<String>,
    /// Its position in the cell; 0 of the cell as a whole.
    #[serde(skip)]
    pub position: u32,
    /// Changes of level; `from_ns` is the end of the last visit on the old level, `at_ns` the start of
    /// the first one on the new level.
    pub steps: Vec<Step>,
}

/// What the rates of all cells have in common, in a part of the run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunDrift {
    /// The phases whose visits these are: all, or those that were played apart from the others.
    pub phases: Vec<String>,
    /// Visits of cells that were visited more than once.
    pub visits: u32,
    /// Those cells.
    pub cells: u32,
    /// The visits are so short that one says much of the next: nothing is said of the run.
    pub too_short: bool,
    /// How often it was broken off and resumed between these visits.
    pub breaks: u32,
    /// Changes of level that most cells share.
    pub steps: Vec<Step>,
    /// After the last of them.
    pub per_hour: Option<Slope>,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// It did not come sooner; as `at_ns` where nothing is between. Within the visit for a visit's,
    /// since the start of the run for others.
    pub from_ns: u64,
    /// It did not come later: from here on there is nothing but the new level.
    pub at_ns: u64,
    /// Requests per second before; 1 for what cells share.
    pub before: f64,
    /// Requests per second after; the ratio for what cells share.
    pub after: f64,
    /// Lower end of the 95 % interval of after by before; `null` where none is known.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// The run was broken off and resumed where the change lies, or next to it.
    pub at_break: bool,
}

impl Step {
    /// Rate after by rate before.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }
}

/// How fast rates change, as a share: 0.01 is 1 % faster. None is above 1000, which stands for
/// that and more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Slope {
    /// Per hour, per GiB or per fill; null where less than a third of that was looked at, and the
    /// number would be a guess about the rest.
    pub middle: Option<f64>,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What it makes over the time or the bytes looked at.
    pub over_all: f64,
    /// Lower end of that.
    pub over_all_low: f64,
    /// Upper end of that.
    pub over_all_high: f64,
}

impl Slope {
    /// The same where something else than a slope is likelier: none at all is among what may be.
    fn or_none(self) -> Self {
        Self {
            low: self.low.map(|low| low.min(0.0)),
            high: self.high.map(|high| high.max(0.0)),
            over_all_low: self.over_all_low.min(0.0),
            over_all_high: self.over_all_high.max(0.0),
            ..self
        }
    }
}

/// A change is told of one unit where this much of it was seen: 20 min of an hour.
const SEEN_MIN: f64 = 1.0 / 3.0;
/// A larger share says no more than that it is larger.
const SHARE_MAX: f64 = 1000.0;

impl Slope {
    pub(crate) fn of(slope: Estimate, span: f64) -> Option<Self> {
        let share = |ln: f64| ln.exp_m1().min(SHARE_MAX);
        let per_unit = |ln: f64| (span >= SEEN_MIN).then(|| share(ln)).filter(|x| x.is_finite());
        let all = Self {
            middle: per_unit(slope.middle),
            low: per_unit(slope.low),
            high: per_unit(slope.high),
            over_all: share(slope.middle * span),
            over_all_low: share(slope.low * span),
            over_all_high: share(slope.high * span),
        };
        let told = [all.over_all, all.over_all_low, all.over_all_high];
        told.iter().all(|x| x.is_finite()).then_some(all)
    }

    /// Whether the interval excludes that nothing changes.
    pub fn is_real(&self) -> bool {
        self.over_all_low > 0.0 || self.over_all_high < 0.0
    }
}

/// Whether the rate changed its level within a visit, seconds with a stall left out; of several
/// streams, whether any one's did. Visits of less than 10 s are too short to tell, and say no.
pub fn changed(visit: &VisitRecord) -> bool {
    let of =
        |stream: Option<usize>| Seconds::of(visit, stream).is_some_and(|seconds| seconds.changed());
    match visit.streams.len() {
        several @ 2.. => (0..several).any(|position| of(Some(position))),
        _ => of(None),
    }
}

/// By how much the rate rose at the largest rise within a visit, as a difference of logarithms; 0 where
/// none is seen.
pub(crate) fn risen(visit: &VisitRecord) -> f64 {
    let Some((seconds, changes)) = Seconds::of(visit, None).and_then(Seconds::with) else {
        return 0.0;
    };
    let levels = seconds.levels(&changes).segments;
    levels.windows(2).map(|pair| pair[1].mean - pair[0].mean).fold(0.0, f64::max)
}

/// How rates changed in a run.
pub fn drift(view: &View<'_>) -> Drifts {
    let mut visits = Vec::new();
    let mut long = BTreeSet::new();
    // How small a change would have shown, by visit and the cell that it is of.
    let mut resolved: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let told = Told::new(view.run);
    for row in &view.rows {
        // Of few requests every second's rate is chance; one that is set and kept is that of arrivals.
        let few = is_few(row) || keeps_its_rate(&told, row);
        for visit in row.visits.iter().filter(|_| !few) {
            let seconds = Seconds::of(visit.visit, visit.stream);
            if let Some((seconds, changes)) = seconds.and_then(Seconds::with) {
                long.insert(visit.visit.order);
                let seen = resolved.entry((visit.visit.order, row.cell.index)).or_default();
                *seen = seen.max(seconds.seen_from(&changes));
                visits.extend(visit_drift(row, visit.visit, &seconds, &changes));
            }
        }
    }
    visits.sort_by_key(|visit| visit.order);
    let cliffs = crate::steady::write_cliffs(view);
    let kept = if visits.is_empty() { kept(view, &cliffs, &resolved) } else { None };
    let cliffs: BTreeSet<u32> = cliffs.iter().map(|cliff| cliff.cell).collect();
    // What all cells share is the device's: one value a visit.
    let all = points(view, &view.cells);
    let parts = parts(view, &all);
    // Nor do such visits tell of a cell: noise that lasts longer than one looks like a level.
    let too_short = !all.is_empty() && run::too_short(&all);
    let of_rows = points(view, &view.rows);
    let hourly = |row: usize| {
        let phase = view.rows.get(row).map(|row| &row.cell.phase);
        phase.map_or(0.0, |phase| hourly(&parts, &all, view, phase))
    };
    let cells = if too_short { Vec::new() } else { cell_drifts(view, &of_rows, &hourly) };
    let subject = |place: usize| {
        view.cells.get(place).map(|cell| Subject::new(cell.cell.index, None, cell.name()))
    };
    let mut edges = edges::edges(&all, &subject);
    let steps = || parts.iter().flat_map(|part| &part.steps);
    edges.retain(|edge| match edge.end {
        End::Beginning => steps().all(|step| step.from_ns > edge.at_ns),
        End::End => steps().all(|step| step.at_ns < edge.at_ns),
    });
    Drifts {
        visits,
        cells,
        parts,
        edges,
        clock: clock::clock(view),
        cliffs: u32::try_from(cliffs.len()).unwrap_or(u32::MAX),
        long_visits: u32::try_from(long.len()).unwrap_or(u32::MAX),
        kept,
    }
}

/// By how much the rates of a phase drift, as ln for each hour: 0 where they are not known to, or where
/// they changed their level as well.
fn hourly(parts: &[RunDrift], all: &[Point], view: &View<'_>, phase: &str) -> f64 {
    let part = parts
        .iter()
        .find(|part| part.phases.iter().any(|own| own == phase) && part.steps.is_empty());
    let Some(part) = part else { return 0.0 };
    let of_part = |point: &&Point| {
        view.cells.get(point.cell).is_some_and(|cell| part.phases.contains(&cell.cell.phase))
    };
    let hours = range(all.iter().filter(of_part).map(|point| point.hours));
    let slope = part.per_hour.filter(|slope| slope.is_real() && hours > 0.0);
    slope.map_or(0.0, |slope| slope.over_all.ln_1p() / hours)
}

/// Changes of level that all cells of a part of a run share.
pub(crate) fn shared_steps(view: &View<'_>) -> Vec<Step> {
    let parts = parts(view, &points(view, &view.cells));
    parts.into_iter().flat_map(|part| part.steps).collect()
}

/// * `points`: of the run's cells.
fn parts(view: &View<'_>, points: &[Point]) -> Vec<RunDrift> {
    let phase = |place: usize| view.cells.get(place).map_or("", |cell| cell.cell.phase.as_str());
    run_drifts(points, &phase)
}

/// Of visits without a change those in which one to half or twice the rate would have been seen.
fn kept(
    view: &View<'_>,
    cliffs: &[crate::steady::WriteCliff],
    resolved: &BTreeMap<(u32, u32), f64>,
) -> Option<Kept> {
    let mut seen: Vec<((u32, u32), f64)> = resolved.iter().map(|(of, ln)| (*of, *ln)).collect();
    seen.retain(|(_, ln)| *ln <= std::f64::consts::LN_2);
    if seen.is_empty() {
        return None;
    }
    // A fall that is placed in bytes is a change of level too, wherever in a visit it came.
    for cliff in cliffs {
        seen.retain(|((order, cell), _)| *cell != cliff.cell || *order < cliff.order_first);
    }
    for cache in crate::cache::write::write_caches(view) {
        seen.retain(|(of, _)| *of != (cache.order, cache.cell));
    }
    let most = seen.iter().map(|(_, ln)| *ln).reduce(f64::max)?;
    let visits = u32::try_from(seen.len()).unwrap_or(u32::MAX);
    Some(Kept { visits, seen_from: most.exp_m1() })
}

fn visit_drift(
    cell: &CellView<'_>,
    visit: &VisitRecord,
    seconds: &Seconds,
    changes: &Changes,
) -> Option<VisitDrift> {
    let levels = seconds.levels(changes);
    let between = levels.segments.windows(2).zip(&levels.steps);
    let steps: Vec<Step> =
        between.map(|(pair, step)| seconds.step(*step, pair[0], pair[1])).collect();
    let per_hour = levels.segments.last().and_then(|last| seconds.slope(*last, changes.noise));
    let per_hour = per_hour.filter(|slope| slope.is_real() && slope.over_all.abs() >= 0.03);
    (!steps.is_empty() || per_hour.is_some()).then(|| VisitDrift {
        cell: cell.cell.index,
        cell_name: cell.name(),
        stream: cell.stream_name().map(str::to_owned),
        position: cell.stream.unwrap_or(0) as u32,
        repeat: visit.repeat,
        order: visit.order,
        steps,
        per_hour,
    })
}

/// A visit among those of its cell or row.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Place of that in the view.
    cell: usize,
    order: u32,
    elapsed_ns: u64,
    /// Start of the visit since the start of the run, hours. Not its middle: a slow visit ends
    /// later where a count ends it, and slow would go with late.
    hours: f64,
    /// Written to the device before it, GiB.
    gib: f64,
    ln_rate: f64,
    /// How often the run had been broken off and resumed before it.
    part: u32,
}

/// Whether the run was broken off and resumed within so many visits of a place.
fn is_at_break(points: &[Point], place: usize, within: usize) -> bool {
    let from = place.saturating_sub(within + 1);
    let to = (place + within + 1).min(points.len());
    let parts = points.get(from..to).unwrap_or_default().windows(2);
    parts.into_iter().any(|pair| pair[0].part != pair[1].part)
}

/// After how many stored visits the run was broken off, each time.
fn breaks(view: &View<'_>) -> Vec<u32> {
    let resumed = view.run.header.warnings.iter().filter(|warning| warning.code == "resumed");
    let after = resumed.filter_map(|warning| {
        let (_, number) = warning.text.split_once("broken off after ")?;
        number.split(' ').next()?.parse().ok()
    });
    after.collect()
}

/// Visits of those of the grid's cells or rows that have more than one, in the order made.
fn points(view: &View<'_>, cells: &[CellView<'_>]) -> Vec<Point> {
    let gib = written_before(view);
    let breaks = breaks(view);
    let part = |order: u32| breaks.iter().filter(|&&after| order >= after).count();
    let mut points: Vec<Point> = Vec::new();
    let in_grid = cells.iter().enumerate().filter(|(_, c)| !is_preparation(&c.cell.phase));
    for (place, cell) in in_grid.filter(|(_, cell)| cell.visits.len() > 1) {
        // A visit that stood still for a while is on no level: the stall is told as one.
        let moves = |visit: &&VisitView<'_>| {
            visit.requests_per_second > 0.0 && !crate::freeze::stalled(visit.visit)
        };
        let moving: Vec<&VisitView<'_>> = cell.visits.iter().filter(moves).collect();
        if moving.len() < 2 {
            continue;
        }
        points.extend(moving.iter().map(|visit| Point {
            cell: place,
            order: visit.visit.order,
            elapsed_ns: visit.visit.rated_ns(),
            hours: hours_in_run(view, visit.visit),
            gib: gib.get(&visit.visit.order).copied().unwrap_or(0.0),
            ln_rate: visit.requests_per_second.ln(),
            part: u32::try_from(part(visit.visit.order)).unwrap_or(u32::MAX),
        }));
    }
    points.sort_by_key(|point| point.order);
    points
}

/// What all cells of a part of the run are slower by, and from which visit on.
pub(crate) struct Fall {
    /// The visits that it was in, or may have been, by their order in the run.
    pub orders: BTreeSet<u32>,
    /// Rate after by rate before.
    pub ratio: f64,
}

impl Drifts {
    /// Falls that all cells share and that did not come back.
    pub(crate) fn falls(&self, view: &View<'_>) -> Vec<Fall> {
        let fall = |part: &RunDrift| {
            let first = part.steps.iter().find(|step| step.ratio() < 1.0)?;
            let ratio: f64 = part.steps.iter().map(Step::ratio).product();
            let begin = first.from_ns as f64 / 3.6e12;
            let cells = view.cells.iter().filter(|cell| part.phases.contains(&cell.cell.phase));
            let visits = cells.flat_map(|cell| &cell.visits).map(|view| view.visit);
            let later = visits.filter(|visit| hours_in_run(view, visit) >= begin);
            let orders = later.map(|visit| visit.order).collect();
            (ratio < 1.0).then_some(Fall { orders, ratio })
        };
        self.parts.iter().filter_map(fall).collect()
    }
}

fn hours_in_run(view: &View<'_>, visit: &VisitRecord) -> f64 {
    visit.started_unix_ns.saturating_sub(view.run.header.started_unix_ns) as f64 / 3.6e12
}

/// GiB written before each visit, by its order.
fn written_before(view: &View<'_>) -> BTreeMap<u32, f64> {
    let mut visits: Vec<&VisitRecord> = view.run.visits.iter().collect();
    visits.sort_by_key(|visit| visit.order);
    let mut written = 0.0;
    let mut before = BTreeMap::new();
    for visit in visits {
        before.insert(visit.order, written);
        written += written_bytes(visit) as f64 / GIB;
    }
    before
}

/// What a visit wrote: to the device if its counters tell, else what was asked for.
pub(crate) fn written_bytes(visit: &VisitRecord) -> u64 {
    if visit.ledger.iter().any(|entry| entry.depth == 0) {
        let top = visit.ledger.iter().filter(|entry| entry.depth == 0);
        return top.fold(0, |sum, entry| sum.saturating_add(entry.write_bytes));
    }
    let ops = visit.streams.iter().flat_map(|stream| &stream.ops);
    let writes = ops.filter(|op| op.op == "write");
    writes.fold(0, |sum, op| sum.saturating_add(op.bytes))
}

fn by_cell(points: &[Point]) -> BTreeMap<usize, Vec<Point>> {
    let mut cells: BTreeMap<usize, Vec<Point>> = BTreeMap::new();
    for point in points {
        cells.entry(point.cell).or_default().push(*point);
    }
    cells
}

/// At most [`POINTS_MAX`] points: neighbours in x averaged.
fn thinned(x: Vec<f64>, y: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    if x.len() <= POINTS_MAX {
        return (x, y);
    }
    let mut pairs: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let size = pairs.len().div_ceil(POINTS_MAX);
    let mean = |part: &[(f64, f64)]| {
        let n = part.len() as f64;
        (part.iter().map(|p| p.0).sum::<f64>() / n, part.iter().map(|p| p.1).sum::<f64>() / n)
    };
    pairs.chunks(size).map(mean).unzip()
}

fn range(values: impl Iterator<Item = f64>) -> f64 {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    (high - low).max(0.0)
}

/// Slope of a part of a visit, from means over blocks long enough to be independent.
fn block_slope(hours: &[f64], ln_rates: &[f64], segment: Segment, noise: Noise) -> Option<Slope> {
    let block = (10.0 * noise.inflation()).ceil() as usize;
    let part = segment.start..segment.end;
    let (hours, ln_rates) = (hours.get(part.clone())?, ln_rates.get(part)?);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let x: Vec<f64> = hours.chunks_exact(block).map(mean).collect();
    let y: Vec<f64> = ln_rates.chunks_exact(block).map(mean).collect();
    if x.len() < POINTS_MIN {
        return None;
    }
    let span = range(hours.iter().copied());
    let (x, y) = thinned(x, y);
    Slope::of(theil_sen(&x, &y, CONFIDENCE)?, span)
}

#[cfg(test)]
mod slope_tests {
    use super::*;

    #[test]
    fn a_short_look_says_nothing_of_an_hour() {
        let steep = Estimate { middle: -900.0, low: -2000.0, high: 4e6, confidence: 0.95 };
        let short = Slope::of(steep, 80.0 / 3600.0).unwrap();
        assert_eq!((short.middle, short.low, short.high), (None, None, None));
        assert!(short.over_all_high <= 1000.0, "{short:?}");
        let slow = Estimate { middle: -0.1, low: -0.2, high: -0.05, confidence: 0.95 };
        let long = Slope::of(slow, 0.4).unwrap();
        assert!(long.is_real() && long.middle.is_some_and(|x| x < 0.0), "{long:?}");
    }
}
