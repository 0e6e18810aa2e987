//! All that can be said of runs, in the order in which people ask: what stood still, what was a
//! cache's, what is out of line, what limits, what moved; then what several runs say together.

use finding::{Code, Finding, Number, Question, Section, Subject, Value};
use record::TargetKind;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::answer;
use crate::arrays::Arrays;
use crate::barrier::{Barriers, Elasticities, across, barriers};
use crate::bought::{self, Bought};
use crate::compare::Floor;
use crate::differ::{Differences, between};
use crate::factor::{Factors, Observation, factors, from_views};
use crate::findings::Findings;
use crate::group::OfGroup;
use crate::history::{History, history};
use crate::interference::{Interferences, interference};
use crate::interval::{CellInterval, Standstills};
use crate::latency::{Latencies, latencies};
use crate::line::looks_for_line;
use crate::mark::Mark;
use crate::members::{Members, members};
use crate::places::Told;
use crate::study;
use crate::view::{CellView, View};
use crate::visits::Visits;
use crate::whole::Whole;

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.explanation/1";

/// What runs mean.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "plimsoll.explanation/1")]
pub struct Explanation {
    /// Always `plimsoll.explanation/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Each run by itself.
    pub runs: Vec<OfRun>,
    /// What they say together; null for one run, and for runs of several suites unless somebody
    /// named the factors that they differ in.
    pub together: Option<Together>,
    /// Of runs of several suites: what those of one suite say together, where there are several.
    pub by_suite: Vec<Together>,
    /// That runs of several suites were not judged together, and how they can be; null where they
    /// are, or are looked at as parts of a list.
    pub apart: Option<Section>,
    /// What the list of suites says that the runs are parts of; null where they are not looked at
    /// as such.
    pub group: Option<OfGroup>,
}

/// What one run means.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OfRun {
    /// The run's id.
    pub run: String,
    /// The suite's name.
    pub suite: String,
    /// The target as the user named it.
    pub target: String,
    /// Sentences for people, by question.
    pub sections: Vec<Section>,
    /// Reasons to look twice at a cell.
    pub marks: Vec<Mark>,
    /// How it stands: `running`, `complete`, `interrupted`, `failed` or `killed`.
    pub state: String,
    /// The same in the word of its heads: `out of time` of a complete run that had no time for all
    /// that it was to make, `imported` of another tool's.
    pub standing: String,
    /// How many visits there were to be, and are.
    pub visits: Visits,
    /// What of the run is missing or broken.
    pub whole: Whole,
    /// The state of the arrays that it was measured on; null where nothing is known of them.
    pub arrays: Option<Arrays>,
    /// The numbers behind.
    pub findings: Findings,
    /// Where the rate ends.
    pub barriers: Barriers,
    /// Devices side by side: whether one is slower, and what writes cost them.
    pub members: Members,
    /// How long requests that come at a random moment wait.
    pub latencies: Latencies,
    /// What streams that run together cost each other.
    pub interference: Interferences,
}

/// What several runs mean together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Together {
    /// The runs, in the order given.
    pub runs: Vec<String>,
    /// Sentences for people, by question.
    pub sections: Vec<Section>,
    /// What differs between the first run and each other.
    pub differences: Vec<Differences>,
    /// How the caps follow factors that are numbers.
    pub elasticities: Elasticities,
    /// Which factor matters.
    pub factors: Factors,
    /// At which run a level changed; null unless they are six or more of one suite on one target.
    pub history: Option<History>,
}

/// What is known besides the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Requests per second against a null target on this machine.
    pub null_rate: Option<f64>,
    /// For each run in their order, the noise floor of its machine, if it was calibrated; empty
    /// counts as none.
    pub floors: Vec<Option<Floor>>,
    /// (factor, its level in each run in their order): `disks` with `4` and `12`. Empty: what the
    /// runs themselves record as different.
    pub factors: Vec<(String, Vec<String>)>,
    /// What the volume is to give, by whoever pays for it.
    pub bought: Option<Bought>,
}

