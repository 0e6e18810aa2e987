//! Updates and copies: what their second request writes, and what becomes of it when the first
//! fails.

use std::sync::Arc;

use device::{Errno, Fault, FaultRule, Faulty, Op};
use suite::model::{Access, Data, Operation, Stream};
use units::{Bytes, Nanos};

use crate::help::*;

fn pairs(op: Operation, n: u64) -> engine::Visit {
    let mut s = Stream {
        access: Access::Sequential { shared: false },
        stop: for_operations(n),
        ..stream()
    };
    s.mix.classes = vec![class(op, 1.0, BLOCK)];
    s.region.length = Bytes::kib(512);
    s.copy_to = (op != Operation::Update).then_some(Bytes::kib(512));
    visit(vec![s])
}

/// Something else in each block.
fn written(v: &engine::Visit) -> Recording<device::Memory<device::VirtualClock>> {
    let mut fill = v.clone();
    fill.streams[0].mix.classes = vec![class(Operation::Write, 1.0, BLOCK)];
    fill.streams[0].stop = for_operations(128);
    fill.data = Data::Incompressible;
    let mut device = memory(&fill);
    device.contents = Some(Vec::new());
    play(&fill, &mut device);
    device.log.clear();
    device
}

#[test]
fn an_update_writes_what_it_read_but_for_one_byte() {
    for data in [Data::Incompressible, Data::Zero, Data::Pattern { byte: 3 }] {
        let v = engine::Visit { data, ..pairs(Operation::Update, 128) };
        let mut device = written(&v);
        let before = device.contents.replace(Vec::new()).unwrap();
        let played = play(&v, &mut device);
        assert_eq!((played.requests(Op::Read), played.requests(Op::Write)), (128, 128));
        let after = device.contents.take().unwrap();
        let mut places = Vec::new();
        for (before, after) in before.iter().zip(&after) {
            let differ: Vec<usize> = (0..before.len()).filter(|&i| before[i] != after[i]).collect();
            let [place] = differ.as_slice() else { panic!("{} bytes differ", differ.len()) };
            assert_eq!(after[*place], before[*place].wrapping_add(1));
            places.push(*place);
        }
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 110, "{} places of 128", places.len());
    }
}

#[test]
fn a_copy_writes_what_it_read() {
    let v = pairs(Operation::Copy, 128);
    let mut device = written(&v);
    let before = device.contents.replace(Vec::new()).unwrap();
    play(&v, &mut device);
    assert_eq!(device.contents.unwrap(), before);
}

#[test]
fn the_kernel_copies_what_is_there_and_bytes_count_once() {
    let v = pairs(Operation::CopyRange, 128);
    let mut device = written(&v);
    let before = device.contents.replace(Vec::new()).unwrap();
    let played = play(&v, &mut device);
    let record = played.op(Op::CopyRange).unwrap();
    assert_eq!((record.requests, record.bytes), (128, 128 * BLOCK));
    assert_eq!(played.total(), 128);
    let mut after = v.clone();
    after.streams[0].mix.classes = vec![class(Operation::Update, 1.0, BLOCK)];
    after.streams[0].region.start = Bytes::kib(512);
    play(&after, &mut device);
    let copied = device.contents.unwrap();
    assert_eq!(copied.len(), before.len());
    for (before, after) in before.iter().zip(&copied) {
        let differ = before.iter().zip(after).filter(|(a, b)| a != b).count();
        assert_eq!(differ, 1, "but for the byte of the update");
    }
}

#[test]
fn a_copy_that_comes_back_short_is_one_that_failed() {
    let v = pairs(Operation::CopyRange, 10);
    let rule = FaultRule::new(Fault::Short(Bytes::new(512))).on(Op::CopyRange).nth(3);
    let mut device = Recording::new(Faulty::new(memory(&v).inner, &[rule], 1).unwrap());
    let limits = engine::Limits { failures: 10, ..engine::Limits::default() };
    let played = play_with(&v, &mut device, limits, &mut ());
    assert_eq!(played.op(Op::CopyRange).unwrap().short, 1, "{:?}", played.warnings());
}

#[test]
fn a_read_that_fails_is_followed_by_no_write() {
    let mut v = pairs(Operation::Update, 10);
    v.streams[0].queue_depth = 2;
    let rule = FaultRule::new(Fault::Error(Errno::EIO)).on(Op::Read).nth(3);
    let mut device = Recording::new(Faulty::new(memory(&v).inner, &[rule], 1).unwrap());
    let limits = engine::Limits { failures: 10, ..engine::Limits::default() };
    let played = play_with(&v, &mut device, limits, &mut ());
    assert!(!played.result.failed);
    assert_eq!((device.count(Op::Read), device.count(Op::Write)), (10, 9));
    assert_eq!((played.requests(Op::Read), played.requests(Op::Write)), (9, 9));
}

#[test]
fn each_request_of_a_pair_has_its_own_latency() {
    let v = pairs(Operation::Update, 20);
    let mut device = model(&v);
    let played = play(&v, &mut device);
    for op in [Op::Read, Op::Write] {
        let record = played.op(op).unwrap();
        assert_eq!((record.latency_ns_min, record.latency_ns_max), (100_000, 100_000), "{op}");
    }
}

/// The last pairs were begun before the end.
#[test]
fn a_pair_begun_in_time_is_finished() {
    let mut v = pairs(Operation::Update, 1);
    v.streams[0].queue_depth = 4;
    v.streams[0].stop = for_time(Nanos::micros(50_050));
    let mut device = model(&v);
    let played = play(&v, &mut device);
    assert_eq!(device.count(Op::Read), device.count(Op::Write));
    assert_eq!(played.requests(Op::Write) as usize, device.count(Op::Write));
    assert!(played.codes().is_empty(), "{:?}", played.warnings());
}

#[test]
fn pairs_can_be_verified() {
    for op in [Operation::Update, Operation::Copy] {
        let mut v = pairs(op, 300);
        v.streams[0].queue_depth = 3;
        v.data = Data::SelfDescribing;
        let verifier = engine::verify::Verifier::new(7, false, Bytes::new(BLOCK), 1, Bytes::mib(1));
        v.verify = Some(Arc::new(verifier));
        let mut fill = v.clone();
        fill.streams[0].mix.classes = vec![class(Operation::Write, 1.0, BLOCK)];
        fill.streams[0].region.length = Bytes::mib(1);
        fill.streams[0].stop = for_operations(256);
        let mut device = memory(&fill);
        play(&fill, &mut device);
        assert_eq!(play(&v, &mut device).codes(), Vec::<&str>::new(), "{op:?}");
        let mut check = fill.clone();
        check.streams[0].mix.classes = vec![class(Operation::Read, 1.0, BLOCK)];
        assert_eq!(play(&check, &mut device).codes(), Vec::<&str>::new(), "{op:?}");
    }
}
