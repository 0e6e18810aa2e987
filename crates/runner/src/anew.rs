//! Files that are made, and files that begin empty before a visit: cut to nothing, or removed and
//! made anew.
//!
//! A run can be killed at any moment, and what it leaves must still be known as ours, if it was:
//! the mark is widened before a file is cut, and a file made anew has its mark before its name.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, unlinkat};
use rustix::io::Errno;
use units::Bytes;

use crate::RunError;
use crate::own::{self, Identity, Own};
use crate::rigs::files::{file_error, give_length, lock};

/// A file that is to begin empty.
pub(crate) struct Anew<'a> {
    pub path: &'a Path,
    /// Known as ours by its mark.
    pub ours: Option<&'a Own>,
    /// How long it can become.
    pub size: Bytes,
}

impl Anew<'_> {
    /// Cuts it to nothing.
    pub(crate) fn truncate(&self, file: &File) -> Result<(), RunError> {
        // As when it was made: where there are no extended attributes it has no mark.
        self.mark(file).map_err(file_error("examine", self.path))?;
        file.set_len(0).map_err(file_error("cut to nothing", self.path))
    }

    /// Removes it and makes it anew, empty, locked, with the permissions that it had. At no time is
    /// there a file of that name that is ours and does not say so.
    pub(crate) fn remake(&self, old: &File) -> Result<File, RunError> {
        let mode = old.metadata().map_err(file_error("examine", self.path))?.permissions();
        let identity = Identity::of(old).map_err(file_error("examine", self.path))?;
        let file = self.empty(&mode, identity)?;
        let owner = old.metadata().map_err(file_error("examine", self.path))?;
        // Whoever it belonged to must be able to use it.
        fchown(&file, Some(owner.uid()), Some(owner.gid()))
            .map_err(file_error("give its owner to", self.path))?;
        Ok(file)
    }

    fn empty(&self, mode: &Permissions, identity: Identity) -> Result<File, RunError> {
        let (directory, name) = self.directory()?;
        let failed = |what| move |errno: Errno| file_error(what, self.path)(io::Error::from(errno));
        match self.nameless(&directory, mode) {
            Some(file) => {
                lock(&file, self.path)?;
                identity.confirm_in(&directory, name, self.path)?;
                unlinkat(&directory, name, AtFlags::empty()).map_err(failed("remove"))?;
                link(&file, &directory, name).map_err(failed("name"))?;
                Ok(file)
            }
            None => {
                identity.confirm_in(&directory, name, self.path)?;
                unlinkat(&directory, name, AtFlags::empty()).map_err(failed("remove"))?;
                let file = create(&directory, name, mode.mode());
                let file = file.map_err(file_error("create", self.path))?;
                self.mark(&file).map_err(file_error("examine", self.path))?;
                lock(&file, self.path)?;
                Ok(file)
            }
        }
    }

    /// Where it is, for all that is done to it: the path may lead elsewhere meanwhile.
    fn directory(&self) -> Result<(OwnedFd, &OsStr), RunError> {
        let failed = || file_error("open the directory of", self.path);
        let nowhere = || failed()(Errno::NOENT.into());
        let (parent, name) = (self.path.parent(), self.path.file_name());
        let (parent, name) = parent.zip(name).ok_or_else(nowhere)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty());
        Ok((directory.map_err(|errno| failed()(errno.into()))?, name))
    }

    /// A file beside it that has no name yet; `None` where the file system has no such files.
    fn nameless(&self, directory: &OwnedFd, mode: &Permissions) -> Option<File> {
        let file = nameless(directory)?;
        file.set_permissions(mode.clone()).ok()?;
        self.mark(&file).ok()?;
        Some(file)
    }

    /// Its length after the visit, whatever was written: what comes next addresses all of it.
    pub(crate) fn restore(&self, file: &File) -> Result<(), RunError> {
        let examine = file_error("examine", self.path);
        if file.metadata().map_err(examine)?.len() < self.size.get() {
            let what = "give its length to";
            file.set_len(self.size.get()).map_err(file_error(what, self.path))?;
        }
        if let Some(own) = self.ours {
            let mark = stack::mark_value(file).map_err(file_error("examine", self.path))?;
            own::mark(file, mark, own.owner);
        }
        Ok(())
    }

    /// Marks it, if it is ours, as ours at every length that it can get.
    fn mark(&self, file: &File) -> io::Result<()> {
        if let Some(own) = self.ours {
            own::mark(file, stack::mark_value_growing(file, self.size)?, own.owner);
        }
        Ok(())
    }
}

