//! How many visits a run was to have, how many it has, and what became of the others.

use std::collections::BTreeMap;

use finding::{Code, Finding, Value};
use record::{Purpose, Run, RunHeader, RunState, VisitEnd, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::memory::Rows;
use suite::model::Method;

use crate::words::count;

/// The visits of a run, those of the fill included; pilots are none. A visit that was made again
/// counts once, by the better of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Visits {
    /// That there were to be. Of a complete run in rounds: those that were begun, and what cells
    /// have fewer than the plan has at least.
    pub planned: u32,
    /// `planned` is the most there can be: of rounds that have not come to their end, which cells
    /// leave as soon as enough is known of them.
    pub at_most: bool,
    /// That count: ended by their stop rule, with something measured.
    pub made: u32,
    /// The others: `planned` less `made`. Of a run under way only those that went wrong.
    pub missed: u32,
    /// Of these, ended by an error.
    pub failed: u32,
    /// Of these, lost with requests that never came back.
    pub lost: u32,
    /// Of these, never made, or cut short by the user.
    pub not_made: u32,
    /// Of those, visits by which cells of a complete run have fewer than the plan has at least:
    /// there was no time for them. What is left of `not_made` such a run's store should have, and
    /// has not.
    pub no_time: u32,
}

/// How a run stands and what became of its visits, on one line: the head of everything that is
/// said of it. `out of time, 210 of 252 visits, 42 missed: 42 not made in time`.
pub fn head(run: &Run) -> String {
    let visits = Visits::of(run);
    format!("{}, {}", visits.standing(&run.header), visits.line())
}

/// What became of a visit, better ones larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    CutShort,
    Failed,
    Lost,
    Made,
}

impl Visits {
    /// Of a run.
    pub fn of(run: &Run) -> Self {
        let mut fates: BTreeMap<(u32, u32), Fate> = BTreeMap::new();
        for visit in run.visits.iter().filter(|visit| visit.purpose == Purpose::Measure) {
            let fate = fate(run, visit);
            let best = fates.entry((visit.cell, visit.repeat)).or_insert(fate);
            *best = fate.max(*best);
        }
        let of = |wanted: Fate| size(fates.values().filter(|fate| **fate == wanted).count());
        let (made, failed, lost) = (of(Fate::Made), of(Fate::Failed), of(Fate::Lost));
        let state = run.header.state;
        let complete = state == RunState::Complete;
        let no_time = if complete { no_time(run, &fates) } else { 0 };
        let begun = size(fates.len()).saturating_add(no_time);
        let planned = begun.max(run.header.visits_planned);
        let not_made = planned.saturating_sub(made.saturating_add(failed).saturating_add(lost));
        // What a run under way has still to make is not missing.
        let not_made = if state == RunState::Running { 0 } else { not_made };
        let missed = not_made.saturating_add(failed).saturating_add(lost);
        let at_most = !complete && ends_when_known(run);
        Self { planned, at_most, made, missed, failed, lost, not_made, no_time }
    }

    /// `36 of 36 visits`; `24 of 36 visits, 12 missed: 2 failed, 10 not made in time`; `7 of up to
    /// 20 visits`.
    pub fn line(&self) -> String {
        let up_to = if self.at_most { "up to " } else { "" };
        let so_many = format!("{} of {up_to}{}", self.made, count(self.planned.into(), "visit"));
        match self.why() {
            why if why.is_empty() => so_many,
            why => format!("{so_many}, {} missed: {}", self.missed, why.join(", ")),
        }
    }

    fn why(&self) -> Vec<String> {
        let others = self.not_made.saturating_sub(self.no_time);
        let told = [
            (self.failed, "failed"),
            (self.lost, "lost"),
            (self.no_time, "not made in time"),
            (others, "not made"),
        ];
        told.iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("{n} {how}")).collect()
    }

    /// How a run stands, in a word: `complete`, `out of time`, `interrupted`, `killed`, `failed`,
    /// `running`, `imported`. One that had no time for what it was to make at least has come to its
    /// end, and is not complete.
    pub fn standing(&self, header: &RunHeader) -> &'static str {
        match header.state {
            _ if header.imported.is_some() => "imported",
            RunState::Complete if self.no_time > 0 => "out of time",
            state => state.name(),
        }
    }

    /// What it means that there was no time for some; `None` where there was for all.
    ///
    /// * `name`: what to call the run.
    pub fn finding(&self, name: &str) -> Option<Finding> {
        let found = Finding::new(Code::OutOfTime).with("run", Value::words(name));
        (self.no_time > 0).then(|| found.with("missing", self.no_time))
    }
}

