//! `plimsoll compare --live`

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::World;

/// A drive as noisy as real ones, `times` as fast as it might be.
fn model(world: &World, name: &str, times: f64) {
    let us = |latency: f64| format!("{:.0}ns", latency * 1000.0 / times);
    let text = format!(
        "schema = 1\nname = \"{name}\"\nwhy = \"a test\"\n[model]\nsize = \"16GiB\"\n\
         [model.read]\nlatency = \"{}\"\n[model.noise]\njitter = 0.1\nvisit_shift = 0.01\n",
        us(100.0)
    );
    std::fs::write(world.path(name), text).unwrap();
}

fn side(world: &World, name: &str, target: &str, more: &str) {
    let text = format!("suite = \"random-read\"\ntarget = \"{target}\"\ntime = \"20ms\"\n{more}");
    std::fs::write(world.path(name), text).unwrap();
}

fn compare(world: &World, more: &[&str]) -> Value {
    let words =
        [&["compare", "--live", "a.toml", "b.toml", "--json", "--seed", "11"], more].concat();
    serde_json::from_str(&world.ok(&words).out).unwrap()
}

fn twins(times: f64) -> World {
    let world = World::new();
    model(&world, "one.model", 1.0);
    model(&world, "other.model", times);
    side(&world, "a.toml", "model:one.model", "");
    side(&world, "b.toml", "model:other.model", "");
    world
}

#[test]
fn a_faster_side_is_found_in_ten_blocks_and_the_same_is_not() {
    let found = compare(&twins(1.10), &[]);
    let against = &found["against"][0];
    assert_eq!(against["design"], "blocks");
    let overall = &against["overall"];
    assert_eq!(overall["count"], 10);
    assert_eq!(
        (&overall["verdict"], &overall["direction"]),
        (&"different".into(), &"faster".into())
    );
    let ratio = overall["ratio"]["ratio"].as_f64().unwrap();
    assert!((1.07..1.13).contains(&ratio), "{ratio}, seed 11");
    let found = compare(&twins(1.0), &[]);
    let overall = &found["against"][0]["overall"];
    assert_ne!(overall["verdict"], "different", "seed 11: {overall}");
    // Noise of its own on either side: the same seed alone would make them exactly equal.
    assert!(overall["ratio"]["ratio"].as_f64().unwrap() != 1.0);
}

