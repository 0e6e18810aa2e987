//! Caches: found with their size, not found where there is none.
//!
//! Once on numbers (latencies by the formula, 3 % noise) and once through everything: the suites
//! as users play them, the measuring loop, a model with a true LRU cache on its virtual clock,
//! the records, the verdicts. There sizes are a 32nd of those in the suites' long form.

use device::model::{CacheSpec, Law, NoiseSpec, WhenFull, WriteCacheSpec};
use device::{Device, Model, ModelSpec};
use engine::{Drive, Limits, Shared, Visit, merge};
use explain::View;
use explain::cache::{Caches, Verdict, caches, sweep};
use record::{
    CellRecord, LedgerEntry, Machine, Purpose, Run, RunHeader, RunState, StreamPlan, TargetKind,
    TargetRecord, VisitEnd, VisitRecord,
};
use stats::random::derive_seed;
use suite::model::{Suite, TableLayout};
use units::{Bytes, Nanos};

use crate::Bound::{AtLeast, AtMost, Within};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "cache-sweep",
        about: "mean latencies over 0.5 to 32 GiB with 3 % noise: caches of 1.5, 4 and 8 GiB",
        run: sweeps,
    },
    Proof {
        name: "cache-bounds",
        about: "what is told of a cache smaller than all sets, and of others: bounds and times",
        run: bounds,
    },
    Proof {
        name: "cache-false-alarms",
        about: "no cache at all: how often a sweep shows one",
        run: false_alarms,
    },
    Proof {
        name: "cache-played",
        about: "working-set and reread played on a model with an LRU cache",
        run: played,
    },
    Proof {
        name: "cache-twice-memory",
        about: "a file of twice the memory, a controller's cache below",
        run: twice_memory,
    },
    Proof {
        name: "cache-threshold",
        about: "a fast drive without a cache: 12 us a read",
        run: threshold,
    },
    Proof {
        name: "cache-time",
        about: "working-set --quick with --time 100 ms to 3 s: caches of 3 to 600 MiB, hits of 20 to 100 us, misses of \
                1.8 to 8 times as long, and 50 to 1000 MB/s, drawn at random",
        run: times,
    },
    Proof {
        name: "cache-compression",
        about: "file systems that compress, or may: suites, block sizes, shares that moved, and links drawn at \
                random",
        run: compression,
    },
    Proof {
        name: "cache-writes",
        about: "a write cache of 1 GiB that fills at 1 GB/s and drains at a fifth of it",
        run: write_caches,
    },
];

