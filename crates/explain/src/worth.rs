//! Whether the write-optimising layer is worth it on a place: what was measured, through its closed form.

use finding::{Code, Finding, Number, Quantity, Question, Section, Value};
use layer::{DeviceCosts, LayerForecast, LiveShare};
use schemars::JsonSchema;
use serde::Serialize;
use suite::model::{Access, Cell};
use units::{Bytes, Nanos};

use crate::cache::answered;
use crate::explanation;
use crate::findings::Findings;
use crate::view::{CellView, View};
use crate::which::disturbed;

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.layer-worth/1";
/// The suite that is played on a place.
pub const SUITE: &str = "layer-worth";

/// Pieces from this length on cost what a segment costs, byte by byte.
const SEGMENT_MIN: u64 = 256 << 10;
/// The layer's blocks.
const BLOCK: u64 = layer::BLOCK.get();
/// Fills that are reckoned with, and the one that the answer is about.
const FILLS: [f64; 6] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const FILL: f64 = LiveShare::ADVISED.get();
/// Those that the answer names.
const FILLS_TOLD: [f64; 3] = [0.5, 0.7, 0.8];
/// Beyond that nobody fills a volume.
const EVEN_MAX: f64 = 0.95;
/// Less is not worth the trouble.
const GAIN_MIN: f64 = 1.1;
/// What a drive's own cleaning adds to a random write, as a multiple of its bytes, is below that.
const OWN_MAP: f64 = 6.0;
/// Shares of reads.
const READS: [f64; 3] = [0.5, 0.8, 0.9];

/// Whether the layer is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerVerdict {
    /// Faster at a fill of 60 %, by 10 % and more.
    Worth,
    /// Faster there, by less.
    Little,
    /// Slower there.
    Worthless,
    /// The interval of the gain holds 1.
    Unknown,
}

/// What the layer would make of a place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LayerWorth {
    /// Always `plimsoll.layer-worth/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// As the user named it.
    pub place: String,
    /// Where it was measured.
    pub run: String,
    /// At a fill of 60 %.
    pub verdict: LayerVerdict,
    /// Length of the random writes, bytes.
    pub block_bytes: u64,
    /// Random writes of the place alone.
    pub writes: Number,
    /// Random reads, of the place and through the layer.
    pub reads: Option<Number>,
    /// Writes in pieces of 256 KiB and more.
    pub segment_writes: Number,
    /// Reads in such pieces.
    pub segment_reads: Number,
    /// The fill above which the layer is slower than the place alone; `None` if it always is.
    pub break_even: Option<f64>,
    /// By fill.
    pub fills: Vec<WorthAtFill>,
    /// The answer.
    pub answer: Section,
}

/// What the layer would make at one fill.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorthAtFill {
    /// Share of the layer's room that holds data.
    pub fill: f64,
    /// Blocks that are written for each that the user writes.
    pub write_amplification: f64,
    /// Random writes through the layer.
    pub writes: Number,
    /// That by the place alone.
    pub gain: Number,
    /// The same of reads and writes together.
    pub mixes: Vec<WorthOfMix>,
}

/// Reads and writes together: each takes the time that it takes alone.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorthOfMix {
    /// Share of the requests that are reads.
    pub read_share: f64,
    /// Requests per second through the layer.
    pub rate: f64,
    /// That by the place alone.
    pub gain: f64,
}

/// What a run lacks to be judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorthGap {
    /// Random writes of 4 KiB to 128 KiB.
    RandomWrites,
    /// Writes of 256 KiB and more.
    SegmentWrites,
    /// Reads of 256 KiB and more.
    SegmentReads,
}

impl WorthGap {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::RandomWrites => {
                "random writes of 4 KiB to 128 KiB around the page cache, without a flush"
            }
            Self::SegmentWrites => {
                "writes of 256 KiB and more around the page cache, without a flush"
            }
            Self::SegmentReads => "reads of 256 KiB and more around the page cache",
        }
    }
}

/// A cell that may stand for a cost.
struct Known {
    is_read: bool,
    is_random: bool,
    block: u64,
    /// Requests per second.
    rate: Number,
    is_cached: bool,
}

impl Known {
    fn bandwidth(&self) -> Number {
        let bytes = self.block as f64;
        let [low, high] = ends(self.rate);
        Number::bandwidth(self.rate.value * bytes).within(low * bytes, high * bytes)
    }
}

/// Judges a place by a run on it.
///
/// * `block`: the length of random writes; what the run has that is nearest is taken.
///
/// # Errors
///
/// The run has not what it takes.
pub fn worth(view: &View<'_>, block: Bytes) -> Result<LayerWorth, WorthGap> {
    of(view, block, &explanation::sections(view))
}

