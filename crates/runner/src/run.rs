//! Carries a prepared run out: fill, visits in the plan's order, each stored when it ends.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use device::Errno;
use engine::verify::Verifier;
use engine::{Limits, Visit};
use plan::{Course, Made, PlannedVisit, Round, RoundOf, Schedule, Standing as CellStanding, Why};
use record::{
    BackendRecord, Blocks, CellRecord, Purpose, RunState, VisitEnd, VisitRecord, Warning,
};
use store::{Claim, Store};
use suite::PILOT;
use suite::model::{Cell, Method, Operation, Stop, Suite};
use units::{Bytes, Instant, Nanos};
use uring::{BackendReport, MonotonicClock};

use crate::events::{Event, Tick, Watcher};
use crate::fill::Pass;
use crate::ground::Field;
use crate::made::{Drifts, made, pilot_ramp};
use crate::prepare::{Ground, Prepared, impossible, impossible_cells, smallest_unit, verifies};
use crate::quiet::{Level, Quiet, Waited, World};
use crate::visit::{Play, Played, Stage, Standing, Stuck, play};
use crate::watchdog::Watchdog;
use crate::{Interrupt, RunError, Settings, directory};

mod lead;

/// So many failed visits in a row end a run: nothing better is to be expected.
const FAILURES_IN_A_ROW: u32 = 5;

/// A share of cached pages that says something.
const CACHED: f64 = 0.05;

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
    /// Reads found something else than was written.
    pub mismatches: bool,
    /// Cells that cannot be measured here.
    pub impossible_cells: u32,
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

    /// Begins it: the run is in the store and claimed, its files are made and held. What is left
    /// is done step by step, so that several runs can take turns.
    pub fn begin<'a>(
        self,
        store: &'a mut Store,
        watcher: &'a mut dyn Watcher,
        interrupt: &'a Interrupt,
    ) -> Result<Running<'a>, RunError> {
        let Self { mut header, cells, suite, ground, passes, settings, resumes } = self;
        let makes_files = matches!(&ground, Ground::Paths(paths) if paths.makes_files());
        let mut played: Vec<Cell> = suite.cells_as_played();
        played.extend(passes.iter().map(Pass::as_cell));
        let before = played.iter().filter_map(|cell| cell.before.clone());
        let before = before.map(|stream| Cell {
            coordinates: Vec::new(),
            streams: vec![stream],
            before: None,
        });
        let before: Vec<Cell> = before.collect();
        let everything: Vec<&Cell> = played.iter().chain(&before).collect();
        let is_new = resumes.is_none();
        // First of all: a store that takes nothing must not cost a file its content.
        let (id, made, visits, done) = match resumes {
            Some(resumed) => (resumed.id, resumed.made, resumed.visits, resumed.passes),
            None => (store.create_run(&header, &cells)?, Vec::new(), 0, BTreeSet::new()),
        };
        let claim = store.claim(&id)?;
        header.id.clone_from(&id);
        store.set_state(&id, RunState::Running)?;
        let sides = header.blocks.clone();
        let own = own_seed(header.seed, sides.as_ref());
        let directory = directory::wanted(&suite).next().map(|_| directory::key(&header));
        let field = Field::enter(ground, &suite, &everything, own, settings.keep, directory);
        let field = match field {
            Ok(field) => field,
            Err(error) => {
                drop(claim);
                // It has not begun. The error itself is what to tell, whatever the store says.
                let _ = if is_new {
                    store.remove(std::slice::from_ref(&id))
                } else {
                    store.set_state(&id, RunState::Failed)
                };
                return Err(error);
            }
        };
        let schedule = Schedule::new(&suite, header.seed, &BTreeSet::new());
        let schedule = schedule.in_blocks(sides.as_ref());
        let mut run = Running {
            course: schedule.begin(),
            quiet: (suite.method == Method::Rounds).then(|| Quiet::new(suite.rounds.visit_time)),
            passes: passes.len() as u32,
            planned: header.visits_planned,
            verifier: verifier(&suite, header.seed, !passes.is_empty()),
            seed: header.seed,
            field,
            cells,
            played,
            suite,
            settings,
            store,
            watcher,
            interrupt,
            visits,
            waited: Waited { waited: Nanos::ZERO, quiet: None, busy: None },
            warned: HashSet::new(),
            in_a_row: 0,
            sides,
            _claim: claim,
            fill: left_to_fill(&passes, &done),
            of_phases: left_of_phases(&passes, &done),
            trims: (0..)
                .zip(&passes)
                .filter(|(_, p)| p.trims())
                .map(|(number, _)| number)
                .collect(),
            round: None,
            ended: None,
            outcome: Outcome {
                run: id,
                state: RunState::Running,
                failed_visits: 0,
                hanging_visits: 0,
                mismatches: false,
                impossible_cells: 0,
            },
        };
        if makes_files && let Err(error) = run.look_again() {
            return Err(run.failed(error));
        }
        // Of files that were made only now it was not known before.
        if header.target.direct_alignment.is_none()
            && let Some(bytes) = run.field.alignment()
        {
            if let Err(error) = run.store.set_direct_alignment(&run.outcome.run, bytes) {
                return Err(run.failed(error.into()));
            }
            header.target.direct_alignment = Some(bytes);
        }
        run.schedule(&made);
        let left = run.course.left();
        if let Err(error) = run.tell_visits() {
            return Err(run.failed(error));
        }
        header.visits_planned = run.planned;
        run.watcher.event(Event::Begins {
            header: &header,
            cells: &run.cells,
            done: made.len(),
            left,
        });
        Ok(run)
    }
}