/// GiB, as the working-set suite has them.
const SIZES: [f64; 10] = [0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
/// The first of the larger ones, for which alone the bound of F was published.
const SEVEN: usize = 3;
const CACHES: [f64; 3] = [1.5, 4.0, 8.0];
const NOISE: f64 = 0.03;
const GIB: f64 = 1_073_741_824.0;

/// Mean latencies in ns over some sizes, with a cache of so many GiB.
fn latencies(
    lot: &Lot,
    labels: &[u64],
    sizes: &[f64],
    cache: f64,
    us: (f64, f64),
) -> Vec<(u64, f64)> {
    let mut random = lot.random(labels);
    let of = |size: &f64| {
        let mean = us.1 - (us.1 - us.0) * (cache / size).min(1.0);
        ((size * GIB) as u64, mean * 1000.0 * (NOISE * random.normal()).exp())
    };
    sizes.iter().map(of).collect()
}

fn sweeps(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(5000, 400);
    let mut claims = Vec::new();
    for (pair, (us, found_min, near_min)) in
        (0u64..).zip([((30.0, 120.0), 0.999, 0.97), ((60.0, 90.0), 0.995, 0.76)])
    {
        for cache in CACHES {
            let (found, near) = count(lot, pair, times, cache, us);
            let what = format!("{:.0}/{:.0} us, {cache} GiB", us.0, us.1);
            claims.push(Claim::share(format!("{what}: found"), AtLeast(found_min), found, times));
            let what = format!("{what}: size within 20 %");
            claims.push(Claim::share(what, AtLeast(near_min), near, times));
        }
    }
    for cache in CACHES {
        // What the sentence about 15 % rests on.
        let (found, _) = count(lot, 2, times, cache, (80.0, 90.0));
        let what = format!("80/90 us, {cache} GiB: found (too little difference)");
        claims.push(Claim::share(what, Within(0.27, 0.55), found, times));
    }
    claims
}

/// How often a cache was found, and how often with its size within 20 %.
fn count(lot: &Lot, pair: u64, times: usize, cache: f64, us: (f64, f64)) -> (usize, usize) {
    let fits = (0..times as u64).filter_map(|trial| {
        sweep::fit(&latencies(lot, &[pair, cache.to_bits(), trial], &SIZES[SEVEN..], cache, us))
    });
    fits.filter(|fit| fit.found).fold((0, 0), |(found, near), fit| {
        let is_near = (fit.cache_bytes / GIB / cache - 1.0).abs() <= 0.2;
        (found + 1, near + usize::from(is_near))
    })
}

/// Of a cache that is found: whether its size lies within what is told, and whether a time of a
/// hit is told where none was seen.
fn bounds(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(4000, 400);
    let mut claims = Vec::new();
    for (sizes, cache) in [
        (&SIZES[SEVEN..], 0.0625f64),
        (&SIZES[SEVEN..], 0.25),
        (&SIZES[..], 0.0156),
        (&SIZES[..], 0.0625),
        (&SIZES[..], 0.5),
        (&SIZES[..], 2.0),
        (&SIZES[..], 5.0),
        (&SIZES[..], 20.0),
    ] {
        let (mut found, mut inside, mut as_hit, mut naive, mut hit_near) = (0, 0, 0, 0, 0);
        for trial in 0..times as u64 {
            let labels = [9, sizes.len() as u64, cache.to_bits(), trial];
            let points = latencies(lot, &labels, sizes, cache, (10.0, 65.0));
            let Some(fit) = sweep::fit(&points).filter(|fit| fit.found) else { continue };
            let bytes = cache * GIB;
            found += 1;
            inside += usize::from((fit.cache_bytes_low..=fit.cache_bytes_high).contains(&bytes));
            as_hit += usize::from(fit.hit_ns.is_some());
            naive += usize::from((fit.cache_bytes / bytes - 1.0).abs() <= 0.2);
            hit_near += usize::from(fit.hit_ns.is_some_and(|ns| (ns / 10e3 - 1.0).abs() <= 0.2));
        }
        let of = |what: &str| format!("{} sizes, {cache} GiB: {what}", sizes.len());
        claims.push(Claim::share(of("size within what is told"), AtLeast(0.93), inside, found));
        if cache < sizes[0] {
            claims.push(Claim::share(of("time of a hit told"), AtMost(0.01), as_hit, found));
            let best = of("best fit within 20 %");
            claims.push(Claim::share(best, AtLeast(0.9), naive, found).of_broken());
        } else if cache > sizes[0] {
            claims.push(Claim::share(of("hit within 20 %"), AtLeast(0.9), hit_near, found));
        }
    }
    claims
}

fn false_alarms(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(40_000, 3000);
    let counts = [(5usize, AtMost(0.02)), (6, AtMost(0.02)), (7, AtMost(0.02)), (10, AtMost(0.02))];
    let claim = |(sizes, wanted)| {
        let sizes: Vec<f64> = (0..sizes).map(|k| 0.5 * f64::from(1u32 << k)).collect();
        let alarms = (0..times as u64).filter(|&trial| {
            let points = latencies(lot, &[sizes.len() as u64, trial], &sizes, 0.0, (100.0, 100.0));
            sweep::fit(&points).is_some_and(|fit| fit.found)
        });
        let what = format!("no cache, {} sizes: one found", sizes.len());
        Claim::share(what, wanted, alarms.count(), times)
    };
    counts.into_iter().map(claim).collect()
}

/// A device whose hit and miss take so long, with noise of 3 % from visit to visit and within.
fn spec(cache: Option<(u64, u64)>, miss_us: u64) -> ModelSpec {
    let law = Law {
        iops: None,
        bandwidth: None,
        latency: Nanos::micros(miss_us),
        request_bandwidth: None,
        sharpness: 5.0,
    };
    let mut spec = ModelSpec::from_law(law, None);
    spec.noise = NoiseSpec { cv: 0.03, rho: 0.5, jitter: 0.3, visit_shift: NOISE };
    spec.cache = cache.map(|(mib, hit_us)| CacheSpec {
        size: Bytes::mib(mib),
        chunk: Bytes::kib(4),
        latency: Nanos::micros(hit_us),
        request_bandwidth: None,
        writes: true,
        before: None,
    });
    spec
}

/// Plays a suite from its first cell to its last on one model. `None` if it cannot be played.
fn play(text: &str, sets: &[&str], quick: bool, spec: &ModelSpec, seed: u64) -> Option<Run> {
    let mut source = suite::parse(text, "proof").ok()?;
    if quick {
        source.quick().ok()?;
    }
    for set in sets {
        source.set(set).ok()?;
    }
    play_source(&source, spec, seed)
}

fn play_source(source: &suite::SuiteSource, spec: &ModelSpec, seed: u64) -> Option<Run> {
    let suite = suite::check(source, &suite::CheckContext::default()).ok()?;
    let header = header(&suite, suite::resolved_text(source).ok()?, seed);
    let mut run = Run { header, cells: Vec::new(), visits: Vec::new() };
    let mut model = Model::new(spec, 64, derive_seed(seed, &[1])).ok()?;
    for (phase, cell) in suite.phases.iter().flat_map(|p| p.cells.iter().map(move |c| (p, c))) {
        let index = run.cells.len() as u32;
        model.begin_visit(derive_seed(seed, &[2, index.into()]));
        let visit = Visit {
            streams: cell.streams.clone(),
            files: suite.files.count,
            file_size: suite.files.size,
            data: suite.files.data,
            seed: derive_seed(seed, &[3, index.into()]),
            run_seed: seed,
            verify: None,
        };
        run.visits.push(stay(&visit, &mut model, index)?);
        run.cells.push(CellRecord {
            index,
            phase: phase.name.clone(),
            coordinates: Vec::new(),
            streams: cell
                .streams
                .iter()
                .map(|stream| StreamPlan {
                    name: stream.name.clone(),
                    op: stream
                        .mix
                        .classes
                        .first()
                        .map_or("read", |class| class.op.name())
                        .to_owned(),
                    block_bytes: stream.mix.block_size().map(Bytes::get),
                    threads: stream.threads,
                    queue_depth: stream.queue_depth,
                })
                .collect(),
            impossible: None,
        });
    }
    Some(run)
}

/// One visit, as the runner records it.
fn stay(visit: &Visit, model: &mut Model, cell: u32) -> Option<VisitRecord> {
    let before = model.counters();
    let workers = visit.workers();
    let shared = Shared::new(&visit.streams);
    let mut drive = Drive::new(visit, &workers, &shared, Limits::default()).ok()?;
    let begin = model.now();
    drive.run(model, begin, &mut ()).ok()?;
    let mut found = merge(visit, drive.finish());
    for (record, stream) in found.streams.iter_mut().zip(&visit.streams) {
        record.backend.name = "model".to_owned();
        record.backend.direct = stream.direct;
    }
    let after = model.counters();
    let bytes = |op| after.of(op).bytes.get() - before.of(op).bytes.get();
    Some(VisitRecord {
        cell,
        repeat: 0,
        order: cell,
        started_unix_ns: 0,
        elapsed_ns: found.elapsed.get(),
        load_ns: None,
        end: VisitEnd::Complete,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: Some(true),
        resident_before: None,
        resident_after: None,
        streams: found.streams,
        completions: found.completions,
        counters: Vec::new(),
        ledger: vec![LedgerEntry {
            device: "model".to_owned(),
            read_bytes: bytes(device::Op::Read),
            write_bytes: bytes(device::Op::Write),
            ..LedgerEntry::default()
        }],
        host_stalls: Vec::new(),
        warnings: Vec::new(),
    })
}

fn header(suite: &Suite, suite_text: String, seed: u64) -> RunHeader {
    debug_assert_eq!(suite.table, TableLayout::Plain);
    RunHeader {
        id: "r1".to_owned(),
        version: record::VERSION,
        suite: suite.name.clone(),
        suite_text,
        target: TargetRecord {
            given: "model".to_owned(),
            resolved: "model".to_owned(),
            kind: TargetKind::Twin,
            size_bytes: suite.files.size.get(),
            files: suite.files.count,
            file_system: None,
            mount: None,
            devices: vec!["model".to_owned()],
            direct_alignment: None,
            link: None,
            cache_bytes: None,
            model: None,
            remarks: Vec::new(),
        },
        seed,
        command_line: Vec::new(),
        program: String::new(),
        stack: None,
        machine: Machine {
            host: String::new(),
            kernel: String::new(),
            architecture: String::new(),
            processor: String::new(),
            processors: 1,
            memory_bytes: 0,
        },
        started_unix_ns: 0,
        state: RunState::Complete,
        visits_planned: 0,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: None,
        warnings: Vec::new(),
    }
}

/// A suite of ours played on a model, and what is said about caches.
fn verdicts(name: &str, sets: &[&str], spec: &ModelSpec, seed: u64) -> Option<(Run, Caches)> {
    let text = suite::find_builtin(name)?.text;
    let run = play(text, sets, true, spec, seed)?;
    let found = caches(&View::new(&run));
    Some((run, found))
}

fn seed(lot: &Lot, labels: &[u64]) -> u64 {
    derive_seed(lot.seed, labels)
}

/// The short form of working-set is a 32nd of the long one.
const MIB_OF_GIB: f64 = 32.0;

fn played(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(100, 5);
    let mut claims = Vec::new();
    let (mut found, mut near, mut called_device) = (0, 0, 0);
    for cache in CACHES {
        for trial in 0..times as u64 {
            let mib = (cache * MIB_OF_GIB) as u64;
            let seed = seed(lot, &[1, mib, trial]);
            let Some((_, said)) = verdicts("working-set", &[], &spec(Some((mib, 30)), 120), seed)
            else {
                continue;
            };
            // The cache is below the counters: they alone acquit it.
            let device = |v: &Verdict| matches!(v, Verdict::Device { .. });
            called_device += usize::from(said.cells.iter().all(|cell| device(&cell.verdict)));
            let Some(fit) = said.sweeps.first().and_then(|sweep| sweep.fit) else { continue };
            let is_near = (fit.cache_bytes / (mib << 20) as f64 - 1.0).abs() <= 0.2;
            found += usize::from(fit.found);
            near += usize::from(fit.found && is_near);
        }
    }
    let all = times * CACHES.len();
    claims.push(Claim::share("working-set, 30/120 us: found", AtLeast(0.99), found, all));
    claims.push(Claim::share("the same: size within 20 %", AtLeast(0.97), near, all));
    claims.push(
        Claim::share(
            "the same: counters alone see the cache",
            AtLeast(0.5),
            all - called_device,
            all,
        )
        .of_broken(),
    );
    let flat_times = lot.effort.times(400, 8);
    let flat = (0..flat_times as u64).filter(|&trial| {
        let said = verdicts("working-set", &[], &spec(None, 120), seed(lot, &[2, trial]));
        let fit = said.and_then(|(_, said)| said.sweeps.first().and_then(|sweep| sweep.fit));
        fit.is_none_or(|fit| fit.found)
    });
    claims.push(Claim::share(
        "working-set, no cache: found",
        AtMost(0.025),
        flat.count(),
        flat_times,
    ));
    let times = lot.effort.times(200, 20);
    // The region is 64 MiB. Half of it in an LRU cache never hits when read in the same order.
    for (what, cache, wanted) in [
        ("reread, a cache of twice the region: found", Some((128, 30)), AtLeast(0.99)),
        ("reread, a cache of half the region: found", Some((32, 30)), AtMost(0.01)),
        ("reread, no cache: found", None, AtMost(0.01)),
    ] {
        let found = (0..times as u64).filter(|&trial| {
            let label = cache.map_or(0, |(mib, _)| mib);
            let said = verdicts("reread", &[], &spec(cache, 120), seed(lot, &[3, label, trial]));
            said.is_some_and(|(_, said)| said.rereads.iter().any(|reread| reread.found))
        });
        claims.push(Claim::share(what, wanted, found.count(), times));
    }
    claims
}

/// Bonnie++ takes twice the memory, "so that it is not the cache". The memory is not the only one.
fn twice_memory(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(30, 4);
    let (mut honest_at_twice, mut honest_by_size) = (0, 0);
    for (trial, cache) in (0..times as u64).flat_map(|t| CACHES.map(|cache| (t, cache))) {
        let mib = (cache * MIB_OF_GIB) as u64;
        // A machine with a quarter of the controller's cache as memory, as in the studies.
        let seed = seed(lot, &[4, mib, trial]);
        honest_at_twice += usize::from(is_a_miss(mib, mib / 4 * 2, seed));
        honest_by_size += usize::from(is_a_miss(mib, mib * 8, seed));
    }
    let all = times * CACHES.len();
    let what = "latency within 20 % of the device's own";
    vec![
        Claim::share(
            format!("file of eight times all caches: {what}"),
            AtLeast(0.95),
            honest_by_size,
            all,
        ),
        Claim::share(
            format!("file of twice the memory: {what}"),
            AtLeast(0.95),
            honest_at_twice,
            all,
        )
        .of_broken(),
    ]
}

/// Whether random reads over a file take what the device takes, within 20 %, with a cache below
/// that has seen the file.
fn is_a_miss(cache_mib: u64, file_mib: u64, seed: u64) -> bool {
    let text = format!(
        "schema = 1\nname = \"t\"\nfile_size = \"{file_mib}MiB\"\n[[phase]]\nname = \"warm\"\n\
         access = \"sequential\"\nblock_size = \"1MiB\"\nbytes = \"{file_mib}MiB\"\n\
         [[phase]]\nname = \"read\"\ntime = \"500ms\"\n"
    );
    let run = play(&text, &[], false, &spec(Some((cache_mib, 30)), 120), seed);
    let last = run.as_ref().and_then(|run| run.visits.last());
    let mean = last.and_then(|v| v.streams.first()?.ops.first()?.latency_ns_mean());
    mean.is_some_and(|mean| (mean / 120_000.0 - 1.0).abs() <= 0.2)
}

/// "Below 20 us it is a cache": drives of today are faster, and caches of controllers slower.
fn threshold(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(50, 4);
    let (mut by_sweep, mut by_threshold) = (0, 0);
    for trial in 0..times as u64 {
        let said = verdicts(
            "working-set",
            &["read-10.time=500ms"],
            &spec(None, 12),
            seed(lot, &[5, trial]),
        );
        let Some((_, said)) = said else { continue };
        let Some(sweep) = said.sweeps.first() else { continue };
        by_sweep += usize::from(sweep.fit.is_some_and(|fit| !fit.found));
        by_threshold += usize::from(sweep.points.iter().all(|(_, ns)| *ns >= 20_000.0));
    }
    let what = "a drive of 12 us without a cache is not called one";
    vec![
        Claim::share(format!("working-set: {what}"), AtLeast(0.97), by_sweep, times),
        Claim::share(format!("below 20 us is a cache: {what}"), AtLeast(0.97), by_threshold, times)
            .of_broken(),
    ]
}

const WRITES: &str = "schema = 1\nname = \"t\"\nfile_size = \"16GiB\"\n\
     data = \"zero\"\n[[phase]]\nname = \"write\"\noperation = \"write\"\n\
     access = \"sequential\"\nblock_size = \"128KiB\"\ntime = \"6s\"\n";

fn write_caches(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(200, 20);
    let find = |size: Option<u64>, trial: u64| {
        let mut spec = spec(None, 128);
        spec.noise = NoiseSpec { cv: 0.05, rho: 0.8, jitter: 0.1, visit_shift: NOISE };
        spec.write_cache = size.map(|mib| WriteCacheSpec {
            size: Bytes::mib(mib),
            latency: Nanos::micros(128),
            request_bandwidth: None,
            drain: Bytes::new(200_000_000),
            when_full: WhenFull::Throttle,
            before: None,
        });
        let seed = seed(lot, &[6, size.unwrap_or(0), trial]);
        let run = play(WRITES, &["method=classic"], false, &spec, seed);
        run.map(|run| caches(&View::new(&run)).write_caches).unwrap_or_default()
    };
    let found: Vec<_> =
        (0..times as u64).filter_map(|trial| find(Some(1024), trial).into_iter().next()).collect();
    let near =
        found.iter().filter(|cache| (cache.size_bytes as f64 / GIB - 1.0).abs() <= 0.2).count();
    let none = (0..times as u64).filter(|&trial| !find(None, trial).is_empty()).count();
    vec![
        Claim::share("write cache of 1 GiB: found", AtLeast(0.98), found.len(), times),
        Claim::share("the same: size within 20 %", AtLeast(0.95), near, times),
        Claim::share("no write cache: one found", AtMost(0.01), none, times),
    ]
}

/// How `working-set` gets its time.
#[derive(Clone, Copy, PartialEq)]
enum Timed {
    /// By `--time`.
    All,
    /// Warming passes as well, as `--time` once did.
    WarmingToo,
}

/// What is said of a cache: its size within a tenth, or within bounds; nothing of a size; or what is not so.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Near,
    Bounds,
    Wrong,
}

