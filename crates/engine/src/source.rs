//! What a worker asks for next: class, place, and the syncs in between.

use device::{FileIndex, Op};
use stats::Random;
use stats::random::derive_seed;
use suite::model::{
    Access, LOG_PAGE, Last, Operation, ReplayRequest, Spread, Stream, SyncAtEnd, Until,
};
use units::{ByteOffset, Nanos};

use crate::access::Cursor;
use crate::choice::Chooser;
use crate::directory::Numbers;
use crate::drive::DriveError;
use crate::lines::Lines;
use crate::shared::StreamShared;
use crate::{Visit, WorkerId};

/// The next request, but for its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub op: Op,
    pub file: FileIndex,
    pub offset: ByteOffset,
    pub length: u32,
}

/// One worker's stream of requests: a pure function of the seeds and of what it shares.
#[derive(Debug)]
pub(crate) struct Source {
    random: Random,
    cursor: Cursor,
    classes: Box<[ClassState]>,
    chooser: Chooser,
    /// Classes with places and pauses of their own, if the stream has such.
    lines: Option<Lines>,
    place: Place,
    /// Where copies go.
    copies: Option<Place>,
    /// Bytes of the space, if requests at its end are cut.
    cut_at: Option<u64>,
    /// Of the request last given out.
    second: Option<Second>,
    /// Where it goes, if the kernel is to copy it.
    aim: Option<(FileIndex, ByteOffset)>,
    /// Of the request last given out, the flushes that follow on it.
    owed: Option<Owed>,
    /// Requests that may still be issued before anything beyond class, cursor and place is to
    /// be looked after.
    plain: u64,
    limits: Limits,
    syncs: Option<Syncs>,
    replay: Option<Replay>,
    /// Whole files instead of blocks.
    numbers: Option<Numbers>,
    /// The file last written, for syncs.
    written_file: u32,
}

/// The second request of a pair: made of what the first one read, once that came back whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Second {
    pub next: Next,
    /// Of an update: the place in the buffer whose byte is another one.
    pub change: Option<u32>,
}

/// Flushes of the policy that follow on a request, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    op: Op,
    file: FileIndex,
    left: u32,
}

impl Owed {
    /// The next of them.
    pub(crate) fn take(&mut self) -> Option<Next> {
        self.left = self.left.checked_sub(1)?;
        let next = Next { op: self.op, file: self.file, offset: ByteOffset::ZERO, length: 0 };
        self.file = FileIndex(self.file.0.wrapping_add(1));
        Some(next)
    }
}

#[derive(Debug)]
struct ClassState {
    op: Op,
    /// What follows on its request.
    pair: Pair,
    length: u32,
    /// Length in units of the alignment, rounded up, at least 1.
    units: u64,
    positions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    No,
    Update,
    Copy,
    /// Both in one: a copy inside of the kernel.
    InKernel,
}

/// From positions to files and offsets.
#[derive(Debug)]
struct Place {
    align: u64,
    /// Where the space begins and ends within the files it maps to.
    start: u64,
    end: u64,
    file_size: u64,
    /// All positions are in this file, unless `concatenated`.
    file: u32,
    concatenated: bool,
    /// Bytes of a stripe, and over how many files; 0 where there are none.
    stripe: u64,
    files: u64,
}

#[derive(Debug)]
struct Limits {
    operations: Option<u64>,
    bytes: Option<u64>,
    /// No other worker draws on the same budget: count here instead of in shared memory.
    alone: bool,
    operations_taken: u64,
    bytes_taken: u64,
    /// Budgets count from the end of the ramp.
    counting: bool,
    /// The budget is this worker's part, and with it the stream ends.
    first_ends: bool,
}

#[derive(Debug)]
struct Syncs {
    op: Op,
    every: Option<u64>,
    shared: bool,
    each_file: bool,
    at_end: SyncAtEnd,
    /// The stream works in a directory, which is all there is to flush.
    directory: bool,
    files: u32,
    since: u64,
    dirty: bool,
    /// Files still to be synced, counted down.
    pending: u32,
    /// A flush takes no turn of the worker's: it follows on the request that made it due.
    follows: bool,
}

#[derive(Debug)]
struct Replay {
    requests: Box<[ReplayRequest]>,
    next: u64,
    alone: bool,
}

