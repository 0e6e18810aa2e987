//! A checked suite: everything decided, every default filled in, the grid expanded to cells.
//!
//! These types are what `plan` orders and `engine` plays. They can only come out of the checker
//! ([`crate::check`]), so whoever holds one need not check again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// A whole method: files, phases, order, table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suite {
    /// Name on the command line, lower case with hyphens.
    pub name: String,
    /// One line for `suite list`.
    pub title: String,
    /// What the method is for and where it comes from; may have several lines.
    pub description: String,
    /// What its sizes and totals were multiplied by, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaled: Option<f64>,
    /// The service level that `plimsoll line` holds its rates against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<crate::Level>,
    /// What the streams address.
    pub files: FileSet,
    /// In this order, never interleaved with each other.
    pub phases: Vec<Phase>,
    /// How visits are chosen.
    pub method: Method,
    /// Of [`Method::Rounds`].
    pub rounds: Rounds,
    /// How often each cell is visited under [`Method::Classic`].
    pub repeats: u32,
    /// In which order the cells of a phase are visited under [`Method::Classic`].
    pub order: Order,
    /// Pause before every visit, where the phase says nothing.
    pub settle: Nanos,
    /// What to do to caches before every visit, in this order, where the phase says nothing.
    pub caches: Vec<CacheStep>,
    /// How the classic table looks.
    pub table: TableLayout,
}

/// How visits are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Short visits in rounds of random order, each cell until its interval is narrow enough.
    Rounds,
    /// The suite's own order, times and repeats.
    Classic,
}

/// How rounds are played and when a cell has been visited often enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rounds {
    /// Half-width of a cell's interval, as a share, at which it ends: above 0, at most 1.
    pub precision: f64,
    /// No cell ends with fewer visits.
    pub visits_min: u32,
    /// No cell has more.
    pub visits_max: u32,
    /// Measured time of a visit to a cell whose streams end by time.
    pub visit_time: Nanos,
    /// Least time before it that is not counted.
    pub ramp: Nanos,
    /// Such a visit goes on until so many requests completed...
    pub least_operations: u64,
    /// ...or it measured for so long.
    pub visit_time_max: Nanos,
    /// No round is begun that would end later than this after the first visit began; the first
    /// of a phase is.
    pub time_max: Nanos,
    /// Whether three cells of a phase are watched first to find how long the ramp must be.
    pub pilot: bool,
}

/// How a phase is played until its rate is steady: every cell once a round, as the grid is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Steady {
    /// Length of a cell's visit in a round: without ramp, the next right after it.
    pub round: Nanos,
    /// So many rounds without being steady end the phase.
    pub rounds_max: u32,
    /// Written in this phase before it can be steady, as a multiple of the active range.
    pub volume: f64,
    /// The cell whose rate decides, as an index into the phase's cells.
    pub track: usize,
}

/// What direct I/O takes whole multiples of on every device.
pub(crate) const PAGE: Bytes = Bytes::kib(4);

/// The files a run addresses: `count` files of `size` each, or one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileSet {
    /// How many files.
    pub count: u32,
    /// Bytes of each file. On a block device: the part used, at most its size.
    pub size: Bytes,
    /// As asked for, where it is not a whole number of [`Suite::size_unit`] and was cut to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Bytes>,
    /// Whether every byte is written before the first phase.
    pub fill: bool,
    /// What fill and writes write.
    pub data: Data,
    /// Passes over the files after the fill and before the first phase.
    pub precondition: Vec<Precondition>,
}

/// One preconditioning pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Precondition {
    /// The files are written.
    Write {
        /// Random instead of sequential.
        random: bool,
        /// Bytes per request.
        block_size: Bytes,
        /// How much to write, as a multiple of the file set's bytes.
        volume: f64,
    },
    /// All blocks are given back: holes in files, discards on a device.
    Trim,
}

impl Precondition {
    /// How much is written, as a multiple of the file set's bytes.
    pub const fn volume(&self) -> f64 {
        match self {
            Self::Write { volume, .. } => *volume,
            Self::Trim => 0.0,
        }
    }
}

