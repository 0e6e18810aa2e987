//! What streams that run together cost each other: each against the cell where it ran alone.

use finding::{Code, Finding, Number, Subject, Value};
use record::{OpRecord, StreamRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::LatencyHistogram;
use stats::interval::plain;
use stats::paired::welch;

use crate::ends;
use crate::places::Told;
use crate::view::{CellView, View, VisitView, completions, is_data, whole};
use crate::words;

/// The axis that says which streams of a phase run in a cell.
const STREAMS: &str = "streams";
const CONFIDENCE: f64 = 0.95;
/// How many values must lie above a percentile for it to be told, as in every table.
const ABOVE_MIN: u64 = 10;
/// Rates and latencies closer than this to what they are alone are not called a cost.
const SAME: f64 = 0.05;
/// A rate is known not to suffer if its interval's lower end is no further down than that; a
/// latency, which scatters more, if its upper end is no further up than this.
const SAME_LATENCY: f64 = 0.10;
/// A rate that the suite sets was kept if no more than this of it is missing: as much as a stream
/// may be behind that is not overloaded.
const MISSING_MAX: f64 = 0.02;
/// So exactly it must be known for that.
const KEPT_TO: f64 = 0.05;
/// Standard errors that chance is allowed.
const CHANCE: f64 = 3.0;

/// What streams that run together cost each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Interferences {
    /// In the suite's order; the operations of a stream one after the other.
    pub found: Vec<Interference>,
}

/// An operation of a stream beside other streams, against the same one alone.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interference {
    /// The phase.
    pub phase: String,
    /// Index of the cell where it ran beside others.
    pub cell: u32,
    /// Index of the cell where it ran alone.
    pub alone: u32,
    /// The stream.
    pub stream: String,
    /// All streams of the cell, by their positions.
    #[serde(skip)]
    pub streams: Vec<String>,
    /// The others.
    pub beside: Vec<String>,
    /// Where both cells are on the other axes: (field, value).
    pub place: Vec<(String, String)>,
    /// `read`, `write`, `fdatasync`, ...
    pub operation: String,
    /// Requests per second beside the others: the geometric mean of the visits.
    pub rate: f64,
    /// Alone.
    pub rate_alone: f64,
    /// The first by the second.
    pub rate_ratio: f64,
    /// Ends of its 95 % interval, from visit to visit; `None` with fewer than two visits to either.
    pub rate_ratio_ends: Option<(f64, f64)>,
    /// 99th percentile of latency beside the others, ns: the geometric mean of the visits' where
    /// their ratio has an interval, else that of all their requests. `None` with too few requests.
    pub p99_ns: Option<u64>,
    /// Alone.
    pub p99_alone_ns: Option<u64>,
    /// The first by the second.
    pub p99_ratio: Option<f64>,
    /// Ends of its 95 % interval, from visit to visit; `None` where fewer than two visits to either
    /// have requests enough for a percentile of their own.
    pub p99_ratio_ends: Option<(f64, f64)>,
    /// Mean latency beside the others, ns: the geometric mean of the visits'. Null where it is not
    /// known.
    pub mean_ns: Option<f64>,
    /// Alone.
    pub mean_alone_ns: Option<f64>,
    /// The first by the second. In a closed loop it says what the ratio of the rates says.
    pub mean_ratio: Option<f64>,
    /// Ends of its 95 % interval, from visit to visit.
    pub mean_ratio_ends: Option<(f64, f64)>,
    /// Whether the suite asks for pauses between the stream's requests: then most of its rate may be
    /// the plan's, and what it loses is in its latencies.
    pub pauses: bool,
    /// Requests of all in flight between two pauses, where there are several for each: rates are then
    /// of the time between pauses. Null elsewhere.
    pub burst: Option<u64>,
    /// Bytes of a burst.
    pub burst_bytes: Option<u64>,
    /// Requests per second that the suite sets for the stream; null where it sets none.
    pub rate_asked: Option<f64>,
    /// Whether they were done beside the others; null where none are set, or there were too few to
    /// tell.
    pub rate_kept: Option<bool>,
    /// Likewise alone.
    pub rate_kept_alone: Option<bool>,
    /// The suite sets the stream's rate, and it was kept here and alone: what it lost, if anything,
    /// is in its latencies.
    pub rate_is_set: bool,
    /// What may be said.
    pub verdict: Verdict,
    /// Streams that were offered more here than they took, this one or those beside it: the rates
    /// are those beside what did run, not beside what the suite asked for.
    pub fell_behind: Vec<String>,
    /// The stream was offered more than it took when it was alone, too: the ratio of its rates is
    /// of what came back on either side.
    pub fell_behind_alone: bool,
}

/// What may be said of a stream beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It has no relevant loss.
    Nothing,
    /// On average it has no relevant loss; whether its slowest hundredth does is not known.
    NothingOnAverage,
    /// There is too little to tell.
    NotKnown,
    /// Its rate is lower, or its requests take longer, than chance explains.
    Suffers,
}

/// An operation of a stream in a cell, over the visits that count.
struct Measured {
    ln_rates: Vec<f64>,
    /// By how much the start and the end of its visits may move the logarithm of its rate.
    offset: f64,
    ln_means: Vec<f64>,
    /// Of each visit that has requests enough.
    ln_p99s: Vec<f64>,
    latency: LatencyHistogram,
}

