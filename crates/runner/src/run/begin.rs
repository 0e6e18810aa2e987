//! From a prepared run to one under way.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use engine::verify::Verifier;
use plan::{Made, Schedule};
use record::{CellRecord, RunHeader, RunState, Warning};
use stack::Target;
use store::{Change, Claim, Store};
use suite::model::{Cell, Method, Suite};

use super::below::Below;
use super::{Outcome, Running, own_seed};
use crate::clock::Clock;
use crate::events::{Event, Watcher};
use crate::fill::Pass;
use crate::made::leads;
use crate::prepare::{Paths, Prepared, impossible, impossible_cells, smallest_unit, verifies};
use crate::quiet::{Quiet, Waited};
use crate::resume::Resumed;
use crate::rig::{Entering, Rig, Site};
use crate::{Interrupt, RunError, directory};

impl Prepared {
    /// Begins it: the run is in the store and claimed, its files are made and held. What is left
    /// is done step by step, so that several runs can take turns.
    pub fn begin<'a>(
        self,
        store: &'a mut Store,
        watcher: &'a mut dyn Watcher,
        interrupt: &'a Interrupt,
    ) -> Result<Running<'a>, RunError> {
        let Self { mut header, cells, suite, site, passes, settings, resumes, turns, .. } = self;
        let makes_files = site.paths().is_some_and(Paths::makes_files);
        let mut played: Vec<Cell> = suite.cells_as_played();
        played.extend(passes.iter().map(Pass::as_cell));
        let is_new = resumes.is_none();
        let ended = resumes.as_ref().map(|resumed| resumed.ended_unix_ns);
        // Each twin's own clock says nothing of the other sides'.
        let own = || Clock::Own(ended.unwrap_or(header.started_unix_ns));
        let clock = turns.map_or_else(own, Clock::Turns);
        // First of all: a store that takes nothing must not cost a file its content.
        let kept = Kept::of(&mut header, &cells, site.targets(), resumes, store)?;
        let Kept { below, made, visits, done, claim, broken } = kept;
        let sides = header.blocks.clone();
        let own = own_seed(header.seed, sides.as_ref());
        let key = directory::key(&header);
        let rig = match entered(site, &suite, &played, own, (settings.keep, key), interrupt) {
            Ok(rig) => rig,
            Err(error) => {
                drop(claim);
                not_begun(store, &header.id, is_new);
                return Err(error);
            }
        };
        let schedule = Schedule::new(&suite, header.seed, &BTreeSet::new());
        let schedule = schedule.in_blocks(sides.as_ref());
        let quiet = || Quiet::new(suite.rounds.visit_time, schedule.wait_most());
        let mut run = Running {
            quiet: (suite.method == Method::Rounds).then(quiet),
            course: schedule.begin(),
            passes: passes.len() as u32,
            planned: header.visits_planned,
            leads: leads(&suite),
            verifier: verifier(&suite, header.seed, !passes.is_empty()),
            seed: header.seed,
            clock,
            rig,
            cells,
            played,
            suite,
            settings,
            store,
            late: Vec::new(),
            watcher,
            interrupt,
            visits,
            waited: Waited::NONE,
            warned: HashSet::new(),
            in_a_row: 0,
            sides,
            claim,
            fill: left_to_fill(&passes, &done),
            of_phases: left_of_phases(&passes, &done),
            trims: (0..).zip(&passes).filter(|(_, p)| p.trims()).map(|(at, _)| at).collect(),
            round: None,
            ended: None,
            below,
            outcome: Outcome::of(&header.id),
        };
        let looked = if makes_files { run.look_again() } else { Ok(()) };
        match looked.and_then(|()| run.start(header, &made, broken)) {
            Ok(()) => Ok(run),
            Err(error) => Err(run.failed(error)),
        }
    }
}

/// What the store has of a run that begins or goes on.
struct Kept {
    below: Below,
    made: Vec<Made>,
    visits: u32,
    done: BTreeSet<u32>,
    claim: Claim,
    /// That the run was broken off.
    broken: Option<Warning>,
}

