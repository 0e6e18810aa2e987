//! How long it will still take.

use std::time::Instant;

use record::VisitRecord;
use runner::Left;
use units::Nanos;

/// From what the plan expects and what its expectations took so far. The plan's time and the
/// wall's are not the same where fills, flushes and storing come between, or where the clock is
/// virtual.
#[derive(Debug, Default)]
pub struct TimeLeft {
    begun: Option<Instant>,
    /// As the plan expects it after the last visit.
    left: Left,
    made_before: u32,
    made: u32,
    /// What the visits of this session took on the device's clock, waits included.
    spent: Nanos,
    visit: Option<Nanos>,
    later: Option<Later>,
}

/// What comes after a run that is a part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    pub time: Nanos,
    /// It may well take longer.
    pub is_least: bool,
}

impl TimeLeft {
    pub const fn before(&mut self, later: Option<Later>) {
        self.later = later;
    }

    /// What comes after the run.
    pub const fn later(&self) -> Option<Later> {
        self.later
    }

    pub fn begin(&mut self, done: usize, left: Left) {
        let made_before = u32::try_from(done).unwrap_or(u32::MAX);
        let later = self.later;
        *self = Self { begun: Some(Instant::now()), left, made_before, later, ..Self::default() };
    }

    pub const fn visit_begins(&mut self, planned: Option<Nanos>) {
        self.visit = planned;
    }

    pub fn visit_ends(&mut self, visit: &VisitRecord, left: Left) {
        let took = visit.waited_ns.saturating_add(visit.ramp_ns).saturating_add(visit.elapsed_ns);
        self.count(Nanos::new(took), left);
    }

    fn count(&mut self, took: Nanos, left: Left) {
        self.made = self.made.saturating_add(1);
        self.spent += took;
        self.left = left;
        self.visit = None;
    }

    /// Number of the visit under way, from 1.
    pub fn visit(&self) -> u32 {
        self.made_before.saturating_add(self.made).saturating_add(1)
    }

    /// Visits that the run is expected to have.
    pub fn visits(&self) -> u32 {
        let made = self.made_before.saturating_add(self.made);
        made.saturating_add(self.left.visits).max(self.visit())
    }

    /// `None` before anything can be told.
    ///
    /// * `elapsed`: of the visit under way.
    pub fn left(&self, elapsed: Nanos) -> Option<Nanos> {
        let wall = Nanos::from_secs_f64(self.begun?.elapsed().as_secs_f64());
        self.left_after(elapsed, wall)
    }

    fn left_after(&self, elapsed: Nanos, wall: Nanos) -> Option<Nanos> {
        if self.left.time == Nanos::ZERO {
            // Visits that end by bytes or requests, of cells that had none yet.
            let each = wall.as_secs_f64() / f64::from(self.made);
            let left = f64::from(self.left.visits);
            return (self.made > 0).then(|| Nanos::from_secs_f64(each * left));
        }
        let current = self.visit.map_or(Nanos::ZERO, |planned| planned.min(elapsed));
        let spent = self.spent + current;
        let remaining = self.left.time.saturating_sub(current).as_secs_f64();
        // One visit's detours say little about the next one's.
        let stretch = if self.made > 0 && spent > Nanos::ZERO {
            wall.as_secs_f64() / spent.as_secs_f64()
        } else {
            1.0
        };
        Some(Nanos::from_secs_f64(remaining * stretch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(visits: u32, seconds: u64) -> Left {
        Left { visits, visits_most: visits, time: Nanos::secs(seconds), ..Left::default() }
    }

    fn after(visits_made: u32) -> TimeLeft {
        let mut time = TimeLeft::default();
        time.begin(0, left(10, 100));
        for made in 1..=visits_made {
            time.visit_begins(Some(Nanos::secs(10)));
            time.count(Nanos::secs(10), left(10 - made, u64::from(10 - made) * 10));
        }
        time.visit_begins(Some(Nanos::secs(10)));
        time
    }

    #[test]
    fn the_plan_is_believed_first_and_stretched_later() {
        assert_eq!(after(0).left_after(Nanos::secs(4), Nanos::secs(4)), Some(Nanos::secs(96)));
        // 45 s of plan took 90.
        assert_eq!(after(4).left_after(Nanos::secs(5), Nanos::secs(90)), Some(Nanos::secs(110)));
        assert_eq!((after(4).visit(), after(4).visits()), (5, 10));
    }

    #[test]
    fn what_the_plan_learns_counts() {
        let mut time = after(4);
        // Cells are noisier than thought: more visits than the ten.
        time.count(Nanos::secs(10), left(20, 200));
        assert_eq!(time.left_after(Nanos::ZERO, Nanos::secs(50)), Some(Nanos::secs(200)));
        assert_eq!(time.visits(), 25);
    }

    #[test]
    fn without_a_plan_visits_are_counted() {
        let mut time = TimeLeft::default();
        time.begin(2, left(8, 0));
        assert_eq!(time.left_after(Nanos::ZERO, Nanos::secs(3)), None);
        time.visit_begins(None);
        time.count(Nanos::ZERO, left(7, 0));
        assert_eq!(time.left_after(Nanos::ZERO, Nanos::secs(3)), Some(Nanos::secs(21)));
    }
}
