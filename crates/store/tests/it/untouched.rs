//! What lies beside a store, or in its place, and is not the store's: refused before SQLite opens
//! anything, and not changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store::{Store, StoreError};

use crate::{add, scratch, side};

/// Name and content of every file.
fn files(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(store.parent().unwrap()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Both ways of opening it are refused, and change no file.
fn refused(what: &str, path: &Path, is_right: impl Fn(&StoreError) -> bool) {
    let before = files(path);
    for open in [Store::open, Store::open_read_only] {
        let error = open(path).map(|store| store.list().map(|runs| runs.len())).unwrap_err();
        assert!(is_right(&error) && error.hint().is_some(), "{what}: {error:?}");
        assert!(files(path) == before, "{what}: {:?}", files(path).keys());
    }
}

const fn foreign(error: &StoreError) -> bool {
    matches!(error, StoreError::NotAStore(_))
}

const fn beside(error: &StoreError) -> bool {
    matches!(error, StoreError::NotBeside { .. })
}

#[test]
fn files_of_others_are_refused_and_left_alone() {
    let path = scratch("files_of_others");
    std::fs::write(&path, "root:x:0:0:root:/root:/bin/sh\n".repeat(100)).unwrap();
    refused("a text", &path, foreign);
    for (what, sql) in [
        ("a table", "CREATE TABLE precious (x); INSERT INTO precious VALUES (1)"),
        ("a mark", "PRAGMA application_id = 77"),
        // Tables and version come in one transaction: who has only one of them is not ours.
        ("our mark on a table", "PRAGMA application_id = 0x504c494d; CREATE TABLE run (mine)"),
        ("a version below zero", "PRAGMA application_id = 0x504c494d; PRAGMA user_version = -5"),
    ] {
        std::fs::remove_file(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        refused(what, &path, foreign);
    }
}

/// A database that another process uses: its log is neither put into it nor removed.
#[test]
fn live_databases_of_others_keep_their_log() {
    let path = scratch("live_databases");
    let other = Connection::open(&path).unwrap();
    other.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    for sql in [
        "CREATE TABLE precious (x); INSERT INTO precious VALUES (1)",
        "PRAGMA wal_checkpoint(RESTART); INSERT INTO precious VALUES (2)",
    ] {
        other.execute_batch(sql).unwrap();
        let copy = path.with_file_name("in").join("copy.db");
        let _ = std::fs::remove_dir_all(copy.parent().unwrap());
        std::fs::create_dir(copy.parent().unwrap()).unwrap();
        for end in ["", "-wal"] {
            std::fs::copy(side(&path, end), side(&copy, end)).unwrap();
        }
        let before = files(&copy);
        for open in [Store::open, Store::open_read_only] {
            // Where its tables are in the log alone only SQLite sees them, and makes an index.
            let error = open(&copy).unwrap_err();
            let is_unknown = matches!(error, StoreError::Older { found: 0, .. });
            assert!(is_unknown || foreign(&error), "{error:?}");
            let _ = std::fs::remove_file(side(&copy, "-shm"));
            assert!(files(&copy) == before);
        }
    }
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let path = scratch("a_newer_store");
    add(&mut Store::open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    refused("newer", &path, |error| matches!(error, StoreError::Newer { found: 99, .. }));
}

/// The log of an earlier store is still there, and another file has that store's name by now, or none.
#[test]
fn a_log_of_another_database_is_not_put_into_a_store() {
    let path = scratch("a_log_of_another");
    add(&mut Store::open(&path).unwrap());
    let other = path.with_file_name("other.db");
    let raw = Connection::open(&other).unwrap();
    raw.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    raw.execute_batch("CREATE TABLE x (y)").unwrap();
    let log = std::fs::read(side(&other, "-wal")).unwrap();
    drop(raw);
    std::fs::remove_file(&other).unwrap();
    for bytes in [&log[..], b"my notes", b""] {
        std::fs::write(side(&path, "-wal"), bytes).unwrap();
        refused("beside a store", &path, beside);
        std::fs::write(side(&other, "-wal"), bytes).unwrap();
        refused("beside nothing", &other, beside);
        std::fs::write(&other, "").unwrap();
        refused("beside an empty file", &other, beside);
        std::fs::remove_file(&other).unwrap();
    }
    std::fs::remove_file(side(&path, "-wal")).unwrap();
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 1);
}
