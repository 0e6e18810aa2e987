//! A log beside a store that it is not of: of another copy of that store, or of another store. It is
//! never put into the file.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use store::{Store, StoreError};

use crate::{sample, scratch, tidy};

/// Content of the file and of its log.
type Pair = (Vec<u8>, Vec<u8>);

fn log(store: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", store.display()))
}

fn pair(store: &Path) -> Pair {
    (std::fs::read(store).unwrap(), std::fs::read(log(store)).unwrap_or_default())
}

/// As if nothing but these had been left by who was killed.
fn put(store: &Path, file: &[u8], its_log: &[u8]) {
    let folder = store.parent().unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    std::fs::write(store, file).unwrap();
    if !its_log.is_empty() {
        std::fs::write(log(store), its_log).unwrap();
    }
}

fn add(store: &mut Store) {
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
}

/// A store with so many runs in its file, and more in a log that a killed process left.
fn killed(path: &Path, in_file: usize, in_log: usize) -> Pair {
    put(path, &[], &[]);
    let mut store = Store::open(path).unwrap();
    (0..in_file).for_each(|_| add(&mut store));
    tidy(path);
    (0..in_log).for_each(|_| add(&mut store));
    pair(path)
}

fn runs(path: &Path) -> usize {
    Store::open_read_only(path).unwrap().list().unwrap().len()
}

fn files(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(store.parent().unwrap()).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

/// Refused both ways, with no file changed, and the hint's command goes on.
fn refused(what: &str, path: &Path) {
    let before = files(path);
    type Open = fn(&Path) -> Result<Store, StoreError>;
    for open in [Store::open as Open, Store::open_read_only] {
        let outcome = open(path).map(|store| store.list().map(|runs| runs.len()));
        assert!(files(path) == before, "{what}: {outcome:?}");
        let error = outcome.unwrap_err();
        assert!(matches!(error, StoreError::OtherLog { .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("plimsoll.db-wal"), "{what}: {error}");
        let hint = error.hint().unwrap();
        let command = format!("mv {0} {0}.old", log(path).display());
        assert!(hint.contains(&command), "{what}: {hint}");
    }
}

#[test]
fn a_log_of_another_copy_is_not_put_into_a_store() {
    let path = scratch("a_log_of_another_copy");
    let other = killed(&path, 2, 2);
    let (early, _) = killed(&path, 1, 0);
    put(&path, &early, &[]);
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    tidy(&path);
    add(&mut store);
    let (file, its_log) = pair(&path);
    drop(store);
    let copies = [("an earlier copy", &early, &its_log), ("another store", &other.0, &its_log)];
    let swapped = [("another's log", &file, &other.1)];
    for (what, file, its_log) in copies.into_iter().chain(swapped) {
        put(&path, file, its_log);
        refused(what, &path);
        std::fs::rename(log(&path), path.with_file_name("moved")).unwrap();
        assert_eq!(runs(&path), if what == "an earlier copy" { 1 } else { 2 }, "{what}");
    }
    put(&path, &file, &its_log);
    assert_eq!(runs(&path), 3);
    put(&path, &file, &its_log);
    drop(Store::open(&path).unwrap());
    assert_eq!(runs(&path), 3);
}

/// Wherever putting the log into the file was cut short, the log is the file's own.
#[test]
fn a_log_that_is_partly_in_the_file_is_its_own() {
    let path = scratch("partly_in_the_file");
    put(&path, &[], &[]);
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    let (_, first) = pair(&path);
    (0..2).for_each(|_| add(&mut store));
    // A reader keeps the log from beginning anew.
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM run").unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    add(&mut store);
    raw.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    let (all, its_log) = pair(&path);
    assert!(all.len() > 4096 && its_log.len() > first.len());
    assert!(its_log[..first.len()] == first, "it did not begin anew");
    drop(reader);
    drop(store);
    // Only the first pages of the file, then all of them.
    for pages in [1, 2, 20, all.len() / 4096] {
        put(&path, &all[..pages * 4096], &its_log);
        assert_eq!(runs(&path), 4, "{pages}");
        put(&path, &all[..pages * 4096], &its_log);
        assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 4, "{pages}");
    }
}

/// The file has a transaction whose end in the log was changed: the log without it is not put over it.
#[test]
fn a_damaged_log_is_not_put_over_what_the_file_has() {
    let path = scratch("damaged_and_in_the_file");
    put(&path, &[], &[]);
    let mut store = Store::open(&path).unwrap();
    (0..2).for_each(|_| add(&mut store));
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    let (file, mut its_log) = pair(&path);
    drop(store);
    let last = its_log.len() - 100;
    its_log[last] ^= 1;
    put(&path, &file, &its_log);
    let before = files(&path);
    let read = Store::open_read_only(&path).unwrap();
    assert_eq!(read.list().unwrap().len(), 2);
    assert!(read.load("r2").is_ok());
    drop(read);
    assert!(files(&path) == before);
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::LogDamaged { .. }), "{error:?}");
    assert!(files(&path) == before);
    std::fs::rename(log(&path), path.with_file_name("moved")).unwrap();
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 2);
}

