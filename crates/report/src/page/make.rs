//! Runs to a page.

use std::collections::BTreeMap;

use explain::Mark;
use explain::compare::{self, Against, CellComparison, Direction, Outcome};
use explain::explanation::{Context, Explanation, OfRun};
use explain::interference::Interference;
use explain::interval::Basis;
use explain::mark::meaning;
use explain::view::{View, is_preparation};
use explain::which;
use finding::{Section, Severity};
use record::{OpRecord, Purpose, Run, VisitRecord};
use suite::model::{Suite, Until, Work};
use units::Bytes;

use super::drawn;
use super::evidence;
use super::{
    CellHeld, Change, Held, Page, PageAgainst, PageCell, PageFlush, PageLine, PageMark, PageRun,
    PageTogether, PageVisit, PageWhich, SCHEMA, Verdict,
};
use crate::figures::{self, Judged, StreamOfCell, known};
use crate::json::{self, Origin};

/// Points of all courses of a page together: more than any screen shows of them.
const POINTS_MAX: usize = 40_000;

/// Columns of all heat maps of a page together: each has a handful of numbers.
const COLUMNS_MAX: usize = 6_000;

/// What is known and asked besides the runs.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// What calibrations of the machines found, and factors that somebody named.
    pub context: Context,
    /// What differences matter.
    pub compare: compare::Terms,
    /// The runs are the parts of a list of suites.
    pub group: bool,
}

/// The page of runs, the baseline first. Nothing but the runs and the terms go in: the same
/// samples give the same page.
pub fn page(runs: &[Run], terms: &Terms) -> Page {
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let explanation = match terms.group {
        true => Explanation::of_group(&views, &terms.context),
        false => Explanation::of(&views, &terms.context),
    };
    let streams: Vec<Vec<StreamOfCell<'_>>> = runs.iter().map(figures::streams_of).collect();
    let lengths: Vec<usize> = streams
        .iter()
        .flatten()
        .flat_map(|stream| stream.visits.iter().map(move |visit| drawn::intervals(stream, visit)))
        .collect();
    let merged = Merged {
        points: drawn::merged(lengths.iter().copied(), POINTS_MAX),
        columns: drawn::merged(lengths.iter().copied(), COLUMNS_MAX),
    };
    let each = explanation.runs.iter().zip(&views).zip(&streams);
    let made = each.map(|((of, view), streams)| run(of, view, streams, merged));
    Page {
        schema: SCHEMA.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        runs: made.collect(),
        which: which(&views, &terms.compare),
        together: together(&explanation),
        against: against(&views, &terms.compare),
    }
}

/// How many intervals are drawn as one.
#[derive(Clone, Copy)]
struct Merged {
    /// In courses.
    points: usize,
    /// In heat maps.
    columns: usize,
}

fn run(of: &OfRun, view: &View<'_>, streams: &[StreamOfCell<'_>], merged: Merged) -> PageRun {
    let run = view.run;
    let header = &run.header;
    let judged = Judged { run, findings: of.findings.clone(), marks: of.marks.clone() };
    let names = names(view);
    let plan = plan(run);
    let began = run.visits.iter().filter_map(|visit| known(run, visit.started_unix_ns)).min();
    let cell = |stream: &StreamOfCell<'_>| {
        let asked = asked(plan.as_ref(), stream);
        cell(&judged, &names, stream, asked, began, merged)
    };
    PageRun {
        id: header.id.clone(),
        origin: Origin { visits_planned: of.visits.planned, ..json::origin(run) },
        about: plan.as_ref().map(|plan| plan.title.clone()).unwrap_or_default(),
        seed: header.seed.to_string(),
        state: match &header.imported {
            Some(_) => header.state.name().to_owned(),
            None => of.standing.clone(),
        },
        verdicts: of.sections.iter().map(|section| verdict(section, of)).collect(),
        cells: streams.iter().map(cell).collect(),
        barriers: of.barriers.barriers.clone(),
        freezes: of.findings.freezes.events.clone(),
        changes: changes(of),
        steady: of.findings.steady.clone(),
        together: of.interference.together().into_iter().map(together_of).collect(),
        line: explain::line::line(view).map(|line| PageLine {
            level: line.level,
            standing: line.standing,
            rate: line.line,
            capacity: line.capacity,
            spare: line.spare,
            limits: line.limits,
            rates: line.rates,
        }),
    }
}

fn together_of(one: &Interference) -> PageTogether {
    let ratio = finding::Number::ratio(one.rate_ratio);
    PageTogether {
        stream: one.stream.clone(),
        op: one.operation.clone(),
        rate: one.rate,
        alone: one.rate_alone,
        ratio: one.rate_ratio_ends.map_or(ratio, |(low, high)| ratio.within(low, high)),
        burst: one.burst,
        burst_bytes: one.burst_bytes,
    }
}

