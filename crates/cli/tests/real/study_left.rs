//! What is said to be left of a study is what is taken back; what is not is told, and why.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lab::{Lab, Said, hash, needs_root, tool};
use crate::study::{
    EXT4, change, is_blank, kill_when_mounted, killed_while_mounted, loops, mounted,
    playing_for_long, strs, study, unmount,
};
use crate::study_guards::with_lines;

const MIRROR: &str = "members = 2\nlevel = \"raid1\"\nfile_system = \"btrfs\"";

/// Lines of what is done, without those of what is not, sorted.
fn done(text: &str) -> Vec<String> {
    let acts = ["write ", "umount ", "rmdir ", "wipefs ", "zero "];
    let lines = text.lines().map(str::trim);
    let mut found: Vec<String> = lines
        .filter(|line| acts.iter().any(|act| line.starts_with(act)))
        .map(|line| line.split(", where its").next().unwrap().to_owned())
        .collect();
    found.sort();
    found
}

fn queue(device: &str) -> String {
    format!("/sys/block/{}/queue", device.trim_start_matches("/dev/"))
}

fn read_ahead(device: &str) -> String {
    fs::read_to_string(format!("{}/read_ahead_kb", queue(device))).unwrap().trim().to_owned()
}

/// Another file under the number of a loop device.
fn exchange(device: &str, file: &Path) {
    tool("losetup", &["-d", device]);
    tool("losetup", &[device, file.to_str().unwrap()]);
}

/// Kills the study of `s.toml` when a member of its mirror is gone.
fn kill_when_degraded(lab: &Lab, devices: &[String]) {
    let mut child = lab.command("study s.toml --quiet").spawn().unwrap();
    let is_degraded = || {
        let table = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut of_it = table.lines().filter(|line| line.starts_with(&format!("{} ", devices[0])));
        of_it.any(|line| line.contains("degraded"))
    };
    let begun = Instant::now();
    while !is_degraded() && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_degraded(), "the study never mounted it without its member");
}

#[test]
fn a_dry_run_lists_what_builds_and_what_takes_down() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-lists");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), &format!("{EXT4}\nread_ahead = \"64KiB\""), "");
    let said = lab.ok("study s.toml --dry-run").out;
    let device = &devices[0];
    let down = [
        "      take it down again".to_owned(),
        format!("        put {}/read_ahead_kb back to what it was", queue(device)),
        "        umount /run/plimsoll/key/data".to_owned(),
        "        rmdir /run/plimsoll/key/data".to_owned(),
        "        rmdir /run/plimsoll/key".to_owned(),
        format!("        wipefs --all --quiet --types ext2,ext3,ext4,ext4dev {device}"),
    ];
    assert!(said.contains(&down.join("\n")), "{said}");
    assert!(said.contains(&format!("The first and last MiB are zeroed of {device}.")), "{said}");
}

/// What is mounted by one that is being played is nobody's to unmount.
#[test]
fn a_study_that_is_being_played_left_nothing_behind() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-playing");
    let devices = loops(&mut lab, 2, 64);
    study(&lab, &[&devices[0]], EXT4, "");
    let mut child = playing_for_long(&lab, &devices);
    study(&lab, &[&devices[1]], EXT4, "");
    let beside = lab.run("study s.toml");
    let listed = lab.run("study clean --dry-run");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(beside.code, Some(0), "{beside}");
    assert!(!beside.err.contains("left things behind"), "{beside}");
    assert!(done(&listed.out).is_empty(), "{listed}");
    listed.is(3, &["the study first is being played by another process"]);
    // It is not any more.
    let listed = lab.ok("study clean --dry-run");
    assert!(listed.out.contains("umount "), "{listed}");
    let beside = lab.ok("study s.toml");
    assert!(beside.err.contains("study first of "), "{beside}");
    assert!(beside.err.contains(" left things behind"), "{beside}");
    lab.ok("study clean");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

