//! Studies that build: on loop devices. What the kernel here lacks says `skipped: ...`.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::{Lab, hash, needs_root, tool};

/// A study over those devices.
pub fn study(lab: &Lab, pool: &[&str], stack: &str, measure: &str) {
    let pool: Vec<String> = pool.iter().map(|device| format!("{device:?}")).collect();
    let text = format!(
        "[devices]\npool = [{}]\n[stack]\n{stack}\n[measure]\nsuites = [{{ suite = \"random-read\", \
         set = {{ rounds = {{ visits_min = 2, visits_max = 2 }} }} }}]\n\
         size = \"16MiB\"\ntime = \"50ms\"\nquick = true\n{measure}\n",
        pool.join(", ")
    );
    fs::write(lab.path("s.toml"), text).unwrap();
}

/// A study with a device for the log in half of its stacks, and one suite in the place of the usual.
///
/// * `suite`: what is within its braces before `set`.
fn study_with_wal(lab: &Lab, [data, wal]: [&str; 2], suite: &str) {
    study(lab, &[data], "file_system = \"ext4\"\nwal = [\"shared\", \"own\"]", "");
    change(lab, "[stack]", &format!("wal = [{wal:?}]\n[stack]"));
    change(lab, "suite = \"random-read\",", suite);
}

/// Puts other words into the study.
pub fn change(lab: &Lab, from: &str, to: &str) {
    let text = fs::read_to_string(lab.path("s.toml")).unwrap();
    assert!(text.contains(from), "{from}: {text}");
    fs::write(lab.path("s.toml"), text.replace(from, to)).unwrap();
}

pub fn loops(lab: &mut Lab, n: usize, mib: u64) -> Vec<String> {
    (0..n)
        .map(|k| {
            let file = lab.sparse(&format!("d{k}.img"), mib);
            lab.attach(&file, &[])
        })
        .collect()
}

pub fn strs(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// Whether anything of a study is mounted that uses one of these.
pub fn mounted(devices: &[String]) -> bool {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    table.lines().any(|line| devices.iter().any(|device| line.starts_with(&format!("{device} "))))
}

/// Whether the ends of a file are zero again.
pub fn is_blank(file: &Path) -> bool {
    let bytes = fs::read(file).unwrap();
    let mib = 1 << 20;
    bytes[..mib].iter().all(|b| *b == 0) && bytes[bytes.len() - mib..].iter().all(|b| *b == 0)
}

/// Loop devices over files of this lab, as `losetup` lists them.
fn attached(lab: &Lab) -> Vec<String> {
    let all = tool("losetup", &["--list", "--noheadings", "--output", "NAME,BACK-FILE"]);
    let ours = lab.dir.to_str().unwrap().to_owned();
    all.lines().filter(|line| line.contains(&ours)).map(ToOwned::to_owned).collect()
}

fn programs(names: &[&str]) -> bool {
    names.iter().all(|name| Path::new("/usr/sbin").join(name).exists())
}

#[test]
fn file_systems_are_built_measured_and_gone() {
    needs_root!("losetup", "mkfs.ext4", "mkfs.xfs", "wipefs", "blkid");
    let mut lab = Lab::new("study-fs");
    let devices = loops(&mut lab, 1, 400);
    let other = lab.sparse("other.img", 8);
    lab.attach(&other, &[]);
    let before = hash(&other);
    let loops_before = attached(&lab);
    assert_eq!(loops_before.len(), 2, "{loops_before:?}");
    let stack = "file_system = [\"ext4\", \"xfs\"]\nmount = [\"noatime\", \"defaults\"]";
    study(&lab, &strs(&devices), stack, "");
    let dry = lab.ok("study s.toml --dry-run");
    assert!(dry.out.contains("mkfs.xfs -f"), "{dry}");
    // A device's line is broken where its path is long.
    let words: Vec<&str> = dry.out.split_whitespace().collect();
    assert!(words.join(" ").contains("400 MiB): blank."), "{dry}");
    assert!(is_blank(&lab.path("d0.img")), "a dry run writes nothing");
    let said = lab.ok("study s.toml");
    assert!(said.err.contains("4 of 4 runs are complete"), "{said}");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")), "nothing stays");
    assert_eq!(hash(&other), before, "a device that nobody named is untouched");
    assert_eq!(attached(&lab), loops_before, "the operator's loop devices, and no other");
    let runs = lab.list();
    for run in &runs {
        let exported = lab.export(run["id"].as_str().unwrap());
        let levels = &exported["part"]["study"]["levels"];
        assert_eq!(levels[0]["name"], "file_system");
        assert_eq!(exported["target"]["file_system"], levels[0]["value"]);
        let options = exported["target"]["mount"].as_str().unwrap();
        assert_eq!(options.contains("noatime"), levels[1]["value"] == "noatime", "{options}");
    }
    let told = lab.ok("explain --group last");
    assert!(told.out.contains("The study varied file_system (ext4 and xfs); mount"), "{told}");
    // All is as it was before, so it can be played again.
    lab.ok("study s.toml --quiet");
}

#[test]
fn btrfs_over_several_devices_is_verified() {
    needs_root!("losetup", "mkfs.btrfs", "wipefs", "blkid");
    let mut lab = Lab::new("study-btrfs");
    let devices = loops(&mut lab, 4, 256);
    let stack = "members = [2, 4]\nlevel = [\"raid1\", \"raid0\"]\nfile_system = \"btrfs\"";
    study(&lab, &strs(&devices), stack, "");
    let said = lab.ok("study s.toml");
    assert!(said.err.contains("4 of 4 runs are complete"), "{said}");
    assert!(!mounted(&devices));
    for k in 0..4 {
        assert!(is_blank(&lab.path(&format!("d{k}.img"))), "device {k}");
    }
}

/// Its files are made anew, and tell what cannot be asked of them only then.
#[test]
fn what_is_impossible_on_a_file_system_is_so_when_it_is_built_again() {
    needs_root!("losetup", "mkfs.btrfs", "wipefs", "blkid");
    let mut lab = Lab::new("study-impossible");
    let devices = loops(&mut lab, 1, 256);
    let btrfs = "members = 1\nlevel = \"raid0\"\nfile_system = \"btrfs\"";
    study(&lab, &strs(&devices), btrfs, "");
    change(&lab, "set = {", "set = { block_size = [\"512B\", \"4KiB\"],");
    change(&lab, "50ms", "2s");
    let mut running = lab.start("study s.toml");
    running.until_it_says("read: round 1");
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(130));
    let said = lab.ok("study s.toml --resume");
    assert!(said.err.contains("1 of 1 runs are complete"), "{said}");
    let run = lab.export(lab.list()[0]["id"].as_str().unwrap());
    assert!(run["cells"].to_string().contains("smallest unit is 4KiB"), "{}", run["cells"]);
}

