//! Lists of suites, and suites made smaller.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Done, World};

const ONE: &str = "\
schema = 1
name = \"one\"
file_size = \"8MiB\"
method = \"classic\"

[[phase]]
name = \"read\"
time = \"20ms\"

[quick]
time = \"5ms\"
";

fn write(world: &World, name: &str, text: &str) {
    let path = world.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A list `list.toml` of these parts, and the suite that they name.
fn list(world: &World, parts: &[&str]) {
    write(world, "one.toml", ONE);
    let parts: Vec<_> = parts.iter().map(|part| format!("[[part]]\n{part}\n")).collect();
    write(world, "list.toml", &format!("schema = 1\nname = \"list\"\n{}", parts.join("\n")));
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn parts_are_played_in_order_as_runs_of_one_group() {
    let world = World::new();
    list(
        &world,
        &["suite = \"./one.toml\"\nset = { threads = 2 }\nrepeats = 2", "suite = \"one.toml\""],
    );
    std::fs::create_dir(world.path("d")).unwrap();
    let done = world.ok(&["run", "list.toml", "--target", "d"]);
    for title in ["part 1 of 3: one, 1 of 2; ", "part 2 of 3: one, 2 of 2; ", "part 3 of 3: one\n"]
    {
        assert!(done.err.contains(title), "{title}: {done:#?}");
    }
    assert!(done.err.contains("stored as r1 r2 r3: `plimsoll explain --group "), "{done:#?}");
    assert!(std::fs::read_dir(world.path("d")).unwrap().next().is_none(), "scratch is removed");
    let runs = json(&world.ok(&["list", "--json"]).out)["runs"].as_array().unwrap().clone();
    let numbers: Vec<_> = runs.iter().map(|run| run["part"]["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(runs.iter().all(|run| run["part"]["group"] == runs[0]["part"]["group"]));
    assert!(runs.iter().all(|run| run["part"]["of"] == 3 && run["part"]["list"] == "list"));
    let run = |id: &str| json(&world.ok(&["show", id, "--json"]).out);
    let (first, second, third) = (run("r1"), run("r2"), run("r3"));
    assert_eq!(first["cells"][0]["threads"], 2);
    assert_eq!(third["cells"][0]["threads"], 1);
    assert_ne!(first["seed"], second["seed"]);
    let group = runs[0]["part"]["group"].as_str().unwrap();
    assert!(world.ok(&["list"]).out.contains(&format!("list 2/3 {group}")));
    assert!(world.ok(&["show", "r2"]).out.contains(&format!("2 of 3 of list, group {group}")));
    assert!(done.out.contains(&format!("\nlist, group {group}\n\n   1  r1")), "{}", done.out);
    world.ok(&["explain", "r1", "r2", "r3"]);
    let command = done.err.lines().rev().find_map(|line| line.split('`').nth(1)).unwrap();
    assert_eq!(command, format!("plimsoll explain --group {group}"));
    let named = world.ok(&command.split(' ').skip(1).collect::<Vec<_>>()).out;
    assert_eq!(world.ok(&["explain", "--group", "last"]).out, named);
}

#[test]
fn a_group_is_explained_part_by_part_and_then_in_common() {
    let world = World::new();
    list(
        &world,
        &["suite = \"one.toml\"\nrepeats = 2", "suite = \"random-read\"", "suite = \"one.toml\""],
    );
    world.ok(&["run", "one.toml", "--target", "null:"]);
    let none = world.run(&["explain", "--group", "last"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.err.contains("no run belongs to a group"), "{none:?}");
    let words = ["run", "list.toml", "--target", "null:", "--size", "8MiB", "--time", "20ms"];
    world.ok(&words);
    let out = world.ok(&["explain", "--group", "last"]).out;
    assert!(out.starts_with("list on null:, group "), "{out}");
    for said in [
        ": 4 of 4 parts\n",
        "\n1  r2  one\n  - `read`: ",
        "\n3  r4  random-read\n  - `read`: ",
        "\nWhat is common\n  - All on the same storage",
        "\none: r2 r3 r5 together\n",
        "`plimsoll explain r2` tells all of one part.",
    ] {
        assert!(out.contains(said), "{said}: {out}");
    }
    assert!(!out.contains("unknown. No two runs") && !out.contains("r1"), "{out}");
    world.ok(&["rm", "r4", "--yes"]);
    let out = world.ok(&["explain", "--group", "last"]).out;
    assert!(
        out.contains("3 of 4 parts") && out.contains("1 part of the list has no run: 3."),
        "{out}"
    );
    let document = json(&world.ok(&["explain", "--group", "last", "--json"]).out);
    assert_eq!(document["group"]["parts"][2]["number"], 4);
    assert_eq!(document["runs"].as_array().unwrap().len(), 3);
    let group = document["group"]["group"].as_str().unwrap().to_owned();
    assert_eq!(json(&world.ok(&["explain", "--group", &group, "--json"]).out), document);
    for words in [&["explain", "r1", "--group", "last"][..], &["explain", "--group", "00000000"]] {
        assert_eq!(world.run(words).code, 2, "{words:?}");
    }
}

#[test]
fn runs_of_different_suites_are_not_several_of_one_thing() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"", "suite = \"random-read\"", "suite = \"one.toml\""]);
    let words = ["run", "list.toml", "--target", "null:", "--size", "8MiB", "--time", "20ms"];
    world.ok(&words);
    let out = world.ok(&["explain", "r1", "r2", "r3"]).out;
    assert!(out.contains("\none: r1 r3 together\n"), "{out}");
    assert!(!out.contains("\nTogether\n") && !out.contains("Which factor matters"), "{out}");
    let out = world.ok(&["explain", "r1", "r2"]).out;
    assert!(!out.contains("\nTogether\n") && !out.contains("r2 together"), "{out}");
    assert!(out.contains("Runs of different suites were not compared"), "{out}");
    assert!(!world.ok(&["explain", "r1"]).out.contains("Several suites"));
    assert!(world.ok(&["explain", "r1", "r3"]).out.contains("\nTogether\n"));
}

#[test]
fn what_is_set_in_vain_is_refused_or_doubted() {
    let world = World::new();
    let classes = "classes = [{ operation = \"read\", block_size = \"8K\" }, { operation = \"read\", \
                   block_size = \"16K\" }]";
    write(
        &world,
        "own.toml",
        &ONE.replace("time = \"20ms\"", &format!("time = \"20ms\"\n{classes}")),
    );
    let words = ["run", "own.toml", "--target", "null:", "--set", "block_size=16KiB"];
    let refused = world.run(&words);
    assert_eq!(refused.code, 2, "{refused:?}");
    let said = "error: --set block_size=16KiB: `block_size` changes nothing here: every class has a \
                `block_size` of its own\nhint: set `classes`, each with its `block_size`\n";
    assert!(refused.err.ends_with(said), "{}", refused.err);
    write(&world, "burst.toml", &ONE.replace("time = \"20ms\"", "time = \"20ms\"\nburst = 8"));
    for words in [&["run", "burst.toml", "--target", "null:"][..], &["suite", "show", "burst.toml"]]
    {
        let done = world.ok(words);
        let said =
            "warning: burst.toml:9: `burst` changes nothing here: there is no pause after it";
        assert!(done.err.contains(said), "{}", done.err);
    }
}

#[test]
fn the_same_seed_gives_the_same_sequence() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"\nrepeats = 2"]);
    let words = ["run", "list.toml", "--target", "null:", "--seed", "7", "--json"];
    let groups: Vec<_> = (0..2).map(|_| json(&world.ok(&words).out)["group"].clone()).collect();
    assert_ne!(groups[0], groups[1], "a sequence played again is another");
    let seed = |id: &str| json(&world.ok(&["show", id, "--json"]).out)["seed"].clone();
    assert_eq!((seed("r1"), seed("r2")), (seed("r3"), seed("r4")));
    assert_ne!(seed("r1"), seed("r2"));
}

