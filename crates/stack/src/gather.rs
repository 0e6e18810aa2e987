//! Gathers the facts on which [`crate::decide`] decides. Reads only.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use units::Bytes;

use crate::block::{self, BlockKind};
use crate::held::patiently;
use crate::host::{Host, unescape};
use crate::mounts::{DeviceNumber, Mount, mount_of, mounts};
use crate::safety::same::{Root, Table};
use crate::safety::{
    Access, BlockFacts, Consent, DeviceUse, Facts, FileFacts, Lease, Place, Subject, Users,
};
use crate::shared::{self, Loop};
use crate::signature::probe;
use crate::target::{FileId, Nature, PathKind, Space, Target, is_memory_or_network, under};
use crate::users::{Wanted, file_at, openers, unchecked, users, users_of_file};

/// Where Plimsoll's own files are: the disk under them is never written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The running program.
    pub program: Option<PathBuf>,
    /// The store of results: a file, or a directory.
    pub store: Option<PathBuf>,
}

/// What the store is called.
const STORE: &str = "the store of results";

impl Own {
    /// This process's program, and the store that it uses.
    pub fn of_this_process(store: Option<PathBuf>) -> Self {
        Self { program: std::env::current_exe().ok(), store }
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let program = self.program.iter().map(|p| ("the running program", p));
        let store = self.store.iter().map(|p| (STORE, p));
        program.chain(store).map(|(what, path)| (what, canonical(path)))
    }

    /// The files of these that are there.
    fn files(&self) -> Vec<(&'static str, FileId)> {
        let mut found = Vec::new();
        for (what, path) in self.all() {
            let all = if what == STORE { beside(&path) } else { vec![path] };
            found.extend(all.iter().filter_map(|path| Some((what, file_at(path)?))));
        }
        found
    }
}

/// More files of a directory of stores are not looked at one by one.
const BESIDE_MAX: usize = 4096;

/// A file and those that belong to it: SQLite's, locks, the log. Of a directory what is in it.
fn beside(path: &Path) -> Vec<PathBuf> {
    let entries = |place: &Path| std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        found.extend(entries(path).take(BESIDE_MAX).map(|entry| entry.path()));
    } else if let (Some(place), Some(name)) = (path.parent(), path.file_name()) {
        let own = [name.as_bytes(), b"-"].concat();
        let named = entries(place).filter(|entry| entry.file_name().as_bytes().starts_with(&own));
        found.extend(named.take(BESIDE_MAX).map(|entry| entry.path()));
    }
    found
}

/// The canonical path; of what does not exist yet, such as the store before the first run, the
/// one that it will have.
fn canonical(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for above in absolute.ancestors() {
        let Ok(found) = std::fs::canonicalize(above) else { continue };
        return match absolute.strip_prefix(above) {
            Ok(rest) if !rest.as_os_str().is_empty() => found.join(rest),
            _ => found,
        };
    }
    absolute
}

/// What the system needs, by where it is mounted.
const SYSTEM: [&str; 5] = ["/", "/boot", "/boot/efi", "/usr", "/var"];

/// File systems that show the kernel's insides, where a write is an order and not data.
const NOT_STORAGE: [&str; 17] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "bpf",
    "pstore",
    "efivarfs",
    "mqueue",
    "fusectl",
    "binfmt_misc",
    "autofs",
];

/// All that is to be known before a target is used.
///
/// Reads mount tables, swap, sysfs, other processes' open files (only those wanting to write
/// need that), and the ends of a block device that is to be written. Takes some ms, more on
/// machines with thousands of processes.
pub fn gather(host: &Host, target: &Target, access: Access, consent: &Consent, own: &Own) -> Facts {
    let writes = matches!(access, Access::Write { .. });
    let subject = match &target.path.kind {
        PathKind::File { id, links, allocated } => {
            let mut file = FileFacts {
                place: place(host, target, consent),
                id: *id,
                size: target.path.size,
                allocated: *allocated,
                shared: match access {
                    Access::Write { size, .. } => target.shared_within(size),
                    Access::Read => Bytes::ZERO,
                },
                links: *links,
                mark: target.path.mark(),
                named: false,
                named_others: Vec::new(),
                own: None,
                swap: false,
                loops: Vec::new(),
                users: Users::default(),
                unchecked: Vec::new(),
                even_though_unchecked: consent.even_though_unchecked,
            };
            if writes {
                look_around(host, target, consent, own, &mut file);
            }
            Subject::File(Box::new(file))
        }
        PathKind::Missing => Subject::NewFile(place(host, target, consent)),
        PathKind::Directory => Subject::Directory(place(host, target, consent)),
        PathKind::BlockDevice { number } => {
            Subject::Block(Box::new(block_facts(host, target, *number, consent, own, writes)))
        }
        PathKind::CharacterDevice { .. } => Subject::Character,
        PathKind::Other { name } => Subject::Other { name: name.clone() },
    };
    Facts {
        given: target.path.given.clone(),
        resolved: target.path.resolved.clone(),
        access,
        subject,
    }
}

