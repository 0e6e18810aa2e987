//! A run from its order to the store.

use record::{RunState, VisitEnd};
use runner::{Event, Interrupt};

use crate::help::{Place, go, go_with, order};

#[test]
fn one_cell_on_the_null_twin() {
    let place = Place::new("null");
    let order = order(
        &place,
        "random-read",
        "null:",
        &["queue_depth=32", "operations=100000", "block_size=4K"],
    );
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let visit = &run.visits[0];
    assert_eq!(visit.end, VisitEnd::Complete);
    assert_eq!(visit.streams[0].ops[0].requests, 100_000);
    assert_eq!(visit.streams[0].ops[0].bytes, 100_000 * 4096);
    assert_eq!(visit.streams[0].ops[0].latency.count(), 100_000);
}

#[test]
fn bm_flash_on_a_real_file() {
    let place = Place::new("bm-flash");
    let file = place.join("test.dat");
    let order = order(
        &place,
        "bm-flash",
        file.to_str().unwrap(),
        &["file_size=64MiB", "time=20ms", "block_size=4K,64K,4M"],
    );
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!(outcome.state, RunState::Complete, "{:?}", run.header.warnings);
    assert_eq!(run.visits.len(), 1 + 2 * 3 * 3);
    let fill = &run.visits[0];
    assert_eq!(fill.streams[0].ops[0].bytes, 64 << 20);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 64 << 20);
    for visit in &run.visits {
        assert_eq!(visit.end, VisitEnd::Complete, "{:?}", visit.warnings);
    }
    println!("{}", report::table::grid(&run));
}

#[test]
fn ticks_count_what_the_tables_count() {
    let place = Place::new("ticks");
    let sets = ["operation=write", "sync=fdatasync", "file_size=64MiB", "time=500ms"];
    let order = order(&place, "random-read", "null:", &sets);
    let mut last = (0, 0);
    let watch = &mut |event: Event<'_>| match event {
        Event::VisitBegins { .. } => last = (0, 0),
        Event::Tick(tick) => last = (tick.operations, tick.bytes.get()),
        _ => {}
    };
    let (_, run) = go_with(&place, &order, &Interrupt::default(), watch).unwrap();
    let stream = &run.visits.last().unwrap().streams[0];
    let writes = stream.ops.iter().find(|op| op.op == "write").unwrap();
    // The last writes end without theirs.
    let flushes = stream.ops.iter().find(|op| op.op == "fdatasync").unwrap();
    assert!(2 * flushes.requests > writes.requests, "{} {}", flushes.requests, writes.requests);
    let (operations, bytes) = last;
    assert!(operations > 0, "half a second is longer than a tick");
    // With its flushes they would be twice as many, and half as large.
    assert!(operations <= writes.requests + stream.ramp_requests, "{operations}");
    assert_eq!(bytes, operations * 4096);
}
