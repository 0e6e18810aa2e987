//! What the runs of a list of suites say: each part in short, then what is common to them.

use std::collections::{BTreeMap, BTreeSet};

use finding::{Code, Finding, Number, Question, Section, Value};
use schemars::JsonSchema;
use serde::Serialize;

use crate::differ::{Factor, Kind, differences};
use crate::explanation::OfRun;
use crate::mark::Mark;
use crate::view::{CellView, View};

/// What the runs of a list of suites say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OfGroup {
    /// What the runs have in common: 8 hex digits.
    pub group: String,
    /// The list's name.
    pub list: String,
    /// How many runs the whole list has.
    pub of: u32,
    /// The runs, by their place in the list.
    pub parts: Vec<OfPart>,
    /// Places in the list that have no run.
    pub missing: Vec<u32>,
    /// What is common to the parts, in sentences for people.
    pub common: Vec<String>,
    /// The same as values; null where nothing is.
    pub section: Option<Section>,
}

/// What a part says, in short.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OfPart {
    /// Its place in the list, from 1.
    pub number: u32,
    /// The run's id.
    pub run: String,
    /// The suite's name.
    pub suite: String,
    /// Sentences for people.
    pub sentences: Vec<String>,
    /// The same as values; null where nothing is said.
    pub section: Option<Section>,
}

