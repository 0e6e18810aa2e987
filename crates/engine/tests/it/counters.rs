//! Requests and bytes equal what was asked and what the device saw.

use device::{Device, Op};
use engine::Visit;
use suite::model::{Access, Operation, Spread, Stop, Stream};
use units::{Bytes, Nanos};

use crate::help::*;

/// What the records say and what the device saw, by operation.
fn assert_same<D: Device>(visit: &Visit, device: &mut Recording<D>, what: &str) -> Played {
    let played = play(visit, device);
    assert_eq!(played.error, None, "{what}");
    assert_eq!(played.codes(), Vec::<&str>::new(), "{what}");
    for op in Op::ALL {
        let seen = device.log.iter().filter(|e| e.request.op == op);
        let requests = seen.clone().count() as u64;
        let bytes: u64 = seen.map(|e| u64::from(e.request.length)).sum();
        let records = played.result.streams.iter().flat_map(|s| &s.ops);
        let of: Vec<_> = records.filter(|r| r.op == op.name()).collect();
        assert_eq!(of.iter().map(|r| r.requests).sum::<u64>(), requests, "{what}: {op}");
        assert_eq!(of.iter().map(|r| r.bytes).sum::<u64>(), bytes, "{what}: {op}");
    }
    let by_worker: u64 =
        played.result.streams.iter().flat_map(|s| &s.workers).map(|w| w.requests).sum();
    assert_eq!(by_worker, played.total(), "{what}: by worker");
    played
}

fn on_every_twin(visit: &Visit, check: impl Fn(&Played, &str)) {
    check(&assert_same(visit, &mut null(visit), "null"), "null");
    check(&assert_same(visit, &mut memory(visit), "memory"), "memory");
    check(&assert_same(visit, &mut model(visit), "model"), "model");
    let wrap = |inner| device::Faulty::new(inner, &[], 1).unwrap();
    let mut faultless = Recording::new(wrap(memory(visit)));
    check(&assert_same(visit, &mut faultless, "faulty"), "faulty");
}

fn shapes() -> impl Iterator<Item = Stream> {
    [(1, 1), (1, 7), (3, 1), (5, 64)].into_iter().map(|(threads, queue_depth)| {
        let mut s = Stream { threads, queue_depth, ..stream() };
        ops(&mut s, &[(Operation::Read, 2.0), (Operation::Write, 1.0)]);
        s
    })
}

#[test]
fn so_many_operations_are_exactly_so_many() {
    for n in [1, 2, 63, 100, 1001] {
        for s in shapes() {
            let v = visit(vec![Stream { stop: for_operations(n), ..s }]);
            on_every_twin(&v, |played, twin| assert_eq!(played.total(), n, "{twin}"));
        }
    }
}

#[test]
fn bytes_stop_at_the_request_that_reaches_them() {
    for (bytes, requests) in [(1, 1), (4096, 1), (4097, 2), (1 << 20, 256)] {
        let stop = Stop { bytes: Some(Bytes::new(bytes)), ..for_operations(1) };
        let stop = Stop { operations: None, ..stop };
        for s in shapes() {
            let v = visit(vec![Stream { stop, ..s }]);
            on_every_twin(&v, |played, twin| assert_eq!(played.total(), requests, "{twin}"));
        }
    }
}

#[test]
fn bytes_of_mixed_sizes_stop_at_the_request_that_reaches_them() {
    let mut s = Stream { threads: 2, ..stream() };
    s.mix.classes = vec![class(Operation::Read, 1.0, 4096), class(Operation::Write, 1.0, 3 * 4096)];
    s.stop = Stop { bytes: Some(Bytes::new(1 << 20)), operations: None, ..s.stop };
    let v = visit(vec![s]);
    let mut device = model(&v);
    let played = assert_same(&v, &mut device, "model");
    let last = u64::from(device.log.last().unwrap().request.length);
    let issued: u64 = device.log.iter().map(|e| u64::from(e.request.length)).sum();
    assert_eq!(played.bytes(), issued);
    assert!(issued >= 1 << 20 && issued - last < 1 << 20, "{issued} with a last of {last}");
}

#[test]
fn time_stops_the_issue_and_what_is_in_flight_still_counts() {
    for s in shapes() {
        let v = visit(vec![Stream { stop: for_time(Nanos::millis(250)), ..s }]);
        on_every_twin(&v, |played, twin| assert!(played.total() > 1000, "{twin}"));
        let mut device = model(&v);
        let played = assert_same(&v, &mut device, "model");
        let end = 250_000_000;
        assert!(device.log.iter().all(|e| e.submitted.get() < end));
        let last = device.log.iter().filter_map(|e| e.completed).max().unwrap();
        assert_eq!(played.result.elapsed.get(), last.get());
        assert!((end..end + 1_000_000).contains(&last.get()), "{last:?}");
    }
}

