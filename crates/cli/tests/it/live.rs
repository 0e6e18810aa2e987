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
    compare(&world, &[]);
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
}

#[test]
fn twenty_blocks_end_after_ten_when_all_is_decided() {
    let world = twins(1.3);
    let words = ["compare", "--live", "a.toml", "b.toml", "--blocks", "20", "--seed", "11"];
    let done = world.ok(&words);
    assert!(done.err.contains("decided after 10 blocks"), "{done:?}");
    assert!(done.err.contains("two looks were planned: intervals are of 97.1 %"), "{done:?}");
    let list = world.ok(&["list"]).out;
    assert_eq!(list.matches("complete").count(), 2, "{list}");
    assert_eq!(list.matches("10/10").count(), 2, "{list}");
    // What is not decided goes on: 1 % of 3 % of noise is neither there nor not.
    let world = twins(1.03);
    let done = world.ok(&words);
    assert!(!done.err.contains("decided after"), "{done:?}");
    assert_eq!(world.ok(&["list"]).out.matches("20/20").count(), 2);
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
    for (name, depth) in [("a.toml", 1), ("b.toml", 4)] {
        side(
            &world,
            name,
            "./one.dat",
            &format!("size = \"1MiB\"\nset = {{ queue_depth = {depth} }}\n"),
        );
    }
    let done = world.run(&["compare", "--live", "a.toml", "b.toml"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("would both write"), "{done:?}");
    assert!(!world.path("one.dat").exists() && !world.store().exists());
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
    assert_eq!(world.ok(&["list"]).out.matches("3/3").count(), 2, "the fill and two visits");
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
    assert_eq!(list.matches("interrupted").count(), 2, "{list}");
    // Alone a side cannot take turns.
    let done = world.run(&["resume", "r1"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("one side of a comparison"), "{done:?}");
    world.ok(&["compare", "r1", "r2"]);
}
