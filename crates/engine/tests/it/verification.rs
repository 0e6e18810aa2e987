//! Reads under verification report what is wrong, all of it, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use device::{
    Clock, Completion, Device, DeviceError, Fault, FaultRange, FaultRule, Faulty, Full, Op,
    Request, Slot, VirtualClock,
};
use engine::verify::{Found, SECTOR, Verifier};
use engine::{Limits, Shared, Visit};
use proptest::prelude::*;
use stats::Random;
use suite::model::{Access, Operation, Stream};
use units::{ByteOffset, Bytes, Instant, Nanos};

use crate::help::*;

const FILE: u64 = 32 * BLOCK;

fn verified(streams: Vec<Stream>, files: u32, unit: u64) -> Visit {
    let verifier = Verifier::new(99, false, Bytes::new(unit), files, Bytes::new(FILE));
    let mut v = visit(streams);
    (v.files, v.file_size, v.verify) = (files, Bytes::new(FILE), Some(Arc::new(verifier)));
    for s in &mut v.streams {
        s.region.length = Bytes::new(FILE * u64::from(files));
    }
    v
}

/// The same files and verifier, another load.
fn then(v: &Visit, mut s: Stream) -> Visit {
    s.region.length = Bytes::new(FILE * u64::from(v.files));
    Visit { streams: vec![s], seed: v.seed + 1, ..v.clone() }
}

/// Everything once, by all workers together.
fn sequential(op: Operation, threads: u32, depth: u32, files: u32) -> Stream {
    let mut s = Stream {
        access: Access::Sequential { shared: true },
        threads,
        queue_depth: depth,
        stop: for_operations(32 * u64::from(files)),
        ..stream()
    };
    ops(&mut s, &[(op, 1.0)]);
    s
}

fn reported(played: &Played) -> (BTreeSet<(u32, u64)>, u64) {
    let all = played.workers.iter().flat_map(|w| &w.mismatches);
    let dropped = played.workers.iter().map(|w| w.mismatches_dropped).sum();
    (all.map(|m| (m.file, m.offset.get())).collect(), dropped)
}

fn assert_clean(played: &Played, what: &str) {
    assert_eq!(reported(played), (BTreeSet::new(), 0), "{what}: {:?}", played.warnings());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn exactly_the_corrupted_sectors_are_reported(
        planted in prop::collection::btree_set((0u32..3, 0..FILE / SECTOR as u64), 0..8),
        bits in 1u32..20,
        (threads, depth) in (1u32..4, 1u32..5),
        in_flight in any::<bool>(),
    ) {
        let rules: Vec<FaultRule> = planted
            .iter()
            .map(|&(file, sector)| {
                let what = Fault::CorruptBits(bits);
                // At rest: by the write. In flight: by the read.
                let mut rule = FaultRule::new(what).on(if in_flight { Op::Read } else { Op::Write });
                let start = Bytes::new(sector * SECTOR as u64);
                let length = Bytes::new(SECTOR as u64);
                rule.range = Some(FaultRange { file: Some(file), start, length });
                rule
            })
            .collect();
        let writes = verified(vec![sequential(Operation::Write, threads, depth, 3)], 3, BLOCK);
        let mut device = Faulty::new(memory(&writes), &rules, 5).unwrap();
        assert_clean(&play(&writes, &mut device), "writes");
        let reads = then(&writes, sequential(Operation::Read, threads, depth, 3));
        let played = play(&reads, &mut device);
        let blocks: BTreeSet<_> = planted.iter().map(|(f, s)| (f, s / 8)).collect();
        let wanted: BTreeSet<(u32, u64)> =
            planted.iter().map(|&(f, s)| (f, s * SECTOR as u64)).collect();
        let (found, dropped) = reported(&played);
        // Only the first rule that matches a request has it: with two in one block, one strikes.
        if blocks.len() == planted.len() {
            prop_assert_eq!(dropped, 0);
            prop_assert_eq!(found, wanted);
        } else {
            prop_assert!(found.is_subset(&wanted));
            prop_assert_eq!(found.len(), blocks.len());
        }
        prop_assert_eq!(played.codes().iter().all(|c| *c == "verify-mismatch"), true);
    }

    #[test]
    fn no_load_on_a_sound_device_raises_a_false_alarm(
        seed: u64,
        (reads, writes, trims) in (0.1f64..1.0, 0.1f64..1.0, 0.0f64..0.5),
        sizes in prop::sample::subsequence(vec![512u64, 1024, 4096, 12288], 1..4),
        (threads, depth, files) in (1u32..5, 1u32..7, 1u32..4),
        access in prop::sample::select(vec![
            Access::Uniform,
            Access::Same,
            Access::Sequential { shared: true },
            Access::Zipf { theta: 1.2 },
            Access::UniformOnce,
        ]),
        align in prop::sample::select(vec![512u64, 1024, 4096]),
        start in prop::sample::select(vec![0u64, 512, 4096]),
    ) {
        let unit = sizes.iter().copied().chain([align]).reduce(gcd).unwrap();
        let fill = verified(vec![sequential(Operation::Write, 2, 3, files)], files, unit);
        let mut s = Stream { access, threads, queue_depth: depth, ..stream() };
        s.mix.classes = sizes
            .iter()
            .flat_map(|&size| {
                let trim = (trims > 0.1).then(|| class(Operation::Trim, trims, size));
                [class(Operation::Read, reads, size), class(Operation::Write, writes, size)]
                    .into_iter()
                    .chain(trim)
            })
            .collect();
        s.align = Bytes::new(align);
        s.stop = for_operations(600);
        let mut load = then(&fill, s);
        load.seed = seed;
        load.streams[0].region.start = Bytes::new(start);
        load.streams[0].region.length = Bytes::new(if seed % 2 == 0 { 8 * BLOCK } else {
            FILE * u64::from(files) - start
        });
        let mut device = Piecemeal::new(files, depth_of(&fill).max(depth_of(&load)), seed);
        assert_clean(&play(&fill, &mut device), "fill");
        let played = play(&load, &mut device);
        prop_assert_eq!(played.total(), 600);
        assert_clean(&played, "load");
        // And what is left is sound.
        let after = then(&load, sequential(Operation::Read, 2, 2, files));
        assert_clean(&play(&after, &mut device), "after");
    }
}

