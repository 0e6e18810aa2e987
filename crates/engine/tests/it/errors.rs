//! What goes wrong is named, counted once, and ends what it must.

use device::{Device, Errno, Fault, FaultRule, Faulty, Op, VanishSeen};
use engine::{Limits, Shared, Visit};
use suite::model::{Operation, Stream};
use units::{ByteOffset, Bytes, Nanos};

use crate::help::*;

fn reads(threads: u32, depth: u32, n: u64) -> Visit {
    visit(vec![Stream { threads, queue_depth: depth, stop: for_operations(n), ..stream() }])
}

fn faulty<D: Device>(inner: D, rule: FaultRule) -> Faulty<D> {
    Faulty::new(inner, &[rule], 9).unwrap()
}

fn passing(failures: u64) -> Limits {
    Limits { failures, ..Limits::default() }
}

#[test]
fn the_first_failure_is_named_and_ends_the_visit() {
    let mut v = reads(1, 1, 1000);
    ops(&mut v.streams[0], &[(Operation::Write, 1.0)]);
    let mut device = faulty(memory(&v), FaultRule::new(Fault::Error(Errno::EIO)).nth(41));
    let played = play(&v, &mut device);
    assert!(played.result.failed && !played.result.hanging);
    assert_eq!(played.total(), 40);
    assert_eq!(played.op(Op::Write).unwrap().errors, [(5, 1)]);
    let failure = played.workers[0].first_failure.unwrap();
    let log = &device.inner().log;
    assert_eq!(log.len(), 40, "nothing is issued after it");
    // What failed never reached the device: the 41st of the stream.
    let mut whole = memory(&v);
    play(&v, &mut whole);
    assert_eq!(failure.offset, whole.log[40].request.offset.get());
    assert_eq!(
        played.warnings(),
        [format!(
            "stream `s`, worker 0: write of 4096 bytes at byte {} of file 0 failed: EIO \
             (Input/output error)",
            failure.offset
        )]
    );
}

#[test]
fn so_many_failures_are_counted_and_passed_over() {
    for (allowed, ends) in [(9, true), (10, false), (100, false)] {
        let v = reads(1, 4, 1000);
        let rules: Vec<FaultRule> = (0..10)
            .map(|i| {
                let errno = if i % 2 == 0 { Errno::EIO } else { Errno::ENODEV };
                FaultRule::new(Fault::Error(errno)).nth(50 + 7 * i)
            })
            .collect();
        let mut device = Faulty::new(model(&v), &rules, 1).unwrap();
        let played = play_with(&v, &mut device, passing(allowed), &mut ());
        let record = played.op(Op::Read).unwrap();
        assert_eq!(record.errors, [(5, 5), (19, 5)], "allowed {allowed}");
        assert_eq!(played.total() < 990, ends, "allowed {allowed}");
        if !ends {
            assert_eq!(played.total(), 990);
        }
        assert_eq!(device.inner().log.len() as u64, played.total());
        assert_eq!(played.codes(), ["io-error"]);
    }
}

#[test]
fn short_transfers_are_neither_requests_nor_bytes() {
    let v = reads(1, 2, 100);
    let short = Fault::Short(Bytes::new(512));
    let mut device = faulty(memory(&v), FaultRule::new(short).rate(0.2));
    let played = play_with(&v, &mut device, passing(1000), &mut ());
    let record = played.op(Op::Read).unwrap();
    let seen = device.inner().log.iter().filter(|e| e.result == Some(Ok(512))).count() as u64;
    assert!(seen > 5);
    assert_eq!((record.short, record.requests), (seen, 100 - seen));
    assert_eq!(record.bytes, record.requests * BLOCK);
    assert_eq!(record.latency.count(), record.requests);
    assert_eq!(played.codes(), ["short-transfer"]);
    assert!(played.warnings()[0].ends_with("moved 512 bytes only"), "{:?}", played.warnings());
}

