//! SNIA's loads.

use std::collections::BTreeMap;

use device::Op;
use suite::model::{Operation, Precondition};
use units::{Bytes, Nanos};

use crate::support::*;

fn is_share(count: usize, n: usize, share: f64) -> bool {
    let (n, count) = (n as f64, count as f64);
    (count - n * share).abs() <= 5.0 * (n * share * (1.0 - share)).sqrt()
}

#[test]
fn write_saturation_is_4_kib_anywhere_by_four_times_32() {
    let cells = play_suite("snia-write-saturation", &["time=10ms", "file_size=64MiB"]);
    let [cell] = cells.as_slice() else { panic!("one cell") };
    assert_eq!((cell.streams[0].threads, cell.streams[0].queue_depth), (4, 32));
    assert_eq!(cell.requests.len(), 100 * 128);
    assert!(cell.requests.iter().all(|r| r.op == Op::Write && r.length == 4096));
    assert!(cell.requests.iter().all(|r| r.offset % 4096 == 0));
    let suite = checked(suite::find_builtin("snia-write-saturation").unwrap().text, &[]);
    assert!(!suite.files.fill && suite.files.precondition.is_empty(), "from fresh");
}

/// The cells of a matrix as (reads in percent, KiB), and the one that is tracked.
fn matrix(name: &str) -> (Vec<(u32, f64)>, (u32, f64)) {
    let suite = checked(suite::find_builtin(name).unwrap().text, &["file_size=64MiB"]);
    let phase = &suite.phases[0];
    let place = |cell: &suite::model::Cell| {
        let mix = &cell.streams[0].mix;
        let reads = mix.classes.iter().filter(|class| class.op == Operation::Read);
        let percent = (reads.map(|class| class.weight).sum::<f64>() * 100.0).round() as u32;
        (percent, mix.block_size().unwrap().get() as f64 / 1024.0)
    };
    let steady = phase.steady.unwrap();
    assert_eq!((steady.round, steady.rounds_max), (Nanos::secs(60), 25));
    let write = |block_size| Precondition::Write { random: false, block_size, volume: 2.0 };
    assert_eq!(suite.files.precondition, [Precondition::Trim, write(Bytes::kib(128))]);
    (phase.cells.iter().map(place).collect(), place(&phase.cells[steady.track]))
}

#[test]
fn iops_is_seven_mixes_by_eight_sizes_and_4_kib_writes_decide() {
    let (cells, tracked) = matrix("snia-iops");
    let sizes = [1024.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 0.5];
    let mixes = [100, 95, 65, 50, 35, 5, 0];
    let wanted = mixes.iter().flat_map(|mix| sizes.iter().map(move |size| (*mix, *size)));
    assert_eq!(cells, wanted.collect::<Vec<_>>());
    assert_eq!(tracked, (0, 4.0));
    for cell in play_suite("snia-iops", &["time=1ms", "file_size=64MiB", "block_size=4KiB"]) {
        assert_eq!((cell.streams[0].threads, cell.streams[0].queue_depth), (4, 32));
        assert_eq!(cell.requests.len(), 10 * 128);
        assert!(cell.requests.windows(2).any(|pair| pair[1].offset < pair[0].offset));
    }
}

#[test]
fn latency_has_one_request_in_flight() {
    let (cells, tracked) = matrix("snia-latency");
    let sizes = [16.0, 8.0, 4.0, 0.5];
    let wanted = [100, 65, 0].into_iter().flat_map(|mix| sizes.map(|size| (mix, size)));
    assert_eq!((cells, tracked), (wanted.collect(), (0, 4.0)));
    for cell in play_suite("snia-latency", &["time=10ms", "file_size=64MiB"]) {
        let places = cell.requests.iter().zip(0u64..);
        assert!(places.clone().all(|(r, n)| r.start == Nanos::new(LATENCY.get() * n)));
        assert_eq!(places.count(), 100);
    }
}

#[test]
fn throughput_prepares_the_drive_for_each_size_and_goes_in_order() {
    let text = suite::find_builtin("snia-throughput").unwrap().text;
    let suite = checked(text, &["file_size=64MiB", "time=10ms"]);
    assert!(suite.files.precondition.is_empty());
    for (phase, block_size) in suite.phases.iter().zip([Bytes::mib(1), Bytes::kib(128)]) {
        let write = Precondition::Write { random: false, block_size, volume: 2.0 };
        assert_eq!(phase.precondition, [Precondition::Trim, write]);
        assert_eq!(phase.steady.unwrap().track, 1, "the writes");
        for (cell, op) in phase.cells.iter().zip([Op::Read, Op::Write]) {
            let blocks = (64 << 20) / block_size.get();
            for (request, n) in play_cell(&suite, cell, 1).iter().zip(0u64..) {
                let place = (request.op, request.offset, u64::from(request.length));
                assert_eq!(place, (op, n % blocks * block_size.get(), block_size.get()));
            }
        }
    }
}

