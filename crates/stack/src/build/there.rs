//! Whether something that a step made is there: an undo has something to do only then.

use std::time::Duration;

use layout::Made;

use crate::block;
use crate::build::act::{ActError, run};
use crate::host::Host;
use crate::mounts::mounts;

/// How long a look may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThereError {
    /// The program that would tell does not.
    #[error(transparent)]
    Act(#[from] ActError),
    /// More than one thing is on it.
    #[error("{device} bears several things, and which is ours cannot be told: {said}")]
    Ambiguous {
        /// Which.
        device: String,
        /// What `blkid` says.
        said: String,
    },
    /// The mount table cannot be read.
    #[error("the mount table cannot be read: {0}")]
    Mounts(std::io::Error),
}

/// Whether it is there. Of a signature with a name: whether that very one is.
pub fn is_there(host: &Host, made: &Made) -> Result<bool, ThereError> {
    match made {
        Made::Array { path } => Ok(array_named(host, path).is_some()),
        Made::Group { name } => succeeds(&["vgs", "--noheadings", "-o", "vg_name", name]),
        Made::Volume { path } => Ok(std::fs::symlink_metadata(path).is_ok()),
        Made::Pool { name } => succeeds(&["zpool", "list", "-H", "-o", "name", name]),
        Made::Signature { device, kind, name } => {
            signature(&as_called(host, device.as_str()), kind, name.as_deref())
        }
        Made::Mount { path } => {
            let all = mounts(host).map_err(ThereError::Mounts)?;
            Ok(all.iter().any(|mount| mount.point.as_os_str() == path.as_str()))
        }
        Made::Directory { path } => Ok(std::path::Path::new(path).is_dir()),
    }
}

/// The kernel's name of a running array.
pub(super) fn array(host: &Host, path: &str) -> Option<String> {
    let found = std::fs::canonicalize(path).ok()?;
    let name = found.file_name()?.to_str()?.to_owned();
    is_running(host, &name).then_some(name)
}

fn is_running(host: &Host, name: &str) -> bool {
    let state = host.line(format!("/sys/class/block/{name}/md/array_state"));
    state.is_some_and(|state| state != "clear")
}

/// The device of a running array by the name that its members bear. After a restart the system may
/// have put it together by itself, and called it `/dev/md127`.
pub fn array_named(host: &Host, path: &str) -> Option<String> {
    if array(host, path).is_some() {
        return Some(path.to_owned());
    }
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    let entries = std::fs::read_dir(host.path("/sys/class/block")).ok()?.flatten();
    let mut all: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    all.retain(|device| device.starts_with("md") && is_running(host, device));
    all.sort();
    all.into_iter().map(|device| format!("/dev/{device}")).find(|device| {
        let words = ["mdadm", "--detail", "--export", device];
        let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        run(&argv, LIMIT).is_ok_and(|said| bears(&said.out, name))
    })
}

/// The path of an array of ours as it is now; any other word as it is.
pub(super) fn as_called(host: &Host, word: &str) -> String {
    let array = word.strip_prefix("/dev/md/").filter(|name| !name.is_empty());
    array.and_then(|_| array_named(host, word)).unwrap_or_else(|| word.to_owned())
}

/// Which of these devices an array lies on now, through arrays below it as well; `None` if it does not
/// run, or anything else is below it. What the kernel has no more nobody writes to, and does not count.
///
/// * `among`: kernel names.
pub fn members_among(host: &Host, path: &str, among: &[String]) -> Option<Vec<String>> {
    let found = std::fs::canonicalize(array_named(host, path)?).ok()?;
    let mut found_below = Vec::new();
    let mut above = vec![found.file_name()?.to_str()?.to_owned()];
    while let Some(name) = above.pop() {
        if among.contains(&name) {
            found_below.push(name);
            continue;
        }
        let below = block::below(host, &name);
        if below.is_empty() {
            return None;
        }
        above.extend(below.into_iter().filter(|name| host.exists(block::class(name))));
    }
    found_below.sort();
    found_below.dedup();
    Some(found_below)
}

/// Whether what `mdadm --detail --export` says is of an array of that name. The host stands in
/// front: `any:plimsoll-...`.
fn bears(said: &str, name: &str) -> bool {
    let found = said.lines().find_map(|line| line.strip_prefix("MD_NAME="));
    found.is_some_and(|found| found.rsplit(':').next() == Some(name))
}

