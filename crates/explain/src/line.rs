//! The load line of a run: the highest rate of a mix at which a service level holds.
//!
//! What comes next during the run and what is said of it afterwards are by the same ladder
//! ([`plan::ladder`]), fed with the same visits: a stored run says the same line again.

mod late;

use std::collections::BTreeMap;

use finding::{Code, Finding, Number, Question, Section, Value};
use plan::ladder::{Found, Line, Load, PIECE, breaks};
use record::{RunState, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::interval::student_quantile;
use stats::{LatencyHistogram, poisson};
use units::Nanos;

pub use late::{
    Climb, HOLD, LOAD, MixTerms, StreamLimit, counts, load_of, looks_for_line, replayed,
};

use crate::answer::disturbed_by;
use crate::explanation;
use crate::view::View;
use crate::whole::is_failed;

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.line/1";
/// The suite whose rates are raised, if no other is named.
pub const SUITE: &str = "load-line";
/// What is kept free for a rebuild, a lost replica, and growth.
const KEPT_FREE: f64 = 0.3;
/// Of the verdict on a hold, by its pieces.
const CONFIDENCE: f64 = 0.95;
/// Of what was never seen there may be so many with 95 %: -ln 0.05.
const NONE_SEEN: f64 = 3.0;

/// What is known of a load line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Known to 5 %.
    Line,
    /// Known less well.
    NotConverged,
    /// No rate holds the level.
    None,
    /// Every rate that was asked does.
    Above,
    /// Between two rates, by single visits.
    Between,
    /// Only held at the rate asked for: the level holds.
    Carried,
    /// It does not.
    NotCarried,
    /// It may.
    CannotTell,
}

/// A load line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadLine {
    /// Always `plimsoll.line/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The place as the user named it.
    pub place: String,
    /// Its run.
    pub run: String,
    /// The level, as `--level` takes it.
    pub level: String,
    /// What is known.
    pub standing: Standing,
    /// Transactions per second at which the level breaks, with the interval; null where no line is
    /// known.
    pub line: Option<Number>,
    /// The low end, less what is kept free.
    pub spare: Option<Number>,
    /// The limit that breaks first, of `limits`.
    pub first: Option<usize>,
    /// Each limit.
    pub limits: Vec<LimitLine>,
    /// A backlog grows from between these transactions per second.
    pub capacity: Option<Number>,
    /// Freezes: the line is that between them. Null where there were none.
    pub freezes: Option<LineFreezes>,
    /// The hold.
    pub held: Option<Held>,
    /// Requests of each stream by transaction.
    pub streams: BTreeMap<String, f64>,
    /// Each rate that was played, rising: what a figure of response time against rate draws.
    pub rates: Vec<RatePoint>,
    /// The answer.
    pub answer: Section,
}

/// A limit, and its own line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LimitLine {
    /// The stream.
    pub stream: String,
    /// `99.0` for p99.
    pub percent: f64,
    /// The time that so many may not exceed.
    pub within_ns: u64,
    /// Its own line; null where it is too far above the others' to be known.
    pub line: Option<Number>,
}

/// What became of a hold.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Held {
    /// Transactions per second.
    pub load: f64,
    /// How long it was to be.
    pub time_ns: u64,
    /// When the level had been broken for good, from the start; null where it held.
    pub broke_at_ns: Option<u64>,
    /// Requests of all streams within it: larger bursts are not excluded.
    pub requests: u64,
    /// Freezes in it.
    pub freezes: u64,
    /// Late share of each limit over the whole, of `limits`.
    pub late_shares: Vec<f64>,
}

/// Freezes, apart from the rates that were played.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LineFreezes {
    /// How many.
    pub count: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// Measured time that they were looked for in, ns.
    pub watched_ns: u64,
    /// The limit that they use up most of, of `limits`.
    pub limit: usize,
    /// Share of its requests that they made late, with an interval of 95 % by their number.
    pub late: Number,
    /// Share that it allows.
    pub allowed: f64,
}

