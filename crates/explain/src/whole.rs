//! Whether a run is whole: visits that failed, that are missing, that hold numbers which cannot be.

use std::collections::BTreeMap;

use finding::{Code, Finding, Value};
use record::{Purpose, Run, RunHeader, RunState, SIDE_FAILED, VisitEnd, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;

use crate::line::looks_for_line;
use crate::view::{CellView, View, is_sane};
use crate::visits::Visits;

/// What is missing or broken in a run, by visits. Pilots are no visits here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Whole {
    /// Visits the run holds.
    pub made: u32,
    /// Visits its plan has.
    pub planned: u32,
    /// Whether it says of itself that every visit was made.
    pub complete: bool,
    /// How it ended before that, for people: `was killed`; null where it is complete.
    pub broken_off: Option<String>,
    /// It is being made.
    pub running: bool,
    /// `plimsoll resume` goes on with it.
    pub resumable: bool,
    /// What became of its visits, for people: the line of every head.
    pub visits: String,
    /// Visits that ended by an error.
    pub failed: u32,
    /// The error that most of them name first; null where none is named.
    pub why_failed: Option<String>,
    /// Requests that failed in visits that went on all the same and count: they are in no rate and
    /// in no latency.
    pub failed_requests: u64,
    /// Requests that did not, in all visits that count.
    pub requests: u64,
    /// Visits with requests that failed.
    pub failed_requests_visits: u32,
    /// The error that most of them name first.
    pub why_requests_failed: Option<String>,
    /// Their cells, as people say them.
    pub failed_requests_in: Vec<String>,
    /// Visits in which requests never came back.
    pub hanging: u32,
    /// That what is measured was removed or exchanged meanwhile, for people; null where it was not.
    pub gone: Option<String>,
    /// Visits whose counts or times no storage can have made: left out of everything.
    pub unusable: u32,
}

/// Whether what is missing can be made later: not of sides that take turns, and not of a load line,
/// which is of the moment.
pub fn resumable(run: &Run) -> bool {
    run.header.blocks.is_none() && !looks_for_line(run)
}

impl Whole {
    /// Of a run.
    pub fn of(view: &View<'_>) -> Self {
        let header = &view.run.header;
        let measured = || view.run.visits.iter().filter(|v| v.purpose == Purpose::Measure);
        let failed = || measured().filter(|visit| visit.end == VisitEnd::Failed);
        let warnings = || measured().flat_map(|visit| &visit.warnings);
        let passed_over = || {
            let counted = view.cells.iter().flat_map(|cell| &cell.visits).map(|visit| visit.visit);
            counted.filter(|visit| failed_requests(visit) > 0)
        };
        let cells = view
            .cells
            .iter()
            .filter(|cell| cell.visits.iter().any(|visit| failed_requests(visit.visit) > 0));
        let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            made: size(view.run.visits_made()),
            planned: header.visits_planned,
            complete: header.state == RunState::Complete,
            broken_off: broken_off(header).map(str::to_owned),
            running: header.state == RunState::Running,
            resumable: resumable(view.run),
            visits: Visits::of(view.run).line(),
            failed: size(failed().count()),
            why_failed: most_frequent(failed().filter_map(reason)),
            failed_requests: passed_over().map(failed_requests).fold(0, u64::saturating_add),
            requests: completed(view),
            failed_requests_visits: size(passed_over().count()),
            why_requests_failed: most_frequent(passed_over().filter_map(reason)),
            failed_requests_in: cells.map(CellView::name).collect(),
            hanging: size(measured().filter(|visit| visit.end == VisitEnd::Hanging).count()),
            gone: warnings().find(|warning| warning.code == "target-gone").map(|w| w.text.clone()),
            unusable: size(measured().filter(|visit| !is_sane(visit)).count()),
        }
    }

    /// Nothing where nothing is wrong.
    ///
    /// * `name`: what to call the run: `r1`, `A`.
    pub fn findings(&self, name: &str) -> Vec<Finding> {
        let of = |code| Finding::new(code).with("run", Value::words(name));
        let words = |text: &Option<String>| text.clone().map(Value::Words);
        let mut found = Vec::new();
        if self.failed > 0 {
            let failed = of(Code::VisitsFailed).with("failed", self.failed);
            found.push(failed.with("made", self.made).with_some("why", words(&self.why_failed)));
        }
        if self.failed_requests > 0 {
            found.push(
                of(Code::RequestsFailed)
                    .with("requests", self.failed_requests)
                    .with("requests_one", self.failed_requests == 1)
                    .with("visits", self.failed_requests_visits)
                    .with_some("why", words(&self.why_requests_failed))
                    .with("where", Value::names(self.failed_requests_in.clone())),
            );
        }
        if self.hanging > 0 {
            found.push(of(Code::RequestsLost).with("visits", self.hanging));
        }
        if let Some(what) = &self.gone {
            found.push(of(Code::TargetGone).with("what", Value::words(what)));
        }
        match &self.broken_off {
            None if self.made < self.planned => found
                .push(of(Code::VisitsLost).with("made", self.made).with("planned", self.planned)),
            Some(how) if self.made < self.planned => {
                let code = if self.running { Code::UnderWay } else { Code::EndedEarly };
                found.push(
                    of(code)
                        .with("how", Value::words(how))
                        .with("visits", Value::words(&self.visits))
                        .with("resumable", self.resumable),
                );
            }
            _ => {}
        }
        if self.unusable > 0 {
            let unusable = of(Code::VisitsUnusable).with("unusable", self.unusable);
            found.push(unusable.with("unusable_one", self.unusable == 1));
        }
        found
    }

    /// The same as text.
    pub fn sentences(&self, name: &str) -> Vec<String> {
        self.findings(name)
            .iter()
            .flat_map(|one| [Some(one.text()), one.next()])
            .flatten()
            .collect()
    }
}

