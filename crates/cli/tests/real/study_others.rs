//! What others do to a study's devices, while it plays or after it was killed.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lab::{Lab, hash, needs_root, quietly, tool};
use crate::study::{
    EXT4, change, is_blank, kill_when_mounted, killed_while_mounted, loops, mounted, refused, strs,
    study, unmount,
};

/// The first and the last MiB of a file: what lies between may be written by who uses it.
pub fn ends(file: &Path) -> [Vec<u8>; 2] {
    let bytes = fs::read(file).unwrap();
    let mib = 1 << 20;
    [bytes[..mib].to_vec(), bytes[bytes.len() - mib..].to_vec()]
}

/// Where a file system of a study is mounted that uses this device.
fn point_of(device: &str) -> String {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = table.lines().find(|line| line.starts_with(&format!("{device} ")));
    line.unwrap().split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn what_somebody_else_mounted_there_stays() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-over");
    let devices = killed_while_mounted(&mut lab, 64);
    let point = point_of(&devices[0]);
    unmount(&devices[0]);
    tool("mount", &["-t", "tmpfs", "none", &point]);
    fs::write(Path::new(&point).join("precious"), "x").unwrap();
    let said = lab.run("study clean");
    let kept = fs::read_to_string(Path::new(&point).join("precious"));
    tool("umount", &[&point]);
    assert_eq!(kept.unwrap(), "x", "{said}");
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("is mounted there by somebody else"), "{said}");
    assert_ne!(said.code, Some(0), "something is left: {said}");
    lab.ok("study clean");
    assert!(is_blank(&lab.path("d0.img")));
}

#[test]
fn a_device_in_use_since_the_kill_is_neither_cleaned_nor_built_on() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-since");
    let devices = killed_while_mounted(&mut lab, 64);
    unmount(&devices[0]);
    let image = lab.path("d0.img");
    // A part in the middle, of which neither end tells.
    let part = lab.attach(&image, &["--offset", "8388608", "--sizelimit", "33554432"]);
    tool("mkfs.ext4", &["-q", &part]);
    let point = lab.path("theirs");
    fs::create_dir(&point).unwrap();
    tool("mount", &[&part, point.to_str().unwrap()]);
    fs::write(point.join("precious"), "x").unwrap();
    let before = ends(&image);
    let cleaned = lab.run("study clean");
    let resumed = lab.run("study s.toml --resume");
    let after = ends(&image);
    tool("umount", &[point.to_str().unwrap()]);
    for said in [&cleaned, &resumed] {
        assert_ne!(said.code, Some(0), "{said}");
        let told = format!("{}{}", said.out, said.err);
        assert!(told.contains("is mounted at"), "{said}");
    }
    assert!(before == after, "something was written");
    lab.detach(&part);
    // Open for writing.
    let open = format!("exec 3<>{}; exec sleep 60", devices[0]);
    let mut holder = Command::new("bash").args(["-c", &open]).spawn().unwrap();
    sleep(Duration::from_millis(300));
    let before = ends(&image);
    let said = lab.run("study clean");
    let after = ends(&image);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(said.code != Some(0) && said.err.contains("is in use by sleep"), "{said}");
    assert!(before == after, "something was written");
    lab.ok("study clean");
    assert!(is_blank(&image));
}

#[test]
fn what_somebody_uses_since_ctrl_c_is_not_made_blank() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-stopped");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    change(&lab, "50ms", "2s");
    let mut child = lab.command("study s.toml --quiet").spawn().unwrap();
    let begun = Instant::now();
    while !mounted(&devices) && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(5));
    }
    tool("kill", &["-INT", &child.id().to_string()]);
    child.wait().unwrap();
    // Nothing is left to erase: only bytes of no kind, which are made zero at last.
    let image = lab.path("d0.img");
    assert!(!mounted(&devices) && !is_blank(&image));
    let open = format!("exec 3<>{}; exec sleep 60", devices[0]);
    let mut holder = Command::new("bash").args(["-c", &open]).spawn().unwrap();
    sleep(Duration::from_millis(300));
    let before = ends(&image);
    let said = lab.run("study clean");
    let after = ends(&image);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(said.code != Some(0) && said.err.contains("is in use by sleep"), "{said}");
    assert!(before == after, "something was written");
    lab.ok("study clean");
    assert!(is_blank(&image));
}

