//! Who else uses a file or a device: looked for by device and inode number over all processes, so
//! that links, bind mounts, overlays and nodes outside `/dev` hide nobody.

use std::collections::BTreeSet;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Statx, StatxFlags};

use crate::host::Host;
use crate::mounts::{DeviceNumber, Mount, mount_of, mounts, parse};
use crate::safety::{Process, Users};
use crate::target::FileId;

/// The magic number of sysfs for `statfs(2)`.
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// What users are looked for of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Files by every number under which they are seen: an overlay has its own.
    pub files: Vec<FileId>,
    /// Block devices.
    pub devices: Vec<DeviceNumber>,
    /// Numbers that memory maps give for the files' file systems, where they differ from `stat`'s.
    pub mapped_on: Vec<DeviceNumber>,
}

impl Wanted {
    fn is(&self, found: &Statx) -> bool {
        match FileType::from_raw_mode(u32::from(found.stx_mode)) {
            FileType::RegularFile => self.files.contains(&FileId {
                device: DeviceNumber { major: found.stx_dev_major, minor: found.stx_dev_minor },
                inode: found.stx_ino,
            }),
            FileType::BlockDevice => self.devices.contains(&DeviceNumber {
                major: found.stx_rdev_major,
                minor: found.stx_rdev_minor,
            }),
            _ => false,
        }
    }

    /// Whether a line of `/proc/PID/maps` may be of one of the files.
    fn may_map(&self, device: DeviceNumber, inode: u64) -> bool {
        self.files.iter().any(|file| {
            file.inode == inode && (file.device == device || self.mapped_on.contains(&device))
        })
    }
}

/// A mount, and the process through whose root it is reached: `None` for this one's.
#[derive(Clone, Debug)]
pub(crate) struct SeenMount {
    pub mount: Mount,
    pub process: Option<u32>,
}

impl SeenMount {
    /// Where a path of its namespace is reached.
    fn reach(&self, path: &Path) -> PathBuf {
        reach(self.process, path)
    }
}

