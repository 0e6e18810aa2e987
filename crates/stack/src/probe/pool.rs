//! File systems that keep several devices themselves.

use record::stack::{Pool, Setting};

use super::layers::Layers;
use super::line;
use super::patience::output;
use crate::block::{btrfs_of, named};
use crate::host::Host;

const BTRFS_PROFILES: [&str; 10] =
    ["single", "dup", "raid0", "raid1", "raid1c3", "raid1c4", "raid10", "raid5", "raid6", "mixed"];

/// The btrfs that has a device.
pub(super) fn btrfs(host: &Host, device: &str) -> Option<Pool> {
    let uuid = btrfs_of(host, device)?;
    let root = format!("/sys/fs/btrfs/{uuid}");
    let profiles = |of: &str| {
        let mut names = host.names(format!("{root}/allocation/{of}"));
        names.retain(|name| BTRFS_PROFILES.contains(&name.as_str()));
        names
    };
    let info = format!("{root}/devinfo");
    let missing = host.names(&info).into_iter().filter(|id| {
        host.number(format!("{info}/{id}/missing")).is_some_and(|missing| missing != 0)
    });
    let missing = missing.count();
    let replaces = host
        .names(&info)
        .into_iter()
        .any(|id| host.number(format!("{info}/{id}/replace_target")).is_some_and(|is| is != 0));
    let state = match (missing, replaces) {
        (0, false) => None,
        (0, true) => Some("a replace is under way".to_owned()),
        (n, true) => Some(format!("{n} missing, a replace is under way")),
        (n, false) => Some(format!("{n} missing")),
    };
    let size = |name: &str| {
        let value = line(host, format!("{root}/{name}"))?;
        Some(Setting { name: name.to_owned(), value })
    };
    Some(Pool {
        name: line(host, format!("{root}/label")),
        state,
        data: profiles("data"),
        metadata: profiles("metadata"),
        beside: Vec::new(),
        settings: ["nodesize", "sectorsize", "checksum"].iter().filter_map(|n| size(n)).collect(),
    })
}

