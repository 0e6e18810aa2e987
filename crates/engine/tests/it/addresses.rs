//! Each way to address has its law.

use std::collections::BTreeMap;

use device::{Device, Op};
use engine::Visit;
use stats::random::Permutation;
use suite::model::{Access, Operation, Region, ReplayRequest, Spread, Stream, Zone};
use units::Bytes;

use crate::help::*;

/// A visit of `n` requests over `blocks` blocks.
fn over(access: Access, blocks: u64, n: u64, threads: u32) -> Visit {
    let mut s = Stream { access, threads, stop: for_operations(n), ..stream() };
    s.region.length = Bytes::new(blocks * BLOCK);
    Visit { file_size: Bytes::new(blocks * BLOCK), ..visit(vec![s]) }
}

fn blocks_of(v: &Visit) -> Vec<u64> {
    let mut device = null(v);
    play(v, &mut device);
    device.blocks()
}

fn counts(blocks: &[u64], of: u64) -> Vec<u64> {
    let mut counts = vec![0; of as usize];
    for &block in blocks {
        counts[block as usize] += 1;
    }
    counts
}

fn sorted(mut blocks: Vec<u64>) -> Vec<u64> {
    blocks.sort_unstable();
    blocks
}

#[test]
fn uniform_is_uniform_for_one_worker_and_for_many() {
    for (threads, depth) in [(1, 1), (4, 8)] {
        let mut v = over(Access::Uniform, 200, 100_000, threads);
        v.streams[0].queue_depth = depth;
        let counts = counts(&blocks_of(&v), 200);
        let chi = chi_square(&counts, |_| 500.0);
        let limit = chi_limit(199);
        assert!(chi < limit, "chi-square {chi:.1}, one-in-a-million limit {limit:.1}, seed 11");
        // Pairs, too: neither neighbours in time nor workers follow each other.
        let pairs: Vec<u64> =
            blocks_of(&v).windows(2).map(|w| w[0] / 20 * 10 + w[1] / 20).collect();
        let mut table = vec![0; 100];
        for pair in &pairs {
            table[*pair as usize] += 1;
        }
        let chi = chi_square(&table, |_| pairs.len() as f64 / 100.0);
        assert!(chi < chi_limit(99), "pairs: chi-square {chi:.1}, seed 11");
    }
}

#[test]
fn offsets_are_aligned_inside_the_region_and_reach_both_ends() {
    for (align, length) in [(512, 4096), (4096, 4096), (4096, 12288), (512, 512), (8192, 4096)] {
        let mut s = stream();
        s.mix.classes = vec![class(Operation::Write, 1.0, length)];
        s.align = Bytes::new(align);
        s.region.start = Bytes::new(12 * 1024);
        s.region.length = Bytes::new(16 * 4096);
        s.stop = for_operations(4000);
        let v = visit(vec![s]);
        let mut device = null(&v);
        play(&v, &mut device);
        let from_start: Vec<u64> =
            device.log.iter().map(|e| e.request.offset.get() - 12 * 1024).collect();
        assert!(from_start.iter().all(|o| o % align == 0 && o + length <= 16 * 4096));
        let last = (16 * 4096 - length) / align * align;
        assert_eq!(from_start.iter().min(), Some(&0), "align {align}, length {length}");
        assert_eq!(from_start.iter().max(), Some(&last), "align {align}, length {length}");
    }
}

