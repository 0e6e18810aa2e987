//! What a server acknowledged, remembered outside of it: after it was killed, or its power was cut, none of
//! that may be missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::{DbError, Server, SessionError};

/// Sessions that commit until the server is gone or they are told to stop, each in a thread of its own.
#[derive(Debug)]
pub struct CommitWitness {
    sessions: Vec<WitnessSession>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug)]
struct WitnessSession {
    number: i32,
    acknowledged: Arc<AtomicU64>,
    thread: JoinHandle<Option<SessionError>>,
}

/// Commits found after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surviving {
    /// Acknowledged before.
    pub acknowledged: u64,
    /// Of these, not there.
    pub missing: u64,
    /// There without having been acknowledged: at most one for each session, as its answer was under way.
    pub unanswered: u64,
}

impl Server {
    /// Opens sessions and lets them commit.
    pub fn witness(&self, sessions: u32) -> Result<CommitWitness, DbError> {
        let stop = Arc::<AtomicBool>::default();
        let opened = (0..sessions).map(|_| self.session()).collect::<Result<Vec<_>, _>>()?;
        let sessions = opened.into_iter().map(|mut session| {
            let acknowledged = Arc::<AtomicU64>::default();
            let (count, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
            let number = session.number();
            let commit = move || {
                while !stop.load(Ordering::Relaxed) {
                    if let Err(error) = session.commit() {
                        return Some(error);
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
                None
            };
            let thread = std::thread::Builder::new().name("witness".into()).spawn(commit);
            let thread = thread.map_err(DbError::file("start a thread for", self.path()))?;
            Ok(WitnessSession { number, acknowledged, thread })
        });
        Ok(CommitWitness { sessions: sessions.collect::<Result<_, DbError>>()?, stop })
    }

    /// Which of the acknowledged commits are there; through a new connection, an error until the server is back.
    pub fn surviving(&self, witness: &CommitWitness) -> Result<Surviving, DbError> {
        let mut client = self.client()?;
        let mut found = Surviving { acknowledged: 0, missing: 0, unanswered: 0 };
        for WitnessSession { number, acknowledged, .. } in &witness.sessions {
            let acknowledged = acknowledged.load(Ordering::Relaxed);
            let mut count = |which: &str| {
                let sql = format!(
                    "select count(distinct n) from commits where session = {number} and n {which} {acknowledged}"
                );
                let rows = client.count(&sql).map_err(DbError::query("count the commits"))?;
                Ok::<_, DbError>(rows.unsigned_abs())
            };
            // Each number counts once: a row that is there twice does not stand in for one that is missing.
            found.missing += acknowledged.saturating_sub(count("<=")?);
            found.unanswered += count(">")?;
            found.acknowledged += acknowledged;
        }
        Ok(found)
    }
}

impl CommitWitness {
    /// Commits that were acknowledged until now.
    pub fn acknowledged(&self) -> u64 {
        let counts = self.sessions.iter().map(|session| &session.acknowledged);
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Whether every session has failed: the server is gone.
    pub fn is_over(&self) -> bool {
        self.sessions.iter().all(|session| session.thread.is_finished())
    }

    /// No session begins another commit. One that waits for an answer goes on waiting.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for CommitWitness {
    fn drop(&mut self) {
        self.stop();
    }
}
