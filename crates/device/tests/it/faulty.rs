use device::model::{Law, ModelSpec};
use device::{
    Completion, Device, DeviceError, Errno, Fault, FaultRange, FaultRule, Faulty, FileIndex,
    Memory, MemoryShape, Model, Op, Request, Slot, VanishSeen, VirtualClock,
};
use proptest::prelude::*;
use units::{ByteOffset, Bytes, Instant, Nanos};

use crate::drive::{Event, read, request, run, write};

const BLOCK: u32 = 4096;

fn memory() -> Memory<VirtualClock> {
    Memory::new(
        VirtualClock::default(),
        MemoryShape {
            files: 2,
            file_size: Bytes::mib(4),
            slots: 4,
            buffer: Bytes::kib(64),
            tick: Nanos::new(100),
        },
    )
}

fn law() -> ModelSpec {
    let law = Law {
        iops: None,
        bandwidth: None,
        latency: Nanos::micros(100),
        request_bandwidth: None,
        sharpness: 5.0,
    };
    ModelSpec::from_law(law, None)
}

fn model() -> Model {
    Model::new(&law(), 8, 1).unwrap()
}

fn on_model(rules: &[FaultRule]) -> Faulty<Model> {
    Faulty::new(model(), rules, 3).unwrap()
}

fn on_memory(rules: &[FaultRule]) -> Faulty<Memory<VirtualClock>> {
    Faulty::new(memory(), rules, 3).unwrap()
}

/// Numbers, from 1, of the requests that did not complete in full.
fn hurt(events: &[Event]) -> Vec<(usize, Result<u32, Errno>)> {
    events
        .iter()
        .map(|event| event.completion.result())
        .zip(1..)
        .filter(|(result, _)| *result != Ok(BLOCK))
        .map(|(result, number)| (number, result))
        .collect()
}

fn one<D: Device>(device: &mut D, request: Request) -> Result<u32, Errno> {
    device.submit(request).unwrap();
    let mut done = Vec::with_capacity(1);
    device.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!((done.len(), done[0].slot), (1, request.slot));
    done[0].result()
}

#[test]
fn error_at_the_nth_of_one_operation() {
    let mut device = on_model(&[FaultRule::new(Fault::Error(Errno::EIO)).on(Op::Read).nth(3)]);
    // Reads are the odd ones.
    let events = run(&mut device, 1, 20, |n, slot| {
        if n % 2 == 0 { read(0, BLOCK, slot) } else { write(0, BLOCK, slot) }
    });
    assert_eq!(hurt(&events), [(5, Err(Errno::EIO))]);
    assert_eq!(device.fired(), [1]);
    assert_eq!(device.inner().counters().of(Op::Read).requests, 9, "it never got there");
    assert_eq!(events[4].latency(), Nanos::micros(50), "failing takes time too");
}

#[test]
fn error_in_a_range_and_nowhere_else() {
    let range = FaultRange { file: Some(1), start: Bytes::kib(64), length: Bytes::kib(8) };
    let rule = FaultRule { range: Some(range), ..FaultRule::new(Fault::Error(Errno(61))) };
    let mut device = on_memory(&[rule]);
    for file in 0..2 {
        for block in 0..40u64 {
            let request = Request { file: FileIndex(file), ..read(block * 4096, BLOCK, 0) };
            let bad = file == 1 && (16..18).contains(&block);
            let wanted = if bad { Err(Errno(61)) } else { Ok(BLOCK) };
            assert_eq!(one(&mut device, request), wanted, "file {file}, block {block}");
        }
    }
    let in_1 = |offset, length| Request { file: FileIndex(1), ..read(offset, length, 0) };
    assert_eq!(one(&mut device, in_1(65_535, 1)), Ok(1), "ends just before");
    assert_eq!(one(&mut device, in_1(65_535, 2)), Err(Errno(61)), "touches its first byte");
    assert_eq!(one(&mut device, in_1(73_728, 1)), Ok(1), "begins just after");
}

