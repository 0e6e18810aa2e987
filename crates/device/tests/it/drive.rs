//! A closed loop over any device, as plain as can be.

use device::{Completion, Device, FileIndex, Op, Request, Slot};
use units::{ByteOffset, Instant, Nanos};

pub fn request(op: Op, offset: u64, length: u32, slot: u32) -> Request {
    Request { offset: ByteOffset::new(offset), length, slot: Slot(slot), file: FileIndex(0), op }
}

pub fn read(offset: u64, length: u32, slot: u32) -> Request {
    request(Op::Read, offset, length, slot)
}

pub fn write(offset: u64, length: u32, slot: u32) -> Request {
    request(Op::Write, offset, length, slot)
}

/// One completion of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    pub request: Request,
    pub submitted: Instant,
    pub completed: Instant,
    pub completion: Completion,
}

impl Event {
    pub fn latency(&self) -> Nanos {
        self.completed.since(self.submitted)
    }
}

/// Keeps `depth` requests of `next(number, slot)` in flight until `until`, and what was in
/// flight then is left there. `next` may end the load with `None`.
pub fn closed_loop<D: Device>(
    device: &mut D,
    depth: u32,
    until: Instant,
    mut next: impl FnMut(u64, u32) -> Option<Request>,
    mut each: impl FnMut(Event),
) {
    let mut done = Vec::with_capacity(depth as usize);
    let mut open: Vec<Option<(Request, Instant)>> = vec![None; depth as usize];
    let mut ready: Vec<u32> = (0..depth).rev().collect();
    let mut number = 0;
    let mut flying = 0;
    let mut ended = false;
    loop {
        while !ended && let Some(slot) = ready.pop() {
            let Some(request) = next(number, slot) else {
                ended = true;
                break;
            };
            number += 1;
            device.submit(request).expect("there is room for the depth");
            open[slot as usize] = Some((request, device.now()));
            flying += 1;
        }
        if flying == 0 || device.now() >= until {
            return;
        }
        done.clear();
        let before = device.now();
        device.reap(1, until, &mut done).expect("the device works");
        assert!(device.now() >= before, "time went back from {before:?} to {:?}", device.now());
        for &completion in &done {
            let slot = completion.slot.0;
            let (request, submitted) =
                open[slot as usize].take().expect("a slot completes only once");
            flying -= 1;
            ready.push(slot);
            each(Event { request, submitted, completed: device.now(), completion });
        }
    }
}

/// Every completion of `count` requests.
pub fn run<D: Device>(
    device: &mut D,
    depth: u32,
    count: u64,
    mut next: impl FnMut(u64, u32) -> Request,
) -> Vec<Event> {
    let mut events = Vec::new();
    let next = |number, slot| (number < count).then(|| next(number, slot));
    closed_loop(device, depth, Instant::MAX, next, |event| events.push(event));
    events
}

/// Completions a second of a closed loop of equal requests between `from` and `until`.
pub fn rate<D: Device>(
    device: &mut D,
    depth: u32,
    warm_up: Nanos,
    measured: Nanos,
    mut next: impl FnMut(u64, u32) -> Request,
) -> f64 {
    let from = device.now() + warm_up;
    let until = from + measured;
    let mut count = 0u64;
    closed_loop(
        device,
        depth,
        until,
        |number, slot| Some(next(number, slot)),
        |event| count += u64::from(event.completed > from),
    );
    count as f64 / measured.as_secs_f64()
}

/// Addresses without a pattern, from 0 in `0..count`.
pub fn scatter(number: u64, count: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (z ^ (z >> 32)) % count
}