impl LineFreezes {
    /// In visits at rates up to the line's; `None` where there were none.
    ///
    /// * `most`: transactions per second above which load alone makes requests late.
    fn of(view: &View<'_>, terms: &MixTerms, most: f64) -> Option<Self> {
        let visit = |visit: &'_ VisitRecord| {
            let cell = view.run.cells.iter().find(|cell| cell.index == visit.cell)?;
            let load = load_of(cell).filter(|load| load.per_second() <= most)?;
            (cell.phase != HOLD && counts(visit)).then_some(load)
        };
        let visits = view.run.visits.iter().filter_map(|v| Some((v, visit(v)?)));
        let visits: Vec<(&VisitRecord, Load)> = visits.collect();
        let of = |(limit, one): (usize, &StreamLimit)| {
            let all = visits.iter().flat_map(|(visit, _)| one.freezes(visit));
            let lengths: Vec<u64> = all.map(|(from, to)| to - from).collect();
            let count = lengths.len() as u64;
            let (mut due, mut late) = (0.0, 0.0);
            for (visit, load) in &visits {
                let seen = one.count(visit, *load, time_of(visit));
                due += seen.0 as f64;
                late += if one.is_frozen(visit) { seen.1 as f64 } else { 0.0 };
            }
            let share = late / f64::max(due, 1.0);
            // Each makes as many late as they do on average.
            let number = poisson::rate(count, count as f64, CONFIDENCE)?;
            Some(Self {
                count,
                longest_ns: lengths.iter().max()?.saturating_mul(1_000_000),
                watched_ns: visits.iter().map(|(visit, _)| visit.elapsed_ns).sum(),
                limit,
                late: Number::share(share).within(share * number.low, share * number.high),
                allowed: one.limit.allowance(),
            })
        };
        let used = |one: &Self| one.late.value / one.allowed;
        let all = terms.limits.iter().enumerate().filter_map(of);
        all.max_by(|a, b| used(a).total_cmp(&used(b)))
    }

    /// More late than is allowed, whatever the rate.
    fn break_it(&self) -> bool {
        self.late.low.is_some_and(|low| low > self.allowed)
    }

    /// Whether they do is not known.
    fn may_break_it(&self) -> bool {
        !self.break_it() && self.late.high.is_some_and(|high| high > self.allowed / 2.0)
    }
}

/// What was seen at one rate, in visits without a freeze where there are any.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RatePoint {
    /// Transactions per second that were offered.
    pub load: f64,
    /// Visits.
    pub visits: u32,
    /// Late share of each limit, of `limits`.
    pub late_shares: Vec<f64>,
    /// 99th percentile of each limit's stream in ns, of `limits`; null with fewer than a hundred.
    pub p99_ns: Vec<Option<u64>>,
}

/// The load line of a run that looked for one.
pub fn line(view: &View<'_>) -> Option<LoadLine> {
    of(view, &explanation::sections(view))
}

