//! Which members do what for one request of a leg: the rules of `layout`, without any allocation.

use layout::{Array, Level};

/// What parity is kept of at a time: see `layout`'s `write_cost`.
const PAGE: u64 = 4096;

/// What one member does: its bytes count as one request, from the first on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberWork {
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl MemberWork {
    fn add(&mut self, start: u64, bytes: u64) {
        self.start = if self.bytes == 0 { start } else { self.start.min(start) };
        self.bytes += bytes;
    }

    /// Both, what they have in common once.
    fn cover(&mut self, other: Self) {
        let own = if self.bytes == 0 { other } else { *self };
        let end = (own.start + own.bytes).max(other.start + other.bytes);
        self.start = own.start.min(other.start);
        self.bytes = end - self.start;
    }
}

/// Where a leg has its data, and room for the answer.
#[derive(Debug)]
pub(super) struct Placement {
    level: Level,
    members: u64,
    /// Bytes; those of a member where there are no chunks.
    chunk: u64,
    data: u64,
    parity: u64,
    /// Members that have the same, of one chunk: one without copies.
    holders: Vec<usize>,
    /// By member; what has no bytes is nothing.
    pub(super) reads: Vec<MemberWork>,
    pub(super) writes: Vec<MemberWork>,
}

impl Placement {
    /// * `size`: bytes of a member.
    pub(super) fn new(array: &Array, size: u64) -> Self {
        let members = array.members() as usize;
        let copies = match array.level() {
            Level::Raid1 => members,
            Level::Raid10 | Level::Raid01 => 2,
            _ => 1,
        };
        Self {
            level: array.level(),
            members: members as u64,
            chunk: array.chunk().map_or(size, |chunk| chunk.get()).max(1),
            data: u64::from(array.data_chunks()),
            parity: u64::from(array.level().parity()),
            holders: vec![0; copies],
            reads: vec![MemberWork::default(); members],
            writes: vec![MemberWork::default(); members],
        }
    }

    /// Member of a copy of a chunk of data, and where it begins there.
    fn locate(&self, chunk: u64, copy: u64) -> (u64, u64) {
        let (member, row) = match self.level {
            Level::Linear => (chunk.min(self.members - 1), 0),
            Level::Raid1 => (copy, chunk),
            Level::Raid0 => (chunk % self.members, chunk / self.members),
            // Copies side by side, also over an odd number of members.
            Level::Raid10 => {
                let place = 2 * chunk + copy;
                (place % self.members, place / self.members)
            }
            Level::Raid01 => (chunk % self.data + copy * self.data, chunk / self.data),
            Level::Raid5 | Level::Raid6 => {
                let row = chunk / self.data;
                let first = self.parity_of(row) + self.parity;
                ((first + chunk % self.data) % self.members, row)
            }
        };
        (member, row * self.chunk)
    }

    /// Where the first parity of a row is: left-symmetric, as in `layout`.
    fn parity_of(&self, row: u64) -> u64 {
        self.members - 1 - row % self.members
    }

    /// The parts of a request that lie in one chunk: chunk, from, to before.
    fn pieces(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let chunk = self.chunk;
        (start / chunk..end.div_ceil(chunk)).map(move |at| {
            let base = at * chunk;
            (at, start.max(base) - base, end.min(base + chunk) - base)
        })
    }

    /// Clears the answer.
    pub(super) fn clear(&mut self) {
        self.reads.fill(MemberWork::default());
        self.writes.fill(MemberWork::default());
    }

    /// Reads of what lies from `start` to before `end`.
    ///
    /// * `choose`: which copy, of those on these members, from a byte of them on.
    pub(super) fn read(
        &mut self,
        start: u64,
        end: u64,
        mut choose: impl FnMut(&[usize], u64) -> usize,
    ) {
        self.clear();
        for (chunk, from, to) in self.pieces(start, end) {
            let (mut member, mut base) = self.locate(chunk, 0);
            if self.holders.len() > 1 {
                for copy in 0..self.holders.len() {
                    self.holders[copy] = self.locate(chunk, copy as u64).0 as usize;
                }
                let copy = choose(&self.holders, base + from) as u64;
                (member, base) = self.locate(chunk, copy);
            }
            self.reads[member as usize].add(base + from, to - from);
        }
    }

