//! Changes and drift as findings.

use finding::{Code, Finding, Number, Subject, Value};
use units::Nanos;

use super::{CellDrift, Clock, Drifts, Edge, Kept, RunDrift, Slope, Step, VisitDrift};
use crate::words;

/// Lists longer than this are not read.
const LINES_MAX: usize = 8;
/// Where a drift as large may hide nothing can be said of it.
const UNKNOWN_FROM: f64 = 0.1;
/// A drift of less over the whole run is nothing to act on.
const WORTH_TELLING: f64 = 0.02;

impl Drifts {
    /// What all cells share first, then single cells, then single visits.
    pub fn findings(&self) -> Vec<Finding> {
        // Beside a change that was found nobody says that there was none.
        let is_quiet = self.cells.is_empty() && self.cliffs == 0 && self.edges.is_empty();
        let is_quiet = is_quiet && self.clock.is_none();
        let is_quiet = is_quiet && self.visits.iter().all(|visit| visit.steps.is_empty());
        let of_part = |part: &RunDrift| {
            let found = part.findings(is_quiet).into_iter();
            found.map(|found| self.of_part(part, found)).collect::<Vec<_>>()
        };
        // What was found comes before what was not, or is unknown.
        let (told, others): (Vec<_>, Vec<_>) =
            self.parts.iter().partition(|part| part.is_changed(is_quiet));
        let mut found: Vec<Finding> = told.into_iter().flat_map(of_part).collect();
        found.extend(self.edges.iter().map(Edge::finding));
        found.extend(self.clock.as_ref().map(Clock::finding));
        found.extend(self.cells.iter().take(LINES_MAX).map(CellDrift::finding));
        if let Some(more @ [_, ..]) = self.cells.get(LINES_MAX..) {
            let cells = more.iter().map(CellDrift::subject);
            found.push(Finding::new(Code::CellsChangedLevelMore).on_all(cells, 0));
        }
        found.extend(self.visits.iter().take(LINES_MAX).flat_map(VisitDrift::findings));
        if let Some(more @ [_, ..]) = self.visits.get(LINES_MAX..) {
            let mut cells: Vec<Subject> = more.iter().map(VisitDrift::subject).collect();
            cells.sort_by_key(|cell| (cell.cell, cell.stream));
            cells.dedup();
            let all = Finding::new(Code::VisitsChangedMore).with("more", more.len());
            found.push(all.on_all(cells, 0));
        }
        found.extend(others.into_iter().flat_map(of_part));
        if self.parts.is_empty() {
            found.push(Finding::new(Code::RunDriftOneVisit));
        }
        found.extend(self.kept.map(Kept::finding));
        found
    }

    /// That what is said of limits is of no level, where all cells changed together.
    pub(crate) fn of_no_level(&self) -> Vec<Finding> {
        let changed = self.parts.iter().filter(|part| !part.steps.is_empty());
        changed.map(|part| self.of_part(part, Finding::new(Code::LimitsOfTwoLevels))).collect()
    }

    /// A finding about a part of the run, with its phases where there are other parts.
    fn of_part(&self, part: &RunDrift, found: Finding) -> Finding {
        let several = self.parts.len() > 1;
        found.with_some("phases", several.then(|| Value::names(&part.phases)))
    }
}

impl Kept {
    fn finding(self) -> Finding {
        Finding::new(Code::RateKeptLevel)
            .with("visits", self.visits)
            .with("seen_from", Number::share(self.seen_from))
    }
}

impl RunDrift {
    /// Whether a change of level or a drift is told of it.
    ///
    /// * `is_quiet`: nothing else in the run is known to have changed.
    fn is_changed(&self, is_quiet: bool) -> bool {
        !self.steps.is_empty()
            || (is_quiet || self.cells != 1) && self.per_hour.is_some_and(Slope::is_worth_telling)
    }

    fn of(&self, code: Code) -> Finding {
        Finding::new(code).with("visits", self.visits).with("over", self.cells)
    }

