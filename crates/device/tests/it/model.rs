use device::model::{
    BucketSpec, CacheSpec, Caps, CliffSpec, DriftSpec, FreezeSpec, Law, ModelError, ModelSpec,
    NoiseSpec, RandomFreezeSpec, RegimeSpec, StageSpec, WhenFull, WriteCacheSpec,
};
use device::{Completion, Device, FileIndex, Model, Op, Request, Slot};
use proptest::prelude::*;
use units::{ByteOffset, Bytes, Instant, Nanos};

use crate::drive::{closed_loop, rate, read, request, run, scatter, write};

fn law() -> Law {
    Law {
        iops: Some(63_113.0),
        bandwidth: Some(Bytes::mib(1736)),
        latency: Nanos::micros(31),
        request_bandwidth: Some(Bytes::gib(5)),
        sharpness: 5.0,
    }
}

/// Fixed time only: what happens can be told to the ns.
fn fixed(latency: Nanos) -> Law {
    Law { iops: None, bandwidth: None, latency, request_bandwidth: None, sharpness: 5.0 }
}

fn spec() -> ModelSpec {
    ModelSpec::from_law(law(), None)
}

fn open(spec: &ModelSpec, slots: u32) -> Model {
    Model::new(spec, slots, 11).expect("the spec is right")
}

#[test]
fn closed_loop_runs_at_the_law() {
    let noise = NoiseSpec { jitter: 0.3, ..NoiseSpec::default() };
    for (name, spec) in [("plain", spec()), ("jitter", ModelSpec { noise, ..spec() })] {
        for length in [512u32, 4096, 8192, 32_768, 131_072, 1 << 20, 4 << 20] {
            for depth in [1u32, 2, 3, 4, 10, 32, 40, 128] {
                // The formula again, written down independently.
                let (a, w, n) = (63_113.0, 1736.0 * 1048576.0, f64::from(depth));
                let b = f64::from(length);
                let alone = 31e-6 + b / (5.0 * 1073741824.0);
                let terms: f64 = [a, w / b, n / alone].iter().map(|x: &f64| x.powf(-5.0)).sum();
                let wanted = terms.powf(-0.2);
                assert!(
                    (spec.read.requests_per_second(Bytes::new(length.into()), depth) / wanted
                        - 1.0)
                        .abs()
                        < 1e-9
                );
                let measured = Nanos::from_secs_f64((20_000.0 / wanted).max(1.0));
                let seen = rate(
                    &mut open(&spec, depth),
                    depth,
                    Nanos::from_secs_f64(10.0 * n / wanted),
                    measured,
                    |_, slot| read(0, length, slot),
                );
                let ratio = seen / wanted;
                assert!((ratio - 1.0).abs() < 0.03, "{name}, {length} B x {depth}: {ratio}");
            }
        }
    }
}

/// However many are in flight, and of however many lengths: what costs are kept for is filled by the first
/// hundred thousand.
#[test]
fn a_request_among_many_takes_about_as_long_to_work_out_as_among_few() {
    let time_of = |count: u32, lengths: u32| {
        let mut model = open(&spec(), count);
        let clock = std::time::Instant::now();
        for k in 0..count {
            let length = 4096 << (k % lengths);
            assert!(model.submit(read(0, length, k)).is_ok());
        }
        clock.elapsed().as_secs_f64() / f64::from(count)
    };
    let least = |count, lengths| (0..3).map(|_| time_of(count, lengths)).fold(f64::MAX, f64::min);
    let few = least(20_000, 4);
    for (count, lengths) in [(150_000, 1), (150_000, 4)] {
        let many = least(count, lengths);
        assert!(many < 32.0 * few, "{many} s for {few} s: {count} of {lengths} lengths");
    }
}

#[test]
fn writes_have_their_own_law_and_mixes_are_harmonic() {
    let spec = ModelSpec::from_law(fixed(Nanos::micros(100)), Some(fixed(Nanos::micros(900))));
    let second = Nanos::secs(10);
    let mut model = open(&spec, 4);
    let writes = rate(&mut model, 4, Nanos::ZERO, second, |_, slot| write(0, 4096, slot));
    assert!((writes / (4.0 / 900e-6) - 1.0).abs() < 0.01, "{writes}");
    let mut model = open(&spec, 4);
    let mix = |number, slot| if number % 4 == 0 { write(0, 4096, slot) } else { read(0, 1, slot) };
    let mixed = rate(&mut model, 4, Nanos::ZERO, second, mix);
    assert!((mixed / (4.0 / 300e-6) - 1.0).abs() < 0.01, "{mixed}");
}

