//! Streams, visits and devices for the tests.

pub use device::Recording;
use device::{Device, DeviceError, Memory, MemoryShape, Model, ModelSpec, Null, Op, VirtualClock};
use engine::{Drive, Limits, Observer, Shared, Visit, VisitResult, WorkerId, WorkerResult, merge};
use record::OpRecord;
use suite::model::{
    Access, Backend, Choice, Class, Data, Last, Mix, Operation, Pacing, Region, Spread, Stop,
    Stream, Until, WriteThrough,
};
use units::{Bytes, Nanos};

pub const BLOCK: u64 = 4096;

pub fn class(op: Operation, weight: f64, bytes: u64) -> Class {
    Class { weight, op, block_size: Bytes::new(bytes), line: None }
}

/// 4 KiB reads, uniform over 1 MiB, one worker, depth 1, 100 of them.
pub fn stream() -> Stream {
    Stream {
        name: "s".to_owned(),
        access: Access::Uniform,
        mix: Mix { classes: vec![class(Operation::Read, 1.0, BLOCK)], choice: Choice::Dice },
        align: Bytes::new(BLOCK),
        copy_to: None,
        work: suite::model::Work::Blocks,
        region: Region { start: Bytes::ZERO, length: Bytes::mib(1), spread: Spread::Concatenated },
        sync: None,
        threads: 1,
        queue_depth: 1,
        pacing: Pacing::Closed { think: Nanos::ZERO, burst: 1 },
        commit_writes: 1,
        duty: None,
        direct: false,
        write_through: WriteThrough::No,
        backend: Backend::Auto,
        stop: Stop {
            ramp: Nanos::ZERO,
            time: None,
            bytes: None,
            operations: Some(100),
            until: Until::All,
            last: Last::Whole,
            extend: None,
        },
        start_file: suite::model::StartFile::Keep,
    }
}

pub fn ops(stream: &mut Stream, classes: &[(Operation, f64)]) {
    stream.mix.classes = classes.iter().map(|&(op, w)| class(op, w, BLOCK)).collect();
}

pub const fn for_time(time: Nanos) -> Stop {
    Stop {
        ramp: Nanos::ZERO,
        time: Some(time),
        bytes: None,
        operations: None,
        until: Until::All,
        last: Last::Whole,
        extend: None,
    }
}

pub const fn for_operations(n: u64) -> Stop {
    Stop {
        ramp: Nanos::ZERO,
        time: None,
        bytes: None,
        operations: Some(n),
        until: Until::All,
        last: Last::Whole,
        extend: None,
    }
}

pub fn visit(streams: Vec<Stream>) -> Visit {
    Visit {
        streams,
        files: 1,
        file_size: Bytes::mib(1),
        data: Data::Incompressible,
        seed: 11,
        run_seed: 5,
        verify: None,
    }
}

pub fn depth(visit: &Visit) -> u32 {
    visit.streams.iter().map(|s| s.threads * s.requests_max()).sum()
}

/// Offsets of everything, in order, in units of [`BLOCK`].
pub trait Blocks {
    fn blocks(&self) -> Vec<u64>;
}

impl<D> Blocks for Recording<D> {
    fn blocks(&self) -> Vec<u64> {
        self.log.iter().map(|e| e.request.offset.get() / BLOCK).collect()
    }
}

pub const TICK: Nanos = Nanos::micros(10);

pub fn null(visit: &Visit) -> Recording<Null<VirtualClock>> {
    Recording::new(Null::new(VirtualClock::default(), TICK, depth(visit)))
}

pub fn memory(visit: &Visit) -> Recording<Memory<VirtualClock>> {
    let buffer = visit.streams.iter().map(Stream::block_size_max).max().expect("a stream");
    let shape = MemoryShape {
        files: visit.files,
        file_size: visit.file_size,
        slots: depth(visit),
        buffer,
        tick: TICK,
    };
    Recording::new(Memory::new(VirtualClock::default(), shape))
}

/// 100 us a request, as many at once as there are.
pub fn model(visit: &Visit) -> Recording<Model> {
    model_with(visit, Nanos::micros(100), |_| {})
}

pub fn model_with(
    visit: &Visit,
    latency: Nanos,
    change: impl FnOnce(&mut ModelSpec),
) -> Recording<Model> {
    let law = device::model::Law {
        iops: None,
        bandwidth: None,
        latency,
        request_bandwidth: None,
        sharpness: 5.0,
    };
    let mut spec = ModelSpec::from_law(law, None);
    change(&mut spec);
    Recording::new(Model::new(&spec, depth(visit), 3).expect("a sound model"))
}

pub struct Played {
    pub result: VisitResult,
    pub workers: Vec<WorkerResult>,
    pub error: Option<DeviceError>,
}

/// One drive plays all workers. Twice, since results are consumed by the merge: the workers'
/// parts come from the same drive.
pub fn play<D: Device>(visit: &Visit, device: &mut D) -> Played {
    play_with(visit, device, Limits::default(), &mut ())
}

pub fn play_with<D: Device, O: Observer>(
    visit: &Visit,
    device: &mut D,
    limits: Limits,
    observer: &mut O,
) -> Played {
    let shared = Shared::new(&visit.streams);
    play_shared(visit, &visit.workers(), &shared, device, limits, observer)
}

pub fn play_shared<D: Device, O: Observer>(
    visit: &Visit,
    workers: &[WorkerId],
    shared: &Shared,
    device: &mut D,
    limits: Limits,
    observer: &mut O,
) -> Played {
    let mut drive = Drive::new(visit, workers, shared, limits).expect("a sound visit");
    drive.prepare(device);
    let begin = device.now();
    let error = drive.run(device, begin, observer).err();
    let workers = drive.finish();
    Played { result: merge(visit, workers.clone()), workers, error }
}

impl Played {
    pub fn op(&self, op: Op) -> Option<&OpRecord> {
        self.result.streams[0].ops.iter().find(|record| record.op == op.name())
    }

    pub fn requests(&self, op: Op) -> u64 {
        self.op(op).map_or(0, |record| record.requests)
    }

    pub fn total(&self) -> u64 {
        self.result.streams.iter().flat_map(|s| &s.ops).map(|op| op.requests).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.result.streams.iter().flat_map(|s| &s.ops).map(|op| op.bytes).sum()
    }

    pub fn warnings(&self) -> Vec<&str> {
        self.result.warnings.iter().map(|w| w.text.as_str()).collect()
    }

    pub fn codes(&self) -> Vec<&str> {
        self.result.warnings.iter().map(|w| w.code.as_str()).collect()
    }
}

/// Pearson's statistic of counts that should be as `expected`.
pub fn chi_square(counts: &[u64], expected: impl Fn(usize) -> f64) -> f64 {
    counts.iter().enumerate().map(|(i, &n)| (n as f64 - expected(i)).powi(2) / expected(i)).sum()
}

/// What chi-square with so many degrees of freedom exceeds once in a million (Wilson and
/// Hilferty 1931; z = 4.75).
pub fn chi_limit(degrees: usize) -> f64 {
    let k = 2.0 / (9.0 * degrees as f64);
    degrees as f64 * (1.0 - k + 4.75 * k.sqrt()).powi(3)
}

/// Asserts that a count of `n` draws of probability `p` is one that comes about but once in a
/// million.
#[track_caller]
pub fn assert_binomial(seen: u64, n: u64, p: f64, what: &str) {
    let (mean, deviation) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    let off = (seen as f64 - mean).abs();
    assert!(
        off <= 4.9 * deviation + 1.0,
        "{what}: {seen} of {n}, wanted {mean:.1} +- {deviation:.1}"
    );
}