impl Source {
    pub(crate) fn new(visit: &Visit, id: WorkerId) -> Result<Self, DriveError> {
        let stream = &visit.streams[id.stream as usize];
        let place = Place::new(visit, stream, stream.region.start.get(), id.worker);
        let copies = stream.copy_to.map(|start| Place::new(visit, stream, start.get(), id.worker));
        let align = place.align;
        let span = stream.region.length.get();
        let short = stream.stop.last == Last::Short;
        let mut classes = Vec::new();
        for class in &stream.mix.classes {
            let length = class.block_size.get();
            // A request without length is somewhere too, and not at the region's end.
            let room = if stream.directory().is_some() { u64::MAX } else { span };
            let fits = room.checked_sub(length.max(1)).ok_or(DriveError::RegionTooSmall {
                stream: stream.name.clone(),
                region: stream.region.length,
                block_size: class.block_size,
            })?;
            classes.push(ClassState {
                op: seam_op(class.op),
                pair: match class.op {
                    Operation::Update => Pair::Update,
                    Operation::Copy => Pair::Copy,
                    Operation::CopyRange => Pair::InKernel,
                    _ => Pair::No,
                },
                length: length as u32,
                units: length.div_ceil(align).max(1),
                positions: if short { span.div_ceil(align) } else { fits / align + 1 },
            });
        }
        let longest = classes.iter().min_by_key(|c| c.positions);
        let space = longest.map_or((1, 1), |c| (c.positions, c.units));
        let seed = derive_seed(visit.seed, &[1, u64::from(id.stream), u64::from(id.worker)]);
        let stream_seed = derive_seed(visit.seed, &[2, u64::from(id.stream)]);
        let part = neighbours(stream, id.worker, visit.files);
        let cursor = Cursor::new(
            &stream.access,
            space,
            part,
            stream_seed,
            visit.run_seed,
            stream.stop.operations,
        );
        let alone = stream.threads == 1;
        // Commits ask for theirs themselves.
        let syncs = stream.sync.filter(|_| !stream.commits()).map(|policy| Syncs {
            op: seam_op(policy.op),
            every: policy.every,
            shared: policy.shared,
            each_file: policy.each_file,
            at_end: policy.at_end,
            directory: stream.directory().is_some(),
            files: if stream.directory().is_some() { 1 } else { visit.files },
            since: 0,
            dirty: false,
            pending: 0,
            follows: false,
        });
        let replay = match &stream.access {
            Access::Replay { requests } => {
                Some(Replay { requests: requests.clone().into_boxed_slice(), next: 0, alone })
            }
            _ => None,
        };
        let op = classes.first().map_or(Op::Read, |class| class.op);
        let numbers = stream.directory().map(|files| Numbers::new(files, op, stream_seed, alone));
        let first_ends = stream.stop.until == Until::FirstWorker;
        let budget = |limit: u64| match first_ends {
            true => limit.div_ceil(u64::from(stream.threads.max(1))),
            false => limit,
        };
        let limits = Limits {
            operations: stream.stop.operations.map(budget),
            bytes: stream.stop.bytes.map(units::Bytes::get).map(budget),
            alone: alone || first_ends,
            first_ends,
            operations_taken: 0,
            bytes_taken: 0,
            counting: false,
        };
        let lines = Lines::new(&stream.mix.classes, align, span / align, part);
        let pairs = classes.iter().any(|class| class.pair != Pair::No);
        let listed = replay.is_some() || numbers.is_some();
        let rare = syncs.is_some() || listed || lines.is_some() || pairs || first_ends || short;
        let plain = if rare { 0 } else { u64::MAX };
        Ok(Self {
            random: Random::new(seed),
            cursor,
            classes: classes.into_boxed_slice(),
            chooser: Chooser::new(&stream.mix, alone),
            lines,
            written_file: place.file,
            place,
            copies,
            cut_at: short.then_some(span),
            second: None,
            aim: None,
            owed: None,
            plain,
            limits,
            syncs,
            replay,
            numbers,
        })
    }

