//! Who else uses a file or a device. Of a file the kernel is asked; a device, and a file without
//! leases, is looked for by its number in all processes, so that links, bind mounts and nodes outside
//! `/dev` hide nobody.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Statx, StatxFlags};
use rustix::io::Errno;

use crate::held::{Handle, lease};
use crate::host::Host;
use crate::mounts::DeviceNumber;
use crate::safety::{Lease, Process, Refusal, RefusalReason, Users, in_use_by};
use crate::target::FileId;

/// The magic number of sysfs for `statfs(2)`.
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// What users are looked for of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub files: Vec<FileId>,
    pub devices: Vec<DeviceNumber>,
    /// Who only reads is a user, too.
    pub readers: bool,
}

impl Wanted {
    fn is(&self, found: &Statx) -> bool {
        let number = |major, minor| DeviceNumber { major, minor };
        match FileType::from_raw_mode(u32::from(found.stx_mode)) {
            FileType::RegularFile => self.files.contains(&id_of(found)),
            FileType::BlockDevice => {
                self.devices.contains(&number(found.stx_rdev_major, found.stx_rdev_minor))
            }
            _ => false,
        }
    }
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
    let mask = StatxFlags::TYPE | StatxFlags::INO;
    // As the kernel has it in memory: a server that does not answer is not waited for.
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found = rustix::fs::statx(CWD, path, flags, mask).ok()?;
    let kind = FileType::from_raw_mode(u32::from(found.stx_mode));
    (kind == FileType::RegularFile).then(|| id_of(&found))
}

fn id_of(found: &Statx) -> FileId {
    let device = DeviceNumber { major: found.stx_dev_major, minor: found.stx_dev_minor };
    FileId { device, inode: found.stx_ino }
}

/// Who else has any of it open.
pub(crate) fn users(host: &Host, wanted: &Wanted) -> Users {
    let mut found = Users { may_be_hidden: host.is_this() && !shows_all(host), ..Users::default() };
    let own = own_id(host);
    for id in processes(host).filter(|&id| Some(id) != own) {
        match open_in(host, wanted, id) {
            Sight::Yes => found.by.extend(process(host, id)),
            Sight::Unseen if may_use(host, id) => found.unseen += 1,
            Sight::Unseen | Sight::No => {}
        }
    }
    found
}

/// Who else uses a file.
pub(crate) fn users_of_file(host: &Host, held: Option<&Handle>, file: FileId) -> Users {
    let lease = match held.filter(|_| host.is_this()) {
        Some(held) => held.lease(),
        None => Lease::Unknown,
    };
    if lease == Lease::Free {
        return Users { lease, ..Users::default() };
    }
    let wanted = Wanted { files: vec![file], readers: lease == Lease::Taken, ..Wanted::default() };
    Users { lease, ..users(host, &wanted) }
}

/// Refuses a file that anybody else uses, by the kernel's word on an open one.
pub fn confirm_alone(file: &File, path: &Path) -> Result<(), Refusal> {
    if lease(file) != Lease::Taken {
        return Ok(());
    }
    let files = file.metadata().map(|found| vec![FileId::of(&found)]).unwrap_or_default();
    let wanted = Wanted { files, readers: true, ..Wanted::default() };
    let by = in_use_by(&users(&Host::this(), &wanted).by);
    Err(RefusalReason::InUse { path: path.display().to_string(), by }.into())
}

/// The other processes that have a block device open in any way, as far as they can be seen.
pub fn openers(device: DeviceNumber) -> Vec<Process> {
    let wanted = Wanted { devices: vec![device], readers: true, ..Wanted::default() };
    users(&Host::this(), &wanted).by
}

/// The process that holds the `flock` lock of an open file, as far as it can be seen.
pub fn lock_holder(file: &File) -> Option<Process> {
    let host = Host::this();
    let id = FileId::of(&file.metadata().ok()?);
    let has_locked = |process: u32| {
        let table = format!("/proc/{process}/fd");
        host.names(&table).iter().any(|name| {
            let is_it = file_at(&Path::new(&table).join(name)) == Some(id);
            let about = || host.text(format!("{table}info/{name}")).unwrap_or_default();
            is_it && about().lines().any(|l| l.starts_with("lock:") && l.contains(" FLOCK "))
        })
    };
    let holder = processes(&host).find(|&process| has_locked(process))?;
    process(&host, holder)
}

/// Whether a process is one of this program.
pub fn is_of_this_program(process: &Process) -> bool {
    let program = file_at(Path::new(&format!("/proc/{}/exe", process.id)));
    let is_same = program.is_some() && program == file_at(Path::new("/proc/self/exe"));
    is_same || process.name == "plimsoll"
}

