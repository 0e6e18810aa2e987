//! The last look at what was judged, before it is opened for writing. What is opened then is what
//! the judgement held, not what has its name by now.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use stack::{
    Access, Action, ConfirmError, Consent, DeviceNumber, Handle, Host, Imprint, Mark, PathFacts,
    Permit, Refusal, RefusalReason,
};
use units::Bytes;

use crate::RunError;
use crate::ground::{file_error, lock};
use crate::own::Identity;
use crate::prepare::Paths;

/// How often a file is judged again that others change meanwhile.
const LOOKS: usize = 3;
/// Who only looks at a device or a file has done so after that long.
const MOMENT: Duration = Duration::from_millis(40);

/// What was judged, if it still has its name.
fn still_there(permit: &Permit) -> Result<Arc<Handle>, RunError> {
    match permit.held().get() {
        Some(held) if held.is_at_its_name() => Ok(held),
        _ => Err(permit.exchanged().into()),
    }
}

/// The directory in which a file is to be made, and the file's name: whatever becomes of the path,
/// the file is made where it was judged.
pub(crate) fn directory(permit: &Permit) -> Result<(OwnedFd, &OsStr), RunError> {
    let path = permit.path.as_path();
    let held = still_there(permit)?;
    let name = path.file_name().ok_or_else(|| RunError::from(permit.exchanged()))?;
    let directory = held.as_fd().try_clone_to_owned();
    Ok((directory.map_err(file_error("hold the directory of", path))?, name))
}

/// What another side of the comparison has taken: only which file it is.
pub(crate) fn shared(permit: &Permit) -> Result<Identity, RunError> {
    let path = permit.path.as_path();
    let held = Handle::open(path).map_err(file_error("examine", path))?;
    let is_judged = permit.held().get().is_some_and(|judged| {
        let made = judged.metadata().is_ok_and(|found| found.is_dir());
        made || held.metadata().is_ok_and(|found| judged.is(&found))
    });
    if !is_judged {
        return Err(permit.exchanged().into());
    }
    Identity::of(&held).map_err(file_error("examine", path))
}

/// Opens an existing file for writing and locks it. Also gives whether it is ours by its mark.
pub(crate) fn overwritten(permit: &Permit, paths: &Paths) -> Result<(File, bool), RunError> {
    let path = permit.path.as_path();
    let held = still_there(permit)?;
    let judged = look_again(permit, &held, paths)?;
    let file = open_for_writing(&held, path)?;
    permit.confirm(&file)?;
    lock(&file, path)?;
    // What others did between the last look and the lock.
    if !held.is_at_its_name() {
        return Err(permit.exchanged().into());
    }
    if held.imprint().map_err(file_error("examine", path))? != judged {
        judge_again(permit, paths)?;
    }
    let ours = stack::mark_of_held(&held) == Mark::Ours;
    Ok((file, ours))
}

/// Opens a device for us alone, which is refused while the kernel has it in any use, and judges it
/// again: now nothing else can get its number, and nobody can claim it or mount it. It is opened for
/// writing when its first requests are.
pub(crate) fn destroyed(permit: &Permit, paths: &Paths) -> Result<File, RunError> {
    let path = permit.path.as_path();
    let held = still_there(permit)?;
    let device = claim(&held, path)?;
    permit.confirm(&device)?;
    let now = held.imprint().map_err(file_error("examine", path))?;
    if let Some(first) = held.first().filter(|first| **first != now) {
        let (seen, wanted) = (now.device().to_owned(), first.device().to_owned());
        let path = path.display().to_string();
        return Err(ConfirmError::Changed { path, seen, wanted }.into());
    }
    permit.confirm_contents(&device)?;
    judge_device(permit, &paths.consent, paths, &|| {
        Ok(stack::look_again(&permit.path, permit.held())?)
    })?;
    Ok(device)
}

/// The last look at devices, right before they are first opened for writing. What is on them was
/// looked at when they were claimed, and may be of another side of the comparison by now.
pub(crate) fn before_writing(paths: &Paths) -> Result<(), RunError> {
    let consent = Consent { even_though_signature: true, ..paths.consent.clone() };
    for permit in paths.permits.iter().filter(|permit| permit.action == Action::Destroy) {
        let look = || {
            let facts = stack::look(&permit.path)?;
            // The run has claimed it when it took it.
            facts.held.get().iter().for_each(|held| held.set_claimed());
            Ok(facts)
        };
        judge_device(permit, &consent, paths, &look)?;
    }
    Ok(())
}

