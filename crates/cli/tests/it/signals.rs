use std::io::Read;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::world::{Done, World, start};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn end(child: Child) -> Done {
    Done::from(child.wait_with_output().unwrap())
}

const LONG: [&str; 6] = ["run", "random-read", "--target", "null:", "--time", "1h"];

#[test]
fn each_signal_stores_prints_and_has_its_code() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if signal == Signal::HUP && hang_up_is_ignored() {
            println!(
                "skipped for SIGHUP: these tests run under nohup, which their programs inherit"
            );
            continue;
        }
        let world = World::new();
        let child = start(&world, &LONG);
        send(&child, signal);
        let done = end(child);
        assert_eq!(done.code, code, "{done:?}");
        assert!(done.out.contains("interrupted"), "{done:?}");
        assert!(done.err.contains("plimsoll resume r1"), "{done:?}");
        assert!(world.ok(&["list"]).out.contains("interrupted"));
    }
}

fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn json_is_whole_after_ctrl_c() {
    let world = World::new();
    let child = start(&world, &[&LONG[..], &["--json"]].concat());
    send(&child, Signal::INT);
    let done = end(child);
    assert_eq!(done.code, 130);
    let document: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(document["state"], "interrupted");
}

#[test]
fn a_second_ctrl_c_ends_it_wherever_it_is() {
    let world = World::new();
    let child = start(&world, &LONG);
    send(&child, Signal::INT);
    send(&child, Signal::INT);
    send(&child, Signal::INT);
    assert_eq!(end(child).code, 130);
    assert_eq!(world.files(), ["home"]);
}

#[test]
fn under_nohup_a_closed_terminal_is_not_heard() {
    let world = World::new();
    let mut shell = std::process::Command::new("sh");
    let words = "run random-read --target null: --time 400ms";
    let line = format!("trap '' HUP; exec {} {words}", env!("CARGO_BIN_EXE_plimsoll"));
    shell.args(["-c", &line]).env("HOME", world.path("home")).current_dir(&world.dir);
    let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut byte = [0];
    child.stderr.as_mut().unwrap().read_exact(&mut byte).unwrap();
    send(&child, Signal::HUP);
    assert_eq!(end(child).code, 0);
}

#[test]
fn an_interrupted_run_is_resumed() {
    let world = World::new();
    let words =
        ["run", "random-read", "--target", "null:", "--time", "300ms", "--set", "threads=1,2"];
    let child = start(&world, &words);
    send(&child, Signal::INT);
    assert_eq!(end(child).code, 130);
    let done = world.ok(&["resume"]);
    assert!(done.out.contains("complete"), "{done:?}");
    let done = world.run(&["resume"]);
    assert_eq!(done.code, 2, "nothing is left: {done:?}");
}

#[test]
fn a_killed_run_is_resumed() {
    let world = World::new();
    let words =
        ["run", "random-read", "--target", "null:", "--time", "300ms", "--set", "threads=1,2"];
    let mut child = start(&world, &words);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(world.ok(&["list"]).out.contains("killed"));
    assert!(world.ok(&["resume", "r1"]).out.contains("complete"));
}

/// Files that begin empty before each visit, and grow by 64 KiB every 20 ms.
const GROWS: &str = "schema = 1\nname = \"grows\"\nfile_size = \"1MiB\"\nfill = false\n\
                     method = \"classic\"\nrepeats = 2\n[[phase]]\nname = \"w\"\n\
                     operation = \"write\"\naccess = \"sequential\"\nblock_size = \"64KiB\"\n\
                     bytes = \"1MiB\"\nthink = \"20ms\"\ndirect = false\n";

#[test]
fn killed_while_its_file_grows_it_is_resumed_without_a_word() {
    for how in ["truncate", "remove"] {
        let world = World::new();
        std::fs::write(world.path("grows.toml"), format!("{GROWS}start_file = \"{how}\"\n"))
            .unwrap();
        let file = world.path("data");
        let mut child = start(&world, &["run", "grows.toml", "--target", "data"]);
        let length = || std::fs::metadata(&file).map_or(0, |found| found.len());
        let begin = std::time::Instant::now();
        while !(64 << 10..1 << 20).contains(&length()) {
            assert!(begin.elapsed().as_secs() < 60, "{how}: it does not grow");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let left = length();
        if stack::mark_of(&file) == stack::Mark::Unsupported {
            println!("skipped: no extended attributes here");
            return;
        }
        assert!(left < 1 << 20, "{how}: {left}");
        let done = world.run(&["resume"]);
        assert_eq!(done.code, 0, "{how}: {done:?}");
        assert_eq!(length(), 1 << 20, "{how}");
        world.ok(&["rm", "r1", "--yes"]);
        world.ok(&["run", "grows.toml", "--target", "data"]);
    }
}
