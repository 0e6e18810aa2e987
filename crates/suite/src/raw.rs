//! The grammar of a suite: every field as it can be written, all optional. The JSON schema and
//! the names that overrides take come from these types too.

use std::collections::BTreeMap;

use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::directory::RawDirectory;
use crate::model::{
    Arrivals, Backend, CacheStep, Choice, Last, Method, Operation, Order, StartFile, SyncAtEnd,
    TableLayout, Until, WriteThrough,
};
use crate::phase::{self, RawPhase};
use crate::reader::field_names;
use crate::transactions::RawTransactions;
pub(crate) use crate::values::{Extent, RawSpread, Size, SizeMix, Time};

/// Schema of a field that is a table, or a word for short.
pub(crate) fn word_or_table<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [{ "type": "string" }, table]  })
}

pub(crate) fn word_or_list<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let list = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [{ "type": "string" }, list]  })
}

fn number_or_none(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "number" }, { "const": "none" }]  })
}

fn count_or_none(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": "none" }]
    })
}

/// What stands at the top of a suite, before its phases.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHead {
    /// Version of this grammar: 1.
    #[schemars(required)]
    pub schema: Option<u32>,
    /// Name on the command line: lower-case letters, digits and hyphens.
    #[schemars(required)]
    pub name: Option<String>,
    /// One line for `suite list`.
    pub title: Option<String>,
    /// What the method is for and where it comes from; may have several lines.
    pub description: Option<String>,
    /// What `--scale` multiplied the sizes below by, for who reads them: it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaled: Option<f64>,
    /// Bytes of each file; on a block device the part used. 1GiB if left out.
    pub file_size: Option<Size>,
    /// How many files. 1 if left out.
    pub file_count: Option<u32>,
    /// Whether every byte is written before the first phase. true if left out.
    pub fill: Option<bool>,
    /// What fill and writes write: "incompressible" (the default), "zero", "self-describing",
    /// { kind = "pattern", byte = 165 } or { kind = "compressible", random_share = 0.5 }.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_table::<RawData>")]
    pub data: Option<RawData>,
    /// Passes over the files after the fill and before the first phase. None if left out.
    pub precondition: Option<Vec<RawPrecondition>>,
    /// How visits are chosen: "rounds" (the default) or "classic".
    pub method: Option<Method>,
    /// Of the method "rounds".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<RawRounds>,
    /// How often each cell is visited by the method "classic". 1 if left out.
    pub repeats: Option<u32>,
    /// Of the method "classic": "as-written" (the default) or "shuffled".
    pub order: Option<Order>,
    /// Pause before every visit. 0s if left out.
    pub settle: Option<Time>,
    /// What to do to caches before every visit, in this order: "flush", "purge", "drop",
    /// "reopen", "remount". Nothing if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_list::<Vec<CacheStep>>")]
    pub caches: Option<Vec<CacheStep>>,
    /// Layout of the classic table. "plain" if left out.
    pub table: Option<TableLayout>,
    /// The service level that `plimsoll line` finds the highest rate for: "p99<10ms", or
    /// "reads p99<2ms, commits p99<5ms". Changes nothing elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<crate::Level>,
}

/// What writes write.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "\"incompressible\", \"zero\", \"self-describing\" or a table with a `kind`"
)]
pub(crate) struct RawData {
    /// Which kind of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<DataKind>,
    /// The byte of a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte: Option<u8>,
    /// The share of every 4 KiB that is random in compressible data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_share: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DataKind {
    /// Random bytes, stamped so that no two blocks written are equal.
    Incompressible,
    /// Zeros.
    Zero,
    /// One byte over and over.
    Pattern,
    /// Random bytes for a share of every 4 KiB, zeros for the rest.
    Compressible,
    /// Every 512 bytes say what they are, so that reads can be verified.
    SelfDescribing,
}

/// How rounds are played and when a cell has been visited often enough.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { precision = 0.02, visits_max = 20 }")]
pub(crate) struct RawRounds {
    /// Half-width of a cell's 95 % interval, as a share, at which its visits end. 0.05 if left
    /// out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// No cell ends with fewer visits. 3 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits_min: Option<u32>,
    /// No cell has more. 10 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits_max: Option<u32>,
    /// Measured time of a visit, where time ends it; a stream's own `time` if that is shorter. 2s
    /// if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visit_time: Option<Time>,
    /// Least time before it that is not counted. 500ms if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Time>,
    /// A visit that ends by time goes on until so many requests completed. 400 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_operations: Option<u64>,
    /// It measures no longer than this for their sake. 10s if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visit_time_max: Option<Time>,
    /// No round is begun that would end later. What the method "classic" would take if left out,
    /// but at least 60s and enough for `visits_min` visits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_max: Option<Time>,
    /// Whether three cells of each phase are watched first to find how long the ramp must be.
    /// Left out: where the suite has 12 cells or more and `visit_time` is a second or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pilot: Option<bool>,
}

