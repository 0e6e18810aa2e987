//! bm-flash: 14 sizes by 3 thread counts, reads and then writes, at random multiples of the size.

use std::collections::BTreeSet;

use device::Op;

use crate::support::*;

/// What a cell of 20 ms makes: a request of 100 us after the other, by each thread.
const EACH: usize = 200;

#[test]
fn every_cell_has_its_requesters_and_goes_anywhere_in_the_file() {
    let sets = ["time=20ms", "file_size=1GiB"];
    let cells = play_suite("bm-flash", &sets);
    assert_eq!(cells.len(), 84);
    for (index, cell) in cells.iter().enumerate() {
        let (op, phase) = if index < 42 { (Op::Read, "read") } else { (Op::Write, "write") };
        assert_eq!(cell.phase, phase);
        let size = 512u32 << (index % 42 / 3);
        let threads = [1u32, 10, 40][index % 3];
        assert_eq!(cell.requests.len(), threads as usize * EACH, "cell {index}");
        assert_eq!(cell.coordinates, [index % 42 / 3, index % 3]);
        assert_eq!(cell.streams[0].queue_depth, 1);
        for request in &cell.requests {
            assert_eq!((request.op, request.length, request.file), (op, size, 0));
            assert_eq!(request.offset % u64::from(size), 0);
            assert!(request.offset + u64::from(size) <= 1 << 30);
        }
        for worker in 0..threads {
            let own: Vec<_> = cell.requests.iter().filter(|r| r.worker == worker).collect();
            assert_eq!(own.len(), EACH);
            // One at a time, and the next as soon as one ends.
            assert!(own.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
        // With repetition: 200 of 256 blocks without one would be a permutation.
        let distinct: BTreeSet<u64> = offsets(&cell.requests).into_iter().collect();
        if size == 4 << 20 {
            assert!(distinct.len() < cell.requests.len(), "cell {index}");
        }
        let (low, high) = (*distinct.first().unwrap(), *distinct.last().unwrap());
        assert!(low < 1 << 26 && high > (1 << 30) - (1 << 26), "cell {index}: {low} to {high}");
    }
    let all = record_suite("bm-flash", &sets);
    assert_eq!(all.len(), cells.iter().map(|cell| cell.requests.len()).sum::<usize>());
    assert_eq!(letters(&all[..3]), "rrr");
}
