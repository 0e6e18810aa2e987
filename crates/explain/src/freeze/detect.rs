//! Gaps of one visit: times without a completion although requests were in flight.

use std::collections::BTreeSet;

use record::{Gap, Series, SlowRequest, VisitEnd, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::LatencyHistogram;
use stats::histogram::bucket_bounds;
use units::Nanos;

/// A shorter gap is not told of, however fast the device is otherwise.
pub const HICCUP: Nanos = Nanos::millis(100);
/// From here on people wait.
pub const STALL: Nanos = Nanos::secs(1);
/// From here on programs give up.
pub const FREEZE: Nanos = Nanos::secs(5);
/// A gap is out of the ordinary beyond so many times the usual gap and the usual worst latency.
const TIMES_USUAL: f64 = 10.0;
/// A 99th percentile of fewer is their longest.
const WINDOW_REQUESTS_MIN: u64 = 100;
/// A silence that begins less before the end of the load is its end.
const BEGUN: Nanos = Nanos::millis(10);
/// The bitmap's grain.
const MILLISECOND: u64 = 1_000_000;
/// Coarse buckets of a series are so many fine ones.
const FOLD: usize = 16;

/// How bad a gap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// 100 ms and more, and ten times what is usual in its cell.
    Hiccup,
    /// 1 s and more.
    Stall,
    /// 5 s and more.
    Freeze,
}

impl Tier {
    /// The field's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hiccup => "hiccup",
            Self::Stall => "stall",
            Self::Freeze => "freeze",
        }
    }

    fn of(length: Nanos) -> Self {
        match length {
            length if length >= FREEZE => Self::Freeze,
            length if length >= STALL => Self::Stall,
            _ => Self::Hiccup,
        }
    }
}

/// A time in which the whole device completed nothing of what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceGap {
    /// From the start of the visit's measured part.
    pub start_ns: u64,
    /// Its length, to 1 ms.
    pub length_ns: u64,
    /// How bad.
    pub tier: Tier,
    /// It lasted until the visit ended: it was at least so long.
    pub open_end: bool,
}

impl DeviceGap {
    /// Its end, from the start of the measured part.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }
}

/// What is usual in a visit: what a gap is held against.
#[derive(Clone, Debug)]
pub(super) struct Usual {
    /// Median time between completions of the whole device.
    pub gap_ns: u64,
    /// Latencies, window by window: (upper end of the bucket in ns, count), rising.
    windows: Vec<Vec<(u64, u64)>>,
}

impl Usual {
    pub(super) fn of(visit: &VisitRecord) -> Self {
        Self { gap_ns: median_gap(visit), windows: windows(visit) }
    }

    /// How long a gap must be to be told of, judged without what lasted as long as itself.
    ///
    /// The requests that a freeze held up would, in a cell of few requests, be its own 99th
    /// percentile. So latencies of `length` and more are left out; and the percentile is the
    /// median of those of many short windows, since in open loop a freeze also delays what
    /// was due after it.
    pub(super) fn threshold(&self, length: Nanos) -> Nanos {
        let usual = self.gap_ns.max(self.worst_below(length));
        let times = Nanos::new((usual as f64 * TIMES_USUAL) as u64);
        times.max(HICCUP)
    }

    fn worst_below(&self, length: Nanos) -> u64 {
        let worst = |window: &Vec<(u64, u64)>| {
            let below = || window.iter().filter(|&&(latency, _)| latency < length.get());
            let count: u64 = below().map(|&(_, n)| n).fold(0, u64::saturating_add);
            // Rounded down: of fewer than a hundred the longest is one of a kind, and no rule.
            let rank = ((count as f64 * 0.99) as u64).max(1);
            let mut seen = 0;
            below().find_map(|&(latency, n)| {
                seen = u64::saturating_add(seen, n);
                (seen >= rank).then_some(latency)
            })
        };
        let mut all: Vec<u64> = self.windows.iter().filter_map(worst).collect();
        all.sort_unstable();
        all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(0)
    }
}

