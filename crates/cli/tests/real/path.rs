//! Run, kill, resume, show, table, export, rm: the whole path on every kind of target.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::{Lab, Neighbour, measured, needs_root, text, visits};

/// A cell takes so long; the grid is three block sizes by two thread counts.
const GRID: &str = "--set block_size=4K,8K,16K --set threads=1,2";
const CELLS: usize = 6;
const KILLS: u64 = 4;

/// Enough for moments that are the same each time the seed is.
struct Moments(u64);

impl Moments {
    fn next(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Lines of the grid that are complete on stderr: two visits each, stored before they are shown.
fn shown(err: &str) -> usize {
    let labels = ["4KiB ", "8KiB ", "16KiB "];
    err.lines().filter(|line| labels.iter().any(|label| line.starts_with(label))).count() * 2
}

fn starts(document: &Value) -> Vec<i64> {
    visits(document).iter().map(|(_, v)| v["started_unix_ns"].as_i64().unwrap()).collect()
}

/// Whether a run is in the store. A program killed in its first moments may have left none, or
/// one with nothing in it.
fn has_run(lab: &Lab) -> bool {
    if !lab.path("store.db").exists() {
        return false;
    }
    let said = lab.run("list --json");
    if said.code == Some(2) {
        said.is(2, &["the store store.db is empty"]);
        return false;
    }
    !lab.list().is_empty()
}

/// Runs `suite` on `target`, kills it again and again, goes on, and looks at what is left.
fn killed_and_resumed(
    lab: &Lab,
    suite: &str,
    target: &str,
    consent: &str,
    time: &str,
    seed: u64,
) -> Value {
    let mut moments = Moments(seed);
    let order = format!("run {suite} --target {target} {GRID} --time {time} --size 4MiB {consent}");
    let mut before: Vec<i64> = Vec::new();
    for kill in 0..KILLS {
        let stored = has_run(lab);
        let words = if stored { format!("resume r1 {consent}") } else { order.clone() };
        let running = lab.start(&words);
        sleep(Duration::from_millis(20 + moments.next(900)));
        let said = running.kill();
        if said.code.is_some() {
            said.is(0, &[]);
            break;
        }
        if !has_run(lab) {
            continue;
        }
        if lab.list()[0]["state"] == "complete" {
            // Killed after the last visit, before it could say so.
            break;
        }
        let document = lab.export("r1");
        let now = starts(&document);
        let all = before.iter().all(|start| now.contains(start));
        assert!(all, "seed {seed}, kill {kill}: visits were lost\n{said}");
        // On a resume the rows made before are shown again.
        let measured = measured(&document).len();
        assert!(
            measured >= shown(&said.err),
            "seed {seed}, kill {kill}: {measured} stored\n{said}"
        );
        before = now;
    }
    if !has_run(lab) {
        lab.ok(&order);
    } else if lab.list()[0]["state"] != "complete" {
        lab.ok(&format!("resume {consent}"));
    }
    complete(lab, target)
}

/// Everything that can be asked of a complete run.
fn complete(lab: &Lab, target: &str) -> Value {
    let runs = lab.list();
    assert_eq!((runs.len(), text(&runs[0]["state"])), (1, "complete".to_owned()));
    let document = lab.export("last");
    let whole: Vec<_> =
        measured(&document).into_iter().filter(|v| v["end"] == "complete").collect();
    assert_eq!(whole.len(), CELLS);
    for visit in &whole {
        assert!(visit["requests"].as_u64().unwrap() > 0, "{visit}");
    }
    let show = lab.ok("show last").out;
    assert!(show.contains(target) && show.contains("complete"), "{show}");
    assert!(lab.ok("table last").out.contains("16KiB"));
    let csv = lab.ok("export last --format csv").out;
    let ops = |(_, visit): &(String, Value)| visit["ops"].as_array().unwrap().len();
    let lines: usize = visits(&document).iter().map(ops).sum();
    assert_eq!(csv.lines().count(), 1 + lines, "{csv}");
    lab.run("resume r1").is(2, &["r1 cannot be resumed: it has ended"]);
    document
}

fn removed(lab: &Lab) {
    lab.run("rm r1").is(3, &["needs confirmation"]);
    assert_eq!(lab.list().len(), 1);
    lab.ok("rm r1 --yes");
    assert!(lab.list().is_empty());
    lab.run("show r1").is(2, &["no run `r1`"]);
}

/// The store is made in many small steps; a kill between any two of them must cost nothing.
#[test]
fn killed_while_the_store_is_made() {
    let lab = Lab::new("making");
    let mut moments = Moments(7);
    for round in 0..40 {
        let running = lab.start("run random-read --target null: --time 10ms --store store.db");
        sleep(Duration::from_micros(moments.next(40_000)));
        running.kill();
        if lab.path("store.db").exists() {
            let said = lab.run("list");
            assert!(said.code == Some(0) || said.err.contains("is empty"), "{round}: {said}");
        }
        if round % 2 == 0 {
            for name in ["store.db", "store.db-wal", "store.db-shm", "store.db-journal"] {
                let _ = fs::remove_file(lab.path(name));
            }
        }
    }
    lab.ok("run random-read --target null: --time 10ms");
}

#[test]
fn on_a_file() {
    let lab = Lab::new("file");
    let neighbour = Neighbour::new(&lab.dir);
    let document = killed_and_resumed(&lab, "random-read", "data", "", "150ms", 1);
    assert_eq!(fs::metadata(lab.path("data")).unwrap().len(), 4 << 20);
    for visit in measured(&document) {
        let asked = asked_bytes(&visit);
        // Other programs read the same disk; cached or unknown devices say nothing.
        let Some(seen) = device_bytes(&visit, "read_bytes") else { continue };
        assert!(visit["backend"]["direct"] == false || seen >= asked, "{visit}");
    }
    neighbour.untouched();
    removed(&lab);
    assert!(lab.path("data").exists(), "results are removed, not files");
}

#[test]
fn on_a_file_system_of_its_own_the_kernel_counts_the_same() {
    needs_root!("losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("counts");
    let (_, point) = lab.ext4("noatime");
    let neighbour = Neighbour::new(&point);
    let document = killed_and_resumed(&lab, "random-read", "m/data", "", "150ms", 2);
    for visit in measured(&document) {
        let (asked, seen) = (asked_bytes(&visit), device_bytes(&visit, "read_bytes").unwrap());
        assert!(seen >= asked && seen <= asked + (1 << 20), "asked {asked}, seen {seen}");
    }
    neighbour.untouched();
}

#[test]
fn on_a_loop_device() {
    needs_root!("losetup");
    let mut lab = Lab::new("loop");
    let neighbour = Neighbour::new(&lab.dir);
    let image = lab.sparse("disk.img", 16);
    let device = lab.attach(&image, &[]);
    // On a resume the device is no longer blank: what is on it has to be given up again.
    let consent = format!("--destroy {device} --even-though signature");
    let document = killed_and_resumed(&lab, "random-write", &device, &consent, "150ms", 3);
    for visit in measured(&document) {
        assert_eq!(device_bytes(&visit, "write_bytes"), Some(asked_bytes(&visit)), "{visit}");
    }
    let data = fs::read(&image).unwrap();
    assert!(data[..4 << 20].iter().any(|&b| b != 0));
    assert!(data[4 << 20..].iter().all(|&b| b == 0), "only what was named is written");
    neighbour.untouched();
    removed(&lab);
}

#[test]
fn a_device_counts_what_was_asked() {
    needs_root!("losetup");
    let mut lab = Lab::new("device-counts");
    let image = lab.sparse("disk.img", 16);
    let device = lab.attach(&image, &[]);
    for (depth, threads) in [(1, 1), (32, 1), (8, 2)] {
        let set = format!("--set queue_depth={depth} --set threads={threads} --time 200ms");
        let said = lab.ok(&format!("run random-read --target {device} {set} --json"));
        let document = said.document();
        let visit = &measured(&document)[0];
        assert_eq!(device_bytes(visit, "read_bytes"), Some(asked_bytes(visit)), "{set}");
        assert_eq!(visit["bytes"], visit["requests"].as_u64().unwrap() * 4096);
    }
}

#[test]
fn bm_flash_with_no_target_leaves_nothing_behind() {
    let lab = Lab::new("bm-flash");
    let neighbour = Neighbour::new(&lab.dir);
    let before = lab.everything();
    let said = lab.ok("run bm-flash --quick --size 8MiB --time 20ms");
    assert!(said.err.contains("plimsoll-scratch.dat"), "{said}");
    assert_eq!(lab.everything(), before, "the scratch file is removed");
    let document = lab.export("last");
    assert!(measured(&document).iter().all(|visit| visit["end"] == "complete"));
    let classic = lab.ok("table last --layout classic").out;
    assert!(said.out.contains(&classic), "{said}");
    neighbour.untouched();
}

#[test]
fn on_twins() {
    let lab = Lab::new("memory");
    killed_and_resumed(&lab, "random-write", "memory:4MiB", "", "100ms", 4);
    removed(&lab);
    let lab = Lab::new("null");
    killed_and_resumed(&lab, "random-read", "null:", "", "100ms", 5);
    removed(&lab);
    let lab = Lab::new("model");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/nvme.toml");
    fs::copy(model, lab.path("nvme.toml")).unwrap();
    killed_and_resumed(&lab, "random-read", "model:nvme.toml", "", "2s", 6);
    removed(&lab);
}

/// Bytes of the requests that a visit made, ramp included.
fn asked_bytes(visit: &Value) -> u64 {
    assert_eq!(visit["ramp_requests"], 0);
    visit["bytes"].as_u64().unwrap()
}

/// What the kernel counted on the target's own device.
fn device_bytes(visit: &Value, what: &str) -> Option<u64> {
    let ledger = visit["ledger"].as_array().unwrap();
    let own = ledger.iter().find(|entry| entry["depth"] == 0)?;
    own[what].as_u64()
}

#[test]
fn a_file_made_anew_is_filled_before_a_resumed_run_reads_it() {
    let lab = Lab::new("refill");
    for (run, target) in [("r1", "--target data"), ("r2", "--target .")] {
        let words = format!("run random-read {target} --size 8MiB --time 700ms --classic");
        let mut running = lab.start(&format!("{words} --set repeats=4"));
        running.until_it_says("fill ");
        sleep(Duration::from_millis(300));
        running.signal(Signal::INT);
        running.end().is(130, &[]);
        let _ = fs::remove_file(lab.path("data"));
        lab.ok(&format!("resume {run}"));
        let document = lab.export(run);
        let fills = document["cells"].as_array().unwrap().iter();
        let fills = fills.filter(|cell| cell["phase"] == "fill");
        let made: usize = fills.map(|cell| cell["visits"].as_array().unwrap().len()).sum();
        assert_eq!(made, 2, "{run}: filled again, since the file was made again");
        if run == "r1" {
            assert_eq!(fs::metadata(lab.path("data")).unwrap().blocks() * 512, 8 << 20);
        }
    }
}