/// Every stream that ran both alone and beside others, the rest of the grid being equal.
pub fn interference(view: &View<'_>) -> Interferences {
    let cells: Vec<&CellView<'_>> = view.grid().filter(|cell| is_of_streams(cell)).collect();
    let together = cells.iter().filter(|cell| cell.cell.streams.len() > 1);
    let mut found: Vec<Interference> = together.flat_map(|cell| of_cell(cell, &cells)).collect();
    if !found.is_empty() {
        let told = Told::new(view.run);
        for one in &mut found {
            one.hold_to(set_rate(&told, view, one), view);
        }
    }
    Interferences { found }
}

/// A rate that the plan sets for a stream.
#[derive(Clone, Copy)]
struct SetRate {
    per_second: f64,
    by_chance: bool,
}

fn set_rate(told: &Told<'_>, view: &View<'_>, one: &Interference) -> Option<SetRate> {
    let cell = view.cells.iter().find(|cell| cell.cell.index == one.cell)?;
    rate_of(told, cell, &one.stream)
}

/// Whether the suite sets a row's rate, and it was kept: how even it is within a visit is then the
/// arrivals' doing.
pub(crate) fn keeps_its_rate(told: &Told<'_>, row: &CellView<'_>) -> bool {
    let name = match row.cell.streams.as_slice() {
        [only] => Some(only.name.as_str()),
        _ => row.stream_name(),
    };
    let set = name.and_then(|name| rate_of(told, row, name));
    set.and_then(|set| set.kept(row)) == Some(true)
}

fn rate_of(told: &Told<'_>, cell: &CellView<'_>, stream: &str) -> Option<SetRate> {
    let stream = told.asked(cell.cell)?.streams.iter().find(|s| s.name == stream)?;
    let per_second = stream.value("rate")?.parse::<f64>().ok().filter(|rate| *rate > 0.0)?;
    let by_chance = stream.value("arrivals").is_some_and(|kind| kind == "poisson");
    Some(SetRate { per_second, by_chance })
}

impl SetRate {
    /// Whether a row did what was asked of it: not where a share of it is missing that neither
    /// chance nor the ends of visits explain; surely where so much was asked that a missing share
    /// would show.
    fn kept(self, row: &CellView<'_>) -> Option<bool> {
        if row.fell_behind() {
            return Some(false);
        }
        let seconds = |visit: &VisitView<'_>| visit.visit.rated_ns() as f64 / 1e9;
        let all: f64 = row.visits.iter().map(seconds).sum();
        let done: f64 = row.visits.iter().map(|v| v.requests_per_second * seconds(v)).sum();
        let asked = self.per_second * all;
        // At either end of a visit those in flight are counted or not.
        let ends = row.visits.iter().map(|visit| crate::ends::seen(visit)).sum::<f64>().sqrt();
        let chance = if self.by_chance { asked.sqrt() } else { 1.0 };
        let slack = CHANCE * (chance * chance + ends * ends).sqrt();
        let missing = asked - done;
        match () {
            () if asked <= 0.0 || !missing.is_finite() => None,
            () if missing > MISSING_MAX * asked + slack => Some(false),
            () if slack <= KEPT_TO * asked => Some(true),
            () => None,
        }
    }
}

fn is_of_streams(cell: &CellView<'_>) -> bool {
    cell.cell.coordinates.iter().any(|(field, _)| field == STREAMS)
}

fn place(cell: &CellView<'_>) -> Vec<(String, String)> {
    let others = cell.cell.coordinates.iter().filter(|(field, _)| field != STREAMS);
    others.cloned().collect()
}

fn of_cell(cell: &CellView<'_>, cells: &[&CellView<'_>]) -> Vec<Interference> {
    let mut found = Vec::new();
    for plan in &cell.cell.streams {
        let is_alone = |other: &&&CellView<'_>| {
            let only = matches!(other.cell.streams.as_slice(), [only] if only.name == plan.name);
            only && other.cell.phase == cell.cell.phase && place(other) == place(cell)
        };
        let Some(alone) = cells.iter().find(is_alone) else { continue };
        for operation in operations(alone, &plan.name) {
            let here = measured(cell, &plan.name, &operation);
            let there = measured(alone, &plan.name, &operation);
            found.extend(compared(cell, alone, &plan.name, operation, (&here, &there)));
        }
    }
    found
}

fn record<'a>(
    cell: &CellView<'_>,
    visit: &VisitView<'a>,
    stream: &str,
) -> Option<&'a StreamRecord> {
    let position = cell.cell.streams.iter().position(|plan| plan.name == stream)?;
    visit.visit.streams.get(position)
}

/// Those that move data first.
fn operations(cell: &CellView<'_>, stream: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let records = cell.visits.iter().filter_map(|visit| record(cell, visit, stream));
    for op in records.flat_map(|record| whole(&record.ops)) {
        if !names.contains(&op.op) {
            names.push(op.op.clone());
        }
    }
    names.sort_by_key(|name| !is_data(name));
    names
}

/// Requests of all in flight between two pauses, and their bytes, where there are several for each.
fn burst(cell: &CellView<'_>, stream: &str) -> Option<(u64, Option<u64>)> {
    let (_, plan, burst) = cell.plans_with_bursts().find(|(_, plan, _)| plan.name == stream)?;
    let all = u64::from(burst.filter(|&n| n > 1)?)
        .saturating_mul(plan.threads.saturating_mul(plan.queue_depth).into());
    Some((all, plan.block_bytes.map(|bytes| bytes.saturating_mul(all))))
}

