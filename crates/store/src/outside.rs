//! A store as it looks to one who has not opened it.
//!
//! Who watches a store for hours keeps no connection to it: with one the log would never be put back
//! into the file, and a copy that somebody puts in the file's place would then be read with the log of
//! another.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{claim, log_path};

/// The kernel's clock of files may stand still for so long.
const TICK: Duration = Duration::from_millis(50);

/// What the files of a store are. Another process that stores or removes something makes it another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    file: Option<Stamp>,
    log: Option<Stamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: Duration,
}

impl Outside {
    /// Of the file of that name, and of the log beside it.
    pub fn of(path: &Path) -> Self {
        Self { file: stamp(path), log: stamp(&log_path(path)) }
    }

    /// Whether it is a file at all.
    pub const fn is_there(&self) -> bool {
        self.file.is_some()
    }

    /// Whether it is the same file, whatever is in it.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let name = |outside: &Self| outside.file.as_ref().map(|file| (file.device, file.inode));
        name(self).is_some() && name(self) == name(other)
    }

    /// Whether the last change lies so far back that the next will show.
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut stamps = self.file.iter().chain(&self.log);
        stamps.all(|stamp| now.abs_diff(stamp.changed) > TICK)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    let seconds = u64::try_from(found.mtime()).unwrap_or(0);
    let nanos = u32::try_from(found.mtime_nsec()).unwrap_or(0);
    Some(Stamp {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.len(),
        changed: Duration::new(seconds, nanos),
    })
}

/// Whether a process holds a run of the store in that file now; see [`crate::Store::is_live`].
pub fn is_live(path: &Path, id: &str) -> bool {
    claim::is_claimed(path, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_and_another_content_are_told_apart() {
        let path = std::env::temp_dir().join(format!("plimsoll-outside-{}", std::process::id()));
        assert!(!Outside::of(&path).is_there());
        std::fs::write(&path, "one").unwrap();
        let one = Outside::of(&path);
        assert!(one.is_there() && one == Outside::of(&path) && !one.is_settled());
        std::fs::write(&path, "more").unwrap();
        let more = Outside::of(&path);
        assert!(one != more && one.is_same_file(&more));
        std::fs::write(log_path(&path), "log").unwrap();
        assert_ne!(more, Outside::of(&path));
        let copy = path.with_extension("copy");
        std::fs::write(&copy, "more").unwrap();
        std::fs::rename(&copy, &path).unwrap();
        assert!(!one.is_same_file(&Outside::of(&path)));
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(log_path(&path)).unwrap();
        assert!(!one.is_same_file(&Outside::of(&path)));
    }
}