#[test]
fn a_side_that_fails_ends_the_others_and_nobody_interrupted_them() {
    let world = twins(1.0);
    let path = world.path("other.model");
    let text = std::fs::read_to_string(&path).unwrap();
    let fault = "[[fault]]\nwhat = { vanish = { errno = \"ENODEV\", seen = \"device\" } }\nsince = \"40ms\"\n";
    std::fs::write(&path, format!("{text}\n{fault}")).unwrap();
    let done = world.run(&["compare", "--live", "a.toml", "b.toml", "--seed", "11"]);
    assert_eq!(done.code, 5, "{done:?}");
    let list: Value = serde_json::from_str(&world.ok(&["list", "--json"]).out).unwrap();
    let states: Vec<&str> =
        list["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert!(states.len() >= 2 && states.iter().all(|state| *state == "failed"), "{states:?}");
    assert!(done.out.contains("A ended since the other side failed"), "{done:?}");
    assert!(done.err.contains("run r2 ended early"), "{done:?}");
    for told in [&done.out, &done.err] {
        assert!(!told.contains("interrupted") && !told.contains("plimsoll resume"), "{told}");
    }
}

/// When each visit of a run began, by repeat.
fn starts(world: &World, run: &str) -> Vec<i64> {
    let run = world.ok(&["show", run, "--json"]).out;
    let run: Value = serde_json::from_str(&run).unwrap();
    let visits = run["cells"][0]["visits"].as_array().unwrap();
    visits.iter().map(|visit| visit["started_unix_ns"].as_i64().unwrap()).collect()
}

#[test]
fn the_sides_take_turns_in_a_random_and_balanced_order() {
    let world = twins(1.0);
    compare(&world, &["--aa-every", "0"]);
    let (a, b) = (starts(&world, "r1"), starts(&world, "r2"));
    assert_eq!((a.len(), b.len()), (10, 10));
    for block in 0..9 {
        let last = a[block].max(b[block]);
        assert!(last < a[block + 1].min(b[block + 1]), "block {block} has an end");
    }
    let first: Vec<bool> = a.iter().zip(&b).map(|(a, b)| a < b).collect();
    assert_eq!(first.iter().filter(|&&first| first).count(), 5, "{first:?}, seed 11");
    let run: Value = serde_json::from_str(&world.ok(&["show", "r1", "--json"]).out).unwrap();
    assert_eq!(run["blocks"]["side"], "A");
    // The seed is stored, and decides all of it.
    let seed = run["seed"].as_u64().unwrap().to_string();
    let order = |seed: &str| {
        let again = twins(1.0);
        let words = ["compare", "--live", "a.toml", "b.toml", "--aa-every", "0", "--seed", seed];
        again.ok(&words);
        let sides = starts(&again, "r1").into_iter().zip(starts(&again, "r2"));
        sides.map(|(a, b)| a < b).collect::<Vec<_>>()
    };
    assert_eq!(order(&seed), first);
    assert!((100..110).any(|seed| order(&seed.to_string()) != first), "seeds 100 to 109");
}

#[test]
fn every_tenth_block_is_a_against_a_and_counts_for_nothing() {
    let world = twins(1.10);
    let words = ["compare", "--live", "a.toml", "b.toml", "--seed", "11"];
    let done = world.ok(&[&words[..], &["--dry-run"]].concat());
    assert!(done.out.contains("Between those, 1 block with A in both places"), "{done:?}");
    assert!(done.out.contains("Side A', a.toml:"), "{done:?}");
    let told = world.ok(&[&words[..], &["--json"]].concat());
    assert!(told.err.contains("r3 is A once more, to check it"), "{told:?}");
    let found: Value = serde_json::from_str(&told.out).unwrap();
    let against = &found["against"][0];
    assert_eq!(
        (&against["overall"]["count"], &against["control"]["blocks"]),
        (&10.into(), &1.into())
    );
    assert_eq!(against["control"]["of"], 11);
    assert_eq!(against["control"]["finding"], "noise", "seed 11: {against}");
    assert_eq!(found["sides"].as_array().unwrap().len(), 2);
    // A is visited in all blocks, B in its ten, and A once more between.
    let [a, b, again] = ["r1", "r2", "r3"].map(|run| starts(&world, run));
    assert_eq!((a.len(), b.len(), again.len()), (11, 10, 1));
    assert!(a[8].max(b[8]) < a[9].min(again[0]), "after nine");
    assert!(a[9].max(again[0]) < a[10].min(b[9]), "and before the tenth");
    let first = a[..9].iter().chain(&a[10..]).zip(&b).filter(|(a, b)| a < b).count();
    assert_eq!(first, 5, "the coin is balanced over the blocks that count, seed 11");
    // Stored: it says so later, whoever is the reference, and named or not.
    let again = |words: &[&str]| -> Value {
        serde_json::from_str(&world.ok(&[words, &["--json"]].concat()).out).unwrap()
    };
    assert_eq!(again(&["compare", "r1", "r2"]), found);
    assert_eq!(again(&["compare", "r1", "r3", "r2"]), found);
    assert_eq!(again(&["compare", "last-1", "last"]), found, "a check is no last run");
    assert_eq!(again(&["compare", "r2", "r1"])["against"][0]["control"]["blocks"], 1);
    world.ok(&["rm", "r3", "--yes"]);
    let text = world.ok(&["compare", "r1", "r2"]).out;
    assert!(text.contains("Not checked: no block held A against itself"), "{text}");
}

#[test]
fn how_often_a_is_held_against_itself_is_chosen() {
    let world = twins(1.0);
    let counts = |more: &[&str]| {
        let found = compare(&world, more);
        let control = found["against"][0]["control"].clone();
        (found["against"][0]["overall"]["count"].clone(), control["blocks"].clone())
    };
    assert_eq!(counts(&["--aa-every", "0"]), (10.into(), Value::Null));
    assert_eq!(counts(&["--blocks", "9"]), (9.into(), Value::Null));
    assert_eq!(counts(&["--blocks", "6", "--aa-every", "2"]), (6.into(), 5.into()));
    let done = world.run(&["compare", "--live", "a.toml", "b.toml", "--aa-every", "1"]);
    assert_eq!(done.code, 2, "{done:?}");
    // Sides with files of their own that verify: A cannot share its own.
    for (name, file) in [("a.toml", "a.dat"), ("b.toml", "b.dat")] {
        let text = format!("suite = \"random-write\"\ntarget = \"./{file}\"\nsize = \"1MiB\"\n");
        std::fs::write(world.path(name), text + "time = \"10ms\"\n").unwrap();
    }
    let words = ["compare", "--live", "a.toml", "b.toml", "--verify"];
    let done = world.ok(&words);
    assert!(done.err.contains("no block holds A against itself"), "{done:?}");
    assert!(!done.out.contains("A against A"), "{done:?}");
    let done = world.run(&[&words[..], &["--aa-every", "5"]].concat());
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("A cannot be held against itself"), "{done:?}");
}

