//! When visits began, ns since 1970: by the clock of the device where that is simulated.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use units::Nanos;

/// The clock of runs that take turns: the host's, ahead of it by what simulated visits of any of
/// them took beyond the time in which they were played. So no visit begins before the last one ended.
#[derive(Clone, Debug, Default)]
pub struct TurnClock {
    ahead_ns: Arc<AtomicI64>,
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
                let ahead = clock.ahead_ns.load(Ordering::Relaxed);
                if let Some((start, Some(end))) = simulated {
                    let played = unix_now().saturating_sub(began);
                    let more = signed(end).saturating_sub(signed(start)).saturating_sub(played);
                    clock.ahead_ns.store(ahead.saturating_add(more.max(0)), Ordering::Relaxed);
                }
                began.saturating_add(ahead)
            }
        }
    }
}

/// The host's clock.
pub(crate) fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn signed(time: Nanos) -> i64 {
    i64::try_from(time.get()).unwrap_or(i64::MAX)
}
