//! One worker: where it stands, when it may begin an operation, when its load ends.

use stats::Random;
use suite::model::{Duty, Extend};
use units::{Instant, Nanos};

use crate::op::{OpId, WorkerId};
use crate::overload::Overload;
use crate::pace::{Load, Pace};
use crate::recorder::{Finished, INTERVAL, Late, Recorder};
use crate::result::{Ended, WorkerResult};
use crate::shared::{Pulse, VisitShared};

/// Who wants to know when a worker's measured part begins and ends, on its own thread: to read
/// the thread's CPU time.
pub trait Observer {
    /// The ramp is over.
    fn measured_begins(&mut self, worker: WorkerId);
    /// The last counted operation came back, or was given up.
    fn measured_ends(&mut self, worker: WorkerId);
}

impl Observer for () {
    fn measured_begins(&mut self, _worker: WorkerId) {}
    fn measured_ends(&mut self, _worker: WorkerId) {}
}

/// Where a worker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It plays, and nothing counts yet.
    Ramp,
    /// It plays.
    Measuring,
    /// It begins no more and waits for what is in flight.
    Draining,
    /// It makes durable what its stream wrote, counted or not.
    Closing {
        /// Counted.
        timed: bool,
    },
    /// It is over.
    Done,
}

/// What a worker is measured by.
#[derive(Debug)]
pub struct Meter<'a> {
    /// Which worker.
    pub id: WorkerId,
    /// Its accounts.
    pub recorder: Recorder,
    /// What it says to whoever watches.
    pub pulse: &'a Pulse,
    /// When its operations begin.
    pub pace: Pace,
    /// How many are in flight.
    pub in_flight: u32,
    depth: u32,
    state: State,
    /// It works and rests by turns...
    duty: Option<Duty>,
    /// ...from here on.
    origin: Instant,
    /// The ramp was over before the worker was.
    measured: bool,
    ramp_end: Instant,
    end: Instant,
    stretch: Option<Extend>,
    stopped_at: Instant,
    /// When time ended its load, if it did.
    ended_at: Option<Instant>,
    /// It could not have begun any more then: everything was out...
    all_out: bool,
    /// ...until this one was back, or given up.
    first_back: Option<Instant>,
    /// Nothing is in flight since.
    pub idle_since: Instant,
    backlog: u64,
    overload: Overload,
    overloaded: bool,
}

impl<'a> Meter<'a> {
    /// For the worker `id` of a stream.
    ///
    /// * `ops`: what it can meet.
    /// * `pauses`: it may have nothing in flight for reasons that the load does not name.
    pub fn new(
        load: &Load<'_>,
        id: WorkerId,
        ops: &[OpId],
        pauses: bool,
        pulse: &'a Pulse,
    ) -> Self {
        let stop = load.stop;
        let duty = load.duty.filter(|duty| duty.off > Nanos::ZERO);
        let pace = Pace::new(load, id.worker, load.depth);
        let expected = stop.time_longest().map(|time| time + stop.ramp);
        let paced = pauses || duty.is_some() || !matches!(pace, Pace::Closed);
        Self {
            id,
            recorder: Recorder::new(ops, expected, paced),
            pulse,
            pace,
            in_flight: 0,
            depth: load.depth,
            state: State::Ramp,
            duty,
            origin: Instant::ZERO,
            measured: false,
            ramp_end: Instant::ZERO + stop.ramp,
            end: stop.time.map_or(Instant::MAX, |time| Instant::ZERO + time + stop.ramp),
            stretch: stop.extend,
            stopped_at: Instant::MAX,
            ended_at: None,
            all_out: false,
            first_back: None,
            idle_since: Instant::ZERO,
            backlog: 0,
            overload: Overload::default(),
            overloaded: false,
        }
    }

    /// Where it stands.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it may begin operations.
    #[inline]
    pub fn plays(&self) -> bool {
        matches!(self.state, State::Ramp | State::Measuring)
    }

    /// Whether what completes now is part of the result.
    #[inline]
    pub fn counts(&self) -> bool {
        self.state != State::Closing { timed: false }
    }

