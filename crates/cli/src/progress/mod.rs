//! What is seen while a run is under way.

mod grid;
mod live;
mod plain;
mod text;
mod time;

use record::{Run, VisitRecord};
use runner::{Event, Interrupt, Round, RoundOf, Watcher};
use units::Nanos;

use crate::output::Output;
use grid::Grid;
use live::Live;
use plain::Plain;
pub use time::Later;
use time::TimeLeft;

/// Warnings of a visit that are told at once; the tables list them all.
const WARNINGS_TOLD: usize = 3;

/// Listens to the runner and tells the person in front.
#[derive(Debug)]
pub struct Progress {
    output: Output,
    run: Option<String>,
    before: Vec<VisitRecord>,
    /// The phase under way.
    phase: Option<String>,
    grid: Grid,
    time: TimeLeft,
    interrupt: Interrupt,
    is_stopping: bool,
    face: Face,
}

/// How it is told.
#[derive(Debug)]
enum Face {
    /// Lines that change, on a terminal.
    Live(Box<Live>),
    /// A line now and then.
    Plain(Plain),
    /// Nothing at all.
    Silent,
}

impl Progress {
    /// * `so_far`: the run as it is stored, if it goes on.
    pub fn new(output: Output, so_far: Option<&Run>, interrupt: Interrupt) -> Self {
        let face = if output.is_quiet() {
            Face::Silent
        } else if output.is_live() {
            Face::Live(Box::new(Live::new()))
        } else {
            Face::Plain(Plain::new())
        };
        let before = so_far.map(|run| run.visits.clone()).unwrap_or_default();
        Self {
            output,
            run: None,
            before,
            phase: None,
            grid: Grid::default(),
            time: TimeLeft::default(),
            interrupt,
            is_stopping: false,
            face,
        }
    }

    /// With what comes after the run, for the time that is left of all.
    pub fn before(mut self, later: Option<Later>) -> Self {
        self.time.before(later);
        self
    }

    /// The run's id, once it has one.
    pub fn run_id(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Takes the changing lines away.
    pub fn finish(&mut self) {
        if let Face::Live(live) = &self.face {
            live.clear();
        }
    }

    fn say(&mut self, line: &str) {
        match &mut self.face {
            Face::Live(live) => live.print(line),
            Face::Plain(plain) => {
                plain.said();
                self.output.notes(line);
            }
            Face::Silent => {}
        }
    }
}

impl Watcher for Progress {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Begins { header, cells, done, left } => {
                self.run = Some(header.id.clone());
                self.grid = Grid::new(header.visits_planned, cells, &header.suite_text);
                self.time.begin(done, left);
                self.say(&text::begin(header, done, left));
                for visit in std::mem::take(&mut self.before) {
                    self.grid.add(&visit, None);
                }
                for line in self.grid.take_lines() {
                    self.say(&line);
                }
            }
            Event::Step(step) => {
                let step = report::plain(step);
                match &mut self.face {
                    Face::Live(live) => live.status(&step),
                    Face::Plain(plain) => plain.step(&step, &self.output),
                    Face::Silent => {}
                }
            }
            Event::Round { phase, round } => self.round(phase, round),
            Event::VisitBegins { cell, planned, .. } => {
                self.time.visit_begins(planned);
                if let Face::Live(live) = &mut self.face {
                    live.visit(&text::cell(cell));
                    live.grid(&self.grid.open(cell.index));
                }
            }
            Event::Tick(tick) => {
                self.tell_of_stopping();
                let left = self.time.left(tick.elapsed);
                self.grid.now(tick.cell.index, tick.iops);
                match &mut self.face {
                    Face::Live(live) => {
                        live.grid(&self.grid.open(tick.cell.index));
                        live.tick(&tick, &self.time, left);
                    }
                    Face::Plain(plain) => plain.tick(&tick, &self.time, left, &self.output),
                    Face::Silent => {}
                }
            }
            Event::VisitEnds { visit, half_width, left, .. } => {
                self.time.visit_ends(visit, left);
                self.grid.add(visit, half_width);
                for line in self.grid.take_lines() {
                    self.say(&line);
                }
                for warning in visit.warnings.iter().take(WARNINGS_TOLD) {
                    self.warn(&warning.text);
                }
                if let more @ 1.. = visit.warnings.len().saturating_sub(WARNINGS_TOLD) {
                    self.warn(&format!("and {more} more of this visit"));
                }
                if let Face::Live(live) = &mut self.face {
                    live.grid(&self.grid.open(visit.cell));
                }
            }
            Event::Warning(warning) => self.warn(&warning.text),
            _ => {}
        }
    }
}

impl Progress {
    /// A round begins: with the first of a phase, what the one before came to is said.
    fn round(&mut self, phase: &str, round: Round) {
        if round.of != RoundOf::Classic {
            self.grid.wait_for_phases();
        }
        if self.phase.as_deref() != Some(phase) {
            if let Some(before) = self.phase.replace(phase.to_owned()) {
                self.grid.end_phase(&before);
            }
            for line in self.grid.take_lines() {
                self.say(&line);
            }
        }
        if let Some(line) = text::round(phase, round, self.time.left(Nanos::ZERO)) {
            self.say(&line);
        }
    }

    fn warn(&self, text: &str) {
        let text = report::plain(text);
        match &self.face {
            Face::Live(live) => live.print(&format!("warning: {text}")),
            Face::Plain(_) => self.output.warning(&text),
            Face::Silent => {}
        }
    }

    /// A visit that is to end may wait for requests that do not come back.
    fn tell_of_stopping(&mut self) {
        if self.interrupt.stops() && !self.is_stopping {
            self.is_stopping = true;
            self.say("ending this visit; Ctrl-C again stops at once");
        }
    }
}
