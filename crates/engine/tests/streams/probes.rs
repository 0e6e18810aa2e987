//! Our own probes: single cells to start from, a sweep and a pair that find caches, writes until
//! steady, and what calibration repeats.

use std::collections::BTreeSet;

use device::Op;
use suite::model::{Access, Method};
use units::Bytes;

use crate::support::*;

const TIME: &str = "time=10ms";

/// So many of a size, each behind the one before.
fn assert_in_order(requests: &[Request], op: Op, size: u64) {
    for (request, n) in requests.iter().zip(0u64..) {
        assert_eq!((request.op, request.offset, u64::from(request.length)), (op, n * size, size));
    }
}

/// Multiples of their size below an end, in no order.
fn assert_anywhere(requests: &[Request], op: Op, size: u64, end: u64) {
    assert!(requests.len() > 20);
    for request in requests {
        assert_eq!((request.op, u64::from(request.length)), (op, size));
        assert!(request.offset % size == 0 && request.offset + size <= end, "{request:?}");
    }
    assert!(offsets(requests).windows(2).any(|pair| pair[1] < pair[0]), "in order");
    assert!(requests.iter().any(|request| request.offset >= end / 2), "half of it is not met");
}

#[test]
fn single_cells_are_one_request_at_a_time_around_the_page_cache() {
    for (name, op, size) in [
        ("random-read", Op::Read, 4 << 10),
        ("random-write", Op::Write, 4 << 10),
        ("sequential-read", Op::Read, 128 << 10),
        ("sequential-write", Op::Write, 128 << 10),
    ] {
        let cells = play_suite(name, &[TIME, "file_size=64MiB"]);
        assert_eq!(cells.len(), 1, "{name}");
        let (stream, requests) = (&cells[0].streams[0], &cells[0].requests);
        assert_eq!((stream.threads, stream.queue_depth, stream.direct), (1, 1, true), "{name}");
        match name.starts_with("random") {
            true => assert_anywhere(requests, op, size, 64 << 20),
            false => assert_in_order(requests, op, size),
        }
    }
}

#[test]
fn a_working_set_is_read_through_once_and_then_at_random_and_doubles() {
    let suite = checked(suite::find_builtin("working-set").unwrap().text, &[]);
    assert_eq!((suite.method, suite.phases.len()), (Method::Classic, 20));
    for (pair, n) in suite.phases.chunks(2).zip(0..) {
        let [warm, read] = [&pair[0], &pair[1]].map(|phase| &phase.cells[0].streams[0]);
        let size = Bytes::mib(64 << n);
        assert_eq!((warm.region.length, read.region.length), (size, size));
        assert_eq!((warm.stop.bytes, &read.access), (Some(size), &Access::Uniform));
        assert_eq!((read.threads, read.queue_depth, read.direct), (1, 1, true));
    }
    let small = [
        "file_size=64MiB",
        "warm-1.region.length=1MiB",
        "warm-1.bytes=1MiB",
        "read-1.region.length=1MiB",
        "read-1.time=10ms",
    ];
    let text: String = suite::find_builtin("working-set").unwrap().text.to_owned();
    // The first pair alone: the others' regions do not fit into so small a file.
    let first = text.split("[[phase]]").take(3).collect::<Vec<_>>().join("[[phase]]");
    let cells = play_text(&first, &small);
    assert_in_order(&cells[0].requests, Op::Read, 1 << 20);
    assert_eq!(cells[0].requests.len(), 1);
    assert_anywhere(&cells[1].requests, Op::Read, 4 << 10, 1 << 20);
}

#[test]
fn the_same_blocks_are_read_again_in_the_same_order_each_once() {
    let sets = ["file_size=64MiB", "region.length=4MiB", "bytes=4MiB"];
    let cells = play_suite("reread", &sets);
    let [first, again] = [&cells[0].requests, &cells[1].requests];
    assert_eq!(offsets(first), offsets(again));
    let blocks: BTreeSet<u64> = offsets(first).into_iter().collect();
    assert_eq!((first.len(), blocks.len()), (1024, 1024));
    assert_eq!(blocks.last(), Some(&((4 << 20) - (4 << 10))));
    assert_anywhere(first, Op::Read, 4 << 10, 4 << 20);
}

#[test]
fn steady_writes_are_4_kib_anywhere_and_two_probes_follow() {
    let cells = play_suite("steady-write", &[TIME, "file_size=64MiB"]);
    let shape = |cell: &Played| {
        let stream = &cell.streams[0];
        (cell.phase.clone(), stream.threads, stream.queue_depth)
    };
    let shapes: Vec<_> = cells.iter().map(shape).collect();
    let wanted = [("write", 1, 32), ("probe-read", 1, 1), ("probe-write", 1, 1)];
    assert_eq!(shapes, wanted.map(|(name, threads, depth)| (name.to_owned(), threads, depth)));
    assert_anywhere(&cells[0].requests, Op::Write, 4 << 10, 64 << 20);
    assert_anywhere(&cells[1].requests, Op::Read, 4 << 10, 64 << 20);
    assert_anywhere(&cells[2].requests, Op::Write, 8 << 10, 64 << 20);
    let suite = checked(suite::find_builtin("steady-write").unwrap().text, &[]);
    assert_eq!(suite.files.precondition[0].volume(), 2.0);
    assert_eq!(suite.phases[0].steady.unwrap().volume, 1.0);
}

#[test]
fn calibration_repeats_twelve_cells_equally_often() {
    let cells = play_suite("calibration", &[TIME, "file_size=64MiB"]);
    let mut met = BTreeSet::new();
    for cell in &cells {
        let stream = &cell.streams[0];
        let size = stream.mix.block_size().unwrap().get();
        let op = if cell.phase == "read" { Op::Read } else { Op::Write };
        assert_anywhere(&cell.requests, op, size, 64 << 20);
        met.insert((cell.phase.clone(), size, stream.queue_depth));
    }
    assert_eq!((cells.len(), met.len()), (12, 12));
    let suite = checked(suite::find_builtin("calibration").unwrap().text, &[]);
    assert_eq!(suite.rounds.visits_min, suite.rounds.visits_max);
    assert_eq!(suite.rounds.visits_min % 2, 0);
}
