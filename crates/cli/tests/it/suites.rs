use crate::world::World;

#[test]
fn suites_are_listed_and_shown() {
    let world = World::new();
    insta::assert_snapshot!("suite-list", world.ok(&["suite", "list"]).out);
    insta::assert_snapshot!("suite-show", world.ok(&["suite", "show", "bm-flash"]).out);
    let words = ["suite", "show", "random-write", "--set", "queue_depth=1,8", "--time", "5s"];
    insta::assert_snapshot!("suite-show-set", world.ok(&words).out);
}

#[test]
fn a_suite_written_out_is_the_same_suite() {
    let world = World::new();
    let toml = world.ok(&["suite", "show", "bm-flash", "--quick", "--toml"]).out;
    std::fs::write(world.path("mine.toml"), &toml).unwrap();
    assert_eq!(world.ok(&["suite", "show", "mine.toml", "--toml"]).out, toml);
    let json = |name: &[&str]| {
        let words = [&["suite", "show", "--json"], name].concat();
        serde_json::from_str::<serde_json::Value>(&world.ok(&words).out).unwrap()
    };
    let plan = json(&["mine.toml"]);
    assert_eq!(plan, json(&["bm-flash", "--quick"]));
    assert_eq!(plan["schema"], "plimsoll.suite/1");
    assert_eq!(plan["suite"]["phases"][1]["cells"].as_array().unwrap().len(), 42);
}

#[test]
fn a_mistake_in_a_file_has_its_line() {
    let world = World::new();
    std::fs::write(world.path("bad.toml"), "schema = 1\nname = \"bad\"\nspeed = 3\n").unwrap();
    let done = world.run(&["suite", "show", "bad.toml"]);
    assert_eq!(done.code, 2);
    assert!(done.err.starts_with("error: bad.toml:3: unknown key `speed`\nhint: "), "{done:?}");
}