#[test]
fn json_is_a_summary() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"\nrepeats = 2"]);
    let done = world.ok(&["run", "list.toml", "--target", "null:", "--json"]);
    let document = json(&done.out);
    assert_eq!(document["schema"], "plimsoll.sequence/1");
    assert_eq!((&document["state"], &document["of"]), (&"complete".into(), &2.into()));
    assert_eq!(document["parts"][1]["run"], "r2");
    assert_eq!(document["parts"][1]["repeat"], 2);
    assert_eq!(document["runs"][1], json(&world.ok(&["show", "r2", "--json"]).out));
    assert_eq!(document["exit_code"], 0);
}

#[test]
fn a_dry_run_tells_all_parts_and_touches_nothing() {
    let world = World::new();
    list(
        &world,
        &["suite = \"one.toml\"\nrepeats = 2\npause = \"3s\"", "suite = \"random-write\""],
    );
    let done = world.ok(&["run", "list.toml", "--target", "f.dat", "--dry-run", "--time", "2s"]);
    for said in [
        "Part 1 of 3: one, 1 of 2:\n",
        "\nPauses for 3 s.\nPart 2 of 3: one, 2 of 2:\n  The same again.\n",
        "\nPart 3 of 3: random-write:\n",
        "Writes 8 MiB in order before the first visit",
        "\nTakes at least ",
    ] {
        assert!(done.out.contains(said), "{said}: {}", done.out);
    }
    assert_eq!(world.files(), ["home", "list.toml", "one.toml"]);
    assert!(!world.store().exists());
}

