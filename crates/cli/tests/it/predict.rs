//! `plimsoll predict`

use serde_json::Value;

use crate::world::World;

fn json(world: &World, words: &[&str]) -> Value {
    serde_json::from_str(&world.ok(words).out).unwrap()
}

#[test]
fn an_array_is_predicted_cell_by_cell_with_the_part_that_limits_it() {
    let world = World::new();
    let found = json(&world, &["predict", "areca-raid0x12", "--json"]);
    assert_eq!(
        (&found["schema"], &found["suite"]),
        (&"plimsoll.prediction/1".into(), &"bm-flash".into())
    );
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 84);
    let cell = |phase: &str, name: &str| {
        cells.iter().find(|cell| cell["phase"] == phase && cell["cell"] == name).unwrap()
    };
    // Published: 63088 with 10 threads and 62361 with 40, by the lock of the file; 1740 of 1 MiB, by the link.
    for threads in [10, 40] {
        let answer = &cell("read", &format!("block_size 4KiB, threads {threads}"))["answer"];
        assert_eq!(answer["binding"], "file-lock", "{answer}");
        let rate = answer["rate"].as_f64().unwrap();
        assert!((61_000.0..65_000.0).contains(&rate), "{rate}");
    }
    let wide = &cell("read", "block_size 1MiB, threads 40")["answer"];
    assert_eq!(wide["binding"], "link", "{wide}");
    let told = world.ok(&["predict", "areca-raid0x12"]).out;
    let (answer, table) = told.split_once("\n\n").unwrap();
    assert!(answer.starts_with("`areca-raid0x12` would make up to "), "{told}");
    assert!(answer.lines().count() <= 8, "{told}");
    assert_eq!(table.lines().count(), 85, "{told}");
    let list = world.ok(&["predict", "--list"]).out;
    assert!(list.lines().count() > 10 && list.contains("areca-raid0x12"), "{list}");
}

#[test]
fn a_newcomer_adds_a_drive_and_an_array_as_files() {
    let world = World::new();
    let drive = "schema = 1\nkind = \"block-mapped\"\nwhy = \"mine\"\n[parameters]\n\
        size = { value = \"32GB\", origin = \"datasheet\", from = \"leaflet\" }\n\
        read_time = { value = \"100us\", origin = \"datasheet\", from = \"leaflet\" }\n\
        read_rate = { value = \"500MB/s\", origin = \"assumed\", range = [\"100MB/s\", \"900MB/s\"] }\n\
        write_rate = { value = \"75MB/s\", origin = \"datasheet\", from = \"leaflet\" }\n\
        merge_time = { value = \"10ms\", origin = \"datasheet\", from = \"leaflet\" }\n";
    let array = "schema = 1\nwhy = \"two of mine\"\nlevel = \"raid0\"\nmembers = 2\nchunk = \"128KiB\"\n\
        host = \"xeon-2009\"\nlink = \"pcie1-x8\"\ncontroller = \"plain-sata\"\ndrive = \"mine\"\n";
    std::fs::write(world.path("mine.toml"), drive).unwrap();
    std::fs::write(world.path("two.toml"), array).unwrap();
    let words =
        ["predict", "two.toml", "--suite", "random-read", "--set", "queue_depth=1,32", "--json"];
    let found = json(&world, &words);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &found["array"]), (2, &"two".into()));
    let rate = |at: usize| cells[at]["answer"]["rate"].as_f64().unwrap();
    // One drive answers one request in a little more than 100 us; two of them, 32 requests.
    assert!((6_000.0..10_000.0).contains(&rate(0)), "{}", rate(0));
    assert!((14_000.0..20_000.0).contains(&rate(1)), "{}", rate(1));
    assert_eq!(cells[1]["answer"]["binding"], "drives");
    let told = world.ok(&words[..6]).out;
    assert!(told.contains("Nobody knows `"), "{told}");
    for (name, text, wanted) in [
        ("none.toml", None, "no array"),
        ("bad.toml", Some(array.replace("mine", "yours")), "the name of a part"),
        ("raid.toml", Some(array.replace("raid0", "raid5")), "raid5"),
        ("key.toml", Some(array.replace("why", "wy")), "wy"),
    ] {
        if let Some(text) = text {
            std::fs::write(world.path(name), text).unwrap();
        }
        let said = world.run(&["predict", name]);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains(wanted) && said.err.contains(name), "{}", said.err);
    }
    let flushes = world.run(&["predict", "two.toml", "--suite", "wal"]);
    assert_eq!(flushes.code, 2);
    assert!(flushes.err.contains("no cell of `wal` can be predicted"), "{}", flushes.err);
}

