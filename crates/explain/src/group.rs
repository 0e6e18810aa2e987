//! What the runs of a list of suites say: each part in short, then what is common to them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::differ::{Kind, differences};
use crate::explanation::OfRun;
use crate::mark::{MEANINGS, Mark};
use crate::view::{CellView, View};
use crate::words::{count, iops, list};

/// What the runs of a list of suites say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
}

/// What a part says, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OfPart {
    /// Its place in the list, from 1.
    pub number: u32,
    /// The run's id.
    pub run: String,
    /// The suite's name.
    pub suite: String,
    /// Sentences for people.
    pub sentences: Vec<String>,
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
            parts.push(OfPart { number, run: id, suite, sentences: in_short(view, run) });
        }
        let has = |number: &u32| parts.iter().any(|part| part.number == *number);
        let missing: Vec<u32> = (1..=first.of).filter(|number| !has(number)).collect();
        Some(Self {
            group: first.group.clone(),
            list: first.list.clone(),
            of: first.of,
            common: common(views, runs, &missing),
            parts,
            missing,
        })
    }
}

/// What is wrong with a run, how fast it was, what limits it if that is known, and its marks.
fn in_short(view: &View<'_>, run: &OfRun) -> Vec<String> {
    let mut said: Vec<String> = crate::study::stack(view).into_iter().collect();
    said.extend(run.whole.sentences(&run.run));
    if let Some(factor) = crate::findings::plan(view).and_then(|plan| plan.scaled) {
        said.push(format!("Scaled: sizes and totals are {factor} times the suite's."));
    }
    said.push(rates(view, run));
    for barrier in run.barriers.barriers.iter().filter(|barrier| barrier.fit.is_some()) {
        said.extend(barrier.sentences().into_iter().next());
    }
    said.extend(marks(view, &run.marks));
    said
}

/// The rate of an only cell with its interval; of several cells the ends.
fn rates(view: &View<'_>, run: &OfRun) -> String {
    let mean = |cell: &CellView<'_>| {
        let rates = cell.ln_rates();
        (!rates.is_empty()).then(|| (rates.iter().sum::<f64>() / rates.len() as f64).exp())
    };
    let mut rows: Vec<(f64, &CellView<'_>)> =
        view.grid_rows().filter_map(|row| Some((mean(row)?, row))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    match rows.as_slice() {
        [] => "Rate unknown: no visit can be counted.".to_owned(),
        [(rate, row)] => {
            let interval = run.findings.interval_of(view, row);
            let reach = interval.map(|i| format!(" {}", i.reach()));
            format!("{}: {} IOPS{}.", row.name(), iops(*rate), reach.unwrap_or_default())
        }
        [(low, slowest), .., (high, fastest)] => format!(
            "{}: from {} IOPS ({}) to {} ({}).",
            count(rows.len() as u64, if view.is_of_streams() { "stream" } else { "cell" }),
            iops(*low),
            slowest.name(),
            iops(*high),
            fastest.name()
        ),
    }
}

/// A sentence for each kind of mark: how many cells, and the first one's evidence.
fn marks(view: &View<'_>, marks: &[Mark]) -> Vec<String> {
    if marks.is_empty() {
        return vec!["No marks.".to_owned()];
    }
    let name = |mark: &Mark| {
        let cell = view.cells.iter().find(|cell| cell.cell.index == mark.cell);
        let name = cell.map(CellView::name).unwrap_or_default();
        mark.stream.as_ref().map_or_else(|| name.clone(), |stream| format!("{name} · {stream}"))
    };
    let cells = view.grid().count() as u64;
    let of_code = |code: &&str| -> Option<String> {
        let of = || marks.iter().filter(|mark| mark.code == *code);
        let first = of().next()?;
        let marked = of().map(|mark| mark.cell).collect::<BTreeSet<u32>>().len();
        let meaning = MEANINGS.iter().find(|(known, _)| known == code).map(|(_, meaning)| *meaning);
        let evidence = match first.evidence.trim_end_matches('.') {
            "" => meaning.unwrap_or_default(),
            evidence => evidence,
        };
        Some(match (cells, &first.stream) {
            (1, None) => format!("{code}: {evidence}."),
            (1, Some(_)) => format!("{code} in {}: {evidence}.", name(first)),
            _ => format!(
                "{code} in {marked} of {}, such as {}: {evidence}.",
                count(cells, "cell"),
                name(first)
            ),
        })
    };
    MEANINGS.iter().filter_map(|(code, _)| of_code(code)).collect()
}

fn common(views: &[&View<'_>], runs: &[OfRun], missing: &[u32]) -> Vec<String> {
    let mut said = Vec::new();
    if !missing.is_empty() {
        let numbers: Vec<String> = missing.iter().map(u32::to_string).collect();
        said.push(format!(
            "{} of the list {} no run: {}.",
            count(missing.len() as u64, "part"),
            if missing.len() == 1 { "has" } else { "have" },
            list(&numbers)
        ));
    }
    said.extend(below(views));
    let mut with: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for run in runs {
        for (rank, (code, _)) in MEANINGS.iter().enumerate() {
            if run.marks.iter().any(|mark| mark.code == *code) {
                with.entry(rank).or_default().push(run.run.clone());
            }
        }
    }
    for (rank, ids) in with.into_iter().filter(|(_, ids)| ids.len() > 1) {
        let Some((code, meaning)) = MEANINGS.get(rank) else { continue };
        let (n, all) = (ids.len(), runs.len());
        let which = if n == all { "all".to_owned() } else { format!("{n} of {all}") };
        let named = if n == all { String::new() } else { format!(" ({})", list(&ids)) };
        said.push(format!("{code} in {which} runs{named}: {meaning}."));
    }
    said
}

/// What changed below the suites while the list was played: target, machine, program.
fn below(views: &[&View<'_>]) -> Vec<String> {
    let Some((first, others)) = views.split_first() else { return Vec::new() };
    // Each suite has files of its own.
    let of_suite = ["size", "files", "file", "target", "unit of direct I/O"];
    // What is below the suites is what a study varies.
    let varied = |kind: Kind| crate::study::is_of(first) && kind == Kind::Stack;
    let mut said: Vec<String> = Vec::new();
    for other in others {
        let found = differences(first.run, other.run).factors.into_iter();
        let below = found.filter(|f| f.kind != Kind::Plan && !of_suite.contains(&f.name.as_str()));
        let below = below.filter(|f| !varied(f.kind));
        for factor in below {
            let (from, to) = (&first.run.header.id, &other.run.header.id);
            let text = format!(
                "{} changed on the way: {} in {from}, {} in {to}.",
                factor.name, factor.left, factor.right
            );
            if !said.iter().any(|known| known.starts_with(&format!("{} changed", factor.name))) {
                said.push(text);
            }
        }
    }
    if said.is_empty() && !others.is_empty() && crate::study::is_of(first) {
        said.push("All on the same machine and version, as far as is recorded.".into());
    } else if said.is_empty() && !others.is_empty() {
        said.push("All on the same storage, machine and version, as far as is recorded.".into());
    }
    said
}
