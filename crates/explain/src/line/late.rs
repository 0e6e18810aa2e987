//! What visits at a load say of a service level: requests that were due, and late ones among them.

use plan::ladder::{Allowed, Ladder, Load, PIECE, Seen, Step, StepOf, WITHIN_MAX};
use record::{CellRecord, OpRecord, Run, Series, SeriesRow, StreamRecord, VisitEnd, VisitRecord};
use stats::LatencyHistogram;
use stats::histogram::{bucket_bounds, bucket_of};
use suite::Limit;
use suite::model::{Operation, Pacing, Suite};
use units::Nanos;

use crate::view::whole;

/// The axis of cells that were played at a load.
pub const LOAD: &str = "load";
/// The phase of the visit that holds one.
pub const HOLD: &str = "hold";
/// The grain of the map of completions.
const MILLISECOND: u64 = 1_000_000;
/// Random arrivals leave one gap in ten million longer than so many mean ones.
const CHANCE_GAPS: u64 = 16;
/// Of more a second some come back in every piece of a hold, whatever chance does.
const CHANCE_PER_SECOND: f64 = 8.0;
/// So many visits in a row are made again; the next one counts, whatever froze.
const FROZEN_MAX: u32 = 3;
/// Where latency falls to so little of it while the load stays, something before made it high.
const WORKED_OFF: f64 = 0.7;
/// Fine buckets in a bucket of a series.
const FOLD: usize = 16;

/// A limit as it is held against one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamLimit {
    /// The stream's place in its cell.
    pub stream: usize,
    /// Its name.
    pub name: String,
    /// The operation that is to be in time.
    pub op: &'static str,
    /// What it has to keep.
    pub limit: Limit,
    /// Requests by transaction.
    pub requests: f64,
}

/// A mix, and the level that it is held against.
#[derive(Clone, Debug, PartialEq)]
pub struct MixTerms {
    /// Every limit of every stream that it is for.
    pub limits: Vec<StreamLimit>,
    /// By stream its name and its requests by transaction: of the first one there is one.
    pub streams: Vec<(String, f64)>,
    /// The rate of transactions that the suite itself asks for.
    pub base: f64,
}

impl MixTerms {
    /// Of a suite with one cell, all of whose level's streams have rates.
    ///
    /// An error, as words, where it has no level, or one for a stream that it has not.
    pub fn of(suite: &Suite) -> Result<Self, String> {
        let Some(level) = &suite.level else { return Err("it has no level".to_owned()) };
        let Some(cell) = suite.cells().next() else { return Err("it has no cell".to_owned()) };
        let rate = |stream: &suite::model::Stream| match stream.pacing {
            Pacing::Open { rate, .. } => Some(rate),
            Pacing::Closed { .. } => None,
        };
        let Some(base) = cell.streams.iter().find_map(rate) else {
            return Err("none of its streams has a rate".to_owned());
        };
        let mut limits = Vec::new();
        for limit in &level.limits {
            let before = limits.len();
            for (stream, plan) in cell.streams.iter().enumerate() {
                let op = plan.mix.classes.iter().map(|class| class.op).find(|op| {
                    matches!(op, Operation::Commit | Operation::Read) || limit.stream.is_some()
                });
                let (Some(op), Some(rate)) = (op, rate(plan)) else { continue };
                if limit.within > WITHIN_MAX {
                    return Err(format!(
                        "{limit} is too long for its visits, which tell up to {WITHIN_MAX}"
                    ));
                }
                if limit.stream.as_ref().is_none_or(|name| *name == plan.name) {
                    let (name, limit) = (plan.name.clone(), limit.clone());
                    let requests = rate / base;
                    limits.push(StreamLimit { stream, name, op: op.name(), limit, requests });
                }
            }
            if limits.len() == before {
                let names = cell.streams.iter().map(|plan| plan.name.clone()).collect::<Vec<_>>();
                let names = finding::numbers::list(&names);
                let name = limit.stream.as_deref().unwrap_or("reads");
                return Err(format!("it has no stream `{name}`, only {names}"));
            }
        }
        let streams = cell.streams.iter().filter_map(|s| Some((s.name.clone(), rate(s)? / base)));
        Ok(Self { limits, streams: streams.collect(), base })
    }

    /// What the ladder needs to know of the limits.
    pub fn bounds(&self) -> Vec<Allowed> {
        let bound = |one: &StreamLimit| Allowed {
            allowance: one.limit.allowance(),
            requests: one.requests,
            within: one.limit.within,
        };
        self.limits.iter().map(bound).collect()
    }

    /// What a visit saw.
    ///
    /// * `time`: how long it was to be.
    pub fn seen(&self, visit: &VisitRecord, load: Load, time: Nanos) -> Seen {
        let count = |one: &StreamLimit| {
            let (due, late) = one.count(visit, load, time);
            (due as f64, late as f64)
        };
        let growth = self.limits.iter().filter_map(|one| one.growth(visit, time));
        let growth = growth.fold(0.0, f64::max);
        Seen { counts: self.limits.iter().map(count).collect(), growth }
    }

