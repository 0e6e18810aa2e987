//! Event mode: an [`ArrayDesign`] request by request, with the parameters that [`Model`](crate::Model) solves for.
//!
//! A queue served in order of arrival needs no event: when a request leaves follows when it arrives from
//! when the one before leaves. So only these are events: a request is submitted, a leg goes on to
//! its drives, the drives have read what a write needs, something is destaged, a request is done.
//!
//! That holds where requests reach a queue in the order of time. Therefore a leg's processor and
//! link come directly one after the other, and what a controller only delays comes behind them: the order of
//! queues changes no rate.
//!
//! What is not as in [`Model`](crate::Model):
//!
//! * A full cache has a share of 1/1024 free at the beginning, so the first writes find room.
//! * A write-back cache joins what is written again before it was destaged, and what lies near
//!   together: of each member that is one request, of all these bytes.
//! * Sequences are seen by the drives alone: nothing is read ahead.
//! * What a write-back cache destages takes the processor's time, too.
//! * Reads of mirrors go where a sequence goes on, or to the disk that is free first.
//! * Of 0+1 one member is lost, not its half.

mod agenda;
mod drives;
mod flash;
mod legs;
mod lock;
mod page_map;
mod page_set;
mod placement;
mod read_cache;
mod rebuild;
mod station;
mod volume;
mod write_cache;

use units::{Bytes, Nanos};

use crate::design::{ArrayDesign, ArrayState};
use crate::load::Fill;
use crate::path::Component;
use agenda::{Agenda, Due};
use legs::{Legs, PortionEnd};
use lock::FileLocks;
use station::Station;

/// More requests in flight than any kernel queues for one device.
const SLOTS_MAX: u32 = 1 << 16;

/// More drives than anybody plays, and 256 MiB for their flash.
const DRIVES_MAX: u32 = 1024;

/// Requests in flight, times drives: more than any machine has.
const PORTIONS_MAX: u64 = 1 << 24;

/// What a request asks of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrayOp {
    /// Bytes from it.
    #[default]
    Read,
    /// Bytes to it.
    Write,
    /// An answer from a controller: what is in a cache is safe there.
    Flush,
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayRequest {
    /// What to do.
    pub op: ArrayOp,
    /// Byte of the array; past its end it begins again.
    pub offset: u64,
    /// Bytes; none of a flush.
    pub length: u32,
    /// Whose lock it takes; past the number of files it begins again.
    pub file: u32,
}

/// How a simulation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulationOptions {
    /// Of all random numbers.
    pub seed: u64,
    /// Most requests in flight.
    pub slots: u32,
    /// How many files have locks.
    pub files: u32,
    /// Of the controllers' write-back caches.
    pub cache: Fill,
    /// Pages of flash that are kept track of, of all drives together, 32768 or more of each: 8 bytes
    /// each.
    pub pages_max: u32,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self { seed: 1, slots: 256, files: 1, cache: Fill::Room, pages_max: 1 << 17 }
    }
}

/// Why a simulation cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A number that is not reckoned with.
    #[error("simulation: `{key}` is {seen}, wanted {wanted}")]
    Outside {
        /// Which option.
        key: &'static str,
        /// Its value.
        seen: u32,
        /// What it may be.
        wanted: &'static str,
    },
}

/// As many requests are in flight as there are slots for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all slots of the simulation are taken")]
pub struct SlotsTaken;

/// What a part of the array has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentUse {
    /// Which one.
    pub component: Component,
    /// Requests that it served; of the drives those of the controllers.
    pub requests: u64,
    /// Work of its busiest queue, the mean of equal servers, as far as it has been given out. Over
    /// the time: as [`PartAnswer::busy`](crate::PartAnswer::busy).
    pub busy: Nanos,
    /// Time that all requests that are done spent there: of a request that several legs serve, on the
    /// leg that was last. All parts together: the sum of the response times.
    pub time: Nanos,
    /// Bytes of what it served: of the drives theirs, parity and copies included.
    pub read: Bytes,
    /// The same, written.
    pub written: Bytes,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    request: ArrayRequest,
    token: u32,
    /// When it was asked for, had its lock, was submitted: ns.
    times: [u64; 3],
    /// Legs that are not done.
    left: u32,
    /// The leg that is done last.
    last: PortionEnd,
}

