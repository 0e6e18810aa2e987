//! pg_test_fsync: the same blocks over and over, each commit flushed in its own way.

use device::Op;
use suite::model::WriteThrough;

use crate::support::*;

fn cells() -> Vec<Played> {
    play_suite("pg-test-fsync", &["time=10ms"])
}

/// Offsets in KiB of the writes, and the flushes, of the first commits.
fn words(cell: &Played, commits: usize, writes: usize, flush: bool) -> String {
    let length = commits * (writes + usize::from(flush));
    let word = |request: &Request| match request.op {
        Op::Write => format!("w{}", request.offset >> 10),
        Op::Fdatasync => "d".to_owned(),
        Op::Fsync => "f".to_owned(),
        other => panic!("{other:?}"),
    };
    cell.requests[..length].iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn one_write_and_two_by_four_methods() {
    let cells = cells();
    let methods = [
        ("open-datasync", true, WriteThrough::Data, ""),
        ("fdatasync", false, WriteThrough::No, " d"),
        ("fsync", false, WriteThrough::No, " f"),
        ("open-sync", true, WriteThrough::DataAndMeta, ""),
    ];
    for (count, label) in [(1, "one"), (2, "two")] {
        for (n, (method, direct, through, flush)) in methods.iter().enumerate() {
            let cell = &cells[(count - 1) * 4 + n];
            assert_eq!(cell.phase, format!("{label}-{method}"));
            let stream = &cell.streams[0];
            assert_eq!((stream.direct, stream.write_through), (*direct, *through));
            assert_eq!((stream.threads, stream.queue_depth), (1, 1));
            let writes = if count == 1 { "w0" } else { "w0 w8" };
            let commit = format!("{writes}{flush}");
            let wanted = [commit.as_str(); 3].join(" ");
            assert_eq!(words(cell, 3, count, !flush.is_empty()), wanted, "{}", cell.phase);
            assert!(cell.requests.iter().all(|r| r.op != Op::Write || r.length == 8192));
        }
    }
}

#[test]
fn sixteen_kib_in_pieces_of_16_to_1() {
    let cells = cells();
    let split: Vec<_> = cells.iter().filter(|cell| cell.phase == "split").collect();
    assert_eq!(split.len(), 5);
    for (cell, n) in split.iter().zip(0..) {
        let (pieces, size) = (1usize << n, 16u64 >> n);
        let commit: Vec<_> = (0..pieces as u64).map(|piece| format!("w{}", piece * size)).collect();
        assert_eq!(words(cell, 2, pieces, false), [commit.join(" "), commit.join(" ")].join(" "));
        assert!(cell.requests.iter().all(|r| u64::from(r.length) == size << 10));
        let stream = &cell.streams[0];
        assert_eq!((stream.direct, stream.write_through), (true, WriteThrough::DataAndMeta));
    }
}

#[test]
fn the_last_is_not_flushed() {
    let cells = cells();
    let last = cells.last().unwrap();
    assert_eq!(
        (cells.len(), last.phase.as_str(), last.streams[0].direct),
        (14, "unflushed", false)
    );
    assert!(last.requests.iter().all(|r| r.op == Op::Write && r.offset == 0 && r.length == 8192));
}