/// Whether a program that looks for one thing found it.
fn succeeds(words: &[&str]) -> Result<bool, ThereError> {
    let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match run(&argv, LIMIT) {
        Ok(_) => Ok(true),
        Err(ActError::Failed { how, .. }) if how.starts_with("ended with code") => Ok(false),
        // Nothing of its making can be there.
        Err(ActError::NotInstalled { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The number that something of that kind on a device was given when it was made; `None` if no such
/// thing is there, or it has none.
pub fn uuid_on(device: &str, kind: &str) -> Result<Option<String>, ThereError> {
    let Some(said) = said_of(device)? else { return Ok(None) };
    Ok(is_it(&said, kind, None).then(|| field(&said, "UUID")).flatten())
}

fn signature(device: &str, kind: &str, name: Option<&str>) -> Result<bool, ThereError> {
    Ok(said_of(device)?.is_some_and(|said| is_it(&said, kind, name)))
}

/// What `blkid` says of a device; `None` if it finds nothing on it.
fn said_of(device: &str) -> Result<Option<String>, ThereError> {
    // Probed on the device itself: a cache would tell what was there before.
    let words = ["blkid", "--probe", "--output", "export", device];
    let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match run(&argv, LIMIT) {
        Ok(said) => Ok(Some(said.out)),
        // 2: nothing found, or no such device.
        Err(ActError::Failed { how, .. }) if how == "ended with code 2" => Ok(None),
        Err(ActError::Failed { how, said, .. }) if how == "ended with code 8" => {
            Err(ThereError::Ambiguous { device: device.to_owned(), said })
        }
        Err(error) => Err(error.into()),
    }
}

fn field(said: &str, key: &str) -> Option<String> {
    said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=').map(unescaped))
}

/// The kinds of ext share one mark, and `blkid` names them by their features, not by who made them.
fn is_kind(found: &str, kind: &str) -> bool {
    let ext = |kind| matches!(kind, "ext2" | "ext3" | "ext4" | "ext4dev");
    found == kind || (ext(found) && ext(kind))
}

/// Whether what `blkid` says is of that kind and name.
fn is_it(said: &str, kind: &str, name: Option<&str>) -> bool {
    if !field(said, "TYPE").is_some_and(|found| is_kind(&found, kind)) {
        return false;
    }
    let Some(name) = name else { return true };
    // Arrays have the host in front: `any:plimsoll-...`.
    field(said, "LABEL").is_some_and(|label| label == name || label.ends_with(&format!(":{name}")))
}

/// `blkid` puts a backslash before what a shell would mind.
fn unescaped(text: &str) -> String {
    text.replace('\\', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_ours_by_kind_and_name() {
        let array =
            "DEVNAME=/dev/loop1\nUUID=1\nLABEL=any:plimsoll-0-leg0\nTYPE=linux_raid_member\n";
        assert!(is_it(array, "linux_raid_member", Some("plimsoll-0-leg0")));
        assert!(!is_it(array, "linux_raid_member", Some("leg0")));
        assert!(!is_it(array, "linux_raid_member", Some("plimsoll-1-leg0")));
        assert!(!is_it(array, "xfs", None));
        let escaped = "LABEL=any\\:plimsoll-0-leg0\nTYPE=linux_raid_member\n";
        assert!(is_it(escaped, "linux_raid_member", Some("plimsoll-0-leg0")));
        assert!(is_it("TYPE=LVM2_member\n", "LVM2_member", None));
        assert!(
            !is_it("TYPE=xfs\n", "xfs", Some("plimsoll")),
            "a name is wanted, and none is there"
        );
        assert!(!is_it("", "xfs", None));
        // Made by mkfs.ext4 without a journal and extents.
        assert!(is_it("TYPE=ext2\nLABEL=plimsoll\n", "ext4", Some("plimsoll")));
        assert!(!is_it("TYPE=ext2\nLABEL=mine\n", "ext4", Some("plimsoll")));
    }

    #[test]
    fn an_array_is_known_by_the_name_on_its_members() {
        let said = "MD_LEVEL=raid5\nMD_NAME=any:plimsoll-0-leg0\nMD_UUID=1\n";
        assert!(bears(said, "plimsoll-0-leg0"));
        assert!(!bears(said, "plimsoll-0-leg") && !bears(said, "leg0"));
        assert!(bears("MD_NAME=plimsoll-0-leg0\n", "plimsoll-0-leg0"));
        assert!(!bears("MD_LEVEL=raid5\n", "plimsoll-0-leg0"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let host = Host::this();
        for made in [
            Made::Array { path: "/dev/md/plimsoll-none".into() },
            Made::Volume { path: "/dev/plimsoll-none/data".into() },
            Made::Mount { path: "/run/plimsoll/none/data".into() },
            Made::Directory { path: "/run/plimsoll/none/data".into() },
        ] {
            assert!(!is_there(&host, &made).unwrap(), "{made:?}");
        }
        assert!(is_there(&host, &Made::Directory { path: "/proc".into() }).unwrap());
        assert!(is_there(&host, &Made::Mount { path: "/proc".into() }).unwrap());
    }
}
