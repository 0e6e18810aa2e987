//! What the user is told of the run as a whole.

use explain::View;
use explain::converged::not_converged;
use plan::{Round, Standing as CellStanding};
use record::{Purpose, VisitEnd, VisitRecord, Warning};
use suite::model::Method;

use super::Running;
use crate::RunError;
use crate::events::Event;
use crate::made::{Drifts, pilot_ramp};

impl Running<'_> {
    /// Says, once in a phase, that ramps are shorter than the pilots wanted them.
    pub(super) fn tell_ramp(&mut self) {
        let Some((wanted, given)) = self.course.ramp_cut() else { return };
        let phase = self.course.round().map_or(0, |round| round.phase);
        let phase = self.suite.phases.get(phase).map_or("", |phase| phase.name.as_str());
        let text = format!(
            "{phase}: the pilots took {wanted} to come up to speed, and there is time for ramps of \
             {given}: what is measured may still be rising or falling; give it more by --max-time"
        );
        self.warn(Warning::new("ramp-cut", text));
    }

    pub(super) fn tell_round(&mut self, round: Option<Round>) {
        let Some(round) = round else { return };
        let phase = self.suite.phases.get(round.phase).map_or("", |phase| phase.name.as_str());
        self.watcher.event(Event::Round { phase, round });
    }

    /// Doubts that only the whole run can have.
    pub(super) fn tell_of_ends(&mut self) -> Result<(), RunError> {
        let all = self.course.standing();
        for cell in all.iter().filter(|cell| cell.standing == CellStanding::NotSteady) {
            let phase = self.cells[cell.cell as usize].phase.clone();
            self.warn(Warning::new(
                "not-steady",
                format!("phase {phase} was not shown to be steady in {} rounds", cell.visits),
            ));
        }
        // By what is stored, as every table and explanation tells it.
        if self.sides.is_none() && self.suite.method == Method::Rounds {
            self.store_late()?;
            let run = self.store.load(&self.outcome.run)?;
            let open = not_converged(&View::new(&run)).at_the_end();
            if let Some(text) = open.text() {
                self.warn(Warning::new("not-converged", text));
            }
        }
        Ok(())
    }

    /// A pilot that never comes to rest is no reason for a longer ramp, but worth a word.
    pub(super) fn doubt_pilot(&mut self, record: &VisitRecord) {
        let pilot = record.purpose == Purpose::Pilot && record.end == VisitEnd::Complete;
        if !pilot || pilot_ramp(record) != Some(Err(Drifts)) {
            return;
        }
        let cell = &self.cells[record.cell as usize];
        let place = cell.coordinates.iter().map(|(field, value)| format!(" {field}={value}"));
        let place = place.collect::<String>();
        self.warn(Warning::new(
            "pilot-drift",
            format!(
                "{}{place} did not come to a steady rate in {}: its figures depend on when it is \
                 measured",
                cell.phase,
                suite::PILOT
            ),
        ));
    }
}
