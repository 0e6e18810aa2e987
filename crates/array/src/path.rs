//! The way of a request through the parts of a design.

use layout::{MeanCost, Whole};
use serde::{Deserialize, Serialize};
use units::{ByteOffset, Bytes};

use crate::design::{ArrayDesign, LinkPer};
use crate::drive::{Op, Stay, front, seconds, stay, transfer};
use crate::load::{Addressing, Fill, Load};
use crate::network::Visit;
use crate::part::Drive;

const PAGE: f64 = 4096.0;

/// A part that requests pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
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

impl Component {
    /// All, as requests pass them.
    pub const ALL: [Self; 5] =
        [Self::Host, Self::FileLock, Self::Link, Self::Controller, Self::Drives];
}

/// Places where a request spends time, in the order of [`COMPONENTS`]. The same of reads and of writes
/// are one queue.
pub(crate) type Path = [Visit; SLOTS];

const SLOTS: usize = 11;
const HOST: usize = 0;
const LOCK: usize = 2;
pub(crate) const LOCK_QUEUE: usize = 3;
const LINK_UP: usize = 4;
const LINK_DOWN: usize = 5;
const CONTROLLER: usize = 6;
const INTAKE: usize = 7;
const PROCESSOR: usize = 8;
const DRIVES_FRONT: usize = 9;
pub(crate) const DRIVES: usize = 10;

/// Which part each place belongs to.
pub(crate) const COMPONENTS: [Component; SLOTS] = [
    Component::Host,
    Component::Host,
    Component::FileLock,
    Component::FileLock,
    Component::Link,
    Component::Link,
    Component::Controller,
    Component::Controller,
    Component::Controller,
    Component::Drives,
    Component::Drives,
];

/// Requests of one kind on their way, and what they leave behind for the drives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
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
pub(crate) struct Footprint {
    /// Legs that a request goes to.
    legs: f64,
    /// Bytes for each of them.
    each: f64,
    /// Members of a leg that a read goes to.
    read_members: f64,
    write: MeanCost,
    /// Share of the drives over which requests are spread.
    reach: f64,
    /// Whether what comes in sequence comes as full stripes.
    is_gathered: bool,
    /// Bytes that a write sends to members, and how many of them work at once.
    sent: (f64, f64),
}

impl Footprint {
    pub(crate) fn of(design: &ArrayDesign, load: &Load) -> Self {
        let stripe = design.stripe.as_ref();
        let chunks = stripe.map_or(1, |stripe| load.block.get().div_ceil(stripe.chunk.get()));
        let legs = chunks.min(u64::from(design.legs()));
        let each = Bytes::new(load.block.get().div_ceil(legs));
        let array = design.array;
        // In sequence full stripes come together, whatever the size of the requests: a write-back
        // cache waits for them, others need as much in flight.
        let in_flight = each.get().saturating_mul(u64::from(load.in_flight()));
        let is_gathered = load.access == Addressing::Sequential
            && (design.controller.part.write_back.value
                || array.level().parity() == 0
                || array.data_width().is_none_or(|width| in_flight >= width.get()));
        let written = match array.data_width() {
            Some(width) if is_gathered => width,
            // Parity is made of whole pages.
            _ if array.level().parity() > 0 => each.max(Bytes::kib(4)),
            _ => each,
        };
        let write =
            Whole::of_array(array, ByteOffset::new(design.start.get())).mean_write_cost(written);
        let read_members = array.read_requests(ByteOffset::ZERO, each).max(1) as f64;
        let sent = if is_gathered {
            // Of the full stripe its share.
            let all = write.amplification();
            (each.get() as f64 * all, (read_members * all).min(f64::from(array.members())))
        } else {
            (write.written_bytes, write.writes.max(1.0))
        };
        let (legs, each) = (legs as f64, each.get() as f64);
        let reach = (load.size.get() as f64 / design.capacity().get().max(1) as f64).min(1.0);
        Self { legs, each, read_members, write, reach, is_gathered, sent }
    }
}

/// A queue with a common line for `servers`, as two places: see [`crate::network::solve`].
/// Adds to what is there.
fn line(path: &mut Path, place: usize, time: f64, servers: f64) {
    path[place].add(1.0, &Visit::delay(time * (1.0 - 1.0 / servers)));
    path[place + 1].add(1.0, &Visit::one_of(1.0, time / servers));
}