fn depth_of(v: &Visit) -> u32 {
    depth(v).max(8)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// As unruly as a device may be: whatever is in flight moves in pieces of half a sector, in any
/// order, each request's between the others'. Discards leave zeros or what was there.
struct Piecemeal {
    clock: VirtualClock,
    files: Vec<Vec<u8>>,
    buffers: Vec<Vec<u8>>,
    flying: Vec<(Request, Vec<usize>)>,
    random: Random,
}

const PIECE: usize = SECTOR / 2;

impl Piecemeal {
    fn new(files: u32, slots: u32, seed: u64) -> Self {
        Self {
            clock: VirtualClock::default(),
            files: vec![vec![0; FILE as usize]; files as usize],
            buffers: vec![vec![0; 12288]; slots as usize],
            flying: Vec::new(),
            random: Random::new(seed),
        }
    }

    fn step(&mut self) {
        let which = self.random.below(self.flying.len() as u64) as usize;
        let (request, left) = &mut self.flying[which];
        let next = self.random.below(left.len() as u64) as usize;
        let piece = left.swap_remove(next);
        let at = request.offset.get() as usize + piece * PIECE;
        let stored = &mut self.files[request.file.0 as usize][at..at + PIECE];
        let buffer = &mut self.buffers[request.slot.0 as usize][piece * PIECE..][..PIECE];
        match request.op {
            Op::Read => buffer.copy_from_slice(stored),
            Op::Write => stored.copy_from_slice(buffer),
            Op::Trim if self.random.below(2) == 0 => stored.fill(0),
            _ => {}
        }
    }
}

impl Device for Piecemeal {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        self.flying.push((request, (0..request.length as usize / PIECE).collect()));
        Ok(())
    }
    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let before = done.len();
        while done.len() < before + min && !self.flying.is_empty() && done.len() < done.capacity() {
            for _ in 0..self.random.below(40) {
                if self.flying.iter().all(|(_, left)| !left.is_empty()) {
                    self.step();
                }
            }
            self.clock.wait_until(self.clock.now() + Nanos::micros(1));
            while done.len() < done.capacity() {
                let ready = self.flying.iter().position(|(_, left)| left.is_empty());
                let Some(index) = ready else { break };
                let (request, _) = self.flying.remove(index);
                let bytes = if request.op.moves_data() { request.length } else { 0 };
                done.push(Completion::moved(request.slot, bytes));
            }
        }
        if self.flying.is_empty() && done.len() < before + min && until != Instant::MAX {
            self.clock.wait_until(until);
        }
        Ok(())
    }
    fn now(&self) -> Instant {
        self.clock.now()
    }
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        &mut self.buffers[slot.0 as usize]
    }
}

/// What a device of ill will does to one write, in order of the writes.
#[derive(Clone, Copy, Debug)]
enum Ill {
    /// Says it is done and does nothing.
    Drops,
    /// Writes it elsewhere.
    Misdirects(u64),
}