    /// Whether a freeze made requests of a visit late.
    pub(super) fn is_frozen(&self, visit: &VisitRecord) -> bool {
        self.limits.iter().any(|one| one.is_frozen(visit))
    }

    /// Of each piece of a hold by limit whether it was over. Pieces that were not played since the
    /// load had to be taken away are over, and those in which nothing came back though much was due.
    pub fn pieces(&self, visit: &VisitRecord, load: Load, time: Nanos) -> Vec<bool> {
        let count = (time.get() / PIECE.get()) as usize;
        let over = |piece: usize| {
            self.limits.iter().any(|one| {
                let series = one.series(visit);
                let (due, late) = series.map_or((0.0, 0.0), |series| one.piece(series, piece));
                let is_none = due == 0.0 && load.per_second() * one.requests > CHANCE_PER_SECOND;
                is_none || late > one.limit.allowance() * due
            })
        };
        (0..count).map(over).collect()
    }
}

impl StreamLimit {
    /// `commits p99 5 ms`.
    pub fn text(&self) -> String {
        format!("{} {}", self.name, self.limit)
    }

    fn op<'a>(&self, visit: &'a VisitRecord) -> Option<(&'a StreamRecord, &'a OpRecord)> {
        let stream = visit.streams.get(self.stream)?;
        Some((stream, stream.ops.iter().find(|op| op.op == self.op)?))
    }

    /// Latencies from the moment when requests were due.
    pub(super) fn latency<'a>(&self, visit: &'a VisitRecord) -> Option<&'a LatencyHistogram> {
        self.op(visit).map(|(_, op)| &op.latency)
    }

    /// The late share in a piece of a hold; `None` where nothing came back.
    pub(super) fn share(&self, visit: &VisitRecord, piece: usize) -> Option<f64> {
        let (due, late) = self.piece(self.series(visit)?, piece);
        (due > 0.0).then_some(late / due)
    }

    fn series<'a>(&self, visit: &'a VisitRecord) -> Option<&'a Series> {
        self.op(visit).map(|(_, op)| &op.series)
    }

    /// Requests that were due, and the late ones: over the limit, failed, short, not issued by the
    /// end; of a visit that ended early also what was due until its planned end.
    pub fn count(&self, visit: &VisitRecord, load: Load, time: Nanos) -> (u64, u64) {
        let cut = visit.load_ns.map_or(Nanos::ZERO, |ran| time.saturating_sub(Nanos::new(ran)));
        // The measured part begins with a completion, which is a little later than planned.
        let cut = if cut.get() > time.get() / 20 { cut } else { Nanos::ZERO };
        let rate = load.per_second() * self.requests;
        let never = (cut.as_secs_f64() * rate) as u64;
        // What was due for less than the limit when the visit ended might have been in time.
        let young = (self.limit.within.as_secs_f64() * rate).ceil() as u64;
        let backlog = visit.streams.get(self.stream).map_or(0, |stream| stream.backlog);
        let backlog = backlog.saturating_sub(young);
        let Some((_, op)) = self.op(visit) else {
            let due = backlog.saturating_add(never).max(1);
            return (due, due);
        };
        let failed = op.errors.iter().fold(op.short, |sum, (_, n)| sum.saturating_add(*n));
        let bad = failed.saturating_add(backlog).saturating_add(never);
        let late = over(&op.latency, self.limit.within);
        (op.requests.saturating_add(bad), late.saturating_add(bad))
    }

    /// Times of a visit, from and to in ms, in which nothing came back though requests arrived: for
    /// longer than the limit and than what the level allows to be late in the visit, than chance
    /// leaves between arrivals, and than ten times what this stream's fastest requests take.
    pub(super) fn freezes(&self, visit: &VisitRecord) -> Vec<(u64, u64)> {
        let Some((_, op)) = self.op(visit) else { return Vec::new() };
        let ms = visit.load_ns.unwrap_or(visit.elapsed_ns) / MILLISECOND;
        let done: u64 =
            visit.streams.iter().flat_map(|s| whole(&s.ops)).map(|op| op.requests).sum();
        let chance = CHANCE_GAPS.saturating_mul(ms) / done.max(1);
        let usual =
            op.latency.quantile_with(0.01, 1).map_or(0, |fast| 10 * fast.get() / MILLISECOND);
        // A shorter one alone breaks no level: such are the device's usual ways.
        let felt = (self.limit.allowance() * ms as f64) as u64;
        let least = (self.limit.within.get() / MILLISECOND).max(chance).max(usual).max(felt) + 1;
        let runs = visit.completions.zero_runs(least).into_iter();
        let runs = runs.map(|(from, length)| (from, (from + length).min(ms)));
        runs.filter(|(from, to)| from + least <= *to).collect()
    }

    /// Whether a freeze made requests of a visit late: one in it, or one before it, after which they
    /// were late at the start and less so at the end.
    pub(super) fn is_frozen(&self, visit: &VisitRecord) -> bool {
        let limit = self.limit.within.get() as f64;
        let time = Nanos::new(visit.load_ns.unwrap_or(visit.elapsed_ns));
        let quarters = self.quarters(visit, time);
        let worked_off = quarters.is_some_and(|(a, b)| a >= limit && b < WORKED_OFF * a);
        worked_off || !self.freezes(visit).is_empty()
    }

    /// How much later requests came back in the last quarter than in the first, as a share of the
    /// time between.
    fn growth(&self, visit: &VisitRecord, time: Nanos) -> Option<f64> {
        let (first, last) = self.quarters(visit, time)?;
        Some((last - first) / (0.75 * time.get() as f64))
    }

    /// Mean latency in the first and the last quarter of the time, ns.
    fn quarters(&self, visit: &VisitRecord, time: Nanos) -> Option<(f64, f64)> {
        let series = self.series(visit)?;
        let whole = (time.get() / series.interval_ns.max(1)) as usize;
        let rows = series.rows.get(..whole.min(series.rows.len()))?;
        let quarter = (rows.len() / 4).max(1);
        Some((mean_ns(rows.get(..quarter)?)?, mean_ns(rows.get(rows.len() - quarter..)?)?))
    }

    /// Requests that came back in a piece of a hold, and the late ones by the series' buckets.
    fn piece(&self, series: &Series, piece: usize) -> (f64, f64) {
        let each = (PIECE.get() / series.interval_ns.max(1)).max(1) as usize;
        let within = self.limit.within.get() as f64;
        let rows = series.rows.iter().skip(piece * each).take(each).flat_map(|row| &row.tail);
        rows.fold((0.0, 0.0), |(due, late), (bucket, count)| {
            let (low, high) = span(*bucket);
            let above = ((high - within) / (high - low).max(1.0)).clamp(0.0, 1.0);
            (due + *count as f64, late + above * *count as f64)
        })
    }
}

