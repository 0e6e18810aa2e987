use std::os::unix::fs::FileExt;

use serde_json::Value;

use crate::world::{Done, World, start};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Digits out, so that only the form stays; columns keep their places less exactly.
fn form(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let (bare, end) = word.split_at(word.trim_end().len());
        let is_number = bare.starts_with(|c: char| c.is_ascii_digit()) && bare.len() > 1;
        out += if is_number { "#" } else { bare };
        out += end;
    }
    // What a look at the run's threads sees depends on when it looks.
    let lines = out.lines().filter(|line| !line.contains("has not come back"));
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_is_told_stored_and_shown_again() {
    let world = World::new();
    let model = world.model();
    let words = "run random-read --seed 7 --classic --set threads=1,4 --target";
    let run: Vec<&str> = words.split(' ').chain([model.as_str()]).collect();
    let done = world.ok(&run);
    let path = model.trim_start_matches("model:").to_owned();
    insta::with_settings!({filters => vec![(path.as_str(), "[MODEL]")]}, {
        insta::assert_snapshot!("run-out", form(&done.out));
        insta::assert_snapshot!("run-err", form(&done.err));
    });
    let (table, answer) = done.out.split_once("\nThe answer\n").expect("it ends with the answer");
    assert_eq!(world.ok(&["table"]).out, table, "the tables can be had again");
    assert!(world.ok(&["show"]).out.ends_with(table));
    assert!(world.ok(&["explain"]).out.contains(answer), "and the answer");
    assert!(world.ok(&["show"]).out.contains("seed       7\n"));
    let again = world.ok(&run).out.replace("r2 ", "r1 ");
    assert_eq!(again, done.out, "same seed, same figures on a virtual clock");
    assert!(world.ok(&["list"]).out.lines().count() == 3);
    assert_eq!(world.files(), ["home"]);
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let world = World::new();
    let words =
        ["run", "random-read", "--target", "null:", "--time", "50ms", "--classic", "--json"];
    let done = world.ok(&words);
    let document = json(&done.out);
    assert_eq!(document["schema"], "plimsoll.run/1");
    for field in ["run", "suite", "target", "seed", "cells", "warnings"] {
        assert!(!document[field].is_null(), "{field}");
    }
    let cell = &document["cells"][0];
    for field in ["op", "block_bytes", "threads", "queue_depth", "iops", "bytes_per_s", "visits"] {
        assert!(!cell[field].is_null(), "{field}");
    }
    for field in ["latency_ns", "cpu_ns_per_io", "device", "marks"] {
        assert!(cell.get(field).is_some(), "{field}");
    }
    for quantile in ["mean", "p50", "p90", "p99", "p999", "max"] {
        assert!(cell["latency_ns"].get(quantile).is_some(), "{quantile}");
    }
    assert_eq!(json(&world.ok(&["show", "--json"]).out), document);
    assert_eq!(json(&world.ok(&["export", "--format", "json"]).out), document);
    let list = json(&world.ok(&["list", "--json"]).out);
    assert_eq!(list["runs"][0]["id"], document["run"]);
}

#[test]
fn a_scratch_file_is_made_and_removed() {
    let world = World::new();
    let words = ["run", "random-write", "--size", "4MiB", "--time", "50ms", "--classic"];
    let done = world.ok(&words);
    assert!(done.err.contains("scratch file"), "{done:?}");
    assert_eq!(world.files(), ["home"]);
    world.ok(&[&words[..], &["--keep"]].concat());
    assert_eq!(world.files().len(), 2);
}

#[test]
fn a_file_of_someone_else_is_not_overwritten() {
    let world = World::new();
    let file = world.path("letters");
    let content = vec![7; 1 << 20];
    std::fs::write(&file, &content).unwrap();
    let words = ["run", "random-write", "--target", "letters", "--time", "50ms", "--classic"];
    let done = world.run(&words);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("hint: "), "{done:?}");
    assert_eq!(std::fs::read(&file).unwrap(), content);
    world.ok(&[&words[..], &["--overwrite", "letters"]].concat());
}

#[test]
fn verified_writes_read_back() {
    let world = World::new();
    let target = ["--target", "memory:4MiB", "--time", "50ms", "--classic", "--verify"];
    world.ok(&[&["run", "random-write"], &target[..]].concat());
}

#[test]
fn data_that_changed_has_a_code_of_its_own() {
    let world = World::new();
    let target =
        ["--target", "disk.dat", "--size", "1MiB", "--time", "50ms", "--classic", "--verify"];
    world.ok(&[&["run", "random-write"], &target[..]].concat());
    let file = std::fs::OpenOptions::new().write(true).open(world.path("disk.dat")).unwrap();
    for block in 0..256 {
        file.write_all_at(b"rust", block * 4096 + 100).unwrap();
    }
    let done = world.run(&[&["run", "random-read"], &target[..]].concat());
    assert_eq!(done.code, 7, "{done:?}");
    assert!(done.out.contains("verify-mismatch: "), "{done:?}");
    assert!(done.err.contains("more of this visit"), "not all of them at once: {done:?}");
}

