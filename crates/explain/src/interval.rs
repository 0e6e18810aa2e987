//! Cells with their intervals.

use finding::{Code, Finding, Number, Value};
use schemars::JsonSchema;
use serde::Serialize;
use stats::interval::{Interval, moderated_among, plain, pooled_scale};
use stats::memory::{Rows, half_width};
use stats::outlier::{GRID_CELLS_MIN, Verdict, alone, in_grid, median};
use stats::within::{FIRST_LOOK, within};

use crate::closing::load_ns;
use crate::freeze::Tier;
use crate::view::{CellView, View, VisitView, is_preparation};

/// How sure every interval of a cell is.
pub const CONFIDENCE: f64 = 0.95;
/// About so many rows of all visits together show how long noise lasts: the search takes time.
const ROWS_OF_ALL: usize = 512;
/// A time without any completion from which on it is a stall.
const STALL_MS: u64 = 100;

/// A cell's rate with its interval. Rates are requests per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellInterval {
    /// Geometric mean over the visits in which anything completed.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// How far the upper end is above the mean, as a share of it, or the mean above the lower end, if
    /// that is more: 0.03 for +-3 %.
    pub half_width: f64,
    /// By which share of the rate the start and the end of the visits may make it wrong, where few
    /// requests were completed for each one in flight; it is in `low`, `high` and `half_width`.
    pub ends_share: Option<f64>,
    /// Standstills that took a good part of a visit, where there were any: how often they come is
    /// in `low`, `high` and `half_width`.
    pub standstills: Option<Standstills>,
    /// How often such intervals hold the truth: 0.95.
    pub confidence: f64,
    /// How many visits the interval is from.
    pub visits: u32,
    /// Rate of each visit, in the order made.
    pub values: Vec<f64>,
    /// Their median: what a single odd visit does not move.
    pub median: f64,
    /// Positions in `values` of visits that lie apart from the others. They are in every figure
    /// all the same.
    pub outliers: Vec<u32>,
    /// Whether there were enough visits, or a grid around, to tell such.
    pub outliers_judged: bool,
    /// Two visits or more lie apart: a mixture of two states, not an outlier.
    pub recurring: bool,
    /// The mean of the others, where some lie apart.
    pub mean_without_flagged: Option<f64>,
    /// What the interval is from.
    pub basis: Basis,
    /// Measured time of the visits together.
    pub measured_ns: u64,
    /// No stall of 100 ms or more was seen; so many an hour there may be all the same, at 95 %.
    /// `None` where there was one, or requests are so rare that it would not show.
    pub stalls_per_hour_max: Option<f64>,
}

/// Times in which a whole device stood still in the visits of a cell, one of them for a good part of
/// its visit.
///
/// Whether a visit has none of them or one is chance then, and visits that were alike by chance say
/// nothing of it. How often they come is known as well as their number tells (Poisson), and how
/// much of the time they take follows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Standstills {
    /// How many.
    pub times: u32,
    /// The longest.
    pub longest_ns: u64,
    /// On average.
    pub mean_ns: u64,
    /// Their share of the measured time.
    pub share: f64,
    /// The rate may be this many times as high if they come as rarely as can be.
    pub higher: f64,
    /// Or this share of it if they come as often as can be.
    pub lower: f64,
    /// Requests per second of the visit that was fastest between its standstills: however rarely
    /// they come, the rate is no higher. Null where nothing ran for long enough to tell.
    pub between_max: Option<f64>,
}

impl Standstills {
    /// A standstill takes a good part of its visit from this share on.
    pub(crate) const SHARE_MIN: f64 = 0.25;
    /// What a visit does between them is known where it ran for this share of its time at least.
    pub(crate) const RAN_MIN: f64 = 0.1;

    /// `None` where none was so long.
    pub(crate) fn of(cell: &CellView) -> Option<Self> {
        let few = crate::ends::is_few(cell);
        let (mut times, mut longest_ns, mut lost, mut large) = (0u32, 0u64, 0.0, false);
        let mut between_max = 0.0f64;
        for visit in &cell.visits {
            let rated = visit.visit.rated_ns();
            let mut stood = 0.0;
            for gap in crate::freeze::gaps_if_any(visit.visit) {
                let ns = gap.end_ns().min(rated).saturating_sub(gap.start_ns);
                stood += ns as f64;
                if few && gap.tier != Tier::Freeze {
                    continue;
                }
                times += 1;
                longest_ns = longest_ns.max(ns);
                lost += ns as f64;
                large |= ns as f64 >= Self::SHARE_MIN * rated as f64;
            }
            let ran = rated as f64 - stood;
            if ran >= Self::RAN_MIN * rated as f64 {
                between_max = between_max.max(visit.requests_per_second * rated as f64 / ran);
            }
        }
        let measured = measured_ns(cell) as f64;
        let running = (measured - lost).max(1e6);
        let seen = stats::poisson::rate(u64::from(times), running, CONFIDENCE)?;
        let each = lost / f64::from(times.max(1));
        let now = runs(seen.rate, each);
        (large && now > 0.0).then(|| Self {
            times,
            longest_ns,
            mean_ns: each as u64,
            share: 1.0 - now,
            higher: runs(seen.low, each) / now,
            lower: runs(seen.high, each) / now,
            between_max: (between_max > 0.0).then_some(between_max),
        })
    }

    /// Whether the device stood still for a good part of a visit, or of all.
    pub(crate) fn are_any(cell: &CellView) -> bool {
        Self::of(cell).is_some() || Self::are_all(cell)
    }

    /// Whether the device stood still for nearly all of each visit: what little came back tells how long
    /// that took, and nothing of how fast the cell is when it does not, nor of how often that is. Visits
    /// that all met the same are no evidence: a cache that was full when the first one began is full in
    /// each.
    pub(crate) fn are_all(cell: &CellView) -> bool {
        let ran = |visit: &VisitView| {
            let rated = visit.visit.rated_ns();
            let stood = crate::freeze::stood_ns(visit.visit);
            rated.saturating_sub(stood) as f64 >= Self::RAN_MIN * rated as f64
        };
        !cell.visits.is_empty() && !cell.visits.iter().any(ran)
    }

