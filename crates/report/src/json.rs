//! The contract `plimsoll.run/1`: what `run --json` and `export --format json` print.
//!
//! Unknown is `null`, never missing. Fields may be added within version 1; none is taken away
//! and none changes its meaning. See `docs/formats.md` and `schema/plimsoll.run-1.schema.json`.

use explain::Mark;
use explain::interval::CellInterval;
use record::{OpRecord, Run, Series, StackTree, StreamRecord, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::histogram::bucket_bounds;
use units::Nanos;

use crate::figures::{self, ABOVE_MIN, Figures, Judged, StreamOfCell, total};

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.run/1";
/// Shortest time without any completion that a visit lists: 50 ms, as for workers.
const GAP_MS_MIN: u64 = 50;

/// A run of plimsoll: what was to be done, on what, and every figure measured. Bytes and ns are
/// integers unless they are means. Values that are not known are null.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "plimsoll.run/1")]
pub struct Document {
    /// Always `plimsoll.run/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The run's id in its store.
    pub run: String,
    /// What it was and where.
    #[serde(flatten)]
    pub origin: Origin,
    /// Where all randomness came from.
    pub seed: u64,
    /// `running`, `complete`, `interrupted`, `failed`, or `killed`: left without a word by its
    /// process.
    pub state: String,
    /// Its part in a comparison measured in blocks; null if it is none.
    pub blocks: Option<Blocks>,
    /// One element per grid cell and stream, in the suite's order.
    pub cells: Vec<Cell>,
}

/// What every document tells of a run: what was to be done, on what, and where.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Origin {
    /// The suite's name.
    pub suite: String,
    /// What was measured; of several targets all together, their names in a row.
    pub target: Target,
    /// Each of several targets by itself; empty where there is one.
    pub targets: Vec<Target>,
    /// Wall clock at the start, ns since 1970; null where the tool of an imported run does not
    /// tell.
    pub started_unix_ns: Option<i64>,
    /// How many visits the plan has.
    pub visits_planned: u32,
    /// Version of the program that measured.
    pub program: String,
    /// The words of the command.
    pub command_line: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// Everything below the targets that could be seen, layer by layer; null in imported runs, of
    /// twins, and in runs of versions that did not look.
    pub stack: Option<StackTree>,
    /// The suite as it was played, with every default written out: TOML.
    pub suite_text: String,
    /// Its place in a list of suites; null if it was not played as part of one.
    pub part: Option<PartOf>,
    /// Where it came from, if another tool made it. Then texts that the tool did not tell are
    /// empty in this document, and sizes and the seed 0.
    pub imported: Option<Imported>,
    /// Doubts about the run as a whole; those about a visit are with the visit.
    pub warnings: Vec<Warning>,
}

/// A run's place in a list of suites that was played part after part.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PartOf {
    /// The same for all runs of one sequence.
    pub group: String,
    /// The list's name.
    pub list: String,
    /// From 1, every repeat of every part counted.
    pub number: u32,
    /// How many runs the whole sequence has.
    pub of: u32,
    /// On which stack; null where the list is no study.
    pub study: Option<OfStudy>,
}

/// Which of a study's stacks a run was made on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OfStudy {
    /// Which stack of the study's plan, from 1.
    pub stack: u32,
    /// What the study varies, with the level here.
    pub levels: Vec<Setting>,
    /// The base once more, made only to see noise and drift.
    pub again: bool,
    /// In which state its arrays were measured: `degraded`, `rebuilding`; null for healthy ones.
    pub state: Option<String>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Target {
    /// As the user named it.
    pub given: String,
    /// With symbolic links resolved.
    pub resolved: String,
    /// `file`, `block-device`, `character-device` or `twin`; `unknown` in imported runs.
    pub kind: String,
    /// Bytes of one file, or of the device.
    pub size_bytes: u64,
    /// How many files.
    pub files: u32,
    /// File system type as mounted.
    pub file_system: Option<String>,
    /// Mount point and options.
    pub mount: Option<String>,
    /// Block devices, top first.
    pub devices: Vec<String>,
    /// Smallest unit of direct I/O.
    pub direct_alignment_bytes: Option<u32>,
    /// The slowest link between the host and the devices, where the kernel tells one.
    pub link: Option<Link>,
    /// Cache in controllers and drives, as the user declared it.
    pub cache_bytes: Option<u64>,
    /// What a reader of the numbers must know about it.
    pub remarks: Vec<String>,
    /// The text that a simulated device was made by; null of others.
    pub model: Option<String>,
}

