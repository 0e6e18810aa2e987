//! States to measure in: a member fails when the files are there, or its replacement is being filled
//! while a run goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use layout::steps::refill;
use layout::{Action, ArrayState, Names, StackSpec, Step, Wait};
use record::Warning;
use stack::Host;
use stack::build::{Allowed, Progress, progress, verify};
use study::journal::{Entry, Rebuild};

use crate::study::builder::{Builder, Listener, NotBuilt, Quietly};
use crate::study::{JournalFile, PlayError};

/// How often the kernel is asked whether an array is full again.
const LOOK: Duration = Duration::from_millis(50);
/// The same where a program has to be started for it.
const LOOK_BY_PROGRAM: Duration = Duration::from_secs(2);
/// Who looks from the side has seen the end by then.
const SEEN: Duration = Duration::from_secs(5);

/// When a run has to be told of what is done to its stack.
pub trait Moments {
    /// Whether entering the state closes its files: it is ended before, and resumed after.
    fn closes_files(&self) -> bool;

    /// The files are there, the first visit comes next. What was done, to be stored with the run:
    /// its stack was looked at before.
    fn enter(&mut self) -> Result<Option<Warning>, PlayError>;

    /// Another visit comes next.
    fn keep(&mut self) -> Result<(), PlayError>;
}

/// A stack, and what brings it into its state.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub host: &'a Host,
    pub allowed: &'a Allowed,
    pub names: &'a Names,
    /// Its number in the plan.
    pub stack: u32,
    /// `None` for what is there already.
    pub spec: Option<&'a StackSpec>,
    /// What brings it into the state.
    pub steps: &'a [Step],
    /// Number of the first of them among the stack's.
    pub first: usize,
    /// Bytes of a member that are filled, where that is known.
    pub bytes: Option<u64>,
}

/// The state of one stack while one run is made on it.
pub(super) struct States<'a> {
    at: Place<'a>,
    pub journal: &'a mut JournalFile,
    entered: bool,
    filling: Option<Filling>,
    /// Those that came to their end.
    done: Vec<Rebuild>,
}

impl Moments for States<'_> {
    fn closes_files(&self) -> bool {
        let unmounts = |step: &Step| match &step.action {
            Action::Run { argv } => argv.first().is_some_and(|word| word == "umount"),
            _ => false,
        };
        !self.entered && self.at.steps.iter().any(unmounts)
    }

    fn enter(&mut self) -> Result<Option<Warning>, PlayError> {
        if std::mem::replace(&mut self.entered, true) || self.at.steps.is_empty() {
            return Ok(None);
        }
        let steps = self.at.steps;
        self.act(steps)?;
        // A small array may be full again before anybody can look; that is told by its time.
        if !self.is_rebuilding() {
            let expected = steps.last().map(|last| last.expect.as_slice()).unwrap_or_default();
            let odd: Vec<String> =
                expected.iter().flat_map(|wanted| verify(self.at.host, wanted)).collect();
            if !odd.is_empty() {
                return Err(not_so(odd.join("; ")));
            }
        }
        let state = self.at.spec.map(|spec| spec.state).unwrap_or_default();
        let text = format!(
            "measured {state}; the stack below is told as it was when its files were written, before \
             a member {}",
            if state == ArrayState::Rebuilding { "was replaced" } else { "failed" }
        );
        Ok(Some(Warning::new(state.name(), text)))
    }

    /// Fills it once more where it is full again, so that every visit begins while it is filled.
    fn keep(&mut self) -> Result<(), PlayError> {
        if !self.is_rebuilding() || !self.filling.as_ref().is_some_and(Filling::is_over) {
            return Ok(());
        }
        self.end_filling(Instant::now())?;
        let spec = self.at.spec.filter(|spec| spec.state == ArrayState::Rebuilding);
        let steps = spec.map(|spec| refill(spec, self.at.names)).transpose();
        let steps = steps.map_err(|error| not_so(error.to_string()))?.unwrap_or_default();
        self.act(&steps)
    }
}

