//! A storage stack on its own virtual clock.

mod law;
mod lru;
mod pace;
mod spec;
mod throttle;
mod wear;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::{Bytes, Instant, Nanos};

use self::law::{Cost, Costs, Path};
use self::lru::Lru;
use self::pace::Pace;
pub(crate) use self::spec::Check;
pub use self::spec::{
    BucketSpec, CacheSpec, Caps, CliffSpec, DriftSpec, FreezeSpec, Law, ModelError, ModelSpec,
    NoiseSpec, RandomFreezeSpec, RegimeSpec, STAGES_MAX, StageSpec, WhenFull, WriteCacheSpec,
};
use self::throttle::Throttle;
use self::wear::Wear;
use crate::rng::Rng;
use crate::{Completion, Device, DeviceError, Full, Op, Request, Slot};

/// One simulated device: a service law, stages with queues, noise, caches, freezes.
///
/// **Time** is its own and virtual: it passes only in [`Device::reap`], which jumps to the next
/// completion or to `until`. So a loop that only polls (`min` 0) stands still.
///
/// **Law.** A request of `b` bytes that makes `n` in flight takes `n / X(b, n)` with
/// `X = [A^-p + (W/b)^-p + (n / (t0 + b/w))^-p]^(-1/p)`, so a closed loop at depth `n` runs at
/// `X(b, n)`. Each stage adds its own `A` and `W` terms. Mixed loads run at the harmonic mean of
/// their parts. Nothing fails and nothing is refused: wrap it in [`crate::Faulty`] for that.
///
/// **Order of effects on a request**: cache looked up; time by the law; jitter; drift and cliff
/// by the bytes submitted before it, of which a trim takes its share back; heat; waking up. It does not
/// complete before all buckets let it pass, which are on the clock. Visit shift, AR noise, regimes and freezes change the speed
/// of the whole device, so also of what is in flight.
///
/// **The same** spec, seed and calls give the same completions, bit for bit, on one build.
///
/// It holds no data: [`Device::buffer`] is empty.
#[derive(Clone, Debug)]
pub struct Model {
    now: u64,
    pace: Pace,
    costs: Costs,
    jitter: Option<Jitter>,
    wear: Wear,
    cache: Option<Cache>,
    write_cache: Option<WriteCache>,
    sync_work: f64,
    /// Writes take as long as the flush that makes them durable, too.
    writes_through: bool,
    trim_work: f64,
    /// Earliest first; ties in the order of submission.
    pending: BinaryHeap<Reverse<Pending>>,
    /// Worked off, and not let pass by a bucket yet. Here `due` is a time on the clock.
    held: BinaryHeap<Reverse<Pending>>,
    throttle: Throttle,
    /// When the last request completed.
    last_done: u64,
    flights: Vec<Flight>,
    free: Vec<u32>,
    submitted: u64,
    counters: Counters,
    stages: Vec<StageCounters>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    /// Bits of the work at which it is done: not negative, so they sort as the number does.
    due: u64,
    sequence: u64,
    flight: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    request: Request,
    started: u64,
    start_work: f64,
    work: f64,
    /// Not before this time.
    release: u64,
    leaves: [f32; STAGES_MAX],
    passed: u8,
    active: bool,
}

/// Requests and bytes that completed, by operation, as the kernel's counters of the device
/// would show them. Bytes are those asked for, also of operations that move none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters([OpCounters; Op::ALL.len()]);

/// See [`Counters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounters {
    /// How many.
    pub requests: u64,
    /// How much.
    pub bytes: Bytes,
}

impl Counters {
    /// Those of one operation.
    pub const fn of(&self, op: Op) -> OpCounters {
        self.0[op as usize]
    }

    /// One more.
    pub fn add(&mut self, op: Op, length: u32) {
        let counters = &mut self.0[op as usize];
        counters.requests += 1;
        counters.bytes = more(counters.bytes, length);
    }
}

fn more(bytes: Bytes, length: u32) -> Bytes {
    Bytes::new(bytes.get() + u64::from(length))
}