/// Every kind, on files whose ends fall in the middle of blocks.
#[test]
fn no_request_crosses_the_end_of_its_file_or_leaves_the_region() {
    let kinds = [
        Access::Uniform,
        Access::UniformOnce,
        Access::Permutation,
        Access::Zipf { theta: 0.99 },
        Access::Sequential { shared: true },
        Access::Sequential { shared: false },
        Access::Backward { shared: true },
        Access::Backward { shared: false },
        Access::Stride { step: 3 },
        Access::Staggered,
        Access::Same,
        Access::Mixed { random_share: 0.3 },
        Access::Hot {
            zones: vec![
                Zone { space_share: 0.1, access_share: 0.9 },
                Zone { space_share: 0.9, access_share: 0.1 },
            ],
        },
    ];
    for access in kinds {
        for start in [0, 8192, 10_240, 4096 * 7] {
            let mut s = Stream { access: access.clone(), threads: 2, ..stream() };
            s.mix.classes =
                vec![class(Operation::Read, 1.0, 4096), class(Operation::Write, 1.0, 512)];
            s.region = Region {
                start: Bytes::new(start),
                length: Bytes::new(5 * 10_240 - start),
                spread: Spread::Concatenated,
            };
            s.stop = for_operations(12);
            s.stop.operations = Some(300);
            if access == Access::Staggered {
                s.stop = for_operations(2);
            }
            let v = Visit { files: 5, file_size: Bytes::new(10_240), ..visit(vec![s]) };
            let mut device = memory(&v);
            let played = play(&v, &mut device);
            assert!(!played.result.failed, "{access:?} from {start}: {:?}", played.warnings());
            for event in &device.log {
                let r = event.request;
                let linear = u64::from(r.file.0) * 10_240 + r.offset.get();
                assert!(r.offset.get() + u64::from(r.length) <= 10_240, "{access:?}: {r:?}");
                assert!(linear >= start, "{access:?} from {start}: {r:?}");
                assert_eq!(r.offset.get() % 512, 0, "{access:?}: {r:?}");
            }
        }
    }
}

#[test]
fn uniform_reaches_every_block_of_every_file_alike() {
    let mut s = Stream { stop: for_operations(40_000), ..stream() };
    s.region.length = Bytes::new(40 * BLOCK);
    let v = Visit { files: 4, file_size: Bytes::new(10 * BLOCK), ..visit(vec![s]) };
    let mut device = null(&v);
    play(&v, &mut device);
    let blocks: Vec<u64> = device
        .log
        .iter()
        .map(|e| u64::from(e.request.file.0) * 10 + e.request.offset.get() / BLOCK)
        .collect();
    let chi = chi_square(&counts(&blocks, 40), |_| 1000.0);
    assert!(chi < chi_limit(39), "chi-square {chi:.1}, seed 11");
}

#[test]
fn own_sequential_cursors_start_at_equal_parts_and_wrap() {
    let v = over(Access::Sequential { shared: false }, 12, 36, 3);
    let blocks = blocks_of(&v);
    for worker in 0..3u64 {
        let own: Vec<u64> = blocks.iter().skip(worker as usize).step_by(3).copied().collect();
        let wanted: Vec<u64> = (0..12).map(|i| (worker * 4 + i) % 12).collect();
        assert_eq!(own, wanted, "worker {worker}");
    }
}

#[test]
fn a_shared_sequential_cursor_covers_everything_once_across_workers_and_wraps() {
    let blocks = blocks_of(&over(Access::Sequential { shared: true }, 100, 250, 7));
    let wanted: Vec<u64> = (0..250).map(|i| i % 100).collect();
    assert_eq!(blocks, wanted);
}

#[test]
fn a_shared_cursor_wraps_to_the_beginning_with_blocks_longer_than_the_alignment() {
    // 17 units, blocks of 2: a pass is 8 blocks; the next one began at unit 1.
    for backward in [false, true] {
        let access = match backward {
            false => Access::Sequential { shared: true },
            true => Access::Backward { shared: true },
        };
        let mut v = over(access, 16, 24, 2);
        v.streams[0].mix.classes = vec![class(Operation::Read, 1.0, 2 * BLOCK)];
        let pass: Vec<u64> = (0..8).map(|i| if backward { 14 - 2 * i } else { 2 * i }).collect();
        assert_eq!(blocks_of(&v), pass.repeat(3));
    }
}

#[test]
fn own_sequential_in_blocks_longer_than_the_alignment_wraps_to_the_beginning() {
    let mut v = over(Access::Sequential { shared: false }, 17, 16, 1);
    v.streams[0].mix.classes = vec![class(Operation::Read, 1.0, 2 * BLOCK)];
    let pass: Vec<u64> = (0..8).map(|i| 2 * i).collect();
    assert_eq!(blocks_of(&v), pass.repeat(2));
}