fn times(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(300, 24);
    let mut claims = Vec::new();
    for how in [Timed::All, Timed::WarmingToo] {
        let (mut wrong, mut near, mut fits) = (0, 0, 0);
        for trial in 0..trials as u64 {
            let mut random = lot.random(&[7, trial]);
            let Some(said) = of_time(how, &mut random) else { continue };
            fits += usize::from(said != Said::Wrong);
            near += usize::from(said == Said::Near);
            wrong += usize::from(said == Said::Wrong);
        }
        let share = |what: &str, bound, yes| Claim::share(what, bound, yes, trials);
        if how == Timed::All {
            claims.push(share("size within 10 %, or within what is told", AtLeast(0.93), fits));
            claims.push(share("size within 10 %", AtLeast(0.6), near));
            claims.push(share("another size, or none, is told", AtMost(0.05), wrong));
        } else {
            let text = "warming passes cut short as well: another size, or none, is told";
            claims.push(share(text, AtMost(0.05), wrong).of_broken());
        }
    }
    claims
}

fn of_time(how: Timed, random: &mut stats::Random) -> Option<Said> {
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
    let mib = between(3.0, 600.0);
    let hit = between(20.0, 100.0);
    let miss = hit * between(1.8, 8.0);
    let bandwidth = between(50e6, 1e9);
    let (time, noise) = (between(0.1, 3.0), between(0.005, 0.03));
    let mut spec = spec(Some((1, 1)), miss as u64);
    spec.read.request_bandwidth = Some(Bytes::new(bandwidth as u64));
    spec.noise = NoiseSpec { cv: 0.03, rho: 0.5, jitter: 0.3, visit_shift: noise };
    let size = (mib * 1_048_576.0) as u64 / 4096 * 4096;
    spec.cache.iter_mut().for_each(|cache| {
        (cache.size, cache.latency) = (Bytes::new(size), Nanos::micros(hit as u64));
        cache.request_bandwidth = Some(Bytes::new((bandwidth * 2.0) as u64));
    });
    let mut source = suite::parse(suite::find_builtin("working-set")?.text, "proof").ok()?;
    source.quick().ok()?;
    source.set_time(Nanos::from_secs_f64(time)).ok()?;
    if how == Timed::WarmingToo {
        for number in 1..=10 {
            source.set(&format!("warm-{number}.time={time:.3}s")).ok()?;
        }
    }
    let run = play_source(&source, &spec, random.bits())?;
    let found = caches(&View::new(&run));
    let fit = found.sweeps.first()?.fit?;
    let holds = (fit.cache_bytes_low..=fit.cache_bytes_high).contains(&(size as f64));
    Some(match fit.found {
        true if !fit.at_most && (fit.cache_bytes / size as f64 - 1.0).abs() <= 0.1 => Said::Near,
        true if holds => Said::Bounds,
        _ => Said::Wrong,
    })
}

