//! The way of a request through the parts of a design.

use layout::{MeanCost, Whole};
use serde::{Deserialize, Serialize};
use units::{ByteOffset, Bytes};

use crate::design::Design;
use crate::drive::{Op, Stay, seconds, stay, transfer};
use crate::load::{Access, Fill, Load};
use crate::network::Visit;

const PAGE: f64 = 4096.0;

/// A part that requests pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The host's processors and its kernel.
    Host,
    /// The lock of a file; twice as fast means twice as many files.
    FileLock,
    /// From the host to the controllers.
    Link,
    /// Controllers, their caches included.
    Controller,
    /// The drives of all legs.
    Drives,
}

impl Stage {
    /// All, as requests pass them.
    pub const ALL: [Self; 5] =
        [Self::Host, Self::FileLock, Self::Link, Self::Controller, Self::Drives];
}

/// Places where a request spends time, in the order of [`STAGES`]. The same of reads and of writes
/// are one queue.
pub(crate) type Path = [Visit; SLOTS];

const SLOTS: usize = 10;
const HOST: usize = 0;
pub(crate) const LOCK: usize = 2;
const LINK: usize = 4;
const CONTROLLER: usize = 5;
const INTAKE: usize = 6;
const PROCESSOR: usize = 7;
const DRIVES_FRONT: usize = 8;
const DRIVES: usize = 9;

/// Which part each place belongs to.
pub(crate) const STAGES: [Stage; SLOTS] = [
    Stage::Host,
    Stage::Host,
    Stage::FileLock,
    Stage::FileLock,
    Stage::Link,
    Stage::Controller,
    Stage::Controller,
    Stage::Controller,
    Stage::Drives,
    Stage::Drives,
];

/// Requests of one kind on their way, and what they leave behind for the drives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    pub path: Path,
    /// Seconds that each drive needs for one request after it has been answered, or before it is
    /// asked for.
    pub behind: f64,
    /// Requests hold the lock of their file from start to end.
    pub is_held: bool,
    /// Seconds of the processors' work while the lock is held: they are in the lock's time.
    pub submit_locked: f64,
}

/// What does not change when parameters do, once per load.
pub(crate) struct Spread {
    /// Legs that a request goes to.
    legs: f64,
    /// Bytes for each of them.
    each: f64,
    /// Members of a leg that a read goes to.
    read_members: f64,
    write: MeanCost,
}

impl Spread {
    pub(crate) fn of(design: &Design, load: &Load) -> Self {
        let stripe = design.stripe.as_ref();
        let chunks = stripe.map_or(1, |stripe| load.block.get().div_ceil(stripe.chunk.get()));
        let legs = chunks.min(u64::from(design.legs()));
        let each = Bytes::new(load.block.get().div_ceil(legs));
        let array = design.array;
        // In sequence full stripes come together, whatever the size of the requests.
        let written = match (load.access, array.data_width()) {
            (Access::Sequential, Some(width)) => width,
            // Parity is made of whole pages.
            _ if array.level().parity() > 0 => each.max(Bytes::kib(4)),
            _ => each,
        };
        Self {
            legs: legs as f64,
            each: each.get() as f64,
            read_members: array.read_requests(ByteOffset::ZERO, each).max(1) as f64,
            write: Whole::of_array(array, ByteOffset::new(design.start.get()))
                .mean_write_cost(written),
        }
    }
}

/// A queue with a common line for `servers`, as two places: see [`crate::network::solve`].
/// Adds to what is there.
pub(crate) fn line(path: &mut Path, place: usize, time: f64, servers: f64) {
    path[place].add(1.0, &Visit::delay(time * (1.0 - 1.0 / servers)));
    path[place + 1].add(1.0, &Visit::one_of(1.0, time / servers));
}

/// The way of reads or writes alone.
///
/// * `faster`: a part to reckon with as twice as fast.
pub(crate) fn way(
    design: &Design,
    load: &Load,
    spread: &Spread,
    op: Op,
    faster: Option<Stage>,
) -> Way {
    let speed = |stage| if faster == Some(stage) { 2.0 } else { 1.0 };
    let mut way = Way::default();
    let lock = design.file_system.as_ref().map(|system| &system.part);
    let is_exclusive = lock.is_some_and(|lock| match op {
        Op::Read => lock.reads_exclusive.value,
        Op::Write => lock.writes_exclusive.value,
    });
    way.is_held = is_exclusive && op == Op::Write;
    let host = &design.host.part;
    let pages = (load.block.get() as f64 / PAGE).ceil();
    let striping = design.stripe.as_ref().map_or(0.0, |s| seconds(&s.striping.part.submit_time));
    let submit = seconds(&host.submit_time) + seconds(&host.submit_page_time) * pages + striping;
    let submit = submit / speed(Stage::Host);
    if is_exclusive && op == Op::Read {
        line(&mut way.path, LOCK, submit, f64::from(load.files) * speed(Stage::FileLock));
        way.submit_locked = submit;
    } else {
        line(&mut way.path, HOST, submit, f64::from(host.cores.value.max(1)));
    }
    // Each of `legs` out of all gets its share at the same time.
    let choice = f64::from(design.legs()) / spread.legs;
    way.path[LINK] = Visit::one_of(choice, spread.each / link_rate(design) / speed(Stage::Link));
    controller(design, spread, op, &mut way.path, speed(Stage::Controller));
    drives(design, load, spread, op, &mut way, speed);
    way
}