#[test]
fn rate_noise_has_the_asked_variation_and_memory() {
    let noise = NoiseSpec { cv: 0.10, rho: 0.8, ..NoiseSpec::default() };
    let spec = ModelSpec { noise, ..spec() };
    let windows = 4000;
    let mut counts = vec![0f64; windows];
    closed_loop(
        &mut open(&spec, 8),
        8,
        Instant::new(windows as u64 * 100_000_000),
        |_, slot| Some(read(0, 65_536, slot)),
        |event| {
            let window = (event.completed.get() / 100_000_000) as usize;
            if let Some(count) = counts.get_mut(window) {
                *count += 1.0;
            }
        },
    );
    let n = windows as f64;
    let mean = counts.iter().sum::<f64>() / n;
    let sd = (counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n).sqrt();
    let logs: Vec<f64> = counts.iter().map(|count| count.ln()).collect();
    let log_mean = logs.iter().sum::<f64>() / n;
    let lag =
        |k: usize| logs.windows(k + 1).map(|w| (w[0] - log_mean) * (w[k] - log_mean)).sum::<f64>();
    let (rho, rho_5) = (lag(1) / lag(0), lag(5) / lag(0));
    assert!((sd / mean / 0.10 - 1.0).abs() < 0.10, "cv {}", sd / mean);
    assert!((rho - 0.8).abs() < 0.04, "rho {rho}");
    assert!((rho_5 - 0.8f64.powi(5)).abs() < 0.08, "rho at 5 {rho_5}");
    let wanted = law().requests_per_second(Bytes::kib(64), 8) / 10.0;
    assert!((mean / wanted - 1.0).abs() < 0.02, "mean {mean} of {wanted}");
}

#[test]
fn jitter_is_lognormal_with_mean_one() {
    let noise = NoiseSpec { jitter: 0.5, ..NoiseSpec::default() };
    let spec = ModelSpec { noise, ..ModelSpec::from_law(fixed(Nanos::micros(100)), None) };
    let events = run(&mut open(&spec, 1), 1, 50_000, |_, slot| read(0, 1, slot));
    let n = events.len() as f64;
    let mean = events.iter().map(|e| e.latency().get() as f64 / 1e5).sum::<f64>() / n;
    let logs: Vec<f64> = events.iter().map(|e| (e.latency().get() as f64 / 1e5).ln()).collect();
    let log_mean = logs.iter().sum::<f64>() / n;
    let sd = (logs.iter().map(|x| (x - log_mean).powi(2)).sum::<f64>() / n).sqrt();
    assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
    assert!((sd - 0.5).abs() < 0.01, "log sd {sd}");
    assert!((log_mean + 0.125).abs() < 0.01, "log mean {log_mean}");
}

#[test]
fn visits_shift_by_their_seed() {
    let noise = NoiseSpec { visit_shift: 0.2, ..NoiseSpec::default() };
    let spec = ModelSpec { noise, ..ModelSpec::from_law(fixed(Nanos::micros(100)), None) };
    let mut model = open(&spec, 1);
    let mut one = |seed: Option<u64>| {
        if let Some(seed) = seed {
            model.begin_visit(seed);
        }
        run(&mut model, 1, 1, |_, slot| read(0, 1, slot))[0].latency().get() as f64
    };
    assert_eq!(one(None), 100_000.0, "no shift before the first visit");
    let shifts: Vec<f64> = (0..2000).map(|seed| (1e5 / one(Some(seed))).ln()).collect();
    let mean = shifts.iter().sum::<f64>() / 2000.0;
    let sd = (shifts.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2000.0).sqrt();
    assert!(mean.abs() < 0.02, "mean {mean}");
    assert!((sd - 0.2).abs() < 0.01, "sd {sd}");
    assert_eq!(one(Some(5)), one(Some(5)));
    assert_ne!(one(Some(5)), one(Some(6)));
}

#[test]
fn regimes_have_their_ratio_and_dwell() {
    let regime =
        RegimeSpec { ratio: 0.5, dwell: Nanos::secs(2), dwell_second: Some(Nanos::secs(1)) };
    let spec =
        ModelSpec { regime: Some(regime), ..ModelSpec::from_law(fixed(Nanos::millis(1)), None) };
    let mut time = [0u64; 2];
    let mut switches = 0;
    let mut second = None;
    closed_loop(
        &mut open(&spec, 1),
        1,
        Instant::new(6_000_000_000_000),
        |_, slot| Some(read(0, 1, slot)),
        |event| {
            let now = match event.latency().get() {
                1_000_000 => false,
                2_000_000 => true,
                _ => return, // a request that saw both
            };
            switches += u32::from(second == Some(!now));
            second = Some(now);
            time[usize::from(now)] += event.latency().get();
        },
    );
    let share = time[1] as f64 / (time[0] + time[1]) as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.03, "share of the second regime {share}");
    // Two switches in each 3 s of 6000 s.
    assert!((f64::from(switches) / 4000.0 - 1.0).abs() < 0.06, "{switches} switches");
}

#[test]
fn drift_and_cliff_are_at_their_bytes() {
    let drift = DriftSpec { per_gib: 0.1, reads: false };
    let cliff = CliffSpec { after: Bytes::mib(512), factor: 0.25, reads: true, refill: None };
    let base = ModelSpec::from_law(fixed(Nanos::micros(100)), None);
    let spec = ModelSpec { write_cliff: Some(cliff), ..base.clone() };
    let mut model = open(&spec, 1);
    let events = run(&mut model, 1, 600, |_, slot| write(0, 1 << 20, slot));
    for (i, event) in events.iter().enumerate() {
        let wanted = if i < 512 { 100_000 } else { 400_000 };
        assert_eq!(event.latency(), Nanos::new(wanted), "write {i}");
    }
    let slow = run(&mut model, 1, 1, |_, slot| read(0, 1, slot))[0].latency();
    assert_eq!(slow, Nanos::micros(400), "reads too, as asked");

    let mut model = open(&ModelSpec { drift: Some(drift), ..base }, 1);
    let events = run(&mut model, 1, 2049, |_, slot| write(0, 1 << 20, slot));
    for (i, wanted) in [(0, 1.0), (1024, 1.0 / 0.9), (2048, 1.0 / 0.81)] {
        let seen = events[i].latency().get() as f64 / 1e5;
        assert!((seen - wanted).abs() < 1e-4, "write {i}: {seen} of {wanted}");
    }
    let read_time = run(&mut model, 1, 1, |_, slot| read(0, 1, slot))[0].latency();
    assert_eq!(read_time, Nanos::micros(100), "reads do not drift");
}

