//! Gaps in a sweep: cells far below what their neighbours promise, in block sizes and in time.
//!
//! Storage that is well keeps three laws along block sizes. A cell below what they
//! promise is a *reproducible* gap when it stays so at visits apart in time, a *transient* when
//! it is what happened at that moment, and *unconfirmed* when the visits cannot tell.

mod law;
mod moments;
mod words;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use stats::interval::{moderated, pooled_scale, student_quantile};

use self::law::{Bounds, Level};
pub use self::moments::{Event, EventVisit, FullCache};
use crate::drift::Fall;
use crate::ends::ends;
use crate::view::{CellView, View, is_preparation};

/// Flagged below this share of the bound where visits say how sure that is.
pub const FLAG_WITH_VISITS: f64 = 0.85;
/// Flagged below this share of the bound where there is one visit or two.
pub const FLAG_ALONE: f64 = 0.70;
/// A visit is slow by standing still that lost so much of what it lacks by that.
const STOOD_SHARE: f64 = 0.5;
/// A standstill comes back in a visit that stood still for this share of its length at least.
const COMES_BACK: f64 = 0.25;
/// Share below which law 1 counts under 4 KiB.
const FLAG_SMALL: f64 = 0.50;
/// How far below the bound, beyond noise, a cell has to be shown to be.
const MARGIN: f64 = 0.90;
/// Visits that give a cell a variance of its own.
const VISITS_MIN: usize = 3;
/// Chance of one false flag among all cells.
const ALPHA: f64 = 0.05;
/// Standard deviations of a single visit by which a low one must be below the bound.
const BELOW_BOUND: f64 = 4.0;
/// The same, below its own cell's other visits.
const BELOW_SISTERS: f64 = 6.0;
/// So many slow visits at the end of its cell are a level of their own.
const LEVEL_VISITS: usize = 3;

/// A cell of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepCell {
    /// Its index in the run.
    pub cell: u32,
    /// What all cells of its group have in common: `read`. Only cells of one group and one number
    /// of requests in flight are measured against each other.
    pub group: String,
    /// `read`, `write`, `mixed`.
    pub op: String,
    /// Bytes per request.
    pub block_bytes: u64,
    /// Workers.
    pub threads: u32,
    /// Requests in flight.
    pub in_flight: u64,
    /// In the order made; none for a cell that should have a value and has none.
    pub visits: Vec<SweepVisit>,
}

/// A visit of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepVisit {
    /// Requests completed per second; 0 when nothing completed.
    pub requests_per_second: f64,
    /// When, among all visits of the run: rising.
    pub order: u32,
    /// How long it measured.
    pub elapsed_ns: u64,
    /// For how much of that the whole device stood still; 0 where nobody saw.
    pub stood_ns: u64,
}

/// What else is known about the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Context {
    /// The fill before the first phase.
    pub fill: Option<Fill>,
    /// Cache in controllers and drives, as declared.
    pub cache_bytes: Option<u64>,
    /// Bytes that the run touches.
    pub working_set_bytes: Option<u64>,
}

/// A fill before the first phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fill {
    /// Bytes written.
    pub bytes: u64,
    /// Time taken.
    pub elapsed_ns: u64,
}

/// What a gap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The cell is slow whenever it is visited: a property of the cell.
    Reproducible,
    /// It was slow at one time: something that happened then.
    Transient,
    /// It was visited once, or only at one time: nobody can tell.
    Unconfirmed,
    /// What it lacks it lost while the whole device stood still: told as that, and nothing of its
    /// place in the grid.
    StoodStill,
}

/// A cell that is, or was, far below its bound.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlaggedCell {
    /// Its index in the run.
    pub cell: u32,
    /// As in [`SweepCell::group`].
    pub group: String,
    /// `read`, `write`, ...
    pub op: String,
    /// Bytes per request.
    pub block_bytes: u64,
    /// Workers.
    pub threads: u32,
    /// Requests in flight.
    pub in_flight: u64,
    /// What it is.
    pub kind: Kind,
    /// Rate by bound; 0 for one without a value. Of a transient: that of its slowest visit.
    pub ratio: f64,
    /// Whether its neighbours promise the bound; else it is what its other visits did.
    pub by_neighbours: bool,
    /// What its neighbours promise, requests per second; `None` for one without a value.
    pub promised_per_second: Option<f64>,
    /// Time of its slow visits that did nothing, measured by the bound.
    pub lost_ns: u64,
    /// Which visits were slow, by their order in the run.
    pub orders: Vec<u32>,
    /// How many visits it had.
    pub visits: u32,
    /// It has no value although it should.
    pub missing: bool,
}

/// Flagged cells of one kind that touch, in block size or in requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Region {
    /// Never [`Kind::Transient`]: those are [`Gaps::events`]. Nor [`Kind::StoodStill`].
    pub kind: Kind,
    /// In the order of the sweep.
    pub cells: Vec<FlaggedCell>,
    /// Smallest ratio to the bound: 0 where a cell has no value.
    pub depth: f64,
    /// Sum over its cells.
    pub lost_ns: u64,
    /// Its slow visits were made one right after the other, with no visit of another cell between.
    pub contiguous_in_time: bool,
    /// What may have happened, of what is not confirmed.
    pub full_cache: Option<FullCache>,
}

