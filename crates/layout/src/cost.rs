//! What a write costs the members.
//!
//! Parity is the model of Linux's md driver, which LVM's raid volumes use, too. It works page by
//! page (4 KiB) across the members: a page of every member at the same place, the parity among
//! them, is one unit. Where all data pages of a unit are written whole, parity follows from them
//! and nothing is read: a *full stripe*. Otherwise either the old data and the old parity are read
//! (*read-modify-write*), or the data that is not written (*reconstruct*): whichever reads fewer
//! pages, and reconstruct where both read as many. (`handle_stripe_dirtying` in
//! drivers/md/raid5.c, `rmw_level` 1. For raid6 this holds where the processor has the vector
//! instructions for it, as all of x86 and 64-bit ARM have; else raid6 always reconstructs.)
//!
//! Assumed is that a write arrives whole and nothing of it is in memory. Requests that lie one
//! after the other on a member count as one.

use schemars::JsonSchema;
use serde::Serialize;
use units::{ByteOffset, Bytes};

use crate::array::{Array, Level};

/// What md keeps parity of at a time.
const PAGE: u64 = 4096;

/// What members do for one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cost {
    /// Requests to read, all members together.
    pub reads: u64,
    /// Requests to write.
    pub writes: u64,
    /// Bytes read.
    #[schemars(with = "u64")]
    pub read_bytes: Bytes,
    /// Bytes written, redundancy included.
    #[schemars(with = "u64")]
    pub written_bytes: Bytes,
    /// Which ways were gone.
    pub ways: Ways,
}

/// Which ways a write went; several where it covers stripes in part and whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ways {
    /// Without parity or copies: data is written, once.
    pub once: bool,
    /// Without parity: data and copies of it are written.
    pub copies: bool,
    /// All data of a stripe: parity follows from it.
    pub full_stripe: bool,
    /// Old data and old parity were read.
    pub read_modify_write: bool,
    /// The rest of the stripe was read.
    pub reconstruct: bool,
}

impl Ways {
    /// Those of both.
    pub const fn and(self, other: Self) -> Self {
        Self {
            once: self.once | other.once,
            copies: self.copies | other.copies,
            full_stripe: self.full_stripe | other.full_stripe,
            read_modify_write: self.read_modify_write | other.read_modify_write,
            reconstruct: self.reconstruct | other.reconstruct,
        }
    }

    /// In words: `full stripe`, `read-modify-write or reconstruct`.
    pub fn words(self) -> String {
        let ways = [
            (self.once, "written once"),
            (self.copies, "copies"),
            (self.full_stripe, "full stripe"),
            (self.reconstruct, "reconstruct"),
            (self.read_modify_write, "read-modify-write"),
        ];
        let gone: Vec<_> = ways.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
        gone.join(" + ")
    }
}

impl Cost {
    /// Both together.
    pub const fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads.saturating_add(other.reads),
            writes: self.writes.saturating_add(other.writes),
            read_bytes: sum(self.read_bytes, other.read_bytes),
            written_bytes: sum(self.written_bytes, other.written_bytes),
            ways: self.ways.and(other.ways),
        }
    }

    /// Requests of either kind.
    pub const fn requests(self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// Bytes that members move.
    pub const fn moved(self) -> Bytes {
        sum(self.read_bytes, self.written_bytes)
    }
}

const fn sum(a: Bytes, b: Bytes) -> Bytes {
    Bytes::new(a.get().saturating_add(b.get()))
}

impl Array {
    /// What one write costs the members, all of them being there and in step.
    ///
    /// * `offset`: on the array, from where its data begins.
    /// * Writes past 2^62 count up to there.
    pub fn write_cost(&self, offset: ByteOffset, size: Bytes) -> Cost {
        let start = offset.get().min(1 << 62);
        let end = start.saturating_add(size.get()).min(1 << 62);
        if start >= end {
            return Cost::default();
        }
        match (self.level().parity(), self.chunk()) {
            (0, _) | (_, None) => self.copies_cost(start, end),
            (_, Some(chunk)) => Parity::new(self, chunk).cost(start, end),
        }
    }

