//! What legs do: link, controller with its caches, and what these ask of the drives.

use std::collections::VecDeque;

use stats::Random;

use super::agenda::{Agenda, Due};
use super::drives::{Drives, Streams};
use super::placement::{MemberWork, Placement};
use super::read_cache::ReadCache;
use super::rebuild::Rebuild;
use super::station::{Station, byte_time, span};
use super::write_cache::{DirtyCache, DirtySpace};
use super::{ArrayOp, SimulationOptions};
use crate::design::{ArrayDesign, ArrayState, LinkPer};
use crate::drive::Op;
use crate::load::Fill;
use crate::path::link_rate;

/// Runs that a cache is written from at a time, for each member: while there is room, and while writes
/// wait for some.
const DESTAGED: usize = 1;
const DESTAGED_FULL: usize = 16;

/// Sequences whose full stripes are gathered at a time: one for each of many threads that write.
const GATHERED: usize = 64;

/// Nobody waits for what is destaged.
const NOBODY: u32 = u32::MAX;

/// What lies near together is destaged together: stripes, up to about so many bytes of each member.
const DESTAGE_MOST: u64 = 1 << 20;

/// Bytes of what counts as a stripe where there are none.
const STRIPE: u64 = 1 << 20;

/// What one leg does for a request, or for itself.
#[derive(Clone, Copy, Debug, Default)]
struct Portion {
    request: u32,
    leg: u32,
    is_read: bool,
    step: PortionStep,
    start: u64,
    length: u64,
    /// ns at the link so far.
    link: u64,
    /// When the controller itself has done with it.
    ready: u64,
    /// Of a write: see [`DirtyCache`]. Of what is destaged: the room that it gives back.
    ticket: u64,
    /// Of a write: whether it comes with the rest of full stripes.
    is_share: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum PortionStep {
    #[default]
    /// To the drives: reads first.
    Issue,
    /// What had to be read for a write is there.
    Write,
    /// It has been destaged.
    Free,
}

/// A leg's part of a request is done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortionEnd {
    pub(super) request: u32,
    /// When, and of that the ns at the link and the drives.
    pub(super) at: u64,
    pub(super) link: u64,
    pub(super) drives: u64,
}

/// One leg.
#[derive(Debug)]
struct Leg {
    blocks: ReadCache,
    dirty: DirtyCache,
    /// Of writes.
    streams: Streams<GATHERED>,
    /// Writes that wait for room.
    waiting: VecDeque<u32>,
    destaged: usize,
}

/// All legs.
#[derive(Debug)]
pub(super) struct Legs {
    legs: Vec<Leg>,
    portions: Vec<Portion>,
    /// Portions of nobody's that are free, and what all of them ask of each member: reads and writes.
    spare: Vec<u32>,
    destages: Vec<[MemberWork; 2]>,
    /// What is done, and was not yet told.
    pub(super) ended: Vec<PortionEnd>,
    placement: Placement,
    pub(super) drives: Drives,
    pub(super) rebuild: Option<Rebuild>,
    /// The drive that is not there.
    pub(super) lost: Option<usize>,
    random: Random,
    /// From the drives and to them.
    pub(super) links: [Station; 2],
    link_per: LinkPer,
    pub(super) processors: Station,
    pub(super) intakes: Station,
    times: LegTimes,
    is_write_back: bool,
    members: usize,
    /// Bytes of writes in flight, and how many of them make full stripes of those in sequence.
    pub(super) writing: u64,
    gathered: u64,
}

/// Of one controller and link: ns, and ns of a byte.
#[derive(Clone, Copy, Debug)]
struct LegTimes {
    hit: u64,
    page: u64,
    write: u64,
    request: u64,
    intake_byte: f64,
    link_byte: f64,
    /// Bytes.
    request_max: u64,
}

impl Legs {
    pub(super) fn new(design: &ArrayDesign, options: &SimulationOptions) -> Self {
        let (legs, members) = (design.legs() as usize, design.array.members() as usize);
        let part = &design.controller.part;
        let size = part.cache.value.get();
        let slots = options.slots;
        let (is_write_back, is_full) = (part.write_back.value, options.cache == Fill::Full);
        let member = design.drive.part.size().value;
        let stripe = design.array.data_width().map_or(STRIPE, |width| width.get());
        let chunk = design.array.chunk().map_or(stripe, |chunk| chunk.get());
        let space = DirtySpace {
            bytes: design.start.get() + design.array.capacity(member).get(),
            stripe,
            together: (DESTAGE_MOST / chunk).max(1) * stripe,
        };
        let leg = || Leg {
            blocks: ReadCache::new(size),
            dirty: DirtyCache::new(size * u64::from(is_write_back), is_full, space),
            streams: Streams::NONE,
            waiting: VecDeque::with_capacity(slots as usize),
            destaged: 0,
        };
        let own = slots as usize * legs;
        let background = if is_write_back { legs * members * DESTAGED_FULL } else { 0 };
        let links = if design.link_per == LinkPer::Leg { legs } else { legs * members };
        Self {
            legs: (0..legs).map(|_| leg()).collect(),
            portions: vec![Portion::default(); own + background],
            spare: (own as u32..(own + background) as u32).rev().collect(),
            destages: vec![[MemberWork::default(); 2]; background * members],
            ended: Vec::with_capacity(own),
            placement: Placement::new(&design.array, design.array.used(member).get()),
            drives: Drives::new(design, options.pages_max, options.seed),
            rebuild: (design.state == ArrayState::Rebuilding).then(|| Rebuild::new(design)),
            lost: (!design.state.is_whole()).then_some(0),
            random: Random::new(options.seed),
            links: [Station::new(links), Station::new(links)],
            link_per: design.link_per,
            processors: Station::new(legs),
            intakes: Station::new(legs),
            times: LegTimes::of(design),
            is_write_back,
            members,
            writing: 0,
            gathered: if design.array.level().parity() > 0 {
                stripe * legs as u64
            } else {
                u64::MAX
            },
        }
    }

