//! Runs of other tools, from the file to every later command.

use std::io::Write;
use std::process::Stdio;

use crate::world::World;

/// The samples that the parsers are tested with.
fn samples() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/data")
}

fn sample(name: &str) -> String {
    samples().join(name).to_str().unwrap().to_owned()
}

fn names() -> Vec<String> {
    let all = std::fs::read_dir(samples()).unwrap();
    let mut names: Vec<_> =
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_later_command_takes_every_sample() {
    let world = World::new();
    for name in names() {
        let file = sample(&name);
        // What was read is what is stored.
        let dry = world.ok(&["import", "--together", "--dry-run", &file]);
        assert!(dry.err.contains("nothing was stored"), "{name}: {}", dry.err);
        let words = ["import", "--together", &file, "--json"];
        let told: serde_json::Value = serde_json::from_str(&world.ok(&words).out).unwrap();
        assert_eq!(told["schema"], "plimsoll.imported/1");
        let runs = told["runs"].as_array().unwrap();
        let [run] = runs.as_slice() else { panic!("{name}: {told}") };
        let id = run["run"].as_str().unwrap();
        let table = world.ok(&["table", id, "--layout", "grid"]).out;
        assert_eq!(table.strip_prefix(id).unwrap(), dry.out, "{name}");
        assert!(!table.contains("NaN") && !table.contains("inf"), "{name}: {table}");

        let shown = world.ok(&["show", id]).out;
        assert!(shown.contains("state      imported") && shown.contains(&name), "{shown}");
        for absent in ["seed", "kernel", "back end", "error", "0 B"] {
            assert!(!shown.lines().any(|l| l.starts_with(absent)), "{name}: {shown}");
        }
        // Nothing was counted in it, so the original's table has no figure to show.
        if name != "ioping-1.3-too-fast.txt" {
            world.ok(&["table", id, "--layout", "classic"]);
        }
        world.ok(&["explain", id]);
        world.ok(&["explain", id, "--json"]);
        let csv = world.ok(&["export", id, "--format", "csv"]).out;
        assert!(csv.lines().count() > 1, "{name}: {csv}");
        let document: serde_json::Value =
            serde_json::from_str(&world.ok(&["export", id, "--format", "json"]).out).unwrap();
        assert_eq!(document["imported"]["file"], *file, "{name}");
        world.ok(&["export", id, "--format", "parquet", "-o", "run.parquet", "--force"]);
        assert!(std::fs::read(world.path("run.parquet")).unwrap().starts_with(b"PAR1"));
        let refused = world.run(&["resume", id]);
        assert_eq!(refused.code, 2, "{name}: {refused:?}");
        assert!(refused.err.contains("it was imported"), "{name}: {}", refused.err);
        // Again, so that there are two to compare.
        let again = world.ok(&["import", "--together", &file]);
        assert!(again.err.contains("was imported before"), "{name}: {}", again.err);
        let compared = world.ok(&["compare", id, "last"]).out;
        assert!(compared.contains("imported"), "{name}: {compared}");
        world.ok(&["compare", id, "last", "--json"]);
        world.ok(&["explain", id, "last"]);
    }
    let listed = world.ok(&["list"]).out;
    assert_eq!(listed.lines().count(), 1 + 2 * names().len());
    assert!(!listed.contains("1970-"), "{listed}");
    world.ok(&["rm", "r1", "last", "--yes"]);
    assert_eq!(world.ok(&["list"]).out.lines().count(), 2 * names().len() - 1);
}

#[test]
fn an_imported_run_stands_beside_one_of_our_own() {
    let world = World::new();
    world.ok(&["run", "random-read", "--target", "null:", "--time", "50ms", "--classic"]);
    world.ok(&["import", &sample("fio-3.33-randread.json+")]);
    let told = world.ok(&["compare", "r1", "r2"]).out;
    assert!(told.contains("r2 was imported"), "{told}");
    for absent in ["kernel", "processor", "seed", "memory", "suite text"] {
        assert!(!told.contains(absent), "{absent} is not known of r2: {told}");
    }
    world.ok(&["explain", "r1", "r2"]);
    world.ok(&["compare", "r2", "r1"]);
}

/// Files that are refused, and what is said of each.
fn bad_files(world: &World) -> [(&'static str, &'static str); 6] {
    let text = std::fs::read_to_string(sample("bm-flash-raid5-4.txt")).unwrap();
    let half: String = text.split_inclusive('\n').take(30).collect();
    std::fs::write(world.path("half.txt"), half).unwrap();
    std::fs::write(world.path("foreign.txt"), "hello\nworld\n").unwrap();
    std::fs::write(world.path("empty.txt"), "").unwrap();
    std::fs::write(world.path("binary"), b"one\n\xff\xfe\n").unwrap();
    [
        ("half.txt", "half.txt:30: read as bm-flash: seen the end of the text, wanted "),
        ("foreign.txt", "foreign.txt:1: no tool known here begins like this: seen `hello`"),
        ("empty.txt", "empty.txt: nothing in it"),
        ("binary", "binary:2: this is not text"),
        ("missing", "cannot read missing"),
        ("home", "cannot read home"),
    ]
}

#[test]
fn one_bad_file_keeps_itself_out_and_those_after_it() {
    let world = World::new();
    let good = sample("pgbench-15.txt");
    for (file, said) in bad_files(&world) {
        let done = world.run(&["import", file, &good]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{file}: {done:?}");
        assert!(done.err.contains(said), "{file}: {}", done.err);
        assert!(done.err.contains("1 file after it was not read"), "{file}: {}", done.err);
    }
    assert!(!world.store().exists(), "nothing was stored");
    // Read as what it is not.
    let done = world.run(&["import", "--tool", "fio", &good]);
    assert!(done.err.contains("read as fio JSON"), "{}", done.err);
    assert!(!world.store().exists());
    // What stands before it is stored, and told.
    let other = sample("bonnie-1.03.csv");
    let done = world.run(&["import", &good, &other, "half.txt", &good, &good]);
    assert_eq!(done.code, 2, "{done:?}");
    assert_eq!(done.out.lines().count(), 2, "{done:?}");
    assert!(done.out.starts_with("r1  pgbench"), "{done:?}");
    let told = "r1 to r2 are stored, of the files before; 2 files after it were not read";
    assert!(done.err.contains(told), "{}", done.err);
    assert_eq!(world.ok(&["list"]).out.lines().count(), 3);
    let done = world.run(&["import", "--json", &good, "half.txt"]);
    let document: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done.code, document["runs"][0]["run"].as_str()), (2, Some("r3")));
}

