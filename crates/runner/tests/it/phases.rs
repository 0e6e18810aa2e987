//! What phases do before their visits, and files that begin empty.

use std::os::unix::fs::MetadataExt;

use record::{Run, RunState, VisitEnd};
use runner::{Event, Interrupt, RunError, prepare, prepare_resume};
use stack::Mark;
use units::Nanos;

use crate::help::{Place, go, go_with, order, order_in_rounds, settings};

fn names(run: &Run) -> Vec<&str> {
    let mut visits: Vec<_> = run.visits.iter().collect();
    visits.sort_by_key(|visit| visit.order);
    visits.iter().map(|visit| run.cells[visit.cell as usize].phase.as_str()).collect()
}

fn suite(head: &str, phases: &str) -> String {
    format!(
        "schema = 1\nname = \"t\"\nfile_size = \"1MiB\"\nmethod = \"classic\"\n{head}\n{phases}"
    )
}

const TWO: &str = "[[phase]]\nname = \"a\"\noperation = \"write\"\noperations = 8\n\
                   precondition = [{ trim = true }]\n\
                   [[phase]]\nname = \"b\"\noperation = \"write\"\noperations = 8\n\
                   precondition = [{ random = true, block_size = \"4KiB\" }, { volume = 2 }]\n";

#[test]
fn passes_come_right_before_their_phase() {
    let place = Place::new("phases-passes");
    let head = "precondition = [{ volume = 1 }]\nrepeats = 2";
    let order = order(&place, &suite(head, TWO), "memory:1MiB", &[]);
    let said = prepare(&order).unwrap().describe().join("\n");
    assert!(
        said.contains("Gives all 1 MiB back (trim) before the first visit of phase a"),
        "{said}"
    );
    assert!(said.contains("Writes 2 MiB in order before the first visit of phase b"), "{said}");
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let wanted = [
        "fill",
        "precondition-1",
        "precondition-a-1",
        "a",
        "a",
        "precondition-b-1",
        "precondition-b-2",
        "b",
        "b",
    ];
    assert_eq!(names(&run), wanted);
    assert_eq!(run.header.visits_planned as usize, run.visits.len());
    let bytes = |phase: &str| {
        let cell = run.cells.iter().find(|cell| cell.phase == phase).unwrap().index;
        let visit = run.visits.iter().find(|visit| visit.cell == cell).unwrap();
        visit.streams[0].ops.iter().filter(|op| op.op == "write").map(|op| op.bytes).sum::<u64>()
    };
    assert_eq!((bytes("precondition-b-2"), bytes("precondition-a-1")), (2 << 20, 0));
}

#[test]
fn passes_that_were_made_are_not_made_again() {
    let place = Place::new("phases-resume");
    let file = place.join("data");
    let order = order(&place, &suite("repeats = 3", TWO), file.to_str().unwrap(), &[]);
    // In the middle of the first phase; before the pass of the second is over.
    for (stop_after, left) in
        [(3, "a a precondition-b-1 precondition-b-2 b b b"), (6, "precondition-b-2 b b b")]
    {
        let interrupt = Interrupt::default();
        let mut ended = 0;
        let (outcome, part) = go_with(&place, &order, &interrupt, &mut |event: Event<'_>| {
            if let Event::VisitEnds { .. } = event {
                ended += 1;
                if ended == stop_after {
                    interrupt.press();
                }
            }
        })
        .unwrap();
        assert_eq!((outcome.state, part.visits.len()), (RunState::Interrupted, stop_after));
        let mut store = store::Store::open(&place.join("store.db")).unwrap();
        let resumed = prepare_resume(&part, settings(&place), None).unwrap();
        let outcome =
            resumed.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).unwrap();
        assert_eq!(outcome.state, RunState::Complete);
        let whole = store.load(&outcome.run).unwrap();
        let after = names(&whole)[stop_after..].join(" ");
        // After a trim the file is hollow: what it had cannot be known to be there.
        let after = after.trim_start_matches("fill precondition-a-1 ");
        assert!(after.ends_with(left), "{after}");
    }
}

