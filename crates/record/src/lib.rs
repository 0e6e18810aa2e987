//! What a run yields: plain types, integers in bytes and ns, versioned.
//!
//! A *run* is one execution of a plan on a target. It has *cells* (points of the suite's grid);
//! each cell is stayed in for one or more *visits*. A visit holds what its streams measured,
//! what the machine below and around it did meanwhile, and how it ended.
//!
//! Nothing here is computed from anything else here: rates, means and verdicts are for readers.

pub mod stack;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::LatencyHistogram;

pub use crate::stack::StackTree;

/// The version of everything in this module. Raised when a field changes its meaning; readers
/// of an old version are kept.
pub const VERSION: u32 = 1;

/// All of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What was to be done, on what, by whom.
    pub header: RunHeader,
    /// In the suite's order.
    pub cells: Vec<CellRecord>,
    /// In the order they were made.
    pub visits: Vec<VisitRecord>,
}

/// What was to be done, on what, by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Short, unique in the store: `r17`; imported and merged runs keep theirs.
    pub id: String,
    /// [`VERSION`] when it was written.
    pub version: u32,
    /// The suite's name.
    pub suite: String,
    /// The suite as it was played, with overrides and every default filled in: TOML that the
    /// suite reader takes back.
    pub suite_text: String,
    /// What was measured; of several targets all together, their names in a row.
    pub target: TargetRecord,
    /// Each of several targets by itself, in the order given; empty where there is one.
    #[serde(default)]
    pub targets: Vec<TargetRecord>,
    /// Where all randomness came from.
    pub seed: u64,
    /// The words of the command, the program first.
    pub command_line: Vec<String>,
    /// Version of the program.
    pub program: String,
    /// Where it ran.
    pub machine: Machine,
    /// Everything below the targets that could be seen; `None` in imported runs, of twins, and in
    /// runs of versions that did not look.
    #[serde(default)]
    pub stack: Option<StackTree>,
    /// Wall clock at the start, ns since 1970.
    pub started_unix_ns: i64,
    /// How it stands.
    pub state: RunState,
    /// How many visits the plan has.
    pub visits_planned: u32,
    /// Its part in a comparison measured in blocks, if it is one side of such.
    pub blocks: Option<Blocks>,
    /// Its place in a list of suites, if it was played as part of such.
    #[serde(default)]
    pub part: Option<PartOf>,
    /// Where it came from, if another tool made it. Then what that tool did not say is empty or
    /// 0 in this header, and is not known.
    #[serde(default)]
    pub imported: Option<Imported>,
    /// Doubts about the run as a whole.
    pub warnings: Vec<Warning>,
}

/// Where a run came from that another tool made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The tool: `fio`, `bm-flash`.
    pub tool: String,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// The file it was read from, as the user named it.
    pub file: String,
    /// Bytes of that file.
    pub bytes: u64,
    /// XXH3 of those bytes, 16 hex digits: the same output can be told when it comes again.
    pub xxh3: String,
    /// How the tool says it was set, and what it says besides: (name, value).
    pub settings: Vec<(String, String)>,
    /// What a reader of the figures has to know.
    pub remarks: Vec<String>,
}

/// A side of a comparison that was measured in blocks: every block visits every side once, close
/// in time and in random order. Visits of one cell with the same `repeat` in runs of one group
/// are a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    /// The same for all sides of one comparison, and for nothing else.
    pub group: String,
    /// `A`, `B`, ...
    pub side: String,
    /// How often the comparison was to be looked at, by plan: each of two looks has to be surer
    /// than the only one.
    #[serde(default = "one_look")]
    pub looks: u32,
    /// Numbers (`repeat`) of the blocks that hold the reference against itself, rising: the same on
    /// all sides. They check the comparison and are no part of it.
    #[serde(default)]
    pub controls: Vec<u32>,
    /// Whether this run is the reference once more, under another label: it has visits in those
    /// blocks only.
    #[serde(default)]
    pub is_control: bool,
}

