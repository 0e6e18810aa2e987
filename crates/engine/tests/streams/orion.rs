//! Orion: small and large random requests in flight, alone and together.

use device::Op;

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

#[test]
fn writes_are_a_share_by_chance() {
    let all = record_suite("orion-oltp", &[SETS[0], SETS[1], "read_share=0.8", "queue_depth=20"]);
    let writes = all.iter().filter(|request| request.op == Op::Write).count();
    assert!((700..=900).contains(&writes), "a fifth of 4000: {writes}");
}
