//! Accounting of one worker: everything section by section of the record, without allocation
//! per operation.

use record::{Bitmap, Gap, SlowRequest};
use serde::{Deserialize, Deserializer, Serialize};
use stats::LatencyHistogram;
use units::{Instant, Nanos};

use crate::op::{OPS_MAX, OpId};
use crate::shared::{Tallies, Tally};

/// Longer than this is listed one by one.
const SLOW: Nanos = Nanos::millis(100);
/// How many are listed per worker and operation; more are counted.
const SLOW_CAPACITY: usize = 256;
/// Length of a series interval before any doubling.
pub const INTERVAL: Nanos = Nanos::millis(100);
/// Rows a series holds before neighbours are merged and the interval doubles: 10 minutes.
const ROWS_MAX: usize = 6_000;
/// Fine buckets per coarse one: eighths of an octave.
const FOLD: usize = 16;
const COARSE: usize = stats::histogram::BUCKETS / FOLD;
/// Gaps shorter than this many milliseconds are not listed.
const GAP_MS_MIN: u64 = 50;

/// One that completed after its worker had begun its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// When.
    pub at: Instant,
    /// Of which operation.
    pub op: OpId,
    /// Bytes moved by it.
    pub bytes: u32,
}

/// The accounts of one operation of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpRecorder {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) latency_sum: u64,
    pub(crate) latency_min: u64,
    pub(crate) latency_max: u64,
    pub(crate) histogram: LatencyHistogram,
    pub(crate) errors: Vec<(i32, u64)>,
    pub(crate) short: u64,
    pub(crate) slow: Vec<SlowRequest>,
    pub(crate) slow_dropped: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) tails: Vec<(u16, u32)>,
    #[serde(deserialize_with = "nanoseconds")]
    pub(crate) interval: Nanos,
    #[serde(skip)]
    folded: Folded,
}

/// As they are written: a time of its own is read from text or seconds.
pub(crate) fn nanoseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    u64::deserialize(from).map(Nanos::new)
}

/// One interval; its tail is `tails[previous row's end .. end]`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub requests: u64,
    pub bytes: u64,
    pub tail_end: usize,
}

/// What the closed intervals already hold.
#[derive(Clone, Debug)]
struct Folded {
    requests: u64,
    bytes: u64,
    coarse: Box<[u64; COARSE]>,
}

impl Default for Folded {
    fn default() -> Self {
        Self { requests: 0, bytes: 0, coarse: Box::new([0; COARSE]) }
    }
}

/// The accounts of one worker during a visit.
#[derive(Debug)]
pub struct Recorder {
    ops: [Option<Box<OpRecorder>>; OPS_MAX],
    bitmap: Bitmap,
    /// End of the millisecond whose bit was set last.
    marked_until: Instant,
    /// Milliseconds in which nothing was in flight, for paced workers.
    idle: Option<Bitmap>,
    pub(crate) begin: Instant,
    /// Of the last completion.
    pub(crate) last: Instant,
    /// What completed before it.
    ramp: Tallies,
    failures: u64,
    pub(crate) late: Vec<Late>,
    /// What ends the stream, where it counts: when it began, and the last moment at which a part
    /// of it came back.
    pub(crate) closing: Option<(Instant, Instant)>,
}

impl Recorder {
    /// * `expected`: the longest the visit can take, if known: room is made for it beforehand.
    /// * `paced`: idle times are not gaps.
    pub(crate) fn new(ops: &[OpId], expected: Option<Nanos>, paced: bool) -> Self {
        let milliseconds = expected.unwrap_or(Nanos::secs(60)).get() / 1_000_000 + 1_000;
        // An hour of bits is 450 KiB; longer visits grow the map as they go.
        let bits = milliseconds.min(3_600_000);
        let rows = (milliseconds / 100 + 2).min(ROWS_MAX as u64) as usize;
        let mut recorders = [const { None }; OPS_MAX];
        for &op in ops {
            recorders[op.index()] = Some(Box::new(OpRecorder::new(rows)));
        }
        Self {
            ops: recorders,
            bitmap: Bitmap::zeros(bits),
            marked_until: Instant::ZERO,
            idle: paced.then(|| Bitmap::zeros(bits)),
            begin: Instant::ZERO,
            last: Instant::ZERO,
            ramp: Tallies::default(),
            failures: 0,
            late: Vec::new(),
            closing: None,
        }
    }

