//! Visits that go on until enough completed.

use suite::model::{Extend, Stop, Stream};
use units::Nanos;

use crate::help::{for_time, model_with, play, stream, visit};

/// Streams of 1 s after a ramp, stretched to `operations` or `most` seconds.
fn stretched(threads: u32, operations: u64, most: u64) -> Stream {
    let extend = Some(Extend { operations, time_max: Nanos::secs(most) });
    let stop = Stop { ramp: Nanos::millis(500), extend, ..for_time(Nanos::secs(1)) };
    Stream { threads, stop, ..stream() }
}

fn requests(played: &engine::VisitResult) -> u64 {
    played.streams.iter().flat_map(|s| &s.ops).map(|op| op.requests).sum()
}

#[test]
fn a_fast_visit_is_not_stretched() {
    let v = visit(vec![stretched(1, 400, 10)]);
    let played = play(&v, &mut model_with(&v, Nanos::micros(1000), |_| {})).result;
    assert!((995..=1001).contains(&requests(&played)), "{}", requests(&played));
    assert!(played.elapsed <= Nanos::millis(1002), "{}", played.elapsed);
}

#[test]
fn a_slow_visit_goes_on_until_enough_completed() {
    // 100 a second: 4 s of measuring, and the eighth.
    let v = visit(vec![stretched(1, 400, 10)]);
    let played = play(&v, &mut model_with(&v, Nanos::millis(10), |_| {})).result;
    let seen = requests(&played);
    assert!((400..=460).contains(&seen), "{seen}");
    assert!(played.elapsed >= Nanos::secs(4) && played.elapsed <= Nanos::millis(4_600));
}

#[test]
fn it_goes_on_no_longer_than_it_may() {
    let v = visit(vec![stretched(1, 400, 3)]);
    let played = play(&v, &mut model_with(&v, Nanos::millis(100), |_| {})).result;
    assert!((28..=31).contains(&requests(&played)), "{}", requests(&played));
    assert!(played.elapsed <= Nanos::millis(3_100), "{}", played.elapsed);
}

#[test]
fn all_workers_of_all_streams_count_and_end_together() {
    // 10 ms a request with four in flight at 100 a second in all: 25 each.
    let mut other = stretched(2, 400, 10);
    other.name = "other".to_owned();
    let v = visit(vec![stretched(2, 400, 10), other]);
    let played = play(&v, &mut model_with(&v, Nanos::millis(40), |_| {})).result;
    let seen = requests(&played);
    assert!((400..=520).contains(&seen), "{seen}");
    let each: Vec<u64> =
        played.streams.iter().flat_map(|s| &s.workers).map(|w| w.requests).collect();
    let (low, high) = (each.iter().min().unwrap(), each.iter().max().unwrap());
    assert!(high - low <= 2, "one went on longer: {each:?}");
}

#[test]
fn nothing_at_all_is_stretched_to_the_end() {
    let v = visit(vec![stretched(1, 400, 2)]);
    let played = play(&v, &mut model_with(&v, Nanos::secs(30), |_| {})).result;
    assert!(requests(&played) <= 1);
}
