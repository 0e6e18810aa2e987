//! Self-describing data: every 512 bytes written say whose they are, and reads check it.
//!
//! Found are: bytes that changed (checksum), sectors that lie in the wrong place (their own
//! offset), sectors of another run, sectors nobody wrote, and sectors that are older than what
//! was acknowledged before the read began (a lost write). The last needs memory: one number per
//! unit of the smallest block size, shared by all workers.
//!
//! A unit's number only rises when a write of it completes with no other write of that unit in
//! flight during its life; of two overlapping writes either may be the last, so neither is
//! demanded. So a report of old data is never a false alarm, and overlapping writes are the only
//! ones whose loss goes unseen.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use device::FileIndex;
use stats::random::mix;
use units::{ByteOffset, Bytes};
use xxhash_rust::xxh3::xxh3_64;

/// Size of a self-describing sector.
pub const SECTOR: usize = 512;
const MAGIC: &[u8; 8] = b"PLIMSEC1";
const HEADER: usize = 48;
/// Units tracked at most (8 bytes each): beyond, old data goes unseen and is said to.
const UNITS_MAX: u64 = 1 << 26;

/// What all workers of a run share to write and check self-describing data.
#[derive(Debug)]
pub struct Verifier {
    run: u64,
    accept_other_runs: bool,
    unit: u64,
    units_per_file: u64,
    units: Box<[AtomicU64]>,
    sequence: AtomicU64,
}

// Layout of a unit's number: writes in flight (8 bits), whether two of them overlapped (1 bit),
// sequence that reads must at least find (55 bits).
const FLOOR_BITS: u32 = 55;
const FLOOR_MASK: u64 = (1 << FLOOR_BITS) - 1;
const OVERLAP: u64 = 1 << FLOOR_BITS;
const ONE_WRITE: u64 = 1 << (FLOOR_BITS + 1);

/// What a request in flight must remember.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floors {
    /// Reads: per unit, what was acknowledged when the read was issued.
    units: Vec<u64>,
    /// Writes: the sequence it was stamped with.
    sequence: u64,
}

/// A sector that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// In which file.
    pub file: u32,
    /// Where the sector lies.
    pub offset: ByteOffset,
    /// What was found.
    pub found: Found,
}

/// What was found in place of the right data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No header; the first 8 bytes.
    NotOurs([u8; 8]),
    /// Our header, but the checksum does not fit: `expected` computed, `stored` found.
    Corrupt {
        /// What the bytes sum up to.
        computed: u64,
        /// What the header says.
        stored: u64,
    },
    /// A whole sector that belongs elsewhere.
    Misplaced {
        /// The file it says it belongs to.
        file: u32,
        /// Where it says it belongs.
        offset: ByteOffset,
        /// The run it says wrote it.
        run: u64,
    },
    /// A whole sector of another run.
    OtherRun {
        /// Which, as its header says.
        run: u64,
    },
    /// A whole sector that a later, acknowledged write should have replaced.
    Stale {
        /// Its sequence number.
        sequence: u64,
        /// The least it should have.
        acknowledged: u64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}, {}: ", self.file, self.offset)?;
        match &self.found {
            Found::NotOurs(bytes) if *bytes == [0; 8] => {
                write!(f, "found zeros where this run's data was written")
            }
            Found::NotOurs(bytes) => {
                write!(f, "found bytes that are not of any run, beginning ")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Found::Corrupt { computed, stored } => write!(
                f,
                "found this run's data changed: checksum {computed:016x}, written with {stored:016x}"
            ),
            Found::Misplaced { file, offset, run } => {
                write!(f, "found data that was written to file {file}, {offset}, by run {run:016x}")
            }
            Found::OtherRun { run } => write!(f, "found data that run {run:016x} wrote"),
            Found::Stale { sequence, acknowledged } => write!(
                f,
                "found old data: write number {sequence}, but number {acknowledged} was \
                 acknowledged before the read began"
            ),
        }
    }
}

impl Verifier {
    /// * `run`: tells this run's data from others'.
    /// * `accept_other_runs`: the files were not filled by this run, so other runs' sectors are
    ///   in place.
    /// * `unit`: the smallest block size and alignment of anything written, a multiple of 512.
    pub fn new(
        run: u64,
        accept_other_runs: bool,
        unit: Bytes,
        files: u32,
        file_size: Bytes,
    ) -> Self {
        let unit = unit.get().max(SECTOR as u64);
        let units_per_file = file_size.get().div_ceil(unit);
        let total = units_per_file.saturating_mul(u64::from(files));
        let tracked = if total <= UNITS_MAX { total } else { 0 };
        Self {
            run,
            accept_other_runs,
            unit,
            units_per_file,
            units: (0..tracked).map(|_| AtomicU64::new(0)).collect(),
            sequence: AtomicU64::new(0),
        }
    }