/// The passes before all phases: all of them, unless each was made already.
fn left_to_fill(passes: &[Pass], done: &BTreeSet<u32>) -> Range<u32> {
    let count = passes.iter().take_while(|pass| pass.before.is_none()).count() as u32;
    if (0..count).all(|pass| done.contains(&pass)) { 0..0 } else { 0..count }
}

/// The passes before single phases that were not made yet: index of the phase, number of the pass.
fn left_of_phases(passes: &[Pass], done: &BTreeSet<u32>) -> Vec<(usize, u32)> {
    let left = (0..).zip(passes).filter(|(number, _)| !done.contains(number));
    left.filter_map(|(number, pass)| Some((pass.before?, number))).collect()
}

/// Where the randomness of a visit's device comes from, if it is a twin: sides of a comparison play
/// the same requests, on devices that are as noisy as real ones, each for itself.
fn own_seed(seed: u64, side: Option<&Blocks>) -> u64 {
    side.map_or(seed, |blocks| {
        let label: Vec<u64> = blocks.side.bytes().map(u64::from).collect();
        stats::random::derive_seed(seed, &label)
    })
}

/// Data that reads can be held against, if the suite wants that.
fn verifier(suite: &Suite, seed: u64, filled: bool) -> Option<Arc<Verifier>> {
    verifies(suite).then(|| {
        // The seed is the run's own and stays with it over a resume.
        let run = stats::random::mix(seed);
        let (files, size) = (suite.files.count, suite.files.size);
        Arc::new(Verifier::new(run, !filled, smallest_unit(suite), files, size))
    })
}

