//! A run from its order to the store.

use record::{RunState, VisitEnd};

use crate::help::{Place, go, order};

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