/// * `sections`: what else was found in it.
pub(crate) fn of(view: &View<'_>, sections: &[Section]) -> Option<LoadLine> {
    let run = view.run;
    if !looks_for_line(run) {
        return None;
    }
    let terms = MixTerms::of(view.suite()?).ok()?;
    let ladder = replayed(run, &terms);
    let held = hold(view, &terms);
    let rates = rates(view, &terms);
    // Of one that was only to be held there is no other rate.
    let is_hold_alone = run.cells.iter().all(|cell| cell.phase == HOLD || load_of(cell).is_none());
    let found = ladder.found();
    let known = match &found {
        Found::Line(line) if !is_hold_alone => Some(line),
        _ => None,
    };
    let freezes = LineFreezes::of(view, &terms, known.map_or(f64::INFINITY, |line| line.high));
    let standing = match &found {
        _ if freezes.as_ref().is_some_and(LineFreezes::break_it) => Standing::None,
        _ if is_hold_alone => held.as_ref().map_or(Standing::CannotTell, Holding::verdict),
        Found::Line(line) if line.converged => Standing::Line,
        Found::Line(_) => Standing::NotConverged,
        Found::None(_) => Standing::None,
        Found::Above(_) => Standing::Above,
        Found::Between(..) => Standing::Between,
    };
    let limit = |(k, one): (usize, &StreamLimit)| LimitLine {
        stream: one.name.clone(),
        percent: one.limit.percent,
        within_ns: one.limit.within.get(),
        line: known
            .and_then(|line| line.each.get(k).copied().flatten())
            .map(|root| Number::iops(root.root.exp()).within(root.low.exp(), root.high.exp())),
    };
    let limits = terms.limits.iter().enumerate().map(limit).collect();
    let capacity = ladder.capacity().map(|(low, high)| {
        let (low, high) = (low.per_second(), high.per_second());
        Number::iops((low * high).sqrt()).within(low, high)
    });
    // What moves rates is what a line is made of.
    let asked = |question| matches!(question, Question::Run | Question::Caches);
    let disturbed = disturbed_by(sections, asked);
    let (terms, held_at, freezes_at) = (&terms, held.as_ref(), freezes.as_ref());
    let told = Told { view, terms, held: held_at, freezes: freezes_at, capacity, disturbed };
    let mut findings = told.failed();
    match (is_hold_alone, &held) {
        (true, Some(held)) => findings.push(told.carried(held, standing)),
        (true, None) => findings.push(told.not_held()),
        _ => findings.extend(told.findings(&found)),
    }
    let by = Some(&told.disturbed).filter(|by| !by.is_empty());
    findings.extend(by.map(|by| Finding::new(Code::AnswerDisturbed).with("by", by.clone())));
    Some(LoadLine {
        schema: SCHEMA.to_owned(),
        place: run.header.target.given.clone(),
        run: run.header.id.clone(),
        level: told.level(),
        standing,
        line: known.map(number),
        spare: known.map(|line| Number::iops(line.low * (1.0 - KEPT_FREE))),
        first: known.map(|line| line.first),
        limits,
        capacity,
        freezes,
        held: held.map(|held| held.held),
        streams: terms.streams.iter().cloned().collect(),
        rates,
        answer: Section { question: Question::Answer, findings },
    })
}

fn number(line: &Line) -> Number {
    Number::iops(line.rate).within(line.low, line.high)
}

/// A hold with what its verdict needs.
struct Holding {
    held: Held,
    /// By limit the late share, and its half-width by pieces, both by the allowance.
    used: Vec<(f64, f64)>,
}

impl Holding {
    /// Broken in a row is not carried, whatever the mean; else the mean share with its interval.
    fn verdict(&self) -> Standing {
        let is_over = self.used.iter().any(|(used, half)| used - half > 1.0);
        let may_be = self.used.iter().any(|(used, half)| used + half > 1.0);
        match () {
            () if self.held.broke_at_ns.is_some() || is_over => Standing::NotCarried,
            () if may_be => Standing::CannotTell,
            () => Standing::Carried,
        }
    }
}

