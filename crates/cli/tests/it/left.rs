//! What a process leaves that is killed while it stores something.

use std::fs;
use std::path::{Path, PathBuf};

/// Adds doubts to `r1`, which stay in the log beside the store.
pub fn leave_log(store: &Path) {
    let beside = |end: &str| PathBuf::from(format!("{}{end}", store.display()));
    let mut open = store::Store::open(store).unwrap();
    for _ in 0..12 {
        open.add_warning("r1", &record::Warning::new("left", "in the log")).unwrap();
    }
    let left = ["", "-wal"].map(|end| (beside(end), fs::read(beside(end)).unwrap()));
    drop(open);
    let _ = fs::remove_file(beside("-shm"));
    left.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
}