#[test]
fn a_file_that_was_trimmed_has_holes() {
    let place = Place::new("phases-trim");
    let file = place.join("data");
    let phases = "[[phase]]\nname = \"r\"\noperation = \"write\"\noperations = 1\n\
                  block_size = \"4KiB\"\nprecondition = [{ trim = true }]\n";
    let order = order(&place, &suite("", phases), file.to_str().unwrap(), &["file_size=1028KiB"]);
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let codes: Vec<&str> = run.header.warnings.iter().map(|w| w.code.as_str()).collect();
    if codes == ["not-trimmed"] {
        println!("skipped: no holes on this file system");
        return;
    }
    assert!(codes.is_empty(), "{codes:?}");
    let after = std::fs::metadata(&file).unwrap();
    assert_eq!(after.len(), 1028 << 10);
    assert!(after.blocks() * 512 <= 64 << 10, "{} left", after.blocks() * 512);
}

#[test]
fn the_stream_before_a_visit_is_played_and_not_counted() {
    let place = Place::new("phases-before");
    let file = place.join("data");
    let phases = "[[phase]]\nname = \"r\"\noperations = 64\ndirect = false\ngrid.threads = [1, 2]\n\
                  [phase.before]\noperation = \"write\"\naccess = \"sequential\"\nthreads = 1\n\
                  bytes = \"1MiB\"\n";
    let text = suite("fill = false\nrepeats = 2\ndata = { kind = \"pattern\", byte = 7 }", phases);
    let order = order(&place, &text, file.to_str().unwrap(), &[]);
    let said = prepare(&order).unwrap().describe().join("\n");
    assert!(
        said.contains("Plays a stream before each visit of phase r that is not counted"),
        "{said}"
    );
    let mut steps = 0;
    let (_, run) = go_with(&place, &order, &Interrupt::default(), &mut |event: Event<'_>| {
        steps += u32::from(matches!(event, Event::Step(what) if what.contains("before")));
    })
    .unwrap();
    assert_eq!((steps, run.visits.len()), (4, 4));
    for visit in &run.visits {
        assert_eq!((visit.end, visit.streams.len()), (VisitEnd::Complete, 1), "{visit:?}");
        let ops = &visit.streams[0].ops;
        assert_eq!((ops.len(), ops[0].op.as_str(), ops[0].requests), (1, "read", 64));
    }
    assert!(std::fs::read(&file).unwrap().iter().all(|&byte| byte == 7), "it was written");
}

#[test]
fn the_time_of_what_is_played_before_counts_for_what_is_left() {
    let place = Place::new("phases-before-time");
    let file = place.join("data");
    let phases = "settle = \"20ms\"\n[[phase]]\nname = \"r\"\ntime = \"30ms\"\ndirect = false\n\
                  [phase.before]\ntime = \"150ms\"\ndirect = false\n";
    let text = suite("repeats = 3", phases);
    let order = order(&place, &text, file.to_str().unwrap(), &[]);
    let mut left = Vec::new();
    let (_, run) = go_with(&place, &order, &Interrupt::default(), &mut |event: Event<'_>| {
        if let Event::VisitEnds { visit, left: now, .. } = event
            && visit.cell == 0
        {
            left.push((now.visits, now.time));
        }
    })
    .unwrap();
    // By plan: the pause, the stream before, and the visit itself.
    for (visits, time) in left {
        assert!(time >= Nanos::millis(200 * u64::from(visits)), "{visits} visits left: {time}");
    }
    // A resumed run expects the same.
    assert!(run.visits.iter().filter(|visit| visit.cell == 0).count() == 3);
}

fn grows(how: &str) -> String {
    let phases = format!(
        "[[phase]]\nname = \"w\"\noperation = \"write\"\naccess = \"sequential\"\ndirect = false\n\
         block_size = \"64KiB\"\nbytes = \"256KiB\"\nstart_file = \"{how}\"\n"
    );
    suite("fill = true\nrepeats = 3\ndata = { kind = \"pattern\", byte = 7 }", &phases)
}