/// What writes write.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Data {
    /// Random bytes, stamped so that no two blocks written are equal.
    Incompressible,
    /// Zeros, as dd and sysbench write.
    Zero,
    /// One byte over and over.
    Pattern {
        /// The byte.
        byte: u8,
    },
    /// Random bytes for this share of every 4 KiB, zeros for the rest.
    Compressible {
        /// In `0.0..=1.0`.
        random_share: f64,
    },
    /// Every 512 bytes carry run, offset, sequence and checksum, so that reads can be verified.
    SelfDescribing,
}

/// In which order the cells of a phase are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Row by row as the grid is written, every repeat the same.
    AsWritten,
    /// Every repeat a fresh permutation from the run's seed.
    Shuffled,
}

/// One step of cache handling before a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheStep {
    /// Write back everything dirty (`syncfs`).
    Flush,
    /// Drop the page cache of the files (`posix_fadvise` DONTNEED).
    Purge,
    /// Drop the machine's clean caches (`/proc/sys/vm/drop_caches`; needs root).
    Drop,
    /// Close and open the files.
    Reopen,
    /// Unmount and mount the file system (needs root).
    Remount,
}

impl CacheStep {
    /// The name used in suites.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Purge => "purge",
            Self::Drop => "drop",
            Self::Reopen => "reopen",
            Self::Remount => "remount",
        }
    }
}

/// How the classic table looks; our own is always there beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableLayout {
    /// Only our own table.
    Plain,
    /// Block size by threads, truncated IOPS and one-decimal BW, reads then writes.
    BmFlash,
    /// A line per level: IOps, MiBps and MBps, response times, CPU.
    Iometer,
    /// The wide line of twelve phases: K/sec, %CP, latency.
    Bonnie,
    /// KiB/s, a line per record size, a column per operation.
    Iozone,
    /// The best points, and the matrices of small by large load.
    Orion,
    /// A line per pass, and all of them together.
    Xdd,
    /// Records, bytes, seconds and MB/s of each visit.
    Dd,
    /// fileio's rates, latencies and fairness, as 1.0 prints them.
    Sysbench,
    /// The same as 0.4 printed it.
    #[serde(rename = "sysbench-0.4")]
    Sysbench04,
    /// Operations a second and microseconds each, by method.
    PgTestFsync,
    /// Requests, rates and the four latencies.
    Ioping,
    /// MB/s, IOPS and latency, reads then writes.
    Crystaldiskmark,
}

impl TableLayout {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Plain,
        Self::BmFlash,
        Self::Iometer,
        Self::Bonnie,
        Self::Iozone,
        Self::Orion,
        Self::Xdd,
        Self::Dd,
        Self::Sysbench,
        Self::Sysbench04,
        Self::PgTestFsync,
        Self::Ioping,
        Self::Crystaldiskmark,
    ];

    /// The name in suites and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::BmFlash => "bm-flash",
            Self::Iometer => "iometer",
            Self::Bonnie => "bonnie",
            Self::Iozone => "iozone",
            Self::Orion => "orion",
            Self::Xdd => "xdd",
            Self::Dd => "dd",
            Self::Sysbench => "sysbench",
            Self::Sysbench04 => "sysbench-0.4",
            Self::PgTestFsync => "pg-test-fsync",
            Self::Ioping => "ioping",
            Self::Crystaldiskmark => "crystaldiskmark",
        }
    }
}

/// A part of the suite with its own grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Unique in the suite.
    pub name: String,
    /// The grid's axes, outermost first; empty for a phase of one cell.
    pub axes: Vec<Axis>,
    /// The grid expanded, in the order written (last axis fastest).
    pub cells: Vec<Cell>,
    /// Its cells are visited in rounds without a pause until one of them is steady.
    pub steady: Option<Steady>,
    /// Pause before every visit.
    pub settle: Nanos,
    /// What to do to caches before every visit, in this order.
    pub caches: Vec<CacheStep>,
    /// Passes over the files before the first visit.
    pub precondition: Vec<Precondition>,
}