/// What a sweep has of gaps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Gaps {
    /// Every flagged cell, in the order of the sweep.
    pub flagged: Vec<FlaggedCell>,
    /// Those that are not transient, joined.
    pub regions: Vec<Region>,
    /// Transients, joined by the order in which the cells ran.
    pub events: Vec<Event>,
    /// How many cells have a bound.
    pub judged: u32,
    /// How many have a value but too few neighbours for a bound.
    pub unjudged: u32,
    /// Visits of the sweep.
    pub visits: u32,
    /// Of them, those in which nothing came back for as long as in the slow visits of the cells that
    /// stood still, or nearly so.
    pub stood_still: u32,
}

/// The gaps of a run.
pub fn gaps(view: &View<'_>) -> Gaps {
    let (cells, context) = of_view(view);
    let few = few_requests(view);
    let (left_out, judged): (Vec<_>, Vec<_>) =
        cells.into_iter().partition(|cell| few.contains(&cell.place()));
    judge(&judged, &left_out, &context)
}

/// A visit this much slower than a fall that all cells share is slow by something else.
const BELOW_FALL: f64 = 0.75;

impl Gaps {
    /// What was slow at one time only, and then only by what all cells have been slower by since, is
    /// no gap and nothing of its own.
    pub(crate) fn leave_to(&mut self, falls: &[Fall]) {
        let is_that = |orders: &mut dyn Iterator<Item = u32>, ratio: f64| {
            let orders: Vec<u32> = orders.collect();
            falls.iter().any(|fall| {
                ratio >= BELOW_FALL * fall.ratio && orders.iter().all(|o| fall.orders.contains(o))
            })
        };
        self.flagged.retain(|cell| {
            cell.kind != Kind::Transient || !is_that(&mut cell.orders.iter().copied(), cell.ratio)
        });
        self.events.retain(|event| {
            let least = event.visits.iter().map(|visit| visit.ratio).fold(1.0, f64::min);
            !is_that(&mut event.visits.iter().map(|visit| visit.order), least)
        });
    }
}

/// Group, block size, requests in flight, threads.
pub(crate) type SweepPlace = (String, u64, u64, u32);

/// Cells whose rates the start and the end of a visit decide: no measure for their neighbours, nor
/// to be measured by them.
pub(crate) fn few_requests(view: &View<'_>) -> BTreeSet<SweepPlace> {
    let few = view.grid().filter_map(|cell| {
        ends(cell)?;
        let load = cell.load()?;
        Some((group_of(cell)?, load.block_bytes, load.in_flight, load.threads))
    });
    few.collect()
}

impl SweepCell {
    pub(crate) fn place(&self) -> SweepPlace {
        (self.group.clone(), self.block_bytes, self.in_flight, self.threads)
    }
}

/// The sweep that a run is, and what else is known about it: for [`sweep`].
pub fn of_view(view: &View<'_>) -> (Vec<SweepCell>, Context) {
    // Of our own runs it is said beside the cell why it has none: it was never visited, or its visits
    // failed. In another tool's table a value is wanting, and nothing says why.
    let wanting = view.run.header.imported.is_some();
    let mut cells = Vec::new();
    for cell in view.grid().filter(|cell| cell.cell.impossible.is_none()) {
        let Some(load) = cell.load() else { continue };
        if cell.visits.is_empty() && !wanting {
            continue;
        }
        let Some(group) = group_of(cell) else { continue };
        cells.push(SweepCell {
            cell: cell.cell.index,
            group,
            op: load.op,
            block_bytes: load.block_bytes,
            threads: load.threads,
            in_flight: load.in_flight,
            visits: cell
                .visits
                .iter()
                .map(|visit| SweepVisit {
                    requests_per_second: visit.requests_per_second,
                    order: visit.visit.order,
                    elapsed_ns: visit.visit.rated_ns(),
                    stood_ns: crate::freeze::stood_ns(visit.visit),
                })
                .collect(),
        });
    }
    let target = &view.run.header.target;
    let fill = view.cells.iter().filter(|cell| is_preparation(&cell.cell.phase));
    let fill = fill.flat_map(|cell| &cell.visits).next().map(|visit| Fill {
        bytes: (visit.bytes_per_second * visit.visit.rated_ns() as f64 / 1e9) as u64,
        elapsed_ns: visit.visit.rated_ns(),
    });
    let context = Context {
        fill,
        cache_bytes: target.cache_bytes,
        // Other tools need not tell it.
        working_set_bytes: Some(target.size_bytes.saturating_mul(u64::from(target.files)))
            .filter(|&bytes| bytes > 0),
    };
    (cells, context)
}

/// What cells that are measured against each other have in common: the phase and the values of all
/// axes but block size and load; where each cell has a name of its own, what they do. `None` for a cell
/// whose requests are not alike.
pub(crate) fn group_of(cell: &CellView<'_>) -> Option<String> {
    cell.load()?;
    let others = cell
        .cell
        .coordinates
        .iter()
        // With the name of the stream in front it is that of the only one.
        .filter(|(axis, _)| {
            let field = axis.rsplit('.').next();
            !matches!(field, Some("block_size" | "threads" | "queue_depth"))
        });
    let name = cell.grid.as_ref().map_or(cell.cell.phase.as_str(), |grid| grid.name.as_str());
    let names = std::iter::once(name);
    Some(names.chain(others.map(|(_, value)| value.as_str())).collect::<Vec<_>>().join(" "))
}

