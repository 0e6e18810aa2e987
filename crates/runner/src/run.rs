//! A run under way: step by step from its fill to its end.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use engine::verify::Verifier;
use plan::{Course, PlannedVisit, Round, RoundOf, Standing, Why};
use record::{Blocks, CellRecord, RunState, Warning};
use store::{Change, Claim, Store, StoreError};
use suite::model::{Cell, Suite};
use units::Nanos;

use crate::clock::Clock;
use crate::events::{Event, Watcher};
use crate::prepare::Prepared;
use crate::quiet::{Quiet, Waited};
use crate::rig::{Rig, exchange};
use crate::{Interrupt, RunError, Settings};

mod begin;
mod below;
mod judge;
mod lead;
mod line;
mod one_visit;
mod ready;
pub(crate) mod room;
mod tell;

pub use line::LineGoal;

/// So often it is tried to store the last of a run, each time for some seconds.
const LAST_TRIES: u32 = 6;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The run's id in the store.
    pub run: String,
    /// How it ended.
    pub state: RunState,
    /// Visits that ended by an error.
    pub failed_visits: u32,
    /// Visits in which requests did not come back.
    pub hanging_visits: u32,
    /// Visits that there was no time for, of those that every cell was to have at least.
    pub visits_without_time: u32,
    /// Reads found something else than was written.
    pub mismatches: bool,
    /// Cells that cannot be measured here.
    pub impossible_cells: u32,
}

impl Outcome {
    fn of(run: &str) -> Self {
        Self {
            run: run.to_owned(),
            state: RunState::Running,
            failed_visits: 0,
            hanging_visits: 0,
            visits_without_time: 0,
            mismatches: false,
            impossible_cells: 0,
        }
    }
}

impl Prepared {
    /// Carries it out. Every visit is in the store when the next begins; an error leaves all
    /// visits before it there.
    pub fn run(
        self,
        store: &mut Store,
        watcher: &mut dyn Watcher,
        interrupt: &Interrupt,
    ) -> Result<Outcome, RunError> {
        let mut running = self.begin(store, watcher, interrupt)?;
        while running.step() {}
        running.end()
    }
}

/// Where the randomness of a visit's device comes from, if it is a twin: sides of a comparison play
/// the same requests, on devices that are as noisy as real ones, each for itself.
fn own_seed(seed: u64, side: Option<&Blocks>) -> u64 {
    side.map_or(seed, |blocks| {
        let label: Vec<u64> = blocks.side.bytes().map(u64::from).collect();
        stats::random::derive_seed(seed, &label)
    })
}

/// A run under way. Every visit is in the store when its step returns, unless another process keeps it
/// from that; dropped without an end, it can be resumed.
pub struct Running<'a> {
    course: Course,
    /// How long devices are waited for to be idle; not where the suite's own order is played.
    quiet: Option<Quiet>,
    /// Fill and preconditioning passes of the run.
    passes: u32,
    /// Visits that the store says the run has at most.
    planned: u32,
    /// What the suite spends before each visit to a cell by plan.
    leads: Vec<Nanos>,
    seed: u64,
    /// All times within a run are by one.
    clock: Clock,
    rig: Box<dyn Rig>,
    cells: Vec<CellRecord>,
    played: Vec<Cell>,
    suite: Suite,
    settings: Settings,
    store: &'a mut Store,
    /// What is stored with the next visit, or at the end.
    late: Vec<Change>,
    watcher: &'a mut dyn Watcher,
    interrupt: &'a Interrupt,
    verifier: Option<Arc<Verifier>>,
    /// Visits stored so far.
    visits: u32,
    /// How the wait before the next visit went.
    waited: Waited,
    /// Warnings about the run that were given already.
    warned: HashSet<(String, String)>,
    in_a_row: u32,
    /// Which side of a comparison it is, if it is one.
    sides: Option<Blocks>,
    /// Nobody else goes on with this run meanwhile.
    claim: Claim,
    /// Passes of the fill that are left.
    fill: Range<u32>,
    /// Passes that are left of those before a phase: its index, and the pass.
    of_phases: Vec<(usize, u32)>,
    /// Passes that trim.
    trims: Vec<u32>,
    /// The round of the last visit.
    round: Option<Round>,
    /// How it ended, once it has.
    ended: Option<Result<Next, RunError>>,
    /// What lies below the targets.
    below: below::Below,
    outcome: Outcome,
}

