//! Names of what we make, so that everything of ours is known at sight.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In front of every name that we give.
const PREFIX: &str = "plimsoll";

/// The kernel's name of an md array has 32 bytes; the longest of ours takes 22 beside the key.
const KEY_MAX: usize = 10;

/// Names of arrays, volumes, pools and mount points of one stack.
///
/// They hold the key of their study: what a crash left can be told from anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Names {
    key: String,
    part: Option<String>,
    mount_root: String,
}

/// Why a key makes no names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamesError {
    /// Letters that some tool would refuse, too many, or none.
    #[error("key `{0}` is not 1 to {KEY_MAX} of a-z and 0-9")]
    Key(String),
    /// Not a path from the root, or with words that a mount table cannot hold.
    #[error("mount root `{0}` is not a plain absolute path")]
    MountRoot(String),
}

impl NamesError {
    /// What would be one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Key(_) => None,
            Self::MountRoot(_) => Some("/run/plimsoll is usual".to_owned()),
        }
    }
}

impl Names {
    /// Where mount points are made: gone after a restart, as the mounts are.
    pub const MOUNT_ROOT: &'static str = "/run/plimsoll";

    /// Names with a study's key.
    ///
    /// # Errors
    ///
    /// A key that is not 1 to 10 of a-z and 0-9.
    pub fn new(key: &str) -> Result<Self, NamesError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if key.is_empty() || key.len() > KEY_MAX || !key.chars().all(plain) {
            return Err(NamesError::Key(key.to_owned()));
        }
        Ok(Self { key: key.to_owned(), part: None, mount_root: Self::MOUNT_ROOT.to_owned() })
    }

    /// The same names, mounted below another directory.
    ///
    /// # Errors
    ///
    /// A path that is not absolute, or has `..`, white space or control characters in it.
    pub fn with_mount_root(self, root: &str) -> Result<Self, NamesError> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
        let steps_up = root.split('/').any(|part| part == "..");
        if !root.starts_with('/') || steps_up || root.chars().any(odd) {
            return Err(NamesError::MountRoot(root.to_owned()));
        }
        Ok(Self { mount_root: root.trim_end_matches('/').to_owned(), ..self })
    }

    /// The names of the stack under the write-ahead log.
    pub fn wal(&self) -> Self {
        Self { part: Some("wal".to_owned()), ..self.clone() }
    }

    /// The key of the study.
    pub fn key(&self) -> &str {
        &self.key
    }

    fn base(&self) -> String {
        match &self.part {
            Some(part) => format!("{PREFIX}-{}-{part}", self.key),
            None => format!("{PREFIX}-{}", self.key),
        }
    }

    /// Name of the md array that is leg `leg`, from 0.
    pub fn md_leg(&self, leg: usize) -> String {
        format!("{}-leg{leg}", self.base())
    }

    /// Name of one half, `a` or `b`, of a leg that is a mirror of two stripes.
    pub fn md_half(&self, leg: usize, half: char) -> String {
        format!("{}-leg{leg}{half}", self.base())
    }

    /// Name of the md array over all legs.
    pub fn md_top(&self) -> String {
        format!("{}-top", self.base())
    }

    /// Volume group over all legs.
    pub fn group(&self) -> String {
        self.base()
    }

    /// Volume group that makes leg `leg`.
    pub fn group_of_leg(&self, leg: usize) -> String {
        self.md_leg(leg)
    }

    /// The logical volume in a group of ours.
    pub const fn volume(&self) -> &'static str {
        "data"
    }

    /// Zfs pool.
    pub fn pool(&self) -> String {
        self.base()
    }

    /// Label of the file system: every kind takes 12 bytes.
    pub const fn label(&self) -> &'static str {
        PREFIX
    }

    /// Where the file system is mounted.
    pub fn mount_point(&self) -> String {
        let part = self.part.as_deref().unwrap_or("data");
        format!("{}/{}/{part}", self.mount_root, self.key)
    }

    /// Whether a name of an array, group or pool is one that we give.
    pub fn is_ours(name: &str) -> bool {
        name.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('-'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_the_kernel_and_are_ours() {
        let names = Names::new("0123456789").unwrap();
        for name in [names.wal().md_half(99, 'b'), names.md_top(), names.wal().group_of_leg(0)] {
            assert!(name.len() <= 32 && Names::is_ours(&name), "{name}");
        }
        assert!(names.label().len() <= 12);
        assert_eq!(names.wal().mount_point(), "/run/plimsoll/0123456789/wal");
        assert!(!Names::is_ours("plimsolls") && !Names::is_ours("data"));
    }

    #[test]
    fn odd_keys_and_roots_are_refused() {
        for key in ["", "0123456789a", "A", "a-b", "a/b", "ä"] {
            assert!(Names::new(key).is_err(), "{key}");
        }
        for root in ["", "mnt", "/a/../b", "/a b", "/a\n"] {
            assert!(Names::new("k").unwrap().with_mount_root(root).is_err(), "{root}");
        }
        let names = Names::new("k").unwrap().with_mount_root("/mnt/").unwrap();
        assert_eq!(names.mount_point(), "/mnt/k/data");
    }
}
