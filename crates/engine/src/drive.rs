//! The loop itself.
//!
//! One time stamp is taken per reaped batch, right after the device handed it over: it ends
//! every request of the batch and starts those issued in their place. Two stamps a request
//! would cost more than all else in this loop together. The price is stated with every result:
//! a latency can be too long by the time the loop needs from the stamp to the next reap (when
//! what it queued reaches the device), of which the largest seen is kept
//! ([`record::WorkerRecord::stamp_error_ns_max`]); and requests of one batch cannot be told apart
//! in time, which is what the caller of such a batch sees too. At depth 1 a batch is one request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use device::{Completion, Device, DeviceError, FileIndex, Op, Request, Slot};
use meter::{INTERVAL, Observer, Pace, State, WorkerId};
use suite::model::{Stream, SyncAtEnd};
use units::{ByteOffset, Bytes, Instant, Nanos};

use crate::Visit;
use crate::payload::Payload;
use crate::result::{Failure, Hanging, Outcome, WorkerResult, id};
use crate::shared::Shared;
use crate::source::{Next, Owed, Second};
use crate::verify::Floors;
use crate::worker::Worker;

/// A request that is out for so long hangs, also where nobody waits for it any more.
const HANGS: Nanos = Nanos::secs(1);

/// When a drive gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long after the stop rule was met requests in flight are waited for. Never 0 in
    /// earnest: cutting requests off is how freezes vanish from results.
    pub hang: Nanos,
    /// Failed or short requests per worker that are counted and passed over; one more ends the
    /// visit.
    pub failures: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { hang: Nanos::secs(30), failures: 0 }
    }
}

/// Why a drive cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The space is smaller than a request.
    #[error("stream `{stream}`: its region of {region} is smaller than one block of {block_size}")]
    RegionTooSmall {
        /// The stream's name.
        stream: String,
        /// Its region's length.
        region: Bytes,
        /// Its block size.
        block_size: Bytes,
    },
    /// The slots' numbers ran out.
    #[error("{workers} workers need more than 2^32 requests in flight")]
    TooManySlots {
        /// How many workers.
        workers: usize,
    },
}

/// Plays some workers of a visit on one device.
#[derive(Debug)]
pub struct Drive<'a> {
    shared: &'a Shared,
    workers: Vec<Worker<'a>>,
    slots: Vec<SlotState>,
    done: Vec<Completion>,
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Any worker starts requests at times of its own.
    paced: bool,
    in_flight: usize,
    unfinished: usize,
    /// The next moment at which something beside requests is to be looked after.
    boundary: Instant,
    payload: Payload,
    /// Buffers are stamped before each write.
    stamps: bool,
    floors: Vec<Floors>,
    /// By slot, what follows on the request in flight; empty if nothing ever does.
    seconds: Vec<Option<Second>>,
    /// By slot, the flushes that follow on the request in flight; empty if none ever do.
    owed: Vec<Option<Owed>>,
    limits: Limits,
    batch_max: usize,
    stamp_error: Nanos,
    last_completion: Instant,
}

#[derive(Clone, Copy, Debug)]
struct SlotState {
    start: Instant,
    offset: u64,
    length: u32,
    /// Result of full success: the length, or 0 where no bytes are moved to or from us.
    expected: u32,
    worker: u32,
    file: u32,
    op: Op,
    busy: bool,
}

/// A list of mismatches longer than this helps nobody.
const MISMATCHES_MAX: usize = 16;
/// Without any completion for so many hang limits a visit that has no end is given up.
const SILENCE_FACTOR: u64 = 10;

