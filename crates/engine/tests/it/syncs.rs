//! When and what is flushed.

use device::Op;
use engine::Visit;
use suite::model::{Operation, Pacing, Stream, SyncAtEnd, SyncPolicy};
use units::Nanos;

use crate::help::*;

fn policy() -> SyncPolicy {
    SyncPolicy {
        op: Operation::Fsync,
        every: None,
        shared: false,
        each_file: false,
        at_end: SyncAtEnd::No,
    }
}

fn writes(n: u64, policy: SyncPolicy) -> Stream {
    let mut s = Stream { sync: Some(policy), stop: for_operations(n), ..stream() };
    ops(&mut s, &[(Operation::Write, 1.0)]);
    s
}

fn letters<D: device::Device>(device: &Recording<D>) -> String {
    let letter = |op| match op {
        Op::Read => 'r',
        Op::Write => 'w',
        Op::Fsync => 'f',
        Op::Fdatasync => 'd',
        Op::SyncRange => 's',
        Op::Trim => 't',
        Op::Create => 'C',
        Op::Stat => 'S',
        Op::Delete => 'D',
        Op::CopyRange => 'c',
        Op::Commit => '!',
    };
    device.log.iter().map(|e| letter(e.request.op)).collect()
}

#[test]
fn every_n_requests_of_a_worker() {
    for (op, letter) in
        [(Operation::Fsync, 'f'), (Operation::Fdatasync, 'd'), (Operation::SyncRange, 's')]
    {
        let v = visit(vec![writes(7, SyncPolicy { op, every: Some(3), ..policy() })]);
        let mut device = memory(&v);
        let played = play(&v, &mut device);
        assert_eq!(letters(&device), format!("www{letter}www{letter}w"));
        assert_eq!((played.requests(Op::Write), played.total()), (7, 9));
    }
}

#[test]
fn own_counts_are_each_workers_and_shared_counts_the_streams() {
    for (shared, syncs) in [(false, 3 * 3), (true, 10)] {
        let mut s = writes(30, SyncPolicy { every: Some(3), shared, ..policy() });
        s.threads = 3;
        let v = visit(vec![s]);
        let mut device = memory(&v);
        let played = play(&v, &mut device);
        assert_eq!(played.requests(Op::Write), 30);
        assert_eq!(played.requests(Op::Fsync), syncs, "shared: {shared}");
    }
}

#[test]
fn nothing_is_flushed_when_nothing_was_written_own_or_shared() {
    // Reads alone made a shared count flush.
    for shared in [false, true] {
        let mut s = writes(50, SyncPolicy { every: Some(5), shared, ..policy() });
        s.threads = 2;
        ops(&mut s, &[(Operation::Read, 1.0)]);
        let v = visit(vec![s]);
        let mut device = memory(&v);
        play(&v, &mut device);
        assert_eq!(device.count(Op::Fsync), 0, "shared: {shared}");
    }
}

#[test]
fn a_flush_comes_only_after_something_new_was_written() {
    let mut s = writes(60, SyncPolicy { every: Some(2), ..policy() });
    s.mix.choice = suite::model::Choice::Interleave;
    ops(&mut s, &[(Operation::Read, 5.0), (Operation::Write, 1.0)]);
    for shared in [false, true] {
        s.sync = s.sync.map(|p| SyncPolicy { shared, ..p });
        let v = visit(vec![s.clone()]);
        let mut device = memory(&v);
        play(&v, &mut device);
        assert_eq!(device.count(Op::Write), 10);
        assert_eq!(device.count(Op::Fsync), 10);
        let seen = letters(&device);
        let mut dirty = false;
        for letter in seen.chars() {
            match letter {
                'w' => dirty = true,
                'f' => assert!(std::mem::take(&mut dirty), "{seen}"),
                _ => {}
            }
        }
    }
}

#[test]
fn the_file_last_written_or_each_in_turn() {
    for each_file in [false, true] {
        let s = writes(100, SyncPolicy { every: Some(1), each_file, ..policy() });
        let v = Visit { files: 5, file_size: units::Bytes::kib(200), ..visit(vec![s]) };
        let mut device = memory(&v);
        play(&v, &mut device);
        let files: Vec<(Op, u32)> =
            device.log.iter().map(|e| (e.request.op, e.request.file.0)).collect();
        if each_file {
            for round in files.chunks(6) {
                let wanted: Vec<_> = (0..5).map(|file| (Op::Fsync, file)).collect();
                assert_eq!(round[1..], wanted);
            }
        } else {
            for pair in files.chunks(2) {
                assert_eq!(pair[1], (Op::Fsync, pair[0].1));
            }
        }
    }
}

