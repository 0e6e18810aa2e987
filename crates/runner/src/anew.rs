//! Files that begin empty before a visit: cut to nothing, or removed and made anew.
//!
//! A run can be killed at any moment, and what it leaves must still be known as ours, if it was:
//! the mark is widened before a file is cut, and a file made anew has its mark before its name.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};
use units::Bytes;

use crate::RunError;
use crate::ground::{file_error, lock};
use crate::own::{self, Identity};

/// `O_TMPFILE`: a file without a name.
const O_TMPFILE: i32 = 0o20_200_000;

/// A file that is to begin empty.
pub(crate) struct Anew<'a> {
    pub path: &'a Path,
    /// Known as ours by its mark.
    pub ours: bool,
    /// How long it can become.
    pub size: Bytes,
}

impl Anew<'_> {
    /// Cuts it to nothing.
    pub(crate) fn truncate(&self, file: &File) -> Result<(), RunError> {
        if self.ours {
            let mark = self.mark(file).map_err(file_error("examine", self.path))?;
            // As when it was made: where there are no extended attributes it has no mark.
            own::mark(file, &mark);
        }
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
        match self.nameless(mode) {
            Some(file) => {
                lock(&file, self.path)?;
                identity.confirm_at(self.path)?;
                std::fs::remove_file(self.path).map_err(file_error("remove", self.path))?;
                rustix::fs::linkat(CWD, by_number(&file), CWD, self.path, AtFlags::SYMLINK_FOLLOW)
                    .map_err(|errno| file_error("name", self.path)(errno.into()))?;
                Ok(file)
            }
            None => {
                identity.confirm_at(self.path)?;
                std::fs::remove_file(self.path).map_err(file_error("remove", self.path))?;
                let mut options = OpenOptions::new();
                options.write(true).create_new(true).mode(mode.mode());
                let file = options.open(self.path).map_err(file_error("create", self.path))?;
                if self.ours {
                    let mark = self.mark(&file).map_err(file_error("examine", self.path))?;
                    own::mark(&file, &mark);
                }
                lock(&file, self.path)?;
                Ok(file)
            }
        }
    }

    /// A file beside it that has no name yet; `None` where the file system has no such files.
    fn nameless(&self, mode: &Permissions) -> Option<File> {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(O_TMPFILE).mode(mode.mode());
        let file = options.open(self.path.parent()?).ok()?;
        file.set_permissions(mode.clone()).ok()?;
        if self.ours {
            let mark = self.mark(&file).ok()?;
            own::mark(&file, &mark);
        }
        // Without /proc it could not be named; better known before the other one is gone.
        std::fs::symlink_metadata(by_number(&file)).is_ok().then_some(file)
    }

    /// Its length after the visit, whatever was written: what comes next addresses all of it.
    pub(crate) fn restore(&self, file: &File) -> Result<(), RunError> {
        let examine = file_error("examine", self.path);
        if file.metadata().map_err(examine)?.len() < self.size.get() {
            let what = "give its length to";
            file.set_len(self.size.get()).map_err(file_error(what, self.path))?;
        }
        if self.ours {
            let mark = stack::mark_value(file).map_err(file_error("examine", self.path))?;
            own::mark(file, &mark);
        }
        Ok(())
    }

    fn mark(&self, file: &File) -> io::Result<Vec<u8>> {
        stack::mark_value_growing(file, self.size)
    }
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
            let anew = Anew { path: &path, ours: true, size: Bytes::new(8192) };
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
        let anew = Anew { path: &path, ours: false, size: Bytes::new(8192) };
        let new = anew.remake(&file).unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(after.ino(), new.metadata().unwrap().ino());
        assert_ne!(after.ino(), before.ino());
        assert_eq!((after.mode() & 0o777, after.nlink(), after.len()), (0o640, 1, 0));
        assert!(!matches!(stack::mark_of(&path), Mark::Ours), "it was not ours and is not");
        std::fs::remove_file(&path).unwrap();
    }
}
