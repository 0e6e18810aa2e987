//! What goes wrong below, on real files and devices: named, stored, nothing else touched.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::{Lab, Neighbour, ends, measured, needs_root, tool};

fn cut(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

/// Long enough that the first cell is under way.
fn a_while() {
    sleep(Duration::from_millis(400));
}

#[test]
fn errors_of_a_device_fail_the_visit_and_are_named() {
    needs_root!("losetup");
    let mut lab = Lab::new("eio");
    let image = lab.sparse("disk.img", 16);
    let neighbour = Neighbour::new(&lab.dir);
    let device = lab.attach(&image, &[]);
    let words = format!("run random-read --target {device} --time 1s --set threads=1,2 --json");
    let mut running = lab.start(&words);
    running.until_it_says("visits to make");
    a_while();
    cut(&image, 4096);
    let said = running.end();
    said.is(
        4,
        &[
            "stream `read`, worker 0: read of 4096 bytes at byte",
            "failed: EIO (Input/output error)",
        ],
    );
    let document = said.document();
    assert_eq!(ends(&document), ["failed", "failed"]);
    let first = &measured(&document)[0];
    assert!(first["requests"].as_u64().unwrap() > 0, "what came before counts");
    assert_eq!(first["errors"], 1);
    assert_eq!(lab.list()[0]["state"], "complete");
    neighbour.untouched();
}

#[test]
fn a_file_cut_under_us_is_a_short_read() {
    for backend in ["auto", "blocking", "io-uring"] {
        let lab = Lab::new("short");
        let neighbour = Neighbour::new(&lab.dir);
        let words = format!(
            "run random-read --target data --size 8MiB --time 1s --set threads=1,2 --backend {backend} --json"
        );
        let mut running = lab.start(&words);
        running.until_it_says("fill ");
        a_while();
        cut(&lab.path("data"), 4096);
        let said = running.end();
        said.is(4, &["read of 4096 bytes at byte", "of file 0 moved 0 bytes only"]);
        let document = said.document();
        assert_eq!(ends(&document), ["failed", "failed"]);
        assert!(measured(&document)[0]["short"].as_u64().unwrap() >= 1);
        assert_eq!(fs::metadata(lab.path("data")).unwrap().len(), 4096, "reads write nothing");
        neighbour.untouched();
    }
}

#[test]
fn a_file_that_is_removed_under_us_ends_the_run() {
    let lab = Lab::new("gone");
    let mut running =
        lab.start("run random-read --target data --size 8MiB --time 1s --set threads=1,2,3 --json");
    running.until_it_says("fill ");
    a_while();
    fs::remove_file(lab.path("data")).unwrap();
    let said = running.end();
    said.is(5, &["data was removed while it was measured", "the run ends here"]);
    assert_eq!(ends(&said.document()), ["complete"], "what was measured until then is kept");
    assert_eq!(lab.list()[0]["state"], "failed");
}

#[test]
fn a_file_that_is_cut_and_written_again_is_told() {
    let lab = Lab::new("cut");
    let mut running =
        lab.start("run random-write --target data --size 64MiB --time 1s --set threads=1 --json");
    running.until_it_says("fill ");
    a_while();
    cut(&lab.path("data"), 0);
    let said = running.end();
    said.is(0, &["data was changed by someone else while it was measured"]);
    assert_eq!(ends(&said.document()), ["complete"]);
}

#[test]
fn a_mapped_file_cut_under_us_is_an_error_not_a_crash() {
    let lab = Lab::new("mmap");
    let words = "run random-read --target data --size 8MiB --time 1s --backend mmap --set direct=false --json";
    let mut running = lab.start(words);
    running.until_it_says("fill ");
    a_while();
    cut(&lab.path("data"), 4096);
    let said = running.end();
    said.is(4, &["failed: EIO"]);
    assert_eq!(ends(&said.document()), ["failed"]);
}

#[test]
fn a_file_system_that_fills_up_ends_the_run_and_can_be_gone_on_with() {
    needs_root!("losetup", "mkfs.ext4", "mount", "fallocate");
    let mut lab = Lab::new("enospc");
    let (_, point) = lab.ext4("noatime");
    let neighbour = Neighbour::new(&point);
    let file = point.join("data");
    let words = "run random-read --target m/data --size 512MiB --time 200ms --json";
    let mut running = lab.start(words);
    // Free space was checked; somebody else takes it while the fill is under way.
    running.until("blocks", |_| fs::metadata(&file).is_ok_and(|found| found.blocks() > 100));
    running.signal(Signal::STOP);
    for (name, length) in [("a", "1000M"), ("b", "500M"), ("c", "200M"), ("d", "100M")] {
        let _ = fallocate(&point.join(name), length);
    }
    let mut name = 0;
    while fallocate(&point.join(format!("e{name}")), "20M") {
        name += 1;
    }
    let _ = fs::write(point.join("rest"), vec![0; 30 << 20]);
    running.signal(Signal::CONT);
    let said = running.end();
    said.is(
        5,
        &[
            "write of 1048576 bytes at byte",
            "failed: ENOSPC (No space left on device)",
            "the files could not be written to the end: nothing was measured",
            "`plimsoll resume r1` goes on from here",
        ],
    );
    assert_eq!(measured(&said.document()).len(), 0);
    assert_eq!(lab.list()[0]["state"], "failed");
    neighbour.untouched();

    for entry in fs::read_dir(&point).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && path != file && !path.ends_with("neighbour.db") {
            fs::remove_file(path).unwrap();
        }
    }
    lab.ok("resume");
    assert_eq!(ends(&lab.export("r1")), ["complete"]);
    neighbour.untouched();
}

