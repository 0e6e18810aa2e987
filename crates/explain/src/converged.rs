//! Which rows of a run are not known as well as was asked for, told alike wherever it is told: as a
//! mark, as a warning of the run, in its explanation. It is told by the interval that is shown, and
//! by nothing else.

use std::collections::{BTreeMap, BTreeSet};

use record::{Purpose, RunState, VisitEnd};
use schemars::JsonSchema;
use serde::Serialize;
use suite::model::{Method, Suite};
use units::Nanos;

use crate::interval::{self, Basis, CellInterval};
use crate::view::{CellView, View, is_preparation};
use crate::whole::broken_off;
use crate::words::{count, percents_apart, reach};

/// A row whose interval is wider than was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// Index of its cell.
    pub cell: u32,
    /// The stream, of a cell that has several.
    pub stream: Option<String>,
    /// How wide it is, and what was wanted.
    pub evidence: String,
    /// What more it would have taken.
    pub why: Lack,
}

/// Why a row is not known better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// Its visits agree as well as was asked for, and each has too few requests for those in
    /// flight: more of them change nothing, longer ones would.
    Length,
    /// It was known well enough when its visits ended; the noise that later visits of cells like it
    /// showed is in its interval too.
    Noise,
    /// As many of its visits failed as would have been enough.
    Failures,
    /// It had all the visits that it may have.
    Visits,
    /// It was to have more visits.
    Time,
}

/// How much of a run is not known as well as was asked for. In a run of one stream a cell, rows are
/// its cells. Each of `cells` is in one of the five counts that follow it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct NotConverged {
    /// Rows with a mark `not-converged`: cells, or streams of cells that have several.
    pub rows: u32,
    /// Rows that could have it: those of phases that end by how well they are known.
    pub of_rows: u32,
    /// Cells that these rows are of.
    pub cells: u32,
    /// And of those.
    pub of_cells: u32,
    /// Of `of_cells`, those that were never visited; they are not in `cells`.
    pub never: u32,
    /// Of `cells`, those that had all the visits they may have.
    pub at_cap: u32,
    /// Of `cells`, those whose visits agree as well as was asked for, and have too few requests each
    /// for those in flight: longer visits would help, more would not.
    pub too_short: u32,
    /// Of `cells`, those that were known well enough when their visits ended, before those of other
    /// cells showed more noise.
    pub noisier: u32,
    /// Of `cells`, those of which as many visits failed as would have been enough.
    pub failing: u32,
    /// Of `cells`, those that were to have more visits: for which the time ran out, or that the run
    /// had not come to when it was broken off.
    pub unvisited: u32,
    /// How the run ended before it came to its end, for people: `was killed`. Null where it did come
    /// to its end, and its time ran out.
    pub broken_off: Option<String>,
    /// It is being made.
    #[serde(skip)]
    pub running: bool,
    /// What was asked for, as a share: 0.05 for 5 %. Null where nothing was.
    pub wanted: Option<f64>,
    /// Visits that a cell may have.
    pub visits_max: u32,
    /// Time that the visits may take together.
    pub time_max_ns: u64,
}

/// What a plan asks of its intervals.
pub(crate) struct Asked<'v> {
    plan: &'v Suite,
    /// Visits made to each cell, and those of them that failed.
    made: BTreeMap<u32, (u32, u32)>,
    /// Cells of which a visit was begun. A pilot is none.
    begun: BTreeSet<u32>,
    /// The most visits to any cell of a phase.
    most: BTreeMap<String, u32>,
}