#[test]
fn as_sysbench_does_128_files_are_flushed_after_every_100_requests() {
    for threads in [1, 4] {
        let mut s = writes(
            1000,
            SyncPolicy { every: Some(100), shared: true, each_file: true, ..policy() },
        );
        s.threads = threads;
        s.mix.choice = suite::model::Choice::Interleave;
        ops(&mut s, &[(Operation::Read, 1.5), (Operation::Write, 1.0)]);
        let v = Visit { files: 128, file_size: units::Bytes::kib(8), ..visit(vec![s]) };
        let mut device = memory(&v);
        let played = play(&v, &mut device);
        assert_eq!(played.requests(Op::Read) + played.requests(Op::Write), 1000);
        assert_eq!(played.requests(Op::Fsync), 10 * 128, "{threads} threads");
        for file in 0..128 {
            let of = device.places(Op::Fsync).iter().filter(|p| p.0 == file).count();
            assert_eq!(of, 10, "file {file}");
        }
    }
}

fn at_end(at_end: SyncAtEnd, threads: u32, depth: u32) -> Visit {
    let mut s = writes(100, SyncPolicy { at_end, ..policy() });
    s.threads = threads;
    s.queue_depth = depth;
    Visit { files: 10, file_size: units::Bytes::kib(104), ..visit(vec![s]) }
}

#[test]
fn flushing_at_the_end_is_in_time_and_counts_if_timed_and_in_neither_if_not() {
    for (threads, depth) in [(1, 1), (3, 4)] {
        let slow = |v: &Visit| {
            model_with(v, Nanos::micros(100), |spec| spec.sync_time = Nanos::millis(30))
        };
        let mut last_write = Vec::new();
        for (when, syncs) in [(SyncAtEnd::Timed, 10), (SyncAtEnd::Untimed, 0)] {
            let v = at_end(when, threads, depth);
            let mut device = slow(&v);
            let played = play(&v, &mut device);
            assert_eq!(played.codes(), Vec::<&str>::new());
            assert_eq!(device.count(Op::Fsync), 10);
            assert_eq!(played.requests(Op::Write), 100);
            assert_eq!(played.requests(Op::Fsync), syncs, "{when:?}");
            let mut files: Vec<u32> = device.places(Op::Fsync).iter().map(|p| p.0).collect();
            files.sort_unstable();
            assert_eq!(files, (0..10).collect::<Vec<_>>());
            let end = |op| {
                let of = device.log.iter().filter(|e| e.request.op == op);
                of.filter_map(|e| e.completed).max().unwrap().get()
            };
            let counted = if syncs > 0 { end(Op::Fsync) } else { end(Op::Write) };
            assert_eq!(played.result.elapsed.get(), counted, "{when:?}");
            last_write.push(end(Op::Write));
            let first_sync =
                device.log.iter().find(|e| e.request.op == Op::Fsync).unwrap().submitted;
            assert!(first_sync.get() >= end(Op::Write), "others' writes were under way");
            let rows = played.op(Op::Write).unwrap().series.rows.len() as u64;
            assert!(rows <= counted / 100_000_000 + 1, "{rows} rows of {counted} ns");
        }
        assert_eq!(last_write[0], last_write[1]);
    }
}

/// What each worker lists as gaps and as the flush at the end, in ms.
type Listed = (Vec<Vec<(u64, u64)>>, Vec<(u64, u64)>);

fn listed(played: &Played) -> Listed {
    let ms = |gap: &record::Gap| (gap.start_ns / 1_000_000, gap.length_ns / 1_000_000);
    let workers = || played.result.streams.iter().flat_map(|stream| &stream.workers);
    let gaps = workers().map(|worker| worker.gaps.iter().map(ms).collect());
    let closing = workers().filter_map(|worker| worker.closing_sync.as_ref().map(ms));
    (gaps.collect(), closing.collect())
}

