//! What can be created and opened.

use layer::{BlockDevice, BlockMemory, CreateOptions, LayerError, LogVolume, VolumeId};
use units::{ByteOffset, Bytes};

use crate::{at, block, volume};

fn refusal(device: Bytes, logical: Bytes, segment: Bytes) -> String {
    let options = CreateOptions { logical, segment, id: VolumeId(1) };
    LogVolume::create(BlockMemory::new(device), &options).map(drop).unwrap_err().to_string()
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let seen = refusal(Bytes::mib(4), Bytes::mib(4), Bytes::kib(64));
    assert!(seen.starts_with("volume is 4 MiB, wanted a multiple of 4 KiB, at most"), "{seen}");
    let seen = refusal(Bytes::mib(4), Bytes::kib(64), Bytes::kib(16));
    assert!(seen.starts_with("segment is 16 KiB, wanted 32 KiB to 256 MiB"), "{seen}");
    refusal(Bytes::mib(4), Bytes::new(4097), Bytes::kib(64));
    refusal(Bytes::mib(4), Bytes::ZERO, Bytes::kib(64));
    refusal(Bytes::ZERO, Bytes::kib(4), Bytes::kib(64));
    refusal(Bytes::mib(4), Bytes::new(!4095), Bytes::kib(64));
}

#[test]
fn what_is_no_volume_is_not_opened() {
    let empty = LogVolume::open(BlockMemory::new(Bytes::mib(1))).map(drop);
    assert_eq!(empty, Err(LayerError::NoVolume));
    assert_eq!(LogVolume::open(BlockMemory::new(Bytes::ZERO)).map(drop), Err(LayerError::NoVolume));
    let device = volume(Bytes::kib(32), 19, Bytes::kib(64)).close().unwrap();
    let mut short = BlockMemory::new(Bytes::kib(128));
    copy(device, &mut short);
    let error = LogVolume::open(short).map(drop).unwrap_err();
    assert!(matches!(error, LayerError::DeviceTooSmall { .. }), "{error}");
}

fn copy(mut from: BlockMemory, into: &mut BlockMemory) {
    let mut bytes = vec![0; into.size().get() as usize];
    from.read(ByteOffset::ZERO, &mut bytes).unwrap();
    into.write(ByteOffset::ZERO, &bytes).unwrap();
}

#[test]
fn a_volume_that_is_created_anew_is_empty() {
    let mut volume = volume(Bytes::kib(32), 19, Bytes::kib(64));
    volume.write(at(3), &block(9)).unwrap();
    let device = volume.close().unwrap();
    let (logical, segment) = (Bytes::kib(64), Bytes::kib(32));
    let options = CreateOptions { logical, segment, id: VolumeId(8) };
    let mut volume = LogVolume::create(device, &options).unwrap();
    let mut data = block(1);
    volume.read(at(3), &mut data).unwrap();
    assert!(data == block(0));
    assert_eq!(volume.size(), logical);
}

#[test]
fn memory_is_two_mib_per_gib_and_a_little() {
    let small = volume(Bytes::kib(256), 200, Bytes::mib(16));
    let large = volume(Bytes::kib(256), 200, Bytes::mib(32));
    let per_gib = (large.memory().get() - small.memory().get()) * 64;
    assert_eq!(per_gib, 2 << 20);
    // Buffers: a group in each of four streams; the collector's is not there yet. Tables: 32 bytes and
    // a place in a queue per segment.
    let fixed = small.memory().get() - (32 << 10);
    assert!(fixed < 4 * (256 << 10) + 200 * 48, "{fixed}");
}