impl<'v> Asked<'v> {
    /// `None` where the plan cannot be read, or has no intervals between visits: played in an order
    /// of its own, or with one visit to a cell.
    pub(crate) fn of(view: &'v View<'_>) -> Option<Self> {
        let plan = view.suite()?;
        let by_width = plan.method == Method::Rounds && plan.rounds.visits_max > 1;
        // A comparison in turns has as many visits as it has blocks; of a load line no rate by itself
        // is to be known well.
        let is_line = crate::line::looks_for_line(view.run);
        if !by_width || view.run.header.blocks.is_some() || is_line {
            return None;
        }
        let mut repeats: BTreeMap<(u32, u32), bool> = BTreeMap::new();
        let measured = view.run.visits.iter().filter(|visit| {
            visit.purpose == Purpose::Measure && visit.end != VisitEnd::Interrupted
        });
        for visit in measured {
            let failed = repeats.entry((visit.cell, visit.repeat)).or_insert(true);
            *failed = *failed && visit.end == VisitEnd::Failed;
        }
        let mut made: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for ((cell, _), failed) in repeats {
            let counts = made.entry(cell).or_default();
            *counts = (counts.0 + 1, counts.1 + u32::from(failed));
        }
        let mut most: BTreeMap<String, u32> = BTreeMap::new();
        for cell in &view.run.cells {
            let visits = made.get(&cell.index).map_or(0, |(visits, _)| *visits);
            let most = most.entry(cell.phase.clone()).or_default();
            *most = visits.max(*most);
        }
        let visits = view.run.visits.iter().filter(|visit| visit.purpose == Purpose::Measure);
        let begun = visits.map(|visit| visit.cell).collect();
        Some(Self { plan, made, begun, most })
    }

    /// Whether the width of its interval ends a row's visits; rounds of a steady phase end by
    /// another rule.
    fn is_about(&self, row: &CellView<'_>) -> bool {
        let phase = self.plan.phases.iter().find(|phase| phase.name == row.cell.phase);
        !is_preparation(&row.cell.phase) && phase.is_some_and(|phase| phase.steady.is_none())
    }

    /// A row that is not known so well. One that was never visited is another matter.
    pub(crate) fn open(&self, row: &CellView<'_>, found: Option<&CellInterval>) -> Option<Open> {
        let wanted = self.plan.rounds.precision;
        if !self.is_about(row) || !self.begun.contains(&row.cell.index) {
            return None;
        }
        if row.visits.is_empty() {
            return Some(Open {
                cell: row.cell.index,
                stream: row.stream_name().map(str::to_owned),
                evidence: format!(
                    "no visit came to its end, wanted {}",
                    crate::words::percent(wanted)
                ),
                why: self.lack(row),
            });
        }
        let visits = count(row.visits.len() as u64, "visit");
        let (evidence, agree) = match found.filter(|found| found.basis == Basis::Visits) {
            // Nothing is known of how visits differ.
            None => {
                let wanted = crate::words::percent(wanted);
                (format!("{visits} cannot tell how sure it is, wanted {wanted}"), false)
            }
            // A hair wider is what the rule that ends a cell calls narrow enough.
            Some(found) if found.half_width <= wanted * (1.0 + 1e-9) => return None,
            Some(found) => {
                let by_visits =
                    (1.0 + found.half_width) / (1.0 + found.ends_share.unwrap_or(0.0)) - 1.0;
                let agree = by_visits <= wanted * (1.0 + 1e-9);
                let (seen, wanted) = percents_apart(found.half_width, wanted);
                let why = match agree {
                    true => format!(
                        ": they agree ({}), and the start and the end of each make the rest; \
                         longer visits help, more do not",
                        reach(by_visits)
                    ),
                    false => String::new(),
                };
                let seen = match found.is_wide() {
                    true => format!("{} after {visits}, wanted +-{wanted}", found.ends()),
                    false => format!("+-{seen} after {visits}, wanted {wanted}"),
                };
                (format!("{seen}{why}"), agree)
            }
        };
        Some(Open {
            cell: row.cell.index,
            stream: row.stream_name().map(str::to_owned),
            evidence,
            why: if agree { Lack::Length } else { self.lack(row) },
        })
    }

    /// What ended the visits of a row that do not agree well enough. All cells that are open are
    /// visited in a round, so one with fewer visits than another was not open any more.
    fn lack(&self, row: &CellView<'_>) -> Lack {
        let rounds = &self.plan.rounds;
        let (made, failed) = self.made.get(&row.cell.index).copied().unwrap_or_default();
        let most = self.most.get(&row.cell.phase).copied().unwrap_or(0);
        match () {
            () if made >= rounds.visits_max => Lack::Visits,
            () if failed >= rounds.visits_min => Lack::Failures,
            () if made < most && made >= rounds.visits_min => Lack::Noise,
            () => Lack::Time,
        }
    }
}

