//! Barriers, and the layer in which they sit.

use device::Model;
use device::model::{Caps, Law, ModelSpec, StageSpec};
use engine::{Drive, Limits, Shared, Visit, merge};
use explain::barrier::{
    CapKind, CapOfRun, Law as FittedLaw, LayerQueue, Place, Point, QueueCell, Ranged, Seat, Term,
    elasticities, fit, where_is_the_queue,
};
use stats::Random;
use suite::model::{
    Access, Backend, Choice, Class, Data, Last, Mix, Operation, Pacing, Region, Spread, Stop,
    Stream, Until, WriteThrough,
};
use units::{Bytes, Nanos};

use crate::{Bound, Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "barriers-layer",
        about: "grids of stacks with the cap at one layer, each layer in sizes 1 to 16, noise 3 %",
        run: layer,
    },
    Proof {
        name: "barriers-caps",
        about: "laws drawn at random (caps, time of a request, sharpness of corners) on grids of three shapes, \
                noise 1 to 5 %: caps that end some cell, by the law and by the fit",
        run: caps,
    },
    Proof {
        name: "barriers-elasticity",
        about: "one cap at 4, 8, 12 and 16 disks, noise 1 %",
        run: elasticity,
    },
    Proof {
        name: "barriers-queue",
        about: "stacks played by the measuring loop on a virtual clock: where the queue is",
        run: queue,
    },
    Proof {
        name: "barriers-two",
        about: "two limits in two layers, of requests or bytes, drawn at random, played by the measuring loop: where \
                requests wait at each block size",
        run: two,
    },
];

const LAYERS: [&str; 3] = ["host", "controllers", "disks"];
const SIZES: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];
const NOISE: f64 = 0.03;

/// A grid of a stack whose layer `cap` ends the requests at 3000 per unit, all others far above.
fn grid(cap: usize, sizes: [f64; 3], random: &mut Random) -> Vec<Point> {
    let iops = (0..3).map(|layer| {
        let unit: f64 = if layer == cap { 3000.0 } else { 200_000.0 };
        unit * sizes[layer]
    });
    let iops = iops.fold(f64::INFINITY, f64::min);
    let bandwidth = iops * 30_000.0;
    let mut points = Vec::new();
    for step in 3..11u32 {
        for in_flight in [1u64, 8, 64, 256] {
            let block_bytes = 512u64 << step;
            let b = block_bytes as f64;
            let terms = [iops, bandwidth / b, in_flight as f64 / (200e-6 + b / 2e9)];
            let rate = terms.iter().map(|x| x.powi(-5)).sum::<f64>().powf(-0.2);
            let visit = |_| rate.ln() + NOISE * random.normal();
            points.push(Point { block_bytes, in_flight, ln_rates: (0..3).map(visit).collect() });
        }
    }
    points
}

/// Every layer in every size about a base of 2 of each, each run with a shift of its own.
fn study(cap: usize, random: &mut Random) -> (Vec<CapOfRun>, Vec<f64>) {
    let mut caps = Vec::new();
    let mut largest = Vec::new();
    for layer in 0..3 {
        for size in SIZES {
            let mut sizes = [2.0; 3];
            sizes[layer] = size;
            let shift = NOISE * random.normal();
            let mut points = grid(cap, sizes, random);
            for value in points.iter_mut().flat_map(|point| &mut point.ln_rates) {
                *value += shift;
            }
            largest.push(points.iter().flat_map(|p| &p.ln_rates).copied().fold(0.0, f64::max));
            let rate = fit(&points, 7).ok().map(|fit| fit.iops);
            caps.push(CapOfRun { rate, levels: sizes.to_vec() });
        }
    }
    (caps, largest)
}