fn reach(process: Option<u32>, path: &Path) -> PathBuf {
    let Some(process) = process else { return path.to_owned() };
    let root = PathBuf::from(format!("/proc/{process}/root"));
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn processes(host: &Host) -> Vec<u32> {
    host.names("/proc").iter().filter_map(|name| name.parse().ok()).collect()
}

/// The mounts of this process and of every other mount namespace that can be read.
pub(crate) fn all_mounts(host: &Host) -> Vec<SeenMount> {
    let mine = mounts(host).unwrap_or_default();
    let mut found: Vec<SeenMount> =
        mine.into_iter().map(|mount| SeenMount { mount, process: None }).collect();
    let mut namespaces: BTreeSet<PathBuf> = host.link("/proc/self/ns/mnt").into_iter().collect();
    for process in processes(host) {
        let Some(namespace) = host.link(format!("/proc/{process}/ns/mnt")) else { continue };
        if !namespaces.insert(namespace) {
            continue;
        }
        let bytes = host.bytes(format!("/proc/{process}/mountinfo")).unwrap_or_default();
        let all = parse(&bytes).into_iter();
        found.extend(all.map(|mount| SeenMount { mount, process: Some(process) }));
    }
    found
}

/// What about users of files and devices cannot be found out, because the kernel's own file systems
/// are not where they belong.
pub(crate) fn unchecked(host: &Host) -> Vec<String> {
    if !host.is_this() {
        return Vec::new();
    }
    let is = |path: &str, magic: u64| {
        rustix::fs::statfs(path).is_ok_and(|found| found.f_type as u64 == magic)
    };
    let mut found = Vec::new();
    let has_proc = is("/proc", rustix::fs::PROC_SUPER_MAGIC as u64)
        && host.link("/proc/self").is_some()
        && host.exists("/proc/self/mountinfo");
    if !has_proc {
        found.push("which processes use it and what is mounted (no procfs at /proc)".to_owned());
    }
    if !is("/sys", SYSFS_MAGIC) || !host.exists("/sys/class/block") {
        found.push("which devices lie on it or under it (no sysfs at /sys)".to_owned());
    }
    found
}

/// Every number under which a file is seen: its own, that of the file under an overlay, and those
/// that overlays give it whose upper directory it is in.
pub(crate) fn aliases(path: &Path, id: FileId, mounts: &[SeenMount]) -> Vec<FileId> {
    let mut found = vec![id];
    let overlays = mounts.iter().filter(|seen| seen.mount.file_system == "overlay");
    let upper = |seen: &SeenMount| seen.mount.value("upperdir").map(PathBuf::from);
    let overlays: Vec<(&SeenMount, PathBuf)> =
        overlays.filter_map(|seen| Some((seen, upper(seen)?))).collect();
    if overlays.is_empty() {
        return found;
    }
    let mine: Vec<Mount> =
        mounts.iter().filter(|seen| seen.process.is_none()).map(|s| s.mount.clone()).collect();
    let here = mount_of(&mine, path, None);
    for (seen, upper) in &overlays {
        let is_here = seen.process.is_none() && here.is_some_and(|here| here.id == seen.mount.id);
        if is_here && let Ok(rest) = path.strip_prefix(&seen.mount.point) {
            let under = upper.join(below_root(&seen.mount)).join(rest);
            // The upper directory is named as whoever mounted it saw it.
            let everywhere = mounts.iter().map(|seen| seen.process).collect::<BTreeSet<_>>();
            found.extend(
                everywhere.into_iter().filter_map(|process| file_at(&reach(process, &under))),
            );
        }
        if let Some(rest) = rest_below(path, &seen.reach(upper)) {
            let root = below_root(&seen.mount);
            let shown = rest.strip_prefix(&root).ok().map(|rest| seen.mount.point.join(rest));
            found.extend(shown.and_then(|shown| file_at(&seen.reach(&shown))));
        }
    }
    found.dedup();
    found
}

/// The part of the file system that is mounted, without the leading slash.
fn below_root(mount: &Mount) -> PathBuf {
    mount.root.strip_prefix("/").unwrap_or(&mount.root).to_owned()
}

/// What of `path` comes after the directory that is `above`, whatever its name is here.
fn rest_below(path: &Path, above: &Path) -> Option<PathBuf> {
    let wanted = stat(above)?;
    let is_above = |at: &&Path| {
        stat(at).is_some_and(|found| {
            found.stx_ino == wanted.stx_ino
                && (found.stx_dev_major, found.stx_dev_minor)
                    == (wanted.stx_dev_major, wanted.stx_dev_minor)
        })
    };
    let at = path.ancestors().skip(1).find(is_above)?;
    path.strip_prefix(at).ok().map(Path::to_owned)
}

fn file_at(path: &Path) -> Option<FileId> {
    let found = stat(path)?;
    let is_file = FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::RegularFile;
    let device = DeviceNumber { major: found.stx_dev_major, minor: found.stx_dev_minor };
    is_file.then_some(FileId { device, inode: found.stx_ino })
}

/// As the kernel has it in memory: a server that does not answer is not waited for.
fn stat(path: &Path) -> Option<Statx> {
    let mask = StatxFlags::TYPE | StatxFlags::INO;
    rustix::fs::statx(CWD, path, AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT, mask).ok()
}

/// Who else has any of it open for writing, or mapped.
pub(crate) fn users(host: &Host, wanted: &Wanted) -> Users {
    let mut found = Users::default();
    let own = own_id(host);
    for id in processes(host).into_iter().filter(|&id| Some(id) != own) {
        let process =
            || Process { id, name: host.line(format!("/proc/{id}/comm")).unwrap_or_default() };
        match has_open(host, id, wanted) {
            Some(true) => found.writers.push(process()),
            Some(false) => {}
            // Between the listing and the look processes end; those are gone, not unseen.
            None if host.exists(format!("/proc/{id}")) => found.unseen += 1,
            None => continue,
        }
        if has_mapped(host, id, wanted) {
            found.mappers.push(process());
        }
    }
    found
}

/// As [`users`], of a file that can be opened: the kernel is asked besides whether anybody has it
/// open for writing, who may be out of sight or no process at all.
///
/// * `opened`: a name of the file.
pub(crate) fn users_of_file(host: &Host, opened: &Path, wanted: &Wanted) -> Users {
    let mut found = users(host, wanted);
    let own = || own_id(host).and_then(|own| has_open(host, own, wanted)).unwrap_or(false);
    if host.is_this() && found.writers.is_empty() && has_hidden_writer(opened, wanted) && !own() {
        // Whoever was found now came between the two looks.
        found = users(host, wanted);
        found.hidden_writer = found.writers.is_empty() && has_hidden_writer(opened, wanted);
    }
    found
}

/// False where the kernel does not answer.
fn has_hidden_writer(path: &Path, wanted: &Wanted) -> bool {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let Ok(file) = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) else {
        return false;
    };
    let is_it =
        file.metadata().is_ok_and(|m| m.is_file() && wanted.files.contains(&FileId::of(&m)));
    is_it && kernel::has_writer(&file).unwrap_or(false)
}

