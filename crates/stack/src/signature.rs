//! What is written on a block device: a prober of magic numbers of our own, so that neither a
//! library nor a program has to be there when it matters most.

use std::fmt;
use std::io;
use std::os::unix::fs::FileExt;

use serde::Serialize;
use units::{ByteOffset, Bytes};

/// Something whose bytes can be looked at without changing it.
pub trait ReadAt {
    /// How long it is.
    fn size(&self) -> io::Result<Bytes>;
    /// Fills `buffer` from `offset`; an end before that is an error.
    fn read_exact_at(&self, offset: ByteOffset, buffer: &mut [u8]) -> io::Result<()>;
}

/// A file or a device, opened for reading.
impl ReadAt for std::fs::File {
    fn size(&self) -> io::Result<Bytes> {
        use std::io::{Seek, SeekFrom};
        // The length of a block device is where its end is, not what stat says.
        let mut file = self;
        file.seek(SeekFrom::End(0)).map(Bytes::new)
    }
    fn read_exact_at(&self, offset: ByteOffset, buffer: &mut [u8]) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset.get())
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<Bytes> {
        Ok(Bytes::new(self.len() as u64))
    }
    fn read_exact_at(&self, offset: ByteOffset, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset.get()).unwrap_or(usize::MAX);
        let end = start.saturating_add(buffer.len());
        let source = self.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(source);
        Ok(())
    }
}

/// Something found on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// What it belongs to: `ext2/ext3/ext4`, `LVM physical volume`, `unknown data`.
    pub name: String,
    /// What kind of thing that is.
    pub family: Family,
    /// Where its magic number is, or its first byte that is not zero.
    pub at: ByteOffset,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.name, self.at.get())
    }
}

/// What kind of thing a signature belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// A partition table.
    PartitionTable,
    /// A file system of one device.
    FileSystem,
    /// A member of something larger: RAID, LVM, btrfs, zfs, ASM, DRBD.
    Member,
    /// Swap space or a suspended system.
    Swap,
    /// Encrypted.
    Encrypted,
    /// Not known, but not blank.
    UnknownData,
}

/// Where a magic number is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// From the beginning.
    Start(u64),
    /// Before the end.
    End(u64),
    /// After the last whole multiple of `unit` that has at least `least` bytes behind it.
    EndAligned { unit: u64, least: u64, plus: u64 },
}

struct Row {
    name: &'static str,
    family: Family,
    place: Place,
    magic: &'static [u8],
}

const fn row(name: &'static str, family: Family, place: Place, magic: &'static [u8]) -> Row {
    Row { name, family, place, magic }
}

use Family::{Encrypted, FileSystem, Member, PartitionTable, Swap, UnknownData};
use Place::{End, EndAligned, Start};

const MD_MAGIC_LE: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const MD_MAGIC_BE: &[u8] = &[0xa9, 0x2b, 0x4e, 0xfc];

/// What a run on `layer:` makes in its scratch file, and `plimsoll layer create` in one of its own.
pub(crate) const LAYER_VOLUME: &str = "volume of plimsoll's layer";

