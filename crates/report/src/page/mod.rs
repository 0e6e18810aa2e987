//! The contract `plimsoll.page/1`: what the page of figures is drawn from.
//!
//! Unlike `plimsoll.run/1` it is made to be looked at: it holds several runs with what they mean,
//! and courses over time in as many points as a screen can show. Every number that is printed is
//! exact; only what is drawn is thinned out, and then its extremes are kept. Unknown is `null`.

mod drawn;
mod evidence;
mod html;
mod live;
mod make;

use explain::barrier::Barrier;
use explain::freeze::Freeze;
use explain::steady::SteadyStates;
use explain::which::{PlaceFigures, PlaceRatio};
use finding::{Question, Severity};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::html::{HtmlError, Served, html, links_only, served, tables_only};
pub use self::live::{LIVE_SCHEMA, Live, LiveRun, Trouble, live_schema};
pub use self::make::{Terms, page};
use crate::json::{Gap, Latency, Origin, Row, Warning};

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.page/1";

/// Runs with what they mean, to be drawn. Bytes and ns are integers unless they are means.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "plimsoll.page/1")]
pub struct Page {
    /// Always `plimsoll.page/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Version of the program that made the page.
    pub program: String,
    /// In the order given; the first of each suite is its baseline unless somebody chooses another.
    pub runs: Vec<PageRun>,
    /// Which of the places a database should run on; null unless all runs are what `plimsoll which`
    /// plays.
    pub which: Option<PageWhich>,
    /// What the runs say together; empty for one.
    pub together: Vec<Verdict>,
    /// Every other run against the first of its suite; the only one of its suite against the first of
    /// all.
    pub against: Vec<PageAgainst>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageRun {
    /// Its id in its store.
    pub id: String,
    /// What it was and where.
    #[serde(flatten)]
    pub origin: Origin,
    /// Why the suite is, in a sentence; empty where it does not say.
    pub about: String,
    /// Where all randomness came from: a number, as text since it may have 64 bits.
    pub seed: String,
    /// How it stands, in the word of all heads: `running`, `complete`, `out of time`,
    /// `interrupted`, `failed` or `killed`.
    pub state: String,
    /// What it means.
    pub verdicts: Vec<Verdict>,
    /// One element per grid cell and stream, in the suite's order.
    pub cells: Vec<PageCell>,
    /// Where the rate ends, phase by phase.
    pub barriers: Vec<Barrier>,
    /// Gaps of the whole device.
    pub freezes: Vec<Freeze>,
    /// Where rates changed their level.
    pub changes: Vec<Change>,
    /// Rounds and cliffs.
    pub steady: SteadyStates,
    /// Of a run that looked for a load line.
    pub line: Option<PageLine>,
    /// What each stream has beside all others, where each was played alone, too.
    pub together: Vec<PageTogether>,
}

/// A stream beside others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageTogether {
    /// Its name.
    pub stream: String,
    /// `commit`, `read`, ...
    pub op: String,
    /// Per second beside the others; of bursts while it works.
    pub rate: f64,
    /// Alone.
    pub alone: f64,
    /// The first by the second.
    pub ratio: finding::Number,
    /// Requests of a burst, where it works in bursts.
    pub burst: Option<u64>,
    /// Their bytes.
    pub burst_bytes: Option<u64>,
}

/// A load line, and what it was found from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageLine {
    /// The level, as `--level` takes it.
    pub level: String,
    /// What is known.
    pub standing: explain::line::Standing,
    /// Transactions per second at which the level breaks; null where that is not known.
    pub rate: Option<finding::Number>,
    /// A backlog grows from between these.
    pub capacity: Option<finding::Number>,
    /// To plan with: what is kept free taken off the low end of `rate`.
    pub spare: Option<finding::Number>,
    /// Each limit.
    pub limits: Vec<explain::line::LimitLine>,
    /// What was seen at each rate, rising.
    pub rates: Vec<explain::line::RatePoint>,
}