/// A backup is put in the place of a store in which a run stores, by `mv` or by `cp`.
#[test]
fn a_backup_that_replaces_a_store_in_use_stays_as_it_is() {
    let path = scratch("a_backup_replaces");
    let (backup, _) = killed(&path, 1, 0);
    for is_copied in [false, true] {
        put(&path, &backup, &[]);
        let mut store = Store::open(&path).unwrap();
        add(&mut store);
        tidy(&path);
        add(&mut store);
        if is_copied {
            std::fs::write(&path, &backup).unwrap();
        } else {
            let new = path.with_file_name("new");
            std::fs::write(&new, &backup).unwrap();
            std::fs::rename(&new, &path).unwrap();
        }
        // Another program that opens it before the run has noticed.
        for open in [Store::open, Store::open_read_only] {
            let error = open(&path).unwrap_err();
            assert!(matches!(error, StoreError::OtherLog { .. }), "{is_copied}: {error:?}");
        }
        let error = store.create_run(&sample::header(), &[]).unwrap_err();
        let is_said = match is_copied {
            true => matches!(error, StoreError::Overwritten { .. }),
            false => matches!(error, StoreError::Gone(_)),
        };
        assert!(is_said, "{is_copied}: {error:?}");
        drop(store);
        assert!(std::fs::read(&path).unwrap() == backup, "{is_copied}");
        if is_copied {
            refused("what the run left", &path);
            std::fs::remove_file(log(&path)).unwrap();
        }
        assert_eq!(runs(&path), 1, "{is_copied}");
    }
}

/// The store was removed and its log was not.
#[test]
fn a_log_without_its_store_is_refused_if_something_would_be_lost() {
    let path = scratch("a_log_without_its_store");
    let lost = |its_log: &[u8]| {
        put(&path, &[], its_log);
        std::fs::remove_file(&path).unwrap();
        let before = files(&path);
        let errors = [Store::open, Store::open_read_only].map(|open| open(&path).map(drop));
        assert!(errors[0].is_ok() || files(&path) == before, "{errors:?}");
        errors[0].as_ref().err().map(|error| {
            assert!(matches!(error, StoreError::Lost { .. }), "{error:?}");
            assert!(matches!(errors[1], Err(StoreError::Lost { .. })), "{errors:?}");
            error.hint().unwrap()
        })
    };
    let run = |command: &str| {
        assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
    };
    let commands = |hint: &str| -> Vec<String> {
        hint.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    // All of the store is in the log.
    put(&path, &[], &[]);
    let mut store = Store::open(&path).unwrap();
    let (_, new) = pair(&path);
    (0..2).for_each(|_| add(&mut store));
    let (_, all) = pair(&path);
    tidy(&path);
    add(&mut store);
    let (_, part) = pair(&path);
    drop(store);
    let hint = lost(&all).unwrap();
    let [back, anew] = commands(&hint).try_into().unwrap();
    run(&back);
    assert_eq!(runs(&path), 2);
    lost(&all).unwrap();
    run(&anew);
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 0);
    // Only what came last.
    let [anew] = commands(&lost(&part).unwrap()).try_into().unwrap();
    run(&anew);
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 0);
    // No run was ever in it, or nothing of it counts.
    for nothing in [&new[..], &new[..new.len() - 4120], &new[..3000], &new[..32], &[]] {
        assert_eq!(lost(nothing), None, "{}", nothing.len());
        let mut store = Store::open(&path).unwrap();
        add(&mut store);
        drop(store);
        assert_eq!(runs(&path), 1);
    }
    // Damaged: what was in it cannot be known.
    let mut bad = all;
    bad[9000] ^= 1;
    assert_eq!(commands(&lost(&bad).unwrap()).len(), 1);
}

