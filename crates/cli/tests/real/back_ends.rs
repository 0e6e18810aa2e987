//! Back ends that a suite can be told to use, through the program.

use std::fs;

use crate::lab::{Lab, measured, text};

/// sysbench's small: four files.
const SMALL: &str = "--set file_count=4 --set file_size=256KiB --time 200ms --target data";

/// Each back end of each visit.
fn used(lab: &Lab, run: &str) -> Vec<String> {
    let document = lab.export(run);
    measured(&document).iter().map(|visit| text(&visit["backend"]["name"])).collect()
}

#[test]
fn sysbench_plays_by_mapping_and_asynchronously() {
    let lab = Lab::new("sysbench-modes");
    let mut run = 0;
    for (words, name) in [
        ("--set backend=mmap", "mmap"),
        ("--set backend=libaio --set queue_depth=128", "libaio"),
        ("--set backend=io-uring --set queue_depth=128", "io_uring"),
    ] {
        for mode in ["seqrd", "seqrewr", "rndrd", "rndwr", "rndrw"] {
            run += 1;
            let said = lab.run(&format!("run sysbench-{mode} {SMALL} {words}"));
            if name == "io_uring" && said.err.contains("io_uring_setup failed") {
                eprintln!("skipped: {}", said.err);
                return;
            }
            said.is(0, &[]);
            assert_eq!(used(&lab, &format!("r{run}")), [name], "{mode}");
            let visit = &measured(&lab.export(&format!("r{run}")))[0];
            let ops: Vec<String> =
                visit["ops"].as_array().unwrap().iter().map(|op| text(&op["op"])).collect();
            let wanted: &[&str] = match mode {
                "seqrd" | "rndrd" => &["read"],
                "rndrw" => &["read", "write", "fsync"],
                _ => &["write", "fsync"],
            };
            assert_eq!(ops, wanted, "{mode} by {name}");
            assert!(visit["requests"].as_u64().unwrap() > 0, "{visit}");
            assert_eq!(visit["errors"], 0, "{visit}");
        }
    }
}

#[test]
fn what_is_stored_through_a_mapping_is_what_others_read() {
    let lab = Lab::new("mmap-verify");
    let write = "run random-write --target data --size 4MiB --verify --keep --set direct=false \
                 --set operations=2000 --set time=none --set sync.at_end=timed";
    lab.ok(&format!("{write} --set backend=mmap"));
    assert_eq!(used(&lab, "r1"), ["mmap"]);
    let before = fs::read(lab.path("data")).unwrap();
    assert!(before.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
    let read = "run random-read --target data --size 4MiB --verify --set operations=4000 \
                --set time=none --set access=uniform-once";
    // By calls, and by loads from a mapping.
    lab.ok(&format!("{read} --set backend=blocking"));
    lab.ok(&format!("{read} --set direct=false --set backend=mmap"));
    assert_eq!(used(&lab, "r3"), ["mmap"]);
    assert_eq!(fs::read(lab.path("data")).unwrap(), before, "reading changed nothing");
}
