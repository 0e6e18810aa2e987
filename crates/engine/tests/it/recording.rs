//! What is recorded is what happened.

use device::model::FreezeSpec;
use device::{Device, Fault, FaultRule, Faulty, Op};
use engine::{Limits, Visit};
use record::OpRecord;
use stats::LatencyHistogram;
use suite::model::{Operation, Stream};
use units::Nanos;

use crate::help::*;

/// Latencies as the device saw them, of one operation.
fn latencies<D: Device>(device: &Recording<D>, op: Op) -> Vec<u64> {
    let of = device.log.iter().filter(|e| e.request.op == op);
    of.filter_map(|e| Some(e.completed?.since(e.submitted).get())).collect()
}

fn assert_agrees(record: &OpRecord, seen: &[u64]) {
    let mut histogram = LatencyHistogram::new();
    seen.iter().for_each(|&ns| histogram.record(Nanos::new(ns)));
    assert_eq!(record.latency, histogram);
    assert_eq!(record.requests, seen.len() as u64);
    assert_eq!(record.latency.count(), seen.len() as u64);
    assert_eq!(record.latency_ns_min, *seen.iter().min().unwrap());
    assert_eq!(record.latency_ns_max, *seen.iter().max().unwrap());
    assert_eq!(record.latency_ns_sum, seen.iter().map(|&ns| u128::from(ns)).sum::<u128>());
}

fn assert_series_sums(record: &OpRecord) {
    let rows = &record.series.rows;
    assert_eq!(rows.iter().map(|r| r.requests).sum::<u64>(), record.requests);
    assert_eq!(rows.iter().map(|r| r.bytes).sum::<u64>(), record.bytes);
    for row in rows {
        assert_eq!(row.tail.iter().map(|t| t.1).sum::<u64>(), row.requests);
        assert!(row.tail.is_sorted_by_key(|t| t.0));
    }
    // The tails are the histogram, coarser.
    let mut coarse = std::collections::BTreeMap::new();
    for (bucket, n) in rows.iter().flat_map(|r| &r.tail) {
        *coarse.entry(usize::from(*bucket)).or_insert(0) += n;
    }
    for (index, fine) in record.latency.buckets().chunks(16).enumerate() {
        let sum: u64 = fine.iter().sum();
        assert_eq!(coarse.get(&index).copied().unwrap_or(0), sum, "coarse bucket {index}");
    }
}

fn mixed(threads: u32, depth: u32, time: Nanos) -> Visit {
    let mut s = Stream { threads, queue_depth: depth, stop: for_time(time), ..stream() };
    ops(&mut s, &[(Operation::Read, 2.0), (Operation::Write, 1.0)]);
    visit(vec![s])
}

#[test]
fn latencies_are_those_the_device_saw() {
    for (threads, depth) in [(1, 1), (1, 16), (3, 50)] {
        let v = mixed(threads, depth, Nanos::secs(2));
        let mut device = model_with(&v, Nanos::micros(150), |spec| {
            spec.noise.jitter = 0.8;
            spec.noise.cv = 0.3;
        });
        let played = play(&v, &mut device);
        for op in [Op::Read, Op::Write] {
            let record = played.op(op).unwrap();
            assert_agrees(record, &latencies(&device, op));
            assert_series_sums(record);
        }
        let worker = &played.result.streams[0].workers[0];
        assert_eq!(worker.stamp_error_ns_max, 0, "no time passes in the loop");
    }
}

#[test]
fn series_rows_are_on_the_100_ms_grid() {
    let v = mixed(2, 3, Nanos::millis(1234));
    let mut device = model_with(&v, Nanos::micros(333), |spec| spec.noise.jitter = 0.5);
    let played = play(&v, &mut device);
    for op in [Op::Read, Op::Write] {
        let record = played.op(op).unwrap();
        assert_eq!(record.series.interval_ns, 100_000_000);
        let mut rows = vec![0; 13];
        for event in device.log.iter().filter(|e| e.request.op == op) {
            rows[(event.completed.unwrap().get() / 100_000_000) as usize] += 1;
        }
        let seen: Vec<u64> = record.series.rows.iter().map(|r| r.requests).collect();
        assert_eq!(seen, rows, "{op}");
    }
}

