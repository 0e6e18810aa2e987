//! SNIA's loads.

use std::collections::BTreeMap;

use device::Op;
use units::Nanos;

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