impl Phase {
    /// A cell's place on the axes: field and value.
    pub fn place_of<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.axes.iter().zip(&cell.coordinates).map(|(axis, &at)| {
            (axis.field.as_str(), axis.values.get(at).map_or("", String::as_str))
        })
    }

    /// The same in words: `read_share 0, block_size 4KiB`.
    pub fn place_text(&self, cell: &Cell) -> String {
        let values = self.place_of(cell).map(|(field, value)| format!("{field} {value}"));
        values.collect::<Vec<_>>().join(", ")
    }
}

/// One axis of a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// The stream field it varies, as written: `block_size`.
    pub field: String,
    /// Its values as text: `4KiB`.
    pub values: Vec<String>,
}

/// One point of the grid: the streams that run together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Index into each axis's values.
    pub coordinates: Vec<usize>,
    /// At least one; all start together.
    pub streams: Vec<Stream>,
    /// Played before every visit, and counted nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Stream>,
}

/// A homogeneous load: `threads` workers of `queue_depth` each doing the same thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stream {
    /// Unique in the phase.
    pub name: String,
    /// Where requests go.
    pub access: Access,
    /// What requests are.
    pub mix: Mix,
    /// Offsets are multiples of this from the region's start.
    pub align: Bytes,
    /// Which part of the files.
    pub region: Region,
    /// Where copies go, from the beginning of the space; set if there are any.
    pub copy_to: Option<Bytes>,
    /// What its operations are about. Where that is not blocks, its region, alignment and access
    /// mean nothing.
    pub work: Work,
    /// When and what to flush.
    pub sync: Option<SyncPolicy>,
    /// Workers, each an OS thread on real devices.
    pub threads: u32,
    /// Requests in flight per worker.
    pub queue_depth: u32,
    /// When requests start.
    pub pacing: Pacing,
    /// It runs and rests by turns, if set.
    pub duty: Option<Duty>,
    /// Around the page cache.
    pub direct: bool,
    /// Open flags for synchronous writes.
    pub write_through: WriteThrough,
    /// Writes in a commit, one after the other; 1 of other streams.
    pub commit_writes: u32,
    /// Which back end to use.
    pub backend: Backend,
    /// When the stream ends.
    pub stop: Stop,
    /// What is done to its files before every visit.
    pub start_file: StartFile,
}

/// What is done to files before a visit, all of them.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StartFile {
    /// Nothing.
    #[default]
    Keep,
    /// They are cut to nothing, so that writes extend them.
    Truncate,
    /// They are removed and made anew, empty.
    Remove,
}

/// Where requests go. Positions are counted in units of the stream's `align` within its region.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Access {
    /// One after the other, wrapping at the end.
    Sequential {
        /// One cursor for all workers of the stream; else each worker starts at its own equal
        /// part and stays in step from there.
        shared: bool,
    },
    /// From the last block to the first, wrapping; cursors as in `Sequential`.
    Backward {
        /// One cursor for all workers.
        shared: bool,
    },
    /// Every `step`-th block, wrapping with a start shifted by one until every block was met.
    Stride {
        /// In blocks, at least 1.
        step: u64,
    },
    /// `operations` blocks evenly spaced over the region, the gaps left out (needs `stop.operations`).
    Staggered,
    /// The region's first block over and over.
    Same,
    /// Independent and uniform: a block can come twice before another comes once.
    Uniform,
    /// Random without repetition: every block once before any comes again, a new order each time.
    UniformOnce,
    /// One random order of all blocks, the same for every worker, operation and pass.
    Permutation,
    /// Rank r with weight 1 / r^theta, ranks scattered over the region by a fixed permutation.
    Zipf {
        /// Above 0, not 1 exactly being needed; YCSB's is 0.99.
        theta: f64,
    },
    /// Zones of the region in order, each with a share of the accesses; uniform inside a zone.
    Hot {
        /// Their shares of space and of accesses each sum to 1.
        zones: Vec<Zone>,
    },
    /// Each request random (uniform) with this share, else one block after the last request.
    Mixed {
        /// In `0.0..=1.0`.
        random_share: f64,
    },
    /// A given list of requests, in order, shared by the workers, once through.
    Replay {
        /// At least one.
        requests: Vec<ReplayRequest>,
    },
}

/// A zone of [`Access::Hot`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Zone {
    /// Its share of the region's bytes.
    pub space_share: f64,
    /// Its share of the requests.
    pub access_share: f64,
}

