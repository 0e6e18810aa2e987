//! When requests start.

use std::f64::consts::LN_2;

use device::model::FreezeSpec;
use suite::model::{Arrivals, Pacing, Stop, Stream};
use units::{Bytes, Instant, Nanos};

use crate::help::*;

fn open(rate: f64, arrivals: Arrivals, threads: u32, depth: u32, time: Nanos) -> Stream {
    Stream {
        pacing: Pacing::Open { rate, arrivals },
        threads,
        queue_depth: depth,
        stop: for_time(time),
        ..stream()
    }
}

fn starts<D: device::Device>(device: &Recording<D>) -> Vec<u64> {
    device.log.iter().map(|e| e.submitted.get()).collect()
}

#[test]
fn a_thinking_worker_pauses_after_every_burst_of_a_slot() {
    for (burst, depth) in [(1, 1), (4, 1), (3, 2)] {
        let think = Nanos::millis(5);
        let s = Stream {
            pacing: Pacing::Closed { think, burst },
            queue_depth: depth,
            stop: for_operations(60),
            ..stream()
        };
        let v = visit(vec![s]);
        let mut device = model(&v);
        let played = play(&v, &mut device);
        assert_eq!(played.total(), 60);
        for slot in 0..depth {
            let own: Vec<_> = device.log.iter().filter(|e| e.request.slot.0 == slot).collect();
            for (index, pair) in own.windows(2).enumerate() {
                let pause = pair[1].submitted.since(pair[0].completed.unwrap());
                let wanted =
                    if (index as u32 + 1).is_multiple_of(burst) { think } else { Nanos::ZERO };
                assert_eq!(pause, wanted, "burst {burst}, depth {depth}, request {index}");
            }
        }
        let read = played.op(device::Op::Read).unwrap();
        assert_eq!(read.latency_ns_max, 100_000, "thinking is not waiting");
    }
}

#[test]
fn a_thinking_worker_ends_with_its_time() {
    let s = Stream {
        pacing: Pacing::Closed { think: Nanos::secs(60), burst: 1 },
        stop: for_time(Nanos::secs(1)),
        ..stream()
    };
    let v = visit(vec![s]);
    let mut device = model(&v);
    let played = play(&v, &mut device);
    assert_eq!(played.total(), 1);
    assert!(device.inner.now_for_test() <= Instant::new(1_000_000_000));
}

trait NowForTest {
    fn now_for_test(&self) -> Instant;
}

impl<D: device::Device> NowForTest for D {
    fn now_for_test(&self) -> Instant {
        self.now()
    }
}

#[test]
fn fixed_arrivals_are_on_time_to_the_nanosecond_and_workers_interleave() {
    // Neither a whole number of ns nor of anything.
    for (rate, threads) in [(1000.0, 1), (1000.0, 4), (777.7, 3), (3.0, 2)] {
        let time = Nanos::millis(2900);
        let v = visit(vec![open(rate, Arrivals::Fixed, threads, 4, time)]);
        let mut device = model(&v);
        let played = play(&v, &mut device);
        let mut starts = starts(&device);
        starts.sort_unstable();
        assert_eq!(starts.len() as u64, (2.9 * rate).ceil() as u64, "rate {rate}");
        assert_eq!(played.total(), starts.len() as u64);
        for (k, start) in starts.iter().enumerate() {
            let wanted = k as f64 * 1e9 / rate;
            assert!((*start as f64 - wanted).abs() <= 2.0, "arrival {k}: {start}, wanted {wanted}");
        }
        let read = played.op(device::Op::Read).unwrap();
        assert_eq!((read.latency_ns_min, read.latency_ns_max), (100_000, 100_000));
        assert_eq!(played.codes(), Vec::<&str>::new());
    }
}

#[test]
fn an_arrival_due_at_the_very_end_is_no_backlog() {
    // Every visit whose time was a multiple of the gap was said to be one behind.
    let v = visit(vec![open(1000.0, Arrivals::Fixed, 2, 1, Nanos::secs(1))]);
    let played = play(&v, &mut model(&v));
    assert_eq!(played.total(), 1000);
    assert_eq!(played.result.streams[0].backlog, 0);
    assert_eq!(played.codes(), Vec::<&str>::new());
}

