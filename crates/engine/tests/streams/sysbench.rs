//! sysbench fileio: one cursor through all files, places of the total with repetition, and after
//! every hundred requests a flush of each of the 128 files.

use std::collections::BTreeSet;

use device::Op;
use suite::model::StartFile;
use units::Nanos;

use crate::support::*;

const BLOCK: u64 = 16 << 10;
const FILES: u32 = 128;

/// What follows every hundred requests.
fn cycles(requests: &[Request]) -> Vec<(&[Request], &[Request])> {
    let cycle = 100 + FILES as usize;
    requests.chunks_exact(cycle).map(|chunk| chunk.split_at(100)).collect()
}

fn all_files_in_turn(flushes: &[Request]) -> bool {
    flushes.iter().zip(0..).all(|(flush, file)| flush.op == Op::Fsync && flush.file == file)
        && flushes.len() == FILES as usize
}

/// Requests of a mode, 300 without the flushes; each file has 16 blocks.
fn played(mode: &str) -> Vec<Request> {
    record_suite(&format!("sysbench-{mode}"), &["file_size=256KiB", "time=none", "operations=300"])
}

#[test]
fn sequential_modes_go_through_the_files_with_one_cursor() {
    for (mode, op) in [("seqrd", Op::Read), ("seqrewr", Op::Write), ("seqwr", Op::Write)] {
        let all = played(mode);
        let requests: Vec<_> = all.iter().filter(|r| r.op == op).collect();
        assert_eq!(requests.len(), 300);
        for (request, n) in requests.iter().zip(0u64..) {
            assert_eq!(u64::from(request.length), BLOCK);
            assert_eq!(u64::from(request.file), n / 16, "{mode} {n}");
            assert_eq!(request.offset, n % 16 * BLOCK, "{mode} {n}");
        }
    }
}

#[test]
fn the_cursor_is_shared_and_begins_again_after_the_last_file() {
    let sets = ["file_size=32KiB", "time=none", "operations=600", "threads=4"];
    let all = record_suite("sysbench-seqrd", &sets);
    // 256 blocks a pass; four threads take turns, so each four begin at once.
    for (four, n) in all.chunks(4).zip(0u64..) {
        let mut blocks: Vec<u64> =
            four.iter().map(|r| u64::from(r.file) * 2 + r.offset / BLOCK).collect();
        blocks.sort_unstable();
        let first = n * 4 % 256;
        assert_eq!(blocks, (first..first + 4).collect::<Vec<_>>());
        assert_eq!(four.iter().map(|r| r.worker).collect::<BTreeSet<_>>().len(), 4);
    }
}

#[test]
fn reads_are_not_followed_by_flushes() {
    for mode in ["seqrd", "rndrd"] {
        assert_eq!(letters(&played(mode)), "r".repeat(300));
    }
}

#[test]
fn a_hundred_requests_are_followed_by_128_flushes_and_the_end_by_as_many() {
    for mode in ["seqwr", "seqrewr", "rndwr", "rndrw"] {
        let all = played(mode);
        assert_eq!(all.len(), 300 + 3 * 128 + 128, "{mode}");
        let cycles = cycles(&all);
        assert_eq!(cycles.len(), 3);
        for (requests, flushes) in cycles {
            assert!(requests.iter().all(|r| r.op != Op::Fsync), "{mode}");
            assert!(all_files_in_turn(flushes), "{mode}");
        }
        assert!(all_files_in_turn(&all[3 * 228..]), "{mode}");
    }
}

#[test]
fn only_seqwr_writes_files_that_are_not_there_yet() {
    let mut begins = std::collections::BTreeMap::new();
    for mode in ["seqwr", "seqrewr", "rndwr"] {
        let suite = checked(suite::find_builtin(&format!("sysbench-{mode}")).unwrap().text, &[]);
        begins.insert(mode, (suite.phases[0].cells[0].start_file(), suite.files.fill));
    }
    assert_eq!(begins["seqwr"], (StartFile::Remove, false));
    assert_eq!(begins["seqrewr"], (StartFile::Keep, true));
    assert_eq!(begins["rndwr"], (StartFile::Keep, true));
}