#[test]
fn the_flush_at_the_end_is_no_gap_of_the_load() {
    // Three seconds in which nothing else was wanted were called a stall.
    for (threads, depth) in [(1, 1), (3, 4)] {
        let v = at_end(SyncAtEnd::Timed, threads, depth);
        let mut device =
            model_with(&v, Nanos::micros(100), |spec| spec.sync_time = Nanos::millis(300));
        let played = play(&v, &mut device);
        let (gaps, closing) = listed(&played);
        assert!(gaps.iter().all(Vec::is_empty), "{gaps:?}");
        let [(start, length)] = closing[..] else { panic!("{closing:?}") };
        assert_eq!(length, 3_000, "ten files");
        assert!(start < 20, "{start}");
        let elapsed = played.result.elapsed.get() / 1_000_000;
        assert!(elapsed.abs_diff(start + length) <= 1, "it is in the time: {elapsed}");
    }
    // In neither if it is not timed.
    let v = at_end(SyncAtEnd::Untimed, 1, 1);
    let mut device = model_with(&v, Nanos::micros(100), |spec| spec.sync_time = Nanos::millis(300));
    assert_eq!(listed(&play(&v, &mut device)), (vec![vec![]], vec![]));
}

#[test]
fn a_flush_within_the_load_is_a_gap_and_so_is_what_waits_for_one_at_the_end() {
    let every = SyncPolicy { every: Some(50), at_end: SyncAtEnd::Timed, ..policy() };
    let v = visit(vec![writes(120, every)]);
    let slow =
        |v: &Visit| model_with(v, Nanos::micros(100), |spec| spec.sync_time = Nanos::millis(300));
    let (gaps, closing) = listed(&play(&v, &mut slow(&v)));
    let gaps: Vec<u64> = gaps[0].iter().map(|gap| gap.1).collect();
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    assert!(gaps.iter().all(|length| length.abs_diff(300) <= 2), "{gaps:?}");
    assert!(closing.len() == 1 && closing[0].1.abs_diff(300) <= 1, "{closing:?}");
    // Another stream is under way: its requests stand still, whatever holds them up.
    let last = SyncPolicy { at_end: SyncAtEnd::Timed, ..policy() };
    let reads = Stream { name: "r".into(), stop: for_time(Nanos::secs(2)), ..stream() };
    let v = visit(vec![writes(100, last), reads]);
    let mut device = model_with(&v, Nanos::micros(100), |spec| {
        spec.sync_time = Nanos::millis(1_000);
        spec.freezes = vec![device::model::FreezeSpec {
            start: Nanos::millis(200),
            length: Nanos::millis(500),
        }];
    });
    let (gaps, closing) = listed(&play(&v, &mut device));
    assert_eq!((gaps[0].len(), gaps[1].len(), closing.len()), (0, 1, 1), "{gaps:?} {closing:?}");
}

#[test]
fn a_flush_at_the_end_that_never_comes_back_is_a_gap_from_the_last_one_that_did() {
    let v = at_end(SyncAtEnd::Timed, 1, 1);
    let rule = device::FaultRule::new(device::Fault::Lost).on(Op::Fsync).nth(3);
    let slow = model_with(&v, Nanos::micros(100), |spec| spec.sync_time = Nanos::millis(300));
    let mut device = device::Faulty::new(slow, &[rule], 1).unwrap();
    let limits = engine::Limits { hang: Nanos::secs(5), ..engine::Limits::default() };
    let played = play_with(&v, &mut device, limits, &mut ());
    assert_eq!(played.codes(), ["hanging"]);
    let (gaps, closing) = listed(&played);
    assert!(closing.len() == 1 && closing[0].1.abs_diff(600) <= 1, "two came back: {closing:?}");
    assert!(gaps[0].len() == 1 && gaps[0][0].1 >= 5_000, "{gaps:?}");
}

#[test]
fn idle_time_before_the_flush_at_the_end_is_no_gap_either() {
    let mut v = at_end(SyncAtEnd::Timed, 1, 1);
    v.streams[0].pacing = Pacing::Closed { think: Nanos::secs(1), burst: 1 };
    v.streams[0].stop = for_time(Nanos::millis(1_500));
    let mut device = model_with(&v, Nanos::micros(100), |spec| spec.sync_time = Nanos::millis(30));
    let (gaps, closing) = listed(&play(&v, &mut device));
    assert_eq!(gaps, [vec![]]);
    let [(start, length)] = closing[..] else { panic!("{closing:?}") };
    assert!((1_499..1_602).contains(&start) && length == 300, "{closing:?}");
}

