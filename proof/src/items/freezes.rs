//! Freezes and honest latency.

use device::model::{FreezeSpec, Law};
use device::{Device, Model, ModelSpec};
use engine::{Drive, Limits, Shared, Visit, merge};
use explain::freeze::{self, DeviceGap};
use record::{Purpose, VisitEnd, VisitRecord};
use stats::{LatencyHistogram, Random, exposure};
use suite::model::{
    Access, Arrivals, Backend, Choice, Class, Data, Last, Mix, Operation, Pacing, Region, Spread,
    Stop, Stream, Until, WriteThrough,
};
use units::{Bytes, Nanos};

use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "freezes-found",
        about: "the engine on a simulated device with one planted freeze a visit",
        run: found,
    },
    Proof {
        name: "freezes-false",
        about: "the engine on simulated devices that only have long service times",
        run: false_alarms,
    },
    Proof {
        name: "exposure",
        about: "random-arrival exposure from the histogram and from the latencies themselves",
        run: exposed,
    },
];

/// Median of the lognormal service time, spread 1 of its logarithm.
const MEDIAN: Nanos = Nanos::micros(100);
const LENGTHS: [Nanos; 4] =
    [Nanos::millis(150), Nanos::millis(500), Nanos::secs(2), Nanos::secs(10)];
const WORKERS: [u32; 3] = [1, 8, 40];

fn found(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(100, 3);
    let mut claims = Vec::new();
    for (row, length) in (0u64..).zip(LENGTHS) {
        let mut tally = Found::default();
        for (column, workers) in (0u64..).zip(WORKERS) {
            for time in 0..times as u64 {
                let mut random = lot.random(&[1, row, column, time]);
                tally.play(workers, length, Place::Inside, &mut random);
            }
        }
        claims.extend(tally.claims(&length.to_string()));
        if row == 0 {
            claims.push(
                Claim::share(
                    "zero counts in bins of 100 ms: freezes of 150 ms found",
                    AtLeast(0.99),
                    tally.by_bins,
                    tally.visits,
                )
                .of_broken(),
            );
        }
    }
    let mut across = Found::default();
    for (row, length) in (0u64..).zip(LENGTHS) {
        for time in 0..times as u64 {
            let mut random = lot.random(&[2, row, time]);
            across.play(WORKERS[time as usize % 3], length, Place::AcrossTheEnd, &mut random);
        }
    }
    claims.extend(across.claims("any length, across the visit's end"));
    claims.push(open_loop(lot, times));
    claims.push(low_rate(lot, times));
    claims
}

/// Where in the visit a freeze is planted.
#[derive(Clone, Copy)]
enum Place {
    Inside,
    AcrossTheEnd,
}

#[derive(Default)]
struct Found {
    visits: usize,
    one: usize,
    right: usize,
    by_bins: usize,
    error_max_ms: f64,
}

impl Found {
    fn play(&mut self, workers: u32, length: Nanos, place: Place, random: &mut Random) {
        let ramp = Nanos::millis(500);
        let measured = Nanos::new(length.get() + 2_000_000_000);
        let at = match place {
            Place::Inside => ramp.get() + 100_000_000 + random.below(1_800_000_000),
            Place::AcrossTheEnd => {
                let inside = 10_000_000 + random.below(length.get() - 20_000_000);
                ramp.get() + measured.get() - inside
            }
        };
        let mut spec = lognormal(MEDIAN, 1.0);
        spec.freezes = vec![FreezeSpec { start: Nanos::new(at), length }];
        let stream =
            stream(workers, Pacing::Closed { think: Nanos::ZERO, burst: 1 }, ramp, measured);
        let record = play(&spec, stream, random);
        let gaps = freeze::gaps(&record);
        self.visits += 1;
        self.by_bins += usize::from(zero_bins(&record));
        let [gap] = gaps.as_slice() else { return };
        self.one += 1;
        // In the record's time: the measured part begins when the ramp ends.
        let (error, allowed) = error(&record, *gap, at - ramp.get(), length);
        self.error_max_ms = self.error_max_ms.max(error as f64 / 1e6);
        self.right += usize::from(error <= allowed);
    }

    fn claims(&self, what: &str) -> Vec<Claim> {
        vec![
            Claim::share(format!("{what}: found, once"), AtLeast(1.0), self.one, self.visits),
            Claim::share(
                format!("{what}: start and length right to 2 ms and a service time"),
                AtLeast(1.0),
                self.right,
                self.visits,
            ),
            Claim::number(format!("{what}: largest error, ms"), AtMost(12.0), self.error_max_ms),
        ]
    }
}