#[test]
fn what_is_listed_is_what_is_done() {
    needs_root!("losetup", "mkfs.ext4", "mkfs.btrfs", "wipefs", "blkid");
    let mut lab = Lab::new("study-listed");
    let devices = loops(&mut lab, 2, 256);
    let held = |lab: &Lab, what: &str| {
        let listed = lab.ok("study clean --dry-run");
        let cleaned = lab.ok("study clean");
        assert!(!done(&listed.out).is_empty(), "{what}: {listed}");
        assert_eq!(done(&listed.out), done(&cleaned.err), "{what}: {listed}\n{cleaned}");
        assert!(!mounted(&devices), "{what}");
    };
    let scheduler = fs::read_to_string(format!("{}/scheduler", queue(&devices[0]))).unwrap();
    let other = scheduler.split_whitespace().find(|word| !word.starts_with('['));
    let settings = match other {
        Some(other) => format!("read_ahead = \"64KiB\"\nscheduler = \"{other}\""),
        None => "read_ahead = \"64KiB\"".to_owned(),
    };
    study(&lab, &strs(&devices), &format!("{EXT4}\n{settings}"), "");
    change(&lab, "50ms", "2s");
    kill_when_mounted(&lab, &devices);
    let listed = lab.ok("study clean --dry-run").out;
    let depth = listed.lines().find(|line| line.contains("/nr_requests"));
    assert!(
        depth.is_none_or(|line| line.ends_with("where its scheduler has not brought that back"))
    );
    // The scheduler brings it back, so it is not told as written: it is taken out of both.
    if depth.is_none() {
        held(&lab, "mounted");
    } else {
        lab.ok("study clean");
    }
    study(&lab, &strs(&devices), &format!("{EXT4}\nread_ahead = \"64KiB\""), "");
    change(&lab, "50ms", "2s");
    kill_when_mounted(&lab, &devices);
    unmount(&devices[0]);
    held(&lab, "unmounted by somebody");
    kill_when_mounted(&lab, &devices);
    unmount(&devices[0]);
    // Somebody's own.
    tool("mkfs.ext4", &["-q", "-F", "-L", "plimsoll", &devices[0]]);
    held(&lab, "another of that name");
    tool("wipefs", &["--all", "--quiet", &devices[0]]);
    tool("blkdiscard", &["-f", &devices[0]]);
    study(&lab, &strs(&devices), &format!("{MIRROR}\nstate = \"degraded\""), "");
    change(&lab, "50ms", "2s");
    kill_when_degraded(&lab, &devices);
    held(&lab, "degraded");
}

#[test]
fn settings_that_are_not_put_back_are_told() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-grown");
    let devices = loops(&mut lab, 1, 64);
    let device = devices[0].clone();
    let before = read_ahead(&device);
    study(&lab, &strs(&devices), &format!("{EXT4}\nread_ahead = \"64KiB\""), "");
    change(&lab, "50ms", "2s");
    kill_when_mounted(&lab, &devices);
    unmount(&device);
    let size = |mib: u64| {
        let image = fs::OpenOptions::new().write(true).open(lab.path("d0.img")).unwrap();
        image.set_len(mib << 20).unwrap();
        tool("losetup", &["-c", &device]);
    };
    size(66);
    let line = format!(
        "not done: write {before} to {}/read_ahead_kb: {device} is left alone: its size is",
        queue(&device)
    );
    let listed = lab.ok("study clean --dry-run");
    assert!(listed.out.contains(&line), "{listed}");
    assert!(done(&listed.out).iter().all(|line| line.starts_with("rmdir ")), "{listed}");
    for _ in 0..2 {
        let said = lab.run("study clean");
        assert!(said.err.contains(&line), "{said}");
        said.is(3, &[]);
        assert_eq!(read_ahead(&device), "64");
    }
    // Whatever is played next.
    let other = "[stack]\ntarget = \"null:\"\n[measure]\nsuites = [\"random-read\"]\ntime = \"20ms\"\nquick = true\n";
    fs::write(lab.path("other.toml"), other).unwrap();
    let said = lab.ok("study other.toml");
    assert!(said.err.contains(&line["not done: ".len()..]), "{said}");
    size(64);
    lab.ok("study clean");
    assert_eq!(read_ahead(&device), before);
    assert!(is_blank(&lab.path("d0.img")));
}