/// Rounds until a phase is steady.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { round = \"10s\", volume = 2 }")]
pub(crate) struct RawSteady {
    /// Length of a round. 10s if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<Time>,
    /// So many rounds without being steady end the phase. 25 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_max: Option<u32>,
    /// Written in this phase before it can be steady, as a multiple of the range that is written
    /// to. 2 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<f64>,
    /// The cell whose rate decides, by its place on the axes: { block_size = "4KiB" }. Needed where
    /// the phase has several cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "table_of_anything")]
    pub track: Option<BTreeMap<String, toml::Value>>,
}

/// A preconditioning pass.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { random = true, volume = 2 }")]
pub(crate) struct RawPrecondition {
    /// All blocks are given back: holes in files, discards on a device. Alone in its table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<bool>,
    /// Random instead of sequential. false if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<bool>,
    /// Bytes per request. 128KiB if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Size>,
    /// How much to write, as a multiple of the file set's bytes. 1 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<f64>,
}

/// A load: what stands in `[defaults]`, `[[phase]]` and `[[phase.stream]]`, and every field of
/// which the grid can vary.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStream {
    /// Where requests go: "sequential", "backward", "staggered", "same", "uniform" (the
    /// default), "uniform-once", "permutation", "zipf", or a table with `kind` and its details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_table::<RawAccess>")]
    pub access: Option<RawAccess>,
    /// Short for access = { kind = "mixed", random_share = ... }.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_share: Option<f64>,
    /// What requests do. "read" if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Where copies go, from the beginning of the files: as far behind it as what is copied lies
    /// behind the region's start. "none" (the default) where nothing is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_to: Option<Extent>,
    /// Where operations "create", "stat" and "delete" make, look at and remove files. "none" (the
    /// default) where there are none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_table::<RawDirectory>")]
    pub directory: Option<RawDirectory>,
    /// What operation "transaction" does, and on how much data: { load = "tpcc", scale = 10 }.
    /// "none" (the default) where there are no transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_table::<RawTransactions>")]
    pub transactions: Option<RawTransactions>,
    /// Instead of `operation`: reads with this share, else writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_share: Option<f64>,
    /// Instead of `operation`: classes of requests with weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<RawClass>>,
    /// How the next class of a mix is chosen: "dice" (the default), "interleave", "shared" or
    /// "ratio".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// Bytes per request. 4KiB if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Size>,
    /// Instead of `block_size`: several, with weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_sizes: Option<SizeMix>,
    /// Offsets are multiples of this from the region's start. "block-size" (the default) is the
    /// greatest common divisor of the block sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align: Option<Size>,
    /// Which part of the files: { start = "10%", length = "1GiB" }, or only the length. All if
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_table::<RawRegion>")]
    pub region: Option<RawRegion>,
    /// "concatenated" (the default): file after file; "file-per-worker": one file each;
    /// { stripe = "1MiB" }: so much of each file in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<RawSpread>,
    /// When to flush: "none" (the default), "fsync" and its like (after every request), or a
    /// table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_table::<RawSync>")]
    pub sync: Option<RawSync>,
    /// Workers. 1 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Requests in flight per worker. 1 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Requests per second of the whole stream, whatever the device does (open loop). "none"
    /// (the default): the next request starts when one ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "number_or_none")]
    pub rate: Option<f64>,
    /// How the starts of an open loop are spaced: "fixed" (the default) or "poisson".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Pause after every `burst` requests. 0s if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Time>,
    /// Requests between pauses. 1 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Work and rest by turns: { on = "5s", off = "10s" }. "none" (the default): work only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word_or_table::<RawDuty>")]
    pub duty: Option<RawDuty>,
    /// Around the page cache. true if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
    /// Open flags for synchronous writes: "no" (the default), "data" (O_DSYNC) or
    /// "data-and-meta" (O_SYNC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_through: Option<WriteThrough>,
    /// Requests that a commit is written in, one after the other. 1 if left out: all who share a
    /// flush are written at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_writes: Option<u32>,
    /// Back end. "auto" if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// Not counted, before the measured part. 0s if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Time>,
    /// Ends after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Ends after so many bytes of all workers together, or "none".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// Ends after so many requests of all workers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_or_none")]
    pub operations: Option<u64>,
    /// "all" (the default): the workers share `bytes` and `operations`; "first-worker": each has
    /// an equal part of its own, and the first to finish it ends the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Until>,
    /// The request with which `bytes` or the region end: "whole" (the default), or "short", as
    /// long as what is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// What is done to the files before each visit: nothing ("keep", the default), or they are
    /// cut to nothing ("truncate"), or removed and made anew ("remove"), so that writes extend
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_file: Option<StartFile>,
}