/// Milliseconds of a visit in which a stream did not pause: it never stood still for 50 ms.
fn working_ms(cell: &CellView<'_>, visit: &VisitView<'_>, stream: &str) -> Option<f64> {
    burst(cell, stream)?;
    let position = cell.cell.streams.iter().position(|plan| plan.name == stream)?;
    let map = completions(visit.visit, Some(position));
    let ms = map.ones(map.bits);
    (ms > 0).then_some(ms as f64)
}

fn measured(cell: &CellView<'_>, stream: &str, operation: &str) -> Measured {
    let mut requests_all = 0.0;
    let mut working = None;
    let mut all = Measured {
        ln_rates: vec![],
        offset: 0.0,
        ln_means: vec![],
        ln_p99s: vec![],
        latency: LatencyHistogram::new(),
    };
    for visit in &cell.visits {
        let ops = record(cell, visit, stream).into_iter().flat_map(|record| &record.ops);
        let ops: Vec<&OpRecord> = ops.filter(|op| op.op == operation).collect();
        let requests = ops.iter().fold(0u64, |sum, op| sum.saturating_add(op.requests_rated()));
        working = working_ms(cell, visit, stream);
        let ns = working.map_or(visit.visit.rated_ns() as f64, |ms| ms * 1e6);
        let rate = requests as f64 * 1e9 / ns;
        if rate.is_finite() && rate > 0.0 {
            all.ln_rates.push(rate.ln());
            requests_all += requests as f64;
        }
        let sum: f64 = ops.iter().map(|op| op.latency_ns_sum as f64).sum();
        // Those that came back late are in no rate, and are what waits are about.
        let mean = sum / ops.iter().map(|op| op.requests as f64).sum::<f64>();
        if mean.is_finite() && mean > 0.0 {
            all.ln_means.push(mean.ln());
        }
        let mut own = LatencyHistogram::new();
        for op in ops {
            own.merge(&op.latency);
        }
        let p99 = own.quantile_with(0.99, ABOVE_MIN).filter(|p99| p99.get() > 0);
        all.ln_p99s.extend(p99.map(|p99| (p99.get() as f64).ln()));
        all.latency.merge(&own);
    }
    let rows = cell.by_stream();
    let row = rows.iter().find(|row| row.stream_name().is_none_or(|name| name == stream));
    if let Some(ms) = working {
        // It begins and ends within a millisecond.
        all.offset = 2.0 / ms;
    } else if let (Some(row), visits @ 1..) = (row, all.ln_rates.len()) {
        all.offset = ends::offset_of(row, requests_all / visits as f64);
    }
    all
}

/// Ends of the 95 % interval of the ratio of two means of logarithms, the first by the second.
///
/// * `offset`: by how much it may be off beside what visits differ by.
fn ratio_ends(here: &[f64], there: &[f64], offset: f64) -> Option<(f64, f64)> {
    let (there, here) = plain(there, CONFIDENCE).zip(plain(here, CONFIDENCE))?;
    let ends = welch(&there, &here).off_by(offset).interval(CONFIDENCE)?;
    Some((ends.low.exp(), ends.high.exp()))
}

fn compared(
    cell: &CellView<'_>,
    alone: &CellView<'_>,
    stream: &str,
    operation: String,
    (here, there): (&Measured, &Measured),
) -> Option<Interference> {
    let mean = |rates: &[f64]| {
        (!rates.is_empty()).then(|| (rates.iter().sum::<f64>() / rates.len() as f64).exp())
    };
    let (rate, rate_alone) = (mean(&here.ln_rates)?, mean(&there.ln_rates)?);
    let p99 = |all: &Measured| all.latency.quantile_with(0.99, ABOVE_MIN).map(units::Nanos::get);
    // A ratio of what its interval is of: of visits, each with a percentile of its own, where there
    // are such, else of all their requests together.
    let p99_ratio_ends = ratio_ends(&here.ln_p99s, &there.ln_p99s, 0.0);
    let of_visits = |all: &Measured| mean(&all.ln_p99s).map(|ns| ns.round() as u64);
    let (p99_ns, p99_alone_ns) = match p99_ratio_ends {
        Some(_) => (of_visits(here), of_visits(there)),
        None => (p99(here), p99(there)),
    };
    let (mean_ns, mean_alone_ns) = (mean(&here.ln_means), mean(&there.ln_means));
    let others = cell.cell.streams.iter().filter(|plan| plan.name != stream);
    let burst = burst(cell, stream);
    let pauses =
        cell.plans_with_bursts().any(|(_, plan, burst)| plan.name == stream && burst.is_some());
    let found = Interference {
        phase: cell.cell.phase.clone(),
        cell: cell.cell.index,
        alone: alone.cell.index,
        stream: stream.to_owned(),
        streams: cell.cell.streams.iter().map(|plan| plan.name.clone()).collect(),
        beside: others.map(|plan| plan.name.clone()).collect(),
        place: place(cell),
        operation,
        rate,
        rate_alone,
        rate_ratio: rate / rate_alone,
        rate_ratio_ends: ratio_ends(
            &here.ln_rates,
            &there.ln_rates,
            here.offset.hypot(there.offset),
        ),
        p99_ns,
        p99_alone_ns,
        p99_ratio: p99_ns
            .zip(p99_alone_ns.filter(|&ns| ns > 0))
            .map(|(here, there)| here as f64 / there as f64),
        p99_ratio_ends,
        mean_ns,
        mean_alone_ns,
        mean_ratio: mean_ns.zip(mean_alone_ns).map(|(here, there)| here / there),
        mean_ratio_ends: ratio_ends(&here.ln_means, &there.ln_means, 0.0),
        pauses: pauses && burst.is_none(),
        burst: burst.map(|(requests, _)| requests),
        burst_bytes: burst.and_then(|(_, bytes)| bytes),
        rate_asked: None,
        rate_kept: None,
        rate_kept_alone: None,
        rate_is_set: false,
        verdict: Verdict::NotKnown,
        fell_behind: behind(cell),
        fell_behind_alone: alone.fell_behind(),
    };
    Some(found)
}

