//! The answer of a run, in five lines at most: how fast it is, what limits it, what disturbed it, what to do
//! next. All of it is in the other sections too, with its evidence.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use finding::{Code, Finding, Number, Question, Section, Severity, Value, quoted};
use record::RunState;

use crate::barrier::{Barrier, Barriers, Generator, is_paced};
use crate::findings::Findings;
use crate::interference::Interferences;
use crate::interval::Standstills;
use crate::view::{CellView, View};
use crate::whole::{Whole, resumable};
use crate::words::{self, bandwidth, iops, size};

/// More kinds of requests than these share one line.
const LINES_OF_RATES: usize = 2;
/// Of more kinds of requests, so many are in that line.
const RATES_MAX: usize = 3;
/// More limits than these are left to their own section, and of one that many phases share so many names.
const LIMITS_MAX: usize = 3;
const NAMES_MAX: usize = 3;

/// What the other sections come to.
///
/// * `sections`: all others.
pub(crate) fn answer(
    view: &View<'_>,
    findings: &Findings,
    barriers: &Barriers,
    interference: &Interferences,
    sections: &[Section],
) -> Vec<Finding> {
    if let Some(line) = crate::line::of(view, sections) {
        return line.answer.findings;
    }
    if let Some(alone) = crate::which::alone(view, sections) {
        return alone;
    }
    if let Some(worth) = crate::worth::alone(view, sections) {
        return worth;
    }
    if let Some(transactions) = crate::transactions::of(view) {
        return transactions;
    }
    let rates = rates(view, findings);
    if rates.is_empty() {
        let goes_on = view.run.header.state == RunState::Interrupted && resumable(view.run);
        let run = goes_on.then(|| Value::words(&view.run.header.id));
        let why = Whole::of(view).why_failed.map(Value::Words);
        let found = Finding::new(Code::AnswerNothing).with_some("run", run);
        return vec![found.with_some("why", why)];
    }
    let together = together(view, interference);
    let mut found: Vec<Finding> = match rates.len() {
        _ if !together.is_empty() => together,
        0..=LINES_OF_RATES => rates.iter().map(Rate::finding).collect(),
        _ => vec![highest(rates)],
    };
    found.push(limit(barriers));
    found.push(disturbed(sections));
    found.extend(next(sections));
    found
}

/// What each stream has beside all others, for who asks what they cost each other.
fn together(view: &View<'_>, interference: &Interferences) -> Vec<Finding> {
    let all = interference.together();
    let row = all.first().and_then(|one| view.cells.iter().find(|row| row.cell.index == one.cell));
    let sessions = |name: &str| {
        let plan = row?.cell.streams.iter().find(|plan| plan.name == name)?;
        (plan.op == "commit").then(|| words::waiting(&plan.op, plan.queue_depth.into()))
    };
    let each: Vec<String> = all.iter().map(|one| one.told(sessions(&one.stream))).collect();
    let told = row.map(|row| {
        Finding::new(Code::AnswerTogether)
            .on(row.subject())
            .with("each", Value::words(each.join("; ")))
    });
    told.into_iter().collect()
}

/// The highest rates of one kind of requests.
struct Rate {
    /// An operation, or a stream's name.
    what: String,
    /// `commits/s`.
    unit: &'static str,
    requests: Number,
    at: String,
    bytes: f64,
    bytes_at: String,
    /// The suite sets the rate of the requests.
    is_set: bool,
}

impl Rate {
    fn finding(&self) -> Finding {
        let found = Finding::new(Code::AnswerRate)
            .with("what", Value::words(&self.what))
            .with("iops", self.requests)
            .with("unit", Value::words(self.unit))
            .with("at", Value::name(&self.at))
            .with_some("is_set", self.is_set.then_some(Value::Flag(true)));
        if self.bytes <= 0.0 {
            return found;
        }
        found
            .with("bandwidth", Number::bandwidth(self.bytes))
            .with("bandwidth_at", Value::name(&self.bytes_at))
    }
}

/// Many kinds of requests in one line.
fn highest(mut rates: Vec<Rate>) -> Finding {
    rates.sort_by(|a, b| b.requests.value.total_cmp(&a.requests.value));
    let all = rates.len();
    let each = rates.iter().take(RATES_MAX).map(|rate| {
        let set = if rate.is_set { ", set by the suite" } else { "" };
        let (requests, at) = (finding::text::shown(&rate.requests), quoted(&rate.at));
        Value::words(format!("{} {requests} {} ({at}{set})", rate.what, rate.unit))
    });
    Finding::new(Code::AnswerRates)
        .with("rates", Value::List(each.collect()))
        .with("more", Value::Count(all.saturating_sub(RATES_MAX) as u64))
}