impl Blocks {
    /// The label of the reference.
    pub const REFERENCE: &str = "A";

    /// Whether this side is visited in the block of this number: the reference in all; its second
    /// self only where it is held against itself; others only elsewhere.
    pub fn takes_part(&self, block: u32) -> bool {
        match self.controls.contains(&block) {
            true => self.is_control || self.side == Self::REFERENCE,
            false => !self.is_control,
        }
    }

    /// The first block from this number on in which this side is visited.
    pub fn next_block(&self, from: u32) -> Option<u32> {
        if self.is_control {
            return self.controls.iter().copied().filter(|&block| block >= from).min();
        }
        (from..=u32::MAX).find(|&block| self.takes_part(block))
    }
}

const fn one_look() -> u32 {
    1
}

/// A run's place in a list of suites that was played part after part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartOf {
    /// The same for all runs of one sequence, and for nothing else: 8 hex digits.
    pub group: String,
    /// The list's name.
    pub list: String,
    /// From 1, every repeat of every part counted.
    pub number: u32,
    /// How many runs the whole sequence has.
    pub of: u32,
    /// On which stack, where the sequence is a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<OfStudy>,
}

/// Which of a study's stacks a run was made on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfStudy {
    /// Which stack of the study's plan, from 1, in the order they are built.
    pub stack: u32,
    /// (factor, level): what the study varies, in the order of its file. Every run of one study
    /// has the same factors.
    pub levels: Vec<(String, String)>,
    /// The base once more, made only to see noise and drift.
    #[serde(default)]
    pub again: bool,
    /// In which state its arrays were measured, where that is not healthy: `degraded`,
    /// `rebuilding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// A run on one line: what a listing shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// As in [`RunHeader::id`].
    pub id: String,
    /// The suite's name.
    pub suite: String,
    /// The target as the user named it.
    pub target: String,
    /// The tool that made it, if it was imported.
    #[serde(default)]
    pub imported: Option<String>,
    /// Wall clock at the start, ns since 1970; `None` where the tool of an imported run does not
    /// tell.
    pub started_unix_ns: Option<i64>,
    /// How it stands.
    pub state: RunState,
    /// Whether a process has claimed it now.
    pub live: bool,
    /// How many visits were made.
    pub visits_made: u32,
    /// How many visits the plan has.
    pub visits_planned: u32,
    /// How many warnings it has, its visits' included.
    pub warnings: u32,
    /// Its place in a list of suites, if it was played as part of such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartOf>,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Under way. A store keeps this of a killed run, too; whoever reads it from there is told
    /// [`Self::Killed`].
    Running,
    /// Every visit was made.
    Complete,
    /// Ended by the user.
    Interrupted,
    /// Ended by an error, named in the warnings.
    Failed,
    /// Left by its process without a word: it says that it is under way, and nobody holds it. It
    /// can be resumed.
    Killed,
}

impl RunState {
    /// The name in stores and exports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }

    /// The same of a stored run that is held by a process, or by none.
    #[must_use]
    pub const fn held(self, by_one: bool) -> Self {
        match self {
            Self::Running if !by_one => Self::Killed,
            other => other,
        }
    }
}

