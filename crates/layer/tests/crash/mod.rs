//! The crash proof. It is compiled into the crate's own tests, since it plants bugs there.
//!
//! A *life* is a run of operations on a device that journals its changes. Any place in the journal
//! is a crash point: what was flushed before it is on the device, of the rest a random part. The
//! volume is opened from that and compared with the *history*: the state of all blocks after each
//! change. It must be a state that is no older than the last flush.

mod damage;
mod exhaustive;
mod lives;
mod planted_bugs;

use std::collections::HashMap;

use units::{ByteOffset, Bytes};

use crate::shape::{Logical, Physical, SegmentNumber, Within};
use crate::{BlockMemory, CreateOptions, LogVolume, VolumeId};

pub const BLOCK: usize = 4096;

/// What is done to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many blocks from this one on.
    Write(u32, u32),
    Trim(u32, u32),
    Flush,
    /// A flush that the log itself knows of.
    Settle,
    Collect,
    Checkpoint,
    /// Begins a checkpoint, which goes on with the next groups.
    Begin,
    /// Close and open.
    Reopen,
}

/// What number of write each block shows, after each change. 0 is zeroes.
#[derive(Clone, Debug)]
pub struct WriteHistory {
    states: Vec<Vec<u32>>,
    written: u32,
}

impl WriteHistory {
    pub fn new(blocks: u32) -> Self {
        Self { states: vec![vec![0; blocks as usize]], written: 0 }
    }

    pub fn len(&self) -> usize {
        self.states.len() - 1
    }

    fn change(&mut self, blocks: std::ops::Range<u32>, id: u32) {
        let mut state = self.states[self.len()].clone();
        state[blocks.start as usize..blocks.end as usize].fill(id);
        self.states.push(state);
    }

    /// Records a write of one block; returns its number, which is never given twice.
    fn write(&mut self, block: u32) -> u32 {
        self.written += 1;
        self.change(block..block + 1, self.written);
        self.written
    }

    /// What a crash has lost never was.
    pub fn cut(&mut self, len: usize) {
        self.states.truncate(len + 1);
    }
}

/// The contents that write `id` gives a block.
fn contents(id: u32) -> Vec<u8> {
    let words = (0..BLOCK as u64 / 8).map(|n| word(id, n));
    words.flat_map(u64::to_le_bytes).collect()
}

