use record::{RunHeader, RunState, RunSummary, Warning};
use store::{Change, Store, StoreError};

use crate::{sample, scratch};

fn named(suite: &str) -> RunHeader {
    RunHeader { suite: suite.into(), ..sample::header() }
}

#[test]
fn what_was_stored_loads_unchanged() {
    let path = scratch("what_was_stored_loads_unchanged");
    let mut store = Store::open(&path).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    assert_eq!(id, "r1");
    store.add_visit(&id, &sample::visit(0)).unwrap();
    store.add_visit(&id, &sample::visit(1)).unwrap();
    assert!(store.load(&id).unwrap() == sample::run("r1"));
    drop(store);
    assert!(Store::open(&path).unwrap().load(&id).unwrap() == sample::run("r1"));
    assert!(Store::open_read_only(&path).unwrap().load(&id).unwrap() == sample::run("r1"));
}

#[test]
fn only_state_plan_and_doubts_change() {
    let mut store = Store::open(&scratch("only_state_plan_and_doubts_change")).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.set_state(&id, RunState::Interrupted).unwrap();
    store.apply(&id, &[Change::VisitsPlanned(9)]).unwrap();
    store.add_warning(&id, &Warning::new("kernel", "another kernel at resume")).unwrap();
    let impossible = [Change::Impossible(0, "gone".to_owned())];
    store.apply(&id, &impossible).unwrap();
    let run = store.load(&id).unwrap();
    assert_eq!((run.header.state, run.header.visits_planned), (RunState::Interrupted, 9));
    assert_eq!(run.header.warnings.len(), 2);
    assert_eq!(run.header.warnings[1].code, "kernel");
    assert_eq!(run.cells[0].impossible.as_deref(), Some("gone"));
    assert!(matches!(store.apply(&id, &impossible), Err(StoreError::NoSuchCell { cell: 0, .. })));
}

#[test]
fn a_cell_can_be_added_and_visited() {
    let path = scratch("a_cell_can_be_added_and_visited");
    let mut store = Store::open(&path).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    let index = u32::try_from(sample::cells().len()).unwrap();
    let added = record::CellRecord { index, ..sample::cells()[0].clone() };
    assert!(!added.streams.is_empty(), "its streams are sealed, too");
    store.apply(&id, &[Change::Cell(Box::new(added.clone()))]).unwrap();
    let visit = record::VisitRecord { cell: index, ..sample::visit(0) };
    store.add_visit(&id, &visit).unwrap();
    drop(store);
    let run = Store::open(&path).unwrap().load(&id).unwrap();
    assert_eq!((run.cells.last(), run.visits.last()), (Some(&added), Some(&visit)));
}

#[test]
fn stored_results_are_never_rewritten() {
    let path = scratch("stored_results_are_never_rewritten");
    let mut store = Store::open(&path).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    for sql in [
        "UPDATE run SET seed = '1'",
        "UPDATE cell SET phase = 'x'",
        "UPDATE cell_stream SET threads = 1",
        "UPDATE visit SET elapsed_ns = 1",
        "UPDATE visit_stream SET direct = 0",
        "UPDATE op SET requests = 1",
        "UPDATE worker SET requests = 1",
        "UPDATE ledger SET reads = 1",
        "UPDATE warning SET text = ''",
    ] {
        let error = raw.execute_batch(sql).unwrap_err().to_string();
        assert!(error.contains("never rewritten"), "{sql}: {error}");
    }
    let again = store.add_visit(&id, &sample::visit(0));
    assert!(matches!(again, Err(StoreError::VisitExists { order: 0, .. })), "{again:?}");
    assert!(store.load(&id).unwrap().visits == [sample::visit(0)]);
}

#[test]
fn a_visit_of_an_unknown_cell_is_refused_whole() {
    let mut store = Store::open(&scratch("a_visit_of_an_unknown_cell")).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    let visit = record::VisitRecord { cell: 7, ..sample::visit(0) };
    let error = store.add_visit(&id, &visit).unwrap_err();
    assert_eq!(error.to_string(), "run r1 has no cell 7 that is still open");
    assert!(store.load(&id).unwrap().visits.is_empty());
}