#[test]
fn a_trim_freshens_what_remembers_writes() {
    let cliff = CliffSpec { after: Bytes::mib(512), factor: 0.25, reads: false, refill: None };
    let base = ModelSpec::from_law(fixed(Nanos::micros(100)), None);
    let spec = ModelSpec { write_cliff: Some(cliff), ..base };
    // 1 GiB written over a range of 256 MiB, as often as it takes.
    let at = |n: usize| (n as u64 % 256) << 20;
    let mut model = open(&spec, 1);
    let mut latency = |count: usize, of: &dyn Fn(usize, u32) -> Request| {
        let events = run(&mut model, 1, count as u64, |n, slot| of(n as usize, slot));
        events.last().map(|event| event.latency().get() / 1000).expect("something was asked for")
    };
    let write = |n: usize, slot: u32| write(at(n), 1 << 20, slot);
    let trim = |n: usize, slot: u32| request(Op::Trim, at(n), 1 << 20, slot);
    assert_eq!(latency(1024, &write), 400, "past the cliff");
    // A quarter given back leaves 768 MiB: still past it.
    latency(64, &trim);
    assert_eq!(latency(1, &write), 400);
    // All of it: as new, and 512 MiB may be written again.
    latency(256, &trim);
    assert_eq!(latency(512, &write), 100);
    assert_eq!(latency(1, &write), 400);
    // What was never written gives nothing back.
    latency(1, &|_, slot| request(Op::Trim, 1 << 40, 1 << 20, slot));
    assert_eq!(latency(1, &write), 400);
}

#[test]
fn planted_freezes_are_exact_and_hold_what_is_in_flight() {
    let freezes = vec![
        // Out of order, and two that overlap.
        FreezeSpec { start: Nanos::millis(900), length: Nanos::millis(200) },
        FreezeSpec { start: Nanos::millis(300), length: Nanos::millis(150) },
        FreezeSpec { start: Nanos::millis(1000), length: Nanos::millis(500) },
        // Within another.
        FreezeSpec { start: Nanos::millis(1100), length: Nanos::millis(10) },
    ];
    for noise in
        [NoiseSpec::default(), NoiseSpec { cv: 0.3, rho: 0.5, jitter: 1.0, visit_shift: 0.0 }]
    {
        let quiet = noise.cv == 0.0;
        let spec = ModelSpec {
            freezes: freezes.clone(),
            noise,
            ..ModelSpec::from_law(fixed(Nanos::micros(100)), None)
        };
        let mut times = vec![0];
        closed_loop(
            &mut open(&spec, 4),
            4,
            Instant::new(2_000_000_000),
            |_, slot| Some(read(0, 1, slot)),
            |event| times.push(event.completed.get()),
        );
        let gaps: Vec<(u64, u64)> = times
            .windows(2)
            .filter(|pair| pair[1] - pair[0] > 20_000_000)
            .map(|pair| (pair[0], pair[1]))
            .collect();
        assert_eq!(gaps.len(), 2, "{gaps:?}");
        for (gap, (start, end)) in
            gaps.iter().zip([(300_000_000, 450_000_000), (900_000_000, 1_500_000_000)])
        {
            assert!(gap.0 < start && gap.1 >= end, "{gap:?} for {start}..{end}");
            if quiet {
                // Due every 100 us: the last at start - 100 us, the next (due at the start) at
                // the very end.
                assert_eq!(*gap, (start - 100_000, end));
            } else {
                assert!(gap.1 - gap.0 < end - start + 2_000_000, "{gap:?} for {start}..{end}");
            }
        }
    }
}

#[test]
fn random_freezes_come_at_their_rate() {
    let random = RandomFreezeSpec { per_hour: 360.0, length: Nanos::millis(700) };
    let spec = ModelSpec {
        random_freezes: Some(random),
        ..ModelSpec::from_law(fixed(Nanos::millis(1)), None)
    };
    let mut last = 0;
    let mut gaps = Vec::new();
    closed_loop(
        &mut open(&spec, 1),
        1,
        Instant::new(4 * 3_600_000_000_000),
        |_, slot| Some(read(0, 1, slot)),
        |event| {
            let gap = event.completed.get() - last;
            if gap > 1_000_000 {
                gaps.push(gap);
            }
            last = event.completed.get();
        },
    );
    // Mean gap 10 s and 0.7 s each, in four hours: 1346 +- 36.
    assert!((1230..1460).contains(&gaps.len()), "{}", gaps.len());
    let exact = gaps.iter().filter(|&&gap| gap == 701_000_000).count();
    assert!(exact * 100 > gaps.len() * 99, "{exact} of {}", gaps.len());
}

