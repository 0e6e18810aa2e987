//! dd: a constant total in order, by blocks of 512 B to 4 MiB, first written and then read.

use device::Op;
use units::Nanos;

use crate::support::*;

/// The whole of `total` in blocks of `size`, one at a time, from the start to the end.
fn assert_one_pass(requests: &[Request], op: Op, size: u64, total: u64) {
    assert_eq!(requests.len() as u64, total / size);
    let mut at = Nanos::ZERO;
    for (request, n) in requests.iter().zip(0u64..) {
        assert_eq!((request.op, request.file), (op, 0));
        assert_eq!((request.offset, u64::from(request.length)), (n * size, size));
        assert_eq!(request.start, at, "the next when one is done");
        at = request.end;
    }
}

#[test]
fn each_block_size_moves_the_whole_file_in_order_and_flushes_nothing() {
    for name in ["dd-big", "dd-small"] {
        let total = 8 << 20;
        let cells = play_suite(name, &["file_size=8MiB", "bytes=8MiB"]);
        assert_eq!(cells.len(), 28);
        for (cell, n) in cells.iter().zip(0..) {
            let op = if n < 14 { Op::Write } else { Op::Read };
            assert_one_pass(&cell.requests, op, 512 << (n % 14), total);
            assert!(!cell.streams[0].direct);
        }
    }
}

#[test]
fn the_totals_are_the_studys() {
    // 16 Ki blocks of 4 MiB, 1 Ki of them, 5 Mi of 8 KiB.
    let total = |name: &str| {
        let text = suite::find_builtin(name).unwrap().text;
        let suite = checked(text, &[]);
        let stop = suite.phases[0].cells[0].streams[0].stop;
        (suite.files.total(), stop.bytes.unwrap())
    };
    for (name, blocks, size) in [
        ("dd-big", 16u64 << 10, 4u64 << 20),
        ("dd-small", 1 << 10, 4 << 20),
        ("dd-40g", 5 << 20, 8 << 10),
    ] {
        let bytes = units::Bytes::new(blocks * size);
        assert_eq!(total(name), (bytes, bytes), "{name}");
    }
}

#[test]
fn forty_gigabytes_are_written_by_8_kib_and_read_by_512_bytes() {
    let cells = play_suite("dd-40g", &["file_size=1MiB", "bytes=1MiB"]);
    assert_eq!(cells.len(), 2);
    assert_one_pass(&cells[0].requests, Op::Write, 8 << 10, 1 << 20);
    assert_one_pass(&cells[1].requests, Op::Read, 512, 1 << 20);
}

#[test]
fn a_flush_at_the_end_is_one() {
    let sets = ["file_size=1MiB", "bytes=1MiB", "write.sync.at_end=timed"];
    let all = record_suite("dd-40g", &sets);
    assert_eq!(letters(&all[..129]), format!("{}f", "w".repeat(128)));
}

#[test]
fn a_copy_goes_to_the_same_place_of_the_other_file_by_two_requests_or_by_one() {
    let cells = play_suite("copy-40g", &["file_size=2MiB", "bytes=2MiB"]);
    let [all, in_kernel] = [&cells[0].requests, &cells[1].requests];
    assert_eq!((cells.len(), letters(all)), (2, "rw".repeat(16)));
    assert_eq!(letters(in_kernel), "c".repeat(16));
    for (request, n) in in_kernel.iter().zip(0u64..) {
        let place = n * (128 << 10);
        assert_eq!((request.file, request.offset, request.length), (0, place, 128 << 10));
        assert_eq!(request.to, Some((1, place)));
    }
    let mut at = Nanos::ZERO;
    for (pair, n) in all.chunks(2).zip(0u64..) {
        for (request, file) in pair.iter().zip(0u32..) {
            assert_eq!((request.file, request.offset), (file, n * (128 << 10)));
            assert_eq!((request.length, request.start), (128 << 10, at));
            at = request.end;
        }
    }
    let suite = checked(suite::find_builtin("copy-40g").unwrap().text, &[]);
    assert_eq!(suite.files.size, units::Bytes::gib(40));
}

#[test]
fn around_the_page_cache_and_from_a_cold_one_the_blocks_are_the_same() {
    let plain = record_suite("dd-40g", &["file_size=1MiB", "bytes=1MiB"]);
    let sets = ["file_size=1MiB", "bytes=1MiB", "direct=true", "caches=flush,purge"];
    assert_eq!(record_suite("dd-40g", &sets), plain);
    let suite = checked(suite::find_builtin("dd-40g").unwrap().text, &sets);
    for phase in &suite.phases {
        use suite::model::CacheStep::{Flush, Purge};
        assert_eq!(phase.caches, [Flush, Purge], "before every visit");
        assert!(phase.cells[0].streams[0].direct);
    }
}
