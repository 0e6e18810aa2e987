//! How long it will still take.

use std::time::Instant;

use units::Nanos;

/// From what visits planned and what they really took. The plan's time and the wall's are not
/// the same where fills, flushes and settling come between, or where the clock is virtual.
#[derive(Debug, Default)]
pub struct TimeLeft {
    begun: Option<Instant>,
    /// Least time of all visits of this session, by plan.
    least: Nanos,
    visits: u32,
    made_before: u32,
    made: u32,
    /// By plan.
    spent: Nanos,
    visit: Option<Nanos>,
}

impl TimeLeft {
    pub fn begin(&mut self, visits: u32, done: usize, least: Nanos) {
        let made_before = u32::try_from(done).unwrap_or(u32::MAX);
        *self = Self { begun: Some(Instant::now()), least, visits, made_before, ..Self::default() };
    }

    pub const fn visit_begins(&mut self, planned: Option<Nanos>) {
        self.visit = planned;
    }

    pub fn visit_ends(&mut self) {
        self.made = self.made.saturating_add(1);
        self.spent += self.visit.take().unwrap_or(Nanos::ZERO);
    }

    /// Number of the visit under way, from 1.
    pub fn visit(&self) -> u32 {
        self.made_before.saturating_add(self.made).saturating_add(1).min(self.visits.max(1))
    }

    /// Visits of the run.
    pub const fn visits(&self) -> u32 {
        self.visits
    }

    /// `None` before anything can be told.
    ///
    /// * `elapsed`: of the visit under way.
    pub fn left(&self, elapsed: Nanos) -> Option<Nanos> {
        let wall = Nanos::from_secs_f64(self.begun?.elapsed().as_secs_f64());
        self.left_after(elapsed, wall)
    }

    fn left_after(&self, elapsed: Nanos, wall: Nanos) -> Option<Nanos> {
        if self.least == Nanos::ZERO {
            let to_make = self.visits.saturating_sub(self.made_before).saturating_sub(self.made);
            let each = wall.as_secs_f64() / f64::from(self.made);
            return (self.made > 0).then(|| Nanos::from_secs_f64(each * f64::from(to_make)));
        }
        let current = self.visit.map_or(Nanos::ZERO, |planned| planned.min(elapsed));
        let spent = self.spent + current;
        let remaining = self.least.saturating_sub(spent).as_secs_f64();
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

    fn after(visits_made: u32) -> TimeLeft {
        let mut time = TimeLeft::default();
        time.begin(10, 0, Nanos::secs(100));
        for _ in 0..visits_made {
            time.visit_begins(Some(Nanos::secs(10)));
            time.visit_ends();
        }
        time.visit_begins(Some(Nanos::secs(10)));
        time
    }

    #[test]
    fn the_plan_is_believed_first_and_stretched_later() {
        assert_eq!(after(0).left_after(Nanos::secs(4), Nanos::secs(4)), Some(Nanos::secs(96)));
        // 45 s of plan took 90.
        assert_eq!(after(4).left_after(Nanos::secs(5), Nanos::secs(90)), Some(Nanos::secs(110)));
        assert_eq!(after(4).visit(), 5);
    }

    #[test]
    fn without_a_plan_visits_are_counted() {
        let mut time = TimeLeft::default();
        time.begin(10, 2, Nanos::ZERO);
        assert_eq!(time.left_after(Nanos::ZERO, Nanos::secs(3)), None);
        time.visit_begins(None);
        time.visit_ends();
        assert_eq!(time.left_after(Nanos::ZERO, Nanos::secs(3)), Some(Nanos::secs(21)));
    }
}
