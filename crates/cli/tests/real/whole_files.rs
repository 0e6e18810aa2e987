//! Whole files through the program: what a killed run left goes with `resume` or `rm`; what the
//! file system refuses is said.

use std::fs;
use std::path::PathBuf;

use crate::lab::{FILES, Lab, Neighbour, measured, needs_root, text, tool};

fn suite(lab: &Lab) {
    fs::write(lab.path("whole-files.toml"), FILES.replace("500", "2000")).unwrap();
    fs::create_dir(lab.path("d")).unwrap();
}

fn left(lab: &Lab) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.path("d")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Killed while it looks at its files.
fn killed(lab: &Lab) -> Neighbour {
    suite(lab);
    let neighbour = Neighbour::new(&lab.path("d"));
    let mut running = lab.start("run whole-files.toml --target d/data");
    running.until("the second visit", |running| {
        left(lab).len() == 1 && running.err().matches("look").count() > 0
    });
    running.kill();
    assert_eq!(left(lab).len(), 1);
    neighbour
}

#[test]
fn a_killed_run_is_removed_with_its_files() {
    let lab = Lab::new("whole-rm");
    let neighbour = killed(&lab);
    lab.ok("rm r1 --yes").is(0, &["removed what r1 left: "]);
    assert_eq!(left(&lab), Vec::<PathBuf>::new());
    neighbour.untouched();
}

#[test]
fn a_killed_run_that_goes_on_leaves_nothing() {
    let lab = Lab::new("whole-resume");
    let neighbour = killed(&lab);
    let mut running = lab.start("resume r1");
    running.until("the second visit", |running| running.err().matches("look").count() > 0);
    assert_eq!(left(&lab).len(), 1, "the same directory");
    running.signal(rustix::process::Signal::INT);
    running.end().is(130, &[]);
    assert_eq!(left(&lab), Vec::<PathBuf>::new());
    neighbour.untouched();
}

#[test]
fn what_is_put_into_the_directory_stays() {
    let lab = Lab::new("whole-foreign");
    let neighbour = killed(&lab);
    let [root] = left(&lab).try_into().unwrap();
    fs::write(root.join("in-order/letter"), "dear").unwrap();
    lab.ok("rm r1 --yes").is(0, &["warning: ", "is left: it holds in-order/letter, which"]);
    assert_eq!(fs::read(root.join("in-order/letter")).unwrap(), b"dear");
    assert_eq!(fs::read_dir(root.join("in-order")).unwrap().count(), 1);
    neighbour.untouched();
}

#[test]
fn a_file_system_without_inodes_is_refused_before_and_told_of_when_it_runs_out() {
    needs_root!("losetup", "mkfs.ext4", "mount", "umount");
    let mut lab = Lab::new("whole-inodes");
    let image = lab.sparse("fs.img", 3 << 10);
    let device = lab.attach(&image, &[]);
    tool("mkfs.ext4", &["-q", "-N", "1000", &device]);
    let point = lab.mount(&[&device], "m");
    suite(&lab);
    let target = point.join("data");
    let words = format!("run whole-files.toml --target {} --set look.time=1s", target.display());
    lab.run(&words).is(3, &["inodes are free", "directory.files"]);
    assert_eq!(fs::read_dir(&point).unwrap().count(), 1, "lost+found");
    // Both kinds of names fit; then somebody else takes what is left.
    let two = FILES
        .replace("500", "2000")
        .replace("name = \"make\"", "name = \"make\"\ndirectory.names = \"random\"");
    let (head, look) = two.split_once("[[phase]]\nname = \"look\"").unwrap();
    let (head, make) = head.split_once("[[phase]]").unwrap();
    let text = format!("{head}\n[[phase]]\nname = \"look\"{look}\n[[phase]]{make}");
    fs::write(lab.path("whole-files.toml"), text).unwrap();
    let mut running = lab.start(&format!(
        "run whole-files.toml --target {} --set look.time=4s --set directory.files=450",
        target.display()
    ));
    // What the first visit looks at is there before its time begins.
    running.until("its files", |_| {
        let here = fs::read_dir(&point).unwrap().map(|entry| entry.unwrap().path());
        let mut ours = here.filter(|path| path.to_string_lossy().contains("plimsoll-files"));
        ours.next().is_some_and(|path| {
            fs::read_dir(path.join("in-order")).is_ok_and(|all| all.count() == 450)
        })
    });
    let other = |number: u32| point.join(format!("other-{number}"));
    let taken = (0..).take_while(|&number| fs::write(other(number), "").is_ok()).count() as u32;
    // A few are left, for the next directory and its first files.
    (0..taken.min(20)).for_each(|number| fs::remove_file(other(number)).unwrap());
    let said = running.end();
    assert_ne!(said.code, Some(0), "{said}");
    assert!(said.err.contains("create of file ") && said.err.contains("no inodes"), "{said}");
    let here = fs::read_dir(&point).unwrap().map(|entry| entry.unwrap().file_name());
    let ours = here.filter(|name| name.to_string_lossy().starts_with("plimsoll-files"));
    assert_eq!(ours.count(), 0);
}

#[test]
fn the_json_has_processor_time_and_the_longest_single_one() {
    let lab = Lab::new("whole-json");
    suite(&lab);
    lab.ok("run whole-files.toml --target d --set look.time=100ms");
    let document = lab.export("r1");
    let visits = measured(&document);
    assert_eq!(visits.len(), 2);
    for (visit, op) in visits.iter().zip(["create", "stat"]) {
        assert_eq!(text(&visit["ops"][0]["op"]), op);
        let cpu = |mode: &str| visit["cpu_ns_per_io"][mode].as_f64().unwrap();
        assert!(cpu("user") + cpu("system") > 0.0, "{visit}");
        assert!(visit["ops"][0]["latency_ns"]["max"].as_u64().unwrap() > 0, "{visit}");
        assert!(visit["iops"].as_f64().unwrap() > 0.0, "{visit}");
    }
    assert_eq!(visits[0]["requests"], 2000);
    assert!(!document.to_string().contains("too-small"), "no blocks are hit or missed");
    assert_eq!(fs::read_dir(lab.path("d")).unwrap().count(), 0, "the scratch file goes, too");
}