#[test]
fn backward_is_sequential_reversed() {
    let forward = blocks_of(&over(Access::Sequential { shared: false }, 50, 150, 1));
    let backward = blocks_of(&over(Access::Backward { shared: false }, 50, 150, 1));
    assert_eq!(backward, forward.iter().map(|b| 49 - b).collect::<Vec<_>>());
    let shared = blocks_of(&over(Access::Backward { shared: true }, 50, 150, 3));
    assert_eq!(shared, backward);
}

#[test]
fn a_stride_meets_every_block_once_before_any_again() {
    for (blocks, step) in [(100, 10), (100, 7), (10, 3), (10, 10), (10, 15), (1, 4), (12, 1)] {
        let seen = blocks_of(&over(Access::Stride { step }, blocks, 2 * blocks, 1));
        for pass in seen.chunks(blocks as usize) {
            assert_eq!(sorted(pass.to_vec()), (0..blocks).collect::<Vec<_>>(), "step {step}");
        }
        if step < blocks {
            assert_eq!(seen[1] - seen[0], step);
        }
    }
}

#[test]
fn staggered_is_evenly_spaced() {
    for (blocks, n, threads) in [(100, 10, 1), (100, 7, 3), (16, 16, 2), (1000, 1, 1)] {
        let seen = blocks_of(&over(Access::Staggered, blocks, n, threads));
        let wanted: Vec<u64> = (0..n).map(|k| k * blocks / n).collect();
        assert_eq!(seen, wanted);
    }
}

#[test]
fn same_is_the_same() {
    assert!(blocks_of(&over(Access::Same, 100, 50, 2)).iter().all(|&b| b == 0));
}

#[test]
fn once_meets_every_block_once_before_any_again_across_workers_in_a_new_order_each_pass() {
    for (blocks, threads, depth) in [(97, 1, 1), (128, 4, 3), (1, 1, 1)] {
        let mut v = over(Access::UniformOnce, blocks, 3 * blocks, threads);
        v.streams[0].queue_depth = depth;
        let seen = blocks_of(&v);
        let passes: Vec<&[u64]> = seen.chunks(blocks as usize).collect();
        for pass in &passes {
            assert_eq!(sorted(pass.to_vec()), (0..blocks).collect::<Vec<_>>());
        }
        if blocks > 1 {
            assert_ne!(passes[0], passes[1]);
            assert_ne!(passes[1], passes[2]);
        }
    }
}

#[test]
fn a_permutation_is_the_same_for_every_worker_pass_and_visit() {
    let mut v = over(Access::Permutation, 60, 360, 3);
    let seen = blocks_of(&v);
    let by_worker = |w: usize| seen.iter().skip(w).step_by(3).copied().collect::<Vec<_>>();
    let (first, rest) = (by_worker(0), [by_worker(1), by_worker(2)]);
    assert_eq!(sorted(first[..60].to_vec()), (0..60).collect::<Vec<_>>());
    assert_eq!(first[..60], first[60..], "pass after pass");
    assert!(rest.iter().all(|other| *other == first), "worker after worker");
    v.seed += 1;
    assert_eq!(blocks_of(&v), seen, "visit after visit");
    v.run_seed += 1;
    assert_ne!(blocks_of(&v), seen, "another run");
}

#[test]
fn zipf_has_its_weights_on_scattered_blocks() {
    for theta in [0.5, 0.99, 1.2] {
        let (n, draws) = (50u64, 100_000);
        let v = over(Access::Zipf { theta }, n, draws, 2);
        let seen = counts(&blocks_of(&v), n);
        let total: f64 = (1..=n).map(|r| (r as f64).powf(-theta)).sum();
        let scatter = Permutation::new(n, v.run_seed);
        let by_rank: Vec<u64> = (0..n).map(|r| seen[scatter.at(r) as usize]).collect();
        let weight = |i: usize| draws as f64 * ((i + 1) as f64).powf(-theta) / total;
        let chi = chi_square(&by_rank, weight);
        assert!(chi < chi_limit(49), "theta {theta}: chi-square {chi:.1}, seed 11");
    }
}