#[test]
fn tools_are_given_the_device_and_not_the_link_to_it() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-given");
    let devices = loops(&mut lab, 1, 64);
    let link = format!("/dev/plimsoll-test-given-{}", std::process::id());
    symlink(&devices[0], &link).unwrap();
    study(&lab, &[&link], &format!("{EXT4}\nmkfs = \"-O no_such_feature\""), "");
    let said = lab.run("study s.toml");
    fs::remove_file(&link).unwrap();
    // A command that failed is told as it was started.
    let of_device = format!("-O no_such_feature {}` ended", devices[0]);
    assert!(said.code == Some(4) && said.out.contains(&of_device), "{said}");
}

#[test]
fn the_log_of_a_mounted_file_system_is_in_use() {
    needs_root!("losetup", "mkfs.xfs", "mkfs.ext4");
    let mut lab = Lab::new("study-log");
    let data = lab.sparse("data.img", 400);
    let data = lab.attach(&data, &[]);
    let devices = loops(&mut lab, 1, 200);
    let log = &devices[0];
    tool("mkfs.xfs", &["-q", "-l", &format!("logdev={log}"), &data]);
    let point = lab.path("point");
    fs::create_dir(&point).unwrap();
    tool("mount", &["-o", &format!("logdev={log}"), &data, point.to_str().unwrap()]);
    study(&lab, &[log], EXT4, "");
    let over = format!("--override signature:{log}");
    let said = lab.run(&format!("study s.toml --dry-run {over}"));
    let run = lab.run(&format!(
        "run random-write --target {log} --destroy {log} --even-though signature --dry-run"
    ));
    refused(&lab, &[], &over, "is held by something that the kernel does not name");
    tool("umount", &[point.to_str().unwrap()]);
    assert_eq!(said.code, Some(3), "{said}");
    assert!(run.code != Some(0) && run.err.contains("the kernel does not name"), "{run}");
}

#[test]
fn a_suite_that_changed_is_not_resumed() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-suite");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    for (from, to) in
        [("\"random-read\",", "\"./own.toml\","), ("50ms", "2s"), ("quick = true", "")]
    {
        change(&lab, from, to);
    }
    let own = lab.ok("suite show random-read --toml").out;
    fs::write(lab.path("own.toml"), &own).unwrap();
    kill_when_mounted(&lab, &devices);
    fs::write(lab.path("own.toml"), own.replacen("schema = 1", "schema = 1 # other", 1)).unwrap();
    let said = lab.run("study s.toml --resume");
    assert_eq!(said.code, Some(2), "{said}");
    assert!(said.err.contains("was changed since the study began"), "{said}");
    fs::write(lab.path("own.toml"), &own).unwrap();
    lab.ok("study s.toml --resume");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

#[test]
fn what_was_unmounted_while_it_plays_is_not_measured_elsewhere() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-away");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    change(&lab, "50ms", "1s");
    let text = fs::read_to_string(lab.path("s.toml")).unwrap();
    let suite = text.lines().find(|line| line.starts_with("suites")).unwrap().to_owned();
    let one = suite.trim_start_matches("suites = [").trim_end_matches(']').trim_end_matches(',');
    change(&lab, &suite, &format!("suites = [{one}, {one}]"));
    let child = lab.command("study s.toml --quiet").spawn().unwrap();
    let begun = Instant::now();
    while !mounted(&devices) && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(5));
    }
    let point = point_of(&devices[0]);
    while !Path::new(&point).join("plimsoll.dat").exists()
        && begun.elapsed() < Duration::from_secs(60)
    {
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(500));
    tool("umount", &["--lazy", &point]);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(4));
    assert!(!Path::new(&point).join("plimsoll.dat").exists(), "on the system's disk");
    let states: Vec<String> =
        lab.list().iter().map(|run| run["state"].as_str().unwrap().to_owned()).collect();
    assert!(states.len() <= 1, "{states:?}");
    let _ = lab.run("study clean");
    assert!(!mounted(&devices));
}

