//! Doing steps and undoing them, each in the journal before it is done.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use layout::{Action, Names, Stage, Step, Wait};
use stack::Host;
use stack::build::{
    Allowed, Progress, act, are_remains, identity, is_there, progress, setting, verify,
};
use study::journal::{Entry, Found};

use crate::study::devices::known_by;
use crate::study::{JournalFile, PlayError};

/// A tool that makes or takes apart something: `mkfs` of a large array may take long.
const LIMIT: Duration = Duration::from_secs(3600);
/// What is busy for a moment, because somebody looks at it, is tried again so often.
const TRIES: u32 = 10;
/// Between tries.
const PAUSE: Duration = Duration::from_millis(300);
/// Between looks at an array that comes into step.
const LOOK: Duration = Duration::from_millis(250);
/// The filling of an array begins within this time.
const BEGINS: Duration = Duration::from_secs(10);
/// Between lines about that.
const TELL: Duration = Duration::from_secs(10);

/// What somebody who waits is told.
pub(super) trait Listener {
    fn tell(&mut self, line: &str);
    fn stops(&self) -> bool;
}

/// Nobody waits.
pub(super) struct Quietly;

impl Listener for Quietly {
    fn tell(&mut self, _: &str) {}

    fn stops(&self) -> bool {
        false
    }
}

/// Builds and tears down, and writes the journal.
pub(super) struct Builder<'a> {
    pub host: Host,
    pub allowed: Allowed,
    pub journal: &'a mut JournalFile,
}

/// Why a stack is not built.
pub(super) enum NotBuilt {
    /// The user wants to stop.
    Stopped,
    /// This stack; others may be.
    Failed(String),
    /// All: the journal, or a device that was exchanged.
    End(PlayError),
}

impl From<PlayError> for NotBuilt {
    fn from(error: PlayError) -> Self {
        Self::End(error)
    }
}

/// What a study's names may touch.
pub(super) fn allowed(host: &Host, devices: &[Found], names: &Names) -> Allowed {
    let queue =
        |found: &Found| identity(host, Path::new(found.device.as_str())).map(|device| device.disk);
    let paths = devices.iter().map(|found| found.device.as_str().to_owned()).collect();
    let queues = devices.iter().filter_map(queue).collect();
    Allowed::new(paths, queues, names.key(), Names::MOUNT_ROOT)
}

