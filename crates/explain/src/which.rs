//! Which of several places a database should run on: their figures, and whether one is better.

use std::collections::BTreeMap;

use finding::{Code, Finding, Number, Question, Section, Value};
use record::RunState;
use record::stack::What;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::disturbed_by;
use crate::compare::{
    Against, Direction, Outcome, Ratio, Terms, Verdict, compare, label, percentile,
};
use crate::explanation;
use crate::findings::Findings;
use crate::freeze::Source;
use crate::view::{CellView, View};
use crate::whole::is_failed;

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.which/1";

/// Its stream that is told in bytes.
const SCAN: &str = "scan";
/// The suite that is played on each place.
pub const SUITE: &str = "which";

/// An interval whose ends differ by so much says nothing to plan with.
const WIDE: f64 = 3.0;

/// Differences up to this count as none, unless somebody says otherwise.
pub const MARGIN: f64 = 0.1;

/// What may be said of the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceChoice {
    /// One is better at something and worse at nothing.
    Use,
    /// None differs from another by more than the margin.
    Equal,
    /// One is better at some, another at others.
    Split,
    /// Not known well enough.
    Unknown,
    /// There is one place.
    Alone,
}

/// Which of several places.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Which {
    /// Always `plimsoll.which/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// What may be said.
    pub choice: PlaceChoice,
    /// The place that was chosen, or the one with the most commits.
    pub place: Option<String>,
    /// All of them.
    pub places: Vec<PlaceFigures>,
    /// The chosen place by each other.
    pub ratios: Vec<PlaceRatio>,
    /// The answer.
    pub answer: Section,
}

/// A figure of the chosen place by that of another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlaceRatio {
    /// What figure.
    pub what: String,
    /// Letter of the other place.
    pub of: String,
    /// The ratio, with its interval.
    pub ratio: Number,
    /// What may be said of it.
    pub verdict: Verdict,
}

/// What a place did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlaceFigures {
    /// Its letter, in the order in which places were named.
    pub label: String,
    /// As the user named it.
    pub place: String,
    /// Its run.
    pub run: String,
    /// In the order in which they decide.
    pub figures: Vec<PlaceFigure>,
    /// Visits that failed, or in which requests never came back.
    pub failed: u32,
    /// How often nothing completed for 100 ms and more, and the host was not to blame.
    pub stalls: u32,
    /// The longest of these, ns.
    pub stall_ns_max: u64,
}

/// One figure of a place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlaceFigure {
    /// What it is a rate of: `commits/s by 16 sessions`.
    pub what: String,
    /// Per second, with its interval.
    pub rate: Number,
    /// A cache answered, so it is compared with nothing.
    pub cached: bool,
    /// The row that it is of.
    #[serde(skip)]
    row: String,
    #[serde(skip)]
    rank: u8,
}

/// How a place compares with another: figures by what they say of it.
#[derive(Default)]
struct Compared {
    better: Vec<String>,
    worse: Vec<String>,
    open: Vec<String>,
}

