//! What others do to a study's device between its start and the step that writes to that device.
//!
//! The step before is a `mkfs` that waits until the test has done it, so that no luck is needed.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lab::{Lab, PLIMSOLL, Running, Said, hash, needs_root, tool};
use crate::study::{EXT4, change, is_blank, loops, mounted, strs, study};
use crate::study_others::ends;

/// A study of two devices, the second for the log, that waits in the `mkfs` on the first.
struct Waiting {
    lab: Lab,
    running: Running,
    devices: Vec<String>,
    /// The part of the second device's file that the kernel itself may write at any time.
    swapped: std::ops::Range<usize>,
}

/// Bytes of the second device's file that are the other process's.
const THEIRS: u64 = 20 << 20;

impl Waiting {
    fn new(name: &str) -> Self {
        let mut lab = Lab::new(name);
        let devices = loops(&mut lab, 2, 64);
        let [data, log] = [devices[0].clone(), devices[1].clone()];
        Self::over(lab, devices, [&data, &log])
    }

    /// * `named`: the devices as the study's file names them.
    fn over(lab: Lab, devices: Vec<String>, [data, log]: [&str; 2]) -> Self {
        study(&lab, &[data], &format!("{EXT4}\nwal = \"own\""), "");
        change(&lab, "[stack]", &format!("wal = [{log:?}]\n[stack]"));
        let running = waits_in_mkfs(&lab, &devices[0]);
        Self { lab, running, devices, swapped: 0..0 }
    }

    fn log(&self) -> &str {
        &self.devices[1]
    }

    fn image(&self) -> PathBuf {
        self.lab.path("d1.img")
    }

    /// Lets the study go on to its end: it has to stop for that reason, and to leave the log's
    /// device as it was. What it built before is taken back, now or by `study clean`.
    fn stops(self, why: &str) -> (Lab, Said) {
        let image = self.image();
        let bytes = || {
            let mut bytes = fs::read(&image).unwrap();
            bytes[self.swapped.clone()].fill(0);
            bytes
        };
        let before = bytes();
        fs::write(self.lab.path("go"), "").unwrap();
        let said = self.running.end();
        assert!(bytes() == before, "it was written: {said}");
        said.is(3, &[why]);
        assert!(!mounted(&self.devices));
        let cleaned = self.lab.ok("study clean");
        assert!(is_blank(&self.lab.path("d0.img")), "{said}");
        assert!(bytes() == before, "it was written: {cleaned}");
        (self.lab, said)
    }
}

/// Starts the study of this lab in a mount name space of its own, where `mkfs.ext4` of a device
/// waits for a file `go` before it begins; back when it waits.
fn waits_in_mkfs(lab: &Lab, device: &str) -> Running {
    let dir = lab.path("real");
    fs::create_dir(&dir).unwrap();
    fs::copy("/usr/sbin/mkfs.ext4", dir.join("mkfs.ext4")).unwrap();
    let (waits, go) = (lab.path("waits"), lab.path("go"));
    let fake = lab.path("slow");
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *\" {device} \"*)\ntouch {}\nn=0\n\
         while [ ! -e {} ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done;;\nesac\n\
         exec {}/mkfs.ext4 \"$@\"\n",
        waits.display(),
        go.display(),
        dir.display()
    );
    fs::write(&fake, text).unwrap();
    tool("chmod", &["755", fake.to_str().unwrap()]);
    let script = format!(
        "mount --bind {} \"$(readlink -f /usr/sbin/mkfs.ext4)\" && \
         exec {PLIMSOLL} study s.toml --quiet --store store.db",
        fake.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(&lab.dir);
    let mut running = Running::start(command, &lab.dir);
    running.until("the slow mkfs", |_| waits.exists());
    running
}

/// A process that has a file or device open for writing, until it is dropped.
struct Writer(Child);