#[test]
fn random_places_are_blocks_of_all_files_with_repetition() {
    for mode in ["rndrd", "rndwr", "rndrw"] {
        let all = played(mode);
        let requests: Vec<_> = all.iter().filter(|r| r.op != Op::Fsync).collect();
        let mut blocks = BTreeSet::new();
        for request in &requests {
            assert!(request.offset % BLOCK == 0 && request.offset < 16 * BLOCK);
            assert!(request.file < FILES && u64::from(request.length) == BLOCK);
            blocks.insert((request.file, request.offset));
        }
        // 300 of 2048 with repetition: 21 +- 4 come again.
        assert!((260..300).contains(&blocks.len()), "{mode}: {}", blocks.len());
        let files: BTreeSet<u32> = requests.iter().map(|r| r.file).collect();
        assert!(files.len() > 100, "{mode}: {}", files.len());
    }
}

#[test]
fn a_read_is_made_while_the_ratio_is_less_than_three_to_two() {
    let all = played("rndrw");
    let words = letters(&all).chars().filter(|letter| *letter != 'f').collect::<String>();
    let (mut reads, mut writes) = (0.0, 0.0);
    for letter in words.chars() {
        let is_read = (reads + 1.0) / (writes + 1.0) < 1.5;
        assert_eq!(letter == 'r', is_read, "after {reads} and {writes}");
        if is_read { reads += 1.0 } else { writes += 1.0 }
    }
    assert_eq!((reads, writes), (180.0, 120.0));
    assert!(words.starts_with("rwrwr"), "{words}");
}

#[test]
fn a_seek_is_one_read_of_8_kib_in_500_files() {
    let all = record_suite("sysbench-seek-rate", &["time=100ms"]);
    assert_eq!(all.len(), 1000);
    for (request, n) in all.iter().zip(0u64..) {
        assert_eq!((request.op, request.length, request.worker), (Op::Read, 8 << 10, 0));
        assert!(request.file < 500 && request.offset < 1 << 30 && request.offset % (8 << 10) == 0);
        assert_eq!(request.start, Nanos::new(LATENCY.get() * n), "one at a time");
    }
    let files: BTreeSet<u32> = all.iter().map(|request| request.file).collect();
    assert!(files.len() > 400, "1000 of 500 files meet 432 +- 8 of them: {}", files.len());
}

#[test]
fn a_commit_is_a_write_of_the_one_block_and_a_flush() {
    let all = record_suite("sysbench-fsync-rate", &["time=none", "operations=50"]);
    assert_eq!(letters(&all), "wf".repeat(50));
    for request in all.iter().filter(|request| request.op == Op::Write) {
        assert_eq!((request.file, request.offset, request.length), (0, 0, 16 << 10));
    }
}

#[test]
fn async_keeps_128_in_flight_and_mmap_one_of_the_same_requests() {
    use suite::model::Backend;
    let base = ["file_size=256KiB", "time=none", "operations=300"];
    let sync = played("rndrd");
    let text = suite::find_builtin("sysbench-rndrd").unwrap().text;
    for (sets, backend, depth) in [
        (["backend=libaio", "queue_depth=128"], Backend::Libaio, 128),
        (["backend=mmap", "queue_depth=1"], Backend::Mmap, 1),
    ] {
        let sets = [&base[..], &sets].concat();
        let stream = &checked(text, &sets).phases[0].cells[0].streams[0];
        assert_eq!((stream.backend, stream.queue_depth), (backend, depth));
        let all = record_suite("sysbench-rndrd", &sets);
        let places = |all: &[Request]| -> Vec<(Op, u32, u64)> {
            all.iter().map(|request| (request.op, request.file, request.offset)).collect()
        };
        assert_eq!(places(&all), places(&sync));
        let first = all.iter().filter(|request| request.start == Nanos::ZERO).count();
        assert_eq!(first, depth as usize);
    }
    // A hundred writes are followed by 128 flushes here, too, each one of those in flight.
    let sets = [&base[..], &["backend=libaio", "queue_depth=128"]].concat();
    let all = record_suite("sysbench-rndwr", &sets);
    let flushes = all.iter().filter(|request| request.op == Op::Fsync).count();
    assert_eq!((all.len() - flushes, flushes % FILES as usize), (300, 0));
}