/// The way of reads or writes alone.
///
/// * `faster`: a part to reckon with as twice as fast.
pub(crate) fn route(
    design: &ArrayDesign,
    load: &Load,
    footprint: &Footprint,
    op: Op,
    faster: Option<Component>,
) -> Route {
    let speed = |component| if faster == Some(component) { 2.0 } else { 1.0 };
    let mut route = Route::default();
    let lock = design.file_system.as_ref().map(|system| &system.part);
    let is_exclusive = lock.is_some_and(|lock| match op {
        Op::Read => lock.reads_exclusive.value,
        Op::Write => lock.writes_exclusive.value,
    });
    route.is_held = is_exclusive && op == Op::Write;
    let host = &design.host.part;
    let cores = f64::from(host.cores.value.min(load.threads));
    let pages = (load.block.get() as f64 / PAGE).ceil();
    let striping = design.stripe.as_ref().map_or(0.0, |s| seconds(&s.striping.part.submit_time));
    let submit = seconds(&host.submit_time) + seconds(&host.submit_page_time) * pages + striping;
    let submit = submit / speed(Component::Host);
    if is_exclusive && op == Op::Read {
        line(&mut route.path, LOCK, submit, f64::from(load.files) * speed(Component::FileLock));
        route.submit_locked = submit;
        route.path[HOST + 1] = Visit::beside(submit / cores);
    } else {
        line(&mut route.path, HOST, submit, cores);
    }
    transfers(design, footprint, op, &mut route.path, speed);
    drives(design, load, footprint, op, &mut route, speed);
    route
}

/// Bytes per second of data through the link of a leg.
pub(crate) fn link_rate(design: &ArrayDesign) -> f64 {
    let link = &design.link.part;
    let (payload, overhead) = (link.payload.value.get() as f64, link.overhead.value.get() as f64);
    let raw = link.lane_rate.value.over(Bytes::new(1)) * f64::from(link.lanes.value);
    raw * payload / (payload + overhead)
}

/// The link and the controller's cache.
fn transfers(
    design: &ArrayDesign,
    footprint: &Footprint,
    op: Op,
    path: &mut Path,
    speed: impl Fn(Component) -> f64,
) {
    let part = &design.controller.part;
    // Each of `legs` out of all gets its share at the same time.
    let choice = f64::from(design.legs()) / footprint.legs;
    let (carried, links) = match design.link_per {
        LinkPer::Leg => (footprint.each, choice),
        LinkPer::Drive => {
            let (bytes, members) = match op {
                Op::Read => (footprint.each, footprint.read_members),
                Op::Write => footprint.sent,
            };
            (bytes / members, choice * f64::from(design.array.members()) / members)
        }
    };
    let link = carried / link_rate(design) / speed(Component::Link);
    let speed = speed(Component::Controller);
    let whole = match op {
        Op::Read => {
            let first = footprint.each.min(design.host.part.request_max.value.get() as f64);
            seconds(&part.hit_time) + seconds(&part.page_time) * (first / PAGE).ceil()
        }
        Op::Write => seconds(&part.write_time),
    };
    let processor = seconds(&part.request_time).min(whole);
    path[CONTROLLER] = Visit::delay((whole - processor) / speed);
    path[PROCESSOR] = Visit::one_of(choice, processor / speed);
    if op == Op::Read {
        path[LINK_UP] = Visit::one_of(links, link);
        return;
    }
    // What arrives goes on at once: the slower of the two takes the time.
    let intake = transfer(footprint.each, part.write_rate.value) / speed;
    let (link, intake) = (Visit::one_of(links, link), Visit::one_of(choice, intake));
    let is_link = link.time > intake.time;
    path[LINK_DOWN] = if is_link { link } else { Visit::beside(link.demand) };
    path[INTAKE] = if is_link { Visit::beside(intake.demand) } else { intake };
}

/// Share of the reads that the caches have, 0 to 1.
fn hits(design: &ArrayDesign, load: &Load) -> f64 {
    let caches = design.controller.part.cache.value.get() as f64 * f64::from(design.legs());
    let share = (caches / load.size.get() as f64).min(1.0);
    // Blocks in sequence push each other out before they are asked for again.
    if load.access == Addressing::Sequential { share.floor() } else { share }
}

/// What reaches the drives, at once or after the answer; and the controller's part in it.
fn drives(
    design: &ArrayDesign,
    load: &Load,
    footprint: &Footprint,
    op: Op,
    route: &mut Route,
    speed: impl Fn(Component) -> f64,
) {
    let part = &design.controller.part;
    let is_behind = op == Op::Write && part.write_back.value;
    if is_behind && load.cache == Fill::Room {
        return;
    }
    let share = if op == Op::Read { 1.0 - hits(design, load) } else { 1.0 };
    if load.access == Addressing::Sequential && (op == Op::Read || footprint.is_gathered) {
        let time = share * in_sequence(design, load.block.get() as f64, footprint, op);
        route.behind = time / speed(Component::Drives);
        if !is_behind {
            let time = share * latency(design, footprint, op) / speed(Component::Drives);
            route.path[DRIVES] = Visit::delay(time);
            if time > 0.0 {
                let touched = touched(footprint, op);
                pass_on(design, footprint, touched * share, route, speed);
            }
        }
        return;
    }
    let (requests, front, inside, behind) =
        at_random(design, footprint, op, share, speed(Component::Drives));
    if is_behind {
        route.behind = front.demand.max(inside.demand + behind);
        return;
    }
    route.behind = behind;
    route.path[DRIVES_FRONT] = front;
    route.path[DRIVES] = inside;
    pass_on(design, footprint, requests * share, route, speed);
}

