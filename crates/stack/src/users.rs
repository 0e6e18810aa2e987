//! Who else uses a file or a device: looked for by device and inode number over all processes, so
//! that links, bind mounts, overlays and nodes outside `/dev` hide nobody.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, RawDir, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use crate::born::{Born, Likeness};
use crate::elsewhere::Elsewhere;
use crate::host::Host;
use crate::locks::{Opening, lease_holder, lease_holder_of};
use crate::mounts::{DeviceNumber, Mount, mounts, parse};
use crate::overlays::Hides;
use crate::safety::{Lease, Process, Users};
use crate::target::FileId;

/// The magic number of overlays for `statfs(2)`.
pub(crate) const OVERLAY_MAGIC: u64 = 0x794C_7630;
/// A lease that is there at so many looks is no other's look.
const LEASE_LOOKS: u32 = 4;
/// Between two of them.
const LEASE_MOMENT: Duration = Duration::from_millis(20);
/// The magic number of sysfs for `statfs(2)`.
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// What users are looked for of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Files by every number under which they are seen: an overlay has its own.
    pub files: Vec<FileId>,
    /// Those under which they may be mapped, and not open for writing.
    pub once: Vec<FileId>,
    /// Block devices.
    pub devices: Vec<DeviceNumber>,
    /// What to look for in overlays that names do not lead through.
    pub elsewhere: Elsewhere,
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

    /// Whether a line of `/proc/PID/maps` has the inode number of one of the files, if on another
    /// device: maps and `stat` do not always agree on that.
    fn is_like(&self, mapped: &Mapped) -> bool {
        self.files.iter().chain(&self.once).any(|file| file.inode == mapped.inode)
    }

    /// Whether what is mapped is one of them.
    fn is_mapped(&self, found: &Statx) -> bool {
        self.is(found) || self.once.contains(&id_of(found))
    }

    /// Whether a line of `/proc/PID/maps` has both numbers of one of the files as `stat` gives them.
    fn has(&self, mapped: &Mapped) -> bool {
        let id = FileId { device: mapped.device, inode: mapped.inode };
        self.files.contains(&id) || self.once.contains(&id)
    }

    /// Whether a line of `/proc/PID/maps` is of one of the files.
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

/// Where a path of a process's namespace is reached.
pub(crate) fn reach(process: Option<u32>, path: &Path) -> PathBuf {
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

/// A regular file by its numbers.
pub(crate) fn file_at(path: &Path) -> Option<FileId> {
    let found = stat(path).ok()?;
    is_regular(&found).then_some(id_of(&found))
}

pub(crate) fn id_of(found: &Statx) -> FileId {
    let device = DeviceNumber { major: found.stx_dev_major, minor: found.stx_dev_minor };
    FileId { device, inode: found.stx_ino }
}

/// As the kernel has it in memory: a server that does not answer is not waited for.
pub(crate) fn stat(path: &Path) -> Result<Statx, Errno> {
    let mask = StatxFlags::TYPE | StatxFlags::INO;
    rustix::fs::statx(CWD, path, AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT, mask)
}

/// Who else has any of it open for writing, or mapped.
pub(crate) fn users(host: &Host, wanted: &Wanted) -> Users {
    let mut found = Users { may_be_hidden: host.is_this() && !shows_all(host), ..Users::default() };
    let own = own_id(host);
    // The system's first process may have rights that root was denied, and uses nothing of others.
    let init = (!found.may_be_hidden && may_look()).then_some(1);
    let mut scan = Scan::new(host, wanted);
    for id in processes(host).into_iter().filter(|&id| Some(id) != own) {
        let process =
            || Process { id, name: host.line(format!("/proc/{id}/comm")).unwrap_or_default() };
        let (open, mapped) = scan.process(id);
        if open == Sight::Yes {
            found.writers.push(process());
        }
        if mapped == Sight::Yes {
            found.mappers.push(process());
        }
        let is_unseen = open == Sight::Unseen || mapped == Sight::Unseen;
        if is_unseen && Some(id) != init && may_use(host, id) {
            found.unseen += 1;
        }
    }
    found
}

/// As [`users`], of a file that can be opened: the kernel is asked besides whether anybody has it
/// open for writing, who may be out of sight or no process at all.
///
/// * `names`: of the file, and of that which holds its bytes, if that is another.
pub(crate) fn users_of_file(host: &Host, names: &[PathBuf], wanted: &Wanted) -> Users {
    let mut found = users(host, wanted);
    if host.is_this() {
        found.leases = lease_holders(names, Opening::ToWrite);
        // What an overlay shows has leases of its own, which opening the file below does not end.
        let above = lasting(&|| lease_holder_of(&wanted.files));
        let is_known = |one: &Process| found.leases.iter().any(|known| known.id == one.id);
        let above = above.filter(|one| !is_known(one));
        found.leases.extend(above);
    }
    if !found.writers.is_empty() {
        found.lease = Lease::Taken;
    }
    if !found.leases.is_empty() || !host.is_this() || found.lease == Lease::Taken {
        return found;
    }
    found.may_not_read = names.iter().any(|name| is_own_unreadable(name));
    let own = || own_id(host).map(|own| Scan::new(host, wanted).open(own)) == Some(Sight::Yes);
    found.lease = lease(names, wanted);
    if found.lease == Lease::Taken && !own() {
        // Whoever was found now came between the two looks.
        found = users(host, wanted);
        found.lease = if found.writers.is_empty() { lease(names, wanted) } else { Lease::Taken };
        found.hidden_writer = found.writers.is_empty() && found.lease == Lease::Taken;
    }
    found
}

/// Whether the file is of this process's user, who may not read it.
fn is_own_unreadable(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_own = std::fs::metadata(path).is_ok_and(|found| found.uid() == own);
    is_own && rustix::fs::accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).is_err()
}