/// What the kernel, or nobody, says of compression.
const COMPRESSED: [&str; 6] = [
    "compressed (mount option compress=zstd:3): compressible data measures the processor",
    "compressed (mount option compress-force=lzo): compressible data measures the processor",
    "compressed (chattr +c): compressible data measures the processor",
    "compressed (mount option compression=lz4): compressible data measures the processor",
    "compressed (mount option compress_extension=*): compressible data measures the processor",
    "zfs: may be compressed, the kernel does not say",
];

fn compression(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(1000, 60);
    let (mut called, mut unseen, mut found, mut played) = (0, 0, 0, 0);
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[8, trial]);
        let Some(mut run) = compressed(&mut random) else { continue };
        played += 1;
        called += usize::from(names_cache(&run));
        // The same run, and what it was made on not looked at.
        let mut blind = run.clone();
        blind.header.target.remarks.clear();
        unseen += usize::from(names_cache(&blind));
        // Nothing to compress: then what did not move was cached.
        let text = &mut run.header.suite_text;
        *text = text.replace("kind = \"zero\"", "kind = \"incompressible\"");
        found += usize::from(names_cache(&run));
    }
    let share = |what: &str, bound, yes| Claim::share(what, bound, yes, played);
    vec![
        Claim::share("played", AtLeast(1.0), played, trials),
        share("zeros on a file system that compresses: a cache is named", AtMost(0.05), called),
        share(
            "data that cannot be compressed, as little moved: a cache is named",
            AtLeast(0.93),
            found,
        ),
        share("by the counters alone, zeros: a cache is named", AtMost(0.05), unseen).of_broken(),
    ]
}

