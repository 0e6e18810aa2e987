//! Doing steps and undoing them, each in the journal before it is done.

use std::path::Path;
use std::time::{Duration, Instant};

use layout::{Action, DeviceId, Made, Names, Stage, Step, Wait};
use stack::Host;
use stack::build::{
    ActError, Allowed, Progress, Way, act, are_remains, identity, is_there, lacks, progress,
    setting, verify,
};
use study::Marks;
use study::journal::{Entry, Found, is_put_back};

use crate::study::clean::{action_text, not_done};
use crate::study::devices::{known_by, node};
use crate::study::guard::patiently;
use crate::study::ours::{self, Ours, erases, left_alone, names_device, told, writes_below};
use crate::study::{JournalFile, PlayError};

/// A tool that makes or takes apart something: `mkfs` of a large array may take long.
const LIMIT: Duration = Duration::from_secs(3600);
/// What is busy for a moment, because somebody looks at it, is tried again so often.
pub(super) const TRIES: u32 = 10;
/// Between tries.
pub(super) const PAUSE: Duration = Duration::from_millis(300);
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
    /// What was taken back, and what was not and why, in order.
    pub told: Vec<String>,
    /// Devices on which something stays, since one that it lies on is another by now.
    kept: Vec<DeviceId>,
}

/// What became of one thing that was to be taken back.
enum Undid {
    /// It is taken back.
    Done,
    /// There was nothing to take back: why.
    Nothing(String),
    /// Neither: a device is another by now. It is to be done when the right one is back.
    Kept(PlayError),
}

/// A setting that is not put back.
pub(super) struct Stays {
    path: String,
    value: String,
    why: PlayError,
}

impl Stays {
    /// What was to be done, and why it was not; `None` if it is so already.
    pub fn told(&self) -> Option<(String, &PlayError)> {
        let Self { path, value, why } = self;
        (!is_so(path, value)).then(|| (format!("write {value} to {path}"), why))
    }
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
    // Another device that bears its name now has a queue that nobody of the study has set.
    let queue = |found: &Found| {
        let now = identity(host, Path::new(found.device.as_str()))?;
        found.identity.differs(&known_by(&now)).is_none().then_some(now.disk)
    };
    let paths = devices.iter().map(|found| found.device.as_str().to_owned()).collect();
    let queues = devices.iter().filter_map(queue).collect();
    Allowed::new(paths, queues, names.key(), Names::MOUNT_ROOT)
}

impl<'a> Builder<'a> {
    pub fn new(host: Host, allowed: Allowed, journal: &'a mut JournalFile) -> Self {
        Self { host, allowed, journal, told: Vec::new(), kept: Vec::new() }
    }

