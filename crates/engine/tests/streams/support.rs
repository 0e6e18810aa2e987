//! Plays suites on a recording twin.
//!
//! Time is virtual: every request takes [`LATENCY`], however many there are. A cell that ends by
//! time so makes its requests per slot in no time of ours; override `time` with something short.

use device::model::Law;
use device::{Device, Model, ModelSpec, Op, Recording};
use engine::{Drive, Limits, Shared, Visit};
use suite::model::{Cell, Stream, Suite};
use suite::{CheckContext, SuiteSource, check, find_builtin, parse};
use units::Nanos;

/// How long each request takes.
pub const LATENCY: Nanos = Nanos::micros(100);

/// One request of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub op: Op,
    pub file: u32,
    /// In the file.
    pub offset: u64,
    pub length: u32,
    /// Where a copy inside of the kernel goes: file and offset.
    pub to: Option<(u32, u64)>,
    /// Index of its stream in the cell, and its worker's number in the stream.
    pub stream: u32,
    pub worker: u32,
    /// From the visit's begin: when it was issued and when it came back.
    pub start: Nanos,
    pub end: Nanos,
}

/// A cell as it was played.
#[derive(Clone, Debug)]
pub struct Played {
    pub phase: String,
    /// Index into the values of each axis.
    pub coordinates: Vec<usize>,
    pub streams: Vec<Stream>,
    /// In the order in which they were issued.
    pub requests: Vec<Request>,
}

/// Every request of a suite that comes with the program, or of one in `suites/` by its text's
/// name there; phases and cells one after the other, as `--classic` plays them.
pub fn record_suite(name: &str, overrides: &[&str]) -> Vec<Request> {
    play_suite(name, overrides).into_iter().flat_map(|cell| cell.requests).collect()
}

/// The same, cell by cell.
pub fn play_suite(name: &str, overrides: &[&str]) -> Vec<Played> {
    let found = find_builtin(name).unwrap_or_else(|| panic!("no suite `{name}`"));
    play_text(found.text, overrides)
}

/// The same of a text.
pub fn play_text(text: &str, overrides: &[&str]) -> Vec<Played> {
    let suite = checked(text, overrides);
    let cells = suite.phases.iter().flat_map(|phase| phase.cells.iter().map(move |c| (phase, c)));
    let played = cells.zip(1u64..).map(|((phase, cell), seed)| Played {
        phase: phase.name.clone(),
        coordinates: cell.coordinates.clone(),
        streams: cell.streams.clone(),
        requests: play_cell(&suite, cell, seed),
    });
    played.collect()
}

/// The suite with overrides, as `--classic` plays it.
pub fn checked(text: &str, overrides: &[&str]) -> Suite {
    let mut source: SuiteSource = parse(text, "suite").unwrap_or_else(|e| panic!("{e}"));
    source.set_classic().unwrap();
    for set in overrides {
        source.set(set).unwrap_or_else(|error| panic!("--set {set}: {error}"));
    }
    check(&source, &CheckContext::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// One visit to a cell.
pub fn play_cell(suite: &Suite, cell: &Cell, seed: u64) -> Vec<Request> {
    let visit = Visit {
        streams: cell.streams.clone(),
        files: suite.files.count,
        file_size: suite.files.size,
        data: suite.files.data,
        seed,
        run_seed: 1,
        verify: None,
    };
    let depth = visit.streams.iter().map(|s| s.threads * s.requests_max()).sum();
    let law = Law {
        iops: None,
        bandwidth: None,
        latency: LATENCY,
        request_bandwidth: None,
        sharpness: 5.0,
    };
    let model = Model::new(&ModelSpec::from_law(law, None), depth, 1).expect("a sound model");
    let mut device = Recording::new(model);
    let shared = Shared::new(&visit.streams);
    let workers = visit.workers();
    let mut drive = Drive::new(&visit, &workers, &shared, Limits::default()).expect("sound");
    drive.prepare(&mut device);
    let begin = device.now();
    drive.run(&mut device, begin, &mut ()).expect("a twin does not fail");
    let owner: Vec<_> = workers
        .iter()
        .flat_map(|&id| {
            let depth = visit.streams[id.stream as usize].requests_max() as usize;
            std::iter::repeat_n(id, depth)
        })
        .collect();
    let request = |entry: &device::RecordedRequest| {
        let owner = owner[entry.request.slot.0 as usize];
        Request {
            op: entry.request.op,
            file: entry.request.file.0,
            offset: entry.request.offset.get(),
            length: entry.request.length,
            to: entry.to.map(|(file, offset)| (file.0, offset.get())),
            stream: owner.stream,
            worker: owner.worker,
            start: entry.submitted.since(begin),
            end: entry.completed.expect("it came back").since(begin),
        }
    };
    device.log.iter().map(request).collect()
}

/// The words of a stream: `r` and `w`, `f` for a flush of any kind, `t` for a discard; `C`, `S` and
/// `D` for files made, looked at and removed, `c` for copies inside of the kernel.
pub fn letters(requests: &[Request]) -> String {
    let letter = |request: &Request| match request.op {
        Op::Read => 'r',
        Op::Write => 'w',
        Op::Fsync | Op::Fdatasync | Op::SyncRange => 'f',
        Op::Trim => 't',
        Op::Create => 'C',
        Op::Stat => 'S',
        Op::Delete => 'D',
        Op::CopyRange => 'c',
        Op::Commit => '!',
    };
    requests.iter().map(letter).collect()
}

/// Offsets in order.
pub fn offsets(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.offset).collect()
}
