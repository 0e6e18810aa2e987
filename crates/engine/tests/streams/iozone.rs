//! IOZone: thirteen operations on every record of a file.

use std::collections::BTreeSet;

use device::Op;
use suite::model::{Cell, StartFile};

use crate::support::*;

const RECORD: u64 = 64 << 10;
const COUNT: u64 = 256;

/// The requests of each phase with one record size.
fn phases(suite: &str) -> Vec<(String, Vec<Request>)> {
    let cells = play_suite(suite, &["file_size=16MiB", "bytes=16MiB", "block_size=64KiB"]);
    cells.into_iter().map(|cell| (cell.phase, cell.requests)).collect()
}

fn records(requests: &[Request], op: Op) -> Vec<u64> {
    for request in requests {
        assert_eq!((request.op, u64::from(request.length)), (op, RECORD));
        assert_eq!(request.offset % RECORD, 0);
    }
    assert_eq!(requests.len() as u64, COUNT, "as many as the file has records");
    requests.iter().map(|request| request.offset / RECORD).collect()
}

#[test]
fn thirteen_operations_each_over_the_whole_file() {
    let phases = phases("iozone");
    let names: Vec<&str> = phases.iter().map(|(name, _)| name.as_str()).collect();
    let order = [
        "write",
        "rewrite",
        "read",
        "reread",
        "random-read",
        "random-write",
        "backward-read",
        "record-rewrite",
        "stride-read",
        "fwrite",
        "refwrite",
        "fread",
        "refread",
    ];
    assert_eq!(names, order);
    let in_order: Vec<u64> = (0..COUNT).collect();
    let mut random = Vec::new();
    for (name, requests) in &phases {
        let op = if name.contains("write") { Op::Write } else { Op::Read };
        let met = records(requests, op);
        match name.as_str() {
            "random-read" => {
                assert_ne!(met, in_order);
                assert_eq!(met.iter().collect::<BTreeSet<_>>().len() as u64, COUNT, "each once");
                random = met;
            }
            "random-write" => assert_eq!(met, random, "the same order as the reads"),
            "backward-read" => assert_eq!(met, (0..COUNT).rev().collect::<Vec<_>>()),
            "record-rewrite" => assert!(met.iter().all(|record| *record == 0)),
            "stride-read" => {
                let wanted = (0..17).flat_map(|start| (start..COUNT).step_by(17));
                assert_eq!(met, wanted.collect::<Vec<_>>());
            }
            _ => assert_eq!(met, in_order, "{name}"),
        }
    }
}

#[test]
fn writes_begin_with_a_file_that_is_not_there_and_reads_with_one_record() {
    let text = suite::find_builtin("iozone").unwrap().text;
    let suite = checked(text, &["file_size=16MiB", "bytes=16MiB"]);
    for phase in &suite.phases {
        let name = phase.name.as_str();
        for cell in &phase.cells {
            let anew = matches!(name, "write" | "fwrite");
            let wanted = if anew { StartFile::Remove } else { StartFile::Keep };
            assert_eq!(cell.start_file(), wanted, "{name}");
            let Some(before) = cell.before.clone() else {
                assert!(!matches!(name, "read" | "fread"), "{name}");
                continue;
            };
            assert!(matches!(name, "read" | "fread"), "{name}");
            let warm_up = Cell { coordinates: Vec::new(), streams: vec![before], before: None };
            let record = cell.streams[0].block_size_max().get();
            let played = play_cell(&suite, &warm_up, 1);
            let [one] = played.as_slice() else { panic!("one record: {played:?}") };
            assert_eq!((one.op, one.offset, u64::from(one.length)), (Op::Read, 0, record));
        }
    }
}

#[test]
fn phoronix_flushes_what_it_writes() {
    let cells = play_suite("iozone-phoronix", &["file_size=16MiB", "bytes=16MiB"]);
    let words: Vec<String> = cells.iter().map(|cell| letters(&cell.requests)).collect();
    let (writes, reads) = (format!("{}f", "w".repeat(16)), "r".repeat(16));
    assert_eq!(words, [&*writes, &*writes, &*reads, &*reads]);
    assert!(cells.iter().all(|cell| !cell.streams[0].direct));
}