fn hold(view: &View<'_>, terms: &MixTerms) -> Option<Holding> {
    let run = view.run;
    let is_hold = |visit: &&VisitRecord| {
        let cell = run.cells.iter().find(|cell| cell.index == visit.cell);
        cell.is_some_and(|cell| cell.phase == HOLD) && counts(visit)
    };
    let visit = run.visits.iter().rev().find(is_hold)?;
    let cell = run.cells.iter().find(|cell| cell.index == visit.cell)?;
    let load = load_of(cell)?;
    let time = cell.coordinates.iter().find(|(axis, _)| axis == HOLD)?.1.parse().ok()?;
    let over = terms.pieces(visit, load, time);
    let broke = breaks(&over);
    let of = |one: &StreamLimit| {
        let (due, late) = one.count(visit, load, time);
        let (due, share) = (due as f64, late as f64 / due.max(1) as f64);
        // So many without a late one, or with one more, say with 95 % no more than this.
        let half = one.spread(visit, over.len()).max(NONE_SEEN / due);
        let allowance = one.limit.allowance();
        (share, (share / allowance, half / allowance))
    };
    let (shares, used): (Vec<f64>, Vec<_>) = terms.limits.iter().map(of).unzip();
    let per: f64 = terms.streams.iter().map(|(_, requests)| requests).sum();
    let requests = (load.per_second() * per * time.as_secs_f64()) as u64;
    let held = Held {
        load: load.per_second(),
        time_ns: time.get(),
        broke_at_ns: broke.map(|piece| PIECE.get().saturating_mul(piece as u64)),
        requests,
        freezes: terms.limits.iter().map(|one| one.freezes(visit).len() as u64).max().unwrap_or(0),
        late_shares: shares,
    };
    Some(Holding { used, held })
}

impl StreamLimit {
    /// Half-width of the mean late share over the pieces of a hold.
    fn spread(&self, visit: &VisitRecord, pieces: usize) -> f64 {
        let shares: Vec<f64> = (0..pieces).filter_map(|piece| self.share(visit, piece)).collect();
        let n = shares.len() as f64;
        let mean = shares.iter().sum::<f64>() / n.max(1.0);
        let squares = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
        let t = student_quantile(0.5 + CONFIDENCE / 2.0, n - 1.0);
        t.map_or(1.0, |t| t * (squares / (n - 1.0) / n).sqrt())
    }
}

/// How long its load was played.
fn time_of(visit: &VisitRecord) -> Nanos {
    Nanos::new(visit.load_ns.unwrap_or(visit.elapsed_ns))
}

/// What was seen at each rate, holds left out.
fn rates(view: &View<'_>, terms: &MixTerms) -> Vec<RatePoint> {
    let mut points = Vec::new();
    for row in view.run.cells.iter().filter(|cell| cell.phase != HOLD) {
        let Some(load) = load_of(row) else { continue };
        let made = view.run.visits.iter().filter(|v| v.cell == row.index && counts(v));
        let (frozen, between): (Vec<&VisitRecord>, Vec<_>) =
            made.partition(|visit| terms.is_frozen(visit));
        let visits = if between.is_empty() { frozen } else { between };
        if visits.is_empty() {
            continue;
        }
        let share = |one: &StreamLimit| {
            let counted = visits.iter().map(|visit| one.count(visit, load, time_of(visit)));
            let (due, late) = counted.fold((0, 0), |(d, l), (due, late)| (d + due, l + late));
            late as f64 / due.max(1) as f64
        };
        let p99 = |one: &StreamLimit| {
            let mut all = LatencyHistogram::new();
            visits.iter().filter_map(|v| one.latency(v)).for_each(|part| all.merge(part));
            all.quantile_with(0.99, 1).map(Nanos::get)
        };
        points.push(RatePoint {
            load: load.per_second(),
            visits: u32::try_from(visits.len()).unwrap_or(u32::MAX),
            late_shares: terms.limits.iter().map(share).collect(),
            p99_ns: terms.limits.iter().map(p99).collect(),
        });
    }
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    points
}

/// What the answer is made of.
struct Told<'a> {
    view: &'a View<'a>,
    terms: &'a MixTerms,
    held: Option<&'a Holding>,
    freezes: Option<&'a LineFreezes>,
    capacity: Option<Number>,
    disturbed: Vec<Value>,
}

