//! What is under a path: on machines that are not here, and on this one.

use std::fmt::Write;

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
        let _ = writeln!(out, "\n{} ({})", advice.weight.word(), advice.name);
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
    assert!(world.ok(&["probe", "pipe"]).out.contains("nothing is known"));
}