    /// The measured part begins: forgets the ramp.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.ramp = self.tallies();
        for op in self.ops.iter_mut().flatten() {
            op.clear();
        }
        self.bitmap.bytes.fill(0);
        self.marked_until = Instant::ZERO;
        if let Some(idle) = &mut self.idle {
            idle.bytes.fill(0);
        }
        self.begin = now;
        self.last = now;
        self.closing = None;
    }

    /// Counts one that did all it was asked; whether it took so long that it is to be listed.
    #[inline]
    pub fn success(&mut self, op: OpId, length: u32, latency: Nanos) -> bool {
        let Some(recorder) = self.ops[op.index()].as_deref_mut() else { return false };
        recorder.requests += 1;
        recorder.bytes += u64::from(length);
        let ns = latency.get();
        recorder.latency_sum += ns;
        recorder.latency_min = recorder.latency_min.min(ns);
        recorder.latency_max = recorder.latency_max.max(ns);
        recorder.histogram.record(latency);
        latency >= SLOW
    }

    /// Lists one that took long.
    #[cold]
    pub fn slow(&mut self, op: OpId, at: Instant, latency: Nanos, worker: u32, offset: u64) {
        let at_ns = at.since(self.begin).get();
        if let Some(recorder) = self.ops[op.index()].as_deref_mut() {
            if recorder.slow.len() < SLOW_CAPACITY {
                let latency_ns = latency.get();
                recorder.slow.push(SlowRequest { at_ns, latency_ns, worker, offset });
            } else {
                recorder.slow_dropped += 1;
            }
        }
    }

    /// Counts one that failed.
    ///
    /// * `error`: its number; `None` where it did less than it was asked.
    #[cold]
    pub fn failure(&mut self, op: OpId, error: Option<i32>) {
        self.failures += 1;
        let Some(recorder) = self.ops[op.index()].as_deref_mut() else { return };
        match error {
            None => recorder.short += 1,
            Some(error) => match recorder.errors.iter_mut().find(|(code, _)| *code == error) {
                Some((_, count)) => *count += 1,
                None => recorder.errors.push((error, 1)),
            },
        }
    }

    /// How many failed, the ramp's included.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Something completed at `now`.
    #[inline]
    pub fn mark(&mut self, now: Instant) {
        self.last = now;
        // Most completions fall into a millisecond that has its bit.
        if now >= self.marked_until {
            self.mark_next(now);
        }
    }

    #[cold]
    fn mark_next(&mut self, now: Instant) {
        let bit = now.since(self.begin).get() / 1_000_000;
        if bit >= self.bitmap.bits {
            grow(&mut self.bitmap, bit);
        }
        self.bitmap.set(bit);
        self.marked_until = self.begin + Nanos::millis(bit + 1);
    }

    /// Nothing was in flight from `from` to `to`.
    pub(crate) fn idle(&mut self, from: Instant, to: Instant) {
        if let Some(idle) = &mut self.idle {
            let last = to.since(self.begin).get() / 1_000_000;
            grow(idle, last);
            for bit in from.since(self.begin).get() / 1_000_000..=last {
                idle.set(bit);
            }
        }
    }

    /// Closes the series intervals that ended at or before `now`.
    pub(crate) fn fold(&mut self, now: Instant) {
        let elapsed = now.since(self.begin);
        for op in self.ops.iter_mut().flatten() {
            op.fold(elapsed);
        }
    }

    pub(crate) fn completed(&self) -> u64 {
        self.ops.iter().flatten().map(|op| op.requests).sum()
    }

    /// How many requests completed during the ramp.
    pub(crate) fn ramp_requests(&self) -> u64 {
        self.ramp.iter().map(|tally| tally.requests).sum()
    }

    /// What completed since the visit began, the ramp included.
    pub(crate) fn so_far(&self) -> Tallies {
        let mut all = self.tallies();
        for (tally, ramp) in all.iter_mut().zip(&self.ramp) {
            tally.requests += ramp.requests;
            tally.bytes += ramp.bytes;
        }
        all
    }

    fn tallies(&self) -> Tallies {
        self.ops.each_ref().map(|op| {
            let op = op.as_deref();
            op.map_or_else(Tally::default, |op| Tally { requests: op.requests, bytes: op.bytes })
        })
    }

    /// Closes everything.
    pub(crate) fn finish(mut self) -> Finished {
        let elapsed = self.last.since(self.begin);
        let bits = elapsed.get() / 1_000_000 + 1;
        for op in self.ops.iter_mut().flatten() {
            op.fold(elapsed);
            op.close_last();
        }
        truncate(&mut self.bitmap, bits);
        let mut busy = self.bitmap.clone();
        if let Some(mut idle) = self.idle.take() {
            truncate(&mut idle, bits);
            busy.merge(&idle);
        }
        let closing_sync = self.closing.filter(|(from, to)| to > from).map(|(from, to)| Gap {
            start_ns: from.since(self.begin).get(),
            length_ns: to.since(from).get(),
        });
        if let Some(sync) = closing_sync {
            // No load waits for it, however long it takes.
            let last = (sync.start_ns + sync.length_ns) / 1_000_000;
            (sync.start_ns / 1_000_000..=last).for_each(|bit| busy.set(bit));
        }
        let gaps = busy
            .zero_runs(GAP_MS_MIN)
            .into_iter()
            .map(|(start, length)| Gap {
                start_ns: start * 1_000_000,
                length_ns: length * 1_000_000,
            })
            .collect();
        let ops = (0u8..).map(OpId).zip(self.ops);
        let ops = ops.filter_map(|(op, recorder)| recorder.map(|recorder| (op, *recorder)));
        let ops = ops.collect();
        Finished { ops, bitmap: self.bitmap, gaps, closing_sync }
    }
}

