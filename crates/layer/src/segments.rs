//! Which segments may be written, and which are worth emptying.

use std::collections::VecDeque;

use crate::planted::{PlantedBug, planted};
use crate::shape::{Physical, SegmentNumber, VolumeShape};

/// What a segment is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentUse {
    /// May be written.
    Clean,
    /// The log is in it, or will be next.
    Open,
    /// Full; has live blocks.
    Full,
    /// Full; one of its groups cannot be read, so it is no victim.
    Unreadable,
    /// No block is live. Not clean yet, since a crash may bring blocks back.
    Dead,
}

#[derive(Clone, Copy, Debug)]
struct SegmentState {
    used: SegmentUse,
    live: u32,
    /// Last group in it.
    last: u64,
    /// The group that holds the change which made it dead.
    died: u64,
}

/// All segments of a volume.
#[derive(Debug)]
pub(crate) struct SegmentTable {
    shape: VolumeShape,
    states: Vec<SegmentState>,
    clean: VecDeque<SegmentNumber>,
    dead: Vec<SegmentNumber>,
}

/// How far the log is safe: by a flush, and by a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SafeUpTo {
    pub durable: u64,
    pub checkpoint: u64,
}

impl SegmentTable {
    /// From the blocks of a map; `None` if one lies outside. Nothing is clean yet.
    pub fn of(shape: VolumeShape, blocks: impl Iterator<Item = Physical>) -> Option<Self> {
        let state = SegmentState { used: SegmentUse::Full, live: 0, last: 0, died: 0 };
        let states = vec![state; shape.segments as usize];
        let mut table = Self { shape, states, clean: VecDeque::new(), dead: Vec::new() };
        for block in blocks.filter(|&block| block != Physical::NONE) {
            let segment = shape.segment_of(block)?;
            table.state(segment).live += 1;
        }
        Some(table)
    }

    /// Marks the log's segments, which are `open`, and makes clean what has no live block.
    pub fn sort(&mut self, open: [SegmentNumber; 2]) {
        self.clean.clear();
        self.dead.clear();
        for number in 0..self.shape.segments {
            let segment = SegmentNumber(number);
            let state = self.state(segment);
            state.used = match state.live {
                _ if open.contains(&segment) => SegmentUse::Open,
                0 => SegmentUse::Clean,
                _ => SegmentUse::Full,
            };
            if state.used == SegmentUse::Clean {
                self.clean.push_back(segment);
            }
        }
    }

    fn state(&mut self, segment: SegmentNumber) -> &mut SegmentState {
        &mut self.states[segment.0 as usize]
    }

    pub fn used(&self, segment: SegmentNumber) -> SegmentUse {
        self.states[segment.0 as usize].used
    }

    pub fn live(&self, segment: SegmentNumber) -> u32 {
        self.states[segment.0 as usize].live
    }

    pub fn clean(&self) -> usize {
        self.clean.len()
    }

    /// Takes a clean segment for the log.
    pub fn open(&mut self) -> Option<SegmentNumber> {
        let segment = self.clean.pop_front()?;
        self.state(segment).used = SegmentUse::Open;
        Some(segment)
    }

    /// The log has left a segment. `last` is the last group in it.
    pub fn fill(&mut self, segment: SegmentNumber, last: u64) {
        let state = self.state(segment);
        (state.used, state.last) = (SegmentUse::Full, last);
        if state.live == 0 {
            self.bury(segment, last);
        }
    }

    pub fn set_unreadable(&mut self, segment: SegmentNumber) {
        if self.used(segment) == SegmentUse::Full {
            self.state(segment).used = SegmentUse::Unreadable;
        }
    }

    /// A block became live.
    pub fn add(&mut self, block: Physical) {
        if let Some(segment) = self.shape.segment_of(block) {
            self.state(segment).live += 1;
        }
    }

    /// A block is no longer live, by a change that the group `by` will hold.
    pub fn remove(&mut self, block: Physical, by: u64) {
        let Some(segment) = self.shape.segment_of(block) else { return };
        let state = self.state(segment);
        state.live -= 1;
        let is_full = matches!(state.used, SegmentUse::Full | SegmentUse::Unreadable);
        if state.live == 0 && is_full {
            self.bury(segment, by);
        }
    }

    fn bury(&mut self, segment: SegmentNumber, by: u64) {
        let state = self.state(segment);
        (state.used, state.died) = (SegmentUse::Dead, by);
        self.dead.push(segment);
    }

    /// Whether a flush of all that is written would make a segment clean.
    pub fn waits_for_flush(&self, checkpoint: u64) -> bool {
        self.dead.iter().any(|segment| self.states[segment.0 as usize].last <= checkpoint)
    }

    /// Makes clean the dead segments that no crash can need again, and returns them.
    ///
    /// A segment may be written once the change that made it dead is durable (else a crash brings
    /// the old blocks back), and once a checkpoint covers its groups (else recovery needs them to
    /// get past them).
    pub fn release(&mut self, safe: SafeUpTo) -> Vec<SegmentNumber> {
        let mut released = Vec::new();
        self.dead.retain(|&segment| {
            let state = &mut self.states[segment.0 as usize];
            let is_flushed = state.died <= safe.durable || planted(PlantedBug::FreeBeforeFlush);
            let is_covered =
                state.last <= safe.checkpoint || planted(PlantedBug::FreeBeforeCheckpoint);
            if is_flushed && is_covered {
                state.used = SegmentUse::Clean;
                released.push(segment);
            }
            !(is_flushed && is_covered)
        });
        self.clean.extend(&released);
        released
    }

    /// The segments with the fewest live blocks, emptiest first: at most `count`, none with more than
    /// `live_max` live blocks, none that the log since the checkpoint is in.
    pub fn victims(&self, count: usize, live_max: u32, checkpoint: u64) -> Vec<SegmentNumber> {
        let mut found: Vec<(u32, SegmentNumber)> = (0..)
            .zip(&self.states)
            .filter(|(_, state)| {
                let is_covered = state.last <= checkpoint;
                state.used == SegmentUse::Full && is_covered && state.live <= live_max
            })
            .map(|(number, state)| (state.live, SegmentNumber(number)))
            .collect();
        if count < found.len() {
            found.select_nth_unstable(count);
            found.truncate(count);
        }
        found.sort_unstable();
        found.into_iter().map(|(_, segment)| segment).collect()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.states.capacity() * size_of::<SegmentState>()
            + (self.clean.capacity() + self.dead.capacity()) * size_of::<SegmentNumber>()
    }
}
