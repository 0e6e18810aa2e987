//! When visits began, ns since 1970: by the clock of the device where that is simulated.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use units::Nanos;

/// The clock of runs that take turns: no visit of any of them begins before the last one ended, and
/// one on a simulated device begins just then, whatever the host's clock says.
#[derive(Clone, Debug, Default)]
pub struct TurnClock {
    ended: Arc<AtomicI64>,
}

/// The clock by which the visits of a run are stamped.
#[derive(Debug)]
pub(crate) enum Clock {
    /// The run's alone: the time of a simulated device begins here.
    Own(i64),
    /// Of several runs.
    Turns(TurnClock),
}

impl Clock {
    /// When a visit that is over began.
    ///
    /// * `began`: by the host's clock.
    /// * `simulated`: what the device's own clock said at the start and says now, if it has one.
    pub(crate) fn began(&self, began: i64, simulated: Option<(Nanos, Option<Nanos>)>) -> i64 {
        match (self, simulated) {
            (Self::Own(epoch), Some((start, _))) => epoch.saturating_add(signed(start)),
            (Self::Own(_), None) => began,
            (Self::Turns(clock), _) => {
                let ended = clock.ended.load(Ordering::Relaxed);
                let (start, took) = match simulated {
                    Some((start, Some(end))) if ended > 0 => (ended, end.saturating_sub(start)),
                    Some((start, Some(end))) => (began, end.saturating_sub(start)),
                    _ => (began.max(ended), since(began)),
                };
                clock.ended.store(start.saturating_add(signed(took)), Ordering::Relaxed);
                start
            }
        }
    }
}

fn since(began: i64) -> Nanos {
    Nanos::new(u64::try_from(unix_now().saturating_sub(began)).unwrap_or(0))
}

/// The host's clock.
pub(crate) fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn signed(time: Nanos) -> i64 {
    i64::try_from(time.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_visits_that_take_turns_follow_each_other() {
        let clock = TurnClock::default();
        let seconds = Nanos::secs;
        let mut at = 0;
        let mut began = |simulated: Option<(u64, u64)>| {
            at = unix_now().max(at);
            let simulated = simulated.map(|(start, end)| (seconds(start), Some(seconds(end))));
            Clock::Turns(clock.clone()).began(at, simulated)
        };
        let first = began(Some((5, 7)));
        assert_eq!(began(Some((0, 3))), first + 2_000_000_000);
        assert_eq!(began(Some((7, 8))), first + 5_000_000_000);
        // One on the host's clock does not begin before.
        assert_eq!(began(None), first + 6_000_000_000);
    }
}