/// Bytes per second of data through the link of a leg.
fn link_rate(design: &Design) -> f64 {
    let link = &design.link.part;
    let (payload, overhead) = (link.payload.value.get() as f64, link.overhead.value.get() as f64);
    let raw = link.lane_rate.value.over(Bytes::new(1)) * f64::from(link.lanes.value);
    raw * payload / (payload + overhead)
}

fn controller(design: &Design, spread: &Spread, op: Op, path: &mut Path, speed: f64) {
    let part = &design.controller.part;
    let first = spread.each.min(design.host.part.request_max.value.get() as f64);
    let choice = f64::from(design.legs()) / spread.legs;
    match op {
        Op::Read => {
            let pages = (first / PAGE).ceil();
            let time = seconds(&part.hit_time) + seconds(&part.page_time) * pages;
            path[CONTROLLER] = Visit::delay(time / speed);
        }
        Op::Write => {
            path[CONTROLLER] = Visit::delay(seconds(&part.write_time) / speed);
            let time = (transfer(spread.each, part.write_rate.value) - path[LINK].time).max(0.0);
            path[INTAKE] = Visit::one_of(choice, time / speed);
        }
    }
}

/// Share of the reads that the caches have, 0 to 1.
fn hits(design: &Design, load: &Load) -> f64 {
    let caches = design.controller.part.cache.value.get() as f64 * f64::from(design.legs());
    let share = (caches / load.size.get() as f64).min(1.0);
    // Blocks in sequence push each other out before they are asked for again.
    if load.access == Access::Sequential { share.floor() } else { share }
}

/// What reaches the drives, at once or after the answer; and the controller's part in it.
fn drives(
    design: &Design,
    load: &Load,
    spread: &Spread,
    op: Op,
    way: &mut Way,
    speed: impl Fn(Stage) -> f64,
) {
    let part = &design.controller.part;
    let is_behind = op == Op::Write && part.write_back.value;
    if is_behind && load.cache == Fill::Room {
        return;
    }
    let share = if op == Op::Read { 1.0 - hits(design, load) } else { 1.0 };
    if load.access == Access::Sequential {
        let time = share * in_sequence(design, load.block.get() as f64, spread, op);
        way.behind = time / speed(Stage::Drives);
        return;
    }
    let (requests, front, inside) = at_random(design, spread, op, share / speed(Stage::Drives));
    if is_behind {
        way.behind = front.demand.max(inside.demand);
        return;
    }
    way.path[DRIVES_FRONT] = front;
    way.path[DRIVES] = inside;
    let time = seconds(&part.drive_request_time) * requests * share / speed(Stage::Controller);
    way.path[PROCESSOR] = Visit::one_of(f64::from(design.legs()) / spread.legs, time);
}

/// Seconds of each drive for one request of a sequence: caches and read-ahead keep all at work.
fn in_sequence(design: &Design, block: f64, spread: &Spread, op: Op) -> f64 {
    let (members, legs) = (design.array.members(), f64::from(design.legs()));
    let on_each = match op {
        // The other copies, and the parity, of what is read are passed over.
        Op::Read => block / f64::from(design.array.data_chunks()),
        Op::Write => block * spread.write.amplification() / f64::from(members),
    };
    let layer = design.layer.as_ref().map(|layer| &layer.part);
    stay(&design.drive.part, layer, op, Access::Sequential, on_each / legs).inside.time
}

/// One request of a leg, anywhere: how many requests to drives it makes, and the visits to them.
fn at_random(design: &Design, spread: &Spread, op: Op, scale: f64) -> (f64, Visit, Visit) {
    let layer = design.layer.as_ref().map(|layer| &layer.part);
    let one = |op, bytes| stay(&design.drive.part, layer, op, Access::Random, bytes);
    let cost = &spread.write;
    let (reads, writes, read, write) = match op {
        Op::Read => {
            let reads = spread.read_members;
            (reads, 0.0, one(Op::Read, spread.each / reads), Stay::default())
        }
        Op::Write => (
            cost.reads,
            cost.writes,
            one(Op::Read, cost.read_bytes / cost.reads.max(1.0)),
            one(Op::Write, cost.written_bytes / cost.writes.max(1.0)),
        ),
    };
    // Members work side by side: first the reads, then the writes.
    let members = reads.max(writes).max(1.0);
    let sum = |of: fn(&Stay) -> f64| (reads * of(&read) + writes * of(&write)) * scale / members;
    let all = f64::from(design.array.members()) * f64::from(design.legs());
    let choice = all / (members * spread.legs);
    let inside = Visit {
        time: sum(|stay| stay.inside.time),
        demand: sum(|stay| stay.inside.demand) / choice,
        seek: sum(|stay| stay.inside.seek),
        reorder: read.inside.reorder.max(write.inside.reorder),
    };
    (reads + writes, Visit::one_of(choice, sum(|stay| stay.front)), inside)
}
