//! What the workers of a visit share beside what they are measured by: a few atomics, no lock.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use meter::Quota;
use suite::model::Stream;

/// Shared by all drives of a visit. Created before, dropped after.
#[derive(Debug)]
pub struct Shared {
    pub(crate) streams: Box<[StreamShared]>,
    meter: meter::VisitShared,
}

/// Shared by the workers of one stream. Padded to cache lines of its own: the cursor of one
/// stream must not slow the other's down.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct StreamShared {
    sequence: AtomicU64,
    tickets: AtomicU64,
    pub(crate) quota: Quota,
    since_sync: AtomicU64,
    dirty: AtomicBool,
    /// A worker finished its part and so ended the stream.
    ended: AtomicBool,
    unfinished: AtomicU32,
}

impl Shared {
    /// For a visit to `streams`.
    pub fn new(streams: &[Stream]) -> Self {
        let workers = streams.iter().map(|stream| stream.threads as usize).sum();
        let streams = streams.iter().map(StreamShared::new).collect();
        Self { streams, meter: meter::VisitShared::new(workers) }
    }

    /// What the workers of a stream have left to do.
    pub fn quota(&self, stream: u32) -> &Quota {
        &self.streams[stream as usize].quota
    }
}

impl std::ops::Deref for Shared {
    type Target = meter::VisitShared;

    fn deref(&self) -> &meter::VisitShared {
        &self.meter
    }
}

impl StreamShared {
    fn new(stream: &Stream) -> Self {
        Self {
            sequence: AtomicU64::new(0),
            tickets: AtomicU64::new(0),
            quota: Quota::default(),
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