    /// Adds the reads and writes for a write of the same.
    pub(super) fn write(&mut self, start: u64, end: u64) {
        if self.parity > 0 {
            let width = self.chunk * self.data;
            for row in start / width..end.div_ceil(width) {
                let base = row * width;
                self.row(row, start.max(base) - base, end.min(base + width) - base);
            }
            return;
        }
        for (chunk, from, to) in self.pieces(start, end) {
            for copy in 0..self.holders.len() {
                let (member, base) = self.locate(chunk, copy as u64);
                self.writes[member as usize].add(base + from, to - from);
            }
        }
    }

    /// Adds the share that a write in sequence has of full stripes: nothing is read for their parity.
    pub(super) fn write_share(&mut self, start: u64, end: u64) {
        for (chunk, from, to) in self.pieces(start, end) {
            let (member, base) = self.locate(chunk, 0);
            self.writes[member as usize].add(base + from, to - from);
            let (row, column) = (chunk / self.data, chunk % self.data);
            let share = |at: u64| (column * self.chunk + at) / self.data;
            for number in 0..self.parity {
                let member = ((self.parity_of(row) + number) % self.members) as usize;
                let bytes = share(to) - share(from);
                self.writes[member].add(row * self.chunk + share(from), bytes);
            }
        }
    }

    /// One row of chunks, of which the data from `start` to before `end` is written.
    fn row(&mut self, row: u64, start: u64, end: u64) {
        let chunk = self.chunk;
        if end - start == chunk * self.data {
            self.writes.iter_mut().for_each(|member| member.add(row * chunk, chunk));
            return;
        }
        // Between two of these every page across the members is like the next.
        let (low, high) = (start % chunk, (end - 1) % chunk + 1);
        let is_one = start / chunk == (end - 1) / chunk;
        let (first, last) = if is_one { (low, high) } else { (0, chunk) };
        let mut edges = [first, last, low, low + PAGE - 1, high, high + PAGE - 1, first, last];
        edges[7] += PAGE - 1;
        edges = edges.map(|edge| edge / PAGE * PAGE);
        edges.sort_unstable();
        for edge in edges.windows(2).filter(|edge| edge[0] < edge[1]) {
            self.pages(row, (start, end), edge[0], edge[1]);
        }
    }

    /// Pages of a row from `from` to before `to`, counted within a chunk: old data and old parity
    /// are read, or the data that is not written, whichever is less.
    fn pages(&mut self, row: u64, (start, end): (u64, u64), from: u64, to: u64) {
        let chunk = self.chunk;
        let cover = |column: u64| {
            let within = |at: u64| at.saturating_sub(column * chunk).min(chunk);
            (within(start), within(end))
        };
        let touched = |column: &u64| {
            let (low, high) = cover(*column);
            low < to && high > from && low < high
        };
        let whole = |column: &u64| {
            let (low, high) = cover(*column);
            low <= from && to <= high
        };
        let written = (0..self.data).filter(touched).count() as u64;
        if written == 0 {
            return;
        }
        let rest = self.data - (0..self.data).filter(whole).count() as u64;
        let modify = written + self.parity < rest;
        let (base, bytes) = (row * chunk + from, to - from);
        for column in 0..self.data {
            let member = self.locate(row * self.data + column, 0).0 as usize;
            if if modify { touched(&column) } else { !whole(&column) } {
                self.reads[member].add(base, bytes);
            }
            if touched(&column) {
                self.writes[member].add(base, bytes);
            }
        }
        for number in 0..self.parity {
            let member = ((self.parity_of(row) + number) % self.members) as usize;
            if modify {
                self.reads[member].add(base, bytes);
            }
            self.writes[member].add(base, bytes);
        }
    }

    /// Copies the answer.
    pub(super) fn keep(&self, kept: &mut [[MemberWork; 2]]) {
        for (kept, works) in kept.iter_mut().zip(self.reads.iter().zip(&self.writes)) {
            *kept = [*works.0, *works.1];
        }
    }

    /// The answer is what was kept.
    pub(super) fn recall(&mut self, kept: &[[MemberWork; 2]]) {
        for (member, [read, write]) in kept.iter().enumerate() {
            self.reads[member] = *read;
            self.writes[member] = *write;
        }
    }

