//! Whether more is offered than the device can do.
//!
//! Under overload the queue grows as long as one looks, and latency says nothing but how long
//! that was. A freeze fills the queue too, but then nothing comes back; and what it left is
//! worked off. So overload is: a second behind, and falling further behind while requests do
//! come back.

use units::{Instant, Nanos};

/// Behind by less, a device may only have paused.
const BEHIND: Nanos = Nanos::secs(1);
/// How long it is watched.
const WINDOW: Nanos = Nanos::secs(2);
/// How much further behind it must be after that: 2 % too slow.
const GROWTH: Nanos = Nanos::millis(40);
/// Without a completion for so long it is frozen, not overloaded.
const SILENCE: Nanos = Nanos::millis(500);

/// Watches how far behind its plan a worker is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overload {
    /// When it was first seen behind, and by how much.
    since: Option<(Instant, Nanos)>,
    completed: u64,
    last_progress: Instant,
}

impl Overload {
    /// Looks once more; whether it is time to stop offering.
    ///
    /// * `behind`: how long ago the next request should have been issued.
    /// * `completed`: by the worker, so far.
    pub(crate) fn look(&mut self, now: Instant, behind: Nanos, completed: u64) -> bool {
        if completed != self.completed {
            (self.completed, self.last_progress) = (completed, now);
        }
        if behind <= BEHIND || now.since(self.last_progress) > SILENCE {
            self.since = None;
            return false;
        }
        let (start, before) = *self.since.get_or_insert((now, behind));
        if now.since(start) < WINDOW {
            return false;
        }
        self.since = Some((now, behind));
        behind.saturating_sub(before) >= GROWTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every 100 ms; `behind(ms)` and whether anything completed.
    fn overloaded(behind: impl Fn(u64) -> u64, moves: impl Fn(u64) -> bool) -> Option<u64> {
        let mut overload = Overload::default();
        let mut completed = 0;
        (0..200).map(|look| look * 100).find(|&ms| {
            completed += u64::from(moves(ms));
            overload.look(Instant::ZERO + Nanos::millis(ms), Nanos::millis(behind(ms)), completed)
        })
    }

    #[test]
    fn a_device_that_is_too_slow_is_overloaded() {
        let found = overloaded(|ms| ms / 5, |_| true).unwrap();
        assert!((7_000..7_500).contains(&found), "{found}");
        assert_eq!(overloaded(|ms| ms / 30, |_| true), None, "not a second behind yet");
    }

    #[test]
    fn a_freeze_is_no_overload() {
        // Three seconds of nothing, then a tenth more than is offered.
        let behind = |ms: u64| match ms {
            ..2_000 => 0,
            2_000..5_000 => ms - 2_000,
            _ => 3_000u64.saturating_sub((ms - 5_000) / 10),
        };
        assert_eq!(overloaded(behind, |ms| !(2_000..5_000).contains(&ms)), None);
    }
}