#[test]
fn names_with_colons_are_names_and_links_are_followed_once() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-by-path");
    let devices = loops(&mut lab, 1, 64);
    let link = format!("/dev/plimsoll-pci-0000:00:1f.2-{}", std::process::id());
    symlink(&devices[0], &link).unwrap();
    study(&lab, &[&link], EXT4, "");
    let said = lab.run("study s.toml");
    fs::remove_file(&link).unwrap();
    assert_eq!(said.code, Some(0), "{said}");
    let run = lab.list()[0]["id"].as_str().unwrap().to_owned();
    // What is mounted is the device itself: a link may lead elsewhere a moment later.
    let exported = lab.export(&run);
    let text = exported["target"].to_string();
    assert!(text.contains(devices[0].trim_start_matches("/dev/")), "{text}");
    assert!(is_blank(&lab.path("d0.img")));
}

#[test]
fn a_label_by_which_a_study_would_not_know_its_own_is_refused() {
    needs_root!("losetup", "mkfs.ext4");
    let mut lab = Lab::new("study-label");
    let devices = loops(&mut lab, 1, 64);
    for words in ["-L x", "-t ext3", "-O journal_dev", "-qLx"] {
        study(&lab, &strs(&devices), &format!("{EXT4}\nmkfs = {words:?}"), "");
        for options in ["", "--dry-run"] {
            lab.run(&format!("study s.toml {options}")).is(2, &["by which a study knows its own"]);
        }
    }
    assert!(is_blank(&lab.path("d0.img")));
}

#[test]
fn words_by_which_a_file_system_is_not_the_devices_are_refused() {
    needs_root!("losetup", "mkfs.ext4");
    let mut lab = Lab::new("study-shifted");
    let devices = loops(&mut lab, 1, 64);
    let none_of = "which is none of [devices]";
    for (words, why) in [
        ("mount = [\"defaults\", \"loop\"]", none_of),
        ("mount = \"noatime,offset=0\"", none_of),
        ("mount = \"sizelimit=4194304\"", none_of),
        ("mount = \"journal_dev=0x702\"", "names another device by its number"),
        ("mount = \"bind\"", "it changes what is mounted already"),
        ("mount = \"remount\"", "it changes what is mounted already"),
        ("mkfs = [\"none\", \"-E offset=4096\"]", "elsewhere than at the device's first byte"),
    ] {
        study(&lab, &strs(&devices), &format!("{EXT4}\n{words}"), "");
        for options in ["--dry-run", ""] {
            lab.run(&format!("study s.toml {options}")).is(2, &[why]);
        }
    }
    assert!(is_blank(&lab.path("d0.img")));
}

#[test]
fn another_part_of_the_same_file_is_another_device() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-part");
    let image = lab.sparse("two.img", 200);
    let part = |at: u64| [format!("--offset={}", at << 20), format!("--sizelimit={}", 64 << 20)];
    let first = part(1);
    let device = lab.attach(&image, &[&first[0], &first[1]]);
    study(&lab, &[&device], EXT4, "");
    change(&lab, "50ms", "2s");
    let devices = [device.clone()];
    kill_when_mounted(&lab, &devices);
    unmount(&device);
    let now_at = |at| {
        let [offset, limit] = part(at);
        tool("losetup", &["-d", &device]);
        tool("losetup", &[&offset, &limit, &device, image.to_str().unwrap()]);
    };
    now_at(101);
    let before = hash(&image);
    for words in ["study s.toml --resume", "study clean"] {
        lab.run(words).is(3, &["it begins at byte 105906176 of "]);
        assert_eq!(hash(&image), before, "{words}");
    }
    now_at(1);
    lab.ok("study clean");
    let bytes = fs::read(&image).unwrap();
    assert!(bytes[1 << 20..2 << 20].iter().all(|byte| *byte == 0));
}

#[test]
fn btrfs_of_others_that_is_not_mounted_is_not_forgotten() {
    needs_root!("losetup", "mkfs.btrfs", "wipefs", "blkid");
    let mut lab = Lab::new("study-forget");
    let devices = loops(&mut lab, 4, 256);
    let (ours, theirs) = devices.split_at(2);
    tool("mkfs.btrfs", &["-q", "-d", "raid1", "-m", "raid1", &theirs[0], &theirs[1]]);
    tool("btrfs", &["device", "scan", &theirs[0], &theirs[1]]);
    let stack = "members = 2\nlevel = \"raid1\"\nfile_system = \"btrfs\"\nstate = \"degraded\"";
    study(&lab, &strs(ours), stack, "");
    lab.ok("study s.toml --quiet");
    lab.mount(&[&theirs[0]], "theirs");
}