fn cache(size: Bytes) -> CacheSpec {
    CacheSpec {
        size,
        chunk: Bytes::kib(64),
        latency: Nanos::micros(30),
        request_bandwidth: None,
        writes: true,
        before: None,
    }
}

#[test]
fn cache_hits_by_its_share_of_the_working_set() {
    let spec = ModelSpec {
        cache: Some(cache(Bytes::mib(512))),
        ..ModelSpec::from_law(fixed(Nanos::micros(120)), None)
    };
    for (mib, wanted) in [(256u64, 1.0), (512, 1.0), (1024, 0.5), (4096, 0.125)] {
        let mut model = open(&spec, 1);
        let blocks = (mib << 20) / 4096;
        // Every chunk once, so that the cache is as full as it gets; then at random.
        run(&mut model, 1, mib << 4, |number, slot| read(number << 16, 4096, slot));
        let events = run(&mut model, 1, 40_000, |number, slot| {
            read(scatter(number, blocks) * 4096, 4096, slot)
        });
        let hits = events.iter().filter(|e| e.latency() == Nanos::micros(30)).count();
        let misses = events.iter().filter(|e| e.latency() == Nanos::micros(120)).count();
        assert_eq!(hits + misses, events.len());
        let share = hits as f64 / events.len() as f64;
        assert!((share - wanted).abs() < 0.01, "{mib} MiB: {share} of {wanted}");
    }
}

#[test]
fn cache_keeps_the_latest_and_takes_writes_if_asked() {
    let small = CacheSpec { size: Bytes::kib(128), ..cache(Bytes::ZERO) };
    let base = ModelSpec::from_law(fixed(Nanos::micros(120)), None);
    let latencies = |spec: &ModelSpec, requests: &[Request]| -> Vec<u64> {
        let mut model = open(spec, 1);
        run(&mut model, 1, requests.len() as u64, |number, _| requests[number as usize])
            .iter()
            .map(|event| event.latency().get() / 1000)
            .collect()
    };
    let chunk = |n: u64| read(n << 16, 4096, 0);
    let spec = ModelSpec { cache: Some(small.clone()), ..base.clone() };
    let order = [chunk(0), chunk(1), chunk(0), chunk(2), chunk(0), chunk(1)];
    assert_eq!(latencies(&spec, &order), [120, 120, 30, 120, 30, 120]);
    let across = [chunk(0), read(65_000, 4096, 0), read(65_000, 4096, 0), read(0, 1 << 20, 0)];
    assert_eq!(latencies(&spec, &across), [120, 120, 30, 120]);
    let other_file = [chunk(0), Request { file: FileIndex(1), ..chunk(0) }];
    assert_eq!(latencies(&spec, &other_file), [120, 120]);
    let written = [write(0, 4096, 0), chunk(0)];
    assert_eq!(latencies(&spec, &written), [120, 30]);
    let spec = ModelSpec { cache: Some(CacheSpec { writes: false, ..small }), ..base };
    assert_eq!(latencies(&spec, &written), [120, 120]);
}

fn write_cache(when_full: WhenFull) -> ModelSpec {
    ModelSpec {
        write_cache: Some(WriteCacheSpec {
            size: Bytes::mib(64),
            latency: Nanos::micros(50),
            request_bandwidth: None,
            drain: Bytes::mib(100),
            when_full,
            before: None,
        }),
        ..ModelSpec::from_law(fixed(Nanos::millis(5)), None)
    }
}

#[test]
fn a_full_write_cache_throttles_to_its_drain_and_refills_when_idle() {
    let mut model = open(&write_cache(WhenFull::Throttle), 4);
    let drain = 100.0 * 1048576.0;
    for round in 0..2 {
        let start = model.now();
        let events = run(&mut model, 1, 400, |number, slot| write(number << 20, 1 << 20, slot));
        // While it fills, each MiB brings 1 MiB and drains 50 us of it.
        let room: f64 = 64.0 * 1048576.0 / (1048576.0 - 50e-6 * drain);
        let slow = events.iter().position(|e| e.latency() > Nanos::micros(50));
        assert_eq!(slow, Some(room.floor() as usize), "round {round}");
        let took = model.now().since(start).as_secs_f64();
        let wanted = (400.0 - 64.0) / 100.0;
        assert!((took / wanted - 1.0).abs() < 0.01, "round {round}: {took} s of {wanted}");
        assert!(model.dirty() > Bytes::mib(62));
        // Idle for long enough to drain.
        let idle = model.now() + Nanos::secs(1);
        model.reap(1, idle, &mut Vec::with_capacity(1)).unwrap();
        assert_eq!(model.dirty(), Bytes::ZERO);
    }
}