/// A run under way. Every visit is in the store when its step returns; dropped without an end, it
/// can be resumed.
pub struct Running<'a> {
    course: Course,
    /// How long devices are waited for to be idle; not where the suite's own order is played.
    quiet: Option<Quiet>,
    /// Fill and preconditioning passes of the run.
    passes: u32,
    /// Visits that the store says the run has at most.
    planned: u32,
    seed: u64,
    field: Field,
    cells: Vec<CellRecord>,
    played: Vec<Cell>,
    suite: Suite,
    settings: Settings,
    store: &'a mut Store,
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
    _claim: Claim,
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

    /// Whether it ended before its plan did.
    pub fn is_cut_short(&self) -> bool {
        !matches!(&self.ended, None | Some(Ok(Next::On)))
    }

    /// Fills, or makes a visit with the wait before it; false when there is nothing left to do,
    /// for whatever reason.
    pub fn step(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.advance().transpose();
        }
        self.ended.is_none()
    }

    /// Ends it; before its time it is interrupted, and can be resumed.
    pub fn end(mut self) -> Result<Outcome, RunError> {
        let ended = self.ended.take().unwrap_or(Ok(Next::Interrupted));
        self.close(ended)
    }

    /// Ends it although its plan has more visits: these are enough, it is complete. One that ended
    /// already ended as it did.
    pub fn end_as_complete(mut self) -> Result<Outcome, RunError> {
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => {
                let made = self.course.visits_counted().saturating_add(self.passes);
                self.store.set_visits_planned(&self.outcome.run, made)?;
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

    /// Files that were just made tell their unit of direct I/O only now.
    fn look_again(&mut self) -> Result<(), RunError> {
        let grid = self.suite.cell_count();
        for index in 0..grid {
            if self.cells[index].impossible.is_some() {
                continue;
            }
            let Some(unit) = self.field.direct_unit(&self.played[index])? else { continue };
            if let Some(why) = impossible(&self.played[index], unit) {
                self.store.set_impossible(&self.outcome.run, index as u32, &why)?;
                self.cells[index].impossible = Some(why);
            }
        }
        Ok(())
    }

    /// What is to be done to the cells that are possible here, after what was made.
    fn schedule(&mut self, made: &[Made]) {
        let impossible = impossible_cells(&self.cells);
        self.outcome.impossible_cells = impossible.len() as u32;
        let schedule = Schedule::new(&self.suite, self.seed, &impossible);
        self.course = schedule.in_blocks(self.sides.as_ref()).after(made);
    }

    /// Tells the store how many visits the run has at most: cells that end early lower it.
    fn tell_visits(&mut self) -> Result<(), RunError> {
        let made = self.course.visits_counted().saturating_add(self.passes);
        let most = self.course.left().visits_most.saturating_add(made);
        if most != self.planned {
            self.store.set_visits_planned(&self.outcome.run, most)?;
            self.planned = most;
        }
        Ok(())
    }

    /// A step; how it ended if there is nothing left.
    fn advance(&mut self) -> Result<Option<Next>, RunError> {
        if let Some(pass) = self.fill.next() {
            return self.fill_by(pass);
        }
        let Some(visit) = self.course.next() else {
            self.tell_visits()?;
            self.tell_of_ends()?;
            return Ok(Some(Next::On));
        };
        let round = self.course.round();
        if round != self.round {
            self.tell_visits()?;
            self.tell_round(round);
            self.tell_ramp()?;
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
        self.begin_files(visit.cell)?;
        if !self.make_files(visit.cell)? || (!same && !self.get_ready(phase)?) {
            return Ok(Some(Next::Interrupted));
        }
        Ok(match self.visit(&visit)? {
            Next::On => None,
            other => Some(other),
        })
    }

    fn fill_by(&mut self, pass: u32) -> Result<Option<Next>, RunError> {
        let cell = self.suite.cell_count() as u32 + pass;
        let next = self.visit(&PlannedVisit {
            order: self.visits,
            cell,
            repeat: 0,
            purpose: Purpose::Measure,
            seed: stats::random::derive_seed(self.seed, &[9, u64::from(cell)]),
            ramp: None,
        })?;
        Ok(match next {
            Next::On if self.in_a_row == 0 => None,
            Next::Interrupted => Some(Next::Interrupted),
            Next::On | Next::Failed(_) => Some(not_filled()),
        })
    }

    /// Says, once in a phase, that ramps are shorter than the pilots wanted them.
    fn tell_ramp(&mut self) -> Result<(), RunError> {
        let Some((wanted, given)) = self.course.ramp_cut() else { return Ok(()) };
        let phase = self.course.round().map_or(0, |round| round.phase);
        let phase = self.suite.phases.get(phase).map_or("", |phase| phase.name.as_str());
        let text = format!(
            "{phase}: the pilots took {wanted} to come up to speed, and there is time for ramps of \
             {given}: what is measured may still be rising or falling; give it more by --max-time"
        );
        self.warn(Warning::new("ramp-cut", text))
    }

    fn tell_round(&mut self, round: Option<Round>) {
        let Some(round) = round else { return };
        let phase = self.suite.phases.get(round.phase).map_or("", |phase| phase.name.as_str());
        self.watcher.event(Event::Round { phase, round });
    }

    /// Whole files that the visit needs; false if the user wants to stop.
    fn make_files(&mut self, cell: u32) -> Result<bool, RunError> {
        let cell = &self.played[cell as usize];
        if cell.streams.iter().all(|stream| stream.directory.is_none()) {
            return Ok(true);
        }
        self.watcher.event(Event::Step("making files"));
        self.field.make_files(cell, &|| self.interrupt.stops())
    }

    /// Caches, pause, and the wait for an idle device; false if the user wants to stop.
    fn get_ready(&mut self, phase: Option<usize>) -> Result<bool, RunError> {
        self.waited = Waited { waited: Nanos::ZERO, quiet: None, busy: None };
        let phase = phase.and_then(|phase| self.suite.phases.get(phase));
        let (steps, settle) = match phase {
            Some(phase) => (phase.caches.clone(), phase.settle),
            None => (self.suite.caches.clone(), self.suite.settle),
        };
        if !steps.is_empty() {
            self.watcher.event(Event::Step("handling caches"));
            self.field.caches(&steps)?;
        }
        if !self.settle(settle) {
            return Ok(false);
        }
        if let Some(quiet) = &mut self.quiet {
            let mut look =
                Look { field: &self.field, watcher: &mut *self.watcher, interrupt: self.interrupt };
            self.waited = quiet.wait(&mut look);
        }
        if let Some((device, rate)) = self.waited.busy.take() {
            self.warn(Warning::new(
                "busy-device",
                format!(
                    "{device} does not become idle between visits: something writes {rate}/s to \
                     it; what is measured here is measured beside that"
                ),
            ))?;
        }
        Ok(!self.interrupt.stops())
    }

    /// Doubts that only the whole run can have.
    fn tell_of_ends(&mut self) -> Result<(), RunError> {
        let all = self.course.standing();
        for cell in all.iter().filter(|cell| cell.standing == CellStanding::NotSteady) {
            let phase = self.cells[cell.cell as usize].phase.clone();
            self.warn(Warning::new(
                "not-steady",
                format!("phase {phase} was not steady after {} rounds", cell.visits),
            ))?;
        }
        let late = CellStanding::NotConverged(Why::Time);
        let late = all.iter().filter(|cell| cell.standing == late).count();
        if late > 0 {
            self.warn(Warning::new(
                "not-converged",
                format!(
                    "the time of {} ran out: {late} of {} cells are not known to {} %",
                    self.suite.rounds.time_max,
                    all.len(),
                    (self.suite.rounds.precision * 1e4).round() / 1e2,
                ),
            ))?;
        }
        Ok(())
    }

    /// The pause before a visit; false if the user wants to stop.
    fn settle(&self, pause: Nanos) -> bool {
        const STEP: Nanos = Nanos::millis(50);
        let mut left = pause;
        while left > Nanos::ZERO && !self.interrupt.stops() {
            let step = left.min(STEP);
            std::thread::sleep(step.as_std());
            left = left.saturating_sub(step);
        }
        !self.interrupt.stops()
    }

    fn visit(&mut self, planned: &PlannedVisit) -> Result<Next, RunError> {
        let index = planned.cell as usize;
        let cell = as_planned(&self.played[index], planned);
        let seed = planned.seed;
        let lost = || Warning::new("twin-lost", "the twin did not come back from its visit");
        let mut doubts = Vec::new();
        if let Some(before) = &cell.before {
            match self.play_before(before, seed)? {
                Some(warnings) => doubts = warnings,
                None => return Ok(Next::Failed(lost())),
            }
            if self.interrupt.stops() {
                return Ok(Next::Interrupted);
            }
        }
        let Some(stage) = self.field.stage(&cell, own_seed(seed, self.sides.as_ref()))? else {
            return Ok(Next::Failed(lost()));
        };
        let visit = self.visit_of(&cell, seed);
        let real = !matches!(stage, Stage::Model(_));
        self.watcher.event(Event::VisitBegins {
            cell: &self.cells[index],
            order: self.visits,
            planned: crate::prepare::planned(&cell),
            bytes: cell.streams.iter().map(|s| s.stop.bytes).sum_options(),
        });
        let mut record = self.play(&visit, &cell, planned, stage, real)?;
        record.warnings.extend(doubts);
        self.forgive_trim(&mut record)?;
        if record.end == VisitEnd::Complete {
            self.field.made_files(&cell, &record);
            record.warnings.extend(self.field.doubts_of_copies(&cell));
        }
        let next = self.judge(&cell, &mut record);
        self.store.add_visit(&self.outcome.run, &record)?;
        self.visits += 1;
        if record.end != VisitEnd::Interrupted {
            self.course.add(&made(&record, self.field.is_twin()));
        }
        if let Some(quiet) = &mut self.quiet {
            quiet.after(&record, cell.streams.iter().any(|stream| stream.modifies()));
        }
        let left = self.course.left();
        self.watcher.event(Event::VisitEnds { cell: &self.cells[index], visit: &record, left });
        self.doubt_pilot(&record)?;
        Ok(next)
    }

    fn visit_of(&self, cell: &Cell, seed: u64) -> Arc<Visit> {
        Arc::new(Visit {
            streams: cell.streams.clone(),
            files: self.suite.files.count,
            file_size: self.suite.files.size,
            data: self.suite.files.data,
            seed,
            run_seed: self.seed,
            verify: self.verifier.clone(),
        })
    }

    fn limits(&self) -> Limits {
        Limits { hang: self.settings.hang_limit, failures: self.settings.failures }
    }

    fn play(
        &mut self,
        visit: &Arc<Visit>,
        cell: &Cell,
        planned: &PlannedVisit,
        stage: Stage,
        real: bool,
    ) -> Result<VisitRecord, RunError> {
        let order = Play {
            visit: Arc::clone(visit),
            limits: self.limits(),
            cpus: &self.settings.cpus,
            interrupt: self.interrupt,
            planned: cell.longest_duration().filter(|_| real),
            real,
        };
        let watchdog = Watchdog::start();
        let mut started = 0;
        let mut rate = Rate::default();
        let record = &self.cells[planned.cell as usize];
        let watcher = &mut *self.watcher;
        self.field.mark_before(Some(&stage));
        let mut played = play(
            &order,
            stage,
            || started = unix_now(),
            |standing| watcher.event(Event::Tick(rate.tick(record, standing))),
        )?;
        self.field.give_back(played.stage.take());
        let results = std::mem::take(&mut played.results);
        let found = engine::merge(visit, results);
        let (ledger, unknown) = self.field.ledger();
        let (resident_before, resident_after) = self.field.resident();
        // What was waited for is this visit's alone.
        let none = Waited { waited: Nanos::ZERO, quiet: None, busy: None };
        let waited = std::mem::replace(&mut self.waited, none);
        for warning in unknown {
            self.warn(warning)?;
        }
        let host_stalls = if real { watchdog.finish(found.begin) } else { Vec::new() };
        let mut streams = found.streams;
        for (stream, report) in streams.iter_mut().zip(&played.backends) {
            stream.backend = backend(report);
        }
        let mut warnings = found.warnings;
        warnings.extend(played.stuck.iter().map(stuck_warning));
        warnings.extend(
            played
                .device_error
                .as_ref()
                .map(|error| Warning::new("device-failed", error.to_string())),
        );
        let end = end_of(&played, found.hanging, found.failed, self.interrupt.stops());
        if end != VisitEnd::Hanging {
            let mut ops = cell.streams.iter().flat_map(|stream| &stream.mix.classes);
            warnings.extend(self.field.changes(ops.any(|class| class.op == Operation::Trim)));
            self.field.end_anew()?;
        }
        // What was measured during the ramp began earlier on the wall clock too.
        let ramp = cell.streams.iter().map(|s| s.stop.ramp).min().unwrap_or_default();
        Ok(VisitRecord {
            cell: planned.cell,
            repeat: planned.repeat,
            order: self.visits,
            started_unix_ns: started + i64::try_from(ramp.get()).unwrap_or(0),
            elapsed_ns: found.elapsed.get(),
            end,
            purpose: planned.purpose,
            ramp_ns: ramp.get(),
            waited_ns: waited.waited.get(),
            quiet: waited.quiet,
            resident_before,
            resident_after,
            streams,
            completions: found.completions,
            ledger,
            host_stalls,
            warnings,
        })
    }

    /// What the visit means for the run; adds doubts that only this level can have.
    fn judge(&mut self, cell: &Cell, record: &mut VisitRecord) -> Next {
        self.doubt_direct(cell, record);
        let code = |code: &str| record.warnings.iter().any(|w| w.code == code);
        if code("verify-mismatch") {
            self.outcome.mismatches = true;
        }
        let gone = if code("device-failed") {
            Some("the device failed".to_owned())
        } else if code("target-gone") {
            Some("what is measured has no name any more, and others cannot see it".to_owned())
        } else if let Some(errno) = lost_device(record) {
            Some(format!("{errno} leaves nothing to measure"))
        } else {
            // A twin whose thread never came back is lost.
            (!self.can_go_on()).then(|| "the twin did not come back from its visit".to_owned())
        };
        match record.end {
            VisitEnd::Complete => self.in_a_row = 0,
            VisitEnd::Interrupted => return Next::Interrupted,
            VisitEnd::Hanging => {
                self.outcome.hanging_visits += 1;
                self.field.hangs();
                self.in_a_row += 1;
            }
            VisitEnd::Failed => {
                self.outcome.failed_visits += 1;
                self.in_a_row += 1;
            }
        }
        if self.interrupt.stops() {
            return Next::Interrupted;
        }
        match gone {
            Some(why) => ends_early(format!("the run ends here: {why}")),
            None if self.in_a_row >= FAILURES_IN_A_ROW => {
                ends_early(format!("the run ends here: {FAILURES_IN_A_ROW} visits in a row failed"))
            }
            None => Next::On,
        }
    }

    /// A pilot that never comes to rest is no reason for a longer ramp, but worth a word.
    fn doubt_pilot(&mut self, record: &VisitRecord) -> Result<(), RunError> {
        let pilot = record.purpose == Purpose::Pilot && record.end == VisitEnd::Complete;
        if !pilot || pilot_ramp(record) != Some(Err(Drifts)) {
            return Ok(());
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
        ))
    }

    fn can_go_on(&self) -> bool {
        !matches!(&self.field, Field::Twin(None, _))
    }

    /// Direct I/O is a request: says so where it was not granted, or granted and not done.
    fn doubt_direct(&self, cell: &Cell, record: &mut VisitRecord) {
        if !self.field.has_page_cache() {
            return;
        }
        let mut doubts = Vec::new();
        for (plan, stream) in cell.streams.iter().zip(&record.streams) {
            // Workers that are all stuck in the kernel have not said what they were given.
            let known = !stream.backend.name.is_empty();
            if known && plan.direct && !stream.backend.direct {
                let why = stream.backend.reasons.join("; ");
                doubts.push(Warning::new(
                    "buffered-fallback",
                    format!(
                        "stream `{}` asked for direct I/O and went through the page cache: {why}",
                        plan.name
                    ),
                ));
            }
        }
        let all_direct = record.streams.iter().all(|s| s.backend.direct);
        if all_direct && let Some((before, after)) = self.field.cached_shares() {
            // Pages that were there before mean nothing if the device moved what was asked: our own
            // look at a killed run's file leaves some.
            let suspicious = after - before > CACHED || (after > CACHED && !device_moved(record));
            doubts.extend(suspicious.then(|| {
                Warning::new(
                    "buffered-fallback",
                    format!(
                        "direct I/O was accepted, yet {:.0} % of the file's first 64 MiB are in \
                         the page cache: the file system may have gone through it",
                        after * 100.0
                    ),
                )
            }));
        }
        record.warnings.extend(doubts);
    }

    fn warn(&mut self, warning: Warning) -> Result<(), RunError> {
        if self.warned.insert((warning.code.clone(), warning.text.clone())) {
            self.store.add_warning(&self.outcome.run, &warning)?;
            self.watcher.event(Event::Warning(&warning));
        }
        Ok(())
    }

    /// Says in the store how it ended, whatever that was.
    fn close(mut self, ended: Result<Next, RunError>) -> Result<Outcome, RunError> {
        // A visit that was never made leaves its files empty. What went wrong before is what to tell.
        let _ = self.field.end_anew();
        let state = match &ended {
            Ok(Next::On) => RunState::Complete,
            Ok(Next::Interrupted) => RunState::Interrupted,
            Ok(Next::Failed(_)) | Err(_) => RunState::Failed,
        };
        let warned = match &ended {
            Ok(Next::Failed(why)) => self.warn(why.clone()),
            // The caller tells the error; the store may be what failed.
            Err(error) => {
                let why = Warning::new("ended", error.to_string());
                let _ = self.store.add_warning(&self.outcome.run, &why);
                Ok(())
            }
            Ok(_) => Ok(()),
        };
        let stored = self.store.set_state(&self.outcome.run, state);
        ended?;
        warned?;
        stored?;
        self.outcome.state = state;
        Ok(self.outcome)
    }
}

/// The cell as this visit plays it: a pilot from its first request on, others with the ramp that
/// the pilots ask for.
fn as_planned(cell: &Cell, planned: &PlannedVisit) -> Cell {
    let mut cell = cell.clone();
    for stop in cell.streams.iter_mut().map(|stream| &mut stream.stop).filter(|s| s.by_time()) {
        match (planned.purpose, planned.ramp) {
            (Purpose::Pilot, _) => {
                *stop = Stop { ramp: Nanos::ZERO, time: Some(PILOT), extend: None, ..*stop };
            }
            (Purpose::Measure, Some(ramp)) => stop.ramp = stop.ramp.max(ramp),
            (Purpose::Measure, None) => {}
        }
    }
    cell
}

/// What is seen of the world while the device is waited for.
struct Look<'a> {
    field: &'a Field,
    watcher: &'a mut dyn Watcher,
    interrupt: &'a Interrupt,
}

