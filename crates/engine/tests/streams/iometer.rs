//! IOMeter: dice for size, direction and kind of place; sectors; one pointer.

use std::collections::BTreeMap;

use device::Op;

use crate::support::*;

/// Requests of one level: 40 ms at a depth make 400 times the depth.
const TIME: &str = "time=40ms";

fn level(name: &str, depth: u32) -> Vec<Request> {
    let depth_set = format!("queue_depth={depth}");
    let cells = play_suite(name, &[TIME, "file_size=256MiB", &depth_set]);
    let [cell] = cells.as_slice() else { panic!("one level") };
    assert_eq!((cell.streams[0].threads, cell.streams[0].queue_depth), (1, depth));
    assert!(cell.streams[0].direct);
    cell.requests.clone()
}

/// Whether a count of `n` throws is what a share promises, but for one in a million.
fn is_share(count: usize, n: usize, share: f64) -> bool {
    let (n, count) = (n as f64, count as f64);
    (count - n * share).abs() <= 5.0 * (n * share * (1.0 - share)).sqrt() + 1e-9
}

fn reads(requests: &[Request]) -> usize {
    requests.iter().filter(|request| request.op == Op::Read).count()
}

fn assert_sizes(requests: &[Request], shares: &[(u32, f64)]) {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(request.length).or_insert(0usize) += 1;
    }
    assert!(counts.keys().all(|size| shares.iter().any(|(known, _)| known == size)));
    for (size, percent) in shares {
        let count = counts.get(size).copied().unwrap_or(0);
        assert!(is_share(count, requests.len(), percent / 100.0), "{size}: {count}");
    }
}

#[test]
fn the_levels_are_those_reviewers_printed() {
    for name in ["file-server", "web-server", "database", "workstation", "streaming-read"] {
        let cells = play_suite(&format!("iometer-{name}"), &["time=1ms", "file_size=64MiB"]);
        let depths: Vec<u32> = cells.iter().map(|cell| cell.streams[0].queue_depth).collect();
        assert_eq!(depths, [1, 4, 8, 16, 32, 64, 128, 256]);
        for (cell, depth) in cells.iter().zip(depths) {
            let first = cell.requests.iter().filter(|request| request.start == units::Nanos::ZERO);
            assert_eq!(first.count(), depth as usize, "{name}");
        }
    }
}

#[test]
fn the_file_server_is_intels() {
    let all = level("iometer-file-server", 32);
    assert!(is_share(reads(&all), all.len(), 0.8));
    assert_sizes(
        &all,
        &[
            (512, 10.0),
            (1024, 5.0),
            (2048, 5.0),
            (4096, 60.0),
            (8192, 2.0),
            (16384, 4.0),
            (32768, 4.0),
            (65536, 10.0),
        ],
    );
    // At any sector: of 4 KiB requests one in eight is at a multiple of 4 KiB.
    let pages: Vec<_> = all.iter().filter(|request| request.length == 4096).collect();
    let aligned = pages.iter().filter(|request| request.offset % 4096 == 0).count();
    assert!(all.iter().all(|request| request.offset % 512 == 0));
    assert!(is_share(aligned, pages.len(), 0.125), "{aligned} of {}", pages.len());
}

#[test]
fn the_web_server_only_reads() {
    let all = level("iometer-web-server", 32);
    assert_eq!(reads(&all), all.len());
    assert_sizes(
        &all,
        &[
            (512, 22.0),
            (1 << 10, 15.0),
            (2 << 10, 8.0),
            (4 << 10, 23.0),
            (8 << 10, 15.0),
            (16 << 10, 2.0),
            (32 << 10, 6.0),
            (64 << 10, 7.0),
            (128 << 10, 1.0),
            (512 << 10, 1.0),
        ],
    );
}

#[test]
fn the_database_reads_two_thirds() {
    let all = level("iometer-database", 32);
    assert!(is_share(reads(&all), all.len(), 0.67));
    assert_sizes(&all, &[(8192, 100.0)]);
    let follows = all.windows(2).filter(|pair| pair[1].offset == pair[0].offset + 8192).count();
    assert!(follows < 20, "all at random: {follows} follow");
    let aligned = all.iter().filter(|request| request.offset % 8192 == 0).count();
    assert!(is_share(aligned, all.len(), 1.0 / 16.0), "at any sector: {aligned}");
}

