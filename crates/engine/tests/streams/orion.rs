//! Orion: small and large random requests in flight, alone and together.

use device::Op;
use suite::model::Cell;

use crate::support::*;

const SETS: [&str; 2] = ["time=20ms", "file_size=256MiB"];

/// The loads (small, large) of each cell; what is in flight is so, and where it belongs.
fn points(name: &str) -> Vec<(u32, u32)> {
    let cells = play_suite(name, &SETS);
    let mut points = Vec::new();
    for cell in &cells {
        let mut point = (0, 0);
        for (stream, index) in cell.streams.iter().zip(0u32..) {
            let own: Vec<_> = cell.requests.iter().filter(|r| r.stream == index).collect();
            let size = own[0].length;
            match size {
                8192 => point.0 = stream.queue_depth,
                1_048_576 => point.1 = stream.queue_depth,
                other => panic!("{other}"),
            }
            // 20 ms of 100 us, kept in flight from begin to end.
            assert_eq!(own.len(), 200 * stream.queue_depth as usize);
            for request in own {
                assert_eq!((request.op, request.length), (Op::Read, size));
                assert_eq!(request.offset % u64::from(size), 0);
                assert!(request.offset + u64::from(size) <= 256 << 20);
            }
        }
        points.push(point);
    }
    points
}

#[test]
fn simple_is_small_and_then_large() {
    let small = (1..=5).map(|load| (load, 0));
    assert_eq!(points("orion-simple"), small.chain([(0, 1), (0, 2)]).collect::<Vec<_>>());
}

#[test]
fn oltp_is_small_and_dss_is_large() {
    assert_eq!(points("orion-oltp"), (1..=20).map(|load| (load, 0)).collect::<Vec<_>>());
    assert_eq!(points("orion-dss"), (1..=15).map(|load| (0, load)).collect::<Vec<_>>());
}

#[test]
fn normal_is_simple_and_every_pair() {
    let alone = (1..=5).map(|load| (load, 0)).chain([(0, 1), (0, 2)]);
    let pairs = (1..=2).flat_map(|large| (1..=5).map(move |small| (small, large)));
    assert_eq!(points("orion-normal"), alone.chain(pairs).collect::<Vec<_>>());
}

/// 256 MiB in 1 MiB of two files in turn.
const STRIPED: [&str; 4] = ["time=20ms", "file_size=128MiB", "file_count=2", "before.bytes=8MiB"];

#[test]
fn advanced_is_a_matrix_of_small_requests_and_of_streams_in_order() {
    let mut seen = Vec::new();
    for cell in play_suite("orion-advanced", &STRIPED) {
        let mut point = (0, 0);
        for (stream, index) in cell.streams.iter().zip(0u32..) {
            let own: Vec<_> = cell.requests.iter().filter(|r| r.stream == index).collect();
            if own[0].length == 8192 {
                point.0 = stream.queue_depth;
                continue;
            }
            point.1 = stream.threads;
            assert_eq!((stream.queue_depth, own.len() as u32), (4, 200 * 4 * stream.threads));
            for worker in 0..stream.threads {
                let own = own.iter().filter(|request| request.worker == worker);
                let first = u64::from(worker) * 256 / u64::from(stream.threads);
                for (request, n) in own.zip(first..) {
                    let stripe = n % 256;
                    let place = (u64::from(request.file), request.offset >> 20);
                    assert_eq!(
                        place,
                        (stripe % 2, stripe / 2),
                        "every stripe of each file in turn"
                    );
                }
            }
        }
        seen.push(point);
    }
    let small = (1..=5).map(|load| (load, 0));
    let alone = small.chain([(0, 1), (0, 2)]);
    let pairs = (1..=2).flat_map(|large| (1..=5).map(move |small| (small, large)));
    assert_eq!(seen, alone.chain(pairs).collect::<Vec<_>>());
}

#[test]
fn random_requests_fill_the_caches_before_every_point_with_streams() {
    let text = suite::find_builtin("orion-advanced").unwrap().text;
    let suite = checked(text, &STRIPED);
    let fills = |phase: usize| suite.phases[phase].cells.iter().map(|cell| cell.before.clone());
    assert!(fills(0).all(|fill| fill.is_none()), "small ones do not need it");
    for fill in fills(1).chain(fills(2)) {
        let fill = fill.unwrap();
        assert_eq!((fill.threads, fill.queue_depth), (1, 32));
        let cell = Cell { coordinates: Vec::new(), streams: vec![fill], before: None };
        let played = play_cell(&suite, &cell, 1);
        assert_eq!(played.len(), 1024, "8 MiB of 8 KiB");
        assert!(played.iter().all(|r| (r.op, r.length) == (Op::Read, 8192)));
        assert!(played.windows(2).any(|pair| pair[1].offset < pair[0].offset), "at random");
    }
}

#[test]
fn writes_are_a_share_by_chance() {
    let all = record_suite("orion-oltp", &[SETS[0], SETS[1], "read_share=0.8", "queue_depth=20"]);
    let writes = all.iter().filter(|request| request.op == Op::Write).count();
    assert!((700..=900).contains(&writes), "a fifth of 4000: {writes}");
}