/// One row per magic number. Offsets are those of each format's own description; where a format
/// depends on the sector or page size there is one row per size in use.
const ROWS: &[Row] = &[
    // Partition tables.
    row("GPT partition table", PartitionTable, Start(512), b"EFI PART"),
    row("GPT partition table", PartitionTable, Start(4096), b"EFI PART"),
    row("GPT partition table (backup)", PartitionTable, End(512), b"EFI PART"),
    row("GPT partition table (backup)", PartitionTable, End(4096), b"EFI PART"),
    row("MBR partition table or boot sector", PartitionTable, Start(510), &[0x55, 0xaa]),
    row("Apple partition map", PartitionTable, Start(512), b"PM\0\0"),
    row("Sun disk label", PartitionTable, Start(508), &[0xda, 0xbe]),
    row("SGI volume header", PartitionTable, Start(0), &[0x0b, 0xe5, 0xa9, 0x41]),
    row("BSD disk label", PartitionTable, Start(512), &[0x57, 0x45, 0x56, 0x82]),
    // RAID and volume managers.
    row("LVM physical volume", Member, Start(24), b"LVM2 001"),
    row("LVM physical volume", Member, Start(536), b"LVM2 001"),
    row("LVM physical volume", Member, Start(1048), b"LVM2 001"),
    row("LVM physical volume", Member, Start(1560), b"LVM2 001"),
    row(LAYER_VOLUME, Member, Start(0), b"PlimSupr"),
    row(LAYER_VOLUME, Member, Start(4096), b"PlimSupr"),
    row("LVM label", Member, Start(0), b"LABELONE"),
    row("LVM label", Member, Start(512), b"LABELONE"),
    row("LVM label", Member, Start(1024), b"LABELONE"),
    row("LVM label", Member, Start(1536), b"LABELONE"),
    row("md member (0.90)", Member, EndAligned { unit: 65536, least: 65536, plus: 0 }, MD_MAGIC_LE),
    row("md member (0.90)", Member, EndAligned { unit: 65536, least: 65536, plus: 0 }, MD_MAGIC_BE),
    row("md member (1.0)", Member, EndAligned { unit: 4096, least: 8192, plus: 0 }, MD_MAGIC_LE),
    row("md member (1.1)", Member, Start(0), MD_MAGIC_LE),
    row("md member (1.2)", Member, Start(4096), MD_MAGIC_LE),
    row("Intel RAID member", Member, End(1024), b"Intel Raid ISM Cfg Sig."),
    row("Intel RAID member", Member, End(8192), b"Intel Raid ISM Cfg Sig."),
    row("DDF RAID member", Member, End(512), &[0xde, 0x11, 0xde, 0x11]),
    row("DDF RAID member", Member, End(131_584), &[0xde, 0x11, 0xde, 0x11]),
    row("DRBD member", Member, End(4096 - 60), &[0x83, 0x74, 0x02, 0x6b]),
    row("DRBD member", Member, End(4096 - 60), &[0x83, 0x74, 0x02, 0x6c]),
    row("DRBD member", Member, End(4096 - 52), &[0x83, 0x74, 0x02, 0x6d]),
    row(
        "bcache",
        Member,
        Start(4096 + 24),
        &[
            0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba,
            0x6d, 0x81,
        ],
    ),
    row(
        "bcachefs",
        Member,
        Start(4096 + 24),
        &[
            0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d,
            0xf7, 0xef,
        ],
    ),
    row("Oracle ASM disk", Member, Start(32), b"ORCLDISK"),
    row("Ceph BlueStore", Member, Start(0), b"bluestore block device"),
    row("VMFS volume member", Member, Start(1 << 20), &[0x0d, 0xd0, 0x01, 0xc0]),
    row("VDO", Member, Start(0), b"dmvdo001"),
    row("Stratis", Member, Start(516), b"!Stra0tis\x86\xff\x02^\x41rh"),
    row("Stratis", Member, Start(4612), b"!Stra0tis\x86\xff\x02^\x41rh"),
    row("dm-integrity", Member, Start(0), b"integrt\0"),
    row("dm-verity", Member, Start(0), b"verity\0\0"),
    row("btrfs", Member, Start(65536 + 64), b"_BHRfS_M"),
    row("btrfs (mirror)", Member, Start((64 << 20) + 64), b"_BHRfS_M"),
    // Encryption.
    row("LUKS", Encrypted, Start(0), b"LUKS\xba\xbe"),
    row("LUKS (second header)", Encrypted, Start(16 << 10), b"SKUL\xba\xbe"),
    row("LUKS (second header)", Encrypted, Start(32 << 10), b"SKUL\xba\xbe"),
    row("LUKS (second header)", Encrypted, Start(64 << 10), b"SKUL\xba\xbe"),
    row("LUKS (second header)", Encrypted, Start(128 << 10), b"SKUL\xba\xbe"),
    row("LUKS (second header)", Encrypted, Start(256 << 10), b"SKUL\xba\xbe"),
    row("LUKS (second header)", Encrypted, Start(512 << 10), b"SKUL\xba\xbe"),
    row("BitLocker", Encrypted, Start(3), b"-FVE-FS-"),
    // Swap: the magic ends the first page, whatever the machine's page is.
    row("swap", Swap, Start(4096 - 10), b"SWAPSPACE2"),
    row("swap", Swap, Start(8192 - 10), b"SWAPSPACE2"),
    row("swap", Swap, Start(16384 - 10), b"SWAPSPACE2"),
    row("swap", Swap, Start(65536 - 10), b"SWAPSPACE2"),
    row("swap", Swap, Start(4096 - 10), b"SWAP-SPACE"),
    row("suspended system", Swap, Start(4096 - 10), b"S1SUSPEND"),
    // File systems.
    row("ext2/ext3/ext4", FileSystem, Start(1024 + 56), &[0x53, 0xef]),
    row("xfs", FileSystem, Start(0), b"XFSB"),
    row("f2fs", FileSystem, Start(1024), &[0x10, 0x20, 0xf5, 0xf2]),
    row("jfs", FileSystem, Start(32768), b"JFS1"),
    row("nilfs2", FileSystem, Start(1024 + 6), &[0x34, 0x34]),
    row(
        "nilfs2 (backup)",
        FileSystem,
        EndAligned { unit: 4096, least: 4096, plus: 6 },
        &[0x34, 0x34],
    ),
    row("reiserfs", FileSystem, Start(65536 + 52), b"ReIsEr"),
    row("reiserfs", FileSystem, Start(8192 + 52), b"ReIsEr"),
    row("reiser4", FileSystem, Start(65536), b"ReIsEr4"),
    row("ntfs", FileSystem, Start(3), b"NTFS    "),
    row("exfat", FileSystem, Start(3), b"EXFAT   "),
    row("refs", FileSystem, Start(3), b"ReFS\0"),
    row("vfat", FileSystem, Start(54), b"FAT1"),
    row("vfat", FileSystem, Start(82), b"FAT32   "),
    row("iso9660", FileSystem, Start(32769), b"CD001"),
    row("udf", FileSystem, Start(32769), b"BEA01"),
    row("squashfs", FileSystem, Start(0), b"hsqs"),
    row("erofs", FileSystem, Start(1024), &[0xe2, 0xe1, 0xf5, 0xe0]),
    row("cramfs", FileSystem, Start(0), &[0x45, 0x3d, 0xcd, 0x28]),
    row("romfs", FileSystem, Start(0), b"-rom1fs-"),
    row("hfs+", FileSystem, Start(1024), b"H+\0\x04"),
    row("hfs+", FileSystem, Start(1024), b"HX\0\x05"),
    row("apfs", FileSystem, Start(32), b"NXSB"),
    row("gfs2", FileSystem, Start(65536), &[0x01, 0x16, 0x19, 0x70]),
    row("ocfs2", FileSystem, Start(1024), b"OCFSV2"),
    row("ocfs2", FileSystem, Start(2048), b"OCFSV2"),
    row("ocfs2", FileSystem, Start(4096), b"OCFSV2"),
    row("vmfs", FileSystem, Start(2 << 20), &[0x5e, 0xf1, 0xab, 0x2f]),
    row("ufs2", FileSystem, Start(65536 + 1372), &[0x19, 0x01, 0x54, 0x19]),
];