/// One request of a replayed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayRequest {
    /// Read, write, ...
    pub op: Operation,
    /// From the region's start.
    pub offset: Bytes,
    /// How long.
    pub length: Bytes,
}

/// What the operations of a stream are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Work {
    /// Blocks of files or of a device.
    Blocks,
    /// Whole files, through the page cache.
    Files(Directory),
    /// Transactions of a database.
    Transactions(Transactions),
}

impl Work {
    /// The files that it is about.
    pub const fn directory(self) -> Option<Directory> {
        match self {
            Self::Files(directory) => Some(directory),
            Self::Blocks | Self::Transactions(_) => None,
        }
    }
}

/// What sessions of a database do, and on how much data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Transactions {
    /// Which transactions.
    pub load: TransactionLoad,
    /// How large the database is: in warehouses of TPC-C, branches of TPC-B, 100 000 rows of sysbench.
    pub scale: u32,
}

/// Transactions of a benchmark.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionLoad {
    /// The five of TPC-C, from sessions that neither type nor think.
    Tpcc,
    /// The transaction that pgbench plays.
    Tpcb,
    /// Its select alone.
    TpcbSelect,
    /// sysbench's `oltp_read_write`; rows are drawn as 1.0 does without being told.
    OltpReadWrite,
    /// `oltp_read_only`.
    OltpReadOnly,
    /// `oltp_write_only`.
    OltpWriteOnly,
    /// `oltp_point_select`.
    OltpPointSelect,
    /// `oltp_read_write --rand-type=uniform`.
    OltpReadWriteUniform,
    /// `oltp_read_only --rand-type=uniform`.
    OltpReadOnlyUniform,
    /// `oltp_write_only --rand-type=uniform`.
    OltpWriteOnlyUniform,
    /// `oltp_point_select --rand-type=uniform`.
    OltpPointSelectUniform,
}

impl TransactionLoad {
    /// The name used in suites.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tpcc => "tpcc",
            Self::Tpcb => "tpcb",
            Self::TpcbSelect => "tpcb-select",
            Self::OltpReadWrite => "oltp-read-write",
            Self::OltpReadOnly => "oltp-read-only",
            Self::OltpWriteOnly => "oltp-write-only",
            Self::OltpPointSelect => "oltp-point-select",
            Self::OltpReadWriteUniform => "oltp-read-write-uniform",
            Self::OltpReadOnlyUniform => "oltp-read-only-uniform",
            Self::OltpWriteOnlyUniform => "oltp-write-only-uniform",
            Self::OltpPointSelectUniform => "oltp-point-select-uniform",
        }
    }

    /// About how much of a database each unit of its scale is.
    pub const fn unit_bytes(self) -> Bytes {
        match self {
            Self::Tpcc => Bytes::mib(110),
            Self::Tpcb | Self::TpcbSelect => Bytes::mib(15),
            _ => Bytes::mib(24),
        }
    }

    /// A scale in words: `10 warehouses`.
    pub fn units(self, scale: u32) -> String {
        let (one, several) = match self {
            Self::Tpcc => ("warehouse", "warehouses"),
            Self::Tpcb | Self::TpcbSelect => ("branch", "branches"),
            _ => return format!("{:.1} million rows", f64::from(scale) / 10.0),
        };
        format!("{scale} {}", if scale == 1 { one } else { several })
    }
}

/// Files that a stream makes, looks at or removes as a whole, one per request. Streams with the
/// same names work on the same files: what one phase makes another removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Directory {
    /// How many.
    pub files: u32,
    /// What they are called, and in which order they are used.
    pub names: Names,
    /// Bytes of each.
    pub file_size: Bytes,
}

/// Names of files, and the order in which they are used. All are made in the order of their
/// numbers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// Number first; looked at and removed in the order in which the directory lists them.
    Sequential,
    /// Letters drawn at random first; looked at and removed in random order, each once.
    Random,
}

/// What requests are: classes, and how the next one is chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mix {
    /// At least one; weights above 0. Equal classes were merged.
    pub classes: Vec<Class>,
    /// Dice or fixed interleave.
    pub choice: Choice,
}