#[test]
fn a_fifth_of_the_workstation_goes_on_from_the_last_request() {
    // One in flight, so that the order of issue is the order of the pointer; and many more.
    for depth in [1, 16] {
        let all = level("iometer-workstation", depth);
        assert!(is_share(reads(&all), all.len(), 0.8));
        let follows = all.windows(2).filter(|pair| pair[1].offset == pair[0].offset + 8192).count();
        assert!(is_share(follows, all.len() - 1, 0.2), "{follows} of {}", all.len());
    }
}

#[test]
fn streams_go_on_from_where_the_last_request_ended() {
    for (name, op) in [("streaming-read", Op::Read), ("streaming-write", Op::Write)] {
        for depth in [1, 8] {
            let all = level(&format!("iometer-{name}"), depth);
            assert!(all.iter().all(|request| request.op == op));
            assert_sizes(&all, &[(64 << 10, 34.0), (128 << 10, 33.0), (256 << 10, 33.0)]);
            let mut at = 0;
            for request in &all {
                // Past the end it begins again.
                if at + u64::from(request.length) > 256 << 20 {
                    at = 0;
                }
                assert_eq!(request.offset, at, "{name}");
                at += u64::from(request.length);
            }
        }
    }
}

#[test]
fn four_kib_at_multiples_of_itself_by_three_mixes() {
    let cells = play_suite("iometer-4k", &[TIME, "file_size=256MiB"]);
    assert_eq!(cells.len(), 24);
    for cell in cells {
        let share = [1.0, 0.5, 0.0][cell.coordinates[0]];
        assert!(is_share(reads(&cell.requests), cell.requests.len(), share));
        assert!(cell.requests.iter().all(|r| r.length == 4096 && r.offset % 4096 == 0));
    }
}

/// The 29 lines in the list's order: size, reads in percent, whether at random multiples of it.
fn shipped() -> Vec<(u32, u32, bool)> {
    let five = |size: u32| [100, 75, 50, 25, 0].map(|reads| (size, reads, false));
    let three = |size: u32, random: bool| [100, 50, 0].map(|reads| (size, reads, random));
    let mut lines = Vec::new();
    lines.extend(five(512));
    lines.extend(five(4096));
    lines.extend(three(4096, true));
    lines.extend(five(16 << 10));
    lines.extend(five(32 << 10));
    lines.extend(three(64 << 10, false));
    lines.extend(three(256 << 10, false));
    lines
}

#[test]
fn all_in_one_is_the_shipped_list_thrown_by_weight() {
    let mut all = level("iometer-all-in-one", 64);
    all.extend(level("iometer-all-in-one", 32));
    let lines = shipped();
    assert_eq!(lines.len(), 29);
    let weight = |index: usize| if index < 13 { 4.0 } else { 3.0 };
    let total: f64 = (0..29).map(weight).sum();
    assert_eq!(total, 100.0);
    let share = |matches: &dyn Fn(&(u32, u32, bool)) -> f64| -> f64 {
        lines.iter().enumerate().map(|(n, line)| weight(n) / 100.0 * matches(line)).sum()
    };
    let read_share = share(&|line| f64::from(line.1) / 100.0);
    assert!(is_share(reads(&all), all.len(), read_share), "{read_share}");
    for size in [512, 4096, 16 << 10, 32 << 10, 64 << 10, 256 << 10] {
        let of_size: Vec<_> = all.iter().filter(|request| request.length == size).collect();
        let wanted = share(&|line| f64::from(u8::from(line.0 == size)));
        assert!(is_share(of_size.len(), all.len(), wanted), "{size}: {}", of_size.len());
        let reads_of =
            share(&|line| f64::from(u8::from(line.0 == size)) * f64::from(line.1) / 100.0);
        let reads = of_size.iter().filter(|request| request.op == Op::Read).count();
        assert!(is_share(reads, all.len(), reads_of), "{size}: {reads}");
    }
}

#[test]
fn all_in_one_goes_on_from_the_last_request_but_for_three_lines() {
    let all = level("iometer-all-in-one", 64);
    let mut jumps = 0;
    let mut at = 0;
    for request in &all {
        let wraps = request.offset == 0 && at + u64::from(request.length) > 256 << 20;
        if request.offset != at && !wraps {
            assert_eq!((request.length, request.offset % 4096), (4096, 0), "only these jump");
            jumps += 1;
        }
        assert_eq!(request.offset % 512, 0);
        at = request.offset + u64::from(request.length);
    }
    assert!(is_share(jumps, all.len(), 0.12), "three lines of 4 %: {jumps} of {}", all.len());
}