    /// Requests that one read costs the members, all of them being there.
    pub fn read_requests(&self, offset: ByteOffset, size: Bytes) -> u64 {
        let Some(chunk) = self.chunk() else { return u64::from(size.get() > 0) };
        let start = offset.get().min(1 << 62);
        let end = start.saturating_add(size.get()).min(1 << 62);
        let spread = match self.level() {
            Level::Raid10 | Level::Raid01 => self.data_chunks(),
            _ => self.members(),
        };
        chunks(start, end, chunk.get()).min(u64::from(spread))
    }

    fn copies_cost(&self, start: u64, end: u64) -> Cost {
        let members = u64::from(self.members());
        let copies = match self.level() {
            Level::Raid1 => members,
            Level::Raid10 | Level::Raid01 => 2,
            _ => 1,
        };
        // What a member gets of a longer write lies one after the other on it.
        let pieces = self.chunk().map_or(1, |chunk| chunks(start, end, chunk.get()));
        Cost {
            writes: pieces.saturating_mul(copies).min(members),
            written_bytes: Bytes::new((end - start).saturating_mul(copies)),
            ways: Ways { once: copies == 1, copies: copies > 1, ..Ways::default() },
            ..Cost::default()
        }
    }
}

/// Chunks touched by what lies from `start` to before `end`.
const fn chunks(start: u64, end: u64, chunk: u64) -> u64 {
    if start >= end { 0 } else { (end - 1) / chunk - start / chunk + 1 }
}

/// Bytes of a member, from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    member: u64,
    start: u64,
    end: u64,
}

/// Where an array with parity puts things, and what was touched so far.
struct Parity {
    members: u64,
    parity: u64,
    chunk: u64,
    reads: Vec<Run>,
    writes: Vec<Run>,
    ways: Ways,
}

impl Parity {
    fn new(array: &Array, chunk: Bytes) -> Self {
        Self {
            members: u64::from(array.members()),
            parity: u64::from(array.level().parity()),
            chunk: chunk.get(),
            reads: Vec::new(),
            writes: Vec::new(),
            ways: Ways::default(),
        }
    }

    const fn data(&self) -> u64 {
        self.members - self.parity
    }

    fn cost(mut self, start: u64, end: u64) -> Cost {
        let width = self.chunk * self.data();
        let (first, last) = (start / width, (end - 1) / width);
        if first == last {
            self.row(first, start - first * width, end - first * width);
        } else {
            self.row(first, start - first * width, width);
            self.whole_rows(first + 1, last);
            self.row(last, 0, end - last * width);
        }
        let (reads, read_bytes) = merged(self.reads);
        let (writes, written_bytes) = merged(self.writes);
        Cost { reads, writes, read_bytes, written_bytes, ways: self.ways }
    }

    /// Rows from `first` to before `last`, every one of them whole.
    fn whole_rows(&mut self, first: u64, last: u64) {
        if first >= last {
            return;
        }
        self.ways.full_stripe = true;
        let (start, end) = (first * self.chunk, last * self.chunk);
        self.writes.extend((0..self.members).map(|member| Run { member, start, end }));
    }

    /// One row of chunks, of which the data from `start` to before `end` is written.
    fn row(&mut self, row: u64, start: u64, end: u64) {
        let covered: Vec<(u64, u64)> = (0..self.data())
            .map(|column| {
                let from = column * self.chunk;
                let within = |at: u64| at.saturating_sub(from).min(self.chunk);
                (within(start), within(end))
            })
            .collect();
        // Between two of these every page across the members is like the next.
        let mut edges: Vec<u64> = covered
            .iter()
            .filter(|(low, high)| low < high)
            .flat_map(|(low, high)| {
                [low / PAGE, low.div_ceil(PAGE), high / PAGE, high.div_ceil(PAGE)]
            })
            .collect();
        edges.sort_unstable();
        edges.dedup();
        for edge in edges.windows(2) {
            self.pages(row, &covered, edge[0] * PAGE, edge[1] * PAGE);
        }
    }