/// The gaps of a sweep.
///
/// * `cells`: in any order; several groups and numbers in flight may be mixed.
///
/// A cell of three visits and more is flagged below [`FLAG_WITH_VISITS`] of its bound when that
/// is beyond chance (variances moderated over the group, one false flag in 20 sweeps at most);
/// one of fewer visits below [`FLAG_ALONE`]. Below 4 KiB the law that IOPS do not rise with block
/// size counts only by half. A column needs three cells with values before anything is judged.
pub fn sweep(cells: &[SweepCell], context: &Context) -> Gaps {
    judge(cells, &[], context)
}

/// * `left_out`: cells that are no measure for others, nor measured: only how often they stood still
///   counts.
fn judge(cells: &[SweepCell], left_out: &[SweepCell], context: &Context) -> Gaps {
    let noise = noises(cells);
    let levels = levels(cells);
    let columns = columns(cells);
    let mut sheet = Sheet { cells, found: Vec::new(), judged: 0, unjudged: 0 };
    let mut student = Student { tail: ALPHA / cells.len().max(1) as f64, known: Vec::new() };
    for column in &columns {
        let shape: Vec<(u64, Option<Level>)> = column
            .iter()
            .map(|&cell| (cells[cell].block_bytes, levels[cell].map(|(level, _)| level)))
            .collect();
        for (at, &cell) in column.iter().enumerate() {
            let bounds = law::bounds(&shape, at);
            let alone = !shape.iter().any(|(_, level)| level.is_some());
            if alone && levels[cell].is_none() {
                // No neighbour promises anything.
                sheet.unjudged += 1;
                continue;
            }
            sheet.judge(cell, levels[cell], &bounds, noise[cell], &mut student);
        }
    }
    sheet.finish(context, &columns, left_out)
}

/// Cells that are measured against each other, by rising block size.
fn columns(cells: &[SweepCell]) -> Vec<Vec<usize>> {
    let key = |c: &SweepCell| (c.group.clone(), c.op.clone(), c.in_flight, c.threads);
    let keys: BTreeSet<_> = cells.iter().map(key).collect();
    keys.iter()
        .map(|wanted| {
            let mut column: Vec<usize> =
                (0..cells.len()).filter(|&cell| key(&cells[cell]) == *wanted).collect();
            column.sort_by_key(|&cell| cells[cell].block_bytes);
            column
        })
        .collect()
}

/// ln rate of every visit; minus infinity where nothing completed.
fn ln_rates(cell: &SweepCell) -> Vec<f64> {
    let ln = |visit: &SweepVisit| visit.requests_per_second.max(0.0).ln();
    cell.visits.iter().map(ln).collect()
}

/// What a cell does when nothing disturbs it: the middle of three visits and more, the better of
/// two. Minus infinity for a dead one.
fn usual(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NEG_INFINITY,
        2 => sorted[1],
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Visits that are not far below what the cell usually does.
fn sane(cell: &SweepCell) -> Vec<f64> {
    let values = ln_rates(cell);
    let floor = usual(&values) + FLAG_ALONE.ln();
    values.into_iter().filter(|value| value.is_finite() && *value >= floor).collect()
}

/// Per cell: level with its variance, and degrees of freedom. Without replicates the variance is 0
/// and the degrees are none.
fn levels(cells: &[SweepCell]) -> Vec<Option<(Level, f64)>> {
    let mut levels = vec![None; cells.len()];
    for members in groups(cells) {
        let values: Vec<Vec<f64>> = members.iter().map(|&cell| sane(&cells[cell])).collect();
        let intervals = moderated(&values, 0.95);
        for ((&cell, values), interval) in members.iter().zip(&values).zip(intervals) {
            levels[cell] = match interval {
                Some(i) => {
                    let variance = i.variance / i.visits as f64;
                    Some((Level { ln_rate: i.mean, variance }, i.df))
                }
                None if values.is_empty() => None,
                None => {
                    let mean = values.iter().sum::<f64>() / values.len() as f64;
                    Some((Level { ln_rate: mean, variance: 0.0 }, 0.0))
                }
            };
        }
    }
    levels
}

/// Per cell: the usual standard deviation of a visit in its group; 0 without replicates.
fn noises(cells: &[SweepCell]) -> Vec<f64> {
    let mut noise = vec![0.0; cells.len()];
    for members in groups(cells) {
        let values: Vec<Vec<f64>> = members.iter().map(|&cell| sane(&cells[cell])).collect();
        let scale = pooled_scale(&values).unwrap_or(0.0);
        for cell in members {
            noise[cell] = scale;
        }
    }
    noise
}

fn groups(cells: &[SweepCell]) -> Vec<Vec<usize>> {
    let names: BTreeSet<&str> = cells.iter().map(|cell| cell.group.as_str()).collect();
    let of = |name: &str| (0..cells.len()).filter(|&cell| cells[cell].group == name).collect();
    names.into_iter().map(of).collect()
}

/// Quantiles of Student's t, each computed once: there are few degrees of freedom in a sweep.
struct Student {
    tail: f64,
    known: Vec<(f64, f64)>,
}

impl Student {
    fn limit(&mut self, df: f64) -> f64 {
        if let Some(&(_, limit)) = self.known.iter().find(|(known, _)| *known == df) {
            return limit;
        }
        let limit = student_quantile(1.0 - self.tail, df).unwrap_or(f64::INFINITY);
        self.known.push((df, limit));
        limit
    }
}

/// A flagged cell, by index.
#[derive(Clone, Debug)]
struct Found {
    cell: usize,
    kind: Kind,
    ratio: f64,
    promised: Option<f64>,
    by_neighbours: bool,
    /// (order, ratio, time lost) of the slow visits.
    slow: Vec<(u32, f64, u64)>,
}

struct Sheet<'a> {
    cells: &'a [SweepCell],
    found: Vec<Found>,
    judged: u32,
    unjudged: u32,
}

