//! Accounting of one worker: everything section by section of the record, without allocation
//! per request.

use device::{Completion, Errno, Op};
use record::{Bitmap, Gap, SlowRequest};
use stats::LatencyHistogram;
use units::{Instant, Nanos};

use crate::WorkerId;
use crate::drive::Hanging;
use crate::shared::{Tallies, Tally};
use crate::verify::Mismatch;

/// Longer than this is listed one by one.
const SLOW: Nanos = Nanos::millis(100);
/// How many are listed per worker and operation; more are counted.
const SLOW_CAPACITY: usize = 256;
/// Length of a series interval before any doubling.
pub(crate) const INTERVAL: Nanos = Nanos::millis(100);
/// Rows a series holds before neighbours are merged and the interval doubles: 10 minutes.
const ROWS_MAX: usize = 6_000;
/// Fine buckets per coarse one: eighths of an octave.
const FOLD: usize = 16;
pub(crate) const COARSE: usize = stats::histogram::BUCKETS / FOLD;
/// Gaps shorter than this many milliseconds are not listed.
const GAP_MS_MIN: u64 = 50;

/// What one worker measured.
#[derive(Clone, Debug)]
pub struct WorkerResult {
    /// Which.
    pub id: WorkerId,
    /// By operation, those met.
    pub(crate) ops: Vec<(Op, OpRecorder)>,
    /// A bit per millisecond with a completion.
    pub(crate) bitmap: Bitmap,
    /// Start of the measured part.
    pub begin: Instant,
    /// Last completion counted, or `begin`.
    pub last: Instant,
    /// When its load ended, if by time.
    pub ended: Option<Ended>,
    /// What completed after it had stopped issuing, in order of time.
    pub(crate) late: Vec<Late>,
    /// Requests completed during the ramp.
    pub ramp_requests: u64,
    /// Open loop: due but not issued at the end.
    pub backlog: u64,
    /// Open loop: it stopped offering before its time, since what was due only grew.
    pub overloaded: bool,
    /// See [`record::WorkerRecord`].
    pub gaps: Vec<Gap>,
    /// See [`record::WorkerRecord`].
    pub closing_sync: Option<Gap>,
    /// See [`record::WorkerRecord`].
    pub batch_max: u32,
    /// See [`record::WorkerRecord`].
    pub stamp_error: Nanos,
    /// Requests that never came back.
    pub hanging: Vec<Hanging>,
    /// Others are still in flight, since the user wanted to leave at once.
    pub left: bool,
    /// First failed request, to name it: operation, offset, error (`None`: short transfer of so
    /// many bytes).
    pub first_failure: Option<Failure>,
    /// More requests failed than the limits pass over.
    pub gave_up: bool,
    /// Blocks that were not what was written.
    pub mismatches: Vec<Mismatch>,
    /// How many more of those there were.
    pub mismatches_dropped: u64,
    /// CPU of the worker's thread over the measured part, filled in by who owns the thread:
    /// (user, system).
    pub cpu: Option<(Nanos, Nanos)>,
    /// Context switches likewise: (voluntary, involuntary).
    pub switches: Option<(u64, u64)>,
}

impl WorkerResult {
    /// Streams with ramps of their own begin to measure at moments of their own; in the result
    /// all times count from the first of them. Series rows and bits of the map move by whole ones.
    pub(crate) fn count_from(&mut self, begin: Instant) {
        let shift = self.begin.since(begin).get();
        if shift == 0 {
            return;
        }
        self.begin = begin;
        let bits = rounded(shift, 1_000_000);
        let late = std::mem::take(&mut self.bitmap);
        grow(&mut self.bitmap, late.bits + bits);
        for bit in (0..late.bits).filter(|&bit| late.get(bit)) {
            self.bitmap.set(bit + bits);
        }
        truncate(&mut self.bitmap, late.bits + bits);
        for gap in self.gaps.iter_mut().chain(&mut self.closing_sync) {
            gap.start_ns += shift;
        }
        for (_, op) in &mut self.ops {
            for slow in &mut op.slow {
                slow.at_ns += shift;
            }
            let empty = rounded(shift, op.interval.get()) as usize;
            op.rows.splice(0..0, std::iter::repeat_n(Row::default(), empty));
        }
    }
}

fn rounded(length: u64, unit: u64) -> u64 {
    (length + unit / 2) / unit
}

/// The end of a worker's load by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When it issued no more.
    pub at: Instant,
    /// Until when its load was under way: as `at`; but where every request that it may have in
    /// flight was out then, it would have issued nothing before the first of them was back.
    pub until: Instant,
}

/// A request that completed after its worker had stopped issuing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    pub at: Instant,
    pub op: Op,
    pub bytes: u32,
}