/// Names of queues may be other devices' after a restart; what was set went with the old ones.
#[test]
fn a_queue_that_no_device_of_the_study_has_any_more_is_not_set() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-queue");
    let devices = killed_while_mounted(&mut lab, 64);
    let file = lab.sparse("other.img", 8);
    let other = lab.attach(&file, &[]);
    let before = read_ahead(&other);
    let set = |device: &str, value: &str| {
        fs::write(format!("{}/read_ahead_kb", queue(device)), value).unwrap();
    };
    set(&other, "512");
    with_lines(&lab, &|_, line| {
        let is_was = line.starts_with("{\"is\":\"was\"");
        Some(if is_was {
            line.replace(&queue(&devices[0]), &queue(&other))
        } else {
            line.to_owned()
        })
    });
    let listed = lab.ok("study clean --dry-run");
    assert!(!listed.out.contains("write "), "{listed}");
    let said = lab.ok("study clean");
    assert_eq!(read_ahead(&other), "512", "{said}");
    assert!(said.err.contains("no device of the study has that queue now"), "{said}");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
    [&devices[0], &other].iter().for_each(|device| set(device, &before));
}

/// A drive that dies in a study: what is on the others is nobody's for good.
#[test]
fn what_is_on_the_others_is_taken_back_where_a_member_is_another() {
    needs_root!("losetup", "mkfs.ext4", "mkfs.btrfs", "wipefs", "blkid");
    for degraded in [true, false] {
        let mut lab = Lab::new("study-member");
        let devices = loops(&mut lab, 2, 256);
        let state = if degraded { "degraded" } else { "healthy" };
        study(&lab, &strs(&devices), &format!("{MIRROR}\nstate = \"{state}\""), "");
        change(&lab, "50ms", "2s");
        if degraded {
            kill_when_degraded(&lab, &devices);
        } else {
            kill_when_mounted(&lab, &devices);
            unmount(&devices[0]);
        }
        // Its number is somebody else's now.
        let theirs = lab.sparse("theirs.img", 64);
        exchange(&devices[1], &theirs);
        tool("mkfs.ext4", &["-q", "-F", "-L", "plimsoll", &devices[1]]);
        let before = hash(&theirs);
        let line = |what: &str| {
            format!("not done: {what} {}: {} is left alone: its size is", devices[1], devices[1])
        };
        let both =
            [line("wipefs --all --quiet --types btrfs"), line("zero the first and last MiB of")];
        let told = |text: &str, said: &Said| {
            both.iter().for_each(|line| assert!(text.contains(line), "{state}: {said}"));
        };
        let listed = lab.ok("study clean --dry-run");
        told(&listed.out, &listed);
        let said = lab.run("study clean");
        told(&said.err, &said);
        assert_eq!(done(&listed.out), done(&said.err), "{state}: {listed}\n{said}");
        said.is(3, &[&format!("{} is left alone: its size is", devices[1])]);
        assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")), "{state}");
        assert_eq!(hash(&theirs), before, "{state}: it was written");
        // The others are as blank as they were.
        let text = fs::read_to_string(lab.path("s.toml")).unwrap();
        study(&lab, &[&devices[0]], EXT4, "");
        fs::rename(lab.path("s.toml"), lab.path("next.toml")).unwrap();
        fs::write(lab.path("s.toml"), text).unwrap();
        lab.ok("study next.toml --quiet");
        // And somebody's, who is not asked when the right one is back.
        tool("mkfs.ext4", &["-q", "-L", "precious", &devices[0]]);
        let precious = hash(&lab.path("d0.img"));
        let again = lab.run("study clean");
        assert!(done(&again.err).is_empty(), "{state}: {again}");
        again.is(3, &[]);
        exchange(&devices[1], &lab.path("d1.img"));
        lab.ok("study clean");
        assert!(is_blank(&lab.path("d1.img")), "{state}");
        assert_eq!(hash(&lab.path("d0.img")), precious, "{state}: it was written");
        assert!(lab.ok("study clean").err.contains("nothing is left"), "{state}");
    }
}