/// The rate of a visit, or of one of its streams, over its whole rows. Empty where its operations
/// were not counted in rows alike.
pub fn within(visit: &VisitRecord, stream: Option<usize>) -> Rows {
    let series = || crate::view::counted(visit, stream).map(|op| &op.series);
    let interval = series().map(|series| series.interval_ns).find(|&ns| ns > 0).unwrap_or(0);
    let alike = series().all(|series| series.rows.is_empty() || series.interval_ns == interval);
    if !alike || interval == 0 {
        return Rows::default();
    }
    let most = series().map(|series| series.rows.len()).max().unwrap_or(0);
    let whole = usize::try_from(visit.rated_ns() / interval).map_or(most, |n| n.min(most));
    let mut sums = vec![0.0; whole];
    for series in series() {
        for (sum, row) in sums.iter_mut().zip(&series.rows) {
            *sum += row.requests as f64;
        }
    }
    let seconds = interval as f64 / 1e9;
    let rates: Vec<f64> = sums.iter().map(|sum| sum / seconds).collect();
    Rows::new(visit.started_unix_ns as f64 / 1e9, seconds, &rates)
}

fn fate(run: &Run, visit: &VisitRecord) -> Fate {
    match visit.end {
        VisitEnd::Complete => Fate::Made,
        // Another tool need not tell how long it took.
        VisitEnd::Hanging if visit.elapsed_ns > 0 || run.header.imported.is_some() => Fate::Made,
        VisitEnd::Hanging => Fate::Lost,
        VisitEnd::Failed => Fate::Failed,
        VisitEnd::Interrupted => Fate::CutShort,
    }
}

/// Visits by which cells of the grid have fewer than the plan has at least.
fn no_time(run: &Run, fates: &BTreeMap<(u32, u32), Fate>) -> u32 {
    let cells = run.cells.iter().zip(least(run));
    let possible = cells.filter(|(cell, _)| cell.impossible.is_none());
    let missing = possible.map(|(cell, least)| {
        let begun = fates.range((cell.index, 0)..=(cell.index, u32::MAX)).count();
        least.saturating_sub(size(begun))
    });
    missing.fold(0, u32::saturating_add)
}

/// By cell of the grid, the least number of visits that the plan has to it: 0 where that is not
/// fixed, or not known.
fn least(run: &Run) -> Vec<u32> {
    // A comparison in turns and a load line end when enough is known, and what another tool planned
    // it says.
    let is_line = crate::line::looks_for_line(run);
    if run.header.blocks.is_some() || run.header.imported.is_some() || is_line {
        return Vec::new();
    }
    let Some(plan) = crate::view::checked(&run.header.suite_text) else { return Vec::new() };
    let visits = match plan.method {
        Method::Classic => plan.repeats,
        Method::Rounds => plan.rounds.visits_min,
    };
    let phases = plan.phases.iter();
    phases
        .flat_map(|phase| {
            // Until it is steady: how many, nobody knows beforehand.
            let visits = if phase.steady.is_some() { 0 } else { visits };
            std::iter::repeat_n(visits, phase.cells.len())
        })
        .collect()
}

/// Whether the plan has rounds that end when enough is known, so that it has visits "up to".
fn ends_when_known(run: &Run) -> bool {
    let is_line = crate::line::looks_for_line(run);
    if run.header.blocks.is_some() || run.header.imported.is_some() || is_line {
        return false;
    }
    crate::view::checked(&run.header.suite_text).is_some_and(|plan| match plan.method {
        Method::Classic => plan.phases.iter().any(|phase| phase.steady.is_some()),
        Method::Rounds => plan.rounds.visits_min < plan.rounds.visits_max,
    })
}

