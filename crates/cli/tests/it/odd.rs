//! Nothing that is given or taken away makes it panic.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;

use crate::world::World;

const PANIC: i32 = 101;

#[test]
fn nobody_reading_is_no_failure() {
    let world = World::new();
    let mut child = world
        .command(&["suite", "show", "bm-flash", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let world = World::new();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = world.command(&["suite", "list"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.starts_with("error: cannot write to standard output\n"), "{err}");
}

#[test]
fn closed_streams_are_survived() {
    let world = World::new();
    for (line, code) in [
        ("suite list >&-", 0),
        ("suite list >&- 2>&- <&-", 0),
        ("lst 2>&-", 2),
        ("lst 2>/dev/full", 2),
        ("run random-read --target null: --time 20ms >&- 2>&-", 0),
    ] {
        let mut shell = std::process::Command::new("sh");
        let line = format!("{} {line}", env!("CARGO_BIN_EXE_plimsoll"));
        shell.args(["-c", &line]).env("HOME", world.path("home")).current_dir(&world.dir);
        let status = shell.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{line}");
    }
}

#[test]
fn the_name_of_a_store_is_that_of_a_file() {
    let world = World::new();
    for name in [":memory:", "file:a.db?mode=memory", "file:b%20c.db"] {
        let run = ["run", "random-read", "--target", "null:", "--time", "20ms", "--store", name];
        world.ok(&run);
        assert!(world.path(name).is_file(), "{name}");
        assert!(world.ok(&["list", "--store", name]).out.contains("random-read"), "{name}");
    }
    let none = world.run(&["list", "--store", ""]);
    assert_ne!(none.code, 0, "{none:?}");
}

#[test]
fn bytes_that_are_no_text_are_survived() {
    let world = World::new();
    let odd = OsString::from_vec(b"a\xff\x1b[31m\n".to_vec());
    let word = |text: &str| OsString::from(text);
    for words in [
        vec![odd.clone()],
        vec![word("suite"), word("show"), odd.clone()],
        vec![word("run"), odd.clone()],
        vec![word("run"), word("random-read"), word("--set"), odd.clone()],
        vec![word("run"), word("random-read"), word("--dry-run"), word("--target"), odd.clone()],
        vec![word("show"), odd.clone()],
        vec![word("list"), word("--store"), odd.clone()],
        vec![word("path"), word("--store"), odd.clone()],
        vec![word("man"), word("--dir"), odd.clone()],
        vec![word("list"), word("--color"), odd],
    ] {
        let done = world.run(&words);
        assert_ne!(done.code, PANIC, "{words:?}: {done:?}");
        assert!(!done.err.contains('\x1b'), "{words:?}: {done:?}");
    }
}

/// Names are others': nothing that is printed of them is an order for a terminal, or a line of
/// ours.
#[test]
fn names_give_no_orders() {
    let world = World::new();
    let name = "e\n\u{1b}[31mvil\u{9b}2J\u{202e}.toml";
    let text = "schema = 1\nname = \"t\"\ntitle = \"a\\u001b[31m\\u009b2J \\u202e\"\n\
                description = \"\"\"x\\u001b[2J \\u0085\\ny\"\"\"\nfile_size = \"64KiB\"\n\
                [[phase]]\nname = \"p\"\noperations = 5\n";
    std::fs::write(world.path(name), text).unwrap();
    let target = "data\r\u{1b}]0;mine\u{7}\u{202e}";
    std::fs::write(world.path(target), vec![7u8; 64 << 10]).unwrap();
    let plain = |words: &[&str]| {
        let done = world.run(words);
        assert_ne!(done.code, PANIC, "{words:?}: {done:?}");
        let both = format!("{}{}", done.out, done.err);
        let odd = both.chars().find(|&c| {
            (c.is_control() && c != '\n' && c != '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(odd, None, "{words:?}: {both:?}");
        done
    };
    plain(&["run", name, "--target", target, "--direct-is-none"]);
    plain(&["run", name, "--target", target, "--dry-run"]);
    let run = plain(&["run", name, "--target", target, "--set", "direct=false"]);
    assert_eq!(run.code, 0, "{run:?}");
    plain(&["run", name, "--target", target, "--set", "direct=false", "--json"]);
    for words in [
        &["list"][..],
        &["show"],
        &["show", "--json"],
        &["table"],
        &["explain"],
        &["explain", "--json"],
        &["compare", "r1", "r2"],
        &["compare", "r1", "r2", "--json"],
        &["export", "--format", "csv"],
        &["export", "--format", "json"],
        &["export", "--format", "hlog"],
        &["suite", "show", name],
        &["suite", "show", name, "--toml"],
        &["suite", "show", name, "--json"],
        &["suite", "show", name, "--format", "fio", "--file", target],
        &["suite", "show", name, "--format", "list"],
        &["import", name],
        &["study", name],
        &["probe", target],
        &["export", "--format", "csv", "-o", "no\n\u{1b}where/x.csv"],
    ] {
        plain(words);
    }
    // One line each, whatever a file is called.
    let missing = plain(&["suite", "show", "no\nhint: rm -rf\n.toml"]);
    assert!(missing.err.starts_with("error: cannot read the suite no\\nhint: rm -rf\\n.toml\n"));
    let lines = ["error: ", "cause: ", "hint: "];
    assert!(missing.err.lines().all(|line| lines.iter().any(|label| line.starts_with(label))));
    // What is escaped reads back.
    let written = plain(&["suite", "show", name, "--toml"]).out;
    std::fs::write(world.path("again.toml"), &written).unwrap();
    assert_eq!(plain(&["suite", "show", "again.toml", "--toml"]).out, written);
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let world = World::new();
    let err = |words: &[&str]| world.run(words).err;
    assert!(!err(&["lst"]).contains('\x1b'));
    assert!(err(&["lst", "--color", "always"]).contains("\x1b[1;31merror:\x1b[0m "));
    assert!(err(&["--color=always", "suite", "show", "no"]).contains('\x1b'));
    assert!(!err(&["lst", "--color", "never"]).contains('\x1b'));
    assert!(world.ok(&["--help", "--color", "always"]).out.contains('\x1b'));
    assert!(!world.ok(&["--help"]).out.contains('\x1b'));
}

/// The signal of a file grown too long kills unless it is heard before the store is touched.
#[test]
fn a_limit_of_file_sizes_is_said_not_died_of() {
    let world = World::new();
    let plimsoll = env!("CARGO_BIN_EXE_plimsoll");
    let run = format!("ulimit -f 0; exec {plimsoll} run random-read --target null: --time 20ms");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.arg("-c").arg(run).current_dir(&world.dir).env("HOME", world.path("home"));
    let output = shell.stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{err}");
    assert!(err.contains("the store"), "{err}");
}
