//! A wrapper that makes any device fail as told.

mod spec;

use std::collections::{BTreeMap, VecDeque};

use units::{ByteOffset, Bytes, Instant};

pub(crate) use self::spec::check;
pub use self::spec::{Fault, FaultRange, FaultRule, VanishSeen};
use crate::Model;
use crate::rng::Rng;
use crate::{
    Completion, Device, DeviceError, Errno, FileIndex, Full, ModelError, Op, Request, Slot,
};

/// A failing request comes back this long after its submission: a loop that submits again at
/// once would otherwise never see the clock of a twin move.
const FAIL_TIME: units::Nanos = units::Nanos::micros(50);

/// Wraps a device and breaks what its rules name, and nothing else.
///
/// Each request is offered to every rule in order (so each counts and draws by itself); the
/// first that applies has it. A failing request never reaches the inner device; any other does.
/// The clock is the inner device's.
///
/// A lost completion leaves its request in flight for ever. Where a real device would hang, a
/// reap without deadline returns once only lost requests are left.
#[derive(Debug)]
pub struct Faulty<D> {
    inner: D,
    rules: Vec<Rule>,
    /// The rules' state before the last decision, for when the inner device is full.
    saved: Vec<State>,
    tracks: BTreeMap<Slot, Track>,
    /// Ready at a known time; in that order, ties by arrival.
    held: VecDeque<(Instant, Completion)>,
    /// From the inner device, on the way to the caller.
    scratch: Vec<Completion>,
    vanished: Option<(Errno, VanishSeen)>,
}

#[derive(Debug)]
struct Rule {
    spec: FaultRule,
    state: State,
}

#[derive(Clone, Debug)]
struct State {
    rng: Rng,
    matched: u64,
    written: u64,
    fired: u64,
}

/// What becomes of a request in flight on the inner device.
#[derive(Clone, Debug)]
struct Track {
    request: Request,
    /// The rule that has it.
    rule: Option<usize>,
    /// Bits flipped in the buffer of a write, to be put back.
    flipped: Vec<u64>,
}

enum Decision {
    Pass,
    Fail(Errno),
    Shorten { rule: usize, length: u32 },
    Track { rule: usize },
    Vanish(Errno, VanishSeen),
}

impl<D: Device> Faulty<D> {
    /// * `seed`: of the rules' dice and of the bits they flip. Each rule has its own dice, so a
    ///   rule more does not move the others'.
    pub fn new(inner: D, rules: &[FaultRule], seed: u64) -> Result<Self, ModelError> {
        check(rules)?;
        let rules: Vec<_> = rules
            .iter()
            .zip(0..)
            .map(|(spec, number)| Rule {
                spec: spec.clone(),
                state: State {
                    rng: Rng::new(seed, 0x1_0000 + number),
                    matched: 0,
                    written: 0,
                    fired: 0,
                },
            })
            .collect();
        Ok(Self {
            inner,
            saved: rules.iter().map(|rule| rule.state.clone()).collect(),
            rules,
            tracks: BTreeMap::new(),
            held: VecDeque::new(),
            scratch: Vec::with_capacity(64),
            vanished: None,
        })
    }

    /// The device inside.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// The device inside.
    pub const fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// How often each rule struck, in their order.
    pub fn fired(&self) -> Vec<u64> {
        self.rules.iter().map(|rule| rule.state.fired).collect()
    }

    fn decide(&mut self, request: &Request) -> Decision {
        let now = self.inner.now();
        let mut decision = Decision::Pass;
        for (number, rule) in self.rules.iter_mut().enumerate() {
            let verdict = rule.verdict(number, request, now);
            if matches!(decision, Decision::Pass) && !matches!(verdict, Decision::Pass) {
                rule.state.fired += 1;
                decision = verdict;
            }
        }
        decision
    }

    fn save(&mut self) {
        for (saved, rule) in self.saved.iter_mut().zip(&self.rules) {
            saved.clone_from(&rule.state);
        }
    }

    fn restore(&mut self) {
        for (saved, rule) in self.saved.iter().zip(&mut self.rules) {
            rule.state.clone_from(saved);
        }
    }

    fn pass(&mut self, request: Request, length: u32, rule: Option<usize>) -> Result<(), Full> {
        let mut flipped = Vec::new();
        if request.op == Op::Write
            && let Some((number, bits)) = self.corrupting(rule)
        {
            flipped = self.flip(number, bits, &request, length);
        }
        match self.inner.submit(Request { length, ..request }) {
            Ok(()) => {
                self.tracks.insert(request.slot, Track { request, rule, flipped });
                Ok(())
            }
            Err(Full) => {
                put_back(self.inner.buffer(request.slot), &flipped);
                self.restore();
                Err(Full)
            }
        }
    }