#[test]
fn the_last_of_several_drives_flushes_once_after_all_others() {
    let v = at_end(SyncAtEnd::Timed, 4, 2);
    let shared = engine::Shared::new(&v.streams);
    // One drive after the other: only the last may flush.
    let syncs: Vec<usize> = v
        .workers()
        .into_iter()
        .map(|id| {
            let mut device = memory(&v);
            let limits = engine::Limits::default();
            play_shared(&v, &[id], &shared, &mut device, limits, &mut ());
            device.count(Op::Fsync)
        })
        .collect();
    assert_eq!(syncs, [0, 0, 0, 10]);
}

#[test]
fn many_slow_flushes_at_the_end_are_not_taken_for_hanging() {
    // The hang limit was held against all flushes together.
    let v = Visit { files: 40, file_size: units::Bytes::kib(28), ..at_end(SyncAtEnd::Timed, 1, 1) };
    let mut device = model_with(&v, Nanos::micros(100), |spec| spec.sync_time = Nanos::secs(1));
    let played = play(&v, &mut device);
    assert_eq!(played.warnings(), Vec::<&str>::new());
    assert_eq!(played.requests(Op::Fsync), 40);
}

#[test]
fn a_failed_flush_after_the_measured_part_is_told_of() {
    // It was not counted, so it was not looked at.
    let v = at_end(SyncAtEnd::Untimed, 1, 1);
    let rule =
        device::FaultRule::new(device::Fault::Error(device::Errno::EIO)).on(Op::Fsync).nth(3);
    let mut device = device::Faulty::new(memory(&v), &[rule], 1).unwrap();
    let played = play(&v, &mut device);
    assert!(played.result.failed);
    assert_eq!(played.codes(), ["io-error"]);
    assert!(played.warnings()[0].contains("fsync of file 2"), "{:?}", played.warnings());
}

#[test]
fn a_paced_stream_does_not_idle_before_its_last_flush() {
    // With nothing in flight when the budget was used up, the flush came up to 100 ms later.
    let mut v = at_end(SyncAtEnd::Timed, 1, 1);
    v.streams[0].pacing = Pacing::Closed { think: Nanos::micros(300), burst: 1 };
    let mut device = model_with(&v, Nanos::micros(100), |spec| spec.sync_time = Nanos::micros(1));
    let played = play(&v, &mut device);
    let elapsed = played.result.elapsed;
    assert!(elapsed < Nanos::micros(100 * 400 + 500), "{elapsed}");
}

#[test]
fn a_visit_stopped_from_outside_does_not_flush() {
    let v = at_end(SyncAtEnd::Timed, 1, 1);
    let shared = engine::Shared::new(&v.streams);
    shared.stop();
    let mut device = memory(&v);
    let limits = engine::Limits::default();
    play_shared(&v, &v.workers(), &shared, &mut device, limits, &mut ());
    assert_eq!(device.count(Op::Fsync), 0);
}

/// What each slot was asked for, in order.
fn by_slot<D: device::Device>(
    device: &Recording<D>,
    depth: u32,
) -> Vec<Vec<device::RecordedRequest>> {
    let of = |slot| device.log.iter().filter(move |e| e.request.slot.0 == slot).copied().collect();
    (0..depth).map(of).collect()
}

#[test]
fn a_rate_is_one_of_requests_and_their_flushes_follow_on_them() {
    // Two hundred commits a second were a hundred: every second arrival was a flush.
    for (threads, depth) in [(1, 1), (2, 1), (1, 8), (2, 4)] {
        let every = SyncPolicy { every: Some(1), ..policy() };
        let rate = Pacing::Open { rate: 200.0, arrivals: suite::model::Arrivals::Fixed };
        let stop = for_time(Nanos::secs(2));
        let s = Stream { pacing: rate, threads, queue_depth: depth, stop, ..writes(1, every) };
        let v = visit(vec![s]);
        let mut device =
            model_with(&v, Nanos::micros(100), |spec| spec.sync_time = Nanos::millis(2));
        let played = play(&v, &mut device);
        let done = (played.requests(Op::Write), played.requests(Op::Fsync));
        assert_eq!(done, (400, 400), "{threads} x {depth}");
        assert_eq!(played.op(Op::Write).unwrap().latency_ns_max, 100_000, "all began in time");
        for own in by_slot(&device, threads * depth) {
            for pair in own.chunks(2) {
                assert_eq!((pair[0].request.op, pair[1].request.op), (Op::Write, Op::Fsync));
                assert_eq!(pair[1].submitted, pair[0].completed.unwrap());
                assert_eq!(pair[1].request.file, pair[0].request.file);
            }
        }
    }
}

