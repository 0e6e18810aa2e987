//! Gathers the facts on which [`crate::decide`] decides. Reads only.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use units::Bytes;

use crate::beside;
use crate::block;
use crate::born::Likeness;
use crate::elsewhere::Elsewhere;
use crate::host::{Host, unescape};
use crate::locks::{Opening, is_of_this_program, openers};
use crate::mounts::{DeviceNumber, Mount, mount_of, mounts};
use crate::overlays::{Alike, Overlays};
use crate::safety::same::{Root, Table};
use crate::safety::{
    Access, BlockFacts, Consent, DeviceUse, Facts, FileFacts, Lease, Place, Process, Subject, Users,
};
use crate::shared::{self, Loop};
use crate::signature::probe;
use crate::target::{FileId, Nature, PathKind, Space, Target, is_memory_or_network, names, under};
use crate::users::{
    SeenMount, Wanted, all_mounts, file_at, lease_holders, reach, unchecked, users, users_of_file,
};

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

    /// The files of these that are there, each with every number under which it is seen.
    fn files(&self, overlays: &Overlays) -> Vec<(&'static str, Alike)> {
        let mut found = Vec::new();
        for (what, path) in self.all() {
            let all = if what == STORE { beside(&path) } else { vec![path] };
            for path in all {
                let metadata = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file);
                let alike = metadata.map(|seen| overlays.alike(&path, FileId::of(&seen)));
                found.extend(alike.map(|alike| (what, alike)));
            }
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
                    Access::Write { size, .. } if host.is_this() => target.shared_within(size),
                    _ => Bytes::ZERO,
                },
                links: *links,
                mark: target.path.mark(),
                named: false,
                named_others: Vec::new(),
                own: None,
                swap: false,
                loops: Vec::new(),
                mounted: Vec::new(),
                users: Users::default(),
                unchecked: Vec::new(),
                even_though_unchecked: consent.even_though_unchecked,
            };
            if writes {
                look_around(host, target, consent, own, &mut file);
            } else if host.is_this() {
                file.users.leases = lease_holders(&[target.path.stable()], Opening::ToRead);
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

pub(crate) fn place(host: &Host, target: &Target, consent: &Consent) -> Place {
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

/// What is free, less what other runs are about to take there.
pub(crate) fn space(host: &Host, target: &Target) -> Option<Space> {
    let space = free_space(host, target)?;
    let mount = target.mount.as_ref().filter(|_| host.is_this());
    let promised = mount.map_or(Bytes::ZERO, |mount| beside::unwritten(host, mount));
    Some(Space { free: Bytes::new(space.free.get().saturating_sub(promised.get())), ..space })
}

/// A file system in memory has no more room than memory has, whatever its size says; nor has an overlay
/// that writes to one.
fn free_space(host: &Host, target: &Target) -> Option<Space> {
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
    for named in &consent.overwrite {
        match std::fs::canonicalize(named) {
            Ok(resolved) if resolved == *path && names(named, &target.path.held) => {
                file.named = true;
            }
            // Its words say the target, and the kernel finds something else by them.
            Ok(resolved) if resolved == *path => {
                file.named_others.push(named.display().to_string());
            }
            Ok(resolved) => file.named_others.push(resolved.display().to_string()),
            Err(_) => file.named_others.push(named.display().to_string()),
        }
    }
    let everywhere = all_mounts(host);
    let overlays = Overlays::of(host, &everywhere);
    let alike = overlays.alike(path, file.id);
    let ids: Vec<FileId> = alike.ids.iter().copied().chain([alike.holds]).collect();
    let is_it = |other: &Path| {
        let may_be =
            |id| ids.contains(&id) || overlays.alike(other, id).like(&alike) == Likeness::Yes;
        other == path || file_at(other).is_some_and(may_be)
    };
    let own_files = own.files(&overlays);
    // The store is one file with others beside it (`-wal`), or a directory of them.
    file.own = own
        .all()
        .find(|(what, mine)| {
            own_files
                .iter()
                .any(|(whose, file)| whose == what && file.like(&alike) == Likeness::Yes)
                || is_it(mine)
                || path.starts_with(mine)
                || path
                    .as_os_str()
                    .as_bytes()
                    .starts_with(&[mine.as_os_str().as_bytes(), b"-"].concat())
        })
        .map(|(what, _)| what.to_owned());
    file.swap = swaps(host).iter().any(|swap| is_it(swap));
    file.unchecked = unchecked(host);
    file.mounted = mounted_from(host, &everywhere, &overlays, &[&alike]);
    let mapped_on = target.mount.iter().map(|mount| mount.device).collect();
    let (files, once) = (alike.ids.clone(), alike.once.clone());
    let stable = target.path.stable();
    let elsewhere = Elsewhere::of(std::iter::once((&alike, Some(stable.clone()))), &overlays);
    let names: Vec<PathBuf> = std::iter::once(stable).chain(alike.upper.clone()).collect();
    let wanted = Wanted { files, once, devices: Vec::new(), mapped_on, elsewhere };
    file.users = users_of_file(host, &names, &wanted);
    loops_over(host, &overlays, &alike, &is_it, file);
}

/// Loop devices that lie on a file, or may: fills `loops` and `unchecked`.
fn loops_over(
    host: &Host,
    overlays: &Overlays,
    alike: &Alike,
    is_it: &dyn Fn(&Path) -> bool,
    file: &mut FileFacts,
) {
    let ids: Vec<FileId> = alike.ids.iter().copied().chain([alike.holds]).collect();
    for one in shared::loops(host, overlays) {
        // It would have the file open for writing, and the kernel says that nobody has.
        let is_guess = !one.is_sure || one.is_unknown() && !alike.is_vague;
        if is_guess && !one.read_only && file.users.lease == Lease::Free {
            continue;
        }
        let fits = one.window.may_be_over(file.size.get());
        let over = one.alike.as_ref();
        let has_one_of =
            |ids: &[FileId]| over.is_some_and(|over| over.ids.iter().any(|id| ids.contains(id)));
        let likeness = over.map_or(Likeness::No, |over| over.like(alike));
        // Another file of the same file system.
        let is_apart = one.id.is_some_and(|id| ids.iter().any(|own| own.device == id.device));
        match &one.on {
            // Or set up before an overlay copied the file to its upper directory.
            Root::File(id)
                if ids.contains(id) || has_one_of(&alike.once) || likeness == Likeness::Yes =>
            {
                file.loops.push(one.name);
            }
            // The file of a captured machine is not there to have a length.
            Root::Named(name) if !one.is_sure && (fits || !host.is_this()) && is_it(name) => {
                file.loops.push(one.name);
            }
            Root::Named(_) if fits && host.is_this() && !is_apart => {
                file.unchecked.push(format!("whether {} lies on it", one.name));
            }
            Root::File(_) if likeness == Likeness::Unknown => {
                file.unchecked.push(format!("whether {} lies on it", one.name));
            }
            Root::File(_) | Root::Named(_) | Root::Device(_) => {}
        }
    }
}

/// Where one of the files is mounted as a file system, without a loop device: erofs, and what FUSE serves.
fn mounted_from(
    host: &Host,
    everywhere: &[SeenMount],
    overlays: &Overlays,
    files: &[&Alike],
) -> Vec<String> {
    let mut found = Vec::new();
    for seen in everywhere.iter().filter(|seen| host.is_this() && seen.mount.device.major == 0) {
        let source = Path::new(&seen.mount.source);
        let is_one = |id| {
            let shown = || overlays.alike_somewhere(source, id).unwrap_or_else(|| Alike::alone(id));
            files.iter().any(|file| file.ids.contains(&id) || file.holds == id)
                || files.iter().any(|file| file.like(&shown()) == Likeness::Yes)
        };
        if source.is_absolute() && file_at(&reach(seen.process, source)).is_some_and(is_one) {
            push(&mut found, shown_at(seen));
        }
    }
    found
}

/// The mount point, and whose it is.
fn shown_at(seen: &SeenMount) -> String {
    let whose = seen.process.map(|id| format!(" (as process {id} sees it)"));
    format!("{}{}", seen.mount.point.display(), whose.unwrap_or_default())
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
    facts.unchecked = unchecked(host);
    let everywhere = all_mounts(host);
    let overlays = Overlays::of(host, &everywhere);
    let loops = shared::loops(host, &overlays);
    let table = shared::table(host, &loops);
    let twins = Twins::of(&table, &loops, &facts.name);
    facts.unchecked.extend(unknown_loops(host, &table, &loops, &twins, &facts.name));
    facts.users = users_of_device(host, (&table, &overlays), &facts, &twins);
    let ours = target.path.held.get().is_some_and(|held| held.is_claimed());
    device_uses(host, &table, (&loops, &everywhere, &overlays), &twins, ours, &mut facts);
    own_bytes(host, own, &overlays, &twins, &mut facts);
    let is_known = !(facts.mounts.is_empty() && facts.swaps.is_empty() && facts.holders.is_empty());
    if host.is_this() && !is_known && !ours && is_claimed(&target.path.stable()) {
        let by = "something that the kernel does not name (the log of a mounted file system?)";
        push(&mut facts.holders, claimed_by(&facts.name, number, by));
    }
    system_devices(host, own, &twins, &mut facts);
    facts
}

/// Whether something has the device for itself. Nobody is told otherwise who keeps a log there.
fn is_claimed(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let claimed =
        || rustix::fs::open(path, flags, Mode::empty()).is_err_and(|error| error == Errno::BUSY);
    // Whoever looks in the same way, has it for a moment.
    let again = || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        claimed()
    };
    claimed() && again() && again()
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
    /// The same with all that is known of them.
    alike: Vec<Alike>,
}

impl Twins {
    fn of(table: &Table, loops: &[Loop], name: &str) -> Self {
        let roots = table.below(name);
        let below = roots.iter().flat_map(|root| table.names_of(root)).map(str::to_owned);
        let (mut files, mut all) = (Vec::new(), Vec::new());
        for root in &roots {
            let Root::File(id) = root else { continue };
            push(&mut files, *id);
            // An overlay gives the file that a loop device lies on other numbers.
            for alike in loops.iter().filter(|one| one.on == *root).filter_map(|l| l.alike.as_ref())
            {
                alike.ids.iter().for_each(|id| push(&mut files, *id));
                push(&mut all, alike.clone());
            }
        }
        Self {
            all: table.sharing(name).into_iter().map(str::to_owned).collect(),
            below: below.collect(),
            files,
            alike: all,
        }
    }

    /// Whether it is another use of the bytes: neither the device itself nor what that lies on.
    fn is_another(&self, name: &str) -> bool {
        self.all.iter().any(|twin| twin == name) && !self.below.iter().any(|below| below == name)
    }
}

/// Who has the bytes open for writing, under any name of them.
fn users_of_device(
    host: &Host,
    (table, overlays): (&Table, &Overlays),
    facts: &BlockFacts,
    twins: &Twins,
) -> Users {
    let numbers = twins.all.iter().filter_map(|name| table.get(name)).map(|known| known.number);
    let devices = std::iter::once(facts.number).chain(numbers).collect();
    let once = twins.alike.iter().flat_map(|alike| alike.once.iter().copied()).collect();
    let elsewhere = Elsewhere::of(twins.alike.iter().map(|alike| (alike, None)), overlays);
    let files = twins.files.clone();
    users(host, &Wanted { files, once, devices, elsewhere, ..Wanted::default() })
}

/// What cannot be told of loop devices whose file cannot be seen: lengths rule most of them out.
fn unknown_loops(
    host: &Host,
    table: &Table,
    loops: &[Loop],
    twins: &Twins,
    name: &str,
) -> Vec<String> {
    let mut mine: Vec<&str> = vec![name];
    mine.extend(twins.all.iter().chain(&twins.below).map(String::as_str));
    let windows = || loops.iter().filter(|one| mine.contains(&one.name.as_str()));
    let sizes = || mine.iter().filter_map(|name| table.get(name)).map(|known| known.size);
    let unknown = loops.iter().filter(|one| host.is_this() && one.is_unknown());
    let said = unknown.filter_map(|one| {
        if mine.contains(&one.name.as_str()) {
            return Some(format!("which file {} lies on", one.name));
        }
        // Other numbers of one file system are other files.
        let is_apart = |known: &Loop| match (known.id, one.id) {
            (Some(known), Some(id)) => known.device == id.device,
            _ => false,
        };
        let may_be = windows()
            .any(|known| known.window.may_share(&one.window) && !is_apart(known))
            // What was asked lies on a file, and not on a device.
            || !one.is_sure && sizes().any(|size| one.window.may_be_over(size));
        may_be.then(|| format!("whether {} has the same bytes", one.name))
    });
    said.collect()
}

/// Everything that uses the device as the kernel shows it. Fills `mounts`, `swaps`, `holders`
/// and `zfs_pools`.
///
/// * `ours`: this process has claimed the device.
fn device_uses(
    host: &Host,
    table: &Table,
    (loops, everywhere, overlays): (&[Loop], &[SeenMount], &Overlays),
    twins: &Twins,
    ours: bool,
    facts: &mut BlockFacts,
) {
    let mut related = vec![facts.name.clone()];
    related.extend(twins.all.iter().cloned());
    let numbers: Vec<(DeviceNumber, &String)> =
        related.iter().filter_map(|name| Some((block::number_of(host, name)?, name))).collect();
    for seen in everywhere {
        let mount = &seen.mount;
        let by_number = numbers.iter().find(|(n, _)| *n == mount.device).map(|(_, n)| *n);
        let device = by_number.cloned().or_else(|| {
            // btrfs and others have no device number of their own.
            block::named(host, &mount.source)
                .filter(|n| mount.device.major == 0 && related.contains(n))
        });
        if let Some(device) = device {
            push(&mut facts.mounts, DeviceUse { device, by: shown_at(seen) });
        }
    }
    let files: Vec<&Alike> = twins.alike.iter().collect();
    for by in mounted_from(host, everywhere, overlays, &files) {
        push(&mut facts.mounts, DeviceUse { device: format!("the file of {}", facts.name), by });
    }
    for name in &related {
        mounted_elsewhere(host, name, facts);
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
    claimed_twins(host, twins, ours, facts);
    facts.zfs_pools = host
        .names("/proc/spl/kstat/zfs")
        .iter()
        .any(|entry| host.exists(format!("/proc/spl/kstat/zfs/{entry}/state")));
}

/// Who may have claimed a device: the kernel does not say it.
///
/// * `unknown`: in words; processes that have it open are named besides.
fn claimed_by(name: &str, number: DeviceNumber, unknown: &str) -> DeviceUse {
    let seen: Vec<String> = openers(number).iter().map(ToString::to_string).collect();
    let open = match seen.is_empty() {
        true => String::new(),
        false => format!("; it is open in {}", seen.join(", ")),
    };
    DeviceUse { device: name.to_owned(), by: format!("{unknown}{open}") }
}

/// What is mounted or held in a namespace that cannot be read is claimed all the same.
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
            // A reason of its own besides its writing: that is waited for, as drive monitors are.
            let runs: Vec<Process> =
                openers(number).into_iter().filter(is_of_this_program).collect();
            let by = match runs.first() {
                Some(run) => DeviceUse { device: name.clone(), by: format!("another run, {run}") },
                None => claimed_by(
                    name,
                    number,
                    "something that is not visible from here (a mount in another namespace?)",
                ),
            };
            push(&mut facts.holders, by);
        }
    }
}

