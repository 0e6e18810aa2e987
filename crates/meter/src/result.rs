//! What leaves a worker: plain values, also for another process.

use record::{Bitmap, Gap, Warning};
use serde::{Deserialize, Serialize};
use units::{Instant, Nanos};

use crate::op::{OpId, WorkerId};
use crate::recorder::{Late, OpRecorder, Row, grow, nanoseconds, truncate};

/// What one worker measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerResult {
    /// Which.
    pub id: WorkerId,
    /// By operation, those met.
    pub(crate) ops: Vec<(OpId, OpRecorder)>,
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
    /// Completed during the ramp.
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
    #[serde(deserialize_with = "nanoseconds")]
    pub stamp_error: Nanos,
    /// Operations never came back.
    pub hangs: bool,
    /// Others are still in flight, since the user wanted to leave at once.
    pub left: bool,
    /// What went wrong, without whose it is.
    pub troubles: Vec<Warning>,
    /// More failed than the limits pass over.
    pub gave_up: bool,
    /// CPU of the worker's thread over the measured part, filled in by who owns the thread:
    /// (user, system), in ns.
    pub cpu: Option<(u64, u64)>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When it issued no more.
    pub at: Instant,
    /// Until when its load was under way: as `at`; but where every request that it may have in
    /// flight was out then, it would have issued nothing before the first of them was back.
    pub until: Instant,
}
