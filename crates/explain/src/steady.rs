//! Whether a drive came to rest before it was measured, and what is not excluded.

mod cliff;

use finding::{Code, Finding, Number, Subject};
use record::{Purpose, TargetKind, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::steady::{self, SNIA_ROUNDS, Volume};
use stats::trend::{student_slope, theil_sen};
use units::Bytes;

pub use self::cliff::{NoCliff, WriteCliff};
use crate::drift::{Slope, written_bytes};
use crate::view::{CellView, View, VisitView};

const CONFIDENCE: f64 = 0.95;
const GIB: u64 = 1 << 30;
/// Up to so many rounds chance is taken to be normal.
const FEW_ROUNDS: usize = 9;
/// What a window shows is told of no more than so many times what was written in it.
const PACE_MAX: f64 = 10.0;
/// A range is all of a device but for what a file system or a reserve takes.
const WHOLE_DEVICE: f64 = 0.9;

/// Series of rounds of a run, and cliffs in what it wrote.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadyStates {
    /// Cells visited five times and more back to back without a ramp, and those that decide when a
    /// phase is steady, in the order made.
    pub series: Vec<SteadyState>,
    /// Falls of the write rate, in the order made; in visits of the fill and of preconditioning
    /// too.
    pub cliffs: Vec<WriteCliff>,
    /// What is played until it is steady, writes, and did not fall.
    pub no_cliff: Vec<NoCliff>,
}

/// A series of rounds of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadyState {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it.
    pub cell_name: String,
    /// The stream, of a cell that has several.
    pub stream: Option<String>,
    /// Its position in the cell; 0 of the cell as a whole.
    #[serde(skip)]
    pub position: u32,
    /// The cells for which it decides: those of its phase where rounds visit several, else itself.
    pub decides_for: Vec<u32>,
    /// Which visit of the run the first round was.
    pub order_first: u32,
    /// Requests per second, round by round.
    pub rounds: Vec<f64>,
    /// The last five rounds.
    pub snia: Option<SniaTest>,
    /// The last half of the rounds.
    pub last_half: Option<LastHalfTest>,
    /// What both say together, with what was written.
    pub verdict: Verdict,
    /// Whether the suite has it played until it is steady. Where it does not, only that it is
    /// steady is worth a word: nobody asked for it, and drift is told as drift.
    pub asked: bool,
    /// Its rounds have few requests for each one in flight.
    pub few_requests: bool,
    /// The part of the series that the verdict is about: the last half, else the last five rounds.
    pub horizon: Horizon,
    /// Written to the device in the run up to the end of the series.
    pub written_bytes: u64,
    /// Size of the target: of a file that is not the device's.
    pub target_bytes: u64,
    /// The part of it that is written to: the range of the phase, or all of the target.
    pub range_bytes: u64,
    /// Size of the device that it is on, where that is known.
    pub device_bytes: Option<u64>,
    /// So much has to be written before it can be called steady: what the suite asks of its phase,
    /// else twice the target.
    pub wanted_bytes: u64,
    /// Change of the rate for each time that `range_bytes` are written, over the horizon; `None`
    /// when nothing was written or the rounds are too few.
    pub per_fill: Option<Slope>,
    /// The same for each GiB written. Where it is faster than nothing by more than chance, the rules
    /// accept a rate that still moves.
    pub per_gib: Option<Slope>,
}

/// SNIA's test; see `stats::steady::snia`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SniaTest {
    /// Largest minus smallest of five rounds, by their mean; at most 0.20.
    pub range: f64,
    /// Rise of their fit line, by the mean; at most 0.10 either way.
    pub rise: f64,
    /// Whether it holds.
    pub holds: bool,
}

/// The slope over the last half; see `stats::steady::last_half`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LastHalfTest {
    /// How many rounds that is.
    pub rounds: u32,
    /// Rise of their fit line, by the mean; at most 0.05 either way.
    pub rise: f64,
    /// Whether it holds.
    pub holds: bool,
}

/// Whether a series is steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Both tests hold and enough was written.
    Steady,
    /// Both tests hold, but too little was written: a cliff can still come.
    NotEnoughWritten,
    /// SNIA's test holds; there are too few rounds for the other.
    TooFewRounds,
    /// A test fails.
    NotSteady,
    /// Its rounds have few requests for each one in flight: a rule that holds says as little then as
    /// one that fails.
    FewRequests,
    /// Rounds in which nothing completed.
    Unknown,
}

/// What the tests could see: nothing slower is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Horizon {
    /// How many rounds.
    pub rounds: u32,
    /// Measured time of their visits to the cell alone.
    pub ns: u64,
    /// Time from the end of the round before them to the end of the last, all cells' visits and what
    /// is between them included.
    pub span_ns: u64,
    /// Written in that, by all cells.
    pub written_bytes: u64,
}