impl TargetRecord {
    /// Whether it was a volume of the write-optimising layer that was made for the run.
    pub fn is_layer(&self) -> bool {
        self.given.starts_with("layer:")
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// As the user named it.
    pub given: String,
    /// With symbolic links resolved; the same for twins.
    pub resolved: String,
    /// What it is.
    pub kind: TargetKind,
    /// Bytes of one file, or of the device.
    pub size_bytes: u64,
    /// How many files.
    pub files: u32,
    /// File system type as mounted (`ext4`), where there is one.
    pub file_system: Option<String>,
    /// Mount point and options, where there is one.
    pub mount: Option<String>,
    /// The block device at the top and those below it, top first: kernel names.
    pub devices: Vec<String>,
    /// Smallest unit of direct I/O in bytes: offset and length; `None` where there is no
    /// direct I/O or the kernel does not say.
    pub direct_alignment: Option<u32>,
    /// The slowest link between the host and the devices, if the kernel tells one.
    pub link: Option<Link>,
    /// Bytes of cache in controllers and drives, as the user declared them: nobody else knows.
    pub cache_bytes: Option<u64>,
    /// What the target is that a reader of the numbers must know: `tmpfs: memory, no device`.
    pub remarks: Vec<String>,
    /// Text of the file that a simulated device was made by, as it was read; `None` of other
    /// targets, and in runs that were stored before it was kept.
    pub model: Option<String>,
}

/// A link that all data of a device pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// What it is, from where: `PCIe 3.0 x4 of nvme0`.
    pub name: String,
    /// What it can carry in one direction, coding and packets taken off where that is known.
    pub bytes_per_second: u64,
}

/// What kind of thing a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A regular file or a set of them.
    File,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// A twin: null, memory, model, faulty.
    Twin,
    /// A database server, or an embedded database, that was started for the run in a directory.
    Database,
    /// Not told by the tool that the run was imported from.
    Unknown,
}

/// Where a run ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The host's name.
    pub host: String,
    /// As `uname -r` says.
    pub kernel: String,
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    /// Processor model as the kernel names it.
    pub processor: String,
    /// Processors this process may use.
    pub processors: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// One point of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// From 0, in the suite's order over all phases.
    pub index: u32,
    /// Its phase's name; `fill` for the fill before the first phase.
    pub phase: String,
    /// Its place on the grid's axes: (field, value) as text, `("block_size", "4KiB")`.
    pub coordinates: Vec<(String, String)>,
    /// What it asks for, stream by stream.
    pub streams: Vec<StreamPlan>,
    /// Why it cannot be measured here, if so: `512-byte direct I/O on a device of 4096-byte
    /// sectors`. Such a cell has no visits.
    pub impossible: Option<String>,
}

/// What a stream of a cell asks for: the facts that tables and exports need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// The stream's name.
    pub name: String,
    /// `read`, `write`, `mixed`, ...
    pub op: String,
    /// Bytes per request, if all are alike.
    pub block_bytes: Option<u64>,
    /// Workers. 0 in imported runs: not known.
    pub threads: u32,
    /// Requests in flight per worker. 0 in imported runs: not known.
    pub queue_depth: u32,
}

/// One stay in a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitRecord {
    /// Index of the cell.
    pub cell: u32,
    /// How many visits of this cell came before.
    pub repeat: u32,
    /// How many visits of the run came before.
    pub order: u32,
    /// Start of the measured part, ns since 1970: by the host's wall clock, or by that of a simulated
    /// device which has its own and begins it at the run's start.
    pub started_unix_ns: i64,
    /// Measured part: from the first worker's start to the last completion counted. 0 in imported
    /// runs: not known.
    pub elapsed_ns: u64,
    /// From the same start to the end of the load, where that ended by time: see
    /// [`Self::rated_ns`]. Longer than `elapsed_ns` where nothing was in flight at the end. `None`
    /// where the load lasted to the last completion, and in runs that were stored before it was
    /// told apart.
    pub load_ns: Option<u64>,
    /// How it ended.
    pub end: VisitEnd,
    /// What it was made for.
    pub purpose: Purpose,
    /// Time before the measured part that was not counted.
    pub ramp_ns: u64,
    /// How long the device was waited for to be idle before the visit.
    pub waited_ns: u64,
    /// Whether it was idle then; `None` when nobody could look.
    pub quiet: Option<bool>,
    /// Thousandths of the files that were in the page cache before the visit, by a sample;
    /// `None` where there is no page cache or the kernel does not tell.
    pub resident_before: Option<u32>,
    /// The same after it.
    pub resident_after: Option<u32>,
    /// In the order of the cell's streams.
    pub streams: Vec<StreamRecord>,
    /// Bit `t / 1 ms` is set when any request of any stream completed in that millisecond of
    /// the measured part; lowest bit of each byte first.
    pub completions: Bitmap,
    /// The kernel's counters of every layer below the target, over the visit.
    pub ledger: Vec<LedgerEntry>,
    /// What the server that was measured counted over the visit; empty where none was.
    pub counters: Vec<Counter>,
    /// Moments when the whole process did not run, by the watchdog thread.
    pub host_stalls: Vec<Gap>,
    /// Doubts about this visit.
    pub warnings: Vec<Warning>,
}