    /// Portions at a time, of requests and of nobody.
    pub(super) fn portions(&self) -> usize {
        self.portions.len()
    }

    /// A request arrives at a leg, of which it takes `length` bytes from `start` on.
    pub(super) fn arrive(
        &mut self,
        agenda: &mut Agenda,
        (request, leg): (u32, u32),
        op: ArrayOp,
        (start, length): (u64, u64),
        now: u64,
    ) {
        let times = self.times;
        let (is_read, is_write) = (op == ArrayOp::Read, op == ArrayOp::Write);
        let at_leg = leg as usize;
        let pages = length.min(times.request_max).div_ceil(4096);
        let whole = if is_read { times.hit + times.page * pages } else { times.write };
        let processor = times.request.min(whole);
        let began = self.processors.serve(at_leg, now, processor);
        let mut linked = began;
        if self.link_per == LinkPer::Leg {
            let link = &mut self.links[usize::from(!is_read)];
            linked = link.serve(at_leg, began, span(length, times.link_byte));
        }
        let mut ready = linked + whole - processor;
        if is_write {
            // What arrives goes on at once: the slower of the two takes the time.
            let taken = self.intakes.serve(at_leg, began, span(length, times.intake_byte));
            ready += taken.saturating_sub(linked);
        }
        let link = linked - began;
        let state = &mut self.legs[at_leg];
        // A flush has nothing to do: caches keep what they have, and so do the buffers of drives.
        let is_cached = state.blocks.touch(start, length) && is_read || length == 0;
        let is_behind = is_write && self.is_write_back;
        let ticket = if is_behind { state.dirty.push(start, length) } else { 0 };
        let is_late = is_behind && !(state.waiting.is_empty() && state.dirty.has_room(ticket));
        let is_share = is_write
            && state.streams.follow(MemberWork { start, bytes: length })
            && self.writing >= self.gathered;
        let number = request * self.legs.len() as u32 + leg;
        let step = PortionStep::Issue;
        self.portions[number as usize] =
            Portion { request, leg, is_read, step, start, length, link, ready, ticket, is_share };
        if is_late {
            self.legs[at_leg].waiting.push_back(number);
        } else if is_behind || is_cached {
            self.ended.push(PortionEnd { request, at: ready, link, drives: 0 });
        } else {
            agenda.push(ready, Due::Portion(number));
        }
        if is_behind {
            self.destage(agenda, at_leg, now);
        }
    }

    /// The next step of a portion.
    pub(super) fn step(&mut self, agenda: &mut Agenda, number: u32, now: u64) {
        let Portion { request, leg, is_read, step, start, length, link, ticket, ready, is_share } =
            self.portions[number as usize];
        let at_leg = leg as usize;
        if matches!(step, PortionStep::Free) {
            self.spare.push(number);
            let state = &mut self.legs[at_leg];
            state.dirty.free(ticket);
            state.destaged -= 1;
            self.admit(at_leg, now);
            return self.destage(agenda, at_leg, now);
        }
        if request == NOBODY {
            let kept = self.destages_of(number);
            self.placement.recall(&self.destages[kept]);
        } else {
            self.place(at_leg, (is_read, is_share), start, start + length);
        }
        if matches!(step, PortionStep::Issue) {
            let (at, linked, drives) = self.issue(at_leg, Op::Read, now);
            if is_read {
                return self.ended.push(PortionEnd { request, at, link: link + linked, drives });
            }
            if at > now {
                self.portions[number as usize].step = PortionStep::Write;
                return agenda.push(at, Due::Portion(number));
            }
        }
        let (at, linked, drives) = self.issue(at_leg, Op::Write, now);
        if request == NOBODY {
            self.portions[number as usize].step = PortionStep::Free;
            return agenda.push(at, Due::Portion(number));
        }
        // What was read first is the drives', too.
        let drives = drives + (now - ready);
        self.ended.push(PortionEnd { request, at, link: link + linked, drives });
    }

