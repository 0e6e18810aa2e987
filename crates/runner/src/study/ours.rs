//! What is still the study's own, by what is there now: names and numbers may be another's.

use std::fs::File;
use std::path::Path;

use layout::{Action, DeviceId, Made, Names, Step, Undo};
use stack::build::{Built, are_remains, block_of, end_marks, identity, members_among, uuid_on};
use stack::{Host, RefusalReason};
use study::Marks;
use study::journal::{Entry, Found, State};

use crate::study::devices::{InWork, known_by, why_not_written};
use crate::study::{JournalFile, Known, PlayError};

/// A machine, and what a journal says of it.
#[derive(Clone, Copy)]
pub(super) struct Ours<'a> {
    pub host: &'a Host,
    pub state: &'a State,
}

impl Ours<'_> {
    /// Whether a device is the one that the study began with.
    pub fn is_the_same(&self, found: &Found) -> Result<(), PlayError> {
        let device = found.device.to_string();
        let now = identity(self.host, Path::new(found.device.as_str()));
        let why = match &now {
            None => Some("it is not there".to_owned()),
            Some(now) => found.identity.differs(&known_by(now)),
        };
        why.map_or(Ok(()), |why| Err(PlayError::Exchanged { device, why }))
    }

    /// Whether all of these are.
    pub fn are_the_same(&self, devices: &[DeviceId]) -> Result<(), PlayError> {
        devices.iter().try_for_each(|device| match self.state.found(device) {
            Some(found) => self.is_the_same(found),
            None => {
                let why = "it is none of the devices that the study began with".to_owned();
                Err(PlayError::Exchanged { device: device.to_string(), why })
            }
        })
    }

    /// Whether a setting is of a queue that a device of the study has; `false` if all its devices have
    /// others by now: this one is as good as new, whosever it is.
    pub fn has_queue(&self, path: &str) -> Result<bool, PlayError> {
        let disk = path.strip_prefix("/sys/block/").and_then(|path| path.split('/').next());
        let mut others = Vec::new();
        for found in &self.state.devices {
            let now = identity(self.host, Path::new(found.device.as_str()));
            let is_it = now.is_some_and(|now| Some(now.disk.as_str()) == disk);
            match self.is_the_same(found) {
                Ok(()) if is_it => return Ok(true),
                Ok(()) => {}
                // The one that has its name tells most.
                Err(error) if is_it => others.insert(0, error),
                Err(error) => others.push(error),
            }
        }
        others.into_iter().next().map_or(Ok(false), Err)
    }

    /// The study's devices that an undo names.
    pub fn named_by(&self, undo: &Undo) -> Vec<DeviceId> {
        let sought = match &undo.only_if {
            Some(Made::Signature { device, .. }) => Some(device.as_str()),
            _ => None,
        };
        let words = argv(&undo.action).iter().map(String::as_str).chain(sought);
        let devices = &self.state.devices;
        let mut found: Vec<DeviceId> = words
            .filter_map(|word| devices.iter().find(|found| found.device.as_str() == word))
            .map(|found| found.device.clone())
            .collect();
        found.dedup();
        found
    }

    /// The study's devices that an undo may change: those that it names, those below the array that it
    /// names, or else all that its step wrote to.
    pub fn touched_by(&self, undo: &Undo, step: &Step) -> Vec<DeviceId> {
        let named = self.named_by(undo);
        if !named.is_empty() {
            return named;
        }
        self.below_arrays(undo).unwrap_or_else(|| step.writes_to.clone())
    }

    /// Whether a device is another by now to which an undo wrote that does not name it.
    pub fn is_apart(&self, undo: &Undo, step: &Step) -> bool {
        self.named_by(undo).is_empty() && self.are_the_same(&step.writes_to).is_err()
    }

    /// What the arrays lie on that an undo names, if that is the study's and nothing else.
    fn below_arrays(&self, undo: &Undo) -> Option<Vec<DeviceId>> {
        let same = self.state.devices.iter().filter(|found| self.is_the_same(found).is_ok());
        let known: Vec<(String, &DeviceId)> = same
            .filter_map(|found| {
                let now = identity(self.host, Path::new(found.device.as_str()))?;
                Some((now.name, &found.device))
            })
            .collect();
        let names: Vec<String> = known.iter().map(|(name, _)| name.clone()).collect();
        let arrays = argv(&undo.action).iter().filter(|word| word.starts_with("/dev/md/"));
        let below: Option<Vec<Vec<String>>> =
            arrays.map(|array| members_among(self.host, array, &names)).collect();
        let below: Vec<String> = below?.concat();
        let is_below = |(name, _): &&(String, &DeviceId)| below.contains(name);
        let found: Vec<DeviceId> =
            known.iter().filter(is_below).map(|(_, device)| (*device).clone()).collect();
        (!found.is_empty()).then_some(found)
    }

    /// Why a device of the study's may not be written now, whatever of the study's is on it.
    pub fn why_not(&self, device: &DeviceId) -> Vec<RefusalReason> {
        // What is on it is the study's own, until that is taken back.
        let has_ours = self.state.made().any(|step| step.writes_to.contains(device));
        self.reasons(device, (!has_ours).then(|| self.known_as(device.as_str())))
    }

    /// Whether a file system that is about to be mounted is another's by now.
    pub fn is_anothers_file_system(&self, step: &Step) -> Option<String> {
        let argv = argv(&step.action);
        let is_mount = argv.first().is_some_and(|word| word == "mount");
        let made = self.state.made().filter(|_| is_mount).flat_map(|step| &step.makes);
        let named = made.filter(|made| match made {
            Made::Signature { device, .. } => argv.iter().any(|word| names_device(word, device)),
            _ => false,
        });
        named.into_iter().find_map(|made| self.is_anothers(made))
    }

    /// Who uses a device besides the study, or what else forbids to write to it, whatever it bears.
    pub fn who_else(&self, device: &DeviceId) -> Vec<RefusalReason> {
        self.reasons(device, None)
    }

    fn reasons(&self, device: &DeviceId, known: Option<Known>) -> Vec<RefusalReason> {
        let Some(found) = self.state.found(device) else { return Vec::new() };
        let (path, overridden) = (device.as_str(), found.overridden.as_slice());
        // What the study has built and not taken back.
        let built = &Built::of(self.state.made().flat_map(|step| &step.makes));
        why_not_written(self.host, InWork { path, overridden, built, known })
    }

    /// The same of several devices, in words.
    pub fn is_used_besides(&self, devices: &[DeviceId]) -> Option<String> {
        let whys = devices.iter().map(|device| self.who_else(device));
        whys.into_iter().find(|whys| !whys.is_empty()).map(|whys| told(&whys).join("; "))
    }

    /// The study's devices that a step writes to, or works on: those that it names, those below the
    /// array that it names, or else all that something of the study's is on.
    pub fn worked_on(&self, step: &Step) -> Vec<DeviceId> {
        let Action::Run { argv } = &step.action else { return Vec::new() };
        let named = |found: &&Found| argv.iter().any(|word| names_device(word, &found.device));
        let mut all = step.writes_to.clone();
        all.extend(self.state.devices.iter().filter(named).map(|found| found.device.clone()));
        if all.is_empty() {
            let undo = Undo { action: step.action.clone(), only_if: None };
            let on = || self.state.made().flat_map(|step| step.writes_to.iter().cloned());
            all = self.below_arrays(&undo).unwrap_or_else(|| on().collect());
        }
        all.sort();
        all.dedup();
        all
    }

    /// What else is mounted where a file system of the study was.
    pub fn is_anothers_mount(&self, made: &Made) -> Option<String> {
        let Made::Mount { path } = made else { return None };
        let all = stack::mounts(self.host).ok()?;
        let top = all.iter().rev().find(|mount| mount.point.as_os_str() == path.as_str())?;
        let pool = Names::new(&self.state.begins.key).ok()?.pool();
        let of_pool = top.source.split('/').next().is_some_and(|name| name.starts_with(&pool));
        let below = stack::inspect(self.host, Path::new(path)).ok()?.devices;
        let on_ours = self.state.devices.iter().any(|found| {
            let now = identity(self.host, Path::new(found.device.as_str()));
            now.is_some_and(|now| below.iter().any(|device| device.name == now.name))
        });
        let what =
            format!("{} ({}) is mounted there by somebody else", top.source, top.file_system);
        (!of_pool && !on_ours).then_some(what)
    }

    /// Why a device that nothing of the study uses is not made blank, as far as can be seen: it bears
    /// something else than was left there.
    pub fn bears_anothers(&self, device: &DeviceId) -> Option<String> {
        let path = Path::new(device.as_str());
        let seen = File::open(path).and_then(|file| stack::probe(&file)).unwrap_or_default();
        let is_as_left = || {
            let marks = ends_now(self.host, device)?;
            self.state.is_as_left(device, &marks)
        };
        let is_ours = are_remains(self.host, path, &seen) && is_as_left() == Some(true);
        (!is_ours).then(|| left_alone(device, &seen))
    }

    /// Why a signature that looks like ours is another's; `None` if it is ours as far as is known.
    pub fn is_anothers(&self, made: &Made) -> Option<String> {
        let Made::Signature { device, kind, .. } = made else { return None };
        let ours = self.state.uuid(device, kind)?;
        let theirs = uuid_on(device.as_str(), kind).ok().flatten()?;
        (*ours != theirs)
            .then(|| format!("the {kind} on {device} is {theirs}, and the study made {ours}"))
    }

    /// What the journal says of a device, as it is now.
    pub fn known_as(&self, path: &str) -> Known {
        let device = DeviceId::new(path);
        let Some(found) = self.state.found(&device) else { return Known::No };
        let overridden = !found.overridden.is_empty();
        if !overridden && !self.state.has_written(&device) {
            return Known::No;
        }
        let as_left = ends_now(self.host, &device);
        match as_left.and_then(|marks| self.state.is_as_left(&device, &marks)) {
            Some(true) if overridden => Known::Overridden,
            Some(true) => Known::Ours,
            Some(false) => Known::Changed,
            None => Known::Unsure,
        }
    }
}