/// * `sections`: what else was found in the run.
fn of(view: &View<'_>, block: Bytes, sections: &[Section]) -> Result<LayerWorth, WorthGap> {
    let all = known(view);
    let distance = |one: &&Known| (one.block as f64 / block.get() as f64).ln().abs();
    let writes = || all.iter().filter(|one| !one.is_read && one.is_random && is_page(one.block));
    let nearest = writes().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let block = nearest.ok_or(WorthGap::RandomWrites)?.block;
    let fastest = |those: &dyn Fn(&Known) -> bool| {
        let fits = all.iter().filter(|one| those(one));
        fits.max_by(|a, b| a.bandwidth().value.total_cmp(&b.bandwidth().value))
    };
    let random =
        |read: bool| fastest(&|one| one.is_read == read && one.is_random && one.block == block);
    let segments = |read: bool| fastest(&|one| one.is_read == read && one.block >= SEGMENT_MIN);
    let writes = random(false).ok_or(WorthGap::RandomWrites)?;
    let written = segments(false).ok_or(WorthGap::SegmentWrites)?;
    let read = segments(true).ok_or(WorthGap::SegmentReads)?;
    let reads = random(true);
    let costs = Costs {
        block,
        writes: writes.rate,
        reads: reads.map(|one| one.rate),
        written: written.bandwidth(),
        read: read.bandwidth(),
    };
    let fills: Vec<WorthAtFill> = FILLS.iter().filter_map(|fill| costs.at(*fill)).collect();
    let cached = [
        (Some(writes), "random writes"),
        (reads, "random reads"),
        (Some(written), "long writes"),
        (Some(read), "long reads"),
    ];
    let cached: Vec<String> = cached
        .iter()
        .filter(|(one, _)| one.is_some_and(|one| one.is_cached))
        .map(|(_, name)| (*name).to_owned())
        .collect();
    let at = fills.iter().find(|one| one.fill == FILL).ok_or(WorthGap::RandomWrites)?;
    let verdict = match ends(at.gain) {
        [low, _] if low > 1.0 && at.gain.value >= GAIN_MIN => LayerVerdict::Worth,
        [low, _] if low > 1.0 => LayerVerdict::Little,
        [_, high] if high < 1.0 => LayerVerdict::Worthless,
        _ => LayerVerdict::Unknown,
    };
    let break_even = costs.forecast(FILL, None).and_then(|one| one.break_even).map(LiveShare::get);
    let place = view.run.header.target.given.clone();
    let mut findings = vec![first(&place, verdict, &costs, at)];
    findings.push(other_fills(&fills, at, break_even));
    findings.push(rests_on(&costs));
    findings.extend(own_map(&costs, verdict));
    if !cached.is_empty() {
        let what = Value::words(finding::numbers::list(&cached));
        findings.push(Finding::new(Code::LayerWorthCached).with("what", what));
    }
    let disturbances = disturbed(std::slice::from_ref(view), sections);
    findings.extend((disturbances.code == Code::AnswerDisturbed).then_some(disturbances));
    Ok(LayerWorth {
        schema: SCHEMA.to_owned(),
        place,
        run: view.run.header.id.clone(),
        verdict,
        block_bytes: block,
        writes: costs.writes,
        reads: costs.reads,
        segment_writes: costs.written,
        segment_reads: costs.read,
        break_even,
        fills,
        answer: Section { question: Question::Answer, findings },
    })
}

/// The answer of one run by itself; `None` unless it is of the suite and has what it takes.
///
/// * `sections`: what else was found in it.
pub(crate) fn alone(view: &View<'_>, sections: &[Section]) -> Option<Vec<Finding>> {
    let is_its = view.run.header.suite == SUITE;
    let found = is_its.then(|| of(view, Bytes::new(2 * BLOCK), sections))?;
    found.ok().map(|found| found.answer.findings)
}

/// What the layer writes at random: pages of whole blocks.
fn is_page(block: u64) -> bool {
    block.is_multiple_of(BLOCK) && (1..=SEGMENT_MIN / 2).contains(&block)
}

fn known(view: &View<'_>) -> Vec<Known> {
    let Some(suite) = view.suite() else { return Vec::new() };
    let cells: Vec<&Cell> = suite.cells().collect();
    let findings = Findings::of(view);
    let answered = answered(view);
    let one = |row: &CellView<'_>| {
        let [stream] = cells.get(row.cell.index as usize)?.streams.as_slice() else { return None };
        let load = row.load()?;
        let is_random = match stream.access {
            Access::Uniform | Access::UniformOnce | Access::Permutation => true,
            Access::Sequential { .. } => false,
            _ => return None,
        };
        let interval = findings.interval_of(view, row)?;
        (stream.why_not_plain().is_none() && matches!(load.op.as_str(), "read" | "write")).then(
            || Known {
                is_read: load.op == "read",
                is_random,
                block: load.block_bytes,
                rate: Number::iops(interval.mean).within(interval.low, interval.high),
                is_cached: answered(row).is_some(),
            },
        )
    };
    view.grid().filter_map(one).filter(|one| one.rate.value > 0.0).collect()
}

/// What was measured of a place.
struct Costs {
    block: u64,
    writes: Number,
    reads: Option<Number>,
    written: Number,
    read: Number,
}

/// Low and high end.
fn ends(number: Number) -> [f64; 2] {
    [number.low.unwrap_or(number.value), number.high.unwrap_or(number.value)]
}

