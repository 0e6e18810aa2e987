//! Changes and drift in words.

use units::Nanos;

use super::{CellDrift, Clock, Drifts, Edge, RunDrift, Slope, Step, VisitDrift};
use crate::words;

/// Lists longer than this are not read.
const LINES_MAX: usize = 8;
/// Where a drift as large may hide nothing can be said of it.
const UNKNOWN_FROM: f64 = 0.1;
/// A drift of less over the whole run is nothing to act on.
const WORTH_TELLING: f64 = 0.02;

impl Drifts {
    /// What all cells share first, then single cells, then single visits.
    pub fn sentences(&self) -> Vec<String> {
        // Beside a change that was found nobody says that there was none.
        let is_quiet = self.cells.is_empty() && self.cliffs == 0 && self.edges.is_empty();
        let is_quiet = is_quiet && self.clock.is_none();
        let is_quiet = is_quiet && self.visits.iter().all(|visit| visit.steps.is_empty());
        let is_only = self.parts.len() == 1;
        let of_part = |part: &RunDrift| {
            let phases = words::list(&part.phases);
            let said = part.sentences(is_quiet).into_iter();
            said.map(
                |said| if is_only { said } else { format!("{phases}: {}", begun_small(&said)) },
            )
            .collect::<Vec<_>>()
        };
        // What was found comes before what was not, or is unknown.
        let (told, others): (Vec<_>, Vec<_>) =
            self.parts.iter().partition(|part| part.is_changed(is_quiet));
        let mut lines: Vec<String> = told.into_iter().flat_map(of_part).collect();
        lines.extend(self.edges.iter().map(Edge::sentence));
        lines.extend(self.clock.as_ref().map(Clock::sentence));
        lines.extend(self.cells.iter().take(LINES_MAX).map(CellDrift::sentence));
        lines.extend(more(self.cells.len(), "cell"));
        lines.extend(self.visits.iter().take(LINES_MAX).flat_map(VisitDrift::sentences));
        lines.extend(more(self.visits.len(), "visit"));
        lines.extend(others.into_iter().flat_map(of_part));
        if self.parts.is_empty() {
            lines.push(
                "Whether rates drifted over the run is unknown: no cell was visited twice."
                    .to_owned(),
            );
        }
        lines.extend(self.kept.map(|kept| {
            format!(
                "Within {} of 10 s and more the rate kept its level, as far as can be told: a change \
                 of less than {}, or one in the first or last 5 s, need not show.",
                words::count(u64::from(kept.visits), "visit"),
                words::percent(kept.seen_from)
            )
        }));
        lines
    }

    /// That what is said of limits is of no level, where all cells changed together.
    pub(crate) fn of_no_level(&self) -> Vec<String> {
        let changed = self.parts.iter().filter(|part| !part.steps.is_empty());
        let told = changed.map(|part| {
            let text = "These limits are over visits from before and from after a change that all cells \
                        share (see changes and drift), so they may be of neither level.";
            match self.parts.len() {
                1 => text.to_owned(),
                _ => format!("{}: {}", words::list(&part.phases), begun_small(text)),
            }
        });
        told.collect()
    }
}

fn more(n: usize, noun: &str) -> Option<String> {
    let left = n.checked_sub(LINES_MAX).filter(|&left| left > 0)?;
    Some(format!("The same holds for {} more.", words::count(left as u64, noun)))
}