    /// The ramp is over: from here on the budgets count, and pay for what is in flight.
    pub(crate) fn count_from_here(&mut self, shared: &StreamShared, requests: u64, bytes: u64) {
        self.limits.counting = true;
        if self.limits.alone {
            self.limits.operations_taken = requests;
            self.limits.bytes_taken = bytes;
        } else {
            shared.quota.take_beforehand(requests, bytes);
        }
        if self.limits.bytes.is_some() {
            self.plain = 0;
        }
        if let Some(limit) = self.limits.operations.filter(|_| self.plain > 0) {
            // A budget of one's own is a countdown; a shared one needs a look each time.
            self.plain = if self.limits.alone { limit.saturating_sub(requests) } else { 0 };
            self.limits.operations_taken += self.plain;
        }
    }

    /// Whether the budget allows no more and no sync is owed. Replayed lists have one of their
    /// own beside: their length.
    pub(crate) fn used_up(&self, shared: &StreamShared) -> bool {
        let limits = &self.limits;
        let (operations, bytes) = match limits.alone {
            // Of a countdown, what is left is not taken yet.
            true if self.plain > 0 && self.plain != u64::MAX => return false,
            true => (limits.operations_taken, limits.bytes_taken),
            false => shared.quota.taken(),
        };
        let owed = self.syncs.as_ref().is_some_and(|syncs| syncs.pending > 0);
        limits.counting
            && !owed
            && (limits.operations.is_some_and(|limit| operations >= limit)
                || limits.bytes.is_some_and(|limit| bytes >= limit))
    }

    /// Whether the worker has finished the part of its own with which the stream ends.
    pub(crate) fn ends_stream(&self, shared: &StreamShared) -> bool {
        self.limits.first_ends && self.used_up(shared)
    }

    /// Whether such a request is one of the policy's, which no budget counts.
    pub(crate) fn is_policy_sync(&self, op: Op, length: u32) -> bool {
        length == 0 && self.syncs.as_ref().is_some_and(|syncs| syncs.op == op)
    }

    /// The next request; `None` when the stream's budget is used up.
    // Left to itself the compiler puts this out of line, and its result goes through memory: 24
    // instructions of each request.
    #[inline(always)]
    pub(crate) fn next(&mut self, shared: &StreamShared) -> Option<Next> {
        if self.plain == 0 {
            return self.next_rare(shared);
        }
        self.plain -= 1;
        Some(self.generate(shared))
    }

    #[inline(always)]
    fn generate(&mut self, shared: &StreamShared) -> Next {
        let index = if self.classes.len() == 1 { 0 } else { self.choose(shared) };
        let class = &self.classes[index];
        let position = self.cursor.next(&mut self.random, shared, class.positions, class.units);
        let (file, offset) = self.place.locate(position, class.length);
        Next { op: class.op, file, offset, length: class.length }
    }

    #[inline(never)]
    fn choose(&mut self, shared: &StreamShared) -> usize {
        self.chooser.choose(&mut self.random, shared)
    }

    /// The same for classes that are more than an operation and a length.
    fn generate_rare(&mut self, shared: &StreamShared) -> Next {
        let index = match self.lines.as_mut() {
            None if self.classes.len() == 1 => 0,
            None => self.choose(shared),
            Some(lines) => {
                if lines.burst_over() {
                    lines.begin_burst(self.chooser.choose(&mut self.random, shared));
                }
                lines.class()
            }
        };
        let class = &self.classes[index];
        let (positions, units) = (class.positions, class.units);
        let position = match self.lines.as_mut() {
            Some(lines) => lines.next(&mut self.random, positions, units),
            None => self.cursor.next(&mut self.random, shared, positions, units),
        };
        let length = match self.cut_at {
            Some(end) => (end - position * self.place.align).min(class.length.into()) as u32,
            None => class.length,
        };
        let (file, offset) = self.place.locate(position, length);
        let next = Next { op: class.op, file, offset, length };
        self.aim = match (class.pair, &self.copies) {
            (Pair::InKernel, Some(copies)) => Some(copies.locate(position, length)),
            _ => None,
        };
        self.second = match (class.pair, &self.copies) {
            (Pair::Update, _) => Some(Second {
                next: Next { op: Op::Write, ..next },
                change: Some(self.random.below(u64::from(next.length)) as u32),
            }),
            (Pair::Copy, Some(copies)) => {
                let (file, offset) = copies.locate(position, length);
                Some(Second { next: Next { op: Op::Write, file, offset, ..next }, change: None })
            }
            _ => None,
        };
        next
    }

