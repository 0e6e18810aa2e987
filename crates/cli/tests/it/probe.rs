//! What is under a path: on machines that are not here, and on this one.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use explain::advice::{Use, advise};
use report::stack::{Detail, stack};
use stack::{Serials, stack_tree};

use crate::machine::Machine;
use crate::world::World;

/// The tree and the advice of a captured machine, as text.
fn probed(machine: &str, path: &str) -> String {
    let machine = Machine::unpack(machine);
    let tree = stack_tree(&machine.host, &[machine.file(path)], Serials::Hashed);
    let mut out = stack(&tree, Detail::Full);
    for advice in advise(&tree, Use::default()) {
        let _ = writeln!(out, "\n{} ({})", advice.weight().word(), advice.finding.code.name());
        for sentence in advice.sentences() {
            let _ = writeln!(out, "   {sentence}");
        }
        for command in &advice.commands {
            let _ = writeln!(out, "   $ {command}");
        }
    }
    out
}

#[test]
fn captured_machines_are_shown_and_judged() {
    for (machine, path) in [
        ("virtual-machine", "/srv/x"),
        ("uml-lvm-raid5-xfs", "/mnt/dvd/x"),
        ("uml-btrfs-scsi", "/mnt/btrfs/x"),
        ("uml-sector-63", "/mnt/old/x"),
        ("uml-raid10-degraded-jfs", "/mnt/jfs/x"),
        ("made-nvme-sata", "/data/x"),
        ("raid-lvm-xfs", "/srv/my db/x"),
    ] {
        insta::assert_snapshot!(format!("probe-{machine}"), probed(machine, path));
    }
    insta::assert_snapshot!("probe-made-nvme-sata-root", probed("made-nvme-sata", "/x"));
}

/// Every file below a directory; links are not followed.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

#[test]
fn any_file_may_be_missing_or_nonsense() {
    const NONSENSE: [&[u8]; 8] = [
        b"",
        b"\xff\xfe\0\x80",
        b"-1\n",
        b"18446744073709551615 18446744073709551615",
        b"99999999999999999999999999",
        b"a b c d e f g h i j k l m n o p\n\n: : :\n8:16 = = =",
        b"\x1b[2J\n\t\tNAME STATE\n0 1 raid raid5 9 9 9 9 9 9 9 9",
        b"../../../..",
    ];
    for (name, path) in [
        ("uml-lvm-raid5-xfs", "/mnt/dvd/x"),
        ("uml-btrfs-scsi", "/mnt/btrfs/x"),
        ("uml-raid10-degraded-jfs", "/mnt/jfs/x"),
        ("made-nvme-sata", "/data/x"),
        ("virtual-machine", "/srv/x"),
    ] {
        let machine = Machine::unpack(name);
        let mut all = Vec::new();
        files(&machine.host.path("/"), &mut all);
        all.sort();
        assert!(all.len() > 20, "{name}");
        for (k, file) in all.iter().enumerate() {
            let was = fs::read(file).unwrap();
            let seen = || {
                let tree = stack_tree(&machine.host, &[machine.file(path)], Serials::Hashed);
                let told = stack(&tree, Detail::Full);
                assert!(!told.contains('\u{1b}'), "{name} {}", file.display());
                for advice in advise(&tree, Use::default()) {
                    assert!(!advice.sentences().is_empty());
                }
                tree.unwell();
            };
            fs::write(file, NONSENSE[k % NONSENSE.len()]).unwrap();
            seen();
            fs::remove_file(file).unwrap();
            seen();
            fs::write(file, was).unwrap();
        }
    }
}

