//! A device in memory that crashes and fails on demand.

use stats::random::Random;
use units::{ByteOffset, Bytes};

use crate::device::{BlockAction, BlockDevice, BlockError};

/// What a device writes whole at best: a crash may separate any two of these.
const SECTOR: usize = 512;

/// A change of the device, in the order in which it was asked for.
#[derive(Clone, Debug)]
enum DeviceChange {
    Write(usize, Vec<u8>),
    /// A trim. It reads as zeroes once it is done.
    Zero(usize, usize),
    Flush,
}

/// Which changes since the last flush survive a crash.
#[derive(Clone, Copy, Debug)]
pub enum CrashLoss {
    /// Each is lost, whole, or torn at random 512-byte edges; a random order. From this seed.
    Random(u64),
    /// Those whose bit is set, whole and in order: bit 0 is the first since the flush.
    Subset(u64),
}

/// A device in memory.
///
/// The crash model: what was written before the last flush is durable; of the rest a random part
/// survives, in any order, torn at any 512-byte edge. Reads see all that was written.
#[derive(Clone, Debug)]
pub struct BlockMemory {
    view: Vec<u8>,
    /// With all changes before `settled`, which is the place of a flush in the journal.
    durable: Vec<u8>,
    settled: usize,
    journal: Option<Vec<DeviceChange>>,
    failures: Vec<(BlockAction, u64)>,
}

impl BlockMemory {
    /// All zeroes. It keeps no journal.
    pub fn new(size: Bytes) -> Self {
        Self::with(vec![0; size.get() as usize])
    }

    fn with(view: Vec<u8>) -> Self {
        Self { view, durable: Vec::new(), settled: 0, journal: None, failures: Vec::new() }
    }

    /// Keeps a journal of changes from now on; what is there now is durable. Any crash since can
    /// then be had from [`Self::crash`].
    #[must_use]
    pub fn journaled(mut self) -> Self {
        self.durable = self.view.clone();
        self.journal = Some(Vec::new());
        self.settled = 0;
        self
    }

    /// Changes in the journal: writes, trims and flushes.
    pub fn changes(&self) -> usize {
        self.journal.as_ref().map_or(0, Vec::len)
    }

    /// Of the first `at` changes, how many came after the last flush.
    pub fn unflushed(&self, at: usize) -> usize {
        let journal = self.journal.as_deref().unwrap_or_default();
        journal
            .iter()
            .take(at)
            .rev()
            .take_while(|change| !matches!(change, DeviceChange::Flush))
            .count()
    }

    /// The device after a crash that followed the first `at` changes. It keeps no journal.
    ///
    /// The places asked for must not go backwards over a flush: what is durable is kept rolling.
    pub fn crash(&mut self, at: usize, loss: CrashLoss) -> Self {
        let journal = self.journal.as_deref().unwrap_or_default();
        let start = at.min(journal.len()) - self.unflushed(at);
        for change in journal.iter().take(start).skip(self.settled) {
            apply(&mut self.durable, change, &mut |_| true);
        }
        self.settled = self.settled.max(start);
        let mut pending: Vec<(usize, &DeviceChange)> =
            journal.iter().take(at).skip(start).enumerate().collect();
        let mut media = self.durable.clone();
        match loss {
            CrashLoss::Subset(kept) => {
                for (place, change) in pending {
                    apply(&mut media, change, &mut |_| kept >> place & 1 == 1);
                }
            }
            CrashLoss::Random(seed) => {
                let mut random = Random::new(seed);
                random.shuffle(&mut pending);
                for (_, change) in pending {
                    let fate = random.below(4);
                    // Torn: the front, the back or a random half of the sectors.
                    let (edge, from_front) = (random.unit(), random.below(2) == 0);
                    apply(&mut media, change, &mut |share| match fate {
                        0 => false,
                        1 => true,
                        2 => (share < edge) == from_front,
                        _ => random.below(2) == 0,
                    });
                }
            }
        }
        Self::with(media)
    }

    /// Lets one action fail: the first of its kind after `after` more.
    pub fn fail(&mut self, action: BlockAction, after: u64) {
        self.failures.push((action, after));
    }

    /// Turns one bit over: bit `bit % 8` of the byte at `at`.
    pub fn flip(&mut self, at: ByteOffset, bit: u32) {
        if let Some(byte) = self.view.get_mut(at.get() as usize) {
            *byte ^= 1 << (bit % 8);
        }
    }

    /// Where a request lies, unless it is to fail or lies outside.
    fn admit(
        &mut self,
        action: BlockAction,
        at: ByteOffset,
        length: Bytes,
    ) -> Result<std::ops::Range<usize>, BlockError> {
        let refuse = |reason: &str| BlockError { action, at, reason: reason.to_owned() };
        let mut fails = false;
        self.failures.retain_mut(|(kind, left)| {
            let due = *kind == action && *left == 0;
            if *kind == action && !due {
                *left -= 1;
            }
            fails |= due;
            !due
        });
        if fails {
            return Err(refuse("injected"));
        }
        let end = at.get().checked_add(length.get()).filter(|&end| end <= self.size().get());
        end.map(|end| at.get() as usize..end as usize).ok_or_else(|| refuse("beyond the end"))
    }