#[test]
fn a_list_is_shown() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"\nrepeats = 2\npause = \"3s\"", "suite = \"bm-flash\""]);
    let shown = world.ok(&["suite", "show", "list.toml", "--scale", "0.1"]).out;
    for said in
        ["3 runs of 2 parts", "  1-2  one.toml, 2 times", "    3  bm-flash", "a pause of 3 s"]
    {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert!(shown.contains("scale   sizes and totals are 0.1 times the suite's"), "{shown}");
    let document = json(&world.ok(&["suite", "show", "list.toml", "--json"]).out);
    assert_eq!(document["schema"], "plimsoll.parts/1");
    assert_eq!(document["parts"][0]["repeats"], 2);
    assert_eq!(document["parts"][1]["plan"]["name"], "bm-flash");
    let text = std::fs::read_to_string(world.path("list.toml")).unwrap();
    assert_eq!(world.ok(&["suite", "show", "list.toml", "--toml"]).out, text);
    let fio = world.ok(&["suite", "show", "list.toml", "--format", "fio", "--file", "f"]).out;
    assert!(fio.contains("[1-") && fio.contains("[2-") && !fio.contains("[global]"), "{fio}");
    assert_eq!(fio.matches("filename=f\n").count(), fio.matches("\n[").count(), "{fio}");
}

#[test]
fn paths_begin_where_the_list_is() {
    let world = World::new();
    write(&world, "a/one.toml", ONE);
    write(&world, "a/list.toml", "schema = 1\nname = \"list\"\n[[part]]\nsuite = \"one.toml\"\n");
    world.ok(&["run", "a/list.toml", "--target", "null:"]);
}

