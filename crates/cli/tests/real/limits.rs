//! Limits that administrators set.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::lab::{Lab, PLIMSOLL, Running, Said, measured, needs_root};

/// Runs the program under limits of the shell.
fn limited(lab: &Lab, limit: &str, words: &str) -> Said {
    let mut command = Command::new("sh");
    let script = format!("ulimit {limit} && exec \"$0\" {words} --store store.db");
    command.args(["-c", &script, PLIMSOLL]).current_dir(&lab.dir);
    Running::start(command, &lab.dir).end()
}

#[test]
fn a_limit_of_file_sizes_is_an_error_not_a_kill() {
    let lab = Lab::new("fsize");
    let said = limited(&lab, "-f 4096", "run random-write --target data --size 64MiB --time 50ms");
    said.is(
        5,
        &[
            "error: cannot give its length to ",
            "data: File too large",
            "hint: raise the limit of file sizes (`ulimit -f`)",
        ],
    );
    assert!(!lab.path("data").exists(), "a file without a mark would be in the way for ever");
    lab.ok("run random-write --target data --size 1MiB --time 50ms");
}

#[test]
fn too_few_open_files_is_said_with_the_way_out() {
    let lab = Lab::new("nofile");
    let words = "run random-read --target data --size 64KiB --set file_count=500 --time 50ms";
    let said = limited(&lab, "-n 64", words);
    said.is(5, &["Too many open files", "hint: raise the limit of open files: ulimit -n"]);
    // The files bear the mark: the next run takes them.
    lab.ok(words);
    assert!(lab.path("data.499").exists() && !lab.path("data.500").exists());
}

/// Known before a run is stored, and to a dry run.
#[test]
fn a_target_that_this_user_cannot_open_is_no_run() {
    needs_root!("setpriv");
    let lab = Lab::new("unreadable");
    fs::set_permissions(&lab.dir, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(lab.path("data"), vec![0; 64 << 10]).unwrap();
    for (mode, suite, what) in [
        (0o000, "random-read", "cannot read"),
        (0o444, "random-write --overwrite data", "cannot write to"),
    ] {
        fs::set_permissions(lab.path("data"), fs::Permissions::from_mode(mode)).unwrap();
        for dry in ["", "--dry-run"] {
            let words = format!("run {suite} --target data --size 64KiB {dry} --store store.db");
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", PLIMSOLL]);
            command.args(words.split_whitespace()).current_dir(&lab.dir);
            let said = Running::start(command, &lab.dir).end();
            if said.code == Some(126) || said.code == Some(127) {
                return eprintln!("skipped: the program is where other users cannot run it");
            }
            said.is(5, &[what, "/data: Permission denied", "\nhint: run as a user who may"]);
            assert!(!lab.path("store.db").exists(), "{words}");
        }
    }
}

#[test]
fn locked_memory_is_done_without_and_said() {
    needs_root!("setpriv");
    let lab = Lab::new("memlock");
    fs::set_permissions(&lab.dir, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("sh");
    let words =
        "run random-read --target data --size 8MiB --time 100ms --set queue_depth=256 --json";
    let script = format!(
        "ulimit -l 0 && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" {words} --store store.db"
    );
    command.args(["-c", &script, PLIMSOLL]).current_dir(&lab.dir);
    let said = Running::start(command, &lab.dir).end();
    if said.code == Some(126)
        || said.code == Some(127)
        || said.out.is_empty() && said.err.contains("Permission denied")
    {
        eprintln!("skipped: the program is where other users cannot run it");
        return;
    }
    said.is(0, &[]);
    let visit = measured(&said.document())[0].clone();
    let backend = visit["backend"].to_string();
    assert!(visit["requests"].as_u64().unwrap() > 0);
    if backend.contains("\"io_uring\"") {
        assert!(backend.contains("buffers not registered: ENOMEM"), "{backend}");
        assert!(backend.contains("ulimit -l"), "{backend}");
    }
}