    /// The write in whole pages of a log, as far as its space and its file have them.
    pub(crate) fn in_log_pages(&self, write: Next) -> Next {
        self.place.in_pages(write, LOG_PAGE.get())
    }

    /// What follows on the request last given out, if it is the first of a pair.
    pub(crate) fn take_second(&mut self) -> Option<Second> {
        self.second.take()
    }

    /// Where the request last given out goes, if it is a copy inside of the kernel.
    pub(crate) fn take_aim(&mut self) -> Option<(FileIndex, ByteOffset)> {
        self.aim.take()
    }

    /// From here on flushes are no requests that [`Self::next`] gives out: the worker begins
    /// requests at times of its own, and how many of them was asked for.
    pub(crate) fn flushes_follow(&mut self) {
        if let Some(syncs) = self.syncs.as_mut() {
            syncs.follows = true;
        }
    }

    /// Whether [`Self::take_owed`] is ever anything.
    pub(crate) fn owes(&self) -> bool {
        self.syncs.as_ref().is_some_and(|syncs| syncs.follows && syncs.every.is_some())
    }

    /// The flushes that the request last given out made due.
    pub(crate) fn take_owed(&mut self) -> Option<Owed> {
        self.owed.take()
    }

    /// Whether [`Self::take_second`] or [`Self::take_aim`] is ever anything.
    pub(crate) fn has_pairs(&self) -> bool {
        self.classes.iter().any(|class| class.pair != Pair::No)
    }

    /// The pause of the worker before the next request, if it begins a burst whose class has one.
    /// To be asked once per request, before [`Self::next`]; what it drew that will take.
    pub(crate) fn pause(&mut self, shared: &StreamShared) -> Option<Nanos> {
        let lines = self.lines.as_mut()?;
        if !lines.burst_over() {
            return None;
        }
        let index = self.chooser.choose(&mut self.random, shared);
        Some(lines.begin_burst(index)).filter(|&think| think > Nanos::ZERO)
    }

    /// Whether [`Self::pause`] is ever anything.
    pub(crate) fn pauses(&self) -> bool {
        self.lines.as_ref().is_some_and(Lines::pauses)
    }

    #[cold]
    fn next_rare(&mut self, shared: &StreamShared) -> Option<Next> {
        if let Some(next) = self.pending_sync() {
            return Some(next);
        }
        if self.limits.first_ends && shared.ended() {
            return None;
        }
        if !self.limits.take_operation(shared) {
            return None;
        }
        let next = match (&mut self.replay, &mut self.numbers) {
            (Some(replay), _) => replay.next(shared, &self.place)?,
            (None, Some(numbers)) => {
                let (op, length) = self.classes.first().map(|class| (class.op, class.length))?;
                numbers.next(shared, op, length)?
            }
            (None, None) => self.generate_rare(shared),
        };
        let left = self.limits.take_bytes(shared, u64::from(next.length))?;
        let next = if self.cut_at.is_some() { self.cut(next, left) } else { next };
        self.note_for_sync(next, shared);
        Some(next)
    }

    /// The request no longer than what the budget has left.
    fn cut(&mut self, next: Next, left: u64) -> Next {
        let length = u64::from(next.length).min(left) as u32;
        if let Some(second) = &mut self.second {
            second.next.length = length;
            second.change = second.change.map(|place| place % length.max(1));
        }
        Next { length, ..next }
    }

    /// A sync the policy owes, if any.
    fn pending_sync(&mut self) -> Option<Next> {
        let syncs = self.syncs.as_mut()?;
        if syncs.pending == 0 {
            return None;
        }
        let file = match (syncs.directory, syncs.each_file) {
            (true, _) => FileIndex::DIRECTORY,
            (false, true) => FileIndex(syncs.files - syncs.pending),
            (false, false) => FileIndex(self.written_file),
        };
        syncs.pending -= 1;
        Some(Next { op: syncs.op, file, offset: ByteOffset::ZERO, length: 0 })
    }