/// Gaps of the whole device that are out of the ordinary, in order of time. `None` when the
/// record has no bitmap to tell from.
pub(super) fn device_gaps(visit: &VisitRecord, usual: &Usual) -> Option<Vec<DeviceGap>> {
    let load_bits = visit.rated_ns().div_ceil(MILLISECOND);
    let elapsed_ns = visit.elapsed_ns.max(visit.rated_ns());
    let elapsed_bits = elapsed_ns.div_ceil(MILLISECOND);
    if visit.completions.bits == 0 {
        return None;
    }
    let mut gaps = Vec::new();
    for (start, bits) in silences(visit, elapsed_bits) {
        let in_load = start.saturating_add(bits).min(load_bits).saturating_sub(start);
        if in_load < bits && !begins_in_load(in_load.saturating_mul(MILLISECOND), usual) {
            continue;
        }
        let whole = gap(start, bits, elapsed_bits, elapsed_ns);
        for part in while_busy(visit, whole) {
            let length = Nanos::new(part.length_ns);
            let long = length >= HICCUP && length >= usual.threshold(length);
            if long && !is_of_few(visit, part) {
                gaps.push(part);
            }
        }
    }
    Some(gaps)
}

/// Whether a silence that lasted beyond the load's end had begun before it. If not, nothing came
/// back since nothing more was asked for, and what was waited for was out while others went on.
///
/// * `in_load_ns`: of the silence, what lies before the load's end.
fn begins_in_load(in_load_ns: u64, usual: &Usual) -> bool {
    let usual = Nanos::new((usual.gap_ns as f64 * TIMES_USUAL) as u64);
    Nanos::new(in_load_ns) >= usual.max(BEGUN)
}

/// Whether a gap at the visit's end is only what a few workers still waited for when the others
/// were long done: those are stuck, the device is not.
fn is_of_few(visit: &VisitRecord, gap: DeviceGap) -> bool {
    let (affected, all) = affected(visit, gap);
    gap.open_end && affected * 2 < all
}

/// How many workers a gap held up for most of it, and how many there were.
pub(super) fn affected(visit: &VisitRecord, gap: DeviceGap) -> (usize, usize) {
    let workers = || visit.streams.iter().flat_map(|stream| &stream.workers);
    let held = |gaps: &[Gap]| {
        let parts = gaps.iter().filter_map(|&own| overlap(own, gap));
        parts.map(|(start, end)| end.saturating_sub(start)).fold(0, u64::saturating_add)
            >= gap.length_ns / 2
    };
    (workers().filter(|worker| held(&worker.gaps)).count(), workers().count())
}

/// How many requests were in flight from a gap's start to its end: those that came back after it and
/// had gone out before. `None` where not all of them are listed, or some never came back.
pub(crate) fn held(visit: &VisitRecord, gap: DeviceGap) -> Option<usize> {
    const NEAR: u64 = 2 * MILLISECOND;
    let ops = || visit.streams.iter().flat_map(|stream| &stream.ops);
    if visit.end == VisitEnd::Hanging || ops().any(|op| op.slow_dropped > 0) {
        return None;
    }
    let slow = ops().flat_map(|op| &op.slow);
    let is_held = |request: &&SlowRequest| {
        let since_gap = request.at_ns.saturating_sub(gap.start_ns);
        request.at_ns.saturating_add(NEAR) >= gap.end_ns()
            && request.latency_ns.saturating_add(NEAR) >= since_gap
    };
    Some(slow.filter(is_held).count()).filter(|held| *held > 0)
}

/// Runs of zero bits that can be a gap; what lies between the bitmap's end and the visit's
/// is silence too.
fn silences(visit: &VisitRecord, elapsed_bits: u64) -> Vec<(u64, u64)> {
    // A run of z bits is a gap of up to z + 2 ms.
    let bits_min = HICCUP.get() / MILLISECOND - 2;
    let map = &visit.completions;
    let mut runs = map.zero_runs(1);
    let missing = elapsed_bits.saturating_sub(map.bits);
    if missing > 0 {
        match runs.last_mut().filter(|(start, bits)| start.saturating_add(*bits) == map.bits) {
            Some((_, bits)) => *bits = bits.saturating_add(missing),
            None => runs.push((map.bits, missing)),
        }
    }
    runs.retain(|&(_, bits)| bits >= bits_min);
    runs
}