/// A link that all data of a device pass.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// What it is, from where.
    pub name: String,
    /// What it can carry in one direction.
    pub bytes_per_second: u64,
}

/// Where a run came from that another tool made.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Imported {
    /// The tool: `fio`, `bm-flash`.
    pub tool: String,
    /// Its version.
    pub version: Option<String>,
    /// The file it was read from.
    pub file: String,
    /// Bytes of that file.
    pub bytes: u64,
    /// XXH3 of those bytes, 16 hex digits.
    pub xxh3: String,
    /// How the tool says it was set, and what it says besides.
    pub settings: Vec<Setting>,
    /// What a reader of the figures has to know.
    pub remarks: Vec<String>,
}

/// A setting of another tool.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Setting {
    /// As the tool names it.
    pub name: String,
    /// As it prints it.
    pub value: String,
}

/// What another tool says about an operation, beyond what is in its place already.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reported {
    /// CPU busy, in percent as the tool counts it.
    pub cpu_percent: Option<f64>,
    /// Standard deviation of latency.
    pub latency_ns_sd: Option<f64>,
    /// Latencies that a share of the requests did not exceed, as printed.
    pub latency_ns_quantiles: Vec<Quantile>,
    /// The tool's own bins of latency.
    pub latency_ns_bins: Vec<Bin>,
}

/// A latency that a share of requests did not exceed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Quantile {
    /// 0.95 for the 95th percentile.
    pub share: f64,
    /// Latency.
    pub ns: u64,
}

/// A bin of another tool's histogram.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bin {
    /// The latency that the tool names it by.
    pub ns: u64,
    /// How many.
    pub count: u64,
}

/// The part of a run in a comparison measured in blocks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Blocks {
    /// The same for all sides of one comparison.
    pub group: String,
    /// `A`, `B`, ...
    pub side: String,
    /// Numbers (`repeat`) of the blocks that hold the reference against itself, to check the
    /// comparison: in no ratio.
    pub controls: Vec<u32>,
    /// Whether this run is the reference once more, for those blocks only.
    pub is_control: bool,
    /// How often the comparison was to be looked at, by plan: each of two looks has to be surer
    /// than the only one.
    pub looks: u32,
}

/// Where a run ran.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    /// The host's name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    /// Processor model.
    pub processor: String,
    /// Processors this process could use.
    pub processors: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// A doubt about a result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Warning {
    /// For programs.
    pub code: String,
    /// For people.
    pub text: String,
}

/// A cell's place on an axis of its grid.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Coordinate {
    /// The field varied, as in the suite.
    pub field: String,
    /// Its value here, as in the suite.
    pub value: String,
}

/// A grid cell's stream. Rates are completions by measured time; over several visits the sum
/// of completions by the sum of times. They count the visits whose `counted` is true, and data
/// operations only: syncs are in `ops`. An update or a copy is one operation, with its bytes once
/// and the latency of its read and its write together, of which only the mean is known; the
/// halves are in `ops`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Cell {
    /// Index of the grid cell; streams of one cell share it.
    pub cell: u32,
    /// What it is.
    #[serde(flatten)]
    pub row: Row,
    /// Completed requests per second.
    pub iops: Option<f64>,
    /// How sure that is: the geometric mean over the visits with its interval. Null where too
    /// little was measured to say.
    pub interval: Option<CellInterval>,
    /// What the devices right under the target moved; shared by the streams of a cell.
    pub device: Option<DeviceBytes>,
    /// The same figures per operation, syncs included.
    pub ops: Vec<Operation>,
    /// Every visit, also those not counted.
    pub visits: Vec<Visit>,
    /// Reasons to look twice: `not-possible-here: ...`, `not-measured`, `interrupted`, `failed`,
    /// `hanging`, `nothing-completed`, `errors`, `short`, the codes of the visits' warnings, and those of `evidence`.
    pub marks: Vec<String>,
    /// What marks that were found by looking at the whole run rest on.
    pub evidence: Vec<Mark>,
}

