//! A store as it looks to one who has not opened it: who watches a store for hours keeps no lock on it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::claim;

/// The kernel's clock of files may stand still for so long.
const TICK: Duration = Duration::from_millis(50);

/// What the file of a store is. Another process that stores or removes something makes it another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside(Option<Stamp>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    bytes: u64,
    changed: Duration,
}

impl Outside {
    /// Of the file of that name.
    pub fn of(path: &Path) -> Self {
        let stamp = |found: std::fs::Metadata| Stamp {
            file: (found.dev(), found.ino()),
            bytes: found.len(),
            changed: Duration::new(
                u64::try_from(found.mtime()).unwrap_or(0),
                u32::try_from(found.mtime_nsec()).unwrap_or(0),
            ),
        };
        Self(std::fs::metadata(path).ok().map(stamp))
    }

    /// Whether it is a file at all.
    pub const fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Whether it is the same file, whatever is in it.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let file = |outside: &Self| outside.0.as_ref().map(|stamp| stamp.file);
        file(self).is_some() && file(self) == file(other)
    }

    /// Whether the last change lies so far back that the next will show.
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.as_ref().is_none_or(|stamp| now.abs_diff(stamp.changed) > TICK)
    }
}

/// Whether a process holds a run of the store in that file now.
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
        let copy = path.with_extension("copy");
        std::fs::write(&copy, "more").unwrap();
        std::fs::rename(&copy, &path).unwrap();
        assert!(!one.is_same_file(&Outside::of(&path)));
        std::fs::remove_file(&path).unwrap();
        assert!(!one.is_same_file(&Outside::of(&path)));
    }
}