/// Which of several places.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageWhich {
    /// The answer.
    pub answer: Verdict,
    /// The run on the place that was chosen, or on the one with the most commits.
    pub run: Option<String>,
    /// What each place did, in the order of the runs.
    pub places: Vec<PlaceFigures>,
    /// The chosen place by each other.
    pub ratios: Vec<PlaceRatio>,
}

/// What is said on one question.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The question: `Stalls`, `Gaps`, `What limits`.
    pub topic: String,
    /// The same for programs.
    pub question: Question,
    /// How much the worst of it matters.
    pub severity: Severity,
    /// Verdict first, then evidence, then what to do.
    pub sentences: Vec<String>,
    /// What each of the sentences is about, in their order.
    pub evidence: Vec<Evidence>,
    /// Kinds of figures that show it, the best first.
    pub figures: Vec<String>,
    /// Keys of the cells that it is about; empty for all of them.
    pub cells: Vec<String>,
    /// Whether somebody should look: a mark of a cell stands behind it.
    pub is_doubt: bool,
}

/// Where a sentence can be seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// Kinds of figures that show it, the best first; empty for advice.
    pub figures: Vec<String>,
    /// The cells that it names.
    pub cells: Vec<Named>,
}

/// A cell in a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Named {
    /// The words that stand for it in the sentence.
    pub words: String,
    /// Its key.
    pub cell: String,
}

/// A grid cell's stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageCell {
    /// Unique in the run: the cell's index and the stream's position, `12.0`.
    pub key: String,
    /// As people say it.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub row: Row,
    /// Whether the phase only prepares what is measured.
    pub preparation: bool,
    /// How many streams the cell has.
    pub streams: u32,
    /// The rate that tables print: that of the interval where there is one.
    pub iops: Option<f64>,
    /// Lower end of its 95 % interval.
    pub iops_low: Option<f64>,
    /// Upper end.
    pub iops_high: Option<f64>,
    /// What the interval is from: `visits` or `one-visit`.
    pub basis: Option<String>,
    /// Bytes that every visit is to move, where nothing else ends it: then the time that they take
    /// is a figure, too.
    pub job_bytes: Option<u64>,
    /// What was done to caches before every visit, in this order: `flush`, `purge`, `drop`,
    /// `reopen`, `remount`.
    pub caches: Vec<String>,
    /// The part of the files that its requests go to; null where nobody tells.
    pub region_bytes: Option<u64>,
    /// What makes durable what it writes, each kind apart; empty where nothing does.
    pub flushes: Vec<PageFlush>,
    /// (share, latency that so many did not exceed), shares rising.
    pub quantiles: Vec<(f64, u64)>,
    /// (wait, chance that a request arriving at a random moment waits longer).
    pub exposure: Vec<(u64, f64)>,
    /// Latencies in eighths of an octave, or as another tool binned them: (from, to, how many).
    pub histogram: Vec<(u64, u64, u64)>,
    /// Completed; null where another tool did not count.
    pub requests: Option<u64>,
    /// Failed.
    pub errors: u64,
    /// Reasons to look twice.
    pub marks: Vec<PageMark>,
    /// Bands of latency that the visits' heat is counted in, quarters of an octave: (from, to).
    pub bands: Vec<(u64, u64)>,
    /// Every visit, also those not counted.
    pub visits: Vec<PageVisit>,
}

/// One kind of flush beside data requests. Whoever waits for a commit waits for both.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageFlush {
    /// `fsync`, `fdatasync`, `sync-range`.
    pub op: String,
    /// Completed; null where another tool did not count.
    pub requests: Option<u64>,
    /// How long one took, the writes before it not counted.
    pub latency_ns: Latency,
    /// (share, latency that so many did not exceed), shares rising.
    pub quantiles: Vec<(f64, u64)>,
}

/// A reason to look twice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageMark {
    /// For programs.
    pub code: String,
    /// What it stands for; empty where the code says it all.
    pub meaning: String,
    /// What was seen.
    pub evidence: Vec<String>,
}