#[test]
fn a_visit_that_fails_is_stored_and_has_a_code() {
    let world = World::new();
    let make = [
        "run",
        "random-read",
        "--target",
        "disk.dat",
        "--size",
        "1MiB",
        "--time",
        "50ms",
        "--classic",
    ];
    world.ok(&make);
    let mut words = make;
    words[7] = "1h";
    let child = start(&world, &words);
    let file = std::fs::OpenOptions::new().write(true).open(world.path("disk.dat")).unwrap();
    file.set_len(0).unwrap();
    let done = Done::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, 4, "{done:?}");
    assert!(world.ok(&["show"]).out.contains("failed: "), "{done:?}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let world = World::new();
    let done = world.ok(&["run", "bm-flash", "--size", "64MiB", "--dry-run"]);
    assert!(done.out.contains("to 84 cells"), "{done:?}");
    assert_eq!(done.err, "");
    assert_eq!(world.files(), ["home"]);
    assert!(!world.store().exists());
}

#[test]
fn quiet_is_quiet() {
    let world = World::new();
    let words =
        ["run", "random-read", "--target", "null:", "--time", "50ms", "--classic", "--quiet"];
    let done = world.ok(&words);
    assert_eq!(done.err, "");
    assert!(done.out.contains("random-read"));
}

#[test]
fn the_store_is_where_it_is_said_to_be() {
    let world = World::new();
    assert_eq!(world.ok(&["path"]).out, format!("{}\n", world.store().display()));
    assert_eq!(world.ok(&["path", "--store", "my.db"]).out, "my.db\n");
    assert_eq!(world.ok(&["list"]).out, "no runs\n");
    assert!(!world.store().exists(), "looking makes nothing");
    let run = [
        "run",
        "random-read",
        "--target",
        "null:",
        "--time",
        "50ms",
        "--classic",
        "--store",
        "my.db",
    ];
    world.ok(&run);
    assert!(world.path("my.db").exists() && !world.store().exists());
    assert!(world.ok(&["list", "--store", "my.db"]).out.contains("r1"));
    let named = world.command(&["path"]).env("PLIMSOLL_STORE", "its.db").output().unwrap();
    assert_eq!(String::from_utf8(named.stdout).unwrap(), "its.db\n");
    let mut lost = world.command(&["path"]);
    assert_eq!(lost.env_remove("HOME").status().unwrap().code(), Some(6));
}

#[test]
fn a_store_that_cannot_be_is_said_before_anything_is_measured() {
    let world = World::new();
    let mut run = ["run", "random-read", "--target", "null:", "--store", "/dev/null/x.db"];
    let done = world.run(&run);
    assert_eq!(done.code, 6, "{done:?}");
    assert!(done.err.contains("hint: "), "{done:?}");
    std::fs::write(world.path("letters"), "dear").unwrap();
    run[5] = "letters";
    assert_eq!(world.run(&run).code, 6);
    assert_eq!(std::fs::read(world.path("letters")).unwrap(), b"dear");
}

#[test]
fn runs_are_removed_only_on_a_yes() {
    let world = World::new();
    for _ in 0..2 {
        world.ok(&["run", "random-read", "--target", "null:", "--time", "20ms", "--classic"]);
    }
    let done = world.run(&["rm", "r1"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(world.run(&["rm", "r9", "--yes"]).code, 2);
    assert!(world.ok(&["list"]).out.contains("r1 "));
    world.ok(&["rm", "r1", "last", "--yes"]);
    assert_eq!(world.ok(&["list"]).out, "no runs\n");
}

#[test]
fn how_rounds_end_is_said_only_where_there_are_rounds() {
    let world = World::new();
    let words = ["run", "random-read", "--target", "null:", "--dry-run"];
    let done = world.ok(&[&words[..], &["--precision", "2%", "--max-time", "20min"]].concat());
    assert!(done.out.contains("known to 2 %") && done.out.contains("20 min"), "{done:?}");
    for option in [["--precision", "2%"], ["--max-time", "20min"]] {
        let done = world.run(&[&words[..], &option, &["--set", "method=classic"]].concat());
        assert_eq!(done.code, 2, "{done:?}");
        assert!(
            done.err.contains("not played in rounds") && done.err.contains("hint: "),
            "{done:?}"
        );
        assert_eq!(world.run(&[&words[..], &option, &["--classic"]].concat()).code, 2);
    }
    let done = world.run(&[&words[..], &["--max-time", "1s"]].concat());
    assert!(done.err.contains("one visit to every cell"), "{done:?}");
}

#[test]
fn rounds_are_told_as_they_come() {
    let world = World::new();
    let rounds = "rounds={ visits_max = 3, ramp = \"1ms\", visit_time = \"20ms\" }";
    let done = world.ok(&[
        "run",
        "random-read",
        "--target",
        "null:",
        "--set",
        rounds,
        "--set",
        "threads=1,2",
    ]);
    assert!(done.err.contains("6 visits to make"), "{done:?}");
    assert!(done.err.contains("read: round 3, 2 of 2 cells open"), "{done:?}");
    assert!(world.ok(&["list"]).out.contains(" 6/6 "), "as many as were made");
}
