use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use store::Store;

use crate::{sample, scratch};

const STORE: &str = "PLIMSOLL_TEST_STORE";

/// Not a test by itself: the process that `a_killed_process_loses_no_finished_visit` kills.
#[test]
#[ignore = "run as a child of the next test"]
fn child_that_adds_visits() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let mut store = Store::open(path.as_ref()).unwrap();
    let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
    let _claim = store.claim(&id).unwrap();
    for order in 0.. {
        store.add_visit(&id, &sample::visit(order)).unwrap();
        println!("\nstored {order}");
    }
}

#[test]
fn a_killed_process_loses_no_finished_visit() {
    let path = scratch("a_killed_process");
    for (round, visits) in [(0, 0), (1, 3), (2, 11)] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::child_that_adds_visits", "--ignored", "--nocapture"])
            .env(STORE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let last = format!("stored {visits}");
        assert!(lines.any(|line| line.unwrap() == last));
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        // What it went on to report until it died.
        let reported = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("stored ")?.parse::<usize>().ok())
            .last()
            .unwrap_or(visits);
        let store = Store::open(&path).unwrap();
        let summary = store.list().unwrap().pop().unwrap();
        assert!(!summary.live, "the kernel let go of the claim");
        drop(store.claim(&summary.id).unwrap());
        let run = store.load(&summary.id).unwrap();
        // At most one more was on the disk than it came to say.
        let stored = run.visits.len();
        assert!(
            (reported + 1..=reported + 2).contains(&stored),
            "round {round}: {reported} {stored}"
        );
        for (order, visit) in (0..).zip(&run.visits) {
            assert!(*visit == sample::visit(order), "round {round}: visit {order} differs");
        }
    }
}