impl OfGroup {
    /// Of the runs of one group in the order of their places; `None` where a run is no part of a
    /// list.
    ///
    /// * `runs`: each explained, in the same order.
    pub fn new(views: &[&View<'_>], runs: &[OfRun]) -> Option<Self> {
        let first = views.first()?.run.header.part.as_ref()?;
        let mut parts = Vec::new();
        for (view, run) in views.iter().zip(runs) {
            let number = view.run.header.part.as_ref()?.number;
            let (id, suite) = (run.run.clone(), run.suite.clone());
            let said = in_short(view, run);
            let sentences = finding::texts(&said);
            let section = Section::new(Question::Group, said);
            parts.push(OfPart { number, run: id, suite, sentences, section });
        }
        let has = |number: &u32| parts.iter().any(|part| part.number == *number);
        let missing: Vec<u32> = (1..=first.of).filter(|number| !has(number)).collect();
        let common = common(views, runs, &missing);
        Some(Self {
            group: first.group.clone(),
            list: first.list.clone(),
            of: first.of,
            common: finding::texts(&common),
            section: Section::new(Question::Group, common),
            parts,
            missing,
        })
    }
}

/// What is wrong with a run, how fast it was, what limits it if that is known, and its marks.
fn in_short(view: &View<'_>, run: &OfRun) -> Vec<Finding> {
    let mut said: Vec<Finding> = crate::study::stack(view).into_iter().collect();
    said.extend(run.whole.findings(&run.run));
    if let Some(factor) = view.suite().and_then(|plan| plan.scaled) {
        said.push(Finding::new(Code::PartScaled).with("factor", factor.to_string().as_str()));
    }
    said.push(rates(view, run));
    for barrier in run.barriers.barriers.iter().filter(|barrier| barrier.fit.is_some()) {
        said.extend(barrier.findings().into_iter().next());
    }
    said.extend(marks(view, &run.marks));
    said
}

/// The rate of an only cell with its interval; of several cells the ends.
fn rates(view: &View<'_>, run: &OfRun) -> Finding {
    let mean = |cell: &CellView<'_>| {
        let rates = cell.ln_rates();
        (!rates.is_empty()).then(|| (rates.iter().sum::<f64>() / rates.len() as f64).exp())
    };
    let mut rows: Vec<(f64, &CellView<'_>)> =
        view.grid_rows().filter_map(|row| Some((mean(row)?, row))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    match rows.as_slice() {
        [] => Finding::new(Code::PartRateUnknown),
        [(rate, row)] => {
            let interval = run.findings.interval_of(view, row);
            Finding::new(Code::PartRate)
                .on(row.subject())
                .with("rate", Number::iops(*rate))
                .with_some("reach", interval.map(|interval| Value::words(interval.reach())))
        }
        [(low, slowest), .., (high, fastest)] => Finding::new(Code::PartRates)
            .with("n", rows.len())
            .with("streams", view.is_of_streams())
            .with("low", Number::iops(*low))
            .with("slowest", Value::name(slowest.name()))
            .with("high", Number::iops(*high))
            .with("fastest", Value::name(fastest.name())),
    }
}

/// A finding for each kind of mark: how many cells, and the first one's evidence.
fn marks(view: &View<'_>, marks: &[Mark]) -> Vec<Finding> {
    if marks.is_empty() {
        return vec![Finding::new(Code::PartUnmarked)];
    }
    let cells = view.grid().count();
    let of_code = |code: &Code| {
        let of = || marks.iter().filter(|mark| mark.code == *code);
        let first = of().next()?;
        let marked = of().map(|mark| mark.cell).collect::<BTreeSet<u32>>().len();
        let evidence = match first.evidence.trim_end_matches('.') {
            "" => code.about().mark.unwrap_or_default(),
            evidence => evidence,
        };
        let is_it = |row: &&CellView<'_>| {
            let stream = first.stream.as_deref();
            row.cell.index == first.cell && (stream.is_none() || row.stream_name() == stream)
        };
        let mut rows = view.rows.iter().chain(&view.cells);
        let found = Finding::new(Code::PartMarked)
            .with("mark", Value::name(code.name()))
            .with("whole", cells == 1 && first.stream.is_none())
            .with_some("marked", (cells > 1).then_some(marked))
            .with("all", cells)
            .with("evidence", evidence);
        Some(match rows.find(is_it) {
            Some(row) => found.on(row.subject()),
            None => found,
        })
    };
    Code::ALL.iter().filter_map(of_code).collect()
}

fn common(views: &[&View<'_>], runs: &[OfRun], missing: &[u32]) -> Vec<Finding> {
    let mut said = Vec::new();
    if !missing.is_empty() {
        let lacking = Finding::new(Code::PartsMissing).with("n", missing.len());
        said.push(lacking.with("several", missing.len() > 1).with("numbers", missing.to_vec()));
    }
    said.extend(below(views));
    let mut with: BTreeMap<Code, Vec<String>> = BTreeMap::new();
    for run in runs {
        for code in run.marks.iter().map(|mark| mark.code).collect::<BTreeSet<Code>>() {
            with.entry(code).or_default().push(run.run.clone());
        }
    }
    said.extend(with.into_iter().filter(|(_, ids)| ids.len() > 1).map(|(code, ids)| {
        let in_all = ids.len() == runs.len();
        Finding::new(Code::MarkedInParts)
            .with("mark", Value::name(code.name()))
            .with("in_all", in_all)
            .with("n", ids.len())
            .with("of", runs.len())
            .with_some("runs", (!in_all).then_some(ids.as_slice()))
            .with("meaning", code.about().mark.unwrap_or_default())
    }));
    said
}

/// What changed below the suites while the list was played: target, machine, program.
fn below(views: &[&View<'_>]) -> Vec<Finding> {
    let Some((first, others)) = views.split_first() else { return Vec::new() };
    // Each suite has files of its own.
    let of_suite = ["size", "files", "file", "target", "unit of direct I/O"];
    // What is below the suites is what a study varies.
    let study = crate::study::is_of(first);
    let is_below = |one: &Factor| {
        let varied = study && one.kind == Kind::Stack;
        one.kind != Kind::Plan && !of_suite.contains(&one.name.as_str()) && !varied
    };
    let mut met: BTreeSet<String> = BTreeSet::new();
    let mut said: Vec<Finding> = Vec::new();
    for other in others {
        let found = differences(first.run, other.run);
        let below = found.factors.iter().filter(|one| is_below(one));
        let new = below.filter(|one| met.insert(one.name.clone()));
        said.extend(new.map(|one| found.thing(Code::ChangedBetweenParts, one)));
    }
    if said.is_empty() && !others.is_empty() {
        said.push(Finding::new(Code::AlikeBelowParts).with("study", study));
    }
    said
}
