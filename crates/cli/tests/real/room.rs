//! Room that a run takes where it is not seen at once: shared extents, and the holes of files under
//! loop devices. And file systems that can be written no more, or are gone.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::lab::{Lab, Said, needs_root, tool};

const WRITE: &str = "run random-write --time 50ms --target";

/// A file system with 1500 MiB; `None`, with the reason printed, where the kernel lacks it.
fn small(lab: &mut Lab, kind: &str) -> Option<PathBuf> {
    let image = lab.sparse("small.img", 1500);
    let device = lab.attach(&image, &[]);
    tool(&format!("mkfs.{kind}"), &["-q", &device]);
    let point = lab.path(kind);
    fs::create_dir(&point).unwrap();
    let mounted = Command::new("mount").arg(&device).arg(&point).output().unwrap();
    if !mounted.status.success() {
        eprintln!("skipped: {kind}: {}", String::from_utf8_lossy(&mounted.stderr).trim());
        return None;
    }
    lab.mounted(kind);
    Some(point)
}

/// A dry run says all of that.
#[track_caller]
fn plans(said: &Said, parts: &[&str]) {
    for part in parts {
        assert!(said.out.contains(part), "`{part}` is not said: {said}");
    }
}

/// A file that leaves the reserve free once, and not twice.
fn is_refused_once_shared(lab: &Lab, file: &str, share: impl Fn()) {
    let run = format!("{WRITE} {file} --size 220MiB");
    lab.ok(&run);
    plans(&lab.ok(&format!("{run} --dry-run")), &["Overwrites "]);
    share();
    for run in [format!("{run} --dry-run"), run] {
        lab.run(&run).is(3, &["220 MiB more would leave", "must stay free"]);
    }
    // A part of it that fits is taken.
    lab.ok(&format!("{WRITE} {file} --size 20MiB --dry-run"));
}

#[test]
fn what_a_snapshot_shares_takes_new_space() {
    needs_root!("losetup", "mkfs.btrfs", "btrfs");
    let mut lab = Lab::new("snapshot");
    let Some(point) = small(&mut lab, "btrfs") else { return };
    let at = |name: &str| point.join(name).display().to_string();
    tool("btrfs", &["subvolume", "create", &at("s")]);
    is_refused_once_shared(&lab, "btrfs/s/f", || {
        tool("btrfs", &["subvolume", "snapshot", &at("s"), &at("taken")]);
    });
}

#[test]
fn what_a_copy_shares_takes_new_space() {
    needs_root!("losetup", "mkfs.xfs");
    let mut lab = Lab::new("reflink");
    let Some(point) = small(&mut lab, "xfs") else { return };
    let (file, copy) = (point.join("f"), point.join("copy"));
    fs::write(point.join("a"), vec![7; 1 << 20]).unwrap();
    let shares = |from: &str, to: &str| {
        let words = ["--reflink=always", from, to];
        Command::new("cp").args(words).current_dir(&point).output().unwrap().status.success()
    };
    if !shares("a", "b") {
        eprintln!("skipped: this xfs has no reflink");
        return;
    }
    is_refused_once_shared(&lab, "xfs/f", || {
        let (file, copy) = (file.display().to_string(), copy.display().to_string());
        tool("cp", &["--reflink=always", &file, &copy]);
    });
}

#[test]
fn holes_of_a_file_under_loop_devices_count() {
    needs_root!("losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("below");
    // 1.7 GiB of it can be taken.
    lab.ext4("rw");
    let device = lab.attach(&lab.sparse("m/below.img", 4 << 10), &[]);
    let words = format!("{WRITE} {device} --destroy {device}");
    let below = format!("m below {device}");
    lab.run(&format!("{words} --size 2200MiB --dry-run"))
        .is(3, &["may take 2.15 GiB more of ", &below, "must stay free", "hint: make room there"]);
    let said = lab.ok(&format!("{words} --size 100MiB --dry-run"));
    plans(&said, &["May take 100 MiB more of ", &below]);
    // Two names of one device share their holes.
    tool("mkfs.ext4", &["-q", &device]);
    lab.mount(&[&device], "n");
    let said = lab.run(&format!("{WRITE} n/f --size 2200MiB --dry-run"));
    said.is(3, &["/n/f may take 2.15 GiB more of ", &below]);
    let said = lab.ok(&format!("{WRITE} n/f --size 100MiB --dry-run"));
    plans(&said, &["May take 100 MiB more of ", &below]);
    // A loop device in that file system.
    let upper = lab.attach(&lab.sparse("n/upper.img", 3 << 10), &[]);
    let words = format!("{WRITE} {upper} --destroy {upper}");
    lab.run(&format!("{words} --size 2200MiB --dry-run")).is(3, &[&below]);
    let said = lab.ok(&format!("{words} --size 100MiB --dry-run"));
    plans(&said, &[&below, &format!("n below {upper}")]);
}

#[test]
fn several_targets_share_the_room_below() {
    needs_root!("losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("below-several");
    lab.ext4("rw");
    let one = lab.attach(&lab.sparse("m/one.img", 2 << 10), &[]);
    let two = lab.attach(&lab.sparse("m/two.img", 2 << 10), &[]);
    let alone = |device: &str| format!("{device} --destroy {device}");
    for device in [&one, &two] {
        lab.ok(&format!("{WRITE} {} --size 1GiB --dry-run", alone(device)));
    }
    lab.run(&format!("{WRITE} {} --target {} --size 1GiB --dry-run", alone(&one), alone(&two)))
        .is(3, &["may take 2 GiB more of ", &format!("m below {one}, {two}")]);
}

#[test]
fn a_run_sees_what_another_has_not_written_yet() {
    needs_root!("losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("beside");
    lab.ext4("rw");
    let words = "run random-write --time 1h --size 1200MiB --store one.db --target m/one";
    let mut running = lab.start(words);
    running.until("it has made its file", |_| lab.path("m/one").exists());
    running.signal(Signal::STOP);
    // 1.7 GiB can be taken.
    let run = format!("{WRITE} m/two --size 1200MiB");
    for run in [format!("{run} --dry-run"), run] {
        lab.run(&run).is(3, &["1.17 GiB more would leave", "must stay free"]);
    }
    assert!(!lab.path("m/two").exists());
    lab.ok(&format!("{WRITE} m/two --size 100MiB --dry-run"));
    running.signal(Signal::CONT);
    running.kill();
}

#[test]
fn of_two_runs_that_begin_together_at_most_one_takes_the_room() {
    needs_root!("losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("together");
    lab.ext4("rw");
    let run = |name: &str| {
        let words = format!("{WRITE} m/{name} --size 1200MiB --store {name}.db");
        lab.start(&words)
    };
    let both = [run("one"), run("two")];
    let codes: Vec<_> = both.map(|running| running.end().code).into();
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 3))), "{codes:?}");
    assert!(codes.contains(&Some(3)), "{codes:?}");
}

