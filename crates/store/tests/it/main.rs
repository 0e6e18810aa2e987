//! The store as its callers meet it.

#![expect(clippy::unwrap_used, reason = "tests; the lint only knows functions marked as such")]

mod beside;
mod calibrations;
mod claims;
mod delayed;
mod faults;
mod garbled;
mod gone;
mod killed;
mod old;
mod power;
mod runs;
mod sample;
mod untouched;

use std::path::{Path, PathBuf};

use store::Store;

/// A fresh place for one test's store.
fn scratch(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("plimsoll.db")
}

/// A name beside a store.
fn side(store: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", store.display()))
}

/// Adds a run with a visit.
fn add(store: &mut Store) -> String {
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
    id
}

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// How often something is done: `short`, unless that environment variable asks for more.
fn times(variable: &str, short: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(short)
}
