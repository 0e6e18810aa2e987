//! A file that somebody copies another over, just then: the log of the store that it was is neither put
//! into it nor removed.

use std::path::{Path, PathBuf};

use store::{Store, StoreError};

use crate::{kill, sample, scratch, tidy};

fn log(store: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", store.display()))
}

fn add(store: &mut Store) {
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
}

/// A store with a run in its file; a backup of that; and another run in the log.
fn in_use(path: &Path) -> (Store, Vec<u8>) {
    let mut store = Store::open(path).unwrap();
    add(&mut store);
    tidy(path);
    let backup = std::fs::read(path).unwrap();
    add(&mut store);
    (store, backup)
}

/// What `cp` has written so far: nothing, some pages, all but the last page.
fn parts(backup: &[u8]) -> [usize; 6] {
    let pages = backup.len() / 4096;
    [0, 4096, 2 * 4096, 20 * 4096, 20 * 4096 + 100, (pages - 1) * 4096]
}

#[test]
fn a_run_that_ends_leaves_a_half_copied_backup_alone() {
    let path = scratch("a_run_ends_on_half_a_backup");
    for part in 0..6 {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_file(log(&path));
        let (mut store, backup) = in_use(&path);
        let part = parts(&backup)[part];
        std::fs::write(&path, &backup[..part]).unwrap();
        let its_log = std::fs::read(log(&path)).unwrap();
        store.set_state("r2", record::RunState::Complete).unwrap_err();
        drop(store);
        assert!(std::fs::read(&path).unwrap() == backup[..part], "{part}");
        assert!(std::fs::read(log(&path)).unwrap() == its_log, "{part}");
        let _ = std::fs::remove_file(format!("{}-shm", path.display()));
        for open in [Store::open, Store::open_read_only] {
            let error = open(&path).unwrap_err();
            assert!(!error.hint().unwrap().is_empty(), "{part}: {error}");
            assert!(std::fs::read(&path).unwrap() == backup[..part], "{part}");
            assert!(std::fs::read(log(&path)).unwrap() == its_log, "{part}");
        }
        // The copy is whole, and was made when the log began.
        std::fs::write(&path, &backup).unwrap();
        assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 2);
    }
}

/// A backup in which the pages have other numbers bears the mark of the log that began then.
#[test]
fn a_log_is_not_put_into_a_store_that_was_vacuumed() {
    let path = scratch("a_vacuumed_backup");
    let copy = path.with_file_name("copy.db");
    for is_small in [false, true] {
        for into in [false, true] {
            let _ = std::fs::remove_file(&path);
            let mut store = Store::open(&path).unwrap();
            (0..3).for_each(|_| add(&mut store));
            store.remove(&["r1".to_owned()]).unwrap();
            drop(store);
            let _ = std::fs::remove_file(&copy);
            if into {
                let raw = rusqlite::Connection::open(&path).unwrap();
                raw.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
            } else {
                std::fs::copy(&path, &copy).unwrap();
                rusqlite::Connection::open(&copy).unwrap().execute_batch("VACUUM").unwrap();
            }
            let raw = rusqlite::Connection::open(&copy).unwrap();
            raw.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
            drop(raw);
            let backup = std::fs::read(&copy).unwrap();
            let mut store = Store::open(&path).unwrap();
            if is_small {
                store.add_warning("r2", &record::Warning::new("w", "x")).unwrap();
            } else {
                add(&mut store);
            }
            kill(store);
            let its_log = std::fs::read(log(&path)).unwrap();
            std::fs::write(&path, &backup).unwrap();
            for open in [Store::open, Store::open_read_only] {
                let error = open(&path).map(drop).unwrap_err();
                assert!(matches!(error, StoreError::OtherLog { .. }), "{is_small} {error:?}");
                assert!(std::fs::read(&path).unwrap() == backup, "{is_small} {into}");
                assert!(std::fs::read(log(&path)).unwrap() == its_log, "{is_small} {into}");
            }
            std::fs::remove_file(log(&path)).unwrap();
        }
    }
}

/// Pages of another file got into the store, and SQLite noticed.
#[test]
fn after_a_damaged_page_the_log_stays() {
    let path = scratch("after_a_damaged_page");
    let (store, backup) = in_use(&path);
    kill(store);
    let raw = rusqlite::Connection::open(&path).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'imported'";
    let root: u32 = raw.query_row(root, [], |row| row.get(0)).unwrap();
    let root = root as usize;
    let its_log = std::fs::read(log(&path)).unwrap();
    drop(raw);
    let mut file = backup;
    file[(root - 1) * 4096..root * 4096].fill(7);
    std::fs::write(&path, &file).unwrap();
    std::fs::write(log(&path), &its_log).unwrap();
    let store = Store::open(&path).unwrap();
    let outcome = store.load("r1");
    assert!(matches!(outcome, Err(StoreError::Damaged { .. })), "{outcome:?}");
    drop(store);
    assert!(std::fs::read(&path).unwrap() == file);
    assert!(std::fs::read(log(&path)).unwrap() == its_log);
}