    /// Which share of a cell's rate may be left if such as were seen elsewhere come there as well,
    /// and so far did not by chance.
    pub(crate) fn unseen(cell: &CellView, mean_ns: u64) -> Option<f64> {
        let seen = stats::poisson::rate(0, measured_ns(cell) as f64, CONFIDENCE)?;
        Some(runs(seen.high, mean_ns as f64))
    }
}

/// Of the time in which something runs, and stops so often while it runs for so long, the part in
/// which it runs.
fn runs(rate: f64, length: f64) -> f64 {
    1.0 / (1.0 + rate * length)
}

/// What an interval is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// How visits differ.
    Visits,
    /// The course of a single visit: what differs from visit to visit is not in it.
    OneVisit,
}

/// The interval of one stream of a cell of several.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StreamInterval {
    /// Index of the cell.
    pub cell: u32,
    /// Which of its streams, from 0.
    pub position: u32,
    /// The stream's name.
    pub stream: String,
    /// The cell and the stream as people say it.
    pub name: String,
    /// Of the stream's rate; `None` as for cells.
    pub interval: Option<CellInterval>,
}

/// Intervals of all cells, in the order of `view.cells`; the rates of a cell's streams are added
/// up, unlike as they may be.
///
/// Cells of a phase with streams of the same names lend each other their usual noise. `None` where
/// nothing completed, where a single visit was too short or too uneven to say how sure its rate is, and
/// where the device stood still for nearly all of each visit.
///
/// A cell of one stream is that stream's row: it has one interval, not two.
pub fn cells(view: &View) -> Vec<Option<CellInterval>> {
    let rows = rows(view);
    let row_of = |cell: &CellView| {
        view.rows.iter().position(|row| row.stream.is_none() && row.cell.index == cell.cell.index)
    };
    let whole = of(&view.cells).into_iter().zip(&view.cells);
    let of_row = |(whole, cell): (Option<CellInterval>, &CellView)| match row_of(cell) {
        Some(row) => rows.get(row).cloned().flatten(),
        None => whole,
    };
    whole.map(of_row).collect()
}

/// Intervals of all rows, in the order of `view.rows`: each stream by itself.
pub fn rows(view: &View) -> Vec<Option<CellInterval>> {
    of(&view.rows)
}

/// Intervals of the streams of cells that have several, in the suite's order.
pub fn streams(view: &View) -> Vec<StreamInterval> {
    let each = view.rows.iter().zip(rows(view)).filter_map(|(row, interval)| {
        Some(StreamInterval {
            cell: row.cell.index,
            position: u32::try_from(row.stream?).ok()?,
            stream: row.stream_name()?.to_owned(),
            name: row.name(),
            interval,
        })
    });
    each.collect()
}

fn of(cells: &[CellView]) -> Vec<Option<CellInterval>> {
    let mut groups: Vec<Group> = Vec::new();
    for cell in cells.iter().filter(|cell| !is_preparation(&cell.cell.phase)) {
        let alike = cell.alike();
        if !groups.iter().any(|group| group.alike == alike) {
            groups.push(Group::of(cells, alike));
        }
    }
    let in_group = |(position, cell): (usize, &CellView)| {
        let group = groups.iter().find(|group| group.alike == cell.alike());
        let pooled = group.and_then(|group| group.interval(position));
        let interval = pooled.or_else(|| plain(&cell.ln_rates(), CONFIDENCE));
        let interval = interval.map(|found| found.no_narrower(memory(cell)));
        cell_interval(cell, interval, group.and_then(|group| group.s0))
    };
    cells.iter().enumerate().map(in_group).collect()
}

/// What cells that are expected to be equally noisy know together.
struct Group<'a> {
    alike: (&'a str, Vec<&'a str>),
    /// (position among all, interval)
    intervals: Vec<(usize, Option<Interval>)>,
    /// Usual scatter, where there are enough cells to know it.
    s0: Option<f64>,
}

impl<'a> Group<'a> {
    fn of(cells: &[CellView], alike: (&'a str, Vec<&'a str>)) -> Self {
        let members = || cells.iter().enumerate().filter(|(_, cell)| cell.alike() == alike);
        let (positions, values): (Vec<usize>, Vec<Vec<f64>>) =
            members().map(|(position, cell)| (position, cell.ln_rates())).unzip();
        let known = values.iter().filter(|cell| cell.len() >= 2).count();
        let s0 = pooled_scale(&values).filter(|_| known >= GRID_CELLS_MIN);
        // What a cell scatters by standing still is not usual, and nothing to lend to others.
        let stood: Vec<bool> = members().map(|(_, cell)| Standstills::are_any(cell)).collect();
        let moderated = moderated_among(&values, &|k| !stood[k], CONFIDENCE);
        let intervals = positions.into_iter().zip(moderated).collect();
        Self { alike, intervals, s0 }
    }

    fn interval(&self, position: usize) -> Option<Interval> {
        self.intervals.iter().find(|(at, _)| *at == position)?.1
    }
}

/// Ends of an interval as rates.
struct Ends {
    low: f64,
    high: f64,
    half_width: f64,
    basis: Basis,
}

impl Ends {
    /// No narrower than what standstills leave open, and no further up than what ran between them:
    /// logarithms of visits that lost nearly all are far apart, and know of no such bound.
    fn no_narrower(self, mean: f64, standstills: &Standstills) -> Self {
        let low = self.low.min(mean * standstills.lower);
        let high = self.high.max(mean * standstills.higher);
        let high = standstills.between_max.map_or(high, |most| high.min(most.max(mean)));
        // A side that takes in 0 has no ratio.
        let down = if low > 0.0 { mean / low } else { 1.0 + self.half_width };
        Self { low, high, half_width: (high / mean).max(down) - 1.0, ..self }
    }

