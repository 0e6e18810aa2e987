//! Sessions that share a flush.

use device::{Fault, FaultRule, Faulty, Op};
use engine::Visit;
use suite::model::{Access, Arrivals, Operation, Pacing, Stream, SyncAtEnd, SyncPolicy};
use units::{Bytes, Nanos};

use crate::help::*;

/// One flush in flight, which takes 2 ms; a write takes next to nothing.
fn log(sessions: u32, time: Nanos) -> Visit {
    let flush = SyncPolicy {
        op: Operation::Fdatasync,
        every: Some(1),
        shared: false,
        each_file: false,
        at_end: SyncAtEnd::No,
    };
    let mut s = Stream {
        access: Access::Sequential { shared: true },
        sync: Some(flush),
        queue_depth: sessions,
        stop: for_time(time),
        ..stream()
    };
    ops(&mut s, &[(Operation::Commit, 1.0)]);
    visit(vec![s])
}

fn slow_to_flush(visit: &Visit) -> Recording<device::Model> {
    model_with(visit, Nanos::micros(10), |spec| spec.sync_time = Nanos::millis(2))
}

fn mean_latency_ms(played: &Played) -> f64 {
    let op = played.op(Op::Commit).expect("commits");
    op.latency_ns_sum as f64 / op.requests as f64 / 1e6
}

#[test]
fn half_of_the_sessions_share_a_flush_and_each_waits_for_two() {
    for (sessions, per_flush, flushes_waited) in [(1, 1.0, 1.0), (2, 1.0, 2.0), (8, 4.0, 2.0)] {
        let v = log(sessions, Nanos::secs(2));
        let mut device = slow_to_flush(&v);
        let played = play(&v, &mut device);
        let flushes = played.requests(Op::Fdatasync);
        let share = played.requests(Op::Commit) as f64 / flushes as f64;
        assert!((share / per_flush - 1.0).abs() < 0.01, "{sessions}: {share}");
        // 2 ms and the write before it.
        assert!((985..=996).contains(&flushes), "{sessions}: {flushes}");
        let wait = mean_latency_ms(&played) / 2.01;
        assert!((wait / flushes_waited - 1.0).abs() < 0.02, "{sessions}: {wait}");
        // Never two at once, and a write that nobody flushes is nobody's.
        let alternates =
            |pair: &[device::RecordedRequest]| pair[0].request.op != pair[1].request.op;
        assert!(device.log.windows(2).all(alternates));
        assert!(played.requests(Op::Write).abs_diff(flushes) <= 1, "{sessions}");
        assert_eq!(played.op(Op::Commit).unwrap().bytes, played.requests(Op::Commit) * BLOCK);
    }
}

#[test]
fn a_commit_of_two_writes_is_two_and_a_flush() {
    let mut v = log(1, Nanos::millis(20));
    v.streams[0].mix.classes[0].block_size = Bytes::kib(16);
    v.streams[0].align = Bytes::kib(16);
    v.streams[0].commit_writes = 2;
    let mut device = slow_to_flush(&v);
    let played = play(&v, &mut device);
    for commit in device.log.chunks_exact(3) {
        let [first, second, flush] = commit else { unreachable!() };
        let end = first.request.offset.get() + u64::from(first.request.length);
        assert_eq!((first.request.op, second.request.op), (Op::Write, Op::Write));
        assert_eq!((end, flush.request.op), (second.request.offset.get(), Op::Fdatasync));
    }
    let (commits, flushes) = (played.requests(Op::Commit), played.requests(Op::Fdatasync));
    assert_eq!((commits, played.requests(Op::Write).abs_diff(2 * commits) < 3), (flushes, true));
}

#[test]
fn a_group_is_one_write_of_whole_pages_and_the_last_is_written_again() {
    const PAGE: u64 = 8192;
    let mut v = log(6, Nanos::millis(100));
    v.streams[0].mix.classes[0].block_size = Bytes::kib(1);
    v.streams[0].align = Bytes::kib(1);
    let mut device = slow_to_flush(&v);
    play(&v, &mut device);
    // Three commits of 1 KiB at a time.
    let mut end = 0;
    for write in device.log.iter().map(|e| e.request).filter(|r| r.op == Op::Write) {
        let pages = (end / PAGE * PAGE, (end + 3072).next_multiple_of(PAGE));
        let (from, to) = (write.offset.get(), write.offset.get() + u64::from(write.length));
        assert_eq!((from, to), pages);
        end += 3072;
    }
    assert!(end > PAGE);
}

#[test]
fn at_the_end_of_the_log_a_group_ends_and_nothing_lies_outside() {
    let mut v = log(6, Nanos::millis(200));
    v.streams[0].region.length = Bytes::new(7 * BLOCK);
    let mut device = slow_to_flush(&v);
    let played = play(&v, &mut device);
    let writes = || device.log.iter().map(|e| e.request).filter(|r| r.op == Op::Write);
    assert!(writes().all(|r| r.offset.get() + u64::from(r.length) <= 7 * BLOCK));
    assert!(writes().filter(|r| r.offset.get() == 0).count() > 5, "it begins anew");
    assert!(played.requests(Op::Commit) > 100);
}

#[test]
fn arrivals_at_a_rate_wait_for_the_flush_in_flight_and_share_the_next() {
    let mut v = log(64, Nanos::secs(4));
    v.streams[0].pacing = Pacing::Open { rate: 2000.0, arrivals: Arrivals::Poisson };
    let mut device = slow_to_flush(&v);
    let played = play(&v, &mut device);
    let commits = played.requests(Op::Commit) as f64 / 4.0;
    assert!((commits / 2000.0 - 1.0).abs() < 0.05, "{commits}");
    // Four arrive while a flush is out. Each waits for half a flush and one.
    let share = commits * 4.0 / played.requests(Op::Fdatasync) as f64;
    assert!((3.6..4.6).contains(&share), "{share}");
    let wait = mean_latency_ms(&played);
    assert!((2.8..3.3).contains(&wait), "{wait}");
}

#[test]
fn what_is_written_through_needs_no_flush() {
    let mut v = log(8, Nanos::millis(100));
    v.streams[0].sync = None;
    let mut device = slow_to_flush(&v);
    let played = play(&v, &mut device);
    assert!(device.log.iter().all(|e| e.request.op == Op::Write));
    assert!(played.requests(Op::Commit) > 1000);
}

#[test]
fn a_number_of_commits_is_that_number() {
    for sessions in [1, 5, 16] {
        let mut v = log(sessions, Nanos::secs(1));
        v.streams[0].stop = for_operations(100);
        let played = play(&v, &mut slow_to_flush(&v));
        assert_eq!(played.requests(Op::Commit), 100, "{sessions}");
        assert_eq!(played.op(Op::Commit).unwrap().bytes, 100 * BLOCK, "{sessions}");
    }
}

#[test]
fn a_failed_flush_fails_the_commits_that_waited_for_it() {
    let v = log(4, Nanos::millis(100));
    let rule = FaultRule::new(Fault::Error(device::Errno(5))).on(Op::Fdatasync).nth(3);
    let mut device = Faulty::new(slow_to_flush(&v), &[rule], 1).expect("a sound rule");
    let limits = engine::Limits { failures: 1, ..engine::Limits::default() };
    let played = play_with(&v, &mut device, limits, &mut ());
    let flushes = played.requests(Op::Fdatasync);
    assert_eq!(played.op(Op::Fdatasync).map(|op| op.errors.len()), Some(1));
    assert_eq!(played.requests(Op::Commit), flushes * 2, "two in each that succeeded");
}