/// What a visit was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To be counted.
    #[default]
    Measure,
    /// To learn how long the cell needs to come up to speed; in no figure.
    Pilot,
}

impl Purpose {
    /// The name in stores and exports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measure => "measure",
            Self::Pilot => "pilot",
        }
    }
}

/// How a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VisitEnd {
    /// By its stop rule.
    Complete,
    /// By the user, before its stop rule.
    Interrupted,
    /// By an error, named in its warnings.
    Failed,
    /// By its stop rule, but requests never came back; they are in its warnings.
    Hanging,
}

impl VisitEnd {
    /// The name in stores and exports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Hanging => "hanging",
        }
    }
}

/// What a stream measured in a visit.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamRecord {
    /// The stream's name.
    pub name: String,
    /// The back end in force, its flags and the reason for it.
    pub backend: BackendRecord,
    /// One entry per operation met, in the order of the operations' numbers.
    pub ops: Vec<OpRecord>,
    /// One entry per worker.
    pub workers: Vec<WorkerRecord>,
    /// Requests completed during the ramp, not counted anywhere else.
    pub ramp_requests: u64,
    /// Open loop: requests that were due but not issued when the visit ended.
    pub backlog: u64,
}

/// The back end in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendRecord {
    /// `io_uring`, `blocking`, `libaio`, `mmap`, `null`, ...
    pub name: String,
    /// What of it was in force: `registered-buffers`, `defer-taskrun`, ...
    pub flags: Vec<String>,
    /// Why this one and why not more: `queue depth 1: one system call an I/O is least`.
    pub reasons: Vec<String>,
    /// Whether the page cache was gone around, as far as the kernel tells.
    pub direct: bool,
}

/// What one kind of operation did in a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRecord {
    /// `read`, `write`, ...: the seam's names.
    pub op: String,
    /// Completed in full.
    pub requests: u64,
    /// Moved by those.
    pub bytes: u64,
    /// Failed, by error number.
    pub errors: Vec<(i32, u64)>,
    /// Completed with fewer bytes than asked; not in `requests`.
    pub short: u64,
    /// Latency of the completed, from the intended start in open loop.
    pub latency: LatencyHistogram,
    /// Shortest; 0 if none.
    pub latency_ns_min: u64,
    /// Longest; 0 if none.
    pub latency_ns_max: u64,
    /// Sum of all: the exact mean is this by `requests`.
    pub latency_ns_sum: u128,
    /// Rate and tail over time, merged over the workers.
    pub series: Series,
    /// Completions that took 100 ms or more, in order of time.
    pub slow: Vec<SlowRequest>,
    /// How many more of those there were than `slow` has room for.
    pub slow_dropped: u64,
    /// Of `requests`, those that came back after the load had ended by time: in no rate.
    pub late_requests: u64,
    /// Moved by those.
    pub late_bytes: u64,
    /// What another tool says about the operation. Then the counts above are 0 where it did not
    /// count, there is no histogram, and the rates and latencies are those in here.
    pub reported: Option<Reported>,
}

