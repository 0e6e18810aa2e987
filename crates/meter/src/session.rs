//! The loop of a session: one operation at a time, each waited for.

use record::Warning;
use stats::Random;
use suite::model::Stop;
use units::{Instant, Nanos};

use crate::op::OpId;
use crate::pace::Pace;
use crate::result::WorkerResult;
use crate::shared::{Quota, VisitShared};
use crate::worker::{Meter, Observer, State};

/// What a session does, on a clock of its own.
pub trait SessionWork {
    /// What time it is.
    fn now(&mut self) -> Instant;
    /// Waits until then.
    fn wait_until(&mut self, until: Instant);
    /// What the next operation is.
    fn next(&mut self) -> OpId;
    /// Plays it.
    fn play(&mut self, op: OpId) -> Done;
}

/// An operation that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It did what it was asked.
    Whole {
        /// Bytes moved by it.
        bytes: u32,
    },
    /// It failed.
    Failed {
        /// Number of the error, for counting.
        error: i32,
        /// What happened, for the first of them.
        text: String,
    },
}

/// What a session is to do, and with whom.
#[derive(Clone, Copy, Debug)]
pub struct Orders<'a> {
    /// When its stream ends; the meter has the times of it.
    pub stop: &'a Stop,
    /// With all workers of the visit.
    pub shared: &'a VisitShared,
    /// With those of its stream.
    pub quota: &'a Quota,
    /// When the visit begins, the same for all.
    pub begin: Instant,
    /// Failures that are counted and passed over; one more ends the visit.
    pub failures: u64,
    /// Of random arrivals.
    pub seed: u64,
}

/// Plays a session until its load is over, and gives what it measured.
pub fn play<S: SessionWork, O: Observer>(
    mut meter: Meter<'_>,
    orders: &Orders<'_>,
    session: &mut S,
    observer: &mut O,
) -> WorkerResult {
    let Orders { stop, shared, quota, begin, failures, seed } = *orders;
    let mut random = Random::new(seed);
    let mut troubles = Vec::new();
    let mut held_until = begin;
    let mut boundary = begin;
    meter.begin(begin);
    loop {
        let now = session.now();
        if now >= boundary {
            boundary = look_after(&mut meter, now, shared, quota, observer);
        }
        if !meter.plays() {
            break;
        }
        let from = meter.rests_until(now).unwrap_or(now).max(held_until);
        let due = match meter.pace {
            Pace::Open { .. } => from.max(meter.next_due()),
            Pace::Closed | Pace::Think { .. } => from,
        };
        if due > now {
            session.wait_until(due.min(boundary));
            continue;
        }
        let Some(start) = begins(&mut meter, now, &mut random) else { continue };
        let counted = stop.operations.filter(|_| meter.state() == State::Measuring);
        if counted.is_some_and(|most| !quota.take_operation(most)) {
            meter.stop_used_up(now);
            break;
        }
        meter.wakes(now);
        meter.in_flight = 1;
        let op = session.next();
        meter.pulse.issued(start, 0, op);
        let done = session.play(op);
        let now = session.now();
        if now >= boundary {
            boundary = look_after(&mut meter, now, shared, quota, observer);
        }
        meter.recorder.mark(now);
        match done {
            Done::Whole { bytes } => meter.success_or_late(op, bytes, start, now, 0),
            Done::Failed { error, text } => {
                meter.recorder.failure(op, Some(error));
                if troubles.is_empty() {
                    troubles.push(Warning::new("failed", text));
                }
                if meter.recorder.failures() > failures {
                    meter.stop(now);
                    shared.stop();
                }
            }
        }
        meter.is_back(now);
        meter.in_flight = 0;
        meter.idle_since = now;
        meter.pulse.idle();
        held_until = now + meter.pace.pause(0).unwrap_or(Nanos::ZERO);
    }
    let gave_up = meter.recorder.failures() > failures;
    meter.finish(false, observer);
    WorkerResult { troubles, gave_up, ..meter.result() }
}

/// When the operation that is begun at `now` was planned; `None` if the visit ends first.
fn begins(meter: &mut Meter<'_>, now: Instant, random: &mut Random) -> Option<Instant> {
    match meter.pace {
        Pace::Open { .. } => meter.take_arrival(now, random),
        Pace::Closed | Pace::Think { .. } => Some(now),
    }
}

/// Everything that is not an operation; when that is to be done next.
fn look_after<O: Observer>(
    meter: &mut Meter<'_>,
    now: Instant,
    shared: &VisitShared,
    quota: &Quota,
    observer: &mut O,
) -> Instant {
    if meter.ramp_is_over(now) {
        // What is in flight will be counted, so the budget pays for it.
        quota.take_beforehand(u64::from(meter.in_flight), 0);
        meter.measure(observer);
    }
    meter.look(now, shared);
    meter.tell(now, shared);
    meter.boundary(now)
}