#[test]
fn a_suite_of_the_log_is_measured_on_its_device() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-wal");
    let devices = loops(&mut lab, 2, 64);
    study_with_wal(&lab, [&devices[0], &devices[1]], "suite = \"random-read\", on = \"wal\",");
    lab.ok("study s.toml");
    for run in &lab.list() {
        let exported = lab.export(run["id"].as_str().unwrap());
        let own = exported["part"]["study"]["levels"][0]["value"] == "own";
        let place = exported["target"]["resolved"].as_str().unwrap();
        assert_eq!(place.contains("/wal/"), own, "{place}");
    }
    assert!(!mounted(&devices));
    assert!(is_blank(&lab.path("d0.img")) && is_blank(&lab.path("d1.img")));
}

#[test]
fn a_log_on_one_device_is_measured_beside_data_on_another() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-both");
    let devices = loops(&mut lab, 2, 64);
    let suite = "suite = \"./both.toml\", on = [\"wal\", \"data\"],";
    study_with_wal(&lab, [&devices[0], &devices[1]], suite);
    change(&lab, "quick = true\n", "");
    // The log's files come first.
    let both = "schema = 1\nname = \"both\"\nfile_size = \"8MiB\"\nfill = true\n[[phase]]\nname = \"all\"\n\
                time = \"50ms\"\nblock_size = \"4KiB\"\n\
                [[phase.stream]]\nname = \"log\"\noperation = \"write\"\naccess = \"sequential\"\n\
                sync = \"fdatasync\"\nregion = \"50%\"\n\
                [[phase.stream]]\nname = \"reads\"\nregion = { start = \"50%\" }\n";
    fs::write(lab.path("both.toml"), both).unwrap();
    // Three times 16 MiB on each of the two.
    let dry = lab.ok("study s.toml --dry-run");
    assert!(dry.out.contains("The suites write 96 MiB at least"), "{dry}");
    lab.ok("study s.toml");
    let runs = lab.list();
    assert_eq!(runs.len(), 3, "the base, the other, the base again");
    for run in &runs {
        let exported = lab.export(run["id"].as_str().unwrap());
        let own = exported["part"]["study"]["levels"][0]["value"] == "own";
        let targets = exported["targets"].as_array().unwrap();
        let places: Vec<&str> =
            targets.iter().map(|target| target["resolved"].as_str().unwrap()).collect();
        assert_eq!(places.len(), 2, "{places:?}");
        assert!(places[0].ends_with("plimsoll-log.dat"), "{places:?}");
        assert!(places[1].ends_with("/data/plimsoll.dat"), "{places:?}");
        assert_eq!(places[0].contains("/wal/"), own, "{places:?}");
    }
    assert!(!mounted(&devices));
    assert!(is_blank(&lab.path("d0.img")) && is_blank(&lab.path("d1.img")));
}

#[test]
fn arrays_of_btrfs_are_measured_degraded_and_rebuilding() {
    needs_root!("losetup", "mkfs.btrfs", "wipefs", "blkid");
    let mut lab = Lab::new("study-states");
    let devices = loops(&mut lab, 2, 256);
    let stack = "members = 2\nlevel = \"raid1\"\nfile_system = \"btrfs\"\n\
                 state = [\"healthy\", \"degraded\", \"rebuilding\"]";
    study(&lab, &strs(&devices), stack, "");
    let said = lab.ok("study s.toml");
    assert!(said.out.contains("its member was filled in"), "{said}");
    for run in &lab.list() {
        let exported = lab.export(run["id"].as_str().unwrap());
        let study = &exported["part"]["study"];
        let state = study["levels"][0]["value"].as_str().unwrap();
        let wanted = (state != "healthy").then_some(state);
        assert_eq!(study["state"].as_str(), wanted, "{study}");
        let warnings = exported["warnings"].as_array().unwrap();
        let coded = |code: &str| warnings.iter().any(|warning| warning["code"] == code);
        assert_eq!(coded("degraded"), state == "degraded", "{warnings:?}");
        assert_eq!(coded("rebuilt"), state == "rebuilding", "{warnings:?}");
        assert!(!coded("resumed"), "{warnings:?}");
    }
    assert!(!mounted(&devices));
    assert!(is_blank(&lab.path("d0.img")) && is_blank(&lab.path("d1.img")));
}

#[test]
fn settings_are_put_back() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-settings");
    let devices = loops(&mut lab, 1, 64);
    let queue = format!("/sys/block/{}/queue", devices[0].trim_start_matches("/dev/"));
    let read = |name: &str| fs::read_to_string(format!("{queue}/{name}")).unwrap();
    let before = (read("scheduler"), read("read_ahead_kb"));
    let other = before.0.split_whitespace().find(|word| !word.starts_with('['));
    let Some(other) = other else {
        eprintln!("skipped: one scheduler only");
        return;
    };
    let stack = format!(
        "file_system = \"ext4\"\nscheduler = \"{other}\"\nread_ahead = [\"64KiB\", \"512KiB\"]"
    );
    study(&lab, &strs(&devices), &stack, "");
    lab.ok("study s.toml");
    assert_eq!((read("scheduler"), read("read_ahead_kb")), before);
}

