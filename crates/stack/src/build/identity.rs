//! By what a device is known again.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use units::Bytes;

use crate::block;
use crate::host::Host;
use crate::mounts::DeviceNumber;
use crate::target::FileId;

/// By what a device is known again: names and numbers may be another's after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// The kernel's name.
    pub name: String,
    /// Major and minor number.
    pub number: DeviceNumber,
    /// Bytes on it.
    pub size: Bytes,
    /// What the drive says it is; of a partition the disk's, with the partition's number.
    pub serial: Option<String>,
    /// World-wide name.
    pub wwid: Option<String>,
    /// The file of a loop device.
    pub file: Option<String>,
    /// That file itself, whatever its name.
    pub file_id: Option<FileId>,
    /// The byte of that file with which the device begins.
    pub offset: Option<u64>,
    /// Of this start of the machine.
    pub boot: String,
    /// The disk that has the queue: itself, or the disk of a partition.
    pub disk: String,
    /// Smallest request.
    pub logical_sector: Bytes,
    /// Smallest that is written without reading.
    pub physical_sector: Bytes,
}

/// Which device a path is; `None` if it is no block device that the kernel shows.
pub fn identity(host: &Host, path: &Path) -> Option<DeviceIdentity> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.file_type().is_block_device() {
        return None;
    }
    let number = DeviceNumber::from_dev(metadata.rdev());
    let name = block::name_of(host, number)?;
    let device = block::device(host, &name, 0, false)?;
    let disk = block::disk_of(host, &name).unwrap_or_else(|| name.clone());
    // Some drivers have the file and nothing to say in it.
    let says = |text: &String| text != "(null)" && text.chars().any(|c| c != '0');
    let of_disk = |file: &str| host.line(format!("/sys/class/block/{disk}/{file}")).filter(says);
    let partition = host.line(format!("/sys/class/block/{name}/partition"));
    let of_partition = |text: String| match &partition {
        Some(number) => format!("{text}-part{number}"),
        None => text,
    };
    let serial = of_disk("device/serial").or_else(|| of_disk("serial"));
    let wwid = of_disk("wwid").or_else(|| of_disk("device/wwid"));
    let file = block::loop_file(host, &name);
    Some(DeviceIdentity {
        number,
        size: device.size,
        serial: serial.map(of_partition),
        wwid: wwid.map(of_partition),
        file_id: file
            .as_ref()
            .and_then(|file| std::fs::metadata(file).ok())
            .map(|m| FileId::of(&m)),
        offset: file
            .is_some()
            .then(|| host.number(format!("/sys/class/block/{name}/loop/offset")))
            .flatten(),
        file: file.map(|file| file.display().to_string()),
        boot: host.line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
        disk,
        logical_sector: device.logical_sector.unwrap_or(Bytes::new(512)),
        physical_sector: device.physical_sector.unwrap_or(Bytes::new(512)),
        name,
    })
}
