//! Which segments may be written, and which are worth emptying.

use std::collections::VecDeque;

use crate::format::Head;
use crate::planted::{PlantedBug, planted};
use crate::shape::{LogStream, Physical, STREAMS, SegmentNumber, VolumeShape, Within};

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
    /// Of a segment that was written before the volume was opened: the oldest.
    stream: LogStream,
    live: u32,
    /// The clock when the log entered it.
    entered: u32,
    /// Last group in it.
    last: u64,
    /// The group that holds the change which made it dead.
    died: u64,
}

/// A victim that is emptied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim {
    pub segment: SegmentNumber,
    /// When the log entered it: else it is another one by now.
    pub entered: u32,
    /// Behind what was copied.
    pub within: Within,
}

/// The victims that are emptied while the user writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub victims: VecDeque<Victim>,
    /// Blocks to be copied for each that the user writes.
    pub pace: f64,
    /// Blocks that should have been copied by now.
    pub owed: f64,
}

/// All segments of a volume.
#[derive(Debug)]
pub(crate) struct SegmentTable {
    shape: VolumeShape,
    states: Vec<SegmentState>,
    clean: VecDeque<SegmentNumber>,
    dead: Vec<SegmentNumber>,
    /// Segments that the log has entered. It starts high, so that all that is there is old.
    clock: u32,
    /// Of the last [`RECENT`] writes, those over young blocks: a mean that decays, times [`RECENT`].
    over_young: u32,
}

/// Writes that are looked back at.
const RECENT: u32 = 1024;

/// How far the log is safe: by a flush, and by a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SafeUpTo {
    pub durable: u64,
    pub checkpoint: u64,
}

impl SegmentTable {
    /// From the blocks of a map; `None` if one lies outside. Nothing is clean yet.
    pub fn of(shape: VolumeShape, blocks: impl Iterator<Item = Physical>) -> Option<Self> {
        let (used, stream) = (SegmentUse::Full, LogStream::OLD);
        let state = SegmentState { used, stream, live: 0, entered: 0, last: 0, died: 0 };
        let states = vec![state; shape.segments as usize];
        let (clean, dead, clock) = (VecDeque::new(), Vec::new(), shape.segments);
        let over_young = RECENT * RECENT / 2;
        let mut table = Self { shape, states, clean, dead, clock, over_young };
        for block in blocks.filter(|&block| block != Physical::NONE) {
            let segment = shape.segment_of(block)?;
            table.state(segment).live += 1;
        }
        Some(table)
    }

    /// Marks the log's segments, and makes clean what has no live block.
    pub fn sort(&mut self, heads: &[Head; STREAMS]) {
        self.clean.clear();
        self.dead.clear();
        let mut open: Vec<SegmentNumber> = heads.iter().map(|head| head.segment).collect();
        if !planted(PlantedBug::NextForgotten) {
            open.extend(heads.iter().map(|head| head.next));
        }
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
        for (stream, head) in LogStream::all().zip(heads) {
            self.enter(head.segment, stream);
        }
    }

    /// A stream goes on in this segment.
    pub fn enter(&mut self, segment: SegmentNumber, stream: LogStream) {
        self.clock = self.clock.saturating_add(1);
        let entered = self.clock;
        let state = self.state(segment);
        (state.stream, state.entered) = (stream, entered);
    }

    /// The stream for a write over this block. Blocks that were written over soon will be again; one
    /// that was copied in between was not. Where fewer than a quarter of all writes are such, they gain
    /// less from a stream of their own than its headers cost.
    pub fn stream_over(&mut self, block: Physical) -> LogStream {
        let state = self.shape.segment_of(block).map(|segment| &self.states[segment.0 as usize]);
        let is_young = state.is_some_and(|state| {
            !state.stream.is_copies() && self.clock - state.entered < self.shape.young()
        });
        self.over_young -= self.over_young / RECENT;
        self.over_young += RECENT * u32::from(is_young);
        let is_usual = self.over_young > RECENT * RECENT / 4;
        if is_young && is_usual { LogStream::SHORT } else { LogStream::LONG }
    }

    /// Where copies of a stream's blocks go. Writes that prefer no block have copies of one kind, which a
    /// second stream would only cut into shorter requests: of those as large a share is over young blocks
    /// as young segments could hold of all blocks, and less once some of these were copied.
    pub fn stream_of_copies(&self, of: LogStream) -> LogStream {
        let VolumeShape { logical, segment, .. } = self.shape;
        let share = f64::from(self.over_young) / f64::from(RECENT * RECENT);
        let even = f64::from(self.shape.young() * segment) / f64::from(logical);
        if share > 1.1 * even { of.of_copies() } else { LogStream::COPIES }
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

    /// When the log entered a segment.
    pub fn entered(&self, segment: SegmentNumber) -> u32 {
        self.states[segment.0 as usize].entered
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

    /// The segments that are worth most, by their streams: at most `count`, none with more than
    /// `live_max` live blocks, none that the log since the checkpoint is in.
    ///
    /// Worth is free blocks, times age, by live blocks (Rosenblum and Ousterhout 1992): what is young
    /// becomes emptier by itself. Where all are equally likely to be written over, it chooses as the
    /// fewest live blocks do.
    pub fn victims(&self, count: usize, live_max: u32, checkpoint: u64) -> Vec<SegmentNumber> {
        let cost = |state: &SegmentState| {
            let free = u64::from(self.shape.segment.saturating_sub(state.live).max(1));
            (u64::from(state.live) << 40) / (free * u64::from(self.clock - state.entered + 1))
        };
        let mut found: Vec<(u64, SegmentNumber)> = (0..)
            .zip(&self.states)
            .filter(|(_, state)| {
                let is_covered = state.last <= checkpoint;
                state.used == SegmentUse::Full && is_covered && state.live <= live_max
            })
            .map(|(number, state)| (cost(state), SegmentNumber(number)))
            .collect();
        if count < found.len() {
            found.select_nth_unstable(count);
            found.truncate(count);
        }
        // One stream after the other: fewer groups have parts in two.
        found.sort_unstable_by_key(|&(_, segment)| self.states[segment.0 as usize].stream);
        found.into_iter().map(|(_, segment)| segment).collect()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.states.capacity() * size_of::<SegmentState>()
            + (self.clean.capacity() + self.dead.capacity()) * size_of::<SegmentNumber>()
    }
}