/// In the order in which the suite has them.
fn rates(view: &View<'_>, findings: &Findings) -> Vec<Rate> {
    let mut rates: Vec<Rate> = Vec::new();
    for row in uncached(view, findings) {
        let Some(requests) = requests(view, findings, row) else { continue };
        // Where streams have names of their own, an operation says less.
        let only = row.plans().first().filter(|_| view.is_of_streams());
        let what = match (row.stream_name().or(only.map(|one| one.name.as_str())), row.load()) {
            (Some(stream), _) => quoted(stream),
            (None, Some(load)) => load.op,
            (None, None) => quoted(&row.cell.phase),
        };
        let is_set = is_paced(view, row);
        let visits = row.visits.len().max(1) as f64;
        let bytes = row.visits.iter().map(|visit| visit.bytes_per_second).sum::<f64>() / visits;
        let name = row.name();
        match rates.iter_mut().find(|known| known.what == what) {
            None => {
                let (at, bytes_at) = (name.clone(), name);
                let unit = words::unit(row.plans().first().map_or("", |plan| &plan.op));
                rates.push(Rate { what, unit, requests, at, bytes, bytes_at, is_set });
            }
            Some(known) => {
                if requests.value > known.requests.value {
                    (known.requests, known.at) = (requests, name.clone());
                    known.is_set = is_set;
                }
                if bytes > known.bytes {
                    (known.bytes, known.bytes_at) = (bytes, name);
                }
            }
        }
    }
    rates
}

/// Rows that no cache answered, or else all: what a cache does is not what the storage can.
fn uncached<'a>(view: &'a View<'a>, findings: &Findings) -> Vec<&'a CellView<'a>> {
    let marks = findings.marks(view);
    let is_cached = |row: &&CellView<'_>| {
        let mut own = marks.iter().filter(|mark| mark.cell == row.cell.index);
        own.any(|mark| {
            matches!(mark.code, Code::Cached | Code::PartlyCached)
                && mark.stream.as_ref().is_none_or(|stream| row.has_stream(stream))
        })
    };
    let (cached, others): (Vec<_>, Vec<_>) = view.grid_rows().partition(is_cached);
    if others.is_empty() { cached } else { others }
}

fn requests(view: &View<'_>, findings: &Findings, row: &CellView<'_>) -> Option<Number> {
    if let Some(known) = findings.interval_of(view, row) {
        return Some(Number::iops(known.mean).within(known.low, known.high));
    }
    // What completed says nothing of the time between.
    if Standstills::are_all(row) {
        return None;
    }
    let rates = row.ln_rates();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (!rates.is_empty()).then(|| Number::iops(mean.exp()))
}

/// How much a limit says of the storage: the least comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Generator,
    Reached,
    NearlyReached,
    NotReached,
    OneAtATime,
    Set,
}

/// A limit, and the phases that have it.
struct Limit {
    weight: Weight,
    what: String,
    phases: Vec<String>,
}

impl Limit {
    fn words(&self) -> String {
        let names: Vec<String> = self.phases.iter().take(NAMES_MAX).cloned().collect();
        let more = match self.phases.len().saturating_sub(NAMES_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}: {}", names.join(", "), self.what)
    }
}

fn limit(barriers: &Barriers) -> Finding {
    let mut limits: Vec<Limit> = Vec::new();
    for (phase, weight, what) in barriers.barriers.iter().filter_map(of_barrier) {
        match limits.iter_mut().find(|limit| limit.what == what) {
            Some(limit) => limit.phases.push(phase),
            None => limits.push(Limit { weight, what, phases: vec![phase] }),
        }
    }
    if !limits.is_empty() {
        limits.sort_by_key(|limit| (limit.weight, Reverse(limit.phases.len())));
        let words: Vec<String> = limits.iter().take(LIMITS_MAX).map(Limit::words).collect();
        let more = limits.len().saturating_sub(LIMITS_MAX) as u64;
        return Finding::new(Code::AnswerLimit)
            .with("limits", Value::words(words.join("; ")))
            .with("more", Value::Count(more));
    }
    let places: BTreeSet<String> = barriers.barriers.iter().filter_map(queue).collect();
    let places = (!places.is_empty()).then(|| {
        let all: Vec<String> = places.into_iter().collect();
        Value::words(format!("the queue is {}", all.join(" and ")))
    });
    let see = (!barriers.barriers.is_empty()).then(|| Value::words(Question::Limits.title()));
    Finding::new(Code::AnswerLimitUnknown).with_some("queue", places).with_some("what_limits", see)
}

fn queue(barrier: &Barrier) -> Option<String> {
    let place = barrier.queue.place.as_ref()?;
    Some(if barrier.queue.copied.is_some() { "in the layer".to_owned() } else { place.words() })
}

/// `None` if nothing is known of it.
fn of_barrier(barrier: &Barrier) -> Option<(String, Weight, String)> {
    let phase = quoted(&barrier.group);
    if matches!(barrier.generator, Generator::NearNull { .. } | Generator::Busy { .. }) {
        return Some((phase, Weight::Generator, "the load generator, not the storage".to_owned()));
    }
    if barrier.paced {
        let what = "the suite sets the rate, so the limit of the storage does not show";
        return Some((phase, Weight::Set, what.to_owned()));
    }
    let (weight, what) = reached(barrier).or_else(|| without_a_law(barrier))?;
    let place = queue(barrier).map(|place| format!(", the queue is {place}")).unwrap_or_default();
    Some((phase, weight, format!("{what}{place}")))
}