#[test]
fn the_run_on_the_other_name_is_the_only_reason() {
    needs_root!("losetup");
    let mut lab = Lab::new("two-names-two-runs");
    let file = lab.sparse("one.img", 64);
    let (one, two) = (lab.attach(&file, &[]), lab.attach(&file, &[]));
    let words = |device: &str| format!("{device} --destroy {device} --size 8MiB --store other.db");
    let mut running = lab.start(&format!("run random-write --time 1h --target {}", words(&one)));
    running.until_it_says("fill  ");
    let said = lab.run(&format!("{WRITE} {} --even-though signature", words(&two)));
    said.is(3, &["plimsoll (pid "]);
    assert!(!said.err.contains("not visible from here"), "{said}");
    running.kill();
}

#[test]
fn a_file_of_ours_that_is_mounted_read_only() {
    needs_root!("mount");
    let mut lab = Lab::new("read-only-bind");
    fs::create_dir(lab.path("d")).unwrap();
    lab.ok(&format!("{WRITE} d/f --size 1MiB"));
    let from = lab.path("d").display().to_string();
    let point = lab.mount(&["--bind", &from], "ro").display().to_string();
    tool("mount", &["-o", "remount,bind,ro", &point]);
    for rest in ["", "--dry-run"] {
        lab.run(&format!("{WRITE} ro/f --size 1MiB {rest}"))
            .is(3, &["read-only", "hint: only reads can be measured here"]);
    }
}

#[test]
fn a_file_system_that_is_unmounted_during_the_run() {
    needs_root!("losetup", "mkfs.ext4", "mount", "umount");
    let mut lab = Lab::new("lazy");
    let (_, point) = lab.ext4("rw");
    let mut running = lab.start("run random-write --time 2s --size 8MiB --target m");
    running.until_it_says("fill  ");
    tool("umount", &["--lazy", point.to_str().unwrap()]);
    // Something else of that name is below.
    fs::write(point.join("plimsoll-scratch.dat"), "x").unwrap();
    let said = running.end();
    assert!(said.err.contains("its file system was unmounted"), "{said}");
    assert!(!said.err.contains("exchanged for another"), "{said}");
    assert_eq!(fs::read(point.join("plimsoll-scratch.dat")).unwrap(), b"x");
}

#[test]
fn a_scratch_file_left_behind_is_taken_over_and_goes_or_is_said_to_be_missing() {
    needs_root!("losetup", "mkfs.ext4", "mount", "umount");
    let mut lab = Lab::new("missing");
    let (device, point) = lab.ext4("rw");
    let mut running = lab.start("run random-write --time 1h --size 8MiB --target m");
    running.until_it_says("fill  ");
    running.kill();
    let said = lab.ok(&format!("{WRITE} m --size 8MiB --dry-run"));
    plans(&said, &["Overwrites ", "Removes ", "plimsoll-scratch.dat afterwards."]);
    assert!(!said.out.contains("removes nothing"), "{said}");
    tool("umount", &[point.to_str().unwrap()]);
    let said = lab.ok("rm r1 --yes");
    let names = said.err.lines().filter(|line| line.contains("plimsoll-scratch.dat")).count();
    assert_eq!(names, 1, "{said}");
    assert!(said.err.contains("is not there: its file system is not mounted"), "{said}");
    // What the lab takes down.
    tool("mount", &[&device, point.to_str().unwrap()]);
}

#[test]
fn an_overlay_over_memory_has_the_room_of_memory() {
    needs_root!("mount");
    let mut lab = Lab::new("overlay-memory");
    lab.mount(&["-t", "tmpfs", "-o", "size=4T", "none"], "m");
    for directory in ["m/upper", "m/work", "lower"] {
        fs::create_dir(lab.path(directory)).unwrap();
    }
    let at = |name: &str| lab.path(name).display().to_string();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("m/upper"), at("m/work"));
    lab.mount(&["-t", "overlay", "-o", &options, "none"], "o");
    // More than any machine that this is tested on has, and less than the file system says it has.
    for name in ["m/x", "o/x"] {
        let run = format!("{WRITE} {name} --size 3TiB --dry-run");
        lab.run(&run).is(3, &["must stay free"]);
    }
    lab.ok(&format!("{WRITE} o/x --size 1MiB --dry-run"));
}
