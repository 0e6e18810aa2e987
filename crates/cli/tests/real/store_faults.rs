//! A store that cannot take what was measured.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::lab::{Lab, PLIMSOLL, Running, needs_root, tool};

#[test]
fn a_full_disk_under_the_store_costs_the_visit_under_way_only() {
    needs_root!("mount");
    let mut lab = Lab::new("full");
    let point = lab.mount(&["-t", "tmpfs", "-o", "size=240k", "none"], "tiny");
    let axis: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    let axis = axis.join(",");
    let words = format!(
        "run random-read --target null: --time 20ms --set threads={axis} --store tiny/s.db"
    );
    let said = lab.run(&words);
    said.is(
        6,
        &[
            "error: no space left to write to the store tiny/s.db",
            "hint: visits stored before are safe; free some space, or raise the limit of file sizes",
        ],
    );
    assert_eq!(said.err.matches("no space left").count(), 1, "said once: {said}");
    let before = lab.ok("export r1 --format csv --store tiny/s.db").out.lines().count();
    assert!(before > 2, "visits before are there");
    tool("mount", &["-o", "remount,size=50M", point.to_str().unwrap()]);
    lab.ok("resume --store tiny/s.db");
    assert_eq!(lab.ok("export r1 --format csv --store tiny/s.db").out.lines().count(), 41);
}

#[test]
fn a_full_disk_is_told_with_what_to_do_wherever_is_written() {
    needs_root!("mount");
    let mut lab = Lab::new("full-hints");
    let point = lab.mount(&["-t", "tmpfs", "-o", "size=2M", "none"], "tiny");
    for _ in 0..3 {
        lab.ok("run random-read --target null: --time 20ms --store tiny/s.db");
    }
    let fill = |rest: u64| {
        let free = rustix::fs::statvfs(&point).unwrap();
        let free = (free.f_bavail * free.f_frsize).saturating_sub(rest);
        fs::write(point.join("filler"), vec![0u8; usize::try_from(free).unwrap()]).unwrap();
    };
    fill(0);
    let room = "hint: make room on that file system, or name another place";
    lab.run("export r1 --format csv -o tiny/r1.csv --store tiny/s.db")
        .is(1, &["error: cannot write tiny/r1.csv", "cause: no space left on device", room]);
    lab.run("man --dir tiny/man").is(1, &["error: ", "no space left on device", room]);
    let said = lab.run("rm r1 --yes --store tiny/s.db");
    let removed = said.code == Some(0);
    if !removed {
        said.is(6, &["error: no space left to write to the store", "hint: nothing was removed"]);
    }
    assert!(!lab.path("tiny/s.db-r1.lock").exists(), "no lock is left");
    fs::remove_file(point.join("filler")).unwrap();
    let again = lab.run("rm r1 --yes --store tiny/s.db");
    assert_eq!(again.code, Some(if removed { 2 } else { 0 }), "{again}");
    assert!(lab.ok("list --store tiny/s.db").out.contains("r2"));
}

#[test]
fn a_read_only_store_is_said_before_anything_is_written() {
    needs_root!("mount");
    let mut lab = Lab::new("store-ro");
    let point = lab.mount(&["-t", "tmpfs", "none"], "tiny");
    lab.ok("run random-read --target null: --time 20ms --store tiny/s.db");
    tool("mount", &["-o", "remount,ro", point.to_str().unwrap()]);
    let before = lab.everything();
    let said = lab.run("run random-write --target data --size 1MiB --time 20ms --store tiny/s.db");
    said.is(6, &["error: the store tiny/s.db may not be written", "hint: check the permissions"]);
    assert_eq!(lab.everything(), before, "no target file was made");
    assert!(lab.ok("list --store tiny/s.db").out.contains("r1"), "reading goes on");
    assert!(lab.ok("show --store tiny/s.db").out.contains("null:"));
    lab.run("rm r1 --yes --store tiny/s.db").is(6, &["error: ", "read-only"]);
}

#[test]
fn something_else_in_the_place_of_the_store_is_left_alone() {
    let lab = Lab::new("no-store");
    fs::write(lab.path("letter.txt"), "Dear store,\nthis is no database.\n".repeat(40)).unwrap();
    let before = lab.everything();
    let said = lab.run("run random-read --target null: --time 20ms --store letter.txt");
    said.is(6, &["error: ", "letter.txt"]);
    assert_eq!(lab.everything(), before);
}

