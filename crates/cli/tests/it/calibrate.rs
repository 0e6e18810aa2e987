//! `plimsoll calibrate`, and what comparisons make of it

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
    assert!(out.contains("Takes at least 300 min"), "{out}");
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
    let words = ["compare", "r1", "r2", "--json", "--margin", "0.00001"];
    let strict = document(&world.ok(&words).out);
    assert_eq!(strict["against"][0]["overall"]["margin_from"], "floor");
}