fn size(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use record::TargetKind;

    use super::*;
    use crate::freeze::tests::{run, visit};

    const PLAN: &str = r#"
        schema = 1
        name = "s"
        method = "rounds"
        file_size = "1GiB"
        defaults = { time = "10s" }
        phase = [{ name = "read" }, { name = "write", operation = "write" }]
    "#;

    /// Visits to two cells, of which three each were to be made at least.
    fn played(made: &[(&str, u32, VisitEnd)]) -> Run {
        let visits = (0u32..).zip(made).map(|(order, &(op, repeat, end))| {
            let mut visit = visit(order, op, &[]);
            (visit.repeat, visit.end) = (repeat, end);
            visit
        });
        let mut run = run(TargetKind::File, visits.collect());
        run.header.suite_text = PLAN.to_owned();
        run.header.state = RunState::Complete;
        run.header.visits_planned = made.len() as u32;
        assert_eq!(least(&run), [3, 3]);
        run
    }

    const DONE: VisitEnd = VisitEnd::Complete;

    #[test]
    fn visits_that_failed_or_were_lost_are_missed() {
        // `complete, 6 of 6 visits` was said of all of these.
        let all = |n: u32| (0..n).flat_map(|k| [("read", k, DONE), ("write", k, DONE)]);
        let mut made: Vec<_> = all(3).collect();
        assert_eq!(Visits::of(&played(&made)).line(), "6 of 6 visits");
        made[4].2 = VisitEnd::Failed;
        assert_eq!(Visits::of(&played(&made)).line(), "5 of 6 visits, 1 missed: 1 failed");
        let mut lost = played(&made);
        lost.visits[1].end = VisitEnd::Hanging;
        assert_eq!(Visits::of(&lost).missed, 1, "it hung, and measured all the same");
        lost.visits[1].elapsed_ns = 0;
        assert_eq!(Visits::of(&lost).line(), "4 of 6 visits, 2 missed: 1 failed, 1 lost");
        // Made again on a resume, under its number.
        made.push(("read", 2, DONE));
        let again = Run { header: played(&made[..6]).header, ..played(&made) };
        assert_eq!(Visits::of(&again).line(), "6 of 6 visits");
    }

    #[test]
    fn visits_that_there_was_no_time_for_are_missed() {
        let short = played(&[("read", 0, DONE), ("write", 0, DONE), ("read", 1, DONE)]);
        let found = Visits::of(&short);
        assert_eq!(found.line(), "3 of 6 visits, 3 missed: 3 not made in time");
        let standing = |state| {
            let header = RunHeader { state, ..short.header.clone() };
            found.standing(&header)
        };
        assert_eq!(standing(RunState::Complete), "out of time");
        assert_eq!(standing(RunState::Interrupted), "interrupted");
        let of_head = "out of time, 3 of 6 visits, 3 missed: 3 not made in time";
        assert_eq!(head(&short), of_head);
        let said = found.finding("r1").unwrap().text();
        assert!(said.starts_with("r1 ended 3 visits short of the minimum"), "{said}");
        // More of one cell make up for none of another.
        let mut uneven: Vec<_> = (0..5).map(|k| ("read", k, DONE)).collect();
        uneven.push(("write", 0, DONE));
        assert_eq!(
            Visits::of(&played(&uneven)).line(),
            "6 of 8 visits, 2 missed: 2 not made in time"
        );
        // What cannot be measured here was not to be, nor more in a comparison than it took.
        let mut impossible = played(&uneven);
        impossible.cells[1].impossible = Some("too small".to_owned());
        assert_eq!(Visits::of(&impossible).no_time, 0);
    }

    #[test]
    fn what_a_run_broken_off_has_not_made_is_missed() {
        let mut part = played(&[("read", 0, DONE), ("write", 0, VisitEnd::Failed)]);
        part.header.visits_planned = 20;
        part.header.state = RunState::Running;
        assert_eq!(head(&part), "running, 1 of up to 20 visits, 1 missed: 1 failed");
        for state in [RunState::Interrupted, RunState::Killed, RunState::Failed] {
            part.header.state = state;
            let line = "1 of up to 20 visits, 19 missed: 1 failed, 18 not made";
            assert_eq!(head(&part), format!("{}, {line}", state.name()));
        }
        // What a plan in its suite's own order has is not "up to".
        part.header.suite_text = PLAN.replace("rounds", "classic");
        assert_eq!(head(&part), "failed, 1 of 20 visits, 19 missed: 1 failed, 18 not made");
    }

    #[test]
    fn a_damaged_run_is_not_short_of_time() {
        let all = (0..3).flat_map(|k| [("read", k, DONE), ("write", k, DONE)]);
        let mut damaged = played(&all.collect::<Vec<_>>());
        damaged.header.visits_planned = 9;
        let found = Visits::of(&damaged);
        assert_eq!(
            (found.line().as_str(), found.no_time),
            ("6 of 9 visits, 3 missed: 3 not made", 0)
        );
        assert_eq!(found.finding("r1"), None);
    }
}
