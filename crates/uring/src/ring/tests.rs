use std::path::PathBuf;

use units::Bytes;

use super::*;
use crate::{Choice, DirectWish, Fill, OpenSpec};

const LENGTH: u32 = 4096;

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A ring over a file of four blocks, each full of its number.
fn ring() -> Option<(Scratch, Ring)> {
    let path = std::env::temp_dir().join(format!("plimsoll-again-{}", std::process::id()));
    let scratch = Scratch(path);
    let bytes: Vec<u8> = (0..4u8).flat_map(|block| vec![block; LENGTH as usize]).collect();
    std::fs::write(&scratch.0, bytes).unwrap();
    let spec = OpenSpec {
        files: vec![scratch.0.clone()],
        read: true,
        direct: DirectWish::No,
        ..OpenSpec::default()
    };
    let requested = Requested {
        choice: Choice::IoUring,
        depth: 4,
        buffer_len: Bytes::new(u64::from(LENGTH)),
        fill: Fill::Incompressible { seed: 1 },
        allow: Allow::default(),
    };
    let files = Arc::new(FileSet::open(&spec).unwrap());
    match Ring::open(files, &requested, Mode::Plain) {
        Ok(ring) => Some((scratch, ring)),
        Err(error) => {
            println!("skipped: no io_uring here: {error}");
            None
        }
    }
}

fn read(slot: u32) -> Request {
    Request {
        offset: ByteOffset::new(u64::from(slot) * u64::from(LENGTH)),
        length: LENGTH,
        slot: Slot(slot),
        file: FileIndex(0),
        op: Op::Read,
    }
}

#[test]
fn what_the_kernel_hands_back_untried_is_sent_again_once() {
    let Some((_scratch, mut ring)) = ring() else { return };
    let mut done = Vec::with_capacity(4);
    for slot in 0..3 {
        ring.submit(read(slot)).unwrap();
    }
    while done.len() < 3 {
        ring.reap(1, Instant::MAX, &mut done).unwrap();
    }
    ring.buffer(Slot(1)).fill(99);
    // As if the kernel had said so of the second of the three.
    done.sort_by_key(|completion| completion.slot);
    done[1] = Completion::failed(Slot(1), Errno::EAGAIN);
    ring.send_again(&mut done, 0);
    let slots: Vec<u32> = done.iter().map(|completion| completion.slot.0).collect();
    assert_eq!(slots, [0, 2]);
    assert_eq!(ring.in_flight, 1);
    done.clear();
    while done.is_empty() {
        ring.reap(1, Instant::MAX, &mut done).unwrap();
    }
    assert_eq!(done, [Completion::moved(Slot(1), LENGTH)]);
    assert!(ring.buffer(Slot(1)).iter().all(|&byte| byte == 1));
    assert!(ring.again.is_empty());
    assert_eq!(ring.in_flight, 0);
}

#[test]
fn handed_back_twice_it_is_an_error() {
    let Some((_scratch, mut ring)) = ring() else { return };
    let mut done = Vec::with_capacity(4);
    ring.submit(read(0)).unwrap();
    while done.is_empty() {
        ring.reap(1, Instant::MAX, &mut done).unwrap();
    }
    ring.again.push(Slot(0));
    done[0] = Completion::failed(Slot(0), Errno::EAGAIN);
    ring.send_again(&mut done, 0);
    assert_eq!(done, [Completion::failed(Slot(0), Errno::EAGAIN)]);
    assert_eq!(ring.in_flight, 0);
}
