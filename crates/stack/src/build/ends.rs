//! Making a device blank again that was blank before we wrote to it.

use std::fs::OpenOptions;
use std::io::{Error, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use layout::{DeviceId, Made};
use rustix::fs::OFlags;

use crate::build::is_there;
use crate::host::Host;
use crate::mounts::DeviceNumber;
use crate::signature::{Family, Signature};

/// As much of each end as [`crate::probe`] looks at.
const END: u64 = 1 << 20;

/// Copies of a btrfs superblock, which `wipefs` leaves; and where in each the magic is.
const BTRFS_COPIES: [u64; 2] = [64 << 20, 256 << 30];
const BTRFS_MAGIC: (u64, &[u8; 8]) = (64, b"_BHRfS_M");

/// Whether a signature is what stays when the tools have erased what they made: bytes that are of
/// nothing known, or a copy without the first.
fn is_remains(signature: &Signature) -> bool {
    signature.family == Family::UnknownData || signature.name == "btrfs (mirror)"
}

/// Whether all that is found on a device is what stays of ours when the tools have erased it.
///
/// `wipefs` erases the blocks of a zfs pool until `blkid`, which wants four of them, knows it no
/// more; up to three stay.
pub fn are_remains(host: &Host, device: &Path, signatures: &[Signature]) -> bool {
    let of_pool = |signature: &&Signature| signature.name == "zfs member";
    if !signatures.iter().all(|signature| is_remains(signature) || of_pool(&signature)) {
        return false;
    }
    let (kind, name) = ("zfs_member".to_owned(), None);
    let pool = Made::Signature { device: DeviceId::new(device.display().to_string()), kind, name };
    !signatures.iter().any(|signature| of_pool(&signature))
        || is_there(host, &pool).is_ok_and(|there| !there)
}

/// Why a device was not made blank.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndsError {
    /// The system refused; the device may be in use.
    #[error("cannot make {path} blank again: {source}")]
    System {
        /// Which.
        path: String,
        /// The system's answer.
        source: Error,
    },
    /// Another device has its name now.
    #[error("{path} is device {now} now, and was {then}: it is left alone")]
    Exchanged {
        /// Which.
        path: String,
        /// Found.
        now: DeviceNumber,
        /// Wanted.
        then: DeviceNumber,
    },
}

/// Writes zeros over the first and the last MiB of a device that nobody uses, and over copies of
/// superblocks between.
///
/// Only for a device that was all zero there before. What lies between keeps what runs wrote.
pub fn blank_ends(path: &Path, number: DeviceNumber) -> Result<(), EndsError> {
    let text = path.display().to_string();
    let failed = |source| EndsError::System { path: text.clone(), source };
    // Refused while the kernel has it in any use.
    let flags = i32::try_from(OFlags::EXCL.bits()).unwrap_or(0);
    let mut file =
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(failed)?;
    let now = DeviceNumber::from_dev(file.metadata().map_err(failed)?.rdev());
    if now != number {
        return Err(EndsError::Exchanged { path: text.clone(), now, then: number });
    }
    let size = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let zeros = vec![0; END.min(size) as usize];
    for at in [0, size.saturating_sub(END)] {
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        file.write_all(&zeros).map_err(failed)?;
    }
    for at in BTRFS_COPIES {
        let (within, magic) = BTRFS_MAGIC;
        let mut found = [0; 8];
        if at.saturating_add(4096) <= size {
            file.seek(SeekFrom::Start(at.saturating_add(within))).map_err(failed)?;
            file.read_exact(&mut found).map_err(failed)?;
        }
        if found == *magic {
            file.seek(SeekFrom::Start(at)).map_err(failed)?;
            file.write_all(&[0; 4096]).map_err(failed)?;
        }
    }
    file.sync_all().map_err(failed)
}
