//! Files that commands write for the user: new ones whole, old ones only by `--force`, none through
//! a link.

use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};

use crate::world::World;

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

/// The name of the file on its way is known beforehand, so somebody may have put a link there.
#[test]
fn the_name_on_the_way_is_no_way_to_another_file() {
    let world = with_a_run();
    std::fs::write(world.path("precious"), "mine").unwrap();
    // A shell becomes the program under its own process number.
    let line = "ln -s \"$PWD/precious\" w/.run.json.plimsoll-$$.tmp
                exec \"$0\" export --format json -o w/run.json --force";
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", line, env!("CARGO_BIN_EXE_plimsoll")]).current_dir(&world.dir);
    command.env_clear().env("HOME", world.path("home")).env("PATH", "/usr/bin:/bin");
    std::fs::write(world.path("w/run.json"), "old").unwrap();
    let done = crate::world::Done::from(command.output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(std::fs::read(world.path("precious")).unwrap(), b"mine");
    assert!(std::fs::read(world.path("w/run.json")).unwrap().starts_with(b"{"));
}

/// Bytes of the log beside the store that were changed take with them what was stored behind them.
#[test]
fn a_garbled_log_is_told() {
    let world = World::with_two_runs();
    let mut name = world.store().into_os_string();
    name.push("-wal");
    let mut log = std::fs::read(&name).unwrap();
    assert_eq!(world.ok(&["list"]).err, "");
    log.resize(log.len().max(32 + 2 * 4120), 0);
    let last = log.len() - 100;
    log[last] ^= 1;
    std::fs::write(&name, log).unwrap();
    let done = world.run(&["list"]);
    assert!(done.err.contains("is not as it was written"), "{done:?}");
    assert!(done.err.contains("hint: copy"), "{done:?}");
    assert_eq!(world.ok(&["path"]).err, "", "what reads no store says nothing");
}

/// Its numbers are not what was written: it is refused, other runs are read, and it can be removed.
#[test]
fn a_run_with_changed_numbers_is_refused_and_can_go() {
    let world = World::with_two_runs();
    let store = world.store();
    world.ok(&["list"]);
    let mut name = store.clone().into_os_string();
    name.push("-wal");
    // Into the file with the log: the next writer does so after some time, another program at once.
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
