//! When the load of a visit is over, and what its rates are of.

use device::model::FreezeSpec;
use device::{Device, Fault, FaultRule, Faulty};
use engine::{Limits, VisitResult};
use suite::model::{Arrivals, Pacing, Stop, Stream};
use units::Nanos;

use crate::help::{for_operations, for_time, model, model_with, play, play_with, stream, visit};

const TIME: Nanos = Nanos::secs(2);
/// What one request does in a second.
const EACH: f64 = 10_000.0;

/// So many in flight for two seconds, after half a second that does not count.
fn of_depth(queue_depth: u32) -> Stream {
    let stop = Stop { ramp: Nanos::millis(500), ..for_time(TIME) };
    Stream { queue_depth, stop, ..stream() }
}

/// The first request from that time on comes back so much later.
fn with<D: Device>(inner: D, fault: Fault, since: Nanos) -> Faulty<D> {
    Faulty::new(inner, &[FaultRule::new(fault).since(since).nth(1)], 9).unwrap()
}

/// Requests of a stream in a second of its load.
fn rate(result: &VisitResult, stream: usize) -> f64 {
    let requests: u64 = result.streams[stream].ops.iter().map(|op| op.requests_rated()).sum();
    requests as f64 / result.load.unwrap().as_secs_f64()
}

#[track_caller]
fn assert_near(found: f64, wanted: f64) {
    assert!((found / wanted - 1.0).abs() < 0.003, "{found} for {wanted}");
}

#[test]
fn a_late_request_is_in_no_rate_while_others_could_go_on() {
    let v = visit(vec![of_depth(32)]);
    let late = Fault::Late(Nanos::secs(3));
    let played = play(&v, &mut with(model(&v), late, Nanos::millis(2_400))).result;
    let load = played.load.unwrap();
    assert!(load >= TIME && load < TIME + Nanos::millis(1), "{load}");
    assert!(played.elapsed > Nanos::millis(4_800), "{}", played.elapsed);
    let op = &played.streams[0].ops[0];
    assert_eq!((op.late_requests, op.late_bytes), (1, 4096));
    assert!(op.latency_ns_max > 3_000_000_000 && op.slow.len() == 1, "it is in all the rest");
    assert_eq!(op.latency.count(), op.requests);
    assert_near(rate(&played, 0), 32.0 * EACH);
}

#[test]
fn a_device_that_stands_still_at_the_end_is_rated_by_all_of_that() {
    // One in flight is all there is to stand still.
    for depth in [1, 8] {
        let v = visit(vec![of_depth(depth)]);
        let freeze = FreezeSpec { start: Nanos::millis(1_500), length: Nanos::secs(3) };
        let mut device = model_with(&v, Nanos::micros(100), |spec| spec.freezes = vec![freeze]);
        let played = play(&v, &mut device).result;
        assert_eq!(played.load, Some(played.elapsed));
        assert!(played.elapsed > Nanos::millis(3_999), "{}", played.elapsed);
        assert_near(rate(&played, 0), f64::from(depth) * EACH / 4.0);
        let v = visit(vec![of_depth(depth)]);
        let late = Fault::Late(Nanos::secs(3));
        let played = play(&v, &mut with(model(&v), late, Nanos::millis(2_400))).result;
        assert_eq!(played.load == Some(played.elapsed), depth == 1);
    }
}

#[test]
fn a_count_ends_with_its_last_request() {
    let stop = Stop { ramp: Nanos::millis(500), ..for_operations(1_000) };
    let v = visit(vec![Stream { stop, ..of_depth(4) }]);
    let late = Fault::Late(Nanos::secs(3));
    let played = play(&v, &mut with(model(&v), late, Nanos::millis(520))).result;
    assert_eq!(played.load, None);
    assert_eq!(played.streams[0].ops[0].late_requests, 0);
    // Beside it, a stream whose time ends earlier is of the same load.
    let short = Stop { ramp: Nanos::millis(500), ..for_time(Nanos::secs(1)) };
    let counted = Stop { ramp: Nanos::millis(500), ..for_operations(80_000) };
    let v = visit(vec![
        Stream { stop: short, ..of_depth(2) },
        Stream { stop: counted, name: "counted".to_owned(), ..of_depth(4) },
    ]);
    let played = play(&v, &mut model(&v)).result;
    assert_eq!(played.load, Some(played.elapsed));
    assert_eq!(played.streams.iter().map(|s| s.ops[0].late_requests).sum::<u64>(), 0);
    assert_near(rate(&played, 1), 4.0 * EACH);
}