/// How a run ended that did not come to its end; `None` of one that did.
pub(crate) fn broken_off(header: &RunHeader) -> Option<&'static str> {
    let with_another = || header.warnings.iter().any(|warning| warning.code == SIDE_FAILED);
    Some(match header.state {
        RunState::Complete => return None,
        RunState::Running => "is under way",
        RunState::Interrupted => "was interrupted",
        RunState::Failed if with_another() => "ended since the other side failed",
        RunState::Failed => "ended by an error",
        RunState::Killed => "was killed",
    })
}

/// Whether a visit is one that no place to plan with has: by an error, or by requests that never
/// came back.
pub(crate) const fn is_failed(visit: &VisitRecord) -> bool {
    matches!(visit.end, VisitEnd::Failed | VisitEnd::Hanging)
}

fn failed_requests(visit: &VisitRecord) -> u64 {
    let ops = visit.streams.iter().flat_map(|stream| &stream.ops);
    ops.flat_map(|op| &op.errors).fold(0, |sum, (_, n)| sum.saturating_add(*n))
}

fn completed(view: &View<'_>) -> u64 {
    let visits = view.cells.iter().flat_map(|cell| &cell.visits);
    let ops = visits.flat_map(|visit| visit.streams()).flat_map(|stream| &stream.ops);
    ops.fold(0, |sum, op| sum.saturating_add(op.requests))
}

/// Of equally frequent ones the first by name, so that the same run says the same.
fn most_frequent(reasons: impl Iterator<Item = String>) -> Option<String> {
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for reason in reasons {
        *times.entry(reason).or_default() += 1;
    }
    times.into_iter().rev().max_by_key(|(_, times)| *times).map(|(reason, _)| reason)
}

/// `EIO (Input/output error)` of `stream ..: read of .. failed: EIO (Input/output error)`; what
/// varies from visit to visit left out.
fn reason(visit: &VisitRecord) -> Option<String> {
    let failed = visit.warnings.iter().find(|warning| warning.code == "io-error");
    let text = &failed.or(visit.warnings.first())?.text;
    Some(text.rsplit_once(" failed: ").map_or(text.as_str(), |(_, why)| why).to_owned())
}

#[cfg(test)]
mod tests {
    use record::{TargetKind, Warning};

    use super::*;
    use crate::freeze::tests::{run, visit};

    #[test]
    fn errors_that_were_passed_over_are_told() {
        let mut visits = vec![visit(0, "read", &[]), visit(1, "read", &[])];
        assert_eq!(
            Whole::of(&View::new(&run(TargetKind::File, visits.clone()))).sentences("r1"),
            [""; 0]
        );
        visits[1].streams[0].ops[0].errors = vec![(5, 17)];
        let text =
            "stream s, worker 0: read of 4096 bytes at byte 0 of file 0 failed: EIO (I/O error)";
        visits[1].warnings.push(Warning::new("io-error", text));
        let whole = Whole::of(&View::new(&run(TargetKind::File, visits)));
        assert_eq!((whole.failed, whole.failed_requests), (0, 17));
        let said = whole.sentences("r1");
        let wanted =
            "17 requests of r1 failed in 1 visit and were passed over: EIO (I/O error), in `read`";
        assert!(said[0].starts_with(wanted), "{said:?}");
    }

    #[test]
    fn what_never_came_back_and_what_was_removed_is_told() {
        let mut visits = vec![visit(0, "read", &[]), visit(1, "read", &[])];
        visits[0].end = VisitEnd::Hanging;
        visits[1].warnings.push(Warning::new("target-gone", "a.dat was removed"));
        let whole = Whole::of(&View::new(&run(TargetKind::File, visits)));
        let said = whole.sentences("r1");
        assert!(said[0].starts_with("Requests never came back in 1 visit of r1"), "{said:?}");
        assert!(said[2].starts_with("r1: a.dat was removed."), "{said:?}");
    }
}
