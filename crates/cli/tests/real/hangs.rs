//! Completions that never come: a frozen file system keeps every write in the kernel.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::{Lab, Running, ends, measured, needs_root, tool};

/// Thaws the file system, also after a panic.
pub struct Frozen(String);

impl Frozen {
    pub fn new(point: &Path) -> Self {
        let point = point.to_str().unwrap().to_owned();
        tool("fsfreeze", &["-f", &point]);
        Self(point)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = std::process::Command::new("fsfreeze").args(["-u", &self.0]).status();
    }
}

/// Starts writes, freezes the file system under them, waits until the table is printed.
/// The process itself cannot end before the thaw: the kernel lets no thread go.
fn frozen_until_it_has_said_all(lab: &Lab, point: &Path, words: &str) -> (Running, Frozen) {
    let mut running = lab.start(words);
    running.until_it_says("fill ");
    sleep(Duration::from_millis(500));
    let frozen = Frozen::new(point);
    let begun = Instant::now();
    running.until_it_says("has not come back for");
    let named = begun.elapsed();
    // 1 s until a request is named; the rest is a busy machine.
    assert!(named < Duration::from_secs(10), "named after {named:?}");
    running.until_it_says("stored as r1");
    // 2 s of cell, 1 s of hang limit, 2 s for threads that do not answer.
    let ended = begun.elapsed();
    assert!(ended < Duration::from_secs(20), "ended after {ended:?}");
    (running, frozen)
}

#[test]
fn writes_that_never_come_back_are_named_and_the_run_ends() {
    needs_root!("losetup", "mkfs.ext4", "mount", "fsfreeze");
    let mut lab = Lab::new("freeze");
    let (_, point) = lab.ext4("noatime");
    for (index, backend) in ["auto", "blocking"].iter().enumerate() {
        if index > 0 {
            lab.ok("rm r1 --yes");
            for name in ["store.db", "store.db-wal", "store.db-shm"] {
                let _ = fs::remove_file(lab.path(name));
            }
        }
        let words = format!(
            "run random-write --target m/{backend} --size 8MiB --time 2s --hang-limit 1s --backend {backend}"
        );
        let (running, frozen) = frozen_until_it_has_said_all(&lab, &point, &words);
        assert!(running.out().contains("hanging: requests never came back"), "{}", running.out());
        // Stored while the thread still hangs, for anybody to see.
        let document = lab.export("r1");
        assert_eq!(ends(&document), ["hanging"]);
        let visit = &measured(&document)[0];
        let warnings = visit["warnings"].to_string();
        assert!(warnings.contains("is stuck in the kernel: its write at byte"), "{warnings}");
        assert!(!warnings.contains("went through the page cache"), "{warnings}");
        drop(frozen);
        running.end().is(4, &["write at byte"]);
    }
}

#[test]
fn requests_in_flight_that_never_come_back_are_named_as_well() {
    needs_root!("losetup", "mkfs.ext4", "mount", "fsfreeze");
    let mut lab = Lab::new("freeze-deep");
    let (_, point) = lab.ext4("noatime");
    let words = "run random-write --target m/data --size 8MiB --time 2s --hang-limit 1s --set queue_depth=16 --set threads=2";
    let (running, frozen) = frozen_until_it_has_said_all(&lab, &point, words);
    assert_eq!(ends(&lab.export("r1")), ["hanging"]);
    drop(frozen);
    running.end().is(4, &["write at byte"]);
}

#[test]
fn a_scratch_file_that_cannot_be_removed_does_not_hold_the_results_back() {
    needs_root!("losetup", "mkfs.ext4", "mount", "fsfreeze");
    let mut lab = Lab::new("freeze-scratch");
    let (_, point) = lab.ext4("noatime");
    let words = "run random-write --target m --size 8MiB --time 2s --hang-limit 1s";
    let (running, frozen) = frozen_until_it_has_said_all(&lab, &point, words);
    running.out().contains("hanging").then_some(()).unwrap();
    drop(frozen);
    running.end().is(4, &[]);
    assert!(!point.join("plimsoll-scratch.dat").exists());
}

#[test]
fn two_signals_end_a_run_that_hangs() {
    needs_root!("losetup", "mkfs.ext4", "mount", "fsfreeze");
    let mut lab = Lab::new("freeze-signals");
    let (_, point) = lab.ext4("noatime");
    let mut running = lab.start("run random-write --target m/data --size 8MiB --time 60s");
    running.until_it_says("fill ");
    sleep(Duration::from_millis(300));
    let frozen = Frozen::new(&point);
    running.until_it_says("has not come back for");
    running.signal(Signal::INT);
    sleep(Duration::from_millis(300));
    running.signal(Signal::INT);
    sleep(Duration::from_secs(2));
    assert_eq!(lab.list().len(), 1, "the store is free while the thread hangs");
    drop(frozen);
    let said = running.end();
    assert_eq!(said.code, Some(130), "{said}");
    // On a machine too busy to store the visit within the second, it is lost and nothing else.
    let document = lab.export("r1");
    let found = ends(&document);
    assert!(found.is_empty() || found == ["hanging"], "{found:?}");
}