#[test]
fn bad_parts_are_refused_before_anything_is_played() {
    let world = World::new();
    for (part, said) in [
        (
            "suite = \"bm-flsh\"",
            "error: list.toml:6: no suite `bm-flsh`\nhint: did you mean `bm-flash`?",
        ),
        ("suite = \"./gone.toml\"", "error: list.toml:6: cannot read the suite ./gone.toml"),
        (
            "suite = \"list.toml\"",
            "error: list.toml:6: part `list.toml` is a list of suites itself",
        ),
        ("suite = \"one-dvd-per-second\"", "part `one-dvd-per-second` is a list of suites itself"),
        (
            "suite = \"one.toml\"\nset = { tread = 1 }",
            "`set` of part `one.toml`: unknown key `tread`",
        ),
        ("suite = \"one.toml\"\nset = { threads = 0 }", "threads"),
        (
            "suite = \"one.toml\"\nphases = [\"write\"]",
            "error: list.toml:8: `phases` is `write`, wanted `read`",
        ),
        (
            "suite = \"one.toml\"\nrepeat = 2",
            "error: list.toml:8: unknown key `repeat`\nhint: did you mean `repeats`?",
        ),
    ] {
        list(&world, &["suite = \"one.toml\"", part]);
        let done = world.run(&["run", "list.toml", "--target", "f.dat"]);
        assert_eq!(done.code, 2, "{part}: {done:?}");
        assert!(done.err.contains(said), "{part}: {}", done.err);
        assert!(!world.store().exists() && !world.path("f.dat").exists(), "{part}");
    }
}

#[test]
fn a_target_that_is_too_small_for_one_part_stops_all_with_the_reason() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"", "suite = \"one.toml\"\nset = { file_size = \"1PiB\" }"]);
    let done = world.run(&["run", "list.toml", "--target", "f.dat"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("part 2 of 2: one cannot be played"), "{done:?}");
    assert!(!world.path("f.dat").exists());
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\""]);
    let refused = |words: &[&str], said: &str| {
        let done = world.run(&[&["run"][..], words].concat());
        assert_eq!(done.code, 2, "{words:?}: {done:?}");
        assert!(done.err.contains(said), "{words:?}: {}", done.err);
    };
    refused(&["one.toml", "--target", "null:", "--from-part", "2"], "--from-part is for lists");
    refused(&["list.toml", "--target", "null:", "--from-part", "2"], "`list` has 1 parts");
    refused(&["list.toml", "--target", "null:", "--group", "1f"], "--from-part");
    refused(&["list.toml", "--target", "null:", "--precision", "2%"], "not played in rounds");
    refused(&["list.toml", "--target", "null:", "--set", "trads=2"], "unknown key `trads`");
    let elsewhere = ["list.toml", "--target", "null:", "--set", "elsewhere.threads=2"];
    refused(&elsewhere, "hint: `--set` is for every part of a list: what is for one goes into");
    refused(&["list.toml", "--target", "null:", "--scale", "0"], "more than 0");
    world.ok(&["run", "list.toml", "--target", "null:"]);
    let strange = ["list.toml", "--target", "null:", "--from-part", "1", "--group", "00000000"];
    refused(&strange, "no run belongs to the group 00000000");
}

/// Starts a sequence and waits until its stderr has a line with `until`.
fn start(world: &World, words: &[&str], until: &str) -> (Child, std::path::PathBuf) {
    let log = world.path("log");
    let mut command = world.command(words);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
    let child = command.spawn().unwrap();
    wait(&log, until);
    (child, log)
}

fn wait(log: &Path, until: &str) {
    let begun = Instant::now();
    while !std::fs::read_to_string(log).unwrap().contains(until) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{until} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn interrupted((child, log): (Child, std::path::PathBuf)) -> Done {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = Done::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, 130, "{done:?}");
    Done { err: std::fs::read_to_string(log).unwrap(), ..done }
}

/// The command that a hint says.
fn command_of<'a>(done: &'a Done, goes_on: &str) -> Vec<&'a str> {
    let line = done.err.lines().find(|line| line.contains(goes_on));
    let line = line.unwrap_or_else(|| panic!("{goes_on}: {}", done.err));
    let command = line.split('`').nth(1).unwrap();
    command.split(' ').skip(1).collect()
}

#[test]
fn a_run_under_way_is_not_removed_and_that_is_a_refusal() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"\nset = { time = \"20s\" }"]);
    let running = start(&world, &["run", "list.toml", "--target", "null:"], "to make");
    let done = world.run(&["rm", "last", "--yes"]);
    assert_eq!(done.code, 3, "{done:#?}");
    assert!(done.err.contains("is under way in another process"), "{done:#?}");
    interrupted(running);
    world.ok(&["rm", "last", "--yes"]);
}

