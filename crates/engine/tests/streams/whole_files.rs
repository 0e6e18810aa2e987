//! Files that are made, looked at and removed as a whole: their numbers, in the order taken.

use std::collections::BTreeSet;

use device::{FileIndex, Op};

use crate::support::*;

fn play(phase: &str) -> Vec<Request> {
    let text = format!("schema = 1\nname = \"made\"\n[[phase]]\nname = \"p\"\n{phase}\n");
    play_text(&text, &[]).remove(0).requests
}

fn of(operation: &str, names: &str, rest: &str) -> Vec<Request> {
    play(&format!(
        "operation = \"{operation}\"\ndirectory = {{ files = 500, names = \"{names}\" }}\n{rest}"
    ))
}

#[test]
fn files_are_made_in_the_order_of_their_numbers() {
    for names in ["sequential", "random"] {
        let seen = of("create", names, "");
        assert_eq!(offsets(&seen), (0..500).collect::<Vec<_>>(), "{names}");
        for request in &seen {
            assert_eq!((request.op, request.file), (Op::Create, FileIndex::DIRECTORY.0));
            assert_eq!(request.length, 0);
        }
    }
}

#[test]
fn in_order_they_are_counted_off_and_at_random_each_comes_once() {
    for operation in ["stat", "delete"] {
        assert_eq!(offsets(&of(operation, "sequential", "")), (0..500).collect::<Vec<_>>());
        let shuffled = offsets(&of(operation, "random", ""));
        assert_eq!(shuffled.len(), 500);
        assert_eq!(shuffled.iter().copied().collect::<BTreeSet<_>>(), (0..500).collect());
        let follow = shuffled.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(follow < 10, "{follow} of 500 are followed by the next");
    }
}

#[test]
fn workers_take_their_files_from_one_count() {
    let seen = of("delete", "random", "threads = 7");
    assert_eq!(seen.len(), 500);
    assert_eq!(seen.iter().map(|r| r.offset).collect::<BTreeSet<_>>(), (0..500).collect());
    assert_eq!(seen.iter().map(|r| r.worker).collect::<BTreeSet<_>>().len(), 7);
}

#[test]
fn looking_goes_round_in_another_order() {
    let seen = offsets(&of("stat", "random", "operations = 1000"));
    let (first, second) = seen.split_at(500);
    assert_ne!(first, second);
    for round in [first, second] {
        assert_eq!(round.iter().copied().collect::<BTreeSet<_>>(), (0..500).collect());
    }
}

#[test]
fn the_directory_is_flushed() {
    let seen = of("create", "sequential", "sync = { every = 100, at_end = \"timed\" }");
    let hundred = format!("{}f", "C".repeat(100));
    assert_eq!(letters(&seen), format!("{}f", hundred.repeat(5)));
    let flushes: Vec<_> = seen.iter().filter(|r| r.op == Op::Fsync).collect();
    assert!(flushes.iter().all(|r| r.file == FileIndex::DIRECTORY.0), "{flushes:?}");
    let looked = of("stat", "sequential", "sync = { every = 100 }");
    assert_eq!(letters(&looked), "S".repeat(500), "nothing was made");
}

#[test]
fn what_files_hold_is_counted() {
    for operation in ["create", "stat"] {
        let seen = play(&format!(
            "operation = \"{operation}\"\ndirectory = {{ files = 9, file_size = \"6KiB\" }}"
        ));
        assert!(seen.iter().all(|r| r.length == 6144), "{operation}");
    }
}