impl<'a> States<'a> {
    pub fn new(at: Place<'a>, journal: &'a mut JournalFile) -> Self {
        Self { at, journal, entered: false, filling: None, done: Vec::new() }
    }

    fn is_rebuilding(&self) -> bool {
        self.entered && self.at.spec.is_some_and(|spec| spec.state == ArrayState::Rebuilding)
    }

    fn builder(&mut self) -> Builder<'_> {
        Builder::new(self.at.host.clone(), self.at.allowed.clone(), &mut *self.journal)
    }

    fn act(&mut self, steps: &[Step]) -> Result<(), PlayError> {
        let (stack, first) = (self.at.stack, self.at.first);
        let begun = Instant::now();
        let built = self.builder().build(stack, steps, first, false, &mut Quietly);
        built.map_err(|error| match error {
            NotBuilt::End(error) => error,
            NotBuilt::Failed(why) => not_so(why),
            NotBuilt::Stopped => not_so("it was ended".to_owned()),
        })?;
        let wait = steps.iter().rev().find_map(|step| step.waits_for.clone());
        self.filling = wait.map(|wait| Filling::watch(self.at.host.clone(), wait, begun));
        Ok(())
    }

    /// After the run: how long each filling took that came to its end meanwhile, and, of a stack that
    /// is measured while it is filled, of the last when it has.
    pub fn end(mut self, listener: &mut dyn Listener) -> Result<Vec<Rebuild>, NotBuilt> {
        let measured = Instant::now();
        if let Some(filling) = self.filling.as_ref().filter(|_| self.is_rebuilding()) {
            if !filling.is_over() {
                listener.tell("measured; waiting for the rebuild to come to its end");
            }
            let wait = filling.wait.clone();
            self.builder().wait(&wait, listener)?;
            // Whoever looks from the side sees it a moment later.
            let begun = Instant::now();
            while !self.filling.as_ref().is_none_or(Filling::is_over) && begun.elapsed() < SEEN {
                std::thread::sleep(LOOK);
            }
            self.end_filling(measured)?;
        }
        Ok(self.done)
    }

    fn end_filling(&mut self, measured: Instant) -> Result<(), PlayError> {
        let Some(filling) = self.filling.take() else { return Ok(()) };
        let Some(ended) = filling.ended() else { return Ok(()) };
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let rebuild = Rebuild {
            took_ns: ns(ended.saturating_duration_since(filling.begun)),
            measured_ns: ns(ended.min(measured).saturating_duration_since(filling.begun)),
            bytes: self.at.bytes,
        };
        self.journal.add(&Entry::Rebuilt { stack: self.at.stack, of: rebuild })?;
        self.done.push(rebuild);
        Ok(())
    }
}

fn not_so(why: String) -> PlayError {
    PlayError::Undo { what: "the state to measure in".to_owned(), why }
}

/// A member being filled, looked at from the side until it is full.
struct Filling {
    wait: Wait,
    begun: Instant,
    ended: Arc<Mutex<Option<Instant>>>,
    stop: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Filling {
    fn watch(host: Host, wait: Wait, begun: Instant) -> Self {
        let ended = Arc::new(Mutex::new(None));
        let stop = Arc::new(AtomicBool::new(false));
        let look = match &wait {
            Wait::MdSync { .. } => LOOK,
            _ => LOOK_BY_PROGRAM,
        };
        let (told, asked, what) = (Arc::clone(&ended), Arc::clone(&stop), wait.clone());
        let watch = move || {
            while !asked.load(Ordering::Relaxed) {
                if matches!(progress(&host, &what), Progress::Idle | Progress::Gone) {
                    *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                    return;
                }
                std::thread::sleep(look);
            }
        };
        let watcher = std::thread::Builder::new().name("filling".to_owned()).spawn(watch).ok();
        Self { wait, begun, ended, stop, watcher }
    }

    fn ended(&self) -> Option<Instant> {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.ended().is_some()
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            // It ended by itself, or does at its next look; a panic of its own is nobody's loss.
            let _ = watcher.join();
        }
    }
}