/// What a cell is held against: ln of the promised rate, the share below which it is a gap, and
/// the variance of the promise.
#[derive(Clone, Copy, Debug)]
struct Standard {
    ln_rate: f64,
    share: f64,
    variance: f64,
}

impl Sheet<'_> {
    fn judge(
        &mut self,
        cell: usize,
        level: Option<(Level, f64)>,
        bounds: &Bounds,
        noise: f64,
        student: &mut Student,
    ) {
        let Some((level, df)) = level else { return self.dead(cell) };
        if bounds.firm.is_none() && bounds.loose.is_none() {
            self.unjudged += 1;
            return self.moody(cell, None, noise);
        }
        self.judged += 1;
        let replicated = self.cells[cell].visits.len() >= VISITS_MIN && df > 0.0;
        let share = if replicated { FLAG_WITH_VISITS } else { FLAG_ALONE };
        let standards: Vec<Standard> = [(bounds.loose, FLAG_SMALL), (bounds.firm, share)]
            .into_iter()
            .filter_map(|(bound, share)| {
                let bound = bound?;
                Some(Standard { ln_rate: bound.ln_rate, share, variance: bound.variance })
            })
            .collect();
        let broken = standards.iter().find(|standard| {
            let below = standard.ln_rate - level.ln_rate;
            let error = (level.variance + standard.variance).sqrt();
            let clear = !replicated || (below + MARGIN.ln()) / error > student.limit(df);
            below > -standard.share.ln() && clear
        });
        match broken {
            Some(standard) => self.flag(cell, standard, noise),
            None => self.moody(cell, standards.last(), noise),
        }
    }

    /// No value, or none above zero.
    fn dead(&mut self, cell: usize) {
        let visits = &self.cells[cell].visits;
        let slow: Vec<_> = visits.iter().map(|v| (v.order, 0.0, v.elapsed_ns)).collect();
        let kind = self.confirmed(visits.iter().map(|v| v.order));
        let by_neighbours = false;
        self.found.push(Found { cell, kind, ratio: 0.0, promised: None, by_neighbours, slow });
    }

    fn flag(&mut self, cell: usize, standard: &Standard, noise: f64) {
        let values = ln_rates(&self.cells[cell]);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let healthy_once = highest >= standard.ln_rate + FLAG_WITH_VISITS.ln()
            && lowest < standard.ln_rate + FLAG_ALONE.ln()
            && highest - lowest > 5.0 * noise;
        let slow: Vec<usize> = (0..values.len())
            .filter(|&v| !healthy_once || values[v] < standard.ln_rate + FLAG_WITH_VISITS.ln())
            .collect();
        let visits = &self.cells[cell].visits;
        let kind = self.confirmed(slow.iter().map(|&v| visits[v].order));
        // One fast visit among many slow ones, apart in time, is the odd one.
        let mostly = slow.len() >= VISITS_MIN && 2 * slow.len() > values.len();
        let is_transient = healthy_once && !(mostly && kind == Kind::Reproducible);
        let kind = if is_transient { Kind::Transient } else { kind };
        // As tables have it: all visits in which anything completed.
        let known = || values.iter().filter(|value| value.is_finite());
        let mean = known().sum::<f64>() / known().count().max(1) as f64;
        let ratio = if is_transient { lowest } else { mean } - standard.ln_rate;
        self.push(cell, kind, ratio.exp(), (standard.ln_rate, true), &slow);
    }

    /// A healthy cell may still have had a bad moment.
    fn moody(&mut self, cell: usize, standard: Option<&Standard>, noise: f64) {
        let values = ln_rates(&self.cells[cell]);
        if values.len() < 2 {
            return;
        }
        let usual = usual(&values);
        let below_sisters = usual - (BELOW_SISTERS * noise).max(-FLAG_ALONE.ln());
        let below_bound = standard.map_or(f64::NEG_INFINITY, |s| {
            let reach = (BELOW_BOUND * noise).max(-s.share.min(FLAG_ALONE).ln());
            (s.ln_rate - reach).min(usual - 5.0 * noise)
        });
        let limit = below_sisters.max(below_bound);
        let mut slow: Vec<usize> = (0..values.len()).filter(|&v| values[v] < limit).collect();
        // What never came back is no moment: it is told as a change of level.
        let stays = slow.iter().rev().zip((0..values.len()).rev()).take_while(|(v, at)| **v == *at);
        let stays = stays.count();
        if stays >= LEVEL_VISITS {
            slow.truncate(slow.len() - stays);
        }
        if slow.is_empty() {
            return;
        }
        let by = standard.filter(|s| s.ln_rate > usual);
        let promised = by.map_or(usual, |s| s.ln_rate);
        let lowest = slow.iter().map(|&v| values[v]).fold(f64::INFINITY, f64::min);
        let ratio = (lowest - promised).exp();
        self.push(cell, Kind::Transient, ratio, (promised, by.is_some()), &slow);
    }

    /// * `promised`: its logarithm, and whether neighbours promise it.
    fn push(
        &mut self,
        cell: usize,
        kind: Kind,
        ratio: f64,
        (ln_promised, by_neighbours): (f64, bool),
        slow: &[usize],
    ) {
        let lost = |v: usize| {
            let visit = &self.cells[cell].visits[v];
            let ratio = (visit.requests_per_second.max(0.0).ln() - ln_promised).exp();
            let idle = (1.0 - ratio).clamp(0.0, 1.0);
            (visit.order, ratio, (visit.elapsed_ns as f64 * idle) as u64)
        };
        let slow = slow.iter().map(|&v| lost(v)).collect();
        let promised = Some(ln_promised.exp());
        self.found.push(Found { cell, kind, ratio, promised, by_neighbours, slow });
    }

    /// Visits apart in time, with a visit of another cell between, make it a property of the cell.
    fn confirmed(&self, orders: impl Iterator<Item = u32>) -> Kind {
        let mut orders: Vec<u32> = orders.collect();
        orders.sort_unstable();
        let all = moments::Sequence::of(self.cells);
        let apart = orders.windows(2).any(|pair| all.rank(pair[1]) > all.rank(pair[0]) + 1);
        if apart { Kind::Reproducible } else { Kind::Unconfirmed }
    }

    fn finish(mut self, context: &Context, columns: &[Vec<usize>], left_out: &[SweepCell]) -> Gaps {
        let sequence = moments::Sequence::of(self.cells);
        self.found.sort_by_key(|found| found.cell);
        let mut stood: Vec<u64> = self
            .cells
            .iter()
            .chain(left_out)
            .flat_map(|cell| cell.visits.iter().map(|visit| visit.stood_ns))
            .collect();
        stood.sort_unstable();
        let stood_still = self.take_standstills(&stood);
        let neighbours = Neighbours::new(self.cells, columns);
        moments::reclassify(&mut self.found, &sequence, &neighbours);
        let events = moments::events(self.cells, &self.found, &sequence, context);
        let regions = self.regions(&neighbours, &sequence, context);
        Gaps {
            flagged: self.found.iter().map(|found| self.show(found)).collect(),
            regions,
            events,
            judged: self.judged,
            unjudged: self.unjudged,
            visits: size(stood.len()),
            stood_still,
        }
    }

    /// What visits lost while the device stood still is no gap: neither one of their cell, nor,
    /// where it came back, in the same cell or in another, something that happened at one time.
    /// Gives the number of visits in which it did.
    ///
    /// * `all`: for how long each visit of the sweep stood still, rising.
    fn take_standstills(&mut self, all: &[u64]) -> u32 {
        let as_long = |ns: u64| all.len() - all.partition_point(|&other| other < ns);
        let mut met = 0;
        for index in 0..self.found.len() {
            let Found { cell, kind, promised, ref slow, .. } = self.found[index];
            let visits = &self.cells[cell].visits;
            let stood = |visit: &&SweepVisit| stood_still(visit, promised);
            let is_slow = |visit: &&SweepVisit| slow.iter().any(|&(at, ..)| at == visit.order);
            let others: Vec<u32> = visits
                .iter()
                .filter(is_slow)
                .filter(|visit| !stood(visit))
                .map(|visit| visit.order)
                .collect();
            if others.len() == slow.len() {
                continue;
            }
            let longest = visits.iter().filter(is_slow).map(|visit| visit.stood_ns).max();
            let least = (longest.unwrap_or(0) as f64 * COMES_BACK) as u64;
            let often = as_long(least.max(1));
            self.found[index].kind = match (kind, others.is_empty()) {
                (Kind::Transient, true) if often < 2 => Kind::Transient,
                (_, true) => {
                    met = met.max(often);
                    Kind::StoodStill
                }
                (Kind::Reproducible, false) => self.confirmed(others.into_iter()),
                (kind, false) => kind,
            };
        }
        size(met)
    }

    fn regions(
        &self,
        neighbours: &Neighbours,
        sequence: &moments::Sequence,
        context: &Context,
    ) -> Vec<Region> {
        let mut left: Vec<&Found> = self.found.iter().filter(|found| found.kind.is_gap()).collect();
        let mut regions = Vec::new();
        while !left.is_empty() {
            let mut region = vec![left.remove(0)];
            let mut next = 0;
            while next < region.len() {
                let (from, kind) = (region[next].cell, region[next].kind);
                let touches = |f: &&Found| f.kind == kind && neighbours.touch(from, f.cell);
                let (joined, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(touches);
                region.extend(joined);
                left = rest;
                next += 1;
            }
            region.sort_by_key(|found| found.cell);
            regions.push(self.region(&region, sequence, context));
        }
        regions
    }

    fn region(&self, found: &[&Found], sequence: &moments::Sequence, context: &Context) -> Region {
        let slow: Vec<u32> =
            found.iter().flat_map(|f| f.slow.iter().map(|&(order, ..)| order)).collect();
        let contiguous_in_time = sequence.contiguous(&slow);
        let indices: Vec<usize> = found.iter().map(|f| f.cell).collect();
        let kind = found.first().map_or(Kind::Unconfirmed, |f| f.kind);
        let full = || moments::full_cache(self.cells, &indices, &slow, context);
        Region {
            kind,
            cells: found.iter().map(|f| self.show(f)).collect(),
            depth: found.iter().map(|f| f.ratio).fold(1.0, f64::min),
            lost_ns: lost(found.iter().copied()),
            contiguous_in_time,
            full_cache: (kind == Kind::Unconfirmed).then(full).flatten(),
        }
    }

    fn show(&self, found: &Found) -> FlaggedCell {
        let cell = &self.cells[found.cell];
        FlaggedCell {
            cell: cell.cell,
            group: cell.group.clone(),
            op: cell.op.clone(),
            block_bytes: cell.block_bytes,
            threads: cell.threads,
            in_flight: cell.in_flight,
            kind: found.kind,
            ratio: found.ratio,
            by_neighbours: found.by_neighbours,
            promised_per_second: found.promised,
            lost_ns: lost(std::iter::once(found)),
            orders: found.slow.iter().map(|&(order, ..)| order).collect(),
            visits: u32::try_from(cell.visits.len()).unwrap_or(u32::MAX),
            missing: cell.visits.is_empty(),
        }
    }
}