/// What went through one stage. Differences of two readings give its rate, and by Little's law
/// its mean queue: `weighted_time` over the time between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageCounters {
    /// As in the spec.
    pub name: String,
    /// Requests that completed after passing it.
    pub requests: u64,
    /// Their bytes read.
    pub read: Bytes,
    /// Their bytes written, and those that a write cache drained into it.
    pub written: Bytes,
    /// Sum over requests of the time in this stage alone (not in those below it), also of those
    /// not completed yet. Summed over stages it is exactly the sum of all latencies. A request's
    /// time is split as its work is, so a freeze counts for all its stages in proportion.
    pub weighted_time: Nanos,
    /// Requests in it now.
    pub in_flight: u32,
}

#[derive(Clone, Debug)]
struct Jitter {
    rng: Rng,
    sd: f64,
}

impl Jitter {
    /// Lognormal, mean 1.
    #[inline]
    fn draw(&mut self) -> f64 {
        (self.sd * self.rng.normal() - self.sd * self.sd / 2.0).exp()
    }
}

#[derive(Clone, Debug)]
struct Cache {
    lru: Lru,
    chunk: u64,
    /// Chunks it has room for: what touches more passes it by.
    capacity: u64,
    writes: bool,
}

impl Cache {
    /// Brings in what the request touches; whether all of it was there.
    fn touch(&mut self, request: &Request) -> bool {
        let first = request.offset.get() / self.chunk;
        let last = request.offset.get().saturating_add(u64::from(request.length).max(1) - 1);
        let last = last / self.chunk;
        if last - first >= self.capacity {
            return false;
        }
        let mut hit = true;
        for chunk in first..=last {
            hit &= self.lru.touch(request.file, chunk);
        }
        hit
    }
}

#[derive(Clone, Debug)]
struct WriteCache {
    size: f64,
    /// Bytes a ns of work.
    drain: f64,
    when_full: WhenFull,
    /// Stage drained into.
    before: usize,
    dirty: f64,
    at_work: f64,
    drained: f64,
}

/// What a write cache does with a write.
enum Admission {
    /// Takes it after so much work.
    After(f64),
    /// Takes it when the device has stood still so long.
    Stall(Nanos),
    PassBy,
}

impl WriteCache {
    fn drain_until(&mut self, work: f64) {
        let out = ((work - self.at_work) * self.drain).min(self.dirty);
        self.dirty -= out;
        self.drained += out;
        self.at_work = work;
    }

    fn admit(&mut self, length: u32, work: f64) -> Admission {
        let length = f64::from(length);
        if length > self.size {
            return Admission::PassBy;
        }
        self.drain_until(work);
        let over = self.dirty + length - self.size;
        self.dirty += length;
        if over <= 0.0 {
            return Admission::After(0.0);
        }
        match self.when_full {
            WhenFull::Throttle => Admission::After(over / self.drain),
            WhenFull::StallUntil(low) => {
                // Room for the write that waits is made in any case.
                let low = (low * self.size).min(self.size - length);
                let out = self.dirty - length - low;
                self.dirty -= out;
                self.drained += out;
                Admission::Stall(Nanos::new((out / self.drain) as u64))
            }
        }
    }
}