/// What every document tells of a grid cell's stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Its phase.
    pub phase: String,
    /// Its place on the grid's axes.
    pub coordinates: Vec<Coordinate>,
    /// The stream's name.
    pub stream: String,
    /// `read`, `write`, ...; `mixed` when several data operations are in it.
    pub op: String,
    /// Bytes per request, if all are alike.
    pub block_bytes: Option<u64>,
    /// Workers; null where the tool of an imported run does not tell.
    pub threads: Option<u32>,
    /// Requests in flight per worker, likewise.
    pub queue_depth: Option<u32>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Latency of completed requests; from the intended start in open loop.
    pub latency_ns: Latency,
    /// CPU per completed request of any operation.
    pub cpu_ns_per_io: CpuPerIo,
}

/// Latency in ns. Percentiles are at most 0.4 % off and null unless at least ten values lie
/// above them; mean and max are exact. In imported runs all are as the tool printed them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// Exact mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90 % did not take longer.
    pub p90: Option<u64>,
    /// 99 % did not take longer.
    pub p99: Option<u64>,
    /// 99.9 % did not take longer.
    pub p999: Option<u64>,
    /// Exact longest.
    pub max: Option<u64>,
    /// Exact shortest.
    pub min: Option<u64>,
}

/// CPU time per completed request, ns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CpuPerIo {
    /// In user mode.
    pub user: Option<f64>,
    /// In the kernel.
    pub system: Option<f64>,
}

/// What devices moved.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceBytes {
    /// Read from them.
    pub read_bytes: u64,
    /// Written to them.
    pub write_bytes: u64,
}

/// One operation of a stream over the visits that count.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Operation {
    /// `read`, `write`, `fsync`, ...
    pub op: String,
    /// Completed in full; null where the tool of an imported run did not count.
    pub requests: Option<u64>,
    /// Moved by those, likewise.
    pub bytes: Option<u64>,
    /// Failed.
    pub errors: u64,
    /// Completed with fewer bytes than asked; not in `requests`.
    pub short: u64,
    /// Completed requests per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Latency.
    pub latency_ns: Latency,
}

/// One stay in a cell, as one of its streams had it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Visit {
    /// How many visits of the run came before.
    pub order: u32,
    /// How many visits of the cell came before.
    pub repeat: u32,
    /// Start of the measured part, ns since 1970: by the host's wall clock, or by that of a simulated
    /// device which has its own and begins it at the run's start; null where the tool of an
    /// imported run does not tell.
    pub started_unix_ns: Option<i64>,
    /// Measured part, by the same clock; null likewise.
    pub elapsed_ns: Option<u64>,
    /// Where time ended the load: how long that was under way, from the same start. Rates are of
    /// this time and of what completed in it; null where they are of `elapsed_ns`.
    pub load_ns: Option<u64>,
    /// `complete`, `interrupted`, `failed` or `hanging`.
    pub end: String,
    /// Whether it counts in the cell's figures: visits that were cut short count only where
    /// there is no other, pilots never.
    pub counted: bool,
    /// `measure`, or `pilot`: made to learn how long the cell needs to come up to speed.
    pub purpose: String,
    /// Time before the measured part.
    pub ramp_ns: u64,
    /// How long the devices were waited for to be idle before it.
    pub waited_ns: u64,
    /// Whether they were idle then; null when nobody could look.
    pub quiet: Option<bool>,
    /// Thousandths of a sample of the files' pages that were in the page cache before it.
    pub resident_before_permille: Option<u32>,
    /// The same after it.
    pub resident_after_permille: Option<u32>,
    /// Completed data requests; null where the tool of an imported run did not count.
    pub requests: Option<u64>,
    /// Moved by those, likewise.
    pub bytes: Option<u64>,
    /// Failed requests of any operation.
    pub errors: u64,
    /// Data requests that completed with fewer bytes than asked.
    pub short: u64,
    /// Completed syncs.
    pub syncs: u64,
    /// Completed data requests per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Latency of data requests.
    pub latency_ns: Latency,
    /// CPU per completed request of any operation.
    pub cpu_ns_per_io: CpuPerIo,
    /// Each operation apart.
    pub ops: Vec<VisitOperation>,
    /// The back end in force; null when the stream never started.
    pub backend: Option<Backend>,
    /// One entry per worker.
    pub workers: Vec<Worker>,
    /// Bound on how much too long a latency can be, over all workers; null without workers.
    pub stamp_error_ns_max: Option<u64>,
    /// Requests completed during the ramp, not counted anywhere else.
    pub ramp_requests: u64,
    /// Open loop: requests that were due but not issued when the visit ended.
    pub backlog: u64,
    /// Times of 50 ms and more in which no stream completed anything, in steps of 1 ms.
    pub gaps: Vec<Gap>,
    /// The flush at the end of this stream: after its last request, in the measured time, and no
    /// stall of its load. Null where there was none, or it was not told apart when it was stored.
    pub closing_sync: Option<Gap>,
    /// Moments when the whole process did not run.
    pub host_stalls: Vec<Gap>,
    /// The kernel's counters of every layer below the target.
    pub ledger: Vec<Ledger>,
    /// What the server that was measured counted over the visit; empty where none was.
    pub counters: Vec<Counter>,
    /// Doubts about this visit.
    pub warnings: Vec<Warning>,
}

