//! A line now and then, where lines cannot change.

use std::time::{Duration, Instant};

use runner::Tick;
use units::Nanos;

use super::text;
use super::time::TimeLeft;
use crate::output::Output;

/// Between two lines about the visit under way, and between two about what hangs in it.
const STATUS_EVERY: Duration = Duration::from_secs(30);
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

    pub fn tick(&mut self, tick: &Tick<'_>, time: &TimeLeft, left: Option<Nanos>, output: &Output) {
        if self.status.elapsed() >= STATUS_EVERY {
            self.status = Instant::now();
            output.note(&text::status(tick, time, left));
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
