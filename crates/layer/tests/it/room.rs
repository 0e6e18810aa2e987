//! Free space never runs out, however full the volume and however bad the writes.

use layer::{LayerError, LogVolume};
use stats::random::Random;
use units::Bytes;

use crate::{BLOCK, at, block, volume};

/// The largest volume that a device can hold.
fn fullest(segment: Bytes, segments: u64) -> Bytes {
    let fits = |blocks: u64| {
        let device = layer::BlockMemory::new(Bytes::new(segment.get() * (segments + 4)));
        let (logical, id) = (Bytes::new(blocks * BLOCK), layer::VolumeId(7));
        LogVolume::create(device, &layer::CreateOptions { logical, segment, id }).is_ok()
    };
    let blocks = (1..segment.get() / BLOCK * segments).take_while(|&n| fits(n)).last();
    Bytes::new(blocks.unwrap() * BLOCK)
}

#[test]
fn the_fullest_volume_takes_writes_for_ever() {
    for (segment, segments, flush_every) in
        [(8, 15, 1), (8, 19, 1), (8, 47, 3), (9, 27, 1), (16, 23, 2), (64, 19, 1), (64, 71, 100)]
    {
        let segment = Bytes::kib(4 * segment);
        let logical = fullest(segment, segments);
        let mut volume = volume(segment, segments + 4, logical);
        let blocks = logical.get() / BLOCK;
        let mut shown: Vec<u64> = (0..blocks).collect();
        for (n, _) in (0..).zip(&shown) {
            volume.write(at(n), &block(n)).unwrap();
        }
        let mut random = Random::new(segments);
        for n in 0..20 * blocks.min(500) {
            let place = random.below(blocks);
            shown[place as usize] = blocks + n;
            volume.write(at(place), &block(blocks + n)).unwrap();
            if n % flush_every == 0 {
                volume.flush().unwrap();
            }
        }
        assert_eq!(volume.audit(), [""; 0]);
        let mut volume = LogVolume::open(volume.close().unwrap()).unwrap();
        let mut data = block(0);
        for (n, &number) in (0..).zip(&shown) {
            volume.read(at(n), &mut data).unwrap();
            assert!(data == block(number), "block {n}");
        }
    }
}

#[test]
fn trims_alone_do_not_fill_the_log() {
    let mut volume = volume(Bytes::kib(32), 19, Bytes::kib(64));
    for n in 0..2000 {
        volume.trim(at(n % 16), Bytes::kib(4)).unwrap();
        volume.flush().unwrap();
    }
    assert!(volume.counts().checkpoints > 100);
}

#[test]
fn idle_collections_free_what_is_worth_it_and_end() {
    let mut volume = volume(Bytes::kib(64), 40, Bytes::mib(1));
    let mut random = Random::new(1);
    for n in 0..1000 {
        volume.write(at(random.below(256)), &block(n)).unwrap();
    }
    let mut collections = 0;
    while volume.collect().unwrap() {
        collections += 1;
        assert!(collections < 100);
    }
    assert!(collections > 0);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut volume = volume(Bytes::kib(32), 19, Bytes::kib(64));
    let unaligned = |result| matches!(result, Err(LayerError::Unaligned { .. }));
    assert!(unaligned(volume.write(units::ByteOffset::new(512), &block(1))));
    assert!(unaligned(volume.read(at(0), &mut [0; 512])));
    let outside = |result| matches!(result, Err(LayerError::OutOfRange { .. }));
    assert!(outside(volume.write(at(16), &block(1))));
    assert!(outside(volume.trim(at(15), Bytes::kib(8))));
    assert!(outside(volume.read(at(u64::MAX / BLOCK), &mut block(1))));
    volume.write(at(16), &[]).unwrap();
}

/// Blocks that the collector copies while one block is written: those of two groups at most, where a batch of
/// victims has up to 1000.
#[test]
fn a_write_waits_for_two_groups_of_a_victim_at_most() {
    let logical = Bytes::mib(84);
    let mut volume = volume(Bytes::mib(2), 70, logical);
    let mut random = Random::new(3);
    let blocks = logical.get() / BLOCK;
    (0..blocks).for_each(|n| volume.write(at(n), &block(n)).unwrap());
    let mut waits = Vec::new();
    for n in 0..3 * blocks {
        let before = volume.counts().copied;
        volume.write(at(random.below(blocks)), &block(n)).unwrap();
        waits.push(volume.counts().copied - before);
    }
    waits.sort_unstable();
    let (most, all) = (waits[waits.len() - 1], waits.iter().sum::<u64>());
    assert!(all > blocks && most <= 500, "{most} at most, {all} in all");
}