/// What a server counted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Counter {
    /// `log flushes`, `server processor time`.
    pub name: String,
    /// `B`, `us`, or empty of mere counts.
    pub unit: String,
    /// How much it grew over the visit.
    pub value: u64,
}

/// One operation of a stream in one visit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VisitOperation {
    /// `read`, `write`, `fsync`, ...
    pub op: String,
    /// Completed in full; null where the tool of an imported run did not count.
    pub requests: Option<u64>,
    /// Of those, what came back after the load had ended by time: in no rate.
    pub late_requests: u64,
    /// Moved by those, likewise.
    pub bytes: Option<u64>,
    /// Moved by those that came back later.
    pub late_bytes: u64,
    /// Failed, by error number; 0 where another tool did not number them.
    pub errors: Vec<ErrorCount>,
    /// Completed with fewer bytes than asked; not in `requests`.
    pub short: u64,
    /// Completed requests per second.
    pub iops: Option<f64>,
    /// Latency.
    pub latency_ns: Latency,
    /// The latency histogram's buckets that are not empty.
    pub buckets: Vec<Bucket>,
    /// Rate and tail over time.
    pub series: SeriesFigures,
    /// Requests that took 100 ms or more.
    pub slow: Vec<Slow>,
    /// How many more of those there were than the record has room for.
    pub slow_dropped: u64,
    /// What another tool says besides; null in runs of our own.
    pub reported: Option<Reported>,
}

/// Requests that failed alike.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ErrorCount {
    /// Linux error number.
    pub errno: i32,
    /// How many.
    pub count: u64,
}

/// A bucket of a latency histogram: at most 0.8 % wide.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bucket {
    /// Smallest latency it counts.
    pub from_ns: u64,
    /// Largest latency it counts.
    pub to_ns: u64,
    /// How many.
    pub count: u64,
}

/// Rate and tail over time: element `k` of each list is about `k * interval_ns ..` of the
/// measured part. The last interval may be shorter; its rate is over its real length.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SeriesFigures {
    /// Length of an interval.
    pub interval_ns: u64,
    /// Completed requests per second.
    pub iops: Vec<Option<f64>>,
    /// 99th percentile of latency, at most 5 % off; null unless ten values lie above it.
    pub p99_ns: Vec<Option<u64>>,
    /// Bound on the longest latency, at most 10 % above it; null when nothing completed.
    pub max_ns: Vec<Option<u64>>,
}

/// A request that took long.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Slow {
    /// Completion, since the start of the measured part.
    pub at_ns: u64,
    /// How long it took.
    pub latency_ns: u64,
    /// Which worker.
    pub worker: u32,
    /// Byte offset.
    pub offset: u64,
}