#[test]
fn a_full_write_cache_can_stall_everything() {
    let mut model = open(&write_cache(WhenFull::StallUntil(0.25)), 2);
    let events = run(&mut model, 1, 200, |number, slot| write(number << 20, 1 << 20, slot));
    let stalls: Vec<_> =
        events.iter().enumerate().filter(|(_, e)| e.latency() > Nanos::micros(50)).collect();
    // 64 MiB are full after 64 writes; 48 MiB at 100 MiB/s are drained in one stall.
    assert_eq!(stalls[0].0, 64);
    let seconds = stalls[0].1.latency().as_secs_f64();
    assert!((seconds - 0.48).abs() < 0.01, "{seconds}");
    assert!((stalls[1].0 - stalls[0].0).abs_diff(48) <= 1, "{stalls:?}");
    // A read in flight is held as well.
    let mut model = open(&write_cache(WhenFull::StallUntil(0.0)), 2);
    run(&mut model, 1, 64, |number, slot| write(number << 20, 1 << 20, slot));
    model.submit(read(0, 4096, 0)).unwrap();
    model.submit(write(0, 1 << 20, 1)).unwrap();
    let mut done = Vec::with_capacity(2);
    let before = model.now();
    model.reap(2, Instant::MAX, &mut done).unwrap();
    assert!(model.now().since(before) > Nanos::millis(600));
}

fn stage(name: &str, iops: Option<f64>, share: f64) -> StageSpec {
    let caps = Caps { iops, bandwidth: None };
    StageSpec { name: name.into(), read: caps.clone(), write: caps, latency_share: share }
}

/// Three layers with the limit in one of them.
fn stack(limit: usize) -> ModelSpec {
    let cap = |k| (k == limit).then_some(50_000.0);
    let stages = vec![
        stage("host", cap(0), 1.0),
        stage("controller", cap(1), 1.0),
        stage("disks", cap(2), 8.0),
    ];
    ModelSpec { stages, ..ModelSpec::from_law(fixed(Nanos::micros(100)), None) }
}

#[test]
fn the_queue_is_at_the_stage_with_the_limit() {
    for limit in 0..3 {
        let mut queues = Vec::new();
        for depth in [20u32, 40] {
            let mut model = open(&stack(limit), depth);
            let start = model.now();
            let seen =
                rate(&mut model, depth, Nanos::ZERO, Nanos::secs(1), |_, slot| read(0, 4096, slot));
            assert!((seen / 50_000.0 - 1.0).abs() < 0.02, "limit {limit}: {seen}");
            let time = model.now().since(start).as_secs_f64();
            let stages = model.stages();
            let queue: Vec<f64> =
                stages.iter().map(|stage| stage.weighted_time.as_secs_f64() / time).collect();
            // Little: all of it together is the depth.
            let total: f64 = queue.iter().sum();
            assert!((total / f64::from(depth) - 1.0).abs() < 0.01, "limit {limit}: {queue:?}");
            let flying: u32 = stages.iter().map(|stage| stage.in_flight).sum();
            assert_eq!(flying, depth);
            queues.push(queue);
        }
        for (k, (deep, shallow)) in queues[1].iter().zip(&queues[0]).enumerate() {
            let more = deep - shallow;
            let wanted: f64 = if k == limit { 20.0 } else { 0.0 };
            assert!((more - wanted).abs() < 1.0, "limit {limit}, stage {k}: {more} of {wanted}");
        }
    }
}

#[test]
fn stage_times_add_up_to_the_latencies() {
    let noise = NoiseSpec { cv: 0.2, rho: 0.5, jitter: 0.5, visit_shift: 0.0 };
    let freezes = vec![FreezeSpec { start: Nanos::millis(200), length: Nanos::millis(90) }];
    let mut model = open(&ModelSpec { noise, freezes, ..stack(1) }, 16);
    let events = run(&mut model, 16, 30_000, |n, slot| {
        request(if n % 3 == 0 { Op::Write } else { Op::Read }, 0, 4096, slot)
    });
    let latencies: u64 = events.iter().map(|event| event.latency().get()).sum();
    let stages = model.stages();
    let spent: u64 = stages.iter().map(|stage| stage.weighted_time.get()).sum();
    assert_eq!(spent, latencies);
    for stage in stages {
        assert_eq!(stage.requests, 30_000);
        assert_eq!(stage.read, Bytes::new(20_000 * 4096));
        assert_eq!(stage.written, Bytes::new(10_000 * 4096));
        assert_eq!(stage.in_flight, 0);
    }
}

#[test]
fn what_is_due_together_comes_in_the_order_of_submission() {
    let mut model = open(&ModelSpec::from_law(fixed(Nanos::micros(100)), None), 4);
    for order in [[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]] {
        for slot in order {
            model.submit(read(0, 1, slot)).unwrap();
        }
        let mut done = Vec::with_capacity(4);
        model.reap(4, Instant::MAX, &mut done).unwrap();
        assert_eq!(done.iter().map(|done| done.slot.0).collect::<Vec<_>>(), order);
    }
}

#[test]
fn a_completion_fetched_late_was_not_late() {
    let mut model = open(&ModelSpec::from_law(fixed(Nanos::micros(100)), None), 2);
    model.submit(read(0, 1, 0)).unwrap();
    model.reap(1, Instant::new(1_000_000), &mut Vec::new()).unwrap();
    let mut done = Vec::with_capacity(1);
    model.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!((model.now(), done.len()), (Instant::new(1_000_000), 1));
    assert_eq!(model.stages()[0].weighted_time, Nanos::micros(100));
}