fn reached(barrier: &Barrier) -> Option<(Weight, String)> {
    let cap = |cap: Option<crate::barrier::Cap>| cap.filter(|cap| cap.reached);
    let unit = words::unit(&barrier.op);
    let requests = cap(barrier.iops).map(|cap| format!("{} {unit}", iops(cap.rate.value)));
    let bytes = cap(barrier.bandwidth).map(|cap| bandwidth(cap.rate.value));
    let knee = barrier.knee_bytes.map(|knee| format!(" (blocks from {})", size(knee)));
    let what = match (requests, bytes) {
        (Some(requests), Some(bytes)) => {
            format!("{requests}, {bytes}{}", knee.unwrap_or_default())
        }
        (one, other) => one.or(other)?,
    };
    Some((Weight::Reached, what))
}

fn without_a_law(barrier: &Barrier) -> Option<(Weight, String)> {
    let is_all = barrier.few_requests == 0 && barrier.few_in_flight == 0;
    if barrier.one_at_a_time.is_some() && is_all {
        let what = "the time of a request, since requests come one at a time";
        return Some((Weight::OneAtATime, what.to_owned()));
    }
    let ladder = barrier.ladders.first();
    let nearly = match ladder {
        Some(ladder) => ladder.nearly.as_ref(),
        None => barrier.gains.iter().find(|gain| gain.is_nearly_saturated()),
    };
    if let Some(gain) = nearly {
        let what = format!("nearly saturated with {}", words::waiting(&barrier.op, gain.from));
        return Some((Weight::NearlyReached, what));
    }
    let ladder = ladder?;
    let rate = format!("{} {}", iops(ladder.rate.value), words::unit(&barrier.op));
    let waiting = |n| words::waiting(&barrier.op, n);
    Some(match ladder.from {
        Some(from) => (Weight::Reached, format!("{rate} from {} on", waiting(from))),
        None => (Weight::NotReached, format!("none up to {} ({rate})", waiting(ladder.most))),
    })
}

/// How sure the figures are and what limits them are no disturbances.
fn disturbs(section: &&Section) -> bool {
    !matches!(section.question, Question::Confidence | Question::Limits | Question::Waits)
}

/// What findings of such severities come to, of sections whose findings disturb a run; each once.
fn disturbances(sections: &[Section], severities: &[Severity]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for section in sections.iter().filter(disturbs) {
        let found = section.findings.iter().filter(|one| severities.contains(&one.severity));
        for one in found.map(|one| Value::words(title(section.question, one.code))) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    all
}

/// The same for an answer that says itself whether the run came to its end.
///
/// * `asks`: which sections count.
pub(crate) fn disturbed_by(sections: &[Section], asks: fn(Question) -> bool) -> Vec<Value> {
    let is_told = |one: &Finding| matches!(one.code, Code::EndedEarly | Code::UnderWay);
    let mut asked: Vec<Section> =
        sections.iter().filter(|section| asks(section.question)).cloned().collect();
    asked.iter_mut().for_each(|section| section.findings.retain(|one| !is_told(one)));
    disturbances(&asked, &[Severity::Warning, Severity::Failure])
}

fn disturbed(sections: &[Section]) -> Finding {
    let of = |severities: &[Severity]| {
        let titles = disturbances(sections, severities);
        (!titles.is_empty()).then_some(Value::List(titles))
    };
    match of(&[Severity::Warning, Severity::Failure]) {
        Some(by) => Finding::new(Code::AnswerDisturbed).with("by", by),
        None => {
            Finding::new(Code::AnswerUndisturbed).with_some("unknown", of(&[Severity::Unknown]))
        }
    }
}

/// As the sections are called, within a sentence; of the run itself what is wrong with it.
fn title(question: Question, code: Code) -> String {
    match (question, code) {
        (_, Code::RequestsFailed) => "requests that failed".to_owned(),
        (_, Code::RequestsLost) => "requests that never came back".to_owned(),
        (_, Code::VisitsFailed) => "visits that failed".to_owned(),
        (_, Code::TargetGone) => "the removal of what was measured".to_owned(),
        // Its own "and" would be one of the list's.
        (Question::Drift, _) => "drift".to_owned(),
        (other, _) => other.title().to_lowercase(),
    }
}

/// The advice of the worst that was found. What is merely unknown needs none: most of it is no fault.
fn next(sections: &[Section]) -> Option<Finding> {
    let wrong = sections.iter().flat_map(|section| &section.findings);
    let wrong = wrong.filter(|finding| finding.severity >= Severity::Warning);
    let advised = wrong.filter_map(|finding| Some((finding.severity, finding.next()?)));
    let worst = advised.reduce(|best, one| if one.0 > best.0 { one } else { best });
    worst.map(|(_, what)| Finding::new(Code::AnswerNext).with("what", Value::words(what)))
}