impl<'a> Drive<'a> {
    /// Prepares everything that needs memory. `workers`: which of the visit's workers this drive
    /// plays; the device must have a slot for each request they can have in flight
    /// ([`Self::slots`]).
    pub fn new(
        visit: &Visit,
        workers: &[WorkerId],
        shared: &'a Shared,
        limits: Limits,
    ) -> Result<Self, DriveError> {
        let mut slots = Vec::new();
        let mut states = Vec::new();
        for (index, &id) in (0u32..).zip(workers) {
            let stream = &visit.streams[id.stream as usize];
            let first = u32::try_from(slots.len())
                .map_err(|_| DriveError::TooManySlots { workers: workers.len() })?;
            let own = SlotState {
                start: Instant::ZERO,
                offset: 0,
                length: 0,
                expected: 0,
                worker: index,
                file: 0,
                op: Op::Read,
                busy: false,
            };
            slots.extend(std::iter::repeat_n(own, stream.requests_max() as usize));
            states.push(Worker::new(visit, stream, id, first, shared)?);
        }
        let depth = slots.len();
        let payload = Payload::new(visit, workers.first().copied());
        let floors = match &visit.verify {
            Some(verifier) => vec![verifier.floors(longest(visit)); depth],
            None => Vec::new(),
        };
        let pairs = states.iter().any(|worker| worker.source.has_pairs());
        let seconds = if pairs { vec![None; depth] } else { Vec::new() };
        let owes = states.iter().any(|worker| worker.source.owes());
        let owed = if owes { vec![None; depth] } else { Vec::new() };
        Ok(Self {
            shared,
            paced: states.iter().any(|w| w.waits || !matches!(w.meter.pace, Pace::Closed)),
            unfinished: states.len(),
            workers: states,
            slots,
            done: Vec::with_capacity(depth.clamp(1, BATCH_MAX)),
            timers: BinaryHeap::with_capacity(depth),
            in_flight: 0,
            boundary: Instant::ZERO,
            stamps: payload.stamps(),
            payload,
            floors,
            seconds,
            owed,
            limits,
            batch_max: 0,
            stamp_error: Nanos::ZERO,
            last_completion: Instant::ZERO,
        })
    }

    /// How many slots the device needs.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Puts into the device's buffers what writes will write. Call once, before the clock runs.
    pub fn prepare<D: Device>(&self, device: &mut D) {
        for slot in 0..self.slots() {
            self.payload.fill(device.buffer(Slot(slot)), u64::from(slot));
        }
    }

    /// Plays until every worker is done. `begin` is the visit's start on the device's clock, the
    /// same for all drives.
    pub fn run<D: Device, O: Observer>(
        &mut self,
        device: &mut D,
        begin: Instant,
        observer: &mut O,
    ) -> Result<(), DeviceError> {
        self.last_completion = begin;
        self.start(begin, observer);
        // A thread that got its processor late must not charge the wait to its first requests.
        let now = device.now().max(begin);
        for worker in 0..self.workers.len() {
            self.issue_first(worker, now, device);
        }
        let mut sample = 0u32;
        while self.unfinished > 0 {
            let until = self.wake();
            self.done.clear();
            device.reap(1, until, &mut self.done)?;
            let now = device.now();
            if now >= self.boundary {
                self.look_after(now, device, observer);
            }
            self.take_batch(now, device, observer);
            if self.paced {
                self.issue_due(now, device);
            }
            // One extra clock read in 64 batches: a sample of the stamp's error, at no cost.
            sample = sample.wrapping_add(1);
            if sample.is_multiple_of(64) {
                self.stamp_error = self.stamp_error.max(device.now().since(now));
            }
        }
        Ok(())
    }

    /// Accounts for the requests that just came back and issues the next in their place.
    #[inline]
    fn take_batch<D: Device, O: Observer>(
        &mut self,
        now: Instant,
        device: &mut D,
        observer: &mut O,
    ) {
        let batch = self.done.len();
        if batch == 0 {
            return;
        }
        self.batch_max = self.batch_max.max(batch);
        self.last_completion = now;
        let alone = self.workers.len() == 1;
        if alone && self.workers[0].meter.counts() {
            self.workers[0].meter.recorder.mark(now);
        }
        for index in 0..batch {
            let completion = self.done[index];
            let slot = &mut self.slots[completion.slot.0 as usize];
            let worker = &mut self.workers[slot.worker as usize];
            let smooth = worker.flows && completion.result() == Ok(slot.expected);
            if !smooth {
                self.take_rough(completion, now, device, observer);
                continue;
            }
            // The one path that millions a second take: nothing in it but what each needs.
            if !alone {
                worker.meter.recorder.mark(now);
            }
            worker.meter.success(id(slot.op), slot.length, slot.start, now, slot.offset);
            let Some(next) = worker.source.next(worker.stream) else {
                slot.busy = false;
                worker.stop(now);
                worker.meter.in_flight -= 1;
                self.in_flight -= 1;
                let owner = slot.worker as usize;
                self.after_last(owner, now, device, observer);
                continue;
            };
            slot.take(next, now);
            if worker.depth == 1 {
                worker.meter.pulse.issued(now, next.offset.get(), id(next.op));
            }
            if self.stamps && next.op.stores() {
                let buffer = device.buffer(completion.slot);
                self.payload.stamp(buffer, next.length);
            }
            submit(device, next, completion.slot);
        }
    }

