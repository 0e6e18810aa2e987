//! `plimsoll layer`

use serde_json::Value;

use crate::world::World;

fn worth(world: &World, words: &[&str]) -> Value {
    let words = [&["layer", "worth"], words, &["--json"]].concat();
    serde_json::from_str(&world.ok(&words).out).unwrap()
}

fn near(seen: &Value, wanted: f64, share: f64) {
    let seen = seen.as_f64().unwrap();
    assert!((seen / wanted - 1.0).abs() < share, "{seen}, wanted {wanted}");
}

/// The published quotas of gp3: 3000 requests of up to 256 KiB and 125 MiB a second.
#[test]
fn a_cloud_volume_is_worth_it_until_it_is_nine_tenths_full() {
    let world = World::new();
    let found = worth(&world, &["array:gp3-alone", "--for", "sqlite", "--seed", "1"]);
    assert_eq!(
        (&found["verdict"], &found["block_bytes"]),
        (&Value::from("worth"), &Value::from(4096))
    );
    near(&found["break_even"], 0.905, 0.01);
    for (at, gain) in [(1, 4.26), (2, 3.62), (3, 2.85), (4, 1.98)] {
        let fill = &found["fills"][at];
        near(&fill["gain"]["value"], gain, 0.03);
        let [low, high] = ["low", "high"].map(|end| fill["gain"][end].as_f64().unwrap());
        assert!(low < gain && gain < high && high / low < 1.15, "{fill}");
    }
    // Half reads, which the layer leaves as they are: 2 / (1/3000 + 1/10900), by 3000.
    near(&found["fills"][2]["mixes"][0]["gain"], 1.57, 0.03);
    // The stored run says the same, as an answer and again.
    let again = worth(&world, &["last", "--for", "sqlite"]);
    assert_eq!(again, found);
    let told = world.ok(&["explain", "last"]).out;
    assert!(told.contains("Yes: filled to 60 %, the layer would make 3.6"), "{told}");
}

#[test]
fn a_drive_that_maps_pages_itself_is_told_what_it_would_cost() {
    let world = World::new();
    let drive = world.model().replace("nvme", "sata-ssd");
    let words = ["layer", "worth", drive.as_str(), "--minutes", "1", "--seed", "1"];
    let told = world.ok(&words).out;
    assert!(told.starts_with("No: filled to 60 %, the layer would cost you "), "{told}");
    // Runs of another suite have cells that will do; a short one says too little of them.
    world.ok(&["run", "bm-flash", "--target", "array:gp3-alone", "--quick", "--seed", "1"]);
    let found = worth(&world, &["last", "--for", "innodb"]);
    assert_eq!(
        (&found["verdict"], &found["block_bytes"]),
        (&Value::from("unknown"), &Value::from(16384))
    );
    near(&found["fills"][2]["gain"]["value"], 1.36, 0.15);
}

#[test]
fn what_does_not_tell_is_refused_with_what_is_missing() {
    let world = World::new();
    world.ok(&["run", "random-read", "--target", &world.model(), "--quick"]);
    let failed = world.run(&["layer", "worth", "last"]);
    let message = failed.err;
    assert!(message.contains("it has no random writes of 4 KiB to 128 KiB"), "{message}");
    let failed = world.run(&["layer", "worth", "./no-such-place"]);
    assert!(failed.err.contains("./no-such-place is not there"), "{}", failed.err);
}

fn writes_per_second(world: &World, target: &str, block: &str) -> f64 {
    let block = format!("block_size={block}");
    let words = ["run", "random-write", "--target", target, "--size", "256MiB", "--time", "200s"];
    let how = ["--classic", "--set", &block, "--set", "queue_depth=1", "--seed", "1"];
    world.ok(&[&words[..], &how].concat());
    let shown: Value = serde_json::from_str(&world.ok(&["show", "last", "--json"]).out).unwrap();
    shown["cells"][0]["iops"].as_f64().unwrap()
}

/// Drives of which writes in a log, reads of the collector and requests with a price of their own are the cost.
#[test]
fn the_layer_makes_what_was_said_of_it() {
    let world = World::new();
    for (place, database, block) in
        [("array:mtron-alone", "innodb", "16KiB"), ("array:gp3-alone", "sqlite", "4KiB")]
    {
        let said = worth(&world, &[place, "--for", database, "--seed", "1"]);
        for at in [1, 2, 4] {
            let fill = &said["fills"][at];
            let target = format!("layer:{place},fill={}", fill["fill"]);
            let made = writes_per_second(&world, &target, block);
            near(&Value::from(made), fill["writes"]["value"].as_f64().unwrap(), 0.15);
        }
    }
}