impl Model {
    /// An idle device at time 0.
    ///
    /// * `slots`: requests it takes in flight.
    /// * `seed`: of everything that varies by chance.
    pub fn new(spec: &ModelSpec, slots: u32, seed: u64) -> Result<Self, ModelError> {
        spec.check()?;
        let before = |field, name: Option<&String>| spec.stage_before(field, name.map(|s| &**s));
        let cache_before =
            before("cache.before", spec.cache.as_ref().and_then(|c| c.before.as_ref()))?;
        let write_before = before(
            "write_cache.before",
            spec.write_cache.as_ref().and_then(|c| c.before.as_ref()),
        )?;
        let idle = Flight {
            request: Request {
                offset: units::ByteOffset::ZERO,
                length: 0,
                slot: Slot(0),
                file: crate::FileIndex(0),
                op: Op::Read,
            },
            started: 0,
            start_work: 0.0,
            work: 1.0,
            release: 0,
            leaves: [1.0; STAGES_MAX],
            passed: 1,
            active: false,
        };
        Ok(Self {
            now: 0,
            pace: Pace::new(spec, seed),
            costs: Costs::new(spec, cache_before, write_before),
            jitter: (spec.noise.jitter > 0.0)
                .then(|| Jitter { rng: Rng::new(seed, 0), sd: spec.noise.jitter }),
            wear: Wear::new(spec),
            cache: spec.cache.as_ref().map(|cache| {
                let capacity = cache.size.get() / cache.chunk.get();
                let chunk = cache.chunk.get();
                Cache { lru: Lru::new(capacity), chunk, capacity, writes: cache.writes }
            }),
            write_cache: spec.write_cache.as_ref().map(|cache| WriteCache {
                size: cache.size.get() as f64,
                drain: cache.drain.get() as f64 / 1e9,
                when_full: cache.when_full,
                before: write_before,
                dirty: 0.0,
                at_work: 0.0,
                drained: 0.0,
            }),
            sync_work: (spec.sync_time.get() as f64).max(1.0),
            writes_through: false,
            trim_work: (spec.trim_time.get() as f64).max(1.0),
            pending: BinaryHeap::with_capacity(slots as usize),
            held: BinaryHeap::with_capacity(slots as usize),
            throttle: Throttle::new(spec),
            last_done: 0,
            flights: vec![idle; slots as usize],
            free: (0..slots).rev().collect(),
            submitted: 0,
            counters: Counters::default(),
            stages: stage_names(spec)
                .map(|name| StageCounters { name, ..StageCounters::default() })
                .collect(),
        })
    }

    /// Draws the next visit's shift; before the first call there is none. What is in flight still is
    /// nobody's any more, and goes: its slots are the new visit's, as those of a queue that is opened
    /// anew.
    pub fn begin_visit(&mut self, seed: u64) {
        self.settle();
        let mut stages = std::mem::take(&mut self.stages);
        self.spend_in_flight(&mut stages, |_| {});
        self.stages = stages;
        for Reverse(gone) in self.pending.drain().chain(self.held.drain()) {
            if let Some(flight) = self.flights.get_mut(gone.flight as usize) {
                flight.active = false;
            }
            self.free.push(gone.flight);
        }
        self.pace.begin_visit(self.now, seed);
    }

    /// Whether writes from now on are durable when they complete, as with `O_DSYNC`.
    pub const fn write_through(&mut self, through: bool) {
        self.writes_through = through;
    }

    /// What completed so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The stages from the host down, now.
    pub fn stages(&self) -> Vec<StageCounters> {
        let mut stages = self.stages.clone();
        self.spend_in_flight(&mut stages, |stage| stage.in_flight += 1);
        let work_now = self.pace.work_at(self.now);
        if let Some(cache) = &self.write_cache {
            let mut cache = cache.clone();
            cache.drain_until(work_now.max(cache.at_work));
            let written = &mut stages[cache.before].written;
            *written = Bytes::new(written.get() + cache.drained as u64);
        }
        stages
    }

    /// Adds the time that requests in flight have spent in each stage so far.
    ///
    /// * `here`: is given the stage that each is in.
    fn spend_in_flight(&self, stages: &mut [StageCounters], here: impl Fn(&mut StageCounters)) {
        let work_now = self.pace.work_at(self.now);
        for flight in self.flights.iter().filter(|flight| flight.active) {
            let done = ((work_now - flight.start_work) / flight.work).clamp(0.0, 1.0);
            let at = flight.leaves.iter().position(|&leave| done < f64::from(leave));
            let at = at.unwrap_or(usize::MAX).min(usize::from(flight.passed) - 1);
            here(&mut stages[at]);
            if done > 0.0 {
                let leaves = flight.leaves.map(|leave| (f64::from(leave) / done).min(1.0) as f32);
                spend(stages, flight.passed, &leaves, self.now - flight.started);
            } else {
                // Held since its submission.
                stages[at].weighted_time += Nanos::new(self.now - flight.started);
            }
        }
    }

    /// Bytes that a write cache has not drained yet.
    pub fn dirty(&self) -> Bytes {
        self.write_cache.as_ref().map_or(Bytes::ZERO, |cache| {
            let mut cache = cache.clone();
            cache.drain_until(self.pace.work_at(self.now).max(cache.at_work));
            Bytes::new(cache.dirty.max(0.0) as u64)
        })
    }

    /// Goes into the stretch that `now` is in.
    #[inline]
    fn settle(&mut self) {
        while self.pace.end <= self.now {
            let head = self.pending.peek().map(|head| f64::from_bits(head.0.due));
            self.pace.step(head);
        }
    }

