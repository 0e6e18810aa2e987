//! The last look at what was judged, before it is opened for writing. What is opened then is what
//! the judgement held, not what has its name by now.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use stack::{Access, ConfirmError, DeviceNumber, Handle, Host, Mark, Permit, RefusalReason};
use units::Bytes;

use crate::RunError;
use crate::own::Identity;
use crate::prepare::Paths;
use crate::rigs::files::{file_error, lock};

/// So long is a use of a device waited for.
const MOMENT: Duration = Duration::from_secs(1);

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
    let imprint = || held.imprint().map_err(file_error("examine", path));
    let judged = imprint()?;
    judge(permit, paths)?;
    let file = held.open_with(OFlags::WRONLY).map_err(file_error("open for writing", path))?;
    permit.confirm(&file)?;
    lock(&file, path)?;
    // What others did between the last look and the lock.
    stack::confirm_alone(&file, path)?;
    if !held.is_at_its_name() || imprint()? != judged {
        return Err(permit.exchanged().into());
    }
    Ok((file, stack::mark_of_held(&held) == Mark::Ours))
}

/// Opens a device for us alone, which is refused while the kernel has it in any use, and judges it
/// again: now nothing else can get its number, and nobody can claim it or mount it. It is opened for
/// writing when its first requests are.
pub(crate) fn destroyed(permit: &Permit, paths: &Paths) -> Result<File, RunError> {
    let path = permit.path.as_path();
    let held = still_there(permit)?;
    let device = held.claim().map_err(|error| match error.kind() {
        std::io::ErrorKind::ResourceBusy => {
            let number = held.metadata().map(|found| DeviceNumber::from_dev(rdev(&found)));
            let holders = number.map_or_else(|_| Vec::new(), stack::openers);
            RunError::Claimed { path: path.to_path_buf(), holders }
        }
        _ => file_error("open for us alone", path)(error),
    })?;
    permit.confirm(&device)?;
    let now = held.imprint().map_err(file_error("examine", path))?;
    if let Some(first) = held.first().filter(|first| **first != now) {
        let (seen, wanted) = (now.device().to_owned(), first.device().to_owned());
        let path = path.display().to_string();
        return Err(ConfirmError::Changed { path, seen, wanted }.into());
    }
    permit.confirm_contents(&device)?;
    patiently(|| judge(permit, paths))?;
    // So that udev does not look at it meanwhile. Where there are no locks, it does.
    let _ = rustix::fs::flock(&device, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    Ok(device)
}

fn rdev(found: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::rdev(found)
}

/// Judges again what others use for a moment only: who lists loop devices or monitors drives has one
/// open for writing.
pub(crate) fn patiently<T>(judge: impl Fn() -> Result<T, RunError>) -> Result<T, RunError> {
    let late = Instant::now() + MOMENT;
    let is_use = |reason: &RefusalReason| matches!(reason, RefusalReason::InUse { .. });
    loop {
        match judge() {
            Err(RunError::Refused(refusal))
                if refusal.reasons().all(is_use) && Instant::now() < late =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            judged => return judged,
        }
    }
}

/// By all rules but that of space, which was judged for all files together.
fn judge(permit: &Permit, paths: &Paths) -> Result<(), RunError> {
    let host = Host::this();
    let found = stack::look_again(&permit.path, permit.held())?;
    let target = stack::Target::from_facts(&host, found);
    let access = Access::Write { size: Bytes::ZERO, also: Bytes::ZERO };
    let facts = stack::gather(&host, &target, access, &paths.consent, &paths.own);
    let again = stack::decide(&facts)?;
    if again.action == permit.action { Ok(()) } else { Err(permit.exchanged().into()) }
}