#[test]
fn a_directory_that_is_not_there_stops_a_list_before_its_first_part() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"", "suite = \"one.toml\""]);
    let done = world.run(&["run", "list.toml", "--target", "bench/"]);
    assert_eq!(done.code, 5, "{done:#?}");
    assert!(done.err.contains("bench/ names a directory that does not exist"), "{done:#?}");
    assert!(done.err.contains("mkdir bench/"), "{done:#?}");
    assert!(!world.path("bench").exists(), "nothing was made");
}

#[test]
fn ctrl_c_in_a_part_stores_it_and_says_how_to_go_on() {
    let world = World::new();
    let long = "suite = \"one.toml\"\nset = { read = { time = \"700ms\", threads = [1, 2] } }";
    list(&world, &["suite = \"one.toml\"", long, "suite = \"one.toml\""]);
    let words = ["run", "list.toml", "--target", "null:"];
    let done = interrupted(start(&world, &words, "r2 one on null:"));
    assert!(done.err.contains("interrupted of list: 1 of 3 parts"), "{}", done.err);
    assert!(done.out.contains("   2  r2     interrupted"), "{}", done.out);
    assert!(!done.err.contains("part 3 of 3"), "{}", done.err);
    let finished = world.ok(&command_of(&done, "finishes that part"));
    assert_eq!(command_of(&finished, "goes on"), command_of(&done, "goes on with part 3"));
    let rest = world.ok(&command_of(&done, "goes on with part 3"));
    assert!(rest.err.contains("part 3 of 3: one\n"), "{}", rest.err);
    let runs = json(&world.ok(&["list", "--json"]).out)["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 3);
    assert!(runs.iter().all(|run| run["state"] == "complete"), "{runs:?}");
    assert!(runs.iter().all(|run| run["part"]["group"] == runs[0]["part"]["group"]), "{runs:?}");
}

#[test]
fn a_model_is_not_waited_for_between_parts() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"", "suite = \"one.toml\"\npause = \"1h\""]);
    let done = world.ok(&["run", "list.toml", "--target", &world.model(), "--time", "10ms"]);
    assert!(!done.err.contains("pausing"), "{}", done.err);
}

#[test]
fn ctrl_c_between_parts_ends_the_pause() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"", "suite = \"one.toml\"\npause = \"1h\""]);
    let words = ["run", "list.toml", "--target", "null:", "--json"];
    let done = interrupted(start(&world, &words, "pausing for 1 h"));
    let document = json(&done.out);
    assert_eq!(document["state"], "interrupted");
    assert_eq!(document["parts"].as_array().unwrap().len(), 1);
    assert_eq!(document["exit_code"], 130);
    let next = command_of(&done, "goes on with part 2");
    assert!(document["go_on"][0].as_str().unwrap().contains(&next.join(" ")), "{document}");
    let rest = world.ok(&next);
    assert_eq!(json(&rest.out)["group"], document["group"], "no pause before the first");
}

#[test]
fn a_scaled_run_says_so() {
    let world = World::new();
    write(&world, "one.toml", ONE);
    let done = world.ok(&["run", "one.toml", "--target", "f.dat", "--scale", "25%"]);
    assert!(
        done.out.starts_with("Scaled: sizes and totals are 0.25 times the suite's.\n\n"),
        "{done:?}"
    );
    assert_eq!(std::fs::metadata(world.path("f.dat")).unwrap().len(), 2 << 20);
    assert!(world.ok(&["table"]).out.starts_with("Scaled: "));
    let run = json(&world.ok(&["show", "--json"]).out);
    assert!(run["suite_text"].as_str().unwrap().contains("\nscaled = 0.25\n"), "{run}");
    let words = ["run", "one.toml", "--target", "g.dat", "--scale", "0.25", "--size", "4MiB"];
    world.ok(&words);
    assert_eq!(std::fs::metadata(world.path("g.dat")).unwrap().len(), 4 << 20);
}

