//! A database server: every stream is the same alone and with the others, and keeps to its part.

use std::collections::{BTreeMap, BTreeSet};

use device::Op;
use suite::model::{Cell, Stream};
use units::Nanos;

use crate::support::*;

const SETS: [&str; 3] = ["file_size=256MiB", "time=200ms", "ramp=0s"];

/// Those of the first phase; the others play the log and the reads once more, with more or less at once.
fn cells() -> Vec<Played> {
    let mut all = play_suite("database-server", &SETS);
    all.truncate(10);
    all
}

fn of<'a>(cell: &'a Played, name: &str) -> Vec<&'a Request> {
    let index = cell.streams.iter().position(|stream| stream.name == name).unwrap() as u32;
    cell.requests.iter().filter(|request| request.stream == index).collect()
}

/// The requests of one cell whose only stream is `name`.
fn alone(name: &str, time: &str) -> Vec<Request> {
    let text = suite::find_builtin("database-server").unwrap().text;
    let suite = checked(text, &["file_size=256MiB", time, "ramp=0s"]);
    let is_it = |cell: &&Cell| matches!(cell.streams.as_slice(), [only] if only.name == name);
    let cell = suite.phases[0].cells.iter().find(is_it).unwrap();
    play_cell(&suite, cell, 1)
}

#[test]
fn alone_and_together_the_streams_are_the_same() {
    let mut seen: BTreeMap<String, Stream> = BTreeMap::new();
    let mut who = Vec::new();
    for cell in cells() {
        let names: Vec<_> = cell.streams.iter().map(|stream| stream.name.clone()).collect();
        who.push(names.join(" "));
        for stream in cell.streams {
            let first = seen.entry(stream.name.clone()).or_insert_with(|| stream.clone());
            assert_eq!(*first, stream);
        }
    }
    let alone = ["log", "reads", "writes", "checkpoint", "scan"];
    assert_eq!(who[..5], alone);
    assert_eq!(who[5..8], ["log reads", "log reads writes", "log reads writes checkpoint"]);
    assert_eq!(who[8..], ["log reads writes scan", "log reads writes checkpoint scan"]);
}

#[test]
fn what_is_played_with_more_and_less_at_once_is_the_same_otherwise() {
    let all = play_suite("database-server", &SETS);
    let [log, reads] = [&all[0].streams[0], &all[1].streams[0]];
    let at_once: Vec<_> = all[10..]
        .iter()
        .map(|cell| {
            let [only] = cell.streams.as_slice() else { panic!("{:?}", cell.streams) };
            let same = if only.name == "log" { log } else { reads };
            let (threads, queue_depth) = (only.threads, only.queue_depth);
            assert_eq!(Stream { threads, queue_depth, ..same.clone() }, *only);
            threads * queue_depth
        })
        .collect();
    assert_eq!(at_once, [1, 8, 64, 1, 16, 128]);
}

#[test]
fn the_log_has_the_first_eighth_and_data_the_rest() {
    for cell in cells() {
        for request in cell.requests.iter().filter(|request| request.length > 0) {
            let end = request.offset + u64::from(request.length);
            let is_log = cell.streams[request.stream as usize].name == "log";
            let place = if is_log { 0..=32 << 20 } else { 32 << 20..=256 << 20 };
            assert!(place.contains(&request.offset) && place.contains(&end), "{request:?}");
        }
    }
}

#[test]
fn eight_sessions_share_a_flush() {
    let all = cells().remove(0);
    let log: Vec<Request> = of(&all, "log").into_iter().copied().collect();
    assert!(log.iter().all(|r| matches!(r.op, Op::Write | Op::Fdatasync)));
    assert!(letters(&log).starts_with("wfwfwf"));
    // Four commits of 1 KiB each time, so every page is written twice.
    let writes: Vec<u64> = log.iter().filter(|r| r.op == Op::Write).map(|r| r.offset).collect();
    let wanted: Vec<u64> = (0..writes.len() as u64).map(|n| n / 2 * 8192).collect();
    assert_eq!(writes, wanted);
}

#[test]
fn reads_are_skewed_and_the_scan_is_in_order() {
    let cells = cells();
    let reads = of(&cells[1], "reads");
    assert_eq!(reads.len(), 2000 * 16);
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for request in &reads {
        assert_eq!((request.op, request.length), (Op::Read, 8192));
        *counts.entry(request.offset).or_default() += 1;
    }
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let hot: usize = counts[..287].iter().sum();
    // Of 28 672 pages the first hundredth has 0.57 of all by zipf 0.99.
    assert!((0.5..0.65).contains(&(hot as f64 / reads.len() as f64)), "{hot}");
    for (request, n) in of(&cells[4], "scan").iter().zip(0u64..) {
        assert_eq!((request.offset, request.length), ((32 + n % 224) << 20, 1 << 20));
    }
}

#[test]
fn background_writes_come_400_a_second_at_random_moments() {
    let writes = alone("writes", "time=10s");
    assert!((3700..4300).contains(&writes.len()), "{}", writes.len());
    let gaps: Vec<f64> = writes
        .windows(2)
        .map(|pair| pair[1].start.saturating_sub(pair[0].start).as_secs_f64())
        .collect();
    let long = gaps.iter().filter(|gap| **gap > 1.0 / 400.0).count() as f64 / gaps.len() as f64;
    assert!((0.32..0.42).contains(&long), "1/e of exponential gaps are above their mean: {long}");
}

#[test]
fn a_checkpoint_is_so_many_pages_once_each_and_a_pause() {
    let pages = alone("checkpoint", "time=12s");
    let first: Vec<_> = pages.iter().filter(|r| r.start < Nanos::secs(10)).collect();
    assert_eq!(first.len(), 32 * 512);
    let last = first.iter().map(|request| request.end).max().unwrap();
    assert_eq!(last, Nanos::new(LATENCY.get() * 512), "as fast as they go");
    let again = pages.iter().find(|r| r.start > last).unwrap().start;
    assert_eq!(again, last + Nanos::secs(10));
    let places: BTreeSet<u64> = first.iter().map(|request| request.offset).collect();
    assert_eq!(places.len(), first.len());
}