    fn corrupting(&self, rule: Option<usize>) -> Option<(usize, u32)> {
        let number = rule?;
        match self.rules.get(number)?.spec.what {
            Fault::CorruptBits(bits) => Some((number, bits)),
            _ => None,
        }
    }

    /// Flips bits of the part of the slot's buffer that the rule's range covers; which, as bit
    /// numbers from the buffer's start.
    fn flip(&mut self, number: usize, bits: u32, request: &Request, moved: u32) -> Vec<u64> {
        let rule = &mut self.rules[number];
        let (from, to) = rule.spec.covered(request, moved);
        let buffer = self.inner.buffer(request.slot);
        let to = to.min(buffer.len() as u64);
        let room = to.saturating_sub(from) * 8;
        let mut flipped = Vec::new();
        // Distinct bits: twice the same would heal it. No more than there are.
        while (flipped.len() as u64) < u64::from(bits).min(room) {
            let bit = from * 8 + rule.state.rng.below(room);
            if !flipped.contains(&bit) {
                flipped.push(bit);
            }
        }
        put_back(buffer, &flipped);
        flipped
    }

    fn hold(&mut self, ready: Instant, completion: Completion) {
        let at = self.held.partition_point(|held| held.0 <= ready);
        self.held.insert(at, (ready, completion));
    }

    /// Fails all that is in flight; what has come back stays as it is.
    fn vanish(&mut self, errno: Errno, seen: VanishSeen) {
        let now = self.inner.now();
        self.vanished = Some((errno, seen));
        for (ready, completion) in &mut self.held {
            if *ready > now {
                (*ready, *completion) = (now, Completion::failed(completion.slot, errno));
            }
        }
        for (slot, track) in std::mem::take(&mut self.tracks) {
            put_back(self.inner.buffer(slot), &track.flipped);
            self.held.push_back((now, Completion::failed(slot, errno)));
        }
    }

    fn vanish_if_time(&mut self) {
        if self.vanished.is_some() {
            return;
        }
        let now = self.inner.now();
        let gone = self.rules.iter_mut().find_map(|rule| match rule.spec.vanishes_at() {
            Some((at, errno, seen)) if at <= now => {
                rule.state.fired += 1;
                Some((errno, seen))
            }
            _ => None,
        });
        if let Some((errno, seen)) = gone {
            self.vanish(errno, seen);
        }
    }

    /// The next moment at which something happens here that the inner device does not know of.
    fn next_event(&self) -> Instant {
        let held = self.held.front().map_or(Instant::MAX, |held| held.0);
        let vanish = match self.vanished {
            Some(_) => None,
            None => self.rules.iter().filter_map(|rule| rule.spec.vanishes_at()).map(|v| v.0).min(),
        };
        held.min(vanish.unwrap_or(Instant::MAX))
    }

    /// Lets the inner device work until one completion, or until `until`.
    fn work(&mut self, min: usize, until: Instant) -> Result<(), DeviceError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = self.inner.reap(min, until, &mut scratch);
        for completion in scratch.drain(..) {
            self.receive(completion);
        }
        self.scratch = scratch;
        result
    }

    fn receive(&mut self, completion: Completion) {
        // Nothing is known of what vanished before it came back.
        let Some(track) = self.tracks.remove(&completion.slot) else {
            return;
        };
        put_back(self.inner.buffer(completion.slot), &track.flipped);
        let mut ready = self.inner.now();
        match track.rule.map(|number| (number, self.rules[number].spec.what)) {
            Some((_, Fault::Lost)) => {
                // In flight for ever, and failed if the device vanishes.
                self.tracks.insert(completion.slot, Track { flipped: Vec::new(), ..track });
                return;
            }
            Some((_, Fault::Late(delay))) => ready = ready + delay,
            Some((number, Fault::CorruptBits(bits))) if track.request.op == Op::Read => {
                if let Ok(moved) = completion.result() {
                    self.flip(number, bits, &track.request, moved);
                }
            }
            _ => {}
        }
        self.hold(ready, completion);
    }

    fn deliver(&mut self, room: usize, done: &mut Vec<Completion>) -> usize {
        let now = self.inner.now();
        let ready = self.held.partition_point(|held| held.0 <= now).min(room);
        done.extend(self.held.drain(..ready).map(|held| held.1));
        ready
    }

    fn check_gone(&self) -> Result<(), DeviceError> {
        match self.vanished {
            Some((errno, VanishSeen::Device)) => Err(DeviceError::Gone { errno }),
            _ => Ok(()),
        }
    }
}

