use crate::world::World;

fn with_a_run() -> World {
    let world = World::new();
    world.ok(&["run", "random-read", "--target", "null:", "--time", "50ms", "--classic"]);
    world
}

#[test]
fn csv_goes_to_standard_output() {
    let world = with_a_run();
    let done = world.ok(&["export", "--format", "csv"]);
    assert_eq!(done.err, "");
    assert_eq!(done.out.lines().count(), 2, "{}", done.out);
}

#[test]
fn parquet_and_histogram_logs_go_to_files_and_pipes() {
    let world = with_a_run();
    world.ok(&["export", "--format", "hlog", "-o", "run.hlog"]);
    let log = std::fs::read_to_string(world.path("run.hlog")).unwrap();
    assert!(log.starts_with("#[Histogram log format version 1.3]\n"), "{log}");
    assert!(log.contains("\nTag=0/"), "{log}");
    assert_eq!(world.ok(&["export", "--format", "hlog"]).out, log);
    world.ok(&["export", "--format", "parquet", "-o", "run.parquet"]);
    let bytes = std::fs::read(world.path("run.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let piped = world.command(&["export", "--format", "parquet"]).output().unwrap();
    assert!(piped.stdout == bytes, "the same run gives the same file");
    assert_eq!(world.files(), ["home", "run.hlog", "run.parquet"], "no temporary file is left");
}

#[test]
fn a_file_is_replaced_only_by_force() {
    let world = with_a_run();
    let words = ["export", "last", "--format", "json", "-o", "run.json"];
    world.ok(&words);
    let written = std::fs::read_to_string(world.path("run.json")).unwrap();
    assert_eq!(written, world.ok(&["show", "--json"]).out);
    assert_eq!(written, world.ok(&["table", "--json"]).out);
    std::fs::write(world.path("run.json"), "mine").unwrap();
    let done = world.run(&words);
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(std::fs::read(world.path("run.json")).unwrap(), b"mine");
    world.ok(&["export", "--format", "json", "-o", "run.json", "--force"]);
    assert_eq!(std::fs::read_to_string(world.path("run.json")).unwrap(), written);
    assert_eq!(world.files(), ["home", "run.json"], "no temporary file is left");
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let world = with_a_run();
    // A pipe stands for all devices: were it replaced after all, nothing is lost.
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, world.path("pipe"), kind, mode, 0).unwrap();
    for (place, code) in [("pipe", 3), ("home", 3), ("missing/run.csv", 1)] {
        let done = world.run(&["export", "--format", "csv", "--force", "-o", place]);
        assert_eq!(done.code, code, "{place}: {done:?}");
    }
    let pipe = std::fs::metadata(world.path("pipe")).unwrap();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&pipe.file_type()));
    assert!(world.ok(&["export", "--format", "csv", "-o", "-"]).out.contains("null:"));
}

#[test]
fn the_store_is_not_replaced_by_an_export_of_it() {
    let world = with_a_run();
    let store = world.ok(&["path"]).out.trim().to_owned();
    std::os::unix::fs::symlink(&store, world.path("link")).unwrap();
    for place in [store.clone(), format!("{store}-wal"), "link".to_owned()] {
        let done = world.run(&["export", "--format", "csv", "--force", "-o", &place]);
        assert_eq!(done.code, 3, "{place}: {done:?}");
    }
    assert!(std::fs::read(&store).unwrap().starts_with(b"SQLite format 3"));
}

/// Under a limit for files that ends the process with a signal in the middle of writing.
#[test]
fn an_export_that_is_killed_leaves_no_part_under_its_name() {
    let world = with_a_run();
    world.ok(&["export", "--format", "json", "-o", "run.json"]);
    let before = std::fs::read(world.path("run.json")).unwrap();
    for words in ["-o new.json", "-o run.json --force"] {
        let line = format!("ulimit -f 2; exec \"$0\" export --format json {words}");
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_plimsoll")]).current_dir(&world.dir);
        let done = command.env_clear().env("HOME", world.path("home")).output().unwrap();
        assert!(!done.status.success(), "{done:?}");
        assert!(!world.path("new.json").exists(), "{words}");
        assert_eq!(std::fs::read(world.path("run.json")).unwrap(), before, "{words}");
    }
}

#[test]
fn a_full_device_is_told() {
    let world = with_a_run();
    for format in ["csv", "json", "parquet", "hlog"] {
        let mut command = world.command(&["export", "--format", format]);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = crate::world::Done::from(command.stdout(full).output().unwrap());
        assert_eq!(done.code, 1, "{format}: {done:?}");
        assert!(done.err.contains("cannot write to standard output"), "{format}: {}", done.err);
        assert!(done.err.contains("no space left"), "{format}: {}", done.err);
    }
    // Nobody listens any more: what `| head -1` does is no failure.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = world.command(&["export", "--format", "csv"]);
    let done = crate::world::Done::from(command.stdout(writer).output().unwrap());
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
}

