//! Verdicts on real plumbing: the host stopped, a device held to a number, a device that freezes.
//! The test does it to the program and knows when and for how long; the program must find out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use crate::hangs::Frozen;
use crate::lab::{Lab, PLIMSOLL, Running, needs_root};

/// Start and length of what the test did must be found this well.
const NEAR: Duration = Duration::from_millis(50);
/// A busy machine adds stalls of its own.
const ATTEMPTS: u32 = 3;

/// Tries again what a busy machine spoiled; the reason is printed.
fn within_attempts(name: &str, attempt: impl Fn(&mut Lab) -> Result<(), String>) {
    for count in 1..=ATTEMPTS {
        let mut lab = Lab::new(name);
        match attempt(&mut lab) {
            Ok(()) => return,
            Err(why) => eprintln!("{name}: attempt {count} of {ATTEMPTS}: {why}"),
        }
    }
    panic!("{name}: not once in {ATTEMPTS} attempts");
}

fn holds(condition: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    condition.then_some(()).ok_or_else(otherwise)
}

/// What `plimsoll explain` says of the lab's first run.
struct Explained(Value);

impl Explained {
    fn of(lab: &Lab) -> Self {
        let document: Value = serde_json::from_str(&lab.ok("explain r1 --json").out).unwrap();
        assert_eq!(document["schema"], "plimsoll.explanation/1");
        Self(document["runs"][0].clone())
    }

    fn said(&self, section: &str) -> String {
        let sections = self.0["sections"].as_array().unwrap().iter();
        let found = sections.filter(|known| known["title"] == section);
        found.map(|known| known["sentences"].to_string()).collect()
    }

    fn marked(&self, code: &str) -> bool {
        self.0["marks"].as_array().unwrap().iter().any(|mark| mark["code"] == code)
    }

    /// The one gap of a second and more outside of the fill.
    fn long_gap(&self) -> Result<&Value, String> {
        let events = self.0["findings"]["freezes"]["events"].as_array().unwrap();
        let long: Vec<&Value> =
            events.iter().filter(|e| e["tier"] != "hiccup" && e["cell_name"] != "fill").collect();
        let [one] = long.as_slice() else { return Err(format!("{} long gaps", long.len())) };
        Ok(one)
    }
}

/// How far two times are apart, neither being the true one.
fn apart(seen: &Value, done: u128) -> Duration {
    let seen = u128::from(seen.as_u64().unwrap());
    Duration::from_nanos(u64::try_from(seen.abs_diff(done)).unwrap())
}

fn unix_ns() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()
}

fn stopped_host(lab: &mut Lab) -> Result<(), String> {
    let mut running = lab.start("run random-read --target data --size 8MiB --time 6s");
    running.until_it_says("fill ");
    sleep(Duration::from_millis(700));
    let begun = Instant::now();
    running.signal(Signal::STOP);
    sleep(Duration::from_secs(3));
    running.signal(Signal::CONT);
    let stopped = begun.elapsed();
    running.end().is(0, &[]);
    let explained = Explained::of(lab);
    let gap = explained.long_gap()?;
    assert_eq!(gap["source"], "host", "{gap}");
    assert_eq!(gap["tier"], "stall");
    assert!(explained.marked("host-stalled"), "{gap}");
    let off = apart(&gap["length_ns"], stopped.as_nanos());
    eprintln!("stopped for {stopped:?}, found to {off:?}");
    holds(!explained.marked("stalled"), || "the disk stalled, too".to_owned())?;
    holds(off <= NEAR, || format!("off by {off:?}: {gap}"))
}

#[test]
fn a_stopped_program_is_a_stall_of_the_host_and_none_of_the_device() {
    within_attempts("host", stopped_host);
}

/// A control group whose reads of one device are limited; removed with it.
struct Limit(PathBuf);

const IOPS: u32 = 500;
const BANDWIDTH: u32 = 32 << 20;