#[test]
fn a_cache_in_front_of_everything_meets_no_limit() {
    let before = Some("host".to_owned());
    let spec = ModelSpec { cache: Some(CacheSpec { before, ..cache(Bytes::mib(64)) }), ..stack(0) };
    let mut model = open(&spec, 8);
    run(&mut model, 1, 1, |_, slot| read(0, 4096, slot));
    let hits = rate(&mut model, 8, Nanos::ZERO, Nanos::secs(1), |_, slot| read(0, 4096, slot));
    assert!((hits / (8.0 / 30e-6) - 1.0).abs() < 0.01, "{hits}");
}

#[test]
fn a_cache_spares_the_stages_behind_it() {
    let before = Some("disks".to_owned());
    let spec = ModelSpec { cache: Some(CacheSpec { before, ..cache(Bytes::mib(64)) }), ..stack(1) };
    let mut model = open(&spec, 8);
    let next = |number: u64, slot| read((number % 16) << 16, 4096, slot);
    run(&mut model, 1, 16, next);
    let hits = rate(&mut model, 8, Nanos::ZERO, Nanos::secs(1), next);
    assert!((hits / 50_000.0 - 1.0).abs() < 0.02, "the controller still limits: {hits}");
    let stages = model.stages();
    assert_eq!(stages[2].requests, 16);
    assert_eq!(stages[2].read, Bytes::kib(64));
    assert_eq!(stages[1].requests, model.counters().of(Op::Read).requests);
    // Through a write cache the bytes come later, as they are drained.
    let spec = ModelSpec { write_cache: write_cache(WhenFull::Throttle).write_cache, ..stack(1) };
    let mut model = open(&spec, 1);
    run(&mut model, 1, 10, |_, slot| write(0, 1 << 20, slot));
    assert!(model.stages()[2].written < Bytes::mib(1));
    let idle = model.now() + Nanos::secs(1);
    model.reap(1, idle, &mut Vec::with_capacity(1)).unwrap();
    assert_eq!(model.stages()[2].written, Bytes::mib(10));
    assert_eq!(model.stages()[1].written, Bytes::mib(10));
    assert_eq!(model.dirty(), Bytes::ZERO);
}

#[test]
fn counters_are_what_was_asked() {
    let mut model = open(&spec(), 4);
    let kinds = Op::ALL.len() as u64;
    let next = |n: u64, slot| request(Op::ALL[(n % kinds) as usize], n << 12, 4096, slot);
    run(&mut model, 4, 10 * kinds, next);
    for op in Op::ALL {
        let seen = model.counters().of(op);
        assert_eq!((seen.requests, seen.bytes), (10, Bytes::kib(40)), "{op}");
    }
}

#[test]
fn syncs_and_trims_take_their_time_and_move_nothing() {
    let spec = ModelSpec { sync_time: Nanos::millis(7), trim_time: Nanos::micros(9), ..spec() };
    let mut model = open(&spec, 1);
    for (op, time) in [
        (Op::Fsync, Nanos::millis(7)),
        (Op::Fdatasync, Nanos::millis(7)),
        (Op::SyncRange, Nanos::millis(7)),
        (Op::Trim, Nanos::micros(9)),
    ] {
        let event = run(&mut model, 1, 1, |_, slot| request(op, 0, 4096, slot))[0];
        assert_eq!(event.latency(), time, "{op}");
        assert_eq!(event.completion.result(), Ok(0));
    }
}

#[test]
fn waits_exactly_as_the_trait_says() {
    let mut model = open(&ModelSpec::from_law(fixed(Nanos::micros(100)), None), 4);
    let mut done = Vec::with_capacity(4);
    model.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!(model.now(), Instant::ZERO, "nothing in flight, no deadline");
    model.reap(1, Instant::new(50), &mut done).unwrap();
    assert_eq!(model.now(), Instant::new(50), "sleeps");
    model.submit(read(0, 1, 0)).unwrap();
    model.reap(0, Instant::new(1 << 40), &mut done).unwrap();
    assert_eq!((model.now(), done.len()), (Instant::new(50), 0), "a poll does not wait");
    model.reap(1, Instant::new(1000), &mut done).unwrap();
    assert_eq!((model.now(), done.len()), (Instant::new(1000), 0), "until was first");
    model.submit(read(0, 1, 1)).unwrap();
    model.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!((model.now(), done.len()), (Instant::new(100_050), 1), "min was first");
    model.reap(2, Instant::new(500_000), &mut done).unwrap();
    assert_eq!((model.now(), done.len()), (Instant::new(500_000), 2), "one is not two");
    assert_eq!(done[1], Completion::moved(Slot(1), 1));
    for slot in 0..4 {
        model.submit(read(0, 1, slot)).unwrap();
    }
    assert!(model.submit(read(0, 1, 4)).is_err(), "full");
    let mut tight = Vec::with_capacity(1);
    let room = tight.capacity();
    model.reap(1, Instant::MAX, &mut tight).unwrap();
    assert_eq!((tight.len(), tight.capacity()), (room, room));
    let mut rest = Vec::with_capacity(8);
    model.reap(0, Instant::MAX, &mut rest).unwrap();
    assert_eq!(tight.len() + rest.len(), 4, "the others were due at the same time");
}