/// The back end in force.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Backend {
    /// `io_uring`, `blocking`, ...
    pub name: String,
    /// What of it was in force.
    pub flags: Vec<String>,
    /// Why this one and why not more.
    pub reasons: Vec<String>,
    /// Whether the page cache was gone around, as far as the kernel tells.
    pub direct: bool,
}

/// One worker of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Worker {
    /// Completed in full.
    pub requests: u64,
    /// User CPU.
    pub cpu_user_ns: Option<u64>,
    /// System CPU.
    pub cpu_system_ns: Option<u64>,
    /// Context switches by waiting.
    pub switches_voluntary: Option<u64>,
    /// Context switches suffered.
    pub switches_involuntary: Option<u64>,
    /// Times of 50 ms and more without a completion although requests were in flight.
    pub gaps: Vec<Gap>,
    /// Largest number of completions taken with one time stamp.
    pub batch_max: u32,
    /// Bound on how much too long a latency can be.
    pub stamp_error_ns_max: u64,
}

/// A time in which nothing happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Gap {
    /// Since the start of the measured part.
    pub start_ns: u64,
    /// How long.
    pub length_ns: u64,
}

/// The kernel's counters of one block device over a visit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ledger {
    /// Kernel name.
    pub device: String,
    /// Distance from the target: 0 is the device right under it.
    pub depth: u32,
    /// Read requests completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Sum over requests of the time in the queue and on the device.
    pub queue_ms: u64,
    /// Requests in flight at the end.
    pub in_flight_end: u64,
}

/// The document of a run. Nothing but the run goes in: the same samples give the same document.
pub fn document(run: &Run) -> Document {
    let header = &run.header;
    let judged = Judged::new(run);
    Document {
        schema: SCHEMA.to_owned(),
        run: header.id.clone(),
        origin: origin(run),
        seed: header.seed,
        state: header.state.name().to_owned(),
        blocks: header.blocks.as_ref().map(|b| Blocks {
            group: b.group.clone(),
            side: b.side.clone(),
            controls: b.controls.clone(),
            is_control: b.is_control,
            looks: b.looks,
        }),
        cells: figures::streams_of(run).iter().map(|stream| cell(&judged, stream)).collect(),
    }
}

pub(crate) fn origin(run: &Run) -> Origin {
    let header = &run.header;
    Origin {
        suite: header.suite.clone(),
        target: target(&header.target),
        targets: header.targets.iter().map(target).collect(),
        started_unix_ns: figures::known(run, header.started_unix_ns),
        visits_planned: header.visits_planned,
        program: header.program.clone(),
        command_line: header.command_line.clone(),
        machine: machine(&header.machine),
        stack: header.stack.clone(),
        suite_text: header.suite_text.clone(),
        part: header.part.as_ref().map(part),
        imported: header.imported.as_ref().map(imported),
        warnings: warnings(&figures::warnings_of(run)),
    }
}

/// The JSON schema of [`Document`], draft 2020-12.
pub fn schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Document>()
}

fn setting((name, value): &(String, String)) -> Setting {
    Setting { name: name.clone(), value: value.clone() }
}

pub(crate) fn part(part: &record::PartOf) -> PartOf {
    PartOf {
        group: part.group.clone(),
        list: part.list.clone(),
        number: part.number,
        of: part.of,
        study: part.study.as_ref().map(of_study),
    }
}

fn of_study(study: &record::OfStudy) -> OfStudy {
    OfStudy {
        stack: study.stack,
        levels: study.levels.iter().map(setting).collect(),
        again: study.again,
        state: study.state.clone(),
    }
}

fn imported(imported: &record::Imported) -> Imported {
    Imported {
        tool: imported.tool.clone(),
        version: imported.version.clone(),
        file: imported.file.clone(),
        bytes: imported.bytes,
        xxh3: imported.xxh3.clone(),
        settings: imported.settings.iter().map(setting).collect(),
        remarks: imported.remarks.clone(),
    }
}

fn reported(told: &record::Reported) -> Reported {
    let quantiles = &told.latency.quantiles;
    let bins = &told.latency.buckets;
    Reported {
        cpu_percent: told.cpu_percent,
        latency_ns_sd: told.latency.sd,
        latency_ns_quantiles: quantiles.iter().map(|&(share, ns)| Quantile { share, ns }).collect(),
        latency_ns_bins: bins.iter().map(|&(ns, count)| Bin { ns, count }).collect(),
    }
}