#[test]
fn errors_at_a_rate_and_their_writes_have_no_effect() {
    let mut device = on_model(&[FaultRule::new(Fault::Error(Errno::EIO)).rate(0.01)]);
    let events = run(&mut device, 4, 100_000, |n, slot| read(n << 12, BLOCK, slot));
    let count = hurt(&events).len();
    // Binomial, five standard deviations of 31.5.
    assert!((842..=1158).contains(&count), "{count} of 100000 at 1 %");
    assert_eq!(device.fired(), [count as u64]);

    let mut device = on_memory(&[FaultRule::new(Fault::Error(Errno::EIO)).on(Op::Write)]);
    device.buffer(Slot(0)).fill(7);
    assert_eq!(one(&mut device, write(0, BLOCK, 0)), Err(Errno::EIO));
    assert_eq!(device.inner().allocated(), Bytes::ZERO);
}

#[test]
fn since_waits_for_its_moment() {
    let rule = FaultRule::new(Fault::Error(Errno::EIO)).since(Nanos::millis(1));
    let events = run(&mut on_model(&[rule]), 1, 20, |_, slot| read(0, BLOCK, slot));
    assert_eq!(hurt(&events).len(), 10, "the first ten take 1 ms");
    assert_eq!(hurt(&events)[0].0, 11);
}

#[test]
fn short_transfers_move_just_that_much() {
    let mut device = on_memory(&[FaultRule::new(Fault::Short(Bytes::new(512))).nth(2)]);
    device.buffer(Slot(0)).fill(9);
    assert_eq!(one(&mut device, write(0, BLOCK, 0)), Ok(BLOCK));
    assert_eq!(one(&mut device, write(BLOCK.into(), BLOCK, 0)), Ok(512), "the second");
    assert_eq!(one(&mut device, read(BLOCK.into(), BLOCK, 0)), Ok(BLOCK));
    let found = &device.buffer(Slot(0))[..BLOCK as usize];
    assert!(found[..512].iter().all(|&b| b == 9) && found[512..].iter().all(|&b| b == 0));

    let mut device = on_memory(&[FaultRule::new(Fault::Short(Bytes::new(512)))]);
    assert_eq!(one(&mut device, read(0, 512, 0)), Ok(512), "no longer than that anyway");
    assert_eq!(device.fired(), [0]);
    assert_eq!(one(&mut device, request(Op::Fsync, 0, BLOCK, 0)), Ok(0), "moves nothing");
}

#[test]
fn no_space_after_so_many_bytes() {
    let mut device = on_memory(&[FaultRule::new(Fault::NoSpaceAfter(Bytes::new(10_000)))]);
    let mut next = |request| one(&mut device, request);
    assert_eq!(next(write(0, BLOCK, 0)), Ok(BLOCK));
    assert_eq!(next(read(0, BLOCK, 0)), Ok(BLOCK));
    assert_eq!(next(write(0, BLOCK, 0)), Ok(BLOCK));
    assert_eq!(next(write(0, BLOCK, 0)), Ok(10_000 - 8192), "across the limit");
    assert_eq!(next(write(0, 1, 0)), Err(Errno::ENOSPC));
    assert_eq!(next(read(0, BLOCK, 0)), Ok(BLOCK), "reads go on");
    assert_eq!(next(request(Op::Fsync, 0, 0, 0)), Ok(0));
}

#[test]
fn a_lost_completion_never_comes_and_hangs_nothing_else() {
    let mut device = on_model(&[FaultRule::new(Fault::Lost).nth(2)]);
    for slot in 0..3 {
        device.submit(read(0, BLOCK, slot)).unwrap();
    }
    let mut done = Vec::with_capacity(8);
    device.reap(3, Instant::new(1_000_000_000), &mut done).unwrap();
    let slots: Vec<_> = done.iter().map(|done| done.slot.0).collect();
    assert_eq!(slots, [0, 2]);
    assert_eq!(device.now(), Instant::new(1_000_000_000), "waited to the end");
    device.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!(done.len(), 2, "comes back without a deadline");
    assert_eq!(device.inner().counters().of(Op::Read).requests, 3, "it was carried out");
}