impl World for Look<'_> {
    fn levels(&mut self) -> Option<Vec<Level>> {
        self.field.levels()
    }

    fn now(&mut self) -> Instant {
        MonotonicClock::read()
    }

    fn sleep(&mut self, span: Nanos) {
        std::thread::sleep(span.as_std());
    }

    fn stops(&mut self) -> bool {
        self.interrupt.stops()
    }

    fn say(&mut self, why: &str) {
        self.watcher.event(Event::Step(why));
    }
}

/// Requests per second between ticks.
#[derive(Default)]
struct Rate {
    requests: u64,
    elapsed: Nanos,
}

impl Rate {
    fn tick<'a>(&mut self, cell: &'a CellRecord, standing: Standing) -> Tick<'a> {
        let Standing { elapsed, requests, bytes, waiting } = standing;
        let seconds = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        let new = requests.saturating_sub(self.requests);
        let iops = if seconds > 0.0 { new as f64 / seconds } else { 0.0 };
        (self.requests, self.elapsed) = (requests, elapsed);
        Tick { cell, elapsed, requests, bytes, iops, waiting }
    }
}

fn end_of(played: &Played, hanging: bool, failed: bool, interrupted: bool) -> VisitEnd {
    if played.device_error.is_some() || failed {
        VisitEnd::Failed
    } else if hanging || !played.stuck.is_empty() {
        VisitEnd::Hanging
    } else if interrupted {
        VisitEnd::Interrupted
    } else {
        VisitEnd::Complete
    }
}