struct IllWilled<D> {
    inner: D,
    writes: u64,
    victim: u64,
    ill: Ill,
    dropped: BTreeMap<Slot, u32>,
    /// What was dropped or misdirected.
    did: Option<Request>,
}

impl<D: Device> Device for IllWilled<D> {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        if request.op != Op::Write {
            return self.inner.submit(request);
        }
        self.writes += 1;
        if self.writes != self.victim {
            return self.inner.submit(request);
        }
        self.did = Some(request);
        match self.ill {
            Ill::Misdirects(to) => {
                self.inner.submit(Request { offset: ByteOffset::new(to), ..request })
            }
            Ill::Drops => {
                self.dropped.insert(request.slot, request.length);
                self.inner.submit(Request { op: Op::Fsync, ..request })
            }
        }
    }
    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let before = done.len();
        self.inner.reap(min, until, done)?;
        for completion in &mut done[before..] {
            if let Some(length) = self.dropped.remove(&completion.slot) {
                *completion = Completion::moved(completion.slot, length);
            }
        }
        Ok(())
    }
    fn now(&self) -> Instant {
        self.inner.now()
    }
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.inner.buffer(slot)
    }
}

fn ill_willed(
    v: &Visit,
    victim: u64,
    ill: Ill,
) -> IllWilled<Recording<device::Memory<VirtualClock>>> {
    IllWilled { inner: memory(v), writes: 0, victim, ill, dropped: BTreeMap::new(), did: None }
}

#[test]
fn a_lost_write_is_found_as_old_data_and_as_missing_data() {
    for (passes, what) in [(1, "missing"), (2, "old")] {
        let mut writes = sequential(Operation::Write, 1, 1, 2);
        writes.stop = for_operations(64 * passes);
        let v = verified(vec![writes], 2, BLOCK);
        // The eleventh block of the last pass.
        let mut device = ill_willed(&v, 64 * (passes - 1) + 11, Ill::Drops);
        assert_clean(&play(&v, &mut device), "writes");
        let played = play(&then(&v, sequential(Operation::Read, 1, 1, 2)), &mut device);
        let (found, dropped) = reported(&played);
        let lost = device.did.unwrap();
        assert_eq!((found.len() as u64 + dropped, lost.offset.get()), (8, 10 * BLOCK), "{what}");
        assert_eq!(found.first(), Some(&(0, 10 * BLOCK)));
        for m in played.workers.iter().flat_map(|w| &w.mismatches) {
            match what {
                "old" => {
                    assert!(matches!(m.found, Found::Stale { sequence: 11, acknowledged: 75 }))
                }
                _ => assert!(matches!(m.found, Found::NotOurs([0, 0, 0, 0, 0, 0, 0, 0]))),
            }
        }
    }
}

#[test]
fn a_misdirected_write_is_found_where_it_went_and_where_it_should_be() {
    let mut writes = sequential(Operation::Write, 1, 1, 1);
    writes.stop = for_operations(64);
    let v = verified(vec![writes], 1, BLOCK);
    // Block 20 of the second pass goes to block 3.
    let mut device = ill_willed(&v, 32 + 21, Ill::Misdirects(3 * BLOCK));
    assert_clean(&play(&v, &mut device), "writes");
    let played = play(&then(&v, sequential(Operation::Read, 1, 1, 1)), &mut device);
    let found: BTreeMap<u64, &Found> =
        played.workers[0].mismatches.iter().map(|m| (m.offset.get() / BLOCK, &m.found)).collect();
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [3, 20]);
    let Found::Misplaced { file: 0, offset, run: 99 } = found[&3] else { panic!("{found:?}") };
    assert_eq!(offset.get() / BLOCK, 20);
    assert!(matches!(found[&20], Found::Stale { sequence: 21, acknowledged: 53 }), "{found:?}");
    assert_eq!(played.workers[0].mismatches_dropped, 8);
    assert!(played.warnings()[0].contains("written to file 0"), "{:?}", played.warnings());
}

#[test]
fn data_of_another_run_is_accepted_only_where_this_run_has_not_written() {
    let v = verified(vec![sequential(Operation::Write, 1, 1, 1)], 1, BLOCK);
    let mut device = memory(&v);
    play(&v, &mut device);
    for (accept, alarms) in [(true, 0), (false, 32 * 8)] {
        let other = Verifier::new(7, accept, Bytes::new(BLOCK), 1, Bytes::new(FILE));
        let mut read = then(&v, sequential(Operation::Read, 1, 1, 1));
        read.verify = Some(Arc::new(other));
        let (found, dropped) = reported(&play(&read, &mut device));
        assert_eq!(found.len() as u64 + dropped, alarms, "accept: {accept}");
    }
}

