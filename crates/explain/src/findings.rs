//! Everything that one run alone can tell, and the marks that follow from it.

use std::collections::BTreeMap;

use finding::Code;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bucket::{self, TokenBucket};
use crate::cache::{self, Caches};
use crate::converged::{self, Asked, NotConverged};
use crate::drift::{self, Drifts, Step};
use crate::ends::{FewRequests, ends};
use crate::freeze::{self, Freezes, Source};
use crate::gap::{self, Gaps, Kind};
use crate::halt::{self, Halts};
use crate::interval::{self, Basis, CellInterval, StreamInterval};
use crate::latency::overloads;
use crate::longest::{self, Longest};
use crate::mark::Mark;
use crate::places::Told;
use crate::steady::{self, SteadyStates, Verdict};
use crate::view::{CellView, View, is_preparation};
use crate::words::{iops, list, percent, seconds};

/// What was found in a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Findings {
    /// Per cell, in the order of the run's cells. Of a cell of several streams this is their sum,
    /// in which a slow one does not show: see `streams`.
    pub intervals: Vec<Option<CellInterval>>,
    /// Of cells of several streams, each stream by itself.
    pub streams: Vec<StreamInterval>,
    /// How many of all are not known as well as was asked for.
    pub not_converged: NotConverged,
    /// Of which nothing odd is told.
    pub few_requests: FewRequests,
    /// When nothing came back.
    pub freezes: Freezes,
    /// When nothing of a stream came back while others went on.
    pub halts: Halts,
    /// Single requests that took far longer than all others, and that neither of these covers.
    pub longest: Longest,
    /// Cells far below what their neighbours promise.
    pub gaps: Gaps,
    /// What caches have to do with it.
    pub caches: Caches,
    /// Budgets of the volume that were used up: no change of level nor write cliff is told of them.
    pub buckets: Vec<TokenBucket>,
    /// Changes of level and drift.
    pub drift: Drifts,
    /// Series of rounds, and write cliffs.
    pub steady: SteadyStates,
}

/// Collects marks in any order.
struct Marks(Vec<Mark>);

impl Findings {
    /// Looks at a run.
    pub fn of(view: &View<'_>) -> Self {
        let (freezes, halts) = (freeze::freezes(view), halt::halts(view));
        let (mut gaps, drift) = (gap::gaps(view), drift::drift(view));
        gaps.leave_to(&drift.falls(view));
        let (buckets, mut steady) = (bucket::buckets(view), steady::steady(view));
        steady.cliffs.retain(|cliff| buckets.iter().all(|bucket| bucket.cell != cliff.cell));
        Self {
            intervals: interval::cells(view),
            streams: interval::streams(view),
            few_requests: FewRequests::of(view),
            not_converged: converged::not_converged(view),
            longest: longest::longest(view, &freezes, &halts),
            freezes,
            halts,
            gaps,
            caches: cache::caches(view),
            buckets,
            drift,
            steady,
        }
    }

    /// The interval of a row of the view: of its cell, or of one stream of it.
    pub fn interval_of(&self, view: &View<'_>, row: &CellView<'_>) -> Option<&CellInterval> {
        let index = row.cell.index;
        let Some(position) = row.stream else {
            let place = view.cells.iter().position(|cell| cell.cell.index == index)?;
            return self.intervals.get(place)?.as_ref();
        };
        let of_stream = |s: &&StreamInterval| s.cell == index && s.position as usize == position;
        self.streams.iter().find(of_stream)?.interval.as_ref()
    }

    /// Reasons to look twice, by cell, in the order of [`Code::ALL`].
    pub fn marks(&self, view: &View<'_>) -> Vec<Mark> {
        let mut marks = Marks(Vec::new());
        marks.of_intervals(view, self);
        marks.of_freezes(&self.freezes);
        marks.of_halts(&self.halts);
        marks.of_gaps(view, &self.gaps);
        marks.of_caches(&self.caches);
        marks.of_drift(&self.drift);
        marks.of_steady(&self.steady);
        marks.of_generator(view);
        marks.of_overload(view);
        let mut marks = marks.0;
        marks.sort_by_key(|mark| (mark.cell, mark.code));
        marks
    }
}