impl Writer {
    fn of(path: &str) -> Self {
        let script = format!("exec 3<>{path}; echo; exec sleep 600");
        let mut child = Command::new("bash");
        child.args(["-c", &script]).stdout(std::process::Stdio::piped());
        let mut child = child.spawn().unwrap();
        // Open when it has said so.
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        Self(child)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes in the midst of an image, of which neither end tells.
fn put_theirs(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&[0x5a; 4096], THEIRS).unwrap();
    file.sync_all().unwrap();
}

/// A loop device over a part in the midst of an image.
fn part_of(lab: &mut Lab, image: &Path) -> String {
    lab.attach(image, &["--offset", "8388608", "--sizelimit", "33554432"])
}

#[test]
fn a_device_that_is_opened_for_writing_before_its_step_is_not_written() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let waiting = Waiting::new("step-open");
    put_theirs(Path::new(waiting.log()));
    let writer = Writer::of(waiting.log());
    let why = format!("{} is in use by sleep", waiting.log());
    let (lab, said) = waiting.stops(&why);
    assert!(said.err.contains("make ext4 on"), "the step is named: {said}");
    drop(writer);
    // When they are gone it is played to its end.
    lab.ok("study s.toml --quiet");
    assert!(is_blank(&lab.path("d1.img")));
}

/// Monitors of drives open a device for writing for a moment.
#[test]
fn who_has_a_device_open_for_a_moment_only_is_waited_for() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let waiting = Waiting::new("step-moment");
    let writer = Writer::of(waiting.log());
    let Waiting { lab, running, .. } = waiting;
    fs::write(lab.path("go"), "").unwrap();
    sleep(Duration::from_millis(700));
    drop(writer);
    running.end().is(0, &[]);
    assert!(is_blank(&lab.path("d0.img")) && is_blank(&lab.path("d1.img")));
}

/// Built by the study itself, and named by the operator: neither stops it.
#[test]
fn what_was_overridden_at_the_start_does_not_stop_a_step() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("step-leave");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), "members = 1", "");
    let writer = Writer::of(&devices[0]);
    lab.run("study s.toml --quiet").is(3, &["is in use by sleep"]);
    lab.ok(&format!("study s.toml --quiet --override open:{}", devices[0]));
    drop(writer);
}

#[test]
fn a_loop_twin_that_is_opened_for_writing_before_the_step_stops_it() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let mut waiting = Waiting::new("step-twin");
    let image = waiting.image();
    let twin = waiting.lab.attach(&image, &[]);
    put_theirs(Path::new(&twin));
    let writer = Writer::of(&twin);
    waiting.stops("is in use by sleep");
    drop(writer);
}

/// Another name of the file: the kernel shows one name for each loop device.
#[test]
fn a_loop_twin_by_another_hard_link_stops_the_step() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let mut waiting = Waiting::new("step-link");
    let link = waiting.lab.path("other-name.img");
    fs::hard_link(waiting.image(), &link).unwrap();
    let twin = waiting.lab.attach(&link, &[]);
    put_theirs(Path::new(&twin));
    let _writer = Writer::of(&twin);
    waiting.stops("is in use by sleep");
}

#[test]
fn the_file_under_a_loop_device_that_is_opened_for_writing_stops_the_step() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let waiting = Waiting::new("step-file");
    put_theirs(&waiting.image());
    let _writer = Writer::of(waiting.image().to_str().unwrap());
    waiting.stops("is in use by sleep");
}

#[test]
fn a_twin_that_is_mounted_before_the_step_stops_it() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let mut waiting = Waiting::new("step-mount");
    let image = waiting.image();
    let part = part_of(&mut waiting.lab, &image);
    tool("mkfs.ext4", &["-q", &part]);
    let point = waiting.lab.mount(&[&part], "theirs");
    fs::write(point.join("precious"), "x").unwrap();
    // Or the kernel would write it while the study is looked at.
    tool("sync", &["-f", point.to_str().unwrap()]);
    tool("mount", &["-o", "remount,ro", point.to_str().unwrap()]);
    // The study is in a namespace of its own.
    waiting.stops("a mount in another namespace");
}

#[test]
fn a_twin_that_is_swapped_to_before_the_step_stops_it() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare", "mkswap", "swapon");
    let mut waiting = Waiting::new("step-swap");
    let image = waiting.image();
    let part = part_of(&mut waiting.lab, &image);
    tool("mkswap", &[&part]);
    waiting.lab.swap_on(Path::new(&part));
    waiting.swapped = 8 << 20..40 << 20;
    waiting.stops("in use as swap");
}

#[test]
fn a_loop_device_over_the_device_before_the_step_stops_it() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    let mut waiting = Waiting::new("step-over");
    let log = PathBuf::from(waiting.log());
    waiting.lab.attach(&log, &[]);
    waiting.stops("is held by loop");
}

