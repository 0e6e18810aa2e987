//! The slowest link on the way from the host to the devices.
//!
//! Every link is taken at the most that it can carry, never at less: what a rate says of a link
//! is that it is *above* it, and that must not be wrong. So members of an array add up (a mirror
//! may read from all of them), packets are taken to be as large as the hardware makes them, and
//! where one way is unknown there is no ceiling at all.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use record::Link;

use crate::block::BlockKind;
use crate::host::Host;
use crate::target::Target;

/// What the devices of a target can move in one direction, by the links on their paths in sysfs.
///
/// `None` where no link is known on one of the ways: virtual disks, network block devices, memory,
/// or members that could not be seen.
///
/// * PCIe: `current_link_speed` times `current_link_width`, coding taken off (8b/10b up to 5 GT/s,
///   128b/130b from 8 GT/s, flits of 236 in 256 bytes at 64 GT/s), and 24 bytes of header, framing
///   and check per packet of 512 bytes. Links that an emulator makes up do not count.
/// * SATA: `sata_spd`, 8b/10b. SAS: `negotiated_linkrate` of every phy of a port, 8b/10b,
///   128b/150b at 22.5 Gbit. USB: `speed`; 13 packets of 512 bytes a microframe at 480 Mbit/s,
///   8b/10b at 5 Gbit/s, 128b/132b above. Packets are not taken off: framing is a few percent.
pub fn slowest_link(host: &Host, target: &Target) -> Option<Link> {
    if !target.unseen.is_empty() {
        return None;
    }
    let mut root = Node::default();
    let bottom = target.devices.iter().filter(|device| is_bottom(&device.kind));
    for device in bottom {
        for (place, name) in places(host, &device.name) {
            root.add(host, &place, &name);
        }
    }
    let found = root.most("")?;
    Some(Link { name: named(&found.names), bytes_per_second: found.bytes_per_second })
}

fn is_bottom(kind: &BlockKind) -> bool {
    matches!(kind, BlockKind::Disk | BlockKind::Zram | BlockKind::Ram)
}

/// Where a device hangs below `/sys/devices`, with its name: several places for a drive with more
/// than one controller.
pub(crate) fn places(host: &Host, device: &str) -> Vec<(Vec<String>, String)> {
    let class = Path::new("/sys/class/block").join(device.replace('/', "!"));
    let Some(link) = host.link(class) else { return vec![(Vec::new(), device.to_owned())] };
    let place = below_devices(&link);
    // A drive that may have several controllers is a virtual device of its subsystem, with links
    // to them beside it.
    let subsystem =
        place.iter().position(|part| part.starts_with("nvme-subsys") && part != "nvme-subsystem");
    if let Some(at) = subsystem {
        let directory = Path::new("/sys/devices").join(place[..=at].join("/"));
        let controllers: Vec<_> = host
            .names(&directory)
            .into_iter()
            .filter(|name| is_controller(name))
            .filter_map(|name| Some((below_devices(&host.link(directory.join(&name))?), name)))
            .collect();
        if !controllers.is_empty() {
            return controllers;
        }
    }
    vec![(place, device.to_owned())]
}