#[test]
fn imported_runs_load_unchanged() {
    let path = scratch("imported_runs_load_unchanged");
    let mut store = Store::open(&path).unwrap();
    store.create_run(&sample::header(), &[]).unwrap();
    let ids = store.add_runs(&[sample::imported("r2"), sample::later()]).unwrap();
    assert_eq!(ids, ["r2", "r3"]);
    drop(store);
    let store = Store::open_read_only(&path).unwrap();
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
    let mut later = sample::later();
    later.header.id = "r3".into();
    assert!(store.load("r3").unwrap() == later);
    let list = store.list().unwrap();
    assert_eq!((list[1].imported.as_deref(), list[1].started_unix_ns), (Some("fio"), None));
    assert_eq!(list[2].imported, None);
    assert_eq!(store.imported_from("00c0ffee00c0ffee").unwrap(), ["r2"]);
    assert!(store.imported_from("0").unwrap().is_empty());
}

#[test]
fn runs_are_added_all_or_none() {
    let path = scratch("runs_are_added_all_or_none");
    let mut store = Store::open(&path).unwrap();
    let mut broken = sample::imported("r2");
    // A visit of a cell that is not there.
    broken.visits[1].cell = 7;
    store.add_runs(&[sample::imported("r1"), broken]).unwrap_err();
    assert_eq!(store.list().unwrap(), []);
    let raw = rusqlite::Connection::open(&path).unwrap();
    for table in ["run", "imported", "cell", "visit", "op", "reported", "warning"] {
        let n: i64 =
            raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).unwrap();
        assert_eq!(n, 0, "{table}");
    }
}

#[test]
fn what_another_tool_said_is_never_rewritten_and_goes_with_its_run() {
    let path = scratch("what_another_tool_said");
    let mut store = Store::open(&path).unwrap();
    store.add_runs(&[sample::imported("r1")]).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    for sql in ["UPDATE imported SET tool = 'x'", "UPDATE reported SET iops = 1.0"] {
        let error = raw.execute_batch(sql).unwrap_err().to_string();
        assert!(error.contains("never rewritten"), "{sql}: {error}");
    }
    store.remove(&["r1".to_owned()]).unwrap();
    for table in ["imported", "reported"] {
        let n: i64 =
            raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).unwrap();
        assert_eq!(n, 0, "{table}");
    }
}

#[test]
fn the_view_for_people_has_what_another_tool_said() {
    let path = scratch("the_view_has_what_another_tool_said");
    let mut store = Store::open(&path).unwrap();
    let mut run = sample::imported("r1");
    run.visits[0].elapsed_ns = 0;
    run.cells[0].streams[0].threads = 0;
    store.add_runs(&[run]).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    let figures = |op: &str| {
        raw.query_row(
            "SELECT imported, iops, requests, latency_ns_mean, elapsed_ns, threads FROM figure
             WHERE stream = 'main' AND repeat = 0 AND op = ?1",
            [op],
            |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?)),
        )
        .unwrap()
    };
    type Row = (String, Option<f64>, Option<i64>, Option<f64>, Option<i64>, Option<i64>);
    let read: Row = figures("read");
    assert_eq!(read, ("fio".into(), Some(2_172.354_108), Some(-1), Some(1.0 / 3.0), None, None));
    // It said nothing about these.
    let write: Row = figures("write");
    assert_eq!(write, ("fio".into(), None, None, None, None, None));
}

#[test]
fn ids_are_never_used_again() {
    let path = scratch("ids_are_never_used_again");
    let mut store = Store::open(&path).unwrap();
    let ids: Vec<_> =
        (0..3).map(|_| store.create_run(&sample::header(), &sample::cells()).unwrap()).collect();
    store.add_visit(&ids[2], &sample::visit(0)).unwrap();
    assert_eq!(ids, ["r1", "r2", "r3"]);
    store.remove(&[ids[2].clone(), ids[1].clone(), ids[2].clone()]).unwrap();
    drop(store);
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.create_run(&sample::header(), &[]).unwrap(), "r4");
    let left: Vec<_> = store.list().unwrap().into_iter().map(|s| s.id).collect();
    assert_eq!(left, ["r1", "r4"]);
    let raw = rusqlite::Connection::open(&path).unwrap();
    for table in ["visit", "op", "worker", "ledger", "visit_stream"] {
        let n: i64 =
            raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).unwrap();
        assert_eq!(n, 0, "{table}");
    }
}