#[test]
fn a_node_of_any_name_is_the_device_of_its_number() {
    needs_root!("losetup", "mkfs.ext4", "mkfs.btrfs", "wipefs", "blkid", "mknod");
    let mut lab = Lab::new("study-node");
    let devices = loops(&mut lab, 2, 256);
    let node = |at: usize| {
        let node = format!("/dev/plimsoll-test-node{at}-{}", std::process::id());
        let number = devices[at].trim_start_matches("/dev/loop");
        tool("mknod", &[&node, "b", "7", number]);
        node
    };
    let nodes = [node(0), node(1)];
    let btrfs = "members = 2\nlevel = \"raid1\"\nfile_system = \"btrfs\"";
    let said: Vec<_> = [EXT4, btrfs]
        .iter()
        .map(|stack| {
            study(&lab, &strs(&nodes), stack, "");
            lab.run("study s.toml")
        })
        .collect();
    nodes.iter().for_each(|node| fs::remove_file(node).unwrap());
    for said in said {
        assert_eq!(said.code, Some(0), "{said}");
    }
    assert!(is_blank(&lab.path("d0.img")) && is_blank(&lab.path("d1.img")));
}

/// A study whose store is on a file system of its own, killed while its file system was mounted.
fn killed_with_its_store_apart(lab: &mut Lab, words: &[&str]) -> Vec<String> {
    let devices = loops(lab, 1, 64);
    lab.mount(words, "small");
    study(lab, &strs(&devices), &format!("{EXT4}\nread_ahead = \"64KiB\""), "");
    change(lab, "50ms", "2s");
    let mut child = lab.command(&format!("study s.toml --quiet {SMALL}")).spawn().unwrap();
    let begun = Instant::now();
    while !mounted(&devices) && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    devices
}

const SMALL: &str = "--store small/store.db";

/// Takes all room that is left there, down to the last byte.
fn fill(lab: &Lab) {
    let mut filler = fs::File::create(lab.path("small/filler")).unwrap();
    for size in [1 << 20, 1 << 16, 1 << 12, 1 << 8, 1] {
        while std::io::Write::write_all(&mut filler, &vec![1; size]).is_ok() {}
    }
    filler.sync_all().unwrap();
}

fn journal_of(lab: &Lab) -> std::path::PathBuf {
    let all = fs::read_dir(lab.path("small/store.db.studies")).unwrap().flatten();
    let mut all = all.map(|entry| entry.path());
    all.find(|path| path.extension().is_some_and(|ending| ending == "journal")).unwrap()
}

/// Room for the lines that taking back adds is kept beforehand.
#[test]
fn cleaned_while_the_stores_disk_is_full_it_is_written_down() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    for tmpfs in [true, false] {
        let mut lab = Lab::new("study-room");
        let device = lab.sparse("small.img", 64);
        let device = lab.attach(&device, &[]);
        tool("mkfs.ext4", &["-q", &device]);
        let words = match tmpfs {
            true => vec!["-t", "tmpfs", "-o", "size=32m", "none"],
            false => vec![device.as_str()],
        };
        let devices = killed_with_its_store_apart(&mut lab, &words);
        fill(&lab);
        let said = lab.ok(&format!("study clean {SMALL}"));
        assert!(said.err.contains("wipefs") && said.err.contains("is cleaned up"), "{said}");
        assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
        let again = lab.ok(&format!("study clean {SMALL}"));
        assert!(again.err.contains("nothing is left"), "{again}");
        // What was kept is given back: less than a block is left of it.
        let journal = fs::metadata(journal_of(&lab)).unwrap();
        let blocks = std::os::unix::fs::MetadataExt::blocks(&journal) * 512;
        assert!(blocks < journal.len() + 8192, "{blocks} for {}", journal.len());
        // Nothing is begun for which there is no room.
        let said = lab.run(&format!("study s.toml {SMALL}"));
        assert!(said.code == Some(6) && is_blank(&lab.path("d0.img")), "{said}");
        fs::remove_file(lab.path("small/filler")).unwrap();
        lab.ok(&format!("study clean {SMALL}"));
        lab.ok(&format!("study s.toml --quiet {SMALL}"));
    }
}

