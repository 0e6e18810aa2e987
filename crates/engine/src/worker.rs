//! One worker of a drive: its requests, and where it is with them.

use device::Op;
use meter::{Meter, Pace, WorkerId};
use suite::model::Stream;
use units::Instant;

use crate::Visit;
use crate::drive::DriveError;
use crate::group::GroupCommit;
use crate::result::{Failure, Hanging, WorkerResult, id, load};
use crate::shared::{Shared, StreamShared};
use crate::source::{Next, Source, operations};
use crate::verify::Mismatch;

#[derive(Debug)]
pub(crate) struct Worker<'a> {
    pub meter: Meter<'a>,
    pub stream: &'a StreamShared,
    pub source: Source,
    /// Its requests are for the commits of sessions.
    pub group: Option<GroupCommit>,
    /// Every completion is followed by the next request at once: neither paced nor verified nor
    /// ending.
    pub flows: bool,
    closed: bool,
    /// Requests may have to wait although a slot is free for them: see [`Self::not_before`].
    pub waits: bool,
    /// Nothing is issued before.
    held_until: Instant,
    pub free: Vec<u32>,
    pub depth: u32,
    pub first_slot: u32,
    pub first_failure: Option<Failure>,
    pub mismatches: Vec<Mismatch>,
    pub mismatches_dropped: u64,
    pub hanging: Vec<Hanging>,
    pub left: bool,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        visit: &Visit,
        stream: &Stream,
        worker: WorkerId,
        first_slot: u32,
        shared: &'a Shared,
    ) -> Result<Self, DriveError> {
        let ops: Vec<_> = operations(stream).into_iter().map(id).collect();
        let mut source = Source::new(visit, worker)?;
        let before: u32 = visit.streams[..worker.stream as usize].iter().map(|s| s.threads).sum();
        let pulse = &shared.pulses()[(before + worker.worker) as usize];
        let meter = Meter::new(&load(stream), worker, &ops, source.pauses(), pulse);
        let waits = source.pauses() || meter.rests();
        let closed = matches!(meter.pace, Pace::Closed) && !waits;
        if !closed {
            source.flushes_follow();
        }
        let group = GroupCommit::of(stream);
        let flows = closed && visit.verify.is_none() && !source.has_pairs() && group.is_none();
        Ok(Self {
            meter,
            stream: &shared.streams[worker.stream as usize],
            source,
            group,
            flows: false,
            closed: flows,
            waits,
            held_until: Instant::ZERO,
            free: (first_slot..first_slot + stream.requests_max()).collect(),
            depth: stream.requests_max(),
            first_slot,
            first_failure: None,
            mismatches: Vec::new(),
            mismatches_dropped: 0,
            hanging: Vec::new(),
            left: false,
        })
    }

    /// Its slots among the drive's.
    pub(crate) fn slots(&self) -> std::ops::Range<usize> {
        self.first_slot as usize..(self.first_slot + self.depth) as usize
    }

    /// Plan times become clock times.
    pub(crate) fn begin(&mut self, begin: Instant) {
        self.flows = self.closed;
        self.meter.begin(begin);
    }

    /// From here on it counts.
    ///
    /// * `requests`, `bytes`: in flight; they will be counted, so the budgets pay for them.
    pub(crate) fn measure<O: meter::Observer>(
        &mut self,
        requests: u64,
        bytes: u64,
        observer: &mut O,
    ) {
        self.source.count_from_here(self.stream, requests, bytes);
        self.meter.measure(observer);
    }

    /// When the next request may be issued, if not at `now`.
    pub(crate) fn not_before(&mut self, now: Instant) -> Option<Instant> {
        if !self.waits {
            return None;
        }
        if let Some(until) = self.meter.rests_until(now) {
            return Some(until);
        }
        if now >= self.held_until
            && let Some(pause) = self.source.pause(self.stream)
        {
            self.held_until = now + pause;
        }
        (now < self.held_until).then_some(self.held_until)
    }

    /// The next request of a slot; `None` when the budget is used up.
    ///
    /// * `start`: when it is due, at most `now`.
    pub(crate) fn next(&mut self, start: Instant, now: Instant) -> Option<Next> {
        if self.group.is_some() && matches!(self.meter.pace, Pace::Open { .. }) {
            let mut due = Some(start);
            while let Some((group, start)) = self.group.as_mut().zip(due) {
                group.join(start);
                due = if group.has_room() {
                    self.meter.take_arrival(now, self.source.random())
                } else {
                    None
                };
            }
        }
        match &mut self.group {
            Some(group) => group.lead(now, &mut self.source, self.stream),
            None => self.source.next(self.stream),
        }
    }

    /// The commits that were led are over.
    ///
    /// * `durable`: they succeeded.
    pub(crate) fn end_commits(&mut self, durable: bool, now: Instant) {
        let counts = self.meter.counts();
        let Some(group) = &mut self.group else { return };
        for &start in group.led().iter().filter(|_| durable && counts) {
            self.meter.success_or_late(id(Op::Commit), group.length, start, now, 0);
        }
        group.end();
    }

    /// Issues no more.
    pub(crate) fn stop(&mut self, at: Instant) {
        self.meter.stop(at);
        self.flows &= self.meter.plays();
    }

    /// When the next arrival is planned, of a worker that has a slot for it.
    pub(crate) fn next_due(&self) -> Instant {
        if self.free.is_empty() { Instant::MAX } else { self.meter.next_due() }
    }

    /// A slot for the next arrival, and when that was planned, if it is due and there is one.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(u32, Instant)> {
        if self.next_due() > now {
            return None;
        }
        let planned = self.meter.take_arrival(now, self.source.random())?;
        self.free.pop().map(|slot| (slot, planned))
    }

    /// All requests of its stream have come back, and it is the one to flush what they wrote.
    pub(crate) fn begin_end_syncs(&mut self, timed: bool, now: Instant) {
        self.meter.begin_closing(timed, now);
        self.source.begin_end_syncs();
    }

    pub(crate) fn finish<O: meter::Observer>(&mut self, observer: &mut O) {
        self.meter.finish(!self.hanging.is_empty(), observer);
    }

    pub(crate) fn result(self) -> WorkerResult {
        let mut metered = self.meter.result();
        metered.left = self.left;
        WorkerResult {
            metered,
            hanging: self.hanging,
            first_failure: self.first_failure,
            mismatches: self.mismatches,
            mismatches_dropped: self.mismatches_dropped,
        }
    }
}
