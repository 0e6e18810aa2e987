use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use store::Store;

use crate::{Numbers, sample, scratch, side, times};

const STORE: &str = "PLIMSOLL_TEST_STORE";
const VISITS: &str = "PLIMSOLL_TEST_VISITS";

/// Not a test by itself: the process that stores, and is killed.
#[test]
#[ignore = "run as a child of other tests"]
fn child_that_adds_visits() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let mut store = Store::open(path.as_ref()).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    let _claim = store.claim(&id).unwrap();
    for order in 0..times(VISITS, usize::MAX) as u32 {
        store.add_visit(&id, &sample::visit(order)).unwrap();
        println!("\nstored {order}");
    }
}

/// The arguments with which this program is that process, and how many visits it makes.
pub fn child(command: &mut Command, store: &Path, visits: usize) {
    command.args(["--exact", "killed::child_that_adds_visits", "--ignored", "--nocapture"]);
    command.env(STORE, store).env(VISITS, visits.to_string()).stdout(Stdio::piped());
}

/// `PLIMSOLL_KILLS=1000` for the long form.
#[test]
fn a_killed_process_loses_no_finished_visit() {
    let path = scratch("a_killed_process");
    let (mut moments, mut visits, mut half_written) = (Numbers(1), 0, 0);
    let kills = times("PLIMSOLL_KILLS", 30);
    for round in 0..kills {
        let mut command = Command::new(std::env::current_exe().unwrap());
        child(&mut command, &path, usize::MAX);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "stored 0"));
        std::thread::sleep(Duration::from_micros(moments.below(30_000) as u64));
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        // What it went on to report until it died.
        let reported = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("stored ")?.parse::<usize>().ok())
            .last()
            .unwrap_or(0);
        half_written += usize::from(side(&path, "-journal").exists());
        let summary = Store::open_read_only(&path).unwrap().list().unwrap().pop().unwrap();
        assert!(!summary.live, "the kernel let go of the claim");
        let mut store = Store::open(&path).unwrap();
        let run = store.load(&summary.id).unwrap();
        // At most one more was on the disk than it came to say.
        let stored = run.visits.len();
        assert!((reported + 1..=reported + 2).contains(&stored), "{round}: {reported} {stored}");
        for (order, visit) in (0..).zip(&run.visits) {
            assert!(*visit == sample::visit(order), "{round}: visit {order} differs");
        }
        visits += stored;
        // So that the store does not grow for ever.
        store.remove(&[summary.id]).unwrap();
        drop(store);
        let raw = rusqlite::Connection::open(&path).unwrap();
        let whole: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok", "{round}");
    }
    println!("{kills} kills, {half_written} in a commit; {visits} visits, none lost");
    assert!(half_written > 0, "some of the kills are in a commit");
}