/// Visits of one cell made back to back, or one in each round of a grid.
struct Series<'a> {
    /// The cell, or one of its streams.
    cell: &'a CellView<'a>,
    visits: Vec<VisitView<'a>>,
    /// Written in each round up to the end of its visit, by other cells before it too.
    written: Vec<u64>,
}

/// Whether the run's series of rounds came to rest, and where its writes fell.
pub fn steady(view: &View<'_>) -> SteadyStates {
    let all = series(view);
    let rules = rules(view);
    let rule = |s: &Series<'_>| rules.iter().find(|r| r.cells.contains(&s.cell.cell.index));
    let alone = |s: &&Series<'_>| rule(s).map_or(s.is_rounds(), |rule| rule.cells.len() == 1);
    let rounds = all.iter().filter(alone).flat_map(|s| {
        s.by_stream(view).into_iter().map(|of| state(view, &of, rule(s))).collect::<Vec<_>>()
    });
    let grids = rules.iter().filter(|rule| rule.cells.len() > 1);
    let grids = grids.filter_map(|rule| Some((of_grid(view, rule)?, rule)));
    let grids = grids.flat_map(|(of, rule)| {
        let streams = of.by_stream(view).into_iter();
        streams.map(|of| state(view, &of, Some(rule))).collect::<Vec<_>>()
    });
    let mut series: Vec<SteadyState> = rounds.chain(grids).collect();
    series.sort_by_key(|series| series.order_first);
    let (cliffs, watched) = cliff::cliffs(view, &all);
    let asked = |none: &NoCliff| rules.iter().any(|rule| rule.cells.contains(&none.cell));
    SteadyStates { series, cliffs, no_cliff: watched.into_iter().filter(asked).collect() }
}

/// Where the writes of a run fell.
pub(crate) fn write_cliffs(view: &View<'_>) -> Vec<WriteCliff> {
    cliff::cliffs(view, &series(view)).0
}

/// What the suite asks of a phase that is played until it is steady.
struct Rule {
    /// Indices of the phase's cells.
    cells: std::ops::Range<u32>,
    /// The one that decides.
    tracked: u32,
    /// To be written in the phase.
    volume: Bytes,
    /// What its writes go to.
    range: Bytes,
}

fn rules(view: &View<'_>) -> Vec<Rule> {
    let Some(plan) = view.suite() else { return Vec::new() };
    let mut first = 0u32;
    let rule = |phase: &suite::model::Phase| {
        let start = first;
        first = first.saturating_add(u32::try_from(phase.cells.len()).unwrap_or(u32::MAX));
        let steady = phase.steady?;
        // As whoever ends the phase counts.
        let range = phase.active_range();
        let volume = Bytes::new((range.get() as f64 * steady.volume) as u64);
        let tracked = start.saturating_add(u32::try_from(steady.track).unwrap_or(u32::MAX));
        Some(Rule { cells: start..first, tracked, volume, range })
    };
    plan.phases.iter().filter_map(rule).collect()
}

/// The visits of the cell that decides for a grid, one in each round.
fn of_grid<'a>(view: &'a View<'_>, rule: &Rule) -> Option<Series<'a>> {
    let cell = view.cells.iter().find(|cell| cell.cell.index == rule.tracked)?;
    let mut visits: Vec<VisitView<'a>> = cell.visits.clone();
    visits.sort_by_key(|visit| visit.visit.order);
    let mut before = 0;
    let written = visits.iter().map(|visit| {
        let until = visit.visit.order;
        let orders = before..=until;
        before = until.saturating_add(1);
        let round = of_phase(view, rule).filter(|v| orders.contains(&v.order));
        round.fold(0u64, |sum, visit| sum.saturating_add(written_bytes(visit)))
    });
    let written: Vec<u64> = written.collect();
    (!visits.is_empty()).then_some(Series { cell, visits, written })
}

/// All visits of a phase that were to count.
fn of_phase<'a>(view: &'a View<'_>, rule: &Rule) -> impl Iterator<Item = &'a VisitRecord> {
    let cells = rule.cells.clone();
    let visits = view.run.visits.iter();
    visits.filter(move |v| cells.contains(&v.cell) && v.purpose == Purpose::Measure)
}

/// What the rule that ends a phase counts as written: on a twin what its media wrote.
fn counted_bytes(view: &View<'_>, visit: &VisitRecord) -> u64 {
    let deepest = visit.ledger.iter().map(|entry| entry.depth).max();
    match deepest.filter(|_| view.run.header.target.kind == TargetKind::Twin) {
        None => written_bytes(visit),
        Some(deepest) => {
            let media = visit.ledger.iter().filter(|entry| entry.depth == deepest);
            media.fold(0, |sum, entry| sum.saturating_add(entry.write_bytes))
        }
    }
}

