//! File systems, and where they are mounted.

use super::words::{paths, run, signature, step, wipe};
use super::{Action, DeviceFacts, Expectation, Made, Stage, Step, Undo, btrfs, top_device, zfs};
use crate::capacity;
use crate::mkfs;
use crate::names::Names;
use crate::stack::{DeviceId, FileSystem, FileSystemKind, Leg, Maker, StackSpec};
use crate::whole;

/// From the topmost device to the mount point; none without a file system.
pub fn steps(stack: &StackSpec, names: &Names, facts: &DeviceFacts) -> Vec<Step> {
    let Some(file_system) = &stack.file_system else { return Vec::new() };
    if file_system.kind == FileSystemKind::Zfs {
        return vec![directory(names), zfs::pool(stack, file_system, names)];
    }
    let devices = match stack.legs.first() {
        Some(leg) if leg.maker == Maker::Btrfs => leg.members.clone(),
        _ => top_device(stack, names).into_iter().collect(),
    };
    let Some(first) = devices.first() else { return Vec::new() };
    let words = words(file_system, stack, facts, names);
    let make = make(stack, file_system, words, &devices, names);
    vec![make, directory(names), mount(stack, file_system, first, &devices, names)]
}

fn make(
    stack: &StackSpec,
    fs: &FileSystem,
    words: Vec<String>,
    devices: &[DeviceId],
    names: &Names,
) -> Step {
    let kind = fs.kind;
    let mut argv = vec![format!("mkfs.{kind}")];
    argv.extend(words);
    argv.extend(paths(devices));
    let on = paths(devices).join(", ");
    let makes = |device| signature(device, kind.name(), Some(names.label()));
    Step {
        writes_to: stack.legs.iter().flat_map(Leg::devices).cloned().collect(),
        makes: devices.iter().map(makes).collect(),
        undo: devices.iter().map(|device| wipe(device, kind.name(), Some(names.label()))).collect(),
        ..step(Stage::FileSystem, format!("make {kind} on {on}"), run(argv))
    }
}

/// The words between `mkfs.KIND` and the devices.
fn words(fs: &FileSystem, stack: &StackSpec, facts: &DeviceFacts, names: &Names) -> Vec<String> {
    let label = names.label();
    let geometry = whole::geometry(stack);
    let block = mkfs::block_size(&fs.options);
    let stripes = mkfs::stripe_words(fs.kind, geometry, block);
    let mut words: Vec<String> = match fs.kind {
        FileSystemKind::Ext2 | FileSystemKind::Ext3 | FileSystemKind::Ext4 => {
            return ext(fs, label, stripes.get(1));
        }
        FileSystemKind::Xfs | FileSystemKind::Nilfs2 => vec!["-f", "-L", label],
        FileSystemKind::Jfs => vec!["-q", "-L", label],
        FileSystemKind::F2fs => vec!["-f", "-l", label],
        FileSystemKind::Btrfs | FileSystemKind::Zfs => vec!["-f", "-L", label],
    }
    .into_iter()
    .map(ToOwned::to_owned)
    .collect();
    if fs.kind == FileSystemKind::Btrfs {
        words.extend(btrfs::profiles(stack));
    }
    if let Some((_, member)) = capacity::smallest_member(stack, facts) {
        let size = capacity::of_stack(stack, member);
        words.extend(mkfs::group_words(fs.kind, geometry, size, &fs.options));
    }
    words.extend(stripes);
    words.extend(fs.options.iter().cloned());
    words
}

/// Of several `-E` the last one counts: theirs and ours have to be one.
fn ext(fs: &FileSystem, label: &str, stripes: Option<&String>) -> Vec<String> {
    let mut extended: Vec<String> = stripes.cloned().into_iter().collect();
    // Or the kernel would go on making it while it is measured.
    extended.push("lazy_itable_init=0".to_owned());
    if fs.kind != FileSystemKind::Ext2 {
        extended.push("lazy_journal_init=0".to_owned());
    }
    let mut rest = Vec::new();
    let mut options = fs.options.iter();
    while let Some(option) = options.next() {
        match option.strip_prefix("-E") {
            Some("") => extended.extend(options.next().cloned()),
            Some(value) => extended.push(value.to_owned()),
            None => rest.push(option.clone()),
        }
    }
    let mut words: Vec<String> = ["-q", "-F", "-L", label].map(ToOwned::to_owned).to_vec();
    words.extend(["-E".to_owned(), extended.join(",")]);
    words.extend(rest);
    words
}

/// The directory to mount on.
fn directory(names: &Names) -> Step {
    let path = names.mount_point();
    let above = path.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned());
    let remove = |path: &str| Undo::always(Action::RemoveDirectory { path: path.to_owned() });
    Step {
        makes: vec![Made::Directory { path: path.clone() }],
        undo: vec![remove(&path), remove(&above)],
        ..step(Stage::FileSystem, format!("make directory {path}"), Action::MakeDirectory { path })
    }
}

fn mount(
    stack: &StackSpec,
    fs: &FileSystem,
    device: &DeviceId,
    devices: &[DeviceId],
    names: &Names,
) -> Step {
    let path = names.mount_point();
    let argv = mount_words(stack, fs.kind, device, devices, &path, &[]);
    let made = Made::Mount { path: path.clone() };
    let told = mkfs::told(fs.kind, whole::geometry(stack), mkfs::block_size(&fs.options));
    let mut expect = vec![Expectation::FileSystem {
        path: path.clone(),
        kind: fs.kind,
        device: device.as_str().to_owned(),
        options: stack.mount_options.clone(),
        unit: told.map(|geometry| geometry.unit),
        count: told.map(|geometry| geometry.count),
    }];
    if devices.len() > 1 {
        expect.push(Expectation::Members { of: path.clone(), devices: devices.to_vec() });
    }
    let with = match stack.mount_options.join(",") {
        options if options.is_empty() => String::new(),
        options => format!(" with {options}"),
    };
    Step {
        makes: vec![made.clone()],
        undo: vec![Undo::where_is(made, run(["umount", &path]))],
        expect,
        ..step(Stage::FileSystem, format!("mount {device} on {path}{with}"), run(argv))
    }
}

/// `mount`, with more options in front of the stack's own.
pub fn mount_words(
    stack: &StackSpec,
    kind: FileSystemKind,
    device: &DeviceId,
    devices: &[DeviceId],
    path: &str,
    more: &[&str],
) -> Vec<String> {
    let mut options: Vec<String> = more.iter().map(|option| (*option).to_owned()).collect();
    options.extend(stack.mount_options.iter().cloned());
    // The kernel need not have heard of the others.
    options.extend(devices.iter().skip(1).map(|device| format!("device={device}")));
    let mut argv: Vec<String> = ["mount", "-t", kind.name()].map(ToOwned::to_owned).to_vec();
    if !options.is_empty() {
        argv.extend(["-o".to_owned(), options.join(",")]);
    }
    argv.extend([device.as_str().to_owned(), path.to_owned()]);
    argv
}
