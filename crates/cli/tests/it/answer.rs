//! What `plimsoll explain` begins with.

use crate::world::World;

const DISK: &str = concat!("model:", env!("CARGO_MANIFEST_DIR"), "/../../models/disk.toml");

/// The answer's lines, without their marks.
fn answer(world: &World) -> Vec<String> {
    let said: serde_json::Value =
        serde_json::from_str(&world.ok(&["explain", "--json"]).out).unwrap();
    let first = &said["runs"][0]["sections"][0];
    assert_eq!(first["question"], "answer");
    let findings = first["findings"].as_array().unwrap();
    let text = |finding: &serde_json::Value| finding["text"].as_str().unwrap().to_owned();
    findings.iter().map(text).collect()
}

#[test]
fn a_rate_that_the_suite_sets_is_no_limit_of_the_storage() {
    let world = World::new();
    world.ok(&["run", "random-read", "--quick", "--set", "rate=50", "--target", DISK]);
    let said = answer(&world);
    assert!(said[0].ends_with("set by the suite), up to 0.2 MiB/s (`read`)."), "{said:?}");
    assert!(said[1].contains("the suite sets the rate"), "{said:?}");
    assert!(!said.join(" ").contains("one at a time"), "{said:?}");
}

#[test]
fn a_rate_that_another_tool_set_is_no_limit_either() {
    let world = World::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../import/tests/data/fio-3.33-rate.json");
    world.ok(&["import", data]);
    let said = answer(&world).join(" ");
    assert!(said.contains("Limit: unknown") && !said.contains("one at a time"), "{said}");
}

#[test]
fn of_many_kinds_of_requests_the_highest_rates_come_first() {
    let world = World::new();
    let mut text = "schema = 1\nname = \"many\"\ntitle = \"many\"\nfile_size = \"1MiB\"\n\
        [defaults]\ntime = \"50ms\"\naccess = \"uniform\"\nblock_size = \"4KiB\"\n\n"
        .to_owned();
    let kinds = [
        "operation = \"read\"",
        "operation = \"write\"",
        "operation = \"trim\"",
        "read_share = 0.5",
    ];
    for (name, kind) in ["a", "b", "c", "d"].into_iter().zip(kinds) {
        text.push_str(&format!("[[phase]]\nname = \"{name}\"\n{kind}\n\n"));
    }
    std::fs::write(world.path("many.toml"), text).unwrap();
    world.ok(&["run", "./many.toml", "--target", "memory:1MiB"]);
    let said = answer(&world);
    assert!(said[0].starts_with("Highest rates: "), "{said:?}");
    assert!(said[0].ends_with("; 1 more in the table."), "{said:?}");
    let rates = said[0].split(" [").filter_map(|part| {
        let mut words = part.rsplit(' ').take(2);
        let (unit, number) = (words.next()?, words.next()?);
        let times = if unit == "M" { 1e6 } else { 1e3 };
        Some(number.parse::<f64>().ok()? * times)
    });
    let rates: Vec<f64> = rates.collect();
    assert!(rates.len() == 3 && rates.is_sorted_by(|a, b| a >= b), "{rates:?}: {said:?}");
}

#[test]
fn where_nothing_was_measured_that_is_the_answer() {
    let world = World::new();
    let mut child =
        world.command(&["run", "random-read", "--target", "null:", "--set", "time=60s"]);
    let mut child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut err = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("visits to make") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut err, &mut line).unwrap() > 0);
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    child.wait().unwrap();
    let said = answer(&world);
    assert_eq!(said, ["Nothing was measured: no visit was completed."]);
    let whole = world.ok(&["explain"]).out;
    assert!(whole.contains("Continue with `plimsoll resume r1`."), "{whole}");
}
