//! The sessions of a database: one that commits rows, and one that plays transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use db::{DbSession, LoadClient, Violation};
use device::Op;
use meter::{Done, OpId};
use suite::model::{TransactionLoad, Transactions};
use tpcc::{PlayedTransaction, Player, Scale, Seconds, Tpcb, Tpcc, Workload};

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
    let Transactions { load, scale } = wanted;
    Ok(match load {
        TransactionLoad::Tpcc => {
            let scale = Scale::new(scale).map_err(|error| RunError::Loading(error.to_string()))?;
            Box::new(Tpcc::new(scale, seed, now()))
        }
        TransactionLoad::Tpcb => Box::new(Tpcb::new(scale, false)),
        TransactionLoad::TpcbSelect => Box::new(Tpcb::new(scale, true)),
    })
}

/// Transactions that were tried again.
#[derive(Debug, Default)]
pub(super) struct Retries(AtomicU64);

impl Retries {
    fn add(&self, count: usize) {
        if count > 0 {
            self.0.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
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
    retries: Arc<Retries>,
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
        retries: Arc<Retries>,
    ) -> Result<Self, RunError> {
        let statements = workload.statements(client.dialect());
        client.prepare(&statements).map_err(|error| RunError::Loading(error.to_string()))?;
        let operations = (0u8..).zip(workload.operations()).map(|(id, _)| OpId(id)).collect();
        Ok(Self { name, client, player, operations, retries })
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
        let PlayedTransaction { repeated, failed } = self.player.play(self.client.as_mut(), now());
        self.retries.add(repeated.len());
        match failed {
            None => Done::Whole { bytes: 0 },
            Some(error) => Done::Failed { error: -1, text: error.to_string() },
        }
    }
}