/// A design at work.
#[derive(Debug)]
pub struct Simulation {
    now: u64,
    agenda: Agenda,
    pending: Vec<Pending>,
    free: Vec<u32>,
    cores: Station,
    /// Threads that submit, each of them on a core.
    submitters: usize,
    locks: FileLocks,
    legs: Legs,
    leg_count: u32,
    /// Bytes on a leg before the next, and those of all legs.
    chunk: u64,
    capacity: u64,
    /// Bytes before the data of a leg.
    start: u64,
    /// Submission, and for each page: ns.
    submit: [u64; 2],
    /// Whether reads hold the lock while they are submitted, writes until they are done; flushes never.
    locked: [bool; 3],
    files: u32,
    /// ns by component.
    spent: [u64; Component::ALL.len()],
    /// Bytes of requests that are done, read and written.
    moved: [u64; 2],
}

impl Simulation {
    /// A design before its first request, at time 0. All memory is taken here.
    ///
    /// # Errors
    ///
    /// Options that are not reckoned with.
    pub fn new(design: &ArrayDesign, options: &SimulationOptions) -> Result<Self, SimulationError> {
        options.check(design)?;
        let host = &design.host.part;
        let striping =
            design.stripe.as_ref().map_or(0, |s| s.striping.part.submit_time.value.get());
        let lock = design.file_system.as_ref().map(|system| &system.part);
        let slots = options.slots;
        let legs = Legs::new(design, options);
        let mut agenda = Agenda::new(slots as usize + legs.portions() + 1);
        if design.state == ArrayState::Rebuilding {
            agenda.push(0, Due::Rebuild);
        }
        Ok(Self {
            now: 0,
            agenda,
            pending: vec![Pending::default(); slots as usize],
            free: (0..slots).rev().collect(),
            cores: Station::new(host.cores.value as usize),
            submitters: usize::MAX,
            locks: FileLocks::new(options.files, slots),
            legs,
            leg_count: design.legs(),
            chunk: design.stripe.as_ref().map_or(u64::MAX, |stripe| stripe.chunk.get()),
            capacity: design.capacity().get().max(1),
            start: design.start.get(),
            submit: [host.submit_time.value.get() + striping, host.submit_page_time.value.get()],
            locked: [
                lock.is_some_and(|lock| lock.reads_exclusive.value),
                lock.is_some_and(|lock| lock.writes_exclusive.value),
                false,
            ],
            files: options.files,
            spent: [0; Component::ALL.len()],
            moved: [0; 2],
        })
    }

    /// Present time, in ns.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// When the spare was filled, in ns; `None` before, and where there is none.
    pub fn rebuilt(&self) -> Option<u64> {
        let rebuild = self.legs.rebuild.as_ref().filter(|_| self.legs.lost.is_none());
        rebuild.and_then(|rebuild| rebuild.done())
    }

    /// How many threads submit from now on; more than there are cores, if nobody says.
    pub fn submit_by(&mut self, threads: u32) {
        self.submitters = threads.max(1) as usize;
    }

    /// Asks for something now.
    ///
    /// * `token`: comes back when it is done.
    ///
    /// # Errors
    ///
    /// As many requests are in flight as there are slots for.
    pub fn submit(&mut self, request: ArrayRequest, token: u32) -> Result<(), SlotsTaken> {
        let slot = self.free.pop().ok_or(SlotsTaken)?;
        let file = request.file % self.files;
        let request = ArrayRequest { file, ..request };
        let pending = &mut self.pending[slot as usize];
        *pending = Pending { request, token, times: [self.now; 3], ..*pending };
        if !self.locked[request.op as usize] || self.locks.take(file, slot, self.now) {
            self.begin(slot);
        }
        Ok(())
    }

    /// Lets time pass until the next request is done, or until `until`, in ns. Returns when it was
    /// done, which is the present time then, and its token.
    pub fn advance(&mut self, until: u64) -> Option<(u64, u32)> {
        while let Some((at, due)) = self.agenda.pop_until(until) {
            self.now = at;
            match due {
                Due::Submitted(slot) => self.spread(slot),
                Due::Portion(number) => self.legs.step(&mut self.agenda, number, at),
                Due::Rebuild => self.legs.rebuild(&mut self.agenda, at),
                Due::Done(slot) => return Some((at, self.finish(slot))),
            }
            self.join();
        }
        self.now = self.now.max(until);
        None
    }

    /// What each part has done, in the order of [`Component::ALL`].
    pub fn usage(&self) -> [ComponentUse; Component::ALL.len()] {
        let legs = &self.legs;
        let [up, down] = &legs.links;
        Component::ALL.map(|component| {
            let (requests, busy) = match component {
                Component::Host => (self.cores.visits(), self.cores.busy()),
                Component::FileLock => (self.locks.visits(), self.locks.busy()),
                Component::Link => (up.visits() + down.visits(), up.busy().max(down.busy())),
                Component::Controller => {
                    let busy = legs.processors.busy().max(legs.intakes.busy());
                    (legs.processors.visits(), busy)
                }
                Component::Drives => (legs.drives.visits(), legs.drives.busy()),
            };
            let time = Nanos::new(self.spent[component as usize]);
            let moved = if component == Component::Drives { legs.drives.moved } else { self.moved };
            let [read, written] = moved.map(Bytes::new);
            ComponentUse { component, requests, busy: Nanos::new(busy), time, read, written }
        })
    }