#[test]
fn the_failure_of_one_worker_stops_the_others() {
    let mut v = reads(3, 2, 1);
    v.streams[0].stop = for_time(Nanos::secs(100));
    let rule = FaultRule::new(Fault::Error(Errno::EIO)).since(Nanos::millis(333)).nth(1);
    let mut device = faulty(model(&v), rule);
    let played = play(&v, &mut device);
    assert!(played.result.elapsed < Nanos::millis(335), "{}", played.result.elapsed);
    let failed = played.workers.iter().filter(|w| w.first_failure.is_some()).count();
    assert_eq!(failed, 1);
}

#[test]
fn a_stop_from_outside_ends_other_drives_within_100_ms() {
    let mut v = reads(1, 2, 1);
    v.streams[0].stop = for_time(Nanos::secs(100));
    let shared = Shared::new(&v.streams);
    let mut device = StopAt {
        inner: model(&v),
        at: Nanos::millis(777),
        what: |shared| shared.stop(),
        shared: &shared,
    };
    let limits = Limits::default();
    let played = play_shared(&v, &v.workers(), &shared, &mut device, limits, &mut ());
    let elapsed = played.result.elapsed;
    assert!(Nanos::millis(777) <= elapsed && elapsed < Nanos::millis(878), "{elapsed}");
    assert_eq!(played.total(), device.inner.log.len() as u64, "all that was in flight counts");
    assert!(!played.result.hanging && !played.result.failed);
}

/// Gives an order to the workers at some time.
struct StopAt<'a, D> {
    inner: D,
    at: Nanos,
    what: fn(&Shared),
    shared: &'a Shared,
}

impl<D: Device> Device for StopAt<'_, D> {
    fn submit(&mut self, request: device::Request) -> Result<(), device::Full> {
        self.inner.submit(request)
    }
    fn reap(
        &mut self,
        min: usize,
        until: units::Instant,
        done: &mut Vec<device::Completion>,
    ) -> Result<(), device::DeviceError> {
        if self.inner.now().get() >= self.at.get() {
            (self.what)(self.shared);
        }
        self.inner.reap(min, until, done)
    }
    fn now(&self) -> units::Instant {
        self.inner.now()
    }
    fn buffer(&mut self, slot: device::Slot) -> &mut [u8] {
        self.inner.buffer(slot)
    }
}

#[test]
fn a_lost_completion_is_given_up_after_the_hang_limit_and_named() {
    for (threads, depth) in [(1, 1), (1, 4), (3, 2)] {
        let mut v = reads(threads, depth, 1);
        v.streams[0].stop = for_time(Nanos::secs(5));
        let nth = FaultRule::new(Fault::Lost).since(Nanos::secs(2)).nth(1);
        let mut device = faulty(model(&v), nth);
        let limits = Limits { hang: Nanos::secs(7), failures: 0 };
        let played = play_with(&v, &mut device, limits, &mut ());
        assert!(played.result.hanging && !played.result.failed);
        let log = &device.inner().log;
        // A lost request is in flight for ever: the inner device saw it, and it is the one
        // that was not counted.
        assert_eq!(played.total(), log.len() as u64 - 1);
        let hanging: Vec<_> = played.workers.iter().flat_map(|w| &w.hanging).collect();
        let [one] = hanging[..] else { panic!("{hanging:?}") };
        let lost = log.iter().find(|e| e.submitted.get() >= 2_000_000_000).unwrap();
        assert_eq!(one.offset, lost.request.offset.get());
        assert_eq!(one.op, Op::Read);
        // Stop rule at 5 s, limit of 7 s, looked at every 100 ms.
        let given_up = lost.submitted + one.age;
        assert!(given_up.get().abs_diff(12_050_000_000) <= 60_000_000, "{given_up:?}");
        assert_eq!(played.codes(), ["hanging"]);
        assert!(
            played.warnings()[0].contains("had not come back after 10"),
            "{:?}",
            played.warnings()
        );
        assert!(played.result.elapsed >= Nanos::secs(12), "waiting is part of what was measured");
    }
}

