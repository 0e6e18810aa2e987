//! Refusals of a study that only an odd machine, or a journal that was cut, brings about.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lab::{Lab, PLIMSOLL, Running, hash, needs_root, tool};
use crate::study::{
    EXT4, change, is_blank, killed_while_mounted, loops, mounted, strs, study, unmount,
};
use crate::study_others::ends;

fn journal(lab: &Lab) -> PathBuf {
    let all = fs::read_dir(lab.path("store.db.studies")).unwrap().flatten();
    let mut all = all.map(|entry| entry.path());
    all.find(|path| path.extension().is_some_and(|ending| ending == "journal")).unwrap()
}

/// Leaves lines of the journal as they are, changes them, or takes them out.
pub fn with_lines(lab: &Lab, change: &dyn Fn(usize, &str) -> Option<String>) {
    let path = journal(lab);
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().enumerate().filter_map(|(at, line)| change(at, line));
    fs::write(&path, lines.map(|line| line + "\n").collect::<String>()).unwrap();
}

#[test]
fn only_root_builds() {
    needs_root!("losetup", "mkfs.ext4");
    let mut lab = Lab::new("study-root");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    // Somebody who may write to the device all the same.
    let mode = fs::metadata(&devices[0]).unwrap().permissions();
    fs::set_permissions(&devices[0], PermissionsExt::from_mode(0o666)).unwrap();
    let program = lab.path("plimsoll");
    fs::copy(PLIMSOLL, &program).unwrap();
    for path in [&lab.dir, &program, &lab.path("s.toml")] {
        chown(path, Some(65534), Some(65534)).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(["study", "s.toml", "--store", "store.db"]).current_dir(&lab.dir);
    command.uid(65534).gid(65534).env("HOME", &lab.dir);
    let can_start = command.spawn().is_ok_and(|mut child| child.wait().is_ok());
    let said = can_start.then(|| Running::start(command, &lab.dir).end());
    fs::set_permissions(&devices[0], mode).unwrap();
    let Some(said) = said else {
        eprintln!("skipped: nobody else may look into the directory of this test");
        return;
    };
    said.is(3, &["stacks are built by root, and this is user 65534"]);
    assert!(is_blank(&lab.path("d0.img")));
}

#[test]
fn what_is_not_installed_is_said_before_anything_is_built() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "unshare");
    let mut lab = Lab::new("study-tools");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    let script = format!(
        "mount --bind /dev/null /usr/sbin/wipefs && exec {PLIMSOLL} study s.toml --store store.db"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(&lab.dir);
    Running::start(command, &lab.dir).end().is(5, &["not installed: wipefs"]);
    assert!(is_blank(&lab.path("d0.img")));
    assert!(lab.ok("study clean").err.contains("nothing is left"), "it had not begun");
}

/// What it does not know of it does not touch, and does not call taken back.
#[test]
fn what_a_cut_journal_does_not_know_of_is_told() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-cut");
    let devices = killed_while_mounted(&mut lab, 64);
    let whole = fs::read_to_string(journal(&lab)).unwrap();
    with_lines(&lab, &|at, line| (at < 2).then(|| line.to_owned()));
    let said = lab.run("study clean");
    assert_eq!(said.code, Some(5), "{said}");
    assert!(said.err.contains("something is mounted that the journal does not know of"), "{said}");
    assert!(mounted(&devices));
    fs::write(journal(&lab), whole).unwrap();
    lab.ok("study clean");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

/// Journals of before did not say what was left on a device that was not blank when the study began.
#[test]
fn what_an_old_journal_cannot_tell_is_not_taken_for_the_studys() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-unsure");
    let devices = killed_while_mounted(&mut lab, 64);
    with_lines(&lab, &|_, line| match line {
        line if line.starts_with("{\"is\":\"ends\"") => None,
        line => Some(line.replace("\"blank\":true", "\"blank\":false").replacen(
            "\"version\":5",
            "\"version\":1",
            1,
        )),
    });
    unmount(&devices[0]);
    tool("wipefs", &["--all", "--quiet", &devices[0]]);
    let before = hash(&lab.path("d0.img"));
    let resume = "study s.toml --resume";
    lab.run(resume).is(3, &["whether this study left that there cannot be told"]);
    assert_eq!(hash(&lab.path("d0.img")), before);
    lab.ok(&format!("{resume} --override signature:{}", devices[0]));
}