/// Lets time pass without requests: what is in flight is forgotten.
fn rest(model: &mut Model, time: Nanos) {
    model.begin_visit(0);
    let until = model.now() + time;
    model.reap(1, until, &mut Vec::with_capacity(1)).expect("a model fails at nothing");
}

/// The published law of a burst: it lasts for the size over the rate less the base, and a rest fills it
/// at the base.
#[test]
fn a_bucket_lasts_for_its_size_over_the_rate_less_its_base() {
    let ops = BucketSpec::Ops { base: 300.0, burst: 3_000.0, size: 27_000.0 };
    let [base, burst, size] = [300, 3_000, 27_000].map(|n| Bytes::new(n * 4096));
    for bucket in [ops, BucketSpec::Bytes { base, burst, size }] {
        // A device of 10,000/s, and one of 1,200/s that cannot use the burst.
        for (alone, lasts) in [(Nanos::micros(100), 10.0), (Nanos::new(833_333), 30.0)] {
            let spec = ModelSpec {
                buckets: vec![bucket.clone()],
                ..ModelSpec::from_law(fixed(alone), None)
            };
            let mut model = open(&spec, 1);
            let full = 3_000_f64.min(1e9 / alone.get() as f64);
            let seen = |model: &mut Model, seconds: f64| {
                let time = Nanos::from_secs_f64(seconds);
                rate(model, 1, Nanos::ZERO, time, |_, slot| read(0, 4096, slot))
            };
            let near = |seen: f64, wanted: f64| {
                assert!((seen / wanted - 1.0).abs() < 0.002, "{bucket:?} {alone}: {seen}");
            };
            near(seen(&mut model, lasts), full);
            rest(&mut model, Nanos::ZERO);
            near(seen(&mut model, 20.0), 300.0);
            // 10 s of rest are 3,000 requests.
            rest(&mut model, Nanos::secs(10));
            near(seen(&mut model, lasts / 9.0), full);
            rest(&mut model, Nanos::ZERO);
            near(seen(&mut model, 5.0), 300.0);
            // More than it holds is lost.
            rest(&mut model, Nanos::secs(1_000));
            near(seen(&mut model, lasts), full);
        }
    }
}

#[test]
fn a_write_through_takes_as_long_as_a_flush_besides() {
    let law = ModelSpec::from_law(fixed(Nanos::micros(100)), None);
    let mut model = open(&ModelSpec { sync_time: Nanos::millis(7), ..law }, 1);
    let mut write_takes = |through: bool| {
        model.write_through(through);
        run(&mut model, 1, 1, |_, slot| write(0, 4096, slot))[0].latency()
    };
    let taken = [false, true, false].map(&mut write_takes);
    assert_eq!(taken, [100, 7100, 100].map(Nanos::micros));
}

#[test]
fn a_cliff_refills_while_idle() {
    let refill = Some(Nanos::secs(15));
    let cliff = CliffSpec { after: Bytes::mib(8), factor: 0.25, reads: false, refill };
    let base = ModelSpec::from_law(fixed(Nanos::micros(100)), None);
    let mut model = open(&ModelSpec { write_cliff: Some(cliff), ..base }, 1);
    let mut slow_after = |idle: u64| {
        rest(&mut model, Nanos::secs(idle));
        let events = run(&mut model, 1, 9, |_, slot| write(0, 1 << 20, slot));
        events.iter().position(|event| event.latency() > Nanos::micros(100))
    };
    assert_eq!([slow_after(0), slow_after(14), slow_after(16)], [Some(8), Some(0), Some(8)]);
}

/// With everything that can be switched on.
fn everything() -> ModelSpec {
    ModelSpec {
        noise: NoiseSpec { cv: 0.1, rho: 0.7, jitter: 0.4, visit_shift: 0.1 },
        regime: Some(RegimeSpec { ratio: 0.6, dwell: Nanos::millis(30), dwell_second: None }),
        drift: Some(DriftSpec { per_gib: 0.01, reads: true }),
        write_cliff: Some(CliffSpec {
            after: Bytes::mib(3),
            factor: 0.5,
            reads: true,
            refill: Some(Nanos::millis(1)),
        }),
        buckets: vec![BucketSpec::Ops { base: 20_000.0, burst: 40_000.0, size: 50.0 }],
        cache: Some(cache(Bytes::mib(1))),
        write_cache: Some(WriteCacheSpec {
            size: Bytes::mib(2),
            when_full: WhenFull::StallUntil(0.5),
            ..write_cache(WhenFull::Throttle).write_cache.unwrap()
        }),
        freezes: vec![FreezeSpec { start: Nanos::millis(3), length: Nanos::millis(2) }],
        random_freezes: Some(RandomFreezeSpec { per_hour: 40_000.0, length: Nanos::millis(4) }),
        ..stack(1)
    }
}

