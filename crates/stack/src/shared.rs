//! Which devices are others by name and the same by their bytes: fills the table of
//! [`crate::safety::same`] from what the kernel shows.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kernel::LoopStatus;
use record::stack::Segment;
use rustix::fs::OFlags;

use crate::block::{self, KERNEL_SECTOR};
use crate::born::Likeness;
use crate::host::Host;
use crate::mounts::DeviceNumber;
use crate::overlays::{Alike, Mounted, On, Overlays};
use crate::patience;
use crate::probe::mapper_tables;
use crate::safety::same::{How, Known, Part, Root, Table, Window};
use crate::target::{FileId, PathKind, Target};
use crate::users::all_mounts;

/// The kernel's number of loop devices.
const LOOP_MAJOR: u32 = 7;
/// Targets of device mapper that keep the order of bytes.
const LINEAR: [&str; 6] = ["linear", "crypt", "delay", "flakey", "dust", "snapshot-origin"];
/// Those whose device takes from what is below only what was written to it.
const SHARED: [&str; 2] = ["thin", "snapshot"];

/// A loop device.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub name: String,
    /// What it lies on: of overlays the file that holds the bytes.
    pub on: Root,
    /// The number of that file, as the kernel gives it.
    pub id: Option<FileId>,
    /// The numbers of that file.
    pub alike: Option<Alike>,
    pub window: Window,
    /// The kernel was asked, and not only a name that may be another's by now.
    pub is_sure: bool,
    /// It has its file open for reading alone.
    pub read_only: bool,
}

impl Loop {
    /// Whether it cannot be told which file or device it lies on.
    pub fn is_unknown(&self) -> bool {
        matches!(self.on, Root::Named(_))
    }
}

/// Loop devices, with what each lies on.
pub(crate) fn loops(host: &Host, overlays: &Overlays) -> Vec<Loop> {
    let names = host.names("/sys/class/block").into_iter();
    let mounted = overlays.mounted();
    let mut all: Vec<Loop> =
        names.filter_map(|name| loop_device(host, (overlays, &mounted), name)).collect();
    join(&mut all);
    all
}

/// Loop devices over one file, where an overlay shows it and no name leads to what holds the bytes.
fn join(all: &mut [Loop]) {
    for at in 1..all.len() {
        let (before, rest) = all.split_at_mut(at);
        let Some(one) = rest.first_mut() else { continue };
        let Some(mut alike) = one.alike.clone() else { continue };
        for other in before.iter_mut() {
            let Some(others) = other.alike.as_mut().filter(|_| other.on != one.on) else {
                continue;
            };
            match alike.like(others) {
                Likeness::Yes => {
                    alike.join(others);
                    others.join(&alike);
                    one.on = Root::File(alike.holds);
                }
                Likeness::Unknown => one.on = Root::Named(PathBuf::from(&one.name)),
                Likeness::No => {}
            }
        }
        one.alike = Some(alike);
    }
}

/// All block devices of a machine, with what each lies on.
pub(crate) fn table(host: &Host, loops: &[Loop]) -> Table {
    let names = host.names("/sys/class/block");
    // Asking a program takes some ms: only where there is something to ask.
    let has_mapper = names.iter().any(|name| name.starts_with("dm-"));
    let mapped = has_mapper.then(|| mapper_tables(host).ok()).flatten().unwrap_or_default();
    let mut all: Vec<Known> =
        names.iter().filter_map(|name| known(host, name, &mapped, loops)).collect();
    let held: Vec<(String, String)> = names
        .iter()
        .flat_map(|name| block::holders_of(host, name).into_iter().map(|by| (name.clone(), by)))
        .collect();
    for (name, by) in held {
        // What names its members nowhere else: bcache.
        let Some(below) = all.iter().find(|known| known.name == name).cloned() else { continue };
        let holder = all.iter_mut().find(|known| known.name == by && known.parts.is_empty());
        holder.into_iter().for_each(|holder| holder.parts.push(all_of(&below, How::Whole)));
    }
    Table::new(all)
}

/// Whether two block devices, by the kernel's names, have bytes in common.
pub fn share_bytes(host: &Host, one: &str, other: &str) -> bool {
    let overlays = Overlays::of(host, &all_mounts(host));
    table(host, &loops(host, &overlays)).share(one, other)
}