    pub(super) fn ours(&self) -> Ours<'_> {
        Ours { host: &self.host, state: self.journal.state() }
    }

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
            self.step(stack, number, step, listener)?;
            if let Some(what) = step.waits_for.as_ref().filter(|_| wait) {
                self.wait(what, listener)?;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        stack: u32,
        number: u32,
        step: &Step,
        listener: &mut dyn Listener,
    ) -> Result<(), NotBuilt> {
        // Names may come to mean another device at any time: looked at again before each write.
        self.ours().are_the_same(&step.writes_to)?;
        // Before anything is written down: what is not allowed is a fault of ours.
        self.allowed.check(&step.action).map_err(|error| NotBuilt::Failed(error.to_string()))?;
        // Its tool would fail as well, and leave nodes of arrays that there are not.
        if makes_array(step) && lacks(&self.host, [step]).iter().any(|name| name == "md") {
            let why = format!("cannot {}: this kernel has no md", step.what);
            return Err(NotBuilt::Failed(why));
        }
        self.may_be_done(step)?;
        if let Action::WriteFile { path, .. } = &step.action {
            self.note_settings(path)?;
        }
        self.journal.add(&Entry::Doing { stack, number, step: Box::new(step.clone()) })?;
        // Killed within it, it has left what was there, without what it took off.
        if erases(&step.action) {
            self.note(&step.writes_to, true)?;
        }
        let acted = self.act(&step.action, None, listener);
        // What is there by then nobody but us has written, if nobody else uses it. Of what is whole the
        // signature tells; a pool's hot spare bears none.
        if acted.is_err() || step.stage == Stage::State || makes_pool(step) {
            self.note_unshared(&step.writes_to)?;
        }
        acted.map_err(|error| NotBuilt::Failed(format!("cannot {}: {error}", step.what)))?;
        ours::note_made(self.journal, &step.makes)?;
        self.journal.add(&Entry::Done { stack, number })?;
        Ok(())
    }

    /// Notes what a setting is before it is changed for the first time, and all that changes with it.
    fn note_settings(&mut self, path: &str) -> Result<(), NotBuilt> {
        for (path, value) in with_resets(path) {
            if self.journal.state().setting(&path).is_none() {
                let value = value.map_err(|error| NotBuilt::Failed(error.to_string()))?;
                self.journal.add(&Entry::Was { path, value })?;
            }
        }
        Ok(())
    }

    /// Does one thing, and tells of a tool that takes long.
    fn act(
        &self,
        action: &Action,
        before: Option<&str>,
        listener: &mut dyn Listener,
    ) -> Result<(), ActError> {
        let stops_before = listener.stops();
        let mut told = Duration::ZERO;
        let mut is_left = false;
        let mut waits = |name: &str, pid: u32, since: Duration| {
            if listener.stops() && !stops_before && !is_left {
                is_left = true;
                listener.tell(&format!(
                    "waiting for {name} (pid {pid}), which writes to a device; it goes on if this \
                     is ended at once, and `plimsoll study clean` waits for it"
                ));
            }
            if since >= told.saturating_add(TELL) {
                told = since;
                listener.tell(&format!("{name} (pid {pid}) runs since {} s", since.as_secs()));
            }
        };
        let held = Some(self.journal.tools());
        let named = self.named(action)?;
        let mut way = Way { limit: LIMIT, held, named: &named, waits: &mut waits };
        act(action, &self.allowed, before, &mut way).map(drop)
    }

    /// The devices of the study that a command names, and the kernel's name of each.
    fn named(&self, action: &Action) -> Result<Vec<(String, String)>, ActError> {
        let Action::Run { argv } = action else { return Ok(Vec::new()) };
        let mut named = Vec::new();
        for found in &self.journal.state().devices {
            let path = found.device.as_str();
            if !argv.iter().any(|word| names_device(word, &found.device)) {
                continue;
            }
            self.ours().is_the_same(found).map_err(|error| ActError::Failed {
                command: argv.join(" "),
                how: "is not started".to_owned(),
                said: error.to_string(),
            })?;
            let Some(now) = identity(&self.host, Path::new(path)) else { continue };
            let node = node(&now);
            let is_it = identity(&self.host, Path::new(&node)).is_some_and(|there| there == now);
            // Where nobody made that node the name has to do.
            if is_it && node != path {
                named.push((path.to_owned(), node));
            }
        }
        Ok(named)
    }

    /// Writes into the journal what these devices bear now.
    pub fn note(&mut self, devices: &[DeviceId], erases: bool) -> Result<(), PlayError> {
        devices.iter().try_for_each(|device| ours::note(&self.host, self.journal, device, erases))
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
    ///
    /// Settings come before all: what is in the way of the rest is not in theirs. Those that cannot
    /// be put back yet are tried again at the end. What concerns a device that is another by now is
    /// passed over, and stays in the journal: the error says so when all else is taken back.
    pub fn undo_all(&mut self, listener: &mut dyn Listener) -> Result<(), PlayError> {
        self.settings_back(listener)?;
        let went = match self.undo_steps(listener) {
            Err(error @ PlayError::Journal { .. }) => return Err(error),
            went => went,
        };
        let stay = self.settings_back(listener)?;
        let told = stay.iter().filter_map(Stays::told);
        self.told.extend(told.map(|(line, why)| not_done(&line, why)));
        match went?.or(stay.into_iter().next().map(|stays| stays.why)) {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        }
    }

    /// All but settings; the first that was passed over.
    fn undo_steps(&mut self, listener: &mut dyn Listener) -> Result<Option<PlayError>, PlayError> {
        self.kept.clear();
        let mut trouble = None;
        let mut passed: Vec<(u32, u32, u32)> = Vec::new();
        loop {
            let is_next = |undo: &study::journal::ToUndo<'_>| {
                !passed.contains(&(undo.stack, undo.number, undo.undo))
            };
            let Some(next) = self.journal.state().undos().find(is_next) else { break };
            let (stack, number, undo) = (next.stack, next.number, next.undo);
            let (what, step, done) = (next.what.clone(), next.step.clone(), next.done);
            let text = action_text(&what.action);
            match self.undo_one(&what, &step, done, listener)? {
                Undid::Done => self.told.push(text),
                // Settings are told by what they are again.
                Undid::Nothing(_) if is_put_back(&what.action) => {}
                // Others of the study's are in it, and it is told with the last of them.
                Undid::Nothing(_) if self.is_to_go_later(&what.action) => {}
                // It may be there again when the device is that is not there now.
                Undid::Nothing(_) if self.ours().is_apart(&what, &step) => {
                    trouble = trouble.or(self.ours().are_the_same(&step.writes_to).err());
                    passed.push((stack, number, undo));
                    continue;
                }
                Undid::Nothing(why) => self.told.push(not_done(&text, &why)),
                Undid::Kept(error) => {
                    self.told.push(not_done(&text, &error));
                    self.kept.extend(self.ours().touched_by(&what, &step));
                    trouble = trouble.or(Some(error));
                    passed.push((stack, number, undo));
                    continue;
                }
            }
            self.journal.add(&Entry::Undone { stack, number, undo })?;
        }
        Ok(trouble)
    }

    /// Puts settings back; of a queue whose scheduler cannot be, none: that would reset them again.
    /// Those that stay, when all that can be done is.
    pub fn settings_back(&mut self, listener: &mut dyn Listener) -> Result<Vec<Stays>, PlayError> {
        let mut stay: Vec<Stays> = Vec::new();
        for (path, value) in self.journal.state().to_put_back() {
            let done = match self.ours().has_queue(&path) {
                Err(error) => Err(error),
                Ok(false) => {
                    let line = format!("write {value} to {path}");
                    listener.tell(&not_done(&line, &"no device of the study has that queue now"));
                    self.journal.add(&Entry::Back { path: path.clone() })
                }
                Ok(true) if stay.iter().any(|one| queue_of(&one.path) == queue_of(&path)) => {
                    Err(cannot_set(&path, "its scheduler is not put back".to_owned()))
                }
                Ok(true) => self.put_back(&path, &value, listener),
            };
            match done {
                Err(error @ PlayError::Journal { .. }) => return Err(error),
                Err(why) => stay.push(Stays { path, value, why }),
                Ok(()) => {}
            }
        }
        Ok(stay)
    }

    /// Whether another step made the same directory, and is to be taken back after this one.
    fn is_to_go_later(&self, action: &Action) -> bool {
        let same = self.journal.state().undos().filter(|undo| undo.what.action == *action);
        matches!(action, Action::RemoveDirectory { .. }) && same.count() > 1
    }

    fn put_back(
        &mut self,
        path: &str,
        value: &str,
        listener: &mut dyn Listener,
    ) -> Result<(), PlayError> {
        let action = Action::PutBack { path: path.to_owned() };
        let was_so = is_so(path, value);
        self.act(&action, Some(value), listener)
            .map_err(|error| cannot_set(path, error.to_string()))?;
        if !was_so {
            self.told.push(format!("write {value} to {path}"));
        }
        self.journal.add(&Entry::Back { path: path.to_owned() })
    }

    /// Takes everything back, with or without a journal: what cannot be written down any more is
    /// undone all the same, down to zeros, since nobody could know half of it again.
    ///
    /// * `blanks`: makes devices blank as well; without a journal they are so in any case.
    pub fn tear_down(
        &mut self,
        blanks: bool,
        listener: &mut dyn Listener,
    ) -> Result<(), PlayError> {
        let mut all = self.undo_all(listener);
        // What concerns a device that is another by now is in nobody's way.
        if blanks && matches!(all, Ok(()) | Err(PlayError::Exchanged { .. })) {
            all = match self.blank() {
                Err(error @ PlayError::Journal { .. }) => Err(error),
                blanked => all.and(blanked),
            };
        }
        if let Err(PlayError::Journal { .. }) = all {
            self.journal.go_on_without();
            self.undo_all(listener)?;
            self.blank()?;
        }
        all
    }

    fn undo_one(
        &mut self,
        undo: &layout::Undo,
        step: &Step,
        done: bool,
        listener: &mut dyn Listener,
    ) -> Result<Undid, PlayError> {
        let cannot = |why: String| PlayError::Undo { what: step.what.clone(), why };
        if is_put_back(&undo.action) {
            return Ok(Undid::Nothing("settings are put back together".to_owned()));
        }
        // Of another device nothing could be said, and nothing taken back.
        let named = self.ours().named_by(undo);
        if let Err(error) = self.ours().are_the_same(&named) {
            return Ok(Undid::Kept(error));
        }
        for attempt in 1.. {
            if let Some(made) = &undo.only_if {
                match is_there(&self.host, made) {
                    Ok(true) => {}
                    Ok(false) => return Ok(Undid::Nothing(not_there(made))),
                    Err(_) if attempt < TRIES => {
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                    Err(error) => return Err(cannot(error.to_string())),
                }
                if let Some(why) = self.ours().is_anothers(made) {
                    return Ok(Undid::Nothing(why));
                }
                // The study's own may be below it, and be left when that is gone.
                if let Some(why) = self.ours().is_anothers_mount(made) {
                    return Err(cannot(why));
                }
            }
            // It may write to what the step wrote to.
            let touched = self.ours().touched_by(undo, step);
            if let Err(error) = self.ours().are_the_same(&touched) {
                return Ok(Undid::Kept(error));
            }
            if let Some(device) = touched.iter().find(|device| self.kept.contains(device)) {
                return Ok(Undid::Kept(stays_above(device)));
            }
            if writes_below(&undo.action) {
                match self.ours().is_used_besides(&touched) {
                    Some(_) if attempt < TRIES => {
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                    Some(why) => return Err(cannot(why)),
                    None => {}
                }
            }
            self.note(&named, true)?;
            let acted = self.act(&undo.action, None, listener);
            self.note(&named, false)?;
            match acted {
                // One of several that lie on each other.
                Ok(()) if attempt < TRIES && self.is_mounted_still(undo) => {}
                Ok(()) => {
                    // What it leaves on its members nobody else can have written.
                    if matches!(undo.only_if, Some(Made::Pool { .. })) {
                        self.note(&step.writes_to, false)?;
                    }
                    return Ok(Undid::Done);
                }
                // It stays, and all else is taken back.
                Err(error @ ActError::NotEmpty { .. }) => {
                    return Ok(Undid::Nothing(error.to_string()));
                }
                // It need not have come so far that there is something to take back.
                Err(error) if undo.only_if.is_none() && !done && attempt >= TRIES => {
                    return Ok(Undid::Nothing(error.to_string()));
                }
                Err(error) if attempt >= TRIES => return Err(cannot(error.to_string())),
                Err(error) => {
                    if attempt == TRIES / 2 {
                        listener.tell(&format!("trying again: {error}"));
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(Undid::Done)
    }

    /// Whether something is mounted still where an undo unmounts.
    fn is_mounted_still(&self, undo: &layout::Undo) -> bool {
        let mount = undo.only_if.as_ref().filter(|made| matches!(made, Made::Mount { .. }));
        mount.is_some_and(|made| is_there(&self.host, made).unwrap_or(false))
    }

    /// Makes devices blank again that were when the study began. What bears something else than
    /// was left there is somebody else's by now, and told. One that is another by now is passed over.
    pub fn blank(&mut self) -> Result<(), PlayError> {
        let devices: Vec<Found> = self.journal.state().to_blank().into_iter().cloned().collect();
        let mut trouble = None;
        for found in devices {
            let mut is_free = self.ours().is_the_same(&found);
            if self.kept.contains(&found.device) {
                is_free = is_free.and(Err(stays_above(&found.device)));
            }
            if let Err(error) = is_free {
                self.told.push(not_done(&to_blank(&found.device), &error));
                trouble = trouble.or(Some(error));
                continue;
            }
            self.blank_one(&found)?;
        }
        trouble.map_or(Ok(()), Err)
    }

    fn blank_one(&mut self, found: &Found) -> Result<(), PlayError> {
        let path = Path::new(found.device.as_str());
        let Some(now) = identity(&self.host, path) else { return Ok(()) };
        let cannot =
            |why: String| PlayError::Undo { what: format!("write to {}", found.device), why };
        let used = patiently(|| self.ours().who_else(&found.device));
        if !used.is_empty() {
            return Err(cannot(told(&used).join("; ")));
        }
        let seen = std::fs::File::open(path).and_then(|file| stack::probe(&file));
        let seen = seen.unwrap_or_default();
        let state = self.journal.state();
        let is_as_left = |marks| state.is_as_left(&found.device, &Marks::new(marks)) == Some(true);
        let mut tried = Ok(false);
        for attempt in 0..TRIES {
            if !are_remains(&self.host, path, &seen) {
                break;
            }
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            tried = stack::build::blank_ends(path, now.number, &is_as_left);
            if tried.is_ok() {
                break;
            }
        }
        let blank = tried.map_err(|error| cannot(error.to_string()))?;
        self.told.push(match blank {
            true => to_blank(&found.device),
            false => left_alone(&found.device, &seen),
        });
        self.journal.add(&Entry::Blank { device: found.device.clone() })
    }
}

/// What is done to a device last of all.
pub(super) fn to_blank(device: &DeviceId) -> String {
    format!("zero the first and last MiB of {device}")
}

/// A device that has to wait.
pub(super) fn stays_above(device: &DeviceId) -> PlayError {
    let why = "what lies on it is not taken back".to_owned();
    PlayError::Exchanged { device: device.to_string(), why }
}

fn cannot_set(path: &str, why: String) -> PlayError {
    PlayError::Undo { what: format!("set {path}"), why }
}

/// A setting of a queue as it is now, and with the scheduler all that another one resets.
fn with_resets(path: &str) -> Vec<(String, Result<String, ActError>)> {
    let mut found = vec![(path.to_owned(), setting(path))];
    if let Some(queue) = path.strip_suffix("/scheduler") {
        let own = std::fs::read_dir(format!("{queue}/iosched")).into_iter().flatten().flatten();
        let mut others: Vec<String> = own.map(|entry| entry.path().display().to_string()).collect();
        others.push(format!("{queue}/nr_requests"));
        others.sort();
        // Not every queue has them.
        let others = others.into_iter().map(|path| (path.clone(), setting(&path)));
        found.extend(others.filter(|(_, value)| value.is_ok()));
    }
    found
}

/// The directory of a setting's queue.
pub(super) fn queue_of(path: &str) -> &str {
    path.split_once("/queue/").map_or(path, |(disk, _)| disk)
}

/// Whether a setting is what it was already.
pub(super) fn is_so(path: &str, value: &str) -> bool {
    setting(path).is_ok_and(|now| now == value)
}

fn makes_array(step: &Step) -> bool {
    step.makes.iter().any(|made| matches!(made, Made::Array { .. }))
}

fn makes_pool(step: &Step) -> bool {
    step.makes.iter().any(|made| matches!(made, Made::Pool { .. }))
}

/// Why there is nothing to take back.
fn not_there(made: &Made) -> String {
    match made {
        Made::Array { path } => format!("there is no array {path}"),
        Made::Group { name } => format!("there is no volume group {name}"),
        Made::Volume { path } | Made::Directory { path } => format!("there is no {path}"),
        Made::Pool { name } => format!("there is no pool {name}"),
        Made::Signature { device, kind, .. } => format!("no {kind} of the study is on {device}"),
        Made::Mount { path } => format!("nothing is mounted on {path}"),
    }
}
