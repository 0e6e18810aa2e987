//! The measuring loop allocates nothing for a request: what it needs it has before it begins.
#![expect(clippy::expect_used, reason = "a test")]

#[path = "it/help.rs"]
#[expect(dead_code, reason = "the other tests need more of it")]
mod help;

use device::{Memory, MemoryShape, Null, VirtualClock};
use engine::{Drive, Limits, Shared, Visit};
use help::{TICK, depth, for_operations, for_time, ops, stream, visit};
use suite::model::{Access, Operation, Pacing, Stop, Stream};
use units::{Bytes, Nanos};

/// What a loop allocates, and how many requests it makes.
fn allocations<D: device::Device>(visit: &Visit, device: &mut D) -> (u64, u64) {
    let shared = Shared::new(&visit.streams);
    let mut drive =
        Drive::new(visit, &visit.workers(), &shared, Limits::default()).expect("a sound visit");
    drive.prepare(device);
    let begin = device.now();
    let mut outcome = Ok(());
    let found = allocation_counter::measure(|| outcome = drive.run(device, begin, &mut ()));
    outcome.expect("the device works");
    let result = engine::merge(visit, drive.finish());
    let done = result.streams.iter().flat_map(|stream| &stream.ops).map(|op| op.requests).sum();
    (found.count_total, done)
}

/// Loads that take different ways through the loop.
fn loads() -> Vec<(&'static str, Stream)> {
    let deep = |queue_depth| Stream { queue_depth, ..stream() };
    let mut mixed = deep(8);
    ops(&mut mixed, &[(Operation::Read, 0.7), (Operation::Write, 0.3)]);
    let mut writes = deep(4);
    ops(&mut writes, &[(Operation::Write, 1.0)]);
    let think = Pacing::Closed { think: Nanos::micros(50), burst: 3 };
    vec![
        ("one at a time", stream()),
        ("deep", deep(32)),
        ("sequential", Stream { access: Access::Sequential { shared: false }, ..deep(4) }),
        ("a mix", mixed),
        ("writes", writes),
        ("pauses", Stream { pacing: think, ..deep(4) }),
    ]
}

fn with(stream: Stream, stop: Stop) -> Visit {
    visit(vec![Stream { stop, ..stream }])
}

#[test]
fn a_loop_that_ends_by_time_allocates_nothing_for_a_request() {
    for (name, stream) in loads() {
        let of = |time| {
            let visit = with(stream.clone(), for_time(time));
            let mut null = Null::new(VirtualClock::default(), TICK, depth(&visit));
            allocations(&visit, &mut null)
        };
        let [(few, least), (many, most)] = [of(Nanos::millis(50)), of(Nanos::secs(1))];
        assert!(most > 10 * least && least > 500, "{name}: {least} and {most} requests");
        // Before the first request, as for the list of those that come back together.
        assert!(few == many && few <= 8, "{name}: {few} for {least} requests, {many} for {most}");
    }
}

#[test]
fn more_requests_allocate_no_more() {
    for (name, stream) in loads() {
        let of = |operations| {
            let visit = with(stream.clone(), for_operations(operations));
            let shape = MemoryShape {
                files: 1,
                file_size: Bytes::mib(1),
                slots: depth(&visit),
                buffer: Bytes::new(help::BLOCK),
                tick: TICK,
            };
            allocations(&visit, &mut Memory::new(VirtualClock::default(), shape)).0
        };
        // Without a planned time more room is made at times, so not for each request.
        let [few, many] = [of(5_000), of(50_000)];
        assert!(many <= few + 50, "{name}: {few} for 5,000 requests, {many} for 50,000");
    }
}