fn word(id: u32, n: u64) -> u64 {
    match (id, n) {
        (0, _) => 0,
        (_, 0) => u64::from(id),
        _ => (u64::from(id) << 32 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

/// Which write a block shows; `None` if it is a mixture.
fn id_of(block: &[u8]) -> Option<u32> {
    let words = block.as_chunks::<8>().0;
    let id = u64::from_le_bytes(words[0]) as u32;
    let mut each = (0..).zip(words);
    each.all(|(n, &bytes)| u64::from_le_bytes(bytes) == word(id, n)).then_some(id)
}

/// A kind of volume.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub segment: u32,
    pub segments: u32,
    pub logical: u32,
}

impl Size {
    pub fn options(self) -> CreateOptions {
        CreateOptions {
            logical: bytes(self.logical),
            segment: bytes(self.segment),
            id: VolumeId(0x5eed),
        }
    }

    /// An empty volume.
    pub fn create(self) -> BlockMemory {
        let blocks = (self.segments + 1) * self.segment;
        let mut device = BlockMemory::new(bytes(blocks));
        LogVolume::create(&mut device, &self.options()).unwrap();
        device
    }
}

pub fn bytes(blocks: u32) -> Bytes {
    Bytes::new(u64::from(blocks) * BLOCK as u64)
}

pub fn at(block: u32) -> ByteOffset {
    ByteOffset::new(u64::from(block) * BLOCK as u64)
}

/// A run of a volume: what had been issued and what was safe, by place in the device's journal.
#[derive(Debug)]
pub struct Life {
    /// Ends where it crashes.
    pub device: BlockMemory,
    pub history: WriteHistory,
    /// Place in the journal when a step began, changes of the history once it was done.
    issued: Vec<(usize, usize)>,
    /// Place in the journal when a flush had returned, changes that it made safe.
    safe: Vec<(usize, usize)>,
}

impl Life {
    /// Opens the volume on `device`, which shows the last state of the history, and takes the steps.
    /// Of the history, `safe` changes are durable before.
    pub fn run(
        device: BlockMemory,
        history: WriteHistory,
        safe: usize,
        steps: &[Step],
    ) -> Result<Self, String> {
        let start = device.changes();
        let issued = vec![(start, history.len())];
        let mut life = Self { device, history, issued, safe: vec![(start, safe)] };
        let mut volume = open(&mut life.device)?;
        life.safe.push((volume.device().changes(), life.history.len()));
        for &step in steps {
            let begun = volume.device().changes();
            let fault = |error| format!("{step:?}: {error}");
            match step {
                Step::Write(first, blocks) => {
                    let ids = (first..first + blocks).map(|block| life.history.write(block));
                    let data: Vec<u8> = ids.flat_map(contents).collect();
                    volume.write(at(first), &data).map_err(fault)?;
                }
                Step::Trim(first, blocks) => {
                    life.history.change(first..first + blocks, 0);
                    volume.trim(at(first), bytes(blocks)).map_err(fault)?;
                }
                Step::Flush => volume.flush().map_err(fault)?,
                Step::Settle => volume.settle().map_err(fault)?,
                Step::Collect => drop(volume.collect().map_err(fault)?),
                Step::Checkpoint => volume.checkpoint().map_err(fault)?,
                Step::Begin => {
                    volume.write_group().map_err(fault)?;
                    volume.begin_checkpoint();
                }
                Step::Reopen => {
                    let device = volume.close().map_err(fault)?;
                    volume = open(device)?;
                }
            }
            life.issued.push((begun, life.history.len()));
            if matches!(step, Step::Flush | Step::Settle | Step::Checkpoint | Step::Reopen) {
                life.safe.push((volume.device().changes(), life.history.len()));
            }
        }
        compare(&mut volume, &life.history, life.history.len()..=life.history.len())?;
        Ok(life)
    }

    /// A life that begins with an empty volume.
    pub fn first(size: Size, steps: &[Step]) -> Result<Self, String> {
        Self::run(size.create().journaled(), WriteHistory::new(size.logical), 0, steps)
    }

    /// Where its journal begins.
    pub fn start(&self) -> usize {
        self.issued[0].0
    }

    /// The states that are right after a crash at this place.
    pub fn allowed(&self, at: usize) -> std::ops::RangeInclusive<usize> {
        let last = |marks: &[(usize, usize)]| {
            marks.iter().rev().find(|&&(place, _)| place <= at).map_or(0, |&(_, len)| len)
        };
        last(&self.safe)..=last(&self.issued)
    }

    /// Opens what a crash left. Returns which state it shows.
    pub fn check(&self, crashed: &mut BlockMemory, at: usize) -> Result<usize, String> {
        recover(crashed, &self.history, self.allowed(at))
    }
}

pub fn open(device: &mut BlockMemory) -> Result<LogVolume<&mut BlockMemory>, String> {
    LogVolume::open(device).map_err(|error| format!("open: {error}"))
}

/// Opens a volume, audits it, and finds the state that it shows.
pub fn recover(
    device: &mut BlockMemory,
    history: &WriteHistory,
    allowed: std::ops::RangeInclusive<usize>,
) -> Result<usize, String> {
    let mut volume = open(device)?;
    compare(&mut volume, history, allowed)
}

/// Blocks that the collector would not find: no header on the device names them.
fn unnamed(volume: &mut LogVolume<&mut BlockMemory>) -> Vec<String> {
    let mut named = HashMap::new();
    let shape = volume.shape;
    for segment in (0..shape.segments).map(SegmentNumber) {
        let mut within = Within(0);
        while let Some((header, stream)) = volume.header_at(segment, within) {
            let first = shape.block(segment, within).0 + 1;
            named.extend((first..).zip(header.writes(stream)).map(|(block, (at, _))| (block, at)));
            within.0 += 1 + header.data(stream);
            if within.0 == shape.segment {
                break;
            }
        }
    }
    let places = (0..).map(Logical).zip(volume.map.iter());
    let lost = places.filter(|&(at, place)| {
        let is_written = place.block != Physical::NONE && volume.buffered(place.block).is_none();
        is_written && named.get(&place.block.0) != Some(&at)
    });
    lost.map(|(at, place)| format!("no header names {at:?} at {:?}", place.block)).collect()
}

fn compare(
    volume: &mut LogVolume<&mut BlockMemory>,
    history: &WriteHistory,
    allowed: std::ops::RangeInclusive<usize>,
) -> Result<usize, String> {
    let mut faults = volume.audit();
    faults.extend(unnamed(volume));
    if !faults.is_empty() {
        return Err(format!("audit: {}", faults.join("; ")));
    }
    let mut data = vec![0; volume.size().get() as usize];
    volume.read(ByteOffset::ZERO, &mut data).map_err(|error| format!("read: {error}"))?;
    let ids: Option<Vec<u32>> = data.chunks(BLOCK).map(id_of).collect();
    let ids = ids.ok_or("a block is a mixture")?;
    let shown = history.states.iter().rposition(|state| *state == ids);
    let found = allowed.clone().rev().find(|&len| history.states[len] == ids);
    found.ok_or_else(|| format!("shows state {shown:?}, allowed are {allowed:?}: {ids:?}"))
}
