//! Self-describing data: every 512 bytes written say whose they are, and reads check it.
//!
//! Found are: bytes that changed (checksum), sectors that lie in the wrong place (their own
//! offset), sectors of another run, sectors nobody wrote, and sectors that are older than what
//! was acknowledged before the read began (a lost write). The last needs memory: one number per
//! unit of the smallest block size, shared by all workers.
//!
//! **No report is a false alarm.** What a unit must hold is known only after a write of it that
//! completed with no other write or discard of that unit in flight during its life. Of two that
//! overlapped either may have won, or half of each; a failed or short write may have left
//! anything; a discarded unit may read as zeros, as before, or as anything: such a unit is not
//! judged until it is written again by one alone. And a read during which the unit was being
//! written may bring half of each (back ends copy from and to the page cache without a lock): it
//! is held against what it can still be, but not to its checksum.

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
pub const UNITS_MAX: u64 = 1 << 26;

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

/// What is known of one unit, in one word so that workers need no lock. From the low end:
/// sequence that reads must at least find (40 bits), how many writes and discards began, modulo
/// 1024 (10 bits), nothing is known (1 bit), those in flight overlapped (1 bit), how many are in
/// flight (12 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit(u64);

impl Unit {
    const SEQUENCE: u64 = (1 << 40) - 1;
    const BEGUN_ONE: u64 = 1 << 40;
    const BEGUN: u64 = 0x3ff << 40;
    const UNKNOWN: u64 = 1 << 50;
    const OVERLAP: u64 = 1 << 51;
    const ONE: u64 = 1 << 52;
    /// More in flight than can be counted: never judged again.
    const GIVEN_UP: Self = Self(u64::MAX);

    const fn in_flight(self) -> u64 {
        self.0 / Self::ONE
    }

    /// Whether anything can be said of what it holds.
    const fn known(self) -> bool {
        self.0 & Self::UNKNOWN == 0
    }

    const fn sequence(self) -> u64 {
        self.0 & Self::SEQUENCE
    }

    /// Whether it was being changed at any time between `self` and `later`.
    const fn changing_until(self, later: Self) -> bool {
        self.in_flight() > 0 || (self.0 ^ later.0) & Self::BEGUN != 0
    }

    const fn forget(self) -> Self {
        Self(self.0 & !Self::SEQUENCE | Self::UNKNOWN)
    }

    /// One more write or discard is in flight.
    const fn begin(self) -> Self {
        // The largest count is all ones, which means something else.
        if self.in_flight() >= Self::GIVEN_UP.in_flight() - 1 {
            return Self::GIVEN_UP;
        }
        let begun = (self.0 & Self::BEGUN).wrapping_add(Self::BEGUN_ONE) & Self::BEGUN;
        let overlap = if self.in_flight() > 0 { Self::OVERLAP } else { 0 };
        Self((self.0 & !Self::BEGUN | begun | overlap) + Self::ONE)
    }

    /// One of them is over; whether it was alone all its life.
    const fn end(self) -> (Self, bool) {
        if self.0 == Self::GIVEN_UP.0 || self.in_flight() == 0 {
            return (Self::GIVEN_UP, false);
        }
        let left = self.0 - Self::ONE;
        let alone = self.in_flight() == 1 && self.0 & Self::OVERLAP == 0;
        let last = self.in_flight() == 1;
        (Self(if last { left & !Self::OVERLAP } else { left }), alone)
    }

    const fn written(self, sequence: u64) -> Self {
        // A number too large to keep demands nothing.
        let kept = if sequence > Self::SEQUENCE { 0 } else { sequence };
        Self(self.0 & !(Self::SEQUENCE | Self::UNKNOWN) | kept)
    }
}