    /// Whether lost writes can be seen; not on spaces of more than 2^26 units.
    pub fn tracks_lost_writes(&self) -> bool {
        !self.units.is_empty()
    }

    pub(crate) fn floors(&self, longest: Bytes) -> Floors {
        let units = longest.get().div_ceil(self.unit) as usize + 1;
        Floors { units: Vec::with_capacity(units), sequence: 0 }
    }

    fn range(&self, file: FileIndex, offset: ByteOffset, length: u32) -> &[AtomicU64] {
        let first = u64::from(file.0) * self.units_per_file + offset.get() / self.unit;
        let count = u64::from(length).div_ceil(self.unit);
        self.units.get(first as usize..(first + count) as usize).unwrap_or(&[])
    }

    /// Makes `buffer` what is written at that place. The sequence number is the one the next
    /// [`Self::write_begins`] of the same worker takes over.
    pub(crate) fn stamp(&self, buffer: &mut [u8], file: FileIndex, offset: ByteOffset) {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let mut at = offset.get();
        for sector in buffer.chunks_exact_mut(SECTOR) {
            seal(sector, self.run, file.0, at, sequence);
            at += SECTOR as u64;
        }
        LAST_STAMP.set(sequence);
    }

    pub(crate) fn write_begins(
        &self,
        floors: &mut Floors,
        file: FileIndex,
        offset: ByteOffset,
        length: u32,
    ) {
        floors.sequence = LAST_STAMP.get();
        for unit in self.range(file, offset, length) {
            let before = unit.fetch_add(ONE_WRITE, Ordering::AcqRel);
            if before >= ONE_WRITE {
                unit.fetch_or(OVERLAP, Ordering::AcqRel);
            }
        }
    }

    pub(crate) fn write_ends(
        &self,
        floors: &Floors,
        file: FileIndex,
        offset: ByteOffset,
        length: u32,
        whole: bool,
    ) {
        for unit in self.range(file, offset, length) {
            let _ = unit.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                let alone = now & !FLOOR_MASK == ONE_WRITE;
                let left = (now & !(OVERLAP | FLOOR_MASK)).saturating_sub(ONE_WRITE);
                let floor = if alone && whole { floors.sequence } else { now & FLOOR_MASK };
                // A failed write may have left anything: nothing is demanded after it.
                let floor = if whole { floor } else { 0 };
                let overlap = if left == 0 { 0 } else { now & OVERLAP };
                Some(left | overlap | floor)
            });
        }
    }

    /// Discarded: nothing is demanded until it is written again.
    pub(crate) fn forget(&self, file: FileIndex, offset: ByteOffset, length: u32) {
        for unit in self.range(file, offset, length) {
            unit.fetch_and(!FLOOR_MASK, Ordering::AcqRel);
        }
    }

    pub(crate) fn read_begins(
        &self,
        floors: &mut Floors,
        file: FileIndex,
        offset: ByteOffset,
        length: u32,
    ) {
        floors.units.clear();
        let acknowledged = self.range(file, offset, length).iter();
        floors.units.extend(acknowledged.map(|unit| unit.load(Ordering::Acquire) & FLOOR_MASK));
    }

    /// Checks what a read brought: the first few mismatches, and how many more there were.
    pub(crate) fn check(
        &self,
        floors: &Floors,
        file: FileIndex,
        offset: ByteOffset,
        length: u32,
        buffer: &[u8],
    ) -> (Vec<Mismatch>, u64) {
        let mut found = Vec::new();
        let mut dropped = 0;
        let Some(buffer) = buffer.get(..length as usize) else { return (found, 0) };
        for (index, sector) in (0u64..).zip(buffer.chunks_exact(SECTOR)) {
            let within = index * SECTOR as u64;
            let at = ByteOffset::new(offset.get() + within);
            let floor = floors.units.get((within / self.unit) as usize).copied().unwrap_or(0);
            let Some(what) = self.judge(sector, file, at, floor) else { continue };
            if found.len() < 4 {
                found.push(Mismatch { file: file.0, offset: at, found: what });
            } else {
                dropped += 1;
            }
        }
        (found, dropped)
    }

    fn judge(&self, sector: &[u8], file: FileIndex, at: ByteOffset, floor: u64) -> Option<Found> {
        if &word(sector, 0) != MAGIC {
            return Some(Found::NotOurs(word(sector, 0)));
        }
        let number = |index| u64::from_le_bytes(word(sector, index));
        let (run, its_file, its_offset) = (number(1), number(2), number(3));
        let (sequence, stored) = (number(4), number(5));
        let computed = checksum(sector);
        if computed != stored {
            return Some(Found::Corrupt { computed, stored });
        }
        if its_file != u64::from(file.0) || its_offset != at.get() {
            let offset = ByteOffset::new(its_offset);
            return Some(Found::Misplaced { file: its_file as u32, offset, run });
        }
        if run != self.run {
            // Where this run has written itself, another's data is a lost write.
            let expected = !self.accept_other_runs || floor > 0;
            return expected.then_some(Found::OtherRun { run });
        }
        (sequence < floor).then_some(Found::Stale { sequence, acknowledged: floor })
    }
}