/// The first two targets that have bytes in common: files that an overlay shows, loop devices over
/// files, and what else is one by other names.
pub fn targets_that_share_bytes(host: &Host, targets: &[Target]) -> Option<(usize, usize)> {
    let overlays = Overlays::of(host, &all_mounts(host));
    let loops = loops(host, &overlays);
    let table = table(host, &loops);
    let all: Vec<Option<Bytes>> =
        targets.iter().map(|target| Bytes::of(target, &overlays)).collect();
    let share = |one: &Bytes, other: &Bytes| match (one, other) {
        (Bytes::File(one), Bytes::File(other)) => one.like(other) == Likeness::Yes,
        (Bytes::File(file), Bytes::Device(name)) | (Bytes::Device(name), Bytes::File(file)) => {
            let below = table.below(name);
            let is_over = |one: &Loop| {
                let is_it = |alike: &Alike| alike.like(file) == Likeness::Yes;
                below.contains(&one.on) && one.alike.as_ref().is_some_and(is_it)
            };
            below.contains(&Root::File(file.holds)) || loops.iter().any(is_over)
        }
        (Bytes::Device(one), Bytes::Device(other)) => table.share(one, other),
        (Bytes::New(one), Bytes::New(other)) => overlays.make_one(one, other),
        (Bytes::New(_), _) | (_, Bytes::New(_)) => false,
    };
    let pairs = (0..all.len()).flat_map(|one| (one + 1..all.len()).map(move |other| (one, other)));
    pairs.into_iter().find(|&(one, other)| match (all.get(one), all.get(other)) {
        (Some(Some(one)), Some(Some(other))) => share(one, other),
        _ => false,
    })
}

/// Where a target has its bytes.
enum Bytes {
    /// By the file that holds them.
    File(Box<Alike>),
    /// By the kernel's name.
    Device(String),
    /// In a file that is to be made.
    New(PathBuf),
}

impl Bytes {
    fn of(target: &Target, overlays: &Overlays) -> Option<Self> {
        match target.path.kind {
            PathKind::File { id, .. } => {
                Some(Self::File(Box::new(overlays.alike(&target.path.resolved, id))))
            }
            PathKind::Missing => Some(Self::New(target.path.resolved.clone())),
            PathKind::BlockDevice { .. } => target.top().map(|top| Self::Device(top.name.clone())),
            _ => None,
        }
    }
}

fn known(
    host: &Host,
    name: &str,
    mapped: &BTreeMap<String, Vec<Segment>>,
    loops: &[Loop],
) -> Option<Known> {
    let number = block::number_of(host, name)?;
    let size = size_of(host, name);
    let parts = match loops.iter().find(|known| known.name == name) {
        Some(Loop { on, window, .. }) => {
            let (on, from) = (on.clone(), window.offset);
            vec![Part { at: 0, on, from, length: size, how: How::Linear }]
        }
        None => parts(host, name, size, mapped),
    };
    Some(Known { name: name.to_owned(), number, size, wwid: wwid(host, name), parts })
}

fn size_of(host: &Host, name: &str) -> u64 {
    sectors(host.number(block::class(name).join("size")).unwrap_or(0))
}

fn sectors(count: u64) -> u64 {
    count.saturating_mul(KERNEL_SECTOR)
}

/// The name that a drive has on every path to it, from SCSI or NVMe.
fn wwid(host: &Host, name: &str) -> Option<String> {
    let directory = block::class(name);
    let found = ["device/wwid", "wwid"].iter().find_map(|file| host.line(directory.join(file)))?;
    let own = found.split_once('.').map_or(found.as_str(), |(_, own)| own);
    // Bridges and emulations without a number of their own give all zeros, or nothing.
    let is_telling = own.bytes().filter(u8::is_ascii_alphanumeric).any(|byte| byte != b'0');
    is_telling.then_some(found)
}

fn parts(host: &Host, name: &str, size: u64, mapped: &BTreeMap<String, Vec<Segment>>) -> Vec<Part> {
    let directory = block::class(name);
    if let Some(disk) = block::disk_of(host, name) {
        let part = match host.number(directory.join("start")) {
            Some(start) => block::number_of(host, &disk).map(|number| Part {
                at: 0,
                on: Root::Device(number),
                from: sectors(start),
                length: size,
                how: How::Linear,
            }),
            // Somewhere on the disk, beside the others.
            None => all_of_name(host, &disk, How::Shared),
        };
        return part.into_iter().collect();
    }
    let mapper = host.line(directory.join("dm/name"));
    if let Some(segments) = mapper.as_ref().and_then(|mapper| mapped.get(mapper)) {
        return segments.iter().flat_map(|segment| of_segment(host, segment)).collect();
    }
    // Without its table, volumes of one group cannot be told from copies of one volume.
    let how = if mapper.is_some() { How::Shared } else { How::Whole };
    let slaves = host.names(directory.join("slaves"));
    slaves.iter().filter_map(|slave| all_of_name(host, slave, how)).collect()
}

fn all_of_name(host: &Host, name: &str, how: How) -> Option<Part> {
    let on = Root::Device(block::number_of(host, name)?);
    Some(Part { at: 0, on, from: 0, length: size_of(host, name), how })
}

fn all_of(below: &Known, how: How) -> Part {
    Part { at: 0, on: Root::Device(below.number), from: 0, length: below.size, how }
}