fn place(host: &Host, target: &Target, consent: &Consent) -> Place {
    let mount = target.mount.as_ref();
    let file_system = mount.map(|m| m.file_system.clone()).unwrap_or_default();
    let path = &target.path.resolved;
    // In containers /dev is a plain tmpfs, and a mistyped device name would make a file there.
    let in_dev = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    let not_storage = if NOT_STORAGE.contains(&file_system.as_str()) {
        Some(file_system.clone())
    } else {
        in_dev.then(|| "/dev".to_owned())
    };
    Place {
        read_only: mount.is_some_and(Mount::is_read_only),
        space: space(host, target),
        not_storage,
        file_system,
        is_own: mount.is_some_and(|mount| consent.own_mounts.contains(&mount.point)),
    }
}

/// A file system in memory has no more room than memory has, whatever its size says; nor has an overlay
/// that writes to one.
fn space(host: &Host, target: &Target) -> Option<Space> {
    let is_memory = |name: &str| matches!(name, "tmpfs" | "ramfs" | "rootfs");
    let in_memory = target.mount.as_ref().is_some_and(|m| is_memory(&m.file_system))
        || target.natures.iter().any(|nature| match nature {
            Nature::Overlay { upper_file_system: Some(upper), .. } => is_memory(upper),
            _ => false,
        });
    let memory = in_memory.then(|| host.memory()).flatten();
    match (target.path.space, memory) {
        (Some(space), Some((available, total))) => {
            let (available, total) = (Bytes::new(available), Bytes::new(total));
            let unlimited = space.total == Bytes::ZERO;
            Some(Space {
                free: if unlimited { available } else { space.free.min(available) },
                total: if unlimited { total } else { space.total.min(total) },
            })
        }
        (space, _) => space,
    }
}

fn look_around(host: &Host, target: &Target, consent: &Consent, own: &Own, file: &mut FileFacts) {
    let path = &target.path.resolved;
    let is_it = |other: &Path| other == path || file_at(other) == Some(file.id);
    for named in &consent.overwrite {
        if is_it(named) {
            file.named = true;
        } else {
            let resolved = std::fs::canonicalize(named).unwrap_or_else(|_| named.clone());
            file.named_others.push(resolved.display().to_string());
        }
    }
    let own_files = own.files();
    // The store is one file with others beside it (`-wal`), or a directory of them.
    file.own = own
        .all()
        .find(|(what, mine)| {
            let beside = [mine.as_os_str().as_bytes(), b"-"].concat();
            own_files.contains(&(what, file.id))
                || path.starts_with(mine)
                || path.as_os_str().as_bytes().starts_with(&beside)
        })
        .map(|(what, _)| what.to_owned());
    file.swap = swaps(host).iter().any(|swap| is_it(swap));
    file.unchecked = unchecked(host);
    file.users = users_of_file(host, target.path.held.get().as_deref(), file.id);
    if file.users.lease == Lease::Free {
        return;
    }
    // Else the kernel has told that no loop device is over it.
    for one in shared::loops(host, true) {
        match &one.on {
            Root::File(id) if *id == file.id => file.loops.push(one.name),
            // The files of a captured machine have no numbers.
            Root::Named(name) if !host.is_this() && name == path => file.loops.push(one.name),
            Root::Named(_) if host.is_this() && file.users.lease == Lease::Unknown => {
                file.unchecked.push(format!("which file {} lies on", one.name));
            }
            Root::File(_) | Root::Named(_) | Root::Device(_) => {}
        }
    }
}