#[test]
fn files_that_the_array_does_not_hold_are_refused() {
    let said = World::new().run(&["predict", "areca-raid5x4", "--size", "1TiB"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("that the array holds"), "{}", said.err);
}

/// A run on a simulated drive of so many requests per second, eight cells.
fn measured(world: &World) {
    let model = "schema = 1\nname = \"one\"\nwhy = \"a test\"\n[model]\nsize = \"16GiB\"\n\
        [model.read]\nlatency = \"100us\"\niops = 40000\n[model.write]\nlatency = \"20us\"\n";
    std::fs::write(world.path("one"), model).unwrap();
    let set = ["--set", "block_size=4K,16K", "--set", "queue_depth=1,2,4,64"];
    let run =
        ["run", "random-read", "--target", "model:one", "--size", "1GiB", "--seed", "3", "-q"];
    world.ok(&[&run[..], &set].concat());
}

#[test]
fn a_drive_is_fitted_to_a_run_and_predicts_an_array_of_it() {
    let world = World::new();
    measured(&world);
    let fit = ["predict", "nvme-alone", "--fit", "r1", "--out", "one-ssd.toml"];
    let found = json(&world, &[&fit[..], &["--json"]].concat());
    assert_eq!(found["schema"], "plimsoll.fit/1");
    assert_eq!(found["cells"].as_array().unwrap().len(), 8);
    assert!(found["median_error"].as_f64().unwrap() < 0.08, "{found:#}");
    let part = std::fs::read_to_string(world.path("one-ssd.toml")).unwrap();
    assert!(part.contains("origin = \"fitted\", from = \"r1\""), "{part}");
    let again = world.run(&fit);
    assert!(again.code != 0 && again.err.contains("one-ssd.toml"), "{}", again.err);
    let told = world.ok(&fit[..4]).out;
    assert!(told.contains("of the drive `pm9a3` fitted to 8 cells of r1"), "{told}");
    let array = |members| {
        format!(
            "schema = 1\nwhy = \"four\"\nlevel = \"raid0\"\nmembers = {members}\nchunk = \"128KiB\"\n\
            host = \"linux-6\"\nlink = \"pcie4-x4\"\nlink-per = \"drive\"\ncontroller = \"ports\"\ndrive = \"one-ssd\"\n"
        )
    };
    for members in [1, 4] {
        std::fs::write(world.path(&format!("raid0x{members}.toml")), array(members)).unwrap();
    }
    let words = ["predict", "raid0x4.toml", "--suite", "random-read", "--set", "queue_depth=256"];
    let four = json(&world, &[&words[..], &["--json"]].concat());
    let rate = four["cells"][0]["answer"]["rate"].as_f64().unwrap();
    assert!((120_000.0..165_000.0).contains(&rate), "{rate}");
    // Against the run: one drive agrees with it, four do not.
    for (array, is_near) in [("raid0x1.toml", true), ("raid0x4.toml", false)] {
        let against = json(&world, &["predict", array, "--against", "last", "--json"]);
        assert_eq!(against["schema"], "plimsoll.prediction-check/1");
        let most = against["p90_error"].as_f64().unwrap();
        assert_eq!(most < 0.2, is_near, "{array}: {most}");
        let missed = against["answer"]["findings"].as_array().unwrap().len() > 1;
        assert_eq!(missed, !is_near, "{array}");
    }
    let told = world.ok(&["predict", "raid0x4.toml", "--against", "last"]).out;
    assert!(told.starts_with("The prediction for `raid0x4` is off by"), "{told}");
    assert!(!told.contains("cannot be predicted"), "{told}");
    // Cells that are left out are counted.
    let buffered = ["run", "random-read", "--target", "model:one", "--size", "64MiB", "-q"];
    world.ok(&[&buffered[..], &["--set", "direct=true,false", "--seed", "3"]].concat());
    let told = world.ok(&["predict", "raid0x4.toml", "--against", "last"]).out;
    assert!(told.contains("1 of 2 cells cannot be predicted"), "{told}");
}

#[test]
fn runs_that_say_nothing_of_the_drive_are_refused() {
    let world = World::new();
    measured(&world);
    // The lock of one file hides whatever the drives do, and so does a cache that has it all.
    let hidden = world.run(&["predict", "areca-raid0x12", "--fit", "r1"]);
    assert_eq!(hidden.code, 2);
    assert!(hidden.err.contains("the cells say nothing of the drive"), "{}", hidden.err);
    assert!(hidden.err.contains("nvme-alone"), "{}", hidden.err);
    let cached = ["run", "random-read", "--target", "model:one", "--size", "64MiB", "-q"];
    world.ok(&[&cached[..], &["--set", "direct=false", "--seed", "3"]].concat());
    for words in [["nvme-alone", "--fit"], ["nvme-alone", "--against"]] {
        let none = world.run(&["predict", words[0], words[1], "last"]);
        assert_eq!(none.code, 2);
        assert!(none.err.contains("no cell of these runs"), "{}", none.err);
        assert!(none.err.contains("page cache"), "{}", none.err);
    }
    let both = world.run(&["predict", "nvme-alone", "--fit", "r1", "--against", "r1"]);
    assert_eq!(both.code, 2);
}

const ONE_LOAD: [&str; 6] = [
    "--suite",
    "random-read",
    "--set",
    "queue_depth=64",
    "--vary",
    "members=4..6,level=raid5,raid10",
];

#[test]
fn arrays_are_compared_and_the_cheapest_is_found() {
    let world = World::new();
    let words = [&["predict", "nvme-raid10x4"], &ONE_LOAD[..]].concat();
    let fastest = json(&world, &[&words[..], &["--json"]].concat());
    assert_eq!(fastest["schema"], "plimsoll.choice/1");
    assert_eq!(fastest["keys"], serde_json::json!(["members", "level"]));
    let arrays = fastest["arrays"].as_array().unwrap();
    let values: Vec<&serde_json::Value> = arrays.iter().map(|one| &one["values"]).collect();
    assert_eq!(values.len(), 6, "{values:?}");
    let rates: Vec<f64> = arrays.iter().map(|one| one["rate"].as_f64().unwrap()).collect();
    assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
    assert_eq!(arrays[0]["drives"], 6);
    // The fewest drives that reach it, though more make more.
    let goal = ["--goal", "rate=300K response<=5ms capacity>=10TB"];
    let told = world.ok(&[&words[..], &goal].concat()).out;
    assert!(told.contains("for the least by members=4, level=raid5"), "{told}");
    assert!(told.contains("short of the goal"), "{told}");
    let never = world.ok(&[&words[..], &["--goal", "rate=90000000"]].concat()).out;
    assert!(
        never.starts_with("None of 6 arrays reaches the goal. The nearest is members=6"),
        "{never}"
    );
    // With prices the cheaper drive wins, whatever their number.
    let part = std::fs::read_to_string("../../parts/pm9a3.toml").unwrap();
    for (name, price) in [("dear", 900), ("cheap", 100)] {
        let text = part.replace("kind =", &format!("price = {price}\nkind ="));
        std::fs::write(world.path(&format!("{name}.toml")), text).unwrap();
    }
    let array = std::fs::read_to_string("../../arrays/nvme-raid10x4.toml").unwrap();
    std::fs::write(world.path("mine.toml"), array).unwrap();
    let words = [&["predict", "mine.toml"], &ONE_LOAD[..5]].concat();
    let vary = ["members=4..8,drive=dear,cheap,level=raid0", "--goal", "rate=300000", "--json"];
    let found = json(&world, &[&words[..], &vary].concat());
    assert_eq!(found["arrays"][0]["values"], serde_json::json!(["4", "cheap", "raid0"]));
    assert_eq!(found["arrays"][0]["price"], 400.0);
    // What has no price is no bargain.
    let free = part.replace("why =", "why = \"no price\"\n#");
    std::fs::write(world.path("free.toml"), free).unwrap();
    let vary = ["members=4,drive=dear,free,level=raid0", "--goal", "rate=300000", "--json"];
    let found = json(&world, &[&words[..], &vary].concat());
    assert_eq!(found["arrays"][0]["values"], serde_json::json!(["4", "dear", "raid0"]));
    assert!(found["arrays"][1]["price"].is_null(), "{}", found["arrays"]);
    let told = world.ok(&[&words[..], &vary[..3]].concat()).out;
    assert!(told.contains("Nobody knows `"), "{told}");
}

/// In the lab md made as little as half of what is predicted.
#[test]
fn several_writes_to_parity_are_said_to_be_promised_too_much() {
    let world = World::new();
    let of = |suite: &str, more: &[&str]| {
        let words = [&["predict", "nvme-raid5x4", "--suite", suite], more].concat();
        world.ok(&words).out.contains("to RAID with parity: take half")
    };
    assert!(of("bm-flash", &[]));
    assert!(!of("random-read", &[]));
    assert!(of("random-write", &["--set", "queue_depth=8"]));
    assert!(!of("random-write", &["--set", "queue_depth=1"]));
    let chosen = ["--set", "queue_depth=8", "--vary", "members=4,6"];
    assert!(of("random-write", &chosen));
}

#[test]
fn what_varies_nothing_is_refused() {
    let world = World::new();
    let refused = |words: &[&str]| {
        let said = world.run(&[&["predict", "nvme-raid10x4"], words].concat());
        assert_eq!(said.code, 2, "{words:?}: {}", said.err);
        said.err
    };
    let one = &ONE_LOAD[..4];
    for (vary, wanted) in [
        ("members", "varies nothing"),
        ("members=9..4", "is no range"),
        ("chunk=64K..4K", "is no range"),
        ("membrs=4,6", "unknown field `membrs`"),
        ("members=4,6,members=8", "`members` varies twice"),
        ("drive.price=1..3", "in the part's own file"),
        ("members=1..256,legs=1..256,x=1,2", "131072 arrays"),
    ] {
        let said = refused(&[one, &["--vary", vary]].concat());
        assert!(said.contains(wanted), "{vary}: {said}");
    }
    let goals = ["speed=3", "response>=5ms", "rate<=3000", "rate=nan", "rate=-5", "response=1"];
    for goal in goals.into_iter().chain(["rate=5,rate=6", "capacity=20"]) {
        assert!(refused(&[one, &["--goal", goal]].concat()).contains("is no goal"), "{goal}");
    }
    let cells = refused(&["--vary", "members=4,6"]);
    assert!(cells.contains("84 cells, wanted one") && cells.contains("--set"), "{cells}");
}

#[test]
fn an_array_is_played_in_time_and_agrees_with_its_prediction() {
    let world = World::new();
    let set = ["--set", "block_size=4K,64K", "--set", "queue_depth=1,16,64", "--seed", "3", "-q"];
    let short = ["--set", "rounds.visit_time=50ms"];
    for (array, suite, most) in [
        ("nvme-raid0x4", "random-read", 0.08),
        ("areca-raid0x12", "random-read", 0.02),
        ("gp3-alone", "random-write", 0.08),
    ] {
        let target = format!("array:{array}");
        let run = ["run", suite, "--target", &target, "--size", "1GiB"];
        let is_short = array != "gp3-alone";
        world.ok(&[&run[..], &set, if is_short { &short } else { &[] }].concat());
        let found = json(&world, &["predict", array, "--against", "last", "--json"]);
        let cells = found["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 6);
        for cell in cells {
            let error = cell["error"].as_f64().unwrap();
            assert!(error.abs() < most, "{array} {suite}: {cell}");
        }
    }
    // The barrier of the studies: the lock of the file, then the link.
    let told = world.ok(&["explain", "r2", "--all"]).out;
    assert!(told.contains("most requests wait in file lock, not in the devices below"), "{told}");
    assert!(told.contains("most requests wait in link"), "{told}");
    // The same seed, the same figures.
    let again = |seed| {
        let run = ["run", "random-read", "--target", "array:raptor-alone", "--size", "1GiB", "-q"];
        world.ok(&[&run[..], &["--seed", seed]].concat());
        let found = json(&world, &["predict", "raptor-alone", "--against", "last", "--json"]);
        found["cells"][0]["measured"].as_f64().unwrap()
    };
    let first = again("5");
    assert!(again("5") == first && again("6") != first, "{first}");
}

/// Short of a member reads take more work; what is predicted are whole arrays.
#[test]
fn an_array_without_a_member_is_played_and_not_predicted() {
    let world = World::new();
    let whole = world.ok(&["predict", "--list", "nvme-raid5x4"]).out;
    for state in ["whole", "degraded", "rebuilding"] {
        let text = format!("state = \"{state}\"\n{whole}");
        std::fs::write(world.path(&format!("{state}.toml")), text).unwrap();
        let target = format!("array:{state}.toml");
        let set = ["--set", "queue_depth=64", "--set", "block_size=128K", "--size", "1GiB"];
        let run = ["run", "random-read", "--target", &target, "--seed", "3", "-q"];
        world.ok(&[&run[..], &set].concat());
    }
    let rate = |run: &str| {
        let found = json(&world, &["predict", "nvme-raid5x4", "--against", run, "--json"]);
        found["cells"][0]["measured"].as_f64().unwrap()
    };
    let rates = ["r1", "r2", "r3"].map(rate);
    assert!(rates[1] < 0.8 * rates[0] && rates[2] < 0.9 * rates[0], "{rates:?}");
    let said = world.run(&["predict", "degraded.toml"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("--target array:degraded.toml"), "{}", said.err);
    let striped = std::fs::read_to_string(world.path("degraded.toml")).unwrap();
    std::fs::write(world.path("raid0.toml"), striped.replace("raid5", "raid0")).unwrap();
    let said = world.run(&["run", "random-read", "--target", "array:raid0.toml", "-q"]);
    assert!(said.code == 2 && said.err.contains("takes away data"), "{}", said.err);
}

#[test]
fn texts_of_the_program_are_printed_and_slips_are_told() {
    let world = World::new();
    let part = world.ok(&["predict", "--list", "pm9a3"]).out;
    assert_eq!(part, std::fs::read_to_string("../../parts/pm9a3.toml").unwrap());
    for (words, wanted) in [
        (&["predict", "pm9a3"][..], "`pm9a3` is a part"),
        (&["predict", "array:nvme-alone"], "`plimsoll predict nvme-alone`"),
        (&["predict", "nvme-raid10"], "did you mean `nvme-raid10x"),
        (&["predict", "--list", "pm9a4"], "did you mean `pm9a3`"),
        (&["predict", "xyz"], "has the arrays of the program"),
    ] {
        let said = world.run(words);
        assert_eq!(said.code, 2, "{words:?}: {}", said.err);
        assert!(said.err.contains(wanted), "{words:?}: {}", said.err);
    }
}

#[test]
fn arrays_as_targets_are_named_rightly_or_refused() {
    let world = World::new();
    std::fs::write(world.path("bad.toml"), "schema = 1\nwhy = \"no array\"\n").unwrap();
    for (target, wanted) in [
        ("array:", "a name or a file"),
        ("array:nothing", "predict --list"),
        ("array:nvme-raid5", "did you mean `nvme-raid5x4`"),
        ("array:bad.toml", "host"),
    ] {
        let said = world.run(&["run", "random-read", "--target", target, "-q"]);
        assert_eq!(said.code, 2, "{target}: {}", said.err);
        assert!(said.err.contains(wanted), "{target}: {}", said.err);
    }
    let large =
        world.run(&["run", "random-read", "--target", "array:mtron-alone", "--size", "1TiB"]);
    assert_eq!(large.code, 2, "{}", large.err);
}
