//! What is named to be read and is no file; what is read and is too much.

use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::world::{Done, World};

/// Named pipe, directory, socket and device in the world's directory.
fn odd_ones(world: &World) -> (Vec<(String, &'static str)>, UnixListener) {
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, world.path("pipe.toml"), kind, mode, 0).unwrap();
    std::fs::create_dir(world.path("dir.toml")).unwrap();
    let socket = UnixListener::bind(world.path("socket.toml")).unwrap();
    let named = |name: &str, kind| (name.to_owned(), kind);
    let all = vec![
        named("pipe.toml", "a pipe"),
        named("dir.toml", "a directory"),
        named("socket.toml", "a socket"),
        named("/dev/zero", "a device"),
        named("/dev/tty", "a device"),
    ];
    (all, socket)
}

/// Waits for ten seconds: what waits for a writer does not end.
fn ends(world: &World, words: &[&str]) -> Done {
    let mut command = world.command(words);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let late = Instant::now() + Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > late {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{words:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Done::from(child.wait_with_output().unwrap())
}

#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    let world = World::new();
    let (odd, _socket) = odd_ones(&world);
    for (path, kind) in &odd {
        let list = format!("schema = 1\nname = \"l\"\n[[part]]\nsuite = \"{path}\"\n");
        std::fs::write(world.path("list.toml"), list).unwrap();
        let relative = format!("./{path}");
        let path = if path.starts_with('/') { path } else { &relative };
        for words in [
            vec!["import", path],
            vec!["run", path, "--target", "null:"],
            vec!["suite", "show", path],
            vec!["suite", "show", "list.toml"],
            vec!["compare", "--live", path, path],
        ] {
            let done = ends(&world, &words);
            assert_eq!(done.code, 2, "{words:?}: {done:?}");
            let told = format!("it is {kind}, wanted a regular file");
            assert!(done.err.contains(&told), "{words:?}: {}", done.err);
        }
    }
    let done = world.run(&["import", "pipe.toml"]);
    assert!(done.err.contains("`plimsoll import -`"), "{}", done.err);
}

/// Under so much address space as the shell's `ulimit -v` takes, in KiB.
fn within(world: &World, kib: u64, words: &[&str]) -> Done {
    let line = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).arg(env!("CARGO_BIN_EXE_plimsoll")).args(words);
    command.current_dir(&world.dir).env_clear().env("HOME", world.path("home"));
    Done::from(command.output().unwrap())
}

#[test]
fn the_largest_files_take_little_memory() {
    const LONGEST: usize = 32 << 20;
    let world = World::new();
    let fill = |start: &str, piece: &str, end: &str| {
        let count = (LONGEST - start.len() - end.len()) / piece.len();
        start.to_owned() + &piece.repeat(count) + end
    };
    let fio = |inner: String| {
        format!("{{\"fio version\":\"fio-3.33\",\"jobs\":[{{\"jobname\":\"j\",{inner}}}]}}\n")
    };
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/data");
    let row = std::fs::read_to_string(data.join("bonnie-1.03.csv")).unwrap();
    // Each another result, or they are one and its copies.
    let another = |k: usize| {
        let figures = [10_000 + k % 90_000, 10_000 + k / 90_000].map(|figure| figure.to_string());
        row.replacen("58211", &figures[0], 1).replacen("41220", &figures[1], 1)
    };
    let rows = (0..LONGEST / row.len() - 1).fold(String::new(), |all, k| all + &another(k));
    let batch = std::fs::read_to_string(data.join("ioping-1.3-batch.txt")).unwrap();
    let statistics = std::fs::read_to_string(data.join("ioping-1.3-seek-rate.txt")).unwrap();
    let shapes: Vec<(&str, String)> = vec![
        ("one line", fill("Read Tests: ", "x", "\n")),
        ("one line of words", fill("COMBINED ", "x ", "\n")),
        ("one line of digits", fill("", "1 ", "\n")),
        ("line ends", fill("sysbench 1.0 total file size\n", "\n", "")),
        ("bars", fill("Read Tests:\n", &("| ".repeat(1000) + "\n"), "")),
        ("commas", fill("1.98,2.00a", ",", "\n")),
        ("commas and line ends", fill("", "a,1G,\n", "")),
        ("rows of bonnie++", rows),
        ("batch lines", batch.repeat(LONGEST / batch.len())),
        ("statistics", statistics.repeat(LONGEST / statistics.len())),
        ("a page", fill("<pre>Read Tests:", "<br>", "\n")),
        ("settings", fill("What Ops COMBINED \n", "Queue Depth, 1\n", "")),
        ("a matrix", fill("iops, in IOPS\nLarge/Small,1,2,3\n", "0,1,1,1\n", "")),
        ("brackets", fill("{\"jobs\":[\"jobname\"],\"x\":", "[", "\n")),
        ("objects", fill("{\"jobs\":[\"jobname\"],\"x\":", "{\"a\":", "\n")),
        ("numbers", fio(fill("\"x\":[", "1,", "1]"))),
        ("keys", fio(fill("\"x\":{", "\"a\":1,", "\"a\":1}"))),
        (
            "options",
            fio((0..2_000_000)
                .fold(String::from("\"job options\":{"), |all, k| all + &format!("\"{k}\":\"\","))
                + "\"a\":\"\"}"),
        ),
        ("bins", fio(fill("\"read\":{\"lat_ns\":{\"bins\":{", "\"1\":1,", "\"1\":1}}}"))),
        ("jobs", format!("{{\"jobname\":1,\"jobs\":[{}{{}}]}}\n", "{},".repeat(LONGEST / 3 - 20))),
    ];
    let copies = ["batch lines", "statistics"];
    for (shape, text) in shapes {
        assert!(text.len() <= LONGEST + 200, "{shape}");
        std::fs::write(world.path("odd"), text.get(..LONGEST).unwrap_or(&text)).unwrap();
        // The file itself takes 32 MiB, the program and its libraries some.
        let done = within(&world, 320 << 10, &["import", "odd", "--dry-run"]);
        if copies.contains(&shape) {
            assert_eq!(done.code, 0, "{shape}: {done:?}");
            assert!(
                done.err.contains("outputs of this file are left out"),
                "{shape}: {}",
                done.err
            );
            continue;
        }
        assert_eq!(done.code, 2, "{shape}: {done:?}");
        assert!(done.err.starts_with("error: odd"), "{shape}: {}", done.err);
        assert!(done.err.len() < 1_000, "{shape}: {}", done.err);
    }
    assert!(!world.store().exists());
}
