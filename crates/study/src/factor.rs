//! What a study may vary, and the levels that each such thing has.

use std::str::FromStr;

use layout::{ArrayState, FileSystemKind, Level, Maker};
use units::Bytes;

/// One thing that has levels: several of them, and it is a factor; one, and it is the same in all
/// stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// As in the file: `file_system`.
    pub name: &'static str,
    /// In the order of the file, the base's first; as they are recorded with each run.
    pub levels: Vec<String>,
}

/// What nothing else is.
pub(crate) const NONE: &str = "none";
/// The mount options that nobody chose.
pub(crate) const DEFAULTS: &str = "defaults";
/// More than any machine has; a slip of the finger is no order for 40 000 devices.
const COUNT_MAX: u32 = 256;

/// How the levels of a key are read.
struct Key {
    name: &'static str,
    /// What is wanted, for messages.
    wanted: &'static str,
    /// The level in its only form, or nothing.
    read: fn(&str) -> Option<String>,
}

/// Every key of `[stack]`, in the order in which factors are listed.
const KEYS: [Key; 19] = [
    Key {
        name: "target",
        wanted: "a file, a directory, a device or a simulated device, of less than 4096 bytes",
        read: target,
    },
    Key { name: "memory", wanted: "a size such as 256MiB", read: size },
    Key { name: "legs", wanted: "1 to 256", read: count },
    Key { name: "members", wanted: "1 to 256", read: count },
    Key { name: "spares", wanted: "0 to 256", read: count_or_none },
    Key { name: "by", wanted: "md, lvm, btrfs or zfs", read: maker },
    Key { name: "level", wanted: "none or a level such as raid10", read: level },
    Key { name: "chunk", wanted: "a size such as 128KiB", read: size },
    Key { name: "stripe_by", wanted: "md, lvm or zfs", read: stripe_maker },
    Key { name: "stripe_level", wanted: "raid0 or raid1", read: stripe_level },
    Key { name: "stripe_chunk", wanted: "a size such as 512KiB", read: size },
    Key { name: "file_system", wanted: "none or a file system such as xfs", read: file_system },
    Key { name: "mkfs", wanted: "words for mkfs, or none", read: text },
    Key {
        name: "mount",
        wanted: "mount options with one comma between two, or defaults",
        read: mount_options,
    },
    Key { name: "scheduler", wanted: "a scheduler such as none or mq-deadline", read: word },
    Key { name: "read_ahead", wanted: "a size such as 128KiB", read: size },
    Key { name: "nr_requests", wanted: "1 to 65536", read: requests },
    Key { name: "wal", wanted: "shared or own", read: wal },
    Key { name: "state", wanted: "healthy, degraded or rebuilding", read: state },
];

/// The names of all keys.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// The level that a text means for a key; an error says what is wanted.
///
/// `None`: there is no such key.
pub(crate) fn read(key: &str, text: &str) -> Option<(&'static str, Result<String, &'static str>)> {
    let key = KEYS.iter().find(|known| known.name == key)?;
    Some((key.name, (key.read)(text.trim()).ok_or(key.wanted)))
}

/// Where a key stands in the order of factors.
pub(crate) fn rank(name: &str) -> usize {
    KEYS.iter().position(|key| key.name == name).unwrap_or(KEYS.len())
}

fn word(text: &str) -> Option<String> {
    let plain = !text.is_empty() && !text.chars().any(char::is_control);
    plain.then(|| text.to_owned())
}

/// Longer paths no kernel takes.
fn target(text: &str) -> Option<String> {
    word(text).filter(|text| text.len() < 4096)
}

fn text(text: &str) -> Option<String> {
    word(text)
}

/// An empty one would be no option at all: a level that is the same as another by its stack.
fn mount_options(text: &str) -> Option<String> {
    let options: Vec<&str> = text.split(',').map(str::trim).collect();
    let whole = options.iter().all(|option| !option.is_empty());
    word(&options.join(",")).filter(|_| whole)
}

fn number(text: &str, least: u32, most: u32) -> Option<String> {
    let number = text.parse::<u32>().ok().filter(|n| (least..=most).contains(n))?;
    Some(number.to_string())
}

fn count(text: &str) -> Option<String> {
    number(text, 1, COUNT_MAX)
}

fn count_or_none(text: &str) -> Option<String> {
    number(text, 0, COUNT_MAX)
}

fn requests(text: &str) -> Option<String> {
    number(text, 1, 65_536)
}

fn size(text: &str) -> Option<String> {
    let size = Bytes::from_str(text).ok().filter(|size| *size > Bytes::ZERO)?;
    Some(size.exact())
}

fn maker(text: &str) -> Option<String> {
    let maker = Maker::from_str(text).ok().filter(|maker| *maker != Maker::Device)?;
    Some(maker.name().to_owned())
}

fn stripe_maker(text: &str) -> Option<String> {
    maker(text).filter(|maker| maker != Maker::Btrfs.name())
}

fn level(text: &str) -> Option<String> {
    if text == NONE {
        return Some(NONE.to_owned());
    }
    Level::from_str(text).ok().map(|level| level.name().to_owned())
}

fn stripe_level(text: &str) -> Option<String> {
    let level = Level::from_str(text).ok()?;
    matches!(level, Level::Raid0 | Level::Raid1).then(|| level.name().to_owned())
}

fn file_system(text: &str) -> Option<String> {
    if text == NONE {
        return Some(NONE.to_owned());
    }
    FileSystemKind::from_str(text).ok().map(|kind| kind.name().to_owned())
}

fn wal(text: &str) -> Option<String> {
    ["shared", "own"].contains(&text).then(|| text.to_owned())
}

fn state(text: &str) -> Option<String> {
    let all = [ArrayState::Healthy, ArrayState::Degraded, ArrayState::Rebuilding];
    all.iter().find(|state| state.name() == text).map(|state| state.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_one_form() {
        for (key, text, wanted) in [
            ("chunk", "128 KiB", Some("128KiB")),
            ("chunk", "0", None),
            ("memory", "256 MiB", Some("256MiB")),
            ("legs", "2", Some("2")),
            ("legs", "0", None),
            ("spares", "0", Some("0")),
            ("level", "RAID10", Some("raid10")),
            ("level", "none", Some("none")),
            ("level", "raid7", None),
            ("file_system", "xfs", Some("xfs")),
            ("file_system", "ntfs", None),
            ("by", "device", None),
            ("stripe_by", "btrfs", None),
            ("stripe_level", "raid5", None),
            ("state", "degraded", Some("degraded")),
            ("wal", "own", Some("own")),
            ("target", "", None),
            ("mount", "noatime, nodiratime", Some("noatime,nodiratime")),
            ("mount", "defaults", Some("defaults")),
            ("mount", ",,", None),
            ("mount", "noatime,", None),
            ("mount", "noatime,,nodiratime", None),
        ] {
            let (_, level) = read(key, text).unwrap();
            assert_eq!(level.ok().as_deref(), wanted, "{key} = {text}");
        }
        let long = format!("/{}", "x".repeat(4095));
        assert!(read("target", &long).unwrap().1.is_err());
        assert!(read("target", &long[..4095]).unwrap().1.is_ok());
        assert!(read("colour", "red").is_none());
    }
}