/// How much of a run is not known as well as was asked for.
pub fn not_converged(view: &View<'_>) -> NotConverged {
    let Some(asked) = Asked::of(view) else { return NotConverged::default() };
    let rows = view.rows.iter().zip(interval::rows(view));
    let rows = rows.filter(|(row, _)| asked.is_about(row) && row.cell.impossible.is_none());
    let rows: Vec<(u32, Option<Open>)> =
        rows.map(|(row, found)| (row.cell.index, asked.open(row, found.as_ref()))).collect();
    let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    // What most hinders any of its rows: the last of these.
    let mut whys: BTreeMap<u32, Lack> = BTreeMap::new();
    for open in rows.iter().filter_map(|(_, open)| open.as_ref()) {
        let why = whys.entry(open.cell).or_insert(open.why);
        *why = open.why.max(*why);
    }
    let cells = |wanted: Lack| size(whys.values().filter(|why| **why == wanted).count());
    let about: BTreeSet<u32> = rows.iter().map(|(cell, _)| *cell).collect();
    let rounds = &asked.plan.rounds;
    NotConverged {
        never: size(about.difference(&asked.begun).count()),
        rows: size(rows.iter().filter(|(_, open)| open.is_some()).count()),
        of_rows: size(rows.len()),
        cells: size(whys.len()),
        of_cells: size(about.len()),
        at_cap: cells(Lack::Visits),
        too_short: cells(Lack::Length),
        noisier: cells(Lack::Noise),
        failing: cells(Lack::Failures),
        unvisited: cells(Lack::Time),
        broken_off: broken_off(&view.run.header).map(str::to_owned),
        running: view.run.header.state == RunState::Running,
        wanted: Some(rounds.precision),
        visits_max: rounds.visits_max,
        time_max_ns: rounds.time_max.get(),
    }
}

impl NotConverged {
    /// As of a run that has come to its end: what it will be when this is stored.
    #[must_use]
    pub fn at_the_end(self) -> Self {
        Self { broken_off: None, ..self }
    }

    /// How many and why, without a full stop; `None` where all are known as well as was asked for.
    pub fn text(&self) -> Option<String> {
        let never = match self.never {
            0 => String::new(),
            n => {
                let were = if n == 1 { "was" } else { "were" };
                format!("{n} of {} {were} never visited", count(self.of_cells.into(), "cell"))
            }
        };
        let Some(wanted) = self.wanted.filter(|_| self.rows > 0) else {
            return Some(never).filter(|never| !never.is_empty());
        };
        let what = match self.of_rows > self.of_cells {
            true => format!(
                "{} of {} streams, in {} of {} cells,",
                self.rows, self.of_rows, self.cells, self.of_cells
            ),
            false => format!("{} of {}", self.cells, count(self.of_cells.into(), "cell")),
        };
        let are = if self.rows == 1 { "is" } else { "are" };
        let unknown = format!("{what} {are} not known to {} %", (wanted * 1e4).round() / 1e2);
        let whys: Vec<(u32, String)> = self.whys().into_iter().filter(|(n, _)| *n > 0).collect();
        let known = match whys.as_slice() {
            [(_, only)] => format!("{unknown}: {only}"),
            several => {
                let each: Vec<String> =
                    several.iter().map(|(n, why)| format!("in {n} {why}")).collect();
                format!("{unknown}: {}", each.join("; "))
            }
        };
        Some(if never.is_empty() { known } else { format!("{known}. Besides, {never}") })
    }

