//! Stores of earlier versions open and load. Files in `tests/data` are never written again.

use std::path::{Path, PathBuf};

use record::Run;
use store::{Store, StoreError};

use crate::{sample, scratch, side};

/// The schema of today.
const KNOWN: i64 = 19;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// What a store held before there were studies.
fn before_studies() -> Run {
    let mut then = sample::latest();
    if let Some(part) = &mut then.header.part {
        part.study = None;
    }
    then
}

fn before_controls() -> Run {
    let mut then = before_studies();
    if let Some(blocks) = &mut then.header.blocks {
        (blocks.controls, blocks.is_control) = (vec![], false);
    }
    then
}

fn before_looks() -> Run {
    let mut then = sample::later();
    if let Some(blocks) = &mut then.header.blocks {
        blocks.looks = 1;
    }
    then
}

/// A schema, its first run, and whether an imported one is the second.
type Then = (i64, fn() -> Run, bool);

const ALL: [Then; 18] = [
    (1, || sample::run("r1"), false),
    (2, before_looks, false),
    (3, sample::later, false),
    (4, sample::later, false),
    (5, sample::later, true),
    (7, before_controls, false),
    (8, before_studies, false),
    (9, before_studies, true),
    (10, sample::latest, true),
    (11, sample::with_stack, true),
    (12, sample::with_model, true),
    (13, sample::with_model, true),
    (14, sample::with_load, true),
    (15, sample::with_load, true),
    (16, sample::with_load, true),
    (17, sample::with_load, true),
    (18, sample::with_load, true),
    (19, sample::with_counters, true),
];

#[test]
fn a_store_of_each_schema_opens() {
    for (schema, first, has_imported) in ALL {
        let path = scratch(&format!("a_store_of_schema_{schema}"));
        std::fs::copy(data(&format!("store-v{schema}.db")), &path).unwrap();
        match Store::open_read_only(&path) {
            Ok(_) => assert_eq!(schema, KNOWN),
            Err(StoreError::Older { found, known: KNOWN, .. }) => assert_eq!(found, schema),
            Err(error) => unreachable!("{schema}: {error:?}"),
        }
        let mut store = Store::open(&path).unwrap();
        assert!(store.load("r1").unwrap() == first(), "{schema}");
        if has_imported {
            assert!(store.load("r2").unwrap() == sample::imported("r2"), "{schema}");
        }
        // What has no checksum is read beside what has one.
        let id = store.add_runs(&[first()]).unwrap().remove(0);
        assert!(store.load(&id).unwrap().visits == first().visits, "{schema}");
        store.add_visit("r1", &sample::visit(2)).unwrap();
        drop(store);
        assert!(Store::open_read_only(&path).unwrap().load("r1").is_ok(), "{schema}");
        let head = std::fs::read(&path).unwrap();
        assert_eq!(head[18..20], [1, 1], "{schema}: it keeps no log");
    }
}

/// Leaves a store as an earlier program does that is killed: what `sql` does is in its log.
fn killed_with(path: &Path, sql: &[String]) {
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    raw.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
    raw.pragma_update(None, "foreign_keys", true).unwrap();
    sql.iter().for_each(|sql| raw.execute_batch(sql).unwrap());
    let left = ["", "-wal"].map(|end| (side(path, end), std::fs::read(side(path, end)).unwrap()));
    drop(raw);
    assert!(!side(path, "-shm").exists());
    left.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}

/// What is in the log of a killed program is in the store, however much that is.
#[test]
fn a_killed_store_with_a_log_is_brought_up_to_date() {
    let scripts = |until: usize| -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().take(until).map(|path| std::fs::read_to_string(path).unwrap()).collect()
    };
    let removed = vec!["DELETE FROM run WHERE number = 2".to_owned()];
    // All of it is in the log, the mark too.
    let mut new = scripts(16);
    new.push("PRAGMA application_id = 0x504c494d; PRAGMA user_version = 16".to_owned());
    for (from, sql, found, runs) in
        [("store-v17.db", &removed, 17, 1), ("store-v9.db", &removed, 9, 1), ("", &new, 0, 0)]
    {
        let path = scratch("killed_with_a_log");
        if !from.is_empty() {
            std::fs::copy(data(from), &path).unwrap();
        }
        killed_with(&path, sql);
        let before = ["", "-wal"].map(|end| std::fs::read(side(&path, end)).unwrap());
        let error = Store::open_read_only(&path).unwrap_err();
        let is_said = matches!(error, StoreError::Older { found: said, .. } if said == found);
        assert!(is_said && error.hint().unwrap().contains("open it once for writing"), "{error:?}");
        let after = ["", "-wal"].map(|end| std::fs::read(side(&path, end)).unwrap());
        assert!(before == after && !side(&path, "-shm").exists(), "reading changes nothing");
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.list().unwrap().len(), runs, "{from}");
        assert!(!side(&path, "-wal").exists() && !side(&path, "-shm").exists());
        store.create_run(&sample::header(), &[]).unwrap();
        drop(store);
        assert_eq!(Store::open_read_only(&path).unwrap().list().unwrap().len(), runs + 1);
    }
}

/// An earlier program works on it: nothing is changed, and it can be opened when that has ended.
#[test]
fn a_store_that_an_earlier_program_uses_is_refused() {
    let path = scratch("an_earlier_program");
    std::fs::copy(data("store-v17.db"), &path).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("UPDATE mark SET before = now").unwrap();
    raw.execute_batch("BEGIN; SELECT * FROM run").unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    drop(raw);
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 2);
}

/// What could be read when the seals came is sealed: from then on a change shows.
#[test]
fn what_was_stored_before_there_were_seals_is_sealed_as_found() {
    let path = scratch("sealed_as_found");
    std::fs::copy(data("store-v15.db"), &path).unwrap();
    drop(Store::open(&path).unwrap());
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "DROP TRIGGER op_is_kept; UPDATE op SET requests = requests + 1 WHERE rowid = 1",
    )
    .unwrap();
    drop(raw);
    let store = Store::open(&path).unwrap();
    let error = store.load("r1").unwrap_err();
    assert!(error.to_string().contains("measurements of r1"), "{error}");
    assert!(store.load("r2").is_ok(), "other runs are read as before");
}

/// Makes the file of the current version; its name is to be new.
#[test]
#[ignore = "writes tests/data; only for a new schema"]
fn write_the_file_of_this_version() {
    let path = data("store-v19.db");
    assert!(!path.exists(), "old files are never written again");
    let mut store = Store::open(&path).unwrap();
    let run = sample::with_counters();
    let id = store.create_run(&run.header, &run.cells).unwrap();
    run.visits.iter().for_each(|visit| store.add_visit(&id, visit).unwrap());
    store.add_runs(&[sample::imported("r2")]).unwrap();
}