thread_local! {
    /// Stamping and noting the write are two calls of one thread, one right after the other.
    static LAST_STAMP: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn word(sector: &[u8], index: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    if let Some(found) = sector.get(index * 8..index * 8 + 8) {
        bytes.copy_from_slice(found);
    }
    bytes
}

fn checksum(sector: &[u8]) -> u64 {
    // All but the checksum itself: the words before it seed the sum over the payload.
    let (header, payload) = sector.split_at(HEADER);
    mix(xxh3_64(&header[..HEADER - 8])) ^ xxh3_64(payload)
}

/// Writes one sector: magic, run, file, offset, sequence, checksum (8 bytes each, little
/// endian), then bytes that no compression shortens.
fn seal(sector: &mut [u8], run: u64, file: u32, offset: u64, sequence: u64) {
    let header = [u64::from_le_bytes(*MAGIC), run, u64::from(file), offset, sequence];
    let noise = (0u64..).map(|index| mix(sequence ^ mix(offset ^ index)));
    let words = header.into_iter().chain(std::iter::once(0)).chain(noise);
    for (place, value) in sector.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    let sum = checksum(sector);
    sector[HEADER - 8..HEADER].copy_from_slice(&sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileIndex = FileIndex(0);

    fn at(offset: u64) -> ByteOffset {
        ByteOffset::new(offset)
    }

    fn verifier() -> Verifier {
        Verifier::new(7, false, Bytes::kib(4), 2, Bytes::kib(64))
    }

    fn write(v: &Verifier, offset: u64, length: usize) -> Vec<u8> {
        let mut buffer = vec![0; length];
        let mut floors = v.floors(Bytes::kib(64));
        v.stamp(&mut buffer, FILE, at(offset));
        v.write_begins(&mut floors, FILE, at(offset), length as u32);
        v.write_ends(&floors, FILE, at(offset), length as u32, true);
        buffer
    }

    fn read(v: &Verifier, offset: u64, data: &[u8]) -> Vec<Mismatch> {
        let mut floors = v.floors(Bytes::kib(64));
        v.read_begins(&mut floors, FILE, at(offset), data.len() as u32);
        v.check(&floors, FILE, at(offset), data.len() as u32, data).0
    }

    #[test]
    fn what_was_written_is_accepted_in_any_size() {
        let v = verifier();
        let data = write(&v, 8192, 8192);
        assert_eq!(read(&v, 8192, &data), []);
        assert_eq!(read(&v, 8192 + 512, &data[512..1024]), []);
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let v = verifier();
        let data = write(&v, 0, 512);
        for bit in 0..512 * 8 {
            let mut bad = data.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&v, 0, &bad).len(), 1, "bit {bit}");
        }
    }

    #[test]
    fn misplaced_foreign_missing_and_old_data_are_told_apart() {
        let v = verifier();
        let old = write(&v, 0, 4096);
        let elsewhere = write(&v, 4096, 4096);
        let new = write(&v, 0, 4096);
        assert_eq!(read(&v, 0, &new), []);
        let first = |data: &[u8]| read(&v, 0, data).first().map(|m| m.found.clone());
        assert_eq!(first(&old), Some(Found::Stale { sequence: 1, acknowledged: 3 }));
        assert_eq!(first(&elsewhere), Some(Found::Misplaced { file: 0, offset: at(4096), run: 7 }));
        assert_eq!(first(&vec![0; 4096]), Some(Found::NotOurs([0; 8])));
        let other = Verifier::new(8, false, Bytes::kib(4), 2, Bytes::kib(64));
        assert_eq!(first(&write(&other, 0, 4096)), Some(Found::OtherRun { run: 8 }));
    }

    #[test]
    fn either_of_two_overlapping_writes_may_win() {
        let v = verifier();
        let (mut first, mut second) = (vec![0; 4096], vec![0; 4096]);
        let (mut f1, mut f2) = (v.floors(Bytes::kib(4)), v.floors(Bytes::kib(4)));
        v.stamp(&mut first, FILE, at(0));
        v.write_begins(&mut f1, FILE, at(0), 4096);
        v.stamp(&mut second, FILE, at(0));
        v.write_begins(&mut f2, FILE, at(0), 4096);
        v.write_ends(&f2, FILE, at(0), 4096, true);
        v.write_ends(&f1, FILE, at(0), 4096, true);
        assert_eq!(read(&v, 0, &first), []);
        assert_eq!(read(&v, 0, &second), []);
        let third = write(&v, 0, 4096);
        assert_eq!(read(&v, 0, &third), []);
        assert_eq!(read(&v, 0, &second).len(), 4);
    }
}