fn fallocate(path: &Path, length: &str) -> bool {
    let words = ["-l", length, path.to_str().unwrap()];
    let said = std::process::Command::new("fallocate").args(words).output().unwrap();
    said.status.success()
}

#[test]
fn a_file_system_that_turns_read_only_ends_the_run() {
    needs_root!("losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("erofs");
    let (device, point) = lab.ext4("errors=remount-ro");
    let name = device.trim_start_matches("/dev/");
    let trigger = format!("/sys/fs/ext4/{name}/trigger_fs_error");
    if !Path::new(&trigger).exists() {
        eprintln!("skipped: this kernel's ext4 cannot be told to fail");
        return;
    }
    let neighbour = Neighbour::new(&point);
    let words = "run random-write --target m/data --size 8MiB --time 1s --set threads=1,2 --json";
    let mut running = lab.start(words);
    running.until_it_says("fill ");
    a_while();
    fs::write(&trigger, "x").unwrap();
    let said = running.end();
    said.is(
        5,
        &[
            "write of 4096 bytes at byte",
            "failed: EROFS (Read-only file system)",
            "the run ends here: EROFS",
        ],
    );
    let document = said.document();
    assert_eq!(ends(&document), ["failed"], "the second cell is not tried");
    assert!(measured(&document)[0]["requests"].as_u64().unwrap() > 0);
    assert_eq!(document["state"], "failed");
    neighbour.untouched();
    // Nothing can be gone on with before somebody has mounted it anew.
    let again = lab.run("resume");
    assert!(matches!(again.code, Some(3 | 5)), "{again}");
    assert!(again.err.contains("Read-only"), "{again}");
}

#[test]
fn a_device_that_shrinks_to_nothing_while_it_is_written() {
    needs_root!("losetup");
    let mut lab = Lab::new("vanish");
    let image = lab.sparse("disk.img", 16);
    let device = lab.attach(&image, &[]);
    let neighbour = Neighbour::new(&lab.dir);
    let words = format!(
        "run random-write --target {device} --destroy {device} --time 9s --set threads=1,2 --size 8MiB --json"
    );
    let mut running = lab.start(&words);
    running.until_it_says("fill ");
    a_while();
    // A write between the two would make the file as long as it was.
    running.signal(Signal::STOP);
    a_while();
    cut(&image, 0);
    tool("losetup", &["-c", &device]);
    running.signal(Signal::CONT);
    let said = running.end();
    said.is(5, &["stream `write`, worker 0: write of 4096 bytes at byte", "the run ends here: E"]);
    let document = said.document();
    assert_eq!(ends(&document), ["failed"]);
    assert_eq!(document["state"], "failed");
    neighbour.untouched();
}

#[test]
fn a_device_that_shrinks_to_nothing_while_it_is_read() {
    needs_root!("losetup");
    let mut lab = Lab::new("vanish-read");
    let image = lab.sparse("disk.img", 16);
    let device = lab.attach(&image, &[]);
    let words = format!(
        "run random-read --target {device} --time 500ms --set threads=1,2,3,4,5,6,7 --json"
    );
    let mut running = lab.start(&words);
    running.until_it_says("visits to make");
    sleep(Duration::from_millis(200));
    cut(&image, 0);
    tool("losetup", &["-c", &device]);
    let said = running.end();
    // Reads of nothing end after 0 bytes; five failed visits in a row end the run.
    said.is(5, &["the run ends here: 5 visits in a row failed"]);
    assert_eq!(ends(&said.document()), ["failed"; 5]);
}

#[test]
fn a_stopped_program_knows_that_it_was_the_host() {
    let lab = Lab::new("stop");
    let mut running = lab.start("run random-read --target data --size 8MiB --time 4s --json");
    running.until_it_says("fill ");
    a_while();
    let begun = Instant::now();
    running.signal(Signal::STOP);
    sleep(Duration::from_secs(2));
    let stopped = begun.elapsed().as_nanos() as i64;
    running.signal(Signal::CONT);
    let said = running.end();
    said.is(0, &[]);
    let visit = measured(&said.document())[0].clone();
    assert_eq!(visit["end"], "complete");
    let lengths = |name: &str| {
        let all = visit[name].as_array().unwrap().iter();
        all.map(|gap| gap["length_ns"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let near = |length: &i64| (length - stopped).abs() < 100_000_000;
    let stalls = lengths("host_stalls");
    assert!(stalls.iter().any(near), "stopped for {stopped} ns, stalls: {stalls:?}");
    let gaps = lengths("gaps");
    assert!(gaps.iter().any(near), "stopped for {stopped} ns, gaps: {gaps:?}");
    // The stall is part of the time and of the slowest request: nothing is taken out silently.
    assert!(visit["elapsed_ns"].as_i64().unwrap() >= 4_000_000_000);
    assert!(visit["latency_ns"]["max"].as_i64().unwrap() >= stopped - 100_000_000);
    let rate = visit["requests"].as_f64().unwrap() * 1e9 / visit["elapsed_ns"].as_f64().unwrap();
    assert!((visit["iops"].as_f64().unwrap() / rate - 1.0).abs() < 1e-6);
}

fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn signals_end_the_run_and_keep_what_was_measured() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if signal == Signal::HUP && hang_up_is_ignored() {
            println!(
                "skipped for SIGHUP: these tests run under nohup, which their programs inherit"
            );
            continue;
        }
        let lab = Lab::new("signal");
        let words = "run random-read --target data --size 8MiB --time 3s --set threads=1,2";
        let mut running = lab.start(words);
        running.until_it_says("fill ");
        a_while();
        running.signal(signal);
        let said = running.end();
        said.is(code, &["interrupted; stored as r1: `plimsoll resume r1` goes on from here"]);
        assert!(said.out.contains("cut short by the user"), "{said}");
        let document = lab.export("r1");
        assert_eq!(
            (ends(&document), &document["state"]),
            (vec!["interrupted".to_owned()], &"interrupted".into())
        );
        let visit = &measured(&document)[0];
        assert!(visit["elapsed_ns"].as_i64().unwrap() < 3_000_000_000 && visit["requests"] != 0);
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let lab = Lab::new("twice");
    fs::create_dir(lab.path("d")).unwrap();
    let words = "run random-write --target d --size 8MiB --time 20s";
    let mut running = lab.start(words);
    running.until_it_says("fill ");
    a_while();
    let begun = Instant::now();
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    let said = running.end();
    assert_eq!(said.code, Some(130), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(fs::read_dir(lab.path("d")).unwrap().count(), 0, "the scratch file is gone");
    assert_eq!(lab.list().len(), 1);
}

const MODEL: &str = r#"
schema = 1
name = "broken"
[model]
size = "1GiB"
[model.read]
iops = 100000
bandwidth = "1GiB"
latency = "100us"
"#;

/// Rule, more arguments; exit code, how visits end, what is said.
type Case = (&'static str, &'static str, i32, &'static [&'static str], &'static [&'static str]);

/// What each fault of a twin means for the exit code and what is said.
#[test]
fn faults_of_a_twin_end_as_those_of_a_device_do() {
    let cases: &[Case] = &[
        (
            "{ error = \"EIO\" }\nnth = 500",
            "",
            4,
            &["failed", "complete", "complete"],
            &["failed: EIO"],
        ),
        (
            "{ short = \"512B\" }\nnth = 7",
            "",
            4,
            &["failed", "complete", "complete"],
            &["moved 512 bytes only"],
        ),
        (
            "\"lost\"\nnth = 100",
            "--hang-limit 1s",
            4,
            &["hanging", "complete", "complete"],
            &["had not come back after"],
        ),
        (
            "{ vanish = { errno = \"ENODEV\", seen = \"requests\" } }\nnth = 1000",
            "",
            5,
            &["failed"],
            &["failed: ENODEV", "the run ends here: ENODEV"],
        ),
        (
            "{ vanish = { errno = \"ENODEV\", seen = \"device\" } }\nnth = 1000",
            "",
            5,
            &["failed"],
            &["the run ends here: the device failed"],
        ),
        (
            "{ error = \"EIO\" }\nrate = 1.0",
            "--set repeats=3",
            5,
            &["failed", "failed", "failed", "failed", "failed"],
            &["the run ends here: 5 visits in a row failed"],
        ),
    ];
    for (fault, more, code, ended, said) in cases {
        let lab = Lab::new("twin");
        fs::write(lab.path("m.toml"), format!("{MODEL}[[fault]]\nwhat = {fault}\n")).unwrap();
        let set = "--set queue_depth=1,2,4 --time 1s --size 1GiB --json";
        let end = lab.run(&format!("run random-read --target model:m.toml {set} {more}"));
        end.is(*code, said);
        let mut found = ends(&end.document());
        if *code == 5 && found.len() > ended.len() {
            found.retain(|end| end != "complete");
        }
        assert_eq!(found, *ended, "{fault} {more}");
    }
}