#[test]
fn poisson_gaps_are_exponential_and_independent() {
    for threads in [1, 4] {
        let rate = 10_000.0;
        let time = Nanos::secs(5);
        let v = visit(vec![open(rate, Arrivals::Poisson, threads, 64, time)]);
        let mut device = model(&v);
        let played = play(&v, &mut device);
        let mut starts = starts(&device);
        starts.sort_unstable();
        let n = starts.len() as f64;
        assert!((n - 50_000.0).abs() < 5.0 * 50_000f64.sqrt(), "{n} arrivals, seed 11");
        // Kolmogorov and Smirnov: twenty thousandths of a per cent limit 2.2 / sqrt(n).
        let mut gaps: Vec<f64> =
            starts.windows(2).map(|w| (w[1] - w[0]) as f64 * rate / 1e9).collect();
        let pairs = gaps.windows(2).filter(|w| (w[0] > LN_2) == (w[1] > LN_2)).count();
        assert_binomial(pairs as u64, gaps.len() as u64 - 1, 0.5, "like neighbours");
        gaps.sort_by(f64::total_cmp);
        let count = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| ((i as f64 + 0.5) / count - (1.0 - (-gap).exp())).abs())
            .fold(0.0, f64::max);
        assert!(distance < 2.2 / count.sqrt(), "distance {distance}, {threads} threads, seed 11");
        let read = played.op(device::Op::Read).unwrap();
        assert_eq!(read.latency_ns_max, 100_000, "enough slots: nobody waits");
    }
}

#[test]
fn a_frozen_device_shows_the_waiting_of_all_that_were_due() {
    // Frozen from 1 s to 2 s; 1000 a second; whoever was due at 1 s + x waits 1 s - x.
    let v = visit(vec![open(1000.0, Arrivals::Fixed, 1, 1, Nanos::secs(4))]);
    let mut device = model_with(&v, Nanos::micros(10), |spec| {
        spec.freezes = vec![FreezeSpec { start: Nanos::secs(1), length: Nanos::secs(1) }];
    });
    let played = play(&v, &mut device);
    assert_eq!(played.total(), 4000);
    let read = played.op(device::Op::Read).unwrap();
    assert!(read.latency_ns_max.abs_diff(1_000_010_000) < 20_000, "{}", read.latency_ns_max);
    // Due at 1 s + i ms; served 10 us after each other from 2 s on.
    let (mut sum, mut late) = (0u64, 0);
    for i in 0..1011u64 {
        let done = 2_000_000_000 + 10_000 * (i + 1);
        let due = 1_000_000_000 + i * 1_000_000;
        if done > due + 10_000 {
            sum += done - due;
            late += 1;
        }
    }
    let expected = sum + (4000 - late) * 10_000;
    let seen = read.latency_ns_sum as u64;
    let off = seen.abs_diff(expected) as f64 / expected as f64;
    assert!(off < 1e-3, "sum of latencies {seen}, wanted {expected}");
    // Over 100 ms: those of the first 0.9 s of the freeze, falling linearly.
    assert_eq!(read.slow.len() as u64 + read.slow_dropped, 910);
    for pair in read.slow.windows(2) {
        let fall = pair[0].latency_ns - pair[1].latency_ns;
        assert!(fall.abs_diff(990_000) <= 2, "{fall}");
    }
    assert_eq!(played.result.streams[0].backlog, 0);
}

#[test]
fn what_could_not_be_issued_by_the_end_is_the_backlog() {
    // 10 000 a second asked of a device that does 1 000.
    let v = visit(vec![open(10_000.0, Arrivals::Fixed, 2, 1, Nanos::secs(1))]);
    let mut device = model_with(&v, Nanos::millis(2), |_| {});
    let played = play(&v, &mut device);
    let backlog = played.result.streams[0].backlog;
    assert_eq!(played.total() + backlog, 10_000);
    assert_eq!(played.codes(), ["backlog", "backlog"]);
    let poisson = visit(vec![open(10_000.0, Arrivals::Poisson, 1, 1, Nanos::secs(1))]);
    let played = play(&poisson, &mut model_with(&poisson, Nanos::millis(2), |_| {}));
    let all = played.total() + played.result.streams[0].backlog;
    assert!(all.abs_diff(10_000) < 500, "{all}");
}

#[test]
fn idle_time_of_a_paced_stream_is_no_gap() {
    let quiet = [
        Pacing::Open { rate: 2.0, arrivals: Arrivals::Fixed },
        Pacing::Closed { think: Nanos::millis(400), burst: 1 },
    ];
    for pacing in quiet {
        let s = Stream { pacing, stop: for_time(Nanos::secs(5)), ..stream() };
        let v = visit(vec![s]);
        let played = play(&v, &mut model(&v));
        assert!(played.total() >= 10);
        assert_eq!(played.result.streams[0].workers[0].gaps, []);
        // And a gap with requests in flight is one.
        let mut frozen = model_with(&v, Nanos::micros(100), |spec| {
            spec.freezes =
                vec![FreezeSpec { start: Nanos::millis(900), length: Nanos::millis(1100) }];
        });
        let played = play(&v, &mut frozen);
        let gaps = &played.result.streams[0].workers[0].gaps;
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        assert!(gaps[0].start_ns + gaps[0].length_ns <= 2_001_000_000);
        assert!(gaps[0].length_ns >= 700_000_000, "{gaps:?}");
    }
}