fn put_back(buffer: &mut [u8], bits: &[u64]) {
    for &bit in bits {
        if let Some(byte) = buffer.get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

impl Rule {
    fn verdict(&mut self, number: usize, request: &Request, now: Instant) -> Decision {
        if !self.spec.matches(request, now) {
            return Decision::Pass;
        }
        self.state.matched += 1;
        // Always drawn, so that `nth` beside it does not move the dice.
        let struck = self.spec.rate.is_none_or(|rate| self.state.rng.uniform() <= rate);
        let turn = self.spec.nth.is_none_or(|nth| nth.get() == self.state.matched);
        if let Fault::NoSpaceAfter(limit) = self.spec.what {
            return self.space(number, request, limit);
        }
        if !(struck && turn) {
            return Decision::Pass;
        }
        match self.spec.what {
            Fault::Error(errno) => Decision::Fail(errno),
            Fault::Short(keep) => {
                let keep = u32::try_from(keep.get()).unwrap_or(u32::MAX);
                if keep >= request.length {
                    return Decision::Pass;
                }
                Decision::Shorten { rule: number, length: keep }
            }
            Fault::NoSpaceAfter(_) => Decision::Pass,
            Fault::Lost | Fault::Late(_) | Fault::CorruptBits(_) => {
                Decision::Track { rule: number }
            }
            Fault::Vanish { errno, seen } => Decision::Vanish(errno, seen),
        }
    }

    /// The write that crosses the limit is short, later ones fail.
    fn space(&mut self, number: usize, request: &Request, limit: Bytes) -> Decision {
        let left = limit.get().saturating_sub(self.state.written);
        let fits = u64::from(request.length).min(left);
        self.state.written += fits;
        if fits == u64::from(request.length) {
            Decision::Pass
        } else if fits == 0 {
            Decision::Fail(Errno::ENOSPC)
        } else {
            Decision::Shorten { rule: number, length: fits as u32 }
        }
    }
}

impl Faulty<Model> {
    /// As [`Model::begin_visit`]: what was lost or is late belongs to nobody any more.
    pub fn begin_visit(&mut self, seed: u64) {
        for (slot, track) in std::mem::take(&mut self.tracks) {
            put_back(self.inner.buffer(slot), &track.flipped);
        }
        self.held.clear();
        self.inner.begin_visit(seed);
    }

    /// As [`Model::write_through`].
    pub const fn write_through(&mut self, through: bool) {
        self.inner.write_through(through);
    }
}

impl<D: Device> Device for Faulty<D> {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        self.vanish_if_time();
        if let Some((errno, _)) = self.vanished {
            let ready = self.inner.now() + FAIL_TIME;
            self.hold(ready, Completion::failed(request.slot, errno));
            return Ok(());
        }
        self.save();
        match self.decide(&request) {
            Decision::Pass => self.pass(request, request.length, None),
            Decision::Track { rule } => self.pass(request, request.length, Some(rule)),
            Decision::Shorten { rule, length } => self.pass(request, length, Some(rule)),
            Decision::Fail(errno) => {
                let ready = self.inner.now() + FAIL_TIME;
                self.hold(ready, Completion::failed(request.slot, errno));
                Ok(())
            }
            Decision::Vanish(errno, seen) => {
                self.vanish(errno, seen);
                let ready = self.inner.now() + FAIL_TIME;
                self.hold(ready, Completion::failed(request.slot, errno));
                Ok(())
            }
        }
    }

    fn aim(&mut self, slot: Slot, file: FileIndex, offset: ByteOffset) {
        self.inner.aim(slot, file, offset);
    }

    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let room = done.capacity() - done.len();
        let mut got = 0;
        loop {
            // What the inner device has ready is at hand before we look at the time.
            self.work(0, self.inner.now())?;
            self.vanish_if_time();
            self.check_gone()?;
            got += self.deliver(room - got, done);
            if got >= min || (min > 0 && self.inner.now() >= until) {
                return Ok(());
            }
            let before = self.inner.now();
            let mut stop = until.min(self.next_event());
            if got == room {
                // Nothing more can be handed over: only time can pass.
                stop = until;
                if stop == Instant::MAX {
                    return Ok(());
                }
            }
            let waiting = self.held.len();
            self.work(1, stop)?;
            if stop == Instant::MAX && self.inner.now() == before && self.held.len() == waiting {
                return Ok(());
            }
        }
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.inner.buffer(slot)
    }
}