/// A class of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Its weight among the classes.
    pub weight: f64,
    /// What it does.
    pub op: Operation,
    /// Bytes per request; 0 for fsync and fdatasync.
    pub block_size: Bytes,
    /// Where its requests go and when, if classes of the stream differ in that: then every class
    /// has one. The stream's access is [`Access::Mixed`] in that case.
    pub line: Option<Line>,
}

/// A class as a line of an IOMeter access specification.
///
/// Sequential requests go on where the worker's last request ended, whatever its class; random
/// ones are uniform. Both are rounded up to `align`, and go to the region's start where they would
/// no longer fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// In `0.0..=1.0`.
    pub random_share: f64,
    /// Offsets are multiples of this from the region's start.
    pub align: Bytes,
    /// The worker issues nothing for so long before each burst.
    pub think: Nanos,
    /// So many requests in a row of a worker are of this class once it was chosen.
    pub burst: u32,
}

/// What a class does. The same words as the seam's operations; this room does not know the seam.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Read.
    Read,
    /// Write.
    Write,
    /// fsync.
    Fsync,
    /// fdatasync.
    Fdatasync,
    /// sync_file_range.
    SyncRange,
    /// Discard.
    Trim,
    /// Read, change a byte, write back: two requests, one after the other.
    Update,
    /// Read, and write the same bytes as far behind [`Stream::copy_to`] as they were behind the
    /// region's start: two requests, one after the other.
    Copy,
    /// Make a file of [`Work::Files`].
    Create,
    /// Ask what a file of the directory is, and read it if it holds something.
    Stat,
    /// Remove a file of the directory.
    Delete,
    /// Have the kernel copy as far behind [`Stream::copy_to`]: one request.
    CopyRange,
    /// Write and flush, as a database's sessions do: one flush is in flight, and all who wait
    /// share the next. The stream's queue depth is how many sessions there are.
    Commit,
    /// A transaction of [`Work::Transactions`], by each of `queue_depth` sessions.
    Transaction,
}

/// How the next class is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Independent, by weight.
    Dice,
    /// Deterministic: at any point each class's count is within one of its share, per worker.
    Interleave,
    /// By the number of the request in the stream, whichever worker makes it: the classes in
    /// their order, as many of each as its weight says, over and over.
    Shared,
    /// Of two classes: the first while (firsts + 1) / (seconds + 1) is less than its weight over
    /// the other's, per worker. That is sysbench's rule.
    Ratio,
}

/// A part of the file set, seen as one space (file after file) or per worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Region {
    /// Where it starts, from the beginning of the space.
    pub start: Bytes,
    /// How long; ends within the space.
    pub length: Bytes,
    /// What the space is.
    pub spread: Spread,
}

/// How the files make one address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// File after file, as sysbench counts; requests never cross a file's end.
    Concatenated,
    /// Worker w uses file w modulo the count, alone its space.
    FilePerWorker,
    /// `stripe` bytes of each file in turn, as RAID 0 does; requests never cross a stripe's end.
    Striped {
        /// At least the longest request; every file is a whole number of them.
        stripe: Bytes,
    },
}

/// When and what to flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SyncPolicy {
    /// Fsync, Fdatasync or SyncRange.
    pub op: Operation,
    /// After every this many requests of a worker (`shared`: of the stream), if something was
    /// written since the last.
    pub every: Option<u64>,
    /// The count that `every` counts is the stream's, not the worker's.
    pub shared: bool,
    /// Each file of the set in turn instead of the file last written.
    pub each_file: bool,
    /// Each file once after the stop rule was met.
    pub at_end: SyncAtEnd,
}

/// Whether and how the end of a stream flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SyncAtEnd {
    /// Not at all.
    No,
    /// Within the measured time.
    Timed,
    /// After it.
    Untimed,
}

/// When requests start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Pacing {
    /// The next as soon as one ends; after every `burst` of a worker's slot a pause of `think`.
    Closed {
        /// Pause; 0 for none.
        think: Nanos,
        /// Requests between pauses, at least 1.
        burst: u32,
    },
    /// At planned times whatever the device does; latency counts from the planned time.
    Open {
        /// Requests per second of the whole stream.
        rate: f64,
        /// How the times are spaced.
        arrivals: Arrivals,
    },
}