/// One stay in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageVisit {
    /// How many visits of the run came before.
    pub order: u32,
    /// How many visits of the cell came before.
    pub repeat: u32,
    /// Since the first visit's measured part began; null where nobody tells.
    pub start_ns: Option<u64>,
    /// Measured part.
    pub elapsed_ns: Option<u64>,
    /// Time before it that was not counted.
    pub ramp_ns: u64,
    /// Whether it counts in the cell's figures.
    pub counted: bool,
    /// `complete`, `interrupted`, `failed` or `hanging`; `pilot` where it was made to learn.
    pub end: String,
    /// Completed requests per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Moved.
    pub bytes: Option<u64>,
    /// Of those, written.
    pub written: Option<u64>,
    /// Median latency.
    pub p50_ns: Option<u64>,
    /// 99 % did not take longer.
    pub p99_ns: Option<u64>,
    /// Exact longest.
    pub max_ns: Option<u64>,
    /// Its course; null where there is none.
    pub series: Option<PageSeries>,
    /// How long requests took at every time; null where nobody counted that.
    pub heat: Option<PageHeat>,
    /// Times of 50 ms and more in which no stream completed anything.
    pub gaps: Vec<Gap>,
    /// Moments when the whole process did not run.
    pub host_stalls: Vec<Gap>,
    /// Doubts about it.
    pub warnings: Vec<Warning>,
}

/// Rate and tail over time, thinned out for drawing: point `k` is about `k * step_ns ..`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageSeries {
    /// Length of a point.
    pub step_ns: u64,
    /// How many measured intervals a point stands for.
    pub merged: u32,
    /// Requests per second, five digits.
    pub rate: Vec<f64>,
    /// The slowest interval of each point; empty where a point is one interval.
    pub low: Vec<f64>,
    /// The fastest, likewise.
    pub high: Vec<f64>,
    /// 99th percentile of latency, at most 5 % off; null unless ten values lie above it.
    pub p99_ns: Vec<Option<u64>>,
    /// Bound on the longest latency, at most 10 % above it; null when nothing completed.
    pub max_ns: Vec<Option<u64>>,
}

/// Latencies over time: column `k` has what completed in `k * step_ns ..`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageHeat {
    /// Length of a column.
    pub step_ns: u64,
    /// (index of the band in the cell's `bands`, how many requests), bands rising; every request is
    /// in one.
    pub columns: Vec<Vec<(u16, u64)>>,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Key of the cell; null for what all cells share.
    pub cell: Option<String>,
    /// The visit within which it is; null for changes from visit to visit.
    pub order: Option<u32>,
    /// Within the visit, or else since the run began.
    pub at_ns: u64,
    /// Requests per second before; 1 for what cells share.
    pub before: f64,
    /// After; the ratio for what cells share.
    pub after: f64,
}

/// A run against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PageAgainst {
    /// The run.
    pub run: String,
    /// The one it is held against.
    pub reference: String,
    /// The verdict in a sentence.
    pub headline: String,
    /// What differs between the two stacks and plans.
    pub differences: Vec<String>,
    /// What the verdict rests on.
    pub evidence: Vec<String>,
    /// `different`, `same` or `inconclusive`.
    pub verdict: String,
    /// Cells that are faster for sure.
    pub faster: u32,
    /// Cells that are slower for sure.
    pub slower: u32,
    /// Over all cells, or those of one stream.
    pub overall: Held,
    /// That stream, where streams are unlike.
    pub overall_of: Option<String>,
    /// Cell by cell.
    pub cells: Vec<CellHeld>,
}

/// Two rates held against each other.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Held {
    /// This run's rate by the reference's.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// `faster`, `slower`, `different`, `same`, `inconclusive` or `not comparable`: a cache answered.
    pub verdict: String,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Chance of such a difference if there were none.
    pub p: Option<f64>,
}

/// A cell of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellHeld {
    /// As people say it.
    pub name: String,
    /// Its key in the reference.
    pub reference: Option<String>,
    /// Its key in this run.
    pub cell: Option<String>,
    /// What came of it.
    pub held: Held,
}

/// The JSON schema of [`Page`], draft 2020-12.
pub fn schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Page>()
}
