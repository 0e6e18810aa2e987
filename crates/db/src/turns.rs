//! Whose turn it is to write.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// One at a time, first come, first served. SQLite's own waiting sleeps longer and longer, and whoever
/// comes in time goes first.
#[derive(Default)]
pub(crate) struct Turns {
    line: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Whose turn it is, by number, and the number of the next who comes.
    serving: u64,
    next: u64,
    waiting: VecDeque<Thread>,
    /// How long all have waited.
    waited: Duration,
}

/// Whose turn it is.
pub(crate) struct Served(Arc<Turns>);

impl Turns {
    fn line(&self) -> MutexGuard<'_, Queue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait(self: &Arc<Self>) -> Served {
        let mut line = self.line();
        let own = line.next;
        line.next += 1;
        if line.serving != own {
            let begin = Instant::now();
            line.waiting.push_back(std::thread::current());
            while line.serving != own {
                drop(line);
                // May return without reason.
                std::thread::park();
                line = self.line();
            }
            line.waited += begin.elapsed();
        }
        Served(Arc::clone(self))
    }

    /// How long all have waited, one beside the other.
    pub(crate) fn waited(&self) -> Duration {
        self.line().waited
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let mut line = self.0.line();
        line.serving += 1;
        let next = line.waiting.pop_front();
        drop(line);
        if let Some(next) = next {
            next.unpark();
        }
    }
}