fn of_segment(host: &Host, segment: &Segment) -> Vec<Part> {
    let target = segment.target.as_str();
    let ways = segment.on.len().max(1) as u64;
    let part = |extent: &record::stack::Extent| {
        let from = extent.offset_bytes.unwrap_or(0);
        let linear = |length, how| {
            let on = Root::Device(block::number_of(host, &extent.layer)?);
            Some(Part { at: segment.start_bytes, on, from, length, how })
        };
        match target {
            _ if LINEAR.contains(&target) => linear(segment.length_bytes, How::Linear),
            "striped" => linear(segment.length_bytes.div_ceil(ways), How::Whole),
            _ if SHARED.contains(&target) => all_of_name(host, &extent.layer, How::Shared),
            _ => all_of_name(host, &extent.layer, How::Whole),
        }
    };
    segment.on.iter().filter_map(part).collect()
}

/// A loop device is one by its number; `None` where nothing is attached.
fn loop_device(
    host: &Host,
    (overlays, mounted): (&Overlays, &Mounted),
    name: String,
) -> Option<Loop> {
    let settings = block::class(&name).join("loop");
    let is_loop = name.starts_with("loop") && host.exists(&settings);
    if !is_loop || block::number_of(host, &name)?.major != LOOP_MAJOR {
        return None;
    }
    let setting = |what| host.number(settings.join(what)).unwrap_or(0);
    let (offset, limit) = (setting("offset"), setting("sizelimit"));
    let mut window = Window { size: size_of(host, &name), offset, limit };
    let read_only = host.number(block::class(&name).join("ro")) != Some(0);
    let on = |name, on, window, is_sure| {
        let (id, alike) = (None, None);
        Loop { name, on, id, alike, window, is_sure, read_only }
    };
    // Names of more than a page are not shown.
    let path = block::loop_file(host, &name).unwrap_or_else(|| PathBuf::from(&name));
    let asked = host.answer(&format!("loop-status.{name}"), || {
        let status = ask_loop(host, &name)?;
        let LoopStatus { device, inode, special, offset, size_limit } = status;
        Ok(format!("{device} {inode} {special} {offset} {size_limit}"))
    });
    let is_silent = asked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
    if let Some([device, inode, special, offset, limit]) = asked.ok().and_then(|t| numbers(&t)) {
        window = Window { offset, limit, ..window };
        if special != 0 {
            let below = Root::Device(DeviceNumber::from_dev(special));
            return Some(on(name, below, window, true));
        }
        let id = FileId { device: DeviceNumber::from_dev(device), inode };
        let (below, alike) = over_file(overlays, mounted, &path, id);
        return Some(Loop { id: Some(id), alike, ..on(name, below, window, true) });
    }
    if is_silent {
        return Some(on(name, Root::Named(path), window, false));
    }
    // By its name, which may be another's meanwhile, or of another mount namespace.
    let below = path.to_str().and_then(|path| block::named(host, path));
    if let Some(number) = below.and_then(|below| block::number_of(host, &below)) {
        return Some(on(name, Root::Device(number), window, false));
    }
    match std::fs::metadata(host.path(&path)) {
        Ok(found) if path.is_absolute() && found.is_file() && window.may_be_over(found.len()) => {
            let (below, alike) = over_file(overlays, mounted, &path, FileId::of(&found));
            Some(Loop { alike, ..on(name, below, window, false) })
        }
        _ => Some(on(name, Root::Named(path), window, false)),
    }
}

/// A file that an overlay shows, or showed when it was mounted, may hold its bytes in any other file, unless
/// a name leads to it.
fn over_file(
    overlays: &Overlays,
    mounted: &Mounted,
    path: &Path,
    id: FileId,
) -> (Root, Option<Alike>) {
    match overlays.alike_somewhere(path, id) {
        Some(alike) => (Root::File(alike.holds), Some(alike)),
        None if mounted.on(id.device) == On::Other || overlays.is_no_overlay(id.device, path) => {
            (Root::File(id), Some(Alike::alone(id)))
        }
        None => (Root::Named(path.to_owned()), None),
    }
}

fn numbers(text: &str) -> Option<[u64; 5]> {
    let words: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    words.try_into().ok()
}

fn ask_loop(host: &Host, name: &str) -> io::Result<LoopStatus> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let device: File =
        OpenOptions::new().read(true).custom_flags(flags).open(Path::new("/dev").join(name))?;
    let opened = DeviceNumber::from_dev(device.metadata()?.rdev());
    if block::number_of(host, name) != Some(opened) {
        return Err(io::Error::other("another device has its name"));
    }
    // The kernel asks the file system of the file, which may be one that answers no more.
    patience::ask(name, move || kernel::loop_status(&device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_loop_devices_are_five_numbers() {
        assert_eq!(numbers("1 2 3 4 5\n"), Some([1, 2, 3, 4, 5]));
        for odd in ["", "1 2 3 4", "1 2 3 4 5 6", "1 2 x 4 5"] {
            assert_eq!(numbers(odd), None, "{odd}");
        }
    }
}
