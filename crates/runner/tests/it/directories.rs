//! Whole files: made, looked at and removed in a directory of the run's own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use record::{Run, RunState, VisitEnd};
use runner::{Event, Interrupt, RunError, prepare, prepare_resume};

use crate::help::{Place, go, go_with, order, order_in_rounds, settings};

const ALL: &str = r#"
schema = 1
name = "whole-files"
title = "files made, looked at, removed"
file_size = "64KiB"
fill = false

[defaults]
directory = { files = 300, names = "sequential" }

[[phase]]
name = "make"
operation = "create"
sync = { op = "fsync", at_end = "timed" }

[[phase]]
name = "look"
operation = "stat"
threads = 3

[[phase]]
name = "remove"
operation = "delete"
sync = { op = "fsync", at_end = "timed" }
"#;

/// What is called like a directory of ours there.
fn left(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let ours = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().contains("-files-");
    entries.filter(ours).collect()
}

fn names(place: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(place).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Requests by operation, visit by visit.
fn made(run: &Run) -> Vec<Vec<(String, u64)>> {
    let ops = |visit: &record::VisitRecord| {
        let ops = visit.streams.iter().flat_map(|stream| &stream.ops);
        ops.map(|op| (op.op.clone(), op.requests)).collect()
    };
    run.visits.iter().map(ops).collect()
}

fn one(op: &str, n: u64) -> (String, u64) {
    (op.to_owned(), n)
}

#[test]
fn what_one_phase_makes_the_next_looks_at_and_the_last_removes() {
    for kind in ["sequential", "random"] {
        let place = Place::new(&format!("whole-{kind}"));
        let names_are = format!("directory.names={kind}");
        let order = order(&place, ALL, place.join("data").to_str().unwrap(), &[&names_are]);
        let prepared = prepare(&order).unwrap();
        let said = prepared.describe().join("\n");
        assert!(said.contains("up to 300 files"), "{said}");
        let mut seen = Vec::new();
        let mut look = |event: Event<'_>| {
            if let Event::VisitEnds { .. } = event {
                let [root] = left(&place.join("")).try_into().unwrap();
                let set = if kind == "random" { "at-random" } else { "in-order" };
                seen.push(names(&root.join(set)));
            }
        };
        let (_, run) = go_with(&place, &order, &Interrupt::default(), &mut look).unwrap();
        let wanted = [
            vec![one("fsync", 1), one("create", 300)],
            vec![one("stat", 300)],
            vec![one("fsync", 1), one("delete", 300)],
        ];
        assert_eq!(made(&run), wanted);
        for visit in &run.visits {
            assert_eq!((visit.end, visit.warnings.as_slice()), (VisitEnd::Complete, [].as_slice()));
            assert_eq!(visit.streams[0].backend.name, "blocking");
        }
        assert_eq!((seen[0].len(), seen[1].len(), seen[2].len()), (300, 300, 0), "{kind}");
        assert_eq!(seen[0], seen[1], "the same files");
        let digits = |name: &String| {
            let at = if kind == "random" { name.len() - 10 } else { 0 };
            u64::from_str_radix(&name[at..at + 10], 16).unwrap()
        };
        let numbers: BTreeSet<u64> = seen[0].iter().map(digits).collect();
        assert_eq!(numbers, (0..300).collect());
        assert_eq!(left(&place.join("")), Vec::<PathBuf>::new(), "it goes with the run");
    }
}