fn freezes(at: &[(u64, u64)]) -> Vec<FreezeSpec> {
    at.iter()
        .map(|&(start, length)| FreezeSpec {
            start: Nanos::millis(start),
            length: Nanos::millis(length),
        })
        .collect()
}

#[test]
fn a_freeze_is_empty_rows_zero_bits_gaps_and_slow_requests_at_the_right_place() {
    let planted = [(1000, 3000), (5500, 60), (6000, 250)];
    for (threads, depth) in [(1, 1), (2, 4)] {
        let v = mixed(threads, depth, Nanos::secs(7));
        let mut device =
            model_with(&v, Nanos::micros(100), |spec| spec.freezes = freezes(&planted));
        let played = play(&v, &mut device);
        let empty = |record: &OpRecord| -> Vec<usize> {
            let rows = record.series.rows.iter().enumerate();
            rows.filter(|(_, row)| row.requests == 0).map(|(i, _)| i).collect()
        };
        let mut both = empty(played.op(Op::Read).unwrap());
        both.retain(|row| empty(played.op(Op::Write).unwrap()).contains(row));
        assert_eq!(both, (10..40).chain(60..62).collect::<Vec<_>>());
        // The map is the device's, bit by bit.
        let map = &played.result.completions;
        let mut wanted = record::Bitmap::zeros(map.bits);
        for event in &device.log {
            wanted.set(event.completed.unwrap().get() / 1_000_000);
        }
        assert_eq!(*map, wanted);
        for worker in &played.result.streams[0].workers {
            let gaps: Vec<(u64, u64)> = worker
                .gaps
                .iter()
                .map(|g| (g.start_ns / 1_000_000, g.length_ns / 1_000_000))
                .collect();
            assert_eq!(gaps, planted, "{threads} x {depth}");
        }
        let slow: Vec<_> = played.result.streams[0].ops.iter().flat_map(|o| &o.slow).collect();
        assert_eq!(slow.len() as u32, 2 * threads * depth);
        for request in slow {
            let event = device.log.iter().find(|e| {
                e.completed.unwrap().get() == request.at_ns
                    && e.completed.unwrap().since(e.submitted).get() == request.latency_ns
                    && e.request.offset.get() == request.offset
                    && e.request.slot.0 / depth == request.worker
            });
            assert!(event.is_some(), "{request:?} never happened");
        }
    }
}

#[test]
fn hours_double_the_interval_and_keep_the_totals() {
    let mut s = Stream { queue_depth: 2, stop: for_time(Nanos::secs(3 * 3600)), ..stream() };
    ops(&mut s, &[(Operation::Read, 1.0)]);
    let v = visit(vec![s]);
    let mut device = model_with(&v, Nanos::millis(37), |spec| {
        spec.noise.jitter = 0.3;
        spec.freezes = freezes(&[(7_200_000, 120_000)]);
    });
    let played = play(&v, &mut device);
    let record = played.op(Op::Read).unwrap();
    assert_agrees(record, &latencies(&device, Op::Read));
    assert_series_sums(record);
    // 10 800 s in at most 6000 rows of 100 ms times a power of two.
    assert_eq!(record.series.interval_ns, 3_200_000_000);
    assert_eq!(record.series.rows.len(), 3375 + 1);
    let empty: Vec<usize> =
        (0..3375).filter(|&row| record.series.rows[row].requests == 0).collect();
    assert_eq!(empty, (2250..2287).collect::<Vec<_>>());
    let gaps = played.result.streams[0].workers[0].gaps.iter();
    let longest = gaps.max_by_key(|gap| gap.length_ns).unwrap();
    assert_eq!(longest.start_ns / 1_000_000_000, 7_199);
    assert_eq!((longest.length_ns + 500_000_000) / 1_000_000_000, 120);
}