#[test]
fn a_once_more_is_on_the_device_of_a_also_where_that_is_simulated_and_remembers() {
    let world = World::new();
    model(&world, "cliff.model", 1.0);
    let path = world.path("cliff.model");
    let text = std::fs::read_to_string(&path).unwrap();
    // Half as fast after the first block or so.
    let cliff =
        "[model.write]\nlatency = \"100us\"\n[model.write_cliff]\nafter = \"4MiB\"\nfactor = 0.5\n";
    std::fs::write(&path, format!("{text}{cliff}")).unwrap();
    for name in ["a.toml", "b.toml"] {
        let text = "suite = \"random-write\"\ntarget = \"model:cliff.model\"\ntime = \"20ms\"\n";
        std::fs::write(
            world.path(name),
            format!("{text}size = \"16MiB\"\nset = {{ queue_depth = 4 }}\n"),
        )
        .unwrap();
    }
    for seed in ["11", "12", "13"] {
        let words = ["compare", "--live", "a.toml", "b.toml", "--json", "--seed", seed];
        let found: Value = serde_json::from_str(&world.ok(&words).out).unwrap();
        let control = &found["against"][0]["control"];
        // Noise of a visit, and not twice the rate as on one that nobody had written to.
        let ratio = control["ratio"]["ratio"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.1, "seed {seed}: {control}");
        // It did fall on the way.
        let run = found["sides"][0]["run"].as_str().unwrap();
        let run: Value = serde_json::from_str(&world.ok(&["show", run, "--json"]).out).unwrap();
        let visits = run["cells"][0]["visits"].as_array().unwrap();
        let rate = |k: usize| visits[k]["iops"].as_f64().unwrap();
        assert!(rate(10) < 0.7 * rate(0), "{} {}", rate(0), rate(10));
    }
}

#[test]
fn a_stored_comparison_says_later_what_it_said() {
    let world = twins(1.04);
    let told = compare(&world, &[]);
    let again: Value =
        serde_json::from_str(&world.ok(&["compare", "r1", "r2", "--json"]).out).unwrap();
    assert_eq!(again, told);
}

#[test]
fn a_side_named_twice_shows_what_drift_there_is() {
    let world = twins(1.10);
    let words = ["compare", "--live", "a.toml", "b.toml", "a.toml", "--json", "--seed", "11"];
    let found: Value = serde_json::from_str(&world.ok(&words).out).unwrap();
    assert_eq!(found["against"][0]["overall"]["verdict"], "different");
    let again = &found["against"][1];
    assert_eq!((&again["bracket"], &again["design"]), (&true.into(), &"blocks".into()));
    assert_eq!(again["overall"]["count"], 10);
    let far = (again["overall"]["twin"]["ratio"].as_f64().unwrap().ln()).abs().exp_m1();
    let drift = found["against"][0]["drift"].as_f64().unwrap();
    assert!((drift - far).abs() < 1e-9, "{drift} {far}");
}

