//! What a killed run left: the scratch files that it made for itself alone, which say so in their
//! marks, and its directory of files. Found by `rm` of the run, and by the next run at that place.

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use record::{RunHeader, RunState, TargetKind};
use rustix::fs::{FileType, FlockOperation};
use stack::Mark;

use crate::own::{self, Identity};
use crate::prepare::{is_of, is_scratch};
use crate::rigs::database;
use crate::rigs::files::file_error;
use crate::{RunError, directory};

/// What became of what a run left.
#[derive(Debug, Default)]
pub struct LeftBehind {
    /// Files and directories that were removed.
    pub removed: Vec<PathBuf>,
    /// Scratch files of a killed run that are not where they were: another run may have removed them,
    /// or their file system is not mounted.
    pub missing: Vec<PathBuf>,
    /// What is left alone, or could not be removed, and why.
    pub troubles: Vec<RunError>,
}

/// Removes what a killed run left: scratch files that only it used, and the directory in which it
/// made files. What is not known as its own stays.
pub fn remove_left_behind(header: &RunHeader) -> LeftBehind {
    let mut found = LeftBehind::default();
    if header.imported.is_some() || header.target.kind == TargetKind::Twin {
        return found;
    }
    if header.target.kind == TargetKind::Database {
        for left in database::left_behind(header) {
            match db::remove(&left) {
                Ok(()) => found.removed.push(left.path),
                Err(error) => found.troubles.push(error.into()),
            }
        }
        return found;
    }
    match directory::remove_left_behind(header) {
        Ok(removed) => found.removed.extend(removed),
        Err(error) => found.troubles.push(error),
    }
    let key = directory::key(header);
    let targets = match header.targets.as_slice() {
        [] => std::slice::from_ref(&header.target),
        several => several,
    };
    let bases = targets.iter().map(|target| Path::new(&target.resolved));
    for base in bases.filter(|path| is_scratch(path)) {
        let there = named_like(base);
        if there.is_empty() && header.state == RunState::Killed {
            found.missing.push(base.to_path_buf());
        }
        for path in there {
            // One that has come to its end has removed its own.
            let ended = matches!(header.state, RunState::Complete);
            if !ended && stack::mark_of(&path) == Mark::Unsupported {
                found.troubles.push(RunError::Unmarked { path });
                continue;
            }
            if stack::scratch_owner(&path) != Some(key) {
                continue;
            }
            match remove(&path, key) {
                Ok(true) => found.removed.push(path),
                Ok(false) => {}
                Err(error) => found.troubles.push(error),
            }
        }
    }
    found
}

/// Scratch files at `base` that some run made for itself alone, and that are not among `wanted`.
pub(crate) fn stale(base: &Path, wanted: &[PathBuf]) -> Vec<(PathBuf, u64)> {
    let others = named_like(base).into_iter().filter(|path| !wanted.contains(path));
    let owned = others.filter_map(|path| Some((stack::scratch_owner(&path)?, path)));
    let ours = owned.filter(|(_, path)| stack::mark_of(path) == Mark::Ours);
    ours.map(|(owner, path)| (path, owner)).collect()
}

/// Removes a scratch file if it is still its owner's and no run uses it; false if one does.
pub(crate) fn remove(path: &Path, owner: u64) -> Result<bool, RunError> {
    let cannot = || file_error("remove", path);
    let file = match own::open_calmly(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(cannot())?,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let error = RunError::locked(path, stack::lock_holder(&file));
            return if matches!(error, RunError::InUse { .. }) { Ok(false) } else { Err(error) };
        }
        // Without locks nobody knows whether a run uses it.
        locked => locked.map_err(|errno| cannot()(errno.into()))?,
    }
    let identity = Identity::of(&file).map_err(cannot())?;
    let refuse = |why: String| Err(RunError::NotOurs { path: path.to_path_buf(), why });
    let found = rustix::fs::fstat(&file).map_err(|errno| cannot()(errno.into()))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || found.st_nlink > 1 {
        return refuse("it is not a regular file with a single name".to_owned());
    }
    match stack::mark_of_open(&file) {
        Mark::Ours if stack::scratch_owner_of_open(&file) == Some(owner) => {}
        Mark::Stale { why } => return refuse(why),
        _ => return refuse("it has no mark any more".to_owned()),
    }
    stack::confirm_alone(&file, path)?;
    if !identity.is_at(path) {
        return Err(cannot()(Error::other("it was exchanged for another file")));
    }
    std::fs::remove_file(path).map(|()| true).map_err(cannot())
}

/// The regular file at `base`, and those that have its name and a number.
fn named_like(base: &Path) -> Vec<PathBuf> {
    let entries = base.parent().and_then(|place| std::fs::read_dir(place).ok());
    let entries = entries.into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut named: Vec<_> =
        files.map(|entry| entry.path()).filter(|path| is_of(path, base)).collect();
    named.sort();
    named
}
