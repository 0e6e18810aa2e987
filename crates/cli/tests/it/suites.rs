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