    /// With what the start and the end of a visit can do to the rate.
    fn widened(self, share: f64) -> Self {
        Self {
            low: self.low * (1.0 - share).max(0.0),
            high: self.high * (1.0 + share),
            half_width: (1.0 + self.half_width) * (1.0 + share) - 1.0,
            ..self
        }
    }
}

fn cell_interval(
    cell: &CellView,
    interval: Option<Interval>,
    s0: Option<f64>,
) -> Option<CellInterval> {
    let logs = cell.ln_rates();
    let mean = exp_mean(&logs)?;
    let ends = match interval {
        Some(found) => Ends {
            low: found.low(),
            high: found.high(),
            half_width: found.relative(),
            basis: Basis::Visits,
        },
        None => one_visit(cell, mean)?,
    };
    if Standstills::are_all(cell) {
        return None;
    }
    let standstills = Standstills::of(cell);
    let ends = standstills.iter().fold(ends, |ends, found| ends.no_narrower(mean, found));
    let ends_share = crate::ends::widens(cell);
    let ends = ends.widened(ends_share.unwrap_or(0.0));
    if ![mean, ends.low, ends.high, ends.half_width].iter().all(|number| number.is_finite()) {
        return None;
    }
    let values: Vec<f64> = cell.visits.iter().map(|visit| visit.requests_per_second).collect();
    // Of few requests each visit's start and end decide, and no device.
    let few = ends_share.is_some_and(|share| share >= crate::ends::SHARE_MIN);
    let (outliers, outliers_judged) = if few { (vec![], false) } else { odd(cell, &values, s0) };
    let others: Vec<f64> = (0u32..)
        .zip(&values)
        .filter(|(position, rate)| **rate > 0.0 && !outliers.contains(position))
        .map(|(_, rate)| rate.ln())
        .collect();
    Some(CellInterval {
        mean,
        low: ends.low,
        high: ends.high,
        half_width: ends.half_width,
        ends_share,
        standstills,
        confidence: CONFIDENCE,
        visits: u32::try_from(logs.len()).unwrap_or(u32::MAX),
        median: median(&values)?,
        values,
        recurring: outliers.len() >= 2 && !by_standstills(cell, s0),
        mean_without_flagged: exp_mean(&others).filter(|_| !outliers.is_empty()),
        outliers,
        outliers_judged,
        basis: ends.basis,
        measured_ns: measured_ns(cell),
        stalls_per_hour_max: stalls_per_hour_max(cell),
    })
}

/// Least half-width by what visits that follow each other closely have in common.
pub(crate) fn memory(cell: &CellView) -> Option<f64> {
    half_width(&within_visits(cell), CONFIDENCE)
}

/// The same of the mean over several rows, in whose visits the others' come in between: each by its own
/// mean, with the scatter that this takes away given back.
pub(crate) fn memory_of_all<'a>(rows: impl Iterator<Item = &'a CellView<'a>>) -> Option<f64> {
    let by_mean = |row: &CellView| {
        let mut visits = within_visits(row);
        let n = visits.len() as f64;
        let rates = || visits.iter().flat_map(|visit| visit.rates.iter().copied().map(f64::from));
        let mean = rates().sum::<f64>() / rates().count() as f64;
        let scale = (n / (n - 1.0)).sqrt();
        for rate in visits.iter_mut().flat_map(|visit| &mut visit.rates) {
            *rate = (1.0 + scale * (f64::from(*rate) / mean - 1.0)) as f32;
        }
        if visits.len() < 2 { Vec::new() } else { visits }
    };
    let mut all: Vec<Rows> = rows.flat_map(by_mean).collect();
    all.sort_by(|a, b| a.start.total_cmp(&b.start));
    // Of many visits each need not be looked at so closely.
    let most = (ROWS_OF_ALL / all.len().max(1)).max(2);
    let all: Vec<Rows> = all.into_iter().map(|visit| visit.merged(most)).collect();
    half_width(&all, CONFIDENCE)
}

fn within_visits(cell: &CellView) -> Vec<Rows> {
    let counted = cell.visits.iter().filter(|visit| visit.requests_per_second > 0.0);
    counted.map(|visit| crate::visits::within(visit.visit, visit.stream)).collect()
}

