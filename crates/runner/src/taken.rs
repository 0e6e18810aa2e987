//! The last look at what was judged, before it is opened for writing. What is opened then is what
//! the judgement held, not what has its name by now.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::OFlags;
use stack::{Access, Handle, Host, Imprint, Mark, Permit};
use units::Bytes;

use crate::RunError;
use crate::ground::{file_error, lock};
use crate::own::Identity;
use crate::prepare::Paths;

/// How often a file is judged again that others change meanwhile.
const LOOKS: usize = 3;

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
    let file = held.open_with(OFlags::WRONLY).map_err(file_error("open for writing", path))?;
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

/// Opens a device for us alone, which is refused while the kernel has it in any use. It is opened
/// for writing when its first requests are.
pub(crate) fn destroyed(permit: &Permit) -> Result<File, RunError> {
    let path = permit.path.as_path();
    let held = still_there(permit)?;
    let flags = OFlags::RDONLY | OFlags::EXCL;
    let device = held.open_with(flags).map_err(file_error("open for us alone", path))?;
    permit.confirm(&device)?;
    permit.confirm_contents(&device)?;
    Ok(device)
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
    let host = Host::this();
    let facts = stack::look_again(&permit.path, permit.held())?;
    let target = stack::Target::from_facts(&host, facts);
    let access = Access::Write { size: Bytes::ZERO, also: Bytes::ZERO };
    let facts = stack::gather(&host, &target, access, &paths.consent, &paths.own);
    let again = stack::decide(&facts)?;
    if again.action == permit.action { Ok(()) } else { Err(permit.exchanged().into()) }
}