    /// Whether it rests by turns.
    pub fn rests(&self) -> bool {
        self.duty.is_some()
    }

    /// Plan times become clock times. What is measured from the first moment on is to be begun by
    /// [`Self::measure`] then.
    pub fn begin(&mut self, begin: Instant) {
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

    /// Whether its ramp is over by `now` and it does not measure yet.
    pub fn ramp_is_over(&self, now: Instant) -> bool {
        self.state == State::Ramp && now >= self.ramp_end
    }

    /// From here on it counts.
    pub fn measure<O: Observer>(&mut self, observer: &mut O) {
        self.recorder.begin(self.ramp_end);
        self.state = State::Measuring;
        self.measured = true;
        self.pulse.measure(&self.recorder.so_far());
        observer.measured_begins(self.id);
    }

    /// Looks after what is no operation: intervals, orders from outside, the end of its time.
    pub fn look(&mut self, now: Instant, shared: &VisitShared) {
        if self.state != State::Done && self.counts() {
            self.recorder.fold(now);
        }
        let orders = shared.stopping();
        let cut = shared.cut();
        if cut < Instant::MAX {
            self.end = self.end.min(cut);
            self.stretch = None;
        }
        if self.state == State::Measuring && now >= self.end && !orders {
            self.stretch(shared);
        }
        if self.plays() && (now >= self.end || orders) {
            let at = self.end.min(now);
            self.ended_at = Some(at);
            self.all_out = self.in_flight == self.depth;
            self.stop(at);
        }
    }

    /// Says how it stands, and ends the visit when what is due can no longer be caught up with:
    /// for all streams, since those that went on would be measured with less beside them than was
    /// asked for. It offers until then.
    pub fn tell(&mut self, now: Instant, shared: &VisitShared) {
        if let Pace::Open { due, .. } = self.pace
            && self.state == State::Measuring
            && !self.overloaded
            && self.overload.look(now, now.since(due), self.recorder.completed())
        {
            self.overloaded = true;
            shared.cut_at(now + INTERVAL + INTERVAL);
        }
        self.pulse.progress(&self.recorder.so_far());
    }

    /// When it is to be looked after next, whatever completes.
    pub fn boundary(&self, now: Instant) -> Instant {
        let begin = self.recorder.begin;
        let ticks = now.since(begin).get() / INTERVAL.get() + 1;
        let mut next = (now + INTERVAL).min(begin + Nanos::new(ticks * INTERVAL.get()));
        if self.state == State::Ramp {
            next = next.min(self.ramp_end);
        }
        if self.end > now {
            next = next.min(self.end);
        }
        next
    }

    /// At its end: takes a later one if too little completed in the visit by now.
    ///
    /// The next end is when enough will have completed at the pace so far, and an eighth more, so
    /// that a visit is rarely stretched twice.
    fn stretch(&mut self, shared: &VisitShared) {
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

    /// Until when it rests, if it does at `now`.
    pub fn rests_until(&self, now: Instant) -> Option<Instant> {
        let Duty { on, off } = self.duty?;
        let turn = on + off;
        let into = Nanos::new(now.since(self.origin).get() % turn.get().max(1));
        (into >= on).then(|| now + Nanos::new(turn.get() - into.get()))
    }

    /// When the next arrival is planned, of a worker that has such and plays.
    pub fn next_due(&self) -> Instant {
        match &self.pace {
            Pace::Open { due, .. } if self.plays() => *due,
            _ => Instant::MAX,
        }
    }

    /// Takes the next arrival, and says when it was planned, if that is due.
    pub fn take_arrival(&mut self, now: Instant, random: &mut Random) -> Option<Instant> {
        let Pace::Open { due, .. } = self.pace else { return None };
        (due <= now && due < self.end).then(|| self.pace.advance(random)).map(|()| due)
    }

    /// Something is begun after a time of idleness.
    pub fn wakes(&mut self, now: Instant) {
        if self.in_flight == 0 {
            self.recorder.idle(self.idle_since, now);
        }
    }

    /// Counts one that did all it was asked.
    #[inline]
    pub fn success(&mut self, op: OpId, bytes: u32, start: Instant, now: Instant, place: u64) {
        let latency = now.since(start);
        if self.recorder.success(op, bytes, latency) {
            self.recorder.slow(op, now, latency, self.id.worker, place);
        }
    }

    /// The same of one that may have completed after its worker had stopped.
    pub fn success_or_late(
        &mut self,
        op: OpId,
        bytes: u32,
        start: Instant,
        now: Instant,
        place: u64,
    ) {
        self.success(op, bytes, start, now, place);
        if !self.plays() {
            self.recorder.late.push(Late { at: now, op, bytes });
        }
    }

    /// Begins no more.
    pub fn stop(&mut self, at: Instant) {
        if self.plays() {
            self.state = State::Draining;
            self.stopped_at = at;
            self.backlog = self.pace.left(at);
        }
    }

    /// The same where the last operation that was wanted has been begun: nothing is left over.
    pub fn stop_used_up(&mut self, at: Instant) {
        self.stop(at);
        self.backlog = 0;
    }

    /// How long it has waited since it stopped; 0 while it plays.
    pub fn waited(&self, now: Instant) -> Nanos {
        match self.state {
            State::Draining | State::Closing { .. } => now.since(self.stopped_at),
            _ => Nanos::ZERO,
        }
    }

    /// Something of it came back, or was given up, after it had stopped.
    pub fn is_back(&mut self, now: Instant) {
        if self.ended_at.is_some() {
            self.first_back.get_or_insert(now);
        }
    }

    /// The time spent waiting for what never came back is part of what was measured.
    pub fn hangs(&mut self, now: Instant) {
        if self.counts() {
            self.recorder.last = now;
        }
    }

    /// When its load ended, if by time.
    fn ended(&self) -> Option<Ended> {
        let at = self.ended_at?;
        let until = self.first_back.filter(|_| self.all_out).unwrap_or(at).max(at);
        Some(Ended { at, until })
    }

    /// All operations of its stream have come back, and it is the one to make durable what they
    /// wrote.
    pub fn begin_closing(&mut self, timed: bool, now: Instant) {
        // A paced worker may have had nothing in flight for a while.
        self.wakes(now);
        self.state = State::Closing { timed };
        self.stopped_at = now;
        self.recorder.closing = timed.then_some((now, now));
    }

    /// A part of that came back.
    pub fn closing_came_back(&mut self, now: Instant) {
        // Each flush may take as long as a request may, however many there are.
        self.stopped_at = now;
        if let Some((_, last)) = &mut self.recorder.closing {
            *last = now;
        }
    }

    /// Whether something that an operation of its made due may still follow: as long as
    /// operations do, and to the end where a number of them is the end.
    pub fn may_follow(&self, now: Instant, shared: &VisitShared) -> bool {
        match self.state {
            State::Ramp | State::Measuring => true,
            State::Draining => now < self.end && !shared.stopping(),
            State::Closing { .. } | State::Done => false,
        }
    }

    /// It is over.
    ///
    /// * `hangs`: something never came back.
    pub fn finish<O: Observer>(&mut self, hangs: bool, observer: &mut O) {
        observer.measured_ends(self.id);
        self.state = State::Done;
        self.pulse.progress(&self.recorder.so_far());
        if !hangs {
            self.pulse.idle();
        }
        self.pulse.finish();
    }

    /// What it measured; the loop adds what it alone knows.
    pub fn result(mut self) -> WorkerResult {
        if !self.measured {
            // It never got past its ramp, of which nothing counts.
            self.recorder.begin(self.ramp_end);
        }
        let (begin, last) = (self.recorder.begin, self.recorder.last);
        let (ended, late) = (self.ended(), std::mem::take(&mut self.recorder.late));
        let ramp_requests = self.recorder.ramp_requests();
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
            batch_max: 1,
            stamp_error: Nanos::ZERO,
            hangs: false,
            left: false,
            troubles: Vec::new(),
            gave_up: false,
            cpu: None,
            switches: None,
        }
    }
}