fn layer(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(40, 4);
    let names = LAYERS.map(str::to_owned);
    let mut claims = Vec::new();
    let (mut all_right, mut all_wrong, mut naive_wrong) = (0, 0, 0);
    for (cap, name) in LAYERS.iter().enumerate() {
        let mut right = 0;
        for trial in 0..trials as u64 {
            let mut random = lot.random(&[cap as u64, trial]);
            let (caps, largest) = study(cap, &mut random);
            match elasticities("read", CapKind::Iops, &names, &caps).seat {
                Seat::In(found) if found == *name => right += 1,
                Seat::Unknown => {}
                _ => all_wrong += 1,
            }
            // Whatever moved the best figure at all when it was doubled.
            let moved = |layer: usize| (largest[5 * layer + 2] - largest[5 * layer + 1]).abs();
            let blamed = (0..3).filter(|&layer| moved(layer) > 0.05).count();
            naive_wrong += usize::from(blamed != 1 || moved(cap) <= 0.05);
        }
        all_right += right;
        claims.push(Claim::share(
            format!("cap at the {name}: found"),
            Bound::AtLeast(0.95),
            right,
            trials,
        ));
    }
    let all = 3 * trials;
    claims.push(Claim::share("right layer, all", Bound::AtLeast(0.95), all_right, all));
    claims.push(Claim::share("wrong layer, all", Bound::AtMost(0.01), all_wrong, all));
    let naive = "wrong or several layers, by best figures of two runs that differ by 5 %";
    claims.push(Claim::share(naive, Bound::AtMost(0.01), naive_wrong, all).of_broken());
    claims
}

/// Block sizes, numbers in flight, and visits of each cell.
struct Shape {
    name: &'static str,
    blocks: &'static [u64],
    loads: &'static [u64],
    visits: usize,
}

const SHAPES: [Shape; 4] = [
    Shape {
        name: "9 block sizes, 5 loads",
        blocks: &[4, 8, 16, 32, 64, 128, 256, 512, 1024],
        loads: &[1, 4, 16, 64, 256],
        visits: 3,
    },
    Shape {
        name: "4 block sizes, 3 loads",
        blocks: &[4, 16, 64, 256],
        loads: &[1, 8, 64],
        visits: 3,
    },
    Shape {
        name: "3 block sizes, 3 loads",
        blocks: &[4, 64, 1024],
        loads: &[1, 16, 256],
        visits: 3,
    },
    Shape {
        name: "9 block sizes, 5 loads, one visit",
        blocks: &[4, 8, 16, 32, 64, 128, 256, 512, 1024],
        loads: &[1, 4, 16, 64, 256],
        visits: 1,
    },
];

fn any_law(random: &mut Random) -> FittedLaw {
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
    let bandwidth = between(100e6, 5e9);
    FittedLaw {
        iops: between(3e3, 3e5),
        bandwidth,
        latency_seconds: between(50e-6, 1e-3),
        request_bandwidth: bandwidth * between(0.3, 2.3),
        sharpness: between(1.5, 12.0),
    }
}

fn caps(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(1000, 60);
    let mut claims = Vec::new();
    let (mut all, mut far) = (0, 0);
    for (number, shape) in (0u64..).zip(&SHAPES) {
        let (mut held, mut naive, mut of_shape) = (0, 0, 0);
        for trial in 0..trials as u64 {
            let mut random = lot.random(&[number, trial]);
            let law = any_law(&mut random);
            let noise = 0.01 + 0.04 * random.unit();
            let cells =
                shape.blocks.iter().flat_map(|b| shape.loads.iter().map(move |n| (b << 10, *n)));
            let points: Vec<Point> = cells
                .map(|(block_bytes, in_flight)| {
                    let rate = law.rate(block_bytes, in_flight).ln();
                    let ln_rates =
                        (0..shape.visits).map(|_| rate + noise * random.normal()).collect();
                    Point { block_bytes, in_flight, ln_rates }
                })
                .collect();
            let Ok(found) = fit(&points, trial) else { continue };
            let binds = |law: &FittedLaw, term| {
                points.iter().any(|point| law.binds(point.block_bytes, point.in_flight) == term)
            };
            let of_law = [
                (Term::Iops, found.iops, law.iops),
                (Term::Bandwidth, found.bandwidth, law.bandwidth),
            ];
            for (term, cap, truth) in of_law {
                if !binds(&law, term) || !binds(&found.law, term) {
                    continue;
                }
                let off = (cap.value / truth).ln().abs();
                let is_held = (cap.low..=cap.high).contains(&truth);
                of_shape += 1;
                held += usize::from(is_held);
                naive += usize::from(off <= 2.0 * found.error_mean / (points.len() as f64).sqrt());
                far += usize::from(!is_held && off > 0.2);
            }
        }
        all += of_shape;
        let text = format!("{}: truth inside", shape.name);
        // Of one visit each, nothing tells noise from how far the law is off.
        let least = if shape.visits > 1 { 0.93 } else { 0.91 };
        claims.push(Claim::share(text, Bound::AtLeast(least), held, of_shape));
        let text = format!("{}, by the scatter of all cells: truth inside", shape.name);
        claims.push(Claim::share(text, Bound::AtLeast(least), naive, of_shape).of_broken());
    }
    let text = "more than 20 % off and outside of the interval";
    claims.push(Claim::share(text, Bound::AtMost(0.005), far, all));
    claims
}

