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

/// Somebody writes another file over the store without cutting it (`rsync --inplace`), and has come as far
/// as some pages: the next that is stored says so, and nothing of this store gets into that file.
#[test]
fn a_store_that_is_overwritten_in_place_is_noticed_at_the_next_commit() {
    let path = scratch("overwritten_in_place");
    let other = path.with_file_name("other.db");
    let mut store = Store::open(&other).unwrap();
    // Of more transactions than the other has, or both would begin alike.
    (0..9).for_each(|_| add(&mut store));
    drop(store);
    let other = std::fs::read(&other).unwrap();
    for step in 0..10 {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_file(log(&path));
        let mut store = Store::open(&path).unwrap();
        add(&mut store);
        store.set_state("r1", record::RunState::Complete).unwrap();
        let backup = std::fs::read(&path).unwrap();
        for _ in 0..3 {
            add(&mut store);
        }
        let (is_logged, pages) = (step % 2 == 0, [1, 2, 3, 20, 1_000_000][step / 2]);
        store.set_state("r2", record::RunState::Complete).unwrap();
        if is_logged {
            add(&mut store);
        }
        for new in [&other, &backup] {
            let whole = std::fs::read(&path).unwrap();
            let mut mixed = whole.clone();
            let length = new.len().min(pages * 4096);
            mixed.resize(whole.len().max(length), 0);
            mixed[..length].copy_from_slice(&new[..length]);
            assert!(mixed != whole, "{step}");
            overwrite(&path, &mixed);
            let error = store.add_warning("r1", &record::Warning::new("w", "x")).unwrap_err();
            let is_said = matches!(error, StoreError::Overwritten { .. });
            assert!(is_said, "{step}: {error:?}");
            assert!(error.hint().unwrap().contains("plimsoll.db-wal"), "{step}: {error:?}");
            assert!(std::fs::read(&path).unwrap() == mixed, "{step}");
            overwrite(&path, &whole);
        }
        // It is never taken for its own again.
        let mixed = [&other[..4096], &backup[4096..]].concat();
        overwrite(&path, &mixed);
        store.set_state("r2", record::RunState::Complete).unwrap_err();
        drop(store);
        assert!(std::fs::read(&path).unwrap() == mixed, "{step}");
    }
}

/// In place, without cutting it before.
fn overwrite(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    // The kernel's clock of files stands still for some milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
}

/// While somebody writes to the file, no log is put into it: what would show may come later.
#[test]
fn a_log_waits_while_somebody_writes_to_the_file() {
    let path = scratch("written_just_now");
    let mut store = Store::open(&path).unwrap();
    (0..2).for_each(|_| add(&mut store));
    store.set_state("r1", record::RunState::Complete).unwrap();
    add(&mut store);
    let file = std::fs::read(&path).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, path, file) = (&stop, &path, &file);
        scope.spawn(move || {
            let last = file.len() - 4096;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                use std::os::unix::fs::FileExt;
                let open = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                open.write_all_at(&file[last..], last as u64).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        store.set_state("r3", record::RunState::Complete).unwrap();
        drop(store);
        assert!(std::fs::metadata(log(path)).unwrap().len() > 0);
        assert!(std::fs::read(path).unwrap() == *file);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 3);
}

/// Other processes store in it, and put the log into the file: that is no other file.
#[test]
fn what_other_processes_put_into_the_file_is_expected() {
    let path = scratch("put_by_others");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    let child = crate::bound::writer(&path);
    for n in 0..100 {
        store.add_warning("r1", &record::Warning::new("w", "x")).unwrap();
        if n % 3 == 0 {
            tidy(&path);
        }
        if n % 10 == 0 {
            drop(Store::open_read_only(&path).unwrap());
        }
    }
    drop(child);
    store.set_state("r1", record::RunState::Complete).unwrap();
    assert_eq!(store.list().unwrap().len(), 2);
}
