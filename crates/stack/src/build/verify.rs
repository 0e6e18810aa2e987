//! Whether what was built is what was planned.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use layout::{ArrayState, Expectation, FileSystemKind, Level};
use units::Bytes;

use crate::block;
use crate::build::act::{run, setting};
use crate::build::there::array;
use crate::host::Host;
use crate::mounts::{DeviceNumber, Mount, mounts};

/// How long a look may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Options of a mount that the kernel always shows when they are in force.
const SHOWN: [&str; 10] = [
    "ro",
    "noatime",
    "nodiratime",
    "relatime",
    "nosuid",
    "nodev",
    "noexec",
    "sync",
    "dirsync",
    "lazytime",
];

/// What is not as planned: a sentence each, with what was seen and what was wanted.
pub fn verify(host: &Host, wanted: &Expectation) -> Vec<String> {
    match wanted {
        Expectation::Array { path, level, members, chunk, state } => {
            md(host, path, *level, *members, *chunk, *state)
        }
        Expectation::Volume { path, segment, stripes, chunk, aligned_to } => {
            volume(path, segment, *stripes, *chunk, *aligned_to)
        }
        Expectation::FileSystem { path, kind, device, options, unit, count } => {
            let Some(mount) = mounted(host, path) else {
                return vec![format!("nothing is mounted on {path}, wanted {kind}")];
            };
            let mut found = file_system(&mount, *kind, device, options);
            found.extend(stripe(&mount, *kind, *unit, *count));
            found
        }
        Expectation::Setting { path, value } => match setting(path) {
            Ok(seen) => differs(path, &seen, value).into_iter().collect(),
            Err(error) => vec![error.to_string()],
        },
        Expectation::Members { of, devices } => {
            let wanted: Vec<String> =
                devices.iter().map(|device| kernel_name(host, device.as_str())).collect();
            members(host, of, wanted)
        }
    }
}

fn differs(what: &str, seen: &str, wanted: &str) -> Option<String> {
    (seen != wanted).then(|| format!("{what} is {seen}, wanted {wanted}"))
}