/// `nvme0`, not `nvme0n1`.
fn is_controller(name: &str) -> bool {
    name.strip_prefix("nvme")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// `../../devices/pci0000:00/x` as `pci0000:00`, `x`; also of a link that says only the last part.
fn below_devices(link: &Path) -> Vec<String> {
    let parts = link.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    parts.skip_while(|part| part == "devices").collect()
}

/// A directory below `/sys/devices`, with the link that leads to it.
#[derive(Debug, Default)]
struct Node {
    link: Option<(String, u64)>,
    below: BTreeMap<String, Node>,
    /// Of the devices that hang here or further down.
    devices: Vec<String>,
}

/// The most that gets through.
struct Most {
    bytes_per_second: u64,
    names: Vec<String>,
}

/// Deeper is a loop.
const DEPTH_MAX: usize = 64;

impl Node {
    fn add(&mut self, host: &Host, place: &[String], device: &str) {
        self.devices.push(device.to_owned());
        let mut node = self;
        for depth in 0..place.len().min(DEPTH_MAX) {
            let parents = Path::new("/sys/devices").join(place[..depth].join("/"));
            node = node.below.entry(place[depth].clone()).or_default();
            node.link = link_to(host, &parents, &place[depth]);
            node.devices.push(device.to_owned());
        }
    }

    /// What gets through to the devices below: their sum, but not more than the link here.
    fn most(&self, name: &str) -> Option<Most> {
        let below = self.below.iter().map(|(name, node)| node.most(name));
        let sum = below.reduce(|a, b| {
            let (mut a, b) = (a?, b?);
            a.names.extend(b.names);
            a.bytes_per_second = a.bytes_per_second.saturating_add(b.bytes_per_second);
            Some(a)
        });
        let here = self.link.as_ref().map(|(what, bytes_per_second)| Most {
            bytes_per_second: *bytes_per_second,
            names: vec![match self.devices.as_slice() {
                [one] => format!("{what} of {one}"),
                _ => format!("{what} of {name}"),
            }],
        });
        match (sum.flatten(), here) {
            (Some(sum), Some(here)) if sum.bytes_per_second <= here.bytes_per_second => Some(sum),
            (_, Some(here)) => Some(here),
            (sum, None) => sum,
        }
    }
}

fn named(names: &[String]) -> String {
    match names {
        [first, _, _, _, ..] => format!("{} links together, such as {first}", names.len()),
        _ => names.join(" and "),
    }
}

/// The link whose lower end is the directory `name` of `parents`: its name and bytes a second.
fn link_to(host: &Host, parents: &Path, name: &str) -> Option<(String, u64)> {
    let here = parents.join(name);
    pcie(host, &here)
        .or_else(|| sata(host, &here, name))
        .or_else(|| sas(host, &here, name))
        .or_else(|| usb(host, &here))
}

/// Vendors of emulated PCI devices: virtio, QEMU. Their links are made up.
pub(crate) const EMULATED: [&str; 2] = ["0x1af4", "0x1b36"];

fn pcie(host: &Host, here: &Path) -> Option<(String, u64)> {
    let speed = host.line(here.join("current_link_speed"))?;
    let lanes = host.number(here.join("current_link_width"))?;
    let vendor = host.line(here.join("vendor")).unwrap_or_default();
    if !(1..=32).contains(&lanes) || EMULATED.contains(&&*vendor) {
        return None;
    }
    pcie_rate(&speed, lanes)
}

/// What lanes of a speed such as `8.0 GT/s PCIe` carry.
pub(crate) fn pcie_rate(speed: &str, lanes: u64) -> Option<(String, u64)> {
    let (generation, bits) = pcie_lane(speed.split_whitespace().next()?)?;
    let packets = 512.0 / (512.0 + 24.0);
    let bytes = bits / 8.0 * lanes as f64 * packets;
    Some((format!("PCIe {generation} x{lanes}"), bytes as u64))
}

/// Generation and bits a second of one lane, coding taken off.
fn pcie_lane(transfers: &str) -> Option<(&'static str, f64)> {
    Some(match transfers {
        "2.5" => ("1.0", 2.5e9 * 0.8),
        "5.0" | "5" => ("2.0", 5e9 * 0.8),
        "8.0" | "8" => ("3.0", 8e9 * 128.0 / 130.0),
        "16.0" | "16" => ("4.0", 16e9 * 128.0 / 130.0),
        "32.0" | "32" => ("5.0", 32e9 * 128.0 / 130.0),
        "64.0" | "64" => ("6.0", 64e9 * 236.0 / 256.0),
        _ => return None,
    })
}

fn sata(host: &Host, here: &Path, name: &str) -> Option<(String, u64)> {
    let number = name.strip_prefix("ata")?;
    let link = format!("link{number}");
    let speed = host.line(here.join(&link).join("ata_link").join(&link).join("sata_spd"))?;
    sata_rate(&speed)
}

/// What a link of `6.0 Gbps` carries.
pub(crate) fn sata_rate(speed: &str) -> Option<(String, u64)> {
    let gbit: f64 = speed.split_whitespace().next()?.parse().ok()?;
    (gbit > 0.0).then(|| (format!("SATA {gbit:.1} Gb/s"), (gbit * 1e9 * 0.8 / 8.0) as u64))
}

/// A port's phys add up: ports to expanders are often four wide.
fn sas(host: &Host, here: &Path, name: &str) -> Option<(String, u64)> {
    name.strip_prefix("port-")?;
    sas_rate(host, here, "negotiated_linkrate")
}

/// What the phys of a port carry together, by one of their attributes.
pub(crate) fn sas_rate(host: &Host, port: &Path, attribute: &str) -> Option<(String, u64)> {
    let phys = host.names(port).into_iter().filter(|entry| entry.starts_with("phy-"));
    let rates: Vec<f64> = phys
        .filter_map(|phy| {
            let rate = host.line(port.join(&phy).join("sas_phy").join(&phy).join(attribute))?;
            rate.strip_suffix(" Gbit")?.parse().ok()
        })
        .filter(|&gbit: &f64| gbit > 0.0)
        .collect();
    let most = rates.iter().copied().reduce(f64::max)?;
    let bits: f64 = rates.iter().map(|gbit| gbit * 1e9 * sas_coding(*gbit)).sum();
    let wide = if rates.len() > 1 { format!(" x{}", rates.len()) } else { String::new() };
    Some((format!("SAS {most:.1} Gb/s{wide}"), (bits / 8.0) as u64))
}

fn sas_coding(gbit: f64) -> f64 {
    if gbit > 13.0 { 128.0 / 150.0 } else { 0.8 }
}

pub(crate) fn usb(host: &Host, here: &Path) -> Option<(String, u64)> {
    // Many things have a `speed`; only devices on USB have a bus number.
    if !host.exists(here.join("busnum")) {
        return None;
    }
    let mbit = host.number(here.join("speed"))?;
    let bytes = match mbit {
        0..=12 => mbit * 1_000_000 / 8,
        480 => 13 * 512 * 8000,
        5000 => 500_000_000,
        _ => mbit.saturating_mul(1_000_000) / 8 * 128 / 132,
    };
    (bytes > 0).then(|| (format!("USB {mbit} Mb/s"), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_carry_what_the_standard_says() {
        let lane = |text: &str| pcie_lane(text).map(|(name, bits)| (name, (bits / 8e6) as u64));
        assert_eq!(lane("2.5"), Some(("1.0", 250)));
        assert_eq!(lane("5.0"), Some(("2.0", 500)));
        assert_eq!(lane("8.0"), Some(("3.0", 984)));
        assert_eq!(lane("16.0"), Some(("4.0", 1969)));
        assert_eq!(lane("Unknown"), None);
    }

    #[test]
    fn places_are_below_devices() {
        let parts = below_devices(Path::new("../../devices/pci0/ata1/block/sda"));
        assert_eq!(parts, ["pci0", "ata1", "block", "sda"]);
        assert!(is_controller("nvme12") && !is_controller("nvme0n1") && !is_controller("nvme"));
    }

    #[test]
    fn many_links_are_counted_not_listed() {
        let names: Vec<String> = (0..5).map(|i| format!("SATA of sd{i}")).collect();
        assert_eq!(named(&names[..2]), "SATA of sd0 and SATA of sd1");
        assert_eq!(named(&names), "5 links together, such as SATA of sd0");
    }
}