fn elasticity(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(2000, 400);
    let (mut covered, mut widths) = (0, Vec::new());
    let truth = 1.0;
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[trial]);
        let cap = |disks: f64| {
            let value = 5000.0 * disks.powf(truth) * (0.01 * random.normal()).exp();
            let rate = Some(Ranged { value, low: value, high: value });
            CapOfRun { rate, levels: vec![disks] }
        };
        let caps: Vec<CapOfRun> = [4.0, 8.0, 12.0, 16.0].map(cap).into();
        let found = elasticities("read", CapKind::Iops, &["disks".to_owned()], &caps);
        let Some(slope) = found.elasticities.first().and_then(|e| e.slope) else { continue };
        covered += usize::from(slope.low <= truth && truth <= slope.high);
        widths.push((slope.high - slope.low) / 2.0);
    }
    let mean = widths.iter().sum::<f64>() / widths.len().max(1) as f64;
    vec![
        Claim::number("half-width of the interval", Bound::Within(0.03, 0.05), mean),
        Claim::share("intervals that hold the truth", Bound::Within(0.93, 0.97), covered, trials),
    ]
}

/// A stack of three stages of which one ends the requests.
fn stack(cap: usize, iops: f64, shift: f64) -> ModelSpec {
    let law = Law {
        iops: None,
        bandwidth: None,
        latency: Nanos::micros(200),
        request_bandwidth: Some(Bytes::mib(1500)),
        sharpness: 5.0,
    };
    let mut spec = ModelSpec::from_law(law, None);
    spec.noise.visit_shift = shift;
    spec.stages = LAYERS
        .iter()
        .enumerate()
        .map(|(layer, name)| StageSpec {
            name: (*name).to_owned(),
            read: Caps { iops: (layer == cap).then_some(iops), bandwidth: None },
            write: Caps::default(),
            latency_share: if layer == 2 { 0.8 } else { 0.1 },
        })
        .collect();
    spec
}

fn visit(block: Bytes, in_flight: u32, seed: u64) -> Visit {
    let size = Bytes::gib(1);
    let classes = vec![Class { op: Operation::Read, weight: 1.0, block_size: block, line: None }];
    let stream = Stream {
        name: "read".to_owned(),
        access: Access::Uniform,
        mix: Mix { classes, choice: Choice::Dice },
        align: block,
        copy_to: None,
        work: suite::model::Work::Blocks,
        region: Region { start: Bytes::ZERO, length: size, spread: Spread::Concatenated },
        sync: None,
        threads: 1,
        queue_depth: in_flight,
        pacing: Pacing::Closed { think: Nanos::ZERO, burst: 1 },
        duty: None,
        direct: false,
        commit_writes: 1,
        write_through: WriteThrough::No,
        backend: Backend::Auto,
        stop: Stop {
            ramp: Nanos::ZERO,
            time: None,
            bytes: None,
            operations: Some(6000),
            until: Until::All,
            last: Last::Whole,
            extend: None,
        },
        start_file: suite::model::StartFile::Keep,
    };
    Visit {
        streams: vec![stream],
        files: 1,
        file_size: size,
        data: Data::Incompressible,
        seed,
        run_seed: seed,
        verify: None,
    }
}

