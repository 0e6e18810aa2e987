//! Files that commands write for the user: new ones whole, old ones only by `--force`, none through
//! a link.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

use crate::world::{Done, World};

const REFUSED: i32 = 3;

/// Commands that write the file `w/plimsoll.1`, or one of that name among others.
fn writers(world: &World, force: bool) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> =
        ["export last --format json -o w/plimsoll.1", "report last -o w/plimsoll.1", "man --dir w"]
            .iter()
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect();
    if force {
        found.iter_mut().for_each(|words| words.push("--force".to_owned()));
    } else {
        let here = world.dir.to_string_lossy().into_owned();
        let words = ["probe", &here, "--capture", "w/plimsoll.1"];
        found.push(words.map(str::to_owned).to_vec());
    }
    found
}

fn with_a_run() -> World {
    let world = World::new();
    world.ok(&["run", "random-read", "--target", "null:", "--time", "50ms", "--classic"]);
    std::fs::create_dir(world.path("w")).unwrap();
    world
}

#[test]
fn what_is_there_is_replaced_only_by_force() {
    let world = with_a_run();
    let path = world.path("w/plimsoll.1");
    for words in writers(&world, false) {
        std::fs::write(&path, "mine").unwrap();
        let done = world.run(&words);
        assert_eq!(done.code, REFUSED, "{words:?}: {done:?}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine", "{words:?}");
        assert_eq!(std::fs::read_dir(world.path("w")).unwrap().count(), 1, "all or none");
    }
    for words in writers(&world, true) {
        std::fs::write(&path, "mine").unwrap();
        world.ok(&words);
        assert_ne!(std::fs::read(&path).unwrap(), b"mine", "{words:?}");
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    let world = with_a_run();
    let path = world.path("w/plimsoll.1");
    std::fs::write(world.path("precious"), "mine").unwrap();
    for target in ["precious", "missing"] {
        symlink(world.path(target), &path).unwrap();
        for words in [writers(&world, false), writers(&world, true)].concat() {
            let done = world.run(&words);
            assert_eq!(done.code, REFUSED, "{words:?}: {done:?}");
            assert!(done.err.contains("symbolic link"), "{words:?}: {done:?}");
            assert_eq!(std::fs::read(world.path("precious")).unwrap(), b"mine", "{words:?}");
            assert!(!world.path("missing").exists(), "{words:?}");
            assert!(path.is_symlink(), "{words:?}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn another_name_of_a_replaced_file_keeps_what_it_has() {
    let world = with_a_run();
    let (path, other) = (world.path("w/plimsoll.1"), world.path("precious"));
    for words in writers(&world, true) {
        std::fs::write(&other, "mine").unwrap();
        let _ = std::fs::remove_file(&path);
        std::fs::hard_link(&other, &path).unwrap();
        world.ok(&words);
        assert_eq!(std::fs::read(&other).unwrap(), b"mine", "{words:?}");
        assert_eq!(std::fs::metadata(&other).unwrap().nlink(), 1, "{words:?}");
    }
}

/// Whoever could not read the old file cannot read the new one.
#[test]
fn a_replaced_file_keeps_its_mode() {
    let world = with_a_run();
    let path = world.path("w/plimsoll.1");
    for (mode, kept) in [(0o600, 0o600), (0o640, 0o640), (0o666, 0o666), (0o4755, 0o755)] {
        for words in writers(&world, true) {
            std::fs::write(&path, "mine").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            world.ok(&words);
            let new = std::fs::metadata(&path).unwrap();
            assert_ne!(new.len(), 4, "{words:?}");
            assert_eq!(new.mode() & 0o7777, kept, "{words:?}");
        }
    }
    let name = ["export", "last", "--format", "json", "-o", "new.json"];
    assert!(world.command(&name).status().unwrap().success());
    let plain = std::fs::File::create(world.path("plain")).unwrap().metadata().unwrap();
    assert_eq!(std::fs::metadata(world.path("new.json")).unwrap().mode(), plain.mode());
}

#[test]
fn what_is_no_file_stays_what_it_is() {
    let world = with_a_run();
    let path = world.path("w/plimsoll.1");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    for words in [writers(&world, false), writers(&world, true)].concat() {
        let done = world.run(&words);
        assert_eq!(done.code, REFUSED, "{words:?}: {done:?}");
        assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    for words in [writers(&world, false), writers(&world, true)].concat() {
        let done = world.run(&words);
        assert_eq!(done.code, REFUSED, "{words:?}: {done:?}");
        assert!(path.is_dir());
    }
}

/// A store is replaced by nothing, and nothing is given a name that SQLite would take for a part of it,
/// whether or not the store is the one in use, and whether or not anything has the name.
#[test]
fn names_of_stores_are_not_written() {
    let world = with_a_run();
    let own = world.store().display().to_string();
    std::fs::copy(&own, world.path("w/plimsoll.1")).unwrap();
    let copy = std::fs::read(world.path("w/plimsoll.1")).unwrap();
    for words in writers(&world, true) {
        let done = world.run(&words);
        assert_eq!(done.code, REFUSED, "{words:?}: {done:?}");
        assert_eq!(std::fs::read(world.path("w/plimsoll.1")).unwrap(), copy, "{words:?}");
    }
    let here = world.dir.to_string_lossy().into_owned();
    for store in [own.as_str(), "w/plimsoll.1"] {
        for end in ["-wal", "-shm", "-journal", "-r7.lock", ".studies"] {
            let name = format!("{store}{end}");
            let is_there = world.path(&name).exists();
            for words in [
                vec!["export", "--format", "csv", "--force", "-o", &name],
                vec!["report", "--force", "-o", &name],
                vec!["probe", &here, "--capture", &name],
                vec!["run", "random-write", "--size", "1MiB", "--time", "20ms", "--target", &name],
            ] {
                let done = world.run(&words);
                assert_eq!(done.code, REFUSED, "{words:?}: {done:?}");
                assert_eq!(world.path(&name).exists(), is_there, "{words:?}");
            }
        }
    }
    // What is like such a name without a store is a name like any other.
    world.ok(&["export", "--format", "csv", "-o", "w/other-wal"]);
}

/// Its numbers are not what was written: it is refused, other runs are read, and it can be removed.
#[test]
fn a_run_with_changed_numbers_is_refused_and_can_go() {
    let world = World::with_two_runs();
    let store = world.store();
    world.ok(&["list"]);
    let script = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); \
                  c.execute('DROP TRIGGER visit_is_kept'); \
                  c.execute('UPDATE visit SET elapsed_ns = elapsed_ns + 1 WHERE run = 1'); c.commit()";
    let mut python = std::process::Command::new("python3");
    let done = python.args(["-c", script]).arg(&store).output();
    if !done.is_ok_and(|done| done.status.success()) {
        println!("skipped: no python3 with sqlite3");
        return;
    }
    let done = world.run(&["show", "r1"]);
    assert!(done.code != 0 && done.err.contains("visits of r1 cannot be read"), "{done:?}");
    world.ok(&["show", "r2"]);
    world.ok(&["show", "last"]);
    let done = world.ok(&["rm", "r1", "--yes"]);
    assert!(done.err.contains("warning: "), "{done:?}");
    assert!(!world.ok(&["list"]).out.contains("r1 "));
}

/// Python's SQLite, for what nobody does by our program. `false` where there is none.
pub fn harm(store: &std::path::Path, script: &str) -> bool {
    let script =
        format!("import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); {script}; c.commit()");
    let done = std::process::Command::new("python3").args(["-c", &script]).arg(store).output();
    done.is_ok_and(|done| done.status.success())
}

#[test]
fn a_damaged_run_hides_no_other() {
    let world = World::with_two_runs();
    world.ok(&["run", "random-read", "--target", "null:", "--time", "50ms", "--classic"]);
    if !harm(&world.store(), "c.execute('DELETE FROM run WHERE number = 2')") {
        println!("skipped: no python3 with sqlite3");
        return;
    }
    let done = world.run(&["list"]);
    assert_eq!(done.code, 6, "{done:?}");
    assert!(done.out.contains("r1 ") && done.out.contains("r3 "), "{done:?}");
    assert!(done.err.contains("warning: r2: ") && done.err.contains("plimsoll rm r2"), "{done:?}");
    let done = world.run(&["list", "--json"]);
    assert_eq!(done.code, 6, "{done:?}");
    let document: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(document["runs"].as_array().unwrap().len(), 2);
    assert_eq!(document["damaged"][0]["id"], "r2");
    world.ok(&["show", "last"]);
    world.ok(&["rm", "r2", "--yes"]);
    assert_eq!(world.ok(&["list"]).err, "");
}

/// Nothing that looks through all runs is stopped by one of them, which it names once.
#[test]
fn a_damaged_run_stops_nothing_that_is_about_others() {
    let world = World::with_two_runs();
    let study = "title = \"a study\"\n[stack]\ntarget = [\"null:\", \"memory:16MiB\"]\n[measure]\n\
                 suites = [\"random-read\"]\nrepeats = 2\ntime = \"20ms\"\nquick = true\n";
    std::fs::write(world.path("study.toml"), study).unwrap();
    if !harm(&world.store(), "c.execute('DELETE FROM run WHERE number = 2')") {
        println!("skipped: no python3 with sqlite3");
        return;
    }
    let named = |done: &Done| {
        let count = done.err.matches("warning: r2 is left out: ").count();
        assert_eq!(count, 1, "{done:?}");
        assert!(done.err.contains("plimsoll rm r2"), "{done:?}");
    };
    named(&world.ok(&["study", "study.toml"]));
    for words in [
        &["explain", "--group", "last"][..],
        &["report", "--group", "last", "--json"],
        &["study", "report", "study.toml"],
        &["compare", "--group", "last", "last"],
    ] {
        let done = world.run(words);
        assert!(done.code != 6, "{words:?}: {done:?}");
        named(&done);
    }
    let done = world.run(&["resume"]);
    assert!(done.code == 2 && done.err.contains("there is no run to resume"), "{done:?}");
    named(&done);
    // One of the group whose visits are damaged.
    let script = "c.execute('DROP TRIGGER visit_is_kept'); \
                  c.execute('UPDATE visit SET repeat = 7 WHERE run = 4')";
    assert!(harm(&world.store(), script));
    let done = world.ok(&["explain", "--group", "last"]);
    named(&done);
    assert_eq!(done.err.matches("warning: r4 is left out: ").count(), 1, "{done:?}");
}

/// What `last` and the names of suites mean is found among the others, and the damaged run is named. What
/// cannot be taken back is not done to another run.
#[test]
fn a_damaged_run_is_passed_over_by_name() {
    let world = World::with_two_runs();
    world.ok(&["run", "random-write", "--target", "null:", "--time", "50ms", "--classic"]);
    let script = "c.execute('DROP TRIGGER run_is_kept'); \
                  c.execute(\"UPDATE run SET suite = 'x' WHERE number = 3\")";
    if !harm(&world.store(), script) {
        println!("skipped: no python3 with sqlite3");
        return;
    }
    for words in [
        &["show", "last"][..],
        &["table", "last"],
        &["export", "last", "--format", "json"],
        &["explain", "last"],
        &["report", "last", "last-1", "--json"],
        &["compare", "last", "last-1"],
    ] {
        let done = world.ok(words);
        assert_eq!(done.err.matches("warning: r3 is left out: ").count(), 1, "{words:?}: {done:?}");
    }
    let shown = world.ok(&["show", "last", "--json"]).out;
    let document: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(document["run"], "r2", "{shown}");
    let done = world.run(&["rm", "last", "--yes"]);
    assert_eq!(done.code, 6, "{done:?}");
    world.ok(&["show", "r2"]);
}

#[test]
fn a_damaged_calibration_counts_as_none() {
    let world = World::with_two_runs();
    let script = "c.execute(\"INSERT INTO calibration (machine, started_unix_ns, version, body) \
                  VALUES ('m', 1, 1, '{}')\")";
    if !harm(&world.store(), script) {
        println!("skipped: no python3 with sqlite3");
        return;
    }
    for words in [
        &["table", "r1"][..],
        &["compare", "r1", "r2"],
        &["explain", "r1"],
        &["report", "r1", "--json"],
    ] {
        let done = world.ok(words);
        assert_eq!(done.err.matches("no calibration is used").count(), 1, "{words:?}: {done:?}");
    }
    let done = world.ok(&["run", "random-read", "--target", "null:", "--time", "50ms"]);
    assert!(done.err.contains("no calibration is used"), "{done:?}");
}

#[test]
fn no_store_is_kept_in_dev() {
    let world = with_a_run();
    let name = format!("/dev/plimsoll-test-{}", std::process::id());
    let done = world.run(&["list", "--store", &name]);
    assert!(done.code == 6 && done.err.contains("no store is kept in /dev"), "{done:?}");
}
