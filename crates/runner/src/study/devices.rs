//! The study's devices: what they are, and whether they may be written.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use layout::{DeviceFact, DeviceFacts, DeviceId, Names};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use stack::build::{Built, DeviceIdentity, are_remains, identity};
use stack::{Access, Consent, Facts, Host, Own, PathKind, RefusalReason, Subject};
use study::journal::Identity;
use units::Bytes;

use crate::study::PlayError;

/// A device that may be written.
#[derive(Clone, Debug)]
pub struct Device {
    /// As the study names it.
    pub path: String,
    /// Which it is.
    pub identity: DeviceIdentity,
    /// All zero at both ends.
    pub blank: bool,
    /// Refusals that the operator overrode.
    pub overridden: Vec<String>,
    /// What it is, for people.
    pub summary: String,
    /// What is lost with it: what was found on it.
    pub bears: Vec<String>,
}

impl Device {
    /// As a journal keeps it.
    pub fn known_by(&self) -> Identity {
        known_by(&self.identity)
    }
}

/// As a journal keeps it.
pub(super) fn known_by(identity: &DeviceIdentity) -> Identity {
    Identity {
        size: identity.size.get(),
        serial: identity.serial.clone(),
        wwid: identity.wwid.clone(),
        file: identity.file.clone(),
        inode: identity.file_id.map(|id| id.inode),
        file_on: identity.file_id.map(|id| id.device.to_string()),
        offset: identity.offset,
        number: identity.number.to_string(),
        boot: identity.boot.clone(),
    }
}

/// What the layout has to know of devices.
pub(super) fn facts_of(devices: &[Device]) -> DeviceFacts {
    let fact = |device: &Device| {
        let DeviceIdentity { size, logical_sector, physical_sector, disk, .. } = &device.identity;
        let queue = Path::new("/sys/block").join(disk).join("queue").is_dir();
        let fact = DeviceFact {
            size: *size,
            logical_sector: *logical_sector,
            physical_sector: *physical_sector,
            queue: queue.then(|| disk.clone()),
        };
        (DeviceId::new(&device.path), fact)
    };
    devices.iter().map(fact).collect()
}

/// One refusal of one device that the operator overrides, by typing the device's serial or path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    reason: String,
    device: String,
}

/// What can be overridden. That a device is in use cannot: whoever uses it has to end first.
const REASONS: [&str; 4] = ["signature", "open", "system-unseen", "unchecked"];

impl Override {
    /// From `signature:/dev/sdb` or `signature:SERIAL`.
    pub fn parse(text: &str) -> Result<Self, PlayError> {
        let bad = |why: &str| PlayError::Override { text: text.to_owned(), why: why.to_owned() };
        let (reason, device) = text.split_once(':').ok_or_else(|| bad("it has no `:`"))?;
        if !REASONS.contains(&reason) {
            return Err(bad(&format!("`{reason}` cannot be overridden")));
        }
        if device.is_empty() {
            return Err(bad("it names no device"));
        }
        Ok(Self { reason: reason.to_owned(), device: device.to_owned() })
    }

    fn is_for(&self, path: &str, device: &DeviceIdentity) -> bool {
        self.device == path
            || self.device == node(device)
            || device.serial.as_ref() == Some(&self.device)
    }
}

/// The kernel's name of a device as a path. Refusals name it, whatever link the study goes by.
pub(super) fn node(device: &DeviceIdentity) -> String {
    format!("/dev/{}", device.name.replace('!', "/"))
}

/// Which override would lift a refusal; `None` where nothing does.
const fn lifted_by(reason: &RefusalReason) -> Option<&'static str> {
    match reason {
        RefusalReason::Signature { .. } => Some("signature"),
        RefusalReason::InUse { .. } => Some("open"),
        RefusalReason::SystemUnseen { .. } => Some("system-unseen"),
        RefusalReason::Unchecked { .. } => Some("unchecked"),
        _ => None,
    }
}

/// Whether a refusal is for what a device bears.
const fn is_for_contents(reason: &RefusalReason) -> bool {
    matches!(reason, RefusalReason::Signature { .. } | RefusalReason::SystemUnseen { .. })
}

/// What the journal says of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was never written by this study.
    No,
    /// It was, after it was judged: remains of what was taken back again may be on it.
    Ours,
    /// The same, and the operator overrode what was written on it before.
    Overridden,
    /// It was written, and bears something else now than was left there.
    Changed,
    /// It was written, and the journal does not say what was left there.
    Unsure,
}

impl Known {
    /// What is to be told besides of a device that is not blank.
    const fn remark(self) -> &'static str {
        match self {
            Self::Changed => {
                "; that is not what this study left there: somebody used it since, or a run was \
                 killed that wrote to the device itself"
            }
            Self::Unsure => "; whether this study left that there cannot be told",
            Self::No | Self::Ours | Self::Overridden => "",
        }
    }
}