/// A request that did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it was to do.
    pub op: Op,
    /// In which file.
    pub file: u32,
    /// Where.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// What it did instead.
    pub outcome: Outcome,
}

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With an error.
    Error(Errno),
    /// With fewer bytes.
    Short(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct OpRecorder {
    pub requests: u64,
    pub bytes: u64,
    pub latency_sum: u64,
    pub latency_min: u64,
    pub latency_max: u64,
    pub histogram: LatencyHistogram,
    pub errors: Vec<(i32, u64)>,
    pub short: u64,
    pub slow: Vec<SlowRequest>,
    pub slow_dropped: u64,
    pub rows: Vec<Row>,
    pub tails: Vec<(u16, u32)>,
    pub interval: Nanos,
    folded: Folded,
}

/// One interval; its tail is `tails[previous row's end .. end]`.
#[derive(Clone, Copy, Debug, Default)]
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

/// The accounts of one worker during a visit.
#[derive(Debug)]
pub(crate) struct Recorder {
    ops: [Option<Box<OpRecorder>>; Op::ALL.len()],
    pub bitmap: Bitmap,
    /// End of the millisecond whose bit was set last.
    marked_until: Instant,
    /// Milliseconds in which nothing was in flight, for paced workers.
    idle: Option<Bitmap>,
    pub begin: Instant,
    pub last: Instant,
    /// What completed before it.
    ramp: Tallies,
    pub first_failure: Option<Failure>,
    pub failures: u64,
    pub late: Vec<Late>,
    /// The flush that ends the stream, where it counts: when it began, and the last moment at
    /// which a part of it came back.
    pub closing_sync: Option<(Instant, Instant)>,
}

impl Recorder {
    /// * `expected`: the longest the visit can take, if known: room is made for it beforehand.
    /// * `paced`: idle times are not gaps.
    pub(crate) fn new(ops: &[Op], expected: Option<Nanos>, paced: bool) -> Self {
        let milliseconds = expected.unwrap_or(Nanos::secs(60)).get() / 1_000_000 + 1_000;
        // An hour of bits is 450 KiB; longer visits grow the map as they go.
        let bits = milliseconds.min(3_600_000);
        let rows = (milliseconds / 100 + 2).min(ROWS_MAX as u64) as usize;
        let mut recorders = [const { None }; Op::ALL.len()];
        for &op in ops {
            recorders[op as usize] = Some(Box::new(OpRecorder::new(rows)));
        }
        Self {
            ops: recorders,
            bitmap: Bitmap::zeros(bits),
            marked_until: Instant::ZERO,
            idle: paced.then(|| Bitmap::zeros(bits)),
            begin: Instant::ZERO,
            last: Instant::ZERO,
            ramp: Tallies::default(),
            first_failure: None,
            failures: 0,
            late: Vec::new(),
            closing_sync: None,
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
        self.closing_sync = None;
    }

    /// Counts a request that did all it was asked.
    #[inline]
    pub(crate) fn success(&mut self, op: Op, length: u32, latency: Nanos) -> bool {
        let Some(recorder) = self.ops[op as usize].as_deref_mut() else { return false };
        recorder.requests += 1;
        recorder.bytes += u64::from(length);
        let ns = latency.get();
        recorder.latency_sum += ns;
        recorder.latency_min = recorder.latency_min.min(ns);
        recorder.latency_max = recorder.latency_max.max(ns);
        recorder.histogram.record(latency);
        latency >= SLOW
    }

    /// Lists a request that took long.
    #[cold]
    pub(crate) fn slow(&mut self, op: Op, at: Instant, latency: Nanos, worker: u32, offset: u64) {
        let at_ns = at.since(self.begin).get();
        if let Some(recorder) = self.ops[op as usize].as_deref_mut() {
            if recorder.slow.len() < SLOW_CAPACITY {
                let latency_ns = latency.get();
                recorder.slow.push(SlowRequest { at_ns, latency_ns, worker, offset });
            } else {
                recorder.slow_dropped += 1;
            }
        }
    }

    /// Counts a request that failed or came back short.
    #[cold]
    pub(crate) fn failure(&mut self, completion: Completion, failure: Failure) {
        self.failures += 1;
        self.first_failure.get_or_insert(failure);
        let Some(recorder) = self.ops[failure.op as usize].as_deref_mut() else { return };
        match completion.result() {
            Ok(_) => recorder.short += 1,
            Err(errno) => match recorder.errors.iter_mut().find(|(code, _)| *code == errno.0) {
                Some((_, count)) => *count += 1,
                None => recorder.errors.push((errno.0, 1)),
            },
        }
    }

    /// Something completed at `now`.
    #[inline]
    pub(crate) fn mark(&mut self, now: Instant) {
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
        let closing_sync = self.closing_sync.filter(|(from, to)| to > from).map(|(from, to)| Gap {
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
        let ops = Op::ALL
            .into_iter()
            .zip(self.ops)
            .filter_map(|(op, recorder)| recorder.map(|recorder| (op, *recorder)))
            .collect();
        Finished { ops, bitmap: self.bitmap, gaps, closing_sync }
    }
}

/// The accounts of one worker after a visit.
pub(crate) struct Finished {
    pub ops: Vec<(Op, OpRecorder)>,
    pub bitmap: Bitmap,
    pub gaps: Vec<Gap>,
    pub closing_sync: Option<Gap>,
}

/// Makes room for `bit` and as much again, so that it is rarely done.
#[cold]
fn grow(map: &mut Bitmap, bit: u64) {
    if bit >= map.bits {
        map.bits = (bit + 1).max(map.bits * 2);
        map.bytes.resize(map.bits.div_ceil(8) as usize, 0);
    }
}

fn truncate(map: &mut Bitmap, bits: u64) {
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
            folded: Folded { requests: 0, bytes: 0, coarse: Box::new([0; COARSE]) },
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