/// The controller's part in so many requests to the drives of a leg.
fn pass_on(
    design: &ArrayDesign,
    footprint: &Footprint,
    requests: f64,
    route: &mut Route,
    speed: impl Fn(Component) -> f64,
) {
    let one = seconds(&design.controller.part.request_time);
    let choice = f64::from(design.legs()) / footprint.legs;
    let time = one * requests / speed(Component::Controller);
    route.path[PROCESSOR].add(1.0, &Visit::one_of(choice, time));
}

/// Seconds of each drive for one request of a sequence: caches and read-ahead keep all at work, and
/// those that know no sequences have as many requests as are sent to them.
fn in_sequence(design: &ArrayDesign, block: f64, footprint: &Footprint, op: Op) -> f64 {
    let (members, legs) = (design.array.members(), f64::from(design.legs()));
    let on_each = match op {
        // Disks pass over the other copies, and the parity, of what is read; flash has neither to pass.
        Op::Read if front(&design.drive.part) > 0.0 => block / f64::from(members),
        Op::Read => block / f64::from(design.array.data_chunks()),
        Op::Write => block * footprint.write.amplification() / f64::from(members),
    };
    let layer = design.layer.as_ref().map(|layer| &layer.part);
    let bytes = stay(&design.drive.part, layer, op, None, on_each / legs).inside.time;
    let requests = touched(footprint, op) * footprint.legs / (f64::from(members) * legs);
    bytes.max(front(&design.drive.part) * requests)
}

/// Members of a leg that one request of a sequence goes to.
fn touched(footprint: &Footprint, op: Op) -> f64 {
    if op == Op::Read { footprint.read_members } else { footprint.sent.1 }
}

/// Seconds that a request of a sequence takes beside its bytes. Flash that maps pages and virtual
/// disks know no sequences; at a disk the place of the next write has gone by, and comes again
/// after a turn. What is read next the others have already.
fn latency(design: &ArrayDesign, footprint: &Footprint, op: Op) -> f64 {
    let drive = &design.drive.part;
    match drive {
        Drive::PageMapped(_) | Drive::Volume(_) => {}
        Drive::Mechanical(disk) if op == Op::Write => return 60.0 / f64::from(disk.rpm.value),
        _ => return 0.0,
    }
    let bytes = footprint.each / footprint.read_members;
    let one = stay(drive, None, op, Some(1.0), bytes);
    one.front + one.inside.time
}

/// From how many drives a read takes the first that is free, as a common line: the copies of a
/// mirror. Not counted on where drives do several requests at a time or choose the nearest: there
/// a second choice gains less.
fn choices(design: &ArrayDesign, read: &Stay) -> f64 {
    let is_plain = read.front == 0.0 && read.inside.reorder == 0.0;
    if !is_plain || design.array.level().parity() > 0 {
        return 1.0;
    }
    f64::from(design.array.members()) / f64::from(design.array.data_chunks())
}

/// One request of a leg, anywhere: how many requests to drives it makes, the visits to them, and
/// the seconds of each drive after the answer.
///
/// * `share`: of the requests that reach the drives.
/// * `speed`: of the drives.
fn at_random(
    design: &ArrayDesign,
    footprint: &Footprint,
    op: Op,
    share: f64,
    speed: f64,
) -> (f64, Visit, Visit, f64) {
    let layer = design.layer.as_ref().map(|layer| &layer.part);
    let alone = |op, bytes| stay(&design.drive.part, layer, op, Some(footprint.reach), bytes);
    let cost = &footprint.write;
    let (reads, writes, read, write) = match op {
        Op::Read => {
            let reads = footprint.read_members;
            (reads, 0.0, alone(Op::Read, footprint.each / reads), Stay::default())
        }
        Op::Write => (
            cost.reads,
            cost.writes,
            alone(Op::Read, cost.read_bytes / cost.reads.max(1.0)),
            alone(Op::Write, cost.written_bytes / cost.writes.max(1.0)),
        ),
    };
    // Members work side by side: first the reads, then the writes.
    let members = reads.max(writes).max(1.0);
    let one = |of: fn(&Stay) -> f64| (reads * of(&read) + writes * of(&write)) / members / speed;
    let sum = |of: fn(&Stay) -> f64| one(of) * share;
    let all = f64::from(design.array.members()) * f64::from(design.legs());
    let choice = all / (members * footprint.legs);
    let mut front = Visit::constant(choice, sum(|stay| stay.front));
    let whole = sum(|stay| stay.inside.time);
    let copies = if op == Op::Read { choices(design, &read) } else { 1.0 };
    front.time += whole * (1.0 - 1.0 / copies);
    let inside = Visit {
        time: whole / copies,
        demand: sum(|stay| stay.inside.demand) / choice,
        seek: sum(|stay| stay.inside.seek) / copies,
        reorder: read.inside.reorder.max(write.inside.reorder),
        square: read.inside.spread().max(write.inside.spread())
            * share
            * (one(|stay| stay.inside.time) / copies).powi(2),
    };
    let behind = sum(|stay| stay.behind) / choice;
    (reads + writes, front, inside, behind)
}
