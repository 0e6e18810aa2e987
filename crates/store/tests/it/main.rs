//! The store as its callers meet it.

#![expect(clippy::unwrap_used, reason = "tests; the lint only knows functions marked as such")]

mod beside;
mod bound;
mod calibrations;
mod claims;
mod faults;
mod garbled;
mod kill;
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