#[test]
fn the_plan_of_a_steady_phase_is_shown() {
    let world = World::new();
    let shown = world.ok(&["suite", "show", "snia-iops"]).out;
    for part in [
        "rounds   1 min for each cell, 56 min in all",
        "window   the last 5 rounds, and the last half of at least 10",
        "rule     the rate of read_share 0, block_size 4KiB:",
        "highest and lowest at",
        "cap      25 rounds, 23 h 20 min",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn rounds_until_it_is_steady_are_not_rounds_to_a_precision() {
    let world = World::new();
    let shown = world.ok(&["suite", "show", "snia-iops", "--set", "method=rounds"]).out;
    assert!(
        shown.contains("560 to 1400 visits, in rounds until it is steady, see above"),
        "{shown}"
    );
    assert!(!shown.contains("known to") && !shown.contains("no round begins"), "{shown}");
    let target = ["--target", "null:", "--set", "method=rounds"];
    let dry = world.ok(&[&["run", "snia-iops", "--dry-run"][..], &target].concat()).out;
    assert!(dry.contains("Makes 560 to 1400 visits to 56 cells, one right after"), "{dry}");
    assert!(!dry.contains("known to"), "{dry}");
    let both = world.ok(&["suite", "show", "steady-write"]).out;
    assert!(both.contains("known to 5 %; phase write until steady, see above"), "{both}");
    assert!(both.contains("in this phase: 4 GiB, 16.4 MiB/s at least"), "{both}");
    // 1.25 times what rounds take, and no fraction of a second.
    let odd = "schema = 1\nname = \"odd\"\n[rounds]\nvisit_time = \"1337ms\"\nvisits_min = 9\n\
               visits_max = 9\n[[phase]]\nname = \"p\"\ntime = 30\ngrid.threads = [1, 2, 3, 4, 5, 6, 7]\n";
    std::fs::write(world.path("odd.toml"), odd).unwrap();
    let text = world.ok(&["suite", "show", "odd.toml", "--toml"]).out;
    let line = text.lines().find(|line| line.starts_with("time_max = ")).unwrap();
    let number = line.trim_start_matches("time_max = \"").trim_end_matches("s\"");
    assert!(number.parse::<u64>().is_ok(), "{line}");
}

#[test]
fn what_can_never_be_steady_is_said_before_it_is_played() {
    let world = World::new();
    let text = "schema = 1\nname = \"few\"\n[[phase]]\nname = \"w\"\noperation = \"write\"\n\
                time = 1\nsteady = { round = \"20ms\", rounds_max = 6, volume = 0 }\n";
    std::fs::write(world.path("few.toml"), text).unwrap();
    let why = "warning: few.toml:7: phase `w` can never be called steady: it has 6 rounds at most, and \
               the rule looks at the last half of at least 10\n\
               hint: set `steady.rounds_max` to 10 or more\n";
    let shown = world.ok(&["suite", "show", "few.toml"]);
    assert_eq!(shown.err, why);
    let played = world.ok(&["run", "few.toml", "--target", "null:"]);
    assert!(played.err.starts_with(why), "{played:?}");
}

#[test]
fn what_amounts_end_takes_no_0_ns() {
    let world = World::new();
    for name in ["bonnie", "dd-40g", "xdd", "copy-40g", "one-dvd-per-second", "sara-ssd"] {
        let shown = world.ok(&["suite", "show", name]).out;
        assert!(!shown.contains(" 0 ns"), "{name}: {shown}");
    }
    let dry = world.ok(&["run", "copy-40g", "--quick", "--target", "null:", "--dry-run"]);
    assert!(!format!("{}{}", dry.out, dry.err).contains("0 ns"), "{dry:?}");
}

#[test]
fn a_list_of_places_is_saved_and_played_again() {
    let world = World::new();
    let small =
        ["--set", "file_size=16MiB", "--set", "bytes=1MiB", "--set", "block_size=32KiB,64KiB"];
    let list = |seed: &str| {
        let words = ["suite", "show", "xdd", "--format", "list", "--seed", seed];
        world.ok(&[&words[..], &small].concat()).out
    };
    let text = list("7");
    assert_eq!(text, list("7"));
    assert_ne!(text, list("8"));
    assert_eq!(text.matches("op = \"read\"").count(), 32 + 16, "{text}");
    std::fs::write(world.path("places.toml"), &text).unwrap();
    let played = world.ok(&["run", "places.toml", "--target", "memory:64MiB", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&played.out).unwrap();
    assert_eq!(document["cells"][0]["visits"][0]["requests"], 32);
    assert_eq!(document["cells"][1]["visits"][0]["bytes"], 1 << 20);
    for (name, why) in [("bm-flash", "time ends it"), ("bonnie", "no single requests")] {
        let refused = world.run(&["suite", "show", name, "--format", "list"]);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains(why), "{refused:?}");
    }
    let refused = world.run(&["suite", "show", "xdd", "--format", "list"]);
    let told = "too many for a list: one has at most 18 MiB";
    assert!(refused.err.contains(told) && refused.err.contains("--scale 0.01"), "{refused:?}");
    // As many as fit when they are counted, and do not once they are written.
    let many = ["--set", "bytes=none", "--set", "block_size=32KiB", "--set", "operations=420000"];
    let words = [&["suite", "show", "xdd", "--format", "list"][..], &many].concat();
    let refused = world.run(&words);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
    assert!(refused.err.contains(told), "{refused:?}");
}

#[test]
fn suites_are_found_by_their_question() {
    let world = World::new();
    let done = world.run(&["run", "flush"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("did you mean `wal` or `pg-test-fsync`?"), "{}", done.err);
    let list = world.ok(&["suite", "list"]).out;
    let at = |name: &str| list.find(&format!("\n  {name} ")).unwrap();
    assert!(list.starts_with("Start here\n  which "), "{list}");
    assert!(at("wal") < at("random-read") && at("random-read") < at("bonnie"), "{list}");
    let json = world.ok(&["suite", "list", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let suites = json["suites"].as_array().unwrap();
    let wal = suites.iter().find(|suite| suite["name"] == "wal").unwrap();
    assert_eq!(wal["group"], "Start here");
}

#[test]
fn what_is_in_flight_among_commits_is_called_sessions() {
    let world = World::new();
    let words = ["run", "wal", "--quick", "-q", "--seed", "1", "--target"];
    let table = world.ok(&[&words[..], &[&world.model()]].concat()).out;
    let head = |phase: &str| {
        let mut lines = table.lines().skip_while(|line| *line != phase);
        lines.nth(1).unwrap_or_default().split_whitespace().next().unwrap_or_default()
    };
    assert_eq!(head("commits-fdatasync"), "sessions", "{table}");
}