    /// Lets time pass to `until`, where nothing is due before.
    fn pass(&mut self, until: u64) {
        self.now = self.now.max(until);
        self.settle();
    }

    /// When the next one is worked off, or let pass.
    #[inline]
    fn head_due(&self) -> Option<u64> {
        let worked = self.pending.peek().map(|head| self.pace.due(f64::from_bits(head.0.due)));
        worked.into_iter().chain(self.held_due()).min()
    }

    /// In a freeze nothing completes.
    #[inline]
    fn held_due(&self) -> Option<u64> {
        let frozen = self.pace.speed() == 0.0;
        self.held.peek().map(|head| if frozen { u64::MAX } else { head.0.due })
    }

    /// Takes what completed by now, and when.
    #[inline]
    fn take_due(&mut self) -> Option<(Pending, u64)> {
        loop {
            if let Some(due) = self.held_due().filter(|&due| due <= self.now) {
                return Some((self.held.pop()?.0, due));
            }
            let due = self.pace.due(f64::from_bits(self.pending.peek()?.0.due));
            if due > self.now {
                return None;
            }
            let head = self.pending.pop()?.0;
            match self.flights.get(head.flight as usize).map_or(0, |flight| flight.release) {
                release if release > self.now => {
                    self.held.push(Reverse(Pending { due: release, ..head }));
                }
                release => return Some((head, due.max(release))),
            }
        }
    }

    /// How long no request was in it; `None` while one is.
    fn idle(&self) -> Option<u64> {
        (self.free.len() == self.flights.len()).then(|| self.now - self.last_done)
    }

    /// Work and way of a request that begins now.
    #[inline]
    fn begin(&mut self, request: &Request) -> (Cost, u8) {
        match request.op {
            Op::Read => {
                let hit = self.cache.as_mut().is_some_and(|cache| cache.touch(request));
                self.serve(if hit { Path::ReadHit } else { Path::Read }, request.length)
            }
            // Of a copy inside of the kernel the write is what takes long.
            Op::Write | Op::CopyRange | Op::Commit => {
                let (cost, passed) = self.begin_write(request);
                let flush = if self.writes_through { self.sync_work } else { 0.0 };
                (lengthened(cost, passed, cost.work + flush), passed)
            }
            Op::Fsync | Op::Fdatasync | Op::SyncRange => self.plain(self.sync_work),
            // What a directory costs is the file system's, of which there is no law.
            Op::Create | Op::Stat | Op::Delete => self.plain(self.sync_work),
            Op::Trim => {
                self.wear.trim(request);
                self.plain(self.trim_work)
            }
        }
    }

    /// A request whose time no law governs; it is spent in the last stage.
    fn plain(&self, work: f64) -> (Cost, u8) {
        let passed = self.stages.len();
        let mut leaves = [0.0; STAGES_MAX];
        leaves[passed - 1..].fill(1.0);
        (Cost { work, leaves }, passed as u8)
    }

    #[inline]
    fn serve(&mut self, path: Path, length: u32) -> (Cost, u8) {
        let mut cost = self.costs.of(path, length, self.pending.len() as u32 + 1);
        if let Some(jitter) = &mut self.jitter {
            cost.work *= jitter.draw();
        }
        cost.work *= self.wear.slowness(matches!(path, Path::Write | Path::WriteCached));
        (cost, self.costs.passed(path))
    }

    fn begin_write(&mut self, request: &Request) -> (Cost, u8) {
        if let Some(cache) = self.cache.as_mut().filter(|cache| cache.writes) {
            cache.touch(request);
        }
        let work = self.pace.work_at(self.now);
        let admission = match &mut self.write_cache {
            Some(cache) => cache.admit(request.length, work),
            None => Admission::PassBy,
        };
        let wait = match admission {
            Admission::PassBy => {
                let served = self.serve(Path::Write, request.length);
                self.wear.write(request);
                return served;
            }
            Admission::After(work) => work,
            Admission::Stall(length) => {
                self.pace.freeze(self.now, length);
                0.0
            }
        };
        let (cost, passed) = self.serve(Path::WriteCached, request.length);
        self.wear.write(request);
        // Its place in the law's queue is that for room, where it waits longer.
        (lengthened(cost, passed, cost.work.max(wait)), passed)
    }

