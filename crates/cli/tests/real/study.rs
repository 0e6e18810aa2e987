//! Studies that build: on loop devices. What the kernel here lacks says `skipped: ...`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lab::{Lab, hash, needs_root};

/// A study over those devices.
fn study(lab: &Lab, pool: &[&str], stack: &str, measure: &str) {
    let pool: Vec<String> = pool.iter().map(|device| format!("{device:?}")).collect();
    let text = format!(
        "[devices]\npool = [{}]\n[stack]\n{stack}\n[measure]\nsuites = [{{ suite = \"random-read\", \
         set = {{ rounds = {{ visits_min = 2, visits_max = 2 }} }} }}]\n\
         size = \"16MiB\"\ntime = \"50ms\"\nquick = true\n{measure}\n",
        pool.join(", ")
    );
    fs::write(lab.path("s.toml"), text).unwrap();
}

fn loops(lab: &mut Lab, n: usize, mib: u64) -> Vec<String> {
    (0..n)
        .map(|k| {
            let file = lab.sparse(&format!("d{k}.img"), mib);
            lab.attach(&file, &[])
        })
        .collect()
}

fn strs(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// Whether anything of a study is mounted that uses one of these.
fn mounted(devices: &[String]) -> bool {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    table.lines().any(|line| devices.iter().any(|device| line.starts_with(&format!("{device} "))))
}

/// Whether the ends of a file are zero again.
fn is_blank(file: &Path) -> bool {
    let bytes = fs::read(file).unwrap();
    let mib = 1 << 20;
    bytes[..mib].iter().all(|b| *b == 0) && bytes[bytes.len() - mib..].iter().all(|b| *b == 0)
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
    let stack = "file_system = [\"ext4\", \"xfs\"]\nmount = [\"noatime\", \"defaults\"]";
    study(&lab, &strs(&devices), stack, "");
    let dry = lab.ok("study s.toml --dry-run");
    assert!(dry.out.contains("mkfs.xfs -f"), "{dry}");
    assert!(dry.out.contains(": blank."), "{dry}");
    assert!(is_blank(&lab.path("d0.img")), "a dry run writes nothing");
    let said = lab.ok("study s.toml");
    assert!(said.err.contains("4 of 4 runs are complete"), "{said}");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")), "nothing stays");
    assert_eq!(hash(&other), before, "a device that nobody named is untouched");
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
    assert!(told.out.contains("The study varied file_system (ext4, xfs) and mount"), "{told}");
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

#[test]
fn a_suite_of_the_log_is_measured_on_its_device() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-wal");
    let devices = loops(&mut lab, 2, 64);
    study(&lab, &[&devices[0]], "file_system = \"ext4\"\nwal = [\"shared\", \"own\"]", "");
    let text = fs::read_to_string(lab.path("s.toml")).unwrap();
    let text = text.replace("[stack]", &format!("wal = [{:?}]\n[stack]", devices[1]));
    let text = text.replace("\"random-read\",", "\"random-read\", on = \"wal\",");
    fs::write(lab.path("s.toml"), text).unwrap();
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
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-next");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), "file_system = \"ext4\"\nread_ahead = \"64KiB\"", "");
    let queue = format!("/sys/block/{}/queue", devices[0].trim_start_matches("/dev/"));
    let read_ahead = || fs::read_to_string(format!("{queue}/read_ahead_kb")).unwrap();
    let before = read_ahead();
    let text = fs::read_to_string(lab.path("s.toml")).unwrap().replace("50ms", "2s");
    fs::write(lab.path("s.toml"), text).unwrap();
    let mut child = lab.command("study s.toml --quiet").spawn().unwrap();
    let begun = Instant::now();
    while read_ahead() == before && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(5));
    }
    assert_ne!(read_ahead(), before, "the study never set it");
    child.kill().unwrap();
    child.wait().unwrap();
    let other = "[stack]\ntarget = \"null:\"\n[measure]\nsuites = [\"random-read\"]\ntime = \"20ms\"\nquick = true\n";
    fs::write(lab.path("other.toml"), other).unwrap();
    lab.ok("study other.toml");
    assert_eq!(read_ahead(), before);
    lab.ok("study clean");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