#[test]
fn removing_is_all_or_nothing() {
    let mut store = Store::open(&scratch("removing_is_all_or_nothing")).unwrap();
    let id = store.create_run(&sample::header(), &[]).unwrap();
    assert!(store.remove(&[id.clone(), "r9".into()]).is_err());
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_listing_has_a_line_per_run_newest_last() {
    let mut store = Store::open(&scratch("a_listing")).unwrap();
    assert_eq!(store.list().unwrap(), []);
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.create_run(&named("other"), &[]).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
    let list = store.list().unwrap();
    assert_eq!(
        list[0],
        RunSummary {
            id: "r1".into(),
            suite: "bm-flash".into(),
            target: "/ssd/tést.dat".into(),
            imported: None,
            started_unix_ns: Some(1_235_088_000_000_000_000),
            state: RunState::Killed,
            live: false,
            visits_made: 1,
            visits_planned: 4,
            warnings: 2,
            part: None,
        }
    );
    assert_eq!(list[1].id, "r2");
}

#[test]
fn one_that_says_it_is_under_way_and_that_nobody_holds_was_killed() {
    let mut store = Store::open(&scratch("killed")).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    let states = |store: &Store| {
        let of = [store.load(&id).unwrap(), store.outline(&id).unwrap()];
        [of[0].header.state, of[1].header.state, store.list().unwrap()[0].state]
    };
    let claim = store.claim(&id).unwrap();
    assert_eq!(states(&store), [RunState::Running; 3]);
    drop(claim);
    assert_eq!(states(&store), [RunState::Killed; 3]);
    // What is read so is never stored: older programs do not know the word.
    store.set_state(&id, RunState::Killed).unwrap();
    let claim = store.claim(&id).unwrap();
    assert_eq!(states(&store), [RunState::Running; 3]);
    drop(claim);
    store.set_state(&id, RunState::Complete).unwrap();
    assert_eq!(states(&store), [RunState::Complete; 3]);
}

#[test]
fn a_visit_cut_short_is_not_made_and_one_made_again_counts_once() {
    let mut store = Store::open(&scratch("visits_made")).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    let visit = |order, end| record::VisitRecord { end, ..sample::visit(order) };
    store.add_visit(&id, &visit(0, record::VisitEnd::Interrupted)).unwrap();
    assert_eq!(store.list().unwrap()[0].visits_made, 0);
    let mut again = visit(1, record::VisitEnd::Complete);
    again.repeat = 0;
    store.add_visit(&id, &again).unwrap();
    let mut refilled = again.clone();
    refilled.order = 2;
    store.add_visit(&id, &refilled).unwrap();
    assert_eq!(store.list().unwrap()[0].visits_made, 1);
    assert_eq!(store.load(&id).unwrap().visits_made(), 1);
}

#[test]
fn people_name_runs_in_several_ways() {
    let mut store = Store::open(&scratch("people_name_runs")).unwrap();
    let hint = |store: &Store, text: &str| store.resolve(text).unwrap_err().hint().unwrap();
    assert_eq!(hint(&store, "last"), "the store is empty; `plimsoll run` adds the first run");
    store.create_run(&named("bm-flash"), &[]).unwrap();
    assert_eq!(hint(&store, "r7"), "the only run is r1 (bm-flash)");
    store.create_run(&named("random-read"), &[]).unwrap();
    store.create_run(&named("random-write"), &[]).unwrap();
    for (text, id) in [
        ("r2", "r2"),
        ("2", "r2"),
        (" last ", "r3"),
        ("last-0", "r3"),
        ("last-2", "r1"),
        ("bm", "r1"),
        ("random-r", "r2"),
    ] {
        assert_eq!(store.resolve(text).unwrap(), id, "{text}");
    }
    let error = store.resolve("random").unwrap_err();
    assert_eq!(error.to_string(), "`random` fits 2 runs");
    assert_eq!(error.hint().unwrap(), "one of r2, r3");
    for text in ["r4", "0", "", "last-3", "last-99999999999999999999", "lasting", "x", "-1", "r-1"]
    {
        let error = store.resolve(text).unwrap_err();
        assert!(matches!(error, StoreError::NoSuchRun { .. }), "{text}: {error}");
    }
    assert_eq!(
        hint(&store, "x"),
        "the oldest run is r1, the newest r3 (random-write); `plimsoll list` shows all"
    );
}

#[test]
fn the_view_for_people_has_rates() {
    let path = scratch("the_view_for_people");
    let mut store = Store::open(&path).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    let (run, iops, mean): (String, f64, f64) = raw
        .query_row(
            "SELECT run, iops, latency_ns_mean FROM figure WHERE stream = 'main' AND op = 'write'",
            [],
            |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)),
        )
        .unwrap();
    assert_eq!(run, "r1");
    assert!((iops - 101e9 / 10_000_123_456.0).abs() < 1e-9);
    let expected = u64::MAX as f64 * 5.0 / 101.0;
    assert!((mean / expected - 1.0).abs() < 1e-12, "{mean} {expected}");
}