/// Another scheduler sets the depth of the queue to its own, and begins with its own tunables.
#[test]
fn what_a_scheduler_resets_is_put_back_with_it() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-depth");
    let devices = loops(&mut lab, 1, 64);
    let queue = format!("/sys/block/{}/queue", devices[0].trim_start_matches("/dev/"));
    let read = |name: &str| fs::read_to_string(format!("{queue}/{name}")).unwrap();
    let set = |name: &str, value: &str| fs::write(format!("{queue}/{name}"), value).unwrap();
    let offered = read("scheduler");
    if !["mq-deadline", "none"].iter().all(|word| offered.contains(word)) {
        eprintln!("skipped: its schedulers are {offered}");
        return;
    }
    set("scheduler", "mq-deadline");
    set("nr_requests", "40");
    set("iosched/read_expire", "77");
    let now = || [read("scheduler"), read("nr_requests"), read("iosched/read_expire")];
    let before = now();
    let varied = "file_system = \"ext4\"\nscheduler = \"none\"";
    for stack in [varied.to_owned(), format!("{varied}\nnr_requests = [16, 32]")] {
        study(&lab, &strs(&devices), &stack, "");
        lab.ok("study s.toml --quiet");
        assert_eq!(now(), before, "{stack}");
        change(&lab, "50ms", "2s");
        kill_when_mounted(&lab, &devices);
        assert_ne!(read("scheduler"), before[0], "{stack}");
        lab.ok("study clean");
        assert_eq!(now(), before, "{stack}: killed");
    }
}

#[test]
fn killed_at_any_moment_it_resumes_or_is_cleaned() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-kill");
    let devices = loops(&mut lab, 2, 64);
    let stack = "members = 1\nfile_system = [\"ext4\", \"ext2\"]\nread_ahead = \"64KiB\"";
    study(&lab, &strs(&devices), stack, "");
    let queue = format!("/sys/block/{}/queue", devices[0].trim_start_matches("/dev/"));
    let read_ahead = || fs::read_to_string(format!("{queue}/read_ahead_kb")).unwrap();
    let before = read_ahead();
    let mut broken = 0;
    for (round, after) in [30u64, 80, 160, 260, 400, 600, 800, 1100, 1500, 2000].iter().enumerate()
    {
        let mut child = lab.command("study s.toml --quiet").spawn().unwrap();
        sleep(Duration::from_millis(*after));
        child.kill().unwrap();
        child.wait().unwrap();
        // A tool that it had started may still be at work.
        let waited = Instant::now();
        while waited.elapsed() < Duration::from_secs(5) && tools_are_running() {
            sleep(Duration::from_millis(20));
        }
        if round % 2 == 0 {
            lab.ok("study clean");
            assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")), "after {after} ms");
            assert_eq!(read_ahead(), before, "after {after} ms");
            continue;
        }
        let said = lab.run("study s.toml --resume");
        match said.code {
            Some(0) => {
                broken += 1;
                let group = lab.list().last().unwrap()["part"]["group"].clone();
                let of = lab.list().into_iter().filter(|run| run["part"]["group"] == group);
                let numbers: Vec<u64> = of.map(|r| r["part"]["number"].as_u64().unwrap()).collect();
                assert_eq!(numbers, [1, 2, 3], "after {after} ms: each run once");
            }
            // It had not begun, or was through.
            Some(2) => assert!(said.err.contains("nothing to resume"), "{said}"),
            _ => panic!("after {after} ms: {said}"),
        }
        assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")), "after {after} ms");
        assert_eq!(read_ahead(), before, "after {after} ms");
    }
    eprintln!("resumed {broken} times");
    assert!(is_blank(&lab.path("d1.img")), "a device of the pool that no stack needs");
}

/// Seed and number of the kills; `PLIMSOLL_KILLS=40` for the long form, `PLIMSOLL_SEED` to see one again.
fn kills() -> (u64, usize) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("PLIMSOLL_SEED").unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::from(since.subsec_nanos())
    });
    (seed, number("PLIMSOLL_KILLS").unwrap_or(3) as usize)
}

/// Runs with how many visits of each are stored.
fn visits(lab: &Lab) -> Vec<(String, u64, u64)> {
    if !lab.path("store.db").exists() || lab.run("list").code != Some(0) {
        return Vec::new();
    }
    let of = |run: &serde_json::Value| {
        let id = run["id"].as_str().unwrap().to_owned();
        (id, run["part"]["number"].as_u64().unwrap_or(0), run["visits_made"].as_u64().unwrap())
    };
    lab.list().iter().map(of).collect()
}