    /// Each reason with the cells that it is of.
    fn whys(&self) -> [(u32, String); 5] {
        let (visits, time) = (count(self.visits_max.into(), "visit"), Nanos::new(self.time_max_ns));
        let time = match &self.broken_off {
            None => format!("more visits are needed than fit into {time} (--max-time)"),
            Some(_) if self.running => "more visits are to come".to_owned(),
            Some(how) => format!("more visits were to come, and the run {how}"),
        };
        [
            (self.unvisited, time),
            (
                self.at_cap,
                format!(
                    "the limit of {visits} per cell was reached; raise it (--set rounds.visits_max=...)"
                ),
            ),
            (self.failing, "as many visits failed as would have been enough".to_owned()),
            (
                self.noisier,
                "they were when their visits ended, and later visits of cells like them showed \
                 more noise"
                    .to_owned(),
            ),
            (
                self.too_short,
                "visits agree, but each is too short for so many requests in flight: longer visits help \
                 (--set time=...), more of them do not"
                    .to_owned(),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::Findings;
    use crate::freeze::tests::suite_text;

    #[test]
    fn marks_and_count_are_of_one_interval_a_row() {
        let mut run = crate::interference::tests::both(2_500, Nanos::millis(8));
        let phase = r#"
[[phase]]
name = "p"
operation = "read"
grid.streams = ["a", "b", "all"]
stream = [{ name = "a" }, { name = "b" }]
"#;
        run.header.suite_text = suite_text("", phase);
        // Alone its visits differ much, beside the other little: what is usual is between.
        for visit in run.visits.iter_mut().filter(|visit| visit.cell == 0) {
            visit.streams[0].ops[0].requests += u64::from(visit.repeat) * 700;
        }
        let view = View::new(&run);
        let findings = Findings::of(&view);
        for (row, interval) in view.rows.iter().zip(interval::rows(&view)) {
            assert_eq!(findings.interval_of(&view, row), interval.as_ref(), "{}", row.name());
        }
        let marks = findings.marks(&view);
        let marked = marks.iter().filter(|mark| mark.code.name() == "not-converged").count();
        let found = &findings.not_converged;
        assert_eq!((marked as u32, found.of_rows, found.of_cells), (found.rows, 4, 3));
        let text = found.text().unwrap_or_default();
        assert!(text.contains(&format!("{marked} of 4 streams, in ")), "{text}");
    }

    const ROUNDS: &str = r#"rounds = { visits_min = 3, visits_max = 10, time_max = "10min" }"#;
    const PHASE: &str = r#"
[[phase]]
name = "p"
operation = "read"
grid.threads = [1, 2]
"#;

    /// Two cells of one phase; of each visit the cell, and its requests in 10 s.
    fn rounds(visits: &[(u32, u64)]) -> record::Run {
        let mut run = crate::interference::tests::both(2_500, Nanos::millis(8));
        run.header.suite_text = suite_text(ROUNDS, PHASE);
        let template = run.visits[0].clone();
        let mut repeats = [0, 0];
        run.visits = (0u32..)
            .zip(visits)
            .map(|(order, &(cell, requests))| {
                let mut visit = record::VisitRecord { cell, order, ..template.clone() };
                visit.repeat = repeats[cell as usize];
                repeats[cell as usize] += 1;
                visit.streams[0].ops[0].requests = requests;
                visit
            })
            .collect();
        run.cells.truncate(2);
        for (cell, threads) in run.cells.iter_mut().zip(["1", "2"]) {
            cell.coordinates = vec![("threads".to_owned(), threads.to_owned())];
            cell.streams.truncate(1);
        }
        run
    }

    fn text(run: &record::Run) -> String {
        not_converged(&View::new(run)).text().unwrap_or_default()
    }

    #[test]
    fn pilots_are_no_visits_and_failed_ones_are_counted() {
        let mut run = rounds(&(0..6).map(|k| (k % 2, 1_000 + u64::from(k))).collect::<Vec<_>>());
        run.header.state = RunState::Killed;
        run.visits.retain(|visit| visit.cell == 0 || visit.repeat == 0);
        let last = run.visits.iter_mut().find(|visit| visit.cell == 1).unwrap();
        last.end = VisitEnd::Failed;
        let unknown = "1 of 2 cells is not known to 5 %: ";
        assert!(text(&run).starts_with(unknown) && !text(&run).contains("never"), "{}", text(&run));
        let view = View::new(&run);
        let marks = Findings::of(&view).marks(&view);
        let mark = marks.iter().find(|mark| mark.code.name() == "not-converged").unwrap();
        assert_eq!(
            (mark.cell, mark.evidence.as_str()),
            (1, "no visit came to its end, wanted 5.0 %")
        );
        run.visits.iter_mut().for_each(|visit| visit.purpose = Purpose::Pilot);
        assert_eq!(text(&run), "2 of 2 cells were never visited");
    }

    #[test]
    fn the_interval_that_is_shown_decides() {
        let visits: Vec<(u32, u64)> = (0..6).map(|k| (k % 2, 1_000 + u64::from(k))).collect();
        let mut run = rounds(&visits);
        assert_eq!(text(&run), "", "visits agree within 1 %, and 1 is in flight");
        // With 100 in flight their start and end may make a tenth of it.
        run.cells[0].streams[0].queue_depth = 100;
        for visit in run.visits.iter_mut().filter(|visit| visit.cell == 0) {
            let op = &mut visit.streams[0].ops[0];
            op.latency_ns_sum = 100 * u128::from(visit.elapsed_ns);
        }
        let view = View::new(&run);
        let shown = interval::rows(&view)[0].clone().unwrap();
        assert!(shown.half_width > 0.09 && shown.ends_share.unwrap() > 0.09, "{shown:?}");
        let found = not_converged(&view);
        assert_eq!((found.rows, found.of_rows, found.cells, found.too_short), (1, 2, 1, 1));
        let marks = Findings::of(&view).marks(&view);
        let mark = marks.iter().find(|mark| mark.code.name() == "not-converged").unwrap();
        let evidence = format!("+-{} after 3 visits", crate::words::percent(shown.half_width));
        assert!(mark.evidence.starts_with(&evidence), "{mark:?}");
        assert!(mark.evidence.contains("they agree ("), "{mark:?}");
        assert!(
            text(&run).contains("1 of 2 cells is not known to 5 %: visits agree"),
            "{}",
            text(&run)
        );
    }

    #[test]
    fn why_more_visits_did_not_come_is_said_as_it_was() {
        let wide = |k: u32| (k % 2, if k < 2 { 500 } else { 1_000 });
        let mut run = rounds(&(0..6).map(wide).collect::<Vec<_>>());
        let unknown = "2 of 2 cells are not known to 5 %: ";
        let mut said = |state| {
            run.header.state = state;
            text(&run)
        };
        assert_eq!(
            said(RunState::Complete),
            format!("{unknown}more visits are needed than fit into 600 s (--max-time)")
        );
        let killed = format!("{unknown}more visits were to come, and the run was killed");
        assert_eq!(said(RunState::Killed), killed);
        assert_eq!(said(RunState::Interrupted), killed.replace("killed", "interrupted"));
        assert!(said(RunState::Failed).ends_with("the run ended by an error"));
        assert_eq!(said(RunState::Running), format!("{unknown}more visits are to come"));
        // Whoever knows that this is the end says so before it is stored.
        let found = not_converged(&View::new(&run)).at_the_end();
        assert_eq!(
            found.text(),
            Some(format!("{unknown}more visits are needed than fit into 600 s (--max-time)"))
        );
        // One that had fewer visits than the other was not open any more in the last round.
        run.visits.retain(|visit| visit.cell == 0);
        let more = "1 of 2 cells is not known to 5 %: more visits are needed than fit into \
                    600 s (--max-time). Besides, 1 of 2 cells \
                    was never visited";
        assert_eq!(not_converged(&View::new(&run)).at_the_end().text().as_deref(), Some(more));
        run.visits.clear();
        assert_eq!(text(&run), "2 of 2 cells were never visited");
        let mut uneven: Vec<(u32, u64)> = (0..6).map(wide).collect();
        uneven.extend((0..7).map(|_| (1, 1_000)));
        let found = not_converged(&View::new(&rounds(&uneven)));
        assert_eq!((found.noisier, found.at_cap), (1, found.cells - 1), "{found:?}");
    }
}