/// What the kernel swaps to: files and device nodes.
fn swaps(host: &Host) -> Vec<PathBuf> {
    let bytes = host.bytes("/proc/swaps").unwrap_or_default();
    let lines = bytes.split(|&b| b == b'\n').skip(1);
    lines
        .filter_map(|line| line.split(|b| b.is_ascii_whitespace()).next())
        .filter(|word| !word.is_empty())
        .map(unescape)
        .collect()
}

fn block_facts(
    host: &Host,
    target: &Target,
    number: DeviceNumber,
    consent: &Consent,
    own: &Own,
    writes: bool,
) -> BlockFacts {
    let top = target.top();
    let name = top.map(|d| d.name.clone()).unwrap_or_else(|| format!("device {number}"));
    let mut facts = BlockFacts {
        number,
        size: top.map(|d| d.size).unwrap_or_default(),
        summary: top.map_or_else(|| name.clone(), |d| d.summary()),
        read_only: top.is_some_and(|d| d.read_only),
        named: false,
        named_others: Vec::new(),
        even_though_signature: consent.even_though_signature,
        mounts: Vec::new(),
        swaps: Vec::new(),
        holders: Vec::new(),
        system: Vec::new(),
        system_unseen: Vec::new(),
        zfs_pools: false,
        signatures: Err("it was not looked at".to_owned()),
        partitions: block::partitions_of(host, &name),
        users: Users::default(),
        unchecked: Vec::new(),
        even_though_unchecked: consent.even_though_unchecked,
        name,
    };
    if !writes {
        return facts;
    }
    for named in &consent.destroy {
        if device_named(named) == Some(number) {
            facts.named = true;
        } else {
            let resolved = std::fs::canonicalize(named).unwrap_or_else(|_| named.clone());
            facts.named_others.push(resolved.display().to_string());
        }
    }
    facts.signatures = if top.is_some() {
        File::open(target.path.stable())
            .and_then(|file| probe(&file))
            .map_err(|error| error.to_string())
    } else {
        // Neither its holders nor its mounts can be known.
        Err("sysfs does not show it".to_owned())
    };
    uses_of_bytes(host, target, own, &mut facts);
    facts
}

/// Who uses the bytes of a device, under any name of them.
fn uses_of_bytes(host: &Host, target: &Target, own: &Own, facts: &mut BlockFacts) {
    facts.unchecked = unchecked(host);
    let below = target.devices.iter().filter(|device| !device.under_file);
    let is_on_loops = below.into_iter().any(|device| matches!(device.kind, BlockKind::Loop { .. }));
    let loops = shared::loops(host, is_on_loops);
    let table = shared::table(host, &loops);
    let twins = Twins::of(&table, &facts.name);
    let unknown = |one: &&Loop| host.is_this() && matches!(one.on, Root::Named(_));
    let unknown = loops.iter().filter(|_| is_on_loops).filter(unknown);
    facts.unchecked.extend(unknown.map(|one| format!("which file {} lies on", one.name)));
    let numbers = twins.all.iter().filter_map(|name| table.get(name)).map(|known| known.number);
    let devices = std::iter::once(facts.number).chain(numbers).collect();
    facts.users = users(host, &Wanted { files: twins.files.clone(), devices, readers: false });
    let ours = target.path.held.get().is_some_and(|held| held.is_claimed());
    device_uses(host, &table, &loops, &twins, facts);
    claimed_twins(host, &twins, ours, facts);
    for (what, _) in own.files().into_iter().filter(|(_, file)| twins.files.contains(file)) {
        let by = format!("{} and {what}", facts.name);
        push(&mut facts.system, DeviceUse { device: "the same file".to_owned(), by });
    }
    let is_known = !(facts.mounts.is_empty() && facts.swaps.is_empty() && facts.holders.is_empty());
    if host.is_this() && !is_known && !ours && is_claimed(&target.path.stable()) {
        let by = "something that the kernel does not name (the log of a mounted file system?)";
        push(&mut facts.holders, claimed_by(&facts.name, facts.number, by));
    }
    system_devices(host, own, &twins, facts);
}