#[test]
fn the_flush_at_the_end_of_a_stream_is_stored() {
    let mut store = Store::open(&scratch("closing_sync")).unwrap();
    let run = sample::run("r1");
    store.create_run(&run.header, &run.cells).unwrap();
    let mut visit = sample::visit(0);
    let sync = record::Gap { start_ns: 9_000_000_000, length_ns: 41 };
    visit.streams[0].workers[1].closing_sync = Some(sync);
    store.add_visit("r1", &visit).unwrap();
    assert!(store.load("r1").unwrap().visits == [visit]);
}

#[test]
fn a_store_that_nothing_was_put_into_is_not_left_behind() {
    let path = scratch("nothing_left_behind");
    let files = || {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let all = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let names = all.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|own| own.starts_with(&name)).collect::<Vec<String>>()
    };
    drop(Store::open(&path).unwrap());
    assert_eq!(files(), [""; 0], "made for nothing");
    // A run that could not begin is taken out again.
    let mut store = Store::open(&path).unwrap();
    let id = store.create_run(&sample::header(), &[]).unwrap();
    store.remove(&[id]).unwrap();
    drop(store);
    assert_eq!(files(), [""; 0], "made for a run that never began");
    // One that has something stays, and so does one that was there before.
    drop(Store::open(&path).map(|mut store| store.create_run(&sample::header(), &[])).unwrap());
    let mut store = Store::open(&path).unwrap();
    store.remove(&["r1".to_owned()]).unwrap();
    drop(store);
    assert!(path.exists());
    // Nor is it taken from who else has it open.
    for name in files() {
        std::fs::remove_file(path.with_file_name(name)).unwrap();
    }
    let (first, mut second) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
    drop(first);
    second.create_run(&sample::header(), &[]).unwrap();
    drop(second);
    assert!(path.exists());
}

#[test]
fn what_lies_below_is_stored_once_as_the_first_visit_finds_it() {
    let path = crate::scratch("stack_once");
    let mut store = Store::open(&path).unwrap();
    let found = sample::with_stack().header.stack.unwrap();
    let mut header = sample::header();
    header.stack = None;
    let id = store.create_run(&header, &sample::cells()).unwrap();
    assert_eq!(store.load(&id).unwrap().header.stack, None);
    store.apply(&id, &[Change::Stack(Box::new(found.clone()))]).unwrap();
    let mut other = found.clone();
    other.layers.clear();
    store.apply(&id, &[Change::Stack(Box::new(other))]).unwrap();
    assert_eq!(store.load(&id).unwrap().header.stack, Some(found));
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let refused = connection.execute("UPDATE run SET stack = '{}'", []).unwrap_err();
    assert!(refused.to_string().contains("never rewritten"), "{refused}");
}