impl Explanation {
    /// Explains runs, in the order given.
    pub fn of(views: &[View<'_>], context: &Context) -> Self {
        let all: Vec<&View<'_>> = views.iter().collect();
        let of_suites = by_suite(&all);
        let is_one = of_suites.len() == 1 || !context.factors.is_empty();
        let mut explanation = Self::apart(views, context);
        if is_one && views.len() > 1 {
            explanation.together = Some(Together::new(&all, context));
        } else {
            explanation.apart = not_compared(&of_suites);
            explanation.by_suite = several(of_suites, context);
        }
        explanation
    }

    /// Explains the runs of a list of suites, in the order of its parts.
    pub fn of_group(views: &[View<'_>], context: &Context) -> Self {
        let mut explanation = Self::apart(views, context);
        let all: Vec<&View<'_>> = views.iter().collect();
        explanation.by_suite = several(by_suite(&all), context);
        explanation.group = OfGroup::new(&all, &explanation.runs);
        explanation
    }

    /// Each run by itself.
    fn apart(views: &[View<'_>], context: &Context) -> Self {
        let of_run = |(at, view): (usize, &View<'_>)| {
            let floor = context.floors.get(at).and_then(Option::as_ref);
            OfRun::new(view, context, floor)
        };
        Self {
            schema: SCHEMA.to_owned(),
            runs: views.iter().enumerate().map(of_run).collect(),
            together: None,
            by_suite: Vec::new(),
            apart: None,
            group: None,
        }
    }
}

/// Runs of different suites measured different things: those of each, in the order in which the
/// suites first come.
fn by_suite<'v, 'a>(views: &[&'v View<'a>]) -> Vec<Vec<&'v View<'a>>> {
    let mut suites: Vec<(&str, Vec<&View<'a>>)> = Vec::new();
    for view in views {
        let suite = view.run.header.suite.as_str();
        match suites.iter_mut().find(|(known, _)| *known == suite) {
            Some((_, runs)) => runs.push(view),
            None => suites.push((suite, vec![view])),
        }
    }
    suites.into_iter().map(|(_, runs)| runs).collect()
}

/// That runs of these suites were not compared with each other, where there are several.
fn not_compared(suites: &[Vec<&View<'_>>]) -> Option<Section> {
    let suite = |runs: &Vec<&View<'_>>| {
        let suite = Value::from(&runs.first()?.run.header.suite);
        let runs = runs.iter().map(|view| Value::from(&view.run.header.id));
        Some(Value::record([("suite", suite), ("runs", Value::List(runs.collect()))]))
    };
    let all: Vec<Value> = suites.iter().filter_map(suite).collect();
    let found = (all.len() > 1).then(|| Finding::new(Code::SuitesNotCompared).with("suites", all));
    Section::new(Question::Differences, found.into_iter().collect())
}

fn several(suites: Vec<Vec<&View<'_>>>, context: &Context) -> Vec<Together> {
    let several = suites.into_iter().filter(|runs| runs.len() > 1);
    several.map(|runs| Together::new(&runs, context)).collect()
}

/// Where the rate ends.
fn limits(
    view: &View<'_>,
    barriers: &Barriers,
    context: &Context,
    findings: &Findings,
) -> Vec<Finding> {
    // The answer of a load line says what breaks first; its rates are set.
    if looks_for_line(view.run) || crate::transactions::plays_transactions(view) {
        return Vec::new();
    }
    let mut limits = unless_nothing(view, "Barrier", barriers.findings());
    if let Some(bought) = context.bought {
        limits.splice(..0, bought::findings(bought, view, findings));
    }
    if barriers.barriers.iter().any(|barrier| barrier.fit.is_some()) {
        limits.extend(findings.drift.of_no_level());
    }
    limits
}

fn unless_nothing(view: &View<'_>, what: &str, found: Vec<Finding>) -> Vec<Finding> {
    match view.grid().all(|cell| cell.visits.is_empty()) {
        true => vec![Finding::new(Code::NothingMeasured).with("what", Value::words(what))],
        false => found,
    }
}

/// What was found in a run, without the answer that it comes to.
pub(crate) fn sections(view: &View<'_>) -> Vec<Section> {
    OfRun::unanswered(view, &Context::default(), None).sections
}

impl OfRun {
    fn new(view: &View<'_>, context: &Context, floor: Option<&Floor>) -> Self {
        let mut own = Self::unanswered(view, context, floor);
        let (barriers, interference) = (&own.barriers, &own.interference);
        let answer = answer(view, &own.findings, barriers, interference, &own.sections);
        own.sections.splice(..0, Section::new(Question::Answer, answer));
        own
    }

    fn unanswered(view: &View<'_>, context: &Context, floor: Option<&Floor>) -> Self {
        let header = &view.run.header;
        let findings = Findings::of(view);
        let barriers = barriers(view, context.null_rate);
        let members = members(view);
        let latencies = latencies(view);
        let interference = interference(view);
        let whole = Whole::of(view);
        let visits = Visits::of(view.run);
        let mut itself = whole.findings(&header.id);
        itself.extend(visits.finding(&header.id));
        let breaks = header.warnings.iter().filter(|warning| warning.code == "resumed");
        itself.extend(breaks.map(|warning| {
            Finding::new(Code::RunResumed).with("run", &header.id).with("how", &warning.text)
        }));
        itself.extend(not_preconditioned(view));
        itself.extend(crate::arrays::findings(view.run));
        let mut sure = how_sure(view, &findings);
        sure.extend(findings.few_requests.finding());
        let open = findings.not_converged.text().map(|text| crate::words::capital(&text));
        sure.extend(open.map(|text| Finding::said(Code::NotKnownAsAsked, text)));
        sure.extend(floor.and_then(|floor| crate::floor::beside(floor, view)));
        sure.extend(crate::credits::not_excluded(view));
        let limits = limits(view, &barriers, context, &findings);
        let sections = [
            Section::new(Question::Run, itself),
            Section::new(Question::Confidence, sure),
            Section::new(Question::Stalls, stood_still(&findings)),
            Section::new(Question::Caches, findings.caches.findings()),
            Section::new(Question::Gaps, unless_nothing(view, "Gaps", findings.gaps.findings())),
            Section::new(Question::Limits, limits),
            Section::new(Question::Members, members.findings()),
            Section::new(Question::Interference, interference.findings()),
            Section::new(Question::Drift, changes(view, &findings)),
            Section::new(Question::Steady, findings.steady.findings()),
            Section::new(Question::Waits, latencies.findings()),
        ];
        Self {
            run: header.id.clone(),
            suite: header.suite.clone(),
            target: header.target.given.clone(),
            sections: sections.into_iter().flatten().collect(),
            marks: findings.marks(view),
            state: header.state.name().to_owned(),
            standing: visits.standing(header).to_owned(),
            visits,
            whole,
            arrays: Arrays::of(view.run),
            findings,
            barriers,
            members,
            latencies,
            interference,
        }
    }
}

/// That preconditioning was left out since it would have changed nothing.
fn not_preconditioned(view: &View<'_>) -> Option<Finding> {
    let header = &view.run.header;
    let twin = header.target.kind == TargetKind::Twin;
    let plan = view.suite().filter(|_| twin)?;
    let wanted = !plan.files.precondition.is_empty()
        || plan.phases.iter().any(|phase| !phase.precondition.is_empty());
    let played = view.cells.iter().any(|cell| cell.cell.phase.starts_with("precondition"));
    let doubted = header.warnings.iter().any(|warning| warning.code == "not-preconditioned");
    (wanted && !played && !doubted)
        .then(|| Finding::new(Code::PreconditioningLeftOut).with("target", &header.target.given))
}

/// What moved. What a bucket explains is told as that.
fn changes(view: &View<'_>, findings: &Findings) -> Vec<Finding> {
    let is_bucket = |order| findings.buckets.iter().any(|bucket| bucket.order == order);
    let is_cell = |cell| findings.buckets.iter().any(|bucket| bucket.cell == cell);
    let mut drift = findings.drift.clone();
    drift.visits.retain(|visit| !is_bucket(visit.order));
    drift.cells.retain(|cell| !is_cell(cell.cell));
    if !findings.buckets.is_empty() {
        drift.parts.iter_mut().for_each(|part| part.steps.clear());
        drift.edges.clear();
    }
    let buckets = findings.buckets.iter().map(|bucket| bucket.finding(view));
    buckets.chain(drift.findings()).collect()
}

/// What stalled: the device, streams, single requests. That the device never did comes after streams
/// that did.
fn stood_still(findings: &Findings) -> Vec<Finding> {
    let (device, streams) = (findings.freezes.findings(), findings.halts.findings());
    let is_none = findings.freezes.events.is_empty() && findings.freezes.lost_visits == 0;
    let both = if is_none { [streams, device] } else { [device, streams] };
    [both.concat(), findings.longest.findings()].concat()
}

/// One sentence about all intervals, and outliers; a cell alone in full, stream by stream. What only
/// prepares has one visit, and nobody asks how fast it is.
fn how_sure(view: &View<'_>, findings: &Findings) -> Vec<Finding> {
    let found: Vec<(&CellView<'_>, Option<&CellInterval>)> =
        view.grid_rows().map(|row| (row, findings.interval_of(view, row))).collect();
    if let [(_, Some(only))] = found.as_slice() {
        return only.findings();
    }
    let of = |row: &CellView<'_>, found: Finding| found.on(row.subject());
    let named = |(row, interval): &(&CellView<'_>, Option<&CellInterval>)| {
        let said = interval.map(CellInterval::findings).unwrap_or_default();
        said.into_iter().map(|found| of(row, found)).collect::<Vec<_>>()
    };
    if view.grid().count() == 1 && found.iter().any(|(_, one)| one.is_some()) {
        return found.iter().flat_map(named).collect();
    }
    let intervals: Vec<&CellInterval> = found.iter().filter_map(|(_, one)| *one).collect();
    let mut said = vec![widths(view, &intervals)];
    if view.is_of_streams() {
        said.extend(widest(&found));
    }
    let stalled = found.iter().filter_map(|(row, one)| Some(of(row, one.as_ref()?.stalls()?)));
    said.extend(a_few(stalled.collect(), Code::StallsOfFewVisitsMore));
    let stood = found.iter().filter(|(row, one)| one.is_none() && Standstills::are_all(row));
    let stood: Vec<Subject> = stood.map(|(row, _)| row.subject()).collect();
    said.extend((!stood.is_empty()).then(|| Finding::new(Code::RatesUnknown).on_all(stood, 0)));
    let odd = found.iter().filter_map(|(row, one)| Some(of(row, one.as_ref()?.outlier()?)));
    said.extend(a_few(odd.collect(), Code::VisitsApartMore));
    said
}

/// The first few of many, and how many more there are.
fn a_few(mut all: Vec<Finding>, others: Code) -> Vec<Finding> {
    const NAMED: usize = 4;
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    all.extend((more > 0).then(|| Finding::new(others).with("more", more)));
    all
}

/// The row that is known least: beside others that are known well it is easily overlooked.
fn widest(found: &[(&CellView<'_>, Option<&CellInterval>)]) -> Option<Finding> {
    let known = found.iter().filter_map(|(row, one)| Some((*row, one.as_ref()?)));
    let (row, widest) = known.max_by(|a, b| a.1.half_width.total_cmp(&b.1.half_width))?;
    let found = Finding::new(Code::ConfidenceWidest).on(row.subject());
    Some(found.with("reach", Value::words(widest.reach())))
}

/// How wide the intervals are.
fn widths(view: &View<'_>, intervals: &[&CellInterval]) -> Finding {
    let mut widths = intervals.to_vec();
    widths.sort_by(|a, b| a.half_width.total_cmp(&b.half_width));
    let found = |code| Finding::new(code).with("streams", view.is_of_streams());
    match widths.as_slice() {
        [] => Finding::new(Code::ConfidenceUnknown)
            .with("none", view.cells.iter().all(|cell| cell.visits.is_empty())),
        [one] => found(Code::ConfidenceOfOne).with("reach", Value::words(one.reach())),
        [.., worst] => found(Code::ConfidenceOfAll)
            .with("n", widths.len())
            .with("median", Value::words(crate::words::reach(widths[widths.len() / 2].half_width)))
            .with("widest", Value::words(worst.reach())),
    }
}

impl Together {
    fn new(views: &[&View<'_>], context: &Context) -> Self {
        let told: Vec<Told<'_>> = views.iter().map(|view| Told::new(view.run)).collect();
        let differences: Vec<Differences> = match told.split_first() {
            Some((first, others)) => others.iter().map(|other| between(first, other)).collect(),
            None => Vec::new(),
        };
        let studied = if context.factors.is_empty() { study::levels(views) } else { Vec::new() };
        let levels = if !studied.is_empty() {
            studied.clone()
        } else if context.factors.is_empty() {
            recorded(&differences)
        } else {
            context.factors.clone()
        };
        let numbers: Vec<(String, Vec<f64>)> = levels.iter().filter_map(as_numbers).collect();
        let mut elasticities = across(views, &numbers, context.null_rate);
        if context.factors.is_empty() && studied.is_empty() {
            elasticities.tell_alone(|factor| alone(&told, factor));
        }
        let observations = from_views(views, &levels);
        let factors = factors(&observations);
        let history = history(views);
        let differs = if !studied.is_empty() {
            study::differs(&studied, &differences)
        } else if context.factors.is_empty() {
            all_differences(&differences)
        } else {
            named(&differences, &context.factors)
        };
        let limits = if numbers.is_empty() { vec![] } else { elasticities.findings() };
        let effects = if levels.is_empty() { vec![] } else { factors.findings() };
        let alike = levels.is_empty().then(|| spread(views, &observations)).flatten();
        let changes = history.as_ref().map(History::findings).unwrap_or_default();
        let sections = [
            Section::new(Question::Differences, differs),
            Section::new(Question::Spread, alike.into_iter().collect()),
            Section::new(Question::Elasticity, limits),
            Section::new(Question::Factors, effects),
            Section::new(Question::History, changes),
        ];
        Self {
            runs: views.iter().map(|view| view.run.header.id.clone()).collect(),
            sections: sections.into_iter().flatten().collect(),
            differences,
            elasticities,
            factors,
            history,
        }
    }
}

/// What differs between the first run and each other; of those that differ in nothing only one
/// finding.
fn all_differences(differences: &[Differences]) -> Vec<Finding> {
    let is_same = |d: &&Differences| d.is_none() && d.imported.is_empty() && d.followed.is_none();
    let same: Vec<&Differences> = differences.iter().filter(is_same).collect();
    let mut said = Vec::new();
    if let [first, _, ..] = same.as_slice() {
        let runs = std::iter::once(&first.left).chain(same.iter().map(|d| &d.right));
        let runs: Vec<Value> = runs.map(Value::from).collect();
        said.push(Finding::new(Code::NothingDiffers).with("runs", runs));
    }
    let others = differences.iter().filter(|d| same.len() < 2 || !is_same(d));
    said.extend(others.flat_map(Differences::findings));
    said
}

/// How far runs of one thing lie apart.
fn spread(views: &[&View<'_>], observations: &[Observation]) -> Option<Finding> {
    if observations.len() != views.len() {
        return Some(Finding::new(Code::SpreadUnknown));
    }
    let rates = views.iter().zip(observations);
    let rates = rates.map(|(view, run)| (&view.run.header.id, run.ln_value));
    let low = rates.clone().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let high = rates.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let found = Finding::new(Code::Spread)
        .with("runs", observations.len())
        .with("low", Number::iops(low.1.exp()))
        .with("lowest", low.0)
        .with("high", Number::iops(high.1.exp()))
        .with("highest", high.0);
    Some(found.with("ratio", Number::ratio((high.1 - low.1).exp())))
}

/// Whether two of the runs differ in one recorded thing only, and that is this factor.
fn alone(told: &[Told<'_>], factor: &str) -> bool {
    told.iter().enumerate().any(|(at, a)| {
        told.iter().skip(at + 1).any(|b| {
            let found = between(a, b);
            matches!(found.factors.as_slice(), [one] if one.name == factor)
        })
    })
}

/// What differs when the user named it: the records may know of more.
fn named(differences: &[Differences], factors: &[(String, Vec<String>)]) -> Vec<Finding> {
    let mut said = vec![study::factors(Code::FactorsNamed, factors)];
    let besides: Vec<&Differences> = differences.iter().filter(|d| !d.is_none()).collect();
    said.extend(besides.is_empty().then(|| Finding::new(Code::NothingElseDiffers)));
    said.extend(besides.into_iter().flat_map(Differences::findings));
    said
}

/// Factors that the runs record, each with its level in every run.
fn recorded(differences: &[Differences]) -> Vec<(String, Vec<String>)> {
    let mut levels: Vec<(String, Vec<String>)> = Vec::new();
    for factor in differences.iter().flat_map(|d| &d.factors) {
        if !levels.iter().any(|(name, _)| *name == factor.name) {
            let first = std::iter::once(factor.left.clone());
            let others = differences.iter().map(|d| {
                let found = d.factors.iter().find(|other| other.name == factor.name);
                found.map_or_else(|| factor.left.clone(), |other| other.right.clone())
            });
            levels.push((factor.name.clone(), first.chain(others).collect()));
        }
    }
    levels
}

/// Levels as numbers, if all are and they differ.
fn as_numbers((name, levels): &(String, Vec<String>)) -> Option<(String, Vec<f64>)> {
    let numbers: Option<Vec<f64>> = levels
        .iter()
        .map(|level| level.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0))
        .collect();
    numbers.map(|numbers| (name.clone(), numbers))
}

/// The JSON schema of [`Explanation`], draft 2020-12.
pub fn schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Explanation>()
}

#[cfg(test)]
mod tests {
    use crate::freeze::tests::{run, visit};

    use super::*;

    #[test]
    fn a_stream_that_stood_still_comes_before_a_device_that_did_not() {
        let run = run(TargetKind::File, vec![visit(0, "read", &[])]);
        let mut findings = Findings::of(&View::new(&run));
        findings.halts.events.push(crate::halt::Halt {
            cell: 0,
            stream: "log".to_owned(),
            position: 1,
            name: "server log".to_owned(),
            repeat: 0,
            order: 0,
            tier: crate::freeze::Tier::Stall,
            start_ns: 0,
            length_ns: 2_000_000_000,
            one_at_a_time: false,
        });
        let said: Vec<String> = stood_still(&findings).iter().map(Finding::text).collect();
        assert!(said[0].starts_with("`server log` stalled for 2 s in visit 1 at 0"), "{said:?}");
        assert!(said[1].contains("never stalled"), "{said:?}");
    }

    #[test]
    fn a_run_without_a_visit_has_measured_nothing_whatever_its_grid() {
        let of = |visits| {
            Explanation::of(&[View::new(&run(TargetKind::File, visits))], &Context::default())
        };
        let said = |visits, question| {
            let all = of(visits).runs.remove(0).sections;
            all.into_iter().find(|section| section.question == question).unwrap().sentences()
        };
        assert_eq!(said(vec![], Question::Limits), ["Barrier: unknown. Nothing was measured."]);
        assert_eq!(said(vec![], Question::Gaps), ["Gaps: unknown. Nothing was measured."]);
        let some = said(vec![visit(0, "read", &[])], Question::Limits);
        assert!(!some[0].contains("Nothing was measured"), "{some:?}");
    }

    #[test]
    fn what_only_prepares_is_counted_among_no_cells() {
        let visits = [visit(0, "read", &[]), visit(1, "write", &[]), visit(2, "write", &[])];
        let mut run = run(TargetKind::File, visits.to_vec());
        run.cells[0].phase = "precondition".to_owned();
        let view = View::new(&run);
        let said = how_sure(&view, &Findings::of(&view));
        assert!(said[0].text().starts_with("1.00 K requests/s"), "as of an only cell: {said:?}");
    }
}
