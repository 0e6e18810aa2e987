//! Doing steps and undoing them, each in the journal before it is done.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use layout::{Action, DeviceId, Made, Names, Stage, Step, Wait};
use stack::Host;
use stack::build::{
    ActError, Allowed, Progress, Way, act, are_remains, identity, is_there, lacks, progress,
    setting, verify,
};
use study::Marks;
use study::journal::{Entry, Found};

use crate::study::clean::action_text;
use crate::study::devices::{known_by, node, users};
use crate::study::{JournalFile, PlayError, witness};

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
    /// What was taken back, and what was not and why, in order.
    pub told: Vec<String>,
}

/// What became of one thing that was to be taken back.
enum Undid {
    /// It is taken back.
    Done,
    /// There was nothing to take back: why.
    Nothing(String),
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
        Self { host, allowed, journal, told: Vec::new() }
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
        self.are_the_same(step)?;
        // Before anything is written down: what is not allowed is a fault of ours.
        self.allowed.check(&step.action).map_err(|error| NotBuilt::Failed(error.to_string()))?;
        // Its tool would fail as well, and leave nodes of arrays that there are not.
        if makes_array(step) && lacks(&self.host, [step]).iter().any(|name| name == "md") {
            let why = format!("cannot {}: this kernel has no md", step.what);
            return Err(NotBuilt::Failed(why));
        }
        if let Action::WriteFile { path, .. } = &step.action {
            self.note_settings(path)?;
        }
        self.journal.add(&Entry::Doing { stack, number, step: Box::new(step.clone()) })?;
        // Killed within it, it has left what was there, without what it took off.
        if erases(&step.action) {
            self.note(&step.writes_to, true)?;
        }
        let acted = self.act(&step.action, None, listener);
        // What is there by then nobody but us has written. Of what is whole the signature tells; a
        // pool's hot spare bears none.
        if acted.is_err() || step.stage == Stage::State || makes_pool(step) {
            self.note(&step.writes_to, false)?;
        }
        acted.map_err(|error| NotBuilt::Failed(format!("cannot {}: {error}", step.what)))?;
        witness::note_made(self.journal, &step.makes)?;
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
            let in_options = format!("device={path}");
            let names =
                |word: &String| word == path || word.split(',').any(|piece| piece == in_options);
            if !argv.iter().any(names) {
                continue;
            }
            self.is_the_same(found).map_err(|error| ActError::Failed {
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
        devices
            .iter()
            .try_for_each(|device| witness::note(&self.host, self.journal, device, erases))
    }

    /// The study's devices that an undo writes to by their names.
    fn written_by(&self, undo: &layout::Undo) -> Vec<DeviceId> {
        let named = match &undo.action {
            Action::Run { argv } => argv.as_slice(),
            _ => &[],
        };
        let sought = match &undo.only_if {
            Some(Made::Signature { device, .. }) => Some(device.as_str()),
            _ => None,
        };
        let words = named.iter().map(String::as_str).chain(sought);
        let devices = &self.journal.state().devices;
        let mut found: Vec<DeviceId> = words
            .filter_map(|word| devices.iter().find(|found| found.device.as_str() == word))
            .map(|found| found.device.clone())
            .collect();
        found.dedup();
        found
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
    ///
    /// Settings come before all: what is in the way of the rest is not in theirs. Those that cannot
    /// be put back yet are tried again at the end.
    pub fn undo_all(&mut self, listener: &mut dyn Listener) -> Result<(), PlayError> {
        if let Err(error @ PlayError::Journal { .. }) = self.settings_back(listener) {
            return Err(error);
        }
        while let Some(next) = self.journal.state().next_undo() {
            let (stack, number, undo) = (next.stack, next.number, next.undo);
            let (what, step, done) = (next.what.clone(), next.step.clone(), next.done);
            match self.undo_one(&what, &step, done, listener)? {
                Undid::Done => self.told.push(action_text(&what.action)),
                // Settings are told by what they are again.
                Undid::Nothing(_) if study::journal::is_put_back(&what.action) => {}
                // Others of the study's are in it, and it is told with the last of them.
                Undid::Nothing(_) if self.is_to_go_later(&what.action) => {}
                Undid::Nothing(why) => {
                    self.told.push(format!("not done: {}: {why}", action_text(&what.action)));
                }
            }
            self.journal.add(&Entry::Undone { stack, number, undo })?;
        }
        self.settings_back(listener)
    }

    /// Puts settings back; of a queue whose scheduler cannot be, none: that would reset them again.
    /// The first trouble, when all that can be done is.
    pub fn settings_back(&mut self, listener: &mut dyn Listener) -> Result<(), PlayError> {
        let mut trouble: Vec<(String, PlayError)> = Vec::new();
        for (path, value) in self.journal.state().to_put_back() {
            if trouble.iter().any(|(failed, _)| queue_of(failed) == queue_of(&path)) {
                continue;
            }
            match self.put_back(&path, &value, listener) {
                Err(error @ PlayError::Journal { .. }) => return Err(error),
                Err(error) => trouble.push((path, error)),
                Ok(()) => {}
            }
        }
        trouble.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
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
        self.act(&action, Some(value), listener).map_err(|error| PlayError::Undo {
            what: format!("set {path}"),
            why: error.to_string(),
        })?;
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
        if blanks {
            all = all.and_then(|()| self.blank());
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
        if study::journal::is_put_back(&undo.action) {
            return Ok(Undid::Nothing("settings are put back together".to_owned()));
        }
        // Of another device nothing could be said, and nothing taken back.
        let named = self.written_by(undo);
        for device in &named {
            if let Some(found) = self.journal.state().found(device) {
                self.is_the_same(found)?;
            }
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
                if let Some(why) = witness::is_anothers(self.journal, made) {
                    return Ok(Undid::Nothing(why));
                }
                // The study's own may be below it, and be left when that is gone.
                if let Some(why) = self.is_anothers_mount(made) {
                    return Err(cannot(why));
                }
            }
            if erases(&undo.action) {
                let used = named.iter().find_map(|device| self.is_used(device));
                match used {
                    Some(_) if attempt < TRIES => {
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                    Some(why) => return Err(cannot(why)),
                    None => {}
                }
            }
            // It may write to what the step wrote to.
            self.are_the_same(step)?;
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

    /// Who uses a device that is about to be erased: somebody began to since it was judged.
    fn is_used(&self, device: &DeviceId) -> Option<String> {
        let found = self.journal.state().found(device)?;
        let used = users(&self.host, device.as_str(), &found.overridden);
        (!used.is_empty()).then(|| used.join("; "))
    }

    /// Whether something is mounted still where an undo unmounts.
    fn is_mounted_still(&self, undo: &layout::Undo) -> bool {
        let mount = undo.only_if.as_ref().filter(|made| matches!(made, Made::Mount { .. }));
        mount.is_some_and(|made| is_there(&self.host, made).unwrap_or(false))
    }

    /// What else is mounted where a file system of the study was.
    fn is_anothers_mount(&self, made: &Made) -> Option<String> {
        let Made::Mount { path } = made else { return None };
        let all = stack::mounts(&self.host).ok()?;
        let top = all.iter().rev().find(|mount| mount.point.as_os_str() == path.as_str())?;
        let state = self.journal.state();
        let pool = Names::new(&state.begins.key).ok()?.pool();
        let of_pool = top.source.split('/').next().is_some_and(|name| name.starts_with(&pool));
        let below = stack::inspect(&self.host, Path::new(path)).ok()?.devices;
        let on_ours = state.devices.iter().any(|found| {
            let now = identity(&self.host, Path::new(found.device.as_str()));
            now.is_some_and(|now| below.iter().any(|device| device.name == now.name))
        });
        let what =
            format!("{} ({}) is mounted there by somebody else", top.source, top.file_system);
        (!of_pool && !on_ours).then_some(what)
    }

    /// Makes devices blank again that were when the study began. What bears something else than
    /// was left there is somebody else's by now, and told.
    pub fn blank(&mut self) -> Result<(), PlayError> {
        let devices: Vec<Found> = self.journal.state().to_blank().into_iter().cloned().collect();
        for found in devices {
            self.is_the_same(&found)?;
            let path = Path::new(found.device.as_str());
            let Some(now) = identity(&self.host, path) else { continue };
            let mut used = self.is_used(&found.device);
            for _ in 1..TRIES {
                if used.is_none() {
                    break;
                }
                std::thread::sleep(PAUSE);
                used = self.is_used(&found.device);
            }
            if let Some(why) = used {
                return Err(PlayError::Undo { what: format!("write to {}", found.device), why });
            }
            let seen = File::open(path).and_then(|file| stack::probe(&file)).unwrap_or_default();
            let state = self.journal.state();
            let is_as_left =
                |marks| state.is_as_left(&found.device, &Marks::new(marks)) == Some(true);
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
            let blank = tried.map_err(|error| PlayError::Undo {
                what: format!("write to {}", found.device),
                why: error.to_string(),
            })?;
            self.told.push(match blank {
                true => format!("zero the first and last MiB of {}", found.device),
                false => left_alone(&found.device, &seen),
            });
            self.journal.add(&Entry::Blank { device: found.device.clone() })?;
        }
        Ok(())
    }
}

/// Whether a command takes marks off a device that nothing of ours uses any more.
fn erases(action: &Action) -> bool {
    let Action::Run { argv } = action else { return false };
    let mut words = argv.iter().map(String::as_str);
    match words.next() {
        Some("wipefs" | "pvremove") => true,
        Some("mdadm") => words.next() == Some("--zero-superblock"),
        _ => false,
    }
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
fn queue_of(path: &str) -> &str {
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

/// A device that is not made blank.
fn left_alone(device: &DeviceId, seen: &[stack::Signature]) -> String {
    let seen: Vec<String> = seen.iter().map(ToString::to_string).collect();
    format!(
        "{device} is left alone: on it is {}, which is not what the study left there",
        seen.join(", ")
    )
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
