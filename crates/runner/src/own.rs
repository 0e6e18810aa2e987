//! Which file a name stood for when the run took it: names can be given to other files meanwhile,
//! and those are not ours to write, mark or remove.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, XattrFlags};
use stack::ConfirmError;

use crate::RunError;

/// A file or device, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Of a file: that of its file system; of a device: its own number.
    device: u64,
    /// 0 of a device.
    inode: u64,
}

impl Identity {
    fn of_stat(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice | FileType::CharacterDevice => {
                Self { device: stat.st_rdev, inode: 0 }
            }
            _ => Self { device: stat.st_dev, inode: stat.st_ino },
        }
    }

    /// Of what is open.
    pub(crate) fn of(file: impl AsFd) -> std::io::Result<Self> {
        Ok(Self::of_stat(&rustix::fs::fstat(file)?))
    }

    /// Whether `path` stands for it, and for it alone: no link to it counts.
    pub(crate) fn is_at(self, path: &Path) -> bool {
        rustix::fs::lstat(path).is_ok_and(|stat| Self::of_stat(&stat) == self)
    }

    /// Refuses what is open under `path` if it is another file.
    pub(crate) fn confirm(self, file: impl AsFd, path: &Path) -> Result<(), RunError> {
        let seen = Self::of(file).map_err(crate::rigs::files::file_error("examine", path))?;
        if seen == self { Ok(()) } else { Err(self.exchanged(seen, path)) }
    }

    /// Refuses to touch a name in a directory, which `path` shows to the user, if it stands for
    /// another file.
    pub(crate) fn confirm_in(
        self,
        directory: impl AsFd,
        name: &OsStr,
        path: &Path,
    ) -> Result<(), RunError> {
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| crate::rigs::files::file_error("examine", path)(errno.into()))?;
        let seen = Self::of_stat(&stat);
        if seen == self { Ok(()) } else { Err(self.exchanged(seen, path)) }
    }

    /// Holds what is at `path`, which must be it, without opening it for anything. No link in the
    /// place of it is followed.
    pub(crate) fn hold(self, path: &Path) -> Result<OwnedFd, RunError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| crate::rigs::files::file_error("examine", path)(errno.into()))?;
        self.confirm(&held, path)?;
        Ok(held)
    }

    fn exchanged(self, seen: Self, path: &Path) -> RunError {
        let show = |id: Self| format!("inode {} on device {}", id.inode, id.device);
        let path = path.display().to_string();
        ConfirmError::Exchanged { path, seen: show(seen), wanted: show(self) }.into()
    }
}

/// Opens what is at `path` without following a link or waiting for anybody: another may have put a
/// pipe there.
pub(crate) fn open_calmly(path: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Opens for writing what is held already. Never waits.
pub(crate) fn open_held(held: &OwnedFd, path: &Path) -> std::io::Result<File> {
    let by_number = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match std::fs::symlink_metadata(&by_number) {
        Ok(_) => rustix::fs::open(&by_number, flags, Mode::empty())?,
        Err(_) => rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?,
    };
    Ok(File::from(opened))
}

/// A file of ours.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub path: PathBuf,
    pub identity: Identity,
    /// Of one that goes with the run: the run's own number, for its mark.
    pub owner: Option<u64>,
}

/// What is open under `path`, as ours.
pub(crate) fn own(path: &Path, file: &File, owner: Option<u64>) -> Result<Own, RunError> {
    let identity = Identity::of(file).map_err(crate::rigs::files::file_error("examine", path))?;
    Ok(Own { path: path.to_path_buf(), identity, owner })
}

impl Own {
    /// Removes it, if its name is still its own.
    pub(crate) fn remove(&self) -> std::io::Result<()> {
        if self.identity.is_at(&self.path) { std::fs::remove_file(&self.path) } else { Ok(()) }
    }

    /// Marks it as one that no run uses any more.
    pub(crate) fn release(&self) {
        let Ok(file) = open_calmly(&self.path, OpenOptions::new().read(true)) else { return };
        if Identity::of(&file).is_ok_and(|found| found == self.identity)
            // A file that is gone needs no mark; one without is theirs who named it.
            && let Ok(value) = stack::mark_value_released(&file)
        {
            mark(&file, value, None);
        }
    }
}

/// Marks an open file, with its owner if it has one. Where there are no extended attributes it cannot be known as ours later,
/// which only means that it must be named to be overwritten.
pub(crate) fn mark(file: &File, value: Vec<u8>, owner: Option<u64>) {
    let value = match owner {
        Some(owner) => stack::mark_of_scratch(value, owner),
        None => value,
    };
    let _ = rustix::fs::fsetxattr(file, stack::MARK_NAME, &value, XattrFlags::empty());
}
