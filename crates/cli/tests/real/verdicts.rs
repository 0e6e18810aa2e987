//! Verdicts on real files: what is said must be so.

use std::path::{Path, PathBuf};

use explain::View;
use explain::cache::{Caches, Verdict, caches, ledger};
use record::Run;
use store::Store;

use crate::lab::Lab;

fn stored(lab: &Lab, id: &str) -> Run {
    Store::open_read_only(&lab.path("store.db")).unwrap().load(id).unwrap()
}

/// Of each visit outside of the fill: bytes that the devices read by bytes that were asked for.
fn ratios(run: &Run) -> Vec<f64> {
    let grid: Vec<u32> = run.cells.iter().filter(|c| c.phase == "read").map(|c| c.index).collect();
    let visits = run.visits.iter().filter(|visit| grid.contains(&visit.cell));
    let ratio = |visit| {
        let moved = ledger::moved(visit, &run.header.target.devices);
        moved.read as f64 / moved.asked_read as f64
    };
    visits.map(ratio).collect()
}

fn said(found: &Caches) -> String {
    finding::texts(&found.findings()).join("\n")
}

/// A run of 20 visits of random reads over the lab's file of 256 MiB.
fn twenty(lab: &Lab, more: &str) -> Run {
    lab.ok(&format!(
        "run random-read --target data --size 256MiB --classic --set repeats=20 --time 100ms {more}"
    ));
    let id = lab
        .list()
        .iter()
        .map(|run| run["id"].as_str().unwrap().to_owned())
        .max_by_key(|id| id.trim_start_matches('r').parse::<u32>().unwrap());
    stored(lab, &id.unwrap())
}

#[test]
fn a_buffered_reread_is_cached_and_a_direct_one_is_not() {
    let lab = Lab::new("cached");
    lab.ok("run sequential-write --target data --size 256MiB --time 10ms");
    if stored(&lab, "r1").visits.iter().all(|visit| visit.ledger.is_empty()) {
        eprintln!("skipped: no counters of a block device below {}", lab.dir.display());
        return;
    }
    // Every page into the page cache.
    assert_eq!(std::fs::read(lab.path("data")).unwrap().len(), 256 << 20);
    let run = twenty(&lab, "--set direct=false");
    let found = caches(&View::new(&run));
    let seen = ratios(&run);
    assert_eq!(seen.len(), 20);
    // Others may read from the disk meanwhile: not so much that it looks like ours.
    assert!(seen.iter().all(|&ratio| ratio < ledger::PARTLY), "{seen:?}");
    assert!(found.cells[0].verdict.is_cached(), "{}", said(&found));
    assert!(said(&found).contains("cached"), "{}", said(&found));

    let run = twenty(&lab, "");
    let found = caches(&View::new(&run));
    let refused = |v: &Verdict| matches!(v, Verdict::Buffered { .. });
    if found.cells[0].findings.iter().any(|finding| refused(&finding.verdict)) {
        eprintln!("skipped: no direct I/O on {}", lab.dir.display());
        return;
    }
    let seen = ratios(&run);
    assert_eq!(seen.len(), 20);
    assert!(seen.iter().all(|&ratio| ratio >= ledger::PARTLY), "{seen:?}");
    assert!(!found.cells[0].verdict.is_cached(), "{}", said(&found));
    // Whoever else reads from the disk meanwhile is named, and no cache.
    let from_the_device =
        |v: &Verdict| matches!(v, Verdict::Device { .. } | Verdict::Foreign { .. });
    assert!(from_the_device(&found.cells[0].verdict), "{}", said(&found));
}

/// Removed with it.
struct InMemory(PathBuf);

impl Drop for InMemory {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn tmpfs_is_no_device_and_never_a_disk() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.contains(" /dev/shm tmpfs rw")) {
        eprintln!("skipped: /dev/shm is no tmpfs here");
        return;
    }
    let lab = Lab::new("shm");
    let name = format!("plimsoll-verdicts-{}", std::process::id());
    let file = InMemory(Path::new("/dev/shm").join(name));
    let target = file.0.display();
    for words in [
        format!("run random-read --target {target} --size 8MiB --classic --time 50ms"),
        format!(
            "run random-write --target {target} --size 8MiB --classic --time 50ms --set direct=false"
        ),
    ] {
        lab.ok(&words);
    }
    for id in ["r1", "r2"] {
        let found = caches(&View::new(&stored(&lab, id)));
        assert!(found.cells.iter().all(|c| matches!(c.verdict, Verdict::NoDevice { .. })));
        let said = said(&found);
        assert!(said.contains("no device: memory (tmpfs)"), "{said}");
        assert!(!said.contains("from the device") && !said.contains("partly"), "{said}");
    }
}

#[test]
fn reading_again_through_the_page_cache_shows_it() {
    let lab = Lab::new("reread");
    lab.ok("run sequential-write --target data --size 64MiB --time 10ms");
    let file = std::fs::File::open(lab.path("data")).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    // Without read-ahead of what lies beside, which would be the first pass's own cache.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    lab.ok(
        "run reread --quick --target data --set direct=false --set region.length=16MiB --set bytes=16MiB",
    );
    let found = caches(&View::new(&stored(&lab, "r2")));
    if matches!(found.cells[0].verdict, Verdict::NoDevice { .. }) {
        eprintln!("skipped: {} is no disk", lab.dir.display());
        return;
    }
    let [reread] = found.rereads.as_slice() else { panic!("{found:?}") };
    assert!(reread.buffered && reread.bytes == 16 << 20, "{reread:?}");
    if found.cells[0].verdict.is_cached() {
        eprintln!("skipped: the pages came back before the first pass: {}", said(&found));
        return;
    }
    assert!(reread.found, "{}", said(&found));
}