fn target(target: &record::TargetRecord) -> Target {
    Target {
        given: target.given.clone(),
        resolved: target.resolved.clone(),
        kind: kind(target.kind).to_owned(),
        size_bytes: target.size_bytes,
        files: target.files,
        file_system: target.file_system.clone(),
        mount: target.mount.clone(),
        devices: target.devices.clone(),
        direct_alignment_bytes: target.direct_alignment,
        link: target
            .link
            .as_ref()
            .map(|link| Link { name: link.name.clone(), bytes_per_second: link.bytes_per_second }),
        cache_bytes: target.cache_bytes,
        remarks: target.remarks.clone(),
        model: target.model.clone(),
    }
}

const fn kind(kind: record::TargetKind) -> &'static str {
    match kind {
        record::TargetKind::File => "file",
        record::TargetKind::BlockDevice => "block-device",
        record::TargetKind::CharacterDevice => "character-device",
        record::TargetKind::Twin => "twin",
        record::TargetKind::Database => "database",
        record::TargetKind::Unknown => "unknown",
    }
}

fn machine(machine: &record::Machine) -> Machine {
    Machine {
        host: machine.host.clone(),
        kernel: machine.kernel.clone(),
        architecture: machine.architecture.clone(),
        processor: machine.processor.clone(),
        processors: machine.processors,
        memory_bytes: machine.memory_bytes,
    }
}

pub(crate) fn warnings(warnings: &[record::Warning]) -> Vec<Warning> {
    warnings.iter().map(|w| Warning { code: w.code.clone(), text: w.text.clone() }).collect()
}

pub(crate) fn gaps(gaps: &[record::Gap]) -> Vec<Gap> {
    gaps.iter().map(|g| Gap { start_ns: g.start_ns, length_ns: g.length_ns }).collect()
}

fn cell(judged: &Judged, stream: &StreamOfCell) -> Cell {
    let figures = stream.figures();
    let counted = stream.counted();
    let visit =
        |v: &&VisitRecord| visit(judged.run, stream, v, counted.iter().any(|c| c.order == v.order));
    Cell {
        cell: stream.cell.index,
        row: row(judged.run, stream, &figures),
        iops: figures.iops(),
        interval: judged.interval(stream).cloned(),
        device: stream
            .device_bytes()
            .map(|(read_bytes, write_bytes)| DeviceBytes { read_bytes, write_bytes }),
        ops: stream.op_names().iter().map(|name| operation(stream, name)).collect(),
        visits: stream.visits.iter().map(visit).collect(),
        marks: marks(judged, stream),
        evidence: judged.marks_of(stream).cloned().collect(),
    }
}

pub(crate) fn row(run: &Run, stream: &StreamOfCell, figures: &Figures) -> Row {
    let StreamOfCell { cell, plan, .. } = stream;
    let coordinate = |(field, value): &(String, String)| Coordinate {
        field: field.clone(),
        value: value.clone(),
    };
    Row {
        phase: cell.phase.clone(),
        coordinates: cell.coordinates.iter().map(coordinate).collect(),
        stream: plan.name.clone(),
        op: plan.op.clone(),
        block_bytes: plan.block_bytes,
        threads: figures::known(run, plan.threads),
        queue_depth: figures::known(run, plan.queue_depth),
        bytes_per_s: figures.bytes_per_second(),
        latency_ns: latency(figures),
        cpu_ns_per_io: cpu(stream.cpu()),
    }
}

/// What is known of how long requests took.
pub(crate) fn latency(figures: &Figures) -> Latency {
    Latency {
        mean: figures.latency_ns_mean(),
        p50: figures.latency_ns(0.5),
        p90: figures.latency_ns(0.9),
        p99: figures.latency_ns(0.99),
        p999: figures.latency_ns(0.999),
        max: figures.latency_ns_max(),
        min: figures.latency_ns_min(),
    }
}

fn cpu(cpu: Option<figures::Cpu>) -> CpuPerIo {
    CpuPerIo { user: cpu.map(|c| c.user), system: cpu.map(|c| c.system) }
}