/// The process that has a lease to write of a file: opening the file in any way would send it a signal,
/// which by default ends it.
///
/// * `path`: of the file, which is not opened.
pub fn write_lease_of(path: &Path) -> Option<Process> {
    lease_holders(&[path.to_owned()], Opening::ToRead).pop()
}

/// Who has a lease of the file, under any of its names.
pub(crate) fn lease_holders(names: &[PathBuf], opening: Opening) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    for name in names {
        let last = lasting(&|| lease_holder(name, opening));
        found.extend(last.filter(|one| found.iter().all(|known| known.id != one.id)));
    }
    found
}

/// Who has a lease at all looks: who looks at a file in the same way has one for a moment.
fn lasting(look: &dyn Fn() -> Option<Process>) -> Option<Process> {
    let looks = (0..LEASE_LOOKS).map(|at| {
        std::thread::sleep(LEASE_MOMENT * at.min(1));
        look()
    });
    let looks: Option<Vec<Process>> = looks.collect();
    looks.and_then(|mut looks| looks.pop())
}

/// The kernel's answer for all names together.
fn lease(names: &[PathBuf], wanted: &Wanted) -> Lease {
    let all: Vec<Lease> = names.iter().map(|name| lease_of(name, wanted)).collect();
    if all.contains(&Lease::Taken) {
        return Lease::Taken;
    }
    let is_free = !all.is_empty() && all.iter().all(|&one| one == Lease::Free);
    if is_free { Lease::Free } else { Lease::Unknown }
}

fn lease_of(path: &Path, wanted: &Wanted) -> Lease {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    if lease_holder(path, Opening::ToRead).is_some() {
        return Lease::Unknown;
    }
    let Ok(file) = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) else {
        return Lease::Unknown;
    };
    let is_it =
        file.metadata().is_ok_and(|m| m.is_file() && wanted.files.contains(&FileId::of(&m)));
    match kernel::has_writer(&file) {
        Ok(true) if is_it => Lease::Taken,
        Ok(false) if is_it => Lease::Free,
        _ => Lease::Unknown,
    }
}

/// This process's number in the namespace of `/proc`, which may be another than its own.
fn own_id(host: &Host) -> Option<u32> {
    host.link("/proc/self")?.to_str()?.parse().ok()
}