#[test]
fn a_long_pause_is_not_a_silent_device() {
    // After a pause of more than ten hang limits, a request was given up as soon as it was out.
    let s = Stream {
        pacing: Pacing::Closed { think: Nanos::secs(400), burst: 1 },
        stop: for_operations(5),
        ..stream()
    };
    let v = visit(vec![s]);
    let mut device = model_with(&v, Nanos::millis(350), |_| {});
    let played = play(&v, &mut device);
    assert_eq!(played.warnings(), Vec::<&str>::new());
    assert_eq!(played.total(), 5);
}

#[test]
fn open_loops_stop_by_operations_and_bytes_too() {
    for stop in [
        for_operations(333),
        Stop { operations: None, bytes: Some(Bytes::new(333 * BLOCK)), ..for_operations(1) },
    ] {
        let mut s = open(5000.0, Arrivals::Poisson, 3, 2, Nanos::secs(1));
        s.stop = stop;
        let v = visit(vec![s]);
        let played = play(&v, &mut model(&v));
        assert_eq!(played.total(), 333);
        assert_eq!(played.codes(), Vec::<&str>::new());
    }
}

#[test]
fn an_overloaded_device_is_offered_no_more() {
    // A worker at 100 us does 10,000 a second; 12,000 are due, or 8,000.
    let play_at = |rate, arrivals| {
        let v = visit(vec![open(rate, arrivals, 2, 1, Nanos::secs(60))]);
        play(&v, &mut model(&v))
    };
    for arrivals in [Arrivals::Fixed, Arrivals::Poisson] {
        let over = play_at(24_000.0, arrivals);
        assert!(over.codes().contains(&"overloaded"), "{:?}", over.warnings());
        let elapsed = over.result.elapsed;
        // A sixth of the time behind: a second after 6 s, and 2 s to be sure.
        assert!(elapsed > Nanos::secs(7) && elapsed < Nanos::secs(10), "{elapsed}");
        let text = over.warnings().into_iter().find(|w| w.contains("offered")).unwrap();
        assert!(text.contains("24000"), "{text}");
        let reached = over.total() as f64 / elapsed.as_secs_f64();
        assert!((19_600.0..=20_010.0).contains(&reached), "{reached}");
        let under = play_at(16_000.0, arrivals);
        assert!(!under.codes().contains(&"overloaded"));
        assert!(under.result.elapsed > Nanos::millis(59_900));
    }
}

#[test]
fn a_stream_that_is_overloaded_ends_the_visit_for_all() {
    // The others went on without it, and their rates were of both times together.
    let closed = Stream { stop: for_time(Nanos::secs(60)), ..stream() };
    let v = visit(vec![open(24_000.0, Arrivals::Fixed, 2, 1, Nanos::secs(60)), closed]);
    let played = play(&v, &mut model(&v));
    assert!(played.codes().contains(&"overloaded"), "{:?}", played.warnings());
    let elapsed = played.result.elapsed;
    assert!(elapsed > Nanos::secs(7) && elapsed < Nanos::secs(10), "{elapsed}");
    // Offered until the end, not till it was found.
    for stream in &played.result.streams {
        let rows = &stream.ops[0].series.rows;
        let last = rows.len() as u64 * stream.ops[0].series.interval_ns;
        assert!(last + 200_000_000 > elapsed.get(), "{}: {last} of {elapsed}", stream.name);
        let (first, late) = (rows[1].requests, rows[rows.len() - 2].requests);
        assert!(late * 10 > first * 9, "{}: {first}, {late}", stream.name);
    }
}

#[test]
fn a_freeze_of_a_loaded_device_is_no_overload() {
    let v = visit(vec![open(9_000.0, Arrivals::Poisson, 1, 1, Nanos::secs(60))]);
    let mut device = model_with(&v, Nanos::micros(100), |spec| {
        spec.freezes = vec![FreezeSpec { start: Nanos::secs(5), length: Nanos::secs(4) }];
    });
    let played = play(&v, &mut device);
    assert!(!played.codes().contains(&"overloaded"), "{:?}", played.warnings());
    assert!(played.result.elapsed > Nanos::millis(59_900));
}
