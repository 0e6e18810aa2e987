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