impl Kind {
    /// Whether it may be a property of the cell.
    fn is_gap(self) -> bool {
        matches!(self, Self::Reproducible | Self::Unconfirmed)
    }
}

/// Whether a visit lost most of what it lacks while the device stood still.
fn stood_still(visit: &SweepVisit, promised: Option<f64>) -> bool {
    let share = promised.map_or(0.0, |promised| visit.requests_per_second / promised);
    let lacks = visit.elapsed_ns as f64 * (1.0 - share).clamp(0.0, 1.0);
    visit.stood_ns > 0 && visit.stood_ns as f64 >= STOOD_SHARE * lacks
}

fn size(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn lost<'a>(found: impl Iterator<Item = &'a Found>) -> u64 {
    found.flat_map(|f| &f.slow).map(|&(.., lost)| lost).fold(0, u64::saturating_add)
}

/// Where cells stand: which ones are next to each other.
struct Neighbours {
    /// Per cell: group, place of its block size, place of its column, both from 0.
    places: Vec<(usize, usize, usize)>,
}

impl Neighbours {
    fn new(cells: &[SweepCell], columns: &[Vec<usize>]) -> Self {
        let mut places = vec![(0, 0, 0); cells.len()];
        for (group, members) in groups(cells).iter().enumerate() {
            let blocks: BTreeSet<u64> = members.iter().map(|&c| cells[c].block_bytes).collect();
            let mine = columns.iter().filter(|c| c.iter().any(|cell| members.contains(cell)));
            for (place, column) in mine.enumerate() {
                for &cell in column {
                    let block = blocks.iter().position(|&b| b == cells[cell].block_bytes);
                    places[cell] = (group, block.unwrap_or(0), place);
                }
            }
        }
        Self { places }
    }

