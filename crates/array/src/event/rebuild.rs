//! Filling a spare, a piece at a time, at the controller's pace.

use crate::design::ArrayDesign;
use crate::drive::rates;

/// Bytes that are read and written at a time.
const PIECE: u64 = 1 << 20;

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rebuild {
    /// Bytes of a member, and how many are filled.
    size: u64,
    pub(super) filled: u64,
    /// ns from one piece to the next, at least: the share of what the slower of reading and writing does.
    pace: u64,
    /// Whether the piece has been read.
    pub(super) is_writing: bool,
    /// When this piece was begun, and when the one before was written.
    begun: u64,
    written: u64,
}

impl Rebuild {
    pub(super) fn new(design: &ArrayDesign) -> Self {
        let (read, write) = rates(&design.drive.part);
        let share = design.controller.part.rebuild_share.value.0.clamp(1e-3, 1.0);
        let speed = read.min(write).0.get() as f64 * share;
        Self {
            size: design.array.used(design.drive.part.size().value).get(),
            filled: 0,
            pace: (PIECE as f64 * 1e9 / speed) as u64,
            is_writing: false,
            begun: 0,
            written: 0,
        }
    }

    /// Where the piece begins, and its bytes.
    pub(super) fn piece(&self) -> (u64, u64) {
        (self.filled, PIECE.min(self.size - self.filled))
    }

    /// When the last piece is written, if it is on its way.
    pub(super) fn done(&self) -> Option<u64> {
        (self.filled >= self.size).then_some(self.written)
    }

    /// The piece is on its way until `end`; returns when to go on. One piece is read while the one
    /// before is written.
    pub(super) fn next(&mut self, now: u64, end: u64) -> u64 {
        self.is_writing = !self.is_writing;
        if self.is_writing {
            self.begun = now;
            return end;
        }
        self.filled += self.piece().1;
        let before = std::mem::replace(&mut self.written, end);
        let next = now.max(before).max(self.begun + self.pace);
        self.done().unwrap_or(next)
    }
}