/// From bits to time: the completions on either side are somewhere in their millisecond, on
/// average in its middle.
fn gap(start: u64, bits: u64, elapsed_bits: u64, elapsed_ns: u64) -> DeviceGap {
    let open_end = start.saturating_add(bits) >= elapsed_bits;
    let half = MILLISECOND / 2;
    let from = if start == 0 { 0 } else { start.saturating_mul(MILLISECOND) - half };
    let to = match open_end {
        true => elapsed_ns,
        false => start.saturating_add(bits).saturating_mul(MILLISECOND).saturating_add(half),
    };
    let length = Nanos::new(to.min(elapsed_ns).saturating_sub(from));
    let tier = Tier::of(length);
    DeviceGap { start_ns: from, length_ns: length.get(), tier, open_end }
}

/// The parts of a gap in which something was in flight. Workers note their gaps only then, so
/// the union of theirs says; a record without any workers is taken as never idle.
fn while_busy(visit: &VisitRecord, gap: DeviceGap) -> Vec<DeviceGap> {
    let mut parts: Vec<(u64, u64)> = visit
        .streams
        .iter()
        .flat_map(|stream| &stream.workers)
        .flat_map(|worker| &worker.gaps)
        .filter_map(|own| overlap(*own, gap))
        .collect();
    if visit.streams.iter().all(|stream| stream.workers.is_empty()) {
        return vec![gap];
    }
    parts.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in parts {
        match joined.last_mut().filter(|last| start <= last.1.saturating_add(2 * MILLISECOND)) {
            Some(last) => last.1 = last.1.max(end),
            None => joined.push((start, end)),
        }
    }
    let part = |(start, end): (u64, u64)| {
        // Workers' gaps are whole milliseconds inside the completions: at the ends that are
        // the device's gap's own, its ends are the better ones.
        let near = |a: u64, b: u64| a.abs_diff(b) <= 2 * MILLISECOND;
        let start = if near(start, gap.start_ns) { gap.start_ns } else { start };
        let end_is_gaps = near(end, gap.end_ns());
        let end = if end_is_gaps { gap.end_ns() } else { end };
        let length = Nanos::new(end.saturating_sub(start));
        DeviceGap {
            start_ns: start,
            length_ns: length.get(),
            tier: Tier::of(length),
            open_end: gap.open_end && end_is_gaps,
        }
    };
    joined.into_iter().map(part).collect()
}

/// Start and end of what a worker's gap and the device's have in common.
pub(super) fn overlap(own: Gap, gap: DeviceGap) -> Option<(u64, u64)> {
    let start = own.start_ns.max(gap.start_ns);
    let end = own.start_ns.saturating_add(own.length_ns).min(gap.end_ns());
    (end > start).then_some((start, end))
}

/// Median time between completions. Those within one millisecond are 0 apart, which is near
/// enough for what it is used for.
fn median_gap(visit: &VisitRecord) -> u64 {
    let map = &visit.completions;
    let mut distances = Vec::new();
    let mut last = None;
    for (index, &byte) in map.bytes.iter().enumerate() {
        let mut rest = byte;
        while rest != 0 {
            let bit = index as u64 * 8 + u64::from(rest.trailing_zeros());
            rest &= rest - 1;
            if bit >= map.bits {
                break;
            }
            if let Some(last) = last {
                distances.push(bit - last);
            }
            last = Some(bit);
        }
    }
    let requests: u64 = visit
        .streams
        .iter()
        .flat_map(|stream| &stream.ops)
        .fold(0, |sum, op| sum.saturating_add(op.requests));
    let within = requests.saturating_sub(distances.len() as u64 + 1);
    let middle = within.saturating_add(distances.len() as u64) / 2;
    distances.sort_unstable();
    match middle.checked_sub(within).and_then(|place| distances.get(place as usize)) {
        Some(&distance) => distance.saturating_mul(MILLISECOND),
        None => 0,
    }
}