/// How open-loop arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Equal gaps.
    Fixed,
    /// Exponential gaps.
    Poisson,
}

/// Open flags for synchronous writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteThrough {
    /// None.
    No,
    /// `O_DSYNC`.
    Data,
    /// `O_SYNC`.
    DataAndMeta,
}

/// Which back end to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// What this kernel does best for the stream's depth and flags.
    Auto,
    /// A ring.
    IoUring,
    /// A ring with a kernel thread that polls for submissions.
    IoUringSqpoll,
    /// A ring with polled completions.
    IoUringIopoll,
    /// `io_submit`.
    Libaio,
    /// `pread` and `pwrite`, on threads where the depth is above 1.
    Blocking,
    /// Loads and stores through `mmap`, `msync` for syncs.
    Mmap,
}

impl Backend {
    /// The name used in suites.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::IoUring => "io-uring",
            Self::IoUringSqpoll => "io-uring-sqpoll",
            Self::IoUringIopoll => "io-uring-iopoll",
            Self::Libaio => "libaio",
            Self::Blocking => "blocking",
            Self::Mmap => "mmap",
        }
    }
}

/// When a stream ends: the first of these that is met. At least one is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// Not counted, before the measured part.
    pub ramp: Nanos,
    /// Measured time.
    pub time: Option<Nanos>,
    /// Bytes of all workers together, from the end of the ramp; those of an update or a copy count
    /// once.
    pub bytes: Option<Bytes>,
    /// Requests of all workers together (syncs of a policy not counted, an update or a copy as
    /// one), likewise.
    pub operations: Option<u64>,
    /// Whose end it is.
    pub until: Until,
    /// What becomes of a request that is longer than what is left.
    pub last: Last,
    /// `time` is stretched where too little completed.
    pub extend: Option<Extend>,
}

/// Whose end is the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// The workers share `bytes` and `operations`, and all go on until nothing is left.
    All,
    /// Each worker has an equal part of `bytes` and `operations`, and once one has finished its
    /// own all issue no more: IOZone's stonewall. What is in flight then is waited for and
    /// counted.
    FirstWorker,
}

/// What becomes of the request with which `bytes` or the region come to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Last {
    /// It is as long as any, and what would reach beyond the region is left out.
    Whole,
    /// It is as long as what is left.
    Short,
}

/// Work and rest by turns, beginning with work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Duty {
    /// Requests are issued for so long...
    pub on: Nanos,
    /// ...and none for so long.
    pub off: Nanos,
}

/// How the time of a visit is stretched: the visit's, so it is the same in all its streams that
/// have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Extend {
    /// Until so many requests of the visit completed in the measured part...
    pub operations: u64,
    /// ...or so much was measured.
    pub time_max: Nanos,
}

impl Mix {
    /// The longest request of any class.
    pub fn block_size_max(&self) -> Bytes {
        self.classes.iter().map(|class| class.block_size).max().unwrap_or(Bytes::ZERO)
    }

    /// The one block size of all classes that move data, if it is one.
    pub fn block_size(&self) -> Option<Bytes> {
        let mut sizes = self.classes.iter().map(|c| c.block_size).filter(|&b| b > Bytes::ZERO);
        let first = sizes.next()?;
        sizes.all(|b| b == first).then_some(first)
    }

    /// Whether any class can change what is stored.
    pub fn modifies(&self) -> bool {
        self.classes.iter().any(|c| c.op.modifies())
    }
}

/// What a log is written in: PostgreSQL's WAL and InnoDB's redo log have pages of 8 KiB.
pub const LOG_PAGE: Bytes = Bytes::kib(8);

impl Stream {
    /// Whether the stream can change what is stored. Files that are looked at are made before.
    pub fn modifies(&self) -> bool {
        if self.work != Work::Blocks {
            return true;
        }
        match &self.access {
            Access::Replay { requests } => requests.iter().any(|r| r.op.modifies()),
            _ => self.mix.modifies(),
        }
    }

