//! A log: sessions commit at its end, each durable before its session goes on.

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
const PAGE: u64 = 8192;

#[test]
fn sessions_share_one_flush_and_write_whole_pages() {
    let cells = play_suite("wal", &SETS);
    for (method, n) in METHODS.iter().zip(0..) {
        for (cell, size) in cells[n * 7..n * 7 + 7].iter().zip(0..) {
            assert_eq!(cell.phase, format!("commits-{}", method.0));
            let stream = &cell.streams[0];
            assert_eq!((stream.write_through, stream.direct), (method.2, method.3));
            let sessions = 1u64 << size;
            assert_eq!((stream.threads, u64::from(stream.queue_depth)), (1, sessions));
            let word = if method.1.is_some() { "wf" } else { "w" };
            let words = letters(&cell.requests);
            assert_eq!(words, word.repeat(words.len() / word.len() + 1)[..words.len()]);
            // Half of them at a time, 1 KiB each, behind what was written last.
            let mut end = 0;
            let groups = [sessions.div_ceil(2), (sessions / 2).max(1)].map(|n| n << 10);
            for (write, size) in
                cell.requests.iter().filter(|r| r.op == Op::Write).zip(groups.iter().cycle())
            {
                let pages = (end / PAGE * PAGE, (end + size).next_multiple_of(PAGE));
                assert_eq!((write.offset, write.offset + u64::from(write.length)), pages);
                end += size;
            }
        }
    }
}

#[test]
fn independent_sessions_share_the_logs_end_and_flush_for_themselves() {
    let cells = play_suite("wal", &SETS);
    for (method, n) in METHODS[..2].iter().zip(0..) {
        for (cell, threads) in cells[28 + n * 3..28 + n * 3 + 3].iter().zip([1u32, 8, 64]) {
            assert_eq!(cell.phase, format!("independent-{}", method.0));
            assert_eq!((cell.streams[0].threads, cell.streams[0].queue_depth), (threads, 1));
            let mut places: Vec<u64> = Vec::new();
            for worker in 0..threads {
                let own: Vec<_> =
                    cell.requests.iter().copied().filter(|r| r.worker == worker).collect();
                let words = letters(&own);
                assert_eq!(words, "wf".repeat(words.len() / 2 + 1)[..words.len()]);
                places.extend(own.iter().filter(|r| r.op == Op::Write).map(|r| r.offset));
            }
            // Nobody writes where another does, and nothing is left out.
            places.sort_unstable();
            let pass = (16 << 20) / PAGE;
            assert!(places.len() > 4 * threads as usize, "a flush takes a while, too");
            let mut wanted: Vec<u64> = (0..places.len() as u64).map(|n| n % pass * PAGE).collect();
            wanted.sort_unstable();
            assert_eq!(places, wanted);
        }
    }
}

#[test]
fn beside_data_the_log_keeps_to_its_part() {
    let cells = play_suite("wal", &SETS);
    let beside: Vec<_> = cells.iter().filter(|cell| cell.phase == "beside-data").collect();
    assert_eq!((cells.len(), beside.len()), (28 + 6 + 6, 6));
    for cell in beside {
        for request in cell.requests.iter().filter(|r| r.length > 0) {
            let in_log = request.offset < 16 << 20;
            assert_eq!(cell.streams[request.stream as usize].name == "log", in_log);
        }
    }
}
