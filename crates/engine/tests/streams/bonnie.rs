//! bonnie++: a file by bytes, by blocks, rewritten, read; tickets that five threads share.

use std::collections::BTreeSet;

use device::{FileIndex, Op};

use crate::support::*;

const SETS: [&str; 7] = [
    "file_size=4MiB",
    "bytes=4MiB",
    "write-byte.bytes=64KiB",
    "read-byte.bytes=64KiB",
    "rewrite.operations=512",
    "directory.files=1000",
    "seek.bytes=none",
];

fn phase(name: &str) -> Vec<Request> {
    let cells = play_suite("bonnie", &SETS);
    cells.into_iter().find(|cell| cell.phase == name).unwrap().requests
}

/// Every request in order from the file's start, `size` each.
fn assert_in_order(requests: &[Request], size: u64, count: u64) {
    assert_eq!(requests.len() as u64, count);
    for (request, n) in requests.iter().zip(0u64..) {
        assert_eq!((request.offset, u64::from(request.length)), (n * size, size));
    }
}

#[test]
fn bytes_and_blocks_are_written_and_flushed_once_and_read() {
    for (name, size, count) in [("write-byte", 1, 64 << 10), ("write-block", 8 << 10, 512)] {
        let all = phase(name);
        let (flush, writes) = all.split_last().unwrap();
        assert_in_order(writes, size, count);
        assert!(writes.iter().all(|request| request.op == Op::Write));
        assert_eq!(flush.op, Op::Fsync, "the close is in the time");
    }
    for (name, size, count) in [("read-byte", 1, 64 << 10), ("read-block", 8 << 10, 512)] {
        let all = phase(name);
        assert_in_order(&all, size, count);
        assert!(all.iter().all(|request| request.op == Op::Read));
    }
}

#[test]
fn every_block_is_read_and_written_back() {
    let all = phase("rewrite");
    assert_eq!(letters(&all), format!("{}f", "rw".repeat(512)));
    for (pair, n) in all.chunks_exact(2).zip(0u64..) {
        assert_eq!(offsets(pair), [n * 8192; 2]);
        assert!(pair.iter().all(|request| request.length == 8192));
    }
}

#[test]
fn five_threads_share_8192_tickets_and_every_tenth_updates() {
    let all = phase("seek");
    let reads: Vec<_> = all.iter().filter(|request| request.op == Op::Read).collect();
    let writes: Vec<_> = all.iter().filter(|request| request.op == Op::Write).collect();
    assert_eq!((reads.len(), writes.len()), (8192, 820), "tickets 0, 10, ... 8190");
    let workers: BTreeSet<u32> = all.iter().map(|request| request.worker).collect();
    assert_eq!(workers.len(), 5);
    let flushes: Vec<_> = all.iter().filter(|request| request.op == Op::Fsync).collect();
    assert_eq!(flushes.len(), 1, "when the last thread is done");
    assert!(all.iter().all(|request| request.start <= flushes[0].start));
    for write in &writes {
        let before = reads.iter().any(|read| {
            read.worker == write.worker && read.offset == write.offset && read.end == write.start
        });
        assert!(before, "what was read is written back");
    }
    // 8192 of 512 blocks with repetition meet nearly all of them, not in order.
    let places: BTreeSet<u64> = reads.iter().map(|read| read.offset).collect();
    assert!(places.len() > 505 && places.iter().all(|place| place % 8192 == 0));
}

#[test]
fn files_are_made_looked_at_and_deleted_each_once() {
    for (kind, shuffled) in [("in-order", false), ("at-random", true)] {
        for (op, letter, ends_flushed) in
            [("create", 'C', true), ("stat", 'S', false), ("delete", 'D', true)]
        {
            let all = phase(&format!("{op}-{kind}"));
            let end = if ends_flushed { "f" } else { "" };
            assert_eq!(letters(&all), format!("{}{end}", letter.to_string().repeat(1000)));
            assert!(all.iter().all(|r| (r.file, r.worker) == (FileIndex::DIRECTORY.0, 0)));
            let numbers = offsets(&all[..1000]);
            // Made by number whatever they are called; listed in the directory's order, or shuffled.
            let in_order = numbers == (0..1000).collect::<Vec<_>>();
            assert_eq!(in_order, !shuffled || op == "create", "{op}-{kind}");
            assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>(), (0..1000).collect());
        }
    }
}

#[test]
fn the_numbers_are_the_originals() {
    let suite = checked(suite::find_builtin("bonnie").unwrap().text, &[]);
    let streams: Vec<_> = suite.cells().map(|cell| &cell.streams[0]).collect();
    assert_eq!(streams.len(), 12);
    let operations: Vec<_> = streams.iter().map(|stream| stream.stop.operations).collect();
    assert_eq!(operations[2], Some((62 << 30) / 8192), "the whole file");
    assert_eq!(operations[5], Some(8192));
    assert!(operations[6..].iter().all(|&n| n == Some(16 << 10)), "{operations:?}");
    assert!(streams.iter().all(|stream| !stream.direct));
}