fn push<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// File systems that name their devices in sysfs show those mounted anywhere, in namespaces
/// that we cannot look into as well.
fn mounted_elsewhere(host: &Host, name: &str, facts: &mut BlockFacts) {
    let seen_here = facts.mounts.iter().any(|m| m.device == name);
    for file_system in ["ext4", "xfs", "f2fs"] {
        if !seen_here && host.exists(format!("/sys/fs/{file_system}/{name}")) {
            let by = format!("a place that is not visible from here ({file_system})");
            push(&mut facts.mounts, DeviceUse { device: name.to_owned(), by });
        }
    }
    for file_system in ["btrfs", "bcachefs"] {
        for uuid in host.names(format!("/sys/fs/{file_system}")) {
            if host
                .path(format!("/sys/fs/{file_system}/{uuid}/devices/{name}"))
                .symlink_metadata()
                .is_ok()
            {
                let by = format!("the mounted {file_system} {uuid}");
                push(&mut facts.holders, DeviceUse { device: name.to_owned(), by });
            }
        }
    }
}

/// A device over the store or the program, whatever their names: fills `system`.
fn own_bytes(host: &Host, own: &Own, overlays: &Overlays, twins: &Twins, facts: &mut BlockFacts) {
    if !host.is_this() || twins.files.is_empty() {
        return;
    }
    let is_below = |file: &Alike| {
        let has = |id: &FileId| twins.files.contains(id);
        let is_like = |alike: &Alike| alike.like(file) == Likeness::Yes;
        file.ids.iter().chain([&file.holds]).any(has) || twins.alike.iter().any(is_like)
    };
    let known = own.files(overlays).into_iter().filter(|(_, file)| is_below(file));
    for (what, _) in known {
        let by = format!("{} and {what}", facts.name);
        push(&mut facts.system, DeviceUse { device: "the same file".to_owned(), by });
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
