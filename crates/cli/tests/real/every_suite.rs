//! Every suite that is built in: in its short form on plain files, and as a job file that fio takes.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::lab::{Lab, Said, tool};

/// The suites are dealt out to so many tests, which run side by side.
const HANDS: usize = 3;

fn suites(lab: &Lab) -> Vec<String> {
    let list: Value = serde_json::from_str(&lab.ok("suite list --json").out).unwrap();
    let names = list["suites"].as_array().unwrap().iter();
    let names: Vec<String> =
        names.map(|suite| suite["name"].as_str().unwrap().to_owned()).collect();
    assert!(names.len() > 40, "{names:?}");
    names
}

/// What asks a database is played on one.
const OF_DATABASES: [&str; 3] = ["tpcc", "tpcb", "oltp"];

fn play(hand: usize) {
    let lab = Lab::new(&format!("every-suite-{hand}"));
    for name in suites(&lab).iter().skip(hand).step_by(HANDS) {
        let begin = Instant::now();
        let place = lab.path(name);
        fs::create_dir(&place).unwrap();
        let kind = if OF_DATABASES.contains(&name.as_str()) { "sqlite:" } else { "" };
        let said = lab.ok(&format!("run {name} --quick --target {kind}{name} --json"));
        let seconds = begin.elapsed().as_secs_f64();
        for document in documents(&said) {
            crate::schema::check(&document);
            let cells = document["cells"].as_array().unwrap();
            assert!(!cells.is_empty(), "{name}");
            for cell in cells {
                let done = cell["visits"].as_array().unwrap();
                assert!(!done.is_empty(), "{name}: a cell without a visit: {cell}");
                let rate = cell["iops"].as_f64().unwrap_or(0.0);
                assert!(rate > 0.0, "{name}: a cell that did nothing: {cell}");
            }
        }
        let left: Vec<_> = fs::read_dir(&place).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{name} left {left:?}");
        eprintln!("{name}: {seconds:.1} s");
    }
}

/// A suite of suites prints a document for each of its runs.
fn documents(said: &Said) -> Vec<Value> {
    let printed: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said}"));
    match printed["runs"].as_array() {
        Some(runs) => runs.clone(),
        None => vec![printed],
    }
}

#[test]
fn the_first_hand_of_suites_runs_on_plain_files() {
    play(0);
}

#[test]
fn the_second_hand_of_suites_runs_on_plain_files() {
    play(1);
}

#[test]
fn the_third_hand_of_suites_runs_on_plain_files() {
    play(2);
}

#[test]
fn fio_takes_every_suite_as_a_job() {
    let lab = Lab::new("fio-jobs");
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("skipped: needs fio");
        return;
    }
    for name in suites(&lab) {
        let job = lab.ok(&format!("suite show {name} --quick --format fio --file f.dat"));
        let path = lab.path(&format!("{name}.fio"));
        fs::write(&path, &job.out).unwrap();
        tool("fio", &["--parse-only", &path.display().to_string()]);
        let is_job = jobs(&job.out) > 1;
        assert_eq!(is_job, !OF_DATABASES.contains(&name.as_str()), "{name}:\n{}", job.out);
    }
}

fn jobs(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with('[')).count()
}

/// What ends by amounts, in files of some MiB: in an empty place, and once more over what is left.
#[test]
fn fio_plays_small_suites_to_their_end() {
    let lab = Lab::new("fio-plays");
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("skipped: needs fio");
        return;
    }
    let mut played = Vec::new();
    for name in suites(&lab) {
        let job = lab.ok(&format!("suite show {name} --quick --format fio --file f.dat")).out;
        let sizes = job.lines().filter_map(|line| line.strip_prefix("size=")?.parse::<u64>().ok());
        let is_small = sizes.max().is_some_and(|size| size <= 32 << 20) && jobs(&job) <= 32;
        if !is_small || job.contains("time_based=1") {
            continue;
        }
        let place = lab.path(&name);
        fs::create_dir(&place).unwrap();
        // Neither every file system nor every kernel has these, and nothing of it is measured.
        let job = job.replace("direct=1", "direct=0").replace("=io_uring", "=psync");
        fs::write(place.join("t.fio"), job.replace("=libaio", "=psync")).unwrap();
        for _ in 0..2 {
            let done = Command::new("fio").arg("t.fio").current_dir(&place).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && said.trim().is_empty(), "{name}: {said}\n{job}");
        }
        fs::remove_dir_all(place).unwrap();
        played.push(name);
    }
    eprintln!("{}: {played:?}", played.len());
    assert!(played.iter().any(|name| name == "bonnie"), "{played:?}");
}