/// While it plays: what was begun is taken back and written down, and it is resumed.
#[test]
fn a_study_whose_stores_disk_gets_full_is_taken_back_and_resumed() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-filled");
    let devices = loops(&mut lab, 1, 64);
    lab.mount(&["-t", "tmpfs", "-o", "size=32m", "none"], "small");
    study(&lab, &strs(&devices), "members = 1\nfile_system = [\"ext4\", \"ext2\"]", "");
    change(&lab, "50ms", "1s");
    let running = lab.start(&format!("study s.toml --quiet {SMALL}"));
    let begun = Instant::now();
    while !mounted(&devices) && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(5));
    }
    fill(&lab);
    running.end().is(6, &[]);
    let image = lab.path("d0.img");
    assert!(!mounted(&devices));
    let left = lab.ok(&format!("study clean --dry-run {SMALL}")).out;
    assert!(!left.contains("wipefs"), "all that was taken back is known: {left}");
    fs::remove_file(lab.path("small/filler")).unwrap();
    let said = lab.ok(&format!("study s.toml --resume {SMALL}"));
    assert!(said.err.contains("3 of 3 runs are complete"), "{said}");
    assert!(!mounted(&devices) && is_blank(&image));
}

/// What cannot be written down must not be half of what is known.
#[test]
fn cleaned_without_room_for_a_line_nothing_of_it_stays() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-nospace");
    let words = ["-t", "tmpfs", "-o", "size=32m", "none"];
    let devices = killed_with_its_store_apart(&mut lab, &words);
    // As earlier programs left it: without room.
    let journal = fs::OpenOptions::new().write(true).open(journal_of(&lab)).unwrap();
    journal.set_len(journal.metadata().unwrap().len()).unwrap();
    fill(&lab);
    lab.run(&format!("study clean {SMALL}")).is(6, &["cannot write the journal"]);
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
    fs::remove_file(lab.path("small/filler")).unwrap();
    let said = lab.ok(&format!("study clean {SMALL}"));
    assert!(!said.err.contains("left alone"), "{said}");
    let said = lab.ok(&format!("study s.toml --quiet {SMALL}"));
    assert!(is_blank(&lab.path("d0.img")), "{said}");
}

#[test]
fn a_capture_is_a_new_file() {
    needs_root!("losetup");
    let mut lab = Lab::new("capture");
    let devices = loops(&mut lab, 1, 8);
    let image = lab.path("d0.img");
    let before = hash(&image);
    for place in [devices[0].as_str(), image.to_str().unwrap()] {
        let said = lab.run(&format!("probe . --capture {place}"));
        said.is(3, &["hint: name a file that is not there yet"]);
    }
    assert_eq!(hash(&image), before);
    lab.ok("probe . --capture new.tree");
    assert!(lab.path("new.tree").is_file());
}

/// Its own file system lies below the other's mount, and is taken back when that is gone.
#[test]
fn what_lies_below_anothers_mount_is_taken_back_when_that_is_gone() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    for words in ["study clean", "study s.toml --resume"] {
        let mut lab = Lab::new("study-below");
        let devices = killed_while_mounted(&mut lab, 64);
        let queue = format!("/sys/block/{}/queue", devices[0].trim_start_matches("/dev/"));
        let read_ahead = || fs::read_to_string(format!("{queue}/read_ahead_kb")).unwrap();
        let point = point_of(&devices[0]);
        let theirs = lab.path("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("precious"), "x").unwrap();
        tool("mount", &["--bind", theirs.to_str().unwrap(), &point]);
        for again in ["study clean", words] {
            let said = lab.run(again);
            assert_eq!(said.code, Some(5), "{again}: {said}");
            assert!(said.err.contains("is mounted there by somebody else"), "{again}: {said}");
            // What is in the way of the rest is not in that of settings.
            assert_ne!(read_ahead().trim(), "64", "{again}");
        }
        assert!(mounted(&devices));
        tool("umount", &[&point]);
        lab.ok(words);
        assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")), "{words}");
        assert!(!Path::new(&point).exists(), "{words}");
        assert_eq!(fs::read_to_string(theirs.join("precious")).unwrap(), "x");
    }
}

#[test]
fn what_is_mounted_twice_in_its_place_is_unmounted_twice() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-twice");
    let devices = killed_while_mounted(&mut lab, 64);
    let point = point_of(&devices[0]);
    tool("mount", &["--bind", &point, &point]);
    lab.ok("study clean");
    assert!(!mounted(&devices) && is_blank(&lab.path("d0.img")));
}