/// Whether nothing on a device is known by name: what is left when our own signatures are erased.
/// With anything else on it, somebody used it meanwhile.
fn bears_remains_only(host: &Host, path: &str, facts: &Facts) -> bool {
    let Subject::Block(block) = &facts.subject else { return false };
    let signatures = block.signatures.as_ref();
    block.partitions.is_empty()
        && signatures.is_ok_and(|all| are_remains(host, Path::new(path), all))
}

/// Whether what a device bears is what the study left there, or may be lost.
fn may_bear_it(host: &Host, path: &str, facts: &Facts, known: Known) -> bool {
    match known {
        Known::No | Known::Changed | Known::Unsure => false,
        Known::Ours => bears_remains_only(host, path, facts),
        Known::Overridden => true,
    }
}

/// Holds devices against other studies, whatever store theirs is: settings that one changes another
/// would put back. For as long as the files are open.
pub(super) fn hold<'a>(
    host: &Host,
    paths: impl Iterator<Item = &'a str>,
) -> Result<Vec<File>, PlayError> {
    let place = Path::new(Names::MOUNT_ROOT).join("devices");
    // Only root builds, and only root can make it.
    if std::fs::create_dir_all(&place).is_err() {
        return Ok(Vec::new());
    }
    let (mut held, mut numbers) = (Vec::new(), Vec::new());
    for path in paths {
        let Some(found) = identity(host, Path::new(path)) else { continue };
        if numbers.contains(&found.number) {
            continue;
        }
        numbers.push(found.number);
        let name = place.join(found.number.to_string());
        let mut options = OpenOptions::new();
        let Ok(file) = options.write(true).create(true).truncate(false).open(name) else {
            continue;
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                let why = format!("{path} is in use by another study");
                return Err(PlayError::Refused(vec![why]));
            }
            _ => held.push(file),
        }
    }
    Ok(held)
}

/// Judges every device; all refusals at once, so that nobody has to find them one by one.
///
/// * `known`: what the journal says of each. Remains of our own are no refusal; all else still is.
/// * `store`: where results go: the disk under it is never written.
pub fn judge(
    host: &Host,
    paths: &[String],
    overrides: &[Override],
    known: &dyn Fn(&str) -> Known,
    store: &Path,
) -> Result<Vec<Device>, PlayError> {
    let (mut devices, mut refused): (Vec<Device>, Vec<String>) = (Vec::new(), Vec::new());
    let mut chains: Vec<Vec<String>> = Vec::new();
    for path in paths {
        let Some(found) = identity(host, Path::new(path)) else {
            refused.push(none_there(Path::new(path)));
            continue;
        };
        let (facts, chain) = match look(host, path, store) {
            Ok(looked) => looked,
            Err(why) => {
                refused.push(why);
                continue;
            }
        };
        // A refusal names what a link leads to; the study's file knows the link.
        let link = match facts.resolved == Path::new(path) {
            true => String::new(),
            false => format!("; in the study it is {path}"),
        };
        let mut device = Device {
            path: path.clone(),
            identity: found,
            blank: false,
            overridden: Vec::new(),
            summary: String::new(),
            bears: Vec::new(),
        };
        if let Subject::Block(block) = &facts.subject {
            device.summary.clone_from(&block.summary);
            let signatures = block.signatures.as_ref().map(Vec::as_slice).unwrap_or_default();
            device.bears = signatures.iter().map(ToString::to_string).collect();
            device.bears.extend(block.partitions.iter().map(|name| format!("partition {name}")));
            device.blank = block.signatures.is_ok() && device.bears.is_empty();
        }
        let known = known(path);
        let is_root = rustix::process::geteuid().is_root();
        for reason in reasons(&facts) {
            let lifted = lifted_by(&reason);
            // Who is not root sees no others' processes, and builds nothing: that is said instead.
            if matches!(reason, RefusalReason::Unchecked { .. }) && !is_root {
                continue;
            }
            if is_for_contents(&reason) && may_bear_it(host, path, &facts, known) {
                continue;
            }
            let is_overridden = overrides.iter().any(|one| {
                lifted == Some(one.reason.as_str()) && one.is_for(path, &device.identity)
            });
            match lifted {
                _ if is_overridden => device.overridden.push(reason.to_string()),
                Some("signature") => refused.push(format!("{reason}{}{link}", known.remark())),
                _ => refused.push(format!("{reason}{link}")),
            }
        }
        refused.extend(one_with_another(host, &device, &chain, devices.iter().zip(&chains)));
        chains.push(chain);
        devices.push(device);
    }
    if refused.is_empty() { Ok(devices) } else { Err(PlayError::Refused(refused)) }
}

/// Devices that are one, or lie on each other: what a device is of one that was judged before.
fn one_with_another<'a>(
    host: &Host,
    device: &Device,
    chain: &[String],
    others: impl Iterator<Item = (&'a Device, &'a Vec<String>)>,
) -> Vec<String> {
    let path = &device.path;
    let refusal = |(other, below): (&Device, &Vec<String>)| {
        let (mine, theirs) = (&device.identity.name, &other.identity.name);
        let other_path = &other.path;
        if other.identity.number == device.identity.number {
            Some(format!("{path} and {other_path} are two names of one device"))
        } else if below.contains(mine) || chain.contains(theirs) {
            Some(format!("of {path} and {other_path} one lies on the other"))
        } else if stack::share_bytes(host, mine, theirs) {
            Some(format!("{path} and {other_path} are two names of the same bytes"))
        } else {
            None
        }
    };
    others.filter_map(refusal).collect()
}

