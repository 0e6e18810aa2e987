use std::path::Path;

use record::stack::Disk;

use super::serial::Shown;
use super::{bus, known, line, small};
use crate::block::class;
use crate::host::Host;

/// A disk, by what it shows in sysfs; and whether its serial number had to be left out.
pub(super) fn disk(host: &Host, name: &str, serials: &Shown) -> (Disk, bool) {
    let directory = class(name);
    let device = directory.join("device");
    let text = |path: &Path| line(host, path);
    let place = host.link(&directory).unwrap_or_default();
    let driver = driver(host, &device).or_else(|| driver(host, &device.join("device")));
    let serial = text(&device.join("serial"))
        .or_else(|| text(&directory.join("serial")))
        .or_else(|| unit_serial(host, &device.join("vpd_pg80")));
    let shown = serial.as_ref().and_then(|serial| serials.text(serial));
    let left_out = serial.is_some() && shown.is_none();
    let queues = host.names(directory.join("mq")).len();
    let mut disk = Disk {
        // virtio has its maker's number there.
        vendor: text(&device.join("vendor")).filter(|vendor| !vendor.starts_with("0x")),
        model: text(&device.join("model")),
        firmware: text(&device.join("firmware_rev")).or_else(|| text(&device.join("rev"))),
        serial: shown,
        transport: transport(host, &device, &place.to_string_lossy()),
        queue_depth: small(host, device.join("queue_depth")),
        queues: u32::try_from(queues).ok().filter(|&queues| queues > 0),
        cache: cache(host, &device),
        numa_node: small(host, device.join("numa_node")),
        wire: bus::wire_of_disk(host, name),
        driver,
        ..Disk::default()
    };
    (disk.known_as, disk.known_limits) = known::known(host, &disk, name);
    (disk, left_out)
}

fn driver(host: &Host, device: &Path) -> Option<String> {
    let link = host.link(device.join("driver"))?;
    Some(super::cut(&link.file_name()?.to_string_lossy()))
}

/// What a SCSI disk says of its own write cache: the kernel may have been told otherwise.
fn cache(host: &Host, device: &Path) -> Option<String> {
    let directory = device.join("scsi_disk");
    let entry = host.names(&directory).into_iter().next()?;
    line(host, directory.join(entry).join("cache_type"))
}

/// A page of SCSI vital product data: four bytes of header, then the number.
fn unit_serial(host: &Host, path: &Path) -> Option<String> {
    let bytes = host.bytes(path).ok()?;
    // A captured one is text.
    let text = bytes.strip_prefix(b"#").map(|_| bytes.as_slice()).or_else(|| bytes.get(4..))?;
    let text = String::from_utf8_lossy(text);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    (!text.is_empty()).then(|| super::cut(text))
}

fn transport(host: &Host, device: &Path, place: &str) -> Option<String> {
    if let Some(how) = line(host, device.join("transport")) {
        return Some(if how == "pcie" { "nvme".to_owned() } else { format!("nvme over {how}") });
    }
    let has = |part: &str| place.split('/').any(|word| word.starts_with(part));
    let known: [(&str, &str); 13] = [
        ("nvme", "nvme"),
        ("session", "iscsi"),
        ("rport-", "fc"),
        ("end_device-", "sas"),
        ("ata", "sata"),
        ("usb", "usb"),
        ("virtio", "virtio"),
        ("vbd-", "xen"),
        ("VMBUS", "hyper-v"),
        ("vmbus", "hyper-v"),
        ("mmc", "mmc"),
        ("uml-blkdev", "uml"),
        ("pseudo", "memory"),
    ];
    known.iter().find(|(part, _)| has(part)).map(|(_, name)| (*name).to_owned())
}
