//! Limits of control groups, of this process and of every group above it.

use std::path::{Path, PathBuf};

use record::stack::{Layer, Throttle};

use super::cut;
use crate::block::name_of;
use crate::host::Host;
use crate::mounts::{Mount, mounts};

/// A group further down than this is not looked for.
const DEPTH_MAX: usize = 64;

/// Limits on devices of a stack.
pub(super) fn throttles(host: &Host, layers: &[Layer]) -> Vec<Throttle> {
    let groups = host.text("/proc/self/cgroup").unwrap_or_default();
    let mounts = mounts(host).unwrap_or_default();
    let mut found = Vec::new();
    for row in groups.lines() {
        // `0::/user.slice` is version 2, `7:blkio:/x` version 1.
        let mut words = row.splitn(3, ':');
        let (Some(_), Some(kinds), Some(group)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if kinds.is_empty() {
            each_group(&mounts, "cgroup2", None, group, |directory, name| {
                second(host, directory, name, &mut found);
            });
        } else if kinds.split(',').any(|kind| kind == "blkio") {
            each_group(&mounts, "cgroup", Some("blkio"), group, |directory, name| {
                first(host, directory, name, &mut found);
            });
        }
    }
    found.retain(|throttle| layers.iter().any(|layer| layer.id == throttle.device));
    found
}

/// Every group from the process's own to the top, as a directory and as a name.
fn each_group(
    mounts: &[Mount],
    kind: &str,
    option: Option<&str>,
    group: &str,
    mut look: impl FnMut(&Path, &str),
) {
    let fits =
        |mount: &&Mount| mount.file_system == kind && option.is_none_or(|option| mount.has(option));
    let Some(mount) = mounts.iter().find(fits) else { return };
    let Ok(inside) = Path::new(group).strip_prefix(&mount.root) else { return };
    let directory: PathBuf = mount.point.join(inside);
    let inside = directory.ancestors().take_while(|above| above.starts_with(&mount.point));
    for above in inside.take(DEPTH_MAX) {
        let name = above.strip_prefix(&mount.point).unwrap_or(above);
        look(above, &format!("/{}", name.display()));
    }
}

/// `8:16 rbps=2097152 wbps=max riops=120 wiops=max`
fn second(host: &Host, directory: &Path, group: &str, found: &mut Vec<Throttle>) {
    let text = host.text(directory.join("io.max")).unwrap_or_default();
    for row in text.lines() {
        let mut words = row.split_whitespace();
        let Some(number) = words.next() else { continue };
        for word in words {
            let Some((limit, value)) = word.split_once('=') else { continue };
            let of = match limit {
                "rbps" => "bytes read",
                "wbps" => "bytes written",
                "riops" => "reads",
                "wiops" => "writes",
                _ => continue,
            };
            push(host, group, number, (of, value), found);
        }
    }
}

fn first(host: &Host, directory: &Path, group: &str, found: &mut Vec<Throttle>) {
    let files = [
        ("read_bps", "bytes read"),
        ("write_bps", "bytes written"),
        ("read_iops", "reads"),
        ("write_iops", "writes"),
    ];
    for (file, of) in files {
        let path = directory.join(format!("blkio.throttle.{file}_device"));
        for row in host.text(path).unwrap_or_default().lines() {
            if let Some((number, value)) = row.split_once(' ') {
                push(host, group, number, (of, value.trim()), found);
            }
        }
    }
}

/// `max` is no number, and no limit.
fn push(
    host: &Host,
    group: &str,
    number: &str,
    (of, value): (&str, &str),
    found: &mut Vec<Throttle>,
) {
    let Ok(per_second) = value.parse() else { return };
    let name = number.parse().ok().and_then(|number| name_of(host, number));
    found.push(Throttle {
        group: cut(group),
        device: name.unwrap_or_else(|| cut(number)),
        of: of.to_owned(),
        per_second,
    });
}