#[test]
fn nobody_listening_is_no_failure_but_a_full_disk_is() {
    let lab = Lab::new("stdout");
    let words = "run random-read --target null: --time 50ms";
    let mut command = lab.command(words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut command = lab.command(words);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let said = command.stdout(full).output().unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(1), "{err}");
    assert!(err.contains("error: cannot write to standard output"), "{err}");
    assert_eq!(lab.list().len(), 2, "both are stored");
}

#[test]
fn nowhere_to_keep_results_is_said_before_anything_is_done() {
    let lab = Lab::new("no-home");
    let mut command = std::process::Command::new(PLIMSOLL);
    let words = "run random-write --target data --size 1MiB --time 20ms";
    command.args(words.split(' ')).current_dir(&lab.dir);
    command.env_remove("HOME").env_remove("XDG_DATA_HOME");
    Running::start(command, &lab.dir).end().is(
        6,
        &[
            "error: nowhere to keep results: neither XDG_DATA_HOME nor HOME is a directory",
            "hint: name a file with `--store FILE`",
        ],
    );
    assert!(!lab.path("data").exists());
}

#[test]
fn a_store_that_is_removed_under_us_is_noticed() {
    let lab = Lab::new("store-gone");
    let run = "run random-read --target null: --time 1s --set threads=1,2,3 --store s.db";
    for side in ["a.toml", "b.toml"] {
        let text = "suite = \"random-read\"\ntarget = \"null:\"\ntime = \"1s\"\n";
        fs::write(lab.path(side), text).unwrap();
    }
    let live = "compare --live a.toml b.toml --blocks 2 --store s.db";
    for words in [run, live] {
        let mut running = lab.start(words);
        running.until_it_says("to make");
        std::thread::sleep(std::time::Duration::from_millis(300));
        fs::remove_file(lab.path("s.db")).unwrap();
        let said = running.end();
        said.is(6, &["error: the store s.db went away", "hint: what was measured"]);
        assert!(!said.err.contains("stored as"), "{said}");
        assert!(!lab.path("s.db").exists() && !lab.path("s.db-journal").exists(), "{said}");
    }
}

#[test]
fn a_store_that_is_renamed_under_us_has_all_that_was_stored() {
    let lab = Lab::new("store-moved");
    let words = "run random-read --target null: --time 300ms --set threads=1,2,3 --store s.db";
    let mut running = lab.start(words);
    running.until_it_says("to make");
    std::thread::sleep(std::time::Duration::from_millis(600));
    fs::rename(lab.path("s.db"), lab.path("new.db")).unwrap();
    let said = running.end();
    said.is(
        6,
        &["error: the store s.db was moved to ", "new.db while it was in use", "resume RUN"],
    );
    lab.ok("resume r1 --store new.db");
    assert_eq!(lab.ok("export r1 --format csv --store new.db").out.lines().count(), 4);
}

/// A program that reads the store, and is stopped, keeps visits from being stored: they wait in memory.
#[test]
fn a_stopped_reader_delays_what_is_stored_and_loses_nothing() {
    let lab = Lab::new("store-delayed");
    lab.ok("run random-read --target null: --time 20ms --store s.db");
    let script = "import sqlite3,sys; c=sqlite3.connect('s.db',isolation_level=None)
c.execute('BEGIN'); c.execute('SELECT * FROM run').fetchone(); print('read',flush=True)
sys.stdin.readline()";
    let mut reader = Command::new("python3");
    reader.args(["-c", script]).current_dir(&lab.dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut reader) = reader.spawn() else { return println!("skipped: no python3") };
    let words =
        "run random-read --target null: --time 300ms --set threads=1,2,3,4,5,6 --store s.db";
    let id = reader.id().to_string();
    let signal = |name: &str| drop(tool("kill", &[name, &id]));
    let mut running = lab.start(words);
    running.until_it_says("to make");
    let mut line = [0; 5];
    if reader.stdout.take().unwrap().read_exact(&mut line).is_err() {
        return println!("skipped: no sqlite3 in python3");
    }
    signal("-STOP");
    running.until_it_says("kept in memory");
    signal("-CONT");
    drop(reader.stdin.take());
    reader.wait().unwrap();
    let said = running.end();
    said.is(0, &["warning: the store s.db is locked by another process"]);
    assert_eq!(lab.ok("export r2 --format csv --store s.db").out.lines().count(), 7);
}