#[test]
fn a_late_completion_is_late_by_the_clock() {
    let mut device = on_model(&[FaultRule::new(Fault::Late(Nanos::secs(2))).nth(2)]);
    let events = run(&mut device, 2, 6, |_, slot| read(0, BLOCK, slot));
    let late: Vec<_> = events.iter().filter(|e| e.latency() != Nanos::micros(100)).collect();
    assert_eq!(late.len(), 1);
    assert_eq!(late[0].latency(), Nanos::new(2_000_100_000));
    assert_eq!(late[0].completion.result(), Ok(BLOCK));
    assert!(hurt(&events).is_empty());
    // Until comes first.
    let mut device = on_model(&[FaultRule::new(Fault::Late(Nanos::secs(2)))]);
    device.submit(read(0, BLOCK, 0)).unwrap();
    let mut done = Vec::with_capacity(1);
    device.reap(1, Instant::new(1_500_000_000), &mut done).unwrap();
    assert_eq!((device.now(), done.len()), (Instant::new(1_500_000_000), 0));
    device.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!((device.now(), done.len()), (Instant::new(2_000_100_000), 1));
}

fn differing_bits(found: &[u8], wanted: u8) -> Vec<usize> {
    found
        .iter()
        .enumerate()
        .filter(|&(_, &byte)| byte != wanted)
        .flat_map(|(at, byte)| vec![at; (byte ^ wanted).count_ones() as usize])
        .collect()
}

#[test]
fn corrupt_reads_flip_bits_in_the_buffer_only() {
    let mut device = on_memory(&[FaultRule::new(Fault::CorruptBits(3)).on(Op::Read).nth(2)]);
    device.buffer(Slot(0)).fill(0x5a);
    assert_eq!(one(&mut device, write(0, BLOCK, 0)), Ok(BLOCK));
    for (n, bits) in [(1, 0), (2, 3), (3, 0)] {
        device.buffer(Slot(0)).fill(0x11);
        assert_eq!(one(&mut device, read(0, BLOCK, 0)), Ok(BLOCK), "silent");
        let buffer = device.buffer(Slot(0));
        assert_eq!(differing_bits(&buffer[..BLOCK as usize], 0x5a).len(), bits, "read {n}");
        assert!(buffer[BLOCK as usize..].iter().all(|&byte| byte == 0x11), "beyond");
    }
}

#[test]
fn corrupt_writes_flip_bits_in_what_is_stored_only() {
    let range = (ByteOffset::new(6000), Bytes::new(10));
    let rule = FaultRule::new(Fault::CorruptBits(2)).on(Op::Write).range(range.0, range.1);
    let mut device = on_memory(&[rule]);
    device.buffer(Slot(1)).fill(0xa5);
    for block in 0..3u64 {
        assert_eq!(one(&mut device, write(block * 4096, BLOCK, 1)), Ok(BLOCK), "silent");
        let buffer = device.buffer(Slot(1));
        assert!(buffer.iter().all(|&byte| byte == 0xa5), "the caller's data stay");
    }
    assert_eq!(one(&mut device, read(0, 3 * BLOCK, 0)), Ok(3 * BLOCK));
    let bad = differing_bits(&device.buffer(Slot(0))[..3 * BLOCK as usize], 0xa5);
    assert_eq!(bad.len(), 2);
    assert!(bad.iter().all(|at| (6000..6010).contains(at)), "{bad:?}");
}