/// What another tool says about an operation. What it does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// Completed, as it counted them.
    pub requests: Option<u64>,
    /// Moved by those.
    pub bytes: Option<u64>,
    /// Requests per second, as printed.
    pub iops: Option<f64>,
    /// Bytes per second, as printed.
    pub bytes_per_s: Option<f64>,
    /// CPU busy, in percent of one processor or as the tool counts it.
    pub cpu_percent: Option<f64>,
    /// Latency.
    pub latency: ReportedLatency,
}

/// Latency in ns, as another tool says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportedLatency {
    /// Shortest.
    pub min: Option<u64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Longest.
    pub max: Option<u64>,
    /// Standard deviation.
    pub sd: Option<f64>,
    /// (share, latency that so many did not exceed), shares rising.
    pub quantiles: Vec<(f64, u64)>,
    /// (latency, how many), as the tool binned them; latencies rising.
    pub buckets: Vec<(u64, u64)>,
}

/// A request that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowRequest {
    /// Completion, since the start of the measured part.
    pub at_ns: u64,
    /// How long it took.
    pub latency_ns: u64,
    /// Which worker of the stream.
    pub worker: u32,
    /// Where: byte offset.
    pub offset: u64,
}

/// Rate and tail per interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Length of an interval; 100 ms, doubled as often as a very long visit needed.
    pub interval_ns: u64,
    /// `rows[k]` covers `k * interval_ns ..` of the measured part. The last may be partial.
    pub rows: Vec<SeriesRow>,
}

/// One interval of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesRow {
    /// Completed in the interval.
    pub requests: u64,
    /// Moved by those.
    pub bytes: u64,
    /// Latencies in eighths of an octave: (bucket, count), buckets rising. Bucket `b` is the
    /// fine histogram's buckets `16 b .. 16 b + 16`.
    pub tail: Vec<(u16, u64)>,
}

/// One worker of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Completed in full in the measured part.
    pub requests: u64,
    /// User CPU of its thread over the measured part; `None` where threads are not the
    /// device's (twins on a virtual clock).
    pub cpu_user_ns: Option<u64>,
    /// System CPU likewise.
    pub cpu_system_ns: Option<u64>,
    /// Context switches it asked for, by waiting.
    pub switches_voluntary: Option<u64>,
    /// Context switches it suffered.
    pub switches_involuntary: Option<u64>,
    /// Times of 50 ms and more in which it completed nothing although requests were in flight.
    pub gaps: Vec<Gap>,
    /// Largest number of completions taken with one time stamp.
    pub batch_max: u32,
    /// Longest time seen between taking a time stamp and handing the next requests to the device,
    /// one batch in 64 looked at: how much too long a latency can be. 0 in visits of fewer
    /// batches.
    pub stamp_error_ns_max: u64,
    /// The flush at the end of its stream, where this worker was the one to make it and it
    /// counts: after the last request of the load, in the measured time, and in none of `gaps`.
    /// `None` also in runs that were stored before it was told apart.
    #[serde(default)]
    pub closing_sync: Option<Gap>,
}

/// A time in which nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Since the start of the measured part.
    pub start_ns: u64,
    /// How long.
    pub length_ns: u64,
}

/// A bit per millisecond.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bitmap {
    /// Lowest bit of each byte first.
    pub bytes: Vec<u8>,
    /// How many bits count.
    pub bits: u64,
}

/// The kernel's counters of one block device over a visit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Kernel name: `sda`, `dm-0`.
    pub device: String,
    /// Distance from the target: 0 is the device right under the file system.
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
    /// Sum over requests of the time in the queue and on the device, ms.
    pub queue_ms: u64,
    /// Requests in flight at the end.
    pub in_flight_end: u64,
}

/// What a server counted, such as a database's log flushes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// `log flushes`, `server processor time`.
    pub name: String,
    /// `B`, `us`, or empty of mere counts.
    pub unit: String,
    /// How much it grew.
    pub value: u64,
}

