use std::collections::HashMap;

use device::{
    Completion, Device, Errno, FileIndex, Memory, MemoryShape, Op, Request, Slot, VirtualClock,
};
use proptest::prelude::*;
use units::{ByteOffset, Bytes, Instant, Nanos};

use crate::drive::{read, request, write};

const SIZE: u64 = 200_000;
const BUFFER: u32 = 100_000;

fn memory() -> Memory<VirtualClock> {
    Memory::new(
        VirtualClock::default(),
        MemoryShape {
            files: 2,
            file_size: Bytes::new(SIZE),
            slots: 4,
            buffer: Bytes::new(BUFFER.into()),
            tick: Nanos::new(10),
        },
    )
}

fn one(memory: &mut Memory<VirtualClock>, request: Request) -> Result<u32, Errno> {
    memory.submit(request).unwrap();
    let mut done = Vec::with_capacity(1);
    memory.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!(done[0].slot, request.slot);
    done[0].result()
}

#[test]
fn the_end_is_that_of_a_device() {
    let mut memory = memory();
    assert_eq!(one(&mut memory, write(SIZE - 100, 300, 0)), Ok(100));
    assert_eq!(one(&mut memory, read(SIZE - 100, 300, 0)), Ok(100));
    assert_eq!(one(&mut memory, read(SIZE, 300, 0)), Ok(0));
    assert_eq!(one(&mut memory, write(SIZE, 300, 0)), Err(Errno::ENOSPC));
    assert_eq!(one(&mut memory, read(u64::MAX - 5, 300, 0)), Err(Errno::EINVAL));
    assert_eq!(one(&mut memory, read(0, BUFFER + 1, 0)), Err(Errno::EINVAL));
    let stranger = Request { file: FileIndex(2), ..read(0, 1, 0) };
    assert_eq!(one(&mut memory, stranger), Err(Errno(9)));
    assert_eq!(one(&mut memory, request(Op::Fsync, 0, 0, 1)), Ok(0));
}

#[test]
fn completes_in_order_and_never_grows_the_vector() {
    let mut memory = memory();
    for slot in [2, 0, 3, 1] {
        memory.submit(read(0, 8, slot)).unwrap();
    }
    assert!(memory.submit(read(0, 8, 4)).is_err(), "full");
    let mut done = Vec::with_capacity(3);
    let room = done.capacity();
    memory.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!(done.len(), room.min(4));
    assert_eq!(done.capacity(), room);
    let mut rest: Vec<Completion> = Vec::with_capacity(4);
    memory.reap(0, Instant::MAX, &mut rest).unwrap();
    let slots: Vec<_> = done.iter().chain(&rest).map(|done| done.slot.0).collect();
    assert_eq!(slots, [2, 0, 3, 1]);
}

#[test]
fn sleeps_and_is_sparse() {
    let mut memory = memory();
    memory.reap(1, Instant::new(500), &mut Vec::with_capacity(1)).unwrap();
    assert_eq!(memory.now(), Instant::new(500));
    assert_eq!(memory.allocated(), Bytes::ZERO);
    one(&mut memory, read(0, 100_000, 0)).unwrap();
    assert_eq!(memory.allocated(), Bytes::ZERO, "a read allocates nothing");
    one(&mut memory, write(65_536 - 1, 2, 0)).unwrap();
    assert_eq!(memory.allocated(), Bytes::kib(128));
    one(&mut memory, request(Op::Trim, 65_536, 65_536, 0)).unwrap();
    assert_eq!(memory.allocated(), Bytes::kib(64));
}

