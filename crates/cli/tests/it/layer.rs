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
    near(&found["break_even"], 0.91, 0.01);
    for (at, gain) in [(1, 7.1), (2, 5.4), (3, 3.9), (4, 2.4)] {
        let fill = &found["fills"][at];
        near(&fill["gain"]["value"], gain, 0.03);
        let [low, high] = ["low", "high"].map(|end| fill["gain"][end].as_f64().unwrap());
        assert!(low < gain && gain < high && high / low < 1.15, "{fill}");
    }
    // Half reads, which the layer leaves as they are: 2 / (1/3000 + 1/16400), by 3000.
    near(&found["fills"][2]["mixes"][0]["gain"], 1.69, 0.03);
    // The stored run says the same, as an answer and again.
    let again = worth(&world, &["last", "--for", "sqlite"]);
    assert_eq!(again, found);
    let told = world.ok(&["explain", "last"]).out;
    assert!(told.contains("Yes: filled to 60 %, the layer would make 5.4"), "{told}");
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
