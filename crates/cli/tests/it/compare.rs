//! `plimsoll compare`

use serde_json::Value;

use crate::world::World;

/// Three runs of four cells on simulated drives, three visits each: r1 and r3 on one, r2 on a
/// faster one.
fn with_runs() -> World {
    let world = World::new();
    let models = world.model();
    let other = models.replace("nvme.toml", "sata-ssd.toml");
    for (seed, target) in [("1", &other), ("2", &models), ("3", &other)] {
        world.ok(&[
            "run",
            "random-read",
            "--classic",
            "--seed",
            seed,
            "--target",
            target,
            "--time",
            "200ms",
            "--set",
            "queue_depth=1,4,16,64",
            "--set",
            "repeats=3",
        ]);
    }
    world
}

#[test]
fn a_faster_drive_is_called_so() {
    let world = with_runs();
    let done = world.ok(&["compare", "r1", "r2"]);
    assert_eq!(done.err, "");
    let out = &done.out;
    assert!(out.starts_with("A  r1  random-read on model:"), "{out}");
    assert!(out.contains("One thing differs: target ("), "{out}");
    assert!(out.contains("Different: B is faster than A, x"), "{out}");
    assert!(out.contains("drift between them cannot be told from a difference"), "{out}");
    let table: Vec<_> = out.lines().filter(|line| line.contains("K +-")).collect();
    assert_eq!(table.len(), 4, "{out}");
    // Three short visits know the rates of few in flight to a quarter only.
    assert!(table.iter().skip(2).all(|line| line.ends_with("faster")), "{out}");
    assert!(!table.iter().any(|line| line.ends_with("slower")), "{out}");
    let details = world.ok(&["compare", "r1", "r2", "--cells"]).out;
    assert!(details.contains("3/3") && details.contains("Welch"), "{details}");
}

#[test]
fn a_repeat_of_the_first_is_a_bracket_and_two_alike_are_an_a_a() {
    let world = with_runs();
    let out = world.ok(&["compare", "r1", "r2", "r3"]).out;
    assert!(out.contains("C is A's configuration once more: x"), "{out}");
    let out = world.ok(&["compare", "1", "last"]).out;
    assert!(out.contains("This is an A/A comparison"), "{out}");
    assert!(!out.contains("Different:"), "{out}");
}

#[test]
fn the_exit_code_is_asked_for() {
    let world = with_runs();
    for (words, code) in [
        (&["compare", "r2", "r1"][..], 0),
        (&["compare", "r2", "r1", "--exit-code"], 8),
        (&["compare", "r1", "r2", "--exit-code"], 0),
        (&["compare", "r1", "r3", "--exit-code", "--json"], 0),
        (&["compare", "r1"], 2),
        (&["compare", "r1", "1"], 2),
        (&["compare", "r1", "r9"], 2),
        (&["compare", "r1", "r2", "--margin", "3"], 2),
        (&["compare", "r1", "r2", "--confidence", "100%"], 2),
    ] {
        let done = world.run(words);
        assert_eq!(done.code, code, "{words:?}: {done:#?}");
    }
}

#[test]
fn what_cannot_be_compared_is_not_as_good_as_before() {
    let world = with_runs();
    let words = ["run", "random-write", "--classic", "--seed", "4", "--target"];
    world.ok(&[&words[..], &[world.model().as_str(), "--time", "200ms"]].concat());
    let other = ["compare", "r1", "r4"];
    let done = world.ok(&other);
    assert!(done.out.contains("nothing can be compared"), "{done:?}");
    assert_eq!(world.run(&[&other[..], &["--exit-code"]].concat()).code, 9);
    assert_eq!(world.run(&[&other[..], &["--exit-code", "--json"]].concat()).code, 9);
    let worse = world.run(&["compare", "r2", "r1", "r4", "--exit-code"]);
    assert_eq!(worse.code, 8, "what is worse is said first: {worse:?}");
}