    /// Pages of a row from `start` to before `end`, counted within a chunk.
    fn pages(&mut self, row: u64, covered: &[(u64, u64)], start: u64, end: u64) {
        let touched = |(low, high): &(u64, u64)| *low < end && *high > start && low < high;
        let whole = |(low, high): &(u64, u64)| *low <= start && end <= *high;
        let count = |is: &dyn Fn(&(u64, u64)) -> bool| covered.iter().filter(|c| is(c)).count();
        let written = count(&touched) as u64;
        if written == 0 {
            return;
        }
        let rest = self.data() - count(&whole) as u64;
        let modify = written + self.parity < rest;
        let base = row * self.chunk;
        let run = |member| Run { member, start: base + start, end: base + end };
        for (column, cover) in (0u64..).zip(covered) {
            let member = self.member_of(row, column);
            if if modify { touched(cover) } else { !whole(cover) } {
                self.reads.push(run(member));
            }
            if touched(cover) {
                self.writes.push(run(member));
            }
        }
        for number in 0..self.parity {
            let member = (self.parity_of(row) + number) % self.members;
            if modify {
                self.reads.push(run(member));
            }
            self.writes.push(run(member));
        }
        self.ways.read_modify_write |= modify;
        self.ways.reconstruct |= !modify && rest > 0;
        self.ways.full_stripe |= rest == 0;
    }

    /// Where the first parity of a row is: left-symmetric, as mdadm and LVM make it.
    const fn parity_of(&self, row: u64) -> u64 {
        self.members - 1 - row % self.members
    }

    const fn member_of(&self, row: u64, column: u64) -> u64 {
        (self.parity_of(row) + self.parity + column) % self.members
    }
}