fn kernel_name(host: &Host, path: &str) -> String {
    if let Some(name) = number(path).and_then(|number| block::name_of(host, number)) {
        return name;
    }
    let found = std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    found.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The number of a block device, whatever node leads to it.
fn number(path: &str) -> Option<DeviceNumber> {
    let metadata = std::fs::metadata(path).ok()?;
    metadata.file_type().is_block_device().then(|| DeviceNumber::from_dev(metadata.rdev()))
}

fn md(
    host: &Host,
    path: &str,
    level: Level,
    members: u32,
    chunk: Option<Bytes>,
    state: ArrayState,
) -> Vec<String> {
    let Some(name) = array(host, path) else { return vec![format!("{path} is no running array")] };
    let attribute =
        |file: &str| host.line(format!("/sys/class/block/{name}/md/{file}")).unwrap_or_default();
    let mut found = Vec::new();
    let of = |what: &str| format!("{what} of {path}");
    found.extend(differs(&of("level"), &attribute("level"), level.name()));
    found.extend(differs(&of("members"), &attribute("raid_disks"), &members.to_string()));
    if let Some(chunk) = chunk {
        let seen = attribute("chunk_size");
        found.extend(differs(&of("chunk in bytes"), &seen, &chunk.get().to_string()));
    }
    let missing = attribute("degraded");
    let degraded = !missing.is_empty() && missing != "0";
    if level.is_redundant() && degraded == state.is_healthy() {
        found.push(format!("{path} lacks {missing} members, wanted a {state} array"));
    }
    found
}

fn volume(
    path: &str,
    segment: &str,
    stripes: u32,
    chunk: Option<Bytes>,
    aligned_to: Bytes,
) -> Vec<String> {
    let fields = "segtype,stripes,stripe_size,vg_name";
    let words = ["lvs", "--noheadings", "--nosuffix", "--units", "b", "--separator", ":", "-o"];
    let mut argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    argv.extend([fields.to_owned(), path.to_owned()]);
    let said = match run(&argv, LIMIT) {
        Ok(said) => said.out,
        Err(error) => return vec![error.to_string()],
    };
    // A line for each of its segments: of a linear volume one for each device.
    let mut lines: Vec<&str> =
        said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.dedup();
    let fields: Vec<&str> = match lines.as_slice() {
        [alike] => alike.split(':').map(str::trim).collect(),
        _ => Vec::new(),
    };
    let [seen_segment, seen_stripes, seen_chunk, group] = fields.as_slice() else {
        return vec![format!("lvs says of {path}: {}", lines.join(", "))];
    };
    let mut found = Vec::new();
    // LVM names a subtype: `raid5_ls`, `raid6_zr`.
    if *seen_segment != segment && !seen_segment.starts_with(&format!("{segment}_")) {
        found.push(format!("{path} is {seen_segment}, wanted {segment}"));
    }
    found.extend(differs(&format!("members of {path}"), seen_stripes, &stripes.to_string()));
    if let Some(chunk) = chunk {
        let wanted = chunk.get().to_string();
        found.extend(differs(&format!("chunk in bytes of {path}"), seen_chunk, &wanted));
    }
    found.extend(data_begins(group, aligned_to));
    found
}

/// Where data begins on each physical volume of a group.
fn data_begins(group: &str, aligned_to: Bytes) -> Vec<String> {
    let select = format!("vg_name={group}");
    let words = [
        "pvs",
        "--noheadings",
        "--nosuffix",
        "--units",
        "b",
        "-o",
        "pe_start",
        "--select",
        &select,
    ];
    let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let said = match run(&argv, LIMIT) {
        Ok(said) => said.out,
        Err(error) => return vec![error.to_string()],
    };
    let odd = said.split_whitespace().find(|text| {
        let start = text.parse::<u64>().ok();
        !start.is_some_and(|start| Bytes::new(start).is_multiple_of(aligned_to))
    });
    let tell = |odd: &str| {
        format!("data of {group} begin at byte {odd}, wanted a multiple of {}", aligned_to.exact())
    };
    odd.map(tell).into_iter().collect()
}

/// The mount on top at a path.
fn mounted(host: &Host, path: &str) -> Option<Mount> {
    let all = mounts(host).ok()?;
    all.into_iter().rfind(|mount| mount.point == Path::new(path))
}

fn file_system(
    mount: &Mount,
    kind: FileSystemKind,
    device: &str,
    options: &[String],
) -> Vec<String> {
    let at = mount.point.display();
    let mut found = Vec::new();
    // zfs-fuse mounts as `fuse.zfs`, or as `fuse` alone: whose it is then tells the pool's name.
    let bare = kind == FileSystemKind::Zfs && mount.file_system == "fuse";
    let seen = if bare { kind.name() } else { mount.file_system.trim_start_matches("fuse.") };
    found.extend(differs(&format!("file system on {at}"), seen, kind.name()));
    let resolved = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let is_pool = kind == FileSystemKind::Zfs && mount.source.split('/').next() == Some(device);
    let is_node = number(device).is_some() && number(device) == number(&mount.source);
    if !is_pool && !is_node && resolved(&mount.source) != resolved(device) {
        found.push(format!("{at} is of {}, wanted {device}", mount.source));
    }
    for option in options.iter().filter(|option| SHOWN.contains(&option.as_str())) {
        if !mount.has(option) {
            found.push(format!("{at} is mounted without {option}"));
        }
    }
    found
}

/// What the file system was told of stripes, as far as the mount table shows it.
fn stripe(
    mount: &Mount,
    kind: FileSystemKind,
    unit: Option<Bytes>,
    count: Option<u32>,
) -> Vec<String> {
    let (Some(unit), Some(count)) = (unit, count) else { return Vec::new() };
    let at = mount.point.display();
    let width = unit.get().saturating_mul(u64::from(count));
    let number = |name: &str| mount.value(name).and_then(|text| text.parse::<u64>().ok());
    match kind {
        // In sectors of 512 bytes.
        FileSystemKind::Xfs => {
            let of = |name: &str| number(name).unwrap_or(0).saturating_mul(512).to_string();
            let unit = differs(&format!("sunit of {at}"), &of("sunit"), &unit.get().to_string());
            let width = differs(&format!("swidth of {at}"), &of("swidth"), &width.to_string());
            unit.into_iter().chain(width).collect()
        }
        // In blocks, whose size is not shown: only whether it was told at all.
        FileSystemKind::Ext4 if number("stripe").is_none() && count > 1 => {
            vec![format!("{at} knows of no stripe, wanted one of {}", Bytes::new(width).exact())]
        }
        _ => Vec::new(),
    }
}

/// Members of a btrfs. Of a pool the kernel shows none.
fn members(host: &Host, of: &str, mut wanted: Vec<String>) -> Vec<String> {
    if !of.starts_with('/') {
        return Vec::new();
    }
    let Some(mount) = mounted(host, of) else { return vec![format!("nothing is mounted on {of}")] };
    let (mut seen, _) = block::under_mount(host, &mount);
    seen.sort();
    wanted.sort();
    differs(&format!("members of {of}"), &seen.join(", "), &wanted.join(", ")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(file_system: &str, options: &[&str]) -> Mount {
        Mount {
            id: 1,
            device: "7:1".parse().unwrap(),
            root: "/".into(),
            point: "/m".into(),
            file_system: file_system.into(),
            source: "/dev/loop1".into(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        }
    }

    #[test]
    fn a_mount_is_held_against_the_plan() {
        let xfs = mount("xfs", &["rw", "noatime", "sunit=128", "swidth=384"]);
        let options = ["noatime".to_owned(), "largeio".to_owned()];
        let kind = FileSystemKind::Xfs;
        assert!(file_system(&xfs, kind, "/dev/loop1", &options).is_empty());
        assert!(stripe(&xfs, kind, Some(Bytes::kib(64)), Some(3)).is_empty());
        assert_eq!(stripe(&xfs, kind, Some(Bytes::kib(64)), Some(4)).len(), 1);
        assert_eq!(stripe(&xfs, kind, Some(Bytes::kib(32)), Some(6)).len(), 1);
        let other = mount("ext4", &["rw", "relatime"]);
        let found = file_system(&other, kind, "/dev/loop2", &options);
        assert_eq!(found.len(), 3, "{found:?}");
        let told = stripe(&other, FileSystemKind::Ext4, Some(Bytes::kib(64)), Some(3));
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn a_pool_may_be_served_from_user_space() {
        for name in ["zfs", "fuse.zfs", "fuse"] {
            let pool = Mount { source: "plimsoll-0".into(), ..mount(name, &["rw"]) };
            let kind = FileSystemKind::Zfs;
            assert!(file_system(&pool, kind, "plimsoll-0", &[]).is_empty(), "{name}");
            assert_eq!(file_system(&pool, kind, "plimsoll-1", &[]).len(), 1, "{name}");
            assert_eq!(file_system(&pool, FileSystemKind::Xfs, "plimsoll-0", &[]).len(), 1);
        }
    }

    #[test]
    fn what_is_not_there_is_told() {
        let host = Host::this();
        let array = Expectation::Array {
            path: "/dev/md/plimsoll-none".into(),
            level: Level::Raid5,
            members: 3,
            chunk: None,
            state: ArrayState::Healthy,
        };
        assert_eq!(verify(&host, &array), ["/dev/md/plimsoll-none is no running array"]);
        let setting = Expectation::Setting { path: "/no/such".into(), value: "x".into() };
        assert_eq!(verify(&host, &setting).len(), 1);
    }
}