#[test]
fn of_repeats_one_bad_file_keeps_all_out() {
    let world = World::new();
    let good = sample("bonnie-1.96-h800.txt");
    for (file, said) in bad_files(&world) {
        let done = world.run(&["import", "--together", &good, file]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{file}: {done:?}");
        assert!(done.err.contains(said), "{file}: {}", done.err);
    }
    assert!(!world.store().exists(), "nothing was stored");
}

#[test]
fn a_label_names_what_the_tool_did_not() {
    let world = World::new();
    world.ok(&["import", &sample("bonnie-1.96-wal.txt"), "--label", "/mnt/wal on H800"]);
    assert!(world.ok(&["list"]).out.contains("/mnt/wal on H800"));
    assert!(world.ok(&["show"]).out.contains("target     /mnt/wal on H800"));
}

#[test]
fn repeats_become_one_run() {
    let world = World::new();
    let (a, b) = (sample("bonnie-1.96-h800.txt"), sample("bonnie-1.96-wal.txt"));
    let done = world.ok(&["import", "--together", &a, &b]);
    assert!(done.out.starts_with("r1  bonnie 1.96: 4 cells, 8 visits from "), "{}", done.out);
    let done = world.run(&["import", "--together", &a, &sample("pgbench-15.txt")]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("no repeat of"), "{}", done.err);
    assert_eq!(world.ok(&["list"]).out.lines().count(), 2);
}

#[test]
fn set_ups_of_one_page_are_runs_of_their_own() {
    let world = World::new();
    let names = ["bonnie-1.96-sas6ir.txt", "bonnie-1.96-h800.txt", "bonnie-1.96-wal.txt"];
    let page = names.map(|name| std::fs::read_to_string(sample(name)).unwrap()).join("\n");
    std::fs::write(world.path("page.txt"), page).unwrap();
    let done = world.ok(&["import", "page.txt"]);
    assert_eq!(done.out.matches("4 cells, 4 visits from page.txt").count(), 3, "{}", done.out);
    assert!(done.err.contains("3 outputs that differ in their figures alone"), "{}", done.err);
    assert!(done.err.contains("--together"), "{}", done.err);
    // Single values: the ratio, and what it would take.
    let said = world.ok(&["compare", "r1", "r2"]).out;
    assert!(said.contains("No verdict from single values"), "{said}");
    assert!(said.contains("scatter by less than"), "{said}");
    let done = world.ok(&["import", "--together", "page.txt"]);
    assert!(done.out.contains("4 cells, 12 visits from page.txt"), "{}", done.out);
    assert!(!done.err.contains("figures alone"), "{}", done.err);
    // One mean in bonnie++'s table and in ours: the geometric one, as in intervals and comparisons.
    let both = world.ok(&["table", "last"]).out;
    assert!(both.contains("80288") && !both.contains("80889"), "{both}");
    assert!(both.contains("78.4"), "{both}");
    let one = world.ok(&["import", &sample("pgbench-15.txt")]);
    assert!(!one.err.contains("figures alone"), "{}", one.err);
}

#[test]
fn copies_are_no_repeats() {
    let world = World::new();
    let (a, b) = (sample("bonnie-1.96-h800.txt"), sample("bonnie-1.96-wal.txt"));
    let done = world.run(&["import", "--together", &a, &b, &a]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("is no repeat: it holds the same bytes as"), "{}", done.err);
    let done = world.ok(&["import", &a, &a]);
    assert!(done.err.contains("the two are one measurement"), "{}", done.err);
    let done = world.ok(&["import", &a, &b]);
    assert!(!done.err.contains("one measurement"), "{}", done.err);
}

#[test]
fn standard_input_is_read() {
    let world = World::new();
    let mut command = world.command(&["import", "-"]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let text = std::fs::read(sample("xdd.txt")).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let done = crate::world::Done::from(child.wait_with_output().unwrap());
    assert_eq!(done.out, "r1  xdd 7.0.0.rc: 1 cell, 3 visits from stdin\n");
    assert_eq!(world.run(&["import", "-", "-"]).code, 2);
}

#[test]
fn an_imported_run_has_the_histogram_that_its_tool_printed_or_none() {
    let world = World::new();
    world.ok(&["import", &sample("fio-3.33-randread.json+")]);
    let log = world.ok(&["export", "--format", "hlog"]).out;
    assert!(log.contains("Tag=0/randread/randread/read,"), "{log}");
    world.ok(&["import", &sample("pgbench-15.txt")]);
    let done = world.run(&["export", "--format", "hlog", "-o", "x.hlog"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("run r2 has no latency histogram"), "{}", done.err);
    assert_eq!(world.files(), ["home"]);
}

#[test]
fn commits_that_were_told_as_a_whole_have_their_time_on_the_page() {
    let world = World::new();
    world.ok(&["import", &sample("pg_test_fsync-15.txt")]);
    let page: serde_json::Value =
        serde_json::from_str(&world.ok(&["report", "last", "--json"]).out).unwrap();
    let cells = page["runs"][0]["cells"].as_array().unwrap();
    let of = |phase: &str| cells.iter().find(|cell| cell["phase"] == phase).unwrap();
    for (phase, mean) in [("two-fdatasync", 3_712_000.0), ("one-open-datasync", 169_000.0)] {
        let cell = of(phase);
        assert_eq!((&cell["op"], &cell["latency_ns"]["mean"]), (&"commit".into(), &mean.into()));
    }
}

#[test]
fn an_imported_run_has_cells_in_common_with_our_suite_of_its_method() {
    let world = World::new();
    // What our suite asks for in that place is what the tool counted: units of both are alike.
    let pairs = [
        ("bonnie", "bonnie-1.03.csv", 12),
        ("ioping", "ioping-1.3.txt", 1),
        ("iometer-database", "iometer.csv", 2),
        ("iozone", "iozone-auto.txt", 39),
        ("orion-simple", "orion-simple-summary.txt", 3),
        ("pg-test-fsync", "pg_test_fsync-15.txt", 14),
        ("sysbench-rndrw", "sysbench-0.4-fileio-rndrw.txt", 1),
        ("xdd", "xdd.txt", 1),
    ];
    for (suite, name, most) in pairs {
        world.ok(&["run", suite, "--quick", "--target", "null:"]);
        world.ok(&["import", &sample(name)]);
        let told = world.ok(&["compare", "last-1", "last", "--json"]).out;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let against = &told["against"][0];
        let common = against["cells"].as_array().unwrap().len();
        assert!(common > 0 && common <= most, "{suite}: {common} of {most}\n{against:#}");
    }
}

#[test]
fn standstills_that_nobody_looked_for_are_unknown_in_comparisons() {
    let world = World::new();
    for name in ["bm-flash-raid0-12.txt", "bm-flash-raid5-4.txt"] {
        world.ok(&["import", &sample(name)]);
    }
    let out = world.ok(&["compare", "r1", "r2", "--cells"]).out;
    assert!(out.contains("-/-") && !out.contains("0/0"), "{out}");
}