impl Marks {
    fn add(&mut self, code: Code, cell: u32, evidence: impl Into<String>) {
        self.0.push(Mark::new(code, cell, evidence));
    }

    /// About one stream of a cell of several, or the only one.
    fn add_to(&mut self, row: &CellView<'_>, code: Code, evidence: impl Into<String>) {
        self.0.push(Mark::new(code, row.cell.index, evidence).of_stream(row.stream_name()));
    }

    fn of_intervals(&mut self, view: &View<'_>, findings: &Findings) {
        let asked = Asked::of(view);
        for row in &view.rows {
            let found = findings.interval_of(view, row);
            if let Some(found) = found {
                if found.basis == Basis::OneVisit {
                    self.add_to(row, Code::WithinOneVisit, "");
                }
                self.of_outliers(row, found);
            }
            if let Some(open) = asked.as_ref().and_then(|asked| asked.open(row, found)) {
                self.add_to(row, Code::NotConverged, open.evidence);
            }
            // Also where one short visit has no interval: nothing else says how sure it is.
            if let Some(found) = ends(row).filter(|_| !is_preparation(&row.cell.phase)) {
                self.add_to(row, Code::FewRequests, found.evidence());
            }
        }
    }

    fn of_outliers(&mut self, row: &CellView<'_>, found: &CellInterval) {
        // Where standstills make several visits lie apart, their mark says it.
        let by_standstills = found.outliers.len() > 1 && !found.recurring;
        if found.outliers.is_empty() || by_standstills {
            return;
        }
        let code = if found.recurring { Code::Mixture } else { Code::Outlier };
        let apart = found.outliers.iter().filter_map(|&k| found.values.get(k as usize));
        let apart: Vec<String> = apart.map(|&rate| iops(rate)).collect();
        let median = iops(found.median);
        let evidence = format!("{} against a median of {median} IOPS", list(&apart));
        self.add_to(row, code, evidence);
    }

    /// One mark a stream.
    fn of_halts(&mut self, found: &Halts) {
        let mut met: BTreeMap<(u32, &str), (u32, u64, u64)> = BTreeMap::new();
        for event in &found.events {
            let entry = met.entry((event.cell, event.stream.as_str())).or_default();
            entry.0 += 1;
            entry.1 = entry.1.max(event.length_ns);
            entry.2 = entry.2.saturating_add(event.length_ns);
        }
        for ((cell, stream), so_often) in met {
            let evidence = format!("{}, while other streams went on", times(so_often));
            self.0.push(Mark::new(Code::Stalled, cell, evidence).of_stream(Some(stream)));
        }
    }

    /// One mark a cell for the host's gaps and one for the others.
    fn of_freezes(&mut self, found: &Freezes) {
        let mut met: BTreeMap<(u32, bool), (u32, u64, u64)> = BTreeMap::new();
        for event in &found.events {
            let host = event.source == Source::Host;
            let entry = met.entry((event.cell, host)).or_default();
            entry.0 += 1;
            entry.1 = entry.1.max(event.length_ns);
            entry.2 = entry.2.saturating_add(event.length_ns);
        }
        for ((cell, host), so_often) in met {
            self.add(if host { Code::HostStalled } else { Code::Stalled }, cell, times(so_often));
        }
    }

