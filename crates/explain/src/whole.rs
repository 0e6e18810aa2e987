//! Whether a run is whole: visits that failed, that are missing, that hold numbers which cannot be.

use std::collections::BTreeMap;

use record::{Purpose, RunState, VisitEnd, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;

use crate::view::{View, is_sane};
use crate::words::count;

/// What is missing or broken in a run, by visits. Pilots are no visits here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Whole {
    /// Visits the run holds.
    pub made: u32,
    /// Visits its plan has.
    pub planned: u32,
    /// Whether it says of itself that every visit was made.
    pub complete: bool,
    /// Visits that ended by an error.
    pub failed: u32,
    /// The error that most of them name first; null where none is named.
    pub why_failed: Option<String>,
    /// Visits whose counts or times no storage can have made: left out of everything.
    pub unusable: u32,
}

impl Whole {
    /// Of a run.
    pub fn of(view: &View<'_>) -> Self {
        let header = &view.run.header;
        let measured = || view.run.visits.iter().filter(|v| v.purpose == Purpose::Measure);
        let failed = || measured().filter(|visit| visit.end == VisitEnd::Failed);
        let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
        for reason in failed().filter_map(reason) {
            *reasons.entry(reason).or_default() += 1;
        }
        // Of equally frequent ones the first by name, so that the same run says the same.
        let why = reasons.into_iter().rev().max_by_key(|(_, times)| *times);
        let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            made: size(view.run.visits_made()),
            planned: header.visits_planned,
            complete: header.state == RunState::Complete,
            failed: size(failed().count()),
            why_failed: why.map(|(reason, _)| reason),
            unusable: size(measured().filter(|visit| !is_sane(visit)).count()),
        }
    }

    /// Plain English: nothing where nothing is wrong.
    ///
    /// * `name`: what to call the run: `r1`, `A`.
    pub fn sentences(&self, name: &str) -> Vec<String> {
        let mut out = Vec::new();
        if self.failed > 0 {
            out.push(format!(
                "{} of {} of {name} failed{}. Nothing can be said of what they should have \
                 measured.",
                self.failed,
                count(self.made.into(), "visit"),
                self.why_failed.as_ref().map_or(String::new(), |why| format!(": {why}"))
            ));
        }
        if self.made < self.planned {
            let so_many = format!("{} of {}", self.made, count(self.planned.into(), "visit"));
            out.push(match self.complete {
                true => format!(
                    "{name} says that it is complete, yet {so_many} are stored: the others were \
                     lost, so the store is damaged and what is left may not be typical. Measure \
                     again."
                ),
                false => format!(
                    "{name} is unfinished: {so_many}. What is missing is not evenly spread; \
                     `plimsoll resume` finishes it."
                ),
            });
        }
        if self.unusable > 0 {
            out.push(format!(
                "{} of {name} {} numbers that no storage can have made (times or counts beyond \
                 any sense) and {} left out: the store is damaged.",
                count(self.unusable.into(), "visit"),
                if self.unusable == 1 { "holds" } else { "hold" },
                if self.unusable == 1 { "is" } else { "are" },
            ));
        }
        out
    }
}

/// `EIO (Input/output error)` of `stream ..: read of .. failed: EIO (Input/output error)`; what
/// varies from visit to visit left out.
fn reason(visit: &VisitRecord) -> Option<String> {
    let text = &visit.warnings.first()?.text;
    Some(text.rsplit_once(" failed: ").map_or(text.as_str(), |(_, why)| why).to_owned())
}