#[test]
fn vanishes_at_its_moment_with_all_that_is_in_flight() {
    let at = Nanos::micros(150);
    for seen in [VanishSeen::Requests, VanishSeen::Device] {
        let what = Fault::Vanish { errno: Errno::ENODEV, seen };
        let mut device = on_model(&[FaultRule::new(what).since(at)]);
        assert_eq!(one(&mut device, read(0, BLOCK, 0)), Ok(BLOCK));
        device.submit(read(0, BLOCK, 1)).unwrap();
        let mut done = Vec::with_capacity(4);
        let result = device.reap(1, Instant::MAX, &mut done);
        assert_eq!(device.now(), Instant::new(150_000), "{seen:?}");
        if seen == VanishSeen::Device {
            assert_eq!(result, Err(DeviceError::Gone { errno: Errno::ENODEV }));
            let again = device.reap(0, Instant::MAX, &mut done);
            assert_eq!(again, Err(DeviceError::Gone { errno: Errno::ENODEV }));
            continue;
        }
        assert_eq!(result, Ok(()));
        assert_eq!(done, [Completion::failed(Slot(1), Errno::ENODEV)]);
        assert_eq!(one(&mut device, read(0, BLOCK, 1)), Err(Errno::ENODEV));
        assert_eq!(one(&mut device, request(Op::Fsync, 0, 0, 2)), Err(Errno::ENODEV));
        assert_eq!(device.fired(), [1]);
    }
}

#[test]
fn flipped_bits_are_distinct_and_no_more_than_there_are() {
    for (bits, wanted) in [(60, 60), (64, 64), (4096, 64)] {
        let rule =
            FaultRule::new(Fault::CorruptBits(bits)).range(ByteOffset::new(8), Bytes::new(8));
        let mut device = on_memory(&[rule]);
        assert_eq!(one(&mut device, read(0, BLOCK, 0)), Ok(BLOCK));
        assert_eq!(differing_bits(device.buffer(Slot(0)), 0).len(), wanted);
    }
}

#[test]
fn a_late_request_fails_when_the_device_vanishes() {
    let what = Fault::Vanish { errno: Errno::ENODEV, seen: VanishSeen::Requests };
    let rules =
        [FaultRule::new(Fault::Late(Nanos::secs(1))), FaultRule::new(what).since(Nanos::millis(1))];
    let mut device = on_model(&rules);
    assert_eq!(one(&mut device, read(0, BLOCK, 0)), Err(Errno::ENODEV));
    assert_eq!(device.now(), Instant::new(1_000_000));
}

#[test]
fn vanishes_with_the_nth_request() {
    let what = Fault::Vanish { errno: Errno::ENXIO, seen: VanishSeen::Requests };
    let mut device = on_model(&[FaultRule::new(what).on(Op::Write).nth(2)]);
    let events = run(&mut device, 1, 6, |n, slot| {
        if n % 2 == 0 { read(0, BLOCK, slot) } else { write(0, BLOCK, slot) }
    });
    let bad: Vec<_> = hurt(&events).iter().map(|bad| bad.0).collect();
    assert_eq!(bad, [4, 5, 6], "the second write, and all after it");
}

#[test]
fn a_lost_request_fails_when_the_device_vanishes() {
    let what = Fault::Vanish { errno: Errno::ENODEV, seen: VanishSeen::Requests };
    let rules = [FaultRule::new(Fault::Lost), FaultRule::new(what).since(Nanos::millis(1))];
    let mut device = on_model(&rules);
    device.submit(read(0, BLOCK, 0)).unwrap();
    let mut done = Vec::with_capacity(1);
    device.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!(done, [Completion::failed(Slot(0), Errno::ENODEV)]);
    assert_eq!(device.now(), Instant::new(1_000_000));
}

#[test]
fn a_full_device_moves_no_counter() {
    // Two slots inside, so that every third submission is refused.
    let inner = Model::new(&law(), 2, 1).unwrap();
    let mut device =
        Faulty::new(inner, &[FaultRule::new(Fault::Error(Errno::EIO)).nth(4)], 3).unwrap();
    device.submit(read(0, BLOCK, 0)).unwrap();
    device.submit(read(0, BLOCK, 1)).unwrap();
    for _ in 0..5 {
        assert!(device.submit(read(0, BLOCK, 2)).is_err());
    }
    let mut done = Vec::with_capacity(4);
    device.reap(2, Instant::MAX, &mut done).unwrap();
    assert_eq!(one(&mut device, read(0, BLOCK, 2)), Ok(BLOCK), "the third");
    assert_eq!(one(&mut device, read(0, BLOCK, 2)), Err(Errno::EIO), "the fourth");
}