/// Compares places that one suite was played on, in blocks.
///
/// * `terms`: `margin` is the difference that counts as none.
/// * `minutes`: how long was measured, for what to do next.
pub fn which(views: &[View<'_>], terms: &Terms, minutes: u64) -> Which {
    let sections: Vec<Section> = views.iter().flat_map(explanation::sections).collect();
    of(views, &sections, terms, minutes)
}

/// * `sections`: what was found in each.
fn of(views: &[View<'_>], sections: &[Section], terms: &Terms, minutes: u64) -> Which {
    let places: Vec<PlaceFigures> =
        views.iter().enumerate().map(|(k, view)| figures(label(k), view)).collect();
    let against: Vec<Vec<Against>> = (0..views.len()).map(|k| against(views, k, terms)).collect();
    let standings: Vec<Vec<Compared>> = (0..views.len())
        .map(|k| (0..views.len()).map(|other| standing(&places, &against, k, other)).collect())
        .collect();
    let (choice, chosen, left) = choose(&places, &standings);
    let mut found: Vec<Finding> = failed(&places);
    let ratios = chosen.map(|k| ratios(&places, &against, k)).unwrap_or_default();
    let unfinished = views.iter().any(|view| view.run.header.state != RunState::Complete);
    match chosen.and_then(|k| Some((k, views.get(k)?))) {
        None => found.push(Finding::new(Code::WhichNothing).with("unfinished", unfinished)),
        Some((k, view)) => {
            let said = first(&places, &standings, &ratios, (choice, k, &left), terms, minutes);
            found.extend(said.map(|said| said.with("unfinished", unfinished)));
            found.extend(on_one_disk(views));
            found.extend(limit(view, &places[k]));
            found.extend(stalled(&places));
            found.extend(cached(&places));
            let sure = sure(views, &places, &left, terms).with("unfinished", unfinished);
            let wide = decide_wide(&places).map(Value::words);
            let minutes = minutes.saturating_mul(4);
            found.push(sure.with_some("wide", wide).with("minutes", minutes));
            found.push(disturbed(views, sections));
        }
    }
    Which {
        schema: SCHEMA.to_owned(),
        choice,
        place: chosen.map(|k| places[k].place.clone()),
        places,
        ratios,
        answer: Section { question: Question::Answer, findings: found },
    }
}

impl Which {
    /// The place that was chosen, or the one with the most commits.
    pub fn chosen(&self) -> Option<&PlaceFigures> {
        self.places.iter().find(|place| Some(&place.place) == self.place.as_ref())
    }
}

/// The same from runs that were stored before; `None` unless all are of its suite.
pub fn of_stored(views: &[View<'_>], terms: &Terms) -> Option<Which> {
    let is_its = |view: &View<'_>| view.run.header.suite == SUITE;
    if views.is_empty() || !views.iter().all(is_its) {
        return None;
    }
    Some(which(views, terms, minutes(views)))
}

/// How long was measured, for what to do next.
fn minutes(views: &[View<'_>]) -> u64 {
    let visits = views.iter().flat_map(|view| &view.run.visits);
    let ns: u64 = visits.map(|visit| visit.elapsed_ns.saturating_add(visit.ramp_ns)).sum();
    ((ns as f64 / 6e10).round() as u64).max(1)
}

/// The answer of one run by itself; `None` unless it is of the suite.
///
/// * `sections`: what else was found in it.
pub(crate) fn alone(view: &View<'_>, sections: &[Section]) -> Option<Vec<Finding>> {
    if view.run.header.suite != SUITE {
        return None;
    }
    let views = std::slice::from_ref(view);
    let found = of(views, sections, &Terms::default(), minutes(views));
    Some(found.answer.findings)
}

/// What a row is a figure of, and how much it decides: the less, the more.
fn what(row: &CellView<'_>) -> Option<(u8, String)> {
    let [plan] = row.plans() else { return None };
    let is_alone = row.cell.streams.len() == 1;
    let by = match plan.queue_depth {
        1 => "one by one".to_owned(),
        n => format!("by {n} sessions"),
    };
    Some(match plan.op.as_str() {
        "commit" if !is_alone => (0, format!("commits/s {by} beside reads and a checkpoint")),
        // That which the suite has beside the others, too.
        "commit" if plan.name == "commits" => (1, format!("commits/s {by}")),
        "commit" => (2, format!("commits/s {by}")),
        "read" if plan.name == SCAN => (5, "scan".to_owned()),
        "read" if is_alone => (3, format!("page reads/s {} deep", plan.queue_depth)),
        "read" => (4, "page reads/s beside commits".to_owned()),
        _ => return None,
    })
}

fn figures(label: String, view: &View<'_>) -> PlaceFigures {
    let findings = Findings::of(view);
    let answered = crate::cache::answered(view);
    let figure = |row: &CellView<'_>| {
        let (rank, what) = what(row)?;
        let known = findings.interval_of(view, row)?;
        let rate = match row.plans().first().filter(|plan| plan.name == SCAN) {
            None => Number::iops(known.mean).within(known.low, known.high),
            Some(plan) => {
                let bytes = plan.block_bytes.unwrap_or(0) as f64;
                Number::bandwidth(known.mean * bytes).within(known.low * bytes, known.high * bytes)
            }
        };
        let cached = answered(row).is_some();
        Some(PlaceFigure { what, rate, cached, row: row.name(), rank })
    };
    let mut figures: Vec<PlaceFigure> = view.grid_rows().filter_map(figure).collect();
    figures.sort_by_key(|figure| figure.rank);
    let header = &view.run.header;
    let place = header.target.given.clone();
    let failed = view.run.visits.iter().filter(|visit| is_failed(visit)).count();
    let stalls = || {
        let all = findings.freezes.events.iter();
        all.filter(|event| event.source != Source::Host)
    };
    PlaceFigures {
        label,
        place,
        run: header.id.clone(),
        figures,
        failed: u32::try_from(failed).unwrap_or(u32::MAX),
        stalls: u32::try_from(stalls().count()).unwrap_or(u32::MAX),
        stall_ns_max: stalls().map(|event| event.length_ns).max().unwrap_or(0),
    }
}

/// The others against one of them, in their order; that one itself is left out.
fn against(views: &[View<'_>], reference: usize, terms: &Terms) -> Vec<Against> {
    let others = views.iter().enumerate().filter(|(k, _)| *k != reference);
    let sides: Vec<View<'_>> =
        views.get(reference).into_iter().chain(others.map(|(_, view)| view)).cloned().collect();
    compare(&sides, terms).against
}

/// Of one place against another, row by row.
fn outcome<'a>(
    against: &'a [Vec<Against>],
    (one, other): (usize, usize),
    row: &str,
) -> Option<&'a Outcome> {
    let at = if other > one { other - 1 } else { other };
    let rows = &against.get(one)?.get(at)?.cells;
    rows.iter().find(|cell| cell.cell == row).map(|cell| &cell.outcome)
}

fn standing(
    places: &[PlaceFigures],
    against: &[Vec<Against>],
    one: usize,
    other: usize,
) -> Compared {
    let mut standing = Compared::default();
    if one == other {
        return standing;
    }
    for figure in comparable(places, one, other) {
        let Some(outcome) = outcome(against, (one, other), &figure.row) else { continue };
        let what = figure.what.clone();
        match (outcome.verdict, outcome.direction) {
            // The direction is the other's.
            (Verdict::Different, Some(Direction::Slower)) => standing.better.push(what),
            (Verdict::Different, Some(Direction::Faster)) => standing.worse.push(what),
            (Verdict::Same, _) => {}
            _ => standing.open.push(what),
        }
    }
    standing
}

/// The figures of a place that the other has, too, and that no cache answered on either.
fn comparable(
    places: &[PlaceFigures],
    one: usize,
    other: usize,
) -> impl Iterator<Item = &PlaceFigure> {
    let others = places.get(other).map_or([].as_slice(), |place| &place.figures);
    let is_sound = |figure: &&PlaceFigure| {
        let of_other = others.iter().find(|there| there.row == figure.row);
        !figure.cached && of_other.is_some_and(|there| !there.cached)
    };
    places.get(one).into_iter().flat_map(|place| &place.figures).filter(is_sound)
}

/// What may be said, of which place, and between which it is open: those to which no other is
/// better at something and worse at nothing.
fn choose(
    places: &[PlaceFigures],
    standings: &[Vec<Compared>],
) -> (PlaceChoice, Option<usize>, Vec<usize>) {
    let measured = (0..places.len()).filter(|&k| !places[k].figures.is_empty());
    let (all, failed): (Vec<usize>, Vec<usize>) = measured.partition(|&k| places[k].failed == 0);
    // What fails is no choice, unless nothing else is there.
    let all = if all.is_empty() { failed } else { all };
    let beats = |one: usize, other: usize| {
        let compared = &standings[one][other];
        !compared.better.is_empty() && compared.worse.is_empty()
    };
    let is_left = |k: &usize| !all.iter().any(|&other| beats(other, *k));
    let left: Vec<usize> = all.iter().copied().filter(is_left).collect();
    let left = if left.is_empty() { all.clone() } else { left };
    let commits = |k: usize| places[k].figures.first().map_or(0.0, |figure| figure.rate.value);
    let Some(most) = left.iter().copied().max_by(|a, b| commits(*a).total_cmp(&commits(*b))) else {
        return (PlaceChoice::Unknown, None, left);
    };
    let of_others = |is: fn(&Compared) -> bool| {
        left.iter()
            .filter(|&&other| other != most)
            .map(|&other| is(&standings[most][other]))
            .collect()
    };
    let same: Vec<bool> =
        of_others(|one| one.better.is_empty() && one.worse.is_empty() && one.open.is_empty());
    let split: Vec<bool> = of_others(|one| !one.better.is_empty() && !one.worse.is_empty());
    let choice = match () {
        () if places.len() == 1 => PlaceChoice::Alone,
        () if left.len() == 1 => PlaceChoice::Use,
        () if same.iter().all(|is| *is) => PlaceChoice::Equal,
        () if split.contains(&true) => PlaceChoice::Split,
        () => PlaceChoice::Unknown,
    };
    (choice, Some(most), left)
}

/// The chosen place by each other, figure by figure.
fn ratios(places: &[PlaceFigures], against: &[Vec<Against>], k: usize) -> Vec<PlaceRatio> {
    let others = (0..places.len()).filter(|&other| other != k);
    let of = |other: usize| {
        let ratio = move |figure: &PlaceFigure| {
            let outcome = outcome(against, (k, other), &figure.row)?;
            Some(PlaceRatio {
                what: figure.what.clone(),
                of: places[other].label.clone(),
                ratio: inverse(outcome.ratio?),
                verdict: outcome.verdict,
            })
        };
        comparable(places, k, other).filter_map(ratio).collect::<Vec<_>>()
    };
    others.flat_map(of).collect()
}

/// The line that answers.
fn first(
    places: &[PlaceFigures],
    standings: &[Vec<Compared>],
    ratios: &[PlaceRatio],
    (choice, k, left): (PlaceChoice, usize, &[usize]),
    terms: &Terms,
    minutes: u64,
) -> Option<Finding> {
    let place = places.get(k)?;
    let decides = place.figures.first()?;
    let beside = ratios.iter().filter(|ratio| ratio.what == decides.what).map(|ratio| {
        let shown = finding::text::shown(&ratio.ratio);
        format!(", {shown} of {}", ratio.of)
    });
    let rate = finding::text::shown(&decides.rate);
    let beside: String = beside.collect();
    let code = match choice {
        PlaceChoice::Use => Code::WhichUse,
        PlaceChoice::Equal => Code::WhichEqual,
        PlaceChoice::Split => Code::WhichSplit,
        PlaceChoice::Unknown => Code::WhichUnknown,
        PlaceChoice::Alone => Code::WhichAlone,
    };
    let of = |pick: fn(&Compared) -> &Vec<String>| {
        let mut names: Vec<String> = Vec::new();
        for name in left.iter().flat_map(|&other| pick(&standings[k][other])) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let words = match names.len() == place.figures.len() && names.len() > 1 {
            true => "every figure".to_owned(),
            false => finding::numbers::list(&names),
        };
        (!names.is_empty()).then_some(Value::Words(words))
    };
    let better = left.iter().find(|&&other| !standings[k][other].worse.is_empty());
    let named: Vec<String> = left.iter().map(|&other| places[other].label.clone()).collect();
    Some(
        Finding::new(code)
            .with("place", Value::name(&place.place))
            .with("places", Value::words(finding::numbers::list(&named)))
            .with_some("label", (places.len() > 1).then(|| Value::words(&place.label)))
            .with("first", Value::words(format!("{rate} {}{beside}", decides.what)))
            .with("margin", Number::share(terms.margin))
            .with("minutes", minutes.saturating_mul(4))
            .with_some("better", of(|compared| &compared.better))
            .with_some("worse", of(|compared| &compared.worse))
            .with_some("open", of(|compared| &compared.open))
            .with_some("other", better.map(|&other| Value::words(&places[other].label))),
    )
}

/// Places whose visits failed: before anything else.
fn failed(places: &[PlaceFigures]) -> Vec<Finding> {
    let found = |place: &PlaceFigures| {
        Finding::new(Code::PlaceFailed)
            .with("place", Value::name(&place.place))
            .with("failed", place.failed)
    };
    places.iter().filter(|place| place.failed > 0).map(found).collect()
}

/// Places that share disks: what differs between them is something else.
fn on_one_disk(views: &[View<'_>]) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (k, view) in views.iter().enumerate() {
        let Some(tree) = &view.run.header.stack else { continue };
        let disks = tree.layers.iter().filter(|layer| matches!(layer.what, What::Disk(_)));
        disks.for_each(|disk| places.entry(&disk.id).or_default().push(label(k)));
    }
    let mut disks: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (disk, places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
        disks.entry(places).or_default().push(disk.to_owned());
    }
    let found = |(places, disks): (Vec<String>, Vec<String>)| {
        Finding::new(Code::WhichOneDisk)
            .with("places", Value::words(finding::numbers::list(&places)))
            .with("disks", Value::words(finding::numbers::list(&disks)))
    };
    disks.into_iter().map(found).collect()
}

/// Places that stood still.
fn stalled(places: &[PlaceFigures]) -> Option<Finding> {
    let (stood, others): (Vec<_>, Vec<_>) = places.iter().partition(|place| place.stalls > 0);
    let record = |place: &&PlaceFigures| {
        let values = [
            ("name".to_owned(), Value::words(&place.label)),
            ("n".to_owned(), Value::Count(place.stalls.into())),
            ("longest".to_owned(), Value::Number(Number::ns(place.stall_ns_max))),
        ];
        Value::Record(values.into())
    };
    let never: Vec<String> = others.iter().map(|place| place.label.clone()).collect();
    let never = (!never.is_empty()).then(|| Value::words(finding::numbers::list(&never)));
    let all: Vec<Value> = stood.iter().map(record).collect();
    let found = Finding::new(Code::WhichStalled).with("places", Value::List(all));
    (!stood.is_empty()).then(|| found.with_some("never", never))
}

/// The reference by the other side.
fn inverse(ratio: Ratio) -> Number {
    let Ratio { ratio, low, high } = ratio.inverse();
    let number = Number::ratio(ratio);
    low.zip(high).map_or(number, |(low, high)| number.within(low, high))
}

/// Mean time of an operation, over all visits of a row; `None` where none completed.
fn mean_seconds(row: &CellView<'_>, op: &str) -> Option<(f64, u64)> {
    let streams = row.visits.iter().flat_map(|visit| visit.streams());
    let ops = streams.flat_map(|stream| &stream.ops).filter(|one| one.op == op);
    let (sum, count) = ops.fold((0u128, 0u64), |(sum, count), one| {
        (sum.saturating_add(one.latency_ns_sum), count.saturating_add(one.requests))
    });
    (count > 0).then(|| (sum as f64 / count as f64 / 1e9, count))
}

/// What a commit waits for, in the row that decides.
fn limit(view: &View<'_>, place: &PlaceFigures) -> Option<Finding> {
    let row_of = |rank: u8| {
        let name = &place.figures.iter().find(|figure| figure.rank == rank)?.row;
        view.grid_rows().find(|row| row.name() == *name)
    };
    let row = row_of(1).or_else(|| row_of(2))?;
    let (_, commits) = mean_seconds(row, "commit")?;
    let (write, writes) = mean_seconds(row, "write")?;
    let flush = mean_seconds(row, "fdatasync").or_else(|| mean_seconds(row, "fsync"));
    let is_flush = flush.is_some_and(|(flush, _)| flush >= write);
    let time = if is_flush { flush.map_or(write, |(flush, _)| flush) } else { write };
    let sessions = row.plans().first().map_or(1, |plan| plan.queue_depth);
    let read = row_of(3).and_then(|row| {
        let depth = row.plans().first().map_or(1, |plan| plan.queue_depth);
        Some((mean_seconds(row, "read")?.0, depth))
    });
    // The rate that decides has its own latency.
    let (decides, beside) = row_of(0).map_or((row, false), |row| (row, true));
    let found = Finding::new(Code::WhichLimit)
        .with("flush", is_flush)
        .with("place", Value::name(&place.place))
        .with("time", Number::seconds(time))
        .with("sessions", sessions)
        .with("one", sessions == 1)
        .with("share", Number::plain(commits as f64 / writes.max(1) as f64))
        .with_some("longest", percentile(decides, 99.0))
        .with("beside", beside)
        .with_some("read_time", read.map(|(time, _)| Number::seconds(time)));
    Some(found.with_some("depth", read.map(|(_, depth)| depth)))
}

/// What a cache answered.
fn cached(places: &[PlaceFigures]) -> Vec<Finding> {
    let of = |place: &PlaceFigures| {
        let names: Vec<String> = place
            .figures
            .iter()
            .filter(|figure| figure.cached)
            .map(|figure| figure.what.clone())
            .collect();
        (!names.is_empty()).then(|| {
            Finding::new(Code::WhichCached)
                .with("what", Value::words(finding::numbers::list(&names)))
                .with("place", Value::name(&place.place))
        })
    };
    places.iter().filter_map(of).collect()
}

fn sure(views: &[View<'_>], places: &[PlaceFigures], left: &[usize], terms: &Terms) -> Finding {
    let named = |place: &PlaceFigures| {
        let name = Value::name(&place.place);
        let label = Value::words(&place.label);
        Value::Record([("label".to_owned(), label), ("name".to_owned(), name)].into())
    };
    let named: Vec<Value> = places.iter().map(named).collect();
    let visits = |view: &View<'_>| view.grid_rows().map(|row| row.visits.len()).min().unwrap_or(0);
    let blocks = left.iter().filter_map(|&k| views.get(k)).map(visits).min();
    let is_simulated = views.iter().any(|view| view.run.header.target.model.is_some());
    Finding::new(Code::WhichSure)
        .with_some("simulated", is_simulated.then_some(Value::Flag(true)))
        .with("blocks", blocks.unwrap_or(0))
        .with("several", views.len() > 1)
        .with_some("places", (places.len() > 1).then_some(Value::List(named)))
        .with("confidence", Number::share(terms.confidence))
        .with("margin", Number::share(terms.margin))
}

/// The figures that decide and are not known well enough for that; `None` where all are.
fn decide_wide(places: &[PlaceFigures]) -> Option<String> {
    let is_wide = |figure: &&PlaceFigure| {
        let ends = figure.rate.low.zip(figure.rate.high);
        ends.is_none_or(|(low, high)| low * WIDE < high)
    };
    let of = |place: &PlaceFigures| {
        let first = place.figures.first().filter(is_wide)?;
        Some(format!("{} of {}", first.what, finding::quoted(&place.place)))
    };
    let all: Vec<String> = places.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| finding::numbers::list(&all))
}

/// What disturbed any of them, each kind once. That streams cost each other is asked for.
pub(crate) fn disturbed(views: &[View<'_>], sections: &[Section]) -> Finding {
    let mut by: Vec<Value> = Vec::new();
    let is_foreign = |view: &View<'_>| {
        let marks = Findings::of(view).marks(view);
        marks.iter().any(|mark| mark.code == Code::ForeignTraffic)
    };
    if views.iter().any(is_foreign) {
        by.push(Value::words("traffic on the device that was not asked for"));
    }
    by.extend(disturbed_by(sections, |question| question != Question::Interference));
    match by.is_empty() {
        true => Finding::new(Code::AnswerUndisturbed),
        false => Finding::new(Code::AnswerDisturbed).with("by", Value::List(by)),
    }
}

#[cfg(test)]
mod tests {
    use record::TargetKind;

    use super::*;
    use crate::advice::example::{disk, fs, tree};
    use crate::freeze::tests::run;

    #[test]
    fn places_on_one_disk_are_said_to_be() {
        let on = |id: &str| {
            let mut run = run(TargetKind::File, Vec::new());
            run.header.stack = Some(tree(vec![fs("ext4", id, "rw"), disk(id, "pci0000:00")]));
            run
        };
        let unseen = run(TargetKind::File, Vec::new());
        let runs = [on("sda"), on("sdb"), on("sda"), unseen, on("sdc"), on("sdb")];
        let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
        let said: Vec<String> = on_one_disk(&views).iter().map(Finding::text).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("One disk: A and C share sda,"), "{said:?}");
        assert!(said[1].starts_with("One disk: B and F share sdb,"), "{said:?}");
    }
}