fn any_request() -> impl Strategy<Value = (Request, u8)> {
    let op = prop_oneof![
        4 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Trim), 1 => Just(Op::SyncRange)
    ];
    // Around the boundary of a chunk and the end, where the mistakes are.
    let start = prop_oneof![0..SIZE + 500, 65_000u64..66_000, SIZE - 600..SIZE + 100];
    let length = prop_oneof![0..600u32, 0..BUFFER];
    (op, start, length, 0..4u32, 0..2u32, any::<u8>()).prop_map(
        |(op, start, length, slot, file, fill)| {
            let offset = ByteOffset::new(start);
            (Request { offset, length, slot: Slot(slot), file: FileIndex(file), op }, fill)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn equals_a_plain_map(requests in prop::collection::vec(any_request(), 1..30)) {
        let mut memory = memory();
        let mut map: HashMap<(u32, u64), u8> = HashMap::new();
        for (request, fill) in requests {
            let start = request.offset.get();
            let places = || (start..start + u64::from(request.length)).take_while(|&at| at < SIZE);
            if request.op == Op::Write {
                for (i, byte) in memory.buffer(request.slot).iter_mut().enumerate() {
                    *byte = fill.wrapping_add(i as u8) | 1;
                }
            } else {
                memory.buffer(request.slot).fill(0xee);
            }
            let result = one(&mut memory, request);
            let moved = places().count() as u32;
            match request.op {
                Op::Read => {
                    prop_assert_eq!(result, Ok(moved));
                    let found = memory.buffer(request.slot);
                    for (i, at) in places().enumerate() {
                        let wanted = map.get(&(request.file.0, at)).copied().unwrap_or(0);
                        prop_assert_eq!(found[i], wanted, "at {} of {:?}", at, request);
                    }
                    prop_assert!(found[moved as usize..].iter().all(|&b| b == 0xee), "beyond");
                }
                Op::Write => {
                    if start >= SIZE && request.length > 0 {
                        prop_assert_eq!(result, Err(Errno::ENOSPC));
                    } else {
                        prop_assert_eq!(result, Ok(moved));
                    }
                    for (i, at) in places().enumerate() {
                        map.insert((request.file.0, at), fill.wrapping_add(i as u8) | 1);
                    }
                }
                Op::Trim => {
                    prop_assert_eq!(result, Ok(0));
                    places().for_each(|at| { map.remove(&(request.file.0, at)); });
                }
                _ => prop_assert_eq!(result, Ok(0)),
            }
        }
    }
}

/// Deep queues are also asked for with fills of long blocks: buffers nobody uses must cost nothing.
#[test]
fn a_buffer_takes_memory_when_it_is_used() {
    let terabyte = Bytes::new(1 << 40);
    let shape = MemoryShape {
        files: 1,
        file_size: Bytes::new(SIZE),
        slots: 65_536,
        buffer: terabyte,
        tick: Nanos::new(10),
    };
    let mut memory = Memory::new(VirtualClock::default(), shape);
    assert_eq!(one(&mut memory, write(0, 300, 65_535)), Ok(300));
    assert_eq!(one(&mut memory, read(0, 300, 7)), Ok(300));
}

#[test]
fn a_buffer_that_grows_keeps_what_was_read_into_it() {
    let mut memory = memory();
    memory.buffer(Slot(0))[..4].copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(one(&mut memory, write(0, 4, 0)), Ok(4));
    assert_eq!(one(&mut memory, read(0, 4, 1)), Ok(4));
    assert_eq!(one(&mut memory, read(0, 2, 2)), Ok(2));
    assert_eq!(memory.buffer(Slot(1)).len(), BUFFER as usize);
    assert_eq!(memory.buffer(Slot(1))[..5], [1, 2, 3, 4, 0]);
    assert_eq!(memory.buffer(Slot(2))[..5], [1, 2, 0, 0, 0]);
}

#[test]
fn buffers_are_as_long_as_the_load_needs_them() {
    let mut memory = memory();
    assert_eq!(memory.buffer(Slot(0)).len(), BUFFER as usize);
    memory.set_buffer(Bytes::new(512));
    assert_eq!(memory.buffer(Slot(0)).len(), 512);
    assert_eq!(one(&mut memory, read(0, 513, 0)), Err(Errno::EINVAL));
}