/// Mean latency of rows.
fn mean_ns<'a>(rows: impl IntoIterator<Item = &'a SeriesRow>) -> Option<f64> {
    let tails = rows.into_iter().flat_map(|row| &row.tail);
    let (n, sum) = tails.fold((0.0, 0.0), |(n, sum), (bucket, count)| {
        let (low, high) = span(*bucket);
        (n + *count as f64, sum + (low + high) / 2.0 * *count as f64)
    });
    (n > 0.0).then_some(sum / n)
}

/// Bounds of a bucket of a series, in ns.
fn span(bucket: u16) -> (f64, f64) {
    let first = usize::from(bucket) * FOLD;
    (bucket_bounds(first).0 as f64, bucket_bounds(first + FOLD - 1).1 as f64 + 1.0)
}

/// How many were in a bucket above that of the limit: a limit is kept to 1/128.
fn over(latency: &LatencyHistogram, limit: Nanos) -> u64 {
    latency.buckets().iter().skip(bucket_of(limit) + 1).sum()
}

/// The load that a cell was played at, if it was.
pub fn load_of(cell: &CellRecord) -> Option<Load> {
    let (_, text) = cell.coordinates.iter().find(|(axis, _)| axis == LOAD)?;
    text.parse().ok().and_then(Load::new)
}

/// Whether the run looked for a load line.
pub fn looks_for_line(run: &Run) -> bool {
    run.cells.iter().any(|cell| load_of(cell).is_some())
}

/// Whether a visit counts.
pub const fn counts(visit: &VisitRecord) -> bool {
    matches!(visit.end, VisitEnd::Complete | VisitEnd::Hanging)
}

/// The way to a line, visit by visit. One with a freeze is made again: freezes come at any rate, so
/// they are told apart from it.
#[derive(Clone, Debug)]
pub struct Climb {
    /// The mix.
    pub terms: MixTerms,
    /// Which rate comes next.
    pub ladder: Ladder,
    /// Visits with a freeze in a row.
    frozen: u32,
}

impl Climb {
    /// From the foot of a ladder.
    pub const fn new(terms: MixTerms, ladder: Ladder) -> Self {
        Self { terms, ladder, frozen: 0 }
    }

    /// What the visit that came next saw.
    pub fn add(&mut self, visit: &VisitRecord, step: Step) {
        let is_frozen = step.of != StepOf::Hold && self.terms.is_frozen(visit);
        if is_frozen && self.frozen < FROZEN_MAX {
            self.frozen += 1;
            return self.ladder.again();
        }
        self.frozen = 0;
        self.ladder.add(&self.terms.seen(visit, step.load, step.time));
    }
}

/// The ladder as it stood after the visits of a stored run.
pub fn replayed(run: &Run, terms: &MixTerms) -> Ladder {
    let ladder = Ladder::new(terms.bounds(), run.header.seed, Nanos::ZERO);
    let mut climb = Climb::new(terms.clone(), ladder);
    for visit in run.visits.iter().filter(|visit| counts(visit)) {
        let cell = run.cells.iter().find(|cell| cell.index == visit.cell && cell.phase != HOLD);
        let (Some(load), Some(step)) = (cell.and_then(load_of), climb.ladder.next()) else {
            continue;
        };
        if step.load == load {
            climb.add(visit, step);
        }
    }
    climb.ladder
}