/// Plays one cell and reads the stages' counters as the kernel's would be read: the first stage is
/// the host and has none, a device's queue has those below it in it.
fn played(spec: &ModelSpec, block: Bytes, in_flight: u32, seed: u64) -> Option<QueueCell> {
    let visit = visit(block, in_flight, seed);
    let mut device = Model::new(spec, in_flight, seed).ok()?;
    let shared = Shared::new(&visit.streams);
    let mut drive = Drive::new(&visit, &visit.workers(), &shared, Limits::default()).ok()?;
    drive.prepare(&mut device);
    let begin = device::Device::now(&device);
    drive.run(&mut device, begin, &mut ()).ok()?;
    let elapsed = device::Device::now(&device).since(begin).as_secs_f64();
    let result = merge(&visit, drive.finish());
    let latency: u128 =
        result.streams.iter().flat_map(|s| &s.ops).map(|op| op.latency_ns_sum).sum();
    let seen = latency as f64 / 1e9 / elapsed;
    let requests: u64 = result.streams.iter().flat_map(|s| &s.ops).map(|op| op.requests).sum();
    let own: Vec<f64> =
        device.stages().iter().map(|stage| stage.weighted_time.as_secs_f64() / elapsed).collect();
    let layers: Vec<LayerQueue> = own
        .iter()
        .enumerate()
        .skip(1)
        .map(|(at, &own_here)| LayerQueue {
            depth: at as u32 - 1,
            devices: vec![LAYERS[at].to_owned()],
            within: own[at..].iter().sum(),
            own: own_here,
        })
        .collect();
    let below: f64 = layers.first().map_or(0.0, |layer| layer.within);
    let in_flight = u64::from(in_flight);
    Some(QueueCell {
        block_bytes: block.get(),
        in_flight,
        seen,
        held: seen,
        rate: requests as f64 / elapsed,
        above: (seen - below).max(0.0),
        ends: 0.0,
        paced: false,
        open: false,
        layers,
    })
}

fn queue(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(100, 10);
    let (mut right, mut wrong, mut off, mut all) = (0, 0, 0, 0);
    for cap in 0..LAYERS.len() {
        for trial in 0..trials as u64 {
            let mut random = lot.random(&[cap as u64, trial]);
            let spec = stack(cap, 20_000.0 * (1.0 + random.unit()), NOISE);
            let cells: Vec<QueueCell> = [1, 8, 64]
                .iter()
                .filter_map(|&n| played(&spec, Bytes::kib(4), n, random.bits()))
                .collect();
            let verdict = where_is_the_queue(&cells);
            off += verdict.off.len();
            all += 1;
            let found = verdict.place.map(|place| match place {
                Place::Above => 0,
                Place::Devices { depth, .. } => depth as usize + 1,
            });
            right += usize::from(found == Some(cap));
            wrong += usize::from(found.is_some_and(|found| found != cap));
        }
    }
    vec![
        Claim::share("right layer", Bound::AtLeast(0.95), right, all),
        Claim::share("wrong layer", Bound::AtMost(0.01), wrong, all),
        Claim::share(
            "closed loops in which rate times time is off by 5 %",
            Bound::AtMost(0.0),
            off,
            3 * all,
        ),
    ]
}

/// A stack with a limit in each of two of its layers.
struct Two {
    spec: ModelSpec,
    /// Layer and its limit.
    limits: [(usize, Caps); 2],
    blocks: Vec<u64>,
    loads: Vec<u32>,
}

impl Two {
    fn drawn(random: &mut Random) -> Self {
        let between =
            |random: &mut Random, low: f64, high: f64| low * (high / low).powf(random.unit());
        let latency = between(random, 50e-6, 2e-3);
        // Four to thirty requests in flight are at the limit, so 64 and more wait.
        let iops = between(random, 4.0, 30.0) / latency;
        let first = random.below(3) as usize;
        let second = (first + 1 + random.below(2) as usize) % 3;
        let all: Vec<u64> = (2..=8).map(|step| 1024u64 << step).collect();
        let count = 2 + random.below(4) as usize;
        let start = random.below((all.len() - count + 1) as u64) as usize;
        let blocks = all[start..start + count].to_vec();
        // Bytes end what is larger than a block size within the grid; or both count requests, one less
        // than the other.
        let other = match random.below(4) {
            0 => Caps { iops: Some(iops * between(random, 0.3, 3.0)), bandwidth: None },
            _ => {
                let knee = between(random, blocks[0] as f64, blocks[count - 1] as f64);
                Caps { iops: None, bandwidth: Some(Bytes::new((iops * knee) as u64)) }
            }
        };
        let limits = [(first, Caps { iops: Some(iops), bandwidth: None }), (second, other)];
        let law = Law {
            iops: None,
            bandwidth: None,
            latency: Nanos::from_secs_f64(latency),
            request_bandwidth: None,
            sharpness: 5.0,
        };
        let mut spec = ModelSpec::from_law(law, None);
        spec.noise.visit_shift = 0.005 + 0.03 * random.unit();
        let of =
            |layer: usize| limits.iter().find(|(at, _)| *at == layer).map(|(_, caps)| caps.clone());
        spec.stages = (LAYERS.iter().enumerate())
            .map(|(layer, name)| StageSpec {
                name: (*name).to_owned(),
                read: of(layer).unwrap_or_default(),
                write: Caps::default(),
                latency_share: if layer == 2 { 0.8 } else { 0.1 },
            })
            .collect();
        let loads = vec![1, 8, 64 << random.below(3)];
        Self { spec, limits, blocks, loads }
    }

