//! The sessions of a database: one that commits rows, and one that plays transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use db::{DbSession, LoadClient, Violation};
use device::Op;
use meter::{Done, OpId};
use suite::model::{TransactionLoad, Transactions};
use tpcc::{
    Flight, Intent, Oltp, OltpScript, PlayedTransaction, Player, Reply, RowLaw, Scale, Seconds,
    Session, SessionError, Statement, Tpcb, Tpcc, Workload,
};

use crate::RunError;
use crate::rig::Seat;
use crate::turn::{Part, SessionPart, Turn};

/// What sessions that commit count.
pub(super) const COMMIT: &[&str] = &[Op::Commit.name()];

pub(super) fn now() -> Seconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Seconds(i64::try_from(since.as_secs()).unwrap_or(0))
}

pub(super) fn violated(violation: &Violation) -> String {
    let Violation { condition, demand, rows } = violation;
    format!("condition {condition} does not hold, that {demand}: {rows} rows break it")
}

/// What is loaded and played.
pub(super) fn workload(wanted: Transactions, seed: u64) -> Result<Box<dyn Workload>, RunError> {
    use OltpScript::{PointSelect, ReadOnly, ReadWrite, WriteOnly};
    use RowLaw::{Special, Uniform};
    let Transactions { load, scale } = wanted;
    let oltp = |script, law| Box::new(Oltp::new(scale, script, law, seed));
    Ok(match load {
        TransactionLoad::Tpcc => {
            let scale = Scale::new(scale).map_err(|error| RunError::Loading(error.to_string()))?;
            Box::new(Tpcc::new(scale, seed, now()))
        }
        TransactionLoad::Tpcb => Box::new(Tpcb::new(scale, false)),
        TransactionLoad::TpcbSelect => Box::new(Tpcb::new(scale, true)),
        TransactionLoad::OltpReadWrite => oltp(ReadWrite, Special),
        TransactionLoad::OltpReadOnly => oltp(ReadOnly, Special),
        TransactionLoad::OltpWriteOnly => oltp(WriteOnly, Special),
        TransactionLoad::OltpPointSelect => oltp(PointSelect, Special),
        TransactionLoad::OltpReadWriteUniform => oltp(ReadWrite, Uniform),
        TransactionLoad::OltpReadOnlyUniform => oltp(ReadOnly, Uniform),
        TransactionLoad::OltpWriteOnlyUniform => oltp(WriteOnly, Uniform),
        TransactionLoad::OltpPointSelectUniform => oltp(PointSelect, Uniform),
    })
}

/// What sessions see of their transactions, ramps included.
#[derive(Debug, Default)]
pub(super) struct SessionTimes {
    repeated: AtomicU64,
    transactions_ns: AtomicU64,
    commits_ns: AtomicU64,
}

/// What was seen since it was last taken.
pub(super) struct Witnessed {
    /// Tries before the last one.
    pub repeated: u64,
    /// From begin to end of each.
    pub transactions: Duration,
    /// The part of it that passed in commits.
    pub commits: Duration,
}

impl SessionTimes {
    fn add(&self, repeated: usize, transaction: Duration, commits: Duration) {
        let ns = |time: Duration| time.as_nanos() as u64;
        self.repeated.fetch_add(repeated as u64, Ordering::Relaxed);
        self.transactions_ns.fetch_add(ns(transaction), Ordering::Relaxed);
        self.commits_ns.fetch_add(ns(commits), Ordering::Relaxed);
    }

    pub(super) fn take(&self) -> Witnessed {
        let time = |of: &AtomicU64| Duration::from_nanos(of.swap(0, Ordering::Relaxed));
        Witnessed {
            repeated: self.repeated.swap(0, Ordering::Relaxed),
            transactions: time(&self.transactions_ns),
            commits: time(&self.commits_ns),
        }
    }
}

/// A connection whose commits are timed.
struct Watched<'a> {
    client: &'a mut dyn LoadClient,
    commits: Duration,
}

impl Session for Watched<'_> {
    fn prepare(&mut self, statements: &[Statement]) -> Result<(), SessionError> {
        self.client.prepare(statements)
    }

    fn begin(&mut self, intent: Intent) -> Result<(), SessionError> {
        self.client.begin(intent)
    }

    fn fly(&mut self, flight: &Flight, replies: &mut Vec<Reply>) -> Result<(), SessionError> {
        self.client.fly(flight, replies)
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        let begin = Instant::now();
        let done = self.client.commit();
        self.commits += begin.elapsed();
        done
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.client.rollback()
    }
}

/// A session that inserts a row and commits it.
pub(super) struct CommitSeat {
    pub name: &'static str,
    pub session: DbSession,
}

impl std::fmt::Debug for CommitSeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CommitSeat")
    }
}

impl Seat for CommitSeat {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        let part = turn.on_session(self.name, &[OpId(0)], self);
        // What it lacks then is in counters, not in what was measured.
        let _ = self.session.settle();
        Ok(part)
    }
}

impl SessionPart for CommitSeat {
    fn next(&mut self) -> OpId {
        OpId(0)
    }

    fn play(&mut self, _op: OpId) -> Done {
        match self.session.commit() {
            Ok(bytes) => Done::Whole { bytes },
            Err(error) => Done::Failed { error: error.number, text: error.text },
        }
    }
}

/// A session that plays transactions.
pub(super) struct TransactionSeat {
    name: &'static str,
    client: Box<dyn LoadClient>,
    player: Box<dyn Player>,
    operations: Vec<OpId>,
    witness: Arc<SessionTimes>,
}

impl std::fmt::Debug for TransactionSeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TransactionSeat")
    }
}

impl TransactionSeat {
    pub(super) fn new(
        name: &'static str,
        mut client: Box<dyn LoadClient>,
        workload: &dyn Workload,
        player: Box<dyn Player>,
        witness: Arc<SessionTimes>,
    ) -> Result<Self, RunError> {
        let statements = workload.statements(client.dialect());
        client.prepare(&statements).map_err(|error| RunError::Loading(error.to_string()))?;
        let operations = (0u8..).zip(workload.operations()).map(|(id, _)| OpId(id)).collect();
        Ok(Self { name, client, player, operations, witness })
    }
}

impl Seat for TransactionSeat {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        let operations = std::mem::take(&mut self.operations);
        Ok(turn.on_session(self.name, &operations, self))
    }
}

impl SessionPart for TransactionSeat {
    fn next(&mut self) -> OpId {
        OpId(self.player.draw() as u8)
    }

    fn play(&mut self, _op: OpId) -> Done {
        let (now, begin) = (now(), Instant::now());
        let mut watched = Watched { client: self.client.as_mut(), commits: Duration::ZERO };
        let PlayedTransaction { repeated, failed } = self.player.play(&mut watched, now);
        self.witness.add(repeated.len(), begin.elapsed(), watched.commits);
        match failed {
            None => Done::Whole { bytes: 0 },
            Some(error) => Done::Failed { error: -1, text: error.to_string() },
        }
    }
}
