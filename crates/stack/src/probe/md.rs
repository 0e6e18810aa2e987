use std::path::Path;

use record::stack::{Md, MdMember};

use super::{line, small};
use crate::block::{KERNEL_SECTOR, class};
use crate::host::Host;

/// An md array, by what it shows in sysfs.
pub(super) fn md(host: &Host, name: &str) -> Md {
    let directory = class(name).join("md");
    let text = |attribute: &str| line(host, directory.join(attribute));
    let number = |attribute: &str| host.number(directory.join(attribute));
    let level = text("level").unwrap_or_default();
    Md {
        layout: number("layout"),
        // Levels without chunks say 0.
        chunk_bytes: number("chunk_size").filter(|&bytes| bytes > 0),
        // While it grows it says both numbers: `5 (4)`.
        wanted: text("raid_disks").and_then(|t| t.split_whitespace().next()?.parse().ok()),
        missing: small(host, directory.join("degraded")),
        members: members(host, &directory),
        state: text("array_state"),
        sync: text("sync_action"),
        metadata: text("metadata_version"),
        bitmap: bitmap(text("bitmap/location")),
        bitmap_chunk_bytes: number("bitmap/chunksize").filter(|&bytes| bytes > 0),
        consistency: text("consistency_policy"),
        stripe_cache_pages: number("stripe_cache_size"),
        threads: number("group_thread_cnt"),
        level,
    }
}

/// `+8` is the place of an internal one, relative to the superblock.
fn bitmap(location: Option<String>) -> Option<String> {
    location.map(|text| match text.as_str() {
        "none" | "file" | "clustered" => text,
        _ => "internal".to_owned(),
    })
}

fn members(host: &Host, directory: &Path) -> Vec<MdMember> {
    let entries = host.names(directory);
    let mut members: Vec<MdMember> = entries
        .iter()
        .filter_map(|entry| Some((entry, entry.strip_prefix("dev-")?)))
        .map(|(entry, device)| member(host, &directory.join(entry), device))
        .collect();
    members.sort_by_key(|member| (member.slot.unwrap_or(u32::MAX), member.layer.clone()));
    members
}

fn member(host: &Host, directory: &Path, device: &str) -> MdMember {
    // The link says it better than the name, in which slashes are lost.
    let link = host.link(directory.join("block"));
    let linked =
        link.as_deref().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
    let sectors = host.number(directory.join("offset"));
    MdMember {
        layer: linked.unwrap_or_else(|| device.to_owned()),
        slot: small(host, directory.join("slot")),
        state: line(host, directory.join("state")),
        offset_bytes: sectors.and_then(|n| n.checked_mul(KERNEL_SECTOR)),
        errors: host.number(directory.join("errors")),
    }
}