/// In use by a swap or by a device over it, since the study was killed.
#[test]
fn what_is_swapped_to_or_held_since_a_kill_is_not_erased() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "mkswap", "swapon");
    let mut lab = Lab::new("study-held-since");
    let devices = killed_while_mounted(&mut lab, 64);
    unmount(&devices[0]);
    let image = lab.path("d0.img");
    let holder = lab.attach(Path::new(&devices[0]), &[]);
    let before = ends(&image);
    let held = lab.run("study clean");
    let after = ends(&image);
    lab.detach(&holder);
    assert!(held.code != Some(0) && held.err.contains("is held by loop"), "{held}");
    assert!(before == after, "it was written: {held}");
    // A swap somewhere within it, of which the signature of its beginning does not tell.
    let part = lab.attach(&image, &["--offset", "8388608", "--sizelimit", "33554432"]);
    tool("mkswap", &[&part]);
    lab.swap_on(Path::new(&part));
    let before = ends(&image);
    let swapped = lab.run("study clean");
    let after = ends(&image);
    lab.swap_off(Path::new(&part));
    lab.detach(&part);
    assert!(swapped.code != Some(0) && swapped.err.contains("in use as swap"), "{swapped}");
    assert!(before == after, "it was written: {swapped}");
    lab.ok("study clean");
    assert!(is_blank(&image));
}

/// What somebody put on a device of the study that no stack has used yet is found before one does.
#[test]
fn what_is_put_on_a_device_before_its_turn_is_not_written_over() {
    needs_root!("losetup", "mkfs.ext4", "mkfs.btrfs", "wipefs", "blkid");
    let mut lab = Lab::new("study-turn");
    let devices = loops(&mut lab, 2, 256);
    let stack = "members = [1, 2]\nlevel = \"raid0\"\nfile_system = \"btrfs\"";
    study(&lab, &strs(&devices), stack, "");
    change(&lab, "50ms", "1s");
    let running = lab.start("study s.toml --quiet");
    while_it_is_mounted(&devices);
    tool("mkfs.ext4", &["-q", "-L", "precious", &devices[1]]);
    let said = running.end();
    let label = tool("blkid", &["-p", "-s", "LABEL", "-o", "value", &devices[1]]);
    assert_eq!(label.trim(), "precious", "{said}");
    said.is(3, &[&format!("{} is not blank: ext", devices[1])]);
    assert!(!mounted(&devices));
}

fn while_it_is_mounted(devices: &[String]) {
    let begun = Instant::now();
    while !mounted(devices) && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    assert!(mounted(devices), "the study never mounted it");
}

/// A tool that says it did its work is not believed: what lies there else is the system's disk.
#[test]
fn what_was_built_is_looked_at_before_it_is_measured() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let mut lab = Lab::new("study-liar");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    let fake = lab.path("true");
    fs::copy("/bin/true", &fake).unwrap();
    let script = format!(
        "place=$(readlink -f \"$(command -v mount)\"); mount --bind {} \"$place\" && \
         exec {PLIMSOLL} study s.toml --store store.db",
        fake.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(&lab.dir);
    let said = Running::start(command, &lab.dir).end();
    said.is(4, &["is left out: not what was planned: "]);
    assert!(said.err.contains("0 of 1 runs are complete"), "{said}");
    assert!(is_blank(&lab.path("d0.img")));
}

/// Of two studies over one device the settings and the marks are those of the one that plays.
#[test]
fn a_killed_study_keeps_off_while_another_plays_on_its_device() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-off");
    let devices = killed_while_mounted(&mut lab, 64);
    unmount(&devices[0]);
    let queue = format!("/sys/block/{}/queue", devices[0].trim_start_matches("/dev/"));
    let read_ahead = || fs::read_to_string(format!("{queue}/read_ahead_kb")).unwrap();
    let text = fs::read_to_string(lab.path("s.toml")).unwrap();
    let text = text.replace("read_ahead = \"64KiB\"", "read_ahead = \"512KiB\"");
    fs::write(lab.path("other.toml"), text.replace("\"2s\"", "\"20s\"")).unwrap();
    let words =
        format!("study other.toml --quiet --store o.db --override signature:{}", devices[0]);
    let mut child = lab.command(&words).spawn().unwrap();
    while_it_is_mounted(&devices);
    let in_use = format!("{} is in use by another study", devices[0]);
    for words in ["study clean", "study s.toml --resume"] {
        let said = lab.run(words);
        assert_eq!(read_ahead().trim(), "512", "{words}: {said}");
        said.is(3, &[&in_use]);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    lab.ok("study clean --store o.db");
    lab.ok("study clean");
    assert!(!mounted(&devices));
}