/// This process's number in the namespace of `/proc`, which may be another than its own.
fn own_id(host: &Host) -> Option<u32> {
    host.link("/proc/self")?.to_str()?.parse().ok()
}

/// `None` if it cannot be seen.
fn has_open(host: &Host, id: u32, wanted: &Wanted) -> Option<bool> {
    let path = host.path(format!("/proc/{id}/fd"));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(&path, flags, Mode::empty()).ok()?;
    let mask = StatxFlags::TYPE | StatxFlags::INO;
    for entry in std::fs::read_dir(&path).ok()?.flatten() {
        let name = entry.file_name();
        let found = rustix::fs::statx(&directory, &name, AtFlags::STATX_DONT_SYNC, mask);
        if found.is_ok_and(|found| wanted.is(&found))
            && is_writer(host, id, &name.to_string_lossy())
        {
            return Some(true);
        }
    }
    Some(false)
}

/// Unknown counts as writing.
fn is_writer(host: &Host, id: u32, descriptor: &str) -> bool {
    let text = host.text(format!("/proc/{id}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
    // The lowest two bits: 0 is reading only.
    flags.is_none_or(|flags| flags & 3 != 0)
}

fn has_mapped(host: &Host, id: u32, wanted: &Wanted) -> bool {
    let Ok(maps) = host.bytes(format!("/proc/{id}/maps")) else { return false };
    maps.split(|&b| b == b'\n').filter_map(Mapped::parse).any(|mapped| {
        let exact = || {
            let path = format!("/proc/{id}/map_files/{}", mapped.range);
            stat(&host.path(path)).map(|found| wanted.is(&found))
        };
        // Only processes with rights over all others may follow the link.
        match wanted.may_map(mapped.device, mapped.inode) {
            true => exact().unwrap_or(true),
            false => {
                let is_like = wanted.files.iter().any(|file| file.inode == mapped.inode);
                let may_be = is_like || (mapped.is_shared && !wanted.devices.is_empty());
                may_be && exact().unwrap_or(false)
            }
        }
    })
}

/// A line of `/proc/PID/maps` that is of a file.
struct Mapped<'a> {
    range: &'a str,
    is_shared: bool,
    device: DeviceNumber,
    inode: u64,
}

impl<'a> Mapped<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
        let mut text = || std::str::from_utf8(words.next()?).ok();
        let (range, permissions, _, device, inode) = (text()?, text()?, text()?, text()?, text()?);
        let (major, minor) = device.split_once(':')?;
        let number = |word| u32::from_str_radix(word, 16).ok();
        let device = DeviceNumber { major: number(major)?, minor: number(minor)? };
        let inode = inode.parse().ok().filter(|&inode| inode != 0)?;
        Some(Self { range, is_shared: permissions.ends_with('s'), device, inode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_by_device_and_inode() {
        let line = b"7f0-7f1 rw-s 00000000 fd:12c 77     /a name with spaces";
        let mapped = Mapped::parse(line).unwrap();
        assert_eq!((mapped.range, mapped.is_shared, mapped.inode), ("7f0-7f1", true, 77));
        assert_eq!(mapped.device, DeviceNumber { major: 253, minor: 300 });
        for other in [&b"7f0-7f1 rw-p 0 00:00 0 [heap]"[..], b"", b"7f0 r--p 0 x:y 7 /a"] {
            assert!(Mapped::parse(other).is_none(), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn this_process_and_its_kernel_can_be_seen() {
        assert_eq!(unchecked(&Host::this()), [""; 0]);
        assert_eq!(own_id(&Host::this()), Some(std::process::id()));
    }

    #[test]
    fn a_directory_is_known_under_another_name() {
        let place = std::env::temp_dir().join(format!("plimsoll-users-{}", std::process::id()));
        std::fs::create_dir_all(place.join("a/b")).unwrap();
        std::os::unix::fs::symlink(place.join("a"), place.join("link")).unwrap();
        let rest = rest_below(&place.join("a/b/c"), &place.join("link"));
        assert_eq!(rest, Some("b/c".into()));
        assert_eq!(rest_below(&place.join("x"), &place.join("a")), None);
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn an_overlay_names_the_file_under_it() {
        let id = |inode| FileId { device: DeviceNumber { major: 8, minor: 1 }, inode };
        let none: [SeenMount; 0] = [];
        assert_eq!(aliases(Path::new("/a"), id(7), &none), [id(7)]);
    }
}
