//! A log that somebody cuts, changes, removes or links while a process stores in it: nothing counts as
//! stored that nobody can read afterwards.

use std::path::{Path, PathBuf};

use record::RunState;
use store::{Store, StoreError};

use crate::{sample, scratch, tidy};

fn log(store: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", store.display()))
}

fn add(store: &mut Store) {
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
}

/// A run in the file, another in the log, and the log as it was before a part of that was stored.
fn in_use(path: &Path) -> (Store, Vec<u8>) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
    let mut store = Store::open(path).unwrap();
    add(&mut store);
    tidy(path);
    store.create_run(&sample::header(), &sample::cells()).unwrap();
    let early = std::fs::read(log(path)).unwrap();
    store.add_visit("r2", &sample::visit(0)).unwrap();
    (store, early)
}

/// In place: the same file, which SQLite has open.
fn overwrite(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

type Harm<'a> = (&'a str, &'a dyn Fn(&Path, &[u8]));

const HARMS: [Harm; 5] = [
    ("cut", &|path, _| overwrite(&log(path), &[])),
    ("half", &|path, early| overwrite(&log(path), &early[..early.len() / 2])),
    ("flipped", &|path, _| {
        let mut bytes = std::fs::read(log(path)).unwrap();
        bytes[5000..5064].iter_mut().for_each(|byte| *byte ^= 0xff);
        overwrite(&log(path), &bytes);
    }),
    ("flipped last", &|path, _| {
        let mut bytes = std::fs::read(log(path)).unwrap();
        let last = bytes.len() - 100;
        bytes[last..last + 64].iter_mut().for_each(|byte| *byte ^= 0xff);
        overwrite(&log(path), &bytes);
    }),
    ("an older copy", &|path, early| overwrite(&log(path), early)),
];

#[test]
fn a_run_whose_log_is_damaged_meanwhile_is_not_called_stored() {
    let path = scratch("kept_damaged");
    for (what, harm) in HARMS {
        for more in [0, 1] {
            let (mut store, early) = in_use(&path);
            let file = std::fs::read(&path).unwrap();
            harm(&path, &early);
            let mut outcome = Ok(());
            for order in 0..more {
                outcome = outcome.and_then(|()| store.add_visit("r2", &sample::visit(order + 1)));
            }
            let outcome = outcome.and_then(|()| store.set_state("r2", RunState::Complete));
            let error = outcome.unwrap_err();
            assert!(
                matches!(error, StoreError::LogLost { is_saved: false, .. }),
                "{what}: {error:?}"
            );
            assert!(error.to_string().contains("plimsoll.db-wal"), "{what}: {error}");
            let hint = error.hint().unwrap();
            assert!(hint.contains("plimsoll.db-wal.old"), "{what}: {hint}");
            // It stays so.
            assert!(store.set_state("r2", RunState::Failed).is_err(), "{what}");
            drop(store);
            assert!(std::fs::read(&path).unwrap() == file, "{what}: nothing was put into the file");
            let _ = std::fs::remove_file(format!("{}-shm", path.display()));
            std::fs::rename(log(&path), path.with_file_name("old")).unwrap();
            assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 1, "{what}");
        }
    }
}

/// Damage that nobody noticed before the store is closed, or while it is made smaller, does not get
/// into the file.
#[test]
fn a_log_that_is_damaged_at_the_end_is_not_put_into_the_file() {
    let path = scratch("kept_at_the_end");
    for (what, harm) in HARMS {
        let (store, early) = in_use(&path);
        let file = std::fs::read(&path).unwrap();
        harm(&path, &early);
        drop(store);
        assert!(std::fs::read(&path).unwrap() == file, "{what}");
    }
}

#[expect(clippy::print_stderr, reason = "the lint only knows functions marked as tests")]
fn sees_locks(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).unwrap();
    let own = (i64::from(std::process::id()), found.dev(), found.ino());
    let locks = kernel::locks().unwrap_or_default();
    let sees = locks.iter().any(|lock| (lock.process, lock.device, lock.inode) == own);
    if !sees {
        eprintln!("skipped: /proc/locks does not show locks on this file system");
    }
    sees
}