/// How far start or length are off, whichever is further, and how far they may be: 2 ms and the
/// longest service time among the requests that were held up.
fn error(record: &VisitRecord, gap: DeviceGap, start: u64, length: Nanos) -> (u64, u64) {
    let slow = record.streams.iter().flat_map(|s| &s.ops).flat_map(|op| &op.slow);
    let service = slow.map(|request| request.latency_ns.saturating_sub(length.get()));
    let service = service.max().unwrap_or(0);
    let error = gap.start_ns.abs_diff(start).max(gap.length_ns.abs_diff(length.get()));
    (error, 2_000_000 + service)
}

/// The naive detector: an interval of 100 ms without a completion.
fn zero_bins(record: &VisitRecord) -> bool {
    let bins = record.elapsed_ns / 100_000_000;
    let empty = |bin: u64| (bin * 100..bin * 100 + 100).all(|bit| !record.completions.get(bit));
    (0..bins).any(empty)
}

/// A freeze of 2 s under Poisson arrivals at half of what the device can do.
fn open_loop(lot: &Lot, times: usize) -> Claim {
    let mut right = 0;
    for time in 0..times as u64 {
        let mut random = lot.random(&[3, time]);
        let mut spec = lognormal(MEDIAN, 1.0);
        let at = 1_000_000_000 + random.below(5_000_000_000);
        spec.freezes = vec![FreezeSpec { start: Nanos::new(at), length: Nanos::secs(2) }];
        let pacing = Pacing::Open { rate: 20_000.0, arrivals: Arrivals::Poisson };
        let record = play(&spec, stream(8, pacing, Nanos::ZERO, Nanos::secs(10)), &mut random);
        let gaps = freeze::gaps(&record);
        let near = |gap: &DeviceGap| gap.length_ns.abs_diff(2_000_000_000) < 10_000_000;
        right += usize::from(gaps.len() == 1 && gaps.iter().all(near));
    }
    Claim::share("open loop, 20 K arrivals a second: 2 s found, once", AtLeast(1.0), right, times)
}

/// A freeze of 10 s in a cell of five requests a second.
fn low_rate(lot: &Lot, times: usize) -> Claim {
    let mut right = 0;
    for time in 0..times as u64 {
        let mut random = lot.random(&[4, time]);
        let mut spec = lognormal(Nanos::millis(200), 0.5);
        let at = 1_000_000_000 + random.below(40_000_000_000);
        spec.freezes = vec![FreezeSpec { start: Nanos::new(at), length: Nanos::secs(10) }];
        let pacing = Pacing::Closed { think: Nanos::ZERO, burst: 1 };
        let record = play(&spec, stream(1, pacing, Nanos::ZERO, Nanos::secs(60)), &mut random);
        let gaps = freeze::gaps(&record);
        right += usize::from(gaps.len() == 1 && gaps[0].length_ns > 9_990_000_000);
    }
    Claim::share("five requests a second: 10 s found, once", AtLeast(1.0), right, times)
}

fn false_alarms(lot: &Lot) -> Vec<Claim> {
    let closed = Pacing::Closed { think: Nanos::ZERO, burst: 1 };
    let workers = [1, 2, 4, 10, 20, 40];
    // An hour in the full form.
    let length = Nanos::secs(lot.effort.times(600, 5) as u64);
    let fast: usize = (0u64..)
        .zip(workers)
        .map(|(row, workers)| {
            let mut random = lot.random(&[1, row]);
            let spec = lognormal(MEDIAN, 1.0);
            let record = play(&spec, stream(workers, closed, Nanos::ZERO, length), &mut random);
            freeze::gaps(&record).len()
        })
        .sum();
    // A slow device is not a frozen one: 60 visits of a minute, and arrivals with pauses.
    let visits = lot.effort.times(60, 10);
    let mut slow = 0;
    let mut paused = 0;
    for visit in 0..visits as u64 {
        let mut random = lot.random(&[2, visit]);
        let spec = lognormal(Nanos::millis(150), 0.7);
        let minute = |pacing| stream(1, pacing, Nanos::ZERO, Nanos::secs(60));
        slow += freeze::gaps(&play(&spec, minute(closed), &mut random)).len();
        let pacing = Pacing::Open { rate: 1.0, arrivals: Arrivals::Poisson };
        let spec = lognormal(MEDIAN, 1.0);
        paused += freeze::gaps(&play(&spec, minute(pacing), &mut random)).len();
    }
    let hours = 6.0 * length.as_secs_f64() / 3600.0;
    vec![
        Claim::number(
            format!("false hiccups in {hours:.2} h, 1 to 40 workers"),
            AtMost(0.0),
            fast as f64,
        ),
        Claim::number(
            format!("false hiccups in {visits} min of five requests a second"),
            AtMost(0.0),
            slow as f64,
        ),
        Claim::number(
            format!("false hiccups in {visits} min of one arrival a second"),
            AtMost(0.0),
            paused as f64,
        ),
    ]
}