    /// Writes that have found room.
    fn admit(&mut self, leg: usize, now: u64) {
        let Leg { waiting, dirty, .. } = &mut self.legs[leg];
        while let Some(&first) = waiting.front() {
            let Portion { request, ready, link, ticket, .. } = self.portions[first as usize];
            if !dirty.has_room(ticket) {
                return;
            }
            waiting.pop_front();
            self.ended.push(PortionEnd { request, at: ready.max(now), link, drives: 0 });
        }
    }

    /// Writes what is dirty, as much at a time as there should be.
    fn destage(&mut self, agenda: &mut Agenda, leg: usize, now: u64) {
        loop {
            let state = &mut self.legs[leg];
            let most = if state.waiting.is_empty() { DESTAGED } else { DESTAGED_FULL };
            if state.destaged >= most * self.members {
                return;
            }
            let is_idle = state.destaged == 0;
            let Some(&number) = self.spare.last() else { return };
            self.placement.clear();
            let placement = &mut self.placement;
            let room = state.dirty.take(is_idle, |from, to| placement.write(from, to));
            let Some(ticket) = room else { return };
            state.destaged += 1;
            self.spare.pop();
            self.take_over(leg);
            let kept = self.destages_of(number);
            self.placement.keep(&mut self.destages[kept]);
            let (request, leg) = (NOBODY, leg as u32);
            self.portions[number as usize] = Portion { request, leg, ticket, ..Portion::default() };
            self.step(agenda, number, now);
        }
    }

    /// Where it is kept what a portion of nobody's asks of the members.
    fn destages_of(&self, number: u32) -> std::ops::Range<usize> {
        let first = number as usize + self.destages.len() / self.members - self.portions.len();
        first * self.members..(first + 1) * self.members
    }

    /// The next step of filling the spare.
    pub(super) fn rebuild(&mut self, agenda: &mut Agenda, now: u64) {
        let (Some(mut rebuild), Some(lost)) = (self.rebuild, self.lost) else { return };
        if rebuild.done().is_some() {
            self.lost = None;
            return;
        }
        let (start, bytes) = rebuild.piece();
        self.placement.fill(lost, start, bytes);
        let op = if rebuild.is_writing { Op::Write } else { Op::Read };
        let (end, ..) = self.issue(0, op, now);
        agenda.push(rebuild.next(now, end), Due::Rebuild);
        self.rebuild = Some(rebuild);
    }

    /// Which members do what.
    fn place(&mut self, leg: usize, (is_read, is_share): (bool, bool), start: u64, end: u64) {
        let base = leg * self.members;
        let Self { placement, drives, random, lost, .. } = self;
        if is_read {
            let choose = |members: &[usize], at| drives.choose(base, members, at, *lost, random);
            placement.read(start, end, choose);
        } else {
            placement.clear();
            match is_share {
                true => placement.write_share(start, end),
                false => placement.write(start, end),
            }
        }
        self.take_over(leg);
    }

    /// Without the drive that is lost.
    fn take_over(&mut self, leg: usize) {
        if let Some(lost) = self.lost.filter(|_| leg == 0) {
            let rebuilt = self.rebuild.map_or(0, |rebuild| rebuild.filled);
            self.placement.without(lost, self.rebuild.is_some(), rebuilt);
        }
    }

    /// Sends what was placed to the drives of a leg. When the last is done, and of that the time at
    /// its link and at the drive. `now` where there was nothing.
    ///
    /// What a drive reads is given its time at a link of its own beforehand: requests reach the link in
    /// the order of time then, and rates are the same whichever comes first.
    fn issue(&mut self, leg: usize, op: Op, now: u64) -> (u64, u64, u64) {
        let Self { placement, drives, random, .. } = self;
        let (kind, works) = match op {
            Op::Read => (0, &placement.reads),
            Op::Write => (1, &placement.writes),
        };
        let mut last = (now, 0, 0);
        for (member, work) in works.iter().enumerate().filter(|(_, work)| work.bytes > 0) {
            let drive = leg * self.members + member;
            let sent = self.processors.serve(leg, now, self.times.request);
            let mut arrival = sent;
            if self.link_per == LinkPer::Drive {
                let time = span(work.bytes, self.times.link_byte);
                arrival = self.links[kind].serve(drive, sent, time);
            }
            let end = drives.serve(drive, op, *work, arrival, random);
            if end > last.0 {
                last = (end, arrival - sent, end - arrival);
            }
        }
        last
    }
}

impl LegTimes {
    fn of(design: &ArrayDesign) -> Self {
        let part = &design.controller.part;
        Self {
            hit: part.hit_time.value.get(),
            page: part.page_time.value.get(),
            write: part.write_time.value.get(),
            request: part.request_time.value.get(),
            intake_byte: byte_time(part.write_rate.value),
            link_byte: 1e9 / link_rate(design),
            request_max: design.host.part.request_max.value.get(),
        }
    }
}