    /// Without one member: what it would read is read of all others, or of its copy.
    ///
    /// * `is_written`: whether a spare takes its writes.
    /// * `rebuilt`: bytes of the spare that are filled already.
    pub(super) fn without(&mut self, lost: usize, is_written: bool, rebuilt: u64) {
        if !is_written {
            self.writes[lost] = MemberWork::default();
        }
        let work = self.reads[lost];
        if work.bytes > 0 && work.start + work.bytes > rebuilt {
            self.replace(lost, work);
        }
    }

    /// What a spare in place of `lost` needs, from `start` on.
    pub(super) fn fill(&mut self, lost: usize, start: u64, bytes: u64) {
        self.clear();
        self.replace(lost, MemberWork { start, bytes });
        self.writes[lost] = MemberWork { start, bytes };
    }

    fn replace(&mut self, lost: usize, work: MemberWork) {
        self.reads[lost] = MemberWork::default();
        for member in 0..self.reads.len() {
            let is_source = self.holders.len() == 1 || member == self.twin(lost);
            if member != lost && is_source {
                self.reads[member].cover(work);
            }
        }
    }

    /// A member with the same data; with most of it where members are odd in number.
    fn twin(&self, member: usize) -> usize {
        match self.level {
            Level::Raid01 => (member + self.data as usize) % self.reads.len(),
            Level::Raid10 => (member ^ 1).min(self.reads.len() - 1),
            _ => usize::from(member == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::{ByteOffset, Bytes};

    const SIZE: u64 = 1 << 30;

    fn array() -> impl Strategy<Value = Array> {
        let level = prop::sample::select(&Level::ALL[..]);
        (level, 2u32..9, 12u32..18).prop_filter_map("no such array", |(level, members, chunk)| {
            let chunk = level.has_chunk().then_some(Bytes::new(1 << chunk));
            Array::new(level, members, chunk).ok()
        })
    }

    fn sums(works: &[MemberWork]) -> (u64, u64) {
        let used = works.iter().filter(|work| work.bytes > 0);
        used.fold((0, 0), |(count, bytes), work| (count + 1, bytes + work.bytes))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn members_do_what_layout_says(
            array in array(), offset in 0u64..1 << 14, sectors in 1u64..4096,
        ) {
            let (start, length) = (offset * 512, sectors * 512);
            let (offset, size) = (ByteOffset::new(start), Bytes::new(length));
            let mut placement = Placement::new(&array, SIZE);
            placement.clear();
            placement.write(start, start + length);
            let wanted = array.write_cost(offset, size);
            let ((reads, read), (writes, written)) = (sums(&placement.reads), sums(&placement.writes));
            prop_assert_eq!(read, wanted.read_bytes.get());
            prop_assert_eq!(written, wanted.written_bytes.get());
            // What is apart on a member is one request here.
            prop_assert!(reads <= wanted.reads && writes <= wanted.writes);
            prop_assert!(placement.writes.iter().all(|work| work.start + work.bytes <= SIZE));
            let is_read = |placement: &Placement| sums(&placement.reads);
            placement.read(start, start + length, |_, _| 0);
            prop_assert_eq!(is_read(&placement).1, length);
            prop_assert!(is_read(&placement).0 <= array.read_requests(offset, size));
        }

        #[test]
        fn what_is_read_is_where_it_was_written(array in array(), page in 0u64..1 << 14, copy in 0usize..2) {
            let mut placement = Placement::new(&array, SIZE);
            let (start, end) = (page * 4096, (page + 1) * 4096);
            placement.write(start, end);
            let writes = placement.writes.clone();
            placement.read(start, end, |_, _| copy);
            for (read, written) in placement.reads.iter().zip(&writes).filter(|(read, _)| read.bytes > 0) {
                prop_assert_eq!(read, written);
            }
            // And without a member nothing is asked of it.
            placement.read(start, end, |_, _| 0);
            placement.without(0, false, 0);
            prop_assert_eq!(placement.reads[0].bytes, 0);
            let lost = array.level().is_redundant() || sums(&placement.reads).1 > 0;
            prop_assert!(lost);
        }
    }
}