impl Kept {
    fn of(
        header: &mut RunHeader,
        cells: &[CellRecord],
        targets: &[Target],
        resumes: Option<Resumed>,
        store: &mut Store,
    ) -> Result<Self, RunError> {
        // What lies below is stored as the first visit finds it.
        let prepared = header.stack.take();
        let stored = resumes.as_ref().and_then(|resumed| resumed.stack.clone());
        let below = Below::new(targets, prepared.clone(), stored);
        let is_new = resumes.is_none();
        let broken = resumes.as_ref().and_then(|resumed| resumed.broken.clone());
        let (id, made, visits, done) = match resumes {
            Some(resumed) => (resumed.id, resumed.made, resumed.visits, resumed.passes),
            None => (store.create_run(header, cells)?, Vec::new(), 0, BTreeSet::new()),
        };
        header.stack = prepared;
        let claim = store.claim(&id)?;
        if !is_new {
            store.set_state(&id, RunState::Running)?;
        }
        header.id = id;
        Ok(Self { below, made, visits, done, claim, broken })
    }
}

impl Running<'_> {
    /// Says what is to be done, to who watches and to the store.
    fn start(
        &mut self,
        mut header: RunHeader,
        made: &[Made],
        broken: Option<Warning>,
    ) -> Result<(), RunError> {
        // Of files that were made only now it was not known before.
        if header.target.direct_alignment.is_none()
            && let Some(bytes) = self.rig.alignment()
        {
            self.late.push(Change::DirectAlignment(bytes));
            header.target.direct_alignment = Some(bytes);
        }
        self.schedule(made);
        let left = self.course.left();
        self.tell_visits();
        header.visits_planned = self.planned;
        self.watcher.event(Event::Begins {
            header: &header,
            cells: &self.cells,
            done: made.len(),
            left,
        });
        for warning in &header.warnings {
            self.warned.insert((warning.code.clone(), warning.text.clone()));
            self.watcher.event(Event::Warning(warning));
        }
        broken.into_iter().for_each(|broken| self.warn(broken));
        self.tell_short();
        if left.visits_most == 0 {
            // Only its files were left to be removed.
            self.fill = 0..0;
        }
        // A store that takes nothing is said before the first visit.
        self.store_late()
    }

    /// Files that were just made tell their unit of direct I/O only now.
    fn look_again(&mut self) -> Result<(), RunError> {
        let grid = self.suite.cell_count();
        for index in 0..grid {
            if self.cells[index].impossible.is_some() {
                continue;
            }
            let Some(unit) = self.rig.direct_unit(&self.played[index])? else { continue };
            if let Some(why) = impossible(&self.played[index], unit) {
                self.late.push(Change::Impossible(index as u32, why.clone()));
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
}

/// What all cells, and what comes before them, are played on.
fn entered(
    site: Box<dyn Site>,
    suite: &Suite,
    played: &[Cell],
    seed: u64,
    (keep, key): (bool, u64),
    interrupt: &Interrupt,
) -> Result<Box<dyn Rig>, RunError> {
    let before: Vec<Cell> = played.iter().filter_map(before).collect();
    let cells: Vec<&Cell> = played.iter().chain(&before).collect();
    site.enter(&Entering { suite, cells: &cells, seed, keep, key, stops: &|| interrupt.stops() })
}

/// It has not begun. Why is what to tell, whatever the store says.
fn not_begun(store: &mut Store, id: &str, is_new: bool) {
    let _ = match is_new {
        true => store.remove(std::slice::from_ref(&id.to_owned())),
        false => store.set_state(id, RunState::Failed),
    };
}

/// What is played before visits to a cell, as a cell of its own.
fn before(cell: &Cell) -> Option<Cell> {
    let streams = vec![cell.before.clone()?];
    Some(Cell { coordinates: Vec::new(), streams, before: None })
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

/// Data that reads can be held against, if the suite wants that.
fn verifier(suite: &Suite, seed: u64, filled: bool) -> Option<Arc<Verifier>> {
    verifies(suite).then(|| {
        // The seed is the run's own and stays with it over a resume.
        let run = stats::random::mix(seed);
        let (files, size) = (suite.files.count, suite.files.size);
        Arc::new(Verifier::new(run, !filled, smallest_unit(suite), files, size))
    })
}