#[test]
fn files_that_begin_empty_grow_and_have_their_length_again() {
    for how in ["truncate", "remove"] {
        let place = Place::new(&format!("phases-{how}"));
        let file = place.join("data");
        let order = order(&place, &grows(how), file.to_str().unwrap(), &[]);
        let mut inodes = Vec::new();
        let (outcome, run) = go_with(&place, &order, &Interrupt::default(), &mut |event| {
            if let Event::VisitBegins { cell, .. } = event
                && cell.phase == "w"
            {
                let now = std::fs::metadata(&file).unwrap();
                assert_eq!(now.len(), 0, "{how}");
                inodes.push(now.ino());
                // As a kill now would leave it.
                assert!(!matches!(stack::mark_of(&file), Mark::Stale { .. } | Mark::None), "{how}");
                prepare_again(&place, how, &file);
            }
        })
        .unwrap();
        assert_eq!(outcome.state, RunState::Complete);
        assert_eq!(inodes.len(), 3);
        inodes.dedup();
        assert_eq!(inodes.len(), if how == "remove" { 3 } else { 1 });
        for visit in &run.visits {
            assert!(visit.warnings.is_empty(), "{how}: {:?}", visit.warnings);
        }
        let content = std::fs::read(&file).unwrap();
        assert_eq!(content.len(), 1 << 20);
        let (written, rest) = content.split_at(256 << 10);
        assert!(written.iter().all(|&byte| byte == 7) && rest.iter().all(|&byte| byte == 0));
        prepare(&order).unwrap_or_else(|error| panic!("it is not ours any more: {error}"));
    }
}

/// Whoever comes after a kill need name nothing.
fn prepare_again(place: &Place, how: &str, file: &std::path::Path) {
    let order = order(place, &grows(how), file.to_str().unwrap(), &[]);
    let Err(error) = prepare(&order) else { return };
    // It is open for writing by the run that is under way, which is no doubt about whose it is.
    assert!(matches!(error, RunError::Refused(_)), "{error}");
    let said = error.to_string();
    assert!(!said.contains("was not created by plimsoll"), "{said}");
}

#[test]
fn a_file_of_the_users_is_not_emptied_unless_named() {
    let place = Place::new("phases-foreign");
    let file = place.join("payroll.db");
    std::fs::write(&file, vec![9u8; 2 << 20]).unwrap();
    let mut order = order(&place, &grows("remove"), file.to_str().unwrap(), &[]);
    assert!(matches!(prepare(&order).unwrap_err(), RunError::Refused(_)));
    assert_eq!(std::fs::read(&file).unwrap(), vec![9u8; 2 << 20]);
    order.settings.consent.overwrite = vec![file.clone()];
    let said = prepare(&order).unwrap().describe().join("\n");
    assert!(said.contains("Removes the files before each visit of phase w"), "{said}");
    go(&place, &order).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20);
    order.settings.consent.overwrite.clear();
    assert!(prepare(&order).is_err(), "named once is not ours for ever");
}

#[test]
fn what_was_verified_cannot_begin_empty() {
    let place = Place::new("phases-verify");
    let file = place.join("data");
    let mut order = order(&place, &grows("truncate"), file.to_str().unwrap(), &[]);
    order.settings.verify = true;
    let error = prepare(&order).unwrap_err();
    assert!(matches!(error, RunError::Verify { .. }), "{error}");
}

const MATRIX: &str = "schema = 1\nname = \"m\"\nfile_size = \"32MiB\"\nfill = false\n[[phase]]\n\
                      name = \"m\"\ntime = 1\nblock_size = \"64KiB\"\n\
                      steady = { round = \"200ms\", rounds_max = 14, volume = 0, \
                      track = { threads = 2, read_share = 0 } }\n\
                      grid.read_share = [1, 0]\ngrid.threads = [1, 2, 4]\n";

fn model(place: &Place, more: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"m\"\n[model]\nsize = \"1GiB\"\n\
         [model.read]\niops = 4000\nbandwidth = \"1GiB\"\nlatency = \"1ms\"\n\
         [model.write]\niops = 4000\nbandwidth = \"1GiB\"\nlatency = \"1ms\"\n{more}"
    );
    let path = place.join("model.toml");
    std::fs::write(&path, text).unwrap();
    format!("model:{}", path.display())
}