/// Each zfs device has four labels of this size, two at each end; the uberblocks fill the second
/// half of each.
const ZFS_LABEL: u64 = 256 << 10;
const ZFS_UBERBLOCKS: u64 = 128 << 10;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// How much of each end must be blank.
const BLANK: u64 = 1 << 20;

/// Looks for everything that is known, then for anything that is not zero in the first and the
/// last MiB. Nothing found: the device is blank as far as anyone can tell from its ends.
///
/// Reads at most some 3 MiB. A device that cannot be read is an error, since nobody knows then
/// what is on it.
pub fn probe<R: ReadAt + ?Sized>(device: &R) -> io::Result<Vec<Signature>> {
    let size = device.size()?;
    let ends = Ends::read(device, size)?;
    let mut found: Vec<Signature> = Vec::new();
    for row in ROWS {
        let Some(at) = place(row.place, size.get()) else { continue };
        let already = found.iter().any(|s| s.name == row.name);
        if !already && ends.bytes(device, at, row.magic.len())?.is_some_and(|b| b == row.magic) {
            found.push(Signature {
                name: row.name.to_owned(),
                family: row.family,
                at: ByteOffset::new(at),
            });
        }
    }
    found.extend(zfs(device, &ends)?);
    if found.is_empty() {
        found.extend(ends.unknown());
    }
    Ok(found)
}

/// Where that is on a device of `size` bytes; `None` if it has no such place.
fn place(place: Place, size: u64) -> Option<u64> {
    match place {
        Start(at) => Some(at),
        End(before) => size.checked_sub(before),
        EndAligned { unit, least, plus } => {
            Some((size.checked_sub(least)? / unit * unit).saturating_add(plus))
        }
    }
}

fn zfs<R: ReadAt + ?Sized>(device: &R, ends: &Ends) -> io::Result<Option<Signature>> {
    let end = ends.size / ZFS_LABEL * ZFS_LABEL;
    let labels =
        [Some(0), Some(ZFS_LABEL), end.checked_sub(2 * ZFS_LABEL), end.checked_sub(ZFS_LABEL)];
    for label in labels.into_iter().flatten() {
        // Uberblocks are at least 1 KiB apart.
        for at in (label + ZFS_UBERBLOCKS..label + ZFS_LABEL).step_by(1024) {
            let Some(bytes) = ends.bytes(device, at, 8)? else { break };
            if bytes == ZFS_MAGIC.to_le_bytes() || bytes == ZFS_MAGIC.to_be_bytes() {
                let at = ByteOffset::new(at);
                return Ok(Some(Signature { name: "zfs member".to_owned(), family: Member, at }));
            }
        }
    }
    Ok(None)
}

/// The first and the last MiB, and some more for what is aligned near there.
struct Ends {
    size: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    tail_at: u64,
}