#[test]
fn killed_at_random_points_the_plan_is_the_same_and_no_visit_is_lost() {
    needs_root!("losetup", "mkfs.btrfs", "mkfs.xfs", "wipefs", "blkid");
    let (seed, times) = kills();
    let mut random = stats::Random::new(seed);
    let mut lab = Lab::new("study-kills");
    let devices = loops(&mut lab, 2, 400);
    for (what, stack) in [
        ("btrfs", "members = 2\nlevel = [\"raid1\", \"raid0\"]\nfile_system = \"btrfs\""),
        ("xfs", "members = 1\nfile_system = [\"xfs\", \"ext4\"]\nread_ahead = \"64KiB\""),
    ] {
        study(&lab, &strs(&devices), stack, "");
        let known: Vec<String> = visits(&lab).into_iter().map(|(id, ..)| id).collect();
        let ours = |lab: &Lab| -> Vec<(String, u64, u64)> {
            visits(lab).into_iter().filter(|(id, ..)| !known.contains(id)).collect()
        };
        let mut resume = "";
        for kill in 0..times {
            let mut child = lab.command(&format!("study s.toml --quiet {resume}")).spawn().unwrap();
            sleep(Duration::from_millis(20 + random.below(3000)));
            child.kill().unwrap();
            child.wait().unwrap();
            let waited = Instant::now();
            while waited.elapsed() < Duration::from_secs(10) && tools_are_running() {
                sleep(Duration::from_millis(20));
            }
            let before = ours(&lab);
            let at = format!("{what}, seed {seed}, kill {kill}");
            // Killed before it had begun, or after its end, there is nothing to go on with.
            let begun = lab.ok("study clean --dry-run").out.contains("study s ");
            resume = if begun { "--resume" } else { "" };
            for (id, number, made) in &before {
                let now = ours(&lab);
                let now = now.iter().find(|(known, ..)| known == id);
                assert!(
                    now.is_some_and(|(_, place, visits)| place == number && visits >= made),
                    "{at}: {id} had {made} visits: {now:?}"
                );
            }
        }
        let before = ours(&lab);
        lab.ok(&format!("study s.toml --quiet {resume}"));
        let after = ours(&lab);
        let mut numbers: Vec<u64> =
            after.iter().rev().take(3).map(|(_, place, _)| *place).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3], "{what}, seed {seed}: each run of the plan once");
        for (id, number, made) in &before {
            let now = after.iter().find(|(known, ..)| known == id);
            assert!(
                now.is_some_and(|(_, place, visits)| place == number && visits >= made),
                "{what}, seed {seed}: {id} had {made} visits: {now:?}"
            );
        }
        assert!(!mounted(&devices), "{what}, seed {seed}");
        for k in 0..2 {
            assert!(is_blank(&lab.path(&format!("d{k}.img"))), "{what}, seed {seed}, device {k}");
        }
    }
}

fn tools_are_running() -> bool {
    ["mkfs.ext4", "mkfs.ext2", "mke2fs", "mkfs.xfs", "mkfs.btrfs", "wipefs"].iter().any(|name| {
        Command::new("pgrep").args(["-x", name]).output().is_ok_and(|said| said.status.success())
    })
}

#[test]
fn settings_of_a_killed_study_are_put_back_at_the_next_start() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let mut lab = Lab::new("study-next");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), "file_system = \"ext4\"\nread_ahead = \"64KiB\"", "");
    let queue = format!("/sys/block/{}/queue", devices[0].trim_start_matches("/dev/"));
    let read_ahead = || fs::read_to_string(format!("{queue}/read_ahead_kb")).unwrap();
    let before = read_ahead();
    change(&lab, "50ms", "2s");
    // Settings have nothing to do with a tool that is still at work, however long it takes.
    let mut child = with_slow_mkfs(&lab, 12, "study s.toml --quiet").spawn().unwrap();
    let begun = Instant::now();
    while read_ahead() == before && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(5));
    }
    assert_ne!(read_ahead(), before, "the study never set it");
    child.kill().unwrap();
    child.wait().unwrap();
    let other = "[stack]\ntarget = \"null:\"\n[measure]\nsuites = [\"random-read\"]\ntime = \"20ms\"\nquick = true\n";
    fs::write(lab.path("other.toml"), other).unwrap();
    let said = lab.ok("study other.toml");
    assert_eq!(read_ahead(), before, "{said}");
    assert!(
        said.err.contains(&format!(
            "write {} to {queue}/read_ahead_kb, as it was before study s",
            before.trim()
        )),
        "{said}"
    );
    lab.ok("study clean");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

/// A study of one device that was killed while its file system was mounted.
pub fn killed_while_mounted(lab: &mut Lab, mib: u64) -> Vec<String> {
    let devices = loops(lab, 1, mib);
    study(lab, &strs(&devices), "file_system = \"ext4\"\nread_ahead = \"64KiB\"", "");
    change(lab, "50ms", "2s");
    kill_when_mounted(lab, &devices);
    devices
}

pub fn kill_when_mounted(lab: &Lab, devices: &[String]) {
    let mut child = playing(lab, "s.toml", devices);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A study that is being played: something of it is mounted.
pub fn playing(lab: &Lab, file: &str, devices: &[String]) -> Child {
    let child = lab.command(&format!("study {file} --quiet")).spawn().unwrap();
    let begun = Instant::now();
    while !mounted(devices) && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(5));
    }
    assert!(mounted(devices), "the study never mounted it");
    child
}

/// A copy of the study that measures for long, being played.
pub fn playing_for_long(lab: &Lab, devices: &[String]) -> Child {
    let text = fs::read_to_string(lab.path("s.toml")).unwrap().replace("50ms", "20s");
    fs::write(lab.path("first.toml"), text).unwrap();
    playing(lab, "first.toml", devices)
}

/// Somebody unmounts what a killed study left.
pub fn unmount(device: &str) {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = table.lines().find(|line| line.starts_with(&format!("{device} ")));
    crate::lab::tool("umount", &[line.unwrap().split(' ').nth(1).unwrap()]);
}

/// Bytes of no known kind over all of a device: a raw database, a guest's disk, a detached header.
fn write_noise(device: &str, seed: u64) {
    let mut random = stats::Random::new(seed);
    let mut file = fs::OpenOptions::new().write(true).open(device).unwrap();
    let size = file.seek(SeekFrom::End(0)).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let bytes: Vec<u8> =
        (0..size / 8).flat_map(|_| (random.below(u64::MAX) | 1).to_le_bytes()).collect();
    file.write_all(&bytes).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn bytes_of_no_known_kind_are_never_taken_for_a_killed_studys() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    for resume in [true, false] {
        let mut lab = Lab::new("study-noise");
        let devices = killed_while_mounted(&mut lab, 64);
        unmount(&devices[0]);
        write_noise(&devices[0], 7);
        let before = hash(&lab.path("d0.img"));
        if resume {
            lab.run("study s.toml --resume").is(
                3,
                &[&format!("{} is not blank: unknown data", devices[0]), "somebody used it since"],
            );
            assert_eq!(hash(&lab.path("d0.img")), before, "resumed: it was written");
            // Whose it is gives it away by its name.
            lab.ok(&format!("study s.toml --resume --override signature:{}", devices[0]));
            assert!(is_blank(&lab.path("d0.img")));
        } else {
            let said = lab.ok("study clean");
            let told = format!("{} is left alone: on it is unknown data", devices[0]);
            assert!(said.err.contains(&told), "{said}");
            assert!(!said.err.contains("\nzero the first"), "{said}");
            assert_eq!(hash(&lab.path("d0.img")), before, "cleaned: it was written");
        }
    }
}