    /// Layers whose limit ends requests of a size, or is within a fifth of the one that does.
    fn waits(&self, block: u64) -> Vec<usize> {
        let most = |caps: &Caps| {
            let bytes = caps.bandwidth.map_or(f64::INFINITY, |b| b.get() as f64 / block as f64);
            caps.iops.unwrap_or(f64::INFINITY).min(bytes)
        };
        let least = self.limits.iter().map(|(_, caps)| most(caps)).fold(f64::INFINITY, f64::min);
        let near = self.limits.iter().filter(|(_, caps)| most(caps) <= 1.2 * least);
        near.map(|(layer, _)| *layer).collect()
    }
}

fn layer_of(place: &Place) -> usize {
    match place {
        Place::Above => 0,
        Place::Devices { depth, .. } => *depth as usize + 1,
    }
}

fn two(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(400, 40);
    let (mut said, mut right, mut wrong, mut one_for_all) = (0, 0, 0, 0);
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[trial]);
        let stack = Two::drawn(&mut random);
        let grid = stack.blocks.iter().flat_map(|b| stack.loads.iter().map(move |n| (*b, *n)));
        let cells: Vec<QueueCell> = grid
            .filter_map(|(b, n)| played(&stack.spec, Bytes::new(b), n, random.bits()))
            .collect();
        let verdict = where_is_the_queue(&cells);
        let of_block = |block: u64| match &verdict.place {
            Some(place) => Some(layer_of(place)),
            None => {
                let one = verdict.by_block.iter().find(|one| one.block_bytes == block);
                one.and_then(|one| one.shares.first()).map(|first| layer_of(&first.place))
            }
        };
        let found: Vec<(Option<usize>, Vec<usize>)> =
            stack.blocks.iter().map(|&block| (of_block(block), stack.waits(block))).collect();
        let is_right = |(found, wanted): &(Option<usize>, Vec<usize>)| {
            found.is_some_and(|found| wanted.contains(&found))
        };
        said += usize::from(found.iter().all(|(found, _)| found.is_some()));
        right += usize::from(found.iter().all(is_right));
        wrong += usize::from(found.iter().any(|one| one.0.is_some() && !is_right(one)));
        one_for_all += usize::from(naive(&cells, &stack));
    }
    vec![
        Claim::share("it is said where requests wait", Bound::AtLeast(0.93), said, trials),
        Claim::share("the right layer at every block size", Bound::AtLeast(0.93), right, trials),
        Claim::share("a wrong layer at any", Bound::AtMost(0.05), wrong, trials),
        Claim::share(
            "the layer with most of all the waiting: right at every block size",
            Bound::AtLeast(0.93),
            one_for_all,
            trials,
        )
        .of_broken(),
    ]
}

/// The layer that holds most requests over all cells, for all block sizes.
fn naive(cells: &[QueueCell], stack: &Two) -> bool {
    let held = |layer: usize| -> f64 {
        let of = |cell: &QueueCell| match layer {
            0 => cell.above,
            _ => cell.layers.get(layer - 1).map_or(0.0, |layer| layer.own),
        };
        cells.iter().map(of).sum()
    };
    let most = (0..LAYERS.len()).max_by(|&a, &b| held(a).total_cmp(&held(b)));
    most.is_some_and(|most| stack.blocks.iter().all(|&block| stack.waits(block).contains(&most)))
}