/// Makes a file of that length, which must still not exist: locked, and with its mark before its
/// name wherever that can be, so that a run that is killed leaves nothing that nobody knows.
///
/// * `directory`, `name`: where it is made, whatever `path` leads to by now.
pub(crate) fn make(
    directory: &OwnedFd,
    name: &OsStr,
    path: &Path,
    size: Bytes,
    owner: Option<u64>,
) -> Result<File, RunError> {
    if let Some(file) = nameless(directory) {
        lock(&file, path)?;
        give_length(&file, path, size, true, owner)?;
        match link(&file, directory, name) {
            Ok(()) => return Ok(file),
            Err(Errno::EXIST) => return Err(appeared(directory, name, path)),
            // This file system wants names from the beginning.
            Err(_) => {}
        }
    }
    let file = create(directory, name, 0o600).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => appeared(directory, name, path),
        _ => file_error("create", path)(error),
    })?;
    let made = own::own(path, &file, owner)?;
    let prepare = || {
        let mark = stack::mark_value_growing(&file, size).map_err(file_error("examine", path))?;
        own::mark(&file, mark, owner);
        lock(&file, path)?;
        give_length(&file, path, size, true, owner)
    };
    prepare().inspect_err(|_| {
        // The error itself is what to tell.
        let _ = made.remove();
    })?;
    Ok(file)
}

/// What is wrong with a name that was free when it was judged: two runs that begin in one directory
/// at one moment want the same one.
fn appeared(directory: &OwnedFd, name: &OsStr, path: &Path) -> RunError {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let there = rustix::fs::openat(directory, name, flags, Mode::empty()).map(File::from).ok();
    // Not by locking it: that could come before its maker does.
    match there.as_ref().and_then(stack::lock_holder) {
        Some(holder) => RunError::locked(path, Some(holder)),
        None => RunError::Appeared { path: path.to_path_buf() },
    }
}

/// Makes an empty file with a name; it must not exist, and no link of that name is followed.
fn create(directory: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(mode))?.into())
}

/// An empty file of that directory without a name; `None` where there are no such files.
fn nameless(directory: &OwnedFd) -> Option<File> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, ".", flags, Mode::from_raw_mode(0o600)).ok()?;
    let file = File::from(file);
    // Without /proc it could not be named; better known before anything else is done.
    std::fs::symlink_metadata(by_number(&file)).is_ok().then_some(file)
}

fn link(file: &File, directory: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    rustix::fs::linkat(CWD, by_number(file), directory, name, AtFlags::SYMLINK_FOLLOW)
}

fn by_number(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stack::Mark;

    fn place(name: &str) -> PathBuf {
        // On the disk that cargo builds on, which keeps extended attributes where any does.
        let base =
            option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = base.join(format!("plimsoll-anew-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    fn marked(path: &Path, size: u64) -> File {
        let file = File::create(path).unwrap();
        file.set_len(size).unwrap();
        let mark = stack::mark_value(&file).unwrap();
        let _ = uring::set_mark(path, stack::MARK_NAME, &mark);
        file
    }

    #[test]
    fn at_no_time_is_a_file_of_ours_somebody_elses() {
        for remakes in [false, true] {
            let path = place(if remakes { "remove" } else { "truncate" });
            let mut file = marked(&path, 8192);
            if stack::mark_of(&path) == Mark::Unsupported {
                println!("skipped: no extended attributes here");
                std::fs::remove_file(&path).unwrap();
                return;
            }
            let known = own::own(&path, &file, None).unwrap();
            let anew = Anew { path: &path, ours: Some(&known), size: Bytes::new(8192) };
            if remakes {
                file = anew.remake(&file).unwrap();
            } else {
                anew.truncate(&file).unwrap();
            }
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
            assert_eq!(stack::mark_of(&path), Mark::Ours, "empty");
            file.set_len(4000).unwrap();
            assert_eq!(stack::mark_of(&path), Mark::Ours, "as a killed run leaves it");
            file.set_len(8193).unwrap();
            assert!(matches!(stack::mark_of(&path), Mark::Stale { .. }), "longer than it could be");
            file.set_len(4000).unwrap();
            anew.restore(&file).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 8192);
            assert_eq!(stack::mark_of(&path), Mark::Ours);
            file.set_len(4000).unwrap();
            assert!(matches!(stack::mark_of(&path), Mark::Stale { .. }), "grows no more");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_file_made_anew_is_another_one_with_the_same_permissions() {
        let path = place("mode");
        let file = File::create(&path).unwrap();
        file.set_permissions(Permissions::from_mode(0o640)).unwrap();
        let before = file.metadata().unwrap();
        let anew = Anew { path: &path, ours: None, size: Bytes::new(8192) };
        let new = anew.remake(&file).unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(after.ino(), new.metadata().unwrap().ino());
        assert_ne!(after.ino(), before.ino());
        assert_eq!((after.mode() & 0o777, after.nlink(), after.len()), (0o640, 1, 0));
        assert!(!matches!(stack::mark_of(&path), Mark::Ours), "it was not ours and is not");
        std::fs::remove_file(&path).unwrap();
    }
}
