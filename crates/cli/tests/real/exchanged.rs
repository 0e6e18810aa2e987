//! Another file gets the target's name while a run is under way: it is not ours to write, mark or
//! remove.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lab::{Lab, PLIMSOLL, Running, hash, needs_root};

const MIB: usize = 1 << 20;

fn foreign(lab: &Lab) -> (PathBuf, u64) {
    let path = lab.path("foreign");
    fs::write(&path, vec![0x5a; 4 * MIB]).unwrap();
    let hash = hash(&path);
    (path, hash)
}

/// Until the file is as long as it is to be, and a little longer: the visits have begun.
fn filled(path: &Path) {
    let late = Instant::now() + Duration::from_secs(20);
    while fs::metadata(path).map_or(0, |found| found.len()) < 4 * MIB as u64 {
        assert!(Instant::now() < late, "{} was not made", path.display());
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(700));
}

#[test]
fn a_kept_targets_name_is_not_marked_when_it_is_anothers() {
    let lab = Lab::new("exchanged-kept");
    let (path, before) = foreign(&lab);
    let target = lab.path("t.dat");
    let running = lab.start("run random-write --target t.dat --size 4MiB --time 3s");
    filled(&target);
    fs::rename(&path, &target).unwrap();
    let said = running.end();
    said.is(5, &["was exchanged"]);
    assert_eq!(hash(&target), before);
    let again = lab.run("run random-write --target t.dat --size 4MiB --time 50ms");
    assert_ne!(again.code, Some(0), "{again}");
    assert_eq!(hash(&target), before, "{again}");
}

#[test]
fn a_scratch_files_name_is_not_removed_when_it_is_anothers() {
    let lab = Lab::new("exchanged-scratch");
    let (path, before) = foreign(&lab);
    fs::create_dir(lab.path("d")).unwrap();
    let target = lab.path("d/plimsoll-scratch.dat");
    let running = lab.start("run random-write --target d --size 4MiB --time 3s");
    filled(&target);
    fs::rename(&path, &target).unwrap();
    running.end().is(5, &["was exchanged"]);
    assert_eq!(hash(&target), before);
}

#[test]
fn files_that_begin_anew_are_ours_or_the_run_ends() {
    for how in ["truncate", "remove"] {
        let lab = Lab::new("exchanged-anew");
        let (path, before) = foreign(&lab);
        let target = lab.path("t.dat");
        let suite = format!(
            "schema = 1\nname = \"anew\"\nmethod = \"classic\"\nrepeats = 3\nsettle = \"2s\"\n\
             file_size = \"4MiB\"\nfill = false\n[[phase]]\nname = \"w\"\noperation = \"write\"\n\
             access = \"sequential\"\nbytes = \"4MiB\"\nstart_file = \"{how}\"\n"
        );
        fs::write(lab.path("anew.toml"), suite).unwrap();
        let running = lab.start("run anew.toml --target t.dat");
        let late = Instant::now() + Duration::from_secs(20);
        while !target.exists() {
            assert!(Instant::now() < late, "{how}: it was not made");
            sleep(Duration::from_millis(5));
        }
        // In the pause before the second visit, or any other.
        sleep(Duration::from_secs(3));
        fs::rename(&path, &target).unwrap();
        let said = running.end();
        assert_ne!(said.code, Some(0), "{how}: {said}");
        assert_eq!(hash(&target), before, "{how}: {said}");
    }
}

/// Something is mounted over the working directory: `./f` is not what its whole path names.
#[test]
fn a_working_directory_that_is_covered_leads_to_no_other_file() {
    needs_root!("unshare", "mount");
    let lab = Lab::new("exchanged-covered");
    fs::create_dir(lab.path("d")).unwrap();
    fs::write(lab.path("d/f"), vec![0x5a; 4 * MIB]).unwrap();
    let before = hash(&lab.path("d/f"));
    let run = "run random-write --time 50ms --size 1MiB --classic -q --store ../s.db";
    let script = "cd d && mount -t tmpfs none \"$1/d\" && cp ./f \"$1/d/f\" && \
                  { \"$2\" $3 --target ./f --overwrite ./f; echo code $?; \
                  \"$2\" $3 --target ./new; echo code $?; \
                  cmp ./f \"$1/d/f\" && ls \"$1/d\"; }";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(&lab.dir).args([PLIMSOLL, run]);
    command.current_dir(&lab.dir);
    let said = Running::start(command, &lab.dir).end();
    if !said.out.contains("code") {
        eprintln!("skipped: no mount namespaces here: {said}");
        return;
    }
    assert_eq!(said.out.lines().collect::<Vec<_>>(), ["code 3", "code 3", "f"], "{said}");
    said.is(0, &["was exchanged"]);
    assert_eq!(hash(&lab.path("d/f")), before);
}

/// Two runs that begin at one moment, on two loop devices over one file: never both.
#[test]
fn of_two_runs_on_names_of_the_same_bytes_one_at_most_goes_on() {
    needs_root!("losetup");
    let mut lab = Lab::new("exchanged-twins");
    let image = lab.sparse("image", 16);
    let second = lab.path("second");
    fs::hard_link(&image, &second).unwrap();
    let (one, two) = (lab.attach(&image, &[]), lab.attach(&second, &[]));
    // A run is longer than the second for which the other waits for it.
    let trials = 6;
    let mut both = 0;
    for (first, other, what) in [(&one, &two, "twins"), (&one, &one, "one device")] {
        for _ in 0..trials {
            let start = |device: &str, store: &str| {
                lab.start(&format!(
                    "run random-write --time 2s --size 1MiB -q --store {store} --target \
                     {device} --destroy {device} --even-though signature"
                ))
            };
            let (a, b) = (start(first, "a.db"), start(other, "b.db"));
            let (a, b) = (a.end(), b.end());
            for said in [&a, &b] {
                assert!(matches!(said.code, Some(0 | 3)), "{what}: {said}");
            }
            both += usize::from(a.code == Some(0) && b.code == Some(0));
        }
    }
    assert_eq!(both, 0, "of {} times two runs", 2 * trials);
}