fn begun_small(said: &str) -> String {
    let mut letters = said.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

impl RunDrift {
    /// Whether a change of level or a drift is told of it.
    ///
    /// * `is_quiet`: nothing else in the run is known to have changed.
    fn is_changed(&self, is_quiet: bool) -> bool {
        !self.steps.is_empty()
            || (is_quiet || self.cells != 1) && self.per_hour.is_some_and(Slope::is_worth_telling)
    }

    /// * `is_quiet`: nothing else in the run is known to have changed.
    fn sentences(&self, is_quiet: bool) -> Vec<String> {
        let on = format!(
            "by {} of {}",
            words::count(u64::from(self.visits), "visit"),
            words::count(u64::from(self.cells), "cell")
        );
        let mut lines: Vec<String> = self
            .steps
            .iter()
            .map(|step| {
                let why = match step.at_break {
                    true => {
                        "That is where the run was broken off and resumed: whatever became \
                         different meanwhile is the first suspect."
                    }
                    false => {
                        "Something outside the cells happened then: other load, heat, a cache, \
                         clean space or I/O credits used up."
                    }
                };
                let who = match self.cells {
                    1 => "The rate changed",
                    _ => "All cells changed together",
                };
                format!(
                    "{who} {} into the run: to {} of the rate before ({on}). {why} Do not compare \
                     visits from before with visits from after.",
                    step.when(""),
                    step.sized()
                )
            })
            .collect();
        // Of an only cell that change is all there is to its slope.
        if self.cells == 1 && !is_quiet {
            return lines;
        }
        match self.per_hour {
            Some(slope) if slope.is_worth_telling() => {
                lines.push(format!(
                    "The whole run drifted by {} from its beginning to its end{} ({on}){}.{}",
                    over_all(slope),
                    slope.middle.map_or(String::new(), |x| format!(", {} an hour", signed(x))),
                    match self.per_gib_written.filter(Slope::is_real).and_then(interval) {
                        Some(gib) => format!(", or {gib} for each GiB written"),
                        None => String::new(),
                    },
                    if self.breaks > 0 {
                        " It was broken off and resumed on the way: that may be a change at that \
                         moment as well as a drift."
                    } else {
                        ""
                    }
                ));
            }
            Some(slope) if self.steps.is_empty() && slope.is_real() => lines.push(format!(
                "The run drifted by less than {}, which is nothing to act on: {} from its \
                 beginning to its end ({on}).",
                words::percent(WORTH_TELLING),
                over_all(slope)
            )),
            Some(slope) if self.steps.is_empty() && slope.may_hide() >= UNKNOWN_FROM => {
                lines.push(format!(
                    "Whether rates drifted over the run is unknown: {} from its beginning to its end \
                     ({on}), and so much could hide in their noise.",
                    over_all(slope)
                ));
            }
            Some(slope) if self.steps.is_empty() && is_quiet => lines.push(format!(
                "No drift over the run beyond its noise: {} from its beginning to its end ({on}).",
                over_all(slope)
            )),
            Some(_) => {}
            None if self.too_short => lines.push(format!(
                "Whether rates drifted over the run is unknown: its visits are so short that what \
                 disturbs one is still there in the next ({on}; visits of 0.2 s and more would tell, of 1 s \
                 where those of a cell follow each other)."
            )),
            None if self.steps.is_empty() => lines.push(format!(
                "Whether rates drifted over the run is unknown: too few visits ({on}; it takes \
                 ten cells of two visits, four of three, or one of seven)."
            )),
            None => {}
        }
        lines
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
}

impl CellDrift {
    fn sentence(&self) -> String {
        let steps: Vec<String> = self
            .steps
            .iter()
            .map(|step| {
                let resumed =
                    if step.at_break { ", where it was broken off and resumed" } else { "" };
                let at = step.when("");
                format!("{} {at} into the run{resumed}", change(step))
            })
            .collect();
        format!(
            "`{}` was not on one level: {}. Its mean stands for none of its levels.",
            self.cell_name,
            some_steps(&steps)
        )
    }
}

impl VisitDrift {
    fn sentences(&self) -> Vec<String> {
        let visit = format!("`{}`, visit {}", self.cell_name, u64::from(self.repeat) + 1);
        let mut lines = Vec::new();
        if !self.steps.is_empty() {
            let steps: Vec<String> = self
                .steps
                .iter()
                .map(|step| format!("{} {}", change(step), step.when("after ")))
                .collect();
            lines.push(format!("{visit}: the rate changed {}.", some_steps(&steps)));
        }
        if let Some(slope) = self.per_hour {
            let hourly = interval(slope).map_or(String::new(), |hour| format!(", {hour} an hour"));
            lines.push(format!(
                "{visit}: the rate drifted by {} while it was measured{hourly}.",
                over_all(slope)
            ));
        }
        lines
    }
}

impl Step {
    /// `between 12 s and 13 s`; where both are as good as the same `at 13 s`, with another word for
    /// *at*.
    pub(crate) fn when(&self, at: &str) -> String {
        const AS_GOOD_AS: f64 = 0.99;
        let apart = (self.from_ns as f64) < AS_GOOD_AS * self.at_ns as f64;
        let [from, until] = [self.from_ns, self.at_ns].map(|ns| Nanos::new(ns).to_string());
        match apart && from != until {
            true => format!("between {from} and {until}"),
            false => format!("{at}{until}"),
        }
    }
}

impl Step {
    /// `35 % [33 %, 37 %]`: the rate after by the one before, with its interval where that is known.
    fn sized(&self) -> String {
        let percent = words::percent;
        match self.ratio_low.zip(self.ratio_high) {
            Some((low, high)) => {
                format!("{} [{}, {}]", percent(self.ratio()), percent(low), percent(high))
            }
            None => percent(self.ratio()),
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

fn change(step: &Step) -> String {
    format!("from {} to {} IOPS", words::iops(step.before), words::iops(step.after))
}

fn over_all(slope: Slope) -> String {
    let [low, high] = [slope.over_all_low, slope.over_all_high].map(signed);
    format!("{} [{low}, {high}]", signed(slope.over_all))
}

/// By the unit, where that is told.
fn interval(slope: Slope) -> Option<String> {
    let (middle, low, high) = (slope.middle?, slope.low?, slope.high?);
    Some(format!("{} [{}, {}]", signed(middle), signed(low), signed(high)))
}

pub(crate) fn signed(share: f64) -> String {
    let text = words::percent(share.abs());
    match share {
        _ if text == "0 %" || text.starts_with('<') => "0 %".to_owned(),
        _ if text.starts_with('>') => text.replace('>', ">+"),
        x if x < 0.0 => format!("-{text}"),
        _ => format!("+{text}"),
    }
}

#[cfg(test)]
mod tests {
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
            per_gib_written: None,
        };
        let of = |parts: Vec<RunDrift>| {
            let (visits, cells) = (vec![visit.clone()], Vec::new());
            Drifts {
                visits,
                cells,
                parts,
                cliffs: 0,
                long_visits: 1,
                kept: None,
                edges: Vec::new(),
                clock: None,
            }
            .sentences()
        };
        for parts in [Vec::new(), vec![unknown.clone()]] {
            let said = of(parts);
            assert!(said[0].starts_with("`warm-8`, visit 1: the rate changed"), "{said:?}");
            assert!(said[1].contains("is unknown"), "{said:?}");
        }
        // What all cells share is first.
        let said = of(vec![unknown.clone(), RunDrift { steps: vec![step], ..unknown }]);
        assert!(said[0].contains("all cells changed together"), "{said:?}");
        assert!(said[1].starts_with("`warm-8`") && said[2].contains("is unknown"), "{said:?}");
    }

    #[test]
    fn of_many_changes_the_first_are_listed() {
        let steps = |n: usize| (1..=n).map(|k| format!("s{k}")).collect::<Vec<_>>();
        assert_eq!(some_steps(&steps(5)), "s1, s2, s3, s4 and s5");
        assert_eq!(some_steps(&steps(56)), "s1, s2, s3, s4 and 52 times more");
    }
}