#[test]
fn the_last_request_of_a_budget_is_given_up_after_the_hang_limit_too() {
    // With every slot out, nobody asked whether there was more to do: ten times as long.
    let bytes = suite::model::Stop {
        bytes: Some(Bytes::new(1000 * BLOCK)),
        operations: None,
        ..for_operations(1)
    };
    for stop in [for_operations(1000), bytes] {
        for (threads, depth) in [(1, 1), (1, 3), (2, 2)] {
            let mut v = reads(threads, depth, 1);
            v.streams[0].stop = stop;
            let rule = FaultRule::new(Fault::Lost).nth(1000);
            let mut device = faulty(model(&v), rule);
            let limits = Limits { hang: Nanos::secs(10), failures: 0 };
            let played = play_with(&v, &mut device, limits, &mut ());
            assert_eq!(played.total(), 999);
            let ages: Vec<Nanos> =
                played.workers.iter().flat_map(|w| &w.hanging).map(|h| h.age).collect();
            let [age] = ages[..] else { unreachable!("{ages:?}") };
            assert!(Nanos::secs(10) <= age && age <= Nanos::millis(10_300), "{age}");
        }
    }
}

#[test]
fn silence_without_an_end_in_sight_is_given_up_too() {
    let v = reads(1, 2, 1_000_000);
    let mut device = faulty(model(&v), FaultRule::new(Fault::Lost).since(Nanos::secs(1)));
    let limits = Limits { hang: Nanos::secs(1), failures: 0 };
    let played = play_with(&v, &mut device, limits, &mut ());
    assert!(played.result.hanging);
    assert_eq!(played.workers[0].hanging.len(), 2);
    let elapsed = played.result.elapsed;
    assert!(elapsed.get().abs_diff(11_050_000_000) < 100_000_000, "{elapsed}");
}

#[test]
fn what_comes_back_after_it_was_given_up_is_counted_nowhere() {
    // One drive plays both streams; the second was told of as hanging, came back while the
    // first went on, and upset the count of requests in flight.
    let long = Stream { stop: for_time(Nanos::secs(100)), ..stream() };
    let mut short = Stream { name: "short".into(), stop: for_operations(5), ..stream() };
    // With one slot alone nobody would ask whether there is more to do.
    short.queue_depth = 2;
    ops(&mut short, &[(Operation::Write, 1.0)]);
    let v = visit(vec![long, short]);
    let rule = FaultRule::new(Fault::Late(Nanos::secs(60))).on(Op::Write).nth(5);
    let mut device = faulty(model(&v), rule);
    let limits = Limits { hang: Nanos::secs(10), failures: 0 };
    let played = play_with(&v, &mut device, limits, &mut ());
    let writes = &played.result.streams[1].ops[0];
    assert_eq!(writes.requests, 4);
    assert_eq!(played.workers[1].hanging.len(), 1);
    assert!(played.workers[0].hanging.is_empty());
    let reads = device.inner().count(Op::Read) as u64;
    assert_eq!(played.result.streams[0].ops[0].requests, reads);
    assert!(reads > 900_000);
}

#[test]
fn abandoning_leaves_at_once_and_names_what_is_out() {
    let mut v = reads(2, 3, 1);
    v.streams[0].stop = for_time(Nanos::secs(100));
    let shared = Shared::new(&v.streams);
    let inner = faulty(model(&v), FaultRule::new(Fault::Lost).since(Nanos::secs(1)));
    let mut device =
        StopAt { inner, at: Nanos::secs(3), what: |shared| shared.abandon(), shared: &shared };
    let limits = Limits::default();
    let played = play_shared(&v, &v.workers(), &shared, &mut device, limits, &mut ());
    assert_eq!(played.workers.iter().map(|w| w.hanging.len()).sum::<usize>(), 6);
    assert!(device.now().get() < 3_300_000_000, "{:?}", device.now());
    assert!(shared.pulses().iter().all(engine::Pulse::finished));
}