/// What a request in flight must remember.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floors {
    /// Reads: per unit, what was known when the read was issued.
    units: Vec<Unit>,
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

    /// The units that a request touches, and for each whether all of it.
    fn range(
        &self,
        file: FileIndex,
        offset: ByteOffset,
        length: u32,
    ) -> impl Iterator<Item = (&AtomicU64, bool)> {
        let (start, end) = (offset.get(), offset.get().saturating_add(u64::from(length)));
        let (first, last) = (start / self.unit, end.div_ceil(self.unit).min(self.units_per_file));
        let base = u64::from(file.0) * self.units_per_file;
        let unit = self.unit;
        let touched = self.units.get((base + first) as usize..(base + last.max(first)) as usize);
        (first..)
            .zip(touched.unwrap_or(&[]))
            .map(move |(index, state)| (state, index * unit >= start && (index + 1) * unit <= end))
    }

    /// A write is about to be issued: takes its sequence number. First the units are marked and
    /// then the number is taken, or a write of another thread could come and go in between with a
    /// larger number and make this one look old.
    pub(crate) fn write_begins(
        &self,
        floors: &mut Floors,
        file: FileIndex,
        offset: ByteOffset,
        length: u32,
    ) {
        for (unit, _) in self.range(file, offset, length) {
            change(unit, Unit::begin);
        }
        floors.sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
    }

    /// Makes `buffer` what is written at that place by the write that `floors` is of.
    pub(crate) fn stamp(
        &self,
        floors: &Floors,
        buffer: &mut [u8],
        file: FileIndex,
        offset: ByteOffset,
    ) {
        let mut at = offset.get();
        for sector in buffer.chunks_exact_mut(SECTOR) {
            seal(sector, self.run, file.0, at, floors.sequence);
            at += SECTOR as u64;
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
        for (unit, covered) in self.range(file, offset, length) {
            change(unit, |now| match now.end() {
                (left, true) if whole && covered => left.written(floors.sequence),
                // The rest of the unit is as old as it was.
                (left, true) if whole => Unit(left.0 & !Unit::SEQUENCE),
                (left, _) => left.forget(),
            });
        }
    }

    /// A discard is about to be issued.
    pub(crate) fn trim_begins(&self, file: FileIndex, offset: ByteOffset, length: u32) {
        for (unit, _) in self.range(file, offset, length) {
            change(unit, |now| now.begin().forget());
        }
    }

    /// Discarded: nothing is demanded until it is written again.
    pub(crate) fn trim_ends(&self, file: FileIndex, offset: ByteOffset, length: u32) {
        for (unit, _) in self.range(file, offset, length) {
            change(unit, |now| now.end().0.forget());
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
        let touched = self.range(file, offset, length);
        floors.units.extend(touched.map(|(unit, _)| Unit(unit.load(Ordering::Acquire))));
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
        let now: Vec<Unit> = self
            .range(file, offset, length)
            .map(|(unit, _)| Unit(unit.load(Ordering::Acquire)))
            .collect();
        let before_first = offset.get() % self.unit;
        for (index, sector) in (0u64..).zip(buffer.chunks_exact(SECTOR)) {
            let within = index * SECTOR as u64;
            let at = ByteOffset::new(offset.get() + within);
            let unit = ((before_first + within) / self.unit) as usize;
            let then = floors.units.get(unit).copied().unwrap_or(Unit(0));
            let now = now.get(unit).copied().unwrap_or(then);
            let Some(what) = self.judge(sector, file, at, then, now) else { continue };
            if found.len() < 4 {
                found.push(Mismatch { file: file.0, offset: at, found: what });
            } else {
                dropped += 1;
            }
        }
        (found, dropped)
    }

    /// `then`: what was known of the unit when the read was issued; `now`: since it came back.
    fn judge(
        &self,
        sector: &[u8],
        file: FileIndex,
        at: ByteOffset,
        then: Unit,
        now: Unit,
    ) -> Option<Found> {
        if !(then.known() && now.known()) {
            return None;
        }
        let torn = then.changing_until(now);
        if &word(sector, 0) != MAGIC {
            return (!torn).then(|| Found::NotOurs(word(sector, 0)));
        }
        let number = |index| u64::from_le_bytes(word(sector, index));
        let (run, its_file, its_offset) = (number(1), number(2), number(3));
        let (sequence, stored) = (number(4), number(5));
        let computed = checksum(sector);
        if computed != stored {
            return (!torn).then_some(Found::Corrupt { computed, stored });
        }
        if its_file != u64::from(file.0) || its_offset != at.get() {
            let offset = ByteOffset::new(its_offset);
            return Some(Found::Misplaced { file: its_file as u32, offset, run });
        }
        let floor = then.sequence();
        if run != self.run {
            // Where this run has written itself, another's data is a lost write.
            let expected = !self.accept_other_runs || floor > 0;
            return expected.then_some(Found::OtherRun { run });
        }
        (sequence < floor).then_some(Found::Stale { sequence, acknowledged: floor })
    }
}

/// Replaces what is known of a unit by what follows from it.
fn change(unit: &AtomicU64, next: impl Fn(Unit) -> Unit) {
    let _ = unit.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
        let now = Unit(now);
        Some(if now == Unit::GIVEN_UP { now.0 } else { next(now).0 })
    });
}