fn operation(stream: &StreamOfCell, name: &str) -> Operation {
    let figures = stream.figures_of(|op| op == name);
    Operation {
        op: name.to_owned(),
        requests: figures.requests_known(),
        bytes: figures.bytes_known(),
        errors: figures.errors,
        short: figures.short,
        iops: figures.iops(),
        bytes_per_s: figures.bytes_per_second(),
        latency_ns: latency(&figures),
    }
}

/// The stream's own marks, then those found by looking at the whole run.
pub(crate) fn marks(judged: &Judged, stream: &StreamOfCell) -> Vec<String> {
    let mut marks = stream.marks();
    for mark in judged.marks_of(stream) {
        if !marks.iter().any(|known| known == mark.code.name()) {
            marks.push(mark.code.name().to_owned());
        }
    }
    marks
}

fn visit(run: &Run, stream: &StreamOfCell, visit: &VisitRecord, counted: bool) -> Visit {
    let record = visit.streams.get(stream.position);
    let ops: &[OpRecord] = record.map_or(&[], |r| &r.ops);
    let data = stream.figures_in(visit, ops);
    let syncs = ops.iter().filter(|op| !figures::is_data(&op.op)).map(|op| op.requests);
    let errors = ops.iter().flat_map(|op| &op.errors).map(|&(_, n)| n);
    Visit {
        order: visit.order,
        repeat: visit.repeat,
        started_unix_ns: figures::known(run, visit.started_unix_ns),
        elapsed_ns: figures::known(run, visit.elapsed_ns),
        load_ns: visit.load_ns,
        end: visit.end.name().to_owned(),
        counted,
        purpose: visit.purpose.name().to_owned(),
        ramp_ns: visit.ramp_ns,
        waited_ns: visit.waited_ns,
        quiet: visit.quiet,
        resident_before_permille: visit.resident_before,
        resident_after_permille: visit.resident_after,
        requests: data.requests_known(),
        bytes: data.bytes_known(),
        errors: total(errors),
        short: data.short,
        syncs: total(syncs),
        iops: data.iops(),
        bytes_per_s: data.bytes_per_second(),
        latency_ns: latency(&data),
        cpu_ns_per_io: cpu(figures::cpu(record.into_iter())),
        ops: ops.iter().map(|op| visit_operation(stream, visit, op)).collect(),
        backend: record.map(backend),
        workers: record.map(workers).unwrap_or_default(),
        stamp_error_ns_max: record
            .and_then(|r| r.workers.iter().map(|w| w.stamp_error_ns_max).max()),
        ramp_requests: record.map_or(0, |r| r.ramp_requests),
        backlog: record.map_or(0, |r| r.backlog),
        gaps: silences(visit),
        closing_sync: record.and_then(closing_sync),
        host_stalls: gaps(&visit.host_stalls),
        ledger: visit.ledger.iter().map(ledger).collect(),
        counters: visit.counters.iter().map(counter).collect(),
        warnings: warnings(&visit.warnings),
    }
}

fn closing_sync(record: &StreamRecord) -> Option<Gap> {
    let found = record.workers.iter().find_map(|worker| worker.closing_sync)?;
    Some(Gap { start_ns: found.start_ns, length_ns: found.length_ns })
}

pub(crate) fn silences(visit: &VisitRecord) -> Vec<Gap> {
    let gap = |(start, bits): (u64, u64)| Gap {
        start_ns: start.saturating_mul(1_000_000),
        length_ns: bits.saturating_mul(1_000_000),
    };
    visit.completions.zero_runs(GAP_MS_MIN).into_iter().map(gap).collect()
}

fn backend(record: &StreamRecord) -> Backend {
    Backend {
        name: record.backend.name.clone(),
        flags: record.backend.flags.clone(),
        reasons: record.backend.reasons.clone(),
        direct: record.backend.direct,
    }
}

fn workers(record: &StreamRecord) -> Vec<Worker> {
    let worker = |w: &record::WorkerRecord| Worker {
        requests: w.requests,
        cpu_user_ns: w.cpu_user_ns,
        cpu_system_ns: w.cpu_system_ns,
        switches_voluntary: w.switches_voluntary,
        switches_involuntary: w.switches_involuntary,
        gaps: gaps(&w.gaps),
        batch_max: w.batch_max,
        stamp_error_ns_max: w.stamp_error_ns_max,
    };
    record.workers.iter().map(worker).collect()
}