#[test]
fn the_composite_is_jesd219() {
    let cells = play_suite("snia-enterprise-composite", &["time=20ms", "file_size=1GiB"]);
    let all = &cells[0].requests;
    let n = all.len();
    assert_eq!(n, 200 * 128);
    let reads = all.iter().filter(|request| request.op == Op::Read).count();
    assert!(is_share(reads, n, 0.4), "{reads}");
    let mut sizes = BTreeMap::new();
    for request in all {
        assert_eq!(request.offset % 4096, 0);
        *sizes.entry(request.length).or_insert(0usize) += 1;
    }
    let shares = [
        (512, 4.0),
        (1024, 1.0),
        (1536, 1.0),
        (2048, 1.0),
        (2560, 1.0),
        (3072, 1.0),
        (3584, 1.0),
        (4096, 67.0),
        (8192, 10.0),
        (16384, 7.0),
        (32768, 3.0),
        (65536, 3.0),
    ];
    assert_eq!(sizes.len(), shares.len());
    for (size, percent) in shares {
        assert!(is_share(sizes[&size], n, percent / 100.0), "{size}: {}", sizes[&size]);
    }
    let within = |low: f64, high: f64| {
        let gib = (1u64 << 30) as f64;
        let (low, high) = ((low * gib) as u64, (high * gib) as u64);
        all.iter().filter(|request| (low..high).contains(&request.offset)).count()
    };
    for (low, high, share) in [(0.0, 0.05, 0.5), (0.05, 0.2, 0.3), (0.2, 1.0, 0.2)] {
        // A zone ends at a whole place, so a request more or less is on the border.
        assert!(is_share(within(low, high), n, share), "{low} to {high}");
    }
}

#[test]
fn cross_stimulus_is_in_order_at_random_and_in_order() {
    let cells = play_suite("snia-cross-stimulus", &["time=10ms", "file_size=64MiB"]);
    assert_eq!(cells.len(), 3);
    for (cell, n) in cells.iter().zip(0..) {
        assert!(cell.requests.iter().all(|request| request.op == Op::Write));
        let places = offsets(&cell.requests);
        if n == 1 {
            assert!(cell.requests.iter().all(|request| request.length == 8192));
            assert!(places.windows(2).any(|pair| pair[1] < pair[0]));
        } else {
            let wanted: Vec<u64> = (0..places.len() as u64).map(|n| (n % 64) << 20).collect();
            assert_eq!(places, wanted);
        }
    }
    let suite = checked(suite::find_builtin("snia-cross-stimulus").unwrap().text, &[]);
    let hours = suite.phases.iter().map(|phase| phase.cells[0].streams[0].stop.time.unwrap());
    assert!(hours.eq([8, 6, 8].map(|hours| units::Nanos::secs(hours * 3600))));
}

#[test]
fn idle_recovery_writes_for_five_seconds_and_rests_longer_each_time() {
    let text = suite::find_builtin("snia-host-idle-recovery").unwrap().text;
    let suite = checked(text, &["file_size=64MiB", "queue_depth=1"]);
    assert!(suite.phases[0].steady.is_some());
    let pairs: Vec<_> = suite.phases[1..].chunks(2).collect();
    let rests = [5, 10, 15, 25, 50];
    assert_eq!(pairs.len(), rests.len());
    for (pair, rest) in pairs.iter().zip(rests) {
        let stop = |n: usize| pair[n].cells[0].streams[0].stop.time.unwrap();
        assert_eq!(pair[0].name, format!("idle-{rest}s"));
        assert_eq!(stop(0), Nanos::secs(360 * (5 + rest)), "360 times");
        assert_eq!((pair[1].name.clone(), stop(1)), (format!("back-{rest}s"), Nanos::secs(1800)));
    }
    // Two turns of the shortest.
    let suite = checked(text, &["file_size=64MiB", "queue_depth=1", "idle-5s.time=20s"]);
    let requests = play_cell(&suite, &suite.phases[1].cells[0], 1);
    assert!(requests.iter().all(|r| r.op == Op::Write && r.length == 4096));
    let seconds: std::collections::BTreeSet<u64> =
        requests.iter().map(|request| request.start.get() / 1_000_000_000).collect();
    assert_eq!(seconds.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);
}