fn claim(held: &Handle, path: &Path) -> Result<File, RunError> {
    match patiently(Errno::BUSY, || held.claim()) {
        Err(error) if is(&error, Errno::BUSY) => {
            let number = held.metadata().map(|found| DeviceNumber::from_dev(found.rdev()));
            let holders = number.map_or_else(|_| Vec::new(), stack::openers);
            Err(RunError::Claimed { path: path.to_path_buf(), holders })
        }
        claimed => claimed.map_err(file_error("open for us alone", path)),
    }
}

fn open_for_writing(held: &Handle, path: &Path) -> Result<File, RunError> {
    match patiently(Errno::WOULDBLOCK, || held.open_with(OFlags::WRONLY)) {
        Err(error) if is(&error, Errno::WOULDBLOCK) => {
            let holder = held.lease_holder();
            Err(RunError::Leased { path: path.to_path_buf(), holder })
        }
        opened => opened.map_err(file_error("open for writing", path)),
    }
}

fn is(error: &std::io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// Tries again what others keep from us for a moment: who looks at a file has a lease of it, who
/// looks at a device has claimed it.
fn patiently<T>(busy: Errno, attempt: impl Fn() -> std::io::Result<T>) -> std::io::Result<T> {
    for _ in 0..LOOKS {
        match attempt() {
            Err(error) if is(&error, busy) => std::thread::sleep(MOMENT),
            done => return done,
        }
    }
    attempt()
}

/// Judges a device, again and again where all that forbids is a writer: who lists loop devices or
/// monitors drives has one open for a moment.
fn judge_device(
    permit: &Permit,
    consent: &Consent,
    paths: &Paths,
    look: &dyn Fn() -> Result<PathFacts, RunError>,
) -> Result<(), RunError> {
    for _ in 0..LOOKS {
        match judge(permit, consent, paths, look()?) {
            Err(RunError::Refused(refusal)) if is_written(&refusal) => std::thread::sleep(MOMENT),
            judged => return judged,
        }
    }
    judge(permit, consent, paths, look()?)
}

fn is_written(refusal: &Refusal) -> bool {
    refusal.reasons().all(|reason| matches!(reason, RefusalReason::OpenWriter { .. }))
}

/// That nothing became of the file, or else that by all rules it may still be written.
fn look_again(permit: &Permit, held: &Handle, paths: &Paths) -> Result<Imprint, RunError> {
    let path = permit.path.as_path();
    let imprint = || held.imprint().map_err(file_error("examine", path));
    let mut judged = held.first().cloned();
    let is_free = |file: &File| kernel::has_writer(file).is_ok_and(|written| !written);
    let mut alone = held.to_read().is_some_and(is_free);
    for _ in 0..LOOKS {
        let now = imprint()?;
        if alone && judged.as_ref() == Some(&now) {
            return Ok(now);
        }
        judge_again(permit, paths)?;
        // All its users were just looked at.
        (judged, alone) = (Some(now), true);
    }
    let now = imprint()?;
    if judged.as_ref() == Some(&now) { Ok(now) } else { Err(permit.exchanged().into()) }
}

/// By all rules but that of space, which was judged for all files together.
fn judge_again(permit: &Permit, paths: &Paths) -> Result<(), RunError> {
    judge(permit, &paths.consent, paths, stack::look_again(&permit.path, permit.held())?)
}

fn judge(
    permit: &Permit,
    consent: &Consent,
    paths: &Paths,
    facts: PathFacts,
) -> Result<(), RunError> {
    let host = Host::this();
    let target = stack::Target::from_facts(&host, facts);
    let access = Access::Write { size: Bytes::ZERO, also: Bytes::ZERO };
    let facts = stack::gather(&host, &target, access, consent, &paths.own);
    let again = stack::decide(&facts)?;
    if again.action == permit.action { Ok(()) } else { Err(permit.exchanged().into()) }
}