/// Why a path is no device that could be written.
fn none_there(path: &Path) -> String {
    let shown = path.display();
    match (path.exists(), std::fs::read_link(path)) {
        (false, Ok(to)) => format!("{shown} is a link to {}, which is not there", to.display()),
        (false, Err(_)) => format!("{shown} is not there"),
        (true, _) => format!("{shown} is no block device that the kernel shows"),
    }
}

/// What is known of a device, and the kernel's names of it and of what it lies on.
fn look(host: &Host, path: &str, store: &Path) -> Result<(Facts, Vec<String>), String> {
    let target = stack::inspect(host, Path::new(path)).map_err(|error| error.to_string())?;
    if !matches!(target.path.kind, PathKind::BlockDevice { .. }) {
        return Err(format!("{path} is no block device"));
    }
    let consent = Consent { destroy: vec![PathBuf::from(path)], ..Consent::default() };
    let own = Own::of_this_process(Some(store.to_path_buf()));
    let access = Access::Write { size: Bytes::ZERO, also: Bytes::ZERO };
    let facts = stack::gather(host, &target, access, &consent, &own);
    Ok((facts, target.devices.iter().map(|device| device.name.clone()).collect()))
}

/// A device that the study is about to write to, or on which something of the study's is written.
#[derive(Clone, Copy)]
pub(super) struct InWork<'a> {
    pub path: &'a str,
    /// What the operator overrode when it was judged.
    pub overridden: &'a [String],
    /// What the study has built by now.
    pub built: &'a Built,
    /// What the journal says of it; `None` where something of the study's is on it, so that what it
    /// bears does not tell whose it is.
    pub known: Option<Known>,
}

/// Why a device may not be written any more that was judged when the study, or its stack, began: all
/// that forbade it then, but for what the study built itself.
pub(super) fn why_not_written(host: &Host, device: InWork<'_>) -> Vec<RefusalReason> {
    let InWork { path, overridden, built, known } = device;
    let cannot = |why: String| vec![RefusalReason::CannotProbe { path: path.to_owned(), why }];
    // The store is not on it: that was judged before anything was written.
    let mut facts = match look(host, path, Path::new("/")) {
        Ok((facts, _)) => facts,
        Err(why) => return cannot(why),
    };
    let Subject::Block(block) = &mut facts.subject else {
        return cannot("it is no block device".to_owned());
    };
    built.leave_out(host, block);
    let may_bear = known.is_none_or(|known| may_bear_it(host, path, &facts, known));
    let may_be = |reason: &RefusalReason| match reason {
        RefusalReason::InUse { .. } => is_open_by_leave(&facts, overridden),
        RefusalReason::Unchecked { .. } => is_unchecked_by_leave(&facts, overridden),
        reason => may_bear && is_for_contents(reason),
    };
    let mut found = reasons(&facts);
    found.retain(|reason| !may_be(reason));
    found
}

/// Whether the operator overrode that somebody has a device open for writing.
fn is_open_by_leave(facts: &Facts, overridden: &[String]) -> bool {
    let word = format!("{} is in use by", facts.resolved.display());
    overridden.iter().any(|text| text.starts_with(&word))
}

/// Whether the operator overrode that the users of a device cannot be found out: how many are out of
/// sight changes meanwhile.
fn is_unchecked_by_leave(facts: &Facts, overridden: &[String]) -> bool {
    let word = format!("{} may be in use by others", facts.resolved.display());
    overridden.iter().any(|text| text.starts_with(&word))
}

fn reasons(facts: &Facts) -> Vec<RefusalReason> {
    match stack::decide(facts) {
        Ok(_) => Vec::new(),
        Err(refusal) => refusal.reasons().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_one_refusal_of_one_device() {
        let one = Override::parse("signature:/dev/disk/by-path/pci-0:0:1").unwrap();
        assert_eq!(one.device, "/dev/disk/by-path/pci-0:0:1");
        for bad in ["", "signature", "signature:", "mounted:/dev/sdb", "held:x", "all:/dev/sdb"] {
            let error = Override::parse(bad).unwrap_err();
            assert!(error.hint().unwrap().contains("one refusal of one device"), "{bad}");
        }
    }

    #[test]
    fn what_is_no_device_is_refused() {
        let host = Host::this();
        let none = |_: &str| Known::No;
        for path in ["/dev/null", "/dev/no-such-device", "/dev/shm"] {
            let error = judge(&host, &[path.to_owned()], &[], &none, Path::new("/")).unwrap_err();
            assert!(matches!(&error, PlayError::Refused(all) if all.len() == 1), "{error}");
        }
    }
}