/// Work and rest by turns.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "\"none\" or a table such as { on = \"5s\", off = \"10s\" }"
)]
pub(crate) struct RawDuty {
    /// Requests are issued for so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Time>,
    /// And none for so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<Time>,
}

/// Where requests go.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an access such as \"uniform\" or { kind = \"zipf\", theta = 0.99 }"
)]
pub(crate) struct RawAccess {
    /// Which pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<AccessKind>,
    /// One cursor for all workers of the stream (sequential, backward). false if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// In blocks (stride).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Exponent (zipf). 0.99 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theta: Option<f64>,
    /// Zones in order (hot).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<Vec<RawZone>>,
    /// Share of random requests (mixed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_share: Option<f64>,
    /// The list (replay).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Vec<RawRequest>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AccessKind {
    /// One after the other, wrapping at the end.
    Sequential,
    /// From the last block to the first, wrapping.
    Backward,
    /// Every `step`-th block, wrapping with a shifted start.
    Stride,
    /// `operations` blocks evenly spaced over the region.
    Staggered,
    /// The region's first block over and over.
    Same,
    /// Independent and uniform.
    Uniform,
    /// Random, every block once before any comes again.
    UniformOnce,
    /// One random order of all blocks, the same for every worker and pass.
    Permutation,
    /// Rank r with weight 1 / r^theta.
    Zipf,
    /// Zones with shares of space and of accesses.
    Hot,
    /// Each request random with a share, else the next block.
    Mixed,
    /// A given list, once through.
    Replay,
}

/// A zone of a hot access.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a zone such as { space_share = 0.2, access_share = 0.8 }"
)]
pub(crate) struct RawZone {
    /// Its share of the region's bytes.
    pub space_share: f64,
    /// Its share of the requests.
    pub access_share: f64,
}

/// A request of a replayed list.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a request such as { op = \"read\", offset = \"1MiB\", length = \"4KiB\" }"
)]
pub(crate) struct RawRequest {
    /// What it does.
    pub op: Operation,
    /// From the region's start. 0 if left out.
    #[serde(default = "Size::zero")]
    pub offset: Size,
    /// How long. 0 if left out, which only fsync and fdatasync can be.
    #[serde(default = "Size::zero")]
    pub length: Size,
}

impl Size {
    fn zero() -> Self {
        Self(Bytes::ZERO)
    }
}

/// A class of requests.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a class such as { weight = 3, operation = \"read\", block_size = \"8KiB\" }"
)]
pub(crate) struct RawClass {
    /// Its weight among the classes. 1 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Instead of `operation`: reads with this share, else writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_share: Option<f64>,
    /// Bytes per request. The stream's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Size>,
    /// Share of random requests, the others go on where the worker's last one ended. The
    /// stream's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_share: Option<f64>,
    /// Offsets are rounded up to multiples of this. The stream's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align: Option<Size>,
    /// Pause of the worker before each burst. 0s if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Time>,
    /// Requests in a row once the class was chosen. 1 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

impl RawClass {
    /// Whether it says where its requests go or when.
    pub(crate) fn is_line(&self) -> bool {
        self.random_share.is_some()
            || self.align.is_some()
            || self.think.is_some()
            || self.burst.is_some()
    }
}

/// A part of the space.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a size, a share such as \"25%\", or a table with `start` and `length`"
)]
pub(crate) struct RawRegion {
    /// Where it starts. 0 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Extent>,
    /// How long. "rest" if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Extent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SyncOp {
    /// fsync.
    Fsync,
    /// fdatasync.
    Fdatasync,
    /// sync_file_range.
    SyncRange,
}

/// When to flush.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "\"none\", \"fsync\", \"fdatasync\", \"sync-range\" or a table with an `op`"
)]
pub(crate) struct RawSync {
    /// "fsync" (the default), "fdatasync" or "sync-range".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<SyncOp>,
    /// After every this many requests of a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// `every` counts the stream's requests. false if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// Each file of the set in turn. false if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each_file: Option<bool>,
    /// Each file once at the end: "no" (the default), "timed" or "untimed".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_end: Option<SyncAtEnd>,
}

/// Values of an axis, or of a field in `[quick]`: whatever the field takes.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Anything(#[schemars(schema_with = "anything")] ());

fn anything(_: &mut SchemaGenerator) -> Schema {
    Schema::from(true)
}

fn table_of_anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// A suite: a benchmark method as data.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct SuiteDocument {
    #[schemars(flatten)]
    head: RawHead,
    /// For every stream of the suite, unless its phase or it says otherwise.
    defaults: Option<RawStream>,
    /// In this order, never interleaved.
    #[schemars(length(min = 1))]
    phase: Vec<PhaseDocument>,
    /// What `--quick` sets: fields as in `--set`.
    quick: Option<BTreeMap<String, Anything>>,
}

