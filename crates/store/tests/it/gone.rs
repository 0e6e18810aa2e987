//! A store that is renamed, removed or copied while a process stores in it.

use std::path::{Path, PathBuf};

use store::{Store, StoreError};

use crate::{add, sample, scratch, side};

fn visits(path: &Path) -> usize {
    Store::open_read_only(path).unwrap().load("r1").unwrap().visits.len()
}

fn refused(store: &mut Store) -> (StoreError, Option<PathBuf>) {
    match store.add_visit("r1", &sample::visit(1)).unwrap_err() {
        StoreError::Gone { path, to } => (StoreError::Gone { path, to: to.clone() }, to),
        error => unreachable!("{error:?}"),
    }
}

#[test]
fn a_renamed_store_has_all_that_was_stored_and_is_named() {
    let path = scratch("renamed").with_file_name("in").join("plimsoll.db");
    let moved = path.with_file_name("moved.db");
    let folder = path.parent().unwrap().with_file_name("folder");
    for (from, to, file) in [
        (path.as_path(), moved.as_path(), moved.as_path()),
        (path.parent().unwrap(), folder.as_path(), &folder.join("plimsoll.db")),
    ] {
        for is_replaced in [false, true] {
            let _ = std::fs::remove_dir_all(path.parent().unwrap());
            let _ = std::fs::remove_dir_all(&folder);
            let mut store = Store::open(&path).unwrap();
            add(&mut store);
            std::fs::rename(from, to).unwrap();
            if is_replaced {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, "another's").unwrap();
            }
            let (error, named) = refused(&mut store);
            assert_eq!(named.as_deref(), Some(file));
            assert!(error.to_string().contains("was moved to"), "{error}");
            assert!(error.hint().unwrap().contains(&format!("--store {}", file.display())));
            drop(store);
            assert_eq!(visits(file), 1);
            assert!(!is_replaced || std::fs::read(&path).unwrap() == b"another's");
        }
    }
}

/// SQLite goes on with a file that was removed: whatever is asked of the store then must say so.
#[test]
fn a_store_that_was_removed_takes_and_gives_nothing() {
    let gone = |what: &str, ask: &dyn Fn(&mut Store, &str) -> Result<(), StoreError>| {
        let path = scratch("removed");
        let mut store = Store::open(&path).unwrap();
        let id = add(&mut store);
        std::fs::remove_file(&path).unwrap();
        let said = ask(&mut store, &id);
        assert!(matches!(said, Err(StoreError::Gone { to: None, .. })), "{what}: {said:?}");
    };
    let warning = record::Warning::new("code", "text");
    gone("a new run", &|s, _| s.create_run(&sample::header(), &sample::cells()).map(|_| ()));
    gone("a visit", &|s, id| s.add_visit(id, &sample::visit(1)));
    gone("a warning", &|s, id| s.add_warning(id, &warning));
    gone("its end", &|s, id| s.set_state(id, record::RunState::Complete));
    gone("the run", &|s, id| s.load(id).map(|_| ()));
    gone("all runs", &|s, _| s.list().map(|_| ()));
    gone("a calibration", &|s, _| {
        s.add_calibration(&store::StoredCalibration {
            machine: "m".to_owned(),
            started_unix_ns: 0,
            version: 1,
            body: "{}".to_owned(),
        })
    });
}

/// A backup is put in the place of a store in which a run stores: it stays as it is.
#[test]
fn a_backup_that_replaces_a_store_in_use_stays_as_it_is() {
    let path = scratch("a_backup_replaces");
    let (backup, new) = (path.with_file_name("backup"), path.with_file_name("new"));
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    std::fs::copy(&path, &backup).unwrap();
    store.add_warning("r1", &record::Warning::new("w", "x")).unwrap();
    std::fs::copy(&backup, &new).unwrap();
    std::fs::rename(&new, &path).unwrap();
    let (_, named) = refused(&mut store);
    assert_eq!(named, None);
    drop(store);
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&backup).unwrap());
    assert_eq!(visits(&path), 1);
}

/// Between two commits the file is the whole store: that is what people copy.
#[test]
fn a_copy_of_the_file_between_commits_is_whole() {
    let path = scratch("a_copy");
    let copy = path.with_file_name("copy.db");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    for order in 1..4 {
        store.add_visit("r1", &sample::visit(order)).unwrap();
        for end in ["-journal", "-wal", "-shm"] {
            assert!(!side(&path, end).exists(), "{end}");
        }
        std::fs::copy(&path, &copy).unwrap();
        assert_eq!(visits(&copy), order as usize + 1);
        let mut copied = Store::open(&copy).unwrap();
        copied.set_state("r1", record::RunState::Complete).unwrap();
    }
}
