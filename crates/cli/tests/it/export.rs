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
    std::fs::write(world.path("run.json"), "mine").unwrap();
    let done = world.run(&words);
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(std::fs::read(world.path("run.json")).unwrap(), b"mine");
    std::os::unix::fs::symlink("run.json", world.path("link.json")).unwrap();
    world.ok(&["export", "--format", "json", "-o", "link.json", "--force"]);
    assert_eq!(std::fs::read_to_string(world.path("run.json")).unwrap(), written);
    assert_eq!(world.files(), ["home", "link.json", "run.json"], "no temporary file is left");
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