/// All visits that count, those of one cell with nothing in between taken together.
fn series<'a>(view: &'a View<'_>) -> Vec<Series<'a>> {
    let mut order: Vec<&VisitRecord> =
        view.run.visits.iter().filter(|visit| visit.purpose == Purpose::Measure).collect();
    order.sort_by_key(|visit| visit.order);
    let mut all: Vec<Series<'a>> = Vec::new();
    let mut before: Option<u32> = None;
    for visit in order {
        let follows = before.replace(visit.cell) == Some(visit.cell);
        let cell = view.cells.iter().find(|cell| cell.cell.index == visit.cell);
        let Some(cell) = cell else { continue };
        let Some(counted) = cell.visits.iter().find(|v| v.visit.order == visit.order) else {
            // What was cut short interrupts nothing that a drive would notice.
            continue;
        };
        let written = written_bytes(visit);
        match all.last_mut().filter(|last| follows && last.cell.cell.index == visit.cell) {
            Some(last) => {
                last.visits.push(*counted);
                last.written.push(written);
            }
            None => all.push(Series { cell, visits: vec![*counted], written: vec![written] }),
        }
    }
    all
}

impl<'a> Series<'a> {
    /// The same visits as each of the cell's streams had them.
    fn by_stream(&self, view: &'a View<'_>) -> Vec<Self> {
        let rows = view.rows.iter().filter(|row| row.cell.index == self.cell.cell.index);
        let of = |row: &'a CellView<'a>| {
            let found = self.visits.iter().zip(&self.written).filter_map(|(visit, written)| {
                let same = |own: &&VisitView<'a>| own.visit.order == visit.visit.order;
                Some((*row.visits.iter().find(same)?, *written))
            });
            let (visits, written) = found.unzip();
            Self { cell: row, visits, written }
        };
        rows.map(of).filter(|of| !of.visits.is_empty()).collect()
    }

    fn order_first(&self) -> u32 {
        self.visits.first().map_or(0, |visit| visit.visit.order)
    }

    /// Rounds are back to back: a ramp in between would be load that is not in them.
    fn is_rounds(&self) -> bool {
        self.visits.len() >= SNIA_ROUNDS && self.visits.iter().all(|v| v.visit.ramp_ns == 0)
    }
}

fn state(view: &View<'_>, series: &Series<'_>, rule: Option<&Rule>) -> SteadyState {
    let rounds: Vec<f64> = series.visits.iter().map(|v| v.requests_per_second).collect();
    let snia = steady::snia(&rounds).map(|test| SniaTest {
        range: test.range,
        rise: test.rise,
        holds: test.holds(),
    });
    let last_half = steady::last_half(&rounds).map(|test| LastHalfTest {
        rounds: u32::try_from(test.rounds).unwrap_or(u32::MAX),
        rise: test.rise,
        holds: test.holds(),
    });
    let seen = if rounds.len() >= steady::LAST_HALF_ROUNDS_MIN {
        rounds.len() / 2
    } else {
        SNIA_ROUNDS.min(rounds.len())
    };
    let from = series.visits.len() - seen;
    let window = &series.visits[from..];
    let written_in = series.written.get(from..).unwrap_or_default();
    let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
    let horizon = Horizon {
        rounds: u32::try_from(seen).unwrap_or(u32::MAX),
        ns: sum(&mut window.iter().map(|visit| visit.visit.elapsed_ns)),
        span_ns: span_ns(&series.visits, from),
        written_bytes: sum(&mut written_in.iter().copied()),
    };
    let last_order = window.last().map_or(0, |visit| visit.visit.order);
    let until = view.run.visits.iter().filter(|visit| visit.order <= last_order);
    let written = until.fold(0u64, |sum, visit| sum.saturating_add(written_bytes(visit)));
    let target = &view.run.header.target;
    let target_bytes = target.size_bytes.saturating_mul(u64::from(target.files.max(1)));
    let volume = Volume { written: Bytes::new(written), active: Bytes::new(target_bytes) };
    let in_series = match rule.filter(|rule| rule.cells.len() > 1) {
        Some(rule) => sum(&mut of_phase(view, rule).map(|visit| counted_bytes(view, visit))),
        None => sum(&mut series.visits.iter().map(|v| counted_bytes(view, v.visit))),
    };
    // The rule that ended the phase, where there is one: two answers to one question help nobody.
    let enough = match rule {
        Some(rule) => in_series >= rule.volume.get(),
        None => horizon.written_bytes == 0 || volume.holds(),
    };
    let range_bytes = match rule.map(|rule| rule.range.get()) {
        Some(bytes) if bytes > 0 => bytes.min(target_bytes),
        _ => target_bytes,
    };
    let wanted_bytes = rule.map_or(target_bytes.saturating_mul(2), |rule| rule.volume.get());
    let few_requests = crate::ends::is_few(series.cell);
    SteadyState {
        cell: series.cell.cell.index,
        cell_name: series.cell.name(),
        stream: series.cell.stream_name().map(str::to_owned),
        position: series.cell.stream.unwrap_or(0) as u32,
        decides_for: rule
            .map_or_else(|| vec![series.cell.cell.index], |r| r.cells.clone().collect()),
        order_first: series.order_first(),
        verdict: match verdict(snia, last_half, rounds.len(), enough) {
            Verdict::Steady | Verdict::NotEnoughWritten | Verdict::NotSteady if few_requests => {
                Verdict::FewRequests
            }
            verdict => verdict,
        },
        asked: rule.is_some(),
        few_requests,
        rounds,
        snia,
        last_half,
        horizon,
        written_bytes: if rule.is_some() { in_series } else { written },
        target_bytes,
        range_bytes,
        device_bytes: device_bytes(view),
        wanted_bytes,
        per_fill: slope_for_each(window, written_in, range_bytes),
        per_gib: slope_for_each(window, written_in, GIB),
    }
}