/// One damaged run hides no other, and what is left of one can be removed.
#[test]
fn damaged_and_lost_runs_have_lines_and_can_go() {
    let path = crate::scratch("damaged_lines");
    let mut store = Store::open(&path).unwrap();
    for _ in 0..4 {
        let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
        store.add_visit(&id, &sample::visit(0)).unwrap();
    }
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "PRAGMA foreign_keys = OFF; DELETE FROM run WHERE number = 1;
         DROP TRIGGER run_is_kept; UPDATE run SET seed = 'x' WHERE number = 3",
    )
    .unwrap();
    let lines = store.lines().unwrap();
    let is_good: Vec<_> = lines.iter().map(|(id, line)| (id.as_str(), line.is_ok())).collect();
    assert_eq!(is_good, [("r1", false), ("r2", true), ("r3", false), ("r4", true)]);
    let why = lines[0].1.as_ref().unwrap_err().to_string();
    assert!(why.contains("header of r1") && why.contains("lost"), "{why}");
    assert!(store.list().is_err(), "who concludes from all wants all");
    assert_eq!(store.resolve("r1").unwrap(), "r1");
    assert!(matches!(store.load("r1"), Err(StoreError::BadValue { .. })));
    store.remove(&["r1".to_owned(), "r3".to_owned()]).unwrap();
    assert_eq!(store.list().unwrap().len(), 2);
    assert!(matches!(store.resolve("r1"), Err(StoreError::NoSuchRun { .. })));
    for table in ["visit", "cell", "cell_stream", "warning", "op", "worker", "run_seal"] {
        let query = format!("SELECT count(*) FROM {table}");
        let rest: i64 = raw.query_row(&query, [], |row| row.get(0)).unwrap();
        let none = format!("{query} WHERE run NOT IN (2, 4)");
        let lost = raw.query_row(&none, [], |row| row.get::<_, i64>(0)).unwrap_or(0);
        assert_eq!(lost, 0, "{table}: {rest}");
    }
    let visits: i64 =
        raw.query_row("SELECT count(DISTINCT visit) FROM op", [], |row| row.get(0)).unwrap();
    assert_eq!(visits, 2, "what hangs on visits went with them");
}

/// Names are looked for among the runs that can be read; the damaged ones that may be meant are said.
#[test]
fn damaged_runs_are_passed_over_by_names() {
    let path = crate::scratch("damaged_names");
    let mut store = Store::open(&path).unwrap();
    for suite in ["iometer-database", "random-read", "random-write"] {
        store.create_run(&named(suite), &sample::cells()).unwrap();
    }
    for is_control in [true, true] {
        let mut header = sample::header();
        let blocks = record::Blocks {
            group: "group".to_owned(),
            side: "a".to_owned(),
            looks: 1,
            controls: Vec::new(),
            is_control,
        };
        header.blocks = Some(blocks);
        store.create_run(&header, &sample::cells()).unwrap();
    }
    let raw = rusqlite::Connection::open(&path).unwrap();
    let harm = |run: u32| {
        let sql = "DROP TRIGGER IF EXISTS run_is_kept; UPDATE run SET seed = 'x' WHERE number = ";
        raw.execute_batch(&format!("{sql}{run}")).unwrap();
    };
    let ids = |damaged: &[store::DamagedRun]| -> Vec<String> {
        damaged.iter().map(|(id, _)| id.clone()).collect()
    };
    let named = |store: &Store, text: &str| {
        let (id, damaged) = store.resolve_past(text).unwrap();
        (id, ids(&damaged))
    };
    let found = |id: &str, damaged: &[&str]| {
        (id.to_owned(), damaged.iter().map(|&id| id.to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(named(&store, "last"), found("r3", &[]));
    harm(1);
    assert_eq!(named(&store, "last"), found("r3", &[]), "it is before the last");
    assert_eq!(store.resolve("last").unwrap(), "r3");
    assert_eq!(named(&store, "random-r"), found("r2", &["r1"]));
    assert!(matches!(store.resolve_past("iom"), Err(StoreError::BadValue { .. })));
    harm(3);
    assert_eq!(named(&store, "last"), found("r2", &["r3"]));
    assert_eq!(named(&store, "random"), found("r2", &["r1", "r3"]));
    assert_eq!(named(&store, "r2"), found("r2", &[]));
    assert!(matches!(store.resolve("last"), Err(StoreError::BadValue { .. })));
    assert!(matches!(store.resolve_past("last-1"), Err(StoreError::BadValue { .. })));
    let control = |store: &Store| store.control_of("group").map(|(id, bad)| (id, ids(&bad)));
    assert_eq!(control(&store).unwrap().0.as_deref(), Some("r4"));
    harm(4);
    let (id, damaged) = control(&store).unwrap();
    assert_eq!(id.as_deref(), Some("r5"));
    assert!(damaged.contains(&"r4".to_owned()), "{damaged:?}");
    assert_eq!(store.control_of("another").unwrap().0, None);
}