    /// A completion that is not just followed by the next request: failed, verified, of a paced
    /// worker, or of one that is ending.
    #[cold]
    fn take_rough<D: Device, O: Observer>(
        &mut self,
        completion: Completion,
        now: Instant,
        device: &mut D,
        observer: &mut O,
    ) {
        let slot = self.slots[completion.slot.0 as usize];
        if !slot.busy {
            // Given up before, and told of as hanging: counted nowhere else.
            return;
        }
        let owner = slot.worker as usize;
        let worker = &mut self.workers[owner];
        if worker.meter.counts() {
            worker.meter.recorder.mark(now);
        }
        if completion.result() != Ok(slot.expected) {
            // Told of whether it counts or not: a flush that failed after the measured part is
            // data that may be lost.
            self.fail(completion, slot);
        } else if worker.meter.counts() {
            let (op, length) = (id(slot.op), slot.length);
            worker.meter.success_or_late(op, length, slot.start, now, slot.offset);
        }
        let is_whole = completion.result() == Ok(slot.expected);
        let worker = &mut self.workers[owner];
        let group = worker.group.as_mut().filter(|_| is_whole);
        let follows = group.and_then(|group| group.follow(slot.op, FileIndex(slot.file)));
        // What is written and not flushed is still under way.
        if follows.is_none() {
            worker.meter.is_back(now);
        }
        if !self.floors.is_empty() {
            self.check(completion, slot, device);
        }
        self.in_flight -= 1;
        self.workers[owner].meter.in_flight -= 1;
        let second = self.seconds.get_mut(completion.slot.0 as usize).and_then(Option::take);
        if let Some(second) = second.filter(|_| is_whole) {
            // Begun is finished, whether or not anything new is begun.
            self.issue_second(completion.slot.0, second, now, device);
            return;
        }
        if let Some(next) = follows {
            self.issue(completion.slot.0, next, now, device);
            return;
        }
        self.workers[owner].end_commits(is_whole, now);
        self.release(completion.slot.0, now, device);
        self.after_last(owner, now, device, observer);
    }

    /// A request of the worker ended without another in its place.
    fn after_last<D: Device, O: Observer>(
        &mut self,
        owner: usize,
        now: Instant,
        device: &mut D,
        observer: &mut O,
    ) {
        let worker = &mut self.workers[owner];
        if worker.meter.in_flight == 0 {
            worker.meter.idle_since = now;
            worker.meter.pulse.idle();
            self.maybe_finish(owner, now, device, observer);
        }
    }

    /// The next request of the slot's worker, on that slot; none when its budget is used up.
    fn issue_next<D: Device>(&mut self, slot: u32, start: Instant, device: &mut D) {
        let worker = &mut self.workers[self.slots[slot as usize].worker as usize];
        if let Some(due) = worker.not_before(start) {
            self.timers.push(Reverse((due, slot)));
            return;
        }
        match worker.next(start, self.last_completion.max(start)) {
            Some(next) => {
                if let Some(second) = self.seconds.get_mut(slot as usize) {
                    *second = worker.source.take_second();
                    if let Some((file, offset)) = worker.source.take_aim() {
                        device.aim(Slot(slot), file, offset);
                    }
                }
                if let Some(owed) = self.owed.get_mut(slot as usize) {
                    *owed = worker.source.take_owed();
                }
                self.issue(slot, next, start, device);
            }
            None => {
                worker.stop(start);
                if worker.meter.in_flight == 0 {
                    // No completion will end it: look after it at the next turn, not in 100 ms.
                    self.boundary = Instant::ZERO;
                }
            }
        }
    }