fn plan(run: &Run) -> Option<Suite> {
    let source = suite::parse(&run.header.suite_text, "the run's suite").ok()?;
    suite::check(&source, &suite::CheckContext::default()).ok()
}

fn verdict(section: &Section, of: &OfRun) -> Verdict {
    let is_behind = |mark: &&Mark| {
        let about = mark.code.about();
        about.question == section.question && about.severity >= Severity::Warning
    };
    let marks = of.marks.iter().filter(is_behind);
    let mut cells: Vec<String> = Vec::new();
    for mark in marks {
        let found = of.findings.streams.iter().find(|stream| {
            stream.cell == mark.cell && Some(&stream.stream) == mark.stream.as_ref()
        });
        let key = key(mark.cell, found.map_or(0, |stream| stream.position as usize));
        if !cells.contains(&key) {
            cells.push(key);
        }
    }
    // A card shows only its first sentence before it is opened: the worst.
    let mut section = section.clone();
    let worst = section.severity();
    if worst >= Severity::Warning {
        section.findings.sort_by_key(|finding| finding.severity != worst);
    }
    said(section.question.title().to_owned(), &section, cells)
}

fn said(topic: String, section: &Section, cells: Vec<String>) -> Verdict {
    let figures = section.question.figures();
    Verdict {
        topic,
        question: section.question,
        severity: section.severity(),
        evidence: evidence::of(section, figures),
        sentences: section.sentences(),
        figures: owned(figures),
        is_doubt: !cells.is_empty(),
        cells,
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The answer of `plimsoll which`, from what it stored.
fn which(views: &[View<'_>], terms: &compare::Terms) -> Option<PageWhich> {
    let terms = compare::Terms { margin: terms.margin.max(which::MARGIN), ..terms.clone() };
    let found = which::of_stored(views, &terms)?;
    let title = "Which place".to_owned();
    Some(PageWhich {
        answer: said(title, &found.answer, vec![]),
        run: found.chosen().map(|place| place.run.clone()),
        places: found.places,
        ratios: found.ratios,
    })
}

/// What several runs say together, by question; of runs of several suites those of each.
fn together(explanation: &Explanation) -> Vec<Verdict> {
    let said = |topic: String, section: &Section| said(topic, section, vec![]);
    let mut all = Vec::new();
    let common = explanation.group.iter().flat_map(|group| &group.section);
    let sections = explanation.together.iter().flat_map(|one| &one.sections);
    for section in common.chain(sections).chain(&explanation.apart) {
        all.push(said(section.question.title().to_owned(), section));
    }
    for one in &explanation.by_suite {
        let runs = one.runs.join(" ");
        let named = |s: &Section| said(format!("{}: {}", runs, s.question.title()), s);
        all.extend(one.sections.iter().map(named));
    }
    all
}

fn key(cell: u32, position: usize) -> String {
    format!("{cell}.{position}")
}

/// Keys of rows with how people say them.
fn names(view: &View<'_>) -> BTreeMap<String, String> {
    let named =
        |row: &explain::CellView<'_>| (key(row.cell.index, row.stream.unwrap_or(0)), row.name());
    view.rows.iter().map(named).collect()
}

/// What the suite asks of a row, beyond what is recorded of its plan.
#[derive(Default)]
struct Asked {
    job_bytes: Option<u64>,
    caches: Vec<String>,
    region_bytes: Option<u64>,
}

fn asked(plan: Option<&Suite>, stream: &StreamOfCell<'_>) -> Asked {
    let phase = plan.and_then(|plan| plan.phases.iter().find(|p| p.name == stream.cell.phase));
    let cell = plan.and_then(|plan| plan.cells().nth(stream.cell.index as usize));
    let own = cell.and_then(|cell| cell.streams.get(stream.position));
    let (Some(phase), Some(own)) = (phase, own.filter(|own| own.name == stream.plan.name)) else {
        return Asked::default();
    };
    let stop = &own.stop;
    let is_job = stop.time.is_none() && stop.operations.is_none() && stop.until == Until::All;
    Asked {
        job_bytes: stop.bytes.filter(|_| is_job).map(Bytes::get),
        caches: phase.caches.iter().map(|step| step.name().to_owned()).collect(),
        region_bytes: (own.work == Work::Blocks).then(|| own.region.length.get()),
    }
}

fn cell(
    judged: &Judged<'_>,
    names: &BTreeMap<String, String>,
    stream: &StreamOfCell<'_>,
    asked: Asked,
    began: Option<i64>,
    merged: Merged,
) -> PageCell {
    let run = judged.run;
    let cell = stream.cell;
    let figures = stream.figures();
    let interval = judged.interval(stream);
    let key = key(cell.index, stream.position);
    let told = drawn::told(stream);
    let own = figures.latencies();
    let basis = |basis| match basis {
        Basis::Visits => "visits".to_owned(),
        Basis::OneVisit => "one-visit".to_owned(),
    };
    let bands = drawn::bands(stream);
    let counted: Vec<u32> = stream.counted().iter().map(|visit| visit.order).collect();
    let visit = |v: &&VisitRecord| {
        let counted = counted.contains(&v.order);
        visit(run, stream, v, &Place { counted, began, merged, bands: bands.clone() })
    };
    PageCell {
        name: names.get(&key).cloned().unwrap_or_else(|| cell.phase.clone()),
        key,
        row: json::row(run, stream, &figures),
        preparation: is_preparation(&cell.phase),
        streams: u32::try_from(cell.streams.len()).unwrap_or(u32::MAX),
        iops: interval.map(|found| found.mean).or_else(|| figures.iops()),
        iops_low: interval.map(|found| found.low),
        iops_high: interval.map(|found| found.high),
        basis: interval.map(|found| basis(found.basis)),
        job_bytes: asked.job_bytes,
        caches: asked.caches,
        region_bytes: asked.region_bytes,
        flushes: flushes(stream),
        quantiles: match told {
            Some(told) => told.quantiles.clone(),
            None if figures.has_pairs() => Vec::new(),
            None => drawn::quantiles(&figures),
        },
        exposure: drawn::exposures(own),
        histogram: match told {
            Some(told) => told.buckets.iter().map(|&(ns, n)| (ns, ns, n)).collect(),
            None => drawn::histogram(own),
        },
        requests: figures.requests_known(),
        errors: stream.figures_of(|_| true).errors,
        marks: marks(judged, stream),
        bands: bands.clone().map(drawn::band_bounds).collect(),
        visits: stream.visits.iter().map(visit).collect(),
    }
}

fn flush(stream: &StreamOfCell<'_>, op: &str) -> PageFlush {
    let figures = stream.figures_of(|name| name == op);
    PageFlush {
        op: op.to_owned(),
        requests: figures.requests_known(),
        latency_ns: json::latency(&figures),
        quantiles: drawn::quantiles(&figures),
    }
}

/// What makes writes durable. A commit's latency has its flush in it.
fn flushes(stream: &StreamOfCell<'_>) -> Vec<PageFlush> {
    let all = stream.syncs_beside_data().into_iter();
    all.filter(|_| !stream.commits()).map(|op| flush(stream, op)).collect()
}

fn marks(judged: &Judged<'_>, stream: &StreamOfCell<'_>) -> Vec<PageMark> {
    let found: Vec<_> = judged.marks_of(stream).collect();
    let mark = |code: String| PageMark {
        meaning: meaning(&code).unwrap_or_default().to_owned(),
        evidence: found
            .iter()
            .filter(|m| m.code.name() == code)
            .map(|m| m.evidence.clone())
            .collect(),
        code,
    };
    json::marks(judged, stream).into_iter().map(mark).collect()
}

/// Where a visit stands in its run and its page.
struct Place {
    counted: bool,
    /// When the run's first visit did.
    began: Option<i64>,
    merged: Merged,
    /// Of its cell.
    bands: std::ops::Range<u16>,
}

fn visit(run: &Run, stream: &StreamOfCell<'_>, visit: &VisitRecord, place: &Place) -> PageVisit {
    let ops = stream.record(visit).map_or(&[][..], |record| &record.ops);
    let data = stream.figures_in(visit, ops);
    let started = known(run, visit.started_unix_ns);
    let since = |(began, at): (i64, i64)| u64::try_from(at.saturating_sub(began)).ok();
    PageVisit {
        order: visit.order,
        repeat: visit.repeat,
        start_ns: place.began.zip(started).and_then(since),
        elapsed_ns: known(run, visit.elapsed_ns),
        ramp_ns: visit.ramp_ns,
        counted: place.counted,
        end: match visit.purpose {
            Purpose::Pilot => visit.purpose.name().to_owned(),
            Purpose::Measure => visit.end.name().to_owned(),
        },
        iops: data.iops(),
        bytes_per_s: data.bytes_per_second(),
        bytes: data.bytes_known(),
        written: written(ops),
        p50_ns: data.latency_ns(0.5),
        p99_ns: data.latency_ns(0.99),
        max_ns: data.latency_ns_max(),
        series: drawn::series(stream, visit, place.merged.points),
        heat: drawn::heat(stream, visit, &place.bands, place.merged.columns),
        gaps: json::silences(visit),
        host_stalls: json::gaps(&visit.host_stalls),
        warnings: json::warnings(&visit.warnings),
    }
}

/// Bytes written; `None` where another tool did not count them.
fn written(ops: &[OpRecord]) -> Option<u64> {
    let writes = ops.iter().filter(|op| matches!(op.op.as_str(), "write" | "copy-range"));
    let bytes = |op: &OpRecord| op.reported.as_ref().map_or(Some(op.bytes), |told| told.bytes);
    writes.map(bytes).try_fold(0u64, |sum, bytes| Some(sum.saturating_add(bytes?)))
}

fn changes(of: &OfRun) -> Vec<Change> {
    let position = |cell: u32, stream: &Option<String>| {
        let mut streams = of.findings.streams.iter();
        let found = streams.find(|s| s.cell == cell && Some(&s.stream) == stream.as_ref());
        found.map_or(0, |stream| stream.position as usize)
    };
    let drift = &of.findings.drift;
    let mut changes = Vec::new();
    let mut add = |cell: Option<String>, order: Option<u32>, steps: &[explain::drift::Step]| {
        changes.extend(steps.iter().map(|step| Change {
            cell: cell.clone(),
            order,
            at_ns: step.at_ns,
            before: step.before,
            after: step.after,
        }));
    };
    for visit in &drift.visits {
        let key = key(visit.cell, position(visit.cell, &visit.stream));
        add(Some(key), Some(visit.order), &visit.steps);
    }
    for cell in &drift.cells {
        let key = key(cell.cell, position(cell.cell, &cell.stream));
        add(Some(key), None, &cell.steps);
    }
    for part in &drift.parts {
        add(None, None, &part.steps);
    }
    changes
}

/// Each run against its baseline, by itself: so there may be more than a comparison has letters for.
fn against(views: &[View<'_>], terms: &compare::Terms) -> Vec<PageAgainst> {
    let held = |at: usize| {
        let suite = |view: &View<'_>| view.run.header.suite == views[at].run.header.suite;
        // Suites measure different things: the first run of the same one, if there is one before.
        let base = views[..at].iter().find(|view| suite(view));
        let (first, other) = (base.unwrap_or(&views[0]), &views[at]);
        let comparison = compare::compare(&[first.clone(), other.clone()], terms);
        let found = comparison.against.first()?;
        // The first of several of another suite is a baseline itself.
        let leads = base.is_none() && views[at + 1..].iter().any(suite);
        let told = !leads || !found.cells.is_empty();
        told.then(|| held_against(found, &comparison, (&keys(first), &keys(other))))
    };
    (1..views.len()).filter_map(held).collect()
}

/// Names of rows with their keys.
fn keys(view: &View<'_>) -> BTreeMap<String, String> {
    names(view).into_iter().map(|(key, name)| (name, key)).collect()
}

fn held_against(
    against: &Against,
    comparison: &compare::Comparison,
    (first, other): (&BTreeMap<String, String>, &BTreeMap<String, String>),
) -> PageAgainst {
    let side = |at: usize| comparison.sides.get(at).map(|s| s.run.clone()).unwrap_or_default();
    let cell = |cell: &CellComparison| CellHeld {
        reference: first.get(&cell.cell).cloned(),
        cell: other.get(&cell.cell).cloned(),
        name: cell.cell.clone(),
        held: held(&cell.outcome),
    };
    PageAgainst {
        run: side(1),
        reference: side(0),
        headline: against.headline(),
        differences: against.differences.sentences(),
        evidence: against.evidence(comparison),
        verdict: word(against.verdict).to_owned(),
        faster: against.faster,
        slower: against.slower,
        overall: held(&against.overall),
        overall_of: against.streams.first().map(|one| one.stream.clone()),
        cells: against.cells.iter().map(cell).collect(),
    }
}

const fn word(verdict: compare::Verdict) -> &'static str {
    match verdict {
        compare::Verdict::Different => "different",
        compare::Verdict::Same => "same",
        compare::Verdict::Inconclusive => "inconclusive",
    }
}

fn held(outcome: &Outcome) -> Held {
    let way = match (outcome.verdict, outcome.direction) {
        (compare::Verdict::Different, Some(Direction::Faster)) => "faster",
        (compare::Verdict::Different, Some(Direction::Slower)) => "slower",
        (verdict, _) => word(verdict),
    };
    let way = if outcome.is_of_cache() { "not comparable" } else { way };
    Held {
        ratio: outcome.ratio.map(|ratio| ratio.ratio),
        low: outcome.ratio.and_then(|ratio| ratio.low),
        high: outcome.ratio.and_then(|ratio| ratio.high),
        verdict: way.to_owned(),
        margin: outcome.margin,
        p: outcome.p,
    }
}
