//! CrystalDiskMark's lines, reads and then writes.

use std::collections::BTreeSet;

use device::Op;

use crate::support::*;

#[test]
fn four_lines_of_reads_and_four_of_writes_each_five_times() {
    let sets = ["time=20ms", "file_size=64MiB"];
    let cells = play_suite("crystaldiskmark", &sets);
    assert_eq!(cells.len(), 8);
    let lines = [(1 << 20, 8), (1 << 20, 1), (4096, 32), (4096, 1)];
    for (cell, n) in cells.iter().zip(0..) {
        let op = if n < 4 { Op::Read } else { Op::Write };
        let (size, depth) = lines[n % 4];
        let stream = &cell.streams[0];
        assert_eq!((stream.threads, stream.queue_depth, stream.direct), (1, depth, true));
        let (moved, flushes): (Vec<_>, Vec<_>) =
            cell.requests.iter().copied().partition(|request| request.op == op);
        assert_eq!(moved.len(), 200 * depth as usize);
        assert_eq!(letters(&flushes), if op == Op::Write { "f" } else { "" });
        assert!(moved.iter().all(|request| request.length == size));
        let places = offsets(&moved);
        if n % 4 < 2 {
            let in_order: Vec<u64> = (0..places.len() as u64).map(|n| (n % 64) << 20).collect();
            assert_eq!(places, in_order);
        } else {
            let distinct: BTreeSet<u64> = places.iter().copied().collect();
            assert_eq!(distinct.len(), places.len(), "none again before all have come");
            assert!(places.windows(2).any(|pair| pair[1] < pair[0]));
        }
    }
    let suite = checked(suite::find_builtin("crystaldiskmark").unwrap().text, &[]);
    assert_eq!((suite.repeats, suite.files.total()), (5, units::Bytes::gib(1)));
}