/// Streams of a cell that were offered more than they took.
fn behind(cell: &CellView<'_>) -> Vec<String> {
    let rows = cell.by_stream();
    let behind = rows.iter().filter(|row| row.fell_behind());
    behind.filter_map(|row| row.stream_name().map(str::to_owned)).collect()
}

impl Interferences {
    /// For each stream and operation where it suffers most; nothing where none ran both ways.
    pub fn findings(&self) -> Vec<Finding> {
        let key =
            |one: &Interference| (one.phase.clone(), one.stream.clone(), one.operation.clone());
        let mut told = Vec::new();
        let mut found = Vec::new();
        let mut not_reached = Vec::new();
        for one in &self.found {
            if told.contains(&key(one)) {
                continue;
            }
            told.push(key(one));
            let of_it = self.found.iter().filter(|other| key(other) == key(one));
            // Where nothing is known a loss may hide: that comes before no loss elsewhere.
            let worst =
                of_it.max_by(|a, b| a.verdict.cmp(&b.verdict).then(a.cost().total_cmp(&b.cost())));
            found.extend(worst.map(Interference::finding));
            for more in worst.into_iter().flat_map(Interference::not_reached) {
                if !not_reached.contains(&more) {
                    not_reached.push(more);
                }
            }
        }
        found.extend(not_reached);
        found
    }
}

impl Interferences {
    /// The streams of the cell in which most run together, in its order, without those whose rates
    /// are kept as the suite sets them: what each has there.
    pub fn together(&self) -> Vec<&Interference> {
        let most = self.found.iter().map(|one| one.streams.len()).max().unwrap_or(0);
        let Some(last) = self.found.iter().rev().find(|one| one.streams.len() == most) else {
            return Vec::new();
        };
        let here = self.found.iter().filter(|one| one.cell == last.cell);
        let is_answer = |one: &&Interference| one.rate_asked.is_none() && is_data(&one.operation);
        here.filter(is_answer).collect()
    }
}

impl Interference {
    /// `log` 5.4 K commits/s by 16 sessions, x0.11 of alone; of bursts how long one takes.
    ///
    /// * `by`: whose commits: `16 sessions`.
    pub(crate) fn told(&self, by: Option<String>) -> String {
        let name = finding::quoted(&self.stream);
        if let Some(burst) = self.burst {
            let seconds = |rate: f64| finding::text::shown(&Number::seconds(burst as f64 / rate));
            let (here, alone) = (seconds(self.rate), seconds(self.rate_alone));
            let what = self.burst_bytes.map_or_else(|| "a burst".to_owned(), words::size);
            return format!("{name} {what} in {here}, {alone} alone");
        }
        let rate = words::iops(self.rate);
        let unit = words::unit(&self.operation);
        let by = by.map_or(String::new(), |by| format!(" by {by}"));
        let ratio = Number::ratio(self.rate_ratio);
        let ratio = self.rate_ratio_ends.map_or(ratio, |(low, high)| ratio.within(low, high));
        format!("{name} {rate} {unit}{by}, {} of alone", finding::text::shown(&ratio))
    }