#[test]
fn a_burst_is_one_of_requests_and_its_pause_comes_after_its_flushes() {
    let every = |n| SyncPolicy { every: Some(n), ..policy() };
    for (n, wanted) in [(1, "wfwfwfwf"), (2, "wwfwwf"), (4, "wwwwf")] {
        let think = Nanos::millis(10);
        let pacing = Pacing::Closed { think, burst: 4 };
        let v = visit(vec![Stream { pacing, ..writes(20, every(n)) }]);
        let mut device = model(&v);
        play(&v, &mut device);
        assert_eq!(letters(&device), wanted.repeat(5));
        for (index, pair) in device.log.windows(2).enumerate() {
            let pause = pair[1].submitted.since(pair[0].completed.unwrap());
            let rests = (index + 1).is_multiple_of(wanted.len());
            assert_eq!(pause, if rests { think } else { Nanos::ZERO }, "every {n}: {index}");
        }
    }
    // A class's own pause is before its burst.
    let mut s = writes(8, every(1));
    s.mix.classes[0].line = Some(suite::model::Line {
        random_share: 0.0,
        align: units::Bytes::new(BLOCK),
        think: Nanos::millis(10),
        burst: 2,
    });
    let v = visit(vec![s]);
    let mut device = model(&v);
    play(&v, &mut device);
    assert_eq!(letters(&device), "wf".repeat(8));
    let pauses = device.log.windows(2).map(|e| e[1].submitted.since(e[0].completed.unwrap()).get());
    assert_eq!(pauses.collect::<Vec<_>>(), [[0, 0, 0, 10_000_000]; 4].as_flattened()[..15]);
}

#[test]
fn a_paced_stream_flushes_what_its_count_ended_with_and_not_what_its_time_did() {
    let think = Pacing::Closed { think: Nanos::millis(3), burst: 1 };
    let rate = Pacing::Open { rate: 1000.0, arrivals: suite::model::Arrivals::Poisson };
    for (pacing, depth) in [(think, 1), (think, 4), (rate, 1), (rate, 4)] {
        let every = SyncPolicy { every: Some(1), ..policy() };
        let v = visit(vec![Stream { pacing, queue_depth: depth, ..writes(30, every) }]);
        let mut device = model(&v);
        let played = play(&v, &mut device);
        assert_eq!((played.requests(Op::Write), played.requests(Op::Fsync)), (30, 30));
    }
    let every = SyncPolicy { every: Some(1), ..policy() };
    let stop = for_time(Nanos::micros(1_050));
    let v = visit(vec![Stream { pacing: rate_of(1000.0), stop, ..writes(1, every) }]);
    let mut device = model_with(&v, Nanos::micros(100), |spec| spec.sync_time = Nanos::micros(10));
    play(&v, &mut device);
    assert_eq!(letters(&device), "wfw", "nothing begins after the end");
}

fn rate_of(rate: f64) -> Pacing {
    Pacing::Open { rate, arrivals: suite::model::Arrivals::Fixed }
}

#[test]
fn each_file_in_turn_follows_on_a_request_of_a_rate_too() {
    let every = SyncPolicy { every: Some(3), each_file: true, ..policy() };
    let s = Stream { pacing: rate_of(100.0), ..writes(9, every) };
    let v = Visit { files: 4, file_size: units::Bytes::kib(256), ..visit(vec![s]) };
    let mut device = model(&v);
    play(&v, &mut device);
    assert_eq!(letters(&device), "wwwffff".repeat(3));
    let files = device.places(Op::Fsync).iter().map(|place| place.0).collect::<Vec<_>>();
    assert_eq!(files, [0, 1, 2, 3].repeat(3));
}

#[test]
fn an_overloaded_stream_says_how_many_of_its_requests_came_back() {
    // A write and a flush take 2 ms: 500 a second of the 2000 that are asked for.
    let every = SyncPolicy { every: Some(1), ..policy() };
    let stop = for_time(Nanos::secs(60));
    let v = visit(vec![Stream { pacing: rate_of(2000.0), stop, ..writes(1, every) }]);
    let mut device = model_with(&v, Nanos::millis(1), |spec| spec.sync_time = Nanos::millis(1));
    let played = play(&v, &mut device);
    let told = played.warnings().join("\n");
    assert!(told.contains("2000 requests a second were offered, 500 came back"), "{told}");
}
