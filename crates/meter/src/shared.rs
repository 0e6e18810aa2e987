//! What the workers of a visit share: a few atomics, no lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use units::Instant;

use crate::op::{OP_BITS, OPS_MAX, OpId};

/// VisitShared by all workers of a visit. Created before, dropped after.
#[derive(Debug)]
pub struct VisitShared {
    pulses: Box<[Pulse]>,
    stop: AtomicBool,
    abandon: AtomicBool,
    /// When the stretched streams of the visit end: twice the moment in ns, plus one once it is
    /// decided that it is the last; 0 before anybody came to the first.
    end: AtomicU64,
    /// When the visit ends before its time, in ns; `u64::MAX` while nobody wants it.
    cut: AtomicU64,
}

/// What the workers of a stream share of its budgets.
#[derive(Debug, Default)]
pub struct Quota {
    operations: AtomicU64,
    bytes: AtomicU64,
}

/// What a worker last said of itself, for whoever watches: progress and what hangs.
///
/// Relaxed stores on the worker's side; the fields need not belong to one moment.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Pulse {
    /// By operation.
    done: [Counted; OPS_MAX],
    /// Of all that is done, the requests of the ramp.
    ramp: AtomicU64,
    oldest_start: AtomicU64,
    oldest_place_op: AtomicU64,
    finished: AtomicBool,
}

#[derive(Debug, Default)]
struct Counted {
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// What completed of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many requests.
    pub requests: u64,
    /// Bytes moved by them.
    pub bytes: u64,
}

/// By operation, in the order of their numbers.
pub(crate) type Tallies = [Tally; OPS_MAX];

/// The operation a worker has waited for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// When it was issued, on the device's clock.
    pub start: Instant,
    /// Where it goes, for example a byte offset in its file; 59 bits of it.
    pub place: u64,
    /// What it does.
    pub op: OpId,
}

impl VisitShared {
    /// For so many workers.
    pub fn new(workers: usize) -> Self {
        Self {
            pulses: (0..workers).map(|_| Pulse::default()).collect(),
            stop: AtomicBool::new(false),
            abandon: AtomicBool::new(false),
            end: AtomicU64::new(0),
            cut: AtomicU64::new(u64::MAX),
        }
    }

    /// The end that holds for all stretched workers of the visit after `end`, at which one of
    /// them has arrived; `None` if it was the last.
    ///
    /// The first to come decides by `next`, the others adopt: whatever each sees of the count,
    /// all stop at one moment.
    pub(crate) fn end_after(
        &self,
        end: Instant,
        next: impl Fn(u64) -> Option<Instant>,
    ) -> Option<Instant> {
        let moment = |ends: u64| Instant::new(ends >> 1);
        let mut ends = self.end.load(Ordering::Relaxed);
        loop {
            if moment(ends) > end {
                return Some(moment(ends));
            }
            if moment(ends) == end && ends & 1 == 1 {
                return None;
            }
            let measured = self.pulses.iter().map(Pulse::measured).fold(0, u64::saturating_add);
            let decided = next(measured).filter(|&next| next > end);
            let value = decided.map_or((end.get() << 1) | 1, |next| next.get() << 1);
            let swap = self.end.compare_exchange(ends, value, Ordering::Relaxed, Ordering::Relaxed);
            match swap {
                Ok(_) => return decided,
                Err(found) => ends = found,
            }
        }
    }

    /// Asks all workers to issue no more and finish what is in flight; seen within 100 ms.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Asks all workers to leave at once, whatever is in flight.
    pub fn abandon(&self) {
        self.stop();
        self.abandon.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked for that.
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the visit at this moment, all streams of it, unless an earlier one is set. Workers
    /// learn of it within 100 ms, so a moment further off is the end of all alike.
    pub(crate) fn cut_at(&self, end: Instant) {
        self.cut.fetch_min(end.get(), Ordering::Relaxed);
    }

    /// When the visit ends before its time; [`Instant::MAX`] if it does not.
    pub(crate) fn cut(&self) -> Instant {
        Instant::new(self.cut.load(Ordering::Relaxed))
    }

    /// Whether somebody asked for that.
    pub fn abandoning(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    /// One per worker: stream after stream, worker after worker.
    pub fn pulses(&self) -> &[Pulse] {
        &self.pulses
    }
}

impl Quota {
    /// Whether one more may be begun under a limit of `limit` operations.
    #[inline]
    pub fn take_operation(&self, limit: u64) -> bool {
        self.operations.fetch_add(1, Ordering::Relaxed) < limit
    }

    /// Charges `bytes`; gives what was charged before.
    #[inline]
    pub fn take_bytes(&self, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed)
    }

    /// Charges what was in flight when the budgets began to count.
    pub fn take_beforehand(&self, operations: u64, bytes: u64) {
        self.operations.fetch_add(operations, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Operations and bytes charged.
    pub fn taken(&self) -> (u64, u64) {
        let taken = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (taken(&self.operations), taken(&self.bytes))
    }
}

impl Pulse {
    /// This is what it has waited for longest.
    #[inline]
    pub fn issued(&self, start: Instant, place: u64, op: OpId) {
        self.oldest_start.store(start.get(), Ordering::Relaxed);
        self.oldest_place_op.store((place << OP_BITS) | op.index() as u64, Ordering::Relaxed);
    }

    /// It waits for nothing.
    pub fn idle(&self) {
        self.oldest_start.store(0, Ordering::Relaxed);
    }

    /// * `so_far`: the ramp included.
    pub(crate) fn progress(&self, so_far: &Tallies) {
        for (done, tally) in self.done.iter().zip(so_far) {
            done.requests.store(tally.requests, Ordering::Relaxed);
            done.bytes.store(tally.bytes, Ordering::Relaxed);
        }
    }

    /// The measured part begins: what completed so far is not of it.
    pub(crate) fn measure(&self, ramp: &Tallies) {
        self.progress(ramp);
        self.ramp.store(ramp.iter().map(|tally| tally.requests).sum(), Ordering::Relaxed);
    }

    /// Operations completed in the measured part; 0 before it.
    fn measured(&self) -> u64 {
        let ramp = self.ramp.load(Ordering::Relaxed);
        self.completed().saturating_sub(ramp)
    }

    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// Operations completed so far, the ramp's included; at most 100 ms old.
    pub fn completed(&self) -> u64 {
        self.done().map(|(_, tally)| tally.requests).sum()
    }

    /// The same by operation, with the bytes they moved.
    pub fn done(&self) -> impl Iterator<Item = (OpId, Tally)> + '_ {
        let tally = |done: &Counted| Tally {
            requests: done.requests.load(Ordering::Relaxed),
            bytes: done.bytes.load(Ordering::Relaxed),
        };
        (0u8..).map(OpId).zip(self.done.iter().map(tally))
    }

    /// Whether the worker has left its loop.
    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// The request waited for longest; `None` with nothing in flight. At depth 1 always fresh,
    /// deeper at most 100 ms old.
    pub fn oldest(&self) -> Option<Oldest> {
        let start = self.oldest_start.load(Ordering::Relaxed);
        let place_op = self.oldest_place_op.load(Ordering::Relaxed);
        let op = OpId((place_op & (OPS_MAX as u64 - 1)) as u8);
        let (start, place) = (Instant::new(start), place_op >> OP_BITS);
        (start != Instant::ZERO).then_some(Oldest { start, place, op })
    }
}