    fn of_gaps(&mut self, view: &View<'_>, gaps: &Gaps) {
        // What stood still has a mark that says so.
        for flagged in gaps.flagged.iter().filter(|flagged| flagged.kind != Kind::StoodStill) {
            let is_it = |cell: &&CellView<'_>| {
                gap::group_of(cell).as_ref() == Some(&flagged.group)
                    && cell.load().is_some_and(|load| {
                        load.op == flagged.op
                            && load.block_bytes == flagged.block_bytes
                            && load.threads == flagged.threads
                            && load.in_flight == flagged.in_flight
                    })
            };
            let Some(cell) = view.grid().find(is_it) else { continue };
            let kind = match flagged.kind {
                Kind::Reproducible => "whenever visited: a property of the cell",
                Kind::Transient => "at one time only: something that happened then",
                Kind::Unconfirmed | Kind::StoodStill => {
                    "visited too rarely to tell a property from an event"
                }
            };
            let evidence = if flagged.missing {
                "nothing completed".to_owned()
            } else {
                let lost = match flagged.lost_ns {
                    // What another tool measured need not have a time.
                    0 => String::new(),
                    ns => format!("{} lost, ", seconds(ns as f64 / 1e9)),
                };
                let of = if flagged.by_neighbours { "the prediction" } else { "its other visits" };
                format!("{} of {of}, {lost}{kind}", percent(flagged.ratio))
            };
            self.add(Code::Gap, cell.cell.index, evidence);
        }
    }

    fn of_caches(&mut self, caches: &Caches) {
        for cell in &caches.cells {
            if let Some(code) = cell.verdict.mark() {
                self.add(code, cell.cell, cell.verdict.evidence());
            }
        }
    }

    fn of_drift(&mut self, drift: &Drifts) {
        let told = |steps: &[Step]| {
            let steps: Vec<String> = steps
                .iter()
                .map(|s| {
                    let (before, after) = (iops(s.before), iops(s.after));
                    format!("from {before} to {after} IOPS {}", s.when("at "))
                })
                .collect();
            drift::some_steps(&steps)
        };
        for visit in drift.visits.iter().filter(|visit| !visit.steps.is_empty()) {
            let evidence = format!("{} of visit {}", told(&visit.steps), visit.repeat + 1);
            let mark = Mark::new(Code::Drifting, visit.cell, evidence);
            self.0.push(mark.of_stream(visit.stream.as_deref()));
        }
        for cell in &drift.cells {
            let evidence = format!("{} of the run", told(&cell.steps));
            let mark = Mark::new(Code::Drifting, cell.cell, evidence);
            self.0.push(mark.of_stream(cell.stream.as_deref()));
        }
    }

    fn of_steady(&mut self, steady: &SteadyStates) {
        for series in steady.series.iter().filter(|s| s.asked && s.verdict != Verdict::Steady) {
            let why = series.finding().text();
            for &cell in &series.decides_for {
                // Where one cell decides for a grid, what its streams are called says nothing of
                // the other cells.
                let own = series.stream.as_deref().filter(|_| series.cell == cell);
                self.0.push(Mark::new(Code::NotSteady, cell, why.clone()).of_stream(own));
            }
        }
    }

    /// Visits that are short end before the generator calls them overloaded.
    fn of_overload(&mut self, view: &View<'_>) {
        let told = Told::new(view.run);
        // What a visit says itself is a mark already.
        let warned =
            |row: &CellView<'_>| row.visits.iter().any(|v| row.warned_of_overload(v).is_some());
        for row in view.rows.iter().filter(|row| row.is_overloaded() && !warned(row)) {
            let texts = overloads(row, &told);
            self.add_to(row, Code::Overloaded, texts.into_iter().next().unwrap_or_default());
        }
    }

    /// Whether the workers' own processors were busy all the time.
    fn of_generator(&mut self, view: &View<'_>) {
        for cell in view.grid() {
            let busy = cell.visits.iter().filter_map(|visit| busiest(visit.visit));
            let busy = busy.fold(0.0, f64::max);
            if busy > GENERATOR_BUSY {
                let evidence =
                    format!("a worker was on its processor {} of the time", percent(busy));
                self.add(Code::GeneratorLimited, cell.cell.index, evidence);
            }
        }
    }
}

/// How often, for how long at most, and in all.
fn times((times, longest, all): (u32, u64, u64)) -> String {
    let longest = seconds(longest as f64 / 1e9);
    match times {
        1 => format!("once, for {longest}"),
        _ => format!("{times} times, {longest} at most, {} in all", seconds(all as f64 / 1e9)),
    }
}

/// A worker that is on its processor for more of the time than this waits for nobody else.
const GENERATOR_BUSY: f64 = 0.90;

/// The largest share of the measured time that a worker's thread was running, in user and system
/// mode together. `None` where it is not known.
fn busiest(visit: &record::VisitRecord) -> Option<f64> {
    let workers = visit.streams.iter().flat_map(|stream| &stream.workers);
    let shares = workers.filter_map(|worker| {
        let used = worker.cpu_user_ns?.saturating_add(worker.cpu_system_ns?);
        (visit.rated_ns() > 0).then(|| used as f64 / visit.rated_ns() as f64)
    });
    shares.reduce(f64::max)
}
