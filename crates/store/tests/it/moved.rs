//! A store that gets another name while a process stores in it: what is only in its log goes along.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use store::{Store, StoreError};

use crate::{sample, scratch, tidy};

fn side(store: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", store.display()))
}

fn add(store: &mut Store) {
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
}

fn runs(path: &Path) -> usize {
    Store::open_read_only(path).unwrap().list().unwrap().len()
}

/// Who may write a log into a file must see who else has that file open.
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

/// What the run that uses it says of it, and what it is then.
fn used_and_left(mut store: Store) -> StoreError {
    let error = store.add_visit("r1", &sample::visit(1)).unwrap_err();
    assert!(!error.hint().unwrap().is_empty());
    error
}

#[test]
fn a_renamed_store_takes_along_what_is_in_its_log() {
    let path = scratch("renamed");
    let to = path.with_file_name("moved.db");
    for is_replaced in [false, true] {
        let _ = std::fs::remove_file(&to);
        let mut store = Store::open(&path).unwrap();
        add(&mut store);
        if !sees_locks(&path) {
            return;
        }
        std::fs::rename(&path, &to).unwrap();
        if is_replaced {
            std::fs::write(&path, "another's").unwrap();
        }
        let error = used_and_left(store);
        assert!(error.to_string().contains("moved.db"), "{error}");
        assert_eq!(runs(&to), 1, "{is_replaced}");
        assert_eq!(Store::open(&to).unwrap().load("r1").unwrap().visits.len(), 1);
        assert!(!side(&path, "-wal").exists() && !side(&path, "-shm").exists());
        if is_replaced {
            assert_eq!(std::fs::read(&path).unwrap(), b"another's");
            std::fs::remove_file(&path).unwrap();
        }
    }
}

/// Renamed after the last that was stored: nothing is said, and nothing is lost.
#[test]
fn a_store_that_is_renamed_before_it_is_closed_has_all() {
    let path = scratch("renamed_at_the_end");
    let to = path.with_file_name("moved.db");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    if !sees_locks(&path) {
        return;
    }
    std::fs::rename(&path, &to).unwrap();
    drop(store);
    assert_eq!(runs(&to), 1);
}

#[test]
fn a_store_whose_directory_is_renamed_has_all() {
    let path = scratch("renamed_directory").with_file_name("in").join("plimsoll.db");
    let to = path.parent().unwrap().with_file_name("moved");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    if !sees_locks(&path) {
        return;
    }
    std::fs::rename(path.parent().unwrap(), &to).unwrap();
    used_and_left(store);
    let to = to.join("plimsoll.db");
    assert_eq!(runs(&to), 1);
    // The file alone has it.
    let copy = to.with_file_name("copy.db");
    std::fs::copy(&to, &copy).unwrap();
    assert_eq!(runs(&copy), 1);
}

/// A reader keeps a log from going into its file: it stays, and the error says how to bring it along.
#[test]
fn a_log_that_a_reader_keeps_is_not_removed() {
    let path = scratch("renamed_and_read");
    let to = path.with_file_name("moved.db");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM run").unwrap();
    add(&mut store);
    std::fs::rename(&path, &to).unwrap();
    let error = used_and_left(store);
    drop(reader);
    let _ = std::fs::remove_file(side(&path, "-shm"));
    let hint = error.hint().unwrap();
    let command = hint.split('`').find(|part| part.starts_with("mv ")).unwrap().to_owned();
    let done = std::process::Command::new("sh").args(["-c", &command]).status().unwrap();
    assert!(done.success(), "{command}");
    assert_eq!(runs(&to), 2);
}

/// The file was renamed, and then another store was copied into it: that one stays as it is.
#[test]
fn nothing_is_put_into_another_store_in_the_renamed_file() {
    let path = scratch("renamed_and_overwritten");
    let to = path.with_file_name("moved.db");
    let other = path.with_file_name("other.db");
    let mut store = Store::open(&other).unwrap();
    (0..3).for_each(|_| add(&mut store));
    drop(store);
    let other = std::fs::read(&other).unwrap();
    for part in [0, 4096, 20 * 4096, other.len()] {
        let _ = std::fs::remove_file(side(&path, "-wal"));
        let mut store = Store::open(&path).unwrap();
        add(&mut store);
        std::fs::rename(&path, &to).unwrap();
        std::fs::write(&to, &other[..part]).unwrap();
        used_and_left(store);
        assert!(std::fs::read(&to).unwrap() == other[..part], "{part}");
        assert!(side(&path, "-wal").exists(), "{part}");
    }
}

/// Not a test by itself: a program of others that has the renamed file open.
#[test]
#[ignore = "run as a child of the next test"]
fn child_that_reads() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.query_row("SELECT count(*) FROM run", [], |_| Ok(())).unwrap();
    println!("\nread");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

const STORE: &str = "PLIMSOLL_TEST_MOVED_STORE";

/// Who opens it under its new name has another log: two logs never go into one file.
#[test]
fn nothing_is_put_into_a_renamed_store_that_another_process_uses() {
    let path = scratch("renamed_and_used");
    let to = path.with_file_name("moved.db");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    tidy(&path);
    add(&mut store);
    let its_log = std::fs::read(side(&path, "-wal")).unwrap();
    std::fs::rename(&path, &to).unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "moved::child_that_reads", "--ignored", "--nocapture"])
        .env(STORE, &to)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "read"));
    let error = used_and_left(store);
    assert!(error.hint().unwrap().contains("plimsoll.db-wal"), "{error:?}");
    assert!(std::fs::read(side(&path, "-wal")).unwrap() == its_log);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(runs(&to), 1);
}
