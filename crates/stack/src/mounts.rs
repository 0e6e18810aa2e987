use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use crate::host::{Host, unescape};

/// Major and minor number of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct DeviceNumber {
    /// 0 for what is no device: tmpfs, network, overlay, btrfs, zfs.
    pub major: u32,
    /// Counted within the major.
    pub minor: u32,
}

impl DeviceNumber {
    /// From the `dev_t` of `stat`.
    pub fn from_dev(dev: u64) -> Self {
        Self { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// `8:1`.
impl FromStr for DeviceNumber {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.trim().split_once(':').ok_or(())?;
        Ok(Self { major: major.parse().map_err(|_| ())?, minor: minor.parse().map_err(|_| ())? })
    }
}

/// One mount: a line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The kernel's number of it.
    pub id: u64,
    /// Of the file system; major 0 where it has no single block device.
    pub device: DeviceNumber,
    /// Which directory of the file system is mounted: `/`, a subvolume, a bind mount's source.
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// `ext4`, `fuse.sshfs`.
    pub file_system: String,
    /// What was mounted: `/dev/sda1`, `server:/export`, `tank/data`.
    pub source: String,
    /// Options of the mount, then those of the file system, as the kernel lists them.
    pub options: Vec<String>,
}

impl Mount {
    /// Whether an option without a value is set.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|o| o == option)
    }

    /// The value of the last option `name=value`.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether nothing can be written through it.
    pub fn is_read_only(&self) -> bool {
        self.has("ro")
    }
}

/// `/srv (rw,noatime)`: for records.
impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.point.display(), self.options.join(","))
    }
}

/// Every mount that this process sees, in the kernel's order: later ones cover earlier ones.
/// Lines that cannot be read are left out.
pub fn mounts(host: &Host) -> std::io::Result<Vec<Mount>> {
    host.bytes("/proc/self/mountinfo").map(|text| parse(&text))
}

pub(crate) fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&b| b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let words: Vec<&[u8]> = line.split(|&b| b == b' ').filter(|w| !w.is_empty()).collect();
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    // The optional fields (propagation) end with a lone hyphen.
    let end = words.iter().skip(6).position(|w| *w == b"-")? + 6;
    let mut options: Vec<String> = text(words[5]).split(',').map(str::to_owned).collect();
    for option in text(words.get(end + 3).copied().unwrap_or_default()).split(',') {
        // Options hold escapes too (an overlay's upper directory).
        let option = unescape(option.as_bytes()).to_string_lossy().into_owned();
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    // The mount and the file system may differ: nothing can be written if either says `ro`.
    if options.iter().any(|o| o == "ro") {
        options.retain(|o| o != "rw");
    }
    Some(Mount {
        id: text(words[0]).parse().ok()?,
        device: text(words[2]).parse().ok()?,
        root: unescape(words[3]),
        point: unescape(words[4]),
        file_system: text(words.get(end + 1)?),
        source: unescape(words.get(end + 2)?).to_string_lossy().into_owned(),
        options,
    })
}

/// The mount that holds `path`, which must be absolute and without links: by the kernel's
/// number if known, else the longest mount point above it, the last of equals since it covers
/// the others.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path, id: Option<u64>) -> Option<&'a Mount> {
    id.and_then(|id| mounts.iter().find(|m| m.id == id)).or_else(|| {
        mounts
            .iter()
            .filter(|m| path.starts_with(&m.point))
            .max_by_key(|m| m.point.components().count())
    })
}

/// Whether a directory of this machine lies in the memory that `/dev` is, under whatever name.
pub fn is_in_devtmpfs(directory: &Path) -> bool {
    let all = mounts(&Host::this()).unwrap_or_default();
    mount_of(&all, directory, None).is_some_and(|mount| mount.file_system == "devtmpfs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
28 27 8:1 /sub /mnt/my\\040disk ro,noatime - xfs /dev/sda1 rw,attr2
29 27 0:40 / /m rw - fuse.sshfs me@host:/x rw,user_id=0
30 27 0:41 / /m rw - tmpfs tmpfs rw,size=4k
garbage line
31 27 0:x / /bad rw - tmpfs tmpfs rw
32 27 0:50 / /nothing rw - ext4
";

    #[test]
    fn mountinfo_reads_with_escapes_and_optional_fields() {
        let all = parse(TEXT.as_bytes());
        assert_eq!(all.len(), 5);
        assert_eq!(all[1].file_system, "ext4");
        assert_eq!(all[2].point, Path::new("/mnt/my disk"));
        assert_eq!(all[2].root, Path::new("/sub"));
        assert!(all[2].is_read_only() && !all[2].has("rw"));
        assert_eq!(all[2].device, DeviceNumber { major: 8, minor: 1 });
        assert_eq!(all[4].value("size"), Some("4k"));
    }

    #[test]
    fn the_mount_of_a_path_is_the_longest_and_the_last() {
        let all = parse(TEXT.as_bytes());
        let of = |path: &str| mount_of(&all, Path::new(path), None).unwrap().id;
        assert_eq!(of("/home/x"), 27);
        assert_eq!(of("/mnt/my disk/x"), 28);
        assert_eq!(of("/mnt/my diskette"), 27);
        assert_eq!(of("/m/a"), 30);
        assert_eq!(mount_of(&all, Path::new("/m/a"), Some(29)).unwrap().id, 29);
    }
}