    fn note_for_sync(&mut self, next: Next, shared: &StreamShared) {
        let Some(syncs) = self.syncs.as_mut() else { return };
        let written = match (self.second, self.aim) {
            (Some(second), _) => Some(second.next.file),
            (None, Some((file, _))) => Some(file),
            (None, None) => Some(next.file).filter(|_| next.op.modifies()),
        };
        if let Some(file) = written {
            syncs.dirty = true;
            self.written_file = file.0;
            if syncs.shared {
                shared.note_write();
            }
        }
        let Some(every) = syncs.every else { return };
        let due = if syncs.shared {
            shared.due_for_sync(every) && shared.take_dirty()
        } else {
            syncs.since += 1;
            syncs.since.is_multiple_of(every) && syncs.dirty
        };
        if due {
            syncs.dirty = false;
            let files = if syncs.each_file && !syncs.directory { syncs.files } else { 1 };
            if !syncs.follows {
                syncs.pending = files;
                return;
            }
            let file = match (syncs.directory, syncs.each_file) {
                (true, _) => FileIndex::DIRECTORY,
                (false, true) => FileIndex(0),
                (false, false) => FileIndex(self.written_file),
            };
            self.owed = Some(Owed { op: syncs.op, file, left: files });
        }
    }

    /// How the stream ends.
    pub(crate) fn sync_at_end(&self) -> SyncAtEnd {
        self.syncs.as_ref().map_or(SyncAtEnd::No, |syncs| syncs.at_end)
    }

    /// Every file of the set is to be synced; [`Self::next_end_sync`] hands the requests out.
    pub(crate) fn begin_end_syncs(&mut self) {
        if let Some(syncs) = self.syncs.as_mut() {
            syncs.each_file = true;
            syncs.pending = syncs.files;
        }
    }

    pub(crate) fn next_end_sync(&mut self) -> Option<Next> {
        self.pending_sync()
    }

    /// Gaps between arrivals are drawn from the same numbers as everything else.
    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }
}

impl Limits {
    fn take_operation(&mut self, shared: &StreamShared) -> bool {
        match self.operations {
            Some(limit) if self.counting => {
                if !self.alone {
                    return shared.quota.take_operation(limit);
                }
                self.operations_taken += 1;
                self.operations_taken <= limit
            }
            _ => true,
        }
    }

    /// What was left of the budget before a request of `bytes`; `None` if nothing was.
    fn take_bytes(&mut self, shared: &StreamShared, bytes: u64) -> Option<u64> {
        let Some(limit) = self.bytes.filter(|_| self.counting) else { return Some(u64::MAX) };
        let before = match self.alone {
            false => shared.quota.take_bytes(bytes),
            true => {
                self.bytes_taken += bytes;
                self.bytes_taken - bytes
            }
        };
        limit.checked_sub(before).filter(|&left| left > 0)
    }
}

impl Replay {
    fn next(&mut self, shared: &StreamShared, place: &Place) -> Option<Next> {
        let index = if self.alone {
            self.next += 1;
            self.next - 1
        } else {
            shared.take_sequence(1)
        };
        let request = self.requests.get(usize::try_from(index).ok()?)?;
        let length = request.length.get() as u32;
        let (file, offset) = place.locate_bytes(request.offset.get(), length);
        Some(Next { op: seam_op(request.op), file, offset, length })
    }
}

impl Place {
    /// * `start`: where the space begins within the files.
    fn new(visit: &Visit, stream: &Stream, start: u64, worker: u32) -> Self {
        let (file, stripe) = match stream.region.spread {
            Spread::FilePerWorker => (worker % visit.files.max(1), 0),
            Spread::Concatenated => (0, 0),
            Spread::Striped { stripe } => (0, stripe.get()),
        };
        let concatenated = stream.region.spread != Spread::FilePerWorker && visit.files > 1;
        Self {
            align: stream.align.get().max(1),
            start,
            end: start.saturating_add(stream.region.length.get()),
            file_size: visit.file_size.get(),
            file,
            concatenated,
            stripe,
            files: visit.files.into(),
        }
    }

    fn in_pages(&self, next: Next, page: u64) -> Next {
        let before = if self.concatenated { u64::from(next.file.0) * self.file_size } else { 0 };
        let (first, last) = (self.start.saturating_sub(before), self.end.saturating_sub(before));
        let (from, to) = (next.offset.get(), next.offset.get() + u64::from(next.length));
        let start = (from - from % page).max(first).min(from);
        let end = to.next_multiple_of(page).min(last).min(self.file_size).max(to);
        Next { offset: ByteOffset::new(start), length: (end - start) as u32, ..next }
    }

