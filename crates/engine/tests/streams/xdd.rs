//! xdd: so many bytes and no more, by 128 threads, at random, in order, evenly spaced.

use std::collections::BTreeSet;

use device::Op;
use units::Nanos;

use crate::support::*;

const SMALL: [&str; 2] = ["file_size=16MiB", "bytes=4MiB"];

#[test]
fn every_size_moves_the_same_bytes_at_random_multiples_of_itself() {
    let cells = play_suite("xdd", &SMALL);
    assert_eq!(cells.len(), 6);
    for (cell, n) in cells.iter().zip(0..) {
        let size = 1024u64 << n;
        assert_eq!(cell.requests.len() as u64, (4 << 20) / size, "exact over all threads");
        let first = cell.requests.iter().filter(|request| request.start == Nanos::ZERO).count();
        assert_eq!(first, 128, "all pass the barrier together");
        let workers: BTreeSet<u32> = cell.requests.iter().map(|r| r.worker).collect();
        assert_eq!(workers.len(), 128);
        for request in &cell.requests {
            assert_eq!((request.op, u64::from(request.length)), (Op::Read, size));
            assert!(request.offset % size == 0 && request.offset < 16 << 20);
        }
        let places: BTreeSet<u64> = offsets(&cell.requests).into_iter().collect();
        assert!(places.len() < cell.requests.len(), "a quarter at random meets some again");
        assert!(cell.streams[0].direct);
    }
}

#[test]
fn the_amounts_are_the_studys() {
    let suite = checked(suite::find_builtin("xdd").unwrap().text, &[]);
    assert_eq!(suite.files.total(), units::Bytes::gib(64));
    assert_eq!(suite.phases[0].cells[0].streams[0].stop.bytes, Some(units::Bytes::gib(16)));
}

#[test]
fn in_order_threads_share_one_list() {
    let sets = ["access=sequential", "access.shared=true", "block_size=32KiB", "threads=8"];
    let all = record_suite("xdd", &[&SMALL[..], &sets].concat());
    for (eight, n) in all.chunks(8).zip(0u64..) {
        let mut places = offsets(eight);
        places.sort_unstable();
        assert_eq!(places, (n * 8..n * 8 + 8).map(|b| b * (32 << 10)).collect::<Vec<_>>());
    }
}

#[test]
fn staggered_is_evenly_spaced_over_all_of_it() {
    let sets =
        ["access=staggered", "bytes=none", "block_size=4KiB", "operations=1024", "threads=1"];
    let all =
        record_suite("xdd", &["file_size=16MiB", sets[0], sets[1], sets[2], sets[3], sets[4]]);
    let wanted: Vec<u64> = (0..1024).map(|n| n * (16 << 10)).collect();
    assert_eq!(offsets(&all), wanted);
}

#[test]
fn a_ratio_of_writes_is_by_count() {
    let sets = ["read_share=0.8", "choice=interleave", "threads=1", "block_size=32KiB"];
    let words = letters(&record_suite("xdd", &[&SMALL[..], &sets].concat()));
    for end in 1..=words.len() {
        let writes = words[..end].matches('w').count() as f64;
        assert!((writes - 0.2 * end as f64).abs() <= 1.0, "{}", &words[..end]);
    }
}

#[test]
fn a_saved_list_is_played_in_its_order_by_all_threads_together() {
    let places = [5u64, 1, 9, 0, 9, 3, 12, 7];
    let request =
        |place: &u64| format!("{{ op = \"read\", offset = {}, length = 4096 }}", place * 4096);
    let list: Vec<String> = places.iter().map(request).collect();
    let text = format!(
        "schema = 1\nname = \"list\"\nfile_size = \"1MiB\"\n[[phase]]\nname = \"p\"\nthreads = 4\n\
         access = {{ kind = \"replay\", requests = [{}] }}\n",
        list.join(", ")
    );
    let all: Vec<Request> = play_text(&text, &[]).into_iter().flat_map(|c| c.requests).collect();
    assert_eq!(all.len(), places.len(), "once through");
    // Four at a time, whichever thread takes which.
    for (four, wanted) in all.chunks(4).zip(places.chunks(4)) {
        let sorted = |mut all: Vec<u64>| {
            all.sort_unstable();
            all
        };
        let met: Vec<u64> = four.iter().map(|request| request.offset / 4096).collect();
        assert_eq!(sorted(met), sorted(wanted.to_vec()));
        let workers: BTreeSet<u32> = four.iter().map(|request| request.worker).collect();
        assert_eq!(workers.len(), 4);
    }
}
