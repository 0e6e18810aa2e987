//! How long sessions of PostgreSQL wait for locks: it has no count of that, so it is looked at.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use postgres::{Client, Config, NoTls};

use crate::DbError;

/// Between two looks. Each takes the server some 0.2 ms.
const LOOK: Duration = Duration::from_millis(50);
const WAITING: &str = "select count(*) from pg_stat_activity \
    where wait_event_type = 'Lock' and datname = current_database()";

/// Looks until it is dropped.
pub(crate) struct LockWatch {
    waited_us: Arc<AtomicU64>,
    thread: JoinHandle<()>,
    /// Dropping it ends the thread, which nobody waits for: the server may hang.
    _end: mpsc::Sender<()>,
}

impl LockWatch {
    pub(crate) fn start(config: &Config) -> Result<Self, DbError> {
        let client = config.connect(NoTls).map_err(DbError::query("open a session"))?;
        let waited_us = Arc::<AtomicU64>::default();
        let (end, ended) = mpsc::channel();
        let waited = Arc::clone(&waited_us);
        let thread = std::thread::spawn(move || look(client, &waited, &ended));
        Ok(Self { waited_us, thread, _end: end })
    }

    /// How long all sessions together have waited; none if the server does not answer any more.
    pub(crate) fn waited_us(&self) -> Option<u64> {
        let looks = !self.thread.is_finished();
        looks.then(|| self.waited_us.load(Ordering::Relaxed))
    }
}

fn look(mut client: Client, waited_us: &AtomicU64, ended: &mpsc::Receiver<()>) {
    let Ok(statement) = client.prepare(WAITING) else { return };
    let mut last = Instant::now();
    while ended.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
        let waiting = client.query_one(&statement, &[]).and_then(|row| row.try_get::<_, i64>(0));
        let Ok(waiting) = waiting else { return };
        let since = last.elapsed().as_micros() as u64;
        last = Instant::now();
        waited_us.fetch_add(waiting.max(0) as u64 * since, Ordering::Relaxed);
    }
}