    #[inline]
    fn deliver(&mut self, room: usize, done: &mut Vec<Completion>) -> usize {
        let mut delivered = 0;
        while delivered < room
            && let Some((head, due)) = self.take_due()
        {
            self.last_done = due.min(self.now);
            let flight = &mut self.flights[head.flight as usize];
            flight.active = false;
            self.free.push(head.flight);
            let Request { slot, op, length, .. } = flight.request;
            self.counters.add(op, length);
            for stage in &mut self.stages[..usize::from(flight.passed)] {
                stage.requests += 1;
                match op {
                    Op::Read => stage.read = more(stage.read, length),
                    Op::Write => stage.written = more(stage.written, length),
                    Op::CopyRange => {
                        stage.read = more(stage.read, length);
                        stage.written = more(stage.written, length);
                    }
                    _ => {}
                }
            }
            // Due when it was due, even if it is fetched later.
            spend(&mut self.stages, flight.passed, &flight.leaves, due_at(due, flight, self.now));
            done.push(Completion::moved(slot, if op.moves_data() { length } else { 0 }));
            delivered += 1;
        }
        delivered
    }
}

/// The same with more work, which is in the last stage that it passes.
fn lengthened(mut cost: Cost, passed: u8, work: f64) -> Cost {
    if work > cost.work {
        let before = (cost.work / work) as f32;
        cost.leaves[..usize::from(passed) - 1].iter_mut().for_each(|leave| *leave *= before);
        cost.work = work;
    }
    cost
}

/// Latency of a request due at `due` of the present stretch and fetched `now`. What was due in
/// an earlier stretch seems due at the start of this one, which is later but never after `now`.
fn due_at(due: u64, flight: &Flight, now: u64) -> u64 {
    due.clamp(flight.started, now) - flight.started
}

/// Splits a time over the stages, to the ns (below 2^53 of them, 104 days).
#[inline]
fn spend(stages: &mut [StageCounters], passed: u8, leaves: &[f32; STAGES_MAX], time: u64) {
    let mut spent = 0;
    for (stage, &leave) in stages.iter_mut().zip(leaves).take(usize::from(passed)) {
        let until = ((time as f64 * f64::from(leave)) as u64).max(spent);
        stage.weighted_time += Nanos::new(until - spent);
        spent = until;
    }
}

fn stage_names(spec: &ModelSpec) -> Box<dyn Iterator<Item = String> + '_> {
    if spec.stages.is_empty() {
        return Box::new(std::iter::once("device".to_owned()));
    }
    Box::new(spec.stages.iter().map(|stage| stage.name.clone()))
}

impl Device for Model {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        let idle = self.idle();
        let Some(at) = self.free.pop() else {
            return Err(Full);
        };
        self.settle();
        self.wear.rest(idle);
        let (cost, passed) = self.begin(&request);
        let release = self.throttle.release(&request, self.now);
        let start_work = self.pace.work_at(self.now);
        // At least a ns of time, or a closed loop would never end; the half is for rounding.
        let work = cost.work.max(1.5 * self.pace.speed()).max(1.0);
        self.flights[at as usize] = Flight {
            request,
            started: self.now,
            start_work,
            work,
            release,
            leaves: cost.leaves,
            passed,
            active: true,
        };
        self.pending.push(Reverse(Pending {
            due: (start_work + work).to_bits(),
            sequence: self.submitted,
            flight: at,
        }));
        self.submitted += 1;
        Ok(())
    }

    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let until = until.get();
        let room = done.capacity() - done.len();
        let mut got = 0;
        loop {
            self.settle();
            got += self.deliver(room - got, done);
            if got >= min {
                return Ok(());
            }
            let due = if got < room { self.head_due() } else { None };
            // The next completion or the next change of speed, whichever is first.
            let next = match due {
                Some(due) => due.min(self.pace.end),
                None => u64::MAX,
            };
            if next > until || next == u64::MAX {
                if until != u64::MAX {
                    self.pass(until);
                }
                return Ok(());
            }
            self.now = self.now.max(next);
        }
    }

    fn now(&self) -> Instant {
        Instant::new(self.now)
    }

    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }
}