#[test]
fn directories_that_somebody_put_something_into_stay_and_are_told() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-full");
    let devices = killed_while_mounted(&mut lab, 64);
    let point = point_of(&devices[0]);
    unmount(&devices[0]);
    let file = Path::new(&point).join("precious");
    fs::write(&file, "x").unwrap();
    for _ in 0..2 {
        let said = lab.run("study clean");
        assert_eq!(said.code, Some(5), "{said}");
        let told = format!("{point} is not empty: in it is precious");
        assert!(said.err.contains(&told), "{said}");
        assert!(!said.err.contains(&format!("\nrmdir {point}\n")), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "x");
        // All else is taken back.
        assert!(is_blank(&lab.path("d0.img")));
        assert!(lab.ok("study clean --dry-run").out.contains(&format!("rmdir {point}")));
    }
    fs::remove_file(&file).unwrap();
    lab.ok("study clean");
    assert!(!Path::new(&point).parent().unwrap().exists());
    assert!(lab.ok("study clean").err.contains("nothing is left"));
}

#[test]
fn a_loop_device_over_another_file_of_that_name_is_another() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-file");
    let devices = killed_while_mounted(&mut lab, 64);
    unmount(&devices[0]);
    let (image, saved) = (lab.path("d0.img"), lab.path("saved.img"));
    // Whoever looks at a device that is let go keeps it for a moment.
    let attach = || {
        let words = [devices[0].as_str(), image.to_str().unwrap()];
        let done = (0..50).any(|_| {
            let done = quietly("losetup", &words);
            sleep(Duration::from_millis(if done { 0 } else { 100 }));
            done
        });
        assert!(done, "losetup {words:?}");
    };
    tool("losetup", &["-d", &devices[0]]);
    fs::rename(&image, &saved).unwrap();
    fs::copy(&saved, &image).unwrap();
    attach();
    let before = hash(&image);
    for words in ["study clean", "study s.toml --resume"] {
        lab.run(words).is(3, &["is another file of that name now"]);
        assert_eq!(hash(&image), before, "{words}: it was written");
    }
    tool("losetup", &["-d", &devices[0]]);
    fs::rename(&saved, &image).unwrap();
    attach();
    lab.ok("study clean");
    assert!(is_blank(&image));
}

/// A study in a mount name space of its own, where `wipefs` has done its work 3 s before it ends.
fn with_late_wipefs(lab: &Lab, words: &str) -> Command {
    let (real, fake) = (lab.path("wipefs"), lab.path("late"));
    fs::copy("/usr/sbin/wipefs", &real).unwrap();
    fs::write(&fake, format!("#!/bin/sh\n{} \"$@\"\nsleep 3\n", real.display())).unwrap();
    tool("chmod", &["755", fake.to_str().unwrap()]);
    let script = format!(
        "mount --bind {} /usr/sbin/wipefs && exec {} {words} --store store.db",
        fake.display(),
        crate::lab::PLIMSOLL
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(&lab.dir);
    command
}

#[test]
fn killed_while_it_erases_a_member_for_a_state_it_knows_what_it_left() {
    needs_root!("losetup", "mkfs.btrfs", "wipefs", "blkid", "unshare");
    for words in ["study s.toml --resume", "study clean"] {
        let mut lab = Lab::new("study-erased");
        let devices = loops(&mut lab, 2, 256);
        let stack = "members = 2\nlevel = \"raid1\"\nfile_system = \"btrfs\"\nstate = \"degraded\"";
        study(&lab, &strs(&devices), stack, "");
        let mut child = with_late_wipefs(&lab, "study s.toml --quiet").spawn().unwrap();
        let begun = Instant::now();
        let image = lab.path("d1.img");
        let has_mark = || {
            let mut mark = [0; 8];
            fs::File::open(&image).unwrap().read_exact_at(&mut mark, 0x10040).unwrap();
            mark == *b"_BHRfS_M"
        };
        for wanted in [true, false] {
            while has_mark() != wanted && begun.elapsed() < Duration::from_secs(60) {
                sleep(Duration::from_millis(50));
            }
        }
        assert!(!has_mark() && !is_blank(&image), "it was to be killed within the erasing");
        child.kill().unwrap();
        child.wait().unwrap();
        let said = lab.ok(words);
        assert!(!said.err.contains("left alone"), "{words}: {said}");
        assert!(!mounted(&devices), "{words}");
        assert!(is_blank(&lab.path("d0.img")) && is_blank(&image), "{words}: {said}");
    }
}