    fn record(&mut self, change: impl FnOnce() -> DeviceChange) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }
}

/// Brings those sectors of a change onto the media that `survives` lets through. It is asked with
/// the sector's place within the change, from 0 to 1.
fn apply(media: &mut [u8], change: &DeviceChange, survives: &mut dyn FnMut(f64) -> bool) {
    let (at, length) = match change {
        DeviceChange::Write(at, bytes) => (*at, bytes.len()),
        DeviceChange::Zero(at, length) => (*at, *length),
        DeviceChange::Flush => return,
    };
    for start in (0..length).step_by(SECTOR) {
        if !survives(start as f64 / length as f64) {
            continue;
        }
        let end = (start + SECTOR).min(length);
        let sector = &mut media[at + start..at + end];
        match change {
            DeviceChange::Write(_, bytes) => sector.copy_from_slice(&bytes[start..end]),
            _ => sector.fill(0),
        }
    }
}

impl BlockDevice for BlockMemory {
    fn size(&self) -> Bytes {
        Bytes::new(self.view.len() as u64)
    }

    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.admit(BlockAction::Read, at, Bytes::new(into.len() as u64))?;
        into.copy_from_slice(&self.view[range]);
        Ok(())
    }

    /// An injected failure writes nothing.
    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError> {
        let range = self.admit(BlockAction::Write, at, Bytes::new(from.len() as u64))?;
        self.record(|| DeviceChange::Write(range.start, from.to_vec()));
        self.view[range].copy_from_slice(from);
        Ok(())
    }

    /// After an injected failure the pending writes stay pending, and the next flush succeeds: as
    /// treacherous as real ones.
    fn flush(&mut self) -> Result<(), BlockError> {
        self.admit(BlockAction::Flush, ByteOffset::ZERO, Bytes::ZERO)?;
        self.record(|| DeviceChange::Flush);
        Ok(())
    }

    fn trim(&mut self, at: ByteOffset, length: Bytes) -> Result<(), BlockError> {
        let range = self.admit(BlockAction::Trim, at, length)?;
        self.record(|| DeviceChange::Zero(range.start, range.len()));
        self.view[range].fill(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> ByteOffset {
        ByteOffset::new(n)
    }

    /// Three blocks: the first flushed, the others not.
    fn written() -> BlockMemory {
        let mut device = BlockMemory::new(Bytes::kib(16)).journaled();
        device.write(at(0), &[1; 4096]).unwrap();
        device.flush().unwrap();
        device.write(at(4096), &[2; 4096]).unwrap();
        device.write(at(8192), &[3; 4096]).unwrap();
        device
    }

    #[test]
    fn a_crash_keeps_what_was_flushed_and_any_part_of_the_rest() {
        let mut whole = [0, 0];
        let mut torn = 0;
        for seed in 0..200 {
            let after = written().crash(4, CrashLoss::Random(seed));
            assert_eq!(after.view[..4096], [1; 4096]);
            for (block, count) in [(1, 0), (2, 1)] {
                let bytes = &after.view[block * 4096..][..4096];
                for sector in bytes.chunks(512) {
                    let byte = sector[0];
                    assert!(byte == 0 || byte == block as u8 + 1);
                    assert!(sector.iter().all(|&other| other == byte));
                }
                whole[count] += usize::from(bytes.iter().all(|&byte| byte != 0));
                torn += usize::from(bytes[0] != bytes[4095]);
            }
        }
        assert!(whole.iter().all(|&n| (40..160).contains(&n)) && torn > 40, "{whole:?} {torn}");
    }

    #[test]
    fn a_crash_before_the_flush_may_lose_all() {
        let mut device = written();
        assert_eq!(device.crash(1, CrashLoss::Subset(0)).view, vec![0; 16384]);
        let after = device.crash(4, CrashLoss::Subset(0b10));
        assert_eq!((after.view[0], after.view[4096], after.view[8192]), (1, 0, 3));
        assert_eq!((device.unflushed(1), device.unflushed(2), device.unflushed(4)), (1, 0, 2));
    }

    #[test]
    fn failures_come_once_and_where_they_were_asked_for() {
        let mut device = BlockMemory::new(Bytes::kib(8));
        device.fail(BlockAction::Flush, 1);
        device.flush().unwrap();
        assert_eq!(device.flush().unwrap_err().action, BlockAction::Flush);
        device.flush().unwrap();
        assert!(device.write(at(8192), &[0]).is_err());
        assert!(device.read(at(u64::MAX), &mut [0]).is_err());
    }
}
