//! A standard output that nothing can be written to: full, open for reading only, or left by its reader.

use std::process::{Command, Stdio};

use crate::world::{Done, World};

/// Everything that prints a result.
const LINES: [&str; 16] = [
    "--version",
    "--help",
    "help run",
    "list",
    "list --json",
    "show r1",
    "show r1 --json",
    "table r1",
    "export r1 --format json",
    "export r1 --format csv -o -",
    "explain r1",
    "report r1",
    "path",
    "suite show random-read",
    "completions bash",
    "run random-read --target null: --time 50ms --classic",
];

/// * `where_to`: a redirection.
fn redirected(world: &World, line: &str, where_to: &str) -> Done {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("exec \"$0\" \"$@\" {where_to}"));
    command.arg(env!("CARGO_BIN_EXE_plimsoll")).args(line.split(' '));
    command.current_dir(&world.dir).env_clear().env("HOME", world.path("home"));
    Done::from(command.output().unwrap())
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let world = World::with_two_runs();
    for line in LINES {
        for where_to in ["1</dev/null", ">/dev/full"] {
            let done = redirected(&world, line, where_to);
            assert_eq!(done.code, 1, "{line} {where_to}: {done:?}");
            let said = done.err.contains("error: cannot write to standard output");
            assert!(said, "{line} {where_to}: {done:?}");
        }
        for where_to in [">/dev/null", "1<>/dev/null", ">out"] {
            let done = redirected(&world, line, where_to);
            assert_eq!(done.code, 0, "{line} {where_to}: {done:?}");
        }
    }
}

#[test]
fn a_reader_that_left_is_no_error() {
    let world = World::with_two_runs();
    for line in LINES {
        let words: Vec<_> = line.split(' ').collect();
        let mut command = world.command(&words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let done = Done::from(child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{line}: {done:?}");
        assert!(!done.err.contains("error"), "{line}: {done:?}");
    }
}
