//! Disks that are no drives: what clouds and hypervisors call them, and the limits that their
//! makers publish.

use record::stack::Disk;

use super::line;
use crate::host::Host;

/// One that is known: words in vendor and model, what it is, what limits it.
struct Row {
    vendor: &'static str,
    model: &'static str,
    name: &'static str,
    limits: &'static [&'static str],
}

const fn row(
    vendor: &'static str,
    model: &'static str,
    name: &'static str,
    limits: &'static [&'static str],
) -> Row {
    Row { vendor, model, name, limits }
}

const OF_CLOUD: &str =
    "the volume and the instance each have limits of their own, which the kernel does not see";

const ROWS: &[Row] = &[
    row(
        "",
        "Amazon Elastic Block Store",
        "Amazon EBS volume",
        &[
            "gp3 has 3000 IOPS and 125 MiB/s unless more was bought; gp2 has 3 IOPS per GiB and a \
             burst of 3000 that runs out; the instance has a limit over all its volumes",
            "a volume made of a snapshot is slow until every block was read once",
        ],
    ),
    row(
        "",
        "Amazon EC2 NVMe Instance Storage",
        "Amazon instance storage",
        &["what is on it is gone when the instance stops"],
    ),
    row(
        "Google",
        "PersistentDisk",
        "Google Persistent Disk",
        &["IOPS and throughput grow with its size and with the instance's processors"],
    ),
    row(
        "",
        "nvme_card-pd",
        "Google Persistent Disk",
        &["IOPS and throughput grow with its size and with the instance's processors"],
    ),
    row("", "nvme_card", "Google local SSD", &["what is on it is gone when the instance stops"]),
    row("", "MSFT NVMe Accelerator", "Azure disk", &[OF_CLOUD]),
    row(
        "",
        "Microsoft NVMe Direct Disk",
        "Azure local disk",
        &["what is on it is gone when the instance is moved"],
    ),
    row("Msft", "Virtual Disk", "Hyper-V or Azure disk", &[OF_CLOUD]),
    row("", "Alibaba Cloud Elastic Block Storage", "Alibaba Cloud disk", &[OF_CLOUD]),
    row("ORACLE", "BlockVolume", "Oracle Cloud block volume", &[OF_CLOUD]),
    row("DO", "Volume", "DigitalOcean volume", &[OF_CLOUD]),
    row("HC", "Volume", "Hetzner volume", &[OF_CLOUD]),
    row("VMware", "Virtual", "VMware virtual disk", &[]),
    row("", "VMware Virtual NVMe Disk", "VMware virtual disk", &[]),
    row("VBOX", "HARDDISK", "VirtualBox disk", &[]),
    row("", "VBOX HARDDISK", "VirtualBox disk", &[]),
    row("QEMU", "", "QEMU disk", &[]),
    row("", "QEMU", "QEMU disk", &[]),
    row("Linux", "scsi_debug", "scsi_debug: memory of this machine", &[]),
    row("LIO-ORG", "", "a Linux storage target", &[]),
];

/// What a disk is known as, and its limits.
pub(super) fn known(host: &Host, disk: &Disk, name: &str) -> (Option<String>, Vec<String>) {
    let (vendor, model) =
        (disk.vendor.as_deref().unwrap_or_default(), disk.model.as_deref().unwrap_or_default());
    let found = ROWS.iter().find(|row| {
        let is = |text: &str, wanted: &str| wanted.is_empty() || text.contains(wanted);
        !(vendor.is_empty() && model.is_empty()) && is(vendor, row.vendor) && is(model, row.model)
    });
    if let Some(row) = found {
        let limits = row.limits.iter().map(|&limit| limit.to_owned());
        return (Some(row.name.to_owned()), limits.collect());
    }
    let by_transport = match disk.transport.as_deref() {
        Some("virtio") => virtio(host),
        Some("xen") => Some("Xen virtual disk".to_owned()),
        Some("hyper-v") => Some("Hyper-V or Azure disk".to_owned()),
        Some("uml") => Some("User-Mode Linux disk: a file of the host".to_owned()),
        _ => None,
    };
    let network = ["nbd", "rbd", "drbd"]
        .iter()
        .find(|prefix| {
            name.strip_prefix(**prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .map(|prefix| format!("{prefix}: on another machine"));
    let limits = by_transport.iter().map(|_| {
        "the host decides what it can do; its cache and other guests are not seen from here"
            .to_owned()
    });
    let limits = limits.collect();
    (by_transport.or(network), limits)
}

fn virtio(host: &Host) -> Option<String> {
    let product = line(host, "/sys/class/dmi/id/sys_vendor");
    Some(match product {
        Some(vendor) => format!("virtual disk of {vendor}"),
        None => "virtual disk".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vendor: &str, model: &str, transport: Option<&str>) -> Option<String> {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let transport = transport.map(str::to_owned);
        let disk = Disk { vendor: text(vendor), model: text(model), transport, ..Disk::default() };
        known(&Host::captured("/no/such/tree"), &disk, "sda").0
    }

    #[test]
    fn clouds_are_known_and_drives_are_not() {
        assert_eq!(of("", "Amazon Elastic Block Store", None).unwrap(), "Amazon EBS volume");
        assert_eq!(of("Google", "PersistentDisk", None).unwrap(), "Google Persistent Disk");
        assert_eq!(of("", "nvme_card", None).unwrap(), "Google local SSD");
        assert_eq!(of("", "", Some("virtio")).unwrap(), "virtual disk");
        assert_eq!(of("ATA", "Samsung SSD 870", Some("sata")), None);
        assert_eq!(of("", "", None), None);
    }
}