/// A process that goes on with a removed store shares what lies beside it with whoever makes a new one.
#[test]
fn no_store_is_made_beside_an_index_in_use() {
    let path = scratch("an_index_in_use");
    let child = writer(&path);
    std::process::Command::new("kill").args(["-STOP", &child.0.id().to_string()]).status().unwrap();
    std::fs::remove_file(&path).unwrap();
    let _ = std::fs::remove_file(log(&path));
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::NotBeside { .. }), "{error:?}");
    assert!(!path.exists());
    drop(child);
    add(&mut Store::open(&path).unwrap());
    assert_eq!(runs(&path), 1);
}

const STORE: &str = "PLIMSOLL_TEST_BOUND_STORE";

/// Not a test by itself: the process beside the one that opens.
#[test]
#[ignore = "run as a child of the next tests"]
fn child_that_writes() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let mut store = Store::open(path.as_ref()).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    for n in 0.. {
        let warning = record::Warning::new("w", "x".repeat(9000));
        // Tests remove the store while it writes: that is no fault of it.
        if store.add_warning(&id, &warning).is_err() {
            return;
        }
        if n % 50 == 0 {
            // Readers that come and go keep it from beginning anew by itself.
            tidy(path.as_ref());
        }
        println!("\nstored {n}");
    }
}

/// Ends with the test, however that ends.
pub(crate) struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

pub(crate) fn writer(path: &Path) -> Other {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "bound::child_that_writes", "--ignored", "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "stored 0"));
    // Read on, or it stops writing.
    std::thread::spawn(move || lines.for_each(drop));
    Other(child)
}

/// The log begins anew, and goes into the file, while it is looked at.
#[test]
fn another_process_that_writes_keeps_nobody_out() {
    let path = scratch("another_writes");
    let child = writer(&path);
    for round in 0..200 {
        let read = Store::open_read_only(&path);
        assert!(read.is_ok(), "{round}: {read:?}");
        assert_eq!(read.unwrap().list().unwrap().len(), 1);
        if round % 10 == 0 {
            let mut store = Store::open(&path).unwrap();
            store.add_warning("r1", &record::Warning::new("w", "from another")).unwrap();
        }
    }
    drop(child);
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 1);
    assert!(Store::open(&path).unwrap().load("r1").is_ok());
}

/// Locks that this process has on a file, as the kernel lists them.
fn own_locks(path: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).unwrap();
    let own = (i64::from(std::process::id()), found.dev(), found.ino());
    let locks = kernel::locks().unwrap_or_default();
    locks.iter().filter(|lock| (lock.process, lock.device, lock.inode) == own).count()
}

/// The locks are the process's: closing any descriptor of the file would end them all.
#[test]
fn looking_at_a_store_ends_no_lock_on_it() {
    let path = scratch("ends_no_lock");
    let other = path.with_file_name("other.db");
    let raw = rusqlite::Connection::open(&other).unwrap();
    raw.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    raw.execute_batch("CREATE TABLE x (y)").unwrap();
    if own_locks(&other) == 0 {
        return eprintln!("skipped: /proc/locks does not show locks on this file system");
    }
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    let index = PathBuf::from(format!("{}-shm", path.display()));
    let before = [1, 1];
    assert_eq!([&path, &index].map(|path| own_locks(path)), before);
    drop(Store::open_read_only(&path).unwrap());
    assert_eq!(store::taken(&path, None), Some(store::Taken::Store));
    assert!(store::doubt(&path).is_none());
    assert_eq!([&path, &index].map(|path| own_locks(path)), before);
    drop(Store::open(&path).unwrap());
    assert_eq!([&path, &index].map(|path| own_locks(path)), before);
    add(&mut store);
}

