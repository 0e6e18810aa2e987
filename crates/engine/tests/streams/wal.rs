//! A log: appends in order, each durable before the next, by one or many.

use device::Op;
use suite::model::WriteThrough;

use crate::support::*;

const SETS: [&str; 2] = ["time=10ms", "file_size=64MiB"];
const METHODS: [(&str, Option<Op>, WriteThrough, bool); 4] = [
    ("fsync", Some(Op::Fsync), WriteThrough::No, false),
    ("fdatasync", Some(Op::Fdatasync), WriteThrough::No, false),
    ("dsync", None, WriteThrough::Data, false),
    ("direct-dsync", None, WriteThrough::Data, true),
];

#[test]
fn one_writer_appends_groups_and_flushes_each() {
    let cells = play_suite("wal", &SETS);
    for (method, n) in METHODS.iter().zip(0..) {
        for (cell, size) in cells[n * 6..n * 6 + 6].iter().zip(0..) {
            assert_eq!(cell.phase, format!("group-{}", method.0));
            let stream = &cell.streams[0];
            assert_eq!((stream.write_through, stream.direct), (method.2, method.3));
            let size = 8192u64 << size;
            let mut at = 0;
            let mut flushed = true;
            for request in &cell.requests {
                if request.op == Op::Write {
                    assert!(flushed, "not before the last is durable");
                    assert_eq!((request.offset, u64::from(request.length)), (at, size));
                    at = (at + size) % (16 << 20);
                    flushed = method.1.is_none();
                } else {
                    assert_eq!(Some(request.op), method.1);
                    assert!(!flushed, "once");
                    flushed = true;
                }
            }
        }
    }
}

#[test]
fn committers_share_the_logs_end_and_flush_for_themselves() {
    let cells = play_suite("wal", &SETS);
    for (method, n) in METHODS.iter().zip(0..) {
        for (cell, size) in cells[24 + n * 7..24 + n * 7 + 7].iter().zip(0..) {
            assert_eq!(cell.phase, format!("committers-{}", method.0));
            let threads = 1u32 << size;
            assert_eq!((cell.streams[0].threads, cell.streams[0].queue_depth), (threads, 1));
            let mut places: Vec<u64> = Vec::new();
            for worker in 0..threads {
                let own: Vec<_> =
                    cell.requests.iter().copied().filter(|r| r.worker == worker).collect();
                let word = if method.1.is_some() { "wf" } else { "w" };
                let words = letters(&own);
                assert_eq!(words, word.repeat(words.len() / word.len() + 1)[..words.len()]);
                places.extend(own.iter().filter(|r| r.op == Op::Write).map(|r| r.offset));
            }
            // Nobody writes where another does, and nothing is left out.
            places.sort_unstable();
            let pass = (16 << 20) / 8192;
            assert!(places.len() > 4 * threads as usize, "a flush takes a while, too");
            let mut wanted: Vec<u64> = (0..places.len() as u64).map(|n| n % pass * 8192).collect();
            wanted.sort_unstable();
            assert_eq!(places, wanted);
        }
    }
}

#[test]
fn beside_data_the_log_keeps_to_its_part() {
    let cells = play_suite("wal", &SETS);
    let beside: Vec<_> = cells.iter().filter(|cell| cell.phase == "beside-data").collect();
    assert_eq!((cells.len(), beside.len()), (24 + 28 + 6, 6));
    for cell in beside {
        for request in cell.requests.iter().filter(|r| r.length > 0) {
            let in_log = request.offset < 16 << 20;
            assert_eq!(cell.streams[request.stream as usize].name == "log", in_log);
        }
    }
}
