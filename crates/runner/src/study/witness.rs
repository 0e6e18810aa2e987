//! What is on a device now, held against what the journal says was left there.

use std::fs::File;
use std::path::Path;

use layout::{DeviceId, Made};
use stack::Host;
use stack::build::{block_of, end_marks, identity, uuid_on};
use study::Marks;
use study::journal::{Entry, State};

use crate::study::{JournalFile, Known, PlayError};

/// Both ends of a device; `None` where they cannot be read.
pub(super) fn now(host: &Host, device: &DeviceId) -> Option<Marks> {
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
    let Some(marks) = now(host, device) else { return Ok(()) };
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

/// Why a signature that looks like ours is another's; `None` if it is ours as far as is known.
pub(super) fn is_anothers(state: &State, made: &Made) -> Option<String> {
    let Made::Signature { device, kind, .. } = made else { return None };
    let ours = state.uuid(device, kind)?;
    let theirs = uuid_on(device.as_str(), kind).ok().flatten()?;
    (*ours != theirs)
        .then(|| format!("the {kind} on {device} is {theirs}, and the study made {ours}"))
}

/// What a journal says of a device, as it is now.
pub(super) fn known_as(host: &Host, state: &State, path: &str) -> Known {
    let device = DeviceId::new(path);
    let Some(found) = state.found(&device) else { return Known::No };
    let overridden = !found.overridden.is_empty();
    if !overridden && !state.has_written(&device) {
        return Known::No;
    }
    match now(host, &device).and_then(|marks| state.is_as_left(&device, &marks)) {
        Some(true) if overridden => Known::Overridden,
        Some(true) => Known::Ours,
        Some(false) => Known::Changed,
        None => Known::Unsure,
    }
}