fn any_step() -> impl Strategy<Value = (usize, u64, u32, usize, Option<u64>, usize)> {
    (
        0usize..6,
        0u64..1 << 22,
        prop_oneof![0u32..70_000, Just(4096u32)],
        0usize..4,
        prop::option::weighted(0.7, 0u64..3_000_000),
        0usize..4,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Each request completes exactly once, in full, not before it could; the vector never
    /// grows; the clock never goes back and stops where it was told to; and a second device
    /// does the same, bit for bit.
    #[test]
    fn conserves_requests_and_replays(
        steps in prop::collection::vec(any_step(), 1..120),
        seed in any::<u64>(),
        plain in any::<bool>(),
    ) {
        let spec = if plain { spec() } else { everything() };
        let mut traces = Vec::new();
        for _ in 0..2 {
            let mut model = Model::new(&spec, 8, seed).unwrap();
            model.begin_visit(seed);
            let mut trace = Vec::new();
            let mut flying: Vec<Option<Request>> = vec![None; 8];
            for &(op, offset, length, min, wait, room) in &steps {
                if let Some(slot) = flying.iter().position(Option::is_none) {
                    let request = Request {
                        offset: ByteOffset::new(offset),
                        length,
                        slot: Slot(slot as u32),
                        file: FileIndex(0),
                        op: Op::ALL[op],
                    };
                    prop_assert!(model.submit(request).is_ok());
                    flying[slot] = Some(request);
                } else {
                    prop_assert!(model.submit(read(0, 1, 9)).is_err());
                }
                let before = model.now();
                let until = wait.map_or(Instant::MAX, |wait| before + Nanos::new(wait));
                let mut done: Vec<Completion> = Vec::with_capacity(room);
                let capacity = done.capacity();
                let open = flying.iter().flatten().count();
                model.reap(min, until, &mut done).unwrap();
                prop_assert_eq!(done.capacity(), capacity);
                prop_assert!(model.now() >= before);
                if until != Instant::MAX {
                    prop_assert!(model.now() <= until);
                    prop_assert!(done.len() >= min || model.now() == until);
                } else {
                    prop_assert!(done.len() >= min.min(open).min(capacity));
                }
                if min == 0 {
                    prop_assert_eq!(model.now(), before);
                }
                for completion in &done {
                    let request = flying[completion.slot.0 as usize].take();
                    prop_assert!(request.is_some(), "{:?} was not in flight", completion);
                    let request = request.unwrap();
                    let moved = if request.op.moves_data() { request.length } else { 0 };
                    prop_assert_eq!(completion.result(), Ok(moved));
                }
                let stages = model.stages();
                prop_assert_eq!(
                    stages.iter().map(|stage| stage.in_flight as usize).sum::<usize>(),
                    flying.iter().flatten().count()
                );
                trace.push((model.now(), done));
            }
            let mut done = Vec::with_capacity(8);
            let left = flying.iter().flatten().count();
            model.reap(8, Instant::MAX, &mut done).unwrap();
            prop_assert_eq!(done.len(), left, "nothing is lost");
            trace.push((model.now(), done));
            traces.push(trace);
        }
        prop_assert_eq!(&traces[0], &traces[1]);
    }
}

#[test]
fn another_seed_is_another_run() {
    let spec = everything();
    let trace = |seed| {
        let mut model = Model::new(&spec, 4, seed).unwrap();
        run(&mut model, 4, 1000, |n, slot| read(scatter(n, 1000) << 12, 4096, slot))
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

#[test]
fn no_law_is_so_fast_that_time_stands_still() {
    let noise = NoiseSpec { jitter: 3.0, visit_shift: 3.0, ..NoiseSpec::default() };
    let spec = ModelSpec { noise, ..ModelSpec::from_law(fixed(Nanos::ZERO), None) };
    for seed in 0..20 {
        let mut model = open(&spec, 1);
        model.begin_visit(seed);
        let events = run(&mut model, 1, 100, |_, slot| read(0, 0, slot));
        assert!(events.iter().all(|event| event.latency() > Nanos::ZERO), "seed {seed}");
    }
}

#[test]
fn what_describes_no_device_is_refused() {
    let bad = |change: fn(&mut ModelSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Model::new(&spec, 1, 0).map(|_| ()).unwrap_err().to_string()
    };
    for (message, wanted) in [
        (bad(|s| s.read.iops = Some(0.0)), "read.iops is 0"),
        (bad(|s| s.read.sharpness = 0.5), "read.sharpness is 0.5"),
        (bad(|s| s.read.bandwidth = Some(Bytes::ZERO)), "read.bandwidth is 0"),
        (bad(|s| s.noise.rho = 1.0), "noise.rho is 1"),
        (bad(|s| s.noise.cv = f64::NAN), "noise.cv is NaN"),
        (
            bad(|s| s.cache = Some(CacheSpec { size: Bytes::ZERO, ..cache(Bytes::ZERO) })),
            "cache.size",
        ),
        (bad(|s| s.stages = vec![stage("a", None, 0.0), stage("a", None, 0.0)]), "two stages"),
        (
            bad(|s| s.stages = (0..9).map(|i| stage(&i.to_string(), None, 0.0)).collect()),
            "9 stages",
        ),
    ] {
        assert!(message.contains(wanted), "{message}");
    }
    let before = Some("disk".to_owned());
    let spec = ModelSpec { cache: Some(CacheSpec { before, ..cache(Bytes::gib(1)) }), ..stack(0) };
    let error = Model::new(&spec, 1, 0).map(|_| ()).unwrap_err();
    assert!(matches!(error, ModelError::UnknownStage { .. }));
    assert_eq!(error.hint().as_deref(), Some("the stages are: host, controller, disks"));
}