/// Both ends of a device; `None` where they cannot be read.
fn ends_now(host: &Host, device: &DeviceId) -> Option<Marks> {
    let path = Path::new(device.as_str());
    let number = identity(host, path)?.number;
    end_marks(path, number).ok().map(Marks::new)
}

/// Writes into the journal what a device bears that only we have written to.
///
/// * `erases`: a tool is about to take signatures off it; killed before it is noted what that left,
///   their blocks may be anything.
///
/// What cannot be read is not noted, and not taken for ours later.
pub(super) fn note(
    host: &Host,
    journal: &mut JournalFile,
    device: &DeviceId,
    erases: bool,
) -> Result<(), PlayError> {
    let Some(marks) = ends_now(host, device) else { return Ok(()) };
    let probed = |device: &DeviceId| {
        File::open(device.as_str()).and_then(|file| stack::probe(&file)).unwrap_or_default()
    };
    let mut erased = Vec::new();
    if erases {
        erased = probed(device).iter().map(block_of).collect();
        erased.dedup();
    }
    journal.add(&Entry::Ends { device: device.clone(), marks, erased })
}

/// Notes by what numbers the signatures are known again that a step has made.
pub(super) fn note_made(journal: &mut JournalFile, makes: &[Made]) -> Result<(), PlayError> {
    for made in makes {
        let Made::Signature { device, kind, .. } = made else { continue };
        if journal.state().found(device).is_none() {
            continue;
        }
        if let Ok(Some(uuid)) = uuid_on(device.as_str(), kind) {
            let (device, kind) = (device.clone(), kind.clone());
            journal.add(&Entry::Bears { device, kind, uuid })?;
        }
    }
    Ok(())
}