#[test]
fn rounds_of_a_grid_go_on_until_its_tracked_cell_is_steady() {
    let place = Place::new("phases-steady");
    let run = |more: &str| {
        go(&place, &order_in_rounds(&place, MATRIX, &model(&place, more), &[])).unwrap().1
    };
    let flat = run("");
    let cells: Vec<u32> = flat.visits.iter().map(|visit| visit.cell).collect();
    assert_eq!(cells, (0..10).flat_map(|_| 0..6).collect::<Vec<u32>>(), "ten rounds as written");
    assert!(flat.visits.iter().all(|visit| visit.ramp_ns == 0));
    assert!(flat.header.warnings.is_empty(), "{:?}", flat.header.warnings);
    let steady = explain::steady::steady(&explain::View::new(&flat));
    let [series] = steady.series.as_slice() else { panic!("{:?}", steady.series) };
    assert_eq!((series.cell, series.rounds.len()), (4, 10));
    assert_eq!(series.verdict, explain::steady::Verdict::Steady);
    assert_eq!(series.decides_for, [0, 1, 2, 3, 4, 5]);
    let drifting = run("[model.drift]\nper_gib = 0.9\n");
    assert_eq!(drifting.visits.len(), 14 * 6);
    let codes: Vec<&str> = drifting.header.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["not-steady"]);
    let view = explain::View::new(&drifting);
    let marks = explain::Findings::of(&view).marks(&view);
    let marked = marks.iter().filter(|mark| mark.code.name() == "not-steady").map(|mark| mark.cell);
    assert_eq!(marked.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5], "one decides for all");
}

#[test]
fn rounds_of_a_grid_go_on_in_the_middle_of_one() {
    let place = Place::new("phases-steady-resume");
    let order = order_in_rounds(&place, MATRIX, &model(&place, ""), &[]);
    let interrupt = Interrupt::default();
    let mut ended = 0;
    let (_, part) = go_with(&place, &order, &interrupt, &mut |event: Event<'_>| {
        if let Event::VisitEnds { .. } = event {
            ended += 1;
            if ended == 15 {
                interrupt.press();
            }
        }
    })
    .unwrap();
    // Rounds follow each other without a pause, so the next visit had begun.
    assert_eq!(part.visits.iter().filter(|visit| visit.end == VisitEnd::Complete).count(), 15);
    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let resumed = prepare_resume(&part, settings(&place), None).unwrap();
    let outcome = resumed.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).unwrap();
    let run = store.load(&outcome.run).unwrap();
    let whole = run.visits.iter().filter(|visit| visit.end == VisitEnd::Complete);
    let cells: Vec<u32> = whole.map(|visit| visit.cell).collect();
    assert_eq!(cells[..18], (0..3).flat_map(|_| 0..6).collect::<Vec<u32>>());
}

#[test]
fn streams_are_told_together_against_alone() {
    let place = Place::new("phases-streams");
    let text = "schema = 1\nname = \"s\"\nfile_size = \"32MiB\"\nmethod = \"classic\"\nrepeats = 3\n\
                [[phase]]\nname = \"p\"\ntime = 1\n[phase.grid]\nstreams = [\"a\", \"b\", \"all\"]\n\
                [[phase.stream]]\nname = \"a\"\nqueue_depth = 8\n\
                [[phase.stream]]\nname = \"b\"\nqueue_depth = 8\n";
    let order = order(&place, text, &model(&place, ""), &[]);
    let (_, run) = go(&place, &order).unwrap();
    assert_eq!(run.cells.iter().map(|cell| cell.streams.len()).collect::<Vec<_>>(), [1, 1, 2]);
    let table = report::table::grid(&run);
    let (_, section) = table.split_once("p, together against alone\n").unwrap();
    let line = section.lines().find(|line| line.starts_with("a ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..3], ["a", "read", "b"]);
    // Both want all of the 4000 requests a second that there are.
    let ratio: f64 = words[5].parse().unwrap();
    assert!((0.4..0.6).contains(&ratio), "{section}");
}
