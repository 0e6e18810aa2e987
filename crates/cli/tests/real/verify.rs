//! Data that changes behind the program's back is found, with its place and its owner.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::lab::{Lab, Said, measured, needs_root, text, tool};

fn damage(path: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut sector = vec![0; 512];
    // Someone else's data at 1 MiB; the sector of 20 KiB also at 2 MiB; one bit at 3 MiB.
    file.write_all_at(b"CORRUPT!", 1 << 20).unwrap();
    file.read_exact_at(&mut sector, 20 << 10).unwrap();
    file.write_all_at(&sector, 2 << 20).unwrap();
    file.read_exact_at(&mut sector, 3 << 20).unwrap();
    sector[300] ^= 0x10;
    file.write_all_at(&sector, 3 << 20).unwrap();
    file.sync_all().unwrap();
}

/// Names the run that wrote the data: it was another one, so each is someone else's.
fn found(said: &Said) {
    said.is(7, &["warning: stream `read`, worker 0: file 0, byte "]);
    let document = said.document();
    let visit = &measured(&document)[0];
    assert_eq!(visit["end"], "complete");
    let warnings = visit["warnings"].as_array().unwrap();
    let all: Vec<_> = warnings.iter().map(|warning| text(&warning["text"])).collect();
    assert_eq!(all.len(), 3, "{all:?}");
    for part in [
        "byte 1048576: found bytes that are not of any run, beginning 434f525255505421",
        "byte 2097152: found data that was written to file 0, byte 20480, by run ",
        "byte 3145728: found ",
    ] {
        assert!(all.iter().any(|said| said.contains(part)), "{part}: {all:?}");
    }
}

const READ: &str = "--verify --set access=permutation --set operations=1024 --json";

#[test]
fn on_a_file() {
    let lab = Lab::new("verify");
    lab.ok("run random-write --target data --size 4MiB --time 200ms --verify");
    let clean = lab.ok(&format!("run random-read --target data {READ}"));
    assert!(!clean.out.contains("verify-mismatch"), "{clean}");
    damage(&lab.path("data"));
    found(&lab.run(&format!("run random-read --target data {READ}")));
    assert_eq!(lab.list().len(), 3, "stored like any other");
}

#[test]
fn on_a_loop_device() {
    needs_root!("losetup", "blockdev");
    let mut lab = Lab::new("verify-loop");
    let image = lab.sparse("disk.img", 16);
    let device = lab.attach(&image, &[]);
    let write = "--size 4MiB --time 200ms --verify";
    lab.ok(&format!("run random-write --target {device} --destroy {device} {write}"));
    lab.ok(&format!("run random-read --target {device} --size 4MiB {READ}"));
    damage(&image);
    tool("blockdev", &["--flushbufs", &device]);
    found(&lab.run(&format!("run random-read --target {device} --size 4MiB {READ}")));
}

#[test]
fn while_a_run_is_under_way() {
    let lab = Lab::new("verify-live");
    // Reads after the damage meet it; the run goes on to its end.
    let words = "run random-read --target data --size 4MiB --time 2s --verify --json";
    let mut running = lab.start(words);
    running.until_it_says("fill ");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let file: File = OpenOptions::new().write(true).open(lab.path("data")).unwrap();
    file.write_all_at(&[b'X'; 8192], 65536).unwrap();
    file.sync_all().unwrap();
    let said = running.end();
    said.is(7, &["found bytes that are not of any run"]);
    let warnings = measured(&said.document())[0]["warnings"].to_string();
    assert!(warnings.contains("file 0, byte "), "{warnings}");
    assert_eq!(lab.list()[0]["state"], "complete");
}

#[test]
fn mixed_writes_and_reads_raise_no_false_alarm() {
    let lab = Lab::new("verify-mixed");
    let set = "--set read_share=0.5 --set queue_depth=8 --set threads=2 --set block_size=4K,16K";
    let said = lab.ok(&format!(
        "run random-write --target data --size 4MiB --time 300ms --verify {set} --json"
    ));
    assert!(!said.out.contains("verify-mismatch"), "{said}");
}