    /// Side by side in block size or in requests in flight, the other being the same.
    fn touch(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.places[a], self.places[b]);
        a.0 == b.0 && a.1.abs_diff(b.1) + a.2.abs_diff(b.2) == 1
    }
}

#[cfg(test)]
mod tests {
    use finding::Code;

    use super::*;

    /// 14 block sizes of one column, 60 K requests a second up to 16 KiB, then 1 GiB/s.
    fn column(rate: impl Fn(usize, f64) -> Vec<(f64, u32)>) -> Vec<SweepCell> {
        let cell = |at: usize| {
            let block_bytes = 512u64 << at;
            let healthy = 60_000.0_f64.min(1_073_741_824.0 / block_bytes as f64);
            SweepCell {
                cell: at as u32,
                group: "read".to_owned(),
                op: "read".to_owned(),
                block_bytes,
                threads: 10,
                in_flight: 10,
                visits: rate(at, healthy)
                    .into_iter()
                    .map(|(requests_per_second, order)| SweepVisit {
                        requests_per_second,
                        order,
                        elapsed_ns: 2_000_000_000,
                        stood_ns: 0,
                    })
                    .collect(),
            }
        };
        (0..14).map(cell).collect()
    }

    /// Three rounds, noise of about 1 %, cell `sick` at half its rate in the rounds named.
    fn rounds(sick: usize, in_rounds: &[u32]) -> Gaps {
        let cells = column(|at, healthy| {
            (0..3u32)
                .map(|round| {
                    let noise = 1.0 + 0.01 * f64::from((at as u32 * 7 + round * 5) % 5);
                    let half = at == sick && in_rounds.contains(&round);
                    let rate = if half { healthy / 2.0 } else { healthy };
                    (rate * noise, round * 14 + (at as u32 * 3) % 14)
                })
                .collect()
        });
        sweep(&cells, &Context::default())
    }

    /// Two rounds; cell 7 does a hundredth in those named, of which the device stood still for so
    /// much of the two seconds.
    fn standing(in_rounds: &[u32], stood_ms: u64) -> Gaps {
        let slow = |at: usize, round: u32| at == 7 && in_rounds.contains(&round);
        let mut cells = column(|at, healthy| {
            let rate = |round| if slow(at, round) { healthy / 100.0 } else { healthy };
            (0..2u32).map(|round| (rate(round), round * 14 + (at as u32 * 3) % 14)).collect()
        });
        for (round, visit) in (0u32..).zip(&mut cells[7].visits) {
            visit.stood_ns = if slow(7, round) { stood_ms * 1_000_000 } else { 0 };
        }
        sweep(&cells, &Context::default())
    }