/// A doubt about a result, stored with it and shown with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// For programs: `buffered-fallback`, `hanging`, `verify-mismatch`.
    pub code: String,
    /// For people: what, on what, seen, wanted.
    pub text: String,
}

/// Code of the [`Warning`] of a side of a comparison that ended since another side failed.
pub const SIDE_FAILED: &str = "side-failed";

impl Warning {
    /// A warning from its parts.
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into() }
    }

    /// The stream that it is about, where its text begins with one: ``stream `log`: ...``.
    pub fn stream(&self) -> Option<&str> {
        self.text.strip_prefix("stream `")?.split_once('`').map(|(name, _)| name)
    }
}

impl Run {
    /// How many of the planned visits were made: those that the user cut short are not, and one
    /// that was made again counts once.
    pub fn visits_made(&self) -> usize {
        let made = self
            .visits
            .iter()
            .filter(|v| v.end != VisitEnd::Interrupted && v.purpose == Purpose::Measure);
        made.map(|v| (v.cell, v.repeat)).collect::<std::collections::BTreeSet<_>>().len()
    }
}

impl Bitmap {
    /// How many of the first so many bits are set: as long as there are bytes, however long that is.
    pub fn ones(&self, bits: u64) -> u64 {
        let bits = bits.min(self.bits);
        let whole = usize::try_from(bits / 8).unwrap_or(usize::MAX).min(self.bytes.len());
        let count =
            |bytes: &[u8]| bytes.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        let rest = self.bytes.get(whole).map_or(0, |byte| byte & ((1 << (bits % 8)) - 1));
        count(&self.bytes[..whole]) + u64::from(rest.count_ones())
    }

    /// All zero.
    pub fn zeros(bits: u64) -> Self {
        Self { bytes: vec![0; bits.div_ceil(8) as usize], bits }
    }

    /// Sets a bit; past the end nothing happens.
    #[inline]
    pub fn set(&mut self, bit: u64) {
        if let Some(byte) = self.bytes.get_mut((bit / 8) as usize)
            && bit < self.bits
        {
            *byte |= 1 << (bit % 8);
        }
    }

    /// Sets all bits of a range; past the end nothing happens.
    pub fn set_all(&mut self, bits: std::ops::Range<u64>) {
        let end = bits.end.min(self.bits);
        let mut at = bits.start;
        while at < end {
            if at.is_multiple_of(8) && end - at >= 8 {
                let whole = (at / 8) as usize..(end / 8) as usize;
                at = end / 8 * 8;
                if let Some(bytes) = self.bytes.get_mut(whole) {
                    bytes.fill(u8::MAX);
                }
            } else {
                self.set(at);
                at += 1;
            }
        }
    }

    /// Clears a bit; past the end nothing happens.
    pub fn clear(&mut self, bit: u64) {
        if let Some(byte) = self.bytes.get_mut((bit / 8) as usize) {
            *byte &= !(1 << (bit % 8));
        }
    }

    /// Whether a bit is set; past the end none is.
    pub fn get(&self, bit: u64) -> bool {
        bit < self.bits
            && self.bytes.get((bit / 8) as usize).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
    }

    /// Adds the set bits of `other`, growing to its length.
    pub fn merge(&mut self, other: &Self) {
        if other.bits > self.bits {
            self.bytes.resize(other.bytes.len(), 0);
            self.bits = other.bits;
        }
        for (mine, theirs) in self.bytes.iter_mut().zip(&other.bytes) {
            *mine |= theirs;
        }
    }

    /// Runs of at least `bits_min` zero bits as (first bit, how many).
    pub fn zero_runs(&self, bits_min: u64) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        let mut start = 0;
        for bit in 0..=self.bits {
            if bit == self.bits || self.get(bit) {
                if bit - start >= bits_min && bit > start {
                    runs.push((start, bit - start));
                }
                start = bit + 1;
            }
        }
        runs
    }
}