    /// A request that has its lock is submitted.
    fn begin(&mut self, slot: u32) {
        let pending = &mut self.pending[slot as usize];
        pending.times[1] = self.now;
        let pages = u64::from(pending.request.length).div_ceil(4096);
        let time = self.submit[0] + self.submit[1] * pages;
        let submitted = self.cores.serve_first(self.submitters, self.now, time);
        pending.times[2] = submitted;
        self.agenda.push(submitted, Due::Submitted(slot));
    }

    fn release(&mut self, file: u32) {
        if let Some(next) = self.locks.release(file, self.now) {
            self.begin(next);
        }
    }

    /// A request goes to its legs.
    fn spread(&mut self, slot: u32) {
        let ArrayRequest { op, offset, length, file } = self.pending[slot as usize].request;
        if op == ArrayOp::Read && self.locked[op as usize] {
            self.release(file);
        }
        if op == ArrayOp::Write {
            self.legs.writing += u64::from(length);
        }
        let start = offset % self.capacity;
        let end = start + u64::from(length);
        let (chunk, legs) = (self.chunk, u64::from(self.leg_count));
        let touched = end.div_ceil(chunk).max(start / chunk + 1) - start / chunk;
        let touched = touched.min(legs);
        let pending = &mut self.pending[slot as usize];
        pending.left = touched as u32;
        pending.last.at = 0;
        // Bytes of the first `at` bytes that are on a leg.
        let before = |leg: u64, at: u64| {
            if legs == 1 {
                return at;
            }
            let (row, within) = (at / (chunk * legs), at % (chunk * legs));
            row * chunk + within.saturating_sub(leg * chunk).min(chunk)
        };
        for leg in (start / chunk..).take(touched as usize).map(|at| at % legs) {
            let (from, to) = (before(leg, start), before(leg, end));
            let place = (self.start + from, to - from);
            self.legs.arrive(&mut self.agenda, (slot, leg as u32), op, place, self.now);
        }
    }

    /// Of what legs have done: requests that all of them are done with.
    fn join(&mut self) {
        for end in self.legs.ended.drain(..) {
            let pending = &mut self.pending[end.request as usize];
            pending.left -= 1;
            if end.at >= pending.last.at {
                pending.last = end;
            }
            if pending.left == 0 {
                self.agenda.push(pending.last.at, Due::Done(end.request));
            }
        }
    }

    /// A request is done; returns its token.
    fn finish(&mut self, slot: u32) -> u32 {
        let Pending { request, token, times: [asked, begun, submitted], last, .. } =
            self.pending[slot as usize];
        let parts = [
            (Component::FileLock, begun - asked),
            (Component::Host, submitted - begun),
            (Component::Link, last.link),
            (Component::Drives, last.drives),
            (Component::Controller, self.now - submitted - last.link - last.drives),
        ];
        for (component, time) in parts {
            self.spent[component as usize] += time;
        }
        self.moved[usize::from(request.op == ArrayOp::Write)] += u64::from(request.length);
        self.free.push(slot);
        if request.op == ArrayOp::Write {
            self.legs.writing -= u64::from(request.length);
            if self.locked[request.op as usize] {
                self.release(request.file);
            }
        }
        token
    }
}

impl SimulationOptions {
    fn check(&self, design: &ArrayDesign) -> Result<(), SimulationError> {
        let outside = |key, seen, wanted| Err(SimulationError::Outside { key, seen, wanted });
        if !(1..=SLOTS_MAX).contains(&self.slots) {
            return outside("slots", self.slots, "1 to 65536");
        }
        if self.files == 0 {
            return outside("files", self.files, "at least one");
        }
        if !(page_map::PAGES_MIN..=1 << 31).contains(&self.pages_max) {
            return outside("pages_max", self.pages_max, "32768 to 2^31");
        }
        if design.drives() > DRIVES_MAX {
            return outside("drives", design.drives(), "1024 at most");
        }
        if u64::from(self.slots) * u64::from(design.drives()) > PORTIONS_MAX {
            return outside("slots", self.slots, "times the drives 2^24 at most");
        }
        Ok(())
    }
}