    /// Why its rate is not that of block requests around the page cache as fast as they are answered; `None`
    /// if it is.
    pub fn why_not_plain(&self) -> Option<&'static str> {
        let is_closed = matches!(self.pacing, Pacing::Closed { think: Nanos::ZERO, .. });
        if self.work != Work::Blocks {
            Some("it is about files or transactions")
        } else if self.sync.is_some() || self.write_through != WriteThrough::No {
            Some("it flushes")
        } else if !self.direct || self.backend == Backend::Mmap {
            Some("it goes through the page cache")
        } else if !is_closed || self.duty.is_some() {
            Some("requests come at a rate or with pauses")
        } else {
            None
        }
    }

    /// The files that it is about.
    pub const fn directory(&self) -> Option<Directory> {
        self.work.directory()
    }

    /// The transactions that it is about.
    pub const fn transactions(&self) -> Option<Transactions> {
        match self.work {
            Work::Transactions(transactions) => Some(transactions),
            Work::Blocks | Work::Files(_) => None,
        }
    }

    /// Whether its sessions commit: they share writes and flushes.
    pub fn commits(&self) -> bool {
        self.mix.classes.iter().any(|class| class.op == Operation::Commit)
    }

    /// How many requests a worker has in flight at most.
    pub fn requests_max(&self) -> u32 {
        // However many sessions wait: one of them writes and flushes for all.
        if self.commits() { 1 } else { self.queue_depth }
    }

    /// The longest request; of commits, what all sessions write together.
    pub fn block_size_max(&self) -> Bytes {
        match &self.access {
            _ if self.commits() => {
                let all = self.mix.block_size_max().get().saturating_mul(self.queue_depth.into());
                // A group begins and ends within a page.
                Bytes::new(all.div_ceil(LOG_PAGE.get()).saturating_add(1) * LOG_PAGE.get())
            }
            Access::Replay { requests } => {
                requests.iter().map(|r| r.length).max().unwrap_or(Bytes::ZERO)
            }
            _ => self.mix.block_size_max(),
        }
    }
}

impl Cell {
    /// Its streams, and the one before each visit if there is one.
    pub fn all_streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().chain(&self.before)
    }

    /// What is done to the files before every visit: the most that a stream asks for.
    pub fn start_file(&self) -> StartFile {
        self.streams.iter().map(|stream| stream.start_file).max().unwrap_or_default()
    }
}

impl FileSet {
    /// Bytes of all files.
    pub fn total(&self) -> Bytes {
        Bytes::new(self.size.get().saturating_mul(u64::from(self.count)))
    }

    /// That files have less than was asked for, since only whole units of them can be used.
    pub fn cut(&self) -> Option<String> {
        let asked = self.asked?;
        Some(format!(
            "the file has {} of the {} asked for: direct I/O, verification and sets of files take \
             whole multiples of {}",
            self.size.exact(),
            asked.exact(),
            PAGE.exact()
        ))
    }
}

impl Operation {
    /// The name used in suites, stores and exports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::SyncRange => "sync-range",
            Self::Trim => "trim",
            Self::Update => "update",
            Self::Copy => "copy",
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Delete => "delete",
            Self::CopyRange => "copy-range",
            Self::Commit => "commit",
            Self::Transaction => "transaction",
        }
    }

    /// Whether it brings data from what is stored.
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::Update | Self::Copy | Self::Stat | Self::CopyRange)
    }

    /// Whether it stores data.
    pub const fn writes(self) -> bool {
        use Operation::{Commit, Copy, CopyRange, Create, Transaction, Update, Write};
        matches!(self, Write | Update | Copy | Create | CopyRange | Commit | Transaction)
    }

    /// Whether it can change what is stored.
    pub const fn modifies(self) -> bool {
        self.writes() || matches!(self, Self::Trim | Self::Delete)
    }

    /// Whether it is about a whole file of [`Work::Files`].
    pub const fn in_directory(self) -> bool {
        matches!(self, Self::Create | Self::Stat | Self::Delete)
    }

    /// Whether it is about blocks: whole files and transactions are not.
    pub const fn is_of_blocks(self) -> bool {
        !self.in_directory() && !matches!(self, Self::Transaction)
    }

    /// Whether it is a read and then a write.
    pub const fn is_pair(self) -> bool {
        matches!(self, Self::Update | Self::Copy)
    }
}