/// A study over those devices in a mount name space of its own, where `mkfs.ext4` takes its time.
fn with_slow_mkfs(lab: &Lab, seconds: u32, words: &str) -> Command {
    let real = lab.path("mkfs.ext4");
    fs::copy("/usr/sbin/mke2fs", &real).unwrap();
    let fake = lab.path("slow");
    let text = format!("#!/bin/sh\nsleep {seconds}\nexec {} \"$@\"\n", real.display());
    fs::write(&fake, text).unwrap();
    crate::lab::tool("chmod", &["755", fake.to_str().unwrap()]);
    let script = format!(
        "mount --bind {} /usr/sbin/mke2fs && exec {} {words} --store store.db",
        fake.display(),
        crate::lab::PLIMSOLL
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(&lab.dir);
    command
}

#[test]
fn a_tool_that_outlives_its_study_is_waited_for_before_cleaning() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let mut lab = Lab::new("study-orphan");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    let mut child = with_slow_mkfs(&lab, 3, "study s.toml --quiet").spawn().unwrap();
    let begun = Instant::now();
    let journal = || {
        let all = fs::read_dir(lab.path("store.db.studies")).into_iter().flatten().flatten();
        let all = all.filter(|entry| entry.path().extension().is_some_and(|e| e == "journal"));
        all.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default()).collect::<String>()
    };
    while !journal().contains("mkfs.ext4") && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(300));
    child.kill().unwrap();
    child.wait().unwrap();
    // Its mkfs is still asleep.
    lab.ok("study clean");
    sleep(Duration::from_secs(4));
    assert!(is_blank(&lab.path("d0.img")), "it was written after it was cleaned up");
}

#[test]
fn another_device_under_the_name_is_neither_set_nor_ticked_off() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-exchanged");
    let devices = killed_while_mounted(&mut lab, 64);
    unmount(&devices[0]);
    let other = lab.sparse("other.img", 64);
    let swap = |file: &Path| {
        crate::lab::tool("losetup", &["-d", &devices[0]]);
        crate::lab::tool("losetup", &[&devices[0], file.to_str().unwrap()]);
    };
    swap(&other);
    let path = format!("/sys/block/{}/queue/read_ahead_kb", &devices[0]["/dev/".len()..]);
    fs::write(&path, "512").unwrap();
    for words in ["study clean", "study s.toml --resume"] {
        lab.run(words).is(3, &[&format!("{} is left alone: its file is", devices[0])]);
        assert_eq!(fs::read_to_string(&path).unwrap().trim(), "512", "{words}");
    }
    // With the right one it is all still to be done.
    swap(&lab.path("d0.img"));
    let said = lab.ok("study clean");
    assert!(said.err.contains("wipefs --all"), "{said}");
    assert!(is_blank(&lab.path("d0.img")));
}