/// The pool of a zfs, and the kernel's names of its data devices.
pub(super) fn zfs(layers: &mut Layers<'_>, dataset: &str) -> (Option<Pool>, Vec<String>) {
    let name = dataset.split(['/', '@']).next().unwrap_or(dataset).to_owned();
    // Names that a program would take for an option are no pool's.
    if name.is_empty() || name.starts_with('-') {
        return (None, Vec::new());
    }
    let host = layers.host;
    let status =
        host.answer(&format!("zpool-status-{name}"), || output("zpool", &["status", "-P", &name]));
    let status = match status {
        Ok(text) => zpool(&text),
        Err(error) => {
            layers.unseen(format!("the devices of the zfs pool {name}"), error.to_string());
            Zpool::default()
        }
    };
    let shown = "recordsize,compression,sync,logbias,primarycache,atime,redundant_metadata";
    let file = format!("zfs-get-{}", dataset.replace('/', "-"));
    let settings = host
        .answer(&file, || output("zfs", &["get", "-Hp", "-o", "property,value", shown, dataset]));
    let settings = settings.unwrap_or_default();
    let settings = settings.lines().filter_map(|line| {
        let (name, value) = line.split_once('\t')?;
        Some(Setting { name: super::cut(name), value: super::cut(value) })
    });
    let state = status.state.or_else(|| line(host, format!("/proc/spl/kstat/zfs/{name}/state")));
    let pool = Pool {
        name: Some(name),
        state,
        data: status.data,
        metadata: Vec::new(),
        beside: status.beside,
        settings: settings.collect(),
    };
    let devices = status.devices.iter().filter_map(|path| named(host, path)).collect();
    (Some(pool), devices)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Zpool {
    state: Option<String>,
    /// `raidz2 x 6`; `disk` for one that stands alone.
    data: Vec<String>,
    beside: Vec<String>,
    devices: Vec<String>,
}

/// The tree that `zpool status -P` prints: depth is two blanks a level after a tab.
fn zpool(text: &str) -> Zpool {
    let mut found = Zpool::default();
    let mut part: Option<String> = None;
    let mut groups: Vec<(Option<String>, String, usize)> = Vec::new();
    let mut in_tree = false;
    for line in text.lines() {
        if let Some(state) = line.trim_start().strip_prefix("state:")
            && !in_tree
        {
            found.state = Some(super::cut(state));
        }
        if line.trim_start().starts_with("scan:") && line.contains("resilver in progress") {
            let state = found.state.take().unwrap_or_default();
            found.state = Some(format!("{state}, resilver in progress"));
        }
        if line.trim_start().starts_with("NAME") && line.contains("STATE") {
            in_tree = true;
            continue;
        }
        let Some(row) = line.strip_prefix('\t').filter(|_| in_tree) else {
            in_tree = in_tree && line.trim().is_empty() && groups.is_empty();
            continue;
        };
        let depth = row.bytes().take_while(|&byte| byte == b' ').count() / 2;
        let Some(word) = row.split_whitespace().next() else { continue };
        match depth {
            0 => {
                let beside = ["logs", "cache", "spares", "special", "dedup"].contains(&word);
                part = beside.then(|| word.to_owned());
            }
            1 if word.starts_with('/') => groups.push((part.clone(), "disk".to_owned(), 1)),
            1 => {
                let kind = word.rsplit_once('-').map_or(word, |(kind, _)| kind);
                groups.push((part.clone(), kind.to_owned(), 0));
            }
            _ => {
                if let Some((_, _, members)) = groups.last_mut() {
                    *members += 1;
                }
            }
        }
        if word.starts_with('/') && part.is_none() {
            found.devices.push(word.to_owned());
        }
    }
    for (part, kind, members) in groups {
        let text = if kind == "disk" { kind } else { format!("{kind} x {members}") };
        match part {
            None => found.data.push(text),
            Some(part) => found.beside.push(format!("{part}: {text}")),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "  pool: tank
 state: DEGRADED
status: One or more devices has been taken offline.
  scan: none requested
config:

\tNAME          STATE     READ WRITE CKSUM
\ttank          DEGRADED     0     0     0
\t  raidz1-0    DEGRADED     0     0     0
\t    /dev/sda  ONLINE       0     0     0
\t    /dev/sdb  OFFLINE      0     0     0
\t    /dev/sdc  ONLINE       0     0     0
\t  /dev/sdd1   ONLINE       0     0     0
\tlogs
\t  mirror-2    ONLINE       0     0     0
\t    /dev/nvme0n1p1  ONLINE       0     0     0
\t    /dev/nvme1n1p1  ONLINE       0     0     0
\tcache
\t  /dev/sde    ONLINE       0     0     0

errors: No known data errors
";

    #[test]
    fn a_pool_is_read_from_its_status() {
        let found = zpool(STATUS);
        assert_eq!(found.state.as_deref(), Some("DEGRADED"));
        assert_eq!(found.data, ["raidz1 x 3", "disk"]);
        assert_eq!(found.beside, ["logs: mirror x 2", "cache: disk"]);
        assert_eq!(found.devices, ["/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/sdd1"]);
    }

    #[test]
    fn a_pool_that_fills_a_member_says_so() {
        let text = STATUS.replace("scan: none requested", "scan: resilver in progress since Sun");
        assert_eq!(zpool(&text).state.as_deref(), Some("DEGRADED, resilver in progress"));
    }

    #[test]
    fn nonsense_is_nothing() {
        for text in ["", "\t\t", "NAME STATE\n\t", "\tNAME STATE\n\t      x\n", "state:"] {
            let found = zpool(text);
            assert!(found.data.is_empty() && found.devices.is_empty(), "{text:?} {found:?}");
        }
    }
}