/// Refusals in words.
pub(super) fn told(whys: &[RefusalReason]) -> Vec<String> {
    whys.iter().map(ToString::to_string).collect()
}

/// Whether a word of a command is a device, or has it among its mount options.
pub(super) fn names_device(word: &str, device: &DeviceId) -> bool {
    let path = device.as_str();
    word == path || word.split(',').any(|piece| piece.strip_prefix("device=") == Some(path))
}

/// The words of a command; none of other actions.
fn argv(action: &Action) -> &[String] {
    match action {
        Action::Run { argv } => argv,
        _ => &[],
    }
}

/// Whether a command takes marks off a device that nothing of ours uses any more.
pub(super) fn erases(action: &Action) -> bool {
    let mut words = argv(action).iter().map(String::as_str);
    match words.next() {
        Some("wipefs" | "pvremove") => true,
        Some("mdadm") => words.next() == Some("--zero-superblock"),
        _ => false,
    }
}

/// Whether a command writes to what lies below the thing that it takes back. Unmounting and stopping
/// do so as well, and end that the study uses the device: they are always done.
pub(super) fn writes_below(action: &Action) -> bool {
    let program = argv(action).first().map(String::as_str);
    erases(action) || matches!(program, Some("vgremove" | "lvremove" | "zpool"))
}

/// A device that is not made blank.
pub(super) fn left_alone(device: &DeviceId, seen: &[stack::Signature]) -> String {
    let seen: Vec<String> = seen.iter().map(ToString::to_string).collect();
    format!(
        "{device} is left alone: on it is {}, which is not what the study left there",
        seen.join(", ")
    )
}
