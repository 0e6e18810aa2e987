//! Controllers and links between disks and processor.

use std::path::{Path, PathBuf};

use record::Link;
use record::stack::{Controller, What, Wire};

use super::layers::Layers;
use super::{line, small};
use crate::host::Host;
use crate::link::{EMULATED, pcie_rate, places, sas_rate, sata_rate, usb};

fn link((name, bytes_per_second): (String, u64)) -> Link {
    Link { name, bytes_per_second }
}

/// Every directory below `/sys/devices` on the way to a device, the nearest first.
fn way(place: &[String]) -> impl Iterator<Item = (PathBuf, &str)> {
    (1..=place.len()).rev().filter_map(|length| {
        let parts = place.get(..length)?;
        Some((Path::new("/sys/devices").join(parts.join("/")), parts.last()?.as_str()))
    })
}

/// Adds the controllers that a disk hangs at; ids of the nearest.
pub(super) fn above_disk(layers: &mut Layers<'_>, disk: &str) -> Vec<String> {
    let places = places(layers.host, disk);
    let mut ids = Vec::new();
    for (place, _) in places.iter().rev() {
        let hops: Vec<(PathBuf, String)> = way(place)
            .filter(|(path, name)| is_hop(layers.host, path, name))
            .map(|(path, name)| (path, name.to_owned()))
            .collect();
        ids.extend(hop(layers, &hops));
    }
    ids.reverse();
    ids.dedup();
    ids
}

fn is_pci(name: &str) -> bool {
    // `0000:01:00.0`; a domain may have more digits. Addresses of SCSI have no dot.
    let is_hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((place, function)) = name.split_once('.') else { return false };
    let words: Vec<&str> = place.split(':').collect();
    let [domain, bus, device] = words[..] else { return false };
    let lengths = (domain.len() >= 4, bus.len(), device.len(), function.len());
    lengths == (true, 2, 2, 1) && [domain, bus, device, function].iter().all(|w| is_hex(w))
}

fn is_hop(host: &Host, path: &Path, name: &str) -> bool {
    is_pci(name) || host.exists(path.join("busnum"))
}

/// Adds the first of the hops and those above it.
fn hop(layers: &mut Layers<'_>, hops: &[(PathBuf, String)]) -> Option<String> {
    let ((path, name), rest) = hops.split_first()?;
    let id = layers.single(
        name,
        |layers| What::Controller(controller(layers, path, name)),
        |layers| hop(layers, rest),
    );
    Some(id)
}

fn controller(layers: &mut Layers<'_>, path: &Path, name: &str) -> Controller {
    let host = layers.host;
    let driver = host.link(path.join("driver"));
    let driver =
        driver.as_deref().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
    if !is_pci(name) {
        return Controller {
            bus: "usb".to_owned(),
            driver,
            wire: usb(host, path).map(|now| Wire { now: link(now), capable: None }),
            ..Controller::default()
        };
    }
    let number = |attribute: &str| {
        line(host, path.join(attribute)).map(|text| text.trim_start_matches("0x").to_owned())
    };
    let vendor = number("vendor");
    let emulated = line(host, path.join("vendor")).is_some_and(|v| EMULATED.contains(&v.as_str()));
    let device = vendor.zip(number("device")).map(|(vendor, device)| format!("{vendor}:{device}"));
    Controller {
        bus: "pci".to_owned(),
        class: line(host, path.join("class")).as_deref().and_then(class),
        device,
        driver,
        slot: layers.slot(name),
        numa_node: small(host, path.join("numa_node")),
        wire: if emulated { None } else { pcie(host, path) },
        emulated,
    }
}

/// A class code as a word: base and sub class of the PCI code assignment.
fn class(code: &str) -> Option<String> {
    let word = match code.strip_prefix("0x")?.get(..4)? {
        "0100" => "scsi",
        "0101" => "ide",
        "0104" => "raid",
        "0106" => "sata",
        "0107" => "sas",
        "0108" => "nvme",
        "0180" => "storage",
        "0604" => "bridge",
        "0c03" => "usb",
        other if other.starts_with("02") => "network",
        _ => return None,
    };
    Some(word.to_owned())
}

fn pcie(host: &Host, path: &Path) -> Option<Wire> {
    let rate = |which: &str| {
        let speed = line(host, path.join(format!("{which}_link_speed")))?;
        let lanes = host.number(path.join(format!("{which}_link_width")))?;
        // 255 is what a device says that does not answer.
        (1..=32).contains(&lanes).then(|| pcie_rate(&speed, lanes).map(link)).flatten()
    };
    Some(Wire { now: rate("current")?, capable: rate("max") })
}

/// The last link to a disk, where that is none of a controller.
pub(super) fn wire_of_disk(host: &Host, disk: &str) -> Option<Wire> {
    let places = places(host, disk);
    let (place, _) = places.first()?;
    way(place).find_map(|(path, name)| sata(host, &path, name).or_else(|| sas(host, &path, name)))
}

fn sata(host: &Host, path: &Path, name: &str) -> Option<Wire> {
    let number = name.strip_prefix("ata")?;
    let here = path.join(format!("link{number}/ata_link/link{number}"));
    let rate = |attribute: &str| sata_rate(&line(host, here.join(attribute))?).map(link);
    Some(Wire { now: rate("sata_spd")?, capable: rate("hw_sata_spd_limit") })
}

fn sas(host: &Host, path: &Path, name: &str) -> Option<Wire> {
    name.strip_prefix("port-")?;
    let now = sas_rate(host, path, "negotiated_linkrate")?;
    Some(Wire { now: link(now), capable: sas_rate(host, path, "maximum_linkrate_hw").map(link) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_pci_are_told_from_other_names() {
        assert!(is_pci("0000:01:00.0") && is_pci("10000:e1:00.0"));
        for name in ["pci0000:00", "1:0:0:0", "ata1", "0000:01:00", "0000:01:00.0.1", "::.", ""] {
            assert!(!is_pci(name), "{name}");
        }
    }

    #[test]
    fn classes_have_words() {
        assert_eq!(class("0x010802").as_deref(), Some("nvme"));
        assert_eq!(class("0x020000").as_deref(), Some("network"));
        assert_eq!(class("0xé10802"), None);
        assert_eq!(class("0x01"), None);
    }
}