#[test]
fn who_leaves_at_once_leaves_nothing_hanging() {
    let mut v = reads(2, 3, 1);
    v.streams[0].stop = for_time(Nanos::secs(100));
    let shared = Shared::new(&v.streams);
    let inner = model(&v);
    let mut device =
        StopAt { inner, at: Nanos::secs(3), what: |shared| shared.abandon(), shared: &shared };
    let played = play_shared(&v, &v.workers(), &shared, &mut device, Limits::default(), &mut ());
    assert!(played.workers.iter().all(|w| w.hanging.is_empty()));
    assert!(played.result.left && !played.result.hanging && played.result.warnings.is_empty());
    assert!(device.now().get() < 3_300_000_000, "{:?}", device.now());
}

#[test]
fn a_device_that_is_gone_gives_what_was_measured_so_far() {
    let mut v = reads(2, 2, 1);
    v.streams[0].stop = for_time(Nanos::secs(100));
    let gone = Fault::Vanish { errno: Errno::ENODEV, seen: VanishSeen::Device };
    let mut device = faulty(model(&v), FaultRule::new(gone).since(Nanos::millis(1500)));
    let played = play(&v, &mut device);
    assert_eq!(played.error, Some(device::DeviceError::Gone { errno: Errno::ENODEV }));
    let completed = device.inner().log.iter().filter(|e| e.completed.is_some()).count() as u64;
    assert!(played.total() > 50_000);
    // What the inner device handed over in the last reap may not have been handed on.
    assert!(completed - played.total() <= 4, "{completed} and {}", played.total());
    let record = played.op(Op::Read).unwrap();
    let rows: u64 = record.series.rows.iter().map(|r| r.requests).sum();
    assert_eq!(rows, record.requests);
}

#[test]
fn a_device_whose_every_request_fails_ends_the_visit() {
    let mut v = reads(2, 2, 1);
    v.streams[0].stop = for_time(Nanos::secs(100));
    let gone = Fault::Vanish { errno: Errno::ENXIO, seen: VanishSeen::Requests };
    let mut device = faulty(model(&v), FaultRule::new(gone).since(Nanos::millis(1500)));
    let played = play(&v, &mut device);
    assert_eq!(played.error, None);
    assert!(played.result.failed);
    assert!(played.result.elapsed < Nanos::millis(1502), "{}", played.result.elapsed);
    let errors: u64 = played.op(Op::Read).unwrap().errors.iter().map(|e| e.1).sum();
    assert!((1..=4).contains(&errors), "{errors}");
}

#[test]
fn no_space_is_counted_from_the_write_that_crosses_the_limit() {
    let mut v = reads(1, 1, 100);
    ops(&mut v.streams[0], &[(Operation::Write, 1.0)]);
    let rule = FaultRule::new(Fault::NoSpaceAfter(Bytes::new(10 * BLOCK + 1024)));
    let played = play_with(&v, &mut faulty(memory(&v), rule), passing(1000), &mut ());
    let record = played.op(Op::Write).unwrap();
    assert_eq!((record.requests, record.short), (10, 1));
    assert_eq!(record.errors, [(28, 89)]);
}

#[test]
fn failures_in_one_place_are_those_of_that_place() {
    let v = reads(2, 4, 2000);
    let rule = FaultRule::new(Fault::Error(Errno::EIO))
        .range(ByteOffset::new(64 * BLOCK), Bytes::new(16 * BLOCK));
    let played = play_with(&v, &mut faulty(memory(&v), rule), passing(10_000), &mut ());
    let record = played.op(Op::Read).unwrap();
    let errors: u64 = record.errors.iter().map(|e| e.1).sum();
    assert_eq!(errors + record.requests, 2000);
    assert_binomial(errors, 2000, 16.0 / 256.0, "failures");
    for worker in &played.workers {
        let offset = worker.first_failure.unwrap().offset / BLOCK;
        assert!((64..80).contains(&offset));
    }
}