/// A list of suites, played one after the other: each is a run of its own.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct ListDocument {
    /// Version of this grammar: 1.
    schema: u32,
    /// Name on the command line: lower-case letters, digits and hyphens.
    name: String,
    /// One line for `suite list`.
    title: Option<String>,
    /// What was measured so, and by whom; may have several lines.
    description: Option<String>,
    /// In this order.
    #[schemars(length(min = 1))]
    part: Vec<PartDocument>,
}

/// One suite of a list.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct PartDocument {
    /// Name of a suite that comes with the program, or path of a file, from where the list is.
    suite: String,
    /// Fields as in `--set`.
    set: Option<BTreeMap<String, Anything>>,
    /// Those of its phases that are played, in its own order. All if left out.
    #[schemars(length(min = 1))]
    phases: Option<Vec<String>>,
    /// How often it is played, each time a run of its own. 1 if left out.
    repeats: Option<u32>,
    /// Before each time it is played, but for the first of all. 0s if left out.
    pause: Option<Time>,
}

/// A suite of Plimsoll, or a list of suites.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Document {
    Suite(Box<SuiteDocument>),
    List(ListDocument),
}

/// A part of the suite with its own grid.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct PhaseDocument {
    /// Unique in the suite.
    name: String,
    #[schemars(flatten)]
    fields: RawStream,
    #[schemars(flatten)]
    own: RawPhase,
    /// Axes of the grid: a list of values for each field varied, the last one fastest.
    grid: Option<GridDocument>,
    /// The streams that run together; left out, the phase has one, made of its own fields.
    stream: Option<Vec<StreamDocument>>,
}

/// Axes of a grid.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct GridDocument {
    /// Which of the phase's streams run: "all", a name, or a list of names.
    streams: Option<Vec<Anything>>,
    #[schemars(flatten)]
    fields: BTreeMap<String, Anything>,
}

/// One load of several that run together.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct StreamDocument {
    /// Unique in the phase.
    name: String,
    #[schemars(flatten)]
    fields: RawStream,
}

/// The JSON schema (2020-12) of a suite's text, for editors.
pub fn json_schema() -> Schema {
    let mut schema = schemars::schema_for!(Document);
    RecursiveTransform(without_null).transform(&mut schema);
    schema
}

/// Optional fields are left out in TOML, which has no null.
fn without_null(schema: &mut Schema) {
    if let Some(types) = schema.get_mut("type").and_then(|value| value.as_array_mut()) {
        types.retain(|name| name.as_str() != Some("null"));
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(choices) = schema.get_mut("anyOf").and_then(|value| value.as_array_mut()) {
        choices.retain(|choice| choice["type"].as_str() != Some("null"));
    }
    if schema.get("default").is_some_and(|value| value.is_null()) {
        schema.remove("default");
    }
}

/// Names of the fields at the top of a suite.
pub(crate) fn head_fields() -> &'static [&'static str] {
    field_names::<RawHead>()
}

/// Names of the fields of a stream.
pub(crate) fn stream_fields() -> &'static [&'static str] {
    field_names::<RawStream>()
}

/// Fields at the top that say what the suite is rather than set something.
pub(crate) const IDENTITY: [&str; 5] = ["schema", "name", "title", "description", "scaled"];

pub(crate) fn is_head_field(name: &str) -> bool {
    head_fields().contains(&name) && !IDENTITY.contains(&name)
}

pub(crate) fn is_stream_field(name: &str) -> bool {
    stream_fields().contains(&name)
}

pub(crate) fn is_field(name: &str) -> bool {
    head_fields().contains(&name) || is_stream_field(name) || phase::is_own_field(name)
}

/// The fields of which one takes the place of the others.
pub(crate) fn alternatives(field: &str) -> &'static [&'static str] {
    match field {
        "operation" => &["read_share", "classes"],
        "read_share" => &["operation", "classes"],
        "classes" => &["operation", "read_share"],
        "access" => &["random_share"],
        "random_share" => &["access"],
        "block_size" => &["block_sizes"],
        "block_sizes" => &["block_size"],
        _ => &[],
    }
}

/// Fields whose own value is a list, so that a list does not mean a grid.
pub(crate) fn takes_list(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path.as_slice(),
        ["classes" | "block_sizes" | "precondition" | "caches"] | ["access", "zones" | "requests"]
    )
}

/// Whether a field whose values are lists takes a table of weights as well.
pub(crate) fn takes_weights(path: &[String]) -> bool {
    matches!(path, [field] if field == "block_sizes")
}

/// The word that stands for "as if not set", where a field has one.
pub(crate) fn unset_word(field: &str) -> Option<&'static str> {
    match field {
        "time" | "bytes" | "operations" | "rate" | "sync" | "copy_to" | "duty" | "before"
        | "directory" | "transactions" => Some("none"),
        "align" => Some("block-size"),
        _ => None,
    }
}