#[test]
fn simulated_sides_take_turns_on_one_clock() {
    let world = twins(1.0);
    compare(&world, &["--aa-every", "4"]);
    let visits = |run: &str| {
        let run: Value =
            serde_json::from_str(&world.ok(&["export", run, "--format", "json"]).out).unwrap();
        let span = |visit: &Value| {
            let began = visit["started_unix_ns"].as_i64().unwrap();
            (began, began + visit["elapsed_ns"].as_i64().unwrap())
        };
        let cells = run["cells"].as_array().unwrap().iter();
        let visits = cells.flat_map(|cell| cell["visits"].as_array().unwrap());
        visits.map(span).collect::<Vec<_>>()
    };
    let mut all: Vec<(i64, i64)> = ["r1", "r2", "r3"].iter().flat_map(|run| visits(run)).collect();
    all.sort_unstable();
    assert!(all.len() > 20);
    let beside: Vec<_> = all.windows(2).filter(|pair| pair[1].0 < pair[0].1).collect();
    assert!(beside.is_empty(), "{} of {}: {beside:?}", beside.len(), all.len());
}

#[test]
fn twenty_blocks_end_after_ten_when_all_is_decided() {
    let world = twins(1.3);
    let words = ["compare", "--live", "a.toml", "b.toml", "--blocks", "20", "--seed", "11"];
    let done = world.ok(&words);
    assert!(done.err.contains("decided after 10 blocks"), "{done:?}");
    assert!(done.out.contains("Two looks were planned"), "{done:?}");
    assert!(done.out.contains("it ended at the first: intervals"), "{done:?}");
    assert!(done.out.contains("intervals are of 97.1 % each"), "{done:?}");
    assert_eq!(world.ok(&["compare", "r1", "r2"]).out, done.out, "later, the same");
    let list = world.ok(&["list"]).out;
    assert_eq!(list.matches("complete").count(), 3, "{list}");
    for made in ["11/11", "10/10", " 1/1"] {
        assert_eq!(list.matches(made).count(), 1, "{made} of A, B and A once more: {list}");
    }
    // What is not decided goes on: 1 % of 3 % of noise is neither there nor not.
    let world = twins(1.03);
    let done = world.ok(&words);
    assert!(!done.err.contains("decided after"), "{done:?}");
    let list = world.ok(&["list"]).out;
    assert!(list.contains("22/22") && list.contains("20/20") && list.contains(" 2/2"), "{list}");
    assert_eq!(world.ok(&["compare", "r1", "r2"]).out, done.out);
    // A number of blocks that nobody looks into is held to what was asked.
    let done = world.ok(&["compare", "--live", "a.toml", "b.toml", "--blocks", "19"]);
    assert!(!done.out.contains("Two looks"), "{done:?}");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let world = twins(1.0);
    side(&world, "b.toml", "model:one.model", "colour = \"red\"\n");
    let done = world.run(&["compare", "--live", "a.toml", "b.toml"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("b.toml:4: unknown field `colour`"), "{done:?}");
    side(&world, "b.toml", "model:one.model", "set = { queue_depth = [1, 4] }\n");
    let done = world.run(&["compare", "--live", "a.toml", "b.toml"]);
    assert!(done.err.contains("have other cells"), "{done:?}");
    std::fs::write(world.path("b.toml"), "suite = \"steady-write\"\ntarget = \"null:\"\n").unwrap();
    let done = world.run(&["compare", "--live", "a.toml", "b.toml"]);
    assert!(done.err.contains("cannot be played in blocks"), "{done:?}");
    for (name, size) in [("a.toml", 1), ("b.toml", 2)] {
        side(&world, name, "./one.dat", &format!("size = \"{size}MiB\"\n"));
    }
    let done = world.run(&["compare", "--live", "a.toml", "b.toml"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("cannot take turns on"), "{done:?}");
    let done = world.run(&["compare", "--live", "a.toml", "a.toml", "--verify"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("a side that verifies"), "{done:?}");
    assert!(!world.path("one.dat").exists() && !world.store().exists());
}

/// Two depths of one queue, writing to one target.
fn depths(world: &World, target: &str) {
    for (name, depth) in [("a.toml", 1), ("b.toml", 4)] {
        let text = format!(
            "suite = \"random-write\"\ntarget = \"{target}\"\nsize = \"1MiB\"\ntime = \"10ms\"\n\
             backend = \"blocking\"\nset = {{ threads = {depth} }}\n"
        );
        std::fs::write(world.path(name), text).unwrap();
    }
}

/// Fills of a run that made at least so many visits besides: a stall of the disk below has visits made
/// again.
fn made(world: &World, run: &str, least: usize) -> usize {
    let found: serde_json::Value =
        serde_json::from_str(&world.ok(&["export", run, "--format", "json"]).out).unwrap();
    let cells = found["cells"].as_array().unwrap();
    let of = |is_fill: bool| -> usize {
        let cells = cells.iter().filter(|cell| (cell["phase"] == "fill") == is_fill);
        cells.map(|cell| cell["visits"].as_array().unwrap().len()).sum()
    };
    assert!(of(false) >= least, "{} visits of {run}", of(false));
    of(true)
}

#[test]
fn sides_that_write_take_turns_on_one_file() {
    let world = World::new();
    depths(&world, ".");
    let done = world.ok(&["compare", "--live", "a.toml", "b.toml", "--dry-run"]);
    assert!(done.out.contains("with a side before it"), "{done:?}");
    let done = world.ok(&["compare", "--live", "a.toml", "b.toml", "--blocks", "6"]);
    // Where the data lies is the same, so what was asked for can be credited.
    assert!(done.out.contains("One thing differs: phase.write.threads (1 in r1, 4"), "{done:?}");
    assert_eq!(made(&world, "r1", 6) + made(&world, "r2", 6), 1, "one fill is enough");
    assert_eq!(world.files(), ["a.toml", "b.toml", "home"], "the scratch file is gone");
    // Three sides, one of them named twice, on a file that stays.
    depths(&world, "./kept.dat");
    world.ok(&["compare", "--live", "a.toml", "b.toml", "a.toml", "--blocks", "2"]);
    assert!(world.path("kept.dat").exists());
}

#[test]
fn what_is_not_ours_is_refused_and_stays() {
    let world = World::new();
    depths(&world, "./theirs.dat");
    let content = vec![7; 1 << 20];
    std::fs::write(world.path("theirs.dat"), &content).unwrap();
    let words = ["compare", "--live", "a.toml", "b.toml", "--blocks", "2"];
    let done = world.run(&words);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("--overwrite"), "{done:?}");
    assert_eq!(std::fs::read(world.path("theirs.dat")).unwrap(), content);
    assert!(!world.store().exists());
    world.ok(&[&words[..], &["--overwrite", "theirs.dat"]].concat());
    assert_ne!(std::fs::read(world.path("theirs.dat")).unwrap(), content);
}

/// Begins a comparison on a scratch file and waits until it has made some blocks.
fn begun(world: &World) -> std::process::Child {
    depths(world, ".");
    let words = ["compare", "--live", "a.toml", "b.toml", "--blocks", "1000"];
    let mut command = world.command(&words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains("3 blocks made") {
        assert!(err.read_line(&mut told).unwrap() > 0, "{told}");
    }
    assert!(world.path("plimsoll-scratch.dat").exists());
    child.stderr = Some(err.into_inner());
    child
}

#[test]
fn called_off_it_leaves_no_scratch_file() {
    let world = World::new();
    let mut child = begun(&world);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(world.files(), ["a.toml", "b.toml", "home"]);
}

#[test]
fn killed_it_can_be_compared_and_made_anew() {
    let world = World::new();
    let words = ["run", "random-read", "--target", "null:", "--time", "300ms"];
    let mut other = crate::world::start(&world, &words);
    other.kill().unwrap();
    other.wait().unwrap();
    let mut child = begun(&world);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.ok(&["list"]).out.matches("killed").count(), 4, "A' among them");
    // What was measured is there, block by block.
    let document = world.ok(&["compare", "r2", "r3", "--json"]).out;
    let found: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(found["against"][0]["design"], "blocks");
    assert!(found["against"][0]["overall"]["count"].as_u64().unwrap() >= 3, "{found}");
    let done = world.run(&["resume", "r3"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("`compare --live` measures anew"), "{done:?}");
    // Sides do not stand before a run that can go on.
    assert!(world.ok(&["resume"]).err.contains("r1"));
    // The scratch file left behind is ours: used again, and then gone.
    world.ok(&["compare", "--live", "a.toml", "b.toml", "--blocks", "2"]);
    assert_eq!(world.files(), ["a.toml", "b.toml", "home"]);
}

#[test]
fn sides_that_write_have_a_file_each() {
    let world = World::new();
    for (name, file) in [("a.toml", "a.dat"), ("b.toml", "b.dat")] {
        let text = format!("suite = \"random-write\"\ntarget = \"./{file}\"\nsize = \"1MiB\"\n");
        std::fs::write(world.path(name), text + "time = \"10ms\"\n").unwrap();
    }
    let done = world.ok(&["compare", "--live", "a.toml", "b.toml", "--blocks", "2"]);
    assert!(done.err.contains("write: 1 block made"), "{done:?}");
    assert_eq!(made(&world, "r1", 2) + made(&world, "r2", 2), 2, "a fill each");
    assert!(world.path("a.dat").exists() && world.path("b.dat").exists());
}

#[test]
fn a_dry_run_touches_nothing() {
    let world = twins(1.0);
    let done = world.ok(&["compare", "--live", "a.toml", "b.toml", "--dry-run"]);
    assert!(done.out.contains("Side A, a.toml:") && done.out.contains("in 10 blocks"), "{done:?}");
    assert!(!world.store().exists());
}

#[test]
fn how_long_it_takes_and_what_it_cannot_decide_are_said_before() {
    let world = twins(1.0);
    let words = ["compare", "--live", "a.toml", "b.toml", "--aa-every", "0"];
    let said =
        |blocks: &str| world.ok(&[&words[..], &["--dry-run", "--blocks", blocks]].concat()).out;
    let (few, enough) = (said("5"), said("6"));
    assert!(few.contains("5 blocks decide nothing: it takes 6"), "{few}");
    assert!(!enough.contains("decide nothing"), "{enough}");
    // A side has 6 visits of 20 ms and their ramps.
    let of = |text: &str, after: &str| {
        let (_, rest) = text.split_once(after)?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    let side = of(&enough, "Takes at least ").unwrap();
    let (_, all) = enough.split_once("random order.\n").unwrap();
    assert_eq!(of(all, "Takes at least ").unwrap(), 2.0 * side, "{enough}");
    let done = world.ok(&[&words[..], &["--blocks", "5"]].concat());
    assert!(done.err.contains("warning: 5 blocks decide nothing"), "{done:?}");
    assert!(done.err.contains(" in all, and the time to fill files"), "{done:?}");
}

#[test]
fn an_interrupt_leaves_both_sides_and_says_what_they_allow() {
    let world = World::new();
    for name in ["a.toml", "b.toml"] {
        let text = "suite = \"random-read\"\ntarget = \"null:\"\ntime = \"100ms\"\n";
        std::fs::write(world.path(name), text).unwrap();
    }
    let words = ["compare", "--live", "a.toml", "b.toml", "--blocks", "1000"];
    let mut command = world.command(&words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains("8 blocks made") {
        assert!(err.read_line(&mut told).unwrap() > 0, "{told}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    err.read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{out}{told}");
    assert!(out.contains("blocks") && out.contains("B "), "{out}{told}");
    let list = world.ok(&["list"]).out;
    assert!(list.matches("interrupted").count() >= 2, "{list}");
    // Alone a side cannot take turns.
    let done = world.run(&["resume", "r1"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("one side of a comparison"), "{done:?}");
    world.ok(&["compare", "r1", "r2"]);
}