    /// Takes in what the suite sets, and judges.
    fn hold_to(&mut self, set: Option<SetRate>, view: &View<'_>) {
        if let Some(set) = set {
            let kept = |cell: u32| {
                let is_it = |row: &&CellView<'_>| {
                    row.cell.index == cell
                        && row.stream_name().is_none_or(|name| name == self.stream)
                };
                view.rows.iter().find(is_it).and_then(|row| set.kept(row))
            };
            (self.rate_kept, self.rate_kept_alone) = (kept(self.cell), kept(self.alone));
            self.rate_asked = Some(set.per_second);
            self.rate_is_set = self.rate_kept == Some(true) && self.rate_kept_alone == Some(true);
        }
        self.verdict = self.judged();
    }

    fn judged(&self) -> Verdict {
        let up_to =
            |ends: Option<(f64, f64)>| ends.is_some_and(|(_, high)| high < 1.0 + SAME_LATENCY);
        let average = match self.rate_asked {
            Some(_) => self.rate_is_set && up_to(self.mean_ratio_ends),
            // It takes what latencies it takes: how often it takes them the pauses decide.
            None if self.pauses => up_to(self.mean_ratio_ends),
            None => self.rate_ratio_ends.is_some_and(|(low, _)| low > 1.0 - SAME),
        };
        match () {
            () if self.cost() >= SAME.ln_1p() => Verdict::Suffers,
            () if !average => Verdict::NotKnown,
            () if up_to(self.p99_ratio_ends) => Verdict::Nothing,
            () => Verdict::NothingOnAverage,
        }
    }

    /// How much of its rate it loses beyond chance, in logarithms; 0 where the interval holds 1 or
    /// nobody knows it. Of a rate that the suite sets only where that was not kept.
    fn rate_lost(&self) -> f64 {
        let lost = self.rate_ratio_ends.is_some_and(|(_, high)| high < 1.0);
        match self.rate_asked {
            None if lost => -self.rate_ratio.ln(),
            Some(_) if lost && self.rate_kept == Some(false) => -self.rate_ratio.ln(),
            // Chance in few visits alone hides what is far below what was asked.
            Some(asked) if self.rate_kept == Some(false) && self.rate_kept_alone != Some(false) => {
                (asked / self.rate).ln().max(0.0)
            }
            _ => 0.0,
        }
    }

    /// How much longer its slowest hundredth takes, likewise.
    fn tail_grown(&self) -> f64 {
        let grown = self.p99_ratio_ends.is_some_and(|(low, _)| low > 1.0);
        self.p99_ratio.filter(|_| grown).map_or(0.0, f64::ln).max(0.0)
    }

    /// Whether the plan, not the storage alone, decides how many requests there are: then its rate
    /// says little.
    fn is_paced(&self) -> bool {
        self.rate_asked.is_some() || self.pauses
    }

    /// How much longer its requests take on average. In a closed loop its rate says that.
    fn mean_grown(&self) -> f64 {
        let grown = self.mean_ratio_ends.is_some_and(|(low, _)| low > 1.0);
        let told = self.mean_ratio.filter(|_| grown && self.is_paced());
        told.map_or(0.0, f64::ln).max(0.0)
    }

    /// How much worse it is than alone, in logarithms: of its rate or its latencies, the most.
    fn cost(&self) -> f64 {
        self.rate_lost().max(self.mean_grown()).max(self.tail_grown())
    }

    /// That an offered rate was not reached, here or alone; none where all were.
    pub fn not_reached(&self) -> Vec<Finding> {
        let position = |name: &str| self.streams.iter().position(|own| own == name);
        let here = self.fell_behind.iter();
        let here = here.map(|name| Subject::new(self.cell, position(name), name));
        let here = (!self.fell_behind.is_empty())
            .then(|| Finding::new(Code::OfferedNotReached).on_all(here, 0));
        let alone = self.fell_behind_alone.then(|| {
            let only = Subject::new(self.alone, None, &self.stream);
            Finding::new(Code::OfferedNotReachedAlone).on(only)
        });
        here.into_iter().chain(alone).collect()
    }

    /// What it costs, beside whom.
    pub fn finding(&self) -> Finding {
        let code = match self.verdict {
            Verdict::Suffers => Code::StreamSuffers,
            Verdict::Nothing => Code::StreamLosesNothing,
            Verdict::NothingOnAverage => Code::StreamLosesNothingOnAverage,
            Verdict::NotKnown if self.cost() > 0.0 => Code::StreamLosesSomething,
            Verdict::NotKnown => Code::StreamLossUnknown,
        };
        let position = self.streams.iter().position(|own| *own == self.stream);
        let place = self.place.iter().map(|(field, value)| format!("{field}={value}"));
        let place: Vec<Value> = place.map(Value::words).collect();
        let found = Finding::new(code)
            .on(Subject::new(self.cell, position, &self.stream))
            .with("operation", Value::words(&self.operation))
            .with_some("place", (!place.is_empty()).then_some(place))
            .with("beside", Value::names(&self.beside));
        self.with_tail(self.with_mean(self.with_rate(found)))
    }

    /// Its rate here and alone, and what that says.
    fn with_rate(&self, found: Finding) -> Finding {
        let found = found
            .with("rate", Number::iops(self.rate))
            .with("rate_alone", Number::iops(self.rate_alone))
            .with("ratio", ratio(self.rate_ratio, self.rate_ratio_ends));
        let lost = self.rate_lost() > 0.0;
        if let Some(asked) = self.rate_asked {
            return found
                .with("asked", Number::iops(asked))
                .with("kept", self.rate_is_set)
                .with("kept_alone", self.rate_kept_alone == Some(true))
                .with("missed", self.rate_kept == Some(false))
                .with("missed_alone", self.rate_kept_alone == Some(false))
                .with("lost", lost);
        }
        let ends = self.rate_ratio_ends;
        // Faster than alone, or slower by chance.
        let faster = !lost && ends.is_some_and(|(low, _)| low > 1.0);
        let near = ends.is_some_and(|(low, high)| low > 1.0 - SAME && high >= 1.0);
        found
            .with("pauses", self.pauses)
            .with("burst", self.burst.is_some())
            .with("faster", faster)
            .with("chance", ends.is_some() && !lost && !faster && !near)
            .with("single", ends.is_none() && !lost)
    }

    /// How long its requests take on average, where its rate does not say it.
    fn with_mean(&self, found: Finding) -> Finding {
        let known = self.mean_ns.zip(self.mean_ratio).filter(|_| self.is_paced());
        let Some((ns, mean_ratio)) = known else { return found };
        found
            .with("mean", Number::seconds(ns / 1e9))
            .with("mean_ratio", ratio(mean_ratio, self.mean_ratio_ends))
            .with("mean_chance", may_be_chance(self.mean_ratio_ends))
            .with("mean_single", self.mean_ratio_ends.is_none())
    }

    fn with_tail(&self, found: Finding) -> Finding {
        let (Some(ns), Some(p99_ratio)) = (self.p99_ns, self.p99_ratio) else { return found };
        found
            .with("tail", Number::ns(ns))
            .with("tail_ratio", ratio(p99_ratio, self.p99_ratio_ends))
            .with("tail_chance", may_be_chance(self.p99_ratio_ends))
            .with("tail_single", self.p99_ratio_ends.is_none())
    }
}

fn ratio(middle: f64, ends: Option<(f64, f64)>) -> Number {
    let ratio = Number::ratio(middle);
    ends.map_or(ratio, |(low, high)| ratio.within(low, high))
}

