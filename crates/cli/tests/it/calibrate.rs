//! `plimsoll calibrate`, and what comparisons make of it

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::World;

fn calibrate(world: &World) -> String {
    let model = world.model();
    world.ok(&["calibrate", "--target", &model, "--time", "5ms", "--seed", "7", "-q"]).out
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_calibration_is_stored_and_shown() {
    let world = World::new();
    let done = world.run(&["calibrate", "--show"]);
    assert_eq!(done.code, 2, "{done:?}");
    let out = calibrate(&world);
    assert!(out.contains("10 blocks of every cell"), "{out}");
    assert!(out.contains("The same, measured twice on this machine, differs by up to"), "{out}");
    assert!(out.contains("Plimsoll itself takes"), "{out}");
    assert_eq!(out.lines().filter(|line| line.contains("in flight  ")).count(), 12, "{out}");
    assert_eq!(world.ok(&["calibrate", "--show"]).out, out);
    let found = document(&world.ok(&["calibrate", "--show", "--json"]).out);
    assert_eq!(found["schema"], "plimsoll.calibration/1");
    assert_eq!(found["blocks"], 10);
    assert_eq!(found["overall"]["values"], 12);
    // The model shifts its rate by 0.5 % from visit to visit and 1 % from step to step.
    let floor = found["overall"]["floor"].as_f64().unwrap();
    assert!((0.001..0.03).contains(&floor), "{floor}, seed 7");
    // The visits themselves are there, an even number of each cell.
    let runs = document(&world.ok(&["list", "--json"]).out);
    assert_eq!(runs["runs"][1]["visits_made"], 240);
}

#[test]
fn a_dry_run_says_how_long_a_night_is() {
    let world = World::new();
    let model = world.model();
    let out = world.ok(&["calibrate", "--target", &model, "--long", "--dry-run"]).out;
    assert!(out.contains("Makes 7200 visits to 12 cells"), "{out}");
    assert!(out.contains("Takes at least 330 min"), "{out}");
    assert!(!world.store().exists());
}

#[test]
fn comparisons_know_the_floor_of_their_machine() {
    let world = World::new();
    let model = world.model();
    for seed in ["1", "2"] {
        let words = ["run", "random-read", "--target", &model, "--time", "20ms", "--seed", seed];
        world.ok(&words);
    }
    let before = document(&world.ok(&["compare", "r1", "r2", "--json"]).out);
    assert_eq!(before["floor"], Value::Null);
    calibrate(&world);
    let after = document(&world.ok(&["compare", "r1", "r2", "--json"]).out);
    let from = after["floor"]["from"].as_str().unwrap();
    assert!(from.starts_with("calibrate of "), "{from}");
    let floor = document(&world.ok(&["calibrate", "--show", "--json"]).out);
    assert_eq!(after["floor"]["overall"], floor["overall"]["floor"]);
    // One mean for a class is too few for a floor of its own.
    assert_eq!(after["floor"]["classes"], Value::Array(Vec::new()));
    // Asked for no margin, the floor is the margin.
    let words = ["compare", "r1", "r2", "--json", "--margin", "0.001"];
    let strict = document(&world.ok(&words).out);
    assert_eq!(strict["against"][0]["overall"]["margin_from"], "floor");
}

/// A drive, put in the place of the one before, that is `times` as fast as it might be, and as noisy from visit to visit as is said.
fn model(world: &World, name: &str, times: f64, shift: f64) {
    let text = format!(
        "schema = 1\nname = \"{name}\"\nwhy = \"a test\"\n[model]\nsize = \"16GiB\"\n\
         [model.read]\nlatency = \"{:.0}ns\"\n[model.write]\nlatency = \"100us\"\n\
         [model.noise]\njitter = 0.1\nvisit_shift = {shift}\n",
        100_000.0 / times
    );
    std::fs::write(world.path(name), text).unwrap();
}

#[test]
fn a_noisy_machine_takes_a_difference_back() {
    let world = World::new();
    for (times, seed) in [(1.0, "11"), (1.08, "12")] {
        model(&world, "drive", times, 0.01);
        let words = ["run", "random-read", "--target", "model:drive", "--time", "20ms"];
        world.ok(&[&words[..], &["--seed", seed]].concat());
    }
    let words = ["compare", "r1", "r2", "--json"];
    let before = document(&world.ok(&words).out);
    let overall = |found: &Value| found["against"][0]["overall"].clone();
    assert_eq!(overall(&before)["verdict"], "different", "seeds 11, 12");
    let explained = world.ok(&["explain", "r1"]).out;
    assert!(!explained.contains("measured twice on this machine"), "{explained}");
    let table = world.ok(&["table", "r1"]).out;
    // The same machine, found to differ from itself by more than 8 %.
    let calibrate = |seed: &str, shift: f64| {
        model(&world, "drive", 1.0, shift);
        let target = "model:drive";
        world.ok(&["calibrate", "--target", target, "--time", "2ms", "--seed", seed, "-q"]);
    };
    calibrate("7", 0.2);
    let after = document(&world.ok(&words).out);
    let floor = after["floor"]["overall"].as_f64().unwrap();
    assert!(floor > 0.1, "{floor}, seed 7");
    assert_ne!(overall(&after)["verdict"], "different");
    assert_eq!(overall(&after)["margin_from"], "floor");
    // The floor is of means of ten blocks; fewer visits lie further apart by chance.
    let (blocks, visits) = (&after["floor"]["blocks"], &overall(&after)["count"]);
    let wider = (blocks.as_f64().unwrap() / visits.as_f64().unwrap()).sqrt();
    assert!(wider > 1.0, "{blocks} blocks, {visits} visits");
    let margin = overall(&after)["margin"].as_f64().unwrap();
    assert!((margin - (floor.ln_1p() * wider).exp_m1()).abs() < 1e-9, "{margin}, floor {floor}");
    assert_eq!(overall(&after)["ratio"], overall(&before)["ratio"], "the measurement stands");
    let from = after["floor"]["from"].as_str().unwrap();
    assert!(from.starts_with("calibrate of "), "{from}");
    let noise = "The interval here is narrower: it holds within this run.";
    for words in [["explain", "r1"], ["table", "r1"]] {
        let out = world.ok(&words).out.replace("\n    ", " ");
        assert!(out.contains("measured twice on this machine") && out.contains(noise), "{out}");
    }
    // The newest counts.
    calibrate("8", 0.01);
    assert_eq!(overall(&document(&world.ok(&words).out))["verdict"], "different");
    assert!(world.ok(&["table", "r1"]).out.starts_with(&table));
}

#[test]
fn called_off_or_killed_its_visits_become_a_floor_later() {
    let world = World::new();
    let words = ["calibrate", "--size", "1MiB", "--time", "100ms", "--blocks", "2"];
    for end in [Signal::INT, Signal::KILL] {
        let mut child = world.command(&words).stderr(Stdio::null()).spawn().unwrap();
        while !world.path("plimsoll-scratch.dat").exists() {
            assert_eq!(child.try_wait().unwrap(), None, "ended before it began");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&child), end).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, (end == Signal::INT).then_some(130));
        assert_eq!(world.path("plimsoll-scratch.dat").exists(), end == Signal::KILL);
        assert_eq!(world.run(&["calibrate", "--show"]).code, 2, "half of one is none");
    }
    let done = world.run(&["calibrate", "--from", "r4"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("`plimsoll resume r4` goes on with it"), "{done:?}");
    assert_eq!(world.run(&["calibrate", "--from", "r3"]).code, 2, "random-read");
    world.ok(&["resume", "r4"]);
    assert_eq!(world.files(), ["home"]);
    let done = world.ok(&["calibrate", "--from", "r4"]);
    assert!(done.out.contains("2 blocks of every cell"), "{done:?}");
    assert!(done.out.contains("So few blocks say little"), "{done:?}");
    assert_eq!(world.ok(&["calibrate", "--show"]).out, done.out);
}

#[test]
fn what_is_not_ours_is_refused() {
    let world = World::new();
    let content = vec![7; 1 << 20];
    std::fs::write(world.path("theirs.dat"), &content).unwrap();
    let done = world.run(&["calibrate", "--target", "theirs.dat", "--size", "1MiB"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(std::fs::read(world.path("theirs.dat")).unwrap(), content);
    assert!(!world.store().exists());
}