/// The accounts of one worker after a visit.
pub(crate) struct Finished {
    pub ops: Vec<(OpId, OpRecorder)>,
    pub bitmap: Bitmap,
    pub gaps: Vec<Gap>,
    pub closing_sync: Option<Gap>,
}

/// Makes room for `bit` and as much again, so that it is rarely done.
#[cold]
pub(crate) fn grow(map: &mut Bitmap, bit: u64) {
    if bit >= map.bits {
        map.bits = (bit + 1).max(map.bits * 2);
        map.bytes.resize(map.bits.div_ceil(8) as usize, 0);
    }
}

pub(crate) fn truncate(map: &mut Bitmap, bits: u64) {
    map.bits = bits;
    map.bytes.resize(bits.div_ceil(8) as usize, 0);
    map.bytes.shrink_to_fit();
}

impl OpRecorder {
    fn new(rows: usize) -> Self {
        Self {
            requests: 0,
            bytes: 0,
            latency_sum: 0,
            latency_min: u64::MAX,
            latency_max: 0,
            histogram: LatencyHistogram::new(),
            errors: Vec::with_capacity(8),
            short: 0,
            slow: Vec::with_capacity(SLOW_CAPACITY.min(64)),
            slow_dropped: 0,
            rows: Vec::with_capacity(rows),
            // A steady device fills some ten coarse buckets an interval.
            tails: Vec::with_capacity(rows * 12),
            interval: INTERVAL,
            folded: Folded::default(),
        }
    }

    fn clear(&mut self) {
        self.requests = 0;
        self.bytes = 0;
        self.latency_sum = 0;
        self.latency_min = u64::MAX;
        self.latency_max = 0;
        self.histogram.clear();
        self.errors.clear();
        self.short = 0;
        self.slow.clear();
        self.slow_dropped = 0;
        self.rows.clear();
        self.tails.clear();
        self.interval = INTERVAL;
        self.folded.requests = 0;
        self.folded.bytes = 0;
        self.folded.coarse.fill(0);
    }

    fn fold(&mut self, elapsed: Nanos) {
        while elapsed.get() >= (self.rows.len() as u64 + 1) * self.interval.get() {
            self.close_row();
            if self.rows.len() >= ROWS_MAX {
                self.halve();
            }
        }
    }

    /// Closes the interval under way, if anything is in it.
    fn close_last(&mut self) {
        if self.requests > self.folded.requests {
            self.close_row();
        }
    }

    fn close_row(&mut self) {
        if self.requests > self.folded.requests {
            let fine = self.histogram.buckets().chunks_exact(FOLD);
            for ((index, chunk), before) in (0u16..).zip(fine).zip(self.folded.coarse.iter_mut()) {
                let now: u64 = chunk.iter().sum();
                if now > *before {
                    // 100 ms cannot hold 2^32 completions.
                    self.tails.push((index, (now - *before) as u32));
                    *before = now;
                }
            }
        }
        self.rows.push(Row {
            requests: self.requests - self.folded.requests,
            bytes: self.bytes - self.folded.bytes,
            tail_end: self.tails.len(),
        });
        self.folded.requests = self.requests;
        self.folded.bytes = self.bytes;
    }

    /// Merges each two neighbouring rows and doubles the interval.
    fn halve(&mut self) {
        let merged = self.merged_pairs();
        self.rows.clear();
        self.tails.clear();
        for (row, tail) in merged {
            self.tails.extend(tail);
            self.rows.push(Row { tail_end: self.tails.len(), ..row });
        }
        self.interval = Nanos::new(self.interval.get() * 2);
    }

    fn merged_pairs(&self) -> Vec<(Row, Vec<(u16, u32)>)> {
        let rows: Vec<_> = self.tail_slices().collect();
        rows.chunks(2)
            .map(|pair| {
                let mut row = Row::default();
                let mut tail = std::collections::BTreeMap::new();
                for (part, slice) in pair {
                    row.requests += part.requests;
                    row.bytes += part.bytes;
                    for &(bucket, count) in *slice {
                        *tail.entry(bucket).or_insert(0) += count;
                    }
                }
                (row, tail.into_iter().collect())
            })
            .collect()
    }

    /// Each row with its tail.
    pub(crate) fn tail_slices(&self) -> impl Iterator<Item = (Row, &[(u16, u32)])> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let slice = self.tails.get(start..row.tail_end).unwrap_or(&[]);
            start = row.tail_end;
            (*row, slice)
        })
    }
}