    #[test]
    fn what_stood_still_is_no_property_of_its_cell() {
        assert_eq!(standing(&[0, 1], 0).regions[0].kind, Kind::Reproducible);
        assert_eq!(standing(&[0, 1], 200).regions[0].kind, Kind::Reproducible, "too short for it");
        let gaps = standing(&[0, 1], 1_900);
        assert_eq!(gaps.flagged[0].kind, Kind::StoodStill);
        assert!(gaps.regions.is_empty() && gaps.events.is_empty(), "{gaps:?}");
        let said = gaps.findings().remove(0);
        assert_eq!((said.code, said.cells[0].cell), (Code::GapStall, 7));
        assert_eq!(said.cells[0].name, "read 64 KiB 10 threads");
        // Once is something that happened then.
        assert_eq!(standing(&[1], 1_900).flagged[0].kind, Kind::Transient);
    }

    #[test]
    fn a_standstill_that_other_cells_meet_is_no_transient_of_the_one_that_met_it_once() {
        let cells = |in_others_ms: u64| {
            let mut cells = column(|at, healthy| {
                let slow = |round| at % 4 == 3 && round == at as u32 / 4 % 2;
                let rate = |round| if slow(round) { healthy / 100.0 } else { healthy };
                (0..2u32).map(|round| (rate(round), round * 14 + (at as u32 * 3) % 14)).collect()
            });
            for (at, cell) in cells.iter_mut().enumerate().filter(|(at, _)| at % 4 == 3) {
                let ms = if at == 7 { 1_990 } else { in_others_ms };
                cell.visits[at / 4 % 2].stood_ns = ms * 1_000_000;
            }
            cells
        };
        let gaps = sweep(&cells(1_990), &Context::default());
        assert!(gaps.flagged.iter().all(|cell| cell.kind == Kind::StoodStill), "{gaps:?}");
        assert_eq!((gaps.flagged.len(), gaps.stood_still, gaps.visits), (3, 3, 28));
        assert!(gaps.events.is_empty());
        let said = gaps.findings().remove(0);
        assert_eq!(said.value("often"), Some(&3_u32.into()), "{said:?}");
        // What is far shorter is another matter.
        let gaps = sweep(&cells(100), &Context::default());
        let of_seven = gaps.flagged.iter().find(|cell| cell.block_bytes == 512 << 7).unwrap();
        assert_eq!(of_seven.kind, Kind::Transient);
    }

    #[test]
    fn cells_that_are_not_judged_count_among_those_that_stood_still() {
        let mut cells = column(|_, healthy| (0..2u32).map(|round| (healthy, round)).collect());
        let mut left_out = cells.split_off(10);
        for visit in &mut cells[7].visits {
            visit.requests_per_second /= 100.0;
            visit.stood_ns = 1_990_000_000;
        }
        left_out[0].visits[0].stood_ns = 1_990_000_000;
        let gaps = judge(&cells, &left_out, &Context::default());
        assert_eq!((gaps.stood_still, gaps.visits), (3, 28), "{gaps:?}");
    }

    #[test]
    fn what_was_not_measured_is_no_gap() {
        use crate::freeze::tests::{run, visit};
        // Both cells are of one phase; nobody visited the second, or its visit failed.
        let mut run = run(record::TargetKind::File, vec![visit(0, "read", &[])]);
        let plan = run.cells[0].streams[0].clone();
        for (cell, block_bytes) in run.cells.iter_mut().zip([4096, 8192]) {
            cell.phase = "read".to_owned();
            cell.streams =
                vec![record::StreamPlan { block_bytes: Some(block_bytes), ..plan.clone() }];
        }
        let flagged = |run: &record::Run| gaps(&View::new(run)).flagged.len();
        assert_eq!(flagged(&run), 0, "never visited");
        let mut failed = visit(1, "write", &[]);
        failed.end = record::VisitEnd::Failed;
        run.visits.push(failed);
        assert_eq!(flagged(&run), 0, "failed");
        // Another tool's table has a place for a value, and none in it.
        run.visits.pop();
        run.header.imported = Some(record::Imported {
            tool: "tool".to_owned(),
            version: None,
            file: String::new(),
            bytes: 0,
            xxh3: String::new(),
            settings: vec![],
            remarks: vec![],
        });
        assert_eq!(flagged(&run), 1);
    }

    #[test]
    fn what_no_neighbour_promises_is_told_by_the_cells_own_visits() {
        let mut cells = column(|_, healthy| (0..6).map(|round| (healthy, round)).collect());
        cells.truncate(1);
        for slow in [2, 4] {
            cells[0].visits[slow].requests_per_second /= 50.0;
            cells[0].visits[slow].stood_ns = 1_980_000_000;
        }
        let gaps = sweep(&cells, &Context::default());
        assert!(!gaps.flagged[0].by_neighbours, "{gaps:?}");
        let said = gaps.findings().remove(0).text();
        assert!(said.contains("`read 512 B 10 threads` (2.0 %), compared with what is"), "{said}");
        assert!(!said.contains("neighbours"), "{said}");
    }

    #[test]
    fn a_cell_slow_in_every_round_is_a_reproducible_gap() {
        let gaps = rounds(2, &[0, 1, 2]);
        let [region] = gaps.regions.as_slice() else { panic!("{gaps:?}") };
        assert_eq!(region.kind, Kind::Reproducible);
        assert_eq!(region.cells[0].block_bytes, 2048);
        assert!((region.depth - 0.5).abs() < 0.05, "{region:?}");
        assert!(gaps.events.is_empty());
    }