impl Limit {
    /// Says why not, if not.
    fn on(device: &str) -> Result<Self, String> {
        let name = Path::new(device).file_name().unwrap();
        let number = fs::read_to_string(Path::new("/sys/block").join(name).join("dev")).unwrap();
        let number = number.trim();
        let root = Path::new("/sys/fs/cgroup");
        let own = format!("plimsoll-test-{}-{}", std::process::id(), device.replace('/', "-"));
        let unified = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let (group, limits) = if unified.split_whitespace().any(|known| known == "io") {
            fs::write(root.join("cgroup.subtree_control"), "+io")
                .map_err(|e| format!("the io controller cannot be given on: {e}"))?;
            let limit = format!("{number} riops={IOPS} rbps={BANDWIDTH}");
            (root.join(own), vec![("io.max", limit)])
        } else if root.join("blkio/blkio.throttle.read_iops_device").exists() {
            let limits = vec![
                ("blkio.throttle.read_iops_device", format!("{number} {IOPS}")),
                ("blkio.throttle.read_bps_device", format!("{number} {BANDWIDTH}")),
            ];
            (root.join("blkio").join(own), limits)
        } else {
            return Err("no control groups that limit block devices".to_owned());
        };
        fs::create_dir(&group).map_err(|e| format!("no control group of our own: {e}"))?;
        let limit = Self(group);
        for (file, text) in limits {
            fs::write(limit.0.join(file), text).map_err(|e| format!("{file}: {e}"))?;
        }
        Ok(limit)
    }