impl Ends {
    fn read<R: ReadAt + ?Sized>(device: &R, size: Bytes) -> io::Result<Self> {
        let size = size.get();
        let length = BLANK.min(size);
        let tail_at = size - length;
        let mut head = vec![0; length as usize];
        let mut tail = vec![0; length as usize];
        device.read_exact_at(ByteOffset::ZERO, &mut head)?;
        device.read_exact_at(ByteOffset::new(tail_at), &mut tail)?;
        Ok(Self { size, head, tail, tail_at })
    }

    /// `None` past the end of the device.
    fn bytes<R: ReadAt + ?Sized>(
        &self,
        device: &R,
        at: u64,
        length: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        if at.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Ok(None);
        }
        let within = |buffer: &[u8], base: u64| {
            let start = usize::try_from(at.checked_sub(base)?).ok()?;
            buffer.get(start..start.checked_add(length)?).map(<[u8]>::to_vec)
        };
        let known = within(&self.head, 0).or_else(|| within(&self.tail, self.tail_at));
        if known.is_some() {
            return Ok(known);
        }
        let mut bytes = vec![0; length];
        device.read_exact_at(ByteOffset::new(at), &mut bytes)?;
        Ok(Some(bytes))
    }

    fn unknown(&self) -> Option<Signature> {
        let first =
            |buffer: &[u8], base: u64| buffer.iter().position(|&b| b != 0).map(|p| base + p as u64);
        let at = first(&self.head, 0).or_else(|| first(&self.tail, self.tail_at))?;
        Some(Signature {
            name: "unknown data".to_owned(),
            family: UnknownData,
            at: ByteOffset::new(at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = (4 << 20) + 12 * 1024;

    fn names(bytes: &[u8]) -> Vec<String> {
        probe(bytes).unwrap().into_iter().map(|s| s.name).collect()
    }

    #[test]
    fn every_row_is_found_on_its_own() {
        for row in ROWS {
            let mut device =
                vec![
                    0;
                    if matches!(row.place, Start(at) if at > 3 << 20) { 65 << 20 } else { SIZE }
                ];
            let at = place(row.place, device.len() as u64).unwrap() as usize;
            device[at..at + row.magic.len()].copy_from_slice(row.magic);
            let found = probe(&device[..]).unwrap();
            assert!(
                found.iter().any(|s| s.name == row.name
                    && s.family == row.family
                    && s.at.get() == at as u64),
                "{} at {at}: {found:?}",
                row.name
            );
            device[at] ^= 0x10;
            assert!(!names(&device).contains(&row.name.to_owned()), "{} is not exact", row.name);
        }
    }

    #[test]
    fn zfs_is_found_by_any_uberblock_of_either_order() {
        let end = SIZE as u64 / ZFS_LABEL * ZFS_LABEL;
        for at in [128 << 10, (256 + 128 + 5) << 10, end - (127 << 10), end - (383 << 10)] {
            for magic in [ZFS_MAGIC.to_le_bytes(), ZFS_MAGIC.to_be_bytes()] {
                let mut device = vec![0; SIZE];
                device[at as usize..at as usize + 8].copy_from_slice(&magic);
                assert_eq!(names(&device), ["zfs member"], "{at}");
            }
        }
    }

    #[test]
    fn a_blank_device_has_nothing() {
        for size in [0, 1, 511, 512, 4096, 65536, 1 << 20, SIZE] {
            assert_eq!(names(&vec![0; size]), [""; 0], "{size}");
        }
    }

    #[test]
    fn a_single_byte_in_either_end_is_unknown_data() {
        for at in [0, 1 << 19, (1 << 20) - 1, SIZE - (1 << 20), SIZE - 1] {
            let mut device = vec![0; SIZE];
            device[at] = 1;
            let found = probe(&device[..]).unwrap();
            assert_eq!((found[0].family, found[0].at.get()), (UnknownData, at as u64));
        }
        let mut device = vec![0; SIZE];
        device[SIZE / 2] = 1;
        assert_eq!(names(&device), [""; 0], "the middle is not looked at");
    }

    #[test]
    fn devices_of_any_size_are_probed_without_panic() {
        // Sizes around every boundary that a row or a label depends on.
        for base in [0u64, 512, 4096, 65536, 131_072, 262_144, 1 << 20, 2 << 20] {
            for delta in -3i64..=3 {
                let size = base.saturating_add_signed(delta) as usize;
                let device = vec![0xa5; size];
                assert_eq!(probe(&device[..]).unwrap().is_empty(), size == 0, "{size}");
            }
        }
    }

    #[test]
    fn a_device_that_cannot_be_read_is_an_error() {
        struct Broken;
        impl ReadAt for Broken {
            fn size(&self) -> io::Result<Bytes> {
                Ok(Bytes::mib(8))
            }
            fn read_exact_at(&self, _: ByteOffset, _: &mut [u8]) -> io::Result<()> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        assert_eq!(probe(&Broken).unwrap_err().raw_os_error(), Some(5));
    }
}