    fn issue<D: Device>(&mut self, slot: u32, next: Next, start: Instant, device: &mut D) {
        let buffer =
            if self.stamps && next.op.stores() { device.buffer(Slot(slot)) } else { &mut [] };
        match self.floors.get_mut(slot as usize) {
            Some(floors) => self.payload.describe(floors, next, buffer),
            None => self.payload.stamp(buffer, next.length),
        }
        self.send(slot, next, start, device);
    }

    /// The write of a pair: its data is what the read left in the buffer. Under verification it
    /// must say where it lies, which a copy would not, so both are made anew.
    #[cold]
    fn issue_second<D: Device>(
        &mut self,
        slot: u32,
        second: Second,
        start: Instant,
        device: &mut D,
    ) {
        let buffer = device.buffer(Slot(slot));
        match (self.floors.get_mut(slot as usize), second.change) {
            (Some(floors), _) => self.payload.describe(floors, second.next, buffer),
            (None, Some(place)) => {
                if let Some(byte) = buffer.get_mut(place as usize) {
                    *byte = byte.wrapping_add(1);
                }
            }
            (None, None) => {}
        }
        self.send(slot, second.next, start, device);
    }

    fn send<D: Device>(&mut self, slot: u32, next: Next, start: Instant, device: &mut D) {
        let state = &mut self.slots[slot as usize];
        state.take(next, start);
        let worker = &mut self.workers[state.worker as usize];
        if worker.depth == 1 {
            worker.meter.pulse.issued(start, next.offset.get(), id(next.op));
        }
        worker.meter.in_flight += 1;
        self.in_flight += 1;
        submit(device, next, Slot(slot));
    }

    /// A slot whose worker does not go on at once.
    #[cold]
    fn release<D: Device>(&mut self, slot: u32, now: Instant, device: &mut D) {
        let state = &mut self.slots[slot as usize];
        state.busy = false;
        let index = state.worker as usize;
        let worker = &mut self.workers[index];
        if let State::Closing { .. } = worker.meter.state() {
            worker.meter.closing_came_back(now);
            if let Some(next) = worker.source.next_end_sync() {
                self.issue(slot, next, now, device);
            }
            return;
        }
        let owed = self.owed.get_mut(slot as usize).and_then(Option::as_mut);
        if worker.meter.may_follow(now, self.shared)
            && let Some(next) = owed.and_then(Owed::take)
        {
            // Neither a turn of a burst nor an arrival: they are counts of what was asked for.
            self.issue(slot, next, now, device);
            return;
        }
        if !worker.meter.plays() {
            return;
        }
        if let Pace::Open { .. } = worker.meter.pace {
            worker.free.push(slot);
        } else if let Some(think) = worker.meter.pace.pause(slot - worker.first_slot) {
            self.timers.push(Reverse((now + think, slot)));
        } else {
            self.issue_next(slot, now, device);
        }
    }

    /// Starts what was planned for a time that has come.
    fn issue_due<D: Device>(&mut self, now: Instant, device: &mut D) {
        while let Some(&Reverse((due, slot))) = self.timers.peek() {
            if due > now {
                break;
            }
            self.timers.pop();
            let index = self.slots[slot as usize].worker as usize;
            if self.workers[index].meter.plays() {
                self.workers[index].meter.wakes(now);
                self.issue_next(slot, now, device);
            }
        }
        for index in 0..self.workers.len() {
            while let Some((slot, due)) = self.workers[index].take_due(now) {
                self.workers[index].meter.wakes(now);
                self.issue_next(slot, due, device);
            }
        }
    }

    /// When the device must hand control back even if nothing completes.
    #[inline]
    fn wake(&self) -> Instant {
        if !self.paced {
            return self.boundary;
        }
        let timer = self.timers.peek().map_or(Instant::MAX, |&Reverse((due, _))| due);
        let due = self.workers.iter().map(Worker::next_due).min().unwrap_or(Instant::MAX);
        self.boundary.min(timer).min(due)
    }

    fn start<O: Observer>(&mut self, begin: Instant, observer: &mut O) {
        for worker in &mut self.workers {
            worker.begin(begin);
            if worker.meter.ramp_is_over(begin) {
                worker.measure(0, 0, observer);
            }
        }
        self.boundary = self.next_boundary(begin);
    }