/// The kernel's threads are in the first PID namespace only, and hidden with all others' processes.
fn shows_all(host: &Host) -> bool {
    Status::of(host, 2).is_ok_and(|found| found.is_kernel())
}

/// Whether this process has the right to look into others.
fn may_look() -> bool {
    capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_PTRACE))
}

/// Whether a process that could not be looked into is there and may have files open.
fn may_use(host: &Host, id: u32) -> bool {
    match Status::of(host, id) {
        Ok(found) => !found.is_kernel() && !found.has_ended(),
        Err(error) => !is_gone(error.raw_os_error()),
    }
}

/// Between the listing and the look processes end, descriptors are closed.
fn is_gone(error: Option<i32>) -> bool {
    error.is_some_and(|raw| [Errno::NOENT, Errno::SRCH].iter().any(|e| e.raw_os_error() == raw))
}

fn is_forbidden(error: Errno) -> bool {
    error == Errno::ACCESS || error == Errno::PERM
}

/// Of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    state: u8,
    flags: u64,
    threads: u64,
}

impl Status {
    /// `PF_KTHREAD` of the kernel.
    const KERNEL: u64 = 0x0020_0000;

    fn of(host: &Host, id: u32) -> io::Result<Self> {
        let bytes = host.bytes(format!("/proc/{id}/stat"))?;
        Self::parse(&bytes).ok_or_else(|| io::Error::other("not as in proc(5)"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        // Names may hold anything, parentheses too.
        let end = bytes.iter().rposition(|&b| b == b')')?;
        let text = std::str::from_utf8(bytes.get(end + 1..)?).ok()?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse().ok();
        let state = *words.first()?.as_bytes().first()?;
        Some(Self { state, flags: number(6)?, threads: number(17)? })
    }

    fn is_kernel(&self) -> bool {
        self.flags & Self::KERNEL != 0
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }
}

/// What a look at a process showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Yes,
    No,
    /// It could not be looked at, for want of rights.
    Unseen,
}

impl Sight {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::Unseen, _) | (_, Self::Unseen) => Self::Unseen,
            (Self::No, Self::No) => Self::No,
        }
    }
}

/// What a look at a descriptor showed.
enum Looked {
    No,
    /// Of a regular file or a device.
    Is(Likeness),
    /// It could not be looked at, for want of rights.
    Forbidden,
}

fn is_regular(found: &Statx) -> bool {
    FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::RegularFile
}

/// A look at all processes.
struct Scan<'a> {
    host: &'a Host,
    wanted: &'a Wanted,
    /// Whether the kernel can be asked about threads by the numbers of `/proc`.
    can_compare: bool,
    /// Mapped files that were looked at, by what maps say of them. Numbers alone do not do: subvolumes
    /// of one btrfs have the same.
    mapped: HashMap<(DeviceNumber, u64, Vec<u8>), Sight>,
    /// The same of files of overlays.
    shown: HashMap<(DeviceNumber, u64, Vec<u8>), Sight>,
    /// Which devices that are mounted nowhere are overlays.
    overlays: HashMap<DeviceNumber, bool>,
}

impl<'a> Scan<'a> {
    fn new(host: &'a Host, wanted: &'a Wanted) -> Self {
        let can_compare = host.is_this() && own_id(host) == Some(std::process::id());
        let (mapped, shown, overlays) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { host, wanted, can_compare, mapped, shown, overlays }
    }

    /// Whether it has any of it open for writing, and whether it has mapped any.
    fn process(&mut self, id: u32) -> (Sight, Sight) {
        let threads = self.threads(id);
        let open = self.open_in_any(id, &threads);
        // Who may not see one may not see the other.
        let mapped = if open == Sight::Unseen { open } else { self.mapped(id, &threads) };
        (open, mapped)
    }

    fn open(&mut self, id: u32) -> Sight {
        let threads = self.threads(id);
        self.open_in_any(id, &threads)
    }

