//! What ext2, ext3, ext4 and xfs write about themselves at their beginning.
//!
//! Offsets: `fs/ext4/ext4.h` (`struct ext4_super_block`) and `fs/xfs/libxfs/xfs_format.h`
//! (`struct xfs_dsb`) of Linux.

use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};

use crate::block::number_of;
use crate::host::Host;
use crate::mounts::DeviceNumber;

/// Both fit into so many bytes.
const LENGTH: usize = 2048;
/// Names and numbers that tell one file system from another: uuid, label, last mount point.
const PRIVATE: [std::ops::Range<usize>; 4] = [32..48, 108..120, 1024 + 104..1024 + 200, 248..264];

/// What is told there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) block_bytes: u64,
    /// 0 where there is no stripe.
    pub(super) stripe_unit_bytes: Option<u64>,
    pub(super) stripe_width_bytes: Option<u64>,
    pub(super) features: Vec<String>,
}

/// The first bytes of a device as hex digits, without what is private.
pub(super) fn read(host: &Host, name: &str) -> io::Result<String> {
    use rustix::fs::{CWD, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let path = host.path(format!("/dev/{}", name.replace('!', "/")));
    let file = std::fs::File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    let number = DeviceNumber::from_dev(metadata.rdev());
    if !metadata.file_type().is_block_device() || number_of(host, name) != Some(number) {
        return Err(io::Error::other(format!("/dev/{name} is not the device {name}")));
    }
    let mut bytes = [0; LENGTH];
    file.read_exact_at(&mut bytes, 0)?;
    for range in PRIVATE {
        if let Some(private) = bytes.get_mut(range) {
            private.fill(0);
        }
    }
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = digits.chunks(2).take(LENGTH).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect()
}

/// Reads what [`read`] made.
pub(super) fn parse(kind: &str, text: &str) -> Option<Superblock> {
    let bytes = unhex(text)?;
    if kind == "xfs" { xfs(&bytes) } else { ext(&bytes) }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn named(found: u32, names: &[(u32, &str)]) -> impl Iterator<Item = String> {
    names.iter().filter(move |(bit, _)| found & bit != 0).map(|(_, name)| (*name).to_owned())
}

fn ext(bytes: &[u8]) -> Option<Superblock> {
    let short = |at: usize| array(bytes, 1024 + at).map(u16::from_le_bytes);
    let long = |at: usize| array(bytes, 1024 + at).map(u32::from_le_bytes);
    if short(0x38)? != 0xef53 {
        return None;
    }
    let block_bytes = 1024u64.checked_shl(long(0x18)?).filter(|b| (1024..=65536).contains(b))?;
    let compatible = [(0x4, "has_journal"), (0x400, "fast_commit")];
    let incompatible = [
        (0x8, "external_journal"),
        (0x40, "extent"),
        (0x80, "64bit"),
        (0x200, "flex_bg"),
        (0x8000, "inline_data"),
        (0x10000, "encrypt"),
        (0x20000, "casefold"),
    ];
    let read_only = [(0x200, "bigalloc"), (0x400, "metadata_csum"), (0x8000, "verity")];
    let features = named(long(0x5c)?, &compatible)
        .chain(named(long(0x60)?, &incompatible))
        .chain(named(long(0x64)?, &read_only));
    let blocks = |n: u64| n.checked_mul(block_bytes);
    Some(Superblock {
        block_bytes,
        stripe_unit_bytes: blocks(short(0x164)?.into()),
        stripe_width_bytes: blocks(long(0x170)?.into()),
        features: features.collect(),
    })
}

fn xfs(bytes: &[u8]) -> Option<Superblock> {
    let short = |at: usize| array(bytes, at).map(u16::from_be_bytes);
    let long = |at: usize| array(bytes, at).map(u32::from_be_bytes);
    if array(bytes, 0)? != *b"XFSB" {
        return None;
    }
    let block_bytes = u64::from(long(4)?);
    if !(512..=65536).contains(&block_bytes) {
        return None;
    }
    let mut features = Vec::new();
    if short(100)? & 0xf == 5 {
        features.push("crc".to_owned());
        let read_only = [(1, "finobt"), (2, "rmapbt"), (4, "reflink"), (8, "inobtcount")];
        features.extend(named(long(212)?, &read_only));
        let incompatible = [(2, "sparse"), (8, "bigtime"), (0x20, "nrext64")];
        features.extend(named(long(216)?, &incompatible));
    }
    if array(bytes, 48).map(u64::from_be_bytes)? == 0 {
        features.push("external_log".to_owned());
    }
    features.push(format!("agcount={}", long(88)?));
    let blocks = |n: u32| u64::from(n).checked_mul(block_bytes);
    Some(Superblock {
        block_bytes,
        stripe_unit_bytes: blocks(long(184)?),
        stripe_width_bytes: blocks(long(188)?),
        features,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext4_tells_its_stripe() {
        let mut bytes = [0u8; LENGTH];
        bytes[1024 + 0x38..1024 + 0x3a].copy_from_slice(&0xef53u16.to_le_bytes());
        bytes[1024 + 0x18] = 2;
        bytes[1024 + 0x5c] = 4;
        bytes[1024 + 0x60] = 0x40;
        bytes[1024 + 0x164] = 16;
        bytes[1024 + 0x170] = 64;
        let found = parse("ext4", &hex(&bytes)).unwrap();
        assert_eq!(found.block_bytes, 4096);
        assert_eq!(found.stripe_unit_bytes, Some(65536));
        assert_eq!(found.stripe_width_bytes, Some(4 * 65536));
        assert_eq!(found.features, ["has_journal", "extent"]);
    }

    #[test]
    fn xfs_tells_its_stripe() {
        let mut bytes = [0u8; LENGTH];
        bytes[..4].copy_from_slice(b"XFSB");
        bytes[4..8].copy_from_slice(&4096u32.to_be_bytes());
        bytes[55] = 1;
        bytes[91] = 4;
        bytes[101] = 0xb5;
        bytes[187] = 32;
        bytes[191] = 64;
        bytes[215] = 5;
        let found = parse("xfs", &hex(&bytes)).unwrap();
        assert_eq!(found.stripe_unit_bytes, Some(131_072));
        assert_eq!(found.stripe_width_bytes, Some(262_144));
        assert_eq!(found.features, ["crc", "finobt", "reflink", "agcount=4"]);
    }

    #[test]
    fn nonsense_is_nothing() {
        for kind in ["ext4", "xfs"] {
            for text in ["", "x", "5846", "zz", &"ff".repeat(LENGTH), &"00".repeat(LENGTH)] {
                assert_eq!(parse(kind, text), None, "{kind} {text}");
            }
        }
        let mut bytes = [0xffu8; LENGTH];
        bytes[1024 + 0x38..1024 + 0x3a].copy_from_slice(&0xef53u16.to_le_bytes());
        assert_eq!(parse("ext4", &hex(&bytes)), None);
    }
}