fn verdict(
    snia: Option<SniaTest>,
    last_half: Option<LastHalfTest>,
    rounds: usize,
    enough: bool,
) -> Verdict {
    match (snia, last_half) {
        (None, _) if rounds < SNIA_ROUNDS => Verdict::TooFewRounds,
        (None, _) => Verdict::Unknown,
        (Some(snia), _) if !snia.holds => Verdict::NotSteady,
        (_, Some(half)) if !half.holds => Verdict::NotSteady,
        (_, Some(_)) if enough => Verdict::Steady,
        (_, Some(_)) => Verdict::NotEnoughWritten,
        (_, None) if rounds < steady::LAST_HALF_ROUNDS_MIN => Verdict::TooFewRounds,
        (_, None) => Verdict::Unknown,
    }
}

/// Slope of ln rate against what was written, for each so many bytes of it.
fn slope_for_each(window: &[VisitView<'_>], bytes: &[u64], unit: u64) -> Option<Slope> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let mut written = 0.0;
    for (visit, &bytes) in window.iter().zip(bytes) {
        let bytes = bytes as f64;
        if visit.requests_per_second > 0.0 {
            x.push((written + bytes / 2.0) / unit.max(1) as f64);
            y.push(visit.requests_per_second.ln());
        }
        written += bytes;
    }
    // The other one knows next to nothing of a few rounds.
    let slope = match x.len() {
        0..=FEW_ROUNDS => student_slope(&x, &y, CONFIDENCE),
        _ => theil_sen(&x, &y, CONFIDENCE),
    };
    Slope::of(slope?, written / unit.max(1) as f64)
}

/// From the end of the visit before a place to the end of the last; of what has no times that go
/// on, the measured time.
fn span_ns(visits: &[VisitView<'_>], from: usize) -> u64 {
    let end = |visit: &VisitView<'_>| {
        let elapsed = i64::try_from(visit.visit.elapsed_ns).unwrap_or(i64::MAX);
        visit.visit.started_unix_ns.saturating_add(elapsed)
    };
    let start = match from.checked_sub(1).and_then(|before| visits.get(before)) {
        Some(before) => Some(end(before)),
        None => visits.get(from).map(|first| first.visit.started_unix_ns),
    };
    let measured = visits.iter().skip(from).map(|visit| visit.visit.elapsed_ns);
    let measured = measured.fold(0, u64::saturating_add);
    let span = start.zip(visits.last().map(end)).map(|(start, end)| end.saturating_sub(start));
    span.and_then(|span| u64::try_from(span).ok()).unwrap_or(0).max(measured)
}

/// Size of the device at the top, which files are on as well.
fn device_bytes(view: &View<'_>) -> Option<u64> {
    let header = &view.run.header;
    if header.target.kind == TargetKind::Twin {
        let model: toml::Table = header.target.model.as_deref()?.parse().ok()?;
        return Some(model.get("model")?.get("size")?.as_str()?.parse::<Bytes>().ok()?.get());
    }
    let top = header.target.devices.first()?;
    let layers = &header.stack.as_ref()?.layers;
    layers.iter().find(|layer| layer.id == *top)?.size_bytes
}

impl SteadyStates {
    /// The cliffs; a verdict for each series with what it does not exclude, those first that are not
    /// steady; then where no cliff came.
    pub fn findings(&self) -> Vec<Finding> {
        let told = self.series.iter().filter(|s| s.asked || s.verdict == Verdict::Steady);
        let (steady, others): (Vec<_>, Vec<_>) = told.partition(|s| s.verdict == Verdict::Steady);
        let cliffs = self.cliffs.iter().map(WriteCliff::finding);
        let series = others.into_iter().chain(steady).flat_map(SteadyState::findings);
        cliffs.chain(series).chain(self.no_cliff.iter().map(NoCliff::finding)).collect()
    }
}

impl SteadyState {
    /// The verdict and its evidence.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = vec![self.finding()];
        if self.looks_steady() {
            found.push(self.window());
            found.extend(self.drift());
        }
        found.extend(self.tests());
        found.extend(self.of_a_part());
        found
    }

    /// The verdict alone.
    pub fn finding(&self) -> Finding {
        let code = match self.verdict {
            Verdict::Steady if self.moves() => Code::SteadyMoves,
            Verdict::Steady => Code::Steady,
            Verdict::NotEnoughWritten => Code::SteadyUnlessCliff,
            Verdict::TooFewRounds if self.snia.is_none() => Code::SteadyFewRounds,
            Verdict::TooFewRounds => Code::SteadyNoSlowDecay,
            Verdict::FewRequests => Code::SteadyFewRequests,
            Verdict::NotSteady => Code::SteadyNotShown,
            Verdict::Unknown => Code::SteadyNothingCompleted,
        };
        self.of(code)
            .with("window", self.horizon.rounds)
            .with("rounds", self.rounds.len())
            .with("least", steady::LAST_HALF_ROUNDS_MIN)
            .with("written", Number::bytes(self.written_bytes))
            .with("wanted", Number::bytes(self.wanted_bytes))
    }

    fn of(&self, code: Code) -> Finding {
        let position = Some(self.position as usize);
        Finding::new(code).on(Subject::new(self.cell, position, &self.cell_name))
    }

    /// Whether both tests hold.
    const fn looks_steady(&self) -> bool {
        matches!(self.verdict, Verdict::Steady | Verdict::NotEnoughWritten)
    }

    /// The part of the series that the verdict is about.
    fn window(&self) -> Finding {
        let written = self.horizon.written_bytes;
        let fills = written as f64 / self.range_bytes.max(1) as f64;
        self.of(Code::SteadyWindow)
            .with("window", self.horizon.rounds)
            .with("span", Number::ns(self.horizon.span_ns))
            .with_some("written", (written > 0).then(|| Number::bytes(written)))
            .with("fills", Number::times(fills))
            .with("device", self.is_device())
            .with("range", Number::bytes(self.range_bytes))
    }

    fn is_device(&self) -> bool {
        self.device_bytes.is_some_and(|all| self.range_bytes as f64 >= WHOLE_DEVICE * all as f64)
    }

    /// Whether the rate seems to move, though the rules accept it: the interval of 95 % excludes that it
    /// does not.
    fn moves(&self) -> bool {
        self.looks_steady() && self.per_gib.is_some_and(|slope| slope.is_real())
    }

    /// What the rules let pass: how far the rate may have moved, and what that would make of more.
    fn drift(&self) -> Option<Finding> {
        let slope = self.per_gib?;
        let (low, high) = (slope.over_all_low, slope.over_all_high);
        let most = if low < 0.0 { low } else { high };
        let (code, paced) = match () {
            () if self.moves() => (Code::SteadyMoved, slope.over_all),
            () => (Code::SteadyDriftPossible, most),
        };
        let per = match self.is_device() {
            true => self.range_bytes,
            false if self.horizon.written_bytes >= 1024 * GIB => 1024 * GIB,
            false => GIB,
        };
        let times = per as f64 / self.horizon.written_bytes.max(1) as f64;
        let pace = || Number::change((times * paced.max(-0.999_999).ln_1p()).exp_m1().min(1000.0));
        let found = self
            .of(code)
            .with("change", slope.whole())
            .with("most", Number::change(most))
            .with("per", Number::bytes(per));
        Some(found.with_some("pace", (times <= PACE_MAX).then(pace)))
    }

    /// What a part of a device does not tell.
    fn of_a_part(&self) -> Option<Finding> {
        let all = self.device_bytes.filter(|_| !self.is_device())?;
        (self.looks_steady() && self.horizon.written_bytes > 0).then(|| {
            self.of(Code::SteadyPartOfDevice)
                .with("range", Number::bytes(self.range_bytes))
                .with("device", Number::bytes(all))
        })
    }

    fn tests(&self) -> Option<Finding> {
        let snia = self.snia?;
        let mut found = self
            .of(Code::SteadyTests)
            .with("snia_rounds", SNIA_ROUNDS)
            .with("snia_holds", snia.holds)
            .with("range", Number::share(snia.range))
            .with("range_most", Number::share(steady::SNIA_RANGE_MAX))
            .with("rise", Number::change(snia.rise))
            .with("rise_most", Number::share(steady::SNIA_RISE_MAX));
        if let Some(half) = self.last_half {
            found = found
                .with("half_rounds", half.rounds)
                .with("half_holds", half.holds)
                .with("half_rise", Number::change(half.rise))
                .with("half_rise_most", Number::share(steady::LAST_HALF_RISE_MAX));
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use finding::texts;
    use record::{Run, SeriesRow, TargetKind};

    use super::*;
    use crate::freeze::tests::{MS, run, suite_text, visit};

    /// Rounds of writes, each of so many bytes a second.
    fn rounds(rates: &[u64]) -> Run {
        let round = |(order, &rate): (u32, &u64)| {
            let mut round = visit(order, "write", &[]);
            let op = &mut round.streams[0].ops[0];
            op.requests = rate * 10 / 4096;
            op.bytes = rate * 10;
            let row = SeriesRow { requests: op.requests / 100, bytes: rate / 10, tail: vec![] };
            op.series = record::Series { interval_ns: 100 * MS, rows: vec![row; 100] };
            round
        };
        run(TargetKind::File, (0u32..).zip(rates).map(round).collect())
    }

    const UNTIL_STEADY: &str = r#"
operation = "write"
direct = true
[[phase]]
name = "read"
operation = "read"
[[phase]]
name = "write"
steady = { round = "200ms", rounds_max = 25, volume = 2 }
"#;

    fn steady_of(run: &Run) -> SteadyStates {
        steady(&View::new(run))
    }

    #[test]
    fn verdicts_ask_for_rounds_and_for_bytes() {
        // The target is 1 GiB: a round of 20 MiB/s writes a fifth of it.
        const RATE: u64 = 20 << 20;
        let verdict = |rates: &[u64]| steady_of(&rounds(rates)).series[0].verdict;
        assert_eq!(verdict(&[RATE; 12]), Verdict::Steady);
        assert_eq!(verdict(&[RATE; 9]), Verdict::TooFewRounds);
        assert_eq!(verdict(&[RATE / 2; 12]), Verdict::NotEnoughWritten);
        let falling: Vec<u64> = (0..12).map(|k| RATE * (40 - k) / 20).collect();
        assert_eq!(verdict(&falling), Verdict::NotSteady);
        // Nobody asked for a steady state there: neither a mark nor a word about it.
        let (run, found) = (rounds(&falling), steady_of(&rounds(&falling)));
        let marks = crate::findings::Findings::of(&View::new(&run)).marks(&View::new(&run));
        assert!(marks.iter().all(|mark| mark.code.name() != "not-steady"), "{marks:?}");
        assert!(found.findings().iter().all(|one| one.code != Code::SteadyNotShown), "{found:?}");
        assert_eq!(verdict(&[0; 12]), Verdict::Unknown);
        assert_eq!(steady_of(&rounds(&[RATE; 4])).series, []);
    }

    #[test]
    fn of_few_requests_a_rule_that_holds_says_as_little_as_one_that_fails() {
        let few = |rates: &[u64]| {
            let mut run = rounds(rates);
            run.header.suite_text = UNTIL_STEADY.to_owned();
            run.cells.iter_mut().for_each(|cell| cell.streams[0].queue_depth = 32);
            for visit in &mut run.visits {
                let op = &mut visit.streams[0].ops[0];
                op.requests /= 200;
                op.latency_ns_sum = 32 * u128::from(visit.elapsed_ns);
            }
            steady_of(&run).series.swap_remove(0)
        };
        let even = few(&[20 << 20; 12]);
        let uneven = few(&(0..12).map(|k| (20 << 20) * (40 - k) / 20).collect::<Vec<_>>());
        for series in [even, uneven] {
            assert!(series.few_requests && series.verdict == Verdict::FewRequests, "{series:?}");
            let said = texts(&series.findings()).join(" ");
            assert!(
                said.starts_with(
                    "Whether `write` is steady is not known: its 12 rounds have so few"
                )
            );
            assert!(said.contains("make longer rounds"), "{said}");
        }
    }

    #[test]
    fn what_excludes_rest_is_not_plainly_steady() {
        let steady = steady_of(&rounds(&[20 << 20; 12])).series.remove(0);
        let code = |low: f64, high: f64| {
            let of = steady.per_gib.unwrap();
            let over_all = f64::midpoint(low, high);
            let slope = Slope { over_all, over_all_low: low, over_all_high: high, ..of };
            SteadyState { per_gib: Some(slope), ..steady.clone() }.finding().code
        };
        assert_eq!(code(-0.089, 0.009), Code::Steady);
        assert_eq!(code(-0.089, -0.009), Code::SteadyMoves);
    }

    #[test]
    fn a_ramp_or_another_cell_makes_no_series() {
        let mut with_ramp = rounds(&[20 << 20; 12]);
        with_ramp.visits[6].ramp_ns = 1;
        assert_eq!(steady_of(&with_ramp).series, []);
        let mut mixed = rounds(&[20 << 20; 12]);
        for order in [4, 9] {
            mixed.visits[order] = visit(order as u32, "read", &[]);
        }
        assert_eq!(steady_of(&mixed).series, []);
    }

    #[test]
    fn the_horizon_is_told_with_the_verdict() {
        let found = steady_of(&rounds(&[20 << 20; 12]));
        insta::assert_snapshot!(texts(&found.findings()).join("\n"));
    }

    #[test]
    fn what_is_not_steady_is_told_first() {
        let mut found = steady_of(&rounds(&[20 << 20; 12]));
        let steady = found.series[0].clone();
        let other = SteadyState { asked: true, verdict: Verdict::NotSteady, ..steady };
        found.series.push(other);
        let said = texts(&found.findings());
        assert!(said[0].contains("was not shown to be steady"), "{said:?}");
        assert!(said.iter().any(|one| one.starts_with("`write` is steady")), "{said:?}");
    }

    #[test]
    fn a_cliff_is_placed_in_bytes() {
        let rates: Vec<u64> = (0..12).map(|k| if k < 5 { 80 << 20 } else { 20 << 20 }).collect();
        let found = steady_of(&rounds(&rates));
        assert_eq!(found.cliffs.len(), 1, "{:?}", found.cliffs);
        let at = found.cliffs[0].at_bytes as f64 / f64::from(1 << 20);
        assert!((at - 4000.0).abs() < 10.0, "{at} MiB");
        assert!((found.cliffs[0].before / found.cliffs[0].after - 4.0).abs() < 0.2);
        let said = texts(&[found.cliffs[0].finding()]).join(" ");
        assert!(
            said.contains(
                "from 80.0 MiB/s to 20.0 MiB/s. The rate did not recover in the 1.37 GiB"
            ),
            "{said}"
        );
        assert!(
            said.contains("I/O credits were used up. Use the rate after the cliff for claims"),
            "{said}"
        );
        // That it is steady since comes after it.
        let mut asked = rounds(&rates);
        asked.header.suite_text = suite_text("", UNTIL_STEADY);
        let said = texts(&steady_of(&asked).findings());
        assert!(said.len() > 1 && said[0].starts_with("Write cliff in `write`"), "{said:?}");
        // Of what was seen for half a minute nobody knows whether it stays.
        let said = steady_of(&rounds(&rates[..8])).cliffs[0].finding().text();
        assert!(said.contains("or the device was slow for a while"), "{said}");
    }

    #[test]
    fn what_is_fast_again_in_the_next_visit_was_slow_for_a_while() {
        let rates: Vec<u64> = (0..12).map(|k| if k < 5 { 80 << 20 } else { 20 << 20 }).collect();
        let before_a_rise = |rates: &[u64]| {
            let mut run = rounds(rates);
            let mut next = rounds(&[40 << 20]).visits.remove(0);
            (next.cell, next.order) = (0, run.visits.len() as u32);
            let rows = next.streams[0].ops[0].series.rows.iter_mut().take(50);
            rows.for_each(|row| row.requests /= 4);
            run.visits.push(next);
            steady_of(&run).cliffs.len()
        };
        assert_eq!(steady_of(&rounds(&rates[..8])).cliffs.len(), 1);
        assert_eq!(before_a_rise(&rates[..8]), 0, "of half a minute the next visit saw the end");
        assert_eq!(before_a_rise(&rates), 1, "it lasted");
    }

    #[test]
    fn a_cliff_is_placed_in_what_the_program_wrote_not_in_what_the_device_did() {
        let rates: Vec<u64> = (0..12).map(|k| if k < 5 { 80 << 20 } else { 20 << 20 }).collect();
        let mut run = rounds(&rates);
        let plain = steady_of(&run).cliffs;
        // A cache counts what comes in, and what goes on.
        for visit in &mut run.visits {
            let bytes = visit.streams[0].ops[0].bytes;
            visit.ledger = vec![record::LedgerEntry {
                device: "sda".to_owned(),
                write_bytes: bytes * 7 / 4,
                ..record::LedgerEntry::default()
            }];
        }
        let found = steady_of(&run);
        assert_eq!(found.cliffs, plain);
        assert_eq!(found.series[0].written_bytes, (7 * (5 * 800 + 7 * 200) / 4) << 20);
    }

    /// Visits of 200 ms of so many MiB in each half.
    fn short_rounds(rates: &[(u64, u64)]) -> Run {
        let mut run = rounds(&vec![1 << 20; rates.len()]);
        for (visit, (first, second)) in run.visits.iter_mut().zip(rates) {
            visit.elapsed_ns = 203 * MS;
            let row = |mib: u64| SeriesRow { requests: mib * 256, bytes: mib << 20, tail: vec![] };
            let rows = vec![row(*first), row(*second), row(0)];
            let op = &mut visit.streams[0].ops[0];
            op.requests = rows.iter().map(|row| row.requests).sum();
            op.bytes = rows.iter().map(|row| row.bytes).sum();
            op.latency_ns_sum = u128::from(op.requests) * u128::from(MS);
            op.series = record::Series { interval_ns: 100 * MS, rows };
        }
        run
    }

    #[test]
    fn that_none_came_is_told_of_what_was_watched() {
        let mut run = short_rounds(&[(20, 20); 10]);
        run.header.suite_text = suite_text("", UNTIL_STEADY);
        let found = steady_of(&run);
        let [none] = &found.no_cliff[..] else { panic!("{found:?}") };
        let mib = |bytes: u64| (bytes as f64 / f64::from(1 << 20)).round() as u64;
        assert_eq!((mib(none.from_bytes), mib(none.written_bytes)), (40, 400));
        assert!(
            none.finding().text().contains("in the first 40 MiB would not be seen"),
            "{none:?}"
        );
        // In turns with another cell nothing is seen of a cliff.
        for order in [3, 7] {
            run.visits.insert(order, visit(0, "read", &[]));
        }
        for (visit, order) in run.visits.iter_mut().zip(0..) {
            visit.order = order;
        }
        assert_eq!(steady_of(&run).no_cliff, []);
    }

    #[test]
    fn a_fall_that_a_cache_tells_is_counted_by_whatever_tells_of_none() {
        let mut run = rounds(&[20 << 20; 12]);
        run.header.suite_text = suite_text("", UNTIL_STEADY);
        for visit in &mut run.visits {
            visit.elapsed_ns = 20_000 * MS;
            visit.completions = record::Bitmap::zeros(20_000);
            (0..20_000).for_each(|ms| visit.completions.set(ms));
            let row = |at: u64| {
                let requests = 500 + at * 7 % 13;
                SeriesRow { requests, bytes: requests * 4096, tail: vec![] }
            };
            let op = &mut visit.streams[0].ops[0];
            op.series.rows = (0..200).map(row).collect();
            op.requests = op.series.rows.iter().map(|row| row.requests).sum();
            op.bytes = op.requests * 4096;
        }
        let kept = |run: &Run| crate::drift::drift(&View::new(run)).kept.unwrap().visits;
        assert_eq!((kept(&run), steady_of(&run).no_cliff[0].cache_at_bytes), (12, None));
        // A cache takes 1 GiB in the first tenth of a second.
        let op = &mut run.visits[0].streams[0].ops[0];
        op.series.rows[0].bytes += 1 << 30;
        op.bytes += 1 << 30;
        let found = steady_of(&run);
        assert_eq!(found.cliffs, []);
        let [none] = &found.no_cliff[..] else { panic!("{found:?}") };
        let said = none.finding().text();
        assert!(said.contains("wrote besides the fall once 1 GiB were written"), "{said}");
        assert_eq!(kept(&run), 11);
    }

    #[test]
    fn two_tenths_of_a_second_are_enough_before_a_cliff() {
        let mut rates = vec![(20, 20)];
        rates.extend([(7, 7); 9]);
        let cliffs = |run: &Run| steady_of(run).cliffs;
        let run = short_rounds(&rates);
        let [found] = &cliffs(&run)[..] else { panic!("{:?}", cliffs(&run)) };
        let mib = |bytes: u64| (bytes as f64 / f64::from(1 << 20)).round() as u64;
        let bounds = [found.at_bytes_low, found.at_bytes, found.at_bytes_high].map(mib);
        assert!(bounds[0] >= 38 && bounds[1] == 40 && bounds[2] <= 42, "{bounds:?}");
        assert_eq!([found.before, found.after].map(|rate| mib(rate as u64)), [200, 70]);
        assert_eq!((found.earlier_bytes, mib(found.after_bytes)), (0, 126));
        // The same after other writes: from where it is counted is said.
        let mut later = run.clone();
        later.visits.insert(0, visit(0, "write", &[]));
        later.visits[0].cell = 0;
        for (visit, order) in later.visits.iter_mut().zip(0..) {
            visit.order = order;
        }
        let [found] = &cliffs(&later)[..] else { panic!("{:?}", cliffs(&later)) };
        assert!(found.earlier_bytes > 0 && mib(found.at_bytes) == 40, "{found:?}");
        let said = found.finding().text();
        assert!(said.contains("which began after"), "{said}");
        // What is fast again in a later visit was a cache that fills again.
        let mut again = short_rounds(&[rates.clone(), rates].concat());
        again.visits.insert(10, visit(0, "read", &[]));
        for (visit, order) in again.visits.iter_mut().zip(0..) {
            visit.order = order;
        }
        assert_eq!(cliffs(&again), []);
    }
}
