//! What writes write.

use std::collections::BTreeSet;

use engine::Visit;
use suite::model::{Access, Data, Operation, Stream};
use units::Bytes;

use crate::help::*;

fn writes(data: Data, block: u64, n: u64) -> Visit {
    let mut s = Stream { stop: for_operations(n), ..stream() };
    s.mix.classes = vec![class(Operation::Write, 1.0, block)];
    s.align = Bytes::new(block);
    s.region.length = Bytes::mib(4);
    Visit { data, file_size: Bytes::mib(4), ..visit(vec![s]) }
}

fn contents(v: &Visit) -> Vec<Vec<u8>> {
    let mut device = memory(v);
    device.contents = Some(Vec::new());
    play(v, &mut device);
    device.contents.unwrap()
}

/// Bits of information in a byte, by frequency.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u64; 256];
    bytes.iter().for_each(|&b| counts[usize::from(b)] += 1);
    let n = bytes.len() as f64;
    counts.iter().filter(|&&c| c > 0).map(|&c| -(c as f64 / n) * (c as f64 / n).log2()).sum()
}

/// How many strings of 8 bytes of the stream come twice: what every compressor of the
/// Lempel-Ziv kind and every deduplicator lives on.
fn repeats(stream: &[u8]) -> usize {
    let mut seen = BTreeSet::new();
    stream.chunks_exact(8).filter(|word| !seen.insert(<[u8; 8]>::try_from(*word).unwrap())).count()
}

fn mixed_with_reads(mut v: Visit) -> Visit {
    let block = v.streams[0].mix.classes[0].block_size.get();
    v.streams[0].mix.classes.push(class(Operation::Read, 1.0, block));
    v
}

#[test]
fn incompressible_data_does_not_repeat_from_write_to_write() {
    // Only 16 bytes of each 4 KiB changed from write to write: a file system that compresses
    // 128 KiB at a time saw thirty-two times the same.
    for block in [512, 4096, 5120, 16384, 131_072] {
        let v = writes(Data::Incompressible, block, (4 << 20) / block);
        for v in [v.clone(), mixed_with_reads(v)] {
            let all = contents(&v).concat();
            assert_eq!(repeats(&all), 0, "blocks of {block}");
            let entropy = entropy(&all);
            assert!(entropy > 7.999, "{entropy} bits a byte in blocks of {block}");
        }
    }
}

#[test]
fn no_two_pieces_of_4_kib_are_equal_however_long_the_blocks() {
    for (block, threads, depth) in [(4096, 4, 2), (1 << 20, 1, 2), (1 << 20, 3, 1)] {
        let mut v = writes(Data::Incompressible, block, 1);
        v.streams[0].stop = for_operations(if block == 4096 { 4000 } else { 40 });
        v.streams[0].threads = threads;
        v.streams[0].queue_depth = depth;
        let all = contents(&v);
        let pieces: Vec<&[u8]> = all.iter().flat_map(|c| c.chunks(4096)).collect();
        let distinct: BTreeSet<&[u8]> = pieces.iter().copied().collect();
        assert_eq!(distinct.len(), pieces.len(), "blocks of {block}");
    }
}

#[test]
fn workers_of_different_drives_do_not_write_alike_at_the_same_place() {
    // Both began with the same sequence and the same buffers.
    let mut v = writes(Data::Incompressible, 4096, 1000);
    v.streams[0].access = Access::Same;
    v.streams[0].threads = 2;
    v.streams[0].stop = for_time(units::Nanos::millis(5));
    let shared = engine::Shared::new(&v.streams);
    let by_drive: Vec<Vec<Vec<u8>>> = v
        .workers()
        .into_iter()
        .map(|id| {
            let mut device = memory(&v);
            device.contents = Some(Vec::new());
            let mut drive =
                engine::Drive::new(&v, &[id], &shared, engine::Limits::default()).unwrap();
            drive.prepare(&mut device);
            drive.run(&mut device, units::Instant::ZERO, &mut ()).unwrap();
            device.contents.unwrap()
        })
        .collect();
    let all: Vec<u8> = by_drive.into_iter().flatten().flatten().collect();
    assert_eq!(repeats(&all), 0);
}

#[test]
fn a_compressible_share_is_zeros_and_the_rest_random() {
    for share in [0.0, 0.25, 0.5, 0.9] {
        for v in
            [4096, 65536, 1 << 20].map(|b| writes(Data::Compressible { random_share: share }, b, 4))
        {
            for v in [v.clone(), mixed_with_reads(v)] {
                for piece in contents(&v).iter().flat_map(|c| c.chunks(4096)) {
                    let random = (4096.0 * share) as usize;
                    assert!(piece[random.max(16)..].iter().all(|&b| b == 0), "share {share}");
                    if random > 0 {
                        let zeros = piece[..random].iter().filter(|&&b| b == 0).count();
                        assert!(
                            zeros < 16 + random / 64,
                            "share {share}: {zeros} zeros of {random}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn zeros_and_patterns_are_what_they_say_also_after_reads_into_the_same_buffers() {
    // Reads left what they found in the buffer, and the next write wrote that.
    for (data, byte) in [(Data::Zero, 0), (Data::Pattern { byte: 0xa5 }, 0xa5)] {
        let plain = writes(data, 8192, 100);
        for v in [plain.clone(), mixed_with_reads(plain)] {
            let mut device = memory(&v);
            // What was there before.
            let fill = writes(Data::Incompressible, 8192, 512);
            let fill = Visit {
                streams: vec![Stream {
                    access: Access::Sequential { shared: true },
                    ..fill.streams[0].clone()
                }],
                ..fill
            };
            play(&fill, &mut device);
            device.contents = Some(Vec::new());
            play(&v, &mut device);
            let contents = device.contents.unwrap();
            assert!(contents.len() > 30);
            assert!(contents.iter().flatten().all(|&b| b == byte), "{data:?}");
        }
    }
}

#[test]
fn reads_alone_leave_the_buffers_to_the_device() {
    let v = visit(vec![stream()]);
    let mut device = memory(&v);
    device::Device::buffer(&mut device, device::Slot(0)).fill(7);
    let shared = engine::Shared::new(&v.streams);
    let drive = engine::Drive::new(&v, &v.workers(), &shared, engine::Limits::default()).unwrap();
    drive.prepare(&mut device);
    assert!(device::Device::buffer(&mut device, device::Slot(0)).iter().all(|&b| b == 7));
}