fn processes(host: &Host) -> impl Iterator<Item = u32> {
    host.names("/proc").into_iter().filter_map(|name| name.parse().ok())
}

fn process(host: &Host, id: u32) -> Option<Process> {
    Some(Process { id, name: host.line(format!("/proc/{id}/comm"))? })
}

/// This process's number in the namespace of `/proc`, which may be another than its own.
fn own_id(host: &Host) -> Option<u32> {
    host.link("/proc/self")?.to_str()?.parse().ok()
}

/// The kernel's threads are in the first PID namespace only, and hidden with all others' processes.
fn shows_all(host: &Host) -> bool {
    Status::of(host, 2).is_ok_and(|found| found.is_kernel())
}

/// Whether a process that could not be looked into is there and may have files open. The system's
/// first process may have rights that root was denied, and uses nothing of others.
fn may_use(host: &Host, id: u32) -> bool {
    match Status::of(host, id) {
        Ok(found) => id != 1 && !found.is_kernel() && !found.has_ended(),
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
        let state = *words.first()?.as_bytes().first()?;
        Some(Self { state, flags: words.get(6)?.parse().ok()? })
    }

    fn is_kernel(&self) -> bool {
        self.flags & Self::KERNEL != 0
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// What a look at a process or a descriptor showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Yes,
    No,
    /// It could not be looked at, for want of rights.
    Unseen,
}

/// Whether a process has any of it open.
fn open_in(host: &Host, wanted: &Wanted, id: u32) -> Sight {
    let table = format!("/proc/{id}/fd");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = match rustix::fs::open(host.path(&table), flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(error) if is_gone(Some(error.raw_os_error())) => return Sight::No,
        Err(_) => return Sight::Unseen,
    };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&directory, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        let counts = || wanted.readers || is_writer(host, &table, &name.to_string_lossy());
        match descriptor(wanted, &directory, name) {
            _ if name.to_bytes().starts_with(b".") => {}
            Sight::Yes if counts() => return Sight::Yes,
            // The rest of the table is not to be seen either.
            Sight::Unseen => return Sight::Unseen,
            Sight::Yes | Sight::No => {}
        }
    }
    Sight::No
}

fn descriptor(wanted: &Wanted, directory: &OwnedFd, name: &std::ffi::CStr) -> Sight {
    let look = |mask| rustix::fs::statx(directory, name, AtFlags::STATX_DONT_SYNC, mask);
    match look(StatxFlags::TYPE | StatxFlags::INO) {
        Ok(found) if wanted.is(&found) => Sight::Yes,
        // Either the process may not be looked into, or a FUSE file system answers its own user
        // only, who is asked for nothing but which file system it is.
        Err(error) if is_forbidden(error) => match look(StatxFlags::empty()) {
            Ok(found) => {
                let is_on = |file: &FileId| file.device == id_of(&found).device;
                if wanted.files.iter().any(is_on) { Sight::Unseen } else { Sight::No }
            }
            Err(error) if is_forbidden(error) => Sight::Unseen,
            Err(_) => Sight::No,
        },
        // Closed meanwhile, or of a server that does not answer.
        Ok(_) | Err(_) => Sight::No,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_its_kernel_can_be_seen() {
        assert_eq!(unchecked(&Host::this()), [""; 0]);
        assert_eq!(own_id(&Host::this()), Some(std::process::id()));
    }

    #[test]
    fn threads_of_the_kernel_and_ended_processes_use_nothing() {
        let line = |name: &str, state, flags| {
            Status::parse(format!("7 ({name}) {state} 2 0 0 0 -1 {flags} 0 0\n").as_bytes())
        };
        let kernel = line("kworker/0:1", "I", 2_129_984).unwrap();
        assert!(kernel.is_kernel() && !kernel.has_ended());
        let odd = line("a) Z 2 (b", "S", 4_194_304).unwrap();
        assert_eq!(odd, Status { state: b'S', flags: 4_194_304 });
        assert!(!odd.is_kernel() && !odd.has_ended());
        assert!(line("gone", "Z", 0).unwrap().has_ended());
        assert_eq!(Status::parse(b"7 (short) S 1"), None);
    }

    #[test]
    fn a_lock_of_our_own_is_ours() {
        let path = std::env::temp_dir().join(format!("plimsoll-lock-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        assert_eq!(lock_holder(&file), None);
        file.lock().unwrap();
        assert_eq!(lock_holder(&file).map(|holder| holder.id), Some(std::process::id()));
        std::fs::remove_file(&path).unwrap();
    }
}