#[test]
fn thousands_of_members_are_no_matter() {
    let machine = Machine::unpack("uml-lvm-raid5-xfs");
    let block = |name: &str, number: u32| {
        let place = format!("/sys/devices/virtual/block/{name}");
        machine.write(&format!("{place}/dev"), &format!("240:{number}"));
        machine.write(&format!("{place}/size"), "2048");
        let to = format!("../../devices/virtual/block/{name}");
        machine.link(&format!("/sys/class/block/{name}"), &to);
        machine.link(&format!("/sys/dev/block/240:{number}"), &to);
    };
    block("md9", 0);
    machine.write("/sys/devices/virtual/block/md9/md/level", "raid0");
    for member in 1..6000 {
        let name = format!("many{member}");
        block(&name, member);
        let to = format!("../../{name}");
        machine.link(&format!("/sys/devices/virtual/block/md9/slaves/{name}"), &to);
    }
    let since = Instant::now();
    let target = machine.device("/dev/md9", "240:0");
    let tree = stack_tree(&machine.host, &[target], Serials::Hashed);
    assert!(since.elapsed() < Duration::from_secs(60), "it hangs");
    assert!(tree.layers.len() > 1000, "{}", tree.layers.len());
    assert!(tree.unseen.iter().any(|one| one.why.contains("more layers")), "{:?}", tree.unseen);
    advise(&tree, Use::default());
}

#[test]
fn this_machine_is_shown_without_a_store() {
    let world = World::new();
    let done = world.ok(&["probe", "."]);
    assert_eq!(done.err, "");
    assert!(done.out.contains("└─ ") && done.out.contains("kernel "), "{}", done.out);
    assert_eq!(world.files(), ["home"]);
    let text = world.ok(&["probe", ".", "--json"]).out;
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "plimsoll.probe/1");
    assert!(!document["stack"]["layers"].as_array().unwrap().is_empty());
}

#[test]
fn a_capture_is_of_lines_that_make_the_machine_again() {
    let world = World::new();
    world.ok(&["probe", ".", "--capture", "here.tree"]);
    let text = std::fs::read_to_string(world.path("here.tree")).unwrap();
    assert!(text.contains("/proc/self/mountinfo <<"), "{text}");
}

#[test]
fn what_is_no_place_is_refused_and_a_pipe_is_not_waited_for() {
    let world = World::new();
    let done = world.run(&["probe", "no/such/place"]);
    assert_eq!(done.code, 5, "{done:?}");
    let pipe = world.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let done = world.run(&["probe", "pipe"]);
    assert_eq!((done.out.as_str(), done.code), ("", 5), "{done:?}");
    assert!(done.err.contains("pipe is a pipe, wanted a file, a directory or a block device"));
}

#[test]
fn of_what_is_not_there_nothing_is_said() {
    let world = World::new();
    std::fs::write(world.path("there"), "x").unwrap();
    for (path, wanted) in [
        ("missing", "missing does not exist"),
        ("no/such/place", "no/such/place does not exist"),
        ("/dev/no-such-disk", "/dev/no-such-disk does not exist"),
        ("there/below", "there/below"),
        ("/dev/null", "/dev/null is a character device, wanted a file, a directory or a block"),
        ("/dev/zero", "/dev/zero is a character device"),
    ] {
        for more in [&[][..], &["--json"], &["--capture", "to.tree"]] {
            let words = [&["probe", path], more].concat();
            let done = world.run(&words);
            assert_eq!((done.out.as_str(), done.code), ("", 5), "{words:?}: {}", done.err);
            assert!(done.err.contains(wanted), "{words:?}: {}", done.err);
        }
        let log = world.run(&["probe", ".", "--wal", path]);
        assert_eq!((log.out.as_str(), log.code), ("", 5), "{path}: {}", log.err);
    }
    assert_eq!(world.files(), ["home", "there"]);
    let done = world.run(&["probe", "missing"]);
    assert!(done.err.contains("hint: "), "{}", done.err);
    std::os::unix::fs::symlink("/no/such/place", world.path("link")).unwrap();
    let link = world.run(&["probe", "link"]);
    assert_eq!((link.out.as_str(), link.code), ("", 5), "{}", link.err);
    assert!(link.err.contains("link is a symbolic link to /no/such/place"), "{}", link.err);
    // A probe creates nothing: that is no advice for it.
    assert!(link.err.contains("hint: ") && !link.err.contains("created"), "{}", link.err);
    let zero = world.run(&["probe", ".", "--request-size", "0"]);
    assert_eq!((zero.out.as_str(), zero.code), ("", 2), "{}", zero.err);
}