/// Whether something has the device for itself. Nobody is told otherwise who keeps a log there.
fn is_claimed(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let claim = || Ok(rustix::fs::open(path, flags, Mode::empty())?);
    patiently(Errno::BUSY, claim).is_err_and(|error| error.kind() == ErrorKind::ResourceBusy)
}

fn device_named(path: &Path) -> Option<DeviceNumber> {
    let metadata = std::fs::metadata(path).ok()?;
    metadata.file_type().is_block_device().then(|| DeviceNumber::from_dev(metadata.rdev()))
}

/// The devices that have bytes of one device.
struct Twins {
    /// All of them, without itself.
    all: Vec<String>,
    /// Those that it lies on, which it holds itself.
    below: Vec<String>,
    /// The files that it lies on.
    files: Vec<FileId>,
}

impl Twins {
    fn of(table: &Table, name: &str) -> Self {
        let roots = table.below(name);
        let file = |root: &Root| if let Root::File(id) = root { Some(*id) } else { None };
        let below = roots.iter().flat_map(|root| table.names_of(root)).map(str::to_owned);
        Self {
            all: table.sharing(name).into_iter().map(str::to_owned).collect(),
            below: below.collect(),
            files: roots.iter().filter_map(file).collect(),
        }
    }

    /// Whether it is another use of the bytes: neither the device itself nor what that lies on.
    fn is_another(&self, name: &str) -> bool {
        self.all.iter().any(|twin| twin == name) && !self.below.iter().any(|below| below == name)
    }
}

/// Everything that uses the device as the kernel shows it. Fills `mounts`, `swaps`, `holders`
/// and `zfs_pools`.
fn device_uses(host: &Host, table: &Table, loops: &[Loop], twins: &Twins, facts: &mut BlockFacts) {
    let mut related = vec![facts.name.clone()];
    related.extend(twins.all.iter().cloned());
    let numbers: Vec<(DeviceNumber, &String)> =
        related.iter().filter_map(|name| Some((block::number_of(host, name)?, name))).collect();
    for mount in mounts(host).unwrap_or_default() {
        let by_number = numbers.iter().find(|(n, _)| *n == mount.device).map(|(_, n)| *n);
        let device = by_number.cloned().or_else(|| {
            // btrfs and others have no device number of their own.
            block::named(host, &mount.source)
                .filter(|n| mount.device.major == 0 && related.contains(n))
        });
        if let Some(device) = device {
            push(&mut facts.mounts, DeviceUse { device, by: mount.point.display().to_string() });
        }
    }
    for name in &related {
        pools_of(host, name, facts);
        for holder in block::holders_of(host, name) {
            // Another volume on the same drive holds it, and none of these bytes.
            if twins.is_another(&holder) || table.get(&holder).is_none() {
                push(&mut facts.holders, DeviceUse { device: name.clone(), by: holder });
            }
        }
    }
    for swap in swaps(host) {
        let name = swap.to_str().and_then(|path| block::named(host, path));
        facts.swaps.extend(name.filter(|n| related.contains(n)));
    }
    for Loop { name: by, on, .. } in loops {
        let device = table.names_of(on).find(|name| related.iter().any(|known| known == name));
        if let Some(device) = device.filter(|_| twins.is_another(by)) {
            push(&mut facts.holders, DeviceUse { device: device.to_owned(), by: by.clone() });
        }
    }
    facts.zfs_pools = host
        .names("/proc/spl/kstat/zfs")
        .iter()
        .any(|entry| host.exists(format!("/proc/spl/kstat/zfs/{entry}/state")));
}

/// Who may have claimed a device: the kernel does not say it.
///
/// * `unknown`: in words, where no process has it open.
fn claimed_by(name: &str, number: DeviceNumber, unknown: &str) -> DeviceUse {
    let seen: Vec<String> = openers(number).iter().map(ToString::to_string).collect();
    let by = if seen.is_empty() { unknown.to_owned() } else { seen.join(", ") };
    DeviceUse { device: name.to_owned(), by }
}

