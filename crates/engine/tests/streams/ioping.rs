//! ioping: one small read, a pause, the next.

use std::collections::BTreeSet;

use device::Op;
use units::Nanos;

use crate::support::*;

#[test]
fn a_read_a_second_within_a_mib() {
    let cells = play_suite("ioping", &[]);
    let cell = &cells[0];
    // The first falls into the ramp of a second.
    assert_eq!((cell.phase.as_str(), cell.requests.len()), ("latency", 21));
    for pair in cell.requests.windows(2) {
        assert_eq!(pair[1].start, pair[0].end + Nanos::secs(1), "the pause follows the answer");
    }
    assert_eq!(cell.streams[0].stop.ramp, Nanos::secs(1));
    for request in &cell.requests {
        assert_eq!((request.op, request.length), (Op::Read, 4096));
        assert!(request.offset % 4096 == 0 && request.offset < 1 << 20);
    }
    assert!(cell.requests[1].start > Nanos::secs(1), "and so is not counted");
}

#[test]
fn the_seek_rate_is_the_same_without_a_pause() {
    let cells = play_suite("ioping", &["time=300ms"]);
    let cell = &cells[1];
    assert_eq!((cell.phase.as_str(), cell.requests.len()), ("seek-rate", 3000));
    assert!(cell.requests.windows(2).all(|pair| pair[0].end == pair[1].start));
    let places: BTreeSet<u64> = offsets(&cell.requests).into_iter().collect();
    assert!(places.len() < 3000 && *places.last().unwrap() > 60 << 20, "of 64 MiB, some again");
}

#[test]
fn in_order_by_256_kib() {
    let cells = play_suite("ioping", &["time=300ms"]);
    let cell = &cells[2];
    assert_eq!(cell.phase, "sequential");
    for (request, n) in cell.requests.iter().zip(0u64..) {
        assert_eq!((request.offset, request.length), (n % 256 * (256 << 10), 256 << 10));
    }
}
