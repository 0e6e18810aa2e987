//! What is still the study's own, by what is there now: names and numbers may be another's.

use std::fs::File;
use std::path::Path;

use layout::{Action, DeviceId, Made, Names, Step, Undo};
use stack::Host;
use stack::build::{are_remains, identity, members_among};
use study::journal::{Found, State};

use crate::study::PlayError;
use crate::study::devices::{known_by, users};
use crate::study::witness;

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

    /// Who uses a device that is about to be erased: somebody began to since it was judged.
    pub fn is_used(&self, device: &DeviceId) -> Option<String> {
        let found = self.state.found(device)?;
        let used = users(self.host, device.as_str(), &found.overridden);
        (!used.is_empty()).then(|| used.join("; "))
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
            let marks = witness::now(self.host, device)?;
            self.state.is_as_left(device, &marks)
        };
        let is_ours = are_remains(self.host, path, &seen) && is_as_left() == Some(true);
        (!is_ours).then(|| left_alone(device, &seen))
    }
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

/// A device that is not made blank.
pub(super) fn left_alone(device: &DeviceId, seen: &[stack::Signature]) -> String {
    let seen: Vec<String> = seen.iter().map(ToString::to_string).collect();
    format!(
        "{device} is left alone: on it is {}, which is not what the study left there",
        seen.join(", ")
    )
}