    /// The other threads of a process. Most have none, which the number of links shows at once.
    fn threads(&self, id: u32) -> Vec<u32> {
        let path = format!("/proc/{id}/task");
        let mask = StatxFlags::NLINK;
        let found = rustix::fs::statx(CWD, self.host.path(&path), AtFlags::empty(), mask);
        if found.is_ok_and(|found| found.stx_nlink <= 3) {
            return Vec::new();
        }
        let names = self.host.names(path);
        names.iter().filter_map(|name| name.parse().ok()).filter(|&one| one != id).collect()
    }

    /// In the process's table of open files, and in those of threads that have their own. The first
    /// thread may have ended, and its table with it.
    fn open_in_any(&mut self, id: u32, threads: &[u32]) -> Sight {
        let mut found = self.open_in(&format!("/proc/{id}/fd"));
        let mut tables = vec![id];
        for &thread in threads {
            let is_known = |&table: &u32| {
                self.can_compare && kernel::share_open_files(table, thread).unwrap_or(false)
            };
            // Who may not see the first table may not see the others.
            if found != Sight::No || tables.iter().any(is_known) {
                continue;
            }
            // Of those with a table of their own few are kept: a comparison costs less than a look.
            if tables.len() < TABLES_MAX {
                tables.push(thread);
            }
            found = found.or(self.open_in(&format!("/proc/{id}/task/{thread}/fd")));
        }
        found
    }