/// Whether a sector begins as self-describing ones do, of whatever run.
pub fn describes_itself(sector: &[u8]) -> bool {
    sector.starts_with(MAGIC)
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
        v.write_begins(&mut floors, FILE, at(offset), length as u32);
        v.stamp(&floors, &mut buffer, FILE, at(offset));
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
        v.write_begins(&mut f1, FILE, at(0), 4096);
        v.stamp(&f1, &mut first, FILE, at(0));
        v.write_begins(&mut f2, FILE, at(0), 4096);
        v.stamp(&f2, &mut second, FILE, at(0));
        v.write_ends(&f2, FILE, at(0), 4096, true);
        v.write_ends(&f1, FILE, at(0), 4096, true);
        assert_eq!(read(&v, 0, &first), []);
        assert_eq!(read(&v, 0, &second), []);
        let third = write(&v, 0, 4096);
        assert_eq!(read(&v, 0, &third), []);
        assert_eq!(read(&v, 0, &second).len(), 4);
    }

    /// Begins a write and gives what ends it.
    fn begun(v: &Verifier, offset: u64, length: u32) -> Floors {
        let mut floors = v.floors(Bytes::kib(64));
        v.write_begins(&mut floors, FILE, at(offset), length);
        floors
    }

    #[test]
    fn a_read_under_a_write_may_be_torn_but_not_misplaced() {
        let v = verifier();
        let old = write(&v, 0, 4096);
        let elsewhere = write(&v, 4096, 4096);
        let mut reading = v.floors(Bytes::kib(64));
        v.read_begins(&mut reading, FILE, at(0), 4096);
        let writing = begun(&v, 0, 4096);
        let mut new = vec![0; 4096];
        v.stamp(&writing, &mut new, FILE, at(0));
        v.write_ends(&writing, FILE, at(0), 4096, true);
        let torn: Vec<u8> = old[..700].iter().chain(&new[700..]).copied().collect();
        assert_eq!(v.check(&reading, FILE, at(0), 4096, &torn), (vec![], 0));
        assert_eq!(v.check(&reading, FILE, at(0), 4096, &elsewhere).0.len(), 4);
        assert_eq!(read(&v, 0, &torn).len(), 2, "an old sector and a torn one");
    }

    #[test]
    fn what_was_discarded_or_half_written_is_not_judged_until_written_again() {
        let v = verifier();
        write(&v, 0, 8192);
        v.trim_begins(FILE, at(0), 4096);
        assert_eq!(read(&v, 0, &[0; 4096]), [], "the discard is under way");
        v.trim_ends(FILE, at(0), 4096);
        assert_eq!(read(&v, 0, &[0; 4096]), []);
        assert_eq!(read(&v, 4096, &[0; 4096]).len(), 4, "its neighbour is judged");
        let again = write(&v, 0, 4096);
        assert_eq!(read(&v, 0, &[0; 4096]).len(), 4);
        assert_eq!(read(&v, 0, &again), []);
        let failing = begun(&v, 0, 4096);
        v.write_ends(&failing, FILE, at(0), 4096, false);
        assert_eq!(read(&v, 0, &[7; 4096]), []);
    }

    #[test]
    fn a_write_of_half_a_unit_demands_nothing_of_the_other_half() {
        let v = verifier();
        let old = write(&v, 0, 8192);
        let half = write(&v, 2048, 4096);
        let both: Vec<u8> =
            [&old[..2048], &half[..], &old[6144..]].into_iter().flatten().copied().collect();
        assert_eq!(read(&v, 0, &both), []);
        assert_eq!(read(&v, 2048, &half), []);
    }

    #[test]
    fn more_writes_in_flight_than_can_be_counted_are_no_false_alarm() {
        let v = verifier();
        let flying: Vec<Floors> = (0..5000).map(|_| begun(&v, 0, 4096)).collect();
        for floors in &flying {
            v.write_ends(floors, FILE, at(0), 4096, true);
        }
        let last = write(&v, 0, 4096);
        assert_eq!(read(&v, 0, &last), []);
    }
}