    #[test]
    fn a_cell_slow_in_all_rounds_but_one_is_a_reproducible_gap() {
        let kinds = |slow: &dyn Fn(u32) -> bool| {
            let cells = column(|at, healthy| {
                let rate = |round| if at == 2 && slow(round) { healthy / 2.0 } else { healthy };
                let noise = |round: u32| 1.0 + 0.01 * f64::from((at as u32 * 7 + round * 5) % 5);
                let visit = |round| (rate(round) * noise(round), round * 14 + (at as u32 * 3) % 14);
                (0..6).map(visit).collect()
            });
            let gaps = sweep(&cells, &Context::default());
            (gaps.flagged.iter().map(|cell| cell.kind).collect::<Vec<_>>(), gaps.events.len())
        };
        assert_eq!(kinds(&|round| round != 4), (vec![Kind::Reproducible], 0));
        assert_eq!(kinds(&|round| round % 3 == 1), (vec![Kind::Transient], 2));
    }

    #[test]
    fn a_cell_slow_in_one_round_is_a_transient() {
        for slow in [0, 1, 2] {
            let gaps = rounds(2, &[slow]);
            let [event] = gaps.events.as_slice() else { panic!("{gaps:?}") };
            assert!(event.confirmed && event.visits.len() == 1);
            assert!(gaps.regions.is_empty());
            let lost = event.lost_ns as f64 / 1e9;
            assert!((lost - 1.0).abs() < 0.1, "{lost}");
        }
    }

    #[test]
    fn what_all_cells_are_slower_by_since_is_no_event() {
        let found = rounds(2, &[2]);
        let (order, ratio) = (found.events[0].visits[0].order, found.events[0].visits[0].ratio);
        let left = |from: u32, ratio: f64| {
            let mut gaps = found.clone();
            gaps.leave_to(&[Fall { orders: (from..1_000).collect(), ratio }]);
            assert_eq!(gaps.events.len(), gaps.flagged.len());
            gaps.events.len()
        };
        assert_eq!(left(order, ratio), 0);
        assert_eq!(left(order + 1, ratio), 1, "it came before");
        assert_eq!(left(order, (2.0 * ratio).min(0.99)), 1, "twice as slow as they");
    }

    #[test]
    fn healthy_cells_are_left_alone() {
        let gaps = rounds(99, &[]);
        assert!(gaps.flagged.is_empty() && gaps.judged == 14, "{gaps:?}");
    }

    #[test]
    fn small_blocks_may_be_slower_but_not_by_half() {
        for (share, flagged) in [(0.6, 0), (0.45, 1)] {
            let cells = column(|at, healthy| {
                vec![(if at == 0 { share * healthy } else { healthy }, at as u32 + 1)]
            });
            assert_eq!(sweep(&cells, &Context::default()).flagged.len(), flagged, "{share}");
        }
    }

    #[test]
    fn a_cell_without_neighbours_is_no_gap() {
        let mut cells = column(|_, healthy| vec![(healthy, 1)]);
        cells.truncate(1);
        cells[0].visits.clear();
        let gaps = sweep(&cells, &Context::default());
        assert!(gaps.flagged.is_empty() && gaps.unjudged == 1, "{gaps:?}");
    }

    /// One cell alone, visited one time after the other; a third of its rate in the visits named.
    fn alone(visits: u32, slow: std::ops::Range<u32>) -> Gaps {
        let mut cells = column(|_, healthy| {
            let rate = |at: u32| {
                let share = if slow.contains(&at) { 0.3 } else { 1.0 };
                healthy * share * (1.0 + 0.01 * f64::from(at * 7 % 5))
            };
            (0..visits).map(|at| (rate(at), at)).collect()
        });
        cells.truncate(1);
        sweep(&cells, &Context::default())
    }

    #[test]
    fn what_never_came_back_is_no_moment() {
        let moment = alone(43, 10..20);
        assert_eq!((moment.flagged.len(), moment.events.len()), (1, 1), "{moment:?}");
        let stayed = alone(43, 22..43);
        assert!(stayed.flagged.is_empty() && stayed.events.is_empty(), "{stayed:?}");
        // Of one or two visits at the end nobody knows whether it would have come back.
        assert_eq!(alone(43, 41..43).events.len(), 1);
    }

    #[test]
    fn a_cell_is_named_once_in_a_moment() {
        let said = finding::texts(&alone(43, 10..20).findings()).join(" ");
        assert_eq!(said.matches("read 512 B").count(), 1, "{said}");
        assert!(said.contains("(10 visits, down to 30 % of what is usual there)"), "{said}");
    }

    #[test]
    fn odd_input_gives_an_answer() {
        let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, f64::MAX, f64::MIN_POSITIVE];
        let mut cells = column(|at, _| vec![(odd[at % odd.len()], u32::MAX); at % 4]);
        cells[3].block_bytes = 0;
        cells[4].block_bytes = u64::MAX;
        cells[5].threads = 0;
        let context = Context {
            fill: Some(Fill { bytes: u64::MAX, elapsed_ns: 0 }),
            cache_bytes: Some(0),
            working_set_bytes: None,
        };
        assert!(!sweep(&cells, &context).findings().is_empty());
        assert!(!sweep(&[], &context).findings().is_empty());
    }
}