    /// * `is_quiet`: nothing else in the run is known to have changed.
    fn findings(&self, is_quiet: bool) -> Vec<Finding> {
        let step = |step: &Step| {
            self.of(Code::RunChangedLevel)
                .with("one_cell", self.cells == 1)
                .with("at", step.moment())
                .with("ratio", step.sized())
                .with("at_break", step.at_break)
        };
        let mut found: Vec<Finding> = self.steps.iter().map(step).collect();
        // Of an only cell that change is all there is to its slope.
        if self.cells != 1 || is_quiet {
            found.extend(self.slope_finding(is_quiet));
        }
        found
    }

    fn slope_finding(&self, is_quiet: bool) -> Option<Finding> {
        let is_level = self.steps.is_empty();
        let slope = match self.per_hour {
            Some(slope) => slope,
            None if self.too_short => return Some(self.of(Code::RunDriftShortVisits)),
            None => return is_level.then(|| self.of(Code::RunDriftFewVisits)),
        };
        if slope.is_worth_telling() {
            let found = self.of(Code::RunDrifted).with("change", slope.whole());
            let found = found.with_some("hourly", slope.per_unit());
            return Some(found.with("breaks", self.breaks));
        }
        let code = match () {
            () if !is_level => return None,
            () if slope.is_real() => Code::RunDriftSmall,
            () if slope.may_hide() >= UNKNOWN_FROM => Code::RunDriftHidden,
            () if is_quiet => Code::RunDriftNone,
            () => return None,
        };
        let found = self.of(code).with("change", slope.whole());
        Some(found.with("least", Number::share(WORTH_TELLING)))
    }
}

impl Slope {
    /// Whether it is more than nothing, and something to act on.
    fn is_worth_telling(self) -> bool {
        self.is_real() && self.over_all.abs() >= WORTH_TELLING
    }

    /// The largest share that its interval leaves possible.
    fn may_hide(&self) -> f64 {
        self.over_all_low.abs().max(self.over_all_high.abs())
    }

    /// What it makes over all that was looked at.
    pub(crate) const fn whole(self) -> Number {
        Number::change(self.over_all).within(self.over_all_low, self.over_all_high)
    }

    /// By the unit, where that is told.
    fn per_unit(self) -> Option<Number> {
        Some(Number::change(self.middle?).within(self.low?, self.high?))
    }
}

impl CellDrift {
    fn subject(&self) -> Subject {
        Subject::new(self.cell, Some(self.position as usize), &self.cell_name)
    }

    fn finding(&self) -> Finding {
        let found = with_steps(Finding::new(Code::CellChangedLevel), &self.steps);
        found.on(self.subject()).with("at_break", self.steps.iter().any(|step| step.at_break))
    }
}

impl VisitDrift {
    fn subject(&self) -> Subject {
        Subject::new(self.cell, Some(self.position as usize), &self.cell_name)
    }

    fn findings(&self) -> Vec<Finding> {
        let of =
            |code| Finding::new(code).on(self.subject()).with("visit", u64::from(self.repeat) + 1);
        let changed =
            (!self.steps.is_empty()).then(|| with_steps(of(Code::VisitChangedLevel), &self.steps));
        let drifted = self.per_hour.map(|slope| {
            let found = of(Code::VisitDrifted).with("change", slope.whole());
            found.with_some("hourly", slope.per_unit())
        });
        changed.into_iter().chain(drifted).collect()
    }
}

/// The levels and the moments of the changes between them.
fn with_steps(found: Finding, steps: &[Step]) -> Finding {
    let levels = steps.first().map(|step| step.before).into_iter();
    let levels = levels.chain(steps.iter().map(|step| step.after)).map(Number::iops);
    let ends = steps.first().zip(steps.last());
    found
        .with("several", steps.len() > 1)
        .with("times", steps.len())
        .with_some("before", ends.map(|(first, _)| Number::iops(first.before)))
        .with_some("after", ends.map(|(_, last)| Number::iops(last.after)))
        .with("levels", levels.collect::<Vec<_>>())
        .with("at", steps.iter().map(Step::moment).collect::<Vec<_>>())
}