#[test]
fn hot_zones_get_their_shares_and_are_uniform_inside() {
    let zones = vec![
        Zone { space_share: 0.1, access_share: 0.6 },
        Zone { space_share: 0.25, access_share: 0.0 },
        Zone { space_share: 0.65, access_share: 0.4 },
    ];
    // 101 blocks, so that the zones' ends fall between blocks: 10, 25 and 66 of them.
    let n = 100_000;
    let seen = counts(&blocks_of(&over(Access::Hot { zones }, 101, n, 1)), 101);
    let shares = [(0usize, 10usize, 0.6), (10, 35, 0.0), (35, 101, 0.4)];
    for (from, to, share) in shares {
        let zone = &seen[from..to];
        let sum: u64 = zone.iter().sum();
        assert_binomial(sum, n, share, "zone");
        if share > 0.0 {
            let chi = chi_square(zone, |_| sum as f64 / zone.len() as f64);
            assert!(chi < chi_limit(zone.len() - 1), "zone from {from}: chi-square {chi:.1}");
        }
    }
}

#[test]
fn mixed_jumps_with_its_share_and_else_goes_on() {
    for share in [0.0, 0.2, 1.0] {
        let n = 20_000;
        let seen = blocks_of(&over(Access::Mixed { random_share: share }, 1000, n, 1));
        let jumps = seen.windows(2).filter(|w| w[1] != (w[0] + 1) % 1000).count() as u64;
        // One jump in a thousand lands where it would have gone anyway.
        assert_binomial(jumps, n - 1, share * 0.999, "jumps");
    }
}

#[test]
fn a_replay_is_played_once_in_order_by_all_workers_together() {
    let request = |op, offset: u64, length: u64| ReplayRequest {
        op,
        offset: Bytes::new(offset),
        length: Bytes::new(length),
    };
    let list = vec![
        request(Operation::Write, 8192, 4096),
        request(Operation::Fsync, 0, 0),
        request(Operation::Read, 512, 512),
        request(Operation::Trim, 4096, 8192),
        request(Operation::Read, 0, 65536),
    ];
    for (threads, depth) in [(1, 1), (3, 1), (1, 4)] {
        let mut s = Stream {
            access: Access::Replay { requests: list.clone() },
            threads,
            queue_depth: depth,
            stop: for_operations(5),
            ..stream()
        };
        s.mix.classes = list
            .iter()
            .map(|r| suite::model::Class {
                weight: 1.0,
                op: r.op,
                block_size: r.length,
                line: None,
            })
            .collect();
        let v = visit(vec![s]);
        let mut device = memory(&v);
        let played = play(&v, &mut device);
        assert_eq!(played.total(), 5);
        let seen: Vec<_> = device
            .log
            .iter()
            .map(|e| (e.request.op, e.request.offset.get(), e.request.length))
            .collect();
        let wanted = [
            (Op::Write, 8192, 4096),
            (Op::Fsync, 0, 0),
            (Op::Read, 512, 512),
            (Op::Trim, 4096, 8192),
            (Op::Read, 0, 65536),
        ];
        assert_eq!(seen, wanted);
    }
}

#[test]
fn a_region_smaller_than_a_block_is_refused() {
    let mut s = stream();
    s.region.length = Bytes::new(4095);
    let v = visit(vec![s]);
    let shared = engine::Shared::new(&v.streams);
    let refused = engine::Drive::new(&v, &v.workers(), &shared, engine::Limits::default());
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("smaller than one block"), "{text}");
}

#[test]
fn two_workers_do_not_draw_the_same_numbers() {
    let v = over(Access::Uniform, 1 << 20, 400, 2);
    let v = Visit { file_size: Bytes::gib(4), ..v };
    let seen = blocks_of(&v);
    let distinct: BTreeMap<u64, ()> = seen.iter().map(|&b| (b, ())).collect();
    assert!(distinct.len() > 390, "{} of 400 distinct", distinct.len());
    let _ = null(&v).now();
}