/// Geometric mean from logarithms.
fn exp_mean(logs: &[f64]) -> Option<f64> {
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// Visits that lie apart, and whether that could be told. A visit in which nothing completed
/// does so in any case.
fn odd(cell: &CellView, values: &[f64], s0: Option<f64>) -> (Vec<u32>, bool) {
    // ln 0 is not finite, so such visits keep their position and take no part.
    let logs: Vec<f64> = values.iter().map(|rate| rate.ln()).collect();
    let (indices, judged) = match s0 {
        Some(s0) => (in_grid(&logs, s0), logs.len() >= stats::outlier::VALUES_MIN),
        None => match alone(&logs, resolution(cell)) {
            Verdict::Clean => (Vec::new(), true),
            Verdict::Flagged { indices, .. } => (indices, true),
            Verdict::TooFew => (Vec::new(), false),
        },
    };
    let positions = (0u32..).zip(values).enumerate();
    let odd = positions.filter(|(i, (_, rate))| **rate <= 0.0 || indices.contains(i));
    (odd.map(|(_, (position, _))| position).collect(), judged)
}

/// Whether no two visits would lie apart had the device not stood still in any: then it has one
/// state, and standstills.
fn by_standstills(cell: &CellView, s0: Option<f64>) -> bool {
    let stood = |visit: &VisitView| crate::freeze::stood_ns(visit.visit);
    let between: Vec<f64> = cell
        .visits
        .iter()
        .map(|visit| {
            let rated = visit.visit.rated_ns() as f64;
            visit.requests_per_second * rated / (rated - stood(visit) as f64).max(1e6)
        })
        .collect();
    cell.visits.iter().any(|visit| stood(visit) > 0) && odd(cell, &between, s0).0.len() < 2
}

/// Change of ln rate by a single completion more, in the shortest visit.
fn resolution(cell: &CellView) -> f64 {
    let counts = cell.visits.iter().map(|visit| {
        let seconds = visit.visit.rated_ns() as f64 / 1e9;
        visit.requests_per_second * seconds
    });
    let fewest = counts.filter(|&count| count > 0.0).fold(f64::INFINITY, f64::min);
    1.0 / fewest
}

fn one_visit(cell: &CellView, mean: f64) -> Option<Ends> {
    let [visit] = cell.visits.as_slice() else { return None };
    let samples = samples(visit)?;
    // Wide ones too: to show only settled ones would select those that look too quiet.
    let half_width = within(&samples, CONFIDENCE)?.relative();
    Some(Ends {
        low: mean * (1.0 - half_width).max(0.0),
        high: mean * (1.0 + half_width),
        half_width,
        basis: Basis::OneVisit,
    })
}

/// Requests in each whole interval of a visit's series; `None` if they do not add up to what can
/// be judged.
fn samples(visit: &VisitView) -> Option<Vec<f64>> {
    let interval = visit.counted().map(|op| op.series.interval_ns).find(|&ns| ns > 0)?;
    let alike =
        visit.counted().all(|op| op.series.rows.is_empty() || op.series.interval_ns == interval);
    let rated_ns = visit.visit.rated_ns();
    if !alike || rated_ns < FIRST_LOOK.get() {
        return None;
    }
    // Longer than any series of a record: rows are merged as a visit grows.
    let whole = usize::try_from(rated_ns / interval).ok().filter(|&n| n <= 10_000_000)?;
    let mut sums = vec![0.0; whole];
    for op in visit.counted() {
        for (sum, row) in sums.iter_mut().zip(&op.series.rows) {
            *sum += row.requests as f64;
        }
    }
    Some(sums)
}

fn measured_ns(cell: &CellView) -> u64 {
    cell.visits.iter().fold(0, |sum, visit| sum.saturating_add(visit.visit.rated_ns()))
}

/// With none seen in a time T the rate is below `-ln(0.05) / T`: the rule of three.
fn stalls_per_hour_max(cell: &CellView) -> Option<f64> {
    let seen = |visit: &VisitView| {
        let completions = visit.completions();
        let load_ms = load_ns(visit.visit) / 1_000_000;
        let silences = completions.zero_runs(STALL_MS);
        let in_load = |(start, ms): &(u64, u64)| (start + ms).min(load_ms) >= start + STALL_MS;
        completions.bits < STALL_MS || silences.iter().any(in_load)
    };
    let seconds = measured_ns(cell) as f64 / 1e9;
    let silent = seconds > 0.0 && !cell.visits.iter().any(seen);
    silent.then(|| -(1.0 - CONFIDENCE).ln() / seconds * 3600.0)
}

impl CellInterval {
    /// How to read it: the rate first, then what it is from, outliers, what it does not cover.
    pub fn findings(&self) -> Vec<Finding> {
        let visits = self.values.len();
        let in_order = (visits > 1).then(|| {
            Finding::new(Code::VisitsInOrder)
                .with("rates", Value::words(in_order(&self.values)))
                .with("median", Value::words(rate(self.median)))
        });
        let no_outlier = (self.outliers.is_empty() && !self.outliers_judged && visits > 1)
            .then(|| Finding::new(Code::OutliersUnknown).with("visits", visits))
            .filter(|_| !self.is_of_few());
        let rest = [self.stalls(), self.outlier(), no_outlier, in_order, self.no_stall()];
        std::iter::once(self.rate()).chain(rest.into_iter().flatten()).collect()
    }

    /// How far it reaches: `+-1.2 %`; of a wide one its ends; of one whose lower end is 0, which no
    /// factor is, `from 0 to 2.99 times the rate`.
    pub(crate) fn reach(&self) -> String {
        match self.low > 0.0 {
            true if self.is_wide() => self.ends(),
            true => crate::words::reach(self.half_width),
            false => {
                format!("from 0 to {} times the rate", crate::words::digits(1.0 + self.half_width))
            }
        }
    }

    /// Whether it is told by its ends: `+-924 %` of a rate says nothing of its lower one.
    pub fn is_wide(&self) -> bool {
        self.half_width > crate::words::SIDES_ALIKE
    }

    /// `3.94 K to 10.7 K requests/s`.
    pub(crate) fn ends(&self) -> String {
        let ends = self.range(" to ");
        if ends.ends_with("/s") { ends } else { format!("{ends} requests/s") }
    }

    /// Both ends, each with its unit where one is in thousands and the other is not: `between 52.3 and
    /// 59.5 K` is read as thousands twice.
    fn range(&self, between: &str) -> String {
        let (low, high) = (rate(self.low), rate(self.high));
        let letter = |text: &str| text.split_once(' ').map(|(_, letter)| letter.to_owned());
        match low == "0" || letter(&low) == letter(&high) {
            true => format!("{low}{between}{high}"),
            false => format!("{low} requests/s{between}{high} requests/s"),
        }
    }

    fn rate(&self) -> Finding {
        let code = match self.basis {
            Basis::Visits => Code::RateOfVisits,
            Basis::OneVisit => Code::RateOfOneVisit,
        };
        // Both ends follow.
        let is_reach = self.low > 0.0 && !self.is_wide();
        Finding::new(code)
            .with("mean", Value::words(rate(self.mean)))
            .with_some("reach", is_reach.then(|| Value::words(self.reach())))
            .with("range", Value::words(self.range(" and ")))
            .with("visits", u64::from(self.visits))
    }

    /// That stalls make the rate uncertain, if they do.
    pub(crate) fn stalls(&self) -> Option<Finding> {
        let found = self.standstills?;
        Some(
            Finding::new(Code::StallsOfFewVisits)
                .with("stalls", u64::from(found.times))
                .with("visits", self.values.len())
                .with("longest", Number::ns(found.longest_ns))
                .with("share", Number::share(found.share))
                .with("range", Value::words(self.range(" and "))),
        )
    }

    /// Which visits differ from the others, if any do.
    pub(crate) fn outlier(&self) -> Option<Finding> {
        let visits = self.outliers.iter().filter_map(|&position| {
            let value = *self.values.get(position as usize)?;
            Some(format!("visit {} ({})", position + 1, rate(value)))
        });
        let visits: Vec<String> = visits.collect();
        let code = match visits.len() {
            0 => return None,
            1 => Code::VisitOutlier,
            _ if !self.recurring => Code::VisitsWithStalls,
            // As a change that came once does it, and nothing that comes and goes.
            _ if self.is_at_an_end() => Code::VisitsChanged,
            _ => Code::VisitsOfTwoStates,
        };
        let others = self.mean_without_flagged;
        let words = |rated: f64| Value::words(rate(rated));
        let found = Finding::new(code)
            .with("n", visits.len())
            .with("visits", self.values.len())
            .with("which", Value::words(visits.join(", ")))
            .with("faster", others.is_some_and(|others| others < self.mean))
            .with("first", self.outliers.first() == Some(&0))
            .with("mean", words(self.mean));
        Some(found.with_some("others", others.map(words)))
    }

    /// Whether those that lie apart are the first visits, or the last, and no others.
    fn is_at_an_end(&self) -> bool {
        let last = self.values.len().saturating_sub(self.outliers.len());
        let from = |start: usize| {
            self.outliers.iter().zip(start..).all(|(&position, place)| position as usize == place)
        };
        from(0) || from(last)
    }

    fn is_of_few(&self) -> bool {
        self.ends_share.is_some_and(|share| share >= crate::ends::SHARE_MIN)
    }

    fn no_stall(&self) -> Option<Finding> {
        let every = 3600.0 / self.stalls_per_hour_max.filter(|&bound| bound > 0.0)?;
        let measured = Number::ns(self.measured_ns);
        let found = Finding::new(Code::StallsExcluded).with("measured", measured);
        Some(found.with("every", Number::seconds(every)))
    }
}

/// Rates one after the other; of many the first and the last ones.
fn in_order(values: &[f64]) -> String {
    const ALL: usize = 24;
    const ENDS: usize = 8;
    let told = |values: &[f64]| values.iter().map(|&v| rate(v)).collect::<Vec<_>>().join(", ");
    match values.len() {
        n if n <= ALL => told(values),
        n => format!(
            "{}, {} more (`--json` has them), {}",
            told(&values[..ENDS]),
            n - 2 * ENDS,
            told(&values[n - ENDS..])
        ),
    }
}

/// A rate with three significant digits: `63.1 K`.
fn rate(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 999.5e6 => (value / 1e9, " G"),
        size if size >= 999.5e3 => (value / 1e6, " M"),
        size if size >= 999.5 => (value / 1e3, " K"),
        size if size < 0.005 => return "0".to_owned(),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use record::{Bitmap, CellRecord, OpRecord, Run, Series, SeriesRow, TargetKind, VisitRecord};
    use stats::LatencyHistogram;

    use super::*;
    use crate::freeze::tests as fixture;

    /// A visit of `rates.len()` tenths of a second.
    fn visit(cell: u32, repeat: u32, rates: &[u64]) -> VisitRecord {
        let milliseconds = rates.len() as u64 * 100;
        let mut completions = Bitmap::zeros(milliseconds);
        (0..milliseconds)
            .filter(|ms| rates[*ms as usize / 100] > 0)
            .for_each(|ms| completions.set(ms));
        let rows = rates.iter().map(|&requests| SeriesRow { requests, ..Default::default() });
        let mut made = fixture::visit(0, "read", &[]);
        let stream = &mut made.streams[0];
        stream.workers.clear();
        stream.ops[0] = OpRecord {
            requests: rates.iter().sum(),
            bytes: 0,
            latency: LatencyHistogram::new(),
            latency_ns_min: 0,
            latency_ns_max: 0,
            latency_ns_sum: 0,
            series: Series { interval_ns: 100_000_000, rows: rows.collect() },
            ..stream.ops[0].clone()
        };
        VisitRecord { cell, repeat, elapsed_ns: milliseconds * 1_000_000, completions, ..made }
    }

    /// A run with these visits; cells of one phase, as many as they name.
    fn run(visits: Vec<VisitRecord>) -> Run {
        let last = visits.iter().map(|visit| visit.cell).max().unwrap_or(0);
        let mut made = fixture::run(TargetKind::Twin, visits);
        let first = CellRecord { streams: vec![], ..made.cells[0].clone() };
        made.cells = (0..=last).map(|index| CellRecord { index, ..first.clone() }).collect();
        made
    }

    /// Visits of 2 s of one cell.
    fn steady(cell: u32, per_tenth: &[u64]) -> Vec<VisitRecord> {
        (0u32..).zip(per_tenth).map(|(repeat, &n)| visit(cell, repeat, &[n; 20])).collect()
    }

    fn first(visits: Vec<VisitRecord>) -> Option<CellInterval> {
        cells(&View::new(&run(visits))).swap_remove(0)
    }

    #[test]
    fn close_visits_of_lasting_noise_know_less() {
        // The same visits, 2.5 s from start to start and five minutes.
        let every = |seconds: f64| {
            let visits = (0..4u32).map(|repeat| {
                let at = |row: u32| 2.5 * f64::from(repeat) + 0.1 * f64::from(row);
                let rate = |row: u32| (1e4 * (1.0 + 0.05 * at(row).sin())) as u64;
                let mut visit = visit(0, repeat, &(0..20).map(rate).collect::<Vec<_>>());
                visit.started_unix_ns = (f64::from(repeat) * seconds * 1e9) as i64;
                visit
            });
            let run = run(visits.collect());
            let view = View::new(&run);
            let found = cells(&view)[0].clone().unwrap();
            let alone = plain(&view.cells[0].ln_rates(), CONFIDENCE).unwrap();
            (found.half_width, alone.relative())
        };
        let (far, alone) = every(300.0);
        assert!((far - alone).abs() < 1e-9, "far apart: {far}, by Student's t {alone}");
        let (close, alone) = every(2.5);
        assert!(close > 1.1 * alone, "close: {close}, by Student's t {alone}");
    }

    /// Visits of 1 s in turns of so many cells, of noise that lasts 5 s.
    fn lasting(cells: u32, random: &mut stats::Random) -> Vec<VisitRecord> {
        let keeps = (-0.1_f64 / 5.0).exp();
        let mut state = random.normal();
        let mut pass = || {
            state = keeps * state + (1.0 - keeps * keeps).sqrt() * random.normal();
            (1e3 * (0.2 * state).exp()) as u64
        };
        let mut make = |order: u32| {
            let rates: Vec<u64> = (0..10).map(|_| pass()).collect();
            let mut visit = visit(order % cells, order / cells, &rates);
            (visit.order, visit.started_unix_ns) = (order, i64::from(order) * 1_000_000_000);
            visit
        };
        (0..10 * cells).map(&mut make).collect()
    }

    #[test]
    fn a_comparison_is_no_surer_than_what_it_compares() {
        use crate::compare::{Terms, Verdict, compare};
        let mut random = stats::Random::new(11);
        for cells in [1, 2] {
            let different = (0..20).filter(|_| {
                let [a, b] = [(); 2].map(|()| run(lasting(cells, &mut random)));
                let found = compare(&[View::new(&a), View::new(&b)], &Terms::default());
                found.against[0].verdict == Verdict::Different
            });
            let different = different.count();
            assert!(different <= 1, "one device twice, {cells} cells: {different} of 20 differ");
        }
    }

    #[test]
    fn the_study_is_told_in_full() {
        let found = first(steady(0, &[317, 761, 838, 763, 752])).unwrap();
        assert_eq!(found.outliers, [0]);
        assert!(found.outliers_judged && !found.recurring);
        assert!((found.mean_without_flagged.unwrap() / 7778.0 - 1.0).abs() < 0.001);
        insta::assert_snapshot!(finding::texts(&found.findings()).join("\n"), @"
        6.50 K requests/s: 95 % confidence interval between 3.94 K and 10.7 K, from 5 visits spread over the run.
        One of 5 visits is an outlier: visit 1 (3.17 K). The mean is 6.50 K with it and 7.78 K without. It is included in the mean. Look for a stall, a host stall or other load in that visit, and repeat it.
        The visits, in the order made: 3.17 K, 7.61 K, 8.38 K, 7.63 K, 7.52 K; their median is 7.61 K.
        No stall of 100 ms or more in 10 s of measuring: one every 3.34 s or rarer could still have been missed.
        ");
    }

    #[test]
    fn ends_in_other_units_each_have_theirs() {
        let of = |low: f64, high: f64| {
            let found = first(steady(0, &[317, 761, 838, 763, 752])).unwrap();
            CellInterval { low, high, ..found }.ends()
        };
        assert_eq!(of(52.3, 59_500.0), "52.3 requests/s to 59.5 K requests/s");
        assert_eq!(of(3_940.0, 10_700.0), "3.94 K to 10.7 K requests/s");
    }

    #[test]
    fn a_grid_narrows_what_three_visits_leave_wide() {
        let noisy = |cell: u32| steady(cell, &[400 + u64::from(cell), 408, 392]);
        let grid: Vec<VisitRecord> = (0..12).flat_map(noisy).collect();
        let all = cells(&View::new(&run(grid)));
        let alone = first(noisy(0)).unwrap();
        let pooled = all[0].clone().unwrap();
        assert!(pooled.half_width < 0.75 * alone.half_width, "{pooled:?} {alone:?}");
        assert!(pooled.outliers_judged && !alone.outliers_judged);
        insta::assert_snapshot!(finding::texts(&pooled.findings()).join("\n"), @"
        4.00 K requests/s +-3.6 %: 95 % confidence interval between 3.86 K and 4.14 K, from 3 visits spread over the run.
        The visits, in the order made: 4.00 K, 4.08 K, 3.92 K; their median is 4.00 K.
        No stall of 100 ms or more in 6 s of measuring: one every 2 s or rarer could still have been missed.
        ");
        insta::assert_snapshot!(finding::texts(&alone.findings()).join("\n"), @"
        4.00 K requests/s +-5.1 %: 95 % confidence interval between 3.81 K and 4.20 K, from 3 visits spread over the run.
        3 visits cannot identify an outlier, so there may be one.
        The visits, in the order made: 4.00 K, 4.08 K, 3.92 K; their median is 4.00 K.
        No stall of 100 ms or more in 6 s of measuring: one every 2 s or rarer could still have been missed.
        ");
    }

    #[test]
    fn few_requests_for_so_many_in_flight_are_no_sure_rate() {
        // 200 requests a visit: of 40 in flight, of 4, of 40 slots that mostly wait.
        let with = |in_flight: u64, slots: u32| {
            let mut visits = steady(0, &[10, 10, 10]);
            for visit in &mut visits {
                visit.streams[0].ops[0].latency_ns_sum =
                    u128::from(in_flight) * u128::from(visit.elapsed_ns);
            }
            let mut run = run(visits);
            run.cells[0].streams = vec![record::StreamPlan {
                name: "s".into(),
                op: "read".into(),
                block_bytes: Some(4096),
                threads: slots,
                queue_depth: 1,
            }];
            let view = View::new(&run);
            let marks = crate::Findings::of(&view).marks(&view);
            let mark = marks.into_iter().find(|mark| mark.code.name() == "few-requests");
            (cells(&view).swap_remove(0).unwrap(), mark)
        };
        let (found, mark) = with(34, 40);
        assert_eq!(found.ends_share, Some(0.2));
        assert!(found.low < 80.1 && found.high > 119.9 && found.half_width > 0.199, "{found:?}");
        assert_eq!(
            mark.unwrap().evidence,
            "a visit has 200 requests with 40 in flight: its start and end may make the rate wrong \
             by up to 20 %; longer visits help (--set time=...)"
        );
        for (found, mark) in [with(1, 1), with(1, 40)] {
            assert_eq!((found.ends_share, mark), (None, None));
            assert!(found.low > 95.0 && found.high < 105.0, "{found:?}");
        }
        // Less than is worth a mark is in the interval all the same.
        let (found, mark) = with(4, 4);
        assert_eq!((found.ends_share, mark), (Some(0.02), None));
        assert!(found.low < 98.1 && found.high > 101.9, "{found:?}");
    }

    #[test]
    fn one_at_a_time_is_too_high_and_needs_no_interval_for_its_mark() {
        let mut visit = visit(0, 0, &[5, 5]);
        visit.streams[0].ops[0].latency_ns_sum = u128::from(visit.elapsed_ns);
        visit.ramp_ns = 1;
        let mut run = run(vec![visit]);
        run.cells[0].streams = vec![record::StreamPlan {
            name: "s".into(),
            op: "read".into(),
            block_bytes: Some(4096),
            threads: 1,
            queue_depth: 1,
        }];
        let view = View::new(&run);
        assert_eq!(cells(&view), [None], "too short for an interval");
        let marks = crate::Findings::of(&view).marks(&view);
        let mark = marks.iter().find(|mark| mark.code.name() == "few-requests").unwrap();
        assert!(mark.evidence.contains("may make the rate too high by up to 10 %"), "{mark:?}");
    }

    #[test]
    fn what_comes_back_is_a_mixture() {
        let mut grid: Vec<VisitRecord> =
            (1..20).flat_map(|cell| steady(cell, &[400, 404, 397])).collect();
        grid.extend(steady(0, &[400, 401, 200, 399, 201]));
        let found = first(grid).unwrap();
        assert_eq!(found.outliers, [2, 4]);
        assert!(found.recurring);
        insta::assert_snapshot!(found.findings()[1].text(), @"2 of 5 visits differ from the others: visit 3 (2.00 K), visit 5 (2.01 K). The mean is 3.03 K with them and 4.00 K without. Values that recur are not outliers: the storage works in two states, and the mean describes neither.");
    }

    #[test]
    fn visits_apart_at_one_end_may_be_one_change() {
        let of = |counts: &[u64]| {
            let mut grid: Vec<VisitRecord> =
                (1..20).flat_map(|cell| steady(cell, &[400, 404, 397])).collect();
            grid.extend(steady(0, counts));
            first(grid).unwrap().outlier().unwrap().text()
        };
        let said = of(&[400, 401, 398, 200, 201]);
        assert!(said.starts_with("The last 2 of 5 visits differ from the others"), "{said}");
        assert!(
            said.ends_with("so the rate may have changed once; the mean describes neither level.")
        );
        let said = of(&[200, 201, 400, 401, 398]);
        assert!(said.starts_with("The first 2 of 5 visits"), "{said}");
        assert!(of(&[400, 200, 201, 401, 398]).contains("Values that recur"));
    }

    /// Visits of ten seconds, 1,000 a second, of which each stood still for so many of them.
    fn standing(seconds: &[u64]) -> record::Run {
        use crate::freeze::tests::{MS, run, visit};
        let visits = (0u32..).zip(seconds).map(|(order, &length)| {
            let silent = [(2_000, length * 1_000)];
            let mut made = visit(order, "read", if length > 0 { &silent } else { &[] });
            made.streams[0].ops[0].latency_ns_max = (length * 1_000 + 1) * MS;
            made
        });
        run(TargetKind::File, visits.collect())
    }

    fn first_of(run: &record::Run) -> CellInterval {
        cells(&View::new(run)).swap_remove(0).unwrap()
    }

    #[test]
    fn two_visits_that_stood_still_say_little_of_how_often() {
        let found = first_of(&standing(&[8, 8]));
        let standstills = found.standstills.unwrap();
        assert_eq!((standstills.times, standstills.longest_ns / 1_000_000_000), (2, 8));
        // Between 0.24 and 7.2 in four seconds of running.
        assert!((found.high / 674.0 - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.low / 65.0 - 1.0).abs() < 0.05 && found.half_width > 2.0, "{found:?}");
        let said = found.findings()[1].text();
        let wanted = "2 stalls in 2 visits, the longest 8 s, took 80 % of the measured time.";
        assert!(said.starts_with(wanted), "{said}");
        let short = first_of(&standing(&[1, 0, 1]));
        assert_eq!(short.standstills, None, "how much visits differ tells that");
        assert_eq!(first_of(&standing(&[0, 0])).standstills, None);
    }

    #[test]
    fn what_stood_still_throughout_is_not_known() {
        // One request came back of a visit that a full cache held up, or a few before it was full.
        let mut run = standing(&[9, 9]);
        assert!(first_of(&run).standstills.is_some(), "a tenth of the time tells a rate");
        for visit in &mut run.visits {
            *visit = VisitRecord {
                cell: 0,
                repeat: visit.repeat,
                ..crate::freeze::tests::visit(visit.order, "read", &[(500, 9_500)])
            };
            visit.streams[0].ops[0].latency_ns_max = 9_501_000_000;
        }
        let view = View::new(&run);
        assert_eq!(cells(&view)[0], None, "the same in each visit, and says nothing");
        let context = crate::explanation::Context::default();
        let told = crate::explanation::Explanation::of(&[view], &context);
        let said = told.runs[0].sections.iter().flat_map(|section| section.sentences());
        let said = said.collect::<Vec<_>>().join("\n");
        assert!(said.contains("The rate of `read` is unknown"), "{said}");
        assert!(said.contains("too little time between the stalls to tell a rate; 95 %"), "{said}");
        // One visit that ran is enough to know something.
        run.visits.push(VisitRecord { repeat: 2, ..crate::freeze::tests::visit(2, "read", &[]) });
        assert!(first_of(&run).high <= 1_050.0);
    }

    #[test]
    fn standstills_leave_no_more_open_than_what_ran_between_them() {
        // Logarithms of 1,000 and of 40 a second are far apart: by them alone 40 K were possible.
        let mut run = standing(&[0, 0, 9]);
        let op = &mut run.visits[2].streams[0].ops[0];
        op.requests = 1;
        let found = first_of(&run);
        let between = found.standstills.unwrap().between_max.unwrap();
        assert!((between / 1_000.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!(found.high <= between && found.high >= found.mean, "{found:?}");
        assert!(found.low < found.mean);
    }

    #[test]
    fn a_cell_that_stood_still_lends_its_neighbours_nothing() {
        let quiet = |cell: u32| {
            let of = move |repeat: u32| {
                let mut made = crate::freeze::tests::visit(repeat, "read", &[]);
                (made.cell, made.repeat, made.order) = (cell, repeat, cell * 3 + repeat);
                made
            };
            (0..3).map(of)
        };
        let mut run = standing(&[0, 0, 9]);
        let alone = first_of(&crate::freeze::tests::run(TargetKind::File, quiet(0).collect()));
        run.visits.extend(quiet(1));
        let template = run.cells[0].clone();
        run.cells = vec![template.clone(), CellRecord { index: 1, ..template }];
        let found = cells(&View::new(&run)).swap_remove(1).unwrap();
        assert!(found.half_width <= alone.half_width * 1.001, "{found:?} {alone:?}");
        assert!(found.half_width < 0.05, "{found:?}");
    }

    #[test]
    fn one_state_with_standstills_is_no_mixture() {
        let found = first_of(&standing(&[0, 0, 0, 6, 0, 0, 6, 0, 0, 0]));
        assert!(found.outliers.len() > 1 && !found.recurring, "{found:?}");
        let said = found.outlier().unwrap().text();
        assert!(said.contains("one state with stalls"), "{said}");
    }

    #[test]
    fn one_visit_speaks_for_itself_only() {
        let rates: Vec<u64> = (0..60).map(|i| 400 + (i * 7919) % 23).collect();
        let found = first(vec![visit(0, 0, &rates)]).unwrap();
        assert_eq!(found.basis, Basis::OneVisit);
        assert!(found.low < found.mean && found.mean < found.high && found.half_width < 0.02);
        insta::assert_snapshot!(finding::texts(&found.findings()).join("\n"), @"
        4.11 K requests/s +-0.4 % within one visit, between 4.09 K and 4.13 K. This excludes run-to-run variation, which is often larger; only more visits show it.
        No stall of 100 ms or more in 6 s of measuring: one every 2 s or rarer could still have been missed.
        ");
        assert_eq!(first(vec![visit(0, 0, &rates[..29])]), None, "too short");
    }

    #[test]
    fn a_visit_without_a_completion_lies_apart() {
        let found = first(steady(0, &[400, 0, 404, 398])).unwrap();
        assert_eq!((found.outliers.as_slice(), found.visits), ([1].as_slice(), 3));
        assert_eq!(found.stalls_per_hour_max, None);
        assert!((found.mean / 4006.7 - 1.0).abs() < 0.001);
    }

    #[test]
    fn odd_input_says_nothing() {
        assert_eq!(first(steady(0, &[0, 0, 0])), None);
        let huge = VisitRecord { elapsed_ns: u64::MAX, ..visit(0, 0, &[u64::MAX]) };
        assert_eq!(first(vec![huge]), None);
        assert!(cells(&View::new(&run(vec![]))).iter().all(Option::is_none));
        assert_eq!(first(vec![visit(0, 0, &[])]), None);
    }

    #[test]
    fn an_interval_down_to_nothing_is_told_as_no_factor() {
        let rates: Vec<u64> = (0..200).map(|at| if at < 100 { 100 } else { 0 }).collect();
        let found = first(vec![visit(0, 0, &rates)]).unwrap();
        assert!(found.low == 0.0 && found.half_width > 1.0, "{found:?}");
        let said = found.findings().remove(0).text();
        assert!(said.contains("requests/s within one visit, between 0 and"), "{said}");
        assert!(found.reach().starts_with("from 0 to "), "{}", found.reach());
    }

    #[test]
    fn of_many_visits_the_first_and_the_last_are_listed() {
        let all: Vec<f64> = (1..=24).map(f64::from).collect();
        assert_eq!(in_order(&all).split(", ").count(), 24);
        let many: Vec<f64> = (100..730).map(f64::from).collect();
        let said = in_order(&many);
        assert!(said.starts_with("100, 101") && said.ends_with("728, 729"), "{said}");
        assert!(said.contains("107, 614 more (`--json` has them), 722"), "{said}");
    }

    #[test]
    fn rates_keep_three_digits() {
        let cases = [(0.0, "0"), (9.999, "10.0"), (999.4, "999"), (999.6, "1.00 K")];
        for (value, text) in cases.into_iter().chain([(63_113.0, "63.1 K"), (1e6, "1.00 M")]) {
            assert_eq!(rate(value), text);
        }
    }
}