#[test]
fn the_first_limit_met_ends_the_stream() {
    let stop = Stop {
        ramp: Nanos::ZERO,
        time: Some(Nanos::millis(1)),
        bytes: Some(Bytes::mib(1)),
        operations: Some(1000),
        until: suite::model::Until::All,
        last: suite::model::Last::Whole,
        extend: None,
    };
    // 100 us a request: time is first. Then operations, then bytes.
    for (stop, requests) in [
        (stop, 10),
        (Stop { operations: Some(7), ..stop }, 7),
        (Stop { bytes: Some(Bytes::new(5 * BLOCK)), ..stop }, 5),
    ] {
        let v = visit(vec![Stream { stop, ..stream() }]);
        let played = assert_same(&v, &mut model(&v), "model");
        assert_eq!(played.total(), requests, "{stop:?}");
    }
}

#[test]
fn streams_count_apart_and_end_apart() {
    let mut writes = Stream { name: "w".into(), threads: 2, queue_depth: 3, ..stream() };
    ops(&mut writes, &[(Operation::Write, 1.0)]);
    writes.stop = for_operations(1000);
    let v = visit(vec![stream(), writes]);
    on_every_twin(&v, |played, twin| {
        let by_stream: Vec<u64> =
            played.result.streams.iter().map(|s| s.ops.iter().map(|o| o.requests).sum()).collect();
        assert_eq!(by_stream, [100, 1000], "{twin}");
    });
}

#[test]
fn every_operation_is_counted_under_its_name() {
    let mut s = Stream { queue_depth: 4, stop: for_operations(5000), ..stream() };
    s.mix.classes = vec![
        class(Operation::Read, 1.0, 4096),
        class(Operation::Write, 1.0, 4096),
        class(Operation::Fsync, 1.0, 0),
        class(Operation::Fdatasync, 1.0, 0),
        class(Operation::SyncRange, 1.0, 4096),
        class(Operation::Trim, 1.0, 8192),
    ];
    let v = visit(vec![s]);
    on_every_twin(&v, |played, twin| {
        let names: Vec<&str> = played.result.streams[0].ops.iter().map(|o| &*o.op).collect();
        let other = |op: &Op| op.in_directory() || matches!(op, Op::CopyRange | Op::Commit);
        let of_blocks = Op::ALL.into_iter().filter(|op| !other(op));
        assert_eq!(names, of_blocks.map(Op::name).collect::<Vec<_>>(), "{twin}");
    });
}

#[test]
fn a_request_without_length_is_inside_the_file() {
    // Positions of an fsync went up to and with the region's end, which is the file after it.
    let mut s = Stream { access: Access::Uniform, stop: for_operations(2000), ..stream() };
    s.mix.classes = vec![class(Operation::Fsync, 1.0, 0)];
    s.region.length = Bytes::new(4 * BLOCK);
    let v = Visit { files: 2, file_size: Bytes::new(2 * BLOCK), ..visit(vec![s]) };
    let mut device = memory(&v);
    assert_same(&v, &mut device, "memory");
    assert!(device.log.iter().all(|e| e.request.file.0 < 2));
}

#[test]
fn several_drives_share_one_budget() {
    let s = Stream { threads: 4, queue_depth: 3, stop: for_operations(10_001), ..stream() };
    let v = visit(vec![s]);
    let shared = engine::Shared::new(&v.streams);
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = v
            .workers()
            .into_iter()
            .map(|id| {
                let (v, shared) = (&v, &shared);
                scope.spawn(move || {
                    let limits = engine::Limits::default();
                    let mut drive = engine::Drive::new(v, &[id], shared, limits).unwrap();
                    let mut device = null(v);
                    drive.prepare(&mut device);
                    drive.run(&mut device, units::Instant::ZERO, &mut ()).unwrap();
                    (drive.finish(), device.log.len() as u64)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
    });
    let seen: u64 = results.iter().map(|(_, n)| n).sum();
    let results = results.into_iter().flat_map(|(r, _)| r).collect();
    let result = engine::merge(&v, results);
    assert_eq!(seen, 10_001);
    assert_eq!(result.streams[0].ops[0].requests, 10_001);
}

#[test]
fn files_per_worker_stay_apart() {
    let mut s = Stream { threads: 3, queue_depth: 2, stop: for_operations(3000), ..stream() };
    s.region.spread = Spread::FilePerWorker;
    let v = Visit { files: 2, ..visit(vec![s]) };
    let mut device = null(&v);
    assert_same(&v, &mut device, "null");
    for event in &device.log {
        let worker = event.request.slot.0 / 2;
        assert_eq!(event.request.file.0, worker % 2);
    }
}