/// Whether the interval of a ratio holds 1, and is not so near to it that chance is no matter.
fn may_be_chance(ends: Option<(f64, f64)>) -> bool {
    ends.is_some_and(|(low, high)| {
        let is_near = low > 1.0 - SAME && high < 1.0 + SAME;
        !is_near && low <= 1.0 && 1.0 <= high
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use finding::texts;
    use record::{CellRecord, OpRecord, Run, StreamPlan, TargetKind, VisitRecord};
    use units::Nanos;

    use super::*;
    use crate::freeze::tests::{run, suite_text, visit};

    /// Ten seconds of a stream: so many requests, of which the last hundredth takes longer.
    fn stream(name: &str, requests: u64, slow: Nanos) -> StreamRecord {
        let mut template = visit(0, "read", &[]).streams.remove(0);
        let mut latency = LatencyHistogram::new();
        for request in 0..requests {
            latency.record(if request % 50 == 0 { slow } else { Nanos::micros(100) });
        }
        let op: &mut OpRecord = &mut template.ops[0];
        (op.requests, op.latency) = (requests, latency);
        op.latency_ns_sum = 100_000 * u128::from(requests);
        template.name = name.to_owned();
        template
    }

    fn stay(cell: u32, repeat: u32, streams: Vec<StreamRecord>) -> VisitRecord {
        let elapsed_ns = 10_000_000_000;
        let order = cell * 10 + repeat;
        VisitRecord { cell, repeat, elapsed_ns, streams, ..visit(order, "read", &[]) }
    }

    /// `a` alone, `b` alone, both; three visits each.
    pub(crate) fn both(rate_beside: u64, slow_beside: Nanos) -> Run {
        let mut visits = Vec::new();
        for repeat in 0..3u32 {
            let noise = u64::from(repeat) * 10;
            let fast = Nanos::millis(1);
            visits.push(stay(0, repeat, vec![stream("a", 10_000 + noise, fast)]));
            visits.push(stay(1, repeat, vec![stream("b", 500 + noise, fast)]));
            let a = stream("a", rate_beside + noise, slow_beside);
            visits.push(stay(2, repeat, vec![a, stream("b", 500 + noise, fast)]));
        }
        let mut run = run(TargetKind::File, visits);
        let names: [&[&str]; 3] = [&["a"], &["b"], &["a", "b"]];
        let plan = |name: &&str| StreamPlan {
            name: (*name).to_owned(),
            op: "read".to_owned(),
            block_bytes: Some(4096),
            threads: 1,
            queue_depth: 1,
        };
        run.cells = (0u32..)
            .zip(names)
            .map(|(index, names)| CellRecord {
                index,
                phase: "p".to_owned(),
                coordinates: vec![("streams".to_owned(), names.join("+"))],
                streams: names.iter().map(plan).collect(),
                impossible: None,
            })
            .collect();
        run
    }

    #[test]
    fn rate_and_tail_are_held_against_the_stream_alone() {
        let run = both(2_500, Nanos::millis(8));
        let found = interference(&View::new(&run)).found;
        let names: Vec<&str> = found.iter().map(|one| one.stream.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let a = &found[0];
        assert_eq!((a.cell, a.alone, a.beside.as_slice()), (2, 0, &["b".to_owned()][..]));
        assert!((a.rate_ratio - 0.25).abs() < 0.002, "{}", a.rate_ratio);
        let (low, high) = a.rate_ratio_ends.unwrap();
        assert!(low < 0.25 && 0.25 < high && high - low < 0.02, "{low} {high}");
        assert!((a.p99_ratio.unwrap() - 8.0).abs() < 0.1, "{:?}", a.p99_ratio);
        let b = &found[1];
        assert!((b.rate_ratio - 1.0).abs() < 1e-9 && b.p99_ratio == Some(1.0));
        let said = texts(&interference(&View::new(&run)).findings());
        assert!(said[0].starts_with("`a` (read), worst beside `b`: x0.25"), "{said:?}");
        assert!(said[1].starts_with("`b` (read) has no relevant loss"), "{said:?}");
    }

    /// The same with these rates beside and alone, visit by visit.
    fn noisy(beside: [u64; 3], alone: [u64; 3]) -> Run {
        let mut run = both(1_000, Nanos::millis(1));
        for visit in &mut run.visits {
            let k = visit.repeat as usize;
            let rate = if visit.cell == 0 { alone[k] } else { beside[k] };
            if visit.cell != 1 {
                visit.streams[0] = stream("a", rate, Nanos::millis(1));
            }
        }
        run
    }

    #[test]
    fn what_chance_explains_is_no_cost() {
        let said = |run: &Run| interference(&View::new(run)).findings()[0].text();
        // 0.83 of the rate alone, of visits that differ by as much among themselves.
        let chance = said(&noisy([800, 1_000, 700], [1_200, 900, 950]));
        assert!(
            chance.starts_with("Whether `a` (read) loses anything beside `b` is not known"),
            "{chance}"
        );
        assert!(chance.contains("which may be chance"), "{chance}");
        // Surely less, and perhaps by no more than is worth naming.
        let little = said(&noisy([950, 960, 970], [1_000, 1_001, 1_002]));
        assert!(
            little.starts_with(
                "`a` (read) has some loss beside `b`; whether it is relevant is unknown: x0.959"
            ),
            "{little}"
        );
        let lost = said(&noisy([830, 831, 832], [1_000, 1_001, 1_002]));
        assert!(lost.starts_with("`a` (read), worst beside `b`: x0.83"), "{lost}");
        // One visit each knows of no chance.
        let mut single = noisy([830, 831, 832], [1_000, 1_001, 1_002]);
        single.visits.retain(|visit| visit.repeat == 0);
        assert!(
            said(&single).contains("of single visits, which may be chance"),
            "{}",
            said(&single)
        );
    }

    /// A suite that sets the rate of `a`.
    fn set_rate(rate: u32, arrivals: &str) -> String {
        let phase = format!(
            r#"
[[phase]]
name = "p"
grid.streams = ["a", "b", ["a", "b"]]
[[phase.stream]]
name = "a"
operation = "read"
rate = {rate}
arrivals = "{arrivals}"
[[phase.stream]]
name = "b"
operation = "read"
"#
        );
        suite_text("", &phase)
    }

    #[test]
    fn a_rate_that_the_suite_sets_and_that_is_kept_is_no_cost() {
        let mut run = noisy([830, 831, 832], [1_000, 1_001, 1_002]);
        run.header.suite_text = set_rate(80, "fixed");
        // What the suite calls all streams of the phase together.
        run.cells[2].coordinates[0].1 = "all".to_owned();
        let found = interference(&View::new(&run));
        assert!(found.found[0].rate_is_set && !found.found[1].rate_is_set, "{found:?}");
        let said = texts(&found.findings());
        let wanted = "`a` (read) has no relevant loss on average beside `b`: the suite sets the \
                      stream's rate, 80.0 a second, and it reached that (83.1 there, 100 alone)";
        assert!(said[0].starts_with(wanted), "{said:?}");
        // One that was not kept is what the storage did.
        for visit in run.visits.iter_mut().filter(|visit| visit.cell == 2) {
            visit.streams[0].backlog = 2_000;
        }
        let said = texts(&interference(&View::new(&run)).findings());
        let wanted = "`a` (read), worst beside `b`: the suite sets the stream's rate, 80.0 a \
                      second, and it did not reach that there (83.1 there, 100 alone, x0.83";
        assert!(said[0].starts_with(wanted), "{said:?}");
    }

    #[test]
    fn few_requests_a_visit_are_no_cost_by_their_ends() {
        let with_ends = |beside: u64, alone: u64| {
            let mut run = noisy([beside; 3], [alone; 3]);
            for visit in &mut run.visits {
                visit.streams[0].ops[0].latency_ns_sum = u128::from(visit.elapsed_ns);
            }
            interference(&View::new(&run)).found.remove(0)
        };
        // Of a visit with four or five the fifth came just before or just after the end.
        let few = with_ends(4, 5);
        let (low, high) = few.rate_ratio_ends.unwrap();
        assert!(low < 0.6 && high > 1.1, "{few:?}");
        assert_eq!(few.verdict, Verdict::NotKnown);
        assert_eq!(with_ends(4, 50).verdict, Verdict::Suffers);
        assert_eq!(with_ends(800, 1_000).verdict, Verdict::Suffers);
    }

    /// A suite in which `a` pauses after each burst of so many.
    fn bursts(burst: u32) -> String {
        set_rate(1, "fixed")
            .replace("rate = 1\narrivals = \"fixed\"", &format!("think = \"1s\"\nburst = {burst}"))
    }

    #[test]
    fn of_bursts_the_pauses_are_left_out() {
        // As many bursts in a visit, which take 4 s of it, and 2 s alone.
        let mut run = noisy([400; 3], [400; 3]);
        run.cells[2].coordinates[0].1 = "all".to_owned();
        run.header.suite_text = bursts(100);
        for visit in &mut run.visits {
            let length_ns = if visit.cell == 0 { 8_000_000_000 } else { 6_000_000_000 };
            let gap = record::Gap { start_ns: 1_000_000_000, length_ns };
            visit.streams[0].workers[0].gaps = vec![gap];
        }
        let all = interference(&View::new(&run));
        let found = &all.found[0];
        assert_eq!(
            (found.burst, found.burst_bytes, found.pauses),
            (Some(100), Some(409_600), false)
        );
        assert!((found.rate_ratio - 0.5).abs() < 0.01, "{found:?}");
        assert_eq!(all.together()[0].told(None), "`a` 400 KiB in 1 s, 500 ms alone");
        let mut run = noisy([400; 3], [500; 3]);
        run.cells[2].coordinates[0].1 = "all".to_owned();
        run.header.suite_text = bursts(1);
        let found = interference(&View::new(&run)).found.remove(0);
        assert!(found.rate_ratio_ends.unwrap().1 < 0.85, "{found:?}");
    }

    #[test]
    fn a_stream_that_pauses_is_told_by_its_latency() {
        let mut run = noisy([400, 401, 402], [402, 400, 401]);
        run.header.suite_text = bursts(1);
        run.cells[2].coordinates[0].1 = "all".to_owned();
        for visit in &mut run.visits {
            let each = if visit.cell == 2 { 500_000 } else { 100_000 + u128::from(visit.repeat) };
            let op = &mut visit.streams[0].ops[0];
            op.latency_ns_sum = each * u128::from(op.requests);
        }
        let found = interference(&View::new(&run));
        assert_eq!(found.found[0].verdict, Verdict::Suffers, "{:?}", found.found[0]);
        let said = &found.findings()[0].text();
        assert!(said.starts_with("`a` (read), worst beside `b`: x1.00"), "{said}");
        assert!(said.contains("with the pauses that the suite asks for"), "{said}");
        assert!(said.contains("its requests take 500 us on average, x5.00"), "{said}");
    }

    #[test]
    fn a_ratio_of_percentiles_lies_in_its_interval() {
        // One visit alone has a far longer tail, and more requests than the others together.
        let mut run = both(10_000, Nanos::millis(2));
        for visit in run.visits.iter_mut().filter(|visit| visit.cell == 0 && visit.repeat == 0) {
            visit.streams[0] = stream("a", 90_000, Nanos::millis(60));
        }
        let found = interference(&View::new(&run)).found.remove(0);
        let (ratio, (low, high)) = (found.p99_ratio.unwrap(), found.p99_ratio_ends.unwrap());
        assert!((low..=high).contains(&ratio), "{low} {ratio} {high}");
        let geometric = (1.0f64 * 1.0 * 60.0).cbrt();
        assert!((ratio * geometric / 2.0 - 1.0).abs() < 0.02, "{ratio}");
    }

    #[test]
    fn of_a_set_rate_too_few_requests_tell_nothing() {
        // 8 to 12 of 10 expected in a visit, at random moments.
        let mut run = noisy([8, 12, 9], [11, 9, 10]);
        run.header.suite_text = set_rate(1, "poisson");
        run.cells[2].coordinates[0].1 = "all".to_owned();
        let found = interference(&View::new(&run));
        let a = &found.found[0];
        assert_eq!((a.rate_asked, a.rate_kept, a.rate_kept_alone), (Some(1.0), None, None));
        assert_eq!((a.rate_is_set, a.verdict), (false, Verdict::NotKnown));
        let said = texts(&found.findings());
        let wanted = "Whether `a` (read) loses anything beside `b` is not known: the suite sets the \
                      stream's rate, 1 a second; there are too few requests to tell whether it did \
                      (0.95 there, 1 alone)";
        assert!(said[0].starts_with(wanted), "{said:?}");
        assert!(!said[0].contains("no relevant loss"), "{said:?}");
        // Far below it: that is the finding, whatever chance does.
        run.header.suite_text = set_rate(10, "poisson");
        let found = interference(&View::new(&run));
        assert_eq!(found.found[0].rate_kept, Some(false));
        assert_eq!(found.found[0].rate_kept_alone, Some(false));
        let said = texts(&found.findings());
        assert!(said[0].contains("it reached that neither there nor alone"), "{said:?}");
    }

    #[test]
    fn a_set_rate_that_is_kept_at_a_cost_is_told_by_its_mean_latency() {
        let mut run = noisy([400, 401, 399], [400, 402, 398]);
        run.header.suite_text = set_rate(40, "fixed");
        run.cells[2].coordinates[0].1 = "all".to_owned();
        for visit in &mut run.visits {
            let each = if visit.cell == 2 { 540_000 } else { 78_000 + u128::from(visit.repeat) };
            let op = &mut visit.streams[0].ops[0];
            op.latency_ns_sum = each * u128::from(op.requests);
        }
        let found = interference(&View::new(&run));
        let a = &found.found[0];
        assert_eq!((a.rate_is_set, a.verdict), (true, Verdict::Suffers));
        assert!((a.mean_ratio.unwrap() - 6.92).abs() < 0.01, "{a:?}");
        let said = texts(&found.findings());
        assert!(
            said[0].contains(
                "it reached that (40.0 there, 40.0 alone); its requests take 540 us on average, x6.92"
            ),
            "{said:?}"
        );
    }

    #[test]
    fn an_offered_rate_that_was_not_reached_is_named() {
        let mut run = both(2_500, Nanos::millis(8));
        let reached = interference(&View::new(&run));
        assert!(reached.found.iter().all(|one| one.not_reached().is_empty()), "{reached:?}");
        // Of 500 and more in each visit beside, nearly 4 in 5 of what was due was never issued.
        for visit in run.visits.iter_mut().filter(|visit| visit.cell == 2) {
            visit.streams[1].backlog = 2_000;
        }
        let found = interference(&View::new(&run));
        assert!(found.found.iter().all(|one| one.fell_behind == ["b"]), "{found:?}");
        assert!(found.found.iter().all(|one| !one.fell_behind_alone), "{found:?}");
        let said = texts(&found.findings());
        let told =
            said.iter().filter(|one| one.contains("`b` did not reach the offered rate there"));
        assert_eq!(told.count(), 1, "{said:?}");
        // A few that arrived just before the end are no overload.
        for visit in run.visits.iter_mut().filter(|visit| visit.cell == 2) {
            visit.streams[1].backlog = 3;
        }
        assert!(interference(&View::new(&run)).found.iter().all(|o| o.fell_behind.is_empty()));
        // What the generator calls overloaded is, however little it left.
        let text = "stream `b`: 400 requests a second were offered, 10 came back".to_owned();
        run.visits[2].warnings.push(record::Warning::new("overloaded", text));
        let found = interference(&View::new(&run));
        assert!(found.found.iter().all(|one| one.fell_behind == ["b"]), "{found:?}");
    }

    #[test]
    fn a_stream_that_never_ran_alone_has_no_figure() {
        let mut run = both(2_500, Nanos::millis(8));
        run.visits.retain(|visit| visit.cell != 0);
        let found = interference(&View::new(&run)).found;
        assert!(found.iter().all(|one| one.stream == "b"), "{found:?}");
        let mut run = both(0, Nanos::millis(8));
        run.visits.truncate(2);
        assert_eq!(interference(&View::new(&run)), Interferences::default());
    }
}