impl Step {
    /// From here on there is only the new level; the interval is where the change may lie.
    fn moment(&self) -> Number {
        let at = Number::ns(self.at_ns);
        match self.has_two_ends() {
            true => at.within(self.from_ns as f64 / 1e9, at.value),
            false => at,
        }
    }

    /// `between 12 s and 13 s`; where both are as good as the same `at 13 s`, with another word for
    /// *at*.
    pub(crate) fn when(&self, at: &str) -> String {
        let [from, until] = [self.from_ns, self.at_ns].map(|ns| Nanos::new(ns).to_string());
        match self.has_two_ends() {
            true => format!("between {from} and {until}"),
            false => format!("{at}{until}"),
        }
    }

    /// Whether a reader sees a difference between the earliest and the latest moment.
    fn has_two_ends(&self) -> bool {
        const AS_GOOD_AS: f64 = 0.99;
        let [from, until] = [self.from_ns, self.at_ns].map(|ns| Nanos::new(ns).to_string());
        (self.from_ns as f64) < AS_GOOD_AS * self.at_ns as f64 && from != until
    }

    /// The rate after by the one before, with its interval where that is known.
    fn sized(&self) -> Number {
        let ratio = Number::share(self.ratio());
        match self.ratio_low.zip(self.ratio_high) {
            Some((low, high)) => ratio.within(low, high),
            None => ratio,
        }
    }
}

/// The first of many changes, and how many more there are.
pub(crate) fn some_steps(steps: &[String]) -> String {
    const NAMED: usize = 4;
    match steps.len().saturating_sub(NAMED) {
        // One more is as short as saying so.
        0 | 1 => words::list(steps),
        more => format!("{} and {more} times more", steps[..NAMED].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use finding::texts;

    use super::*;

    #[test]
    fn what_was_found_comes_before_what_is_unknown() {
        let step = Step {
            from_ns: 2,
            at_ns: 3,
            before: 1740.0,
            after: 470.0,
            ratio_low: None,
            ratio_high: None,
            at_break: false,
        };
        let visit = VisitDrift {
            cell: 0,
            cell_name: "warm-8".to_owned(),
            position: 0,
            stream: None,
            repeat: 0,
            order: 0,
            steps: vec![step.clone()],
            per_hour: None,
        };
        let unknown = RunDrift {
            phases: vec!["warm".to_owned()],
            visits: 4,
            cells: 2,
            too_short: false,
            breaks: 0,
            steps: Vec::new(),
            per_hour: None,
        };
        let of = |parts: Vec<RunDrift>| {
            let visits = vec![visit.clone()];
            Drifts { visits, parts, long_visits: 1, ..Drifts::default() }.findings()
        };
        for parts in [Vec::new(), vec![unknown.clone()]] {
            let said = texts(&of(parts));
            assert!(said[0].starts_with("`warm-8`, visit 1: the rate changed"), "{said:?}");
            assert!(said[1].contains("is unknown"), "{said:?}");
        }
        // What all cells share is first.
        let said = texts(&of(vec![unknown.clone(), RunDrift { steps: vec![step], ..unknown }]));
        assert!(said[0].contains("ll cells changed together"), "{said:?}");
        assert!(said[1].starts_with("`warm-8`") && said[2].contains("is unknown"), "{said:?}");
    }

    #[test]
    fn of_many_changes_the_first_are_listed() {
        let steps = |n: usize| (1..=n).map(|k| format!("s{k}")).collect::<Vec<_>>();
        assert_eq!(some_steps(&steps(5)), "s1, s2, s3, s4 and s5");
        assert_eq!(some_steps(&steps(56)), "s1, s2, s3, s4 and 52 times more");
    }
}