#[test]
fn the_load_of_several_streams_is_over_when_one_of_them_could_go_on() {
    let alone = Stream { name: "alone".to_owned(), ..of_depth(1) };
    for streams in [vec![of_depth(4), alone.clone()], vec![alone, of_depth(4)]] {
        let place = streams.iter().position(|stream| stream.queue_depth == 4).unwrap();
        let v = visit(streams);
        let freeze = Fault::Late(Nanos::secs(3));
        let played = play(&v, &mut with(model(&v), freeze, Nanos::millis(2_400))).result;
        let load = played.load.unwrap();
        assert!(load < TIME + Nanos::millis(1), "{load}");
        assert!(rate(&played, place) > 3.9 * EACH, "{}", rate(&played, place));
    }
}

#[test]
fn what_is_offered_at_planned_times_is_rated_by_the_time_planned() {
    // Ten a second: the last is due 100 ms before the end.
    for late in [None, Some(Fault::Late(Nanos::secs(3)))] {
        let pacing = Pacing::Open { rate: 10.0, arrivals: Arrivals::Fixed };
        let v = visit(vec![Stream { pacing, stop: for_time(TIME), ..of_depth(4) }]);
        let played = match late {
            None => play(&v, &mut model(&v)).result,
            Some(late) => play(&v, &mut with(model(&v), late, Nanos::millis(1_850))).result,
        };
        assert_eq!(played.load, Some(TIME));
        let lost = f64::from(u8::from(late.is_some()));
        assert_near(rate(&played, 0), (20.0 - lost) / 2.0);
    }
}

#[test]
fn what_never_comes_back_is_in_no_rate_while_others_could_go_on() {
    let limits = Limits { hang: Nanos::secs(7), failures: 0 };
    let v = visit(vec![of_depth(4)]);
    let mut device = with(model(&v), Fault::Lost, Nanos::secs(1));
    let played = play_with(&v, &mut device, limits, &mut ()).result;
    assert!(played.hanging && played.elapsed > Nanos::secs(8));
    assert!(played.load.unwrap() < TIME + Nanos::millis(1));
    assert_near(rate(&played, 0), 3.25 * EACH);
    // With nothing else in flight it is all there was.
    let v = visit(vec![of_depth(1)]);
    let mut device = with(model(&v), Fault::Lost, Nanos::secs(1));
    let played = play_with(&v, &mut device, limits, &mut ()).result;
    assert_eq!(played.load, Some(played.elapsed));
}

/// What it takes to play goes with the requests in flight, not with them times the workers that they
/// are of. A second of a thousand workers with a thousand requests each would take half an hour.
#[test]
fn many_workers_of_some_depth_take_about_as_long_as_few_of_great_depth() {
    let time_of = |threads: u32, queue_depth: u32| {
        let v = visit(vec![Stream { threads, queue_depth, stop: for_time(TIME), ..stream() }]);
        let shared = engine::Shared::new(&v.streams);
        let mut drive = engine::Drive::new(&v, &v.workers(), &shared, Limits::default()).unwrap();
        let mut device = model_with(&v, Nanos::millis(200), |_| {});
        let begin = device.now();
        let clock = std::time::Instant::now();
        drive.run(&mut device, begin, &mut ()).unwrap();
        clock.elapsed().as_secs_f64()
    };
    let least = |threads, depth| (0..3).map(|_| time_of(threads, depth)).fold(f64::MAX, f64::min);
    let (few, many) = (least(8, 4096), least(16_384, 2));
    assert!(many < 16.0 * few, "{many} s for {few} s");
}