impl VisitRecord {
    /// The time that rates are by.
    ///
    /// A visit that ends by time asks for nothing more from then on, and waiting for a request
    /// that is seconds late says nothing of how many it did in a second: it is rated by the time
    /// until its load ended. That is the planned end; or, with every request that may be in flight
    /// out then, the first completion after it, since up to there the device had all the load that
    /// it was to have. So a device that stands still at the end is rated by all of that time. Other
    /// visits are rated by the time until the last completion.
    pub fn rated_ns(&self) -> u64 {
        self.load_ns.unwrap_or(self.elapsed_ns)
    }
}

impl OpRecord {
    /// Requests that rates are of: those that completed within [`VisitRecord::rated_ns`].
    pub fn requests_rated(&self) -> u64 {
        self.requests.saturating_sub(self.late_requests)
    }

    /// Bytes likewise.
    pub fn bytes_rated(&self) -> u64 {
        self.bytes.saturating_sub(self.late_bytes)
    }

    /// Mean latency; `None` when nothing completed.
    pub fn latency_ns_mean(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.latency_ns_sum as f64 / self.requests as f64)
    }

    /// How many requests failed.
    pub fn errors_total(&self) -> u64 {
        self.errors.iter().map(|&(_, n)| n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_visited_in_their_blocks() {
        let side = |side: &str, is_control| Blocks {
            group: "g".into(),
            side: side.into(),
            looks: 1,
            controls: vec![2, 5],
            is_control,
        };
        let blocks = |side: &Blocks| (0..7).filter(|&k| side.takes_part(k)).collect::<Vec<_>>();
        assert_eq!(blocks(&side("A", false)), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(blocks(&side("B", false)), [0, 1, 3, 4, 6]);
        assert_eq!(blocks(&side("A'", true)), [2, 5]);
        assert_eq!(side("B", false).next_block(2), Some(3));
        assert_eq!(side("A'", true).next_block(3), Some(5));
        assert_eq!(side("A'", true).next_block(6), None);
    }

    #[test]
    fn zero_runs_are_found_at_both_ends() {
        let mut map = Bitmap::zeros(20);
        map.set(5);
        map.set(6);
        map.set(99);
        map.set(7);
        map.clear(7);
        map.clear(99);
        assert_eq!(map.zero_runs(1), [(0, 5), (7, 13)]);
        assert_eq!(map.zero_runs(6), [(7, 13)]);
        assert!(map.get(5) && !map.get(4) && !map.get(99));
    }

    #[test]
    fn ones_are_counted_to_a_bit_and_no_further_than_there_are() {
        let mut map = Bitmap::zeros(20);
        [0, 7, 8, 15, 16, 19].into_iter().for_each(|bit| map.set(bit));
        for bits in 0..=20 {
            let wanted = (0..bits).filter(|&bit| map.get(bit)).count() as u64;
            assert_eq!(map.ones(bits), wanted, "{bits}");
        }
        assert_eq!(map.ones(u64::MAX), 6);
        assert_eq!(Bitmap::default().ones(1 << 60), 0);
    }

    #[test]
    fn a_range_is_set_as_its_bits_are() {
        for (start, end) in
            [(0, 64), (3, 5), (7, 8), (5, 24), (8, 16), (1, 63), (60, 900), (70, 80)]
        {
            let mut map = Bitmap::zeros(64);
            map.set_all(start..end);
            let mut one_by_one = Bitmap::zeros(64);
            (start..end).for_each(|bit| one_by_one.set(bit));
            assert!(map == one_by_one, "{start}..{end}");
        }
    }

    #[test]
    fn merge_takes_the_longer() {
        let mut a = Bitmap::zeros(8);
        a.set(1);
        let mut b = Bitmap::zeros(16);
        b.set(12);
        a.merge(&b);
        assert!(a.bits == 16 && a.get(1) && a.get(12));
    }
}