    fn issue_first<D: Device>(&mut self, index: usize, now: Instant, device: &mut D) {
        let paced_open = matches!(self.workers[index].meter.pace, Pace::Open { .. });
        let slots = std::mem::take(&mut self.workers[index].free);
        if paced_open {
            self.workers[index].free = slots;
            return;
        }
        for slot in slots {
            if !self.workers[index].meter.plays() {
                break;
            }
            self.issue_next(slot, now, device);
        }
    }

    /// Everything that is not a request: intervals, ramp and end, orders from outside, requests
    /// that hang.
    #[cold]
    fn look_after<D: Device, O: Observer>(
        &mut self,
        now: Instant,
        device: &mut D,
        observer: &mut O,
    ) {
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            if worker.meter.ramp_is_over(now) {
                let (requests, bytes) = self.slots[worker.slots()]
                    .iter()
                    .filter(|slot| slot.busy && !worker.source.is_policy_sync(slot.op, slot.length))
                    .fold((0, 0), |(n, bytes), slot| (n + 1, bytes + u64::from(slot.length)));
                worker.measure(requests, bytes, observer);
            }
            worker.meter.look(now, self.shared);
            if worker.meter.state() == State::Measuring && worker.source.used_up(worker.stream) {
                // A worker whose every slot is out learns of its last request only when one comes
                // back, and one that hangs does not.
                worker.meter.stop_used_up(now);
            }
            worker.flows &= worker.meter.plays();
            worker.meter.tell(now, self.shared);
            if worker.meter.in_flight == 0 {
                self.maybe_finish(index, now, device, observer);
            }
        }
        self.publish_oldest();
        self.give_up_on_hanging(now, observer);
        self.boundary = self.next_boundary(now);
    }

    fn next_boundary(&self, now: Instant) -> Instant {
        let next = self.workers.iter().map(|worker| worker.meter.boundary(now)).min();
        next.unwrap_or(now + INTERVAL)
    }

    /// Deeper than one, who is oldest is not known without looking.
    fn publish_oldest(&self) {
        for worker in self.workers.iter().filter(|worker| worker.depth > 1) {
            // Its own alone: a thousand workers would go over all of a million slots a thousand times.
            let busy = self.slots[worker.slots()].iter().filter(|slot| slot.busy);
            match busy.min_by_key(|slot| slot.start) {
                Some(oldest) => {
                    worker.meter.pulse.issued(oldest.start, oldest.offset, id(oldest.op));
                }
                None => worker.meter.pulse.idle(),
            }
        }
    }

    fn give_up_on_hanging<O: Observer>(&mut self, now: Instant, observer: &mut O) {
        let silent = Nanos::new(self.limits.hang.get().saturating_mul(SILENCE_FACTOR));
        // Silence is heard only while something is in flight: pauses may be as long as they like.
        let oldest = self.slots.iter().filter(|s| s.busy).map(|s| s.start).min();
        let given_up =
            oldest.is_some_and(|oldest| now.since(self.last_completion.max(oldest)) > silent);
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            let waited = worker.meter.waited(now);
            let hangs = worker.meter.in_flight > 0 && (waited > self.limits.hang || given_up);
            let is_over = worker.meter.state() == State::Done;
            if is_over || !(hangs || self.shared.abandoning()) {
                continue;
            }
            for slot in self.slots[worker.slots()].iter_mut().filter(|slot| slot.busy) {
                let SlotState { op, file, offset, start, .. } = *slot;
                let age = now.since(start);
                slot.busy = false;
                if hangs || age >= HANGS {
                    worker.hanging.push(Hanging { op, file, offset, age });
                } else {
                    // Who leaves at once did not wait for it: nobody knows whether it hangs.
                    worker.left = true;
                }
            }
            worker.meter.is_back(now);
            if !worker.hanging.is_empty() {
                worker.meter.hangs(now);
            }
            worker.finish(observer);
            self.in_flight -= worker.meter.in_flight as usize;
            worker.meter.in_flight = 0;
            self.unfinished -= 1;
        }
    }

    /// A worker with nothing in flight: done, or to flush first, or only idle.
    fn maybe_finish<D: Device, O: Observer>(
        &mut self,
        index: usize,
        now: Instant,
        device: &mut D,
        observer: &mut O,
    ) {
        let worker = &mut self.workers[index];
        match worker.meter.state() {
            State::Ramp | State::Measuring | State::Done => return,
            State::Closing { .. } => {}
            State::Draining => {
                if worker.source.ends_stream(worker.stream) {
                    worker.stream.end();
                }
                let last = worker.stream.last_to_finish();
                let at_end = worker.source.sync_at_end();
                if last && at_end != SyncAtEnd::No && !self.shared.stopping() {
                    worker.begin_end_syncs(at_end == SyncAtEnd::Timed, now);
                    if let Some(next) = worker.source.next_end_sync() {
                        let slot = worker.first_slot;
                        self.issue(slot, next, now, device);
                        return;
                    }
                }
            }
        }
        self.workers[index].finish(observer);
        self.unfinished -= 1;
    }

    #[cold]
    fn fail(&mut self, completion: Completion, slot: SlotState) {
        let outcome = match completion.result() {
            Ok(bytes) => Outcome::Short(bytes),
            Err(errno) => Outcome::Error(errno),
        };
        let SlotState { op, file, offset, length, .. } = slot;
        let worker = &mut self.workers[slot.worker as usize];
        worker.first_failure.get_or_insert(Failure { op, file, offset, length, outcome });
        worker.meter.recorder.failure(id(op), completion.result().err().map(|errno| errno.0));
        if worker.meter.recorder.failures() > self.limits.failures {
            worker.stop(self.last_completion);
            self.shared.stop();
            self.boundary = Instant::ZERO;
        }
    }

    /// Verification of what came back.
    #[cold]
    fn check<D: Device>(&mut self, completion: Completion, slot: SlotState, device: &mut D) {
        let index = completion.slot.0 as usize;
        let Some(floors) = self.floors.get_mut(index) else { return };
        let worker = &mut self.workers[slot.worker as usize];
        let whole = completion.result() == Ok(slot.expected);
        let file = FileIndex(slot.file);
        let offset = ByteOffset::new(slot.offset);
        let request = Next { op: slot.op, file, offset, length: slot.length };
        let (found, dropped) =
            self.payload.note_completion(floors, request, whole, device.buffer(completion.slot));
        let room = MISMATCHES_MAX.saturating_sub(worker.mismatches.len());
        worker.mismatches_dropped += dropped + found.len().saturating_sub(room) as u64;
        worker.mismatches.extend(found.into_iter().take(room));
    }

    /// What the workers measured.
    pub fn finish(self) -> Vec<WorkerResult> {
        let (batch_max, stamp_error) = (self.batch_max as u32, self.stamp_error);
        let limit = self.limits.failures;
        let result = |worker: Worker<'_>| {
            let gave_up = worker.meter.recorder.failures() > limit;
            let mut result = worker.result();
            result.metered.gave_up = gave_up;
            result.metered.batch_max = batch_max;
            result.metered.stamp_error = stamp_error;
            result
        };
        self.workers.into_iter().map(result).collect()
    }
}

impl SlotState {
    #[inline]
    fn take(&mut self, next: Next, start: Instant) {
        self.start = start;
        self.offset = next.offset.get();
        self.length = next.length;
        self.expected = if next.op.moves_data() { next.length } else { 0 };
        self.file = next.file.0;
        self.op = next.op;
        self.busy = true;
    }
}

#[inline]
fn submit<D: Device>(device: &mut D, next: Next, slot: Slot) {
    let Next { op, file, offset, length } = next;
    // The device has a slot for every request of ours, so it is never full.
    let queued = device.submit(Request { op, file, offset, length, slot });
    debug_assert!(queued.is_ok(), "a device with a slot for every request is full");
}

/// Completions taken with one time stamp at most: bounds the stamp's error at great depth.
const BATCH_MAX: usize = 32;

fn longest(visit: &Visit) -> Bytes {
    visit.streams.iter().map(Stream::block_size_max).max().unwrap_or(Bytes::ZERO)
}
