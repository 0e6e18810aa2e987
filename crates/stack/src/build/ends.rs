//! Making a device blank again that was blank before we wrote to it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use layout::{DeviceId, Made};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::build::is_there;
use crate::held::patiently;
use crate::host::Host;
use crate::mounts::DeviceNumber;
use crate::signature::{Family, Signature};

/// As much of each end as [`crate::probe`] looks at.
const END: u64 = 1 << 20;

/// What is told apart at both ends of a device.
const BLOCK: u64 = 4096;

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

/// The blocks of 4 KiB in the first and last MiB of a device that are not all zero: number of the
/// block, and a sum over its bytes.
pub fn end_marks(path: &Path, number: DeviceNumber) -> Result<BTreeMap<u64, u64>, EndsError> {
    let failed = |source| EndsError::System { path: path.display().to_string(), source };
    let mut file = File::open(path).map_err(failed)?;
    is_the_same(&file, path, number)?;
    marks(&mut file).map_err(failed)
}

/// The number of the block that holds a signature, as [`end_marks`] counts them.
pub fn block_of(signature: &Signature) -> u64 {
    signature.at.get() / BLOCK
}

fn marks(file: &mut File) -> Result<BTreeMap<u64, u64>, Error> {
    let size = file.seek(SeekFrom::End(0))?;
    // The ends of a small device are all of it.
    let (first, last) = if size <= 2 * END { (size, size) } else { (END, size - END) };
    let mut found = BTreeMap::new();
    for (mut at, end) in [(0, first), (last, size)] {
        file.seek(SeekFrom::Start(at))?;
        while at < end {
            // Numbered from the device's beginning, as the kernel writes them.
            let next = (at / BLOCK + 1).saturating_mul(BLOCK).min(end);
            let mut bytes = vec![0; (next - at) as usize];
            file.read_exact(&mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                found.insert(at / BLOCK, sum(&bytes));
            }
            at = next;
        }
    }
    Ok(found)
}

/// FNV-1a over words of 8 bytes, shorter at the end.
fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325, |sum: u64, chunk| {
        let word = chunk.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
        (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
    })
}

fn is_the_same(file: &File, path: &Path, then: DeviceNumber) -> Result<(), EndsError> {
    let path = path.display().to_string();
    let metadata = file.metadata();
    let now = DeviceNumber::from_dev(match metadata {
        Ok(metadata) => metadata.rdev(),
        Err(source) => return Err(EndsError::System { path, source }),
    });
    if now == then { Ok(()) } else { Err(EndsError::Exchanged { path, now, then }) }
}

/// Writes zeros over the first and the last MiB of a device that nobody uses, and over copies of
/// superblocks between. `false` if nothing was written, since it bears something else.
///
/// Only for a device that was all zero there before. What lies between keeps what runs wrote.
///
/// * `is_as_left`: whether what is at its ends, as [`end_marks`] tells it, may go. Asked while
///   nobody else can take the device into use.
pub fn blank_ends(
    path: &Path,
    number: DeviceNumber,
    is_as_left: &dyn Fn(BTreeMap<u64, u64>) -> bool,
) -> Result<bool, EndsError> {
    let text = path.display().to_string();
    let failed = |source| EndsError::System { path: text.clone(), source };
    // Refused while the kernel has it in any use.
    let flags = i32::try_from(OFlags::EXCL.bits()).unwrap_or(0);
    let open = || OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let mut file = patiently(Errno::BUSY, open).map_err(failed)?;
    is_the_same(&file, path, number)?;
    if !is_as_left(marks(&mut file).map_err(failed)?) {
        return Ok(false);
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
    file.sync_all().map_err(failed)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], name: &str) -> BTreeMap<u64, u64> {
        let path = std::env::temp_dir().join(format!("ends-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let found = marks(&mut File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn every_byte_of_both_ends_counts_and_none_between() {
        let size = 3 * END as usize + 1000;
        let blank = vec![0; size];
        assert!(of(&blank, "blank").is_empty());
        for (at, block) in [(0, 0), (4095, 0), (4096, 1), (END as usize - 1, 255)] {
            let mut bytes = blank.clone();
            bytes[at] = 1;
            let one = of(&bytes, "one");
            assert_eq!(one.keys().copied().collect::<Vec<_>>(), [block], "byte {at}");
            bytes[at] = 2;
            assert_ne!(of(&bytes, "two"), one, "byte {at}");
        }
        let mut bytes = blank.clone();
        bytes[END as usize] = 1;
        bytes[size - END as usize - 1] = 1;
        assert!(of(&bytes, "between").is_empty());
        bytes[size - 1] = 1;
        assert_eq!(of(&bytes, "last").len(), 1);
        // Of a small one all counts.
        assert_eq!(of(&[0, 0, 1], "small").len(), 1);
        // The order of bytes and words matters.
        let (mut one, mut two) = (vec![0; 4096], vec![0; 4096]);
        (one[0], one[8], two[0], two[8]) = (1, 2, 2, 1);
        assert_ne!(sum(&one), sum(&two));
    }
}
