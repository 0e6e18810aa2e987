//! Comparisons in blocks and calibrations on real files and devices.

use std::fs;

use crate::lab::{Lab, needs_root};

/// Two sizes of requests, written to one target.
fn sides(lab: &Lab, target: &str) {
    for (name, block) in [("a.toml", "4KiB"), ("b.toml", "64KiB")] {
        let text = format!(
            "suite = \"random-write\"\ntarget = \"{target}\"\nsize = \"8MiB\"\ntime = \"50ms\"\n\
             set = {{ block_size = \"{block}\" }}\n"
        );
        fs::write(lab.path(name), text).unwrap();
    }
}

#[test]
fn a_device_is_destroyed_only_by_name_and_then_taken_turns_on() {
    needs_root!("losetup");
    let mut lab = Lab::new("live-device");
    let device = lab.sparse("disk", 16);
    let device = lab.attach(&device, &[]);
    sides(&lab, &device);
    let words = "compare --live a.toml b.toml --blocks 6";
    let content = fs::read(lab.path("disk")).unwrap();
    lab.run(words).is(3, &["is a block device", "add --destroy"]);
    lab.run(&format!("calibrate --target {device}")).is(3, &["add --destroy"]);
    assert_eq!(fs::read(lab.path("disk")).unwrap(), content, "untouched");
    // One device, held once against everybody else, and both sides on it.
    let said = lab.ok(&format!("{words} --destroy {device}"));
    assert!(said.out.contains("One thing differs: phase.write.block_size"), "{said}");
    assert_ne!(fs::read(lab.path("disk")).unwrap(), content);
    let made: Vec<u64> =
        lab.list().iter().map(|run| run["visits_made"].as_u64().unwrap()).collect();
    assert_eq!(made.iter().sum::<u64>(), 13, "one fill and six visits on either side: {made:?}");
}

#[test]
fn a_calibration_of_a_real_file_is_the_floor_of_its_comparisons() {
    let lab = Lab::new("live-calibrate");
    sides(&lab, "data");
    lab.ok("calibrate --target data --size 8MiB --time 5ms --blocks 2 -q");
    let said = lab.ok("compare --live a.toml b.toml --blocks 6 --json");
    let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let floor = found["floor"]["overall"].as_f64().unwrap();
    assert!(floor > 0.0, "{found}");
    let from = found["floor"]["from"].as_str().unwrap();
    assert!(!from.contains("measured on"), "the same disk: {from}");
    let margin = found["against"][0]["overall"]["margin"].as_f64().unwrap();
    assert!((margin - floor.max(0.03)).abs() < 1e-9, "{margin}, floor {floor}");
}
