//! What the workers of a visit share: a few atomics, no lock.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use device::Op;
use suite::model::Stream;
use units::Instant;

/// Shared by all drives of a visit. Created before, dropped after.
#[derive(Debug)]
pub struct Shared {
    pub(crate) streams: Box<[StreamShared]>,
    pulses: Box<[Pulse]>,
    stop: AtomicBool,
    abandon: AtomicBool,
    /// When the stretched streams of the visit end: twice the moment in ns, plus one once it is
    /// decided that it is the last; 0 before anybody came to the first.
    end: AtomicU64,
    /// When the visit ends before its time, in ns; `u64::MAX` while nobody wants it.
    cut: AtomicU64,
}

/// Shared by the workers of one stream. Padded to cache lines of its own: the cursor of one
/// stream must not slow the other's down.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct StreamShared {
    sequence: AtomicU64,
    tickets: AtomicU64,
    operations_taken: AtomicU64,
    bytes_taken: AtomicU64,
    since_sync: AtomicU64,
    dirty: AtomicBool,
    /// A worker finished its part and so ended the stream.
    ended: AtomicBool,
    unfinished: AtomicU32,
}

/// What a worker last said of itself, for whoever watches: progress and requests that hang.
///
/// Relaxed stores on the worker's side; the fields need not belong to one moment.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Pulse {
    /// By operation.
    done: [Done; Op::ALL.len()],
    /// Of all that is done, the requests of the ramp.
    ramp: AtomicU64,
    oldest_start: AtomicU64,
    oldest_offset_op: AtomicU64,
    finished: AtomicBool,
}

#[derive(Debug, Default)]
struct Done {
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
pub(crate) type Tallies = [Tally; Op::ALL.len()];

/// Of the word that says where the oldest request goes, those that say what it does. What is left
/// counts to 1 EiB.
const OP_BITS: u32 = 4;
const _: () = assert!(Op::ALL.len() <= 1 << OP_BITS);

/// The request a worker has waited for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// When it was issued, on the device's clock.
    pub start: Instant,
    /// Where it goes: byte offset in its file.
    pub offset: u64,
    /// What it does.
    pub op: Op,
}

impl Shared {
    /// For a visit to `streams`.
    pub fn new(streams: &[Stream]) -> Self {
        let workers: usize = streams.iter().map(|s| s.threads as usize).sum();
        Self {
            streams: streams.iter().map(StreamShared::new).collect(),
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

    pub(crate) fn stopping(&self) -> bool {
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

    pub(crate) fn abandoning(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    /// One per worker: stream after stream, worker after worker.
    pub fn pulses(&self) -> &[Pulse] {
        &self.pulses
    }
}

impl StreamShared {
    fn new(stream: &Stream) -> Self {
        Self {
            sequence: AtomicU64::new(0),
            tickets: AtomicU64::new(0),
            operations_taken: AtomicU64::new(0),
            bytes_taken: AtomicU64::new(0),
            since_sync: AtomicU64::new(0),
            dirty: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            unfinished: AtomicU32::new(stream.threads),
        }
    }

    /// The next `units` of the sequence all workers walk together: where they begin.
    #[inline]
    pub(crate) fn take_sequence(&self, units: u64) -> u64 {
        self.sequence.fetch_add(units, Ordering::Relaxed)
    }

    /// The number of the stream's next request, from 0.
    pub(crate) fn take_ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether one more request may be issued under a limit of `limit` requests.
    #[inline]
    pub(crate) fn take_operation(&self, limit: u64) -> bool {
        self.operations_taken.fetch_add(1, Ordering::Relaxed) < limit
    }

    /// Charges a request of `bytes`; gives what was charged before.
    #[inline]
    pub(crate) fn take_bytes(&self, bytes: u64) -> u64 {
        self.bytes_taken.fetch_add(bytes, Ordering::Relaxed)
    }

    /// Charges what was in flight when the budgets began to count.
    pub(crate) fn take_beforehand(&self, requests: u64, bytes: u64) {
        self.operations_taken.fetch_add(requests, Ordering::Relaxed);
        self.bytes_taken.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Requests and bytes charged to the budgets.
    pub(crate) fn taken(&self) -> (u64, u64) {
        let taken = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (taken(&self.operations_taken), taken(&self.bytes_taken))
    }

    /// Something was written that the stream's sync policy has to flush.
    pub(crate) fn note_write(&self) {
        self.dirty.store(true, Ordering::Relaxed);
    }

    /// Whether anything was, since the last time this was asked.
    pub(crate) fn take_dirty(&self) -> bool {
        self.dirty.swap(false, Ordering::Relaxed)
    }

    /// Counts a request towards the stream's sync policy; true for the `every`-th.
    pub(crate) fn due_for_sync(&self, every: u64) -> bool {
        (self.since_sync.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
    }

    /// No worker is to issue any more.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// A worker has nothing in flight and issues no more; true for the last one, whose
    /// writes and those of all others are then complete.
    pub(crate) fn last_to_finish(&self) -> bool {
        self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Pulse {
    #[inline]
    pub(crate) fn issued(&self, start: Instant, offset: u64, op: Op) {
        self.oldest_start.store(start.get(), Ordering::Relaxed);
        self.oldest_offset_op.store((offset << OP_BITS) | op as u64, Ordering::Relaxed);
    }

    pub(crate) fn idle(&self) {
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

    /// Requests completed in the measured part; 0 before it.
    fn measured(&self) -> u64 {
        let ramp = self.ramp.load(Ordering::Relaxed);
        self.completed().saturating_sub(ramp)
    }

    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// Requests completed so far, the ramp's included; at most 100 ms old.
    pub fn completed(&self) -> u64 {
        self.done().map(|(_, tally)| tally.requests).sum()
    }

    /// The same by operation, with the bytes they moved.
    pub fn done(&self) -> impl Iterator<Item = (Op, Tally)> + '_ {
        let tally = |done: &Done| Tally {
            requests: done.requests.load(Ordering::Relaxed),
            bytes: done.bytes.load(Ordering::Relaxed),
        };
        Op::ALL.into_iter().zip(self.done.iter().map(tally))
    }

    /// Whether the worker has left its loop.
    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// The request waited for longest; `None` with nothing in flight. At depth 1 always fresh,
    /// deeper at most 100 ms old.
    pub fn oldest(&self) -> Option<Oldest> {
        let start = self.oldest_start.load(Ordering::Relaxed);
        let offset_op = self.oldest_offset_op.load(Ordering::Relaxed);
        let op = *Op::ALL.get((offset_op & ((1 << OP_BITS) - 1)) as usize)?;
        let (start, offset) = (Instant::new(start), offset_op >> OP_BITS);
        (start != Instant::ZERO).then_some(Oldest { start, offset, op })
    }
}
