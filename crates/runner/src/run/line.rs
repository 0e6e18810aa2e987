//! A run that looks for a load line: its visits are a ladder's, each rate a cell of its own.

use std::collections::BTreeMap;
use std::time::Instant;

use explain::line::{Climb, HOLD, LOAD, MixTerms, counts};
use plan::PlannedVisit;
use plan::ladder::{Ladder, Load, Step, StepOf};
use record::{CellRecord, Purpose, VisitRecord};
use store::{Change, Store};
use suite::model::{Cell, Pacing, Stop};
use units::Nanos;

use super::{Next, Outcome, Running};
use crate::events::{Event, Watcher};
use crate::prepare::{Prepared, stream_plan};
use crate::{Interrupt, RunError};

/// From so many seconds of visits on, what they took tells what others will take.
const STEADY: f64 = 10.0;

/// What is to be found.
#[derive(Clone, Copy, Debug)]
pub enum LineGoal {
    /// The line; its low end is held for so long, 0 for not at all.
    Line(Nanos),
    /// Whether this load holds for so long.
    Hold(Load, Nanos),
}

impl Prepared {
    /// Looks for the line of the suite's one cell: see [`plan::ladder`].
    pub fn run_line(
        mut self,
        goal: LineGoal,
        store: &mut Store,
        watcher: &mut dyn Watcher,
        interrupt: &Interrupt,
    ) -> Result<Outcome, RunError> {
        let terms = MixTerms::of(&self.suite).map_err(|why| RunError::NoLine { why })?;
        let bounds = terms.bounds();
        let ladder = match goal {
            LineGoal::Line(hold) => Ladder::new(bounds, self.header.seed, hold),
            LineGoal::Hold(load, time) => Ladder::only_hold(bounds, load, time),
        };
        // The suite's own cell becomes the first that is played.
        let mut climb = Climb::new(terms, ladder);
        if let (Some(step), Some(cell)) = (climb.ladder.next(), self.cells.first_mut()) {
            (cell.phase, cell.coordinates) = place(&cell.phase, step);
        }
        // A clock of its own goes at its own speed from the start.
        let steady = if self.header.target.model.is_some() { 0.0 } else { STEADY };
        let mut running = self.begin(store, watcher, interrupt)?;
        while running.is_filling() && running.step() {}
        // Beside the visits there are waits for an idle device.
        let (began, mut planned) = (Instant::now(), 0.0);
        let mut repeats = BTreeMap::new();
        while let Some(step) = climb.ladder.next().filter(|_| running.ended.is_none()) {
            let took = began.elapsed().as_secs_f64() / f64::max(planned, 1e-9);
            let took = if planned > steady { took } else { 1.0 };
            let left = climb.ladder.left().as_secs_f64() * took;
            let left = Nanos::from_secs_f64(left.max(1.0).round());
            let says = format!("{} transactions/s; about {left} left", step.load);
            planned += (step.time + step.ramp).as_secs_f64();
            running.watcher.event(Event::Step(&says));
            match running.offer(step, &climb.terms, &mut repeats) {
                Ok((visit, next)) => {
                    if let Some(visit) = visit.filter(counts) {
                        climb.add(&visit, step);
                    }
                    running.ended = (!matches!(next, Next::On)).then_some(Ok(next));
                }
                Err(error) => running.ended = Some(Err(error)),
            }
        }
        let ended = running.ended.take().unwrap_or(Ok(Next::On));
        running.late.push(Change::VisitsPlanned(running.visits));
        let outcome = running.close(ended)?;
        // The suite's own rounds were not played.
        Ok(Outcome { visits_without_time: 0, ..outcome })
    }
}

/// Phase and coordinates of the cell that a step is made in.
fn place(phase: &str, step: Step) -> (String, Vec<(String, String)>) {
    let load = (LOAD.to_owned(), step.load.to_string());
    match step.of {
        StepOf::Hold => (HOLD.to_owned(), vec![load, (HOLD.to_owned(), step.time.exact())]),
        _ => (phase.to_owned(), vec![load]),
    }
}

/// The cell with all its rates by one factor, for so long.
fn at_load(cell: &Cell, factor: f64, step: Step) -> Cell {
    let mut cell = cell.clone();
    for stream in &mut cell.streams {
        if let Pacing::Open { rate, .. } = &mut stream.pacing {
            *rate *= factor;
        }
        stream.stop = Stop { ramp: step.ramp, time: Some(step.time), extend: None, ..stream.stop };
    }
    cell
}

impl Running<'_> {
    /// Makes a visit, and says whether to go on; `None` where there was none.
    ///
    /// * `repeats`: visits to each cell so far.
    fn offer(
        &mut self,
        step: Step,
        terms: &MixTerms,
        repeats: &mut BTreeMap<u32, u32>,
    ) -> Result<(Option<VisitRecord>, Next), RunError> {
        let cell = self.cell_of(step, terms)?;
        if let Some(ended) = self.prepare_phase(Some(0))? {
            return Ok((None, ended));
        }
        self.look_below();
        self.begin_files(cell)?;
        if !self.get_ready(Some(0))? {
            return Ok((None, Next::Interrupted));
        }
        let made = repeats.entry(cell).or_default();
        let repeat = *made;
        *made += 1;
        self.visit(&PlannedVisit {
            order: self.visits,
            cell,
            repeat,
            purpose: Purpose::Measure,
            seed: stats::random::derive_seed(self.seed, &[10, u64::from(self.visits)]),
            ramp: None,
            time_permille: None,
        })
    }

    /// The cell of a step, stored before its first visit.
    fn cell_of(&mut self, step: Step, terms: &MixTerms) -> Result<u32, RunError> {
        let Some(base) = self.suite.cells().next() else {
            return Err(RunError::NoLine { why: "it has no cell".to_owned() });
        };
        let played = at_load(base, step.load.per_second() / terms.base, step);
        let name = self.suite.phases.first().map_or("line", |phase| &phase.name);
        let (phase, coordinates) = place(name, step);
        let same = |cell: &&CellRecord| cell.phase == phase && cell.coordinates == coordinates;
        let index = match self.cells.iter().find(same) {
            Some(cell) => cell.index,
            None => {
                let index = self.cells.len() as u32;
                let streams = played.streams.iter().map(stream_plan).collect();
                let cell = CellRecord { index, phase, coordinates, streams, impossible: None };
                self.late.push(Change::Cell(Box::new(cell.clone())));
                self.store_late()?;
                self.cells.push(cell);
                self.played.push(played.clone());
                index
            }
        };
        // Visits to one cell may be of different lengths.
        if let Some(cell) = self.played.get_mut(index as usize) {
            *cell = played;
        }
        Ok(index)
    }
}
