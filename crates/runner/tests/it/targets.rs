//! Several targets of one run.

use std::path::PathBuf;

use record::RunState;
use runner::{Event, Interrupt, Order, RunError, TargetName, prepare, prepare_resume};

use crate::help::{Place, go, go_with, order, settings};

/// Written in order and read back, so that every file has to be what it should.
const STRIPED: &str = "\
schema = 1
name = \"striped\"
file_size = \"1MiB\"
method = \"classic\"

[defaults]
access = \"sequential\"
block_size = \"64KiB\"
spread = { stripe = \"256KiB\" }
bytes = \"4MiB\"

[[phase]]
name = \"write\"
operation = \"write\"

[[phase]]
name = \"read\"
";

fn on(place: &Place, suite: &str, targets: &[PathBuf], sets: &[&str]) -> Order {
    let mut order = order(place, suite, "unused", sets);
    order.targets =
        targets.iter().map(|path| TargetName::parse(path.as_os_str()).unwrap()).collect();
    order
}

#[test]
fn each_has_the_suites_files_and_all_are_one_space() {
    let place = Place::new("targets");
    let targets = [place.join("a"), place.join("b"), place.join("c")];
    let mut order = on(&place, STRIPED, &targets, &["file_count=2", "bytes=6MiB"]);
    order.settings.verify = true;
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    assert!(!outcome.mismatches);
    for name in ["a.0", "a.1", "b.0", "b.1", "c.0", "c.1"] {
        let content = std::fs::read(place.join(name)).unwrap();
        assert_eq!(content.len(), 1 << 20, "{name}");
        assert!(content.chunks(64 << 10).all(|block| block.iter().any(|&b| b != 0)), "{name}");
    }
    let header = &run.header;
    assert_eq!((header.target.files, header.target.size_bytes), (6, 1 << 20));
    let names: Vec<_> = header.targets.iter().map(|target| target.given.clone()).collect();
    let wanted: Vec<_> = targets.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(names, wanted);
    assert!(header.targets.iter().all(|target| target.files == 2));
    assert_eq!(header.target.given, wanted.join(", "));
    assert!(header.suite_text.contains("\nfile_count = 6\n"));
}

#[test]
fn what_one_of_them_refuses_refuses_all() {
    let place = Place::new("targets-refused");
    let targets = [place.join("new"), place.join("payroll.db"), place.join("users.db")];
    let foreign = vec![7u8; 1 << 20];
    for file in &targets[1..] {
        std::fs::write(file, &foreign).unwrap();
    }
    let mut order = on(&place, STRIPED, &targets, &[]);
    for named in [&targets[..0], &targets[1..2], &targets[2..]] {
        order.settings.consent.overwrite = named.to_vec();
        let refused = prepare(&order).unwrap_err();
        assert!(matches!(refused, RunError::Refused(_)), "{refused}");
    }
    assert!(!targets[0].exists());
    order.settings.consent.overwrite = targets[1..].to_vec();
    go(&place, &order).unwrap();
    for file in &targets[1..] {
        assert_ne!(std::fs::read(file).unwrap(), foreign, "named, and so written");
    }
}

#[test]
fn the_same_by_another_name_is_refused() {
    let place = Place::new("targets-same");
    let file = place.join("data");
    go(
        &place,
        &order(&place, "random-write", file.to_str().unwrap(), &["file_size=1MiB", "operations=9"]),
    )
    .unwrap();
    let before = std::fs::read(&file).unwrap();
    std::fs::hard_link(&file, place.join("hard")).unwrap();
    std::os::unix::fs::symlink(&file, place.join("soft")).unwrap();
    let directory = place.join("d");
    std::fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(&directory, place.join("e")).unwrap();
    for other in [file.clone(), place.join("hard"), place.join("soft"), directory.join("../data")] {
        let same = prepare(&on(&place, STRIPED, &[file.clone(), other], &[])).unwrap_err();
        assert!(matches!(same, RunError::SameTarget { .. }), "{same}");
    }
    for pair in [[directory.clone(), place.join("e")], [directory.join("x"), place.join("e/x")]] {
        let same = prepare(&on(&place, STRIPED, &pair, &[])).unwrap_err();
        assert!(matches!(same, RunError::SameTarget { .. }), "{same}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn twins_are_measured_alone() {
    let place = Place::new("targets-twins");
    let order = on(&place, STRIPED, &[place.join("a"), "null:".into()], &[]);
    let alone = prepare(&order).unwrap_err();
    assert!(matches!(alone, RunError::Alone { .. }), "{alone}");
    let order = on(&place, "random-read", &[place.join("a"), "/dev/zero".into()], &[]);
    let alone = prepare(&order).unwrap_err();
    assert!(matches!(alone, RunError::Alone { .. }), "{alone}");
}

#[test]
fn scratch_files_go_and_files_stay() {
    let place = Place::new("targets-scratch");
    let (first, second) = (place.join("d"), place.join("e"));
    std::fs::create_dir(&first).unwrap();
    std::fs::create_dir(&second).unwrap();
    let targets = [first.clone(), place.join("file"), second.clone()];
    let order = on(&place, STRIPED, &targets, &[]);
    let said = prepare(&order).unwrap().describe().join("\n");
    assert_eq!(said.matches(" afterwards.").count(), 2, "{said}");
    go(&place, &order).unwrap();
    for directory in [first, second] {
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
    }
    assert!(place.join("file").exists());
}

#[test]
fn existing_files_are_read_as_far_as_the_smallest_goes() {
    let place = Place::new("targets-whole");
    let targets = [place.join("a"), place.join("b")];
    std::fs::write(&targets[0], vec![1u8; 3 << 20]).unwrap();
    std::fs::write(&targets[1], vec![2u8; 2 << 20]).unwrap();
    let (_, run) = go(&place, &on(&place, "random-read", &targets, &["operations=64"])).unwrap();
    assert_eq!((run.header.target.size_bytes, run.header.target.files), (2 << 20, 2));
    assert_eq!(run.visits.len(), 1, "no fill");
    // One that is not there is made, and then the other would have to be written to.
    let refused = prepare(&on(&place, "random-read", &[targets[0].clone(), place.join("c")], &[]));
    assert!(matches!(refused.unwrap_err(), RunError::Refused(_)));
}

#[test]
fn an_interrupted_run_finds_all_of_them_again() {
    let place = Place::new("targets-resume");
    let directory = place.join("d");
    std::fs::create_dir(&directory).unwrap();
    let targets = [directory, place.join("b")];
    let mut order = on(&place, STRIPED, &targets, &["repeats=3", "file_count=2"]);
    order.settings.keep = true;
    let interrupt = Interrupt::default();
    let (outcome, run) = go_with(&place, &order, &interrupt, &mut |event: Event<'_>| {
        if let Event::VisitEnds { cell, .. } = event
            && cell.phase == "write"
            && !interrupt.stops()
        {
            interrupt.press();
        }
    })
    .unwrap();
    assert_eq!(outcome.state, RunState::Interrupted);
    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let prepared = prepare_resume(&run, settings(&place), None).unwrap();
    assert_eq!(prepared.header().targets.len(), 2);
    let outcome = prepared.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let again = store.load(&outcome.run).unwrap();
    assert_eq!(again.header.target.files, 4);
    let fills =
        again.visits.iter().filter(|visit| again.cells[visit.cell as usize].phase == "fill");
    assert_eq!(fills.count(), 1, "all files are still what they were");
}