#[test]
fn a_journal_that_goes_away_ends_the_study_and_all_is_taken_back() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-lost");
    let devices = loops(&mut lab, 1, 64);
    let stack = "file_system = [\"ext4\", \"ext2\"]\nread_ahead = \"64KiB\"";
    study(&lab, &strs(&devices), stack, "");
    change(&lab, "50ms", "1s");
    let path = format!("/sys/block/{}/queue/read_ahead_kb", &devices[0]["/dev/".len()..]);
    let before = fs::read_to_string(&path).unwrap();
    let running = lab.start("study s.toml --quiet");
    let begun = Instant::now();
    while !mounted(&devices) && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(5));
    }
    fs::remove_dir_all(lab.path("store.db.studies")).unwrap();
    running.end().is(6, &["cannot find the journal"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

/// The same label is no proof: what a study made is known by its number.
#[test]
fn a_file_system_of_the_same_name_is_not_a_killed_studys() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-label");
    let devices = killed_while_mounted(&mut lab, 64);
    unmount(&devices[0]);
    let label = crate::lab::tool("blkid", &["-p", "-s", "LABEL", "-o", "value", &devices[0]]);
    crate::lab::tool("mkfs.ext4", &["-q", "-F", "-L", label.trim(), &devices[0]]);
    let before = hash(&lab.path("d0.img"));
    let said = lab.ok("study clean");
    assert!(said.err.contains("is left alone: on it is ext2/ext3/ext4"), "{said}");
    assert_eq!(hash(&lab.path("d0.img")), before, "it was written");
}

#[test]
fn what_somebody_put_there_after_a_kill_is_left_alone() {
    needs_root!("losetup", "mkfs.ext4", "mkfs.xfs", "wipefs", "blkid");
    for resume in [true, false] {
        let mut lab = Lab::new("study-others");
        let devices = killed_while_mounted(&mut lab, 400);
        // Somebody unmounts it and makes something else of it.
        unmount(&devices[0]);
        crate::lab::tool("mkfs.xfs", &["-q", "-f", "-L", "precious", &devices[0]]);
        let before = hash(&lab.path("d0.img"));
        if resume {
            let said = lab.run("study s.toml --resume");
            assert_eq!(said.code, Some(3), "{said}");
            assert!(said.err.contains("is not blank: xfs"), "{said}");
        } else {
            lab.ok("study clean");
        }
        assert_eq!(hash(&lab.path("d0.img")), before, "resume {resume}: it was written");
    }
}

#[test]
fn a_device_without_file_system_is_measured_itself() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-bare");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), "file_system = [\"none\", \"ext4\"]", "");
    change(&lab, "random-read", "random-write");
    let said = lab.ok("study s.toml");
    assert!(said.err.contains("3 of 3 runs are complete"), "{said}");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

/// The study is refused with these words, and writes nothing.
pub fn refused(lab: &Lab, files: &[&str], options: &str, wanted: &str) {
    let before: Vec<u64> = files.iter().map(|file| hash(&lab.path(file))).collect();
    let said = lab.run(&format!("study s.toml {options}"));
    assert_eq!(said.code, Some(3), "{wanted}: {said}");
    assert!(said.err.contains(wanted), "{wanted}: {said}");
    let after: Vec<u64> = files.iter().map(|file| hash(&lab.path(file))).collect();
    assert_eq!(before, after, "{wanted}: something was written");
}

pub const EXT4: &str = "members = 1\nfile_system = \"ext4\"";

#[test]
fn what_is_mounted_is_refused() {
    needs_root!("losetup", "mkfs.ext4");
    let mut lab = Lab::new("study-mounted");
    let (device, _) = lab.ext4("ro,noload");
    study(&lab, &[&device], EXT4, "");
    refused(&lab, &[], "", "is mounted at");
    // That cannot be overridden.
    let said = lab.run(&format!("study s.toml --override mounted:{device}"));
    assert_eq!(said.code, Some(2), "{said}");
    let said = lab.run(&format!("study s.toml --override signature:{device}"));
    assert_eq!(said.code, Some(3), "{said}");
    assert!(said.err.contains("is mounted at"), "{said}");
}

#[test]
fn what_is_in_use_by_another_name_is_refused() {
    needs_root!("losetup", "mkfs.ext4");
    let mut lab = Lab::new("study-twins");
    let (device, point) = lab.ext4("rw");
    fs::write(point.join("precious"), "x").unwrap();
    let twin = lab.attach(&lab.path("fs.img"), &[]);
    study(&lab, &[&twin], EXT4, "");
    let by = format!("--override signature:{twin}");
    let in_use = format!("{twin} is in use: {} is mounted at", device.trim_start_matches("/dev/"));
    for options in ["", &by] {
        lab.run(&format!("study s.toml {options}")).is(3, &[&in_use]);
    }
    let said = lab.run(&format!(
        "run random-write --target {twin} --destroy {twin} --even-though signature --dry-run"
    ));
    assert!(said.code != Some(0) && said.err.contains(&in_use), "{said}");
    lab.detach(&twin);
    // A part of the file that nothing of it is in may be used.
    let file = lab.sparse("parts.img", 64);
    let half = (32 << 20).to_string();
    let first = lab.attach(&file, &["--sizelimit", &half]);
    let second = lab.attach(&file, &["--offset", &half]);
    study(&lab, &[&first, &second], "members = 1\nfile_system = \"ext4\"", "");
    lab.ok("study s.toml --dry-run");
    let all = lab.attach(&file, &[]);
    study(&lab, &[&first, &all], "members = 1\nfile_system = \"ext4\"", "");
    refused(&lab, &["parts.img"], "", "are two names of the same bytes");
    // The file itself is open for writing.
    let open = format!("exec 3<>{}; exec sleep 60", file.display());
    let mut holder = Command::new("bash").args(["-c", &open]).spawn().unwrap();
    sleep(Duration::from_millis(300));
    study(&lab, &[&first], EXT4, "");
    refused(&lab, &["parts.img"], "", "is in use by sleep");
    holder.kill().unwrap();
    holder.wait().unwrap();
    // A loop device over a device that is mounted.
    let over = lab.attach(Path::new(&device), &[]);
    study(&lab, &[&over], EXT4, "");
    lab.run(&format!("study s.toml --override signature:{over}")).is(3, &["is mounted at"]);
    assert_eq!(fs::read_to_string(point.join("precious")).unwrap(), "x");
}

#[test]
fn what_is_swapped_to_or_held_is_refused() {
    needs_root!("losetup", "mkswap", "swapon");
    let mut lab = Lab::new("study-held");
    let devices = loops(&mut lab, 2, 64);
    crate::lab::tool("mkswap", &[&devices[0]]);
    lab.swap_on(Path::new(&devices[0]));
    study(&lab, &[&devices[0]], EXT4, "");
    refused(&lab, &[], "", "in use as swap");
    lab.swap_off(Path::new(&devices[0]));
    // A loop device over it holds it.
    lab.attach(Path::new(&devices[1]), &[]);
    study(&lab, &[&devices[1]], EXT4, "");
    refused(&lab, &["d1.img"], "", "is held by loop");
}

#[test]
fn whatever_is_written_on_it_is_refused_and_overridden_one_by_one() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-signature");
    let devices = loops(&mut lab, 2, 64);
    crate::lab::tool("mkfs.ext4", &["-q", &devices[0]]);
    // A single byte that is not zero, and no signature at all.
    let mut bytes = fs::read(lab.path("d1.img")).unwrap();
    let at = bytes.len() - 5;
    bytes[at] = 1;
    fs::write(lab.path("d1.img"), &bytes).unwrap();
    let files = ["d0.img", "d1.img"];
    study(&lab, &strs(&devices), EXT4, "");
    let by_path = format!("--override signature:{}", devices[0]);
    refused(&lab, &files, "", &format!("{} is not blank: ext", devices[0]));
    refused(&lab, &files, "", &format!("{} is not blank: unknown data", devices[1]));
    // One override is for one device.
    refused(&lab, &files, &by_path, &format!("{} is not blank", devices[1]));
    let both = format!("{by_path} --override signature:{}", devices[1]);
    // And for one reason.
    let open = format!("--override open:{} --override signature:{}", devices[0], devices[1]);
    refused(&lab, &files, &open, &format!("{} is not blank: ext", devices[0]));
    let said = lab.ok(&format!("study s.toml {both}"));
    assert!(said.err.contains("1 of 1 runs are complete"), "{said}");
    let left = fs::read(lab.path("d1.img")).unwrap();
    assert!(left == bytes, "the second was in no stack");
}

