//! The event mode against the tables, against what is solved, and against the laws of queues.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "tables of errors, for those who ask with --nocapture")]

#[path = "event/closed.rs"]
mod closed;

use array::{
    Addressing, ArrayDesign, ArrayOp, ArrayRequest, ArrayState, Component, Fill, Load, Model,
    Simulation, SimulationError, SimulationOptions, SlotsTaken, builtin,
};
use closed::{Loop, begin, loaded, play};
use proptest::prelude::*;
use serde::Deserialize;
use units::Bytes;

#[derive(Deserialize)]
struct Tables {
    table: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    name: String,
    array: String,
    operation: String,
    cache: Fill,
    misses: Vec<(Bytes, u32, String)>,
    cells: Vec<(Bytes, f64, f64, f64, bool)>,
}

/// Rate of the event mode under a load, over that which is solved.
fn ratio(design: &ArrayDesign, load: &Load, requests: u32) -> f64 {
    let solved = Model::without_ranges(design.clone()).answer(load).unwrap();
    let played = loaded(design, load, requests);
    println!(
        "{:>9} x {:>3}, {:.0} % read: {:>9.0} solved {:>9.0}  {:+.1} %",
        load.block.exact(),
        load.threads,
        load.read_share * 100.0,
        played.rate,
        solved.rate,
        (played.rate / solved.rate - 1.0) * 100.0
    );
    played.rate / solved.rate
}

fn reads(block: Bytes, threads: u32, size: Bytes) -> Load {
    Load::random_reads(block, threads, size)
}

