use device::{Device, FileIndex, Memory, MemoryShape, Op, Recording, Request, Slot, VirtualClock};
use units::{ByteOffset, Bytes, Instant, Nanos};

#[test]
fn what_passes_is_written_down_with_its_times_and_contents() {
    let shape = MemoryShape {
        files: 1,
        file_size: Bytes::new(8192),
        slots: 2,
        buffer: Bytes::new(4096),
        tick: Nanos::micros(10),
    };
    let mut device = Recording::new(Memory::new(VirtualClock::default(), shape));
    device.contents = Some(Vec::new());
    let request = |op, offset, slot| Request {
        op,
        file: FileIndex(0),
        offset: ByteOffset::new(offset),
        length: 4096,
        slot: Slot(slot),
    };
    device.buffer(Slot(0))[0] = 7;
    device.submit(request(Op::Write, 0, 0)).unwrap();
    // Across the end.
    device.submit(request(Op::Read, 6144, 1)).unwrap();
    assert!(device.submit(request(Op::Read, 0, 1)).is_err(), "it has two slots");
    let mut done = Vec::with_capacity(2);
    device.reap(2, Instant::MAX, &mut done).unwrap();
    device.submit(request(Op::Read, 0, 0)).unwrap();
    assert_eq!(device.places(Op::Read), [(0, 6144, 4096), (0, 0, 4096)]);
    assert_eq!((device.count(Op::Write), device.requests().len(), device.batch_max), (1, 3, 2));
    assert_eq!(device.contents.as_ref().unwrap()[0][0], 7);
    let [first, second, third] = device.log.as_slice() else { panic!("three were taken") };
    assert_eq!((first.submitted, first.completed), (Instant::ZERO, Some(Instant::new(10_000))));
    assert_eq!((first.result, second.result), (Some(Ok(4096)), Some(Ok(2048))));
    assert_eq!((third.submitted, third.completed), (Instant::new(10_000), None));
}