#[test]
fn each_visit_in_rounds_finds_what_it_needs() {
    let place = Place::new("whole-rounds");
    let file = place.join("data");
    // However long the device below is kept busy by others.
    let sets = [
        "rounds.visits_max=3",
        "rounds.time_max=600s",
        "directory.files=50",
        "directory.file_size=6KiB",
    ];
    let order = order_in_rounds(&place, ALL, file.to_str().unwrap(), &sets);
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!((outcome.state, outcome.failed_visits), (RunState::Complete, 0));
    let count = |op: &str| {
        let ops = run.visits.iter().flat_map(|visit| &visit.streams[0].ops);
        let of: Vec<_> = ops.filter(|record| record.op == op).collect();
        of.iter().map(|record| (record.requests, record.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(count("create"), [(50, 50 * 6144); 3]);
    assert_eq!(count("stat"), [(50, 50 * 6144); 3]);
    assert_eq!(count("delete"), [(50, 0); 3]);
    assert_eq!(left(&place.join("")), Vec::<PathBuf>::new());
}

#[test]
fn files_hold_as_much_as_was_said_and_looking_goes_round_and_round() {
    let place = Place::new("whole-size");
    let sets = ["directory.file_size=5000B", "directory.files=20", "look.operations=50"];
    let order = order(&place, ALL, place.join("data").to_str().unwrap(), &sets);
    let mut lengths = BTreeSet::new();
    let mut look = |event: Event<'_>| {
        if let Event::VisitEnds { .. } = event {
            let [root] = left(&place.join("")).try_into().unwrap();
            let files = std::fs::read_dir(root.join("in-order")).unwrap();
            lengths.extend(files.map(|file| file.unwrap().metadata().unwrap().len()));
        }
    };
    let (_, run) = go_with(&place, &order, &Interrupt::default(), &mut look).unwrap();
    assert_eq!(lengths, BTreeSet::from([5000]));
    assert_eq!(made(&run)[1], [one("stat", 50)]);
}

#[test]
fn depths_above_one_are_threads() {
    let place = Place::new("whole-deep");
    let order = order(&place, ALL, place.join("data").to_str().unwrap(), &["queue_depth=8"]);
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!((outcome.state, outcome.failed_visits), (RunState::Complete, 0));
    assert_eq!(made(&run)[2], [one("fsync", 1), one("delete", 300)]);
}

/// As a killed run leaves it: the directory, some of its files, and things of others.
fn killed(place: &Place) -> (Run, PathBuf) {
    let interrupt = Interrupt::default();
    let order = order(place, ALL, place.join("data").to_str().unwrap(), &[]);
    let mut kept = None;
    let (_, run) = go_with(place, &order, &interrupt, &mut |event: Event<'_>| {
        if let Event::VisitEnds { .. } = event
            && kept.is_none()
        {
            let [root] = left(&place.join("")).try_into().unwrap();
            let copy = place.join("kept");
            std::fs::rename(&root, &copy).unwrap();
            kept = Some((root, copy));
            interrupt.press();
        }
    })
    .unwrap();
    let (root, copy) = kept.unwrap();
    std::fs::rename(copy, &root).unwrap();
    (run, root)
}

/// What was left alone of what the run left, where nothing could be removed.
fn troubles(run: &Run) -> Vec<RunError> {
    let found = runner::remove_left_behind(&run.header);
    assert!(found.removed.is_empty(), "{:?}", found.removed);
    found.troubles
}

#[test]
fn what_a_killed_run_left_goes_with_the_resumed_one() {
    let place = Place::new("whole-resume");
    let (run, root) = killed(&place);
    assert_eq!(run.header.state, RunState::Interrupted);
    assert_eq!(names(&root.join("in-order")).len(), 300);
    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let prepared = prepare_resume(&run, settings(&place), None).unwrap();
    let outcome = prepared.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    assert_eq!(left(&place.join("")), Vec::<PathBuf>::new());
}

#[test]
fn what_a_killed_run_left_can_be_removed_and_nothing_else() {
    let place = Place::new("whole-rm");
    let (run, root) = killed(&place);
    let letter = root.join("in-order/0000000001-letter");
    std::fs::write(&letter, "dear").unwrap();
    let [RunError::Strangers { name, .. }] = &troubles(&run)[..] else { panic!("it is not empty") };
    assert_eq!(name, "in-order/0000000001-letter");
    assert_eq!(std::fs::read(&letter).unwrap(), b"dear");
    assert_eq!(names(&root.join("in-order")).len(), 1, "ours are gone");
    std::fs::remove_file(&letter).unwrap();
    assert_eq!(runner::remove_left_behind(&run.header).removed, [root]);
    assert_eq!(left(&place.join("")), Vec::<PathBuf>::new());
    let again = runner::remove_left_behind(&run.header);
    assert!(again.removed.is_empty() && again.troubles.is_empty());
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let place = Place::new("whole-foreign");
    let (run, root) = killed(&place);
    // A copy: another inode.
    let copy = place.join("copy");
    std::fs::rename(&root, &copy).unwrap();
    std::fs::create_dir(&root).unwrap();
    std::fs::copy(copy.join(".plimsoll"), root.join(".plimsoll")).unwrap();
    std::fs::create_dir(root.join("in-order")).unwrap();
    let mine = root.join("in-order").join(names(&copy.join("in-order")).first().unwrap());
    std::fs::write(&mine, "mine").unwrap();
    assert!(matches!(troubles(&run)[..], [RunError::NotOurs { .. }]));
    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let prepared = prepare_resume(&run, settings(&place), None).unwrap();
    let ended = prepared.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default());
    let refused = ended.unwrap_err();
    assert!(matches!(refused, RunError::NotOurs { .. }), "{refused}");
    // A link is no directory either.
    std::fs::rename(&root, place.join("other")).unwrap();
    std::os::unix::fs::symlink(&copy, &root).unwrap();
    assert!(!troubles(&run).is_empty());
    assert_eq!(names(&copy.join("in-order")).len(), 300);
    assert_eq!(
        std::fs::read(place.join("other/in-order").join(mine.file_name().unwrap())).unwrap(),
        b"mine"
    );
}