#[test]
fn lists_that_were_played_again_are_compared_part_by_part() {
    let world = World::new();
    let list = "schema = 1\nname = \"two\"\n[[part]]\nsuite = \"random-read\"\n[[part]]\n\
                suite = \"random-write\"\n";
    std::fs::write(world.path("two.toml"), list).unwrap();
    let target = world.model();
    let words = ["run", "two.toml", "--target", &target, "--time", "100ms", "--max-time", "60s"];
    world.ok(&words);
    world.ok(&words);
    let listed = world.ok(&["list", "--json"]).out;
    let document: Value = serde_json::from_str(&listed).unwrap();
    let group = |run: usize| document["runs"][run]["part"]["group"].as_str().unwrap().to_owned();
    let (first, second) = (group(0), group(2));
    assert_ne!(first, second);
    let done = world.ok(&["compare", "--group", &first, "last", "--exit-code"]);
    for part in ["1  random-read\n", "2  random-write\n", "A  r1", "B  r3", "A  r2", "2 parts: "] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    let done = world.ok(&["compare", "--group", &first, "last", "--json"]).out;
    let document: Value = serde_json::from_str(&done).unwrap();
    assert_eq!(document["schema"], "plimsoll.comparisons/1");
    assert_eq!(document["groups"], serde_json::json!([&first, &second]));
    assert_eq!(document["parts"][1]["suite"], "random-write");
    assert_eq!(document["parts"][1]["comparison"]["schema"], "plimsoll.comparison/1");
    let counts = document["counts"].as_object().unwrap().values();
    assert_eq!(counts.map(|count| count.as_u64().unwrap()).sum::<u64>(), 2, "{document}");
    // Each by what its comparison says, and not only as many.
    let verdicts = |of: &[&str]| {
        let parts = document["parts"].as_array().unwrap().iter();
        let against = parts.flat_map(|part| part["comparison"]["against"].as_array().unwrap());
        against.filter(|one| of.contains(&one["overall"]["verdict"].as_str().unwrap())).count()
    };
    let counts = |of: &[&str]| -> usize {
        of.iter().map(|name| document["counts"][name].as_u64().unwrap() as usize).sum()
    };
    for name in ["same", "inconclusive"] {
        assert_eq!(counts(&[name]), verdicts(&[name]), "{document}");
    }
    assert_eq!(counts(&["worse", "different"]), verdicts(&["different"]), "{document}");
    assert_eq!((&document["list"], &document["lonely"]), (&"two".into(), &serde_json::json!([])));
    world.ok(&["rm", "r3", "--yes"]);
    let fewer = world.run(&["compare", "--group", &first, &second, "--exit-code"]);
    assert_eq!(fewer.code, 9, "{fewer:?}");
    assert!(fewer.out.contains("not in every group: 1"), "{fewer:?}");
    let fewer = world.run(&["compare", "--group", &first, &second, "--json"]);
    let document: Value = serde_json::from_str(&fewer.out).unwrap();
    assert_eq!(document["lonely"], serde_json::json!([1]));
    assert_eq!(document["parts"].as_array().unwrap().len(), 1);
    assert_eq!(document["parts"][0]["number"], 2);
    assert_eq!((fewer.code, &document["exit_code"]), (0, &serde_json::json!(9)));
    for (words, why) in [
        (&["compare", "--group", &first, &first][..], "is named twice"),
        (&["compare", "--group", &first, "nowhere"], "no run belongs to the group nowhere"),
    ] {
        let refused = world.run(words);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(why), "{refused:?}");
    }
}

#[test]
fn the_document_holds_every_verdict() {
    let world = with_runs();
    let done = world.ok(&["compare", "r1", "r2", "r3", "--json"]);
    let document: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(document["schema"], "plimsoll.comparison/1");
    assert_eq!(document["sides"].as_array().unwrap().len(), 3);
    let against = &document["against"][0];
    assert_eq!(against["overall"]["verdict"], "different");
    assert_eq!(against["design"], "apart");
    assert_eq!(against["cells"].as_array().unwrap().len(), 4);
    assert_eq!(document["against"][1]["bracket"], true);
    // The same runs, the same document.
    assert_eq!(world.ok(&["compare", "r1", "r2", "r3", "--json"]).out, done.out);
}