impl Told<'_> {
    fn level(&self) -> String {
        let level = self.view.suite().and_then(|suite| suite.level.as_ref());
        level.map_or_else(String::new, ToString::to_string)
    }

    fn place(&self) -> Value {
        Value::name(&self.view.run.header.target.given)
    }

    fn interrupted(&self) -> bool {
        matches!(self.view.run.header.state, RunState::Interrupted | RunState::Running)
    }

    /// Visits that failed: before anything else.
    fn failed(&self) -> Vec<Finding> {
        let failed = self.view.run.visits.iter().filter(|visit| is_failed(visit)).count();
        let found = Finding::new(Code::PlaceFailed).with("place", self.place());
        Vec::from_iter((failed > 0).then(|| found.with("failed", failed)))
    }

    /// What comes with a rate of transactions: the other streams' rates.
    fn streams(&self, rate: f64) -> Value {
        let one = |(name, requests): &(String, f64)| {
            format!("{} {name}", finding::numbers::iops(rate * requests))
        };
        let all: Vec<String> = self.terms.streams.iter().map(one).collect();
        Value::words(finding::numbers::list(&all))
    }

    /// A freeze that was watched for long enough to be excluded: with 95 % none of length d came
    /// as often as once per d / allowance in a time of 3 d / allowance.
    fn freeze(&self) -> Number {
        let watched = self.view.run.visits.iter().filter(|visit| counts(visit));
        let watched: f64 = watched.map(|visit| visit.elapsed_ns as f64 / 1e9).sum();
        let allowances = self.terms.limits.iter().map(|one| one.limit.allowance());
        Number::seconds(watched * allowances.fold(1.0, f64::min) / 3.0)
    }

    fn findings(&self, found: &Found) -> Vec<Finding> {
        let level = || Value::words(self.level());
        let of = |code: Code| Finding::new(code).with("place", self.place()).with("level", level());
        let rate = |load: Load| Number::iops(load.per_second());
        match found {
            Found::None(load) => vec![of(Code::LineNone).with("load", rate(*load))],
            Found::Above(load) => vec![of(Code::LineAbove).with("load", rate(*load))],
            Found::Between(low, high) => vec![
                of(Code::LineBetween)
                    .with_some("low", low.map(rate))
                    .with_some("high", high.map(rate))
                    .with("interrupted", self.interrupted()),
            ],
            Found::Line(line) => self.of_line(line),
        }
    }

    fn of_line(&self, line: &Line) -> Vec<Finding> {
        let reach = finding::numbers::reach((line.high / line.low).sqrt() - 1.0);
        let unsure = (!line.converged).then_some(Value::words(&reach));
        let frozen = self.freezes.filter(|freezes| freezes.break_it());
        let mut found = vec![match frozen {
            Some(freezes) => self.of_freezes(Code::LineFrozen, freezes),
            None => Finding::new(Code::LineLoad)
                .with("place", self.place())
                .with("low", Number::iops(line.low))
                .with("streams", self.streams(line.low))
                .with("spare", Number::iops(line.low * (1.0 - KEPT_FREE)))
                .with_some("unsure", unsure),
        }];
        found.extend(self.view.suite().filter(|suite| suite.name != SUITE).map(|_| {
            let now = self.terms.base;
            Finding::new(Code::LineLike)
                .with("times", Number::times(line.low / now))
                .with("now", Number::iops(now))
        }));
        let first = self.terms.limits.get(line.first).map(StreamLimit::text).unwrap_or_default();
        let other = |(k, root): (usize, &Option<stats::curve::Root>)| {
            let root = (*root).filter(|_| k != line.first)?;
            let rate = finding::text::shown(&Number::iops(root.root.exp()));
            let name = self.terms.limits.get(k)?.text();
            Some(Value::record([("name", Value::words(name)), ("rate", Value::words(rate))]))
        };
        let others: Vec<Value> = line.each.iter().enumerate().filter_map(other).collect();
        let others = (!others.is_empty()).then_some(Value::List(others));
        found.push(
            Finding::new(Code::LineLevel)
                .with("rate", number(line))
                .with("level", Value::words(self.level()))
                .with("first", Value::words(first))
                .with("between", self.freezes.is_some())
                .with_some("others", others),
        );
        // One line in place of another, so that the answer stays as short.
        let some = self.freezes.filter(|_| frozen.is_none());
        found.extend(some.map(|freezes| self.of_freezes(Code::LineFreezes, freezes)));
        let capacity = self.capacity.filter(|_| some.is_none());
        found.extend(capacity.map(|capacity| {
            let end = |end: Option<f64>| Number::iops(end.unwrap_or(capacity.value));
            Finding::new(Code::LineCapacity)
                .with("low", end(capacity.low))
                .with("high", end(capacity.high))
        }));
        found.push(self.of_hold());
        let rare = self.terms.limits.iter().any(|one| one.limit.allowance() < 0.005);
        found.push(
            Finding::new(Code::LineSure)
                .with("rounds", line.rounds)
                .with("rare", rare)
                .with("converged", line.converged)
                .with("reach", Value::words(reach))
                .with("interrupted", self.interrupted())
                .with("undisturbed", self.disturbed.is_empty()),
        );
        found
    }

    fn of_freezes(&self, code: Code, freezes: &LineFreezes) -> Finding {
        let limit = self.terms.limits.get(freezes.limit).map(StreamLimit::text);
        Finding::new(code)
            .with("place", self.place())
            .with("level", Value::words(self.level()))
            .with("freezes", freezes.count)
            .with("longest", Number::ns(freezes.longest_ns))
            .with("watched", Value::words(Nanos::new(freezes.watched_ns).to_string()))
            .with("late", freezes.late)
            .with("limit", Value::words(limit.unwrap_or_default()))
            .with("allowed", Number::share(freezes.allowed))
            .with("open", freezes.may_break_it())
    }

    fn of_hold(&self) -> Finding {
        let Some(Holding { held, .. }) = self.held else {
            return Finding::new(Code::LineNotHeld).with("freeze", self.freeze());
        };
        let load = Number::iops(held.load);
        match held.broke_at_ns {
            Some(at) => Finding::new(Code::LineBroke)
                .with("load", load)
                .with_some("at", (at > 0).then(|| Number::ns(at)))
                .with("lower", (held.load / 2.0) as u64),
            None => Finding::new(Code::LineHeld)
                .with("time", Value::words(Nanos::new(held.time_ns).to_string()))
                .with("load", load)
                .with_some("froze", (held.freezes > 0).then_some(held.freezes))
                .with("requests", Number::iops(held.requests as f64))
                .with("freeze", self.freeze()),
        }
    }

    /// Of a hold alone that did not come to its end.
    fn not_held(&self) -> Finding {
        let cells = &self.view.run.cells;
        let load = cells.iter().find(|cell| cell.phase == HOLD).and_then(load_of);
        Finding::new(Code::LineHoldEnded)
            .with("place", self.place())
            .with_some("load", load.map(|load| Number::iops(load.per_second())))
    }

    /// Of a hold alone.
    fn carried(&self, holding: &Holding, standing: Standing) -> Finding {
        let code = match standing {
            Standing::Carried => Code::LineCarried,
            Standing::NotCarried => Code::LineNotCarried,
            _ => Code::LineCannotTell,
        };
        let held = &holding.held;
        let ranked = holding.used.iter().enumerate().max_by(|a, b| a.1.0.total_cmp(&b.1.0));
        let worst = ranked.and_then(|(k, _)| {
            let (one, share) = (self.terms.limits.get(k)?, held.late_shares.get(k)?);
            let share = format!("{:.2} %", share * 100.0);
            Some(format!("{share} of {} later than {}", one.name, one.limit.within))
        });
        Finding::new(code)
            .with("place", self.place())
            .with("load", Number::iops(held.load))
            .with("time", Value::words(Nanos::new(held.time_ns).to_string()))
            .with("streams", self.streams(held.load))
            .with("level", Value::words(self.level()))
            .with("worst", Value::words(worst.unwrap_or_default()))
            .with("requests", Number::iops(held.requests as f64))
            .with("freeze", self.freeze())
            .with("longer", Value::words(Nanos::new(held.time_ns.saturating_mul(4)).exact()))
    }
}
