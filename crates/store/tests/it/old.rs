//! Stores of earlier versions open and load. Files in `tests/data` are never written again.

use std::path::{Path, PathBuf};

use store::{Store, StoreError};

use crate::{sample, scratch, tidy};

/// The schema of today.
const KNOWN: i64 = 17;

/// What a store held before there were studies.
fn before_studies() -> record::Run {
    let mut then = sample::latest();
    if let Some(part) = &mut then.header.part {
        part.study = None;
    }
    then
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn a_store_of_schema_5_opens() {
    let path = scratch("a_store_of_schema_5");
    std::fs::copy(data("store-v5.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 5, known: KNOWN, .. }), "{refused:?}");
    let store = Store::open(&path).unwrap();
    assert!(store.load("r1").unwrap() == sample::later());
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
}

#[test]
fn a_store_of_schema_7_opens() {
    let path = scratch("a_store_of_schema_7");
    std::fs::copy(data("store-v7.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 7, known: KNOWN, .. }), "{refused:?}");
    let mut then = before_studies();
    if let Some(blocks) = &mut then.header.blocks {
        (blocks.controls, blocks.is_control) = (vec![], false);
    }
    assert!(Store::open(&path).unwrap().load("r1").unwrap() == then);
}

#[test]
fn a_store_of_schema_8_opens() {
    let path = scratch("a_store_of_schema_8");
    std::fs::copy(data("store-v8.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 8, known: KNOWN, .. }), "{refused:?}");
    assert!(Store::open(&path).unwrap().load("r1").unwrap() == before_studies());
}

#[test]
fn a_store_of_schema_4_opens() {
    let path = scratch("a_store_of_schema_4");
    std::fs::copy(data("store-v4.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 4, known: KNOWN, .. }), "{refused:?}");
    assert!(Store::open(&path).unwrap().load("r1").unwrap() == sample::later());
}

#[test]
fn a_store_of_schema_3_opens() {
    let path = scratch("a_store_of_schema_3");
    std::fs::copy(data("store-v3.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 3, known: KNOWN, .. }), "{refused:?}");
    assert!(Store::open(&path).unwrap().load("r1").unwrap() == sample::later());
}

#[test]
fn a_store_of_schema_2_opens() {
    let path = scratch("a_store_of_schema_2");
    std::fs::copy(data("store-v2.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 2, known: KNOWN, .. }), "{refused:?}");
    let mut then = sample::later();
    if let Some(blocks) = &mut then.header.blocks {
        blocks.looks = 1;
    }
    assert!(Store::open(&path).unwrap().load("r1").unwrap() == then);
}

#[test]
fn a_store_of_schema_1_opens() {
    let path = scratch("a_store_of_schema_1");
    std::fs::copy(data("store-v1.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 1, known: KNOWN, .. }), "{refused:?}");
    let mut store = Store::open(&path).unwrap();
    assert!(store.load("r1").unwrap() == sample::run("r1"));
    store.add_visit("r1", &sample::visit(2)).unwrap();
    assert_eq!(store.create_run(&sample::header(), &[]).unwrap(), "r2");
}

#[test]
fn a_store_of_schema_9_opens() {
    let path = scratch("a_store_of_schema_9");
    std::fs::copy(data("store-v9.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 9, known: KNOWN, .. }), "{refused:?}");
    let store = Store::open(&path).unwrap();
    assert!(store.load("r1").unwrap() == before_studies());
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
}

#[test]
fn a_store_of_schema_10_opens() {
    let path = scratch("a_store_of_schema_10");
    std::fs::copy(data("store-v10.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 10, known: KNOWN, .. }), "{refused:?}");
    let store = Store::open(&path).unwrap();
    assert!(store.load("r1").unwrap() == sample::latest());
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
}

#[test]
fn a_store_of_schema_11_opens() {
    let path = scratch("a_store_of_schema_11");
    std::fs::copy(data("store-v11.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 11, known: KNOWN, .. }), "{refused:?}");
    let store = Store::open(&path).unwrap();
    assert!(store.load("r1").unwrap() == sample::with_stack());
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
}

#[test]
fn a_store_of_schema_12_opens() {
    let path = scratch("a_store_of_schema_12");
    std::fs::copy(data("store-v12.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 12, known: KNOWN, .. }), "{refused:?}");
    let store = Store::open(&path).unwrap();
    assert!(store.load("r1").unwrap() == sample::with_model());
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
}

#[test]
fn a_store_of_schema_13_opens() {
    let path = scratch("a_store_of_schema_13");
    std::fs::copy(data("store-v13.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 13, known: KNOWN, .. }), "{refused:?}");
    let store = Store::open(&path).unwrap();
    let then = sample::with_model();
    assert!(store.load("r1").unwrap() == then);
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
    // Rates of then are as they were.
    assert!(then.visits.iter().all(|visit| visit.rated_ns() == visit.elapsed_ns));
}

#[test]
fn a_store_of_schema_14_opens() {
    let path = scratch("a_store_of_schema_14");
    std::fs::copy(data("store-v14.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 14, known: KNOWN, .. }), "{refused:?}");
    // What has no checksum is read beside what has one.
    let mut store = Store::open(&path).unwrap();
    let then = sample::with_load();
    let id = store.add_runs(std::slice::from_ref(&then)).unwrap().remove(0);
    assert!(store.load("r1").unwrap() == then);
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
    assert!(store.load(&id).unwrap().visits == then.visits);
}

#[test]
fn a_store_of_schema_15_opens() {
    let path = scratch("a_store_of_schema_15");
    std::fs::copy(data("store-v15.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 15, known: KNOWN, .. }), "{refused:?}");
    let store = Store::open(&path).unwrap();
    assert!(store.load("r1").unwrap() == sample::with_load());
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
}

#[test]
fn a_store_of_schema_16_opens() {
    let path = scratch("a_store_of_schema_16");
    std::fs::copy(data("store-v16.db"), &path).unwrap();
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 16, known: KNOWN, .. }), "{refused:?}");
    let store = Store::open(&path).unwrap();
    assert!(store.load("r1").unwrap() == sample::with_load());
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
}

#[test]
fn a_store_of_schema_17_opens() {
    let path = scratch("a_store_of_schema_17");
    std::fs::copy(data("store-v17.db"), &path).unwrap();
    let store = Store::open_read_only(&path).unwrap();
    assert!(store.load("r1").unwrap() == sample::with_load());
    assert!(store.load("r2").unwrap() == sample::imported("r2"));
}

/// Before there were marks nothing said whose a log is.
#[test]
fn a_store_of_schema_16_is_opened_with_its_log() {
    let path = scratch("a_store_of_schema_16_with_log");
    std::fs::copy(data("store-v16.db"), &path).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("DELETE FROM run WHERE number = 2").unwrap();
    let log = path.with_file_name("plimsoll.db-wal");
    let left = [&path, &log].map(|path| std::fs::read(path).unwrap());
    drop(raw);
    for path in [&path, &log].into_iter().zip(&left) {
        std::fs::write(path.0, path.1).unwrap();
    }
    let refused = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 16, .. }), "{refused:?}");
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 1);
    assert_eq!(Store::open_read_only(&path).unwrap().list().unwrap().len(), 1);
    // Beside a copy that has marks it is another's.
    std::fs::write(&log, &left[1]).unwrap();
    let refused = Store::open(&path).unwrap_err();
    assert!(matches!(refused, StoreError::OtherLog { .. }), "{refused:?}");
}

/// Before it was brought up to date a store had no mark: what its file had then tells.
#[test]
fn a_log_that_brought_a_store_up_to_date_is_that_stores() {
    let path = scratch("brought_up_to_date");
    let log = path.with_file_name("plimsoll.db-wal");
    std::fs::copy(data("store-v16.db"), &path).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("PRAGMA foreign_keys = ON; DELETE FROM run WHERE number = 2").unwrap();
    drop(raw);
    let other = std::fs::read(&path).unwrap();
    std::fs::copy(data("store-v16.db"), &path).unwrap();
    // Somebody who reads keeps the log from the file.
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM run").unwrap();
    let count = |row: &rusqlite::Row| row.get::<_, i64>(0);
    assert_eq!(reader.query_row("SELECT count(*) FROM run", [], count).unwrap(), 2);
    let store = Store::open(&path).unwrap();
    let left = [&path, &log].map(|path| std::fs::read(path).unwrap());
    drop((store, reader));
    assert!(left[0] == std::fs::read(data("store-v16.db")).unwrap());
    for (file, is_own) in [(&other, false), (&left[0], true)] {
        for open in [Store::open_read_only, Store::open] {
            let _ = std::fs::remove_file(path.with_file_name("plimsoll.db-shm"));
            std::fs::write(&path, file).unwrap();
            std::fs::write(&log, &left[1]).unwrap();
            let outcome = open(&path).map(|store| store.list().unwrap().len());
            match outcome {
                Ok(runs) => assert!(is_own && runs == 2),
                Err(error) => {
                    assert!(!is_own, "{error:?}");
                    assert!(matches!(error, StoreError::OtherLog { .. }), "{error:?}");
                    assert!(std::fs::read(&path).unwrap() == *file);
                    assert!(std::fs::read(&log).unwrap() == left[1]);
                }
            }
        }
    }
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
    let path = data("store-v17.db");
    assert!(!path.exists(), "old files are never written again");
    let mut store = Store::open(&path).unwrap();
    let run = sample::with_load();
    let id = store.create_run(&run.header, &run.cells).unwrap();
    run.visits.iter().for_each(|visit| store.add_visit(&id, visit).unwrap());
    store.add_runs(&[sample::imported("r2")]).unwrap();
    drop(store);
    tidy(&path);
}
