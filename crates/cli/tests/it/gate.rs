//! `plimsoll compare` as a gate: exit codes, JUnit XML, Markdown, and the commands of `docs/ci.md`.

use crate::world::World;

/// r1 and r3 on a simulated drive, r2 on one that is faster in both cells; r4 of another load, r5 as r2
/// without the last cell.
fn with_runs() -> World {
    let world = World::new();
    let fast = world.model();
    let slow = fast.replace("nvme.toml", "sata-ssd.toml");
    let read = "random-read";
    for (seed, suite, target, depths) in [
        ("1", read, &slow, "16,64"),
        ("2", read, &fast, "16,64"),
        ("3", read, &slow, "16,64"),
        ("4", "random-write", &slow, "16,64"),
        ("5", read, &fast, "16"),
    ] {
        let depths = format!("queue_depth={depths}");
        let words = ["run", suite, "--classic", "--seed", seed, "--target", target];
        let more = ["--time", "200ms", "--set", &depths, "--set", "repeats=3"];
        world.ok(&[&words[..], &more[..]].concat());
    }
    world
}

#[test]
fn what_a_gate_lets_pass() {
    let world = with_runs();
    for (what, words, codes) in [
        ("worse", &["r2", "r1"][..], [8, 8]),
        ("better", &["r1", "r2"], [0, 0]),
        ("same", &["r1", "r3", "--margin", "95%"], [0, 0]),
        ("inconclusive", &["r1", "r3"], [0, 10]),
        ("nothing in common", &["r1", "r4"], [9, 9]),
        ("a cell is gone", &["r1", "r5"], [0, 10]),
        ("a repeat of the first beside a better one", &["r1", "r2", "r3"], [0, 0]),
    ] {
        for (how, code) in ["--exit-code", "--exit-code=strict"].into_iter().zip(codes) {
            let done = world.run(&[&["compare", how][..], words].concat());
            assert_eq!(done.code, code, "{what}, {how}: {}", done.out);
        }
    }
}

#[test]
fn junit_has_a_case_for_each_cell() {
    let world = with_runs();
    let of = |words: &[&str]| {
        let report = world.run(&[&["compare", "--format", "junit"][..], words].concat()).out;
        let count = |tag: &str| report.matches(tag).count();
        let closed = |name: &str| count(&format!("<{name} ")) == count(&format!("</{name}>"));
        assert!(
            ["testsuite", "testcase", "failure", "skipped"].into_iter().all(closed),
            "{report}"
        );
        report
    };
    let worse = of(&["r2", "r1"]);
    let counts = "tests=\"3\" failures=\"3\" errors=\"0\" skipped=\"0\"";
    assert!(worse.contains(counts), "{worse}");
    assert!(worse.contains("classname=\"random-read\" name=\"read 64\""), "{worse}");
    assert!(worse.contains("<failure message=\"slower: x0."), "{worse}");
    let open = of(&["r1", "r3"]);
    assert!(open.contains("failures=\"0\" errors=\"0\" skipped=\"3\""), "{open}");
    let strict = of(&["r1", "r3", "--exit-code=strict"]);
    assert!(strict.contains("failures=\"0\" errors=\"3\" skipped=\"0\""), "{strict}");
    let gone = of(&["r1", "r5"]);
    assert!(gone.contains("<skipped message=\"only A has this cell\">"), "{gone}");
}

#[test]
fn markdown_begins_with_the_headline_and_the_worst_cell() {
    let world = with_runs();
    let report = world.ok(&["compare", "r2", "r1", "--format", "markdown"]).out;
    let lines: Vec<_> = report.lines().collect();
    assert!(lines[0].starts_with("**Different: B is slower than A"), "{report}");
    assert_eq!(lines[2], "| cell | A | B | ratio | verdict |");
    assert!(lines[4].starts_with("| `read 64` |"), "{report}");
    assert!(lines[5].starts_with("| `read 16` |"), "{report}");
}

/// The page's commands, in its order, on a simulated drive.
#[test]
fn the_commands_of_the_page_work() {
    let world = World::new();
    let page = include_str!("../../../../docs/ci.md");
    let command = |line: &'static str| line.trim().trim_start_matches("- ");
    let commands = page.lines().map(command).filter(|line| line.starts_with("plimsoll "));
    let mut count = 0;
    for line in commands {
        let line =
            line.replace("/ssd/ci.dat", &world.model()).replace("--quiet", "--quiet --seed 1");
        let mut shell = std::process::Command::new("/bin/sh");
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
        shell.args(["-c", &line]).current_dir(&world.dir).env_clear().env("PATH", program);
        let done = shell.env("GITHUB_STEP_SUMMARY", "summary.md").output().unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
        count += 1;
    }
    assert_eq!(count, 6);
    assert_eq!(world.files(), ["baseline.db", "home", "storage.xml", "summary.md"]);
}