/// How many requests these are where neighbours are one, and their bytes.
fn merged(mut runs: Vec<Run>) -> (u64, Bytes) {
    runs.sort_unstable();
    let mut requests = 0;
    let mut bytes: u64 = 0;
    let mut last: Option<Run> = None;
    for run in runs {
        bytes = bytes.saturating_add(run.end - run.start);
        let joins = last.is_some_and(|last| last.member == run.member && last.end == run.start);
        requests += u64::from(!joins);
        last = Some(run);
    }
    (requests, Bytes::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(level: Level, members: u32, chunk: Bytes) -> Array {
        Array::new(level, members, Some(chunk)).unwrap()
    }

    fn cost(array: &Array, offset: u64, size: u64) -> (u64, u64, u64, u64) {
        let cost = array.write_cost(ByteOffset::new(offset), Bytes::new(size));
        let kib = |bytes: Bytes| bytes.get() >> 10;
        (cost.reads, cost.writes, kib(cost.read_bytes), kib(cost.written_bytes))
    }

    #[test]
    fn one_page_is_modified_or_reconstructed() {
        // Old data and parity, or the other data: three members read 1, four read 2 either way,
        // five and more modify.
        for (members, reads) in [(3, 1), (4, 2), (5, 2), (8, 2)] {
            let five = array(Level::Raid5, members, Bytes::kib(64));
            assert_eq!(cost(&five, 0, 4096), (reads, 2, reads * 4, 8), "{members}");
        }
        for (members, reads) in [(4, 1), (5, 2), (6, 3), (8, 3)] {
            let six = array(Level::Raid6, members, Bytes::kib(64));
            assert_eq!(cost(&six, 0, 4096), (reads, 3, reads * 4, 12), "{members}");
        }
    }

    #[test]
    fn ways_are_told() {
        let ways = |members, size| {
            let five = array(Level::Raid5, members, Bytes::kib(64));
            five.write_cost(ByteOffset::ZERO, Bytes::kib(size)).ways.words()
        };
        assert_eq!(ways(3, 4), "reconstruct");
        assert_eq!(ways(5, 4), "read-modify-write");
        assert_eq!(ways(5, 256), "full stripe");
        assert_eq!(ways(5, 260), "full stripe + read-modify-write");
        let plain = |level, chunk| {
            let array = Array::new(level, 4, chunk).unwrap();
            array.write_cost(ByteOffset::ZERO, Bytes::kib(4)).ways.words()
        };
        let chunk = Some(Bytes::kib(64));
        assert_eq!((plain(Level::Raid0, chunk), plain(Level::Linear, None)), {
            let once = "written once".to_owned();
            (once.clone(), once)
        });
        assert_eq!(plain(Level::Raid10, chunk) + &plain(Level::Raid1, None), "copiescopies");
    }

    #[test]
    fn a_page_is_the_least() {
        // 512 bytes: the page is read, for either way, and written whole.
        let five = array(Level::Raid5, 4, Bytes::kib(64));
        assert_eq!(cost(&five, 512, 512), (2, 2, 8, 8));
        // Across two pages of one member.
        assert_eq!(cost(&five, 4096 - 256, 512), (2, 2, 16, 16));
        // Three members: reconstruct would read the page as well, so both read two.
        assert_eq!(cost(&array(Level::Raid5, 3, Bytes::kib(64)), 512, 512), (2, 2, 8, 8));
    }

    #[test]
    fn full_stripes_are_one_request_for_each_member() {
        let five = array(Level::Raid5, 5, Bytes::kib(128));
        assert_eq!(cost(&five, 0, 512 << 10), (0, 5, 0, 640));
        assert_eq!(cost(&five, 512 << 10, 8 << 20), (0, 5, 0, 10 << 10));
        let six = array(Level::Raid6, 6, Bytes::kib(128));
        assert_eq!(cost(&six, 512 << 10, 512 << 10), (0, 6, 0, 768));
    }

    #[test]
    fn half_a_stripe_too_late_reads_at_both_ends() {
        let five = array(Level::Raid5, 5, Bytes::kib(128));
        let shifted = five.write_cost(ByteOffset::new(64 << 10), Bytes::kib(512));
        assert!(shifted.reads > 0);
        assert!(shifted.written_bytes > Bytes::kib(640));
    }

    #[test]
    fn without_parity_nothing_is_read() {
        let zero = array(Level::Raid0, 4, Bytes::kib(64));
        assert_eq!(cost(&zero, 0, 4096), (0, 1, 0, 4));
        assert_eq!(cost(&zero, 60 << 10, 8192), (0, 2, 0, 8));
        assert_eq!(cost(&zero, 0, 1 << 20), (0, 4, 0, 1024));
        let ten = array(Level::Raid10, 8, Bytes::kib(64));
        assert_eq!(cost(&ten, 0, 8192), (0, 2, 0, 16));
        assert_eq!(cost(&ten, 0, 1 << 20), (0, 8, 0, 2048));
        let mirror = Array::new(Level::Raid1, 2, None).unwrap();
        assert_eq!(cost(&mirror, 0, 8192), (0, 2, 0, 16));
        assert_eq!(mirror.read_requests(ByteOffset::ZERO, Bytes::mib(1)), 1);
        assert_eq!(zero.read_requests(ByteOffset::ZERO, Bytes::kib(128)), 2);
    }

    #[test]
    fn the_ends_of_the_number_line_are_no_trouble() {
        let six = array(Level::Raid6, 384, Bytes::gib(1));
        six.write_cost(ByteOffset::new(u64::MAX), Bytes::new(u64::MAX));
        assert_eq!(six.write_cost(ByteOffset::ZERO, Bytes::ZERO), Cost::default());
        assert!(six.write_cost(ByteOffset::new(1), Bytes::new(u64::MAX)).reads > 0);
        assert_eq!(six.read_requests(ByteOffset::new(u64::MAX), Bytes::new(u64::MAX)), 0);
    }
}