impl Builder<'_> {
    /// Does a stack's steps and waits for what goes on by itself after each.
    ///
    /// * `first`: number of the first of them among the stack's.
    /// * `wait`: not where the filling itself is to be measured.
    pub fn build(
        &mut self,
        stack: u32,
        steps: &[Step],
        first: usize,
        wait: bool,
        listener: &mut dyn Listener,
    ) -> Result<(), NotBuilt> {
        for (number, step) in (first..).zip(steps) {
            if listener.stops() {
                return Err(NotBuilt::Stopped);
            }
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            self.step(stack, number, step)?;
            if let Some(what) = step.waits_for.as_ref().filter(|_| wait) {
                self.wait(what, listener)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, stack: u32, number: u32, step: &Step) -> Result<(), NotBuilt> {
        self.are_the_same(step)?;
        // Before anything is written down: what is not allowed is a fault of ours.
        self.allowed.check(&step.action).map_err(|error| NotBuilt::Failed(error.to_string()))?;
        if let Action::WriteFile { path, .. } = &step.action
            && self.journal.state().setting(path).is_none()
        {
            let value = setting(path).map_err(|error| NotBuilt::Failed(error.to_string()))?;
            self.journal.add(&Entry::Was { path: path.clone(), value })?;
        }
        self.journal.add(&Entry::Doing { stack, number, step: Box::new(step.clone()) })?;
        act(&step.action, &self.allowed, None, LIMIT)
            .map_err(|error| NotBuilt::Failed(format!("cannot {}: {error}", step.what)))?;
        self.journal.add(&Entry::Done { stack, number })?;
        Ok(())
    }

    /// Names may come to mean another device at any time: looked at again before each write.
    fn are_the_same(&self, step: &Step) -> Result<(), PlayError> {
        for device in &step.writes_to {
            let Some(found) = self.journal.state().found(device) else {
                let why = "it is none of the devices that the study began with".to_owned();
                return Err(PlayError::Exchanged { device: device.to_string(), why });
            };
            self.is_the_same(found)?;
        }
        Ok(())
    }

    pub fn is_the_same(&self, found: &Found) -> Result<(), PlayError> {
        let device = found.device.to_string();
        let now = identity(&self.host, Path::new(found.device.as_str()));
        let why = match &now {
            None => Some("it is not there".to_owned()),
            Some(now) => found.identity.differs(&known_by(now)),
        };
        why.map_or(Ok(()), |why| Err(PlayError::Exchanged { device, why }))
    }

    /// Waits until what goes on by itself has come to its end.
    pub fn wait(&mut self, what: &Wait, listener: &mut dyn Listener) -> Result<(), NotBuilt> {
        let name = match what {
            Wait::MdSync { path } => path.clone(),
            Wait::LvmSync { group, volume } => format!("{group}/{volume}"),
            Wait::BtrfsReplace { path } => path.clone(),
            Wait::ZfsResilver { pool } => pool.clone(),
        };
        let mut told: Option<Instant> = None;
        let mut lacking: Option<Instant> = None;
        loop {
            let now = progress(&self.host, what);
            if now == Progress::Lacking {
                // What is still missing then is told by who looks at what was built.
                if lacking.get_or_insert_with(Instant::now).elapsed() >= BEGINS {
                    return Ok(());
                }
            } else {
                lacking = None;
            }
            match now {
                Progress::Lacking => {}
                Progress::Idle => return Ok(()),
                Progress::Gone => return Err(NotBuilt::Failed(format!("{name} is gone"))),
                Progress::Going(_) if listener.stops() => return Err(NotBuilt::Stopped),
                Progress::Going(share) => {
                    if told.is_none_or(|told| told.elapsed() >= TELL) {
                        let share = share.map_or(String::new(), |share| {
                            format!(", {:.0} % done", share * 100.0)
                        });
                        listener.tell(&format!("waiting for {name} to come into step{share}"));
                        told = Some(Instant::now());
                    }
                }
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What is not as planned; nothing if all is.
    pub fn check(&self, steps: &[Step]) -> Vec<String> {
        let expected = steps.iter().filter(|step| step.stage != Stage::State);
        let expected = expected.flat_map(|step| &step.expect);
        expected.flat_map(|wanted| verify(&self.host, wanted)).collect()
    }

    /// Takes back all that is open, the newest first.
    pub fn undo_all(&mut self, listener: &mut dyn Listener) -> Result<(), PlayError> {
        while let Some(next) = self.journal.state().next_undo() {
            let (stack, number, undo) = (next.stack, next.number, next.undo);
            let (what, step, done) = (next.what.clone(), next.step.clone(), next.done);
            self.undo_one(&what, &step, done, listener)?;
            if let Action::PutBack { path } = &what.action {
                self.journal.add(&Entry::Back { path: path.clone() })?;
            }
            self.journal.add(&Entry::Undone { stack, number, undo })?;
        }
        // Changed, and the step that would put it back was never begun.
        let left: Vec<(String, String)> =
            self.journal.state().settings().map(|(p, v)| (p.clone(), v.clone())).collect();
        for (path, value) in left {
            self.put_back(&path, &value)?;
        }
        Ok(())
    }

    fn put_back(&mut self, path: &str, value: &str) -> Result<(), PlayError> {
        let action = Action::PutBack { path: path.to_owned() };
        act(&action, &self.allowed, Some(value), LIMIT).map_err(|error| PlayError::Undo {
            what: format!("set {path}"),
            why: error.to_string(),
        })?;
        self.journal.add(&Entry::Back { path: path.to_owned() })
    }

    fn undo_one(
        &mut self,
        undo: &layout::Undo,
        step: &Step,
        done: bool,
        listener: &mut dyn Listener,
    ) -> Result<(), PlayError> {
        let cannot = |why: String| PlayError::Undo { what: step.what.clone(), why };
        let mut before = None;
        if let Action::PutBack { path } = &undo.action {
            before = self.journal.state().setting(path).cloned();
            // Never changed, or put back already by another step.
            if before.is_none() {
                return Ok(());
            }
        }
        for attempt in 1.. {
            if let Some(made) = &undo.only_if {
                match is_there(&self.host, made) {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    Err(_) if attempt < TRIES => {
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                    Err(error) => return Err(cannot(error.to_string())),
                }
            }
            // It may write to what the step wrote to.
            self.are_the_same(step)?;
            match act(&undo.action, &self.allowed, before.as_deref(), LIMIT) {
                Ok(_) => return Ok(()),
                // It need not have come so far that there is something to take back.
                Err(_) if undo.only_if.is_none() && !done && attempt >= TRIES => return Ok(()),
                Err(error) if attempt >= TRIES => return Err(cannot(error.to_string())),
                Err(error) => {
                    if attempt == TRIES / 2 {
                        listener.tell(&format!("trying again: {error}"));
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(())
    }

    /// Makes devices blank again that were when the study began.
    pub fn blank(&mut self) -> Result<(), PlayError> {
        let devices: Vec<Found> = self.journal.state().to_blank().into_iter().cloned().collect();
        for found in devices {
            self.is_the_same(&found)?;
            let path = Path::new(found.device.as_str());
            let Some(now) = identity(&self.host, path) else { continue };
            // Somebody may have put something there since a study was killed.
            let device = File::open(path).and_then(|file| stack::probe(&file));
            if device.is_ok_and(|all| !are_remains(&self.host, path, &all)) {
                self.journal.add(&Entry::Blank { device: found.device.clone() })?;
                continue;
            }
            let mut tried = stack::build::blank_ends(path, now.number);
            for _ in 1..TRIES {
                if tried.is_ok() {
                    break;
                }
                std::thread::sleep(PAUSE);
                tried = stack::build::blank_ends(path, now.number);
            }
            tried.map_err(|error| PlayError::Undo {
                what: format!("write to {}", found.device),
                why: error.to_string(),
            })?;
            self.journal.add(&Entry::Blank { device: found.device.clone() })?;
        }
        Ok(())
    }
}