#[test]
fn what_somebody_put_there_after_a_kill_is_left_alone() {
    needs_root!("losetup", "mkfs.ext4", "mkfs.xfs", "wipefs", "blkid");
    for resume in [true, false] {
        let mut lab = Lab::new("study-others");
        let devices = loops(&mut lab, 1, 400);
        study(&lab, &strs(&devices), "file_system = \"ext4\"\nread_ahead = \"64KiB\"", "");
        let text = fs::read_to_string(lab.path("s.toml")).unwrap().replace("50ms", "2s");
        fs::write(lab.path("s.toml"), text).unwrap();
        let mut child = lab.command("study s.toml --quiet").spawn().unwrap();
        let begun = Instant::now();
        while !mounted(&devices) && begun.elapsed() < Duration::from_secs(30) {
            sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Somebody unmounts it and makes something else of it.
        let table = fs::read_to_string("/proc/self/mounts").unwrap();
        let line = table.lines().find(|line| line.starts_with(&format!("{} ", devices[0])));
        crate::lab::tool("umount", &[line.unwrap().split(' ').nth(1).unwrap()]);
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
    let text = fs::read_to_string(lab.path("s.toml")).unwrap();
    fs::write(lab.path("s.toml"), text.replace("random-read", "random-write")).unwrap();
    let said = lab.ok("study s.toml");
    assert!(said.err.contains("3 of 3 runs are complete"), "{said}");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

/// The study is refused with these words, and writes nothing.
fn refused(lab: &Lab, files: &[&str], options: &str, wanted: &str) {
    let before: Vec<u64> = files.iter().map(|file| hash(&lab.path(file))).collect();
    let said = lab.run(&format!("study s.toml {options}"));
    assert_eq!(said.code, Some(3), "{wanted}: {said}");
    assert!(said.err.contains(wanted), "{wanted}: {said}");
    let after: Vec<u64> = files.iter().map(|file| hash(&lab.path(file))).collect();
    assert_eq!(before, after, "{wanted}: something was written");
}

const EXT4: &str = "members = 1\nfile_system = \"ext4\"";

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
    let said = lab.run(&format!("study s.toml --override open:{} {both}", devices[0]));
    assert_eq!(said.code, Some(2), "it is not open: {said}");
    let said = lab.run(&format!("study s.toml {both} --override signature:/dev/other"));
    assert_eq!(said.code, Some(2), "no such device: {said}");
    let said = lab.ok(&format!("study s.toml {both}"));
    assert!(said.err.contains("1 of 1 runs are complete"), "{said}");
    let left = fs::read(lab.path("d1.img")).unwrap();
    assert!(left == bytes, "the second was in no stack");
}

#[test]
fn what_a_process_has_open_is_refused_until_it_is_overridden() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-open");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    let open = format!("exec 3<>{}; sleep 60", devices[0]);
    let mut holder = Command::new("bash").args(["-c", &open]).spawn().unwrap();
    sleep(Duration::from_millis(300));
    refused(&lab, &["d0.img"], "", "is open for writing by");
    let said = lab.run(&format!("study s.toml --override open:{}", devices[0]));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(said.code, Some(0), "{said}");
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
    std::os::unix::fs::symlink(&devices[0], &link).unwrap();
    study(&lab, &[&devices[0], &link], EXT4, "");
    let said = lab.run("study s.toml");
    fs::remove_file(&link).unwrap();
    assert_eq!(said.code, Some(3), "{said}");
    assert!(said.err.contains("two names of one device"), "{said}");
    assert!(is_blank(&lab.path("d0.img")));
    for odd in ["/dev/null", "/dev/no-such-device"] {
        study(&lab, &[odd], EXT4, "");
        refused(&lab, &["d0.img"], "", "is no block device that the kernel shows");
    }
    // A path that is none of [devices] cannot come in by the words for mkfs.
    let words = format!("mkfs = \"-J device={}\"", devices[1]);
    study(&lab, &[&devices[0]], &format!("{EXT4}\n{words}"), "");
    let said = lab.run("study s.toml");
    assert_eq!(said.code, Some(4), "{said}");
    assert!(said.err.contains("is neither in [devices] nor made by this study"), "{said}");
    assert!(is_blank(&lab.path("d0.img")) && is_blank(&lab.path("d1.img")));
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
    if !Path::new(&partition).exists() {
        eprintln!("skipped: nobody makes nodes for partitions here");
        return;
    }
    study(&lab, &[&disk, &partition], EXT4, "");
    refused(&lab, &["d0.img"], "", &format!("of {partition} and {disk} one lies on the other"));
    // Whatever is overridden besides.
    let all = format!("--override signature:{disk}");
    refused(&lab, &["d0.img"], &all, &format!("of {partition} and {disk} one lies on the other"));
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
