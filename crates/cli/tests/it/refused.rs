//! What makes no sense is refused beforehand, in words that say what would.

use serde_json::Value;

use crate::world::{Done, World, start};

/// Ends with that code and says all of these.
#[track_caller]
fn is(done: &Done, code: i32, parts: &[&str]) {
    assert_eq!(done.code, code, "{done:#?}");
    for part in parts {
        assert!(done.err.contains(part), "`{part}` is not said: {done:#?}");
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Only ever dry: without the check, a real run would take all the memory there is.
#[test]
fn a_memory_twin_larger_than_the_memory() {
    let world = World::new();
    let run = "run random-read --target memory:100TiB --time 1ms --dry-run";
    is(&world.run(&words(run)), 3, &["takes 100 TiB of memory", "available", "hint: ask for less"]);
    world.ok(&words(&format!("{run} --size 1MiB")));
}

#[test]
fn numbers_out_of_range_name_the_range() {
    let world = World::new();
    let dry = "run random-read --target null: --dry-run";
    for (line, parts) in [
        (format!("{dry} --set rounds.ramp=8761h"), &["at most an hour"][..]),
        (
            format!("{dry} --set rounds.visits_max=18446744073709551615"),
            &["the number 18446744073709551615, too large", "whole number"],
        ),
        (format!("{dry} --precision 1e-30"), &["0.1% to 100%"]),
        (format!("{dry} --precision -5%"), &["0.1% to 100%"]),
        (format!("{dry} --set rounds.precision=0.0000001"), &["0.1 % to 100 %"]),
        ("compare r1 r2 --margin -5%".to_owned(), &["0.1% to 100%"]),
        ("compare r1 r2 --confidence 99.9999%".to_owned(), &["50% to 99.99%"]),
        (format!("{dry} --size 16EiB"), &["just below 16 EiB"]),
        (format!("{dry} --size 15EiB"), &["1B to 8EiB"]),
    ] {
        let done = world.run(&words(&line));
        is(&done, 2, parts);
        assert!(!done.err.contains("use '--"), "{done:#?}");
    }
}

#[test]
fn options_that_would_do_nothing() {
    let world = World::new();
    for option in ["--verify", "--keep", "--quiet", "--cpus 0", "--tolerate 3", "--hang-limit 1s"] {
        let done = world.run(&words(&format!("compare r1 r2 {option}")));
        is(&done, 2, &["--live"]);
    }
    is(
        &world.run(&words("explain r1 --factor d=4")),
        2,
        &["factor `d` needs several runs", "hint: name two runs or more"],
    );
    let twice = "explain r1 r2 --factor d=4,12 --factor d=1,2";
    is(&world.run(&words(twice)), 2, &["factor `d` is given twice"]);
    let many: Vec<String> = (1..=30).map(|n| format!("r{n}")).collect();
    let line = format!("compare {}", many.join(" "));
    is(&world.run(&words(&line)), 2, &["30 runs are named, at most 26"]);
}

#[test]
fn a_suite_of_ours_is_named_and_not_a_file_that_nobody_has() {
    let world = World::new();
    std::fs::write(world.path("short"), "abc").unwrap();
    let done = world.run(&["run", "random-read", "--target", "short", "--dry-run"]);
    is(&done, 2, &["error: target size 3B: block size"]);
    assert!(!done.err.contains(".toml"), "{done:#?}");
}

#[test]
fn a_directory_is_no_store() {
    let world = World::new();
    let done = world.run(&["list", "--store", "home"]);
    is(&done, 6, &["error: home is a directory, wanted a file", "hint: name a file in it"]);
}

#[test]
fn help_is_a_command_too() {
    let world = World::new();
    let help = world.ok(&["help", "compare"]).out;
    assert_eq!(help, world.ok(&["compare", "--help"]).out);
    assert!(world.ok(&["help"]).out.contains("Commands:"));
}

#[test]
fn looking_leaves_nothing_beside_the_store() {
    let world = World::new();
    world.ok(&words("run random-read --target null: --time 20ms --classic --store s.db"));
    world.ok(&["list", "--store", "s.db"]);
    assert_eq!(world.files(), ["home", "s.db"]);
    world.ok(&["show", "--store", "s.db"]);
    assert_eq!(world.files(), ["home", "s.db"]);
}

#[test]
fn a_scratch_file_is_listed_by_its_directory() {
    let world = World::new();
    world.ok(&words("run random-read --size 1MiB --time 20ms --classic"));
    let list = world.ok(&["list"]).out;
    let place = world.dir.canonicalize().unwrap();
    assert!(list.contains(&format!("{}/ (scratch)", place.display())), "{list}");
}

#[test]
fn a_killed_run_is_called_so_everywhere() {
    let world = World::new();
    let run = "run random-read --target null: --classic --set threads=1,2 --time 20s";
    for killed in ["r1", "r2"] {
        let mut child = start(&world, &words(run));
        let state = world.ok(&["show", killed]).out;
        assert!(state.contains("state      running"), "under way: {state}");
        child.kill().unwrap();
        child.wait().unwrap();
        let state = world.ok(&["show", killed]).out;
        assert!(state.contains("state      killed, 0 of 2 visits"), "{state}");
        for command in ["explain", "table"] {
            let said = world.ok(&[command, killed]).out;
            assert!(said.contains("killed, 0 of 2 visits, 2 missed: 2 not made"), "{said}");
        }
    }
    let compared = world.run(&["compare", "r1", "r2"]).out;
    assert_eq!(compared.matches(": killed, 0 of 2").count(), 2, "{compared}");
    let list = world.ok(&["list", "--json"]).out;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(
        (&list["runs"][0]["live"], &list["runs"][0]["state"]),
        (&false.into(), &"killed".into())
    );
    let resumed = world.run(&["resume", "--max-time", "1s"]);
    is(&resumed, 2, &["resuming r2, the newest", "r1 did not either", "not played in rounds"]);
}

/// A layout of another method, and one that does not exist.
#[test]
fn layouts_that_do_not_fit() {
    let world = World::new();
    let target = ["--target", "null:", "--time", "1ms", "--set", "rounds.visits_max=3"];
    let run = [&["run", "random-read", "--size", "1MiB"][..], &target].concat();
    world.ok(&run);
    let table = |layout: &str| world.run(&["table", "last", "--layout", layout]);
    is(&table("bonnie"), 2, &["the layout bonnie does not fit", "write-block", "--layout grid"]);
    is(&table("bonny"), 2, &["bonnie", "crystaldiskmark"]);
    let dd = world.ok(&["table", "last", "--layout", "dd"]).out;
    assert!(dd.contains("+0 records in\n") && dd.contains(" copied, "), "{dd}");
}

#[test]
fn a_field_written_as_an_option_and_a_target_without_its_option_are_understood() {
    let world = World::new();
    for (words, wanted) in [
        (&["run", "random-read", "--block-size", "8K"][..], "--set block_size=VALUE"),
        (&["run", "random-read", "--queue_depth=4"], "--set queue_depth=VALUE"),
        (&["run", "random-read", "/tmp/x.dat"], "--target /tmp/x.dat"),
    ] {
        let done = world.run(words);
        assert!(done.code == 2 && done.err.contains(wanted), "{done:?}");
        assert!(!done.err.contains("similar argument"), "{done:?}");
    }
    let done = world.run(&["run", "random-read", "--targat", "null:"]);
    assert!(done.err.contains("--target") && !done.err.contains("--set"), "{done:?}");
}
