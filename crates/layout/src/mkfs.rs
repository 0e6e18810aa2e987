//! What a file system is told about the stripes below it.

use units::Bytes;

use crate::array::Geometry;
use crate::stack::FileSystemKind;

/// Block size of the file systems of the ext family, unless another is asked for.
const EXT_BLOCK: Bytes = Bytes::kib(4);

/// The largest stripe unit and width that the format of xfs holds, each.
const XFS_STRIPE_MAX: Bytes = Bytes::gib(1);

/// Words for `mkfs` that tell a file system about stripes; none where it takes none.
///
/// * ext2, ext3, ext4: `stride` and `stripe_width`, in blocks of its own.
/// * xfs: `su` in bytes, `sw` in units.
/// * The others take none: btrfs and zfs make their own stripes, jfs, nilfs2 and f2fs do not look.
pub fn stripe_words(kind: FileSystemKind, geometry: Option<Geometry>, block: Bytes) -> Vec<String> {
    let Some(told) = told(kind, geometry, block) else { return Vec::new() };
    let (unit, count) = (told.unit.get(), told.count);
    match kind {
        FileSystemKind::Xfs => vec!["-d".to_owned(), format!("su={unit},sw={count}")],
        _ => {
            let stride = unit / block.get();
            let width = stride * u64::from(count);
            vec!["-E".to_owned(), format!("stride={stride},stripe_width={width}")]
        }
    }
}

/// The geometry that a file system can be told; `None` where it takes none, or not this one.
pub fn told(kind: FileSystemKind, geometry: Option<Geometry>, block: Bytes) -> Option<Geometry> {
    let geometry = geometry.filter(|geometry| geometry.unit.is_multiple_of(block))?;
    match kind {
        FileSystemKind::Ext2 | FileSystemKind::Ext3 | FileSystemKind::Ext4 => {
            (geometry.width() <= Bytes::gib(1)).then_some(geometry)
        }
        FileSystemKind::Xfs => (geometry.width() <= XFS_STRIPE_MAX).then_some(geometry),
        _ => None,
    }
}

/// The block size among the words for a `mkfs`, or what it is without.
///
/// `-b 1024` and `-b size=1k` are understood, and written in one word.
pub fn block_size(options: &[String]) -> Bytes {
    let mut words = options.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("-b") {
            Some("") => words.next(),
            rest => rest,
        };
        let size = value.and_then(|value| value.trim_start_matches("size=").parse::<Bytes>().ok());
        if let Some(size) = size.filter(|size| size.get() > 0) {
            return size;
        }
    }
    EXT_BLOCK
}
