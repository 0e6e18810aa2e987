//! The store as its callers meet it.

#![expect(clippy::unwrap_used, reason = "tests; the lint only knows functions marked as such")]

mod beside;
mod bound;
mod calibrations;
mod claims;
mod copied;
mod faults;
mod garbled;
mod kept;
mod killed;
mod moved;
mod old;
mod runs;
mod sample;
mod untouched;

use std::path::PathBuf;

/// A fresh place for one test's store.
fn scratch(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("plimsoll.db")
}

/// Moves the log into the store's file, as whoever closes it after longer use does.
fn tidy(store: &std::path::Path) {
    let raw = rusqlite::Connection::open(store).unwrap();
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

/// Ends as if its process had been killed: all that it stored stays in the log.
fn kill(store: store::Store) {
    let file = store.path().to_owned();
    let beside = |end: &str| PathBuf::from(format!("{}{end}", file.display()));
    let left = ["", "-wal"].map(|end| (beside(end), std::fs::read(beside(end)).unwrap()));
    drop(store);
    let _ = std::fs::remove_file(beside("-shm"));
    left.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}
