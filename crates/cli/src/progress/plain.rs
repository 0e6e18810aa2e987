//! A line now and then, where lines cannot change.

use std::time::{Duration, Instant};

use runner::Tick;
use units::Nanos;

use super::text;
use super::time::TimeLeft;
use crate::output::Output;

/// Longest silence while something goes on, so that a log has a line every ten seconds; and between two about what hangs in it.
const STATUS_EVERY: Duration = Duration::from_secs(8);
const WAITING_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Plain {
    status: Instant,
    waiting: Option<Instant>,
}

impl Plain {
    pub fn new() -> Self {
        Self { status: Instant::now(), waiting: None }
    }

    /// What is said anyway breaks the silence.
    pub fn said(&mut self) {
        self.status = Instant::now();
    }

    /// What is done between two visits, if nothing was said for long.
    pub fn step(&mut self, step: &str, output: &Output) {
        if self.status.elapsed() >= STATUS_EVERY {
            self.said();
            output.note(step);
        }
    }

    pub fn tick(&mut self, tick: &Tick<'_>, time: &TimeLeft, left: Option<Nanos>, output: &Output) {
        if self.status.elapsed() >= STATUS_EVERY {
            self.status = Instant::now();
            output.note(&text::status(tick, time, left, ""));
        }
        match text::waiting(&tick.waiting) {
            Some(line) if self.waiting.is_none_or(|at| at.elapsed() >= WAITING_EVERY) => {
                self.waiting = Some(Instant::now());
                output.note(&line);
            }
            Some(_) => {}
            None => self.waiting = None,
        }
    }
}