impl Costs {
    /// * `end`: with the least (0) or the most (1) that the layer gains within the intervals;
    ///   `None` for the middle.
    fn forecast(&self, fill: f64, end: Option<usize>) -> Option<LayerForecast> {
        let of = |number: Number, end: Option<usize>| match end {
            Some(end) => ends(number)[end],
            None => number.value,
        };
        // The smallest time that a clock of ns knows.
        let time = |rate: f64| Nanos::from_secs_f64(1.0 / rate).max(Nanos::new(1));
        let segment = Bytes::mib(2);
        let length = segment.get() as f64;
        let costs = DeviceCosts {
            random_write: time(of(self.writes, end.map(|end| 1 - end))),
            write: Bytes::new(self.block),
            random_read: self.reads.map(|reads| time(of(reads, end))),
            sequential_read: time(of(self.read, end) / length),
            sequential_write: time(of(self.written, end) / length),
            sequential: segment,
        };
        costs.forecast(LiveShare::new(fill)?)
    }

    fn at(&self, fill: f64) -> Option<WorthAtFill> {
        let [low, middle, high] = [Some(0), None, Some(1)].map(|end| self.forecast(fill, end));
        let (low, middle, high) = (low?, middle?, high?);
        let through = middle.writes_per_second;
        // A rate through the layer depends on the pieces alone, the gain on both.
        let writes = Number::iops(through).within(low.writes_per_second, high.writes_per_second);
        let gain = Number::new(middle.gain, Quantity::Times).within(low.gain, high.gain);
        let mix = |read_share: f64| {
            let reads = self.reads?.value;
            let rate = |writes: f64| 1.0 / (read_share / reads + (1.0 - read_share) / writes);
            let (rate, alone) = (rate(through), rate(self.writes.value));
            Some(WorthOfMix { read_share, rate, gain: rate / alone })
        };
        let mixes = READS.iter().filter_map(|share| mix(*share)).collect();
        let write_amplification = middle.write_amplification;
        Some(WorthAtFill { fill, write_amplification, writes, gain, mixes })
    }
}

fn first(place: &str, verdict: LayerVerdict, costs: &Costs, at: &WorthAtFill) -> Finding {
    let code = match verdict {
        LayerVerdict::Worth => Code::LayerWorth,
        LayerVerdict::Worthless => Code::LayerWorthless,
        LayerVerdict::Little => Code::LayerWorthLittle,
        LayerVerdict::Unknown => Code::LayerWorthUnknown,
    };
    let [low, high] = ends(at.gain);
    Finding::new(code)
        .with("place", Value::name(place))
        .with("fill", Number::share(at.fill))
        .with("gain", at.gain)
        .with("loss", Number::share(1.0 - at.gain.value).within(1.0 - high, 1.0 - low))
        .with("block", Number::bytes(costs.block))
        .with("rate", Number::iops(at.writes.value))
        .with("bare", Number::iops(costs.writes.value))
}

/// Some other fills, where the gain ends, and what reads leave of it.
fn other_fills(fills: &[WorthAtFill], at: &WorthAtFill, break_even: Option<f64>) -> Finding {
    let times = |gain: f64| format!("{} times", finding::numbers::digits(gain));
    let share = finding::numbers::percent;
    let told = fills.iter().filter(|one| FILLS_TOLD.contains(&one.fill));
    let told = told.map(|one| format!("{} {}", share(one.fill), times(one.gain.value)));
    let mix =
        |one: &WorthOfMix| format!("with {} reads {}", share(one.read_share), times(one.gain));
    let mixes: Vec<String> = at.mixes.iter().filter(|one| one.read_share < 0.9).map(mix).collect();
    let even = break_even
        .filter(|even| *even < EVEN_MAX)
        .map(|even| Number::share((even * 100.0).ceil() / 100.0));
    Finding::new(Code::LayerWorthFills)
        .with("fills", Value::words(finding::numbers::list(&told.collect::<Vec<String>>())))
        .with_some("even", even)
        .with("fill", Number::share(at.fill))
        .with_some(
            "mixes",
            (!mixes.is_empty()).then(|| Value::words(finding::numbers::list(&mixes))),
        )
}

fn rests_on(costs: &Costs) -> Finding {
    Finding::new(Code::LayerWorthCosts)
        .with("written", Number::bandwidth(costs.written.value))
        .with("read", Number::bandwidth(costs.read.value))
        .with("segment", Number::bytes(SEGMENT_MIN))
}

/// A gain that unused room brings as well: of a drive whose random writes cost little more than others.
fn own_map(costs: &Costs, verdict: LayerVerdict) -> Option<Finding> {
    let equal = costs.written.value / (costs.writes.value * costs.block as f64);
    (verdict != LayerVerdict::Worthless && equal < OWN_MAP).then(|| {
        Finding::new(Code::LayerWorthOwnMap)
            .with("equal", Number::new(equal, Quantity::Times))
            .with("spare", Number::share(1.0 - FILL))
    })
}