#[test]
fn where_there_is_no_directory_it_is_said_before() {
    let place = Place::new("whole-device");
    let refused = prepare(&order(&place, ALL, "/dev/null", &[])).unwrap_err();
    assert!(refused.to_string().contains("character device"), "{refused}");
    let twin = order(&place, ALL, "memory:1MiB", &[]);
    let (outcome, run) = go(&place, &twin).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    assert_eq!(made(&run)[1], vec![one("stat", 300)]);
}

#[test]
fn a_file_system_that_would_be_full_is_refused() {
    let place = Place::new("whole-full");
    let sets = ["directory.files=10000000", "directory.file_size=1GiB"];
    let refused = prepare(&order(&place, ALL, place.join("data").to_str().unwrap(), &sets));
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, RunError::NoRoomForFiles { .. } | RunError::NoInodes { .. }),
        "{refused}"
    );
    assert!(refused.hint().unwrap().contains("directory.files"));
}

const AGAIN: &str = r#"
schema = 1
name = "made-again"
title = "files made twice"
file_size = "64KiB"
fill = false

[defaults]
directory = { files = 50, names = "random" }

[[phase]]
name = "make"
operation = "create"

[[phase]]
name = "again"
operation = "create"

[[phase]]
name = "look"
operation = "stat"
"#;

/// What is made of a run's directory between two visits: nothing is made elsewhere, or removed.
#[test]
fn a_directory_that_is_exchanged_during_a_run_leads_nowhere_else() {
    for how in ["a link", "a directory", "a set's link", "a set's directory"] {
        let place = Place::new("whole-exchanged");
        let elsewhere = place.join("elsewhere");
        std::fs::create_dir_all(elsewhere.join("at-random")).unwrap();
        std::fs::write(elsewhere.join("at-random/letter.txt"), "dear all").unwrap();
        let order = order(&place, AGAIN, place.join("data").to_str().unwrap(), &[]);
        let mut exchanged = false;
        let mut exchange = |event: Event<'_>| {
            if !matches!(event, Event::VisitEnds { .. }) || exchanged {
                return;
            }
            exchanged = true;
            let [root] = left(&place.join("")).try_into().unwrap();
            let (name, there) = match how {
                "a link" | "a directory" => (root.clone(), elsewhere.clone()),
                _ => (root.join("at-random"), elsewhere.join("at-random")),
            };
            std::fs::rename(&name, place.join("moved")).unwrap();
            match how {
                "a link" | "a set's link" => std::os::unix::fs::symlink(there, name).unwrap(),
                _ => std::fs::rename(there, name).unwrap(),
            }
        };
        let ended = go_with(&place, &order, &Interrupt::default(), &mut exchange);
        let error = ended.map(|(outcome, _)| outcome.state).unwrap_err();
        assert_eq!(error.kind(), runner::ErrorKind::Refused, "{how}: {error}");
        let letters = find(&place.join(""), "letter.txt");
        assert_eq!(letters.len(), 1, "{how}");
        let place_of = letters[0].parent().unwrap();
        assert_eq!(names(place_of), BTreeSet::from(["letter.txt".to_owned()]), "{how}");
        for known in ["elsewhere", "moved"] {
            let known = place.join(known);
            if known.join("at-random/letter.txt").exists() {
                assert_eq!(names(&known), BTreeSet::from(["at-random".to_owned()]), "{how}");
            }
        }
    }
}

fn all(place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![place.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found
}

fn find(place: &Path, name: &str) -> Vec<PathBuf> {
    all(place).into_iter().filter(|path| path.ends_with(name)).collect()
}
