//! Nothing of the ramp counts.

use device::model::FreezeSpec;
use device::{Errno, Fault, FaultRule, Op, VanishSeen};
use engine::{Limits, Observer, Shared, WorkerId};
use suite::model::{Access, Operation, ReplayRequest, Stop, Stream};
use units::{Bytes, Instant, Nanos};

use crate::help::*;

fn with_ramp(stop: Stop, threads: u32, depth: u32) -> Stream {
    Stream { threads, queue_depth: depth, stop: Stop { ramp: Nanos::secs(1), ..stop }, ..stream() }
}

#[test]
fn what_completes_in_the_ramp_is_told_apart_and_time_counts_from_its_end() {
    let v = visit(vec![with_ramp(for_time(Nanos::secs(2)), 2, 3)]);
    let mut device = model_with(&v, Nanos::micros(130), |_| {});
    let played = play(&v, &mut device);
    let second = Instant::new(1_000_000_000);
    let before = device.log.iter().filter(|e| e.completed.unwrap() < second).count() as u64;
    let stream = &played.result.streams[0];
    assert_eq!(stream.ramp_requests, before);
    assert_eq!(played.total(), device.log.len() as u64 - before);
    let last = device.log.iter().filter_map(|e| e.completed).max().unwrap();
    assert_eq!(played.result.elapsed, last.since(second));
    assert_eq!(played.result.begin, second);
    let rows: u64 = stream.ops[0].series.rows.iter().map(|r| r.requests).sum();
    assert_eq!(rows, played.total());
    assert_eq!(played.result.completions.bits, played.result.elapsed.get() / 1_000_000 + 1);
}

#[test]
fn budgets_pay_for_what_is_in_flight_when_the_ramp_ends() {
    // Those counted beside the budget: depth requests too many.
    for (threads, depth) in [(1, 1), (1, 8), (3, 5)] {
        for (stop, wanted) in [
            (for_operations(500), 500),
            (
                Stop {
                    operations: None,
                    bytes: Some(Bytes::new(200 * BLOCK)),
                    ..for_operations(1)
                },
                200,
            ),
        ] {
            let v = visit(vec![with_ramp(stop, threads, depth)]);
            let mut device = model_with(&v, Nanos::micros(130), |_| {});
            let played = play(&v, &mut device);
            assert_eq!(played.total(), wanted, "{threads} x {depth}");
            assert!(played.result.streams[0].ramp_requests > 1000);
        }
    }
}

#[test]
fn slow_requests_gaps_and_failures_of_the_ramp_leave_no_trace_in_the_counts() {
    let v = visit(vec![with_ramp(for_time(Nanos::secs(1)), 1, 2)]);
    let frozen = model_with(&v, Nanos::micros(100), |spec| {
        spec.freezes = vec![FreezeSpec { start: Nanos::millis(100), length: Nanos::millis(500) }];
    });
    let rule = FaultRule::new(Fault::Error(Errno::EIO)).nth(10);
    let mut device = device::Faulty::new(frozen, &[rule], 1).unwrap();
    let limits = Limits { failures: 1, ..Limits::default() };
    let played = play_with(&v, &mut device, limits, &mut ());
    let read = played.op(Op::Read).unwrap();
    assert_eq!(read.slow, []);
    assert_eq!(read.errors, []);
    assert_eq!(played.result.streams[0].workers[0].gaps, []);
    assert!(read.latency_ns_max <= 200_000);
    assert_eq!(played.codes(), ["io-error"], "but it is told of");
}

#[test]
fn a_visit_that_ends_in_its_ramp_measured_nothing() {
    // What the ramp did was handed over as if it had been measured.
    let v = visit(vec![with_ramp(for_time(Nanos::secs(2)), 2, 2)]);
    let gone = Fault::Vanish { errno: Errno::ENODEV, seen: VanishSeen::Device };
    let failing = FaultRule::new(Fault::Error(Errno::EIO)).nth(2000);
    for rule in [FaultRule::new(gone).since(Nanos::millis(500)), failing] {
        let mut device = device::Faulty::new(model(&v), &[rule], 1).unwrap();
        let played = play(&v, &mut device);
        assert_eq!(played.total(), 0);
        assert_eq!(played.result.elapsed, Nanos::ZERO);
        assert!(played.result.streams[0].ramp_requests > 1000);
    }
}

#[test]
fn a_list_that_ends_in_the_ramp_measured_nothing() {
    let one = ReplayRequest { op: Operation::Read, offset: Bytes::ZERO, length: Bytes::kib(4) };
    let mut s = with_ramp(for_operations(10), 1, 1);
    s.access = Access::Replay { requests: vec![one; 10] };
    let v = visit(vec![s]);
    let played = play(&v, &mut model(&v));
    assert_eq!(played.total(), 0);
    assert_eq!(played.result.streams[0].ramp_requests, 10);
}

#[test]
fn streams_with_ramps_of_their_own_share_one_time_line() {
    // Each stream's map counted from its own start and was laid over the others' as it was.
    let early = Stream { name: "early".into(), stop: for_operations(3), ..stream() };
    let late = Stream { name: "late".into(), ..with_ramp(for_time(Nanos::millis(500)), 1, 1) };
    let v = visit(vec![early, late]);
    let mut device = model_with(&v, Nanos::micros(100), |spec| {
        spec.freezes = vec![FreezeSpec { start: Nanos::millis(1200), length: Nanos::millis(200) }];
    });
    let played = play(&v, &mut device);
    let map = &played.result.completions;
    assert!(map.get(0) && !map.get(500) && map.get(1000) && map.get(1499));
    assert!(!map.get(1300) && map.get(1400));
    let late = &played.result.streams[1];
    assert_eq!(late.ops[0].series.rows.len(), 16);
    assert_eq!(late.ops[0].series.rows[9].requests, 0);
    assert_ne!(late.ops[0].series.rows[10].requests, 0);
    let gap = late.workers[0].gaps[0];
    assert_eq!((gap.start_ns, gap.length_ns), (1_200_000_000, 200_000_000));
    let slow = late.ops[0].slow[0];
    assert!(slow.at_ns.abs_diff(1_400_000_000) < 200_000, "{slow:?}");
    assert!(played.result.elapsed >= Nanos::millis(1500));
    assert!(played.result.elapsed < Nanos::millis(1501));
}

#[derive(Default)]
struct Marks(Vec<(WorkerId, &'static str)>);

impl Observer for Marks {
    fn measured_begins(&mut self, worker: WorkerId) {
        self.0.push((worker, "begins"));
    }
    fn measured_ends(&mut self, worker: WorkerId) {
        self.0.push((worker, "ends"));
    }
}

#[test]
fn the_observer_is_told_once_of_each_worker() {
    let v = visit(vec![with_ramp(for_time(Nanos::secs(1)), 3, 2)]);
    let mut marks = Marks::default();
    play_with(&v, &mut model(&v), Limits::default(), &mut marks);
    for id in v.workers() {
        let own: Vec<_> = marks.0.iter().filter(|m| m.0 == id).map(|m| m.1).collect();
        assert_eq!(own, ["begins", "ends"]);
    }
}

#[test]
fn a_visit_may_begin_anywhere_on_the_clock() {
    let v = visit(vec![with_ramp(for_time(Nanos::secs(1)), 1, 2)]);
    let mut device = model(&v);
    let first = play(&v, &mut device);
    let second = play(&v, &mut device);
    assert_eq!(first.total(), second.total());
    assert_eq!(first.result.elapsed, second.result.elapsed);
    let shared = Shared::new(&v.streams);
    assert_eq!(shared.pulses().len(), 1);
}