/// Published cells that are not listed as misses: mean error of the event mode.
fn table_error(name: &str, requests: u32, from: Bytes) -> f64 {
    let all: Tables = toml::from_str(include_str!("reproduce/data/bm-flash.toml")).unwrap();
    let table = all.table.into_iter().find(|table| table.name == name).unwrap();
    let design = builtin::design(&table.array).unwrap();
    let read_share = if table.operation == "read" { 1.0 } else { 0.0 };
    let mut errors = Vec::new();
    for &(block, one, ten, forty, _) in table.cells.iter().filter(|cell| cell.0 >= from) {
        for (threads, published) in [(1, one), (10, ten), (40, forty)] {
            let is_miss = table.misses.iter().any(|miss| (miss.0, miss.1) == (block, threads));
            if published < 0.0 || is_miss {
                continue;
            }
            let load =
                Load { read_share, cache: table.cache, ..reads(block, threads, Bytes::gib(4)) };
            let played = loaded(&design, &load, requests);
            let error = played.rate / published - 1.0;
            let solved = Model::without_ranges(design.clone()).answer(&load).unwrap().rate;
            println!(
                "{name} {:>7} x {threads:>2}: {published:>6} {:>8.0} {:>+6.1} %, solved {solved:>8.0}",
                block.exact(),
                played.rate,
                error * 100.0
            );
            errors.push(error.abs());
        }
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    println!("{name}: {} cells, mean {:.2} %", errors.len(), mean * 100.0);
    mean
}

#[test]
fn r1_reads_of_table_a() {
    assert!(table_error("A reads", 4_000, Bytes::ZERO) <= 0.02);
}

#[test]
fn r2_reads_of_table_b() {
    assert!(table_error("B reads", 4_000, Bytes::ZERO) <= 0.02);
}

#[test]
fn r4_writes_of_table_a() {
    assert!(table_error("A writes", 2_000, Bytes::ZERO) <= 0.09);
}

/// From blocks of 64 KiB on the cache is full, and the gap begins; with room there is none.
#[test]
fn r5_the_gap_of_a_full_cache() {
    assert!(table_error("B writes", 3_000, Bytes::kib(64)) <= 0.25);
    let design = builtin::design("areca-raid5x4").unwrap();
    let load = Load { read_share: 0.0, ..reads(Bytes::kib(64), 10, Bytes::gib(4)) };
    let full = loaded(&design, &load, 3_000).rate;
    let room = loaded(&design, &Load { cache: Fill::Room, ..load }, 3_000).rate;
    println!("64 KiB x 10: {room:.0} requests/s with room, {full:.0} without");
    assert!(room > 10.0 * full);
}

/// Writes to pages that are dirty already, or near them, cost the drives little: so table A has no gap,
/// however long it is played. Far apart they fill the cache.
#[test]
fn only_writes_far_apart_fill_a_cache() {
    let rate = |name: &str, size: Bytes, requests| {
        let design = builtin::design(name).unwrap();
        let load = Load { read_share: 0.0, cache: Fill::Room, ..reads(Bytes::kib(16), 10, size) };
        loaded(&design, &load, requests).rate
    };
    for name in ["areca-raid0x12", "areca-raid5x4"] {
        let [short, long] = [2_000, 1_000_000].map(|n| rate(name, Bytes::gib(4), n));
        println!("{name}: {short:.0}, after 16 GiB {long:.0} requests/s");
        assert!((long / short - 1.0).abs() < 0.01, "{name}");
    }
    let [short, long] = [2_000, 400_000].map(|n| rate("areca-raid5x4", Bytes::gib(80), n));
    println!("of 80 GiB: {short:.0}, after 6 GiB {long:.0} requests/s");
    assert!(long < 0.2 * short);
}

#[test]
fn what_drives_do_is_as_solved() {
    for (name, block, threads, read_share, tolerance) in [
        ("nvme-alone", 4, 1, 1.0, 0.02),
        ("nvme-alone", 4, 64, 1.0, 0.04),
        ("nvme-raid0x4", 4, 256, 1.0, 0.05),
        ("disk-raid10x8", 8, 128, 1.0, 0.1),
        ("nvme-alone", 4, 16, 0.0, 0.03),
        ("nvme-raid10x4", 8, 512, 0.7, 0.07),
        ("nvme-raid5x4", 8, 512, 0.0, 0.1),
        ("nvme-raid5x4", 8, 16, 0.5, 0.07),
        ("raptor-alone", 8, 1, 1.0, 0.02),
        ("raptor-alone", 8, 10, 0.9, 0.07),
        ("mtron-alone", 8, 4, 0.9, 0.07),
        ("mtron-mft", 16, 4, 0.0, 0.03),
        ("x25-m-alone", 4, 32, 1.0, 0.07),
        ("areca-raid0x12", 4, 40, 0.0, 0.07),
        // Below its quota, and at it.
        ("gp3-alone", 4, 1, 0.5, 0.02),
        ("gp3-alone", 4, 64, 0.5, 0.02),
        ("gp3-alone", 256, 8, 1.0, 0.02),
    ] {
        let design = builtin::design(name).unwrap();
        let load = Load { read_share, ..reads(Bytes::kib(block), threads, design.capacity()) };
        let found = ratio(&design, &load, 200_000);
        assert!((found - 1.0).abs() <= tolerance, "{name}: {found}");
    }
}

#[test]
fn sequences_go_at_the_pace_of_drives() {
    for (name, read_share, tolerance) in [
        ("wal-3g", 0.0, 0.05),
        ("disk-raid10x8", 1.0, 0.6),
        ("areca-raid5x4", 0.0, 0.1),
        ("nvme-raid10x4", 0.0, 0.1),
        ("nvme-raid5x4", 0.0, 0.1),
    ] {
        let mut design = builtin::design(name).unwrap();
        // What comes in sequence is destaged as the stripes lie, wherever the data begins.
        design.start = Bytes::ZERO;
        let load = Load {
            read_share,
            access: Addressing::Sequential,
            depth: 8,
            ..reads(Bytes::kib(256), 1, Bytes::gib(16))
        };
        let found = ratio(&design, &load, 20_000);
        assert!((found - 1.0).abs() <= tolerance, "{name}: {found}");
    }
}

#[test]
fn reads_in_sequence_pass_over_parity_and_use_all_copies_of_flash() {
    let (_, text) = builtin::arrays().iter().find(|(name, _)| *name == "nvme-raid5x4").unwrap();
    let text = text.replace("pm9a3", "ultrastar-7k4");
    let disks = ArrayDesign::parse("disks", &text, builtin::part).unwrap();
    let mirrors = builtin::design("nvme-raid10x4").unwrap();
    for design in [disks, mirrors] {
        let load = Load { depth: 64, ..reads(Bytes::mib(1), 1, Bytes::gib(16)) };
        let found = ratio(&design, &Load { access: Addressing::Sequential, ..load }, 5_000);
        assert!((found - 1.0).abs() < 0.1, "{}: {found}", design.why);
    }
}

/// Each of many threads has a sequence of its own.
#[test]
fn full_stripes_are_gathered_for_every_writer() {
    let design = builtin::design("nvme-raid5x4").unwrap();
    let load = Load {
        read_share: 0.0,
        access: Addressing::Sequential,
        depth: 8,
        ..reads(Bytes::kib(64), 8, Bytes::gib(16))
    };
    let found = ratio(&design, &load, 50_000);
    assert!((found - 1.0).abs() < 0.15, "{found}");
}

/// What one request takes of a quota delays the next by no more than its own bytes.
#[test]
fn a_quota_has_no_long_memory() {
    let design = builtin::design("gp3-alone").unwrap();
    let mut simulation = Simulation::new(&design, &SimulationOptions::default()).unwrap();
    let request = |length| ArrayRequest { op: ArrayOp::Read, offset: 0, length, file: 0 };
    for token in 0..20 {
        simulation.submit(request(4 << 20), token).unwrap();
    }
    (0..20).for_each(|_| _ = simulation.advance(u64::MAX).unwrap());
    let before = simulation.now();
    simulation.submit(request(4096), 0).unwrap();
    let (at, _) = simulation.advance(u64::MAX).unwrap();
    assert!(at - before < 50_000_000, "{} ns", at - before);
}

#[test]
fn threads_submit_on_one_core_each() {
    let design = builtin::design("nvme-raid0x4").unwrap();
    let rate = |threads| {
        let options = SimulationOptions::default();
        let mut simulation = Simulation::new(&design, &options).unwrap();
        simulation.submit_by(threads);
        let mut requests = Loop::of(&reads(Bytes::kib(4), 256, Bytes::gib(16)), 3);
        (0..256).for_each(|n| simulation.submit(requests.request(n), n).unwrap());
        for _ in 0..20_000 {
            let (_, token) = simulation.advance(u64::MAX).unwrap();
            simulation.submit(requests.request(token), token).unwrap();
        }
        20_000e9 / simulation.now() as f64
    };
    let [one, four] = [1, 4].map(rate);
    assert!(one < 500_000.0 && four > 2.0 * one, "{one} {four}");
}

#[test]
fn a_lost_member_slows_reads_down() {
    for name in ["areca-raid5x4", "nvme-raid5x4", "nvme-raid10x4", "sata-mirror"] {
        let design = builtin::design(name).unwrap();
        let size = Bytes::new(design.capacity().get() / 2);
        let load = reads(Bytes::kib(16), 64, size);
        let states = [ArrayState::Whole, ArrayState::Degraded, ArrayState::Rebuilding];
        let [whole, degraded, rebuilding] = states
            .map(|state| loaded(&ArrayDesign { state, ..design.clone() }, &load, 20_000).rate);
        println!("{name}: {whole:.0}, degraded {degraded:.0}, rebuilding {rebuilding:.0}");
        assert!(degraded < 0.9 * whole && rebuilding < degraded, "{name}");
    }
}

#[test]
fn an_idle_array_fills_its_spare_in_the_time_that_is_reckoned() {
    for name in ["areca-raid5x4", "nvme-raid5x4", "sata-mirror"] {
        let mut design = builtin::design(name).unwrap().of_size(Bytes::gib(30), "a test");
        design.state = ArrayState::Rebuilding;
        let mut simulation = Simulation::new(&design, &SimulationOptions::default()).unwrap();
        assert_eq!(simulation.advance(3_600_000_000_000), None);
        let wanted = design.rebuild().unwrap().idle.as_secs_f64();
        let found = simulation.rebuilt().unwrap() as f64 / 1e9;
        println!("{name}: {found:.1} s, reckoned {wanted:.1} s");
        assert!((found / wanted - 1.0).abs() < 0.05, "{name}: {found} s, wanted {wanted}");
    }
}

#[test]
fn a_seed_gives_its_completions() {
    for (name, read_share) in [("nvme-raid5x4", 0.5), ("disk-raid10x8", 0.7)] {
        let design = builtin::design(name).unwrap();
        let load = Load { read_share, ..reads(Bytes::kib(8), 32, Bytes::gib(100)) };
        let play = |seed| {
            let options = SimulationOptions { seed, ..begin(&load) };
            play(&design, &options, &mut Loop::of(&load, 3), 5_000).digest
        };
        assert_eq!(play(1), play(1), "{name}");
        assert!(play(1) != play(2), "{name}");
    }
}

#[test]
fn a_request_takes_as_long_as_its_slowest_leg() {
    let design = builtin::design("two-areca-raid0x4").unwrap();
    let chunk = design.stripe.as_ref().unwrap().chunk.get();
    let time = |offset, length: u64| {
        let mut simulation = Simulation::new(&design, &SimulationOptions::default()).unwrap();
        let length = length as u32;
        let request = ArrayRequest { op: ArrayOp::Read, offset, length, file: 0 };
        simulation.submit(request, 0).unwrap();
        simulation.advance(u64::MAX).unwrap().0
    };
    let one = time(chunk, chunk);
    // A page more on the leg before, or behind it.
    assert!(time(chunk - 4096, chunk + 4096) >= one);
    assert!(time(chunk, chunk + 4096) >= one);
}

#[test]
fn what_cannot_be_is_refused() {
    let design = builtin::design("areca-raid0x12").unwrap();
    let refused = |options| Simulation::new(&design, &options).unwrap_err();
    let good = SimulationOptions::default();
    for options in [
        SimulationOptions { slots: 0, ..good },
        SimulationOptions { files: 0, ..good },
        SimulationOptions { pages_max: 100, ..good },
    ] {
        assert!(matches!(refused(options), SimulationError::Outside { .. }));
    }
    let mut one = Simulation::new(&design, &SimulationOptions { slots: 1, ..good }).unwrap();
    let flush = ArrayRequest { op: ArrayOp::Flush, offset: 0, length: 0, file: 0 };
    assert_eq!((one.submit(flush, 7), one.submit(flush, 8)), (Ok(()), Err(SlotsTaken)));
    assert!(one.advance(1_000_000).is_some_and(|(at, token)| at > 0 && token == 7));
    assert_eq!((one.advance(2_000_000), one.now()), (None, 2_000_000));
}

/// How fast it is on this machine is printed, and nothing else is made of it.
#[test]
fn requests_in_a_second_of_the_machine() {
    for (name, read_share, size) in [
        ("areca-raid0x12", 1.0, Bytes::mib(64)),
        ("areca-raid0x12", 1.0, Bytes::gib(4)),
        ("areca-raid5x4", 0.5, Bytes::gib(20)),
        ("nvme-raid5x4", 0.5, Bytes::gib(100)),
        ("disk-raid10x8", 0.7, Bytes::gib(100)),
    ] {
        let design = builtin::design(name).unwrap();
        let load = Load { read_share, ..reads(Bytes::kib(4), 40, size) };
        let count = if cfg!(debug_assertions) { 20_000 } else { 3_000_000 };
        let begun = std::time::Instant::now();
        let played = play(&design, &begin(&load), &mut Loop::of(&load, 3), count);
        let seconds = begun.elapsed().as_secs_f64();
        let busy = played.usage[Component::Drives as usize].busy;
        println!(
            "{name}, {} % read of {}: {:.2} M requests/s, {:.0} in its own time, drives {:?}",
            read_share * 100.0,
            size.exact(),
            f64::from(count) / seconds / 1e6,
            played.rate,
            busy
        );
    }
}

/// Requests of any kind, somewhere, to one of the built-in arrays.
fn cases() -> impl Strategy<Value = (ArrayDesign, Load, SimulationOptions, u64)> {
    let name = (0..builtin::arrays().len()).prop_map(|at| builtin::arrays()[at].0);
    let cache = prop_oneof![Just(Fill::Room), Just(Fill::Full)];
    let access = prop_oneof![Just(Addressing::Random), Just(Addressing::Sequential)];
    let kind = (0.0..=1.0, access, 0u32..13, cache);
    (name, kind, 1u32..50, 1u32..4, 0usize..3, any::<u64>()).prop_map(
        |(name, (read_share, access, block, cache), slots, files, lost, seed)| {
            let mut design = builtin::design(name).unwrap();
            if design.array.level().is_redundant() {
                design.state =
                    [ArrayState::Whole, ArrayState::Degraded, ArrayState::Rebuilding][lost];
            }
            let block = Bytes::new(512 << block);
            let load =
                Load { read_share, access, files, cache, ..reads(block, slots, design.capacity()) };
            let options = SimulationOptions { seed, pages_max: 1 << 15, ..begin(&load) };
            (design, load, options, seed)
        },
    )
}

/// The least that a request can take, in ns: what the host and the controller take, and the link or
/// the intake of the longest piece.
fn least(design: &ArrayDesign, request: &ArrayRequest) -> u64 {
    let (host, part) = (&design.host.part, &design.controller.part);
    let length = u64::from(request.length);
    let submit =
        host.submit_time.value.get() + host.submit_page_time.value.get() * length.div_ceil(4096);
    let striping = design.stripe.as_ref().map_or(0, |s| s.striping.part.submit_time.value.get());
    let pages = length.div_ceil(4096).min(1);
    let inside = match request.op {
        ArrayOp::Read => part.hit_time.value.get() + part.page_time.value.get() * pages,
        ArrayOp::Write | ArrayOp::Flush => part.write_time.value.get(),
    };
    submit + striping + inside
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn requests_are_done_once_and_in_time((design, load, options, seed) in cases()) {
        let mut simulation = Simulation::new(&design, &options).unwrap();
        let mut requests = Loop::of(&load, seed);
        let slots = options.slots as usize;
        // When each was asked for; `None` while it is free.
        let mut asked = vec![None; slots];
        let (mut left, mut sum) = (600, 0);
        // All at once, or one after the other: some slots stay free.
        let mut pause = stats::Random::new(seed);
        while left > 0 || asked.iter().any(Option::is_some) {
            if left > 0 && let Some(free) = asked.iter().position(Option::is_none) {
                let mut request = requests.request(free as u32);
                if left % 16 == 0 {
                    request = ArrayRequest { op: ArrayOp::Flush, length: 0, ..request };
                }
                simulation.submit(request, free as u32).unwrap();
                asked[free] = Some((simulation.now(), request));
                left -= 1;
            }
            let until = if left == 0 { u64::MAX } else { simulation.now() + pause.below(200_000) };
            let before = simulation.now();
            if let Some((at, token)) = simulation.advance(until) {
                prop_assert!(before <= at && at <= until && at == simulation.now());
                let (begun, request) = asked[token as usize].take().unwrap();
                prop_assert!(at >= begun + least(&design, &request), "{request:?}: {}", at - begun);
                sum += at - begun;
            } else {
                prop_assert!(left > 0, "requests are lost");
                prop_assert_eq!(simulation.now(), until);
            }
        }
        // What the parts say is what was waited for, to the nanosecond.
        let usage = simulation.usage();
        prop_assert_eq!(usage.map(|part| part.time.get()).iter().sum::<u64>(), sum);
        prop_assert_eq!(usage[Component::Host as usize].requests, 600);
    }
}

/// As many requests are in flight as rate and response time say; and of each part as its share says.
#[test]
fn littles_law_holds() {
    for name in
        ["areca-raid0x12", "areca-raid5x4", "nvme-raid5x4", "two-areca-raid0x4", "disk-raid10x8"]
    {
        let design = builtin::design(name).unwrap();
        let load = Load { read_share: 0.7, ..reads(Bytes::kib(8), 40, design.capacity()) };
        let played = loaded(&design, &load, 100_000);
        let end = played.end as f64;
        let in_flight = played.response as f64 / end;
        println!("{name}: {in_flight:.3} in flight");
        assert!((in_flight / 40.0 - 1.0).abs() < 0.005, "{name}: {in_flight}");
        let parts: u64 = played.usage.iter().map(|part| part.time.get()).sum();
        assert_eq!(parts, played.response, "{name}");
    }
}