#[test]
fn a_trimmed_block_reads_as_anything_without_alarm() {
    // Zeros where something was discarded were reported as lost data.
    let v = verified(vec![sequential(Operation::Write, 1, 1, 1)], 1, BLOCK);
    let mut device = memory(&v);
    play(&v, &mut device);
    let trims = then(&v, sequential(Operation::Trim, 1, 1, 1));
    play(&trims, &mut device);
    assert_clean(&play(&then(&v, sequential(Operation::Read, 1, 1, 1)), &mut device), "zeros");
}

#[test]
fn a_failed_write_may_leave_anything() {
    let v = verified(vec![sequential(Operation::Write, 1, 1, 1)], 1, BLOCK);
    let short = FaultRule::new(Fault::Short(Bytes::new(700))).nth(5);
    let mut device = Faulty::new(memory(&v), &[short.on(Op::Write)], 1).unwrap();
    let limits = Limits { failures: 10, ..Limits::default() };
    assert_clean(&play_with(&v, &mut device, limits, &mut ()), "writes");
    assert_clean(&play(&then(&v, sequential(Operation::Read, 1, 1, 1)), &mut device), "reads");
}

#[test]
fn verification_covers_paced_and_mixed_loads() {
    let mut s = Stream { queue_depth: 4, ..sequential(Operation::Read, 2, 4, 2) };
    ops(&mut s, &[(Operation::Read, 1.0), (Operation::Write, 1.0)]);
    s.pacing =
        suite::model::Pacing::Open { rate: 50_000.0, arrivals: suite::model::Arrivals::Poisson };
    s.access = Access::Uniform;
    s.stop = for_operations(5000);
    let fill = verified(vec![sequential(Operation::Write, 1, 8, 2)], 2, BLOCK);
    let load = then(&fill, s);
    let rule = FaultRule::new(Fault::CorruptBits(3)).on(Op::Read).nth(100);
    let mut device = Faulty::new(memory(&fill), &[rule], 1).unwrap();
    play(&fill, &mut device);
    let played = play(&load, &mut device);
    assert_eq!(played.total(), 5000);
    assert!(reported(&played).0.len() <= 3, "{:?}", played.warnings());
}

/// Files in memory that several threads' devices share.
struct Common {
    clock: VirtualClock,
    store: Arc<Mutex<Vec<u8>>>,
    buffers: Vec<Vec<u8>>,
    done: Vec<Completion>,
}

impl Device for Common {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        let at =
            request.offset.get() as usize..request.offset.get() as usize + request.length as usize;
        let buffer = &mut self.buffers[request.slot.0 as usize][..request.length as usize];
        let mut store = self.store.lock().unwrap();
        match request.op {
            Op::Read => buffer.copy_from_slice(&store[at]),
            Op::Write => store[at].copy_from_slice(buffer),
            _ => {}
        }
        self.done.push(Completion::moved(request.slot, request.length));
        Ok(())
    }
    fn reap(
        &mut self,
        _min: usize,
        _until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        self.clock.wait_until(self.clock.now() + Nanos::micros(1));
        let room = done.capacity() - done.len();
        done.extend(self.done.drain(..self.done.len().min(room)));
        Ok(())
    }
    fn now(&self) -> Instant {
        self.clock.now()
    }
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        &mut self.buffers[slot.0 as usize]
    }
}

#[test]
fn threads_that_write_and_read_the_same_blocks_raise_no_false_alarm() {
    // A write took its number first and was marked after it was made up: another thread's write
    // that came and went in between had the larger number, and made this one look old.
    let mut s = Stream { threads: 3, access: Access::Same, ..stream() };
    s.mix.classes = vec![
        class(Operation::Write, 2.0, 65536),
        class(Operation::Write, 2.0, 512),
        class(Operation::Read, 2.0, 512),
    ];
    s.align = Bytes::new(512);
    s.stop = for_operations(20_000);
    let fill = verified(vec![sequential(Operation::Write, 1, 1, 1)], 1, 512);
    let store = Arc::new(Mutex::new(vec![0; FILE as usize]));
    let open = || Common {
        clock: VirtualClock::default(),
        store: Arc::clone(&store),
        buffers: vec![vec![0; 65536]; 4],
        done: Vec::new(),
    };
    assert_clean(&play(&fill, &mut open()), "fill");
    let v = then(&fill, s);
    let shared = Shared::new(&v.streams);
    let mismatches: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = v
            .workers()
            .into_iter()
            .map(|id| {
                let (v, shared, mut device) = (&v, &shared, open());
                scope.spawn(move || {
                    let limits = Limits::default();
                    play_shared(v, &[id], shared, &mut device, limits, &mut ()).workers
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).flat_map(|w| w.mismatches).collect()
    });
    assert_eq!(mismatches, []);
}