/// Python with `modules`, if there is one here.
#[expect(clippy::print_stdout, reason = "what is skipped says so")]
fn python(modules: &str) -> Option<String> {
    let wanted = std::env::var("PLIMSOLL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let line = format!("import {modules}");
    let tried = std::process::Command::new(&wanted).args(["-c", &line]).output();
    let has = tried.is_ok_and(|done| done.status.success());
    if !has {
        println!("skipped: {wanted} has no {modules}");
    }
    has.then_some(wanted)
}

fn read_by(python: &str, script: &str, world: &World) {
    let done = std::process::Command::new(python)
        .args(["-c", script])
        .current_dir(&world.dir)
        .output()
        .unwrap();
    let done = crate::world::Done::from(done);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
}

const ROWS_BY_PYARROW: &str = r#"
import csv
import pyarrow as pa, pyarrow.parquet as pq
table = pq.read_table("run.parquet")
rows = list(csv.DictReader(open("run.csv", newline="")))
assert table.num_rows == len(rows) > 0 and table.column_names == list(rows[0])
for name in table.column_names:
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        assert column.type.unit == "ns" and column.type.tz == "UTC"
        column = column.cast(pa.int64())
    for value, row in zip(column.to_pylist(), rows):
        told = row[name]
        same = (told == "" if value is None else told == str(value).lower()
                if isinstance(value, bool) else float(told) == value
                if isinstance(value, float) else told == str(value))
        assert same, (name, value, told)
"#;

const COUNTS_BY_HDRHISTOGRAM: &str = r#"
import csv
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
rows = list(csv.DictReader(open("run.csv", newline="")))
log = HistogramLogReader("run.hlog", HdrHistogram(1, 3600 * 10**12, 3))
for row in rows:
    found = log.get_next_interval_histogram()
    assert found.total_count == int(row["requests"]), (found.total_count, row)
    for name, value in (("min", found.get_min_value()), ("max", found.get_max_value()),
                        ("p50", found.get_value_at_percentile(50)),
                        ("p99", found.get_value_at_percentile(99))):
        told = row["latency_ns_" + name]
        assert told == "" or abs(value / float(told) - 1) < 0.01, (name, value, told)
assert log.get_next_interval_histogram() is None
"#;

#[test]
fn others_read_what_is_exported() {
    let world = with_a_run();
    let readers = [
        ("parquet", "pyarrow.parquet", ROWS_BY_PYARROW),
        ("hlog", "hdrh.log", COUNTS_BY_HDRHISTOGRAM),
    ];
    for (format, modules, script) in readers {
        let Some(python) = python(modules) else { continue };
        let file = format!("run.{format}");
        world.ok(&["export", "--format", format, "-o", &file]);
        world.ok(&["export", "--format", "csv", "-o", "run.csv", "--force"]);
        read_by(&python, script, &world);
    }
}

#[test]
fn another_store_is_not_replaced_either() {
    let world = with_a_run();
    let run = ["run", "random-read", "--target", "null:", "--time", "50ms", "--classic"];
    world.ok(&[&run[..], &["--store", "other.db"]].concat());
    let before = std::fs::read(world.path("other.db")).unwrap();
    let done = world.run(&["export", "--format", "csv", "--force", "-o", "other.db"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("is a store of results"), "{done:?}");
    assert_eq!(std::fs::read(world.path("other.db")).unwrap(), before);
}

#[test]
fn a_title_adds_no_option_to_a_fio_job() {
    let world = World::new();
    let text = world.ok(&["suite", "show", "random-read", "--toml"]).out;
    let title = text.lines().find(|line| line.starts_with("title = ")).unwrap();
    let evil = "title = \"x\\n[global]\\nexec_prerun=touch owned\"";
    std::fs::write(world.path("evil.toml"), text.replace(title, evil)).unwrap();
    let show = |file| world.run(&["suite", "show", "evil.toml", "--format", "fio", "--file", file]);
    let job = show("a").out;
    assert!(!job.lines().any(|line| line.trim_start().starts_with("exec")), "{job}");
    assert_eq!(job.lines().filter(|line| *line == "[global]").count(), 1, "{job}");
    // Nor does a name, and none is another one there.
    for file in ["a\nexec_prerun=touch owned", "a;b", "a${HOME}"] {
        let done = show(file);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
        assert!(done.err.contains("error: a job file of fio cannot name the file"), "{done:?}");
        assert!(done.err.contains("hint: name a symbolic link to it"), "{done:?}");
    }
}