/// What was committed is in the log that the process has open.
#[test]
fn a_log_that_is_removed_meanwhile_is_put_into_the_file() {
    let path = scratch("kept_removed");
    for is_replaced in [false, true] {
        for is_over in [false, true] {
            let (mut store, early) = in_use(&path);
            if !sees_locks(&path) {
                return;
            }
            std::fs::remove_file(log(&path)).unwrap();
            if is_replaced {
                overwrite(&log(&path), &early);
            }
            if is_over {
                store.set_state("r2", RunState::Complete).unwrap();
            } else {
                let error = store.add_visit("r2", &sample::visit(1)).unwrap_err();
                assert!(matches!(error, StoreError::LogLost { is_saved: true, .. }), "{error:?}");
                assert!(error.hint().unwrap().contains("plimsoll resume"));
            }
            // Nothing goes to a log that others do not have.
            store.add_warning("r2", &record::Warning::new("w", "x")).unwrap_err();
            drop(store);
            assert_eq!(log(&path).exists(), is_replaced, "it is somebody's");
            let _ = std::fs::remove_file(format!("{}-shm", path.display()));
            let _ = std::fs::remove_file(log(&path));
            let visits = Store::open(&path).unwrap().load("r2").unwrap().visits.len();
            assert_eq!(visits, if is_over { 1 } else { 2 });
        }
    }
}

/// As `cp -al` does with the whole directory.
fn link_all(path: &Path) -> PathBuf {
    let to = path.parent().unwrap().with_file_name("linked");
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir(&to).unwrap();
    for end in ["", "-wal", "-shm"] {
        let name = format!("plimsoll.db{end}");
        std::fs::hard_link(path.with_file_name(&name), to.join(&name)).unwrap();
    }
    to
}

#[test]
fn a_log_that_gets_a_second_name_is_put_into_the_file() {
    let path = scratch("kept_linked");
    let (mut store, _) = in_use(&path);
    if !sees_locks(&path) {
        return;
    }
    let to = link_all(&path);
    let length = std::fs::metadata(log(&path)).unwrap().len();
    store.add_visit("r2", &sample::visit(1)).unwrap();
    store.set_state("r2", RunState::Complete).unwrap();
    drop(store);
    assert!(std::fs::metadata(to.join("plimsoll.db-wal")).unwrap().len() > length, "not cut");
    for name in [path.clone(), to.join("plimsoll.db")] {
        let store = Store::open_read_only(&name).unwrap();
        assert_eq!(store.load("r2").unwrap().visits.len(), 2, "{}", name.display());
    }
    assert_eq!(Store::open(&path).unwrap().load("r2").unwrap().visits.len(), 2);
}

/// A reader keeps it from that: then it is said, and what the hint says brings all back.
#[test]
fn a_log_with_a_second_name_that_stays_is_said() {
    let path = scratch("kept_linked_and_read");
    let (mut store, _) = in_use(&path);
    let to = link_all(&path);
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM run").unwrap();
    store.add_visit("r2", &sample::visit(1)).unwrap();
    let error = store.set_state("r2", RunState::Complete).unwrap_err();
    assert!(matches!(error, StoreError::LogLost { is_whole: true, .. }), "{error:?}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("do not remove it") && hint.contains("-samefile"), "{hint}");
    let left = [path.clone(), log(&path)].map(|name| (std::fs::read(&name).unwrap(), name));
    drop(store);
    assert!(log(&path).exists(), "it has what the file has not");
    drop(reader);
    // As if the reader had been killed.
    left.iter().for_each(|(bytes, name)| std::fs::write(name, bytes).unwrap());
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir(&to).unwrap();
    std::fs::hard_link(log(&path), to.join("plimsoll.db-wal")).unwrap();
    let refused = Store::open(&path).unwrap_err();
    assert!(matches!(refused, StoreError::NotBeside { .. }), "{refused:?}");
    assert_eq!(refused.hint().unwrap(), hint);
    let command = hint.split('`').find(|part| part.starts_with("cp -p ")).unwrap();
    assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success());
    std::fs::remove_dir_all(to).unwrap();
    assert_eq!(Store::open(&path).unwrap().load("r2").unwrap().visits.len(), 2);
}
