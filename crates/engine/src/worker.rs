//! One worker of a drive: where it stands, when it may issue, when it ends.

use device::Op;
use suite::model::{Arrivals, Duty, Extend, Pacing, Stream};
use units::{Instant, Nanos};

use crate::Visit;

use crate::drive::{DriveError, Hanging, Observer, WorkerId};
use crate::group::GroupCommit;
use crate::overload::Overload;
use crate::recorder::{Ended, Finished, INTERVAL, Late, Recorder, WorkerResult};
use crate::shared::{Pulse, Shared, StreamShared};
use crate::source::{Next, Source, operations};
use crate::verify::Mismatch;

#[derive(Debug)]
pub(crate) struct Worker<'a> {
    pub id: WorkerId,
    pub stream: &'a StreamShared,
    pub source: Source,
    /// Its requests are for the commits of sessions.
    pub group: Option<GroupCommit>,
    pub recorder: Recorder,
    pub pulse: &'a Pulse,
    /// Every completion is followed by the next request at once: neither paced nor verified nor
    /// ending.
    pub flows: bool,
    pub closed: bool,
    pub pace: Pace,
    /// Requests may have to wait although a slot is free for them: see [`Self::not_before`].
    pub waits: bool,
    /// Nothing is issued before.
    pub held_until: Instant,
    /// It works and rests by turns...
    pub duty: Option<Duty>,
    /// ...from here on.
    pub origin: Instant,
    pub free: Vec<u32>,
    pub in_flight: u32,
    pub depth: u32,
    pub first_slot: u32,
    pub state: State,
    /// The ramp was over before the worker was.
    pub measured: bool,
    pub ramp_end: Instant,
    pub end: Instant,
    pub stretch: Option<Extend>,
    pub stopped_at: Instant,
    /// When time ended its load, if it did.
    pub ended_at: Option<Instant>,
    /// It could not have issued any more then: every slot was out...
    pub all_out: bool,
    /// ...until this one was back, or given up.
    pub first_back: Option<Instant>,
    pub idle_since: Instant,
    pub backlog: u64,
    pub overload: Overload,
    pub overloaded: bool,
    pub mismatches: Vec<Mismatch>,
    pub mismatches_dropped: u64,
    pub hanging: Vec<Hanging>,
    pub left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ramp,
    Measuring,
    /// Issues no more, waits for what is in flight.
    Draining,
    /// Flushes files one by one, counted or not.
    Syncing {
        timed: bool,
    },
    Done,
}