    fn open_in(&mut self, path: &str) -> Sight {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(self.host.path(path), flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(error) if is_gone(Some(error.raw_os_error())) => return Sight::No,
            Err(_) => return Sight::Unseen,
        };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(&directory, &mut buffer);
        let mut found = Sight::No;
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if name.to_bytes().starts_with(b".") {
                continue;
            }
            let writes = || is_writer(self.host, path, &name.to_string_lossy());
            match self.descriptor(&directory, name) {
                Looked::No => {}
                // The rest of the table is not to be seen either.
                Looked::Forbidden => return Sight::Unseen,
                Looked::Is(Likeness::Yes) if writes() => return Sight::Yes,
                Looked::Is(Likeness::Unknown) if writes() => found = Sight::Unseen,
                Looked::Is(_) => {}
            }
        }
        found
    }

    /// Whether a descriptor is of any of it, for whatever.
    fn descriptor(&mut self, directory: &OwnedFd, name: &CStr) -> Looked {
        let mask = StatxFlags::TYPE | StatxFlags::INO | Born::MASK;
        match rustix::fs::statx(directory, name, AtFlags::STATX_DONT_SYNC, mask) {
            Ok(found) if self.wanted.is(&found) => Looked::Is(Likeness::Yes),
            Ok(found) if is_regular(&found) => {
                let on = id_of(&found).device;
                if !self.wanted.elsewhere.may_be_on(on) {
                    return Looked::No;
                }
                let ask = || {
                    let flags = OFlags::PATH | OFlags::CLOEXEC;
                    let file = rustix::fs::openat(directory, name, flags, Mode::empty());
                    file.and_then(rustix::fs::fstatfs)
                };
                let is_overlay = self.is_overlay(on, ask);
                // Who may write has a copy of the data.
                Looked::Is(self.wanted.elsewhere.has(&found, is_overlay, &Hides::No, false))
            }
            Err(error) if is_forbidden(error) => self.forbidden(directory, name),
            // Closed meanwhile, or of a server that does not answer.
            Ok(_) | Err(_) => Looked::No,
        }
    }

    /// Either the process may not be looked into, or a FUSE file system answers its own user only,
    /// who is asked for nothing but which file system it is.
    fn forbidden(&self, directory: &OwnedFd, name: &CStr) -> Looked {
        let nothing = StatxFlags::empty();
        match rustix::fs::statx(directory, name, AtFlags::STATX_DONT_SYNC, nothing) {
            Ok(found) => {
                let on = id_of(&found).device;
                let may_be = self.wanted.files.iter().any(|file| file.device == on);
                if may_be { Looked::Forbidden } else { Looked::No }
            }
            Err(error) if is_forbidden(error) => Looked::Forbidden,
            Err(_) => Looked::No,
        }
    }

    /// * `ask`: of a file on it.
    fn is_overlay(
        &mut self,
        device: DeviceNumber,
        ask: impl FnOnce() -> rustix::io::Result<rustix::fs::StatFs>,
    ) -> bool {
        let known = self.wanted.elsewhere.is_overlay(device);
        let asked = || ask().is_ok_and(|found| found.f_type as u64 == OVERLAY_MAGIC);
        known.unwrap_or_else(|| *self.overlays.entry(device).or_insert_with(asked))
    }

    /// The memory of a process is that of its threads, and outlives the first of them.
    fn mapped(&mut self, id: u32, threads: &[u32]) -> Sight {
        let main = self.host.bytes(format!("/proc/{id}/maps"));
        match main {
            Ok(maps) if !maps.is_empty() => return self.mapped_in(id, &maps),
            Err(error) if !is_gone(error.raw_os_error()) => return Sight::Unseen,
            Ok(_) | Err(_) => {}
        }
        for &thread in threads {
            let maps = self.host.bytes(format!("/proc/{id}/task/{thread}/maps"));
            if let Some(maps) = maps.ok().filter(|maps| !maps.is_empty()) {
                // A thread has a directory of its own in `/proc`, which is not listed.
                return self.mapped_in(thread, &maps);
            }
        }
        Sight::No
    }

    fn mapped_in(&mut self, id: u32, maps: &[u8]) -> Sight {
        let mut found = Sight::No;
        for mapped in maps.split(|&b| b == b'\n').filter_map(Mapped::parse) {
            found = found.or(self.is_mapped(id, &mapped));
            if found == Sight::Yes {
                break;
            }
        }
        found
    }

    fn is_mapped(&mut self, id: u32, mapped: &Mapped) -> Sight {
        if self.wanted.elsewhere.may_be_on(mapped.device) {
            let key = (mapped.device, mapped.inode, mapped.path.to_vec());
            let known = self.shown.get(&key).copied();
            let found = known.unwrap_or_else(|| self.is_elsewhere(id, mapped));
            self.shown.insert(key, found);
            if found != Sight::No {
                return found;
            }
        }
        if self.wanted.may_map(mapped.device, mapped.inode) || self.wanted.is_like(mapped) {
            return self.look_at_map(id, mapped);
        }
        if self.wanted.devices.is_empty() {
            return Sight::No;
        }
        // Maps name the node of a device, which may be anywhere.
        let key = (mapped.device, mapped.inode, mapped.path.to_vec());
        if let Some(known) = self.mapped.get(&key) {
            return *known;
        }
        let found = self.look_at_map(id, mapped);
        self.mapped.insert(key, found);
        found
    }

    /// Whether it is one of the files by an overlay that names do not lead through.
    fn is_elsewhere(&mut self, id: u32, mapped: &Mapped) -> Sight {
        let path = self.host.path(format!("/proc/{id}/map_files/{}", mapped.range));
        let mask = StatxFlags::TYPE | StatxFlags::INO | Born::MASK;
        let look = |path: &Path| rustix::fs::statx(CWD, path, AtFlags::STATX_DONT_SYNC, mask);
        // Only processes with rights over all others may follow the link; others go by the name.
        let by_name = || {
            let name = Path::new(OsStr::from_bytes(mapped.path));
            let path = self.host.path(reach(Some(id), name));
            let found = look(&path).ok().filter(|found| found.stx_ino == mapped.inode)?;
            Some((path, found))
        };
        let Some((path, found)) = look(&path).ok().map(|found| (path, found)).or_else(by_name)
        else {
            return Sight::No;
        };
        // Before Linux 6.8 maps have the number of the file below, which no name may lead to.
        if self.wanted.is_mapped(&found) {
            return Sight::Yes;
        }
        let is_overlay = self.is_overlay(mapped.device, || rustix::fs::statfs(&path));
        let elsewhere = &self.wanted.elsewhere;
        let hides = elsewhere.hides(mapped.device);
        let name = Path::new(OsStr::from_bytes(mapped.path));
        let is_unlike = elsewhere.is_unlike(mapped.device, name);
        match elsewhere.has(&found, is_overlay, &hides, is_unlike) {
            Likeness::Yes => Sight::Yes,
            Likeness::Unknown => Sight::Unseen,
            Likeness::No => Sight::No,
        }
    }

    fn look_at_map(&self, id: u32, mapped: &Mapped) -> Sight {
        let is_likely = self.wanted.may_map(mapped.device, mapped.inode);
        let path = format!("/proc/{id}/map_files/{}", mapped.range);
        match stat(&self.host.path(&path)) {
            Ok(found) if self.wanted.is_mapped(&found) => Sight::Yes,
            // Before Linux 6.8 maps have the number of the file below an overlay, and the link leads to what
            // the overlay shows.
            Ok(found) if self.wanted.has(mapped) && id_of(&found).device != mapped.device => {
                Sight::Yes
            }
            Ok(_) => Sight::No,
            // Only processes with rights over all others may follow the link.
            Err(_) if is_likely => Sight::Yes,
            Err(error) if is_forbidden(error) && !self.wanted.devices.is_empty() => Sight::Unseen,
            Err(_) => Sight::No,
        }
    }
}