/// Latencies of all requests, cut into windows of neighbouring series rows with at least
/// [`WINDOW_REQUESTS_MIN`] requests each; of a record without series, one window.
fn windows(visit: &VisitRecord) -> Vec<Vec<(u64, u64)>> {
    let series: Vec<&Series> =
        visit.streams.iter().flat_map(|s| &s.ops).map(|op| &op.series).collect();
    let mut windows = Vec::new();
    let mut window = std::collections::BTreeMap::new();
    let mut requests = 0u64;
    let rows = series.iter().map(|series| series.rows.len()).max().unwrap_or(0);
    for index in 0..rows {
        for row in series.iter().filter_map(|series| series.rows.get(index)) {
            for &(bucket, count) in &row.tail {
                let entry: &mut u64 = window.entry(coarse_end(bucket)).or_insert(0);
                *entry = entry.saturating_add(count);
                requests = requests.saturating_add(count);
            }
        }
        if requests >= WINDOW_REQUESTS_MIN {
            windows.push(std::mem::take(&mut window).into_iter().collect());
            requests = 0;
        }
    }
    match windows.last_mut() {
        // Too few at the end stand for themselves only if there is nothing else.
        Some(_) => {}
        None if requests > 0 => windows.push(window.into_iter().collect()),
        None => windows.push(whole_histogram(visit)),
    }
    windows
}

fn whole_histogram(visit: &VisitRecord) -> Vec<(u64, u64)> {
    let mut all = LatencyHistogram::new();
    for op in visit.streams.iter().flat_map(|stream| &stream.ops) {
        all.merge(&op.latency);
    }
    all.sparse().map(|(bucket, count)| (bucket_bounds(bucket as usize).1, count)).collect()
}

fn coarse_end(bucket: u16) -> u64 {
    bucket_bounds(usize::from(bucket) * FOLD + FOLD - 1).1
}

/// A time in which some workers completed nothing while others went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StuckGap {
    pub start_ns: u64,
    pub end_ns: u64,
    pub workers: u32,
}

/// Workers' gaps that are none of the whole device's, those that overlap taken as one.
pub(super) fn stuck(visit: &VisitRecord, usual: &Usual, device: &[DeviceGap]) -> Vec<StuckGap> {
    let mut alone: Vec<(u64, u64, usize)> = Vec::new();
    let load_ns = visit.rated_ns();
    let workers = visit.streams.iter().flat_map(|stream| &stream.workers);
    for (number, worker) in workers.enumerate() {
        let own_usual = load_ns / worker.requests.saturating_add(1);
        for own in &worker.gaps {
            // After the end of the load no worker is to complete anything more.
            let in_load = load_ns.saturating_sub(own.start_ns).min(own.length_ns);
            let length = Nanos::new(in_load);
            let common = device.iter().filter_map(|&gap| overlap(*own, gap));
            let common: u64 =
                common.map(|(start, end)| end.saturating_sub(start)).fold(0, u64::saturating_add);
            let times = Nanos::new((own_usual as f64 * TIMES_USUAL) as u64);
            let long = length >= usual.threshold(length).max(times);
            if long && common < own.length_ns / 2 {
                alone.push((own.start_ns, own.start_ns.saturating_add(own.length_ns), number));
            }
        }
    }
    alone.sort_unstable();
    // One event is what stands still at one time: of a chain in which each overlaps the next only, the
    // first ones were back before the last ones stood still.
    let mut events: Vec<StuckGap> = Vec::new();
    let (mut back_ns, mut seen) = (0, BTreeSet::new());
    for (start_ns, end_ns, worker) in alone {
        match events.last_mut().filter(|_| start_ns < back_ns && !seen.contains(&worker)) {
            Some(last) => {
                last.end_ns = last.end_ns.max(end_ns);
                last.workers += 1;
                back_ns = back_ns.min(end_ns);
            }
            None => {
                seen.clear();
                back_ns = end_ns;
                events.push(StuckGap { start_ns, end_ns, workers: 1 });
            }
        }
        seen.insert(worker);
    }
    events
}