    /// The words as a command in the group.
    fn command(&self, lab: &Lab, words: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(self.0.join("cgroup.procs")).arg(PLIMSOLL).args(words.split_whitespace());
        command.args(["--store", "store.db"]).current_dir(&lab.dir);
        command
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// What the limit is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limited {
    /// The target itself: what the group holds back never reaches a device that counts it.
    Target,
    /// The device below it: the target has the requests, and counts them.
    Below,
}

fn limited_device(lab: &mut Lab, limited: Limited) -> Result<(), String> {
    // Written, so that reads find it in the page cache: only the limit limits.
    let image = lab.path("disk.img");
    fs::write(&image, vec![1; 32 << 20]).unwrap();
    let held = lab.attach(&image, &[]);
    let device = match limited {
        Limited::Target => held.clone(),
        Limited::Below => lab.attach(Path::new(&held), &["--direct-io=on"]),
    };
    let limit = match Limit::on(&held) {
        Ok(limit) => limit,
        Err(why) => {
            eprintln!("skipped: {why}");
            return Ok(());
        }
    };
    let words = format!(
        "run random-read --target {device} --classic --time 3s --set threads=1,8 --set block_size=4KiB,16KiB,128KiB,256KiB"
    );
    Running::start(limit.command(lab, &words), &lab.dir).end().is(0, &[]);
    let explained = Explained::of(lab);
    let barrier = &explained.0["barriers"]["barriers"][0];
    let queue = &barrier["queue"]["place"];
    let said = explained.said("What limits");
    match limited {
        Limited::Target => {
            holds(queue == "above", || barrier["queue"].to_string())?;
            assert!(said.contains("a limit of a control group"), "{said}");
        }
        Limited::Below => {
            holds(queue["devices"].is_object(), || barrier["queue"].to_string())?;
            assert!(said.contains("the queue is at the device"), "{said}");
        }
    }
    for (cap, wanted) in [("iops", IOPS), ("bandwidth", BANDWIDTH)] {
        let found = &barrier[cap]["rate"]["value"];
        let off = found.as_f64().map(|rate| rate / f64::from(wanted) - 1.0);
        eprintln!("{cap}: {found} for {wanted}, off by {off:.3?}");
        holds(off.is_some_and(|off| off.abs() <= 0.05), || format!("{cap} is {found}"))?;
        let reached = || format!("{cap} is not called reached");
        holds(barrier[cap]["reached"] == true, reached)?;
    }
    Ok(())
}

#[test]
fn a_limit_of_a_control_group_is_found_as_the_ceiling_above_the_device() {
    needs_root!("losetup");
    within_attempts("limited", |lab| limited_device(lab, Limited::Target));
}

#[test]
fn a_limit_below_the_target_is_found_as_the_ceiling_at_the_device() {
    needs_root!("losetup");
    within_attempts("limited-below", |lab| limited_device(lab, Limited::Below));
}

/// A loop device whose file is on a file system that can be frozen: then the device has requests,
/// and they do not come back.
fn freezable(lab: &mut Lab) -> (String, PathBuf) {
    let (_, point) = lab.ext4("noatime");
    let image = point.join("inner.img");
    fs::write(&image, vec![0; 32 << 20]).unwrap();
    fs::File::open(&image).unwrap().sync_all().unwrap();
    (lab.attach(&image, &[]), point)
}

fn frozen_device(lab: &mut Lab) -> Result<(), String> {
    let (device, point) = freezable(lab);
    // The later visits tell what is usual.
    let words = format!(
        "run random-write --target {device} --destroy {device} --time 3s --set threads=2 --set repeats=3"
    );
    let mut running = lab.start(&words);
    running.until_it_says("fill ");
    sleep(Duration::from_millis(700));
    let (begun, begun_unix_ns) = (Instant::now(), unix_ns());
    let frozen = Frozen::new(&point);
    sleep(Duration::from_millis(1500));
    drop(frozen);
    let length = begun.elapsed();
    running.end().is(0, &[]);
    let explained = Explained::of(lab);
    let gap = explained.long_gap()?;
    holds(gap["source"] == "device", || format!("not the device's: {gap}"))?;
    assert!(gap["evidence"].as_str().unwrap().contains("queue"), "{gap}");
    assert!(explained.marked("stalled"));
    let start = apart(&gap["start_unix_ns"], begun_unix_ns);
    let off = apart(&gap["length_ns"], length.as_nanos());
    eprintln!("frozen for {length:?}, found to {off:?}, its start to {start:?}");
    holds(start <= NEAR && off <= NEAR, || format!("off by {off:?}, start by {start:?}: {gap}"))
}

#[test]
fn a_frozen_device_is_called_so_with_its_start_and_length() {
    needs_root!("losetup", "mkfs.ext4", "mount", "fsfreeze");
    within_attempts("device", frozen_device);
}

/// The ages in the lines that say what has not come back.
fn ages(stderr: &str) -> Vec<f64> {
    let of =
        |line: &str| line.split("has not come back for ").nth(1)?.split(' ').next()?.parse().ok();
    stderr.lines().filter_map(of).collect()
}

#[test]
fn what_a_device_still_has_at_the_deadline_is_told_with_its_age_while_it_hangs() {
    needs_root!("losetup", "mkfs.ext4", "mount", "fsfreeze");
    let mut lab = Lab::new("age");
    let (device, point) = freezable(&mut lab);
    let words = format!(
        "run random-write --target {device} --destroy {device} --time 2s --hang-limit 5s --set threads=2 --set queue_depth=4"
    );
    let mut running = lab.start(&words);
    running.until_it_says("fill ");
    sleep(Duration::from_millis(700));
    let frozen = Frozen::new(&point);
    let begun = Instant::now();
    running.until("a second age", |running| ages(&running.err()).len() >= 2);
    let (told, seconds) = (ages(&running.err()), begun.elapsed().as_secs_f64());
    assert!(!running.err().contains("stored as"), "told while it hangs");
    assert!(told[1] > told[0] && told[1] < seconds + 1.0, "{told:?} after {seconds} s");
    running.until_it_says("stored as r1");
    let ended = begun.elapsed();
    // 2 s of cell and 5 s of hang limit at most; the rest is a busy machine.
    assert!(ended < Duration::from_secs(20), "ended after {ended:?}");
    eprintln!("ages told: {told:?} s; ended {ended:?} after the freeze");
    let explained = Explained::of(&lab);
    let gap = explained.long_gap().unwrap();
    assert_eq!((&gap["source"], &gap["at_least"]), (&"device".into(), &true.into()), "{gap}");
    assert!(gap["evidence"].as_str().unwrap().contains("still had 8 requests"), "{gap}");
    drop(frozen);
    running.end().is(4, &["had not come back after"]);
}

#[test]
fn a_visit_lost_in_the_kernel_is_never_called_free_of_freezes() {
    needs_root!("losetup", "mkfs.ext4", "mount", "fsfreeze");
    let mut lab = Lab::new("lost");
    let (device, point) = freezable(&mut lab);
    let words = format!(
        "run random-write --target {device} --destroy {device} --time 2s --hang-limit 1s --backend blocking"
    );
    let mut running = lab.start(&words);
    running.until_it_says("fill ");
    sleep(Duration::from_millis(500));
    let frozen = Frozen::new(&point);
    running.until_it_says("stored as r1");
    let said = Explained::of(&lab).said("Stalls");
    assert!(said.contains("In 1 visit requests never came back"), "{said}");
    drop(frozen);
    running.end().is(4, &["is stuck in the kernel"]);
}

#[test]
fn the_unit_of_direct_io_is_stored_of_files_that_the_run_makes() {
    let lab = Lab::new("unit");
    lab.ok("run random-read --target data --size 1MiB --time 20ms");
    let made = lab.export("r1")["target"]["direct_alignment_bytes"].clone();
    lab.ok("run random-read --target data --size 1MiB --time 20ms");
    let found = lab.export("r2")["target"]["direct_alignment_bytes"].clone();
    assert_eq!(made, found, "seen afterwards, and seen before");
}
