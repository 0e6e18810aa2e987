//! The idle thread that tells a stall of the host from one of the device: it asks to be woken
//! every few milliseconds and notes when it was woken late (the idea of jHiccup).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use record::Gap;
use units::{Instant, Nanos};
use uring::MonotonicClock;

const NAP: Nanos = Nanos::millis(5);
/// Lateness below this is scheduling, not a stall.
const LATE: Nanos = Nanos::millis(50);
/// A list longer than this says what a shorter one does.
const STALLS_MAX: usize = 10_000;

/// Runs until it is asked for what it saw.
#[derive(Debug)]
pub(crate) struct Watchdog {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(Instant, Nanos)>>>,
}

impl Watchdog {
    /// Starts it. Without a thread to be had, nothing is watched and nothing is claimed.
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("watchdog".to_owned())
            .stack_size(64 << 10)
            .spawn(move || watch(&seen))
            .ok();
        Self { stop, thread }
    }

    /// Stalls that ended after `begin`, from there on.
    pub(crate) fn finish(mut self, begin: Instant) -> Vec<Gap> {
        self.stop.store(true, Ordering::Relaxed);
        let stalls = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let after = |&(start, length): &(Instant, Nanos)| {
            let end = start + length;
            let from = start.max(begin);
            (end > from).then(|| Gap {
                start_ns: from.since(begin).get(),
                length_ns: end.since(from).get(),
            })
        };
        stalls.iter().filter_map(after).collect()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn watch(stop: &AtomicBool) -> Vec<(Instant, Nanos)> {
    let mut stalls = Vec::new();
    let mut before = MonotonicClock::read();
    while !stop.load(Ordering::Relaxed) {
        let due = before + NAP;
        MonotonicClock::sleep_until(due);
        let now = MonotonicClock::read();
        let late = now.since(due);
        if late >= LATE && stalls.len() < STALLS_MAX {
            stalls.push((due, late));
        }
        before = now;
    }
    stalls
}