/// Whether to go on after a visit.
enum Next {
    On,
    /// The user wants to stop.
    Interrupted,
    /// There is no point in going on, for this reason.
    Failed(Warning),
}

/// Why a run ends before its plan does.
fn ends_early(why: impl Into<String>) -> Next {
    Next::Failed(Warning::new("ended-early", why))
}

impl Running<'_> {
    /// The run's id in the store.
    pub fn id(&self) -> &str {
        &self.outcome.run
    }

    /// Whether files are still to be filled before the first visit.
    pub fn is_filling(&self) -> bool {
        self.ended.is_none() && !self.fill.is_empty()
    }

    /// The visit that the next step makes; `None` where it makes none.
    pub fn next_visit(&mut self) -> Option<PlannedVisit> {
        if self.ended.is_some() || self.is_filling() {
            return None;
        }
        self.course.next()
    }

    /// Stores a doubt about the run as a whole, once, with the next visit.
    pub fn doubt(&mut self, warning: Warning) {
        self.warn(warning);
    }

    /// Whether it ended before its plan did.
    pub fn is_cut_short(&self) -> bool {
        !matches!(&self.ended, None | Some(Ok(Next::On)))
    }

    /// Why it ended, where it did by an error or since there was no point in going on; the user's
    /// wish to stop is none.
    pub fn failure(&self) -> Option<String> {
        match self.ended.as_ref()? {
            Ok(Next::On | Next::Interrupted) => None,
            Ok(Next::Failed(why)) => Some(why.text.clone()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Ends it since the side `label` that it takes turns with failed: nobody interrupted it, and it
    /// is no use alone. One that ended already ended as it did.
    pub fn end_with(mut self, label: &str, why: &str) -> Result<Outcome, RunError> {
        let text = format!("side {label} ended, and with it this one: {why}");
        let ended = self.ended.take();
        self.close(
            ended.unwrap_or_else(|| Ok(Next::Failed(Warning::new(record::SIDE_FAILED, text)))),
        )
    }

    /// Fills, or makes a visit with the wait before it; false when there is nothing left to do,
    /// for whatever reason.
    pub fn step(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.advance().transpose();
        }
        self.ended.is_none()
    }

    /// The same on the simulated device of `other`, which remembers what was done to it, and is told
    /// afterwards what this did. As [`Self::step`] where the two play on anything else.
    pub fn step_on_model_of(&mut self, other: &mut Self) -> bool {
        exchange(&mut *self.rig, &mut *other.rig);
        let goes_on = self.step();
        exchange(&mut *self.rig, &mut *other.rig);
        goes_on
    }

    /// Ends it; before its time it is interrupted, and can be resumed.
    pub fn end(mut self) -> Result<Outcome, RunError> {
        let ended = self.ended.take().unwrap_or(Ok(Next::Interrupted));
        self.close(ended)
    }

    /// A side of a comparison ends when enough is known: it lacks none.
    fn without_time(&mut self) -> u32 {
        if self.sides.is_some() {
            return 0;
        }
        let least = self.suite.rounds.visits_min;
        let cells = self.course.standing().into_iter();
        let late = cells.filter(|cell| cell.standing == Standing::NotConverged(Why::Time));
        late.map(|cell| least.saturating_sub(cell.visits)).fold(0, u32::saturating_add)
    }

    /// Ends it although its plan has more visits: these are enough, it is complete. One that ended
    /// already ended as it did.
    pub fn end_as_complete(mut self) -> Result<Outcome, RunError> {
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => {
                let made = self.course.visits_counted().saturating_add(self.passes);
                self.late.push(Change::VisitsPlanned(made));
                Ok(Next::On)
            }
        };
        self.close(ended)
    }

    /// Says in the store that it ended by `error`, which comes back.
    fn failed(self, error: RunError) -> RunError {
        match self.close(Err(error)) {
            Err(error) => error,
            Ok(outcome) => RunError::Resume { run: outcome.run, why: "it has ended".to_owned() },
        }
    }

    /// Tells the store how many visits the run has at most: cells that end early lower it.
    fn tell_visits(&mut self) {
        let made = self.course.visits_counted().saturating_add(self.passes);
        let most = self.course.left().visits_most.saturating_add(made);
        if most != self.planned {
            self.late.push(Change::VisitsPlanned(most));
            self.planned = most;
        }
    }

    /// A step; how it ended if there is nothing left.
    fn advance(&mut self) -> Result<Option<Next>, RunError> {
        if let Some(pass) = self.fill.next() {
            return self.fill_by(pass);
        }
        let Some(visit) = self.course.next() else {
            self.tell_visits();
            self.tell_of_ends()?;
            return Ok(Some(Next::On));
        };
        let round = self.course.round();
        if round != self.round {
            self.tell_visits();
            self.tell_round(round);
            self.tell_ramp();
            self.tell_time();
        }
        let steady = |round: Option<Round>| round.filter(|r| r.of == RoundOf::Steady);
        // The rounds of a steady phase follow each other without a pause.
        let same = steady(round)
            .is_some_and(|now| steady(self.round).is_some_and(|before| before.phase == now.phase));
        self.round = round;
        let phase = round.map(|round| round.phase);
        if let Some(ended) = self.prepare_phase(phase)? {
            return Ok(Some(ended));
        }
        self.look_below();
        self.begin_files(visit.cell)?;
        if !self.make_ready(visit.cell)? || (!same && !self.get_ready(phase)?) {
            return Ok(Some(Next::Interrupted));
        }
        Ok(match self.visit(&visit)?.1 {
            Next::On => None,
            other => Some(other),
        })
    }

    /// Says it, and has it stored with the next visit.
    fn warn(&mut self, warning: Warning) {
        if self.warned.insert((warning.code.clone(), warning.text.clone())) {
            self.late.push(Change::Warning(warning.clone()));
            self.watcher.event(Event::Warning(&warning));
        }
    }

    /// Stores what has come up. Where another process that reads keeps it from that for too long, it is
    /// stored with the next visit.
    fn store_late(&mut self) -> Result<(), RunError> {
        match self.store.apply(&self.outcome.run, &self.late) {
            Ok(()) => self.late.clear(),
            Err(error @ StoreError::Locked { .. }) => {
                let text =
                    format!("{error}: visits are kept in memory and stored with a later one");
                self.warn(Warning::new("store-delayed", text));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The same when there is no later one.
    fn store_at_end(&mut self) -> Result<(), RunError> {
        let mut stored = Ok(());
        for _ in 0..LAST_TRIES {
            stored = self.store.apply(&self.outcome.run, &self.late);
            match &stored {
                Err(StoreError::Locked { .. }) => {}
                Ok(()) => return Ok(()),
                Err(_) => break,
            }
        }
        // How it ended may have room where a visit has none.
        self.late.retain(|change| !matches!(change, Change::Visit(_)));
        let _ = self.store.apply(&self.outcome.run, &self.late);
        Ok(stored?)
    }

    /// Says in the store how it ended, whatever that was.
    fn close(mut self, ended: Result<Next, RunError>) -> Result<Outcome, RunError> {
        // A visit that was never made leaves its files empty. What went wrong before is what to tell.
        let _ = self.rig.end_anew();
        // While it can still be resumed: killed in the middle of this it will finish it.
        self.watcher.event(Event::Step("checking and removing what was made"));
        let left = self.rig.leave();
        let state = match &ended {
            Ok(Next::On) => RunState::Complete,
            Ok(Next::Interrupted) => RunState::Interrupted,
            Ok(Next::Failed(_)) | Err(_) => RunState::Failed,
        };
        match &ended {
            Ok(Next::Failed(why)) => self.warn(why.clone()),
            // The caller tells the error.
            Err(error) => {
                self.late.push(Change::Warning(Warning::new("ended", error.to_string())));
            }
            Ok(_) => {}
        }
        left.into_iter().for_each(|warning| self.warn(warning));
        if ended.is_ok() {
            self.look_below_again();
        }
        self.late.push(Change::State(state));
        let stored = self.store_at_end();
        ended?;
        stored?;
        self.outcome.state = state;
        if state == RunState::Complete {
            self.outcome.visits_without_time = self.without_time();
        }
        Ok(self.outcome)
    }
}
