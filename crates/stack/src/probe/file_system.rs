use std::io;
use std::path::PathBuf;

use record::stack::FileSystem;

use super::layers::Layers;
use super::patience::within;
use super::superblock::{self, Superblock};
use crate::block::KERNEL_SECTOR;
use crate::mounts::Mount;
use crate::target::is_memory_or_network;

/// A mounted file system; what it is made of is looked at elsewhere.
///
/// * `device`: the kernel's name of what it is on, if that is one device.
pub(super) fn file_system(
    layers: &mut Layers<'_>,
    mount: &Mount,
    device: Option<&str>,
) -> FileSystem {
    let kind = mount.file_system.clone();
    let superblock = device.and_then(|device| read_superblock(layers, &kind, device));
    let block_bytes = match &superblock {
        Some(found) => Some(found.block_bytes),
        None => block_bytes(layers, mount),
    };
    let mut found = FileSystem {
        point: mount.point.display().to_string(),
        source: mount.source.clone(),
        options: mount.options.iter().map(|option| super::cut(option)).collect(),
        block_bytes,
        journal: mount.value("logdev").or_else(|| mount.value("journal_path")).map(str::to_owned),
        kind,
        ..FileSystem::default()
    };
    let (unit, width) = stripe(mount, block_bytes);
    (found.stripe_unit_bytes, found.stripe_width_bytes) = (unit, width);
    if let Some(superblock) = superblock {
        found.features = superblock.features;
        // What it was mounted with counts, if it says: it may differ from what it was made with.
        found.stripe_unit_bytes = found.stripe_unit_bytes.or(superblock.stripe_unit_bytes);
        found.stripe_width_bytes = found.stripe_width_bytes.or(superblock.stripe_width_bytes);
    }
    found
}

/// What the mount's options tell: xfs lists `sunit` and `swidth` in sectors of 512 bytes, and not
/// at all where there are none; ext4 `stripe` in blocks, likewise.
fn stripe(mount: &Mount, block_bytes: Option<u64>) -> (Option<u64>, Option<u64>) {
    let number = |name: &str| mount.value(name).and_then(|text| text.parse::<u64>().ok());
    match mount.file_system.as_str() {
        "xfs" => {
            let bytes = |name| number(name).unwrap_or(0).checked_mul(KERNEL_SECTOR);
            (bytes("sunit"), bytes("swidth"))
        }
        "ext4" => {
            let blocks = number("stripe").unwrap_or(0);
            let width = block_bytes.and_then(|bytes| bytes.checked_mul(blocks));
            (None, if blocks == 0 { Some(0) } else { width })
        }
        _ => (None, None),
    }
}

fn block_bytes(layers: &Layers<'_>, mount: &Mount) -> Option<u64> {
    // A server that is gone is waited for in vain, and memory has pages.
    if is_memory_or_network(&mount.file_system) || mount.file_system.starts_with("fuse") {
        return None;
    }
    let point: PathBuf = mount.point.clone();
    let name = format!("block-size{}", escaped(&point.display().to_string()));
    let answer = layers.host.answer(&name, move || {
        within(move || Ok(rustix::fs::statvfs(&point)?.f_bsize.to_string()))
    });
    answer.ok()?.trim().parse().ok()
}

/// A path as the name of one file.
fn escaped(path: &str) -> String {
    path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn read_superblock(layers: &mut Layers<'_>, kind: &str, device: &str) -> Option<Superblock> {
    if !matches!(kind, "ext2" | "ext3" | "ext4" | "xfs") {
        return None;
    }
    let name = format!("superblock-{}", escaped(device));
    let node = device.to_owned();
    let answer = layers.host.answer(&name, || {
        let host = layers.host.clone();
        within(move || superblock::read(&host, &node))
    });
    match answer {
        Ok(text) => superblock::parse(kind, &text),
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "this process may not read the device".to_owned()
                }
                _ => error.to_string(),
            };
            layers.unseen(format!("with which features {kind} on {device} was made"), why);
            None
        }
    }
}