/// Threads with tables of their own are compared with that many of them.
const TABLES_MAX: usize = 8;

/// Unknown counts as writing.
///
/// * `table`: the directory of descriptors.
fn is_writer(host: &Host, table: &str, descriptor: &str) -> bool {
    let text = host.text(format!("{table}info/{descriptor}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
    // The lowest two bits: 0 is reading only.
    flags.is_none_or(|flags| flags & 3 != 0)
}

/// A line of `/proc/PID/maps` that is of a file.
struct Mapped<'a> {
    range: &'a str,
    device: DeviceNumber,
    inode: u64,
    path: &'a [u8],
}

impl<'a> Mapped<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
        let path = line.splitn(6, |&b| b == b' ').nth(5).unwrap_or_default().trim_ascii_start();
        let mut text = || std::str::from_utf8(words.next()?).ok();
        let (range, _, _, device, inode) = (text()?, text()?, text()?, text()?, text()?);
        let (major, minor) = device.split_once(':')?;
        let number = |word| u32::from_str_radix(word, 16).ok();
        let device = DeviceNumber { major: number(major)?, minor: number(minor)? };
        let inode = inode.parse().ok().filter(|&inode| inode != 0)?;
        Some(Self { range, device, inode, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_by_device_and_inode() {
        let line = b"7f0-7f1 rw-s 00000000 fd:12c 77     /a name with spaces";
        let mapped = Mapped::parse(line).unwrap();
        assert_eq!((mapped.range, mapped.inode), ("7f0-7f1", 77));
        assert_eq!(mapped.path, b"/a name with spaces");
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
    fn threads_of_the_kernel_and_ended_processes_use_nothing() {
        let line = |name: &str, state, flags, threads| {
            let rest = "0 0 0 0 0 0 0 0 20 0";
            Status::parse(
                format!("7 ({name}) {state} 2 0 0 0 -1 {flags} {rest} {threads} 0\n").as_bytes(),
            )
        };
        let kernel = line("kworker/0:1", "I", 2_129_984, 1).unwrap();
        assert!(kernel.is_kernel() && !kernel.has_ended());
        let odd = line("a) Z 2 (b", "S", 4_194_304, 3).unwrap();
        assert_eq!(odd, Status { state: b'S', flags: 4_194_304, threads: 3 });
        assert!(!odd.is_kernel() && !odd.has_ended());
        assert!(line("gone", "Z", 0, 1).unwrap().has_ended());
        assert!(!line("first thread ended", "Z", 0, 2).unwrap().has_ended());
        assert_eq!(Status::parse(b"7 (short) S 1"), None);
    }

    #[test]
    fn this_process_has_open_what_it_has() {
        let host = Host::this();
        let me = std::env::current_exe().unwrap();
        let files = vec![file_at(&me).unwrap()];
        let wanted = Wanted { files, ..Wanted::default() };
        let mut scan = Scan::new(&host, &wanted);
        assert_eq!(scan.process(std::process::id()), (Sight::No, Sight::Yes));
    }
}
