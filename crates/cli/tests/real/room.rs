//! Room on file systems that do not write in place or are in memory. And file systems that can be
//! written no more, or are gone.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

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
#[test]
fn what_is_not_written_in_place_takes_new_space() {
    needs_root!("losetup", "mkfs.btrfs");
    let mut lab = Lab::new("anew");
    if small(&mut lab, "btrfs").is_none() {
        return;
    }
    let run = format!("{WRITE} btrfs/f --size 220MiB");
    lab.ok(&run);
    for run in [format!("{run} --dry-run"), run] {
        lab.run(&run).is(3, &["220 MiB more would leave", "must stay free"]);
    }
    // A part of it that fits is taken.
    lab.ok(&format!("{WRITE} btrfs/f --size 20MiB --dry-run"));
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
