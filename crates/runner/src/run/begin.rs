//! From a prepared run to one under way.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use engine::verify::Verifier;
use plan::{Made, Schedule};
use record::RunState;
use store::{Change, Store};
use suite::model::{Cell, Method, Suite};
use units::Nanos;

use super::below::Below;
use super::{Outcome, Running, own_seed};
use crate::clock::Clock;
use crate::events::{Event, Watcher};
use crate::fill::Pass;
use crate::ground::Field;
use crate::made::leads;
use crate::prepare::{Ground, Prepared, impossible, impossible_cells, smallest_unit, verifies};
use crate::quiet::{Quiet, Waited};
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
        let Self { mut header, cells, suite, ground, passes, settings, resumes, turns, .. } = self;
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
        let broken = resumes.as_ref().and_then(|resumed| resumed.broken.clone());
        let ended = resumes.as_ref().map(|resumed| resumed.ended_unix_ns);
        // Each twin's own clock says nothing of the other sides'.
        let own = || Clock::Own(ended.unwrap_or(header.started_unix_ns));
        let clock = turns.map_or_else(own, Clock::Turns);
        // What lies below is stored as the first visit finds it.
        let prepared = header.stack.take();
        let stored = resumes.as_ref().and_then(|resumed| resumed.stack.clone());
        let below = Below::new(&ground, prepared.clone(), stored);
        let (id, made, visits, done) = match resumes {
            Some(resumed) => (resumed.id, resumed.made, resumed.visits, resumed.passes),
            None => (store.create_run(&header, &cells)?, Vec::new(), 0, BTreeSet::new()),
        };
        header.stack = prepared;
        let claim = store.claim(&id)?;
        header.id.clone_from(&id);
        if !is_new {
            store.set_state(&id, RunState::Running)?;
        }
        let sides = header.blocks.clone();
        let own = own_seed(header.seed, sides.as_ref());
        let key = directory::key(&header);
        let field = Field::enter(ground, &suite, &everything, own, settings.keep, key);
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
        let waits = schedule.wait_most();
        let quiet = || Quiet::new(suite.rounds.visit_time, waits);
        let mut run = Running {
            course: schedule.begin(),
            quiet: (suite.method == Method::Rounds).then(quiet),
            passes: passes.len() as u32,
            planned: header.visits_planned,
            leads: leads(&suite),
            verifier: verifier(&suite, header.seed, !passes.is_empty()),
            seed: header.seed,
            clock,
            field,
            cells,
            played,
            suite,
            settings,
            store,
            late: Vec::new(),
            watcher,
            interrupt,
            visits,
            waited: Waited { waited: Nanos::ZERO, quiet: None, busy: None },
            warned: HashSet::new(),
            in_a_row: 0,
            sides,
            claim,
            fill: left_to_fill(&passes, &done),
            of_phases: left_of_phases(&passes, &done),
            trims: (0..)
                .zip(&passes)
                .filter(|(_, p)| p.trims())
                .map(|(number, _)| number)
                .collect(),
            round: None,
            ended: None,
            below,
            outcome: Outcome {
                run: id,
                state: RunState::Running,
                failed_visits: 0,
                hanging_visits: 0,
                visits_without_time: 0,
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
            run.late.push(Change::DirectAlignment(bytes));
            header.target.direct_alignment = Some(bytes);
        }
        run.schedule(&made);
        let left = run.course.left();
        run.tell_visits();
        header.visits_planned = run.planned;
        run.watcher.event(Event::Begins {
            header: &header,
            cells: &run.cells,
            done: made.len(),
            left,
        });
        for warning in &header.warnings {
            run.warned.insert((warning.code.clone(), warning.text.clone()));
            run.watcher.event(Event::Warning(warning));
        }
        broken.into_iter().for_each(|broken| run.warn(broken));
        run.tell_short();
        // A store that takes nothing is said before the first visit.
        if let Err(error) = run.store_late() {
            return Err(run.failed(error));
        }
        if left.visits_most == 0 {
            // Only its files were left to be removed.
            run.fill = 0..0;
        }
        Ok(run)
    }
}

impl Running<'_> {
    /// Files that were just made tell their unit of direct I/O only now.
    fn look_again(&mut self) -> Result<(), RunError> {
        let grid = self.suite.cell_count();
        for index in 0..grid {
            if self.cells[index].impossible.is_some() {
                continue;
            }
            let Some(unit) = self.field.direct_unit(&self.played[index])? else { continue };
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