/// Zeros written or read through a file system that compresses.
fn compressed(random: &mut stats::Random) -> Option<Run> {
    let one = |random: &mut stats::Random, all: &[&'static str]| {
        all[random.below(all.len() as u64) as usize]
    };
    let operation = one(random, &["read", "write", "mixed"]);
    let access = one(random, &["uniform", "sequential"]);
    let block = one(random, &["4KiB", "16KiB", "128KiB", "1MiB"]);
    let direct = random.below(2) == 0;
    let mix = match operation {
        "mixed" => "read_share = 0.7".to_owned(),
        other => format!("operation = \"{other}\""),
    };
    let text = format!(
        "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\ndata = \"zero\"\nmethod = \"classic\"\n[[phase]]\n\
         name = \"p\"\n{mix}\naccess = \"{access}\"\nblock_size = \"{block}\"\ndirect = {direct}\n\
         operations = 2000\n"
    );
    // What is read again is as fast as if a cache of that size held it.
    let mut run = match random.below(4) {
        0 => {
            let text = suite::find_builtin("reread")?.text;
            play(text, &["data=zero"], true, &spec(Some((128, 30)), 120), random.bits())?
        }
        _ => play(&text, &[], false, &spec(None, 100), random.bits())?,
    };
    let header = &mut run.header;
    header.target.kind = TargetKind::File;
    header.target.remarks = vec![
        "btrfs: copy on write, blocks are not written in place".to_owned(),
        one(random, &COMPRESSED).to_owned(),
    ];
    // By what a compressor leaves: 1 in 30 of zeros, more of other things.
    let left = 0.9 * random.unit().powi(2);
    let link = (random.below(2) == 0).then(|| record::Link {
        name: "SATA 6 Gb/s".to_owned(),
        bytes_per_second: 1_000_000 + random.below(1_000_000_000),
    });
    header.target.link = link;
    for entry in run.visits.iter_mut().flat_map(|visit| &mut visit.ledger) {
        entry.read_bytes = (entry.read_bytes as f64 * left) as u64;
        entry.write_bytes = (entry.write_bytes as f64 * left) as u64;
    }
    Some(run)
}

/// Whether anything that is said is that of a cache.
fn names_cache(run: &Run) -> bool {
    let said = caches(&View::new(run));
    let is_lag = |verdict: &Verdict| matches!(verdict, Verdict::WriteLag { .. });
    let mut findings = said.cells.iter().flat_map(|cell| &cell.findings);
    findings.any(|found| found.verdict.is_cached() || is_lag(&found.verdict))
        || !said.write_caches.is_empty()
        || said.rereads.iter().any(|reread| reread.found)
        || said.sweeps.iter().any(|sweep| sweep.fit.is_some_and(|fit| fit.found))
}