fn exposed(lot: &Lot) -> Vec<Claim> {
    let sets = lot.effort.times(200, 20);
    let mut worst: f64 = 0.0;
    for set in 0..sets as u64 {
        let mut random = lot.random(&[set]);
        let mut values: Vec<Nanos> =
            (0..20_000).map(|_| Nanos::new((1e5 * random.normal().exp()) as u64)).collect();
        let workers = 1 + random.below(40);
        let freeze = 150_000_000 + random.below(10_000_000_000);
        values.extend((0..workers).map(|_| Nanos::new(freeze + random.below(1_000_000))));
        let mut histogram = LatencyHistogram::new();
        values.iter().for_each(|&value| histogram.record(value));
        for x in [Nanos::micros(100), Nanos::millis(1), Nanos::millis(10), Nanos::millis(100)]
            .into_iter()
            .chain([Nanos::secs(1)].into_iter().filter(|x| x.get() * 2 <= freeze))
        {
            let exact = exposure::from_values(&values, x).unwrap_or(0.0);
            let near = exposure::from_histogram(&histogram, x).unwrap_or(0.0);
            worst = worst.max((near - exact).abs() / exact.max(f64::MIN_POSITIVE));
        }
    }
    vec![Claim::number("largest error of R(x), as a share of R(x)", AtMost(0.01), worst)]
}

/// A device whose requests each take a lognormal time, however many there are.
fn lognormal(median: Nanos, sigma: f64) -> ModelSpec {
    // The model's jitter has mean 1.
    let mean = median.as_secs_f64() * (sigma * sigma / 2.0).exp();
    let law = Law {
        iops: None,
        bandwidth: None,
        latency: Nanos::from_secs_f64(mean),
        request_bandwidth: None,
        sharpness: 5.0,
    };
    let mut spec = ModelSpec::from_law(law, None);
    spec.noise.jitter = sigma;
    spec
}

fn stream(threads: u32, pacing: Pacing, ramp: Nanos, time: Nanos) -> Stream {
    let block = Bytes::kib(4);
    let class = Class { weight: 1.0, op: Operation::Read, block_size: block, line: None };
    Stream {
        name: "load".to_owned(),
        access: Access::Uniform,
        mix: Mix { classes: vec![class], choice: Choice::Dice },
        align: block,
        copy_to: None,
        work: suite::model::Work::Blocks,
        region: Region { start: Bytes::ZERO, length: Bytes::gib(1), spread: Spread::Concatenated },
        sync: None,
        threads,
        queue_depth: 1,
        pacing,
        duty: None,
        direct: true,
        commit_writes: 1,
        write_through: WriteThrough::No,
        backend: Backend::Auto,
        stop: Stop {
            ramp,
            time: Some(time),
            bytes: None,
            operations: None,
            until: Until::All,
            last: Last::Whole,
            extend: None,
        },
        start_file: suite::model::StartFile::Keep,
    }
}

/// The engine on a twin, and what a run would store of it.
fn play(spec: &ModelSpec, stream: Stream, random: &mut Random) -> VisitRecord {
    let visit = Visit {
        streams: vec![stream],
        files: 1,
        file_size: Bytes::gib(1),
        data: Data::Zero,
        seed: random.bits(),
        run_seed: random.bits(),
        verify: None,
    };
    let slots = visit.streams[0].threads;
    #[expect(clippy::expect_used, reason = "the models and visits above are sound")]
    let result = {
        let mut device = Model::new(spec, slots, random.bits()).expect("a sound model");
        let shared = Shared::new(&visit.streams);
        let limits = Limits::default();
        let mut drive =
            Drive::new(&visit, &visit.workers(), &shared, limits).expect("a sound visit");
        let begin = device.now();
        drive.run(&mut device, begin, &mut ()).expect("a device that does not fail");
        merge(&visit, drive.finish())
    };
    VisitRecord {
        cell: 0,
        repeat: 0,
        order: 0,
        started_unix_ns: 0,
        elapsed_ns: result.elapsed.get(),
        load_ns: None,
        end: if result.hanging { VisitEnd::Hanging } else { VisitEnd::Complete },
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams: result.streams,
        completions: result.completions,
        counters: Vec::new(),
        ledger: Vec::new(),
        host_stalls: Vec::new(),
        warnings: result.warnings,
    }
}
