//! The same seed replays the same stream.

use device::Request;
use engine::{Drive, Limits, Shared, Visit};
use suite::model::{Access, Arrivals, Operation, Pacing, Stream};
use units::{Instant, Nanos};

use crate::help::*;

fn busy() -> Visit {
    let mut reads = Stream { threads: 3, queue_depth: 4, stop: for_operations(2000), ..stream() };
    ops(&mut reads, &[(Operation::Read, 0.7), (Operation::Write, 0.3)]);
    let zipf = Stream {
        name: "z".into(),
        access: Access::Zipf { theta: 0.9 },
        pacing: Pacing::Open { rate: 5000.0, arrivals: Arrivals::Poisson },
        queue_depth: 2,
        stop: for_time(Nanos::millis(200)),
        ..stream()
    };
    visit(vec![reads, zipf])
}

#[test]
fn the_same_seed_gives_the_same_log_and_the_same_results() {
    let v = busy();
    let run = |v: &Visit| {
        let mut device = model_with(v, Nanos::micros(80), |spec| spec.noise.jitter = 0.5);
        let played = play(v, &mut device);
        (device.log, format!("{:?}", played.result))
    };
    let (first, second) = (run(&v), run(&v));
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
    let other = run(&Visit { seed: 12, ..v });
    assert_ne!(first.0, other.0);
}

#[test]
fn what_is_written_replays_too() {
    let mut s = stream();
    ops(&mut s, &[(Operation::Write, 1.0)]);
    let v = visit(vec![s]);
    let contents = |v: &Visit| {
        let mut device = memory(v);
        device.contents = Some(Vec::new());
        play(v, &mut device);
        device.contents.unwrap()
    };
    let first = contents(&v);
    assert_eq!(first, contents(&v));
    assert_ne!(first, contents(&Visit { seed: 12, ..v }));
}

/// What each worker asks for: operation, file, place.
fn by_worker(log: &[Request], depth: u32, workers: u32) -> Vec<Vec<String>> {
    let of = |w: u32| log.iter().filter(move |r| r.slot.0 / depth == w);
    let text = |r: &Request| format!("{} {:?} {:?} {}", r.op, r.file, r.offset, r.length);
    (0..workers).map(|w| of(w).map(text).collect()).collect()
}

#[test]
fn a_worker_asks_for_the_same_in_a_drive_of_its_own() {
    for access in [
        Access::Uniform,
        Access::Zipf { theta: 0.8 },
        Access::Permutation,
        Access::Sequential { shared: false },
        Access::Mixed { random_share: 0.4 },
    ] {
        let mut s = Stream { access, threads: 4, queue_depth: 2, ..stream() };
        ops(&mut s, &[(Operation::Read, 0.5), (Operation::Write, 0.5)]);
        s.stop = for_time(Nanos::millis(20));
        let v = visit(vec![s]);
        let mut device = model(&v);
        play(&v, &mut device);
        let together = by_worker(&device.requests(), 2, 4);
        let shared = Shared::new(&v.streams);
        for id in v.workers() {
            let mut drive = Drive::new(&v, &[id], &shared, Limits::default()).unwrap();
            assert_eq!(drive.slots(), 2);
            let mut device = model(&v);
            drive.run(&mut device, Instant::ZERO, &mut ()).unwrap();
            let alone = by_worker(&device.requests(), 2, 1);
            assert_eq!(alone[0], together[id.worker as usize], "worker {}", id.worker);
        }
    }
}