#[test]
fn what_another_study_plays_on_is_refused_whatever_its_store() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-one");
    // The second stack of the other study would be built on what the first one has.
    let devices = loops(&mut lab, 2, 64);
    study(&lab, &strs(&devices), EXT4, "");
    let mut child = playing_for_long(&lab, &devices);
    // The second device is the first study's too, though none of its stacks uses it.
    for device in &devices {
        study(&lab, &[device], EXT4, "");
        let wanted = format!("{device} is in use by another study");
        let said = lab.run("study s.toml --store other.db");
        assert_eq!(said.code, Some(3), "{said}");
        assert!(said.err.contains(&wanted), "{said}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    lab.ok("study clean");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
    let said = lab.run("study s.toml --store other.db");
    assert_eq!(said.code, Some(0), "{said}");
}

#[test]
fn what_a_process_has_open_is_refused_until_it_is_overridden() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-open");
    let devices = loops(&mut lab, 1, 64);
    let open = format!("exec 3<>{}; sleep 60", devices[0]);
    let mut holder = Command::new("bash").args(["-c", &open]).spawn().unwrap();
    sleep(Duration::from_millis(300));
    let link = format!("/dev/plimsoll-test-open-{}", std::process::id());
    symlink(&devices[0], &link).unwrap();
    // Whichever of its names the study goes by: what was overridden is so to its end.
    let ended = [&devices[0], &link].map(|name| {
        study(&lab, &[name], EXT4, "");
        let before = hash(&lab.path("d0.img"));
        lab.run("study s.toml").is(3, &["is in use by"]);
        assert_eq!(hash(&lab.path("d0.img")), before);
        lab.run(&format!("study s.toml --override open:{name}"))
    });
    fs::remove_file(&link).unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    for said in ended {
        assert_eq!(said.code, Some(0), "{said}");
    }
}

#[test]
fn the_systems_disk_is_refused() {
    needs_root!("losetup");
    let lab = Lab::new("study-system");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (device, point) = (words.next()?, words.next()?);
        (point == "/" && device.starts_with("/dev/") && Path::new(device).exists())
            .then(|| device.to_owned())
    });
    let Some(root) = root else {
        eprintln!("skipped: the device under / has no node here");
        return;
    };
    study(&lab, &[&root], EXT4, "");
    refused(&lab, &[], "", "is never written");
    refused(&lab, &[], &format!("--override system-unseen:{root}"), "is never written");
}

#[test]
fn two_names_of_one_device_and_one_on_another_are_refused() {
    needs_root!("losetup");
    let mut lab = Lab::new("study-names");
    let devices = loops(&mut lab, 2, 64);
    let link = format!("/dev/plimsoll-test-{}", std::process::id());
    symlink(&devices[0], &link).unwrap();
    study(&lab, &[&devices[0], &link], EXT4, "");
    let said = lab.run("study s.toml");
    fs::remove_file(&link).unwrap();
    assert_eq!(said.code, Some(3), "{said}");
    assert!(said.err.contains("two names of one device"), "{said}");
    assert!(is_blank(&lab.path("d0.img")));
    for (odd, wanted) in [
        ("/dev/null", "/dev/null is no block device that the kernel shows"),
        ("/dev/no-such-device", "/dev/no-such-device is not there"),
    ] {
        study(&lab, &[odd], EXT4, "");
        refused(&lab, &["d0.img"], "", wanted);
    }
    // A path that is none of [devices] cannot come in by the words for mkfs.
    let elsewhere = "makes it write to something besides its device";
    for (words, wanted) in [
        (format!("-J device={}", devices[1]), "is neither in [devices] nor made by this study"),
        ("-z victim.txt".to_owned(), elsewhere),
        ("-J device=victim".to_owned(), elsewhere),
    ] {
        study(&lab, &[&devices[0]], &format!("{EXT4}\nmkfs = {words:?}"), "");
        for options in ["", "--dry-run"] {
            lab.run(&format!("study s.toml {options}")).is(2, &[wanted]);
        }
    }
    assert!(is_blank(&lab.path("d0.img")) && is_blank(&lab.path("d1.img")));
}

#[test]
fn a_link_is_named_beside_what_it_leads_to() {
    needs_root!("losetup", "mkfs.ext4", "mkswap");
    let mut lab = Lab::new("study-link");
    let devices = loops(&mut lab, 1, 64);
    let (device, image) = (&devices[0], lab.path("d0.img"));
    tool("mkswap", &[device]);
    let link = format!("/dev/plimsoll-test-link-{}", std::process::id());
    symlink(device, &link).unwrap();
    study(&lab, &[&link], EXT4, "");
    let before = hash(&image);
    let refusal = lab.run("study s.toml");
    // Each of the two names that the refusal says.
    let lifted = [device, &link]
        .map(|name| lab.run(&format!("study s.toml --dry-run --override signature:{name}")));
    fs::remove_file(&link).unwrap();
    symlink("/dev/plimsoll-no-such", &link).unwrap();
    let dangling = lab.run("study s.toml");
    fs::remove_file(&link).unwrap();
    refusal.is(3, &[&format!("{device} is not blank: "), &format!("in the study it is {link}")]);
    for said in lifted {
        assert_eq!(said.code, Some(0), "{said}");
    }
    dangling.is(3, &[&format!("{link} is a link to /dev/plimsoll-no-such, which is not there")]);
    assert_eq!(hash(&image), before);
}

