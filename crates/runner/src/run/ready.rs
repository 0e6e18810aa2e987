//! What is waited for and got ready before a visit.

use record::Warning;
use suite::model::Work;
use units::{Instant, Nanos};
use uring::MonotonicClock;

use super::Running;
use crate::events::{Event, Watcher};
use crate::quiet::{Level, Waited, World};
use crate::rig::Rig;
use crate::{Interrupt, RunError};

impl Running<'_> {
    /// Whole files or the rows that the visit needs; false if the user wants to stop.
    pub(super) fn make_ready(&mut self, cell: u32) -> Result<bool, RunError> {
        let cell = &self.played[cell as usize];
        if cell.streams.iter().all(|stream| stream.work == Work::Blocks) {
            return Ok(true);
        }
        let (watcher, interrupt) = (&mut *self.watcher, self.interrupt);
        let mut tell = |step: &str| watcher.event(Event::Step(step));
        self.rig.make_ready(cell, &|| interrupt.stops(), &mut tell)
    }

    /// Caches, pause, and the wait for an idle device; false if the user wants to stop.
    pub(super) fn get_ready(&mut self, phase: Option<usize>) -> Result<bool, RunError> {
        self.waited = Waited { waited: Nanos::ZERO, quiet: None, busy: None };
        let phase = phase.and_then(|phase| self.suite.phases.get(phase));
        let (steps, settle) = match phase {
            Some(phase) => (phase.caches.clone(), phase.settle),
            None => (self.suite.caches.clone(), self.suite.settle),
        };
        if !steps.is_empty() {
            self.watcher.event(Event::Step("handling caches"));
            self.rig.caches(&steps)?;
        }
        if !self.settle(settle) {
            return Ok(false);
        }
        if let Some(quiet) = &mut self.quiet {
            let mut look =
                Look { rig: &*self.rig, watcher: &mut *self.watcher, interrupt: self.interrupt };
            self.waited = quiet.wait(&mut look);
        }
        if let Some((device, rate)) = self.waited.busy.take() {
            let load = match rate.get() {
                0 => "something else uses it".to_owned(),
                _ => format!("something else writes {rate}/s to it"),
            };
            self.warn(Warning::new(
                "busy-device",
                format!(
                    "{device} does not become idle between visits: {load}, and rates \
                     may be lower than on an idle device"
                ),
            ));
        }
        Ok(!self.interrupt.stops())
    }

    /// The pause before a visit; false if the user wants to stop.
    fn settle(&mut self, pause: Nanos) -> bool {
        const STEP: Nanos = Nanos::millis(50);
        let passed = pause > Nanos::ZERO && self.rig.passes(pause);
        let mut left = if passed { Nanos::ZERO } else { pause };
        while left > Nanos::ZERO && !self.interrupt.stops() {
            let step = left.min(STEP);
            std::thread::sleep(step.as_std());
            left = left.saturating_sub(step);
        }
        !self.interrupt.stops()
    }
}

/// What is seen of the world while the device is waited for.
struct Look<'a> {
    rig: &'a dyn Rig,
    watcher: &'a mut dyn Watcher,
    interrupt: &'a Interrupt,
}

impl World for Look<'_> {
    fn levels(&mut self) -> Option<Vec<Level>> {
        self.rig.levels()
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