#[test]
fn the_first_rule_that_applies_has_the_request() {
    let rules = [
        FaultRule::new(Fault::Error(Errno::EIO)).nth(2),
        FaultRule::new(Fault::Error(Errno::ENXIO)).nth(2),
        FaultRule::new(Fault::Error(Errno::EROFS)).nth(3),
    ];
    let mut device = on_model(&rules);
    let events = run(&mut device, 1, 4, |_, slot| read(0, BLOCK, slot));
    assert_eq!(hurt(&events), [(2, Err(Errno::EIO)), (3, Err(Errno::EROFS))]);
    assert_eq!(device.fired(), [1, 0, 1]);
}

#[test]
fn without_rules_it_is_the_inner_device() {
    let next = |n: u64, slot| read(n << 12, BLOCK, slot);
    assert_eq!(run(&mut on_model(&[]), 4, 500, next), run(&mut model(), 4, 500, next));
}

#[test]
fn rules_that_mean_nothing_are_refused() {
    for rule in [
        FaultRule::new(Fault::Lost).rate(1.5),
        FaultRule::new(Fault::Lost).rate(f64::NAN),
        FaultRule::new(Fault::NoSpaceAfter(Bytes::kib(1))).nth(2),
        FaultRule::new(Fault::CorruptBits(5000)),
    ] {
        let error = Faulty::new(model(), std::slice::from_ref(&rule), 0).map(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("fault[0]"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Every request comes back exactly once, or is one that was lost; vectors never grow; the
    /// clock keeps its promises.
    #[test]
    fn conserves_requests(
        rates in prop::collection::vec((0usize..5, 0.0..0.4f64), 0..4),
        steps in prop::collection::vec((0u64..64, 0usize..4, 0u64..400_000, 0usize..4), 1..80),
        seed in any::<u64>(),
    ) {
        let rules: Vec<_> = rates
            .iter()
            .map(|&(kind, rate)| {
                let what = [
                    Fault::Error(Errno::EIO),
                    Fault::Short(Bytes::new(100)),
                    Fault::Lost,
                    Fault::Late(Nanos::micros(270)),
                    Fault::CorruptBits(1),
                ][kind];
                FaultRule::new(what).rate(rate)
            })
            .collect();
        let mut device = Faulty::new(model(), &rules, seed).unwrap();
        let mut flying = [false; 64];
        let (mut submitted, mut returned) = (0, 0);
        for (slot, min, wait, room) in steps {
            let before = device.now();
            if !flying[slot as usize] && device.submit(read(0, BLOCK, slot as u32)).is_ok() {
                flying[slot as usize] = true;
                submitted += 1;
            }
            let mut done = Vec::with_capacity(room);
            let capacity = done.capacity();
            device.reap(min, before + Nanos::new(wait), &mut done).unwrap();
            prop_assert_eq!(done.capacity(), capacity);
            prop_assert!(device.now() >= before && device.now() <= before + Nanos::new(wait));
            prop_assert!(done.len() >= min || device.now() == before + Nanos::new(wait));
            for completion in done {
                prop_assert!(std::mem::take(&mut flying[completion.slot.0 as usize]));
                returned += 1;
            }
        }
        let mut done = Vec::with_capacity(64);
        device.reap(64, Instant::MAX, &mut done).unwrap();
        for completion in &done {
            prop_assert!(std::mem::take(&mut flying[completion.slot.0 as usize]));
        }
        let lost: u64 = device
            .fired()
            .iter()
            .zip(&rules)
            .filter(|(_, rule)| rule.what == Fault::Lost)
            .map(|(count, _)| count)
            .sum();
        prop_assert_eq!(submitted, returned + done.len() as u64 + lost);
    }
}
