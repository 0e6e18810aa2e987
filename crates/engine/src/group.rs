//! GroupCommit commit: sessions that wait for a flush share it, as they do in PostgreSQL and InnoDB.
//!
//! One session leads: it writes what all who wait have to write and flushes. Logs
//! are written in whole pages, so the last page of a group is written again with the next. Who
//! comes meanwhile waits for the next flush. When a flush is back, the next group is on its way
//! before those who were in it begin again; so N sessions in a closed loop make two groups that
//! take turns, and a flush holds N/2 commits.

use device::{FileIndex, Op};
use suite::model::{Pacing, Stream};
use units::{ByteOffset, Instant};

use crate::shared::StreamShared;
use crate::source::{Next, Source, seam_op};

/// The commits of a worker.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    /// What makes a write durable; `None` where that is when it is back.
    flush: Option<Op>,
    /// Bytes of a commit.
    pub length: u32,
    /// Of a request at most.
    piece: u32,
    /// What is still to be written of the group that is led.
    rest: Option<Next>,
    sessions: usize,
    /// Nobody set a rate: sessions begin again by themselves.
    closed: bool,
    /// How many do, once the next group is led.
    returning: usize,
    /// When each of those that wait began.
    waiting: Vec<Instant>,
    /// Of those that the leader's requests are for.
    led: Vec<Instant>,
    /// A place that did not follow on the last one: the next group begins there.
    ahead: Option<Next>,
}

impl GroupCommit {
    /// Of a stream that commits.
    pub(crate) fn of(stream: &Stream) -> Option<Self> {
        let sessions = stream.queue_depth as usize;
        let closed = matches!(stream.pacing, Pacing::Closed { .. });
        let length = stream.mix.block_size_max().get() as u32;
        let piece = match stream.commit_writes {
            0 | 1 => u32::MAX,
            writes => length / writes,
        };
        stream.commits().then(|| Self {
            flush: stream.sync.map(|policy| seam_op(policy.op)),
            length,
            piece,
            rest: None,
            sessions,
            closed,
            returning: if closed { sessions } else { 0 },
            waiting: Vec::with_capacity(sessions),
            led: Vec::with_capacity(sessions),
            ahead: None,
        })
    }

    /// Whether a session is free for one more commit.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < self.sessions
    }

    /// A session commits from `start` on.
    pub(crate) fn join(&mut self, start: Instant) {
        self.waiting.push(start);
    }

    /// The write for those who wait; `None` where the budget is used up. A group ends where the
    /// next place does not follow on the last: at the end of the log, which begins anew.
    pub(crate) fn lead(
        &mut self,
        now: Instant,
        source: &mut Source,
        shared: &StreamShared,
    ) -> Option<Next> {
        let returning = std::mem::take(&mut self.returning);
        let most = match self.waiting.len() {
            // Where all begin at the same time half of them wait, so that both groups are alike.
            0 if returning == self.sessions => returning.div_ceil(2),
            0 => returning,
            waiting => waiting,
        };
        self.waiting.resize(self.waiting.len() + returning, now);
        let (mut write, mut count): (Option<Next>, usize) = (None, 0);
        while count < most {
            let Some(next) = self.ahead.take().or_else(|| source.next(shared)) else { break };
            match &mut write {
                None => write = Some(Next { op: Op::Write, ..next }),
                Some(write) if follows(write, &next) => write.length += next.length,
                Some(_) => {
                    self.ahead = Some(next);
                    break;
                }
            }
            count += 1;
        }
        self.led.extend(self.waiting.drain(..count));
        self.rest = write.map(|write| source.in_log_pages(write));
        self.next_piece()
    }

    /// The first of what is still to be written.
    fn next_piece(&mut self) -> Option<Next> {
        let all = self.rest.take()?;
        let length = all.length.min(self.piece);
        let (offset, left) = (all.offset.get() + u64::from(length), all.length - length);
        self.rest =
            (left > 0).then(|| Next { offset: ByteOffset::new(offset), length: left, ..all });
        Some(Next { length, ..all })
    }

    /// What follows on the leader's request that came back: the next write, a flush, or nothing.
    pub(crate) fn follow(&mut self, op: Op, file: FileIndex) -> Option<Next> {
        self.next_piece().or_else(|| {
            let op = self.flush.filter(|_| op == Op::Write)?;
            Some(Next { op, file, offset: ByteOffset::ZERO, length: 0 })
        })
    }

    /// When those began who were led.
    pub(crate) fn led(&self) -> &[Instant] {
        &self.led
    }

    /// Their commits are over.
    pub(crate) fn end(&mut self) {
        self.returning = if self.closed { self.led.len() } else { 0 };
        self.led.clear();
        self.rest = None;
    }
}

fn follows(write: &Next, next: &Next) -> bool {
    let end = write.offset.get() + u64::from(write.length);
    write.file == next.file && end == next.offset.get()
}