/// What is mounted or held in a namespace that cannot be read is claimed all the same.
///
/// * `ours`: this process has claimed the device.
fn claimed_twins(host: &Host, twins: &Twins, ours: bool, facts: &mut BlockFacts) {
    let is_known = |facts: &BlockFacts, name: &str| {
        let named = |uses: &[DeviceUse]| uses.iter().any(|one| one.device == name);
        named(&facts.mounts) || named(&facts.holders) || facts.swaps.iter().any(|swap| swap == name)
    };
    for name in twins.all.iter().filter(|name| host.is_this() && twins.is_another(name)) {
        if ours && block::disk_of(host, name).as_ref() == Some(&facts.name) {
            // Who has claimed a disk has claimed its partitions, and nobody else can have.
            continue;
        }
        let path = Path::new("/dev").join(name);
        let number = device_named(&path).filter(|&n| Some(n) == block::number_of(host, name));
        if let Some(number) = number.filter(|_| !is_known(facts, name) && is_claimed(&path)) {
            let unknown = "something that is not visible from here (a mount in another namespace?)";
            push(&mut facts.holders, claimed_by(name, number, unknown));
        }
    }
}

fn push<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Mounted file systems of several devices, which name them in sysfs.
fn pools_of(host: &Host, name: &str, facts: &mut BlockFacts) {
    for file_system in ["btrfs", "bcachefs"] {
        for uuid in host.names(format!("/sys/fs/{file_system}")) {
            let device = host.path(format!("/sys/fs/{file_system}/{uuid}/devices/{name}"));
            if device.symlink_metadata().is_ok() {
                let by = format!("the mounted {file_system} {uuid}");
                push(&mut facts.holders, DeviceUse { device: name.to_owned(), by });
            }
        }
    }
}

/// Fills `system` and `system_unseen`.
fn system_devices(host: &Host, own: &Own, twins: &Twins, facts: &mut BlockFacts) {
    let all = mounts(host).unwrap_or_default();
    // What is written when the device is: itself, what it lies on, what is made of it. The
    // disk under a loop device's file is not: there the file system stands between.
    let mut written: Vec<String> = block::chain(host, std::slice::from_ref(&facts.name), false)
        .into_iter()
        .map(|d| d.name)
        .collect();
    written.extend(block::built_on(host, &facts.name));
    written.extend(twins.all.iter().cloned());
    let system = SYSTEM.iter().map(|path| ((*path).to_owned(), PathBuf::from(path)));
    let own = own.all().map(|(what, path)| (format!("{what} ({})", path.display()), path));
    if all.is_empty() {
        facts.system_unseen.push("the mount table".to_owned());
    }
    for (what, path) in system.chain(own) {
        let resolved =
            if host.is_this() { std::fs::canonicalize(&path).unwrap_or(path) } else { path };
        let Some(mount) = mount_of(&all, &resolved, None) else {
            // A chroot's table may lack the mount that the root is in.
            push(&mut facts.system_unseen, format!("the mount of {what}"));
            continue;
        };
        let (tops, unseen) = under(host, &all, mount);
        let unseen = unseen.or_else(|| {
            // Neither memory nor another machine, so some disk of this one.
            let here = tops.is_empty() && !is_memory_or_network(&mount.file_system);
            here.then(|| format!("the device under {} ({what})", mount.file_system))
        });
        if let Some(unseen) = unseen {
            push(&mut facts.system_unseen, unseen);
        }
        let shared =
            block::chain(host, &tops, true).into_iter().find(|d| written.contains(&d.name));
        if let Some(shared) = shared {
            let same = facts.system.iter_mut().find(|s| s.device == shared.name);
            match same {
                Some(known) => known.by = format!("{}, {what}", known.by),
                None => facts.system.push(DeviceUse { device: shared.name, by: what }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn what_does_not_exist_yet_has_the_place_it_will_have() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(canonical("no-such.db".as_ref()), here.join("no-such.db"));
        assert_eq!(canonical("no/such/store.db".as_ref()), here.join("no/such/store.db"));
        assert_eq!(canonical("src/no-such.db".as_ref()), here.join("src/no-such.db"));
        assert_eq!(canonical("src".as_ref()), here.join("src"));
        // Links on the way are followed: `/proc/self/cwd` is one to here.
        assert_eq!(canonical("/proc/self/cwd/no/such.db".as_ref()), here.join("no/such.db"));
    }
}