/// Nobody has it open any more, but what is at its ends was not there when the study began.
#[test]
fn what_is_written_to_a_device_before_its_step_is_found() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare");
    for by_twin in [false, true] {
        let mut waiting = Waiting::new("step-bytes");
        let image = waiting.image();
        let path = match by_twin {
            true => waiting.lab.attach(&image, &[]),
            false => waiting.log().to_owned(),
        };
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(b"precious", 4096).unwrap();
        file.sync_all().unwrap();
        drop(file);
        if by_twin {
            waiting.lab.detach(&path);
        }
        let why = format!("{} is not blank", waiting.log());
        let (lab, _) = waiting.stops(&why);
        let mut kept = [0; 8];
        fs::File::open(lab.path("d1.img")).unwrap().read_exact_at(&mut kept, 4096).unwrap();
        assert_eq!(&kept, b"precious", "nothing of theirs is made blank");
    }
}

#[test]
fn another_device_under_the_same_name_is_not_written() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid", "unshare", "mknod");
    let mut lab = Lab::new("step-node");
    let devices = loops(&mut lab, 2, 64);
    let other = lab.sparse("other.img", 64);
    let other = lab.attach(&other, &[]);
    let node = format!("/dev/plimsoll-test-step-{}", std::process::id());
    let number = |device: &str| device.trim_start_matches("/dev/loop").to_owned();
    tool("mknod", &[&node, "b", "7", &number(&devices[1])]);
    let data = devices[0].clone();
    let waiting = Waiting::over(lab, devices, [&data, &node]);
    fs::remove_file(&node).unwrap();
    tool("mknod", &[&node, "b", "7", &number(&other)]);
    let before = hash(&waiting.lab.path("other.img"));
    fs::write(waiting.lab.path("go"), "").unwrap();
    let Waiting { lab, running, .. } = waiting;
    let said = running.end();
    let cleaned = lab.run("study clean");
    fs::remove_file(&node).unwrap();
    assert_eq!(hash(&lab.path("other.img")), before, "{said}");
    said.is(3, &["is left alone"]);
    cleaned.is(0, &[]);
    assert!(is_blank(&lab.path("d0.img")) && is_blank(&lab.path("d1.img")));
}

/// Waits until a study has mounted something of these.
fn until_mounted(devices: &[String]) {
    let begun = Instant::now();
    while !mounted(devices) && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    assert!(mounted(devices), "the study never mounted it");
}

/// What it built is unmounted, and nothing of it erased that others write to by now.
#[test]
fn a_twin_that_is_opened_while_it_measures_ends_the_study() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("step-measured");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), EXT4, "");
    change(&lab, "50ms", "2s");
    let running = lab.start("study s.toml --quiet");
    until_mounted(&devices);
    let image = lab.path("d0.img");
    let twin = lab.attach(&image, &[]);
    let writer = Writer::of(&twin);
    let said = running.end();
    assert!(said.code == Some(3), "{said}");
    assert!(said.err.contains("is in use by sleep"), "{said}");
    assert!(!mounted(&devices) && !is_blank(&image), "{said}");
    let before = ends(&image);
    assert_ne!(lab.run("study clean").code, Some(0));
    assert!(ends(&image) == before, "something was written");
    drop(writer);
    lab.detach(&twin);
    lab.ok("study clean");
    assert!(is_blank(&image));
}

/// Of a device without a file system nothing tells whose bytes these are but that nobody else wrote.
#[test]
fn a_twin_that_is_written_while_the_device_itself_is_measured_is_not_made_blank() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("step-raw");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), "members = 1", "");
    change(&lab, "50ms", "2s");
    let mut running = lab.start("study s.toml");
    running.until_it_says("round 1");
    let image = lab.path("d0.img");
    let twin = lab.attach(&image, &[]);
    let writer = Writer::of(&twin);
    let file = fs::File::options().write(true).open(&twin).unwrap();
    file.write_all_at(b"precious", (64 << 20) - 4096).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let said = running.end();
    assert!(said.code == Some(3), "{said}");
    assert!(said.err.contains("is in use by sleep"), "{said}");
    drop(writer);
    lab.detach(&twin);
    let cleaned = lab.run("study clean");
    let mut kept = [0; 8];
    fs::File::open(&image).unwrap().read_exact_at(&mut kept, (64 << 20) - 4096).unwrap();
    assert_eq!(&kept, b"precious", "{said}\n{cleaned}");
}
