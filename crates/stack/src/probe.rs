//! The whole of a stack, layer by layer, for records and advice: what [`crate::inspect`] finds,
//! and everything else that sysfs, procfs and a few programs tell of it.
//!
//! All that is read is taken for text that anybody may have written: cut to length, never waited
//! for, never trusted to be a tree.

mod bus;
mod capture;
mod disk;
mod file_system;
mod host;
mod known;
mod layers;
mod mapper;
mod md;
mod patience;
mod pool;
mod queue;
mod serial;
mod superblock;
mod throttle;

use std::path::{Path, PathBuf};

use record::StackTree;
use record::stack::{STACK_VERSION, StackTarget};

pub(crate) use patience::within;

pub use capture::{CaptureError, capture};
pub use serial::Serials;

use crate::host::Host;
use crate::target::{PathKind, Target};
use layers::Layers;

/// Everything between targets and the bus that can be seen.
///
/// Reads sysfs and procfs; where this process may, also the tables of device mapper (through
/// `dmsetup`), the superblocks of ext and xfs file systems, and zfs pools (through `zpool` and
/// `zfs`). Writes nothing. What it asks of programs and devices it waits for some seconds only.
/// Of what could not be seen, [`StackTree::unseen`] says why.
pub fn stack_tree(host: &Host, targets: &[Target], serials: Serials) -> StackTree {
    let mut layers = Layers::new(host, serials);
    let mut found = Vec::new();
    // From the last: see `Layers::finish`.
    for target in targets.iter().rev() {
        let on = match (&target.path.kind, &target.mount) {
            (PathKind::BlockDevice { .. }, _) => {
                target.top().map(|top| layers.block(&top.name)).into_iter().collect()
            }
            (_, Some(mount)) => vec![layers.file_system(mount)],
            _ => Vec::new(),
        };
        for text in &target.unseen {
            layers.unseen(text.clone(), "the kernel does not show it here");
        }
        found.push(StackTarget {
            given: target.path.given.display().to_string(),
            resolved: target.path.resolved.display().to_string(),
            role: None,
            on,
        });
    }
    found.reverse();
    let (layers, unseen) = layers.finish();
    StackTree {
        version: STACK_VERSION,
        targets: found,
        throttles: throttle::throttles(host, &layers),
        layers,
        host: host::host(host),
        unseen,
    }
}

/// Where the log of a database lies whose data are in a directory: `pg_wal` of PostgreSQL, the redo
/// logs of InnoDB. `None` where there is no database that is known.
pub fn database_log(directory: &Path) -> Option<PathBuf> {
    let there = |name: &str| Some(directory.join(name)).filter(|path| path.exists());
    if there("PG_VERSION").is_some() {
        return there("pg_wal").or_else(|| there("pg_xlog"));
    }
    there("ibdata1")?;
    there("#innodb_redo").or_else(|| there("ib_logfile0"))
}

/// What is read into records is cut to this many characters.
const TEXT_MAX: usize = 400;

/// A one-line attribute of a length that a record may have.
fn line(host: &Host, path: impl AsRef<Path>) -> Option<String> {
    host.line(path).map(|text| cut(&text))
}

fn cut(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default().trim();
    first.chars().take(TEXT_MAX).collect()
}

/// A small number of sysfs; those that say "none" with -1 are `None`.
fn small(host: &Host, path: impl AsRef<Path>) -> Option<u32> {
    host.number(path).and_then(|number| u32::try_from(number).ok())
}