fn backend(report: &BackendReport) -> BackendRecord {
    let BackendReport { name, flags, reasons, direct } = report.clone();
    BackendRecord { name, flags, reasons, direct }
}

fn stuck_warning(stuck: &Stuck) -> Warning {
    let place = match &stuck.waiting {
        Some(waiting) => {
            format!("its {} had not come back after {}", waiting.op.at(waiting.offset), waiting.age)
        }
        None => "it did not say at what".to_owned(),
    };
    Warning::new(
        "hanging",
        format!(
            "worker {} of stream {} is stuck in the kernel: {place}; the {} requests it completed \
             are not in the figures",
            stuck.worker.worker, stuck.worker.stream, stuck.completed
        ),
    )
}

/// Errors after which the device is not coming back, or no write will succeed.
fn lost_device(record: &VisitRecord) -> Option<Errno> {
    let lost = [Errno::ENODEV, Errno::ENXIO, Errno::ENOSPC, Errno::EROFS];
    let errors = record.streams.iter().flat_map(|s| &s.ops).flat_map(|op| &op.errors);
    errors.map(|(code, _)| Errno(*code)).find(|errno| lost.contains(errno))
}

fn not_filled() -> Next {
    let why = "the files could not be written to the end: nothing was measured";
    Next::Failed(Warning::new("not-filled", why))
}

/// Whether the devices right below moved at least half of what was asked; not where none is known.
fn device_moved(record: &VisitRecord) -> bool {
    let asked: u64 = record.streams.iter().flat_map(|s| &s.ops).map(|op| op.bytes).sum();
    let top = record.ledger.iter().filter(|entry| entry.depth == 0);
    let moved: u64 = top.map(|entry| entry.read_bytes + entry.write_bytes).sum();
    moved > 0 && moved >= asked / 2
}

fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The sum if all are known.
trait SumOptions {
    fn sum_options(self) -> Option<Bytes>;
}

impl<I: Iterator<Item = Option<Bytes>>> SumOptions for I {
    fn sum_options(mut self) -> Option<Bytes> {
        self.try_fold(Bytes::ZERO, |sum, item| {
            item.map(|bytes| Bytes::new(sum.get().saturating_add(bytes.get())))
        })
    }
}