    #[inline]
    fn locate(&self, position: u64, length: u32) -> (FileIndex, ByteOffset) {
        self.locate_bytes(position * self.align, length)
    }

    #[inline]
    fn locate_bytes(&self, from_start: u64, length: u32) -> (FileIndex, ByteOffset) {
        let linear = self.start + from_start;
        if !self.concatenated {
            return (FileIndex(self.file), ByteOffset::new(linear));
        }
        if self.stripe > 0 {
            return self.locate_striped(linear, u64::from(length));
        }
        let file = linear / self.file_size;
        let within = linear % self.file_size;
        if within > self.file_size.saturating_sub(u64::from(length)) {
            return self.locate_crossing(file, u64::from(length));
        }
        (FileIndex(file as u32), ByteOffset::new(within))
    }

    /// A request that would cross its stripe's end moves back to the last place where it fits.
    #[inline(never)]
    fn locate_striped(&self, linear: u64, length: u64) -> (FileIndex, ByteOffset) {
        let (stripe, mut within) = (linear / self.stripe, linear % self.stripe);
        if within + length > self.stripe {
            within = self.stripe.saturating_sub(length) / self.align * self.align;
        }
        let offset = stripe / self.files * self.stripe + within;
        (FileIndex((stripe % self.files) as u32), ByteOffset::new(offset))
    }

    /// A request that would cross the end of `file` moves back to the last place where it fits;
    /// if that is before the region, to the next file's beginning; if that ends after it, there is
    /// no place for it, and outside the region is better than outside the file. With files a
    /// multiple of the block size, the usual case, none crosses.
    #[cold]
    fn locate_crossing(&self, file: u64, length: u64) -> (FileIndex, ByteOffset) {
        let next = (file + 1) * self.file_size;
        let last = self.file_size.saturating_sub(length) / self.align * self.align;
        let before_region = file * self.file_size + last < self.start;
        if before_region && next + length <= self.end {
            return (FileIndex(file as u32 + 1), ByteOffset::ZERO);
        }
        (FileIndex(file as u32), ByteOffset::new(last))
    }
}

/// Which of how many workers a worker is among those that share its space: cursors of their own
/// start at equal parts of it.
fn neighbours(stream: &Stream, worker: u32, files: u32) -> (u32, u32) {
    match stream.region.spread {
        Spread::Concatenated | Spread::Striped { .. } => (worker, stream.threads),
        Spread::FilePerWorker => {
            let files = files.max(1);
            (worker / files, stream.threads.saturating_sub(worker % files).div_ceil(files))
        }
    }
}

/// From the suite's word to the seam's.
pub(crate) const fn seam_op(operation: Operation) -> Op {
    match operation {
        // A pair begins with the read.
        Operation::Read | Operation::Update | Operation::Copy => Op::Read,
        Operation::Write => Op::Write,
        Operation::Fsync => Op::Fsync,
        Operation::Fdatasync => Op::Fdatasync,
        Operation::SyncRange => Op::SyncRange,
        Operation::Trim => Op::Trim,
        Operation::Create => Op::Create,
        Operation::Stat => Op::Stat,
        Operation::Delete => Op::Delete,
        Operation::CopyRange => Op::CopyRange,
        // Never asked of a device: a database counts transactions by names of its own.
        Operation::Commit | Operation::Transaction => Op::Commit,
    }
}

/// The operations a stream can meet.
pub(crate) fn operations(stream: &Stream) -> Vec<Op> {
    let mut ops: Vec<Op> = match &stream.access {
        Access::Replay { requests } => requests.iter().map(|r| seam_op(r.op)).collect(),
        _ => stream.mix.classes.iter().map(|c| seam_op(c.op)).collect(),
    };
    ops.extend(stream.sync.map(|policy| seam_op(policy.op)));
    if stream.commits() || stream.mix.classes.iter().any(|class| class.op.is_pair()) {
        ops.push(Op::Write);
    }
    ops.sort_unstable();
    ops.dedup();
    ops
}