fn counter(one: &record::Counter) -> Counter {
    Counter { name: one.name.clone(), unit: one.unit.clone(), value: one.value }
}

fn ledger(entry: &record::LedgerEntry) -> Ledger {
    Ledger {
        device: entry.device.clone(),
        depth: entry.depth,
        reads: entry.reads,
        read_bytes: entry.read_bytes,
        writes: entry.writes,
        write_bytes: entry.write_bytes,
        discards: entry.discards,
        discard_bytes: entry.discard_bytes,
        flushes: entry.flushes,
        queue_ms: entry.queue_ms,
        in_flight_end: entry.in_flight_end,
    }
}

fn visit_operation(stream: &StreamOfCell, visit: &VisitRecord, op: &OpRecord) -> VisitOperation {
    let mut figures = Figures::over(&[visit]);
    figures.add(op, visit, Some(stream.plan));
    let bucket = |(index, count): (u32, u64)| {
        let (from_ns, to_ns) = bucket_bounds(index as usize);
        Bucket { from_ns, to_ns, count }
    };
    let slow = |s: &record::SlowRequest| Slow {
        at_ns: s.at_ns,
        latency_ns: s.latency_ns,
        worker: s.worker,
        offset: s.offset,
    };
    VisitOperation {
        op: op.op.clone(),
        requests: figures.requests_known(),
        late_requests: op.late_requests,
        bytes: figures.bytes_known(),
        late_bytes: op.late_bytes,
        errors: op.errors.iter().map(|&(errno, count)| ErrorCount { errno, count }).collect(),
        short: op.short,
        iops: figures.iops(),
        latency_ns: latency(&figures),
        buckets: op.latency.sparse().map(bucket).collect(),
        series: series(&op.series, Nanos::new(visit.elapsed_ns)),
        slow: op.slow.iter().map(slow).collect(),
        slow_dropped: op.slow_dropped,
        reported: op.reported.as_ref().map(reported),
    }
}

fn series(series: &Series, elapsed: Nanos) -> SeriesFigures {
    let interval = series.interval_ns;
    let length = |k: u64| elapsed.get().saturating_sub(k.saturating_mul(interval)).min(interval);
    let rate = |(k, row): (u64, &record::SeriesRow)| {
        let length = length(k);
        (length > 0).then(|| row.requests as f64 * 1e9 / length as f64)
    };
    SeriesFigures {
        interval_ns: interval,
        iops: (0..).zip(&series.rows).map(rate).collect(),
        p99_ns: series.rows.iter().map(|row| tail_quantile(&row.tail, 99)).collect(),
        max_ns: series
            .rows
            .iter()
            .map(|row| row.tail.iter().rfind(|(_, n)| *n > 0).map(|&(b, _)| tail_bounds(b).1))
            .collect(),
    }
}

/// Smallest and largest latency of a bucket of a series' tail.
pub(crate) fn tail_bounds(bucket: u16) -> (u64, u64) {
    let first = usize::from(bucket) * 16;
    // Beyond the fine histogram's last bucket is nothing that was ever counted.
    let last = stats::histogram::BUCKETS - 1;
    (bucket_bounds(first.min(last)).0, bucket_bounds((first + 15).min(last)).1)
}

/// Nearest rank, the middle of its bucket; `None` unless [`ABOVE_MIN`] values lie above.
pub(crate) fn tail_quantile(tail: &[(u16, u64)], percent: u64) -> Option<u64> {
    let count = total(tail.iter().map(|&(_, n)| n));
    let rank = (u128::from(count) * u128::from(percent)).div_ceil(100) as u64;
    if count - rank < ABOVE_MIN {
        return None;
    }
    let mut seen = 0u64;
    let &(bucket, _) = tail.iter().find(|&&(_, n)| {
        seen = seen.saturating_add(n);
        seen >= rank
    })?;
    let (low, high) = tail_bounds(bucket);
    Some(low + (high - low) / 2)
}