#[test]
fn parts_of_one_device_that_share_nothing_are_two() {
    needs_root!("losetup", "mkfs.ext4");
    let mut lab = Lab::new("study-parts");
    let whole = loops(&mut lab, 1, 128).remove(0);
    let half = (64 << 20).to_string();
    let first = lab.attach(Path::new(&whole), &["--sizelimit", &half]);
    let second = lab.attach(Path::new(&whole), &["--offset", &half]);
    study(&lab, &[&first, &second], EXT4, "");
    lab.ok("study s.toml --dry-run");
    // One that has bytes of both is neither's own.
    let across = lab.attach(Path::new(&whole), &["--offset", "1048576", "--sizelimit", &half]);
    study(&lab, &[&first, &across], EXT4, "");
    refused(&lab, &["d0.img"], "", "are two names of the same bytes");
    study(&lab, &[&first, &whole], EXT4, "");
    refused(&lab, &["d0.img"], "", "are two names of the same bytes");
}

#[test]
fn a_size_that_does_not_fit_is_refused_before_anything_is_built() {
    needs_root!("losetup", "mkfs.ext4");
    let mut lab = Lab::new("study-size");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    change(&lab, "\"16MiB\"", "\"65MiB\"");
    for options in ["", "--dry-run"] {
        lab.run(&format!("study s.toml {options}")).is(2, &["holds 64MiB at most, wanted 65MiB"]);
    }
    assert!(is_blank(&lab.path("d0.img")));
}

#[test]
fn a_file_system_that_the_kernel_lacks_is_said_to_be_lacking() {
    needs_root!("losetup", "mkfs.jfs", "wipefs", "blkid");
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    let mut lab = Lab::new("study-jfs");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), "members = 1\nfile_system = \"jfs\"", "");
    let said = lab.run("study s.toml");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")), "{said}");
    if said.code == Some(0) || known.contains("jfs") {
        eprintln!("skipped: this kernel has jfs");
        return;
    }
    said.is(4, &["this kernel has no jfs: it is not in /proc/filesystems"]);
}

#[test]
fn a_disk_and_its_partition_are_refused_together() {
    needs_root!("losetup", "sfdisk");
    let mut lab = Lab::new("study-partition");
    let file = lab.sparse("d0.img", 64);
    let table = "printf 'label: dos\nstart=2048, type=83\n' | sfdisk -q ";
    let done = Command::new("sh").args(["-c", &format!("{table}{}", file.display())]).status();
    assert!(done.unwrap().success());
    let disk = lab.attach(&file, &["-P"]);
    let partition = format!("{disk}p1");
    let of = disk.trim_start_matches("/dev/");
    let Ok(number) = fs::read_to_string(format!("/sys/block/{of}/{of}p1/dev")) else {
        eprintln!("skipped: the kernel looks for no partitions here");
        return;
    };
    let has_node = Path::new(&partition).exists();
    if !has_node {
        let (major, minor) = number.trim().split_once(':').unwrap();
        tool("mknod", &[&partition, "b", major, minor]);
    }
    study(&lab, &[&disk, &partition], EXT4, "");
    let before = hash(&file);
    // Whatever is overridden besides.
    let all = format!("study s.toml --override signature:{disk}");
    let said = ["study s.toml", &all].map(|words| lab.run(words));
    if !has_node {
        fs::remove_file(&partition).unwrap();
    }
    for said in said {
        said.is(3, &[&format!("of {partition} and {disk} one lies on the other")]);
    }
    assert_eq!(hash(&file), before);
}

#[test]
fn a_stack_that_cannot_be_built_is_left_out_and_the_others_are_made() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-left-out");
    let devices = loops(&mut lab, 1, 64);
    let stack = "file_system = \"ext4\"\nmkfs = [\"none\", \"-O no_such_feature\"]";
    study(&lab, &strs(&devices), stack, "");
    let said = lab.run("study s.toml");
    assert_eq!(said.code, Some(4), "{said}");
    assert!(said.err.contains("2 of 3 runs are complete"), "{said}");
    assert!(said.out.contains("left out: cannot make ext4"), "{said}");
    let told = lab.ok("study report s.toml").out;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("Cannot tell what mkfs does: one level of it is left."), "{told}");
    assert!(!told.contains("Tells what mkfs does"), "{told}");
    assert!(told.contains("(mkfs -O no_such_feature) was left out: cannot make ext4"), "{told}");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

#[test]
fn arrays_are_built_where_the_kernel_has_them() {
    needs_root!("losetup", "mdadm", "mkfs.ext4");
    if !Path::new("/proc/mdstat").exists() || !programs(&["mkfs.ext4"]) {
        eprintln!("skipped: this kernel has no md");
        return;
    }
    let mut lab = Lab::new("study-md");
    let devices = loops(&mut lab, 4, 64);
    let stack = "members = 4\nlevel = [\"raid5\", \"raid10\", \"raid6\"]\nfile_system = \"ext4\"";
    study(&lab, &strs(&devices), stack, "");
    lab.ok("study s.toml");
    for k in 0..4 {
        assert!(is_blank(&lab.path(&format!("d{k}.img"))), "device {k}");
    }
}

#[test]
fn arrays_that_the_kernel_cannot_make_leave_no_names() {
    needs_root!("losetup", "mdadm");
    if Path::new("/proc/mdstat").exists() {
        eprintln!("skipped: this kernel has md");
        return;
    }
    let mut lab = Lab::new("study-no-md");
    let devices = loops(&mut lab, 2, 64);
    study(&lab, &strs(&devices), "members = 2\nlevel = \"raid1\"\nby = \"md\"", "");
    let nodes = || {
        let of = |place: &str| fs::read_dir(place).into_iter().flatten().flatten();
        let all = of("/dev").chain(of("/dev/md")).map(|entry| entry.path());
        let mut all: Vec<_> =
            all.filter(|path| path.to_string_lossy().starts_with("/dev/md")).collect();
        all.sort();
        all
    };
    let before = nodes();
    let said = lab.run("study s.toml");
    assert_eq!(said.code, Some(4), "{said}");
    assert!(said.out.contains("this kernel has no md"), "{said}");
    assert_eq!(nodes(), before);
}