#[derive(Debug)]
pub(crate) enum Pace {
    /// The next as soon as one ends.
    Closed,
    /// A pause of a slot after so many requests of it.
    Think { think: Nanos, burst: u32, issued: Vec<u32>, first_slot: u32 },
    /// At planned times.
    Open { due: Instant, fraction: f64, gap_ns: f64, arrivals: Arrivals },
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        visit: &Visit,
        stream: &Stream,
        id: WorkerId,
        first_slot: u32,
        shared: &'a Shared,
    ) -> Result<Self, DriveError> {
        let ops = operations(stream);
        let expected = stream.stop.time_longest().map(|time| time + stream.stop.ramp);
        let pace = Pace::new(stream, id.worker, first_slot);
        let mut source = Source::new(visit, id)?;
        let duty = stream.duty.filter(|duty| duty.off > Nanos::ZERO);
        let waits = source.pauses() || duty.is_some();
        let closed = matches!(pace, Pace::Closed) && !waits;
        if !closed {
            source.flushes_follow();
        }
        let group = GroupCommit::of(stream);
        let flows = closed && visit.verify.is_none() && !source.has_pairs() && group.is_none();
        let before: u32 = visit.streams[..id.stream as usize].iter().map(|s| s.threads).sum();
        Ok(Self {
            id,
            stream: &shared.streams[id.stream as usize],
            source,
            group,
            flows: false,
            closed: flows,
            recorder: Recorder::new(&ops, expected, !closed),
            pulse: &shared.pulses()[(before + id.worker) as usize],
            pace,
            waits,
            held_until: Instant::ZERO,
            duty,
            origin: Instant::ZERO,
            free: (first_slot..first_slot + stream.requests_max()).collect(),
            in_flight: 0,
            depth: stream.requests_max(),
            first_slot,
            state: State::Ramp,
            measured: false,
            ramp_end: Instant::ZERO + stream.stop.ramp,
            end: stream.stop.time.map_or(Instant::MAX, |t| Instant::ZERO + t + stream.stop.ramp),
            stretch: stream.stop.extend,
            stopped_at: Instant::MAX,
            ended_at: None,
            all_out: false,
            first_back: None,
            idle_since: Instant::ZERO,
            backlog: 0,
            overload: Overload::default(),
            overloaded: false,
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

    /// Whether what completes now is part of the result.
    pub(crate) fn counts(&self) -> bool {
        self.state != State::Syncing { timed: false }
    }

    /// Plan times become clock times.
    pub(crate) fn begin(&mut self, begin: Instant) {
        self.flows = self.closed;
        let origin = begin.since(Instant::ZERO);
        self.ramp_end = self.ramp_end + origin;
        self.end = self.end + origin;
        self.idle_since = begin;
        self.origin = begin;
        self.recorder.begin = begin;
        if let Pace::Open { due, .. } = &mut self.pace {
            *due = *due + origin;
        }
    }

    /// From here on it counts.
    ///
    /// * `requests`, `bytes`: in flight; they will be counted, so the budgets pay for them.
    pub(crate) fn measure<O: Observer>(&mut self, requests: u64, bytes: u64, observer: &mut O) {
        self.recorder.begin(self.ramp_end);
        self.source.count_from_here(self.stream, requests, bytes);
        self.state = State::Measuring;
        self.measured = true;
        self.pulse.measure(&self.recorder.so_far());
        observer.measured_begins(self.id);
    }

    /// At its end: takes a later one if too little completed in the visit by now.
    ///
    /// The next end is when enough will have completed at the pace so far, and an eighth more, so
    /// that a visit is rarely stretched twice.
    pub(crate) fn stretch(&mut self, shared: &Shared) {
        let Some(Extend { operations, time_max }) = self.stretch else { return };
        self.pulse.progress(&self.recorder.so_far());
        let (begin, end) = (self.ramp_end, self.end);
        let next = |measured: u64| {
            if measured >= operations {
                return None;
            }
            let elapsed = end.since(begin).get() as f64;
            let wanted = elapsed * operations as f64 / measured.max(1) as f64 * 1.125;
            let wanted = Nanos::new(wanted as u64).max(end.since(begin) + INTERVAL);
            Some(begin + wanted.min(time_max))
        };
        if let Some(next) = shared.end_after(end, next) {
            self.end = next;
        }
    }

    /// When the next request may be issued, if not at `now`.
    pub(crate) fn not_before(&mut self, now: Instant) -> Option<Instant> {
        if !self.waits {
            return None;
        }
        if let Some(Duty { on, off }) = self.duty {
            let turn = on + off;
            let into = Nanos::new(now.since(self.origin).get() % turn.get().max(1));
            if into >= on {
                return Some(now + Nanos::new(turn.get() - into.get()));
            }
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
        if self.group.is_some() && matches!(self.pace, Pace::Open { .. }) {
            let mut due = Some(start);
            while let Some((group, start)) = self.group.as_mut().zip(due) {
                group.join(start);
                due = if group.has_room() { self.take_arrival(now) } else { None };
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
        let (counts, worker) = (self.counts(), self.id.worker);
        let late = !matches!(self.state, State::Ramp | State::Measuring);
        let Some(group) = &mut self.group else { return };
        for &start in group.led().iter().filter(|_| durable && counts) {
            let latency = now.since(start);
            if self.recorder.success(Op::Commit, group.length, latency) {
                self.recorder.slow(Op::Commit, now, latency, worker, 0);
            }
            if late {
                let late = Late { at: now, op: Op::Commit, bytes: group.length };
                self.recorder.late.push(late);
            }
        }
        group.end();
    }

    /// Issues no more.
    pub(crate) fn stop(&mut self, at: Instant) {
        if matches!(self.state, State::Ramp | State::Measuring) {
            self.state = State::Draining;
            self.flows = false;
            self.stopped_at = at;
            self.backlog = self.arrivals_left(at);
        }
    }

    /// Issues no more since its time is over.
    pub(crate) fn stop_by_time(&mut self, at: Instant) {
        self.ended_at = Some(at);
        self.all_out = self.in_flight == self.depth;
        self.stop(at);
    }

    /// Something of it came back, or was given up, after it had stopped.
    pub(crate) fn is_back(&mut self, now: Instant) {
        if self.ended_at.is_some() {
            self.first_back.get_or_insert(now);
        }
    }

    /// When its load ended, if by time.
    fn ended(&self) -> Option<Ended> {
        let at = self.ended_at?;
        let until = self.first_back.filter(|_| self.all_out).unwrap_or(at).max(at);
        Some(Ended { at, until })
    }

    /// All requests of its stream have come back, and it is the one to flush what they wrote.
    pub(crate) fn begin_end_syncs(&mut self, timed: bool, now: Instant) {
        // A paced worker may have had nothing in flight for a while.
        self.wakes(now);
        self.state = State::Syncing { timed };
        self.stopped_at = now;
        self.recorder.closing_sync = timed.then_some((now, now));
        self.source.begin_end_syncs();
    }

    /// One of the flushes at the end came back.
    pub(crate) fn end_sync_came_back(&mut self, now: Instant) {
        // Each flush may take as long as a request may, however many there are.
        self.stopped_at = now;
        if let Some((_, last)) = &mut self.recorder.closing_sync {
            *last = now;
        }
    }

    /// Ends the visit when what is due can no longer be caught up with: for all streams, since
    /// those that went on would be measured with less beside them than was asked for. It offers
    /// until then.
    pub(crate) fn cut_if_overloaded(&mut self, now: Instant, shared: &Shared) {
        let Pace::Open { due, .. } = self.pace else { return };
        if self.state == State::Measuring
            && !self.overloaded
            && self.overload.look(now, now.since(due), self.recorder.completed())
        {
            self.overloaded = true;
            shared.cut_at(now + INTERVAL + INTERVAL);
        }
    }

    /// Whether a flush that one of its requests made due may still follow: as long as requests
    /// do, and to the end where a number of them is the end.
    pub(crate) fn may_flush(&self, now: Instant, shared: &Shared) -> bool {
        match self.state {
            State::Ramp | State::Measuring => true,
            State::Draining => now < self.end && !shared.stopping(),
            State::Syncing { .. } | State::Done => false,
        }
    }

    /// Takes the visit's end for its own if that was cut.
    pub(crate) fn end_with(&mut self, shared: &Shared) {
        let cut = shared.cut();
        if cut < Instant::MAX {
            self.end = self.end.min(cut);
            self.stretch = None;
        }
    }

    pub(crate) fn finish<O: Observer>(&mut self, observer: &mut O) {
        observer.measured_ends(self.id);
        self.state = State::Done;
        self.pulse.progress(&self.recorder.so_far());
        if self.hanging.is_empty() {
            self.pulse.idle();
        }
        self.pulse.finish();
    }

    /// Something is issued after a time of idleness.
    pub(crate) fn wakes(&mut self, now: Instant) {
        if self.in_flight == 0 {
            self.recorder.idle(self.idle_since, now);
        }
    }

    pub(crate) fn next_due(&self) -> Instant {
        match &self.pace {
            Pace::Open { due, .. }
                if !self.free.is_empty()
                    && matches!(self.state, State::Ramp | State::Measuring) =>
            {
                *due
            }
            _ => Instant::MAX,
        }
    }

    /// A slot for the next arrival, and when that was planned, if it is due and there is one.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(u32, Instant)> {
        if self.next_due() > now {
            return None;
        }
        let planned = self.take_arrival(now)?;
        self.free.pop().map(|slot| (slot, planned))
    }

    /// When the next arrival was planned, if it is due.
    fn take_arrival(&mut self, now: Instant) -> Option<Instant> {
        let Pace::Open { due, .. } = self.pace else { return None };
        (due <= now && due < self.end).then(|| self.advance_arrival()).map(|()| due)
    }

    pub(crate) fn advance_arrival(&mut self) {
        let Pace::Open { due, fraction, gap_ns, arrivals } = &mut self.pace else { return };
        let gap = match arrivals {
            Arrivals::Fixed => *gap_ns,
            Arrivals::Poisson => *gap_ns * self.source.random().exponential(),
        };
        // Whole ns go to the clock, the rest is carried: the rate is exact in the long run.
        let exact = gap + *fraction;
        *due = *due + Nanos::new(exact as u64);
        *fraction = exact.fract();
    }

    /// Arrivals due before `at` that were not issued; of random ones, as many as there are on
    /// average. One due at the end itself is of the time after it.
    pub(crate) fn arrivals_left(&self, at: Instant) -> u64 {
        match &self.pace {
            Pace::Open { due, gap_ns, .. } if *due < at => {
                ((at.since(*due).get() - 1) as f64 / gap_ns) as u64 + 1
            }
            _ => 0,
        }
    }

    pub(crate) fn result(mut self, batch_max: u32, stamp_error: Nanos) -> WorkerResult {
        if !self.measured {
            // It never got past its ramp, of which nothing counts.
            self.recorder.begin(self.ramp_end);
        }
        let (begin, last) = (self.recorder.begin, self.recorder.last);
        let (ended, late) = (self.ended(), std::mem::take(&mut self.recorder.late));
        let (ramp_requests, first_failure) =
            (self.recorder.ramp_requests(), self.recorder.first_failure);
        let Finished { ops, bitmap, gaps, closing_sync } = self.recorder.finish();
        WorkerResult {
            id: self.id,
            ops,
            bitmap,
            begin,
            last,
            ended,
            late,
            ramp_requests,
            backlog: self.backlog,
            overloaded: self.overloaded,
            gaps,
            closing_sync,
            batch_max,
            stamp_error,
            hanging: self.hanging,
            left: self.left,
            first_failure,
            gave_up: false,
            mismatches: self.mismatches,
            mismatches_dropped: self.mismatches_dropped,
            cpu: None,
            switches: None,
        }
    }
}

impl Pace {
    pub(crate) fn new(stream: &Stream, worker: u32, first_slot: u32) -> Self {
        match stream.pacing {
            Pacing::Closed { think, .. } if think == Nanos::ZERO => Self::Closed,
            Pacing::Closed { think, burst } => Self::Think {
                think,
                burst: burst.max(1),
                issued: vec![0; stream.queue_depth as usize],
                first_slot,
            },
            Pacing::Open { rate, arrivals } => {
                let threads = f64::from(stream.threads);
                let gap_ns = threads * 1e9 / rate;
                // Fixed arrivals of different workers interleave evenly.
                let first = gap_ns * f64::from(worker) / threads;
                Self::Open {
                    due: Instant::new(first as u64),
                    fraction: first.fract(),
                    gap_ns,
                    arrivals,
                }
            }
        }
    }
}