/// What people copy is the file.
#[test]
fn the_file_alone_has_what_was_stored() {
    let path = scratch("the_file_alone");
    let copy = path.with_file_name("copy.db");
    let in_copy = || {
        std::fs::copy(&path, &copy).unwrap();
        let runs = Store::open_read_only(&copy).unwrap().list().unwrap().len();
        std::fs::remove_file(&copy).unwrap();
        runs
    };
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    store.set_state("r1", record::RunState::Complete).unwrap();
    assert_eq!(in_copy(), 1, "a run that ended, of a store that is still open");
    add(&mut store);
    drop(store);
    assert_eq!(in_copy(), 2, "a store that was closed");
    // Somebody who has it open and reads nothing just now.
    let idle = rusqlite::Connection::open(&path).unwrap();
    let count = || idle.query_row("SELECT count(*) FROM run", [], |row| row.get::<_, i64>(0));
    count().unwrap();
    add(&mut Store::open(&path).unwrap());
    assert_eq!(in_copy(), 3, "one that another has open");
    // Somebody who reads keeps what he reads, and nobody waits for him.
    idle.execute_batch("BEGIN").unwrap();
    assert_eq!(count().unwrap(), 3);
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    store.set_state("r4", record::RunState::Complete).unwrap();
    drop(store);
    assert_eq!(count().unwrap(), 3);
    idle.execute_batch("COMMIT").unwrap();
    drop(idle);
    assert_eq!(in_copy(), 4);
}

/// The disk changes the log under a process that writes: the file stays as it is.
#[test]
fn a_log_that_is_damaged_meanwhile_is_not_put_into_the_file() {
    let path = scratch("damaged_meanwhile");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    tidy(&path);
    let file = std::fs::read(&path).unwrap();
    (0..3).for_each(|_| add(&mut store));
    let mut bytes = std::fs::read(log(&path)).unwrap();
    bytes[9000] ^= 1;
    std::fs::write(log(&path), &bytes).unwrap();
    // More than SQLite itself keeps in a log.
    for _ in 0..6 {
        let long = record::Warning::new("w", "x".repeat(1 << 20));
        store.add_warning("r3", &long).unwrap();
    }
    let error = store.set_state("r2", record::RunState::Complete).unwrap_err();
    assert!(matches!(error, StoreError::LogLost { .. }), "{error:?}");
    drop(store);
    assert!(std::fs::read(&path).unwrap() == file);
    assert!(store::doubt(&path).is_some());
    drop(Store::open_read_only(&path));
    assert!(std::fs::read(&path).unwrap() == file);
}

/// A log does not grow for as long as a run goes on.
#[test]
fn a_long_log_goes_into_the_file() {
    let path = scratch("a_long_log");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    let long = record::Warning::new("w", "x".repeat(1 << 20));
    for _ in 0..12 {
        store.add_warning("r1", &long).unwrap();
        let length = std::fs::metadata(log(&path)).unwrap().len();
        assert!(length < 6 << 20, "{length}");
    }
    drop(store);
    assert_eq!(runs(&path), 1);
}

/// A hard link, or a mount of the file, is another name with another log: one of both would be lost.
#[test]
fn a_store_in_use_under_another_name_is_refused() {
    let path = scratch("in_use_under_another_name");
    let other = path.with_file_name("other.db");
    add(&mut Store::open(&path).unwrap());
    std::fs::hard_link(&path, &other).unwrap();
    let child = writer(&path);
    let length = std::fs::metadata(&path).unwrap().len();
    for open in [Store::open as fn(&Path) -> Result<Store, StoreError>, Store::open_read_only] {
        let error = open(&other).unwrap_err();
        assert!(matches!(error, StoreError::OtherName(_)), "{error:?}");
        assert!(error.hint().unwrap().contains("the name that the other process uses"));
        assert!(!log(&other).exists(), "nothing is made beside it");
    }
    assert!(std::fs::metadata(&path).unwrap().len() >= length);
    // By a link it is the same name.
    let link = path.with_file_name("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(runs(&link), 2);
    drop(child);
    drop(Store::open(&path).unwrap());
    assert_eq!(runs(&other), 2);
}