#[test]
fn workers_that_doubled_unequally_are_merged_into_the_coarsest() {
    let long = Stream { stop: for_time(Nanos::secs(1300)), ..stream() };
    let short = Stream { name: "short".into(), stop: for_time(Nanos::secs(5)), ..stream() };
    let v = visit(vec![long, short]);
    let mut device = model_with(&v, Nanos::millis(20), |_| {});
    let played = play(&v, &mut device);
    let intervals: Vec<u64> =
        played.result.streams.iter().map(|s| s.ops[0].series.interval_ns).collect();
    assert_eq!(intervals, [400_000_000, 100_000_000]);
    played.result.streams.iter().for_each(|s| assert_series_sums(&s.ops[0]));
    assert_eq!(played.result.streams[1].ops[0].series.rows.len(), 51);
}

#[test]
fn a_latency_beyond_the_histogram_saturates_and_its_maximum_is_exact() {
    let late = Nanos::new((1 << 40) + 12_345);
    let v = visit(vec![Stream { stop: for_operations(5), ..stream() }]);
    let rule = FaultRule::new(Fault::Late(late)).nth(2);
    let limits = Limits { hang: Nanos::secs(2000), ..Limits::default() };
    let mut device = Faulty::new(model(&v), &[rule], 1).unwrap();
    let played = play_with(&v, &mut device, limits, &mut ());
    let record = played.op(Op::Read).unwrap();
    assert_eq!(record.requests, 5);
    assert_eq!(record.latency.saturated(), 1);
    assert_eq!(record.latency.count(), 5);
    assert_eq!(record.latency_ns_max, late.get() + 100_000);
    assert_eq!(record.latency_ns_sum, u128::from(late.get()) + 500_000);
    assert_series_sums(record);
}

#[test]
fn batches_are_as_large_as_the_device_makes_them_and_no_larger_than_32() {
    for (depth, batch) in [(1, 1), (7, 7), (32, 32), (100, 32)] {
        let s = Stream { queue_depth: depth, stop: for_operations(5000), ..stream() };
        let v = visit(vec![s]);
        let mut device = null(&v);
        let played = play(&v, &mut device);
        assert_eq!(device.batch_max, batch);
        assert_eq!(played.result.streams[0].workers[0].batch_max, batch as u32);
    }
}

#[test]
fn more_slow_requests_than_are_listed_are_counted() {
    let s = Stream { threads: 2, stop: for_operations(2000), ..stream() };
    let v = visit(vec![s]);
    let mut device = model_with(&v, Nanos::millis(150), |_| {});
    let played = play(&v, &mut device);
    let record = played.op(Op::Read).unwrap();
    assert_eq!(record.slow.len(), 512);
    assert_eq!(record.slow.len() as u64 + record.slow_dropped, 2000);
    assert!(record.slow.is_sorted_by_key(|s| s.at_ns));
    assert_eq!(record.slow[0].at_ns, 150_000_000);
}

#[test]
fn a_hundred_ms_is_slow_and_a_nanosecond_less_is_not() {
    for (latency, slow) in [(Nanos::new(99_999_999), 0), (Nanos::millis(100), 5)] {
        let v = visit(vec![Stream { stop: for_operations(5), ..stream() }]);
        let played = play(&v, &mut model_with(&v, latency, |_| {}));
        assert_eq!(played.op(Op::Read).unwrap().slow.len(), slow, "{latency}");
    }
}

#[test]
fn pulses_tell_how_far_the_workers_are() {
    let v = mixed(2, 3, Nanos::secs(1));
    let shared = engine::Shared::new(&v.streams);
    let mut device = model(&v);
    let limits = Limits::default();
    let played = play_shared(&v, &v.workers(), &shared, &mut device, limits, &mut ());
    let completed: u64 = shared.pulses().iter().map(engine::Pulse::completed).sum();
    assert_eq!(completed, played.total());
    let done = |op: Op| {
        let tallies = shared.pulses().iter().flat_map(engine::Pulse::done);
        tallies.filter(|(of, _)| of.0 == op as u8).fold((0, 0), |(requests, bytes), (_, tally)| {
            (requests + tally.requests, bytes + tally.bytes)
        })
    };
    for op in [Op::Read, Op::Write] {
        let found = played.op(op).unwrap();
        assert_eq!(done(op), (found.requests, found.bytes), "{op}");
    }
    assert!(shared.pulses().iter().all(|p| p.finished() && p.oldest().is_none()));
}
