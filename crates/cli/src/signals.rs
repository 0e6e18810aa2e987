//! Ctrl-C and its relatives while a run is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use runner::Interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::ExitCode;
use crate::failure::Failure;

/// How long a run gets to leave after the second signal, to remove its scratch file: it may be
/// stuck in the kernel.
const GRACE: Duration = Duration::from_millis(1000);

/// From now on a file that grows beyond `ulimit -f` fails with an error, which says more than being
/// killed. First of all: the store is written before there is a run to watch over.
pub fn outlive_file_limit() {
    // A flag nobody reads. If it cannot be had, the signal kills as it did.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Turns signals into wishes to stop.
#[derive(Debug)]
pub struct SignalWatch {
    interrupt: Interrupt,
    first: Arc<AtomicI32>,
}

impl SignalWatch {
    /// From now on the first signal asks the run to end in an orderly way, the second to leave
    /// at once, and a third ends the process wherever it is.
    pub fn start() -> Result<Self, Failure> {
        let watch = Self { interrupt: Interrupt::default(), first: Arc::new(AtomicI32::new(0)) };
        let mut signals = Signals::new(wanted()).map_err(failed)?;
        let (interrupt, first) = (watch.interrupt.clone(), Arc::clone(&watch.first));
        let listen = move || {
            for signal in signals.forever() {
                let _ = first.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
                if interrupt.now() {
                    std::process::exit(code_of(signal).number().into());
                }
                interrupt.press();
                if interrupt.now() {
                    leave_after_grace(signal);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(failed)?;
        Ok(watch)
    }

    /// What the runner looks at.
    pub const fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// What the signals that came mean for the exit code.
    pub fn code(&self) -> Option<ExitCode> {
        match self.first.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(code_of(signal)),
        }
    }
}

/// Signals that end what has nothing to finish.
#[derive(Debug)]
pub struct Ends(Signals);

impl Ends {
    /// From now on they are kept for [`Self::wait`].
    pub fn watch() -> Result<Self, Failure> {
        Signals::new(wanted()).map(Self).map_err(failed)
    }

    /// Sleeps until one comes; what it means for the exit code.
    pub fn wait(&mut self) -> ExitCode {
        self.0.forever().next().map_or(ExitCode::Unexpected, code_of)
    }
}

fn failed(error: std::io::Error) -> Failure {
    Failure::caused(ExitCode::Unexpected, "cannot watch for signals", error)
}

fn wanted() -> Vec<i32> {
    let mut wanted = vec![SIGINT, SIGTERM];
    // Under nohup a closed terminal must not end the run.
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    wanted
}

fn leave_after_grace(signal: i32) {
    // Without the thread a third signal is still there.
    let _ = thread::Builder::new().name("grace".to_owned()).spawn(move || {
        thread::sleep(GRACE);
        std::process::exit(code_of(signal).number().into());
    });
}

const fn code_of(signal: i32) -> ExitCode {
    match signal {
        SIGHUP => ExitCode::HungUp,
        SIGTERM => ExitCode::Terminated,
        _ => ExitCode::Interrupted,
    }
}

/// Whether our parent told us not to hear of a signal.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