/// What limits a volume that is full is its collector, and not the host.
#[test]
fn the_collector_is_named_where_it_limits() {
    let world = World::new();
    let words = "run random-write --target layer:array:raptor-alone,fill=0.9 --size 64MiB --time 60s \
        --classic --set block_size=8KiB --set queue_depth=8";
    world.ok(&words.split_whitespace().collect::<Vec<&str>>());
    let told = world.ok(&["explain", "last", "--all"]).out;
    let told = told.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(told.contains("the queue is in the layer"), "{told}");
    let copied = told.split("its collector copied ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(copied.parse::<f64>().is_ok_and(|copied| copied > 1.5), "{told}");
    assert!(!told.contains("The bottleneck is in the host"), "{told}");
}

fn run_on(world: &World, suite: &str, target: &str) -> crate::world::Done {
    let how = ["--verify", "--quick", "--size", "32MiB", "--time", "50ms", "--classic"];
    world.run(&[&["run", suite, "--target", target][..], &how].concat())
}

/// Reads, writes, requests of half a block and flushes; what is read is what was written.
#[test]
fn suites_play_through_the_layer_and_leave_nothing() {
    let world = World::new();
    std::fs::create_dir(world.path("d")).unwrap();
    for target in ["layer:d", "layer:array:sata-alone", "layer:d,fill=80%"] {
        for suite in ["read-write-mix", "wal"] {
            let done = run_on(&world, suite, target);
            assert_eq!(done.code, 0, "{suite} on {target}: {done:?}");
        }
        let shown: Value =
            serde_json::from_str(&world.ok(&["show", "last", "--json"]).out).unwrap();
        let counters = shown["cells"][0]["visits"][0]["counters"].as_array().unwrap();
        assert!(counters.iter().any(|one| one["name"] == "blocks written"), "{counters:?}");
    }
    assert_eq!(std::fs::read_dir(world.path("d")).unwrap().count(), 0);
}

/// A place and the layer on it, in turns: each has a file of its own.
#[test]
fn a_place_is_compared_with_the_layer_on_it() {
    let world = World::new();
    std::fs::create_dir(world.path("d")).unwrap();
    for (name, target) in [("a.toml", "d"), ("b.toml", "layer:d")] {
        let side = format!(
            "suite = \"random-write\"\ntarget = \"{target}\"\nsize = \"16MiB\"\n\
             time = \"50ms\"\nquick = true\n"
        );
        std::fs::write(world.path(name), side).unwrap();
    }
    world.ok(&["compare", "--live", "a.toml", "b.toml", "--blocks", "2"]);
    // In one file they would find what the other wrote.
    std::fs::write(world.path("d/x"), "").unwrap();
    for name in ["a.toml", "b.toml"] {
        let side = std::fs::read_to_string(world.path(name)).unwrap();
        std::fs::write(world.path(name), side.replace("d\"", "d/x\"")).unwrap();
    }
    let words = ["compare", "--live", "a.toml", "b.toml", "--blocks", "2", "--overwrite", "d/x"];
    let failed = world.run(&words);
    let said = "cannot take turns on ";
    assert!(failed.code == 3 && failed.err.contains(said), "{failed:?}");
}

#[test]
fn a_volume_is_refused_where_there_can_be_none() {
    let world = World::new();
    for (target, said) in [
        ("layer:", "needs a directory, file or device"),
        ("layer:null:", "needs a directory, file or device"),
        ("layer:layer:d", "needs a directory, file or device"),
        ("layer:.,fill=95%", "wanted a fill of 10% to 90%"),
        ("layer:array:nope", "cannot use array nope"),
        ("layer:no/x", "its directory no does not exist"),
    ] {
        let failed = run_on(&world, "random-write", target);
        assert!(failed.code != 0 && failed.err.contains(said), "{target}: {failed:?}");
    }
    let words = ["run", "random-write", "--target", "layer:.", "--size", "64MiB", "--dry-run"];
    let told = world.ok(&words).out;
    assert!(told.contains("layer-plimsoll-scratch.dat (136 MiB)"), "{told}");
    assert_eq!(world.files(), ["home"]);
}
