//! Another process that reads for a long time: what it keeps from being stored is stored later.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use store::{Change, Store, StoreError};

use crate::{add, sample, scratch};

const STORE: &str = "PLIMSOLL_TEST_DELAYED_STORE";

/// Not a test by itself: a program of others that reads.
#[test]
#[ignore = "run as a child of the next test"]
fn child_that_reads() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute_batch("BEGIN; SELECT * FROM run").unwrap();
    println!("\nread");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn reader(path: &Path) -> (Child, ChildStdin) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "delayed::child_that_reads", "--ignored", "--nocapture"])
        .env(STORE, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "read"));
    let input = child.stdin.take().unwrap();
    (child, input)
}

#[test]
fn what_a_stopped_reader_delays_is_stored_when_it_goes_on() {
    let path = scratch("a_stopped_reader");
    let mut store = Store::open(&path).unwrap();
    add(&mut store);
    let (mut child, mut input) = reader(&path);
    let signal = |name: &str| {
        let id = child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    signal("-STOP");
    let mut late = vec![Change::Visit(Box::new(sample::visit(1)))];
    for order in 2..4 {
        let refused = store.apply("r1", &late).unwrap_err();
        assert!(matches!(refused, StoreError::Locked { .. }), "{refused:?}");
        // Others read as before, and see nothing of it.
        assert_eq!(Store::open_read_only(&path).unwrap().load("r1").unwrap().visits.len(), 1);
        late.push(Change::Visit(Box::new(sample::visit(order))));
    }
    signal("-CONT");
    input.write_all(b"\n").unwrap();
    child.wait().unwrap();
    store.apply("r1", &late).unwrap();
    let visits = store.load("r1").unwrap().visits;
    assert!(visits.len() == 4 && (0..).zip(&visits).all(|(n, visit)| *visit == sample::visit(n)));
}