#[test]
fn the_short_form_plays_each_part_once() {
    let world = World::new();
    list(
        &world,
        &[
            "suite = \"one.toml\"\nrepeats = 9\npause = \"1h\"",
            "suite = \"one.toml\"\npause = \"1h\"",
        ],
    );
    let done = world.ok(&["run", "list.toml", "--target", "null:", "--quick", "--json"]);
    assert_eq!(json(&done.out)["of"], 2);
}

#[test]
fn several_targets_are_one_run() {
    let world = World::new();
    write(&world, "one.toml", ONE);
    let words = ["run", "one.toml", "--target", "a.dat", "--target", "b.dat"];
    let done = world.ok(&words);
    assert!(done.out.contains("a.dat, b.dat"), "{}", done.out);
    for name in ["a.dat", "b.dat"] {
        assert_eq!(std::fs::metadata(world.path(name)).unwrap().len(), 8 << 20);
    }
    let run = json(&world.ok(&["show", "--json"]).out);
    assert_eq!(run["targets"][1]["given"], "b.dat");
    assert_eq!(run["target"]["files"], 2);
    assert!(world.ok(&["list"]).out.contains("a.dat, b.dat"));
    std::fs::hard_link(world.path("a.dat"), world.path("c.dat")).unwrap();
    let same = world.run(&["run", "one.toml", "--target", "a.dat", "--target", "c.dat"]);
    assert_eq!(same.code, 3, "{same:?}");
    assert!(same.err.contains("is the same as"), "{same:?}");
    let twin = world.run(&["run", "one.toml", "--target", "a.dat", "--target", "null:"]);
    assert_eq!(twin.code, 2, "{twin:?}");
    assert!(twin.err.contains("null: is a twin, and there are several targets"), "{twin:?}");
}

#[test]
fn a_dry_run_refuses_what_the_run_would() {
    let world = World::new();
    list(&world, &["suite = \"one.toml\"\nrepeats = 2"]);
    world.ok(&["run", "list.toml", "--target", "null:"]);
    for (words, said) in [
        (&["--from-part", "2", "--group", "0badcafe"][..], "no run belongs to the group 0badcafe"),
        (&["--from-part", "3"], "--from-part 3, but `list` has 2 parts"),
    ] {
        let both = [&[][..], &["--dry-run"]].map(|dry| {
            let start = ["run", "list.toml", "--target", "null:"];
            world.run(&[&start, words, dry].concat())
        });
        for done in &both {
            assert_eq!(done.code, 2, "{done:#?}");
            assert!(done.err.contains(said) && done.err.contains("hint: "), "{done:#?}");
        }
        assert_eq!(both[0].err, both[1].err);
    }
    // Of one suite, too.
    for dry in [&[][..], &["--dry-run"]] {
        let start = ["run", "one.toml", "--target", "null:", "--from-part", "2"];
        assert_eq!(world.run(&[&start[..], dry].concat()).code, 2);
    }
}

#[test]
fn a_list_without_end_is_refused_at_once() {
    let world = World::new();
    list(&world, &vec!["suite = \"one.toml\""; 20_000]);
    let begun = Instant::now();
    let done = world.run(&["run", "list.toml", "--target", "null:"]);
    assert_eq!(done.code, 2, "{done:#?}");
    assert!(done.err.contains("`[[part]]` is `20000`, wanted at most 1000"), "{done:#?}");
    assert!(done.err.contains("hint: make several lists of it"), "{done:#?}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    list(&world, &["suite = \"one.toml\"\nrepeats = 1000"; 11]);
    let done = world.run(&["run", "list.toml", "--target", "null:"]);
    assert!(done.err.contains("`repeats of all parts` is `11000`, wanted 1 to 10000"), "{done:#?}");
}
